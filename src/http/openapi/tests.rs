//! The description against the sources: what is routed is described, and the reverse.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Bases, document, operations};

/// Addresses that a browser visits. No program calls them, so they are not described.
const PAGES: &[&str] = &[
    "/item/{}/{}/deliver",
    "/language",
    "/account",
    "/account/profile",
    "/account/orders",
    "/account/orders/{}",
    "/account/deliveries",
    "/account/devices",
    "/account/devices/remove",
    "/account/keys",
    "/account/keys/{}/revoke",
    "/account/channels",
    "/account/channels/edit",
    "/account/channels/remove",
    "/account/channels/test",
    "/account/security",
    "/account/security/password",
    "/account/security/sessions/{}/end",
    "/account/security/applications/end",
    "/account/users",
    "/account/users/new",
    "/account/users/{}",
    "/account/users/{}/access",
    "/collections",
    "/collections/add",
    "/collections/{}",
    "/collections/{}/delete",
    "/collections/{}/order",
    "/collections/{}/take",
    "/collections/{}/zip",
    "/notifications",
    "/notifications/new",
    "/notifications/{}",
    "/notifications/{}/delete",
    "/",
    "/item/{}/{}",
    "/item/{}/{}/download",
    "/item/{}/{}/crop",
    "/item/{}/{}/crop/download",
    "/item/{}/{}/crop/hires",
    "/assets/{*}",
    "/favicon.ico",
    "/docs",
    "/docs/try/{}",
    "/code",
    "/o/login",
    "/o/password",
    "/o/password/{}",
    "/o/consent",
    "/o/logout",
    "/unsubscribe/{}",
    "/mail/{}",
    // Below it everything that is described begins.
    "/media/",
];
/// The methods that axum's routing functions are named after.
const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// An address with the names of its parts left out, and a method.
type Route = (String, String);

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            found.push(path);
        }
    }
}

/// `/a/{}/{*}` for `/a/{one}/{*rest}`.
fn nameless(path: &str) -> String {
    let mut text = String::new();
    let mut is_name = false;
    for c in path.chars() {
        match c {
            '{' => is_name = true,
            '}' => is_name = false,
            '*' => {}
            _ if is_name => continue,
            _ => {}
        }
        text.push(c);
    }
    text
}

/// The argument list that begins behind an opening parenthesis.
fn arguments(text: &str) -> &str {
    let mut depth = 1;
    let end = text.char_indices().find(|(_, c)| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    });
    &text[..end.expect("parentheses are balanced").0]
}

/// The routes that a source registers.
fn routes_in(name: &str, text: &str) -> Vec<Route> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    // Whatever else registers addresses would be missed here.
    for other in [".nest(", ".nest_service(", ".route_service(", ".fallback_service("] {
        assert!(!code.contains(other), "{name}: `{other}` is not understood by this test");
    }
    let mut found = Vec::new();
    for (at, mark) in code.match_indices(".route(") {
        let arguments = arguments(&code[at + mark.len()..]).trim();
        let literal = arguments.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (path, handlers) =
            literal.unwrap_or_else(|| panic!("{name}: the address of {arguments} is no literal"));
        let is_called = |method: &str| {
            let call = format!("{method}(");
            let before = |at: usize| handlers[..at].chars().next_back().unwrap_or(' ');
            let mut calls = handlers.match_indices(&call).map(|(at, _)| before(at));
            calls.any(|c| c == '.' || c == ' ' || c == '\n')
        };
        let mut methods: Vec<&str> =
            METHODS.into_iter().filter(|method| is_called(method)).collect();
        if is_called("any") {
            // `http/media.rs` takes all of them and answers GET.
            methods.push("get");
        }
        assert!(!methods.is_empty(), "{name}: no method of {path}");
        found.extend(methods.into_iter().map(|method| (nameless(path), method.to_owned())));
    }
    found
}

/// What `src/web` registers.
fn routes() -> BTreeSet<Route> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/web");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap();
    let found = files.iter().flat_map(|path| routes_in(&path.to_string_lossy(), &text(path)));
    found.collect()
}

/// The addresses that `src/web` registers, with the names of their parts left out.
pub(in crate::http) fn paths() -> BTreeSet<String> {
    routes().into_iter().map(|(path, _)| path).collect()
}

/// Whether a description of `path` is about what the route `route` serves.
fn is_served_by(path: &str, route: &str) -> bool {
    match route.strip_suffix("{*}") {
        Some(prefix) => path.starts_with(prefix),
        None => path == route,
    }
}

fn whole() -> Value {
    document(Bases { public: "http://a", media: "http://a", auth: "http://b" }, operations())
}

