//! Reduces any text to one line.

/// Reduces any text to one line of at most `chars_max` characters.
///
/// Runs of line breaks, other control characters and white space become one space. Bidirectional control
/// characters are removed, since they would affect the following text. A longer text is truncated and gets `…`. It
/// is truncated after a word if one ends in the last quarter.
pub fn line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    let mut pending_space = false;
    for c in text.chars().filter(|&c| !is_hidden(c)) {
        if c.is_control() || c.is_whitespace() {
            // White space at the start or the end of the text is removed.
            pending_space = !line.is_empty();
            continue;
        }
        let width = 1 + usize::from(pending_space);
        if count + width > chars_max {
            return cut(&line, pending_space, chars_max);
        }
        if pending_space {
            line.push(' ');
        }
        line.push(c);
        count += width;
        pending_space = false;
    }
    line
}

fn cut(line: &str, after_word: bool, chars_max: usize) -> String {
    let word = line.rfind(' ').filter(|&end| line[..end].chars().count() * 4 >= chars_max * 3);
    // The text was cut at a gap, so its last word is complete.
    let end = if after_word { None } else { word };
    let shortened = end.map_or(line, |end| &line[..end]);
    format!("{}…", shortened.trim_end_matches([',', ';', ':', '.', '–', '-', ' ']))
}

/// Returns whether a character is invisible and affects the text around it.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}')
}

#[cfg(test)]
mod tests {
    use super::line;

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
    fn a_long_text_is_cut_after_a_word() {
        check("åäö åäö", 7, "åäö åäö");
        check("åäö åäö", 5, "åäö å…");
        check("one two three four", 14, "one two three…");
        check("one two three four", 16, "one two three…");
        check("one two, three", 8, "one two…");
        check(&"x".repeat(10_000), 3, "xxx…");
    }
}
