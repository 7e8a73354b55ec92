//! What `http/oauth.rs` serves (Spec §5, RFC 6749, 6750, 7009, OpenID Connect).

use serde_json::{Value, json};

use super::{
    operation::{Access, Answer, Base, Operation, Tag, get, post, query},
    schemas::{described, object, one_of, reference, string},
};
use crate::access::oauth::{Prompt, ResponseType};
use model::account::Grant;

const FORM: &str = "application/x-www-form-urlencoded";

pub(super) fn operations() -> Vec<Operation> {
    let mut all = Vec::from(authorization());
    all.extend([token(), revocation()]);
    all.extend(user());
    all.extend(published());
    all.into_iter().map(|operation| operation.at(Base::Auth)).collect()
}

/// The parameters of an authorization request with what they mean.
fn request() -> [(&'static str, &'static str, Value); 11] {
    let word = |words: &[&str]| one_of(words);
    [
        ("response_type", "What is asked for.", word(&ResponseType::NAMES)),
        ("client_id", "The client.", string()),
        (
            "redirect_uri",
            "Where the answer goes; one of those registered, to the letter.",
            string(),
        ),
        ("scope", "Scopes with spaces between them.", string()),
        ("state", "Comes back with the answer.", string()),
        ("response_mode", "Where in the address the answer stands.", word(&["query", "fragment"])),
        ("nonce", "Comes back in the id token.", string()),
        ("code_challenge", "PKCE (RFC 7636); needed by public clients.", string()),
        ("code_challenge_method", "The one method there is.", word(&["S256"])),
        (
            "prompt",
            "What the user is asked in any case, with spaces between the words.",
            described(string(), &Prompt::ALL.map(Prompt::as_str).join(", ")),
        ),
        (
            "max_age",
            "Seconds since the login at most.",
            json!({ "type": "integer", "minimum": 0 }),
        ),
    ]
}

fn authorization() -> [Operation; 2] {
    let asking = |operation: Operation, description: &str| {
        operation
            .belongs(Tag::OAuth2, Access::Everybody)
            .says("Ask a user for access", description)
            .answers(303, onward("To the client with the answer, or to the next page."))
            .answers(400, Answer::page("The request cannot be answered to its client."))
            .answers(413, Answer::page("The form has more bytes than the service takes."))
            .answers(503, Answer::page("Too much is waiting."))
    };
    let asks = "For a browser: the user logs in and consents, and the browser goes on to \
                `redirect_uri`. What is wrong with the request is told to the client there, or \
                on a page where the client or the address is not known.";
    let page = Answer::page("A page on which the user logs in or consents.");
    let by_get = asking(get("/o/oauth2/auth", "authorize"), asks)
        .takes_all(request().map(|(name, description, schema)| query(name, description, schema)))
        .answers(200, page);
    // Whatever the form says goes on; the request by GET is the one that is checked.
    let properties = request().map(|(name, text, _)| (name, described(string(), text)));
    let example = json!({
        "response_type": "code", "client_id": "CLIENT_ID",
        "redirect_uri": "https://client.example/back", "scope": "roles",
        "code_challenge": "CODE_CHALLENGE", "code_challenge_method": "S256",
    });
    let form = json!({ FORM: { "schema": object(&[], &properties), "example": example } });
    let by_post = asking(
        post("/o/oauth2/auth", "authorizeByForm"),
        "The same as a form; the browser goes on by GET.",
    )
    .body("The request.", form);
    [by_get, by_post]
}

fn onward(description: &str) -> Answer {
    Answer::empty(description).with("Location", "Where the browser goes on.")
}

/// The refusals of an endpoint that speaks RFC 6749.
fn protocol(operation: Operation) -> Operation {
    let error = |description: &str| Answer::json(description, reference("OAuthError"));
    operation
        .belongs(Tag::OAuth2, Access::Client)
        .answers(400, error("The request is refused; `error` says why."))
        .answers(
            401,
            error("The client is unknown, or its secret is wrong.")
                .with("WWW-Authenticate", "HTTP Basic."),
        )
        .answers(
            503,
            error("Too many logins failed, or too much is waiting.")
                .with("Retry-After", "Seconds to wait."),
        )
}

