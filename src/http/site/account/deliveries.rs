//! `/account/deliveries`: lists deliveries through channels, with their states.

use minijinja::context;
use serde::Serialize;
use strum::VariantNames;

use super::{ItemLinks, ListPage, MemberRequest, PageResult, item_links, template_value};
use api::deliveries::{DELIVERIES_SIZE_DEFAULT, Delivery, ListDeliveries};
use model::account::DeliveryState;

/// A delivery with links to its item.
#[derive(Serialize)]
struct LinkedDelivery {
    #[serde(flatten)]
    delivery: Delivery,
    places: Option<ItemLinks>,
}

impl LinkedDelivery {
    fn new(delivery: Delivery) -> Self {
        Self { places: item_links(&delivery.item), delivery }
    }
}

pub(super) async fn list(member: MemberRequest) -> PageResult {
    let list_page = ListPage::from_query(&member, "state", DELIVERIES_SIZE_DEFAULT)?;
    let state = member.query.variant::<DeliveryState>("state")?;
    let request =
        ListDeliveries { size: list_page.size_with_next(), start: list_page.start_u32(), state };
    // The request lists one delivery more than the page shows. `paginate` removes it.
    let mut deliveries = member.ask(&request).await?.deliveries;
    let pager = list_page.paginate(&mut deliveries);
    let deliveries: Vec<LinkedDelivery> =
        deliveries.into_iter().map(LinkedDelivery::new).collect();
    let context = context! {
        deliveries => template_value(deliveries),
        states => DeliveryState::VARIANTS.to_vec(),
        state => state.map(DeliveryState::as_str),
        start => list_page.start,
        pager,
    };
    member.page("account/deliveries.html", context)
}
