//! A server that is killed at random moments while many clients work: what it acknowledged is there,
//! once. What a client was not told of may be there or not, and never twice.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use reqwest::Method;
use reqwest::blocking::{RequestBuilder, Response};
use serde_json::{Value, json};

use super::kit::{
    BUYER, call, call_with, colour, document, form, good, login, notify, orders, paid, photograph,
    post, scene, text, upload,
};
use crate::common::pictures::Picture;
use crate::common::{DEMO_KEY, Server};
use crate::notifications::Seen;

const SETTINGS: [&str; 4] = [
    "server.unready_s=0",
    "media.warm=false",
    "auth.hash_memory_kib=64",
    "auth.hash_iterations=1",
];
/// How long a server lives at most before it is killed, microseconds.
const LIFE_US: u64 = 250_000;

/// A client's call did not come to its end: what it asked for may be done or not.
struct Doubt;

/// The whole answer, if there is one. What the server says while it lives must be a success.
#[track_caller]
fn answer(request: RequestBuilder) -> Result<(Response, Vec<u8>), Doubt> {
    let mut response = request.send().map_err(|_| Doubt)?;
    let mut body = Vec::new();
    std::io::Read::read_to_end(&mut response, &mut body).map_err(|_| Doubt)?;
    Ok((response, body))
}

#[track_caller]
fn done(request: RequestBuilder) -> Result<Vec<u8>, Doubt> {
    let (response, body) = answer(request)?;
    let status = response.status();
    assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}

fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

/// Numbers that look random and are the same in every run with this seed.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// Photographs that were sent: those that were acknowledged, and those in doubt.
#[derive(Default)]
struct Items {
    next: AtomicUsize,
    there: Mutex<BTreeSet<usize>>,
    doubtful: Mutex<BTreeSet<usize>>,
}

fn item(number: usize) -> String {
    format!("image/i{number}")
}

impl Items {
    fn send(&self, server: &Server) -> Result<(), Doubt> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let sent = upload(server, &item(number), "Isbrytare", &photograph(number));
        match done(sent) {
            Ok(_) => self.there.lock().unwrap().insert(number),
            Err(Doubt) => {
                self.doubtful.lock().unwrap().insert(number);
                return Err(Doubt);
            }
        };
        Ok(())
    }

    /// Sends those in doubt again, as their clients would.
    fn send_again(&self, server: &Server) {
        for number in self.doubtful.lock().unwrap().iter() {
            let sent = upload(server, &item(*number), "Isbrytare", &photograph(*number));
            assert!(done(sent).is_ok());
            self.check_picture(server, *number);
        }
    }

    /// Those that are there, the newest first.
    fn newest(&self) -> Vec<usize> {
        self.there.lock().unwrap().iter().rev().copied().collect()
    }

    /// Looks at those that were acknowledged and gives those that are there.
    fn check(&self, server: &Server) -> BTreeSet<usize> {
        let mut found = self.there.lock().unwrap().clone();
        for number in &found {
            self.check_picture(server, *number);
        }
        for number in self.doubtful.lock().unwrap().iter() {
            let status = server.get(&format!("/media/{}.json", item(*number))).status();
            if status == 200 {
                // An item is there with its bytes or not at all.
                self.check_picture(server, *number);
                found.insert(*number);
            } else {
                assert_eq!(status, 404, "i{number}");
            }
        }
        found
    }

    fn check_picture(&self, server: &Server, number: usize) {
        let path = format!("/media/{}.jpg", item(number));
        let body = done(call(server, Method::GET, &path, DEMO_KEY));
        let picture = Picture::decode(&body.unwrap_or_else(|Doubt| panic!("i{number}")));
        let seen = picture.at(16, 16);
        let same = seen.iter().zip(colour(number)).all(|(a, b)| a.abs_diff(b) < 8);
        assert!(same && picture.size() == (32, 32), "i{number} is {seen:?}");
    }
}

/// Purchases, each of another photograph.
#[derive(Default)]
struct Purchases {
    paid: BTreeSet<usize>,
    doubtful: BTreeSet<usize>,
}

