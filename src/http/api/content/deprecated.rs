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
use crate::http::api::credentials;
use crate::http::protocol::deprecation::mark_deprecated;
use crate::http::protocol::request::QueryParameters;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::search::{SortDate, SortOrder};
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
    let visit = RequestContext::of(app, request);
    let caller = require_api_key_caller(app, &visit).await?;
    let query = QueryParameters::of(&visit.uri)?;
    let mut parameters = ContentParameters::new(&query, &app.shared.site.zone, Some(&caller));
    let selection = parameters.selection();
    let period = parameters.period(&TIMES);
    let (size, skip) = parameters.page_range();
    let sort = parameters.read(|query| query.one_of("sort", &SORTS));
    let given = || {
        let period = period?;
        let mut wanted = parameters::search_request(selection?, Some(&caller), visit.now);
        (wanted.from, wanted.until) = period.bounds(visit.now, &app.shared.site.zone);
        (wanted.size, wanted.skip) = (size?, skip?);
        wanted.sort = sort?.unwrap_or(sort_by(SortDate::VersionCreated, true));
        Some(wanted)
    };
    let given = given();
    let wanted = parameters.finish(given)?;
    let form =
        DocumentForm { layout: DocumentLayout::Full, links: app.shared.media.links().clone() };
    Ok(api::json_text(app.shared.archive.content.list(wanted, form, visit.now).await?))
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
    let visit = RequestContext::of(app, request);
    let caller = require_api_key_caller(app, &visit).await?;
    let products = |products: &[Product]| products.iter().map(LegacyProduct::from).collect();
    let agreements: BTreeMap<i64, Vec<LegacyProduct>> = Users::agreements(&caller, visit.now)
        .map(|agreement| (agreement.id.0, products(&agreement.products)))
        .collect();
    api::json(&agreements)
}

/// Authenticates the caller by API key; this interface accepts no other credentials.
async fn require_api_key_caller(app: &AppState, visit: &RequestContext) -> Result<Arc<Principal>> {
    let unknown = || Error::new(ErrorKind::Unauthenticated, "Unauthorized");
    let key = credentials::query_value(&visit.uri, "ak").ok_or_else(unknown)?;
    let found = app.shared.access.auth.find(PresentedCredentials::ApiKey(&key), visit.now).await?;
    found.ok_or_else(unknown)
}