fn token() -> Operation {
    let grants = [Grant::AuthorizationCode, Grant::Password, Grant::RefreshToken];
    let properties = [
        ("grant_type", one_of(&grants.map(Grant::as_str))),
        ("client_id", described(string(), "Unless HTTP Basic names the client.")),
        ("client_secret", string()),
        ("code", described(string(), "For `authorization_code`.")),
        ("redirect_uri", described(string(), "As it was in the authorization request.")),
        ("code_verifier", described(string(), "PKCE (RFC 7636).")),
        ("username", described(string(), "For `password`.")),
        ("password", string()),
        ("refresh_token", described(string(), "For `refresh_token`; it is good once.")),
        ("scope", described(string(), "Scopes with spaces between them, `roles` among them.")),
    ];
    let example = json!({
        "grant_type": Grant::RefreshToken.as_str(), "client_id": "CLIENT_ID",
        "client_secret": "CLIENT_SECRET", "refresh_token": "REFRESH_TOKEN",
    });
    let schema = object(&["grant_type"], &properties);
    let form = json!({ FORM: { "schema": schema, "example": example } });
    let operation = post("/o/oauth2/token", "requestToken")
        .says(
            "A set of tokens",
            "For a code, a refresh token, or a user name with its password. Reading the answer \
             takes nothing but JSON; an access token is opaque.",
        )
        .body("The request (RFC 6749).", form)
        .gives("The tokens.", reference("TokenSet"));
    protocol(operation)
}

fn revocation() -> Operation {
    let properties = [
        ("token", described(string(), "An access token or a refresh token.")),
        ("token_type_hint", string()),
        ("client_id", described(string(), "Unless HTTP Basic names the client.")),
        ("client_secret", string()),
    ];
    let example = json!({
        "token": "TOKEN", "client_id": "CLIENT_ID", "client_secret": "CLIENT_SECRET",
    });
    let form = json!({ FORM: { "schema": object(&["token"], &properties), "example": example } });
    let operation = post("/o/oauth2/revoke", "revokeToken")
        .says(
            "End a token",
            "An access token alone, a refresh token with everything that came of the same \
             authorization (RFC 7009). A token that is not known is no error.",
        )
        .body("The token.", form)
        .answers(200, Answer::empty("The token is good for nothing any more."));
    protocol(operation)
}

fn user() -> [Operation; 2] {
    let telling = |operation: Operation| {
        operation
            .belongs(Tag::OAuth2, Access::Token)
            .says("Whom an access token speaks for", "And what its scopes expose of the user.")
            .gives("The token is good.", reference("UserInfo"))
            .refuses(&[401, 503])
    };
    [telling(get("/o/v2/user", "getUserInfo")), telling(post("/o/v2/user", "getUserInfoByPost"))]
}

fn published() -> [Operation; 4] {
    let discovery = |path, id, summary: &str| {
        get(path, id)
            .says(summary, "Addresses, and what is supported: OpenID Connect Discovery.")
            .gives(
                "The document.",
                object(
                    &["issuer", "authorization_endpoint", "token_endpoint", "jwks_uri"],
                    &["issuer", "authorization_endpoint", "token_endpoint", "jwks_uri"]
                        .map(|name| (name, string())),
                ),
            )
    };
    let keys = get("/o/oauth2/keys", "getKeys")
        .says("The keys that id tokens are signed with", "A JSON Web Key Set.")
        .gives("The public keys.", reference("KeySet"));
    [
        keys,
        discovery(
            "/.well-known/openid-configuration",
            "getOpenIdConfiguration",
            "What libraries need to know",
        ),
        discovery(
            "/.well-known/oauth-authorization-server",
            "getAuthorizationServer",
            "The same for RFC 8414",
        ),
        discovery(
            "/o/.well-known/openid-configuration",
            "getOpenIdConfigurationBelowO",
            "The same below /o",
        ),
    ]
    .map(|operation| operation.belongs(Tag::OAuth2, Access::Everybody))
}
