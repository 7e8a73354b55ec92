//! `GET /`: the search page with its hits and filters.

use axum::{http::StatusCode, response::Response};
use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;
use serde_json::Value;

use super::{
    ApiRefusal, PageResult, SiteRequest,
    api_client::ApiCall,
    back_link, collections,
    facets::{self, FACET_NAMES, FacetList, FacetValue},
    item_summary::ItemSummary,
    query_reading::{QueryNotice, QueryReading},
    times,
};
use crate::http::site::form::see_other;
use crate::http::site::pages::login_url;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::{PAGE_ITEMS, PAGES_MAX};
use model::MediaType;

/// Longest title that is suggested for a notification, in characters.
const TITLE_CHARS: usize = 80;

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
    /// Facet values, each of which narrows the search.
    pub(super) facets: Vec<FacetValue>,
    pub(super) sort: String,
    /// Whether to include items that no agreement of the visitor covers.
    pub(super) all: bool,
    /// Whether words match only as written, not in other forms.
    pub(super) written: bool,
    /// Whether to include future events in a search of all media types.
    pub(super) upcoming: bool,
    pub(super) page: usize,
}

impl SearchForm {
    fn of(site: &SiteRequest) -> Result<Self> {
        let text = |name| {
            Ok::<_, crate::runtime::error::Error>(site.parameter(name)?.unwrap_or_default())
        };
        let pages = 1..=i64::try_from(PAGES_MAX).unwrap_or(i64::MAX);
        let page = site.query.integer("page", pages)?;
        let media_type = match text("type")? {
            "" => MediaType::Image.as_str(),
            given => given,
        };
        Ok(Self {
            q: text("q")?.to_owned(),
            media_type: media_type.to_owned(),
            tr: text("tr")?.to_owned(),
            trs: text("trs")?.to_owned(),
            tre: text("tre")?.to_owned(),
            p: site.query.list("p")?.into_iter().map(str::to_owned).collect(),
            agr: site.query.list("agr")?.into_iter().map(str::to_owned).collect(),
            facets: FacetValue::list(&site.query)?,
            sort: text("sort")?.to_owned(),
            all: site.parameter("all")?.is_some(),
            written: site.parameter("written")?.is_some(),
            upcoming: site.parameter("upcoming")?.is_some(),
            page: page.and_then(|page| usize::try_from(page).ok()).unwrap_or(1),
        })
    }

    /// Whether nothing narrows the search.
    fn is_plain(&self) -> bool {
        let texts = [&self.q, &self.tr, &self.trs, &self.tre];
        texts.into_iter().all(String::is_empty) && self.is_unlisted()
    }

    /// Whether no product, agreement or facet narrows the search.
    fn is_unlisted(&self) -> bool {
        self.p.is_empty() && self.agr.is_empty() && self.facets.is_empty()
    }

    fn pairs(&self) -> Vec<(&'static str, String)> {
        // The default is left out, so that a search has a single address.
        let media_type = match self.media_type.as_str() {
            "image" => String::new(),
            other => other.to_owned(),
        };
        let tick = |is_set: bool| if is_set { "1".to_owned() } else { String::new() };
        let facets = self.facets.iter().map(|facet| ("facet", facet.to_string()));
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
        pairs.into_iter().chain(facets).collect()
    }

