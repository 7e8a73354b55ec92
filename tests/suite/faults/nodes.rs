//! Three nodes behind nginx, over PostgreSQL and a bucket, under mixed load, while a node is killed, the
//! database crashes and restarts, the bucket hangs and a node is cut off: what was acknowledged is
//! there, once, and everybody is served again by themselves ([`super::ledger`] is the account).

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
use crate::common::{PATIENCE, Server, pause};
use crate::receivers::Receiver;

const SETTINGS: [&str; 9] = [
    "server.unready_s=0",
    "server.public_url=http://photos.example",
    "media.warm=false",
    "media.client_megapixels_s=0",
    "auth.hash_memory_kib=64",
    "auth.hash_iterations=1",
    "auth.failures_per_address=100000",
    // A bucket that hangs is found out sooner than by the defaults, which would only take longer.
    "store.answer_s=4",
    "store.give_up_s=8",
];
const COUNT: usize = 3;
/// How long a client waits for an answer.
const CLIENT_TIME: Duration = Duration::from_secs(8);
/// Rests of a client: after an answer, and before it tries again what failed.
const RESTS: [Duration; 2] = [Duration::from_millis(30), Duration::from_millis(150)];
/// Kinds of clients.
const KINDS: [&str; 7] =
    ["photographs", "purchases", "tokens", "collections", "profiles", "pictures", "stream"];
const STREAM: usize = 6;

/// nginx as clients know it that are not told of what is behind.
struct Door {
    url: String,
    client: Client,
}

impl Site for Door {
    fn url(&self) -> &str {
        &self.url
    }

    fn client(&self) -> &Client {
        &self.client
    }

    fn is_in_doubt(&self, status: StatusCode) -> bool {
        [502, 503, 504].contains(&status.as_u16())
    }

    fn poll_time(&self) -> Duration {
        CLIENT_TIME
    }
}

/// What runs, in the order in which it ends.
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

    fn door(&self) -> Door {
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
        let client = client.timeout(CLIENT_TIME).build().unwrap();
        Door { url: self.front.url.clone(), client }
    }

    /// Whether one of them leaves the bucket alone.
    fn leave_store_alone(&self) -> bool {
        self.each().any(|node| node.metric("wirephoto_bucket_circuit_open", "") > 0.0)
    }

    fn until_asked(&self) {
        until("the bucket to be asked again", || (!self.leave_store_alone()).then_some(()));
    }

    /// Lines of the nodes' logs that hold a text.
    fn said(&self, text: &str) -> usize {
        self.each().map(|node| node.log().matches(text).count()).sum()
    }

    /// Waits until more was said; it takes longer than other things.
    fn until_said(&self, text: &str, before: usize) {
        let start = Instant::now();
        while self.said(text) <= before {
            let logs = || self.each().map(Server::log).collect::<String>();
            assert!(start.elapsed() < 3 * PATIENCE, "nobody says {text:?}:\n{}", logs());
            pause();
        }
    }
}

/// A node at its place in the network.
fn node(net: &Net, settings: &[String], at: usize, dir: TempDir) -> Server {
    let mut command = net.wirephoto(at, dir.path());
    command.args(["serve", "--listen", &net.nodes[at], "--data"]).arg(dir.path().join("data"));
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

/// What clients did so far.
#[derive(Default)]
struct Progress {
    done: [AtomicUsize; KINDS.len()],
    doubts: AtomicUsize,
}

impl Progress {
    fn counts(&self) -> [usize; KINDS.len()] {
        std::array::from_fn(|kind| self.done[kind].load(Ordering::Relaxed))
    }

    /// Waits until every kind of client had so many answers more.
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
            assert!(start.elapsed() < PATIENCE, "not served: {late:?}");
            pause();
        }
    }

    /// Waits until so many calls more failed.
    fn until_refused(&self, more: usize) {
        let until_count = self.doubts.load(Ordering::Relaxed) + more;
        until("calls to fail", || {
            (self.doubts.load(Ordering::Relaxed) >= until_count).then_some(())
        });
    }
}

