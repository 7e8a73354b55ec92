//! `/operator`: shows findings, queues and nodes.

use api::operation::LoadStatus;
use minijinja::context;

use super::OperatorRequest;
use crate::http::site::PageResult;
use crate::http::site::account::template_value;
use crate::runtime::limits::QUEUE_COUNTED_MAX;

pub(super) async fn show(member: OperatorRequest) -> PageResult {
    let status = member.ask(&LoadStatus {}).await?;
    let context = context! { status => template_value(status), counted_max => QUEUE_COUNTED_MAX };
    member.page("operator/overview.html", context)
}
