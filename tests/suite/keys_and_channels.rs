//! Devices, API keys and delivery channels, which users manage through the user API.

use reqwest::{Method, StatusCode, header::AUTHORIZATION};
use serde_json::{Value, json};

use crate::{
    common::{DEMO_KEY, Server, postgres, tokens},
    deliveries::{ITEM, id, run, until},
    receivers::Receiver,
};

/// Allows users' channels to reach the receivers of these tests.
const OPEN: [&str; 2] = ["delivery.private_addresses=true", "delivery.retry_first_ms=50"];
/// A key of another organization's user.
const BUYER_KEY: &str = "demo-key-0000-0000-000000000003";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr";

struct Caller<'a> {
    server: &'a Server,
    authorization: String,
}

impl<'a> Caller<'a> {
    fn key(server: &'a Server, key: &str) -> Self {
        Self { server, authorization: format!("ApiKey {key}") }
    }

    /// A demo user who has logged in.
    fn login(server: &'a Server, user: &str) -> Self {
        Self::with_scopes(server, user, tokens::API_KEY_SCOPES)
    }

    /// An application with a demo user's token of these scopes.
    fn with_scopes(server: &'a Server, user: &str, scope: &str) -> Self {
        let token = tokens::password(server, user, &format!("{user}-password"), scope);
        Self { server, authorization: format!("Bearer {token}") }
    }

    fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, String) {
        let request = self.server.client.request(method, format!("{}{path}", self.server.url));
        let mut request = request.header(AUTHORIZATION, &self.authorization);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().unwrap();
        (response.status(), response.text().unwrap())
    }

    /// The JSON of a 200 response.
    fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let (status, text) = self.send(method, path, body);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    fn list(&self, path: &str) -> Vec<Value> {
        self.ask(Method::GET, path, None).as_array().unwrap().clone()
    }

    fn put(&self, name: &str, channel: &Value) -> Value {
        self.ask(Method::PUT, &format!("/user/v1/channel/{name}"), Some(channel))
    }

    /// Tests a channel; repeats the test if a busy machine exceeded its timeout.
    fn test(&self, name: &str) -> (bool, String) {
        let once = || {
            let tested = self.ask(Method::POST, &format!("/user/v1/channel/{name}/test"), None);
            (tested["ok"].as_bool().unwrap(), tested["message"].as_str().unwrap().to_owned())
        };
        let (ok, said) = once();
        let is_late = ["within", "timed out", "too long"].iter().any(|word| said.contains(word));
        if !ok && is_late { once() } else { (ok, said) }
    }

    /// Status, `errorCode` and `path` of a refusal.
    fn refused(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, String, String) {
        let (status, text) = self.send(method, path, body);
        let body: Value = serde_json::from_str(&text).unwrap();
        let part = |name: &str| body["errors"][0][name].as_str().unwrap_or_default().to_owned();
        let code = part("errorCode").replace(".openapi.requestValidation", "");
        (status.as_u16(), code, part("path"))
    }

    fn refused_channel(&self, name: &str, channel: &Value) -> (u16, String, String) {
        self.refused(Method::PUT, &format!("/user/v1/channel/{name}"), Some(channel))
    }
}

fn refusal(status: u16, code: &str, path: &str) -> (u16, String, String) {
    (status, code.to_owned(), path.to_owned())
}

fn hook(url: &str) -> Value {
    json!({
        "method": "webhook", "formats": [".json"],
        "settings": { "url": url, "secret": SECRET, "allowHttp": true },
    })
}

