//! Writes XMP: one packet in UTF-8 with the fields of the caption, not truncated.
//!
//! The packet is formatted without an XML library, because its structure is fixed; the same caption
//! gives the same bytes. It has no padding for in-place editing, and no properties other than those of
//! the caption.

use crate::text;
use crate::xmp_read::{DC, IPTC_CORE, IPTC_EXT, PHOTOSHOP, PLUS, RDF, RIGHTS};
use crate::{Caption, lists, texts};
use jpeg::rewrite::segment as jpeg_segment;

/// Code of the APP1 marker.
const MARKER: u8 = 0xE1;
/// Signature of an XMP segment.
const SIGNATURE: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
/// Maximum bytes of a packet (XMP specification, part 3, 1.1.3.1), two fewer than fit into the segment.
pub(super) const PACKET_BYTES_MAX: usize = 65_502;
/// Maximum escaped bytes of a text, except the description, in a packet that is too large.
const TEXT_BYTES_SHORT: usize = 1_000;
/// Bytes that a list entry takes in addition to its escaped text.
const ENTRY_BYTES: usize = "<rdf:li></rdf:li>\n".len();

/// Writes the packet; empty if the caption has no field that is written to XMP.
pub(super) fn block(caption: &Caption) -> Vec<u8> {
    // A rendition without a caption carries no empty packet.
    if !caption.has_text() {
        return Vec::new();
    }
    let mut packet = print(caption);
    if packet.len() > PACKET_BYTES_MAX {
        packet = print(&shorten(caption, packet.len()));
    }
    packet.into_bytes()
}

/// Wraps a block in a JPEG segment; empty for an empty block.
pub(super) fn segment(block: &[u8]) -> Vec<u8> {
    if block.is_empty() { Vec::new() } else { jpeg_segment(MARKER, &[SIGNATURE, block]) }
}

/// Shortens a caption whose packet has `bytes` until it fits, in the order documented for `write`.
fn shorten(caption: &Caption, bytes: usize) -> Caption {
    let mut short = caption.clone();
    let mut excess = bytes.saturating_sub(PACKET_BYTES_MAX);
    // Lists go before texts, and `lists` begins with the most expendable one.
    for list in lists(&mut short) {
        while excess > 0
            && let Some(entry) = list.pop()
        {
            // Counted by entry, because printing the packet
            // after each of many entries would be quadratic.
            excess = excess.saturating_sub(escape(&entry).len() + ENTRY_BYTES);
        }
    }
    if excess == 0 {
        return short;
    }
    let mut all = texts(&mut short);
    // The description is the caption itself, so it is cut last.
    let Some((description, others)) = all.split_last_mut() else {
        return short;
    };
    for text in others {
        **text = cut_escaped(text, TEXT_BYTES_SHORT);
    }
    let full_description = std::mem::take(*description);
    // The description is empty here, so what is printed is everything else.
    let room = PACKET_BYTES_MAX.saturating_sub(print(&short).len() + description_frame());
    short.description = cut_escaped(&full_description, room);
    short
}

/// Returns the bytes that a description adds to a packet in addition to its text.
fn description_frame() -> usize {
    let mut out = String::new();
    // An empty text would print nothing at all, so a single character stands for it.
    alternative(&mut out, "dc:description", "x");
    out.len() - 1
}

/// Truncates a text so that it has at most `bytes_max` bytes when escaped.
fn cut_escaped(text: &str, bytes_max: usize) -> String {
    let mut bytes = 0;
    let end = text
        .char_indices()
        .find(|&(_, c)| {
            // The limit applies to escaped bytes: a text of ampersands grows fivefold.
            bytes += escaped(c).map_or(c.len_utf8(), str::len);
            bytes > bytes_max
        })
        .map_or(text.len(), |(at, _)| at);
    text::cut(text, end).to_owned()
}

