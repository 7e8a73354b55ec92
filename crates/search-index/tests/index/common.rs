//! Helpers for the tests of the index: items with a headline and a body.

use jiff::tz::TimeZone;
use model::ItemKey;
use model::item::{Document, PubStatus};
use query::{IndexedDocument, parse};
use search_index::{
    ANALYSIS, CommitPosition, Coverage, IndexSnapshot, IndexWriter, ItemVersion, ResultPage,
    SearchFilter, SearchIndex, SortOrder,
};
use serde_json::{Value, json};

/// A deadline that never expires.
pub const NEVER: &dyn Fn() -> bool = &|| false;

pub fn position(row: i64) -> CommitPosition {
    let archive = "an archive".to_owned();
    let (digest, settings) = (String::new(), String::new());
    CommitPosition { archive, analysis: ANALYSIS, row, digest, settings }
}

/// Adds an item; items with larger numbers are later.
pub fn add_item(writer: &mut IndexWriter, number: u32, key: &ItemKey, indexed: &IndexedDocument) {
    let item = ItemVersion {
        number,
        key,
        stored_ms: i64::from(number),
        status: PubStatus::Usable,
        order_ms: i64::from(number) * 1000,
        embargoed_ms: None,
        indexed,
    };
    writer.add(&item).unwrap();
}

/// Adds the text `number` with this document.
pub fn add_text(writer: &mut IndexWriter, number: u32, document: &Value) {
    let key = ItemKey::parse(&format!("text/t{number}")).unwrap();
    let document = Document::parse(&key, &document.to_string()).unwrap();
    add_item(writer, number, &key, &IndexedDocument::new(&key, &document, &TimeZone::UTC));
}

/// Adds a text whose copyright holder equals its headline.
pub fn add(writer: &mut IndexWriter, number: u32, headline: &str, body: &str) {
    let fields = json!({ "headline": headline, "body_text": body, "copyrightholder": headline });
    add_text(writer, number, &fields);
}

pub fn filter(query: &str) -> SearchFilter {
    SearchFilter {
        media_type: None,
        query: parse(query, &TimeZone::UTC).unwrap(),
        facet_values: Vec::new(),
        near_picture: None,
        products: Vec::new(),
        products_excluded: Vec::new(),
        coverage: Coverage::Everything,
        from: None,
        until: None,
        statuses: vec![PubStatus::Usable],
        hides_embargoed_at: None,
        after: None,
        newer_than: None,
    }
}

/// Returns the numbers that `query` finds in `snapshot`, in the order `sort`.
pub fn numbers(snapshot: &IndexSnapshot, query: &str, sort: SortOrder) -> Vec<u32> {
    let filter = filter(query);
    let found = snapshot.find(&filter, &[], NEVER).unwrap();
    found.page(ResultPage { sort, skip: 0, size: 1000 }, &filter.query, NEVER).unwrap()
}

/// Returns the numbers that `query` finds in the current snapshot of an index.
pub fn found(index: &SearchIndex, query: &str, sort: SortOrder) -> Vec<u32> {
    numbers(&index.snapshot(), query, sort)
}
