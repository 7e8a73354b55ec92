//! What both services have in common in a message: the names of its data, and its size.
//!
//! | name | value |
//! | --- | --- |
//! | `id` | id of the message, the same for every try |
//! | `url` | page that the message opens |
//! | `image` | address of a picture, where there is one |
//! | `uri` | URI of the item |
//! | `mediaType` | its media type |
//! | `notification` | id of the notification that the item matched |

use serde_json::{Map, Value};

use super::{PushMessage, error::PushError};
use crate::runtime::limits;

/// What stands at the end of a text that was shortened; 3 bytes.
const CUT: &str = "…";

/// The texts of a message once they fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FittedTexts<'a> {
    pub(super) title: &'a str,
    pub(super) body: &'a str,
    pub(super) image: Option<&'a str>,
}

/// The data of a message, every value a text: Firebase takes no other.
pub(super) fn data(message: &PushMessage, image: Option<&str>) -> Map<String, Value> {
    let mut data = Map::new();
    let mut put = |name: &str, value: String| data.insert(name.to_owned(), value.into());
    put("id", message.id.to_string());
    put("url", message.url.clone());
    if let Some(image) = image {
        put("image", image.to_owned());
    }
    put("uri", message.item_uri.clone());
    put("mediaType", message.media_type.clone());
    put("notification", message.notification.to_string());
    data
}

/// The message as JSON of at most [`limits::PUSH_PAYLOAD_BYTES_MAX`] bytes.
///
/// `write` makes JSON of texts, each as a JSON string and the title and the body once. First the
/// body gives way, then the picture; without room for title and address the message is
/// [`PushError::Permanent`].
pub(super) fn fit_payload(
    message: &PushMessage,
    write: impl Fn(FittedTexts<'_>) -> Value,
) -> Result<Value, PushError> {
    let title = shorten(&message.title, limits::PUSH_TITLE_BYTES_MAX);
    let images = [message.image.as_deref(), None];
    for image in images {
        let bare = write(FittedTexts { title: &title, body: "", image }).to_string().len();
        if let Some(room) = limits::PUSH_PAYLOAD_BYTES_MAX.checked_sub(bare) {
            let body = shorten(&message.body, room);
            return Ok(write(FittedTexts { title: &title, body: &body, image }));
        }
    }
    let said = format!("the addresses leave no room in {} bytes", limits::PUSH_PAYLOAD_BYTES_MAX);
    Err(PushError::Permanent { said })
}

/// `text`, cut between two characters so that it takes at most `room` bytes as JSON, its quotes
/// not counted.
pub(super) fn shorten(text: &str, room: usize) -> String {
    let mut used = 0;
    // Where the text has to end for the mark of the cut to fit behind it.
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

/// Bytes that a character takes in JSON, as `serde_json` writes it.
fn written_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}
