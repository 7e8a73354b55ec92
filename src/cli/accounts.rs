//! `wirephoto import`, `wirephoto accounts` and the commands for users, clients and API keys.
//!
//! Secrets are printed to standard output, alone on their line unless `--json` is given; messages about them
//! are printed to standard error.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::manual::write_error;
use super::table::print_list;
use super::values::word;
use super::{
    CommandFailure, CommonArgs, audit_record, open_archive, print_error, print_json, print_line,
};
use crate::access::provisioning::{
    Accounts, AccountsError, ChangedRoles, ClientRequest, EntryCounts, UserRequest,
};
use crate::distribution::notifications::MessageOutbox;
use crate::runtime::clock;
use crate::runtime::config::Config;
use crate::storage::audit::ObjectKind;
use crate::storage::database::{ListedKey, ListedUser};
use model::account::accounts_file::ClientScopes;
use model::account::{AccessLevels, AgreementId, GrantType, OAuthClient, OrganizationId};
use model::limits::PASSWORD_BYTES_MAX;

/// Imports an accounts file and prints the numbers of created, updated and unchanged entries of each list.
pub(super) fn import(config: &Config, file: &Path, json: bool) -> Result<(), CommandFailure> {
    let imported = open_archive(config)?.import(config, file)?;
    if json {
        print_json(&json!(imported));
        return Ok(());
    }
    for (list, counts) in imported.lists() {
        let EntryCounts { created, updated, unchanged } = counts;
        if counts.total() > 0 {
            print_line(&format!(
                "{list}: {created} created, {updated} updated, {unchanged} unchanged"
            ));
        }
    }
    Ok(())
}

/// The subcommands of `wirephoto accounts`.
#[derive(Debug, Subcommand)]
pub(super) enum AccountsCommand {
    /// Writes all accounts as an accounts file, which `wirephoto import` reads.
    ///
    /// Without --with-secrets it has no passwords, client secrets, API keys and channels; an import into the
    /// same archive leaves those as they are. Revoked keys are left out. An export that fails leaves no file.
    Export {
        #[command(flatten)]
        common: CommonArgs,
        /// Adds the hashes of passwords, client secrets and API keys, and the channels with the passwords in
        /// their settings.
        #[arg(long)]
        with_secrets: bool,
        /// File to write, which must not exist yet; by default standard output.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

pub(super) fn accounts(command: &AccountsCommand) -> Result<(), CommandFailure> {
    let AccountsCommand::Export { common, with_secrets, file } = command;
    let config = common.config()?;
    let exported = open_archive(&config)?.accounts(&config)?.export(*with_secrets)?;
    let text = format!("{exported:#}");
    let Some(file) = file else {
        // An export that a full disk cut short must not count as written.
        let written = writeln!(io::stdout(), "{text}");
        return written.map_err(|cause| write_error(Path::new("standard output"), &cause));
    };
    // A file that exists may be readable by others.
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let mut opened = opened.map_err(|cause| write_error(file, &cause))?;
    writeln!(opened, "{text}").map_err(|cause| {
        // A part of the accounts would be taken for all of them, and prevent the next attempt.
        drop(fs::remove_file(file));
        write_error(file, &cause)
    })
}

/// The arguments that all of these commands share.
#[derive(Args, Debug)]
pub(super) struct ArchiveArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Prints JSON instead of text.
    #[arg(long)]
    json: bool,
}

impl ArchiveArgs {
    pub(super) fn open(&self) -> Result<Accounts, CommandFailure> {
        let config = self.common.config()?;
        Ok(open_archive(&config)?.accounts(&config)?)
    }

    /// Opens the outbox of notification messages.
    pub(super) fn outbox(&self) -> Result<MessageOutbox, CommandFailure> {
        Ok(MessageOutbox::new(open_archive(&self.common.config()?)?.db))
    }

    /// Returns whether the output is JSON.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints the result of a command.
    pub(super) fn print_done(&self, what: &str, facts: &Value) {
        if self.json { print_json(facts) } else { print_error(what) }
    }

