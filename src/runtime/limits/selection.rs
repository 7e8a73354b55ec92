//! Limits for the selection of a visitor of the site.

/// Items of a selection: as many as one archive holds, so that nothing of it is left out for its number.
pub const SELECTION_ITEMS_MAX: usize = super::BUNDLE_ITEMS_MAX;
