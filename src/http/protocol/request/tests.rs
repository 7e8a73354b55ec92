//! Tests of what the request parsers accept and refuse.

use axum::body::Body;
use proptest::prelude::*;

use super::*;
use crate::runtime::error::ErrorKind;
use crate::runtime::limits::{BODY_DISCARD_BYTES_MAX, QUERY_BYTES_MAX, QUERY_VALUES_MAX};
use model::account::OrderStatus;

/// The rule (or the own `errorCode`) and path of each entry.
pub(in crate::http) fn problems(error: &Error) -> Vec<(String, String)> {
    let entry = |detail: &ErrorDetail| {
        let code = detail.error_code.as_str();
        let rule = code.strip_suffix(".openapi.requestValidation").unwrap_or(code);
        (rule.to_owned(), detail.path.clone())
    };
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(error.message(), "Request validation failed");
    error.details().iter().map(entry).collect()
}

fn query(text: &str) -> QueryParameters {
    QueryParameters::parse(text).unwrap()
}

fn check_refused<T: std::fmt::Debug>(outcome: Result<T>, rule: &str, path: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(problems(&error), [(rule.to_owned(), path.to_owned())], "{error}");
}

#[test]
fn ok_a_query_is_form_encoded() {
    let query = query("");
    assert_eq!(query.text("q").unwrap(), None);
    let found = QueryParameters::parse("q=a+b%2Bc%20d&x&%71q=%C3%A5&empty=").unwrap();
    assert_eq!(found.text("q").unwrap(), Some("a b+c d"));
    assert_eq!(found.text("x").unwrap(), None);
    assert_eq!(found.text("qq").unwrap(), Some("å"));
    assert_eq!(found.text("empty").unwrap(), None);
}

#[test]
fn ok_a_list_is_the_same_in_every_form() {
    for text in [
        "p=a,b,-c",
        "p=a&p=b&p=-c",
        "p[]=a&p[]=b&p[]=-c",
        "p%5B%5D=a&p%5b%5d=b&p%5B%5D=-c",
        "p=a%2Cb&p[]=-c",
        "p=,a,,+b+,&q=x&p=&p[]=-c&pp=d&p[0]=e",
    ] {
        assert_eq!(query(text).list("p").unwrap(), ["a", "b", "-c"], "{text}");
    }
    assert!(query("q=1").list("p").unwrap().is_empty());
    assert_eq!(query("agr=1,-2&agr[]=+3").integers("agr").unwrap(), [1, -2, 3]);
}

#[test]
fn err_a_parameter_is_named_with_the_rule_that_it_breaks() {
    check_refused(query("a=1&a=2").text("a"), "type", "a");
    check_refused(query("a=B").variant::<OrderStatus>("a"), "enum", "a");
    check_refused(query("a=1,x").integers("a"), "type", "a");
    for text in [
        "x", "1.5", "1.", ".0", "1.00x", "1.0.0", "1e3", "%2B", "-", "--1", "0x1", "1%00",
        "%D9%A1",
    ] {
        check_refused(query(&format!("a={text}")).integer("a", 0..=9), "type", "a");
    }
    check_refused(query("a=-1").integer("a", 0..=9), "minimum", "a");
    check_refused(query("a=10").integer("a", 0..=9), "maximum", "a");
    check_refused(query("a=99999999999999999999").integer("a", 0..=9), "maximum", "a");
    check_refused(query("a=-99999999999999999999").integer("a", 0..=9), "minimum", "a");
    assert_eq!(query("a=%2B09").integer("a", 0..=9).unwrap(), Some(9));
}

#[test]
fn ok_a_number_may_have_a_fraction_of_zeros() {
    for (text, number) in [("9.0", 9), ("-1.000", -1), ("%2B2.0", 2)] {
        let found = query(&format!("a={text}")).integer("a", -9..=9).unwrap();
        assert_eq!(found, Some(number), "{text}");
    }
    assert_eq!(query("a=1.0,2").integers("a").unwrap(), [1, 2]);
    check_refused(query("a=99999999999999999999.0").integer("a", 0..=9), "maximum", "a");
}

#[test]
fn ok_a_parameter_without_a_value_is_absent() {
    let query = query("a=&b&c=&c=1&l=&l=x");
    for name in ["a", "b"] {
        assert_eq!(query.text(name).unwrap(), None);
        assert_eq!(query.integer(name, 1..=9).unwrap(), None);
        assert_eq!(query.variant::<OrderStatus>(name).unwrap(), None);
        assert_eq!(query.field(name).unwrap(), Some(""));
    }
    assert_eq!(query.integer("c", 1..=9).unwrap(), Some(1));
    assert_eq!(query.list("l").unwrap(), ["x"]);
    check_refused(query.field("c"), "type", "c");
}

