//! Sessions and applications over HTTP (contract users-17).

use api::user::{
    Application, EndSession, ListApplications, ListSessions, RevokeApplication, Session,
};
use api::{Done, Json};

use crate::access::users::caller_view;
use crate::http::api::binding::{ApiRequest, BoundEndpoints};
use crate::runtime::clock;
use crate::runtime::error::Result;

/// The endpoints of the caller's sessions and applications.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<ListSessions, _, _>(list_sessions)
        .bind::<EndSession, _, _>(end_session)
        .bind::<ListApplications, _, _>(list_applications)
        .bind::<RevokeApplication, _, _>(revoke_application)
}

async fn list_sessions(request: ApiRequest<ListSessions>) -> Result<Json<Vec<Session>>> {
    let sessions = request.app.shared.access.users.sessions(&request.caller, clock::now()).await?;
    Ok(Json(sessions.into_iter().map(caller_view::session).collect()))
}

async fn end_session(request: ApiRequest<EndSession>) -> Result<Done> {
    let EndSession { id } = request.parameters()?;
    request.app.shared.access.users.end_session(&request.caller, &id, clock::now()).await?;
    Ok(Done)
}

async fn list_applications(
    request: ApiRequest<ListApplications>,
) -> Result<Json<Vec<Application>>> {
    let applications = request.app.shared.access.users.applications(&request.caller).await?;
    Ok(Json(applications.into_iter().map(caller_view::application).collect()))
}

async fn revoke_application(request: ApiRequest<RevokeApplication>) -> Result<Done> {
    let RevokeApplication { id } = request.parameters()?;
    request.app.shared.access.users.revoke_application(&request.caller, &id, clock::now()).await?;
    Ok(Done)
}
