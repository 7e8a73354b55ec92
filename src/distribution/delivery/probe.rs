//! Channel tests: sends a small file through a channel at once and reports the result to its owner.
//!
//! Nothing is purchased or queued. Tests contact third-party machines in the service's name, so they are
//! rate-limited per user: one at a time, and [`CHANNEL_TESTS_A_MINUTE`] per minute.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{error::Elapsed, timeout_at};

use super::{AttemptFailure, Deliveries};
use crate::access::auth::Principal;
use crate::runtime::error::{Error, ErrorKind, Result};
use api::deliveries::ChannelTest;
use model::account::{Channel, ChannelMethod, Permission, UserId};

/// Concurrent tests of channels.
const CHANNEL_TESTS_MAX: usize = 4;
/// Channel tests that one user may start per minute: enough for a few attempts, too few to flood a
/// mailbox or to scan ports.
const CHANNEL_TESTS_A_MINUTE: usize = 10;
/// Timeout of a channel test, since a user waits for the page.
const CHANNEL_TEST: Duration = Duration::from_secs(10);
/// The sliding window in which a user's tests are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// The running tests, and each user's recent tests.
pub(super) struct ChannelProbes {
    free: Arc<Semaphore>,
    by_user: Arc<Mutex<HashMap<UserId, UserProbes>>>,
}

/// The running and recent tests of one user.
#[derive(Default)]
struct UserProbes {
    is_running: bool,
    /// The start times of the tests in the last minute.
    started: Vec<Timestamp>,
}

/// The slot of a running test. It is released when dropped.
struct RunningProbe {
    users: Arc<Mutex<HashMap<UserId, UserProbes>>>,
    user: UserId,
    _permit: OwnedSemaphorePermit,
}

impl Drop for RunningProbe {
    fn drop(&mut self) {
        let mut users = self.users.lock();
        // The entry stays, because its start times still count against the limit per minute.
        if let Some(recent) = users.get_mut(&self.user) {
            recent.is_running = false;
        }
    }
}

impl ChannelProbes {
    pub(super) fn new() -> Self {
        let free = Arc::new(Semaphore::new(CHANNEL_TESTS_MAX));
        Self { free, by_user: Arc::default() }
    }

    /// Acquires the slot for a test of `user`.
    fn begin(&self, user: UserId, now: Timestamp) -> Result<RunningProbe> {
        let mut users = self.by_user.lock();
        // Every test sweeps the map, so that it holds only the users of the last minute.
        users.retain(|_, recent| {
            // A start time in the future was recorded before the clock was corrected.
            recent.started.retain(|started| (*started..*started + MINUTE).contains(&now));
            recent.is_running || !recent.started.is_empty()
        });
        let recent = users.get(&user);
        if recent.is_some_and(|recent| recent.is_running) {
            let message = "A test of one of the user's channels is running";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        if recent.is_some_and(|recent| recent.started.len() >= CHANNEL_TESTS_A_MINUTE) {
            let message = "Too many tests of the user's channels within a minute";
            return Err(Error::overloaded("channel_tests", message));
        }
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(|_| {
            Error::overloaded("channel_tests", "Too many channel tests are running")
        })?;
        // Counted last, so that a test refused because of other users' load is not counted for this user.
        let recent = users.entry(user).or_default();
        recent.is_running = true;
        recent.started.push(now);
        Ok(RunningProbe { users: Arc::clone(&self.by_user), user, _permit: permit })
    }
}

impl Deliveries {
    /// Sends a small file through the channel `name` of `caller`, active or not.
    ///
    /// The message of the result has no secrets. Lasts at most [`CHANNEL_TEST`]. Fails with [`ErrorKind::NotFound`] if there is no such channel, with
    /// [`ErrorKind::Conflict`] while a different test of the caller is running, and with [`ErrorKind::Overloaded`]
    /// if the rate limit is exceeded.
    pub async fn test_channel(
        &self,
        caller: &Principal,
        name: &str,
        now: Timestamp,
    ) -> Result<ChannelTest> {
        caller.require(Permission::ReadChannels)?;
        let channel = self.own_channel(caller, name).await?;
        if channel.method == ChannelMethod::Download {
            let message = "A channel of the method download sends nothing; it selects the \
                           contents of the .zip of an item.";
            return Ok(ChannelTest { ok: true, message: message.to_owned() });
        }
        let _running = self.inner.probes.begin(caller.user().id, now)?;
        let sending = Box::pin(self.probe(caller, &channel));
        let sent = sending.await;
        let ok = matches!(sent, Ok(Ok(_)));
        let message = match sent {
            Ok(Ok(file)) => format!("{file} was delivered."),
            Ok(Err(failure)) => format!("The test failed: {}.", failure.text),
            Err(_) => {
                format!("The test did not finish within {} seconds.", CHANNEL_TEST.as_secs())
            }
        };
        Ok(ChannelTest { ok, message })
    }