/// Every value of the document with its place.
fn walk<'a>(value: &'a Value, place: &str, found: &mut Vec<(String, &'a Value)>) {
    found.push((place.to_owned(), value));
    match value {
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, value)| walk(value, &format!("{place}/{name}"), found));
        }
        Value::Array(elements) => {
            elements.iter().for_each(|value| walk(value, &format!("{place}/*"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn routes_are_read_from_sources() {
    let code = "Router::new()\n    .route(\"/a/{b}\", get(x::y).put(forget))\n    .route(\n        \
                \"/c/{*d}\",\n        delete(z),\n    )";
    let found = routes_in("here", code);
    let expected = [("/a/{}", "get"), ("/a/{}", "put"), ("/c/{*}", "delete")];
    assert_eq!(found, expected.map(|(path, method)| (path.to_owned(), method.to_owned())));
    assert!(routes().len() > 30, "{:?}", routes());
}

#[test]
fn every_route_is_described_or_is_a_page() {
    let described: Vec<_> =
        operations().iter().map(|one| (nameless(one.path), one.method)).collect();
    for (route, method) in routes() {
        let found =
            described.iter().any(|(path, own)| is_served_by(path, &route) && *own == method);
        assert!(
            found || PAGES.contains(&route.as_str()),
            "{method} {route} is served and not described: see src/web/openapi"
        );
    }
}

#[test]
fn every_description_is_served() {
    let routes = routes();
    for operation in operations() {
        let path = nameless(operation.path);
        let found = routes
            .iter()
            .any(|(route, method)| is_served_by(&path, route) && method == operation.method);
        assert!(found, "{} {path} is described and not served", operation.method);
    }
}

#[test]
fn operations_have_an_id_a_heading_and_the_parameters_of_their_path() {
    let mut ids = BTreeMap::new();
    for (place, value) in whole()["paths"].as_object().unwrap() {
        for (method, operation) in value.as_object().unwrap() {
            let place = format!("{method} {place}");
            let id = operation["operationId"].as_str().unwrap();
            assert_eq!(ids.insert(id.to_owned(), place.clone()), None, "{place}: {id}");
            for name in ["tags", "summary", "description", "security", "responses"] {
                assert!(operation.get(name).is_some(), "{place} has no {name}");
            }
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let mut own = BTreeSet::new();
            for parameter in parameters {
                let key = (parameter["in"].to_string(), parameter["name"].to_string());
                assert!(own.insert(key.clone()), "{place}: {key:?} twice");
                if parameter["in"] == "path" {
                    let name = format!("{{{}}}", parameter["name"].as_str().unwrap());
                    assert!(place.contains(&name), "{place} has no {name}");
                }
            }
            let in_path = own.iter().filter(|(place, _)| place == "\"path\"").count();
            assert_eq!(in_path, place.matches('{').count(), "{place}");
        }
    }
}

#[test]
fn references_lead_somewhere_and_components_are_used() {
    let document = whole();
    let mut values = Vec::new();
    walk(&document, "", &mut values);
    let mut used = BTreeSet::new();
    for (place, value) in values.iter().filter(|(place, _)| place.ends_with("/$ref")) {
        let target = value.as_str().unwrap().strip_prefix('#').unwrap();
        assert!(document.pointer(target).is_some(), "{place}: {target}");
        used.insert(target.to_owned());
    }
    for kind in ["schemas", "responses"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            let target = format!("/components/{kind}/{name}");
            assert!(used.contains(&target), "{target} is used by nothing");
        }
    }
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    for (place, value) in values.iter().filter(|(place, _)| place.ends_with("/security/*")) {
        let named = value.as_object().unwrap().keys().all(|name| schemes.contains_key(name));
        assert!(named, "{place}: {value}");
    }
}

#[test]
fn nothing_of_draft_4_is_left_in_the_news_item() {
    let document = whole();
    let mut values = Vec::new();
    walk(&document["components"]["schemas"]["NewsItem"], "", &mut values);
    for (place, value) in values {
        let is_property = |name: &str| place.ends_with(&format!("properties/{name}"));
        for old in ["id", "definitions", "$schema"] {
            assert!(!place.ends_with(&format!("/{old}")) || is_property(old), "{place}");
        }
        for bound in ["exclusiveMinimum", "exclusiveMaximum"] {
            assert!(!place.ends_with(bound) || value.is_number(), "{place}");
        }
    }
}

#[test]
fn addresses_below_another_base_say_so() {
    let document = whole();
    assert_eq!(document["servers"][0]["url"], "http://a");
    let token = &document["paths"]["/o/oauth2/token"]["post"];
    assert_eq!(token["servers"][0]["url"], "http://b");
    assert!(document["paths"]["/media/{mediaType}/{id}"]["get"].get("servers").is_none());
}
