//! Reads XMP: the IPTC properties of the main packet and of extended XMP, in the form of [`RightsMetadata`].
//!
//! [`rdf_read`] reads a packet, [`rdf_json`] converts its values; [`table`](crate::rights::table) defines the types and
//! names of properties.

use serde_json::{Map, Value};

use crate::date_time::PartialDateTime;
use crate::rdf_read::{self, RdfMember};
use crate::rights::RightsMetadata;
use crate::rights::member::NumberKind::{Integer, Latitude, Longitude};
use crate::rights::member::ValueKind::{Number, Text};
use crate::rights::member::XmpNamespace::{Dc, Exif, Photoshop, XmpNote};
use crate::rights::member::{Member, XmpNamespace, bag, one};
use crate::rights::table::{Property, PropertyClass};
use crate::rights::values::{default_text, joined_text};
use crate::{Caption, StandardFields, is_position, push, rdf_json, set_if_absent, texts};
use jpeg::embedded::GUID_BYTES;
use jpeg::header::JpegHeader;

/// The properties that are read besides the properties of the IPTC standard.
pub(super) static OTHERS: [Member; 5] = [
    one("urgency", Photoshop, "Urgency", Number(Integer)),
    bag("language", Dc, "language", Text),
    one("latitude", Exif, "GPSLatitude", Number(Latitude)),
    one("longitude", Exif, "GPSLongitude", Number(Longitude)),
    one("extendedXmp", XmpNote, "HasExtendedXMP", Text),
];

/// Finds a property by its XMP name; `None` if it is not to be read.
pub(super) fn property(namespace: XmpNamespace, local: &str) -> Option<&'static Member> {
    if let Some(property) = Property::called(namespace, local)
        && property.class != PropertyClass::Never
    {
        return Some(&property.member);
    }
    OTHERS.iter().find(|member| member.namespace == namespace && member.local == local)
}

/// Reads the XMP of a file: the main packet, then extended XMP for properties that the main packet lacks.
pub(super) fn read(
    header: &JpegHeader,
    jpeg: &[u8],
    warnings: &mut Vec<String>,
) -> StandardFields {
    let mut properties = XmpProperties::default();
    if let Some(bytes) = header.xmp(jpeg) {
        properties.read(bytes, warnings);
    }
    // The main packet names its extension by the digest of its bytes. Segments with a different digest are left
    // over from an earlier version of the file.
    let guid = properties.text("extendedXmp").to_owned();
    if guid.len() == GUID_BYTES {
        let extended = header.extended_xmp(jpeg, guid.as_bytes());
        warnings.extend(extended.damage.map(|damage| damage.to_string()));
        if let Some(bytes) = extended.value {
            properties.read(&bytes, warnings);
        }
    }
    properties.fields()
}

/// The properties read so far from all packets, by name.
#[derive(Default)]
struct XmpProperties(Map<String, Value>);

impl XmpProperties {
    /// Reads a packet; does not overwrite properties that are already set.
    fn read(&mut self, packet: &[u8], warnings: &mut Vec<String>) {
        let found = rdf_read::read(packet, property, warnings);
        let mut repeated = found.repeated;
        let mut invalid = Vec::new();
        for RdfMember { member, value } in found.properties {
            if self.0.contains_key(member.name) {
                add_once(&mut repeated, member);
            } else if let Some(value) = rdf_json::value(member, &value) {
                self.0.insert(member.name.to_owned(), value);
            } else {
                add_once(&mut invalid, member);
            }
        }
        let repeated = repeated.iter().map(|member| warning(member, "is repeated"));
        warnings.extend(repeated);
        warnings.extend(invalid.iter().map(|member| warning(member, "has no valid value")));
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map(default_text).unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    fn list(&self, name: &str) -> Vec<String> {
        let mut list = Vec::new();
        for entry in self.0.get(name).and_then(Value::as_array).into_iter().flatten() {
            push(&mut list, default_text(entry));
        }
        list
    }

    fn fields(self) -> StandardFields {
        let mut caption = Caption {
            persons: self.list("personInImageNames"),
            subject_codes: self.list("subjectCodes"),
            keywords: self.list("keywords"),
            // The two coordinates are separate properties, so only here is it known that both are present.
            position: self
                .number("latitude")
                .zip(self.number("longitude"))
                .filter(|(latitude, longitude)| is_position(*latitude, *longitude)),
            urgency: self
                .number("urgency")
                .and_then(|number| (1..=9).find(|&urgency| f64::from(urgency) == number)),
            language: self.list("language").into_iter().next().unwrap_or_default(),
            ..Caption::default()
        };
        for (name, field) in texts(&mut caption) {
            if let Some(value) = self.0.get(name) {
                set_if_absent(field, &joined_text(value));
            }
        }
        let created = PartialDateTime::parse(self.text("dateCreated"));
        StandardFields { caption, created, rights: RightsMetadata::carried(self.0) }
    }
}

fn add_once(members: &mut Vec<&'static Member>, member: &'static Member) {
    // A hostile packet must not cause thousands of warnings.
    if !members.iter().any(|known| known.name == member.name) {
        members.push(member);
    }
}

fn warning(member: &Member, problem: &str) -> String {
    format!("xmp {}:{} {problem}", member.namespace.prefix(), member.local)
}
