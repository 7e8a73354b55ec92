//! The caller's organization and the administration of its users over HTTP (contract users-3, users-8 to users-18).

use api::account::{User, UserBase};
use api::organization::{
    CreateOrganizationUser, EndUserSessions, ListOrganizationUsers, ListPendingUsers,
    LoadOrganization, LoadOrganizationUser, LoadUserAccess, Organization, PasswordLink,
    PendingUser, RevokePasswordLinks, RevokeUserKeys, SendPasswordLink, UpdateOrganizationUser,
    UpdateUserAccess, UserAccess,
};
use api::{Done, Json};

use crate::access::users::{Users, organization_view, view};
use crate::http::api::binding::{ApiRequest, BoundEndpoints, ReadRequest};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorDetail, Result};
use model::account::UserId;

/// The endpoints of the organization and its users.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<LoadOrganization, _, _>(load_organization)
        .bind::<ListOrganizationUsers, _, _>(list_users)
        .bind::<CreateOrganizationUser, _, _>(create_user)
        .bind::<LoadOrganizationUser, _, _>(load_user)
        .bind::<UpdateOrganizationUser, _, _>(update_user)
        .bind::<ListPendingUsers, _, _>(list_pending)
        .bind::<LoadUserAccess, _, _>(load_access)
        .bind::<UpdateUserAccess, _, _>(change_access)
        .bind::<SendPasswordLink, _, _>(send_password_link)
        .bind::<RevokePasswordLinks, _, _>(revoke_password_links)
        .bind::<EndUserSessions, _, _>(end_sessions)
        .bind::<RevokeUserKeys, _, _>(revoke_keys)
}

async fn load_organization(request: ApiRequest<LoadOrganization>) -> Result<Json<Organization>> {
    Ok(Json(organization_view::organization(Users::organization(&request.caller)?)))
}

async fn list_users(request: ApiRequest<ListOrganizationUsers>) -> Result<Json<Vec<UserBase>>> {
    let users = request.app.shared.access.users.administration(&request.caller)?.list().await?;
    Ok(Json(users.iter().map(|user| view::user_base(user, &request.caller)).collect()))
}

async fn create_user(request: ApiRequest<CreateOrganizationUser>) -> Result<Json<User>> {
    let app = request.app.clone();
    let caller = request.caller.clone();
    // Checked before the body is read: a caller without the right gets a 403 for every body.
    let administration = app.shared.access.users.administration(&caller)?;
    let ReadRequest { body, .. } = request.read().await.map_err(with_phone_code)?;
    let account = administration.create(body, clock::now()).await?;
    Ok(Json(view::user(&account, &caller)))
}

async fn load_user(request: ApiRequest<LoadOrganizationUser>) -> Result<Json<User>> {
    let administration = request.app.shared.access.users.administration(&request.caller)?;
    let account = administration.load(UserId(request.parameters()?.id)).await?;
    Ok(Json(view::user(&account, &request.caller)))
}

async fn update_user(request: ApiRequest<UpdateOrganizationUser>) -> Result<Json<User>> {
    let app = request.app.clone();
    let caller = request.caller.clone();
    let administration = app.shared.access.users.administration(&caller)?;
    let ReadRequest { parameters, body, .. } = request.read().await.map_err(with_phone_code)?;
    let account = administration.update(UserId(parameters.id), body, clock::now()).await?;
    Ok(Json(view::user(&account, &caller)))
}

/// Gives a text that is no number its own code, the only one among the faults of a body (contract users-11).
fn with_phone_code(error: Error) -> Error {
    if !error.details().iter().any(is_wrong_phone_number) {
        return error;
    }
    let mut details = error.details().to_vec();
    for detail in details.iter_mut().filter(|detail| is_wrong_phone_number(detail)) {
        "phoneNumber_direct_invalid".clone_into(&mut detail.error_code);
    }
    Error::invalid_parts(details)
}

fn is_wrong_phone_number(detail: &ErrorDetail) -> bool {
    detail.path == "phoneNumber.direct" && detail.error_code == "format.openapi.requestValidation"
}

async fn list_pending(request: ApiRequest<ListPendingUsers>) -> Result<Json<Vec<PendingUser>>> {
    let administration = request.app.shared.access.users.administration(&request.caller)?;
    let users = administration.users_without_password(clock::now()).await?;
    let users = users.iter().map(|user| PendingUser { id: user.id.0, invited: user.invited });
    Ok(Json(users.collect()))
}

async fn load_access(request: ApiRequest<LoadUserAccess>) -> Result<Json<UserAccess>> {
    let administration = request.app.shared.access.users.administration(&request.caller)?;
    let id = UserId(request.parameters()?.id);
    Ok(Json(administration.login_state(id, clock::now()).await?))
}

async fn change_access(request: ApiRequest<UpdateUserAccess>) -> Result<Done> {
    let app = request.app.clone();
    let caller = request.caller.clone();
    let administration = app.shared.access.users.administration(&caller)?;
    // Parsed after the check of rights: a caller without them gets a 403 even if the request is invalid.
    let ReadRequest { parameters, body, .. } = request.read().await?;
    administration.set_active(UserId(parameters.id), body.active, clock::now()).await?;
    Ok(Done)
}

async fn send_password_link(request: ApiRequest<SendPasswordLink>) -> Result<Json<PasswordLink>> {
    let administration = request.app.shared.access.users.administration(&request.caller)?;
    let id = UserId(request.parameters()?.id);
    Ok(Json(administration.send_password_link(id, clock::now()).await?))
}

async fn revoke_password_links(request: ApiRequest<RevokePasswordLinks>) -> Result<Done> {
    let administration = request.app.shared.access.users.administration(&request.caller)?;
    administration.withdraw_password_link(UserId(request.parameters()?.id)).await?;
    Ok(Done)
}

async fn end_sessions(request: ApiRequest<EndUserSessions>) -> Result<Done> {
    let administration = request.app.shared.access.users.administration(&request.caller)?;
    administration.end_logins(UserId(request.parameters()?.id), clock::now()).await?;
    Ok(Done)
}

async fn revoke_keys(request: ApiRequest<RevokeUserKeys>) -> Result<Done> {
    let administration = request.app.shared.access.users.administration(&request.caller)?;
    administration.revoke_keys(UserId(request.parameters()?.id), clock::now()).await?;
    Ok(Done)
}
