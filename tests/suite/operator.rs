//! The tools of operators: settings, commands, health, metrics, logs, and the commands and addresses of the README.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::common::pictures::Picture;
use crate::common::server::{output, wirephoto};
use crate::common::{LARGE, Server, checkout, pause};
use crate::faults::kit::{self, Faults};

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> (String, String, Option<i32>) {
    let dir = tempfile::tempdir().unwrap();
    let mut command = wirephoto(dir.path());
    let Output { stdout, stderr, status } =
        output(command.args(arguments).envs(variables.to_vec()));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr), status.code())
}

fn setting(arguments: &[&str], variables: &[(&str, &str)], name: &str) -> (String, String) {
    let arguments: Vec<_> = ["config", "--json"].iter().chain(arguments).copied().collect();
    let (stdout, stderr, status) = run(&arguments, variables);
    assert_eq!(status, Some(0), "{stderr}");
    let rows: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    let row = rows.iter().find(|row| row["name"] == name).unwrap();
    let text = |field: &str| row[field].as_str().unwrap().to_owned();
    (text("value"), text("source"))
}

#[test]
fn a_setting_comes_from_default_file_environment_or_flag_in_this_order() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wirephoto.toml");
    fs::write(&file, "[media]\npreview_px = 900\n").unwrap();
    let file = file.to_string_lossy();
    let name = "media.preview_px";
    let variable = [("WIREPHOTO_MEDIA__PREVIEW_PX", "800")];
    let check = |arguments: &[&str], variables: &[(&str, &str)], value: &str, source: &str| {
        let expected = (value.to_owned(), source.to_owned());
        assert_eq!(setting(arguments, variables, name), expected);
    };
    check(&[], &[], "1024", "default");
    check(&["--config", &file], &[], "900", "file");
    check(&["--config", &file], &variable, "800", "environment");
    check(&["--config", &file, "--set", "media.preview_px=700"], &variable, "700", "flag");
    assert_eq!(setting(&["--data", "/x"], &[], "data.dir"), ("/x".to_owned(), "flag".to_owned()));
}

#[test]
fn a_settings_file_that_lies_in_the_working_directory_is_not_read_in_silence() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("wirephoto.toml"), "[mail]\npassword = \"hunter2\"\n").unwrap();
    let server = Server::start(dir, &["media.preview_px=900"]);
    let loaded = "settings loaded";
    let find = || server.log().lines().find(|line| line.contains(loaded)).map(str::to_owned);
    let line = server.until("the line", find);
    assert!(!line.contains("hunter2"), "{line}");
    let line: Value = serde_json::from_str(&line).unwrap();
    let file = line["settings_file"].as_str().unwrap();
    assert!(file.starts_with('/') && file.ends_with("/wirephoto.toml"), "{file}");
    let changed: Vec<_> = line["changed"].as_str().unwrap().split(' ').collect();
    for name in ["mail.password", "media.preview_px", "server.listen", "data.dir"] {
        assert!(changed.contains(&name), "{changed:?}");
    }
    assert!(!changed.contains(&"media.workers"), "{changed:?}");
}

#[test]
fn unknown_and_invalid_settings_fail_every_command_by_name() {
    let check = |arguments: &[&str], variables: &[(&str, &str)], part: &str| {
        let (_, stderr, status) = run(arguments, variables);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains(part), "{stderr}");
    };
    check(&["serve", "--set", "media.prewiev_px=1"], &[], "unknown setting media.prewiev_px");
    check(&["serve", "--listen", "nowhere"], &[], "server.listen");
    check(&["config"], &[("WIREPHOTO_MEDIA__X", "1")], "WIREPHOTO_MEDIA__X");
    check(
        &["ingest", "x"],
        &[("WIREPHOTO_CACHE__DISK_BYTES", "much")],
        "WIREPHOTO_CACHE__DISK_BYTES",
    );
    check(&["serve", "--config", "missing.toml"], &[], "missing.toml");
    check(&["serve", "--set", "telemetry.log_level=[["], &[], "telemetry.log_level");
}

