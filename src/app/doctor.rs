//! Diagnoses problems for an operator: settings, database, store, disk, nodes and their clocks, as seen from
//! this machine.

use std::collections::BTreeMap;

use super::{OpenArchive, ownership, warnings};
use crate::cluster::membership::{self, NodeDescription, ObservedNode, limits::SKEW_S};
use crate::cluster::readiness::write_probe;
use crate::runtime::clock;
use crate::runtime::config::{Config, OriginalsLocation, SettingValue};
use crate::runtime::error::{Error, Result};
use crate::runtime::modes;
use crate::storage::database::{Db, NodeRow};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingLevel {
    /// Everything is in order.
    Fine,
    /// It works, but needs attention.
    Warning,
    /// It does not work, or will fail.
    Problem,
}

impl FindingLevel {
    /// The word for the severity in the output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// A finding of the diagnosis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorFinding {
    pub level: FindingLevel,
    /// The area, such as `disk`.
    pub about: &'static str,
    /// A sentence for people.
    pub text: String,
}

impl DoctorFinding {
    /// Creates a finding about the area `about`.
    pub fn new(level: FindingLevel, about: &'static str, text: impl Into<String>) -> Self {
        Self { level, about, text: text.into() }
    }
}

/// Percentage of a database server's connections from which a warning is issued.
const CONNECTIONS_SHARE: i64 = 80;

/// Examines the archive of the settings from this machine. Modifies nothing except for small files and
/// objects that test whether writing works and are removed again.
pub fn examine(config: &Config) -> Vec<DoctorFinding> {
    // Opening the archive would create a missing data directory, so that is checked first.
    for folder in [config.data.dir.clone(), config.originals_dir()] {
        // With a bucket, the folder of originals is not used and need not exist.
        let is_needed = folder == config.data.dir
            || !matches!(config.store.originals, OriginalsLocation::Bucket { .. });
        if is_needed && !folder.is_dir() {
            let text = format!("{} is missing; nothing else was checked", folder.display());
            return vec![DoctorFinding::new(FindingLevel::Problem, "disk", text)];
        }
    }
    let mut found = disk(config);
    match OpenArchive::open_to_examine(config) {
        Ok(archive) => {
            found.extend(archive_findings(config, &archive));
        }
        Err(cause) => {
            found.push(DoctorFinding::new(FindingLevel::Problem, "archive", with_source(&cause)));
        }
    }
    found
}

fn with_source(cause: &Error) -> String {
    match std::error::Error::source(cause) {
        Some(deeper) => format!("{cause}: {deeper}"),
        None => cause.to_string(),
    }
}

fn disk(config: &Config) -> Vec<DoctorFinding> {
    let dir = &config.data.dir;
    let shown = dir.display();
    let required = config.media.file_bytes_max;
    let finding = match (write_probe(dir), modes::free_bytes(dir)) {
        (Err(cause), _) => DoctorFinding::new(
            FindingLevel::Problem,
            "disk",
            format!("{shown} cannot be written: {cause}"),
        ),
        // An ingest may need as much space as the largest file that the settings allow.
        (Ok(()), Ok(free)) if free < required => DoctorFinding::new(
            FindingLevel::Warning,
            "disk",
            format!("{shown} has {free} bytes free, fewer than media.file_bytes_max ({required})"),
        ),
        (Ok(()), Ok(free)) => DoctorFinding::new(
            FindingLevel::Fine,
            "disk",
            format!("{shown} can be written, {} MiB are free", free >> 20),
        ),
        (Ok(()), Err(cause)) => DoctorFinding::new(
            FindingLevel::Warning,
            "disk",
            format!("{shown} can be written; its free space is unknown: {cause}"),
        ),
    };
    let warning = config.proxy_warning();
    let warning = warning.map(|text| DoctorFinding::new(FindingLevel::Warning, "settings", text));
    [finding].into_iter().chain(warning).collect()
}

fn archive_findings(config: &Config, archive: &OpenArchive) -> Vec<DoctorFinding> {
    let mut found: Vec<DoctorFinding> = warnings(config, &archive.db)
        .into_iter()
        .map(|text| DoctorFinding::new(FindingLevel::Warning, "settings", text))
        .collect();
    let mut add = |about, outcome: Result<Vec<DoctorFinding>>| {
        let failed = |cause: Error| {
            vec![DoctorFinding::new(FindingLevel::Problem, about, with_source(&cause))]
        };
        found.extend(outcome.unwrap_or_else(failed));
    };
    add("database", database(config, &archive.db));
    add("store", store(config, archive));
    add("nodes", node_findings(config, &archive.db));
    found
}

fn database(config: &Config, db: &Db) -> Result<Vec<DoctorFinding>> {
    let before = clock::now();
    let (facts, items) = db.read_blocking(|tx| Ok((tx.database_facts()?, tx.count_items()?)))?;
    let mut found = Vec::new();
    let location = match config.database.url.0.as_str() {
        "" => config
            .data
            .dir
            .join(crate::storage::database::DATABASE_FILE_NAME)
            .display()
            .to_string(),
        _ => config.database.url.print(),
    };
    let role = facts.role.map(|role| format!(", as {role}")).unwrap_or_default();
    let text = format!("{} at {location}{role}: {items} items", facts.engine);
    found.push(DoctorFinding::new(FindingLevel::Fine, "database", text));
    // A read-only node has a role without the right to write on purpose.
    if !facts.inaccessible_tables.is_empty() && !config.server.role.is_read_only() {
        let text =
            format!("the role may not read and write {}", facts.inaccessible_tables.join(", "));
        found.push(DoctorFinding::new(FindingLevel::Problem, "database", text));
    }
    if let Some((open, most)) = facts.connections {
        let text = format!("{open} of {most} connections of the server are open");
        let level = match open * 100 >= most * CONNECTIONS_SHARE {
            true => FindingLevel::Warning,
            false => FindingLevel::Fine,
        };
        found.push(DoctorFinding::new(level, "database", text));
    }
    if let Some(clock) = facts.clock {
        // The clock is read before the query, so its duration counts as skew; it is small compared
        // with `SKEW_S`.
        found.push(skew(
            "clock",
            "the database server",
            clock.duration_since(before).as_secs_f64(),
        ));
    }
    Ok(found)
}

