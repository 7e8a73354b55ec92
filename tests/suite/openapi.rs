//! The description of the interface (contract api-18, api-19): the OpenAPI document, the page generated from it,
//! and whether the service behaves as both say.

use std::{fs, path::Path};

use jsonschema::Draft;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    clients,
    common::{
        DEMO_KEY, LARGE, Server,
        browser::{Browser, DESKTOP, PHONE},
        checkout, is_before_release, tokens,
    },
};

fn document(server: &Server) -> Value {
    serde_json::from_slice(&server.bytes("/openapi.json")).expect("JSON")
}

/// Method, address and description of every operation.
fn operations(document: &Value) -> Vec<(Method, String, &Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            let method = method.to_ascii_uppercase().parse().expect("a method");
            found.push((method, path.clone(), operation));
        }
    }
    found
}

/// The path with example values for its parameters.
fn filled(path: &str) -> String {
    let mut path = path.replace("{mediaType}", "image").replace("{rendition}", "NormalPreview");
    path = path.replace("{extension}", "webp").replace("{preset}", "card");
    for name in ["id", "w", "h", "x", "y", "token", "property", "association", "name"] {
        path = path.replace(&format!("{{{name}}}"), "1");
    }
    assert!(!path.contains('{'), "{path}");
    path
}

#[test]
fn the_description_is_openapi_3_1_version_0_57_1_and_cacheable() {
    let server = Server::demo();
    let response = server.get("/openapi.json");
    assert_eq!(response.status(), 200);
    let header = |name: &str| response.headers()[name].to_str().expect("ASCII").to_owned();
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("cache-control"), "public, max-age=300");
    assert_eq!(header("access-control-allow-origin"), "*");
    let etag = header("etag");
    let again = server.get_with("/openapi.json", &[("if-none-match", &etag)]);
    assert_eq!((again.status().as_u16(), again.bytes().expect("body").len()), (304, 0));
    let head = server.client.head(format!("{}/openapi.json", server.url)).send().expect("answer");
    assert_eq!(
        (head.status().as_u16(), &head.headers()["etag"]),
        (200, &response.headers()["etag"])
    );
    let document: Value = response.json().expect("JSON");
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(
        (&document["info"]["title"], &document["info"]["version"]),
        (&json!("Wirephoto"), &json!("0.57.1"))
    );
    assert_eq!(document["servers"], json!([{ "url": server.url }]));
}

#[test]
fn operations_under_another_base_declare_it() {
    let server = Server::demo_with(&[
        "server.public_url=https://api.example",
        "server.media_url=https://cdn.example",
        "server.auth_url=https://login.example",
    ]);
    let document = document(&server);
    assert_eq!(document["servers"], json!([{ "url": "https://api.example" }]));
    for (_, path, operation) in operations(&document) {
        let expected = match path.as_str() {
            path if path.starts_with("/media/") => json!([{ "url": "https://cdn.example" }]),
            path if path.starts_with("/o/") || path.starts_with("/.well-known") => {
                json!([{ "url": "https://login.example" }])
            }
            _ => Value::Null,
        };
        assert_eq!(operation["servers"], expected, "{path}");
    }
    let flows = &document["components"]["securitySchemes"]["oauth2"]["flows"];
    assert_eq!(flows["password"]["tokenUrl"], "https://login.example/o/oauth2/token");
}

#[test]
fn every_described_operation_is_served_and_other_methods_are_refused() {
    let server = Server::demo();
    let document = document(&server);
    let described = operations(&document);
    let methods = [Method::GET, Method::PUT, Method::POST, Method::DELETE, Method::PATCH];
    for (_, path, _) in &described {
        for method in &methods {
            let url = format!("{}{}", server.url, filled(path));
            let response = server.client.request(method.clone(), url).send().expect("answer");
            let status = response.status().as_u16();
            let allow = response.headers().contains_key("allow");
            let known = described.iter().any(|(one, own, _)| one == method && own == path);
            let text = response.text().unwrap_or_default();
            if known {
                assert!(status != 405 && !text.contains("no address"), "{method} {path}: {text}");
            } else {
                assert_eq!((status, allow), (405, true), "{method} {path}: {text}");
            }
        }
    }
}

