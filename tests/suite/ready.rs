//! Readiness: a node with a fault that another one does not have becomes unready; when all have the same fault, all
//! stay ready. Two nodes over PostgreSQL and a bucket, behind HAProxy with the example configuration.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use tempfile::TempDir;

use crate::balancer::haproxy;
use crate::buckets::{Bucket, Fault, ingest_demo, of_bucket, run};
use crate::cdn::Front;
use crate::common::postgres::{self, Cluster};
use crate::common::{DEMO_KEY, Server};
use crate::faults::kit::{self, Faults, Site, photograph, until};

/// A photograph of the demo archive.
const PICTURE: &str = "image/demo-trumma-och-vin";
/// Additional settings of each node; short timeouts detect a hanging bucket soon.
const SETTINGS: [&str; 6] = [
    "server.public_url=http://photos.example",
    "server.trusted_proxies=127.0.0.1",
    "media.warm=false",
    "media.client_megapixels_s=0",
    "store.answer_s=4",
    "store.give_up_s=8",
];
/// Requests through the balancer after the node was marked down, of which fewer than 1 % may fail.
const REQUESTS: usize = 150;

/// PostgreSQL, a bucket with a gate in front, and two nodes; the first one reaches the bucket through the gate.
struct Pair {
    nodes: Vec<Server>,
    bucket: Bucket,
    cluster: Cluster,
}

/// The client side of the balancer.
struct BalancerClient {
    url: String,
    client: reqwest::blocking::Client,
}

impl Site for BalancerClient {
    fn url(&self) -> &str {
        &self.url
    }

    fn client(&self) -> &reqwest::blocking::Client {
        &self.client
    }
}

fn owned(settings: &[&str]) -> Vec<String> {
    settings.iter().map(|setting| (*setting).to_owned()).collect()
}

impl Pair {
    /// Starts two nodes, each with `more` settings: the first one with `faults`, and the first `gated_nodes` of
    /// them behind the gate.
    fn start(
        (faults, gated_nodes): (Option<&Faults>, usize),
        more: &dyn Fn(&Cluster, usize) -> Vec<String>,
    ) -> Self {
        let (cluster, bucket) = (Cluster::start(), Bucket::start());
        let database = vec![format!("database.url={}", cluster.database("archive"))];
        let direct = format!("127.0.0.1:{}", bucket.s3.ready["port"]);
        let direct = [of_bucket(&bucket.s3, &direct, "pair").to_vec(), owned(&SETTINGS)].concat();
        let gated = bucket.settings("pair", &SETTINGS);
        let dir = tempfile::tempdir().unwrap();
        ingest_demo(dir.path(), &[database.clone(), direct.clone()].concat());
        let node = |dir: TempDir, at: usize| {
            let store = if at < gated_nodes { &gated } else { &direct };
            // The last of two values takes effect.
            let settings = [database.clone(), store.clone(), more(&cluster, at)].concat();
            let words: Vec<&str> = settings.iter().map(String::as_str).collect();
            match faults {
                Some(faults) if at == 0 => faults.start(dir, &words),
                Some(_) | None => Server::start(dir, &words),
            }
        };
        let nodes = vec![node(dir, 0), node(tempfile::tempdir().unwrap(), 1)];
        Self { nodes, bucket, cluster }
    }

    fn balancer(&self) -> (Front, BalancerClient) {
        let front = haproxy(&self.nodes, &[]);
        let client = reqwest::blocking::Client::builder().no_proxy().build().unwrap();
        let door = BalancerClient { url: front.url.clone(), client };
        until("the balancer to find both", || {
            let ready = front.url.clone() + "/health/ready";
            door.client.get(ready).send().ok().filter(|answer| answer.status() == 200)
        });
        (front, door)
    }

    fn ready(&self, at: usize) -> (u16, Value) {
        let answer = self.nodes[at].get("/health/ready");
        (answer.status().as_u16(), answer.json().unwrap())
    }

