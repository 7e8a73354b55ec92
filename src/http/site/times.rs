//! The time filters of a search page: detects contradictions, and computes the end of today, after which events
//! are in the future.

use jiff::{Timestamp, ToSpan, tz::TimeZone};

use super::search_form::SearchForm;
use crate::archive::content::{RecentSpan, TimestampFilter, parse_day};

/// Returns whether no time satisfies all filters of a search, such as "the last hour" and "before yesterday".
pub(super) fn times_contradict(form: &SearchForm, now: Timestamp, zone: &TimeZone) -> bool {
    let period = TimestampFilter {
        recent: form.tr.parse::<RecentSpan>().ok(),
        // An invalid date does not contradict the others; the API reports it.
        start: parse_day(&form.trs),
        end: parse_day(&form.tre),
    };
    let (from, until) = period.bounds(now, zone);
    // `bounds` clamps contradicting filters to an empty period.
    until.is_some() && from == until
}

/// Returns the first day that has not begun yet, as a value of `tre`.
///
/// Items are ordered by `_tstamp`, which for planned items is the time of the event (contract items-13). API
/// responses keep that order. A page with the "newest" items of all media types and a dry run of "the last 7 days"
/// exclude future events, and state this on the page.
pub(super) fn tomorrow(now: Timestamp, zone: &TimeZone) -> String {
    let today = now.to_zoned(zone.clone()).date();
    today.checked_add(1.day()).unwrap_or(today).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_contradict_each_other_where_nothing_lies_between() {
        let zone = TimeZone::get("Europe/Stockholm").unwrap();
        let now: Timestamp = "2026-11-25T22:30:00Z".parse().unwrap();
        let check = |tr: &str, trs: &str, tre: &str, expected| {
            let [tr, trs, tre] = [tr, trs, tre].map(str::to_owned);
            let wanted = SearchForm { tr, trs, tre, ..SearchForm::default() };
            assert_eq!(times_contradict(&wanted, now, &zone), expected, "{wanted:?}");
        };
        check("", "", "", false);
        check("h", "", "", false);
        check("h", "", "2026-11-25", true);
        check("w", "", "2026-11-25", false);
        check("", "2026-11-25", "2026-11-24", true);
        check("", "2026-11-25", "2026-11-25", true);
        check("", "2026-11-24", "2026-11-25", false);
        check("h", "2026-12-05", "", false);
        check("h", "soon", "later", false);
    }

    #[test]
    fn tomorrow_begins_at_midnight_in_the_zone() {
        let zone = TimeZone::get("Europe/Stockholm").unwrap();
        let check = |now: &str, expected: &str| {
            assert_eq!(tomorrow(now.parse().unwrap(), &zone), expected);
        };
        check("2026-11-25T22:30:00Z", "2026-11-26");
        check("2026-11-25T23:30:00Z", "2026-11-27");
    }
}
