//! Data at rest: file modes, secrets in the database, demo accounts.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use api::deliveries::ChannelUpdate;
use model::account::ChannelMethod;
use reqwest::blocking::Client;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::api::ApiCaller;
use crate::common::server::{isolate_environment, output, wirephoto};
use crate::common::{DEMO_KEY, Server, checkout, pictures::Picture, postgres};
use crate::keys_and_channels::{channel, put};

/// A password of a channel.
const SECRET: &str = "channel-password-nobody-reads";

/// The command `wirephoto`, started by a shell with this umask.
fn under_umask(umask: &str, dir: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_wirephoto")).current_dir(dir);
    isolate_environment(&mut command, dir);
    command
}

/// A temporary folder that every user may enter.
fn open_folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    dir
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

/// A folder and everything below it.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        if path.is_dir() {
            found.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found
}

fn succeeds(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Runs a command on the data directory below `dir`; returns its output and status.
fn run(dir: &Path, arguments: &[&str]) -> (String, i32) {
    let output = output(wirephoto(dir).args(arguments).arg("--data").arg(dir.join("data")));
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&said).into_owned(), output.status.code().unwrap_or(-1))
}

/// Creates a channel with a password through the API.
fn put_channel(server: &Server, name: &str, password: &str) {
    let settings =
        json!({ "host": "ftp.agency.example", "username": "desk", "password": password });
    let stated = ChannelUpdate { active: Some(false), ..channel(ChannelMethod::Ftp, settings) };
    put(&ApiCaller::login(server, "demo-editor"), name, &stated);
}

/// The channels of the demo editor.
fn channels(server: &Server) -> String {
    let key = format!("ApiKey {DEMO_KEY}");
    let answer = server.get_with("/user/v1/channel", &[("authorization", &key)]);
    assert_eq!(answer.status(), 200, "{}", server.log());
    answer.text().unwrap()
}

/// The key id of the signing key.
fn kid(server: &Server) -> String {
    let keys: Value = server.get("/o/oauth2/keys").json().unwrap();
    keys["keys"][0]["kid"].as_str().unwrap().to_owned()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// A server over the demo accounts whose secrets are encrypted, on either database engine.
fn encrypted_server() -> (Server, String) {
    let file = "secrets.key_file=data/secrets.key".to_owned();
    let dir = tempfile::tempdir().unwrap();
    let mut command = wirephoto(dir.path());
    command.arg("import").arg(checkout("media-store/accounts.json")).args(["--data", "data"]);
    succeeds(&output(&mut command));
    (Server::start(dir, &[&file]), file)
}

#[test]
fn a_data_directory_is_private_whatever_the_umask_is() {
    for umask in ["022", "000"] {
        let dir = open_folder();
        let (data, picture) = (dir.path().join("data"), dir.path().join("a.jpg"));
        fs::write(&picture, Picture::waves(300, 200).jpeg()).unwrap();
        let accounts = checkout("media-store/accounts.json");
        for (word, file) in [("ingest", &picture), ("import", &accounts)] {
            let mut command = under_umask(umask, dir.path());
            succeeds(&output(command.arg(word).arg(file).arg("--data").arg(&data)));
        }
        let mut command = under_umask(umask, dir.path());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
        let server = Server::run(dir, command);
        assert!(!server.bytes("/media/image/a_NormalPreview.jpg").is_empty());
        put_channel(&server, "ftp", SECRET);
        // Files that channels deliver are for other users, as far as the directory's mode admits them.
        let private = |path: &&PathBuf| !path.starts_with(data.join("deliveries"));
        for path in tree(&data).iter().filter(private) {
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(path), expected, "{} under umask {umask}", path.display());
        }
        if fs::metadata(&data).unwrap().uid() == 0 {
            let mut find = Command::new("runuser");
            find.args(["-u", "nobody", "--", "find"]).arg(&data).args(["-mindepth", "1"]);
            let found = output(&mut find);
            assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
            let mut read = Command::new("runuser");
            read.args(["-u", "nobody", "--", "cat"]).arg(data.join("wirephoto.lock"));
            assert!(!output(&mut read).status.success());
        }
        let target = server.dir.path().join("backup");
        if postgres::url_of(server.dir.path()).is_none() {
            let mut backup = under_umask(umask, server.dir.path());
            succeeds(&output(backup.arg("backup").arg(&target).arg("--data").arg(&data)));
            for path in tree(&target) {
                assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
            }
        }
    }
}

