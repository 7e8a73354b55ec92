//! A violation of each rule, planted in a scratch tree that satisfies all others.

use std::fs;
use std::path::Path;

use crate::rules::RULES;
use crate::tree::{Tree, without_tests};

const MAP: &str = "\
# Map

## Libraries

| Library | What |
| --- | --- |
| `shapes` | shapes |

## Layers

| Layer | What |
| --- | --- |
| `low` | below |
| `high` | above |

## Owners of crates

| Crate | Named in |
| --- | --- |
| `axum` | `high` |
";

const CONTRACT: &str = "\
# Shapes

### shape-1

**Round.** Shapes are round.
";

const COVERAGE: &str = "\
- `shape-1` Round
  - src/low/two.rs: `checked`
";

/// Writes a small tree that satisfies every rule.
fn plant(root: &Path) {
    let files = [
        ("docs/internals/architecture.md", MAP),
        ("src/lib.rs", "//! The library.\npub mod high;\npub mod low;\n"),
        ("src/low/mod.rs", "//! Below.\npub mod one;\npub mod two;\n"),
        ("src/low/one.rs", "//! One.\nuse crate::low::two;\n"),
        ("src/low/two.rs", "//! Two.\nfn checked() {}\n"),
        ("src/high/mod.rs", "//! Above.\nuse axum::Router;\nuse crate::low::one;\n"),
        ("crates/shapes/src/lib.rs", "//! Shapes.\nmod round;\n"),
        ("crates/shapes/src/round.rs", "//! Round ones.\n"),
        ("docs/contract/README.md", "| [shape.md](shape.md) | Shapes |\n"),
        ("docs/contract/shape.md", CONTRACT),
        ("tests/COVERAGE.md", COVERAGE),
        ("README.md", "# Shapes\n"),
        ("tests/suite/round.rs", "//! Round.\n#[test]\nfn it_rolls() {}\n"),
        ("tests/flaky.txt", "# Flaky tests.\nround::it_rolls: it waited on a slope\n"),
    ];
    for (path, text) in files {
        write(root, path, text);
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("below the root")).expect("a folder is made");
    fs::write(path, text).expect("a file is written");
}

/// The rules that the tree breaks, with their messages.
fn broken(root: &Path) -> Vec<(&'static str, String)> {
    let tree = Tree::read(root);
    let all = RULES
        .iter()
        .flat_map(|(rule, check)| check(&tree).into_iter().map(move |problem| (*rule, problem)));
    all.collect()
}

/// Expects that a file breaks only `rule`, which names `place`.
fn check(rule: &str, path: &str, text: &str, place: &str) {
    let scratch = tempfile::tempdir().expect("a folder is made");
    plant(scratch.path());
    write(scratch.path(), path, text);
    let broken = broken(scratch.path());
    assert!(!broken.is_empty(), "{rule}: not seen in {path}");
    for (found, problem) in broken {
        assert_eq!(found, rule, "{problem}");
        assert!(problem.contains(place), "{rule}: `{problem}` does not name {place}");
    }
}

#[test]
fn a_tree_that_keeps_the_rules_has_no_problem() {
    let scratch = tempfile::tempdir().unwrap();
    plant(scratch.path());
    assert_eq!(broken(scratch.path()), []);
}

#[test]
fn an_import_of_a_higher_layer_is_seen() {
    let rule = "a layer imports only lower layers";
    let place = "src/low/two.rs:3";
    for import in
        ["use crate::high;", "use super::super::high::Thing;", "fn f() { crate::high::g(); }"]
    {
        check(rule, "src/low/two.rs", &format!("//! Two.\nfn checked() {{}}\n{import}\n"), place);
    }
}

#[test]
fn an_import_behind_a_test_module_is_seen() {
    let text = "//! Two.\n#[cfg(test)]\nmod tests;\nuse crate::high;\nfn checked() {}\n";
    let scratch = tempfile::tempdir().unwrap();
    plant(scratch.path());
    write(scratch.path(), "src/low/two.rs", text);
    write(scratch.path(), "src/low/two/tests.rs", "//! Tests.\nuse crate::high;\n");
    let found = broken(scratch.path());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.starts_with("src/low/two.rs:4"), "{found:?}");
}

#[test]
fn a_circle_of_units_is_seen() {
    let rule = "the files and folders of a folder import each other in one direction";
    let text = "//! Two.\nuse super::one;\nfn checked() {}\n";
    check(rule, "src/low/two.rs", text, "low/");
}

