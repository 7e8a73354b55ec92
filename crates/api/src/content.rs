//! The content API: searches, suggestions while a text is typed, and the deprecated stream.

use std::collections::BTreeMap;

use jiff::civil::Date;
use model::MediaType;
use model::item::{DocumentLayout, PubStatus};
use query::limits::FILTER_SIDE_PX_MAX;
use query::{Facet, FilterField};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::access::{Access, UnknownCaller};
use crate::answer::{Deprecated, Json};
use crate::body::NoBody;
use crate::endpoint::Section;
use crate::limits::{HITS_DEFAULT, HITS_MAX};
use crate::{endpoint, property};

/// Default wait of a long poll of the deprecated stream, in seconds (contract search-19).
pub const POLL_S: u32 = 60;
/// Maximum wait that such a poll can ask for, in seconds (contract search-19).
pub const POLL_S_MAX: u32 = 300;
/// Words, and values of each facet, that are suggested unless asked for otherwise.
pub const SUGGESTIONS_DEFAULT: usize = 6;
/// Words, and values of each facet, that are suggested at most.
pub const SUGGESTIONS_MAX: usize = 20;
/// Characters of a text that is completed.
pub const SUGGESTION_CHARS_MAX: usize = 200;
/// The facets whose values are suggested.
pub const SUGGESTED_FACETS: [Facet; 3] = [Facet::PersonName, Facet::PlaceName, Facet::SubjectName];

/// The path segment that means every media type.
pub const ANY_MEDIA_TYPE: &str = "_all";
/// The statuses that a search can ask for.
const SEARCHED_STATUSES: [PubStatus; 3] =
    [PubStatus::Usable, PubStatus::Replaced, PubStatus::Commissioned];

const SECTION: Section = Section {
    name: "Content",
    description: "Search the archive and receive new items as they arrive.",
};

const OPEN: Access = Access { anonymous: true, ..Access::ROLES };

endpoint! {
    /// Search in the archive.
    ///
    /// Finds items that the caller's agreements cover; `agr` and `p` narrow the search. Photos (`image`) are also found without
    /// credentials unless the operator has disabled this; `agr` and commissioned items always need credentials. This is the only
    /// operation that accepts a user name and password (HTTP Basic).
    ///
    /// The filters, from `subject.code` to `terms`, narrow any query. A filter given several times finds items with any of its
    /// values; a leading `-` excludes a value.
    #[derive(PartialEq, Eq)]
    #[serde(default)]
    SearchItems: GET "/content/v1/{mediaType}/search", "search", UnknownCaller: Access { basic: true, ..OPEN }, NoBody => Json<SearchResult>, NotFound {
        /// The media type; `_all` searches all of them.
        #[serde(rename = "mediaType", with = "any_media_type")]
        #[schemars(schema_with = "searched_media_types")]
        pub media_type: Option<MediaType>,
        /// The search query: all words must match. Supports `OR` (`||`), `AND` (`&&`), `NOT` (`-`, `!`), parentheses, "phrases",
        /// `field:value`, `prefix*`, `*`, and for dates and numbers `field:[a TO b]` and `field:>a`. The address or id of an item
        /// finds that item.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub q: String,
        #[serde(flatten)]
        pub scope: SearchScope,
        /// True lets words of `q` match in other forms too (stemming): `hund` finds *hundar* in a Swedish text. The item's
        /// `language` selects the rules: Swedish, English, Norwegian, Danish, Finnish or German; items in unknown or other
        /// languages are treated as Swedish and English. Only lower-case words without quotation marks or `*` are expanded,
        /// either without a field or in `headline`, `description_text` and `body_text`, and not after `NOT` or `-`. When sorted
        /// by relevance, exact matches come first.
        pub forms: bool,
        #[serde(flatten)]
        pub period: SearchPeriod,
        /// Publication statuses. `commissioned` is for administrators and the provider. A list: `pubstatus=a,b`,
        /// `pubstatus=a&pubstatus=b` or `pubstatus[]=a&pubstatus[]=b`.
        #[serde(rename = "pubstatus", with = "property::word_list")]
        #[schemars(schema_with = "searched_statuses")]
        pub statuses: Vec<PubStatus>,
        /// The maximum number of hits.
        #[serde(rename = "s")]
        #[schemars(range(max = HITS_MAX))]
        pub size: usize,
        /// The number of hits to skip, preferably a multiple of `s`.
        #[serde(rename = "fr")]
        #[schemars(range(max = HITS_MAX))]
        pub skip: usize,
        /// The order of hits. `default` orders by `versioncreated`, and pictures and videos of today by arrival: what arrives
        /// late with an older date is not the latest.
        #[serde(with = "property::Word")]
        #[schemars(schema_with = "property::words::<SearchOrder>")]
        pub sort: SearchOrder,
        /// Fields to count the hits by (facets). A list: `facets=a,b`, `facets=a&facets=b` or `facets[]=a&facets[]=b`.
        #[serde(with = "property::word_list", skip_serializing_if = "Vec::is_empty")]
        #[schemars(schema_with = "property::lists_of_words::<Facet>")]
        pub facets: Vec<Facet>,
        /// `bare` returns what a list needs: no body text and one thumbnail.
        #[serde(with = "property::Word")]
        #[schemars(schema_with = "property::words::<DocumentLayout>")]
        pub layout: DocumentLayout,
        #[serde(flatten)]
        #[schemars(schema_with = "filters")]
        pub filters: FilterValues,
        /// Only items whose picture is nearly that of this item, named by media type and id: the same photograph sent twice,
        /// saved again or in another size. The item itself is one of them. `404` if the caller would not find it, `400` if its
        /// picture cannot be compared.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(example = "image/demo-urtavla")]
        pub duplicates: Option<String>,
        /// Only items that come after this one, named by its `uri`, in the order `default:asc`: with the first hit of an earlier
        /// answer, what is newer. It does not find what arrived since with an older date; `versionstored` in `q` does.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("format" = "uri"))]
        pub last: Option<String>,
    }
}

