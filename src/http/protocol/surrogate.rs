//! The headers by which a CDN learns what an answer shows, so that it can forget it by name.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::media::cache_keys::CacheKeys;
use crate::runtime::config::{Config, FieldName};
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::NOT_FOUND_MAX_AGE_S;

/// `Cache-Control` of what is not there for somebody who said who he is.
const MISSING_OWN: &str = "private, no-cache";

/// Which headers carry the keys.
#[derive(Clone, Debug)]
pub struct SurrogateHeaders {
    surrogate_key_header: Option<HeaderName>,
    cache_tag_header: Option<HeaderName>,
    /// `Cache-Control` of what is not there, where shared caches have a time of their own.
    missing_policy: Option<HeaderValue>,
}

impl SurrogateHeaders {
    /// Those of the settings `cdn.…_header`.
    ///
    /// Fails when one of them cannot be a header's name.
    pub fn of(config: &Config) -> Result<Self> {
        let name = |FieldName(name): &FieldName| match name.is_empty() {
            true => Ok(None),
            false => HeaderName::from_bytes(name.as_bytes()).map(Some).map_err(Error::internal),
        };
        let missing = match config.cdn.max_age_s {
            0 => None,
            seconds => {
                let shared = seconds.min(NOT_FOUND_MAX_AGE_S);
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

    /// The same for the answer that something is not there. A shared cache keeps that no longer than
    /// what is there: it may come, or come back.
    ///
    /// Who asks may decide it, as with what is under embargo or another's channel: `is_own` is the
    /// answer to somebody who said who he is, and no shared cache may keep it.
    pub(crate) fn add_keys_to_missing(
        &self,
        headers: &mut HeaderMap,
        keys: &CacheKeys,
        is_own: bool,
    ) {
        let own = is_own.then(|| HeaderValue::from_static(MISSING_OWN));
        if let Some(policy) = own.or_else(|| self.missing_policy.clone()) {
            headers.insert(header::CACHE_CONTROL, policy);
        }
        headers.insert(header::VARY, HeaderValue::from_static("Authorization, Cookie"));
        self.add_keys(headers, keys);
    }

    /// Writes the keys of an answer into its headers.
    ///
    /// What shows more items than there is room for must not be kept by a CDN: it could not be
    /// told of their changes.
    pub(crate) fn add_keys(&self, headers: &mut HeaderMap, keys: &CacheKeys) {
        let fields = [
            (&self.surrogate_key_header, keys.space_separated()),
            (&self.cache_tag_header, keys.comma_separated()),
        ];
        let mut marked = false;
        for (name, text) in fields {
            if let Some(name) = name
                && let Ok(value) = HeaderValue::from_maybe_shared(text.clone())
            {
                headers.insert(name.clone(), value);
                marked = true;
            }
        }
        if marked
            && !keys.is_complete()
            && !headers.get(header::CACHE_CONTROL).is_some_and(forbids_shared_caches)
        {
            let policy = HeaderValue::from_static("private, no-cache");
            headers.insert(header::CACHE_CONTROL, policy);
        }
    }
}

fn forbids_shared_caches(policy: &HeaderValue) -> bool {
    policy.to_str().is_ok_and(|text| text.contains("no-store") || text.contains("private"))
}
