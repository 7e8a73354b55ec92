//! The parameters of the search page, its URLs, and the corresponding API calls.

use std::str::FromStr;

use api::content::{
    ANY_MEDIA_TYPE, FilterValues, SearchItems, SearchPeriod, SearchScope, SuggestTexts,
};
use jiff::civil::Date;
use serde::{Serialize, Serializer};
use strum::VariantNames;

use super::{ApiCall, ApiRefusal, SiteRequest};
use crate::archive::content::parse_day;
use crate::http::protocol::request::QueryParameters;
use crate::http::protocol::respond;
use crate::runtime::error::Result;
use crate::runtime::limits::PAGE_ITEMS;
use model::MediaType;
use query::{Facet, FilterField, ItemFilter, limits::FILTERS_MAX, narrowed_text};

/// The facets of the page, in the order in which it lists them.
pub(super) const FACET_ORDER: [Facet; 10] = [
    Facet::Orientation,
    Facet::Colour,
    Facet::Byline,
    Facet::PersonName,
    Facet::PlaceName,
    Facet::SubjectCode,
    Facet::CopyrightHolder,
    Facet::DigitalSourceType,
    Facet::ProductCode,
    Facet::MediaType,
];

/// The parameters of the search page.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct SearchForm {
    pub(super) q: String,
    pub(super) media_type: String,
    pub(super) tr: String,
    pub(super) trs: String,
    pub(super) tre: String,
    pub(super) p: Vec<String>,
    /// Agreements that must cover the hits.
    pub(super) agr: Vec<String>,
    /// Values that a hit must have, or must not have.
    #[serde(serialize_with = "serialize_filters")]
    pub(super) filters: Vec<ItemFilter>,
    pub(super) sort: String,
    /// True to include items that no agreement of the visitor covers.
    pub(super) all: bool,
    /// True if words match only as written, not in other inflected forms.
    pub(super) written: bool,
    /// True to include future events in a search of all media types.
    pub(super) upcoming: bool,
    pub(super) page: usize,
}

/// The part of the result that a call of the search requests: hits, facets, or both.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResultScope<'a> {
    /// Number of hits to skip.
    skip: usize,
    size: usize,
    /// The facets to count.
    facets: &'a [Facet],
    /// The URI of an item; only items that arrived after it are hits.
    last: Option<&'a str>,
}

impl<'a> ResultScope<'a> {
    /// Requests the hits of page `page`, and the facets.
    pub(super) fn page(page: usize) -> Self {
        Self { facets: &FACET_ORDER, ..Self::hits(page) }
    }

    /// Requests the hits of page `page` alone.
    pub(super) fn hits(page: usize) -> Self {
        Self { skip: (page - 1) * PAGE_ITEMS, size: PAGE_ITEMS, ..Self::default() }
    }

    /// Requests the counts of `facets` alone.
    pub(super) fn counts(facets: &'a [Facet]) -> Self {
        Self { facets, ..Self::default() }
    }

    /// Requests the number of hits that have arrived since the item `last`.
    pub(super) fn arrived_since(last: &'a str) -> Self {
        Self { last: Some(last), ..Self::default() }
    }
}

impl SearchForm {
    /// Reads the parameters of a request.
    pub(super) fn from_query(site: &SiteRequest) -> Result<Self> {
        let media_type = match site.text_parameter("type")? {
            "" => MediaType::Image.as_str(),
            given => given,
        };
        Ok(Self {
            q: site.text_parameter("q")?.to_owned(),
            media_type: media_type.to_owned(),
            tr: site.text_parameter("tr")?.to_owned(),
            trs: site.text_parameter("trs")?.to_owned(),
            tre: site.text_parameter("tre")?.to_owned(),
            p: read_products(&site.query)?,
            agr: site.query.list("agr")?.into_iter().map(str::to_owned).collect(),
            filters: read_filters(&site.query)?,
            sort: site.text_parameter("sort")?.to_owned(),
            all: site.parameter("all")?.is_some(),
            written: site.parameter("written")?.is_some(),
            upcoming: site.parameter("upcoming")?.is_some(),
            page: site.page_number()?,
        })
    }

