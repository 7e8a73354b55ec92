//! Which answers may be coded.
//!
//! Whoever can have a victim's browser send requests with text of his own, and sees how long the
//! answers are, guesses a secret in a compressed answer letter by letter: the guess that repeats the
//! secret makes it shorter (BREACH). So no answer is coded that holds a key, a token or the token of a form,
//! whether it repeats text of the request or not. A browser sends cookies by itself, so pages are coded
//! for strangers alone, on whose pages there is no secret; it does not send keys and tokens by itself,
//! so answers of APIs to their holders cannot be asked for by others.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::http::AppState;
use crate::http::site::session;

/// Whether the answers of an address may be coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompressionRule {
    /// Nothing secret is in them.
    Coded,
    /// Only those to somebody who shows no session: others carry the token of forms.
    CodedForAnonymous,
    /// There is something secret in them, or a reason of its own against it.
    Plain,
}

use CompressionRule::{Coded, CodedForAnonymous, Plain};

/// The rules, by the beginning of the route; the longest that fits counts. An address that is not here is
/// plain, and the test below asks for its line.
const RULES: [(&str, CompressionRule); 36] = [
    ("/content/v1/", Coded),
    // All but the last byte of its answer must be worthless: a reader who has that has the items. Of
    // a coded text more is missing than its end, or less.
    ("/content/v1/{media_type}/notification/{id}/stream", Plain),
    ("/api/search", Coded),
    ("/collection/v1/", Coded),
    ("/ingest/v1/", Coded),
    ("/user/v1/agreement", Coded),
    ("/user/v1/user", Coded),
    ("/user/v1/order", Coded),
    ("/user/v1/delivery", Coded),
    ("/user/v1/organization", Coded),
    ("/user/v1/session", Coded),
    ("/user/v1/application", Coded),
    // The link that a user's administrator passes on is told once.
    ("/user/v1/organization/user/{id}/password-link", Plain),
    ("/user/v1/profile", Coded),
    // Keys are shown once; tokens of devices let push to them; channels have passwords.
    ("/user/v1/key", Plain),
    ("/user/v1/device", Plain),
    ("/user/v1/channel", Plain),
    // Tokens, codes, forms of logins.
    ("/o/", Plain),
    ("/.well-known/", Coded),
    ("/openapi.json", Coded),
    ("/assets/", Coded),
    ("/favicon.ico", Coded),
    ("/metrics", Coded),
    ("/health/", Coded),
    // Pages of those who are logged in, and of those whom a mail brought with a token.
    ("/account", Plain),
    ("/collections", Plain),
    ("/notifications", Plain),
    ("/code", Plain),
    ("/language", Plain),
    ("/unsubscribe/", Plain),
    ("/mail/", Plain),
    // Pages for everybody.
    ("/", CodedForAnonymous),
    ("/item/", CodedForAnonymous),
    ("/docs", CodedForAnonymous),
    // Documents decide for themselves, pictures need no coding.
    ("/media/", Plain),
    ("/user/v1/", Plain),
];

/// Whether the answer of a route to a request with these headers may be coded.
pub(super) fn is_allowed(app: &AppState, route: &str, headers: &HeaderMap) -> bool {
    match find_rule(route) {
        Some(Coded) => true,
        Some(CodedForAnonymous) => !session::has_session_cookie(app, headers),
        Some(Plain) | None => false,
    }
}

fn find_rule(route: &str) -> Option<CompressionRule> {
    // `/` begins every route and stands for the first page alone.
    let fits = |prefix: &str| if prefix == "/" { route == "/" } else { route.starts_with(prefix) };
    let fitting = RULES.into_iter().filter(|(prefix, _)| fits(prefix));
    fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, rule)| rule)
}

/// Whether an answer with these headers is text, is not coded yet and brings no cookie.
pub(super) fn is_compressible(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kinds = [&b"application/json"[..], b"text/", b"image/svg+xml"];
    kinds.iter().any(|known| kind.starts_with(known))
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !headers.contains_key(header::SET_COOKIE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::openapi;

    #[test]
    fn every_address_has_a_rule() {
        for route in openapi::tests::paths() {
            assert!(
                find_rule(&route).is_some(),
                "{route}: may its answers be compressed? see RULES"
            );
        }
    }

    #[test]
    fn answers_with_secrets_are_never_coded() {
        for route in [
            "/o/oauth2/token",
            "/o/login",
            "/o/consent",
            "/o/password/{token}",
            "/user/v1/organization/user/{id}/password-link",
            "/user/v1/key",
            "/user/v1/key/{id}",
            "/user/v1/channel/{name}",
            "/user/v1/device/{token}",
            "/account/keys",
            "/unsubscribe/{token}",
            "/content/v1/{media_type}/notification/{id}/stream",
        ] {
            assert_eq!(find_rule(route), Some(Plain), "{route}");
        }
        assert_eq!(find_rule("/nothing/that/there/is"), None);
        for route in
            ["/", "/item/{media_type}/{id}", "/docs/try/{operation}", "/docs/guide/{*page}"]
        {
            assert_eq!(find_rule(route), Some(CodedForAnonymous), "{route}");
        }
        for route in ["/content/v1/{media_type}/search", "/collection/v1/collection/{id}"] {
            assert_eq!(find_rule(route), Some(Coded), "{route}");
        }
    }

    #[test]
    fn text_is_coded_and_pictures_archives_and_what_brings_cookies_are_not() {
        let of = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            headers
        };
        for kind in [
            "application/json",
            "text/html; charset=utf-8",
            "text/css; charset=utf-8",
            "text/javascript; charset=utf-8",
            "text/xml",
            "text/plain; charset=utf-8",
            "image/svg+xml",
        ] {
            assert!(is_compressible(&of(kind)), "{kind}");
        }
        for kind in [
            "image/jpeg",
            "image/webp",
            "video/mp4",
            "application/zip",
            "application/pdf",
            "font/woff2",
            "multipart/byteranges; boundary=x",
        ] {
            assert!(!is_compressible(&of(kind)), "{kind}");
        }
        for (name, value) in [(header::SET_COOKIE, "a=b"), (header::CONTENT_ENCODING, "br")] {
            let mut headers = of("text/html");
            headers.insert(name, HeaderValue::from_static(value));
            assert!(!is_compressible(&headers), "{value}");
        }
    }
}
