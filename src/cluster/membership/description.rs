//! The machine, version, settings and current faults of a node, which it publishes in its row.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{EnumIter, EnumString, IntoStaticStr};

use crate::storage::database::NodeRow;

/// A function that a node cannot perform while other nodes may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(EnumIter, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum NodeFault {
    /// The database cannot be read, or at least one kind of connection fails.
    Database,
    /// The search index is incomplete.
    Search,
    /// Originals cannot be reached.
    Store,
    /// The data directory cannot be written.
    Disk,
}

model::impl_as_str!(NodeFault);

/// The text in place of faults in the row of a node until its first probe is complete.
pub(super) const STARTING: &str = "starting";
/// The text in place of faults in the row of a node while it stops.
pub(super) const DRAINING: &str = "draining";

/// Prints faults in the format of the row of a node: names, separated by spaces.
pub(super) fn print(faults: &[NodeFault]) -> String {
    faults.iter().map(|fault| fault.as_str()).collect::<Vec<_>>().join(" ")
}

/// Parses the faults in the row of a node. Returns `None` if the node accepts no requests: it starts, stops,
/// or reports a fault that this version does not know.
pub fn faults_of(row: &NodeRow) -> Option<Vec<NodeFault>> {
    let names = row.faults.split(' ').filter(|name| !name.is_empty());
    names.map(|name| name.parse().ok()).collect()
}

/// Returns why a node accepts no requests although it works: it is starting or stopping.
pub fn transition_of(row: &NodeRow) -> Option<&'static str> {
    match row.faults.as_str() {
        STARTING => Some("is starting"),
        DRAINING => Some("is stopping"),
        _ => None,
    }
}

/// The description that a node publishes at the start of its incarnation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeDescription {
    pub version: String,
    /// The name of the machine; empty if it is unknown.
    pub host: String,
    /// The address that the node listens on, as in its settings.
    pub listen: String,
    /// Settings that should be equal on all nodes, by name; none is secret.
    pub settings: BTreeMap<String, String>,
}

impl NodeDescription {
    /// Describes a process of this version with these settings.
    pub fn new(settings: BTreeMap<String, String>) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), settings, ..Self::default() }
    }

    /// Adds the name of the machine and the address that the node listens on.
    #[must_use]
    pub fn at(self, host: String, listen: String) -> Self {
        Self { host, listen, ..self }
    }

    /// Reads the description in the row of a node. It is empty if a different version wrote an unknown
    /// format.
    pub fn from_row(row: &NodeRow) -> Self {
        serde_json::from_str(&row.about).unwrap_or_default()
    }

    pub(super) fn print(&self) -> String {
        // A struct of strings cannot fail to serialize.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the names of the settings that both nodes know and that differ.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut names = Vec::new();
        for (name, value) in &self.settings {
            // During a rolling upgrade, a setting of the newer version is unknown to the other node.
            if other.settings.get(name).is_some_and(|theirs| theirs != value) {
                names.push(name.clone());
            }
        }
        names
    }
}

/// Returns the name of a node for logs and findings, with its machine, the address that it listens on and its
/// role, so that an operator finds the process.
pub fn node_label(row: &NodeRow) -> String {
    let NodeDescription { host, listen, .. } = NodeDescription::from_row(row);
    // A node of an earlier version published neither.
    let place = [host.as_str(), listen.as_str(), row.role.as_str()];
    let place = place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    format!("{} ({})", row.node, place.join(", "))
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
