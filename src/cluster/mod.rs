//! Cluster coordination: membership with heartbeats and leases, the clock guard, background jobs, the
//! readiness of this node for requests, and findings about nodes and their dependencies.

pub mod clock_guard;
pub mod findings;
pub mod guard;
pub mod jobs;
pub mod membership;
pub mod readiness;
