//! Runs PostgreSQL's migrations.

use std::{sync::Arc, time::Duration};

use super::incarnations::{HeartbeatTimes, IncarnationWatch};
use super::server::PostgresServer;
use super::session::{ServerSession, run_blocking};
use super::transaction::ServerTransaction;
use crate::runtime::limits::DB_ANSWER_TIME;
use crate::storage::database::engine::ConnectionPurpose;
use crate::storage::database::error::{DbError, DbResult};
use crate::storage::database::migrations::{
    LATEST, Migration, POSTGRES, SchemaStatus, StoredSchema, find_hash, later, latest,
    log_upgrade, write_hash,
};

/// Attempts to create the schema while other processes do the same.
const DB_MIGRATE_TRIES: u32 = 10;
/// Milliseconds that one migration of the schema may take.
const DB_MIGRATE_MS: u64 = 3_600_000;
/// Creates the first table. Its single row is the cluster write lock, with the version and the number of the
/// schema.
const WRITER: &str = "CREATE TABLE writer (
    one BOOLEAN PRIMARY KEY CHECK (one),
    version BIGINT NOT NULL,
    schema BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO writer VALUES (TRUE, 0, 0)";
/// Counts the table that [`WRITER`] creates.
const HAS_WRITER: &str = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('writer')";

/// SQLSTATEs of concurrent migrations: the same table, its row or its type exists, or a lock is held.
const CONCURRENT_CODES: [&str; 6] = ["42P07", "42710", "23505", "40001", "40P01", "55P03"];

/// Creates the tables in an empty database, upgrades an older schema, and refuses a schema that this version
/// cannot use. If several nodes start together, one does it. Returns the numbers of the older schema and of
/// this one if it upgraded.
///
/// Fails with [`DbError::Schema`] also if the server or the database is unsuitable. Fails with
/// [`DbError::InUse`] if nodes are running on an older schema; this check lasts seconds.
pub(in crate::storage::database) fn migrate(
    server: &Arc<PostgresServer>,
    migrations: &[Migration],
) -> DbResult<Option<(i64, i64)>> {
    SchemaUpgrade { server, migrations, span: HeartbeatTimes::default() }.run()
}

/// An upgrade of a database: its server, all migrations, and the times for watching heartbeats.
pub(super) struct SchemaUpgrade<'u> {
    pub(super) server: &'u Arc<PostgresServer>,
    pub(super) migrations: &'u [Migration],
    pub(super) span: HeartbeatTimes,
}

impl SchemaUpgrade<'_> {
    /// Returns the numbers of the older schema and of the last migration, if there was one to run.
    pub(super) fn run(&self) -> DbResult<Option<(i64, i64)>> {
        run_blocking(|| {
            let mut session = ServerSession::open(self.server, ConnectionPurpose::Write)?;
            check(&session, self.server)?;
            // If several nodes start together, one succeeds, and the others find its result.
            for _ in 1..DB_MIGRATE_TRIES {
                match self.attempt(&mut session) {
                    Err(DbError::Engine(cause)) if cause.has_code(&CONCURRENT_CODES) => {}
                    outcome => return outcome,
                }
            }
            self.attempt(&mut session)
        })
    }

    /// Makes one attempt: waits until no node is running if tables are to be changed, and changes them.
    fn attempt(&self, session: &mut ServerSession) -> DbResult<Option<(i64, i64)>> {
        let stored = ServerTransaction::begin(session)?.run(stored_schema)?;
        // An empty or current database has no tables to change, so no node must stop.
        let watch = match SchemaStatus::compare(&stored, self.migrations, &self.server.name())? {
            SchemaStatus::New | SchemaStatus::Current => None,
            SchemaStatus::Older(found) => {
                Some(IncarnationWatch::wait_until_expired(session, self.server, found, self.span)?)
            }
        };
        let outcome = ServerTransaction::begin(session)
            .and_then(|tx| tx.run(|tx| self.bring_up_to_date(tx, watch.as_ref())));
        if let (Err(_), Some(watch)) = (&outcome, &watch) {
            watch.unregister(session);
        }
        outcome
    }

    fn bring_up_to_date(
        &self,
        tx: &ServerTransaction<'_>,
        watch: Option<&IncarnationWatch>,
    ) -> DbResult<Option<(i64, i64)>> {
        if tx.number(HAS_WRITER)? == 0 {
            tx.batch(WRITER)?;
        }
        // Read again under the lock, because a different process may have migrated since.
        tx.lock_schema()?;
        let stored = stored_schema(tx)?;
        let found = stored.number;
        let latest = latest(self.migrations);
        let upgraded = match SchemaStatus::compare(&stored, self.migrations, &self.server.name())?
        {
            SchemaStatus::Current => return Ok(None),
            SchemaStatus::New => None,
            SchemaStatus::Older(_) => {
                // The first read found no tables, so they were created after it.
                let Some(watch) = watch else {
                    let name = self.server.name();
                    return Err(DbError::InUse(format!(
                        "another process is creating the tables of {name}; try again when it has \
                         finished"
                    )));
                };
                watch.end(tx, self.server)?;
                log_upgrade(found, latest, "dump");
                Some((found, latest))
            }
        };
        // Migrating large tables exceeds the usual time limits.
        tx.allow_time(Duration::from_millis(DB_MIGRATE_MS) + DB_ANSWER_TIME);
        tx.batch(&format!("SET LOCAL statement_timeout = {DB_MIGRATE_MS}"))?;
        for migration in self.migrations.iter().filter(|migration| migration.number > found) {
            tx.batch(migration.sql).map_err(|cause| self.failed(migration, cause))?;
        }
        write_hash(tx, self.migrations)?;
        // The version is raised too, so that followers of running processes see the change.
        tx.batch(&format!("UPDATE writer SET schema = {latest}, version = version + 1"))?;
        Ok(upgraded)
    }

    /// Maps the error of a migration. Errors of concurrent migrations and temporary errors stay unchanged, so
    /// that they are retried.
    fn failed(&self, migration: &Migration, cause: DbError) -> DbError {
        if matches!(&cause, DbError::Engine(error) if error.has_code(&CONCURRENT_CODES) || error.is_resource())
        {
            return cause;
        }
        DbError::Schema(format!("{}: step {}: {cause}", self.server.name(), migration.number))
    }
}

