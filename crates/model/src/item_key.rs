//! The identity of an item, as a key and in a URI.

use std::fmt;
use std::str::FromStr;

use serde_with::{DeserializeFromStr, SerializeDisplay};
use thiserror::Error;

use crate::crop::CropSpec;
use crate::item_id::{ItemId, ItemIdError};
use crate::media_type::{MediaType, UnknownMediaType};
use crate::operation_parameters::ParameterError;
use crate::token;

/// The identity of an item, `<mediaType>/<id>`.
///
/// The host of a URI is not part of the identity (contract items-1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(DeserializeFromStr, SerializeDisplay)]
pub struct ItemKey {
    pub media_type: MediaType,
    /// The id within the media type.
    pub id: ItemId,
}

impl ItemKey {
    /// Builds the identity of the item `id` of a media type.
    pub fn new(media_type: MediaType, id: ItemId) -> Self {
        Self { media_type, id }
    }

    /// Parses `<mediaType>/<id>`.
    ///
    /// Fails with [`ItemKeyError`].
    pub fn parse(text: &str) -> Result<Self, ItemKeyError> {
        let (media_type, id) = text.split_once('/').ok_or(ItemKeyError::NoSlash)?;
        Ok(Self::new(media_type.parse()?, ItemId::parse(id)?))
    }

    /// Parses the identity in a URI, with or without a crop.
    ///
    /// Fails like [`ItemUri::parse`].
    pub fn from_uri(uri: &str) -> Result<Self, ItemUriError> {
        ItemUri::parse(uri).map(|uri| uri.key)
    }
}

impl fmt::Display for ItemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.media_type, self.id)
    }
}

impl FromStr for ItemKey {
    type Err = ItemKeyError;

    fn from_str(text: &str) -> Result<Self, ItemKeyError> {
        Self::parse(text)
    }
}

/// The error for a text that is not an item identity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ItemKeyError {
    /// The text has no `/`.
    #[error("expected <mediaType>/<id>, found no /")]
    NoSlash,
    /// The part before the `/` is not a media type.
    #[error(transparent)]
    MediaType(#[from] UnknownMediaType),
    /// The part after the `/` is not an id.
    #[error(transparent)]
    Id(#[from] ItemIdError),
}

/// The parsed URI of an item, with the crop that the stored URI of an association may have.
///
/// Look-ups by URI accept any host and a crop such as `-crop_w2264_h1273_x522_y789` (contract items-1, items-12).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ItemUri {
    pub key: ItemKey,
    /// The crop, in pixels of the item's Hires image.
    pub crop: Option<CropSpec>,
}

impl ItemUri {
    /// The maximum length of a URI in bytes; longer URIs are refused unparsed.
    pub const BYTES_MAX: usize = 2048;

    /// Parses an absolute `http` or `https` URI whose path ends in `/media/<mediaType>/<id>`.
    ///
    /// Host, port, the path before `/media`, query and fragment are ignored. Nothing is percent-decoded, because
    /// an identity never needs encoding.
    ///
    /// Fails with [`ItemUriError`].
    pub fn parse(uri: &str) -> Result<Self, ItemUriError> {
        if uri.len() > Self::BYTES_MAX {
            return Err(ItemUriError::TooLong { bytes: uri.len() });
        }
        let path = path_of(uri)?;
        let mut segments = path.rsplit('/');
        let id = segments.next().ok_or(ItemUriError::NotMedia)?;
        let media_type = segments.next().ok_or(ItemUriError::NotMedia)?;
        // A fourth segment, even an empty one, proves that a slash precedes `media`.
        if segments.next() != Some("media") || segments.next().is_none() {
            return Err(ItemUriError::NotMedia);
        }
        let media_type: MediaType = media_type.parse()?;
        // A second crop stays in the id, where `ItemId::parse` refuses it.
        let (id, crop) = match token::split_crop(id) {
            Some((id, parameters)) => (id, Some(CropSpec::parse(parameters)?)),
            None => (id, None),
        };
        Ok(Self { key: ItemKey::new(media_type, ItemId::parse(id)?), crop })
    }
}

