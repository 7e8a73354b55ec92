//! OAuth2 and OpenID Connect (RFC 6749, 7009, 7636, OpenID Connect Core 1.0). The server parses these requests itself, because the
//! protocol defines their errors.

use std::marker::PhantomData;

use http::HeaderMap;
use model::account::GrantType;
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::access::{Access, UnknownCaller};
use crate::answer::{Answer, Json, describe_json, response_header};
use crate::body::{NoBody, RawBody, RawBodyKind};
use crate::document::remove_null;
use crate::endpoint::Section;
use crate::{endpoint, property, schema};

/// The section of the operations.
pub const SECTION: Section = Section {
    name: "OAuth2",
    description: "Access tokens: OAuth2 with PKCE, and OpenID Connect.",
};

/// Access with a user's access token, which may have any scopes.
const TOKEN: Access = Access { scopes: Some(&[]), api_key: false, ..Access::ROLES };

/// A body that is a form as HTML sends it, `application/x-www-form-urlencoded`.
#[derive(Clone, Copy, Debug)]
pub struct FormBody<T>(PhantomData<T>);

impl<T: JsonSchema> RawBodyKind for FormBody<T> {
    fn describe(generator: &mut SchemaGenerator) -> Value {
        let mut form = T::json_schema(generator).to_value();
        if let Some(form) = form.as_object_mut() {
            // The documentation of the request as a whole belongs to the operation.
            form.remove("description");
            // An absent field is not `null`: a form has no such value.
            let fields = form.get_mut("properties").and_then(Value::as_object_mut);
            let fields = fields.into_iter().flat_map(Map::values_mut);
            fields.filter_map(Value::as_object_mut).for_each(remove_null);
        }
        json!({
            "required": true,
            "description": schema::first_paragraph(&schema::description::<T>()),
            "content": { "application/x-www-form-urlencoded": { "schema": form } },
        })
    }
}

/// The answer of the authorization endpoint, which a browser follows.
#[derive(Clone, Copy, Debug)]
pub struct Redirection;

impl Answer for Redirection {
    type Content = ();

    fn describe(_: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        for (status, description) in [
            ("200", "A page on which the user logs in or consents."),
            ("400", "The request is not valid, and its client cannot be identified."),
            ("413", "The form is too large."),
            ("503", "The service is overloaded."),
        ] {
            let page = json!({
                "description": description,
                "content": { "text/html": { "schema": { "type": "string" } } },
            });
            responses.insert(status.to_owned(), page);
        }
        let redirect = json!({
            "description": "Redirect to the client with the response, or to the next page.",
            "headers": { "Location": response_header("The redirect target.") },
        });
        responses.insert("303".to_owned(), redirect);
    }

    fn parse(_: &HeaderMap, _: &[u8]) -> serde_json::Result<()> {
        Ok(())
    }
}

/// The answer of an endpoint for clients, with the errors of RFC 6749 §5.2.
#[derive(Clone, Copy, Debug)]
pub struct ClientAnswer<T>(PhantomData<T>);

impl<T: JsonSchema + DeserializeOwned> Answer for ClientAnswer<T> {
    type Content = T;

    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let mut success = describe_json::<T>(generator);
        if success["content"]["application/json"]["schema"]["type"] == "null" {
            success = json!({ "description": "The token is revoked." });
        }
        responses.insert("200".to_owned(), success);
        let mut invalid = describe_json::<OAuthError>(generator);
        invalid["description"] = "The request was refused; `error` gives the reason.".into();
        let mut unknown = invalid.clone();
        unknown["description"] = "The client is unknown or its secret is wrong.".into();
        unknown["headers"]["WWW-Authenticate"] = response_header("HTTP Basic.");
        let mut busy = invalid.clone();
        busy["description"] = "Too many logins failed, or the service is overloaded.".into();
        busy["headers"]["Retry-After"] = response_header("The number of seconds to wait.");
        responses.insert("400".to_owned(), invalid);
        responses.insert("401".to_owned(), unknown);
        responses.insert("503".to_owned(), busy);
    }
}

endpoint! {
    /// Request access from a user.
    ///
    /// For browsers: the user logs in and consents, and the browser is redirected to `redirect_uri`. Errors are reported to the
    /// client there, or on a page if the client or the address is not known.
    #[derive(Default)]
    #[schemars(example = json!({
        "response_type": "code", "client_id": "CLIENT_ID", "redirect_uri": "https://client.example/back",
        "scope": "roles", "code_challenge": "CODE_CHALLENGE", "code_challenge_method": "S256",
    }))]
    Authorize: GET "/o/oauth2/auth", "authorize", UnknownCaller, NoBody => Redirection {
        /// The kind of response: a code, or tokens themselves.
        #[serde(default)]
        #[schemars(schema_with = "response_type")]
        pub response_type: Option<String>,
        /// The id of the client.
        pub client_id: Option<String>,
        /// The address that receives the response; must match a registered address exactly.
        pub redirect_uri: Option<String>,
        /// Scopes separated by spaces.
        pub scope: Option<String>,
        /// A text of the client, which is returned with the response.
        pub state: Option<String>,
        /// The part of the address that has the response: the query or the fragment.
        pub response_mode: Option<ResponseMode>,
        /// A text of the client, which is returned in the ID token.
        pub nonce: Option<String>,
        /// The challenge of PKCE (RFC 7636); required of public clients.
        pub code_challenge: Option<String>,
        /// The method of the challenge.
        pub code_challenge_method: Option<ChallengeMethod>,
        /// Prompts that are always shown, separated by spaces: none, login, consent, select_account.
        pub prompt: Option<String>,
        /// The maximum number of seconds since the login.
        pub max_age: Option<u32>,
    }
}

