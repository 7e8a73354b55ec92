//! Notifications: dry runs, schedules, streams, and forms without scripts.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use api::notifications::{
    CreateScheduledEmailNotification, ListNotifications, Notification, NotificationMediaType,
    NotificationQuery, SCHEDULE_ZONE_DEFAULT,
};
use model::MediaType;
use model::account::NotificationKind;
use serde_json::{Value, json};

use super::{HOSTILE, Plain, editor, location, look, shown};
use crate::common::{
    DEMO_KEY, Server,
    browser::{Browser, DESKTOP},
    news,
};

fn notifications(server: &Server) -> Vec<Notification> {
    let every = ListNotifications { media_type: NotificationMediaType(None) };
    editor(server).ask(&every).unwrap()
}

/// Ingests a photograph that is dated now.
fn ingest(server: &Server, id: &str, headline: &str) {
    let document = json!({
        "headline": headline, "copyrightholder": "TT",
        "product": [{ "code": "FOTO", "name": "FOTO" }],
    });
    news::ingest(server, &format!("image/{id}"), &document);
}

fn value(browser: &Browser, selector: &str) -> String {
    browser.text(&format!("document.querySelector('{selector}').value"))
}

#[test]
fn a_search_becomes_a_notification_after_a_dry_run() {
    // Dated long ago: search finds it, a dry run does not.
    let old = news::document("Isbrytare i fjol", &["FOTO"], "2025-03-02T09:15:00+01:00");
    let server = news::server(&[], &[("image/icebreaker-old", old)]);
    ingest(&server, "icebreaker-now", "Isbrytare i hamnen");
    let browser = Browser::open(DESKTOP);
    let address = "/notifications/new?q=isbrytare&p=FOTO&mediaType=image&type=email";
    browser.log_in(&server.url, "demo-editor", address);
    assert_eq!(
        (value(&browser, "#q"), value(&browser, "#p")),
        ("isbrytare".into(), "FOTO".into())
    );
    assert_eq!(value(&browser, "#mediaType"), "image");
    assert_eq!(value(&browser, "#email"), "demo-editor@demo-desk.example");
    browser.fill("#title", "Isbrytare");
    browser.follow("button[value=try]");
    let said = browser.text("document.querySelector('.tried h2').innerText");
    assert_eq!(said, "1 match in the last 7 days.");
    let links = browser.eval("[...document.querySelectorAll('.tried .strip a')].map(a => a.href)");
    assert_eq!(links, json!([format!("{}/item/image/icebreaker-now", server.url)]));
    // A notification matches words as written, so the equivalent search does, too.
    let same = browser.text("document.querySelector('.tried .hint a').getAttribute('href')");
    assert_eq!(same, "/?type=image&q=isbrytare&p=FOTO&tr=w&written=1");
    let found = editor(&server).json("/content/v1/image/search?q=isbrytare&p=FOTO&tr=w");
    assert_eq!(found["total"], 1);
    assert!(notifications(&server).is_empty(), "a dry run saves nothing");
    look(&browser, "notification-tried");

    browser.follow("button[value=save]");
    assert!(browser.address().ends_with("/notifications"), "{}", browser.address());
    let saved = editor(&server).json("/content/v1/_all/notification");
    let id = &saved[0]["id"];
    let expected = json!([{
        "id": id, "title": "Isbrytare", "type": "email", "mediaType": "image",
        "q": "isbrytare", "p": ["FOTO"], "email": "demo-editor@demo-desk.example",
    }]);
    assert_eq!(saved, expected);
    let text = shown(&browser);
    assert!(text.contains("with the product FOTO"), "{text}");
    assert!(text.contains("E-mail to demo-editor@demo-desk.example for each item"), "{text}");
    assert!(text.contains("1 match in the last 7 days."), "{text}");
    look(&browser, "notifications");

    browser.follow(".set-head h2 a");
    assert_eq!(value(&browser, "#title"), "Isbrytare");
    browser.fill("#title", "Isbrytare och bogserare");
    browser.fill("#q", "isbrytare OR bogserare");
    browser.fill("#p", "FOTO, -TT");
    browser.click("input[name=agr]");
    browser.follow("button[value=save]");
    let [changed] = notifications(&server).try_into().expect("one");
    assert_eq!(json!(changed.id), *id);
    assert_eq!(changed.q.as_deref(), Some("isbrytare OR bogserare"));
    assert_eq!((changed.p, changed.agr), (vec!["FOTO".to_owned(), "-TT".to_owned()], vec![1001]));
    assert_eq!(changed.title, "Isbrytare och bogserare");
    let text = shown(&browser);
    assert!(text.contains("without the product TT, covered by Demo subscription"), "{text}");

    browser.click(".sure summary");
    browser.follow(".sure button");
    assert!(browser.address().ends_with("/notifications"), "{}", browser.address());
    assert!(notifications(&server).is_empty());
    look(&browser, "notifications-none");
}

