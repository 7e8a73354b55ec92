//! `/operator`: shows findings, queues and nodes.

use api::operation::LoadStatus;
use minijinja::{context, value::Serde};

use super::OperatorRequest;
use crate::http::site::PageResult;
use crate::runtime::limits::QUEUE_COUNTED_MAX;

pub(super) async fn show(member: OperatorRequest) -> PageResult {
    let status = member.ask(&LoadStatus {}).await?;
    let context = context! { status => Serde(status), counted_max => QUEUE_COUNTED_MAX };
    member.page("operator/overview.html", context)
}
