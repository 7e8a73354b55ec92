//! Rules about how the suite runs: the list of its flaky tests, and its place among the test targets. `script` proves
//! that `tests/suite.sh` repeats failed tests.

mod script;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::tree::{Tree, names_in};

const LIST: &str = "tests/flaky.txt";

/// Checks that each line of `tests/flaky.txt` has a cause and names a test that exists, and none twice.
pub fn flaky_list(tree: &Tree) -> Vec<String> {
    let Ok(text) = fs::read_to_string(tree.root.join(LIST)) else {
        return vec![format!("{LIST} is missing")];
    };
    let mut problems = Vec::new();
    let mut listed = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            continue;
        }
        let place = format!("{LIST}:{}", index + 1);
        match line.split_once(": ") {
            None => problems.push(format!("{place}: not a name, a colon and a cause")),
            Some((name, _)) if !listed.insert(name) => {
                problems
                    .push(format!("{place}: {name} is listed already, so it is to be rewritten"));
            }
            Some((name, _)) if !is_test(&tree.root, name) => {
                problems.push(format!("{place}: the suite has no test {name}"));
            }
            Some((_, cause)) if cause.trim().is_empty() => {
                problems.push(format!("{place}: no cause"));
            }
            Some(_) => {}
        }
    }
    problems
}

/// Returns whether the suite has the test `name`, such as `faults::kills::a_name`.
fn is_test(root: &Path, name: &str) -> bool {
    let Some((module, name)) = name.rsplit_once("::") else { return false };
    let module = root.join("tests/suite").join(module.replace("::", "/"));
    let files = [module.with_extension("rs"), module.join("mod.rs")];
    let has_it = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.contains(&format!("#[test]\nfn {name}("))
    };
    files.iter().any(has_it)
}

/// Checks that no test target of a library begins with the first letter of the suite: `./test` runs the others by the
/// pattern `[!s]*`, and a target outside it would never run.
pub fn test_targets(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for library in &tree.libraries {
        let dir = tree.root.join("crates").join(library).join("tests");
        let names = if dir.is_dir() { names_in(&dir) } else { Vec::new() };
        for name in names.iter().filter(|name| name.starts_with('s')) {
            problems
                .push(format!("crates/{library}/tests/{name}: ./test leaves out names with s"));
        }
    }
    problems
}
