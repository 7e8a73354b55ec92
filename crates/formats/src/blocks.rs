//! Converts an HTML body into the paragraphs of a newspaper text.
//!
//! A paragraph has one style and no line break. `<br>` is a soft break within it, a table row is a paragraph
//! with tabs between its cells, and a list item is a paragraph that begins with its bullet or number.
//!
//! No public specification defines the markup of fact boxes, preambles and bylines, so the common conventions are
//! recognized: `aside`, and the English and Swedish class names in [`style_of_class`].

use super::html::{self, Attribute, ElementRole, HtmlElement, HtmlEvent};
use std::collections::HashSet;
use strum::IntoStaticStr;

/// The role of a paragraph in a newspaper. As a text it is the name of its style in a layout program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum ParagraphStyle {
    #[default]
    Body,
    /// The first, emphasized paragraph.
    Preamble,
    /// The kicker above the headline: a place or a section.
    Vignette,
    /// A subheading within the text.
    Subheading,
    Byline,
    /// The heading of a fact box.
    #[strum(serialize = "facts heading")]
    FactsHeading,
    /// A paragraph of a fact box.
    Facts,
    Caption,
}

/// A run of text in one typeface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextRun {
    /// Text without control characters, except `\t` between cells and `\n` for a soft break.
    pub text: String,
    /// True if the text is bold.
    pub bold: bool,
    /// True if the text is italic.
    pub italic: bool,
}

/// A paragraph, which is never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Paragraph {
    pub style: ParagraphStyle,
    /// The text runs, in order.
    pub runs: Vec<TextRun>,
}

impl Paragraph {
    /// Builds a paragraph of unformatted text.
    pub(super) fn plain(style: ParagraphStyle, text: String) -> Paragraph {
        Paragraph { style, runs: vec![TextRun { text, bold: false, italic: false }] }
    }

    /// Returns the text on one line, with spaces for soft breaks.
    pub(super) fn line(&self) -> String {
        let characters = self.runs.iter().flat_map(|run| run.text.chars());
        characters.map(|c| if c == '\n' { ' ' } else { c }).collect()
    }
}

/// The paragraphs of a body, and the distinct URLs that it links to.
#[derive(Debug, Default)]
pub(super) struct BodyText {
    /// The paragraphs, in the order of the text.
    pub paragraphs: Vec<Paragraph>,
    /// Absolute web and mail URLs, in the order of the text.
    pub links: Vec<String>,
}

/// Parses an HTML body in linear time.
pub(super) fn parse_html(html: &str) -> BodyText {
    let mut reader = BodyReader::default();
    html::walk(html, &mut |event| match event {
        HtmlEvent::Open(element, attributes) => reader.open(element, attributes),
        HtmlEvent::Close(element) => reader.close(element),
        HtmlEvent::Text(text) => reader.push_text(text),
    });
    // Text after the last block has no end tag that would end its paragraph.
    reader.flush();
    reader.blocks
}

/// Splits plain text into paragraphs of `style`, one per line.
pub(super) fn parse_lines(text: &str, style: ParagraphStyle) -> Vec<Paragraph> {
    let lines = text.split(['\n', '\r', '\u{2028}', '\u{2029}', '\u{85}']).map(one_line);
    lines.filter(|line| !line.is_empty()).map(|line| Paragraph::plain(style, line)).collect()
}

/// Collapses white space to single spaces, trims, and removes control characters.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(is_collapsible_space) {
        let start = line.len();
        if start > 0 {
            line.push(' ');
        }
        let content = line.len();
        line.extend(word.chars().filter(|c| is_printable(*c)));
        // A word that consists only of control characters would leave two spaces in a row.
        if line.len() == content {
            line.truncate(start);
        }
    }
    line
}

/// Returns whether white space collapses; a no-break space counts as a letter.
fn is_collapsible_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns whether a character is printable: neither a control character, nor a line separator, nor a code point
/// that readers consider damage (byte-order mark, noncharacters).
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

