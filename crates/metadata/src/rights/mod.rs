//! Defines rights and provenance: the properties of IPTC Photo Metadata 2025.1 that travel with a picture.
//!
//! [`table`] defines the rule for each property of the standard. [`RightsMetadata`] holds the properties that are
//! carried from an original into its renditions, as JSON values under the TechReference's names. The other modules
//! convert them: `from_json` from the JSON that an operator sets, `shown` to the part of a picture that a rendition
//! shows.

mod boundary;
mod from_json;
pub mod member;
mod shown;
mod structures;
pub mod table;
pub(crate) mod values;
mod vocabulary;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

pub use from_json::{RightsError, RightsProblem};
pub use shown::RightsView;
pub use vocabulary::{DATA_MINING, DIGITAL_SOURCE_TYPES, Vocabulary};

use crate::cut_order::CUT_ORDER;
use crate::text;
use table::{PROPERTIES, Property, PropertyClass};

/// Maximum bytes of all values together, because records and packets hold them.
const RIGHTS_BYTES_MAX: usize = 256 * 1024;
/// Maximum bytes of the text of other constraints in thumbnails, which have a few thousand bytes in all.
const SHORT_TEXT_BYTES_MAX: usize = 1_000;

/// Rights and provenance properties of IPTC Photo Metadata 2025.1, in the standard's data model.
///
/// The value serializes as a JSON object with the names of the TechReference (`digitalSourceType`, `licensors`).
/// Texts and URIs are strings. Texts by language are objects with the language tags as names, always with
/// `x-default`. Properties that may occur several times are arrays. Structures are objects with the
/// TechReference's names of their members. The object has only properties that are carried from an original
/// ([`Property::is_carried`]). Sizes are limited: 1,000 entries in a list, 65,536 bytes in a text, and 256 KiB in
/// all.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct RightsMetadata(Map<String, Value>);

/// A person or company that licenses the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Licensor<'a> {
    pub id: Option<&'a str>,
    pub name: Option<&'a str>,
    pub url: Option<&'a str>,
}

impl RightsMetadata {
    /// Returns whether there is no property.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses properties from JSON, as an operator sets them.
    ///
    /// Besides URIs, `digitalSourceType` and `dataMining` accept the codes of their vocabularies, such as
    /// `trainedAlgorithmicMedia`. A text by language may be a plain string, which becomes the text of `x-default`.
    /// Empty values are left out.
    ///
    /// Fails with the path of the first value that has no meaning, such as `licensors/0/licensorUrl`.
    pub fn from_json(value: &Value) -> Result<RightsMetadata, RightsError> {
        let rights = from_json::parse(value)?;
        from_json::check_terms(&rights)?;
        Ok(rights)
    }

    /// Returns the properties as a JSON object.
    pub fn to_json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// Returns the value of a property in JSON, by the TechReference's name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Returns the text of a property; the default language of a text by language.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(values::default_text).filter(|text| !text.is_empty())
    }

    /// Returns the URI of the digital source type, a term of [`DIGITAL_SOURCE_TYPES`].
    pub fn digital_source_type(&self) -> Option<&str> {
        self.text("digitalSourceType")
    }

    /// Returns the URI of the constraint on data mining, a term of [`DATA_MINING`].
    pub fn data_mining(&self) -> Option<&str> {
        self.text("dataMining")
    }

    /// Returns the licensors, in their order.
    pub fn licensors(&self) -> Vec<Licensor<'_>> {
        let entries = self.get("licensors").and_then(Value::as_array).into_iter().flatten();
        entries
            .map(|entry| Licensor {
                id: member_text(entry, "licensorId"),
                name: member_text(entry, "licensorName"),
                url: member_text(entry, "licensorUrl"),
            })
            .collect()
    }

    /// Returns these properties, overridden by the properties of `over`.
    pub fn overlaid(&self, over: &RightsMetadata) -> RightsMetadata {
        over.clone().completed(self.clone())
    }

    /// Adds the properties of `lower` that are missing here.
    pub(crate) fn completed(self, lower: RightsMetadata) -> RightsMetadata {
        if lower.is_empty() {
            return self;
        }
        let mut all = lower.0;
        all.extend(self.0);
        RightsMetadata::carried(all)
    }

    /// Returns these properties without the property `name`.
    pub fn without(&self, name: &str) -> RightsMetadata {
        let mut others = self.0.clone();
        others.shift_remove(name);
        RightsMetadata(others)
    }

    /// Returns the properties that even thumbnails carry: the digital source type and the constraints.
    ///
    /// The text of other constraints is reduced to the default language and cut to 1,000 bytes.
    pub fn short(&self) -> RightsMetadata {
        let mut short = Map::new();
        for (name, value) in self.0.iter().filter(|(name, _)| is_short(name)) {
            let mut value = value.clone();
            if value.is_object() {
                let cut = text::cut(values::default_text(&value), SHORT_TEXT_BYTES_MAX);
                value =
                    Value::Object(Map::from_iter([(values::X_DEFAULT.to_owned(), cut.into())]));
            }
            short.insert(name.clone(), value);
        }
        RightsMetadata(short)
    }

    /// Selects the carried properties from a map of valid values, in the order of the table.
    pub(crate) fn carried(mut properties: Map<String, Value>) -> RightsMetadata {
        let carried = PROPERTIES.iter().filter(|property| property.is_carried());
        let names = carried.map(|property| property.member.name);
        let taken = names.filter_map(|name| Some((name.to_owned(), properties.remove(name)?)));
        RightsMetadata(taken.collect())
    }

    /// Returns one property whose text has no language in XMP and IIM; no property for an empty text.
    pub(crate) fn of_text(name: &str, text: &str) -> RightsMetadata {
        let text = values::clean(text);
        let value = (!text.is_empty()).then(|| (name.to_owned(), Value::from(text)));
        RightsMetadata(value.into_iter().collect())
    }

    /// Drops properties until the others are within the limit; returns whether that was necessary.
    pub(crate) fn shorten(&mut self) -> bool {
        let is_too_large = self.bytes() > RIGHTS_BYTES_MAX;
        for (name, _) in CUT_ORDER {
            if self.bytes() <= RIGHTS_BYTES_MAX {
                break;
            }
            self.0.shift_remove(name);
        }
        is_too_large
    }

    /// Iterates over the properties with their names, in the order of the table.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter()
    }

    /// Returns the bytes of all values together.
    fn bytes(&self) -> usize {
        self.0.values().map(values::size_bytes).sum()
    }
}

fn member_text<'a>(entry: &'a Value, name: &str) -> Option<&'a str> {
    entry.get(name).and_then(Value::as_str)
}

/// Returns whether even thumbnails carry the property.
fn is_short(name: &str) -> bool {
    Property::named(name).is_some_and(|property| property.class == PropertyClass::Short)
}

impl<'de> Deserialize<'de> for RightsMetadata {
    /// Accepts the same values as [`RightsMetadata::from_json`], and also unknown codes of vocabularies, which
    /// files contain.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RightsMetadata, D::Error> {
        let value = Value::deserialize(deserializer)?;
        from_json::parse(&value).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod shown_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
