//! Parameters that searches, streams and notifications share.

use jiff::{Timestamp, tz::TimeZone};

use api::content::{FilterValues, SearchOrder, SearchPeriod, SearchScope};

use super::SORT_DEFAULT;
use crate::access::auth::Principal;
use crate::archive::content::{self, DocumentForm, ItemSelection, TimestampFilter};
use crate::http::AppState;
use crate::http::protocol::request::{QueryParameters, ValidationErrors};
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::HITS_DEFAULT;
use crate::storage::search::{FacetCondition, SearchCriteria, SortDate, SortOrder};
use model::account::AgreementId;
use model::item::{DocumentLayout, PubStatus};
use query::limits::FILTERS_MAX;
use query::{FilterError, FilterField, ItemFilter, Query, filter_text};

/// A parser of `q`; days in the text begin in the time zone.
pub(super) type QueryParseFn =
    fn(&str, &TimeZone) -> std::result::Result<Query, query::QueryError>;

const fn sort_by(date: SortDate, descending: bool) -> SortOrder {
    SortOrder::By { date, descending }
}

/// Converts the order of hits.
pub(super) const fn sort_order(order: SearchOrder) -> SortOrder {
    match order {
        SearchOrder::LastArrived => sort_by(SortDate::Order, true),
        SearchOrder::FirstArrived => sort_by(SortDate::Order, false),
        SearchOrder::LatestDate => sort_by(SortDate::Date, true),
        SearchOrder::EarliestDate => sort_by(SortDate::Date, false),
        SearchOrder::LastCreated => sort_by(SortDate::VersionCreated, true),
        SearchOrder::FirstCreated => sort_by(SortDate::VersionCreated, false),
        SearchOrder::LastStored => sort_by(SortDate::VersionStored, true),
        SearchOrder::FirstStored => sort_by(SortDate::VersionStored, false),
        SearchOrder::Relevance => SortOrder::Relevance,
    }
}

/// The circumstances of a request that decide the meaning of its parameters.
#[derive(Clone, Copy)]
pub(super) struct SearchContext<'a> {
    /// Days begin in this time zone.
    pub(super) zone: &'a TimeZone,
    pub(super) caller: Option<&'a Principal>,
    pub(super) now: Timestamp,
}

impl<'a> SearchContext<'a> {
    /// Creates the context of a request by `caller` at `now`.
    pub(super) fn new(app: &'a AppState, caller: Option<&'a Principal>, now: Timestamp) -> Self {
        Self { zone: &app.shared.site.zone, caller, now }
    }

    /// Builds the search for `query` within `scope`; `None` if it is invalid.
    pub(super) fn criteria(
        &self,
        query: Result<Query>,
        scope: &SearchScope,
        problems: &mut ValidationErrors,
    ) -> Option<SearchCriteria> {
        let query = problems.check(query);
        let agreements = problems.check(known_agreements(self.caller, &scope.agr));
        let codes: Vec<&str> = scope.p.iter().map(String::as_str).collect();
        // All are checked before the first `?`, so that all problems are reported together.
        let selection = problems.check(item_selection(query?, &codes, agreements?));
        Some(search_request(selection?, self.caller, self.now))
    }

    /// Returns the first moment of a period, inclusive, and its end, exclusive.
    pub(super) fn bounds(&self, period: &SearchPeriod) -> (Option<Timestamp>, Option<Timestamp>) {
        let SearchPeriod { tr, trs, tre } = *period;
        TimestampFilter { recent: tr, start: trs, end: tre }.bounds(self.now, self.zone)
    }
}

/// Returns the form of documents in an answer.
pub(super) fn document_form(app: &AppState, layout: DocumentLayout) -> DocumentForm {
    DocumentForm { layout, links: app.shared.media.links().clone() }
}

/// Parses `q` with `parse`; days in the text begin in `zone`.
pub(super) fn parse_query(text: &str, zone: &TimeZone, parse: QueryParseFn) -> Result<Query> {
    parse(text, zone)
        .map_err(|cause| Error::invalid("query", "q", "format", format!("q: {cause}")))
}

/// Checks that the agreements `ids` are those of `caller`.
fn known_agreements(caller: Option<&Principal>, ids: &[i64]) -> Result<Vec<AgreementId>> {
    let ids: Vec<_> = ids.iter().copied().map(AgreementId).collect();
    match content::unknown_agreement(caller, &ids) {
        None => Ok(ids),
        Some(id) => {
            let message = format!("agr is {id}, which is not an agreement of the user");
            Err(Error::invalid("query", "agr", "enum", message))
        }
    }
}

fn item_selection(
    query: Query,
    codes: &[&str],
    agreements: Vec<AgreementId>,
) -> Result<ItemSelection> {
    ItemSelection::new(query, codes, agreements).ok_or_else(|| {
        let message = "p has a `-` without a product code after it";
        Error::invalid("query", "p", "pattern", message)
    })
}

