//! Tests search through the database: the index follows, waits and is repaired, and replaced versions are in
//! no answer.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use tempfile::TempDir;

use super::*;
use crate::runtime::clock::Stopwatch;
use crate::storage::database::{NewItem, RightsChange};
use metadata::RightsMetadata;
use model::item::{Asset, AssetFile, Document, PictureFile};
use model::{ContentHash, RenditionName, Size};
use query::parse;

/// Maximum time for an index of a few items to be complete.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn start() -> Timestamp {
    "2026-03-02T08:00:00Z".parse().unwrap()
}

/// A data directory with a search engine over it.
pub(super) struct Scene {
    pub(super) db: Db,
    search: Option<SearchEngine>,
    /// The default rights of every picture.
    rights: RightsMetadata,
    pub(super) dir: TempDir,
}

impl Scene {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let rights = RightsMetadata::default();
        let mut scene = Self { db, search: None, rights, dir };
        scene.open();
        scene
    }

    /// Opens the search engine, replacing the previous one.
    pub(super) fn open(&mut self) {
        self.search = None;
        let dir = self.dir.path().join("search");
        let rights = Arc::new(self.rights.clone());
        let analysis = DocumentAnalysis { zone: TimeZone::UTC, rights };
        let settings = IndexSettings { dir, memory_bytes: 100_000, analysis };
        self.search = Some(SearchEngine::start(self.db.clone(), settings).unwrap());
        self.wait_until_whole();
    }

    fn close(&mut self) {
        self.search = None;
    }

    fn search(&self) -> &SearchEngine {
        self.search.as_ref().unwrap()
    }

    pub(super) fn wait_until_whole(&self) {
        let waited = Stopwatch::start();
        while self.search().status() != IndexStatus::Ready {
            assert!(waited.elapsed() < PATIENCE, "{:?}", self.search().status());
            std::thread::yield_now();
        }
    }

    pub(super) fn write(&self, items: Vec<NewItem>) {
        let write = move |tx: &crate::storage::database::WriteTx<'_>| {
            items.iter().try_for_each(|item| tx.write_item(item).map(|_| ()))
        };
        self.db.write_blocking(write).unwrap();
    }

    fn run(&self, sql: &'static str) {
        self.db.write_blocking(move |tx| tx.run_sql(sql)).unwrap();
    }

    pub(super) fn find(&self, request: &SearchCriteria) -> Result<SearchResults> {
        self.find_at(request, start())
    }

    fn find_at(&self, request: &SearchCriteria, now: Timestamp) -> Result<SearchResults> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let preferred = Freshness::Preferred;
        let found = self.search().search(request.clone(), preferred, now, |found, _| Ok(found));
        runtime.block_on(found)
    }

    /// Returns the ids that `query` finds, in the order of storing.
    fn ids(&self, query: &str) -> Vec<String> {
        let request = SearchCriteria { query: parse(query, &TimeZone::UTC).unwrap(), ..all() };
        let mut ids: Vec<_> =
            self.find(&request).unwrap().hits.iter().map(|hit| hit.key.id.to_string()).collect();
        ids.sort_unstable();
        ids
    }

    /// Repeats `query` until it finds `expected`.
    fn wait_for(&self, query: &str, expected: &[&str]) {
        let waited = Stopwatch::start();
        loop {
            self.wait_until_whole();
            let request = SearchCriteria { query: parse(query, &TimeZone::UTC).unwrap(), ..all() };
            let found = self.find(&request);
            let ids = found.map(|found| {
                let mut ids: Vec<_> =
                    found.hits.iter().map(|hit| hit.key.id.to_string()).collect();
                ids.sort_unstable();
                ids
            });
            if ids.as_ref().is_ok_and(|ids| ids == expected) {
                return;
            }
            assert!(waited.elapsed() < PATIENCE, "{query}: {ids:?}, not {expected:?}");
        }
    }
}

pub(super) fn text(id: u32, headline: &str) -> NewItem {
    let key: ItemKey = format!("text/d{id}").parse().unwrap();
    let fields = serde_json::json!({ "headline": headline, "pubstatus": "usable" });
    let document = Document::parse(&key, &fields.to_string()).unwrap();
    NewItem {
        key,
        document: document.to_stored(),
        assets: None,
        pub_status: PubStatus::Usable,
        order_time: start() + SignedDuration::from_hours(i64::from(id)),
        embargoed: None,
        stored: start(),
        is_newly_indexed: true,
    }
}

/// An item with a picture whose file says nothing about its rights.
fn pictured(id: u32) -> NewItem {
    let picture = PictureFile {
        name: RenditionName::NORMAL_HIRES,
        blob: ContentHash::new(b"x"),
        length: 1,
        stored: Size::new(3, 2),
        orientation: 1,
        progressive: false,
        components: 3,
        is_grey: false,
        picture_hash: None,
        rights: RightsMetadata::default(),
        source_rights: RightsMetadata::default(),
    };
    let assets = Some(vec![Asset::own(AssetFile::Picture(picture))]);
    NewItem { assets, ..text(id, "val") }
}

