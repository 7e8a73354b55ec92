//! API keys over HTTP: callers list, create and revoke their own keys (contract access-8).

use api::user::{CreateKey, Key, ListKeys, MadeKey, RevokeKey};
use api::{Done, Json};

use crate::access::users::caller_view;
use crate::http::api::binding::{ApiRequest, BoundEndpoints, ReadRequest};
use crate::runtime::clock;
use crate::runtime::error::Result;

/// The endpoints of API keys.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<ListKeys, _, _>(list_keys)
        .bind::<CreateKey, _, _>(create_key)
        .bind::<RevokeKey, _, _>(revoke_key)
}

async fn list_keys(request: ApiRequest<ListKeys>) -> Result<Json<Vec<Key>>> {
    let keys = request.app.shared.access.users.keys(&request.caller).await?;
    Ok(Json(keys.into_iter().map(caller_view::key).collect()))
}

async fn create_key(request: ApiRequest<CreateKey>) -> Result<Json<MadeKey>> {
    let ReadRequest { app, caller, body, .. } = request.read().await?;
    Ok(Json(app.shared.access.users.create_key(&caller, body, clock::now()).await?))
}

async fn revoke_key(request: ApiRequest<RevokeKey>) -> Result<Done> {
    let id = request.parameters()?.id;
    request.app.shared.access.users.revoke_key(&request.caller, id, clock::now()).await?;
    Ok(Done)
}
