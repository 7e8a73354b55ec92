//! The results of a benchmark, as a table and as JSON.

use serde_json::{Map, Value, json};

use super::{LatencyPercentiles, OperationResult};

/// Derived files of one kind.
#[derive(Clone, Copy, Debug)]
pub struct DerivedFiles {
    /// `index`, `working` or `standard`.
    pub kind: &'static str,
    /// Number of originals that have one.
    pub files: usize,
    /// Total length of these files in bytes.
    pub bytes: u64,
}

/// The results of a benchmark.
#[derive(Clone, Debug)]
pub struct BenchReport {
    pub photographs: usize,
    /// Total number of pixels of the originals.
    pub pixels: u64,
    /// Total length of the originals in bytes.
    pub bytes: u64,
    /// Milliseconds to ingest one photograph.
    pub ingest_ms: LatencyPercentiles,
    /// The derived files of the originals.
    pub derived: Vec<DerivedFiles>,
    /// The operations, in the order of their measurement.
    pub operations: Vec<OperationResult>,
}

const MEGA: f64 = 1e6;

impl BenchReport {
    /// Formats the table; each line ends with a line break.
    pub fn table(&self) -> String {
        let Self { photographs, pixels, bytes, ingest_ms, .. } = self;
        let noun = if *photographs == 1 { "photograph" } else { "photographs" };
        let mut text = format!(
            "{photographs} {noun}, {:.1} megapixels, {:.1} MB; ingested in {} ms each, the \
             slowest in {} ms\nderived files, of the originals' bytes:",
            real(*pixels) / MEGA,
            real(*bytes) / MEGA,
            digits(ingest_ms.p50),
            digits(ingest_ms.p99),
        );
        for (index, derived) in self.derived.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let kind = derived.kind;
            let files = derived.files;
            text.push_str(&format!("{comma} {kind} {:.1} % ({files})", self.percent(derived)));
        }
        let heads = ["per s", "p50 ms", "p95 ms", "p99 ms", "kB each", "peak MB"];
        text.push_str(&format!("\n\n{:<18}{:>8}", "operation", "workers"));
        heads.iter().for_each(|head| text.push_str(&format!("{head:>9}")));
        text.push_str("  path\n");
        for measured in &self.operations {
            measured.row(&mut text);
        }
        let unreported = self.operations.iter().any(|measured| measured.peak_bytes.is_none());
        // A peak that could not be reset includes the operations measured before.
        let shared = self.operations.iter().any(|measured| !measured.peak_is_own);
        if unreported {
            text.push_str("This system does not report peak memory.\n");
        } else if shared {
            text.push_str("Peak memory is that of the run so far.\n");
        }
        text
    }

    /// Formats the results as one JSON object.
    pub fn json(&self) -> Value {
        let mut derived_files = Map::new();
        for derived in &self.derived {
            let percent = self.percent(derived);
            let value =
                json!({ "files": derived.files, "bytes": derived.bytes, "percent": percent });
            derived_files.insert(derived.kind.to_owned(), value);
        }
        json!({
            "photographs": self.photographs,
            "pixels": self.pixels,
            "bytes": self.bytes,
            "ingestMs": self.ingest_ms,
            "derived": derived_files,
            "operations": self.operations.iter().map(OperationResult::json).collect::<Vec<_>>(),
        })
    }

    fn percent(&self, derived: &DerivedFiles) -> f64 {
        // Without the lower bound, an empty sum would yield NaN, which JSON cannot represent.
        real(derived.bytes) * 100.0 / real(self.bytes.max(1))
    }
}

impl OperationResult {
    fn per_second(&self) -> f64 {
        // Without the lower bound, a run too short for the clock would yield infinity, which JSON
        // cannot represent.
        real(self.renditions as u64) / self.seconds.max(f64::MIN_POSITIVE)
    }

    fn bytes_each(&self) -> u64 {
        self.bytes / (self.renditions as u64).max(1)
    }

