//! Deliveries and mails that failed, which operators try again.

use std::fs;

use serde_json::{Value, json};

use super::{OPERATOR, audited, check_in_both_languages, shown};
use crate::common::{
    Server,
    api::ApiCaller,
    browser::{Browser, DESKTOP},
    news,
};
use crate::deliveries::{ITEM, OTHER, add, id, trigger, until};
use crate::notifications::{email, make};
use crate::receivers::{PASSWORD, Receiver};
use crate::site_account::Person;

const SETTINGS: [&str; 3] =
    ["delivery.retry_first_ms=50", "notifications.retry_first_ms=50", "server.unready_s=0"];

/// Requests a delivery once the server knows the channel; returns its id.
fn request(server: &Server, item: &str) -> String {
    server.until("the channel to be known", || {
        let answer = trigger(server, item, "desk");
        (answer.status() == 202).then(|| id(answer))
    })
}

#[test]
fn failed_deliveries_are_retried_through_the_page() {
    let server = Server::demo_with(&SETTINGS);
    add(&server, "desk", "directory", &["path=desk".to_owned()]);
    // A file in place of the channel's folder makes deliveries fail.
    let place = server.data().join("deliveries/desk");
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, "").unwrap();
    let [first, second] = [ITEM, OTHER].map(|item| request(&server, item));
    for id in [&first, &second] {
        until(&server, id, "failed");
    }
    let api = ApiCaller::login(&server, OPERATOR);
    let status = api.json("/operator/v1/status");
    assert_eq!(status["queues"]["deliveries"]["failed"], 2, "{status}");
    let listed = api.json("/operator/v1/delivery?state=failed&size=1");
    let newest = &listed["deliveries"][0];
    assert_eq!(newest["id"], second.as_str(), "{listed}");
    assert_eq!(newest["organizationName"], "Demo desk");
    assert!(newest["error"].is_string());
    assert_eq!(listed["deliveries"].as_array().unwrap().len(), 1);

    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, OPERATOR, "/operator");
    browser.follow("a[href='/operator/deliveries?state=failed']");
    check_in_both_languages(&browser, "operator-deliveries");
    fs::remove_file(&place).unwrap();
    // The newest delivery is the first one of the list.
    browser.follow("ul.orders form button");
    assert!(shown(&browser).contains("1 will be tried again."), "{}", shown(&browser));
    until(&server, &second, "delivered");
    // It was not chosen.
    until(&server, &first, "failed");
    browser.follow(".page-head form button");
    assert!(shown(&browser).contains("1 will be tried again."), "{}", shown(&browser));
    until(&server, &first, "delivered");
    assert!(place.is_dir());
    browser.visit(&format!("{}/operator/deliveries", server.url));
    assert!(shown(&browser).contains("Delivered"), "{}", shown(&browser));

    let person = Person::log_in(&server, OPERATOR);
    let refused = |id: &str, status: u16, text: &str| {
        let response = person.post("/operator/deliveries", &[("id", id)]);
        assert_eq!(response.status(), status, "{id}");
        let page = response.text().unwrap();
        assert!(page.contains(text) && page.contains("role=\"alert\""), "{text}: {page}");
    };
    refused(&first, 409, "This delivery has not failed");
    refused("0198c5e2-0000-7000-8000-000000000001", 404, "This delivery does not exist");
    refused("x", 400, "valid UUID");
    let events = audited(&server, "delivery_retried");
    let facts: Vec<(&str, &str)> = events
        .iter()
        .map(|event| {
            assert_eq!(event["userName"], OPERATOR, "{event}");
            let text = |name: &str| event[name].as_str().unwrap_or_default();
            (text("object"), text("detail"))
        })
        .collect();
    let chosen = format!("delivery/{second}");
    assert_eq!(facts, [("", "1 deliveries"), (chosen.as_str(), "")]);
}

fn messages(api: &ApiCaller<'_>, state: &str) -> Vec<Value> {
    let listed = api.json(&format!("/operator/v1/message?state={state}"));
    listed["messages"].as_array().unwrap().clone()
}

