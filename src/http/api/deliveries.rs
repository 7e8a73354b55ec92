//! Deliveries over HTTP, below `/user/v1/delivery`. An item's URL with `channel` triggers a delivery
//! (`http/media/deliveries.rs`).
//!
//! An administrator lists the deliveries of the organization, as with orders (contract deliveries-13). Service accounts may
//! call these operations too, because they trigger deliveries.

use api::Json;
use api::deliveries::{Deliveries, Delivery, ListDeliveries, LoadDelivery, RepeatDelivery};
use axum::response::Response;

use crate::distribution::delivery::view;
use crate::http::api::binding::{ApiRequest, BoundEndpoints, ReadRequest};
use crate::http::media::deliveries::queued_response;
use crate::runtime::clock;
use crate::runtime::error::Result;

/// The endpoints of deliveries.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<ListDeliveries, _, _>(list_deliveries)
        .bind::<LoadDelivery, _, _>(load_delivery)
        .bind_response::<RepeatDelivery, _, _>(repeat_delivery)
}

async fn list_deliveries(request: ApiRequest<ListDeliveries>) -> Result<Json<Deliveries>> {
    let ListDeliveries { size, start, state } = request.parameters()?;
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let deliveries = &request.app.shared.distribution.deliveries;
    let found = deliveries.list(&request.caller, state, start, size).await?;
    let links = request.app.shared.media.links();
    let deliveries = found.iter().map(|delivery| view::delivery(delivery, links)).collect();
    Ok(Json(Deliveries { deliveries }))
}

async fn load_delivery(request: ApiRequest<LoadDelivery>) -> Result<Json<Delivery>> {
    let id = request.parameters()?.id;
    let found = request.app.shared.distribution.deliveries.find(&request.caller, id).await?;
    Ok(Json(view::delivery(&found, request.app.shared.media.links())))
}

async fn repeat_delivery(request: ApiRequest<RepeatDelivery>) -> Result<Response> {
    // The body has nothing but the confirmation.
    let ReadRequest { app, caller, parameters, .. } = request.read().await?;
    let deliveries = &app.shared.distribution.deliveries;
    let (found, queued) = deliveries.repeat(&caller, parameters.id, clock::now()).await?;
    queued_response(&app, &found, queued)
}