/// The schema with every object closed, and the components that it needs.
fn closed(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_object = members.contains_key("properties");
            if is_object && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(closed);
        }
        Value::Array(elements) => elements.iter_mut().for_each(closed),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn responses_have_exactly_the_described_properties() {
    let server = Server::demo();
    let document = document(&server);
    let mut components = document["components"]["schemas"].clone();
    closed(&mut components);
    let admin = format!("Bearer {}", tokens::admin(&server));
    let key = format!("ApiKey {DEMO_KEY}");
    // Lists need an entry: a purchase.
    let bought = server.get_with(&format!("/media/{LARGE}.jpg"), &[("authorization", &key)]);
    assert_eq!(bought.status(), 200);
    let check = |credentials: &str, address: &str, path: &str| {
        let response = server.get_with(address, &[("authorization", credentials)]);
        let status = response.status().as_u16().to_string();
        let answer = &document["paths"][path]["get"]["responses"][&status];
        let answer = match answer["$ref"].as_str() {
            Some(target) => document.pointer(&target[1..]).expect("a component"),
            None => answer,
        };
        let schema = &answer["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{address}: {status} is not described");
        let mut whole = schema.clone();
        closed(&mut whole);
        whole["components"] = json!({ "schemas": components });
        let validator = jsonschema::options().with_draft(Draft::Draft202012).build(&whole);
        let body: Value = response.json().expect("JSON");
        if let Some(error) = validator.expect("a schema").iter_errors(&body).next() {
            panic!("{address}: {status}: {} {error}\n{body:#}", error.instance_path());
        }
        status
    };
    // Lists need a device too.
    let device = format!("{}/user/v1/device/t?type=ios&model=m&name=n", server.url);
    let registered = server.client.put(device).header("authorization", &key).send();
    assert_eq!(registered.expect("answer").status(), 200);
    let lists = [
        "/user/v1/user",
        "/user/v1/agreement",
        "/user/v1/organization",
        "/user/v1/order",
        "/user/v1/device",
        "/user/v1/key",
        "/user/v1/channel",
    ];
    for path in lists {
        assert_eq!(check(&key, path, path), "200", "{path}");
        assert_eq!(check("ApiKey wrong", path, path), "401", "{path}");
    }
    let users = "/user/v1/organization/user";
    assert_eq!(check(&admin, users, users), "200");
    assert_eq!(check(&key, users, users), "403");
    assert_eq!(check(&admin, &format!("{users}/999999"), &format!("{users}/{{id}}")), "404");
    assert_eq!(check(&key, "/user/v1/order?size=x", "/user/v1/order"), "400");
    let item = "/media/{mediaType}/{id}";
    assert_eq!(check(&key, &format!("/media/{LARGE}.json"), &format!("{item}.json")), "200");
    let sizes = format!("/media/{LARGE}.renditions.json");
    assert_eq!(check(&key, &sizes, &format!("{item}.renditions.json")), "200");
    let metadata = format!("/media/{LARGE}.metadata.json");
    assert_eq!(check(&key, &metadata, &format!("{item}.metadata.json")), "200");
    let ninjs = format!("/media/{LARGE}.ninjs.json");
    assert_eq!(check(&key, &ninjs, &format!("{item}.ninjs.json")), "200");
    let prices = format!("/media/{LARGE}/pricelist");
    assert_eq!(check(&key, &prices, &format!("{item}/pricelist")), "200");
    for path in ["/o/v2/user", "/o/oauth2/keys", "/health/live", "/health/ready"] {
        let closed_or_not = check(&admin, path, path);
        assert_eq!(closed_or_not, "200", "{path}");
    }
}

