//! Rules about `docs/contract`: its clauses, their rows in `tests/COVERAGE.md`, and citations of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::tree::{Tree, files, names, relative};

/// The folder of the contract's pages.
const PAGES: &str = "docs/contract";

/// Folders whose files may cite clauses.
const CITING: [&str; 7] = ["assets", "benches", "crates", "docs", "examples", "src", "tests"];

/// Excluded below those: third-party files, generated files, and the rules with their planted violations.
const NOT_CITING: [&str; 5] =
    ["tests/corpus/", "tests/schemas/", "tests/tidy/", "/node_modules/", "/target/"];

/// Citations of documents that are not in the repository.
const FOREIGN: [&str; 5] = ["Spec §", "spec §", "Spec is silent", "operator.md", "pitfalls.md"];

/// A clause of the contract.
struct Clause {
    id: String,
    title: String,
}

/// A row of `tests/COVERAGE.md`.
struct Row {
    id: String,
    title: String,
    /// File and name of each test.
    tests: Vec<(String, String)>,
    /// True if it states why there is no test.
    is_excused: bool,
}

/// Compares the contract with the table of its tests, and looks for each test in its file.
pub fn coverage(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let clauses = clauses(tree, &mut problems);
    let rows = rows(tree);
    problems.extend(compared(&clauses, &rows));
    let mut texts = BTreeMap::new();
    for row in &rows {
        if row.tests.is_empty() && !row.is_excused {
            problems.push(format!("{}: no test and no reason", row.id));
        }
        for (path, test) in &row.tests {
            let text = texts
                .entry(path)
                .or_insert_with(|| fs::read_to_string(tree.root.join(path)).unwrap_or_default());
            if !text.contains(&format!("fn {test}(")) {
                problems.push(format!("{}: {path} has no test `{test}`", row.id));
            }
        }
    }
    problems
}

/// Finds citations of clauses that do not exist, and of documents outside the repository.
pub fn citations(tree: &Tree) -> Vec<String> {
    let clauses = clauses(tree, &mut Vec::new());
    let ids: BTreeSet<&str> = clauses.iter().map(|clause| clause.id.as_str()).collect();
    let pages: BTreeSet<&str> = ids.iter().filter_map(|id| Some(id.split_once('-')?.0)).collect();
    let is_of_a_page =
        |id: &&str| id.split_once('-').is_some_and(|(page, _)| pages.contains(page));
    let mut problems = Vec::new();
    for (path, text) in citing(tree) {
        let foreign = FOREIGN.into_iter().filter(|mark| text.contains(mark)).map(str::to_owned);
        for found in foreign.chain(decision(&text)) {
            problems.push(format!("{path}: `{found}` is no part of the repository"));
        }
        let known = |page: &str| page == "README" || pages.contains(page);
        for page in pages_named(&text).filter(|page| !known(page)) {
            problems.push(format!("{path}: there is no {PAGES}/{page}.md"));
        }
        let links = linked(&text).filter(is_of_a_page).map(str::to_owned);
        for id in cited(&text).into_iter().chain(links).filter(|id| !ids.contains(id.as_str())) {
            problems.push(format!("{path}: the contract has no clause {id}"));
        }
    }
    problems
}

/// The clauses of all pages, in the order in which the contract's README lists the pages.
fn clauses(tree: &Tree, problems: &mut Vec<String>) -> Vec<Clause> {
    let read = |name: &str| {
        let text = fs::read_to_string(tree.root.join(PAGES).join(name));
        text.unwrap_or_else(|_| panic!("{PAGES}/{name} exists"))
    };
    let listed: Vec<String> = read("README.md").lines().filter_map(listed_page).collect();
    for path in files(&tree.root.join(PAGES)) {
        let page = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if page != "README" && !listed.contains(&page) {
            problems.push(format!("{PAGES}/README.md does not list {page}.md"));
        }
    }
    let mut found: Vec<Clause> = Vec::new();
    for page in &listed {
        for clause in clauses_of(&read(&format!("{page}.md"))) {
            let number = clause.id.strip_prefix(page.as_str()).and_then(|id| id.strip_prefix('-'));
            if number.is_none_or(|number| number.parse::<u32>().is_err()) {
                problems.push(format!("{PAGES}/{page}.md: `{}` is no id of it", clause.id));
            }
            if clause.title.is_empty() {
                problems.push(format!("{PAGES}/{page}.md: {} has no title", clause.id));
            }
            if found.iter().any(|other| other.id == clause.id) {
                problems.push(format!("{PAGES}/{page}.md: {} occurs twice", clause.id));
            }
            found.push(clause);
        }
    }
    found
}

/// `media` of the row `| [media.md](media.md) | …`.
fn listed_page(line: &str) -> Option<String> {
    let (page, _) = line.strip_prefix("| [")?.split_once(".md]")?;
    Some(page.to_owned())
}

