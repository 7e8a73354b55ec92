//! Writes an HTML body as well-formed XHTML.

use super::super::html::{self, HtmlEvent};
use super::xml::XmlWriter;
use std::io;

/// Writes an XHTML document with `title` and the allowed elements of `html`.
pub(super) fn write(xml: &mut XmlWriter<'_>, title: &str, html: &str) -> io::Result<()> {
    xml.open("html", [("xmlns", Some("http://www.w3.org/1999/xhtml"))])?;
    xml.open("head", [])?;
    xml.leaf("title", [], title)?;
    xml.close("head")?;
    xml.open("body", [])?;
    let mut written = Ok(());
    // The walk cannot be stopped, so the events after an error are ignored.
    html::walk(html, &mut |event| {
        if written.is_ok() {
            written = match event {
                HtmlEvent::Open(element, attributes) => xml.open_html(element, attributes),
                HtmlEvent::Close(element) => xml.close(element.name),
                HtmlEvent::Text(text) => xml.text(text),
            };
        }
    });
    written?;
    xml.close("body")?;
    xml.close("html")
}
