//! The runs of a scheduled e-mail: a cron expression in a time zone (contract notifications-18).
//!
//! The crate croner parses the expression and decides which days match. The next run is found here, in the periods
//! between changes of the UTC offset, because a digest must have exactly one window per run. croner cannot do
//! this: it treats `30 2,3 * * *` as an interval and runs it twice in autumn, and it searches for a 30 February up
//! to the year 5000.
//!
//! Daylight saving time: an expression that names its hours runs equally often on every day. A time that is
//! skipped in spring runs at the moment of the change, once even if several times were skipped. A time that occurs
//! twice in autumn runs on the first occurrence. An expression for every hour (`*/15 * * * *`) follows the wall
//! clock: it runs in both hours of autumn and does not run for the skipped hour of spring, so the interval between
//! two runs stays constant.

mod check;
#[cfg(test)]
mod tests;

use croner::{Cron, CronPattern, Weekday, parser::CronParser, parser::Seconds, parser::Year};
use jiff::civil::{Date, DateTime, DateTimeRound, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Unit};
use thiserror::Error;

use crate::limits::SCHEDULE_DAYS_MAX;

/// The reason for refusing a schedule.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ScheduleError {
    /// The cron expression is malformed; the text describes the problem.
    #[error("{0}")]
    Cron(String),
    /// The name is not a time zone of the IANA database.
    #[error("{0:?} is not a time zone; expected a name like Europe/Stockholm")]
    Zone(String),
    /// The expression is well-formed, but no day matches (30 February), or no day within eight years.
    #[error("no day within eight years matches the schedule")]
    Never,
}

/// The schedule of a scheduled e-mail, from which its next run is computed.
///
/// Contract notifications-18.
#[derive(Clone, Debug)]
pub struct Schedule {
    pattern: CronPattern,
    /// The matching hours, ascending and never empty.
    hours: Vec<i8>,
    /// The matching minutes, ascending and never empty.
    minutes: Vec<i8>,
    zone: TimeZone,
}

/// A period during which the UTC offset does not change.
struct OffsetPeriod {
    start: Timestamp,
    /// The exclusive end of the period.
    end: Timestamp,
    offset: Offset,
}

/// Longer than any repeated stretch of wall-clock time, which was 24 hours when a country crossed the date line.
const LOOKBACK: SignedDuration = SignedDuration::from_hours(48);

impl Schedule {
    /// Parses a cron expression of five fields (minute, hour, day of month, month, day of week) in the IANA time
    /// zone `zone`.
    ///
    /// Days and months may be names (`MON`, `jan`); `L`, `W` and `#` mean the same as in croner. A day matches if
    /// either its day of month or its day of week does; a field `*` is ignored in this. The nicknames `@hourly`,
    /// `@daily`, `@weekly` and so on are accepted instead of an expression and mean the same as in cron (contract
    /// notifications-18).
    ///
    /// Fails with a text for the user.
    pub fn parse(cron: &str, zone: &str) -> Result<Self, ScheduleError> {
        let cron = check::expand_nickname(cron)?;
        // croner accepts more than cron does, so the text is checked first; see `check`.
        check::check_expression(cron)?;
        let zone = check::find_zone(zone)?;
        let parser =
            CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let Cron { pattern } = parser.parse(cron).map_err(check::convert_error)?;
        // jiff uses `i8` for hours and minutes.
        let hours = pattern.hours.values().into_iter().flat_map(i8::try_from).collect();
        let minutes = pattern.minutes.values().into_iter().flat_map(i8::try_from).collect();
        let schedule = Self { pattern, hours, minutes, zone };
        let has_times = !schedule.hours.is_empty() && !schedule.minutes.is_empty();
        if has_times && schedule.has_days() { Ok(schedule) } else { Err(ScheduleError::Never) }
    }

