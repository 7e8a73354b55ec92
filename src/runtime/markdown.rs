//! Escapes text for the Markdown of the reference pages.

/// Escapes characters that Markdown would read as markup in a paragraph. Code between backticks is unchanged.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            out.push('`');
        }
        for c in part.chars() {
            // Parts with an odd index lie between backticks, where a backslash would be shown.
            let is_markup = index % 2 == 0 && matches!(c, '\\' | '<' | '*' | '[' | ']');
            if is_markup {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}

/// Escapes text for a table cell: on one line, with `|` escaped, even in code.
pub fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Tables are split into cells before code is parsed (GFM §4.10).
    escaped(&line).replace('|', "\\|")
}

/// Formats `text` as code in a table cell; an empty text stays empty.
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