#[test]
fn an_import_in_a_group_is_seen() {
    let circle = "the files and folders of a folder import each other in one direction";
    for import in [
        "use super::{one::Thing, Other};",
        "use super::{Other, one as first};",
        "use super::super::{low::{Other, one::{A, B}}, Third};",
        "use super::{\n    Other,\n    one::{A, B}, // Both.\n};",
    ] {
        let text = format!("//! Two.\n{import}\nfn checked() {{}}\n");
        check(circle, "src/low/two.rs", &text, "low/");
    }
    let text =
        "//! Two.\nuse super::super::{\n    low::{A, B},\n    high::C,\n};\nfn checked() {}\n";
    check("a layer imports only lower layers", "src/low/two.rs", text, "src/low/two.rs:4");
}

/// Writes a small tree whose layer `http` has these files besides its own.
fn plant_http(root: &Path, files: &[(&str, &str)]) {
    plant(root);
    let map = MAP.replace("| `high` | above |", "| `high` | above |\n| `http` | routes |");
    write(root, "docs/internals/architecture.md", &map);
    let lib = "//! The library.\npub mod high;\npub mod http;\npub mod low;\n";
    write(root, "src/lib.rs", lib);
    for (path, text) in files {
        write(root, path, text);
    }
}

#[test]
fn an_import_of_the_protocol_is_seen() {
    let scratch = tempfile::tempdir().unwrap();
    let files = [
        ("src/http/mod.rs", "//! Routes.\nmod protocol;\nstruct AppState;\n"),
        ("src/http/protocol/mod.rs", "//! HTTP.\nmod range;\nuse crate::http::AppState;\n"),
        ("src/http/protocol/range.rs", "//! Ranges.\npub(in crate::http) fn range() {}\n"),
    ];
    plant_http(scratch.path(), &files);
    let found = broken(scratch.path());
    let expected = "src/http/protocol/mod.rs:3: `http/protocol` may not import `http/AppState`";
    assert_eq!(found, [("the protocol and the listener know no route", expected.to_owned())]);
}

#[test]
fn a_circle_inside_a_folder_is_seen() {
    let scratch = tempfile::tempdir().unwrap();
    plant(scratch.path());
    for (path, text) in [
        ("src/high/mod.rs", "//! Above.\nmod api;\n"),
        ("src/high/api/mod.rs", "//! APIs.\nmod one;\nmod two;\nstruct Caller;\n"),
        ("src/high/api/one.rs", "//! One.\nuse super::Caller;\nuse super::two::Thing;\n"),
        ("src/high/api/two.rs", "//! Two.\nuse crate::high::api::one;\n"),
    ] {
        write(scratch.path(), path, text);
    }
    let problems: Vec<String> =
        broken(scratch.path()).into_iter().map(|(_, problem)| problem).collect();
    assert_eq!(problems, ["high/api/one: in a circle", "high/api/two: in a circle"]);
}

#[test]
fn a_circle_in_a_library_is_seen() {
    let scratch = tempfile::tempdir().unwrap();
    plant(scratch.path());
    for (path, text) in [
        (
            "crates/shapes/src/lib.rs",
            "//! Shapes.\nmod flat;\nmod round;\nuse crate::flat::Disc;\n",
        ),
        (
            "crates/shapes/src/flat.rs",
            "//! Flat ones.\nuse crate::Shape;\nuse super::round::Ball;\n",
        ),
        ("crates/shapes/src/round.rs", "//! Round ones.\nuse crate::flat::Disc;\n"),
    ] {
        write(scratch.path(), path, text);
    }
    let problems: Vec<String> =
        broken(scratch.path()).into_iter().map(|(_, problem)| problem).collect();
    assert_eq!(problems, ["crates/shapes/flat: in a circle", "crates/shapes/round: in a circle"]);
}

#[test]
fn a_folder_that_the_map_does_not_name_is_seen() {
    let rule = "the map names every layer and every library";
    let (lib, root) = ("crates/lines/src/lib.rs", "//! Lines.\n");
    check(rule, lib, root, "crates/lines");
    let without = MAP.replace("| `low` | below |\n", "");
    check(rule, "docs/internals/architecture.md", &without, "src/low");
    let more = MAP.replace("| `low` |", "| `lower` | |\n| `low` |");
    check(rule, "docs/internals/architecture.md", &more, "src/lower");
}

#[test]
fn a_crate_outside_its_owner_is_seen() {
    let rule = "a crate is named only by its owners";
    let text = "//! Two.\nuse axum::Router;\nfn checked() {}\n";
    check(rule, "src/low/two.rs", text, "src/low/two.rs");
}