#[test]
fn files_for_other_users_have_the_mode_that_the_umask_allows() {
    for (umask, file, folder) in [("022", 0o644, 0o755), ("027", 0o640, 0o750)] {
        let dir = open_folder();
        let at = |name: &str| dir.path().join(name);
        for name in ["root", "incoming"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("incoming/bad.jpg"), "no picture").unwrap();
        fs::write(at("a.jpg"), Picture::waves(300, 200).jpeg()).unwrap();
        let accounts = checkout("media-store/accounts.json");
        for (word, path) in [("ingest", &at("a.jpg")), ("import", &accounts)] {
            let data = dir.path().join("data");
            succeeds(&output(wirephoto(dir.path()).arg(word).arg(path).arg("--data").arg(data)));
        }
        let mut command = under_umask(umask, dir.path());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data", "data"]);
        for setting in [
            "delivery.directory_root=root",
            "ingest.watch=incoming",
            "ingest.watch_interval_ms=20",
            "telemetry.log_file=service.log",
            "mail.outbox=mails",
        ] {
            command.args(["--set", setting]);
        }
        let server = Server::run(dir, command);
        let at = |name: &str| server.dir.path().join(name);
        let path = format!("/media/image/a?channel=user:demo-editor:demo-folder&ak={DEMO_KEY}");
        assert!(server.get(&path).status().is_success());
        let there = |name: &'static str| at(name).exists().then_some(());
        server.until("the delivery", || there("root/demo-editor/a.json"));
        server.until("the report", || there("incoming/failed/bad.jpg.error.json"));
        let found = |name: &str| (name.to_owned(), mode(&at(name)));
        let files = ["root/demo-editor/a.json", "incoming/failed/bad.jpg.error.json"];
        for name in files {
            assert_eq!(found(name), (name.to_owned(), file), "umask {umask}");
        }
        for name in ["root/demo-editor", "incoming/failed", "incoming/done"] {
            assert_eq!(found(name), (name.to_owned(), folder), "umask {umask}");
        }
        assert_eq!(mode(&at("service.log")), 0o640, "umask {umask}");
        assert_eq!(mode(&at("data")), 0o700);
    }
}

#[test]
fn links_and_pipes_in_a_watched_folder_are_not_read() {
    let dir = open_folder();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("incoming")).unwrap();
    fs::write(at("private.jpg"), Picture::waves(320, 200).jpeg()).unwrap();
    std::os::unix::fs::symlink(at("private.jpg"), at("incoming/link.jpg")).unwrap();
    let mut pipe = Command::new("mkfifo");
    assert!(output(pipe.arg(at("incoming/pipe.jpg"))).status.success());
    fs::write(at("incoming/rest.jpg"), Picture::waves(300, 200).jpeg()).unwrap();
    let mut command = wirephoto(dir.path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", "data"]);
    for setting in ["ingest.watch=incoming", "ingest.watch_interval_ms=20"] {
        command.args(["--set", setting]);
    }
    let server = Server::run(dir, command);
    let status = |id: &str| server.get(&format!("/media/image/{id}_NormalPreview.jpg")).status();
    server.until("the rest", || (status("rest") == 200).then_some(()));
    for id in ["link", "pipe"] {
        assert_eq!(status(id), 404, "{id}");
    }
    assert!(server.dir.path().join("private.jpg").exists());
}

