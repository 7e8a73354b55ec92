//! Checks the content of the database: the pages of its file, references between rows, secrets and items.

use super::{ReadTx, time};
use crate::runtime::limits::CHECK_FLAWS_MAX;
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use crate::storage::database::facts::{DatabaseFacts, DatabaseFlaw};
use model::item::{Asset, Document};
use model::{ContentHash, ItemKey};

/// An original that an item names: a media file as it was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedOriginal {
    pub hash: ContentHash,
    /// Expected length, in bytes.
    pub length: u64,
    /// Number of the item's version, which is the `item_id` of its row.
    pub version: i64,
}

/// The findings of a check of one state of the database.
#[derive(Debug, Default)]
pub struct DatabaseInspection {
    /// The flaws found, at most [`CHECK_FLAWS_MAX`] of each query and a note that there are more.
    pub flaws: Vec<DatabaseFlaw>,
    /// The originals, each once, in the order of their hashes. An entry has 48 bytes.
    pub originals: Vec<NamedOriginal>,
    /// True if all items were read, so that the list of originals is complete.
    pub is_complete: bool,
}

impl DatabaseInspection {
    fn record(&mut self, outcome: DbResult<Vec<DatabaseFlaw>>) {
        // Unreadable content is reported as a flaw, and the check continues.
        self.flaws
            .extend(outcome.unwrap_or_else(|cause| vec![DatabaseFlaw::Page(cause.to_string())]));
    }
}

/// Tables whose rows name an item that must exist: items are replaced and withdrawn, never removed. Each has
/// its name, the column that identifies a row, and the column of the item's id.
const ITEM_REFERENCES: [(&str, &str, &str); 5] = [
    ("orders", "order_id", "item_id"),
    ("deliveries", "delivery_id", "item_id"),
    ("queued_items", "position", "id"),
    ("collection_items", "number", "id"),
    ("item_rights", "change_id", "id"),
];

