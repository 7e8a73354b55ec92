//! Stores rights overrides. Each change is a row with the whole override, and the newest row of an item
//! counts.
//!
//! The rows survive new versions of their item, and its withdrawal. An item that is sent again keeps its
//! override.

use jiff::Timestamp;

use super::{ALL_BEHIND, ReadTx, WriteTx, damaged, time};
use crate::runtime::limits::RIGHTS_CHANGES_MAX;
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use metadata::RightsMetadata;
use model::ItemKey;
use model::item::parse_stored_rights;

/// The rights overrides of the items of a query, as the column `set_rights`.
pub(super) const SET_RIGHTS: &str = "(SELECT rights FROM item_rights
     WHERE item_rights.media_type = items.media_type AND item_rights.id = items.id
     ORDER BY change_id DESC LIMIT 1) AS set_rights";

/// A change of the rights override of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct RightsChange {
    /// The whole override after the change.
    pub rights: RightsMetadata,
    pub changed: Timestamp,
    /// The name of the user at that time; `None` if unknown.
    pub user_name: Option<String>,
}

/// Reads the column [`SET_RIGHTS`]. An item without a row has no override.
pub(super) fn read_set(row: &dyn ResultRow, what: &str) -> DbResult<RightsMetadata> {
    match row.get::<Option<String>>("set_rights")? {
        Some(text) => parse_set(&text, what),
        None => Ok(RightsMetadata::default()),
    }
}

fn parse_set(text: &str, what: &str) -> DbResult<RightsMetadata> {
    parse_stored_rights(text).map_err(|why| damaged(format!("rights of {what}"), &why))
}

impl ReadTx<'_> {
    /// Finds the rights override of the item `key`. Returns `None` if there is no such item.
    pub fn find_item_rights(&self, key: &ItemKey) -> DbResult<Option<RightsMetadata>> {
        let sql = format!("SELECT {SET_RIGHTS} FROM items WHERE media_type = ?1 AND id = ?2");
        self.tx.find(&sql, params![key.media_type, key.id], |row| {
            read_set(row, &format!("item {key}"))
        })
    }

    /// Lists the changes of the rights override of the item `key`, newest first. Lists at most one more than
    /// [`RIGHTS_CHANGES_MAX`], because the effect of a change follows from the previous one.
    pub fn list_rights_changes(&self, key: &ItemKey) -> DbResult<Vec<RightsChange>> {
        let what = format!("item {key}");
        let sql = "SELECT rights, changed_ms, user_name FROM item_rights
             WHERE media_type = ?1 AND id = ?2 ORDER BY change_id DESC";
        self.tx.list(sql, params![key.media_type, key.id], |row| {
            Ok(RightsChange {
                rights: parse_set(row.text("rights")?, &what)?,
                changed: time(&what, row.get("changed_ms")?)?,
                user_name: row.get("user_name")?,
            })
        })
    }
}

impl WriteTx<'_> {
    /// Stores the override of the item `key`. Removes its oldest changes, which
    /// [`ReadTx::list_rights_changes`] does not list.
    pub fn write_item_rights(&self, key: &ItemKey, change: &RightsChange) -> DbResult<()> {
        let ItemKey { media_type, id } = key;
        let sql = "INSERT INTO item_rights (media_type, id, rights, changed_ms, user_name)
             VALUES (?1, ?2, ?3, ?4, ?5)";
        let rights = change.rights.to_json().to_string();
        let values = params![media_type, id, rights, change.changed, change.user_name];
        self.tx.run(sql, values)?;
        let sql = format!(
            "DELETE FROM item_rights WHERE change_id IN
                 (SELECT change_id FROM item_rights WHERE media_type = ?1 AND id = ?2
                  ORDER BY change_id DESC {ALL_BEHIND} ?3)"
        );
        self.tx.run(&sql, params![media_type, id, RIGHTS_CHANGES_MAX + 1])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runtime::clock;
    use crate::storage::database::{Db, NewItem};
    use model::item::PubStatus;

    #[test]
    fn what_is_set_survives_a_new_version_of_the_item() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let key: ItemKey = "image/one".parse().unwrap();
        let item = NewItem {
            key: key.clone(),
            document: "{}".to_owned(),
            assets: None,
            pub_status: PubStatus::Usable,
            order_time: clock::now(),
            embargoed: None,
            stored: clock::now(),
            is_newly_indexed: true,
        };
        let rights =
            RightsMetadata::from_json(&json!({ "dataMining": "DMI-PROHIBITED" })).unwrap();
        let change =
            RightsChange { rights: rights.clone(), changed: clock::now(), user_name: None };
        db.write_blocking(move |tx| {
            tx.write_item(&item)?;
            tx.write_item_rights(&item.key, &change)?;
            tx.write_item(&item)
        })
        .unwrap();
        let unknown: ItemKey = "image/two".parse().unwrap();
        let read = db.read_blocking(move |tx| {
            let (item, alone) = (tx.find_item(&key)?, tx.find_item_rights(&key)?);
            Ok((item.map(|item| item.rights), alone, tx.find_item_rights(&unknown)?))
        });
        assert_eq!(read.unwrap(), (Some(rights.clone()), Some(rights), None));
    }

    #[test]
    fn the_newest_changes_of_an_item_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let (key, other): (ItemKey, ItemKey) =
            ("image/one".parse().unwrap(), "image/two".parse().unwrap());
        let change = |number: usize| RightsChange {
            rights: RightsMetadata::from_json(&json!({ "jobid": number.to_string() })).unwrap(),
            changed: Timestamp::from_second(1_700_000_000).unwrap(),
            user_name: number.is_multiple_of(2).then(|| "editor".to_owned()),
        };
        let changed = key.clone();
        db.write_blocking(move |tx| {
            tx.write_item_rights(&other, &change(0))?;
            (0..RIGHTS_CHANGES_MAX + 3)
                .try_for_each(|number| tx.write_item_rights(&changed, &change(number)))
        })
        .unwrap();
        let found = db.read_blocking(move |tx| tx.list_rights_changes(&key)).unwrap();
        assert_eq!(found.len(), RIGHTS_CHANGES_MAX + 1);
        assert_eq!(found[0], change(RIGHTS_CHANGES_MAX + 2));
        assert_eq!(found[1], change(RIGHTS_CHANGES_MAX + 1));
        let other: ItemKey = "image/two".parse().unwrap();
        let found = db.read_blocking(move |tx| tx.list_rights_changes(&other)).unwrap();
        assert_eq!(found, [change(0)]);
    }
}
