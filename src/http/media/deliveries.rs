//! Deliveries that an item's URL with `channel` triggers (contract deliveries-1).

use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;

use crate::distribution::delivery::{DeliveryRequest, view};
use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::respond;
use crate::http::{AppState, credentials};
use crate::media::MediaCaller;
use crate::runtime::error::{Error, Result};
use model::account::{ChannelId, Delivery};
use model::{CropSpec, ItemKey};

/// Parses the channel in the query, if there is one.
pub(super) fn channel_parameter(uri: &Uri) -> Result<Option<ChannelId>> {
    let Some(text) = credentials::query_value(uri, "channel") else { return Ok(None) };
    match text.parse::<ChannelId>() {
        Ok(channel) => Ok(Some(channel)),
        Err(error) => Err(Error::invalid("query", "channel", "pattern", error.to_string())),
    }
}

/// Responds to an item's URL with `channel`: 202 with the delivery and its address.
///
/// `HEAD` triggers and buys nothing. It responds with the status of the GET (contract deliveries-3), and with a
/// `Location` if the delivery exists already.
pub(super) async fn trigger(
    app: &AppState,
    method: &Method,
    item: &ItemKey,
    crop: Option<CropSpec>,
    channel: &ChannelId,
    caller: MediaCaller<'_>,
) -> Result<Response> {
    let delivery_request = DeliveryRequest { caller, item, crop, channel };
    let deliveries = &app.shared.distribution.deliveries;
    if *method == Method::HEAD {
        let (found, would_queue) = deliveries.dry_run(delivery_request).await?;
        return Ok(delivery_response(found.as_ref(), would_queue, Body::empty()));
    }
    let (found, queued) = deliveries.trigger(delivery_request).await?;
    queued_response(app, &found, queued)
}

/// Responds to a request that queues a delivery: 202 with the delivery and its address, 200 if nothing had to
/// be queued.
pub(crate) fn queued_response(app: &AppState, found: &Delivery, queued: bool) -> Result<Response> {
    let view = view::triggered(found, app.shared.media.links());
    let body = serde_json::to_vec(&view).map_err(Error::internal)?;
    Ok(delivery_response(Some(found), queued, body.into()))
}

fn delivery_response(found: Option<&Delivery>, queued: bool, body: Body) -> Response {
    let status = if queued { StatusCode::ACCEPTED } else { StatusCode::OK };
    let mut response = respond::typed(status, HeaderValue::from_static("application/json"), body);
    if let Some(found) = found
        && let Ok(address) = HeaderValue::from_str(&format!("/user/v1/delivery/{}", found.id))
    {
        response.headers_mut().insert(header::LOCATION, address);
    }
    CachePolicy::NoStore.set(response.headers_mut());
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::protocol::request;

    #[test]
    fn a_channel_is_read_from_the_query() {
        let read = |text: &str| channel_parameter(&text.parse().unwrap());
        assert_eq!(read("/x").unwrap(), None);
        assert_eq!(read("/x?channel=").unwrap(), None);
        let expected = "user:a@b.example:Min kanal".parse().unwrap();
        let found = read("/x?agr=1&channel=user%3Aa%40b.example%3AMin+kanal").unwrap();
        assert_eq!(found, Some(expected));
        for text in ["/x?channel=desk", "/x?channel=user:a:%0A"] {
            let problems = request::tests::problems(&read(text).unwrap_err());
            assert_eq!(problems, [("pattern".to_owned(), "channel".to_owned())], "{text}");
        }
    }
}
