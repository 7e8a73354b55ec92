//! `tests/suite.sh` over a small crate whose suite has tests that pass, fail once, fail always, and abort.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const MANIFEST: &str = "\
[package]
name = \"small\"
version = \"0.1.0\"
edition = \"2024\"

[workspace]
";

const LOCK: &str = "\
version = 4

[[package]]
name = \"small\"
version = \"0.1.0\"
";

/// Each test that fails once leaves a file, which the next run finds.
const SUITE: &str = r#"
fn fails_once(name: &str) {
    let mark = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if !mark.exists() {
        std::fs::write(mark, "").unwrap();
        panic!("the first failure of {name}");
    }
}

mod good {
    #[test]
    fn passes() {}
}

mod one {
    #[test]
    fn is_flaky() {
        super::fails_once("one");
    }
}

mod listed {
    #[test]
    fn is_flaky() {
        super::fails_once("listed");
    }
}

mod three {
    #[test]
    fn a() {
        super::fails_once("three_a");
    }
    #[test]
    fn b() {
        super::fails_once("three_b");
    }
    #[test]
    fn c() {
        super::fails_once("three_c");
    }
}

mod broken {
    #[test]
    fn fails_always() {
        panic!("test result: ok. 1 passed; and more that a test may print");
    }
}

mod crash {
    #[test]
    fn aborts() {
        std::process::abort();
    }
}

macro_rules! failing {
    ($($name:ident)*) => { $(#[test] fn $name() { super::fails_once(stringify!($name)); })* };
}
mod many {
    failing!(m1 m2 m3 m4 m5 m6 m7 m8 m9 m10 m11);
}
"#;

/// The outcome of a run of the script: whether it succeeded, its output, and its errors.
struct Run {
    ok: bool,
    output: String,
    errors: String,
}

impl Run {
    #[track_caller]
    fn has(&self, text: &str) {
        assert!(self.output.contains(text), "no {text:?} in:\n{}\n{}", self.output, self.errors);
    }

    #[track_caller]
    fn lacks(&self, text: &str) {
        assert!(!self.output.contains(text), "{text:?} in:\n{}", self.output);
    }

    /// Checks the last line that looks like a result of the test runner.
    #[track_caller]
    fn ends_with(&self, result: &str) {
        let last = self.output.lines().rfind(|line| line.starts_with("test result"));
        assert!(
            last.is_some_and(|last| last.starts_with(&format!("test result: {result}"))),
            "{last:?} in:\n{}\n{}",
            self.output,
            self.errors
        );
        assert_eq!(self.ok, result.starts_with("ok"), "{}", self.errors);
    }
}

/// The crate, with the script and a list that contains one of its tests.
fn small_crate() -> TempDir {
    let dir = tempfile::tempdir().expect("a folder is made");
    for folder in ["tests", "src"] {
        fs::create_dir(dir.path().join(folder)).expect("a folder is made");
    }
    for (path, text) in [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("src/lib.rs", ""),
        ("tests/suite.rs", SUITE),
        ("tests/flaky.txt", "# List.\nlisted::is_flaky: a cause\n"),
    ] {
        fs::write(dir.path().join(path), text).expect("a file is written");
    }
    // A copy, so that it runs in the folder of the crate.
    fs::copy("tests/suite.sh", dir.path().join("tests/suite.sh")).expect("a script is copied");
    dir
}

fn run(dir: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(dir.join("tests/suite.sh"));
    command.args(arguments).env("CARGO_TARGET_DIR", dir.join("target"));
    command.env("SUITE_FLAKY", dir.join("flaky"));
    // Those of the run that this test is part of.
    for name in ["RUSTFLAGS", "RUST_TEST_THREADS", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    let output = command.output().expect("the script starts");
    Run {
        ok: output.status.success(),
        output: String::from_utf8(output.stdout).expect("UTF-8"),
        errors: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

#[test]
fn a_test_that_fails_runs_once_more_alone_and_is_flaky_if_it_passes() {
    let dir = small_crate();
    let dir = dir.path();
    let all_pass = run(dir, &["good::"]);
    all_pass.ends_with("ok. 1 passed; 0 failed; 0 ignored");
    all_pass.lacks("== ");

    let one = run(dir, &["one::", "good::"]);
    one.ends_with("ok. 2 passed; 0 failed; 1 flaky; 0 ignored");
    one.has("\n== flaky\none::is_flaky failed and passed alone; not in tests/flaky.txt");
    // The failure stands in the output of the first run, and again where the flaky test is named.
    assert_eq!(one.output.matches("the first failure of one").count(), 2, "{}", one.output);

    let listed = run(dir, &["listed::"]);
    listed.ends_with("ok. 1 passed; 0 failed; 1 flaky");
    listed.has("listed::is_flaky failed and passed alone; already in tests/flaky.txt: rewrite it");

    // With those of the runs before it.
    let third = run(dir, &["three::a"]);
    third.ends_with("FAILED. 1 passed; 0 failed; 1 flaky");
    assert!(third.errors.contains("3 flaky tests; more than 2 fail the run"), "{}", third.errors);
}

#[test]
fn a_test_that_fails_twice_and_a_run_with_more_than_two_flaky_tests_fail() {
    let dir = small_crate();
    let dir = dir.path();
    let broken = run(dir, &["broken::", "one::", "good::"]);
    broken.ends_with("FAILED. 2 passed; 1 failed; 1 flaky");
    broken.has("\ntest broken::fails_always ... FAILED\n");
    broken.has("\n== flaky\none::is_flaky ");
    broken.lacks("broken::fails_always failed and passed");

    fs::remove_file(dir.join("flaky")).unwrap();
    let three = run(dir, &["three::"]);
    three.ends_with("FAILED. 3 passed; 0 failed; 3 flaky");

    // So many that the second run of each would tell nothing more.
    fs::remove_file(dir.join("flaky")).unwrap();
    let many = run(dir, &["many::"]);
    many.ends_with("FAILED. 0 passed; 11 failed; 0 flaky");
    many.lacks("once more");
}

#[test]
fn a_crash_of_the_suite_fails_the_run() {
    let dir = small_crate();
    let crash = run(dir.path(), &["crash::"]);
    assert!(!crash.ok);
    crash.lacks("test result");
    assert!(crash.errors.contains("ended with status 101 before its result"), "{}", crash.errors);
}
