//! `wirephoto outbox`: notification messages that are waiting, being sent or parked.

use clap::{ArgGroup, Subcommand};
use serde_json::json;
use uuid::Uuid;

use super::CommandFailure;
use super::accounts::ArchiveArgs;
use super::table::print_list;
use super::values::word;
use crate::distribution::notifications;
use crate::runtime::clock;
use model::account::{MessageState, OutboxMessage};

#[derive(Debug, Subcommand)]
pub(super) enum OutboxCommand {
    /// Lists messages, oldest first.
    List {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Only messages in this state: waiting, sending or parked.
        #[arg(long, value_parser = word::<MessageState>)]
        state: Option<MessageState>,
    },
    /// Retries messages that were parked after their last attempt.
    #[command(group = ArgGroup::new("which").required(true))]
    Retry {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Id of the message.
        #[arg(group = "which", value_name = "ID")]
        id: Option<Uuid>,
        /// Retries all parked messages.
        #[arg(long, group = "which")]
        all: bool,
    },
    /// Removes messages, which are then never sent.
    #[command(group = ArgGroup::new("which").required(true))]
    Drop {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Id of the message, in any state.
        #[arg(group = "which", value_name = "ID")]
        id: Option<Uuid>,
        /// Removes all parked messages.
        #[arg(long, group = "which")]
        all: bool,
    },
}

pub(super) fn run(command: OutboxCommand) -> Result<(), CommandFailure> {
    match command {
        OutboxCommand::List { on, state } => {
            let head = ["ID", "KIND", "STATE", "USER", "TRIES", "CREATED", "ERROR"];
            let messages = on.outbox()?.list(state)?;
            print_list(on.is_json(), &messages, notifications::json::message, head, row);
        }
        // `--all` covers parked messages; the service still retries other messages.
        OutboxCommand::Retry { on, id, all: _ } => {
            let count = on.outbox()?.retry(id, clock::now())?;
            print_done(&on, count, "queued again");
        }
        OutboxCommand::Drop { on, id, all: _ } => {
            let count = on.outbox()?.discard(id)?;
            print_done(&on, count, "removed");
        }
    }
    Ok(())
}

fn print_done(on: &ArchiveArgs, count: usize, what: &str) {
    let noun = if count == 1 { "message" } else { "messages" };
    on.print_done(&format!("{count} {noun} {what}"), &json!({ "messages": count }));
}

fn row(message: &OutboxMessage) -> [String; 7] {
    [
        message.id.to_string(),
        message.content.kind().to_owned(),
        message.state.as_str().to_owned(),
        message.user.to_string(),
        message.attempts.to_string(),
        message.created.to_string(),
        message.error.clone().unwrap_or_default(),
    ]
}
