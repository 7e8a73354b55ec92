//! `/account/deliveries`: lists deliveries through channels, with their states.

use minijinja::context;
use serde_json::Value;
use strum::VariantNames;

use super::{ListPage, MemberRequest, PageResult, elements, item_links, template_value};
use crate::runtime::limits::DELIVERIES_SIZE_DEFAULT;
use model::account::DeliveryState;

pub(super) async fn list(member: MemberRequest) -> PageResult {
    let list_page = ListPage::from_query(&member, "state", DELIVERIES_SIZE_DEFAULT)?;
    let response = member.call(&list_page.call("/user/v1/delivery")).await?;
    // The call lists one delivery more than the page shows. `paginate` removes it.
    let mut deliveries = elements(response, "deliveries");
    let pager = list_page.paginate(&mut deliveries);
    for delivery in &mut deliveries {
        delivery["places"] = item_links(delivery["item"].as_str().unwrap_or_default());
    }
    let context = context! {
        deliveries => template_value(Value::Array(deliveries)),
        states => DeliveryState::VARIANTS.to_vec(),
        state => list_page.choice.1,
        start => list_page.start,
        pager,
    };
    member.page("account/deliveries.html", context)
}