#[test]
fn err_a_parameter_that_is_not_utf_8_is_named_when_it_is_read() {
    for text in ["%FF", "%ED%A0%80", "a%C3", "%C0%80", "%F4%90%80%80"] {
        let query = query(&format!("q={text}&p=A,{text}&%FF=1&ok=%C3%A5"));
        check_refused(query.text("q"), "format", "q");
        check_refused(query.list("p"), "format", "p");
        check_refused(query.integer("q", 0..=9), "format", "q");
        assert_eq!(query.text("ok").unwrap(), Some("å"));
    }
    // A malformed escape is literal.
    assert_eq!(query("q=%&p=100%25%2&r=%zz").text("q").unwrap(), Some("%"));
    assert_eq!(query("q=%&p=100%25%2&r=%zz").list("p").unwrap(), ["100%%2"]);
    assert_eq!(query("q=%&p=100%25%2&r=%zz").text("r").unwrap(), Some("%zz"));
}

proptest! {
    #[test]
    fn ok_a_parameter_is_read_as_it_was_encoded(text in "\\PC{0,40}") {
        let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let encoded = format!("x=1&q={encoded}&y");
        let query = query(&encoded);
        prop_assert_eq!(query.field("q").unwrap(), Some(text.as_str()));
    }
}

#[test]
fn err_a_query_without_end_is_refused() {
    check_refused(QueryParameters::parse(&"a".repeat(QUERY_BYTES_MAX + 1)), "maximum", "");
    check_refused(QueryParameters::parse(&"a&".repeat(QUERY_VALUES_MAX + 1)), "maximum", "");
    let long = format!("p={}", "a,".repeat(QUERY_VALUES_MAX + 1));
    check_refused(query(&long).list("p"), "maximum", "p");
    assert_eq!(query(&"p=a&".repeat(QUERY_VALUES_MAX)).list("p").unwrap().len(), QUERY_VALUES_MAX);
}

#[test]
fn all_problems_are_reported_at_once() {
    let query = query("size=x&status=y");
    let mut problems_found = ValidationErrors::default();
    let status = problems_found.check(query.variant::<OrderStatus>("status"));
    let size = problems_found.check(query.integer("size", 0..=9));
    assert!(status.is_none() && size.is_none());
    let error = problems_found.finish(status).unwrap_err();
    let expected = [("enum", "status"), ("type", "size")];
    assert_eq!(problems(&error), expected.map(|(rule, path)| (rule.to_owned(), path.to_owned())));
    assert_eq!(ValidationErrors::default().finish(Some(1)).unwrap(), 1);
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit() {
    assert_eq!(bytes(Body::from("ab"), 2).await.unwrap(), b"ab");
    assert_eq!(bytes(Body::from("ab"), 0).await.unwrap(), b"");
}

#[tokio::test]
async fn err_a_body_beyond_its_cap_is_too_large_however_it_comes() {
    let error = bytes(Body::from(vec![b' '; 11]), 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let chunks = (0..200).map(|_| Ok::<_, std::io::Error>(vec![b' '; BODY_DISCARD_BYTES_MAX]));
    let endless = Body::from_stream(futures_util::stream::iter(chunks));
    let error = bytes(endless, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let broken = futures_util::stream::iter([Err::<Vec<u8>, _>(std::io::Error::other("gone"))]);
    check_refused(bytes(Body::from_stream(broken), 10).await, "format", "");
}

proptest! {
    #[test]
    fn any_query_is_read_or_refused(text in "[a-c=&,%+\\[\\]0-9é-]{0,40}") {
        let query = QueryParameters::parse(&text).unwrap();
        for name in ["a", "b", ""] {
            let _ = query.text(name);
            let _ = query.integer(name, -5..=5);
            let _ = query.integers(name);
            // A query that is not UTF-8 is refused.
            for element in query.list(name).into_iter().flatten() {
                prop_assert!(!element.is_empty() && !element.contains(','));
            }
        }
    }

    #[test]
    fn a_list_is_read_as_it_is_written(
        elements in prop::collection::vec("[^,\\s]([^,]{0,5}[^,\\s])?", 0..6),
        bracketed: bool,
    ) {
        let name = if bracketed { "p[]" } else { "p" };
        let mut text = form_urlencoded::Serializer::new(String::new());
        let text = text.extend_pairs(elements.iter().map(|element| (name, element))).finish();
        let query = QueryParameters::parse(&text).unwrap();
        prop_assert_eq!(query.list("p").unwrap(), elements);
    }
}
