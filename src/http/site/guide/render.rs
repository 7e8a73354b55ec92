//! Renders Markdown to the HTML of a page.
//!
//! HTML in a document is shown as text, so a document cannot contain scripts or styles. HTML comments are left
//! out.

use std::mem;

use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html,
};
use serde::Serialize;

use super::excerpt::{plain_code, without_backticks};
use super::links::{DocumentLinks, HeadingAnchors};
use crate::http::site::template_environment::escaped;

/// Maximum length, in characters, of a line of code that fits in a narrow window. A block with a longer line
/// scrolls, so it must be focusable.
const NARROW_CHARS: usize = 36;

#[derive(Debug, Default)]
pub(super) struct RenderedDocument {
    pub(super) title: String,
    /// The HTML, in order. Text and attributes are escaped.
    pub(super) blocks: Vec<HtmlBlock>,
    /// The headings below the title, for the table of contents.
    pub(super) contents: Vec<ContentsHeading>,
    /// The text by heading, for the search. The first section is the text below the title.
    pub(super) sections: Vec<DocumentSection>,
    /// The URLs of the document's links, in order.
    pub(super) links: Vec<String>,
}

/// A part of a document's HTML. The page inserts a copy button after a code block.
#[derive(Debug, Default)]
pub(super) struct HtmlBlock {
    pub(super) html: String,
    /// The id of the code block at the end of the part, if there is one.
    pub(super) code_id: Option<String>,
}

/// A heading in the table of contents.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ContentsHeading {
    /// Level of the heading, 2 or 3.
    pub(super) level: u8,
    pub(super) text: String,
    pub(super) anchor: String,
}

/// The text below one heading.
#[derive(Debug, Default)]
pub(super) struct DocumentSection {
    pub(super) heading: String,
    pub(super) anchor: String,
    pub(super) text: String,
    /// The names in code font at the beginning of table rows, which the section describes.
    pub(super) names: Vec<String>,
}

impl DocumentSection {
    /// Separates the text of a table's cell from the text of the next cell.
    fn end_cell(&mut self) {
        self.text.truncate(self.text.trim_end().len());
        // An empty cell needs no second separator.
        let separator = if self.text.ends_with('·') { " " } else { " · " };
        self.text.push_str(separator);
    }

    /// Removes the separator after the last cell of a table.
    fn end_table(&mut self) {
        self.text.truncate(self.text.trim_end_matches([' ', '·']).len());
        self.text.push(' ');
    }
}

/// Renders the Markdown of `file`, a path in `docs`.
pub(super) fn document(file: &str, markdown: &str, links: &DocumentLinks<'_>) -> RenderedDocument {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let mut events = Parser::new_ext(markdown, options);
    let mut renderer = DocumentRenderer {
        file,
        links,
        document: RenderedDocument {
            sections: vec![DocumentSection::default()],
            ..RenderedDocument::default()
        },
        pending: Vec::new(),
        anchors: HeadingAnchors::default(),
        open_links: Vec::new(),
        is_first_cell: false,
    };
    while let Some(event) = events.next() {
        renderer.event(event, &mut events);
    }
    renderer.end()
}

struct DocumentRenderer<'a> {
    file: &'a str,
    links: &'a DocumentLinks<'a>,
    document: RenderedDocument,
    /// Events that have not been rendered yet.
    pending: Vec<Event<'a>>,
    anchors: HeadingAnchors,
    /// For each open link or image, true if it is rendered as such and false if as text.
    open_links: Vec<bool>,
    /// True if the next event belongs to the first cell of a row in the body of a table.
    is_first_cell: bool,
}

