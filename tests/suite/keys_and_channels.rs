//! Devices, API keys and delivery channels, which users manage through the user API.

use api::deliveries::{
    Channel, ChannelMaker, ChannelTest, ChannelUpdate, ListChannels, ListDeliveries,
    RemoveChannel, TestChannel, UpdateChannel,
};
use api::organization::ListOrganizationUsers;
use api::user::{
    CreateKey, Key, KeyCreate, ListDevices, ListKeys, LoadCaller, MadeKey, RegisterDevice,
    RemoveDevice, RevokeKey,
};
use model::account::{ChannelMethod, DeviceKind};
use reqwest::{Method, blocking::Response};
use serde_json::{Value, json};

use crate::{
    common::{
        DEMO_KEY, Server,
        api::{ApiCaller, Refusal},
        postgres,
    },
    deliveries::{ITEM, id, run, until},
    receivers::Receiver,
};

/// Allows users' channels to reach the receivers of these tests.
const OPEN: [&str; 2] = ["delivery.private_addresses=true", "delivery.retry_first_ms=50"];
/// A key of another organization's user.
const BUYER_KEY: &str = "demo-key-0000-0000-000000000003";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr";
/// The refusal of a token without a scope.
const LACKING: &str = "403 insufficient_scope headers";

fn keys(caller: &ApiCaller<'_>) -> Vec<Key> {
    caller.ask(&ListKeys {}).unwrap()
}

pub fn make_key(caller: &ApiCaller<'_>, name: &str) -> MadeKey {
    let new = KeyCreate { name: name.to_owned(), read_only: false };
    caller.send(&CreateKey {}, &new).unwrap()
}

pub fn revoke(caller: &ApiCaller<'_>, id: i64) -> Result<(), Refusal> {
    caller.ask(&RevokeKey { id })
}

fn channels(caller: &ApiCaller<'_>) -> Vec<Channel> {
    caller.ask(&ListChannels {}).unwrap()
}

pub fn find_channel(caller: &ApiCaller<'_>, name: &str) -> Option<Channel> {
    channels(caller).into_iter().find(|channel| channel.name == name)
}

fn update(
    caller: &ApiCaller<'_>,
    name: &str,
    channel: &ChannelUpdate,
) -> Result<Channel, Refusal> {
    caller.send(&UpdateChannel { name: name.to_owned() }, channel)
}

pub fn put(caller: &ApiCaller<'_>, name: &str, channel: &ChannelUpdate) -> Channel {
    update(caller, name, channel).unwrap()
}

pub fn remove(caller: &ApiCaller<'_>, name: &str) -> Result<(), Refusal> {
    caller.ask(&RemoveChannel { name: name.to_owned() })
}

/// Tests a channel; repeats the test if a busy machine exceeded its timeout.
pub fn test_channel(caller: &ApiCaller<'_>, name: &str) -> ChannelTest {
    let test = TestChannel { name: name.to_owned() };
    let tested = caller.ask(&test).unwrap();
    let late = ["within", "timed out", "too long"];
    let is_late = late.iter().any(|word| tested.message.contains(word));
    if !tested.ok && is_late { caller.ask(&test).unwrap() } else { tested }
}

/// A channel that sends the document.
pub fn channel(method: ChannelMethod, settings: Value) -> ChannelUpdate {
    ChannelUpdate {
        method,
        formats: vec![".json".to_owned()],
        settings: serde_json::from_value(settings).unwrap(),
        active: None,
    }
}

fn hook(url: &str) -> ChannelUpdate {
    let settings = json!({ "url": url, "secret": SECRET, "allowHttp": true });
    channel(ChannelMethod::Webhook, settings)
}

/// Requests the item through the channel `name` of the demo editor.
fn trigger(editor: &ApiCaller<'_>, name: &str) -> Response {
    let path = format!("{ITEM}?channel=user:demo-editor:{name}");
    editor.server.get_with(&path, &[("authorization", &editor.authorization)])
}

