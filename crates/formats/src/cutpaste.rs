//! Prints documents as plain text for copying and pasting.
//!
//! Line 1 is the headline and line 2 the vignette and the source. One paragraph per line, the byline and the links
//! follow. Consumers skip two lines and stop at the byline, so the first two lines are always present, even if
//! empty. Captions of associated pictures are omitted, because a consumer could not distinguish them from the
//! text.

use super::story;
use serde_json::Value;

/// Prints a document as plain text: UTF-8, each line terminated by CR LF, no byte-order mark.
///
/// Tabs separate the cells of a table; no other control character occurs. Line 2 is the vignette and the source in
/// parentheses, `Stockholm (TT)`, or only one of them if the other is missing.
///
/// Contract files-4.
pub fn cutpaste(document: &Value) -> String {
    let story = story::from_document(document);
    let mut out = String::new();
    push_line(&mut out, &story.headline);
    let origin = match (story.vignette.as_str(), story.source.as_str()) {
        (vignette, "") => vignette.to_owned(),
        ("", source) => format!("({source})"),
        (vignette, source) => format!("{vignette} ({source})"),
    };
    push_line(&mut out, &origin);
    for paragraph in &story.paragraphs {
        push_line(&mut out, &paragraph.line());
    }
    for byline in &story.bylines {
        push_line(&mut out, byline);
    }
    for link in &story.links {
        push_line(&mut out, link);
    }
    out
}

fn push_line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push_str("\r\n");
}
