//! Whether nodes live on a database whose schema is to change: they were made for the schema that it has.
//!
//! A life is over when its beat stands still for long enough, by the clock of whoever looks and could write
//! meanwhile; `cluster::membership` has the rule. So who migrates looks for that long, but only where there are
//! lives at all. A node that is alone shows itself once in ten minutes, and one that sees another at once: who
//! looks is therefore in `nodes` too, with a role that tells what it is. Others that look at the same
//! time pass over it, and one of them migrates.
//!
//! It looks before it takes the turn to write and keeps it: signs of life are writes and need the turn. With
//! the turn that is kept comes a last look, and then all lives end, in the transaction that changes the schema. What
//! goes on all the same finds another schema with its next turn, and its claims find no life.

use std::{collections::HashMap, sync::mpsc, time::Duration};

use uuid::Uuid;

use super::server::PostgresServer;
use super::session::ServerSession;
use super::transaction::ServerTransaction;
use crate::runtime::clock::Stopwatch;
use crate::runtime::limits::{
    NODE_HEARTBEAT_EXPIRY, NODE_HEARTBEAT_INTERVAL, NODE_HEARTBEATS_MIN,
};
use crate::storage::database::engine::{EngineTransaction, params};
use crate::storage::database::error::DbError;

/// The first schema that knows of nodes.
const NODES_SINCE: i64 = 9;
/// The role of one who looks.
const ROLE: &str = "upgrade";

/// How long lives are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeartbeatTimes {
    /// A life whose beat stands still for that long is over.
    pub(super) expiry: Duration,
    /// Time between two looks.
    pub(super) interval: Duration,
}

impl Default for HeartbeatTimes {
    fn default() -> Self {
        Self { expiry: NODE_HEARTBEAT_EXPIRY, interval: NODE_HEARTBEAT_INTERVAL }
    }
}

/// A row of `nodes`.
struct NodeIncarnation {
    id: String,
    node: String,
    role: String,
    heartbeat: i64,
}

/// The lives of nodes that are over, as far as that was seen.
pub(super) struct IncarnationWatch {
    /// The life by which this process shows itself.
    own_id: Uuid,
    schema: i64,
    /// The beat of each life when it was looked at first.
    seen: HashMap<String, i64>,
}

impl IncarnationWatch {
    /// Looks at the lives in a database of that schema for as long as it takes to know that they are over;
    /// not at all where there are none.
    ///
    /// Fails with [`DbError::InUse`] when one goes on.
    pub(super) fn wait_until_expired(
        session: &mut ServerSession,
        server: &PostgresServer,
        schema: i64,
        span: HeartbeatTimes,
    ) -> Result<Self, DbError> {
        let mut lives = Self { own_id: Uuid::new_v4(), schema, seen: HashMap::new() };
        let outcome = lives.see_still(session, server, span);
        if outcome.is_err() {
            lives.unregister(session);
        }
        outcome.map(|()| lives)
    }

    fn see_still(
        &mut self,
        session: &mut ServerSession,
        server: &PostgresServer,
        span: HeartbeatTimes,
    ) -> Result<(), DbError> {
        if self.schema < NODES_SINCE {
            return Ok(());
        }
        let first = self.observe(session)?.unwrap_or_default();
        if first.is_empty() {
            return Ok(());
        }
        tracing::info!(
            nodes = first.len(),
            "the schema is to be brought up to date: looking whether nodes of an earlier version run"
        );
        self.seen = first.into_iter().map(|one| (one.id, one.heartbeat)).collect();
        let (since, mut looks) = (Stopwatch::start(), 0);
        let (_open, never) = mpsc::channel::<()>();
        while since.elapsed() < span.expiry || looks < NODE_HEARTBEATS_MIN {
            match never.recv_timeout(span.interval) {
                Ok(()) | Err(_) => {}
            }
            // Another process was faster where there is nothing: nothing is left to be done.
            let Some(found) = self.observe(session)? else { return Ok(()) };
            self.refuse(server, &found)?;
            looks += 1;
        }
        Ok(())
    }

    /// Shows this process and lists the lives of nodes; nothing where the schema is another one by now.
    fn observe(
        &self,
        session: &mut ServerSession,
    ) -> Result<Option<Vec<NodeIncarnation>>, DbError> {
        ServerTransaction::begin(session)?.run(|tx| {
            if tx.lock_schema()? != self.schema {
                return Ok(None);
            }
            // Nobody waits for it to follow the item log.
            let sql = "INSERT INTO nodes (life, node, role, beat, followed, seen_ms)
                 VALUES (?1, ?1, ?2, 0, ?3, CAST(extract(epoch FROM now()) * 1000 AS BIGINT))
                 ON CONFLICT (life) DO UPDATE SET beat = nodes.beat + 1, seen_ms = excluded.seen_ms";
            tx.execute(sql, params![self.own_id.to_string(), ROLE, i64::MAX])?;
            list(tx).map(Some)
        })
    }

    /// Fails when one of the lives that were found has begun or gone on since the first look.
    fn refuse(&self, server: &PostgresServer, found: &[NodeIncarnation]) -> Result<(), DbError> {
        let goes_on = |one: &&NodeIncarnation| self.seen.get(&one.id) != Some(&one.heartbeat);
        let named = |one: &NodeIncarnation| format!("{} ({})", one.node, one.role);
        let running: Vec<String> = found.iter().filter(goes_on).map(named).collect();
        if running.is_empty() {
            return Ok(());
        }
        Err(DbError::InUse(format!(
            "{} has schema {}, and nodes of an earlier version run on it: {}; stop all of them, then \
             start this version",
            server.name(),
            self.schema,
            running.join(", ")
        )))
    }

    /// Ends all lives, in the transaction that has the turn to write and changes the schema.
    ///
    /// Fails with [`DbError::InUse`] when one went on until now.
    pub(super) fn end(
        &self,
        tx: &dyn EngineTransaction,
        server: &PostgresServer,
    ) -> Result<(), DbError> {
        if self.schema < NODES_SINCE {
            return Ok(());
        }
        self.refuse(server, &list(tx)?)?;
        // What they held is free when the next life begins.
        tx.execute("DELETE FROM nodes", params![]).map(drop)
    }

    /// Does not show this process any more. Nobody waits for what it holds, which is nothing, so it needs no
    /// turn; where it cannot be done nodes take it for dead in time.
    pub(super) fn unregister(&self, session: &ServerSession) {
        if self.schema < NODES_SINCE {
            return;
        }
        let sql = format!("DELETE FROM nodes WHERE life = '{}'", self.own_id);
        if let Err(cause) = session.batch(&sql) {
            tracing::debug!("a look at nodes stays in their table: {cause}");
        }
    }
}

/// The lives of nodes.
fn list(tx: &dyn EngineTransaction) -> Result<Vec<NodeIncarnation>, DbError> {
    let sql = "SELECT life, node, role, beat FROM nodes WHERE role <> ?1 ORDER BY node";
    tx.list(sql, params![ROLE], |row| {
        let [life, node, role] = [0, 1, 2].map(|at| row.get(at));
        Ok(NodeIncarnation { id: life?, node: node?, role: role?, heartbeat: row.get(3)? })
    })
}
