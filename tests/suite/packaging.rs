//! The packaged files: manual, completions, systemd unit, container, dashboard, alert rules, the table of
//! dependencies. `tests/packaging.sh` checks them with third-party programs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use wirephoto::runtime::telemetry::METRICS;

use crate::common::server::{output, wirephoto};
use crate::common::{LARGE, Server, checkout};

/// Metrics that the dashboard leaves out, each with the reason. A new metric goes onto a panel
/// (`packaging/dashboard.py`) or into this list.
const NOT_ON_THE_DASHBOARD: &[(&str, &str)] = &[];

pub fn read(path: &str) -> String {
    fs::read_to_string(checkout(path)).unwrap_or_else(|cause| panic!("{path}: {cause}"))
}

fn run(arguments: &[&str]) -> (String, String, Option<i32>) {
    let dir = tempfile::tempdir().unwrap();
    let output = output(wirephoto(dir.path()).args(arguments));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// The pages of the manual, by name.
fn pages() -> BTreeMap<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("made/for/it");
    let (stdout, stderr, status) = run(&["man", "--dir", &out.to_string_lossy()]);
    assert!(status == Some(0) && stdout.is_empty() && stderr.is_empty(), "{stderr}");
    let files = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    let name = |file: &Path| file.file_name().unwrap().to_string_lossy().into_owned();
    files.map(|file| (name(&file), fs::read_to_string(&file).unwrap())).collect()
}

/// The text of a page without roff escapes.
fn plain(page: &str) -> String {
    let page = page.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\(aq", "'");
    ["\\fB", "\\fI", "\\fR", "\\&"].iter().fold(page, |page, mark| page.replace(mark, ""))
}

/// The words of each executable command, such as `user add`.
fn commands() -> BTreeSet<Vec<String>> {
    let words = |page: &String| -> Option<Vec<String>> {
        let rest = page.strip_prefix("wirephoto-")?.strip_suffix(".1")?;
        // The only command whose name contains a hyphen.
        let (first, rest) = match rest.strip_prefix("signing-key") {
            Some(rest) => (Some("signing-key"), rest.trim_start_matches('-')),
            None => (None, rest),
        };
        let others = rest.split('-').filter(|word| !word.is_empty());
        Some(first.into_iter().chain(others).map(str::to_owned).collect())
    };
    let all: BTreeSet<Vec<String>> = pages().keys().filter_map(words).collect();
    let leads =
        |one: &[String]| all.iter().any(|other| other.len() > one.len() && other.starts_with(one));
    all.iter().filter(|one| !leads(one)).cloned().collect()
}

#[test]
fn the_manual_has_a_page_for_each_command_and_none_for_hidden_ones() {
    let pages = pages();
    for name in ["wirephoto.1", "wirephoto-serve.1", "wirephoto-user.1", "wirephoto-user-add.1"] {
        assert!(pages.contains_key(name), "{name} is not among {:?}", pages.keys());
    }
    for (name, page) in &pages {
        for hidden in
            ["wirephoto-pdf", "wirephoto-limited", "wirephoto-reference", "wirephoto-help"]
        {
            assert!(!name.starts_with(hidden), "{name}");
            assert!(!plain(page).contains(hidden), "{name} tells of {hidden}");
        }
    }
    let (main, ..) = run(&["man"]);
    assert_eq!(main, pages["wirephoto.1"]);
    for words in commands() {
        let first = format!("wirephoto-{}(1)", words[0]);
        assert!(plain(&main).contains(&first), "wirephoto.1 lacks {first}");
        // The page describes every option that `--help` describes.
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let (help, ..) = run(&arguments);
        let page = plain(&pages[&format!("wirephoto-{}.1", words.join("-"))]);
        let options = help.split_whitespace().filter(|word| word.starts_with("--"));
        for option in options.map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric())) {
            assert!(page.contains(option), "{words:?}: --{option}");
        }
    }
}

