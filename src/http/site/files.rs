//! The files on an item's page. Each file has a link that opens it, a form that buys it, or the reason why the
//! visitor can do neither.

use serde::Serialize;
use serde_json::Value;

use super::api_client::text;
use super::download_panel::DownloadPanel;
use super::item_summary::{media_base, own_address, rendition};
use crate::media::access;
use crate::runtime::error::{Error, Result};
use model::item::has_picture;
use model::media_url::{MediaPath, MediaTarget, RenditionExtension};
use model::{ItemKey, MediaType, RenditionName};

/// The visitor's right to download the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DownloadRights {
    /// The visitor must log in first.
    Login,
    /// An agreement allows the download.
    Buy,
    /// An agreement allows the download once an order is approved.
    Approval,
    /// No agreement covers the item.
    None,
}

impl DownloadRights {
    /// Derives the right from the download panel. Without a panel there is nothing to buy.
    pub(super) fn new(is_known: bool, panel: Option<&DownloadPanel>) -> Self {
        match panel {
            // Anonymous visitors have a panel too, so the login is checked first.
            _ if !is_known => Self::Login,
            Some(panel) if panel.delivers => Self::Buy,
            Some(panel) if panel.action.is_some() => Self::Approval,
            Some(_) | None => Self::None,
        }
    }
}

/// A file of the item.
#[derive(Debug, Serialize)]
pub(super) struct FileRow {
    usage: String,
    variant: String,
    /// File format, unless it is a JPEG: ` PDF`.
    kind: String,
    href: String,
    /// URL that opens in the visitor's browser. It is on the site's host if the file needs the session cookie.
    url: Option<String>,
    /// Value that names this file in the download form.
    file: String,
    /// The visitor's right to download a file that does not open directly.
    rights: DownloadRights,
    /// True if the file opens without credentials.
    is_open: bool,
    width: u64,
    height: u64,
    bytes: Option<u64>,
}

/// Lists the files in the document.
pub(super) fn rows(key: &ItemKey, document: &Value, rights: DownloadRights) -> Vec<FileRow> {
    let renditions = document["renditions"].as_object().into_iter().flatten();
    renditions.filter_map(|(_, entry)| row(key, entry, media_base(document), rights)).collect()
}

fn row(key: &ItemKey, entry: &Value, base: &str, rights: DownloadRights) -> Option<FileRow> {
    let href = text(entry, "href");
    // The page instructs visitors to add their API key to these URLs, so they must not lead to a different host.
    let own = own_address(href, base)?;
    let file = own.strip_prefix("/media/")?;
    let path = MediaPath::parse(file).ok()?;
    let kind = match text(entry, "mimetype") {
        "image/jpeg" => String::new(),
        // Visitors know the extension, not the MIME type.
        "application/postscript" => " EPS".to_owned(),
        other => format!(" {}", other.rsplit('/').next().unwrap_or_default().to_uppercase()),
    };
    let is_open = access::is_open(&path);
    let url = if is_open {
        // An open file keeps its public URL, under which caches may store it.
        Some(href.to_owned())
    } else if access::needs_purchase(&path) {
        // A link must not buy anything, so this file is downloaded with a form and its CSRF token.
        None
    } else {
        Some(own.to_owned())
    };
    // The URL must belong to this document's item.
    (path.key() == key).then(|| FileRow {
        usage: text(entry, "usage").to_owned(),
        variant: text(entry, "variant").to_owned(),
        kind,
        href: href.to_owned(),
        url,
        file: file.to_owned(),
        rights,
        is_open,
        width: entry["width"].as_u64().unwrap_or(0),
        height: entry["height"].as_u64().unwrap_or(0),
        bytes: entry["sizeinbytes"].as_u64(),
    })
}