#[test]
fn a_file_that_is_no_source_is_seen() {
    let rule = "the tree holds sources alone";
    check(rule, "src/low/two.rs.orig", "left behind", "src/low/two.rs.orig");
    check(rule, "crates/shapes/notes", "left behind", "crates/shapes/notes");
}

#[test]
fn a_source_that_is_not_clean_is_seen() {
    let rule = "sources are documented, short and finished";
    let place = "src/low/two.rs";
    let texts = [
        "fn checked() {}\n".to_owned(),
        format!("//! Two.\nfn checked() {{}}\n{}", "\n".repeat(700)),
        "//! Two.\nfn checked() {} // TODO\n".to_owned(),
        "//! Two.\n#[ignore]\nfn checked() {}\n".to_owned(),
        "//! Two.\nuse crate::{low};\nfn checked() {}\n".to_owned(),
    ];
    for text in texts {
        check(rule, place, &text, place);
    }
    check(rule, "crates/shapes/src/round.rs", "fn long() {}\n", "crates/shapes/src/round.rs");
}

#[test]
fn a_file_that_no_module_names_is_seen() {
    let rule = "no file is left out of the build";
    check(rule, "src/low/three.rs", "//! Three.\n", "src/low/three.rs");
    check(rule, "crates/shapes/src/flat.rs", "//! Flat.\n", "crates/shapes/src/flat.rs");
}

#[test]
fn unsafe_code_elsewhere_is_seen() {
    let rule = "unsafe code stands in the SIMD module and the calls of encoders";
    let text = "//! Two.\n#![expect(unsafe_code, reason = \"fast\")]\nfn checked() {}\n";
    check(rule, "src/low/two.rs", text, "src/low/two.rs");
}

#[test]
fn a_parameter_that_binds_a_tuple_is_seen() {
    let rule = "no parameter binds a tuple";
    let text = "//! Two.\nfn checked() {}\nfn place((x, y): (u32, u32)) {}\n";
    check(rule, "src/low/two.rs", text, "src/low/two.rs:3");
}

#[test]
fn constructions_that_other_projects_avoid_are_seen() {
    let rule = "syntax that every engineer writes";
    for line in [
        "let area = |side: f64| side * side;",
        "let area = async move |side: f64| side * side;",
        "let (width, mut height) = (1, 2);",
        "true => draw(),",
        "fn of(side: f64) -> Self {",
        "let sum = sides.iter().map(|one| one + 1);",
    ] {
        let text = format!("//! Two.\nfn checked() {{}}\nfn draw() {{\n    {line}\n}}\n");
        check(rule, "src/low/two.rs", &text, "src/low/two.rs:4");
    }
}

#[test]
fn acting_in_the_operators_name_is_seen() {
    let rule = "only the bench acts in the operator's name";
    let text = "//! Two.\nfn checked() { Principal::operator(); }\n";
    check(rule, "src/low/two.rs", text, "src/low/two.rs");
}

#[test]
fn a_clause_without_a_test_is_seen() {
    let rule = "every clause of the contract names its tests";
    let table = "tests/COVERAGE.md";
    check(rule, table, &COVERAGE.replace("checked", "gone"), "`gone`");
    check(rule, table, &COVERAGE.replace("two.rs", "one.rs"), "src/low/one.rs");
    check(rule, table, "- `shape-1` Round\n", "shape-1");
    check(rule, table, "", "shape-1");
    check(rule, table, &COVERAGE.replace("Round", "Square"), "\"Round\"");
    check(
        rule,
        table,
        &format!("{COVERAGE}- `shape-2` Flat\n  - no test: it is flat\n"),
        "shape-2",
    );
}

#[test]
fn a_clause_that_cannot_be_cited_is_seen() {
    let rule = "every clause of the contract names its tests";
    let page = "docs/contract/shape.md";
    check(rule, page, &format!("{CONTRACT}\n### shape-1\n\n**Round.** Again.\n"), "shape-1");
    check(rule, page, &format!("{CONTRACT}\n### shape-2\n\n**Flat.** Not round.\n"), "shape-2");
    check(rule, page, &CONTRACT.replace("**Round.** ", ""), "shape-1");
    check(rule, page, &CONTRACT.replace("shape-1", "form-1"), "-1");
    check(rule, "docs/contract/form.md", "# Forms\n", "form.md");
}

