//! The properties that a query can name.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use strum::IntoEnumIterator;

use super::address;
use super::field::{DateField, OrderedField, QueryField, TextField};
use super::number::NumberField;

/// A property whose words are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexedProperty {
    /// The path of the property in the document, without list indexes.
    pub(super) name: &'static str,
    /// True if free text, the words of a query that no field name precedes, is searched in this property too.
    pub(super) in_free_text: bool,
    /// The two letters that stand for the property in the index. All properties share a field of the index, in which
    /// the token of the word `erik` of this property is `<code>=erik`.
    pub(super) code: [char; 2],
}

/// The name of [`QueryField::Id`] in queries. It is not a property of documents.
pub(super) const ID: &str = "id";

/// The property `uri`, indexed as `<mediaType>/<id>` without the host.
pub(super) const URI: &str = "uri";
/// The media type of the item. It is not a property of documents.
pub(super) const MEDIA_TYPE: &str = "mediatype";
/// The property `type`, which follows from the media type.
pub(super) const TYPE: &str = "type";
/// The property `pubstatus`, which has a default.
pub(super) const PUB_STATUS: &str = "pubstatus";
/// The names of subjects from a keyword scheme. It is not a property of documents.
pub(super) const KEYWORD: &str = "keyword";
/// The way in which a picture was created, a term of the IPTC's vocabulary. It is not a property of documents.
pub(super) const DIGITAL_SOURCE_TYPE: &str = "digitalsourcetype";
/// The permission for data mining, a term of the PLUS vocabulary. It is not a property of documents.
pub(super) const DATA_MINING: &str = "datamining";
/// The shape of a picture. It is not a property of documents.
pub(super) const ORIENTATION: &str = "orientation";
/// The colour of a picture. It is not a property of documents.
pub(super) const COLOUR: &str = "colour";
/// The coordinates of a place. No query can name them, and there may be many, so they are skipped when a
/// document is indexed.
pub(super) const GEOMETRY: &str = "geometry_geojson";

/// Finds the indexed property with this path.
pub(super) fn property(path: &str) -> Option<IndexedProperty> {
    // The order of `PROPERTIES`.
    let sort_key = (path.len(), path);
    let at = PROPERTIES.binary_search_by(|(name, _)| (name.len(), *name).cmp(&sort_key)).ok()?;
    let (name, in_free_text) = PROPERTIES[at];
    Some(IndexedProperty { name, in_free_text, code: letters(at) })
}

/// Iterates over the names of all properties.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PROPERTIES.iter().map(|(name, _)| *name)
}

/// Returns the two letters with which tokens of a property begin. They encode its position in [`PROPERTIES`].
pub(super) fn code(name: &str) -> [char; 2] {
    // No property has the last code, so tokens of an unknown name match nothing.
    property(name).map_or_else(|| letters(CODES_MAX - 1), |property| property.code)
}

fn letters(position: usize) -> [char; 2] {
    [position / LETTERS.len(), position % LETTERS.len()].map(|digit| char::from(LETTERS[digit]))
}

const LETTERS: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
/// Number of codes with two letters. The last code is used for unknown properties.
const CODES_MAX: usize = LETTERS.len() * LETTERS.len();

/// Finds the field with the name `name` in queries; case-insensitive.
pub(super) fn find(name: &str) -> Option<QueryField> {
    let name = name.to_ascii_lowercase();
    let date = name.parse::<DateField>().ok().map(OrderedField::Date);
    // Dates and numbers are columns, not words, so they are not in `PROPERTIES`.
    let number = name.parse::<NumberField>().ok().map(OrderedField::Number);
    if let Some(ordered) = date.or(number) {
        return Some(QueryField::Ordered(ordered));
    }
    Some(QueryField::Words(match name.as_str() {
        ID => return Some(QueryField::Id),
        "headline" => TextField::Headline,
        "description_text" => TextField::Description,
        // A document may have its body in several of these formats; the index has the text of one of them.
        "body_text" | "body_html5" | "body_richhtml5" => TextField::Body,
        name => TextField::Named(property(name)?.name),
    }))
}

