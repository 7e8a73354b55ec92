//! Background work of several nodes: push messages, deliveries, cache purges, the watched folder, mails, a first
//! start. Each effect happens once, and the work of a killed or suspended node is done by another one.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;

use model::{MediaType, account::DeviceKind};
use reqwest::blocking::Client;
use serde_json::Value;

use crate::common::pictures::Picture;
use crate::common::server::{demo_originals, wirephoto};
use crate::common::{DEMO_KEY, Server, checkout, news, pause};
use crate::deliveries::{ITEM, OTHER, WebhookRequest, add, hook, id, run, trigger, until};
use crate::nodes::{QUICK, mails, matches, start_node_beside, two_nodes, wait_until};
use crate::notifications::{email, ingest_photo, make, server, stream};
use crate::purges::{self, Cdn};
use crate::push::{items, notify, register};
use crate::push_services::{Services, requests_to};

fn strs(settings: &[String]) -> Vec<&str> {
    settings.iter().map(String::as_str).collect()
}

fn kill(server: &mut Server) {
    server.child.kill().unwrap();
    server.child.wait().unwrap();
}

#[test]
fn push_messages_arrive_once_and_those_of_a_killed_node_are_sent_again() {
    let services = Services::start();
    let settings = services.settings();
    let mut first = server(&[&QUICK[..], &strs(&settings)].concat());
    let phones = ["x1", "x2", "x3"];
    for phone in phones.iter().chain(&["hang"]) {
        register(&first, phone, DeviceKind::Android, DEMO_KEY);
    }
    notify(&first, "isbrytare", DEMO_KEY);
    ingest_photo(&first, "oden", "Isbrytare");
    let seen = |phone: &str, item: &str| {
        let seen = requests_to(&services.google, phone);
        items(&seen).into_iter().filter(|one| *one == item).count()
    };
    let arrives = |server: &Server, phone: &str, item: &str| {
        let look = || (seen(phone, item) > 0).then_some(());
        server.until(&format!("{item} at {phone}"), look);
    };
    // A receiver does not respond to the first message.
    arrives(&first, "hang", "oden");
    let second = start_node_beside(&first, &strs(&settings));
    ingest_photo(&first, "ymer", "Isbrytare");
    for phone in phones.iter().chain(&["hang"]) {
        arrives(&second, phone, "ymer");
    }
    second.until("what was sent to be noted", || {
        let (listed, _) = run(&second, &["outbox", "list", "--json"], 0);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        (listed.as_array().unwrap().len() == 1).then_some(())
    });
    kill(&mut first);
    wait_until("the message without an answer to be sent again", || seen("hang", "oden") > 1);
    ingest_photo(&second, "atle", "Isbrytare");
    for phone in phones.iter().chain(&["hang"]) {
        arrives(&second, phone, "atle");
        for item in ["oden", "ymer", "atle"] {
            let expected = if (*phone, item) == ("hang", "oden") { 2 } else { 1 };
            assert_eq!(seen(phone, item), expected, "{item} at {phone}");
        }
    }
}

#[test]
fn deliveries_are_sent_once_and_those_of_a_killed_node_by_another_one() {
    let settings = ["delivery.retry_first_ms=50", "delivery.lease_s=15"];
    let mut first = Server::demo_with(&[&QUICK[..], &settings].concat());
    let originals = demo_originals();
    let settings = [&settings[..], &[originals.as_str()]].concat();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    for channel in ["h1", "h2", "h3"] {
        add(&first, channel, "webhook", &hook(listener.local_addr().unwrap().port()));
    }
    let hanging = id(trigger(&first, ITEM, "h1"));
    let posted = WebhookRequest::accept(&listener);
    let second = start_node_beside(&first, &settings);
    kill(&mut first);
    drop(posted);
    let (headers, _) = WebhookRequest::accept(&listener).answer("200 OK");
    assert_eq!(headers["webhook-id"], hanging);
    assert_eq!(until(&second, &hanging, "delivered").attempts, 2);
    // While both nodes run, each delivery is sent once, whichever node received the request.
    let third = start_node_beside(&first, &settings);
    let asked = [
        (&second, ITEM, "h2"),
        (&third, ITEM, "h3"),
        (&second, OTHER, "h1"),
        (&third, OTHER, "h2"),
        (&second, OTHER, "h3"),
    ];
    let asked = asked.map(|(server, item, channel)| id(trigger(server, item, channel)));
    let came: BTreeSet<String> = (0..asked.len())
        .map(|_| WebhookRequest::accept(&listener).answer("200 OK").0["webhook-id"].clone())
        .collect();
    assert_eq!(came, asked.iter().cloned().collect());
    for id in &asked {
        assert_eq!(until(&third, id, "delivered").attempts, 1);
    }
    let more = listener.accept().map(drop).unwrap_err();
    assert_eq!(more.kind(), ErrorKind::WouldBlock, "nothing else came");
}

#[test]
fn a_cdn_is_purged_once_and_the_surviving_node_retries_failed_purges() {
    let cdn = Cdn::start();
    let settings = purges::settings(&cdn);
    let settings = strs(&settings);
    let mut first = news::server(&[&QUICK[..], &settings].concat(), &purges::items());
    let purging = |server: &Server| server.metric("wirephoto_lease_held", "purging") > 0.0;
    first.until("it to tell", || purging(&first).then_some(()));
    let second = start_node_beside(&first, &settings);
    run(&second, &["withdraw", "image/b"], 0);
    cdn.until(&first, &["image.b"]);
    assert!(!purging(&second));
    cdn.status.store(503, Ordering::Relaxed);
    run(&second, &["withdraw", "image/a"], 0);
    first.until("a try that failed", || {
        (first.metric("wirephoto_purges_total", "retry") > 0.0).then_some(())
    });
    kill(&mut first);
    cdn.wait_until_idle();
    cdn.status.store(200, Ordering::Relaxed);
    run(&second, &["withdraw", "image/c"], 0);
    wait_until("the other node to tell", || purging(&second));
    cdn.until(&second, &["image.a", "image.c"]);
    second.until("nothing to wait", || {
        (second.metric("wirephoto_purges_waiting", "") == 0.0).then_some(())
    });
    assert_eq!(cdn.keys(), ["image.b", "image.a", "image.c"]);
}

