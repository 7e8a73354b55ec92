//! PostgreSQL as an engine: connections that come back, one writer among all nodes,
//! driver, schema, and what only PostgreSQL does its way.
//!
//! **Writing.** Whoever writes holds the one row of the table `writer` until its transaction ends, so
//! that transactions of all nodes come one after the other, as in SQLite, and numbers of the logs
//! become visible in their order. Its statements then see what the last holder committed (`READ
//! COMMITTED`). Reading waits for nobody: it sees one state (`REPEATABLE READ`). With the turn comes the number
//! of the schema: who was made for another one writes nothing.
//!
//! **Taking up what waits.** A claim  has a connection of its own and does not take the
//! writer's turn: it raises no version, gives out no number of a log, and tells nobody. It takes rows of a queue
//! by `FOR UPDATE SKIP LOCKED`, so claims of all nodes go on beside each other and beside one that
//! writes, and no two get the same row.
//!
//! - *The life lasts.* Before it takes anything it locks the row of its own life (`FOR KEY SHARE`), which a beat
//!   may change and nobody may remove. Whoever ends that life waits, and frees then what the claim took; who
//!   came first leaves the claim no row to lock, and it takes nothing. So nothing is `sending` in the
//!   name of a life that is over.
//! - *No deadlock.* A claim waits for nobody: rows that somebody holds are passed over, those of queues and that
//!   of its life. The one who looks for what a lost answer left behind (`free_lost_messages`) does wait, for the
//!   row of its own life and then for messages; the writer takes them in the same order, first removing lives and
//!   then freeing what they had, and nothing that changes messages before locks a life that others see.
//! - *Another schema.* A claim does not look at its number: whoever changes it ends all lives ([`lives`]), and so
//!   there is none that a claim could hold.
//! - *A node that hangs* in the middle of a claim is cut off long before it is taken for dead
//!   (`DB_TURN_IDLE_MS`), and so is one whose machine is gone.
//!
//! Deliveries are claimed by whoever has the turn: how many of a channel and of an organization are under way
//! is counted over all rows, and must not change meanwhile.
//!
//! **Noticing.** A transaction that wrote something raises `writer.version` and notifies. Who follows
//! listens, and asks for the version when it heard something and now and then without that, so
//! that a notification that was lost costs a moment and no more.
//!
//! **Connections.** Each belongs to one thread, which drives its socket while it waits for an answer.
//! One that broke is made again with the next use, with rests in between that grow; meanwhile callers
//! are told that the database cannot be used now. Whether a transaction was committed whose answer was
//! lost, nobody knows: it is told as a failure.

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
