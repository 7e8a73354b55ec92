//! One node among several: membership, the clock guard, background jobs, and whether this node is ready for
//! requests.

pub mod clock_guard;
pub mod guard;
pub mod jobs;
pub mod membership;
pub mod readiness;