#[derive(Debug, Clone, Copy, Default)]
struct TextContext {
    style: ParagraphStyle,
    bold: bool,
    italic: bool,
    cell: bool,
    preformatted: bool,
}

#[derive(Default)]
struct BodyReader {
    blocks: BodyText,
    contexts: Vec<TextContext>,
    /// One entry per open list: the next number, or `None` for bullets.
    lists: Vec<Option<u32>>,
    runs: Vec<TextRun>,
    /// White space that is written if more text follows in the paragraph.
    space: Option<char>,
    /// The number of cells so far in the row of the paragraph. `tabs` counts the tabs to write before the next
    /// text.
    cells: usize,
    tabs: usize,
    /// The bullet or number of a list item, written before its first character.
    list_marker: Option<String>,
    linked: HashSet<String>,
}

impl BodyReader {
    fn context(&self) -> TextContext {
        self.contexts.last().copied().unwrap_or_default()
    }

    fn open(&mut self, element: HtmlElement, attributes: &[Attribute]) {
        self.break_paragraph_at(element);
        if element.role == ElementRole::Void {
            if element.name == "br" {
                // Written only when text follows, so that no paragraph ends with a soft break.
                self.space = Some('\n');
            }
            return;
        }
        let mut context = self.context();
        context.style = style(element, attributes, context.style);
        context.bold |= matches!(element.name, "b" | "strong");
        context.italic |= matches!(element.name, "i" | "em" | "cite");
        context.cell |= element.role == ElementRole::Cell;
        context.preformatted |= element.name == "pre";
        if element.role == ElementRole::List {
            self.lists.push((element.name == "ol").then(|| first_number(attributes)));
        } else if element.role == ElementRole::Item {
            // Written with the first character, so that an empty item leaves no bullet behind.
            self.list_marker = Some(self.next_list_marker());
        } else if element.role == ElementRole::Link {
            self.add_link(attributes);
        } else if element.role == ElementRole::Cell {
            // Tabs are written only when text follows, so that empty cells at the end of a row leave none.
            self.tabs += usize::from(self.cells > 0);
            self.cells += 1;
            self.space = None;
        }
        self.contexts.push(context);
    }

    fn close(&mut self, element: HtmlElement) {
        self.break_paragraph_at(element);
        if element.role == ElementRole::List {
            self.lists.pop();
        }
        if element.role == ElementRole::Item {
            self.list_marker = None;
        }
        self.contexts.pop();
    }

    /// Ends the paragraph at the start or end of an element that is not inline.
    fn break_paragraph_at(&mut self, element: HtmlElement) {
        let has_inline_role =
            matches!(element.role, ElementRole::Inline | ElementRole::Link | ElementRole::Cell);
        if has_inline_role || element.role == ElementRole::Void && element.name != "hr" {
            return;
        }
        // A cell stays on the line of its row, even if it contains blocks.
        let closes_row =
            matches!(element.role, ElementRole::Row | ElementRole::Table | ElementRole::RowGroup);
        if self.context().cell && !closes_row {
            self.space = self.space.or(Some(' '));
        } else {
            self.flush();
        }
    }

    fn push_text(&mut self, text: &str) {
        let context = self.context();
        for c in text.chars() {
            // Line breaks of preformatted text are part of it; in other text they only separate words.
            if context.preformatted && c == '\n' {
                self.space = Some('\n');
            } else if is_collapsible_space(c) {
                self.space = self.space.or(Some(' '));
            } else if is_printable(c) {
                self.push_char(c, context);
            }
        }
    }

    fn push_char(&mut self, c: char, context: TextContext) {
        let mut text = String::new();
        if let Some(marker) = self.list_marker.take() {
            text.push_str(&marker);
        } else if self.tabs > 0 {
            text.extend(std::iter::repeat_n('\t', self.tabs));
        } else if !self.runs.is_empty() {
            text.extend(self.space);
        }
        self.space = None;
        self.tabs = 0;
        let bold = context.bold;
        let italic = context.italic;
        if let Some(run) = self.runs.last_mut()
            && run.bold == bold
            && run.italic == italic
        {
            run.text.push_str(&text);
            run.text.push(c);
            return;
        }
        // White space and list markers are left unformatted if possible.
        if bold || italic {
            match self.runs.last_mut() {
                Some(run) => run.text.push_str(&text),
                None if text.is_empty() => {}
                None => {
                    let text = text.clone();
                    self.runs.push(TextRun { text, bold: false, italic: false });
                }
            }
            text.clear();
        }
        text.push(c);
        self.runs.push(TextRun { text, bold, italic });
    }