#[test]
fn a_data_directory_open_to_other_users_is_a_warning_and_keeps_its_mode() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::set_permissions(dir.path().join("data"), Permissions::from_mode(0o750)).unwrap();
    let server = Server::start(dir, &[]);
    let warning = "is open to other users";
    assert!(server.log().contains(warning) && server.log().contains("chmod"), "{}", server.log());
    let check = server.command(&["check", "--json"]);
    let said = succeeds(&check);
    assert!(said.contains(warning) && said.contains("\"warning\""), "{said}");
    assert_eq!(mode(&server.data()), 0o750);
    assert_eq!(mode(&server.data().join("wirephoto.lock")), 0o600, "new files are private");
    fs::set_permissions(server.data(), Permissions::from_mode(0o700)).unwrap();
    let said = succeeds(&server.command(&["check"]));
    assert!(!said.contains(warning), "{said}");
}

#[test]
fn secrets_are_not_in_the_bytes_of_the_database() {
    let (server, _) = encrypted_server();
    put_channel(&server, "ftp", SECRET);
    put_channel(&server, "ftp", &format!("{SECRET}-again"));
    assert!(channels(&server).contains("***"));
    assert!(!kid(&server).is_empty());
    let stored = postgres::stored(&server.data());
    assert!(contains(&stored, b"sealed:1:"), "something is encrypted");
    assert!(contains(&stored, b"demo-folder"), "it is the database");
    // The beginning of every RSA key in PKCS #8, as bytes and as a dump writes them.
    let rsa = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    for part in [SECRET.as_bytes(), b"ftp.agency.example", &rsa, b"06092a864886f70d010101"] {
        assert!(!contains(&stored, part), "{}", String::from_utf8_lossy(part));
    }
    assert_eq!(mode(&server.data().join("secrets.key")), 0o600);
    let log = server.log();
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn a_secret_that_was_copied_to_another_row_does_not_decrypt() {
    let (server, _) = encrypted_server();
    // The test writes to SQLite's file and copies it.
    if postgres::url_of(server.dir.path()).is_some() {
        return;
    }
    put_channel(&server, "one", SECRET);
    put_channel(&server, "two", "other");
    let database = Connection::open(server.data().join("wirephoto.db")).unwrap();
    let sql = "UPDATE channels SET settings =
         (SELECT settings FROM channels WHERE name = 'one') WHERE name = 'two'";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
    let check = server.command(&["check"]);
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    assert!(!check.status.success() && said.contains("does not decrypt"), "{said}");
    assert!(!said.contains(SECRET), "{said}");
}

#[test]
fn a_service_without_its_secrets_key_does_not_start_and_names_the_key() {
    let (server, file) = encrypted_server();
    put_channel(&server, "ftp", SECRET);
    let before = kid(&server);
    let dir = server.kill();
    let key = dir.path().join("data/secrets.key");
    let kept = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--set", file.as_str()];
    let (said, status) = run(dir.path(), &serve);
    assert!(status == 1 && said.contains("secrets.key_file data/secrets.key"), "{said}");
    assert!(!key.exists(), "no new key is made for an archive that has one");
    let doctor = ["doctor", "--set", file.as_str()];
    let (said, status) = run(dir.path(), &doctor);
    assert!(status == 1 && said.contains("secrets.key_file data/secrets.key"), "{said}");
    // Commands that need no secret work; a missing key is named.
    assert_eq!(run(dir.path(), &["user", "list", "--set", &file]).1, 0);
    let (said, status) = run(dir.path(), &["check", "--set", &file]);
    assert!(status == 1 && said.contains("channels/"), "{said}");
    let other = "7f".repeat(32);
    fs::write(&key, &other).unwrap();
    let (said, status) = run(dir.path(), &serve);
    assert!(status == 1 && said.contains("has key"), "{said}");
    assert!(!said.contains(&other), "{said}");
    let (said, status) = run(dir.path(), &doctor);
    assert!(status == 1 && said.contains("has key") && !said.contains(&other), "{said}");
    fs::write(&key, &kept).unwrap();
    let (said, status) = run(dir.path(), &doctor);
    assert!(status == 0 && said.contains("has the current key"), "{said}");
    let server = Server::start(dir, &[&file]);
    assert_eq!(kid(&server), before, "id tokens verify as before");
    assert!(channels(&server).contains("ftp.agency.example"));
}

#[test]
fn a_rotation_on_a_running_service_leaves_nothing_encrypted_with_the_old_key() {
    let (server, file) = encrypted_server();
    put_channel(&server, "ftp", SECRET);
    let before = kid(&server);
    let key = server.data().join("secrets.key");
    let old = fs::read_to_string(&key).unwrap();
    let rotated = succeeds(&server.command(&["secrets", "rotate", "--json", "--set", &file]));
    let rotated: Value = serde_json::from_str(&rotated).unwrap();
    assert_ne!(rotated["before"], rotated["key"]);
    assert_eq!(rotated["signingKeys"], 1, "{rotated}");
    let new = fs::read_to_string(&key).unwrap();
    let keys = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(keys(&new).len() == 1 && keys(&new) != keys(&old));
    assert_eq!(mode(&key), 0o600);
    let stored = postgres::stored(&server.data());
    let named =
        |id: &Value| contains(&stored, format!("sealed:1:{}", id.as_str().unwrap()).as_bytes());
    assert!(named(&rotated["key"]));
    // The service picks up the new key without a restart, both for reading and for writing.
    assert!(channels(&server).contains("ftp.agency.example"), "{}", server.log());
    put_channel(&server, "more", "another");
    assert!(succeeds(&server.command(&["check", "--set", &file])).contains("0 problems"));
    // A rotation that is killed between writing the file and committing the transaction: the file has both keys.
    let both = format!("{}\n{}\n", "5a".repeat(32), keys(&new)[0]);
    fs::write(&key, both).unwrap();
    let server = server.restart(&[&file]);
    assert_eq!(kid(&server), before);
    assert!(channels(&server).contains("more"));
    succeeds(&server.command(&["secrets", "rotate", "--set", &file]));
    assert_eq!(keys(&fs::read_to_string(&key).unwrap()).len(), 1);
    assert!(channels(&server).contains("more"), "{}", server.log());
}

#[test]
fn a_key_in_the_settings_is_rotated_by_prepending_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = ("01".repeat(32), "02".repeat(32));
    let with = |keys: &str| format!("secrets.key={keys}");
    succeeds(&output(
        wirephoto(dir.path()).arg("import").arg(checkout("media-store/accounts.json")).args([
            "--data",
            "data",
            "--set",
            &with(&old),
        ]),
    ));
    let server = Server::start(dir, &[&with(&old)]);
    put_channel(&server, "ftp", SECRET);
    assert!(!server.data().join("secrets.key").exists());
    let refused = server.command(&["secrets", "rotate", "--set", &with(&old)]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has no new key"));
    let server = server.restart(&[&with(&format!("{new},{old}"))]);
    let both = with(&format!("{new},{old}"));
    succeeds(&server.command(&["secrets", "rotate", "--set", &both]));
    assert!(channels(&server).contains("ftp.agency.example"));
    let server = server.restart(&[&with(&new)]);
    assert!(channels(&server).contains("ftp.agency.example"));
    let shown = succeeds(&server.command(&["config", "--set", &with(&new)]));
    assert!(shown.contains("***") && !shown.contains(&new), "a key is never shown");
}

#[test]
fn a_backup_can_be_restored_only_with_its_key() {
    let (server, _) = encrypted_server();
    // The test writes to SQLite's file and copies it.
    if postgres::url_of(server.dir.path()).is_some() {
        return;
    }
    put_channel(&server, "ftp", SECRET);
    let before = kid(&server);
    let at = |name: &str| server.dir.path().join(name);
    let backup = |target: &str, more: &[&str]| {
        let target = at(target).to_string_lossy().into_owned();
        succeeds(&server.command(&[&["backup", target.as_str()][..], more].concat()))
    };
    let keys = |target: &str| {
        let names = fs::read_dir(at(target)).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|end| end == "key")).collect::<Vec<_>>()
    };
    backup("whole", &[]);
    assert_eq!(keys("whole").iter().map(|path| mode(path)).collect::<Vec<_>>(), [0o600]);
    let said = backup("apart", &["--without-key"]);
    assert!(said.contains("store it separately") && keys("apart").is_empty(), "{said}");
    for name in ["whole", "apart"] {
        for path in tree(&at(name)).iter().filter(|path| path.is_file()) {
            assert!(!contains(&fs::read(path).unwrap(), SECRET.as_bytes()), "{}", path.display());
        }
    }
    let restore =
        |from: &str, to: &TempDir| run(to.path(), &["restore", &at(from).to_string_lossy()]);
    let home = tempfile::tempdir().unwrap();
    let (said, status) = restore("whole", &home);
    assert_eq!(status, 0, "{said}");
    let restored = Server::start(home, &[]);
    assert_eq!(kid(&restored), before);
    assert!(channels(&restored).contains("ftp.agency.example"));
    // Without its key, the error names the missing key and where to put it.
    let home = tempfile::tempdir().unwrap();
    let (said, status) = restore("apart", &home);
    assert!(status == 1 && said.contains("is not in the backup"), "{said}");
    fs::copy(server.data().join("secrets.key"), home.path().join("data/secrets.key")).unwrap();
    assert!(channels(&Server::start(home, &[])).contains("ftp.agency.example"));
    // The key of another archive is not overwritten.
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("data")).unwrap();
    fs::write(home.path().join("data/secrets.key"), "7f".repeat(32)).unwrap();
    let (said, status) = restore("whole", &home);
    assert!(status == 1 && said.contains("holds another key"), "{said}");
    assert!(!home.path().join("data/wirephoto.db").exists());
    // A later backup has its own key and removes the older one.
    let old = keys("whole");
    succeeds(&server.command(&["secrets", "rotate"]));
    backup("whole", &[]);
    assert!(keys("whole").len() == 1 && keys("whole") != old);
}

