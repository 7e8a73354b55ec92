//! An interest, which is a saved query with further conditions, and the item to match.

use std::collections::BTreeSet;

use crate::{Facet, IndexedDocument, Query};
use model::MediaType;
use model::account::AgreementId;

/// A saved query with further conditions. A matching item meets all of them.
#[derive(Clone, Debug)]
pub struct Interest {
    /// The media type of items; `None` for all types.
    pub media_type: Option<MediaType>,
    /// The query, without inflected forms.
    pub query: Query,
    /// Product codes of which an item must have at least one; empty for no condition.
    pub products: Vec<String>,
    /// Product codes that an item must not have.
    pub products_excluded: Vec<String>,
    /// The agreements that give access to an item.
    pub cover: InterestCoverage,
}

/// The agreements of which one has to cover an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterestCoverage {
    /// No agreement is needed.
    Everything,
    /// One of these agreements is needed; with an empty list, no item matches.
    Agreements(Vec<AgreementId>),
}

/// The facts about one item that interests are matched against.
#[derive(Clone, Copy, Debug)]
pub struct MatchSubject<'a> {
    /// Media type of the item.
    pub media_type: MediaType,
    /// The searchable content of the item. Its product codes are the facet [`Facet::ProductCode`].
    pub indexed: &'a IndexedDocument,
    /// The agreements that cover the item.
    pub agreements: &'a BTreeSet<AgreementId>,
}

impl Interest {
    /// Returns whether an item meets all conditions, evaluated one by one.
    pub fn matches(&self, item: &MatchSubject<'_>) -> bool {
        let codes = &item.indexed.facets[Facet::ProductCode.index()];
        let covered = match &self.cover {
            InterestCoverage::Everything => true,
            InterestCoverage::Agreements(ids) => ids.iter().any(|id| item.agreements.contains(id)),
        };
        // The query is the most expensive condition, so it comes last.
        self.media_type.is_none_or(|required| required == item.media_type)
            && covered
            && (self.products.is_empty() || has_any(codes, &self.products))
            && !has_any(codes, &self.products_excluded)
            && self.query.matches(item.indexed)
    }
}

fn has_any(codes: &[String], required: &[String]) -> bool {
    required.iter().any(|code| codes.contains(code))
}
