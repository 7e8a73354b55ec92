//! What an operator asks when something feels wrong: settings, database, store, disk, nodes and their
//! clocks, looked at from this machine.

use std::collections::BTreeMap;

use super::{Archive, ownership, warnings};
use crate::cluster::membership::{self, About, Observed, limits::SKEW_S};
use crate::cluster::readiness::write_probe;
use crate::runtime::clock;
use crate::runtime::config::{Config, Place, Value};
use crate::runtime::error::{Error, Result};
use crate::runtime::modes;
use crate::storage::database::{Db, NodeRow};

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It is as it should be.
    Fine,
    /// It works, and something should be looked at.
    Warning,
    /// It does not work, or will not.
    Problem,
}

impl Level {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What it is about.
    pub about: &'static str,
    /// A sentence.
    pub text: String,
}

impl Finding {
    /// A finding.
    pub fn new(level: Level, about: &'static str, text: impl Into<String>) -> Self {
        Self { level, about, text: text.into() }
    }
}

/// Part of the connections of a database server from which on it is warned of.
const CONNECTIONS_SHARE: i64 = 80;

/// Looks at the archive of the settings from this machine. Nothing is changed but small files and objects
/// that show whether something can be written, and that are removed again.
pub fn examine(config: &Config) -> Vec<Finding> {
    for folder in [config.data.dir.clone(), config.originals_dir()] {
        let is_needed =
            folder == config.data.dir || !matches!(config.store.originals, Place::Bucket { .. });
        if is_needed && !folder.is_dir() {
            let text = format!("{} is missing; nothing else was looked at", folder.display());
            return vec![Finding::new(Level::Problem, "disk", text)];
        }
    }
    let mut found = disk(config);
    match Archive::open_to_examine(config) {
        Ok(archive) => {
            found.extend(archive_findings(config, &archive));
        }
        Err(cause) => found.push(Finding::new(Level::Problem, "archive", words(&cause))),
    }
    found
}

fn words(cause: &Error) -> String {
    match std::error::Error::source(cause) {
        Some(deeper) => format!("{cause}: {deeper}"),
        None => cause.to_string(),
    }
}

fn disk(config: &Config) -> Vec<Finding> {
    let dir = &config.data.dir;
    let shown = dir.display();
    let wanted = config.media.file_bytes_max;
    let finding = match (write_probe(dir), modes::free_bytes(dir)) {
        (Err(cause), _) => {
            Finding::new(Level::Problem, "disk", format!("{shown} cannot be written: {cause}"))
        }
        (Ok(()), Ok(free)) if free < wanted => Finding::new(
            Level::Warning,
            "disk",
            format!("{shown} has {free} bytes free, fewer than media.file_bytes_max ({wanted})"),
        ),
        (Ok(()), Ok(free)) => Finding::new(
            Level::Fine,
            "disk",
            format!("{shown} can be written, {} MiB are free", free >> 20),
        ),
        (Ok(()), Err(cause)) => Finding::new(
            Level::Warning,
            "disk",
            format!("{shown} can be written; its room is not known: {cause}"),
        ),
    };
    let hidden = config.hidden_clients();
    let hidden = hidden.map(|text| Finding::new(Level::Warning, "settings", text));
    [finding].into_iter().chain(hidden).collect()
}

fn archive_findings(config: &Config, archive: &Archive) -> Vec<Finding> {
    let mut found: Vec<Finding> = warnings(config, &archive.db)
        .into_iter()
        .map(|text| Finding::new(Level::Warning, "settings", text))
        .collect();
    let mut note = |about, outcome: Result<Vec<Finding>>| {
        let failed = |cause: Error| vec![Finding::new(Level::Problem, about, words(&cause))];
        found.extend(outcome.unwrap_or_else(failed));
    };
    note("database", database(config, &archive.db));
    note("store", store(config, archive));
    note("nodes", running(config, &archive.db));
    found
}

fn database(config: &Config, db: &Db) -> Result<Vec<Finding>> {
    let before = clock::now();
    let (facts, items) = db.read_blocking(|tx| Ok((tx.database_facts()?, tx.count_items()?)))?;
    let mut found = Vec::new();
    let place = match config.database.url.0.as_str() {
        "" => config.data.dir.join(crate::storage::database::DATABASE).display().to_string(),
        _ => config.database.url.print(),
    };
    let role = facts.role.map(|role| format!(", as {role}")).unwrap_or_default();
    let text = format!("{} at {place}{role}: {items} items", facts.engine);
    found.push(Finding::new(Level::Fine, "database", text));
    if !facts.lacking.is_empty() && !config.server.role.only_reads() {
        let text = format!("the role may not read and write {}", facts.lacking.join(", "));
        found.push(Finding::new(Level::Problem, "database", text));
    }
    if let Some((open, most)) = facts.connections {
        let text = format!("{open} of {most} connections of the server are open");
        let level = match open * 100 >= most * CONNECTIONS_SHARE {
            true => Level::Warning,
            false => Level::Fine,
        };
        found.push(Finding::new(level, "database", text));
    }
    if let Some(clock) = facts.clock {
        found.push(skew(
            "clock",
            "the database server",
            clock.duration_since(before).as_secs_f64(),
        ));
    }
    Ok(found)
}

