//! Delivery channels on the customer web site: created, tested, changed and removed by their owner.

use model::account::ChannelMethod;
use serde_json::{Value, json};

use crate::{
    common::{
        DEMO_KEY, Server,
        api::ApiCaller,
        browser::{Browser, DESKTOP},
    },
    keys_and_channels::find_channel,
    receivers::Receiver,
    site_account::{HOSTILE, Person, alert, check_harmless, shown},
};

/// Creates a webhook with that name, after typical mistakes.
fn make_hook(browser: &Browser, name: &str, (url, secret): (&str, &str)) {
    browser.check_appearance("account-channels");
    browser.eval("document.querySelector('#make-method').value = 'webhook'");
    browser.follow(".make-channel button");
    browser.check_appearance("account-channel-webhook");
    browser.fill("#channel-name", name);
    browser.fill("[name='secret.url']", url);
    browser.fill("[name='secret.secret']", secret);
    browser.fill("#formats", "nonsense.jpg");
    // Plain http has to be allowed and the format must be valid: both errors are shown, one after the other.
    browser.follow("main .form button[type=submit]");
    assert!(alert(browser).contains("Address: invalid value."), "{}", alert(browser));
    let wrong = "document.querySelector(\"[name='secret.url']\").getAttribute('aria-invalid')";
    assert_eq!(browser.eval(wrong), "true");
    assert_eq!(browser.eval("document.querySelector('[type=password]').value"), "");
    check_harmless(browser, "channel");
    assert!(browser.console_messages().iter().all(|line| line.contains("status of 400")));
    browser.check_appearance("account-channel-mistake");
    browser.click("[name='setting.allowHttp']");
    browser.fill("[name='secret.secret']", secret);
    browser.follow("main .form button[type=submit]");
    assert!(alert(browser).contains("Formats:"), "{}", alert(browser));
    drop(browser.console_messages());
    browser.fill("#formats", "-watermark_NormalPreview.jpg");
    browser.fill("[name='secret.secret']", secret);
    browser.follow("main .form button[type=submit]");
    assert!(shown(browser).contains("Created."), "{}", shown(browser));
    check_harmless(browser, "channels");
}

#[test]
fn a_channel_test_arrives_or_reports_why_not() {
    let server = Server::demo_with(&["delivery.private_addresses=true"]);
    let mut receiver = Receiver::start("webhook_server.py", "plain");
    let secret = receiver.ready["secret"].as_str().unwrap().to_owned();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/account/channels");
    let name = "Desk <b>&\"onmouseover=\"x";
    make_hook(&browser, name, (&format!("{}/status/200", receiver.url()), &secret));
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let find = || find_channel(&editor, name);
    let made = find().unwrap();
    assert_eq!((made.method, made.active), (ChannelMethod::Webhook, true));
    assert_eq!(made.formats, ["_NormalHires.jpg", ".json", "-watermark_NormalPreview.jpg"]);
    // The test arrives, signed.
    let test = "form[action='/account/channels/test']:has([value^='Desk']) button";
    browser.follow(test);
    let said = browser.text("document.querySelector('.tested').innerText");
    assert!(said.contains("Test succeeded."), "{said}");
    assert_eq!(receiver.next()["verified"], true);
    check_harmless(&browser, "tested channel");
    browser.check_appearance("account-channel-tested");
    // An edit keeps the hidden end of the address and the secret.
    let change = "form[action='/account/channels/edit']:has([value^='Desk']) button";
    browser.follow(change);
    assert_eq!(browser.eval("document.querySelector('[type=password]').value"), "");
    browser.click("input[type=checkbox][value='.json']");
    browser.click("#channel-active");
    browser.follow("main .form button[type=submit]");
    assert!(shown(&browser).contains("Saved."), "{}", shown(&browser));
    let changed = find().unwrap();
    assert!(!changed.active);
    assert_eq!(changed.formats, ["_NormalHires.jpg", "-watermark_NormalPreview.jpg"]);
    browser.follow(test);
    assert_eq!(receiver.next()["verified"], true, "the secret is the same");
    // An unreachable receiver is named.
    drop(receiver);
    browser.follow(test);
    let said = alert(&browser);
    assert!(said.contains("Test failed.") && said.contains("refused"), "{said}");
    assert!(!said.contains(&secret), "{said}");
    browser.check_appearance("account-channel-failed");
    browser.follow("form[action='/account/channels/remove']:has([value^='Desk']) button");
    browser.check_appearance("account-channel-remove");
    assert!(find().is_some(), "only asked");
    browser.follow("main button.bad");
    assert!(find().is_none());
}

