//! Assembles the parts of a newspaper text from a document.

use super::blocks::{self, BodyText, Paragraph, ParagraphStyle};
use serde_json::Value;

/// The maximum length in bytes of a byline in which marked-up bylines of the body are searched.
const BYLINE_SEARCHED_MAX_BYTES: usize = 500;

/// A document as laid out in a newspaper. All texts are free of control characters.
#[derive(Debug)]
pub(super) struct Story {
    /// One line; empty if the document has no headline.
    pub headline: String,
    /// The kicker above the headline; may be empty.
    pub vignette: String,
    /// The source; may be empty.
    pub source: String,
    /// The text without bylines.
    pub paragraphs: Vec<Paragraph>,
    /// The bylines, one line each.
    pub bylines: Vec<String>,
    /// The captions of the associated pictures.
    pub captions: Vec<String>,
    /// The URLs that the text links to.
    pub links: Vec<String>,
}

/// Extracts the story of a document.
///
/// The text is `body_html5`, else `body_richhtml5`, else `body_text`, else `description_text`, which is the only
/// text of a picture. The vignette comes from markup in the body, else from `located`.
pub(super) fn from_document(document: &Value) -> Story {
    let BodyText { paragraphs, links } = body(document);
    let headline = first(document, &["headline", "title", "slugline", "slug"]);
    let mut story = Story {
        headline: blocks::one_line(headline.unwrap_or_default()),
        vignette: String::new(),
        source: blocks::one_line(text(document, "source").unwrap_or_default()),
        paragraphs: Vec::with_capacity(paragraphs.len()),
        bylines: Vec::new(),
        captions: captions(document),
        links,
    };
    for paragraph in paragraphs {
        story.add_paragraph(paragraph);
    }
    if story.vignette.is_empty() {
        story.vignette = blocks::one_line(text(document, "located").unwrap_or_default());
    }
    let byline = byline(document);
    if !byline.is_empty() {
        // A long byline is only compared as a whole, so that many marked-up bylines cost linear time.
        let short = byline.len() <= BYLINE_SEARCHED_MAX_BYTES;
        story.bylines.retain(|marked| *marked != byline && !(short && byline.contains(marked)));
        story.bylines.push(byline);
    }
    story
}

impl Story {
    fn add_paragraph(&mut self, paragraph: Paragraph) {
        let line = paragraph.line();
        // A body may repeat the headline as its first heading.
        let repeats = self.paragraphs.is_empty() && line == self.headline;
        if paragraph.style == ParagraphStyle::Subheading && repeats {
            return;
        }
        // Only the first vignette is a kicker; a later one stays in the text.
        if paragraph.style == ParagraphStyle::Vignette && self.vignette.is_empty() {
            self.vignette = line;
        } else if paragraph.style == ParagraphStyle::Byline {
            self.bylines.push(line);
        } else {
            self.paragraphs.push(paragraph);
        }
    }
}

fn body(document: &Value) -> BodyText {
    if let Some(html) = first(document, &["body_html5", "body_richhtml5"]) {
        return blocks::parse_html(html);
    }
    let lines = first(document, &["body_text", "description_text"]).unwrap_or_default();
    BodyText { paragraphs: blocks::parse_lines(lines, ParagraphStyle::Body), links: Vec::new() }
}

fn byline(document: &Value) -> String {
    if let Some(byline) = text(document, "byline") {
        return blocks::one_line(byline);
    }
    let bylines = document.get("bylines").and_then(Value::as_array).into_iter().flatten();
    let named = bylines.filter_map(|byline| text(byline, "byline"));
    blocks::one_line(&named.collect::<Vec<_>>().join(", "))
}

fn captions(document: &Value) -> Vec<String> {
    let associations = document.get("associations").and_then(Value::as_object);
    let mut captions = Vec::new();
    for association in associations.into_iter().flatten().map(|(_, association)| association) {
        let pictorial = matches!(text(association, "type"), Some("picture" | "graphic" | "video"));
        let Some(description) = text(association, "description_text").filter(|_| pictorial) else {
            continue;
        };
        let mut caption = blocks::one_line(description);
        let byline = byline(association);
        // A caption may name the photographer already.
        if !byline.is_empty() && !caption.contains(&byline) {
            caption.push(' ');
            caption.push_str(&byline);
        }
        captions.push(caption);
    }
    captions.retain(|caption| !caption.trim().is_empty());
    captions
}

fn first<'a>(document: &'a Value, names: &[&str]) -> Option<&'a str> {
    let mut texts = names.iter().filter_map(|name| text(document, name));
    // A text of white space counts as missing, so that the next property is used.
    texts.find(|text| !text.trim().is_empty())
}

fn text<'a>(document: &'a Value, name: &str) -> Option<&'a str> {
    document.get(name).and_then(Value::as_str)
}
