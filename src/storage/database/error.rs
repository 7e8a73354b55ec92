//! Errors of the database and of its engines.

use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::telemetry;
use crate::storage::secrets::SecretError;

/// An error of an engine's driver.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct EngineError {
    pub(super) class: ErrorClass,
    /// The SQLSTATE, where the engine gives one.
    pub(super) code: Option<String>,
    pub(super) text: String,
}

/// What an error of an engine means for callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// The database cannot be reached.
    Unreachable,
    /// A statement or a transaction took too long.
    TimedOut,
    /// The write lock was not granted in time, and nothing was done.
    Locked,
    /// Another transaction changed the same rows.
    Conflict,
    /// What is stored cannot be read as it was written.
    Damaged,
    /// A disk, memory or another resource is exhausted or fails.
    Resource,
    /// The statement, its parameters or its columns are wrong.
    Mistake,
}

impl EngineError {
    /// Whether the engine cannot work now: a state that passes, not a mistake.
    #[must_use]
    pub fn is_resource(&self) -> bool {
        self.class != ErrorClass::Mistake
    }

    /// Whether the database cannot be reached.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        self.class == ErrorClass::Unreachable
    }

    /// Whether what is stored cannot be read as it was written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.class == ErrorClass::Damaged
    }

    /// Whether the write lock was not granted in time, and nothing was done.
    pub(super) fn is_busy(&self) -> bool {
        self.class == ErrorClass::Locked
    }

    /// Whether the engine gave one of these codes.
    pub(super) fn has_code(&self, codes: &[&str]) -> bool {
        self.code.as_deref().is_some_and(|code| codes.contains(&code))
    }

    /// The label of the metric that counts errors that pass.
    fn kind(&self) -> &'static str {
        match self.class {
            ErrorClass::Unreachable => "away",
            ErrorClass::TimedOut => "timeout",
            ErrorClass::Locked | ErrorClass::Conflict => "busy",
            ErrorClass::Damaged | ErrorClass::Resource | ErrorClass::Mistake => "other",
        }
    }
}

impl From<EngineError> for DbError {
    /// Counts it where the engine cannot work now.
    fn from(error: EngineError) -> Self {
        if error.is_resource() {
            metrics::counter!(telemetry::DATABASE_ERRORS, "kind" => error.kind()).increment(1);
        }
        Self::Engine(error)
    }
}

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
                Self::overloaded("database_queue", "The service is busy").with_source(cause)
            }
            DbError::Closed => {
                Self::new(ErrorKind::Unavailable, "The service is busy").with_source(cause)
            }
            DbError::Engine(engine) if engine.is_resource() => {
                Self::new(ErrorKind::Unavailable, "The database cannot be used now")
                    .with_source(cause)
            }
            DbError::InUse(words) | DbError::File(words) => {
                Self::new(ErrorKind::Unavailable, words.clone())
            }
            // Where to is not for everybody who asks.
            DbError::Moved(_) => {
                Self::new(ErrorKind::Unavailable, "This archive has moved").with_source(cause)
            }
            DbError::Address(words) => Self::new(ErrorKind::InvalidArgument, words.clone()),
            DbError::ReadsOnly => Self::forbidden(
                "read_only_node",
                "This node only reads: purchases, deliveries and changes are made at another one",
            ),
            // Another version works on it, or is about to.
            DbError::Schema(_) => {
                Self::new(ErrorKind::Unavailable, "The database cannot be used now")
                    .with_source(cause)
            }
            // Which key is missing is for the operator's eyes.
            DbError::Secret(_) => {
                Self::new(ErrorKind::Unavailable, "A stored secret cannot be read now")
                    .with_source(cause)
            }
            DbError::Engine(_) | DbError::Damaged { .. } => Self::internal(cause),
        }
    }
}

/// What is stored is not what this version writes: `what` names the row, `why` says what is wrong.
pub(super) fn damaged(what: impl Into<String>, why: &dyn std::fmt::Display) -> DbError {
    DbError::Damaged { what: what.into(), why: why.to_string() }
}
