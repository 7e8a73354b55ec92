//! The one way into the database: a document that was checked becomes an item, with what it changes
//! in others, in the caller's transaction.

use jiff::{Timestamp, tz::TimeZone};

use crate::storage::database::{DbError, ItemWriteOutcome, NewItem, StoredItem, WriteTx};
use model::item::{Asset, Document, PubStatus};
use model::{AssociationKey, ItemKey, MediaType, RenditionExtension};

/// The end of an embargo whose time is beyond what can be held, such as the end of the year 9999.
const FOREVER: Timestamp = Timestamp::constant(253_370_764_800, 0);

/// A document that was checked and completed, ready to be written. Everything that needs no
/// database is done.
pub(super) struct PreparedItem {
    /// What is written if the item is new and replaces nothing.
    item: NewItem,
    document: Document,
    /// The document as it came, where it does not say its version.
    unversioned: Option<Document>,
    /// Whether its file came alone, beside which others may be there.
    is_single_file: bool,
}

/// What writing did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemWrite {
    pub(super) written: ItemWriteOutcome,
    /// Items that were turned into replaced ones.
    pub(super) replaced_items: Vec<ItemKey>,
}

/// When and where items are written.
#[derive(Clone, Copy)]
pub(super) struct LocalMoment<'a> {
    pub(super) now: Timestamp,
    pub(super) zone: &'a TimeZone,
}

impl LocalMoment<'_> {
    /// The row of the item `key`.
    fn row(self, key: &ItemKey, document: &Document) -> NewItem {
        NewItem {
            key: key.clone(),
            document: document.to_stored(),
            assets: None,
            pub_status: document.pub_status(),
            order_time: document.order_time(key.media_type, self.now, self.zone),
            embargoed: document.text("embargoed").map(|text| text.parse().unwrap_or(FOREVER)),
            stored: self.now,
            fresh: false,
        }
    }
}

impl PreparedItem {
    /// Completes `document`, which is that of the item `key`; `assets` are its files, `None` keeps
    /// those that the item has.
    pub(super) fn new(
        key: &ItemKey,
        mut document: Document,
        assets: Option<Vec<Asset>>,
        moment: LocalMoment<'_>,
    ) -> Self {
        let versioned = ["version", "versioncreated"].iter().all(|n| document.text(n).is_some());
        let unversioned = (!versioned).then(|| document.clone());
        document.complete(key, moment.now, moment.zone);
        let item = NewItem { assets, fresh: true, ..moment.row(key, &document) };
        Self { item, document, unversioned, is_single_file: false }
    }

    /// The same for a file that came alone.
    pub(super) fn alone(self) -> Self {
        Self { is_single_file: true, ..self }
    }

    /// Bytes of the document's text.
    pub(super) fn bytes(&self) -> usize {
        self.item.document.len()
    }

    /// Writes the item, its history, and what it replaces.
    pub(super) fn write(&self, tx: &WriteTx<'_>, zone: &TimeZone) -> Result<ItemWrite, DbError> {
        let key = &self.item.key;
        let moment = LocalMoment { now: self.item.stored, zone };
        let old = find(tx, key)?;
        let replaced_keys = self.document.replaced_keys(key);
        if old.is_none() && replaced_keys.is_empty() {
            return Ok(ItemWrite {
                written: tx.write_item(&self.item)?,
                replaced_items: Vec::new(),
            });
        }
        let mut document = self.document.clone();
        if let (Some((_, old)), Some(unversioned)) = (&old, &self.unversioned) {
            document.clone_from(unversioned);
            document.inherit_version(old);
            document.complete(key, moment.now, zone);
        }
        let mut replaced = Vec::new();
        for other in replaced_keys {
            let found = find(tx, &other)?;
            replaced.push((other, found));
        }
        let documents: Vec<_> = replaced
            .iter()
            .map(|(key, found)| {
                (key.clone(), found.as_ref().map(|(_, document)| document.clone()))
            })
            .collect();
        document.write_revisions(key, &documents);
        if let Some((_, old)) = &old {
            keep_replaced_status(tx, key, old, &mut document)?;
        }
        let fresh = old.as_ref().is_none_or(|(_, old)| is_fresh(old, &document));
        let assets = match &old {
            Some(old) => Some(self.files_after(old, &document)),
            None => self.item.assets.clone(),
        };
        let mut row = NewItem { assets, fresh, ..moment.row(key, &document) };
        // A picture that is no newer keeps its place in the order of arrival.
        let by_arrival = match key.media_type {
            MediaType::Image | MediaType::Stockfoto | MediaType::Video => true,
            MediaType::Graphic
            | MediaType::Text
            | MediaType::Feature
            | MediaType::Page
            | MediaType::Planning
            | MediaType::Calendar => false,
        };
        if let Some((item, _)) = old.filter(|_| by_arrival && !fresh) {
            row.order_time = item.order_time;
        }
        let written = tx.write_item(&row)?;
        let turned = match document.pub_status().is_served() {
            true => replace_items(tx, key, replaced, moment)?,
            // What is held back has taken nobody's place yet.
            false => Vec::new(),
        };
        Ok(ItemWrite { written, replaced_items: turned })
    }
}

