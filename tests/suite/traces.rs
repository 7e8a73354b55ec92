//! Traces as received by a collector, which decodes them with the official protobuf classes.

use std::fs;

use serde_json::Value;

use crate::{
    clients,
    common::{LARGE, Server, checkout, ports::ReservedPort},
    faults::kit,
    receivers::Receiver,
};

fn collector(mode: &str) -> Receiver {
    let folder = clients::python_scripts("traces.txt", "traces");
    let mut command = clients::client(&folder.join("traces/bin/python"));
    command.arg(checkout("tests/clients/otlp_collector.py"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Receiver::run(command, mode)
}

/// The spans received so far: one file per batch, written atomically.
fn spans(collector: &Receiver) -> Vec<Value> {
    let batch =
        |number: usize| fs::read_to_string(collector.files().join(format!("batch-{number}"))).ok();
    let text: String = (0..).map_while(batch).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits for the request with that id and returns its spans, the root span first.
fn of_request(server: &Server, collector: &Receiver, id: &str) -> Vec<Value> {
    server.until(id, || {
        let all = spans(collector);
        let is_it = |span: &&Value| span["attributes"]["wirephoto.request_id"] == id;
        let request = all.iter().find(is_it)?.clone();
        let parts = all.iter().filter(|span| span["parent"] == request["span"]).cloned();
        Some([request.clone()].into_iter().chain(parts).collect())
    })
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

#[test]
fn a_trace_contains_the_stages_of_the_render() {
    let collector = collector("plain");
    let url = format!("telemetry.otlp_url={}", collector.url());
    let headers = "telemetry.otlp_headers=Authorization=Bearer s3cret, X-Tenant=news";
    let server = Server::demo_with(&[&url, headers, "telemetry.trace_ratio=1"]);
    let path = format!("/media/{LARGE}_NormalThumbnail.jpg");
    server.get_with(&path, &[("x-request-id", "first")]);
    let first = of_request(&server, &collector, "first");
    let (request, stages) = first.split_first().unwrap();
    assert_eq!(request["name"], "GET /media/{*path}");
    assert_eq!(
        (&request["kind"], &request["status"], &request["parent"]),
        (&2.into(), &0.into(), &"".into())
    );
    assert_eq!(request["resource"]["service.name"], "wirephoto");
    assert_eq!(request["resource"]["service.version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(request["scope"], "wirephoto");
    assert_eq!(
        (&request["headers"]["authorization"], &request["headers"]["x-tenant"]),
        (&"Bearer s3cret".into(), &"news".into())
    );
    let attributes = &request["attributes"];
    for (name, value) in [
        ("http.request.method", "GET"),
        ("http.route", "/media/{*path}"),
        ("http.response.status_code", "200"),
        ("url.path", path.as_str()),
        ("wirephoto.operation", "thumbnail"),
        ("wirephoto.cache", "miss"),
        ("wirephoto.render_path", "stored"),
    ] {
        assert_eq!(attributes[name], value, "{name}");
    }
    let names: Vec<_> = stages.iter().map(|stage| stage["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["render queue", "render read"]);
    let time = |span: &Value, name: &str| span[name].as_u64().unwrap();
    for stage in stages {
        assert_eq!(stage["trace"], request["trace"]);
        assert!(time(request, "start") <= time(stage, "start"), "{stage}");
        assert!(time(stage, "start") <= time(stage, "end"), "{stage}");
        assert!(time(stage, "end") <= time(request, "end"), "{stage}");
    }
    server.get_with(&path, &[("x-request-id", "second")]);
    let second = of_request(&server, &collector, "second");
    assert_eq!((second.len(), &second[0]["attributes"]["wirephoto.cache"]), (1, &"memory".into()));
    let id = request["trace"].as_str().unwrap();
    assert!(server.log().contains(&format!("\"trace_id\":\"{id}\"")), "the log names the trace");
    server.until("the count of spans", || {
        (server.metric("wirephoto_trace_spans_total", "sent") >= 6.0).then_some(())
    });
    // Queued spans are sent at shutdown.
    server.get_with("/no/such/page", &[("x-request-id", "last")]);
    let (status, log) = server.stop();
    assert!(status.success() && !log.contains("s3cret"), "{log}");
    let is_last = |span: &Value| span["attributes"]["wirephoto.request_id"] == "last";
    kit::until("the last span", || spans(&collector).iter().any(is_last).then_some(()));
}

#[test]
fn only_a_trusted_proxy_decides_what_is_traced() {
    let collector = collector("plain");
    let url = format!("telemetry.otlp_url={}", collector.url());
    let ask = |server: &Server, id: &str, flags: &str| {
        let parent = format!("00-{TRACE}-{PARENT}-{flags}");
        server.get_with("/health/live", &[("x-request-id", id), ("traceparent", &parent)]);
    };
    let trusted =
        Server::demo_with(&[&url, "server.trusted_proxies=127.0.0.1", "telemetry.trace_ratio=0"]);
    ask(&trusted, "not-sampled", "00");
    ask(&trusted, "sampled", "01");
    let request = &of_request(&trusted, &collector, "sampled")[0];
    assert_eq!((&request["trace"], &request["parent"]), (&TRACE.into(), &PARENT.into()));
    // An untrusted client can neither have its requests traced nor join an existing trace.
    let none = Server::demo_with(&[&url, "telemetry.trace_ratio=0"]);
    ask(&none, "stranger", "01");
    assert!(none.stop().0.success());
    let all = Server::demo_with(&[&url, "telemetry.trace_ratio=1"]);
    ask(&all, "stranger-2", "00");
    let request = &of_request(&all, &collector, "stranger-2")[0];
    assert_ne!(request["trace"], TRACE);
    let ids: Vec<_> = spans(&collector)
        .iter()
        .map(|s| s["attributes"]["wirephoto.request_id"].clone())
        .collect();
    assert!(!ids.contains(&"not-sampled".into()) && !ids.contains(&"stranger".into()), "{ids:?}");
}

#[test]
fn a_hanging_or_missing_collector_delays_neither_requests_nor_the_stop() {
    let collector = collector("hang");
    let gone = ReservedPort::new();
    for url in [collector.url(), format!("http://127.0.0.1:{}", gone.port())] {
        let url = format!("telemetry.otlp_url={url}");
        let server = Server::demo_with(&[&url, "telemetry.trace_ratio=1", "server.unready_s=0"]);
        for _ in 0..3000 {
            assert_eq!(server.get("/health/live").status(), 200);
        }
        let lost = || {
            let lost = |label| server.metric("wirephoto_trace_spans_total", label);
            (lost("failed") + lost("dropped") > 0.0).then_some(())
        };
        server.until("spans to be given up", lost);
        // A hanging collector never answers.
        let (status, log) = server.stop();
        assert!(status.success(), "{log}");
        assert_eq!(log.matches("traces cannot be sent").count(), 1, "{log}");
    }
}

#[test]
fn an_invalid_collector_fails_the_start_and_names_the_setting() {
    let check = |setting: &str, said: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut command = crate::common::server::wirephoto(dir.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.args(["--set", "telemetry.otlp_url=http://127.0.0.1:9", "--set", setting]);
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code().is_some_and(|code| code > 0), "{stderr}");
        assert!(stderr.contains(said) && !stderr.contains("s3cret"), "{stderr}");
    };
    check("telemetry.otlp_headers=s3cret", "telemetry.otlp_headers");
    check("telemetry.otlp_url=localhost:4318", "telemetry.otlp_url");
    check("telemetry.trace_ratio=2", "telemetry.trace_ratio");
}
