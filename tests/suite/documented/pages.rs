//! The documentation's pages and their code blocks.

use std::{fs, path::Path};

use crate::common::checkout;

/// A code block of a page.
#[derive(Clone, Debug)]
pub struct Block {
    /// The page's path from the root of the checkout.
    pub page: String,
    /// Its lines, without their common indentation.
    pub text: String,
}

impl Block {
    /// The first non-empty line.
    pub fn first_line(&self) -> &str {
        self.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
    }

    /// Its commands; a line that ends in a backslash continues in the next one.
    pub fn commands(&self) -> Vec<String> {
        let joined = self.text.replace("\\\n", "");
        let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    }
}

/// The paths of the pages: three at the root, and every page below docs/.
pub fn pages() -> Vec<String> {
    let mut pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned).to_vec();
    collect_pages("docs", &mut pages);
    pages.sort();
    pages
}

fn collect_pages(folder: &str, pages: &mut Vec<String>) {
    for entry in fs::read_dir(checkout(folder)).expect("a folder of pages") {
        let entry = entry.expect("an entry");
        let path = format!("{folder}/{}", entry.file_name().into_string().expect("a name"));
        if entry.path().is_dir() {
            collect_pages(&path, pages);
        } else if Path::new(&path).extension().is_some_and(|end| end == "md") {
            pages.push(path);
        }
    }
}

/// The blocks of all pages.
pub fn blocks() -> Vec<Block> {
    pages().iter().flat_map(|page| blocks_of(page)).collect()
}

/// The block of `page` whose first line begins with `start`.
#[track_caller]
pub fn block(page: &str, start: &str) -> Block {
    let mut found = blocks_of(page).into_iter().filter(|one| one.first_line().starts_with(start));
    let block = found.next().unwrap_or_else(|| panic!("{page} has no block with {start:?}"));
    assert!(found.next().is_none(), "{page} has several blocks with {start:?}");
    block
}

fn blocks_of(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(checkout(page)).expect("a page");
    let parsed = parse(&text);
    parsed.into_iter().map(|text| Block { page: page.to_owned(), text }).collect()
}

/// The texts of fenced blocks, and of blocks indented by four spaces after an empty line.
fn parse(text: &str) -> Vec<String> {
    let (mut found, mut lines) = (Vec::new(), text.lines().peekable());
    let mut is_behind_gap = true;
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("```") {
            let within: Vec<&str> =
                lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")).collect();
            found.push(within.join("\n"));
        } else if is_behind_gap && let Some(first) = indented(line) {
            let mut within = vec![first];
            while let Some(next) = lines.peek().and_then(|line| indented(line)) {
                within.push(next);
                lines.next();
            }
            found.push(within.join("\n"));
        }
        is_behind_gap = line.trim().is_empty();
    }
    found
}

/// A line of an indented block; continuation lines of a list are not.
fn indented(line: &str) -> Option<&str> {
    let text = line.strip_prefix("    ")?;
    (!text.trim().is_empty() && !text.trim_start().starts_with(['-', '*'])).then_some(text)
}

#[test]
fn fenced_and_indented_blocks_are_found() {
    let page = "a\n\n```\none \\\n  two\n\nthree\n```\n\ntext\n    no block\n\n    four\n    five\n\nb\n\n```toml\n[x]\n```\n";
    let found = parse(page);
    assert_eq!(found, ["one \\\n  two\n\nthree", "four\nfive", "[x]"]);
    let block = Block { page: String::new(), text: found[0].clone() };
    assert_eq!(block.commands(), ["one   two", "three"]);
    assert_eq!(block.first_line(), "one \\");
}
