//! The deprecated search interface (contract search-21).

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{
    RequestContext,
    parameters::{self, ContentParameters, sort_by},
};
use crate::access::auth::{PresentedCredentials, Principal};
use crate::access::users::Users;
use crate::archive::content::{DocumentForm, RecentSpan};
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiResult;
use crate::http::credentials;
use crate::http::protocol::deprecation::mark_deprecated;
use crate::http::protocol::request::QueryParameters;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::search::{SearchCriteria, SortDate, SortOrder};
use model::account::Product;
use model::item::DocumentLayout;

/// The values of `tr`.
const TIMES: [(&str, RecentSpan); 4] = [
    ("h", RecentSpan::Hour),
    ("d", RecentSpan::Day),
    ("w", RecentSpan::Week),
    ("y", RecentSpan::Year),
];

/// The values of `sort`; by default the latest come first.
const SORTS: [(&str, SortOrder); 4] = [
    ("asc", sort_by(SortDate::VersionCreated, false)),
    ("desc", sort_by(SortDate::VersionCreated, true)),
    ("stor", sort_by(SortDate::VersionStored, true)),
    ("rel", SortOrder::Relevance),
];

pub(super) async fn search(State(app): State<AppState>, request: Request) -> Response {
    mark_deprecated(run_search(&app, request).await.into_response(), "/content/v1/_all/search")
}

async fn run_search(app: &AppState, request: Request) -> ApiResult {
    let context = RequestContext::new(app, request);
    let caller = require_api_key_caller(app, &context).await?;
    let query = QueryParameters::from_uri(&context.uri)?;
    let mut parameters = ContentParameters::new(&query, &app.shared.site.zone, Some(&caller));
    let criteria = read_search(&mut parameters, &context, app);
    let criteria = parameters.finish(criteria)?;
    let form =
        DocumentForm { layout: DocumentLayout::Full, links: app.shared.media.links().clone() };
    Ok(api::json_text(app.shared.archive.content.list(criteria, form, context.now).await?))
}

/// Reads the parameters of the search; `None` if one is invalid.
fn read_search(
    parameters: &mut ContentParameters<'_>,
    context: &RequestContext,
    app: &AppState,
) -> Option<SearchCriteria> {
    let selection = parameters.selection();
    let recent = parameters.read(|query| query.one_of("tr", &TIMES));
    let period = parameters.period_with(recent);
    let (size, skip) = parameters.page_range();
    let sort = parameters.read(|query| query.one_of("sort", &SORTS));
    // Every parameter is read before the first `?`, so that all problems are reported together.
    let period = period?;
    let mut criteria = parameters::search_request(selection?, parameters.caller(), context.now);
    (criteria.from, criteria.until) = period.bounds(context.now, &app.shared.site.zone);
    criteria.size = size?;
    criteria.skip = skip?;
    criteria.sort = sort?.unwrap_or(sort_by(SortDate::VersionCreated, true));
    Some(criteria)
}

pub(super) async fn agreements(State(app): State<AppState>, request: Request) -> Response {
    mark_deprecated(list_agreements(&app, request).await.into_response(), "/user/v1/user")
}

/// A product of an agreement in the format of this interface.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LegacyProduct {
    id: i64,
    name: String,
    description: Option<String>,
    product_code: String,
}

impl From<&Product> for LegacyProduct {
    fn from(product: &Product) -> Self {
        Self {
            id: product.id.0,
            // `name` must be a string; the code is the only substitute.
            name: product.name.clone().unwrap_or_else(|| product.code.clone()),
            description: product.description.clone(),
            product_code: product.code.clone(),
        }
    }
}

async fn list_agreements(app: &AppState, request: Request) -> ApiResult {
    let context = RequestContext::new(app, request);
    let caller = require_api_key_caller(app, &context).await?;
    let mut agreements: BTreeMap<i64, Vec<LegacyProduct>> = BTreeMap::new();
    for agreement in Users::agreements(&caller, context.now) {
        let products = agreement.products.iter().map(LegacyProduct::from).collect();
        agreements.insert(agreement.id.0, products);
    }
    api::json(&agreements)
}

/// Authenticates the caller by API key; this interface accepts no other credentials.
async fn require_api_key_caller(
    app: &AppState,
    context: &RequestContext,
) -> Result<Arc<Principal>> {
    let key = credentials::query_value(&context.uri, "ak").ok_or_else(unauthorized)?;
    let found =
        app.shared.access.auth.find(PresentedCredentials::ApiKey(&key), context.now).await?;
    found.ok_or_else(unauthorized)
}

fn unauthorized() -> Error {
    Error::new(ErrorKind::Unauthenticated, "Unauthorized")
}
