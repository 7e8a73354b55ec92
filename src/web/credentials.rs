//! Takes the caller's credentials from a request (Spec §5 Authentication).
//!
//! `Authorization: ApiKey <key>` or the query parameter `ak`; the header wins. The key never
//! enters a cache key, a log line or a link.

use std::{borrow::Cow, sync::Arc};

use axum::http::{HeaderMap, Uri, header};

use crate::auth::{Credentials, Keys, Principal};

/// The caller, if its credentials are good.
pub(super) fn principal(keys: &Keys, headers: &HeaderMap, uri: &Uri) -> Option<Arc<Principal>> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        return keys.find(from_header(value.to_str().unwrap_or_default()));
    }
    let key = query_value(uri, "ak")?;
    keys.find(Credentials::ApiKey(&key))
}

fn from_header(value: &str) -> Credentials<'_> {
    match value.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("apikey") => {
            Credentials::ApiKey(key.trim())
        }
        _ => Credentials::Unknown,
    }
}

/// The first value of the query parameter `name`, decoded.
pub(super) fn query_value<'a>(uri: &'a Uri, name: &str) -> Option<Cow<'a, str>> {
    let query = uri.query()?;
    form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value)
}
