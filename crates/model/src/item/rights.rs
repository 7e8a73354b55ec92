//! The rights in the pictures of an item: the layers that state them, and the layer that counts.
//!
//! Rights are properties of IPTC Photo Metadata, such as `usageTerms` and `dataMining`. Four layers can state a
//! property. The strongest layer that has a value for it counts, separately for each property:
//!
//! | Layer | Stated by | Applies to |
//! | --- | --- | --- |
//! | rights override (strongest) | an editor, through the API | one item, in all its versions |
//! | source rights | the source, in `rights.json` or with an upload | the files that it sends |
//! | default rights | the operator, in the settings | every picture |
//! | file rights (weakest) | the metadata in the original file | that file |
//!
//! All layers but the file rights are *stated* rights: they replace what the document says. All four together are
//! the *effective* rights, which renditions and downloads carry. An item without a picture has only the override.
//!
//! [`RightsLayers`] combines the layers. [`parse_rights_statement`] and [`RightsUpdate`] parse the layers that
//! people write; [`parse_stored_rights`] parses stored ones.

use metadata::RightsMetadata;
use metadata::rights::table::Property;
use metadata::rights::{RightsError, RightsProblem};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::AssetGroup;

/// The property with regions of the picture, such as the place of a person in it.
const IMAGE_REGION: &str = "imageRegion";

/// The layers of rights in an item, or in one of its associated objects.
///
/// Properties are named as in the IPTC TechReference, such as `usageTerms`.
#[derive(Clone, Copy, Debug)]
pub struct RightsLayers<'a> {
    /// The files of the item or object. The largest picture among them has the file rights and the source rights.
    pub files: AssetGroup<'a>,
    /// The default rights of every picture, from the settings.
    pub default_rights: &'a RightsMetadata,
    /// The rights override of the item. Empty for an associated object: the override of a text does not apply to the
    /// photographs in it.
    pub rights_override: &'a RightsMetadata,
}

/// The layers of [`RightsLayers`] that are not stored with the files. A request for a document passes them, and the
/// document adds the files of the item and of each associated object.
#[derive(Clone, Copy, Debug)]
pub struct RightsStatements<'a> {
    /// The default rights of every picture, from the settings.
    pub default_rights: &'a RightsMetadata,
    /// The rights override of the item.
    pub rights_override: &'a RightsMetadata,
}

impl<'a> RightsLayers<'a> {
    /// Merges all layers to the effective rights.
    pub fn effective(&self) -> RightsMetadata {
        merge(self.all())
    }

    /// Merges the layers above the file to the stated rights.
    pub fn stated(&self) -> RightsMetadata {
        merge(self.above_file())
    }

    /// Returns the effective value of a property, without the copies that [`RightsLayers::effective`] makes.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.strongest(name)?.get(name)
    }

    /// Returns the effective value of a property as text. A text in several languages gives its default language.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.strongest(name)?.text(name)
    }

    /// Returns whether a property is among the stated rights.
    pub fn is_stated(&self, name: &str) -> bool {
        self.above_file().any(|layer| layer.get(name).is_some())
    }

    /// Returns the layer whose value of a property counts.
    fn strongest(&self, name: &str) -> Option<&'a RightsMetadata> {
        self.all().find(|layer| layer.get(name).is_some())
    }

    /// Iterates over the layers, the strongest first.
    fn all(&self) -> impl Iterator<Item = &'a RightsMetadata> {
        let picture = self.files.whole_picture();
        self.above_file().chain(picture.map(|picture| &picture.rights))
    }

    /// Iterates over the layers above the file, the strongest first.
    fn above_file(&self) -> impl Iterator<Item = &'a RightsMetadata> {
        let picture = self.files.whole_picture();
        let picture_layers = picture.map(|picture| [&picture.source_rights, self.default_rights]);
        std::iter::once(self.rights_override).chain(picture_layers.into_iter().flatten())
    }
}

