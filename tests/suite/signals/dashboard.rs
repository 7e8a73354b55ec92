//! The dashboard over a Prometheus that scrapes a service: no query is refused, and queries of existing metrics have
//! data.

use std::{
    collections::BTreeSet,
    fs,
    process::{Child, Command, Stdio},
};

use reqwest::blocking::Client;
use serde_json::Value;
use tempfile::TempDir;

use crate::buckets::{Bucket, body, ingest_demo, serve};
use crate::common::{Server, checkout, ports::free_port};
use crate::faults::kit::{self, until};

/// Metrics that this service may not have, each with the reason.
const ABSENT: &[(&str, &str)] = &[
    ("wirephoto_connections_ended_total", "no connection had to be ended"),
    ("wirephoto_delivery_seconds", "nothing is delivered"),
    ("wirephoto_index_rebuilds_total", "all derived files are whole"),
    ("wirephoto_nodes_differ", "there is one node"),
    ("wirephoto_originals_not_indexed_total", "all that comes in can be entered"),
    ("wirephoto_render_paths_abandoned_total", "no render path is abandoned"),
    ("wirephoto_renders_stalled_total", "that takes a busy machine"),
    ("wirephoto_requests_shed_total", "there is little load"),
    ("wirephoto_standard_sets_behind", "`media.warm` is off"),
    ("wirephoto_tls_", "it is served without TLS"),
    ("wirephoto_trace_spans_total", "nothing is traced"),
];

/// A Prometheus that scrapes a service once a second.
struct Prometheus {
    process: Child,
    url: String,
    client: Client,
    _dir: TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Prometheus {
    fn over(server: &Server) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let rules = checkout("packaging/alerts.yml");
        let target = server.url.trim_start_matches("http://");
        let settings = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n\
             rule_files: [{:?}]\n\
             scrape_configs:\n  - job_name: wirephoto\n    static_configs: [{{targets: [{target:?}]}}]\n",
            rules.display().to_string()
        );
        let file = dir.path().join("prometheus.yml");
        fs::write(&file, settings).unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()));
        command.arg(format!("--web.listen-address={address}")).arg("--log.level=warn");
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let process = command.current_dir(dir.path()).stdout(Stdio::null()).stderr(log).spawn();
        let process = process.expect("prometheus is installed (./test does)");
        let client = Client::builder().no_proxy().build().unwrap();
        Self { process, url: format!("http://{address}"), client, _dir: dir }
    }

    /// The response of its API.
    fn ask(&self, path: &str, query: &[(&str, &str)]) -> Option<Value> {
        let url = format!("{}/api/v1/{path}", self.url);
        self.client.get(url).query(query).send().ok()?.json().ok()
    }

    /// The series that an expression returns.
    fn series(&self, expression: &str) -> Result<Vec<Value>, String> {
        let answer = self.ask("query", &[("query", expression)]).ok_or("no answer")?;
        match answer["data"]["result"].as_array() {
            Some(found) if answer["status"] == "success" && answer["warnings"].is_null() => {
                Ok(found.clone())
            }
            Some(_) | None => Err(answer.to_string()),
        }
    }

    /// The value of an expression that returns one series.
    fn value(&self, expression: &str) -> Option<f64> {
        self.series(expression).ok()?.first()?["value"][1].as_str()?.parse().ok()
    }
}

/// Uses every feature that needs no external system.
fn exercise(server: &Server) {
    for width in 100..104 {
        let crop = format!("/media/image/demo-trumma-och-vin-crop_w{width}_h90_x400_y600.jpg");
        body(server, &crop);
        body(server, &crop);
    }
    kit::create_mail(server);
    let stream = kit::create_stream(server, "");
    let sent = kit::upload(server, "image/new", "Ny", &kit::photograph(1)).send().unwrap();
    assert!(sent.status().is_success());
    kit::ok_json(kit::read_stream(server, &stream));
    body(server, "/content/v1/image/stream?q=neverheardof&wait=0");
    kit::ok_json(kit::post(server, "token", &kit::login()).send().unwrap());
    server.wait_for_index();
    server.until("a mail", || (server.metric("wirephoto_messages_total", "") > 0.0).then_some(()));
}

#[test]
fn every_dashboard_query_is_valid_and_has_data_where_its_metrics_exist() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    // No process listens there.
    let settings = bucket.settings(
        "wire",
        &[
            "cdn.purge_url=http://127.0.0.1:9/",
            "cdn.purge_header=Surrogate-Key",
            // A pass takes about a second.
            "store.scrub_days=0.00001",
        ],
    );
    ingest_demo(dir.path(), &settings);
    let server = serve(dir, &settings);
    exercise(&server);
    server.until("a scrub", || {
        (server.metric("wirephoto_scrub_ended_seconds", "") > 0.0).then_some(())
    });
    let prometheus = Prometheus::over(&server);
    until("a first scrape", || (prometheus.value("up")? == 1.0).then_some(()));
    exercise(&server);
    let scrapes = || prometheus.value("count_over_time(wirephoto_search_index_whole[1m])");
    until("some scrapes", || (scrapes()? >= 4.0).then_some(()));
    let dashboard = fs::read_to_string(checkout("examples/grafana-dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let queries: Vec<(String, String)> = panels
        .iter()
        .flat_map(|panel| {
            panel["targets"].as_array().into_iter().flatten().map(move |one| (panel, one))
        })
        .map(|(panel, target)| {
            let expression = target["expr"].as_str().unwrap();
            let expression =
                expression.replace("$__rate_interval", "1m").replace("$instance", ".*");
            (panel["title"].as_str().unwrap().to_owned(), expression)
        })
        .collect();
    assert!(queries.len() > 60, "{}", queries.len());
    let mut empty = BTreeSet::new();
    for (title, expression) in &queries {
        assert!(!expression.contains('$'), "{title}: {expression}");
        match prometheus.series(expression) {
            Ok(found) if found.is_empty() => drop(empty.insert(expression.as_str())),
            Ok(_) => {}
            Err(said) => panic!("{title}: {expression}: {said}"),
        }
    }
    let is_absent = |expression: &&str| ABSENT.iter().any(|(name, _)| expression.contains(name));
    let without: Vec<_> = empty.iter().filter(|expression| !is_absent(expression)).collect();
    assert!(without.is_empty(), "no data: {without:#?}");
    // The instance variable of the dashboard.
    let choice = [("match[]", "wirephoto_render_workers")];
    let instances = prometheus.ask("label/instance/values", &choice).unwrap();
    assert_eq!(instances["data"].as_array().unwrap().len(), 1, "{instances}");
    check_rules(&prometheus);
}

/// Checks that Prometheus evaluates every rule and that none fires for a healthy service.
fn check_rules(prometheus: &Prometheus) {
    let rules = prometheus.ask("rules", &[]).unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() > 30, "{rules:?}");
    for rule in rules {
        assert_eq!((&rule["health"], &rule["lastError"]), (&"ok".into(), &Value::Null), "{rule}");
        assert_ne!(rule["state"], "firing", "{rule}");
    }
}
