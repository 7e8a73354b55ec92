//! Writes XMP: a packet in UTF-8 with the properties of a file.
//!
//! The packet is formatted without an XML library, because its structure is fixed; the same properties give the
//! same bytes. It has no padding for in-place editing. A JPEG segment is too small for some packets: for a JPEG
//! file they are split into a main packet and extended XMP (XMP specification, part 3, 1.1.3.1).

use std::borrow::Cow;
use std::collections::BTreeSet;

use quick_xml::escape::partial_escape;
use serde_json::Value;

use crate::cut_order::{CUT_ORDER, CutMethod};
use crate::properties::NamedValue;
use crate::rdf_read::RDF;
use crate::rights::member::{Member, ValueKind, XmpNamespace};
use crate::rights::values::{X_DEFAULT, default_text, print_number};
use crate::{SplitXmp, text};
use jpeg::rewrite::{PAYLOAD_BYTES_MAX, segment as jpeg_segment};

/// Code of the APP1 marker.
const MARKER: u8 = 0xE1;
/// Signature of an XMP segment.
const SIGNATURE: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
/// Signature of a segment of extended XMP. A GUID, the whole length and an offset follow it.
const EXTENSION: &[u8] = b"http://ns.adobe.com/xmp/extension/\0";
/// Bytes of the GUID of extended XMP.
const GUID_BYTES: usize = 32;
/// Maximum bytes of extended XMP in a segment.
const EXTENSION_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - EXTENSION.len() - GUID_BYTES - 4 - 4;
/// Maximum bytes of a packet in a JPEG segment (XMP specification, part 3, 1.1.3.1). Two more bytes would fit.
pub(super) const SEGMENT_PACKET_BYTES_MAX: usize = 65_502;
/// Maximum bytes of a packet. Every rendition carries the packet, so a document must not inflate it.
pub(super) const PACKET_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a packet around its properties, with all namespaces and the reference to extended XMP.
const FRAME_BYTES_MAX: usize = 1_200;
/// Maximum escaped bytes of a text, except the description, in a packet that is too large.
const TEXT_BYTES_SHORT: usize = 1_000;
/// Bytes of a list entry in addition to its escaped text.
const ENTRY_BYTES: usize = "<rdf:li></rdf:li>".len();

/// A property with its XML.
struct PrintedProperty<'a> {
    member: &'static Member,
    value: Cow<'a, Value>,
    xml: String,
    namespaces: BTreeSet<XmpNamespace>,
}

/// Writes the packet of these properties, and its parts for JPEG if it does not fit into a segment. The packet is
/// empty if there are no properties.
pub(super) fn blocks(properties: Vec<NamedValue<'_>>) -> (Vec<u8>, Option<SplitXmp>) {
    let mut printed: Vec<PrintedProperty<'_>> = properties
        .into_iter()
        .map(|(member, value)| PrintedProperty::new(member, value))
        .collect();
    // A rendition without properties carries no empty packet.
    if printed.is_empty() {
        return (Vec::new(), None);
    }
    cut(&mut printed);
    let packet = wrapped(&rdf(&printed.iter().collect::<Vec<_>>(), None));
    let split = (packet.len() > SEGMENT_PACKET_BYTES_MAX).then(|| split(&printed));
    (packet, split)
}

/// Wraps a packet in a JPEG segment; empty for an empty packet.
pub(super) fn segment(packet: &[u8]) -> Vec<u8> {
    if packet.is_empty() { Vec::new() } else { jpeg_segment(MARKER, &[SIGNATURE, packet]) }
}

/// Wraps a main packet and extended XMP in JPEG segments.
pub(super) fn split_segments(split: &SplitXmp) -> Vec<u8> {
    let guid = guid(&split.extended);
    let length = u32::try_from(split.extended.len()).expect("at most 256 KiB").to_be_bytes();
    let mut segments = segment(&split.main);
    let mut offset = 0_u32;
    for part in split.extended.chunks(EXTENSION_BYTES_MAX) {
        let parts = [EXTENSION, guid.as_bytes(), &length, &offset.to_be_bytes(), part];
        segments.extend(jpeg_segment(MARKER, &parts));
        offset += u32::try_from(part.len()).expect("less than a segment");
    }
    segments
}

