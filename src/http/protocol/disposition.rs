//! File names under which browsers save responses (RFC 6266, RFC 8187).

use axum::http::{HeaderMap, HeaderValue, header};

/// Characters of a download's file name without its extension; an item's id fits.
const FILE_NAME_CHARS_MAX: usize = 128;

/// Sets the name under which browsers save a response, by [`attachment`].
pub(crate) fn set_attachment(headers: &mut HeaderMap, name: &str) {
    if let Some(value) = attachment(name) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
}

/// Builds the `Content-Disposition` of a file to be saved as `name`.
///
/// A name with characters beyond ASCII occurs twice: with `_` for each such character, and unchanged in
/// `filename*` for clients that support it. Any input is valid: characters that some file system refuses, or that
/// reverse the direction of text, become `_`.
fn attachment(name: &str) -> Option<HeaderValue> {
    let name = safe_file_name(name);
    let ascii: String = name.chars().map(|c| if c.is_ascii() { c } else { '_' }).collect();
    let mut value = format!("attachment; filename=\"{ascii}\"");
    if ascii != name {
        value.push_str("; filename*=UTF-8''");
        value.push_str(&model::percent_encode(&name, |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
        }));
    }
    HeaderValue::from_str(&value).ok()
}

/// Sanitizes a name for all file systems, and truncates its stem if it is too long.
fn safe_file_name(name: &str) -> String {
    let name: String = name.chars().map(safe_character).collect();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
    let stem: String = stem.chars().take(FILE_NAME_CHARS_MAX).collect();
    // A leading dot hides a file, and Windows drops dots and spaces at the end.
    let stem = stem.trim_matches([' ', '.']);
    let stem = if stem.is_empty() { "_" } else { stem };
    if extension.is_empty() { stem.to_owned() } else { format!("{stem}.{extension}") }
}

/// Replaces a character that some file system refuses, or that could disguise a name.
fn safe_character(c: char) -> char {
    match c {
        '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | '%' => '_',
        // Zero-width and bidirectional controls could disguise the extension of a file.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '_',
        // A control character could end the header.
        c if c.is_control() => '_',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(name: &str, expected: &str) {
        assert_eq!(attachment(name).unwrap(), expected, "{name}");
    }

    #[test]
    fn a_plain_name_comes_once_and_another_one_twice() {
        check("demo_a-1.jpg", "attachment; filename=\"demo_a-1.jpg\"");
        check("Sport 2026.zip", "attachment; filename=\"Sport 2026.zip\"");
        check(
            "Åre på vintern.zip",
            "attachment; filename=\"_re p_ vintern.zip\"; \
             filename*=UTF-8''%C3%85re%20p%C3%A5%20vintern.zip",
        );
        check("a/b\\c:\"d\"%41.zip", "attachment; filename=\"a_b_c__d__41.zip\"");
        check("...zip", "attachment; filename=\"_.zip\"");
        check("../../etc/passwd.zip", "attachment; filename=\"_.._etc_passwd.zip\"");
    }

    proptest! {
        #[test]
        fn any_name_gives_one_header_of_two_parameters_at_most(stem in "\\PC*|.{0,300}") {
            let value = attachment(&format!("{stem}.zip")).unwrap();
            let text = value.to_str().unwrap();
            let rest = text.strip_prefix("attachment; filename=\"").unwrap();
            let (plain, rest) = rest.split_once('"').unwrap();
            prop_assert!(plain.ends_with(".zip") && !plain.starts_with(' '));
            prop_assert!(!plain.contains(['/', '\\', '"', ';', '\r', '\n']) || plain.contains(';'));
            let encoded = rest.strip_prefix("; filename*=UTF-8''").unwrap_or_default();
            prop_assert!(!encoded.contains(['"', ';', ' ', '/']));
            prop_assert!(plain.chars().count() <= FILE_NAME_CHARS_MAX + 4);
        }
    }
}
