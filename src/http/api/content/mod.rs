//! The content API over HTTP (`docs/contract/search.md`).

mod acknowledging_body;
mod deprecated;
pub(crate) mod notifications;
mod parameters;
mod stream;
mod suggest;

#[cfg(test)]
mod tests;

use std::{net::IpAddr, sync::Arc};

use api::content::{ANY_MEDIA_TYPE, SearchItems, StreamItems, SuggestTexts};
use api::search::{ListAgreementsOfKey, SearchWithKey};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use jiff::Timestamp;

use crate::access::auth::Principal;
use crate::archive::content::CallerVisibility;
use crate::http::api::binding::{ApiRequest, BoundEndpoints};
use crate::http::api::response::{json_text, refuse};
use crate::http::protocol::request::{QueryParameters, ValidationErrors};
use crate::http::protocol::respond;
use crate::http::{AppState, credentials, edge};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit;
use crate::storage::search::{SearchCriteria, SortDate, SortOrder};
use model::account::Scope;
use model::item::DocumentLayout;
use model::{ItemKey, MediaType, PictureHash};
use parameters::{ParsedFilters, QueryParseFn, SearchContext};
use query::Facet;

/// The endpoints of searches.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind_response::<SearchItems, _, _>(search)
        .bind::<SuggestTexts, _, _>(suggest::suggest)
        .bind_response::<StreamItems, _, _>(stream::stream)
        .bind_response::<SearchWithKey, _, _>(deprecated::search)
        .bind_response::<ListAgreementsOfKey, _, _>(deprecated::agreements)
}

async fn search(request: ApiRequest<SearchItems>) -> Result<Response> {
    let app = &request.app;
    let now = clock::now();
    let media_type = request.segment("mediaType").unwrap_or_default();
    let found = authenticate(app, &request.parts, media_type, BasicAuth::Accepted, now).await;
    let caller = match found {
        Ok(caller) => caller,
        Err(refused) if refused.kind() == ErrorKind::Unauthenticated => {
            return Ok(refuse_search(&refused, &request.parts.headers));
        }
        Err(refused) => return Err(refused),
    };
    let caller = caller.as_deref();
    let context = SearchContext::new(app, caller, now);
    let SearchParameters { mut criteria, layout, duplicates } =
        request.checked_parameters(|read, problems| check_search(&context, read, problems))?;
    // Checked after the parameters, so that a malformed request is a 400 for every caller.
    parameters::check_statuses(caller, &criteria.statuses)?;
    if let Some(key) = duplicates {
        // The item is read only if all parameters are valid.
        criteria.near_picture = Some(find_picture(app, caller, key, now).await?);
    }
    let form = parameters::document_form(app, layout);
    Ok(json_text(app.shared.archive.content.search(criteria, form, now).await?))
}

/// Builds the 401 of a search, which also offers HTTP Basic (contract access-6).
fn refuse_search(refused: &Error, headers: &HeaderMap) -> Response {
    let mut response = refuse(refused, credentials::has_bearer_token(headers));
    credentials::offer_basic(&mut response, headers);
    response
}

/// The parameters of a search.
struct SearchParameters {
    criteria: SearchCriteria,
    layout: DocumentLayout,
    /// The reference item: each hit must have a picture similar to the picture of this item.
    duplicates: Option<ItemKey>,
}

/// Finds the perceptual hash of the picture of the item `key`.
///
/// Fails if the caller may not see the item, or if the item has no picture that can be compared.
async fn find_picture(
    app: &AppState,
    caller: Option<&Principal>,
    key: ItemKey,
    now: Timestamp,
) -> Result<PictureHash> {
    if caller.is_none() && key.media_type != MediaType::Image {
        // Without credentials only photographs are found.
        return Err(Error::new(ErrorKind::NotFound, format!("There is no item {key}")));
    }
    let message = format!("duplicates is {key}, which has no picture that can be compared");
    let visibility = CallerVisibility::of_search(caller, now);
    let hash = app.shared.archive.content.picture_hash(key, visibility).await?;
    hash.ok_or_else(|| Error::invalid("query", "duplicates", "enum", message))
}

