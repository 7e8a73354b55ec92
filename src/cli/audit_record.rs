//! Records commands in the audit log.
//!
//! When a command has ended, its event is written with its outcome to the database that the command opened.
//! `audit_extent` defines the events.

use parking_lot::{Mutex, MutexGuard};

use super::{CommandFailure, print_error};
use crate::runtime::{config, modes};
use crate::storage::audit::{self, AuditAction, AuditEvent, AuditOutcome, ObjectKind};
use crate::storage::database::{Db, DbError, WriteTx};

/// The form in which a command is recorded in the audit log.
pub(super) enum AuditExtent {
    /// Not recorded: the command changes nothing, or it is a service that records its own actions.
    Nothing,
    /// Recorded by events that the command writes while it runs.
    Own,
    /// Recorded by one event, written when the command ends.
    Single(CommandEvent),
}

/// The event of a command, without its outcome.
pub(super) struct CommandEvent {
    pub(super) action: AuditAction,
    pub(super) object: Option<(ObjectKind, String)>,
    pub(super) detail: String,
}

/// The facts that the running command adds to its event.
struct RunningCommand {
    /// The database that the command opened, if any.
    db: Option<Db>,
    object: Option<(ObjectKind, String)>,
    detail: Option<String>,
}

static RUNNING: Mutex<RunningCommand> =
    Mutex::new(RunningCommand { db: None, object: None, detail: None });

fn running() -> MutexGuard<'static, RunningCommand> {
    RUNNING.lock()
}

/// Registers the database that the command works on.
pub(super) fn set_database(db: &Db) {
    running().db = Some(db.clone());
}

/// Sets the object of the command's event, if only the command itself knows it.
pub(super) fn set_object(kind: ObjectKind, id: &impl ToString) {
    running().object = Some((kind, id.to_string()));
}

/// Adds detail to the command's event, such as the counts of its summary.
pub(super) fn add_detail(detail: impl Into<String>) {
    running().detail = Some(detail.into());
}

/// Runs `work` as the operating system's user, and records it in the form `extent`.
pub(super) fn run(
    extent: AuditExtent,
    work: impl FnOnce() -> Result<(), CommandFailure>,
) -> Result<(), CommandFailure> {
    audit::run_as_operator(&config::system_user(), modes::user_id(), || {
        let outcome = work();
        let nothing = RunningCommand { db: None, object: None, detail: None };
        // Take the state out of the static, so that the database is closed at the end of this function.
        let running = std::mem::replace(&mut *running(), nothing);
        // A command that failed before it opened a database has no place for its event.
        let (AuditExtent::Single(event), Some(db)) = (extent, &running.db) else {
            return outcome;
        };
        let written = write(event, db, &running, &outcome);
        // After a failure, the cause of the failure is the message that the operator needs.
        if let (Ok(()), Err(cause)) = (&outcome, written) {
            print_error(&format!("the audit log has no event of this command: {cause}"));
        }
        outcome
    })
}

fn write(
    command: CommandEvent,
    db: &Db,
    running: &RunningCommand,
    outcome: &Result<(), CommandFailure>,
) -> Result<(), DbError> {
    let event_outcome = match outcome {
        Ok(()) => AuditOutcome::Done,
        Err(CommandFailure::Usage(_) | CommandFailure::Reported | CommandFailure::Failed(_)) => {
            AuditOutcome::Failed
        }
    };
    let mut detail = command.detail;
    if let Some(added) = &running.detail {
        detail = format!("{detail}: {added}");
    }
    let event = audit::event(command.action).with_outcome(event_outcome).with_detail(detail);
    // An object that the command set while it ran is more precise than its arguments.
    let object = running.object.clone().or(command.object);
    db.write_blocking(move |tx| tx.write_audit(&named(tx, event, object)?))
}

/// Adds the object to the event; a user's name is replaced by its number.
fn named(
    tx: &WriteTx<'_>,
    event: AuditEvent,
    object: Option<(ObjectKind, String)>,
) -> Result<AuditEvent, DbError> {
    let Some((kind, id)) = object else { return Ok(event) };
    if kind != ObjectKind::User {
        return Ok(event.with_object(kind, id));
    }
    let user = tx.find_user_by_name(&id)?;
    Ok(user.iter().fold(event, |event, (user, _)| event.with_object(kind, user.id)))
}
