//! Writes XML elements. All escaping happens here.

use super::lexical;
use crate::html::{ElementRole, HtmlElement};
use quick_xml::Writer;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use quick_xml::name::QName;
use std::borrow::Cow;

/// Attributes, each written only if it has a value.
pub(super) type Attributes<'a, const N: usize> = [(&'static str, Option<&'a str>); N];

/// A writer of elements with escaped text.
pub(super) struct XmlWriter {
    writer: Writer<Vec<u8>>,
}

impl XmlWriter {
    /// Starts a document in UTF-8.
    pub(super) fn start() -> XmlWriter {
        let mut xml = XmlWriter { writer: Writer::new(Vec::new()) };
        xml.event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)));
        xml
    }

    /// Returns the bytes of the document.
    pub(super) fn finish(self) -> Vec<u8> {
        self.writer.into_inner()
    }

    fn event(&mut self, event: Event<'_>) {
        self.writer.write_event(event).expect("a list of bytes accepts all");
    }

    /// Opens an element of the schema.
    pub(super) fn open<const N: usize>(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_, N>,
    ) {
        self.event(Event::Start(start(name, attributes)));
    }

    /// Opens an element of HTML, or writes it whole if it is void.
    pub(super) fn open_html(&mut self, element: HtmlElement, attributes: &[(String, String)]) {
        let attributes = attributes.iter().map(|(key, value)| attribute(key, value));
        let start = BytesStart::new(element.name).with_attributes(attributes);
        let is_void = element.role == ElementRole::Void;
        self.event(if is_void { Event::Empty(start) } else { Event::Start(start) });
    }

    /// Closes the innermost element, which must have this name.
    pub(super) fn close(&mut self, name: &'static str) {
        self.event(Event::End(BytesEnd::new(name)));
    }

    /// Writes an element without content.
    pub(super) fn empty<const N: usize>(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_, N>,
    ) {
        self.event(Event::Empty(start(name, attributes)));
    }

    /// Writes an element that contains only text.
    pub(super) fn leaf<const N: usize>(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_, N>,
        text: &str,
    ) {
        self.open(name, attributes);
        self.text(text);
        self.close(name);
    }

    /// Writes an element that contains only text, or nothing without a text.
    pub(super) fn leaf_if_any<const N: usize>(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_, N>,
        text: Option<&str>,
    ) {
        if let Some(text) = text {
            self.leaf(name, attributes, text);
        }
    }

    /// Writes text, escaping it.
    pub(super) fn text(&mut self, text: &str) {
        // Not left to quick-xml, which does not remove the characters that XML forbids.
        let escaped = escape(text, text_entity);
        self.event(Event::Text(BytesText::from_escaped(escaped)));
    }
}

fn start<'a, const N: usize>(name: &'static str, attributes: Attributes<'a, N>) -> BytesStart<'a> {
    let given = attributes.into_iter().filter_map(|(key, value)| Some(attribute(key, value?)));
    BytesStart::new(name).with_attributes(given)
}

fn attribute<'a>(key: &'a str, value: &'a str) -> Attribute<'a> {
    let value = match escape(value, attribute_entity) {
        Cow::Borrowed(value) => Cow::Borrowed(value.as_bytes()),
        Cow::Owned(value) => Cow::Owned(value.into_bytes()),
    };
    Attribute { key: QName(key.as_bytes()), value }
}

/// Returns the entity for an ASCII byte of text that must be escaped: `>` because of `]]>`, and a carriage return
/// because parsers convert it to a line feed.
fn text_entity(byte: u8) -> Option<&'static str> {
    match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        b'\r' => Some("&#13;"),
        _ => None,
    }
}

/// Returns the entity for an ASCII byte of an attribute. Parsers convert unescaped tabs and line ends there to
/// spaces.
fn attribute_entity(byte: u8) -> Option<&'static str> {
    match byte {
        b'"' => Some("&quot;"),
        b'\t' => Some("&#9;"),
        b'\n' => Some("&#10;"),
        _ => text_entity(byte),
    }
}

fn escape(text: &str, entity: fn(u8) -> Option<&'static str>) -> Cow<'_, str> {
    // Most texts need no change and are written without a copy.
    let Some(first) = text.bytes().position(|byte| !is_plain(byte, entity)) else {
        return text.into();
    };
    let mut escaped = String::with_capacity(text.len() + 16);
    escaped.push_str(&text[..first]);
    for c in text[first..].chars() {
        match u8::try_from(c).ok().filter(u8::is_ascii).and_then(entity) {
            Some(entity) => escaped.push_str(entity),
            None if lexical::is_xml(c) => escaped.push(c),
            None => {}
        }
    }
    escaped.into()
}

/// Returns whether a byte is written unchanged.
fn is_plain(byte: u8, entity: fn(u8) -> Option<&'static str>) -> bool {
    // 0xef starts U+F000 to U+FFFF, which include the two code points that XML does not allow.
    (byte >= b' ' || byte == b'\t') && byte != 0xef && entity(byte).is_none()
}
