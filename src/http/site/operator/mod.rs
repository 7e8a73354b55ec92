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

use std::ops::Deref;

use api::operation::ListRange;
use axum::{
    Router,
    extract::{FromRequest, FromRequestParts, Request},
    http::{StatusCode, request::Parts},
    routing::get,
};
use minijinja::context;

use super::account::ListPage;
use super::{AppState, MemberForm, MemberRequest, PageError, SiteRequest};

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

/// A page request of a visitor with the operator role. Other visitors get a page that explains how to get the
/// role.
struct OperatorRequest(MemberRequest);

impl Deref for OperatorRequest {
    type Target = MemberRequest;

    fn deref(&self) -> &MemberRequest {
        &self.0
    }
}

impl FromRequestParts<AppState> for OperatorRequest {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, PageError> {
        let member = MemberRequest::from_request_parts(parts, app).await?;
        if member.visitor.has_operator_role() { Ok(Self(member)) } else { Err(forbidden(&member)) }
    }
}

/// A form sent by a visitor with the operator role.
struct OperatorForm(MemberForm);

impl Deref for OperatorForm {
    type Target = MemberForm;

    fn deref(&self) -> &MemberForm {
        &self.0
    }
}

impl FromRequest<AppState> for OperatorForm {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, PageError> {
        let posted = MemberForm::from_request(request, app).await?;
        if posted.visitor.has_operator_role() { Ok(Self(posted)) } else { Err(forbidden(&posted)) }
    }
}

/// Returns the part of an API's list that a page shows.
fn range_of(list_page: &ListPage<'_>) -> ListRange {
    ListRange { size: list_page.size_with_next(), start: list_page.start }
}

fn forbidden(site: &SiteRequest) -> PageError {
    let page = site.page_with(StatusCode::FORBIDDEN, "operator/forbidden.html", context! {});
    // `PageError` can carry a complete page, so the handler returns this one.
    page.map_or_else(|problem| problem, PageError::from)
}
