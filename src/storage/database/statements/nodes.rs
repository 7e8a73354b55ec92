//! Stores nodes and leases. A node is a process that serves one database, with a row for each incarnation. A
//! lease covers work that one node does at a time.
//!
//! No clock decides here. An incarnation has a rising heartbeat. If a different node has seen it unchanged
//! for the expiry time, by its own monotonic clock, it ends the incarnation
//! ([`WriteTx::end_expired_incarnation`]), which releases its claims in the same transaction. Work that must
//! happen once checks in its own transaction that the lease is still held ([`WriteTx::holds_lease`]). The
//! check locks the row, so that no other node gets the lease before the transaction ends.

use jiff::Timestamp;
use uuid::Uuid;

use super::{ReadTx, WriteTx, optional_time, parse, time};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;

/// A node as other nodes see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// This run of the node.
    pub incarnation: Uuid,
    /// Name of the node, which stays the same after a restart.
    pub node: String,
    pub role: String,
    /// Rises while the node runs.
    pub heartbeat: i64,
    /// The row of the item log up to which it has followed: it serves no versions that these rows replaced.
    pub followed: i64,
    /// Time of its last heartbeat, by its own clock.
    pub seen: Timestamp,
    /// A JSON object with its description at the start of the incarnation.
    pub about: String,
    /// Its current faults: names separated by spaces.
    pub faults: String,
    /// A JSON object with its latest published figures.
    pub figures: String,
    /// Time at which it published them; `None` if it has published none.
    pub figures_at: Option<Timestamp>,
}

/// The outcome of beginning an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncarnationStart {
    /// It lasts until a node ends it.
    Started,
    /// A different running process uses the name of this node.
    NameTaken,
}

fn read_node(row: &dyn ResultRow) -> DbResult<NodeRow> {
    let incarnation: String = row.get("incarnation")?;
    let what = format!("node {incarnation}");
    Ok(NodeRow {
        incarnation: parse(&what, &incarnation)?,
        node: row.get("node")?,
        role: row.get("role")?,
        heartbeat: row.get("heartbeat")?,
        followed: row.get("followed_seq")?,
        seen: time(&what, row.get("heartbeat_at_ms")?)?,
        about: row.get("description")?,
        faults: row.get("faults")?,
        figures: row.get("figures")?,
        figures_at: optional_time(&what, row.get("figures_ms")?)?,
    })
}

/// An incarnation that begins.
#[derive(Clone, Copy, Debug)]
pub struct NewNode<'n> {
    pub incarnation: Uuid,
    /// The name of the node.
    pub node: &'n str,
    pub role: &'n str,
    /// The row of the item log up to which it follows.
    pub followed: i64,
    /// Its description, a JSON object.
    pub about: &'n str,
    /// Its current faults, separated by spaces.
    pub faults: &'n str,
}

#[cfg(test)]
impl<'n> NewNode<'n> {
    /// Creates a node without a description.
    pub(crate) fn bare(incarnation: Uuid, node: &'n str) -> Self {
        Self { incarnation, node, role: "all", followed: 0, about: "{}", faults: "" }
    }
}

impl ReadTx<'_> {
    /// Lists the running nodes.
    pub fn list_nodes(&self) -> DbResult<Vec<NodeRow>> {
        let sql = "SELECT incarnation, node, role, heartbeat, followed_seq, heartbeat_at_ms,
                 description, faults, figures, figures_ms
             FROM nodes ORDER BY node";
        self.tx.list(sql, params![], read_node)
    }

    /// Lists the leases that are held, each with the incarnation that holds it.
    pub fn list_leases(&self) -> DbResult<Vec<(String, Uuid)>> {
        self.tx.list("SELECT name, incarnation FROM leases ORDER BY name", params![], |row| {
            Ok((row.get("name")?, parse("a lease", row.text("incarnation")?)?))
        })
    }

    /// Returns whether the incarnation has not been ended.
    pub fn is_alive(&self, incarnation: Uuid) -> DbResult<bool> {
        self.tx.exists("SELECT 1 FROM nodes WHERE incarnation = ?1", params![incarnation])
    }

    /// Lists the rows of `state` whose names begin with `prefix`.
    pub fn list_states(&self, prefix: &str) -> DbResult<Vec<(String, String)>> {
        // `LIKE` would read `_` and `%` in the prefix as wildcards.
        let length = prefix.chars().count();
        let sql = "SELECT name, value FROM state WHERE substr(name, 1, ?2) = ?1 ORDER BY name";
        self.tx.list(sql, params![prefix, length], |row| Ok((row.get("name")?, row.get("value")?)))
    }
}