impl Purchases {
    fn step(&mut self, server: &Server, items: &Items) -> Result<(), Doubt> {
        let new = items.newest().into_iter().find(|number| !self.paid.contains(number));
        let Some(number) = new else {
            thread::yield_now();
            return Ok(());
        };
        self.doubtful.insert(number);
        let path = format!("/media/{}.jpg?ak={BUYER}", item(number));
        done(server.client.get(format!("{}{path}", server.url)))?;
        self.doubtful.remove(&number);
        self.paid.insert(number);
        Ok(())
    }

    /// One row for each, one download for each row.
    fn check(&self, server: &Server) {
        let mut rows = BTreeMap::<usize, u32>::new();
        for order in orders(server) {
            let uri = text(&order["item"], "uri");
            let number = uri.rsplit("/i").next().unwrap().parse().unwrap();
            *rows.entry(number).or_default() += 1;
        }
        assert!(rows.values().all(|count| *count == 1), "{rows:?}");
        for number in &self.paid {
            assert!(rows.contains_key(number), "the purchase of i{number} is lost");
        }
        for number in rows.keys() {
            let known = self.paid.contains(number) || self.doubtful.contains(number);
            assert!(known, "nobody bought i{number}");
        }
        let count = u64::try_from(rows.len()).unwrap();
        server.until("the downloads to be counted", || (paid(server) == count).then_some(()));
    }
}

/// Sets of tokens; each is refreshed, used or revoked.
#[derive(Default)]
struct Tokens {
    /// The newest access and refresh token of each login.
    live: Vec<(String, String)>,
    /// Access tokens that were rotated away or revoked.
    ended: Vec<String>,
    steps: usize,
}

impl Tokens {
    fn step(&mut self, server: &Server) -> Result<(), Doubt> {
        if self.live.is_empty() {
            thread::yield_now();
            return Ok(());
        }
        self.steps += 1;
        // In doubt until the answer is there; a set in doubt is given up.
        let (access, refresh) = self.live.remove(0);
        if self.steps.is_multiple_of(5) {
            done(post(server, "revoke", &form(&[("token", &refresh)])))?;
        } else {
            let fields = form(&[("grant_type", "refresh_token"), ("refresh_token", &refresh)]);
            let set = parsed(&done(post(server, "token", &fields))?);
            self.live.push((text(&set, "access_token"), text(&set, "refresh_token")));
        }
        self.ended.push(access);
        Ok(())
    }

    /// Logs in where sets were given up; beside other work a password takes longer than the server
    /// lives.
    fn log_in(&mut self, server: &Server) {
        while self.live.len() < 3 {
            let set = good(post(server, "token", &login()).send().unwrap());
            self.live.push((text(&set, "access_token"), text(&set, "refresh_token")));
        }
    }

    fn status(server: &Server, access: &str) -> u16 {
        let bearer = format!("Bearer {access}");
        server.get_with("/o/v2/user", &[("authorization", &bearer)]).status().as_u16()
    }

    fn check(&self, server: &Server) {
        for (access, _) in &self.live {
            assert_eq!(Self::status(server, access), 200, "a token that was given is lost");
        }
        for access in self.ended.iter().rev().take(50) {
            assert_eq!(Self::status(server, access), 401, "a token that ended works");
        }
    }

    /// Each refresh token works, once.
    fn check_refreshes(&self, server: &Server) {
        for (access, refresh) in &self.live {
            let fields = form(&[("grant_type", "refresh_token"), ("refresh_token", refresh)]);
            let set = good(post(server, "token", &fields).send().unwrap());
            assert_eq!(Self::status(server, access), 401);
            assert_eq!(Self::status(server, &text(&set, "access_token")), 200);
            assert_eq!(post(server, "token", &fields).send().unwrap().status(), 400);
        }
    }
}

/// A collection that one client changes: what it must hold, or may hold since the last answer is
/// missing.
struct Collected {
    id: String,
    content: Vec<usize>,
    doubtful: Option<Vec<usize>>,
}

