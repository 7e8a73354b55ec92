//! Three nodes behind nginx, over PostgreSQL and a bucket, under mixed load, while a node is killed, the database
//! crashes and restarts, the bucket hangs and a node is cut off: everything acknowledged is there, exactly once,
//! and every client is served again without intervention ([`super::ledger`] keeps the records).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use reqwest::blocking::Client;
use tempfile::TempDir;

use super::kit::{Site, document, scene_with, until};
use super::ledger::{Doubt, Items, Ledger, Random, Tokens, done, item};
use super::net::Net;
use crate::buckets::of_bucket;
use crate::cdn::{Front, example};
use crate::common::pictures::Picture;
use crate::common::ports::free_port;
use crate::common::postgres::{self, Cluster};
use crate::common::server::output;
use crate::common::{Server, WAIT_TIMEOUT, pause};
use crate::receivers::Receiver;

const SETTINGS: [&str; 9] = [
    "server.unready_s=0",
    "server.public_url=http://photos.example",
    "media.warm=false",
    "media.client_megapixels_s=0",
    "auth.hash_memory_kib=64",
    "auth.hash_iterations=1",
    "auth.failures_per_address=100000",
    // Shorter timeouts than the defaults detect a hanging bucket sooner.
    "store.answer_s=4",
    "store.give_up_s=8",
];
const COUNT: usize = 3;
/// A client's request timeout.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(8);
/// Pauses of a client: after a response, and before it retries a failure.
const PAUSES: [Duration; 2] = [Duration::from_millis(30), Duration::from_millis(150)];
/// The kinds of clients in the load.
const KINDS: [&str; 7] =
    ["photographs", "purchases", "tokens", "collections", "profiles", "pictures", "stream"];
const STREAM: usize = 6;

/// nginx, as seen by clients that know nothing of the nodes behind it.
struct NginxClient {
    url: String,
    client: Client,
}

impl Site for NginxClient {
    fn url(&self) -> &str {
        &self.url
    }

    fn client(&self) -> &Client {
        &self.client
    }

    fn is_in_doubt(&self, status: StatusCode) -> bool {
        [502, 503, 504].contains(&status.as_u16())
    }

    fn poll_timeout(&self) -> Duration {
        CLIENT_TIMEOUT
    }
}

/// The components, in the order in which they are dropped.
struct Nodes {
    nodes: Vec<Option<Server>>,
    front: Front,
    cluster: Cluster,
    s3: Receiver,
    settings: Vec<String>,
    net: Net,
}

impl Nodes {
    fn start() -> Self {
        let net = Net::new(COUNT);
        let cluster = Cluster::start_at(&net.host);
        let s3 = Receiver::start("s3_server.py", &net.host);
        let endpoint = format!("{}:{}", net.host, s3.ready["port"]);
        let settings = of_bucket(&s3, &endpoint, "nodes").into_iter();
        let settings = settings.chain([
            format!("database.url={}", cluster.database("archive")),
            format!("server.trusted_proxies={}", net.host),
        ]);
        let settings: Vec<String> =
            settings.chain(SETTINGS.iter().map(|one| (*one).to_owned())).collect();
        let words: Vec<&str> = settings.iter().map(String::as_str).collect();
        let mut dirs = vec![scene_with(&[("image/old", document("Gammal"))], &words)];
        dirs.resize_with(COUNT, || tempfile::tempdir().unwrap());
        let nodes = dirs.into_iter().enumerate();
        let nodes = nodes.map(|(at, dir)| Some(node(&net, &settings, at, dir))).collect();
        let front = nginx(&net);
        Self { nodes, front, cluster, s3, settings, net }
    }

    fn node(&self, at: usize) -> &Server {
        self.nodes[at].as_ref().expect("it runs")
    }

    fn each(&self) -> impl Iterator<Item = &Server> {
        self.nodes.iter().flatten()
    }

    fn nginx_client(&self) -> NginxClient {
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
        let client = client.timeout(CLIENT_TIMEOUT).build().unwrap();
        NginxClient { url: self.front.url.clone(), client }
    }

