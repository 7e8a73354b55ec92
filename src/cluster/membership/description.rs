//! What nodes tell each other: which version and settings each has, and what it cannot do now.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::storage::database::NodeRow;

/// Something that a node cannot do while others may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeFault {
    /// The database cannot be read, or not through every kind of connection.
    Database,
    /// The search index is not whole.
    Search,
    /// Originals cannot be reached.
    Store,
    /// The data directory cannot be written.
    Disk,
}

impl NodeFault {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Database, Self::Search, Self::Store, Self::Disk];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Search => "search",
            Self::Store => "store",
            Self::Disk => "disk",
        }
    }
}

/// What the row of a node says in place of faults before it was looked at for the first time.
pub(super) const STARTING: &str = "starting";
/// The same once it stops.
pub(super) const DRAINING: &str = "draining";

/// Faults as they are written into the row of a node.
pub(super) fn print(faults: &[NodeFault]) -> String {
    faults.iter().map(|fault| fault.as_str()).collect::<Vec<_>>().join(" ")
}

/// The faults that a node reports; `None` where it takes no requests: it starts or stops, or reports what
/// this version does not know.
#[must_use]
pub fn faults_of(row: &NodeRow) -> Option<Vec<NodeFault>> {
    let named = |name: &str| NodeFault::ALL.into_iter().find(|fault| fault.as_str() == name);
    row.faults.split(' ').filter(|name| !name.is_empty()).map(named).collect()
}

/// What a node says of itself at the beginning of its life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeDescription {
    /// Version of the program.
    pub version: String,
    /// The settings that all nodes should have alike, by name, none of them secret.
    pub settings: BTreeMap<String, String>,
}

impl NodeDescription {
    /// A process of this version with these settings.
    #[must_use]
    pub fn new(settings: BTreeMap<String, String>) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), settings }
    }

    /// What the row of a node says; nothing of a version that wrote it in another way.
    #[must_use]
    pub fn of(row: &NodeRow) -> Self {
        serde_json::from_str(&row.about).unwrap_or_default()
    }

    pub(super) fn print(&self) -> String {
        // Texts by texts: there is nothing that JSON does not have.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The names of the settings that both know and that differ.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let differs = |(name, value): (&String, &String)| {
            let theirs = other.settings.get(name)?;
            (theirs != value).then(|| name.clone())
        };
        self.settings.iter().filter_map(differs).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_only_one_version_knows_do_not_differ() {
        let about = |settings: &[(&str, &str)]| {
            let owned =
                settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            NodeDescription::new(owned.collect())
        };
        let ours =
            about(&[("media.sender", "A"), ("media.preview_px", "1024"), ("media.new", "x")]);
        let theirs =
            about(&[("media.sender", "B"), ("media.preview_px", "1024"), ("media.old", "x")]);
        assert_eq!(ours.differences(&theirs), ["media.sender"]);
    }
}
