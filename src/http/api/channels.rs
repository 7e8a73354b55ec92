//! Delivery channels over HTTP: callers manage their own channels (contract deliveries-19).

use api::deliveries::{
    Channel, ChannelTest, ListChannels, RemoveChannel, TestChannel, UpdateChannel,
};
use api::{Done, Json};

use crate::http::api::binding::{ApiRequest, BoundEndpoints, ReadRequest};
use crate::runtime::clock;
use crate::runtime::error::Result;

/// The endpoints of delivery channels.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<ListChannels, _, _>(list_channels)
        .bind::<UpdateChannel, _, _>(update_channel)
        .bind::<RemoveChannel, _, _>(remove_channel)
        .bind::<TestChannel, _, _>(test_channel)
}

async fn list_channels(request: ApiRequest<ListChannels>) -> Result<Json<Vec<Channel>>> {
    Ok(Json(request.app.shared.distribution.deliveries.list_channels(&request.caller).await?))
}

async fn update_channel(request: ApiRequest<UpdateChannel>) -> Result<Json<Channel>> {
    let ReadRequest { app, caller, parameters, body } = request.read().await?;
    let deliveries = &app.shared.distribution.deliveries;
    Ok(Json(deliveries.put_channel(&caller, &parameters.name, body, clock::now()).await?))
}

async fn remove_channel(request: ApiRequest<RemoveChannel>) -> Result<Done> {
    let name = request.parameters()?.name;
    request.app.shared.distribution.deliveries.remove_channel(&request.caller, &name).await?;
    Ok(Done)
}

async fn test_channel(request: ApiRequest<TestChannel>) -> Result<Json<ChannelTest>> {
    let name = request.parameters()?.name;
    let deliveries = &request.app.shared.distribution.deliveries;
    Ok(Json(deliveries.test_channel(&request.caller, &name, clock::now()).await?))
}
