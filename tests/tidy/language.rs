//! Rules of language: names that are used once, docs that say something, and words that the field does not use.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::tree::{Source, Tree, files, relative};

/// Public types that may share a name.
const NAMESAKES_MAX: usize = 2;
/// Words of the shortest doc comment.
const DOC_WORDS_MIN: usize = 4;

/// Words and phrases that comments and pages do not use, and what to write instead. In lower case; a phrase matches
/// only whole words.
const DROPPED: [(&str, &str); 22] = [
    ("nobody", "name the component, or say `no client`, `no process`"),
    ("somebody", "name the component or the user"),
    ("whoever", "name the component: `the caller`, `the process that …`"),
    ("is told", "`is notified`, `learns`, `receives`"),
    ("are told", "`are notified`, `receive`"),
    ("tells of", "`reports`, `announces`"),
    ("told of", "`notified of`"),
    ("left alone", "`the circuit is open`, `is skipped`"),
    ("anew", "`again`, `rebuilt`, `recreated`"),
    ("settles", "`acknowledges`, `completes`"),
    ("settled", "`acknowledged`, `completed`"),
    ("patience", "`timeout`, `retry policy`"),
    ("gives way", "`is evicted`, `yields`"),
    ("stands still", "`has missed its heartbeats`"),
    ("stood still", "`missed its heartbeats`"),
    ("the turn to write", "`the cluster write lock`"),
    ("moving house", "`migration`"),
    ("rehearsal", "`dry run`"),
    ("colour differences", "`chroma`"),
    ("mended", "`repaired`, `fixed`"),
    ("mends", "`repairs`, `fixes`"),
    ("so-manieth", "`n-th`, `the index of`"),
];

/// Pages that quote dropped words, or describe history.
const EXEMPT: [&str; 2] = ["docs/internals/glossary.md", "docs/internals/style.md"];

/// At most two public types share a name: a search for it leads to one place.
pub fn namesakes(tree: &Tree) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in &tree.sources {
        for line in source.code.lines() {
            if let Some(name) = public_type(line) {
                places.entry(name).or_default().push(&source.path);
            }
        }
    }
    places.retain(|_, places| places.len() > NAMESAKES_MAX);
    places.iter().map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
}

/// The name of the public type that a line declares.
fn public_type(line: &str) -> Option<&str> {
    let declared = line.trim_start().strip_prefix("pub ")?;
    let kinds = ["struct ", "enum ", "trait ", "union "];
    let name = kinds.iter().find_map(|kind| declared.strip_prefix(kind))?;
    // The type name in a macro is a parameter.
    let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!name.is_empty()).then_some(name)
}

/// A doc comment has at least four words, and public types and functions have one. In `crates/api` a doc comment is a cell of the
/// API's reference, where a unit alone says enough.
pub fn docs(tree: &Tree) -> Vec<String> {
    tree.sources.iter().flat_map(docs_of).collect()
}

fn docs_of(source: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    let mut words: Option<usize> = None;
    let mut is_attribute = false;
    for (at, line) in source.code.lines().enumerate() {
        let place = format!("{}:{}", source.path, at + 1);
        let line = line.trim();
        if let Some(doc) = line.strip_prefix("///") {
            words = Some(words.unwrap_or(0) + doc.split_whitespace().count());
            continue;
        }
        // Attributes stand between a doc comment and what it describes.
        is_attribute |= line.starts_with("#[");
        if is_attribute || line.is_empty() {
            is_attribute &= !line.ends_with(']');
            continue;
        }
        if let Some(count) = words.take() {
            if count < DOC_WORDS_MIN && !source.path.starts_with("crates/api/") {
                problems.push(format!("{place}: a doc comment of {count} words says nothing"));
            }
        } else if is_public_item(line) {
            problems.push(format!("{place}: `{line}` has no doc comment"));
        }
    }
    problems
}

fn is_public_item(line: &str) -> bool {
    let function = ["pub fn ", "pub async fn ", "pub const fn "];
    public_type(line).is_some() || function.iter().any(|start| line.starts_with(start))
}

/// Comments of sources and pages of the documentation use the field's words.
pub fn dropped_words(tree: &Tree) -> Vec<String> {
    let comments = tree.sources.iter().flat_map(|source| {
        let lines = source.code.lines().enumerate().filter_map(|(at, line)| {
            // Two slashes inside a string belong to a URL.
            let start = match line.trim_start().starts_with("//") {
                true => 0,
                false => line.find(" // ")?,
            };
            Some((at, &line[start..]))
        });
        lines.flat_map(|(at, comment)| dropped_in(&source.path, at, comment)).collect::<Vec<_>>()
    });
    comments.chain(pages(&tree.root)).collect()
}

fn pages(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for path in files(&root.join("docs")) {
        let name = relative(root, &path);
        if !name.ends_with(".md") || EXEMPT.contains(&name.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a page is readable");
        let mut is_code = false;
        for (at, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            if !is_code {
                problems.extend(dropped_in(&name, at, line));
            }
        }
    }
    problems
}

fn dropped_in(path: &str, at: usize, line: &str) -> Vec<String> {
    // Names and quotations of code are not prose.
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`").to_lowercase();
    let found = DROPPED.iter().filter(|(word, _)| has_phrase(&prose, word));
    found.map(|(word, instead)| format!("{path}:{}: `{word}`; write {instead}", at + 1)).collect()
}

fn has_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}
