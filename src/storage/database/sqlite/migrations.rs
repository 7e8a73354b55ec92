//! Runs SQLite's migrations.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::storage::database::engine::{EngineTransaction, params};
use crate::storage::database::error::{DbError, DbResult};
use crate::storage::database::migrations::{
    Migration, SchemaStatus, StoredSchema, find_hash, latest, write_hash,
};

/// Reads the schema of a database, whose number is in the header of the file.
pub(super) fn stored_schema(connection: &Connection) -> DbResult<StoredSchema> {
    let tx: &dyn EngineTransaction = connection;
    let number = tx.load_value("PRAGMA user_version", params![])?;
    // The file may belong to a different program.
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'state'";
    let hash = if tx.exists(table, params![])? { find_hash(tx)? } else { None };
    Ok(StoredSchema { number, hash })
}

/// Runs the migrations that the database at `path` lacks, in one transaction.
///
/// Fails with [`DbError::Schema`] if one of them fails, and changes nothing then.
pub(super) fn run(
    connection: &mut Connection,
    migrations: &[Migration],
    path: &Path,
) -> DbResult<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read under the lock, because a different process may have created the tables in the meantime.
    let stored = stored_schema(&transaction)?;
    let status = SchemaStatus::compare(&stored, migrations, &path.display())?;
    if status == SchemaStatus::Current {
        return Ok(());
    }
    for Migration { number, sql } in migrations {
        if *number > stored.number {
            transaction.execute_batch(sql).map_err(|cause| {
                DbError::Schema(format!("{}: step {number}: {cause}", path.display()))
            })?;
        }
    }
    let tx: &dyn EngineTransaction = &*transaction;
    write_hash(tx, migrations)?;
    transaction.pragma_update(None, "user_version", latest(migrations))?;
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::database::migrations::SQLITE;

    /// Creates the tables in memory.
    fn created() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        run(&mut connection, &SQLITE, Path::new("memory")).unwrap();
        connection
    }

    #[test]
    fn every_table_is_copied_to_another_database_or_left_out() {
        use crate::storage::database::statements::archive_migration::{
            ITEM_LOG, ITEMS, LEFT_OUT, TABLES,
        };
        let copied = TABLES.iter().chain([&ITEMS, &ITEM_LOG]).map(|table| table.name);
        let mut expected: Vec<&str> = copied.chain(LEFT_OUT).collect();
        expected.sort_unstable();
        let sql = "SELECT name FROM sqlite_schema
             WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
        let connection = created();
        let tx: &dyn EngineTransaction = &connection;
        assert_eq!(tx.list_values::<String>(sql, params![]).unwrap(), expected);
    }
}
