//! Classifies the driver's errors.

use rusqlite::ErrorCode;

use crate::storage::database::error::{DbError, EngineError, ErrorClass};

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        // SQLite reports corruption both if a page is damaged and if the disk fails to return it. A client
        // can do the same about both.
        let class = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ErrorClass::Locked,
            Some(ErrorCode::DatabaseCorrupt) => ErrorClass::Damaged,
            Some(
                ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::NotADatabase,
            ) => ErrorClass::Resource,
            _ => ErrorClass::Mistake,
        };
        EngineError { class, code: None, text: error.to_string() }.into()
    }
}