impl Collected {
    fn step(&mut self, server: &Server, items: &Items, random: &mut Random) -> Result<(), Doubt> {
        let path = format!("/collection/v1/collection/{}", self.id);
        let uri = |number: &usize| format!("{}/media/{}", server.url, item(*number));
        let mut next = self.content.clone();
        let request = match random.next(3) {
            0 if !next.is_empty() => {
                let place = usize::try_from(random.next(next.len() as u64)).unwrap();
                let gone = next.remove(place);
                let body = json!([{ "uri": uri(&gone) }]);
                call_with(server, (Method::DELETE, &format!("{path}/items")), DEMO_KEY, &body)
            }
            1 if next.len() > 1 => {
                next.rotate_left(1);
                let content: Vec<String> = next.iter().map(uri).collect();
                let body = json!({ "content": content });
                call_with(server, (Method::PUT, &path), DEMO_KEY, &body)
            }
            _ => {
                let new = items.newest().into_iter().find(|number| !next.contains(number));
                let Some(new) = new.filter(|_| next.len() < 100) else { return Ok(()) };
                next.push(new);
                let body = json!([{ "uri": uri(&new) }]);
                call_with(server, (Method::POST, &format!("{path}/items")), DEMO_KEY, &body)
            }
        };
        self.doubtful = Some(next);
        done(request)?;
        self.content = self.doubtful.take().unwrap();
        Ok(())
    }

    fn check(&mut self, server: &Server) {
        let path = format!("/collection/v1/collection/{}", self.id);
        let found = good(call(server, Method::GET, &path, DEMO_KEY).send().unwrap());
        let number = |uri: &Value| uri.as_str()?.rsplit("/i").next()?.parse().ok();
        let found: Option<Vec<usize>> =
            found["content"].as_array().unwrap().iter().map(number).collect();
        let found = found.expect("numbers");
        let doubtful = self.doubtful.take();
        let known = found == self.content || Some(&found) == doubtful.as_ref();
        assert!(known, "{found:?}, expected {:?} or {doubtful:?}", self.content);
        self.content = found;
    }
}

/// A number in a profile that one client counts up.
#[derive(Default)]
struct Profile {
    written: u64,
    doubtful: Option<u64>,
}

impl Profile {
    fn step(&mut self, server: &Server) -> Result<(), Doubt> {
        let next = self.written + 1;
        self.doubtful = Some(next);
        let body = json!({ "count": next });
        done(call_with(server, (Method::PUT, "/user/v1/profile/count"), DEMO_KEY, &body))?;
        (self.written, self.doubtful) = (next, None);
        Ok(())
    }

    fn check(&mut self, server: &Server) {
        let found = good(call(server, Method::GET, "/user/v1/profile", DEMO_KEY).send().unwrap());
        let found = found["count"].as_u64().unwrap_or_default();
        let known = found == self.written || Some(found) == self.doubtful.take();
        assert!(known, "{found}, expected {}", self.written);
        self.written = found;
    }
}

/// Everything that clients know.
struct Ledger {
    items: Items,
    purchases: Purchases,
    tokens: Tokens,
    collected: Collected,
    profile: Profile,
    seen: Seen,
    stream: String,
    random: Random,
}

impl Ledger {
    fn begin(server: &Server, seed: u64) -> Self {
        let named = json!({ "name": "killed" });
        let at = (Method::POST, "/collection/v1/collection");
        let made = good(call_with(server, at, DEMO_KEY, &named).send().unwrap());
        let collected = Collected { id: text(&made, "id"), content: Vec::new(), doubtful: None };
        Self {
            items: Items::default(),
            purchases: Purchases::default(),
            tokens: Tokens::default(),
            collected,
            profile: Profile::default(),
            seen: Seen::default(),
            stream: notify(server, "/_all/notification/stream?q=isbrytare"),
            random: Random(seed),
        }
    }

