//! Reads RDF in XML: the notations in which XMP states the properties of a picture.
//!
//! RDF has several notations for the same fact. A property may be an attribute or an element of
//! `rdf:Description`; its value may be a text, a resource, a structure whose members are attributes or
//! elements, or a list whose entries are alternatives by language (`Alt`), ordered (`Seq`) or unordered
//! (`Bag`). Prefixes are arbitrary; only namespaces count:
//!
//! ```xml
//! <x:xmpmeta xmlns:x="adobe:ns:meta/">
//!  <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
//!   <rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"
//!      xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" photoshop:City="Åre">
//!    <dc:description><rdf:Alt><rdf:li xml:lang="x-default">Snö</rdf:li></rdf:Alt></dc:description>
//! ```
//!
//! The reader is a loop over events with a stack of open elements, so it does not recurse. It keeps the requested
//! properties and members and ignores all others with their contents. A DTD is refused; the only supported
//! entities are the five predefined ones and character references.

use std::borrow::Cow;

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

use crate::rights::member::{Member, ValueKind, XmpNamespace};
use crate::{LIST_ENTRIES_MAX, TEXT_BYTES_MAX, text};

/// Maximum bytes that are read from a packet; extended XMP can hold long editing histories.
const PACKET_BYTES_MAX: usize = 4 << 20;
/// Maximum nesting depth of elements; the characteristic of a person in an image region needs eighteen.
const DEPTH_MAX: usize = 32;
/// Maximum number of namespaces that one element may declare; Adobe's packets declare about thirty.
const NAMESPACES_MAX: usize = 128;
/// Maximum number of names that are resolved, because each costs a search of all namespaces in scope. Names inside
/// ignored elements, such as an editing history, do not count.
const NAMES_MAX: usize = 20_000;

pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// A value as RDF states it. The filled fields depend on the notation.
#[derive(Debug, Default)]
pub(super) struct RdfValue {
    /// The language of the text, as written.
    pub(super) language: Option<String>,
    /// The text of the value itself.
    pub(super) text: String,
    /// The entries of a list, or the value of a property with qualifiers.
    pub(super) entries: Vec<RdfValue>,
    /// The members of a structure.
    pub(super) members: Vec<RdfMember>,
}

/// A property or member with its value.
#[derive(Debug)]
pub(super) struct RdfMember {
    pub(super) member: &'static Member,
    pub(super) value: RdfValue,
}

/// The properties of a packet.
#[derive(Debug, Default)]
pub(super) struct RdfProperties {
    /// All properties in the order of the packet; a property may occur twice.
    pub(super) properties: Vec<RdfMember>,
    /// Members that occur again in the same structure; the structure's value has only the first occurrence.
    pub(super) repeated: Vec<&'static Member>,
}

/// Finds the property with an XMP name; `None` if the property is not to be read.
pub(super) type PropertyLookup = fn(XmpNamespace, &str) -> Option<&'static Member>;

/// Reads the properties of a packet that `lookup` finds.
///
/// A broken packet causes warnings, and the properties before the damage are returned.
pub(super) fn read(
    packet: &[u8],
    lookup: PropertyLookup,
    warnings: &mut Vec<String>,
) -> RdfProperties {
    let prefix = packet.get(..PACKET_BYTES_MAX).unwrap_or(packet);
    if prefix.len() < packet.len() {
        warnings.push(format!("xmp has more than {PACKET_BYTES_MAX} bytes"));
    }
    // One bad byte costs one character and a warning, not the caption.
    let decoded = String::from_utf8_lossy(prefix);
    let mut parser = RdfParser {
        found: RdfProperties::default(),
        lookup,
        open: Vec::new(),
        values: Vec::new(),
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
    if matches!(decoded, Cow::Owned(_)) {
        warnings.push("xmp is not valid utf-8".to_owned());
    }
    parser.found
}

/// The role of an open element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ElementRole {
    /// An element of the packet's frame, outside any property.
    Frame,
    /// An `rdf:Description` whose children are properties of the photograph.
    Description,
    /// A property, a member, `rdf:li` or `rdf:value`, which has an entry in [`RdfParser::values`].
    Value,
    /// An `rdf:Alt`, `rdf:Seq`, `rdf:Bag` or nested `rdf:Description` around entries or members.
    Group,
    /// An element that is ignored with all its contents.
    Other,
}

