//! The role of a process among several over one database.

use strum::{EnumString, IntoStaticStr, VariantNames};

/// The role of a node: the requests that it serves, and whether it runs background jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum NodeRole {
    /// Serves all requests and runs background jobs.
    All,
    /// Serves requests, but leaves background jobs to other nodes.
    Web,
    /// Runs background jobs, and serves only the requests of operator tools.
    Worker,
    /// Serves media, and never writes to the database.
    Edge,
}

model::impl_as_str!(NodeRole);

impl NodeRole {
    /// Returns whether the node runs background jobs.
    pub fn runs_background_work(self) -> bool {
        matches!(self, Self::All | Self::Worker)
    }

    /// Returns whether the node serves requests of users and programs.
    pub fn serves_requests(self) -> bool {
        matches!(self, Self::All | Self::Web)
    }

    /// Returns whether the node never writes to the database.
    pub fn is_read_only(self) -> bool {
        self == Self::Edge
    }
}