    /// The URL of the search at page `page`.
    pub(super) fn url(&self, page: usize) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in self.pairs() {
            if !value.is_empty() {
                query.append_pair(name, &value);
            }
        }
        if page > 1 {
            query.append_pair("page", &page.to_string());
        }
        let query = query.finish();
        if query.is_empty() { "/".to_owned() } else { format!("/?{query}") }
    }

    /// The URL that creates a notification of type `kind` from the search, with the title `title`.
    fn notification_url(&self, kind: &str, title: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("type", kind).append_pair("mediaType", &self.media_type);
        let (q, p, agr) = (self.query(&self.q), self.p.join(","), self.agr.join(","));
        let texts = [("title", title), ("q", &q), ("p", &p), ("agr", &agr), ("tr", &self.tr)];
        for (name, value) in texts {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        format!("/notifications/new?{}", query.finish())
    }

    /// The query for the API: `words`, narrowed by the facets. The words are in parentheses, because `OR`
    /// binds less tightly than the space before a facet.
    fn query(&self, words: &str) -> String {
        let terms = self.facets.iter().map(FacetValue::term);
        match (words.trim(), self.facets.is_empty()) {
            (words, true) => words.to_owned(),
            ("", false) => terms.collect::<Vec<_>>().join(" "),
            (words, false) => {
                std::iter::once(format!("({words})")).chain(terms).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Whether the search lists the newest items of all types, where future events would come first.
    fn excludes_upcoming(&self) -> bool {
        let is_newest = matches!(self.sort.as_str(), "" | "default:desc");
        // A visitor who names dates wants exactly what lies between them.
        let has_dates = !self.trs.is_empty() || !self.tre.is_empty();
        self.media_type == "_all" && is_newest && !has_dates && !self.upcoming
    }

    /// The suggested title of a notification of the search: its words and active facets.
    fn title(&self, facets: &[FacetList]) -> String {
        let narrowed = facets.iter().flat_map(FacetList::active);
        let parts = std::iter::once(self.q.trim()).chain(narrowed).filter(|part| !part.is_empty());
        let title = parts.collect::<Vec<_>>().join(", ");
        title.chars().take(TITLE_CHARS).collect()
    }

    /// The API call for `words`, a valid query. If future events are excluded, only items before `tomorrow`
    /// match.
    fn call(&self, words: &str, tomorrow: &str) -> ApiCall {
        let q = self.query(words);
        let (p, agr) = (self.p.join(","), self.agr.join(","));
        let from = ((self.page - 1) * PAGE_ITEMS).to_string();
        let size = PAGE_ITEMS.to_string();
        let path =
            format!("/content/v1/{}/search", super::api_client::encode_segment(&self.media_type));
        let pair = |text: &'static str, value: &'_ str| (text, Some(value.to_owned()));
        let pairs = [
            pair("q", &q),
            pair("p", &p),
            pair("agr", &agr),
            pair("tr", &self.tr),
            pair("trs", &self.trs),
            pair("tre", if self.excludes_upcoming() { tomorrow } else { &self.tre }),
            pair("sort", &self.sort),
            // Other forms of words are the site's default and opt-in in the API.
            pair("forms", if self.written { "" } else { "true" }),
            pair("s", &size),
            pair("fr", if self.page > 1 { &from } else { "" }),
            pair("facets", FACET_NAMES),
        ];
        ApiCall::get(path).query(pairs.iter().map(|(name, value)| (*name, value.as_deref())))
    }

    /// Returns the search with the facet toggled.
    pub(super) fn with_facet(&self, facet: &FacetValue) -> Self {
        // The page number belongs to the hits of the previous search.
        let mut other = Self { page: 1, ..self.clone() };
        match self.facets.contains(facet) {
            true => other.facets.retain(|own| own != facet),
            false => other.facets.push(facet.clone()),
        }
        other
    }

    /// Returns the search with the product toggled.
    pub(super) fn with_product(&self, code: &str) -> Self {
        let mut other = Self { page: 1, ..self.clone() };
        match self.p.iter().any(|own| own == code) {
            true => other.p.retain(|own| own != code),
            false => other.p.push(code.to_owned()),
        }
        other
    }
}

/// `GET /`: runs the search and shows its hits.
pub(super) async fn page(site: SiteRequest) -> PageResult {
    if let Some(address) = without_empty_parameters(&site.path_and_query) {
        // A redirect, so that the address bar shows the short form.
        return Ok(see_other(&address));
    }
    let form = SearchForm::of(&site)?;
    // An invalid query is searched for as words: a visitor who forgot a quotation mark wants to see pictures.
    let reading = QueryReading::of(&form.q, &site.app.shared.site.zone);
    let tomorrow = times::tomorrow(clock::now(), &site.app.shared.site.zone);
    let call = form.call(&reading.words, &tomorrow);
    match run_search(&site, &form, &call).await {
        Ok(found) => show(&site, &form, SearchOutcome::Found(&found, reading.notice)).await,
        // Only photographs can be searched without a login.
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
            Ok(see_other(&login_url(&site.path_and_query)))
        }
        Err(refusal) if refusal.is_mistake() => {
            show(&site, &form, SearchOutcome::Refused(&refusal)).await
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// Returns the URL without empty parameters, which browsers send for every empty field; `None` if there are
/// none. Editors mail these URLs.
fn without_empty_parameters(here: &str) -> Option<String> {
    let (path, query) = here.split_once('?')?;
    let has_value = |pair: &&str| pair.split_once('=').is_some_and(|(_, value)| !value.is_empty());
    let non_empty: Vec<&str> = query.split('&').filter(has_value).collect();
    if non_empty.len() == query.split('&').count() {
        return None;
    }
    let mark = if non_empty.is_empty() { "" } else { "?" };
    Some(format!("{path}{mark}{}", non_empty.join("&")))
}

/// The outcome of a search.
enum SearchOutcome<'a> {
    /// The API's response, and the notice if the query was not valid.
    Found(&'a Value, Option<QueryNotice>),
    /// The API's error for an invalid search.
    Refused(&'a ApiRefusal),
}

/// Runs the search. Open photographs are searched anonymously on request, so that agreements do not restrict
/// the hits.
async fn run_search(
    site: &SiteRequest,
    form: &SearchForm,
    call: &ApiCall,
) -> Result<Value, ApiRefusal> {
    let open = site.app.shared.edge.live_settings.get().open_images && form.media_type == "image";
    if open && form.all {
        let found = site.call_anonymously(call).await?;
        site.record_call(call.clone());
        return Ok(found);
    }
    site.call_and_record(call.clone()).await
}

async fn show(
    site: &SiteRequest,
    form: &SearchForm,
    outcome: SearchOutcome<'_>,
) -> Result<Response, super::PageError> {
    let nothing = Value::Null;
    let (found, notice, refusal) = match outcome {
        SearchOutcome::Found(found, notice) => (found, notice, None),
        SearchOutcome::Refused(refusal) => (&nothing, None, Some(refusal)),
    };
    let total = found["total"].as_u64().unwrap_or(0);
    let hits = ItemSummary::list(&found["hits"]);
    let shown_until = u64::try_from(form.page * PAGE_ITEMS).unwrap_or(u64::MAX);
    let page_items = u64::try_from(PAGE_ITEMS).unwrap_or(u64::MAX);
    // Deeper hits are reached by a narrower search.
    let has_more = shown_until < total && form.page < PAGES_MAX;
    let collections = match &site.visitor {
        // The page is complete without the collections if they cannot be loaded.
        // Without hits there is nothing to add to a collection.
        Some(_) if !hits.is_empty() => {
            site.get(collections::COLLECTION_NAMES).await.unwrap_or_default()
        }
        Some(_) | None => Value::Null,
    };
    let status = refusal.map_or(StatusCode::OK, |refusal| refusal.status);
    // Active facets are shown without hits too, so that each can be removed.
    let facets = facets::lists(site, form, found).await;
    let title = form.title(&facets);
    let context = context! {
        wanted => PageValue::from(Serde(form)),
        hits => PageValue::from(Serde(&hits)),
        total => total,
        facets => PageValue::from(Serde(facets)),
        notice => PageValue::from(Serde(notice)),
        mistakes => refusal.map(ApiRefusal::sentences),
        is_plain => form.is_plain(),
        as_pictures => matches!(form.media_type.as_str(), "image" | "stockfoto" | "graphic" | "video"),
        may_see_all => site.app.shared.edge.live_settings.get().open_images && form.media_type == "image",
        previous_url => (form.page > 1).then(|| form.url(form.page - 1)),
        next_url => has_more.then(|| form.url(form.page + 1)),
        all_url => SearchForm { all: true, page: 1, ..form.clone() }.url(1),
        everything_url => (form.media_type != "_all").then(|| {
            SearchForm { media_type: "_all".to_owned(), page: 1, ..form.clone() }.url(1)
        }),
        forms_url => SearchForm { written: false, page: 1, ..form.clone() }.url(1),
        times_contradict => times::times_contradict(form, clock::now(), &site.app.shared.site.zone),
        any_time_url => SearchForm {
            tr: String::new(), trs: String::new(), tre: String::new(), page: 1, ..form.clone()
        }.url(1),
        upcoming_url => form
            .excludes_upcoming()
            .then(|| SearchForm { upcoming: true, page: 1, ..form.clone() }.url(1)),
        email_url => form.notification_url("email", &title),
        stream_url => form.notification_url("stream", &title),
        collections => PageValue::from(Serde(collections)),
        page => form.page,
        pages => usize::try_from(total.div_ceil(page_items)).map_or(PAGES_MAX, |all| all.min(PAGES_MAX)),
        back_query => back_link::back_query(&site.path_and_query),
    };
    site.page_with(status, "search.html", context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use query::Facet;

    fn place(value: &str) -> FacetValue {
        FacetValue { facet: Facet::PlaceName, value: value.to_owned() }
    }

    fn wanted(q: &str) -> SearchForm {
        SearchForm {
            q: q.to_owned(),
            media_type: "image".to_owned(),
            page: 2,
            ..SearchForm::default()
        }
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
        assert!(search.call("hund", "").target.contains("q=hund&forms=true&"));
        assert_eq!(search.url(1), "/?q=hund");
        search.written = true;
        assert!(!search.call("hund", "").target.contains("forms"));
        assert_eq!(search.url(2), "/?q=hund&written=1&page=2");
        assert_eq!(search.with_product("FOTO").url(1), "/?q=hund&p=FOTO&written=1");
        assert_eq!(
            search.with_facet(&place("a")).url(1),
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
            let call = wanted.call("", "2026-11-26");
            assert_eq!(call.target.contains("tre=2026-11-26"), is_bounded, "{}", call.target);
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
    fn an_address_has_no_empty_parameters() {
        let check = |here: &str, expected: Option<&str>| {
            assert_eq!(without_empty_parameters(here).as_deref(), expected, "{here}");
        };
        check("/", None);
        check("/?q=a+b&page=2", None);
        check("/?q=a%26&type=&tr=h&trs=&tre=&sort=", Some("/?q=a%26&tr=h"));
        check("/?q=&type=", Some("/"));
        check("/?", Some("/"));
    }

    #[test]
    fn a_facet_narrows_any_query_and_widens_again() {
        let narrow = wanted("sea OR lake").with_facet(&place("Bergen"));
        assert_eq!(narrow.page, 1);
        assert_eq!(narrow.url(1), "/?q=sea+OR+lake&facet=place.name%3ABergen");
        assert_eq!(narrow.query("sea OR lake"), "(sea OR lake) place.name:\"Bergen\"");
        assert_eq!(narrow.query(" "), "place.name:\"Bergen\"");
        assert_eq!(narrow.with_facet(&place("Bergen")).url(1), "/?q=sea+OR+lake");
        let narrow = wanted("").with_product("FOTO");
        assert_eq!(narrow.p, ["FOTO"]);
        assert!(narrow.with_product("FOTO").p.is_empty());
    }
}
