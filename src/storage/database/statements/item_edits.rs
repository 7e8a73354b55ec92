//! Stores the changes of items by editors. Each change is a row, with the user and the values before and
//! after.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ALL_BEHIND, ReadTx, WriteTx, parse_json, print_json, time};
use crate::storage::database::engine::params;
use crate::storage::database::error::DbResult;
use model::ItemKey;

/// Changes of one item by editors that are remembered; the oldest are removed.
const ITEM_EDITS_MAX: usize = 100;

/// The change of one property of a document, with values shortened for readers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertyChange {
    pub property: String,
    /// The value before; `None` if the property was absent.
    pub old: Option<String>,
    /// The value after; `None` if the property was removed.
    pub new: Option<String>,
}

/// A change of an item by an editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemEdit {
    /// The `version` of the document after the change.
    pub version: String,
    pub changes: Vec<PropertyChange>,
    pub changed: Timestamp,
    /// The name of the user at that time; `None` if unknown.
    pub user_name: Option<String>,
}

impl ReadTx<'_> {
    /// Lists the changes of the item `key` by editors, newest first.
    pub fn list_item_edits(&self, key: &ItemKey) -> DbResult<Vec<ItemEdit>> {
        let what = format!("edits of item {key}");
        let sql = "SELECT version, changes, changed_ms, user_name FROM item_edits
             WHERE media_type = ?1 AND id = ?2 ORDER BY edit_id DESC";
        self.tx.list(sql, params![key.media_type, key.id], |row| {
            Ok(ItemEdit {
                version: row.get("version")?,
                changes: parse_json(&what, row.text("changes")?)?,
                changed: time(&what, row.get("changed_ms")?)?,
                user_name: row.get("user_name")?,
            })
        })
    }
}

impl WriteTx<'_> {
    /// Records a change of the item `key`, and removes all but its [`ITEM_EDITS_MAX`] newest changes.
    pub fn write_item_edit(&self, key: &ItemKey, edit: &ItemEdit) -> DbResult<()> {
        let ItemKey { media_type, id } = key;
        let changes = print_json(&format!("edits of item {key}"), &edit.changes)?;
        let sql =
            "INSERT INTO item_edits (media_type, id, version, changes, changed_ms, user_name)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let values = params![media_type, id, edit.version, changes, edit.changed, edit.user_name];
        self.tx.run(sql, values)?;
        let sql = format!(
            "DELETE FROM item_edits WHERE edit_id IN
                 (SELECT edit_id FROM item_edits WHERE media_type = ?1 AND id = ?2
                  ORDER BY edit_id DESC {ALL_BEHIND} ?3)"
        );
        self.tx.run(&sql, params![media_type, id, ITEM_EDITS_MAX])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::database::Db;

    #[test]
    fn the_newest_edits_of_an_item_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let key: ItemKey = "image/one".parse().unwrap();
        let edit = |number: usize| ItemEdit {
            version: number.to_string(),
            changes: vec![PropertyChange {
                property: "headline".to_owned(),
                old: None,
                new: Some(format!("text {number}")),
            }],
            changed: Timestamp::from_second(1_700_000_000).unwrap(),
            user_name: Some("editor".to_owned()),
        };
        let changed = key.clone();
        db.write_blocking(move |tx| {
            tx.write_item_edit(&"image/two".parse().unwrap(), &edit(0))?;
            (0..ITEM_EDITS_MAX + 3)
                .try_for_each(|number| tx.write_item_edit(&changed, &edit(number)))
        })
        .unwrap();
        let found = db.read_blocking(move |tx| tx.list_item_edits(&key)).unwrap();
        assert_eq!(found.len(), ITEM_EDITS_MAX);
        assert_eq!((&found[0], &found[1]), (&edit(ITEM_EDITS_MAX + 2), &edit(ITEM_EDITS_MAX + 1)));
        let other: ItemKey = "image/two".parse().unwrap();
        assert_eq!(db.read_blocking(move |tx| tx.list_item_edits(&other)).unwrap(), [edit(0)]);
    }
}