#[test]
fn the_settings_manual_lists_every_setting_with_its_default() {
    let page = plain(&pages()["wirephoto.toml.5"]);
    let (stdout, ..) = run(&["config", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    for row in rows {
        let text = |field: &str| row[field].as_str().unwrap();
        let (section, key) = text("name").split_once('.').unwrap();
        let within = page.split_once(&format!(".SS [{section}]")).expect(section).1;
        let default = text("default");
        let head = if default.is_empty() { key.to_owned() } else { format!("{key} = {default}") };
        let at =
            within.find(&format!("\n{head}")).unwrap_or_else(|| panic!("{head} in {section}"));
        assert!(within[at..].contains(&format!("\n{}.\n", text("meaning"))), "{head}");
    }
}

#[test]
fn the_reference_has_a_heading_for_every_command() {
    let page = read("docs/reference/commands.md");
    for words in commands() {
        let heading = format!("# wirephoto {}", words.join(" "));
        assert!(
            page.lines().any(|line| line.ends_with(&heading)),
            "commands.md lacks `{heading}`"
        );
    }
}

/// The completions that bash offers for the last of `words`.
fn bash_offers(script: &Path, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let (last, before) = (words.len() - 1, words.len().saturating_sub(2));
    let program = format!(
        "source '{}'; complete -p wirephoto >/dev/null || exit 3\n\
         COMP_WORDS=({}); COMP_CWORD={last}; COMPREPLY=()\n\
         _wirephoto wirephoto \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{before}]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        quoted.join(" "),
    );
    let output = Command::new("bash").args(["--norc", "-c", &program]).output().expect("bash");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_choices() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("wirephoto.bash");
    let (text, _, status) = run(&["completions", "bash"]);
    assert_eq!(status, Some(0));
    fs::write(&script, text).unwrap();
    let offers = |words: &[&str]| bash_offers(&script, words);
    assert_eq!(offers(&["wirephoto", "ser"]), ["serve"]);
    assert_eq!(offers(&["wirephoto", "user", "add", "--pass"]), ["--password-stdin"]);
    let all = offers(&["wirephoto", ""]);
    for shown in ["ingest", "config", "health", "man", "completions"] {
        assert!(all.contains(&shown.to_owned()), "{all:?}");
    }
    for hidden in ["pdf", "limited"] {
        assert!(!all.contains(&hidden.to_owned()), "{all:?}");
    }
    let shells = offers(&["wirephoto", "completions", ""]);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(shells.contains(&shell.to_owned()), "{shells:?}");
        let (script, stderr, status) = run(&["completions", shell]);
        assert!(status == Some(0) && script.contains("ingest"), "{shell}: {stderr}");
        assert!(!script.contains("limited"), "{shell}");
    }
    assert_eq!(run(&["completions", "csh"]).2, Some(2));
}

#[test]
fn the_exit_status_of_health_says_whether_the_service_is_ready() {
    let server = Server::demo_with(&["server.unready_s=20"]);
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let listen = format!("server.listen={address}");
    let (stdout, stderr, status) = run(&["health", "--url", &server.url]);
    assert_eq!((stdout.as_str(), status), ("ready\n", Some(0)), "{stderr}");
    // The settings say where it listens.
    let (stdout, stderr, status) = run(&["health", "--set", &listen, "--json"]);
    let said: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (&said["ready"], &said["status"], status),
        (&true.into(), &200.into(), Some(0)),
        "{stderr}"
    );
    server.signal("TERM");
    let draining = || run(&["health", "--url", &server.url]);
    server.until("it to say that it drains", || {
        let (stdout, stderr, status) = draining();
        (status == Some(1) && stdout.is_empty() && stderr.contains("503: draining")).then_some(())
    });
    assert!(server.stop().0.success());
    let (stdout, stderr, status) = run(&["health", "--set", &listen]);
    assert!(status == Some(1) && stdout.is_empty() && stderr.contains(&address), "{stderr}");
}

/// Rust sources below `dir`.
pub fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Every name like `wirephoto_http_requests_total` in `text`, with the text after it.
fn metric_names(text: &str) -> Vec<(&str, &str)> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let names = text
        .match_indices("wirephoto_")
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| is_name(c) || c == '$'));
    let split = |(at, _): (usize, &str)| {
        let rest = &text[at..];
        rest.split_at(rest.find(|c: char| !is_name(c)).unwrap_or(rest.len()))
    };
    // A name ends with a letter; one that ends with `_` is part of another name.
    names.map(split).filter(|(name, _)| !name.ends_with('_')).collect()
}

/// The names of all metrics.
fn registered() -> BTreeSet<String> {
    METRICS.iter().map(|metric| metric.name.to_owned()).collect()
}

