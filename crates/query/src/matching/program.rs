//! Compiles a query into a compact sequence of numbers, and finds the tokens that a matching item must have.
//!
//! Each number has an operation in its two highest bits and an operand in the rest: the number of a leaf, or the
//! count of numbers in the operation's parts.

use std::cmp::Reverse;

use super::frequency::FrequencySketch;
use super::intern_table::index_of;
use super::leaf::{ColumnMask, LeafTable, QueryLeaf, TAGS};
use crate::limits::MATCHING_KEYS_MAX;
use crate::{IndexedDocument, Query};

const SHIFT: u32 = 30;
const OPERAND: u32 = (1 << SHIFT) - 1;
const LEAF: u32 = 0;
const NOT: u32 = 1;
const AND: u32 = 2;
const OR: u32 = 3;

fn operation(operation: u32, operand: usize) -> u32 {
    let operand = u32::try_from(operand).ok().filter(|operand| *operand <= OPERAND);
    operation << SHIFT | operand.expect("memory is exhausted before 2^30 leaves")
}

/// Appends a query to `program`. Its leaves are in use until [`release_leaves`].
pub(super) fn compile(query: &Query, leaves: &mut LeafTable, program: &mut Vec<u32>) {
    match query {
        // An `AND` of no parts holds for every item.
        Query::All => program.push(operation(AND, 0)),
        Query::Words(words) => push_leaf(leaves.intern_words(words), program),
        Query::Dates(dates) => push_leaf(leaves.intern(QueryLeaf::Dates(*dates)), program),
        Query::Numbers(numbers) => push_leaf(leaves.intern(QueryLeaf::Numbers(*numbers)), program),
        Query::Present(place) => push_leaf(leaves.intern(QueryLeaf::Present(*place)), program),
        Query::Item(id) => push_leaf(leaves.intern_id(id), program),
        Query::And(parts) => compile_parts(AND, parts, leaves, program),
        Query::Or(parts) => compile_parts(OR, parts, leaves, program),
        Query::Not(part) => {
            program.push(operation(NOT, 0));
            compile(part, leaves, program);
        }
    }
}

fn push_leaf(leaf: u32, program: &mut Vec<u32>) {
    program.push(operation(LEAF, index_of(leaf)));
}

fn compile_parts(kind: u32, parts: &[Query], leaves: &mut LeafTable, program: &mut Vec<u32>) {
    let start = program.len();
    // Replaced below, when the length of the parts is known.
    program.push(0);
    for part in parts {
        compile(part, leaves, program);
    }
    program[start] = operation(kind, program.len() - start - 1);
}

/// Releases the leaves of a program.
pub(super) fn release_leaves(program: &[u32], leaves: &mut LeafTable) {
    // The operation of a leaf is 0, so the whole number is the leaf's number.
    for number in program.iter().filter(|number| *number >> SHIFT == LEAF) {
        leaves.release(*number);
    }
}

/// Iterates over the adjacent operations in `program`, each with its parts.
fn parts(mut program: &[u32]) -> impl Iterator<Item = &[u32]> {
    std::iter::from_fn(move || {
        // `NOT` is a prefix of the operation that it negates.
        let first = program.iter().position(|number| number >> SHIFT != NOT)?;
        let operand_count = match program[first] >> SHIFT {
            AND | OR => index_of(program[first] & OPERAND),
            _ => 0,
        };
        let (part, rest) = program.split_at(first + 1 + operand_count);
        program = rest;
        Some(part)
    })
}

/// Returns whether a non-empty program holds for the item last read by `leaves`.
pub(super) fn holds(program: &[u32], leaves: &mut LeafTable, indexed: &IndexedDocument) -> bool {
    let (first, operands) = program.split_first().expect("a program has an operation");
    match first >> SHIFT {
        NOT => !holds(operands, leaves, indexed),
        AND => parts(operands).all(|part| holds(part, leaves, indexed)),
        OR => parts(operands).any(|part| holds(part, leaves, indexed)),
        _ => leaves.holds(*first, indexed),
    }
}

/// Tokens of which every matching item has at least one, with the columns in which they must occur.
pub(super) struct RequiredTokens {
    /// The cost of filing under these tokens; smaller is better. The parts are the number of documents with the
    /// tokens, the number of tokens, and the length of the shortest token.
    cost: (u64, usize, Reverse<usize>),
    pub(super) tokens: Vec<(u32, ColumnMask)>,
    /// True if one of the tokens suffices for the query to match.
    pub(super) is_sufficient: bool,
}

impl RequiredTokens {
    fn for_token(
        token: u32,
        columns: ColumnMask,
        leaves: &LeafTable,
        rarity: &FrequencySketch,
    ) -> Self {
        let (text, is_prefix) = leaves.spelling(token);
        let count = if is_prefix { rarity.prefix_count() } else { rarity.count(text) };
        let cost = (count, 1, Reverse(text.len()));
        Self { cost, tokens: vec![(token, columns)], is_sufficient: false }
    }

    /// Returns an empty set, for a part that no item matches.
    fn none() -> Self {
        Self { cost: (0, 0, Reverse(usize::MAX)), tokens: Vec::new(), is_sufficient: true }
    }

    fn or(mut self, other: Self) -> Self {
        for (token, columns) in other.tokens {
            match self.tokens.iter_mut().find(|(existing, _)| *existing == token) {
                Some((_, existing)) => *existing |= columns,
                None => self.tokens.push((token, columns)),
            }
        }
        let (count, _, shortest) = self.cost;
        let (other_count, _, other_shortest) = other.cost;
        self.is_sufficient &= other.is_sufficient;
        self.cost = (count + other_count, self.tokens.len(), shortest.max(other_shortest));
        self
    }
}

/// Finds the rarest tokens of which every item that matches `program` has at least one.
///
/// `None` if an item without any token may match, or if there are too many alternatives.
pub(super) fn required_tokens(
    program: &[u32],
    leaves: &LeafTable,
    rarity: &FrequencySketch,
) -> Option<RequiredTokens> {
    let (first, operands) = program.split_first().expect("a program has an operation");
    match first >> SHIFT {
        // A negation matches items without any of the tokens.
        NOT => None,
        AND => {
            let keys = parts(operands).filter_map(|part| required_tokens(part, leaves, rarity));
            let rarest = keys.min_by_key(|keys| keys.cost)?;
            // The other parts have to hold as well.
            Some(RequiredTokens { is_sufficient: false, ..rarest })
        }
        OR => {
            let mut all = RequiredTokens::none();
            for part in parts(operands) {
                // If a branch requires no tokens, an item may match without any tokens of the other branches.
                all = all.or(required_tokens(part, leaves, rarity)?);
                // Checked for each part, because `or` searches the list of tokens linearly.
                if all.tokens.len() > MATCHING_KEYS_MAX {
                    return None;
                }
            }
            Some(all)
        }
        _ => {
            let QueryLeaf::Words { columns, phrase, exact, .. } = leaves.leaf(*first) else {
                return None;
            };
            if phrase.is_empty() {
                return Some(RequiredTokens::none());
            }
            let is_sufficient = phrase.len() == 1 && exact.is_empty();
            let phrase = phrase.iter().map(|token| (*token, *columns));
            let exact = exact.iter().map(|token| (*token, TAGS));
            let tokens = phrase.chain(exact);
            let keys = tokens
                .map(|(token, columns)| RequiredTokens::for_token(token, columns, leaves, rarity));
            let rarest = keys.min_by_key(|keys| keys.cost)?;
            Some(RequiredTokens { is_sufficient, ..rarest })
        }
    }
}