    /// Works with the server until it is killed.
    fn work(&mut self, server: &Server) {
        let after = Duration::from_micros(self.random.next(LIFE_US));
        let Self { items, purchases, tokens, collected, profile, seen, stream, random } = self;
        let (items, stream): (&Items, &str) = (items, stream);
        let process = server.child.id().to_string();
        // Who finds nothing to do makes no call that could break off.
        let alive = &AtomicBool::new(true);
        let works = || alive.load(Ordering::Relaxed);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| while works() && items.send(server).is_ok() {});
            }
            scope.spawn(|| while works() && purchases.step(server, items).is_ok() {});
            scope.spawn(|| while works() && tokens.step(server).is_ok() {});
            scope.spawn(|| while works() && collected.step(server, items, random).is_ok() {});
            scope.spawn(|| while works() && profile.step(server).is_ok() {});
            let killer = scope.spawn(move || {
                thread::sleep(after);
                let mut kill = std::process::Command::new("kill");
                let killed = kill.args(["-s", "KILL", &process]).status();
                alive.store(false, Ordering::Relaxed);
                assert!(killed.unwrap().success());
            });
            while !killer.is_finished() {
                seen.poll(server, stream);
            }
        });
    }

    /// What can be looked at in no time.
    fn check(&mut self, server: &Server) {
        self.collected.check(server);
        self.profile.check(server);
        self.tokens.check(server);
        let newest = self.items.newest();
        for number in newest.iter().take(3) {
            self.items.check_picture(server, *number);
        }
        self.purchases.check(server);
    }

    /// Everything, at the end.
    fn audit(&mut self, server: &Server) {
        self.check(server);
        self.tokens.check_refreshes(server);
        // One more, which comes behind all the others.
        let last = self.items.next.load(Ordering::Relaxed);
        assert!(self.items.send(server).is_ok());
        self.seen.poll_until(server, &self.stream, &format!("i{last}"));
        let there = self.items.check(server);
        for number in 0..=last {
            let id = format!("i{number}");
            let times = self.seen.whole.get(&id).copied().unwrap_or_default();
            let doubted = self.seen.doubtful.contains(&id);
            let expected = u32::from(there.contains(&number));
            assert!(times == expected || (doubted && times == 0), "{id} came {times} times");
        }
        assert!(self.is_load(), "{:?} are no load", self.kinds());
        say(&format!("{:?}", self.kinds()));
    }

    /// How much of each was done.
    fn kinds(&self) -> HashMap<&'static str, usize> {
        HashMap::from([
            ("photographs", self.items.there.lock().unwrap().len()),
            ("purchases", self.purchases.paid.len()),
            ("tokens", self.tokens.ended.len()),
            ("profiles", usize::try_from(self.profile.written).unwrap()),
        ])
    }

    fn is_load(&self) -> bool {
        self.kinds().values().all(|count| *count > 5)
    }
}

/// Tells somebody who waits for a long run how it goes.
#[expect(clippy::print_stdout, reason = "only when a long run was asked for")]
fn say(text: &str) {
    if std::env::var_os("FAULT_KILLS").is_some() {
        println!("{text}");
    }
}

/// `FAULT_KILLS` says how often it is killed, `FAULT_SEED` when.
#[test]
fn killed_at_random_points_of_mixed_load_nothing_acknowledged_is_lost_or_doubled() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let (kills, seed) = (number("FAULT_KILLS", 25), number("FAULT_SEED", 0x2545_F491_4F6C_DD1D));
    say(&format!("{kills} kills, FAULT_SEED={seed}"));
    let dir = scene(&[("image/old", document("Gammal"))]);
    let mut server = Server::start(dir, &SETTINGS);
    let mut ledger = Ledger::begin(&server, seed);
    // On a slow machine little is done in so short a life: it takes more of them.
    for kill in 1..=20 * kills {
        if kill > kills && ledger.is_load() {
            break;
        }
        ledger.tokens.log_in(&server);
        ledger.work(&server);
        server = server.restart_killed(&SETTINGS);
        ledger.check(&server);
        if kill % 50 == 0 {
            say(&format!("{kill} kills"));
        }
    }
    ledger.audit(&server);
    // An upload that was cut short may have left its original; sent again, it is somebody's.
    ledger.items.send_again(&server);
    let said = server.command(&["check"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    let (status, log) = server.stop();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}