#[test]
fn an_invalid_schedule_or_search_keeps_the_input_and_explains_the_error() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/notifications/new");
    browser.fill("#title", "Morning");
    browser.fill("#q", "(harbour");
    browser.click("#way-scheduled-email");
    browser.click("#when-own");
    browser.fill("#cron", "61 * * * *");
    browser.fill("#timezone", "Europe/Helsinki");
    browser.follow("button[value=save]");
    let alert = browser.text("document.querySelector('[role=alert]').innerText");
    assert!(
        alert.contains("(character 9)") && alert.contains("\"61\" is not a minute (0-59)"),
        "{alert}"
    );
    for (selector, expected) in [
        ("#title", "Morning"),
        ("#q", "(harbour"),
        ("#cron", "61 * * * *"),
        ("#timezone", "Europe/Helsinki"),
        ("[name=type]:checked", "scheduled-email"),
        ("[name=when]:checked", "own"),
    ] {
        assert_eq!(value(&browser, selector), expected, "{selector}");
    }
    for id in ["q", "cron"] {
        let wrong = format!("document.querySelector('#{id}[aria-invalid=true]') !== null");
        assert_eq!(browser.eval(&wrong), true, "{id}");
    }
    assert!(notifications(&server).is_empty());
    // The browser itself logs the 400, and nothing else.
    let others = |line: &String| !line.contains("status of 400");
    assert_eq!(browser.console_messages().into_iter().find(others), None);
    look(&browser, "notification-wrong");
    // A dry run reports the same error.
    browser.follow("button[value=try]");
    let alert = browser.text("document.querySelector('[role=alert]').innerText");
    assert!(alert.contains("(character 9)"), "{alert}");
    browser.console_messages();

    browser.fill("#q", "harbour");
    browser.fill("#cron", "30 6 * * 1-5");
    browser.eval("document.querySelector('#tr').value = 'd'");
    browser.follow("button[value=save]");
    let [saved] = notifications(&server).try_into().expect("one");
    assert_eq!(saved.kind, NotificationKind::ScheduledEmail);
    assert_eq!(saved.schedule.as_deref(), Some("30 6 * * 1-5"));
    assert_eq!(saved.timezone.as_deref(), Some("Europe/Helsinki"));
    assert!(shown(&browser).contains("30 6 * * 1-5, Europe/Helsinki"));
    browser.follow(".set-head h2 a");
    assert_eq!(value(&browser, "#cron"), "30 6 * * 1-5");
    browser.click("input[value='0 8 * * 1']");
    browser.follow("button[value=save]");
    assert!(shown(&browser).contains("Mondays at 8:00, Europe/Helsinki"));
    assert_eq!(notifications(&server)[0].schedule.as_deref(), Some("0 8 * * 1"));
}

/// A program that is stopped on drop.
struct Program(Child);