/// The meaning of filters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParsedFilters {
    /// The filters that are not facets.
    pub(super) query: Query,
    /// The filters of facets, as conditions on whole values.
    pub(super) facet_values: Vec<FacetCondition>,
}

impl ParsedFilters {
    /// Parses the values of filters. A field has one filter for each value.
    pub(super) fn parse(values: &FilterValues) -> Result<Self> {
        let mut filters: Vec<ItemFilter> = Vec::new();
        for field in FilterField::all() {
            for text in values.get(field.as_str()).into_iter().flatten() {
                let filter = ItemFilter::parse(field, text);
                let filter = filter.map_err(|cause| invalid_filter(field, &cause))?;
                if !filters.contains(&filter) {
                    filters.push(filter);
                }
                if filters.len() > FILTERS_MAX {
                    let message = format!("there are more than {FILTERS_MAX} filters");
                    return Err(Error::invalid("query", field.as_str(), "maximum", message));
                }
            }
        }
        let (of_facets, others): (Vec<_>, Vec<_>) =
            filters.into_iter().partition(|filter| matches!(filter.field, FilterField::Facet(_)));
        // Filters name no days, so the time zone does not matter.
        let query = query::parse(&filter_text(&others), &TimeZone::UTC).map_err(|cause| {
            let name = others.first().map_or("q", |filter| filter.field.as_str());
            let message = format!("the filters are invalid: {cause}");
            Error::invalid("query", name, "maximum", message)
        })?;
        Ok(Self { query, facet_values: facet_conditions(of_facets) })
    }

    /// Narrows the search `criteria` by the filters.
    pub(super) fn narrow(self, criteria: SearchCriteria) -> SearchCriteria {
        let query = Query::and(vec![criteria.query, self.query]);
        SearchCriteria { query, facet_values: self.facet_values, ..criteria }
    }
}

/// Reads `q`, `p` and `agr` of a request by `caller`; words of `q` match only in the form in which they are written. `None` if
/// one is invalid.
pub(super) fn read_selection(
    query: &QueryParameters,
    zone: &TimeZone,
    caller: &Principal,
    problems: &mut ValidationErrors,
) -> Option<ItemSelection> {
    let text = query.text("q").map(Option::unwrap_or_default);
    let parsed = problems.check(text.and_then(|text| parse_query(text, zone, query::parse)));
    let codes = problems.check(query.list("p"));
    let ids = query.integers("agr");
    let agreements = problems.check(ids.and_then(|ids| known_agreements(Some(caller), &ids)));
    // All are read before the first `?`, so that all problems are reported together.
    problems.check(item_selection(parsed?, &codes?, agreements?))
}

/// Builds the error for an invalid value of the filter `field`.
fn invalid_filter(field: FilterField, cause: &FilterError) -> Error {
    let rule = match cause {
        FilterError::UnknownValue { .. } => "enum",
        FilterError::NotANumber { .. } => "type",
        FilterError::Empty => "pattern",
        FilterError::TooLong => "maximum",
    };
    let name = field.as_str();
    Error::invalid("query", name, rule, format!("{name} is {cause}"))
}

/// Joins the filters of each facet: an item must have one of the required values and none of the excluded ones.
fn facet_conditions(filters: Vec<ItemFilter>) -> Vec<FacetCondition> {
    let mut conditions: Vec<FacetCondition> = Vec::new();
    for ItemFilter { field, value, is_excluded } in filters {
        let FilterField::Facet(facet) = field else { continue };
        let same = conditions
            .iter_mut()
            .find(|condition| condition.facet == facet && condition.is_excluded == is_excluded);
        match same {
            Some(condition) => condition.values.push(value),
            None => conditions.push(FacetCondition { facet, values: vec![value], is_excluded }),
        }
    }
    conditions
}

/// Builds the search for `selection` that `caller` may run at `now`: usable items of every media type and
/// time, the latest first.
pub(super) fn search_request(
    selection: ItemSelection,
    caller: Option<&Principal>,
    now: Timestamp,
) -> SearchCriteria {
    let coverage = content::coverage(caller, &selection.agreements, now);
    let ItemSelection { query, products, products_excluded, agreements: _ } = selection;
    SearchCriteria {
        media_type: None,
        query,
        facet_values: Vec::new(),
        near_picture: None,
        products,
        products_excluded,
        coverage,
        from: None,
        until: None,
        statuses: vec![PubStatus::Usable],
        sees_embargoed: caller.is_some_and(Principal::sees_embargoed),
        after: None,
        excluding_seen: None,
        sort: SORT_DEFAULT,
        skip: 0,
        size: HITS_DEFAULT,
        facets: Vec::new(),
    }
}

/// Checks that `caller` may see items of all these statuses.
pub(super) fn check_statuses(caller: Option<&Principal>, statuses: &[PubStatus]) -> Result<()> {
    if statuses.contains(&PubStatus::Commissioned) {
        return content::may_see_commissioned(caller);
    }
    Ok(())
}