    /// Returns whether a node's circuit to the bucket is open.
    fn is_bucket_circuit_open(&self) -> bool {
        self.each().any(|node| node.metric("wirephoto_bucket_circuit_open", "") > 0.0)
    }

    fn wait_for_closed_circuit(&self) {
        until("the bucket to be asked again", || (!self.is_bucket_circuit_open()).then_some(()));
    }

    /// The number of occurrences of a text in the nodes' logs.
    fn log_count(&self, text: &str) -> usize {
        self.each().map(|node| node.log().matches(text).count()).sum()
    }

    /// Waits until a text occurs more often than `before`; allows more time than usual.
    fn wait_for_log(&self, text: &str, before: usize) {
        let start = Instant::now();
        while self.log_count(text) <= before {
            let logs = || self.each().map(Server::log).collect::<String>();
            assert!(start.elapsed() < 3 * WAIT_TIMEOUT, "nobody says {text:?}:\n{}", logs());
            pause();
        }
    }
}

/// A node at its address in the network.
fn node(net: &Net, settings: &[String], at: usize, dir: TempDir) -> Server {
    let mut command = net.wirephoto(at, dir.path());
    command.args(["serve", "--demo-public", "--listen", &net.nodes[at], "--data"]);
    command.arg(dir.path().join("data"));
    command.args(settings.iter().flat_map(|setting| ["--set", setting]));
    Server::run(dir, command)
}

fn nginx(net: &Net) -> Front {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let listen = format!("listen 127.0.0.1:{port};");
    let places: Vec<String> = (0..COUNT).map(|at| format!("127.0.0.1:808{}", at + 1)).collect();
    let places = places.iter().zip(&net.nodes).map(|(from, to)| (from.as_str(), to.as_str()));
    let changes: Vec<(&str, &str)> = places.chain([("listen 8000;", listen.as_str())]).collect();
    Front::nginx_site(folder, port, &example("nodes-nginx.conf", &changes))
}

/// Counters of the clients' work.
#[derive(Default)]
struct Progress {
    done: [AtomicUsize; KINDS.len()],
    doubts: AtomicUsize,
}

impl Progress {
    fn counts(&self) -> [usize; KINDS.len()] {
        std::array::from_fn(|kind| self.done[kind].load(Ordering::Relaxed))
    }

    /// Waits until every kind of client has had `more` further responses.
    fn until_served(&self, more: usize) {
        let before = self.counts();
        let start = Instant::now();
        loop {
            let late: Vec<&str> = (0..KINDS.len())
                .filter(|kind| self.counts()[*kind] < before[*kind] + more)
                .map(|kind| KINDS[kind])
                .collect();
            if late.is_empty() {
                return;
            }
            assert!(start.elapsed() < WAIT_TIMEOUT, "not served: {late:?}");
            pause();
        }
    }

    /// Waits until `more` further calls have failed.
    fn until_refused(&self, more: usize) {
        let until_count = self.doubts.load(Ordering::Relaxed) + more;
        until("calls to fail", || {
            (self.doubts.load(Ordering::Relaxed) >= until_count).then_some(())
        });
    }
}

/// Stops the clients on drop, also after a panic.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Requests a new photograph's Preview, and a crop of it that was not requested before: each response has the right
/// picture.
fn check_pictures(site: &NginxClient, items: &Items, random: &mut Random) -> Result<(), Doubt> {
    let newest = items.newest();
    let Some(number) = newest.get(usize::try_from(random.next(20)).unwrap()) else {
        return Ok(());
    };
    let (x, y) = (random.next(16), random.next(16));
    let crop = format!("-crop_w16_h16_x{x}_y{y}_NormalPreview.jpg");
    for rest in ["_NormalPreview.jpg", &crop] {
        let url = format!("{}/media/{}{rest}", site.url, item(*number));
        let picture = Picture::decode(&done(site, site.client.get(url))?);
        Items::check_colour(&picture, *number);
    }
    Ok(())
}

