//! Measures the parsing of queries and the indexing and matching of documents, in microseconds.
//!
//! Every search parses one query. Every incoming item is read once for the index. The goal of 5,000 incoming items a
//! second (`benches/RESULTS.md`, "Search over a million items") leaves 200 µs per item, which also cover the database
//! and the search index.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::tz::TimeZone;
use model::ItemKey;
use model::item::Document;
use query::{IndexedDocument, parse};
use serde_json::{Value, json};

/// The name of each case, with its query.
const QUERIES: [(&str, &str); 4] = [
    ("word", "isbrytare"),
    ("fields", "subject.code:04000000 language:sv type:text"),
    ("mixed", "(Strömmen OR \"Gamla stan\") person.name:Åsa -reklam isbry*"),
    ("dates", "stockholm date:[2026-03-01 TO 2026-03-31] NOT source:TT"),
];

/// A photograph with the properties of a real one and 100 words in total.
fn photograph() -> Value {
    json!({
        "type": "picture",
        "mimetype": "image/jpeg",
        "representationtype": "complete",
        "profile": "PUBL",
        "version": "1",
        "versioncreated": "2026-03-02T09:15:00+01:00",
        "versionstored": "2026-03-02T09:21:44+01:00",
        "contentcreated": "2026-03-02T09:15:00+01:00",
        "date": "2026-03-02",
        "datetime": "2026-03-02T09:15:00+01:00",
        "pubstatus": "usable",
        "urgency": 4,
        "copyrightholder": "TT",
        "copyrightnotice": "(c) TT Nyhetsbyrån",
        "usageterms": "Ej för reklam.",
        "language": "sv",
        "source": "TT",
        "commissioncode": "2110",
        "headline": "STOCKHOLM 20260302\nIsbrytare i Strömmen",
        "description_text": "STOCKHOLM 20260302\nEn isbrytare bryter upp rännan i Strömmen i \
            Stockholm på måndagen, sedan isen lagt sig tjock från Djurgården till Slussen. \
            Färjorna står stilla för tredje dagen i rad och resenärerna får ta bussen.\n\
            Foto: Anna Andersson / TT / kod 99999",
        "byline": "Anna Andersson/TT",
        "bylines": [{
            "byline": "Anna Andersson/TT",
            "firstname": "Anna",
            "lastname": "Andersson",
            "role": "Photographer",
            "affiliation": "TT",
        }],
        "job": "412345",
        "slugline": "isbrytare",
        "person": [{ "name": "Erik Berg", "rel": "mentions" }],
        "place": [{ "name": "Stockholm", "rel": "ort" }, { "name": "Sverige", "rel": "land" }],
        "subject": [
            { "code": "13000000", "name": "Vetenskap och teknik", "rel": "classifies" },
            { "name": "isbrytare", "scheme": "http://tt.se/spec/keyword/1.0/" },
        ],
        "product": [
            { "code": "FOTT", "name": "Foto TT" },
            { "code": "FOINRTT", "name": "Foto TT Inrikes" },
        ],
        "originaltransmissionreference": "sdlv_113kUb-R0",
        "altids": { "originaltransmissionreference": "sdlv_113kUb-R0" },
    })
}

fn queries(criterion: &mut Criterion) {
    let zone =
        TimeZone::get("Europe/Stockholm").expect("the time zone database contains Stockholm");
    let key = ItemKey::parse("image/sdlv_113kUb-R0").expect("media type and id are valid");
    let Value::Object(fields) = photograph() else {
        unreachable!("`photograph` builds an object")
    };
    let document =
        Document::from_fields(&key, fields).expect("the photograph satisfies the schema");
    let indexed = IndexedDocument::new(&key, &document, &zone);

    let mut group = criterion.benchmark_group("query");
    for (name, text) in QUERIES {
        group.bench_with_input(BenchmarkId::new("parse", name), text, |bencher, text| {
            bencher.iter(|| parse(black_box(text), &zone));
        });
        let query = parse(text, &zone).expect("the queries have no syntax errors");
        group.bench_with_input(BenchmarkId::new("matches", name), &query, |bencher, query| {
            bencher.iter(|| black_box(query).matches(&indexed));
        });
    }
    group.bench_function("indexed", |bencher| {
        bencher.iter(|| IndexedDocument::new(&key, black_box(&document), &zone));
    });
    group.finish();
}

criterion_group!(benches, queries);
criterion_main!(benches);
