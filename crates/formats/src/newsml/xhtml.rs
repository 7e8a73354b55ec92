//! An HTML body as well-formed XHTML.

use super::super::html;
use super::super::html::Event;
use super::super::html::Role;
use super::xml::Xml;
use std::io;

/// Writes an XHTML document with `title` and the elements of `html` that may stay.
pub(super) fn write(xml: &mut Xml<'_>, title: &str, html: &str) -> io::Result<()> {
    xml.open("html", [("xmlns", Some("http://www.w3.org/1999/xhtml"))])?;
    xml.open("head", [])?;
    xml.leaf("title", [], title)?;
    xml.close("head")?;
    xml.open("body", [])?;
    let mut written = Ok(());
    html::walk(html, &mut |event| {
        if written.is_ok() {
            written = write_event(xml, &event);
        }
    });
    written?;
    xml.close("body")?;
    xml.close("html")
}

fn write_event(xml: &mut Xml<'_>, event: &Event<'_>) -> io::Result<()> {
    match event {
        Event::Open(element, attributes) if element.role == Role::Void => {
            xml.empty_foreign(element.name, attributes)
        }
        Event::Open(element, attributes) => xml.open_foreign(element.name, attributes),
        Event::Close(element) => xml.close(element.name),
        Event::Text(text) => xml.text(text),
    }
}