#[test]
fn devices_are_listed_for_their_owner_alone() {
    let server = Server::demo();
    let editor = Caller::key(&server, DEMO_KEY);
    assert_eq!(editor.list("/user/v1/device"), Vec::<Value>::new());
    for (token, query) in [("a:1", "type=android&model=P&name=Mobil"), ("b", "type=ios&model=Q")] {
        let path = format!("/user/v1/device/{token}?{query}");
        assert_eq!(editor.send(Method::PUT, &path, None).0, 200);
    }
    let devices = editor.list("/user/v1/device");
    let told = json!({ "token": "a:1", "type": "android", "name": "Mobil", "model": "P" });
    for (name, value) in told.as_object().unwrap() {
        assert_eq!(&devices[0][name], value);
    }
    assert_eq!((&devices[1]["token"], &devices[1]["name"]), (&json!("b"), &Value::Null));
    assert!(devices[1]["registered"].as_str().unwrap().ends_with('Z'), "{devices:?}");
    assert_eq!(editor.send(Method::DELETE, "/user/v1/device/b", None).0, 200);
    assert_eq!(editor.list("/user/v1/device").len(), 1);
    let buyer = Caller::key(&server, BUYER_KEY);
    assert_eq!(buyer.list("/user/v1/device"), Vec::<Value>::new());
}

#[test]
fn a_key_is_valid_from_its_creation_until_it_is_revoked() {
    let server = Server::demo();
    let editor = Caller::login(&server, "demo-editor");
    let before = editor.list("/user/v1/key");
    assert_eq!(before.len(), 1, "the demo key");
    let made = editor.ask(Method::POST, "/user/v1/key", Some(&json!({ "name": " Bildbord " })));
    let key = made["key"].as_str().unwrap().to_owned();
    assert_eq!((key.len(), &made["name"]), (43, &json!("Bildbord")));
    let listed = editor.list("/user/v1/key");
    assert_eq!(listed.len(), 2);
    let mut expected = made.clone();
    expected.as_object_mut().unwrap().remove("key");
    assert_eq!(listed[1], expected);
    let program = Caller::key(&server, &key);
    assert_eq!(program.ask(Method::GET, "/user/v1/user", None)["userName"], "demo-editor");
    let admin_only = program.refused(Method::GET, "/user/v1/organization/user", None);
    assert_eq!(admin_only, refusal(403, "insufficient_scope", ""));
    let path = format!("/user/v1/key/{}", made["id"]);
    let buyer = Caller::key(&server, BUYER_KEY);
    assert_eq!(buyer.send(Method::DELETE, &path, None).0, 404, "somebody else's");
    assert_eq!(program.send(Method::GET, "/user/v1/user", None).0, 200);
    assert_eq!(editor.send(Method::DELETE, &path, None), (StatusCode::OK, "OK".to_owned()));
    assert_eq!(program.send(Method::GET, "/user/v1/user", None).0, 401);
    assert_eq!(editor.send(Method::DELETE, &path, None).0, 404, "twice");
    assert_eq!(editor.send(Method::DELETE, "/user/v1/key/x", None).0, 400);
    assert_eq!(editor.list("/user/v1/key"), before);
    let (said, _) = run(&server, &["key", "list", "demo-editor"], 0);
    assert!(
        said.contains("Bildbord") && said.contains("revoked") && !said.contains(&key),
        "{said}"
    );
    let stored = postgres::stored(&server.data());
    assert!(!stored.windows(key.len()).any(|part| part == key.as_bytes()));
}

#[test]
fn keys_and_service_accounts_create_no_keys() {
    let server = Server::demo();
    let body = json!({ "name": "x" });
    let make = |caller: &Caller<'_>, body: &Value| {
        caller.refused(Method::POST, "/user/v1/key", Some(body))
    };
    let program = Caller::key(&server, DEMO_KEY);
    assert_eq!(make(&program, &body), refusal(403, "api_key_unsupported", ""));
    let service = Caller::login(&server, "demo-service");
    assert_eq!(make(&service, &body), refusal(403, "service_account_unsupported", ""));
    let editor = Caller::login(&server, "demo-editor");
    assert_eq!(make(&editor, &json!({})), refusal(400, "required", "name"));
    assert_eq!(make(&editor, &json!({ "name": "" })), refusal(400, "pattern", "name"));
    for _ in 1..100 {
        editor.ask(Method::POST, "/user/v1/key", Some(&body));
    }
    assert_eq!(make(&editor, &body).0, 409);
    let one = editor.list("/user/v1/key")[5]["id"].clone();
    assert_eq!(program.send(Method::DELETE, &format!("/user/v1/key/{one}"), None).0, 200);
    editor.ask(Method::POST, "/user/v1/key", Some(&body));
}