fn withdrawn(id: u32) -> NewItem {
    let mut item = text(id, "");
    item.document = item.document.replace("usable", "canceled");
    item.pub_status = PubStatus::Canceled;
    item
}

/// A search for everything, the oldest first.
pub(super) fn all() -> SearchCriteria {
    SearchCriteria {
        media_type: None,
        query: Query::All,
        facet_values: Vec::new(),
        near_picture: None,
        products: Vec::new(),
        products_excluded: Vec::new(),
        coverage: Coverage::Everything,
        from: None,
        until: None,
        statuses: vec![PubStatus::Usable],
        sees_embargoed: false,
        after: None,
        excluding_seen: None,
        sort: SortOrder::By { date: SortDate::Order, descending: false },
        skip: 0,
        size: 100,
        facets: Vec::new(),
    }
}

#[test]
fn what_was_written_is_found_by_the_next_search_also_after_a_restart() {
    let mut scene = Scene::new();
    for id in 1..30 {
        scene.write(vec![text(id, "storm")]);
        assert_eq!(scene.ids("storm").len(), usize::try_from(id).unwrap());
    }
    scene.write(vec![text(7, "vinter"), withdrawn(8)]);
    assert_eq!(scene.ids("storm").len(), 27);
    scene.close();
    scene.write(vec![text(40, "storm"), withdrawn(1)]);
    scene.open();
    assert_eq!(scene.ids("storm").len(), 27);
    assert_eq!(scene.ids("vinter"), ["d7"]);
}

#[test]
fn every_process_over_a_directory_follows_what_the_others_write() {
    let first = Scene::new();
    let second = Db::scratch(first.dir.path()).unwrap();
    second.write_blocking(|tx| tx.write_item(&text(1, "storm"))).unwrap();
    first.wait_for("storm", &["d1"]);
}

/// The log lost rows whose numbers are assigned again, as after a restore or a failover.
#[test]
fn an_index_that_is_ahead_of_a_log_that_lost_rows_is_compared_and_goes_on() {
    let lost = "DELETE FROM items WHERE item_id > 1; DELETE FROM item_log WHERE seq > 1";
    let written = || vec![text(1, "storm"), text(2, "storm"), text(3, "storm")];
    // While the service runs.
    let scene = Scene::new();
    scene.write(written());
    assert_eq!(scene.ids("storm"), ["d1", "d2", "d3"]);
    scene.run(lost);
    scene.wait_for("storm", &["d1"]);
    scene.write(vec![text(4, "storm")]);
    assert_eq!(scene.ids("storm"), ["d1", "d4"]);
    // While the service is stopped and other items were written under the same numbers.
    let mut scene = Scene::new();
    scene.write(written());
    assert_eq!(scene.ids("storm").len(), 3);
    scene.close();
    scene.run(lost);
    scene.run(match scene.db.is_remote() {
        true => "ALTER TABLE item_log ALTER COLUMN seq RESTART WITH 2",
        false => "DELETE FROM sqlite_sequence WHERE name = 'item_log'",
    });
    scene.write(vec![text(5, "storm"), text(6, "vinter")]);
    scene.open();
    assert_eq!(scene.ids("storm"), ["d1", "d5"]);
    assert_eq!(scene.ids("vinter"), ["d6"]);
}

#[test]
fn an_index_of_another_archive_or_without_files_is_built_again() {
    let mut scene = Scene::new();
    scene.write(vec![text(1, "storm")]);
    assert_eq!(scene.ids("storm"), ["d1"]);
    scene.close();
    scene.run("UPDATE state SET value = 'another' WHERE name = 'archive id'");
    scene.run("DELETE FROM items");
    scene.open();
    assert_eq!(scene.ids("storm"), [""; 0]);
    // While the service runs.
    scene.write(vec![text(2, "storm")]);
    assert_eq!(scene.ids("storm"), ["d2"]);
    std::fs::remove_dir_all(scene.dir.path().join("search/1/2")).unwrap();
    scene.write(vec![text(3, "storm")]);
    scene.wait_for("storm", &["d2", "d3"]);
}

