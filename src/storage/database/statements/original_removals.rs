//! Coordinates the removal of originals with ingests in flight, of all processes.
//!
//! An ingest may find its original in the store long before its transaction names it. So a removal writes a
//! row before and after, and each ingest compares the row at its start with the row in its transaction. If
//! they differ, it checks that its originals still exist.

use super::{ReadTx, WriteTx};
use crate::storage::database::error::DbResult;

/// The name of the row in the table `state`.
const REMOVAL: &str = "removal of originals";
/// The prefix of the row's value while a removal is in progress, or after it was interrupted.
const IN_PROGRESS: &str = "in progress ";

/// The removals of originals so far, as one transaction sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalRemovals(Option<String>);

impl OriginalRemovals {
    /// Returns whether an original that existed at this state may be missing at the later state `now`.
    pub fn may_have_continued(&self, now: &Self) -> bool {
        let in_progress = now.0.as_ref().is_some_and(|value| value.starts_with(IN_PROGRESS));
        in_progress || self != now
    }
}

impl ReadTx<'_> {
    /// Returns the state of the removals of originals.
    pub fn original_removals(&self) -> DbResult<OriginalRemovals> {
        self.find_state(REMOVAL).map(OriginalRemovals)
    }
}

impl WriteTx<'_> {
    /// Announces a removal with the unique id `id`. Originals are removed only in a later transaction in
    /// which [`WriteTx::may_remove_originals`] is true and which ends with [`WriteTx::end_removal`].
    pub fn begin_removal(&self, id: &str) -> DbResult<()> {
        self.write_state(REMOVAL, &format!("{IN_PROGRESS}{id}"))
    }

    /// Returns whether the removal with this id is announced, and no other removal has ended since.
    pub fn may_remove_originals(&self, id: &str) -> DbResult<bool> {
        let OriginalRemovals(now) = self.original_removals()?;
        Ok(now == Some(format!("{IN_PROGRESS}{id}")))
    }

    /// Ends the removal with this id.
    pub fn end_removal(&self, id: &str) -> DbResult<()> {
        self.write_state(REMOVAL, id)
    }
}

#[cfg(test)]
mod tests {
    use super::OriginalRemovals;
    use crate::storage::database::Db;

    fn state(db: &Db) -> OriginalRemovals {
        db.read_blocking(|tx| tx.original_removals()).unwrap()
    }

    fn begin(db: &Db, id: &'static str) {
        db.write_blocking(move |tx| tx.begin_removal(id)).unwrap();
    }

    fn may_remove(db: &Db, id: &'static str) -> bool {
        db.write_blocking(move |tx| tx.may_remove_originals(id)).unwrap()
    }

    fn end(db: &Db, id: &'static str) {
        db.write_blocking(move |tx| tx.end_removal(id)).unwrap();
    }

    #[test]
    fn an_ingest_notices_a_removal_that_began_before_or_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        let before = state(&db);
        assert!(!before.may_have_continued(&state(&db)) && !may_remove(&db, "one"));
        begin(&db, "one");
        let meanwhile = state(&db);
        assert!(before.may_have_continued(&meanwhile));
        assert!(meanwhile.may_have_continued(&state(&db)));
        assert!(may_remove(&db, "one"));
        // A second removal is announced, so the first one must announce itself again.
        begin(&db, "two");
        assert!(may_remove(&db, "two") && !may_remove(&db, "one"));
        end(&db, "two");
        assert!(meanwhile.may_have_continued(&state(&db)) && !may_remove(&db, "two"));
        let after = state(&db);
        assert!(!after.may_have_continued(&state(&db)));
    }
}