    /// Returns whether no condition narrows the search.
    pub(super) fn is_plain(&self) -> bool {
        let texts = [&self.q, &self.tr, &self.trs, &self.tre];
        texts.into_iter().all(String::is_empty) && self.is_unlisted()
    }

    /// Returns whether no product, agreement or filter narrows the search.
    fn is_unlisted(&self) -> bool {
        self.p.is_empty() && self.agr.is_empty() && self.filters.is_empty()
    }

    /// Returns whether the newest items come first.
    pub(super) fn is_newest_first(&self) -> bool {
        matches!(self.sort.as_str(), "" | "default:desc")
    }

    fn pairs(&self) -> Vec<(&'static str, String)> {
        // The default is left out, so that each search has a single URL.
        let media_type = match self.media_type.as_str() {
            "image" => String::new(),
            other => other.to_owned(),
        };
        let filters = self.filters.iter().map(|filter| ("facet", filter.to_string()));
        let pairs = [
            ("type", media_type),
            ("q", self.q.clone()),
            ("tr", self.tr.clone()),
            ("trs", self.trs.clone()),
            ("tre", self.tre.clone()),
            ("p", self.p.join(",")),
            ("agr", self.agr.join(",")),
            ("sort", self.sort.clone()),
            ("all", tick(self.all)),
            ("written", tick(self.written)),
            ("upcoming", tick(self.upcoming)),
        ];
        pairs.into_iter().chain(filters).collect()
    }

    /// Returns the URL of page `page` of the search.
    pub(super) fn url(&self, page: usize) -> String {
        let pairs = self.pairs();
        let page = (page > 1).then(|| page.to_string());
        let pairs = pairs.iter().map(|(name, value)| (*name, Some(value.as_str())));
        ApiCall::get("/").query(pairs.chain([("page", page.as_deref())])).target
    }

    /// Returns the URL of the form that creates a notification of type `kind` from the search, with the title
    /// `title`.
    pub(super) fn notification_url(&self, kind: &str, title: &str) -> String {
        // A notification has no parameters for filters, so they become part of its query.
        let q = narrowed_text(&self.q, &self.filters);
        let p = self.p.join(",");
        let agr = self.agr.join(",");
        let pairs = [
            ("type", kind),
            ("mediaType", &self.media_type),
            ("title", title),
            ("q", &q),
            ("p", &p),
            ("agr", &agr),
            ("tr", &self.tr),
        ];
        let pairs = pairs.map(|(name, value)| (name, Some(value)));
        ApiCall::get("/notifications/new").query(pairs).target
    }

    /// Returns whether future events are excluded. In a list of the newest items of all types they would come
    /// first.
    pub(super) fn excludes_upcoming(&self) -> bool {
        // A visitor who enters dates wants all items between them.
        let has_dates = !self.trs.is_empty() || !self.tre.is_empty();
        self.media_type == "_all" && self.is_newest_first() && !has_dates && !self.upcoming
    }

    /// Returns the API's search for the query `words`, which is valid. If future events are excluded, only items before
    /// `tomorrow` match.
    ///
    /// Fails if the API does not know the value of a parameter.
    pub(super) fn search(
        &self,
        words: &str,
        tomorrow: &str,
        part: ResultScope<'_>,
    ) -> Result<SearchItems, ApiRefusal> {
        Ok(SearchItems {
            media_type: self.searched_media_type()?,
            q: words.trim().to_owned(),
            scope: self.scope()?,
            // The site matches inflected forms by default, the API only on request.
            forms: !self.written,
            period: self.period(tomorrow)?,
            size: part.size,
            skip: part.skip,
            sort: parse("sort", &self.sort)?.unwrap_or_default(),
            facets: part.facets.to_vec(),
            filters: self.filter_values(),
            last: part.last.map(str::to_owned),
            ..SearchItems::default()
        })
    }

    /// Returns the request that completes the typed `text`; with `respells`, it also suggests other spellings.
    ///
    /// Fails if the API does not know the value of a parameter.
    pub(super) fn suggestions(
        &self,
        text: &str,
        tomorrow: &str,
        respells: bool,
    ) -> Result<SuggestTexts, ApiRefusal> {
        Ok(SuggestTexts {
            media_type: self.searched_media_type()?,
            q: text.to_owned(),
            spelling: respells,
            scope: self.scope()?,
            period: self.period(tomorrow)?,
            filters: self.filter_values(),
            ..SuggestTexts::default()
        })
    }

