//! Caption lists: the captions, credits and restrictions of selected items, as text or as CSV for spreadsheets.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode},
    response::Response,
};
use minijinja::{context, value::Serde};
use serde::Serialize;
use serde_json::Value;

use super::{MemberForm, PageResult, SelectionForm, file_stem};
use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::{disposition, respond};
use crate::http::site::api_client;
use crate::http::site::api_client::ApiRefusal;
use crate::http::site::credit::credit_line;
use crate::http::site::csv::{csv_text, separator};
use crate::http::site::item::names;
use crate::http::site::language;
use model::ItemKey;
use model::item::MediaLinks;

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

/// An item of the list. If the visitor may not read the item, only its id and URI are set.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct CaptionEntry {
    /// Position in the selection, from 1.
    position: usize,
    id: String,
    uri: String,
    headline: String,
    caption: String,
    credit: String,
    byline: String,
    source: String,
    copyright: String,
    created: String,
    place: String,
    persons: String,
    ednote: String,
    usageterms: String,
    /// True if the visitor may read the item.
    readable: bool,
}

impl CaptionEntry {
    /// Returns the entry of the item with `document`.
    fn from_document(document: &Value) -> Self {
        let mut copyright = trimmed(document, "copyrightnotice");
        if copyright.is_empty() {
            copyright = trimmed(document, "copyrightholder");
        }
        Self {
            headline: trimmed(document, "headline"),
            caption: trimmed(document, "description_text"),
            credit: credit_line(document),
            byline: trimmed(document, "byline"),
            source: trimmed(document, "source"),
            copyright,
            created: trimmed(document, "versioncreated"),
            place: names(document, "place").join(", "),
            persons: names(document, "person").join(", "),
            ednote: trimmed(document, "ednote"),
            usageterms: trimmed(document, "usageterms"),
            readable: true,
            ..Self::default()
        }
    }

    /// Returns the cells, in the order of [`COLUMNS`].
    fn cells(&self) -> Vec<String> {
        // The columns are named after the fields, which are texts except for the position.
        let fields = serde_json::to_value(self).unwrap_or_default();
        let texts = COLUMNS.iter().map(|name| match fields[*name].as_str() {
            Some(text) => text.to_owned(),
            None => fields[*name].to_string(),
        });
        texts.collect()
    }
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
    for (position, key) in (1..).zip(&form.keys) {
        let entry = entry(posted, key).await?;
        let uri = posted.app.shared.media.links().item(key);
        entries.push(CaptionEntry { position, id: key.id.to_string(), uri, ..entry });
    }
    Ok(entries)
}

async fn entry(posted: &MemberForm, key: &ItemKey) -> Result<CaptionEntry, ApiRefusal> {
    match posted.get(format!("/media/{key}.json")).await {
        Ok(document) => Ok(CaptionEntry::from_document(&document)),
        // The list contains the item nevertheless, so that the visitor sees that it is missing.
        Err(refusal) if refusal.is_mistake() => Ok(CaptionEntry::default()),
        Err(refusal) => Err(refusal),
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
    let rows = rows.iter().map(CaptionEntry::cells);
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
        let entry = CaptionEntry::from_document(&document);
        assert_eq!(entry.caption, "A fire.\nSecond line.");
        assert_eq!((entry.credit.as_str(), entry.copyright.as_str()), ("Ann Ek / TT", "TT"));
        assert_eq!(
            (entry.place.as_str(), entry.ednote.as_str()),
            ("Bergen, Norway", "Not for web")
        );
        let cells = CaptionEntry { position: 3, id: "a".to_owned(), ..entry }.cells();
        assert_eq!(cells.len(), COLUMNS.len());
        assert_eq!((cells[0].as_str(), cells[1].as_str(), cells[2].as_str()), ("3", "a", "Fire"));
    }
}