fn bytes(printed: &[PrintedProperty<'_>]) -> usize {
    printed.iter().map(|property| property.xml.len()).sum()
}

/// Makes properties smaller, in [`CUT_ORDER`], until the packet has at most [`PACKET_BYTES_MAX`] bytes.
fn cut(printed: &mut Vec<PrintedProperty<'_>>) {
    let mut excess = (bytes(printed) + FRAME_BYTES_MAX).saturating_sub(PACKET_BYTES_MAX);
    for (name, method) in CUT_ORDER {
        if excess == 0 {
            return;
        }
        let Some(index) = printed.iter().position(|property| property.member.name == name) else {
            continue;
        };
        let PrintedProperty { member, mut value, xml, .. } = printed.remove(index);
        cut_value(value.to_mut(), method, excess);
        if is_empty(&value) {
            excess = excess.saturating_sub(xml.len());
        } else {
            let shorter = PrintedProperty::new(member, value);
            excess = excess.saturating_sub(xml.len() - shorter.xml.len());
            printed.insert(index, shorter);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.iter().all(is_empty),
        Value::Object(members) => members.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Reduces a value by `excess` bytes if its method allows that; a dropped value becomes null.
fn cut_value(value: &mut Value, method: CutMethod, excess: usize) {
    match method {
        CutMethod::Whole => *value = Value::Null,
        CutMethod::Entries => {
            let mut excess = excess;
            while let Some(entry) = value.as_array_mut().filter(|_| excess > 0).and_then(Vec::pop)
            {
                // Counted by entry, because printing the list after each of many entries would be quadratic.
                let text = partial_escape(default_text(&entry));
                excess = excess.saturating_sub(text.len() + ENTRY_BYTES);
            }
        }
        CutMethod::Text => cut_texts(value, TEXT_BYTES_SHORT),
        CutMethod::Rest => {
            let room = partial_escape(default_text(value)).len().saturating_sub(excess);
            cut_texts(value, room);
        }
    }
}

/// Reduces a value to its default language and cuts the text, or each text of a list.
fn cut_texts(value: &mut Value, bytes_max: usize) {
    match value {
        Value::Array(entries) => {
            for entry in entries {
                cut_texts(entry, bytes_max);
            }
        }
        Value::Object(_) => {
            let text = cut_escaped(default_text(value), bytes_max);
            *value = serde_json::json!({ X_DEFAULT: text });
        }
        Value::String(text) => *text = cut_escaped(text, bytes_max),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Truncates a text so that it has at most `bytes_max` bytes when escaped.
fn cut_escaped(text: &str, bytes_max: usize) -> String {
    let mut bytes = 0;
    let end = text
        .char_indices()
        .find(|&(_, c)| {
            // The limit applies to escaped bytes: a text of ampersands grows fivefold.
            bytes += match c {
                '&' => "&amp;".len(),
                '<' | '>' => "&lt;".len(),
                _ => c.len_utf8(),
            };
            bytes > bytes_max
        })
        .map_or(text.len(), |(at, _)| at);
    text::cut(text, end).to_owned()
}

/// Splits the properties into a main packet that fits into a segment, and extended XMP.
fn split(printed: &[PrintedProperty<'_>]) -> SplitXmp {
    let mut main: Vec<_> = printed.iter().collect();
    let mut extended = Vec::new();
    let room = SEGMENT_PACKET_BYTES_MAX - FRAME_BYTES_MAX;
    let mut excess = bytes(printed).saturating_sub(room);
    for (name, _) in CUT_ORDER {
        if excess == 0 {
            break;
        }
        if let Some(index) = main.iter().position(|property| property.member.name == name) {
            let moved = main.remove(index);
            excess = excess.saturating_sub(moved.xml.len());
            extended.push(moved);
        }
    }
    let extended = rdf(&extended, None).into_bytes();
    let main = wrapped(&rdf(&main, Some(&guid(&extended))));
    debug_assert!(main.len() <= SEGMENT_PACKET_BYTES_MAX, "what cannot be moved is short");
    SplitXmp { main, extended }
}

/// Returns the GUID of extended XMP: its MD5 digest in upper-case hexadecimal.
fn guid(extended: &[u8]) -> String {
    format!("{:X}", md5::compute(extended))
}

/// Formats properties with the RDF around them; `guid` refers to extended XMP.
///
/// Only the namespaces that occur are declared, because thumbnails are small.
fn rdf(properties: &[&PrintedProperty<'_>], guid: Option<&str>) -> String {
    let all = properties.iter().flat_map(|property| &property.namespaces).copied();
    let declared: BTreeSet<_> = all.chain(guid.map(|_| XmpNamespace::XmpNote)).collect();
    let bytes: usize = properties.iter().map(|property| property.xml.len()).sum();
    let mut out = String::with_capacity(FRAME_BYTES_MAX + bytes);
    out.push_str("<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n");
    out.push_str(&format!("<rdf:RDF xmlns:rdf=\"{RDF}\">\n<rdf:Description rdf:about=\"\""));
    for namespace in declared {
        out.push_str(&format!("\n xmlns:{}=\"{}\"", namespace.prefix(), namespace.uri()));
    }
    out.push_str(">\n");
    for property in properties {
        out.push_str(&property.xml);
    }
    if let Some(guid) = guid {
        out.push_str(&format!("<xmpNote:HasExtendedXMP>{guid}</xmpNote:HasExtendedXMP>\n"));
    }
    out.push_str("</rdf:Description>\n</rdf:RDF>\n</x:xmpmeta>");
    out
}

/// Adds the header and the trailer of a packet.
fn wrapped(rdf: &str) -> Vec<u8> {
    // The XMP specification fixes the id, by which scanners find packets; the byte order mark declares UTF-8.
    let header = "<?xpacket begin=\"\u{FEFF}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n";
    [header, rdf, "\n<?xpacket end=\"w\"?>"].concat().into_bytes()
}

impl<'a> PrintedProperty<'a> {
    /// Formats a property, with a line feed.
    fn new(member: &'static Member, value: Cow<'a, Value>) -> PrintedProperty<'a> {
        let mut printer = XmlPrinter { out: String::new(), namespaces: BTreeSet::new() };
        printer.member(member, &value);
        printer.out.push('\n');
        let XmlPrinter { out: xml, namespaces } = printer;
        PrintedProperty { member, value, xml, namespaces }
    }
}

/// The XML of a property, and the namespaces of its elements.
struct XmlPrinter {
    out: String,
    namespaces: BTreeSet<XmpNamespace>,
}

impl XmlPrinter {
    fn push(&mut self, parts: &[&str]) {
        for part in parts {
            self.out.push_str(part);
        }
    }

    fn member(&mut self, member: &Member, value: &Value) {
        self.namespaces.insert(member.namespace);
        let prefix = member.namespace.prefix();
        let local = member.local;
        let attribute = match member.kind.structure() {
            Some(_) => " rdf:parseType=\"Resource\"",
            None => "",
        };
        if let Some(container) = member.many {
            let container = container.element();
            self.push(&["<", prefix, ":", local, "><rdf:", container, ">"]);
            for entry in value.as_array().into_iter().flatten() {
                self.push(&["<rdf:li", attribute, ">"]);
                self.value(member.kind, entry);
                self.push(&["</rdf:li>"]);
            }
            self.push(&["</rdf:", container, "></", prefix, ":", local, ">"]);
        } else {
            self.push(&["<", prefix, ":", local, attribute, ">"]);
            self.value(member.kind, value);
            self.push(&["</", prefix, ":", local, ">"]);
        }
    }

    fn value(&mut self, kind: ValueKind, value: &Value) {
        match kind {
            ValueKind::Structure(structure) => {
                for member in structure.members() {
                    if let Some(value) = value.get(member.name) {
                        self.member(member, value);
                    }
                }
            }
            ValueKind::AltLang => {
                self.push(&["<rdf:Alt>"]);
                for (language, text) in value.as_object().into_iter().flatten() {
                    self.push(&["<rdf:li xml:lang=\"", language, "\">"]);
                    self.out.push_str(&partial_escape(default_text(text)));
                    self.push(&["</rdf:li>"]);
                }
                self.push(&["</rdf:Alt>"]);
            }
            ValueKind::Text
            | ValueKind::Uri
            | ValueKind::Url
            | ValueKind::DateTime
            | ValueKind::Vocabulary(_) => {
                self.out.push_str(&partial_escape(default_text(value)));
            }
            ValueKind::Number(kind) => self.out.push_str(&print_number(kind, value)),
        }
    }
}
