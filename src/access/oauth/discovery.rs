//! Metadata of the provider (OpenID Connect Discovery §3, RFC 8414, RFC 9207).

use serde_json::{Value, json};
use strum::VariantNames;

use super::claims;
use super::request::{Prompt, ResponseType};
use model::account::{GrantType, Scope};

/// Returns the document at `/.well-known/openid-configuration`.
pub(super) fn document(issuer: &str) -> Value {
    // All grants of the provider; the operator enables them per client (contract login-5).
    let grants = [
        GrantType::AuthorizationCode,
        GrantType::Implicit,
        GrantType::Password,
        GrantType::RefreshToken,
    ];
    let methods = ["client_secret_basic", "client_secret_post", "none"];
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/o/oauth2/auth"),
        "token_endpoint": format!("{issuer}/o/oauth2/token"),
        "revocation_endpoint": format!("{issuer}/o/oauth2/revoke"),
        "jwks_uri": format!("{issuer}/o/oauth2/keys"),
        "userinfo_endpoint": format!("{issuer}/o/v2/user"),
        "response_types_supported": ResponseType::VARIANTS,
        "response_modes_supported": ["query", "fragment"],
        "grant_types_supported": grants.map(GrantType::as_str),
        "scopes_supported": Scope::VARIANTS,
        "claims_supported": claims::NAMES,
        "claims_parameter_supported": false,
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "code_challenge_methods_supported": ["S256"],
        "prompt_values_supported": Prompt::VARIANTS,
        "authorization_response_iss_parameter_supported": true,
        "request_parameter_supported": false,
        // An absent member would count as true (OpenID Connect Discovery §3).
        "request_uri_parameter_supported": false,
    })
}
