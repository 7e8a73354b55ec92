//! Cache policies: they decide whether browsers, proxies and CDNs may store a response, for how long, and for
//! whom.
//!
//! Handlers name a policy; only this file defines its `Cache-Control` and `Vary`, with the reasons. Compression
//! adds `Accept-Encoding` to `Vary`, and the listener refuses connections with complete responses of its own.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind, Result};

/// Seconds for which a 404 response may be cached.
const NOT_FOUND_MAX_AGE_S: u32 = 60;

/// The permission of caches to store a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CachePolicy {
    /// No cache stores the response: it depends on the caller, changes at any moment, or answers one request only.
    ///
    /// For the APIs, pages of a visitor, redirects, health checks, and errors.
    NoStore,
    /// Every cache stores the response, but revalidates it before each use.
    ///
    /// For pages of anonymous visitors, and for files whose address names a different release: during a rolling
    /// upgrade, the page of one node requests files from a node of a different release, and a file of this release
    /// is better than none.
    Revalidate,
    /// Only the client's cache stores the response, and revalidates it before each use, because the right of
    /// access may have ended.
    ///
    /// For media that need credentials, for errors of callers with credentials, and for responses that a CDN could
    /// not purge.
    PrivateRevalidate,
    /// Only the client's cache uses the response, for five minutes. The time is short because the session may end.
    ///
    /// For a picture of a page that a visitor returns to.
    PrivateMinutes,
    /// Only the client's cache uses the response, for an hour.
    ///
    /// For pictures of an upload, whose bytes never change.
    PrivateHour,
    /// Every cache uses the response for five minutes.
    ///
    /// For documents that change with a release or with the keys of the service.
    PublicMinutes,
    /// Every cache uses the response for ten seconds: it is served while a better response is rendered.
    Interim,
    /// Every cache uses the response for a year: its address changes with its content.
    Immutable,
    /// Every cache stores a 404 for a short time: a missing item may be published at any moment (contract
    /// caching-5).
    Missing,
}

impl CachePolicy {
    /// Returns the policy of the response to a failed request.
    pub(crate) fn for_error(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound => Self::Missing,
            // Without the header a shared cache may store some errors heuristically (RFC 9111 §4.2.2).
            ErrorKind::InvalidArgument
            | ErrorKind::Unauthenticated
            | ErrorKind::Forbidden
            | ErrorKind::Conflict
            | ErrorKind::Stale
            | ErrorKind::Unsupported
            | ErrorKind::TooLarge
            | ErrorKind::Overloaded
            | ErrorKind::Timeout
            | ErrorKind::Unavailable
            | ErrorKind::Internal => Self::NoStore,
        }
    }

    /// Sets `Cache-Control` to this policy.
    pub(crate) fn set(self, headers: &mut HeaderMap) {
        headers.insert(header::CACHE_CONTROL, self.value());
    }

    /// Returns the value of `Cache-Control`.
    fn value(self) -> HeaderValue {
        const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
        match self {
            Self::NoStore => NO_STORE,
            Self::Revalidate => HeaderValue::from_static("no-cache"),
            Self::PrivateRevalidate => HeaderValue::from_static("private, no-cache"),
            Self::PrivateMinutes => HeaderValue::from_static("private, max-age=300"),
            Self::PrivateHour => HeaderValue::from_static("private, max-age=3600"),
            Self::PublicMinutes => HeaderValue::from_static("public, max-age=300"),
            Self::Interim => HeaderValue::from_static("public, max-age=10"),
            Self::Immutable => HeaderValue::from_static("public, max-age=31536000, immutable"),
            Self::Missing => HeaderValue::from_str(&format!("max-age={NOT_FOUND_MAX_AGE_S}"))
                .unwrap_or(NO_STORE),
        }
    }
}

/// Forbids caches to store a response with a token or with claims: RFC 6749 §5.1 requires both headers.
pub(crate) fn forbid_keeping_tokens(headers: &mut HeaderMap) {
    CachePolicy::NoStore.set(headers);
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
}

/// Returns the `Cache-Control` of renditions that everyone may see, from the settings.
pub fn open_renditions(config: &Config) -> String {
    let shared = match config.cdn.max_age_s {
        // Without `s-maxage`, shared caches follow `max-age`; `s-maxage=0` would forbid them to
        // reuse anything (RFC 9111, section 5.2.2.10).
        0 => String::new(),
        seconds => format!(", s-maxage={seconds}"),
    };
    format!(
        "public, max-age={}{shared}, stale-while-revalidate={}",
        config.media.max_age_s, config.media.stale_while_revalidate_s
    )
}

/// Sets the `Cache-Control` of a rendition that everyone may see; `policy` is the result of [`open_renditions`].
pub(crate) fn set_open(headers: &mut HeaderMap, policy: &str) {
    if let Ok(policy) = HeaderValue::from_str(policy) {
        headers.insert(header::CACHE_CONTROL, policy);
    }
}

/// The `Cache-Control` of a 404 to an anonymous request for media, if shared caches have a separate maximum age.
#[derive(Clone, Debug)]
pub(crate) struct MissingMediaPolicy(HeaderValue);

impl MissingMediaPolicy {
    /// Builds the policy for shared caches that store the response of an existing item for `shared_max_age_s`
    /// seconds. `None` for 0: [`CachePolicy::Missing`] then applies to shared caches too.
    pub(crate) fn new(shared_max_age_s: u32) -> Result<Option<Self>> {
        if shared_max_age_s == 0 {
            return Ok(None);
        }
        // No longer than an existing item's response, because the item may be published or restored.
        let shared = shared_max_age_s.min(NOT_FOUND_MAX_AGE_S);
        // Browsers cannot be purged, so their maximum age stays short.
        let policy = format!("max-age={NOT_FOUND_MAX_AGE_S}, s-maxage={shared}");
        Ok(Some(Self(HeaderValue::from_str(&policy).map_err(Error::internal)?)))
    }

    /// Sets `Cache-Control` to this policy.
    pub(crate) fn set(&self, headers: &mut HeaderMap) {
        headers.insert(header::CACHE_CONTROL, self.0.clone());
    }
}

/// Returns whether the `Cache-Control` of a response keeps it out of shared caches.
pub(crate) fn forbids_shared_caches(headers: &HeaderMap) -> bool {
    let policy = headers.get(header::CACHE_CONTROL).and_then(|policy| policy.to_str().ok());
    policy.is_some_and(|text| text.contains("no-store") || text.contains("private"))
}

/// Makes caches distinguish callers: they must not serve the response of one user to a different user.
pub(crate) fn vary_by_caller(headers: &mut HeaderMap) {
    headers.insert(header::VARY, HeaderValue::from_static("Authorization, Cookie"));
}

/// Makes caches distinguish visitors of a page, and languages: they must not serve one language to all visitors,
/// or the anonymous page to users.
pub(crate) fn vary_by_visitor(headers: &mut HeaderMap) {
    headers.insert(header::VARY, HeaderValue::from_static("Cookie, Accept-Language"));
}

/// Makes caches distinguish clients by the formats that they accept, in addition to the existing `Vary`.
pub(crate) fn vary_by_format(headers: &mut HeaderMap) {
    headers.append(header::VARY, HeaderValue::from_static("Accept"));
}
