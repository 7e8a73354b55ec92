//! Mails to recipients who did not ask for them.

use std::{
    fs,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    process::Command,
};

use api::deliveries::LoadDelivery;
use model::account::ChannelMethod;
use serde_json::{Value, json};

use super::DEMO_KEY;
use crate::{
    common::{Server, api::ApiCaller, news, server::output},
    deliveries::{ITEM, id, trigger, until},
    keys_and_channels::{self, channel},
    notifications::{email, make},
    receivers::python,
};

const VICTIM: &str = "victim@other.example";

fn server(settings: &[&str]) -> Server {
    let old = news::document("Gammal", &["FOTO"], "2026-03-02T09:15:00+01:00");
    let settings = [settings, &["notifications.retry_first_ms=50", "server.unready_s=0"]].concat();
    news::server(&settings, &[("image/old", old)])
}

/// Makes a notification that mails items about icebreakers to `address`.
fn subscribe(server: &Server, address: &str) {
    make(server, &email("Isvakt", address));
}

fn ingest_photo(server: &Server, id: &str) {
    let headline = format!("Isbrytare {id}");
    let document = news::document(&headline, &["FOTO"], "2026-03-05T09:15:00+01:00");
    news::ingest(server, &format!("image/{id}"), &document);
}

fn outbox(server: &Server) -> Vec<PathBuf> {
    let entries = fs::read_dir(server.data().join("outbox")).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "eml")).collect();
    found.sort();
    found
}

/// The mails, once `count` of them have arrived.
fn mails(server: &Server, count: usize) -> Vec<Value> {
    let written = || Some(outbox(server)).filter(|found| found.len() >= count);
    let found = server.until("the mails to be written", written);
    let read = |path: &PathBuf| {
        let said = output(python("read_mail.py").arg(path));
        serde_json::from_slice(&said.stdout).unwrap()
    };
    found.iter().map(read).collect()
}

fn text(mail: &Value) -> &str {
    mail["text"].as_str().unwrap()
}

/// The path of the link that a recipient follows.
fn link(server: &Server, mail: &Value) -> String {
    let text = text(mail);
    let from = text.find(&format!("{}/mail/", server.url)).expect("a link");
    let link = text[from + server.url.len()..].split_whitespace().next().unwrap();
    link.to_owned()
}

/// Runs a scene that counts mails per hour within one hour; runs it again if the clock entered the next hour.
fn within_an_hour(scene: impl Fn()) {
    let hour = || output(Command::new("date").arg("+%F %H")).stdout;
    loop {
        let begun = hour();
        let outcome = panic::catch_unwind(AssertUnwindSafe(&scene));
        match outcome {
            Ok(()) => return,
            Err(why) if hour() == begun => panic::resume_unwind(why),
            Err(_) => {}
        }
    }
}

fn outcomes(server: &Server, outcome: &str) -> f64 {
    server.metric("wirephoto_messages_total", &format!("outcome=\"{outcome}\""))
}

#[test]
fn a_recipient_learns_who_sends_the_mails_and_can_stop_them() {
    let server = server(&[]);
    subscribe(&server, VICTIM);
    ingest_photo(&server, "oden");
    let first = mails(&server, 1).remove(0);
    assert_eq!(first["to"], json!([VICTIM]));
    assert!(text(&first).contains("Demo Editor (Demo desk) sends"), "{first}");
    assert!(first["html"].as_str().unwrap().contains("Demo Editor (Demo desk)"), "{first}");
    ingest_photo(&server, "ymer");
    let second = mails(&server, 2).remove(1);
    assert!(!text(&second).contains("Demo desk"), "only the first one says so: {second}");
    let path = link(&server, &first);
    let page = server.get(&path);
    assert_eq!(page.status(), 200);
    let page = page.text().unwrap();
    assert!(page.contains("Demo Editor (Demo desk)") && page.contains(VICTIM), "{page}");
    let swedish = server.get_with(&path, &[("accept-language", "sv")]).text().unwrap();
    assert!(swedish.contains("Stoppa mejlen"), "{swedish}");
    // Link scanners of mail programs do not unsubscribe the recipient.
    ingest_photo(&server, "atle");
    mails(&server, 3);
    assert_eq!(server.post_form(&path, &[("answer", "stop")]).status(), 200);
    ingest_photo(&server, "frej");
    server.until("the refusal to be seen", || (outcomes(&server, "refused") >= 1.0).then_some(()));
    assert_eq!(outbox(&server).len(), 3);
    // The token occurs in no log line, and another token is refused.
    assert!(!server.log().contains(path.trim_start_matches("/mail/")));
    assert_eq!(server.get("/mail/x").status(), 404);
    assert_eq!(server.post_form("/mail/x", &[("answer", "stop")]).status(), 404);
    assert_eq!(server.post_form(&path, &[("answer", "x")]).status(), 400);
}