    /// Prints the result of a command, and the secret that it generated, if any, under its `name`.
    fn print_secret(&self, what: &str, mut facts: Value, name: &str, secret: Option<&str>) {
        let Some(secret) = secret else { return self.print_done(what, &facts) };
        if self.json {
            facts[name] = secret.into();
            print_json(&facts);
            return;
        }
        // Alone on standard output, so that a script can capture the secret.
        print_error(&format!("{what}; its {name} is shown this once:"));
        print_line(secret);
    }
}

impl From<AccountsError> for CommandFailure {
    fn from(error: AccountsError) -> Self {
        Self::Failed(error.into())
    }
}

/// The subcommands of `wirephoto user`.
#[derive(Debug, Subcommand)]
pub(super) enum UserCommand {
    /// Adds a user. Generates a password and prints it once, unless one is given.
    Add(NewUserArgs),
    /// Lists the users, without their passwords.
    List(ArchiveArgs),
    /// Disables a user at once: its sessions and tokens end, its API keys and password are refused.
    Disable(UserArgs),
    /// Enables a disabled user.
    Enable(UserArgs),
    /// Adds roles to a user, or removes them. ROLE_PROVIDER publishes and sees every item, ROLE_OPERATOR sees
    /// how the service runs. Giving one of the two prints the address to which links for a new password go.
    #[command(group = ArgGroup::new("change").required(true).multiple(true))]
    Role {
        #[command(flatten)]
        user: UserArgs,
        /// A role to add; can be repeated.
        #[arg(long = "add", group = "change", value_name = "ROLE")]
        added: Vec<String>,
        /// A role to remove; can be repeated.
        #[arg(long = "remove", group = "change", value_name = "ROLE")]
        removed: Vec<String>,
    },
    /// Changes a user's password, which ends its sessions and tokens. Generates a password and prints it
    /// once, unless one is given.
    Password {
        #[command(flatten)]
        user: UserArgs,
        /// Reads the password from the first line of standard input.
        #[arg(long)]
        password_stdin: bool,
    },
}

/// The user that a command acts on.
#[derive(Args, Debug)]
pub(super) struct UserArgs {
    #[command(flatten)]
    on: ArchiveArgs,
    /// Name of the user.
    pub(super) name: String,
}

/// A user to add.
#[derive(Args, Debug)]
pub(super) struct NewUserArgs {
    #[command(flatten)]
    on: ArchiveArgs,
    /// The name to log in with.
    pub(super) name: String,
    /// Number of the user's organization.
    #[arg(long, value_name = "ID")]
    organization: Option<i64>,
    /// E-mail address of the user.
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// First name of the user.
    #[arg(long, value_name = "NAME")]
    first_name: Option<String>,
    /// Last name of the user.
    #[arg(long, value_name = "NAME")]
    last_name: Option<String>,
    /// A role, such as ROLE_PROVIDER or ROLE_OPERATOR; can be repeated.
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    /// Number of an agreement of the user's organization; can be repeated.
    #[arg(long = "agreement", value_name = "ID")]
    agreements: Vec<i64>,
    /// Allows the user to administer the users of its organization.
    #[arg(long)]
    admin: bool,
    /// Marks the user as a program instead of a person.
    #[arg(long)]
    service_account: bool,
    /// Reads the password from the first line of standard input.
    #[arg(long)]
    password_stdin: bool,
}

/// The subcommands of `wirephoto client`.
#[derive(Debug, Subcommand)]
pub(super) enum ClientCommand {
    /// Adds a client. Generates a secret and prints it once; a public client has none.
    Add(NewClientArgs),
    /// Lists the clients, without their secrets.
    List(ArchiveArgs),
    /// Disables a client at once: its tokens are refused until it is enabled.
    Disable(ClientArgs),
    /// Enables a disabled client.
    Enable(ClientArgs),
    /// Replaces the secret of a client, and prints the new one once.
    Secret(ClientArgs),
}

/// The client that a command acts on.
#[derive(Args, Debug)]
pub(super) struct ClientArgs {
    #[command(flatten)]
    on: ArchiveArgs,
    /// The client_id of the client.
    pub(super) id: String,
}

/// A client to add.
#[derive(Args, Debug)]
pub(super) struct NewClientArgs {
    #[command(flatten)]
    on: ArchiveArgs,
    /// The client_id of the client.
    pub(super) id: String,
    /// Display name; the client_id by default.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Marks the client as public: it cannot keep a secret, like an app on a phone or in a browser.
    #[arg(long)]
    public: bool,
    /// A redirect URI that is allowed; can be repeated.
    #[arg(long = "redirect-uri", value_name = "URI")]
    redirect_uris: Vec<String>,
    /// A grant that the client may use: authorization_code, password, refresh_token, implicit; can be
    /// repeated.
    #[arg(long = "grant", value_name = "GRANT", required = true, value_delimiter = ',',
        value_parser = word::<GrantType>)]
    grants: Vec<GrantType>,
    /// The scopes that its tokens need: contract (`roles` grants almost everything) or enforced.
    #[arg(long, value_name = "KIND", default_value = "contract", hide_possible_values = true)]
    scopes: ScopeCheck,
    /// Lifetime of its access tokens in seconds, at most `auth.access_token_s`; needs --scopes enforced.
    #[arg(long, value_name = "SECONDS")]
    access_token_s: Option<u32>,
    /// Lets its tokens only read: they change, order and deliver nothing.
    #[arg(long)]
    read_only: bool,
}

