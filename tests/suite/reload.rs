//! Changes of settings and log files while the service runs.

use std::{
    collections::BTreeSet,
    fs,
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::common::{LARGE, Server, WAIT_TIMEOUT, pause};

/// Writes the default settings file of the server, sends SIGHUP and waits until the log has one more line with
/// `mark`.
pub fn reload(server: &Server, toml: &str, mark: &str) -> String {
    let count = || server.log().matches(mark).count();
    let before = count();
    fs::write(server.dir.path().join("wirephoto.toml"), toml).unwrap();
    server.signal("HUP");
    server.until(mark, || (count() > before).then_some(()));
    let log = server.log();
    log.lines().rfind(|line| line.contains(mark)).unwrap().to_owned()
}

const READ: &str = "settings reloaded";
/// A request that is only made for its log line.
const ITEM: &str = "/media/image/demo-urtavla.json";

fn thumbnail() -> String {
    format!("/media/{LARGE}_NormalThumbnail.jpg")
}

fn header(server: &Server, name: &str) -> Option<String> {
    let response = server.get(&thumbnail());
    response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
}

#[test]
fn reloadable_settings_change_on_sighup() {
    let server = Server::demo();
    assert!(header(&server, "server-timing").is_some());
    assert_eq!(server.get("/content/v1/image/search").status(), 200);
    let line = reload(
        &server,
        "[server]\nwork_headers = false\ntrusted_proxies = [\"127.0.0.0/8\"]\n\
         [media]\nmax_age_s = 7\nstale_while_revalidate_s = 8\n\
         [search]\nopen_images = false\n[auth]\nsession_s = 600\nfailures_per_user = 1\n",
        READ,
    );
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        line["changed"],
        "server.trusted_proxies server.work_headers media.max_age_s \
         media.stale_while_revalidate_s search.open_images auth.session_s auth.failures_per_user"
    );
    assert_eq!(header(&server, "server-timing"), None);
    let policy = header(&server, "cache-control").unwrap();
    assert_eq!(policy, "public, max-age=7, stale-while-revalidate=8");
    assert_eq!(server.get("/content/v1/image/search").status(), 401);
    server.get_with(&thumbnail(), &[("x-forwarded-for", "192.0.2.9"), ("x-request-id", "fwd")]);
    let find = || server.log().lines().find(|line| line.contains("\"fwd\"")).map(str::to_owned);
    let line: Value = serde_json::from_str(&server.until("the log line", find)).unwrap();
    assert_eq!(line["client"], "192.0.2.9");
    let basic = |password: &str| {
        let request = server.client.get(format!("{}/content/v1/image/search", server.url));
        request.basic_auth("demo-editor", Some(password)).send().unwrap().status().as_u16()
    };
    assert_eq!(basic("wrong"), 401);
    assert_eq!(basic("wrong"), 503, "one failure is allowed now");
    // A setting that is removed from the file has its default again.
    reload(&server, "", READ);
    assert!(header(&server, "server-timing").is_some());
    assert_eq!(server.get("/content/v1/image/search").status(), 200);
}

#[test]
fn connection_limits_change_for_new_connections() {
    let server = Server::demo();
    let address = server.url.strip_prefix("http://").unwrap();
    reload(&server, "[server]\nheader_timeout_s = 600\n", READ);
    let mut early = TcpStream::connect(address).unwrap();
    // The limits of a connection are those at its first byte.
    early.write_all(b"G").unwrap();
    server.until("it to be accepted", || {
        (server.metric("wirephoto_connections", "") >= 2.0).then_some(())
    });
    reload(&server, "[server]\nheader_timeout_s = 1\n", READ);
    let mut silent = TcpStream::connect(address).unwrap();
    silent.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    let ended = silent.read(&mut [0; 9]).map_err(|cause| cause.kind());
    assert!(matches!(ended, Ok(0) | Err(ErrorKind::ConnectionReset)), "{ended:?}");
    early.write_all(b"ET /health/live HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    early.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200", "who came earlier has the time of then");
    drop(early);
    let ended = || server.metric("wirephoto_connections_ended_total", "slow_head");
    server.until("the count", || (ended() >= 1.0).then_some(()));
    reload(&server, "[server]\nconnections_max = 1\n", READ);
    let refused = || {
        let one = TcpStream::connect(address).unwrap();
        let mut two = TcpStream::connect(address).unwrap();
        two.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut answer = [0; 12];
        let refused = two.read_exact(&mut answer).is_ok() && &answer == b"HTTP/1.1 503";
        drop(one);
        refused.then_some(())
    };
    server.until("a refusal", refused);
}

