//! `/desk/upload`: the page on which editors drop files. A script sends them in parts, and the page lists them
//! until they are published.

use api::Endpoint;
use api::uploads::{DiscardUpload, ListUploads, PreviewUpload};
use axum::extract::Path;
use minijinja::{context, value::Serde};

use super::{EditorForm, EditorRequest, PageResult};
use crate::http::form::see_other;
use crate::runtime::limits::{SITE_PUBLISH_ITEMS_MAX, UPLOAD_REQUESTS_PER_USER_MAX};
use model::ItemKey;

/// The extensions of files that can be uploaded, for the browser's file dialogue.
const ACCEPTED: &str = ".jpg,.jpeg,.pdf,.eps,.mp4";

/// `GET /desk/upload`: shows the area for dropping files, and the editor's uploads.
pub(super) async fn show(editor: EditorRequest) -> PageResult {
    let rows = editor.ask(&ListUploads {}).await?;
    let has_complete = rows.iter().any(|upload| upload.length == upload.received);
    // The URL contains the keys of items that were just published.
    let published = editor.query.all("published")?.into_iter();
    let published =
        published.filter_map(|key| ItemKey::parse(key).ok()).map(|key| key.to_string());
    let context = context! {
        rows => Serde(rows),
        has_complete,
        published => published.take(SITE_PUBLISH_ITEMS_MAX).collect::<Vec<_>>(),
        endpoint => ListUploads::PATH,
        accepted => ACCEPTED,
        file_bytes_max => editor.app.shared.archive.uploads.pending().limits().file_bytes_max,
        parallel => (UPLOAD_REQUESTS_PER_USER_MAX / 2).max(1),
        publish_max => SITE_PUBLISH_ITEMS_MAX,
    };
    editor.page("desk/upload.html", context)
}

/// `GET /desk/uploads/{id}/preview`: returns the picture of an upload, for the form that describes it.
pub(super) async fn preview(Path(id): Path<String>, editor: EditorRequest) -> PageResult {
    Ok(editor.load_file(&PreviewUpload { id }).await?)
}

/// `POST /desk/uploads/{id}/discard`: removes an upload.
pub(super) async fn discard(Path(id): Path<String>, posted: EditorForm) -> PageResult {
    posted.ask(&DiscardUpload { id }).await?;
    Ok(see_other("/desk/upload?done=discarded"))
}
