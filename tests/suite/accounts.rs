//! Account administration on the command line: the accounts file, and single users, clients and keys.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::common::server::{isolate_environment, output, wirephoto};
use crate::common::{LARGE, Server, checkout, postgres};

/// A data directory and commands that work on it. Password hashing is configured to be cheap.
struct Workspace {
    dir: tempfile::TempDir,
}

impl Workspace {
    fn empty() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Runs a command with `input` on its standard input.
    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = wirephoto(self.dir.path());
        command.args(arguments).args(CHEAP_HASHING).arg("--data").arg(self.data());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that does not read its input may have exited already.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    }

    /// Standard output and standard error of a command that must succeed.
    fn ok(&self, arguments: &[&str]) -> (String, String) {
        texts(&self.run(arguments, ""), Some(0))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (stdout, _) = self.ok(&[arguments, &["--json"]].concat());
        serde_json::from_str(&stdout).unwrap()
    }

    fn import(&self, file: &Path) -> Value {
        self.json(&["import", &file.to_string_lossy()])
    }

    /// The output of all list commands.
    fn lists(&self) -> [Value; 3] {
        ["user", "client", "key"].map(|what| self.json(&[what, "list"]))
    }
}

const CHEAP_HASHING: [&str; 4] =
    ["--set", "auth.hash_memory_kib=64", "--set", "auth.hash_iterations=1"];

fn texts(output: &Output, status: Option<i32>) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), status, "{stdout}{stderr}");
    (stdout, stderr)
}

fn demo_accounts() -> PathBuf {
    checkout("media-store/accounts.json")
}

/// Every password, secret and key of the demo accounts.
fn demo_secrets() -> Vec<String> {
    let file: Value = serde_json::from_slice(&fs::read(demo_accounts()).unwrap()).unwrap();
    let places = [("users", "password"), ("clients", "client_secret"), ("apiKeys", "key")];
    let secrets: Vec<String> = places
        .iter()
        .flat_map(|(list, name)| {
            file[list].as_array().unwrap().iter().filter_map(move |entry| entry[name].as_str())
        })
        .map(str::to_owned)
        .collect();
    assert!(secrets.len() >= 7);
    secrets
}

#[test]
fn importing_an_accounts_file_twice_is_idempotent() {
    let workspace = Workspace::empty();
    let first = workspace.import(&demo_accounts());
    let lists = ["organizations", "products", "agreements", "licenses", "users", "clients"];
    for list in lists.into_iter().chain(["apiKeys", "channels"]) {
        let created = &first[list]["created"];
        assert!(created.as_u64().unwrap() > 0, "{list}");
        assert_eq!(first[list], json!({ "created": created, "updated": 0, "unchanged": 0 }));
    }
    let before = workspace.lists();
    let second = workspace.import(&demo_accounts());
    for list in lists.into_iter().chain(["apiKeys", "channels"]) {
        let unchanged = &first[list]["created"];
        let expected = json!({ "created": 0, "updated": 0, "unchanged": unchanged });
        assert_eq!(second[list], expected, "{list}");
    }
    assert_eq!(workspace.lists(), before);
    let (stdout, _) = workspace.ok(&["import", &demo_accounts().to_string_lossy()]);
    assert!(stdout.contains("users: 0 created, 0 updated, 5 unchanged\n"), "{stdout}");
    assert!(stdout.contains("channels: 0 created, 0 updated, 3 unchanged\n"), "{stdout}");
}

#[test]
fn accounts_disabled_by_hand_stay_disabled_after_an_import() {
    let workspace = Workspace::empty();
    workspace.import(&demo_accounts());
    workspace.ok(&["key", "disable", "1"]);
    workspace.ok(&["client", "disable", "demo-app"]);
    let before = workspace.lists();
    workspace.import(&demo_accounts());
    assert_eq!(workspace.lists(), before);
    assert!(before[2][0]["revoked"].is_string());
}