/// Runs all clients through nginx while `fault` comes and goes; then waits until all of them are served again.
fn under_load(ledger: &mut Ledger, nodes: &mut Nodes, fault: impl FnOnce(&mut Nodes, &Progress)) {
    let site = &nodes.nginx_client();
    let (progress, alive) = (&Progress::default(), &AtomicBool::new(true));
    let Ledger { items, purchases, tokens, collected, profile, seen, stream, random } = ledger;
    let (items, stream): (&Items, &str) = (items, stream);
    let mut other = Random(random.next(u64::MAX) | 1);
    let works = |kind: usize, step: &mut dyn FnMut() -> Result<(), Doubt>| {
        while alive.load(Ordering::Relaxed) {
            let outcome = step();
            let count = if outcome.is_ok() { &progress.done[kind] } else { &progress.doubts };
            count.fetch_add(1, Ordering::Relaxed);
            thread::sleep(PAUSES[usize::from(outcome.is_err())]);
        }
    };
    let mut read = || {
        while alive.load(Ordering::Relaxed) {
            let count = seen.poll(site, stream).len();
            progress.done[STREAM].fetch_add(count, Ordering::Relaxed);
            thread::sleep(PAUSES[0]);
        }
    };
    thread::scope(|scope| {
        let works = &works;
        for _ in 0..2 {
            scope.spawn(move || works(0, &mut || items.send(site)));
        }
        scope.spawn(move || works(1, &mut || purchases.step(site, items)));
        scope
            .spawn(move || works(2, &mut || tokens.log_in(site).and_then(|()| tokens.step(site))));
        scope.spawn(move || works(3, &mut || collected.step(site, items, random)));
        scope.spawn(move || works(4, &mut || profile.step(site)));
        scope.spawn(move || works(5, &mut || check_pictures(site, items, &mut other)));
        scope.spawn(&mut read);
        let _end = StopOnDrop(alive);
        progress.until_served(3);
        let start = Instant::now();
        fault(nodes, progress);
        let lasted = start.elapsed();
        progress.until_served(3);
        print_progress(&format!(
            "lasted {lasted:.1?}, all served {:.1?} later",
            start.elapsed() - lasted
        ));
    });
}

/// Checks everything that can be checked quickly, through nginx and at each node.
fn check(ledger: &mut Ledger, nodes: &Nodes) {
    // A client in doubt repeats its call until it is acknowledged.
    assert!(ledger.collected.resolve_doubt(&nodes.front).is_ok());
    assert!(ledger.profile.resolve_doubt(&nodes.front).is_ok());
    let ended = ledger.tokens.ended.last();
    for (node, ended) in nodes.each().zip(ended.into_iter().cycle()) {
        // The other nodes see a change within a second.
        node.until("the end of a token to count", || {
            (Tokens::status(node, ended) == 401).then_some(())
        });
    }
    ledger.check(&nodes.front);
    for node in nodes.each() {
        ledger.check(node);
    }
}

/// Kills a node; the others serve without it until it is restarted.
fn kill(at: usize, nodes: &mut Nodes, progress: &Progress) {
    let server = nodes.nodes[at].take().expect("it runs");
    assert!(!server.log().contains("panicked"), "{}", server.log());
    let dir = server.kill();
    progress.until_served(5);
    nodes.nodes[at] = Some(node(&nodes.net, &nodes.settings, at, dir));
}

/// Stops the database, by a crash or a fast shutdown, and restarts it once calls have failed.
fn restart_database(is_crash: bool, nodes: &Nodes, progress: &Progress) {
    if is_crash {
        nodes.cluster.crash();
    } else {
        nodes.cluster.down();
    }
    progress.until_refused(5);
    nodes.cluster.up();
}

/// Suspends the bucket until a circuit opens, then resumes it.
fn suspend_bucket(nodes: &Nodes, progress: &Progress) {
    nodes.s3.signal("STOP");
    until("the bucket to be left alone", || nodes.is_bucket_circuit_open().then_some(()));
    progress.until_refused(5);
    nodes.s3.signal("CONT");
    nodes.wait_for_closed_circuit();
}

