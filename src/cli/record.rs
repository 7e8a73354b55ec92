//! What the audit log says of commands.
//!
//! [`of`] has a line for every command. A command that changes something says there what its event
//! is; the event is written to the database that the command opened when it has ended, with its
//! outcome. Arguments enter an event one by one, never as a whole: some are secrets.

use parking_lot::{Mutex, MutexGuard};

use super::Command;
use super::Trouble;
use super::accounts::{ClientCommand, Key, User};
use super::channels::{ChannelCommand, DeliveryCommand};
use super::complain;
use super::demo::DemoCommand;
use super::keep::{BackupCommand, CheckArgs};
use super::outbox::OutboxCommand;
use super::secrets::SecretsCommand;
use super::signing_key::SigningKeyCommand;
use crate::runtime::config;
use crate::runtime::modes;
use crate::storage::audit::{self, Action, Event, ObjectKind, Outcome};
use crate::storage::database::Db;
use crate::storage::database::DbError;
use crate::storage::database::WriteTx;
use model::account::ChannelId;

/// What is recorded of a command.
pub(super) enum Recorded {
    /// Nothing: it changes nothing, or it is a service that records what it does.
    Nothing,
    /// What the command itself records while it runs.
    Parts,
    /// One event at its end.
    Whole(CommandEvent),
}

/// The event of a command, but for its outcome.
pub(super) struct CommandEvent {
    action: Action,
    object: Option<(ObjectKind, String)>,
    words: String,
}

/// What the running command says of itself.
struct Running {
    /// The database that it opened.
    db: Option<Db>,
    object: Option<(ObjectKind, String)>,
    words: Option<String>,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { db: None, object: None, words: None });

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock()
}

/// Says which database the command works on.
pub(super) fn opened(db: &Db) {
    running().db = Some(db.clone());
}

/// Names the object of the command's event, where only the command finds it out.
pub(super) fn about(kind: ObjectKind, id: &impl ToString) {
    running().object = Some((kind, id.to_string()));
}

/// Adds words to the command's event, such as numbers that it ends with.
pub(super) fn with(words: impl Into<String>) {
    running().words = Some(words.into());
}

fn event(action: Action, words: impl Into<String>) -> Recorded {
    Recorded::Whole(CommandEvent { action, object: None, words: words.into() })
}

fn event_about(
    action: Action,
    kind: ObjectKind,
    id: &impl ToString,
    words: impl Into<String>,
) -> Recorded {
    let object = Some((kind, id.to_string()));
    Recorded::Whole(CommandEvent { action, object, words: words.into() })
}

/// What is recorded of `command`.
pub(super) fn of(command: &Command) -> Recorded {
    match command {
        Command::Serve { .. }
        | Command::Nodes { .. }
        | Command::Doctor { .. }
        // It records itself, in the archive that it opens.
        | Command::Store { .. }
        | Command::Bench { .. }
        | Command::Health { .. }
        | Command::Audit { .. }
        | Command::Man { .. }
        | Command::Reference { .. }
        | Command::Completions { .. }
        | Command::Pdf(_)
        | Command::Limited(_)
        | Command::Config { .. }
        | Command::Check { wanted: CheckArgs { repair: false, .. }, .. } => Recorded::Nothing,
        // Items record that they are withdrawn, and a migration records itself before it begins: its
        // database takes no writes afterwards.
        Command::Withdraw { .. } | Command::Migrate { undo: false, .. } => Recorded::Parts,
        Command::Migrate { undo: true, .. } => event(Action::Command, "migrate --undo"),
        Command::Ingest { .. } => event(Action::Command, "ingest"),
        Command::Purge { all: true, .. } => event(Action::Command, "purge --all"),
        Command::Purge { all: false, uris, .. } => {
            event(Action::Command, format!("purge of {} items", uris.len()))
        }
        Command::Import { file, .. } => {
            event_about(Action::Command, ObjectKind::Path, &file.display(), "import")
        }
        Command::Restore { wanted, .. } => {
            event_about(Action::Command, ObjectKind::Path, &wanted.place(), "restore")
        }
        Command::Backup { command: Some(BackupCommand::Verify { .. }), .. } => Recorded::Nothing,
        Command::Backup { wanted, command: None, .. } => {
            event_about(Action::Command, ObjectKind::Path, &wanted.place(), "backup")
        }
        Command::Check { wanted: CheckArgs { repair: true, .. }, .. } => {
            event(Action::Command, "check --repair")
        }
        Command::Reindex { .. } => event(Action::Command, "reindex"),
        Command::User { command } => of_user(command),
        Command::Client { command } => of_client(command),
        Command::Key { command } => of_key(command),
        Command::Channel { command } => of_channel(command),
        Command::Delivery { command } => match command {
            DeliveryCommand::List { .. } => Recorded::Nothing,
            DeliveryCommand::Retry { id, .. } => {
                event(Action::Command, format!("delivery retry {id}"))
            }
        },
        Command::Outbox { command } => of_outbox(command),
        Command::SigningKey { command: SigningKeyCommand::List { .. } } => Recorded::Nothing,
        Command::SigningKey { command: SigningKeyCommand::Rotate { .. } } => {
            event(Action::Command, "signing-key rotate")
        }
        Command::Demo { command: DemoCommand::Remove { .. } } => {
            event(Action::Command, "demo remove")
        }
        Command::Secrets { command: SecretsCommand::Rotate { .. } } => {
            event(Action::Command, "secrets rotate")
        }
    }
}

