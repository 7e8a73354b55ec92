//! The rules. Each returns one line per violation, with its location.

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::{citations, coverage};
use crate::language::{docs, dropped_words, namesakes};
use crate::suite::{flaky_list, test_targets};
use crate::syntax::constructions;
use crate::tree::{Source, Tree, files, names, names_in, relative};

/// Maximum lines of a source file.
const FILE_LINES_MAX: usize = 700;
/// Maximum lines of README.md, which is read once; reference material is in `docs`.
const README_LINES_MAX: usize = 150;

/// A rule: its name, and the function that finds its violations.
pub type Rule = (&'static str, fn(&Tree) -> Vec<String>);

/// All rules.
pub const RULES: [Rule; 21] = [
    ("a layer imports only lower layers", layers),
    ("the files and folders of a folder import each other in one direction", circles),
    ("the protocol and the listener know no route", foundations),
    ("the map names every layer and every library", folders),
    ("a crate is named only by its owners", owners),
    ("the tree holds sources alone", leftovers),
    ("sources are documented, short and finished", clean),
    ("no file is left out of the build", left_out),
    ("unsafe code stands in the SIMD module and the calls of encoders", unsafe_code),
    ("no parameter binds a tuple", tuples),
    ("syntax that every engineer writes", constructions),
    ("only the bench acts in the operator's name", operator),
    ("every clause of the contract names its tests", coverage),
    ("citations name clauses of the contract", citations),
    ("the README is short", readme),
    ("pages of docs/internals name existing sources", source_names),
    ("at most two public types share a name", namesakes),
    ("public items have docs, and a doc comment says something", docs),
    ("comments and pages use the field's words", dropped_words),
    ("flaky tests are listed once, with the cause", flaky_list),
    ("every test target runs", test_targets),
];

fn below(module: &str, unit: &str) -> bool {
    module == unit || module.strip_prefix(unit).is_some_and(|rest| rest.starts_with('/'))
}

fn server(tree: &Tree) -> impl Iterator<Item = &Source> {
    tree.sources.iter().filter(|source| source.library.is_none())
}

/// The position of a module's layer in the map, and its name.
fn layer<'a>(tree: &'a Tree, module: &str) -> Option<(usize, &'a str)> {
    let mut layers = tree.layers.iter().enumerate();
    layers.find(|(_, layer)| below(module, layer)).map(|(place, layer)| (place, layer.as_str()))
}

fn layers(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for source in server(tree) {
        let Some((here, name)) = layer(tree, &source.module) else { continue };
        for (line, target) in source.imports() {
            if let Some((_, other)) = layer(tree, &target).filter(|(there, _)| *there > here) {
                problems
                    .push(format!("{}:{line}: `{name}` may not import `{other}`", source.path));
            }
        }
    }
    problems
}

/// The path of a module in the package of `source`, unique among all packages: `access/auth` in the server,
/// `crates/query/field` in a library.
fn place(source: &Source, module: &str) -> String {
    match &source.library {
        Some(library) => format!("crates/{library}/{module}"),
        None => module.to_owned(),
    }
}

/// The file of a layer or library to which `place`, the place of a module or of an imported path, belongs.
fn file(place: String, sources: &BTreeSet<String>) -> Option<String> {
    let mut file = place;
    // The last parts of an imported path name items of a file.
    while !sources.contains(&file) {
        file.truncate(file.rfind('/')?);
    }
    // The file of a layer itself assembles its parts. No imported path leads to `lib.rs`, which assembles a library.
    file.contains('/').then_some(file)
}

/// The file or folder of `module` in the folder that it shares with `other`: `access/auth` of `access/auth/login` and
/// `access/users`.
fn unit_beside(module: &str, other: &str) -> String {
    let shared = module.split('/').zip(other.split('/')).take_while(|(own, its)| own == its);
    let parts: Vec<&str> = module.split('/').take(shared.count() + 1).collect();
    parts.join("/")
}