    /// Finds the first run strictly after `after`.
    ///
    /// Runs are at whole minutes of the wall clock, or at the moment of an offset change that skipped one.
    ///
    /// Returns `None` if there is no run within [`SCHEDULE_DAYS_MAX`] days or before the end of jiff's calendar in
    /// the year 9999. Costs microseconds: each day is checked at most once.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let since = after.checked_sub(LOOKBACK).unwrap_or(Timestamp::MIN);
        let until = after.checked_add(SignedDuration::from_hours(24 * SCHEDULE_DAYS_MAX));
        let until = until.unwrap_or(Timestamp::MAX);
        let mut changes = self.zone.following(since);
        let mut start = since;
        let mut offset = self.zone.to_offset(since);
        // The latest time that the wall clock has shown, even if it was set back since. Earlier times already had
        // their run.
        let mut reached = offset.to_datetime(since);
        loop {
            let change = changes.next();
            let end = change.as_ref().map_or(until, |change| change.timestamp().min(until));
            let run = self.next_in_period(&OffsetPeriod { start, end, offset }, reached, after);
            if run.is_some() || end >= until {
                return run;
            }
            reached = reached.max(offset.to_datetime(end));
            start = end;
            offset = change?.offset();
        }
    }

    /// Finds the first run in an offset period that is later than `after`.
    fn next_in_period(
        &self,
        period: &OffsetPeriod,
        reached: DateTime,
        after: Timestamp,
    ) -> Option<Timestamp> {
        let first = period.offset.to_datetime(period.start);
        // An interval follows the clock; a list of all 24 hours is the same as `*`.
        let every_hour = self.hours.len() == 24;
        // Times between `reached` and `first` were skipped by the offset change.
        let skipped =
            !every_hour && period.start > after && self.find_matching(reached, first).is_some();
        // One run replaces all skipped runs, or several digests would be sent at the same moment.
        if skipped {
            return Some(period.start);
        }
        // In the repeated hour of autumn, a named hour already had its run.
        let from = if every_hour { first } else { first.max(reached) };
        // A run exactly at `after` was the previous run.
        let next = round_up(period.offset.to_datetime(after).checked_add(NANOSECOND).ok()?)?;
        let run = self.find_matching(from.max(next), period.offset.to_datetime(period.end))?;
        period.offset.to_timestamp(run).ok()
    }

    /// Finds the first matching minute of the wall clock in `from..end`.
    fn find_matching(&self, from: DateTime, end: DateTime) -> Option<DateTime> {
        let from = round_up(from)?;
        let mut day = from.date();
        let mut time = from.time();
        while day.at(0, 0, 0, 0) < end {
            if let Some(time) = self.matches(day).then(|| self.next_time(time)).flatten() {
                let found = day.to_datetime(time);
                // The first match decides: a later day would be even later than `end`.
                return (found < end).then_some(found);
            }
            day = day.tomorrow().ok()?;
            time = Time::midnight();
        }
        None
    }

    /// Finds the first matching time of a day, not before `from`.
    fn next_time(&self, from: Time) -> Option<Time> {
        let hour = first_at_least(&self.hours, from.hour())?;
        let minute = if hour > from.hour() { 0 } else { from.minute() };
        if let Some(minute) = first_at_least(&self.minutes, minute) {
            return Time::new(hour, minute, 0, 0).ok();
        }
        // This hour has no matching minute left, so the next matching hour's first minute is the result.
        let hour = first_at_least(&self.hours, hour.checked_add(1)?)?;
        let minute = *self.minutes.first()?;
        Time::new(hour, minute, 0, 0).ok()
    }

    fn matches(&self, day: Date) -> bool {
        let year = i32::from(day.year());
        let month = unsigned(day.month());
        let day_of_month = unsigned(day.day());
        let days_from_sunday = unsigned(day.weekday().to_sunday_zero_offset());
        let weekday = Weekday::from_days_from_sunday(days_from_sunday);
        // croner fails only on values outside the calendar, which jiff does not produce.
        self.pattern.month_match(month).unwrap_or(false)
            && self.pattern.day_match(year, month, day_of_month, weekday).unwrap_or(false)
    }

    /// Reports whether a day matches at least every eighth year.
    ///
    /// Within 28 years, years with and without a leap day begin on each weekday. Eight more years cover gaps that
    /// span the end of that cycle.
    fn has_days(&self) -> bool {
        let mut years_without = 0;
        for year in 2000..2036 {
            let first = Date::constant(year, 1, 1);
            let mut days =
                first.series(jiff::Span::new().days(1)).take_while(|d| d.year() == year);
            years_without = if days.any(|day| self.matches(day)) { 0 } else { years_without + 1 };
            if years_without >= 8 {
                return false;
            }
        }
        true
    }
}

/// Returns the first of ascending values that is not below `from`.
fn first_at_least(values: &[i8], from: i8) -> Option<i8> {
    values.iter().copied().find(|&value| value >= from)
}

/// Converts a part of a date to croner's type.
fn unsigned(value: i8) -> u32 {
    u32::from(value.unsigned_abs())
}

const NANOSECOND: SignedDuration = SignedDuration::from_nanos(1);

/// Rounds `time` up to a whole minute.
fn round_up(time: DateTime) -> Option<DateTime> {
    let up = DateTimeRound::new().smallest(Unit::Minute).mode(jiff::RoundMode::Ceil);
    time.round(up).ok()
}
