//! Writes texts as cells of CSV (RFC 4180), which spreadsheets of every language show and do not compute.

/// First characters of a cell that a spreadsheet computes.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];
/// Characters at which a spreadsheet of some language splits cells.
const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// Appends a text as a cell in quotes.
///
/// Names and captions come from customers and sources, so an apostrophe stands before what a spreadsheet would read
/// as a formula: at the beginning of the text, and behind each separator at which it may split the text.
pub fn push_cell(line: &mut String, text: &str) {
    line.push('"');
    let mut begins_cell = true;
    for character in text.chars() {
        if begins_cell && FORMULA_STARTS.contains(&character) {
            line.push('\'');
        }
        if character == '"' {
            line.push('"');
        }
        line.push(character);
        begins_cell = SEPARATORS.contains(&character);
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut line = String::new();
        push_cell(&mut line, text);
        assert_eq!(line, expected);
    }

    #[test]
    fn a_text_is_quoted() {
        check("", "\"\"");
        check("å, \"b\"\nc", "\"å, \"\"b\"\"\nc\"");
        check("a=b - c", "\"a=b - c\"");
    }

    #[test]
    fn a_text_is_no_formula_at_whichever_separator_it_is_split() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\r=1"] {
            check(formula, &format!("\"'{formula}\""));
            for separator in [",", ";"] {
                let text = format!("a{separator}{formula}{separator}b");
                check(&text, &format!("\"a{separator}'{formula}{separator}b\""));
            }
        }
        check("a\t=1", "\"a\t'=1\"");
        check("\t=1", "\"'\t'=1\"");
        check("a\";=1", "\"a\"\";'=1\"");
    }
}
