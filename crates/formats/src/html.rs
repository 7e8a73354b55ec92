//! Parses any HTML5 text into a balanced sequence of known elements.
//!
//! Tokens come from html5gum, which follows the HTML standard. The tree construction is our own. The standard
//! repeats open formatting elements in each new paragraph, so a short hostile text can produce an enormous tree;
//! here each start tag opens at most one element.
//!
//! Scripts, styles and embedded pages are removed with their content. Unknown elements are removed, but their text
//! is kept. Only attributes on an allowlist are kept; it has no event handlers and no styles.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::LazyLock;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use ElementRole::*;

/// The maximum nesting depth; deeper elements lose their tags and keep their text.
///
/// XML parsers refuse deep trees: libxml2 refuses more than 256 levels.
pub(super) const DEPTH_MAX: usize = 64;

/// The maximum number of attributes per element. The search for duplicates is quadratic in it.
const ATTRIBUTES_MAX: usize = 32;

/// The role of an element in the rules of nesting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementRole {
    /// `p`: ended by the start of any other block.
    Paragraph,
    /// A block or a section of blocks.
    Block,
    /// `h1` to `h6`: ended by the start of the next heading.
    Heading,
    /// `li`: ended by the next item of its list.
    Item,
    /// `dt` and `dd`: ended by the next `dt` or `dd`.
    Term,
    List,
    Table,
    /// `thead`, `tbody`, `tfoot` and a table's `caption`.
    RowGroup,
    Row,
    Cell,
    /// `a`: ended by the start of a new link.
    Link,
    Inline,
    /// `br`, `hr` and `img`: without content.
    Void,
}

/// A known element and its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HtmlElement {
    /// The name in lower case.
    pub name: &'static str,
    /// The role in the rules of nesting.
    pub role: ElementRole,
}

/// The name and value of an attribute.
pub(super) type Attribute = (String, String);

/// A parsing event. Each `Open` of an element that is not void has a matching `Close`.
#[derive(Debug)]
pub(super) enum HtmlEvent<'a> {
    /// The start of an element; attribute names are unique.
    Open(HtmlElement, &'a [Attribute]),
    /// The end of the innermost open element.
    Close(HtmlElement),
    /// Text with its entities decoded, which may contain any character.
    Text(&'a str),
}

/// Parses `html` and passes each event to `sink`.
///
/// Runs in linear time and never fails, because any text is valid HTML.
pub(super) fn walk(html: &str, sink: &mut dyn FnMut(HtmlEvent<'_>)) {
    let mut walker = HtmlWalker::new(sink);
    {
        let mut emitter = CallbackEmitter::new(
            |event: CallbackEvent<'_>, span: Span<()>| -> Option<Infallible> {
                walker.handle_event(event, span)
            },
        );
        // Without this, the content of scripts and styles would be tokenized as markup.
        emitter.naively_switch_states(true);
        let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
    }
    // The sink relies on one `Close` per `Open`, and the text may end inside an element.
    walker.close_to(0);
}

struct HtmlWalker<'s> {
    sink: &'s mut dyn FnMut(HtmlEvent<'_>),
    open: Vec<HtmlElement>,
    /// The number of open start tags beyond [`DEPTH_MAX`], whose end tags must not close anything.
    too_deep: usize,
    /// The raw-text element that is being removed with its content.
    dropping: Option<&'static str>,
    pending: Option<HtmlElement>,
    attribute: Option<String>,
    attributes: Vec<Attribute>,
}

impl<'s> HtmlWalker<'s> {
    fn new(sink: &'s mut dyn FnMut(HtmlEvent<'_>)) -> HtmlWalker<'s> {
        HtmlWalker {
            sink,
            open: Vec::with_capacity(DEPTH_MAX),
            too_deep: 0,
            dropping: None,
            pending: None,
            attribute: None,
            attributes: Vec::new(),
        }
    }

    fn start(&mut self, name: &[u8]) {
        self.pending = None;
        self.attribute = None;
        self.attributes.clear();
        if self.dropping.is_some() {
            return;
        }
        self.dropping = DROPPED.iter().find(|dropped| dropped.as_bytes() == name).copied();
        self.pending = element(name);
    }

    fn attribute_value(&mut self, value: &[u8]) {
        let Some(name) = self.attribute.take() else { return };
        if self.attributes.len() == ATTRIBUTES_MAX {
            return;
        }
        // The first one of repeated attributes counts, as the HTML standard says.
        let repeated = self.attributes.iter().any(|(earlier, _)| *earlier == name);
        let value = String::from_utf8_lossy(value);
        if !repeated && (!is_url_attribute(&name) || is_safe_url(&value)) {
            self.attributes.push((name, value.into_owned()));
        }
    }

    fn open_pending(&mut self) {
        let Some(element) = self.pending.take() else { return };
        self.close_implied(element.role);
        // A void element encloses nothing, so it does not count towards the depth.
        if element.role == Void {
            (self.sink)(HtmlEvent::Open(element, &self.attributes));
        } else if self.open.len() < DEPTH_MAX {
            (self.sink)(HtmlEvent::Open(element, &self.attributes));
            self.open.push(element);
        } else {
            self.too_deep += 1;
        }
    }

    /// Closes the elements that are implicitly ended by the start of an element with `role`.
    fn close_implied(&mut self, role: ElementRole) {
        // The bounds follow the scopes of the HTML standard: a tag inside a cell cannot close elements outside of
        // its table.
        let (closed, bounds): (&[ElementRole], _) = match role {
            Inline | Void => return,
            Link => (&[Link], [Cell, Table]),
            Item => (&[Item], [List, Cell]),
            Term => (&[Term], [List, Cell]),
            Cell => (&[Cell], [Row, Table]),
            Row => (&[Row], [Table, RowGroup]),
            RowGroup => (&[RowGroup, Row], [Table, Table]),
            Heading => (&[Heading, Paragraph], [Cell, Table]),
            Paragraph | Block | List | Table => (&[Paragraph], [Cell, Table]),
        };
        self.close_last(closed, bounds);
    }

    /// Closes the outermost element with one of `roles` within the innermost element with one of `bounds`.
    fn close_last(&mut self, roles: &[ElementRole], bounds: [ElementRole; 2]) {
        let bound = self.open.iter().rposition(|open| bounds.contains(&open.role));
        let from = bound.map_or(0, |index| index + 1);
        let found = self.open[from..].iter().position(|open| roles.contains(&open.role));
        if let Some(index) = found {
            self.close_to(from + index);
        }
    }

    fn end(&mut self, name: &[u8]) {
        if let Some(dropped) = self.dropping {
            if dropped.as_bytes() == name {
                self.dropping = None;
            }
            return;
        }
        let Some(element) = element(name) else { return };
        if element.role == Void {
            return;
        }
        // Matched by number only, because the names beyond the depth limit are not recorded.
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        // An end tag inside a cell must not close anything outside of the table.
        let stops_at_cell = !matches!(element.role, Table | RowGroup | Row | Cell);
        let cell = self.open.iter().rposition(|open| open.role == Cell && stops_at_cell);
        let search_from = cell.unwrap_or(0);
        let found = self.open[search_from..].iter().rposition(|open| open.name == element.name);
        if let Some(index) = found {
            self.close_to(search_from + index);
        }
    }

    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            if let Some(element) = self.open.pop() {
                (self.sink)(HtmlEvent::Close(element));
            }
        }
    }
}