impl<'a> DocumentRenderer<'a> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the library renders all other events")]
    fn event(&mut self, event: Event<'a>, rest: &mut Parser<'a>) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => self.heading(level, rest),
            Event::Start(Tag::CodeBlock(kind)) => self.code(&kind, rest),
            Event::Start(Tag::HtmlBlock) => self.html_block(rest),
            Event::Start(Tag::Table(columns)) => {
                // Alignment would need a style attribute, which the content security policy forbids.
                let columns = vec![pulldown_cmark::Alignment::None; columns.len()];
                self.pending.push(Event::Html("<div class=\"wide\" tabindex=\"0\">".into()));
                self.pending.push(Event::Start(Tag::Table(columns)));
            }
            Event::End(TagEnd::Table) => {
                if let Some(section) = self.document.sections.last_mut() {
                    section.end_table();
                }
                self.pending.push(event);
                self.pending.push(Event::Html("</div>\n".into()));
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                // An e-mail address in angle brackets has no scheme and would be resolved as a file.
                let target = if link_type == LinkType::Email {
                    Some(dest_url.to_string())
                } else {
                    self.links.resolve(self.file, &dest_url)
                };
                // The links of the index determine the order of the navigation.
                self.document.links.extend(target.clone());
                self.open(target.map(|url| Tag::Link {
                    link_type,
                    dest_url: url.into(),
                    title,
                    id,
                }));
            }
            Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                let target = self.links.resolve(self.file, &dest_url);
                self.open(target.map(|url| Tag::Image {
                    link_type,
                    dest_url: url.into(),
                    title,
                    id,
                }));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                // A link that is rendered as text must not have an end tag.
                if self.open_links.pop().unwrap_or_default() {
                    self.pending.push(event);
                }
            }
            Event::InlineHtml(html) => self.inline_html(html),
            event => {
                self.index(&event);
                self.pending.push(event);
            }
        }
    }

    fn open(&mut self, tag: Option<Tag<'a>>) {
        self.open_links.push(tag.is_some());
        self.pending.extend(tag.map(Event::Start));
    }

    /// Adds the text of an event to the current section.
    fn index(&mut self, event: &Event<'_>) {
        let Some(section) = self.document.sections.last_mut() else { return };
        if matches!(event, Event::Start(Tag::TableRow)) {
            self.is_first_cell = true;
        } else if matches!(event, Event::End(TagEnd::TableCell)) {
            self.is_first_cell = false;
            section.end_cell();
            return;
        }
        if let Event::Code(name) = event
            && self.is_first_cell
        {
            section.names.push(name.to_string());
        }
        if let Event::Text(text) | Event::Code(text) = event {
            section.text.push_str(&without_backticks(text));
            return;
        }
        // Emphasis may end within a word; any other markup separates words of the index.
        let is_within_a_word = matches!(
            event,
            Event::Start(_)
                | Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough)
        );
        if !is_within_a_word && !section.text.ends_with(' ') {
            section.text.push(' ');
        }
    }

    /// Renders a heading with its anchor, and begins a section.
    fn heading(&mut self, level: HeadingLevel, rest: &mut Parser<'a>) {
        let mut inner = Vec::new();
        let mut text = String::new();
        for event in rest.by_ref() {
            if let Event::Text(part) | Event::Code(part) = &event {
                text.push_str(part);
            }
            let is_link = matches!(
                event,
                Event::Start(Tag::Link { .. } | Tag::Image { .. })
                    | Event::End(TagEnd::Link | TagEnd::Image)
            );
            if matches!(event, Event::End(TagEnd::Heading(_))) {
                break;
            } else if let Event::InlineHtml(html) = event {
                // The library would write inline HTML unescaped.
                inner.push(Event::Text(html));
            } else if !is_link {
                // Links within a heading become text, because the heading itself is a link to its anchor.
                inner.push(event);
            }
        }
        let anchor = self.anchors.next(&text);
        let id = Some(CowStr::from(anchor.clone()));
        self.pending.push(Event::Start(Tag::Heading {
            level,
            id,
            classes: vec![],
            attrs: vec![],
        }));
        self.pending.append(&mut inner);
        self.pending.push(Event::End(TagEnd::Heading(level)));
        let document = &mut self.document;
        // The title is not in the table of contents.
        if level == HeadingLevel::H1 && document.title.is_empty() {
            document.title.clone_from(&text);
            if let Some(first) = document.sections.first_mut() {
                first.heading = text;
            }
            return;
        }
        if matches!(level, HeadingLevel::H2 | HeadingLevel::H3) {
            let level = level as u8;
            document.contents.push(ContentsHeading {
                level,
                text: text.clone(),
                anchor: anchor.clone(),
            });
        }
        document.sections.push(DocumentSection {
            heading: text,
            anchor,
            ..DocumentSection::default()
        });
    }

    /// Renders a code block, with an id to which the copy button refers.
    fn code(&mut self, kind: &CodeBlockKind<'_>, rest: &mut Parser<'a>) {
        let code = block_text(rest);
        if let Some(section) = self.document.sections.last_mut() {
            section.text.push_str(&plain_code(&code));
            section.text.push(' ');
        }
        let language = match kind {
            CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or_default(),
            CodeBlockKind::Indented => "",
        };
        let count = self.document.blocks.iter().filter(|block| block.code_id.is_some()).count();
        let id = format!("code-{}", count + 1);
        // Counts characters instead of bytes, because the font is monospaced.
        let is_wide = code.lines().any(|line| line.chars().count() > NARROW_CHARS);
        let focus = if is_wide { " tabindex=\"0\"" } else { "" };
        let mut html = self.flush();
        html.push_str(&format!("<div class=\"sample\"><pre id=\"{id}\"{focus}"));
        // The language comes from the document, so it is escaped like text.
        if !language.is_empty() {
            html.push_str(&format!(" data-language=\"{}\"", escaped(language)));
        }
        html.push_str(&format!("><code>{}</code></pre>", escaped(&code)));
        self.document.blocks.push(HtmlBlock { html, code_id: Some(id) });
        self.pending.push(Event::Html("</div>\n".into()));
    }

    /// Renders a block of HTML as text, unless it is a comment.
    fn html_block(&mut self, rest: &mut Parser<'a>) {
        let html = block_text(rest);
        if !is_comment(&html) {
            self.pending.push(Event::Start(Tag::Paragraph));
            self.pending.push(Event::Text(html.into()));
            self.pending.push(Event::End(TagEnd::Paragraph));
        }
    }

    fn inline_html(&mut self, html: CowStr<'a>) {
        // Table cells have no other syntax for a line break.
        if ["<br>", "<br/>", "<br />"].contains(&html.as_ref()) {
            self.pending.push(Event::HardBreak);
        } else if !is_comment(&html) {
            self.pending.push(Event::Text(html));
        }
    }

    fn flush(&mut self) -> String {
        let mut text = String::new();
        html::push_html(&mut text, mem::take(&mut self.pending).into_iter());
        text
    }

    fn end(mut self) -> RenderedDocument {
        let html = self.flush();
        self.document.blocks.push(HtmlBlock { html, code_id: None });
        if self.document.title.is_empty() {
            // Navigation and browser history need some title.
            self.document.title = self.file.trim_end_matches(".md").to_owned();
        }
        self.document
    }
}