/// The subcommands of `wirephoto key`.
#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Creates an API key for a user and prints it once.
    Add {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Name of the user.
        user: String,
        /// Display name of the key.
        #[arg(long, value_name = "NAME", default_value = "")]
        name: String,
        /// Lets the key only read: it changes, orders and delivers nothing.
        #[arg(long)]
        read_only: bool,
    },
    /// Lists the API keys without their secrets.
    List {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Lists only the keys of this user.
        user: Option<String>,
    },
    /// Revokes an API key permanently.
    Disable {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Number of the key, as listed.
        #[arg(value_name = "KEY_ID")]
        id: i64,
    },
}

/// The scopes that the tokens of a client need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ScopeCheck {
    /// The scopes that the contract describes.
    Contract,
    /// One scope for each area of the API, named after it.
    Enforced,
}

pub(super) fn user(command: UserCommand) -> Result<(), CommandFailure> {
    match command {
        UserCommand::Add(args) => add_user(args),
        UserCommand::List(on) => list_users(&on),
        UserCommand::Disable(user) => set_user_active(&user, false),
        UserCommand::Enable(user) => set_user_active(&user, true),
        UserCommand::Role { user: UserArgs { on, name }, added, removed } => {
            let changed = on.open()?.change_roles(&name, &added, &removed, clock::now())?;
            print_roles(&on, &name, &changed);
            Ok(())
        }
        UserCommand::Password { user: UserArgs { on, name }, password_stdin } => {
            let password = read_password(password_stdin)?;
            let generated = on.open()?.set_password(&name, password, clock::now())?;
            let what = format!("user {name:?} has a new password");
            on.print_secret(&what, json!({ "userName": name }), "password", generated.as_deref());
            Ok(())
        }
    }
}

/// Prints the roles of a user and, after a new role of the agency, the address to which links for a new
/// password go. An administrator of the user's organization may have set that address, and could log in as
/// the user.
fn print_roles(on: &ArchiveArgs, name: &str, changed: &ChangedRoles) {
    let ChangedRoles { roles, gains_agency_role, email_address } = changed;
    let shown = if roles.is_empty() { "none".to_owned() } else { roles.join(" ") };
    let facts = json!({ "userName": name, "roles": roles, "emailAddress": email_address });
    on.print_done(&format!("roles of user {name:?}: {shown}"), &facts);
    if on.is_json() || !gains_agency_role {
        return;
    }
    print_error(&match email_address {
        Some(address) => {
            format!("links for a new password go to {address}; check that this is the user's own")
        }
        None => "the user has no e-mail address for links for a new password".to_owned(),
    });
}

