//! Opens the databases of tests: SQLite's, or PostgreSQL's where a server is configured.

use std::{path::Path, sync::Arc};

use super::engine::ConnectionPurpose;
use super::error::DbError;
use super::handle::Db;
use super::migrations::{Migration, POSTGRES, SQLITE};
use super::postgres;
use super::threads::DatabaseThreads;
use model::ContentHash;

/// The variable that names a database of locale C in which tests may create schemas.
const SERVER: &str = "TEST_POSTGRES";

/// Returns the PostgreSQL database of that folder, without its tables; `None` where tests run on SQLite.
pub(in crate::storage::database) fn scratch_server(
    dir: &Path,
) -> Result<Option<Arc<postgres::PostgresServer>>, DbError> {
    #[expect(clippy::disallowed_methods, reason = "it says what tests run on")]
    let Ok(url) = std::env::var(SERVER) else { return Ok(None) };
    // Tests run concurrently over one server, so each folder has a schema of its own.
    let name = ContentHash::new(dir.as_os_str().as_encoded_bytes()).to_string();
    let name = format!("test_{}", &name[..16]);
    let server = Arc::new(postgres::PostgresServer::parse(&url)?);
    postgres::run(
        &server,
        ConnectionPurpose::Write,
        &format!("CREATE SCHEMA IF NOT EXISTS {name}"),
    )?;
    let separator = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{separator}options=-c%20search_path%3D{name}");
    Ok(Some(Arc::new(postgres::PostgresServer::parse(&url)?.looked_at_each_time())))
}

impl Db {
    /// Opens the test database of that folder. The same folder is the same database.
    pub(crate) fn scratch(dir: &Path) -> Result<Self, DbError> {
        Self::scratch_with(dir, &SQLITE, &POSTGRES)
    }

    /// Opens the test database with the schema that the migrations of its engine lead to.
    pub(super) fn scratch_with(
        dir: &Path,
        for_sqlite: &[Migration],
        for_postgres: &[Migration],
    ) -> Result<Self, DbError> {
        let Some(server) = scratch_server(dir)? else { return Self::open_with(dir, for_sqlite) };
        let upgraded = postgres::migrate(&server, for_postgres)?;
        let threads = DatabaseThreads::start(server, None)?;
        Ok(Self::from_threads(threads, false, upgraded))
    }
}
