//! Writes lines of CSV (RFC 4180) in UTF-8, with every text in quotes.

use serde_json::Value;

/// Appends a line with these values; a missing value is an empty field.
pub(super) fn write_line(text: &mut String, values: impl IntoIterator<Item = Value>) {
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        match value {
            Value::Null => {}
            Value::String(field) => formats::csv::push_cell(text, &field),
            // Numbers need no quotes, and nothing else is a value of a statistic.
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                text.push_str(&value.to_string());
            }
        }
    }
    text.push_str("\r\n");
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
    fn texts_are_quoted_and_numbers_are_not() {
        let values = [json!("a"), json!("å, \"b\""), json!(7), Value::Null, json!("two\nlines")];
        assert_eq!(line(&values), "\"a\",\"å, \"\"b\"\"\",7,,\"two\nlines\"\r\n");
    }

    #[test]
    fn a_text_of_others_is_no_formula() {
        assert_eq!(line(&[json!("=1+1"), json!(-1)]), "\"'=1+1\",-1\r\n");
        assert_eq!(line(&[json!("a;=1+1")]), "\"a;'=1+1\"\r\n");
    }
}
