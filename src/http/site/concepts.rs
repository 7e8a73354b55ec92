//! Names of the codes of subjects and products, as in the newest item with that code, preferably one in the
//! language of the page.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    SiteRequest,
    language::{self, PageLanguage},
};
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::{CONCEPT_NAME_FOR, CONCEPT_NAMES_MAX};
use crate::storage::search::{
    Coverage, Freshness, SearchCriteria, SearchResults, SortDate, SortOrder,
};
use model::item::PubStatus;
use query::{Facet, FilterField, ItemFilter};

/// Most items that are searched for a name: the newest ones may have only the code.
const ITEMS_LOOKED_AT: usize = 20;

/// A code and the language of its name.
type ConceptKey = (PageLanguage, Facet, String);

/// A cached name; `None` if no item names the code.
#[derive(Clone, Debug)]
struct CachedConceptName {
    name: Option<String>,
    found_at: Timestamp,
}

/// A cache of the names that pages requested recently.
#[derive(Debug, Default)]
pub struct ConceptNames {
    cache: Mutex<HashMap<ConceptKey, CachedConceptName>>,
}

impl ConceptNames {
    /// Returns the archive's name for the code `value` of `facet`; `None` if the value is a name already.
    ///
    /// A name reveals nothing about an item, so it is the same for every visitor.
    pub(super) async fn name(
        &self,
        site: &SiteRequest,
        facet: Facet,
        value: &str,
    ) -> Option<String> {
        let property = match facet {
            Facet::SubjectCode => "subject",
            Facet::ProductCode => "product",
            // These facets hold names, or codes that are the same in every archive; the page has the names of
            // source types.
            Facet::PlaceName
            | Facet::PersonName
            | Facet::CopyrightHolder
            | Facet::DigitalSourceType
            | Facet::SubjectName
            | Facet::Byline
            | Facet::Orientation
            | Facet::Colour
            | Facet::MediaType => return None,
        };
        let (language, now) = (language::current_language(), clock::now());
        let key = (language, facet, value.to_owned());
        if let Some(name) = self.find(&key, now) {
            return name;
        }
        let term = ItemFilter::requiring(FilterField::Facet(facet), value).term();
        let own = format!("{term} language:{}", language.tag());
        // A name in another language is better than a code.
        for text in [own, term] {
            match look_up(site, &text, property, value, now).await {
                Ok(None) => {}
                Ok(name) => {
                    // The lock is taken only now: it must not be held during a search.
                    self.insert(key, CachedConceptName { name: name.clone(), found_at: now });
                    return name;
                }
                // The page shows the code, and the next page retries.
                Err(_) => return None,
            }
        }
        // A code without a name is cached too, or each page would search for it twice.
        self.insert(key, CachedConceptName { name: None, found_at: now });
        None
    }

    fn find(&self, key: &ConceptKey, now: Timestamp) -> Option<Option<String>> {
        let cache = self.cache.lock();
        let found = cache.get(key).filter(|one| one.is_fresh(now))?;
        Some(found.name.clone())
    }

    fn insert(&self, key: ConceptKey, found: CachedConceptName) {
        let mut cache = self.cache.lock();
        // Expired names make room; a full cache accepts no more.
        if cache.len() >= CONCEPT_NAMES_MAX && !cache.contains_key(&key) {
            cache.retain(|_, one| one.is_fresh(found.found_at));
        }
        if cache.len() < CONCEPT_NAMES_MAX {
            cache.insert(key, found);
        }
    }
}

impl CachedConceptName {
    fn is_fresh(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.found_at);
        Duration::try_from(age).is_ok_and(|age| age < CONCEPT_NAME_FOR)
    }
}

/// Finds the name of the code in the property `list` of the newest item that matches `text`.
async fn look_up(
    site: &SiteRequest,
    text: &str,
    property: &'static str,
    code: &str,
    now: Timestamp,
) -> Result<Option<String>> {
    let shared = &site.app.shared;
    // Every code can be written as a term.
    let Ok(query) = query::parse(text, &shared.site.zone) else { return Ok(None) };
    let request = SearchCriteria {
        media_type: None,
        query,
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
    let code = code.to_owned();
    let name = move |found: SearchResults, _: &crate::storage::database::ReadTx<'_>| {
        Ok(found.hits.iter().find_map(|hit| {
            let document = serde_json::from_str(&hit.item.document).ok()?;
            name_in(&document, property, &code)
        }))
    };
    // A stale index still knows the name, so the page does not fail while the index catches up.
    shared.archive.content.engine().search(request, Freshness::Preferred, now, name).await
}

fn name_in(document: &Value, property: &str, code: &str) -> Option<String> {
    let mut concepts = document[property].as_array()?.iter();
    let concept = concepts.find(|concept| concept["code"] == code)?;
    concept["name"].as_str().map(str::to_owned)
}
