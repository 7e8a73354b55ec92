//! Cluster coordination: membership with heartbeats and leases, the clock guard, background jobs, and the
//! readiness of this node for requests.

pub mod clock_guard;
pub mod guard;
pub mod jobs;
pub mod membership;
pub mod readiness;
