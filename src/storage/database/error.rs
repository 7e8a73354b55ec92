//! The errors of the database and of its engines.

use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::telemetry;
use crate::storage::secrets::SecretError;

/// An error of an engine's driver.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct EngineError {
    pub(super) class: ErrorClass,
    /// The SQLSTATE, if the engine reports one.
    pub(super) code: Option<String>,
    pub(super) text: String,
}

/// The class of an engine's error, by its meaning for callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// The database cannot be reached.
    Unreachable,
    /// A statement or a transaction exceeded its time limit.
    TimedOut,
    /// The write lock was not acquired in time, and nothing was changed.
    Locked,
    /// A concurrent transaction changed the same rows.
    Conflict,
    /// Stored content is corrupt.
    Damaged,
    /// A disk, memory or a different resource is exhausted or fails.
    Resource,
    /// The statement, its parameters or its columns are wrong.
    Mistake,
}

impl EngineError {
    /// Returns whether the engine is temporarily unable to work, as opposed to a mistake in a statement.
    pub fn is_resource(&self) -> bool {
        self.class != ErrorClass::Mistake
    }

    /// Returns whether the database cannot be reached.
    pub fn is_unreachable(&self) -> bool {
        self.class == ErrorClass::Unreachable
    }

    /// Returns whether stored content is corrupt.
    pub fn is_damage(&self) -> bool {
        self.class == ErrorClass::Damaged
    }

    /// Returns whether the write lock was not acquired in time, with nothing changed.
    pub(super) fn is_busy(&self) -> bool {
        self.class == ErrorClass::Locked
    }

    /// Returns whether the engine reported one of these codes.
    pub(super) fn has_code(&self, codes: &[&str]) -> bool {
        self.code.as_deref().is_some_and(|code| codes.contains(&code))
    }

    /// Returns the label of the metric that counts temporary errors.
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
    /// Counts a temporary error in the metrics.
    fn from(error: EngineError) -> Self {
        if error.is_resource() {
            metrics::counter!(telemetry::DATABASE_ERRORS, "kind" => error.kind()).increment(1);
        }
        Self::Engine(error)
    }
}

/// The result of a call of the database.
pub type DbResult<T> = Result<T, DbError>;

/// The reason that a call of the database failed.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The engine reports an error.
    #[error("database: {0}")]
    Engine(EngineError),
    /// A row contains content that this version does not write.
    #[error("database: {what} is damaged: {why}")]
    Damaged {
        /// The damaged table and row, as messages name them.
        what: String,
        why: String,
    },
    /// The queue of database calls is full.
    #[error("too many database calls are waiting")]
    Overloaded,
    /// The database was closed.
    #[error("the database is closed")]
    Closed,
    /// The schema belongs to a different version of the product, or was changed to a different one while this
    /// process ran, or could not be upgraded.
    #[error("database schema: {0}")]
    Schema(String),
    /// Other processes use the data directory in a way that does not permit the call.
    #[error("{0}")]
    InUse(String),
    /// The archive has moved to a different database.
    #[error("this archive has moved to {0}")]
    Moved(String),
    /// A copy of the database cannot be written.
    #[error("{0}")]
    File(String),
    /// The address of a database is invalid.
    #[error("{0}")]
    Address(String),
    /// This process only reads, and the call writes.
    #[error("this node only reads the database")]
    ReadsOnly,
    /// A secret cannot be encrypted or decrypted.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl DbError {
    /// Returns whether this process will never be able to write again.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Moved(_) | Self::Schema(_) | Self::ReadsOnly | Self::Closed)
    }

    /// Returns whether the database cannot be reached.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Engine(cause) if cause.is_unreachable())
    }

    /// Returns whether the call met a damaged row or page, which a repetition would meet again.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
            || matches!(self, Self::Engine(cause) if cause.is_damage())
    }
}

impl From<DbError> for Error {
    fn from(cause: DbError) -> Self {
        let message = match &cause {
            DbError::Overloaded => {
                return Self::overloaded("database_queue", "The service is busy")
                    .with_source(cause);
            }
            DbError::InUse(message) | DbError::File(message) => {
                return Self::new(ErrorKind::Unavailable, message.clone());
            }
            DbError::Address(message) => {
                return Self::new(ErrorKind::InvalidArgument, message.clone());
            }
            DbError::ReadsOnly => {
                return Self::forbidden(
                    "read_only_node",
                    "This node is read-only: use another node for purchases, deliveries and \
                     changes",
                );
            }
            // A defect of this program would fail again, unlike a resource that is exhausted.
            DbError::Engine(engine) if !engine.is_resource() => return Self::internal(cause),
            DbError::Damaged { .. } => return Self::internal(cause),
            DbError::Closed => "The service is busy",
            // In the case of a schema, a different version uses the database, or is about to.
            DbError::Engine(_) | DbError::Schema(_) => "The database cannot be used now",
            // Only the operator needs the new place or the name of the missing key.
            DbError::Moved(_) => "This archive has moved",
            DbError::Secret(_) => "A stored secret cannot be read now",
        };
        Self::new(ErrorKind::Unavailable, message).with_source(cause)
    }
}

/// Creates the error of a parameter or column that does not have the expected type, or does not exist.
pub(super) fn wrong_value(text: String) -> EngineError {
    EngineError { class: ErrorClass::Mistake, code: None, text }
}

/// Creates the error for content that this version does not write: `what` names the row, `why` describes the
/// fault.
pub(super) fn damaged(what: impl Into<String>, why: &dyn std::fmt::Display) -> DbError {
    DbError::Damaged { what: what.into(), why: why.to_string() }
}
