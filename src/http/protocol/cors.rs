//! CORS: lets scripts of any site call an address.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::http::protocol::respond;

/// Value of `Allow` in the response to a preflight.
const METHODS: &str = "GET, HEAD, POST, PUT, DELETE, OPTIONS";

/// The calls that scripts of any site may send to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CrossOriginRule {
    /// Methods that a script may send.
    pub(crate) methods: &'static str,
    /// Headers that a script may send.
    pub(crate) request_headers: &'static str,
    /// Headers of the response that a script may read.
    pub(crate) response_headers: &'static str,
    /// True if the handler of the address answers OPTIONS itself.
    pub(crate) answers_options: bool,
}

/// Answers preflights, and lets scripts read every response to the request, including errors.
///
/// Only for addresses that accept no cookie: with `*`, a browser hides the response from a script that sends a
/// cookie.
pub(crate) async fn allow_cross_origin(
    rule: CrossOriginRule,
    request: Request,
    next: Next,
) -> Response {
    let is_preflight = request.method() == Method::OPTIONS;
    // A preflight ends here, unless the handler answers it.
    let mut response = if is_preflight && !rule.answers_options {
        respond::empty(StatusCode::NO_CONTENT)
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    set(headers, header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    set(headers, header::ACCESS_CONTROL_EXPOSE_HEADERS, rule.response_headers);
    if is_preflight {
        allow_methods(headers, rule);
    }
    response
}

/// Answers a preflight with the methods and headers that a script may send.
fn allow_methods(headers: &mut HeaderMap, rule: CrossOriginRule) {
    set(headers, header::ALLOW, METHODS);
    set(headers, header::ACCESS_CONTROL_ALLOW_METHODS, rule.methods);
    set(headers, header::ACCESS_CONTROL_ALLOW_HEADERS, rule.request_headers);
    // Saves scripts a preflight before each call; browsers cap the time themselves.
    set(headers, header::ACCESS_CONTROL_MAX_AGE, "86400");
}

/// Sets a header to a fixed value.
pub(crate) fn set(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.insert(name, HeaderValue::from_static(value));
}