#[test]
fn files_that_settings_name_are_opened_before_a_start_needs_them() {
    let check = |settings: &[&str], status: i32| {
        let settings = settings.iter().flat_map(|setting| ["--set", *setting]);
        let arguments: Vec<_> = ["config", "check"].into_iter().chain(settings).collect();
        let (stdout, stderr, code) = run(&arguments, &[]);
        assert_eq!(code, Some(status), "{stderr}");
        stdout + &stderr
    };
    assert!(check(&[], 0).contains("the settings are valid"));
    // A log and a key are created when they are needed.
    check(&["telemetry.log_file=new.log", "secrets.key_file=new.key"], 0);
    let said = check(
        &[
            "server.tls_certificate=/missing/chain.pem",
            "server.tls_key=/missing/key.pem",
            "database.password_file=/missing/password",
            "push.ca=/missing/ca.pem",
            "media.watermark_png=/",
            "telemetry.log_file=/missing/folder/log",
            "mail.templates=/missing/templates",
        ],
        2,
    );
    for part in [
        "server.tls_certificate: /missing/chain.pem",
        "database.password_file: /missing/password cannot be read",
        "push.ca: /missing/ca.pem",
        "media.watermark_png: / is a folder",
        "telemetry.log_file: /missing/folder/log cannot be created",
        "/missing/templates",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(check(&["media.preview_px=1"], 2).contains("media.preview_px"));
    // Values that a start or a reload would refuse.
    for (name, value) in [
        ("telemetry.log_level", "[["),
        ("mail.from", "nobody"),
        ("media.watermark_png", "/proc/self/cmdline"),
        ("cdn.purge_url", "nowhere"),
        ("secrets.key", "hunter2"),
        ("secrets.key_file", "/proc/self/cmdline"),
        ("database.url", "postgres://wp@db/x?sslmode=require&sslrootcert=/no/file"),
    ] {
        let setting = format!("{name}={value}");
        let said = check(&[setting.as_str()], 2);
        assert!(said.contains(name) && !said.contains("hunter2"), "{name}: {said}");
    }
    let traces = ["telemetry.otlp_url=http://127.0.0.1:4318", "telemetry.otlp_headers=no header"];
    check(&traces[..1], 0);
    assert!(check(&traces, 2).contains("telemetry.otlp_headers"));
    let bucket = ["store.originals=s3://pictures", "store.access_key_id=id"];
    assert!(check(&bucket, 2).contains("store.secret_access_key"));
    check(&[&bucket[..], &["store.secret_access_key=secret"]].concat(), 0);
}

#[test]
fn commands_warn_of_a_flag_that_loses_to_the_file_of_a_secret() {
    let variable = [("WIREPHOTO_DATABASE__PASSWORD_FILE", "/missing/password")];
    for command in [&["config"][..], &["config", "check"]] {
        let arguments = [command, &["--set", "database.password=hunter2"]].concat();
        let (stdout, stderr, _) = run(&arguments, &variable);
        let expected = "database.password (flag) has no effect: database.password_file \
                        (WIREPHOTO_DATABASE__PASSWORD_FILE) counts";
        assert!(stderr.contains(expected), "{command:?}: {stderr}");
        assert!(!(stdout + &stderr).contains("hunter2"), "{command:?}");
    }
}

#[test]
fn bad_usage_is_status_2_and_failure_status_1() {
    for arguments in [&["nonsense"][..], &["ingest"], &["import"], &["serve", "--port", "1"]] {
        assert_eq!(run(arguments, &[]).2, Some(2), "{arguments:?}");
    }
    let (_, stderr, status) = run(&["import", "missing.json"], &[]);
    assert!(status == Some(1) && stderr.contains("missing.json"), "{stderr}");
    let (_, stderr, status) = run(&["serve", "--set", "media.watermark_png=missing.png"], &[]);
    assert!(status == Some(1) && stderr.contains("media.watermark_png"), "{stderr}");
    let (_, stderr, status) = run(&["serve", "--data", "/proc/nope"], &[]);
    assert!(status == Some(1) && stderr.contains("/proc/nope"), "{stderr}");
}

#[test]
fn a_listen_address_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (_, stderr, status) = run(&["serve", "--listen", &address], &[]);
    assert!(status == Some(1) && stderr.contains(&address), "{stderr}");
}

