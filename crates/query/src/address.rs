//! Recognizes URLs and ids of items that people paste into a query.

use model::{ItemId, ItemIdError, ItemKey, MediaType, token};

/// The path segment before `<mediaType>/<id>` in a URL: `media` in the media interface, `item` on the customer web
/// site.
const PARENTS: [&str; 2] = ["media", "item"];

/// Returns whether a text begins like an absolute URL.
pub(super) fn is_absolute(text: &[char]) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        let begins = text.iter().zip(scheme.chars()).all(|(c, s)| c.eq_ignore_ascii_case(&s));
        begins && text.len() > scheme.len()
    })
}

/// Finds the item that a URL names, on any host.
///
/// The URL may name a part of the item: a rendition, a document, a crop, the licences, a picture below a text.
/// Query, fragment and trailing punctuation of a sentence are ignored.
pub fn find_item(address: &str) -> Option<ItemKey> {
    let (scheme, rest) = address.trim().split_once("://")?;
    if !["http", "https"].iter().any(|allowed| scheme.eq_ignore_ascii_case(allowed)) {
        return None;
    }
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    // The first segment is the host.
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    // The last match counts: a host may serve several archives below different paths.
    segments.windows(3).rev().find_map(|parts| {
        let media_type: MediaType =
            parts[1].parse().ok().filter(|_| PARENTS.contains(&parts[0]))?;
        Some(ItemKey::new(media_type, find_id(parts[2])?))
    })
}

/// Finds the id at the start of a file name by removing extension, suffixes and operations one by one.
fn find_id(name: &str) -> Option<ItemId> {
    let mut stem = name.split('.').next()?.trim_end_matches(|c: char| !is_of_id(c));
    loop {
        match ItemId::parse(stem) {
            Ok(id) => return Some(id),
            Err(ItemIdError::EndsInSuffix { .. } | ItemIdError::HasOperation { .. }) => {
                stem = token::strip_last(stem)?;
            }
            Err(_) => return None,
        }
    }
}

fn is_of_id(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Returns the id that a pasted word could be. A word without digits, `-` and `_` is never treated as an id; such
/// an id is found by its URL and by `id:`.
pub(super) fn pasted_id(text: &str) -> Option<ItemId> {
    let is_marked = text.contains(|c: char| c.is_ascii_digit() || c == '-' || c == '_');
    is_marked.then(|| ItemId::parse(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, expected: Option<&str>) {
        let found = find_item(address).map(|key| key.to_string());
        assert_eq!(found.as_deref(), expected, "{address}");
    }

    #[test]
    fn ok_an_address_names_its_item_whatever_of_it_is_shown() {
        for end in [
            "",
            ".json",
            ".jpg?ak=key",
            "_NormalPreview.jpg",
            "_watermarkThumbnail.webp#top",
            "-crop_w10_h20_x1_y2",
            "-crop_w10_h20-watermark_NormalHires.jpg",
            "-crop_w10_h20_NormalPreview-watermark.jpg",
            "-fit_w640.avif",
            "-preset_card_NormalPreview.auto",
            "-crop_w10_h20-fill_w640_h360-watermark_NormalPreview.webp",
            ".renditions.json",
            ".metadata.json",
            ".ninjs.json",
            "/pricelist",
            "/",
            ".",
            ",",
            "?page=2",
        ] {
            check(&format!("https://a.b:80/media/image/sdl_1-R{end}"), Some("image/sdl_1-R"));
        }
        check("HTTP://a/item/text/x-1", Some("text/x-1"));
        check("http://a/item/image/x-fit_w2", Some("image/x"));
        check("http://a/base/media/text/x/a001_NormalPreview.jpg", Some("text/x"));
        check("http://a/media-cutpaste/media/text/t-cutpaste.txt", Some("text/t"));
    }

    #[test]
    fn ok_other_addresses_name_none() {
        for address in [
            "http://a",
            "http://a/",
            "http://media/image/x",
            "http://a/media/image",
            "http://a/media/image/",
            "http://a/media/picture/x",
            "http://a/news/image/x",
            "http://a/?/media/image/x",
            "ftp://a/media/image/x",
            "/media/image/x",
            "image/x",
            "http://a/media/image/å",
        ] {
            check(address, None);
        }
    }

    #[test]
    fn ok_a_word_with_a_digit_or_a_hyphen_may_be_an_id() {
        for text in ["sdltd8f4d87", "sdlv_113kUboR0", "t-assoc", "250924-ko-ae80", "2026"] {
            assert_eq!(pasted_id(text).map(|id| id.to_string()).as_deref(), Some(text));
        }
        for text in ["storm", "Åsa-1", "-a", "a.1", "a/1", "x_NormalPreview", ""] {
            assert_eq!(pasted_id(text), None, "{text}");
        }
    }
}
