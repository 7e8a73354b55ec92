//! Sets, returns and lists the rights override of an item, over HTTP.

use api::Json;
use api::ingest::{
    ItemRights, ItemRightsChange, ListItemRightsChanges, LoadItemRights, SetItemRights,
};

use super::ingest::{authorize_provider, no_item, readable_key, rights_error};
use crate::archive::ingest::{RightsOutcome, rights_properties};
use crate::http::api::binding::{ApiRequest, BoundEndpoints, ReadRequest};
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::storage::audit::AuditAction;
use model::item::{RightsStatementError, RightsUpdate};

/// The endpoints of the rights in items.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<LoadItemRights, _, _>(load_rights)
        .bind::<SetItemRights, _, _>(set_rights)
        .bind::<ListItemRightsChanges, _, _>(list_changes)
}

async fn load_rights(request: ApiRequest<LoadItemRights>) -> Result<Json<ItemRights>> {
    let item = request.parameters().map(|parameters| parameters.item);
    let key = readable_key(&request.caller, item)?;
    let rights = request.app.shared.archive.uploads.rights(key.clone()).await?;
    Ok(Json(ItemRights(rights_properties(&rights.ok_or_else(|| no_item(&key))?))))
}

async fn list_changes(
    request: ApiRequest<ListItemRightsChanges>,
) -> Result<Json<Vec<ItemRightsChange>>> {
    let item = request.parameters().map(|parameters| parameters.item);
    let key = readable_key(&request.caller, item)?;
    let changes = request.app.shared.archive.uploads.rights_changes(key.clone()).await?;
    Ok(Json(changes.ok_or_else(|| no_item(&key))?))
}

async fn set_rights(request: ApiRequest<SetItemRights>) -> Result<Json<ItemRights>> {
    let item = request.parameters().map(|parameters| parameters.item);
    let action = AuditAction::ItemRightsChanged;
    let (key, _permit) = authorize_provider(&request.app, &request.caller, action, item)?;
    let ReadRequest { app, body, .. } = request.read().await?;
    let update = RightsUpdate::parse(&body.0).map_err(|cause| refused(&cause))?;
    let outcome = app.shared.archive.uploads.set_rights(key.clone(), update, clock::now()).await?;
    let set = match outcome {
        RightsOutcome::Set(set) => set,
        RightsOutcome::NoItem => return Err(no_item(&key)),
        RightsOutcome::Refused(cause) => return Err(refused(&cause)),
    };
    // This node forgets the old version at once; other nodes follow the item log.
    app.shared.media.item_changed(&[key]);
    Ok(Json(ItemRights(rights_properties(&set))))
}

fn refused(cause: &RightsStatementError) -> Error {
    Error::invalid_parts(vec![rights_error(cause)])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use metadata::RightsMetadata;

    fn parse(properties: &Value) -> Result<RightsUpdate> {
        let properties = properties.as_object().expect("an object");
        RightsUpdate::parse(properties).map_err(|cause| refused(&cause))
    }

    #[test]
    fn a_problem_names_the_property_in_the_notation_of_the_api() {
        let path = |properties: Value| {
            let error = parse(&properties).expect_err("refused");
            error.details()[0].path.clone()
        };
        assert_eq!(path(json!({ "dataMining": "DMI-MAYBE" })), "dataMining");
        assert_eq!(
            path(json!({ "licensors": [{ "licensorUrl": 7 }] })),
            "licensors.0.licensorUrl"
        );
        let update = parse(&json!({ "dataMining": null })).expect("valid");
        let nothing = RightsMetadata::default();
        assert_eq!(update.apply(&nothing, 100), Ok(nothing));
        let too_large = refused(&RightsStatementError::TooLarge { bytes: 9, max: 7 });
        assert_eq!(too_large.details()[0].path, "");
        assert!(too_large.details()[0].message.contains("9 bytes, at most 7"));
    }
}
