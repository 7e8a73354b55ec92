//! CORS: lets scripts of any site call the APIs (decision "Parameters": CORS for every API path).
//!
//! APIs ignore cookies, so any origin may call them with a token or a key. Addresses that a browser visits
//! (login, authorization, pages) are left out.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::Response,
};

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
const METHODS: &str = "GET, HEAD, POST, PUT, DELETE, OPTIONS";
/// Prefix of the APIs that change items, which need more methods and headers than the others.
const INGEST: &str = "/ingest/v1/";
/// Path of resumable uploads, whose protocol has its own use of OPTIONS.
const UPLOADS: &str = "/ingest/v1/uploads";

/// Whether a path belongs to an API.
pub(crate) fn is_api(path: &str) -> bool {
    PREFIXES.iter().any(|prefix| {
        // Whole segments only: `/user/v10` is not below `/user/v1`.
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether the resource of a path answers OPTIONS itself: the list of uploads, and each upload. What lies below
/// an upload is no part of its protocol.
fn announces_uploads(path: &str) -> bool {
    let Some(rest) = path.strip_prefix(UPLOADS) else { return false };
    let id = rest.strip_prefix('/');
    rest.is_empty() || id.is_some_and(|id| !id.is_empty() && !id.contains('/'))
}

/// Answers preflights and lets scripts read every response of an API, including errors.
pub(crate) async fn allow_cross_origin(request: Request, next: Next) -> Response {
    if !is_api(request.uri().path()) {
        return next.run(request).await;
    }
    let is_ingest = request.uri().path().starts_with(INGEST);
    let is_preflight = request.method() == Method::OPTIONS;
    // Every other preflight ends here.
    let mut response = match is_preflight && !announces_uploads(request.uri().path()) {
        true => no_content(),
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    allow_origins(headers, is_ingest);
    if is_preflight {
        allow_methods(headers, is_ingest);
    }
    response
}

fn no_content() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Answers a preflight: which methods and headers a script may send.
fn allow_methods(headers: &mut HeaderMap, is_ingest: bool) {
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::ALLOW, METHODS);
    match is_ingest {
        true => {
            set(header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE");
            set(
                header::ACCESS_CONTROL_ALLOW_HEADERS,
                "Authorization, Content-Type, If-Match, Tus-Resumable, Upload-Checksum, \
                 Upload-Length, Upload-Metadata, Upload-Offset",
            );
        }
        false => {
            set(header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, DELETE");
            set(header::ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Content-Type");
        }
    }
    // Spares scripts a preflight before each call; browsers cap the time themselves.
    set(header::ACCESS_CONTROL_MAX_AGE, "86400");
}

fn allow_origins(headers: &mut HeaderMap, is_ingest: bool) {
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    // Safe for any origin: APIs accept no cookie, and with `*` a browser shows no response to a
    // script that sends one.
    set(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    let exposed = match is_ingest {
        true => {
            "Deprecation, ETag, Link, Location, Retry-After, Tus-Checksum-Algorithm, \
             Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, Upload-Expires, \
             Upload-Length, Upload-Offset, WWW-Authenticate, X-Request-Id"
        }
        false => "Deprecation, Link, Retry-After, WWW-Authenticate, X-Request-Id",
    };
    set(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
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
