//! Push messages from the push client to strict stand-ins for the services of Apple and Google, which verify every
//! signature, header and size.

use std::{fs, time::Duration};

use jiff::{SignedDuration, Timestamp};
use model::account::DeviceKind;
use serde_json::Value;
use uuid::Uuid;
use wirephoto::runtime::clock;
use wirephoto::runtime::config::{self, SettingSources};
use wirephoto::transport::push::{Push, PushError, PushMessage};

use crate::{clients, common::checkout, receivers::Receiver};

/// A device token in Apple's format that ends in `end`, which selects the answer of the stand-in.
pub fn token(end: &str) -> String {
    format!("{:0>64}", format!("a{end}"))
}

/// Stand-ins for both services, and their values for the settings.
pub struct Services {
    pub apple: Receiver,
    pub google: Receiver,
    folder: tempfile::TempDir,
}

fn start(script: &str, mode: &str) -> Receiver {
    let folder = clients::python_scripts("push.txt", "push");
    let mut command = clients::client(&folder.join("push/bin/python"));
    command.arg(checkout("tests/clients").join(script)).env("PYTHONDONTWRITEBYTECODE", "1");
    Receiver::run(command, mode)
}

impl Services {
    pub fn start() -> Self {
        Self::in_modes("h2", "plain")
    }

    fn in_modes(apple: &str, google: &str) -> Self {
        let apple = start("apns_server.py", apple);
        let google = start("fcm_server.py", google);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), apple.ca() + &google.ca()).unwrap();
        Self { apple, google, folder }
    }

    /// The settings that point to the stand-ins.
    pub fn settings(&self) -> Vec<String> {
        let text = |receiver: &Receiver, name: &str| receiver.ready[name].as_str().unwrap().into();
        let url = |receiver: &Receiver| format!("https://127.0.0.1:{}", receiver.ready["port"]);
        let settings: [(&str, String); 9] = [
            ("apns_url", url(&self.apple)),
            // By another host name, so that the stand-in sees which one was called.
            ("apns_sandbox_url", format!("https://localhost:{}", self.apple.ready["port"])),
            ("apns_key", text(&self.apple, "key")),
            ("apns_key_id", text(&self.apple, "keyId")),
            ("apns_team_id", text(&self.apple, "teamId")),
            ("apns_topic", text(&self.apple, "topic")),
            ("fcm_url", url(&self.google)),
            ("fcm_service_account", text(&self.google, "account")),
            ("ca", self.folder.path().join("ca.pem").display().to_string()),
        ];
        settings.map(|(name, value)| format!("push.{name}={value}")).into()
    }

    fn push(&self) -> Push {
        push(&self.settings())
    }
}

