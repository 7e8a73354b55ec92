//! Rules of the tree that neither the compiler nor cargo checks.
//!
//! The tables in `docs/internals/architecture.md` are the input of the rules, and so are `docs/contract` and `tests/COVERAGE.md`.
//! `planted` proves for each rule that it detects a violation.

mod contract;
mod language;
mod planted;
mod rules;
mod suite;
mod syntax;
mod tree;

use std::path::Path;

use rules::RULES;
use tree::Tree;

#[test]
fn the_tree_keeps_every_rule() {
    let tree = Tree::read(Path::new("."));
    let broken = RULES.iter().flat_map(|(rule, check)| {
        check(&tree).into_iter().map(move |problem| format!("{rule}: {problem}"))
    });
    let broken: Vec<_> = broken.collect();
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}