#[test]
fn sighup_changes_the_log_level() {
    let server = Server::demo();
    let request = |id: &str| {
        server.get_with(ITEM, &[("x-request-id", id)]);
    };
    reload(&server, "[telemetry]\nlog_level = \"warn\"\n[media]\npreview_px = 999\n", "restart");
    request("not-logged");
    reload(&server, "[telemetry]\nlog_level = \"debug\"\n", READ);
    request("logged");
    server.until("the line", || server.log().contains("\"logged\"").then_some(()));
    assert!(!server.log().contains("not-logged"));
}

#[test]
fn an_invalid_settings_file_changes_nothing_and_settings_that_need_a_restart_are_named_without_values()
 {
    let server = Server::demo();
    reload(&server, "[media]\nmax_age_s = 7\n", READ);
    for (toml, said) in [
        ("[media]\nmax_age_s = 9\npreview = 1\n", "unknown setting media.preview"),
        ("[media]\nmax_age_s = 9\n[server\n", "TOML parse error"),
        ("[media]\nmax_age_s = 9\n[auth]\nsession_s = 1\n", "auth.session_s"),
        ("[media]\nmax_age_s = 9\n[telemetry]\nlog_level = \"[[\"\n", "telemetry.log_level"),
    ] {
        let line =
            reload(&server, toml, "settings cannot be reloaded, the previous ones stay in force");
        assert!(line.contains(said) && line.contains("ERROR"), "{line}");
        assert!(header(&server, "cache-control").unwrap().contains("max-age=7,"), "{toml}");
    }
    server.until("the count", || {
        (server.metric("wirephoto_reloads_total", "failed") >= 4.0).then_some(())
    });
    let toml = "[media]\nmax_age_s = 9\npreview_px = 999\n[mail]\npassword = \"hunter2\"\n";
    let line = reload(&server, toml, "need a restart");
    assert!(line.contains("media.preview_px mail.password") && line.contains("WARN"), "{line}");
    assert!(header(&server, "cache-control").unwrap().contains("max-age=9,"));
    assert!(!server.log().contains("hunter2"));
}

#[test]
fn token_and_login_lifetimes_follow_the_current_settings() {
    let server = Server::demo();
    let fields = [
        ("grant_type", "password"),
        ("username", "demo-editor"),
        ("password", "demo-editor-password"),
        ("client_id", "demo-client"),
        ("client_secret", "demo-client-secret"),
        ("scope", "roles"),
    ];
    let expires_in = || {
        let text = server.post_form("/o/oauth2/token", &fields).text().unwrap();
        let set: Value = serde_json::from_str(&text).unwrap();
        set["expires_in"].as_u64().unwrap_or_else(|| panic!("{set}"))
    };
    assert_eq!(expires_in(), 604_800);
    reload(&server, "[auth]\naccess_token_s = 120\n", READ);
    assert_eq!(expires_in(), 120);
}

