//! Writes an HTML body as well-formed XHTML.

use super::super::html::{self, HtmlEvent};
use super::xml::XmlWriter;

/// Writes an XHTML document with `title` and the allowed elements of `html`.
pub(super) fn write(xml: &mut XmlWriter, title: &str, html: &str) {
    xml.open("html", [("xmlns", Some("http://www.w3.org/1999/xhtml"))]);
    xml.open("head", []);
    xml.leaf("title", [], title);
    xml.close("head");
    xml.open("body", []);
    html::walk(html, &mut |event| match event {
        HtmlEvent::Open(element, attributes) => xml.open_html(element, attributes),
        HtmlEvent::Close(element) => xml.close(element.name),
        HtmlEvent::Text(text) => xml.text(text),
    });
    xml.close("body");
    xml.close("html");
}
