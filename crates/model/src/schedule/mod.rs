//! The runs of a scheduled e-mail: a cron expression in a time zone (contract
//! notifications-18).
//!
//! croner reads the expression and says which days match. The walk from one run to the next is
//! ours, over the stretches between two changes of the clock, because a digest must have exactly
//! one window per run: croner counts `30 2,3 * * *` as an interval and runs it twice in autumn, and
//! searches up to the year 5000 for a 30 February.
//!
//! Summer time: an expression that names its hours runs as often on every day.
//! A time that the clock skips in spring runs at the moment of the change, several of them together
//! once; a time that comes twice in autumn runs the first time. An expression for every hour
//! (`*/15 * * * *`) follows the clock on the wall: it runs in both hours of autumn, and what spring
//! skips is not made up for, so the time between two runs stays the same.

mod check;
#[cfg(test)]
mod tests;

use croner::{Cron, CronPattern, Weekday, parser::CronParser, parser::Seconds, parser::Year};
use jiff::{
    SignedDuration, Timestamp, Unit,
    civil::{Date, DateTime, DateTimeRound, Time},
    tz::{Offset, TimeZone},
};
use thiserror::Error;

use crate::limits::SCHEDULE_DAYS_MAX;

/// Why a schedule is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ScheduleError {
    /// The expression, with what is wrong in it.
    #[error("{0}")]
    Cron(String),
    /// The time zone, which is no name of the IANA database.
    #[error("{0:?} is not a time zone; expected a name like Europe/Stockholm")]
    Zone(String),
    /// The expression is sound, but no day satisfies it (30 February), or none for eight years.
    #[error("no day satisfies the schedule, or none for eight years")]
    Never,
}

/// When a scheduled e-mail is due.
///
/// Contract notifications-18.
#[derive(Clone, Debug)]
pub struct Schedule {
    pattern: CronPattern,
    /// Hours and minutes that match, ascending, never empty.
    hours: Vec<i8>,
    minutes: Vec<i8>,
    zone: TimeZone,
}

/// A stretch of time in which the clock is not changed.
struct OffsetPeriod {
    start: Timestamp,
    /// Exclusive.
    end: Timestamp,
    offset: Offset,
}

/// A range of a fold (24 hours where a country crossed the date line) and some more.
const LOOKBACK: SignedDuration = SignedDuration::from_hours(48);

impl Schedule {
    /// Reads a cron expression of 5 fields (minute, hour, day of month, month, day of week) in the
    /// IANA time zone `zone`.
    ///
    /// Days and months may have names (`MON`, `jan`), `L`, `W` and `#` mean what croner says. A day
    /// matches when its day of month or its day of week does, and a field `*` does not count. The
    /// nicknames `@hourly`, `@daily`, `@weekly` and so on stand for whole expressions.
    ///
    /// Fails with a text for the user.
    ///
    /// An expression has five fields, or is a nickname that means what it means to cron (contract
    /// notifications-18).
    pub fn parse(cron: &str, zone: &str) -> Result<Self, ScheduleError> {
        let cron = check::expand_nickname(cron)?;
        check::check_expression(cron)?;
        let zone = check::find_zone(zone)?;
        let parser =
            CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let Cron { pattern } = parser.parse(cron).map_err(check::convert_error)?;
        let small = |values: Vec<u16>| values.into_iter().flat_map(i8::try_from).collect();
        let hours: Vec<i8> = small(pattern.hours.values());
        let minutes: Vec<i8> = small(pattern.minutes.values());
        let schedule = Self { pattern, hours, minutes, zone };
        let some_time = !schedule.hours.is_empty() && !schedule.minutes.is_empty();
        if some_time && schedule.has_days() { Ok(schedule) } else { Err(ScheduleError::Never) }
    }

