//! Notifications of the type mobile (contract notifications-22): from the ingest of an item to the message that the
//! services of Apple and Google receive, through the server.

use api::notifications::{CreateMobileNotification, NotificationMediaType, NotificationQuery};
use api::user::RegisterDevice;
use model::{MediaType, account::DeviceKind};
use serde_json::Value;

use crate::{
    common::{DEMO_KEY, Server, api::ApiCaller, news},
    push_services::{Services, requests, requests_to, token},
    search::BUYER_KEY,
};

pub fn register(server: &Server, token: &str, kind: DeviceKind, key: &str) {
    let device =
        RegisterDevice { token: token.to_owned(), kind, name: None, model: "x".to_owned() };
    ApiCaller::key(server, key).ask(&device).unwrap();
}

/// Adds a notification of photographs with a word; its id.
pub fn notify(server: &Server, word: &str, key: &str) -> String {
    let notification = CreateMobileNotification {
        media_type: NotificationMediaType(Some(MediaType::Image)),
        title: "Vakt".to_owned(),
        query: NotificationQuery { q: Some(word.to_owned()), ..NotificationQuery::default() },
    };
    ApiCaller::key(server, key).ask(&notification).unwrap().id.to_string()
}

fn settings(services: &Services) -> Vec<String> {
    [
        services.settings(),
        vec!["server.unready_s=0".to_owned(), "notifications.retry_first_ms=50".to_owned()],
    ]
    .concat()
}

fn start(services: &Services) -> Server {
    let old = news::document("Isbrytare igår", &["FOTO"], "2026-03-02T09:15:00+01:00");
    let settings = settings(services);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    news::server(&settings, &[("image/old", old)])
}

/// Ingests a photograph.
fn ingest(server: &Server, id: &str, headline: &str) {
    let document = news::document(headline, &["FOTO"], "2026-03-05T09:15:00+01:00");
    news::ingest(server, &format!("image/{id}"), &document);
}

/// Waits until a device has received `count` messages, and returns them.
fn until(server: &Server, seen: &dyn Fn() -> Vec<Value>, count: usize) -> Vec<Value> {
    server.until("the message to arrive", || Some(seen()).filter(|all| all.len() >= count))
}

/// Ids of the items that were sent to a device, in order.
pub fn items(messages: &[Value]) -> Vec<&str> {
    let uri = |one: &Value| one.pointer("/payload/uri").is_some();
    let uris = messages.iter().map(|one| match uri(one) {
        true => one["payload"]["uri"].as_str().unwrap(),
        false => one["message"]["data"]["uri"].as_str().unwrap(),
    });
    uris.map(|uri| uri.rsplit('/').next().unwrap()).collect()
}

#[test]
fn every_device_of_a_user_gets_one_message_about_an_item_that_matches() {
    let services = Services::start();
    let server = start(&services);
    let (phone, sandbox, other) = (token("1"), token("2"), token("3"));
    register(&server, &phone, DeviceKind::Ios, DEMO_KEY);
    register(&server, &sandbox, DeviceKind::IosSandbox, DEMO_KEY);
    register(&server, "cK:APA91b_-1", DeviceKind::Android, DEMO_KEY);
    register(&server, &other, DeviceKind::Ios, BUYER_KEY);
    let id = notify(&server, "isbrytare", DEMO_KEY);
    ingest(&server, "oden", "Isbrytare lämnar Luleå");
    // Queued messages are sent concurrently, so the second item is ingested after the first was sent.
    for phone in [&phone, &sandbox] {
        until(&server, &|| requests_to(&services.apple, phone), 1);
    }
    until(&server, &|| requests_to(&services.google, "cK:APA91b_-1"), 1);
    ingest(&server, "match", "Match i snö");
    ingest(&server, "ymer", "Isbrytare i Kalix");
    for phone in [&phone, &sandbox] {
        let seen = until(&server, &|| requests_to(&services.apple, phone), 2);
        assert_eq!(items(&seen), ["oden", "ymer"]);
        let payload = &seen[0]["payload"];
        assert_eq!(payload["uri"], format!("{}/media/image/oden", server.url));
        assert_eq!(
            (&payload["mediaType"], &payload["notification"]),
            (&"image".into(), &id.as_str().into())
        );
        let alert = payload["aps"]["alert"].to_string();
        assert!(alert.contains("Isbrytare lämnar Luleå"), "{alert}");
    }
    let seen = until(&server, &|| requests_to(&services.google, "cK:APA91b_-1"), 2);
    assert_eq!(items(&seen), ["oden", "ymer"]);
    // Nothing more is sent: neither for earlier items nor to the other user.
    assert_eq!(requests(&services.apple).len(), 4);
}

#[test]
fn a_device_reported_as_unregistered_is_removed() {
    let services = Services::start();
    let server = start(&services);
    let phone = token("1");
    let dead = [token("dead"), token("0400")];
    register(&server, &phone, DeviceKind::Ios, DEMO_KEY);
    register(&server, &dead[0], DeviceKind::Ios, DEMO_KEY);
    register(&server, &dead[1], DeviceKind::IosSandbox, DEMO_KEY);
    register(&server, "x-dead", DeviceKind::Android, DEMO_KEY);
    notify(&server, "isbrytare", DEMO_KEY);
    ingest(&server, "oden", "Isbrytare lämnar Luleå");
    until(&server, &|| requests_to(&services.google, "x-dead"), 1);
    until(&server, &|| requests(&services.apple), 3);
    // Messages in flight are completed before the server exits, including their consequences.
    let settings = settings(&services);
    let server = server.restart(&settings.iter().map(String::as_str).collect::<Vec<_>>());
    ingest(&server, "ymer", "Isbrytare i Kalix");
    until(&server, &|| requests_to(&services.apple, &phone), 2);
    ingest(&server, "atle", "Isbrytare i hamn");
    let seen = until(&server, &|| requests_to(&services.apple, &phone), 3);
    assert_eq!(items(&seen), ["oden", "ymer", "atle"]);
    for token in &dead {
        assert_eq!(items(&requests_to(&services.apple, token)), ["oden"]);
    }
    assert_eq!(items(&requests_to(&services.google, "x-dead")), ["oden"]);
}

#[test]
fn a_message_deferred_by_a_busy_service_arrives_exactly_once() {
    let services = Services::start();
    let server = start(&services);
    let busy = [token("0429"), token("0503")];
    for token in &busy {
        register(&server, token, DeviceKind::Ios, DEMO_KEY);
    }
    for token in ["x0429", "x0503"] {
        register(&server, token, DeviceKind::Android, DEMO_KEY);
    }
    notify(&server, "isbrytare", DEMO_KEY);
    ingest(&server, "oden", "Isbrytare lämnar Luleå");
    let check = |messages: &[Value]| {
        let statuses: Vec<&Value> = messages.iter().map(|one| &one["status"]).collect();
        assert!(*statuses[0] != 200 && *statuses[1] == 200, "{statuses:?}");
        assert_eq!(items(messages), ["oden", "oden"]);
    };
    for token in &busy {
        let seen = until(&server, &|| requests_to(&services.apple, token), 2);
        check(&seen);
        assert_eq!(seen[0]["id"], seen[1]["id"], "the same message again");
    }
    for token in ["x0429", "x0503"] {
        check(&until(&server, &|| requests_to(&services.google, token), 2));
    }
    // Another item shows that nothing is left of the first one.
    ingest(&server, "ymer", "Isbrytare i Kalix");
    for token in &busy {
        let seen = until(&server, &|| requests_to(&services.apple, token), 3);
        assert_eq!(items(&seen), ["oden", "oden", "ymer"]);
    }
}