/// The name of the metric that a series belongs to.
fn metric_of<'a>(series: &'a str, registered: &BTreeSet<String>) -> &'a str {
    let parts = ["_bucket", "_sum", "_count"].iter().filter_map(|part| series.strip_suffix(part));
    parts.into_iter().find(|name| registered.contains(*name)).unwrap_or(series)
}

/// The expressions of the dashboard and of the alert rules, with their location.
fn expressions() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&read("examples/grafana-dashboard.json")).unwrap();
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            found.push((format!("panel {}", panel["title"]), text(&target["expr"])));
        }
    }
    assert!(found.len() > 30);
    for alert in read("packaging/alerts.yml").split("- alert: ").skip(1) {
        let (name, rest) = alert.split_once('\n').unwrap();
        let expression = rest.split_once("expr:").unwrap().1.split("labels:").next().unwrap();
        found.push((format!("alert {name}"), expression.to_owned()));
    }
    found
}

/// The labels of each metric in the output of `/metrics`.
fn labels(scraped: &str, registered: &BTreeSet<String>) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in scraped.lines().filter(|line| line.starts_with("wirephoto_")) {
        let (series, rest) = line.split_at(line.find(['{', ' ']).unwrap());
        let of = found.entry(metric_of(series, registered).to_owned()).or_default();
        let names = rest.split(['{', ',']).filter_map(|part| part.split_once("=\""));
        of.extend(names.map(|(name, _)| name.to_owned()));
    }
    found
}

#[test]
fn dashboard_and_alerts_use_only_existing_metrics_and_labels() {
    let server = Server::demo();
    server.bytes(&format!("/media/{LARGE}_NormalThumbnail.jpg"));
    server.bytes(&format!("/media/{LARGE}_NormalThumbnail.jpg"));
    let shown = || {
        let text = server.get("/metrics").text().unwrap();
        text.contains("wirephoto_outbox_parked").then_some(text)
    };
    let scraped = server.until("the metrics of the outbox", shown);
    let registered = registered();
    let labels = labels(&scraped, &registered);
    for name in labels.keys() {
        assert!(
            registered.contains(name),
            "{name} is served and not registered in src/runtime/telemetry"
        );
    }
    // Labels that Prometheus and its service discovery add.
    let added = ["instance", "job", "le"];
    let mut used = BTreeSet::new();
    for (place, expression) in expressions() {
        let mut known: BTreeSet<&str> = added.into();
        for (series, rest) in metric_names(&expression) {
            let name = metric_of(series, &registered);
            assert!(registered.contains(name), "{place}: the service has no metric {series}");
            let Some(has) = labels.get(name) else {
                used.insert(name.to_owned());
                continue;
            };
            known.extend(has.iter().map(String::as_str));
            let selector = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            for part in selector.map_or("", |(inside, _)| inside).split(", ") {
                let label = part.split(['=', '!']).next().unwrap();
                let fits = label.is_empty() || has.contains(label) || added.contains(&label);
                assert!(fits, "{place}: {series} has no label {label}");
            }
            used.insert(name.to_owned());
        }
        let whole = metric_names(&expression)
            .iter()
            .all(|(series, _)| labels.contains_key(metric_of(series, &registered)));
        for by in expression.split("by (").skip(1).filter(|_| whole) {
            for label in by.split(')').next().unwrap().split(", ") {
                assert!(known.contains(label), "{place}: nothing has the label {label}");
            }
        }
    }
    assert!(used.contains("wirephoto_renders_total"));
}

#[test]
fn counters_used_by_alerts_exist_before_their_first_event() {
    // No process listens there, and nothing has to be purged either.
    let settings = ["cdn.purge_url=http://127.0.0.1:9/", "cdn.purge_header=Surrogate-Key"];
    let server = Server::demo_with(&settings);
    let scraped = server.get("/metrics").text().unwrap();
    let mut found = BTreeSet::new();
    for (place, expression) in expressions() {
        if !place.starts_with("alert ") {
            continue;
        }
        for part in expression.split("increase(").skip(1) {
            let series = part.split('[').next().unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let labels = labels.trim_end_matches('}');
            let is_it = |line: &str| {
                line.starts_with(name) && labels.split(", ").all(|label| line.contains(label))
            };
            assert!(scraped.lines().any(is_it), "{place}: {series} is not there yet");
            found.insert(name.to_owned());
        }
    }
    assert!(found.len() > 6, "{found:?}");
}