#[test]
fn the_documentation_page_shows_every_operation_and_loads_nothing_from_other_hosts() {
    // Without pictures there is nothing to wait for between pages.
    let server = Server::empty();
    let document = document(&server);
    for (window, name) in [(DESKTOP, "desktop"), (PHONE, "phone")] {
        let browser = Browser::open(window);
        browser.visit(&format!("{}/", server.url));
        browser.follow("footer a[href='/docs']");
        assert_eq!(browser.address(), format!("{}/docs", server.url));
        browser.check_layout(name);
        for (method, path, operation) in operations(&document) {
            let id = operation["operationId"].as_str().expect("an id");
            let shown = browser.text(&format!(
                "document.getElementById('{id}').querySelector('.address').innerText"
            ));
            let shown: String = shown.split_whitespace().collect();
            assert_eq!(shown, format!("{method}{path}"), "{name}");
        }
        let broken = "[...document.querySelectorAll('main a[href^=\"#\"]')]
            .filter(a => !document.getElementById(a.hash.slice(1))).map(a => a.hash)";
        assert_eq!(browser.eval(broken), json!([]), "{name}: links that lead nowhere");
        let inline = "document.querySelectorAll('script:not([src]), style, [style]').length";
        assert_eq!(browser.eval(inline), 0, "{name}");
        let foreign = "performance.getEntriesByType('resource').map(entry => entry.name)
            .filter(name => !name.startsWith(location.origin + '/'))";
        assert_eq!(browser.eval(foreign), json!([]), "{name}: requests to others");
        browser.screenshot(&format!("docs-{name}.png"));
    }
}

/// Runs schemathesis over the whole document, as a caller with `credentials`, with further `options`.
fn examine(server: &Server, folder: &Path, credentials: Option<&str>, options: &[&str]) {
    let mut command = clients::client(&folder.join("schemathesis/bin/st"));
    command.args(["--no-color", "--config-file", "schemathesis.toml", "run"]);
    command.arg(format!("{}/openapi.json", server.url)).args(options);
    if let Some(credentials) = credentials {
        command.args(["--header", &format!("Authorization: {credentials}")]);
    }
    let output = command.current_dir(folder).output().expect("schemathesis runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Operations:"), "{said}");
}

#[test]
fn schemathesis_finds_no_server_error_and_no_undocumented_response() {
    // Schemathesis makes logins fail all the time.
    let server = Server::demo_with(&[
        "auth.failures_per_user=1000000",
        "auth.failures_per_user_total=1000000",
        "auth.failures_per_address=1000000",
        // And it asks for sizes of any rendition, one of them a whole Hires as AVIF, which takes this build long.
        "media.client_megapixels_s=0",
        "media.render_time_s=100",
        "server.request_timeout_s=110",
    ]);
    let folder = clients::python_scripts("schemathesis.txt", "schemathesis");
    let admin = format!("Bearer {}", tokens::admin(&server));
    let key = format!("ApiKey {DEMO_KEY}");
    // Before a release, one of them meets every boundary of every parameter. The others see a part of the operations or
    // are refused before their parameters are read, so few requests show what there is to see.
    let few = ["--phases", "fuzzing", "--max-examples", "3"];
    let (of_admin, of_editor) =
        if is_before_release() { (&[][..], &few[..2]) } else { (&few[..], &few[..]) };
    examine(&server, &folder, Some(&admin), of_admin);
    examine(&server, &folder, Some(&key), of_editor);
    examine(&server, &folder, None, &few);
}

#[test]
fn the_news_item_schema_is_the_published_one() {
    let server = Server::empty();
    let described = document(&server)["components"]["schemas"]["NewsItem"].clone();
    let published =
        fs::read(checkout("crates/model/assets/ttninjs-schema_1.6.json")).expect("schema");
    let published: Value = serde_json::from_slice(&published).expect("JSON");
    let names = |schema: &Value| -> Vec<String> {
        schema["properties"].as_object().expect("properties").keys().cloned().collect()
    };
    assert_eq!(names(&described), names(&published));
    assert_eq!(described["required"], published["required"]);
    assert_eq!(described["additionalProperties"], false);
}
