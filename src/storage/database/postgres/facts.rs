//! What PostgreSQL tells of itself.

use super::client::Client;
use crate::storage::database::engine::params;
use crate::storage::database::error::DbError;
use crate::storage::database::statements::facts::DatabaseFacts;
use crate::storage::database::statements::time;

/// Tables of this schema that the role may not use as the service does.
const LACKING: &str = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()
    AND NOT (has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'SELECT')
        AND has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'INSERT')
        AND has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'UPDATE')
        AND has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'DELETE'))
    ORDER BY tablename";

impl Client<'_> {
    pub(in crate::storage::database) fn facts(self) -> Result<DatabaseFacts, DbError> {
        let engine = self.engine();
        let version: String =
            engine.load_value("SELECT current_setting('server_version')::text", params![])?;
        let role: String = engine.load_value("SELECT current_user::text", params![])?;
        let clock: i64 = engine.load_value(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
            params![],
        )?;
        let open: i64 = engine.load_value("SELECT count(*) FROM pg_stat_activity", params![])?;
        let most: i64 =
            engine.load_value("SELECT current_setting('max_connections')::bigint", params![])?;
        Ok(DatabaseFacts {
            engine: format!("PostgreSQL {version}"),
            role: Some(role),
            clock: Some(time("the server's clock", clock)?),
            connections: Some((open, most)),
            lacking: engine.list(LACKING, params![], |row| row.get(0))?,
        })
    }
}
