//! The deprecated search interface (contract search-21).

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{
    Visit,
    parameters::{self, Parameters, by},
};
use crate::access::auth::{Credentials, Principal};
use crate::access::users::Users;
use crate::archive::content::{Form, Recent};
use crate::http::App;
use crate::http::api;
use crate::http::api::Answer;
use crate::http::api::credentials;
use crate::http::protocol::deprecation::mark;
use crate::http::protocol::request::Query;
use crate::runtime::error::{Error, Kind, Result};
use crate::storage::search::{Sort, SortDate};
use model::account::Product;
use model::item::Layout;

/// The values of `tr`.
const TIMES: [(&str, Recent); 4] =
    [("h", Recent::Hour), ("d", Recent::Day), ("w", Recent::Week), ("y", Recent::Year)];

/// The values of `sort`; the latest come first.
const SORTS: [(&str, Sort); 4] = [
    ("asc", by(SortDate::VersionCreated, false)),
    ("desc", by(SortDate::VersionCreated, true)),
    ("stor", by(SortDate::VersionStored, true)),
    ("rel", Sort::Relevance),
];

/// `GET /api/search`.
pub(super) async fn search(State(app): State<App>, request: Request) -> Response {
    mark(list(&app, request).await.into_response(), "/content/v1/_all/search")
}

async fn list(app: &App, request: Request) -> Answer {
    let visit = Visit::of(app, request);
    let caller = key(app, &visit).await?;
    let query = Query::of(&visit.uri)?;
    let mut parameters = Parameters::new(&query, &app.shared.site.zone, Some(&caller));
    let selection = parameters.selection();
    let period = parameters.period(&TIMES);
    let (size, skip) = parameters.page();
    let sort = parameters.keep(|query| query.one_of("sort", &SORTS));
    let given = || {
        let period = period?;
        let mut wanted = parameters::wanted(selection?, Some(&caller), visit.now);
        (wanted.from, wanted.until) = period.bounds(visit.now, &app.shared.site.zone);
        (wanted.size, wanted.skip) = (size?, skip?);
        wanted.sort = sort?.unwrap_or(by(SortDate::VersionCreated, true));
        Some(wanted)
    };
    let given = given();
    let wanted = parameters.end(given)?;
    let form = Form { layout: Layout::Full, links: app.shared.media.links().clone() };
    Ok(api::json_text(app.shared.archive.content.list(wanted, form, visit.now).await?))
}

/// `GET /api/search/agreements`.
pub(super) async fn agreements(State(app): State<App>, request: Request) -> Response {
    mark(list_agreements(&app, request).await.into_response(), "/user/v1/user")
}

/// A product of an agreement as this interface shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OldProduct {
    id: i64,
    name: String,
    description: Option<String>,
    product_code: String,
}

impl From<&Product> for OldProduct {
    fn from(product: &Product) -> Self {
        Self {
            id: product.id.0,
            // The name must be a string; the code is the only other name there is.
            name: product.name.clone().unwrap_or_else(|| product.code.clone()),
            description: product.description.clone(),
            product_code: product.code.clone(),
        }
    }
}

async fn list_agreements(app: &App, request: Request) -> Answer {
    let visit = Visit::of(app, request);
    let caller = key(app, &visit).await?;
    let products = |products: &[Product]| products.iter().map(OldProduct::from).collect();
    let agreements: BTreeMap<i64, Vec<OldProduct>> = Users::agreements(&caller, visit.now)
        .map(|agreement| (agreement.id.0, products(&agreement.products)))
        .collect();
    api::json(&agreements)
}

/// The caller, by its application key; nothing else counts here.
async fn key(app: &App, visit: &Visit) -> Result<Arc<Principal>> {
    let unknown = || Error::new(Kind::Unauthenticated, "Unauthorized");
    let key = credentials::query_value(&visit.uri, "ak").ok_or_else(unknown)?;
    let found = app.shared.access.auth.find(Credentials::ApiKey(&key), visit.now).await?;
    found.ok_or_else(unknown)
}
