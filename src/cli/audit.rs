//! `wirephoto audit list`: lists events of the audit log.

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use serde_json::json;

use super::table::table;
use super::values::word;
use super::{CommandFailure, CommonArgs, open_archive, print_json, print_line, usage};
use crate::runtime::clock;
use crate::runtime::config::NetworkList;
use crate::runtime::error::Error;
use crate::storage::audit::{AuditAction, AuditOutcome};
use crate::storage::database::{AuditFilter, ListedEvent};

/// Default number of events that `wirephoto audit list` prints.
const AUDIT_LISTED_DEFAULT: usize = 100;
/// Maximum number of events that it prints.
const AUDIT_LISTED_MAX: usize = 1_000_000;

/// The subcommands of `wirephoto audit`.
#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Lists events, the newest first.
    List(AuditListArgs),
}

/// The events to list.
#[derive(Args, Debug)]
pub(super) struct AuditListArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Prints one JSON object per line.
    #[arg(long)]
    json: bool,
    /// Only events since this time: 2026-05-04T12:00:00Z, 2026-05-04, or an age such as 90m, 24h, 7d.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only events before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only events by this user.
    #[arg(long, value_name = "NAME|ID")]
    user: Option<String>,
    /// Only events of this action, such as login or key_created.
    #[arg(long, value_parser = word::<AuditAction>)]
    action: Option<AuditAction>,
    /// Only events about this object, such as key/7; with a trailing slash, about all objects of the
    /// kind.
    #[arg(long)]
    object: Option<String>,
    /// Only events with this outcome: done, refused, failed.
    #[arg(long, value_parser = word::<AuditOutcome>)]
    outcome: Option<AuditOutcome>,
    /// Only events from this address or network; separate several with commas.
    #[arg(long, value_name = "IP|NET")]
    address: Option<NetworkList>,
    /// Maximum number of events.
    #[arg(long, value_name = "N", default_value_t = AUDIT_LISTED_DEFAULT)]
    limit: usize,
}

/// Parses a time, a day (midnight in `zone`), or an age before `now`; `None` for any other text.
fn moment(text: &str, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    if let Ok(day) = text.parse::<Date>() {
        return day.to_zoned(zone.clone()).ok().map(|midnight| midnight.timestamp());
    }
    // An age: a count and a unit.
    let unit = text.chars().next_back()?;
    // A negative age would be a time in the future.
    let count: i64 = text.strip_suffix(unit)?.parse().ok().filter(|count| *count >= 0)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    now.checked_sub(SignedDuration::from_secs(count.checked_mul(seconds)?)).ok()
}

/// Parses the time that the flag `flag` states; returns `None` without the flag.
fn parse_flag(
    flag: &str,
    text: Option<&str>,
    zone: &TimeZone,
    now: Timestamp,
) -> Result<Option<Timestamp>, CommandFailure> {
    let Some(text) = text else { return Ok(None) };
    let Some(at) = moment(text, zone, now) else {
        let expected = "expected a time, a day or an age such as 24h";
        return usage(format!("--{flag} {text}: {expected}"));
    };
    Ok(Some(at))
}

pub(super) fn run(command: AuditCommand) -> Result<(), CommandFailure> {
    let AuditCommand::List(args) = command;
    let config = args.common.config()?;
    let zone = &config.ingest.timezone.0;
    let now = clock::now();
    let filter = AuditFilter {
        since: parse_flag("since", args.since.as_deref(), zone, now)?,
        until: parse_flag("until", args.until.as_deref(), zone, now)?,
        user: args.user,
        action: args.action,
        outcome: args.outcome,
        object: args.object,
        addresses: args.address,
    };
    // All listed events are held in memory.
    let limit = args.limit.min(AUDIT_LISTED_MAX);
    let db = open_archive(&config)?.db;
    let events = db.read_blocking(move |tx| tx.list_audit(&filter, limit));
    print(&events.map_err(Error::from)?, args.json);
    Ok(())
}

fn print(events: &[ListedEvent], json: bool) {
    if json {
        events.iter().for_each(|event| print_json(&json!(event)));
        return;
    }
    let rows: Vec<_> = events.iter().map(row).collect();
    let head = ["TIME", "ACTION", "OUTCOME", "USER", "CREDENTIAL", "ADDRESS", "OBJECT", "DETAIL"];
    print_line(&table(head, &rows));
}

fn row(event: &ListedEvent) -> [String; 8] {
    let user = match &event.user_name {
        Some(name) => name.clone(),
        None => event.user.map(|number| number.to_string()).unwrap_or_default(),
    };
    let credential = match &event.credential_id {
        Some(id) => format!("{} {id}", event.credential),
        None => event.credential.clone(),
    };
    let detail = event.detail.clone().unwrap_or_default();
    // A repeated event, such as a failed login of a scan, is one row with a count.
    let detail = if event.count > 1 { format!("{}x {detail}", event.count) } else { detail };
    [
        event.at.to_string(),
        event.action.clone(),
        event.outcome.clone(),
        user,
        credential,
        event.address.clone().unwrap_or_default(),
        event.object.clone().unwrap_or_default(),
        detail,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_a_day_or_an_age() {
        let zone = TimeZone::get("Europe/Stockholm").unwrap();
        let now: Timestamp = "2026-05-04T12:00:00Z".parse().unwrap();
        let check = |text: &str, expected: Option<&str>| {
            let found = moment(text, &zone, now).map(|at| at.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("2026-05-01T10:00:00Z", Some("2026-05-01T10:00:00Z"));
        check("2026-05-01", Some("2026-04-30T22:00:00Z"));
        check("90m", Some("2026-05-04T10:30:00Z"));
        check("7d", Some("2026-04-27T12:00:00Z"));
        for text in ["", "7", "d", "-1h", "7å", "99999999999999999999d", "yesterday"] {
            check(text, None);
        }
    }
}