impl TextField {
    /// Finds the field with the name `name` in queries; case-insensitive.
    pub fn find(name: &str) -> Option<Self> {
        match find(name)? {
            QueryField::Words(field) => Some(field),
            // Values of these fields are compared as a whole, so they have no words.
            QueryField::Ordered(_) | QueryField::Id => None,
        }
    }
}

/// Returns whether every item has a value of this property.
pub(super) fn is_in_every_item(name: &str) -> bool {
    // These values follow from the key of the item or have a default, so every item has them.
    [URI, MEDIA_TYPE, TYPE, PUB_STATUS].contains(&name)
}

/// Returns the text to index, and to look up, for `value` of the property `name`. URIs of items and terms of
/// vocabularies are shortened.
pub(super) fn searched_text<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    match name {
        URI | "replacing" | "replacedby" => item_words(value),
        DIGITAL_SOURCE_TYPE | DATA_MINING => term_code(value).into(),
        _ => value.into(),
    }
}

/// Returns the text to index and to look up for an item URI: `<mediaType>/<id>` regardless of the host. A value
/// that is not the URI of an item stays unchanged.
fn item_words(value: &str) -> Cow<'_, str> {
    match address::find_item(value) {
        Some(key) => key.to_string().into(),
        None => value.into(),
    }
}

/// The vocabularies of [`DIGITAL_SOURCE_TYPE`] and [`DATA_MINING`], without `http` or `https`. The library `metadata`
/// has them too, but this library depends only on `model`; a test of the server's search uses both.
const VOCABULARIES: [&str; 2] =
    ["://cv.iptc.org/newscodes/digitalsourcetype/", "://ns.useplus.org/ldf/vocab/"];

/// Returns the code of a term, or the whole value if it does not belong to a known vocabulary. A term means the
/// same as its code.
pub(super) fn term_code(value: &str) -> &str {
    let rest = value.strip_prefix("https").or_else(|| value.strip_prefix("http"));
    let code = rest.and_then(|rest| VOCABULARIES.iter().find_map(|base| rest.strip_prefix(base)));
    code.filter(|code| !code.is_empty()).unwrap_or(value)
}

/// The top-level properties with indexed words or numbers: the first segment of each path. Documents are indexed in
/// this order, which is alphabetical.
///
/// Headline, description, body, dates and what every item has are indexed separately. Names that are not properties
/// of documents, such as [`COLOUR`], are included too. That is harmless: the schema permits no document to have
/// such a property, and their words are added separately.
pub(super) static TOP_LEVEL_NAMES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let words = PROPERTIES.iter().map(|(name, _)| *name);
    let paths = words.chain(NumberField::iter().map(NumberField::as_str));
    let not_separate = paths.filter(|path| !is_in_every_item(path));
    not_separate.filter_map(|path| path.split('.').next()).collect()
});

/// The name and [`IndexedProperty::in_free_text`] of every property that a query can name, except headline,
/// description, body, dates and numbers. Sorted by length first, so that most steps of a lookup compare two numbers.
///
/// A new or removed property changes the codes of those after it, and a property that moves between the two lists
/// changes the indexed free text. After either, `ANALYSIS` in the library `search-index` has to be raised.
static PROPERTIES: LazyLock<Vec<(&str, bool)>> = LazyLock::new(|| {
    let in_free_text = FREE_PROPERTIES.split(' ').map(|name| (name, true));
    let others = OTHER_PROPERTIES.split(' ').map(|name| (name, false));
    let mut all: Vec<_> = in_free_text.chain(others).collect();
    all.sort_unstable_by_key(|(name, _)| (name.len(), *name));
    all
});

/// The properties that free text searches besides headline, description and body.
const FREE_PROPERTIES: &str = "\
    body_event.address body_event.arena body_event.city body_event.country body_event.eventtags \
    body_event.eventtype_text body_event.municipality_text body_event.note_extra \
    body_event.note_pm body_event.organizer body_event.organizercity body_event.region_text \
    byline bylines.byline event.name fixture.name genre.name located object.name \
    organisation.name person.name place.name slug slugline subject.code subject.name title";

