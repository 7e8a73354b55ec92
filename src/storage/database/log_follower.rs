//! Follows the item log and the account log, which all processes write. A cheap poll detects commits, and the
//! logs are read only after one.

use std::sync::Arc;

use super::account_change::AccountChange;
use super::engine::{
    ConnectionPurpose, DatabaseEngine, EngineConnection, EngineTransaction, ResultRow, params,
};
use super::error::DbResult;
use model::ItemKey;

/// Rows of the item log that the follower reads at a time.
const LOG_ROWS_MAX: usize = 1000;

/// The changes since the last poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedChanges {
    /// Items that were written, in the order of the log.
    pub items: Vec<ItemKey>,
    pub accounts: Vec<AccountChange>,
    /// True if rows already read no longer exist, for example after a failover to a standby that lacked them.
    /// Any cached item may be outdated, because new rows reuse the lost numbers.
    pub has_lost_rows: bool,
    /// True if there may be more changes, which the next call returns.
    pub has_more: bool,
}

/// The ends of the logs. Sweeps keep the newest row, so an end that moves back means lost rows.
const ENDS: &str = "SELECT (SELECT coalesce(max(seq), 0) FROM item_log) AS item_seq,
     (SELECT coalesce(max(seq), 0) FROM account_log) AS account_seq";

/// Follows the item log and the account log on a dedicated connection.
pub struct LogFollower {
    connection: Box<dyn EngineConnection>,
    data_version: i64,
    /// The row of the item log up to which changes were returned.
    pub seq: i64,
    account_seq: i64,
}

impl LogFollower {
    pub(super) fn open(engine: &Arc<dyn DatabaseEngine>) -> DbResult<Self> {
        let mut connection = Arc::clone(engine).open(ConnectionPurpose::Follow)?;
        let (seq, account_seq) = connection.query(ends)?;
        Ok(Self { connection, data_version: -1, seq, account_seq })
    }

    /// Returns the changes since the last call, at most [`LOG_ROWS_MAX`] of a kind. The next call returns the
    /// rest. If the logs end before the rows already read, everything may have changed, and the follower
    /// continues from their ends.
    pub fn changes(&mut self) -> DbResult<FollowedChanges> {
        // Read before the logs, so that the next call finds a commit in between.
        let data_version = self.connection.data_version()?;
        if data_version == self.data_version {
            return Ok(FollowedChanges::default());
        }
        let after = self.seq;
        let accounts_after = self.account_seq;
        let (changes, seq, account_seq) = self.connection.query(|tx| {
            let mut changes = FollowedChanges::default();
            let (seq, account_seq) = ends(tx)?;
            if seq < after || account_seq < accounts_after {
                changes.has_lost_rows = true;
                changes.accounts.push(AccountChange::Everything);
                return Ok((changes, seq, account_seq));
            }
            let sql =
                "SELECT seq, media_type, id FROM item_log WHERE seq > ?1 ORDER BY seq LIMIT ?2";
            let (seq, has_more_items) = read_log_after(tx, sql, after, |row| {
                // No cache has an entry for an invalid key.
                let key =
                    format!("{}/{}", row.text("media_type")?, row.text("id")?).parse::<ItemKey>();
                changes.items.extend(key.ok());
                Ok(())
            })?;
            let sql = "SELECT seq, kind, id FROM account_log WHERE seq > ?1 ORDER BY seq LIMIT ?2";
            let (account_seq, has_more_accounts) =
                read_log_after(tx, sql, accounts_after, |row| {
                    let change = AccountChange::parse(row.text("kind")?, row.text("id")?);
                    changes.accounts.push(change);
                    Ok(())
                })?;
            changes.has_more = has_more_items || has_more_accounts;
            Ok((changes, seq, account_seq))
        })?;
        self.seq = seq;
        self.account_seq = account_seq;
        // If rows remain, the version stays old, so that the next call reads them even without a further
        // commit.
        if !changes.has_more {
            self.data_version = data_version;
        }
        Ok(changes)
    }
}

/// Returns the newest rows of the item log and of the account log.
fn ends(tx: &dyn EngineTransaction) -> DbResult<(i64, i64)> {
    tx.load(ENDS, params![], |row| Ok((row.get("item_seq")?, row.get("account_seq")?)))
}

/// Reads a log after the row `after`. Returns the last row that was read, and whether there may be more.
fn read_log_after(
    tx: &dyn EngineTransaction,
    sql: &str,
    after: i64,
    mut each: impl FnMut(&dyn ResultRow) -> DbResult<()>,
) -> DbResult<(i64, bool)> {
    let read: Vec<i64> = tx.list(sql, params![after, LOG_ROWS_MAX], |row| {
        each(row)?;
        row.get("seq")
    })?;
    Ok((read.last().copied().unwrap_or(after), read.len() >= LOG_ROWS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::database::Db;

    #[test]
    fn lost_rows_are_reported_and_reading_continues() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let run = |sql: String| db.write_blocking(move |tx| tx.run_sql(&sql)).unwrap();
        let item = |seq: i64, id: &str| {
            run(format!(
                "INSERT INTO item_log (seq, media_type, id, change, at_ms)
                 VALUES ({seq}, 'text', '{id}', 'written', 0)"
            ));
        };
        let account = |seq: i64, kind: &str| {
            run(format!(
                "INSERT INTO account_log (seq, kind, id, at_ms) VALUES ({seq}, '{kind}', '7', 0)"
            ));
        };
        let mut follower = db.log_follower().unwrap();
        item(1, "a");
        item(2, "b");
        item(3, "c");
        account(1, "user");
        let change = follower.changes().unwrap();
        assert_eq!(
            (change.items.len(), change.accounts.len(), change.has_lost_rows),
            (3, 1, false)
        );
        assert_eq!(follower.seq, 3);
        let accounts = vec![AccountChange::Everything];
        let everything =
            FollowedChanges { accounts, has_lost_rows: true, ..FollowedChanges::default() };
        // The newest items.
        run("DELETE FROM item_log WHERE seq > 1".to_owned());
        assert_eq!(follower.changes().unwrap(), everything);
        assert_eq!((follower.seq, follower.changes().unwrap()), (1, FollowedChanges::default()));
        // Their numbers are assigned again.
        item(2, "d");
        let items = vec!["text/d".parse().unwrap()];
        assert_eq!(
            follower.changes().unwrap(),
            FollowedChanges { items, ..FollowedChanges::default() }
        );
        assert_eq!(follower.seq, 2);
        // Changes of accounts.
        account(2, "user");
        assert_eq!(follower.changes().unwrap().accounts.len(), 1);
        run("DELETE FROM account_log WHERE seq > 1".to_owned());
        assert_eq!(follower.changes().unwrap(), everything);
        account(2, "user");
        let change = follower.changes().unwrap();
        assert_eq!((change.accounts.len(), change.has_lost_rows, follower.seq), (1, false, 2));
    }
}
