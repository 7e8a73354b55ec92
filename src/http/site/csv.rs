//! Writes tables as CSV (RFC 4180) for spreadsheets.

use crate::http::site::language::PageLanguage;

/// The byte order mark. Spreadsheets do not recognize UTF-8 without it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the separator that spreadsheets in `language` expect.
pub(super) fn separator(language: PageLanguage) -> char {
    match language {
        PageLanguage::English => ',',
        // The decimal separator is a comma.
        PageLanguage::Swedish => ';',
    }
}

/// Writes a table with its column names, in UTF-8 with a byte order mark and CRLF.
///
/// A cell that a spreadsheet would evaluate as a formula gets an apostrophe in front, because captions are
/// untrusted.
pub(super) fn csv_text(
    columns: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    separator: char,
) -> String {
    let mut text = String::from(BYTE_ORDER_MARK);
    let head: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    for row in std::iter::once(head).chain(rows) {
        for (index, value) in row.iter().enumerate() {
            if index > 0 {
                text.push(separator);
            }
            formats::csv::push_cell(&mut text, value);
        }
        text.push_str("\r\n");
    }
    text
}

/// Converts the CSV of an API to the format of [`csv_text`]. The API separates cells by commas, quotes texts and has
/// already escaped formulas.
pub(super) fn spreadsheet_text(api_csv: &str, separator: char) -> String {
    let mut text = String::from(BYTE_ORDER_MARK);
    let mut is_quoted = false;
    // Within quotes, commas and line breaks belong to the cell.
    let cells = api_csv.split_inclusive(|character: char| {
        is_quoted ^= character == '"';
        !is_quoted && matches!(character, ',' | '\n')
    });
    for cell in cells {
        let value = cell.strip_suffix(',').or_else(|| cell.strip_suffix("\r\n")).unwrap_or(cell);
        text.push_str(value);
        match &cell[value.len()..] {
            "," => text.push(separator),
            end => text.push_str(end),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cells: &[&str], separator: char, expected: &str) {
        let row = cells.iter().map(|cell| (*cell).to_owned()).collect();
        let text = csv_text(&["a"], std::iter::once(row), separator);
        assert_eq!(text, format!("\u{feff}\"a\"\r\n{expected}\r\n"));
    }

    #[test]
    fn cells_are_quoted_and_separated_as_the_language_expects() {
        check(&["1", "a, b; c", ""], ',', "\"1\",\"a, b; c\",\"\"");
        check(&["å", "two\nlines"], ';', "\"å\";\"two\nlines\"");
        check(&["say \"cheese\""], ',', "\"say \"\"cheese\"\"\"");
        assert_eq!(separator(PageLanguage::Swedish), ';');
    }

    #[test]
    fn the_csv_of_an_api_is_separated_as_the_language_expects() {
        let csv = "\"a\",\"b\"\r\n\"x;y\",\"1, \"\"2\"\";\n3\"\r\n,7\r\n";
        assert_eq!(spreadsheet_text(csv, ','), format!("\u{feff}{csv}"));
        let expected = "\u{feff}\"a\";\"b\"\r\n\"x;y\";\"1, \"\"2\"\";\n3\"\r\n;7\r\n";
        assert_eq!(spreadsheet_text(csv, ';'), expected);
    }

    #[test]
    fn a_cell_is_never_a_formula() {
        for formula in ["=1+1", "+1", "-1", "@a", "=HYPERLINK(\"http://x\")"] {
            let expected = format!("\"'{}\"", formula.replace('"', "\"\""));
            check(&[formula], ',', &expected);
        }
        check(&["a;=1+1"], ',', "\"a;'=1+1\"");
    }
}
