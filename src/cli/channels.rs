//! The commands for delivery channels and for deliveries.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::accounts::{ArchiveArgs, enabled};
use super::table::print_list;
use super::values::word;
use super::{CommandFailure, usage};
use crate::access::provisioning::{ChannelRequest, shown_settings, typed_settings};
use crate::runtime::clock;
use crate::runtime::limits::CHANNEL_SETTINGS_BYTES_MAX;
use model::account::{Channel, ChannelId, ChannelMethod, Delivery, DeliveryState};

/// The subcommands of `wirephoto channel`.
#[derive(Debug, Subcommand)]
pub(super) enum ChannelCommand {
    /// Adds a channel to a user. Requests refer to it as `user:<username>:<channel name>`.
    Add(NewChannelArgs),
    /// Lists the channels, without secrets.
    List {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Lists only the channels of this user.
        #[arg(long, value_name = "USER")]
        user: Option<String>,
    },
    /// Disables a channel: nothing is delivered through it until it is enabled.
    Disable(ChannelArgs),
    /// Enables a disabled channel.
    Enable(ChannelArgs),
    /// Removes a channel with its settings. Its queued deliveries fail.
    Remove(ChannelArgs),
}

/// The channel that a command acts on.
#[derive(Args, Debug)]
pub(super) struct ChannelArgs {
    #[command(flatten)]
    on: ArchiveArgs,
    /// Name of the user that owns the channel.
    pub(super) owner: String,
    /// Name of the channel.
    pub(super) name: String,
}

/// A channel to add.
#[derive(Args, Debug)]
pub(super) struct NewChannelArgs {
    #[command(flatten)]
    on: ArchiveArgs,
    /// Name of the user that owns the channel.
    pub(super) owner: String,
    /// Name of the channel, without a colon.
    pub(super) name: String,
    /// Delivery method: download, directory, email, ftp, ftps, sftp, s3, webhook.
    #[arg(long, value_name = "METHOD", value_parser = word::<ChannelMethod>)]
    method: ChannelMethod,
    /// A format to deliver of each item, such as _NormalHires.jpg or .json; can be repeated.
    #[arg(long = "format", value_name = "FORMAT", required = true, allow_hyphen_values = true)]
    formats: Vec<String>,
    /// A setting of the method, such as port=2222 or allowHttp=true; NAME:=JSON for lists; can be
    /// repeated. Put secrets into --settings-file instead.
    #[arg(id = "channel_settings", long = "setting", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// A file with a JSON object of settings.
    #[arg(long, value_name = "FILE")]
    settings_file: Option<PathBuf>,
}

/// The subcommands of `wirephoto delivery`.
#[derive(Debug, Subcommand)]
pub(super) enum DeliveryCommand {
    /// Lists the deliveries, latest first.
    List {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Lists only deliveries in this state: queued, sending, delivered, failed.
        #[arg(long, value_name = "STATE", value_parser = word::<DeliveryState>)]
        state: Option<DeliveryState>,
    },
    /// Queues a failed delivery again, with a fresh count of attempts.
    Retry {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Id of the delivery, as listed.
        id: Uuid,
    },
}

/// Parses one `--setting`; the value of `NAME=VALUE` is a string. Unlike the errors of the argument parser,
/// an error here does not repeat the argument, which may contain a password.
fn setting(text: &str) -> Result<(String, Value), CommandFailure> {
    let Some((name, value)) = text.split_once('=') else {
        return usage("--setting: expected NAME=VALUE or NAME:=JSON");
    };
    let Some(name) = name.strip_suffix(':') else { return Ok((name.to_owned(), value.into())) };
    match serde_json::from_str(value) {
        Ok(value) => Ok((name.to_owned(), value)),
        Err(_) => usage(format!("--setting: {name}:= is not followed by JSON")),
    }
}

/// Reads a file with a JSON object of settings.
fn read_settings(file: &Path) -> Result<Map<String, Value>, CommandFailure> {
    let length = fs::metadata(file).map_err(|cause| file_error(file, &cause))?.len();
    // Twice the limit of the stored settings leaves room for indentation.
    if usize::try_from(length).unwrap_or(usize::MAX) > 2 * CHANNEL_SETTINGS_BYTES_MAX {
        return Err(file_error(file, &"is too large for settings"));
    }
    let text = fs::read_to_string(file).map_err(|cause| file_error(file, &cause))?;
    // A JSON parser's message may quote the input, which may contain secrets.
    serde_json::from_str(&text).map_err(|_| file_error(file, &"is not a JSON object"))
}

fn file_error(file: &Path, why: &dyn Display) -> CommandFailure {
    CommandFailure::Usage(format!("{}: {why}", file.display()))
}

/// Reads the settings of the file, then the settings of the flags, which override them. The value of a flag
/// `NAME=VALUE` becomes a number or a boolean if the method expects one; the types of a file, which is JSON,
/// are not converted.
fn settings(
    method: ChannelMethod,
    file: Option<&Path>,
    flags: &[String],
) -> Result<Map<String, Value>, CommandFailure> {
    let mut settings = match file {
        Some(file) => read_settings(file)?,
        None => Map::new(),
    };
    // Only flags without JSON are converted, because their type is not known.
    let mut texts = Vec::new();
    let given: Vec<_> = flags.iter().map(|flag| setting(flag)).collect::<Result<_, _>>()?;
    for (name, value) in given {
        if value.is_string() {
            texts.push(name.clone());
        }
        settings.insert(name, value);
    }
    Ok(typed_settings(method, settings, &texts))
}

