//! Every code block of README.md, CONTRIBUTING.md, SECURITY.md and docs/ is run as printed or registered with a
//! reason why not; every relative link resolves.
//!
//! [`REGISTER`] has a line for each block. A block without a line fails, and so does a line whose block or test
//! does not exist.

mod links;
mod maintenance;
pub mod pages;
mod production;
mod rights;
pub mod run;
mod stream_reader;

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::common::{checkout, server::output, server::wirephoto};
use pages::{Block, blocks};

/// The proof that a block is correct.
#[derive(Clone, Copy, Debug)]
enum Proof {
    /// The named test extracts the block from the page and runs it.
    Run(&'static str),
    /// The named test does the same with its own commands. Each of these texts occurs in both the block and the
    /// test's file.
    Alike(&'static str, &'static [&'static str]),
    /// Settings, read by the binary.
    Settings,
    /// JSON that parses.
    Json,
    /// No commands: addresses, responses, files.
    Shown,
    /// Commands that run tests (`./test`, `cargo test`) or fuzz targets of this tree, which must exist under these
    /// names.
    Tests,
    /// Commands that need more than a test has. Our files that they name exist, and so do their options.
    Outside(&'static str),
}

use Proof::{Alike, Json, Outside, Run, Settings, Shown, Tests};

/// The blocks, by page and the beginning of the first line.
const REGISTER: &[(&str, &str, Proof)] = &[
    ("README.md", "./run", Alike("tests/run.sh", &["./run"])),
    ("README.md", "wirephoto ingest ~/Pictures", Run(COMMANDS)),
    ("README.md", "packaging/deb.sh && ", Alike("tests/packaging.sh", &["packaging/deb.sh"])),
    ("README.md", "docker build", Outside("images are built where there is Docker")),
    ("README.md", "/media/image/<id>.jpg ", Shown),
    ("CONTRIBUTING.md", "./run", Alike("tests/run.sh", &["./run"])),
    ("CONTRIBUTING.md", "./test quick", Tests),
    ("CONTRIBUTING.md", "ASAN_OPTIONS=", Tests),
    ("CONTRIBUTING.md", "RUSTC_BOOTSTRAP=1 RUSTFLAGS=", Tests),
    ("docs/guide/collections.md", "curl -X POST -H", Run(CALLS)),
    ("docs/guide/deliveries.md", "curl -i 'http", Run(CALLS)),
    (
        "docs/guide/deliveries.md",
        "wirephoto channel add",
        Run("channels_of_the_guide_work_as_printed"),
    ),
    ("docs/guide/generated-clients.md", "npm install", Outside(PINNED)),
    ("docs/guide/generated-clients.md", "npx openapi-typescript", Run(TYPESCRIPT)),
    ("docs/guide/generated-clients.md", "import createClient", Run(TYPESCRIPT)),
    ("docs/guide/generated-clients.md", "pip install", Outside(PINNED)),
    ("docs/guide/generated-clients.md", "content_type_overrides", Run(PYTHON)),
    ("docs/guide/generated-clients.md", "openapi-python-client generate", Run(PYTHON)),
    ("docs/guide/generated-clients.md", "from wirephoto_client", Run(PYTHON)),
    ("docs/guide/ingest.md", "wirephoto ingest ~/Pictures", Run(COMMANDS)),
    ("docs/guide/ingest.md", "KEY=...", Run(CALLS)),
    ("docs/guide/ingest.md", "NAME=photo.jpg", Run(CALLS)),
    ("docs/guide/ingest.md", "TAG=$(curl", Run(CALLS)),
    (
        "docs/guide/login.md",
        "curl http://127.0.0.1:8080/o/oauth2",
        Run("the_login_of_the_guide_gives_a_token"),
    ),
    ("docs/guide/notifications.md", "curl -X POST 'http", Run(CALLS)),
    ("docs/guide/notifications.md", "import datetime", Run(READER)),
    ("docs/guide/renditions.md", "/media/image/<id>-crop", Shown),
    ("docs/guide/renditions.md", "/media/image/<id>-fit", Shown),
    ("docs/guide/renditions.md", "[media]", Settings),
    ("docs/guide/renditions.md", "<picture>", Shown),
    ("docs/guide/renditions.md", "'use client';", Shown),
    ("docs/guide/renditions.md", "import { defineProvider }", Shown),
    ("docs/guide/renditions.md", "curl -o preview.jpg", Run(RENDITIONS)),
    ("docs/guide/renditions.md", "curl -o small.webp", Run(RENDITIONS)),
    ("docs/guide/renditions.md", "curl http", Run(RENDITIONS)),
    ("docs/guide/renditions.md", "curl 'http", Run(RENDITIONS)),
    ("docs/guide/renditions.md", "Server-Timing: ", Shown),
    ("docs/guide/rights.md", "curl -o preview.jpg", Run(RIGHTS)),
    ("docs/guide/rights.md", "[media]", Settings),
    ("docs/guide/rights.md", "echo '{", Run(RIGHTS)),
    ("docs/guide/rights.md", "KEY=...", Run(RIGHTS)),
    ("docs/guide/rights.md", "wirephoto audit list", Run(RIGHTS)),
    ("docs/guide/rights.md", "curl http", Run(RIGHTS)),
    ("docs/guide/search.md", "curl 'http://127.0.0.1:8080/content", Run(CALLS)),
    ("docs/guide/search.md", "curl --get 'http", Run(CALLS)),
    ("docs/internals/architecture.md", " files, uploads", Shown),
    ("docs/internals/style.md", "  /// Moves a crop", Shown),
    ("docs/operations/accounts.md", "key=$(wirephoto key add", Run(COMMANDS)),
    (
        "docs/reference/accounts-file.md",
        "{",
        Run("the_example_of_an_accounts_file_is_imported_and_a_second_import_changes_nothing"),
    ),
    ("docs/operations/audit-log.md", "wirephoto audit list --action", Run(AUDIT)),
    ("docs/operations/audit-log.md", "wirephoto audit list --user demo-editor", Run(AUDIT)),
    ("docs/operations/audit-log.md", "wirephoto audit list --object user/", Run(AUDIT)),
    (
        "docs/operations/backup.md",
        "wirephoto backup --data DIR TARGET",
        Run("backups_work_as_documented"),
    ),
    (
        "docs/operations/backup.md",
        "wirephoto backup --data DIR --bucket",
        Alike(
            "a_backup_with_its_originals_in_a_bucket_is_verified_and_restored",
            &["backup", "--bucket", "verify", "restore"],
        ),
    ),
    ("docs/operations/backup.md", "[backup]", Settings),
    ("docs/operations/backup.md", "TARGET/wirephoto-", Shown),
    ("docs/operations/backup.md", "15 2 * * 1-6", Run("backups_work_as_documented")),
    ("docs/operations/backup.md", "wirephoto restore", Run("backups_work_as_documented")),
    ("docs/operations/backup.md", "wirephoto check", Run("backups_work_as_documented")),
    ("docs/operations/load-balancing.md", "[server]", Settings),
    (
        "docs/operations/load-balancing.md",
        "bind :443",
        Run("haproxy_terminates_tls_with_the_documented_lines"),
    ),
    ("docs/operations/cdn.md", "map $http_accept", Run(RECIPES)),
    ("docs/operations/cdn.md", "if (req.url ~", Run(RECIPES)),
    ("docs/operations/cdn.md", "if (req.url.path ~", Shown),
    ("docs/operations/cdn.md", "Surrogate-Key: ", Shown),
    ("docs/operations/cdn.md", "[cdn]", Settings),
    ("docs/operations/cdn.md", "[server]", Settings),
    ("docs/operations/cluster.md", "[server]", Settings),
    ("docs/operations/compose.md", "mkdir -m 700", Run("tests/compose.sh")),
    (
        "docs/operations/compose.md",
        "docker compose --file examples/compose.yaml",
        Outside("tests/compose.sh starts the services where no engine runs"),
    ),
    (
        "docs/operations/compose.md",
        "set -e",
        Alike(ORIGINALS, &["backup", "--originals-only", "verify", "--originals"]),
    ),
    (
        "docs/operations/compose.md",
        "docker compose --file examples/compose.yaml up --detach --wait postgres",
        Alike(ORIGINALS, &["restore", "--originals-only", "check"]),
    ),
    (
        "docs/operations/container.md",
        "docker build",
        Outside("images are built where there is Docker"),
    ),
    (
        "docs/operations/container.md",
        "docker exec",
        Outside("containers run where there is Docker"),
    ),
    (
        "docs/operations/maintenance.md",
        "NEW=$(openssl",
        Run("the_password_of_the_database_is_rotated_as_documented"),
    ),
    ("docs/operations/maintenance.md", "garage key create", Run("tests/compose.py")),
    ("docs/operations/maintenance.md", "garage key delete", Run("tests/compose.py")),
    (
        "docs/operations/maintenance.md",
        "wirephoto secrets rotate",
        Run("keys_and_passwords_are_rotated_as_documented"),
    ),
    (
        "docs/operations/maintenance.md",
        "wirephoto signing-key rotate",
        Run("keys_and_passwords_are_rotated_as_documented"),
    ),
    (
        "docs/operations/maintenance.md",
        "wirephoto key add",
        Run("keys_and_passwords_are_rotated_as_documented"),
    ),
    (
        "docs/operations/maintenance.md",
        "until wirephoto health",
        Run("a_node_is_replaced_as_documented"),
    ),
    (
        "docs/operations/maintenance.md",
        "rsync -a --ignore-missing-args",
        Run("a_node_is_replaced_as_documented"),
    ),
    (
        "docs/operations/maintenance.md",
        "wirephoto migrate",
        Run("a_bucket_is_moved_as_documented"),
    ),
    ("docs/operations/maintenance.md", "wirephoto check", Run("a_bucket_is_moved_as_documented")),
    (
        "docs/operations/maintenance.md",
        "lvextend",
        Outside("disks are grown where there are logical volumes"),
    ),
    (
        "docs/operations/maintenance.md",
        "rsync -a --exclude",
        Run("a_data_directory_moves_to_another_disk_as_documented"),
    ),
    (
        "docs/operations/maintenance.md",
        "rsync -a --delete",
        Run("a_data_directory_moves_to_another_disk_as_documented"),
    ),
    (
        "docs/operations/maintenance.md",
        "export WIREPHOTO_DATA__DIR=",
        Run("a_test_restore_works_as_documented"),
    ),
    (
        "docs/operations/maintenance.md",
        "psql",
        Run("a_test_restore_from_a_dump_works_as_documented"),
    ),
    ("docs/internals/fuzzing.md", "ASAN_OPTIONS=", Tests),
    (
        "docs/operations/install.md",
        "cargo install --locked cargo-deb",
        Alike("tests/packaging.sh", &["packaging/deb.sh"]),
    ),
    (
        "docs/operations/install.md",
        "wirephoto serve --demo",
        Alike(
            "the_demo_is_found_next_to_an_installed_binary",
            &["serve", "--demo", "--data", "--listen"],
        ),
    ),
    (
        "docs/operations/install.md",
        "sudo -u wirephoto",
        Run("a_service_is_operated_as_documented"),
    ),
    ("docs/operations/install.md", "[Service]", Shown),
    (
        "docs/operations/install.md",
        "until wirephoto health",
        Run("a_service_is_operated_as_documented"),
    ),
    (
        "docs/operations/install.md",
        "wirephoto man",
        Run("manual_and_completions_are_generated_as_documented"),
    ),
    ("docs/operations/install.md", "scrape_configs:", Shown),
    ("docs/operations/kubernetes.md", "umask 077; openssl rand", Outside(CLUSTER)),
    ("docs/operations/kubernetes.md", "kubectl exec", Outside(CLUSTER)),
    ("docs/operations/kubernetes.md", "pod=$(kubectl", Outside(CLUSTER)),
    ("docs/operations/kubernetes.md", "[backup]", Settings),
    ("docs/operations/kubernetes.md", "umask 077", Outside(CLUSTER)),
    (
        "docs/operations/migration.md",
        "wirephoto migrate --config FILE --to postgres://USER",
        Alike(MOVES, &["--to", "--store"]),
    ),
    (
        "docs/operations/migration.md",
        "wirephoto migrate --config FILE --to postgres://…",
        Alike(MOVES, &["--switch", "--store"]),
    ),
    (
        "docs/operations/migration.md",
        "wirephoto migrate --config FILE --undo",
        Alike("a_switch_is_undone", &["--undo", "--to"]),
    ),
    ("docs/operations/overload.md", "HTTP/1.1 503", Shown),
    ("docs/operations/postgresql.md", "CREATE ROLE", Run("a_database_is_created_as_documented")),
    ("docs/operations/postgresql.md", "[database]", Settings),
    ("docs/operations/postgresql.md", "export PGPASSWORD", Run(DUMPS)),
    ("docs/operations/postgresql.md", "pg_restore", Run(DUMPS)),
    ("docs/operations/server-setup.md", "[server]", Settings),
    ("docs/operations/server-setup.md", "[telemetry]", Settings),
    ("docs/operations/s3.md", "[store]", Settings),
    ("docs/operations/s3.md", "{", Json),
    ("docs/operations/s3.md", "wirephoto: the originals", Shown),
    ("docs/operations/s3.md", "garage bucket create", Run("tests/compose.py")),
    ("docs/guide/scopes.md", "wirephoto client add", Run("a_service_is_operated_as_documented")),
    ("docs/guide/scopes.md", "{\"client_id\"", Shown),
    ("docs/operations/production.md", "sudo apt install", Run(TEN_STEPS)),
    (
        "docs/operations/production.md",
        "sudo install -m 640 -g wirephoto fullchain.pem",
        Run(TEN_STEPS),
    ),
    (
        "docs/operations/production.md",
        "sudo install -m 640 -g wirephoto /dev/null",
        Run(TEN_STEPS),
    ),
    ("docs/operations/production.md", "[server]", Run(TEN_STEPS)),
    ("docs/operations/production.md", "sudo -u wirephoto wirephoto config check", Run(TEN_STEPS)),
    ("docs/operations/production.md", "[Service]", Shown),
    ("docs/operations/production.md", "sudo systemctl restart", Run(TEN_STEPS)),
    ("docs/operations/production.md", "{", Run(TEN_STEPS)),
    ("docs/operations/production.md", "sudo -u wirephoto wirephoto import", Run(TEN_STEPS)),
    ("docs/operations/production.md", "sudo -u wirephoto wirephoto ingest", Run(TEN_STEPS)),
    ("docs/operations/production.md", "sudo install -d", Run(TEN_STEPS)),
    ("docs/operations/production.md", "curl --fail", Run(TEN_STEPS)),
    ("docs/operations/production.md", "sudo systemctl reload", Run(TEN_STEPS)),
    ("docs/operations/reliability-tests.md", "FAULT_KILLS=500 cargo test", Tests),
    ("docs/operations/secrets.md", "the secrets in the database", Shown),
    (
        "docs/operations/secrets.md",
        "wirephoto secrets rotate",
        Run("a_service_is_operated_as_documented"),
    ),
];

const TYPESCRIPT: &str = "openapi_typescript_generates_types_that_a_strict_program_uses";
const PYTHON: &str =
    "openapi_python_client_generates_a_package_that_imports_wholly_and_reads_answers";
const PINNED: &str =
    "the tests of generated clients install the same packages with all versions pinned";
const CALLS: &str = "calls_of_the_guides_work_as_printed";
const READER: &str = "the_reader_of_the_guide_misses_nothing_after_a_kill_and_without_its_stream";
const COMMANDS: &str = "commands_of_the_pages_work_as_printed";
const RECIPES: &str = "recipes_of_the_documentation_are_those_of_the_examples";
const RENDITIONS: &str = "renditions_of_the_guide_are_served_as_printed";
const RIGHTS: &str = "rights_are_read_set_and_listed_as_the_guide_shows";
const CLUSTER: &str =
    "it needs a cluster; the_container_pages_name_existing_files compares names and files";
const AUDIT: &str = "the_audit_log_is_listed_as_its_documentation_shows";
const DUMPS: &str = "a_dump_taken_while_the_service_runs_restores_the_archive_of_that_moment";
const ORIGINALS: &str = "originals_alone_are_copied_compared_with_the_database_and_restored";
const TEN_STEPS: &str = "a_server_is_set_up_in_the_ten_documented_steps";
const MOVES: &str = "an_archive_moves_while_in_use_and_nothing_acknowledged_is_lost";

/// Words that no line of a block without commands begins with.
const PROGRAMS: [&str; 14] = [
    "wirephoto ",
    "curl ",
    "cargo ",
    "docker ",
    "kubectl ",
    "sudo ",
    "pg_",
    "psql ",
    "./",
    "systemctl ",
    "rsync ",
    "apt ",
    "packaging/",
    "benches/",
];

fn read(path: &str) -> String {
    fs::read_to_string(checkout(path)).unwrap_or_else(|cause| panic!("{path}: {cause}"))
}

/// The sources of the tests, each with its path.
fn sources(dir: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push((path.to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap()));
        }
    }
}

fn all_sources(dir: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    sources(&checkout(dir), &mut found);
    found
}

/// The source file that contains the test of that name.
fn source_of(test: &str) -> String {
    if Path::new(test).extension().is_some_and(|end| end == "sh" || end == "py") {
        return read(test);
    }
    let mark = format!("#[test]\nfn {test}(");
    let found = all_sources("tests/suite").into_iter().find(|(_, text)| text.contains(&mark));
    found.unwrap_or_else(|| panic!("there is no test {test}")).1
}

fn proof_of(block: &Block) -> Proof {
    let found = REGISTER
        .iter()
        .filter(|(page, start, _)| block.page == *page && block.first_line().starts_with(start));
    let longest = found.max_by_key(|(_, start, _)| start.len());
    let (page, first) = (&block.page, block.first_line());
    longest.unwrap_or_else(|| panic!("{page}: no test runs the block {first:?}: see REGISTER")).2
}

#[test]
fn every_block_of_the_documentation_is_run_by_a_test() {
    let blocks = blocks();
    assert!(blocks.len() > 40, "{}", blocks.len());
    for block in &blocks {
        let first = format!("{}: {:?}", block.page, block.first_line());
        match proof_of(block) {
            Run(test) => {
                // The test selects the block by the beginning of its line or by the page.
                let source = source_of(test);
                assert!(source.contains(&block.page), "{first}: {test} does not read the page");
            }
            Alike(test, words) => {
                let source = source_of(test);
                for word in words {
                    assert!(block.text.contains(word) && source.contains(word), "{first}: {word}");
                }
            }
            Settings => check_settings(block),
            Json => drop(serde_json::from_str::<Value>(&block.text).expect(&first)),
            Shown => {
                let is_command = |line: &str| PROGRAMS.iter().any(|it| line.starts_with(it));
                let wrong = block.text.lines().find(|line| is_command(line.trim()));
                // An error message in a page begins with the program's name, too.
                assert!(wrong.is_none(), "{first}: {wrong:?} is a command");
            }
            Tests => check_tests(block),
            Outside(why) => {
                assert!(!why.is_empty());
                check_files_and_options(block);
            }
        }
    }
    for (page, start, _) in REGISTER {
        let is_there =
            |block: &&Block| block.page == *page && block.first_line().starts_with(start);
        assert!(blocks.iter().any(|block| is_there(&block)), "{page} has no block {start:?}");
    }
}

#[track_caller]
fn check_settings(block: &Block) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("settings.toml");
    fs::write(&file, &block.text).unwrap();
    let said = output(wirephoto(dir.path()).args(["config", "--config"]).arg(&file));
    let stderr = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{}: {stderr}\n{}", block.page, block.text);
}

/// Checks that the targets of `./test`, `cargo test` and `cargo fuzz` exist, and that some test reads the variables
/// in front of them.
fn check_tests(block: &Block) {
    let suite = all_sources("tests/suite");
    for command in block.commands() {
        let command = command.split("  #").next().unwrap_or_default().trim();
        let words: Vec<&str> = command.split_whitespace().collect();
        if let ["./test", names @ ..] = words.as_slice() {
            for name in names.iter().filter(|name| !["quick", "all"].contains(*name)) {
                assert!(has_test(&suite, name), "{command}: no test is called {name}");
            }
            continue;
        }
        let cargo = words.iter().position(|word| *word == "cargo").expect(command);
        for (name, _) in words[..cargo].iter().filter_map(|word| word.split_once('=')) {
            // Variables of the compiler and its sanitizers are not ours.
            let is_foreign = name.starts_with("RUST") || name.starts_with("ASAN");
            let is_read = suite.iter().any(|(_, text)| text.contains(&format!("\"{name}\"")));
            assert!(is_foreign || is_read, "{command}: no test reads {name}");
        }
        if words.contains(&"fuzz") {
            let manifest = read("tests/fuzz/Cargo.toml");
            let target = format!("name = \"{}\"", words.last().unwrap());
            assert!(manifest.contains(&target), "{command}: no such target");
            continue;
        }
        let package = words.iter().position(|word| *word == "-p").map(|at| words[at + 1]);
        let library = package.and_then(|package| package.strip_prefix("wirephoto-"));
        let units = match library {
            Some(library) => all_sources(&format!("crates/{library}")),
            None => all_sources("src"),
        };
        let filters: Vec<&str> = words[cargo..]
            .iter()
            .copied()
            .skip_while(|word| !["--", "--lib", "suite"].contains(word))
            .skip(1)
            .filter(|word| !word.starts_with('-') && !word.contains("linux"))
            .collect();
        // A command for a library's package needs no filter.
        assert!(!filters.is_empty() || library.is_some_and(|_| !units.is_empty()), "{command}");
        for filter in filters {
            let all = if words.contains(&"suite") { &suite } else { &units };
            assert!(has_test(all, filter), "{command}: no test is called {filter}");
        }
    }
}

/// Returns whether a test, or a module with tests, matches a filter such as `a::b` or `part_of_a_name`.
fn has_test(sources: &[(String, String)], filter: &str) -> bool {
    let path = filter.trim_end_matches("::").replace("::", "/");
    sources.iter().any(|(file, text)| {
        let is_module =
            file.contains(&format!("/{path}.rs")) || file.contains(&format!("/{path}/"));
        let mut names = text.split("#[test]\nfn ").skip(1);
        is_module || names.any(|rest| rest.split('(').next().unwrap_or_default().contains(filter))
    })
}

#[test]
fn the_usage_of_the_test_script_names_a_test() {
    let script = read("test");
    let usage = script.lines().find(|line| line.starts_with("# Other arguments")).unwrap();
    let (_, name) = usage.rsplit_once("./test ").unwrap();
    assert!(has_test(&all_sources("tests/suite"), name), "no test is called {name}");
}

/// Checks that our files in commands exist, and that the binary has the options in them.
fn check_files_and_options(block: &Block) {
    for command in block.commands() {
        let command = command.split("  #").next().unwrap_or_default();
        let words: Vec<&str> = command.split_whitespace().collect();
        if let Some(script) = words.first().filter(|word| word.contains('/')) {
            assert!(checkout(script).exists(), "{command}: {script} is not there");
        }
        let Some(at) = words.iter().rposition(|word| *word == "wirephoto") else { continue };
        let arguments = &words[at + 1..];
        let names: BTreeSet<&&str> =
            arguments.iter().filter(|it| it.starts_with("--") && it.len() > 2).collect();
        let dir = tempfile::tempdir().unwrap();
        // Of the command and of its subcommand, such as `secrets rotate`.
        let own: Vec<&&str> = arguments.iter().take(2).collect();
        let help: String = (1..=own.len())
            .map(|count| {
                let words = own[..count].iter().map(|word| **word);
                let said = output(wirephoto(dir.path()).args(words.chain(["--help"])));
                String::from_utf8_lossy(&said.stdout).into_owned()
            })
            .collect();
        assert!(names.iter().all(|option| help.contains(**option)), "{command}: {help}");
    }
}