/// Starts `serve --demo` with more arguments and a copy of the checkout's demo archive.
fn demo(dir: &Path, arguments: &[&str]) -> Command {
    fs::create_dir_all(dir.join("media-store")).unwrap();
    let link = dir.join("media-store/demo");
    if !link.exists() {
        std::os::unix::fs::symlink(checkout("media-store/demo"), link).unwrap();
        fs::copy(checkout("media-store/accounts.json"), dir.join("media-store/accounts.json"))
            .unwrap();
    }
    let mut command = wirephoto(dir);
    command.args(["serve", "--demo", "--data", "data"]).args(arguments);
    command
}

#[test]
fn the_demo_is_served_on_loopback_only() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [
        &["--listen", "0.0.0.0:0"][..],
        &["--listen", "[::]:0"],
        &["--listen", "127.0.0.1:0", "--public-url", "https://pictures.example.org"],
        &["--listen", "127.0.0.1:0", "--public-url", "http://127.0.0.1.example.org"],
        &["--listen", "127.0.0.1:0", "--public-url", "http://localhost:x@pictures.example.org"],
        &["--listen", "127.0.0.1:0", "--set", "server.site_url=https://pictures.example.org"],
        &["--listen", "127.0.0.1:0", "--set", "server.media_url=https://cdn.example.org"],
    ] {
        let refused = output(&mut demo(dir.path(), arguments));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("--demo-public"), "{arguments:?}: {said}");
    }
    assert!(!dir.path().join("data").exists(), "nothing was taken in");
    let public = ["--listen", "127.0.0.1:0", "--public-url", "https://pictures.example.org"];
    let command = demo(dir.path(), &[&public[..], &["--demo-public"]].concat());
    let server = Server::run(dir, command);
    assert_eq!(server.get("/health/live").status(), 200);
}