pub(super) fn channel(command: ChannelCommand) -> Result<(), CommandFailure> {
    match command {
        ChannelCommand::Add(args) => {
            let NewChannelArgs { on, owner, name, method, formats, .. } = args;
            let settings = settings(method, args.settings_file.as_deref(), &args.settings)?;
            let method = method.as_str().to_owned();
            let request = ChannelRequest { owner, name, method, formats, settings };
            let id = on.open()?.add_channel(&request, clock::now())?;
            print_done(&on, &id, "added", true);
        }
        ChannelCommand::List { on, user } => {
            let head = ["CHANNEL", "METHOD", "FORMATS", "SETTINGS", "STATE"];
            let channels = on.open()?.list_channels(user)?;
            print_list(on.is_json(), &channels, channel_facts, head, channel_row);
        }
        ChannelCommand::Disable(channel) => set_active(&channel, false)?,
        ChannelCommand::Enable(channel) => set_active(&channel, true)?,
        ChannelCommand::Remove(ChannelArgs { on, owner, name }) => {
            let id = on.open()?.remove_channel(&owner, &name)?;
            print_done(&on, &id, "removed", false);
        }
    }
    Ok(())
}

fn set_active(channel: &ChannelArgs, active: bool) -> Result<(), CommandFailure> {
    let ChannelArgs { on, owner, name } = channel;
    let id = on.open()?.set_channel_active(owner, name, active)?;
    print_done(on, &id, enabled(active), active);
    Ok(())
}

fn print_done(on: &ArchiveArgs, id: &ChannelId, what: &str, active: bool) {
    let facts = json!({ "channel": id.to_string(), "active": active });
    on.print_done(&format!("channel {:?} is {what}", id.to_string()), &facts);
}

fn channel_facts(channel: &Channel) -> Value {
    json!({
        "channel": channel.id().to_string(),
        "owner": channel.owner,
        "name": channel.name,
        "method": channel.method.as_str(),
        "formats": channel.formats,
        "settings": shown_settings(channel),
        "active": channel.active,
    })
}

fn channel_row(channel: &Channel) -> [String; 5] {
    [
        channel.id().to_string(),
        channel.method.as_str().to_owned(),
        channel.formats.join(" "),
        shown_settings(channel).to_string(),
        enabled(channel.active).to_owned(),
    ]
}

pub(super) fn delivery(command: DeliveryCommand) -> Result<(), CommandFailure> {
    match command {
        DeliveryCommand::List { on, state } => {
            let head = ["ID", "STATE", "CHANNEL", "ITEM", "TRIES", "UPDATED", "ERROR"];
            let deliveries = on.open()?.list_deliveries(state)?;
            print_list(on.is_json(), &deliveries, delivery_facts, head, delivery_row);
        }
        DeliveryCommand::Retry { on, id } => {
            on.open()?.retry_delivery(id, clock::now())?;
            let facts = json!({ "id": id.to_string(), "state": DeliveryState::Queued.as_str() });
            on.print_done(&format!("delivery {id} is queued again"), &facts);
        }
    }
    Ok(())
}

fn delivery_facts(delivery: &Delivery) -> Value {
    json!({
        "id": delivery.id.to_string(),
        "state": delivery.state.as_str(),
        "channel": delivery.channel.to_string(),
        "item": delivery.item.to_string(),
        "attempts": delivery.attempts,
        "created": delivery.created,
        "updated": delivery.updated,
        "nextAttempt": delivery.next_attempt,
        "delivered": delivery.delivered,
        "error": delivery.error,
    })
}

fn delivery_row(delivery: &Delivery) -> [String; 7] {
    [
        delivery.id.to_string(),
        delivery.state.as_str().to_owned(),
        delivery.channel.to_string(),
        delivery.item.to_string(),
        delivery.attempts.to_string(),
        delivery.updated.to_string(),
        delivery.error.clone().unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(flag: &str, expected: Result<(&str, Value), &str>) {
        match (setting(flag), expected) {
            (Ok((name, value)), Ok((known, expected))) => {
                assert_eq!((name.as_str(), value), (known, expected), "{flag}");
            }
            (Err(CommandFailure::Usage(message)), Err(part)) => {
                assert!(message.contains(part) && !message.contains("secret"), "{message}");
            }
            (found, _) => panic!("{flag}: {}", found.is_ok()),
        }
    }

    #[test]
    fn a_setting_is_text_unless_it_says_that_it_is_json() {
        check("password=secret=1", Ok(("password", json!("secret=1"))));
        check("port=21", Ok(("port", json!("21"))));
        check("port:=21", Ok(("port", json!(21))));
        check("to:=[\"a@b\"]", Ok(("to", json!(["a@b"]))));
        check("path=", Ok(("path", json!(""))));
        check("secret", Err("NAME=VALUE"));
        check("password:=secret", Err("password:= is not"));
    }
}
