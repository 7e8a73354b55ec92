//! Why the database did not do what was asked.

use super::engine::EngineError;
use crate::runtime::error::{Error, Kind};
use crate::storage::secrets::SecretError;

/// Why the database did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The engine reports an error.
    #[error("database: {0}")]
    Engine(EngineError),
    /// A row holds what this version did not write.
    #[error("database: {what} is damaged: {why}")]
    Damaged {
        /// Table and row.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// Too many calls wait.
    #[error("too many database calls wait")]
    Overloaded,
    /// The database was closed.
    #[error("the database is closed")]
    Closed,
    /// The schema is of another version of the product, or became one while this process ran, or could
    /// not be brought up to date.
    #[error("database schema: {0}")]
    Schema(String),
    /// Others work on the data directory in a way that does not allow this.
    #[error("{0}")]
    InUse(String),
    /// The archive lives elsewhere now.
    #[error("this archive has moved to {0}")]
    Moved(String),
    /// A copy of the database cannot be written.
    #[error("{0}")]
    File(String),
    /// The address of a database is none.
    #[error("{0}")]
    Address(String),
    /// This process only reads, and what was asked for writes.
    #[error("this node only reads the database")]
    ReadsOnly,
    /// A secret cannot be encrypted or decrypted.
    #[error("{0}")]
    Secret(SecretError),
}

impl DbError {
    /// Whether this process will not write again.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Moved(_) | Self::Schema(_) | Self::ReadsOnly | Self::Closed => true,
            Self::Engine(_)
            | Self::Damaged { .. }
            | Self::Overloaded
            | Self::InUse(_)
            | Self::File(_)
            | Self::Address(_)
            | Self::Secret(_) => false,
        }
    }
}

impl From<SecretError> for DbError {
    fn from(cause: SecretError) -> Self {
        Self::Secret(cause)
    }
}

impl From<DbError> for Error {
    fn from(cause: DbError) -> Self {
        match &cause {
            DbError::Overloaded => {
                Self::overloaded("database_queue", "The service is busy").because(cause)
            }
            DbError::Closed => Self::new(Kind::Unavailable, "The service is busy").because(cause),
            DbError::Engine(engine) if engine.is_resource() => {
                Self::new(Kind::Unavailable, "The database cannot be used now").because(cause)
            }
            DbError::InUse(words) | DbError::File(words) => {
                Self::new(Kind::Unavailable, words.clone())
            }
            // Where to is not for everybody who asks.
            DbError::Moved(_) => {
                Self::new(Kind::Unavailable, "This archive has moved").because(cause)
            }
            DbError::Address(words) => Self::new(Kind::InvalidArgument, words.clone()),
            DbError::ReadsOnly => Self::forbidden(
                "read_only_node",
                "This node only reads: purchases, deliveries and changes are made at another one",
            ),
            // Another version works on it, or is about to.
            DbError::Schema(_) => {
                Self::new(Kind::Unavailable, "The database cannot be used now").because(cause)
            }
            // Which key is missing is for the operator's eyes.
            DbError::Secret(_) => {
                Self::new(Kind::Unavailable, "A stored secret cannot be read now").because(cause)
            }
            DbError::Engine(_) | DbError::Damaged { .. } => Self::internal(cause),
        }
    }
}

/// What is stored is not what this version writes: `what` names the row, `why` says what is wrong.
pub(super) fn damaged(what: impl Into<String>, why: &dyn std::fmt::Display) -> DbError {
    DbError::Damaged { what: what.into(), why: why.to_string() }
}
