//! Pictures that look nearly the same.

use jiff::tz::TimeZone;
use model::item::Document;
use model::{ItemKey, PictureHash};
use query::{IndexedDocument, IndexedFacts};
use search_index::{IndexWriter, SearchFilter, SearchIndex};
use serde_json::json;

use super::common::{NEVER, add_item, filter, position};

/// Adds a picture with a perceptual hash.
fn add(writer: &mut IndexWriter, number: u32, headline: &str, hash: Option<PictureHash>) {
    let key = ItemKey::parse(&format!("image/p{number}")).unwrap();
    let document = Document::parse(&key, &json!({ "headline": headline }).to_string()).unwrap();
    let facts = IndexedFacts { picture_hash: hash, ..IndexedFacts::default() };
    let indexed = IndexedDocument::with_facts(&key, &document, facts, &TimeZone::UTC);
    add_item(writer, number, &key, &indexed);
}

#[test]
fn a_picture_finds_those_whose_hashes_differ_in_few_bits() {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), 10_000_000).unwrap();
    let mut writer = index.writer().unwrap();
    let hash = PictureHash(0x9d3c_71e2_0b5f_a846);
    // One bit of each of six bands.
    let far_apart = (0..6).fold(hash.0, |bits, band| bits ^ (1 << (band * 9)));
    add(&mut writer, 1, "storm", Some(hash));
    add(&mut writer, 2, "storm", Some(PictureHash(far_apart)));
    add(&mut writer, 3, "calm", Some(PictureHash(hash.0 ^ (0b11_1111 << 58))));
    // One bit more than that.
    add(&mut writer, 4, "storm", Some(PictureHash(hash.0 ^ (0b111_1111 << 57))));
    add(&mut writer, 5, "storm", Some(PictureHash(!hash.0)));
    add(&mut writer, 6, "storm", None);
    writer.commit(&position(1)).unwrap();
    index.refresh().unwrap();
    let total = |query: &str, hash| {
        let filter = SearchFilter { near_picture: Some(hash), ..filter(query) };
        index.snapshot().find(&filter, &[], NEVER).unwrap().total()
    };
    assert_eq!(total("", hash), 3);
    assert_eq!(total("storm", hash), 2);
    assert_eq!(total("-storm", hash), 1);
    assert_eq!(total("", PictureHash(!hash.0)), 1);
    assert_eq!(total("", PictureHash(0)), 0);
}
