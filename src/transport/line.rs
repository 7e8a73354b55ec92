//! Reduces texts to one line, for mails, headers and errors.

use model::shorten;

/// Reduces any text to one line of at most `chars_max` characters and `…`: runs of line breaks, other control
/// characters and white space become one space.
pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    shorten(&joined_words(text), chars_max)
}

/// Reduces a text for readers to one line of at most `chars_max` characters.
///
/// Works like [`one_line`], but also removes bidirectional control characters, since they would affect the following
/// text, and truncates a longer text after a word if one ends in the last quarter.
pub fn line(text: &str, chars_max: usize) -> String {
    let visible: String = text.chars().filter(|&c| !is_hidden(c)).collect();
    let line = joined_words(&visible);
    let Some((end, next)) = line.char_indices().nth(chars_max) else { return line };
    let shortened = &line[..end];
    // Cut between two words, so the last word is complete.
    let ends_with_word = next == ' ' || shortened.ends_with(' ');
    let word_end = shortened
        .rfind(' ')
        .filter(|&end| !ends_with_word && line[..end].chars().count() * 4 >= chars_max * 3);
    let shortened = word_end.map_or(shortened, |end| &line[..end]);
    format!("{}…", shortened.trim_end_matches([',', ';', ':', '.', '–', '-', ' ']))
}

fn joined_words(text: &str) -> String {
    let words = text.split(|c: char| c.is_control() || c.is_whitespace());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns whether a character is invisible and affects the text around it.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, chars_max: usize, expected: &str) {
        assert_eq!(line(text, chars_max), expected, "{text:?}");
    }

    #[test]
    fn any_text_becomes_one_line() {
        check(" a\r\nBcc: b\u{0}\u{2028}c\u{85}\t ", 99, "a Bcc: b c");
        check("\u{202E}abc\u{2066}\u{FEFF}", 99, "abc");
        check("שלום 👩‍🚒", 99, "שלום 👩‍🚒");
        check("", 9, "");
        check("\n\n", 9, "");
    }

    #[test]
    fn any_headline_becomes_one_line() {
        assert_eq!(one_line(" a\r\nBcc: b\u{0}\u{2028}c ", 99), "a Bcc: b c");
        assert_eq!(one_line("åäö åäö", 5), "åäö å…");
    }

    #[test]
    fn a_long_text_is_cut_after_a_word() {
        check("åäö åäö", 7, "åäö åäö");
        check("åäö åäö", 5, "åäö å…");
        check("one two three four", 14, "one two three…");
        check("one two three four", 16, "one two three…");
        check("one two, three", 8, "one two…");
        check(&"x".repeat(10_000), 3, "xxx…");
    }
}