#[test]
fn every_method_has_a_form_that_creates_a_channel() {
    let server = Server::demo();
    let person = Person::log_in(&server, "demo-editor");
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let account = [
        ("setting.host", "ftp.example"),
        ("setting.username", "u"),
        ("secret.password", "p-secret"),
    ];
    let key = format!("SHA256:{}", "A".repeat(43));
    let host_key = [("setting.hostKey", key.as_str())];
    let bucket = [
        ("setting.bucket", "bilder"),
        ("setting.region", "eu-north-1"),
        ("setting.accessKeyId", "id"),
        ("secret.secretAccessKey", "p-secret"),
    ];
    let hook = [
        ("secret.url", "https://hooks.example/in"),
        ("secret.secret", "p-secret-of-24-characters"),
    ];
    let cases: [(&str, Vec<(&str, &str)>); 7] = [
        ("email", vec![("setting.to", "a@b.example\r\nc@d.example")]),
        ("ftp", account.to_vec()),
        ("ftps", [account.as_slice(), &[("setting.implicit", "true")]].concat()),
        ("sftp", [account.as_slice(), &host_key].concat()),
        ("s3", bucket.to_vec()),
        ("webhook", hook.to_vec()),
        ("download", Vec::new()),
    ];
    for (method, fields) in &cases {
        let page = person.page(&format!("/account/channels/edit?method={method}"));
        for (name, _) in fields {
            assert!(page.contains(&format!("name=\"{name}\"")), "{method} {name}");
        }
        let name = format!("my-{method}");
        let own = [("method", *method), ("name", &name), ("format", ".json"), ("active", "on")];
        let all = [own.as_slice(), fields].concat();
        assert_eq!(person.done("/account/channels/edit", &all), "/account/channels?done=created");
        // A second channel with the name does not replace the first.
        let twice = person.post("/account/channels/edit", &all);
        assert_eq!(twice.status(), 409, "{method}");
        let text = twice.text().unwrap();
        assert!(text.contains("You already have a channel with this name."), "{method}");
        assert!(!text.contains("p-secret"), "{method}: no page shows a secret");
        let page = person.page(&format!("/account/channels/edit?name={name}"));
        assert!(!page.contains("p-secret"), "{method}");
        let list = person.page("/account/channels");
        assert!(
            list.contains(&format!("channel=user:demo-editor:{name}"))
                && !list.contains("p-secret")
        );
    }
    let settings = |name: &str| find_channel(&editor, name).unwrap().settings;
    assert_eq!(settings("my-email")["to"], json!(["a@b.example", "c@d.example"]));
    let ftps = settings("my-ftps");
    assert_eq!((&ftps["implicit"], &ftps["port"]), (&json!(true), &json!(990)));
}

#[test]
fn the_path_style_of_a_bucket_keeps_its_three_states() {
    let server = Server::demo();
    let person = Person::log_in(&server, "demo-editor");
    let editor = ApiCaller::key(&server, DEMO_KEY);
    for (state, expected) in [("", Value::Null), ("true", json!(true)), ("false", json!(false))] {
        let name = format!("bucket{state}");
        let fields = [
            ("method", "s3"),
            ("name", name.as_str()),
            ("format", ".json"),
            ("setting.bucket", "bilder"),
            ("setting.endpoint", "https://s3.example"),
            ("setting.accessKeyId", "id"),
            ("setting.pathStyle", state),
        ];
        let made = [fields.as_slice(), &[("secret.secretAccessKey", "p-secret")]].concat();
        assert_eq!(person.done("/account/channels/edit", &made), "/account/channels?done=created");
        // The form shows the state. Saved unchanged, it keeps the state and the secret.
        let page = person.page(&format!("/account/channels/edit?name={name}"));
        assert!(page.contains(&format!("<option value=\"{state}\" selected>")), "{page}");
        let unchanged = [fields.as_slice(), &[("there", "on")]].concat();
        let saved = person.done("/account/channels/edit", &unchanged);
        assert_eq!(saved, "/account/channels?done=saved");
        let settings = find_channel(&editor, &name).unwrap().settings;
        let found = settings.get("pathStyle").cloned().unwrap_or_default();
        assert_eq!(found, expected, "{settings:?}");
    }
}

