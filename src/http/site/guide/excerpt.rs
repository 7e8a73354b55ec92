//! Makes excerpts: the part of a section's plain text that a hit shows.

use serde::Serialize;

use super::words::{TextWord, words};

/// Bytes of text that an excerpt shows around the words of the query.
const GUIDE_EXCERPT_BYTES: usize = 180;

/// A fragment of an excerpt.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ExcerptFragment {
    text: String,
    /// True if the fragment matches a word of the query.
    is_match: bool,
}

/// Joins the lines of a code block into one, without the markers of comments and of Markdown.
///
/// An excerpt has no line breaks and no monospaced font, so these markers would only disturb the text.
pub(super) fn plain_code(code: &str) -> String {
    let parts = code.lines().flat_map(|line| {
        let is_table_row = line.trim_start().starts_with('|');
        line.split_whitespace().filter(move |part| !is_mark(part, is_table_row))
    });
    without_backticks(&parts.collect::<Vec<_>>().join(" "))
}

fn is_mark(part: &str, is_table_row: bool) -> bool {
    let is_comment = matches!(part, "//" | "///" | "//!");
    let is_heading = part.chars().all(|c| c == '#');
    // Outside a table, a pipe belongs to a command.
    let is_rule = is_table_row && part.chars().all(|c| "|:-".contains(c));
    is_comment || is_heading || is_rule
}

/// Removes backticks from a text, which contains them only where a document quotes Markdown.
pub(super) fn without_backticks(text: &str) -> String {
    text.replace('`', "")
}

/// Returns the part of `text` that contains the most different words of the query, and marks these words.
pub(super) fn excerpt(text: &str, query_words: &[String]) -> Vec<ExcerptFragment> {
    let found: Vec<(usize, TextWord)> = words(text)
        .filter_map(|word| {
            let word_index =
                query_words.iter().position(|searched| word.text.starts_with(searched))?;
            Some((word_index, word))
        })
        .collect();
    // Of several best positions the first is used, because `max_by_key` returns the last maximum of the reversed
    // range.
    let best = (0..found.len())
        .rev()
        .max_by_key(|first| count_different(&found[*first..], query_words.len()));
    let first = best.map_or(0, |best| found[best].1.start);
    // A quarter of the excerpt's length precedes the first match, for context.
    let start = boundary(text, first.saturating_sub(GUIDE_EXCERPT_BYTES / 4));
    let end = boundary(text, start + GUIDE_EXCERPT_BYTES + GUIDE_EXCERPT_BYTES / 4);
    let mut fragments = Vec::new();
    if start > 0 {
        push(&mut fragments, "… ", false);
    }
    let mut at = start;
    for (_, word) in found.iter().filter(|(_, word)| word.start >= start && word.end <= end) {
        push(&mut fragments, &text[at..word.start], false);
        push(&mut fragments, &text[word.start..word.end], true);
        at = word.end;
    }
    push(&mut fragments, &text[at..end], false);
    if end < text.len() {
        push(&mut fragments, " …", false);
    }
    fragments
}

/// Counts the different words of the query in an excerpt that begins with the first word of `found`. Each word in
/// `found` has its index in the query; the query has `query_len` words.
fn count_different(found: &[(usize, TextWord)], query_len: usize) -> usize {
    let start = found.first().map_or(0, |(_, word)| word.start);
    let mut seen = vec![false; query_len];
    for (word_index, word) in found {
        if word.end > start + GUIDE_EXCERPT_BYTES {
            break;
        }
        seen[*word_index] = true;
    }
    seen.into_iter().filter(|is_seen| *is_seen).count()
}

/// Adds a fragment, unless it is empty.
fn push(fragments: &mut Vec<ExcerptFragment>, text: &str, is_match: bool) {
    if !text.is_empty() {
        fragments.push(ExcerptFragment { text: text.to_owned(), is_match });
    }
}

/// Returns the position of the first whitespace at or after `at`, or the end of the text if there is none. Returns
/// 0 for 0.
fn boundary(text: &str, at: usize) -> usize {
    if at == 0 {
        return 0;
    }
    // The position of a whitespace is a character boundary, so the text can be sliced there.
    let mut spaces = text.char_indices().filter(|(_, c)| c.is_whitespace());
    let found = spaces.find(|(position, _)| *position >= at);
    found.map_or(text.len(), |(position, _)| position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_no_marks_of_comments_or_markdown() {
        let check = |code: &str, expected: &str| assert_eq!(plain_code(code), expected, "{code}");
        check("/// Moves a `crop`.\n///\n/// Fails.\nfn f()", "Moves a crop. Fails. fn f()");
        check("//! Two.\nf(); // why", "Two. f(); why");
        check("# a comment\nKEY=1    # a key", "a comment KEY=1 a key");
        check("| a | b |\n| --- | :-: |\n| 1 | 2 |", "a b 1 2");
        // What only looks like a mark is part of the code.
        check("#!/bin/sh\n#[inline]\na | b", "#!/bin/sh #[inline] a | b");
        check("curl http://localhost/a", "curl http://localhost/a");
    }

    #[test]
    fn an_excerpt_has_the_words_marked() {
        let before = "filler ".repeat(100);
        let text = format!("{before}the Ångström unit is small {before}");
        let fragments = excerpt(&text, &["ångström".to_owned(), "small".to_owned()]);
        let marked: Vec<&str> =
            fragments.iter().filter(|one| one.is_match).map(|one| one.text.as_str()).collect();
        assert_eq!(marked, ["Ångström", "small"]);
        let whole: String = fragments.iter().map(|one| one.text.as_str()).collect();
        assert!(whole.starts_with("… ") && whole.ends_with(" …"), "{whole}");
        assert!(whole.len() < 2 * GUIDE_EXCERPT_BYTES, "{whole}");
        assert_eq!(excerpt("", &["a".to_owned()]), []);
    }
}