#[test]
fn an_application_creates_no_keys_and_writes_no_channels_beyond_its_scopes() {
    let server = Server::demo();
    let lacking = refusal(403, "insufficient_scope", "");
    let key = json!({ "name": "x" });
    let channel = json!({ "method": "download", "formats": [".json"] });
    let own = "/user/v1/channel/own";
    let editor = Caller::login(&server, "demo-editor");
    let number = editor.list("/user/v1/key")[0]["id"].clone();
    let revoke = format!("/user/v1/key/{number}");
    editor.put("own", &channel);
    let roles = Caller::with_scopes(&server, "demo-editor", "roles");
    for scope in ["roles", "roles profile", "openid roles email user customer collection"] {
        let application = Caller::with_scopes(&server, "demo-editor", scope);
        let made = application.refused(Method::POST, "/user/v1/key", Some(&key));
        assert_eq!(made, lacking, "{scope}");
    }
    assert_eq!(roles.refused(Method::DELETE, &revoke, None), lacking);
    assert_eq!(roles.refused_channel("own", &channel), lacking);
    assert_eq!(roles.refused(Method::DELETE, own, None), lacking);
    assert_eq!(editor.list("/user/v1/key").len(), 1, "nothing was made");
    // Reads need no scopes beyond the previous ones.
    assert_eq!(roles.list("/user/v1/key").len(), 1);
    assert!(roles.list("/user/v1/channel").iter().any(|one| one["name"] == "own"));
    let profile = Caller::with_scopes(&server, "demo-editor", "roles profile");
    profile.put("own", &channel);
    assert_eq!(profile.send(Method::DELETE, own, None).0, 200);
    assert_eq!(profile.send(Method::DELETE, &revoke, None).0, 200);
    let challenge = server.client.delete(format!("{}{own}", server.url));
    let challenge = challenge.header(AUTHORIZATION, &roles.authorization).send().unwrap();
    let challenge = challenge.headers()["www-authenticate"].to_str().unwrap().to_owned();
    assert!(challenge.contains("scope=\"profile\""), "{challenge}");
}

#[test]
fn a_channel_created_by_a_user_delivers_until_it_is_removed() {
    let server = Server::demo_with(&OPEN);
    let mut receiver = Receiver::start("webhook_server.py", "plain");
    let editor = Caller::key(&server, DEMO_KEY);
    let url = format!("{}/status/200", receiver.url());
    let made = editor.put("hook", &hook(&url));
    assert_eq!(made["id"], "user:demo-editor:hook");
    assert_eq!((&made["method"], &made["active"]), (&json!("webhook"), &json!(true)));
    assert_eq!((&made["madeBy"], &made["formats"]), (&json!("user"), &json!([".json"])));
    assert_eq!(made["settings"]["secret"], "***");
    let names: Vec<Value> =
        editor.list("/user/v1/channel").iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["demo-download", "demo-folder", "demo-mail", "hook"]);
    let trigger = || {
        let path = format!("{}{ITEM}?channel=user:demo-editor:hook", server.url);
        server.client.get(path).header(AUTHORIZATION, &editor.authorization).send().unwrap()
    };
    until(&server, &id(trigger()), "delivered");
    assert_eq!(receiver.next()["verified"], true);
    // The secret survives a PUT of the displayed channel.
    let mut changed = json!({
        "method": "webhook", "formats": [".xml"], "settings": made["settings"], "active": false,
    });
    assert_eq!(editor.put("hook", &changed)["active"], false);
    assert_eq!(trigger().status(), 404);
    changed["settings"].as_object_mut().unwrap().remove("secret");
    changed["active"] = json!(true);
    assert_eq!(editor.put("hook", &changed)["formats"], json!([".xml"]));
    until(&server, &id(trigger()), "delivered");
    assert_eq!(receiver.next()["verified"], true);
    let shown = Value::from(editor.list("/user/v1/channel")).to_string();
    assert!(!shown.contains(SECRET) && !shown.contains("/status"), "{shown}");
    let buyer = Caller::key(&server, BUYER_KEY);
    assert_eq!(buyer.list("/user/v1/channel"), Vec::<Value>::new());
    let path = "/user/v1/channel/hook";
    assert_eq!(buyer.send(Method::DELETE, path, None).0, 404);
    assert_eq!(editor.send(Method::DELETE, path, None), (StatusCode::OK, "OK".to_owned()));
    assert_eq!(editor.send(Method::DELETE, path, None).0, 404);
    assert_eq!(trigger().status(), 404);
}

