//! API keys over HTTP: callers list, create and revoke their own keys (contract access-8).

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    routing::{delete, get},
};
use serde_json::Value;

use crate::access::users::json;
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiResult;
use crate::http::protocol::request;
use crate::http::protocol::request::Presence;
use crate::http::protocol::request::TextRule;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::{JSON_BODY_BYTES_MAX, SHORT_TEXT_CHARS_MAX};

/// The routes of API keys.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/user/v1/key", get(list_keys).post(create_key))
        .route("/user/v1/key/{id}", delete(revoke_key))
}

async fn list_keys(State(app): State<AppState>, ApiCaller(caller): ApiCaller) -> ApiResult {
    let keys = app.shared.access.users.keys(&caller).await?;
    api::json(&keys.iter().map(json::OwnKey::from).collect::<Vec<_>>())
}

async fn create_key(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    request: Request,
) -> ApiResult {
    let name = parse_name(&request::json(request, JSON_BODY_BYTES_MAX).await?)?;
    let created = app.shared.access.users.create_key(&caller, name, clock::now()).await?;
    api::json(&json::OwnKey::from(&created))
}

async fn revoke_key(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Result<Path<String>, PathRejection>,
) -> ApiResult {
    let id = request::path_integer("id", id)?;
    app.shared.access.users.revoke_key(&caller, id, clock::now()).await?;
    api::text("OK")
}

/// Parses the name of a new key.
fn parse_name(body: &Value) -> Result<String> {
    request::read_object(body, |key| {
        let name =
            key.text("name", Presence::Required, TextRule::line(SHORT_TEXT_CHARS_MAX)).value();
        let name = name.map(|name| name.trim().to_owned());
        // Lists show a key only by its name, so the name must be visible.
        if name.as_deref() == Some("") {
            key.report_rule("name", "pattern", "is empty");
        }
        name.unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ok_a_key_has_a_name() {
        assert_eq!(parse_name(&json!({ "name": " Desk å " })).unwrap(), "Desk å");
    }

    #[test]
    fn err_what_is_wrong_with_a_key_is_named() {
        let cases = [
            (json!({}), ("required", "name")),
            (json!({ "name": " " }), ("pattern", "name")),
            (json!({ "name": "a\nb" }), ("pattern", "name")),
            (json!({ "name": null }), ("type", "name")),
            (json!({ "name": "a", "key": "b" }), ("additionalProperties", "key")),
            (json!([]), ("type", "")),
        ];
        for (body, (rule, path)) in cases {
            let found = request::tests::problems(&parse_name(&body).unwrap_err());
            assert_eq!(found, [(rule.to_owned(), path.to_owned())], "{body}");
        }
    }
}
