//! Reads XMP: the subset of RDF in XML that captions need.
//!
//! RDF has several notations for the same fact. A property may be an attribute or an element of
//! `rdf:Description`; its value may be a text, a resource, or a list whose entries are alternatives by
//! language (`Alt`), ordered (`Seq`) or unordered (`Bag`). Prefixes are arbitrary; only namespaces count:
//!
//! ```xml
//! <x:xmpmeta xmlns:x="adobe:ns:meta/">
//!  <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
//!   <rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"
//!      xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" photoshop:City="Åre">
//!    <dc:description><rdf:Alt><rdf:li xml:lang="x-default">Snö</rdf:li></rdf:Alt></dc:description>
//! ```
//!
//! The reader is a loop over events with a stack of open elements, so it does not recurse. A DTD is
//! refused; the only supported entities are the five predefined ones and character references.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

use crate::date_time::PartialDateTime;
use crate::{
    Caption, LIST_ENTRIES_MAX, StandardFields, TEXT_BYTES_MAX, is_position, push, set_if_absent,
    text,
};
use jpeg::embedded::GUID_BYTES;
use jpeg::header::JpegHeader;

/// Maximum bytes of a packet that are read; extended XMP can hold long editing histories.
const PACKET_BYTES_MAX: usize = 4 << 20;
/// Maximum nesting depth of elements; a caption needs nine.
const DEPTH_MAX: usize = 32;
/// Maximum number of namespaces that one element may declare; Adobe's packets declare about thirty.
const NAMESPACES_MAX: usize = 128;
/// Maximum number of names that are resolved, because each costs a search of all namespaces in scope.
/// Names inside ignored elements, such as an editing history, do not count.
const NAMES_MAX: usize = 20_000;

pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
pub(super) const DC: &str = "http://purl.org/dc/elements/1.1/";
pub(super) const PHOTOSHOP: &str = "http://ns.adobe.com/photoshop/1.0/";
pub(super) const RIGHTS: &str = "http://ns.adobe.com/xap/1.0/rights/";
pub(super) const PLUS: &str = "http://ns.useplus.org/ldf/xmp/1.0/";
pub(super) const IPTC_CORE: &str = "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/";
pub(super) const IPTC_EXT: &str = "http://iptc.org/std/Iptc4xmpExt/2008-02-29/";
const EXIF: &str = "http://ns.adobe.com/exif/1.0/";
const NOTE: &str = "http://ns.adobe.com/xmp/note/";
const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// The XMP properties that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum XmpProperty {
    Headline,
    Title,
    Description,
    Byline,
    BylineRole,
    Credit,
    Source,
    CopyrightNotice,
    CopyrightHolder,
    UsageTerms,
    Instructions,
    City,
    Country,
    CountryCode,
    Latitude,
    Longitude,
    Persons,
    SubjectCodes,
    Keywords,
    Created,
    TransmissionReference,
    Urgency,
    Uri,
    Language,
    ExtendedXmp,
}

/// Namespace and local name of every property.
const PROPERTIES: [(&str, &str, XmpProperty); 25] = [
    (PHOTOSHOP, "Headline", XmpProperty::Headline),
    (DC, "title", XmpProperty::Title),
    (DC, "description", XmpProperty::Description),
    (DC, "creator", XmpProperty::Byline),
    (PHOTOSHOP, "AuthorsPosition", XmpProperty::BylineRole),
    (PHOTOSHOP, "Credit", XmpProperty::Credit),
    (PHOTOSHOP, "Source", XmpProperty::Source),
    (DC, "rights", XmpProperty::CopyrightNotice),
    (PLUS, "CopyrightOwner", XmpProperty::CopyrightHolder),
    (RIGHTS, "UsageTerms", XmpProperty::UsageTerms),
    (PHOTOSHOP, "Instructions", XmpProperty::Instructions),
    (PHOTOSHOP, "City", XmpProperty::City),
    (PHOTOSHOP, "Country", XmpProperty::Country),
    (IPTC_CORE, "CountryCode", XmpProperty::CountryCode),
    (EXIF, "GPSLatitude", XmpProperty::Latitude),
    (EXIF, "GPSLongitude", XmpProperty::Longitude),
    (IPTC_EXT, "PersonInImage", XmpProperty::Persons),
    (IPTC_CORE, "SubjectCode", XmpProperty::SubjectCodes),
    (DC, "subject", XmpProperty::Keywords),
    (PHOTOSHOP, "DateCreated", XmpProperty::Created),
    (PHOTOSHOP, "TransmissionReference", XmpProperty::TransmissionReference),
    (PHOTOSHOP, "Urgency", XmpProperty::Urgency),
    (IPTC_EXT, "DigImageGUID", XmpProperty::Uri),
    (DC, "language", XmpProperty::Language),
    (NOTE, "HasExtendedXMP", XmpProperty::ExtendedXmp),
];

