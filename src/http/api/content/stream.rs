//! The deprecated stream: a long poll for the most recent match (contract search-19).

use std::time::Duration;

use api::content::StreamItems;
use axum::response::Response;

use super::parameters::{self, SearchContext};
use super::{BasicAuth, authenticate, client_address, deprecated};
use crate::archive::content::SearchPoll;
use crate::http::api::binding::ApiRequest;
use crate::http::api::response::json_text;
use crate::http::credentials;
use crate::http::protocol::request::ValidationErrors;
use crate::http::protocol::respond;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::fair_queue::RequestClient;
use crate::storage::search::SearchCriteria;
use model::item::DocumentLayout;
use model::{ItemKey, ItemUri};

pub(super) async fn stream(request: ApiRequest<StreamItems>) -> Result<Response> {
    let successor = match request.segment("mediaType") {
        // The segment is copied into a header, so only ASCII alphabetic characters pass.
        Some(text) if text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_') => text,
        Some(_) | None => "_all",
    };
    let successor = format!("/content/v1/{successor}/notification/stream");
    let has_bearer = credentials::has_bearer_token(&request.parts.headers);
    let outcome = poll(request).await;
    Ok(deprecated::mark(outcome, has_bearer, &successor))
}

async fn poll(request: ApiRequest<StreamItems>) -> Result<Response> {
    let app = request.app.clone();
    let now = clock::now();
    let media_type = request.segment("mediaType").unwrap_or_default();
    let caller = authenticate(&app, &request.parts, media_type, BasicAuth::Refused, now).await?;
    let context = SearchContext::new(&app, caller.as_deref(), now);
    let ItemPoll { criteria, layout, wait } =
        request.checked_parameters(|read, problems| check_poll(&context, &read, problems))?;
    let address = client_address(&app, &request.parts);
    // A poll waits without its request, because thousands may wait at once.
    drop(request);
    let user = caller.map(|caller| caller.user().id);
    let form = parameters::document_form(&app, layout);
    let holder = RequestClient::new(user, address);
    let poll = SearchPoll { holder, request: &criteria, form: &form };
    let stop = app.shared.process.stopped();
    Ok(json_text(app.shared.archive.content.poll(poll, clock::now, wait, stop).await?))
}

/// The parameters of a poll. A `wait` of 0 polls once (contract search-19).
struct ItemPoll {
    criteria: SearchCriteria,
    layout: DocumentLayout,
    wait: Duration,
}

/// Checks the parameters of a poll; `None` if one is invalid.
fn check_poll(
    context: &SearchContext<'_>,
    read: &StreamItems,
    problems: &mut ValidationErrors,
) -> Option<ItemPoll> {
    let query = parameters::parse_query(&read.q, context.zone, query::parse);
    let criteria = context.criteria(query, &read.scope, problems);
    let after = problems.check(read.last.as_deref().map(parse_last).transpose());
    // Every parameter is checked before the first `?`, so that all problems are reported together.
    let mut criteria = criteria?;
    criteria.media_type = read.media_type;
    criteria.after = after?;
    criteria.sort = parameters::sort_order(read.sort);
    criteria.size = 1;
    let wait = Duration::from_secs(read.wait.into());
    Some(ItemPoll { criteria, layout: read.layout, wait })
}

/// Parses `last`, the URI of the last item that the client has seen, on any host.
pub(super) fn parse_last(uri: &str) -> Result<ItemKey> {
    let named = ItemUri::parse(uri).map_err(|cause| {
        let uri = respond::shorten_input(uri);
        Error::invalid("query", "last", "format", format!("last is `{uri}`: {cause}"))
    })?;
    Ok(named.key)
}
