//! Defines the changes of accounts that the account log records.

use model::ContentHash;
use model::account::UserId;

/// A change that invalidates entries of in-memory caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountChange {
    /// An access token ended before its expiry, by its hash.
    Token(ContentHash),
    /// An API key was revoked or has a new owner.
    Key(ContentHash),
    /// A session ended, by its hash.
    Session(ContentHash),
    /// A user changed, by its number.
    User(UserId),
    /// A signing key of id tokens was added or removed.
    SigningKeys,
    /// A change of an agreement, a product or an organization, which affects many accounts.
    Everything,
}

impl AccountChange {
    /// Parses a row of the log. A kind that this version does not know counts as
    /// [`AccountChange::Everything`].
    pub(super) fn parse(what: &str, id: &str) -> Self {
        // A row that cannot be parsed clears everything: a revoked right must not stay in a cache.
        match what {
            "token" => id.parse().map_or(Self::Everything, Self::Token),
            "key" => id.parse().map_or(Self::Everything, Self::Key),
            "session" => id.parse().map_or(Self::Everything, Self::Session),
            "signing-keys" => Self::SigningKeys,
            "user" => id.parse().map_or(Self::Everything, |id| Self::User(UserId(id))),
            _ => Self::Everything,
        }
    }

    pub(super) fn print(self) -> (&'static str, String) {
        match self {
            Self::Token(hash) => ("token", hash.to_string()),
            Self::Key(hash) => ("key", hash.to_string()),
            Self::Session(hash) => ("session", hash.to_string()),
            Self::User(id) => ("user", id.to_string()),
            Self::SigningKeys => ("signing-keys", String::new()),
            Self::Everything => ("everything", String::new()),
        }
    }
}