#[test]
fn an_invalid_channel_is_refused_with_a_message() {
    let server = Server::demo();
    let person = Person::log_in(&server, "demo-editor");
    let account = [
        ("method", "ftp"),
        ("name", "my-ftp"),
        ("format", ".json"),
        ("setting.host", "ftp.example"),
        ("setting.username", "u"),
        ("secret.password", "p-secret"),
    ];
    assert_eq!(person.done("/account/channels/edit", &account), "/account/channels?done=created");
    for (fields, said) in [
        (vec![("method", "ftp"), ("name", "x"), ("format", ".json")], "Host is missing."),
        (vec![("method", "email"), ("format", ".json")], "Name is missing."),
        (
            vec![("method", "download"), ("name", "a:b"), ("format", ".json")],
            "cannot contain a colon",
        ),
        (vec![("method", "download"), ("name", "x")], "Formats:"),
    ] {
        let response = person.post("/account/channels/edit", &fields);
        assert_eq!(response.status(), 400, "{fields:?}");
        let text = response.text().unwrap();
        assert!(text.contains(said), "{fields:?}: {text}");
    }
    let nothing = person.post("/account/channels/edit", &[("method", "pigeon"), ("name", "x")]);
    assert_eq!(nothing.status(), 404);
    assert_eq!(person.get("/account/channels/edit?name=none").status(), 404);
    // With another address, a secret has to be typed again.
    let moved = [
        ("method", "ftp"),
        ("name", "my-ftp"),
        ("there", "on"),
        ("format", ".json"),
        ("setting.host", "other.example"),
        ("setting.username", "u"),
    ];
    let response = person.post("/account/channels/edit", &moved);
    assert_eq!(response.status(), 400);
    assert!(response.text().unwrap().contains("Password: enter it again"));
    // A folder that the operator configured can be saved unchanged, and cannot be moved.
    let folder = [
        ("method", "directory"),
        ("name", "demo-folder"),
        ("there", "on"),
        ("setting.path", "demo-editor"),
        ("format", "_NormalHires.jpg"),
        ("format", ".json"),
    ];
    assert_eq!(person.done("/account/channels/edit", &folder), "/account/channels?done=saved");
    let mut elsewhere = folder;
    elsewhere[3] = ("setting.path", "demo-admin");
    let response = person.post("/account/channels/edit", &elsewhere);
    assert_eq!(response.status(), 403);
    assert!(response.text().unwrap().contains("Created by the agency"));
}

#[test]
fn a_form_sent_after_the_session_ended_is_submitted_after_the_login() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/account/channels/edit?method=ftp");
    browser.fill("#channel-name", "desk");
    browser.fill("[name='setting.host']", "ftp.example");
    browser.fill("[name='setting.username']", HOSTILE);
    browser.fill("[name='secret.password']", "p-secret");
    // The user logs out meanwhile in another window.
    browser.eval(
        "fetch('/o/logout', { method: 'POST', headers: { 'content-type': \
         'application/x-www-form-urlencoded' }, body: 'csrf=' + \
         document.querySelector('[name=csrf]').value }).then(() => window.left = true)",
    );
    browser.wait("the logout", "window.left === true");
    browser.follow("main .form button[type=submit]");
    assert!(alert(&browser).contains("what you entered is kept"), "{}", alert(&browser));
    browser.fill("#username", "demo-editor");
    browser.fill("#password", "demo-editor-password");
    browser.follow("main button[type=submit]");
    assert!(shown(&browser).contains(HOSTILE) && !shown(&browser).contains("p-secret"));
    assert!(shown(&browser).contains("Host") && !shown(&browser).contains("setting."), "labels");
    check_harmless(&browser, "kept form");
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let find = || find_channel(&editor, "desk");
    assert!(find().is_none(), "only asked");
    browser.follow("main form button[type=submit]");
    // Another user might have logged in, so the password is requested again.
    assert!(find().is_none(), "without its password");
    assert_eq!(
        browser.eval("document.querySelector(\"[name='setting.username']\").value"),
        HOSTILE
    );
    browser.fill("[name='secret.password']", "p-secret");
    browser.follow("main .form button[type=submit]");
    assert!(shown(&browser).contains("Created."), "{}", shown(&browser));
    assert_eq!(find().unwrap().settings["username"], HOSTILE);
}
