//! Records of clients under mixed load and faults: everything acknowledged is there, exactly once. A request with
//! an unknown outcome may have been executed or not, but never twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use reqwest::Method;
use reqwest::blocking::{RequestBuilder, Response};
use serde_json::{Value, json};

use super::kit::{
    BUYER, Site, call, call_with, colour, create_stream, downloads_used, form, login, ok_json,
    orders, photograph, post, text, until, upload,
};
use crate::common::DEMO_KEY;
use crate::common::pictures::Picture;
use crate::notifications::ReceivedItems;

/// The number of token sets that a client holds.
const SETS: usize = 3;

/// A request with an unknown outcome: it may have been executed or not.
pub struct Doubt;

/// The complete response, if its outcome is known.
#[track_caller]
fn answer(site: &impl Site, request: RequestBuilder) -> Result<(Response, Vec<u8>), Doubt> {
    let mut response = request.send().map_err(|_| Doubt)?;
    let mut body = Vec::new();
    std::io::Read::read_to_end(&mut response, &mut body).map_err(|_| Doubt)?;
    if site.is_in_doubt(response.status()) {
        return Err(Doubt);
    }
    Ok((response, body))
}

/// The body of a response that must be successful, if its outcome is known.
#[track_caller]
pub fn done(site: &impl Site, request: RequestBuilder) -> Result<Vec<u8>, Doubt> {
    let (response, body) = answer(site, request)?;
    let (status, url) = (response.status(), response.url());
    assert!(status.is_success(), "{url}: {status}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}

fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

/// Pseudorandom numbers, reproducible by their seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// Photographs that were uploaded: those acknowledged, and those in doubt.
#[derive(Default)]
pub struct Items {
    next: AtomicUsize,
    pub there: Mutex<BTreeSet<usize>>,
    doubtful: Mutex<BTreeSet<usize>>,
}

pub fn item(number: usize) -> String {
    format!("image/i{number}")
}

impl Items {
    pub fn send(&self, site: &impl Site) -> Result<(), Doubt> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let sent = upload(site, &item(number), "Isbrytare", &photograph(number));
        match done(site, sent) {
            Ok(_) => self.there.lock().unwrap().insert(number),
            Err(Doubt) => {
                self.doubtful.lock().unwrap().insert(number);
                return Err(Doubt);
            }
        };
        Ok(())
    }

    /// Uploads those in doubt again, as their clients would.
    pub fn send_again(&self, site: &impl Site) {
        for number in self.doubtful.lock().unwrap().iter() {
            let sent = upload(site, &item(*number), "Isbrytare", &photograph(*number));
            assert!(done(site, sent).is_ok());
            self.check_picture(site, *number);
        }
    }

    /// The acknowledged ones, newest first.
    pub fn newest(&self) -> Vec<usize> {
        self.there.lock().unwrap().iter().rev().copied().collect()
    }

    /// The items whose creation was in doubt and that exist.
    fn doubtful_there(&self, site: &impl Site) -> BTreeSet<usize> {
        let doubtful = self.doubtful.lock().unwrap();
        let is_there = |number: &usize| {
            let status = site.status(&format!("/media/{}.json", item(*number)), &[]);
            assert!(status == 200 || status == 404, "i{number}: {status}");
            status == 200
        };
        doubtful.iter().copied().filter(is_there).collect()
    }

    /// Checks those that were acknowledged; returns all that exist.
    pub fn check(&self, site: &impl Site) -> BTreeSet<usize> {
        let mut found = self.there.lock().unwrap().clone();
        for number in &found {
            self.check_picture(site, *number);
        }
        for number in self.doubtful_there(site) {
            // An item exists with its bytes or not at all.
            self.check_picture(site, number);
            found.insert(number);
        }
        found
    }

    pub fn check_picture(&self, site: &impl Site, number: usize) {
        let path = format!("/media/{}.jpg", item(number));
        let body = done(site, call(site, Method::GET, &path, DEMO_KEY));
        let picture = Picture::decode(&body.unwrap_or_else(|Doubt| panic!("i{number}")));
        assert_eq!(picture.size(), (32, 32), "i{number}");
        Self::check_colour(&picture, number);
    }

    /// Checks that the picture is a rendition of that photograph.
    pub fn check_colour(picture: &Picture, number: usize) {
        let (width, height) = picture.size();
        let seen = picture.at(width / 2, height / 2);
        let is_same = seen.iter().zip(colour(number)).all(|(a, b)| a.abs_diff(b) < 8);
        assert!(is_same, "i{number} is {seen:?}");
    }
}

/// Purchases, each of a different photograph.
#[derive(Default)]
pub struct Purchases {
    pub paid: BTreeSet<usize>,
    doubtful: BTreeSet<usize>,
}

impl Purchases {
    pub fn step(&mut self, site: &impl Site, items: &Items) -> Result<(), Doubt> {
        let new = items.newest().into_iter().find(|number| !self.paid.contains(number));
        let Some(number) = new else {
            thread::yield_now();
            return Ok(());
        };
        self.doubtful.insert(number);
        let path = format!("/media/{}.jpg?ak={BUYER}", item(number));
        done(site, site.client().get(format!("{}{path}", site.url())))?;
        self.doubtful.remove(&number);
        self.paid.insert(number);
        Ok(())
    }

    /// Checks that each has one row, and each row one download.
    pub fn check(&self, site: &impl Site) {
        // A purchase in doubt may be executed between the two requests.
        let rows = until("the downloads to be counted", || {
            let mut rows = BTreeMap::<usize, u32>::new();
            for order in orders(site) {
                let number = order.item.uri.rsplit("/i").next().unwrap().parse().unwrap();
                *rows.entry(number).or_default() += 1;
            }
            (downloads_used(site) == u64::try_from(rows.len()).unwrap()).then_some(rows)
        });
        assert!(rows.values().all(|count| *count == 1), "{rows:?}");
        for number in &self.paid {
            assert!(rows.contains_key(number), "the purchase of i{number} is lost");
        }
        for number in rows.keys() {
            let known = self.paid.contains(number) || self.doubtful.contains(number);
            assert!(known, "nobody bought i{number}");
        }
    }
}

/// Token sets; each is refreshed, used or revoked.
#[derive(Default)]
pub struct Tokens {
    /// The newest access and refresh token of each login.
    live: Vec<(String, String)>,
    /// Access tokens that were rotated or revoked.
    pub ended: Vec<String>,
    steps: usize,
}

impl Tokens {
    pub fn step(&mut self, site: &impl Site) -> Result<(), Doubt> {
        if self.live.is_empty() {
            thread::yield_now();
            return Ok(());
        }
        self.steps += 1;
        // In doubt until the response arrives; a set in doubt is dropped.
        let (access, refresh) = self.live.remove(0);
        if self.steps.is_multiple_of(5) {
            done(site, post(site, "revoke", &form(&[("token", &refresh)])))?;
        } else {
            let fields = form(&[("grant_type", "refresh_token"), ("refresh_token", &refresh)]);
            let set = parsed(&done(site, post(site, "token", &fields))?);
            self.live.push((text(&set, "access_token"), text(&set, "refresh_token")));
        }
        self.ended.push(access);
        Ok(())
    }

    /// Logs in again to replace dropped sets.
    pub fn log_in(&mut self, site: &impl Site) -> Result<(), Doubt> {
        while self.live.len() < SETS {
            let set = parsed(&done(site, post(site, "token", &login()))?);
            self.live.push((text(&set, "access_token"), text(&set, "refresh_token")));
        }
        Ok(())
    }

    pub fn status(site: &impl Site, access: &str) -> u16 {
        let bearer = format!("Bearer {access}");
        site.status("/o/v2/user", &[("authorization", &bearer)])
    }

    pub fn check(&self, site: &impl Site) {
        for (access, _) in &self.live {
            assert_eq!(Self::status(site, access), 200, "a token that was given is lost");
        }
        for access in self.ended.iter().rev().take(50) {
            assert_eq!(Self::status(site, access), 401, "a token that ended works");
        }
    }

    /// Checks that each refresh token works once.
    pub fn check_refreshes(&self, site: &impl Site) {
        for (access, refresh) in &self.live {
            let fields = form(&[("grant_type", "refresh_token"), ("refresh_token", refresh)]);
            let set = ok_json(post(site, "token", &fields).send().unwrap());
            assert_eq!(Self::status(site, access), 401);
            assert_eq!(Self::status(site, &text(&set, "access_token")), 200);
            assert_eq!(post(site, "token", &fields).send().unwrap().status(), 400);
        }
    }
}

/// A collection that one client changes: its content after the last acknowledged call, and possibly after one in
/// doubt. The client repeats a call in doubt until it is acknowledged, and then switches to another collection: a
/// delayed duplicate of the call must not change what it reads.
#[derive(Default)]
pub struct Collected {
    id: Option<String>,
    content: Vec<usize>,
    doubtful: Option<Change>,
    /// Abandoned collections, with their content.
    left: Vec<(String, Vec<usize>)>,
}

/// A request that changes a collection, and the resulting content.
#[derive(Clone, Debug)]
struct Change {
    call: (Method, String),
    body: Value,
    next: Vec<usize>,
}

impl Change {
    fn make(&self, site: &impl Site) -> Result<(), Doubt> {
        let (method, path) = &self.call;
        done(site, call_with(site, (method.clone(), path), DEMO_KEY, &self.body)).map(drop)
    }
}

impl Collected {
    pub fn step(
        &mut self,
        site: &impl Site,
        items: &Items,
        random: &mut Random,
    ) -> Result<(), Doubt> {
        let Some(id) = self.id.clone() else { return self.begin(site) };
        if self.doubtful.is_some() {
            return self.resolve_doubt(site);
        }
        let path = format!("/collection/v1/collection/{id}");
        let uri = |number: &usize| format!("{}/media/{}", site.url(), item(*number));
        let mut next = self.content.clone();
        let (call, body) = match random.next(3) {
            0 if !next.is_empty() => {
                let place = usize::try_from(random.next(next.len() as u64)).unwrap();
                let gone = next.remove(place);
                ((Method::DELETE, format!("{path}/items")), json!([{ "uri": uri(&gone) }]))
            }
            1 if next.len() > 1 => {
                next.rotate_left(1);
                let content: Vec<String> = next.iter().map(uri).collect();
                ((Method::PUT, path), json!({ "content": content }))
            }
            _ => {
                let new = items.newest().into_iter().find(|number| !next.contains(number));
                let Some(new) = new.filter(|_| next.len() < 100) else { return Ok(()) };
                next.push(new);
                ((Method::POST, format!("{path}/items")), json!([{ "uri": uri(&new) }]))
            }
        };
        let change = self.doubtful.insert(Change { call, body, next });
        change.make(site)?;
        self.content = self.doubtful.take().unwrap().next;
        Ok(())
    }

    pub fn begin(&mut self, site: &impl Site) -> Result<(), Doubt> {
        let at = (Method::POST, "/collection/v1/collection");
        let made = done(site, call_with(site, at, DEMO_KEY, &json!({ "name": "faults" })))?;
        self.id = Some(text(&parsed(&made), "id"));
        Ok(())
    }

    /// Repeats the call in doubt, and then abandons the collection.
    pub fn resolve_doubt(&mut self, site: &impl Site) -> Result<(), Doubt> {
        let (Some(change), Some(id)) = (&self.doubtful, &self.id) else { return Ok(()) };
        change.make(site)?;
        self.left.push((id.clone(), change.next.clone()));
        (self.id, self.content, self.doubtful) = (None, Vec::new(), None);
        Ok(())
    }

    pub fn check(&mut self, site: &impl Site) {
        for (id, content) in &self.left {
            assert_eq!(&collected(site, id), content, "{id}");
        }
        let Some(id) = &self.id else { return };
        let found = collected(site, id);
        let doubtful = self.doubtful.take().map(|change| change.next);
        let known = found == self.content || Some(&found) == doubtful.as_ref();
        assert!(known, "{found:?}, expected {:?} or {doubtful:?}", self.content);
        self.content = found;
    }
}

/// The content of a collection.
fn collected(site: &impl Site, id: &str) -> Vec<usize> {
    let path = format!("/collection/v1/collection/{id}");
    let found = ok_json(call(site, Method::GET, &path, DEMO_KEY).send().unwrap());
    let number = |uri: &Value| uri.as_str()?.rsplit("/i").next()?.parse().ok();
    let found: Option<Vec<usize>> =
        found["content"].as_array().unwrap().iter().map(number).collect();
    found.expect("numbers")
}

/// Counters in a profile, which one client increments until a response is missing. The client repeats that write
/// until it is acknowledged, and then switches to another counter.
#[derive(Default)]
pub struct Profile {
    pub written: u64,
    doubtful: Option<u64>,
    /// Abandoned counters, with their values.
    left: Vec<u64>,
}

impl Profile {
    pub fn step(&mut self, site: &impl Site) -> Result<(), Doubt> {
        let again = self.doubtful;
        let next = again.unwrap_or(self.written + 1);
        self.doubtful = Some(next);
        let name = format!("count{}", self.left.len());
        let (path, body) = (format!("/user/v1/profile/{name}"), json!({ name: next }));
        done(site, call_with(site, (Method::PUT, &path), DEMO_KEY, &body))?;
        (self.written, self.doubtful) = (next, None);
        if again.is_some() {
            self.left.push(next);
            self.written = 0;
        }
        Ok(())
    }

    pub fn resolve_doubt(&mut self, site: &impl Site) -> Result<(), Doubt> {
        if self.doubtful.is_some() { self.step(site) } else { Ok(()) }
    }

    pub fn check(&mut self, site: &impl Site) {
        let path = "/user/v1/profile";
        let found = ok_json(call(site, Method::GET, path, DEMO_KEY).send().unwrap());
        let count = |at: usize| found[format!("count{at}")].as_u64().unwrap_or_default();
        for (at, left) in self.left.iter().enumerate() {
            assert_eq!(count(at), *left, "count{at}");
        }
        let now = count(self.left.len());
        let known = now == self.written || Some(now) == self.doubtful.take();
        assert!(known, "{now}, expected {}", self.written);
        self.written = now;
    }

    fn count(&self) -> u64 {
        self.written + self.left.iter().sum::<u64>()
    }
}

/// The records of all clients.
pub struct Ledger {
    pub items: Items,
    pub purchases: Purchases,
    pub tokens: Tokens,
    pub collected: Collected,
    pub profile: Profile,
    pub seen: ReceivedItems,
    pub stream: String,
    pub random: Random,
}

impl Ledger {
    pub fn begin(site: &impl Site, seed: u64) -> Self {
        let mut collected = Collected::default();
        assert!(collected.begin(site).is_ok());
        Self {
            items: Items::default(),
            purchases: Purchases::default(),
            tokens: Tokens::default(),
            collected,
            profile: Profile::default(),
            seen: ReceivedItems::default(),
            stream: create_stream(site, "isbrytare"),
            random: Random(seed),
        }
    }

    /// Checks everything that can be checked quickly.
    pub fn check(&mut self, site: &impl Site) {
        self.collected.check(site);
        self.profile.check(site);
        self.tokens.check(site);
        let newest = self.items.newest();
        for number in newest.iter().take(3) {
            self.items.check_picture(site, *number);
        }
        self.purchases.check(site);
    }

    /// Checks everything, at the end. `changes` returns how often items were ingested that were ingested more than
    /// once.
    pub fn audit(&mut self, site: &impl Site, changes: impl Fn() -> BTreeMap<String, u32>) {
        self.check(site);
        self.tokens.check_refreshes(site);
        let doubtful = self.items.doubtful_there(site);
        // One more item, queued behind all others.
        let last = self.items.next.load(Ordering::Relaxed);
        assert!(self.items.send(site).is_ok());
        self.seen.poll_until(site, &self.stream, &format!("i{last}"));
        let there = self.items.check(site);
        let changes = changes();
        for number in 0..=last {
            let id = format!("i{number}");
            let times = self.seen.whole.get(&id).copied().unwrap_or_default();
            let acknowledged = self.items.there.lock().unwrap().contains(&number);
            let is_doubted = self.seen.doubtful.contains(&id);
            let must = acknowledged || doubtful.contains(&number);
            let least = u32::from(must && !is_doubted);
            let most = if there.contains(&number) { *changes.get(&id).unwrap_or(&1) } else { 0 };
            assert!(
                least <= times && times <= most,
                "{id} came {times} times, not {least} to {most}"
            );
        }
        assert!(self.is_load(), "{:?} are no load", self.kinds());
    }

    /// The number of completed operations of each kind.
    pub fn kinds(&self) -> BTreeMap<&'static str, usize> {
        BTreeMap::from([
            ("photographs", self.items.there.lock().unwrap().len()),
            ("purchases", self.purchases.paid.len()),
            ("tokens", self.tokens.ended.len()),
            ("profiles", usize::try_from(self.profile.count()).unwrap()),
        ])
    }

    pub fn is_load(&self) -> bool {
        self.kinds().values().all(|count| *count > 5)
    }
}