#[test]
fn one_bad_entry_refuses_the_whole_file_and_is_named_without_its_secrets() {
    let workspace = Workspace::empty();
    let path = workspace.dir.path().join("bad.json");
    let check = |change: fn(&mut Value), part: &str| {
        let mut file: Value = serde_json::from_slice(&fs::read(demo_accounts()).unwrap()).unwrap();
        change(&mut file);
        fs::write(&path, file.to_string()).unwrap();
        let output = workspace.run(&["import", &path.to_string_lossy()], "");
        let (stdout, stderr) = texts(&output, Some(1));
        assert!(stdout.is_empty() && stderr.contains("bad.json: "), "{stderr}");
        assert!(stderr.contains(part), "{stderr} lacks {part}");
        assert!(demo_secrets().iter().all(|secret| !stderr.contains(secret)), "{stderr}");
        assert_eq!(workspace.lists(), [json!([]), json!([]), json!([])]);
    };
    check(
        |file| file["users"][3]["agreements"] = json!([40768]),
        r#"users[3] "demo-service": agreement 40768 does not exist"#,
    );
    check(
        |file| file["users"][2]["agreements"] = json!([1001]),
        r#"users[2] "demo-buyer": agreement 1001 belongs to organization 1, not to 2"#,
    );
    check(
        |file| file["users"][0]["password"] = json!([file["users"][0]["password"]]),
        "users[0]: password: expected a string",
    );
    check(
        |file| file["clients"][1]["client_secret"] = file["clients"][0]["client_secret"].clone(),
        r#"clients[1] "demo-app": client_secret: a public client has none"#,
    );
    check(
        |file| file["clients"][0]["redirect_uris"][1] = json!("https://*.example/cb"),
        "clients[0]: redirect_uris[1]: a redirect URI has no wildcard",
    );
    check(
        |file| file["apiKeys"][1]["key"] = file["apiKeys"][0]["key"].clone(),
        r#"apiKeys[1] of "demo-buyer": key: is also that of apiKeys[0]"#,
    );
    check(
        |file| file["agreements"][1]["prepaids"]["remaining"] = json!(11),
        "agreements[1] 1002: prepaids.remaining: is above the total",
    );
    check(
        |file| file["channels"][0]["owner"] = Value::Null,
        "channels[0]: owner: expected a string",
    );
    check(|file| file["licences"] = json!([]), "licences: is unknown");
}

#[test]
fn a_secret_is_printed_once_as_the_only_standard_output() {
    let workspace = Workspace::empty();
    workspace.import(&demo_accounts());
    let secret = |arguments: &[&str]| {
        let (stdout, stderr) = workspace.ok(arguments);
        let secret = stdout.strip_suffix('\n').unwrap().to_owned();
        assert!(secret.len() >= 43 && !secret.contains(char::is_whitespace), "{stdout}");
        assert!(stderr.contains("shown this once") && !stderr.contains(&secret), "{stderr}");
        secret
    };
    let secrets = [
        secret(&["user", "add", "editor", "--organization", "1", "--agreement", "1001"]),
        secret(&["user", "password", "editor"]),
        secret(&["client", "add", "desk", "--grant", "password,refresh_token"]),
        secret(&["client", "secret", "desk"]),
        secret(&["key", "add", "editor", "--name", "desk"]),
    ];
    let different: std::collections::BTreeSet<_> = secrets.iter().collect();
    assert_eq!(different.len(), secrets.len());
    let added = workspace.json(&["key", "add", "editor"]);
    assert_eq!(added["key"].as_str().map(str::len), Some(43));
    let public = ["client", "add", "app", "--public", "--grant", "authorization_code"];
    let (stdout, _) = workspace.ok(&public);
    assert_eq!(stdout, "", "a public client has no secret");
    let given = workspace.run(&["user", "add", "other", "--password-stdin"], "open sesame\n");
    let (stdout, stderr) = texts(&given, Some(0));
    assert!(stdout.is_empty() && !stderr.contains("sesame"), "{stdout}{stderr}");
    let shown = workspace.lists().map(|list| list.to_string()).concat();
    for secret in secrets.iter().map(String::as_str).chain(["open sesame", "$argon2"]) {
        assert!(!shown.contains(secret), "{secret} is listed");
    }
    nothing_in_the_database(&workspace.data(), &secrets);
    nothing_in_the_database(&workspace.data(), &["open sesame"]);
}