impl ReadTx<'_> {
    /// Returns the facts that the engine reports about itself.
    pub fn database_facts(&self) -> DbResult<DatabaseFacts> {
        self.tx.facts()
    }

    /// Runs all checks. They last as long as reading the whole database.
    pub fn inspect(&self) -> DatabaseInspection {
        let mut found = DatabaseInspection { is_complete: true, ..DatabaseInspection::default() };
        found.record(self.tx.page_flaws());
        found.record(self.reference_flaws());
        found.record(self.secret_flaws());
        // Flaws of rows are in `found` already; this adds an error of the query itself.
        let items = self.add_originals(&mut found, true).map(|()| Vec::new());
        found.record(items);
        // One damaged page makes several of these checks fail with the same error.
        found.flaws.dedup();
        found
    }

    /// Lists the originals that the items name, and the items whose files cannot be determined.
    pub fn named_originals(&self) -> DbResult<(Vec<NamedOriginal>, Vec<DatabaseFlaw>)> {
        let mut found = DatabaseInspection::default();
        self.add_originals(&mut found, false)?;
        Ok((found.originals, found.flaws))
    }

    /// Lists the originals of the `items_max` oldest and the `items_max` newest items that have any.
    pub fn sample_originals(&self, items_max: usize) -> DbResult<Vec<ContentHash>> {
        let mut found = Vec::new();
        for order in ["ASC", "DESC"] {
            let sql = format!(
                "SELECT assets FROM items WHERE assets <> '[]' ORDER BY item_id {order} LIMIT ?1"
            );
            let lists: Vec<String> = self.tx.list_values(&sql, params![items_max])?;
            // An unreadable list names no originals. The command `check` reports it.
            let assets =
                lists.iter().filter_map(|list| serde_json::from_str::<Vec<Asset>>(list).ok());
            found.extend(assets.flatten().map(|asset| asset.blob()));
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn reference_flaws(&self) -> DbResult<Vec<DatabaseFlaw>> {
        let mut flaws = self.tx.foreign_key_violations()?;
        // No foreign key covers these: a new version deletes the item's row and inserts a new one.
        for (table, number, id) in ITEM_REFERENCES {
            let sql = format!(
                "SELECT CAST({number} AS TEXT) AS number, media_type || '/' || {id} AS item
                 FROM {table} AS naming
                 WHERE NOT EXISTS (SELECT 1 FROM items
                     WHERE items.media_type = naming.media_type AND items.id = naming.{id})"
            );
            flaws.extend(self.tx.list_flaws(&sql, &format!("rows of {table}"), |row| {
                let number = row.lossy("number")?;
                let item = row.lossy("item")?;
                Ok(DatabaseFlaw::Reference(format!("{table} {number}: there is no item {item}")))
            })?);
        }
        Ok(flaws)
    }

    /// Adds the originals of all items to `found`, and checks the items themselves if `checks_items` is set. `found` is
    /// incomplete if the originals of an item cannot be determined.
    fn add_originals(&self, found: &mut DatabaseInspection, checks_items: bool) -> DbResult<()> {
        let read = self.read_items(found, checks_items);
        found.is_complete &= read.is_ok();
        // Also after an error, for the rows read until then.
        found.originals.sort_unstable();
        found.originals.dedup_by_key(|original| (original.hash, original.length));
        read
    }

    fn read_items(&self, found: &mut DatabaseInspection, checks_items: bool) -> DbResult<()> {
        // Documents are most of the table, and their originals are listed without them.
        let document = if checks_items { "document" } else { "'' AS document" };
        let sql = format!(
            "SELECT item_id, media_type, id, assets, {document}, pubstatus, order_ms, stored_ms,
                 embargoed_ms
             FROM items ORDER BY item_id"
        );
        let mut flaws = 0;
        self.tx.each(&sql, params![], |row| {
            let assets = text(row, "assets", "list of files").and_then(|assets| {
                serde_json::from_str::<Vec<Asset>>(assets)
                    .map_err(|why| format!("its list of files cannot be read: {why}"))
            });
            let read = match assets {
                Ok(assets) => {
                    let version = row.get("item_id")?;
                    found.originals.extend(assets.iter().map(|asset| NamedOriginal {
                        hash: asset.blob(),
                        length: asset.length(),
                        version,
                    }));
                    if checks_items { check_item_row(row) } else { Ok(()) }
                }
                Err(why) => {
                    // With unknown originals, no file may be called an orphan: one that no item names.
                    found.is_complete = false;
                    Err(why)
                }
            };
            if let Err(why) = read {
                // Counted apart from `found.flaws`, which holds flaws of other kinds as well.
                if flaws < CHECK_FLAWS_MAX {
                    let item = format!("item {}/{}", row.lossy("media_type")?, row.lossy("id")?);
                    found.flaws.push(DatabaseFlaw::Row(format!("{item}: {why}")));
                } else if flaws == CHECK_FLAWS_MAX {
                    found.flaws.push(DatabaseFlaw::Truncated(
                        "there are more such rows of items".to_owned(),
                    ));
                }
                flaws += 1;
            }
            Ok(())
        })
    }
}

/// Reads the text of a column. `what` describes it in the error.
fn text<'a>(row: &'a dyn ResultRow, column: &str, what: &str) -> Result<&'a str, String> {
    row.text(column).map_err(|why| format!("its {what} cannot be read: {why}"))
}

/// Checks that the row of an item can be read and has the status of its document. The error describes the fault.
fn check_item_row(row: &dyn ResultRow) -> Result<(), String> {
    let media_type = text(row, "media_type", "media type")?;
    let id = text(row, "id", "id")?;
    let status = text(row, "pubstatus", "status")?;
    ItemKey::parse(&format!("{media_type}/{id}")).map_err(|why| why.to_string())?;
    let document = Document::from_stored(text(row, "document", "document")?)
        .map_err(|why| format!("its document cannot be read: {why}"))?;
    // Queries filter by the column, so a difference would hide or expose the item.
    let document_status = document.pub_status().as_str();
    if document_status != status {
        return Err(format!("its document has the status {document_status}, its row {status}"));
    }
    for column in ["order_ms", "stored_ms", "embargoed_ms"] {
        let ms: DbResult<Option<i64>> = row.get(column);
        if let Some(ms) = ms.map_err(|why| format!("a time cannot be read: {why}"))? {
            time("its row", ms).map_err(|why| why.to_string())?;
        }
    }
    Ok(())
}
