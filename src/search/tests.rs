//! Search against a look at every document: the same items, totals, orders and counts.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::db::NewItem;
use crate::item::Document;
use crate::query::{DateField, Dates, Indexed, Place, Word, Words};

/// A document of the archive, as drawn.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) media_type: MediaType,
    id: u8,
    headline: Vec<usize>,
    body: Vec<usize>,
    products: Vec<usize>,
    person: usize,
    pub(super) status: PubStatus,
    hours: i64,
    embargo_hours: Option<i64>,
}

const WORDS: [&str; 6] = ["vinter", "isbrytare", "för", "for", "val", "storm"];
const PRODUCTS: [&str; 4] = ["FOTT", "FOIN", "TXIN", "TXUT"];
const PERSONS: [&str; 3] = ["Erik Berg", "Anna Berg", "Erik Anna"];
const TYPES: [MediaType; 3] = [MediaType::Image, MediaType::Text, MediaType::Planning];
pub(super) const STATUSES: [PubStatus; 4] =
    [PubStatus::Usable, PubStatus::Usable, PubStatus::Replaced, PubStatus::Canceled];

fn start() -> Timestamp {
    "2026-03-02T08:00:00Z".parse().unwrap()
}

fn hours(count: i64) -> SignedDuration {
    SignedDuration::from_hours(count)
}

impl Drawn {
    pub(super) fn key(&self) -> ItemKey {
        format!("{}/d{}", self.media_type, self.id).parse().unwrap()
    }

    fn document(&self) -> Document {
        let text =
            |words: &[usize]| words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" ");
        // Moments between two milliseconds, which is what the index holds.
        let micros = SignedDuration::from_micros(300 * i64::from(self.id % 2));
        let at = (start() + hours(self.hours) + micros).to_string();
        let products: Vec<Value> =
            self.products.iter().map(|code| json!({ "code": PRODUCTS[*code] })).collect();
        let fields = json!({
            "headline": text(&self.headline),
            "body_text": text(&self.body),
            "product": products,
            "person": [{ "name": PERSONS[self.person] }],
            "pubstatus": self.status.as_str(),
            "versioncreated": at,
            "date": &at[..10],
        });
        Document::parse(&self.key(), &fields.to_string()).unwrap()
    }

    fn order_time(&self) -> Timestamp {
        start() + hours(self.hours)
    }

    fn embargoed(&self) -> Option<Timestamp> {
        self.embargo_hours.map(|count| start() + hours(count))
    }

    pub(super) fn indexed(&self) -> Indexed {
        Indexed::of(&self.key(), &self.document(), &TimeZone::UTC)
    }

    fn item(&self) -> NewItem {
        NewItem {
            key: self.key(),
            document: self.document().to_stored(),
            assets: None,
            pub_status: self.status,
            order_time: self.order_time(),
            embargoed: self.embargoed(),
            stored: start(),
            fresh: true,
            indexed: self.indexed(),
        }
    }
}

pub(super) fn drawn() -> impl Strategy<Value = Drawn> {
    let words = |most| proptest::collection::vec(0..WORDS.len(), 0..most);
    let products = proptest::collection::vec(0..PRODUCTS.len(), 0..3);
    let what = (0..TYPES.len(), 0..12_u8, words(3), words(20), products);
    let how = (0..PERSONS.len(), 0..STATUSES.len(), 0..60_i64, proptest::option::of(-3..3_i64));
    (what, how).prop_map(
        |(
            (media_type, id, headline, body, mut products),
            (person, status, hours, embargo_hours),
        )| {
            products.dedup();
            Drawn {
                media_type: TYPES[media_type],
                id,
                headline,
                body,
                products,
                person,
                status: STATUSES[status],
                hours,
                embargo_hours,
            }
        },
    )
}

fn word(text: &str) -> Word {
    crate::query::words(text).next().unwrap()
}