    /// Sends the test file within [`CHANNEL_TEST`]. A mail with the file counts against the limits like any other
    /// mail.
    async fn probe(
        &self,
        caller: &Principal,
        channel: &Channel,
    ) -> Result<Result<&'static str, AttemptFailure>, Elapsed> {
        // One deadline for both steps. Only `clock` may read a clock, so the deadline comes from a sleep that is
        // never awaited.
        let end = tokio::time::sleep(CHANNEL_TEST).deadline();
        let mail = match timeout_at(end, self.clear_mail(channel, caller)).await? {
            Ok(mail) => mail,
            Err(failure) => return Ok(Err(failure)),
        };
        let sending = self.inner.services.sender.probe(channel, mail.introductions.clone());
        let sent = timeout_at(end, sending).await;
        // Recorded even after a timeout, because the next mail must not invalidate the links in this one.
        self.record_introductions(caller.user().id, mail, matches!(sent, Ok(Err(_)))).await;
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn kind(outcome: Result<RunningProbe>) -> Option<ErrorKind> {
        outcome.err().map(|error| error.kind())
    }

    #[test]
    fn a_user_has_one_test_at_a_time() {
        let probes = ChannelProbes::new();
        let running = probes.begin(UserId(1), at(0)).unwrap();
        assert_eq!(kind(probes.begin(UserId(1), at(1))), Some(ErrorKind::Conflict));
        assert_eq!(kind(probes.begin(UserId(2), at(1))), None);
        // A test that takes longer than a minute still counts.
        assert_eq!(kind(probes.begin(UserId(1), at(100))), Some(ErrorKind::Conflict));
        drop(running);
        assert_eq!(kind(probes.begin(UserId(1), at(101))), None);
    }

    #[test]
    fn all_users_together_have_a_few() {
        let probes = ChannelProbes::new();
        let users = 0..i64::try_from(CHANNEL_TESTS_MAX).unwrap();
        let running: Vec<_> = users.map(|id| probes.begin(UserId(id), at(0)).unwrap()).collect();
        assert_eq!(kind(probes.begin(UserId(99), at(0))), Some(ErrorKind::Overloaded));
        drop(running);
        assert_eq!(kind(probes.begin(UserId(99), at(0))), None);
    }

    #[test]
    fn a_user_has_a_few_a_minute_and_is_forgotten_after_it() {
        let probes = ChannelProbes::new();
        for _ in 0..CHANNEL_TESTS_A_MINUTE {
            drop(probes.begin(UserId(1), at(0)).unwrap());
        }
        assert_eq!(kind(probes.begin(UserId(1), at(59))), Some(ErrorKind::Overloaded));
        assert_eq!(kind(probes.begin(UserId(1), at(60))), None);
        // A clock that ran fast and was corrected.
        assert_eq!(kind(probes.begin(UserId(1), at(0))), None);
        assert_eq!(kind(probes.begin(UserId(2), at(200))), None);
        assert_eq!(probes.by_user.lock().len(), 1);
    }
}
