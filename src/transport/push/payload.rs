//! The data fields and the size limit of a message, which both services have in common.
//!
//! | name | value |
//! | --- | --- |
//! | `id` | id of the message, the same for every try |
//! | `url` | page that the message opens |
//! | `image` | URL of a picture, if there is one |
//! | `uri` | URI of the item |
//! | `mediaType` | its media type |
//! | `notification` | id of the notification that the item matched |

use serde_json::{Map, Value};

use super::{PushMessage, error::PushError};
use crate::runtime::limits;

/// The ellipsis of a truncated text; 3 bytes.
const CUT: &str = "…";

/// The texts of a message, truncated to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FittedTexts<'a> {
    pub(super) title: &'a str,
    pub(super) body: &'a str,
    pub(super) image: Option<&'a str>,
}

/// Returns the data of a message. Every value is a string, because Firebase accepts no other type.
pub(super) fn data(message: &PushMessage, image: Option<&str>) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("id".to_owned(), message.id.to_string().into());
    data.insert("url".to_owned(), message.url.clone().into());
    if let Some(image) = image {
        data.insert("image".to_owned(), image.into());
    }
    data.insert("uri".to_owned(), message.item_uri.clone().into());
    data.insert("mediaType".to_owned(), message.media_type.clone().into());
    data.insert("notification".to_owned(), message.notification.to_string().into());
    data
}

/// Builds the message as JSON of at most [`limits::PUSH_PAYLOAD_BYTES_MAX`] bytes.
///
/// `write` renders the texts as JSON, with title and body once each. First the body is truncated, then the picture
/// is left out. Fails with [`PushError::Permanent`] if there is no room for title and URLs.
pub(super) fn fit_payload(
    message: &PushMessage,
    write: impl Fn(FittedTexts<'_>) -> Value,
) -> Result<Value, PushError> {
    let title = shorten(&message.title, limits::PUSH_TITLE_BYTES_MAX);
    // The picture is left out only if the URLs leave no room for it.
    let images = [message.image.as_deref(), None];
    for image in images {
        let bare = write(FittedTexts { title: &title, body: "", image }).to_string().len();
        if let Some(room) = limits::PUSH_PAYLOAD_BYTES_MAX.checked_sub(bare) {
            let body = shorten(&message.body, room);
            return Ok(write(FittedTexts { title: &title, body: &body, image }));
        }
    }
    let reason =
        format!("the addresses leave no room in {} bytes", limits::PUSH_PAYLOAD_BYTES_MAX);
    Err(PushError::Permanent { reason })
}

/// Truncates `text` between two characters to at most `room` bytes as JSON, without its quotes.
///
/// The services limit the bytes of a message, not the characters, which [`model::shorten`] counts.
pub(super) fn shorten(text: &str, room: usize) -> String {
    let mut used = 0;
    // The position at which the text has to end so that the ellipsis fits.
    let mut end = None;
    for (at, c) in text.char_indices() {
        let bytes = written_bytes(c);
        if end.is_none() && used + bytes + CUT.len() > room {
            end = Some(at);
        }
        used += bytes;
        if used > room {
            let mark = if room < CUT.len() { "" } else { CUT };
            return format!("{}{mark}", &text[..end.unwrap_or(0)]);
        }
    }
    text.to_owned()
}

/// Returns the number of bytes of a character in the JSON of `serde_json`.
fn written_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}
