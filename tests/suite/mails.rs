//! Notification mails, as readers and mail programs see them (contract notifications-16).

use std::fs;
use std::path::PathBuf;

use api::notifications::{ListNotifications, NotificationMediaType};
use serde_json::{Value, json};

use crate::common::api::ApiCaller;
use crate::common::browser::{Browser, PHONE};
use crate::common::server::output;
use crate::common::{DEMO_KEY, Server, news};
use crate::notifications::{email, ingest_photo, make};
use crate::receivers::{PASSWORD, Receiver, python};

const ADDRESS: &str = "desk@example.com";

/// The mails in the outbox, once there are `count` of them.
fn mails(server: &Server, count: usize) -> Vec<PathBuf> {
    let folder = server.data().join("outbox");
    let list = || {
        let entries = fs::read_dir(&folder).ok()?.flatten().map(|entry| entry.path());
        let mut found: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|end| end == "eml")).collect();
        found.sort();
        (found.len() >= count).then_some(found)
    };
    server.until("the mails to be written", list)
}

/// A mail as a reader sees it.
fn read(path: &std::path::Path) -> Value {
    let said = output(python("read_mail.py").arg(path));
    serde_json::from_slice(&said.stdout).unwrap()
}

fn server(settings: &[&str]) -> Server {
    let old = news::document("Gammal", &["FOTO"], "2026-03-02T09:15:00+01:00");
    news::server(
        &[settings, &["notifications.retry_first_ms=50", "server.unready_s=0"]].concat(),
        &[("image/old", old)],
    )
}

#[test]
fn a_mail_shows_its_item_with_a_picture_and_unsubscribes_with_one_click() {
    let server = server(&[]);
    make(&server, &email("Isvakt", ADDRESS));
    ingest_photo(&server, "oden", "Isbrytare <i>Oden</i> & \"Ymer\" i Luleå");
    let mail = read(&mails(&server, 1)[0]);
    assert_eq!(mail["defects"], json!([]));
    assert_eq!(mail["to"], json!(["desk@example.com"]));
    let subject = mail["subject"].as_str().unwrap();
    assert!(subject.contains("Isbrytare <i>Oden</i> & \"Ymer\" i Luleå"), "{subject}");
    let page = format!("{}/item/image/oden", server.url);
    let (text, html) = (mail["text"].as_str().unwrap(), mail["html"].as_str().unwrap());
    assert!(text.contains(&page) && text.contains("Isvakt"), "{text}");
    assert!(html.contains(&page) && html.contains("Isbrytare &lt;i&gt;Oden"), "{html}");
    assert!(html.contains("cid:") && !html.contains("<img src=\"http"), "{html}");
    let pictures = mail["inline"].as_array().unwrap();
    assert_eq!(pictures.len(), 1, "{pictures:?}");
    assert_eq!(pictures[0]["type"], "image/jpeg");
    let cid = pictures[0]["id"].as_str().unwrap().trim_matches(['<', '>']);
    assert!(html.contains(&format!("cid:{cid}")), "{html}");
    let thumbnail = server.bytes("/media/image/oden_NormalThumbnail.jpg");
    let sum = crate::receivers::sha256(&thumbnail);
    assert_eq!(pictures[0]["sha256"], sum);

    // The one-click request of mail programs, from the two headers of RFC 8058.
    let link = mail["unsubscribe"].as_str().unwrap().trim_matches(['<', '>']).to_owned();
    assert_eq!(mail["unsubscribe-post"], "List-Unsubscribe=One-Click");
    assert!(text.contains(&link) && html.contains(&link));
    let looked = server.client.get(&link).send().unwrap();
    assert_eq!(looked.status(), 200);
    ingest_photo(&server, "ymer", "Isbrytare Ymer");
    assert_eq!(mails(&server, 2).len(), 2, "looking at the link ends nothing");
    let form = [("List-Unsubscribe", "One-Click")];
    for _ in 0..2 {
        let ended = server.client.post(&link).form(&form).send().unwrap();
        assert_eq!(ended.status(), 200);
    }
    // A sixteenth of all links end with an A themselves.
    let (most, last) = link.split_at(link.len() - 1);
    let bad = format!("{most}{}", if last == "A" { "E" } else { "A" });
    assert_eq!(server.client.post(&bad).form(&form).send().unwrap().status(), 404);
    make(&server, &email("Nyvakt", ADDRESS));
    for id in ["atle", "frej"] {
        ingest_photo(&server, id, "Isbrytare igen");
    }
    // The second mail shows that nothing of the first is left.
    let found = mails(&server, 4);
    let titles: Vec<bool> =
        found.iter().map(|path| read(path)["text"].as_str().unwrap().contains("Nyvakt")).collect();
    assert_eq!(titles, [false, false, true, true], "only the new notification is mailed");
}