    fn searched_media_type(&self) -> Result<Option<MediaType>, ApiRefusal> {
        if self.media_type == ANY_MEDIA_TYPE {
            return Ok(None);
        }
        parse("mediaType", &self.media_type)
    }

    fn scope(&self) -> Result<SearchScope, ApiRefusal> {
        let ids = self.agr.iter().map(|id| parse_agreement(id));
        Ok(SearchScope { p: self.p.clone(), agr: ids.collect::<Result<_, _>>()? })
    }

    /// Returns the period of the hits. If future events are excluded, it ends with `tomorrow`.
    fn period(&self, tomorrow: &str) -> Result<SearchPeriod, ApiRefusal> {
        let end = if self.excludes_upcoming() { tomorrow } else { self.tre.as_str() };
        Ok(SearchPeriod {
            tr: parse("tr", &self.tr)?,
            trs: parse_date("trs", &self.trs)?,
            tre: parse_date("tre", end)?,
        })
    }

    /// Returns the filters as parameters of the API.
    fn filter_values(&self) -> FilterValues {
        let mut values = FilterValues::new();
        for filter in &self.filters {
            let sign = if filter.is_excluded { "-" } else { "" };
            let of_field = values.entry(filter.field.as_str().to_owned()).or_default();
            of_field.push(format!("{sign}{}", filter.value));
        }
        values
    }

    /// Returns the search with the filter toggled. The opposite filter is removed.
    pub(super) fn with_filter(&self, filter: &ItemFilter) -> Self {
        // The page number belongs to the previous search.
        let mut other = Self { page: 1, ..self.clone() };
        other.filters.retain(|own| match filter.field {
            FilterField::Facet(_) => own.field != filter.field || own.value != filter.value,
            // A search can have only one value of these fields.
            FilterField::MinPx | FilterField::Terms => own.field != filter.field,
        });
        if !self.filters.contains(filter) {
            other.filters.push(filter.clone());
        }
        other
    }

    /// Returns the search without any filter of `field` that requires a value.
    pub(super) fn without_field(&self, field: FilterField) -> Self {
        let mut other = Self { page: 1, ..self.clone() };
        other.filters.retain(|own| own.field != field || own.is_excluded);
        other
    }

    /// Returns whether a filter of `field` requires a value.
    pub(super) fn requires(&self, field: FilterField) -> bool {
        self.filters.iter().any(|own| own.field == field && !own.is_excluded)
    }

    /// Returns the search with the product toggled; a code that begins with `-` excludes the product. The opposite
    /// code is removed.
    pub(super) fn with_product(&self, code: &str) -> Self {
        let mut other = Self { page: 1, ..self.clone() };
        let plain = code.trim_start_matches('-');
        other.p.retain(|own| own.trim_start_matches('-') != plain);
        if !self.p.iter().any(|own| own == code) {
            other.p.push(code.to_owned());
        }
        other
    }
}

/// Reads the filters `facet=[-]<name>:<value>` of the query. Unknown filters are skipped. At most [`FILTERS_MAX`]
/// filters are read, because the page has links for each filter, and every link repeats all filters.
fn read_filters(query: &QueryParameters) -> Result<Vec<ItemFilter>> {
    let mut filters: Vec<ItemFilter> = Vec::new();
    for text in query.all("facet")? {
        if filters.len() == FILTERS_MAX {
            break;
        }
        // The URL may have been typed by hand, so an unknown filter is not an error.
        if let Some(filter) = ItemFilter::find(text).filter(|filter| !filters.contains(filter)) {
            filters.push(filter);
        }
    }
    Ok(filters)
}

/// Reads the products `p` of the query, at most [`FILTERS_MAX`].
fn read_products(query: &QueryParameters) -> Result<Vec<String>> {
    Ok(query.list("p")?.into_iter().take(FILTERS_MAX).map(str::to_owned).collect())
}

/// Serializes filters as in the URL.
fn serialize_filters<S: Serializer>(
    filters: &[ItemFilter],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(filters.iter().map(ToString::to_string))
}