#[test]
fn an_archive_with_published_logins_is_not_served_to_other_machines() {
    let server = Server::demo();
    let url = "server.media_url=https://pictures.example.org";
    let refused = server.command(&["serve", "--listen", "127.0.0.1:0", "--set", url]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    for part in ["user demo-admin", "client demo-client", "of demo-editor", "--demo-public"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let doctor = server.command(&["doctor", "--set", url]).stdout;
    let doctor = String::from_utf8_lossy(&doctor).into_owned();
    assert!(doctor.contains("user demo-admin"), "{doctor}");
    // A disabled user logs in neither with a password nor with a key.
    succeeds(&server.command(&["user", "disable", "demo-editor"]));
    let refused = server.command(&["serve", "--listen", "127.0.0.1:0", "--set", url]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("of demo-buyer") && !said.contains("demo-editor"), "{said}");
    succeeds(&server.command(&["demo", "remove"]));
    let dir = server.kill();
    let mut command = wirephoto(dir.path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--set", url]);
    command.arg("--data").arg(dir.path().join("data"));
    assert_eq!(Server::run(dir, command).get("/health/live").status(), 200);
}

fn asks(client: &Client, url: &str) -> u16 {
    client.get(format!("{url}/user/v1/user?ak={DEMO_KEY}")).send().unwrap().status().as_u16()
}

/// The status of an API call with the user name and published password of a demo user.
fn logs_in(server: &Server, user: &str) -> u16 {
    let request = server.client.get(format!("{}/content/v1/image/search?s=0", server.url));
    let request = request.basic_auth(user, Some(format!("{user}-password")));
    request.send().unwrap().status().as_u16()
}

#[test]
fn demo_accounts_left_in_an_archive_are_reported_until_they_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let command = demo(dir.path(), &["--listen", "127.0.0.1:0"]);
    let server = Server::run(dir, command);
    let warning = "has the demo accounts";
    assert!(!server.log().contains(warning), "{}", server.log());
    // The operator adopts the archive.
    let add = ["user", "add", "editor", "--organization", "1", "--agreement", "1001"];
    succeeds(&server.command(&add));
    let mut password = wirephoto(server.dir.path());
    password.args(["user", "password", "demo-buyer", "--password-stdin", "--data", "data"]);
    let file = server.dir.path().join("password");
    fs::write(&file, "a password of its own").unwrap();
    succeeds(&output(password.stdin(fs::File::open(&file).unwrap())));
    let bought = server.get(&format!("/media/image/demo-trollslanda.jpg?ak={DEMO_KEY}"));
    assert_eq!(bought.status(), 200);
    let server = server.restart(&[]);
    assert!(server.log().contains(warning), "{}", server.log());
    let check = succeeds(&server.command(&["check", "--json"]));
    assert!(check.contains(warning), "{check}");
    assert_eq!(asks(&server.client, &server.url), 200);
    assert_eq!(logs_in(&server, "demo-admin"), 200);
    let removed = succeeds(&server.command(&["demo", "remove", "--json"]));
    let removed: Value = serde_json::from_str(&removed).unwrap();
    let names = |list: &str| {
        let entries = removed[list].as_array().unwrap().iter();
        let name = |entry: &Value| format!("{} {}", entry["kind"], entry["name"]).replace('"', "");
        entries.map(name).collect::<Vec<_>>()
    };
    for gone in ["user demo-admin", "client demo-client", "client demo-app", "agreement 1004"] {
        assert!(names("removed").iter().any(|name| name == gone), "{gone}: {removed}");
    }
    for kept in ["user demo-buyer", "user demo-editor", "agreement 1001", "organization 1"] {
        assert!(names("kept").iter().any(|name| name == kept), "{kept}: {removed}");
    }
    server.until("the key to end", || (asks(&server.client, &server.url) == 401).then_some(()));
    for user in ["demo-editor", "demo-admin"] {
        assert_eq!(logs_in(&server, user), 401, "{user}");
    }
    let users = succeeds(&server.command(&["user", "list"]));
    assert!(users.contains("editor") && !users.contains("demo-admin"), "{users}");
    let check = succeeds(&server.command(&["check"]));
    assert!(!check.contains(warning), "{check}");
    let server = server.restart(&[]);
    assert!(!server.log().contains(warning), "{}", server.log());
    let nothing = succeeds(&server.command(&["demo", "remove", "--json"]));
    assert!(nothing.contains("\"removed\":[]"), "{nothing}");
    // Imported accounts are not marked as demo accounts.
    let file = checkout("media-store/accounts.json");
    succeeds(&server.command(&["import", file.to_str().unwrap()]));
    let check = succeeds(&server.command(&["check", "--json"]));
    assert!(check.contains(warning), "{check}");
}
