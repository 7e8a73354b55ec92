//! The order of hits by relevance.

use crate::common::{add, found, position};
use search_index::{SearchIndex, SortOrder};

fn ranked(texts: &[(&str, &str)], query: &str) -> Vec<u32> {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), 0).unwrap();
    let mut writer = index.writer().unwrap();
    for (number, (headline, body)) in (1..).zip(texts) {
        add(&mut writer, number, headline, body);
    }
    writer.commit(&position(1)).unwrap();
    index.refresh().unwrap();
    found(&index, query, SortOrder::Relevance)
}

#[test]
fn the_headline_weighs_more_than_the_text_and_often_more_than_once() {
    let once = "storm vinter vinter vinter vinter val val val";
    let often = "storm storm storm storm storm storm val val";
    let without = "vinter vinter vinter vinter vinter vinter vinter val";
    let texts =
        [("val", once), ("val", often), ("storm", without), ("val", without), ("val", once)];
    assert_eq!(ranked(&texts, "storm"), [3, 2, 5, 1]);
}

#[test]
fn a_rare_word_weighs_more_than_a_common_one() {
    let common = ("val", "storm val val");
    let texts = [("val", "isbrytare val val"), common, common, common];
    assert_eq!(ranked(&texts, "storm OR isbrytare"), [1, 4, 3, 2]);
}

#[test]
fn ties_are_newest_first_even_where_nothing_is_relevant() {
    let texts = [("val", "storm"), ("val", "storm"), ("val", "is")];
    assert_eq!(ranked(&texts, "storm"), [2, 1]);
    assert_eq!(ranked(&texts, "-is"), [2, 1]);
    assert_eq!(ranked(&texts, "stor*"), [2, 1]);
    assert_eq!(ranked(&[("storm", "val"), ("val", "storm")], "stor*"), [1, 2]);
    assert_eq!(ranked(&texts, ""), [3, 2, 1]);
}

#[test]
fn excluded_and_optional_terms_do_not_affect_relevance() {
    let texts = [("storm is", "val"), ("storm", "val is is is"), ("storm", "val")];
    assert_eq!(ranked(&texts, "storm -is"), [3]);
    assert_eq!(ranked(&texts, "storm OR hav").len(), 3);
}
