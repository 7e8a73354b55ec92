//! Tests of the parser and of the canonical spelling.

use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::tree::Query;
use super::{QueryError, parse, parse_with_forms};
use crate::limits::{
    PHRASE_WORDS_MAX, QUERY_CLAUSES_MAX, QUERY_DEPTH_MAX, QUERY_PREFIXES_MAX, QUERY_TEXT_BYTES_MAX,
};

fn parsed(text: &str) -> Result<Query, QueryError> {
    parse(text, &TimeZone::get("Europe/Stockholm").unwrap())
}

/// Checks that a text parses to the query of the canonical spelling.
fn check(text: &str, canonical: &str) {
    let query = parsed(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    assert_eq!(query.to_string(), canonical, "{text:?}");
    assert_eq!(parsed(canonical).as_ref(), Ok(&query), "{text:?} prints {canonical:?}");
}

fn refuse(text: &str, message: &str) {
    let error = parsed(text).map(|query| query.to_string()).unwrap_err();
    assert_eq!(error.to_string(), message, "{text:?}");
}

#[test]
fn ok_nothing_is_every_document() {
    check("", "");
    check(" \t\n ", "");
    assert_eq!(parsed("  "), Ok(Query::All));
}

#[test]
fn ok_words_are_all_required() {
    check("Isbrytare Strömmen", "isbrytare strömmen");
    check("a AND b c", "a b c");
    check("+a +b", "a b");
    check("or and not", "or and not");
    check("ORKAN", "orkan");
    check("04000000", "04000000");
}

#[test]
fn ok_operators_bind_not_then_and_then_or() {
    check("a b OR c d", "a b OR c d");
    check("a (b OR c) d", "a (b OR c) d");
    check("(a OR b) OR (c AND (d e))", "a OR b OR c d e");
    check("NOT a OR b", "-a OR b");
    check("NOT (a OR b)", "-(a OR b)");
    check("-(a b) c", "-(a b) c");
    check("NOT NOT a", "a");
    check("-(-(a b))", "a b");
    check("-NOT -a", "-a");
    check("a OR +b", "a OR b");
    check("a AND NOT b", "a -b");
    check("(((a)))", "a");
}

#[test]
fn ok_parts_without_a_space_are_a_phrase() {
    check("e-post", "e-post");
    check("\"en röd  stuga!\"", "\"en röd stuga\"");
    check("“en stuga” ”två”", "\"en stuga\" två");
    check("a\"b c\"d", "a \"b c\" d");
    check("sdlv_113kUb-R0", "sdlv_113kUb-R0");
    check("a/b.c", "\"a b c\"");
}

#[test]
fn ok_a_field_applies_to_its_value() {
    check(
        "subject.code:04000000 language:sv type:text",
        "subject.code:04000000 language:sv type:text",
    );
    check("Headline:\"en stuga\"", "headline:\"en stuga\"");
    check("headline:(a OR -b)", "headline:a OR -headline:b");
    check("headline:(a person.name:b c)", "headline:a person.name:b headline:c");
    check("body_html5:a body_richhtml5:b", "body_text:a body_text:b");
    check("-source:TT", "-source:tt");
    check("headline:+b", "headline:b");
    check("headline:OR", "headline:or");
    check("headline:10:30", "headline:\"10 30\"");
}

#[test]
fn ok_an_item_is_found_by_its_uri_whatever_its_host() {
    check("uri:http://tt.se/media/image/sdlv_113kUb-R0", "uri:\"image sdlv 113kub r0\"");
    check("uri:\"https://a.b/media/image/x1\"", "uri:\"image x1\"");
    check("uri:(http://a.b/media/image/x1 OR image/x2)", "uri:\"image x1\" OR uri:\"image x2\"");
    check("uri:x1", "uri:x1");
    check("replacing:http://a.b/media/text/x-1", "replacing:\"text x 1\"");
}

#[test]
fn ok_prefixes_end_in_a_star() {
    check("isbry*", "isbry*");
    check("person.name:Ber*", "person.name:ber*");
    check("e-po*", "e-po*");
    check("ß*", "ß*");
}

#[test]
fn ok_a_backslash_escapes_special_characters() {
    check(r"\-a", "a");
    check(r"a\:b", "\"a b\"");
    check(r"\OR", "or");
    check(r"a\*", "a");
    check(r#""a \" b*""#.replace('*', r"\*").as_str(), "\"a b\"");
    check(r"a\(b\)", "\"a b\"");
    check(r"a\ b", "\"a b\"");
}

#[test]
fn ok_dates_are_ranges() {
    let day = "date:[2026-03-01T23:00:00Z TO 2026-03-02T23:00:00Z}";
    check("date:2026-03-02", day);
    check("date:\"2026-03-02\"", day);
    check("Date:[2026-03-02 TO 2026-03-02]", day);
    check("date:{2026-03-01 TO 2026-03-03}", day);
    check("datetime:[2026-03-02T09:00:00+01:00 TO *]", "datetime:[2026-03-02T08:00:00Z TO *]");
    check("versioncreated:[* TO 2025}", "versioncreated:[* TO 2024-12-31T23:00:00Z}");
    check("embargoed:[* TO *]", "embargoed:[* TO *]");
    check("date:( 2026-03-02 OR [2026-03-02 TO 2026-03-02] )", &format!("{day} OR {day}"));
    check(
        "date:(2026-03-02T00:00:00+01:00)",
        "date:[2026-03-01T23:00:00Z TO 2026-03-01T23:00:01Z}",
    );
    check("date:[0001 TO 9999]", "date:[0000-12-31T22:47:48Z TO 9999-12-30T22:00:00.999999999Z}");
}

#[test]
fn err_missing_parts_are_named_with_their_position() {
    refuse("(a b OR cdefg", "expected ) at character 14");
    refuse("\"a b", "expected a closing quote at character 5");
    refuse("a OR", "expected a word at character 5");
    refuse("a AND ", "expected a word at character 7");
    refuse("NOT", "expected a word at character 4");
    refuse("OR a", "expected a word before OR at character 1");
    refuse("a OR AND b", "expected a word before AND at character 6");
    refuse("(a OR )", "expected a word before ) at character 7");
    refuse("a ()", "expected a word before ) at character 4");
    refuse("a )", "unexpected ) at character 3");
    refuse("a ]", "unexpected ] at character 3");
    refuse("a - b", "expected a word after - at character 4");
    refuse("a +", "expected a word after + at character 4");
    refuse("åäö (", "expected a word at character 6");
    refuse("a\\", "expected a character after \\ at character 3");
}

#[test]
fn err_terms_without_a_word_mean_nothing() {
    refuse("–", "expected a word at character 2");
    refuse("a OR –", "expected a word at character 7");
    refuse("a ||| b", "no letters or digits at character 5");
    refuse("\"\"", "no letters or digits at character 1");
    refuse("headline:–", "no letters or digits in headline at character 10");
    refuse("headline:", "expected a value after headline: at character 10");
    refuse("headline: a", "expected a value after headline: at character 10");
    refuse("(headline:)", "expected a value after headline: at character 11");
    refuse(":a", "expected a field before : at character 1");
    let unknown = "unknown field foo (put text that contains a colon in quotes) at character 3";
    refuse("a foo:b", unknown);
    let excerpt = "x".repeat(40);
    refuse(
        &format!("{}:b", "x".repeat(60)),
        &format!(
            "unknown field {excerpt}… (put text that contains a colon in quotes) at character 1"
        ),
    );
}

#[test]
fn err_a_star_needs_two_letters_before_it() {
    refuse("a*", "expected at least 2 letters or digits before * at character 2");
    refuse("abc-d*", "expected at least 2 letters or digits before * at character 6");
    refuse("ab-*", "expected letters or digits before * at character 4");
    refuse("ab*c", "a * can only be at the end of a word at character 3");
    refuse("ab**", "a * can only be at the end of a word at character 3");
    refuse("\"ab*\"", "a * within quotes is not a wildcard at character 4");
}

#[test]
fn err_ranges_are_of_dates_and_numbers() {
    let forms = "expected YYYY, YYYY-MM, YYYY-MM-DD or a time such as 2026-03-02T09:15:00+01:00";
    refuse("date:idag", &format!("idag is not a date, {forms} at character 6"));
    refuse("date:2026-02-30", &format!("2026-02-30 is not a date, {forms} at character 6"));
    refuse("date:2026*", &format!("2026* is not a date, {forms} at character 6"));
    refuse("date:[2026 TO x]", &format!("x is not a date, {forms} at character 15"));
    refuse("date:[2026 to 2027]", "expected TO at character 12");
    refuse("date:[2026 TO 2027", "expected ] or } at character 19");
    refuse("date:[2026 TO 2027)", "expected ] or } at character 19");
    refuse("date:[2026]", "expected TO at character 11");
    refuse("date:[ TO 2027]", "expected a date or * at character 8");
    refuse("date:[2026 TO ]", "expected a date or * at character 15");
    refuse("date:[2027 TO 2026]", "the range is empty at character 6");
    refuse("date:{2026 TO 2026]", "the range is empty at character 6");
    let forms = "expected digits such as 4, -1 or 0.5";
    refuse("urgency:high", &format!("high is not a number, {forms} at character 9"));
    refuse("urgency:4*", &format!("4* is not a number, {forms} at character 9"));
    refuse("urgency:[1 TO x]", &format!("x is not a number, {forms} at character 15"));
    refuse("urgency:[1 TO ]", "expected a number or * at character 15");
    refuse("urgency:[4 TO 1]", "the range is empty at character 9");
    refuse("urgency:{4 TO 4]", "the range is empty at character 9");
    let largest = f64::MAX;
    refuse(&format!("urgency:>{largest}"), "the range is empty at character 9");
    refuse(&format!("urgency:{{* TO -{largest}}}"), "the range is empty at character 9");
    let other = "only date and number fields have ranges, such as urgency:[1 TO 4] and \
                 versioncreated:>2026-03-01";
    refuse("slug:[a TO b]", &format!("{other} at character 6"));
    refuse("[1 TO 4]", &format!("{other} at character 1"));
}

#[test]
fn err_characters_that_no_text_has() {
    refuse("a\0", "not valid text at character 2");
    refuse("å\u{fffd}", "not valid text at character 2");
    refuse("a \u{7}", "not valid text at character 3");
}

#[test]
fn err_an_exceeded_limit_is_reported_at_its_position() {
    let words = |count| vec!["ab"; count].join(" ");
    assert!(parsed(&words(QUERY_CLAUSES_MAX)).is_ok());
    refuse(
        &words(QUERY_CLAUSES_MAX + 1),
        "more than 1000 words, phrases and ranges at character 3001",
    );
    let nested = |depth| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(parsed(&nested(QUERY_DEPTH_MAX)).is_ok());
    for depth in [QUERY_DEPTH_MAX + 1, 1000, 8000] {
        refuse(&nested(depth), "parentheses are nested deeper than 50 at character 51");
    }
    let prefixes = |count| vec!["ab*"; count].join(" OR ");
    assert!(parsed(&prefixes(QUERY_PREFIXES_MAX)).is_ok());
    refuse(&prefixes(QUERY_PREFIXES_MAX + 1), "more than 20 words that end in * at character 143");
    let phrase = |count| format!("\"{}\"", words(count));
    assert!(parsed(&phrase(PHRASE_WORDS_MAX)).is_ok());
    refuse(&phrase(PHRASE_WORDS_MAX + 1), "a phrase of more than 100 words at character 1");
    let long = "å".repeat(QUERY_TEXT_BYTES_MAX);
    refuse(&long, "longer than 16384 bytes at character 8193");
    assert!(parsed(&"-".repeat(10_000)).is_err());
    assert!(parsed(&format!("{}a", "NOT ".repeat(4000))).is_ok());
}

#[test]
fn err_long_queries_are_read_no_further_than_their_limit() {
    let clauses = "more than 1000 words, phrases and ranges at character 2001";
    refuse(&vec!["a"; 8000].join(" "), clauses);
    refuse(&"(-".repeat(8000), "parentheses are nested deeper than 50 at character 101");
    let unknown = "unknown field a (put text that contains a colon in quotes) at character 1";
    refuse(&"a:".repeat(8000), unknown);
    let bytes = "longer than 16384 bytes at character 16385";
    refuse(&"\0".repeat(64 * 1024), bytes);
}

/// Generates texts from pieces of the grammar, with accents and mistakes.
fn queries() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        "Öl",
        "é",
        "ß",
        "øre",
        "e-post",
        " ",
        " ",
        " ",
        "(",
        ")",
        "\"",
        "”",
        "OR",
        "AND",
        "NOT",
        " OR ",
        " AND ",
        " NOT ",
        "+",
        "-",
        "*",
        "ab*",
        ":",
        "headline:",
        "person.name:(",
        "subject.code:04",
        "date:2026-03-02",
        "date:",
        "[",
        "]",
        "}",
        "{2026 TO *]",
        "[2026-03 TO ",
        "2026",
        "\\",
        "!",
        "&&",
        "||",
        " & ",
        "–",
        "?",
        "^",
        "~",
        "/",
        "*:*",
        "headline:*",
        "urgency:",
        ">=",
        "<3",
        "-1.5",
        "[-1 TO 2.5}",
        "id:x-1",
        "http://a.b/media/image/x-1.jpg ",
        "http://a.b/",
        "uri:http://a.b/media/image/x-1",
        "\u{301}",
        "한",
        "़",
        "½",
        "İ",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn ok_parsed_queries_round_trip_through_printing(text in queries()) {
        match parsed(&text) {
            Ok(query) => {
                let printed = query.to_string();
                prop_assert_eq!(parsed(&printed), Ok(query), "{:?} prints {:?}", text, printed);
            }
            Err(error) => {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.position), "{error}");
            }
        }
    }

    #[test]
    fn ok_any_text_is_parsed_or_refused(text in any::<String>()) {
        if let Ok(query) = parsed(&text) {
            prop_assert_eq!(parsed(&query.to_string()), Ok(query));
        }
    }
}