    /// The first run strictly after `after`.
    ///
    /// Runs are whole minutes of the wall clock, or the moment of a change that skipped one.
    ///
    /// Gives nothing when there is none within [`SCHEDULE_DAYS_MAX`] days or in jiff's calendar,
    /// which ends in the year 9999. Costs microseconds, at most one look at each of these days.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let since = after.checked_sub(LOOKBACK).unwrap_or(Timestamp::MIN);
        let until = after.checked_add(SignedDuration::from_hours(24 * SCHEDULE_DAYS_MAX));
        let until = until.unwrap_or(Timestamp::MAX);
        let mut changes = self.zone.following(since);
        let mut start = since;
        let mut offset = self.zone.to_offset(since);
        // How far the wall clock has come, whatever it was set back to since.
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

    /// The first run of a stretch that is after `after`.
    fn next_in_period(
        &self,
        stretch: &OffsetPeriod,
        reached: DateTime,
        after: Timestamp,
    ) -> Option<Timestamp> {
        let first = stretch.offset.to_datetime(stretch.start);
        let every_hour = self.hours.len() == 24;
        let skipped =
            !every_hour && stretch.start > after && self.find_matching(reached, first).is_some();
        if skipped {
            return Some(stretch.start);
        }
        let from = if every_hour { first } else { first.max(reached) };
        // A run at `after` itself was the last one.
        let next = round_up(stretch.offset.to_datetime(after).checked_add(NANOSECOND).ok()?)?;
        let run = self.find_matching(from.max(next), stretch.offset.to_datetime(stretch.end))?;
        stretch.offset.to_timestamp(run).ok()
    }

    /// The first minute of the wall clock from `from` to before `end` that matches.
    fn find_matching(&self, from: DateTime, end: DateTime) -> Option<DateTime> {
        let from = round_up(from)?;
        let (mut day, mut time) = (from.date(), from.time());
        while day.at(0, 0, 0, 0) < end {
            if let Some(time) = self.matches(day).then(|| self.next_time(time)).flatten() {
                let found = day.to_datetime(time);
                return (found < end).then_some(found);
            }
            (day, time) = (day.tomorrow().ok()?, Time::midnight());
        }
        None
    }

    /// The first time of a day that matches, from `from` on.
    fn next_time(&self, from: Time) -> Option<Time> {
        let next = |values: &[i8], from: i8| values.iter().copied().find(|&value| value >= from);
        let hour = next(&self.hours, from.hour())?;
        let minute = if hour > from.hour() { 0 } else { from.minute() };
        let (hour, minute) = match next(&self.minutes, minute) {
            Some(minute) => (hour, minute),
            None => (next(&self.hours, hour.checked_add(1)?)?, *self.minutes.first()?),
        };
        Time::new(hour, minute, 0, 0).ok()
    }

    fn matches(&self, day: Date) -> bool {
        let number = |value: i8| u32::from(value.unsigned_abs());
        let month = number(day.month());
        let weekday =
            Weekday::from_days_from_sunday(number(day.weekday().to_sunday_zero_offset()));
        self.pattern.month_match(month).unwrap_or(false)
            && self
                .pattern
                .day_match(i32::from(day.year()), month, number(day.day()), weekday)
                .unwrap_or(false)
    }

    /// Whether a day matches at least every eighth year.
    ///
    /// In 28 years a year begins on each weekday, with and without a leap day; eight more see the
    /// years across the seam.
    fn has_days(&self) -> bool {
        let mut without = 0;
        for year in 2000..2036 {
            let first = Date::constant(year, 1, 1);
            let mut days =
                first.series(jiff::Span::new().days(1)).take_while(|d| d.year() == year);
            without = if days.any(|day| self.matches(day)) { 0 } else { without + 1 };
            if without >= 8 {
                return false;
            }
        }
        true
    }
}

const NANOSECOND: SignedDuration = SignedDuration::from_nanos(1);

/// The whole minute that is not before `time`.
fn round_up(time: DateTime) -> Option<DateTime> {
    let up = DateTimeRound::new().smallest(Unit::Minute).mode(jiff::RoundMode::Ceil);
    time.round(up).ok()
}