/// The names of the alert rules.
fn rules() -> Vec<String> {
    let text = read("packaging/alerts.yml");
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    names.map(str::to_owned).collect()
}

#[test]
fn every_alert_rule_has_a_runbook_section_and_a_test() {
    let (rules, page) = (rules(), read("docs/operations/alerts.md"));
    assert!(rules.len() > 30, "{rules:?}");
    let sections: Vec<(&str, &str)> =
        page.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap()).collect();
    let names: Vec<&str> = sections.iter().map(|(name, _)| *name).collect();
    assert_eq!(BTreeSet::from_iter(names), rules.iter().map(String::as_str).collect());
    for (name, text) in sections {
        assert!(text.trim().len() > 150, "docs/operations/alerts.md says too little of {name}");
    }
    let (text, tests) = (read("packaging/alerts.yml"), read("tests/alerts.yml"));
    for rule in &rules {
        let (_, of_rule) = text.split_once(&format!("- alert: {rule}\n")).unwrap();
        let of_rule = of_rule.split("- alert: ").next().unwrap();
        let anchor = rule.to_lowercase();
        let runbook = format!(
            "runbook: \"{{{{ $externalLabels.docs_url }}}}/operations/alerts#{anchor}\"\n"
        );
        assert!(of_rule.contains(&runbook), "{rule}: its annotation is no {runbook}");
        let fires = format!("'{{alertname=\"{rule}\"}}'");
        assert!(tests.contains(&fires), "{rule} does not fire in tests/alerts.yml");
    }
}

#[test]
fn every_metric_is_on_the_dashboard_and_has_a_help_text() {
    let registered = registered();
    let dashboard = read("examples/grafana-dashboard.json");
    let shown: BTreeSet<&str> = metric_names(&dashboard)
        .into_iter()
        .map(|(series, _)| metric_of(series, &registered))
        .collect();
    for name in &registered {
        let left_out = NOT_ON_THE_DASHBOARD.iter().any(|(other, _)| other == name);
        assert!(
            shown.contains(name.as_str()) != left_out,
            "{name}: put it on a panel in packaging/dashboard.py, or else into \
             NOT_ON_THE_DASHBOARD in tests/suite/packaging.rs with the reason"
        );
    }
    for metric in METRICS {
        assert!(!metric.help.is_empty(), "{}", metric.name);
    }
}

#[test]
fn the_packaged_settings_and_their_examples_are_valid() {
    let dir = tempfile::tempdir().unwrap();
    let text = read("packaging/wirephoto.toml");
    let examples: Vec<String> = text
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
        .map(str::to_owned)
        .collect();
    assert!(examples.iter().any(|line| line.starts_with("public_url")));
    for text in [text, examples.join("\n")] {
        let file = dir.path().join("settings.toml");
        fs::write(&file, text).unwrap();
        let (stdout, stderr, status) =
            run(&["config", "--json", "--config", &file.to_string_lossy()]);
        assert_eq!(status, Some(0), "{stderr}");
        let rows: Vec<Value> = serde_json::from_str(&stdout).unwrap();
        let data = rows.iter().find(|row| row["name"] == "data.dir").unwrap();
        assert_eq!(data["value"], "/var/lib/wirephoto");
    }
}

#[test]
fn the_systemd_unit_allows_the_service_its_stop_timeout_and_files() {
    let unit = read("packaging/wirephoto.service");
    let value = |name: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("the unit has no {name}")).to_owned()
    };
    let number = |name: &str| value(name).parse::<u64>().unwrap();
    let (stdout, ..) = run(&["config", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    let default = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        row["default"].as_str().unwrap().parse::<u64>().unwrap()
    };
    let stop = default("server.unready_s") + default("server.drain_s");
    assert!(number("TimeoutStopSec") > stop + 10);
    // A fault that outlasts a few restarts must not stop the unit for good.
    assert_eq!((value("Restart").as_str(), number("StartLimitIntervalSec")), ("on-failure", 0));
    assert!((2..=30).contains(&number("RestartSec")));
    assert!(value("After").split(' ').any(|target| target == "time-sync.target"));
    assert!(number("LimitNOFILE") > 3 * default("server.connections_max"));
    let start = value("ExecStart");
    let words: Vec<&str> = start.split_whitespace().collect();
    assert_eq!(
        words,
        ["/usr/bin/wirephoto", "serve", "--config", "/etc/wirephoto/wirephoto.toml"]
    );
}

