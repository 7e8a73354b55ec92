//! Notes when credentials were used last, to some minutes, without a write for each request.

use std::{collections::HashMap, mem};

use jiff::Timestamp;
use moka::sync::Cache;
use parking_lot::Mutex;

use crate::runtime::limits::{TOKENS_CACHED_MAX, USE_RECORD_INTERVAL, USES_WAITING_MAX};
use crate::storage::database::UsedCredential;

/// Uses that wait to be written.
pub(super) struct CredentialUses {
    waiting: Mutex<HashMap<UsedCredential, Timestamp>>,
    /// Credentials whose use was noted a short while ago.
    recent: Cache<UsedCredential, ()>,
}

impl CredentialUses {
    pub(super) fn new() -> Self {
        let noted = Cache::builder()
            .max_capacity(TOKENS_CACHED_MAX)
            .time_to_live(USE_RECORD_INTERVAL)
            .build();
        Self { waiting: Mutex::default(), recent: noted }
    }

    /// Notes a use, unless one was noted a short while ago. Where too many wait this one is left out: it is
    /// for people to read, and a later use is noted again.
    pub(super) fn record(&self, credential: UsedCredential, now: Timestamp) {
        if self.recent.contains_key(&credential) {
            return;
        }
        self.recent.insert(credential, ());
        let mut waiting = self.waiting.lock();
        if waiting.len() < USES_WAITING_MAX {
            waiting.insert(credential, now);
        }
    }

    /// Takes what waits.
    pub(super) fn drain(&self) -> Vec<(UsedCredential, Timestamp)> {
        let mut waiting = self.waiting.lock();
        mem::take(&mut *waiting).into_iter().collect()
    }
}
