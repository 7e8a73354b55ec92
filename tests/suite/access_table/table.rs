//! Reads the tables of rights: blocks of a heading with callers, lines of answers, and addresses.

use std::fs;

use reqwest::{blocking::Response, header::CACHE_CONTROL};

use crate::common::checkout;

/// A row that a request added to the orders of its organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRow {
    /// The item is sold.
    Delivers,
    /// The order waits for its approval.
    Waits,
}

/// The answer with this status, `Cache-Control` and new order rows, as the tables write it.
pub fn print_answer(status: u16, policy: Option<&str>, rows: &[OrderRow]) -> String {
    let sign = caching_sign(policy);
    // A sold file is private; refusals and redirects are not stored.
    let usual = if status == 200 { "-" } else { "" };
    let sign = if rows.is_empty() || sign != usual { sign } else { "" };
    let rows = rows.iter().map(|row| match row {
        OrderRow::Delivers => '$',
        OrderRow::Waits => '!',
    });
    format!("{status}{sign}{}", rows.collect::<String>())
}

/// The header `Cache-Control` of an answer.
pub fn policy_of(answer: &Response) -> Option<String> {
    answer.headers().get(CACHE_CONTROL).map(|line| line.to_str().expect("ASCII").to_owned())
}

/// The sign of a policy in the tables.
fn caching_sign(policy: Option<&str>) -> &'static str {
    match policy {
        Some(policy) if policy.contains("no-store") => "",
        Some(policy) if policy.contains("private") => "-",
        Some(policy) if policy.contains("max-age") => "+",
        Some("no-cache") => "~",
        _ => "?",
    }
}

/// A right: the answers to each caller, and the addresses that have it.
#[derive(Debug)]
pub struct Block {
    pub name: String,
    pub callers: Vec<String>,
    /// The answers by the state of the item; one line in a table without states.
    pub lines: Vec<AnswerLine>,
    /// The lines with addresses.
    pub addresses: Vec<String>,
}

impl Block {
    /// The answer to the caller of a column, for an item in `state`.
    pub fn answer(&self, state: &str, column: usize) -> &str {
        let is_of =
            |line: &&AnswerLine| line.states.iter().any(|one| one == state || one == "any");
        let line = self.lines.iter().find(is_of);
        &line.unwrap_or_else(|| panic!("[{}] has no line for {state}", self.name)).answers[column]
    }
}

/// The answers to callers for items in some states.
#[derive(Debug)]
pub struct AnswerLine {
    pub states: Vec<String>,
    pub answers: Vec<String>,
}

/// Reads the blocks of the table `name`.
pub fn read(name: &str) -> Vec<Block> {
    let path = checkout("tests/suite/access_table").join(name);
    let text = fs::read_to_string(&path).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        if let Some((title, callers)) =
            line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        {
            blocks.push(Block {
                name: title.to_owned(),
                callers: words(callers),
                lines: Vec::new(),
                addresses: Vec::new(),
            });
            continue;
        }
        let block = blocks.last_mut().unwrap_or_else(|| panic!("{name}: no block before {line}"));
        if line.contains('/') {
            block.addresses.push(line.to_owned());
            continue;
        }
        let is_state = |word: &String| word.starts_with(|c: char| c.is_ascii_alphabetic());
        let (states, answers) = words(line).into_iter().partition(is_state);
        let line_read = AnswerLine { states, answers };
        assert_eq!(line_read.answers.len(), block.callers.len(), "{name}: {line}");
        block.lines.push(line_read);
    }
    blocks
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Expands the braces of a word: `a{b,c}d` is `abd` and `acd`.
pub fn expand(word: &str) -> Vec<String> {
    let Some((before, rest)) = word.split_once('{') else { return vec![word.to_owned()] };
    let (choices, after) =
        rest.split_once('}').unwrap_or_else(|| panic!("no closing brace: {word}"));
    let after = expand(after);
    let each = |choice: &str| {
        after.iter().map(|after| format!("{before}{choice}{after}")).collect::<Vec<_>>()
    };
    choices.split(',').flat_map(each).collect()
}