/// Reads the XMP of a file: the main packet, then extended XMP for properties that the main one lacks.
pub(super) fn read(
    header: &JpegHeader,
    jpeg: &[u8],
    warnings: &mut Vec<String>,
) -> StandardFields {
    let mut packet = XmpPacket::default();
    if let Some(bytes) = header.xmp(jpeg) {
        packet.read(bytes, warnings);
    }
    // The main packet names its extension by the digest of its bytes. Segments with another digest
    // are left over from an earlier version of the file.
    let guid = std::mem::take(&mut packet.extended_xmp);
    if guid.len() == GUID_BYTES {
        let extended = header.extended_xmp(jpeg, guid.as_bytes());
        warnings.extend(extended.damage.map(|damage| damage.to_string()));
        if let Some(bytes) = extended.value {
            packet.read(&bytes, warnings);
        }
    }
    packet.fields()
}

/// A value of a property, with its language in lower case if it has one.
struct XmpValue {
    language: Option<String>,
    text: String,
}

/// The role of an open element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum XmpElement {
    /// An element of the packet's frame, outside any property.
    Frame,
    /// An `rdf:Description` whose children are properties of the photograph.
    Description,
    /// A property that is read; its own text is its value unless it contains a list.
    Property,
    /// An `rdf:Alt`, `rdf:Seq` or `rdf:Bag`, or a structure around values.
    Group,
    /// A value: `rdf:li`, `rdf:value`, or the name in `plus:CopyrightOwner`.
    Value,
    /// An element that is ignored with all its contents.
    Other,
}

/// The properties that have been read so far from all packets.
#[derive(Default)]
struct XmpPacket {
    caption: Caption,
    created: Option<PartialDateTime>,
    latitude: Option<f64>,
    longitude: Option<f64>,
    extended_xmp: String,
}

/// The state of the parser for one packet.
struct XmpParser<'p> {
    packet: &'p mut XmpPacket,
    open: Vec<XmpElement>,
    /// The property whose element is open; `None` outside properties.
    property: Option<XmpProperty>,
    /// The values of the open property.
    entries: Vec<XmpValue>,
    /// Language of the value that is being read.
    language: Option<String>,
    /// Text of the value that is being read.
    text: String,
    unknown_entity: bool,
    /// Number of names that were resolved, limited by [`NAMES_MAX`].
    names: usize,
}

impl XmpPacket {
    /// Reads a packet; does not overwrite properties that are already set.
    fn read(&mut self, bytes: &[u8], warnings: &mut Vec<String>) {
        let prefix = bytes.get(..PACKET_BYTES_MAX).unwrap_or(bytes);
        if prefix.len() < bytes.len() {
            warnings.push(format!("xmp has more than {PACKET_BYTES_MAX} bytes"));
        }
        // One bad byte costs one character and a warning, not the caption.
        let decoded = String::from_utf8_lossy(prefix);
        let mut parser = XmpParser {
            packet: self,
            open: Vec::new(),
            property: None,
            entries: Vec::new(),
            language: None,
            text: String::new(),
            unknown_entity: false,
            names: 0,
        };
        // Broken metadata never refuses a photograph (contract ingest-2).
        if let Err(problem) = parser.run(&decoded) {
            warnings.push(format!("xmp {problem}"));
        }
        if parser.unknown_entity {
            warnings.push("xmp refers to an unknown entity".to_owned());
        }
        if matches!(decoded, std::borrow::Cow::Owned(_)) {
            warnings.push("xmp is not valid utf-8".to_owned());
        }
    }

