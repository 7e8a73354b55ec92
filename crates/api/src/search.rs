//! The deprecated search interface, for callers with an application key.

use std::collections::BTreeMap;

use jiff::civil::Date;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::access::{Access, UnknownCaller};
use crate::answer::Deprecated;
use crate::body::NoBody;
use crate::content::{RecentSpan, SearchScope};
use crate::endpoint::Section;
use crate::limits::{HITS_DEFAULT, HITS_MAX};
use crate::{endpoint, property};

/// The time spans that this interface knows.
const SPANS: [RecentSpan; 4] =
    [RecentSpan::Hour, RecentSpan::Day, RecentSpan::Week, RecentSpan::Year];

const SECTION: Section = Section {
    name: "Deprecated search interface",
    description: "An older search interface for callers with an application key. Use the content API instead.",
};

endpoint! {
    /// Search with an application key.
    ///
    /// Use `GET /content/v1/{mediaType}/search`.
    #[derive(PartialEq, Eq)]
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    SearchWithKey: GET "/api/search", "searchWithKey", UnknownCaller: Access::AK, NoBody => Deprecated<ItemsOfKey> {
        /// The search query, as in a search of the content API.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub q: String,
        #[serde(flatten)]
        pub scope: SearchScope,
        /// The past hour, day, week or year.
        #[serde(with = "property::OptionalWord", skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "spans")]
        pub tr: Option<RecentSpan>,
        /// Start date, from midnight at the beginning of this day.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub trs: Option<Date>,
        /// End date, until midnight at the beginning of this day.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tre: Option<Date>,
        /// The maximum number of hits.
        #[serde(rename = "s")]
        #[schemars(range(max = HITS_MAX))]
        pub size: usize,
        /// The number of hits to skip, preferably a multiple of `s`.
        #[serde(rename = "fr")]
        #[schemars(range(max = HITS_MAX))]
        pub skip: usize,
        /// `asc` and `desc` by creation date, `stor` by storage date, `rel` by relevance.
        #[serde(with = "property::Word")]
        #[schemars(schema_with = "property::words::<SearchOrderOfKey>")]
        pub sort: SearchOrderOfKey,
    }
}

impl Default for SearchWithKey {
    fn default() -> Self {
        Self {
            q: String::new(),
            scope: SearchScope::default(),
            tr: None,
            trs: None,
            tre: None,
            size: HITS_DEFAULT,
            skip: 0,
            sort: SearchOrderOfKey::Desc,
        }
    }
}

/// The order of the hits of a search with an application key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum SearchOrderOfKey {
    Asc,
    Desc,
    Stor,
    Rel,
}

endpoint! {
    /// Agreements of an application key.
    ///
    /// Use `GET /user/v1/user`.
    #[schemars(extend("deprecated" = true))]
    ListAgreementsOfKey: GET "/api/search/agreements", "getAgreementsOfKey", UnknownCaller: Access::AK, NoBody => Deprecated<AgreementsOfKey> {}
}

/// The items that were found.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ItemsOfKey(#[schemars(schema_with = "property::news_items")] pub Vec<Value>);

/// Products by agreement id.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgreementsOfKey(pub BTreeMap<i64, Vec<ProductOfKey>>);

/// A product of an agreement.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProductOfKey {
    pub id: i64,
    pub name: String,
    pub description: Option<String>,
    pub product_code: String,
}

fn spans(_: &mut SchemaGenerator) -> Schema {
    let words = SPANS.map(|span| Some(Into::<&str>::into(span)));
    let words: Vec<_> = words.into_iter().chain([None]).collect();
    json_schema!({ "type": ["string", "null"], "enum": words })
}