fn response_type(_: &mut SchemaGenerator) -> schemars::Schema {
    let words = ["code", "token", "id_token", "id_token token"];
    schemars::json_schema!({ "type": "string", "enum": words })
}

/// The part of the address that contains the response of the authorization endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ResponseMode {
    Query,
    Fragment,
}

/// The method of PKCE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ChallengeMethod {
    S256,
}

endpoint! {
    /// Request access from a user, by a form.
    ///
    /// The same request as a form; the browser is redirected with GET.
    AuthorizeByForm: POST "/o/oauth2/auth", "authorizeByForm", UnknownCaller, RawBody<FormBody<Authorize>> => Redirection {}

    /// Issue tokens.
    ///
    /// In exchange for a code, a refresh token, or a user name and password. Access tokens are opaque.
    RequestToken: POST "/o/oauth2/token", "requestToken", UnknownCaller: Access::CLIENT, RawBody<FormBody<TokenRequest>> => ClientAnswer<TokenSet> {}
}

/// The request for tokens (RFC 6749).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(example = json!({
    "grant_type": "refresh_token", "client_id": "CLIENT_ID", "client_secret": "CLIENT_SECRET",
    "refresh_token": "REFRESH_TOKEN",
}))]
pub struct TokenRequest {
    #[schemars(schema_with = "property::words::<GrantType>")]
    pub grant_type: String,
    /// Required unless HTTP Basic identifies the client.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// The code, for `authorization_code`.
    pub code: Option<String>,
    /// The same as in the authorization request.
    pub redirect_uri: Option<String>,
    /// The verifier of the PKCE challenge (RFC 7636).
    pub code_verifier: Option<String>,
    /// The name of the user, for `password`.
    pub username: Option<String>,
    pub password: Option<String>,
    /// The token, for `refresh_token`; it can be used once.
    pub refresh_token: Option<String>,
    /// Scopes separated by spaces; must include `roles`.
    pub scope: Option<String>,
}

endpoint! {
    /// Revoke a token.
    ///
    /// Revokes an access token alone, or a refresh token with all tokens of the same authorization (RFC 7009). An unknown token is
    /// not an error.
    RevokeToken: POST "/o/oauth2/revoke", "revokeToken", UnknownCaller: Access::CLIENT, RawBody<FormBody<RevocationRequest>> => ClientAnswer<()> {}
}

/// The token to revoke.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(example = json!({
    "token": "TOKEN", "client_id": "CLIENT_ID", "client_secret": "CLIENT_SECRET",
}))]
pub struct RevocationRequest {
    /// An access token or a refresh token.
    pub token: String,
    pub token_type_hint: Option<String>,
    /// Required unless HTTP Basic identifies the client.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
}

endpoint! {
    /// User info.
    ///
    /// The user's data that the token's scopes expose.
    LoadUserInfo: GET "/o/v2/user", "getUserInfo", UnknownCaller: TOKEN, NoBody => Json<UserInfo> {}

    /// User info, by POST.
    ///
    /// The user's data that the token's scopes expose.
    LoadUserInfoByPost: POST "/o/v2/user", "getUserInfoByPost", UnknownCaller: TOKEN, NoBody => Json<UserInfo> {}

    /// Signing keys of ID tokens.
    ///
    /// A JSON Web Key Set.
    ListKeys: GET "/o/oauth2/keys", "getKeys", UnknownCaller, NoBody => Json<KeySet> {}

    /// OpenID Connect discovery.
    ///
    /// Endpoints and supported features.
    Discover: GET "/.well-known/openid-configuration", "getOpenIdConfiguration", UnknownCaller, NoBody => Json<ServerMetadata> {}

    /// OAuth 2.0 server metadata (RFC 8414).
    ///
    /// Endpoints and supported features.
    DiscoverOAuth: GET "/.well-known/oauth-authorization-server", "getAuthorizationServer", UnknownCaller, NoBody => Json<ServerMetadata> {}

    /// OAuth 2.0 server metadata below /o.
    ///
    /// Endpoints and supported features.
    DiscoverBelowO: GET "/o/.well-known/openid-configuration", "getOpenIdConfigurationBelowO", UnknownCaller, NoBody => Json<ServerMetadata> {}
}

/// The issued tokens.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TokenSet {
    pub access_token: String,
    /// Always `Bearer`.
    pub token_type: String,
    /// The lifetime of the access token in seconds.
    pub expires_in: i64,
    pub refresh_token: Option<String>,
    /// The user's identity, as a signed JWT.
    pub id_token: Option<String>,
    /// Scopes separated by spaces.
    pub scope: Option<String>,
}

/// An error of RFC 6749 §5.2.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OAuthError {
    pub error: String,
    pub error_description: Option<String>,
}

/// The claims of the user that the scopes of the token expose.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UserInfo {
    pub sub: String,
    pub scope: String,
    pub email: Option<String>,
    pub name: Option<String>,
    pub family_name: Option<String>,
    pub given_name: Option<String>,
    pub roles: Option<Vec<String>>,
    pub customer_name: Option<String>,
    pub user_id: Option<i64>,
    pub customer_id: Option<i64>,
    pub department: Option<String>,
}

/// The public keys (RFC 7517).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KeySet {
    pub keys: Vec<Map<String, Value>>,
}

/// The metadata of the authorization server. Further properties are those of RFC 8414 and OpenID Connect Discovery 1.0.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServerMetadata {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub jwks_uri: String,
}
