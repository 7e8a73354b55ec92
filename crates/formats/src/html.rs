//! Reads any HTML5 text as a balanced sequence of known elements.
//!
//! The tokens come from html5gum, which follows the HTML standard. The tree is ours: the
//! standard's tree construction repeats open formatting elements in every new paragraph, so that
//! a short hostile text can make an endless one. Here every start tag opens at most one element.
//! Scripts, styles and embedded pages go with their content. Unknown elements go, their text
//! stays. Attributes are those of a list; handlers and styles are not on it.

use html5gum::Span;
use html5gum::Tokenizer;
use html5gum::emitters::callback::Callback;
use html5gum::emitters::callback::CallbackEmitter;
use html5gum::emitters::callback::CallbackEvent;
use std::convert::Infallible;

/// How deep elements nest; deeper ones lose their tags and keep their text.
///
/// XML readers refuse deep trees, libxml2 at 256.
pub(super) const DEPTH_MAX: usize = 64;

/// How many attributes of an element stay. The search for doubles takes the square of it.
const ATTRIBUTES_MAX: usize = 32;

/// What an element is to the rules of nesting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// `p`: ends where another block starts.
    Paragraph,
    /// A block or a section of blocks.
    Block,
    /// `h1` to `h6`: ends where another one starts.
    Heading,
    /// `li`, ended by the next one of its list.
    Item,
    /// `dt` and `dd`, ended by the next of either.
    Term,
    /// `ul`, `ol` and `dl`.
    List,
    /// `table`.
    Table,
    /// `thead`, `tbody`, `tfoot` and a table's `caption`.
    RowGroup,
    /// `tr`.
    Row,
    /// `td` and `th`.
    Cell,
    /// `a`: ends where another one starts.
    Link,
    /// Formatting within a line.
    Inline,
    /// `br`, `hr` and `img`: without content.
    Void,
}

/// A known element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element {
    /// The name, lower case.
    pub name: &'static str,
    /// Its part in nesting.
    pub role: Role,
}

/// An attribute's name and value.
pub(super) type Attribute = (String, String);

/// One step through the text. Every `Open` of an element that is not void has its `Close`.
#[derive(Debug)]
pub(super) enum Event<'a> {
    /// An element starts; no attribute name occurs twice.
    Open(Element, &'a [Attribute]),
    /// The innermost open element ends.
    Close(Element),
    /// Text with its entities resolved. It may hold any character.
    Text(&'a str),
}

/// Walks through `html` and hands each step to `sink`.
///
/// Linear in the length of `html`. Never fails: HTML has no invalid texts.
pub(super) fn walk(html: &str, sink: &mut dyn FnMut(Event<'_>)) {
    let mut walker = Walker::new(sink);
    {
        let mut emitter = CallbackEmitter::new(
            |event: CallbackEvent<'_>, span: Span<()>| -> Option<Infallible> {
                walker.handle_event(event, span)
            },
        );
        // Scripts, styles and the like must be read as the raw text they are.
        emitter.naively_switch_states(true);
        let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
    }
    walker.close_to(0);
}

struct Walker<'s> {
    sink: &'s mut dyn FnMut(Event<'_>),
    open: Vec<Element>,
    /// Start tags beyond [`DEPTH_MAX`] whose end tags must not close anything.
    beyond: usize,
    /// The raw-text element whose content is left out.
    dropping: Option<&'static str>,
    pending: Option<Element>,
    attribute: Option<String>,
    attributes: Vec<Attribute>,
}

impl<'s> Walker<'s> {
    fn new(sink: &'s mut dyn FnMut(Event<'_>)) -> Walker<'s> {
        Walker {
            sink,
            open: Vec::with_capacity(DEPTH_MAX),
            beyond: 0,
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
        let known = self.attributes.iter().any(|(earlier, _)| *earlier == name);
        let value = String::from_utf8_lossy(value);
        if !known && (!is_address(&name) || is_safe_address(&value)) {
            self.attributes.push((name, value.into_owned()));
        }
    }

    fn open_pending(&mut self) {
        let Some(element) = self.pending.take() else { return };
        self.close_implied(element.role);
        if element.role == Role::Void {
            (self.sink)(Event::Open(element, &self.attributes));
        } else if self.open.len() < DEPTH_MAX {
            (self.sink)(Event::Open(element, &self.attributes));
            self.open.push(element);
        } else {
            self.beyond += 1;
        }
    }

    /// Closes what the start of an element with `role` ends.
    fn close_implied(&mut self, role: Role) {
        match role {
            Role::Inline | Role::Void => {}
            Role::Link => self.close_last(&[Role::Link], &[Role::Cell, Role::Table]),
            Role::Item => self.close_last(&[Role::Item], &[Role::List, Role::Cell]),
            Role::Term => self.close_last(&[Role::Term], &[Role::List, Role::Cell]),
            Role::Cell => self.close_last(&[Role::Cell], &[Role::Row, Role::Table]),
            Role::Row => self.close_last(&[Role::Row], &[Role::Table, Role::RowGroup]),
            Role::RowGroup => self.close_last(&[Role::RowGroup, Role::Row], &[Role::Table]),
            Role::Heading => {
                self.close_last(&[Role::Heading, Role::Paragraph], &[Role::Cell, Role::Table]);
            }
            Role::Paragraph | Role::Block | Role::List | Role::Table => {
                self.close_last(&[Role::Paragraph], &[Role::Cell, Role::Table]);
            }
        }
    }

    /// Closes the outermost element with one of `roles` that stands within the innermost of
    /// `bounds`.
    fn close_last(&mut self, roles: &[Role], bounds: &[Role]) {
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
        if element.role == Role::Void {
            return;
        }
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        // An end tag in a cell does not reach out of the table.
        let reach = match element.role {
            Role::Table | Role::RowGroup | Role::Row | Role::Cell => 0,
            Role::Paragraph
            | Role::Block
            | Role::Heading
            | Role::Item
            | Role::Term
            | Role::List
            | Role::Link
            | Role::Inline
            | Role::Void => {
                self.open.iter().rposition(|open| open.role == Role::Cell).unwrap_or(0)
            }
        };
        if let Some(index) = self.open[reach..].iter().rposition(|open| open.name == element.name)
        {
            self.close_to(reach + index);
        }
    }

    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            if let Some(element) = self.open.pop() {
                (self.sink)(Event::Close(element));
            }
        }
    }
}

