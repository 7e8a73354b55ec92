//! Proptest strategies that generate documents from the JSON schema: every property occurs, with ordinary and
//! with hostile values.

use super::schemas;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// The nesting depth of generated documents.
const DEPTH: usize = 2;

/// Generates documents of the schema with roughly `share` percent of its properties.
pub(super) fn document(share: u32) -> BoxedStrategy<Value> {
    let schema = schemas::document();
    of_document(&schema, share, DEPTH)
}

fn of_document(root: &Value, share: u32, depth: usize) -> BoxedStrategy<Value> {
    let rest = of_object(root, root, share, depth);
    let kind =
        select(vec!["text", "picture", "graphic", "composite", "planning", "event", "video"]);
    let uri = prop_oneof![4 => address(), 1 => text()];
    (rest, kind, uri, 0..10_u8)
        .prop_map(|(mut document, kind, uri, typed)| {
            document["uri"] = json!(uri);
            if typed > 0 {
                document["type"] = json!(kind);
            }
            document
        })
        .boxed()
}

fn for_schema(
    root: &Value,
    schema: &Value,
    name: &str,
    budget: (u32, usize),
) -> BoxedStrategy<Value> {
    let (share, depth) = budget;
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return match (reference, depth) {
            ("#", 0) => Just(json!({"uri": "http://a.example/media/text/x"})).boxed(),
            // Nested documents have fewer properties, so that the size of a case stays bounded.
            ("#", _) => of_document(root, share / 3, depth - 1),
            _ => {
                let pointer = reference.trim_start_matches('#');
                for_schema(root, root.pointer(pointer).unwrap(), name, budget)
            }
        };
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return select(values.clone()).boxed();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => vec(for_schema(root, &schema["items"], name, budget), 0..4)
            .prop_map(Value::Array)
            .boxed(),
        Some("number" | "integer") => number().boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::Bool).boxed(),
        Some("string") => of_text(schema, name).prop_map(Value::String).boxed(),
        _ => of_object(root, schema, share.max(50), depth),
    }
}

fn of_object(root: &Value, schema: &Value, share: u32, depth: usize) -> BoxedStrategy<Value> {
    let probability = f64::from(share) / 100.0;
    let named = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let named: Vec<_> = named
        .map(|(name, schema)| {
            let value = for_schema(root, schema, name, (share, depth));
            (Just(name.clone()), option::weighted(probability, value))
        })
        .collect();
    let patterned = schema.get("patternProperties").and_then(Value::as_object);
    let patterned = patterned
        .into_iter()
        .flatten()
        .map(|(_, schema)| vec((key(), for_schema(root, schema, "", (share, depth))), 0..4));
    (named, patterned.collect::<Vec<_>>())
        .prop_map(|(named, patterned)| {
            let named = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
            Value::Object(named.chain(patterned.into_iter().flatten()).collect::<Map<_, _>>())
        })
        .boxed()
}

fn of_text(schema: &Value, name: &str) -> BoxedStrategy<String> {
    let usual = match (schema.get("format").and_then(Value::as_str), name) {
        (_, "body_html5" | "body_richhtml5") => return html().boxed(),
        (_, "scheme") => select(vec![
            "http://tt.se/spec/product/1.0",
            "http://tt.se/spec/subref/1.0/",
            "http://tt.se/spec/keyword/1.0/",
            "http://other.example/scheme/",
        ])
        .prop_map(str::to_owned)
        .boxed(),
        (_, "code") => "[A-Z0-9]{1,8}".boxed(),
        (_, "version") => "[0-9]{1,3}".boxed(),
        (_, "language" | "lang") => "[a-z]{2}(-[A-Z]{2})?".boxed(),
        (_, "bitrate") => "[0-9]{1,9}".boxed(),
        // Valid times, and times that look valid but that XML Schema refuses.
        (Some("date-time"), _) => select(vec![
            "2026-03-02T09:15:00+01:00",
            "2024-02-29T23:59:59.123456Z",
            "2026-03-02t09:15:00z",
            "2026-06-30T23:59:60Z",
            "2026-02-29T00:00:00Z",
            "2026-03-02T09:15:00+15:00",
            "0000-01-01T00:00:00Z",
        ])
        .prop_map(str::to_owned)
        .boxed(),
        (Some("date"), _) => {
            select(vec!["2026-03-02", "2026-02-30", "0000-01-01"]).prop_map(str::to_owned).boxed()
        }
        (Some("uri"), _) => address().boxed(),
        _ => text().boxed(),
    };
    // Every property also gets text that does not fit its type.
    prop_oneof![3 => usual, 1 => text()].boxed()
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => (0..12_u32).prop_map(|number| json!(number)),
        1 => any::<i64>().prop_map(|number| json!(number)),
        1 => (-180.0..180.0_f64).prop_map(|number| json!(number)),
        1 => select(vec![json!(1e300), json!(-1e-9), json!(4.0), json!(u64::MAX)]),
    ]
}

