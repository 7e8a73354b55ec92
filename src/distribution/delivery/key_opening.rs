//! Private keys that users state for their channels, while somebody looks whether they open.
//!
//! Unlocking a key takes a processor a while, by design, and the key says how long. So a user has
//! one opened at a time, and all of them a few.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::CHANNEL_KEYS_OPENED_MAX;
use model::account::UserId;

/// The users whose keys are being opened.
#[derive(Default)]
pub(super) struct KeyOpenings {
    users: Arc<Mutex<HashSet<UserId>>>,
}

/// A key that is being opened; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct KeyOpening {
    users: Arc<Mutex<HashSet<UserId>>>,
    user: UserId,
}

impl Drop for KeyOpening {
    fn drop(&mut self) {
        self.users.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.user);
    }
}

impl KeyOpenings {
    /// Lets a key of `user` be opened.
    pub(super) fn acquire(&self, user: UserId) -> Result<KeyOpening> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
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
