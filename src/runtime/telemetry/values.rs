//! Reads the values of this process's metrics, so that pages show the same numbers as `/metrics`.

use metrics_exporter_prometheus::PrometheusHandle;

/// The values of all metrics at one moment.
#[derive(Clone, Debug)]
pub struct MetricValues {
    /// The text of `/metrics`: the exporter has no other way to read a value.
    text: String,
}

impl MetricValues {
    /// Reads the metrics of this process.
    pub fn from_exporter(metrics: &PrometheusHandle) -> Self {
        Self { text: metrics.render() }
    }

    /// Adds up the series of a metric that have all of `labels`, such as `tier="disk"`. Returns 0 if there is
    /// no such series. Rounds fractions.
    pub fn sum(&self, name: &str, labels: &[&str]) -> u64 {
        let mut sum = 0_u64;
        for line in self.text.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let (found, own) = series.split_once('{').unwrap_or((series, ""));
            if found == name && labels.iter().all(|label| own.contains(label)) {
                sum = sum.saturating_add(whole(value));
            }
        }
        sum
    }
}

/// Parses a value as the exporter prints it: `12`, or `1.2e3` for a gauge.
fn whole(value: &str) -> u64 {
    if let Ok(number) = value.parse() {
        return number;
    }
    let number: f64 = value.parse().unwrap_or_default();
    // Beyond this limit, a float cannot represent every integer. No metric reaches it.
    let is_counted = (0.0..9e15).contains(&number);
    // Uses the digits before the point, because a lossy cast would need a reason.
    let digits = if is_counted { format!("{number:.0}") } else { String::new() };
    digits.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_a_metric_are_added_up_by_label() {
        let text = "# HELP a_bytes A.\n# TYPE a_bytes gauge\n\
             a_bytes{tier=\"memory\"} 12\na_bytes{tier=\"disk\"} 4096.0\na_bytes_total 7\n\
             b 1.5e3\nc NaN\n";
        let values = MetricValues { text: text.to_owned() };
        assert_eq!(values.sum("a_bytes", &[]), 4108);
        assert_eq!(values.sum("a_bytes", &["tier=\"disk\""]), 4096);
        assert_eq!(values.sum("a_bytes", &["tier=\"disk\"", "tier=\"memory\""]), 0);
        let sums = ["b", "c", "d"].map(|name| values.sum(name, &[]));
        assert_eq!(sums, [1500, 0, 0]);
    }
}
