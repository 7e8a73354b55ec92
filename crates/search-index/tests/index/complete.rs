//! Completions of a text that is being typed, and words that are spelled alike, among the matches of a search.

use std::cell::Cell;

use query::{Facet, Word, words};
use search_index::{CompletionRequest, IndexError, SearchFilter, SearchIndex};
use serde_json::json;

use crate::common::{NEVER, add_text, filter, position};

fn index(folder: &std::path::Path) -> SearchIndex {
    let index = SearchIndex::create(folder, 1_000_000).unwrap();
    let mut writer = index.writer().unwrap();
    let person = |name: &str| json!([{ "name": name }]);
    for (number, document) in (1..).zip([
        json!({ "headline": "Bergen i regn", "person": person("Erik Berg"), "language": "sv" }),
        json!({ "headline": "Bergsbestigning, möte", "person": person("Erik Bergman") }),
        json!({ "headline": "Bergen och berg", "person": person("Anna Ek") }),
        json!({ "headline": "Hemligt bergtroll", "person": person("Erik Bergs"), "product": [{ "code": "X" }] }),
    ]) {
        add_text(&mut writer, number, &document);
        // Several segments.
        writer.commit(&position(i64::from(number))).unwrap();
    }
    index.refresh().unwrap();
    index
}

/// Finds everything but the items of the product X.
fn without_product() -> SearchFilter {
    SearchFilter { products_excluded: vec!["X".to_owned()], ..filter("") }
}

fn typed(text: &str) -> Vec<Word> {
    words(text).collect()
}

fn named(counted: &[(&str, u64)]) -> Vec<(String, u64)> {
    counted.iter().map(|(text, count)| ((*text).to_owned(), *count)).collect()
}

#[test]
fn a_text_is_completed_with_what_the_search_finds() {
    let folder = tempfile::tempdir().unwrap();
    let index = index(folder.path());
    let snapshot = index.snapshot();
    let filter = without_product();
    let found = snapshot.find(&filter, &[], NEVER).unwrap();
    let complete = |text: &str| {
        let (typed, facets) = (typed(text), [Facet::PersonName]);
        let request = CompletionRequest { typed: &typed, facets: &facets, size: 5 };
        found.complete(request, NEVER).unwrap()
    };
    let completed = complete("berg");
    let expected = named(&[("bergen", 2), ("bergman", 1), ("bergsbestigning", 1)]);
    assert_eq!(completed.words, expected);
    let persons = named(&[("Erik Berg", 1), ("Erik Bergman", 1)]);
    assert_eq!(completed.values, [(Facet::PersonName, persons.clone())]);
    // The words before count, and a name is found by all of them.
    assert_eq!(complete("regn berg").words, named(&[("bergen", 1)]));
    assert_eq!(complete("erik be").values[0].1, persons);
    assert_eq!(complete("erik ek").values[0].1, named(&[]));
    assert_eq!(complete("mö").words, named(&[("möte", 1)]));
    // Without the accent a word is found too, in the spelling that was typed.
    assert_eq!(complete("mot").words, named(&[("mote", 1)]));
    for text in ["", "b", "hemlig", "bergt"] {
        assert!(complete(text).words.is_empty(), "{text}");
    }
    // A version that was replaced is not counted, although the index has it.
    let found = snapshot.find(&filter, &[3], NEVER).unwrap();
    let typed = typed("bergen");
    let request = CompletionRequest { typed: &typed[..0], facets: &[], size: 5 };
    assert_eq!(found.complete(request, NEVER).unwrap().words, named(&[]));
    let typed = words("berge").collect::<Vec<_>>();
    let request = CompletionRequest { typed: &typed, facets: &[], size: 5 };
    assert_eq!(found.complete(request, NEVER).unwrap().words, named(&[("bergen", 1)]));
}

#[test]
fn words_are_completed_from_few_matches_among_many_documents() {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), 1_000_000).unwrap();
    let mut writer = index.writer().unwrap();
    let frequent: Vec<String> = (100..200).map(|number| format!("gran{number}")).collect();
    let hidden = json!({
        "headline": format!("{} kafé", frequent.join(" ")),
        "product": [{ "code": "X" }],
    });
    for number in 1..=3 {
        add_text(&mut writer, number, &hidden);
    }
    add_text(&mut writer, 4, &json!({ "headline": "Granit, kafe" }));
    writer.commit(&position(4)).unwrap();
    index.refresh().unwrap();
    let snapshot = index.snapshot();
    let filter = without_product();
    let found = snapshot.find(&filter, &[], NEVER).unwrap();
    let complete = |text: &str| {
        let typed = typed(text);
        let request = CompletionRequest { typed: &typed, facets: &[], size: 5 };
        found.complete(request, NEVER).unwrap().words
    };
    // All of the other words are more frequent, but none is in a match.
    assert_eq!(complete("gran"), named(&[("granit", 1)]));
    // Most documents spell it with an accent, the match does not.
    assert_eq!(complete("kaf"), named(&[("kafe", 1)]));
}

#[test]
fn words_that_find_nothing_are_respelled() {
    let folder = tempfile::tempdir().unwrap();
    let index = index(folder.path());
    let snapshot = index.snapshot();
    let filter = without_product();
    let found = snapshot.find(&filter, &[], NEVER).unwrap();
    let check = |text: &str, expected: Option<&str>| {
        let respelled = found.respell(&typed(text), NEVER).unwrap();
        assert_eq!(respelled.map(|words| words.join(" ")).as_deref(), expected, "{text}");
    };
    check("begren", Some("bergen"));
    check("regn bregen", Some("regn bergen"));
    check("bergsbestining", Some("bergsbestigning"));
    check("begren bregen bergne", Some("bergen bergen bergen"));
    // Too many unknown words.
    check("begren bregen bergne begren", None);
    // Found as written, too short, too far, or not together.
    check("bergen", None);
    check("ekk", None);
    check("oslo", None);
    check("anna reggn", None);
    // No word of an item that the search does not find.
    check("bergtrol", None);
}

#[test]
fn err_respelling_ends_at_its_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let index = index(folder.path());
    let snapshot = index.snapshot();
    let found = snapshot.find(&filter(""), &[], NEVER).unwrap();
    let checks = Cell::new(0);
    let respell = |checks_max: usize| {
        checks.set(0);
        let is_over = || {
            checks.set(checks.get() + 1);
            checks.get() > checks_max
        };
        found.respell(&typed("begren"), &is_over)
    };
    assert!(respell(usize::MAX).unwrap().is_some());
    // While terms are read, and while they are compared.
    let all = checks.get();
    assert!(all > 0);
    for checks_max in 0..all {
        let outcome = respell(checks_max);
        assert!(matches!(outcome, Err(IndexError::TimedOut)), "{checks_max} of {all}");
    }
}
