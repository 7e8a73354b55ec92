//! The single write path into the database: turns a checked document into an item and applies the changes
//! that it causes in other items, in the caller's transaction.

use jiff::{Timestamp, tz::TimeZone};

use super::IngestedItem;
use crate::storage::audit::{self, AuditAction};
use crate::storage::database::{
    DbError, DbResult, ItemEdit, NewItem, PropertyChange, StoredItem, WriteTx,
};
use model::item::{Asset, Document, PubStatus};
use model::{AssociationKey, ContentHash, ItemKey, MediaType, RenditionExtension};

/// The end of an embargo whose time is out of range, such as the end of the year 9999.
const FOREVER: Timestamp = Timestamp::constant(253_370_764_800, 0);

/// A checked and completed document, ready to be written. All steps that need no database are done.
pub(super) struct PreparedItem {
    /// The row to write if the item is new and replaces no other item.
    item: NewItem,
    document: Document,
    /// The original document, if it arrived without its version.
    unversioned: Option<Document>,
    /// True if its file arrived alone. The item's other files are then retained.
    is_single_file: bool,
    /// True if an editor changed the document. A change is no arrival, so the item retains its position.
    is_edit: bool,
    /// The name of the user whose document withdraws the item; `None` if unknown, and for other documents.
    withdrawn_by: Option<String>,
}

/// The time and the time zone of a write.
#[derive(Clone, Copy)]
pub(super) struct LocalMoment<'a> {
    pub(super) now: Timestamp,
    pub(super) zone: &'a TimeZone,
}

impl LocalMoment<'_> {
    /// Builds the row of the item `key`.
    fn row(self, key: &ItemKey, document: &Document) -> NewItem {
        NewItem {
            key: key.clone(),
            document: document.to_stored(),
            assets: None,
            pub_status: document.pub_status(),
            order_time: document.order_time(key.media_type, self.now, self.zone),
            // An embargo that cannot be represented must not end early.
            embargoed: document.text("embargoed").map(|text| text.parse().unwrap_or(FOREVER)),
            stored: self.now,
            is_newly_indexed: false,
        }
    }
}

impl PreparedItem {
    /// Completes `document`, which belongs to the item `key`. `assets` are its files; if `None`, the item retains
    /// its files.
    pub(super) fn new(
        key: &ItemKey,
        mut document: Document,
        assets: Option<Vec<Asset>>,
        moment: LocalMoment<'_>,
    ) -> Self {
        let versioned =
            ["version", "versioncreated"].iter().all(|name| document.text(name).is_some());
        let unversioned = (!versioned).then(|| document.clone());
        document.complete(key, moment.now, moment.zone);
        let item = NewItem { assets, is_newly_indexed: true, ..moment.row(key, &document) };
        // Read here, because the caller is unknown on the thread that writes.
        let withdrawn_by = (item.pub_status == PubStatus::Canceled)
            .then(|| audit::event(AuditAction::ItemWithdrawn).actor.user_name)
            .flatten();
        Self { item, document, unversioned, is_single_file: false, is_edit: false, withdrawn_by }
    }

    /// Marks the item's file as a file that arrived alone.
    pub(super) fn into_single_file(self) -> Self {
        Self { is_single_file: true, ..self }
    }

    /// Marks the document as changed by an editor.
    pub(super) fn into_edit(self) -> Self {
        Self { is_edit: true, ..self }
    }

    /// Returns the originals that arrived with the document.
    pub(super) fn originals(&self) -> Vec<ContentHash> {
        self.item.assets.iter().flatten().map(Asset::blob).collect()
    }

