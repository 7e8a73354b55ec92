//! The simple types of the schema.

use super::lexical;

fn check(fits: fn(&str) -> bool, good: &[&str], bad: &[&str]) {
    good.iter().for_each(|text| assert!(fits(text), "{text} fits"));
    bad.iter().for_each(|text| assert!(!fits(text), "{text} does not fit"));
}

#[test]
fn dates_and_times_are_those_of_the_xml_schema() {
    check(
        lexical::is_date,
        &["2026-03-02", "2024-02-29", "2000-02-29"],
        &["2026-02-29", "1900-02-29", "0000-01-01", "2026-13-01", "2026-1-1", "2026-03-02Z", ""],
    );
    check(
        lexical::is_date_time,
        &["2026-03-02T09:15:00+01:00", "2026-03-02T09:15:00.123Z", "2026-03-02T23:59:59-14:00"],
        &[
            "2026-03-02T24:00:00Z",
            "2026-03-02T09:15:60Z",
            "2026-03-02T09:15Z",
            "2026-03-02T09:15:00",
            "2026-03-02T09:15:00.Z",
            "2026-03-02T09:15:00+14:01",
            "2026-03-02t09:15:00z",
            "2026-03-02T09:15:00Zx",
        ],
    );
}

#[test]
fn addresses_are_plain_and_complete() {
    check(
        lexical::is_uri,
        &["https://a.example/media/x_1-a?q=1&b=%20#f", "urn:newsml:x", "http://a.example:80/"],
        &["a.example", "http://", "http://a b/", "http://a/%zz", "http://å/", "http://a@b/", ":x"],
    );
}

#[test]
fn numbers_languages_and_codes_have_one_spelling() {
    check(
        lexical::is_positive,
        &["1", "120"],
        &["0", "01", "-1", "1.0", "", "9999999999999999999"],
    );
    check(lexical::is_decimal, &["1", "-18.06"], &["1e5", "1.", ".5", "", "-", "+1"]);
    check(lexical::is_language, &["sv", "en-GB"], &["", "sv_SE", "1a", "sv-", "abcdefghi"]);
    check(lexical::is_code, &["04000000", "a:b", "å"], &["", "a b", "a\u{a0}b", "\u{1}"]);
}
