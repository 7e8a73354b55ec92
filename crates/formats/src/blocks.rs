//! Turns an HTML body into the paragraphs of a newspaper text.
//!
//! A paragraph has one style and no line end. `<br>` is a soft break within it, a table's row is a
//! paragraph with tabs between its cells, a list's entry is a paragraph with its sign in front.
//!
//! No public document says how facts boxes, preambles and bylines are marked, so the usual names
//! are known: `aside`, and the class names of [`style_of_class`], English and Swedish.

use super::html;
use super::html::Attribute;
use super::html::ElementRole;
use super::html::HtmlElement;
use super::html::HtmlEvent;
use std::collections::HashSet;

/// What a paragraph is in the newspaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParagraphStyle {
    /// Running text.
    Body,
    /// The first, emphasized paragraph.
    Preamble,
    /// The word over the headline: a place or a section.
    Vignette,
    /// A heading within the text.
    Subheading,
    /// Who wrote it.
    Byline,
    /// The heading of a facts box.
    FactsHeading,
    /// A paragraph of a facts box.
    Facts,
    /// The text below a picture.
    Caption,
}

/// Letters in one typeface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextRun {
    /// Text without control characters except `\t` between cells and `\n` for a soft break.
    pub text: String,
    /// Whether the letters are bold.
    pub bold: bool,
    /// Whether the letters are italic.
    pub italic: bool,
}

/// A paragraph, never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Paragraph {
    /// Its style.
    pub style: ParagraphStyle,
    /// Its text in order.
    pub runs: Vec<TextRun>,
}

impl Paragraph {
    /// A paragraph of plain letters.
    pub(super) fn plain(style: ParagraphStyle, text: String) -> Paragraph {
        Paragraph { style, runs: vec![TextRun { text, bold: false, italic: false }] }
    }

    /// The text on one line: soft breaks are spaces.
    pub(super) fn line(&self) -> String {
        let letters = self.runs.iter().flat_map(|run| run.text.chars());
        letters.map(|c| if c == '\n' { ' ' } else { c }).collect()
    }
}

/// The paragraphs of a body and the addresses that it links to, each once.
#[derive(Debug, Default)]
pub(super) struct BodyText {
    /// In the order of the text.
    pub paragraphs: Vec<Paragraph>,
    /// Complete web and mail addresses, in the order of the text.
    pub links: Vec<String>,
}

/// Reads an HTML body. Linear in its length.
pub(super) fn parse_html(html: &str) -> BodyText {
    let mut reader = BodyReader::default();
    html::walk(html, &mut |event| match event {
        HtmlEvent::Open(element, attributes) => reader.open(element, attributes),
        HtmlEvent::Close(element) => reader.close(element),
        HtmlEvent::Text(text) => reader.push_text(text),
    });
    reader.flush();
    reader.blocks
}

/// Splits untagged text: each line is a paragraph of `style`.
pub(super) fn parse_lines(text: &str, style: ParagraphStyle) -> Vec<Paragraph> {
    let lines = text.split(['\n', '\r', '\u{2028}', '\u{2029}', '\u{85}']).map(one_line);
    lines.filter(|line| !line.is_empty()).map(|line| Paragraph::plain(style, line)).collect()
}

/// The text with each white space as one space, trimmed, without control characters.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(is_collapsible_space) {
        let start = line.len();
        if start > 0 {
            line.push(' ');
        }
        let content = line.len();
        line.extend(word.chars().filter(|c| is_printable(*c)));
        if line.len() == content {
            line.truncate(start);
        }
    }
    line
}

/// White space that collapses. A space that must not break is a letter.
fn is_collapsible_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Neither a control character nor one of the two code points that are no characters and that
/// readers take for damage.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

#[derive(Debug, Clone, Copy)]
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
    /// One per open list: the next number, or none for bullets.
    lists: Vec<Option<u32>>,
    runs: Vec<TextRun>,
    /// White space that is written if a letter follows in the paragraph.
    space: Option<char>,
    /// Cells that began in the paragraph's row, and the tabs that wait for a letter after them.
    cells: usize,
    tabs: usize,
    /// The sign of a list's entry, written before its first letter.
    list_marker: Option<String>,
    linked: HashSet<String>,
}

impl BodyReader {
    fn context(&self) -> TextContext {
        let outermost = TextContext {
            style: ParagraphStyle::Body,
            bold: false,
            italic: false,
            cell: false,
            preformatted: false,
        };
        self.contexts.last().copied().unwrap_or(outermost)
    }

