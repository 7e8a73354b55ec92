//! Collects diagnostic records, ingest errors and slow searches that operators look up, until they are written to the
//! database.
//!
//! Code that meets such an event calls [`DiagnosticLog::record`], which does not wait for the database. `app` writes
//! the pending records every few seconds. Memory and table are bounded: the log holds [`DIAGNOSTICS_PENDING_MAX`]
//! records and counts those that it drops, equal events become one record with a count, and the table keeps the newest
//! records of each kind. A record does not name the user: it helps to find a cause, and the audit log says who did
//! what.

use std::{fmt::Display, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use strum::{EnumIter, IntoStaticStr};

use model::shorten;

/// Diagnostic records that wait to be written, about a kilobyte each; more are counted and dropped.
const DIAGNOSTICS_PENDING_MAX: usize = 200;
/// Characters of the subject of a diagnostic record; the rest is cut off.
const DIAGNOSTIC_SUBJECT_CHARS_MAX: usize = 300;
/// Characters of the detail of a diagnostic record; the rest is cut off.
const DIAGNOSTIC_DETAIL_CHARS_MAX: usize = 600;

/// The kind of a diagnostic record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(EnumIter, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum DiagnosticKind {
    /// A file or an upload that was not ingested.
    IngestError,
    /// A search that lasted longer than the setting `search.slow_ms` allows.
    SlowSearch,
}

model::impl_as_str!(DiagnosticKind);

/// An ingest error or a slow search, which operators look up later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiagnosticRecord {
    pub kind: DiagnosticKind,
    /// The time of the last occurrence.
    pub at: Timestamp,
    /// The file or item that was not ingested, or the query of the search.
    pub subject: String,
    /// The error of ingest, or the parameters of the search.
    pub detail: String,
    /// The longest duration of all occurrences, in milliseconds; `None` for an ingest error.
    pub duration_ms: Option<u32>,
    /// Number of occurrences so far.
    pub count: u32,
}

impl DiagnosticRecord {
    /// Creates the record of a file or an item that was not ingested because of `error`.
    pub fn ingest_error(subject: impl Display, error: impl Display, at: Timestamp) -> Self {
        Self::new(DiagnosticKind::IngestError, &subject, &error, at)
    }

    /// Creates the record of a search that lasted `duration`.
    pub fn slow_search(
        query: impl Display,
        parameters: impl Display,
        duration: Duration,
        at: Timestamp,
    ) -> Self {
        let duration_ms = u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
        let record = Self::new(DiagnosticKind::SlowSearch, &query, &parameters, at);
        Self { duration_ms: Some(duration_ms), ..record }
    }

    fn new(
        kind: DiagnosticKind,
        subject: &dyn Display,
        detail: &dyn Display,
        at: Timestamp,
    ) -> Self {
        Self {
            kind,
            at,
            subject: short_line(&subject.to_string(), DIAGNOSTIC_SUBJECT_CHARS_MAX),
            detail: short_line(&detail.to_string(), DIAGNOSTIC_DETAIL_CHARS_MAX),
            duration_ms: None,
            count: 1,
        }
    }

    /// Returns whether both record the same event, at different times.
    fn is_same_event(&self, other: &Self) -> bool {
        (self.kind, &self.subject, &self.detail) == (other.kind, &other.subject, &other.detail)
    }

    /// Adds the occurrences of an equal event.
    fn add_occurrences(&mut self, other: &Self) {
        self.at = self.at.max(other.at);
        self.duration_ms = self.duration_ms.max(other.duration_ms);
        self.count = self.count.saturating_add(other.count);
    }
}

/// Shortens a text and replaces control characters, because users choose the names of files and the queries,
/// and a page shows each in one line.
fn short_line(text: &str, chars_max: usize) -> String {
    shorten(&text.replace(char::is_control, " "), chars_max)
}

/// Records that wait to be written to the database; cheap to clone.
#[derive(Clone, Default)]
pub struct DiagnosticLog {
    pending: Arc<Mutex<PendingDiagnostics>>,
}

/// The records of a [`DiagnosticLog`] that are not written yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PendingDiagnostics {
    /// The records, oldest first.
    pub records: Vec<DiagnosticRecord>,
    /// Number of records that were dropped because the log was full.
    pub dropped: u64,
}

impl DiagnosticLog {
    /// Adds a record. If a record of the same event is pending already, adds the occurrence to that one instead.
    pub fn record(&self, record: DiagnosticRecord) {
        let mut pending = self.pending.lock();
        // A linear search suffices: there are few records, and none in ordinary operation.
        if let Some(same) = pending.records.iter_mut().find(|known| known.is_same_event(&record)) {
            same.add_occurrences(&record);
        } else if pending.records.len() < DIAGNOSTICS_PENDING_MAX {
            pending.records.push(record);
        } else {
            pending.dropped = pending.dropped.saturating_add(1);
        }
    }

    /// Removes and returns all pending records.
    pub fn take(&self) -> PendingDiagnostics {
        std::mem::take(&mut *self.pending.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    #[test]
    fn equal_records_are_counted_and_the_others_are_bounded() {
        let log = DiagnosticLog::default();
        for second in 0..5 {
            log.record(DiagnosticRecord::ingest_error("a.jpg", "is empty", at(second)));
        }
        for number in 0..DIAGNOSTICS_PENDING_MAX + 2 {
            log.record(DiagnosticRecord::ingest_error(number, "is empty", at(9)));
        }
        let PendingDiagnostics { records, dropped } = log.take();
        assert_eq!((records.len(), dropped), (DIAGNOSTICS_PENDING_MAX, 3));
        assert_eq!((records[0].count, records[0].at), (5, at(4)));
        assert_eq!(log.take(), PendingDiagnostics::default());
    }

    #[test]
    fn a_repeated_search_keeps_its_longest_duration() {
        let log = DiagnosticLog::default();
        for ms in [1500, 2500, 2000] {
            let duration = Duration::from_millis(ms);
            log.record(DiagnosticRecord::slow_search("berg*", "type=image", duration, at(0)));
        }
        let records = log.take().records;
        assert_eq!((records.len(), records[0].count), (1, 3));
        assert_eq!(records[0].duration_ms, Some(2500));
    }

    #[test]
    fn texts_of_others_are_cut_and_stay_on_one_line() {
        let long = "å".repeat(DIAGNOSTIC_SUBJECT_CHARS_MAX + 5);
        let record = DiagnosticRecord::ingest_error(long, "a\nb\u{1b}[2J", at(0));
        assert_eq!(record.subject.chars().count(), DIAGNOSTIC_SUBJECT_CHARS_MAX + 1);
        assert_eq!(record.detail, "a b [2J");
    }
}