fn skew(about: &'static str, whose: &str, seconds: f64) -> Finding {
    let level = if seconds.abs() < SKEW_S { Level::Fine } else { Level::Warning };
    let text = match level {
        Level::Fine => format!("the clock of {whose} is that of this machine"),
        Level::Warning | Level::Problem => {
            format!("the clock of {whose} is {seconds:+.1} s off that of this machine")
        }
    };
    Finding::new(level, about, text)
}

fn store(config: &Config, archive: &Archive) -> Result<Vec<Finding>> {
    let store = archive.originals.store();
    let name = store.name();
    let names = ownership::Names::of(config, store);
    let id = archive.db.read_blocking(|tx| tx.archive_id())?;
    let mut found = vec![match ownership::examine(&archive.db, store, &names) {
        Ok(ownership::Settled::Ours) => {
            Finding::new(Level::Fine, "store", format!("{name} belongs to the archive {id}"))
        }
        Ok(ownership::Settled::Unknown(why)) => {
            Finding::new(Level::Warning, "store", format!("{name}: {why}"))
        }
        Err(cause) => Finding::new(Level::Problem, "store", words(&cause)),
    }];
    if config.server.role.only_reads() {
        return Ok(found);
    }
    found.push(match store.prove() {
        Ok(()) => Finding::new(Level::Fine, "store", format!("{name} can be written")),
        Err(cause) => Finding::new(Level::Problem, "store", cause.to_string()),
    });
    Ok(found)
}

/// The nodes, whether they live, and in what they differ.
fn running(config: &Config, db: &Db) -> Result<Vec<Finding>> {
    let nodes = membership::observe(db, membership::limits::STILL)?;
    if nodes.is_empty() {
        return Ok(vec![Finding::new(Level::Warning, "nodes", "no node serves the archive")]);
    }
    let mut found: Vec<Finding> = nodes.iter().map(one).collect();
    found.extend(differences(config, nodes.iter().map(|node| &node.row)));
    Ok(found)
}

fn one(node: &Observed) -> Finding {
    let row = &node.row;
    let about = About::of(row);
    let version = if about.version.is_empty() { "unknown" } else { &about.version };
    let mut text = format!("{} ({}, version {version})", row.node, row.role);
    let mut level = Level::Fine;
    if node.beats == Some(false) {
        level = Level::Problem;
        text.push_str(": its heartbeat has stopped");
    }
    if !row.faults.is_empty() {
        level = Level::Problem;
        text.push_str(&format!(" reports faults: {}", row.faults));
    }
    if node.beats.is_some() {
        let seconds = row.seen.duration_since(clock::now()).as_secs_f64();
        // A sign of life comes every other second.
        if seconds.abs() >= SKEW_S {
            level = level.max_with(Level::Warning);
            text.push_str(&format!("; its clock is {seconds:+.0} s off that of this machine"));
        }
    }
    Finding::new(level, "nodes", text)
}

impl Level {
    fn max_with(self, other: Self) -> Self {
        if self == Self::Problem { self } else { other }
    }
}

/// The settings that should be alike and are not, with the values of each node and of this command.
fn differences<'a>(config: &Config, nodes: impl Iterator<Item = &'a NodeRow>) -> Vec<Finding> {
    let mut values: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    let mut note = |whose: &str, about: &About| {
        for (name, value) in &about.settings {
            let of = values.entry(name.clone()).or_default();
            of.entry(value.clone()).or_default().push(whose.to_owned());
        }
        if !about.version.is_empty() {
            let of = values.entry("version".to_owned()).or_default();
            of.entry(about.version.clone()).or_default().push(whose.to_owned());
        }
    };
    note("this command", &About::new(config.alike()));
    for row in nodes {
        note(&row.node, &About::of(row));
    }
    let differ = values.into_iter().filter(|(_, of)| of.len() > 1);
    let text = |(name, of): (String, BTreeMap<String, Vec<String>>)| {
        let told = of.iter().map(|(value, whose)| format!("{value:?} at {}", whose.join(", ")));
        let text = format!("{name} differs: {}", told.collect::<Vec<_>>().join("; "));
        Finding::new(Level::Warning, "settings", text)
    };
    differ.map(text).collect()
}