#[test]
fn a_channel_test_reports_its_outcome_and_no_secret() {
    let server = Server::demo_with(&OPEN);
    let mut receiver = Receiver::start("webhook_server.py", "plain");
    let editor = Caller::key(&server, DEMO_KEY);
    let url = receiver.url();
    let mut files = hook(&format!("{url}/status/200"));
    files["settings"]["mode"] = json!("files");
    // A channel that is not active yet is tested as well.
    files["active"] = json!(false);
    editor.put("good", &files);
    assert_eq!(editor.test("good"), (true, "wirephoto-test.txt was delivered.".to_owned()));
    let seen = receiver.next();
    assert_eq!((&seen["verified"], &seen["type"]), (&json!(true), &json!("text/plain")));
    assert_eq!(seen["file"]["name"], "wirephoto-test.txt");
    let place = url.trim_start_matches("http://");
    for (path, said) in [
        ("/status/403", "posting: the answer was 403: Forbidden"),
        // Redirects are not followed, because they could lead anywhere.
        ("/redirect", "posting: the answer was 302: Found"),
    ] {
        editor.put("bad", &hook(&format!("{url}{path}")));
        let expected = format!("The test failed: {place}, {said}.");
        assert_eq!(editor.test("bad"), (false, expected));
        assert_eq!(receiver.next()["path"], path);
    }
    drop(receiver);
    let (ok, message) = editor.test("good");
    assert!(
        !ok && message.contains("Connection refused") && !message.contains(SECRET),
        "{message}"
    );
    assert!(editor.test("demo-folder").0, "the operator's folder");
    let written = server.data().join("deliveries/demo-editor/wirephoto-test.txt");
    let text = std::fs::read_to_string(written).unwrap();
    assert!(text.contains("test of the delivery channel user:demo-editor:demo-folder"), "{text}");
    assert!(editor.test("demo-download").0);
    assert_eq!(editor.send(Method::POST, "/user/v1/channel/none/test", None).0, 404);
    let deliveries = editor.ask(Method::GET, "/user/v1/delivery", None);
    assert_eq!(deliveries["deliveries"], json!([]), "a test is no delivery");
}