impl WriteTx<'_> {
    /// Begins an incarnation of a node. Idempotent, because an earlier attempt may have been committed
    /// without an answer. Ends the incarnations of the nodes `superseded` and releases their claims: the
    /// caller has checked that no process uses those names.
    pub fn begin_incarnation(
        &self,
        new: &NewNode<'_>,
        superseded: &[String],
        now: Timestamp,
    ) -> DbResult<IncarnationStart> {
        self.tx.run("DELETE FROM nodes WHERE incarnation = ?1", params![new.incarnation])?;
        for name in superseded {
            self.tx.run("DELETE FROM nodes WHERE node = ?1", params![name])?;
        }
        // The unique name decides between two processes that begin at the same time.
        let sql =
            "INSERT INTO nodes (incarnation, node, role, heartbeat, followed_seq, heartbeat_at_ms,
                 description, faults)
             VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7) ON CONFLICT (node) DO NOTHING";
        let NewNode { incarnation, node, role, followed, about, faults } = new;
        let values = params![incarnation, node, role, followed, now, about, faults];
        if !self.tx.changes(sql, values)? {
            return Ok(IncarnationStart::NameTaken);
        }
        // The incarnations that were just ended may have had messages and items in flight.
        self.release_orphaned_claims(now)?;
        Ok(IncarnationStart::Started)
    }

    /// Raises the heartbeat of an incarnation and records its position in the item log and its faults.
    /// Returns `false` if the incarnation was ended.
    pub fn write_heartbeat(
        &self,
        incarnation: Uuid,
        followed: i64,
        faults: &str,
        now: Timestamp,
    ) -> DbResult<bool> {
        // `heartbeat_at_ms` is for diagnosis only, because other nodes time the heartbeat by their own
        // clocks.
        let sql = "UPDATE nodes SET heartbeat = heartbeat + 1, followed_seq = ?2,
                 heartbeat_at_ms = ?3, faults = ?4
             WHERE incarnation = ?1";
        self.tx.changes(sql, params![incarnation, followed, now, faults])
    }

    /// Publishes the figures of an incarnation, a JSON object. Does nothing if the incarnation was ended.
    pub fn write_figures(&self, incarnation: Uuid, figures: &str, now: Timestamp) -> DbResult<()> {
        let sql = "UPDATE nodes SET figures = ?2, figures_ms = ?3 WHERE incarnation = ?1";
        self.tx.run(sql, params![incarnation, figures, now])
    }

    /// Ends an incarnation and releases its claims.
    pub fn end_incarnation(&self, incarnation: Uuid, now: Timestamp) -> DbResult<()> {
        self.tx.run("DELETE FROM nodes WHERE incarnation = ?1", params![incarnation])?;
        self.release_orphaned_claims(now)
    }

    /// Ends an incarnation if its heartbeat still has the given value. Returns whether it did.
    pub fn end_expired_incarnation(
        &self,
        incarnation: Uuid,
        heartbeat: i64,
        now: Timestamp,
    ) -> DbResult<bool> {
        // Compared once more here, because the node may have written a heartbeat since it was observed.
        let sql = "DELETE FROM nodes WHERE incarnation = ?1 AND heartbeat = ?2";
        let ended = self.tx.changes(sql, params![incarnation, heartbeat])?;
        if ended {
            self.release_orphaned_claims(now)?;
        }
        Ok(ended)
    }

    /// Releases the claims of ended incarnations: messages wait again and items return to their queues.
    /// Deliveries become due when their claim ends.
    pub fn release_orphaned_claims(&self, now: Timestamp) -> DbResult<()> {
        // Messages in flight without an incarnation came with a migration of the archive.
        let sql = "UPDATE outbox SET state = 'waiting', incarnation = NULL, next_ms = ?1
             WHERE state = 'sending' AND (incarnation IS NULL
                 OR incarnation NOT IN (SELECT incarnation FROM nodes))";
        self.tx.run(sql, params![now])?;
        let orphaned = "SELECT 1 FROM queued_items WHERE incarnation IS NOT NULL
             AND incarnation NOT IN (SELECT incarnation FROM nodes) LIMIT 1";
        if self.tx.exists(orphaned, params![])? {
            // Only if items are released, because a new number wakes the waiting polls.
            let sequence = self.next_stream_sequence()?;
            let sql = "UPDATE queued_items SET incarnation = NULL, available_seq = ?1
                 WHERE incarnation IS NOT NULL
                     AND incarnation NOT IN (SELECT incarnation FROM nodes)";
            self.tx.run(sql, params![sequence])?;
        }
        Ok(())
    }

    /// Acquires a free lease for a running incarnation. Returns whether the incarnation holds it now.
    pub fn take_lease(&self, name: &str, incarnation: Uuid) -> DbResult<bool> {
        // Selected from `nodes`, so that an ended incarnation gets no lease.
        let sql = "INSERT INTO leases (name, incarnation) SELECT ?1, incarnation FROM nodes
             WHERE incarnation = ?2
             ON CONFLICT (name) DO NOTHING";
        self.tx.run(sql, params![name, incarnation])?;
        self.holds_lease(name, incarnation)
    }

    /// Returns whether the incarnation holds the lease, and locks the lease until the transaction ends.
    pub fn holds_lease(&self, name: &str, incarnation: Uuid) -> DbResult<bool> {
        // An update without effect, because it locks the row in both engines.
        let sql = "UPDATE leases SET incarnation = incarnation
             WHERE name = ?1 AND incarnation = ?2";
        self.tx.changes(sql, params![name, incarnation])
    }

    /// Releases a lease if the incarnation holds it.
    pub fn release_lease(&self, name: &str, incarnation: Uuid) -> DbResult<()> {
        let sql = "DELETE FROM leases WHERE name = ?1 AND incarnation = ?2";
        self.tx.run(sql, params![name, incarnation])
    }
}
