//! What a process of several over one database does.

use super::value::SettingValue;

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRole {
    /// Everything.
    All,
    /// Answers requests, and leaves the work beside them to others.
    Web,
    /// Does the work beside requests, and answers those of the operator's tools alone.
    Worker,
    /// Serves media, and writes nothing to the database.
    Edge,
}

impl NodeRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::All, Self::Web, Self::Worker, Self::Edge];

    /// The word in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Web => "web",
            Self::Worker => "worker",
            Self::Edge => "edge",
        }
    }

    /// Whether it does the work beside requests.
    #[must_use]
    pub fn runs_background_work(self) -> bool {
        matches!(self, Self::All | Self::Worker)
    }

    /// Whether it answers requests of users and programs.
    #[must_use]
    pub fn serves_requests(self) -> bool {
        matches!(self, Self::All | Self::Web)
    }

    /// Whether it writes nothing to the database.
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