#[test]
fn a_damaged_file_is_noticed_at_the_start_and_the_index_built_again() {
    let mut scene = Scene::new();
    scene.write((1..200).map(|id| text(id, "storm vinter is")).collect());
    assert_eq!(scene.ids("storm").len(), 100);
    scene.close();
    let folder = scene.dir.path().join("search/1/1");
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|kind| kind == "idx" || kind == "pos") {
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
            std::fs::write(path, bytes).unwrap();
        }
    }
    scene.open();
    let waited = Stopwatch::start();
    while !scene.dir.path().join("search/1/2").exists() {
        assert!(waited.elapsed() < PATIENCE, "nothing was built");
        std::thread::yield_now();
    }
    scene.wait_until_whole();
    assert_eq!(scene.ids("storm").len(), 100);
}

#[test]
fn a_requested_index_is_built_beside_the_one_in_use() {
    let scene = Scene::new();
    scene.write(vec![text(1, "storm")]);
    assert_eq!(scene.ids("storm"), ["d1"]);
    scene.db.write_blocking(|tx| tx.request_reindex(start())).unwrap();
    let waited = Stopwatch::start();
    let next = scene.dir.path().join("search/1/2");
    let mut number = 2;
    while !next.exists() {
        // The item is found meanwhile, and so are new items.
        scene.write(vec![text(number, "storm")]);
        assert_eq!(scene.ids("storm").len(), usize::try_from(number).unwrap().min(100));
        number += 1;
        assert!(waited.elapsed() < PATIENCE, "nothing was built");
    }
    scene.write(vec![text(1, "vinter")]);
    assert_eq!(scene.ids("vinter"), ["d1"]);
}

/// No process searches while the command runs: the next process builds the requested index, once.
#[test]
fn an_index_requested_while_no_process_searches_is_built_by_the_next_one() {
    let mut scene = Scene::new();
    scene.write(vec![text(1, "storm")]);
    assert_eq!(scene.ids("storm"), ["d1"]);
    scene.close();
    scene.db.write_blocking(|tx| tx.request_reindex(start())).unwrap();
    scene.open();
    let waited = Stopwatch::start();
    while !scene.dir.path().join("search/1/2").exists() {
        assert!(waited.elapsed() < PATIENCE, "nothing was built");
        std::thread::yield_now();
    }
    assert_eq!(scene.ids("storm"), ["d1"]);
    scene.close();
    scene.open();
    scene.write(vec![text(2, "storm")]);
    assert_eq!(scene.ids("storm"), ["d1", "d2"]);
    assert!(!scene.dir.path().join("search/1/3").exists());
}

#[test]
fn what_comes_after_an_item_is_later_or_as_late_and_stored_later() {
    let scene = Scene::new();
    scene.write(vec![text(1, "val"), text(2, "val"), text(3, "storm")]);
    let after = |key: &str| SearchCriteria {
        after: Some(key.parse().unwrap()),
        sort: SortOrder::By { date: SortDate::Order, descending: true },
        ..all()
    };
    let ids = |key: &str| -> Vec<String> {
        let found = scene.find(&after(key)).unwrap();
        found.hits.iter().map(|hit| hit.key.id.to_string()).collect()
    };
    assert_eq!(ids("text/d1"), ["d3", "d2"]);
    assert_eq!(ids("text/d3"), [""; 0]);
    // An unknown item counts as none.
    assert_eq!(ids("text/d9").len(), 3);
}

#[test]
fn an_embargo_ends_without_a_write_and_wakes_those_that_wait() {
    let scene = Scene::new();
    let until = crate::runtime::clock::now() + SignedDuration::from_millis(300);
    // Subscribed before the write: on a slow machine the embargo ends while it is written.
    let mut changes = scene.search().changes();
    scene.write(vec![NewItem { embargoed: Some(until), ..text(1, "val") }]);
    let hidden = scene.find_at(&all(), until - SignedDuration::from_millis(1)).unwrap();
    assert_eq!(hidden.total, 0);
    let ended = async {
        while crate::runtime::clock::now() < until {
            changes.changed().await.unwrap();
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, ended).await }).unwrap();
    assert_eq!(scene.find_at(&all(), until).unwrap().total, 1);
}

#[test]
fn the_epoch_changes_with_what_searches_find() {
    let scene = Scene::new();
    let until = start() + SignedDuration::from_hours(1);
    let epoch = |now| scene.search().epoch(now).unwrap();
    let empty = epoch(start());
    scene.write(vec![NewItem { embargoed: Some(until), ..text(1, "val") }]);
    // A search waits until the index has the item.
    assert_eq!(scene.find(&all()).unwrap().total, 0);
    let hidden = epoch(start());
    assert_ne!(hidden, empty);
    assert_eq!(epoch(until - SignedDuration::from_millis(1)), hidden);
    assert_eq!(scene.find_at(&all(), until).unwrap().total, 1);
    assert_ne!(epoch(until), hidden);
}

