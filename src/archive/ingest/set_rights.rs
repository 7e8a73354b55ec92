//! Sets the operator's statement about the rights in an item. It takes precedence over the item's files and over
//! the settings.

use api::ingest::{ItemRightsChange, RIGHTS_STATEMENT_BYTES_MAX};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::differences::differences;
use super::write::{self, LocalMoment};
use super::{Ingest, IngestResult, Uploads};
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::RIGHTS_CHANGES_MAX;
use crate::storage::audit::{self, AuditAction, AuditEvent, ObjectKind};
use crate::storage::database::RightsChange;
use metadata::RightsMetadata;
use model::ItemKey;
use model::item::{RightsStatementError, RightsUpdate};

/// The outcome of a change of an item's rights statement.
#[derive(Clone, Debug, PartialEq)]
pub enum RightsOutcome {
    /// The change is done, and this is the new statement.
    Set(RightsMetadata),
    /// There is no such item.
    NoItem,
    /// The change is refused, because the statement would be too large.
    Refused(RightsStatementError),
}

impl Ingest {
    /// Changes the rights statement of the item `key`.
    ///
    /// The item gets a new version, so that caches, CDNs and the search index follow. The audit log gets an event
    /// for each property, with its old and its new value. A change that changes nothing writes nothing.
    pub fn set_rights(
        &self,
        key: &ItemKey,
        update: RightsUpdate,
        now: Timestamp,
    ) -> IngestResult<RightsOutcome> {
        let event = audit::event(AuditAction::ItemRightsChanged);
        let event = event.with_object(ObjectKind::Item, key);
        let key = key.clone();
        let zone = self.zone.clone();
        Ok(self.db.write_blocking(move |tx| {
            let Some((item, mut document)) = write::find(tx, &key)? else {
                return Ok(RightsOutcome::NoItem);
            };
            let old = item.rights;
            let new = match update.apply(&old, RIGHTS_STATEMENT_BYTES_MAX) {
                Ok(new) if new == old => return Ok(RightsOutcome::Set(new)),
                Ok(new) => new,
                Err(cause) => return Ok(RightsOutcome::Refused(cause)),
            };
            let user_name = event.actor.user_name.clone();
            let change = RightsChange { rights: new.clone(), changed: now, user_name };
            tx.write_item_rights(&key, &change)?;
            let moment = LocalMoment { now, zone: &zone };
            write::rewrite(tx, &key, item.order_time, &mut document, moment)?;
            for difference in differences(&rights_properties(&old), &rights_properties(&new)) {
                let event: AuditEvent = event.clone();
                tx.write_audit(&event.with_detail(difference.describe()))?;
            }
            Ok(RightsOutcome::Set(new))
        })?)
    }
}

impl Uploads {
    /// Changes the rights statement of the item `key`, as [`Ingest::set_rights`] does.
    pub async fn set_rights(
        &self,
        key: ItemKey,
        update: RightsUpdate,
        now: Timestamp,
    ) -> Result<RightsOutcome> {
        let set = self.work(move |ingest| ingest.set_rights(&key, update, now)).await?;
        set.map_err(Error::internal)
    }

    /// Reads the rights statement of the item `key`; `None` if there is no such item.
    pub async fn rights(&self, key: ItemKey) -> Result<Option<RightsMetadata>> {
        Ok(self.ingest_here().db.read(move |tx| tx.find_item_rights(&key)).await?)
    }

    /// Lists the [`RIGHTS_CHANGES_MAX`] latest changes of the rights statement of the item `key`, newest first;
    /// `None` if there is no such item.
    pub async fn rights_changes(&self, key: ItemKey) -> Result<Option<Vec<ItemRightsChange>>> {
        let read = self.ingest_here().db.read(move |tx| {
            let exists = tx.find_item_rights(&key)?.is_some();
            exists.then(|| tx.list_rights_changes(&key)).transpose()
        });
        Ok(read.await?.map(|changes| entries(&changes)))
    }
}

/// Lists the changed properties of each of `changes`, newest first.
fn entries(changes: &[RightsChange]) -> Vec<ItemRightsChange> {
    // Nothing was set before the first change.
    let nothing = RightsMetadata::default();
    let before = changes.iter().skip(1).map(|change| &change.rights).chain([&nothing]);
    let listed = changes.iter().zip(before).take(RIGHTS_CHANGES_MAX);
    listed.map(|(change, before)| entry(change, before)).collect()
}

/// Lists the properties that `change` changed; `before` are the rights before it.
fn entry(change: &RightsChange, before: &RightsMetadata) -> ItemRightsChange {
    let old = rights_properties(before);
    let new = rights_properties(&change.rights);
    let mut changed = Map::new();
    for property in differences(&old, &new) {
        changed.insert(property.name.to_owned(), property.new.cloned().unwrap_or(Value::Null));
    }
    ItemRightsChange { changed: change.changed, rights: changed, user: change.user_name.clone() }
}

/// Returns the rights as an object of properties.
pub fn rights_properties(rights: &RightsMetadata) -> Map<String, Value> {
    rights.to_json().as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_listed_change_has_what_changed_alone() {
        let change = |rights| RightsChange {
            rights: RightsMetadata::from_json(&rights).unwrap(),
            changed: Timestamp::UNIX_EPOCH,
            user_name: Some("editor".to_owned()),
        };
        let changes = [
            change(json!({ "instructions": "none" })),
            change(json!({ "jobid": "8", "instructions": "none" })),
            change(json!({ "jobid": "7" })),
        ];
        let properties: Vec<_> =
            entries(&changes).into_iter().map(|entry| Value::Object(entry.rights)).collect();
        let expected = [
            json!({ "jobid": null }),
            json!({ "jobid": "8", "instructions": "none" }),
            json!({ "jobid": "7" }),
        ];
        assert_eq!(properties, expected);
        let many = vec![change(json!({ "jobid": "7" })); RIGHTS_CHANGES_MAX + 1];
        let listed = entries(&many);
        assert_eq!(listed.len(), RIGHTS_CHANGES_MAX);
        assert!(listed.iter().all(|entry| entry.rights.is_empty()), "all know the one before");
    }
}
