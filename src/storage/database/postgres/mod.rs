//! Implements the engine for PostgreSQL: reconnecting connections, one writer among all nodes, driver and
//! schema.
//!
//! **Writing.** A write transaction locks the single row of the table `writer` until it ends. So the write
//! transactions of all nodes run one after the other, as in SQLite, and numbers of the logs become visible in
//! order. Their statements then see the commits of the last holder (`READ COMMITTED`). Reads never wait: they
//! see one state (`REPEATABLE READ`). Acquiring the lock also reads the number of the schema, so that a
//! process that was built for a different schema writes nothing.
//!
//! **Claiming.** A claim has its own connection and does not acquire the cluster write lock: it raises no
//! version, assigns no number of a log, and notifies no follower. It locks rows of a queue by `FOR UPDATE
//! SKIP LOCKED`, so claims of all nodes run concurrently with each other and with a write, and no two get the
//! same row.
//!
//! - *The incarnation lasts.* Before it claims anything, a claim locks the row of its incarnation (`FOR KEY
//!   SHARE`), which a heartbeat may change and no transaction may remove. A transaction that ends the
//!   incarnation waits for the claim and then releases the claimed rows. If that transaction came first, the
//!   claim finds no row to lock and claims nothing. So no row is `sending` in the name of an incarnation that
//!   has ended.
//! - *No deadlock.* A claim never waits: it skips locked rows, both in queues and of its incarnation. The
//!   search for messages left behind by a lost answer (`release_lost_messages`) does wait, for the row of the
//!   incarnation and then for messages. Writes acquire these locks in the same order: they remove
//!   incarnations first and then release their work. No write that changes messages first locks an
//!   incarnation that others see.
//! - *A different schema.* A claim does not check the schema's number. A schema upgrade ends all incarnations
//!   ([`incarnations`]), so no claim can lock one.
//! - *A node that hangs* in the middle of a claim is disconnected long before its heartbeat expires
//!   (`DB_WRITE_LOCK_IDLE_MS`), and so is a node whose machine has failed.
//!
//! Deliveries are claimed under the write lock: the number in flight per channel and per organization is
//! counted over all rows, and must not change in the meantime.
//!
//! **Following.** A transaction that wrote rows raises `writer.version` and notifies. A follower listens. It
//! reads the version after a notification, and at intervals without one, so a lost notification only causes a
//! short delay.
//!
//! **Connections.** Each belongs to one thread, which drives its socket while it waits for an answer. A
//! broken connection is opened again at its next use, with exponential backoff. Until then, calls fail with a
//! temporary error. A transaction whose answer was lost may have been committed: it is reported as failed.

mod connection;
mod error;
mod incarnations;
mod migrations;
mod server;
mod session;
mod tls;
mod transaction;
#[cfg(test)]
mod upgrade_tests;

pub(super) use migrations::{check_schema, migrate};
pub(super) use server::PostgresServer;
#[cfg(test)]
pub(super) use session::run;