/// The words of the line of `text` that begins with `start`, continued lines included.
fn words_after<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let at = text.find(start).unwrap_or_else(|| panic!("no line with {start}")) + start.len();
    let end = text[at..].find("\n").map_or(text.len(), |end| at + end);
    text[at..end].split_whitespace().filter(|word| *word != "\\").collect()
}

#[test]
fn the_container_is_built_from_existing_files_in_the_same_way_as_run() {
    let (file, run_script, ignore) = (read("Dockerfile"), read("run"), read(".dockerignore"));
    // A developer may choose another profile for ./run.
    let run_script = run_script.replace("--profile \"$profile\"", "--release");
    let allowed: Vec<&str> = ignore.lines().filter_map(|line| line.strip_prefix('!')).collect();
    for path in &allowed {
        assert!(checkout(path).exists(), ".dockerignore names {path}");
    }
    let copies = file.lines().filter_map(|line| line.strip_prefix("COPY "));
    for copy in copies.filter(|copy| !copy.starts_with("--from=")) {
        let source = copy.split_whitespace().next().unwrap();
        let given = source == "." || allowed.contains(&source);
        assert!(checkout(source).exists() && given, "COPY {source}");
    }
    assert_eq!(
        words_after(&file, "RUN cargo build "),
        words_after(&run_script, "exec cargo run ").into_iter().take(4).collect::<Vec<_>>()
    );
    let packages = words_after(&file, "apt-get install -y --no-install-recommends ");
    let wanted: BTreeSet<&str> = run_script
        .match_indices("missing+=(")
        .flat_map(|(at, mark)| {
            let rest = &run_script[at + mark.len()..];
            rest.split(')').next().unwrap().split_whitespace().collect::<Vec<_>>()
        })
        .collect();
    // The image brings a C compiler and make.
    let brought = BTreeSet::from(["gcc", "libc6-dev", "make"]);
    let expected: Vec<&str> = wanted.difference(&brought).copied().collect();
    assert_eq!(packages, expected);
    let toolchain = read("Cargo.toml");
    let version = toolchain.split("rust-version = \"").nth(1).unwrap().split('"').next().unwrap();
    assert!(file.contains(&format!("FROM rust:{version}-bookworm AS build")));
    for line in ["USER 10001:10001", "EXPOSE 8080", "STOPSIGNAL SIGTERM"] {
        assert!(file.contains(line), "{line}");
    }
    let check = "CMD [\"wirephoto\", \"health\"]";
    assert!(file.contains(check) && run(&["health", "--help"]).2 == Some(0));
}

#[test]
fn every_direct_dependency_has_a_stated_purpose() {
    let host = Command::new("rustc").arg("-vV").output().expect("rustc");
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let metadata = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--offline",
            "--filter-platform",
            host,
        ])
        .current_dir(checkout(""))
        .output()
        .expect("cargo");
    let stderr = String::from_utf8_lossy(&metadata.stderr);
    assert!(metadata.status.success(), "{stderr}");
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let members = list(&metadata["workspace_members"]);
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (package["id"].as_str().unwrap().to_owned(), package))
        .collect();
    let table = read("docs/internals/dependencies.md");
    let mut direct = BTreeSet::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        if members.contains(&node["id"]) {
            let of = list(&node["deps"]).into_iter().map(|dependency| dependency["pkg"].clone());
            direct.extend(
                of.filter(|id| !members.contains(id)).map(|id| id.as_str().unwrap().to_owned()),
            );
        }
    }
    for id in &direct {
        let text = |field: &str| packages[id][field].as_str().unwrap();
        let name = text("name");
        let row = table.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| {
            panic!("docs/internals/dependencies.md lacks {name}: run packaging/dependencies.py, say what it is for")
        });
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert!(cells[2].len() > 3, "docs/internals/dependencies.md: say what {name} is for");
        let hint = "run packaging/dependencies.py";
        assert_eq!((cells[3], cells[4]), (text("license"), text("version")), "{name}: {hint}");
    }
    let rows = table.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(
        rows,
        direct.len(),
        "docs/internals/dependencies.md names what is no dependency any more"
    );
}