fn leaf() -> impl Strategy<Value = Query> {
    let place = prop_oneof![Just(Place::Anywhere), Just(Place::Headline), Just(Place::Body)];
    let texts = proptest::collection::vec(0..WORDS.len(), 1..4);
    let words = (place, texts).prop_map(|(place, texts)| {
        let words = texts.into_iter().map(|at| word(WORDS[at])).collect();
        Query::Words(Words { place, words, prefix: false })
    });
    let person = (0..PERSONS.len(), any::<bool>()).prop_map(|(at, whole)| {
        let words = crate::query::words(PERSONS[at]).take(if whole { 2 } else { 1 });
        let place = Place::Named("person.name");
        Query::Words(Words { place, words: words.collect(), prefix: false })
    });
    let places = vec![Place::Anywhere, Place::Headline, Place::Named("person.name")];
    let beginnings = vec!["is", "fo", "v", "för v", "storm s", "Erik B", "an"];
    let prefix = (proptest::sample::select(places), proptest::sample::select(beginnings));
    let prefix = prefix.prop_map(|(place, text)| {
        Query::Words(Words { place, words: crate::query::words(text).collect(), prefix: true })
    });
    let micros = proptest::sample::select(vec![0, 200, 700]);
    let dates = (0..60_i64, 0..60_i64, micros).prop_map(|(from, length, micros)| {
        let from = start() + hours(from) + SignedDuration::from_micros(micros);
        let field = DateField::VersionCreated;
        Query::Dates(Dates { field, from: Some(from), until: Some(from + hours(length)) })
    });
    prop_oneof![4 => words, 1 => person, 1 => prefix, 1 => dates, 1 => Just(Query::All)]
}

fn query() -> impl Strategy<Value = Query> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        let parts = || proptest::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            parts().prop_map(Query::And),
            parts().prop_map(Query::Or),
            inner.clone().prop_map(|part| Query::Not(Box::new(part))),
        ]
    })
}

pub(super) fn request() -> impl Strategy<Value = Request> {
    let codes = || proptest::collection::vec(0..PRODUCTS.len(), 0..3);
    let names = |codes: Vec<usize>| codes.into_iter().map(|at| PRODUCTS[at].to_owned()).collect();
    let sorts = prop_oneof![
        Just(SortDate::Order),
        Just(SortDate::Date),
        Just(SortDate::VersionCreated),
        Just(SortDate::VersionStored)
    ];
    let what = (proptest::option::of(0..TYPES.len()), query(), codes(), codes());
    let covered = proptest::option::of(codes());
    let range = (proptest::option::of(0..60_i64), proptest::option::of(0..60_i64));
    let how = (any::<bool>(), sorts, any::<bool>(), 0..4_usize, 0..8_usize);
    (what, covered, range, how).prop_map(
        move |(
            (media_type, query, products, products_excluded),
            covered,
            (from, until),
            (sees_embargoed, date, descending, skip, size),
        )| Request {
            media_type: media_type.map(|at| TYPES[at]),
            query,
            products: names(products),
            products_excluded: names(products_excluded),
            coverage: covered
                .map_or(Coverage::Everything, |codes| Coverage::Products(names(codes))),
            from: from.map(|count| start() + hours(count)),
            until: until.map(|count| start() + hours(count)),
            statuses: vec![PubStatus::Usable],
            sees_embargoed,
            after: None,
            sort: Sort::By { date, descending },
            skip,
            size,
            facets: vec![Facet::ProductCode, Facet::PersonName],
        },
    )
}

/// Whether a document matches, decided by looking at it.
fn matches(one: &Drawn, request: &Request, now: Timestamp) -> bool {
    let has = |codes: &[String]| {
        one.products.iter().any(|at| codes.iter().any(|code| code == PRODUCTS[*at]))
    };
    let covered = match &request.coverage {
        Coverage::Everything => true,
        Coverage::Products(codes) => has(codes),
    };
    request.media_type.is_none_or(|wanted| wanted == one.media_type)
        && request.statuses.contains(&one.status)
        && (request.sees_embargoed || one.embargoed().is_none_or(|until| until <= now))
        && covered
        && (request.products.is_empty() || has(&request.products))
        && !has(&request.products_excluded)
        && request.from.is_none_or(|from| one.order_time() >= from)
        && request.until.is_none_or(|until| one.order_time() < until)
        && request.query.matches(&one.indexed())
}

/// A data directory with a search over it.
pub(super) struct Scene {
    db: Db,
    pub(super) search: Search,
    now: Timestamp,
    _dir: TempDir,
}

impl Scene {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let search = Search::start(db.clone(), 1_000_000).unwrap();
        Self { db, search, now: start(), _dir: dir }
    }

    pub(super) fn write(&self, items: &[Drawn]) {
        let items: Vec<_> = items.iter().map(Drawn::item).collect();
        let write = move |tx: &crate::db::WriteTx<'_>| {
            items.iter().try_for_each(|item| tx.write_item(item).map(|_| ()))
        };
        self.db.write_blocking(write).unwrap();
    }

    /// Makes lists of frequent words, where the database has such.
    fn fold(&self) {
        let sizes = crate::db::FoldSizes { block: 4, least: 4, share: 8, pair_share: 3 };
        if let Some(mut folder) = self.db.folder(sizes) {
            while folder.step().unwrap() {}
        }
    }

    pub(super) fn find(&self, search: &Search, request: &Request) -> Found {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = search.search(request.clone(), self.now, |found, _| Ok(found));
        runtime.block_on(found).unwrap()
    }
}