    fn fields(self) -> StandardFields {
        // The two coordinates are separate properties, so
        // only here is it known whether both are present.
        let mut caption = self.caption;
        caption.position = self
            .latitude
            .zip(self.longitude)
            .filter(|(latitude, longitude)| is_position(*latitude, *longitude));
        StandardFields { caption, created: self.created }
    }

    /// Stores the entries of a property unless it is already set.
    fn apply_property(&mut self, property: XmpProperty, entries: &[XmpValue]) {
        let caption = &mut self.caption;
        let first = entries.first().map(|entry| entry.text.as_str()).unwrap_or_default();
        match property {
            XmpProperty::Headline => set_if_absent(&mut caption.headline, default_text(entries)),
            XmpProperty::Title => set_if_absent(&mut caption.title, default_text(entries)),
            XmpProperty::Description => {
                set_if_absent(&mut caption.description, default_text(entries));
            }
            XmpProperty::Byline => set_if_absent(&mut caption.byline, &joined_text(entries)),
            XmpProperty::BylineRole => {
                set_if_absent(&mut caption.byline_role, default_text(entries));
            }
            XmpProperty::Credit => set_if_absent(&mut caption.credit, default_text(entries)),
            XmpProperty::Source => set_if_absent(&mut caption.source, default_text(entries)),
            XmpProperty::CopyrightNotice => {
                set_if_absent(&mut caption.copyright_notice, default_text(entries));
            }
            XmpProperty::CopyrightHolder => {
                set_if_absent(&mut caption.copyright_holder, &joined_text(entries));
            }
            XmpProperty::UsageTerms => {
                set_if_absent(&mut caption.usage_terms, default_text(entries));
            }
            XmpProperty::Instructions => {
                set_if_absent(&mut caption.instructions, default_text(entries));
            }
            XmpProperty::City => set_if_absent(&mut caption.city, default_text(entries)),
            XmpProperty::Country => set_if_absent(&mut caption.country, default_text(entries)),
            XmpProperty::CountryCode => {
                set_if_absent(&mut caption.country_code, default_text(entries));
            }
            // A coordinate or date that does not parse leaves the field open for extended XMP.
            XmpProperty::Latitude => self.latitude = self.latitude.or(degrees(first)),
            XmpProperty::Longitude => self.longitude = self.longitude.or(degrees(first)),
            XmpProperty::Persons => fill_list(&mut caption.persons, entries),
            XmpProperty::SubjectCodes => fill_list(&mut caption.subject_codes, entries),
            XmpProperty::Keywords => fill_list(&mut caption.keywords, entries),
            XmpProperty::Created => {
                self.created = self.created.take().or_else(|| PartialDateTime::parse(first));
            }
            XmpProperty::TransmissionReference => {
                set_if_absent(&mut caption.transmission_reference, default_text(entries));
            }
            XmpProperty::Urgency => {
                let urgency = first.parse().ok().filter(|urgency| (1..=9).contains(urgency));
                caption.urgency = caption.urgency.or(urgency);
            }
            XmpProperty::Uri => set_if_absent(&mut caption.uri, default_text(entries)),
            XmpProperty::Language => set_if_absent(&mut caption.language, first),
            XmpProperty::ExtendedXmp => set_if_absent(&mut self.extended_xmp, first),
        }
    }
}