impl Default for SearchItems {
    fn default() -> Self {
        Self {
            media_type: None,
            q: String::new(),
            scope: SearchScope::default(),
            forms: false,
            period: SearchPeriod::default(),
            statuses: vec![PubStatus::Usable],
            size: HITS_DEFAULT,
            skip: 0,
            sort: SearchOrder::default(),
            facets: Vec::new(),
            layout: DocumentLayout::default(),
            filters: FilterValues::new(),
            duplicates: None,
            last: None,
        }
    }
}

/// The values of filters by the name of the field.
pub type FilterValues = BTreeMap<String, Vec<String>>;

/// The products and agreements that narrow a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchScope {
    /// Product codes; items with any of them are found. A leading `-` excludes a product. A list: `p=a,b`, `p=a&p=b` or
    /// `p[]=a&p[]=b`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(regex(pattern = property::CODE)))]
    pub p: Vec<String>,
    /// Ids of the caller's agreements; items that any of them covers are found. A list: `agr=a,b`, `agr=a&agr=b` or
    /// `agr[]=a&agr[]=b`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agr: Vec<i64>,
}

/// The times that narrow a search.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchPeriod {
    /// The past hour, day, week, month or year.
    #[serde(with = "property::OptionalWord")]
    #[schemars(schema_with = "property::optional_words::<RecentSpan>")]
    pub tr: Option<RecentSpan>,
    /// Start date, from midnight at the beginning of this day.
    pub trs: Option<Date>,
    /// End date, until midnight at the beginning of this day.
    pub tre: Option<Date>,
}

/// A time span until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
pub enum RecentSpan {
    #[strum(serialize = "h")]
    Hour,
    #[strum(serialize = "d")]
    Day,
    #[strum(serialize = "w")]
    Week,
    #[strum(serialize = "m")]
    Month,
    #[strum(serialize = "y")]
    Year,
}

/// The order of the hits of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
pub enum SearchOrder {
    #[default]
    #[strum(serialize = "default:desc")]
    LastArrived,
    #[strum(serialize = "default:asc")]
    FirstArrived,
    #[strum(serialize = "date:desc")]
    LatestDate,
    #[strum(serialize = "date:asc")]
    EarliestDate,
    #[strum(serialize = "versioncreated:desc")]
    LastCreated,
    #[strum(serialize = "versioncreated:asc")]
    FirstCreated,
    #[strum(serialize = "versionstored:desc")]
    LastStored,
    #[strum(serialize = "versionstored:asc")]
    FirstStored,
    #[strum(serialize = "relevance")]
    Relevance,
}

