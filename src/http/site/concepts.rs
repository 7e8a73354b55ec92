//! Names of the codes of subjects and products, as in the newest item with that code, preferably one in the
//! language of the page.

use std::collections::HashSet;

use jiff::tz::TimeZone;
use serde_json::Value;

use super::{
    SiteRequest,
    concept_names::{CodeNames, ConceptNames, FacetValue, property},
    language::{self, PageLanguage},
};
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::storage::search::{
    Coverage, SearchCriteria, SearchHit, SearchMatches, SortDate, SortOrder,
};
use model::item::PubStatus;
use query::{Facet, FilterField, ItemFilter, Query};

/// Most items that are searched for a name: the newest ones may have only the code.
const ITEMS_LOOKED_AT: usize = 20;

/// The names of the values on a page.
#[derive(Debug, Default)]
pub(super) struct PageNames(CodeNames);

impl PageNames {
    /// Returns the name of a value; the value itself if it is a name, or if no item names it.
    pub(super) fn label(&self, facet: Facet, value: &str) -> String {
        let name = self.0.get(&(facet, value.to_owned())).cloned().flatten();
        name.unwrap_or_else(|| value.to_owned())
    }
}

impl ConceptNames {
    /// Returns the archive's names for the codes among `values`. One look-up finds all that are not cached.
    ///
    /// A name reveals nothing about an item, so it is the same for every visitor.
    pub(super) async fn load(&self, site: &SiteRequest, values: HashSet<FacetValue>) -> PageNames {
        let language = language::current_language();
        let engine = site.app.shared.archive.content.engine();
        // Without an index the page shows the codes. The epoch is that before the look-up, so that a change
        // during it makes the names outdated.
        let Ok(epoch) = engine.epoch(clock::now()) else { return PageNames::default() };
        let (mut names, missing) = self.find(&epoch, language, values);
        if !missing.is_empty() {
            // After an error the page shows the codes, and the next page retries.
            let found = look_up(site, language, missing).await.unwrap_or_default();
            self.insert(epoch, language, &found);
            names.extend(found);
        }
        PageNames(names)
    }
}

/// Looks up the names of all `codes` with one search, whose matches are narrowed to each of them.
async fn look_up(
    site: &SiteRequest,
    language: PageLanguage,
    codes: Vec<FacetValue>,
) -> Result<CodeNames> {
    let shared = &site.app.shared;
    let request = SearchCriteria {
        media_type: None,
        query: Query::All,
        facet_values: Vec::new(),
        near_picture: None,
        products: Vec::new(),
        products_excluded: Vec::new(),
        coverage: Coverage::Everything,
        from: None,
        until: None,
        statuses: vec![PubStatus::Usable],
        // A name that only an embargoed item has would reveal that item.
        sees_embargoed: false,
        after: None,
        excluding_seen: None,
        // The newest item has the current name.
        sort: SortOrder::By { date: SortDate::Order, descending: true },
        skip: 0,
        size: ITEMS_LOOKED_AT,
        facets: Vec::new(),
    };
    let zone = shared.site.zone.clone();
    let engine = shared.archive.content.engine();
    // A stale index still knows the names, so the page does not fail while the index catches up.
    engine
        .search_within(request, clock::now(), move |found| {
            find_names(found, codes, language, &zone)
        })
        .await
}

/// Finds the names of `codes` in the newest of the items `found` that have them.
fn find_names(
    found: &SearchMatches<'_>,
    codes: Vec<FacetValue>,
    language: PageLanguage,
    zone: &TimeZone,
) -> Result<CodeNames> {
    let mut names = CodeNames::with_capacity(codes.len());
    for code in codes {
        let name = find_name(found, &code, language, zone)?;
        names.insert(code, name);
    }
    Ok(names)
}

/// Finds the name of a code in the newest of the items `found` that have it.
fn find_name(
    found: &SearchMatches<'_>,
    code: &FacetValue,
    language: PageLanguage,
    zone: &TimeZone,
) -> Result<Option<String>> {
    let (facet, code) = code;
    let Some(property) = property(*facet) else { return Ok(None) };
    let term = ItemFilter::requiring(FilterField::Facet(*facet), code).term();
    let own = format!("{term} language:{}", language.tag());
    // A name in another language is better than a code.
    for text in [own, term] {
        // Every code can be written as a term.
        let Ok(query) = query::parse(&text, zone) else { continue };
        let name = found.find_first(&query, |hit| name_in(hit, property, code))?;
        if name.is_some() {
            return Ok(name);
        }
    }
    Ok(None)
}

/// Finds the name of the code in the property `list` of the item.
fn name_in(hit: &SearchHit, list: &str, code: &str) -> Option<String> {
    let document: Value = serde_json::from_str(&hit.item.document).ok()?;
    let mut concepts = document[list].as_array()?.iter();
    let concept = concepts.find(|concept| concept["code"] == code)?;
    concept["name"].as_str().map(str::to_owned)
}
