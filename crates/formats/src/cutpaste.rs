//! Plain text for cutting and pasting.
//!
//! Line 1 is the headline, line 2 vignette and source, then one paragraph a line, the byline last
//! and then the links. Readers skip two lines and stop at the byline, so both first lines are
//! always there, also when they are empty. The captions of associated pictures are left out: a
//! reader could not tell them from the text.

use super::story;
use serde_json::Value;

/// Prints a document as plain text: UTF-8, every line ended by CR LF, no byte-order mark.
///
/// Tabs separate the cells of a table; no other control character occurs. Line 2 is the vignette
/// and the source in brackets, `Stockholm (TT)`, or what there is of it.
///
/// Contract files-4.
pub fn cutpaste(document: &Value) -> String {
    let story = story::from_document(document);
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text);
        out.push_str("\r\n");
    };
    line(&story.headline);
    line(&match (story.vignette.as_str(), story.source.as_str()) {
        (vignette, "") => vignette.to_owned(),
        ("", source) => format!("({source})"),
        (vignette, source) => format!("{vignette} ({source})"),
    });
    for paragraph in &story.paragraphs {
        line(&paragraph.line());
    }
    story.bylines.iter().for_each(|byline| line(byline));
    story.links.iter().for_each(|link| line(link));
    out
}
