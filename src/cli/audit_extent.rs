//! The form in which each command is recorded in the audit log.
//!
//! [`audit_extent`] has an arm for every command. A command that changes something defines its event there.
//! Arguments are added to an event one by one, never as a whole, because some of them are secrets.

use super::CliCommand;
use super::accounts::{AccountsCommand, ClientCommand, KeyCommand, UserCommand};
use super::agreements::{AgreementCommand, LicenseCommand, OrganizationCommand, ProductCommand};
use super::audit_record::{AuditExtent, CommandEvent};
use super::channels::{ChannelArgs, ChannelCommand, DeliveryCommand, NewChannelArgs};
use super::demo::DemoCommand;
use super::maintenance::{BackupCommand, CheckArgs};
use super::migrate::MigrateArgs;
use super::outbox::OutboxCommand;
use super::secrets::SecretsCommand;
use super::signing_key::SigningKeyCommand;
use crate::storage::audit::{AuditAction, ObjectKind};
use model::account::ChannelId;

fn event(action: AuditAction, detail: impl Into<String>) -> AuditExtent {
    AuditExtent::Single(CommandEvent { action, object: None, detail: detail.into() })
}

/// Records a command by its words alone.
fn of_command(words: impl Into<String>) -> AuditExtent {
    event(AuditAction::Command, words)
}

/// Records a command on a file, folder or bucket.
fn of_command_on(path: &impl ToString, words: &str) -> AuditExtent {
    event_about(AuditAction::Command, ObjectKind::Path, path, words)
}

fn event_about(
    action: AuditAction,
    kind: ObjectKind,
    id: &impl ToString,
    detail: impl Into<String>,
) -> AuditExtent {
    let object = Some((kind, id.to_string()));
    AuditExtent::Single(CommandEvent { action, object, detail: detail.into() })
}

/// Returns the form in which `command` is recorded.
pub(super) fn audit_extent(command: &CliCommand) -> AuditExtent {
    match command {
        CliCommand::Serve(_)
        | CliCommand::Nodes { .. }
        | CliCommand::Doctor { .. }
        // Records itself in the archive that it opens.
        | CliCommand::Store(_)
        | CliCommand::Bench(_)
        | CliCommand::Health { .. }
        | CliCommand::Audit(_)
        | CliCommand::Man { .. }
        | CliCommand::Reference { .. }
        | CliCommand::Completions { .. }
        | CliCommand::Pdf(_)
        | CliCommand::Limited(_)
        | CliCommand::Config { .. }
        | CliCommand::Check {
            args: CheckArgs { repair: false, prune_orphans: false, .. },
            ..
        } => AuditExtent::Nothing,
        // Withdrawn items record themselves. A migration records itself before it begins, because its
        // database refuses writes afterwards.
        CliCommand::Withdraw { .. }
        | CliCommand::Migrate { args: MigrateArgs { undo: false, .. }, .. } => AuditExtent::Own,
        CliCommand::Migrate { args: MigrateArgs { undo: true, .. }, .. } => {
            of_command("migrate --undo")
        }
        CliCommand::Ingest { .. } => of_command("ingest"),
        CliCommand::Purge { all: true, .. } => of_command("purge --all"),
        CliCommand::Purge { all: false, uris, .. } => {
            of_command(format!("purge of {} items", uris.len()))
        }
        CliCommand::Import { file, .. } => of_command_on(&file.display(), "import"),
        CliCommand::Restore { args, .. } => of_command_on(&args.location(), "restore"),
        CliCommand::Backup { command: Some(BackupCommand::Verify { .. }), .. } => {
            AuditExtent::Nothing
        }
        CliCommand::Backup { args, command: None, .. } => {
            of_command_on(&args.location(), "backup")
        }
        CliCommand::Check { args: CheckArgs { repair, prune_orphans: true, .. }, .. } => {
            let repair = if *repair { " --repair" } else { "" };
            of_command(format!("check{repair} --prune-orphans"))
        }
        CliCommand::Check { args: CheckArgs { repair: true, .. }, .. } => {
            of_command("check --repair")
        }
        CliCommand::Reindex { .. } => of_command("reindex"),
        CliCommand::Accounts(command) => of_accounts(command),
        CliCommand::Organization(command) => of_organization(command),
        CliCommand::Agreement(command) => of_agreement(command),
        CliCommand::Product(command) => of_product(command),
        CliCommand::License(command) => of_license(command),
        CliCommand::User(command) => of_user(command),
        CliCommand::Client(command) => of_client(command),
        CliCommand::Key(command) => of_key(command),
        CliCommand::Channel(command) => of_channel(command),
        CliCommand::Delivery(DeliveryCommand::List { .. }) => AuditExtent::Nothing,
        CliCommand::Delivery(DeliveryCommand::Retry { id, .. }) => {
            of_command(format!("delivery retry {id}"))
        }
        CliCommand::Outbox(command) => of_outbox(command),
        CliCommand::SigningKey(SigningKeyCommand::List { .. }) => AuditExtent::Nothing,
        CliCommand::SigningKey(SigningKeyCommand::Rotate { .. }) => of_command("signing-key rotate"),
        CliCommand::Demo(DemoCommand::Remove { .. }) => of_command("demo remove"),
        CliCommand::Secrets(SecretsCommand::Rotate { .. }) => of_command("secrets rotate"),
    }
}

