//! Measures the conversion of documents to other formats.
//!
//! 5,000 `.xml` responses per second on one core leave 200 µs for each uncached one.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use formats::{DocumentRights, MessageHeader, NewsmlVersion};
use serde_json::{Value, json};

/// An article of 400 words with an associated picture, as `.json` serves it.
fn article() -> Value {
    let paragraph = "<p>En isbrytare lade på måndagen till i Strömmen i centrala Stockholm, och \
        många stannade för att <em>se på</em>. Isen är trettio centimeter tjock.</p>";
    json!({
        "uri": "http://127.0.0.1:8080/media/text/isbrytare",
        "type": "text",
        "mimetype": "text/html",
        "version": "1",
        "versioncreated": "2026-03-02T09:15:00+01:00",
        "versionstored": "2026-03-02T09:21:44+01:00",
        "pubstatus": "usable",
        "urgency": 4,
        "copyrightholder": "TT",
        "language": "sv",
        "source": "TT",
        "headline": "Isbrytare i Strömmen",
        "byline": "Anna Andersson/TT",
        "body_html5": format!("<h1>Isbrytare</h1>{}", paragraph.repeat(18)),
        "subject": [{"code": "13000000", "name": "Vetenskap", "rel": "classifies",
            "scheme": "http://tt.se/spec/subref/1.0/"}],
        "product": [{"code": "TEXT", "name": "Text", "scheme": "http://tt.se/spec/product/1.0"}],
        "place": [{"name": "Stockholm", "rel": "ort", "scheme": "http://tt.se/spec/place/1.0/"}],
        "associations": {"a000": {
            "uri": "http://127.0.0.1:8080/media/image/isbrytare",
            "type": "picture",
            "headline": "Isbrytare",
            "description_text": "En isbrytare i Strömmen.",
            "byline": "Anna Andersson/TT",
            "renditions": {"r00": {
                "usage": "Preview", "variant": "Normal", "mimetype": "image/jpeg",
                "href": "http://127.0.0.1:8080/media/image/isbrytare_NormalPreview.jpg",
                "width": 1024, "height": 683,
            }},
        }},
    })
}

fn texts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("formats");
    let document = article();
    let rights = DocumentRights::default();
    let (sent, version) = ("2026-03-02T08:21:44Z", NewsmlVersion::V2_35);
    let message = MessageHeader { sent, sender: "Wirephoto", version };
    group.bench_function("json", |bench| bench.iter(|| black_box(&document).to_string()));
    group.bench_function("newsml", |bench| {
        bench.iter(|| formats::newsml(black_box(&document), &rights, &message));
    });
    group.bench_function("ninjs", |bench| {
        bench.iter(|| formats::ninjs(black_box(&document), &rights).to_string());
    });
    group.bench_function("cutpaste", |bench| {
        bench.iter(|| formats::cutpaste(black_box(&document)));
    });
    group.bench_function("indesign", |bench| {
        bench.iter(|| formats::indesign(black_box(&document)));
    });
    group.finish();
}

criterion_group!(benches, texts);
criterion_main!(benches);