#[test]
fn devices_are_listed_for_their_owner_alone() {
    let server = Server::demo();
    let editor = ApiCaller::key(&server, DEMO_KEY);
    assert!(editor.ask(&ListDevices {}).unwrap().is_empty());
    let named = RegisterDevice {
        token: "a:1".to_owned(),
        kind: DeviceKind::Android,
        name: Some("Mobil".to_owned()),
        model: "P".to_owned(),
    };
    editor.ask(&named).unwrap();
    let unnamed = RegisterDevice {
        token: "b".to_owned(),
        kind: DeviceKind::Ios,
        name: None,
        model: "Q".to_owned(),
    };
    editor.ask(&unnamed).unwrap();
    let devices = editor.json("/user/v1/device");
    let told = json!({ "token": "a:1", "type": "android", "name": "Mobil", "model": "P" });
    for (name, value) in told.as_object().unwrap() {
        assert_eq!(&devices[0][name], value);
    }
    assert_eq!((&devices[1]["token"], &devices[1]["name"]), (&json!("b"), &Value::Null));
    assert!(devices[1]["registered"].as_str().unwrap().ends_with('Z'), "{devices:?}");
    editor.ask(&RemoveDevice { token: "b".to_owned() }).unwrap();
    assert_eq!(editor.ask(&ListDevices {}).unwrap().len(), 1);
    let buyer = ApiCaller::key(&server, BUYER_KEY);
    assert!(buyer.ask(&ListDevices {}).unwrap().is_empty());
}

#[test]
fn a_key_is_valid_from_its_creation_until_it_is_revoked() {
    let server = Server::demo();
    let editor = ApiCaller::login(&server, "demo-editor");
    let before = editor.json("/user/v1/key");
    assert_eq!(before.as_array().unwrap().len(), 1, "the demo key");
    let body = json!({ "name": " Bildbord " });
    let made = editor.request(Method::POST, "/user/v1/key", Some(&body));
    assert_eq!(made.status(), 200);
    let mut made: Value = made.json().unwrap();
    let key = made["key"].as_str().unwrap().to_owned();
    assert_eq!((key.len(), &made["name"]), (43, &json!("Bildbord")));
    made.as_object_mut().unwrap().remove("key");
    let listed = editor.json("/user/v1/key");
    assert_eq!((listed.as_array().unwrap().len(), &listed[1]), (2, &made));
    let program = ApiCaller::key(&server, &key);
    assert_eq!(program.ask(&LoadCaller {}).unwrap().base.user_name, "demo-editor");
    let admin_only = program.ask(&ListOrganizationUsers {}).unwrap_err();
    assert_eq!(admin_only.summary(), LACKING);
    let id = made["id"].as_i64().unwrap();
    let buyer = ApiCaller::key(&server, BUYER_KEY);
    assert_eq!(revoke(&buyer, id).unwrap_err().status, 404, "somebody else's");
    assert!(program.ask(&LoadCaller {}).is_ok());
    revoke(&editor, id).unwrap();
    assert_eq!(program.ask(&LoadCaller {}).unwrap_err().status, 401);
    assert_eq!(revoke(&editor, id).unwrap_err().status, 404, "twice");
    assert_eq!(editor.request(Method::DELETE, "/user/v1/key/x", None).status(), 400);
    assert_eq!(editor.json("/user/v1/key"), before);
    let (said, _) = run(&server, &["key", "list", "demo-editor"], 0);
    assert!(
        said.contains("Bildbord") && said.contains("revoked") && !said.contains(&key),
        "{said}"
    );
    let stored = postgres::stored(&server.data());
    assert!(!stored.windows(key.len()).any(|part| part == key.as_bytes()));
}

/// The refusal of a new key.
fn refused_key(caller: &ApiCaller<'_>, body: &Value) -> String {
    caller.refused(Method::POST, "/user/v1/key", Some(body)).summary()
}

