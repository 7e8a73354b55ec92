//! Tests of the section over a scratch database: ownership, contents and times of modification.

use std::{sync::Arc, time::Duration};

use tempfile::TempDir;

use super::*;
use crate::access::auth::{Auth, HashLimits, PresentedCredentials};
use crate::runtime::limits::COLLECTION_REMOVED_MAX;
use crate::storage::database::{LostItem, NewItem};
use model::ContentHash;
use model::item::Document;

const SEED: &str = "
INSERT INTO users (user_id, user_name, roles, admin, mediebank, active, service_account,
    created_ms) VALUES (1, 'owner', '[]', FALSE, FALSE, TRUE, FALSE, 0), (2, 'other', '[]', FALSE, FALSE, TRUE, FALSE, 0);
";

struct Scene {
    collections: Collections,
    auth: Auth,
    db: Db,
    _dir: TempDir,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::scratch(dir.path()).unwrap();
    db.write_blocking(|tx| {
        tx.run_sql(SEED)?;
        for user in [1, 2] {
            let hash = ContentHash::new(format!("key {user}").as_bytes());
            tx.run_sql(&format!(
                "INSERT INTO api_keys (key_hash, user_id, name, created_ms)
                 VALUES ('{hash}', {user}, '', 0)"
            ))?;
        }
        Ok(())
    })
    .unwrap();
    let limits = HashLimits {
        memory_kib: 8,
        iterations: 1,
        workers: 1,
        queue: 1,
        queue_per_address: 1,
        failures_per_user: 1,
        failures_per_user_total: 100,
        failures_per_address: 1,
        window: Duration::from_secs(1),
    };
    let auth = Auth::start(db.clone(), limits).unwrap();
    Scene { collections: Collections::new(db.clone()), auth, db, _dir: dir }
}

impl Scene {
    async fn user(&self, number: i64) -> Arc<Principal> {
        let key = format!("key {number}");
        self.auth.find(PresentedCredentials::ApiKey(&key), at(0)).await.unwrap().unwrap()
    }

    /// Writes the item `image/<id>` with the properties `document`.
    async fn write(&self, id: &str, document: &str, now: Timestamp) {
        let key = key(id);
        let parsed = Document::from_stored(document).unwrap();
        let item = NewItem {
            key,
            document: document.to_owned(),
            assets: None,
            pub_status: parsed.pub_status(),
            order_time: now,
            embargoed: None,
            stored: now,
            is_newly_indexed: true,
        };
        self.db.write(move |tx| tx.write_item(&item)).await.unwrap();
    }

