//! Looks up the names of the codes of subjects and products. The name comes from the newest item with the code in
//! the language of the page, else from the newest item in any language.

use std::collections::HashSet;

use jiff::tz::TimeZone;
use serde_json::Value;

use super::SiteRequest;
use super::concept_names::{CodeNames, ConceptNames, FacetValue, property};
use super::language::{self, PageLanguage};
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::storage::search::{
    Coverage, SearchCriteria, SearchHit, SearchMatches, SortDate, SortOrder,
};
use model::item::PubStatus;
use query::{Facet, FilterField, ItemFilter, Query};

/// Maximum number of items that are searched for a name. More than one is needed, because an item may have a code
/// without its name.
const ITEMS_LOOKED_AT: usize = 20;

/// The names of the values on a page.
#[derive(Debug, Default)]
pub(super) struct PageNames(CodeNames);

impl PageNames {
    /// Returns the name of a value; the value itself if it is already a name, or if no item has a name for it.
    pub(super) fn label(&self, facet: Facet, value: &str) -> String {
        let name = self.0.get(&(facet, value.to_owned())).cloned().flatten();
        name.unwrap_or_else(|| value.to_owned())
    }
}

impl ConceptNames {
    /// Returns the archive's names for the codes among `values`. One search finds all names that are not cached.
    ///
    /// A name does not reveal anything about an item, so all visitors see the same names.
    pub(super) async fn load(&self, site: &SiteRequest, values: HashSet<FacetValue>) -> PageNames {
        let language = language::current_language();
        let engine = site.app.shared.archive.content.engine();
        // Without an index the page shows the codes. The epoch is read before the search, so that a change during
        // the search makes the cached names outdated.
        let Ok(epoch) = engine.epoch(clock::now()) else { return PageNames::default() };
        let (mut names, missing) = self.find(&epoch, language, values);
        if !missing.is_empty() {
            // After an error this page shows the codes, and the next page retries the search.
            let found = look_up(site, language, missing).await.unwrap_or_default();
            self.insert(epoch, language, &found);
            names.extend(found);
        }
        PageNames(names)
    }
}

/// Looks up the names of all `codes` with one search. Its matches are narrowed to each code in turn.
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
    // A stale index still has the names, so the page does not fail while the index catches up.
    engine
        .search_within(request, clock::now(), move |found| {
            find_names(found, codes, language, &zone)
        })
        .await
}

/// Finds the names of `codes`, each in the newest of the items `found` that has it.
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

/// Finds the name of a code in the newest of the items `found` that has it.
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
    // A name in a different language is better than a code.
    for text in [own, term] {
        // Cannot fail, because every code can be written as a term.
        let Ok(query) = query::parse(&text, zone) else { continue };
        let name = found.find_first(&query, |hit| name_in(hit, property, code))?;
        if name.is_some() {
            return Ok(name);
        }
    }
    Ok(None)
}

/// Finds the name of `code` in the property `list` of the item.
fn name_in(hit: &SearchHit, list: &str, code: &str) -> Option<String> {
    let document: Value = serde_json::from_str(&hit.item.document).ok()?;
    let mut concepts = document[list].as_array()?.iter();
    let concept = concepts.find(|concept| concept["code"] == code)?;
    concept["name"].as_str().map(str::to_owned)
}