#[test]
fn keys_and_service_accounts_create_no_keys() {
    let server = Server::demo();
    let body = json!({ "name": "x" });
    let program = ApiCaller::key(&server, DEMO_KEY);
    assert_eq!(refused_key(&program, &body), "403 api_key_unsupported headers");
    let service = ApiCaller::login(&server, "demo-service");
    assert_eq!(refused_key(&service, &body), "403 service_account_unsupported headers");
    let editor = ApiCaller::login(&server, "demo-editor");
    assert_eq!(refused_key(&editor, &json!({})), "400 required body name");
    assert_eq!(refused_key(&editor, &json!({ "name": "" })), "400 pattern body name");
    for _ in 1..100 {
        make_key(&editor, "x");
    }
    assert!(refused_key(&editor, &body).starts_with("409"));
    revoke(&program, keys(&editor)[5].id).unwrap();
    make_key(&editor, "x");
}

#[test]
fn an_application_creates_no_keys_and_writes_no_channels_beyond_its_scopes() {
    let server = Server::demo();
    let download = channel(ChannelMethod::Download, json!({}));
    let editor = ApiCaller::login(&server, "demo-editor");
    let key = keys(&editor)[0].id;
    put(&editor, "own", &download);
    let roles = ApiCaller::with_scopes(&server, "demo-editor", "roles");
    for scope in ["roles", "roles profile", "openid roles email user customer collection"] {
        let application = ApiCaller::with_scopes(&server, "demo-editor", scope);
        assert_eq!(refused_key(&application, &json!({ "name": "x" })), LACKING, "{scope}");
    }
    assert_eq!(revoke(&roles, key).unwrap_err().summary(), LACKING);
    assert_eq!(update(&roles, "own", &download).unwrap_err().summary(), LACKING);
    assert_eq!(remove(&roles, "own").unwrap_err().summary(), LACKING);
    assert_eq!(keys(&editor).len(), 1, "nothing was made");
    // Reads need no scopes beyond the previous ones.
    assert_eq!(keys(&roles).len(), 1);
    assert!(find_channel(&roles, "own").is_some());
    let profile = ApiCaller::with_scopes(&server, "demo-editor", "roles profile");
    put(&profile, "own", &download);
    remove(&profile, "own").unwrap();
    revoke(&profile, key).unwrap();
    let challenge = roles.request(Method::DELETE, "/user/v1/channel/own", None);
    let challenge = challenge.headers()["www-authenticate"].to_str().unwrap().to_owned();
    assert!(challenge.contains("scope=\"profile\""), "{challenge}");
}

#[test]
fn a_channel_created_by_a_user_delivers_until_it_is_removed() {
    let server = Server::demo_with(&OPEN);
    let mut receiver = Receiver::start("webhook_server.py", "plain");
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let mut stated = hook(&format!("{}/status/200", receiver.url()));
    let body = json!(stated);
    let made = editor.request(Method::PUT, "/user/v1/channel/hook", Some(&body));
    assert_eq!(made.status(), 200);
    let made: Value = made.json().unwrap();
    assert_eq!(made["id"], "user:demo-editor:hook");
    assert_eq!((&made["method"], &made["active"]), (&json!("webhook"), &json!(true)));
    assert_eq!((&made["madeBy"], &made["formats"]), (&json!("user"), &json!([".json"])));
    assert_eq!(made["settings"]["secret"], "***");
    let names: Vec<String> = channels(&editor).into_iter().map(|channel| channel.name).collect();
    assert_eq!(names, ["demo-download", "demo-folder", "demo-mail", "hook"]);
    until(&server, &id(trigger(&editor, "hook")), "delivered");
    assert_eq!(receiver.next()["verified"], true);
    // The secret survives a PUT of the displayed channel.
    stated.formats = vec![".xml".to_owned()];
    stated.settings = made["settings"].as_object().unwrap().clone();
    stated.active = Some(false);
    assert!(!put(&editor, "hook", &stated).active);
    assert_eq!(trigger(&editor, "hook").status(), 404);
    stated.settings.remove("secret");
    stated.active = Some(true);
    assert_eq!(put(&editor, "hook", &stated).formats, [".xml"]);
    until(&server, &id(trigger(&editor, "hook")), "delivered");
    assert_eq!(receiver.next()["verified"], true);
    let shown = editor.json("/user/v1/channel").to_string();
    assert!(!shown.contains(SECRET) && !shown.contains("/status"), "{shown}");
    let buyer = ApiCaller::key(&server, BUYER_KEY);
    assert!(channels(&buyer).is_empty());
    assert_eq!(remove(&buyer, "hook").unwrap_err().status, 404);
    remove(&editor, "hook").unwrap();
    assert_eq!(remove(&editor, "hook").unwrap_err().status, 404);
    assert_eq!(trigger(&editor, "hook").status(), 404);
}