/// Merges layers, the strongest first.
fn merge<'m>(layers: impl Iterator<Item = &'m RightsMetadata>) -> RightsMetadata {
    layers.fold(RightsMetadata::default(), |stronger, layer| layer.overlaid(&stronger))
}

/// The reason for refusing rights that a person or a source stated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RightsStatementError {
    /// A property is unknown, is not a rights property, or has an invalid value.
    #[error(transparent)]
    Property(#[from] RightsError),
    /// The statement has regions of the picture.
    #[error(
        "imageRegion: regions belong to the pixels of a file, so only the file itself states them"
    )]
    Region,
    /// The value of a property is empty.
    #[error("{property}: the value is empty; null removes the property")]
    Empty { property: String },
    /// The rights override would be too large.
    #[error("the rights override would have {bytes} bytes, at most {max} are allowed")]
    TooLarge {
        /// The size of the whole override as JSON, in bytes.
        bytes: usize,
        /// The maximum size in bytes.
        max: usize,
    },
}

impl RightsStatementError {
    /// Returns the path of the value at fault, such as `licensors/0/licensorUrl`; `/` for the whole override.
    pub fn path(&self) -> &str {
        match self {
            Self::Property(cause) => &cause.path,
            Self::Region => IMAGE_REGION,
            Self::Empty { property } => property,
            Self::TooLarge { .. } => "/",
        }
    }
}

/// Parses the JSON object in which an operator or a source states rights, such as
/// `{"usageTerms": "Editorial use", "dataMining": "DMI-PROHIBITED"}`.
///
/// Fails with the first property that is unknown, has an invalid value, or that only a file can state.
pub fn parse_rights_statement(value: &Value) -> Result<RightsMetadata, RightsStatementError> {
    // The coordinates fit one file. A different version of the picture may be cropped or rotated.
    if value.get(IMAGE_REGION).is_some() {
        return Err(RightsStatementError::Region);
    }
    Ok(RightsMetadata::from_json(value)?)
}

/// A change of an item's rights override. Properties that it does not name stay as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RightsUpdate {
    /// The names of the properties to remove.
    removed: Vec<String>,
    /// The properties to set.
    stated: RightsMetadata,
}

impl RightsUpdate {
    /// Parses an object of properties like [`parse_rights_statement`]; `null` removes a property.
    ///
    /// Removing a property that is not set is allowed. Fails like [`parse_rights_statement`], also for the name of
    /// a property to remove, and with [`RightsStatementError::Empty`] for an empty value.
    pub fn parse(changes: &Map<String, Value>) -> Result<Self, RightsStatementError> {
        let mut removed = Vec::new();
        let mut values = Map::new();
        for (name, value) in changes {
            if value.is_null() {
                check_is_rights_property(name)?;
                removed.push(name.clone());
            } else {
                values.insert(name.clone(), value.clone());
            }
        }
        let names: Vec<String> = values.keys().cloned().collect();
        let stated = parse_rights_statement(&Value::Object(values))?;
        // The parser leaves out empty values, so the old value would stay although the caller replaced it.
        match names.into_iter().find(|name| stated.get(name).is_none()) {
            Some(property) => Err(RightsStatementError::Empty { property }),
            None => Ok(Self { removed, stated }),
        }
    }

    /// Applies the change to the present override and returns the new one.
    ///
    /// Fails with [`RightsStatementError::TooLarge`] if the new override has more than `bytes_max` bytes as JSON.
    pub fn apply(
        &self,
        present: &RightsMetadata,
        bytes_max: usize,
    ) -> Result<RightsMetadata, RightsStatementError> {
        let kept = self.removed.iter().fold(present.clone(), |kept, name| kept.without(name));
        let changed = kept.overlaid(&self.stated);
        let bytes = changed.to_json().to_string().len();
        if bytes > bytes_max {
            return Err(RightsStatementError::TooLarge { bytes, max: bytes_max });
        }
        Ok(changed)
    }
}