/// The clauses of a page: a heading that is the id, and a paragraph that begins with the title in bold.
fn clauses_of(text: &str) -> Vec<Clause> {
    let parts = text.split("\n### ").skip(1).filter_map(|part| part.split_once('\n'));
    let clause = |(id, rest): (&str, &str)| {
        let title = rest.trim_start().strip_prefix("**").and_then(|rest| rest.split_once(".**"));
        let title = title.map(|(title, _)| title.replace('\n', " ")).unwrap_or_default();
        Clause { id: id.trim().to_owned(), title }
    };
    parts.map(clause).collect()
}

/// The rows of the table of tests.
fn rows(tree: &Tree) -> Vec<Row> {
    let text = fs::read_to_string(tree.root.join("tests/COVERAGE.md"));
    let text = text.expect("the coverage table exists");
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines() {
        if let Some((id, title)) = line.strip_prefix("- `").and_then(|line| line.split_once("` "))
        {
            let (id, title) = (id.to_owned(), title.to_owned());
            rows.push(Row { id, title, tests: Vec::new(), is_excused: false });
        } else if let Some((path, rest)) =
            line.strip_prefix("  - ").and_then(|line| line.split_once(": "))
            && let Some(row) = rows.last_mut()
        {
            if path == "no test" {
                row.is_excused = !rest.is_empty();
            } else {
                row.tests.extend(names(rest).into_iter().map(|name| (path.to_owned(), name)));
            }
        }
    }
    rows
}

/// The differences between rows and clauses, in ids, titles or order.
fn compared(clauses: &[Clause], rows: &[Row]) -> Vec<String> {
    let mut problems = Vec::new();
    for clause in clauses {
        match rows.iter().find(|row| row.id == clause.id) {
            None => problems.push(format!("{}: no row", clause.id)),
            Some(row) if row.title != clause.title => {
                problems.push(format!("{}: the clause is called \"{}\"", row.id, clause.title));
            }
            Some(_) => {}
        }
    }
    for row in rows {
        if !clauses.iter().any(|clause| clause.id == row.id) {
            problems.push(format!("{}: no clause of the contract", row.id));
        }
    }
    let differs = clauses.iter().zip(rows).find(|(clause, row)| clause.id != row.id);
    if let (true, Some((clause, row))) = (problems.is_empty(), differs) {
        problems.push(format!("{}: the contract has {} there", row.id, clause.id));
    }
    problems
}

/// Path and text of every file that may cite clauses.
fn citing(tree: &Tree) -> impl Iterator<Item = (String, String)> {
    let folders = CITING.iter().map(|folder| tree.root.join(folder)).filter(|dir| dir.is_dir());
    let below = folders.flat_map(|dir| files(&dir));
    let top = fs::read_dir(&tree.root).expect("the root is readable").flatten();
    let top = top.map(|entry| entry.path()).filter(|path| is_markdown(path));
    let paths = below.chain(top).map(|path| (relative(&tree.root, &path), path));
    let paths = paths.filter(|(name, _)| !NOT_CITING.iter().any(|part| name.contains(part)));
    paths.filter_map(|(name, path)| Some((name, fs::read_to_string(path).ok()?)))
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// A decision that is cited by its number.
fn decision(text: &str) -> Option<String> {
    let behind = ["decision ", "Decision "].into_iter().flat_map(|word| text.split(word).skip(1));
    let mut first = behind.filter_map(|rest| rest.chars().next());
    let cited = first.find(|c| c.is_ascii_digit() || *c == '§')?;
    Some(format!("decision {cited}"))
}

/// The ids after the word "contract", as in `contract media-3, media-4`, including those on the next line of the
/// comment.
fn cited(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim_start_matches(['/', '!', '*', '#', ' ']).trim());
    let text = lines.collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for (at, mark) in text.match_indices("ontract ") {
        let mut rest = &text[at + mark.len()..];
        while let Some((id, behind)) = id_at(rest) {
            found.push(id.to_owned());
            let next = behind.strip_prefix(", ").or_else(|| behind.strip_prefix(" and "));
            rest = next.unwrap_or_default();
        }
    }
    found
}

/// The ids of links to clauses: `access-4` of `[access-4](#access-4)`.
fn linked(text: &str) -> impl Iterator<Item = &str> {
    let anchors = text.split('#').skip(1).filter_map(id_at);
    anchors.filter(|(_, behind)| behind.starts_with(')')).map(|(id, _)| id)
}

/// The pages of the contract that are named with their folder.
fn pages_named(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("docs/contract/").skip(1);
    behind
        .filter_map(|rest| rest.split_once(".md").map(|(page, _)| page))
        .filter(|page| !page.is_empty() && page.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

/// The id at the start of `text`, and the rest.
fn id_at(text: &str) -> Option<(&str, &str)> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    let (id, behind) = text.split_at(end);
    let (page, number) = id.split_once('-')?;
    let is_page = !page.is_empty() && page.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_page && is_number).then_some((id, behind))
}
