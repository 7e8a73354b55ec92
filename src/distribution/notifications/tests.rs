//! Matching, streams and scheduled mails over a real database, with a controlled clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, ToSpan};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::access::auth::{HashLimits, PresentedCredentials};
use crate::access::orders::Orders;
use crate::access::users::{self, PASSWORD_LINK_KEY};
use crate::archive::content::DocumentForm;
use crate::cluster::clock_guard::ClockGuard;
use crate::cluster::membership::ClusterNode;
use crate::distribution::recipients::RecipientSettings;
use crate::media::original::OriginalStore;
use crate::media::{self, DecodeLimits};
use crate::runtime::compute::ComputePool;
use crate::runtime::config::{self, SettingSources};
use crate::runtime::fair_queue::QueuePlaces;
use crate::runtime::slots::SlotLimits;
use crate::storage::blobs::{BlobStore, DerivedStore};
use crate::storage::database::{NewItem, WriteTx};
use crate::storage::search::SearchEngine;
use crate::transport::{MailAddress, MailSettings, MailTransport, TransportTimeouts};
use model::account::{AgreementId, MessageContent};
use model::item::{Document, DocumentLayout, MediaLinks};
use model::{ContentHash, ItemKey};

const SCENE: &str = "
INSERT INTO organizations (organization_id, address) VALUES (1, '{}');
INSERT INTO products VALUES (10, 'A', NULL, NULL), (11, 'B', NULL, NULL);
INSERT INTO agreements (agreement_id, organization_id, type, super, name, description,
    expires_ms, prepaid_total, prepaid_remaining) VALUES (1, 1, 'Subscription', FALSE, NULL, NULL, NULL, NULL, NULL),
    (2, 1, 'Subscription', FALSE, NULL, NULL, NULL, NULL, NULL),
    (3, 1, 'Subscription', TRUE, NULL, NULL, 4000000000000, NULL, NULL);
INSERT INTO agreement_products VALUES (1, 10), (2, 11);
";

/// A service without a listener.
pub(super) struct Scene {
    pub(super) notifications: Notifications,
    db: Db,
    auth: Auth,
    asks: Option<StreamCommands>,
    dir: TempDir,
}

pub(super) fn start() -> Timestamp {
    "2026-03-02T08:00:00Z".parse().unwrap()
}

