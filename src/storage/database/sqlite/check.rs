//! Runs SQLite's built-in checks of the database file.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::runtime::limits::CHECK_FLAWS_MAX;
use crate::storage::database::engine::{EngineTransaction, params};
use crate::storage::database::error::DbResult;
use crate::storage::database::facts::DatabaseFlaw;

/// Runs one of SQLite's built-in checks and adds the name of each table.
pub(super) fn page_flaws(connection: &Connection, check: &str) -> DbResult<Vec<DatabaseFlaw>> {
    let sql = format!("PRAGMA {check}({CHECK_FLAWS_MAX})");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut texts: Vec<String> = Vec::new();
    loop {
        match rows.next() {
            Ok(Some(row)) => texts.push(row.get(0)?),
            Ok(None) => break,
            // Damage may end the check. Its findings until then are reported too.
            Err(cause) => {
                texts.push(cause.to_string());
                break;
            }
        }
    }
    let lines = texts.iter().flat_map(|text| text.lines());
    // Lines with asterisks are headings.
    let lines: Vec<&str> =
        lines.filter(|line| *line != "ok" && !line.starts_with("***")).collect();
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    // Damage of the schema itself must not hide the flaws, which are then listed without table names.
    let trees = trees(connection).unwrap_or_default();
    Ok(lines.into_iter().map(|line| DatabaseFlaw::Page(with_table(line, &trees))).collect())
}

/// Maps the first page of tables and indexes to their names.
fn trees(connection: &Connection) -> DbResult<HashMap<i64, String>> {
    let sql = "SELECT rootpage, type || ' ' || name AS tree FROM sqlite_schema WHERE rootpage > 0";
    let tx: &dyn EngineTransaction = connection;
    let trees = tx.list(sql, params![], |row| Ok((row.get("rootpage")?, row.get("tree")?)))?;
    Ok(trees.into_iter().collect())
}

/// Lists the foreign-key violations.
pub(super) fn foreign_key_violations(connection: &Connection) -> DbResult<Vec<DatabaseFlaw>> {
    let sql = "SELECT \"table\", rowid, parent FROM pragma_foreign_key_check";
    let tx: &dyn EngineTransaction = connection;
    tx.list_flaws(sql, "foreign-key violations", |row| {
        let table = row.text("table")?;
        let parent = row.text("parent")?;
        let number: Option<i64> = row.get("rowid")?;
        let row = number.map(|number| format!(" {number}")).unwrap_or_default();
        Ok(DatabaseFlaw::Reference(format!(
            "{table}{row}: foreign-key violation: the row of {parent} does not exist"
        )))
    })
}

/// Adds the name of the table or index to a line of SQLite's check about its tree.
fn with_table(line: &str, trees: &HashMap<i64, String>) -> String {
    let number = line.strip_prefix("Tree ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    match number.and_then(|number: i64| trees.get(&number)) {
        Some(name) => format!("{line} ({name})"),
        None => line.to_owned(),
    }
}