    /// Returns the length of the document's text in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.item.document.len()
    }

    /// Writes the item, its history, and the items that it replaces.
    pub(super) fn write(&self, tx: &WriteTx<'_>, zone: &TimeZone) -> DbResult<IngestedItem> {
        let key = &self.item.key;
        let moment = LocalMoment { now: self.item.stored, zone };
        let old = find(tx, key)?;
        let replaced_keys = self.document.replaced_keys(key);
        // The common case of a bulk load: no other item is read or changed.
        if old.is_none() && replaced_keys.is_empty() {
            return Ok(IngestedItem::new(key, tx.write_item(&self.item)?, Vec::new()));
        }
        let mut document = self.document.clone();
        if let (Some((_, old)), Some(unversioned)) = (&old, &self.unversioned) {
            document.clone_from(unversioned);
            // A document that is sent again without a version retains the stored version and is not newer.
            document.inherit_version(old);
            document.complete(key, moment.now, zone);
        }
        let mut replaced = Vec::new();
        let mut documents = Vec::new();
        for other in replaced_keys {
            let found = find(tx, &other)?;
            let document = found.as_ref().map(|(_, document)| document.clone());
            documents.push((other.clone(), document));
            replaced.push((other, found));
        }
        document.write_revisions(key, &documents);
        if let Some((_, old)) = &old {
            keep_replaced_status(tx, key, old, &mut document)?;
            if document.pub_status() == PubStatus::Canceled {
                let by = self.withdrawn_by.clone();
                record_withdrawal(tx, key, old, &document, moment.now, by)?;
            }
        }
        let is_newly_indexed =
            old.as_ref().is_none_or(|(_, old)| counts_as_newly_indexed(old, &document));
        let assets = match &old {
            Some(old) => Some(self.files_after(old, &document)),
            None => self.item.assets.clone(),
        };
        let mut row = NewItem { assets, is_newly_indexed, ..moment.row(key, &document) };
        // A picture retains its position in the order of arrival if its version is not newer, or only corrected.
        let by_arrival =
            matches!(key.media_type, MediaType::Image | MediaType::Stockfoto | MediaType::Video);
        let keeps_position = by_arrival && (self.is_edit || !is_newly_indexed);
        if let Some((item, _)) = old.filter(|_| keeps_position) {
            row.order_time = item.order_time;
        }
        let written = tx.write_item(&row)?;
        let newly_replaced = if document.pub_status().is_served() {
            replace_items(tx, key, replaced, moment)?
        } else {
            // An item that is not served has not replaced any other item yet.
            Vec::new()
        };
        Ok(IngestedItem::new(key, written, newly_replaced))
    }

    /// Returns the item's files after the write.
    ///
    /// New own files replace all existing own files, and new files of associated objects replace all existing
    /// files of associated objects. If one of the two groups has no new files, its existing files remain. A file
    /// that arrived alone replaces only its counterpart. Files of an association remain only while the association
    /// refers to the same object.
    fn files_after(&self, stored: &(StoredItem, Document), document: &Document) -> Vec<Asset> {
        let (item, old) = stored;
        let staying = item.assets.iter().filter(|asset| match &asset.association {
            None => true,
            Some(key) => is_same_object(key, old, document),
        });
        let existing = staying.cloned();
        let Some(new) = &self.item.assets else { return existing.collect() };
        let mut files = new.clone();
        if !new.iter().any(is_own) {
            files.extend(existing.filter(is_own));
        } else if self.is_single_file {
            let has_new_pdf = new.iter().any(|asset| asset.extension() == RenditionExtension::Pdf);
            files.extend(existing.filter(|asset| {
                let is_replaced = is_own(asset)
                    && new.iter().any(|file| {
                        file.name() == asset.name() && file.extension() == asset.extension()
                    });
                // A new PDF also invalidates the files that were generated from the old PDF.
                !(is_replaced || has_new_pdf && asset.made)
            }));
        }
        files
    }
}

fn is_own(asset: &Asset) -> bool {
    asset.association.is_none()
}

/// Returns whether the association `key` refers to the same object in both documents.
fn is_same_object(key: &AssociationKey, old: &Document, new: &Document) -> bool {
    match (old.association(key), new.association(key)) {
        (Some(old), Some(new)) => old.get("uri") == new.get("uri"),
        // Two missing associations are not the same object.
        (_, None) | (None, Some(_)) => false,
    }
}

/// Finds the item `key` and parses its document.
pub(super) fn find(tx: &WriteTx<'_>, key: &ItemKey) -> DbResult<Option<(StoredItem, Document)>> {
    let Some(item) = tx.find_item(key)? else { return Ok(None) };
    let document = Document::from_stored(&item.document).map_err(|cause| DbError::Damaged {
        what: format!("item {key}"),
        why: cause.to_string(),
    })?;
    Ok(Some((item, document)))
}

/// Returns whether `document` counts as newly indexed: it is newer than the stored document `old`, or becomes
/// visible again.
fn counts_as_newly_indexed(old: &Document, document: &Document) -> bool {
    let becomes_visible = !old.pub_status().is_served() && document.pub_status().is_served();
    becomes_visible || document.is_newer_than(old)
}

