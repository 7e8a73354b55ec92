//! Sets what the operator says about the rights in an item, which takes precedence over its files and over the
//! settings.

use jiff::Timestamp;
use serde_json::Value;

use super::write::{self, LocalMoment};
use super::{Ingest, IngestError, Uploads};
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{AUDIT_VALUE_CHARS_MAX, RIGHTS_STATEMENT_BYTES_MAX};
use crate::storage::audit::{self, AuditAction, AuditEvent, ObjectKind};
use crate::storage::database::RightsChange;
use metadata::RightsMetadata;
use model::ItemKey;
use model::item::{RightsStatementError, RightsUpdate};

/// The outcome of a change of what is set about the rights in an item.
#[derive(Clone, Debug, PartialEq)]
pub enum RightsOutcome {
    /// The change is done; this is set now.
    Set(RightsMetadata),
    /// There is no such item.
    NoItem,
    /// The change is refused, because too much would be set.
    Refused(RightsStatementError),
}

impl Ingest {
    /// Changes what is set about the rights in the item `key`.
    ///
    /// The item gets a new version, so that caches, CDNs and the search index follow. The audit log gets an
    /// event for each property, with its old and its new value. A change that changes nothing writes nothing.
    pub fn set_rights(
        &self,
        key: &ItemKey,
        update: RightsUpdate,
        now: Timestamp,
    ) -> std::result::Result<RightsOutcome, IngestError> {
        let event = audit::event(AuditAction::ItemRightsChanged);
        let event = event.with_object(ObjectKind::Item, key);
        let (key, zone) = (key.clone(), self.zone.clone());
        Ok(self.db.write_blocking(move |tx| {
            let Some((item, document)) = write::find(tx, &key)? else {
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
            write::rewrite(tx, &key, item.order_time, document, None, moment)?;
            for detail in differences(&old.to_json(), &new.to_json()) {
                let event: AuditEvent = event.clone();
                tx.write_audit(&event.with_detail(detail))?;
            }
            Ok(RightsOutcome::Set(new))
        })?)
    }
}

impl Uploads {
    /// Changes what is set about the rights in the item `key`, as [`Ingest::set_rights`].
    pub async fn set_rights(
        &self,
        key: ItemKey,
        update: RightsUpdate,
        now: Timestamp,
    ) -> Result<RightsOutcome> {
        let set = self.work(move |ingest| ingest.set_rights(&key, update, now)).await?;
        set.map_err(Error::internal)
    }

    /// Reads what is set about the rights in the item `key`, and its changes, newest first; `None` if there is
    /// no such item.
    pub async fn rights(
        &self,
        key: ItemKey,
    ) -> Result<Option<(RightsMetadata, Vec<RightsChange>)>> {
        let read = self.ingest_here().db.read(move |tx| {
            let Some(item) = tx.find_item(&key)? else { return Ok(None) };
            Ok(Some((item.rights, tx.list_rights_changes(&key)?)))
        });
        Ok(read.await?)
    }
}

/// Describes each property that differs: `dataMining: none -> http://…/DMI-PROHIBITED`.
fn differences(old: &Value, new: &Value) -> Vec<String> {
    let none = serde_json::Map::new();
    let (old, new) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
    let added = new.keys().filter(|name| !old.contains_key(*name));
    let names = old.keys().chain(added);
    names
        .filter(|name| old.get(*name) != new.get(*name))
        .map(|name| format!("{name}: {} -> {}", short(old.get(name)), short(new.get(name))))
        .collect()
}

fn short(value: Option<&Value>) -> String {
    let text = match value {
        None => return "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let mut short: String = text.chars().take(AUDIT_VALUE_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_difference_has_its_old_and_its_new_value() {
        let old = json!({ "jobid": "7", "title": { "x-default": "Ice" }, "instructions": "none" });
        let new = json!({ "jobid": "8", "instructions": "none", "dataMining": "http://a/b" });
        let expected = [
            "jobid: 7 -> 8",
            r#"title: {"x-default":"Ice"} -> none"#,
            "dataMining: none -> http://a/b",
        ];
        assert_eq!(differences(&old, &new), expected);
        assert!(differences(&old, &old).is_empty());
    }

    #[test]
    fn a_long_value_leaves_room_for_the_other() {
        let long = short(Some(&json!("å".repeat(500))));
        assert_eq!(long.chars().count(), AUDIT_VALUE_CHARS_MAX + 1);
        assert!(long.ends_with('…'));
    }
}