#[test]
fn a_mailbox_is_not_flooded_and_no_pending_item_is_lost() {
    within_an_hour(flood);
}

fn flood() {
    let server = server(&["mail.recipient_per_hour=2"]);
    subscribe(&server, VICTIM);
    // Another spelling of the same mailbox, and another recipient's address.
    subscribe(&server, "Victim+more@other.example");
    subscribe(&server, "desk@third.example");
    for id in ["oden", "ymer", "atle", "frej"] {
        ingest_photo(&server, id);
    }
    // Two mails to the third address are also sent at once.
    let postponed = || outcomes(&server, "postponed") >= 8.0;
    server.until("the others to wait", || postponed().then_some(()));
    let sent = mails(&server, 4);
    let to = |mail: &Value| mail["to"][0].as_str().unwrap().to_lowercase();
    let count = |end: &str| sent.iter().filter(|mail| to(mail).ends_with(end)).count();
    assert_eq!((sent.len(), count("other.example"), count("third.example")), (4, 2, 2));
    // The pending items become one mail per notification; a restart changes nothing.
    let list = |server: &Server| {
        let listed = server.command(&["outbox", "list", "--json"]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert_eq!(listed.matches("waiting").count(), 3, "{listed}");
    };
    list(&server);
    let server = server.restart(&["mail.recipient_per_hour=2", "server.unready_s=0"]);
    ingest_photo(&server, "urho");
    server.until("them to wait", || (outcomes(&server, "postponed") >= 3.0).then_some(()));
    list(&server);
    assert_eq!(outbox(&server).len(), 4);
}

#[test]
fn with_required_consent_only_confirmed_recipients_are_mailed() {
    let server = server(&["mail.confirm_foreign=true"]);
    subscribe(&server, VICTIM);
    subscribe(&server, "Demo-Editor@demo-desk.example");
    ingest_photo(&server, "oden");
    let sent = mails(&server, 2);
    let is_asked = |mail: &&Value| mail["to"] == json!([VICTIM]);
    let asked = sent.iter().find(is_asked).expect("it is asked");
    assert!(text(asked).contains("Nothing is sent unless you accept"), "{asked}");
    assert!(!text(asked).contains("oden"), "{asked}");
    ingest_photo(&server, "ymer");
    server.until("both to wait", || (outcomes(&server, "postponed") >= 2.0).then_some(()));
    // The user's own address needs no confirmation.
    assert_eq!(mails(&server, 3).iter().filter(is_asked).count(), 1);
    let path = link(&server, asked);
    assert!(server.get(&path).text().unwrap().contains("Accept e-mail"));
    assert_eq!(server.post_form(&path, &[("answer", "agree")]).status(), 200);
    let sent = mails(&server, 4);
    let both = sent.iter().filter(is_asked).find(|mail| text(mail).contains("oden"));
    assert!(both.is_some_and(|mail| text(mail).contains("ymer")), "{sent:?}");
}

#[test]
fn an_email_channel_does_not_mail_strangers_unannounced() {
    within_an_hour(mail_a_stranger);
}

fn mail_a_stranger() {
    let settings = ["delivery.retry_first_ms=50", "mail.recipient_per_hour=1"];
    let server = Server::demo_with(&settings);
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let put = |name: &str, to: &Value| {
        let stated = channel(ChannelMethod::Email, json!({ "to": to }));
        keys_and_channels::put(&editor, name, &stated);
    };
    put("both", &json!([VICTIM, "demo-editor@demo-desk.example"]));
    let delivered = id(trigger(&server, ITEM, "both"));
    until(&server, &delivered, "delivered");
    let sent = mails(&server, 2);
    let is_victims = |mail: &&Value| mail["to"] == json!([VICTIM]);
    let first = sent.iter().find(is_victims).expect("a mail of its own");
    assert!(text(first).contains("Demo Editor (Demo desk) sends"), "{first}");
    let own = sent.iter().find(|mail| !is_victims(mail)).unwrap();
    assert!(!text(own).contains("/mail/"), "no recipient reads another's link: {own}");
    // The mailbox has used up its mails of this hour: the next one waits, and the channel's test says so.
    put("one", &json!(VICTIM));
    let waits = id(trigger(&server, ITEM, "one"));
    let load = LoadDelivery { id: waits.parse().unwrap() };
    let error = server.until("the delivery to wait", || editor.ask(&load).unwrap().error);
    assert_eq!(error, "the hourly limit of mails is reached");
    let path = link(&server, first);
    assert_eq!(server.post_form(&path, &[("answer", "stop")]).status(), 200);
    let failed = until(&server, &waits, "failed");
    let expected = format!("{VICTIM} has declined mails from this user");
    assert_eq!(failed.error, Some(expected));
    assert_eq!(outbox(&server).len(), 2);
}
