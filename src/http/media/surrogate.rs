//! Surrogate keys: headers that tell a CDN which items a response shows, so that it can purge them by key.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::http::cache_policy::{self, CachePolicy, MissingMediaPolicy};
use crate::media::cache_keys::CacheKeys;
use crate::runtime::config::{Config, FieldName};
use crate::runtime::error::{Error, Result};

/// Configuration of the headers that carry the keys.
#[derive(Clone, Debug)]
pub struct SurrogateHeaders {
    surrogate_key_header: Option<HeaderName>,
    cache_tag_header: Option<HeaderName>,
    /// The policy of a 404, if shared caches have a separate maximum age.
    missing_policy: Option<MissingMediaPolicy>,
}

impl SurrogateHeaders {
    /// Reads the settings `cdn.…_header`.
    ///
    /// Fails if a setting is not a valid header name.
    pub fn from_config(config: &Config) -> Result<Self> {
        Ok(Self {
            missing_policy: MissingMediaPolicy::new(config.cdn.max_age_s)?,
            surrogate_key_header: header_name(&config.cdn.surrogate_key_header)?,
            cache_tag_header: header_name(&config.cdn.cache_tag_header)?,
        })
    }

    /// Adds the keys to a 404. A shared cache stores it no longer than an existing item's response, because the
    /// item may be published or restored.
    ///
    /// The 404 may depend on the caller, for example under an embargo or for a different user's channel. `is_own`
    /// marks the response to a caller with credentials, which no shared cache may store.
    pub(crate) fn add_keys_to_missing(
        &self,
        headers: &mut HeaderMap,
        keys: &CacheKeys,
        is_own: bool,
    ) {
        // The policy for callers with credentials wins: their 404 may hide an item that other callers may see.
        if is_own {
            CachePolicy::PrivateRevalidate.set(headers);
        } else if let Some(policy) = &self.missing_policy {
            policy.set(headers);
        }
        // A cache that ignored the credentials could serve this
        // 404 to a caller who may see the item.
        cache_policy::vary_by_caller(headers);
        // A 404 is tagged too, so that publishing the item purges it (contract caching-12).
        self.add_keys(headers, keys);
    }

    /// Writes the keys of a response into its headers.
    ///
    /// A response that shows more items than fit must not be cached by a CDN, because a purge of the missing
    /// keys could not reach it.
    pub(crate) fn add_keys(&self, headers: &mut HeaderMap, keys: &CacheKeys) {
        let fields = [
            (&self.surrogate_key_header, &keys.space_separated),
            (&self.cache_tag_header, &keys.comma_separated),
        ];
        // Without a surrogate header no CDN purges by key, so the policy may stay as it is.
        let mut marked = false;
        for (name, text) in fields {
            if let Some(name) = name
                && let Ok(value) = HeaderValue::from_maybe_shared(text.clone())
            {
                headers.insert(name.clone(), value);
                marked = true;
            }
        }
        // A response that no shared cache stores needs no stricter policy.
        if marked && !keys.is_complete && !cache_policy::forbids_shared_caches(headers) {
            CachePolicy::PrivateRevalidate.set(headers);
        }
    }
}

/// Reads the name of a header; `None` if it is empty, for CDNs that do not purge by this header.
fn header_name(setting: &FieldName) -> Result<Option<HeaderName>> {
    let FieldName(name) = setting;
    if name.is_empty() {
        return Ok(None);
    }
    HeaderName::from_bytes(name.as_bytes()).map(Some).map_err(Error::internal)
}