impl Program {
    fn start(command: &str, arguments: &[&str], code: &str) -> Self {
        let mut command = Command::new(command);
        command.args(arguments).arg(code).env("WIREPHOTO_KEY", DEMO_KEY).env("NO_PROXY", "*");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().expect("./test installs it"))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let output = self.0.stdout.as_mut().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("output");
        line
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_stream_is_read_with_the_code_on_its_page() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/notifications/new?q=isbrytare&type=stream");
    browser.fill("#title", "For our system");
    browser.follow("button[value=save]");
    let [saved] = notifications(&server).try_into().expect("one");
    let id = saved.id.to_string();
    let page = format!("{}/notifications/{id}", server.url);
    assert_eq!(browser.address(), page);
    let code =
        |id: &str| browser.text(&format!("document.querySelector('#stream-{id}').textContent"));
    let address = format!("{}/content/v1/_all/notification/{id}/stream", server.url);
    assert_eq!((code("id"), code("url")), (id, address));
    assert!(shown(&browser).contains("After 5 minutes without a call"));
    look(&browser, "notification-stream");

    ingest(&server, "by-curl", "Isbrytare ett");
    let mut curl = Program::start("sh", &["-c"], &code("curl"));
    let answer: Value = serde_json::from_str(&curl.line()).expect("JSON");
    assert_eq!(answer["hits"][0]["headline"], "Isbrytare ett");
    ingest(&server, "by-python", "Isbrytare tre");
    let mut python = Program::start("/usr/bin/python3", &["-u", "-c"], &code("python"));
    assert!(python.line().ends_with("Isbrytare tre\n"));
    drop(python);
    ingest(&server, "by-node", "Isbrytare två");
    let mut node = Program::start("node", &["--input-type=module", "-e"], &code("js"));
    assert!(node.line().ends_with("Isbrytare två\n"));
}

#[test]
fn notifications_work_without_scripts_escape_hostile_text_and_need_their_token() {
    let server = Server::demo();
    let plain = Plain::log_in(&server, "demo-editor");
    let fields =
        [("type", "mobile"), ("mediaType", "image"), ("title", HOSTILE), ("q", "\"<b>\"")];
    // Without its token, or with a wrong one, a form changes nothing.
    for csrf in [None, Some("wrong")] {
        let sent: Vec<_> = fields.into_iter().chain(csrf.map(|csrf| ("csrf", csrf))).collect();
        let page = plain.post_with("/notifications", &sent).text().expect("text");
        assert!(page.contains("Your form has not been sent"), "{page}");
        assert!(!page.contains("<script>document"), "{page}");
    }
    assert!(notifications(&server).is_empty());
    let made = plain.post("/notifications", &fields);
    assert_eq!(location(&made), "/notifications?done=created");
    let [saved] = notifications(&server).try_into().expect("one");
    assert_eq!((saved.title.as_str(), saved.kind), (HOSTILE, NotificationKind::Mobile));
    let own = format!("/notifications/{}", saved.id);
    let encoded: String = form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect();
    let prefilled = ["title", "q", "p", "agr", "tr", "type", "mediaType", "email"]
        .map(|name| format!("{name}={encoded}"))
        .join("&");
    for path in ["/notifications", &own, &format!("/notifications/new?{prefilled}")] {
        let page = plain.get(path).text().expect("text");
        assert!(page.contains("&lt;script&gt;document"), "{path}: {page}");
        assert!(!page.contains("<script>document") && !page.contains("<b>"), "{path}: {page}");
        assert!(!page.contains("49&lt;/b&gt;"), "{path}");
    }
    let refused = plain.post_with(&format!("{own}/delete"), &[("csrf", "wrong")]);
    assert_ne!(refused.status(), 303);
    assert_eq!(notifications(&server).len(), 1);
    // Another user has no such notification.
    let other = Plain::log_in(&server, "demo-buyer");
    assert_eq!(other.get(&own).status(), 404);
    assert_eq!(other.post(&format!("{own}/delete"), &[]).status(), 404);
    assert_eq!(other.post(&own, &fields).status(), 404);
    assert_eq!(notifications(&server)[0], saved);
    let removed = plain.post(&format!("{own}/delete"), &[]);
    assert_eq!(location(&removed), "/notifications?done=removed");
    let unknown = plain.post("/notifications", &[("type", "pigeon"), ("title", "x")]);
    assert_eq!(unknown.status(), 400);
    for step in ["save", "try"] {
        let fields = [("step", step), ("type", "mobile"), ("title", "x"), ("q", "hamn")];
        let untyped = plain.post("/notifications", &fields);
        assert_eq!(untyped.status(), 400, "{step}");
        let page = untyped.text().expect("text");
        let is_named = page.contains("The media type is missing.");
        assert!(is_named && page.contains("\"hamn\""), "{page}");
    }
    // Anonymous visitors see none of it.
    let response = server.get("/notifications/new?q=a");
    assert_eq!(location(&response), "/o/login?return_to=%2Fnotifications%2Fnew%3Fq%3Da");
}

