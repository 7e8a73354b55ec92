//! Counts the requests refused because of an unreachable database, so that the log has two lines for an
//! outage and not one for each request.

use std::time::Duration;

use super::error::DbError;
use crate::runtime::failure_log::OutageLog;

/// The outage of the process's database, which affects every request.
static OUTAGE: OutageLog = OutageLog::new();
/// Time without a refused request after which an outage is over: connections recover one after the other.
const QUIET: Duration = Duration::from_secs(1);

/// Counts a request that was refused because the database is unreachable, and logs the first one of an
/// outage. Returns whether it counted the request, which needs no further log line then.
pub fn count_refused(cause: &DbError) -> bool {
    if !cause.is_unreachable() {
        return false;
    }
    if OUTAGE.record() {
        tracing::error!(
            "The database cannot be used now: {cause}; refused requests are counted until it can be used again"
        );
    }
    true
}

/// Logs the end of an outage, with the number of refused requests. Called while the database can be used.
pub fn log_recovery() {
    if let Some(ended) = OUTAGE.end_after(QUIET) {
        let refused = ended.failures;
        let seconds = ended.lasted.as_secs();
        tracing::info!(refused, seconds, "the database can be used again");
    }
}
