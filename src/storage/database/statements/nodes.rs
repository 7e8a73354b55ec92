//! Nodes: processes that serve one database, each for as long as its life lasts, and leases: work that
//! one of them does at a time.
//!
//! No time decides here. A life has a beat that rises; another node that saw it stand still for long
//! enough, by a clock of its own that only goes forward, ends it ([`WriteTx::end_still_life`]), and
//! what that life held is free in the same transaction. Whoever does what must happen once looks in its own
//! transaction whether it still holds the lease ([`WriteTx::holds_lease`]); the row is locked by that, so
//! that nobody else gets it before the transaction ends.

use jiff::Timestamp;
use uuid::Uuid;

use super::{ReadTx, WriteTx, damaged, int, time};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbError;

/// A node as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// This run of it.
    pub incarnation: Uuid,
    /// Which node: the same one after a restart.
    pub node: String,
    /// What it does.
    pub role: String,
    /// Rises while it lives.
    pub heartbeat: i64,
    /// The row of the item log up to which it gives nobody old versions.
    pub followed: i64,
    /// What its clock said at the last beat.
    pub seen: Timestamp,
    /// What it said of itself when its life began, in JSON.
    pub about: String,
    /// What it cannot do now: names with spaces between them.
    pub faults: String,
}

/// How a life began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncarnationStart {
    /// It lasts until it is ended.
    Started,
    /// Another process that lives goes by the name of this node.
    NameTaken,
}

fn read_node(row: &dyn ResultRow) -> Result<NodeRow, DbError> {
    let life: String = row.get(0)?;
    let what = format!("node {life}");
    Ok(NodeRow {
        incarnation: life.parse().map_err(|why| damaged(&what, &why))?,
        node: row.get(1)?,
        role: row.get(2)?,
        heartbeat: row.get(3)?,
        followed: row.get(4)?,
        seen: time(&what, row.get(5)?)?,
        about: row.get(6)?,
        faults: row.get(7)?,
    })
}

/// A life of a node that begins.
#[derive(Clone, Copy, Debug)]
pub struct NewNode<'n> {
    /// The life, which no other node has.
    pub incarnation: Uuid,
    /// The name of the node.
    pub node: &'n str,
    /// What it does.
    pub role: &'n str,
    /// The row of the item log up to which it follows.
    pub followed: i64,
    /// What it says of itself, a JSON object.
    pub about: &'n str,
    /// What it cannot do now.
    pub faults: &'n str,
}

#[cfg(test)]
impl<'n> NewNode<'n> {
    /// One that says nothing of itself.
    pub(crate) fn bare(life: Uuid, node: &'n str) -> Self {
        Self { incarnation: life, node, role: "all", followed: 0, about: "{}", faults: "" }
    }
}

impl ReadTx<'_> {
    /// The nodes that live.
    pub fn list_nodes(&self) -> Result<Vec<NodeRow>, DbError> {
        let sql = "SELECT life, node, role, beat, followed, seen_ms, about, faults
             FROM nodes ORDER BY node";
        self.tx.list(sql, params![], read_node)
    }

    /// The leases that are held, each with the life that holds it.
    pub fn list_leases(&self) -> Result<Vec<(String, Uuid)>, DbError> {
        self.tx.list("SELECT name, life FROM leases ORDER BY name", params![], |row| {
            let life: String = row.get(1)?;
            let life = life.parse().map_err(|why| damaged("a lease", &why))?;
            Ok((row.get(0)?, life))
        })
    }

    /// Whether the life lasts.
    pub fn is_alive(&self, life: Uuid) -> Result<bool, DbError> {
        self.tx.exists("SELECT 1 FROM nodes WHERE life = ?1", params![life.to_string()])
    }
}