/// The error for a URI that does not name an item.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ItemUriError {
    /// The URI is longer than [`ItemUri::BYTES_MAX`].
    #[error("the uri has {bytes} bytes, at most {} are allowed", ItemUri::BYTES_MAX)]
    TooLong { bytes: usize },
    /// The URI contains whitespace, a control character or a backslash.
    #[error("the uri has the character {found:?}")]
    BadCharacter { found: char },
    /// The URI is not absolute, has a different scheme, or has no host.
    #[error("the uri does not begin with http:// or https:// and a host")]
    NotAbsolute,
    /// The path does not have the form of an item's path.
    #[error("the path of the uri does not end in /media/<mediaType>/<id>")]
    NotMedia,
    /// The segment after `/media/` is not a media type.
    #[error(transparent)]
    MediaType(#[from] UnknownMediaType),
    /// The last segment is not an id.
    #[error(transparent)]
    Id(#[from] ItemIdError),
    /// The crop on the id is malformed.
    #[error(transparent)]
    Crop(#[from] ParameterError),
}

/// Returns the path of an absolute URI without query and fragment; it is empty or begins with `/`.
fn path_of(uri: &str) -> Result<&str, ItemUriError> {
    // Browsers and libraries disagree about these characters: the host of `http://a\@b/` is a or b.
    let bad = uri.chars().find(|c| c.is_whitespace() || c.is_control() || *c == '\\');
    if let Some(found) = bad {
        return Err(ItemUriError::BadCharacter { found });
    }
    let (scheme, rest) = uri.split_once("://").ok_or(ItemUriError::NotAbsolute)?;
    if !["http", "https"].iter().any(|allowed| scheme.eq_ignore_ascii_case(allowed)) {
        return Err(ItemUriError::NotAbsolute);
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (rest, _query) = rest.split_at(end);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // Userinfo may contain colons, so it is removed before the search for the port.
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return Err(ItemUriError::NotAbsolute);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, expected: Result<(&str, &str), &str>) {
        let found = ItemUri::parse(uri);
        let text = found.as_ref().map(|uri| {
            let crop = uri.crop.map(|crop| crop.to_string()).unwrap_or_default();
            (uri.key.to_string(), crop)
        });
        match (text, expected) {
            (Ok((key, crop)), Ok(expected)) => {
                assert_eq!((key.as_str(), crop.as_str()), expected, "{uri}");
            }
            (Err(error), Err(message)) => {
                assert!(error.to_string().contains(message), "{uri}: {error}");
            }
            (found, _) => panic!("{uri}: {found:?}, expected {expected:?}"),
        }
        assert_eq!(ItemKey::from_uri(uri), found.map(|uri| uri.key));
    }

    #[test]
    fn ok_any_host_names_the_same_item() {
        let same = Ok(("image/sdlv_113kUboR0", ""));
        check("http://a/media/image/sdlv_113kUboR0", same);
        check("https://a.example.org:8443/media/image/sdlv_113kUboR0", same);
        check("HTTPS://[::1]:80/base/media/image/sdlv_113kUboR0", same);
        check("https://a.example.org/media/image/sdlv_113kUboR0?q=1#top", same);
        check("https://user@a.example.org/media/image/sdlv_113kUboR0", same);
        check("http://a/media/text/x/media/image/sdlv_113kUboR0", same);
    }

    #[test]
    fn ok_a_stored_crop_is_kept_beside_the_item() {
        check(
            "https://a.example.org/media/image/sdlr1tDM7WXjoU-crop_w2264_h1273_x522_y789",
            Ok(("image/sdlr1tDM7WXjoU", "-crop_w2264_h1273_x522_y789")),
        );
        check("http://a/media/image/a-crop-failure", Ok(("image/a-crop-failure", "")));
    }

    #[test]
    fn err_uris_that_are_not_absolute() {
        for uri in [
            "",
            "image/x",
            "/media/image/x",
            "//a/media/image/x",
            "ftp://a/media/image/x",
            "urn:media/image/x",
            "http:///media/image/x",
            "http://:80/media/image/x",
            "http://user@/media/image/x",
        ] {
            check(uri, Err("does not begin with http:// or https:// and a host"));
        }
    }

    #[test]
    fn err_another_path() {
        for uri in [
            "http://a",
            "http://a/",
            "http://media/image/x",
            "http://a/image/x",
            "http://a/media/image/x/",
            "http://a/media/image/x/pricelist",
            "http://a/Media/image/x",
            "http://a/xmedia/image/x",
            "http://a/?/media/image/x",
        ] {
            check(uri, Err("does not end in /media/<mediaType>/<id>"));
        }
    }

    #[test]
    fn err_the_part_that_is_wrong_is_named() {
        check("http://a/media/images/x", Err("unknown media type \"images\""));
        check("http://a/media/image/", Err("the id is empty"));
        check("http://a/media/image/x.jpg", Err("the id has '.' at character 2"));
        check("http://a/media/image/%78", Err("the id has '%' at character 1"));
        check("http://a/media/image/x-watermark", Err("has the operation \"-watermark\""));
        check("http://a/media/image/x_NormalPreview", Err("suffix \"_NormalPreview\""));
        check("http://a/media/image/x-crop_w0", Err("\"_w\" is zero"));
        check("http://a/media/image/x-crop_w1-crop_h1", Err("has the operation \"-crop\""));
        check("http://a\\@b/media/image/x", Err("the uri has the character '\\\\'"));
        check("http://a/media/image/x\n", Err("the uri has the character '\\n'"));
        check(&format!("http://a/{}/media/image/x", "y".repeat(2048)), Err("at most 2048"));
    }

    #[test]
    fn ok_a_key_parses_as_it_prints() {
        for text in ["image/sdlv_113kUboR0", "calendar/a", "stockfoto/0-_"] {
            let key = ItemKey::parse(text).unwrap();
            assert_eq!(key.to_string(), text);
            let json = serde_json::to_string(&key).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<ItemKey>(&json).unwrap(), key);
        }
    }

    #[test]
    fn err_a_key_with_a_wrong_part() {
        assert_eq!(ItemKey::parse("image"), Err(ItemKeyError::NoSlash));
        assert!(matches!(ItemKey::parse("_all/x"), Err(ItemKeyError::MediaType(_))));
        assert!(matches!(ItemKey::parse("image/x/y"), Err(ItemKeyError::Id(_))));
        assert!(matches!(ItemKey::parse("/x"), Err(ItemKeyError::MediaType(_))));
    }
}
