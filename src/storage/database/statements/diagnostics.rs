//! Stores the newest ingest errors and slow searches of all nodes, for operators.

use jiff::Timestamp;
use strum::IntoEnumIterator;

use super::{ReadTx, WriteTx, time};
use crate::storage::database::engine::params;
use crate::storage::database::error::DbResult;
use crate::storage::diagnostics::{DiagnosticKind, DiagnosticRecord};

/// Diagnostic records of one kind that the table keeps, the newest ones.
const DIAGNOSTICS_KEPT_MAX: usize = 1000;

/// A diagnostic record with the node that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDiagnostic {
    pub record: DiagnosticRecord,
    /// The name of the node, or `command`.
    pub node: String,
}

impl ReadTx<'_> {
    /// Lists `size` records of a kind after the `start` newest ones, newest first.
    pub fn list_diagnostics(
        &self,
        kind: DiagnosticKind,
        start: usize,
        size: usize,
    ) -> DbResult<Vec<StoredDiagnostic>> {
        let sql = "SELECT at_ms, node, subject, detail, duration_ms, count FROM diagnostics
             WHERE kind = ?1 ORDER BY record_id DESC LIMIT ?2 OFFSET ?3";
        self.tx.list(sql, params![kind, size, start], |row| {
            Ok(StoredDiagnostic {
                record: DiagnosticRecord {
                    kind,
                    at: time("diagnostics", row.get("at_ms")?)?,
                    subject: row.get("subject")?,
                    detail: row.get("detail")?,
                    duration_ms: row.get("duration_ms")?,
                    count: row.get("count")?,
                },
                node: row.get("node")?,
            })
        })
    }

    /// Counts the records of a kind since a time, with their repetitions.
    pub fn count_diagnostics(&self, kind: DiagnosticKind, since: Timestamp) -> DbResult<u64> {
        // `sum` would be a number of a different type in PostgreSQL.
        let sql = "SELECT CAST(coalesce(sum(count), 0) AS BIGINT) FROM diagnostics
             WHERE kind = ?1 AND at_ms >= ?2";
        self.tx.load_value(sql, params![kind, since])
    }
}

impl WriteTx<'_> {
    /// Adds records of a node, and removes the oldest ones of each kind beyond [`DIAGNOSTICS_KEPT_MAX`].
    pub fn insert_diagnostics(&self, records: &[DiagnosticRecord], node: &str) -> DbResult<()> {
        for record in records {
            let sql =
                "INSERT INTO diagnostics (kind, at_ms, node, subject, detail, duration_ms, count)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let DiagnosticRecord { kind, at, subject, detail, duration_ms, count } = record;
            let values = params![kind, at, node, subject, detail, duration_ms, count];
            self.tx.run(sql, values)?;
        }
        self.trim_diagnostics(DIAGNOSTICS_KEPT_MAX)
    }

    fn trim_diagnostics(&self, max: usize) -> DbResult<()> {
        for kind in DiagnosticKind::iter() {
            // If there are fewer records, the subquery finds no number, and no record is removed.
            let sql = "DELETE FROM diagnostics WHERE kind = ?1 AND record_id <=
                     (SELECT record_id FROM diagnostics WHERE kind = ?1
                      ORDER BY record_id DESC LIMIT 1 OFFSET ?2)";
            self.tx.run(sql, params![kind, max])?;
        }
        Ok(())
    }

    /// Removes records from before `before`, at most `limit`. Returns their number.
    pub fn sweep_diagnostics(&self, before: Timestamp, limit: usize) -> DbResult<usize> {
        self.sweep("diagnostics", "record_id", "at_ms", before, limit)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::storage::database::Db;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn listed(db: &Db, kind: DiagnosticKind) -> Vec<String> {
        let found = db.read_blocking(move |tx| tx.list_diagnostics(kind, 0, 100)).unwrap();
        found.into_iter().map(|one| format!("{} {}", one.node, one.record.subject)).collect()
    }

    #[test]
    fn words_of_the_table_stay_the_same() {
        let words: Vec<_> = DiagnosticKind::iter().map(DiagnosticKind::as_str).collect();
        assert_eq!(words, ["ingest-error", "slow-search"]);
    }

    #[test]
    fn the_newest_records_of_each_kind_stay_and_old_ones_go() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        db.write_blocking(|tx| {
            for number in 0..5 {
                let record = DiagnosticRecord::ingest_error(number, "is empty", at(number));
                tx.insert_diagnostics(&[record], "a")?;
            }
            let duration = Duration::from_secs(2);
            let search = DiagnosticRecord::slow_search("berg", "type=_all", duration, at(0));
            tx.insert_diagnostics(&[search], "b")?;
            tx.trim_diagnostics(3)
        })
        .unwrap();
        let (errors, searches) = (DiagnosticKind::IngestError, DiagnosticKind::SlowSearch);
        assert_eq!(listed(&db, errors), ["a 4", "a 3", "a 2"]);
        assert_eq!(listed(&db, searches), ["b berg"]);
        let count = |kind, since| {
            db.read_blocking(move |tx| tx.count_diagnostics(kind, at(since))).unwrap()
        };
        assert_eq!((count(errors, 0), count(errors, 4), count(searches, 1)), (3, 1, 0));
        let sweep = |before: i64| {
            db.write_blocking(move |tx| tx.sweep_diagnostics(at(before), 1)).unwrap()
        };
        assert_eq!((sweep(3), sweep(3), sweep(3)), (1, 1, 0));
        assert_eq!(listed(&db, errors), ["a 4", "a 3"]);
        assert_eq!(listed(&db, searches), Vec::<String>::new());
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        let mut record =
            DiagnosticRecord::slow_search("a OR b", "s=60", Duration::from_millis(1234), at(7));
        record.count = 4;
        let written = record.clone();
        db.write_blocking(move |tx| tx.insert_diagnostics(&[written], "web-1")).unwrap();
        let found =
            db.read_blocking(|tx| tx.list_diagnostics(DiagnosticKind::SlowSearch, 0, 9)).unwrap();
        assert_eq!(found, [StoredDiagnostic { record, node: "web-1".to_owned() }]);
    }
}