#[track_caller]
fn nothing_in_the_database<S: AsRef<str>>(data: &Path, secrets: &[S]) {
    let bytes = postgres::stored(data);
    assert!(!bytes.is_empty());
    for secret in secrets.iter().map(AsRef::as_ref) {
        let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "{secret} is in the database");
    }
}

#[test]
fn no_password_secret_or_key_of_a_file_is_stored_in_plain_text() {
    let workspace = Workspace::empty();
    workspace.import(&demo_accounts());
    nothing_in_the_database(&workspace.data(), &demo_secrets());
}

#[test]
fn lists_are_tables_for_people_and_json_for_programs() {
    let workspace = Workspace::empty();
    workspace.import(&demo_accounts());
    let (users, _) = workspace.ok(&["user", "list"]);
    let line = users.lines().find(|line| line.contains("demo-service")).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words[..5], ["104", "demo-service", "1", "1001", "ROLE_OFP"]);
    assert!(line.ends_with("enabled, service account"), "{line}");
    let [users, clients, keys] = workspace.lists();
    let admin = &users[1];
    assert_eq!(
        (&admin["userName"], &admin["access"]["admin"]),
        (&json!("demo-admin"), &json!(true))
    );
    assert_eq!(admin["agreements"], json!([1001, 1004]));
    assert_eq!(
        (&clients[0]["client_id"], &clients[0]["public"]),
        (&json!("demo-app"), &json!(true))
    );
    let grants = json!(["authorization_code", "password", "refresh_token"]);
    assert_eq!((&clients[1]["grants"], &clients[1]["scopes"]), (&grants, &json!("contract")));
    assert_eq!((&keys[0]["user"], &keys[0]["name"]), (&json!("demo-editor"), &json!("demo")));
    assert_eq!(workspace.json(&["key", "list", "demo-buyer"]).as_array().unwrap().len(), 1);
    let (clients, _) = workspace.ok(&["client", "list"]);
    assert!(clients.contains("demo-client") && clients.contains("enabled, confidential"));
    let (keys, _) = workspace.ok(&["key", "list"]);
    assert!(keys.starts_with("KEY_ID  USER"), "{keys}");
}

#[test]
fn a_client_with_enforced_scopes_is_added_and_listed_as_such() {
    let workspace = Workspace::empty();
    let add = ["client", "add", "plugin", "--grant", "password", "--access-token-s", "600"];
    let (_, said) = texts(&workspace.run(&add, ""), Some(1));
    assert!(said.contains("accessTokenSeconds: is only for clients with"), "{said}");
    workspace.ok(&[add.as_slice(), &["--scopes", "enforced"]].concat());
    let listed = workspace.json(&["client", "list"]);
    let kind = (&listed[0]["scopes"], &listed[0]["accessTokenSeconds"]);
    assert_eq!(kind, (&json!("enforced"), &json!(600)));
    let (table, _) = workspace.ok(&["client", "list"]);
    assert!(table.contains("confidential, scopes enforced, tokens of 600 s"), "{table}");
}

/// The numbers of `counted` entries in the report of an import, by list.
fn counted(report: &Value, counted: &str) -> Vec<u64> {
    let lists = report.as_object().unwrap().values();
    lists.map(|counts| counts[counted].as_u64().unwrap()).collect()
}