impl ReadTx<'_> {
    /// The notes whose names begin so.
    pub fn list_states(&self, prefix: &str) -> Result<Vec<(String, String)>, DbError> {
        let length = int(prefix.chars().count());
        let sql = "SELECT name, value FROM state WHERE substr(name, 1, ?2) = ?1 ORDER BY name";
        self.tx.list(sql, params![prefix, length], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}

impl WriteTx<'_> {
    /// Begins a life of a node, or the same one again: an earlier try may have been committed and
    /// not answered. The lives of the nodes `over` are over, and what they held is free: the caller knows that
    /// no process goes by those names.
    pub fn begin_incarnation(
        &self,
        new: &NewNode<'_>,
        over: &[String],
        now: Timestamp,
    ) -> Result<IncarnationStart, DbError> {
        self.tx
            .execute("DELETE FROM nodes WHERE life = ?1", params![new.incarnation.to_string()])?;
        for name in over {
            self.tx.execute("DELETE FROM nodes WHERE node = ?1", params![name])?;
        }
        let written = self.tx.execute(
            "INSERT INTO nodes (life, node, role, beat, followed, seen_ms, about, faults)
             VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7) ON CONFLICT (node) DO NOTHING",
            params![
                new.incarnation.to_string(),
                new.node,
                new.role,
                new.followed,
                now.as_millisecond(),
                new.about,
                new.faults
            ],
        )?;
        if written == 0 {
            return Ok(IncarnationStart::NameTaken);
        }
        self.release_orphaned_claims(now)?;
        Ok(IncarnationStart::Started)
    }

    /// Says that a life lasts, how far it followed the item log and what it cannot do now; `false` when it
    /// was ended.
    pub fn write_heartbeat(
        &self,
        life: Uuid,
        followed: i64,
        faults: &str,
        now: Timestamp,
    ) -> Result<bool, DbError> {
        let sql = "UPDATE nodes SET beat = beat + 1, followed = ?2, seen_ms = ?3, faults = ?4
             WHERE life = ?1";
        let values = params![life.to_string(), followed, now.as_millisecond(), faults];
        Ok(self.tx.execute(sql, values)? > 0)
    }

    /// Ends a life; what it held is free.
    pub fn end_incarnation(&self, life: Uuid, now: Timestamp) -> Result<(), DbError> {
        self.tx.execute("DELETE FROM nodes WHERE life = ?1", params![life.to_string()])?;
        self.release_orphaned_claims(now)
    }

    /// Ends a life whose beat still is `beat`; gives whether it did.
    pub fn end_expired_incarnation(
        &self,
        life: Uuid,
        beat: i64,
        now: Timestamp,
    ) -> Result<bool, DbError> {
        let sql = "DELETE FROM nodes WHERE life = ?1 AND beat = ?2";
        let ended = self.tx.execute(sql, params![life.to_string(), beat])? > 0;
        if ended {
            self.release_orphaned_claims(now)?;
        }
        Ok(ended)
    }

    /// Frees what lives held that are over: messages wait again and items are in their queues.
    /// Deliveries are due when their claim ends.
    pub fn release_orphaned_claims(&self, now: Timestamp) -> Result<(), DbError> {
        self.tx.execute(
            "UPDATE outbox SET state = 'waiting', life = NULL, next_ms = ?1
             WHERE state = 'sending' AND (life IS NULL OR life NOT IN (SELECT life FROM nodes))",
            params![now.as_millisecond()],
        )?;
        let held = "SELECT 1 FROM queued_items WHERE life IS NOT NULL
             AND life NOT IN (SELECT life FROM nodes) LIMIT 1";
        if self.tx.exists(held, params![])? {
            let turn = self.next_stream_sequence()?;
            self.tx.execute(
                "UPDATE queued_items SET life = NULL, freed = ?1
                 WHERE life IS NOT NULL AND life NOT IN (SELECT life FROM nodes)",
                params![turn],
            )?;
        }
        Ok(())
    }

    /// Takes a lease that nobody holds for a life that lasts; gives whether the life holds it now.
    pub fn take_lease(&self, name: &str, life: Uuid) -> Result<bool, DbError> {
        self.tx.execute(
            "INSERT INTO leases (name, life) SELECT ?1, life FROM nodes WHERE life = ?2
             ON CONFLICT (name) DO NOTHING",
            params![name, life.to_string()],
        )?;
        self.holds_lease(name, life)
    }

    /// Whether the life holds the lease, which it then does until the transaction ends.
    pub fn holds_lease(&self, name: &str, life: Uuid) -> Result<bool, DbError> {
        let sql = "UPDATE leases SET life = life WHERE name = ?1 AND life = ?2";
        Ok(self.tx.execute(sql, params![name, life.to_string()])? > 0)
    }

    /// Gives a lease back, if the life holds it.
    pub fn release_lease(&self, name: &str, life: Uuid) -> Result<(), DbError> {
        let sql = "DELETE FROM leases WHERE name = ?1 AND life = ?2";
        self.tx.execute(sql, params![name, life.to_string()]).map(drop)
    }
}
