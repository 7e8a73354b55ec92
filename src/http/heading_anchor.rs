//! Anchors of headings: the targets of links within a document.

/// Returns the anchor of a heading as GitHub generates it: lower case, hyphens for spaces, no punctuation.
pub(super) fn anchor(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        })
        .collect()
}
