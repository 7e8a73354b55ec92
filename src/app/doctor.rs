//! Diagnoses problems for an operator: settings, database, store, disk, nodes and their clocks, as seen from
//! this machine.

use api::operation::{Finding, FindingLevel};

use super::demo::refuse_published_logins;
use super::ownership::{OwnershipCheck, StoreOwnership, database_name};
use super::{OpenArchive, secrets, warnings};
use crate::cluster::findings::{
    DatabaseState, DiskState, judge_database, judge_differences, judge_disk, judge_nodes,
};
use crate::cluster::membership::{self, NodeDescription, Volume, node_label};
use crate::cluster::readiness::write_probe;
use crate::runtime::config::{Config, OriginalsLocation};
use crate::runtime::error::{Error, Result};
use crate::runtime::{clock, modes};
use crate::storage::database::Db;

/// Examines the archive of the settings from this machine. Modifies nothing except for small files and
/// objects that test whether writing works and are removed again.
pub fn examine(config: &Config) -> Vec<Finding> {
    // Opening the archive would create a missing data directory, so that is checked first.
    for folder in [config.data.dir.clone(), config.originals_dir()] {
        // With a bucket, the folder of originals is not used and need not exist.
        let is_needed = folder == config.data.dir
            || !matches!(config.store.originals, OriginalsLocation::Bucket { .. });
        if is_needed && !folder.is_dir() {
            let text = format!("{} is missing; nothing else was checked", folder.display());
            return vec![Finding::new(FindingLevel::Problem, "disk", text)];
        }
    }
    let mut found = disks(config);
    match OpenArchive::open_to_examine(config) {
        Ok(archive) => {
            found.extend(archive_findings(config, &archive));
        }
        Err(cause) => {
            found.push(Finding::new(FindingLevel::Problem, "archive", with_source(&cause)));
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

fn disks(config: &Config) -> Vec<Finding> {
    // A read-only node writes no originals.
    let store = Volume::store(config).filter(|_| !config.server.role.is_read_only());
    let volumes = std::iter::once(Volume::data(config)).chain(store);
    let findings = volumes.map(|volume| {
        judge_disk(&DiskState {
            dir: &volume.folder,
            written: write_probe(&volume.folder),
            free_bytes: modes::free_bytes(&volume.folder),
            required_bytes: config.media.file_bytes_max,
        })
    });
    let warning = config.proxy_warning();
    let warning = warning.map(|text| Finding::new(FindingLevel::Warning, "settings", text));
    findings.chain(warning).collect()
}

fn archive_findings(config: &Config, archive: &OpenArchive) -> Vec<Finding> {
    let mut found: Vec<Finding> = warnings(config, &archive.db)
        .into_iter()
        .map(|text| Finding::new(FindingLevel::Warning, "settings", text))
        .collect();
    found.extend(findings_or_failure("database", database(config, &archive.db)));
    // A read-only node needs no key.
    if !config.server.role.is_read_only() {
        found.extend(findings_or_failure("secrets", secrets_key(config, &archive.db)));
    }
    found.extend(findings_or_failure("store", store(config, archive)));
    found.extend(findings_or_failure("nodes", node_findings(config, &archive.db)));
    // A refusal is a problem: only nodes with --demo-public, which no setting states, start with it.
    let published = refuse_published_logins(archive, config);
    found.extend(findings_or_failure("accounts", published.map(|()| Vec::new())));
    found
}

/// Returns the findings about an area, or the failure to examine it as the only finding.
fn findings_or_failure(about: &'static str, findings: Result<Vec<Finding>>) -> Vec<Finding> {
    findings.unwrap_or_else(|cause| {
        vec![Finding::new(FindingLevel::Problem, about, with_source(&cause))]
    })
}

fn database(config: &Config, db: &Db) -> Result<Vec<Finding>> {
    let asked = clock::now();
    let (facts, items) = db.read_blocking(|tx| Ok((tx.database_facts()?, tx.count_items()?)))?;
    Ok(judge_database(&DatabaseState {
        facts: &facts,
        location: Some(&database_name(config)),
        items,
        asked,
        only_reads: config.server.role.is_read_only(),
    }))
}

fn secrets_key(config: &Config, db: &Db) -> Result<Vec<Finding>> {
    let text = match secrets::check_key(config, db)? {
        Some(id) => format!("{} has the current key {id}", secrets::key_source(config)),
        None => "the secrets in the database are not encrypted yet".to_owned(),
    };
    Ok(vec![Finding::new(FindingLevel::Fine, "secrets", text)])
}

fn store(config: &Config, archive: &OpenArchive) -> Result<Vec<Finding>> {
    let store = &archive.originals.store;
    let name = store.name();
    let check = OwnershipCheck::new(config, &archive.db, store);
    let id = archive.db.read_blocking(|tx| tx.archive_id())?;
    let only_reads = config.server.role.is_read_only();
    let (level, text) = match check.examine(only_reads) {
        Ok(StoreOwnership::Ours) => {
            (FindingLevel::Fine, format!("{name} belongs to the archive {id}"))
        }
        Ok(StoreOwnership::Unknown(why)) => (FindingLevel::Warning, format!("{name}: {why}")),
        Err(cause) => (FindingLevel::Problem, with_source(&cause)),
    };
    let mut found = vec![Finding::new(level, "store", text)];
    // A read-only node may lack the right to write to the store on purpose.
    if only_reads {
        return Ok(found);
    }
    let written = if store.is_remote() {
        store.check_writable().map_err(|cause| cause.to_string())
    } else {
        // The store accepts a folder without writing to it, since a server also starts on a full disk.
        write_probe(&config.originals_dir())
            .map_err(|cause| format!("{name} cannot be written: {cause}"))
    };
    found.push(match written {
        Ok(()) => Finding::new(FindingLevel::Fine, "store", format!("{name} can be written")),
        Err(cause) => Finding::new(FindingLevel::Problem, "store", cause),
    });
    Ok(found)
}

/// Reports the nodes with their heartbeats, and differences between their settings.
fn node_findings(config: &Config, db: &Db) -> Result<Vec<Finding>> {
    let nodes = membership::observe(db, membership::limits::HEARTBEAT_TIMEOUT)?;
    let mut found = judge_nodes(&nodes, clock::now());
    if nodes.is_empty() {
        return Ok(found);
    }
    let own = ("this command".to_owned(), NodeDescription::new(config.alike()));
    let others =
        nodes.iter().map(|node| (node_label(&node.row), NodeDescription::from_row(&node.row)));
    found.extend(judge_differences(std::iter::once(own).chain(others)));
    Ok(found)
}