/// What is left of `written` when every item has only its last version, with the place of its
/// writing.
pub(super) fn current(written: &[Drawn]) -> Vec<(usize, Drawn)> {
    let is_last =
        |at: usize| written[at + 1..].iter().all(|later| later.key() != written[at].key());
    written.iter().cloned().enumerate().filter(|(at, _)| is_last(*at)).collect()
}

fn check(found: &Found, written: &[Drawn], request: &Request, now: Timestamp) {
    let mut expected = current(written);
    expected.retain(|(_, one)| matches(one, request, now));
    assert_eq!(found.total, expected.len() as u64, "{request:?}");
    let Sort::By { date, descending } = request.sort else { return };
    expected.sort_by_key(|(at, one)| {
        let key = match date {
            SortDate::Order | SortDate::VersionCreated => one.order_time(),
            SortDate::Date => "2026-01-01T00:00:00Z".parse().unwrap(),
            SortDate::VersionStored => start(),
        };
        let day = match date {
            SortDate::Date => Some(one.order_time().to_string()[..10].to_owned()),
            SortDate::Order | SortDate::VersionCreated | SortDate::VersionStored => None,
        };
        (key, day, *at)
    });
    if descending {
        expected.reverse();
    }
    let page = expected.iter().skip(request.skip).take(request.size);
    let page: Vec<ItemKey> = page.map(|(_, one)| one.key()).collect();
    let hits: Vec<ItemKey> = found.hits.iter().map(|hit| hit.key.clone()).collect();
    assert_eq!(hits, page, "{request:?}");
    for (facet, counts) in &found.facets {
        let of = |one: &Drawn| one.indexed().facets[facet.index()].clone();
        let values: Vec<String> = expected.iter().flat_map(|(_, one)| of(one)).collect();
        assert_eq!(counts.iter().map(|(_, count)| *count).sum::<u64>(), values.len() as u64);
        for (value, count) in counts {
            let same = values.iter().filter(|one| *one == value).count();
            assert_eq!(*count, same as u64, "{value}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_search_finds_what_a_look_at_every_document_finds(
        first in proptest::collection::vec(drawn(), 0..25),
        second in proptest::collection::vec(drawn(), 0..12),
        requests in proptest::collection::vec(request(), 8),
    ) {
        let scene = Scene::new();
        scene.write(&first);
        for request in &requests {
            check(&scene.find(&scene.search, request), &first, request, scene.now);
        }
        // What is remembered of words is carried on, and items are replaced.
        scene.fold();
        scene.write(&second);
        let all = [first, second].concat();
        for request in &requests {
            check(&scene.find(&scene.search, request), &all, request, scene.now);
        }
        // The same from the database alone, with and without lists, and from an index that was made
        // anew.
        let again = Search::start(scene.db.clone(), 0).unwrap();
        for _ in 0..2 {
            for request in &requests {
                check(&scene.find(&again, request), &all, request, scene.now);
            }
            scene.fold();
        }
        scene.db.reindex(&TimeZone::UTC, scene.now, &mut |_, _| ()).unwrap();
        for request in &requests {
            check(&scene.find(&scene.search, request), &all, request, scene.now);
        }
        scene.fold();
        for request in &requests {
            check(&scene.find(&again, request), &all, request, scene.now);
        }
    }
}

fn text(id: u8, headline: &str, body: &str) -> Drawn {
    let at = |word: &str| WORDS.iter().position(|known| *known == word).unwrap();
    let split = |text: &str| text.split_whitespace().map(at).collect();
    Drawn {
        media_type: MediaType::Text,
        id,
        headline: split(headline),
        body: split(body),
        products: vec![0],
        person: 0,
        status: PubStatus::Usable,
        hours: i64::from(id),
        embargo_hours: None,
    }
}

fn plain(query: Query) -> Request {
    Request {
        media_type: None,
        query,
        products: Vec::new(),
        products_excluded: Vec::new(),
        coverage: Coverage::Everything,
        from: None,
        until: None,
        statuses: vec![PubStatus::Usable],
        sees_embargoed: false,
        after: None,
        sort: Sort::Relevance,
        skip: 0,
        size: 20,
        facets: Vec::new(),
    }
}

fn ids(found: &Found) -> Vec<&str> {
    found.hits.iter().map(|hit| hit.key.id.as_str()).collect()
}

#[test]
fn the_headline_weighs_more_than_the_text_and_often_more_than_once() {
    let scene = Scene::new();
    let once = "storm vinter vinter vinter vinter val val val";
    let often = "storm storm storm storm storm storm val val";
    scene.write(&[
        text(1, "val", once),
        text(2, "val", often),
        text(3, "storm", "vinter vinter vinter vinter vinter vinter vinter val"),
        text(4, "val", "vinter vinter vinter vinter vinter vinter vinter val"),
        text(5, "val", once),
    ]);
    let words = vec![word("storm")];
    let query = Query::Words(Words { place: Place::Anywhere, words, prefix: false });
    let found = scene.find(&scene.search, &plain(query));
    assert_eq!(ids(&found), ["d3", "d2", "d5", "d1"]);
}

#[test]
fn a_rare_word_weighs_more_than_a_common_one() {
    let scene = Scene::new();
    scene.write(&[
        text(1, "val", "isbrytare val val"),
        text(2, "val", "storm val val"),
        text(3, "val", "storm val val"),
        text(4, "val", "storm val val"),
    ]);
    let words =
        |text: &str| Words { place: Place::Anywhere, words: vec![word(text)], prefix: false };
    let query = Query::Or(vec![Query::Words(words("storm")), Query::Words(words("isbrytare"))]);
    let found = scene.find(&scene.search, &plain(query));
    assert_eq!(ids(&found), ["d1", "d4", "d3", "d2"]);
}

#[test]
fn an_index_that_is_ahead_of_a_log_that_lost_rows_is_read_anew_and_goes_on() {
    let scene = Scene::new();
    scene.write(&[text(1, "storm", "val"), text(2, "storm", "vinter"), text(3, "val", "storm")]);
    let words = vec![word("storm")];
    let query = plain(Query::Words(Words { place: Place::Anywhere, words, prefix: false }));
    assert_eq!(ids(&scene.find(&scene.search, &query)).len(), 3);
    let lost = "DELETE FROM facts WHERE doc > 1; DELETE FROM items WHERE item_id > 1;
         DELETE FROM item_log WHERE seq > 1";
    scene.db.write_blocking(move |tx| tx.run_sql(lost)).unwrap();
    scene.search.read_anew().unwrap();
    assert_eq!(ids(&scene.find(&scene.search, &query)), ["d1"]);
    scene.write(&[text(4, "val", "storm")]);
    assert_eq!(ids(&scene.find(&scene.search, &query)), ["d1", "d4"]);
}

#[test]
fn what_comes_after_an_item_is_later_or_as_late_and_stored_later() {
    let scene = Scene::new();
    scene.write(&[text(1, "val", ""), text(2, "val", ""), text(3, "storm", "")]);
    let after = |key: &str| Request {
        after: Some(key.parse().unwrap()),
        sort: Sort::By { date: SortDate::Order, descending: true },
        ..plain(Query::All)
    };
    assert_eq!(ids(&scene.find(&scene.search, &after("text/d1"))), ["d3", "d2"]);
    assert_eq!(ids(&scene.find(&scene.search, &after("text/d3"))), [""; 0]);
    // An item that is not there is none.
    assert_eq!(scene.find(&scene.search, &after("text/d9")).total, 3);
}

#[test]
fn an_embargo_ends_without_a_write() {
    let mut scene = Scene::new();
    let item = Drawn { embargo_hours: Some(2), ..text(1, "val", "") };
    scene.write(&[item]);
    assert_eq!(scene.find(&scene.search, &plain(Query::All)).total, 0);
    scene.now = start() + hours(2);
    assert_eq!(scene.find(&scene.search, &plain(Query::All)).total, 1);
}

#[test]
fn facets_with_many_values_give_the_most_frequent_ones() {
    let scene = Scene::new();
    let mut items = Vec::new();
    for id in 0..130_u8 {
        let mut item = text(id, "val", "").item();
        let value = format!("P{:03}", id / 2 * 2 % 250);
        item.indexed.facets[Facet::ProductCode.index()] = vec![value, format!("Q{id}")];
        items.push(item);
    }
    let write = move |tx: &crate::db::WriteTx<'_>| {
        items.iter().try_for_each(|item| tx.write_item(item).map(|_| ()))
    };
    scene.db.write_blocking(write).unwrap();
    let request = Request { facets: vec![Facet::ProductCode], ..plain(Query::All) };
    let found = scene.find(&scene.search, &request);
    let (_, counts) = &found.facets[0];
    assert_eq!(counts.len(), crate::limits::FACET_COUNTS_MAX);
    assert!(counts[..65].iter().all(|(value, count)| value.starts_with('P') && *count == 2));
    assert!(counts.is_sorted_by(|one, other| one.1 > other.1 || one.0 < other.0));
}
