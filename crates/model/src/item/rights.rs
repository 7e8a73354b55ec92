//! The layers of rights statements about an item's pictures, and their order of precedence.

use metadata::RightsMetadata;
use metadata::rights::table::Property;
use metadata::rights::{RightsError, RightsProblem};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::AssetGroup;

/// The property with regions of the picture.
const IMAGE_REGION: &str = "imageRegion";

/// The statements about the rights in an item or in one of its associated objects. From weakest to strongest: the
/// original's file, the operator's settings, the source of the file, and the rights override of the item.
#[derive(Clone, Copy, Debug)]
pub struct RightsLayers<'a> {
    /// The files of the item or of the object. The rights of the largest picture count.
    pub files: AssetGroup<'a>,
    /// The default rights of every picture, from the settings. They do not apply to an item without a picture.
    pub settings: &'a RightsMetadata,
    /// The rights override of the item; empty for an associated object, because the override of a text does not
    /// apply to it.
    pub item: &'a RightsMetadata,
}

impl<'a> RightsLayers<'a> {
    /// Returns the strongest value of the property `name`, without the copies that [`RightsLayers::effective`]
    /// makes.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.strongest(name)?.get(name)
    }

    /// Returns the text of the strongest value of a property. For a text by language, this is the text in the
    /// default language.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.strongest(name)?.text(name)
    }

    /// Returns the URI of the digital source type.
    #[must_use]
    pub fn digital_source_type(&self) -> Option<&'a str> {
        self.strongest("digitalSourceType")?.digital_source_type()
    }

    /// Returns the URI of the constraint on data mining.
    #[must_use]
    pub fn data_mining(&self) -> Option<&'a str> {
        self.strongest("dataMining")?.data_mining()
    }

    /// Reports whether the property `name` is in [`RightsLayers::stated`].
    #[must_use]
    pub fn is_stated(&self, name: &str) -> bool {
        if self.item.get(name).is_some() {
            return true;
        }
        let Some(picture) = self.files.whole_picture() else { return false };
        picture.source_rights.get(name).is_some() || self.settings.get(name).is_some()
    }

    /// Returns the strongest statement that has the property `name`.
    fn strongest(&self, name: &str) -> Option<&'a RightsMetadata> {
        if self.item.get(name).is_some() {
            return Some(self.item);
        }
        let picture = self.files.whole_picture()?;
        let statements = [&picture.source_rights, self.settings, &picture.rights];
        statements.into_iter().find(|statement| statement.get(name).is_some())
    }

    /// Returns the rights to pass on: the strongest value of each property.
    #[must_use]
    pub fn effective(&self) -> RightsMetadata {
        let stated = self.stated();
        match self.files.whole_picture() {
            Some(picture) => picture.rights.overlaid(&stated),
            None => stated,
        }
    }

    /// Returns the rights stated by the operator and the source, without the original's file. They replace the
    /// document's values of the same properties.
    #[must_use]
    pub fn stated(&self) -> RightsMetadata {
        match self.files.whole_picture() {
            Some(picture) => self.settings.overlaid(&picture.source_rights).overlaid(self.item),
            None => self.item.clone(),
        }
    }
}

/// The reason for refusing a rights statement of an operator or a source.
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
    #[error("{property}: is empty; null removes what is set")]
    Empty {
        /// The name of the property.
        property: String,
    },
    /// The rights override of the item would be too large.
    #[error("what is set for the item would have {bytes} bytes in all, more than {max}")]
    TooLarge {
        /// The size of the whole override as JSON, in bytes.
        bytes: usize,
        max: usize,
    },
}

impl RightsStatementError {
    /// Returns the path of the invalid property, as in [`RightsError`]; `/` for the whole override.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Property(cause) => &cause.path,
            Self::Region => IMAGE_REGION,
            Self::Empty { property } => property,
            Self::TooLarge { .. } => "/",
        }
    }
}