    fn open(&mut self, element: HtmlElement, attributes: &[Attribute]) {
        self.break_paragraph_at(element);
        if element.role == ElementRole::Void {
            if element.name == "br" {
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
        match element.role {
            ElementRole::List => {
                self.lists.push((element.name == "ol").then(|| first_number(attributes)));
            }
            ElementRole::Item => self.list_marker = Some(self.next_list_marker()),
            ElementRole::Link => self.add_link(attributes),
            ElementRole::Cell => {
                self.tabs += usize::from(self.cells > 0);
                self.cells += 1;
                self.space = None;
            }
            ElementRole::Paragraph
            | ElementRole::Block
            | ElementRole::Heading
            | ElementRole::Term
            | ElementRole::Table
            | ElementRole::RowGroup
            | ElementRole::Row
            | ElementRole::Inline
            | ElementRole::Void => {}
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

    /// Ends the paragraph where an element starts or ends that is not part of a line.
    fn break_paragraph_at(&mut self, element: HtmlElement) {
        let within_line = match element.role {
            ElementRole::Inline | ElementRole::Link => true,
            ElementRole::Void => element.name != "hr",
            ElementRole::Cell => true,
            ElementRole::Paragraph
            | ElementRole::Block
            | ElementRole::Heading
            | ElementRole::Item
            | ElementRole::Term
            | ElementRole::List
            | ElementRole::Table
            | ElementRole::RowGroup
            | ElementRole::Row => false,
        };
        if within_line {
            return;
        }
        // A cell is part of its row's line, whatever blocks it holds.
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
            if context.preformatted && c == '\n' {
                self.space = Some('\n');
            } else if is_collapsible_space(c) {
                self.space = self.space.or(Some(' '));
            } else if is_printable(c) {
                self.letter(c, context);
            }
        }
    }

    fn letter(&mut self, c: char, context: TextContext) {
        let mut text = String::new();
        if let Some(sign) = self.list_marker.take() {
            text.push_str(&sign);
        } else if self.tabs > 0 {
            text.extend(std::iter::repeat_n('\t', self.tabs));
        } else if !self.runs.is_empty() {
            text.extend(self.space);
        }
        (self.space, self.tabs) = (None, 0);
        let fits = |run: &&mut TextRun| run.bold == context.bold && run.italic == context.italic;
        if let Some(run) = self.runs.last_mut().filter(fits) {
            run.text.push_str(&text);
            run.text.push(c);
            return;
        }
        let (bold, italic) = (context.bold, context.italic);
        // White space and signs are not emphasized, where there is a choice.
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
        (self.space, self.cells, self.tabs) = (None, 0, 0);
        if !self.runs.is_empty() {
            let style = self.context().style;
            let runs = std::mem::take(&mut self.runs);
            self.blocks.paragraphs.push(Paragraph { style, runs });
        }
    }

    fn next_list_marker(&mut self) -> String {
        match self.lists.last_mut() {
            Some(Some(number)) => {
                let sign = format!("{number}. ");
                *number = number.saturating_add(1);
                sign
            }
            Some(None) | None => "\u{2022} ".to_owned(),
        }
    }

    fn add_link(&mut self, attributes: &[Attribute]) {
        let Some(href) = value(attributes, "href") else { return };
        let href: String =
            href.chars().filter(|c| is_printable(*c) && !is_collapsible_space(*c)).collect();
        let lower = href.get(..8).unwrap_or(&href).to_ascii_lowercase();
        let complete = ["http://", "https://", "mailto:"].iter().any(|s| lower.starts_with(s));
        if complete && self.linked.insert(href.clone()) {
            self.blocks.links.push(href);
        }
    }
}

fn first_number(attributes: &[Attribute]) -> u32 {
    value(attributes, "start").and_then(|start| start.parse().ok()).unwrap_or(1)
}

fn value<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The style within an element, given the style around it.
fn style(
    element: HtmlElement,
    attributes: &[Attribute],
    around: ParagraphStyle,
) -> ParagraphStyle {
    let in_facts = matches!(around, ParagraphStyle::Facts | ParagraphStyle::FactsHeading);
    if element.role == ElementRole::Heading || element.name == "summary" {
        return if in_facts { ParagraphStyle::FactsHeading } else { ParagraphStyle::Subheading };
    }
    match element.name {
        "aside" => return ParagraphStyle::Facts,
        "figcaption" | "caption" => return ParagraphStyle::Caption,
        _ => {}
    }
    if matches!(element.role, ElementRole::Inline | ElementRole::Link) {
        return around;
    }
    let classes = value(attributes, "class").unwrap_or_default().split_ascii_whitespace();
    let named = classes.filter_map(style_of_class).next();
    match named {
        Some(ParagraphStyle::Subheading) if in_facts => ParagraphStyle::FactsHeading,
        Some(style) => style,
        None => around,
    }
}

/// The style that a class name asks for.
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
