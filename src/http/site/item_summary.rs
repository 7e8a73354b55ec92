//! Summarizes news items for lists, from the JSON of an API.

use serde::Serialize;
use serde_json::Value;

use super::api_client::text;
use super::highlight::{MarkedPart, QueryWords};
use super::source_types::{self, AiUse};
use model::{ItemKey, RenditionName, shorten};
use query::TextField;

/// Maximum length of a teaser in a list, in characters.
const TEASER_CHARS: usize = 220;

/// A picture of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ItemPicture {
    pub(super) url: String,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// The properties of an item that lists show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ItemSummary {
    pub(super) key: String,
    pub(super) media_type: &'static str,
    pub(super) uri: String,
    pub(super) page_url: String,
    /// The HTML id of the item on a search page.
    pub(super) anchor: String,
    pub(super) headline: String,
    pub(super) teaser: String,
    pub(super) byline: String,
    pub(super) source: String,
    pub(super) copyright: String,
    pub(super) language: String,
    /// A timestamp of the API. For a planned item, the time of the event.
    pub(super) date: String,
    pub(super) thumbnail: Option<ItemPicture>,
    pub(super) preview: Option<ItemPicture>,
    /// The JPEGs of the pictures, as the value of `srcset`.
    pub(super) srcset: String,
    pub(super) is_video: bool,
    /// The headline, in which the words of a search are marked; empty if no word matches.
    pub(super) headline_parts: Vec<MarkedPart>,
    /// The same for the teaser.
    pub(super) teaser_parts: Vec<MarkedPart>,
    /// The use of generative AI in the picture, if the document states it.
    pub(super) ai: Option<AiUse>,
}

impl ItemSummary {
    /// Summarizes the item of `document`, which an API served; `None` if its `uri` is not the URI of an item.
    pub(super) fn from_document(document: &Value) -> Option<Self> {
        Self::with_base(document, media_base(document))
    }

    /// Summarizes `document`, which may also be an object embedded in a document. Includes only pictures whose
    /// URLs are below `base`.
    pub(super) fn with_base(document: &Value, base: &str) -> Option<Self> {
        let uri = document["uri"].as_str()?;
        let key = key_of(uri)?;
        // A picture outside the base is left out, because the content security policy would block it.
        let [thumbnail, web_preview, preview] = [
            RenditionName::NORMAL_THUMBNAIL,
            RenditionName::WEB_PREVIEW,
            RenditionName::NORMAL_PREVIEW,
        ]
        .map(|name| rendition(document, name)?.shown(&key, base));
        Some(Self {
            media_type: key.media_type.as_str(),
            page_url: format!("/item/{key}"),
            anchor: anchor(&key),
            key: key.to_string(),
            uri: uri.to_owned(),
            headline: text(document, "headline").to_owned(),
            teaser: teaser(either(document, "description_text", "body_text")),
            byline: text(document, "byline").to_owned(),
            source: text(document, "source").to_owned(),
            copyright: text(document, "copyrightnotice").to_owned(),
            language: text(document, "language").to_owned(),
            date: either(document, "datetime", "versioncreated").to_owned(),
            srcset: srcset([&thumbnail, &web_preview, &preview]),
            thumbnail,
            preview,
            is_video: document["type"] == "video",
            headline_parts: Vec::new(),
            teaser_parts: Vec::new(),
            ai: source_types::stated_in(document).and_then(AiUse::from_code),
        })
    }

    /// Marks the words of headline and teaser that match a search.
    pub(super) fn mark(&mut self, words: &QueryWords) {
        self.headline_parts = words.mark(&self.headline, TextField::Headline, &self.language);
        self.teaser_parts = words.mark(&self.teaser, TextField::Description, &self.language);
    }

    /// Summarizes the items of `documents`.
    pub(super) fn from_documents(documents: &[Value]) -> Vec<Self> {
        documents.iter().filter_map(Self::from_document).collect()
    }

    /// Summarizes the items of a response's `hits`.
    pub(super) fn list(documents: &Value) -> Vec<Self> {
        documents.as_array().map(|hits| Self::from_documents(hits)).unwrap_or_default()
    }
}

/// Returns the text of the property `first`; the text of `second` if it is empty.
fn either<'a>(document: &'a Value, first: &str, second: &str) -> &'a str {
    let found = text(document, first);
    if found.is_empty() { text(document, second) } else { found }
}

/// Returns the HTML id of an item on a search page.
pub(super) fn anchor(key: &ItemKey) -> String {
    format!("{}-{}", key.media_type.as_str(), key.id)
}

/// Parses the item key from a URI of this service, which may have an editorial crop.
pub(super) fn key_of(uri: &str) -> Option<ItemKey> {
    ItemKey::from_uri(uri).ok()
}