#[test]
fn an_invalid_accounts_file_is_refused_whole_and_no_key_is_printed() {
    let server = Server::empty();
    let path = server.dir.path().join("accounts.json");
    let check = |text: &str, part: &str| {
        fs::write(&path, text).unwrap();
        let output = server.command(&["import", &path.to_string_lossy()]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(part) && stderr.contains("accounts.json"), "{stderr}");
        assert!(!stderr.contains("sesame"), "{stderr}");
    };
    check("[", "not an accounts file");
    check(r#"{"apikeys": []}"#, "apikeys");
    check(r#"{"apiKeys": [{"user": "a", "key": "sesame", "name": "x"}]}"#, "apiKeys[0]");
    check(r#"{"apiKeys": [{"user": "a", "key": "sesame open the door", "name": "x"}]}"#, "spaces");
    check(r#"{"apiKeys": [{"user": "", "key": "sesame-open-the-door"}]}"#, "user");
    check(r#"{"apiKeys": [{"key": "sesame-open-the-door"}]}"#, "user");
}

/// Runs `wirephoto bench` on `files` in a folder `dir`, whose temporary files lie in `tmp` there.
fn bench(dir: &Path, arguments: &[&str], files: &[&Path]) -> Command {
    fs::create_dir_all(dir.join("tmp")).unwrap();
    let mut command = wirephoto(dir);
    command.arg("bench").args(arguments).args(files).env("TMPDIR", dir.join("tmp"));
    command
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn bench_reports_the_speed_and_render_path_of_renditions() {
    let dir = tempfile::tempdir().unwrap();
    // Progressive, so it has a working copy.
    let photograph = checkout("media-store/demo/image/demo-dandelion-seeding");
    // The data and cache folders of a service must stay unchanged.
    let own = format!("store.originals={}", dir.path().join("own").display());
    let arguments = ["--seconds", "1", "--json", "--set", "media.workers=2", "--set", &own];
    let Output { stdout, stderr, status } =
        output(&mut bench(dir.path(), &arguments, &[&photograph]));
    assert!(status.success() && stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    let report: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!((&report["photographs"], &report["pixels"]), (&1.into(), &(5312 * 2988).into()));
    assert!(report["ingestMs"]["p50"].as_f64().unwrap() > 0.0);
    for (kind, least) in [("index", 0.01), ("working", 50.0)] {
        assert!(report["derived"][kind]["percent"].as_f64().unwrap() > least, "{report}");
    }
    assert!(report["derived"]["standard"]["files"] == 1, "{report}");
    let expected = [
        ("crop", "region"),
        ("crop-on-grid", "lossless-crop"),
        ("crop-watermark", "region"),
        ("watermark", "local-mark"),
        ("preview", "stored"),
        ("preview-watermark", "local-mark"),
        ("thumbnail", "stored"),
    ];
    let operations = report["operations"].as_array().unwrap();
    assert_eq!(operations.len(), 2 * expected.len());
    for (measured, (index, (operation, way))) in
        operations.iter().zip(expected.iter().cycle().enumerate())
    {
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{measured}"));
        assert_eq!(measured["operation"], *operation);
        assert_eq!(measured["workers"], if index < expected.len() { 1 } else { 2 });
        let made = number(&measured["renditions"]);
        assert!(made >= 5.0 && number(&measured["seconds"]) > 0.0, "{measured}");
        // One crop in a few hundred lies on the MCU grid by chance.
        assert!(number(&measured["paths"][way]) > 0.9 * made, "{measured}");
        let [p50, p95, p99] = ["p50", "p95", "p99"].map(|name| number(&measured["ms"][name]));
        assert!(0.0 < p50 && p50 <= p95 && p95 <= p99, "{measured}");
        assert!(number(&measured["bytesEach"]) > 1000.0, "{measured}");
        assert!(number(&measured["peakBytes"]) > 1e6, "{measured}");
    }
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["tmp"]);
    assert!(is_empty(&dir.path().join("tmp")));
}

#[test]
fn bench_names_files_that_are_not_photographs_and_measures_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (text, disguised) = (dir.path().join("notes.txt"), dir.path().join("notes.jpg"));
    fs::write(&text, "no picture").unwrap();
    fs::write(&disguised, "no picture").unwrap();
    let good = checkout(&format!("media-store/demo/{LARGE}"));
    let Output { stdout, stderr, status } =
        output(&mut bench(dir.path(), &["--json"], &[&good, &text, &disguised]));
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(1) && stdout.is_empty(), "{stderr}");
    assert!(stderr.contains("notes.txt: ") && stderr.contains("notes.jpg: "), "{stderr}");
    assert!(!stderr.contains("solnedgang"), "{stderr}");
    assert!(is_empty(&dir.path().join("tmp")));
    for seconds in ["0", "61", "some"] {
        let (_, stderr, status) = run(&["bench", "--seconds", seconds, "x.jpg"], &[]);
        assert!(status == Some(2) && stderr.contains("--seconds"), "{stderr}");
    }
}

#[test]
fn an_interrupted_bench_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let photograph = checkout(&format!("media-store/demo/{LARGE}"));
    let within = dir.path().join("disk");
    fs::create_dir(&within).unwrap();
    let arguments = ["--seconds", "60", "--data", &within.to_string_lossy()];
    let mut command = bench(dir.path(), &arguments, &[&photograph]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The signal handlers are installed before the folder is created.
    while is_empty(&within) {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        pause();
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
    let Output { stderr, status, .. } = child.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(String::from_utf8(stderr).unwrap().contains("interrupted"));
    assert!(is_empty(&within) && is_empty(&dir.path().join("tmp")));
}

#[test]
fn health_and_metrics_are_served() {
    // Its standard renditions are not made yet, so that the first request decodes.
    let pictures = [("large", Picture::waves(1500, 1000).jpeg())];
    let server = Server::with_pictures(&["media.warm=false"], &pictures);
    assert_eq!(server.get("/health/live").text().unwrap(), r#"{"status":"live"}"#);
    assert_eq!(server.get("/health/ready").text().unwrap(), r#"{"status":"ready"}"#);
    server.bytes("/media/image/large_NormalThumbnail.jpg");
    server.bytes("/media/image/large_NormalThumbnail.jpg");
    let metrics = server.get("/metrics").text().unwrap();
    for name in [
        "wirephoto_http_requests_total{route=\"/media/{*path}\",status=\"2xx\"} 2",
        "wirephoto_http_request_seconds_bucket",
        "wirephoto_http_response_bytes_total",
        "wirephoto_render_queue_depth 0",
        "wirephoto_render_workers ",
        "wirephoto_render_seconds_bucket{operation=\"thumbnail\"",
        "wirephoto_renders_total{outcome=\"done\"} 1",
        "wirephoto_render_paths_total{path=\"stored\"} 1",
        "wirephoto_stage_seconds_count{stage=\"queue\"} 1",
        "wirephoto_stage_seconds_count{stage=\"read\"} 1",
        "wirephoto_stage_seconds_bucket{stage=\"decode\"",
        "wirephoto_decoded_megapixels_total",
        "wirephoto_cache_lookups_total{tier=\"memory\",outcome=\"hit\"} 1",
        "wirephoto_connections",
        "wirephoto_database_errors_total{kind=\"away\"} 0",
        "wirephoto_database_wait_seconds_bucket{kind=\"read\"",
    ] {
        assert!(metrics.contains(name), "{name} is missing in:\n{metrics}");
    }
    // A worker stays busy after its render, while it writes to the disk tier.
    let rests = "wirephoto_render_workers_busy 0";
    for gauge in [rests, "wirephoto_cache_bytes{tier=\"disk\"}"] {
        let shown = || server.get("/metrics").text().unwrap().contains(gauge).then_some(());
        server.until(gauge, shown);
    }
}

#[test]
fn a_log_line_is_json_and_describes_the_request() {
    let server = Server::demo();
    let path = format!("/media/{LARGE}_NormalPreview.jpg");
    server.get_with(&path, &[("x-request-id", "my-id-1")]);
    server.get_with(&path, &[("x-request-id", "my-id-2")]);
    let line = |id: &str| {
        let find = || server.log().lines().find(|line| line.contains(id)).map(str::to_owned);
        serde_json::from_str::<Value>(&server.until("the log line", find)).unwrap()
    };
    let (first, second) = (line("my-id-1"), line("my-id-2"));
    assert_eq!(first["level"], "INFO");
    assert_eq!(first["route"], "/media/{*path}");
    assert_eq!(first["path"], path);
    assert_eq!(first["method"], "GET");
    assert_eq!(first["status"], 200);
    assert_eq!(first["client"], "127.0.0.1");
    assert_eq!(first["operation"], "preview");
    assert!(first["bytes"].as_u64().unwrap() > 10_000);
    assert!(first["render_ms"].as_f64().unwrap() > 0.0);
    assert_eq!((&first["cache"], &second["cache"]), (&"miss".into(), &"memory".into()));
    assert_eq!((&first["render_path"], &second["render_path"]), (&"stored".into(), &Value::Null));
}

#[test]
fn logs_can_be_text() {
    let server = Server::demo_with(&["telemetry.log_format=text"]);
    server.get("/no/such/page");
    let asked = "path=\"/no/such/page\"";
    let log = server.until("the line", || Some(server.log()).filter(|log| log.contains(asked)));
    assert!(!log.starts_with('{'), "{log}");
}

#[test]
fn health_checks_and_scrapes_are_counted_and_not_logged() {
    let faults = Faults::new();
    let dir = kit::scene(&[("image/one", kit::document("Ett"))]);
    let server = faults.start(dir, &[]);
    // Failed readiness checks are routine too.
    faults.set(&["eio-read /wirephoto.db"]);
    let ready = |status: u16| {
        server
            .until("readiness", || (server.get("/health/ready").status() == status).then_some(()));
    };
    ready(503);
    faults.clear();
    ready(200);
    server.wait_for_index();
    for path in ["/health/live", "/health/ready", "/health/serving", "/health/search", "/metrics"]
    {
        assert_eq!(server.get(path).status(), 200, "{path}");
    }
    assert_eq!(server.get("/health/nothing").status(), 404);
    let lines = server.until("the line of what is no check", || {
        let log = server.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<Value> = lines.filter(|line| line["message"] == "request").collect();
        (!lines.is_empty()).then_some(lines)
    });
    let paths: Vec<&Value> = lines.iter().map(|line| &line["path"]).collect();
    assert_eq!(paths, ["/health/nothing"]);
    let requests = "wirephoto_http_requests_total";
    for route in ["/health/ready\",status=\"5xx", "/health/ready\",status=\"2xx", "/metrics"] {
        let counted = server.metric(requests, &format!("route=\"{route}\""));
        assert!(counted >= 1.0, "{route}");
    }
}

#[test]
fn the_demo_starts_with_one_command_and_a_second_start_ingests_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = wirephoto(dir.path());
        std::os::unix::fs::symlink(checkout("media-store/demo"), dir.path().join("demo")).ok();
        fs::create_dir_all(dir.path().join("media-store")).unwrap();
        let demo = dir.path().join("media-store/demo");
        std::os::unix::fs::symlink(checkout("media-store/demo"), demo).ok();
        command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
        while !said.contains("Demo API key") {
            assert!(std::io::BufRead::read_line(&mut lines, &mut said).unwrap() > 0, "{said}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        said
    };
    assert!(start().contains("ingested 24 items"));
    assert!(!start().contains("items of the demo archive"));
}

#[test]
fn every_command_in_the_readme_exists() {
    let readme = fs::read_to_string(checkout("README.md")).unwrap();
    let commands = readme.lines().filter_map(|line| line.trim().strip_prefix("wirephoto "));
    let mut count = 0;
    for command in commands {
        let words: Vec<_> = command.split("  ").next().unwrap().split_whitespace().collect();
        let lower = |word: &&str| {
            !word.starts_with('-')
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        let names = words.iter().copied().take_while(lower);
        let (help, _, status) = run(&names.chain(["--help"]).collect::<Vec<_>>(), &[]);
        assert_eq!(status, Some(0), "{command}");
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(flag), "{command}: {flag}");
        }
        count += 1;
    }
    assert!(count > 0, "the README shows commands");
}

#[test]
fn every_url_in_the_readme_answers() {
    let server = Server::demo();
    let readme = fs::read_to_string(checkout("README.md")).unwrap();
    let base = "http://127.0.0.1:8080";
    let urls: std::collections::BTreeSet<&str> = readme
        .match_indices(base)
        .map(|(at, _)| {
            let rest = &readme[at + base.len()..];
            let end = rest.find(|c: char| c.is_whitespace() || "`\"')|<>".contains(c));
            &rest[..end.unwrap_or(rest.len())]
        })
        .filter(|path| !path.is_empty() && *path != "/o/oauth2/token")
        .collect();
    for path in urls {
        let status = server.get(path).status().as_u16();
        assert!([200, 202, 302].contains(&status), "{path}: {status}");
    }
}

#[test]
fn the_login_of_the_guide_gives_a_token() {
    let server = Server::demo();
    let page = fs::read_to_string(checkout("docs/guide/login.md")).unwrap();
    let block = page.split("```").find(|block| block.trim_start().starts_with("curl "));
    let block = block.expect("a command").replace("http://127.0.0.1:8080", &server.url);
    let output = Command::new("sh").args(["-c", &block]).output().expect("a shell");
    let set: Value = serde_json::from_slice(&output.stdout).expect("a token set");
    assert!(set["access_token"].is_string(), "{set}");
}

#[test]
fn readiness_fails_before_connections_close() {
    let server = Server::demo_with(&["server.unready_s=20"]);
    assert_eq!(server.get("/health/ready").status(), 200);
    server.signal("TERM");
    server.until("readiness to turn false", || {
        (server.get("/health/ready").status() == 503).then_some(())
    });
    assert_eq!(server.get("/health/live").status(), 200, "what comes now is still served");
    assert!(server.stop().0.success());
}