    /// A collection of the owner with the items `a`, `b` and `c`, created at 0 and filled at 1.
    async fn filled(&self) -> Uuid {
        for id in ["a", "b", "c"] {
            self.write(id, &format!(r#"{{"headline":"Item {id}"}}"#), at(0)).await;
        }
        let owner = self.user(1).await;
        let made = self.collections.create(&owner, draft("one"), at(0)).await.unwrap();
        let id = made.head.id;
        self.collections.add(&owner, id, keys(&["a", "b", "c"]), at(1)).await.unwrap().unwrap();
        id
    }

    async fn look(&self, id: Uuid) -> Collection {
        let owner = self.user(1).await;
        self.collections.peek(&owner, id).await.unwrap().unwrap()
    }
}

fn key(id: &str) -> ItemKey {
    format!("image/{id}").parse().unwrap()
}

fn keys(ids: &[&str]) -> Vec<ItemKey> {
    ids.iter().map(|id| key(id)).collect()
}

fn draft(name: &str) -> CollectionBody {
    CollectionBody { name: name.to_owned(), public: false }
}

fn renamed(name: &str) -> CollectionChange {
    CollectionChange { name: Some(name.to_owned()), ..CollectionChange::default() }
}

#[tokio::test]
async fn a_new_collection_is_empty_not_public_and_unchanged() {
    let scene = scene();
    let owner = scene.user(1).await;
    let made = scene.collections.create(&owner, draft("one"), at(7)).await.unwrap();
    assert_eq!((made.head.name.as_str(), made.head.owner_name.as_str()), ("one", "owner"));
    assert!(!made.head.public && made.content.is_empty() && made.removed.is_empty());
    let times = (made.head.created, made.head.accessed, made.head.modified);
    assert_eq!(times, (at(7), at(7), None));
    assert_eq!(scene.collections.list(&owner).await.unwrap(), [made]);
    let other = scene.user(2).await;
    assert_eq!(scene.collections.list(&other).await.unwrap(), []);
}

#[tokio::test]
async fn a_user_has_so_many_collections_and_no_more() {
    let scene = scene();
    let (owner, other) = (scene.user(1).await, scene.user(2).await);
    for _ in 0..COLLECTIONS_PER_USER_MAX {
        scene.collections.create(&owner, draft("x"), at(0)).await.unwrap();
    }
    let refused = scene.collections.create(&owner, draft("x"), at(0)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.message().contains(&COLLECTIONS_PER_USER_MAX.to_string()), "{refused}");
    scene.collections.create(&other, draft("x"), at(0)).await.unwrap();
}

#[tokio::test]
async fn items_come_to_the_end_once_and_what_is_not_there_stays_out() {
    let scene = scene();
    let owner = scene.user(1).await;
    let id = scene.filled().await;
    scene.write("d", "{}", at(2)).await;
    scene.write("gone", r#"{"pubstatus":"canceled"}"#, at(2)).await;
    let wanted = keys(&["b", "nobody", "gone", "d", "d"]);
    scene.collections.add(&owner, id, wanted, at(3)).await.unwrap().unwrap();
    let found = scene.look(id).await;
    assert_eq!(found.content, keys(&["a", "b", "c", "d"]));
    assert_eq!(found.head.modified, Some(at(3)));
    // An update without effect leaves the modification time unchanged.
    scene.collections.add(&owner, id, keys(&["a", "nobody"]), at(4)).await.unwrap().unwrap();
    scene.collections.remove(&owner, id, keys(&["nobody"]), at(4)).await.unwrap().unwrap();
    assert_eq!(scene.look(id).await, found);
    scene.collections.remove(&owner, id, keys(&["b", "nobody"]), at(5)).await.unwrap().unwrap();
    let found = scene.look(id).await;
    assert_eq!((found.content, found.head.modified), (keys(&["a", "c", "d"]), Some(at(5))));
}

#[tokio::test]
async fn a_collection_that_would_have_too_many_items_gets_none_of_them() {
    let scene = scene();
    let owner = scene.user(1).await;
    let made = scene.collections.create(&owner, draft("big"), at(0)).await.unwrap();
    let id = made.head.id;
    let all: Vec<String> = (0..=COLLECTION_ITEMS_MAX).map(|number| format!("n{number}")).collect();
    for one in &all {
        scene.write(one, "{}", at(0)).await;
    }
    let all: Vec<ItemKey> = all.iter().map(|one| key(one)).collect();
    let most = all[..COLLECTION_ITEMS_MAX - 1].to_vec();
    scene.collections.add(&owner, id, most.clone(), at(1)).await.unwrap().unwrap();
    let refused = scene.collections.add(&owner, id, all.clone(), at(2)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.message().contains(&COLLECTION_ITEMS_MAX.to_string()), "{refused}");
    assert_eq!(scene.look(id).await.content, most);
    // The last free position can be used, and a full collection accepts items that it has already.
    let full = all[..COLLECTION_ITEMS_MAX].to_vec();
    scene.collections.add(&owner, id, full.clone(), at(4)).await.unwrap().unwrap();
    scene.collections.add(&owner, id, full.clone(), at(5)).await.unwrap().unwrap();
    assert_eq!(scene.look(id).await.content, full);
}

#[tokio::test]
async fn only_the_owner_changes_a_collection_and_only_a_public_one_is_read_by_others() {
    let scene = scene();
    let (owner, other) = (scene.user(1).await, scene.user(2).await);
    let id = scene.filled().await;
    let sections = &scene.collections;
    assert_eq!(sections.peek(&other, id).await.unwrap(), None);
    let public = CollectionChange { public: Some(true), ..CollectionChange::default() };
    sections.update(&owner, id, public, at(2)).await.unwrap().unwrap();
    let before = sections.peek(&other, id).await.unwrap().unwrap();
    assert_eq!(before.content, keys(&["a", "b", "c"]));
    assert!(sections.update(&other, id, renamed("mine"), at(3)).await.unwrap().is_none());
    assert!(sections.add(&other, id, keys(&["a"]), at(3)).await.unwrap().is_none());
    assert!(sections.remove(&other, id, keys(&["a"]), at(3)).await.unwrap().is_none());
    assert!(sections.delete(&other, id).await.unwrap().is_none());
    assert_eq!(scene.look(id).await, before);
    // Renaming leaves it public.
    let two = sections.update(&owner, id, renamed("two"), at(4)).await.unwrap().unwrap();
    assert!(two.head.public && two.head.modified == Some(at(4)));
    let same = sections.update(&owner, id, renamed("two"), at(5)).await.unwrap().unwrap();
    assert_eq!(same, two);
    sections.delete(&owner, id).await.unwrap().unwrap();
    assert!(sections.delete(&owner, id).await.unwrap().is_none());
    assert_eq!(sections.peek(&owner, id).await.unwrap(), None);
}

#[tokio::test]
async fn an_order_is_kept_by_what_comes_after_it() {
    let scene = scene();
    let owner = scene.user(1).await;
    let id = scene.filled().await;
    let order = |ids: &[&str]| CollectionChange {
        content: Some(ids.iter().map(|id| format!("http://h/media/image/{id}")).collect()),
        ..CollectionChange::default()
    };
    let ordered = |ids: &[&str], second| {
        let (change, sections, owner) = (order(ids), &scene.collections, &owner);
        async move { sections.update(owner, id, change, at(second)).await.unwrap().unwrap() }
    };
    let found = ordered(&["c", "nobody", "a", "c"], 2).await;
    assert_eq!((found.content, found.head.modified), (keys(&["c", "a", "b"]), Some(at(2))));
    let same = ordered(&["c"], 3).await;
    assert_eq!((same.content, same.head.modified), (keys(&["c", "a", "b"]), Some(at(2))));
    scene.write("d", "{}", at(4)).await;
    scene.collections.add(&owner, id, keys(&["d"]), at(4)).await.unwrap().unwrap();
    assert_eq!(scene.look(id).await.content, keys(&["c", "a", "b", "d"]));
    assert_eq!(ordered(&["d", "b"], 6).await.content, keys(&["d", "b", "c", "a"]));
}

#[tokio::test]
async fn an_access_is_written_down_once_a_minute() {
    let scene = scene();
    let owner = scene.user(1).await;
    let id = scene.filled().await;
    let read = async |second| {
        let found = scene.collections.load(&owner, id, at(second)).await.unwrap().unwrap();
        let stored = scene.look(id).await.head.accessed;
        assert_eq!(found.head.accessed, stored);
        stored
    };
    assert_eq!(read(59).await, at(0));
    assert_eq!(read(60).await, at(60));
    assert_eq!(read(100).await, at(60));
    assert_eq!(read(121).await, at(121));
}

#[tokio::test]
async fn what_is_withdrawn_is_remembered_by_its_last_words_and_does_not_come_back() {
    let scene = scene();
    let owner = scene.user(1).await;
    let id = scene.filled().await;
    let words = r#"{"headline":"Last","description_text":"About it"}"#;
    scene.write("b", words, at(2)).await;
    // The cancellation contains no other property.
    scene.write("b", r#"{"pubstatus":"canceled"}"#, at(3)).await;
    scene.write("c", r#"{"pubstatus":"withheld","headline":"Other"}"#, at(4)).await;
    let lost = |id: &str, headline: &str, description: Option<&str>, second| LostItem {
        key: key(id),
        headline: Some(headline.to_owned()),
        description: description.map(str::to_owned),
        at: at(second),
    };
    let expected = [lost("b", "Last", Some("About it"), 3), lost("c", "Other", None, 4)];
    let found = scene.look(id).await;
    assert_eq!((found.content, found.removed.as_slice()), (keys(&["a"]), expected.as_slice()));
    assert_eq!(found.head.modified, Some(at(4)));
    scene.write("b", words, at(6)).await;
    let back = scene.look(id).await;
    assert_eq!((back.content, back.removed.as_slice()), (keys(&["a"]), expected.as_slice()));
    // After it was added again, it is no longer listed as removed.
    scene.collections.add(&owner, id, keys(&["b"]), at(8)).await.unwrap().unwrap();
    let added = scene.look(id).await;
    assert_eq!((added.content, added.removed.as_slice()), (keys(&["a", "b"]), &expected[1..]));
}

#[tokio::test]
async fn an_item_that_has_expired_stays_in_its_collections() {
    let scene = scene();
    let owner = scene.user(1).await;
    let id = scene.filled().await;
    scene.write("b", r#"{"expires":"2020-01-01T00:00:00Z"}"#, at(2)).await;
    assert_eq!(scene.look(id).await.content, keys(&["a", "b", "c"]));
    scene.collections.remove(&owner, id, keys(&["b"]), at(3)).await.unwrap().unwrap();
    scene.collections.add(&owner, id, keys(&["b"]), at(4)).await.unwrap().unwrap();
    let found = scene.look(id).await;
    assert_eq!((found.content, found.removed.len()), (keys(&["a", "c", "b"]), 0));
}

#[tokio::test]
async fn a_collection_remembers_the_last_that_it_lost() {
    let scene = scene();
    let owner = scene.user(1).await;
    let made = scene.collections.create(&owner, draft("one"), at(0)).await.unwrap();
    let id = made.head.id;
    let all: Vec<String> = (0..COLLECTION_REMOVED_MAX + 3).map(|one| format!("n{one}")).collect();
    for one in &all {
        scene.write(one, "{}", at(0)).await;
        scene.collections.add(&owner, id, vec![key(one)], at(1)).await.unwrap().unwrap();
        scene.write(one, r#"{"pubstatus":"canceled"}"#, at(2)).await;
    }
    let removed = scene.look(id).await.removed;
    let expected: Vec<ItemKey> = all[3..].iter().map(|one| key(one)).collect();
    assert_eq!(removed.into_iter().map(|lost| lost.key).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn what_a_user_collected_goes_with_the_user() {
    let scene = scene();
    let id = scene.filled().await;
    scene.write("b", r#"{"pubstatus":"canceled"}"#, at(2)).await;
    scene.db.write(|tx| tx.run_sql("DELETE FROM users WHERE user_id = 2")).await.unwrap();
    assert_eq!(scene.look(id).await.content.len(), 2);
    let count = move |tx: &WriteTx<'_>| {
        tx.run_sql("DELETE FROM users WHERE user_id = 1")?;
        tx.find_collection_head(id)
    };
    assert_eq!(scene.db.write(count).await.unwrap(), None);
}