fn skew(about: &'static str, whose: &str, seconds: f64) -> DoctorFinding {
    let level = if seconds.abs() < SKEW_S { FindingLevel::Fine } else { FindingLevel::Warning };
    let text = match level {
        FindingLevel::Fine => format!("the clock of {whose} agrees with that of this machine"),
        FindingLevel::Warning | FindingLevel::Problem => {
            format!("the clock of {whose} is {seconds:+.1} s off that of this machine")
        }
    };
    DoctorFinding::new(level, about, text)
}

fn store(config: &Config, archive: &OpenArchive) -> Result<Vec<DoctorFinding>> {
    let store = archive.originals.store();
    let name = store.name();
    let names = ownership::ArchiveNames::of(config, store);
    let id = archive.db.read_blocking(|tx| tx.archive_id())?;
    let only_reads = config.server.role.is_read_only();
    let mut found = vec![match ownership::examine(&archive.db, store, &names, only_reads) {
        Ok(ownership::StoreOwnership::Ours) => DoctorFinding::new(
            FindingLevel::Fine,
            "store",
            format!("{name} belongs to the archive {id}"),
        ),
        Ok(ownership::StoreOwnership::Unknown(why)) => {
            DoctorFinding::new(FindingLevel::Warning, "store", format!("{name}: {why}"))
        }
        Err(cause) => DoctorFinding::new(FindingLevel::Problem, "store", with_source(&cause)),
    }];
    // A read-only node may lack the right to write to the store on purpose.
    if only_reads {
        return Ok(found);
    }
    found.push(match store.check_writable() {
        Ok(()) => {
            DoctorFinding::new(FindingLevel::Fine, "store", format!("{name} can be written"))
        }
        Err(cause) => DoctorFinding::new(FindingLevel::Problem, "store", cause.to_string()),
    });
    Ok(found)
}

/// Reports the nodes with their heartbeats, and differences between their settings.
fn node_findings(config: &Config, db: &Db) -> Result<Vec<DoctorFinding>> {
    let nodes = membership::observe(db, membership::limits::HEARTBEAT_TIMEOUT)?;
    if nodes.is_empty() {
        return Ok(vec![DoctorFinding::new(
            FindingLevel::Warning,
            "nodes",
            "no node serves the archive",
        )]);
    }
    let mut found: Vec<DoctorFinding> = nodes.iter().map(node_finding).collect();
    found.extend(differences(config, nodes.iter().map(|node| &node.row)));
    Ok(found)
}

fn node_finding(node: &ObservedNode) -> DoctorFinding {
    let row = &node.row;
    let about = NodeDescription::of(row);
    let version = if about.version.is_empty() { "unknown" } else { &about.version };
    let mut text = format!("{} ({}, version {version})", row.node, row.role);
    let mut level = FindingLevel::Fine;
    if node.is_beating == Some(false) {
        level = FindingLevel::Problem;
        text.push_str(": its heartbeat has stopped");
    }
    if !row.faults.is_empty() {
        level = FindingLevel::Problem;
        text.push_str(&format!(" reports faults: {}", row.faults));
    }
    // The heartbeats of a single node are too rare to compare their times with this clock.
    if node.is_beating.is_some() {
        let seconds = row.seen.duration_since(clock::now()).as_secs_f64();
        // A heartbeat is written every other second, so a smaller difference says nothing about
        // the clock.
        if seconds.abs() >= SKEW_S {
            level = level.max_with(FindingLevel::Warning);
            text.push_str(&format!("; its clock is {seconds:+.0} s off that of this machine"));
        }
    }
    DoctorFinding::new(level, "nodes", text)
}

impl FindingLevel {
    fn max_with(self, other: Self) -> Self {
        if self == Self::Problem { self } else { other }
    }
}

/// The settings that should be equal on all nodes but are not, with the values of each node and of this
/// command.
fn differences<'a>(
    config: &Config,
    nodes: impl Iterator<Item = &'a NodeRow>,
) -> Vec<DoctorFinding> {
    let mut values: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    let mut add = |whose: &str, about: &NodeDescription| {
        for (name, value) in &about.settings {
            let holders = values.entry(name.clone()).or_default();
            holders.entry(value.clone()).or_default().push(whose.to_owned());
        }
        if !about.version.is_empty() {
            let holders = values.entry("version".to_owned()).or_default();
            holders.entry(about.version.clone()).or_default().push(whose.to_owned());
        }
    };
    add("this command", &NodeDescription::new(config.alike()));
    for row in nodes {
        add(&row.node, &NodeDescription::of(row));
    }
    let differ = values.into_iter().filter(|(_, holders)| holders.len() > 1);
    let text = |(name, holders): (String, BTreeMap<String, Vec<String>>)| {
        let groups =
            holders.iter().map(|(value, whose)| format!("{value:?} at {}", whose.join(", ")));
        let text = format!("{name} differs: {}", groups.collect::<Vec<_>>().join("; "));
        DoctorFinding::new(FindingLevel::Warning, "settings", text)
    };
    differ.map(text).collect()
}
