//! The schema, one step a release that changed it, with the number that SQLite's schema has then. A
//! step that was released never changes.

use std::{cell::Cell, sync::Arc, time::Duration};

use tokio_postgres::Transaction;

use super::lives::{Lives, Span};
use super::server::Server;
use super::session::{Desk, Session};
use super::{Client, SCHEMA, aside, number};
use crate::runtime::limits::{DB_ANSWER_TIME, DB_MIGRATE_MS, DB_MIGRATE_TRIES};
use crate::storage::database::connection::Purpose;
use crate::storage::database::{DbError, EngineError};

/// The number of the schema that a step leads to, and the step.
pub(super) type Step = (i64, &'static str);

/// All steps.
pub(super) const STEPS: [Step; 5] = [
    (8, include_str!("0008.sql")),
    (9, include_str!("0009.sql")),
    (10, include_str!("0010.sql")),
    (11, include_str!("0011.sql")),
    (12, include_str!("0012.sql")),
];

/// The table that is there first: whose turn it is to write, how much was written, and the number of
/// the schema.
const WRITER: &str = "CREATE TABLE writer (
    one BOOLEAN PRIMARY KEY CHECK (one),
    version BIGINT NOT NULL,
    schema BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO writer VALUES (TRUE, 0, 0)";

/// What others do at the same moment: the same table, its row, its type; a lock they have.
const BESIDE: [&str; 6] = ["42P07", "42710", "23505", "40001", "40P01", "55P03"];

/// The number of the schema that this version works with.
pub(in crate::storage::database) fn latest() -> i64 {
    last(&STEPS)
}

/// The number of the schema that steps lead to.
fn last(steps: &[Step]) -> i64 {
    steps.iter().map(|(number, _)| *number).max().unwrap_or_default()
}

/// Makes the tables in an empty database, brings an older schema up to date, and refuses one that a
/// later version of the product made. Of several nodes that start together one does it. Gives the number of
/// the older schema and that of this one.
///
/// Fails with [`DbError::Schema`] also where the server or the database is none that can be used, and
/// with [`DbError::InUse`] where nodes live on an older schema, which is looked at for seconds.
pub(in crate::storage::database) fn migrate(
    server: &Arc<Server>,
) -> Result<Option<(i64, i64)>, DbError> {
    migrate_by(server, (&STEPS, Span::default()))
}

/// The same by these steps.
pub(super) fn migrate_by(
    server: &Arc<Server>,
    (steps, span): (&[Step], Span),
) -> Result<Option<(i64, i64)>, DbError> {
    aside(|| {
        let mut session = Session::open(server, Purpose::Write)?;
        check(&mut session, server)?;
        for _ in 1..DB_MIGRATE_TRIES {
            match attempt(&mut session, server, (steps, span)) {
                Err(DbError::Engine(EngineError::Postgres(cause))) if cause.is_one_of(&BESIDE) => {
                }
                outcome => return outcome,
            }
        }
        attempt(&mut session, server, (steps, span))
    })
}

/// Looks whether nodes live where there is something to do to tables that there are, and does it.
fn attempt(
    session: &mut Session,
    server: &Server,
    (steps, span): (&[Step], Span),
) -> Result<Option<(i64, i64)>, DbError> {
    let found = schema(session)?;
    let lives = match (1..last(steps)).contains(&found) {
        true => Some(Lives::watch(session, server, (found, span))?),
        false => None,
    };
    let outcome = step(session, server, (steps, lives.as_ref()));
    if let (Err(_), Some(lives)) = (&outcome, &lives) {
        lives.leave(session);
    }
    outcome
}

/// Looks whether the database has the schema of this version, for a process that only reads.
///
/// Fails with [`DbError::Schema`] when it has another one or none.
pub(in crate::storage::database) fn look(server: &Arc<Server>) -> Result<(), DbError> {
    aside(|| {
        let mut session = Session::open(server, Purpose::Read)?;
        check(&mut session, server)?;
        let (found, latest) = (schema(&mut session)?, latest());
        if found == latest {
            return Ok(());
        }
        Err(DbError::Schema(format!(
            "{} has schema {found}, this is {latest}; start a node that writes first",
            server.name()
        )))
    })
}

/// The number of the schema; 0 where there is none.
fn schema(session: &mut Session) -> Result<i64, DbError> {
    let Session { desk, client } = session;
    let sql = "SELECT CASE WHEN to_regclass('writer') IS NULL THEN 0 ELSE 1 END";
    match number(&desk.wait(client.simple_query(sql))?)? {
        0 => Ok(0),
        _ => number(&desk.wait(client.simple_query(SCHEMA))?),
    }
}

/// Fails where the schema is another one than that of this version: it was changed while this process ran.
pub(super) fn expect(server: &Server, found: i64) -> Result<(), DbError> {
    let latest = latest();
    if found == latest {
        return Ok(());
    }
    let cause = match found > latest {
        true => later(server, (found, latest)),
        false => DbError::Schema(format!(
            "{} has schema {found}, this is {latest}: an earlier state of it was put back; start this \
             process again",
            server.name()
        )),
    };
    server.tell_schema(&cause);
    Err(cause)
}

fn later(server: &Server, (found, latest): (i64, i64)) -> DbError {
    DbError::Schema(format!(
        "{} has schema {found} and this version of wirephoto knows schemas up to {latest}: a \
         later version wrote it, and only that one or a later one can use it",
        server.name()
    ))
}

/// Runs statements that set a test's scene, each by itself.
#[cfg(test)]
pub(in crate::storage::database) fn run(
    server: &Arc<Server>,
    purpose: Purpose,
    sql: &str,
) -> Result<(), DbError> {
    aside(|| {
        let Session { desk, client } = Session::open(server, purpose)?;
        desk.wait(client.batch_execute(sql))
    })
}

/// Whether statements mean there what they mean here.
fn check(session: &mut Session, server: &Server) -> Result<(), DbError> {
    let Session { desk, client } = session;
    let wrong = |why: String| Err(DbError::Schema(format!("{}: {why}", server.name())));
    let sql = "SELECT current_setting('server_version_num')";
    let version = number(&desk.wait(client.simple_query(sql))?)?;
    if version < 150_000 {
        return wrong(format!("PostgreSQL 15 or later is needed, this is {}", version / 10_000));
    }
    // One number for all: encoding, order of texts, letters that have no other case.
    let sql = "SELECT CASE WHEN current_setting('server_encoding') = 'UTF8'
             AND 'B' < 'a' AND 'a' < U&'\\00e5' AND U&'\\00e5' < U&'\\0105'
             AND lower(U&'\\00c5') = U&'\\00c5' THEN 1 ELSE 0 END";
    let is_usable = desk.wait(client.simple_query(sql)).and_then(|found| number(&found));
    if !is_usable.is_ok_and(|number| number == 1) {
        return wrong(
            "its encoding must be UTF8 and its locale C: CREATE DATABASE name ENCODING 'UTF8' \
             LOCALE 'C' TEMPLATE template0"
                .to_owned(),
        );
    }
    Ok(())
}

/// Looks at the schema and does what is to be done, in one transaction.
fn step(
    session: &mut Session,
    server: &Server,
    (steps, lives): (&[Step], Option<&Lives>),
) -> Result<Option<(i64, i64)>, DbError> {
    let Session { desk, client } = session;
    let transaction = desk.wait(client.transaction())?;
    match bring_up_to_date((desk, &transaction), server, (steps, lives)) {
        Ok(done) => {
            desk.wait(transaction.commit())?;
            Ok(done)
        }
        Err(cause) => {
            drop(transaction);
            desk.settle();
            Err(cause)
        }
    }
}

fn bring_up_to_date(
    (desk, transaction): (&Desk, &Transaction<'_>),
    server: &Server,
    (steps, lives): (&[Step], Option<&Lives>),
) -> Result<Option<(i64, i64)>, DbError> {
    let sql = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('writer')";
    if number(&desk.wait(transaction.simple_query(sql))?)? == 0 {
        desk.wait(transaction.batch_execute(WRITER))?;
    }
    let sql = "SELECT schema FROM writer FOR UPDATE";
    let found = number(&desk.wait(transaction.simple_query(sql))?)?;
    let latest = last(steps);
    if found > latest {
        return Err(later(server, (found, latest)));
    }
    let wrote = Cell::new(false);
    let engine = Client::new(desk, transaction, &wrote).engine();
    if found < latest {
        if found > 0 {
            let Some(lives) = lives else {
                let words = format!("another process makes the tables of {}", server.name());
                return Err(DbError::InUse(format!("{words}; try again when it has ended")));
            };
            lives.end(engine, server)?;
            tracing::warn!(
                from = found,
                to = latest,
                "the schema of the database is brought up to date; earlier versions of wirephoto \
                 cannot use it then, and a dump from before is the way back"
            );
        }
        run_steps((desk, transaction), server, (steps, found))?;
    }
    Ok((found > 0 && found < latest).then_some((found, latest)))
}

/// Runs the steps behind the schema of that number.
fn run_steps(
    (desk, transaction): (&Desk, &Transaction<'_>),
    server: &Server,
    (steps, found): (&[Step], i64),
) -> Result<(), DbError> {
    desk.has_time(Duration::from_millis(DB_MIGRATE_MS) + DB_ANSWER_TIME);
    let limit = format!("SET LOCAL statement_timeout = {DB_MIGRATE_MS}");
    desk.wait(transaction.batch_execute(&limit))?;
    for (to, sql) in steps.iter().filter(|(to, _)| *to > found) {
        desk.wait(transaction.batch_execute(sql)).map_err(|cause| {
            let beside = matches!(&cause, DbError::Engine(EngineError::Postgres(cause))
                if cause.is_one_of(&BESIDE) || cause.is_resource());
            let text = format!("{}: step {to}: {cause}", server.name());
            if beside { cause } else { DbError::Schema(text) }
        })?;
    }
    let sql = format!("UPDATE writer SET schema = {}, version = version + 1", last(steps));
    desk.wait(transaction.batch_execute(&sql))
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_engines_have_the_schema_of_the_same_number() {
        let sqlite = crate::storage::database::sqlite::copy::latest().unwrap();
        assert_eq!(super::latest(), i64::from(sqlite), "a step of one is a step of the other");
    }
}
