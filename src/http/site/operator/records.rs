//! `/operator/ingest` and `/operator/searches`: list recorded ingest errors and slow searches.

use api::operation::{ListIngestErrors, ListSlowSearches};
use minijinja::{context, value::Serde};
use serde::Serialize;

use super::{OperatorRequest, range_of};
use crate::http::site::PageResult;
use crate::http::site::account::ListPage;
use crate::runtime::limits::OPERATOR_LISTED;

pub(super) async fn ingest_errors(member: OperatorRequest) -> PageResult {
    let list_page = ListPage::from_query(&member, &[], OPERATOR_LISTED)?;
    let found = member.ask(&ListIngestErrors { range: range_of(&list_page) }).await?;
    show(&member, &list_page, found.ingest_errors, "operator/ingest.html")
}

pub(super) async fn slow_searches(member: OperatorRequest) -> PageResult {
    let list_page = ListPage::from_query(&member, &[], OPERATOR_LISTED)?;
    let found = member.ask(&ListSlowSearches { range: range_of(&list_page) }).await?;
    show(&member, &list_page, found.slow_searches, "operator/searches.html")
}

fn show<T: Serialize>(
    member: &OperatorRequest,
    list_page: &ListPage,
    mut records: Vec<T>,
    template: &str,
) -> PageResult {
    let pager = list_page.paginate(&mut records);
    let start = list_page.start;
    member.page(template, context! { records => Serde(records), start, pager })
}
