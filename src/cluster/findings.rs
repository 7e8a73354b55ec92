//! Judges the components that the service depends on: disk, database, nodes, their clocks and settings. The
//! command `wirephoto doctor` and the operator's page show the same findings.

use std::{collections::BTreeMap, io, path::Path};

use api::operation::{Finding, FindingLevel};
use jiff::Timestamp;

use super::membership::limits::SKEW_S;
use super::membership::{NodeDescription, ObservedNode, node_label, transition_of};
use crate::storage::database::DatabaseFacts;

/// Used connections of a database server, in percent of its limit, at which a warning is issued.
const CONNECTIONS_SHARE: i64 = 80;

/// Measurements of the disk of a data directory.
#[derive(Debug)]
pub struct DiskState<'a> {
    pub dir: &'a Path,
    /// The outcome of writing a small file.
    pub written: io::Result<()>,
    pub free_bytes: io::Result<u64>,
    /// Space that an ingest may need: the size of the largest file that the settings allow.
    pub required_bytes: u64,
}

/// Judges the disk of a data directory.
pub fn judge_disk(disk: &DiskState<'_>) -> Finding {
    let shown = disk.dir.display();
    let required = disk.required_bytes;
    let (level, text) = match (&disk.written, &disk.free_bytes) {
        (Err(cause), _) => (FindingLevel::Problem, format!("{shown} cannot be written: {cause}")),
        (Ok(()), Ok(free)) if *free < required => (
            FindingLevel::Warning,
            format!("{shown} has {free} bytes free, fewer than media.file_bytes_max ({required})"),
        ),
        (Ok(()), Ok(free)) => {
            (FindingLevel::Fine, format!("{shown} can be written, {} MiB are free", free >> 20))
        }
        (Ok(()), Err(cause)) => (
            FindingLevel::Warning,
            format!("{shown} can be written; its free space is unknown: {cause}"),
        ),
    };
    Finding::new(level, "disk", text)
}

/// Facts about the database, as read.
#[derive(Debug)]
pub struct DatabaseState<'a> {
    pub facts: &'a DatabaseFacts,
    /// File or URL of the database; `None` if it is not shown.
    pub location: Option<&'a str>,
    pub items: u64,
    /// The time of this machine before the facts were read.
    pub asked: Timestamp,
    /// True if this process only reads: its role lacks the right to write on purpose.
    pub only_reads: bool,
}

/// Judges the database: rights of the role, connections and clock of a server.
pub fn judge_database(database: &DatabaseState<'_>) -> Vec<Finding> {
    let DatabaseState { facts, location, items, asked, only_reads } = database;
    let location = location.map(|location| format!(" at {location}")).unwrap_or_default();
    let role = facts.role.as_ref().map(|role| format!(", as {role}")).unwrap_or_default();
    let text = format!("{}{location}{role}: {items} items", facts.engine);
    let mut found = vec![Finding::new(FindingLevel::Fine, "database", text)];
    if !facts.inaccessible_tables.is_empty() && !only_reads {
        let text =
            format!("the role may not read and write {}", facts.inaccessible_tables.join(", "));
        found.push(Finding::new(FindingLevel::Problem, "database", text));
    }
    if let Some((open, most)) = facts.connections {
        let text = format!("{open} of {most} connections of the server are open");
        let is_high = open * 100 >= most * CONNECTIONS_SHARE;
        let level = if is_high { FindingLevel::Warning } else { FindingLevel::Fine };
        found.push(Finding::new(level, "database", text));
    }
    if let Some(clock) = facts.clock {
        // This machine's time is read before the query, so the duration of the query counts as skew. It is
        // small compared with `SKEW_S`.
        let seconds = clock.duration_since(*asked).as_secs_f64();
        found.push(judge_skew("the database server", seconds));
    }
    found
}

fn judge_skew(whose: &str, seconds: f64) -> Finding {
    if seconds.abs() < SKEW_S {
        let text = format!("the clock of {whose} agrees with that of this machine");
        return Finding::new(FindingLevel::Fine, "clock", text);
    }
    let text = format!("the clock of {whose} is {seconds:+.1} s off that of this machine");
    Finding::new(FindingLevel::Warning, "clock", text)
}

/// Judges the nodes: heartbeats, faults and clocks.
pub fn judge_nodes(nodes: &[ObservedNode], now: Timestamp) -> Vec<Finding> {
    if nodes.is_empty() {
        let text = "no node serves the archive";
        return vec![Finding::new(FindingLevel::Warning, "nodes", text)];
    }
    nodes.iter().map(|node| judge_node(node, now)).collect()
}

fn judge_node(node: &ObservedNode, now: Timestamp) -> Finding {
    let row = &node.row;
    let about = NodeDescription::from_row(row);
    let version = if about.version.is_empty() { "unknown" } else { &about.version };
    let mut text = format!("{}, version {version}", node_label(row));
    let mut level = FindingLevel::Fine;
    if node.is_alive == Some(false) {
        level = FindingLevel::Problem;
        text.push_str(": its heartbeat has stopped");
    }
    if let Some(transition) = transition_of(row) {
        // Every restart passes through these states, so a monitor must not report them as a failure.
        level = level.max(FindingLevel::Warning);
        text.push_str(&format!(", {transition}"));
    } else if !row.faults.is_empty() {
        level = FindingLevel::Problem;
        text.push_str(&format!(" reports faults: {}", row.faults));
    }
    // The heartbeats of a single node are too rare to compare their times with this clock.
    if node.is_alive.is_some() {
        let seconds = row.seen.duration_since(now).as_secs_f64();
        // A heartbeat is written every other second, so a smaller difference says nothing about the clock.
        if seconds.abs() >= SKEW_S {
            level = level.max(FindingLevel::Warning);
            text.push_str(&format!("; its clock is {seconds:+.0} s off that of this machine"));
        }
    }
    Finding::new(level, "nodes", text)
}

