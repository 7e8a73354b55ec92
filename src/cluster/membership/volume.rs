//! The folders whose file systems a node fills, and the metric of their free space.

use std::io;
use std::path::PathBuf;

use crate::runtime::config::{Config, OriginalsLocation};
use crate::runtime::{modes, telemetry};

/// A folder of the settings whose file system can become full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The label of its metric: `data` or `store`.
    name: &'static str,
    pub folder: PathBuf,
}

impl Volume {
    /// Returns the data directory.
    pub fn data(config: &Config) -> Self {
        Self { name: "data", folder: config.data.dir.clone() }
    }

    /// Returns the folder of originals if the settings name one. Originals in the data directory or in a
    /// bucket have no disk of their own.
    pub fn store(config: &Config) -> Option<Self> {
        match &config.store.originals {
            OriginalsLocation::Folder(_) => {
                Some(Self { name: "store", folder: config.originals_dir() })
            }
            OriginalsLocation::Data | OriginalsLocation::Bucket { .. } => None,
        }
    }

    /// Measures the free bytes and records them in the metrics; blocks on the disk.
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float; 2^53 bytes are far away")]
    pub fn record_free_bytes(&self) -> io::Result<u64> {
        let free_bytes = modes::free_bytes(&self.folder)?;
        let gauge = metrics::gauge!(telemetry::DISK_FREE_BYTES, "volume" => self.name);
        gauge.set(free_bytes as f64);
        Ok(free_bytes)
    }
}