/// Ends the clients, also when somebody gave up.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Looks at a new photograph's Preview, and at a crop of it that nobody asked for before: whoever gets
/// one gets the right one.
fn look(site: &Door, items: &Items, random: &mut Random) -> Result<(), Doubt> {
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

/// All clients work through nginx while `fault` comes and goes; then all of them are served again.
fn under_load(ledger: &mut Ledger, nodes: &mut Nodes, fault: impl FnOnce(&mut Nodes, &Progress)) {
    let door = &nodes.door();
    let (progress, alive) = (&Progress::default(), &AtomicBool::new(true));
    let Ledger { items, purchases, tokens, collected, profile, seen, stream, random } = ledger;
    let (items, stream): (&Items, &str) = (items, stream);
    let mut other = Random(random.next(u64::MAX) | 1);
    let works = |kind: usize, step: &mut dyn FnMut() -> Result<(), Doubt>| {
        while alive.load(Ordering::Relaxed) {
            let outcome = step();
            let count = if outcome.is_ok() { &progress.done[kind] } else { &progress.doubts };
            count.fetch_add(1, Ordering::Relaxed);
            thread::sleep(RESTS[usize::from(outcome.is_err())]);
        }
    };
    let mut read = || {
        while alive.load(Ordering::Relaxed) {
            let count = seen.poll(door, stream).len();
            progress.done[STREAM].fetch_add(count, Ordering::Relaxed);
            thread::sleep(RESTS[0]);
        }
    };
    thread::scope(|scope| {
        let works = &works;
        for _ in 0..2 {
            scope.spawn(move || works(0, &mut || items.send(door)));
        }
        scope.spawn(move || works(1, &mut || purchases.step(door, items)));
        scope
            .spawn(move || works(2, &mut || tokens.log_in(door).and_then(|()| tokens.step(door))));
        scope.spawn(move || works(3, &mut || collected.step(door, items, random)));
        scope.spawn(move || works(4, &mut || profile.step(door)));
        scope.spawn(move || works(5, &mut || look(door, items, &mut other)));
        scope.spawn(&mut read);
        let _end = End(alive);
        progress.until_served(3);
        let start = Instant::now();
        fault(nodes, progress);
        let lasted = start.elapsed();
        progress.until_served(3);
        say(&format!("lasted {lasted:.1?}, all served {:.1?} later", start.elapsed() - lasted));
    });
}

/// Everything that can be looked at in no time, through nginx and each node.
fn check(ledger: &mut Ledger, nodes: &Nodes) {
    // A client that is in doubt says again what it wants until it is told.
    assert!(ledger.collected.end_doubt(&nodes.front).is_ok());
    assert!(ledger.profile.end_doubt(&nodes.front).is_ok());
    let ended = ledger.tokens.ended.last();
    for (node, ended) in nodes.each().zip(ended.into_iter().cycle()) {
        // What a node did counts at the others within a second.
        node.until("the end of a token to count", || {
            (Tokens::status(node, ended) == 401).then_some(())
        });
    }
    ledger.check(&nodes.front);
    for node in nodes.each() {
        ledger.check(node);
    }
}

/// Kills a node; the others serve without it until it is started again.
fn kill(at: usize, nodes: &mut Nodes, progress: &Progress) {
    let server = nodes.nodes[at].take().expect("it runs");
    assert!(!server.log().contains("panicked"), "{}", server.log());
    let dir = server.kill();
    progress.until_served(5);
    nodes.nodes[at] = Some(node(&nodes.net, &nodes.settings, at, dir));
}

/// Ends the database, by a crash or in a hurry, and starts it again when that was felt.
fn restart_database(is_crash: bool, nodes: &Nodes, progress: &Progress) {
    if is_crash {
        nodes.cluster.crash();
    } else {
        nodes.cluster.down();
    }
    progress.until_refused(5);
    nodes.cluster.up();
}

/// The bucket hangs until it is left alone, and goes on.
fn hang_store(nodes: &Nodes, progress: &Progress) {
    nodes.s3.signal("STOP");
    until("the bucket to be left alone", || nodes.leave_store_alone().then_some(()));
    progress.until_refused(5);
    nodes.s3.signal("CONT");
    nodes.until_asked();
}

/// Cuts a node off until the others take it for dead.
fn cut(at: usize, nodes: &Nodes) {
    const DEAD: &str = "a node is dead";
    const RESTARTED: &str = "it starts a new incarnation";
    let (dead, restarted) = (nodes.said(DEAD), nodes.node(at).log().matches(RESTARTED).count());
    nodes.net.cut(at);
    nodes.until_said(DEAD, dead);
    nodes.net.join(at);
    let node = nodes.node(at);
    node.until("it to start a new incarnation", || {
        (node.log().matches(RESTARTED).count() > restarted).then_some(())
    });
    nodes.until_asked();
}

/// Tells somebody who waits for a long run how it goes.
#[expect(clippy::print_stdout, reason = "only when a long run was asked for")]
fn say(text: &str) {
    if std::env::var_os("FAULT_ROUNDS").is_some() {
        println!("{text}");
    }
}

#[expect(clippy::print_stdout, reason = "a part that is left out must not go unseen")]
fn say_left_out() {
    println!("LEFT OUT: no node was cut off, for network namespaces are not permitted here");
}

/// One of each fault; everything is looked at after each.
fn round(number: usize, ledger: &mut Ledger, nodes: &mut Nodes) {
    for at in 0..COUNT {
        say(&format!("round {number}: node {at} is killed"));
        under_load(ledger, nodes, |nodes, progress| kill(at, nodes, progress));
        check(ledger, nodes);
    }
    for is_crash in [true, false] {
        say(&format!("round {number}: the database restarts, after a crash: {is_crash}"));
        under_load(ledger, nodes, |nodes, load| restart_database(is_crash, nodes, load));
        check(ledger, nodes);
    }
    say(&format!("round {number}: the bucket hangs"));
    under_load(ledger, nodes, |nodes, load| hang_store(nodes, load));
    check(ledger, nodes);
    if nodes.net.has_links() {
        say(&format!("round {number}: node {} is cut off", number % COUNT));
        under_load(ledger, nodes, |nodes, _| cut(number % COUNT, nodes));
        check(ledger, nodes);
    } else {
        say_left_out();
    }
}

/// What came in more than once, and how often: nginx may send a PUT again.
fn changes(nodes: &Nodes) -> BTreeMap<String, u32> {
    let sql = "SELECT id || ' ' || count(*) FROM item_log GROUP BY id HAVING count(*) > 1";
    let rows = postgres::run(&nodes.cluster.url("archive"), sql);
    let row = |line: &str| {
        let (id, count) = line.split_once(' ').expect("two columns");
        (id.to_owned(), count.parse().expect("a number"))
    };
    rows.lines().map(row).collect()
}

/// `FAULT_ROUNDS` says how often each fault comes.
#[test]
fn nodes_database_and_store_break_under_load_and_nothing_acknowledged_is_lost_or_doubled() {
    let rounds =
        std::env::var("FAULT_ROUNDS").map_or(1, |text| text.parse().expect("FAULT_ROUNDS"));
    let mut nodes = Nodes::start();
    let mut ledger = Ledger::begin(&nodes.front, 0x2545_F491_4F6C_DD1D);
    for number in 0..rounds {
        round(number, &mut ledger, &mut nodes);
    }
    // What one node ends counts at the others within a second, so that is asked of one.
    ledger.audit(nodes.node(0), || changes(&nodes));
    say(&format!("{:?}, more than once: {:?}", ledger.kinds(), changes(&nodes)));
    let (items, front) = (&ledger.items, &nodes.front);
    thread::scope(|scope| {
        scope.spawn(move || items.check(front));
        for node in nodes.each().skip(1) {
            scope.spawn(move || items.check(node));
        }
    });
    // An upload that was cut short may have left its original; sent again, it is somebody's.
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