/// Parses the file name in a form. Fails unless it is a file of the item `key`, with an extension that determines
/// its format.
pub(super) fn parse(file: &str, key: &ItemKey) -> Result<MediaPath> {
    let path = MediaPath::parse(file).map_err(|_| invalid_file())?;
    match path.target() {
        // A manipulated form must not buy a different item under the agreement shown for this one.
        MediaTarget::Rendition(file)
            if path.key() == key && file.extension != RenditionExtension::Auto =>
        {
            Ok(path)
        }
        MediaTarget::Rendition(_)
        | MediaTarget::Document(_)
        | MediaTarget::Item(_)
        | MediaTarget::Pricelist => Err(invalid_file()),
    }
}

fn invalid_file() -> Error {
    Error::invalid("body", "file", "format", "file is not a file of this item")
}

/// Returns whether the item can be downloaded. Texts are generated from the document; other items need a file. Planned
/// events and pages cannot be downloaded.
pub(super) fn has_any(key: &ItemKey, document: &Value) -> bool {
    match key.media_type {
        MediaType::Image | MediaType::Stockfoto => {
            // The form downloads the Hires, so other renditions do not count.
            rendition(document, RenditionName::NORMAL_HIRES).is_some()
        }
        MediaType::Video | MediaType::Graphic => {
            !rows(key, document, DownloadRights::None).is_empty()
        }
        MediaType::Text | MediaType::Feature => true,
        MediaType::Page | MediaType::Planning | MediaType::Calendar => false,
    }
}

/// Returns the base of the document's URLs: the public URL `uri` for items with a picture, else a path on the
/// site's host, to which browsers send the session cookie.
pub(super) fn document_base(key: &ItemKey, uri: &str) -> String {
    if has_picture(key.media_type) { uri.to_owned() } else { format!("/media/{key}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(key: &str) -> Value {
        let base = format!("https://cdn.example/media/{key}");
        let file = |end: &str, usage: &str, kind: &str| json!({ "href": format!("{base}{end}"), "variant": "Normal", "usage": usage, "mimetype": kind });
        json!({ "uri": base, "renditions": {
            "r00": file(".pdf", "Hires", "application/pdf"),
            "r01": file("_NormalPreview.jpg", "Preview", "image/jpeg"),
            "r02": { "href": "https://other.example/media/x", "usage": "Preview" },
        } })
    }

    #[test]
    fn a_file_opens_or_says_what_it_takes() {
        let check = |key: &str, expected: [(Option<&str>, bool); 2]| {
            let rows = rows(&key.parse().unwrap(), &document(key), DownloadRights::Buy);
            let found: Vec<_> = rows.iter().map(|row| (row.url.as_deref(), row.is_open)).collect();
            assert_eq!(found, expected, "{key}");
        };
        let preview = "/media/graphic/g_NormalPreview.jpg";
        check("graphic/g", [(None, false), (Some(preview), false)]);
        let open = "https://cdn.example/media/image/i_NormalPreview.jpg";
        check("image/i", [(None, false), (Some(open), true)]);
    }

    #[test]
    fn a_form_names_files_of_its_own_item_alone() {
        let key: ItemKey = "graphic/g".parse().unwrap();
        assert_eq!(parse("graphic/g.pdf", &key).unwrap().to_string(), "graphic/g.pdf");
        let sized = "graphic/g-fit_w800_NormalHires.webp";
        assert_eq!(parse(sized, &key).unwrap().to_string(), sized);
        for file in
            ["graphic/h.pdf", "graphic/g.zip", "graphic/g", "graphic/g-fit_w8.auto", "x", ""]
        {
            assert!(parse(file, &key).is_err(), "{file}");
        }
    }

    #[test]
    fn an_item_without_its_file_has_nothing_to_download() {
        let key: ItemKey = "image/i".parse().unwrap();
        assert!(!has_any(&key, &json!({})));
        assert!(has_any(&"graphic/g".parse().unwrap(), &document("graphic/g")));
        assert!(has_any(&"text/t".parse().unwrap(), &json!({})));
    }
}
