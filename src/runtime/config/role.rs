//! The role of a process among several over one database.

use super::value::SettingValue;

/// The role of a node: which requests it serves and whether it runs background jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl NodeRole {
    /// All roles, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::All, Self::Web, Self::Worker, Self::Edge];

    /// Returns the role's name in the settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Web => "web",
            Self::Worker => "worker",
            Self::Edge => "edge",
        }
    }

    /// Whether the node runs background jobs.
    #[must_use]
    pub fn runs_background_work(self) -> bool {
        matches!(self, Self::All | Self::Worker)
    }

    /// Whether the node serves requests of users and programs.
    #[must_use]
    pub fn serves_requests(self) -> bool {
        matches!(self, Self::All | Self::Web)
    }

    /// Whether the node never writes to the database.
    #[must_use]
    pub fn is_read_only(self) -> bool {
        self == Self::Edge
    }
}

impl SettingValue for NodeRole {
    fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| "expected all, web, worker or edge".to_owned())
    }

    fn print(&self) -> String {
        self.as_str().to_owned()
    }
}