#[test]
fn a_channel_of_a_user_does_not_lead_into_the_services_network() {
    let server = Server::demo_with(&["delivery.retry_first_ms=50"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let editor = Caller::key(&server, DEMO_KEY);
    let account = |host: &str| {
        json!({
            "host": host, "port": port, "username": "u", "password": "p4ssword",
        })
    };
    let channel = |method: &str, settings: Value| json!({ "method": method, "formats": [".json"], "settings": settings });
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
        channel("ftp", account("localhost")),
        channel("ftps", implicit),
        channel("sftp", sftp),
    ];
    for (index, stated) in cases.iter().enumerate() {
        let name = format!("c{index}");
        editor.put(&name, stated);
        let (ok, message) = editor.test(&name);
        // The addresses that a name resolves to are not revealed.
        let expected = match stated.to_string().contains("localhost") {
            true => "the host has no public address",
            false => "is in a private network",
        };
        assert!(!ok && message.contains(expected), "{stated}: {message}");
        assert!(!message.contains("p4ssword"), "{message}");
    }
    // Another user, who has a separate quota of tests per minute.
    let buyer = Caller::key(&server, BUYER_KEY);
    for (host, expected) in
        [("127.0.0.1", "is in a private network"), ("localhost", "has no public address")]
    {
        buyer.put("bucket", &channel("s3", bucket(host)));
        let (ok, message) = buyer.test("bucket");
        assert!(!ok && message.contains(expected), "{host}: {message}");
    }
    let path = format!("{}{ITEM}?channel=user:demo-editor:c0", server.url);
    let asked = server.client.get(path).header(AUTHORIZATION, &editor.authorization).send();
    let failed = until(&server, &id(asked.unwrap()), "failed");
    assert!(failed.error.unwrap().contains("private network"));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody connected");
}

#[test]
fn a_channel_of_the_operator_leads_anywhere_until_its_owner_changes_it() {
    let server = Server::demo();
    let editor = Caller::key(&server, DEMO_KEY);
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
    assert!(editor.test("paper").0);
    assert_eq!(receiver.next()["verified"], true);
    let paper = |one: &Value| one["name"] == "paper";
    let shown = editor.list("/user/v1/channel").into_iter().find(paper).unwrap();
    assert_eq!(shown["madeBy"], "operator");
    let mut again = json!({
        "method": "webhook", "formats": [".json"], "settings": shown["settings"],
    });
    assert_eq!(editor.put("paper", &again)["madeBy"], "operator");
    again["formats"] = json!([".json", ".xml"]);
    assert_eq!(editor.put("paper", &again)["madeBy"], "user");
    assert!(editor.test("paper").1.contains("is in a private network"));
}

#[test]
fn an_invalid_channel_is_refused_with_the_path_of_the_error() {
    let server = Server::demo();
    let editor = Caller::key(&server, DEMO_KEY);
    let ftp =
        |settings: Value| json!({ "method": "ftp", "formats": [".json"], "settings": settings });
    let account = json!({ "host": "h.example", "username": "u", "password": "hunter2-hunter2" });
    let mut moved = account.clone();
    moved["host"] = json!("evil.example");
    moved.as_object_mut().unwrap().remove("password");
    editor.put("own", &ftp(account.clone()));
    let folder = |path: &str| {
        json!({
            "method": "directory", "formats": ["_NormalHires.jpg", ".json"],
            "settings": { "path": path },
        })
    };
    let cases = [
        ("x", json!({}), refusal(400, "required", "method")),
        ("x", ftp(json!({})), refusal(400, "required", "settings.host")),
        (
            "x",
            json!({ "method": "email", "formats": ["x"], "settings": { "to": "a@b.example" } }),
            refusal(400, "pattern", "formats.0"),
        ),
        ("a:b", ftp(account.clone()), refusal(400, "pattern", "name")),
        ("x", folder("etc"), refusal(403, "operator_channel", "")),
        ("demo-folder", folder("other"), refusal(403, "operator_channel", "")),
        ("own", ftp(moved), refusal(400, "required", "settings.password")),
    ];
    for (name, stated, expected) in cases {
        assert_eq!(editor.refused_channel(name, &stated), expected, "{name} {stated}");
    }
    let mut off = folder("demo-editor");
    off["active"] = json!(false);
    let off = editor.put("demo-folder", &off);
    assert_eq!((&off["active"], &off["madeBy"]), (&json!(false), &json!("operator")));
    assert_eq!(editor.send(Method::DELETE, "/user/v1/channel/demo-folder", None).0, 200);
    let mail =
        json!({ "method": "email", "formats": [".json"], "settings": { "to": "a@b.example" } });
    for index in 1..50 {
        editor.put(&format!("m{index}"), &mail);
    }
    assert_eq!(editor.refused_channel("one-more", &mail).0, 409);
    assert_eq!(editor.put("m1", &mail)["active"], true, "one that is there is no further one");
    let mut tests = (0..40).map(|_| {
        let (status, text) = editor.send(Method::POST, "/user/v1/channel/m1/test", None);
        assert!(status == 503 || text.contains("\"ok\":true"), "into the outbox: {text}");
        status
    });
    let allowed = tests.position(|status| status == 503);
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
