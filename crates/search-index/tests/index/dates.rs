//! Date ranges that lie outside the dates of a segment.

use jiff::tz::TimeZone;
use model::ItemKey;
use model::item::{Document, PubStatus};
use query::IndexedDocument;
use search_index::{ItemVersion, SearchIndex};
use serde_json::json;

use super::common::{NEVER, filter, position};

/// Regression: a range that ends before the earliest date of a segment matched that date.
#[test]
fn a_range_before_all_dates_of_a_segment_matches_none_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), 0).unwrap();
    let mut writer = index.writer().unwrap();
    let key = ItemKey::parse("text/one").unwrap();
    let fields = json!({ "headline": "storm", "versioncreated": "2026-03-03T05:00:00Z" });
    let document = Document::parse(&key, &fields.to_string()).unwrap();
    let item = ItemVersion {
        number: 1,
        key: &key,
        stored_ms: 0,
        status: PubStatus::Usable,
        order_ms: 0,
        embargoed_ms: None,
        indexed: &IndexedDocument::new(&key, &document, &TimeZone::UTC),
    };
    writer.add(&item).unwrap();
    writer.commit(&position(1)).unwrap();
    index.refresh().unwrap();
    let total = |query: &str| index.snapshot().find(&filter(query), &[], NEVER).unwrap().total();
    assert_eq!(total("versioncreated:[2026-03-01 TO 2026-03-02]"), 0);
    assert_eq!(total("NOT versioncreated:[2026-03-01 TO 2026-03-02]"), 1);
    assert_eq!(total("versioncreated:[2026-03-02 TO 2026-03-03]"), 1);
    assert_eq!(total("versioncreated:[2026-03-04 TO 2026-03-05]"), 0);
}
