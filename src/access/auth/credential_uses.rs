//! Records the last use of credentials, accurate to minutes, without a write for each request.

use std::{collections::HashMap, mem};

use jiff::Timestamp;
use moka::sync::Cache;
use parking_lot::Mutex;

use crate::runtime::limits::TOKENS_CACHED_MAX;
use crate::storage::database::UsedCredential;

/// Interval within which repeated uses of the same credentials are recorded once.
const USE_RECORD_INTERVAL: std::time::Duration = std::time::Duration::from_secs(300);
/// Credentials whose last use waits to be written to the database.
const USES_WAITING_MAX: usize = 10_000;

/// Uses that wait to be written to the database.
pub(super) struct CredentialUses {
    waiting: Mutex<HashMap<UsedCredential, Timestamp>>,
    /// Credentials whose use was recorded within [`USE_RECORD_INTERVAL`].
    recent: Cache<UsedCredential, ()>,
}

impl CredentialUses {
    pub(super) fn new() -> Self {
        let recent = Cache::builder()
            .max_capacity(TOKENS_CACHED_MAX)
            .time_to_live(USE_RECORD_INTERVAL)
            .build();
        Self { waiting: Mutex::default(), recent }
    }

    /// Records a use, unless one was recorded recently. If too many uses wait, this use is dropped: the times
    /// only inform users, and a later use is recorded again.
    pub(super) fn record(&self, credential: UsedCredential, now: Timestamp) {
        if self.recent.contains_key(&credential) {
            return;
        }
        // Two concurrent uses may both get here; the map below holds one entry for them.
        self.recent.insert(credential, ());
        let mut waiting = self.waiting.lock();
        if waiting.len() < USES_WAITING_MAX {
            waiting.insert(credential, now);
        }
    }

    /// Returns all waiting uses and empties the queue.
    pub(super) fn drain(&self) -> Vec<(UsedCredential, Timestamp)> {
        let mut waiting = self.waiting.lock();
        mem::take(&mut *waiting).into_iter().collect()
    }
}
