//! Surrogate keys: headers that tell a CDN which items a response shows, so that it can purge them by key.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::media::cache_keys::CacheKeys;
use crate::runtime::config::{Config, FieldName};
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::NOT_FOUND_MAX_AGE_S;

/// `Cache-Control` of a 404 to a caller with credentials.
const MISSING_OWN: &str = "private, no-cache";

/// Configuration of the headers that carry the keys.
#[derive(Clone, Debug)]
pub struct SurrogateHeaders {
    surrogate_key_header: Option<HeaderName>,
    cache_tag_header: Option<HeaderName>,
    /// `Cache-Control` of a 404, if shared caches have a separate maximum age.
    missing_policy: Option<HeaderValue>,
}

impl SurrogateHeaders {
    /// Reads the settings `cdn.…_header`.
    ///
    /// Fails when one of them is not a valid header name.
    pub fn of(config: &Config) -> Result<Self> {
        let name = |FieldName(name): &FieldName| match name.is_empty() {
            // An empty name turns the header off, for CDNs that purge in another way.
            true => Ok(None),
            false => HeaderName::from_bytes(name.as_bytes()).map(Some).map_err(Error::internal),
        };
        let missing = match config.cdn.max_age_s {
            // Without a separate age, the general `Cache-Control` of a
            // 404 applies to shared caches too.
            0 => None,
            seconds => {
                let shared = seconds.min(NOT_FOUND_MAX_AGE_S);
                // Browsers cannot be purged, so their maximum age stays the short one.
                let policy = format!("max-age={NOT_FOUND_MAX_AGE_S}, s-maxage={shared}");
                Some(HeaderValue::from_str(&policy).map_err(Error::internal)?)
            }
        };
        Ok(Self {
            missing_policy: missing,
            surrogate_key_header: name(&config.cdn.surrogate_key_header)?,
            cache_tag_header: name(&config.cdn.cache_tag_header)?,
        })
    }

    /// Adds the keys to a 404. A shared cache keeps it no longer than an existing item's response, since the
    /// item may be published or restored.
    ///
    /// The result may depend on the caller, as under an embargo or for another user's channel: `is_own` marks
    /// the response to a caller with credentials, which no shared cache may store.
    pub(crate) fn add_keys_to_missing(
        &self,
        headers: &mut HeaderMap,
        keys: &CacheKeys,
        is_own: bool,
    ) {
        // The policy for callers with credentials wins: their 404 may hide what others may see.
        let own = is_own.then(|| HeaderValue::from_static(MISSING_OWN));
        if let Some(policy) = own.or_else(|| self.missing_policy.clone()) {
            headers.insert(header::CACHE_CONTROL, policy);
        }
        // A cache that ignored the credentials could serve this
        // 404 to a caller who may see the item.
        headers.insert(header::VARY, HeaderValue::from_static("Authorization, Cookie"));
        // A 404 is tagged too, so that publishing the item purges it (contract caching-12).
        self.add_keys(headers, keys);
    }

    /// Writes the keys of a response into its headers.
    ///
    /// A response that shows more items than fit must not be cached by a CDN, because a purge of the missing
    /// keys could not reach it.
    pub(crate) fn add_keys(&self, headers: &mut HeaderMap, keys: &CacheKeys) {
        let fields = [
            (&self.surrogate_key_header, keys.space_separated()),
            (&self.cache_tag_header, keys.comma_separated()),
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
        if marked
            && !keys.is_complete()
            && !headers.get(header::CACHE_CONTROL).is_some_and(forbids_shared_caches)
        {
            let policy = HeaderValue::from_static("private, no-cache");
            headers.insert(header::CACHE_CONTROL, policy);
        }
    }
}

/// Whether a `Cache-Control` keeps a response out of shared caches.
pub(crate) fn forbids_shared_caches(policy: &HeaderValue) -> bool {
    policy.to_str().is_ok_and(|text| text.contains("no-store") || text.contains("private"))
}
