//! The news item document (contract items-5): parsing, validating, completing and serving it.
//!
//! A document is JSON that follows the schema ttninjs 1.6, and it is stored losslessly. The service adds storage
//! dates at ingest, and URLs and renditions of its files when it serves the document. No other module knows the
//! property names.

mod addresses;
#[cfg(test)]
mod addresses_tests;
mod asset;
mod complete;
mod layout;
mod links;
mod merge_patch;
mod metadata_edits;
mod metadata_field;
mod renditions;
mod revisions;
mod rights;
mod schema;
mod stated_rights;
mod web_address;

use serde_json::{Map, Value};
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::limits::REPLACING_MAX;
use crate::{AssociationKey, ItemKey, MediaType};

pub use addresses::ItemPresence;
pub use asset::{Asset, AssetFile, AssetGroup, GraphicFile, PictureFile, VideoFile};
pub use layout::DocumentLayout;
pub use links::MediaLinks;
pub use merge_patch::{merge_patch, patch_between};
pub use metadata_edits::{FieldEdit, FieldEditError, MetadataEdits};
pub use metadata_field::{
    CITY_RELATIONS, COUNTRY_RELATIONS, CREDIT_RELATIONS, FieldForm, KEYWORD_SCHEME, MetadataField,
    PLACE_SCHEME, missing_fields,
};
pub use renditions::{DocumentRequest, RenditionScaling, RenditionSizes};
pub use rights::{
    RightsLayers, RightsStatementError, RightsStatements, RightsUpdate, parse_rights_statement,
    parse_stored_rights,
};
pub use schema::{SCHEMA, SchemaViolation};

/// The properties that contain nested documents.
const NESTED: [&str; 2] = ["associations", "assignments"];

/// The publication status of an item (contract items-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum PubStatus {
    /// May be published; the default.
    Usable,
    /// Replaced by a later revision.
    Replaced,
    /// Commissioned material, visible only to administrators.
    Commissioned,
    /// Withheld: absent from search and media.
    Withheld,
    /// Withdrawn: absent from search and media.
    Canceled,
}

crate::impl_as_str!(PubStatus);

impl PubStatus {
    /// Reports whether media of an item with this status are served.
    pub fn is_served(self) -> bool {
        match self {
            Self::Usable | Self::Replaced | Self::Commissioned => true,
            Self::Withheld | Self::Canceled => false,
        }
    }
}

/// A news item document that was validated against the schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    fields: Map<String, Value>,
}

/// The error for a text that is not a document of schema 1.6.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The text is not JSON, or not an object.
    #[error("not a JSON object: {0}")]
    NotJson(String),
    /// The document violates the schema in these places.
    #[error("breaks schema 1.6: {}", list(.0))]
    Schema(Vec<SchemaViolation>),
    /// A property contradicts the item of the request.
    #[error("{property} is {found:?}, expected {expected:?}")]
    Mismatch {
        property: &'static str,
        /// The value in the document.
        found: String,
        /// The value that follows from the item's key.
        expected: String,
    },
}