    fn row(&self, text: &mut String) {
        let LatencyPercentiles { p50, p95, p99 } = self.ms;
        text.push_str(&format!("{:<18}{:>8}", self.title, self.workers));
        for number in [self.per_second(), p50, p95, p99, real(self.bytes_each()) / 1000.0] {
            text.push_str(&format!("{:>9}", digits(number)));
        }
        match self.peak_bytes {
            Some(bytes) => text.push_str(&format!("{:>9.0}", real(bytes) / MEGA)),
            None => text.push_str(&format!("{:>9}", "-")),
        }
        for (index, (path, count)) in self.render_paths.iter().enumerate() {
            let comma = if index == 0 { " " } else { "," };
            text.push_str(&format!("{comma} {path} {count}"));
        }
        text.push('\n');
    }

    fn json(&self) -> Value {
        json!({
            "operation": self.operation.as_str(),
            "title": self.title,
            "workers": self.workers,
            "renditions": self.renditions,
            "seconds": self.seconds,
            "perSecond": self.per_second(),
            "ms": self.ms,
            "paths": self.render_paths,
            "bytesEach": self.bytes_each(),
            "peakBytes": self.peak_bytes,
            "peakSince": if self.peak_is_own { "operation" } else { "start" },
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn real(number: u64) -> f64 {
    number as f64
}

/// Formats a number with about three digits.
fn digits(number: f64) -> String {
    let decimals = match number {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::bench::BenchOperation;

    fn report(peak_bytes: Option<u64>, peak_is_own: bool) -> BenchReport {
        let measured = OperationResult {
            operation: BenchOperation::Crop,
            title: "crop 800x600".to_owned(),
            workers: 2,
            renditions: 300,
            seconds: 2.0,
            ms: LatencyPercentiles { p50: 1.234, p95: 23.45, p99: 345.6 },
            render_paths: [("region", 299), ("whole", 1)].into(),
            bytes: 300 * 121_000,
            peak_bytes,
            peak_is_own,
        };
        let derived = DerivedFiles { kind: "index", files: 1, bytes: 25_000 };
        BenchReport {
            photographs: 1,
            pixels: 24_000_000,
            bytes: 10_000_000,
            ingest_ms: LatencyPercentiles { p50: 182.4, p95: 240.0, p99: 240.0 },
            derived: vec![derived],
            operations: vec![measured],
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_operation_with_its_columns_under_their_heads() {
        let table = report(Some(45_000_000), true).table();
        let expected = "\
1 photograph, 24.0 megapixels, 10.0 MB; ingested in 182 ms each, the slowest in 240 ms
derived files, of the originals' bytes: index 0.2 % (1)

operation          workers    per s   p50 ms   p95 ms   p99 ms  kB each  peak MB  path
crop 800x600             2      150     1.23     23.4      346      121       45  region 299, whole 1
";
        assert_eq!(table, expected);
    }

    #[test]
    fn a_peak_that_is_unknown_or_shared_is_marked() {
        let table = |peak, is_own| report(peak, is_own).table();
        assert!(table(None, false).contains("does not report peak memory"));
        assert!(table(None, false).contains("        -  region"));
        assert!(table(Some(1), false).contains("of the run so far"));
        assert!(!table(Some(1), true).contains("Peak memory"));
    }

    #[test]
    fn the_json_has_the_numbers_unrounded() {
        let json = report(Some(45_000_000), true).json();
        assert_eq!(json["derived"]["index"]["percent"], 0.25);
        let measured = &json["operations"][0];
        assert_eq!(measured["perSecond"], 150.0);
        assert_eq!(measured["ms"]["p95"], 23.45);
        assert_eq!(measured["paths"], json!({ "region": 299, "whole": 1 }));
        assert_eq!(measured["bytesEach"], 121_000);
        assert_eq!(measured["peakSince"], "operation");
    }
}
