//! One node among several: membership, the clock guard, and whether this node is ready for requests.

pub mod clock_guard;
pub mod membership;
pub mod readiness;