/// Formats the whole packet, with its header and trailer.
///
/// The smallest packet that [`shorten`] leaves has about 20 kB: 16 texts of 1,000 bytes and the frame.
fn print(caption: &Caption) -> String {
    let mut out = String::new();
    // The id is the fixed one of the XMP specification, by which scanners find packets; the byte
    // order mark declares UTF-8.
    out.push_str("<?xpacket begin=\"\u{FEFF}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n");
    out.push_str("<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n");
    out.push_str(&format!("<rdf:RDF xmlns:rdf=\"{RDF}\">\n<rdf:Description rdf:about=\"\""));
    let namespaces = [
        ("dc", DC),
        ("photoshop", PHOTOSHOP),
        ("xmpRights", RIGHTS),
        ("plus", PLUS),
        ("Iptc4xmpCore", IPTC_CORE),
        ("Iptc4xmpExt", IPTC_EXT),
    ];
    for (prefix, uri) in namespaces {
        out.push_str(&format!("\n xmlns:{prefix}=\"{uri}\""));
    }
    out.push_str(">\n");
    alternative(&mut out, "dc:title", &caption.title);
    alternative(&mut out, "dc:description", &caption.description);
    list(&mut out, "dc:creator", "Seq", std::slice::from_ref(&caption.byline));
    alternative(&mut out, "dc:rights", &caption.copyright_notice);
    list(&mut out, "dc:subject", "Bag", &caption.keywords);
    list(&mut out, "dc:language", "Bag", std::slice::from_ref(&caption.language));
    simple(&mut out, "photoshop:Headline", &caption.headline);
    simple(&mut out, "photoshop:AuthorsPosition", &caption.byline_role);
    simple(&mut out, "photoshop:Credit", &caption.credit);
    simple(&mut out, "photoshop:Source", &caption.source);
    simple(&mut out, "photoshop:Instructions", &caption.instructions);
    simple(&mut out, "photoshop:City", &caption.city);
    simple(&mut out, "photoshop:Country", &caption.country);
    simple(&mut out, "photoshop:DateCreated", caption.created.as_deref().unwrap_or_default());
    simple(&mut out, "photoshop:TransmissionReference", &caption.transmission_reference);
    let urgency = caption.urgency.map(|urgency| urgency.to_string()).unwrap_or_default();
    simple(&mut out, "photoshop:Urgency", &urgency);
    alternative(&mut out, "xmpRights:UsageTerms", &caption.usage_terms);
    owner(&mut out, &caption.copyright_holder);
    simple(&mut out, "Iptc4xmpCore:CountryCode", &caption.country_code);
    list(&mut out, "Iptc4xmpCore:SubjectCode", "Bag", &caption.subject_codes);
    list(&mut out, "Iptc4xmpExt:PersonInImage", "Bag", &caption.persons);
    simple(&mut out, "Iptc4xmpExt:DigImageGUID", &caption.uri);
    out.push_str("</rdf:Description>\n</rdf:RDF>\n</x:xmpmeta>\n<?xpacket end=\"w\"?>");
    out
}

fn simple(out: &mut String, name: &str, text: &str) {
    if !text.is_empty() {
        out.push_str(&format!("<{name}>{}</{name}>\n", escape(text)));
    }
}

/// Formats a language alternative with one entry, the default language.
fn alternative(out: &mut String, name: &str, text: &str) {
    if !text.is_empty() {
        out.push_str(&format!(
            "<{name}><rdf:Alt><rdf:li xml:lang=\"x-default\">{}</rdf:li></rdf:Alt></{name}>\n",
            escape(text)
        ));
    }
}

fn list(out: &mut String, name: &str, kind: &str, entries: &[String]) {
    // `byline` and `language` arrive as lists of one entry, which may be empty.
    if entries.iter().all(String::is_empty) {
        return;
    }
    out.push_str(&format!("<{name}><rdf:{kind}>\n"));
    for entry in entries {
        out.push_str(&format!("<rdf:li>{}</rdf:li>\n", escape(entry)));
    }
    out.push_str(&format!("</rdf:{kind}></{name}>\n"));
}

/// Formats the copyright owner, which is a list of structures, with one entry.
fn owner(out: &mut String, holder: &str) {
    if !holder.is_empty() {
        out.push_str(&format!(
            "<plus:CopyrightOwner><rdf:Seq><rdf:li rdf:parseType=\"Resource\">\
             <plus:CopyrightOwnerName>{}</plus:CopyrightOwnerName>\
             </rdf:li></rdf:Seq></plus:CopyrightOwner>\n",
            escape(holder)
        ));
    }
}

/// Returns the entity for a character that must be escaped in XML text. `>` is escaped because of `]]>`.
fn escaped(c: char) -> Option<&'static str> {
    match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        _ => None,
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match escaped(c) {
            Some(entity) => out.push_str(entity),
            None => out.push(c),
        }
    }
    out
}
