//! What the tests of the index share: items with a headline and a body.

use jiff::tz::TimeZone;
use model::ItemKey;
use model::item::{Document, PubStatus};
use query::{Indexed, parse};
use search_index::{
    ANALYSIS, Coverage, Filter, Index, Item, Page, Position, Snapshot, Sort, Writer,
};
use serde_json::json;

/// Nothing takes too long.
pub const NEVER: &dyn Fn() -> bool = &|| false;

pub fn position(row: i64) -> Position {
    let archive = "an archive".to_owned();
    Position { archive, analysis: ANALYSIS, row, digest: String::new() }
}

/// Adds a text, whose holder of the copyright is called like the headline; items with larger numbers
/// are later.
pub fn add(writer: &mut Writer, number: u32, headline: &str, body: &str) {
    let key = ItemKey::parse(&format!("text/t{number}")).unwrap();
    let fields = json!({ "headline": headline, "body_text": body, "copyrightholder": headline });
    let document = Document::parse(&key, &fields.to_string()).unwrap();
    let item = Item {
        number,
        key: &key,
        stored_ms: i64::from(number),
        status: PubStatus::Usable,
        order_ms: i64::from(number) * 1000,
        embargoed_ms: None,
        indexed: &Indexed::of(&key, &document, &TimeZone::UTC),
    };
    writer.add(&item).unwrap();
}

pub fn filter(query: &str) -> Filter {
    Filter {
        media_type: None,
        query: parse(query, &TimeZone::UTC).unwrap(),
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

/// The numbers that `query` finds in `snapshot`, in the order `sort`.
pub fn numbers(snapshot: &Snapshot, query: &str, sort: Sort) -> Vec<u32> {
    let filter = filter(query);
    let found = snapshot.find(&filter, &[], NEVER).unwrap();
    found.page(Page { sort, skip: 0, size: 1000 }, &filter.query, NEVER).unwrap()
}

/// The same in what an index shows now.
pub fn found(index: &Index, query: &str, sort: Sort) -> Vec<u32> {
    numbers(&index.snapshot(), query, sort)
}
