//! Operators' pages about ingest errors, slow searches and nodes.

use std::fs;

use serde_json::{Value, json};

use super::{OPERATOR, check_in_both_languages, shown};
use crate::common::{
    Server,
    api::ApiCaller,
    browser::{Browser, DESKTOP},
    checkout,
};
use crate::deliveries::run;
use crate::items::{form, provider, put};
use crate::nodes::{QUICK, start_node_beside, wait_until};
use crate::reload::reload;

/// The records of a list in the API.
fn records(api: &ApiCaller<'_>, list: &str, name: &str) -> Vec<Value> {
    api.json(&format!("/operator/v1/{list}?size=100"))[name].as_array().unwrap().clone()
}

#[test]
fn ingest_errors_of_uploads_the_watched_folder_and_the_command_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let watched = dir.path().join("in");
    fs::create_dir(&watched).unwrap();
    let settings =
        [format!("ingest.watch={}", watched.display()), "ingest.watch_interval_ms=20".to_owned()];
    let server = Server::start(dir, &settings.each_ref().map(String::as_str));
    run(&server, &["import", &checkout("media-store/accounts.json").to_string_lossy()], 0);
    let auth = provider(&server);
    let api = ApiCaller::login(&server, OPERATOR);
    assert_eq!(records(&api, "ingest-error", "ingestErrors"), Vec::<Value>::new());
    for _ in 0..3 {
        let parts = form(&[("NormalHires.jpg", b"no picture"), ("item", br#"{"headline":"x"}"#)]);
        let refused = put(&server, "image/broken", &auth, parts);
        assert!(refused.status().is_client_error(), "{}", refused.status());
    }
    fs::write(watched.join("<b>bad.jpg"), "no picture").unwrap();
    let other = server.dir.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("worse.jpg"), "no picture").unwrap();
    run(&server, &["ingest", &other.to_string_lossy()], 1);
    let found = server.until("the errors to be recorded", || {
        let found = records(&api, "ingest-error", "ingestErrors");
        let has = |part: &str| found.iter().any(|one| one["subject"].to_string().contains(part));
        ["image/broken", "<b>bad.jpg", "worse.jpg"].iter().all(|part| has(part)).then_some(found)
    });
    let of = |part: &str| {
        found.iter().filter(|one| one["subject"].to_string().contains(part)).collect::<Vec<_>>()
    };
    let uploads: u64 = of("image/broken").iter().map(|one| one["count"].as_u64().unwrap()).sum();
    assert_eq!(uploads, 3, "{found:?}");
    assert!(!of("image/broken")[0]["error"].as_str().unwrap().is_empty(), "{found:?}");
    assert_eq!(of("worse.jpg")[0]["node"], "command");
    assert_ne!(of("<b>bad.jpg")[0]["node"], "command");
    let first = api.json("/operator/v1/ingest-error?size=1&start=1");
    assert_eq!(first["ingestErrors"], json!([found[1]]), "newest first, in pages");
    let recent = &api.json("/operator/v1/status")["recent"];
    assert_eq!((&recent["hours"], recent["ingestErrors"].as_u64() >= Some(3)), (&json!(24), true));

    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, OPERATOR, "/operator");
    browser.follow("main dl a[href='/operator/ingest']");
    check_in_both_languages(&browser, "operator-ingest");
    let page = shown(&browser);
    assert!(page.contains("<b>bad.jpg") && page.contains("image/broken"), "{page}");
}

#[test]
fn slow_searches_are_listed_with_their_query_and_duration() {
    let server = Server::demo_with(&["search.slow_ms=1"]);
    let api = ApiCaller::login(&server, OPERATOR);
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, OPERATOR, "/operator/searches");
    let query = "/content/v1/image/search?s=200&q=bergen+OR+solnedgang*";
    let found = server.until("a slow search", || {
        assert_eq!(server.get(query).status(), 200);
        let found = records(&api, "slow-search", "slowSearches");
        found.into_iter().find(|one| one["q"].to_string().contains("solnedgang"))
    });
    assert!(found["milliseconds"].as_u64() >= Some(1), "{found}");
    assert!(found["parameters"].as_str().unwrap().contains("s=200"), "{found}");
    assert!(found["count"].as_u64() >= Some(1) && found["node"].is_string(), "{found}");
    assert!(found.get("user").is_none(), "{found}");
    let recent = &api.json("/operator/v1/status")["recent"]["slowSearches"];
    assert!(recent.as_u64() >= Some(1), "{recent}");
    browser.visit(&format!("{}/operator/searches", server.url));
    check_in_both_languages(&browser, "operator-searches");
    assert!(shown(&browser).contains("solnedgang"), "{}", shown(&browser));
}

#[test]
fn a_reload_changes_the_time_from_which_a_search_is_slow() {
    let server = Server::demo();
    reload(&server, "[search]\nslow_ms = 1\n", "settings reloaded");
    let api = ApiCaller::login(&server, OPERATOR);
    server.until("a slow search", || {
        assert_eq!(server.get("/content/v1/image/search?s=200&q=solnedgang*").status(), 200);
        (!records(&api, "slow-search", "slowSearches").is_empty()).then_some(())
    });
}