impl XmpParser<'_> {
    /// Reads all events; on an error, the properties read so far are kept.
    fn run(&mut self, packet: &str) -> Result<(), String> {
        let mut reader = NsReader::from_str(packet);
        reader.resolver_mut().set_max_declarations_per_element(NAMESPACES_MAX);
        loop {
            // Checked for every event, because attributes count as well as elements.
            if self.names > NAMES_MAX {
                return Err(format!("has more than {NAMES_MAX} names"));
            }
            let before = reader.buffer_position();
            let event =
                reader.read_event().map_err(|_| format!("is not well-formed at byte {before}"))?;
            match event {
                Event::Start(start) => {
                    // The stack is on the heap, but a packet of nothing but start tags would make
                    // it as large as the packet.
                    if self.open.len() == DEPTH_MAX {
                        return Err(format!("is nested deeper than {DEPTH_MAX} elements"));
                    }
                    self.start(&reader, &start);
                }
                Event::Empty(start) => {
                    self.start(&reader, &start);
                    self.end();
                }
                Event::End(_) => self.end(),
                Event::Text(text) => self.text(&text.xml10_content().unwrap_or_default()),
                Event::CData(text) => self.text(&text.xml10_content().unwrap_or_default()),
                Event::GeneralRef(entity) => {
                    let name = entity.decode().unwrap_or_default();
                    match (entity.resolve_char_ref(), resolve_predefined_entity(&name)) {
                        (Ok(Some(character)), _) => self.text(character.encode_utf8(&mut [0; 4])),
                        (_, Some(text)) => self.text(text),
                        // An undeclared entity or a broken character reference; the text without
                        // it is better than no text.
                        _ => self.unknown_entity = true,
                    }
                }
                // Entities of a DTD can expand exponentially, and no XMP writer needs one.
                Event::DocType(_) => return Err("has a document type definition".to_owned()),
                Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
                Event::Eof if self.open.is_empty() => return Ok(()),
                // quick-xml does not report open elements at the end.
                Event::Eof => return Err("ends in the middle".to_owned()),
            }
        }
    }

    fn start(&mut self, reader: &NsReader<&[u8]>, start: &BytesStart<'_>) {
        let parent = self.open.last().copied().unwrap_or(XmpElement::Frame);
        if parent == XmpElement::Other {
            // The contents are ignored, so names need not be resolved.
            self.open.push(XmpElement::Other);
            return;
        }
        self.names += 1;
        let (namespace, local) = reader.resolver().resolve_element(start.name());
        let name = (uri(&namespace), local.into_inner());
        let element = self.classify(parent, name);
        if element == XmpElement::Property {
            self.property = property(name);
            self.entries.clear();
        }
        // A value starts empty, or the white space between
        // the property and its list would precede it.
        if matches!(element, XmpElement::Property | XmpElement::Value) {
            self.language = None;
            self.text.clear();
        }
        self.open.push(element);
        self.attributes(reader, start, element);
    }

    /// Determines the role of an element from its name and its parent's role.
    fn classify(&self, parent: XmpElement, name: (&[u8], &[u8])) -> XmpElement {
        let rdf = name.0 == RDF.as_bytes();
        match parent {
            XmpElement::Frame if rdf && name.1 == b"Description" => XmpElement::Description,
            // The elements around `rdf:Description` vary with the
            // writer, and some packets begin at `rdf:RDF`.
            XmpElement::Frame => XmpElement::Frame,
            XmpElement::Description if property(name).is_some() => XmpElement::Property,
            XmpElement::Description | XmpElement::Other => XmpElement::Other,
            XmpElement::Property | XmpElement::Group | XmpElement::Value => match name.1 {
                // A nested description holds the `rdf:value` of a property with qualifiers.
                b"Alt" | b"Seq" | b"Bag" | b"Description" if rdf => XmpElement::Group,
                b"li" | b"value" if rdf => XmpElement::Value,
                // PLUS stores owners as structures of a name and an id; only the name is a value.
                b"CopyrightOwnerName" if self.property == Some(XmpProperty::CopyrightHolder) => {
                    XmpElement::Value
                }
                _ => XmpElement::Other,
            },
        }
    }

    fn attributes(
        &mut self,
        reader: &NsReader<&[u8]>,
        start: &BytesStart<'_>,
        element: XmpElement,
    ) {
        if matches!(element, XmpElement::Frame | XmpElement::Other) {
            return;
        }
        // Skips the check for duplicates, which takes quadratic time; the first attribute counts.
        for attribute in start.attributes().with_checks(false).flatten() {
            if self.names > NAMES_MAX {
                return;
            }
            self.names += 1;
            let (namespace, local) = reader.resolver().resolve_attribute(attribute.key);
            let name = (uri(&namespace), local.into_inner());
            // Normalizing fails on an unknown entity; the other attributes are still read.
            let Ok(value) = attribute.normalized_value(XmlVersion::Implicit1_0) else {
                self.unknown_entity = true;
                continue;
            };
            let entry = |text: &str| XmpValue { language: None, text: text::clean(text) };
            // A simple property may be an attribute of the
            // description instead of an element in it.
            if element == XmpElement::Description {
                if let Some(property) = property(name) {
                    self.packet.apply_property(property, &[entry(&value)]);
                }
            } else if name == (XML.as_bytes(), b"lang") {
                self.language = Some(value.to_lowercase());
            } else if name == (RDF.as_bytes(), b"resource")
                || (self.property == Some(XmpProperty::CopyrightHolder)
                    && name == (PLUS.as_bytes(), b"CopyrightOwnerName"))
            {
                self.push_value(entry(&value));
            }
        }
    }

    fn text(&mut self, text: &str) {
        let reads = matches!(self.open.last(), Some(XmpElement::Property | XmpElement::Value));
        if reads {
            // One text arrives in several events, so the limit applies to their sum.
            let room = TEXT_BYTES_MAX.saturating_sub(self.text.len());
            self.text.push_str(text::cut(text, room));
        }
    }

    fn end(&mut self) {
        let Some(closed) = self.open.pop() else {
            return;
        };
        if matches!(closed, XmpElement::Property | XmpElement::Value) {
            // White space around a group of values becomes empty here, and is then not stored.
            let text = text::clean(&std::mem::take(&mut self.text));
            let language = self.language.take();
            self.push_value(XmpValue { language, text });
        }
        // Values are applied at the end of the property, when
        // all alternatives of its language are known.
        if closed == XmpElement::Property
            && let Some(property) = self.property.take()
        {
            self.packet.apply_property(property, &self.entries);
            self.entries.clear();
        }
    }

    fn push_value(&mut self, entry: XmpValue) {
        // An empty first entry would hide the text of a second one.
        if !entry.text.is_empty() && self.entries.len() < LIST_ENTRIES_MAX {
            self.entries.push(entry);
        }
    }
}

