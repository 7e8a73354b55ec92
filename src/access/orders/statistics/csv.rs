//! Writes lines of CSV (RFC 4180) in UTF-8, which spreadsheets open without executing formulas.

use serde_json::Value;

/// First characters that make a spreadsheet read a text as a formula.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Appends a line with these values; a missing value is an empty field.
pub(super) fn write_line(text: &mut String, values: impl IntoIterator<Item = Value>) {
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        match value {
            Value::Null => {}
            Value::String(field) => write_field(text, &field),
            // Numbers need no quotes, and nothing else is a value of a statistic.
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                text.push_str(&value.to_string());
            }
        }
    }
    text.push_str("\r\n");
}

fn write_field(text: &mut String, field: &str) {
    // Names and headlines come from customers and sources. The apostrophe makes a spreadsheet show the text
    // instead of computing it.
    let guard = if field.starts_with(FORMULA_STARTS) { "'" } else { "" };
    let needs_quotes = field.contains([',', '"', '\r', '\n']) || field != field.trim();
    if !needs_quotes {
        text.push_str(guard);
        text.push_str(field);
        return;
    }
    text.push('"');
    text.push_str(guard);
    text.push_str(&field.replace('"', "\"\""));
    text.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(values: &[Value]) -> String {
        let mut text = String::new();
        write_line(&mut text, values.iter().cloned());
        text
    }

    #[test]
    fn fields_are_quoted_where_they_have_to_be() {
        let values = [json!("a"), json!("å, \"b\""), json!(7), Value::Null, json!("two\nlines")];
        assert_eq!(line(&values), "a,\"å, \"\"b\"\"\",7,,\"two\nlines\"\r\n");
        assert_eq!(line(&[json!(" a ")]), "\" a \"\r\n");
    }

    #[test]
    fn a_text_of_others_is_no_formula() {
        assert_eq!(line(&[json!("=1+1"), json!(-1)]), "'=1+1,-1\r\n");
        assert_eq!(line(&[json!("@SUM(A1,A2)")]), "\"'@SUM(A1,A2)\"\r\n");
        assert_eq!(line(&[json!("a=b")]), "a=b\r\n");
    }
}
