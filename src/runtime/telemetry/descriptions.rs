//! Lists the metrics for the reference pages, as `/metrics` shows them in its `# HELP` and `# TYPE` lines.

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::Mutex;

/// The name, kind and help text of one metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Description {
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    pub help: String,
}

/// Describes every metric, sorted by name.
#[must_use]
pub fn descriptions() -> Vec<Description> {
    // A local recorder: the process may already have its global one, which cannot be replaced.
    let collector = Collector::default();
    metrics::with_local_recorder(&collector, super::describe);
    let mut found = collector.found.into_inner();
    found.sort_unstable();
    found
}

/// A recorder that collects descriptions and records no values.
#[derive(Default)]
struct Collector {
    found: Mutex<Vec<Description>>,
}

impl Collector {
    fn add(&self, name: &KeyName, kind: &'static str, help: &SharedString) {
        let name = name.as_str().to_owned();
        let help = help.to_string();
        self.found.lock().push(Description { name, kind, help });
    }
}

impl Recorder for Collector {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.add(&name, "counter", &help);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.add(&name, "gauge", &help);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.add(&name, "histogram", &help);
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_the_service_is_described_once() {
        let source = include_str!("mod.rs");
        let constants = source.split("\npub const ").skip(1);
        let mut names: Vec<&str> = constants.filter_map(|one| one.split('"').nth(1)).collect();
        names.sort_unstable();
        let described = descriptions();
        let described: Vec<&str> = described.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(described, names);
    }
}
