//! The order and licence history over HTTP (contract purchases-12, purchases-14).

use api::Json;
use api::orders::{ListOrders, LoadOrder, Order, Orders, UpdateOrder};

use crate::access::orders::view;
use crate::http::api::binding::{ApiRequest, BoundEndpoints, ReadRequest};
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::storage::audit::{self, AuditAction, AuditOutcome, ObjectKind};
use model::account::OrderId;

/// The endpoints of orders.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<ListOrders, _, _>(list_orders)
        .bind::<LoadOrder, _, _>(load_order)
        .bind::<UpdateOrder, _, _>(update_order)
}

async fn list_orders(request: ApiRequest<ListOrders>) -> Result<Json<Orders>> {
    // Orders belong to persons; a service account has none (contract users-4).
    request.caller.require_person()?;
    let ListOrders { size, start, status } = request.parameters()?;
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let orders =
        request.app.shared.access.orders.list(&request.caller, start, size, status).await?;
    let links = request.app.shared.media.links();
    Ok(Json(Orders { orders: orders.iter().map(|order| view::order(order, links)).collect() }))
}

/// Loads one order, for callers whose list contains it.
///
/// Contract purchases-13.
async fn load_order(request: ApiRequest<LoadOrder>) -> Result<Json<Order>> {
    request.caller.require_person()?;
    let id = OrderId(request.parameters()?.id);
    let order = request.app.shared.access.orders.load(&request.caller, id).await?;
    Ok(Json(view::order(&order, request.app.shared.media.links())))
}

async fn update_order(request: ApiRequest<UpdateOrder>) -> Result<Json<Order>> {
    let id = OrderId(request.parameters()?.id);
    // A caller that may not read an order may not commit its organization to a licence either.
    request.caller.require_person().inspect_err(|_| {
        let event = audit::event(AuditAction::OrderReported).with_object(ObjectKind::Order, id);
        audit::record(
            event.with_outcome(AuditOutcome::Refused).with_detail("service_account_unsupported"),
        );
    })?;
    let ReadRequest { app, caller, body, .. } = request.read().await?;
    let order = app.shared.access.orders.report(&caller, id, body, clock::now()).await?;
    Ok(Json(view::order(&order, app.shared.media.links())))
}