impl Callback<Infallible, ()> for Walker<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => self.start(name),
            CallbackEvent::AttributeName { name } => {
                // An attribute without a value has no second event and is left out.
                self.attribute = self.pending.and_then(|_| attribute_name(name));
            }
            CallbackEvent::AttributeValue { value } => self.attribute_value(value),
            CallbackEvent::CloseStartTag { .. } => self.open_pending(),
            CallbackEvent::EndTag { name } => self.end(name),
            CallbackEvent::String { value } => {
                if self.dropping.is_none() && !value.is_empty() {
                    (self.sink)(Event::Text(&String::from_utf8_lossy(value)));
                }
            }
            CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
        None
    }
}

/// Raw-text elements that go with their content.
const DROPPED: [&str; 6] = ["iframe", "noembed", "noframes", "script", "style", "title"];

/// The attributes that stay, in order. `data-…` stays too.
const ATTRIBUTES: [&str; 18] = [
    "alt", "cite", "class", "colspan", "datetime", "dir", "headers", "height", "href", "id",
    "lang", "rel", "rowspan", "scope", "src", "start", "title", "width",
];

fn attribute_name(name: &[u8]) -> Option<String> {
    let name = str::from_utf8(name).ok()?;
    let data = name.strip_prefix("data-").is_some_and(|rest| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !rest.is_empty() && rest.bytes().all(plain)
    });
    (data || ATTRIBUTES.binary_search(&name).is_ok()).then(|| name.to_owned())
}

fn is_address(attribute: &str) -> bool {
    matches!(attribute, "href" | "src" | "cite")
}

/// Tells whether an address may stay: relative, or one of the schemes that run nothing.
pub(super) fn is_safe_address(address: &str) -> bool {
    // Browsers skip white space and controls within a scheme.
    let mut characters = address.chars().filter(|c| !c.is_whitespace() && !c.is_control());
    let mut scheme = String::new();
    loop {
        match characters.next() {
            Some(':') => break,
            Some(c) if c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.') => {
                scheme.push(c.to_ascii_lowercase());
                if scheme.len() > 10 {
                    // Longer than any scheme below, but it may be a relative path.
                    return !characters.any(|c| c == ':');
                }
            }
            Some(_) | None => return true,
        }
    }
    matches!(scheme.as_str(), "http" | "https" | "mailto" | "tel" | "ftp")
}

fn element(name: &[u8]) -> Option<Element> {
    let index = ELEMENTS.binary_search_by(|(known, _)| known.as_bytes().cmp(name)).ok()?;
    let (name, role) = ELEMENTS[index];
    Some(Element { name, role })
}

/// The elements that stay, in order.
const ELEMENTS: [(&str, Role); 66] = [
    ("a", Role::Link),
    ("abbr", Role::Inline),
    ("address", Role::Block),
    ("article", Role::Block),
    ("aside", Role::Block),
    ("b", Role::Inline),
    ("bdi", Role::Inline),
    ("bdo", Role::Inline),
    ("blockquote", Role::Block),
    ("br", Role::Void),
    ("caption", Role::RowGroup),
    ("cite", Role::Inline),
    ("code", Role::Inline),
    ("dd", Role::Term),
    ("del", Role::Inline),
    ("details", Role::Block),
    ("dfn", Role::Inline),
    ("div", Role::Block),
    ("dl", Role::List),
    ("dt", Role::Term),
    ("em", Role::Inline),
    ("figcaption", Role::Block),
    ("figure", Role::Block),
    ("footer", Role::Block),
    ("h1", Role::Heading),
    ("h2", Role::Heading),
    ("h3", Role::Heading),
    ("h4", Role::Heading),
    ("h5", Role::Heading),
    ("h6", Role::Heading),
    ("header", Role::Block),
    ("hr", Role::Void),
    ("i", Role::Inline),
    ("img", Role::Void),
    ("ins", Role::Inline),
    ("kbd", Role::Inline),
    ("li", Role::Item),
    ("main", Role::Block),
    ("mark", Role::Inline),
    ("nav", Role::Block),
    ("ol", Role::List),
    ("p", Role::Paragraph),
    ("pre", Role::Block),
    ("q", Role::Inline),
    ("s", Role::Inline),
    ("samp", Role::Inline),
    ("section", Role::Block),
    ("small", Role::Inline),
    ("span", Role::Inline),
    ("strike", Role::Inline),
    ("strong", Role::Inline),
    ("sub", Role::Inline),
    ("summary", Role::Block),
    ("sup", Role::Inline),
    ("table", Role::Table),
    ("tbody", Role::RowGroup),
    ("td", Role::Cell),
    ("tfoot", Role::RowGroup),
    ("th", Role::Cell),
    ("thead", Role::RowGroup),
    ("time", Role::Inline),
    ("tr", Role::Row),
    ("u", Role::Inline),
    ("ul", Role::List),
    ("var", Role::Inline),
    ("wbr", Role::Void),
];
