//! `/desk/upload`: the page on which editors drop files. A script sends them in parts, and the page lists them
//! until they are published.

use axum::extract::Path;
use minijinja::context;
use serde::Serialize;
use serde_json::Value;

use super::{EditorForm, EditorRequest, PageResult, template_value};
use crate::http::form::see_other;
use crate::http::site::api_client::{ApiCall, call_file, encode_segment, text};
use crate::runtime::limits::{SITE_PUBLISH_ITEMS_MAX, UPLOAD_REQUESTS_PER_USER_MAX};
use model::ItemKey;

/// The API path of uploads.
pub(super) const UPLOADS: &str = "/ingest/v1/uploads";
/// The extensions of files that can be uploaded, for the browser's file dialogue.
const ACCEPTED: &str = ".jpg,.jpeg,.pdf,.eps,.mp4";

/// Returns the API path of an upload.
pub(super) fn address(id: &str) -> String {
    format!("{UPLOADS}/{}", encode_segment(id))
}

/// An upload in the list.
#[derive(Serialize)]
struct UploadRow {
    id: String,
    name: String,
    fingerprint: String,
    length: u64,
    received: u64,
    is_complete: bool,
    expires: String,
}

impl UploadRow {
    fn from_json(upload: &Value) -> Self {
        let length = upload["length"].as_u64().unwrap_or_default();
        let received = upload["received"].as_u64().unwrap_or_default();
        Self {
            id: text(upload, "id").to_owned(),
            name: text(upload, "fileName").to_owned(),
            fingerprint: text(upload, "fingerprint").to_owned(),
            length,
            received,
            is_complete: length == received,
            expires: text(upload, "expires").to_owned(),
        }
    }
}

/// `GET /desk/upload`: shows the area for dropping files, and the editor's uploads.
pub(super) async fn show(editor: EditorRequest) -> PageResult {
    let uploads = editor.get(UPLOADS).await?;
    let rows = uploads.as_array().into_iter().flatten().map(UploadRow::from_json);
    // The URL contains the keys of items that were just published.
    let published = editor.query.all("published")?.into_iter();
    let published =
        published.filter_map(|key| ItemKey::parse(key).ok()).map(|key| key.to_string());
    let context = context! {
        rows => template_value(rows.collect::<Vec<_>>()),
        published => published.take(SITE_PUBLISH_ITEMS_MAX).collect::<Vec<_>>(),
        endpoint => UPLOADS,
        accepted => ACCEPTED,
        file_bytes_max => editor.app.shared.archive.uploads.pending().limits().file_bytes_max,
        parallel => (UPLOAD_REQUESTS_PER_USER_MAX / 2).max(1),
        publish_max => SITE_PUBLISH_ITEMS_MAX,
    };
    editor.page("desk/upload.html", context)
}

/// `GET /desk/uploads/{id}/preview`: returns the picture of an upload, for the form that describes it.
pub(super) async fn preview(Path(id): Path<String>, editor: EditorRequest) -> PageResult {
    let call = ApiCall::get(format!("{}/preview", address(&id)));
    let visitor = Some(&editor.visitor);
    Ok(call_file(&editor.app, &editor.apis, visitor, &call).await?)
}

/// `POST /desk/uploads/{id}/discard`: removes an upload.
pub(super) async fn discard(Path(id): Path<String>, posted: EditorForm) -> PageResult {
    posted.call(&ApiCall::delete(address(&id))).await?;
    Ok(see_other("/desk/upload?done=discarded"))
}