/// Cuts a node off until its heartbeat has expired for the others.
fn cut(at: usize, nodes: &Nodes) {
    const DEAD: &str = "a node is dead";
    const REJOINED: &str = "it starts a new incarnation";
    let (dead, restarted) =
        (nodes.log_count(DEAD), nodes.node(at).log().matches(REJOINED).count());
    nodes.net.cut(at);
    nodes.wait_for_log(DEAD, dead);
    nodes.net.join(at);
    let node = nodes.node(at);
    node.until("it to start a new incarnation", || {
        (node.log().matches(REJOINED).count() > restarted).then_some(())
    });
    nodes.wait_for_closed_circuit();
}

/// Prints the progress of a long run.
#[expect(clippy::print_stdout, reason = "only when a long run was asked for")]
fn print_progress(text: &str) {
    if std::env::var_os("FAULT_ROUNDS").is_some() {
        println!("{text}");
    }
}

#[expect(clippy::print_stdout, reason = "a part that is left out must not go unseen")]
fn print_skipped() {
    println!("LEFT OUT: no node was cut off, for network namespaces are not permitted here");
}

/// Injects each fault once; checks everything after each.
fn round(number: usize, ledger: &mut Ledger, nodes: &mut Nodes) {
    for at in 0..COUNT {
        print_progress(&format!("round {number}: node {at} is killed"));
        under_load(ledger, nodes, |nodes, progress| kill(at, nodes, progress));
        check(ledger, nodes);
    }
    for is_crash in [true, false] {
        print_progress(&format!(
            "round {number}: the database restarts, after a crash: {is_crash}"
        ));
        under_load(ledger, nodes, |nodes, load| restart_database(is_crash, nodes, load));
        check(ledger, nodes);
    }
    print_progress(&format!("round {number}: the bucket hangs"));
    under_load(ledger, nodes, |nodes, load| suspend_bucket(nodes, load));
    check(ledger, nodes);
    if nodes.net.has_links() {
        print_progress(&format!("round {number}: node {} is cut off", number % COUNT));
        under_load(ledger, nodes, |nodes, _| cut(number % COUNT, nodes));
        check(ledger, nodes);
    } else {
        print_skipped();
    }
}

/// Items that were ingested more than once, and how often: nginx may retry a PUT.
fn repeated_ingests(nodes: &Nodes) -> BTreeMap<String, u32> {
    let sql = "SELECT id || ' ' || count(*) FROM item_log GROUP BY id HAVING count(*) > 1";
    let rows = postgres::run(&nodes.cluster.url("archive"), sql);
    let row = |line: &str| {
        let (id, count) = line.split_once(' ').expect("two columns");
        (id.to_owned(), count.parse().expect("a number"))
    };
    rows.lines().map(row).collect()
}

/// `FAULT_ROUNDS` sets the number of rounds.
#[test]
fn nodes_database_and_store_fail_under_load_and_nothing_acknowledged_is_lost_or_duplicated() {
    let rounds =
        std::env::var("FAULT_ROUNDS").map_or(1, |text| text.parse().expect("FAULT_ROUNDS"));
    let mut nodes = Nodes::start();
    let mut ledger = Ledger::begin(&nodes.front, 0x2545_F491_4F6C_DD1D);
    for number in 0..rounds {
        round(number, &mut ledger, &mut nodes);
    }
    // The other nodes see an ended token within a second, so one node is checked.
    ledger.audit(nodes.node(0), || repeated_ingests(&nodes));
    print_progress(&format!(
        "{:?}, more than once: {:?}",
        ledger.kinds(),
        repeated_ingests(&nodes)
    ));
    let (items, front) = (&ledger.items, &nodes.front);
    thread::scope(|scope| {
        scope.spawn(move || items.check(front));
        for node in nodes.each().skip(1) {
            scope.spawn(move || items.check(node));
        }
    });
    // An interrupted upload may have left its original; once sent again, an item refers to it.
    ledger.items.send_again(&nodes.front);
    let data = nodes.node(0).data();
    let mut command = nodes.net.wirephoto(0, nodes.node(0).dir.path());
    command.arg("check").args(nodes.settings.iter().flat_map(|setting| ["--set", setting]));
    let said = output(command.arg("--data").arg(data));
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    for node in nodes.nodes.drain(..).flatten() {
        let (status, log) = node.stop();
        assert!(status.success() && !log.contains("panicked"), "{log}");
    }
}
