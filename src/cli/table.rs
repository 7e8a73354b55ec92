//! Prints lists, as tables for people or as JSON.

use serde_json::Value;

use super::{print_json, print_line};

/// Prints `items`, with `json` as a JSON array, otherwise as a table with the column names `head`.
pub(super) fn print_list<T, const N: usize>(
    json: bool,
    items: &[T],
    to_json: impl Fn(&T) -> Value,
    head: [&str; N],
    to_row: impl Fn(&T) -> [String; N],
) {
    if json {
        let array: Value = items.iter().map(to_json).collect();
        print_json(&array);
        return;
    }
    let rows: Vec<_> = items.iter().map(to_row).collect();
    print_line(&table(head, &rows));
}

/// Formats `rows` below the column names `head`, in columns as wide as their longest cell.
///
/// Control characters in cells are shown as `?`, because user input must not move the cursor of a terminal.
pub(super) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| row.each_ref().map(|cell| without_controls(cell))));
    let mut widths = [0; N];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    lines.iter().map(|line| padded(line, &widths)).collect::<Vec<_>>().join("\n")
}

fn without_controls(cell: &str) -> String {
    cell.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Joins the cells of a line, padded to the widths of the columns.
fn padded(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, &width) in cells.iter().zip(widths) {
        line.push_str(&format!("{cell:width$}  "));
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let rows = [["1", "å\u{1b}[2Jb"], ["100", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(table(["id", "name"], &rows), "id   name\n1    å?[2Jb\n100");
    }
}