/// Reads the text of a code block or a block of HTML, up to its end.
fn block_text(rest: &mut Parser<'_>) -> String {
    let mut block = String::new();
    for event in rest.by_ref() {
        if matches!(event, Event::End(TagEnd::CodeBlock | TagEnd::HtmlBlock)) {
            break;
        }
        // The library splits a block into several texts.
        if let Event::Html(text) | Event::Text(text) = event {
            block.push_str(&text);
        }
    }
    block
}

fn is_comment(html: &str) -> bool {
    let html = html.trim();
    html.starts_with("<!--") && html.ends_with("-->")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(markdown: &str) -> RenderedDocument {
        let documents = ["guide/search.md", "README.md"];
        document("README.md", markdown, &DocumentLinks::new(documents.into_iter(), |_| false))
    }

    fn html(markdown: &str) -> String {
        rendered(markdown).blocks.into_iter().map(|block| block.html).collect()
    }

    #[test]
    fn html_of_a_document_is_text() {
        let page = html(
            "a <b>c</b>\n\n<script>alert(1)</script>\n\n<!-- note -->\n\n[x](javascript:y)\n",
        );
        assert!(page.contains("a &lt;b&gt;c&lt;/b&gt;"), "{page}");
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        assert!(!page.contains("note") && !page.contains("href"), "{page}");
        let code = html("```\"><script>\n<i>&\n```\n");
        assert!(code.contains("&lt;i&gt;&amp;") && !code.contains("<script"), "{code}");
    }

    #[test]
    fn a_link_out_of_the_documents_is_text_and_one_within_leads_there() {
        let page = html("[map](../ARCHITECTURE.md) and [words](guide/search.md#words)");
        assert!(
            page.contains("<p>map and <a href=\"/docs/guide/guide/search#words\">words</a>"),
            "{page}"
        );
        assert_eq!(html("![A wall](images/none.png)"), "<p>A wall</p>\n");
    }

    #[test]
    fn headings_have_anchors_and_the_text_below_each_is_a_section() {
        let found = rendered(
            "# Title\n\nlead\n\n## One `two`\n\n- text\n- more\n\n### Deep\n\n    code\n\n## One `two`\n",
        );
        assert_eq!(found.title, "Title");
        let anchors: Vec<_> =
            found.contents.iter().map(|one| (one.level, one.anchor.as_str())).collect();
        assert_eq!(anchors, [(2, "one-two"), (3, "deep"), (2, "one-two-1")]);
        let sections: Vec<_> =
            found.sections.iter().map(|one| (one.heading.as_str(), one.text.trim())).collect();
        assert_eq!(
            sections,
            [("Title", "lead"), ("One two", "text more"), ("Deep", "code"), ("One two", "")]
        );
        assert_eq!(found.blocks[0].code_id.as_deref(), Some("code-1"));
    }

    #[test]
    fn code_that_begins_the_rows_of_a_table_is_what_the_section_describes() {
        let found = rendered(
            "# T\n\n| `Name` | Meaning |\n| - | - |\n| [`a.b`](#t), `a.c` | as `d` |\n| e | `f` |\n\n`g`\n",
        );
        assert_eq!(found.sections[0].names, ["a.b", "a.c"]);
    }

    #[test]
    fn the_text_of_a_section_has_separated_cells_and_no_marks() {
        let found = rendered(
            "# T\n\nOne `` `x` ``.\n\n| a | b | c |\n| - | - | - |\n| `1` | | *3* |\n\n```\n# two\n```\n",
        );
        assert_eq!(found.sections[0].text.trim(), "One x. a · b · c · 1 · 3 two");
    }

    #[test]
    fn tables_have_no_styles() {
        let page = html("| a | b |\n| ---: | :-: |\n| 1 | 2 |\n");
        assert!(page.contains("<td>1</td>") && !page.contains("style"), "{page}");
    }
}
