//! Delivery channels as a path into the service's network (SSRF).

use std::{io::ErrorKind, net::TcpListener};

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    common::{DEMO_KEY, Server},
    deliveries::{ITEM, WebhookRequest, add, hook, id, run, trigger, until},
};

fn send(server: &Server, method: Method, path: &str, body: Option<&Value>) -> Value {
    let request = server.client.request(method, format!("{}/user/v1/channel{path}", server.url));
    let request = request.header("authorization", format!("ApiKey {DEMO_KEY}"));
    let request = request.header("content-type", "application/json");
    let response = request.body(body.map(Value::to_string).unwrap_or_default()).send().unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.json().unwrap()
}

#[test]
fn a_channel_test_does_not_reveal_which_internal_names_exist() {
    let server = Server::demo();
    let said = |method: &str, host: &str| {
        let settings = match method {
            "webhook" => json!({
                "url": format!("http://{host}:9/"), "secret": "s".repeat(24), "allowHttp": true,
            }),
            _ => json!({ "host": host, "port": 9, "username": "u", "password": "p4ssword" }),
        };
        let stated = json!({ "method": method, "formats": [".json"], "settings": settings });
        send(&server, Method::PUT, "/probe", Some(&stated));
        let tested = send(&server, Method::POST, "/probe/test", None);
        assert_eq!(tested["ok"], false, "{tested}");
        tested["message"].as_str().unwrap().replace(host, "HOST")
    };
    for method in ["ftp", "webhook"] {
        // One resolves to a private address, the other does not resolve.
        let (inside, nowhere) = (said(method, "localhost"), said(method, "none.invalid"));
        assert_eq!(inside, nowhere, "{method}");
        assert!(inside.contains("no public address"), "{method}: {inside}");
    }
}

#[test]
fn redirects_of_webhooks_are_not_followed() {
    let server = Server::demo();
    let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (outside, inside) = (bind(), bind());
    add(&server, "hook", "webhook", &hook(outside.local_addr().unwrap().port()));
    for status in ["302 Found", "307 Temporary Redirect"] {
        // A failed delivery is queued again.
        let delivered = id(trigger(&server, ITEM, "hook"));
        let location = format!("{status}\r\nlocation: http://{}/", inside.local_addr().unwrap());
        WebhookRequest::accept(&outside).answer(&location);
        until(&server, &delivered, "failed");
    }
    inside.set_nonblocking(true).unwrap();
    let came = inside.accept().map(|(_, from)| from);
    assert!(came.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "somebody called");
}

#[test]
fn formats_chosen_by_a_user_are_not_sent_into_the_operators_network() {
    let server = Server::demo();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("url=http://{}/", listener.local_addr().unwrap());
    let secret = format!("secret={}", "s".repeat(24));
    let (method, format) = (["--method", "webhook"], ["--format", ".json"]);
    let settings = ["--setting", &url, "--setting", &secret, "--setting", "allowHttp:=true"];
    let add = ["channel", "add", "demo-editor", "paper"];
    run(&server, &[&add[..], &method, &format, &settings].concat(), 0);
    let list = send(&server, Method::GET, "", None);
    let paper = list.as_array().unwrap().iter().find(|one| one["name"] == "paper").unwrap();
    assert_eq!(paper["madeBy"], "operator");
    let stated = json!({
        "method": "webhook", "formats": ["_NormalHires.jpg"], "settings": paper["settings"],
    });
    let changed = send(&server, Method::PUT, "/paper", Some(&stated));
    assert_eq!(changed["madeBy"], "user");
    let tested = send(&server, Method::POST, "/paper/test", None);
    assert!(tested["message"].as_str().unwrap().contains("private network"), "{tested}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody connected");
}