fn push(settings: &[String]) -> Push {
    let flag = |setting: &String| {
        let (name, value) = setting.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    let sources = SettingSources { file: None, flags: settings.iter().map(flag).collect() };
    Push::from_config(&config::load(&sources).unwrap().0).unwrap()
}

/// The requests that a stand-in has received so far; fails if it found one invalid.
pub fn requests(receiver: &Receiver) -> Vec<Value> {
    let text = fs::read_to_string(receiver.ready["requests"].as_str().unwrap()).unwrap();
    // Text after the last line feed is still being written.
    let text = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let seen: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let wrong: Vec<&Value> = seen.iter().filter(|one| one.get("refused").is_some()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    seen
}

/// The requests for one device.
pub fn requests_to(receiver: &Receiver, token: &str) -> Vec<Value> {
    requests(receiver).into_iter().filter(|one| one["token"] == token).collect()
}

fn message(device: DeviceKind, token: &str) -> PushMessage {
    PushMessage {
        id: Uuid::now_v7(),
        device,
        token: token.to_owned(),
        title: "Isbrytare".to_owned(),
        body: "Isbrytaren Oden lämnar Luleå".to_owned(),
        url: "https://desk.example/image/oden".to_owned(),
        image: Some("https://desk.example/media/image/oden_NormalPreview.jpg".to_owned()),
        item_uri: "https://desk.example/media/image/oden".to_owned(),
        media_type: "image".to_owned(),
        notification: Uuid::now_v7(),
        collapse: "image/oden".to_owned(),
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

/// The outcome of one message as a word; checks that no text reveals a token.
async fn outcome(push: &Push, device: DeviceKind, token: &str) -> &'static str {
    let sent = push.send(&message(device, token), clock::now).await;
    let said = sent.as_ref().err().map(ToString::to_string).unwrap_or_default();
    assert!(!said.contains(token) && !said.contains("ya29."), "{said}");
    match sent {
        Ok(()) => "sent",
        Err(PushError::InvalidToken { .. }) => "dead",
        Err(PushError::Permanent { .. }) => "never",
        Err(PushError::Retry { after: None, .. }) => "later",
        Err(PushError::Retry { after: Some(wait), .. }) => {
            assert_eq!(wait, Duration::from_secs(1), "{said}");
            "later, after a second"
        }
    }
}

#[test]
fn an_ios_device_gets_an_alert_that_apple_accepts() {
    let services = Services::start();
    let push = services.push();
    let mut sent = message(DeviceKind::Ios, &token("1"));
    sent.collapse = "image/".to_owned() + &"x".repeat(100);
    run(push.send(&sent, clock::now)).unwrap();
    let bare = PushMessage { image: None, collapse: String::new(), ..sent.clone() };
    run(push.send(&bare, clock::now)).unwrap();
    let seen = requests_to(&services.apple, &token("1"));
    let first = &seen[0]["payload"];
    assert_eq!(first["aps"]["alert"]["title"], "Isbrytare");
    assert_eq!(first["aps"]["alert"]["body"], "Isbrytaren Oden lämnar Luleå");
    assert_eq!(first["uri"], sent.item_uri);
    assert_eq!(first["notification"], sent.notification.to_string());
    assert_eq!(seen[0]["id"], sent.id.to_string());
    assert_eq!(seen[0]["collapse"].as_str().unwrap().len(), 64);
    // The second message is a retry of the first: Apple recognises its id.
    assert_eq!((&seen[1]["repeated"], &seen[1]["collapse"]), (&true.into(), &Value::Null));
}

#[test]
fn an_android_device_gets_a_message_that_google_accepts() {
    let services = Services::start();
    let sent = message(DeviceKind::Android, "cK:APA91b_-1");
    run(services.push().send(&sent, clock::now)).unwrap();
    let seen = requests_to(&services.google, "cK:APA91b_-1");
    let message = &seen[0]["message"];
    assert_eq!(message["notification"]["title"], "Isbrytare");
    assert_eq!(message["notification"]["image"], *sent.image.as_ref().unwrap());
    assert_eq!(message["data"]["id"], sent.id.to_string());
    assert_eq!(message["android"]["collapse_key"], "image/oden");
}

#[test]
fn long_texts_are_truncated_to_what_both_services_accept() {
    let services = Services::start();
    let push = services.push();
    for (device, token) in [(DeviceKind::Ios, token("1")), (DeviceKind::Android, "a".repeat(2048))]
    {
        let mut long = message(device, &token);
        long.title = "\"å\u{1}".repeat(500);
        long.body = "𝄞\n\\".repeat(2000);
        run(push.send(&long, clock::now)).unwrap();
    }
    for seen in [&requests(&services.apple)[0], &requests(&services.google)[1]] {
        let bytes = seen["bytes"].as_u64().unwrap();
        assert!((4080..=4096).contains(&bytes), "{bytes}");
    }
}

#[test]
fn each_service_response_decides_the_outcome_for_device_and_message() {
    let services = Services::start();
    let push = services.push();
    run(async {
        for device in [DeviceKind::Ios, DeviceKind::IosSandbox, DeviceKind::Android] {
            for (end, expected) in [
                ("dead", "dead"),
                ("0400", "dead"),
                ("0700", "never"),
                ("1", "sent"),
                ("0429", "later, after a second"),
                ("0503", "later, after a second"),
            ] {
                // A different device for each kind, because each is busy once.
                let token = token(&format!("{}{end}", device.as_str().len()));
                assert_eq!(outcome(&push, device, &token).await, expected, "{device:?} {end}");
                if expected.starts_with("later") {
                    assert_eq!(outcome(&push, device, &token).await, "sent", "{device:?} {end}");
                }
            }
        }
    });
    requests(&services.apple);
    requests(&services.google);
}

#[test]
fn a_refused_provider_token_is_replaced_on_the_next_attempt() {
    let services = Services::start();
    let push = services.push();
    let token = token("0403");
    let outcomes = run(async {
        let first = outcome(&push, DeviceKind::Ios, &token).await;
        (first, outcome(&push, DeviceKind::Ios, &token).await)
    });
    assert_eq!(outcomes, ("later", "sent"));
    let seen = requests_to(&services.apple, &token);
    assert_ne!(seen[0]["bearer"], seen[1]["bearer"]);
}

#[test]
fn a_refused_access_token_is_replaced_on_the_next_attempt() {
    let services = Services::start();
    let push = services.push();
    let outcomes = run(async {
        let mut outcomes = Vec::new();
        for token in ["x0401", "x0401", "y"] {
            outcomes.push(outcome(&push, DeviceKind::Android, token).await);
        }
        outcomes
    });
    assert_eq!(outcomes, ["later", "sent", "sent"]);
    let kinds = requests(&services.google);
    let kinds: Vec<&str> = kinds.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["token", "message", "token", "message", "message"]);
}

#[test]
fn concurrent_messages_share_one_connection_and_one_token() {
    let services = Services::start();
    let push = services.push();
    run(async {
        let mut sending = tokio::task::JoinSet::new();
        for number in 0..100 {
            let (push, end) = (push.clone(), number.to_string() + "1");
            let device = if number % 2 == 0 { DeviceKind::Ios } else { DeviceKind::Android };
            sending.spawn(async move { outcome(&push, device, &token(&end)).await });
        }
        assert!(sending.join_all().await.iter().all(|outcome| *outcome == "sent"));
    });
    let (apple, google) = (requests(&services.apple), requests(&services.google));
    assert_eq!((apple.len(), google.len()), (50, 51));
    assert!(apple.iter().all(|one| one["connection"] == 1 && one["bearer"] == apple[0]["bearer"]));
    assert_eq!(google.iter().filter(|one| one["kind"] == "token").count(), 1);
}

fn a_moment_later() -> Timestamp {
    clock::now() + SignedDuration::from_secs(1)
}

#[test]
fn an_access_token_is_replaced_before_it_expires() {
    // The stand-in issues access tokens that are valid for 2 s.
    let services = Services::in_modes("h2", "short");
    let push = services.push();
    let sent = message(DeviceKind::Android, "x");
    run(async {
        push.send(&sent, clock::now).await.unwrap();
        push.send(&sent, a_moment_later).await.unwrap();
    });
    let seen = requests(&services.google);
    assert_eq!(seen.iter().filter(|one| one["kind"] == "token").count(), 2, "{seen:?}");
}

#[test]
fn an_unreachable_or_untrusted_service_is_retried_later() {
    let services = Services::in_modes("http1", "plain");
    let mut settings = services.settings();
    let ios = |settings: &[String]| run(outcome(&push(settings), DeviceKind::Ios, &token("1")));
    assert_eq!(ios(&settings), "later", "it speaks HTTP/1.1 alone");
    settings.retain(|setting| !setting.starts_with("push.ca="));
    assert_eq!(ios(&settings), "later", "its certificate is not trusted");
    let android = run(outcome(&push(&settings), DeviceKind::Android, "x"));
    assert_eq!(android, "later", "the certificate is not trusted");
    settings.push("push.apns_url=https://127.0.0.1:1".to_owned());
    assert_eq!(ios(&settings), "later", "nobody is there");
    assert!(requests(&services.google).is_empty());
}