fn add_user(args: NewUserArgs) -> Result<(), CommandFailure> {
    let on = args.on;
    let request = UserRequest {
        user_name: args.name,
        organization: args.organization.map(OrganizationId),
        email_address: args.email,
        first_name: args.first_name,
        last_name: args.last_name,
        roles: args.roles,
        agreements: args.agreements.into_iter().map(AgreementId).collect(),
        access: AccessLevels { admin: args.admin, mediebank: false },
        service_account: args.service_account,
        password: read_password(args.password_stdin)?,
    };
    let added = on.open()?.add_user(&request, clock::now())?;
    let id = added.id;
    let name = &request.user_name;
    let what = format!("user {name:?} added with number {id}");
    let facts = json!({ "id": id, "userName": name });
    on.print_secret(&what, facts, "password", added.secret.as_deref());
    Ok(())
}

/// Reads the password from the first line of standard input, if the command asks for that.
fn read_password(from_stdin: bool) -> Result<Option<String>, CommandFailure> {
    if !from_stdin {
        return Ok(None);
    }
    // The limit is larger than the longest password, so that a longer password is refused instead of
    // truncated.
    let limit = u64::try_from(PASSWORD_BYTES_MAX + 3).unwrap_or(u64::MAX);
    let mut line = String::new();
    let read = io::stdin().lock().take(limit).read_line(&mut line);
    read.map_err(|cause| CommandFailure::Usage(format!("standard input: {cause}")))?;
    let password = line.strip_suffix('\n').unwrap_or(&line);
    Ok(Some(password.strip_suffix('\r').unwrap_or(password).to_owned()))
}

fn set_user_active(user: &UserArgs, active: bool) -> Result<(), CommandFailure> {
    let UserArgs { on, name } = user;
    on.open()?.set_user_active(name, active, clock::now())?;
    let facts = json!({ "userName": name, "active": active });
    on.print_done(&format!("user {name:?} is {}", enabled(active)), &facts);
    Ok(())
}

pub(super) fn enabled(active: bool) -> &'static str {
    if active { "enabled" } else { "disabled" }
}

fn list_users(on: &ArchiveArgs) -> Result<(), CommandFailure> {
    let head = ["ID", "NAME", "ORGANIZATION", "AGREEMENTS", "ROLES", "STATE"];
    print_list(on.json, &on.open()?.list_users()?, user_facts, head, user_row);
    Ok(())
}

fn user_row(listed: &ListedUser) -> [String; 6] {
    let ListedUser { user, agreements, .. } = listed;
    let mut marks = vec![enabled(user.active)];
    marks.extend(user.access.admin.then_some("admin"));
    marks.extend(user.service_account.then_some("service account"));
    marks.extend((!listed.has_password).then_some("no password"));
    let agreements: Vec<_> = agreements.iter().map(ToString::to_string).collect();
    [
        user.id.to_string(),
        user.user_name.clone(),
        user.organization.map(|id| id.to_string()).unwrap_or_default(),
        agreements.join(" "),
        user.roles.join(" "),
        marks.join(", "),
    ]
}

fn user_facts(listed: &ListedUser) -> Value {
    let ListedUser { user, has_password, agreements } = listed;
    json!({
        "id": user.id,
        "userName": user.user_name,
        "organization": user.organization,
        "emailAddress": user.email_address,
        "firstName": user.first_name,
        "lastName": user.last_name,
        "roles": user.roles,
        "access": user.access,
        "agreements": agreements,
        "active": user.active,
        "serviceAccount": user.service_account,
        "hasPassword": has_password,
    })
}

pub(super) fn client(command: ClientCommand) -> Result<(), CommandFailure> {
    match command {
        ClientCommand::Add(args) => add_client(args),
        ClientCommand::List(on) => {
            let head = ["CLIENT_ID", "NAME", "GRANTS", "REDIRECT URIS", "STATE"];
            print_list(on.json, &on.open()?.list_clients()?, client_facts, head, client_row);
            Ok(())
        }
        ClientCommand::Disable(client) => set_client_active(&client, false),
        ClientCommand::Enable(client) => set_client_active(&client, true),
        ClientCommand::Secret(ClientArgs { on, id }) => {
            let secret = on.open()?.renew_client_secret(&id)?;
            let what = format!("client {id:?} has a new secret");
            on.print_secret(&what, json!({ "client_id": id }), "client_secret", Some(&secret));
            Ok(())
        }
    }
}

