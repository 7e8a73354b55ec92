//! `GET /`: the search page with its hits and filters.

use api::content::SearchResult;
use api::{Answer, Endpoint, NoBody, target};
use axum::http::StatusCode;
use minijinja::value::{Serde, merge_maps};
use minijinja::{Value as PageValue, context};

use super::back_link::{self, PART_PARAMETER};
use super::highlight::QueryWords;
use super::item_summary::ItemSummary;
use super::notification_form::NotificationForm;
use super::notifications::NOTIFICATIONS;
use super::query_reading::{QueryNotice, QueryReading};
use super::search_form::{ResultScope, SearchForm};
use super::{ApiRefusal, PageResult, SiteRequest, collections, facets, status_of, times};
use crate::http::form::see_other;
use crate::http::site::login_url::login_url;
use crate::runtime::clock;
use crate::runtime::limits::{PAGE_ITEMS, PAGES_MAX};
use query::FilterField;

/// Saved searches on the first page of the site, the latest.
const SITE_SAVED_SEARCHES: usize = 12;
/// The value of [`PART_PARAMETER`] that requests the hits alone, which scripts append to a page.
const HITS_PART: &str = "hits";

/// `GET /`: runs the search and shows its hits.
pub(super) async fn page(site: SiteRequest) -> PageResult {
    if let Some(address) = without_empty_parameters(&site.path_and_query) {
        // A redirect makes the address bar show the short URL.
        return Ok(see_other(&address));
    }
    let form = SearchForm::from_query(&site)?;
    // An invalid query is searched for as plain words: a visitor who forgot a quotation mark still wants to see
    // pictures.
    let reading = QueryReading::parse(&form.q, &site.app.shared.site.zone);
    let search = PageSearch {
        tomorrow: times::tomorrow(clock::now(), &site.app.shared.site.zone),
        words: reading.words,
        form,
        site: &site,
    };
    let is_part = site.parameter(PART_PARAMETER)? == Some(HITS_PART);
    match search.run(is_part).await {
        Ok(found) if is_part => search.show_hits(&found),
        Ok(found) => search.show(&found, reading.notice, None).await,
        // Only photographs can be searched without a login.
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
            Ok(see_other(&login_url(&site.path_and_query)))
        }
        Err(refusal) if refusal.is_mistake() => {
            search.show(&SearchResult::default(), None, Some(&refusal)).await
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// Returns the URL without its empty parameters; `None` if it has none. Browsers send a parameter for every empty
/// field, and editors mail these URLs.
fn without_empty_parameters(here: &str) -> Option<String> {
    let (path, query) = here.split_once('?')?;
    let non_empty: Vec<&str> = query.split('&').filter(|pair| has_value(pair)).collect();
    if non_empty.len() == query.split('&').count() {
        return None;
    }
    let mark = if non_empty.is_empty() { "" } else { "?" };
    Some(format!("{path}{mark}{}", non_empty.join("&")))
}

fn has_value(pair: &str) -> bool {
    pair.split_once('=').is_some_and(|(_, value)| !value.is_empty())
}

/// A search, with the request that asks for it.
struct PageSearch<'a> {
    site: &'a SiteRequest,
    form: SearchForm,
    /// The text of the form as a valid query.
    words: String,
    /// The first day that has not begun yet.
    tomorrow: String,
}

impl PageSearch<'_> {
    /// Returns whether to search without credentials, so that agreements do not restrict the hits. The visitor
    /// must have asked for this, and photographs must be open.
    fn is_anonymous(&self) -> bool {
        self.form.all && self.may_see_all()
    }

    /// Returns whether the visitor may see items that no agreement covers.
    fn may_see_all(&self) -> bool {
        let settings = self.site.app.shared.edge.live_settings.get();
        settings.open_images && self.form.media_type == "image"
    }

    async fn ask<E: Endpoint<Body = NoBody>>(
        &self,
        request: &E,
    ) -> Result<<E::Answer as Answer>::Content, ApiRefusal> {
        if self.is_anonymous() {
            self.site.ask_anonymously(request).await
        } else {
            self.site.ask(request).await
        }
    }

    /// Runs the search for the page's hits and facets; with `is_part`, for the hits alone.
    async fn run(&self, is_part: bool) -> Result<SearchResult, ApiRefusal> {
        let page = self.form.page;
        let part = if is_part { ResultScope::hits(page) } else { ResultScope::page(page) };
        let mut found = self.ask(&self.form.search(&self.words, &self.tomorrow, part)?).await?;
        if is_part {
            return Ok(found);
        }
        for facet in facets::required_facets(&self.form) {
            let wider = self.form.without_field(FilterField::Facet(facet));
            let part = [facet];
            let part = ResultScope::counts(&part);
            let request = wider.search(&self.words, &self.tomorrow, part)?;
            // If this fails, the page shows the counts of the narrower search.
            if let Ok(counted) = self.ask(&request).await {
                found.facets.extend(counted.facets);
            }
        }
        Ok(found)
    }

    /// Returns the URL of the API that counts the items that arrived after the first hit; `None` if the page does
    /// not begin with the newest item.
    fn poll_url(&self, hits: &[ItemSummary]) -> Option<String> {
        let first = hits.first()?;
        if self.form.page > 1 || !self.form.is_newest_first() {
            return None;
        }
        let part = ResultScope::arrived_since(&first.uri);
        let request = self.form.search(&self.words, &self.tomorrow, part).ok()?;
        Some(target(&request))
    }

    /// Returns the visitor's latest notifications as searches; empty unless the page is the start page without a
    /// search.
    async fn saved_searches(&self) -> Vec<PageValue> {
        if self.site.visitor.is_none() || !self.form.is_plain() || self.form.page > 1 {
            return Vec::new();
        }
        // If they cannot be loaded, the page is shown without them.
        let saved = self.site.ask(&NOTIFICATIONS).await.unwrap_or_default();
        let newest_first = saved.iter().rev();
        let searches = newest_first.take(SITE_SAVED_SEARCHES).map(|notification| {
            let fields = NotificationForm::of_saved(notification, "");
            context! { url => fields.search_url(""), title => fields.title }
        });
        searches.collect()
    }

    /// Returns a spelling of the words that has hits, if the search has none.
    async fn respelling(&self, total: u64) -> Option<PageValue> {
        if total > 0 || self.words.is_empty() {
            return None;
        }
        let request = self.form.suggestions(&self.words, &self.tomorrow, true).ok()?;
        // If this fails, the page is shown without a suggestion.
        let text = self.ask(&request).await.ok()?.spelling?;
        let other = SearchForm { q: text, page: 1, ..self.form.clone() };
        Some(context! { url => other.url(1), text => other.q })
    }

    /// Returns the hits of a result, in which the words of the query are marked.
    fn hits(&self, found: &SearchResult) -> Vec<ItemSummary> {
        let mut hits = ItemSummary::from_documents(&found.hits);
        let zone = &self.site.app.shared.site.zone;
        let words = QueryWords::parse(&self.words, self.form.written, zone);
        hits.iter_mut().for_each(|hit| hit.mark(&words));
        hits
    }

    /// Returns the template context of the hits, which the full page and the hits alone share.
    fn hits_context(&self, found: &SearchResult, hits: &[ItemSummary]) -> PageValue {
        let form = &self.form;
        let total = found.total;
        let shown_until = u64::try_from(form.page * PAGE_ITEMS).unwrap_or(u64::MAX);
        let page_items = u64::try_from(PAGE_ITEMS).unwrap_or(u64::MAX);
        // Hits beyond the last page can be reached only with a narrower search.
        let has_more = shown_until < total && form.page < PAGES_MAX;
        let pages = usize::try_from(total.div_ceil(page_items)).unwrap_or(usize::MAX);
        context! {
            wanted => Serde(form),
            hits => Serde(hits),
            total => total,
            as_pictures => matches!(form.media_type.as_str(), "image" | "stockfoto" | "graphic" | "video"),
            density => <&str>::from(self.site.density),
            previous_url => (form.page > 1).then(|| form.url(form.page - 1)),
            next_url => has_more.then(|| form.url(form.page + 1)),
            page => form.page,
            page_items => PAGE_ITEMS,
            pages => pages.min(PAGES_MAX),
            back_query => back_link::back_query(&self.site.path_and_query),
        }
    }

    /// Shows the hits alone.
    fn show_hits(&self, found: &SearchResult) -> PageResult {
        let hits = self.hits(found);
        self.site.page("search_hits.html", self.hits_context(found, &hits))
    }

    /// Shows the page of a search, with a notice if the query was not valid. `refusal` is the API's error for an
    /// invalid search, which has an empty result.
    async fn show(
        &self,
        found: &SearchResult,
        notice: Option<QueryNotice>,
        refusal: Option<&ApiRefusal>,
    ) -> PageResult {
        let site = self.site;
        let form = &self.form;
        let hits = self.hits(found);
        let respelling = match refusal {
            Some(_) => None,
            None => self.respelling(found.total).await,
        };
        let collections = match &site.visitor {
            // Without hits there is nothing to add to a collection. If the collections cannot be loaded, the page
            // is shown without them.
            Some(_) if !hits.is_empty() => {
                site.ask(&collections::COLLECTION_NAMES).await.unwrap_or_default()
            }
            Some(_) | None => Vec::new(),
        };
        let (facets, chips) = match refusal {
            // A refused search does not look up any names.
            Some(_) => (Vec::new(), Vec::new()),
            // Active facets are shown without hits too, so that each can be removed.
            None => facets::lists_and_chips(site, form, &found.facets).await,
        };
        let title = facets::title(form, &facets);
        let suggestions = form.suggestions("", &self.tomorrow, false).unwrap_or_default();
        let context = context! {
            facets => Serde(facets),
            chips => Serde(chips),
            sizes => Serde(facets::sizes(form)),
            terms => Serde(facets::terms(form)),
            orders => Serde(facets::orders(form)),
            media_types => Serde(facets::media_types(form)),
            saved => self.saved_searches().await,
            notice => Serde(notice),
            mistakes => refusal.map(ApiRefusal::sentences),
            is_plain => form.is_plain(),
            may_see_all => self.may_see_all(),
            poll_url => self.poll_url(&hits),
            suggest_url => target(&suggestions),
            respelling,
            // An anonymous search counts without the visitor's agreements.
            is_anonymous => self.is_anonymous(),
            collections => Serde(collections),
            times_contradict => times::times_contradict(form, clock::now(), &site.app.shared.site.zone),
            email_url => form.notification_url("email", &title),
            stream_url => form.notification_url("stream", &title),
            ..other_searches(form)
        };
        let context = merge_maps([context, self.hits_context(found, &hits)]);
        site.page_with(status_of(refusal), "search.html", context)
    }
}

/// Returns links to searches that differ in one condition.
fn other_searches(form: &SearchForm) -> PageValue {
    let first_page = SearchForm { page: 1, ..form.clone() };
    let everything = SearchForm { media_type: "_all".to_owned(), ..first_page.clone() };
    let any_time = SearchForm {
        tr: String::new(),
        trs: String::new(),
        tre: String::new(),
        ..first_page.clone()
    };
    let unfiltered = SearchForm { filters: Vec::new(), p: Vec::new(), ..any_time.clone() };
    let upcoming = SearchForm { upcoming: true, ..first_page.clone() };
    context! {
        first_url => first_page.url(1),
        all_url => SearchForm { all: true, ..first_page.clone() }.url(1),
        everything_url => (form.media_type != "_all").then(|| everything.url(1)),
        forms_url => SearchForm { written: false, ..first_page }.url(1),
        any_time_url => any_time.url(1),
        unfiltered_url => unfiltered.url(1),
        upcoming_url => form.excludes_upcoming().then(|| upcoming.url(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