pub(super) fn after(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

fn limits() -> HashLimits {
    HashLimits {
        memory_kib: 8,
        iterations: 1,
        workers: 1,
        queue: 1,
        queue_per_address: 1,
        failures_per_user: 1,
        failures_per_user_total: 100,
        failures_per_address: 1,
        window: Duration::from_secs(1),
    }
}

/// Limits on concurrent polls in a test.
const POLLS: SlotLimits = SlotLimits { all: 10, client: 10, known_share: 0.0 };

fn services(
    dir: &std::path::Path,
    db: &Db,
    auth: &Auth,
) -> (NotificationServices, NotificationSettings) {
    let flags = vec![("data.dir".to_owned(), dir.to_str().unwrap().to_owned())];
    let config = config::load(&SettingSources { file: None, flags }).unwrap().0;
    let store = BlobStore::open(&config.originals_dir()).unwrap();
    let derived = DerivedStore::open(&dir.join("derived")).unwrap();
    let header = DecodeLimits::from_config(&config).header;
    let originals = OriginalStore::new(store, derived, header);
    let compute = ComputePool::start(1, QueuePlaces::new(8, 1.0), 1 << 28).unwrap();
    let orders = Orders::new(db.clone(), Some(auth.clone()));
    let settings = media::MediaSettings::from_config(&config).unwrap();
    let media = Media::start(settings, orders, originals, compute, &dir.join("cache")).unwrap();
    let search = SearchEngine::disabled(db.clone()).unwrap();
    let media::MediaSettings { sizes, rights, .. } = media.settings();
    let content = Content::new(search, *sizes, Arc::clone(rights), POLLS);
    let from = MailAddress::parse("a@b.example").unwrap();
    let transport = MailTransport::Outbox { folder: dir.join("outbox"), is_shared: false };
    let mail = MailSettings {
        transport,
        from,
        domain: "b.example".to_owned(),
        attachments_bytes_max: 1 << 20,
    };
    let node = ClusterNode::start(
        db,
        dir,
        config.server.role,
        crate::cluster::membership::NodeDescription::default(),
        start(),
    )
    .unwrap();
    node.work(start());
    let mailer = Mailer::new(mail, TransportTimeouts::default());
    let limits = RecipientSettings::from_config(&config);
    let services = NotificationServices {
        db: db.clone(),
        content,
        media,
        auth: auth.clone(),
        users: users(auth),
        recipients: Recipients::new(db.clone(), mailer.clone(), limits),
        mailer,
        mail_templates: MailTemplates::compile(None).unwrap(),
        push: Push::from_config(&config).unwrap(),
        guard: ClusterGuard::new(node, ClockGuard::start(db, None)),
    };
    (services, NotificationSettings::from_config(&config))
}

fn users(auth: &Auth) -> Users {
    let signer = IdSigner::open(auth.db(), PASSWORD_LINK_KEY).unwrap();
    let settings =
        users::UsersSettings { site_url: "https://site.test".to_owned(), sends_mails: true };
    Users::new(auth.clone(), signer, settings)
}

impl Scene {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        db.write_blocking(|tx| {
            tx.run_sql(SCENE)?;
            for (user, roles, agreements) in [
                (1, "[]", &[1][..]),
                (2, "[]", &[1, 2]),
                (3, "[\"ROLE_PROVIDER\"]", &[]),
                (4, "[]", &[3]),
            ] {
                let hash = ContentHash::new(format!("key{user}").as_bytes());
                tx.run_sql(&format!(
                    "INSERT INTO users (user_id, organization_id, user_name, roles, admin,
                         mediebank, active, service_account, created_ms)
                     VALUES ({user}, 1, 'user{user}', '{roles}', FALSE, FALSE, TRUE, FALSE, 0);
                     INSERT INTO api_keys (key_hash, user_id, name, created_ms)
                     VALUES ('{hash}', {user}, '', 0);"
                ))?;
                for agreement in agreements {
                    tx.run_sql(&format!(
                        "INSERT INTO user_agreements VALUES ({user}, {agreement})"
                    ))?;
                }
            }
            Ok(())
        })
        .unwrap();
        Self::open(dir, db)
    }

    fn open(dir: TempDir, db: Db) -> Self {
        let auth = Auth::start(db.clone(), limits()).unwrap();
        let (services, settings) = services(dir.path(), &db, &auth);
        let (notifications, asks) = Notifications::start(services, settings, start()).unwrap();
        Self { notifications, db, auth, asks: Some(asks), dir }
    }

    /// Starts executing stream commands.
    pub(super) fn serve(&mut self, now: fn() -> Timestamp) {
        let asks = self.asks.take().unwrap();
        tokio::spawn(self.notifications.serve_streams(asks, now));
    }

    /// Reopens the database as a restarted process does.
    fn again(self) -> Self {
        let incarnation = self.notifications.inner.services.guard.node().incarnation();
        self.db.write_blocking(move |tx| tx.end_incarnation(incarnation, start())).unwrap();
        let Self { db, dir, .. } = self;
        Self::open(dir, db)
    }

    pub(super) async fn caller(&self, user: i64) -> Arc<Principal> {
        let key = format!("key{user}");
        self.auth.find(PresentedCredentials::ApiKey(&key), start()).await.unwrap().unwrap()
    }

    pub(super) async fn make(
        &self,
        user: i64,
        draft: NotificationDraft,
        now: Timestamp,
    ) -> Notification {
        let caller = self.caller(user).await;
        self.notifications.create(&caller, draft, now).await.unwrap()
    }

    pub(super) async fn stream(&self, user: i64, q: &str) -> Notification {
        self.make(user, stream(q), start()).await
    }

    /// Writes an item with products, as ingest does.
    pub(super) fn write(&self, id: &str, more: &Value, at: Timestamp) {
        let key: ItemKey = format!("text/{id}").parse().unwrap();
        let mut fields = json!({
            "headline": "isbrytare i hamn",
            "product": [{ "code": "A" }],
            "versioncreated": at.to_string(),
        });
        for (name, value) in more.as_object().unwrap() {
            fields[name] = value.clone();
        }
        let is_newly_indexed = fields["fresh"] != json!(false);
        fields.as_object_mut().unwrap().remove("fresh");
        let document = Document::parse(&key, &fields.to_string()).unwrap();
        let item = NewItem {
            document: document.to_stored(),
            assets: None,
            pub_status: document.pub_status(),
            order_time: at,
            embargoed: document.text("embargoed").map(|text| text.parse().unwrap()),
            stored: at,
            is_newly_indexed,
            key,
        };
        self.db.write_blocking(move |tx| tx.write_item(&item)).unwrap();
    }

    /// Does all work that is due.
    pub(super) fn step(&self, now: Timestamp) {
        while self.notifications.step(now).unwrap() {}
    }

    /// Returns the queue of a notification, in order.
    pub(super) fn queue(&self, of: &Notification) -> Vec<String> {
        let number = of.number;
        let found = self.db.read_blocking(move |tx| tx.queued_items(number, 100_000)).unwrap();
        found.into_iter().map(|item| item.key.id.to_string()).collect()
    }

    /// The items of every mail in the outbox, in the order in which they were written.
    pub(super) fn mails(&self) -> Vec<Vec<String>> {
        let found = self.db.read_blocking(|tx| tx.list_messages(None, 100_000)).unwrap();
        let items = |message: model::account::OutboxMessage| match message.content {
            MessageContent::Digest { items, more: 0 } => items,
            MessageContent::Digest { .. }
            | MessageContent::DeviceMoved { .. }
            | MessageContent::SetPassword { .. }
            | MessageContent::PasswordChanged
            | MessageContent::KeyMade { .. }
            | MessageContent::NewBrowser { .. }
            | MessageContent::Push { .. }
            | MessageContent::Item { .. } => panic!("no whole digest"),
        };
        found.into_iter().map(items).collect()
    }
}