/// Retains the status of a replaced item that is sent again, even if it was withdrawn in between.
///
/// Ingesting an archive twice must not restore old revisions (contract items-17). So an item stays replaced as
/// long as its replacement exists, is served and still refers to it, unless the document itself replaces that item
/// or is withdrawn. A withdrawal retains the name of the replacement, which decides the status of a later version.
fn keep_replaced_status(
    tx: &WriteTx<'_>,
    key: &ItemKey,
    old: &Document,
    document: &mut Document,
) -> DbResult<()> {
    let Some(by) = old.replaced_by() else { return Ok(()) };
    if document.pub_status() == PubStatus::Canceled {
        document.inherit_replacement(old);
        return Ok(());
    }
    // A withdrawn item retains the name of its replacement.
    let was_replaced = matches!(old.pub_status(), PubStatus::Replaced | PubStatus::Canceled);
    let stays = was_replaced
        && document.pub_status() == PubStatus::Usable
        && !document.replaced_keys(key).contains(&by);
    if !stays {
        return Ok(());
    }
    if let Some((_, replacing)) = find(tx, &by)?
        && replacing.pub_status().is_served()
        && replacing.replaced_keys(&by).contains(key)
    {
        document.set_replaced_by(&by);
    }
    Ok(())
}

/// Marks items as replaced by `by`, and returns the newly marked items.
///
/// Withdrawn and withheld items retain their status. If two items replace the same item, the later replacement is
/// named (contract items-17).
fn replace_items(
    tx: &WriteTx<'_>,
    by: &ItemKey,
    replaced: Vec<(ItemKey, Option<(StoredItem, Document)>)>,
    moment: LocalMoment<'_>,
) -> DbResult<Vec<ItemKey>> {
    let mut newly_replaced = Vec::new();
    for (key, found) in replaced {
        let Some((item, mut document)) = found else { continue };
        let status = document.pub_status();
        let is_marked = status != PubStatus::Usable && document.replaced_by().as_ref() == Some(by);
        if is_marked || !status.is_served() {
            continue;
        }
        document.set_replaced_by(by);
        if status == PubStatus::Commissioned {
            // An item that only administrators see must not become public through a revision.
            document.set_pub_status(status);
        }
        // A new status is no arrival, so the item retains its position.
        rewrite(tx, &key, item.order_time, &mut document, moment)?;
        newly_replaced.push(key);
    }
    Ok(newly_replaced)
}

/// Writes the item again as its next version, which no sender sent. The item retains its position in the order of
/// arrival, `order_time`.
pub(super) fn rewrite(
    tx: &WriteTx<'_>,
    key: &ItemKey,
    order_time: Timestamp,
    document: &mut Document,
    moment: LocalMoment<'_>,
) -> DbResult<()> {
    document.set_stored(moment.now, moment.zone);
    let row = NewItem { order_time, ..moment.row(key, document) };
    tx.write_item(&row).map(drop)
}

/// Withdraws the item `key` for the user `user_name`, and returns whether the item exists.
pub(super) fn withdraw(
    tx: &WriteTx<'_>,
    key: &ItemKey,
    moment: LocalMoment<'_>,
    user_name: Option<String>,
) -> DbResult<bool> {
    let Some((item, old)) = find(tx, key)? else { return Ok(false) };
    let mut document = old.clone();
    document.set_pub_status(PubStatus::Canceled);
    rewrite(tx, key, item.order_time, &mut document, moment)?;
    record_withdrawal(tx, key, &old, &document, moment.now, user_name)?;
    Ok(true)
}

/// Adds a withdrawal to the history of the item `key`, unless it was already withdrawn.
///
/// The history is the only record of the item's earlier status, however the item is withdrawn. The item gets this
/// status back when it is published again.
fn record_withdrawal(
    tx: &WriteTx<'_>,
    key: &ItemKey,
    old: &Document,
    new: &Document,
    now: Timestamp,
    user_name: Option<String>,
) -> DbResult<()> {
    let status = old.pub_status();
    let canceled = PubStatus::Canceled;
    if status == canceled {
        return Ok(());
    }
    let change = PropertyChange {
        property: "pubstatus".to_owned(),
        old: Some(status.as_str().to_owned()),
        new: Some(canceled.as_str().to_owned()),
    };
    tx.write_item_edit(key, &item_edit(new, vec![change], now, user_name))
}

/// Builds the entry for `document` in the history of its item.
pub(super) fn item_edit(
    document: &Document,
    changes: Vec<PropertyChange>,
    changed: Timestamp,
    user_name: Option<String>,
) -> ItemEdit {
    let version = document.text("version").unwrap_or("1").to_owned();
    ItemEdit { version, changes, changed, user_name }
}
