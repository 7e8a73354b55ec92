//! Tests of the document against the sources: it describes every route and nothing else, and agrees with the
//! types and limits that the handlers use.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use strum::VariantNames;

use super::page::operations;
use super::{BaseUrls, document};
use crate::access::oauth::Prompt;
use crate::http::declared_endpoints;
use model::account::{Scope, ScopeSet};

/// The tables of rights, which have a row for each route.
const TABLES: [&str; 2] = ["apis.txt", "pages.txt"];
/// The methods after which axum's routing functions are named.
const METHODS: [&str; 6] = ["get", "put", "post", "delete", "patch", "options"];

/// A path without the names of its segments, and a method.
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

/// Converts `/a/{one}/{*rest}` to `/a/{}/{*}`.
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

/// Returns the argument list that follows an opening parenthesis.
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

/// Finds the routes that a source file registers.
fn routes_in(name: &str, text: &str) -> Vec<Route> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    // Other ways to register routes would be missed here.
    for other in [".nest(", ".nest_service(", ".route_service(", ".fallback_service("] {
        assert!(!code.contains(other), "{name}: `{other}` is not understood by this test");
    }
    let mut found = Vec::new();
    for (at, mark) in code.match_indices(".route(") {
        let arguments = arguments(&code[at + mark.len()..]).trim();
        // `declared_routes` knows these.
        if arguments.starts_with("E::PATH") {
            continue;
        }
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
            // `http/media/mod.rs` accepts all methods and answers GET.
            methods.push("get");
        }
        assert!(!methods.is_empty(), "{name}: no method of {path}");
        found.extend(methods.into_iter().map(|method| (nameless(path), method.to_owned())));
    }
    found
}

/// Finds the routes that `src/http` registers.
fn routes() -> BTreeSet<Route> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap();
    let found = files.iter().flat_map(|path| routes_in(&path.to_string_lossy(), &text(path)));
    found.chain(declared_routes()).collect()
}

/// The routes that `crates/api` declares. The addresses of media are patterns below one route.
fn declared_routes() -> Vec<Route> {
    let mut found = Vec::new();
    let paths = declared_endpoints().document().paths.into_iter();
    for (path, item) in paths.filter(|(path, _)| !path.starts_with("/media/")) {
        let methods = item.as_object().unwrap().keys();
        found.extend(methods.map(|method| (nameless(&path), method.clone())));
    }
    found
}

/// The paths that `src/http` registers, without the names of their segments.
pub(in crate::http) fn paths() -> BTreeSet<String> {
    routes().into_iter().map(|(path, _)| path).collect()
}

/// Whether the route `route` serves the described `path`.
fn is_served_by(path: &str, route: &str) -> bool {
    match route.strip_suffix("{*}") {
        Some(prefix) => path.starts_with(prefix),
        None => path == route,
    }
}

/// The document of a service whose OAuth2 service has a separate base URL.
pub(super) fn whole() -> Value {
    document::assemble(BaseUrls { public: "http://a", media: "http://a", auth: "http://b" })
}

/// Collects every value of the document with its JSON pointer.
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

/// The routes in the rows of a table of rights.
fn rows(table: &str) -> BTreeSet<Route> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/access_table");
    let text = fs::read_to_string(folder.join(table)).unwrap();
    text.lines().filter_map(route_of_row).collect()
}

/// The route that a line of a table begins with; `None` for other lines.
fn route_of_row(line: &str) -> Option<Route> {
    let (method, rest) = line.split_once(' ')?;
    let path = rest.split_whitespace().next().filter(|path| path.starts_with('/'))?;
    let path = path.split('?').next().unwrap_or_default();
    Some((nameless(path), method.to_lowercase()))
}

#[test]
fn every_route_has_a_row_in_the_tables_of_rights() {
    let rows: BTreeSet<Route> = TABLES.into_iter().flat_map(rows).collect();
    let routes = routes();
    let missing: Vec<_> = routes.difference(&rows).collect();
    assert!(missing.is_empty(), "no row of tests/suite/access_table has {missing:?}");
    let unknown: Vec<_> = rows.difference(&routes).collect();
    assert!(unknown.is_empty(), "no route serves {unknown:?} of tests/suite/access_table");
}

#[test]
fn every_route_for_programs_is_described() {
    let document = whole();
    let pages = rows("pages.txt");
    for (route, method) in routes().difference(&pages) {
        // OPTIONS announces what an address can do, as for each route; `/media/` is only the prefix.
        if method == "options" || route == "/media/" {
            continue;
        }
        let found = operations(&document)
            .any(|(path, own, _)| is_served_by(&nameless(path), route) && own == *method);
        assert!(
            found,
            "{method} {route} is served and not described: see src/http/openapi/mod.rs"
        );
    }
}

#[test]
fn every_description_is_served() {
    let routes = routes();
    for (path, method, _) in operations(&whole()) {
        let path = nameless(path);
        let found = routes.iter().any(|(route, own)| is_served_by(&path, route) && own == method);
        assert!(found, "{method} {path} is described and not served");
    }
}

#[test]
fn operations_have_an_id_a_heading_and_the_parameters_of_their_path() {
    let mut ids = BTreeMap::new();
    for (path, method, operation) in operations(&whole()) {
        let place = format!("{method} {path}");
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
fn nothing_is_left_to_be_filled_in() {
    let document = whole();
    let mut values = Vec::new();
    walk(&document, "", &mut values);
    for (place, value) in values {
        // An enumeration may contain `null`.
        assert!(!value.is_null() || place.ends_with("/enum/*"), "{place}");
        let text = value.as_str().unwrap_or_default();
        assert!(!text.contains("${") && !text.contains(".yaml#"), "{place}: {text}");
    }
}

#[test]
fn a_refusal_has_one_status() {
    let document = whole();
    let mut statuses = BTreeMap::new();
    for (path, method, operation) in operations(&document) {
        for (status, answer) in operation["responses"].as_object().unwrap() {
            let Some(target) = answer["$ref"].as_str() else { continue };
            let own = statuses.entry(target.to_owned()).or_insert_with(|| status.clone());
            assert_eq!(own, status, "{method} {path}: {target}");
        }
    }
}

#[test]
fn scopes_and_prompts_are_those_of_the_types() {
    let document = whole();
    let names = |place: &str| -> Vec<String> {
        document.pointer(place).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    let flows = "/components/securitySchemes/oauth2/flows";
    for flow in names(flows) {
        let scopes = names(&format!("{flows}/{flow}/scopes"));
        assert_eq!(scopes, Scope::VARIANTS, "{flow}");
    }
    let of_key: Vec<_> = ScopeSet::for_api_key().iter().map(Scope::as_str).collect();
    let key = &document["paths"]["/user/v1/key"]["post"]["security"];
    assert_eq!(key[0]["oauth2"], json!(of_key));
    let parameters = &document["paths"]["/o/oauth2/auth"]["get"]["parameters"];
    let prompt = parameters.as_array().unwrap().iter().find(|one| one["name"] == "prompt");
    let words = Prompt::VARIANTS.join(", ");
    let text = prompt.unwrap()["description"].as_str().unwrap();
    assert!(text.contains(&words), "{text}");
    let token = &document["paths"]["/user/v1/device/{token}"]["put"]["parameters"][0];
    let text = token["description"].as_str().unwrap();
    let bytes_max = api::user::DEVICE_TOKEN_BYTES_MAX;
    assert!(text.contains(&format!("{bytes_max} bytes")), "{text}");
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
