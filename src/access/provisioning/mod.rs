//! Provisioning of accounts by the operator: the accounts file of `wirephoto import` (contract operation-14)
//! and the commands for single users, clients, keys and channels.
//!
//! `model::account::accounts_file` defines the form of the file. A file is validated as a whole, first its
//! form, then its entries and then their references, and imported in one transaction.
//!
//! Entries are upserts: a stated value replaces the stored value, and objects without an entry stay
//! unchanged. These values also stay unchanged: a password, a client's secret and the activity of a user if
//! the entry does not state them; the activity of a client or a channel, likewise; the remaining prepaid
//! downloads, unless a different number was bought; and the revocation of a key.
//!
//! An export writes such a file. It has hashes instead of secrets in plain text.
//!
//! Errors never repeat a password, a secret or a key.

mod agreements;
mod channels;
mod check;
mod export;
mod file;
mod import;
mod published_accounts;
mod roles;
mod single;
#[cfg(test)]
mod tests;

pub use agreements::{agreement_entry, license_entry, organization_entry, product_entry};
pub use channels::{
    ChannelProblem, ChannelRequest, channel_formats, channel_settings, shown_settings,
    typed_settings,
};
pub use import::{EntryCounts, ImportReport};
pub use published_accounts::{RemovedAccounts, has_published_key};
pub use roles::ChangedRoles;
pub use single::{AddedAccount, ClientRequest, UserRequest};

use crate::access::auth::Argon2Hasher;
use crate::runtime::error::{Error, ErrorKind};
use crate::storage::database::{Db, DbError};

/// The reason why accounts were not changed. The text never repeats a password, a secret or a key.
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// The text is not JSON, or not an accounts file.
    #[error("is not an accounts file: {0}")]
    Form(String),
    /// An entry is invalid.
    #[error("{entry}: {why}")]
    Entry {
        /// List, position and name of the entry, `users[3] "editor"`; without the name if the entry could not be
        /// read.
        entry: String,
        /// The mistake, with the path of the property if there is one.
        why: String,
    },
    /// There is no object of that name.
    #[error("{0} does not exist")]
    Unknown(String),
    /// Concurrent changes of accounts made each attempt fail.
    #[error("other changes happened meanwhile; try again")]
    Busy,
    /// A password or secret cannot be hashed.
    #[error(transparent)]
    Hash(Error),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl From<AccountsError> for Error {
    fn from(error: AccountsError) -> Self {
        match error {
            AccountsError::Form(_) | AccountsError::Entry { .. } => {
                Self::new(ErrorKind::InvalidArgument, error.to_string())
            }
            AccountsError::Unknown(_) => Self::new(ErrorKind::NotFound, error.to_string()),
            AccountsError::Busy => Self::new(ErrorKind::Conflict, error.to_string()),
            AccountsError::Hash(cause) => cause,
            AccountsError::Db(cause) => cause.into(),
        }
    }
}

/// Fails with [`AccountsError::Unknown`] unless the object `what` was found.
fn require_known(found: bool, what: impl FnOnce() -> String) -> Result<(), AccountsError> {
    if found { Ok(()) } else { Err(AccountsError::Unknown(what())) }
}

/// The accounts of a data directory, for the operator.
///
/// The functions block the calling thread.
#[derive(Clone)]
pub struct Accounts {
    db: Db,
    hasher: Argon2Hasher,
    workers: usize,
}

impl Accounts {
    /// Opens the accounts in `db`; `hasher` hashes passwords on `workers` threads.
    pub fn new(db: Db, hasher: Argon2Hasher, workers: usize) -> Self {
        Self { db, hasher, workers: workers.max(1) }
    }
}