endpoint! {
    /// Complete a text that is being typed.
    ///
    /// Suggests words, persons, places and subjects for a search box, each with the number of items that a search of the caller
    /// would find. The filters and dates of a search narrow what is counted. A text with signs of the query language is not
    /// completed.
    #[derive(PartialEq, Eq)]
    #[serde(default)]
    SuggestTexts: GET "/content/v1/{mediaType}/suggest", "suggest", UnknownCaller: OPEN, NoBody => Json<Suggestions> {
        /// The media type; `_all` searches all of them.
        #[serde(rename = "mediaType", with = "any_media_type")]
        #[schemars(schema_with = "searched_media_types")]
        pub media_type: Option<MediaType>,
        /// The text, of 200 characters at most. Its last word is completed, from two letters on; the others count as they are.
        #[serde(skip_serializing_if = "String::is_empty")]
        #[schemars(length(max = SUGGESTION_CHARS_MAX))]
        pub q: String,
        /// True if the text is complete, and is to be respelled: words that occur in no item of the caller are replaced by the
        /// nearest ones that do.
        pub spelling: bool,
        /// The maximum number of words, and of values of each facet.
        #[serde(rename = "s")]
        #[schemars(range(max = SUGGESTIONS_MAX))]
        pub size: usize,
        #[serde(flatten)]
        pub scope: SearchScope,
        #[serde(flatten)]
        pub period: SearchPeriod,
        #[serde(flatten)]
        #[schemars(schema_with = "filters")]
        pub filters: FilterValues,
    }
}

impl Default for SuggestTexts {
    fn default() -> Self {
        Self {
            media_type: None,
            q: String::new(),
            spelling: false,
            size: SUGGESTIONS_DEFAULT,
            scope: SearchScope::default(),
            period: SearchPeriod::default(),
            filters: FilterValues::new(),
        }
    }
}

endpoint! {
    /// Wait for the latest item.
    ///
    /// A long poll. It cannot guarantee delivery when two items are published at the same instant.
    #[derive(PartialEq, Eq)]
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    StreamItems: GET "/content/v1/{mediaType}/stream", "stream", UnknownCaller: OPEN, NoBody => Deprecated<StreamResult> {
        /// The media type; `_all` searches all of them.
        #[serde(rename = "mediaType", with = "any_media_type")]
        #[schemars(schema_with = "streamed_media_types")]
        pub media_type: Option<MediaType>,
        /// The search query, as in a search.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub q: String,
        #[serde(flatten)]
        pub scope: SearchScope,
        /// The order of hits. `default` orders by `versioncreated`, and pictures and videos of today by arrival: what arrives
        /// late with an older date is not the latest.
        #[serde(with = "property::Word")]
        #[schemars(schema_with = "property::words::<SearchOrder>")]
        pub sort: SearchOrder,
        /// `bare` returns what a list needs: no body text and one thumbnail.
        #[serde(with = "property::Word")]
        #[schemars(schema_with = "property::words::<DocumentLayout>")]
        pub layout: DocumentLayout,
        /// The `uri` of the last item received. Finds only items that come after it in the order `default:asc`, so not what
        /// arrived since with an older date.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("format" = "uri"))]
        pub last: Option<String>,
        /// Seconds to wait for a match.
        #[schemars(range(max = POLL_S_MAX))]
        pub wait: u32,
    }
}

impl Default for StreamItems {
    fn default() -> Self {
        Self {
            media_type: None,
            q: String::new(),
            scope: SearchScope::default(),
            sort: SearchOrder::default(),
            layout: DocumentLayout::default(),
            last: None,
            wait: POLL_S,
        }
    }
}

/// The hits of a search.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SearchResult {
    #[schemars(schema_with = "property::news_items")]
    pub hits: Vec<Value>,
    /// The total number of matching items.
    pub total: u64,
    /// Only the requested facets.
    #[schemars(schema_with = "counted_facets")]
    pub facets: FacetCounts,
}

/// The counted values of facets by the name of the facet.
pub type FacetCounts = BTreeMap<String, Vec<FacetCount>>;

/// A value, and the number of items that have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Facet")]
pub struct FacetCount {
    pub key: String,
    pub count: u64,
}

/// The completions of the text, the most frequent first.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Suggestions {
    /// Words that begin with the last word of the text.
    pub words: Vec<FacetCount>,
    /// Names that contain the text.
    #[schemars(schema_with = "suggested_facets")]
    pub facets: FacetCounts,
    /// The text in a spelling that finds items, if one was asked for and found.
    pub spelling: Option<String>,
}

/// The latest matching item, or none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StreamResult {
    #[schemars(schema_with = "property::news_items")]
    pub hits: Vec<Value>,
}

/// Reads and writes a media type of a path, of which [`ANY_MEDIA_TYPE`] is `None`.
pub(crate) mod any_media_type {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{ANY_MEDIA_TYPE, MediaType};

