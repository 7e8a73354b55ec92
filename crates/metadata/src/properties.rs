//! Merges the IPTC properties of a file from the caption and the carried rights, so that each is written once.
//!
//! Some properties are carried from the original and are also fields of the caption, which comes from the item's
//! document: title, job title and id, instructions, usage terms, subject codes, the copyright owner and the
//! identifier. The caption's value is written, because a correction overrides the original. If the original has
//! the same value with more detail (other languages, the id of an owner), the detailed value is written. If the
//! caption has no value, the original's value is written. Only for the identifier the original's value has
//! precedence. To write only the document's value of a property, the caller removes the property from the rights
//! first ([`RightsMetadata::without`]).

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::Caption;
use crate::rights::RightsMetadata;
use crate::rights::member::Member;
use crate::rights::member::ValueKind::*;
use crate::rights::table::{PROPERTIES, Property, PropertyClass};
use crate::rights::values::{X_DEFAULT, joined_text};

/// The name of the property for the identifier of a picture.
const IMAGE_GUID: &str = "digitalImageGuid";

/// Returns the IPTC properties of a file with this caption and these rights, as they are written to XMP.
///
/// Names and structures are the same as in [`RightsMetadata`]; the result also has the properties of the document.
///
/// ```
/// use metadata::rights::RightsMetadata;
/// use metadata::{Caption, properties};
/// use serde_json::json;
///
/// let caption = Caption { headline: "Snö".to_owned(), ..Caption::default() };
/// let rights = RightsMetadata::from_json(&json!({ "dataMining": "DMI-PROHIBITED" }))?;
/// let all = properties(&caption, &rights);
/// assert_eq!(all["headline"], "Snö");
/// assert_eq!(all["dataMining"], "http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED");
/// # Ok::<(), metadata::rights::RightsError>(())
/// ```
pub fn properties(caption: &Caption, rights: &RightsMetadata) -> Map<String, Value> {
    let merged = merged(&crate::clean_caption(caption), rights);
    merged.into_iter().map(|(of, value)| (of.name.to_owned(), value.into_owned())).collect()
}

/// A property or member with its value.
pub(crate) type NamedValue<'a> = (&'static Member, Cow<'a, Value>);

/// Returns the properties of a clean caption and of rights, in the order of the table.
pub(crate) fn merged<'a>(caption: &Caption, rights: &'a RightsMetadata) -> Vec<NamedValue<'a>> {
    let mut of_caption = of_caption(caption);
    let values = PROPERTIES.iter().filter_map(|property| {
        let name = property.member.name;
        let value = match (of_caption.remove(name), rights.get(name)) {
            (Some(own), Some(carried)) if joined_text(&own) == joined_text(carried) => {
                Cow::Borrowed(carried)
            }
            // The picture's own identifier, by which other systems know it; ours is only for pictures without one.
            (Some(_), Some(carried)) if name == IMAGE_GUID => Cow::Borrowed(carried),
            (Some(own), _) => Cow::Owned(own),
            (None, carried) => Cow::Borrowed(carried?),
        };
        Some((&property.member, value))
    });
    values.collect()
}

/// Returns the properties of a clean caption.
pub(crate) fn of_caption(caption: &Caption) -> Map<String, Value> {
    let mut caption = caption.clone();
    let mut found = Map::new();
    for (name, text) in crate::texts(&mut caption) {
        if let Some(property) = Property::named(name).filter(|_| !text.is_empty()) {
            found.insert(name.to_owned(), text_value(&property.member, text));
        }
    }
    for (name, list) in crate::lists(&mut caption) {
        if !list.is_empty() {
            found.insert(name.to_owned(), json!(list));
        }
    }
    found.extend(caption.created.map(|created| ("dateCreated".to_owned(), Value::from(created))));
    found
}

/// Builds the value of a property from a text.
fn text_value(member: &Member, text: &str) -> Value {
    let value = match member.kind {
        AltLang => json!({ X_DEFAULT: text }),
        // The only structure among the text fields is the copyright owner.
        Structure(_) => json!({ "copyrightOwnerName": text }),
        Text | Uri | Url | DateTime | Vocabulary(_) | Number(_) => Value::from(text),
    };
    if member.many.is_some() { Value::Array(vec![value]) } else { value }
}

/// Adds the carried properties of a caption to the rights of the same file, if the rights lack them.
///
/// `caption` is merged from all standards, and the rights from XMP may lack properties that only IIM or EXIF has.
pub(crate) fn with_caption(rights: RightsMetadata, caption: &Caption) -> RightsMetadata {
    let mut of_caption = of_caption(caption);
    of_caption.retain(|name, _| {
        Property::named(name).is_some_and(|property| property.class != PropertyClass::Document)
    });
    rights.completed(RightsMetadata::carried(of_caption))
}

/// Fills missing fields of a caption from carried properties, and replaces its identifier with a carried one.
///
/// IIM and EXIF, which hold only texts, are written from the result, so that they agree with XMP.
pub(crate) fn completed(caption: &Caption, rights: &RightsMetadata) -> Caption {
    let mut completed = caption.clone();
    for (name, text) in crate::texts(&mut completed) {
        let counts = text.is_empty() || name == IMAGE_GUID;
        if let Some(value) = rights.get(name).filter(|_| counts) {
            *text = joined_text(value);
        }
    }
    for (name, list) in crate::lists(&mut completed) {
        if let Some(entries) = rights.get(name).and_then(Value::as_array)
            && list.is_empty()
        {
            *list = entries.iter().map(joined_text).collect();
        }
    }
    completed
}
