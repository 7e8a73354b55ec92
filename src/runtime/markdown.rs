//! Escapes text for the Markdown of the reference pages.

/// Text as a paragraph shows it: characters that Markdown would read as markup are escaped, code between
/// backticks stays code.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, part) in text.split('`').enumerate() {
        if at > 0 {
            out.push('`');
        }
        for c in part.chars() {
            let is_markup = at % 2 == 0 && matches!(c, '\\' | '<' | '*' | '[' | ']');
            if is_markup {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}

/// The same text in a cell of a table, on one line and with its bars escaped, in code too.
#[must_use]
pub fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escaped(&line).replace('|', "\\|")
}

/// `text` as code in a cell of a table; nothing for an empty text.
#[must_use]
pub fn code_cell(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_outside_code() {
        assert_eq!(escaped("a <b> *c* `<d> *e*` [f]"), "a \\<b> \\*c\\* `<d> *e*` \\[f\\]");
        assert_eq!(cell("one | two\nand `three|four`"), "one \\| two and `three\\|four`");
        assert_eq!(code_cell("a|b"), "`a\\|b`");
        assert_eq!(code_cell(""), "");
    }
}
