//! Records the store of originals that belongs to the archive.

use super::{ReadTx, WriteTx};
use crate::storage::database::engine::params;
use crate::storage::database::error::DbResult;

/// The name of the row in the table `state` with the name of the store that belongs to this archive.
const STORE: &str = "store";
/// The name of the row with the id of that store.
const STORE_ID: &str = "store id";

/// The store of originals that a database names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreClaim {
    /// The folder or bucket, as messages name it.
    pub name: String,
    /// The id in the mark of the store; `None` if it had none yet.
    pub store_id: Option<String>,
}

impl ReadTx<'_> {
    /// Returns the store that belongs to this archive, if one is recorded.
    pub fn claimed_store(&self) -> DbResult<Option<StoreClaim>> {
        let sql = "SELECT value FROM state WHERE name = ?1";
        let name: Option<String> = self.tx.find_value(sql, params![STORE])?;
        let Some(name) = name else { return Ok(None) };
        let store_id = self.tx.find_value(sql, params![STORE_ID])?;
        Ok(Some(StoreClaim { name, store_id }))
    }
}

impl WriteTx<'_> {
    /// Records that this store belongs to this archive, replacing an earlier one.
    pub fn replace_store(&self, claim: &StoreClaim) -> DbResult<()> {
        let sql = "DELETE FROM state WHERE name = ?1 OR name = ?2";
        self.tx.execute(sql, params![STORE, STORE_ID])?;
        let StoreClaim { name, store_id } = claim;
        let sql = "INSERT INTO state (name, value) VALUES (?1, ?2)";
        self.tx.execute(sql, params![STORE, name.as_str()])?;
        if let Some(id) = store_id {
            self.tx.execute(sql, params![STORE_ID, id.as_str()])?;
        }
        Ok(())
    }

    /// Records that this store belongs to this archive, unless one is recorded already. Returns the store
    /// recorded before.
    pub fn claim_store(&self, claim: &StoreClaim) -> DbResult<Option<StoreClaim>> {
        let existing = self.as_read().claimed_store()?;
        if existing.is_none() {
            self.replace_store(claim)?;
        }
        Ok(existing)
    }
}
