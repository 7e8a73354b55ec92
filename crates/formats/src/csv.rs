//! Writes texts as cells of CSV (RFC 4180), escaped so that no spreadsheet computes one as a formula, whichever
//! separator it expects.

/// First characters of a cell that spreadsheets compute as a formula.
const FORMULA_STARTS: [char; 5] = ['=', '+', '-', '@', '\t'];
/// Characters at which spreadsheets split cells: commas, semicolons or tabs, depending on their settings, and line
/// breaks. If a spreadsheet does not expect the separator of the file, the quotes of a text do not begin a cell, so they
/// do not protect its separators and line breaks.
const SEPARATORS: [char; 5] = [',', ';', '\t', '\n', '\r'];

/// Appends a text as a cell in quotes.
///
/// Names and captions come from customers and sources, so each character that could begin a formula gets an apostrophe
/// in front: at the beginning of the text, after each of [`SEPARATORS`], and after a quotation mark in these places, which
/// could open a cell.
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
        let opens_cell = begins_cell && character == '"';
        begins_cell = opens_cell || SEPARATORS.contains(&character);
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
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)"] {
            check(formula, &format!("\"'{formula}\""));
            for separator in [",", ";", "\n"] {
                let text = format!("a{separator}{formula}{separator}b");
                check(&text, &format!("\"a{separator}'{formula}{separator}b\""));
            }
        }
        check("a\t=1", "\"a\t'=1\"");
        check("\t=1", "\"'\t'=1\"");
        check("a\";=1", "\"a\"\";'=1\"");
        check(";\"=1;", "\";\"\"'=1;\"");
        check("\r\n=1", "\"\r\n'=1\"");
        check("a\r\n\r\nb", "\"a\r\n\r\nb\"");
    }
}
