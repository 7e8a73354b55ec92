//! Tracks the newest item log row written by this process, for the followers of the item log.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The newest row of the item log that was committed through this handle. It is set before the writer gets
/// its answer, so that a search that starts then can wait for it.
#[derive(Debug, Default)]
pub struct WrittenItems {
    row: Mutex<i64>,
    changed: Condvar,
}

impl WrittenItems {
    /// Records that the log was written up to `row`.
    pub fn note(&self, row: i64) {
        let mut newest = self.lock();
        // Transactions without an item pass 0, and threads may note their rows in any order.
        if row > *newest {
            *newest = row;
            self.changed.notify_all();
        }
    }

    /// Resets the newest row to `row`, after the log lost later rows.
    pub fn restart(&self, row: i64) {
        *self.lock() = row;
    }

    /// Returns the newest row; 0 if there is none.
    pub fn row(&self) -> i64 {
        *self.lock()
    }

    /// Blocks until there is a row after `row`, for `time` at most.
    pub fn wait_beyond(&self, row: i64, time: Duration) {
        let waited = self.changed.wait_timeout_while(self.lock(), time, |newest| *newest <= row);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, i64> {
        // A panic cannot leave a number half written.
        self.row.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
