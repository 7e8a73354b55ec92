//! Limits the number of private keys of channels that are unlocked at a time.
//!
//! Unlocking a key costs CPU time by design, and the key file sets the cost. So each user may have one key
//! unlocked at a time, and all users together [`CHANNEL_KEYS_OPENED_MAX`].

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;

use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::CHANNEL_KEYS_OPENED_MAX;
use model::account::UserId;

/// The users whose keys are being unlocked.
#[derive(Default)]
pub(super) struct KeyOpenings {
    users: Arc<Mutex<HashSet<UserId>>>,
}

/// A slot for unlocking one key. It is released when dropped.
#[derive(Debug)]
pub(super) struct KeyOpening {
    users: Arc<Mutex<HashSet<UserId>>>,
    user: UserId,
}

impl Drop for KeyOpening {
    fn drop(&mut self) {
        self.users.lock().remove(&self.user);
    }
}

impl KeyOpenings {
    /// Acquires the slot for a key of `user`.
    ///
    /// Fails with [`ErrorKind::Conflict`] if the user already has a slot, and with [`ErrorKind::Overloaded`] if
    /// all slots are in use.
    pub(super) fn acquire(&self, user: UserId) -> Result<KeyOpening> {
        let mut users = self.users.lock();
        // A second request of the same user is a conflict; a shortage caused by other users is an overload.
        if users.contains(&user) {
            let message = "Another channel of the user is being checked; try again";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        if users.len() >= CHANNEL_KEYS_OPENED_MAX {
            let message = "Too many channels are being checked; try again";
            return Err(Error::overloaded("channel_keys", message));
        }
        users.insert(user);
        Ok(KeyOpening { users: Arc::clone(&self.users), user })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_one_key_opened_at_a_time_and_all_of_them_a_few() {
        let openings = KeyOpenings::default();
        let begin = |user| openings.acquire(UserId(user)).map_err(|error| error.kind());
        let first = begin(1).unwrap();
        assert_eq!(begin(1).unwrap_err(), ErrorKind::Conflict);
        let second = begin(2).unwrap();
        assert_eq!(begin(3).unwrap_err(), ErrorKind::Overloaded);
        drop(first);
        let _third = begin(3).unwrap();
        drop(second);
        let _again = begin(1).unwrap();
    }
}
