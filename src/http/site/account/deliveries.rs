//! `/account/deliveries`: deliveries through channels, and their states.

use minijinja::context;
use serde_json::Value;

use super::{ListPage, MemberRequest, PageResult, elements, item_links, template_value};
use crate::runtime::limits::DELIVERIES_SIZE_DEFAULT;
use model::account::DeliveryState;

pub(super) async fn list(member: MemberRequest) -> PageResult {
    let part = ListPage::of(&member, "state", DELIVERIES_SIZE_DEFAULT)?;
    let answer = member.call(&part.call("/user/v1/delivery")).await?;
    let mut deliveries = elements(answer, "deliveries");
    let pager = part.paginate(&mut deliveries);
    for delivery in &mut deliveries {
        delivery["places"] = item_links(delivery["item"].as_str().unwrap_or_default());
    }
    let context = context! {
        deliveries => template_value(Value::Array(deliveries)),
        states => DeliveryState::ALL.map(DeliveryState::as_str).to_vec(),
        state => part.choice.1,
        start => part.start,
        pager,
    };
    member.page("account/deliveries.html", context)
}