/// Lists the settings that should be equal on all nodes but are not, with the values of each. `described` has
/// the names and descriptions of the nodes.
pub fn judge_differences(
    described: impl IntoIterator<Item = (String, NodeDescription)>,
) -> Vec<Finding> {
    let mut values: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for (whose, about) in described {
        for (name, value) in &about.settings {
            let holders = values.entry(name.clone()).or_default();
            holders.entry(value.clone()).or_default().push(whose.clone());
        }
        if !about.version.is_empty() {
            let holders = values.entry("version".to_owned()).or_default();
            holders.entry(about.version).or_default().push(whose);
        }
    }
    let differ = values.iter().filter(|(_, holders)| holders.len() > 1);
    differ.map(|(name, holders)| report_difference(name, holders)).collect()
}

/// Reports that the setting `name` has several values; `holders` are the names of the nodes by value.
fn report_difference(name: &str, holders: &BTreeMap<String, Vec<String>>) -> Finding {
    let groups = holders.iter().map(|(value, whose)| format!("{value:?} at {}", whose.join(", ")));
    let text = format!("{name} differs: {}", groups.collect::<Vec<_>>().join("; "));
    Finding::new(FindingLevel::Warning, "settings", text)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::storage::database::NodeRow;

    #[test]
    fn a_starting_node_is_no_problem() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let check = |faults: &str, is_alive, expected, part: &str| {
            let row = NodeRow {
                incarnation: Uuid::from_u128(1),
                node: "n".to_owned(),
                role: "all".to_owned(),
                heartbeat: 0,
                followed: 0,
                seen: now,
                about: "{}".to_owned(),
                faults: faults.to_owned(),
                figures: "{}".to_owned(),
                figures_at: None,
            };
            let node = ObservedNode { row, is_alive, leases: Vec::new() };
            let found = judge_nodes(&[node], now).remove(0);
            assert_eq!(found.level, expected, "{}", found.text);
            assert!(found.text.ends_with(part), "{}", found.text);
        };
        check("", None, FindingLevel::Fine, "n (all), version unknown");
        check("starting", Some(true), FindingLevel::Warning, "version unknown, is starting");
        check("draining", None, FindingLevel::Warning, "version unknown, is stopping");
        check("starting", Some(false), FindingLevel::Problem, "has stopped, is starting");
        check("disk", None, FindingLevel::Problem, " reports faults: disk");
    }

    #[test]
    fn a_disk_is_judged_by_what_an_ingest_needs() {
        let check = |written: io::Result<()>, free_bytes: io::Result<u64>, expected| {
            let disk =
                DiskState { dir: Path::new("/d"), written, free_bytes, required_bytes: 1 << 20 };
            let found = judge_disk(&disk);
            assert_eq!((found.level, found.about.as_str()), (expected, "disk"), "{}", found.text);
        };
        let failed = || io::Error::from(io::ErrorKind::PermissionDenied);
        check(Ok(()), Ok(1 << 20), FindingLevel::Fine);
        check(Ok(()), Ok((1 << 20) - 1), FindingLevel::Warning);
        check(Ok(()), Err(failed()), FindingLevel::Warning);
        check(Err(failed()), Ok(1 << 30), FindingLevel::Problem);
    }

    #[test]
    fn only_settings_with_several_values_differ() {
        let about = |name: &str, media: &str| {
            let settings = [
                ("media.preview_px".to_owned(), media.to_owned()),
                ("store.originals".to_owned(), String::new()),
            ];
            (name.to_owned(), NodeDescription::new(settings.into()))
        };
        let found = judge_differences([about("a", "1024"), about("b", "900"), about("c", "900")]);
        let texts: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, [r#"media.preview_px differs: "1024" at a; "900" at b, c"#]);
        assert_eq!(judge_differences([about("a", "1024")]), []);
    }

    #[test]
    fn a_database_server_is_judged_by_its_rights_connections_and_clock() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let facts = DatabaseFacts {
            engine: "PostgreSQL 16".to_owned(),
            role: Some("wirephoto".to_owned()),
            clock: Timestamp::from_second(1_700_000_060).ok(),
            connections: Some((90, 100)),
            inaccessible_tables: vec!["orders".to_owned()],
        };
        let state = |only_reads| DatabaseState {
            facts: &facts,
            location: None,
            items: 3,
            asked: now,
            only_reads,
        };
        let texts: Vec<String> =
            judge_database(&state(false)).into_iter().map(|one| one.text).collect();
        assert_eq!(
            texts,
            [
                "PostgreSQL 16, as wirephoto: 3 items",
                "the role may not read and write orders",
                "90 of 100 connections of the server are open",
                "the clock of the database server is +60.0 s off that of this machine",
            ]
        );
        assert_eq!(judge_database(&state(true)).len(), 3);
    }
}