/// Finds the JPEG rendition `name`.
pub(super) fn rendition(document: &Value, name: RenditionName) -> Option<ItemPicture> {
    let mut renditions = document["renditions"].as_object()?.values();
    // The Preview of a video is an MP4 with the same variant and usage.
    let found = renditions.find(|rendition| {
        rendition["usage"] == name.usage.as_str()
            && rendition["variant"] == name.variant.as_str()
            && rendition["mimetype"] == "image/jpeg"
    })?;
    Some(ItemPicture {
        url: found["href"].as_str()?.to_owned(),
        width: u32::try_from(found["width"].as_u64()?).ok()?,
        height: u32::try_from(found["height"].as_u64()?).ok()?,
    })
}

/// Builds the value of `srcset`, the smallest picture first. A small original has several renditions of the same
/// width, of which only the first is listed.
fn srcset(pictures: [&Option<ItemPicture>; 3]) -> String {
    let mut listed: Vec<&ItemPicture> = pictures.into_iter().flatten().collect();
    // The sort is stable, so of equal widths the smaller rendition comes first and is kept.
    listed.sort_by_key(|picture| picture.width);
    listed.dedup_by_key(|picture| picture.width);
    let listed = listed.iter().map(|picture| format!("{} {}w", picture.url, picture.width));
    listed.collect::<Vec<_>>().join(", ")
}

impl ItemPicture {
    /// Returns the class of `site.css` for the picture's aspect ratio, in thirtieths.
    pub(super) fn shape(&self) -> String {
        // Within the range of the style sheet's classes.
        format!("r{}", self.thirtieths().clamp(15, 75))
    }

    /// Returns the aspect ratio, rounded to the nearest thirtieth.
    pub(super) fn thirtieths(&self) -> u64 {
        let width = u64::from(self.width);
        let height = u64::from(self.height.max(1));
        (60 * width + height) / (2 * height)
    }

    /// Returns the picture with the URL for use in a page; `None` if its URL is not below `base`. Pictures that
    /// are not open come from the site's host, to which the browser sends the session cookie.
    fn shown(mut self, key: &ItemKey, base: &str) -> Option<Self> {
        let own = own_address(&self.url, base)?;
        // Photographs keep their public URL, which a CDN may serve.
        if !model::item::has_picture(key.media_type) {
            self.url = own.to_owned();
        }
        Some(self)
    }
}

/// Returns the base of media URLs, `{media_url}`, from the document's `uri`, which every API writes.
pub(super) fn media_base(document: &Value) -> &str {
    let uri = document["uri"].as_str().unwrap_or_default();
    uri.split_once("/media/").map_or("", |(base, _)| base)
}

/// Returns the path of a file on the site's host; `None` if `href` is not below `base`.
pub(super) fn own_address<'a>(href: &'a str, base: &str) -> Option<&'a str> {
    // An empty base would match every URL.
    href.strip_prefix(base).filter(|path| !base.is_empty() && path.starts_with("/media/"))
}

/// Shortens a text to the teaser of a list.
fn teaser(text: &str) -> String {
    // Line breaks of a body text would use up the length.
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(&line, TEASER_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_is_shown_by_its_small_pictures() {
        let rendition = |usage: &str, variant: &str, href: &str| {
            json!({ "usage": usage, "variant": variant, "mimetype": "image/jpeg",
                    "href": href, "width": 3, "height": 2 })
        };
        let mut document = json!({
            "uri": "https://cdn.example/media/image/a_b", "headline": "H",
            "body_text": format!("one\n\ntwo {}", "x".repeat(300)),
            "trustindicator": [{ "title": "Checked" }, {
                "scheme": "http://cv.iptc.org/newscodes/digitalsourcetype/",
                "code": "compositeWithTrainedAlgorithmicMedia",
            }],
            "renditions": {
                "r00": rendition("Hires", "Normal", "https://cdn.example/media/image/a_b.jpg"),
                "r02": rendition("Preview", "Watermark", "https://cdn.example/w"),
                "r03": rendition("Preview", "Normal", "https://cdn.example/media/p"),
                "r04": rendition("Thumbnail", "Normal", "https://other.example/media/t"),
                "r05": rendition("Preview", "Web", "https://cdn.example/media/s"),
            },
        });
        let hit = ItemSummary::from_document(&document).unwrap();
        assert_eq!((hit.key.as_str(), hit.page_url.as_str()), ("image/a_b", "/item/image/a_b"));
        assert_eq!(hit.preview.unwrap().url, "https://cdn.example/media/p");
        assert_eq!((hit.thumbnail, hit.ai), (None, Some(AiUse::Edited)));
        assert_eq!(hit.srcset, "https://cdn.example/media/s 3w");
        assert!(hit.teaser.starts_with("one two xxx") && hit.teaser.ends_with("x…"));
        document["uri"] = json!("https://cdn.example/media/graphic/g");
        assert_eq!(
            ItemSummary::from_document(&document).unwrap().preview.unwrap().url,
            "/media/p"
        );
        document["uri"] = json!("urn:other");
        assert_eq!(ItemSummary::from_document(&document), None);
    }
}
