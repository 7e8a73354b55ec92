//! Checks that no node runs on a database whose schema is about to change, because running nodes were built
//! for the present schema.
//!
//! An incarnation has ended if its heartbeat does not change for the expiry time, by the clock of an observer
//! that was able to write in the meantime. `cluster::membership` has the rule. So a schema upgrade watches
//! the heartbeats for that time, but only if there are incarnations at all.
//!
//! A node that is alone writes a heartbeat every ten minutes, and a node that sees a second one does so at
//! once. So the upgrade registers in `nodes` too, with a separate role. Upgrades that run at the same time
//! ignore each other's rows, and one of them migrates.
//!
//! The upgrade watches before it acquires the write lock, because heartbeats are writes and need the lock.
//! Under the lock it checks once more and then ends all incarnations, in the transaction that changes the
//! schema. A node that runs nevertheless finds a different schema at its next write, and its claims find no
//! incarnation.

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
use crate::storage::database::error::{DbError, DbResult};

/// The role of an upgrade in `nodes`.
const ROLE: &str = "upgrade";

/// The times for watching heartbeats.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeartbeatTimes {
    /// Time without a change of the heartbeat after which an incarnation has ended.
    pub(super) expiry: Duration,
    /// Interval between two polls.
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

/// Watches the incarnations of nodes until all have ended.
pub(super) struct IncarnationWatch {
    /// The id under which this process is registered.
    own_id: Uuid,
    schema: i64,
    /// The heartbeat of each incarnation at the first poll.
    seen: HashMap<String, i64>,
}

impl IncarnationWatch {
    /// Watches the incarnations in a database of that schema until their heartbeats have expired. Returns at
    /// once if there are none.
    ///
    /// Fails with [`DbError::InUse`] if a heartbeat changes.
    pub(super) fn wait_until_expired(
        session: &mut ServerSession,
        server: &PostgresServer,
        schema: i64,
        span: HeartbeatTimes,
    ) -> DbResult<Self> {
        let mut watch = Self { own_id: Uuid::new_v4(), schema, seen: HashMap::new() };
        let outcome = watch.poll_until_expired(session, server, span);
        // Otherwise nodes would count this process as a node until its heartbeat expires.
        if outcome.is_err() {
            watch.unregister(session);
        }
        outcome.map(|()| watch)
    }

    fn poll_until_expired(
        &mut self,
        session: &mut ServerSession,
        server: &PostgresServer,
        span: HeartbeatTimes,
    ) -> DbResult<()> {
        let first = self.observe(session)?.unwrap_or_default();
        // Nodes that were stopped have removed their rows.
        if first.is_empty() {
            return Ok(());
        }
        tracing::info!(
            nodes = first.len(),
            "schema upgrade: checking that no node of an earlier version is running"
        );
        self.seen = first.into_iter().map(|node| (node.id, node.heartbeat)).collect();
        let since = Stopwatch::start();
        let mut polls = 0;
        // `_open` keeps the channel open, so that receiving from it waits for the whole interval.
        let (_open, never) = mpsc::channel::<()>();
        // If too few polls were able to write, the nodes may have been unable to write heartbeats as well.
        while since.elapsed() < span.expiry || polls < NODE_HEARTBEATS_MIN {
            match never.recv_timeout(span.interval) {
                Ok(()) | Err(_) => {}
            }
            // A different process has upgraded the schema, so nothing remains to be done.
            let Some(found) = self.observe(session)? else { return Ok(()) };
            self.refuse(server, &found)?;
            polls += 1;
        }
        Ok(())
    }

    /// Writes a heartbeat of this process and lists the incarnations of nodes. Returns `None` if the schema
    /// has changed in the meantime.
    fn observe(&self, session: &mut ServerSession) -> DbResult<Option<Vec<NodeIncarnation>>> {
        ServerTransaction::begin(session)?.run(|tx| {
            if tx.lock_schema()? != self.schema {
                return Ok(None);
            }
            // The greatest row number, so that the item log is not retained for this process.
            let sql = "INSERT INTO nodes (incarnation, node, role, heartbeat, followed_seq,
                     heartbeat_at_ms)
                 VALUES (?1, ?1, ?2, 0, ?3, CAST(extract(epoch FROM now()) * 1000 AS BIGINT))
                 ON CONFLICT (incarnation) DO UPDATE SET heartbeat = nodes.heartbeat + 1,
                     heartbeat_at_ms = excluded.heartbeat_at_ms";
            tx.execute(sql, params![self.own_id, ROLE, i64::MAX])?;
            list(tx).map(Some)
        })
    }

    /// Fails if one of the incarnations found is new or has raised its heartbeat since the first poll.
    fn refuse(&self, server: &PostgresServer, found: &[NodeIncarnation]) -> DbResult<()> {
        let running = found.iter().filter(|node| self.seen.get(&node.id) != Some(&node.heartbeat));
        let running: Vec<String> =
            running.map(|node| format!("{} ({})", node.node, node.role)).collect();
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

    /// Ends all incarnations, in the transaction that holds the write lock and changes the schema.
    ///
    /// Fails with [`DbError::InUse`] if a node is still running.
    pub(super) fn end(&self, tx: &dyn EngineTransaction, server: &PostgresServer) -> DbResult<()> {
        // A node may have started after the last poll. Under the write lock, none can start.
        self.refuse(server, &list(tx)?)?;
        // Their claimed work is released when the next incarnation begins.
        tx.run("DELETE FROM nodes", params![])
    }

    /// Removes the registration of this process. It holds nothing that other processes wait for, so the write
    /// lock is not needed. If the removal fails, nodes see the heartbeat expire.
    pub(super) fn unregister(&self, session: &ServerSession) {
        let sql = format!("DELETE FROM nodes WHERE incarnation = '{}'", self.own_id);
        if let Err(cause) = session.batch(&sql) {
            tracing::debug!("schema upgrade: cannot remove its row of `nodes`: {cause}");
        }
    }
}

/// Lists the incarnations of nodes, without upgrades.
fn list(tx: &dyn EngineTransaction) -> DbResult<Vec<NodeIncarnation>> {
    let sql =
        "SELECT incarnation, node, role, heartbeat FROM nodes WHERE role <> ?1 ORDER BY node";
    tx.list(sql, params![ROLE], |row| {
        Ok(NodeIncarnation {
            id: row.get("incarnation")?,
            node: row.get("node")?,
            role: row.get("role")?,
            heartbeat: row.get("heartbeat")?,
        })
    })
}
