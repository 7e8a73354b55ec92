//! Sets, returns and lists the rights override of an item, over HTTP.

use axum::{
    Router,
    extract::{Request, State},
    routing::get,
};
use serde_json::{Value, json};

use super::ingest::{
    UploadPath, authorize_provider, parse_item_key, require_provider, rights_error,
};
use crate::archive::ingest::{RightsChangeEntry, RightsOutcome};
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiResult;
use crate::http::protocol::request;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::RIGHTS_STATEMENT_BYTES_MAX;
use crate::storage::audit::AuditAction;
use model::ItemKey;
use model::item::{RightsStatementError, RightsUpdate};

/// The routes of the rights in items.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/ingest/v1/{media_type}/{id}/rights", get(load_rights).put(set_rights))
        .route("/ingest/v1/{media_type}/{id}/rights/changes", get(list_changes))
}

async fn load_rights(
    State(app): State<AppState>,
    caller: ApiCaller,
    segments: UploadPath,
) -> ApiResult {
    let key = readable_key(&caller, segments)?;
    let rights = app.shared.archive.uploads.rights(key.clone()).await?;
    api::json(&rights.ok_or_else(|| no_item(&key))?.to_json())
}

async fn list_changes(
    State(app): State<AppState>,
    caller: ApiCaller,
    segments: UploadPath,
) -> ApiResult {
    let key = readable_key(&caller, segments)?;
    let changes = app.shared.archive.uploads.rights_changes(key.clone()).await?;
    let changes = changes.ok_or_else(|| no_item(&key))?;
    api::json(&changes.iter().map(change_json).collect::<Vec<_>>())
}

fn change_json(change: &RightsChangeEntry) -> Value {
    let mut listed = json!({
        "changed": change.changed.to_string(),
        "rights": change.properties,
    });
    if let Some(user) = &change.user_name {
        listed["user"] = json!(user);
    }
    listed
}

/// Returns the item of the path, for a caller that may read its override.
fn readable_key(caller: &ApiCaller, segments: UploadPath) -> Result<ItemKey> {
    let key = parse_item_key(segments);
    // The refusal comes first: a caller that may not write learns nothing about the item.
    require_provider(caller)?;
    key
}

async fn set_rights(
    State(app): State<AppState>,
    caller: ApiCaller,
    segments: UploadPath,
    request: Request,
) -> ApiResult {
    let action = AuditAction::ItemRightsChanged;
    let (key, _permit) = authorize_provider(&app, &caller, action, segments)?;
    let update = parse_update(&request::json(request, RIGHTS_STATEMENT_BYTES_MAX).await?)?;
    let outcome = app.shared.archive.uploads.set_rights(key.clone(), update, clock::now()).await?;
    let set = match outcome {
        RightsOutcome::Set(set) => set,
        RightsOutcome::NoItem => return Err(no_item(&key).into()),
        RightsOutcome::Refused(cause) => return Err(refused(&cause).into()),
    };
    // This node forgets the old version at once; other nodes follow the item log.
    app.shared.media.item_changed(&[key]);
    api::json(&set.to_json())
}

fn no_item(key: &ItemKey) -> Error {
    Error::new(ErrorKind::NotFound, format!("no item {key}"))
}

fn parse_update(body: &Value) -> Result<RightsUpdate> {
    let Value::Object(properties) = body else {
        return Err(Error::invalid("body", "", "type", "the body is not an object"));
    };
    RightsUpdate::parse(properties).map_err(|cause| refused(&cause))
}

fn refused(cause: &RightsStatementError) -> Error {
    Error::invalid_parts(vec![rights_error(cause)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use metadata::RightsMetadata;

    #[test]
    fn a_problem_names_the_property_in_the_notation_of_the_api() {
        let path = |body: Value| {
            let error = parse_update(&body).expect_err("refused");
            error.details()[0].path.clone()
        };
        assert_eq!(path(json!([])), "");
        assert_eq!(path(json!({ "dataMining": "DMI-MAYBE" })), "dataMining");
        assert_eq!(
            path(json!({ "licensors": [{ "licensorUrl": 7 }] })),
            "licensors.0.licensorUrl"
        );
        let update = parse_update(&json!({ "dataMining": null })).expect("valid");
        let nothing = RightsMetadata::default();
        assert_eq!(update.apply(&nothing, 100), Ok(nothing));
        let too_large = refused(&RightsStatementError::TooLarge { bytes: 9, max: 7 });
        assert_eq!(too_large.details()[0].path, "");
        assert!(too_large.details()[0].message.contains("9 bytes in all, more than 7"));
    }
}
