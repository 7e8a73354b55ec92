//! Changes the document of an item for an editor: based on the version that the editor saw, as a new version, and
//! with the editor in the audit log.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::differences::{Difference, describe, differences};
use super::write::{self, LocalMoment, PreparedItem};
use super::{Ingest, IngestResult, Uploads};
use crate::runtime::error::{Error, Result};
use crate::storage::audit::{self, AuditAction, ObjectKind};
use crate::storage::database::{ItemEdit, StoredItem};
use model::item::{
    Document, DocumentError, MetadataEdits, PubStatus, SchemaViolation, merge_patch,
    missing_fields,
};
use model::{ContentHash, ItemKey};

/// Times that a change without a condition is repeated when the item changes in between.
const EDIT_TRIES_MAX: usize = 3;
/// The properties that the service sets and no editor changes.
const SERVICE_PROPERTIES: [&str; 9] = [
    "$standard",
    "replacedby",
    "representationtype",
    "revisions",
    "renditions",
    "type",
    "uri",
    "version",
    "versionstored",
];
/// The properties that differ between any two versions.
const VERSION_PROPERTIES: [&str; 2] = ["version", "versionstored"];
/// The statuses that an editor can set. A withdrawal has its own operation.
const EDITABLE_STATUSES: [PubStatus; 3] =
    [PubStatus::Usable, PubStatus::Withheld, PubStatus::Commissioned];

/// The version on which a change may be based.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedVersion {
    /// Any version of an item that exists.
    Any,
    /// One of the versions with these tags.
    OneOf(Vec<String>),
}

impl ExpectedVersion {
    /// Returns whether a version with this tag is expected.
    pub fn includes(&self, tag: &str) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(tags) => tags.iter().any(|expected| expected == tag),
        }
    }
}

/// A change of an item's document.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemChange {
    pub expected: ExpectedVersion,
    /// The changes of a template, which are applied first.
    pub template: MetadataEdits,
    /// The merge patch (RFC 7396) of the document.
    pub patch: Map<String, Value>,
}

/// The stored document of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditableItem {
    /// The text of the document.
    pub document: String,
    /// The tag of this version of the document.
    pub tag: String,
}

impl EditableItem {
    fn from_stored(item: StoredItem) -> Self {
        Self { tag: version_tag(&item.document), document: item.document }
    }
}

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// There is no such item.
    Missing,
    /// The version of the item is not the expected one.
    Stale,
    /// The item is as requested.
    Saved(SavedItem),
}

/// An item after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedItem {
    pub item: EditableItem,
    /// Other items whose status became replaced.
    pub replaced_items: Vec<ItemKey>,
}

/// Returns a tag that identifies a version by its text, so that versions with the same document have the same tag.
pub(super) fn version_tag(document: &str) -> String {
    ContentHash::new(document.as_bytes()).short()
}

impl Ingest {
    /// Changes the document of the item `key`.
    ///
    /// The changed document is validated like an uploaded document, must have the fields that the house rules
    /// require, and gets the next `version`. The item retains its position in the order of arrival. The audit log
    /// gets an event for each property, with its old and its new value. A change that changes nothing writes
    /// nothing.
    ///
    /// Fails with [`IngestError::Document`](super::IngestError::Document) if the document is invalid.
    fn edit(
        &self,
        key: &ItemKey,
        change: &ItemChange,
        now: Timestamp,
    ) -> IngestResult<EditOutcome> {
        for _ in 0..EDIT_TRIES_MAX {
            let Some(item) = self.find_item(key)?.map(EditableItem::from_stored) else {
                return Ok(EditOutcome::Missing);
            };
            if !change.expected.includes(&item.tag) {
                return Ok(EditOutcome::Stale);
            }
            let old = Document::from_stored(&item.document)?;
            let Some(new) = self.changed(key, &old, change)? else {
                return Ok(EditOutcome::Saved(SavedItem { item, replaced_items: Vec::new() }));
            };
            if let Some(saved) = self.write_edit(key, &item.tag, &old, new, now)? {
                return Ok(EditOutcome::Saved(saved));
            }
            // A concurrent change was committed between the read and the write, so this change is applied to the
            // new version.
        }
        Ok(EditOutcome::Stale)
    }

    /// Applies a change to the document `old`; `None` if nothing changes.
    fn changed(
        &self,
        key: &ItemKey,
        old: &Document,
        change: &ItemChange,
    ) -> IngestResult<Option<Document>> {
        check_properties(&change.patch)?;
        let mut fields = old.fields().clone();
        change.template.apply(&mut fields);
        merge_patch(&mut fields, &change.patch);
        if fields == *old.fields() {
            return Ok(None);
        }
        self.validated(key, fields).map(|mut document| {
            document.increment_version();
            Some(document)
        })
    }