#[test]
fn searches_are_not_recorded_without_a_limit() {
    let server = Server::demo_with(&["search.slow_ms=0"]);
    for _ in 0..20 {
        assert_eq!(server.get("/content/v1/image/search?s=200&q=bergen").status(), 200);
    }
    // What is pending is written when the service stops.
    let server = server.restart(&["search.slow_ms=60000"]);
    let api = ApiCaller::login(&server, OPERATOR);
    assert_eq!(records(&api, "slow-search", "slowSearches"), Vec::<Value>::new());
}

/// Checks the figures that a node published.
fn check_figures(node: &Value) {
    let figures = &node["figures"];
    let disks = figures["disks"].as_array().unwrap();
    assert!(!disks.is_empty(), "{node}");
    for disk in disks {
        let [free, total] = ["freeBytes", "totalBytes"].map(|name| disk[name].as_u64().unwrap());
        assert!(free <= total && total > 0, "{disk}");
    }
    let tiers = figures["cache"].as_array().unwrap().iter().map(|tier| &tier["tier"]);
    assert_eq!(tiers.collect::<Vec<_>>(), [&json!("memory"), &json!("disk")]);
    assert!(figures["renderWorkers"].as_u64() > Some(0), "{node}");
    assert!(node["seen"].is_string() && node["figuresAt"].is_string(), "{node}");
    assert_eq!(node["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(node["listen"], "127.0.0.1:0", "{node}");
}

#[test]
fn every_node_is_shown_with_its_disks_cache_and_version() {
    let first = Server::demo_with(&QUICK);
    let second = start_node_beside(&first, &["media.preview_px=900"]);
    let api = ApiCaller::login(&first, OPERATOR);
    let status = first.until("the figures of both nodes", || {
        let status = api.json("/operator/v1/status");
        let nodes = status["nodes"].as_array().unwrap();
        let have_figures = nodes.iter().all(|node| node.get("figures").is_some());
        (nodes.len() == 2 && have_figures).then_some(status)
    });
    let nodes = status["nodes"].as_array().unwrap();
    nodes.iter().for_each(check_figures);
    assert_eq!(nodes.iter().filter(|node| node["own"] == true).count(), 1, "{status}");
    assert!(nodes.iter().all(|node| node["alive"] == true), "{status}");
    assert!(status["items"].as_u64() > Some(0) && status["schema"].as_u64() > Some(0), "{status}");
    let findings = status["findings"].as_array().unwrap();
    let differs = findings.iter().find(|one| one["about"] == "settings").unwrap();
    assert_eq!(differs["level"], "warning");
    assert!(differs["text"].as_str().unwrap().contains("media.preview_px"), "{differs}");

    let browser = Browser::open(DESKTOP);
    browser.log_in(&first.url, OPERATOR, "/operator");
    check_in_both_languages(&browser, "operator");
    let page = shown(&browser);
    assert!(page.contains("media.preview_px") && page.contains("answers this page"), "{page}");
    assert!(page.contains("including withdrawn ones, counted "), "{page}");
    for node in nodes {
        for name in ["name", "host", "listen"] {
            assert!(page.contains(node[name].as_str().unwrap()), "{name}: {page}");
        }
    }
    drop(second.kill());
    wait_until("the dead node to be reported", || {
        let status = api.json("/operator/v1/status");
        let nodes = status["nodes"].as_array().unwrap();
        let stopped = |node: &Value| node["alive"] == false;
        // A dead node is removed a moment after its heartbeat expired.
        nodes.len() == 1
            || nodes.iter().any(stopped) && status["findings"][0]["level"] == "problem"
    });
}

#[test]
fn the_page_of_a_single_node_has_no_problems() {
    let server = Server::demo();
    let api = ApiCaller::login(&server, OPERATOR);
    // A node that has just started says so for a moment.
    let status = server.until("a node that has started", || {
        let status = api.json("/operator/v1/status");
        (status["nodes"][0]["faults"] == json!([])).then_some(status)
    });
    let nodes = status["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 1, "{status}");
    assert_eq!((&nodes[0]["own"], &nodes[0]["alive"]), (&json!(true), &json!(true)));
    check_figures(&nodes[0]);
    let mut findings = status["findings"].as_array().unwrap().iter();
    assert!(findings.all(|one| one["level"] != "problem"), "{status}");
    // Requests share a count of the items.
    assert!(status["itemsCounted"].is_string(), "{status}");
    let again = api.json("/operator/v1/status");
    for shared in ["items", "itemsCounted"] {
        assert_eq!(again[shared], status[shared]);
    }
    let (said, _) = run(&server, &["nodes", "--json"], 0);
    assert!(said.contains(nodes[0]["name"].as_str().unwrap()), "{said}");
}
