//! The redirect from the URL of an item to its page on the customer web site.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::respond;
use model::item::has_picture;
use model::{CropSpec, ItemKey};

/// Redirects to the page of `key` below `site`, or to the studio when there is a crop.
pub(super) fn redirect_to_item(site: &str, key: &ItemKey, crop: Option<CropSpec>) -> Response {
    let mut response = respond::empty(StatusCode::FOUND);
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
            let mut parameters = Vec::new();
            for (name, side) in [("w", crop.width()), ("h", crop.height())] {
                if let Some(px) = side {
                    parameters.push(format!("{name}={px}"));
                }
            }
            for (name, px) in [("x", crop.x()), ("y", crop.y())] {
                parameters.push(format!("{name}={px}"));
            }
            format!("{site}/item/{key}/crop?{}", parameters.join("&"))
        }
        Some(_) | None => format!("{site}/item/{key}"),
    }
}