impl PreparedItem {
    /// The files that the item has from now on.
    ///
    /// Own files that come in take the place of all that were there, and so do files of associated
    /// objects; where none of a kind come in, those that were there stay. A file that came alone
    /// leaves those that it does not replace. Files of an association stay only as long as it names
    /// the same object.
    fn files_after(&self, stored: &(StoredItem, Document), document: &Document) -> Vec<Asset> {
        let (item, old) = stored;
        let uri = |document: &Document, key: &AssociationKey| {
            document.association(key).map(|one| one.get("uri").cloned())
        };
        let stays = |asset: &&Asset| {
            let Some(key) = &asset.association else { return true };
            let now = uri(document, key);
            now.is_some() && now == uri(old, key)
        };
        let mut there = item.assets.iter().filter(stays).cloned();
        let Some(new) = &self.item.assets else { return there.collect() };
        let mut files = new.clone();
        let is_own = |asset: &Asset| asset.association.is_none();
        if !new.iter().any(is_own) {
            files.extend(there.by_ref().filter(is_own));
        } else if self.is_single_file {
            let came = new.iter().any(|asset| asset.extension() == RenditionExtension::Pdf);
            let left = |asset: &Asset| {
                let replaced = new.iter().any(|one| {
                    is_own(asset)
                        && one.name() == asset.name()
                        && one.extension() == asset.extension()
                });
                // What was made of the PDF that was there goes with it.
                !(replaced || came && asset.made)
            };
            files.extend(there.by_ref().filter(left));
        }
        files
    }
}

/// The item `key` with its document.
fn find(tx: &WriteTx<'_>, key: &ItemKey) -> Result<Option<(StoredItem, Document)>, DbError> {
    let Some(item) = tx.as_read().find_item(key)? else { return Ok(None) };
    let damaged = |why: String| DbError::Damaged { what: format!("item {key}"), why };
    let document =
        Document::from_stored(&item.document).map_err(|cause| damaged(cause.to_string()))?;
    Ok(Some((item, document)))
}

/// Whether `document` counts as newly indexed beside `old`, the one that was there: a newer version,
/// or one that is seen again.
fn is_fresh(old: &Document, document: &Document) -> bool {
    let back = !old.pub_status().is_served() && document.pub_status().is_served();
    back || document.is_newer_than(old)
}

/// Keeps an item replaced that is sent again.
///
/// An archive that is sent twice must not bring old revisions back (contract items-17). So an item
/// stays replaced as long as the one that took its place is there, is served and still says
/// so, unless the document itself replaces that one or is taken out.
fn keep_replaced_status(
    tx: &WriteTx<'_>,
    key: &ItemKey,
    old: &Document,
    document: &mut Document,
) -> Result<(), DbError> {
    let Some(by) = old.replaced_by() else { return Ok(()) };
    let stays = old.pub_status() == PubStatus::Replaced
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

/// Turns items into ones that `by` has replaced; gives those that were not so before.
///
/// What was withdrawn or held back stays gone; where two items replace the same one, the later one
/// is named (contract items-17).
fn replace_items(
    tx: &WriteTx<'_>,
    by: &ItemKey,
    replaced: Vec<(ItemKey, Option<(StoredItem, Document)>)>,
    moment: LocalMoment<'_>,
) -> Result<Vec<ItemKey>, DbError> {
    let mut turned = Vec::new();
    for (key, found) in replaced {
        let Some((item, mut document)) = found else { continue };
        let status = document.pub_status();
        let done = status != PubStatus::Usable && document.replaced_by().as_ref() == Some(by);
        if done || !status.is_served() {
            continue;
        }
        document.set_replaced_by(by);
        if status == PubStatus::Commissioned {
            // What only administrators see does not become public by a revision.
            document.set_pub_status(status);
        }
        document.set_stored(moment.now, moment.zone);
        let row = NewItem { order_time: item.order_time, ..moment.row(&key, &document) };
        tx.write_item(&row)?;
        turned.push(key);
    }
    Ok(turned)
}

/// Takes the item `key` out; gives whether it is there.
pub(super) fn withdraw(
    tx: &WriteTx<'_>,
    key: &ItemKey,
    moment: LocalMoment<'_>,
) -> Result<bool, DbError> {
    let Some((item, mut document)) = find(tx, key)? else { return Ok(false) };
    document.set_pub_status(PubStatus::Canceled);
    document.set_stored(moment.now, moment.zone);
    let row = NewItem { order_time: item.order_time, ..moment.row(key, &document) };
    tx.write_item(&row)?;
    Ok(true)
}