#[test]
fn a_reader_ends_a_notification_in_the_browser() {
    let server = server(&[]);
    make(&server, &email("Isvakt", ADDRESS));
    ingest_photo(&server, "oden", "Isbrytare Oden");
    let mail = read(&mails(&server, 1)[0]);
    let link = mail["unsubscribe"].as_str().unwrap().trim_matches(['<', '>']);
    let browser = Browser::open(PHONE);
    browser.visit(link);
    browser.check_layout("unsubscribe");
    assert!(browser.text("document.querySelector('main').innerText").contains("Isvakt"));
    browser.screenshot("unsubscribe-phone.png");
    browser.follow("main button");
    browser.check_layout("unsubscribed");
    browser.screenshot("unsubscribed-phone.png");
    let every = ListNotifications { media_type: NotificationMediaType(None) };
    assert_eq!(ApiCaller::key(&server, DEMO_KEY).ask(&every), Ok(Vec::new()));
}

#[test]
fn a_mail_server_with_tls_and_login_gets_the_mails_and_what_it_refuses_is_parked() {
    for mode in ["starttls", "tls"] {
        let receiver = Receiver::start("smtp_server.py", mode);
        let settings = [
            "mail.host=localhost".to_owned(),
            format!("mail.port={}", receiver.ready["port"]),
            format!("mail.tls={mode}"),
            "mail.username=desk".to_owned(),
            format!("mail.password={PASSWORD}"),
            "mail.from=Wire <wire@desk.example>".to_owned(),
            format!("mail.ca={}", receiver.ready["ca"].as_str().unwrap()),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let server = server(&settings);
        make(&server, &email("a", ADDRESS));
        make(&server, &email("b", "nobody@example.com"));
        ingest_photo(&server, "oden", "Isbrytare Oden");
        let kept = receiver.files().join("0.json");
        let envelope = server.until("the mail", || fs::read(&kept).ok().filter(|b| !b.is_empty()));
        let envelope: Value = serde_json::from_slice(&envelope).unwrap();
        let wanted = json!({
            "from": "wire@desk.example", "to": ["desk@example.com"], "encrypted": true,
            "login": true,
        });
        assert_eq!(envelope, wanted, "{mode}");
        // A mail that the server refuses for good is parked for the operator.
        let parked = server.until("the message to be parked", || {
            let said = server.command(&["outbox", "list", "--state", "parked", "--json"]);
            let rows: Value = serde_json::from_slice(&said.stdout).unwrap();
            rows.as_array().unwrap().first().cloned()
        });
        let error = parked["error"].as_str().unwrap();
        assert!(error.contains("no such user") && !error.contains(PASSWORD), "{error}");
        assert_eq!((&parked["kind"], &parked["attempts"]), (&json!("email"), &json!(1)));
        let id = parked["id"].as_str().unwrap();
        assert!(server.command(&["outbox", "retry", id]).status.success());
        server.until("it to be parked again", || {
            let said = server.command(&["outbox", "list"]);
            String::from_utf8(said.stdout).unwrap().contains("parked").then_some(())
        });
        assert!(server.command(&["outbox", "drop", "--all"]).status.success());
        assert_eq!(server.command(&["outbox", "drop", id]).status.code(), Some(1));
        let left = server.command(&["outbox", "list", "--json"]);
        assert_eq!(serde_json::from_slice::<Value>(&left.stdout).unwrap(), json!([]));
    }
}

#[test]
fn a_mail_deferred_by_the_mail_server_is_retried() {
    let receiver = Receiver::start("smtp_server.py", "plain");
    let settings = [
        "mail.host=127.0.0.1".to_owned(),
        format!("mail.port={}", receiver.ready["port"]),
        "mail.tls=none".to_owned(),
        "mail.username=desk".to_owned(),
        format!("mail.password={PASSWORD}"),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let server = server(&settings);
    make(&server, &email("b", "busy@example.com"));
    ingest_photo(&server, "oden", "Isbrytare Oden");
    server.until("two tries", || {
        let said = server.command(&["outbox", "list", "--json"]);
        let rows: Value = serde_json::from_slice(&said.stdout).unwrap();
        let row = rows.as_array().unwrap().first()?.clone();
        let waits = row["state"] != "parked" && row["attempts"].as_u64()? >= 2;
        waits.then_some(())
    });
}