    /// Validates a document that an editor completed, by the schema and by the house rules.
    pub(super) fn validated(
        &self,
        key: &ItemKey,
        fields: Map<String, Value>,
    ) -> IngestResult<Document> {
        let missing = missing_fields(&self.required_fields, key.media_type, &fields);
        match Document::from_fields(key, fields) {
            Ok(document) if missing.is_empty() => Ok(document),
            Ok(_) => Err(DocumentError::Schema(missing).into()),
            // Reported together, so that an editor corrects both at once.
            Err(DocumentError::Schema(violations)) => {
                Err(DocumentError::Schema([missing, violations].concat()).into())
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Writes the document `new` unless the item has changed since the version `tag`; `None` if it has changed.
    fn write_edit(
        &self,
        key: &ItemKey,
        tag: &str,
        old: &Document,
        new: Document,
        now: Timestamp,
    ) -> IngestResult<Option<SavedItem>> {
        let event = audit::event(AuditAction::ItemChanged).with_object(ObjectKind::Item, key);
        let moment = LocalMoment { now, zone: &self.zone };
        let mut changes = differences(old.fields(), new.fields());
        changes.retain(|change| !VERSION_PROPERTIES.contains(&change.name));
        let changes = changes.iter().map(Difference::shortened).collect();
        let edit = write::item_edit(&new, changes, now, event.actor.user_name.clone());
        let prepared = PreparedItem::new(key, new, None, moment).into_edit();
        let key = key.clone();
        let tag = tag.to_owned();
        let zone = self.zone.clone();
        Ok(self.db.write_blocking(move |tx| {
            let current = write::find(tx, &key)?;
            if current.is_none_or(|(item, _)| version_tag(&item.document) != tag) {
                return Ok(None);
            }
            let written = prepared.write(tx, &zone)?;
            for change in &edit.changes {
                tx.write_audit(&event.clone().with_detail(describe(change)))?;
            }
            tx.write_item_edit(&key, &edit)?;
            let stored = tx.find_item(&key)?;
            Ok(stored.map(|item| SavedItem {
                item: EditableItem::from_stored(item),
                replaced_items: written.replaced_items,
            }))
        })?)
    }
}

/// Refuses patches of properties that the service sets, and statuses that an editor cannot set.
fn check_properties(patch: &Map<String, Value>) -> IngestResult<()> {
    let set_by_service =
        patch.keys().filter(|name| SERVICE_PROPERTIES.contains(&name.as_str())).map(|name| {
            let message = "is set by the service";
            SchemaViolation::new(&format!("/{name}"), "additionalProperties", message)
        });
    let mut violations: Vec<SchemaViolation> = set_by_service.collect();
    if let Some(status) = patch.get("pubstatus") {
        let parsed = status.as_str().and_then(|word| word.parse().ok());
        if !parsed.is_some_and(|status| EDITABLE_STATUSES.contains(&status)) {
            let words = EDITABLE_STATUSES.map(PubStatus::as_str).join(", ");
            let message = format!("must be one of {words}; DELETE withdraws an item");
            violations.push(SchemaViolation::new("/pubstatus", "enum", message));
        }
    }
    if violations.is_empty() { Ok(()) } else { Err(DocumentError::Schema(violations).into()) }
}

impl Uploads {
    /// Finds the stored document of the item `key`, whatever its status.
    pub async fn editable(&self, key: ItemKey) -> Result<Option<EditableItem>> {
        let found = self.ingest_here().db.read(move |tx| tx.find_item(&key)).await?;
        Ok(found.map(EditableItem::from_stored))
    }

    /// Changes the document of the item `key`.
    ///
    /// The outer error is a failure of the service, the inner error is the refusal of the change.
    pub async fn edit(
        &self,
        key: ItemKey,
        change: ItemChange,
        now: Timestamp,
    ) -> Result<IngestResult<EditOutcome>> {
        self.work(move |ingest| ingest.edit(&key, &change, now)).await
    }

    /// Lists the changes of the item `key` by editors, newest first; `None` if there is no such item.
    pub async fn edits(&self, key: ItemKey) -> Result<Option<Vec<ItemEdit>>> {
        let listed = self.ingest_here().db.read(move |tx| {
            let exists = tx.find_item(&key)?.is_some();
            exists.then(|| tx.list_item_edits(&key)).transpose()
        });
        listed.await.map_err(Error::from)
    }
}