fn add_client(args: NewClientArgs) -> Result<(), CommandFailure> {
    let on = args.on;
    let request = ClientRequest {
        client_id: args.id,
        client_secret: None,
        name: args.name,
        public: args.public,
        redirect_uris: args.redirect_uris,
        grants: args.grants,
        scopes: match args.scopes {
            ScopeCheck::Contract => ClientScopes::Contract,
            ScopeCheck::Enforced => ClientScopes::Enforced,
        },
        access_token_s: args.access_token_s,
        read_only: args.read_only,
    };
    let generated = on.open()?.add_client(&request, clock::now())?;
    let id = request.client_id;
    let what = format!("client {id:?} added");
    on.print_secret(&what, json!({ "client_id": id }), "client_secret", generated.as_deref());
    Ok(())
}

fn set_client_active(client: &ClientArgs, active: bool) -> Result<(), CommandFailure> {
    let ClientArgs { on, id } = client;
    on.open()?.set_client_active(id, active, clock::now())?;
    let facts = json!({ "client_id": id, "active": active });
    on.print_done(&format!("client {id:?} is {}", enabled(active)), &facts);
    Ok(())
}

fn client_facts(client: &OAuthClient) -> Value {
    json!({
        "client_id": client.client_id,
        "name": client.name,
        "public": client.is_public(),
        "redirect_uris": client.redirect_uris,
        "grants": client.grants,
        "active": client.active,
        "scopes": if client.scopes_enforced { "enforced" } else { "contract" },
        "accessTokenSeconds": client.access_token_s,
        "readOnly": client.read_only,
    })
}

fn client_row(client: &OAuthClient) -> [String; 5] {
    let grants: Vec<_> = client.grants.iter().map(|grant| grant.as_str()).collect();
    let kind = if client.is_public() { "public" } else { "confidential" };
    let mut state = format!("{}, {kind}", enabled(client.active));
    if client.scopes_enforced {
        state.push_str(", scopes enforced");
    }
    if let Some(seconds) = client.access_token_s {
        state.push_str(&format!(", tokens of {seconds} s"));
    }
    if client.read_only {
        state.push_str(", read-only");
    }
    [
        client.client_id.clone(),
        client.name.clone(),
        grants.join(" "),
        client.redirect_uris.join(" "),
        state,
    ]
}

pub(super) fn key(command: KeyCommand) -> Result<(), CommandFailure> {
    match command {
        KeyCommand::Add { on, user, name, read_only } => {
            let added = on.open()?.add_key(&user, &name, read_only, clock::now())?;
            let id = added.id;
            // The event was defined before the command ran, when the key had no number yet.
            audit_record::set_object(ObjectKind::Key, &id);
            let what = format!("API key {id} of user {user:?} added");
            let facts = json!({ "id": id, "user": user, "name": name, "readOnly": read_only });
            on.print_secret(&what, facts, "key", added.secret.as_deref());
        }
        KeyCommand::List { on, user } => {
            let head = ["KEY_ID", "USER", "NAME", "CREATED", "STATE"];
            print_list(on.json, &on.open()?.list_keys(user)?, key_facts, head, key_row);
        }
        KeyCommand::Disable { on, id } => {
            on.open()?.revoke_key(id, clock::now())?;
            let facts = json!({ "id": id, "active": false });
            on.print_done(&format!("API key {id} is revoked"), &facts);
        }
    }
    Ok(())
}

fn key_facts(key: &ListedKey) -> Value {
    json!({
        "id": key.id,
        "user": key.user_name,
        "name": key.name,
        "created": key.created,
        "revoked": key.revoked,
        "readOnly": key.read_only,
    })
}

fn key_row(key: &ListedKey) -> [String; 5] {
    let state = match key.revoked {
        Some(at) => format!("revoked {at}"),
        None if key.read_only => "enabled, read-only".to_owned(),
        None => "enabled".to_owned(),
    };
    [key.id.to_string(), key.user_name.clone(), key.name.clone(), key.created.to_string(), state]
}
