//! Passes SQLite's migrations to the driver, and tests that they still lead to the schemas of released
//! versions.

use rusqlite_migration::{M, Migrations};

use crate::storage::database::migrations::SQLITE;

/// Returns all migrations. The driver counts those that ran in `user_version`.
pub(super) fn all() -> Migrations<'static> {
    Migrations::new(SQLITE.map(M::up).to_vec())
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    #[test]
    fn the_migrations_run_on_an_empty_database() {
        assert_eq!(super::all().validate(), Ok(()));
    }

    /// Returns the schema's statements in their order.
    fn statements(connection: &Connection) -> Vec<String> {
        let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid";
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn a_step_that_was_released_never_changes() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemas/database");
        for number in 1.. {
            let path = format!("{folder}/{number:02}.sql");
            let Ok(dump) = std::fs::read_to_string(&path) else { break };
            let released = Connection::open_in_memory().unwrap();
            released.execute_batch(&dump).unwrap();
            let mut migrated = Connection::open_in_memory().unwrap();
            super::all().to_version(&mut migrated, number).unwrap();
            assert_eq!(statements(&released), statements(&migrated), "{path}");
        }
    }

    #[test]
    fn every_column_is_copied_to_another_database_or_rebuilt_there() {
        use crate::storage::database::statements::archive_migration::{
            ITEM_LOG, ITEMS, MigratedTable, TABLES,
        };
        let mut connection = Connection::open_in_memory().unwrap();
        super::all().to_latest(&mut connection).unwrap();
        let sql =
            "SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        // Derived from documents, or valid only for one database and its nodes.
        let rebuilt = [
            "versions.",
            "nodes.",
            "leases.",
            "diagnostics.",
            "queued_items.life",
            "outbox.life",
            "deliveries.life",
            "uploads.",
            "upload_parts.",
        ];
        let copied: Vec<String> =
            TABLES.iter().chain([&ITEMS, &ITEM_LOG]).flat_map(MigratedTable::columns).collect();
        for column in columns.map(Result::unwrap) {
            let is_rebuilt = rebuilt.iter().any(|start| column.starts_with(start));
            assert!(is_rebuilt || copied.contains(&column), "{column} does not move");
        }
    }

    #[test]
    fn users_and_keys_of_the_first_schema_are_taken_over() {
        let mut connection = Connection::open_in_memory().unwrap();
        super::all().to_version(&mut connection, 1).unwrap();
        let rows = "INSERT INTO users VALUES ('editor', 1, '[\"ROLE_OFP\"]'), ('gone', 0, '[]');
             INSERT INTO api_keys VALUES ('a', 'editor', 'desk', 5), ('b', 'orphan', 'old', 6),
                 ('c', 'orphan', 'new', 7);";
        connection.execute_batch(rows).unwrap();
        super::all().to_latest(&mut connection).unwrap();
        let mut statement = connection
            .prepare(
                "SELECT user_name, active, user_id < 0, group_concat(key_hash)
                 FROM users LEFT JOIN api_keys USING (user_id) GROUP BY user_id ORDER BY user_name",
            )
            .unwrap();
        let found: Vec<(String, bool, bool, Option<String>)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let row = |name: &str, active, keys: Option<&str>| {
            (name.to_owned(), active, true, keys.map(str::to_owned))
        };
        let expected = [
            row("editor", true, Some("a")),
            row("gone", false, None),
            row("orphan", true, Some("b,c")),
        ];
        assert_eq!(found, expected);
    }
}
