//! Manual pages and shell completions. The pages of commands come from the definitions that `--help` prints,
//! the page of settings from the settings table. Hidden commands are left out.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::{Cli, CommandFailure};
use crate::runtime::config::{self, SettingRow};
use crate::runtime::error::{Error, ErrorKind};

/// The source in the footer of a page.
const SOURCE: &str = concat!("Wirephoto ", env!("CARGO_PKG_VERSION"));
/// The pages carry a version instead of a date, so that they are reproducible. roff would drop an empty
/// argument, hence the space.
const NO_DATE: &str = " ";

/// Writes all pages into the folder `dir`, which is created; without `dir`, prints the main page.
///
/// The error names the file that cannot be written.
pub(super) fn write(dir: Option<&Path>) -> Result<(), CommandFailure> {
    let command = visible();
    let Some(dir) = dir else {
        print(&page(&command)?);
        return Ok(());
    };
    fs::create_dir_all(dir).map_err(|cause| write_error(dir, &cause))?;
    write_below(&command, dir)?;
    write_page(&dir.join("wirephoto.toml.5"), &settings()?)
}

/// Prints the completion script for `shell`.
pub(super) fn completions(shell: Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(), "wirephoto", &mut script);
    print(&script);
}

fn print(bytes: &[u8]) {
    // A reader that closed the pipe is not an error of this program.
    drop(io::stdout().write_all(bytes));
}

/// Returns the command tree without the hidden commands, which only the program itself starts.
pub(super) fn visible() -> Command {
    let all = Cli::command();
    // Subcommands cannot be removed from a command, so the visible subcommands are moved to a new root.
    let root = Command::new("wirephoto")
        .about(all.get_about().cloned().unwrap_or_default())
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .disable_help_subcommand(true);
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
    let mut root = root.subcommands(shown.cloned());
    root.build();
    root
}

fn write_below(command: &Command, dir: &Path) -> Result<(), CommandFailure> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    write_page(&dir.join(format!("{name}.1")), &page(command)?)?;
    command.get_subcommands().try_for_each(|subcommand| write_below(subcommand, dir))
}

fn write_page(file: &Path, page: &[u8]) -> Result<(), CommandFailure> {
    fs::write(file, page).map_err(|cause| write_error(file, &cause))
}

pub(super) fn write_error(path: &Path, cause: &io::Error) -> CommandFailure {
    Error::new(ErrorKind::Internal, format!("{}: {cause}", path.display())).into()
}

/// Renders the manual page of a command.
fn page(command: &Command) -> Result<Vec<u8>, CommandFailure> {
    let mut page = Vec::new();
    let man = Man::new(command.clone()).date(NO_DATE).source(SOURCE).manual("Wirephoto");
    man.render(&mut page).map_err(Error::internal)?;
    let mut end = Roff::new();
    if command.get_name() == "wirephoto" {
        end_of_main_page(&mut end);
    } else {
        end.control("SH", ["SEE ALSO"]);
        end.text([bold("wirephoto"), roman("(1), "), bold("wirephoto.toml"), roman("(5)")]);
    }
    end.to_writer(&mut page).map_err(Error::internal)?;
    Ok(page)
}

fn end_of_main_page(roff: &mut Roff) {
    roff.control("SH", ["EXIT STATUS"]);
    let statuses = [
        ("0", "All of the work succeeded."),
        ("1", "Some of the work failed; standard error says what."),
        ("2", "Arguments or settings are wrong."),
    ];
    statuses.iter().for_each(|(status, meaning)| entry(roff, [bold(*status)], meaning));
    roff.control("SH", ["ENVIRONMENT"]);
    entry(
        roff,
        [bold("WIREPHOTO_"), italic("SECTION"), bold("__"), italic("KEY")],
        "A setting, such as WIREPHOTO_MEDIA__PREVIEW_PX; it overrides the settings file, and a \
         flag overrides it.",
    );
    roff.control("SH", ["SIGNALS"]);
    entry(
        roff,
        [bold("SIGTERM"), roman(", "), bold("SIGINT")],
        "Stop the service after the requests in flight have finished.",
    );
    entry(roff, [bold("SIGHUP")], "Reloads the settings that can change while the service runs.");
    roff.control("SH", ["FILES"]);
    entry(roff, [italic("wirephoto.toml")], "The settings, in the working directory.");
    entry(
        roff,
        [italic("/etc/wirephoto/wirephoto.toml")],
        "The settings of the service that the Debian package installs; pass them to every command \
         with --config.",
    );
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("wirephoto.toml"), roman("(5)")]);
}

/// Writes a term with its meaning as an indented paragraph.
fn entry(roff: &mut Roff, name: impl Into<Vec<Inline>>, meaning: &str) {
    roff.control("TP", []);
    roff.text(name);
    roff.text([roman(meaning)]);
}

/// Adds settings below the names of their sections.
fn list_settings<'a>(roff: &mut Roff, rows: impl Iterator<Item = &'a SettingRow>) {
    let mut section = "";
    for row in rows {
        let (this, key) = row.name.split_once('.').unwrap_or_default();
        if this != section {
            section = this;
            roff.control("SS", [format!("[{section}]").as_str()]);
        }
        let mut name = vec![bold(key)];
        if !row.default.is_empty() {
            name.extend([roman(" = "), roman(row.default)]);
        }
        if !row.unit.is_empty() {
            name.extend([roman(" ("), italic(row.unit), roman(")")]);
        }
        entry(roff, name, &format!("{}.", row.doc));
    }
}

/// Renders the manual page of the settings.
fn settings() -> Result<Vec<u8>, CommandFailure> {
    let mut roff = Roff::new();
    roff.control("TH", ["wirephoto.toml", "5", NO_DATE, SOURCE, "Wirephoto"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman("wirephoto.toml - settings of Wirephoto")]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([
        roman("A file in TOML with a table for each section below. Every setting is optional. "),
        roman(
            "Sources of a value, in increasing precedence: the default, this file, the \
             environment (",
        ),
        bold("WIREPHOTO_"),
        italic("SECTION"),
        bold("__"),
        italic("KEY"),
        roman("), a flag such as "),
        bold("--set media.preview_px=1200"),
        roman(
            ". The service does not start with an unknown name or an invalid value, and the \
             message names it. ",
        ),
        bold("wirephoto config"),
        roman(" prints the values in force and where each comes from."),
    ]);
    roff.control("PP", []);
    roff.text([
        roman("Every command reads the file "),
        italic("wirephoto.toml"),
        roman(" in the working directory, or the one that "),
        bold("--config"),
        roman(" names."),
    ]);
    let rows = config::default_rows();
    roff.control("SH", ["SETTINGS"]);
    list_settings(&mut roff, rows.iter().filter(|row| !row.is_expert));
    roff.control("SH", ["EXPERT SETTINGS"]);
    roff.text([roman("The defaults suit almost every installation.")]);
    list_settings(&mut roff, rows.iter().filter(|row| row.is_expert));
    roff.control("SH", ["EXAMPLE"]);
    let example = [
        "[server]",
        "listen = \"127.0.0.1:8080\"",
        "public_url = \"https://pictures.example.com\"",
        "trusted_proxies = [\"127.0.0.1\"]",
        "",
        "[data]",
        "dir = \"/var/lib/wirephoto\"",
    ];
    // Without `nf`, roff would join the lines of the example.
    roff.control("nf", []);
    for line in example {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("wirephoto"), roman("(1)")]);
    let mut page = Vec::new();
    roff.to_writer(&mut page).map_err(Error::internal)?;
    Ok(page)
}
