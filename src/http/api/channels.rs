//! Delivery channels over HTTP: callers manage their own channels (contract deliveries-19).

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    routing::{get, post, put},
};
use serde_json::Value;

use crate::distribution::delivery::ChannelDraft;
use crate::distribution::delivery::json;
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiResult;
use crate::http::protocol::request;
use crate::http::protocol::request::Presence;
use crate::http::protocol::request::TextRule;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::{CHANNEL_FORMATS_MAX, JSON_BODY_BYTES_MAX, SHORT_TEXT_CHARS_MAX};
use model::account::ChannelMethod;

/// The rule for a format of a channel; `delivery` validates its value.
const FORMAT: TextRule = TextRule::line(SHORT_TEXT_CHARS_MAX);

/// A decoded path segment, or the reason why it is missing.
type Segment = Result<Path<String>, PathRejection>;

/// The routes of delivery channels.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/user/v1/channel", get(list_channels))
        .route("/user/v1/channel/{name}", put(put_channel).delete(remove_channel))
        .route("/user/v1/channel/{name}/test", post(test_channel))
}

async fn list_channels(State(app): State<AppState>, ApiCaller(caller): ApiCaller) -> ApiResult {
    let channels = app.shared.distribution.deliveries.list_channels(&caller).await?;
    api::json(&channels.iter().map(json::channel).collect::<Vec<_>>())
}

async fn put_channel(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    name: Segment,
    request: Request,
) -> ApiResult {
    let name = request::path_segment("name", name)?;
    let draft = parse_channel(&request::json(request, JSON_BODY_BYTES_MAX).await?)?;
    let deliveries = &app.shared.distribution.deliveries;
    let channel = deliveries.put_channel(&caller, &name, draft, clock::now()).await?;
    api::json(&json::channel(&channel))
}

async fn remove_channel(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    name: Segment,
) -> ApiResult {
    let name = request::path_segment("name", name)?;
    app.shared.distribution.deliveries.remove_channel(&caller, &name).await?;
    api::text("OK")
}

async fn test_channel(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    name: Segment,
) -> ApiResult {
    let name = request::path_segment("name", name)?;
    let result =
        app.shared.distribution.deliveries.test_channel(&caller, &name, clock::now()).await?;
    api::json(&json::tested(&result))
}

/// Parses the body of a PUT. `delivery` validates the formats and settings.
fn parse_channel(body: &Value) -> Result<ChannelDraft> {
    request::read_object(body, |channel| ChannelDraft {
        // The default is never used: an unknown method is reported as an error.
        method: channel
            .variant("method", Presence::Required)
            .value()
            .unwrap_or(ChannelMethod::Download),
        formats: channel
            .texts("formats", Presence::Required, FORMAT, CHANNEL_FORMATS_MAX)
            .value()
            .unwrap_or_default(),
        settings: channel.members("settings", Presence::NotNull).value().unwrap_or_default(),
        active: channel.flag("active", Presence::NotNull).value(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ok_a_channel_has_a_method_and_formats() {
        let found = parse_channel(&json!({ "method": "email", "formats": [".json"] })).unwrap();
        assert_eq!((found.method, found.active), (ChannelMethod::Email, None));
        assert_eq!((found.formats, found.settings.len()), (vec![".json".to_owned()], 0));
        let body = json!({
            "method": "ftp", "formats": [], "settings": { "host": "h" }, "active": false,
        });
        let found = parse_channel(&body).unwrap();
        assert_eq!((found.active, &found.settings["host"]), (Some(false), &json!("h")));
    }

    #[test]
    fn err_everything_wrong_with_a_channel_is_named() {
        let problem = |rule: &str, path: &str| (rule.to_owned(), path.to_owned());
        let problems = |body: &Value| {
            let error = parse_channel(body).map(|_| ()).unwrap_err();
            request::tests::problems(&error)
        };
        let required = [problem("required", "method"), problem("required", "formats")];
        assert_eq!(problems(&json!({})), required);
        let body = json!({
            "method": "FTP", "formats": [".json", 1], "settings": [], "active": null, "id": "x",
        });
        let expected = [
            problem("enum", "method"),
            problem("type", "formats.1"),
            problem("type", "settings"),
            problem("type", "active"),
            problem("additionalProperties", "id"),
        ];
        assert_eq!(problems(&body), expected);
    }
}