fn uri<'n>(namespace: &ResolveResult<'n>) -> &'n [u8] {
    match *namespace {
        ResolveResult::Bound(Namespace(uri)) => uri,
        ResolveResult::Unbound | ResolveResult::Unknown(_) => b"",
    }
}

fn property(name: (&[u8], &[u8])) -> Option<XmpProperty> {
    let (namespace, local) = name;
    PROPERTIES
        .iter()
        .find(|(uri, name, _)| name.as_bytes() == local && uri.as_bytes() == namespace)
        .map(|&(.., property)| property)
}

/// Returns the text of the default language, or the first text if there is none.
fn default_text(entries: &[XmpValue]) -> &str {
    entries
        .iter()
        // Tags ignore case (RFC 5646 §2.1.1) and were lowered when they were read.
        .find(|entry| entry.language.as_deref() == Some("x-default"))
        .or(entries.first())
        .map(|entry| entry.text.as_str())
        .unwrap_or_default()
}

fn joined_text(entries: &[XmpValue]) -> String {
    entries.iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>().join(", ")
}

fn fill_list(list: &mut Vec<String>, entries: &[XmpValue]) {
    // Merging the lists of two packets could repeat the entries that both have.
    if list.is_empty() {
        for entry in entries {
            push(list, &entry.text);
        }
    }
}

/// Parses an XMP coordinate in degrees, minutes and seconds, such as `59,19.5N` or `59,19,30N`.
fn degrees(text: &str) -> Option<f64> {
    // The hemisphere is the last letter; without one the sign of the coordinate is unknown.
    let (number, sign) = match text.char_indices().last()? {
        (end, 'N' | 'E') => (&text[..end], 1.0),
        (end, 'S' | 'W') => (&text[..end], -1.0),
        _ => return None,
    };
    let parts: Vec<f64> =
        number.split(',').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    // `f64` also parses `inf`, `NaN` and negative numbers, none of which has a meaning here.
    if parts.len() > 3 || parts.iter().any(|part| !part.is_finite() || *part < 0.0) {
        return None;
    }
    Some(sign * parts.iter().zip([1.0, 60.0, 3600.0]).map(|(part, unit)| part / unit).sum::<f64>())
}
