//! Parameters that searches, streams and notifications share.

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::SORT_DEFAULT;
use crate::access::auth::Principal;
use crate::archive::content;
use crate::archive::content::{ItemSelection, RecentSpan, TimestampFilter};
use crate::http::protocol::request::{QueryParameters, ValidationErrors, parse_choice};
use crate::http::protocol::respond;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{HITS_DEFAULT, HITS_MAX};
use crate::storage::search::{FacetCondition, SearchCriteria, SortDate, SortOrder};
use model::account::AgreementId;
use model::item::{DocumentLayout, PubStatus};
use model::{ItemKey, MediaType};
use query::limits::FILTERS_MAX;
use query::{Facet, FilterError, FilterField, ItemFilter, filter_text};

/// The path segment that means every media type.
pub(super) const ANY_MEDIA_TYPE: &str = "_all";

/// The media types of streams and notifications: the media types of searches except `stockfoto`.
pub(super) const STREAM_MEDIA_TYPES: [MediaType; 8] = [
    MediaType::Image,
    MediaType::Video,
    MediaType::Graphic,
    MediaType::Text,
    MediaType::Feature,
    MediaType::Page,
    MediaType::Planning,
    MediaType::Calendar,
];

/// The values of `sort`.
const SORTS: [(&str, SortOrder); 9] = [
    ("default:desc", sort_by(SortDate::Order, true)),
    ("default:asc", sort_by(SortDate::Order, false)),
    ("date:desc", sort_by(SortDate::Date, true)),
    ("date:asc", sort_by(SortDate::Date, false)),
    ("versioncreated:desc", sort_by(SortDate::VersionCreated, true)),
    ("versioncreated:asc", sort_by(SortDate::VersionCreated, false)),
    ("versionstored:desc", sort_by(SortDate::VersionStored, true)),
    ("versionstored:asc", sort_by(SortDate::VersionStored, false)),
    ("relevance", SortOrder::Relevance),
];

/// A parser of `q`; days in the text begin in the time zone.
type QueryParseFn = fn(&str, &TimeZone) -> std::result::Result<query::Query, query::QueryError>;

pub(super) const fn sort_by(date: SortDate, descending: bool) -> SortOrder {
    SortOrder::By { date, descending }
}

/// Reads parameters one by one and collects their problems. An invalid parameter reads as `None`;
/// [`ContentParameters::finish`] then fails.
pub(super) struct ContentParameters<'a> {
    query: &'a QueryParameters,
    zone: &'a TimeZone,
    caller: Option<&'a Principal>,
    problems: ValidationErrors,
}

impl<'a> ContentParameters<'a> {
    /// Creates a reader of `query`, sent by `caller`; days begin in `zone`.
    pub(super) fn new(
        query: &'a QueryParameters,
        zone: &'a TimeZone,
        caller: Option<&'a Principal>,
    ) -> Self {
        Self { query, zone, caller, problems: ValidationErrors::new() }
    }

