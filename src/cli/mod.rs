//! The command line. The only module that prints to standard output and standard error.

mod accounts;
mod agreements;
mod audit;
mod audit_extent;
mod audit_record;
mod benchmark;
mod channels;
mod demo;
mod doctor;
mod health;
mod ingest;
mod maintenance;
mod manual;
mod migrate;
mod nodes;
mod outbox;
mod progress;
mod purge;
mod reference;
mod secrets;
mod serve;
mod signing_key;
mod store;
mod subprocess;
mod table;
mod values;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use serde_json::{Value, json};

use crate::app::{self, OpenArchive};
use crate::runtime::config::{self, Config, RawSettings, SettingRow, SettingSources};
use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::modes;
use values::name_and_value;

/// Rendition server and content API for news agencies and picture desks.
#[derive(Debug, Parser)]
#[command(name = "wirephoto", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Serves media, the API and the pages until SIGTERM or SIGINT; SIGHUP reloads the settings.
    Serve(serve::ServeArgs),
    /// Ingests photographs, item folders, trees of them, and files of documents (.jsonl).
    Ingest {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints one JSON object per line: one for each item; of a .jsonl file only the failures and a
        /// summary of the file.
        #[arg(long)]
        json: bool,
        /// Files and folders to ingest.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Withdraws items: sets their status to canceled. Sending an item again restores it.
    Withdraw {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints one JSON object per line.
        #[arg(long)]
        json: bool,
        /// Items: URIs of any host, or <mediaType>/<id>.
        #[arg(required = true, value_name = "URI")]
        uris: Vec<String>,
    },
    /// Queues cache purges for the CDN, of the pages and media that show these items, or of everything; the
    /// running service sends them.
    Purge {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
        /// Purges everything that the CDN has cached of this service.
        #[arg(long, conflicts_with = "uris")]
        all: bool,
        /// Items: URIs of any host, or <mediaType>/<id>.
        #[arg(required_unless_present = "all", value_name = "URI")]
        uris: Vec<String>,
    },
    /// Imports an accounts file; idempotent.
    Import {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
        /// The accounts file to import.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Exports accounts as an accounts file.
    #[command(subcommand)]
    Accounts(accounts::AccountsCommand),
    /// Adds, lists and shows organizations, the customers of the agency.
    #[command(subcommand)]
    Organization(agreements::OrganizationCommand),
    /// Adds, lists and shows agreements of organizations.
    #[command(subcommand)]
    Agreement(agreements::AgreementCommand),
    /// Adds, lists and shows products, which agreements cover.
    #[command(subcommand)]
    Product(agreements::ProductCommand),
    /// Adds, lists and shows licences, the price list for orders. `licence` is the same command.
    #[command(subcommand, alias = "licence")]
    License(agreements::LicenseCommand),
    /// Adds, lists, disables and enables users, and changes their roles and passwords.
    #[command(subcommand)]
    User(accounts::UserCommand),
    /// Adds, lists, disables and enables OAuth2 clients, and replaces their secrets.
    #[command(subcommand)]
    Client(accounts::ClientCommand),
    /// Lists and rotates the keys that id tokens are signed with.
    #[command(subcommand)]
    SigningKey(signing_key::SigningKeyCommand),
    /// Adds, lists and revokes API keys.
    #[command(subcommand)]
    Key(accounts::KeyCommand),
    /// Adds, lists, disables, enables and removes delivery channels of users.
    #[command(subcommand)]
    Channel(channels::ChannelCommand),
    /// Removes the demo accounts.
    #[command(subcommand)]
    Demo(demo::DemoCommand),
    /// Encrypts the secrets of the archive with a new key.
    #[command(subcommand)]
    Secrets(secrets::SecretsCommand),
    /// Lists deliveries and retries failed ones.
    #[command(subcommand)]
    Delivery(channels::DeliveryCommand),
    /// Lists, retries and removes notification messages that are waiting or parked.
    #[command(subcommand)]
    Outbox(outbox::OutboxCommand),
    /// Lists the nodes that serve the archive, whether each is alive, and the leases it holds.
    ///
    /// Waits until the heartbeat of every node has risen, for 12 seconds at most. A node that runs alone
    /// rarely writes a heartbeat, so it is listed with the time it was last seen. A node of the role edge has no
    /// heartbeat and is not listed.
    Nodes {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Diagnoses disk, database, store, nodes, clocks and the public address from this machine; exit status 1
    /// if something does not work.
    Doctor {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Assigns a store of originals to an archive.
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Lists events of the audit log: who did what, when, with which credentials.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Checks the database, compares it with the store, and verifies derived files against the originals;
    /// exit status 1 if anything is missing or damaged. Orphaned originals are a warning.
    Check {
        #[command(flatten)]
        common: CommonArgs,
        #[command(flatten)]
        args: maintenance::CheckArgs,
        /// Prints one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Copies a consistent snapshot of the archive into a folder while the service runs.
    ///
    /// An earlier backup of the same archive in that folder is updated: only new originals are copied, and
    /// the earlier backup stays intact until the new one is complete. With --bucket the originals are copied
    /// into a bucket and everything else into the folder. Write a folder called verify as ./verify.
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Backup {
        #[command(flatten)]
        common: CommonArgs,
        #[command(flatten)]
        args: maintenance::BackupArgs,
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<maintenance::BackupCommand>,
    },
    /// Copies a backup into a data directory that holds no archive, and checks the result.
    Restore {
        #[command(flatten)]
        common: CommonArgs,
        #[command(flatten)]
        args: maintenance::RestoreArgs,
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Migrates the archive to PostgreSQL and S3 while the service runs; writes are blocked for a moment at
    /// the end.
    ///
    /// Originals that were copied earlier are skipped. Without --switch this is a dry run: the archive stays
    /// here, and the command can be repeated until the final migration.
    Migrate {
        #[command(flatten)]
        common: CommonArgs,
        #[command(flatten)]
        args: migrate::MigrateArgs,
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Makes every process that serves searches build a new search index from the stored documents, next to
    /// its current one.
    Reindex {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Measures how many crops, watermarks and previews this machine renders per second.
    ///
    /// The photographs are copied into a temporary data directory, which is removed at the end; nothing else
    /// is touched. Each operation is measured on one render worker and on all of them, without cache and
    /// without HTTP.
    Bench(benchmark::BenchArgs),
    /// Asks a running service for its readiness; exit status 1 if it is not ready.
    Health {
        #[command(flatten)]
        common: CommonArgs,
        /// Base URL of the service; by default the one that the settings describe.
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Prints the manual page, or writes the pages of all commands and of the settings.
    Man {
        /// Folder to write the pages into.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Prints a completion script for a shell.
    Completions {
        /// The shell: bash, zsh, fish, elvish or powershell.
        #[arg(hide_possible_values = true)]
        shell: Shell,
    },
    /// Writes the reference pages of the documentation from the tables of the program.
    #[command(hide = true)]
    Reference {
        /// Folder to write the pages into.
        #[arg(long, value_name = "DIR", default_value = "docs/reference")]
        dir: PathBuf,
    },
    /// Reads a PDF in a subprocess of the service.
    #[command(hide = true)]
    Pdf(subprocess::PdfArgs),
    /// Replaces this process with another program, under resource limits.
    #[command(hide = true)]
    Limited(subprocess::LimitedArgs),
    /// Prints every setting with its value, default, source, unit and meaning.
    #[command(args_conflicts_with_subcommands = true)]
    Config {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints a JSON array.
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
}

/// The subcommands of `wirephoto config`.
#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Checks the settings and opens the files that they name, as the service would; exit status 2 if something
    /// is wrong. Run it before a start and before a reload.
    Check {
        #[command(flatten)]
        common: CommonArgs,
    },
}

impl CliCommand {
    /// Returns whether the command only writes documentation, whose files may be readable by everyone.
    fn writes_for_others(&self) -> bool {
        matches!(self, Self::Man { .. } | Self::Completions { .. } | Self::Reference { .. })
    }
}

/// The options of the commands that read the settings.
#[derive(Args, Debug)]
struct CommonArgs {
    /// Data directory: database, originals, derived files.
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    #[command(flatten)]
    given: SettingArgs,
}

/// The sources of settings on the command line: a file and single values.
#[derive(Args, Debug)]
struct SettingArgs {
    /// Settings file; by default wirephoto.toml, if it exists.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One setting, such as media.preview_px=1200; can be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    settings: Vec<(String, String)>,
}

impl CommonArgs {
    /// Loads the settings of a command that has no other options for settings.
    fn config(&self) -> Result<Config, CommandFailure> {
        let (config, values) = config::load(&self.sources(&[]))?;
        print_warnings(&values);
        Ok(config)
    }

    /// Returns the sources of the settings; `extra` are settings, by name, that the command has options for.
    fn sources(&self, extra: &[(&str, &Option<String>)]) -> SettingSources {
        let mut flags = self.given.settings.clone();
        let common = [("data.dir", &self.data)];
        for (name, value) in common.iter().chain(extra) {
            flags.extend(value.iter().map(|value| ((*name).to_owned(), value.clone())));
        }
        SettingSources { file: self.given.config.clone(), flags }
    }
}

/// The reason why a command fails, with its exit status.
enum CommandFailure {
    /// Settings or arguments are invalid: exit status 2.
    Usage(String),
    /// Some of the work failed, and the command has printed what: exit status 1.
    Reported,
    /// The command failed as a whole: exit status 1.
    Failed(Error),
}

impl From<Error> for CommandFailure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<config::ConfigError> for CommandFailure {
    fn from(error: config::ConfigError) -> Self {
        Self::Usage(error.0)
    }
}

/// Runs the command line. The exit status is 0 if all of the work succeeded, 1 if some of it failed, 2 for
/// invalid usage.
pub fn main() -> ExitCode {
    let command = Cli::parse().command;
    // Other commands handle archives and secrets, so the files that they create are private to the user.
    if !command.writes_for_others() {
        modes::make_private();
    }
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandFailure::Usage(message)) => {
            print_error(&message);
            ExitCode::from(2)
        }
        Err(CommandFailure::Reported) => ExitCode::FAILURE,
        Err(CommandFailure::Failed(error)) => {
            print_error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Prints to standard error; a write error is ignored, because there is no other channel to report it on.
fn print_error(message: &str) {
    drop(writeln!(io::stderr(), "wirephoto: {message}"));
}

/// Prints the warnings about the values of settings to standard error.
fn print_warnings(values: &RawSettings) {
    for warning in values.warnings() {
        print_error(&warning);
    }
}

/// Prints to standard output; a reader that closed the pipe is not an error of this program.
fn print_line(text: &str) {
    drop(writeln!(io::stdout(), "{text}"));
}

/// Prints a JSON document on one line of standard output.
fn print_json(document: &Value) {
    print_line(&document.to_string());
}

/// Prints the result of a command: `facts` as JSON, or else `text`.
fn print_result(json: bool, facts: &Value, text: &str) {
    if json { print_json(facts) } else { print_line(text) }
}

/// Returns the failure for arguments that do not fit together or cannot be parsed.
fn usage<T>(message: impl Into<String>) -> Result<T, CommandFailure> {
    Err(CommandFailure::Usage(message.into()))
}

/// Opens the archive for a command, without claiming ownership of its store.
fn open_archive(config: &Config) -> Result<OpenArchive, CommandFailure> {
    Ok(report_opened(OpenArchive::open_without_ownership(config)?))
}

/// Reports a schema upgrade of the opened archive on standard error, and registers its database for the audit
/// log. The server reports the upgrade in its log instead.
fn report_opened(archive: OpenArchive) -> OpenArchive {
    report_upgrade(archive.db.upgraded);
    audit_record::set_database(&archive.db);
    archive
}

fn report_upgrade(upgraded: Option<(i64, i64)>) {
    if let Some((from, to)) = upgraded {
        print_error(&format!(
            "the database was upgraded from schema {from} to {to}; earlier versions of wirephoto \
             can no longer use it"
        ));
    }
}

fn run(command: CliCommand) -> Result<(), CommandFailure> {
    audit_record::run(audit_extent::audit_extent(&command), || dispatch(command))
}

fn dispatch(command: CliCommand) -> Result<(), CommandFailure> {
    match command {
        CliCommand::Serve(args) => serve::serve(&args),
        CliCommand::Ingest { common, json, paths } => {
            ingest::ingest_paths(&common.config()?, &paths, json)
        }
        CliCommand::Withdraw { common, json, uris } => {
            ingest::withdraw(&common.config()?, &uris, json)
        }
        CliCommand::Purge { common, json, all, uris } => {
            purge::purge(&common.config()?, &uris, all, json)
        }
        CliCommand::Import { common, json, file } => {
            accounts::import(&common.config()?, &file, json)
        }
        CliCommand::Accounts(command) => accounts::accounts(&command),
        CliCommand::Organization(command) => agreements::organization(command),
        CliCommand::Agreement(command) => agreements::agreement(command),
        CliCommand::Product(command) => agreements::product(command),
        CliCommand::License(command) => agreements::license(command),
        CliCommand::User(command) => accounts::user(command),
        CliCommand::Client(command) => accounts::client(command),
        CliCommand::SigningKey(command) => signing_key::run(command),
        CliCommand::Key(command) => accounts::key(command),
        CliCommand::Channel(command) => channels::channel(command),
        CliCommand::Demo(command) => demo::run(command),
        CliCommand::Secrets(command) => secrets::run(command),
        CliCommand::Delivery(command) => channels::delivery(command),
        CliCommand::Outbox(command) => outbox::run(command),
        CliCommand::Doctor { common, json } => doctor::run(&common.config()?, json),
        CliCommand::Store(command) => store::run(command),
        CliCommand::Nodes { common, json } => nodes::list(&common.config()?, json),
        CliCommand::Audit(command) => audit::run(command),
        CliCommand::Check { common, args, json } => {
            maintenance::check(&common.config()?, args, json)
        }
        CliCommand::Backup { command: Some(command), .. } => maintenance::backup_command(command),
        CliCommand::Backup { common, args, json, command: None } => {
            maintenance::backup(&common.config()?, &args, json)
        }
        CliCommand::Restore { common, args, json } => {
            maintenance::restore(&common.config()?, &args, json)
        }
        CliCommand::Migrate { common, args, json } => {
            migrate::migrate(&common.config()?, &args, json)
        }
        CliCommand::Reindex { common, json } => reindex(&common.config()?, json),
        CliCommand::Bench(args) => benchmark::run(args),
        CliCommand::Health { common, url, json } => {
            health::check_service(&common.config()?, url.as_deref(), json)
        }
        CliCommand::Man { dir } => manual::write(dir.as_deref()),
        CliCommand::Reference { dir } => reference::write(&dir),
        CliCommand::Completions { shell } => {
            manual::completions(shell);
            Ok(())
        }
        CliCommand::Pdf(arguments) => subprocess::pdf(&arguments).map_err(program_failure),
        CliCommand::Limited(arguments) => subprocess::limited(&arguments).map_err(program_failure),
        CliCommand::Config { command: Some(ConfigCommand::Check { common }), .. } => {
            check_config(&common.sources(&[]))
        }
        CliCommand::Config { common, json, command: None } => {
            print_config(&common.sources(&[]), json)
        }
    }
}

/// Turns the error text of a subprocess command into a failure; the parent process reads the text.
fn program_failure(message: String) -> CommandFailure {
    CommandFailure::Failed(Error::new(ErrorKind::InvalidArgument, message))
}

fn reindex(config: &Config, json: bool) -> Result<(), CommandFailure> {
    let items = open_archive(config)?.request_reindex()?;
    let text = format!(
        "every process that searches builds a new index of {items} items next to its current one; \
         a process that is not running does so at its start"
    );
    print_result(json, &json!({ "items": items }), &text);
    Ok(())
}

/// Checks the settings and the files that they name.
fn check_config(sources: &SettingSources) -> Result<(), CommandFailure> {
    let (config, values) = config::load(sources)?;
    print_warnings(&values);
    let mut problems = app::unusable_files(&config, &config.rows(&values));
    // A file that cannot be read would be named a second time.
    if problems.is_empty() {
        problems = app::unusable_values(&config);
    }
    if !problems.is_empty() {
        // Each problem is a line; `print_error` writes the prefix of the first one.
        return usage(problems.join("\nwirephoto: "));
    }
    let file =
        values.file().map_or_else(|| "no file".to_owned(), |file| file.display().to_string());
    print_line(&format!("the settings are valid and their files can be read ({file})"));
    Ok(())
}

fn print_config(sources: &SettingSources, json: bool) -> Result<(), CommandFailure> {
    let (config, values) = config::load(sources)?;
    print_warnings(&values);
    let rows = config.rows(&values);
    if json {
        print_json(&json!(rows));
        return Ok(());
    }
    print_sections(rows.iter().filter(|row| !row.is_expert));
    print_line("\n# Expert settings, which hardly any installation changes\n");
    print_sections(rows.iter().filter(|row| row.is_expert));
    Ok(())
}

/// Prints settings below the names of their sections, each with its origin and meaning.
fn print_sections<'a>(rows: impl Iterator<Item = &'a SettingRow>) {
    let mut section = "";
    for row in rows {
        let (row_section, key) = row.name.split_once('.').unwrap_or_default();
        if row_section != section {
            let blank_line = if section.is_empty() { "" } else { "\n" };
            print_line(&format!("{blank_line}[{row_section}]"));
            section = row_section;
        }
        let value = if row.value.is_empty() { "\"\"" } else { &row.value };
        let unit = if row.unit.is_empty() { String::new() } else { format!(" {}", row.unit) };
        let default = if row.value == row.default {
            "default".to_owned()
        } else if row.default.is_empty() {
            format!("{}, default empty", row.origin.as_str())
        } else {
            format!("{}, default {}", row.origin.as_str(), row.default)
        };
        let reloads = if row.reloads { ", changes on SIGHUP" } else { "" };
        print_line(&format!("{key} = {value}{unit}  ({default}{reloads})\n    {}", row.doc));
    }
}
