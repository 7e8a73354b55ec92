//! The content API over HTTP (`docs/contract/search.md`).

mod acknowledging_body;
mod deprecated;
mod notifications;
mod parameters;
mod stream;
mod suggest;

#[cfg(test)]
mod tests;

use std::{net::IpAddr, sync::Arc};

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, Uri},
    routing::get,
};
use jiff::Timestamp;
use strum::IntoEnumIterator;

use crate::access::auth::Principal;
use crate::archive::content::CallerVisibility;
use crate::archive::content::DocumentForm;
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiError;
use crate::http::api::ApiResult;
use crate::http::credentials;
use crate::http::edge;
use crate::http::protocol::request;
use crate::http::protocol::request::QueryParameters;
use crate::media::UrlLinks;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit;
use crate::storage::search::{SearchCriteria, SortDate, SortOrder};
use model::account::Scope;
use model::{ItemKey, MediaType, PictureHash};
use parameters::{ANY_MEDIA_TYPE, ContentParameters};
use query::Query;

/// A decoded path segment, or the reason why it is missing.
type Segment = Result<Path<String>, PathRejection>;

/// The routes of the content API.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/content/v1/{media_type}/search", get(search))
        .route("/content/v1/{media_type}/stream", get(stream::stream))
        .route("/content/v1/{media_type}/suggest", get(suggest::suggest))
        .route("/api/search", get(deprecated::search))
        .route("/api/search/agreements", get(deprecated::agreements))
        .merge(notifications::routes())
}

async fn search(State(app): State<AppState>, media_type: Segment, request: Request) -> ApiResult {
    let media_type = request::path_segment("mediaType", media_type)?;
    let context = RequestContext::new(&app, request);
    let caller = context.caller(&app, &media_type, BasicAuth::Accepted).await?;
    let query = QueryParameters::from_uri(&context.uri)?;
    let parameters = ContentParameters::new(&query, &app.shared.site.zone, caller.as_deref());
    let SearchParameters { mut criteria, form, duplicates } =
        parse_search(parameters, &media_type, context.now, &app)?;
    if let Some(key) = duplicates {
        // The item is read only if all parameters are valid.
        let hash = find_picture(&app, caller.as_deref(), key, context.now).await?;
        criteria.near_picture = Some(hash);
    }
    Ok(api::json_text(app.shared.archive.content.search(criteria, form, context.now).await?))
}

/// The parameters of a search.
struct SearchParameters {
    criteria: SearchCriteria,
    form: DocumentForm<UrlLinks>,
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

/// Parses the parameters of a search.
///
/// Fails with all problems of the parameters, or if the caller may not see the requested items.
fn parse_search(
    mut parameters: ContentParameters<'_>,
    media_type: &str,
    now: Timestamp,
    app: &AppState,
) -> Result<SearchParameters> {
    let caller = parameters.caller();
    let read = read_search(&mut parameters, media_type, now, app);
    let read = parameters.finish(read)?;
    // Checked after the parameters, so that a malformed request is a 400 for every caller.
    parameters::check_statuses(caller, &read.criteria.statuses)?;
    Ok(read)
}

/// Reads the parameters of a search; `None` if one is invalid.
fn read_search(
    parameters: &mut ContentParameters<'_>,
    media_type: &str,
    now: Timestamp,
    app: &AppState,
) -> Option<SearchParameters> {
    let media_type = parameters.media_type(media_type, MediaType::iter());
    let selection = parameters.selection_with_forms();
    let filters = parameters.filters();
    let duplicates = parameters.duplicates();
    let after = parameters.read(stream::last_item);
    let period = parameters.period();
    let statuses = parameters.statuses();
    let (size, skip) = parameters.page_range();
    let sort = parameters.sort();
    let facets = parameters.facets();
    let layout = parameters.layout();
    let links = app.shared.media.links().clone();
    // Every parameter is read before the first `?`, so that all problems are reported together.
    let (filters, facet_values) = filters?;
    let mut criteria = parameters::search_request(selection?, parameters.caller(), now);
    criteria.query = Query::and(vec![criteria.query, filters]);
    criteria.facet_values = facet_values;
    criteria.media_type = media_type?;
    criteria.after = after?;
    (criteria.from, criteria.until) = period?.bounds(now, &app.shared.site.zone);
    criteria.size = size?;
    criteria.skip = skip?;
    criteria.sort = sort?;
    criteria.facets = facets?;
    criteria.statuses = statuses?;
    let form = DocumentForm { layout: layout?, links };
    Some(SearchParameters { criteria, form, duplicates: duplicates? })
}

/// The default order of hits: by `_tstamp`, the latest first.
const SORT_DEFAULT: SortOrder = SortOrder::By { date: SortDate::Order, descending: true };

/// The treatment of HTTP Basic credentials: only the search accepts them (contract access-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BasicAuth {
    Accepted,
    Refused,
}