/// The properties that free text does not search: a query finds their words only if it names the property.
///
/// A test lists the properties of the schema that no query can name: those of other items and renditions, identifiers
/// of vocabularies (`scheme`), page layout, sports results as SportsML, machine-readable rights (`rightsinfo`), links
/// to trust indicators, the version of the schema, and coordinates.
const OTHER_PROPERTIES: &str = "\
    advice.environment.code advice.importance.code advice.lifetime.code advice.role \
    altids.originaltransmissionreference body_event.accreditation body_event.changedby \
    body_event.changeddate body_event.courtcasenumber body_event.createdby \
    body_event.createddate body_event.eventphone body_event.eventstatus \
    body_event.eventstatus_text body_event.eventtype body_event.eventurl body_event.eventweb \
    body_event.extraurl body_event.municipality body_event.organizeraddress \
    body_event.organizercountry body_event.organizermail body_event.organizerphone \
    body_event.organizerurl body_event.region bylines.affiliation bylines.email \
    bylines.firstname bylines.initials bylines.internal bylines.jobtitle bylines.lastname \
    bylines.phone bylines.role colour commissioncode commissionedby copyrightholder \
    copyrightnotice datamining description_usage digitalsourcetype ednote embargoedreason \
    event.code event.rel fixture.code fixture.rel genre.code infosource.code \
    infosource.contactinfo.address.area infosource.contactinfo.address.country \
    infosource.contactinfo.address.lines infosource.contactinfo.address.locality \
    infosource.contactinfo.address.postalcode infosource.contactinfo.lang \
    infosource.contactinfo.name infosource.contactinfo.role infosource.contactinfo.type \
    infosource.contactinfo.value infosource.name infosource.rel job keyword language mediatype \
    mimetype object.code object.rel organisation.code organisation.contactinfo.address.area \
    organisation.contactinfo.address.country organisation.contactinfo.address.lines \
    organisation.contactinfo.address.locality organisation.contactinfo.address.postalcode \
    organisation.contactinfo.lang organisation.contactinfo.name organisation.contactinfo.role \
    organisation.contactinfo.type organisation.contactinfo.value organisation.rel \
    organisation.symbols.exchange organisation.symbols.symbol organisation.symbols.symboltype \
    organisation.symbols.ticker orientation originaltransmissionreference person.code \
    person.contactinfo.address.area person.contactinfo.address.country \
    person.contactinfo.address.lines person.contactinfo.address.locality \
    person.contactinfo.address.postalcode person.contactinfo.lang person.contactinfo.name \
    person.contactinfo.role person.contactinfo.type person.contactinfo.value person.rel \
    place.code place.contactinfo.address.area place.contactinfo.address.country \
    place.contactinfo.address.lines place.contactinfo.address.locality \
    place.contactinfo.address.postalcode place.contactinfo.lang place.contactinfo.name \
    place.contactinfo.role place.contactinfo.type place.contactinfo.value place.rel product.code \
    product.name profile pubstatus replacedby replacing representationtype sector \
    signals.pagecode signals.pageproduct signals.pagevariant signals.paginae \
    signals.retransmission signals.updatetype source subject.creator subject.rel type uri \
    usageterms version";

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Properties of the schema that no query can name, at any depth, with everything below them.
    const EXCLUDED: [&str; 11] = [
        "$standard",
        "assignments",
        "associations",
        "body_pages",
        "body_sportsml",
        GEOMETRY,
        "renditions",
        "revisions",
        "rightsinfo",
        "scheme",
        "trustindicator",
    ];

    /// Names that are not properties of documents.
    const OWN: [&str; 6] =
        [MEDIA_TYPE, KEYWORD, DIGITAL_SOURCE_TYPE, DATA_MINING, ORIENTATION, COLOUR];
    /// Numbers that are not properties of documents.
    const OWN_NUMBERS: [NumberField; 2] = [NumberField::Width, NumberField::Height];

    fn leaves(schema: &Value, node: &Value, path: &str, found: &mut BTreeSet<String>) {
        let definition = node["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
        let node = definition.map_or(node, |to| schema.pointer(to).expect("a definition"));
        if let Some(items) = node.get("items") {
            return leaves(schema, items, path, found);
        }
        let Some(properties) = node.get("properties").and_then(Value::as_object) else {
            found.insert(path.to_owned());
            return;
        };
        for (name, node) in properties {
            if !EXCLUDED.contains(&name.as_str()) {
                let dot = if path.is_empty() { "" } else { "." };
                leaves(schema, node, &format!("{path}{dot}{name}"), found);
            }
        }
    }

    fn schema_leaves() -> BTreeSet<String> {
        let text = model::item::SCHEMA;
        let schema: Value = serde_json::from_str(text).unwrap();
        let mut found = BTreeSet::new();
        leaves(&schema, &schema, "", &mut found);
        found
    }

    #[test]
    fn every_leaf_of_the_schema_can_be_named() {
        let leaves = schema_leaves();
        assert!(leaves.contains("person.contactinfo.address.lines"), "{leaves:?}");
        let missing: Vec<_> = leaves.iter().filter(|name| find(name).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn every_property_is_in_the_schema_or_our_own() {
        let leaves = schema_leaves();
        let unknown: Vec<_> = PROPERTIES
            .iter()
            .filter(|(name, _)| !leaves.contains(*name) && !OWN.contains(name))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn numbers_are_the_numbers_of_the_schema() {
        let text = model::item::SCHEMA;
        let schema: Value = serde_json::from_str(text).unwrap();
        let leaves = schema_leaves();
        let is_number = |path: &&String| {
            let node = path.split('.').fold(&schema, |node, name| {
                let definition = node["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
                let node = definition.map_or(node, |to| schema.pointer(to).expect("a definition"));
                &node.get("items").unwrap_or(node)["properties"][name]
            });
            ["number", "integer"].contains(&node["type"].as_str().unwrap_or_default())
        };
        let of_documents = NumberField::iter().filter(|one| !OWN_NUMBERS.contains(one));
        let expected: BTreeSet<&str> = of_documents.map(NumberField::as_str).collect();
        let found: BTreeSet<&str> = leaves.iter().filter(is_number).map(String::as_str).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn properties_are_listed_once_and_each_is_reached() {
        assert!(PROPERTIES.is_sorted_by(|(a, _), (b, _)| (a.len(), a) < (b.len(), b)));
        for (name, _) in PROPERTIES.iter() {
            let top = name.split('.').next().unwrap();
            // A property is reached in one of two ways, and never in both.
            assert_ne!(TOP_LEVEL_NAMES.contains(top), is_in_every_item(name), "{name}");
        }
    }

    #[test]
    fn every_property_has_its_own_code() {
        let codes: BTreeSet<_> = PROPERTIES.iter().map(|(name, _)| code(name)).collect();
        assert_eq!(codes.len(), PROPERTIES.len());
        assert!(!codes.contains(&code("no property")));
    }

    #[test]
    fn names_are_found_in_any_case() {
        assert_eq!(find("Person.NAME"), Some(QueryField::Words(TextField::Named("person.name"))));
        assert_eq!(find("body_richhtml5"), Some(QueryField::Words(TextField::Body)));
        assert_eq!(
            find("DateTime"),
            Some(QueryField::Ordered(OrderedField::Date(DateField::DateTime)))
        );
        let urgency = QueryField::Ordered(OrderedField::Number(NumberField::Urgency));
        assert_eq!(find("Urgency"), Some(urgency));
        assert_eq!(find("person"), None);
        assert_eq!(find("renditions.r00.href"), None);
    }

    #[test]
    fn a_term_means_the_same_as_its_code() {
        for (term, code) in [
            ("http://cv.iptc.org/newscodes/digitalsourcetype/digitalArt", "digitalArt"),
            ("https://ns.useplus.org/ldf/vocab/DMI-PROHIBITED", "DMI-PROHIBITED"),
            ("digitalArt", "digitalArt"),
            ("https://a.example/terms/x", "https://a.example/terms/x"),
        ] {
            assert_eq!(term_code(term), code);
        }
    }

    #[test]
    fn uris_of_items_lose_their_host() {
        assert_eq!(item_words("https://a.b/x/media/image/sdl_1-R"), "image/sdl_1-R");
        assert_eq!(item_words("sdl_1-R"), "sdl_1-R");
    }
}
