//! Delivery channels as a path into the service's network (SSRF).

use std::{io::ErrorKind, net::TcpListener};

use api::deliveries::ChannelMaker;
use model::account::ChannelMethod;
use serde_json::json;

use crate::{
    common::{DEMO_KEY, Server, api::ApiCaller},
    deliveries::{ITEM, WebhookRequest, add, hook, id, run, trigger, until},
    keys_and_channels::{channel, find_channel, put, test_channel},
};

#[test]
fn a_channel_test_does_not_reveal_which_internal_names_exist() {
    let server = Server::demo();
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let said = |method: ChannelMethod, host: &str| {
        let settings = if method == ChannelMethod::Webhook {
            let url = format!("http://{host}:9/");
            json!({ "url": url, "secret": "s".repeat(24), "allowHttp": true })
        } else {
            json!({ "host": host, "port": 9, "username": "u", "password": "p4ssword" })
        };
        put(&editor, "probe", &channel(method, settings));
        let tested = test_channel(&editor, "probe");
        assert!(!tested.ok, "{tested:?}");
        tested.message.replace(host, "HOST")
    };
    for method in [ChannelMethod::Ftp, ChannelMethod::Webhook] {
        // One resolves to a private address, the other does not resolve.
        let (inside, nowhere) = (said(method, "localhost"), said(method, "none.invalid"));
        assert_eq!(inside, nowhere, "{method:?}");
        assert!(inside.contains("no public address"), "{method:?}: {inside}");
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
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let paper = find_channel(&editor, "paper").unwrap();
    assert_eq!(paper.made_by, ChannelMaker::Operator);
    let mut stated = channel(ChannelMethod::Webhook, json!(paper.settings));
    stated.formats = vec!["_NormalHires.jpg".to_owned()];
    assert_eq!(put(&editor, "paper", &stated).made_by, ChannelMaker::User);
    let tested = test_channel(&editor, "paper");
    assert!(tested.message.contains("private network"), "{tested:?}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody connected");
}