pub(super) fn question(q: &str) -> SavedQuery {
    SavedQuery { q: Some(q.to_owned()), ..SavedQuery::default() }
}

fn stream(q: &str) -> NotificationDraft {
    NotificationDraft {
        media_type: None,
        title: String::new(),
        question: question(q),
        method: NotificationMethod::Stream,
    }
}

pub(super) fn scheduled(schedule: &str, timezone: &str) -> NotificationDraft {
    let method = NotificationMethod::ScheduledEmail {
        email: "desk@b.example".to_owned(),
        schedule: schedule.to_owned(),
        timezone: timezone.to_owned(),
    };
    NotificationDraft {
        media_type: None,
        title: "Hamnar".to_owned(),
        question: question("hamn"),
        method,
    }
}

pub(super) fn form() -> DocumentForm {
    DocumentForm { layout: DocumentLayout::Bare, links: MediaLinks::new("http://h".to_owned()) }
}

/// The ids of the items in an answer.
pub(super) fn ids(text: &[u8]) -> Vec<String> {
    let body: Value = serde_json::from_slice(text).unwrap();
    let uri = |hit: &Value| hit["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    body["hits"].as_array().unwrap().iter().map(uri).collect()
}

pub(super) fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

const AT_ONCE: Duration = Duration::from_millis(1);

impl Scene {
    /// Claims items of a stream without waiting; they are then in flight.
    pub(super) async fn take(
        &self,
        user: i64,
        of: &Notification,
        size: usize,
    ) -> Result<Option<StreamResponse>> {
        let caller = self.caller(user).await;
        let stop = std::future::pending();
        self.notifications.read_stream(&caller, of.id, size, &form(), AT_ONCE, stop).await
    }

    /// Reads a stream once without waiting and acknowledges the items.
    async fn read(&self, user: i64, of: &Notification, size: usize) -> Result<Vec<String>> {
        let Some(handed) = self.take(user, of, size).await? else { return Ok(Vec::new()) };
        handed.acknowledgement.acknowledge().await?;
        Ok(ids(&handed.text))
    }
}

#[test]
fn an_item_goes_to_those_whose_question_and_agreements_it_meets() {
    let scene = Scene::new();
    run(async {
        let own = scene.stream(1, "isbrytare").await;
        let other_words = scene.stream(1, "segelbåt").await;
        let none = scene
            .make(
                2,
                NotificationDraft {
                    question: SavedQuery { agr: vec![AgreementId(2)], ..question("hamn") },
                    ..stream("")
                },
                start(),
            )
            .await;
        let provider = scene.stream(3, "").await;
        let everything = scene.stream(4, "").await;
        let images = NotificationDraft { media_type: Some(MediaType::Image), ..stream("") };
        let images = scene.make(4, images, start()).await;
        let excluded = NotificationDraft {
            question: SavedQuery { p: vec!["-A".to_owned()], ..SavedQuery::default() },
            ..stream("")
        };
        let excluded = scene.make(4, excluded, start()).await;
        scene.write("a", &json!({}), start());
        scene.step(start());
        for (of, expected) in [(&own, 1), (&other_words, 0), (&none, 0), (&provider, 1)] {
            assert_eq!(scene.queue(of).len(), expected, "{:?}", of.query);
        }
        for (of, expected) in [(&everything, 1), (&images, 0), (&excluded, 0)] {
            assert_eq!(scene.queue(of).len(), expected, "{:?}", of.query);
        }
        let counted = |max| scene.db.read_blocking(move |tx| tx.count_queued_items(max)).unwrap();
        assert_eq!((counted(2), counted(9)), (2, 3));
        // Changes of users and notifications take effect with the next item.
        scene.auth.write(|tx| tx.set_user_active("user3", false, start())).await.unwrap();
        let caller = scene.caller(1).await;
        let draft = NotificationDraft { title: "x".to_owned(), ..stream("segelbåt") };
        scene.notifications.replace(&caller, own.id, draft, start()).await.unwrap();
        let caller = scene.caller(4).await;
        scene.notifications.delete(&caller, everything.id).await.unwrap();
        scene.write("b", &json!({}), start());
        scene.step(start());
        assert_eq!(scene.queue(&own), ["a"]);
        assert_eq!(scene.queue(&provider), ["a"]);
        assert!(scene.queue(&everything).is_empty());
        // An agreement that has expired covers nothing.
        scene.write("c", &json!({ "product": [] }), start());
        let late = Timestamp::from_millisecond(4_000_000_000_000).unwrap();
        let again = scene.make(4, stream(""), start()).await;
        scene.write("d", &json!({ "product": [] }), start());
        scene.step(late);
        assert!(scene.queue(&again).is_empty());
    });
}

#[test]
fn an_item_is_new_once_for_each_version_that_rises() {
    let mut scene = Scene::new();
    run(async {
        scene.serve(start);
        let of = scene.stream(1, "hamn").await;
        scene.write("a", &json!({}), start());
        // Sent again with the same version, before and after matching.
        scene.write("a", &json!({ "fresh": false }), start());
        scene.step(start());
        scene.write("a", &json!({ "fresh": false }), start());
        scene.step(start());
        assert_eq!(scene.read(1, &of, 10).await.unwrap(), ["a"]);
        assert!(scene.read(1, &of, 10).await.unwrap().is_empty());
        // Two versions between two runs are one item, in its present state.
        scene.write("a", &json!({ "version": "2" }), after(1));
        scene.write("a", &json!({ "version": "3" }), after(2));
        scene.step(after(2));
        assert_eq!(scene.read(1, &of, 10).await.unwrap(), ["a"]);
        assert!(scene.read(1, &of, 10).await.unwrap().is_empty());
    });
}

#[test]
fn a_newer_version_of_an_item_under_way_is_not_lost() {
    let mut scene = Scene::new();
    run(async {
        scene.serve(start);
        let of = scene.stream(1, "hamn").await;
        scene.write("a", &json!({}), start());
        scene.step(start());
        let taken = scene.take(1, &of, 10).await.unwrap().unwrap();
        assert_eq!(ids(&taken.text), ["a"]);
        scene.write("a", &json!({ "version": "2" }), after(1));
        scene.step(after(1));
        taken.acknowledgement.acknowledge().await.unwrap();
        assert_eq!(scene.read(1, &of, 10).await.unwrap(), ["a"]);
        assert!(scene.read(1, &of, 10).await.unwrap().is_empty());
    });
}

#[test]
fn a_version_that_is_read_before_it_is_matched_is_given_once() {
    let mut scene = Scene::new();
    run(async {
        scene.serve(start);
        let of = scene.stream(1, "hamn").await;
        scene.write("a", &json!({}), start());
        scene.step(start());
        scene.write("a", &json!({ "version": "2" }), after(1));
        assert!(scene.read(1, &of, 10).await.unwrap().is_empty());
        scene.step(after(1));
        assert_eq!(scene.read(1, &of, 10).await.unwrap(), ["a"]);
        scene.step(after(2));
        assert!(scene.read(1, &of, 10).await.unwrap().is_empty());
    });
}

#[test]
fn an_item_that_comes_back_while_an_answer_is_under_way_is_not_lost() {
    let mut scene = Scene::new();
    run(async {
        scene.serve(start);
        let of = scene.stream(1, "hamn").await;
        scene.write("a", &json!({}), start());
        scene.write("b", &json!({}), start());
        scene.step(start());
        scene.write("a", &json!({ "pubstatus": "canceled", "fresh": false }), after(1));
        let taken = scene.take(1, &of, 10).await.unwrap().unwrap();
        assert_eq!(ids(&taken.text), ["b"]);
        scene.write("a", &json!({ "version": "2" }), after(2));
        scene.step(after(2));
        taken.acknowledgement.acknowledge().await.unwrap();
        assert_eq!(scene.read(1, &of, 10).await.unwrap(), ["a"]);
    });
}

#[test]
fn what_the_agreements_cover_no_more_is_not_given() {
    let mut scene = Scene::new();
    run(async {
        scene.serve(start);
        let of = scene.stream(1, "hamn").await;
        scene.write("a", &json!({}), start());
        scene.write("b", &json!({}), start());
        scene.step(start());
        // The item moved to a product that the user does not have.
        let more = json!({ "product": [{ "code": "B" }], "fresh": false });
        scene.write("a", &more, after(1));
        assert_eq!(scene.read(1, &of, 10).await.unwrap(), ["b"]);
    });
}

#[test]
fn items_of_an_answer_that_did_not_get_through_go_back_to_their_places() {
    let mut scene = Scene::new();
    run(async {
        scene.serve(start);
        let of = scene.stream(1, "hamn").await;
        for id in ["a", "b", "c"] {
            scene.write(id, &json!({}), start());
        }
        scene.step(start());
        let first = scene.take(1, &of, 2).await.unwrap().unwrap();
        // Another reader gets the remaining items, not those in flight.
        assert_eq!(scene.read(1, &of, 10).await.unwrap(), ["c"]);
        drop(first);
        assert_eq!(scene.read(1, &of, 1).await.unwrap(), ["a"]);
        assert_eq!(scene.queue(&of), ["b"]);
        // Items in flight when the process ended are available to the next one.
        let lost = scene.take(1, &of, 2).await.unwrap().unwrap();
        let mut scene = scene.again();
        scene.serve(start);
        assert_eq!(scene.read(1, &of, 10).await.unwrap(), ["b"]);
        drop(lost);
    });
}

#[test]
fn fifty_readers_get_every_item_once() {
    let mut scene = Scene::new();
    run(async {
        scene.serve(start);
        let of = scene.stream(1, "hamn").await;
        let caller = scene.caller(1).await;
        let (id, left) = (of.id, Arc::new(AtomicI64::new(200)));
        let read = |notifications: Notifications, caller: Arc<Principal>, left: Arc<AtomicI64>| async move {
            let (mut got, mut empty) = (Vec::new(), 0);
            // A reader that gets nothing polls again while items are missing.
            while left.load(Ordering::SeqCst) > 0 && empty < 60 {
                let (wait, stop) = (Duration::from_secs(1), std::future::pending());
                let found = notifications.read_stream(&caller, id, 3, &form(), wait, stop).await;
                let Some(handed) = found.unwrap() else {
                    empty += 1;
                    continue;
                };
                handed.acknowledgement.acknowledge().await.unwrap();
                let items = ids(&handed.text);
                left.fetch_sub(i64::try_from(items.len()).unwrap(), Ordering::SeqCst);
                got.extend(items);
            }
            got
        };
        let readers: Vec<_> = (0..50)
            .map(|_| {
                let notifications = scene.notifications.clone();
                tokio::spawn(read(notifications, caller.clone(), Arc::clone(&left)))
            })
            .collect();
        let expected: Vec<String> = (0..200).map(|number| format!("i{number:03}")).collect();
        for id in &expected {
            scene.write(id, &json!({}), start());
            scene.notifications.step(start()).unwrap();
        }
        let mut got = Vec::new();
        for reader in readers {
            got.extend(reader.await.unwrap());
        }
        got.sort();
        assert_eq!(got, expected);
    });
}

/// Records heartbeats of the service from one second to another.
fn live(scene: &Scene, from: i64, to: i64) {
    for second in (from..to).step_by(10) {
        scene.notifications.sweep(after(second), true).unwrap();
    }
}

#[test]
fn a_stream_expires_five_minutes_after_its_last_use_and_waiting_is_use() {
    static NOW: AtomicI64 = AtomicI64::new(0);
    fn now() -> Timestamp {
        after(NOW.load(Ordering::SeqCst))
    }
    let mut scene = Scene::new();
    run(async {
        scene.serve(now);
        let of = scene.stream(1, "hamn").await;
        // The commands that a reader leaves behind are executed before those of the next one.
        let other = scene.stream(2, "hamn").await;
        NOW.store(299, Ordering::SeqCst);
        assert!(scene.read(1, &of, 1).await.unwrap().is_empty());
        assert!(scene.read(2, &other, 1).await.unwrap().is_empty());
        live(&scene, 299, 299 + 299);
        NOW.store(299 + 299, Ordering::SeqCst);
        assert!(scene.read(1, &of, 1).await.unwrap().is_empty());
        // A replacement counts as use.
        let caller = scene.caller(1).await;
        let draft = NotificationDraft { title: "x".to_owned(), ..stream("hamn") };
        scene.notifications.replace(&caller, of.id, draft.clone(), after(800)).await.unwrap();
        // Time without a heartbeat is a clock jump and expires no stream.
        live(&scene, 299 + 299, 800 + 299);
        NOW.store(800 + 299, Ordering::SeqCst);
        assert!(scene.read(1, &of, 1).await.unwrap().is_empty());
        assert_eq!(scene.read(2, &other, 1).await.unwrap_err().kind(), ErrorKind::NotFound);
        live(&scene, 1099, 1099 + 300);
        NOW.store(1099 + 301, Ordering::SeqCst);
        let gone = scene.read(1, &of, 1).await.unwrap_err();
        assert_eq!(gone.details()[0].error_code, "stream_not_found");
        let gone = scene.notifications.replace(&caller, of.id, draft, now()).await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        assert!(scene.notifications.list(&caller, None, now()).await.unwrap().is_empty());
        // Its time is over, but no sweep has removed it yet.
        scene.notifications.delete(&caller, of.id).await.unwrap();
        // The sweeps of the heartbeats have removed the other.
        let left = |id| scene.db.read_blocking(move |tx| tx.find_notification(id)).unwrap();
        assert_eq!((left(of.id), left(other.id)), (None, None));
    });
}

#[test]
fn time_in_which_the_service_was_down_does_not_expire_a_stream() {
    let mut scene = Scene::new();
    run(async {
        let of = scene.stream(1, "hamn").await;
        scene.write("a", &json!({}), start());
        scene.step(start());
        scene.notifications.sweep(start(), true).unwrap();
        let late = start() + 9.hours();
        scene
            .db
            .write_blocking(move |tx| notification_matcher::record_heartbeat(tx, late))
            .unwrap();
        scene.serve(|| start() + 9.hours());
        assert_eq!(scene.read(1, &of, 1).await.unwrap(), ["a"]);
    });
}

#[test]
fn an_item_under_embargo_is_matched_when_that_ends() {
    let scene = Scene::new();
    run(async {
        let early = scene.stream(1, "hamn").await;
        scene.write("a", &json!({ "embargoed": after(60).to_string() }), start());
        scene.write("b", &json!({ "embargoed": after(60).to_string() }), start());
        scene.write("c", &json!({ "embargoed": after(60).to_string() }), start());
        scene.step(start());
        // Corrected under embargo, postponed, and released early.
        let more = json!({ "embargoed": after(60).to_string(), "fresh": false });
        scene.write("a", &more, after(1));
        scene.write("b", &json!({ "embargoed": after(90).to_string(), "version": "2" }), after(1));
        let late = scene.stream(1, "hamn").await;
        scene.write("c", &json!({ "fresh": false }), after(2));
        scene.step(after(2));
        assert_eq!(scene.queue(&early), ["c"]);
        scene.step(after(59));
        assert_eq!(scene.queue(&early), ["c"]);
        scene.step(after(60));
        assert_eq!(scene.queue(&early), ["c", "a"]);
        scene.step(after(90));
        scene.step(after(1000));
        assert_eq!(scene.queue(&early), ["c", "a", "b"]);
        // They are also new to a notification that was created in between.
        assert_eq!(scene.queue(&late), ["c", "a", "b"]);
    });
}

#[test]
fn what_is_withdrawn_before_it_is_read_is_not_given() {
    let mut scene = Scene::new();
    run(async {
        scene.serve(start);
        let of = scene.stream(1, "hamn").await;
        scene.write("a", &json!({}), start());
        scene.write("b", &json!({}), start());
        scene.step(start());
        scene.write("a", &json!({ "pubstatus": "canceled", "fresh": false }), after(1));
        assert_eq!(scene.read(1, &of, 1).await.unwrap(), ["b"]);
        assert!(scene.queue(&of).is_empty());
    });
}

#[test]
fn the_oldest_items_fall_out_of_a_full_queue() {
    let scene = Scene::new();
    run(async {
        let of = scene.stream(1, "hamn").await;
        let number = of.number;
        let fill = move |tx: &WriteTx<'_>| {
            for item in 0..crate::runtime::limits::QUEUED_ITEMS_MAX {
                tx.queue_item(number, &format!("text/q{item}").parse().unwrap(), 1, 1)?;
            }
            Ok(())
        };
        scene.db.write_blocking(fill).unwrap();
        scene.write("a", &json!({}), start());
        scene.write("b", &json!({}), start());
        scene.step(start());
        let queue = scene.queue(&of);
        assert_eq!(queue.len(), crate::runtime::limits::QUEUED_ITEMS_MAX);
        assert_eq!((queue[0].as_str(), queue.last().unwrap().as_str()), ("q2", "b"));
    });
}

#[test]
fn a_user_has_so_many_notifications_and_no_more() {
    let scene = Scene::new();
    run(async {
        for _ in 0..NOTIFICATIONS_PER_USER_MAX {
            scene.stream(1, "hamn").await;
        }
        let caller = scene.caller(1).await;
        let full = scene.notifications.create(&caller, stream("hamn"), start()).await.unwrap_err();
        assert_eq!(full.kind(), ErrorKind::Overloaded);
        scene.stream(2, "hamn").await;
    });
}
