//! `/account/deliveries`: lists deliveries through channels, with their states.

use minijinja::{context, value::Serde};
use strum::VariantNames;

use super::{ListPage, MemberRequest, PageResult};
use api::deliveries::{DELIVERIES_SIZE_DEFAULT, ListDeliveries};
use model::account::DeliveryState;

pub(super) async fn list(member: MemberRequest) -> PageResult {
    let list_page = ListPage::from_query(&member, &["state"], DELIVERIES_SIZE_DEFAULT)?;
    let state = member.query.variant::<DeliveryState>("state")?;
    let request =
        ListDeliveries { size: list_page.size_with_next(), start: list_page.start_u32(), state };
    // The request lists one delivery more than the page shows. `paginate` removes it.
    let mut deliveries = member.ask(&request).await?.deliveries;
    let pager = list_page.paginate(&mut deliveries);
    let context = context! {
        deliveries => Serde(deliveries),
        states => DeliveryState::VARIANTS.to_vec(),
        state => state.map(DeliveryState::as_str),
        start => list_page.start,
        pager,
    };
    member.page("account/deliveries.html", context)
}
