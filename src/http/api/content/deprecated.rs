//! The deprecated search interface (contract search-21).

use std::{collections::BTreeMap, sync::Arc};

use api::content::{SearchOrder, SearchPeriod};
use api::search::{
    AgreementsOfKey, ListAgreementsOfKey, ProductOfKey, SearchOrderOfKey, SearchWithKey,
};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use jiff::Timestamp;

use super::parameters::{self, SearchContext};
use crate::access::auth::{PresentedCredentials, Principal};
use crate::access::users::Users;
use crate::http::api::binding::ApiRequest;
use crate::http::api::response::{self, json_text};
use crate::http::protocol::deprecation::mark_deprecated;
use crate::http::protocol::request::ValidationErrors;
use crate::http::{AppState, credentials};
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::storage::search::SearchCriteria;
use model::account::Product;
use model::item::DocumentLayout;

/// Marks the answer of a deprecated operation, even if it refuses the request.
pub(super) fn mark(outcome: Result<Response>, has_bearer: bool, successor: &str) -> Response {
    let response = outcome.unwrap_or_else(|error| response::refuse(&error, has_bearer));
    mark_deprecated(response, successor)
}

pub(super) async fn search(request: ApiRequest<SearchWithKey>) -> Result<Response> {
    Ok(mark(run_search(request).await, false, "/content/v1/_all/search"))
}

async fn run_search(request: ApiRequest<SearchWithKey>) -> Result<Response> {
    let app = &request.app;
    let now = clock::now();
    let caller = require_api_key_caller(app, &request.parts.uri, now).await?;
    let context = SearchContext::new(app, Some(&caller), now);
    let criteria =
        request.checked_parameters(|read, problems| check_search(&context, &read, problems))?;
    let form = parameters::document_form(app, DocumentLayout::Full);
    Ok(json_text(app.shared.archive.content.list(criteria, form, now).await?))
}

/// Checks the parameters of the search; `None` if one is invalid.
fn check_search(
    context: &SearchContext<'_>,
    read: &SearchWithKey,
    problems: &mut ValidationErrors,
) -> Option<SearchCriteria> {
    let query = parameters::parse_query(&read.q, context.zone, query::parse);
    let mut criteria = context.criteria(query, &read.scope, problems)?;
    let period = SearchPeriod { tr: read.tr, trs: read.trs, tre: read.tre };
    (criteria.from, criteria.until) = context.bounds(&period);
    criteria.size = read.size;
    criteria.skip = read.skip;
    criteria.sort = parameters::sort_order(match read.sort {
        SearchOrderOfKey::Asc => SearchOrder::FirstCreated,
        SearchOrderOfKey::Desc => SearchOrder::LastCreated,
        SearchOrderOfKey::Stor => SearchOrder::LastStored,
        SearchOrderOfKey::Rel => SearchOrder::Relevance,
    });
    Some(criteria)
}

pub(super) async fn agreements(request: ApiRequest<ListAgreementsOfKey>) -> Result<Response> {
    Ok(mark(list_agreements(&request.app, &request.parts.uri).await, false, "/user/v1/user"))
}

async fn list_agreements(app: &AppState, uri: &Uri) -> Result<Response> {
    let now = clock::now();
    let caller = require_api_key_caller(app, uri, now).await?;
    let mut agreements = BTreeMap::new();
    for agreement in Users::agreements(&caller, now) {
        let products = agreement.products.iter().map(product_of_key).collect();
        agreements.insert(agreement.id.0, products);
    }
    response::json(StatusCode::OK, &AgreementsOfKey(agreements))
}

/// Converts a product of an agreement into the format of this interface.
fn product_of_key(product: &Product) -> ProductOfKey {
    ProductOfKey {
        id: product.id.0,
        // `name` must be a string; the code is the only substitute.
        name: product.name.clone().unwrap_or_else(|| product.code.clone()),
        description: product.description.clone(),
        product_code: product.code.clone(),
    }
}

/// Authenticates the caller by API key; this interface accepts no other credentials.
async fn require_api_key_caller(
    app: &AppState,
    uri: &Uri,
    now: Timestamp,
) -> Result<Arc<Principal>> {
    let key = credentials::query_value(uri, "ak").ok_or_else(credentials::unauthorized)?;
    let found = app.shared.access.auth.find(PresentedCredentials::ApiKey(&key), now).await?;
    found.ok_or_else(credentials::unauthorized)
}