#[test]
fn a_citation_of_no_clause_is_seen() {
    let rule = "citations name clauses of the contract";
    let two = |doc: &str| format!("//! Two ({doc}).\nfn checked() {{}}\n");
    let place = "src/low/two.rs";
    check(rule, place, &two("contract shape-2"), "shape-2");
    check(rule, place, &two("contract shape-1,\n//! shape-3"), "shape-3");
    check(rule, place, &two("Spec §4"), place);
    check(rule, place, &two("decision 3"), place);
    check(rule, place, &two("`operator.md`"), place);
    check(rule, place, &two("`docs/contract/form.md`"), "form.md");
    let linked = format!("{CONTRACT}As [shape-4](#shape-4) says.\n");
    check(rule, "docs/contract/shape.md", &linked, "shape-4");
}

#[test]
fn a_long_readme_is_seen() {
    check("the README is short", "README.md", &"line\n".repeat(151), "README.md");
}

#[test]
fn a_page_that_names_a_missing_source_is_seen() {
    let rule = "pages of docs/internals name existing sources";
    let page = "docs/internals/walkthroughs.md";
    let text = "# Walks\n\n`low/two.rs` and `two.rs` exist, `flight.rs` does not.\n";
    check(rule, page, text, "`flight.rs`");
    check(rule, page, "# Walks\n\nSee `low/flight.rs`.\n", "docs/internals/walkthroughs.md:3");
}

#[test]
fn what_tests_alone_compile_is_left_out_and_what_follows_is_not() {
    let text = "a\n#[cfg(test)]\nmod tests;\nb\n#[cfg(test)]\nmod more {\n    c;\n}\nd\n\
                impl X {\n    #[cfg(test)]\n    fn e() {\n        f;\n    }\n    g\n}\n";
    let left: Vec<_> = without_tests(text).lines().map(str::to_owned).collect();
    assert_eq!(left.len(), text.lines().count());
    let left: Vec<_> =
        left.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    assert_eq!(left, ["a", "b", "d", "impl X {", "g", "}"]);
}

#[test]
fn a_name_of_three_public_types_is_seen() {
    let rule = "at most two public types share a name";
    let one = "    /// A place in the first module.\n    pub struct Place;\n";
    let text = format!(
        "//! Two.\nfn checked() {{}}\nmod a {{\n{one}}}\nmod b {{\n{one}}}\nmod c {{\n{one}}}\n"
    );
    check(rule, "src/low/two.rs", &text, "Place");
}

#[test]
fn an_item_without_docs_and_docs_that_say_nothing_are_seen() {
    let rule = "public items have docs, and a doc comment says something";
    let place = "src/low/two.rs:3";
    for item in ["pub struct Shape;", "pub fn draw() {}"] {
        let text = format!("//! Two.\nfn checked() {{}}\n{item}\n");
        check(rule, "src/low/two.rs", &text, place);
        let text = format!("//! Two.\nfn checked() {{}}\n/// Its name.\n#[inline]\n{item}\n");
        check(rule, "src/low/two.rs", &text, "src/low/two.rs:5");
    }
}

#[test]
fn a_dropped_word_in_a_comment_or_a_page_is_seen() {
    let rule = "comments and pages use the field's words";
    let text = "//! Two.\nfn checked() {} // Whoever asks is told.\n";
    check(rule, "src/low/two.rs", text, "src/low/two.rs:2");
    let text = "# Shapes\n\n`anew` is a name, and this is made anew.\n";
    check(rule, "docs/shapes.md", text, "docs/shapes.md:3");
    let text = "//! Two.\nfn checked() {}\n/// Renewed shapes; \"nobody\" is quoted.\nfn f() {}\n";
    check(rule, "src/low/two.rs", text, "`nobody`");
}

#[test]
fn a_flaky_test_that_is_listed_twice_or_without_a_cause_is_seen() {
    let rule = "flaky tests are listed once, with the cause";
    let lines = [
        "round::it_rolls",
        "round::it_rolls: ",
        "round::it_stands: it fell",
        "square::it_rolls: it stood",
        "round::it_rolls: a slope\nround::it_rolls: a steep one",
    ];
    for line in lines {
        check(rule, "tests/flaky.txt", &format!("{line}\n"), "tests/flaky.txt:");
    }
}

#[test]
fn a_test_target_that_the_test_script_leaves_out_is_seen() {
    let rule = "every test target runs";
    check(rule, "crates/shapes/tests/sides.rs", "//! Sides.\n", "crates/shapes/tests/sides.rs");
}
