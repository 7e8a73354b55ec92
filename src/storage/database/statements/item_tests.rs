//! Tests that the item log is swept.

use jiff::Timestamp;

use super::items::NewItem;
use crate::runtime::clock;
use crate::storage::database::Db;
use model::item::PubStatus;

/// A text without files.
fn text(id: &str) -> NewItem {
    let json = format!(
        r#"{{"uri":"http://here/text/{id}","type":"text","headline":"words",
            "versioncreated":"2026-01-01T00:00:00Z","pubstatus":"usable"}}"#
    );
    NewItem {
        key: format!("text/{id}").parse().unwrap(),
        document: json,
        assets: Some(Vec::new()),
        pub_status: PubStatus::Usable,
        order_time: clock::now(),
        embargoed: None,
        stored: clock::now(),
        is_newly_indexed: true,
    }
}

#[test]
fn the_item_log_is_swept_up_to_what_was_matched_and_keeps_its_newest_row() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::scratch(dir.path()).unwrap();
    for id in ["one", "two", "three"] {
        let item = text(id);
        db.write_blocking(move |tx| tx.write_item(&item)).unwrap();
    }
    let sweep = || db.write_blocking(|tx| tx.sweep_item_log(Timestamp::MAX)).unwrap();
    assert_eq!(sweep(), 0, "nothing was matched yet");
    let matched = "UPDATE cursors SET seq = 3 WHERE name = 'matching'";
    db.write_blocking(|tx| tx.run_sql(matched)).unwrap();
    assert_eq!(sweep(), 2);
    assert_eq!(sweep(), 0, "the newest row stays");
}
