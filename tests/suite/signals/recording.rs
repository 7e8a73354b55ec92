//! Records `/metrics` before, during and after a fault on a synthetic timeline, and checks which alert rules fire over
//! it (`promtool test rules`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
    time::SystemTime,
};

use serde_json::{Value, json};

use crate::common::{Server, checkout};

/// Metrics whose values are timestamps: they are shifted to the timeline.
const TIMES: [&str; 2] =
    ["wirephoto_start_time_seconds", "wirephoto_tls_certificate_expires_seconds"];

/// Scrapes of services, placed a minute apart whatever the real interval.
#[derive(Default)]
pub struct Recording {
    /// True if the service has a disk of its own: the disk of this machine may be almost full.
    has_own_disk: bool,
    minutes: usize,
    /// The scraped values, by series and minute.
    series: BTreeMap<String, BTreeMap<usize, f64>>,
    /// The scraped timestamps, and their positions on the timeline.
    times: BTreeMap<String, (f64, f64)>,
    expected: Vec<(usize, BTreeSet<&'static str>)>,
}

/// The metrics that the rules use.
fn metrics_of_rules() -> BTreeSet<String> {
    let rules = fs::read_to_string(checkout("packaging/alerts.yml")).unwrap();
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let words = rules.split(|c| !is_name(c)).filter(|word| word.starts_with("wirephoto_"));
    words.map(str::to_owned).collect()
}

fn now_s() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since.as_secs_f64()
}

impl Recording {
    /// A recording of a service with a disk of its own.
    pub fn with_disk() -> Self {
        Self { has_own_disk: true, ..Self::default() }
    }

    /// Scrapes the service once and repeats the values for so many minutes. A service that does not answer is down.
    pub fn record(&mut self, server: &Server, minutes: usize) {
        let mut wanted = metrics_of_rules();
        if !self.has_own_disk {
            wanted.remove("wirephoto_disk_free_bytes");
        }
        let answer = server.client.get(format!("{}/metrics", server.url)).send();
        let text = answer.ok().and_then(|answer| answer.text().ok());
        let up = text.is_some();
        let mut found =
            vec![("up{job=\"wirephoto\",instance=\"a\"}".to_owned(), f64::from(u8::from(up)))];
        for line in text.unwrap_or_default().lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            if wanted.contains(name) {
                let comma = if labels == "}" { "" } else { "," };
                let series = format!("{name}{{job=\"wirephoto\",instance=\"a\"{comma}{labels}");
                let value = value.parse().unwrap();
                let value = if TIMES.contains(&name) { self.moved(&series, value) } else { value };
                found.push((series, value));
            }
        }
        assert!(!up || found.len() > 20, "{found:?}");
        for minute in self.minutes..self.minutes + minutes {
            for (series, value) in &found {
                self.series.entry(series.clone()).or_default().insert(minute, *value);
            }
        }
        self.minutes += minutes;
    }

    /// Shifts a timestamp to the timeline, at the same distance from this scrape. An unchanged one keeps its position.
    fn moved(&mut self, series: &str, time: f64) -> f64 {
        match self.times.get(series) {
            Some((same, moved)) if *same == time => *moved,
            Some(_) | None => {
                let moved = (self.minutes * 60) as f64 + (time - now_s()).round();
                self.times.insert(series.to_owned(), (time, moved));
                moved
            }
        }
    }

    /// Expects that exactly these rules fire at the last recorded minute.
    pub fn expect(&mut self, rules: &[&'static str]) {
        self.expected.push((self.minutes - 1, rules.iter().copied().collect()));
    }

    /// Runs the rules over the whole recording.
    #[track_caller]
    pub fn check(self) {
        let values = |values: &BTreeMap<usize, f64>| -> String {
            let mut text = String::new();
            for minute in 0..self.minutes {
                let before = minute.checked_sub(1).and_then(|before| values.get(&before));
                let word = match (values.get(&minute), before) {
                    (Some(value), _) => format!("{value} "),
                    // A series that is missing from a scrape ends immediately.
                    (None, Some(_)) => "stale ".to_owned(),
                    (None, None) => "_ ".to_owned(),
                };
                text.push_str(&word);
            }
            text
        };
        let series: Vec<Value> = self
            .series
            .iter()
            .map(|(series, found)| json!({ "series": series, "values": values(found) }))
            .collect();
        let firing = |(minute, rules): &(usize, BTreeSet<&str>)| {
            let samples = rules
                .iter()
                .map(|rule| json!({ "labels": format!("{{alertname=\"{rule}\"}}"), "value": 1 }));
            json!({
                "expr": "group by (alertname) (ALERTS{alertstate=\"firing\"})",
                "eval_time": format!("{minute}m"),
                "exp_samples": samples.collect::<Vec<_>>(),
            })
        };
        let test = json!({
            "rule_files": [checkout("packaging/alerts.yml")],
            "evaluation_interval": "1m",
            "tests": [{
                "interval": "1m",
                "input_series": series,
                "promql_expr_test": self.expected.iter().map(firing).collect::<Vec<_>>(),
            }],
        });
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("recorded.yml");
        // JSON is YAML.
        fs::write(&file, test.to_string()).unwrap();
        let mut promtool = Command::new("promtool");
        let said = promtool.args(["test", "rules"]).arg(&file).output();
        let said = said.expect("promtool is installed (./test does)");
        let text = String::from_utf8_lossy(&said.stdout) + String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{text}\n{test:#}");
    }
}
