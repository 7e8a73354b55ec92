//! Caption lists: the captions, credits and restrictions of selected items, as text or as CSV for spreadsheets.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use minijinja::{context, value::Serde};
use serde_json::Value;

use super::{MemberForm, PageResult, SelectionForm, file_stem};
use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::{disposition, respond};
use crate::http::site::api_client::ApiRefusal;
use crate::http::site::credit::credit_line;
use crate::http::site::csv::{csv_text, separator};
use crate::http::site::item::names;
use crate::http::site::{api_client, language};
use model::ItemKey;

/// The columns of the list as CSV.
const COLUMNS: [&str; 14] = [
    "position",
    "id",
    "headline",
    "caption",
    "credit",
    "byline",
    "source",
    "copyright",
    "created",
    "place",
    "persons",
    "ednote",
    "usageterms",
    "uri",
];

/// The texts of an item by the names of [`COLUMNS`].
type CaptionEntry = BTreeMap<&'static str, String>;

/// Returns the texts in the document of an item, and the word `readable`; all are empty for `null`, the document
/// of an item that the visitor may not read.
fn document_texts(document: &Value) -> CaptionEntry {
    let mut copyright = trimmed(document, "copyrightnotice");
    if copyright.is_empty() {
        copyright = trimmed(document, "copyrightholder");
    }
    let readable = if document.is_null() { "" } else { "yes" };
    CaptionEntry::from([
        ("headline", trimmed(document, "headline")),
        ("caption", trimmed(document, "description_text")),
        ("credit", credit_line(document)),
        ("byline", trimmed(document, "byline")),
        ("source", trimmed(document, "source")),
        ("copyright", copyright),
        ("created", trimmed(document, "versioncreated")),
        ("place", names(document, "place").join(", ")),
        ("persons", names(document, "person").join(", ")),
        ("ednote", trimmed(document, "ednote")),
        ("usageterms", trimmed(document, "usageterms")),
        ("readable", readable.to_owned()),
    ])
}

/// Returns the cells of an entry, in the order of [`COLUMNS`].
fn cells(entry: &CaptionEntry) -> Vec<String> {
    COLUMNS.iter().map(|name| entry.get(name).cloned().unwrap_or_default()).collect()
}

fn trimmed(document: &Value, name: &str) -> String {
    api_client::text(document, name).trim().to_owned()
}

/// Loads the entries of the form's items, in the order of the form.
async fn entries(
    posted: &MemberForm,
    form: &SelectionForm,
) -> Result<Vec<CaptionEntry>, ApiRefusal> {
    let mut entries = Vec::with_capacity(form.keys.len());
    for (index, key) in form.keys.iter().enumerate() {
        let mut entry = document_texts(&load_document(posted, key).await?);
        entry.insert("position", (index + 1).to_string());
        entry.insert("id", key.id.to_string());
        entry.insert("uri", posted.app.shared.media.links().item(key));
        entries.push(entry);
    }
    Ok(entries)
}

/// Loads the document of an item; `null` if the visitor may not read it.
async fn load_document(posted: &MemberForm, key: &ItemKey) -> Result<Value, ApiRefusal> {
    match posted.get(format!("/media/{key}.json")).await {
        // The list contains the item nevertheless, so that the visitor sees that it is missing.
        Err(refusal) if refusal.is_mistake() => Ok(Value::Null),
        found => found,
    }
}

/// `POST /selection/captions.txt`: returns the list as text. With `part` it has only the captions, the credits or
/// the ids, which scripts copy to the clipboard.
pub(super) async fn text(posted: MemberForm) -> PageResult {
    let form = SelectionForm::read_items(&posted).await?;
    let entries = entries(&posted, &form).await?;
    let context = context! {
        entries => Serde(&entries),
        part => posted.form.find("part"),
    };
    let text = posted.app.shared.site.pages.render("captions.txt", context)?;
    let name = format!("{}.txt", file_stem(&posted, "captions"));
    Ok(file(text, "text/plain; charset=utf-8", &name))
}

/// `POST /selection/captions.csv`: returns the list as CSV for spreadsheets.
pub(super) async fn csv(posted: MemberForm) -> PageResult {
    let form = SelectionForm::read_items(&posted).await?;
    let rows = entries(&posted, &form).await?;
    let rows = rows.iter().map(cells);
    let text = csv_text(&COLUMNS, rows, separator(language::current_language()));
    let name = format!("{}.csv", file_stem(&posted, "captions"));
    Ok(file(text, "text/csv; charset=utf-8; header=present", &name))
}

/// Builds the response with a file that the browser saves as `name`.
fn file(text: String, kind: &'static str, name: &str) -> Response {
    let kind = HeaderValue::from_static(kind);
    let mut response = respond::typed(StatusCode::OK, kind, Body::from(text));
    let headers = response.headers_mut();
    CachePolicy::NoStore.set(headers);
    disposition::set_attachment(headers, name);
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_has_caption_credit_and_restrictions() {
        let document = json!({
            "headline": "Fire", "description_text": " A fire.\nSecond line. ", "byline": "Ann Ek",
            "source": "TT", "copyrightholder": "TT", "ednote": "Not for web",
            "place": [{ "name": "Bergen" }, { "code": "x" }, { "name": "Norway" }],
        });
        let mut entry = document_texts(&document);
        assert_eq!(entry["caption"], "A fire.\nSecond line.");
        assert_eq!([&entry["credit"], &entry["copyright"]], ["Ann Ek / TT", "TT"]);
        assert_eq!([&entry["place"], &entry["ednote"]], ["Bergen, Norway", "Not for web"]);
        entry.extend([("position", "3".to_owned()), ("id", "a".to_owned())]);
        let cells = cells(&entry);
        assert_eq!(cells.len(), COLUMNS.len());
        assert_eq!(cells[..3], ["3", "a", "Fire"]);
        assert!(COLUMNS.iter().all(|name| *name == "uri" || entry.contains_key(name)));
        assert_eq!(document_texts(&Value::Null)["readable"], "");
    }
}