fn of_accounts(command: &AccountsCommand) -> AuditExtent {
    let AccountsCommand::Export { with_secrets, .. } = command;
    of_command(if *with_secrets { "accounts export --with-secrets" } else { "accounts export" })
}

fn of_organization(command: &OrganizationCommand) -> AuditExtent {
    match command {
        OrganizationCommand::List(_) | OrganizationCommand::Show { .. } => AuditExtent::Nothing,
        OrganizationCommand::Add(new) => of_command(format!("organization add {}", new.id)),
    }
}

fn of_agreement(command: &AgreementCommand) -> AuditExtent {
    match command {
        AgreementCommand::List { .. } | AgreementCommand::Show { .. } => AuditExtent::Nothing,
        AgreementCommand::Add(new) => of_command(format!("agreement add {}", new.id)),
    }
}

fn of_product(command: &ProductCommand) -> AuditExtent {
    match command {
        ProductCommand::List(_) | ProductCommand::Show { .. } => AuditExtent::Nothing,
        ProductCommand::Add(new) => of_command(format!("product add {}", new.code)),
    }
}

fn of_license(command: &LicenseCommand) -> AuditExtent {
    match command {
        LicenseCommand::List { .. } | LicenseCommand::Show { .. } => AuditExtent::Nothing,
        LicenseCommand::Add(new) => of_command(format!("license add for {}", new.product)),
    }
}

fn of_user(command: &UserCommand) -> AuditExtent {
    let (action, name, verb) = match command {
        UserCommand::List(_) => return AuditExtent::Nothing,
        UserCommand::Role { user, added, removed } => {
            let added = added.iter().map(|role| format!("+{role}"));
            let changes: Vec<_> =
                added.chain(removed.iter().map(|role| format!("-{role}"))).collect();
            let detail = format!("user role {} {}", user.name, changes.join(" "));
            return event_about(AuditAction::RolesChanged, ObjectKind::User, &user.name, detail);
        }
        UserCommand::Add(user) => (AuditAction::UserCreated, &user.name, "add"),
        UserCommand::Disable(user) => (AuditAction::UserChanged, &user.name, "disable"),
        UserCommand::Enable(user) => (AuditAction::UserChanged, &user.name, "enable"),
        UserCommand::Password { user, .. } => {
            (AuditAction::PasswordChanged, &user.name, "password")
        }
    };
    event_about(action, ObjectKind::User, name, format!("user {verb} {name}"))
}

fn of_client(command: &ClientCommand) -> AuditExtent {
    let (action, id, detail) = match command {
        ClientCommand::List(_) => return AuditExtent::Nothing,
        ClientCommand::Add(client) => (AuditAction::ClientCreated, &client.id, "client add"),
        ClientCommand::Disable(client) => {
            (AuditAction::ClientChanged, &client.id, "client disable")
        }
        ClientCommand::Enable(client) => (AuditAction::ClientChanged, &client.id, "client enable"),
        ClientCommand::Secret(client) => (AuditAction::ClientChanged, &client.id, "client secret"),
    };
    event_about(action, ObjectKind::Client, id, detail)
}

fn of_key(command: &KeyCommand) -> AuditExtent {
    match command {
        KeyCommand::List { .. } => AuditExtent::Nothing,
        KeyCommand::Add { user, .. } => event(AuditAction::KeyCreated, format!("key add {user}")),
        KeyCommand::Disable { id, .. } => {
            event_about(AuditAction::KeyRevoked, ObjectKind::Key, id, "key disable")
        }
    }
}

fn of_channel(command: &ChannelCommand) -> AuditExtent {
    let (action, owner, name, detail) = match command {
        ChannelCommand::List { .. } => return AuditExtent::Nothing,
        ChannelCommand::Add(NewChannelArgs { owner, name, .. }) => {
            (AuditAction::ChannelCreated, owner, name, "channel add")
        }
        ChannelCommand::Disable(ChannelArgs { owner, name, .. }) => {
            (AuditAction::ChannelChanged, owner, name, "channel disable")
        }
        ChannelCommand::Enable(ChannelArgs { owner, name, .. }) => {
            (AuditAction::ChannelChanged, owner, name, "channel enable")
        }
        ChannelCommand::Remove(ChannelArgs { owner, name, .. }) => {
            (AuditAction::ChannelRemoved, owner, name, "channel remove")
        }
    };
    match ChannelId::new(owner, name) {
        Ok(id) => event_about(action, ObjectKind::Channel, &id, detail),
        // The id is invalid, and the command itself refuses it with an error.
        Err(_) => event(action, detail),
    }
}

fn of_outbox(command: &OutboxCommand) -> AuditExtent {
    let (verb, id) = match command {
        OutboxCommand::List { .. } => return AuditExtent::Nothing,
        OutboxCommand::Retry { id, .. } => ("retry", id),
        OutboxCommand::Drop { id, .. } => ("drop", id),
    };
    let which = id.map_or_else(|| "--all".to_owned(), |id| id.to_string());
    of_command(format!("outbox {verb} {which}"))
}
