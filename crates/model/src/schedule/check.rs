//! Validates cron expressions and time zone names before croner and jiff parse them.
//!
//! croner replaces names of days and months anywhere (`1mon` becomes 11) and skips text that it does not need
//! (`15Wx`, an empty part of a list). These are errors here.

use std::ops::RangeInclusive;

use croner::errors::CronError;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::ScheduleError;
use crate::limits::{SCHEDULE_CHARS_MAX, TIME_ZONE_CHARS_MAX};

/// Maximum number of characters of an unknown nickname that an error message repeats.
const NICKNAME_CHARS_SHOWN: usize = 20;

const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// The nicknames and their expressions, as in Unix crontabs.
const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// A field of a cron expression, which determines the letters allowed in it.
#[derive(Clone, Copy)]
enum CronField {
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
}

const FIELDS: [CronField; 5] =
    [CronField::Minute, CronField::Hour, CronField::Day, CronField::Month, CronField::Weekday];

/// Expands a nickname to its expression; returns a text without a leading `@` unchanged.
///
/// Fails for an unsupported nickname, such as `@reboot`.
pub(super) fn expand_nickname(cron: &str) -> Result<&str, ScheduleError> {
    let trimmed = cron.trim_matches(' ');
    if !trimmed.starts_with('@') {
        return Ok(cron);
    }
    for (name, expression) in NICKNAMES {
        if name.eq_ignore_ascii_case(trimmed) {
            return Ok(expression);
        }
    }
    let excerpt: String = trimmed.chars().take(NICKNAME_CHARS_SHOWN).collect();
    let names = NICKNAMES.map(|(name, _)| name).join(", ");
    let text = format!("{excerpt:?} is not a schedule; expected one of {names}");
    Err(ScheduleError::Cron(text))
}

/// Fails unless `cron` is a well-formed expression of five fields.
pub(super) fn check_expression(cron: &str) -> Result<(), ScheduleError> {
    // Comes before anything is split or echoed, as the text is a query parameter.
    if cron.len() > SCHEDULE_CHARS_MAX {
        let text = format!("the schedule is longer than {SCHEDULE_CHARS_MAX} characters");
        return Err(ScheduleError::Cron(text));
    }
    if let Some(bad) = cron.chars().find(|&c| !is_allowed(c)) {
        return Err(ScheduleError::Cron(format!("{bad:?} cannot be used in a schedule")));
    }
    let fields: Vec<&str> = cron.split_ascii_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(ScheduleError::Cron(format!(
            "the schedule has {} fields, expected 5: minute, hour, day of month, month, day of week",
            fields.len()
        )));
    }
    for (kind, field) in FIELDS.into_iter().zip(fields) {
        if !field.split(',').all(|part| is_part(kind, part)) {
            return Err(ScheduleError::Cron(format!("{field:?} is not {}", kind.name())));
        }
    }
    Ok(())
}

fn is_allowed(c: char) -> bool {
    c == ' ' || c.is_ascii_alphanumeric() || "*/,-?#".contains(c)
}

/// Reports whether `part`, a part of a list, is allowed in `field`.
fn is_part(field: CronField, part: &str) -> bool {
    // A step is a count, so the range of the field does not apply.
    let (values, step) = part.split_once('/').unwrap_or((part, "1"));
    // Each word is checked on its own, so croner never replaces a name inside a longer word.
    is_number(step) && values.split(['-', '#']).all(|word| is_word(field, word))
}

impl CronField {
    /// Returns the valid numbers of the field.
    fn values(self) -> RangeInclusive<u8> {
        match self {
            Self::Minute => 0..=59,
            Self::Hour => 0..=23,
            Self::Day => 1..=31,
            Self::Month => 1..=12,
            Self::Weekday => 0..=7,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Minute => "a minute (0-59)",
            Self::Hour => "an hour (0-23)",
            Self::Day => "a day of month (1-31, L, W)",
            Self::Month => "a month (1-12, JAN-DEC)",
            Self::Weekday => "a day of week (0-7, SUN-SAT, # and L after one)",
        }
    }
}

fn is_number(text: &str) -> bool {
    // Values and useful steps have at most two digits.
    (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reports whether `word`, a run of letters and digits, is allowed in `field`.
fn is_word(field: CronField, word: &str) -> bool {
    let is_star = word == "*";
    let upper = word.to_ascii_uppercase();
    match field {
        CronField::Minute | CronField::Hour => is_star || is_value(field, word),
        // `L` is the last day of the month, `W` the weekday nearest to a date.
        CronField::Day => {
            let day = upper.strip_suffix('W').unwrap_or(&upper);
            is_star || word == "?" || is_value(field, day) || ["L", "LW"].contains(&&*upper)
        }
        CronField::Month => is_star || is_value(field, word) || MONTHS.contains(&&*upper),
        CronField::Weekday => {
            let day = upper.strip_suffix('L').unwrap_or(&upper);
            is_star || word == "?" || is_value(field, day) || DAYS.contains(&day)
        }
    }
}

/// Reports whether `text` is a valid number of `field`.
fn is_value(field: CronField, text: &str) -> bool {
    is_number(text) && text.parse().is_ok_and(|value| field.values().contains(&value))
}

/// Converts an error of croner to our wording.
pub(super) fn convert_error(error: CronError) -> ScheduleError {
    ScheduleError::Cron(match error {
        CronError::EmptyPattern => "the schedule is empty".to_owned(),
        CronError::InvalidDate | CronError::InvalidTime | CronError::TimeSearchLimitExceeded => {
            "the schedule contains a time that does not exist".to_owned()
        }
        // These texts describe the expression. They are converted to lower case to read like our own messages.
        CronError::InvalidPattern(text)
        | CronError::IllegalCharacters(text)
        | CronError::ComponentError(text) => {
            format!("the schedule is not valid: {}", text.trim_end_matches('.').to_lowercase())
        }
    })
}

/// Finds a time zone by its name in the IANA database.
///
/// The bundled database decides the valid names, so a name is never used as a path. The rules come from the
/// system's database if there is one, since it may be newer.
pub(super) fn find_zone(name: &str) -> Result<TimeZone, ScheduleError> {
    // `Factory` is a placeholder in the IANA database for a machine without a time zone.
    if name.len() > TIME_ZONE_CHARS_MAX || name.eq_ignore_ascii_case("Factory") {
        return Err(unknown_zone(name));
    }
    let bundled = TimeZoneDatabase::bundled().get(name).map_err(|_| unknown_zone(name))?;
    Ok(TimeZone::get(name).unwrap_or(bundled))
}

fn unknown_zone(name: &str) -> ScheduleError {
    let excerpt = name.chars().filter(|c| !c.is_control()).take(TIME_ZONE_CHARS_MAX);
    ScheduleError::Zone(excerpt.collect())
}