    /// Returns the caller that sent the parameters.
    pub(super) fn caller(&self) -> Option<&'a Principal> {
        self.caller
    }

    /// Returns `read` if there are no problems.
    ///
    /// Fails with all problems. `read` must be `Some` if there are no problems.
    pub(super) fn finish<T>(self, read: Option<T>) -> Result<T> {
        self.problems.finish(read)
    }

    /// Reads a parameter with `read`, or returns `None` and collects the problem.
    pub(super) fn read<T>(
        &mut self,
        read: impl FnOnce(&'a QueryParameters) -> Result<T>,
    ) -> Option<T> {
        self.problems.check(read(self.query))
    }

    /// Parses the media type in the path: one of `choices`, or all of them.
    pub(super) fn media_type(
        &mut self,
        text: &str,
        choices: impl IntoIterator<Item = MediaType>,
    ) -> Option<Option<MediaType>> {
        let mut words = vec![(ANY_MEDIA_TYPE, None)];
        words.extend(choices.into_iter().map(|choice| (choice.as_str(), Some(choice))));
        self.problems.check(parse_choice("path", "mediaType", text, &words))
    }

    /// Reads `q`, `p` and `agr`; words of `q` match only in the form in which they are written.
    pub(super) fn selection(&mut self) -> Option<ItemSelection> {
        self.parse_selection(query::parse)
    }

    /// Reads only `p` and `agr`, without `q`.
    pub(super) fn selection_without_query(&mut self) -> Option<ItemSelection> {
        self.parse_selection(|_, _| Ok(query::Query::All))
    }

    /// Reads `q`, `p`, `agr` and `forms`, which decides whether other forms of words match too.
    pub(super) fn selection_with_forms(&mut self) -> Option<ItemSelection> {
        let forms = self.read(|query| {
            query.parsed("forms", "type", "true or false", |text| text.parse::<bool>().ok())
        });
        let parse =
            if forms.flatten() == Some(true) { query::parse_with_forms } else { query::parse };
        let selection = self.parse_selection(parse);
        // Both are read before one fails, so that all problems are reported together.
        forms.and(selection)
    }

    fn parse_selection(&mut self, parse: QueryParseFn) -> Option<ItemSelection> {
        let query = self.q(parse);
        let codes = self.read(|query| query.list("p"));
        let agreements = self.agr();
        // All are read before the first `?`, so that all problems are reported together.
        let selection = ItemSelection::new(query?, &codes?, agreements?).ok_or_else(|| {
            let message = "p has a `-` without a product code after it";
            Error::invalid("query", "p", "pattern", message)
        });
        self.problems.check(selection)
    }

    fn q(&mut self, parse: QueryParseFn) -> Option<query::Query> {
        let zone = self.zone;
        self.read(|query| {
            let text = query.text("q")?.unwrap_or_default();
            parse(text, zone)
                .map_err(|cause| Error::invalid("query", "q", "format", format!("q: {cause}")))
        })
    }

    fn agr(&mut self) -> Option<Vec<AgreementId>> {
        let caller = self.caller;
        self.read(|query| {
            let ids: Vec<_> = query.integers("agr")?.into_iter().map(AgreementId).collect();
            match content::unknown_agreement(caller, &ids) {
                None => Ok(ids),
                Some(id) => {
                    let message = format!("agr is {id}, which is not an agreement of the user");
                    Err(Error::invalid("query", "agr", "enum", message))
                }
            }
        })
    }

    /// Reads the filters. Each field has a parameter of its name, which occurs once for each value. Filters of
    /// facets become conditions on whole values; the other filters become a query.
    pub(super) fn filters(&mut self) -> Option<(query::Query, Vec<FacetCondition>)> {
        self.read(|parameters| {
            let mut filters: Vec<ItemFilter> = Vec::new();
            for field in FilterField::all() {
                for text in parameters.all(field.as_str())? {
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
            let (of_facets, others): (Vec<_>, Vec<_>) = filters
                .into_iter()
                .partition(|filter| matches!(filter.field, FilterField::Facet(_)));
            // Filters name no days, so the time zone does not matter.
            let query = query::parse(&filter_text(&others), &TimeZone::UTC).map_err(|cause| {
                let name = others.first().map_or("q", |filter| filter.field.as_str());
                let message = format!("the filters are invalid: {cause}");
                Error::invalid("query", name, "maximum", message)
            })?;
            Ok((query, facet_conditions(of_facets)))
        })
    }

    /// Reads `duplicates`, the media type and id of an item; `None` if it is absent.
    pub(super) fn duplicates(&mut self) -> Option<Option<ItemKey>> {
        self.read(|query| {
            let Some(text) = query.text("duplicates")? else { return Ok(None) };
            let key = ItemKey::parse(text).map_err(|cause| {
                let message = format!("duplicates is `{}`: {cause}", respond::shorten_input(text));
                Error::invalid("query", "duplicates", "format", message)
            })?;
            Ok(Some(key))
        })
    }

    /// Reads `tr`, `trs` and `tre`.
    pub(super) fn period(&mut self) -> Option<TimestampFilter> {
        let recent = self.read(|query| query.variant("tr"));
        self.period_with(recent)
    }

    /// Reads `trs` and `tre`; `recent` is the value of `tr`, which the caller has read.
    pub(super) fn period_with(
        &mut self,
        recent: Option<Option<RecentSpan>>,
    ) -> Option<TimestampFilter> {
        let start = self.read(|query| parse_day(query, "trs"));
        let end = self.read(|query| parse_day(query, "tre"));
        Some(TimestampFilter { recent: recent?, start: start?, end: end? })
    }

    /// Reads `pubstatus`, by default `usable`.
    pub(super) fn statuses(&mut self) -> Option<Vec<PubStatus>> {
        let choices = [PubStatus::Usable, PubStatus::Replaced, PubStatus::Commissioned]
            .map(|status| (status.as_str(), status));
        let statuses = self.read(|query| query.list_of("pubstatus", &choices))?;
        Some(if statuses.is_empty() { vec![PubStatus::Usable] } else { statuses })
    }

    /// Reads the page size `s` and the offset `fr`.
    pub(super) fn page_range(&mut self) -> (Option<usize>, Option<usize>) {
        (self.count("s", HITS_DEFAULT, HITS_MAX), self.count("fr", 0, HITS_MAX))
    }

    /// Reads the parameter `name` as a number from 0 to `max`.
    pub(super) fn count(&mut self, name: &str, default: usize, max: usize) -> Option<usize> {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let found = self.read(|query| query.integer(name, 0..=max))?;
        Some(found.map_or(default, |found| usize::try_from(found).unwrap_or(default)))
    }

    /// Reads `sort`, by default the latest first.
    pub(super) fn sort(&mut self) -> Option<SortOrder> {
        let sort = self.read(|query| query.one_of("sort", &SORTS))?;
        Some(sort.unwrap_or(SORT_DEFAULT))
    }

    /// Reads `facets` without duplicates.
    pub(super) fn facets(&mut self) -> Option<Vec<Facet>> {
        let requested = self.read(|query| query.variants::<Facet>("facets"))?;
        // A facet that is named twice would be counted twice and be twice in the answer.
        let mut facets = Vec::new();
        for facet in requested {
            if !facets.contains(&facet) {
                facets.push(facet);
            }
        }
        Some(facets)
    }

    /// Reads `layout`, by default the full one.
    pub(super) fn layout(&mut self) -> Option<DocumentLayout> {
        let layout = self.read(|query| query.variant("layout"))?;
        Some(layout.unwrap_or_default())
    }
}

/// Parses the parameter `name` as a day.
fn parse_day(query: &QueryParameters, name: &str) -> Result<Option<Date>> {
    query.parsed(name, "format", "a date YYYY-MM-dd", content::parse_day)
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