/// A server with mails that a mail server refused for good.
fn server_with_parked_mails(count: usize) -> Server {
    let receiver = Receiver::start("smtp_server.py", "plain");
    let mail = [
        "mail.host=127.0.0.1".to_owned(),
        format!("mail.port={}", receiver.ready["port"]),
        "mail.tls=none".to_owned(),
        "mail.username=desk".to_owned(),
        format!("mail.password={PASSWORD}"),
    ];
    let mail: Vec<&str> = mail.iter().map(String::as_str).collect();
    let settings = [&SETTINGS[..], &mail].concat();
    let document = |headline| news::document(headline, &["FOTO"], "2026-03-02T09:15:00+01:00");
    let server = news::server(&settings, &[("image/old", document("Gammal"))]);
    for number in 0..count {
        // The receiver refuses mails to this address.
        make(&server, &email(&format!("n{number}"), "nobody@example.com"));
    }
    news::ingest(&server, "image/oden", &document("Isbrytare Oden"));
    let api = ApiCaller::login(&server, OPERATOR);
    server.until("the mails to be parked", || {
        (messages(&api, "parked").len() == count).then_some(())
    });
    server
}

#[test]
fn parked_mails_are_retried_and_removed_through_the_page() {
    let server = server_with_parked_mails(3);
    // Without a mail server mails are written to a folder, so nothing refuses them any more.
    let server = server.restart(&SETTINGS);
    let api = ApiCaller::login(&server, OPERATOR);
    let parked = messages(&api, "");
    assert_eq!(parked.len(), 3);
    for message in &parked {
        assert_eq!((&message["kind"], &message["state"]), (&json!("email"), &json!("parked")));
        assert_eq!((&message["userName"], &message["user"]), (&json!("demo-editor"), &json!(101)));
        assert!(message["error"].as_str().unwrap().contains("no such user"), "{message}");
    }
    let status = api.json("/operator/v1/status");
    let mail = status["queues"]["messages"].as_array().unwrap();
    let mail = mail.iter().find(|queue| queue["transport"] == "mail").unwrap();
    assert_eq!((&mail["waiting"], &mail["parked"]), (&json!(0), &json!(3)));

    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, OPERATOR, "/operator");
    browser.follow("a[href='/operator/messages?state=parked']");
    check_in_both_languages(&browser, "operator-messages");
    browser.follow("ul.list form button[value=remove]");
    assert!(shown(&browser).contains("will not be sent"), "{}", shown(&browser));
    assert_eq!(messages(&api, "parked").len(), 2);
    browser.follow("ul.list form button[value=retry]");
    assert!(shown(&browser).contains("1 will be tried again."), "{}", shown(&browser));
    let written = |count: usize| {
        server.until("the mail to be written", || {
            let entries = fs::read_dir(server.data().join("outbox")).ok()?.flatten();
            let mails =
                entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "eml"));
            (mails.count() == count).then_some(())
        });
    };
    written(1);
    browser.follow(".page-head form button");
    written(2);
    server.until("the outbox to be empty", || messages(&api, "").is_empty().then_some(()));
    browser.visit(&format!("{}/operator/messages", server.url));
    assert!(shown(&browser).contains("No messages."), "{}", shown(&browser));

    let person = Person::log_in(&server, OPERATOR);
    let id = parked[0]["id"].as_str().unwrap();
    for (action, text) in
        [("retry", "This message is not parked"), ("remove", "This message does not exist")]
    {
        let response = person.post("/operator/messages", &[("id", id), ("do", action)]);
        assert_eq!(response.status(), 404, "{action}");
        let page = response.text().unwrap();
        assert!(page.contains(text), "{text}: {page}");
    }
    assert_eq!(audited(&server, "message_removed").len(), 1);
    let retried = audited(&server, "message_retried");
    assert_eq!(retried.len(), 2, "{retried:?}");
    assert!(retried.iter().all(|event| event["userName"] == OPERATOR), "{retried:?}");
    assert!(retried[1]["object"].as_str().unwrap().starts_with("message/"), "{retried:?}");
}
