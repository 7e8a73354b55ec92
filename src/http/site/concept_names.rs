//! A cache for the names of codes that `concepts` looks up.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use crate::http::site::language::PageLanguage;
use crate::storage::search::IndexEpoch;
use query::Facet;

/// Concept names that pages cache in each language.
const CONCEPT_NAMES_MAX: usize = 10_000;

/// A facet value with its facet.
pub(super) type FacetValue = (Facet, String);
/// Codes with their names; `None` if no item has a name for the code.
pub(super) type CodeNames = HashMap<FacetValue, Option<String>>;

/// A cache of the names that pages requested since the last change of the search index. A name is therefore as
/// current as the hits beside it.
#[derive(Debug, Default)]
pub struct ConceptNames {
    cache: Mutex<CachedNames>,
}

#[derive(Debug, Default)]
struct CachedNames {
    epoch: IndexEpoch,
    names: HashMap<PageLanguage, CodeNames>,
}

impl ConceptNames {
    /// Returns the cached names for `values`, and the codes that are not cached.
    pub(super) fn find(
        &self,
        epoch: &IndexEpoch,
        language: PageLanguage,
        values: HashSet<FacetValue>,
    ) -> (CodeNames, Vec<FacetValue>) {
        let mut names = CodeNames::new();
        let mut missing = Vec::new();
        let cache = self.cache.lock();
        let cached = cache.names.get(&language).filter(|_| cache.epoch == *epoch);
        for code in values.into_iter().filter(|(facet, _)| property(*facet).is_some()) {
            match cached.and_then(|cached| cached.get(&code)) {
                Some(name) => drop(names.insert(code, name.clone())),
                None => missing.push(code),
            }
        }
        (names, missing)
    }

    /// Caches names that were found at `epoch`.
    pub(super) fn insert(&self, epoch: IndexEpoch, language: PageLanguage, found: &CodeNames) {
        let mut cache = self.cache.lock();
        if cache.epoch != epoch {
            *cache = CachedNames { epoch, ..CachedNames::default() };
        }
        let names = cache.names.entry(language).or_default();
        // A full cache accepts no further names until the index changes.
        if names.len() + found.len() <= CONCEPT_NAMES_MAX {
            names.extend(found.iter().map(|(code, name)| (code.clone(), name.clone())));
        }
    }
}

/// Returns the property of documents that contains the codes of a facet; `None` for a facet whose values are not
/// codes of the archive.
pub(super) fn property(facet: Facet) -> Option<&'static str> {
    match facet {
        Facet::SubjectCode => Some("subject"),
        Facet::ProductCode => Some("product"),
        // The values of these facets are names, or codes that are the same in every archive. The page has
        // translations for source types.
        Facet::PlaceName
        | Facet::PersonName
        | Facet::CopyrightHolder
        | Facet::DigitalSourceType
        | Facet::SubjectName
        | Facet::Byline
        | Facet::Orientation
        | Facet::Colour
        | Facet::MediaType => None,
    }
}
