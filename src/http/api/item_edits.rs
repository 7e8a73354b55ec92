//! Changes of items by editors, over HTTP: the stored document with its entity tag, a merge patch of it, and the
//! list of its changes.

use api::Json;
use api::ingest::{ChangeItem, ItemEdit, ItemPropertyEdit, ListItemChanges, LoadStoredItem};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use bytes::Bytes;

use super::ingest::{authorize_provider, no_item, readable_key, upload_error};
use super::response::json_text;
use crate::access::auth::Principal;
use crate::archive::ingest::{EditOutcome, EditableItem, ExpectedVersion, ItemChange, SavedItem};
use crate::http::AppState;
use crate::http::api::binding::{ApiRequest, BoundEndpoints, ReadRequest};
use crate::http::protocol::conditional::{self, ETag};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit::{self, AuditAction, AuditOutcome, ObjectKind};
use crate::storage::database;
use model::item::MetadataEdits;

/// The endpoints of changes. `ingest` serves the other methods of an item's address.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind_response::<LoadStoredItem, _, _>(load)
        .bind_response::<ChangeItem, _, _>(change)
        .bind::<ListItemChanges, _, _>(list_changes)
}

/// Loads the stored document, in any status.
async fn load(request: ApiRequest<LoadStoredItem>) -> Result<Response> {
    let item = request.parameters().map(|parameters| parameters.item);
    let key = readable_key(&request.caller, item)?;
    let found = request.app.shared.archive.uploads.editable(key.clone()).await?;
    Ok(item_response(found.ok_or_else(|| no_item(&key))?))
}

/// Changes the version that `If-Match` names.
async fn change(request: ApiRequest<ChangeItem>) -> Result<Response> {
    let mut item = None;
    let template = request.checked_parameters(|read, _| {
        item = Some(read.item);
        Some(read.template)
    });
    // A wrong template does not hide the item from the audit event of a refused caller.
    let item = item.map_or_else(|| request.parameters().map(|parameters| parameters.item), Ok);
    let action = AuditAction::ItemChanged;
    let (key, _permit) = authorize_provider(&request.app, &request.caller, action, item)?;
    let expected = required_version(&request.parts.headers)?;
    let template = template_edits(&request.app, &request.caller, template?).await?;
    let ReadRequest { app, body: patch, .. } = request.read().await?;
    let change = ItemChange { expected, template, patch };
    let outcome = app.shared.archive.uploads.edit(key.clone(), change, clock::now()).await?;
    let outcome = outcome.map_err(|error| {
        let event = audit::event(action).with_object(ObjectKind::Item, &key);
        audit::record(event.with_outcome(AuditOutcome::Failed).with_detail(&error));
        upload_error(error, true)
    })?;
    match outcome {
        EditOutcome::Missing => Err(no_item(&key)),
        EditOutcome::Stale => Err(version_conflict("item")),
        EditOutcome::Saved(SavedItem { item, replaced_items }) => {
            // This node forgets the old version at once; other nodes follow the item log.
            app.shared.media.item_changed(&replaced_items);
            app.shared.media.item_changed(&[key]);
            Ok(item_response(item))
        }
    }
}

/// Lists the latest changes, newest first.
async fn list_changes(request: ApiRequest<ListItemChanges>) -> Result<Json<Vec<ItemEdit>>> {
    let item = request.parameters().map(|parameters| parameters.item);
    let key = readable_key(&request.caller, item)?;
    let found = request.app.shared.archive.uploads.edits(key.clone()).await?;
    let edits = found.ok_or_else(|| no_item(&key))?;
    Ok(Json(edits.into_iter().map(edit_view).collect()))
}

/// Returns the error for a change that is based on an outdated version of `what`.
pub(super) fn version_conflict(what: &str) -> Error {
    let message = format!("the {what} has changed since the version that If-Match names");
    Error::new(ErrorKind::Stale, message).with_code("version_conflict")
}

fn item_response(item: EditableItem) -> Response {
    with_tag(json_text(Bytes::from(item.document)), &item.tag)
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

/// Loads the changes of the template `id`; no changes without an id.
pub(super) async fn template_edits(
    app: &AppState,
    caller: &Principal,
    id: Option<i64>,
) -> Result<MetadataEdits> {
    let Some(id) = id else { return Ok(MetadataEdits::default()) };
    let organization = caller.user().organization;
    let found = app.shared.archive.uploads.template(organization, id).await?;
    match found {
        Some(template) => Ok(template.fields),
        None => Err(Error::new(ErrorKind::NotFound, format!("no template {id}"))),
    }
}

fn edit_view(edit: database::ItemEdit) -> ItemEdit {
    let database::ItemEdit { changed, version, changes, user_name } = edit;
    let changes = changes.into_iter().map(|change| ItemPropertyEdit {
        property: change.property,
        old: change.old,
        new: change.new,
    });
    ItemEdit { changed, version, changes: changes.collect(), user: user_name }
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
