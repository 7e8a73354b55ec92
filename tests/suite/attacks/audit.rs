//! The audit log: it records who did what, and nothing else.

use api::organization::{
    CreateOrganizationUser, UpdateOrganizationUser, UserRightsUpdate, UserUpdate,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use model::account::ChannelMethod;
use reqwest::{Method, header::AUTHORIZATION};
use serde_json::{Value, json};

use crate::common::api::{ApiCaller, new_user};
use crate::common::server::{demo_originals, output, wirephoto};
use crate::common::{DEMO_KEY, Server, checkout, postgres};
use crate::keys_and_channels::{channel, make_key, put, remove, revoke};
use crate::site_account::Person;

const ITEM: &str = "image/demo-trollslanda";
/// A licence of the product that the item belongs to.
const LICENSE: &str = "2c916e2d-b755-446d-9e18-d636a1447141";
const CHEAP_HASHING: [&str; 2] = ["auth.hash_memory_kib=64", "auth.hash_iterations=1"];

/// The events that the command lists, newest first.
fn events(server: &Server, filter: &[&str]) -> Vec<Value> {
    let arguments = [&["audit", "list", "--json", "--limit", "100000"], filter].concat();
    let listed = server.command(&arguments);
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let text = String::from_utf8(listed.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the only event of that action and object.
fn one(events: &[Value], action: &str, object: &str) -> Value {
    let found: Vec<&Value> = events
        .iter()
        .filter(|event| event["action"] == action && event["object"] == object)
        .collect();
    assert_eq!(found.len(), 1, "{action} {object}: {events:#?}");
    found[0].clone()
}

/// The actor of an event: user name, kind of credentials, their id, address.
fn actor(event: &Value) -> [&str; 4] {
    ["userName", "credential", "credentialId", "address"]
        .map(|name| event[name].as_str().unwrap_or_default())
}

fn login_form(server: &Server, user: &str, password: &str) -> u16 {
    let fields = [
        ("grant_type", "password"),
        ("client_id", "demo-client"),
        ("client_secret", "demo-client-secret"),
        ("username", user),
        ("password", password),
        ("scope", "roles"),
    ];
    server.post_form("/o/oauth2/token", &fields).status().as_u16()
}

/// Presents a refresh token twice.
fn reuse_a_refresh_token(server: &Server) -> Vec<String> {
    let secret = ("client_secret", "demo-client-secret");
    let client = [("client_id", "demo-client"), secret];
    let given = [
        ("grant_type", "password"),
        ("username", "demo-editor"),
        ("password", "demo-editor-password"),
        ("scope", "roles"),
    ];
    let answer = server.post_form("/o/oauth2/token", &[&given[..], &client].concat());
    let set: Value = answer.json().unwrap();
    let token = set["refresh_token"].as_str().unwrap().to_owned();
    let again = [("grant_type", "refresh_token"), ("refresh_token", &token)];
    for status in [200, 400] {
        let answer = server.post_form("/o/oauth2/token", &[&again[..], &client].concat());
        assert_eq!(answer.status(), status);
    }
    vec![token, set["access_token"].as_str().unwrap().to_owned()]
}

/// A sequence of typical actions; returns every secret that it used.
fn perform_actions(server: &Server) -> Vec<String> {
    let mut secrets = vec!["typed-in-the-wrong-field".to_owned(), "wrong-guess".to_owned()];
    assert_eq!(login_form(server, "demo-buyer", "wrong-guess"), 400);
    assert_eq!(login_form(server, "typed-in-the-wrong-field", "wrong-guess"), 400);
    secrets.extend(reuse_a_refresh_token(server));
    // A login creates a key, uses it, and revokes it with the key itself.
    let made = make_key(&ApiCaller::login(server, "demo-editor"), "desk");
    let by_key = ApiCaller::key(server, &made.key);
    secrets.push(made.key);
    let settings =
        json!({ "host": "ftp.example.org", "username": "u", "password": "channel-secret" });
    secrets.push("channel-secret".to_owned());
    let mut stated = channel(ChannelMethod::Ftp, settings);
    // A PUT that leaves a channel unchanged is not recorded.
    for format in [".json", ".json", ".jpg"] {
        stated.formats = vec![format.to_owned()];
        put(&by_key, "desk", &stated);
    }
    remove(&by_key, "desk").unwrap();
    revoke(&by_key, made.id).unwrap();
    // An administrator makes a user an administrator.
    let admin = ApiCaller::login(server, "demo-admin");
    let user = new_user("new@demo-desk.example", "New", "User");
    let id = admin.send(&CreateOrganizationUser {}, &user).unwrap().base.id;
    let access = Some(UserRightsUpdate { admin: Some(true), mediebank: None });
    let change = UserUpdate { access, ..UserUpdate::default() };
    admin.send(&UpdateOrganizationUser { id }, &change).unwrap();
    // An order is placed and approved.
    let buyer = ApiCaller::login(server, "demo-buyer");
    let path = format!("/media/{ITEM}.jpg?agr=1003");
    assert_eq!(buyer.request(Method::GET, &path, None).status(), 403);
    buyer.report(buyer.orders()[0].id, Some(LICENSE)).unwrap();
    // A user logs in, authorizes a client, and logs out.
    let person = Person::log_in(server, "demo-editor");
    let request = "response_type=code&client_id=demo-client&scope=roles\
         &redirect_uri=http%3A%2F%2F127.0.0.1%3A9000%2Fcb";
    person.done("/o/consent", &[("request", request), ("decision", "allow")]);
    person.done("/o/logout", &[]);
    // An item is withdrawn, and a command runs.
    let gone = format!("/ingest/v1/{ITEM}");
    assert_eq!(admin.request(Method::DELETE, &gone, None).status(), 200);
    let added = server.command(&["key", "add", "demo-editor", "--name", "night"]);
    secrets.push(String::from_utf8(added.stdout).unwrap().trim().to_owned());
    assert!(server.command(&["user", "disable", "demo-service"]).status.success());
    for user in ["demo-editor", "demo-admin", "demo-buyer"] {
        secrets.push(format!("{user}-password"));
    }
    secrets.push("demo-client-secret".to_owned());
    secrets
}

fn check_events(events: &[Value]) {
    let (here, name) = ("127.0.0.1", |event: &Value| event["detail"].as_str().unwrap().to_owned());
    let refused: Vec<&Value> = events
        .iter()
        .filter(|event| event["action"] == "login" && event["outcome"] == "refused")
        .collect();
    // Newest first. The name entered for an unknown user is not recorded.
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_eq!(actor(refused[0]), ["", "password", "", here]);
    assert_eq!(actor(refused[1]), ["demo-buyer", "password", "", here]);
    let key = one(events, "key_created", "key/3");
    assert_eq!(
        (&actor(&key)[..2], name(&key)),
        (&["demo-editor", "access_token"][..], "desk".to_owned())
    );
    for (action, object) in [
        ("channel_created", "channel/user:demo-editor:desk"),
        ("channel_changed", "channel/user:demo-editor:desk"),
        ("channel_removed", "channel/user:demo-editor:desk"),
        ("key_revoked", "key/3"),
    ] {
        let event = one(events, action, object);
        assert_eq!(actor(&event), ["demo-editor", "api_key", "3", here], "{action}");
    }
    let made = events.iter().find(|event| event["action"] == "user_created").unwrap();
    assert_eq!((actor(made)[0], made["user"].as_i64()), ("demo-admin", Some(102)));
    let changed = one(events, "user_changed", made["object"].as_str().unwrap());
    assert_eq!(name(&changed), "access.admin=true");
    for action in ["order_created", "order_reported"] {
        let event = events.iter().find(|event| event["action"] == action).unwrap();
        assert_eq!(actor(event)[0], "demo-buyer", "{action}");
        assert!(name(event).contains(ITEM), "{event}");
    }
    let consent = one(events, "consent_given", "consent/demo-client");
    assert_eq!(actor(&consent), ["demo-editor", "session", "", here]);
    let reused = one(events, "token_reused", "client/demo-client");
    assert_eq!(actor(&reused), ["demo-editor", "client_secret", "demo-client", here]);
    assert!(events.iter().any(|event| event["action"] == "logout"));
    let gone = one(events, "item_withdrawn", &format!("item/{ITEM}"));
    assert_eq!(actor(&gone)[0], "demo-admin");
    let key = one(events, "key_created", "key/4");
    assert_eq!(actor(&key)[1], "command_line");
    let disabled = one(events, "user_changed", "user/104");
    assert_eq!(
        (actor(&disabled)[1], disabled["outcome"].as_str()),
        ("command_line", Some("done"))
    );
}

#[test]
fn every_action_is_recorded_and_no_secret_is() {
    let server = Server::demo_with(&CHEAP_HASHING);
    let secrets = perform_actions(&server);
    // Login events are batched for a moment.
    server.until("the last login", || {
        let logins = events(&server, &["--action", "login", "--user", "demo-buyer"]);
        logins.iter().any(|event| event["outcome"] == "done").then_some(())
    });
    let before = events(&server, &[]);
    check_events(&before);
    let log = server.log();
    assert!(log.contains("\"action\":\"key_created\""), "events are log lines too");
    let server = server.restart(&CHEAP_HASHING);
    let after = events(&server, &[]);
    assert!(after.ends_with(&before), "what was recorded stays");
    let listed = serde_json::to_string(&after).unwrap();
    for secret in secrets.iter().map(String::as_str).chain([DEMO_KEY]) {
        assert!(
            !secret.is_empty() && !listed.contains(secret) && !log.contains(secret),
            "{secret}"
        );
    }
}

#[test]
fn refusals_and_backups_are_recorded() {
    let server = Server::demo_with(&CHEAP_HASHING);
    let service = ApiCaller::login(&server, "demo-service");
    assert_eq!(service.report(7, Some(LICENSE)).unwrap_err().status, 403);
    let path = format!("/ingest/v1/{ITEM}");
    let editor = ApiCaller::login(&server, "demo-editor");
    for method in [Method::PUT, Method::DELETE] {
        assert_eq!(editor.request(method, &path, Some(&json!({}))).status(), 403);
    }
    let admin = ApiCaller::login(&server, "demo-admin");
    let bad = json!({ "headline": 7 });
    assert_eq!(admin.request(Method::PUT, "/ingest/v1/image/bad", Some(&bad)).status(), 400);
    let item = format!("item/{ITEM}");
    let expected = [
        ("order_reported", "order/7", "refused", "demo-service"),
        ("item_stored", &item, "refused", "demo-editor"),
        ("item_withdrawn", &item, "refused", "demo-editor"),
        ("item_stored", "item/image/bad", "failed", "demo-admin"),
    ];
    // Events are batched for a moment, the last one longest.
    let found = server.until("the events", || {
        let found = events(&server, &[]);
        found.iter().any(|event| event["outcome"] == "failed").then_some(found)
    });
    for (action, object, outcome, user) in expected {
        let event = one(&found, action, object);
        assert_eq!((event["outcome"].as_str(), actor(&event)[0]), (Some(outcome), user));
    }
    if postgres::url_of(server.dir.path()).is_none() {
        let target = server.dir.path().join("copy").to_string_lossy().into_owned();
        let copied = server.command(&["backup", &target, "--set", &demo_originals()]);
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let backup = one(&events(&server, &[]), "command", &format!("path/{target}"));
        assert_eq!(backup["detail"], "backup: with the key of its secrets");
        assert!(backup["credentialId"].is_string(), "the number of the user: {backup}");
    }
}

#[test]
fn a_request_log_line_names_its_user_even_for_a_cache_hit() {
    let server = Server::demo();
    let path = "/media/image/demo-solnedgang-over-bergen-crop_w90_h60.jpg";
    for _ in 0..2 {
        let answer = server.get_with(path, &[("authorization", &format!("ApiKey {DEMO_KEY}"))]);
        assert_eq!(answer.status(), 200);
    }
    drop(server.get("/media/image/demo-solnedgang-over-bergen_NormalPreview.jpg"));
    let lines = server.until("three lines", || {
        let log = server.log();
        let lines: Vec<Value> = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|line: &Value| line["message"] == "request")
            .collect();
        (lines.len() >= 3).then_some(lines)
    });
    let told: Vec<_> = lines.iter().map(|line| (&line["cache"], &line["user"])).collect();
    assert_eq!(told[1], (&json!("memory"), &json!(101)), "{lines:?}");
    assert_eq!(told[2].1, &Value::Null, "nobody is known");
}

#[test]
fn the_token_of_a_mailed_link_is_in_no_log_line_however_its_address_is_spelled() {
    const TOKEN: &str = "WjUtokenOfAMailcVWU";
    let server = Server::demo();
    for page in ["/o/password/", "/unsubscribe/", "/mail/"] {
        drop(server.get(&format!("{page}{TOKEN}")));
        assert_eq!(server.get(&format!("{page}{TOKEN}/")).status(), 308, "{page}");
        for other in [format!("/{page}{TOKEN}"), format!("{page}{TOKEN}/x")] {
            assert_eq!(server.get(&other).status(), 404, "{other}");
        }
        assert_eq!(server.get(&format!("{}{TOKEN}", page.to_uppercase())).status(), 404);
    }
    assert_eq!(server.get("/the/last/one").status(), 404);
    let log = server.until("the last line", || {
        let log = server.log();
        log.contains("/the/last/one").then_some(log)
    });
    assert!(log.contains("/o/password/…") && !log.contains(TOKEN), "{log}");
}

#[test]
fn a_flood_of_guesses_is_recorded_as_few_events_with_counts() {
    const GUESSES: u64 = 5_000;
    let settings = [&CHEAP_HASHING[..], &["auth.failures_per_user=3"]].concat();
    let server = Server::demo_with(&settings);
    for guess in 0..GUESSES {
        let credentials = STANDARD.encode(format!("demo-editor:guess-{guess}"));
        let request = server.client.get(format!("{}/content/v1/image/search?s=0", server.url));
        let answer = request.header(AUTHORIZATION, format!("Basic {credentials}")).send().unwrap();
        assert!([401, 503].contains(&answer.status().as_u16()), "{}", answer.status());
    }
    // Buffered events are written when the service stops.
    let server = server.restart(&settings);
    let checked = events(&server, &["--action", "login", "--outcome", "refused"]);
    let throttled = events(&server, &["--action", "login_throttled"]);
    assert!(checked.len() < 20 && throttled.len() < 20, "{} {}", checked.len(), throttled.len());
    assert!(checked.iter().all(|event| actor(event)[1] == "basic"), "{checked:?}");
    let count: u64 = throttled.iter().map(|event| event["count"].as_u64().unwrap()).sum();
    assert_eq!(count + checked.len() as u64, GUESSES);
    let first = throttled.last().unwrap();
    assert_eq!((actor(first)[0], &first["object"]), ("demo-editor", &json!("user/101")));
}

#[test]
fn an_acknowledged_change_is_recorded_even_if_the_process_is_killed() {
    let server = Server::demo_with(&CHEAP_HASHING);
    let made = make_key(&ApiCaller::login(&server, "demo-editor"), "last words");
    let dir = server.kill();
    let server = Server::start(dir, &CHEAP_HASHING);
    let key = one(&events(&server, &[]), "key_created", &format!("key/{}", made.id));
    assert_eq!(key["detail"], "last words");
}

#[test]
fn events_expire_and_none_are_stored_with_a_retention_of_zero() {
    let server = Server::demo_with(&CHEAP_HASHING);
    drop(Person::log_in(&server, "demo-editor"));
    let server = server.restart(&[&CHEAP_HASHING[..], &["audit.retention_days=0"]].concat());
    let stored = |server: &Server| server.command(&["audit", "list", "--json"]).stdout;
    server.until("removal", || stored(&server).is_empty().then_some(()));
    drop(Person::log_in(&server, "demo-buyer"));
    let without = ["user", "disable", "demo-service", "--set", "audit.retention_days=0"];
    assert!(server.command(&without).status.success());
    server.until("a log line", || server.log().contains("\"action\":\"login\"").then_some(()));
    let server = server.restart(&CHEAP_HASHING);
    assert_eq!(String::from_utf8(stored(&server)).unwrap(), "");
}

#[test]
fn the_audit_log_is_listed_as_its_documentation_shows() {
    let server = Server::demo_with(&CHEAP_HASHING);
    drop(Person::log_in(&server, "demo-editor"));
    let page = std::fs::read_to_string(checkout("docs/operations/audit-log.md")).unwrap();
    let shown: Vec<&str> =
        page.lines().filter(|line| line.starts_with("wirephoto audit list")).collect();
    assert!(shown.len() >= 5, "{shown:?}");
    for line in shown {
        let mut command = wirephoto(server.dir.path());
        command.args(line.split_whitespace().skip(1)).arg("--data").arg(server.data());
        let listed = output(&mut command);
        assert!(listed.status.success(), "{line}: {}", String::from_utf8_lossy(&listed.stderr));
    }
    let wrong = server.command(&["audit", "list", "--action", "logging"]);
    assert_eq!(wrong.status.code(), Some(2));
    let wrong = server.command(&["audit", "list", "--since", "yesterday"]);
    assert_eq!(wrong.status.code(), Some(2));
}
