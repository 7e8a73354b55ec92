//! Addresses of the APIs, and the CORS rules for scripts of any site (decision "Parameters": CORS for every API
//! path).
//!
//! APIs ignore cookies, so any origin may call them with a token or a key. Addresses that a browser visits (login,
//! authorization, pages) are not included.

use axum::{extract::Request, middleware::Next, response::Response};

use crate::http::protocol::cors::{self, CrossOriginRule};

/// Path prefixes of the APIs.
const PREFIXES: [&str; 12] = [
    "/user/v1",
    "/content/v1",
    "/collection/v1",
    "/ingest/v1",
    "/operator/v1",
    "/api/search",
    "/o/oauth2/token",
    "/o/oauth2/revoke",
    "/o/oauth2/keys",
    "/o/v2/user",
    "/o/.well-known",
    "/.well-known",
];
/// Prefix of the APIs that change items, which need more methods and headers than the other APIs.
const INGEST: &str = "/ingest/v1/";
/// Path of resumable uploads, whose protocol defines its own use of OPTIONS.
const UPLOADS: &str = "/ingest/v1/uploads";

/// The rule of the APIs that change items.
const INGEST_RULE: CrossOriginRule = CrossOriginRule {
    methods: "GET, POST, PUT, PATCH, DELETE",
    request_headers: "Authorization, Content-Type, If-Match, Tus-Resumable, Upload-Checksum, \
                      Upload-Length, Upload-Metadata, Upload-Offset",
    response_headers: "Deprecation, ETag, Link, Location, Retry-After, Tus-Checksum-Algorithm, \
                       Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, Upload-Expires, \
                       Upload-Length, Upload-Offset, WWW-Authenticate, X-Request-Id",
    answers_options: false,
};
/// The rule of the other APIs.
const API_RULE: CrossOriginRule = CrossOriginRule {
    methods: "GET, POST, PUT, DELETE",
    request_headers: "Authorization, Content-Type",
    response_headers: "Deprecation, Link, Retry-After, WWW-Authenticate, X-Request-Id",
    answers_options: false,
};

/// Returns whether a path belongs to an API.
pub(super) fn is_api(path: &str) -> bool {
    PREFIXES.iter().any(|prefix| {
        // Whole segments only: `/user/v10` is not below `/user/v1`.
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Returns whether the resource of a path answers OPTIONS itself: the list of uploads, and each upload. Addresses
/// below an upload are not part of the protocol.
fn announces_uploads(path: &str) -> bool {
    let Some(rest) = path.strip_prefix(UPLOADS) else { return false };
    let id = rest.strip_prefix('/');
    rest.is_empty() || id.is_some_and(|id| !id.is_empty() && !id.contains('/'))
}

/// Answers preflights and lets scripts read every response of an API, including errors.
pub(super) async fn allow_scripts(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if !is_api(path) {
        return next.run(request).await;
    }
    let rule = if path.starts_with(INGEST) { INGEST_RULE } else { API_RULE };
    let rule = CrossOriginRule { answers_options: announces_uploads(path), ..rule };
    cors::allow_cross_origin(rule, request, next).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_may_call_the_apis_and_what_lies_below_them() {
        for path in [
            "/user/v1",
            "/user/v1/",
            "/user/v1/profile/a,b",
            "/user/v1/no/such/address",
            "/content/v1/image/search",
            "/collection/v1/collection",
            "/ingest/v1/text/x",
            "/operator/v1/status",
            "/api/search",
            "/api/search/agreements",
            "/o/oauth2/token",
            "/o/oauth2/revoke",
            "/o/oauth2/keys",
            "/o/v2/user",
            "/.well-known/openid-configuration",
            "/o/.well-known/openid-configuration",
        ] {
            assert!(is_api(path), "{path}");
        }
    }

    #[test]
    fn uploads_answer_options_themselves_and_what_lies_below_them_does_not() {
        for path in ["/ingest/v1/uploads", "/ingest/v1/uploads/0193"] {
            assert!(announces_uploads(path), "{path}");
        }
        for path in [
            "/ingest/v1/uploads/",
            "/ingest/v1/uploads/0193/publish",
            "/ingest/v1/uploads/0193/document",
            "/ingest/v1/uploads/0193/preview",
            "/ingest/v1/uploadsome",
            "/ingest/v1/image/x",
        ] {
            assert!(!announces_uploads(path), "{path}");
        }
    }

    #[test]
    fn scripts_may_not_call_login_authorization_and_pages() {
        for path in [
            "/",
            "/user/v10",
            "/user",
            "/User/v1",
            "//user/v1",
            "/x/user/v1",
            "/api/searching",
            "/o/oauth2/auth",
            "/o/oauth2/tokens",
            "/o/login",
            "/item/image/x",
            "/operator/downloads",
            "/media/image/x.jpg",
        ] {
            assert!(!is_api(path), "{path}");
        }
    }
}