/// The names of a folder's entries.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_folder_watched_by_two_nodes_is_ingested_once_even_if_one_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let watched = dir.path().join("in");
    fs::create_dir(&watched).unwrap();
    let watch =
        [format!("ingest.watch={}", watched.display()), "ingest.watch_interval_ms=20".to_owned()];
    let jpeg = Picture::corners(64, 48).jpeg();
    let mut expected = BTreeSet::new();
    let mut put = |numbers: std::ops::Range<usize>| {
        for number in numbers {
            let name = format!("w{number}.jpg");
            // Renamed into place: two polls could see different states of a file that is still being written.
            let beside = dir.path().join(&name);
            fs::write(&beside, &jpeg).unwrap();
            fs::rename(beside, watched.join(&name)).unwrap();
            expected.insert(name);
        }
        expected.clone()
    };
    let done = || names(&watched.join("done"));
    let mut first = server(&[&QUICK[..], &strs(&watch)].concat());
    let all = put(0..1);
    first.until("it to take in", || (done() == all).then_some(()));
    let second = start_node_beside(&first, &strs(&watch));
    let all = put(1..20);
    second.until("all to be taken in", || (done().len() >= all.len()).then_some(()));
    assert_eq!(done(), all, "each lies there once");
    kill(&mut first);
    let all = put(20..30);
    wait_until("the other node to take in", || done().len() >= all.len());
    assert_eq!(done(), all);
    assert!(names(&watched.join("failed")).is_empty());
    for number in [0, 19, 29] {
        let path = format!("/media/image/w{number}.json");
        second.until("the item", || (second.get(&path).status() == 200).then_some(()));
    }
    for log in [first.log(), second.log()] {
        assert!(
            !log.contains("cannot be moved") && !log.contains("ingest postponed, retrying"),
            "{log}"
        );
    }
}

#[test]
fn a_suspended_node_rejoins_and_its_mails_are_sent_once() {
    let (first, second) = two_nodes();
    make(&first, &email("Is", "desk@example.com"));
    // A stream without readers.
    make(&first, &stream(Some(MediaType::Image), "isbrytare"));
    let data = first.data();
    ingest_photo(&second, "a1", "Isbrytare");
    let queued = |node: &Server| node.metric("wirephoto_queued_items", "");
    wait_until("the item to be told of", || queued(&first) == 1.0);
    second.until("a mail", || (mails(&data).len() == 1).then_some(()));
    let folder = tempfile::tempdir().unwrap();
    let document = news::document("Isbrytare", &["FOTO"], "2026-03-05T09:15:00+01:00");
    news::write(folder.path(), &[("image/b1", document.clone()), ("image/b2", document)]);
    // It must not be suspended in the middle of a transaction, which would block all writers.
    second.until("the items to come in", || {
        first.signal("STOP");
        let taken = second.command(&["ingest", &folder.path().to_string_lossy()]);
        if !taken.status.success() {
            first.signal("CONT");
            pause();
        }
        taken.status.success().then_some(())
    });
    wait_until("the other node to match", || matches(&second));
    second.until("their mails", || (mails(&data).len() >= 3).then_some(()));
    first.signal("CONT");
    wait_until("it to notice", || first.log().contains("it starts a new incarnation"));
    ingest_photo(&first, "c1", "Isbrytare");
    second.until("the last mail", || mails(&data).contains(&"c1".to_owned()).then_some(()));
    assert_eq!(mails(&data), ["a1", "b1", "b2", "c1"]);
    first.until("them to see each other", || {
        (first.metric("wirephoto_nodes", "") == 2.0).then_some(())
    });
    assert!(matches(&second) && !matches(&first));
    // The suspended node's metrics must not raise an alert for ever.
    wait_until("the other node to tell what waits", || queued(&second) == 4.0);
    wait_until("it to tell of nothing", || queued(&first) == 0.0);
}

#[test]
fn two_demos_that_start_at_once_ingest_the_archive_once_and_both_serve() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("media-store")).unwrap();
    symlink(checkout("media-store/demo"), dir.path().join("media-store/demo")).unwrap();
    let client = Client::builder().no_proxy().build().unwrap();
    let serve = || {
        let mut command = wirephoto(dir.path());
        command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]);
        command.arg("--data").arg(dir.path().join("data"));
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    let start = |mut command: Command| {
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !said.contains("Demo API key") {
            assert!(lines.read_line(&mut said).unwrap() > 0, "{said}");
        }
        (child, said)
    };
    let mut started = thread::scope(|scope| {
        let commands = [serve(), serve()];
        commands.map(|one| scope.spawn(|| start(one))).map(|node| node.join().unwrap())
    });
    let statuses = started.each_ref().map(|(_, said)| {
        let url = said.lines().find_map(|line| line.trim().strip_prefix("listening on "));
        let url = format!("{}{ITEM}_NormalPreview.jpg", url.unwrap());
        client.get(url).send().unwrap().status().as_u16()
    });
    for (child, _) in &mut started {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(statuses, [200, 200]);
    let took = started.each_ref().map(|(_, said)| said.contains("ingested 24 items"));
    assert!(took[0] != took[1], "{started:?}");
    let other = &started[usize::from(took[0])].1;
    assert!(!other.contains("items of the demo archive"), "{other}");
}
