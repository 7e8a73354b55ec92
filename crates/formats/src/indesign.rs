//! Prints documents as Adobe InDesign Tagged Text, the import format of the layout program.
//!
//! Uses `<ASCII-WIN>` with CR LF: every byte is ASCII, so no reader has to guess an encoding. A code point above
//! U+007F is written as `<0x00E5>`. A code point above U+FFFF is written as two such tags with its UTF-16 code
//! units, because a tag has four digits and the program stores text as UTF-16. The published format description is
//! silent on this case.

use super::blocks::{Paragraph, ParagraphStyle, TextRun};
use super::story::{self, Story};
use serde_json::Value;
use std::fmt::Write;

/// The start of every file, which must come first.
const START: &str = "<ASCII-WIN>\r\n<Version:5><FeatureSet:InDesign-Roman>\
                     <ColorTable:=<Black:COLOR:CMYK:Process:0,0,0,1>>\r\n";

/// The names of the paragraph styles, each defined once at the start of the file.
pub(super) const STYLES: [&str; 9] = [
    "headline",
    "vignette",
    "preamble",
    "body",
    "subheading",
    "byline",
    "facts heading",
    "facts",
    "caption",
];

/// Prints a document as tagged text: ASCII, lines terminated by CR LF, tabs between table cells and no other
/// control character.
///
/// Contract files-5.
pub fn indesign(document: &Value) -> Vec<u8> {
    print(&story::from_document(document)).into_bytes()
}

fn print(story: &Story) -> String {
    let mut out = String::from(START);
    for style in STYLES {
        out.push_str(&format!("<DefineParaStyle:{style}=<Nextstyle:{style}>>\r\n"));
    }
    line(&mut out, "headline", &story.headline);
    let vignette = format!("{} {}", story.vignette, story.source);
    if !vignette.trim().is_empty() {
        line(&mut out, "vignette", vignette.trim());
    }
    for paragraph in &story.paragraphs {
        start(&mut out, paragraph.style.into());
        print_runs(&mut out, paragraph);
        out.push_str("\r\n");
    }
    story.bylines.iter().for_each(|byline| line(&mut out, "byline", byline));
    story.captions.iter().for_each(|caption| line(&mut out, "caption", caption));
    out
}

fn line(out: &mut String, style: &str, text: &str) {
    start(out, style);
    escape(out, text);
    out.push_str("\r\n");
}

fn start(out: &mut String, style: &str) {
    out.push_str("<ParaStyle:");
    out.push_str(style);
    out.push('>');
}

fn print_runs(out: &mut String, paragraph: &Paragraph) {
    // The paragraph style sets a heading's typeface, so bold and italic in the source are ignored.
    let plain =
        matches!(paragraph.style, ParagraphStyle::Subheading | ParagraphStyle::FactsHeading);
    for run in &paragraph.runs {
        match typeface(run).filter(|_| !plain) {
            Some(typeface) => {
                out.push_str("<cTypeface:");
                out.push_str(typeface);
                out.push('>');
                escape(out, &run.text);
                // An empty value restores the typeface of the paragraph style.
                out.push_str("<cTypeface:>");
            }
            None => escape(out, &run.text),
        }
    }
}

fn typeface(run: &TextRun) -> Option<&'static str> {
    match (run.bold, run.italic) {
        (true, true) => Some("Bold Italic"),
        (true, false) => Some("Bold"),
        (false, true) => Some("Italic"),
        (false, false) => None,
    }
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' | '>' | '\\' => out.extend(['\\', c]),
            ' '..='~' | '\t' => out.push(c),
            // A soft break, because a real line end would start a new paragraph.
            '\n' => out.push_str("<0x000A>"),
            _ if c.is_control() => {}
            _ => {
                // A tag has four digits, so a code point above U+FFFF needs two tags.
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _infallible = write!(out, "<0x{unit:04X}>");
                }
            }
        }
    }
}
