//! Tests of what the request parsers accept and refuse.

use axum::{
    body::Body,
    http::{Request, header},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use strum::{EnumString, VariantNames};

use super::*;
use crate::runtime::error::ErrorKind;
use crate::runtime::limits::{BODY_DISCARD_BYTES_MAX, QUERY_BYTES_MAX, QUERY_VALUES_MAX};

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
    assert_eq!(
        query("k=b,a").variants::<SampleKind>("k").unwrap(),
        [SampleKind::B, SampleKind::A]
    );
    let choices = [("usable", 1), ("replaced", 2)];
    assert_eq!(query("s=replaced,usable").list_of("s", &choices).unwrap(), [2, 1]);
}

#[test]
fn err_a_parameter_is_named_with_the_rule_that_it_breaks() {
    let choices = [("asc", 1), ("desc", 2)];
    check_refused(query("a=1&a=2").text("a"), "type", "a");
    check_refused(query("a=").required("a"), "required", "a");
    check_refused(query("b=1").required("a"), "required", "a");
    check_refused(query("a=B").variant::<SampleKind>("a"), "enum", "a");
    check_refused(query("a=a,c").variants::<SampleKind>("a"), "enum", "a");
    check_refused(query("a=ASC").one_of("a", &choices), "enum", "a");
    check_refused(query("a=asc,up").list_of("a", &choices), "enum", "a");
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
    let date = |text: &str| text.parse::<jiff::civil::Date>().ok();
    check_refused(query("a=x").parsed("a", "format", "YYYY-MM-dd", date), "format", "a");
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
    let choices = [("asc", 1)];
    let query = query("a=&b&c=&c=1&l=&l=x");
    for name in ["a", "b"] {
        assert_eq!(query.text(name).unwrap(), None);
        assert_eq!(query.integer(name, 1..=9).unwrap(), None);
        assert_eq!(query.variant::<SampleKind>(name).unwrap(), None);
        assert_eq!(query.one_of(name, &choices).unwrap(), None);
        assert_eq!(query.parsed(name, "format", "x", |_| None::<u8>).unwrap(), None);
        assert!(query.list_of(name, &choices).unwrap().is_empty());
        check_refused(query.required(name), "required", name);
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
    let query = query("size=x");
    let mut problems_found = ValidationErrors::new();
    let model = problems_found.check(query.required("model"));
    let size = problems_found.check(query.integer("size", 0..=9));
    assert!(model.is_none() && size.is_none());
    let error = problems_found.finish(model).unwrap_err();
    let expected = [("required", "model"), ("type", "size")];
    assert_eq!(problems(&error), expected.map(|(rule, path)| (rule.to_owned(), path.to_owned())));
    assert_eq!(ValidationErrors::new().finish(Some(1)).unwrap(), 1);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
enum SampleKind {
    A,
    B,
}

/// The properties of a sample body, as they were read.
#[derive(Debug, PartialEq, Eq)]
struct Sample {
    email: String,
    note: PropertyValue<String>,
    inner: PropertyValue<PropertyValue<bool>>,
    kind: PropertyValue<SampleKind>,
}

fn sample(body: &Value) -> Result<Sample> {
    read_object(body, |sample| Sample {
        email: sample.required("email", TextRule::EMAIL),
        note: sample.text("note", Presence::Optional, TextRule::line(3)),
        inner: sample.object("inner", Presence::NotNull, |inner| {
            inner.text("id", Presence::Optional, TextRule::UUID);
            inner.flag("on", Presence::NotNull)
        }),
        kind: sample.variant("kind", Presence::Optional),
    })
}

#[test]
fn ok_properties_are_read_as_absent_null_or_given() {
    let found = sample(&json!({ "email": "a@b.example" })).unwrap();
    let email = "a@b.example".to_owned();
    let absent = Sample {
        email,
        note: PropertyValue::Absent,
        inner: PropertyValue::Absent,
        kind: PropertyValue::Absent,
    };
    assert_eq!(found, absent);
    let body = json!({ "email": "a@b.example", "note": null, "inner": { "on": false },
        "kind": "b" });
    let given = Sample {
        note: PropertyValue::Null,
        inner: PropertyValue::Present(PropertyValue::Present(false)),
        kind: PropertyValue::Present(SampleKind::B),
        ..absent
    };
    assert_eq!(sample(&body).unwrap(), given);
    let note = |text: &str| sample(&json!({ "email": "a@b.example", "note": text })).unwrap().note;
    assert_eq!(note("åäö"), PropertyValue::Present("åäö".to_owned()));
    assert_eq!(note(""), PropertyValue::Present(String::new()));
}

#[test]
fn err_a_property_is_named_with_the_rule_that_it_breaks() {
    let check = |body: Value, expected: &[(&str, &str)]| {
        let error = sample(&body).unwrap_err();
        let expected: Vec<_> =
            expected.iter().map(|(rule, path)| ((*rule).to_owned(), (*path).to_owned())).collect();
        assert_eq!(problems(&error), expected, "{body}");
        assert!(error.details().iter().all(|detail| detail.location == "body"));
    };
    for body in [json!([]), json!("x"), json!(null), json!(1), json!(true)] {
        check(body, &[("type", "")]);
    }
    check(json!({}), &[("required", "email")]);
    check(json!({ "email": null }), &[("type", "email")]);
    check(json!({ "email": "x" }), &[("format", "email")]);
    check(
        json!({ "email": 1, "note": "long", "inner": { "on": null, "off": 1 }, "kind": "c",
            "__proto__": {} }),
        &[
            ("type", "email"),
            ("maximum", "note"),
            ("type", "inner.on"),
            ("additionalProperties", "inner.off"),
            ("enum", "kind"),
            ("additionalProperties", "__proto__"),
        ],
    );
    let email = "a@b.example";
    check(json!({ "email": email, "note": "a\u{0}" }), &[("pattern", "note")]);
    check(json!({ "email": email, "inner": null }), &[("type", "inner")]);
    check(json!({ "email": email, "inner": [] }), &[("type", "inner")]);
    check(json!({ "email": email, "inner": { "id": "1" } }), &[("format", "inner.id")]);
}

#[test]
fn ok_email_addresses() {
    let longest = format!("{}@{}.example", "a".repeat(64), "b".repeat(63));
    for text in ["a@b.se", "first.last+tag@sub.desk-1.example", "o'neil@x.co", &longest] {
        assert!(is_email(text), "{text}");
    }
}

#[test]
fn err_what_is_no_email_address() {
    let local = format!("{}@b.se", "a".repeat(65));
    let domain = format!("a@{}.se", "b".repeat(64));
    let whole = format!("a@{}se", "b.".repeat(150));
    for text in [
        "",
        "a",
        "@",
        "a@",
        "@b.se",
        "a@b",
        "a b@c.se",
        "a@b@c.se",
        "a@b..se",
        "a@.se",
        "a@b.se.",
        ".a@b.se",
        "a.@b.se",
        "a..b@c.se",
        "a@-b.se",
        "a@b-.se",
        "a@b.se\r\nBcc: c@d.se",
        "\"a\"@b.se",
        "a@[127.0.0.1]",
        "å@b.se",
        "a@å.se",
        "<a@b.se>",
        &local,
        &domain,
        &whole,
    ] {
        assert!(!is_email(text), "{text}");
    }
}

async fn read(body: Vec<u8>, kind: Option<&str>, bytes_max: usize) -> Result<Value> {
    let mut request = Request::put("/");
    if let Some(kind) = kind {
        request = request.header(header::CONTENT_TYPE, kind);
    }
    json(request.body(Body::from(body)).unwrap(), bytes_max).await
}

#[test]
fn a_uri_has_a_scheme_and_only_characters_of_uris() {
    let is_uri = |text: &str| TextRule::URI.check(text).is_none();
    for text in [
        "http://a.example/media/image/x",
        "HTTPS://[::1]:8080/x?y=%C3%A5#z",
        "urn:a:b",
        "x+y-1.z:~!$&'()*+,;=@",
    ] {
        assert!(is_uri(text), "{text}");
    }
    for text in [
        "",
        ":",
        "a:",
        "/media/image/x",
        "1a:b",
        "a b:c",
        "http://a/å",
        "a:b c",
        "a:%",
        "a:%4",
        "a:%gg",
        "a:%é9",
        "a:\n",
        "a:<b>",
        "é:a",
    ] {
        assert!(!is_uri(text), "{text:?}");
    }
}

fn uris(body: &Value) -> Result<Vec<String>> {
    read_objects(body, 3, |element| element.required("uri", TextRule::URI))
}

#[test]
fn elements_of_a_list_are_named_by_their_place() {
    let two = json!([{ "uri": "a:b" }, { "uri": "c:d" }]);
    assert_eq!(uris(&two).unwrap(), ["a:b", "c:d"]);
    check_refused(uris(&json!([])), "minimum", "");
    check_refused(uris(&json!({})), "type", "");
    check_refused(uris(&json!([1])), "type", "0");
    check_refused(uris(&json!([{ "uri": "a:b" }, { "uri": "x" }])), "format", "1.uri");
    check_refused(uris(&json!([{ "uri": "a:b", "x": 1 }])), "additionalProperties", "0.x");
    let four = json!([{}, {}, {}, {}]);
    check_refused(uris(&four), "maximum", "");
}

#[tokio::test]
async fn ok_a_body_is_json_under_its_cap() {
    for kind in [
        None,
        Some("application/json"),
        Some("Application/JSON; charset=latin-1"),
        Some("application/x-www-form-urlencoded"),
        Some("text/plain"),
        Some(""),
    ] {
        assert_eq!(read(b" {\"a\":1}\n".to_vec(), kind, 9).await.unwrap(), json!({ "a": 1 }));
    }
}

#[tokio::test]
async fn err_a_body_that_is_no_json_is_refused() {
    let deep = "[".repeat(100_000).into_bytes();
    for body in [&b"{"[..], b"{} {}", b"\xff", b"\"\\ud800\"", b"1e999", b"NaN", &deep] {
        check_refused(read(body.to_vec(), None, 1 << 20).await, "format", "");
    }
    for body in [&b""[..], b" \r\n"] {
        check_refused(read(body.to_vec(), None, 10).await, "required", "");
    }
    let form = read(b"name=Bridges".to_vec(), Some("application/x-www-form-urlencoded"), 20).await;
    check_refused(form, "format", "");
}

#[tokio::test]
async fn err_a_body_beyond_its_cap_is_too_large_however_it_comes() {
    let error = read(vec![b' '; 11], None, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let chunks = (0..200).map(|_| Ok::<_, std::io::Error>(vec![b' '; BODY_DISCARD_BYTES_MAX]));
    let endless = Body::from_stream(futures_util::stream::iter(chunks));
    let error = json(Request::new(endless), 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let broken = futures_util::stream::iter([Err::<Vec<u8>, _>(std::io::Error::other("gone"))]);
    check_refused(json(Request::new(Body::from_stream(broken)), 10).await, "format", "");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    let name = || prop_oneof!["email|note|inner|kind|on|id", "\\PC{0,4}"];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let members = prop::collection::vec((name(), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::from),
            members.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
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

    #[test]
    fn any_bytes_are_json_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Err(error) = parse_json(&bytes) {
            prop_assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn any_body_is_read_or_refused_with_a_path_that_names_the_property(body in any_json()) {
        let Err(error) = sample(&body) else { return Ok(()) };
        prop_assert!(!error.details().is_empty());
        for detail in error.details() {
            let name = detail.path.split('.').next().unwrap_or_default();
            let known = ["", "email", "note", "inner", "kind"].contains(&name);
            let additional = detail.error_code.starts_with("additionalProperties");
            prop_assert!(known || additional, "{:?}", detail);
        }
    }

    #[test]
    fn an_email_address_has_no_room_for_headers(text in "\\PC{0,10}@?[a-z\\r\\n. ]{0,10}") {
        if is_email(&text) {
            prop_assert!(text.chars().all(|c| c.is_ascii_graphic()));
            prop_assert_eq!(text.matches('@').count(), 1);
        }
    }
}
