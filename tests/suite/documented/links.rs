//! Links in all Markdown files, and the pages that sources and examples name.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use crate::common::checkout;

/// The tracked files whose names end in one of `ends`, with their contents.
fn tracked(ends: &[&str]) -> Vec<(String, String)> {
    let listed = Command::new("git").arg("ls-files").current_dir(checkout("")).output();
    let listed = String::from_utf8(listed.expect("git").stdout).expect("names are UTF-8");
    let files = listed.lines().filter(|file| ends.iter().any(|end| file.ends_with(end)));
    let texts = files.filter_map(|file| {
        let text = fs::read_to_string(checkout(file)).ok()?;
        Some((file.to_owned(), text))
    });
    texts.collect()
}

/// The targets of `[text](target)` outside code blocks and code spans.
fn links(text: &str) -> Vec<String> {
    let (mut found, mut is_code) = (Vec::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect();
        for rest in prose.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            found.push(target.split_whitespace().next().unwrap_or_default().to_owned());
        }
    }
    found
}

/// The anchors of a page: one for each heading, as GitHub forms them.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut found, mut is_code) = (BTreeSet::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let title = line.trim_start_matches('#');
        if is_code || title == line || !title.starts_with(' ') {
            continue;
        }
        let anchor = anchor(title.trim());
        let more = (1..).map(|count| format!("{anchor}-{count}"));
        let mut names = std::iter::once(anchor.clone()).chain(more);
        let free = names.find(|name| !found.contains(name)).expect("names without end");
        found.insert(free);
    }
    found
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The problem with a link from the page `from` to `target`.
fn problem(from: &str, target: &str) -> Option<String> {
    let (path, wanted) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(from).parent().expect("a file is in a folder");
    let file = if path.is_empty() { from.into() } else { folder.join(path) };
    let place = checkout(file.to_str().expect("UTF-8"));
    if !place.exists() {
        return Some(format!("{from}: {target} is not there"));
    }
    if wanted.is_empty() {
        return None;
    }
    let text = fs::read_to_string(place).ok()?;
    (!anchors(&text).contains(wanted)).then(|| format!("{from}: {target} has no such heading"))
}

#[test]
fn every_link_in_the_documentation_resolves() {
    let mut problems = Vec::new();
    let mut count = 0;
    for (page, text) in tracked(&[".md"]) {
        // rustdoc checks the links to types in the libraries' pages.
        let relative = links(&text).into_iter().filter(|link| {
            !link.contains("://") && !link.contains("::") && !link.starts_with("mailto:")
        });
        for link in relative {
            count += 1;
            problems.extend(problem(&page, &link));
        }
    }
    assert!(count > 200, "{count}");
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn every_page_that_a_source_names_exists() {
    let ends = [".rs", ".py", ".sh", ".toml", ".yml", ".yaml", ".cfg", ".conf", ".vcl", ".md"];
    let mut problems = BTreeSet::new();
    let mut count = 0;
    for (file, text) in tracked(&ends) {
        // Its planted mistakes are wrong on purpose.
        if ["tests/suite/documented/links.rs", "tests/tidy/planted.rs"].contains(&file.as_str()) {
            continue;
        }
        for (at, _) in text.match_indices("docs/") {
            if text[..at].ends_with(|c: char| c.is_alphanumeric() || "/.-_".contains(c)) {
                continue;
            }
            let is_part = |c: char| c.is_ascii_alphanumeric() || "/-_.#".contains(c);
            let rest = &text[at..];
            let named = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
            let named = named.trim_end_matches(['.', '#']);
            if named.ends_with(".md") || named.contains(".md#") {
                count += 1;
                let wrong = problem("README.md", named);
                problems.extend(wrong.map(|it| it.replace("README.md: ", &format!("{file}: "))));
            }
        }
    }
    assert!(count > 100, "{count}");
    let problems: Vec<String> = problems.into_iter().collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn links_and_anchors_are_found_and_broken_ones_are_reported() {
    let page =
        "# A\n[b](b.md) `[c](c.md)` and [d](#d-e)\n\n```\n# [f](f.md)\n```\n\n## D: e\n## D: e\n";
    assert_eq!(links(page), ["b.md", "#d-e"]);
    let expected = ["a", "d-e", "d-e-1"].map(str::to_owned);
    assert_eq!(anchors(page), BTreeSet::from(expected));
    assert!(problem("README.md", "docs/README.md").is_none());
    assert!(problem("README.md", "docs/gone.md").is_some());
    assert!(problem("docs/README.md", "#gone").is_some());
    assert!(problem("docs/README.md", "../CONTRIBUTING.md#recipes").is_none());
}
