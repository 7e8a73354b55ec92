//! The input of the rules: every source that ships, and the tables of the map.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A source file of the server or of a library.
pub struct Source {
    /// Path from the root of the repository, with `/`.
    pub path: String,
    /// Module path inside its package, parts joined with `/`: `http/api/user` of `src/http/api/user.rs`.
    pub module: String,
    /// The library that it belongs to; `None` for the server.
    pub library: Option<String>,
    /// The whole text.
    pub text: String,
    /// `text` with code that only tests compile replaced by empty lines; empty for a file of tests.
    pub code: String,
}

/// Sources and map of a repository.
pub struct Tree {
    /// The root of the repository.
    pub root: PathBuf,
    /// All sources, in the order of their paths.
    pub sources: Vec<Source>,
    /// Folders of `src`, the lowest layer first.
    pub layers: Vec<String>,
    /// Folders of `crates`.
    pub libraries: Vec<String>,
    /// Crates with the units that may name them.
    pub owners: Vec<(String, Vec<String>)>,
}

impl Tree {
    /// Reads the repository at `root`.
    pub fn read(root: &Path) -> Self {
        let map = fs::read_to_string(root.join("docs/internals/architecture.md"))
            .expect("the map exists");
        let mut sources = Vec::new();
        for (dir, library) in packages(root) {
            for path in files(&dir) {
                if path.extension().is_some_and(|extension| extension == "rs") {
                    sources.push(Source::read(root, &dir, &path, library.clone()));
                }
            }
        }
        let first = |title: &str| {
            let rows = rows(section(&map, title)).into_iter();
            rows.filter_map(|(names, _)| names.into_iter().next()).collect()
        };
        let owners = rows(section(&map, "Owners of crates")).into_iter();
        let owners = owners
            .flat_map(|(crates, units)| crates.into_iter().map(move |name| (name, units.clone())));
        Self {
            root: root.to_owned(),
            sources,
            layers: first("Layers"),
            libraries: first("Libraries"),
            owners: owners.collect(),
        }
    }
}

impl Source {
    fn read(root: &Path, dir: &Path, path: &Path, library: Option<String>) -> Self {
        let text = fs::read_to_string(path).expect("a source is UTF-8");
        let module = relative(dir, path);
        let module = module.trim_end_matches(".rs").trim_end_matches("/mod").to_owned();
        let is_test =
            module.ends_with("tests") || module.ends_with("scratch") || module.contains("test_");
        let code = if is_test { String::new() } else { without_tests(&text) };
        Self { path: relative(root, path), module, library, text, code }
    }

    /// The module paths that the code names with `crate::…` or `super::…`, each with its line: also the members of
    /// groups in braces.
    pub fn imports(&self) -> Vec<(usize, String)> {
        let lines = self.code.lines().map(|line| line.split("//").next().unwrap_or_default());
        let code = lines.collect::<Vec<_>>().join("\n");
        let starts = code.match_indices("crate::").map(|(at, mark)| (at, at + mark.len(), 0));
        let supers = code.match_indices("super::").filter(|(at, _)| !code[..*at].ends_with("::"));
        let supers = supers.map(|(at, _)| {
            let ups = code[at..].split("super::").take_while(|part| part.is_empty()).count();
            (at, at + ups * "super::".len(), ups)
        });
        let mut found = Vec::new();
        for (at, end, ups) in starts.chain(supers) {
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
                continue;
            }
            for (offset, named) in named_paths(&code[end..]) {
                let line = code[..end + offset].matches('\n').count() + 1;
                found.push((line, self.resolved(ups, &named.replace("::", "/"))));
            }
        }
        found
    }

    /// `named`, resolved `ups` modules up, or from the root of the package if that is 0.
    fn resolved(&self, ups: usize, named: &str) -> String {
        let parts: Vec<&str> = self.module.split('/').collect();
        let kept = if ups == 0 { &[][..] } else { &parts[..parts.len().saturating_sub(ups)] };
        [kept, &[named]].concat().join("/")
    }
}

/// The path at the beginning of `text`, or each path of the group in braces with which it ends; each with its offset.
///
/// `low::{one, two::{A, B}}` names `low::one`, `low::two::A` and `low::two::B`.
fn named_paths(text: &str) -> Vec<(usize, String)> {
    let stop = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let end = stop.unwrap_or(text.len());
    let path = &text[..end];
    if !text[end..].starts_with('{') {
        return vec![(0, path.to_owned())];
    }
    let mut found = Vec::new();
    let mut depth = 0;
    for (at, c) in text[end..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        // A member of this group follows, or the end after a last comma.
        if depth == 1 && matches!(c, '{' | ',') {
            let member = text[end + at + 1..].trim_start();
            let start = text.len() - member.len();
            let inner = if member.starts_with('}') { Vec::new() } else { named_paths(member) };
            let inner = inner.into_iter().map(|(at, rest)| (start + at, format!("{path}{rest}")));
            found.extend(inner);
        }
    }
    found
}

/// The folders of sources, each with its library.
fn packages(root: &Path) -> Vec<(PathBuf, Option<String>)> {
    let mut found = vec![(root.join("src"), None)];
    for name in names_in(&root.join("crates")) {
        found.push((root.join("crates").join(&name).join("src"), Some(name)));
    }
    found
}

/// The names of the entries of a folder, sorted.
pub fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a folder is readable");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry is readable").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort();
    names
}

/// All files below a folder, sorted.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in names_in(dir) {
        let path = dir.join(name);
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// `path` relative to `root`, with `/`.
pub fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/")
}

/// The names between backticks.
pub fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn section<'a>(map: &'a str, title: &str) -> &'a str {
    let found = map.split("\n## ").find(|part| part.starts_with(title));
    found.unwrap_or_else(|| panic!("the map has no section \"{title}\""))
}

/// The names in the first and in the second cell of each row with names in the first.
fn rows(section: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let cells = section.lines().filter_map(|line| {
        let cells: Vec<_> = line.split('|').collect();
        (cells.len() >= 4).then(|| (names(cells[1]), names(cells[2])))
    });
    cells.filter(|(first, _)| !first.is_empty()).collect()
}

/// `text` with every item that has `#[cfg(test)]` replaced by empty lines.
pub fn without_tests(text: &str) -> String {
    let (mut code, mut end) = (String::with_capacity(text.len()), None::<String>);
    for line in text.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        match &end {
            // The item ends with this line, or with its body.
            Some(brace) if line == brace.as_str() => end = None,
            Some(brace) if line.ends_with([';', ',']) && brace.len() == indent.len() + 1 => {
                end = None;
            }
            Some(_) => {}
            None if line.trim() == "#[cfg(test)]" => end = Some(format!("{indent}}}")),
            None => code.push_str(line),
        }
        code.push('\n');
    }
    code
}