#[test]
fn queries_within_a_search_find_its_matches_in_its_order() {
    let scene = Scene::new();
    scene.write(vec![text(1, "storm is"), text(2, "storm is"), text(3, "is"), text(4, "storm")]);
    let first = |queries: [&'static str; 3]| {
        let find = move |found: &SearchMatches<'_>| -> Result<Vec<Option<String>>> {
            let first = |text: &str| {
                let query = parse(text, &TimeZone::UTC).unwrap();
                found.find_first(&query, |hit| Some(hit.key.id.to_string()))
            };
            queries.into_iter().map(first).collect()
        };
        let request = SearchCriteria {
            query: parse("storm", &TimeZone::UTC).unwrap(),
            sort: SortOrder::By { date: SortDate::Order, descending: true },
            ..all()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let found = runtime.block_on(scene.search().search_within(request, start(), find));
        found.unwrap().into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()
    };
    assert_eq!(first(["is", "storm", "vinter"]), ["d2", "d4", ""]);
    // What was replaced or withdrawn is in no answer.
    scene.write(vec![withdrawn(2), text(4, "is")]);
    assert_eq!(first(["is", "storm", "vinter"]), ["d1", "d1", ""]);
}

#[test]
fn a_search_without_an_index_fails_and_items_are_read_by_name() {
    let scene = Scene::new();
    scene.write(vec![text(1, "val")]);
    let search = SearchEngine::disabled(scene.db.clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let found = search.search(all(), Freshness::Preferred, start(), |found, _| Ok(found));
    let refused = runtime.block_on(found).unwrap_err();
    assert_eq!(refused.kind(), crate::runtime::error::ErrorKind::Unavailable);
    let key: ItemKey = "text/d1".parse().unwrap();
    let read = runtime.block_on(search.read(move |tx| Ok(tx.find_item(&key)?.is_some())));
    assert!(read.unwrap());
}

#[test]
fn rights_are_found_as_the_operator_and_the_settings_state_them() {
    let mut scene = Scene::new();
    scene.write(vec![pictured(1), pictured(2), text(3, "val")]);
    let stated = |value| RightsMetadata::from_json(&value).unwrap();
    let rights = stated(serde_json::json!({ "digitalSourceType": "digitalArt" }));
    let change = RightsChange { rights, changed: start(), user_name: None };
    let item = pictured(1);
    scene
        .db
        .write_blocking(move |tx| {
            tx.write_item_rights(&item.key, &change)?;
            tx.write_item(&item).map(drop)
        })
        .unwrap();
    let request = |words: &str| SearchCriteria {
        query: parse(words, &TimeZone::UTC).unwrap(),
        facets: vec![Facet::DigitalSourceType],
        ..all()
    };
    let found = scene.find(&request("digitalsourcetype:digitalArt")).unwrap();
    assert_eq!((found.total, found.hits[0].key.id.as_str()), (1, "d1"));
    assert_eq!(found.facets[0].1, [("digitalArt".to_owned(), 1)]);
    assert_eq!(scene.find(&request("datamining:prohibited")).unwrap().total, 0);
    // The index of other settings answers while the next one is built.
    scene.rights = stated(serde_json::json!({ "dataMining": "DMI-PROHIBITED" }));
    scene.open();
    let waited = Stopwatch::start();
    while scene.find(&request("datamining:prohibited")).unwrap().total != 2 {
        assert!(waited.elapsed() < PATIENCE, "the index does not follow the settings");
        std::thread::yield_now();
    }
    // Of a term its code alone is indexed, because the query language knows both vocabularies.
    for address in ["digitalsourcetype:newscodes", "datamining:useplus"] {
        assert_eq!(scene.find(&request(address)).unwrap().total, 0, "{address}");
    }
}

/// A replaced or withdrawn item disappears from totals, hits and counts at once, although the index still has
/// it: the check is the search itself, right after the transaction, while items are stored.
#[test]
fn what_went_is_in_no_answer_while_items_come_in() {
    let scene = Scene::new();
    let facets = vec![Facet::ProductCode];
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for id in 1000..1300 {
                scene.write(vec![text(id, "vinter")]);
            }
        });
        let mut round = 0;
        while !writer.is_finished() {
            round += 1;
            scene.write(vec![text(1, "storm"), text(2, "storm")]);
            let request = SearchCriteria {
                query: parse("storm", &TimeZone::UTC).unwrap(),
                facets: facets.clone(),
                ..all()
            };
            assert_eq!(scene.find(&request).unwrap().total, 2);
            scene.write(vec![withdrawn(1)]);
            let found = scene.find(&request).unwrap();
            assert_eq!((found.total, found.hits.len()), (1, 1), "round {round}");
            scene.write(vec![text(2, "val")]);
            assert_eq!(scene.find(&request).unwrap().total, 0, "round {round}");
        }
        writer.join().unwrap();
    });
    assert_eq!(scene.find(&SearchCriteria { size: 0, ..all() }).unwrap().total, 301);
}
