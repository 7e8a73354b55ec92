//! Defines properties and members: their names, and the types of their values.

use super::vocabulary::Vocabulary as Terms;
use ValueKind::*;
use XmpNamespace::*;

/// An XML namespace of XMP properties, in the order in which a packet declares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum XmpNamespace {
    Dc,
    Photoshop,
    XmpRights,
    Plus,
    IptcCore,
    IptcExt,
    Exif,
    Xmp,
    XmpNote,
}

impl XmpNamespace {
    /// All namespaces of the properties.
    pub const ALL: [XmpNamespace; 9] =
        [Dc, Photoshop, XmpRights, Plus, IptcCore, IptcExt, Exif, Xmp, XmpNote];

    /// Returns the prefix that the standard uses for the namespace.
    pub fn prefix(self) -> &'static str {
        self.names().0
    }

    /// Returns the URI that identifies the namespace.
    pub fn uri(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Dc => ("dc", "http://purl.org/dc/elements/1.1/"),
            Photoshop => ("photoshop", "http://ns.adobe.com/photoshop/1.0/"),
            XmpRights => ("xmpRights", "http://ns.adobe.com/xap/1.0/rights/"),
            Plus => ("plus", "http://ns.useplus.org/ldf/xmp/1.0/"),
            IptcCore => ("Iptc4xmpCore", "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/"),
            IptcExt => ("Iptc4xmpExt", "http://iptc.org/std/Iptc4xmpExt/2008-02-29/"),
            Exif => ("exif", "http://ns.adobe.com/exif/1.0/"),
            Xmp => ("xmp", "http://ns.adobe.com/xap/1.0/"),
            XmpNote => ("xmpNote", "http://ns.adobe.com/xmp/note/"),
        }
    }
}

/// The type of a value, as a TechReference datatype and data format.
#[derive(Debug, Clone, Copy)]
pub enum ValueKind {
    Text,
    /// A URI that identifies something. Files have names and codes in its place.
    Uri,
    /// An address that readers follow. Files have names and codes in its place.
    Url,
    /// A date with an optional time, as written in the file.
    DateTime,
    /// A URI of a vocabulary, which also has a short code.
    Vocabulary(&'static Terms),
    /// Texts by language, one of them the default.
    AltLang,
    Number(NumberKind),
    Structure(&'static Structure),
}

/// The range of a number, and its notation in XMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberKind {
    /// A number without a fraction, zero or more.
    Integer,
    Decimal,
    /// Degrees north of the equator; XMP has `59,19.5N`.
    Latitude,
    /// Degrees east of Greenwich; XMP has `18,4.5E`.
    Longitude,
    /// Metres; XMP has the fraction `480/1`.
    Altitude,
}

impl ValueKind {
    /// Returns the members of a structure; `None` for a simple value.
    pub fn structure(self) -> Option<&'static Structure> {
        match self {
            Structure(structure) => Some(structure),
            Text | Uri | Url | DateTime | Vocabulary(_) | AltLang | Number(_) => None,
        }
    }
}

/// The RDF container of a value that may occur several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RdfContainer {
    /// Values in any order.
    Bag,
    /// Values whose order has a meaning.
    Seq,
}

impl RdfContainer {
    /// Returns the local name of the container's element.
    pub fn element(self) -> &'static str {
        match self {
            RdfContainer::Bag => "Bag",
            RdfContainer::Seq => "Seq",
        }
    }
}

/// A named value: a property of a picture or a member of a structure.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// The name in the TechReference, which is also the name in JSON.
    pub name: &'static str,
    /// Namespace of the XMP name.
    pub namespace: XmpNamespace,
    /// Local part of the XMP name.
    pub local: &'static str,
    /// The type of the value, or of each value if there may be several.
    pub kind: ValueKind,
    /// The container of several values; `None` if there is at most one.
    pub many: Option<RdfContainer>,
}

impl Member {
    /// Returns whether the XMP name of the member is this one.
    pub(super) fn is_called(&self, namespace: XmpNamespace, local: &str) -> bool {
        self.namespace == namespace && self.local == local
    }
}

/// The type of a structured value.
#[derive(Debug)]
pub struct Structure {
    /// The name in the TechReference.
    pub name: &'static str,
    /// The members that the structure defines.
    pub members: &'static [Member],
}

/// Creates a member with at most one value.
pub(crate) const fn one(
    name: &'static str,
    namespace: XmpNamespace,
    local: &'static str,
    kind: ValueKind,
) -> Member {
    Member { name, namespace, local, kind, many: None }
}

/// Creates a member with values in any order.
pub(crate) const fn bag(
    name: &'static str,
    namespace: XmpNamespace,
    local: &'static str,
    kind: ValueKind,
) -> Member {
    Member { name, namespace, local, kind, many: Some(RdfContainer::Bag) }
}

/// Creates a member with values whose order has a meaning.
pub(super) const fn seq(
    name: &'static str,
    namespace: XmpNamespace,
    local: &'static str,
    kind: ValueKind,
) -> Member {
    Member { name, namespace, local, kind, many: Some(RdfContainer::Seq) }
}