/// The selected value of a select element on a page.
fn chosen<'p>(page: &'p str, name: &str) -> Option<&'p str> {
    let select = page.split_once(&format!("name=\"{name}\">"))?.1.split_once("</select>")?.0;
    let option = select.split_once("\" selected>")?.0;
    option.rsplit('"').next()
}

#[test]
fn a_new_title_of_a_notification_leaves_its_period_as_it_is() {
    let server = Server::demo();
    let notification = CreateScheduledEmailNotification {
        media_type: NotificationMediaType(Some(MediaType::Image)),
        title: "Ice".to_owned(),
        query: NotificationQuery { q: Some("is".to_owned()), ..NotificationQuery::default() },
        email: "a@example.org".to_owned(),
        schedule: "0 7 * * *".to_owned(),
        timezone: SCHEDULE_ZONE_DEFAULT.to_owned(),
        tr: Some("d".to_owned()),
    };
    let made = editor(&server).ask(&notification).unwrap();
    assert_eq!(made.tr.as_deref(), Some("d"));
    let plain = Plain::log_in(&server, "demo-editor");
    let own = format!("/notifications/{}", made.id);
    let page = plain.get(&own).text().expect("text");
    let period = chosen(&page, "tr").expect("a period");
    // Everything that a browser sends of the form, with a new title.
    let fields = [
        ("type", "scheduled-email"),
        ("mediaType", "image"),
        ("title", "Snow"),
        ("q", "is"),
        ("p", ""),
        ("tr", period),
        ("email", "a@example.org"),
        ("when", "0 7 * * *"),
        ("cron", ""),
        ("timezone", "Europe/Stockholm"),
    ];
    assert_eq!(location(&plain.post(&own, &fields)), "/notifications?done=saved");
    let [saved] = notifications(&server).try_into().expect("one");
    assert_eq!((saved.title.as_str(), saved.tr.as_deref()), ("Snow", Some("d")));
    let page = plain.get("/notifications/new").text().expect("text");
    assert_eq!(chosen(&page, "tr"), Some(""), "a new one has no period");
}

#[test]
fn a_session_that_ends_during_input_keeps_the_notification() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/notifications/new?q=hamn&type=mobile");
    browser.fill("#title", "Hamnen <b>nu</b>");
    let page = "fetch('/o/logout', { method: 'POST', body: new URLSearchParams({ \
                csrf: document.querySelector('[name=csrf]').value }) }).then(() => window.out = 1)";
    browser.eval(page);
    browser.wait("the logout", "window.out === 1");
    browser.follow("button[value=save]");
    browser.fill("#username", "demo-editor");
    browser.fill("#password", "demo-editor-password");
    browser.follow("main button[type=submit]");
    assert!(notifications(&server).is_empty(), "it is asked first");
    assert!(shown(&browser).contains("Hamnen <b>nu</b>"));
    browser.follow("main button[type=submit]");
    let [saved] = notifications(&server).try_into().expect("one");
    assert_eq!((saved.title.as_str(), saved.q.as_deref()), ("Hamnen <b>nu</b>", Some("hamn")));
}
