//! What bounds the nodes of a database, with the reasons.

use std::time::Duration;

use crate::runtime::limits::{
    NODE_HEARTBEAT_EXPIRY, NODE_HEARTBEAT_INTERVAL, NODE_HEARTBEATS_MIN,
};

/// Time between two signs of life. Each is a small transaction.
pub const HEARTBEAT_INTERVAL: Duration = NODE_HEARTBEAT_INTERVAL;
/// The same where no other node lives: nobody waits for one, and an idle machine sleeps.
pub const HEARTBEAT_INTERVAL_ALONE: Duration = Duration::from_secs(600);
/// Time between two looks at the other nodes and at the leases: a read of a few rows. What a node gave
/// back is taken within it.
pub const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Time for which another node's beat stands still until it is taken for dead, by the clock of the node
/// that looks. It is longer than a write may wait for its turn (`DB_BUSY_MS`) with the time between two.
pub const HEARTBEAT_TIMEOUT: Duration = NODE_HEARTBEAT_EXPIRY;
/// Own signs of life within that time: where nobody can write nobody is dead.
pub const HEARTBEATS_MIN: u32 = NODE_HEARTBEATS_MIN;
/// Time without a node that does some work after which that is told of.
pub const LEASE_VACANT_MAX: Duration = Duration::from_secs(60);
/// Difference between the clocks of two nodes that is told of: mails and codes have times of minutes.
pub const SKEW_S: f64 = 5.0;
/// Nodes over one data directory.
pub const SLOTS_MAX: u32 = 64;
/// Time between two tries to be alone with what nodes do one after the other.
pub const EXCLUSIVE_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Streams that are woken one by one after a look; beyond that all are, which costs one transaction for
/// a thousand of them.
pub const STREAM_WAKES_MAX: usize = 10_000;
/// Time between two tries to write how sending a message or a delivery ended.
pub const OUTCOME_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two tries to put items back that were under way.
pub const RELEASE_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two looks at how far other nodes have followed the item log.
pub const FOLLOWED_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Time for which rows of the notifications' log are kept for matchers that stand by.
pub const NOTIFICATION_LOG_RETENTION: Duration = Duration::from_secs(60);
/// Time between two transactions that note what visitors did, of all visitors together.
pub const CALL_NOTES_INTERVAL: Duration = Duration::from_millis(500);