/// Generates URLs, valid or nearly so.
fn address() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "https?://[a-z]{1,9}\\.example(:[0-9]{1,4})?/media/[a-z]{1,6}/[A-Za-z0-9_-]{1,12}",
        1 => select(vec![
            "http://a.example/%zz",
            "http://a.example/å ä",
            "http://[::1]/",
            "http://a:b@c.example/",
            "http://a.example:port/",
            "http://a.example/?q=a&b=<c>#d#e",
            "urn:newsml:a.example:20260302:x",
            "://",
            "a:",
            "http://",
            "http://a.example/[x]",
        ])
        .prop_map(str::to_owned),
    ]
}

/// Generates names that the patterns of the schema allow.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z][0-9]{3}",
        1 => ("[a-zA-Z0-9]", text()).prop_map(|(first, rest)| first + &rest),
    ]
}

/// Generates text with the characters that break writers.
pub(super) fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zåäö ]{1,12}",
        4 => select(vec![
            "]]>", "<", ">", "&", "\"", "'", "&amp;", "&#0;", "<!--", "-->", "<![CDATA[", "?>",
            "\r\n", "\n", "\r", "\t", "\0", "\u{1}", "\u{b}", "\u{c}", "\u{1f}", "\u{7f}", "\u{85}",
            "\u{9f}", "\u{a0}", "\u{2028}", "\u{2029}", "\u{fffd}", "\u{fffe}", "\u{ffff}",
            "\u{feff}", "\u{1fffe}", "😀", "👩‍👩‍👧", "\u{202e}", "\u{200f}", "\\", "<0x0041>",
            "<ParaStyle:x>", "  ", "%41", "ttninjs:", "é", "e\u{301}",
        ])
        .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop_oneof![
        30 => vec(piece, 0..6).prop_map(|pieces| pieces.concat()),
        1 => (1000..20_000_usize).prop_map(|length| "lång & <text> ".repeat(length / 10)),
    ]
}

/// Generates HTML, both typical of newsrooms and malformed.
#[expect(clippy::too_many_lines, reason = "a list of pieces of markup")]
pub(super) fn html() -> impl Strategy<Value = String> {
    let tags = vec![
        "p",
        "/p",
        "h2",
        "/h2",
        "b",
        "/b",
        "i",
        "/i",
        "a href='https://a.example/?a=1&b=2'",
        "/a",
        "ul",
        "/ul",
        "ol start=3",
        "li",
        "/li",
        "table",
        "/table",
        "tr",
        "td",
        "th",
        "/tr",
        "/td",
        "br",
        "br/",
        "hr",
        "aside",
        "/aside",
        "div class='facts'",
        "/div",
        "p class=byline",
        "p class=ingress",
        "blockquote",
        "/blockquote",
        "script",
        "/script",
        "style",
        "/style",
        "img src=x onerror=alert(1)",
        "a href=javascript:alert(1)",
        "svg",
        "/svg",
        "x-unknown",
        "p onclick='x()' class=\"a\" class='b' style=\"y\"",
        "textarea",
        "/textarea",
        "title",
        "/title",
        "figure",
        "figcaption",
        "/figcaption",
        "/figure",
        "!-- comment --",
        "!doctype html",
        "?xml version='1.0'?",
        "p lang=\u{1} data-x='&quot;' data-x=2 xmlns:a=b a:b=c",
        "dl",
        "dt",
        "dd",
        "/dl",
        "pre",
        "/pre",
        "iframe",
        "/iframe",
        "caption",
        "tbody",
        "/tbody",
        "select",
        "option",
        "plaintext-not",
        "a\u{0}b",
        "p =x",
        "p \"=\"",
    ];
    let piece = prop_oneof![
        4 => select(tags).prop_map(|tag| format!("<{tag}>")),
        3 => "[a-zåäö ]{1,20}",
        1 => text(),
        1 => select(vec!["&nbsp;", "&#0;", "&#1;", "&#xFFFE;", "&#xD800;", "&notanentity;", "&lt", "<"])
            .prop_map(str::to_owned),
    ];
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}