fn circles(tree: &Tree) -> Vec<String> {
    let sources = tree.sources.iter().map(|source| place(source, &source.module));
    let sources: BTreeSet<String> = sources.collect();
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in &tree.sources {
        let Some(here) = file(place(source, &source.module), &sources) else { continue };
        for (_, target) in source.imports() {
            let there = file(place(source, &target), &sources).filter(|there| *there != here);
            let same = there.filter(|there| there.split('/').next() == here.split('/').next());
            if let Some(there) = same {
                let arrow = arrows.entry(unit_beside(&here, &there)).or_default();
                arrow.insert(unit_beside(&there, &here));
            }
        }
    }
    let reaches_itself = |start: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(unit) = open.pop() {
            for next in arrows.get(unit).into_iter().flatten() {
                if next == start {
                    return true;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    };
    arrows
        .keys()
        .filter(|unit| reaches_itself(unit))
        .map(|unit| format!("{unit}: in a circle"))
        .collect()
}

/// Finds imports of other parts of `http` in the protocol and the listener, which serve any program.
fn foundations(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for source in server(tree) {
        let units = ["http/protocol", "http/listener"];
        let Some(own) = units.into_iter().find(|unit| below(&source.module, unit)) else {
            continue;
        };
        for (line, target) in source.imports() {
            // `pub(in crate::http)` names the layer alone, and imports nothing.
            if target != "http" && below(&target, "http") && !below(&target, own) {
                problems
                    .push(format!("{}:{line}: `{own}` may not import `{target}`", source.path));
            }
        }
    }
    problems
}

fn folders(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let compare = |dir: &str, said: &[String], problems: &mut Vec<String>| {
        let held = names_in(&tree.root.join(dir));
        let held = held.iter().filter(|name| tree.root.join(dir).join(name).is_dir());
        let held: BTreeSet<_> = held.collect();
        let said: BTreeSet<_> = said.iter().collect();
        for name in held.symmetric_difference(&said) {
            let place =
                if said.contains(name) { "on the map but not there" } else { "not on the map" };
            problems.push(format!("{dir}/{name} is {place}"));
        }
    };
    compare("src", &tree.layers, &mut problems);
    compare("crates", &tree.libraries, &mut problems);
    problems
}

fn owners(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for source in server(tree) {
        for (name, owners) in &tree.owners {
            let path = format!("{name}::");
            let named = source.code.match_indices(&path).any(|(at, _)| {
                let before = source.code[..at].chars().next_back().unwrap_or(' ');
                !(before.is_alphanumeric() || before == '_' || before == ':')
            });
            if named && !owners.iter().any(|owner| below(&source.module, owner)) {
                problems.push(format!("{}: `{name}` belongs to {owners:?}", source.path));
            }
        }
    }
    problems
}

/// Leftovers of an editor or a merge are not sources.
fn leftovers(tree: &Tree) -> Vec<String> {
    let kinds = ["rs", "sql", "md", "toml", "xml", "json", "icc", "txt", "proptest-regressions"];
    let found = ["src", "crates"].into_iter().flat_map(|dir| files(&tree.root.join(dir)));
    let is_other = |path: &std::path::PathBuf| {
        let kind = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        !kinds.contains(&kind)
    };
    let other = found.filter(is_other);
    other.map(|path| format!("{}: no source", relative(&tree.root, &path))).collect()
}

fn clean(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for source in &tree.sources {
        let path = &source.path;
        if !source.text.starts_with("//!") && !source.text.starts_with("#![doc") {
            problems.push(format!("{path}: starts without module docs"));
        }
        if source.text.lines().count() > FILE_LINES_MAX {
            problems.push(format!("{path}: longer than {FILE_LINES_MAX} lines"));
        }
        // An import of one layer a line shows which layers a file of the server uses.
        let grouped = source.library.is_none().then_some("crate::{");
        for banned in ["TODO", "FIXME", "XXX"].into_iter().chain(grouped) {
            if source.code.contains(banned) {
                problems.push(format!("{path}: `{banned}` is banned"));
            }
        }
        if source.text.contains("#[ignore") {
            problems.push(format!("{path}: `#[ignore]` is banned"));
        }
    }
    problems
}

fn left_out(tree: &Tree) -> Vec<String> {
    let declared: BTreeSet<(Option<&str>, String)> = tree
        .sources
        .iter()
        .flat_map(|source| {
            let is_root = matches!(source.module.as_str(), "lib" | "main");
            let dir = if is_root { String::new() } else { format!("{}/", source.module) };
            let mods = source.text.lines().filter_map(|line| {
                let line = line.trim();
                let line = match line.strip_prefix("pub").map(str::trim_start) {
                    Some(rest) => rest.split_once(") ").map_or(rest, |(_, rest)| rest),
                    None => line,
                };
                line.strip_prefix("mod ")?.strip_suffix(';')
            });
            let library = source.library.as_deref();
            mods.map(move |name| (library, format!("{dir}{name}"))).collect::<Vec<_>>()
        })
        .collect();
    tree.sources
        .iter()
        .filter(|source| !matches!(source.module.as_str(), "lib" | "main"))
        .filter(|source| !declared.contains(&(source.library.as_deref(), source.module.clone())))
        .map(|source| format!("{}: no `mod` line names it", source.path))
        .collect()
}

fn unsafe_code(tree: &Tree) -> Vec<String> {
    let allowed = [
        "crates/jpeg/src/simd.rs",
        "crates/av1-encoder/src/libaom.rs",
        "crates/webp-encoder/src/libwebp.rs",
    ];
    let lifts = tree.sources.iter().filter(|source| source.text.contains("unsafe_code"));
    lifts
        .filter(|source| !allowed.contains(&source.path.as_str()))
        .map(|source| format!("{}: lifts the ban on unsafe code", source.path))
        .collect()
}

fn operator(tree: &Tree) -> Vec<String> {
    let allowed = ["access/auth/principal", "app/bench/measure"];
    let named = server(tree).filter(|source| source.code.contains("operator()"));
    named
        .filter(|source| !allowed.contains(&source.module.as_str()))
        .map(|source| format!("{}: acts in the operator's name", source.path))
        .collect()
}

fn readme(tree: &Tree) -> Vec<String> {
    let text = std::fs::read_to_string(tree.root.join("README.md")).expect("the README exists");
    let count = text.lines().count();
    let problem = format!("README.md: {count} lines, at most {README_LINES_MAX}");
    (count > README_LINES_MAX).then_some(problem).into_iter().collect()
}

/// Sources that the pages of `docs/internals` name in backticks exist: as `plan.rs`, or with more of their path.
fn source_names(tree: &Tree) -> Vec<String> {
    let dirs = ["src", "crates", "tests/suite", "tests/tidy", "tests/fuzz/fuzz_targets"];
    let dirs = dirs.into_iter().map(|dir| tree.root.join(dir)).filter(|dir| dir.is_dir());
    let sources = dirs.flat_map(|dir| files(&dir)).map(|path| relative(&tree.root, &path));
    let sources: Vec<String> = sources.collect();
    let exists = |name: &str| {
        let end = format!("/{name}");
        sources.iter().any(|source| source == name || source.ends_with(&end))
    };
    let mut problems = Vec::new();
    for path in files(&tree.root.join("docs/internals")) {
        let page = relative(&tree.root, &path);
        // It shows how files are named, and names files of other projects.
        if page == "docs/internals/style.md" {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a page is readable");
        for (at, line) in text.lines().enumerate() {
            let named = names(line).into_iter();
            // A name with `*` stands for several files.
            let named = named.filter(|name| name.ends_with(".rs") && !name.contains('*'));
            for name in named.filter(|name| !exists(name)) {
                problems.push(format!("{page}:{}: there is no source `{name}`", at + 1));
            }
        }
    }
    problems
}

/// Parameters that belong together form a named type.
fn tuples(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for source in &tree.sources {
        for (at, _) in source.code.match_indices("fn ") {
            let Some(open) = source.code[at..].find('(').map(|open| at + open + 1) else {
                continue;
            };
            let parameters = &source.code[open..end_of_group(&source.code, open)];
            let starts = parameters.match_indices("): (").map(|(colon, _)| &parameters[..=colon]);
            let binds = |start: &str| {
                let pattern = start.rfind('(').map_or(start, |at| &start[at..]);
                let names = pattern.trim_matches(['(', ')']);
                names.contains(',')
                    && names.chars().all(|c| c.is_alphanumeric() || "_ ,\n&".contains(c))
            };
            if starts.into_iter().any(binds) {
                let line = source.code[..at].matches('\n').count() + 1;
                problems.push(format!("{}:{line}: a parameter binds a tuple", source.path));
            }
        }
    }
    problems
}

/// The end of the parenthesised group that begins before `open`.
fn end_of_group(code: &str, open: usize) -> usize {
    let mut depth = 1;
    for (at, c) in code[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + at;
        }
    }
    code.len()
}