/// Checks the parameters of a search; `None` if one is invalid.
fn check_search(
    context: &SearchContext<'_>,
    read: SearchItems,
    problems: &mut ValidationErrors,
) -> Option<SearchParameters> {
    let parse: QueryParseFn = if read.forms { query::parse_with_forms } else { query::parse };
    let query = parameters::parse_query(&read.q, context.zone, parse);
    let criteria = context.criteria(query, &read.scope, problems);
    let filters = problems.check(ParsedFilters::parse(&read.filters));
    let duplicates = read.duplicates.as_deref().map(parse_duplicates);
    let duplicates = problems.check(duplicates.transpose());
    let after = problems.check(read.last.as_deref().map(stream::parse_last).transpose());
    // Every parameter is checked before the first `?`, so that all problems are reported together.
    let mut criteria = filters?.narrow(criteria?);
    criteria.media_type = read.media_type;
    criteria.after = after?;
    (criteria.from, criteria.until) = context.bounds(&read.period);
    criteria.size = read.size;
    criteria.skip = read.skip;
    criteria.sort = parameters::sort_order(read.sort);
    criteria.facets = distinct(&read.facets);
    criteria.statuses = read.statuses;
    Some(SearchParameters { criteria, layout: read.layout, duplicates: duplicates? })
}

/// Returns the facets without duplicates: a facet that is named twice would be counted twice and be twice in the answer.
fn distinct(requested: &[Facet]) -> Vec<Facet> {
    let mut facets = Vec::new();
    for facet in requested {
        if !facets.contains(facet) {
            facets.push(*facet);
        }
    }
    facets
}

/// Parses `duplicates`, the media type and id of an item.
fn parse_duplicates(text: &str) -> Result<ItemKey> {
    ItemKey::parse(text).map_err(|cause| {
        let message = format!("duplicates is `{}`: {cause}", respond::shorten_input(text));
        Error::invalid("query", "duplicates", "format", message)
    })
}

/// The default order of hits: by `_tstamp`, the latest first.
const SORT_DEFAULT: SortOrder = SortOrder::By { date: SortDate::Order, descending: true };

/// The treatment of HTTP Basic credentials: only the search accepts them (contract access-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BasicAuth {
    Accepted,
    Refused,
}

/// Authenticates the caller of a search; `None` for an anonymous search for photographs.
///
/// Fails for invalid credentials in every case, and for an anonymous caller whose search is not open.
async fn authenticate(
    app: &AppState,
    parts: &Parts,
    media_type: &str,
    basic: BasicAuth,
    now: Timestamp,
) -> Result<Option<Arc<Principal>>> {
    let found = find_caller(app, parts, basic, now).await?;
    if let Some(caller) = found {
        // Required even where anonymous callers are accepted (contract access-5).
        caller.require_scope(Scope::Roles)?;
        return Ok(Some(caller));
    }
    // Invalid credentials are an error and never an anonymous search (contract access-4).
    let presented = credentials::are_presented(&parts.headers, &parts.uri);
    if !presented && media_type != ANY_MEDIA_TYPE && media_type.parse::<MediaType>().is_err() {
        // There is nothing to protect; the check of the parameters reports the unknown media type.
        return Ok(None);
    }
    if !presented
        && app.shared.edge.live_settings.get().open_images
        && is_open(&parts.uri, media_type)?
    {
        return Ok(None);
    }
    Err(credentials::unauthorized())
}

async fn find_caller(
    app: &AppState,
    parts: &Parts,
    basic: BasicAuth,
    now: Timestamp,
) -> Result<Option<Arc<Principal>>> {
    let presented =
        credentials::basic_credentials(&parts.headers).filter(|_| basic == BasicAuth::Accepted);
    let Some((user_name, password)) = presented else {
        return credentials::principal(app, &parts.headers, &parts.uri).await;
    };
    // Without an address, failed passwords could not be throttled by network.
    let Some(address) = client_address(app, parts) else { return Ok(None) };
    audit::note_basic();
    let found = app.shared.access.auth.find_basic(&user_name, &password, address, now).await?;
    found.iter().for_each(|caller| credentials::record_caller(caller));
    Ok(found)
}

fn client_address(app: &AppState, parts: &Parts) -> Option<IpAddr> {
    let settings = app.shared.edge.live_settings.get();
    edge::address_of(&parts.extensions, &parts.headers, &settings.trusted_proxies)
}

/// Returns whether anonymous callers may run this search: a search for photographs, without parameters that
/// need rights.
fn is_open(uri: &Uri, media_type: &str) -> Result<bool> {
    let query = QueryParameters::from_uri(uri)?;
    let names_agreements = query.list("agr").is_ok_and(|ids| !ids.is_empty());
    let names_commissioned =
        query.list("pubstatus").is_ok_and(|statuses| statuses.contains(&"commissioned"));
    let needs_rights = names_agreements || names_commissioned;
    Ok(media_type == MediaType::Image.as_str() && !needs_rights)
}