/// Parses a rights statement of an operator or a source.
///
/// Fails with the path of a property that is unknown, has an invalid value, or that only files can state.
pub fn parse_rights_statement(value: &Value) -> Result<RightsMetadata, RightsStatementError> {
    // The coordinates fit one file. A different version of the picture may be cropped or rotated.
    if value.get(IMAGE_REGION).is_some() {
        return Err(RightsStatementError::Region);
    }
    Ok(RightsMetadata::from_json(value)?)
}

/// Changes of an item's rights override: removed properties, and properties with new values. Other properties
/// stay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RightsUpdate {
    removed: Vec<String>,
    stated: RightsMetadata,
}

impl RightsUpdate {
    /// Parses an object of properties, in which `null` removes a property.
    ///
    /// Fails like [`parse_rights_statement`], and for an empty value. Removing a missing property is not an error.
    pub fn parse(changes: &Map<String, Value>) -> Result<Self, RightsStatementError> {
        let (removed, values): (Map<String, Value>, Map<String, Value>) =
            changes.clone().into_iter().partition(|(_, value)| value.is_null());
        let removed: Vec<String> = removed.into_iter().map(|(name, _)| name).collect();
        removed.iter().try_for_each(|name| check_carried(name))?;
        let values = Value::Object(values);
        let stated = parse_rights_statement(&values)?;
        // An empty value states nothing, so the old value would stay although the caller replaced it.
        let mut names = values.as_object().into_iter().flat_map(Map::keys);
        match names.find(|name| stated.get(name).is_none()) {
            Some(name) => Err(RightsStatementError::Empty { property: name.clone() }),
            None => Ok(Self { removed, stated }),
        }
    }

    /// Returns the rights override `set` with the changes.
    ///
    /// Fails with [`RightsStatementError::TooLarge`] if the result has more than `bytes_max` bytes as JSON.
    pub fn apply(
        &self,
        set: &RightsMetadata,
        bytes_max: usize,
    ) -> Result<RightsMetadata, RightsStatementError> {
        let mut kept = set.to_json();
        if let Value::Object(kept) = &mut kept {
            kept.retain(|name, _| !self.removed.contains(name));
        }
        let changed = of_stored(&kept).overlaid(&self.stated);
        let bytes = changed.to_json().to_string().len();
        if bytes > bytes_max {
            return Err(RightsStatementError::TooLarge { bytes, max: bytes_max });
        }
        Ok(changed)
    }
}

/// Checks that the property `name` is a rights property, because a misspelled name would remove nothing.
fn check_carried(name: &str) -> Result<(), RightsError> {
    let problem = match Property::named(name) {
        Some(property) if property.is_carried() => return Ok(()),
        Some(_) => RightsProblem::NotCarried,
        None => RightsProblem::UnknownProperty,
    };
    Err(RightsError { path: name.to_owned(), problem })
}

/// Parses rights that were stored as JSON.
///
/// Fails if the text is not JSON.
pub fn parse_stored_rights(text: &str) -> Result<RightsMetadata, serde_json::Error> {
    Ok(of_stored(&serde_json::from_str(text)?))
}

/// Reads the rights in the record of a file.
pub(super) fn read_stored<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<RightsMetadata, D::Error> {
    Ok(of_stored(&Value::deserialize(deserializer)?))
}

fn of_stored(value: &Value) -> RightsMetadata {
    // Rights read from files may have terms outside the vocabularies, which `from_json` refuses.
    if let Ok(rights) = RightsMetadata::deserialize(value) {
        return rights;
    }
    // A different version of the software may have stored a property that this version refuses. The item must stay
    // readable, and its other properties count.
    let properties = value.as_object().into_iter().flatten();
    let each = properties.filter_map(|(name, value)| {
        let single = Map::from_iter([(name.clone(), value.clone())]);
        RightsMetadata::deserialize(Value::Object(single)).ok()
    });
    each.fold(RightsMetadata::default(), |rights, property| rights.overlaid(&property))
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
        let layers = RightsLayers { files, settings: &settings, item: &item };
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
        let layers = RightsLayers { files, settings: &settings, item: &item };
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
        assert_eq!(refused.to_string(), "eventId: is empty; null removes what is set");
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
