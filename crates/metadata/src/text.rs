//! Decodes and cleans text of metadata: character sets, control characters, truncation.

/// The characters of windows-1252 where ISO 8859-1 has control characters, 0x80 to 0x9F. Five codes are unassigned
/// and stored as NUL.
const WINDOWS_1252: [char; 32] = [
    '€', '\0', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\0', 'Ž', '\0', //
    '\0', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\0', 'ž', 'Ÿ',
];

/// Decodes ISO 8859-1 with the additional characters of windows-1252.
pub(super) fn decode_latin1(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|&byte| match byte {
            // Text that is called ISO 8859-1 is mostly windows-1252, which has printable characters in place of C1
            // controls.
            0x80..=0x9F => WINDOWS_1252[usize::from(byte - 0x80)],
            _ => char::from(byte),
        })
        .collect()
}

/// Decodes text of unknown character set: as UTF-8 if it is valid UTF-8, else as Latin-1.
///
/// Latin-1 text that is also valid UTF-8 would have to contain pairs such as `Ã¥`, which do not occur in any
/// language.
pub(super) fn decode_unknown(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => decode_latin1(bytes),
    }
}

/// Decodes text that is declared as UTF-8; the flag is true if it is not valid UTF-8.
///
/// An incomplete character at the end is dropped, because writers that truncate at a number of bytes leave it. Any
/// other invalid text is decoded as Latin-1.
pub(super) fn decode_utf8(bytes: &[u8]) -> (String, bool) {
    match str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), false),
        // `error_len` is `None` only if the text ends within a character, that is, after a truncation.
        Err(error) if error.error_len().is_none() => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            (decode_unknown(valid), false)
        }
        Err(_) => (decode_latin1(bytes), true),
    }
}

/// Normalizes text: removes control characters except line feed and tab, and surrounding white space.
///
/// All line endings become line feeds. Characters that XML does not allow are removed too. Text of only white
/// space becomes empty, which means absent.
pub(super) fn clean(text: &str) -> String {
    // Most texts are clean, and a packet has hundreds.
    if text.chars().all(is_clean) {
        return text.trim().to_owned();
    }
    // CRLF is replaced first, or each one would become two line feeds.
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let allowed: String = lines.chars().filter(|&c| is_clean(c)).collect();
    allowed.trim().to_owned()
}

/// Normalizes text to a single line: line feeds and tabs become spaces.
pub(super) fn line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// Returns whether a character is kept in texts; line endings must already be normalized.
fn is_clean(c: char) -> bool {
    // XML 1.0 §2.2 excludes the last two from its characters, also as references.
    c == '\n' || c == '\t' || !(c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}'))
}

/// Truncates text to a number of UTF-8 bytes at a character boundary, without trailing white space.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    // A cut before a space would leave text that `clean` changes when the file is read back.
    text[..text.floor_char_boundary(bytes_max)].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_characters_are_read() {
        assert_eq!(decode_latin1(b"\x93r\xE4ksm\xF6rg\xE5s\x94 \x80"), "“räksmörgås” €");
    }

    #[test]
    fn a_cut_off_character_at_the_end_is_dropped() {
        assert_eq!(decode_utf8(b"sn\xC3\xB6\xC3"), ("snö".to_owned(), false));
        assert_eq!(decode_utf8(b"sn\xF6 och is"), ("snö och is".to_owned(), true));
    }

    #[test]
    fn control_characters_and_surrounding_blanks_are_removed() {
        assert_eq!(clean("\0 a\r\nb\u{1}\u{85}\rc\td \u{FFFF}"), "a\nb\nc\td");
        assert_eq!(clean(" \0\u{20}\t"), "");
        assert_eq!(line("a\nb\tc"), "a b c");
    }

    #[test]
    fn a_cut_keeps_characters_whole() {
        assert_eq!(cut("åäö", 3), "å");
        assert_eq!(cut("ab cd", 3), "ab");
        assert_eq!(cut("åäö", 6), "åäö");
        assert_eq!(cut("😀", 3), "");
    }
}
