//! What changed in accounts, as a row of their log says it.

use model::ContentHash;
use model::account::UserId;

/// Something that caches in memory must forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountChange {
    /// An access token ended.
    Token(ContentHash),
    /// An API key ended or has another owner.
    Key(ContentHash),
    /// A session ended.
    Session(ContentHash),
    /// A user changed.
    User(UserId),
    /// A signing key of id tokens was added or removed.
    SigningKeys,
    /// Something that many accounts depend on changed: an agreement, a product, an organization.
    Everything,
}

impl AccountChange {
    /// Reads a row of the log. What this version does not know counts as everything.
    pub(super) fn parse(what: &str, id: &str) -> Self {
        let hash = |change: fn(ContentHash) -> Self| id.parse().map(change);
        match what {
            "token" => hash(Self::Token).unwrap_or(Self::Everything),
            "key" => hash(Self::Key).unwrap_or(Self::Everything),
            "session" => hash(Self::Session).unwrap_or(Self::Everything),
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
