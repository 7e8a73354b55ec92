//! Shortens texts for messages, records and lists, and encodes texts for URIs.

/// Shortens `text` to its first `chars_max` characters and `…`. A text within the limit stays unchanged.
///
/// White space before the ellipsis is removed. The ellipsis is not counted in `chars_max`.
pub fn shorten(text: &str, chars_max: usize) -> String {
    // Texts of other systems may be in any language, so a cut at a byte could split a character.
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// Percent-encodes all bytes of `text` apart from the ASCII characters for which `is_plain` returns true.
pub fn percent_encode(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, chars_max: usize, expected: &str) {
        assert_eq!(shorten(text, chars_max), expected, "{text:?} to {chars_max}");
    }

    #[test]
    fn a_long_text_ends_with_an_ellipsis_after_whole_characters() {
        check("åäö", 2, "åä…");
        check("日本語", 1, "日…");
        check("one two", 5, "one t…");
        check("one two", 4, "one…");
        check("  x", 2, "…");
        check("x", 0, "…");
    }

    #[test]
    fn a_text_within_the_limit_stays_as_it_is() {
        check("åäö", 3, "åäö");
        check("one ", 4, "one ");
        check("one ", usize::MAX, "one ");
        check("", 0, "");
    }
}