fn of_user(command: &User) -> Recorded {
    let changed = |name: &String, words: &str| {
        event_about(Action::UserChanged, ObjectKind::User, name, format!("{words} {name}"))
    };
    match command {
        User::List { .. } => Recorded::Nothing,
        User::Add { name, .. } => {
            event_about(Action::UserCreated, ObjectKind::User, name, format!("user add {name}"))
        }
        User::Disable { name, .. } => changed(name, "user disable"),
        User::Enable { name, .. } => changed(name, "user enable"),
        User::Password { name, .. } => {
            let words = format!("user password {name}");
            event_about(Action::PasswordChanged, ObjectKind::User, name, words)
        }
    }
}

fn of_client(command: &ClientCommand) -> Recorded {
    let (action, id, words) = match command {
        ClientCommand::List { .. } => return Recorded::Nothing,
        ClientCommand::Add { id, .. } => (Action::ClientCreated, id, "client add"),
        ClientCommand::Disable { id, .. } => (Action::ClientChanged, id, "client disable"),
        ClientCommand::Enable { id, .. } => (Action::ClientChanged, id, "client enable"),
        ClientCommand::Secret { id, .. } => (Action::ClientChanged, id, "client secret"),
    };
    event_about(action, ObjectKind::Client, id, words)
}

fn of_key(command: &Key) -> Recorded {
    match command {
        Key::List { .. } => Recorded::Nothing,
        Key::Add { user, .. } => event(Action::KeyCreated, format!("key add {user}")),
        Key::Disable { id, .. } => {
            event_about(Action::KeyRevoked, ObjectKind::Key, id, "key disable")
        }
    }
}

fn of_channel(command: &ChannelCommand) -> Recorded {
    let (action, owner, name, words) = match command {
        ChannelCommand::List { .. } => return Recorded::Nothing,
        ChannelCommand::Add { owner, name, .. } => {
            (Action::ChannelCreated, owner, name, "channel add")
        }
        ChannelCommand::Disable { owner, name, .. } => {
            (Action::ChannelChanged, owner, name, "channel disable")
        }
        ChannelCommand::Enable { owner, name, .. } => {
            (Action::ChannelChanged, owner, name, "channel enable")
        }
        ChannelCommand::Remove { owner, name, .. } => {
            (Action::ChannelRemoved, owner, name, "channel remove")
        }
    };
    match ChannelId::new(owner, name) {
        Ok(id) => event_about(action, ObjectKind::Channel, &id, words),
        // The command refuses it.
        Err(_) => event(action, words),
    }
}

fn of_outbox(command: &OutboxCommand) -> Recorded {
    match command {
        OutboxCommand::List { .. } => Recorded::Nothing,
        OutboxCommand::Retry { id: None, .. } => event(Action::Command, "outbox retry --all"),
        OutboxCommand::Drop { id: None, .. } => event(Action::Command, "outbox drop --all"),
        OutboxCommand::Retry { id: Some(id), .. } => {
            event(Action::Command, format!("outbox retry {id}"))
        }
        OutboxCommand::Drop { id: Some(id), .. } => {
            event(Action::Command, format!("outbox drop {id}"))
        }
    }
}

/// Runs a command in the name of the user of the operating system, and records it.
pub(super) fn run(
    recorded: Recorded,
    work: impl FnOnce() -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    audit::run_as_operator(&config::system_user(), modes::user_id(), || {
        let outcome = work();
        let nothing = Running { db: None, object: None, words: None };
        // The database is closed when this ends, as it is without a record.
        let running = std::mem::replace(&mut *running(), nothing);
        let (Recorded::Whole(event), Some(db)) = (recorded, &running.db) else { return outcome };
        let written = write(event, db, &running, &outcome);
        if let (Ok(()), Err(cause)) = (&outcome, written) {
            complain(&format!("the audit log has no event of this command: {cause}"));
        }
        outcome
    })
}

fn write(
    command: CommandEvent,
    db: &Db,
    running: &Running,
    outcome: &Result<(), Trouble>,
) -> Result<(), DbError> {
    let ended = match outcome {
        Ok(()) => Outcome::Done,
        Err(Trouble::Usage(_) | Trouble::Reported | Trouble::Failed(_)) => Outcome::Failed,
    };
    let mut words = command.words;
    if let Some(more) = &running.words {
        words = format!("{words}: {more}");
    }
    let event = audit::event(command.action).ended(ended).with(words);
    let object = running.object.clone().or(command.object);
    db.write_blocking(move |tx| tx.write_audit(&named(tx, event, object)?))
}

/// The event with its object; a user that is named has its number.
fn named(
    tx: &WriteTx<'_>,
    event: Event,
    object: Option<(ObjectKind, String)>,
) -> Result<Event, DbError> {
    let Some((kind, id)) = object else { return Ok(event) };
    if kind != ObjectKind::User {
        return Ok(event.about(kind, id));
    }
    let user = tx.as_read().find_user_by_name(&id)?;
    Ok(user.iter().fold(event, |event, (user, _)| event.about(kind, user.id)))
}