    fn flush(&mut self) {
        self.space = None;
        self.cells = 0;
        self.tabs = 0;
        if !self.runs.is_empty() {
            // Called before a context is pushed or popped, so this is the style of the text, not of the next
            // element.
            let style = self.context().style;
            let runs = std::mem::take(&mut self.runs);
            self.blocks.paragraphs.push(Paragraph { style, runs });
        }
    }

    fn next_list_marker(&mut self) -> String {
        match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                // The first number comes from the document, so it may be the maximum.
                *number = number.saturating_add(1);
                marker
            }
            // Browsers also show an item outside of any list with a bullet.
            Some(None) | None => "\u{2022} ".to_owned(),
        }
    }

    fn add_link(&mut self, attributes: &[Attribute]) {
        let Some(href) = value(attributes, "href") else { return };
        // Each link is one line of the output, so line breaks in the attribute must not survive.
        let href: String =
            href.chars().filter(|c| is_printable(*c) && !is_collapsible_space(*c)).collect();
        let lower = href.get(..8).unwrap_or(&href).to_ascii_lowercase();
        // A relative URL is useless outside of its original page.
        let absolute = ["http://", "https://", "mailto:"].iter().any(|s| lower.starts_with(s));
        if absolute && self.linked.insert(href.clone()) {
            self.blocks.links.push(href);
        }
    }
}

fn first_number(attributes: &[Attribute]) -> u32 {
    value(attributes, "start").and_then(|start| start.parse().ok()).unwrap_or(1)
}

fn value<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// Returns the paragraph style within an element, given the style around it.
fn style(
    element: HtmlElement,
    attributes: &[Attribute],
    inherited: ParagraphStyle,
) -> ParagraphStyle {
    let in_facts = matches!(inherited, ParagraphStyle::Facts | ParagraphStyle::FactsHeading);
    if element.role == ElementRole::Heading || element.name == "summary" {
        return if in_facts { ParagraphStyle::FactsHeading } else { ParagraphStyle::Subheading };
    }
    match element.name {
        "aside" => return ParagraphStyle::Facts,
        "figcaption" | "caption" => return ParagraphStyle::Caption,
        _ => {}
    }
    // A paragraph has one style, so the class of an element within a line cannot change it.
    if matches!(element.role, ElementRole::Inline | ElementRole::Link) {
        return inherited;
    }
    let classes = value(attributes, "class").unwrap_or_default().split_ascii_whitespace();
    let named = classes.filter_map(style_of_class).next();
    match named {
        Some(ParagraphStyle::Subheading) if in_facts => ParagraphStyle::FactsHeading,
        Some(style) => style,
        None => inherited,
    }
}

/// Returns the paragraph style for a class name.
fn style_of_class(class: &str) -> Option<ParagraphStyle> {
    let style = match class.to_ascii_lowercase().as_str() {
        "fact" | "facts" | "factbox" | "fact-box" | "factsbox" | "facts-box" | "fakta"
        | "faktaruta" => ParagraphStyle::Facts,
        "facts-heading" | "factsheading" | "fact-heading" | "faktarubrik" => {
            ParagraphStyle::FactsHeading
        }
        "byline" | "author" => ParagraphStyle::Byline,
        "preamble" | "ingress" | "lead" => ParagraphStyle::Preamble,
        "vignette" | "vinjett" => ParagraphStyle::Vignette,
        "subheading" | "subhead" | "mellanrubrik" => ParagraphStyle::Subheading,
        "caption" | "bildtext" => ParagraphStyle::Caption,
        _ => return None,
    };
    Some(style)
}
