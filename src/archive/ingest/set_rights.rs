//! Sets what the operator says about the rights in an item, which takes precedence over its files and over the
//! settings.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::differences::{describe, differences};
use super::write::{self, LocalMoment};
use super::{Ingest, IngestError, Uploads};
use crate::runtime::error::{Error, Result};
use crate::storage::audit::{self, AuditAction, AuditEvent, ObjectKind};
use crate::storage::database::RightsChange;
use metadata::RightsMetadata;
use model::ItemKey;
use model::item::RightsUpdate;

impl Ingest {
    /// Changes what is set about the rights in the item `key`; returns what is set afterwards, or `None` if
    /// there is no such item.
    ///
    /// The item gets a new version, so that caches, CDNs and the search index follow. The audit log gets an
    /// event for each property, with its old and its new value. A change that changes nothing writes nothing.
    pub fn set_rights(
        &self,
        key: &ItemKey,
        update: RightsUpdate,
        now: Timestamp,
    ) -> std::result::Result<Option<RightsMetadata>, IngestError> {
        let event = audit::event(AuditAction::ItemRightsChanged);
        let event = event.with_object(ObjectKind::Item, key);
        let (key, zone) = (key.clone(), self.zone.clone());
        Ok(self.db.write_blocking(move |tx| {
            let Some((item, document)) = write::find(tx, &key)? else { return Ok(None) };
            let old = item.rights;
            let new = update.apply(&old);
            if new == old {
                return Ok(Some(new));
            }
            let user_name = event.actor.user_name.clone();
            let change = RightsChange { rights: new.clone(), changed: now, user_name };
            tx.write_item_rights(&key, &change)?;
            let moment = LocalMoment { now, zone: &zone };
            write::rewrite(tx, &key, item.order_time, document, None, moment)?;
            for change in differences(&properties(&old), &properties(&new)) {
                let event: AuditEvent = event.clone();
                tx.write_audit(&event.with_detail(describe(&change)))?;
            }
            Ok(Some(new))
        })?)
    }
}

impl Uploads {
    /// Changes what is set about the rights in the item `key`; returns what is set afterwards, or `None` if
    /// there is no such item.
    pub async fn set_rights(
        &self,
        key: ItemKey,
        update: RightsUpdate,
        now: Timestamp,
    ) -> Result<Option<RightsMetadata>> {
        let set = self.work(move |ingest| ingest.set_rights(&key, update, now)).await?;
        set.map_err(Error::internal)
    }

    /// Reads what is set about the rights in the item `key`, and its changes, newest first; `None` if there is
    /// no such item.
    pub async fn rights(
        &self,
        key: ItemKey,
    ) -> Result<Option<(RightsMetadata, Vec<RightsChange>)>> {
        let read = self.db().read(move |tx| {
            let Some(item) = tx.find_item(&key)? else { return Ok(None) };
            Ok(Some((item.rights, tx.list_rights_changes(&key)?)))
        });
        Ok(read.await?)
    }
}

/// Returns what is set as an object of properties.
fn properties(rights: &RightsMetadata) -> Map<String, Value> {
    rights.to_json().as_object().cloned().unwrap_or_default()
}
