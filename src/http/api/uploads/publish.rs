//! Describes uploaded files and publishes them as items.

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
};
use serde_json::{Value, json};

use super::{Segment, find};
use crate::archive::ingest::{
    ExistingPolicy, IngestedItem, PublishOutcome, PublishRequest, UploadDescription,
};
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiResult;
use crate::http::api::ingest::upload_error;
use crate::http::api::item_edits::template_of;
use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::request;
use crate::http::protocol::request::{Presence, TextRule};
use crate::http::protocol::respond;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::EDIT_BYTES_MAX;
use crate::storage::audit::{self, AuditAction, AuditOutcome};
use crate::storage::database::{ItemWriteOutcome, PendingUpload};
use model::ItemId;
use model::item::MediaLinks;
use model::item::MetadataEdits;

/// The rule for the id of an item in a body; the model checks its characters.
const ID: TextRule = TextRule::line(ItemId::CHARS_MAX);

/// `GET /ingest/v1/uploads/{id}/document`: the item that the upload would become.
pub(super) async fn describe(
    State(app): State<AppState>,
    caller: ApiCaller,
    id: Segment,
) -> ApiResult {
    let upload = find_complete(&app, &caller, id).await?;
    let _permit = app.shared.archive.uploads.admit_reading().await?;
    let described = app.shared.archive.uploads.describe(upload).await?;
    api::json(&description_json(&described.map_err(|error| upload_error(error, true))?))
}

/// `GET /ingest/v1/uploads/{id}/preview`: a small picture of an uploaded photograph.
pub(super) async fn preview(
    State(app): State<AppState>,
    caller: ApiCaller,
    id: Segment,
) -> ApiResult {
    let upload = find_complete(&app, &caller, id).await?;
    let _permit = app.shared.archive.uploads.admit_reading().await?;
    let rendered = app.shared.archive.uploads.preview(upload).await?;
    let rendered = rendered.map_err(|error| upload_error(error, true))?;
    let picture = rendered
        .ok_or_else(|| Error::new(ErrorKind::NotFound, "only photographs have a preview"))?;
    let kind = HeaderValue::from_static("image/jpeg");
    let mut response = respond::typed(StatusCode::OK, kind, Body::from(picture));
    // The bytes of an upload never change, so the user's own browser may cache the picture.
    CachePolicy::PrivateHour.set(response.headers_mut());
    Ok(response)
}

/// `POST /ingest/v1/uploads/{id}/publish`: publishes the upload as an item.
pub(super) async fn publish(
    State(app): State<AppState>,
    caller: ApiCaller,
    id: Segment,
    request: Request,
) -> ApiResult {
    let upload = find_complete(&app, &caller, id).await?;
    let template = template_of(&app, &caller, request.uri()).await?;
    let body = request::json(request, EDIT_BYTES_MAX).await?;
    let wanted = PublishRequest { template, ..parse_request(&body)? };
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
            Err(Error::new(ErrorKind::Conflict, message).with_code("item_exists").into())
        }
        PublishOutcome::Stale(key) => {
            let message = format!("the item {key} has changed while the upload was published");
            Err(Error::new(ErrorKind::Stale, message).with_code("version_conflict").into())
        }
        PublishOutcome::Published(item) => published(&app, item).await,
    }
}

/// Responds with the document of a published item as it is served.
async fn published(app: &AppState, item: IngestedItem) -> ApiResult {
    // This node forgets the old versions at once; other nodes follow the item log.
    app.shared.media.item_changed(&item.replaced_items);
    app.shared.media.item_changed(std::slice::from_ref(&item.key));
    let status = match item.written {
        ItemWriteOutcome::Created => StatusCode::CREATED,
        ItemWriteOutcome::Replaced => StatusCode::OK,
    };
    let text = app.shared.media.document_json(&item.key).await?;
    let mut response = respond::json_text(status, text);
    CachePolicy::NoStore.set(response.headers_mut());
    set_location(response.headers_mut(), &app.shared.media.links().item(&item.key));
    Ok(response)
}

fn set_location(headers: &mut HeaderMap, address: &str) {
    if let Ok(address) = HeaderValue::from_str(address) {
        headers.insert(header::LOCATION, address);
    }
}

/// Finds the caller's upload that the path names. Fails unless all of its bytes were received.
async fn find_complete(app: &AppState, caller: &ApiCaller, id: Segment) -> Result<PendingUpload> {
    let upload = find(app, caller, id).await?;
    if upload.is_complete() {
        return Ok(upload);
    }
    let message = format!("{} of {} bytes were received", upload.received, upload.length);
    Err(Error::new(ErrorKind::Conflict, message).with_code("upload_incomplete"))
}

fn parse_request(body: &Value) -> Result<PublishRequest> {
    request::read_object(body, |wanted| {
        let id = wanted.text("id", Presence::Optional, ID).value();
        let id = id.map(|id| ItemId::parse(&id));
        if let Some(Err(cause)) = &id {
            wanted.report_rule("id", "pattern", &format!("is no id: {cause}"));
        }
        let existing = wanted.variant("existing", Presence::NotNull).value();
        let patch = wanted.members("document", Presence::NotNull).value().unwrap_or_default();
        PublishRequest {
            id: id.and_then(std::result::Result::ok),
            existing: existing.unwrap_or(ExistingPolicy::Refuse),
            template: MetadataEdits::default(),
            patch,
        }
    })
}

fn description_json(description: &UploadDescription) -> Value {
    let mut described = json!({
        "mediaType": description.media_type.as_str(),
        "exists": description.exists,
        "document": description.document,
        "warnings": description.warnings,
    });
    if let Some(key) = &description.key {
        described["id"] = json!(key.id.as_str());
    }
    if let Some(size) = description.size {
        described["width"] = json!(size.width);
        described["height"] = json!(size.height);
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_publish_has_defaults_and_names_its_problems() {
        let wanted = parse_request(&json!({})).expect("valid");
        assert_eq!((wanted.id, wanted.existing), (None, ExistingPolicy::Refuse));
        assert!(wanted.patch.is_empty());
        let body = json!({ "id": "a-1", "existing": "new", "document": { "headline": null } });
        let wanted = parse_request(&body).expect("valid");
        assert_eq!(wanted.id.map(|id| id.to_string()).as_deref(), Some("a-1"));
        assert_eq!(wanted.existing, ExistingPolicy::New);
        assert_eq!(wanted.patch.get("headline"), Some(&Value::Null));
        let body = json!({ "id": "a/b", "existing": "ask", "document": [], "other": 1 });
        let error = parse_request(&body).expect_err("refused");
        let paths: Vec<_> = error.details().iter().map(|detail| detail.path.as_str()).collect();
        assert_eq!(paths, ["id", "existing", "document", "other"]);
    }
}
