//! What a notification asks for, and how one item is looked at for it.

use std::collections::BTreeSet;

use crate::{Facet, Indexed, Query};
use model::MediaType;
use model::account::AgreementId;

/// What one notification asks for.
///
/// Spec §4 Notifications: media type, `q`, `p`, `agr`.
#[derive(Clone, Debug)]
pub struct Interest {
    /// Items of this media type only; none: of every one, as `_all` in a search.
    pub media_type: Option<MediaType>,
    /// The query.
    pub query: Query,
    /// Product codes of which an item has one; empty: whatever it has.
    pub products: Vec<String>,
    /// Product codes of which an item has none.
    pub products_excluded: Vec<String>,
    /// What has to cover an item.
    pub cover: Cover,
}

/// What has to cover an item so that it is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cover {
    /// Nothing: who asks may see every item.
    Everything,
    /// One of these agreements; of none of them, no item is told of.
    Agreements(Vec<AgreementId>),
}

/// One item as it is matched.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Its media type.
    pub media_type: MediaType,
    /// What of it is searched; its product codes are the facet [`Facet::ProductCode`].
    pub indexed: &'a Indexed,
    /// The agreements that cover it.
    pub agreements: &'a BTreeSet<AgreementId>,
}

impl Interest {
    /// Whether an item meets the interest, by a plain look at everything that it asks for.
    #[must_use]
    pub fn matches(&self, item: &Item<'_>) -> bool {
        let codes = &item.indexed.facets[Facet::ProductCode.index()];
        let has = |wanted: &[String]| wanted.iter().any(|code| codes.contains(code));
        let covered = match &self.cover {
            Cover::Everything => true,
            Cover::Agreements(ids) => ids.iter().any(|id| item.agreements.contains(id)),
        };
        self.media_type.is_none_or(|wanted| wanted == item.media_type)
            && covered
            && (self.products.is_empty() || has(&self.products))
            && !has(&self.products_excluded)
            && self.query.matches(item.indexed)
    }
}
