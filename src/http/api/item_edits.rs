//! Changes of items by editors, over HTTP: the stored document with its entity tag, a merge patch of it, and the
//! list of its changes.

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, Uri, header},
    response::Response,
    routing::get,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::ingest::{
    UploadPath, authorize_provider, parse_item_key, require_provider, upload_error,
};
use crate::archive::ingest::{EditOutcome, EditableItem, ExpectedVersion, ItemChange, SavedItem};
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiResult;
use crate::http::protocol::conditional;
use crate::http::protocol::conditional::ETag;
use crate::http::protocol::request;
use crate::http::protocol::request::QueryParameters;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::EDIT_BYTES_MAX;
use crate::storage::audit::{self, AuditAction, AuditOutcome, ObjectKind};
use crate::storage::database::ItemEdit;
use model::ItemKey;
use model::item::MetadataEdits;

/// The routes of changes. `ingest` serves the other methods of an item's address.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/ingest/v1/{media_type}/{id}", get(load).patch(change))
        .route("/ingest/v1/{media_type}/{id}/changes", get(list_changes))
}

/// `GET /ingest/v1/{mediaType}/{id}`: the stored document, in any status.
async fn load(State(app): State<AppState>, caller: ApiCaller, segments: UploadPath) -> ApiResult {
    let key = provider_key(&caller, segments)?;
    let found = app.shared.archive.uploads.editable(key.clone()).await?;
    let item = found.ok_or_else(|| no_item(&key))?;
    Ok(item_response(item))
}

/// `PATCH /ingest/v1/{mediaType}/{id}`: changes the version that `If-Match` names.
async fn change(
    State(app): State<AppState>,
    caller: ApiCaller,
    segments: UploadPath,
    request: Request,
) -> ApiResult {
    let (key, _permit) = authorize_provider(&app, &caller, AuditAction::ItemChanged, segments)?;
    let expected = required_version(request.headers())?;
    let template = template_of(&app, &caller, request.uri()).await?;
    let patch = parse_patch(&request::json(request, EDIT_BYTES_MAX).await?)?;
    let change = ItemChange { expected, template, patch };
    let outcome = app.shared.archive.uploads.edit(key.clone(), change, clock::now()).await?;
    let outcome = outcome.map_err(|error| {
        let event = audit::event(AuditAction::ItemChanged).with_object(ObjectKind::Item, &key);
        audit::record(event.with_outcome(AuditOutcome::Failed).with_detail(&error));
        upload_error(error, true)
    })?;
    match outcome {
        EditOutcome::Missing => Err(no_item(&key).into()),
        EditOutcome::Stale => Err(version_conflict("item").into()),
        EditOutcome::Saved(SavedItem { item, replaced_items }) => {
            // This node forgets the old version at once; other nodes follow the item log.
            app.shared.media.item_changed(&replaced_items);
            app.shared.media.item_changed(&[key]);
            Ok(item_response(item))
        }
    }
}

/// `GET /ingest/v1/{mediaType}/{id}/changes`: the latest changes, newest first.
async fn list_changes(
    State(app): State<AppState>,
    caller: ApiCaller,
    segments: UploadPath,
) -> ApiResult {
    let key = provider_key(&caller, segments)?;
    let found = app.shared.archive.uploads.edits(key.clone()).await?;
    let edits = found.ok_or_else(|| no_item(&key))?;
    api::json(&edits.iter().map(edit_json).collect::<Vec<_>>())
}

/// Returns the item of the path, for a caller that is a provider.
fn provider_key(caller: &ApiCaller, segments: UploadPath) -> Result<ItemKey> {
    let key = parse_item_key(segments);
    // The refusal comes first: a caller that may not write learns nothing about the item.
    require_provider(caller)?;
    key
}

fn no_item(key: &ItemKey) -> Error {
    Error::new(ErrorKind::NotFound, format!("no item {key}"))
}

/// Returns the error for a change that is based on an outdated version of `what`.
pub(super) fn version_conflict(what: &str) -> Error {
    let message = format!("the {what} has changed since the version that If-Match names");
    Error::new(ErrorKind::Stale, message).with_code("version_conflict")
}

fn item_response(item: EditableItem) -> Response {
    with_tag(api::json_text(Bytes::from(item.document)), &item.tag)
}