fn list(problems: &[SchemaViolation]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn mismatch(property: &'static str, found: &str, expected: &str) -> DocumentError {
    DocumentError::Mismatch { property, found: found.to_owned(), expected: expected.to_owned() }
}

impl Document {
    /// Parses the document of the item `key` from the text of an `item.json`.
    ///
    /// `uri` may be missing. Fails with the location of each schema violation, or if `uri` or `type` does not
    /// match `key`.
    pub fn parse(key: &ItemKey, text: &str) -> Result<Self, DocumentError> {
        let value: Value =
            serde_json::from_str(text).map_err(|e| DocumentError::NotJson(e.to_string()))?;
        let Value::Object(fields) = value else {
            return Err(DocumentError::NotJson("another kind of value".to_owned()));
        };
        Self::from_fields(key, fields)
    }

    /// Validates the properties of a document of the item `key`; see [`Document::parse`].
    pub fn from_fields(
        key: &ItemKey,
        mut fields: Map<String, Value>,
    ) -> Result<Self, DocumentError> {
        // A missing `uri` or `type` follows from the key, but a contradiction means that the sender confused two
        // items.
        if let Some(uri) = fields.get("uri").and_then(Value::as_str)
            && ItemKey::from_uri(uri).ok().as_ref() != Some(key)
        {
            return Err(mismatch("uri", uri, &format!("…/media/{key}")));
        }
        let expected = key.media_type.document_type();
        if let Some(found) = fields.get("type").and_then(Value::as_str)
            && found != expected
        {
            return Err(mismatch("type", found, expected));
        }
        // The schema requires `uri`, so a missing one is filled in for the validation.
        fields.entry("uri").or_insert_with(|| Value::String(stored_uri(key)));
        let document = Value::Object(fields);
        schema::check(&document).map_err(DocumentError::Schema)?;
        let Value::Object(mut fields) = document else {
            unreachable!("wrapped in an object above")
        };
        // The schema allows URIs of any scheme; only web addresses are safe to serve as links.
        let violations = web_address::find_violations(&fields);
        if !violations.is_empty() {
            return Err(DocumentError::Schema(violations));
        }
        check_replacing(&fields)?;
        // The `uri` depends on the public host, so it is added when the document is served.
        fields.shift_remove("uri");
        Ok(Self { fields })
    }

    /// Parses a stored document without validating it again.
    pub fn from_stored(text: &str) -> Result<Self, DocumentError> {
        serde_json::from_str(text)
            // A rule that was added later must not make stored documents unreadable.
            .map(|fields| Self { fields })
            .map_err(|cause| DocumentError::NotJson(cause.to_string()))
    }

    /// Returns the JSON text to store.
    pub fn to_stored(&self) -> String {
        serde_json::to_string(&self.fields).expect("a map of values is always written")
    }

    /// Returns a string property, or `None` if it is missing or empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Returns all properties of the document.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Returns a property of any type.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    /// Iterates over the string `field` of each object in the list `name`.
    pub fn texts<'a>(&'a self, name: &str, field: &'a str) -> impl Iterator<Item = &'a str> {
        let entries = self.fields.get(name).and_then(Value::as_array);
        entries.into_iter().flatten().filter_map(move |entry| entry.get(field)?.as_str())
    }

    /// Returns the associated object `key` as it is embedded in this document.
    pub fn association(&self, key: &AssociationKey) -> Option<&Map<String, Value>> {
        self.fields.get("associations")?.get(key.as_str())?.as_object()
    }

    /// Returns the associated object `key` as a document with its embedded properties.
    pub fn of_association(&self, key: &AssociationKey) -> Option<Self> {
        self.association(key).map(|fields| Self { fields: fields.clone() })
    }

    /// Iterates over the associated objects that a media URL can name, in their order.
    pub fn associations(&self) -> impl Iterator<Item = (AssociationKey, &Map<String, Value>)> {
        let all = self.fields.get("associations").and_then(Value::as_object);
        all.into_iter().flatten().filter_map(|(key, value)| {
            // The schema allows any key; an object whose key cannot be in a URL has no renditions here.
            Some((AssociationKey::parse(key).ok()?, value.as_object()?))
        })
    }

    /// Returns the publication status; `usable` if the document has none.
    pub fn pub_status(&self) -> PubStatus {
        // The schema allows no other word, and `usable` is its default.
        let status = self.text("pubstatus").and_then(|word| word.parse().ok());
        status.unwrap_or(PubStatus::Usable)
    }

    /// Sets the publication status of the document.
    pub fn set_pub_status(&mut self, status: PubStatus) {
        self.fields.insert("pubstatus".to_owned(), Value::String(status.as_str().to_owned()));
    }
}

/// Refuses a document that replaces more items than one transaction should update.
fn check_replacing(fields: &Map<String, Value>) -> Result<(), DocumentError> {
    let count = fields.get("replacing").and_then(Value::as_array).map_or(0, Vec::len);
    if count <= REPLACING_MAX {
        return Ok(());
    }
    let message = format!("has {count} uris, more than the limit of {REPLACING_MAX}");
    // Reported like a schema violation, so that clients handle one kind of error.
    Err(DocumentError::Schema(vec![SchemaViolation::new("/replacing", "maximum", message)]))
}

/// Returns the `uri` of a stored document of `key`; a served document has the public host instead.
pub fn stored_uri(key: &ItemKey) -> String {
    format!("http://localhost/media/{key}")
}

/// Reports whether items of `media_type` are photographs, whose renditions come from a JPEG.
pub fn has_picture(media_type: MediaType) -> bool {
    matches!(media_type, MediaType::Image | MediaType::Stockfoto)
}
