//! Describes uploaded files and publishes them as items.

use api::Json;
use api::uploads::{
    DescribeUpload, PreviewUpload, PublishUpload, UploadDescription, UploadPublish,
};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use super::{find, require_uploader, unknown_id};
use crate::access::auth::Principal;
use crate::archive::ingest::{PublishOutcome, PublishRequest};
use crate::http::AppState;
use crate::http::api::binding::{ApiRequest, ReadRequest};
use crate::http::api::ingest::{published_response, upload_error};
use crate::http::api::item_edits::template_edits;
use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::respond;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit::{self, AuditAction, AuditOutcome};
use crate::storage::database::PendingUpload;
use model::ItemId;
use model::item::MetadataEdits;

/// Describes the item that the upload would become.
pub(super) async fn describe(
    request: ApiRequest<DescribeUpload>,
) -> Result<Json<UploadDescription>> {
    let id = request.parameters().map(|parameters| parameters.id);
    let upload = find_complete(&request.app, &request.caller, id).await?;
    let _permit = request.app.shared.archive.uploads.admit_reading().await?;
    let described = request.app.shared.archive.uploads.describe(upload).await?;
    described.map(Json).map_err(|error| upload_error(error, true))
}

/// Renders a small picture of an uploaded photograph.
pub(super) async fn preview(request: ApiRequest<PreviewUpload>) -> Result<Response> {
    let id = request.parameters().map(|parameters| parameters.id);
    let upload = find_complete(&request.app, &request.caller, id).await?;
    let _permit = request.app.shared.archive.uploads.admit_reading().await?;
    let rendered = request.app.shared.archive.uploads.preview(upload).await?;
    let rendered = rendered.map_err(|error| upload_error(error, true))?;
    let picture = rendered
        .ok_or_else(|| Error::new(ErrorKind::NotFound, "only photographs have a preview"))?;
    let kind = HeaderValue::from_static("image/jpeg");
    let mut response = respond::typed(StatusCode::OK, kind, Body::from(picture));
    // The bytes of an upload never change, so the user's own browser may cache the picture.
    CachePolicy::PrivateHour.set(response.headers_mut());
    Ok(response)
}

/// Publishes the upload as an item.
pub(super) async fn publish(request: ApiRequest<PublishUpload>) -> Result<Response> {
    require_uploader(&request.caller)?;
    let PublishUpload { id, template } = request.parameters().map_err(unknown_id)?;
    let upload = find_complete(&request.app, &request.caller, Ok(id)).await?;
    let template = template_edits(&request.app, &request.caller, template).await?;
    let ReadRequest { app, body, .. } = request.read().await?;
    let wanted = publish_request(body, template)?;
    let _permit = app.shared.archive.uploads.admit()?;
    let outcome = app.shared.archive.uploads.publish(upload, wanted, clock::now()).await?;
    let outcome = outcome.map_err(|error| {
        let event = audit::event(AuditAction::ItemStored).with_outcome(AuditOutcome::Failed);
        audit::record(event.with_detail(&error));
        upload_error(error, true)
    })?;
    match outcome {
        PublishOutcome::Exists(key) => {
            let message = format!("the item {key} exists");
            Err(Error::new(ErrorKind::Conflict, message).with_code("item_exists"))
        }
        PublishOutcome::Stale(key) => {
            let message = format!("the item {key} has changed while the upload was published");
            Err(Error::new(ErrorKind::Stale, message).with_code("version_conflict"))
        }
        PublishOutcome::Published(item) => published_response(&app, &item).await,
    }
}

/// Finds the caller's upload that the path names. Fails unless all of its bytes were received.
async fn find_complete(
    app: &AppState,
    caller: &Principal,
    id: Result<String>,
) -> Result<PendingUpload> {
    let upload = find(app, caller, id).await?;
    if upload.is_complete() {
        return Ok(upload);
    }
    let message = format!("{} of {} bytes were received", upload.received, upload.length);
    Err(Error::new(ErrorKind::Conflict, message).with_code("upload_incomplete"))
}

/// Parses the id of the item. Some rules for ids are not in the pattern of the API's description.
fn publish_request(sent: UploadPublish, template: MetadataEdits) -> Result<PublishRequest> {
    let id = sent.id.map(|id| ItemId::parse(&id)).transpose().map_err(|cause| {
        Error::invalid("body", "id", "pattern", format!("id is no id: {cause}"))
    })?;
    Ok(PublishRequest { id, existing: sent.existing, template, patch: sent.document })
}