#[test]
fn an_export_moves_accounts_with_their_passwords_to_another_archive() {
    let workspace = Workspace::empty();
    let first = workspace.import(&demo_accounts());
    let file = workspace.dir.path().join("export.json");
    let export = ["accounts", "export", "--with-secrets", &file.to_string_lossy()];
    workspace.ok(&export);
    let (_, said) = texts(&workspace.run(&export, ""), Some(1));
    assert!(said.contains("export.json") && said.contains("exists"), "{said}");
    let other = Workspace::empty();
    let moved = other.import(&file);
    assert_eq!(counted(&moved, "created"), counted(&first, "created"));
    // Each password, secret and key in plain text belongs to its hash.
    let again = other.import(&demo_accounts());
    assert_eq!(counted(&again, "unchanged"), counted(&first, "created"));
    let (exported, _) = other.ok(&["accounts", "export", "--with-secrets"]);
    assert_eq!(exported, fs::read_to_string(&file).unwrap());
}

#[test]
fn an_export_without_secrets_has_none_and_changes_nothing() {
    let workspace = Workspace::empty();
    workspace.import(&demo_accounts());
    let file = workspace.dir.path().join("export.json");
    workspace.ok(&["accounts", "export", &file.to_string_lossy()]);
    let text = fs::read_to_string(&file).unwrap();
    for secret in ["argon2", "Hash", "settings"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let report = workspace.import(&file);
    assert_eq!(counted(&report, "created").iter().sum::<u64>(), 0, "{report}");
    assert_eq!(counted(&report, "updated").iter().sum::<u64>(), 0, "{report}");
    assert!(counted(&report, "unchanged").iter().sum::<u64>() > 0, "{report}");
}

#[test]
fn an_export_that_a_full_disk_cuts_short_leaves_no_file() {
    let workspace = Workspace::empty();
    let many = workspace.dir.path().join("many.json");
    let name = "x".repeat(200);
    let organizations: Vec<Value> =
        (1..=1000).map(|id| json!({ "id": id, "name": name })).collect();
    fs::write(&many, json!({ "organizations": organizations }).to_string()).unwrap();
    workspace.import(&many);
    let file = workspace.dir.path().join("export.json");
    // The file size limit of the process is 50 kB (dash) or 100 kB: a full disk.
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" accounts export \"$1\" --data \"$2\"";
    let mut command = Command::new("sh");
    isolate_environment(&mut command, workspace.dir.path());
    command.args(["-c", script, env!("CARGO_BIN_EXE_wirephoto")]);
    command.args([&file, &workspace.data()]).current_dir(workspace.dir.path());
    let (_, said) = texts(&output(command.stdin(Stdio::null())), Some(1));
    assert!(said.contains("export.json") && !file.exists(), "{said}");
    workspace.ok(&["accounts", "export", &file.to_string_lossy()]);
}

#[test]
fn a_customer_is_set_up_without_an_accounts_file() {
    let workspace = Workspace::empty();
    let mail = ["--mail-domain", "Desk.example"];
    workspace.ok(&[&["organization", "add", "7", "--name", "Desk"][..], &mail].concat());
    workspace.ok(&["product", "add", "FOTO", "--name", "Photo"]);
    let kind = ["--organization", "7", "--type", "Prepaid", "--prepaid", "10"];
    let until = ["--product", "FOTO", "--expires", "2030-01-01T00:00:00Z"];
    workspace.ok(&[&["agreement", "add", "1"][..], &kind, &until].concat());
    let price = ["--period", "Year", "--price", "1200.00"];
    workspace.ok(&[&["licence", "add", "FOTO"][..], &price].concat());
    workspace.ok(&["user", "add", "editor", "--organization", "7", "--agreement", "1"]);

    let organization = workspace.json(&["organization", "show", "7"]);
    assert_eq!(organization["mailDomains"], json!(["desk.example"]));
    let agreement = &workspace.json(&["agreement", "list", "--organization", "7"])[0];
    assert_eq!(agreement["prepaids"], json!({ "total": 10, "remaining": 10 }));
    assert_eq!(
        (&agreement["products"], &agreement["approver"]),
        (&json!(["FOTO"]), &json!("owner"))
    );
    assert_eq!(agreement["expires"], "2030-01-01T00:00:00Z");
    assert_eq!(workspace.json(&["agreement", "list", "--organization", "8"]), json!([]));
    let license = &workspace.json(&["license", "list", "--product", "FOTO"])[0];
    assert_eq!((&license["period"], &license["price"]), (&json!("Year"), &json!("1200.00")));
    let uuid = license["uuid"].as_str().unwrap();
    assert_eq!(&workspace.json(&["license", "show", uuid]), license);
    let (table, _) = workspace.ok(&["agreement", "list"]);
    assert!(table.starts_with("ID") && table.contains("10 of 10"), "{table}");
    let (shown, _) = workspace.ok(&["product", "show", "FOTO"]);
    assert!(shown.starts_with("PROPERTY") && shown.contains("Photo"), "{shown}");

    let check = |arguments: &[&str], part: &str| {
        let (_, stderr) = texts(&workspace.run(arguments, ""), Some(1));
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    };
    check(&["organization", "add", "7"], "organization 7: exists already");
    check(&["product", "add", "FOTO"], r#"product "FOTO": exists already"#);
    let id = workspace.json(&["product", "show", "FOTO"])["id"].to_string();
    check(&["product", "add", "OTHER", "--id", &id], "exists already");
    let again = ["agreement", "add", "1", "--organization", "7", "--type", "Direct"];
    check(&again, "agreement 1: exists already");
    check(&["license", "add", "FOTO", "--uuid", uuid], "exists already");
    check(&["license", "add", "TEXT"], "product TEXT does not exist");
    check(&["agreement", "show", "9"], "agreement 9 does not exist");
}

#[test]
fn failures_name_their_object_with_status_1_and_bad_usage_is_status_2() {
    let workspace = Workspace::empty();
    workspace.import(&demo_accounts());
    let check = |arguments: &[&str], status: i32, part: &str| {
        let (stdout, stderr) = texts(&workspace.run(arguments, ""), Some(status));
        assert!(stdout.is_empty() && stderr.contains(part), "{arguments:?}: {stderr}");
    };
    check(&["user", "add", "demo-editor"], 1, r#"user "demo-editor": exists already"#);
    check(&["user", "add", "x", "--organization", "9"], 1, "organization 9 does not exist");
    check(
        &["user", "add", "x", "--agreement", "1001"],
        1,
        "agreement 1001 belongs to organization 1",
    );
    check(&["user", "add", "x", "--email", "nowhere"], 1, "emailAddress: expected");
    check(&["user", "add", "x", "--role", "a b"], 1, "roles[0]: expected");
    check(&["user", "add", "x", "--password-stdin"], 1, "password: has 1 to 1024 bytes");
    check(&["user", "disable", "nobody"], 1, r#"user "nobody" does not exist"#);
    check(&["user", "password", "nobody"], 1, r#"user "nobody" does not exist"#);
    check(&["client", "add", "demo-app", "--grant", "implicit"], 1, "exists already");
    check(&["client", "secret", "demo-app"], 1, "that has a secret does not exist");
    check(&["client", "enable", "nobody"], 1, r#"client "nobody" does not exist"#);
    check(&["key", "add", "nobody"], 1, r#"user "nobody" does not exist"#);
    check(&["key", "list", "nobody"], 1, r#"user "nobody" does not exist"#);
    check(&["key", "disable", "99"], 1, "API key 99 does not exist");
    check(&["client", "add", "x", "--grant", "client_credentials"], 2, "--grant");
    check(&["client", "add", "x"], 2, "--grant");
    check(&["key", "disable", "x"], 2, "KEY_ID");
    check(&["user"], 2, "Usage: wirephoto user");
    let uri = "javascript:alert(1)";
    let added = ["client", "add", "x", "--grant", "implicit", "--redirect-uri", uri];
    check(&added, 1, "redirect_uris[0]");
}

#[test]
fn an_added_key_is_valid_on_a_running_server_until_it_or_its_owner_is_disabled() {
    let server = Server::demo();
    let command =
        |arguments: &[&str]| texts(&server.command(arguments), Some(0)).0.trim_end().to_owned();
    command(&["user", "add", "someone", "--organization", "1", "--agreement", "1001"]);
    let key = command(&["key", "add", "someone"]);
    let status = || server.get(&format!("/media/{LARGE}.jpg?ak={key}")).status().as_u16();
    let becomes = |expected: u16, why: &str| {
        server.until(why, || (status() == expected).then_some(()));
    };
    becomes(200, "the key to count");
    command(&["user", "disable", "someone"]);
    becomes(401, "its owner's end");
    command(&["user", "enable", "someone"]);
    becomes(200, "its owner's return");
    let keys: Value =
        serde_json::from_str(&command(&["key", "list", "someone", "--json"])).unwrap();
    command(&["key", "disable", &keys[0]["id"].to_string()]);
    becomes(401, "the key's end");
}

#[test]
fn the_demo_does_not_undo_changes_to_its_accounts() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("media-store");
    fs::create_dir_all(place.join("demo")).unwrap();
    let accounts = place.join("accounts.json");
    fs::copy(demo_accounts(), &accounts).unwrap();
    let data = dir.path().join("data");
    let start = || {
        let mut command = wirephoto(dir.path());
        command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]).args(CHEAP_HASHING);
        command.arg("--data").arg(&data).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(line.starts_with("listening on"), "{line}");
    };
    let run = |arguments: &[&str]| {
        let mut command = wirephoto(dir.path());
        texts(&output(command.args(arguments).arg("--data").arg(&data)), Some(0)).0
    };
    let is_active = || {
        let users: Value = serde_json::from_str(&run(&["user", "list", "--json"])).unwrap();
        users[0]["active"].as_bool().unwrap()
    };
    start();
    assert!(is_active());
    run(&["user", "disable", "demo-editor"]);
    start();
    assert!(!is_active(), "the same file is not taken in again");
    let text = fs::read_to_string(&accounts).unwrap();
    fs::write(&accounts, text.replacen("Demo desk", "Demo desk one", 1)).unwrap();
    start();
    assert!(is_active(), "another file is");
}

#[test]
fn the_demo_is_found_next_to_an_installed_binary() {
    let dir = tempfile::tempdir().unwrap();
    let (bin, empty) = (dir.path().join("bin"), dir.path().join("empty"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&empty).unwrap();
    let binary = bin.join("wirephoto");
    // Copied by another process: a file that this one writes cannot be executed while a child of another test, forked
    // meanwhile, still has it open.
    let copied = output(Command::new("cp").arg(env!("CARGO_BIN_EXE_wirephoto")).arg(&binary));
    assert!(copied.status.success());
    let serve = || {
        let mut command = Command::new(&binary);
        isolate_environment(&mut command, dir.path());
        command.args(["serve", "--demo", "--data", "archive", "--listen", "127.0.0.1:0"]);
        command.args(CHEAP_HASHING).current_dir(&empty);
        command
    };
    let (_, stderr) = texts(&output(&mut serve()), Some(1));
    for word in ["archive/demo", "media-store/demo", "share/wirephoto/demo", "source tree"] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "nothing is left behind");
    let share = dir.path().join("share/wirephoto");
    let item = Path::new("demo/image/demo-Falcon9-DSCOVR");
    fs::create_dir_all(share.join(item)).unwrap();
    for name in ["item.json", "NormalHires.jpg"] {
        let file = item.join(name);
        fs::copy(checkout("media-store").join(&file), share.join(file)).unwrap();
    }
    fs::copy(demo_accounts(), share.join("accounts.json")).unwrap();
    let mut child = serve().stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut line = || lines.next().unwrap().unwrap();
    let (taken, listening) = (line(), line());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(taken, "ingested 1 items of the demo archive");
    assert!(listening.starts_with("listening on"), "{listening}");
}
