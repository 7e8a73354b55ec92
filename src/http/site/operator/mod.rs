//! The pages of operators below `/operator`: the state of the service, failed work, and statistics (contract
//! operation-65).
//!
//! The pages call the API below `/operator/v1`, which refuses users without the role. The pages check the role
//! first, to explain the refusal.

mod chart;
mod downloads;
mod overview;
mod queues;
mod records;

use api::operation::ListRange;
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use minijinja::context;

use super::account::ListPage;
use super::{
    AppState, DeferredForm, MemberForm, MemberRequest, PageError, SiteRequest, VisitorCheck,
};
use crate::http::session::SiteVisitor;

/// The routes of the operators' pages.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/operator", get(overview::show))
        .route("/operator/deliveries", get(queues::deliveries).post(queues::retry_deliveries))
        .route("/operator/messages", get(queues::messages).post(queues::act_on_messages))
        .route("/operator/ingest", get(records::ingest_errors))
        .route("/operator/searches", get(records::slow_searches))
        .route("/operator/downloads", get(downloads::show))
        .route("/operator/downloads.csv", get(downloads::export))
}

/// The condition that the visitor has the operator role. Other visitors get a page that explains how to get it.
struct Operator;

/// A page request of a visitor with the operator role.
type OperatorRequest = MemberRequest<Operator>;
/// A form sent by a visitor with the operator role.
type OperatorForm = MemberForm<Operator>;

impl VisitorCheck for Operator {
    fn check(
        site: &SiteRequest,
        visitor: &SiteVisitor,
        _: &HeaderMap,
        _: Option<&DeferredForm>,
    ) -> Result<(), PageError> {
        if visitor.has_operator_role() {
            return Ok(());
        }
        let status = StatusCode::FORBIDDEN;
        Err(site.page_with(status, "operator/forbidden.html", context! {})?.into())
    }
}

/// Returns the part of an API's list that a page shows.
fn range_of(list_page: &ListPage) -> ListRange {
    ListRange { size: list_page.size_with_next(), start: list_page.start }
}