    /// Waits until a node is, or is not, ready, and checks its reported faults.
    #[track_caller]
    fn until_ready(&self, at: usize, expected: bool, faults: &[&str]) {
        self.nodes[at].until("readiness", || {
            let (status, text) = self.ready(at);
            let reported: Vec<&str> = text["faults"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            ((status == 200) == expected && reported == faults).then_some(())
        });
        let gauge = self.nodes[at].metric("wirephoto_ready", "");
        assert_eq!(gauge, f64::from(u8::from(expected)));
        for fault in faults {
            assert_eq!(self.nodes[at].metric("wirephoto_fault", fault), 1.0);
        }
    }
}

/// Requests a crop that is not cached.
fn crop(door: &BalancerClient, number: usize) -> u16 {
    let (width, height) = (100 + number % 300, 90 + number / 300);
    let items = [PICTURE, "image/demo-dandelion-seeding"];
    let item = items[number % items.len()];
    let url =
        format!("{}/media/{item}-crop_w{width}_h{height}_x40_y60.jpg?ak={DEMO_KEY}", door.url);
    door.client.get(url).send().map_or(0, |answer| answer.status().as_u16())
}

fn put(door: &BalancerClient, number: usize) -> u16 {
    let request = kit::upload(door, &format!("image/new{number}"), "Ny", &photograph(number));
    request.send().map_or(0, |answer| answer.status().as_u16())
}

/// Sends requests until the balancer has marked the faulty node down, then [`REQUESTS`] more that count.
#[track_caller]
fn few_requests_fail(what: &str, good: u16, ask: impl Fn(usize) -> u16) {
    let mut number = 0;
    let mut next = || {
        number += 1;
        ask(number)
    };
    until(what, || (0..20).all(|_| next() == good).then_some(()));
    let failed = (0..REQUESTS).filter(|_| next() != good).count();
    assert!(failed * 100 < REQUESTS, "{what}: {failed} of {REQUESTS} failed");
}

#[test]
fn a_node_that_lost_its_bucket_is_not_ready_until_it_is_back() {
    let pair = Pair::start((None, 1), &|_, _| Vec::new());
    let (_front, door) = pair.balancer();
    pair.bucket.gate.inject("/bilder", Fault::Close);
    pair.until_ready(0, false, &["store"]);
    assert_eq!(pair.ready(1).0, 200);
    few_requests_fail("crops", 200, |number| crop(&door, number));
    few_requests_fail("uploads", 201, |number| put(&door, number));
    pair.bucket.gate.clear_fault();
    pair.until_ready(0, true, &[]);
    let log = pair.nodes[0].log();
    assert_eq!(log.matches("not ready: the originals cannot be reached").count(), 1, "{log}");
    assert_eq!(log.matches("ready: all faults are gone").count(), 1, "{log}");
}

#[test]
fn nodes_that_all_lost_the_bucket_stay_ready_and_serve_what_they_have() {
    let pair = Pair::start((None, 2), &|_, _| Vec::new());
    pair.bucket.gate.inject("/bilder", Fault::Close);
    for at in [0, 1] {
        pair.until_ready(at, true, &["store"]);
        let (_, text) = pair.ready(at);
        assert_eq!(text["detail"], "the originals cannot be reached");
        assert_eq!(
            pair.nodes[at].get(&format!("/media/{PICTURE}.json?ak={DEMO_KEY}")).status(),
            200
        );
    }
}

#[test]
fn a_node_with_a_full_disk_is_not_ready_and_uploads_go_elsewhere() {
    let faults = Faults::new();
    let pair = Pair::start((Some(&faults), 1), &|_, _| Vec::new());
    let (_front, door) = pair.balancer();
    faults.set(&[&format!("enospc {}", pair.nodes[0].data().display())]);
    pair.until_ready(0, false, &["disk"]);
    few_requests_fail("uploads", 201, |number| put(&door, number));
    faults.clear();
    pair.until_ready(0, true, &[]);
}

#[test]
fn a_node_locked_out_by_a_new_password_is_not_ready_until_its_file_has_it() {
    let secrets = tempfile::tempdir().unwrap();
    let file = secrets.path().join("password");
    let write = |password: &str| {
        fs::write(&file, format!("{password}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("first");
    let setting = format!("database.password_file={}", file.display());
    // The first node has the password in its settings, the second one in a file.
    let pair = Pair::start((None, 1), &|cluster, at| {
        if at == 1 {
            return vec![setting.clone()];
        }
        postgres::run(&cluster.url("postgres"), "ALTER ROLE wirephoto PASSWORD 'first'");
        cluster.set_hba_rules("host all wirephoto 127.0.0.1/32 scram-sha-256\n");
        owned(&["database.password=first"])
    });
    for at in [0, 1] {
        pair.until_ready(at, true, &[]);
    }
    let url = pair.cluster.url("archive").replace("wirephoto@", "wirephoto:first@");
    postgres::run(&url, "ALTER ROLE wirephoto PASSWORD 'second'");
    // Open connections continue to work: the first search left none to be opened.
    for at in [0, 1] {
        let found = pair.nodes[at].get(&format!("/content/v1/_all/search?ak={DEMO_KEY}"));
        assert_eq!(found.status(), 200, "{}", pair.nodes[at].log());
        assert_eq!(pair.ready(at).0, 200);
    }
    write("second");
    pair.cluster.down();
    pair.cluster.up();
    pair.until_ready(0, false, &["database"]);
    pair.until_ready(1, true, &[]);
    // Node 1 may have said that it is ready just before the database went down.
    pair.nodes[1].until("a search with the new password", || {
        let found = pair.nodes[1].get(&format!("/content/v1/_all/search?ak={DEMO_KEY}"));
        (found.status() == 200).then_some(())
    });
}

#[test]
fn nodes_whose_settings_differ_are_named() {
    let pair = Pair::start((None, 1), &|_, at| match at {
        0 => Vec::new(),
        _ => owned(&["media.preview_px=900", "server.public_url=http://other.example"]),
    });
    for node in &pair.nodes {
        for setting in ["media.preview_px", "server.public_url"] {
            node.until("the difference to be told", || {
                (node.metric("wirephoto_nodes_differ", setting) == 1.0).then_some(())
            });
            let said = format!("another node has another value of {setting}");
            // The metric rises before the line is written.
            node.until("the line", || node.log().contains(&said).then_some(()));
        }
    }
    let url = format!("database.url={}", pair.cluster.url("archive"));
    let settings = [vec![url], pair.bucket.settings("pair", &SETTINGS)].concat();
    let (said, status) = run(pair.nodes[0].dir.path(), &settings, &["doctor"]);
    // No process listens at the public address.
    assert_eq!(status, 1, "{said}");
    for expected in [
        "media.preview_px differs: \"1024\" at this command",
        "\"900\" at ",
        "server.public_url differs",
        "PostgreSQL ",
        "belongs to the archive",
        "can be written",
        "problem  public",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn doctor_reports_problems_of_a_role_and_the_response_of_the_balancer() {
    let pair = Pair::start((None, 1), &|_, _| Vec::new());
    let (front, _door) = pair.balancer();
    let url = format!("database.url={}", pair.cluster.url("archive"));
    let base = [vec![url], pair.bucket.settings("pair", &SETTINGS)].concat();
    let public = format!("server.public_url={}", front.url);
    let settings = [base.clone(), vec![public.clone()]].concat();
    let said = run(pair.nodes[0].dir.path(), &settings, &["doctor"]).0;
    assert!(said.contains("/health/ready: ready"), "{said}");
    postgres::run(
        &pair.cluster.url("archive"),
        "CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
    );
    let reader = pair.cluster.url("archive").replace("wirephoto@", "reader@");
    let reading = [settings, vec![format!("database.url={reader}")]].concat();
    let (said, status) = run(pair.nodes[0].dir.path(), &reading, &["doctor", "--json"]);
    assert_eq!(status, 1, "{said}");
    let findings: Vec<Value> =
        said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let problem = findings.iter().find(|one| one["level"] == "problem").unwrap();
    assert!(["database", "archive"].contains(&problem["about"].as_str().unwrap()), "{problem}");
}