impl Callback<Infallible, ()> for HtmlWalker<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => self.start(name),
            CallbackEvent::AttributeName { name } => {
                // An attribute without a value causes no second event and is dropped.
                self.attribute = self.pending.and_then(|_| attribute_name(name));
            }
            CallbackEvent::AttributeValue { value } => self.attribute_value(value),
            CallbackEvent::CloseStartTag { .. } => self.open_pending(),
            CallbackEvent::EndTag { name } => self.end(name),
            CallbackEvent::String { value } => {
                if self.dropping.is_none() && !value.is_empty() {
                    (self.sink)(HtmlEvent::Text(&String::from_utf8_lossy(value)));
                }
            }
            CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
        None
    }
}

/// Raw-text elements that are removed together with their content.
const DROPPED: [&str; 6] = ["iframe", "noembed", "noframes", "script", "style", "title"];

/// The allowed attributes, sorted for binary search. `data-…` is allowed as well.
const ATTRIBUTES: [&str; 18] = [
    "alt", "cite", "class", "colspan", "datetime", "dir", "headers", "height", "href", "id",
    "lang", "rel", "rowspan", "scope", "src", "start", "title", "width",
];

fn attribute_name(name: &[u8]) -> Option<String> {
    let name = str::from_utf8(name).ok()?;
    // Stricter than HTML, because NewsML-G2 needs names that are valid in XML.
    let data = name
        .strip_prefix("data-")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_plain));
    (data || ATTRIBUTES.binary_search(&name).is_ok()).then(|| name.to_owned())
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

fn is_url_attribute(attribute: &str) -> bool {
    matches!(attribute, "href" | "src" | "cite")
}

/// Returns whether a URL is allowed: relative, or with a scheme that cannot execute code.
pub(super) fn is_safe_url(address: &str) -> bool {
    // Browsers ignore white space and control characters within a scheme.
    let mut characters = address.chars().filter(|c| !c.is_whitespace() && !c.is_control());
    let mut scheme = String::new();
    loop {
        match characters.next() {
            Some(':') => break,
            Some(c) if c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.') => {
                scheme.push(c.to_ascii_lowercase());
                if scheme.len() > 10 {
                    // Longer than every allowed scheme, but it may still be a relative path.
                    return !characters.any(|c| c == ':');
                }
            }
            // Any other character, such as a slash, occurs before the first colon only in a relative URL.
            Some(_) | None => return true,
        }
    }
    matches!(scheme.as_str(), "http" | "https" | "mailto" | "tel" | "ftp")
}

fn element(name: &[u8]) -> Option<HtmlElement> {
    static KNOWN: LazyLock<HashMap<&str, HtmlElement>> = LazyLock::new(|| {
        let elements = ELEMENTS.iter().flat_map(|&(role, names)| {
            names.split(' ').map(move |name| (name, HtmlElement { name, role }))
        });
        elements.collect()
    });
    KNOWN.get(str::from_utf8(name).ok()?).copied()
}

/// The names of the known elements, by role.
const ELEMENTS: [(ElementRole, &str); 13] = [
    (Paragraph, "p"),
    (
        Block,
        "address article aside blockquote details div figcaption figure footer header \
         main nav pre section summary",
    ),
    (Heading, "h1 h2 h3 h4 h5 h6"),
    (Item, "li"),
    (Term, "dd dt"),
    (List, "dl ol ul"),
    (Table, "table"),
    (RowGroup, "caption tbody tfoot thead"),
    (Row, "tr"),
    (Cell, "td th"),
    (Link, "a"),
    (
        Inline,
        "abbr b bdi bdo cite code del dfn em i ins kbd mark q s samp small span strike \
         strong sub sup time u var",
    ),
    (Void, "br hr img wbr"),
];
