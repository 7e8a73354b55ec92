//! The deprecated stream: a long poll for the most recent match (contract search-19).

use std::time::Duration;

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;

use super::{
    BasicAuth, RequestContext, Segment,
    parameters::{self, ContentParameters},
};
use crate::archive::content::{DocumentForm, SearchPoll};
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiResult;
use crate::http::protocol::deprecation;
use crate::http::protocol::request;
use crate::http::protocol::request::QueryParameters;
use crate::http::protocol::respond;
use crate::media::UrlLinks;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{POLL_S, POLL_S_MAX};
use crate::runtime::slots::SlotHolder;
use crate::storage::search::SearchCriteria;
use model::{ItemKey, ItemUri};

pub(super) async fn stream(
    State(app): State<AppState>,
    media_type: Segment,
    request: Request,
) -> Response {
    let media_type = request::path_segment("mediaType", media_type);
    let successor = match &media_type {
        // The segment is copied into a header, so only ASCII alphabetic characters pass.
        Ok(text) if text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_') => text,
        Ok(_) | Err(_) => "_all",
    };
    let successor = format!("/content/v1/{successor}/notification/stream");
    let response = poll(&app, media_type, request).await.into_response();
    deprecation::mark_deprecated(response, &successor)
}

async fn poll(app: &AppState, media_type: Result<String>, request: Request) -> ApiResult {
    let media_type = media_type?;
    let context = RequestContext::new(app, request);
    let caller = context.caller(app, &media_type, BasicAuth::Refused).await?;
    let query = QueryParameters::from_uri(&context.uri)?;
    let parameters = ContentParameters::new(&query, &app.shared.site.zone, caller.as_deref());
    let (criteria, form, wait) = parse_poll(parameters, &media_type, context.now, app)?;
    let user = caller.map(|caller| caller.user().id);
    let holder = SlotHolder::for_request(user, context.address);
    let poll = SearchPoll { holder, request: &criteria, form: &form };
    Ok(api::json_text(
        app.shared
            .archive
            .content
            .poll(poll, clock::now, wait, app.shared.process.stopped())
            .await?,
    ))
}

/// Parses the parameters of a poll, including the time that it waits.
///
/// A `wait` of 0 polls once (contract search-19).
fn parse_poll(
    mut parameters: ContentParameters<'_>,
    media_type: &str,
    now: Timestamp,
    app: &AppState,
) -> Result<(SearchCriteria, DocumentForm<UrlLinks>, Duration)> {
    let poll = read_poll(&mut parameters, media_type, now, app);
    parameters.finish(poll)
}

/// Reads the parameters of a poll; `None` if one is invalid.
fn read_poll(
    parameters: &mut ContentParameters<'_>,
    media_type: &str,
    now: Timestamp,
    app: &AppState,
) -> Option<(SearchCriteria, DocumentForm<UrlLinks>, Duration)> {
    let media_type = parameters.media_type(media_type, parameters::STREAM_MEDIA_TYPES);
    let selection = parameters.selection();
    let sort = parameters.sort();
    let layout = parameters.layout();
    let after = parameters.read(last_item);
    let wait = parameters.read(|query| query.integer("wait", 0..=i64::from(POLL_S_MAX)));
    let links = app.shared.media.links().clone();
    // Every parameter is read before the first `?`, so that all problems are reported together.
    let mut criteria = parameters::search_request(selection?, parameters.caller(), now);
    criteria.media_type = media_type?;
    criteria.after = after?;
    criteria.sort = sort?;
    criteria.size = 1;
    let wait = u64::try_from(wait?.unwrap_or(i64::from(POLL_S))).unwrap_or_default();
    Some((criteria, DocumentForm { layout: layout?, links }, Duration::from_secs(wait)))
}

/// Parses `last`, the URI of the last item that the client has seen, on any host; `None` if the parameter is
/// absent.
pub(super) fn last_item(query: &QueryParameters) -> Result<Option<ItemKey>> {
    let Some(uri) = query.text("last")? else { return Ok(None) };
    let named = ItemUri::parse(uri).map_err(|cause| {
        let uri = respond::shorten_input(uri);
        Error::invalid("query", "last", "format", format!("last is `{uri}`: {cause}"))
    })?;
    Ok(Some(named.key))
}
