//! Limits of cluster membership, with their reasons.

use std::time::Duration;

use crate::runtime::limits::{
    NODE_HEARTBEAT_EXPIRY, NODE_HEARTBEAT_INTERVAL, NODE_HEARTBEATS_MIN,
};

/// Interval between heartbeats. Each is a small transaction.
pub const HEARTBEAT_INTERVAL: Duration = NODE_HEARTBEAT_INTERVAL;
/// Interval between heartbeats of a single node. It is long because no other node waits for a heartbeat, and
/// an idle machine can sleep.
pub const HEARTBEAT_INTERVAL_ALONE: Duration = Duration::from_secs(600);
/// Interval at which a node polls the other nodes and the leases: a read of a few rows. A released lease is
/// acquired by a different node within this time.
pub const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Age at which the heartbeat of a peer has expired, measured by the clock of the observing node. It is
/// longer than the maximum wait for the write lock (`DB_BUSY_MS`) plus one interval.
pub const HEARTBEAT_TIMEOUT: Duration = NODE_HEARTBEAT_EXPIRY;
/// Own heartbeats that must succeed within that time. While no node can write to the database, no node is
/// declared dead.
pub const HEARTBEATS_MIN: u32 = NODE_HEARTBEATS_MIN;
/// Time without a holder after which a lease is reported.
pub const LEASE_VACANT_MAX: Duration = Duration::from_secs(60);
/// Clock skew between two nodes, in seconds, that is logged: mails and codes expire within minutes.
pub const SKEW_S: f64 = 5.0;
/// Maximum number of nodes over one data directory.
pub const SLOTS_MAX: u32 = 64;
/// Interval at which a node retries to acquire the lease for work that nodes do one after the other.
pub const EXCLUSIVE_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of streams that are woken one by one after a poll. Above that number all are woken, which
/// costs one transaction per thousand streams.
pub const STREAM_WAKES_MAX: usize = 10_000;
/// Interval at which writing the outcome of a message or delivery is retried.
pub const OUTCOME_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which the release of items in flight is retried.
pub const RELEASE_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Interval at which a node polls the positions of the other nodes in the item log.
pub const FOLLOWED_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Time for which rows of the notification log are retained for standby matchers.
pub const NOTIFICATION_LOG_RETENTION: Duration = Duration::from_secs(60);
