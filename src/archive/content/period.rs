//! The range of `_tstamp` that the parameters `tr`, `trs` and `tre` select (contract search-4).

use jiff::{Span, Timestamp, civil::Date, tz::TimeZone};

pub use api::content::RecentSpan;

/// Returns the moment at which the time span `recent` began.
///
/// Days, weeks, months and years are calendar units in `zone`, back to the same time of day.
fn since(recent: RecentSpan, now: Timestamp, zone: &TimeZone) -> Timestamp {
    let span = match recent {
        RecentSpan::Hour => Span::new().hours(1),
        RecentSpan::Day => Span::new().days(1),
        RecentSpan::Week => Span::new().weeks(1),
        RecentSpan::Month => Span::new().months(1),
        RecentSpan::Year => Span::new().years(1),
    };
    // A subtraction in the zone retains the time of day across a change to or from summer time.
    let since = now.to_zoned(zone.clone()).checked_sub(span);
    since.map_or(Timestamp::MIN, |since| since.timestamp())
}

/// A filter on `_tstamp`. All given conditions must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimestampFilter {
    /// A time span until now. Times in the future match too, as in events (contract search-4).
    pub recent: Option<RecentSpan>,
    /// The first day, inclusive.
    pub start: Option<Date>,
    /// The last day, exclusive.
    pub end: Option<Date>,
}

impl TimestampFilter {
    /// Returns the first moment, inclusive, and the end, exclusive. Days begin at midnight in `zone`.
    ///
    /// The end is never before the first moment. If they are equal, the range is empty.
    pub fn bounds(
        &self,
        now: Timestamp,
        zone: &TimeZone,
    ) -> (Option<Timestamp>, Option<Timestamp>) {
        let recent = self.recent.map(|recent| since(recent, now, zone));
        let from = recent.max(self.start.map(|day| midnight(day, zone)));
        let until = self.end.map(|day| midnight(day, zone));
        (from, until.map(|until| from.map_or(until, |from| until.max(from))))
    }
}

/// Returns the moment at which `day` begins in `zone`.
fn midnight(day: Date, zone: &TimeZone) -> Timestamp {
    // A day at either end of the calendar may begin outside the range of timestamps in its zone.
    let out_of_range = if day.year() > 0 { Timestamp::MAX } else { Timestamp::MIN };
    day.to_zoned(zone.clone()).map_or(out_of_range, |midnight| midnight.timestamp())
}

/// Parses exactly `YYYY-MM-dd`, and none of the other date formats that the library accepts.
pub fn parse_day(text: &str) -> Option<Date> {
    let shape = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000-00-00").then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone() -> TimeZone {
        TimeZone::get("Europe/Stockholm").expect("zone")
    }

    fn at(text: &str) -> Timestamp {
        text.parse().expect("time")
    }

    #[test]
    fn recent_times_are_those_of_the_calendar() {
        let check = |recent, now: &str, expected: &str| {
            let period = TimestampFilter { recent: Some(recent), ..TimestampFilter::default() };
            assert_eq!(period.bounds(at(now), &zone()), (Some(at(expected)), None), "{recent:?}");
        };
        check(RecentSpan::Hour, "2026-03-31T10:00:00Z", "2026-03-31T09:00:00Z");
        check(RecentSpan::Day, "2026-03-31T10:00:00Z", "2026-03-30T10:00:00Z");
        check(RecentSpan::Week, "2026-04-02T10:00:00Z", "2026-03-26T11:00:00Z");
        check(RecentSpan::Month, "2026-03-31T10:00:00Z", "2026-02-28T11:00:00Z");
        check(RecentSpan::Year, "2028-02-29T10:00:00Z", "2027-02-28T10:00:00Z");
    }

    #[test]
    fn days_begin_at_midnight_in_the_zone_and_all_bounds_hold() {
        let day = |text: &str| parse_day(text).expect("day");
        let now = at("2026-03-31T10:00:00Z");
        let check =
            |recent, start: Option<&str>, end: Option<&str>, expected: [Option<&str>; 2]| {
                let period = TimestampFilter { recent, start: start.map(day), end: end.map(day) };
                let [from, until] = expected.map(|text| text.map(at));
                assert_eq!(period.bounds(now, &zone()), (from, until));
            };
        let (first, last) = ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z");
        let (saturday, sunday, monday) = ("2026-03-28", "2026-03-29", "2026-03-30");
        check(None, Some(sunday), Some(monday), [Some(first), Some(last)]);
        check(None, None, Some(monday), [None, Some(last)]);
        check(None, None, None, [None, None]);
        check(None, Some(sunday), Some(saturday), [Some(first), Some(first)]);
        let hour = Some(RecentSpan::Hour);
        check(hour, Some(sunday), None, [Some("2026-03-31T09:00:00Z"), None]);
        check(Some(RecentSpan::Year), Some(sunday), None, [Some(first), None]);
        check(None, None, Some("9999-12-31"), [None, Some(&Timestamp::MAX.to_string())]);
    }

    #[test]
    fn a_day_is_written_in_one_way() {
        assert_eq!(
            parse_day("2024-02-29").map(|day| day.to_string()).as_deref(),
            Some("2024-02-29")
        );
        for text in [
            "",
            "2026-02-29",
            "2026-2-1",
            "20260201",
            "2026-02-01T00:00",
            "+2026-02-01",
            "1/2/2026",
        ] {
            assert_eq!(parse_day(text), None, "{text}");
        }
    }
}