    pub(crate) fn serialize<S: Serializer>(
        media_type: &Option<MediaType>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(media_type.map_or(ANY_MEDIA_TYPE, MediaType::as_str))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<MediaType>, D::Error> {
        let word = String::deserialize(deserializer)?;
        if word == ANY_MEDIA_TYPE {
            return Ok(None);
        }
        word.parse().map(Some).map_err(serde::de::Error::custom)
    }
}

fn searched_media_types(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<&str> = [ANY_MEDIA_TYPE].iter().chain(MediaType::VARIANTS).copied().collect();
    json_schema!({ "type": "string", "enum": words })
}

/// The media types of streams and notifications: the media types of searches except `stockfoto`.
pub(crate) fn streamed_media_types(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = searched_media_types(generator);
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| word != MediaType::Stockfoto.as_str());
    }
    schema
}

fn searched_statuses(_: &mut SchemaGenerator) -> Schema {
    let words = SEARCHED_STATUSES.map(PubStatus::as_str);
    json_schema!({ "type": "array", "items": { "type": "string", "enum": words } })
}

/// A parameter for each field. A value may be excluded and padded with spaces, so the reader leaves all of them to their parser.
fn filters(_: &mut SchemaGenerator) -> Schema {
    let mut properties = Map::new();
    for field in FilterField::all() {
        let (description, element) = describe_filter(field);
        let values = json!({
            "type": "array",
            "items": { "type": "string" },
            "description": description,
            property::REPEATED: element,
        });
        properties.insert(field.as_str().to_owned(), values);
    }
    json_schema!({ "type": "object", "properties": properties })
}

/// Returns the description of a filter and the schema of its values.
fn describe_filter(field: FilterField) -> (&'static str, Value) {
    match field {
        FilterField::Facet(facet) => {
            let (description, example) = describe_facet(facet);
            (description, json!({ "type": "string", "examples": [example] }))
        }
        FilterField::MinPx => (
            "Only pictures whose longer side has at least this number of pixels.",
            json!({ "type": "integer", "minimum": 1, "maximum": FILTER_SIDE_PX_MAX, "examples": [2000] }),
        ),
        FilterField::Terms => (
            "Only items with special terms of use (`special`), or without (`none`).",
            json!({ "type": "string", "enum": field.choices(), "examples": ["special"] }),
        ),
    }
}

/// Returns the description of the filter by a facet, and an example of a value.
fn describe_facet(facet: Facet) -> (&'static str, &'static str) {
    match facet {
        Facet::SubjectCode => ("Only items with this subject, by its code.", "17000000"),
        Facet::ProductCode => {
            ("Only items with this product; `p` does the same with lists.", "FOTO")
        }
        Facet::PlaceName => ("Only items with this place.", "Bergen"),
        Facet::PersonName => ("Only items about this person.", "Erik Berg"),
        Facet::CopyrightHolder => ("Only items of this copyright holder.", "TT"),
        Facet::DigitalSourceType => (
            "Only pictures made in this way, by the code of the IPTC's vocabulary, such as `trainedAlgorithmicMedia`.",
            "digitalArt",
        ),
        Facet::SubjectName => ("Only items with this subject, by its name.", "Weather"),
        Facet::Byline => ("Only items with this byline.", "Anna Berg"),
        Facet::Orientation => (
            "Only pictures of this shape: `landscape`, `portrait`, `square` (the sides differ by 5 % at most) or \
             `panorama` (a landscape at least twice as wide as high).",
            "landscape",
        ),
        Facet::Colour => (
            "Only pictures with colours (`colour`), or in shades of grey (`monochrome`).",
            "monochrome",
        ),
        Facet::MediaType => ("Only items of this media type, where the path has `_all`.", "image"),
    }
}

fn counted_facets(generator: &mut SchemaGenerator) -> Schema {
    facet_counts(generator, Facet::VARIANTS)
}

fn suggested_facets(generator: &mut SchemaGenerator) -> Schema {
    facet_counts(generator, &SUGGESTED_FACETS.map(Facet::as_str))
}

fn facet_counts(generator: &mut SchemaGenerator, names: &[&str]) -> Schema {
    let counts = generator.subschema_for::<Vec<FacetCount>>();
    let names = names.iter().map(|name| ((*name).to_owned(), counts.clone().to_value()));
    json_schema!({ "type": "object", "properties": names.collect::<Map<_, _>>() })
}
