//! Syntax that every Rust engineer writes: constructions that other projects avoid are rare, or absent.

use crate::tree::Tree;

/// A construction, with how to recognize it and what to write instead.
struct Construction {
    name: &'static str,
    /// Occurrences allowed in 10,000 lines of code.
    allowed: usize,
    instead: &'static str,
    is_at: fn(&str) -> bool,
}

const CONSTRUCTIONS: [Construction; 5] = [
    Construction {
        name: "closures with a name",
        allowed: 15,
        instead: "a private function",
        is_at: is_named_closure,
    },
    Construction {
        name: "tuples taken apart",
        allowed: 7,
        instead: "one binding a line",
        is_at: is_tuple_let,
    },
    Construction {
        name: "matches on a bool",
        allowed: 1,
        instead: "`if`",
        is_at: |line| line.starts_with("true =>"),
    },
    Construction {
        name: "constructors called `of`",
        allowed: 0,
        instead: "`new`, `from_…` or `parse`",
        is_at: |line| line.contains("fn of("),
    },
    Construction {
        name: "parameters called `one`",
        allowed: 0,
        instead: "the name of the thing",
        is_at: |line| line.contains("|one|") || line.contains("|&one|"),
    },
];
/// Most places that a violation names.
const PLACES_MAX: usize = 10;

/// Returns whether `line` begins with `let name = |…|`, also `move` or `async`.
fn is_named_closure(line: &str) -> bool {
    let Some((name, value)) = line.strip_prefix("let ").and_then(|rest| rest.split_once(" = "))
    else {
        return false;
    };
    let value = value.strip_prefix("async ").unwrap_or(value);
    let value = value.strip_prefix("move ").unwrap_or(value);
    is_identifier(name) && value.starts_with('|')
}

/// Returns whether `line` begins with `let (a, b) = (`.
fn is_tuple_let(line: &str) -> bool {
    let Some((names, value)) = line.strip_prefix("let (").and_then(|rest| rest.split_once(") = "))
    else {
        return false;
    };
    let mut names = names.split(", ").map(|name| name.strip_prefix("mut ").unwrap_or(name));
    value.starts_with('(') && names.all(is_identifier)
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

pub fn constructions(tree: &Tree) -> Vec<String> {
    let mut lines = 0;
    let mut found = vec![Vec::new(); CONSTRUCTIONS.len()];
    for source in &tree.sources {
        for (index, line) in source.code.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            lines += 1;
            for (construction, places) in CONSTRUCTIONS.iter().zip(&mut found) {
                if (construction.is_at)(line) {
                    places.push(format!("{}:{}", source.path, index + 1));
                }
            }
        }
    }
    let mut problems = Vec::new();
    for (construction, places) in CONSTRUCTIONS.iter().zip(&found) {
        let allowed = construction.allowed * lines / 10_000;
        if places.len() > allowed {
            let named: Vec<&str> = places.iter().take(PLACES_MAX).map(String::as_str).collect();
            problems.push(format!(
                "{}: {} where {allowed} are allowed; write {} instead: {}",
                construction.name,
                places.len(),
                construction.instead,
                named.join(", ")
            ));
        }
    }
    problems
}