/// Checks that the database has the schema of this version, for a read-only process.
///
/// Fails with [`DbError::Schema`] if it has a different schema or none.
pub(in crate::storage::database) fn check_schema(server: &Arc<PostgresServer>) -> DbResult<()> {
    run_blocking(|| {
        let mut session = ServerSession::open(server, ConnectionPurpose::Read)?;
        check(&session, server)?;
        let stored = ServerTransaction::begin(&mut session)?.run(stored_schema)?;
        let found = match SchemaStatus::compare(&stored, &POSTGRES, &server.name())? {
            SchemaStatus::Current => return Ok(()),
            SchemaStatus::New => 0,
            SchemaStatus::Older(found) => found,
        };
        Err(DbError::Schema(format!(
            "{} has schema {found}, this is {LATEST}; start a node that writes first",
            server.name()
        )))
    })
}

/// Reads the schema of the database.
fn stored_schema(tx: &ServerTransaction<'_>) -> DbResult<StoredSchema> {
    if tx.number(HAS_WRITER)? == 0 {
        return Ok(StoredSchema::default());
    }
    let number = tx.number("SELECT schema FROM writer")?;
    // A database whose tables are just being created has only this table.
    let hash = if number == 0 { None } else { find_hash(tx)? };
    Ok(StoredSchema { number, hash })
}

/// Fails if the schema does not belong to this version: it was changed while this process ran.
pub(super) fn expect_current(server: &PostgresServer, found: i64) -> DbResult<()> {
    if found == LATEST {
        return Ok(());
    }
    let cause = if found > LATEST {
        later(found, LATEST, &server.name())
    } else {
        DbError::Schema(format!(
            "{} has schema {found}, this is {LATEST}: an earlier state of it was restored; \
             restart this process",
            server.name()
        ))
    };
    server.log_schema_mismatch(&cause);
    Err(cause)
}

/// Checks that the server is suitable: its version, encoding and collation.
fn check(session: &ServerSession, server: &PostgresServer) -> DbResult<()> {
    let sql = "SELECT current_setting('server_version_num')";
    let version = session.number(sql)?;
    if version < 150_000 {
        let why = format!("PostgreSQL 15 or later is needed, this is {}", version / 10_000);
        return Err(unsuitable(server, &why));
    }
    // One number for all checks: the encoding, byte order of texts, and `lower` changing only ASCII
    // characters.
    let sql = "SELECT CASE WHEN current_setting('server_encoding') = 'UTF8'
             AND 'B' < 'a' AND 'a' < U&'\\00e5' AND U&'\\00e5' < U&'\\0105'
             AND lower(U&'\\00c5') = U&'\\00c5' THEN 1 ELSE 0 END";
    if !session.number(sql).is_ok_and(|number| number == 1) {
        let why = "its encoding must be UTF8 and its locale C: CREATE DATABASE name ENCODING \
             'UTF8' LOCALE 'C' TEMPLATE template0";
        return Err(unsuitable(server, why));
    }
    Ok(())
}

fn unsuitable(server: &PostgresServer, why: &str) -> DbError {
    DbError::Schema(format!("{}: {why}", server.name()))
}
