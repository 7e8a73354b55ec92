//! Figures that a node publishes in its row for the pages of the other nodes: disks, cache, search, renders.

use std::path::{Path, PathBuf};

use api::operation::{CacheFigures, DiskFigures, NodeFigures};
use jiff::Timestamp;

use super::volume::Volume;
use crate::runtime::config::Config;
use crate::runtime::modes::{DiskSpace, disk_space};
use crate::runtime::telemetry::{self, MetricValues};
use crate::storage::database::NodeRow;

/// Step in which free bytes are published: each log line changes the exact number, and would cause a write.
const FREE_STEP_BYTES: u64 = 1 << 20;

/// Reads the figures in the row of a node. They are empty if a different version wrote an unknown format.
pub fn figures_of(row: &NodeRow) -> NodeFigures {
    serde_json::from_str(&row.figures).unwrap_or_default()
}

/// Prints figures in the format of the row of a node.
pub fn print_figures(figures: &NodeFigures) -> String {
    // A struct of numbers and texts cannot fail to serialize.
    serde_json::to_string(figures).unwrap_or_default()
}

/// The sources of this process's figures, besides its metrics. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FigureSources {
    folders: Vec<PathBuf>,
    memory_limit_bytes: u64,
    disk_limit_bytes: u64,
    /// Free bytes that an ingest may need: the largest file that the settings allow.
    required_bytes: u64,
}

impl FigureSources {
    /// Reads the folders and limits in the settings.
    pub fn from_config(config: &Config) -> Self {
        let volumes = [Some(Volume::data(config)), Volume::store(config)];
        Self {
            folders: volumes.into_iter().flatten().map(|volume| volume.folder).collect(),
            memory_limit_bytes: config.cache.memory_bytes,
            disk_limit_bytes: config.cache.disk_bytes,
            required_bytes: config.media.file_bytes_max,
        }
    }

    /// Returns the free bytes that an ingest may need.
    pub fn required_bytes(&self) -> u64 {
        self.required_bytes
    }

    /// Gathers the figures of this process. Blocks on its disks.
    pub fn gather(&self, metrics: &MetricValues) -> NodeFigures {
        let started = i64::try_from(metrics.sum(telemetry::START_TIME, &[])).ok();
        NodeFigures {
            started: started.and_then(|second| Timestamp::from_second(second).ok()),
            disks: self.folders.iter().filter_map(|folder| disk(folder)).collect(),
            cache: vec![
                cache("memory", self.memory_limit_bytes, metrics),
                cache("disk", self.disk_limit_bytes, metrics),
            ],
            indexed_items: metrics.sum(telemetry::SEARCH_INDEX_ITEMS, &[]),
            index_rows_behind: metrics.sum(telemetry::SEARCH_INDEX_BEHIND, &[]),
            renders_waiting: metrics.sum(telemetry::QUEUE_DEPTH, &[]),
            renders_busy: metrics.sum(telemetry::WORKERS_BUSY, &[]),
            render_workers: metrics.sum(telemetry::WORKERS, &[]),
            connections: metrics.sum(telemetry::CONNECTIONS, &[]),
            requests: metrics.sum(telemetry::REQUESTS, &[]),
            failed_requests: metrics.sum(telemetry::REQUESTS, &["status=\"5xx\""]),
        }
    }
}

fn disk(folder: &Path) -> Option<DiskFigures> {
    // A folder that cannot be examined is a fault of the node, which its row reports.
    let DiskSpace { free_bytes, total_bytes } = disk_space(folder).ok()?;
    let free_bytes = free_bytes - free_bytes % FREE_STEP_BYTES;
    Some(DiskFigures { folder: folder.display().to_string(), free_bytes, total_bytes })
}

fn cache(tier: &str, limit_bytes: u64, metrics: &MetricValues) -> CacheFigures {
    let of_tier = format!("tier=\"{tier}\"");
    CacheFigures {
        tier: tier.to_owned(),
        bytes: metrics.sum(telemetry::CACHE_BYTES, &[&of_tier]),
        limit_bytes,
        hits: metrics.sum(telemetry::CACHE_LOOKUPS, &[&of_tier, "outcome=\"hit\""]),
        misses: metrics.sum(telemetry::CACHE_LOOKUPS, &[&of_tier, "outcome=\"miss\""]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_they_were_printed_and_unknown_ones_are_left_out() {
        let figures = NodeFigures {
            started: Timestamp::from_second(1_700_000_000).ok(),
            disks: vec![DiskFigures { folder: "/data".to_owned(), free_bytes: 5, total_bytes: 9 }],
            requests: 7,
            ..NodeFigures::default()
        };
        let read = |text: &str| serde_json::from_str::<NodeFigures>(text).unwrap();
        assert_eq!(read(&print_figures(&figures)), figures);
        let later = r#"{ "requests": 7, "temperature": 80 }"#;
        assert_eq!(read(later), NodeFigures { requests: 7, ..NodeFigures::default() });
    }
}