/// Parses a parameter of the page as the word of the API's parameter `name`; `None` if it is empty.
fn parse<T: FromStr + VariantNames>(name: &str, text: &str) -> Result<Option<T>, ApiRefusal> {
    if text.is_empty() {
        return Ok(None);
    }
    let expected = format!("one of {}", T::VARIANTS.join(", "));
    text.parse().map(Some).map_err(|_| mismatch("enum", name, text, &expected))
}

/// Parses a parameter of the page as the API's day `name`; `None` if it is empty.
fn parse_date(name: &str, text: &str) -> Result<Option<Date>, ApiRefusal> {
    if text.is_empty() {
        return Ok(None);
    }
    parse_day(text).map(Some).ok_or_else(|| mismatch("format", name, text, "a date YYYY-MM-dd"))
}

fn parse_agreement(id: &str) -> Result<i64, ApiRefusal> {
    id.parse().map_err(|_| mismatch("type", "agr", id, "an integer"))
}

fn mismatch(rule: &'static str, name: &str, text: &str, expected: &str) -> ApiRefusal {
    let message = format!("is `{}`, expected {expected}", respond::shorten_input(text));
    ApiRefusal::invalid(rule, name, &message)
}

/// Returns the value of a check box in the URL.
fn tick(is_set: bool) -> String {
    if is_set { "1".to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> ItemFilter {
        ItemFilter::find(text).unwrap()
    }

    fn wanted(q: &str) -> SearchForm {
        SearchForm {
            q: q.to_owned(),
            media_type: "image".to_owned(),
            page: 2,
            ..SearchForm::default()
        }
    }

    fn target(search: &SearchForm, words: &str) -> String {
        api::target(&search.search(words, "", ResultScope::page(search.page)).unwrap())
    }

    #[test]
    fn what_narrows_a_search_is_read_from_its_address() {
        let query = QueryParameters::parse(
            "facet=place.name%3AA%2C+%22B%22&facet=nonsense%3Ax&facet=subject.code%3A\
             &facet=-colour%3Amonochrome&facet=minpx%3A2000&facet=minpx%3A2000",
        )
        .unwrap();
        let found = read_filters(&query).unwrap();
        let found: Vec<_> = found.iter().map(ItemFilter::to_string).collect();
        assert_eq!(found, ["place.name:A, \"B\"", "-colour:monochrome", "minpx:2000"]);
    }

    #[test]
    fn an_address_narrows_no_further_than_the_api_allows() {
        let count = FILTERS_MAX + 10;
        // Repeated filters count once.
        let facets = (0..count).map(|at| format!("facet=byline%3Aa{at}&facet=byline%3Aa{at}"));
        let codes = (0..count).map(|at| format!("p=A{at}"));
        let address = facets.chain(codes).collect::<Vec<_>>().join("&");
        let query = QueryParameters::parse(&address).unwrap();
        let (filters, products) = (read_filters(&query).unwrap(), read_products(&query).unwrap());
        assert_eq!((filters.len(), products.len()), (FILTERS_MAX, FILTERS_MAX));
        let last = FILTERS_MAX - 1;
        assert_eq!(filters[last], filter(&format!("byline:a{last}")));
        assert_eq!(products[last], format!("A{last}"));
    }

    #[test]
    fn a_search_has_one_address() {
        assert_eq!(wanted("").url(1), "/");
        assert_eq!(wanted("a b").url(3), "/?q=a+b&page=3");
        let mut text = wanted("");
        text.media_type = "text".to_owned();
        text.p = vec!["A".to_owned(), "B".to_owned()];
        assert_eq!(text.url(1), "/?type=text&p=A%2CB");
        assert_eq!(
            text.notification_url("email", ""),
            "/notifications/new?type=email&mediaType=text&p=A%2CB"
        );
    }

    #[test]
    fn other_forms_of_words_are_found_unless_they_are_turned_off() {
        let mut search = wanted("hund");
        let found = search.search("hund", "", ResultScope::page(2)).unwrap();
        assert_eq!(
            (found.q.as_str(), found.forms, found.size, found.skip),
            ("hund", true, 60, 60)
        );
        assert_eq!(found.facets, FACET_ORDER);
        assert_eq!(search.url(1), "/?q=hund");
        search.written = true;
        assert!(target(&search, "hund").contains("forms=false"));
        assert_eq!(search.url(2), "/?q=hund&written=1&page=2");
        assert_eq!(search.with_product("FOTO").url(1), "/?q=hund&p=FOTO&written=1");
        assert_eq!(
            search.with_filter(&filter("place.name:a")).url(1),
            "/?q=hund&written=1&facet=place.name%3Aa"
        );
        assert_eq!(
            search.notification_url("email", "hund"),
            "/notifications/new?type=email&mediaType=image&title=hund&q=hund"
        );
    }

    #[test]
    fn the_newest_of_everything_end_with_today() {
        let everything =
            SearchForm { media_type: "_all".to_owned(), page: 1, ..SearchForm::default() };
        let check = |wanted: &SearchForm, is_bounded: bool| {
            let found = wanted.search("", "2026-11-26", ResultScope::page(1)).unwrap();
            let tomorrow = parse_day("2026-11-26");
            assert_eq!(found.period.tre == tomorrow, is_bounded, "{found:?}");
        };
        let tr = "w".to_owned();
        check(&everything, true);
        check(&SearchForm { tr, ..everything.clone() }, true);
        check(&SearchForm { upcoming: true, ..everything.clone() }, false);
        check(&SearchForm { trs: "2026-12-01".to_owned(), ..everything.clone() }, false);
        check(&SearchForm { sort: "default:asc".to_owned(), ..everything.clone() }, false);
        check(&SearchForm { media_type: "calendar".to_owned(), ..everything.clone() }, false);
    }

    #[test]
    fn a_filter_narrows_any_query_and_is_removed_again() {
        let bergen = filter("place.name:Bergen");
        let narrow = wanted("sea OR lake").with_filter(&bergen);
        assert_eq!(narrow.page, 1);
        assert_eq!(narrow.url(1), "/?q=sea+OR+lake&facet=place.name%3ABergen");
        let called = target(&narrow, "sea OR lake");
        assert!(called.contains("q=sea%20OR%20lake&"), "{called}");
        assert!(called.contains("&place.name=Bergen"), "{called}");
        let saved = narrow.notification_url("email", "");
        assert!(saved.ends_with("q=%28sea+OR+lake%29+place.name%3A%22Bergen%22"), "{saved}");
        assert_eq!(narrow.with_filter(&bergen).url(1), "/?q=sea+OR+lake");
        assert!(
            narrow.requires(bergen.field)
                && !narrow.without_field(bergen.field).requires(bergen.field)
        );
        // The opposite replaces it.
        let without = narrow.with_filter(&filter("-place.name:Bergen"));
        assert_eq!(without.url(1), "/?q=sea+OR+lake&facet=-place.name%3ABergen");
        assert!(target(&without, "").contains("&place.name=-Bergen"));
        assert_eq!(without.without_field(bergen.field).filters, without.filters);
        let large =
            wanted("").with_filter(&filter("minpx:2000")).with_filter(&filter("minpx:4000"));
        assert_eq!(large.url(1), "/?facet=minpx%3A4000");
        let narrow = wanted("").with_product("FOTO");
        assert_eq!(narrow.p, ["FOTO"]);
        assert_eq!(narrow.with_product("-FOTO").p, ["-FOTO"]);
        assert!(narrow.with_product("FOTO").p.is_empty());
    }

    #[test]
    fn new_items_are_counted_after_the_first_hit() {
        let part = ResultScope::arrived_since("http://x/media/image/i");
        let found = wanted("a").search("a", "", part).unwrap();
        assert_eq!((found.size, found.last.as_deref()), (0, Some("http://x/media/image/i")));
    }

    #[test]
    fn a_parameter_that_the_api_does_not_know_is_named() {
        let check = |form: SearchForm, expected: &str| {
            let refusal = form.search("", "", ResultScope::page(1)).unwrap_err();
            assert_eq!(refusal.errors[0].path, expected);
        };
        let text = || "x".to_owned();
        check(SearchForm { media_type: text(), ..wanted("") }, "mediaType");
        check(SearchForm { agr: vec![text()], ..wanted("") }, "agr");
        check(SearchForm { tr: text(), ..wanted("") }, "tr");
        check(SearchForm { tre: text(), ..wanted("") }, "tre");
        check(SearchForm { sort: text(), ..wanted("") }, "sort");
    }
}