#[test]
fn a_channel_test_reports_its_outcome_and_no_secret() {
    let server = Server::demo_with(&OPEN);
    let mut receiver = Receiver::start("webhook_server.py", "plain");
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let url = receiver.url();
    let mut files = hook(&format!("{url}/status/200"));
    files.settings.insert("mode".to_owned(), json!("files"));
    // A channel that is not active yet is tested as well.
    files.active = Some(false);
    put(&editor, "good", &files);
    let message = "wirephoto-test.txt was delivered.".to_owned();
    assert_eq!(test_channel(&editor, "good"), ChannelTest { ok: true, message });
    let seen = receiver.next();
    assert_eq!((&seen["verified"], &seen["type"]), (&json!(true), &json!("text/plain")));
    assert_eq!(seen["file"]["name"], "wirephoto-test.txt");
    let place = url.trim_start_matches("http://");
    for (path, said) in [
        ("/status/403", "posting: the answer was 403: Forbidden"),
        // Redirects are not followed, because they could lead anywhere.
        ("/redirect", "posting: the answer was 302: Found"),
    ] {
        put(&editor, "bad", &hook(&format!("{url}{path}")));
        let message = format!("The test failed: {place}, {said}.");
        assert_eq!(test_channel(&editor, "bad"), ChannelTest { ok: false, message });
        assert_eq!(receiver.next()["path"], path);
    }
    drop(receiver);
    let ChannelTest { ok, message } = test_channel(&editor, "good");
    assert!(
        !ok && message.contains("Connection refused") && !message.contains(SECRET),
        "{message}"
    );
    assert!(test_channel(&editor, "demo-folder").ok, "the operator's folder");
    let written = server.data().join("deliveries/demo-editor/wirephoto-test.txt");
    let text = std::fs::read_to_string(written).unwrap();
    assert!(text.contains("test of the delivery channel user:demo-editor:demo-folder"), "{text}");
    assert!(test_channel(&editor, "demo-download").ok);
    let missing = editor.ask(&TestChannel { name: "none".to_owned() });
    assert_eq!(missing.unwrap_err().status, 404);
    let deliveries = editor.ask(&ListDeliveries::default()).unwrap().deliveries;
    assert!(deliveries.is_empty(), "a test is no delivery");
}

