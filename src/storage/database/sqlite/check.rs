//! What SQLite can tell of its own file.

use std::collections::HashMap;

use super::client::Client;
use crate::runtime::limits::CHECK_FLAWS_MAX;
use crate::storage::database::engine::params;
use crate::storage::database::error::DbError;
use crate::storage::database::statements::check::{Flaw, list_flaws};

impl Client<'_> {
    /// What one of SQLite's own checks finds, with the name of each table.
    pub(in crate::storage::database) fn page_flaws(
        self,
        check: &str,
    ) -> Result<Vec<Flaw>, DbError> {
        let sql = format!("PRAGMA {check}({CHECK_FLAWS_MAX})");
        let mut statement = self.0.prepare(&sql)?;
        let mut rows = statement.query([])?;
        let mut texts: Vec<String> = Vec::new();
        loop {
            match rows.next() {
                Ok(Some(row)) => texts.push(row.get(0)?),
                Ok(None) => break,
                // Damage may end the check; what it found until then is told too.
                Err(cause) => {
                    texts.push(cause.to_string());
                    break;
                }
            }
        }
        let lines = texts.iter().flat_map(|text| text.lines());
        let lines: Vec<&str> =
            lines.filter(|line| *line != "ok" && !line.starts_with("***")).collect();
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let trees = self.trees().unwrap_or_default();
        Ok(lines.into_iter().map(|line| Flaw::Page(with_table(line, &trees))).collect())
    }

    /// Tables and indexes by their first page.
    fn trees(self) -> Result<HashMap<i64, String>, DbError> {
        let sql = "SELECT rootpage, type || ' ' || name FROM sqlite_schema WHERE rootpage > 0";
        let trees = self.engine().list(sql, params![], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(trees.into_iter().collect())
    }

    pub(in crate::storage::database) fn lost_references(self) -> Result<Vec<Flaw>, DbError> {
        let sql = "SELECT \"table\", rowid, parent FROM pragma_foreign_key_check";
        list_flaws(self.engine(), sql, "rows that refer to what is not there", |row| {
            let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
            let number: Option<i64> = row.get(1)?;
            let row = number.map(|number| format!(" {number}")).unwrap_or_default();
            Ok(Flaw::Reference(format!(
                "{table}{row}: a row refers to one of {parent} that is not there"
            )))
        })
    }
}

/// A line of SQLite's check with the name of the table or index whose tree it is about.
fn with_table(line: &str, trees: &HashMap<i64, String>) -> String {
    let number = line.strip_prefix("Tree ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    match number.and_then(|number: i64| trees.get(&number)) {
        Some(name) => format!("{line} ({name})"),
        None => line.to_owned(),
    }
}
