//! Limits the number of archives that are packed at a time, per client and in total.
//!
//! An archive holds its renditions in memory while it is packed, and packing continues after the client
//! disconnects. So a permit is held until packing ends.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::runtime::error::{Error, Result};
use crate::runtime::fair_queue::RequestClient;

/// Counts the archives that are being packed.
#[derive(Clone, Debug)]
pub(super) struct ArchiveLimiter {
    inner: Arc<LimiterState>,
}

#[derive(Debug)]
struct LimiterState {
    archives_max: usize,
    client_archives_max: usize,
    state: Mutex<ArchiveCounts>,
}

#[derive(Debug, Default)]
struct ArchiveCounts {
    archives: usize,
    /// Only clients with at least one archive have an entry.
    clients: HashMap<RequestClient, usize>,
}

/// The permit for one archive. Dropping it makes room for one more.
#[derive(Debug)]
pub(super) struct ArchivePermit {
    inner: Arc<LimiterState>,
    client: Option<RequestClient>,
}

impl ArchiveLimiter {
    /// Allows `archives_max` archives at a time, `client_archives_max` of them for one client.
    pub(super) fn new(archives_max: usize, client_archives_max: usize) -> Self {
        let state = Mutex::default();
        Self { inner: Arc::new(LimiterState { archives_max, client_archives_max, state }) }
    }

    /// Acquires a permit for one archive.
    ///
    /// Fails with [`crate::runtime::error::ErrorKind::Overloaded`] if the client, or all clients together, have
    /// reached the limit.
    pub(super) fn acquire(&self, client: Option<RequestClient>) -> Result<ArchivePermit> {
        let inner = &self.inner;
        let mut state = inner.state.lock();
        let client_archives =
            client.and_then(|client| state.clients.get(&client)).copied().unwrap_or(0);
        // Checked first, so that a client learns that its own archives are the reason.
        if client_archives >= inner.client_archives_max {
            let message = "Other archives of this client are being assembled; try again";
            return Err(Error::overloaded("client_archives", message));
        }
        if state.archives >= inner.archives_max {
            let message = "Too many archives are being assembled; try again";
            return Err(Error::overloaded("archives", message));
        }
        state.archives += 1;
        // A client without a user or address counts only in the total.
        if let Some(client) = client {
            *state.clients.entry(client).or_default() += 1;
        }
        Ok(ArchivePermit { inner: Arc::clone(inner), client })
    }
}

impl Drop for ArchivePermit {
    fn drop(&mut self) {
        let mut state = self.inner.state.lock();
        state.archives = state.archives.saturating_sub(1);
        let Some(client) = self.client else { return };
        let client_archives = state.clients.get(&client).copied().unwrap_or(0);
        // The last permit removes the entry, so that the map does not grow with every client.
        match client_archives {
            0 | 1 => drop(state.clients.remove(&client)),
            more => drop(state.clients.insert(client, more - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::account::UserId;

    #[test]
    fn a_client_has_some_archives_and_all_of_them_a_few_more() {
        let packing = ArchiveLimiter::new(3, 2);
        let begin = |user| {
            let begun = packing.acquire(Some(RequestClient::User(UserId(user))));
            begun.map_err(|error| error.details()[0].error_code.clone())
        };
        let first = begin(1).unwrap();
        let _second = begin(1).unwrap();
        assert_eq!(begin(1).unwrap_err(), "client_archives");
        let third = begin(2).unwrap();
        assert_eq!(begin(3).unwrap_err(), "archives");
        drop(first);
        let _again = begin(1).unwrap();
        drop(third);
        assert_eq!(
            packing.inner.state.lock().clients.len(),
            1,
            "nobody is remembered for nothing"
        );
        let _other = begin(3).unwrap();
    }
}