#[test]
fn a_channel_of_a_user_does_not_lead_into_the_services_network() {
    let server = Server::demo_with(&["delivery.retry_first_ms=50"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let account = |host: &str| {
        json!({
            "host": host, "port": port, "username": "u", "password": "p4ssword",
        })
    };
    let mut sftp = account("localhost");
    sftp["hostKey"] = json!(format!("SHA256:{}", "A".repeat(43)));
    let mut implicit = account("127.0.0.1");
    implicit["implicit"] = json!(true);
    let bucket = |host: &str| {
        json!({
            "endpoint": format!("http://{host}:{port}"), "bucket": "bilder", "accessKeyId": "a",
            "secretAccessKey": "b4ddk3y", "allowHttp": true,
        })
    };
    let cases = [
        hook(&format!("http://127.0.0.1:{port}/")),
        hook(&format!("http://localhost:{port}/")),
        hook(&format!("http://0x7f.1:{port}/")),
        hook(&format!("http://[::ffff:127.0.0.1]:{port}/")),
        hook("http://169.254.169.254/latest/meta-data/"),
        channel(ChannelMethod::Ftp, account("localhost")),
        channel(ChannelMethod::Ftps, implicit),
        channel(ChannelMethod::Sftp, sftp),
    ];
    for (index, stated) in cases.iter().enumerate() {
        let name = format!("c{index}");
        put(&editor, &name, stated);
        let ChannelTest { ok, message } = test_channel(&editor, &name);
        let stated = json!(stated).to_string();
        // The addresses that a name resolves to are not revealed.
        let expected = if stated.contains("localhost") {
            "the host has no public address"
        } else {
            "is in a private network"
        };
        assert!(!ok && message.contains(expected), "{stated}: {message}");
        assert!(!message.contains("p4ssword"), "{message}");
    }
    // Another user, who has a separate quota of tests per minute.
    let buyer = ApiCaller::key(&server, BUYER_KEY);
    for (host, expected) in
        [("127.0.0.1", "is in a private network"), ("localhost", "has no public address")]
    {
        put(&buyer, "bucket", &channel(ChannelMethod::S3, bucket(host)));
        let ChannelTest { ok, message } = test_channel(&buyer, "bucket");
        assert!(!ok && message.contains(expected), "{host}: {message}");
    }
    let failed = until(&server, &id(trigger(&editor, "c0")), "failed");
    assert!(failed.error.unwrap().contains("private network"));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody connected");
}

#[test]
fn a_channel_of_the_operator_leads_anywhere_until_its_owner_changes_it() {
    let server = Server::demo();
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let mut receiver = Receiver::start("webhook_server.py", "plain");
    let url = format!("{}/status/200", receiver.url());
    run(
        &server,
        &[
            "channel",
            "add",
            "demo-editor",
            "paper",
            "--method",
            "webhook",
            "--format",
            ".json",
            "--setting",
            &format!("url={url}"),
            "--setting",
            &format!("secret={SECRET}"),
            "--setting",
            "allowHttp:=true",
        ],
        0,
    );
    assert!(test_channel(&editor, "paper").ok);
    assert_eq!(receiver.next()["verified"], true);
    let shown = find_channel(&editor, "paper").unwrap();
    assert_eq!(shown.made_by, ChannelMaker::Operator);
    let mut again = channel(ChannelMethod::Webhook, json!(shown.settings));
    assert_eq!(put(&editor, "paper", &again).made_by, ChannelMaker::Operator);
    again.formats.push(".xml".to_owned());
    assert_eq!(put(&editor, "paper", &again).made_by, ChannelMaker::User);
    assert!(test_channel(&editor, "paper").message.contains("is in a private network"));
}

#[test]
fn an_invalid_channel_is_refused_with_the_path_of_the_error() {
    let server = Server::demo();
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let account = json!({ "host": "h.example", "username": "u", "password": "hunter2-hunter2" });
    let mut moved = account.clone();
    moved["host"] = json!("evil.example");
    moved.as_object_mut().unwrap().remove("password");
    let ftp = |settings: Value| json!(channel(ChannelMethod::Ftp, settings));
    put(&editor, "own", &channel(ChannelMethod::Ftp, account.clone()));
    let folder = |path: &str| ChannelUpdate {
        formats: vec!["_NormalHires.jpg".to_owned(), ".json".to_owned()],
        ..channel(ChannelMethod::Directory, json!({ "path": path }))
    };
    let mail = channel(ChannelMethod::Email, json!({ "to": "a@b.example" }));
    let mut wrong = json!(mail);
    wrong["formats"] = json!(["x"]);
    let cases = [
        ("x", json!({}), "400 required body method"),
        ("x", ftp(json!({})), "400 required body settings.host"),
        ("x", wrong, "400 pattern body formats.0"),
        ("a:b", ftp(account.clone()), "400 pattern path name"),
        ("x", json!(folder("etc")), "403 operator_channel headers"),
        ("demo-folder", json!(folder("other")), "403 operator_channel headers"),
        ("own", ftp(moved), "400 required body settings.password"),
    ];
    for (name, stated, expected) in cases {
        let path = format!("/user/v1/channel/{name}");
        let found = editor.refused(Method::PUT, &path, Some(&stated)).summary();
        assert!(found.starts_with(expected), "{name} {stated}: {found}");
    }
    let off = ChannelUpdate { active: Some(false), ..folder("demo-editor") };
    let off = put(&editor, "demo-folder", &off);
    assert_eq!((off.active, off.made_by), (false, ChannelMaker::Operator));
    remove(&editor, "demo-folder").unwrap();
    for index in 1..50 {
        put(&editor, &format!("m{index}"), &mail);
    }
    assert_eq!(update(&editor, "one-more", &mail).unwrap_err().status, 409);
    assert!(put(&editor, "m1", &mail).active, "one that is there is no further one");
    let test = TestChannel { name: "m1".to_owned() };
    let allowed = (0..40).position(|_| match editor.ask(&test) {
        Ok(tested) => {
            assert!(tested.ok, "into the outbox: {tested:?}");
            false
        }
        Err(refusal) => {
            assert_eq!(refusal.status, 503);
            true
        }
    });
    assert!(allowed >= Some(10), "too many within a minute: {allowed:?}");
}

#[test]
fn booleans_and_numbers_of_a_channel_are_given_on_the_command_line() {
    let server = Server::demo();
    let add = |(name, method): (&str, &str), settings: &[&str], status: i32| {
        let mut arguments = vec!["channel", "add", "demo-editor", name, "--method", method];
        arguments.extend(["--format", ".jpg"]);
        arguments.extend(settings.iter().flat_map(|setting| ["--setting", setting]));
        run(&server, &arguments, status).1
    };
    let secret = format!("secret={SECRET}");
    let hook = |allow: &'static str| ["url=http://hooks.example/in", &secret, allow];
    add(("clear", "webhook"), &hook("allowHttp=true"), 0);
    let refused = add(("yes", "webhook"), &hook("allowHttp=yes"), 1);
    assert!(refused.contains("settings.allowHttp is not true or false"), "{refused}");
    let refused = add(("no", "webhook"), &hook("allowHttp=false"), 1);
    assert!(refused.contains("settings.allowHttp permits http"), "{refused}");
    // A user name and a password of digits remain strings.
    let account = ["host=h", "username=1", "password=2"];
    add(("press", "ftps"), &[&account[..], &["port=2121", "implicit=true"]].concat(), 0);
    add(("json", "ftps"), &[&account[..], &["port:=2122", "implicit:=false"]].concat(), 0);
    let refused = add(("port", "ftp"), &[&account[..], &["port=0"]].concat(), 1);
    assert!(refused.contains("settings.port is not a number from 1 to 65535"), "{refused}");
    let (stdout, _) = run(&server, &["channel", "list", "--user", "demo-editor", "--json"], 0);
    let listed: Value = serde_json::from_str(&stdout).unwrap();
    let settings = |name: &str| {
        let found = listed.as_array().unwrap().iter().find(|one| one["name"] == name);
        found.unwrap()["settings"].clone()
    };
    assert_eq!(settings("clear")["url"], "http://hooks.example:80/***");
    let press = settings("press");
    assert_eq!((&press["port"], &press["implicit"]), (&json!(2121), &json!(true)), "{press}");
    assert_eq!(settings("json")["port"], 2122);
}