#[test]
fn a_rotated_log_file_loses_no_line() {
    let dir = tempfile::tempdir().unwrap();
    let (file, old) = (dir.path().join("log"), dir.path().join("log.1"));
    let server = Server::demo_with(&[&format!("telemetry.log_file={}", file.display())]);
    let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode & !0o640, 0, "{mode:o}");
    let (done, count) = (AtomicBool::new(false), 300);
    thread::scope(|scope| {
        let requests: Vec<_> = (0..3)
            .map(|client| {
                let (server, done) = (&server, &done);
                scope.spawn(move || {
                    for number in 0..count {
                        let id = format!("id-{client}-{number}");
                        server.get_with(ITEM, &[("x-request-id", &id)]);
                    }
                    done.store(true, SeqCst);
                })
            })
            .collect();
        while !done.load(SeqCst) && fs::read_to_string(&file).unwrap().lines().count() < 100 {
            pause();
        }
        fs::rename(&file, &old).unwrap();
        server.signal("HUP");
        for request in requests {
            request.join().unwrap();
        }
    });
    let all = || {
        let texts = [&old, &file].map(|path| fs::read_to_string(path).unwrap_or_default());
        // Text after the last line feed is still being written.
        let whole = |text: &String| text.rfind('\n').map_or(0, |end| end + 1);
        let lines = texts.iter().flat_map(|text| text[..whole(text)].lines());
        let id = |line: &str| {
            let line: Value = serde_json::from_str(line).expect("whole lines of JSON");
            line["request_id"].as_str().filter(|id| id.starts_with("id-")).map(str::to_owned)
        };
        lines.filter_map(id).collect::<BTreeSet<_>>()
    };
    server.until("all lines", || (all().len() == 3 * count).then_some(()));
    server.until("the new file to begin", || {
        fs::read_to_string(&file).is_ok_and(|text| text.contains(READ)).then_some(())
    });
    assert_eq!(server.log(), "", "nothing goes to standard error");
    // A file that is removed without a signal is recreated by the next line.
    fs::remove_file(&file).unwrap();
    server.until("a new file", || {
        server.get_with(ITEM, &[("x-request-id", "after")]);
        fs::read_to_string(&file).is_ok_and(|text| text.contains("after")).then_some(())
    });
}

#[test]
fn a_full_log_disk_fails_no_request_and_an_unopenable_log_file_fails_the_start() {
    // /dev/full refuses every byte, like a full disk.
    let server = Server::demo_with(&["telemetry.log_file=/dev/full"]);
    assert_eq!(server.get(&thumbnail()).status(), 200);
    assert!(server.metric("wirephoto_log_lines_lost_total", "") >= 1.0);
    let lost = server.log();
    assert_eq!(lost.matches("log lines are lost: /dev/full").count(), 1, "{lost}");
    let mut command = crate::common::server::wirephoto(server.dir.path());
    command.args(["serve", "--set", "telemetry.log_file=/nowhere/log"]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("telemetry.log_file: /nowhere/log"), "{stderr}");
}

#[test]
fn forwarding_headers_are_trusted_only_from_trusted_networks() {
    let client = |settings: &[&str], forwarded: &str| {
        let server = Server::demo_with(settings);
        server.get_with(ITEM, &[("x-forwarded-for", forwarded), ("x-request-id", "x1")]);
        let find = || server.log().lines().find(|line| line.contains("\"x1\"")).map(str::to_owned);
        let line: Value = serde_json::from_str(&server.until("the log line", find)).unwrap();
        line["client"].as_str().unwrap().to_owned()
    };
    let trusted = ["server.trusted_proxies=127.0.0.0/8, 10.0.0.0/8, fd00::/8"];
    assert_eq!(client(&[], "192.0.2.9"), "127.0.0.1");
    assert_eq!(client(&["server.trusted_proxies=128.0.0.0/8"], "192.0.2.9"), "127.0.0.1");
    assert_eq!(client(&trusted, "192.0.2.9, 10.1.2.3, fd12::1"), "192.0.2.9");
    // Entries further left are written by the client.
    assert_eq!(client(&trusted, "203.0.113.5, 192.0.2.9, 10.1.2.3"), "192.0.2.9");
    assert_eq!(client(&trusted, "192.0.2.9:4711"), "192.0.2.9");
    assert_eq!(client(&trusted, "203.0.113.5, nonsense"), "127.0.0.1");
}

#[test]
fn the_reference_marks_the_settings_that_take_effect_on_sighup() {
    let server = Server::empty();
    let output = server.command(&["config", "--json"]);
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let page = crate::common::checkout("docs/reference/settings.md");
    let page = fs::read_to_string(page).unwrap();
    let marked = page.lines().filter(|line| line.ends_with("| reload |"));
    let marked: BTreeSet<_> =
        marked.filter_map(|line| line.split('`').nth(1)).map(str::to_owned).collect();
    let can = rows.iter().filter(|row| row["reloads"] == true);
    let can: BTreeSet<_> = can.map(|row| row["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(marked, can);
}
