//! Records the store of originals that belongs to the archive.

use super::{ReadTx, WriteTx};
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
        let Some(name) = self.find_state(STORE)? else { return Ok(None) };
        Ok(Some(StoreClaim { name, store_id: self.find_state(STORE_ID)? }))
    }
}

impl WriteTx<'_> {
    /// Records that this store belongs to this archive, replacing an earlier one.
    pub fn replace_store(&self, claim: &StoreClaim) -> DbResult<()> {
        self.write_state(STORE, &claim.name)?;
        self.set_state(STORE_ID, claim.store_id.as_deref())
    }

    /// Records that this store belongs to this archive, unless one is recorded already. Returns the store
    /// recorded before.
    pub fn claim_store(&self, claim: &StoreClaim) -> DbResult<Option<StoreClaim>> {
        let existing = self.claimed_store()?;
        if existing.is_none() {
            self.replace_store(claim)?;
        }
        Ok(existing)
    }
}