/// Returns the words of a query that match inflected forms, in order.
fn words_with_forms(text: &str) -> String {
    fn collect(query: &Query, found: &mut Vec<String>) {
        match query {
            Query::All
            | Query::Dates(_)
            | Query::Numbers(_)
            | Query::Present(_)
            | Query::Item(_) => {}
            Query::Words(words) if words.forms => found.push(query.to_string()),
            Query::Words(_) => {}
            Query::And(parts) | Query::Or(parts) => {
                parts.iter().for_each(|part| collect(part, found));
            }
            Query::Not(inner) => collect(inner, found),
        }
    }
    let query = parse_with_forms(text, &TimeZone::UTC).unwrap();
    assert_eq!(query.clone().without_forms(), parse(text, &TimeZone::UTC).unwrap(), "{text}");
    let mut found = Vec::new();
    collect(&query, &mut found);
    found.join(" ")
}

#[test]
fn ok_words_in_lower_case_have_inflected_forms() {
    let check = |text, expected| assert_eq!(words_with_forms(text), expected, "{text}");
    check("hund katt OR älg", "hund katt älg");
    check("(hund (katt OR +älg)) AND is", "hund katt älg is");
    check("headline:hund Headline:Katt", "headline:hund");
    check("headline:(hund Katt) description_text:älg", "headline:hund description_text:älg");
    check("body_text:is body_html5:is", "body_text:is body_text:is");
    check("hund, #katt", "hund katt");
    check("hund && katt||älg", "hund katt älg");
    check("hund – katt? !is", "hund katt");
}

#[test]
fn ok_names_codes_phrases_prefixes_and_exclusions_have_no_inflected_forms() {
    for text in [
        "Bergen",
        "HUND",
        "iPhone",
        "Ärtor",
        "covid19",
        "04000000",
        "\"hund\"",
        "headline:\"hund\"",
        "\"en hund\"",
        "e-post",
        "hund*",
        "byline:berg",
        "person.name:(berg OR sten)",
        "subject.name:hundar",
        "uri:image/hundar",
        "-hund",
        "NOT (hund OR (katt älg))",
        "-(a -hund)",
        "date:2026-03-02",
        "",
    ] {
        assert_eq!(words_with_forms(text), "", "{text}");
    }
    assert_eq!(words_with_forms("hund -katt Bergen"), "hund");
    assert_eq!(words_with_forms("NOT NOT hund"), "hund");
}