/// Adds an entity tag to a response.
pub(super) fn with_tag(mut response: Response, tag: &str) -> Response {
    // Tags are hashes, which are always valid in an entity tag.
    if let Some(tag) = ETag::new(tag) {
        response.headers_mut().insert(header::ETAG, tag.print());
    }
    response
}

/// Reads `If-Match`. Without the header, or with `*`, any version is accepted.
pub(super) fn expected_version(headers: &HeaderMap) -> ExpectedVersion {
    let lines: Vec<&[u8]> =
        headers.get_all(header::IF_MATCH).iter().map(|line| line.as_bytes()).collect();
    let is_any = lines.iter().any(|line| line.trim_ascii() == b"*");
    if is_any || !headers.contains_key(header::IF_MATCH) {
        return ExpectedVersion::Any;
    }
    // `If-Match` compares strongly, so a weak tag never matches (RFC 9110 §13.1.1).
    let tags = lines.into_iter().flat_map(conditional::tags).filter(|tag| !tag.weak);
    let tags = tags.map(|tag| String::from_utf8_lossy(tag.opaque).into_owned());
    ExpectedVersion::OneOf(tags.collect())
}

/// Reads `If-Match`, which is required: a change to a version that the caller has not read could undo a concurrent
/// change.
fn required_version(headers: &HeaderMap) -> Result<ExpectedVersion> {
    if headers.contains_key(header::IF_MATCH) {
        return Ok(expected_version(headers));
    }
    let message = "If-Match is missing: send the ETag of the version that was read, or * for any";
    Err(Error::invalid("headers", "If-Match", "required", message))
}

/// Loads the changes of the template that the query names; no changes if it names none.
pub(super) async fn template_of(
    app: &AppState,
    caller: &ApiCaller,
    uri: &Uri,
) -> Result<MetadataEdits> {
    let id = QueryParameters::from_uri(uri)?.integer("template", 1..=i64::MAX)?;
    let Some(id) = id else { return Ok(MetadataEdits::default()) };
    let organization = caller.0.user().organization;
    let found = app.shared.archive.uploads.template(organization, id).await?;
    match found {
        Some(template) => Ok(template.fields),
        None => Err(Error::new(ErrorKind::NotFound, format!("no template {id}"))),
    }
}

/// Reads a body as a merge patch of a document.
pub(super) fn parse_patch(body: &Value) -> Result<Map<String, Value>> {
    match body {
        Value::Object(patch) => Ok(patch.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Error::invalid("body", "", "type", "the body is not an object"))
        }
    }
}

fn edit_json(edit: &ItemEdit) -> Value {
    let mut listed = json!({
        "changed": edit.changed.to_string(),
        "version": edit.version,
        "changes": edit.changes.iter().map(|change| {
            let mut listed = json!({ "property": change.property });
            for (name, value) in [("old", &change.old), ("new", &change.new)] {
                if let Some(value) = value {
                    listed[name] = json!(value);
                }
            }
            listed
        }).collect::<Vec<_>>(),
    });
    if let Some(user) = &edit.user_name {
        listed["user"] = json!(user);
    }
    listed
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(lines: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::IF_MATCH, HeaderValue::from_static(line));
        }
        headers
    }

    #[test]
    fn a_change_names_the_versions_that_it_may_be_based_on() {
        let check = |lines: &[&'static str], expected: &[&str]| {
            let tags = expected.iter().map(|tag| (*tag).to_owned()).collect();
            assert_eq!(
                expected_version(&headers(lines)),
                ExpectedVersion::OneOf(tags),
                "{lines:?}"
            );
        };
        check(&["\"a\""], &["a"]);
        check(&["\"a\", W/\"b\"", "\"c\""], &["a", "c"]);
        check(&["W/\"a\""], &[]);
        for any in [&[][..], &["*"], &["\"a\"", " * "]] {
            assert_eq!(expected_version(&headers(any)), ExpectedVersion::Any, "{any:?}");
        }
        let error = required_version(&HeaderMap::new()).expect_err("refused");
        assert_eq!(error.details()[0].error_code, "required.openapi.requestValidation");
        assert!(!ExpectedVersion::OneOf(vec!["a".to_owned()]).includes("b"));
    }
}
