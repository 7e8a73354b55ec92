//! Decides which responses may be compressed, by their routes.
//!
//! An attacker who can make a victim's browser send requests with chosen text, and can observe the length of the
//! responses, can guess a secret in a compressed response character by character: a guess that repeats the secret
//! shortens the response (BREACH). So no response with a key, a token or the CSRF token of a form is compressed,
//! whether it repeats text of the request or not. A browser sends cookies by itself, so pages are compressed only
//! for anonymous visitors, whose pages hold no secret. A browser does not send keys and tokens by itself, so no
//! other site can request an API's responses on behalf of their holder.

use axum::extract::{MatchedPath, Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;

use crate::http::protocol::compression::compress_response;
use crate::http::{AppState, session};

/// The rule by which the responses of a route are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompressionRule {
    /// The responses hold no secret.
    Coded,
    /// Only responses to requests without a session are compressed: other responses hold the CSRF token of forms.
    CodedForAnonymous,
    /// The responses hold a secret, or the rule has a comment with a different reason.
    Plain,
}

use CompressionRule::{Coded, CodedForAnonymous, Plain};

/// The rules by prefix of the route; the longest matching prefix wins. A route without a rule is not
/// compressed, and the test below fails for it.
const RULES: [(&str, CompressionRule); 41] = [
    ("/content/v1/", Coded),
    // A client that has all but the last byte of the response must not be able to use it, because it counts as
    // received only when complete. Compression would move that boundary.
    ("/content/v1/{mediaType}/notification/{id}/stream", Plain),
    ("/api/search", Coded),
    ("/collection/v1/", Coded),
    ("/ingest/v1/", Coded),
    ("/operator/v1/", Coded),
    ("/user/v1/agreement", Coded),
    ("/user/v1/user", Coded),
    ("/user/v1/order", Coded),
    ("/user/v1/delivery", Coded),
    ("/user/v1/organization", Coded),
    ("/user/v1/session", Coded),
    ("/user/v1/application", Coded),
    // The password link for a user's administrator is shown only once.
    ("/user/v1/organization/user/{id}/password-link", Plain),
    ("/user/v1/profile", Coded),
    // Keys are shown once; device tokens authorize pushes; channels hold passwords.
    ("/user/v1/key", Plain),
    ("/user/v1/device", Plain),
    ("/user/v1/channel", Plain),
    // Tokens, authorization codes and login forms.
    ("/o/", Plain),
    ("/.well-known/", Coded),
    ("/openapi.json", Coded),
    ("/assets/", Coded),
    ("/favicon.ico", Coded),
    ("/metrics", Coded),
    ("/health/", Coded),
    // Pages behind a login, and pages that a mailed token opens.
    ("/account", Plain),
    ("/operator", Plain),
    ("/collections", Plain),
    ("/notifications", Plain),
    ("/desk", Plain),
    ("/language", Plain),
    ("/scheme", Plain),
    ("/selection", Plain),
    ("/density", Plain),
    ("/unsubscribe/", Plain),
    ("/mail/", Plain),
    // Public pages.
    ("/", CodedForAnonymous),
    ("/item/", CodedForAnonymous),
    ("/docs", CodedForAnonymous),
    // Pictures are compressed already, and the handler of documents compresses its own responses.
    ("/media/", Plain),
    ("/user/v1/", Plain),
];

/// Handles the request, and compresses its response if the operator and the rule of its route allow that.
///
/// Wraps every route except media: a cached rendition should pass through as few layers as possible. Documents
/// below `/media/` are compressed by their handler.
pub(super) async fn compress_allowed(
    State(app): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let is_allowed =
        route.is_some_and(|route| may_compress(&app, route.as_str(), request.headers()));
    if !is_allowed || !app.shared.edge.live_settings.get().compression {
        return next.run(request).await;
    }
    compress_response(&app.shared.edge.compressor, request, next).await
}

/// Returns whether the response of a route to a request with these headers may be compressed.
fn may_compress(app: &AppState, route: &str, headers: &HeaderMap) -> bool {
    match find_rule(route) {
        Some(Coded) => true,
        Some(CodedForAnonymous) => !session::has_session_cookie(app, headers),
        Some(Plain) | None => false,
    }
}

fn find_rule(route: &str) -> Option<CompressionRule> {
    let matching = RULES.into_iter().filter(|(prefix, _)| is_below(route, prefix));
    matching.max_by_key(|(prefix, _)| prefix.len()).map(|(_, rule)| rule)
}

fn is_below(route: &str, prefix: &str) -> bool {
    // `/` is a prefix of every route but means only the first page.
    if prefix == "/" { route == "/" } else { route.starts_with(prefix) }
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
            "/content/v1/{mediaType}/notification/{id}/stream",
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
}