/// A value whose element is open.
struct OpenValue {
    /// The property or member that has the value; `None` for an entry of a list.
    member: Option<&'static Member>,
    kind: ValueKind,
    value: RdfValue,
}

/// The state of the parser for one packet.
struct RdfParser {
    found: RdfProperties,
    lookup: PropertyLookup,
    open: Vec<ElementRole>,
    values: Vec<OpenValue>,
    unknown_entity: bool,
    /// Number of names that were resolved, limited by [`NAMES_MAX`].
    names: usize,
}

impl RdfValue {
    fn of_text(text: &str) -> RdfValue {
        // Cut first, so that the cost of cleaning a hostile text is bounded.
        RdfValue { text: text::clean(text::cut(text, TEXT_BYTES_MAX)), ..RdfValue::default() }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.entries.is_empty() && self.members.is_empty()
    }
}

impl RdfParser {
    /// Reads all events. After an error, the properties read so far remain.
    fn run(&mut self, packet: &str) -> Result<(), String> {
        let mut reader = NsReader::from_str(packet);
        reader.resolver_mut().set_max_declarations_per_element(NAMESPACES_MAX);
        loop {
            // Checked for every event, because both attributes and elements count.
            if self.names > NAMES_MAX {
                return Err(format!("has more than {NAMES_MAX} names"));
            }
            let before = reader.buffer_position();
            let event =
                reader.read_event().map_err(|_| format!("is not well-formed at byte {before}"))?;
            match event {
                Event::Start(start) => {
                    // The stack is on the heap, but a packet of nothing but start tags would make it as large as
                    // the packet.
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
                        // An undeclared entity or a broken character reference; the text without it is better than
                        // no text.
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
        let parent = self.open.last().copied().unwrap_or(ElementRole::Frame);
        if parent == ElementRole::Other {
            // The contents are ignored, so names need not be resolved.
            self.open.push(ElementRole::Other);
            return;
        }
        self.names += 1;
        let (namespace, local) = reader.resolver().resolve_element(start.name());
        let name = ResolvedName::new(&namespace, local.into_inner());
        let role = self.open_element(parent, name);
        self.open.push(role);
        self.attributes(reader, start, role);
    }

    /// Determines the role of an element from its name and its parent's role, and opens its value.
    fn open_element(&mut self, parent: ElementRole, name: ResolvedName<'_>) -> ElementRole {
        let member = match parent {
            ElementRole::Frame if name.is_rdf("Description") => return ElementRole::Description,
            // The elements around `rdf:Description` vary with the writer, and some packets begin at `rdf:RDF`.
            ElementRole::Frame => return ElementRole::Frame,
            ElementRole::Description => self.property(name),
            // A nested description holds members, or the `rdf:value` of a property with qualifiers.
            ElementRole::Value | ElementRole::Group
                if ["Alt", "Seq", "Bag", "Description"].iter().any(|group| name.is_rdf(group)) =>
            {
                return ElementRole::Group;
            }
            ElementRole::Value | ElementRole::Group
                if name.is_rdf("li") || name.is_rdf("value") =>
            {
                let kind = self.values.last().map_or(ValueKind::Text, |open| open.kind);
                self.values.push(OpenValue { member: None, kind, value: RdfValue::default() });
                return ElementRole::Value;
            }
            ElementRole::Value | ElementRole::Group => self.member(name),
            ElementRole::Other => None,
        };
        let Some(member) = member else {
            return ElementRole::Other;
        };
        let value = RdfValue::default();
        self.values.push(OpenValue { member: Some(member), kind: member.kind, value });
        ElementRole::Value
    }

    fn property(&self, name: ResolvedName<'_>) -> Option<&'static Member> {
        (self.lookup)(name.xmp_namespace()?, name.local)
    }

    /// Finds the member with a name in the structure that is open.
    fn member(&self, name: ResolvedName<'_>) -> Option<&'static Member> {
        let structure = self.values.last()?.kind.structure()?;
        structure.member(name.xmp_namespace()?, name.local)
    }

    fn attributes(&mut self, reader: &NsReader<&[u8]>, start: &BytesStart<'_>, role: ElementRole) {
        if matches!(role, ElementRole::Frame | ElementRole::Other) {
            return;
        }
        // Skips the check for duplicates, which needs quadratic time; the first attribute counts.
        for attribute in start.attributes().with_checks(false).flatten() {
            if self.names > NAMES_MAX {
                return;
            }
            self.names += 1;
            let (namespace, local) = reader.resolver().resolve_attribute(attribute.key);
            let name = ResolvedName::new(&namespace, local.into_inner());
            // Normalizing fails on an unknown entity; the other attributes are still read.
            let Ok(value) = attribute.normalized_value(XmlVersion::Implicit1_0) else {
                self.unknown_entity = true;
                continue;
            };
            self.attribute(role, name, &value);
        }
    }

    /// Stores an attribute: a simple property or member, a language, or the value of a property.
    fn attribute(&mut self, role: ElementRole, name: ResolvedName<'_>, value: &str) {
        let member = match role {
            ElementRole::Description => self.property(name),
            ElementRole::Value | ElementRole::Group => self.member(name),
            ElementRole::Frame | ElementRole::Other => None,
        };
        if let Some(member) = member {
            self.add(member, RdfValue::of_text(value));
        } else if let Some(open) = self.values.last_mut() {
            if name.is_rdf("resource") || name.is_rdf("value") {
                open.value.add_entry(RdfValue::of_text(value));
            } else if role == ElementRole::Value && name.uri == XML && name.local == "lang" {
                open.value.language.get_or_insert_with(|| value.to_owned());
            }
        }
    }

    fn text(&mut self, text: &str) {
        if self.open.last() == Some(&ElementRole::Value)
            && let Some(open) = self.values.last_mut()
        {
            // One text arrives in several events, so the limit applies to their sum.
            let room = TEXT_BYTES_MAX.saturating_sub(open.value.text.len());
            open.value.text.push_str(text::cut(text, room));
        }
    }

    fn end(&mut self) {
        if self.open.pop() != Some(ElementRole::Value) {
            return;
        }
        let Some(OpenValue { member, mut value, .. }) = self.values.pop() else {
            return;
        };
        // White space around a list or members becomes empty here.
        value.text = text::clean(&value.text);
        match (member, self.values.last_mut()) {
            (Some(member), _) => self.add(member, value),
            (None, Some(list)) => list.value.add_entry(value),
            (None, None) => {}
        }
    }

    /// Adds a property to the packet, or a member to the structure that is open.
    fn add(&mut self, member: &'static Member, value: RdfValue) {
        // An empty value would hide a non-empty second one.
        if value.is_empty() {
            return;
        }
        let Some(structure) = self.values.last_mut() else {
            self.found.properties.push(RdfMember { member, value });
            return;
        };
        let members = &mut structure.value.members;
        if !members.iter().any(|known| known.member.name == member.name) {
            members.push(RdfMember { member, value });
        } else if !self.found.repeated.iter().any(|known| known.name == member.name) {
            self.found.repeated.push(member);
        }
    }
}

impl RdfValue {
    fn add_entry(&mut self, entry: RdfValue) {
        // An empty first entry would hide the text of a second entry.
        if !entry.is_empty() && self.entries.len() < LIST_ENTRIES_MAX {
            self.entries.push(entry);
        }
    }
}

/// A name with its namespace.
#[derive(Clone, Copy)]
struct ResolvedName<'n> {
    uri: &'n str,
    local: &'n str,
}

impl<'n> ResolvedName<'n> {
    fn new(namespace: &ResolveResult<'n>, local: &'n [u8]) -> ResolvedName<'n> {
        let uri = match *namespace {
            ResolveResult::Bound(Namespace(uri)) => uri,
            ResolveResult::Unbound | ResolveResult::Unknown(_) => b"",
        };
        // The packet is UTF-8, so the URI and the local name are too.
        let uri = str::from_utf8(uri).unwrap_or_default();
        let local = str::from_utf8(local).unwrap_or_default();
        ResolvedName { uri, local }
    }

    fn is_rdf(self, local: &str) -> bool {
        self.local == local && self.uri == RDF
    }

    fn xmp_namespace(self) -> Option<XmpNamespace> {
        XmpNamespace::ALL.into_iter().find(|namespace| namespace.uri() == self.uri)
    }
}
