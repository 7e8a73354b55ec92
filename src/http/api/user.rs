//! The caller, its profile and its devices over HTTP (`docs/contract/users.md`).

use axum::{http::StatusCode, response::Response};

use api::account::User;
use api::user::{
    DEVICE_TOKEN_BYTES_MAX, Device, ListAgreements, ListDevices, LoadCaller, LoadProfile,
    LoadProfileProperties, Profile, RegisterDevice, RemoveDevice, ReplaceProfile,
    UpdateProfileProperties,
};
use api::{Done, Json};

use crate::access::users::{Users, caller_view, view};
use crate::http::api::binding::{ApiRequest, BoundEndpoints, ReadRequest};
use crate::http::api::response;
use crate::http::credentials;
use crate::http::protocol::{deprecation, request};
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};

/// The endpoints of the caller, its profile and its devices.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind_response::<ListAgreements, _, _>(list_agreements)
        .bind::<LoadCaller, _, _>(load_caller)
        .bind::<LoadProfile, _, _>(load_profile)
        .bind::<ReplaceProfile, _, _>(replace_profile)
        .bind::<LoadProfileProperties, _, _>(load_profile_properties)
        .bind::<UpdateProfileProperties, _, _>(update_profile_properties)
        .bind::<ListDevices, _, _>(list_devices)
        .bind::<RegisterDevice, _, _>(register_device)
        .bind::<RemoveDevice, _, _>(remove_device)
}

async fn list_agreements(request: ApiRequest<ListAgreements>) -> Result<Response> {
    // Authenticated here, because errors announce the deprecation, too (contract api-20).
    let headers = &request.parts.headers;
    let caller = credentials::require_principal(&request.app, &request.parts).await;
    let response = match caller {
        Ok(caller) => {
            let agreements = Users::agreements(&caller, clock::now());
            let agreements: Vec<_> = agreements.map(caller_view::deprecated_agreement).collect();
            response::json(StatusCode::OK, &agreements)?
        }
        Err(error) => response::refuse(&error, credentials::has_bearer_token(headers)),
    };
    Ok(deprecation::mark_deprecated(response, "/user/v1/user"))
}

async fn load_caller(request: ApiRequest<LoadCaller>) -> Result<Json<User>> {
    // Service accounts have no user document.
    request.caller.require_person()?;
    Ok(Json(view::user(request.caller.account(), &request.caller)))
}

async fn load_profile(request: ApiRequest<LoadProfile>) -> Result<Json<Profile>> {
    Ok(Json(Profile(request.app.shared.access.users.profile(&request.caller).await?)))
}

async fn replace_profile(request: ApiRequest<ReplaceProfile>) -> Result<Done> {
    let ReadRequest { app, caller, body, .. } = request.read().await?;
    app.shared.access.users.replace_profile(&caller, body.0).await?;
    Ok(Done)
}

async fn load_profile_properties(
    request: ApiRequest<LoadProfileProperties>,
) -> Result<Json<Profile>> {
    let LoadProfileProperties { property } = request.parameters()?;
    let names: Vec<&str> = request::elements(&property).collect();
    let mut profile = request.app.shared.access.users.profile(&request.caller).await?;
    profile.retain(|name, _| names.contains(&name.as_str()));
    Ok(Json(Profile(profile)))
}

async fn update_profile_properties(request: ApiRequest<UpdateProfileProperties>) -> Result<Done> {
    let ReadRequest { app, caller, parameters, body } = request.read().await?;
    let names: Vec<&str> = request::elements(&parameters.property).collect();
    app.shared.access.users.patch_profile(&caller, &names, body.0).await?;
    Ok(Done)
}

async fn list_devices(request: ApiRequest<ListDevices>) -> Result<Json<Vec<Device>>> {
    let devices = request.app.shared.access.users.devices(&request.caller).await?.into_iter();
    let devices = devices.map(|(device, registered)| caller_view::device(device, registered));
    Ok(Json(devices.collect()))
}

async fn register_device(request: ApiRequest<RegisterDevice>) -> Result<Done> {
    let RegisterDevice { token, kind, name, model } = request.parameters()?;
    check_token(&token)?;
    let device = model::account::Device { token, kind, name, model };
    request.app.shared.access.users.register(&request.caller, device, clock::now()).await?;
    Ok(Done)
}

async fn remove_device(request: ApiRequest<RemoveDevice>) -> Result<Done> {
    let RemoveDevice { token } = request.parameters()?;
    check_token(&token)?;
    request.app.shared.access.users.unregister(&request.caller, token).await?;
    Ok(Done)
}

/// Checks the bytes of a device token, of which the schema counts the characters.
fn check_token(token: &str) -> Result<()> {
    if token.len() <= DEVICE_TOKEN_BYTES_MAX {
        return Ok(());
    }
    let message = format!("token has more than {DEVICE_TOKEN_BYTES_MAX} bytes");
    Err(Error::invalid("path", "token", "maximum", message))
}
