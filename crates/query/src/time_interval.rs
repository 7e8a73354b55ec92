//! Parses the dates and times of queries.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// The interval of a year, a month, a day or a time: inclusive start, exclusive end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeInterval {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

impl TimeInterval {
    /// Parses `YYYY`, `YYYY-MM`, `YYYY-MM-DD`, or an RFC 3339 date-time. Days, and times without an offset, are in
    /// `zone`.
    ///
    /// A time with seconds is that whole second, as a day is the whole day. A time with a fraction is one
    /// millisecond, the resolution of the index.
    pub(super) fn parse(text: &str, zone: &TimeZone) -> Option<Self> {
        if !has_rfc3339_shape(text) {
            return None;
        }
        let (first_day, span) = match text.len() {
            4 => (format!("{text}-01-01"), Span::new().years(1)),
            7 => (format!("{text}-01"), Span::new().months(1)),
            10 => (text.to_owned(), Span::new().days(1)),
            _ => return Self::time(text, zone),
        };
        let day: Date = first_day.parse().ok()?;
        // East of Greenwich, year 0 would start in a UTC year without four digits.
        if day.year() < 1 {
            return None;
        }
        // The end of the year 9999 is beyond the last timestamp.
        let end = day.checked_add(span).ok().and_then(|end| midnight(end, zone));
        Some(Self { start: midnight(day, zone)?, end: end.unwrap_or(Timestamp::MAX) })
    }

    fn time(text: &str, zone: &TimeZone) -> Option<Self> {
        let start = parse_time(text, zone)?;
        // The year of an earlier time does not have four digits, so the printed time would not parse.
        if start < Timestamp::from_second(YEAR_0_S).ok()? {
            return None;
        }
        let unit =
            if text.contains('.') { Span::new().milliseconds(1) } else { Span::new().seconds(1) };
        Some(Self { start, end: start.checked_add(unit).unwrap_or(Timestamp::MAX) })
    }
}

/// The first second of a year with four digits, in UTC.
const YEAR_0_S: i64 = -62_167_219_200;

/// Parses an RFC 3339 date-time; a time without an offset is in `zone`.
pub(super) fn parse_time(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let local: DateTime = text.parse().ok()?;
    Some(local.to_zoned(zone.clone()).ok()?.timestamp())
}

/// Parses a date as the midnight at its start in `zone`.
pub(super) fn parse_day(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    midnight(text.parse().ok()?, zone)
}

fn midnight(day: Date, zone: &TimeZone) -> Option<Timestamp> {
    Some(day.to_zoned(zone.clone()).ok()?.timestamp())
}

/// Returns whether digits and dashes are where RFC 3339 requires them. The parsers of `jiff` accept much more.
fn has_rfc3339_shape(text: &str) -> bool {
    const SHAPE: &[u8; 11] = b"0000-00-00T";
    let has_shape = text.bytes().zip(SHAPE).all(|(found, expected)| match expected {
        b'0' => found.is_ascii_digit(),
        _ => found.eq_ignore_ascii_case(expected),
    });
    // ASCII only, so that the slice below cannot split a character.
    if !has_shape || !text.is_ascii() {
        return false;
    }
    match text.len() {
        4 | 7 | 10 => true,
        // A time has at least hours and minutes. The check excludes the name of a time zone in brackets, which
        // `jiff` accepts.
        16.. => text[11..].chars().all(is_time_character),
        _ => false,
    }
}

fn is_time_character(c: char) -> bool {
    c.is_ascii_digit() || ":.+-zZ".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, &str)>) {
        let zone = TimeZone::get("Europe/Stockholm").unwrap();
        let found =
            TimeInterval::parse(text, &zone).map(|interval| (interval.start, interval.end));
        let expected = expected.map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap()));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn ok_days_months_and_years_are_those_of_the_zone() {
        check("2026-03-02", Some(("2026-03-01T23:00:00Z", "2026-03-02T23:00:00Z")));
        check("2026-03", Some(("2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z")));
        check("2026", Some(("2025-12-31T23:00:00Z", "2026-12-31T23:00:00Z")));
        // The day on which summer time begins has 23 hours.
        check("2026-03-29", Some(("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z")));
    }

    #[test]
    fn ok_times_have_an_offset_or_are_those_of_the_zone() {
        check("2026-03-02T09:15:00+01:00", Some(("2026-03-02T08:15:00Z", "2026-03-02T08:15:01Z")));
        check("2026-03-02t09:15:00z", Some(("2026-03-02T09:15:00Z", "2026-03-02T09:15:01Z")));
        check("2026-03-02T09:15:00", Some(("2026-03-02T08:15:00Z", "2026-03-02T08:15:01Z")));
        let half = Some(("2026-03-02T09:15:00.5Z", "2026-03-02T09:15:00.501Z"));
        check("2026-03-02T09:15:00.5Z", half);
    }

    #[test]
    fn err_other_texts_are_no_dates() {
        let texts =
            ["", "26", "20260302", "2026-3-2", "2026-02-30", "2026-13", "0000", "2026-W10"];
        let more = ["2026-03-02T", "2026-03-02T09:15:00[UTC]", "2026-03-02 09:15:00", "idag", "*"];
        for text in texts.into_iter().chain(more) {
            check(text, None);
        }
    }

    #[test]
    fn ok_the_last_year_ends_at_the_latest_timestamp() {
        let zone = TimeZone::UTC;
        let last = TimeInterval::parse("9999", &zone).unwrap();
        assert_eq!(last.end, Timestamp::MAX);
    }
}
