//! The redirect from the URL of an item to its page on the customer web site.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};

use crate::http::cache_policy::CachePolicy;
use model::item::has_picture;
use model::{CropSpec, ItemKey};

/// Redirects to the page of `key` below `site`, or to the studio when there is a crop.
pub(super) fn redirect_to_item(site: &str, key: &ItemKey, crop: Option<CropSpec>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let headers = response.headers_mut();
    if let Ok(location) = HeaderValue::from_str(&page_url(site, key, crop)) {
        headers.insert(header::LOCATION, location);
    }
    CachePolicy::NoStore.set(headers);
    response
}

fn page_url(site: &str, key: &ItemKey, crop: Option<CropSpec>) -> String {
    match crop {
        Some(crop) if has_picture(key.media_type) => {
            let sides = [("w", crop.width()), ("h", crop.height())];
            let corner = [("x", Some(crop.x())), ("y", Some(crop.y()))];
            let parameter = |(name, px): (&str, Option<u32>)| Some(format!("{name}={}", px?));
            let parameters: Vec<_> =
                sides.into_iter().chain(corner).filter_map(parameter).collect();
            let parameters = parameters.join("&");
            format!("{site}/item/{key}/crop?{parameters}")
        }
        Some(_) | None => format!("{site}/item/{key}"),
    }
}