/// The parts of a request that identify its caller.
struct RequestContext {
    headers: HeaderMap,
    uri: Uri,
    address: Option<IpAddr>,
    now: Timestamp,
}

impl RequestContext {
    fn new(app: &AppState, request: Request) -> Self {
        let address =
            edge::client_address(&request, &app.shared.edge.live_settings.get().trusted_proxies);
        let (parts, _body) = request.into_parts();
        Self { headers: parts.headers, uri: parts.uri, address, now: clock::now() }
    }

    /// Authenticates the caller; `None` for an anonymous search for photographs.
    ///
    /// Fails for invalid credentials in every case, and for an anonymous caller whose search is not open.
    async fn caller(
        &self,
        app: &AppState,
        media_type: &str,
        basic: BasicAuth,
    ) -> Result<Option<Arc<Principal>>, ApiError> {
        let found = self.find_caller(app, basic).await?;
        if let Some(caller) = found {
            // Required even where anonymous callers are accepted (contract access-5).
            caller.require_scope(Scope::Roles)?;
            return Ok(Some(caller));
        }
        // Invalid credentials are an error and never an anonymous search (contract access-4).
        let presented = credentials::are_presented(&self.headers, &self.uri);
        if !presented && media_type != ANY_MEDIA_TYPE && media_type.parse::<MediaType>().is_err() {
            // There is nothing to protect; the parser of the parameters reports the unknown media type.
            return Ok(None);
        }
        if !presented
            && app.shared.edge.live_settings.get().open_images
            && self.is_open(media_type)?
        {
            return Ok(None);
        }
        let refusal = Error::new(ErrorKind::Unauthenticated, "Unauthorized");
        Err(ApiError::new(refusal, &self.headers))
    }

    async fn find_caller(
        &self,
        app: &AppState,
        basic: BasicAuth,
    ) -> Result<Option<Arc<Principal>>> {
        let presented =
            credentials::basic_credentials(&self.headers).filter(|_| basic == BasicAuth::Accepted);
        let Some((user_name, password)) = presented else {
            return credentials::principal(app, &self.headers, &self.uri).await;
        };
        // Without an address, failed passwords could not be throttled by network.
        let Some(address) = self.address else { return Ok(None) };
        audit::note_basic();
        let found =
            app.shared.access.auth.find_basic(&user_name, &password, address, self.now).await?;
        found.iter().for_each(|caller| credentials::record_caller(caller));
        Ok(found)
    }

    /// Returns whether anonymous callers may run this search: a search for photographs, without parameters that
    /// need rights.
    fn is_open(&self, media_type: &str) -> Result<bool> {
        let query = QueryParameters::from_uri(&self.uri)?;
        let names_agreements = query.list("agr").is_ok_and(|ids| !ids.is_empty());
        let names_commissioned =
            query.list("pubstatus").is_ok_and(|statuses| statuses.contains(&"commissioned"));
        let needs_rights = names_agreements || names_commissioned;
        Ok(media_type == MediaType::Image.as_str() && !needs_rights)
    }
}