/// Checks that `name` is a rights property, because removing a misspelled name would do nothing.
fn check_is_rights_property(name: &str) -> Result<(), RightsError> {
    let problem = match Property::named(name) {
        Some(property) if property.is_carried() => return Ok(()),
        Some(_) => RightsProblem::NotCarried,
        None => RightsProblem::UnknownProperty,
    };
    Err(RightsError { path: name.to_owned(), problem })
}

/// Parses rights that were stored as JSON. Fails only if the text is not JSON.
///
/// Stored rights are never refused: a property that this version of the software cannot read is left out, so that
/// the item stays readable and its other properties count.
pub fn parse_stored_rights(text: &str) -> Result<RightsMetadata, serde_json::Error> {
    Ok(from_stored(&serde_json::from_str(text)?))
}

/// Reads stored rights for serde; see [`parse_stored_rights`].
pub(super) fn read_stored<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<RightsMetadata, D::Error> {
    Ok(from_stored(&Value::deserialize(deserializer)?))
}

fn from_stored(value: &Value) -> RightsMetadata {
    // Rights read from files may have terms outside the vocabularies, which `from_json` refuses.
    if let Ok(rights) = RightsMetadata::deserialize(value) {
        return rights;
    }
    let mut readable = RightsMetadata::default();
    for (name, value) in value.as_object().into_iter().flatten() {
        let single = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        if let Ok(property) = RightsMetadata::deserialize(single) {
            readable = readable.overlaid(&property);
        }
    }
    readable
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::item::{Asset, AssetFile, PictureFile};
    use crate::{ContentHash, RenditionName, Size};

    fn rights(value: &Value) -> RightsMetadata {
        RightsMetadata::from_json(value).expect("valid")
    }

    fn picture(original: &Value, source: &Value) -> Asset {
        Asset::own(AssetFile::Picture(PictureFile {
            name: RenditionName::NORMAL_HIRES,
            blob: ContentHash::new(b"x"),
            length: 1,
            stored: Size { width: 3, height: 2 },
            orientation: 1,
            progressive: false,
            components: 3,
            is_grey: false,
            picture_hash: None,
            rights: rights(original),
            source_rights: rights(source),
        }))
    }

    #[test]
    fn the_stronger_statement_counts_for_each_property() {
        let assets = [picture(
            &json!({ "title": { "x-default": "file" }, "jobid": "file", "eventId": ["http://a/file"],
                "instructions": "file" }),
            &json!({ "eventId": ["http://a/source"], "instructions": "source" }),
        )];
        let settings = rights(&json!({ "jobid": "settings", "eventId": ["http://a/settings"] }));
        let item = rights(&json!({ "instructions": "item" }));
        let files = AssetGroup::of_item(&assets);
        let layers = RightsLayers { files, default_rights: &settings, rights_override: &item };
        let expected = json!({ "title": { "x-default": "file" }, "jobid": "settings",
            "eventId": ["http://a/source"], "instructions": "item" });
        assert_eq!(layers.effective(), rights(&expected));
        let stated = json!({ "jobid": "settings", "eventId": ["http://a/source"],
            "instructions": "item" });
        assert_eq!(layers.stated(), rights(&stated));
        for name in ["title", "jobid", "eventId", "instructions", "dataMining"] {
            assert_eq!(layers.get(name), layers.effective().get(name), "{name}");
            assert_eq!(layers.text(name), layers.effective().text(name), "{name}");
            assert_eq!(layers.is_stated(name), layers.stated().get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn of_an_item_without_a_picture_only_what_was_set_for_it_counts() {
        let settings = rights(&json!({ "jobid": "settings", "eventId": ["http://a/settings"] }));
        let item = rights(&json!({ "jobid": "item" }));
        let files = AssetGroup::of_item(&[]);
        let layers = RightsLayers { files, default_rights: &settings, rights_override: &item };
        assert_eq!((layers.effective(), layers.stated()), (item.clone(), item.clone()));
        assert_eq!((layers.text("jobid"), layers.get("eventId")), (Some("item"), None));
        assert!(layers.is_stated("jobid") && !layers.is_stated("eventId"));
    }

    #[test]
    fn a_change_leaves_what_it_does_not_name_and_null_removes() {
        let set = rights(&json!({ "jobid": "7", "instructions": "none" }));
        let parse = |changes: Value| RightsUpdate::parse(changes.as_object().expect("object"));
        let change = |changes| parse(changes).unwrap().apply(&set, 1000).unwrap();
        let changed = change(json!({ "jobid": null, "dataMining": "DMI-ALLOWED" }));
        let expected = json!({ "instructions": "none", "dataMining": "DMI-ALLOWED" });
        assert_eq!(changed, rights(&expected));
        assert_eq!(change(json!({})), set);
        assert_eq!(change(json!({ "title": null })), set);
        assert!(parse(json!({ "dataMining": "DMI-MAYBE" })).is_err());
        assert!(parse(json!({ "headline": "of the document" })).is_err());
    }

    #[test]
    fn a_change_names_properties_of_rights_also_to_remove_them() {
        for (name, problem) in [
            ("dataMinning", RightsProblem::UnknownProperty),
            ("headline", RightsProblem::NotCarried),
            ("imageRating", RightsProblem::NotCarried),
        ] {
            let changes = Map::from_iter([(name.to_owned(), Value::Null)]);
            let expected = RightsError { path: name.to_owned(), problem };
            let found = RightsUpdate::parse(&changes);
            assert_eq!(found, Err(RightsStatementError::Property(expected)));
        }
    }

    #[test]
    fn all_that_is_set_is_limited_and_not_each_change_alone() {
        let set = rights(&json!({ "instructions": "x".repeat(60) }));
        let apply = |changes: Value| {
            let changes = changes.as_object().expect("object");
            RightsUpdate::parse(changes).unwrap().apply(&set, 100)
        };
        // {"instructions":"…"} has 19 bytes besides the text, and "jobid":"…" with its comma 11.
        let refused = apply(json!({ "jobid": "y".repeat(11) })).expect_err("too large");
        assert_eq!(refused, RightsStatementError::TooLarge { bytes: 101, max: 100 });
        assert_eq!(refused.path(), "/");
        assert!(apply(json!({ "jobid": "y".repeat(10) })).is_ok());
        assert!(apply(json!({ "instructions": null, "jobid": "y".repeat(80) })).is_ok());
    }

    #[test]
    fn an_empty_value_is_refused_rather_than_ignored() {
        for empty in [json!(""), json!(" "), json!({}), json!({ "x-default": "" })] {
            let changes = Map::from_iter([("usageTerms".to_owned(), empty)]);
            let expected = RightsStatementError::Empty { property: "usageTerms".to_owned() };
            assert_eq!(RightsUpdate::parse(&changes), Err(expected));
        }
        let changes = Map::from_iter([("eventId".to_owned(), json!([]))]);
        let refused = RightsUpdate::parse(&changes).expect_err("empty");
        assert_eq!(refused.path(), "eventId");
        assert_eq!(refused.to_string(), "eventId: the value is empty; null removes the property");
    }

    #[test]
    fn only_a_file_states_regions() {
        let regions =
            json!({ "jobid": "7", "imageRegion": [{ "name": { "x-default": "ball" } }] });
        let changes = regions.as_object().expect("object");
        assert_eq!(RightsUpdate::parse(changes), Err(RightsStatementError::Region));
        assert_eq!(parse_rights_statement(&regions), Err(RightsStatementError::Region));
        assert_eq!(RightsStatementError::Region.path(), "imageRegion");
        assert!(RightsStatementError::Region.to_string().starts_with("imageRegion: regions"));
    }

    #[test]
    fn what_another_version_stored_does_not_hide_the_rest() {
        let text = r#"{"jobid":"7","ofALaterVersion":{"a":1}}"#;
        assert_eq!(parse_stored_rights(text).unwrap(), rights(&json!({ "jobid": "7" })));
        assert!(parse_stored_rights("{").is_err());
    }
}
