//! Schedules over simulated years, and arbitrary texts as schedules.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use proptest::prelude::*;

use super::{Schedule, ScheduleError};

const ZONES: [&str; 6] = [
    "Europe/Stockholm",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "UTC",
];

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn schedule(cron: &str, zone: &str) -> Schedule {
    Schedule::parse(cron, zone).unwrap_or_else(|error| panic!("{cron} {zone}: {error}"))
}

/// The runs of `cron` after `from` and before `to`, on the wall clock of `zone`.
fn runs(cron: &str, zone: &str, span: (&str, &str)) -> Vec<String> {
    let (from, to) = span;
    let schedule = schedule(cron, zone);
    let walk = std::iter::successors(Some(time(from)), |&last| schedule.next_after(last));
    let walk = walk.skip(1).take_while(|&run| run < time(to));
    let zone = TimeZone::get(zone).unwrap();
    walk.map(|run| run.to_zoned(zone.clone()).strftime("%d %H:%M%:z").to_string()).collect()
}

const SPRING: (&str, &str) = ("2026-03-28T23:30:00Z", "2026-03-29T02:59:00Z");
const AUTUMN: (&str, &str) = ("2026-10-24T23:30:00Z", "2026-10-25T02:59:00Z");

#[test]
fn a_time_skipped_in_spring_runs_once_at_the_clock_change() {
    for cron in ["30 2 * * *", "0,15,30 2 * * *", "*/15 2 * * *"] {
        assert_eq!(runs(cron, "Europe/Stockholm", SPRING), ["29 03:00+02:00"], "{cron}");
    }
    // 02:30 and 03:00 coincide.
    let both = runs("*/30 2,3 * * *", "Europe/Stockholm", SPRING);
    assert_eq!(both, ["29 03:00+02:00", "29 03:30+02:00"]);
    let half = ("2026-10-03T14:00:00Z", "2026-10-03T17:00:00Z");
    assert_eq!(runs("10 2 * * *", "Australia/Lord_Howe", half), ["04 02:30+11:00"]);
}

#[test]
fn a_time_repeated_in_autumn_runs_the_first_time() {
    assert_eq!(runs("30 2 * * *", "Europe/Stockholm", AUTUMN), ["25 02:30+02:00"]);
    let several = runs("*/30 2,3 * * *", "Europe/Stockholm", AUTUMN);
    assert_eq!(several, ["25 02:00+02:00", "25 02:30+02:00", "25 03:00+01:00", "25 03:30+01:00"]);
    let half = ("2026-04-04T14:00:00Z", "2026-04-04T17:00:00Z");
    assert_eq!(runs("45 1 * * *", "Australia/Lord_Howe", half), ["05 01:45+11:00"]);
}

#[test]
fn a_nickname_is_the_expression_that_it_stands_for() {
    let year = ("2026-03-01T11:30:00Z", "2027-03-01T11:30:00Z");
    for (nickname, cron) in [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 JAN *"),
        (" @Daily ", "0 0 * * *"),
    ] {
        let found = runs(nickname, "Europe/Stockholm", year);
        assert_eq!(found, runs(cron, "Europe/Stockholm", year), "{nickname}");
        assert!(!found.is_empty(), "{nickname}");
    }
}

#[test]
fn hourly_expressions_keep_their_interval_across_clock_changes() {
    let spring = runs("*/30 * * * *", "Europe/Stockholm", SPRING);
    assert_eq!(spring[..3], ["29 01:00+01:00", "29 01:30+01:00", "29 03:00+02:00"]);
    let autumn = runs("30 0-23 * * *", "Europe/Stockholm", AUTUMN);
    assert_eq!(autumn, ["25 02:30+02:00", "25 02:30+01:00", "25 03:30+01:00"]);
    for zone in ["Europe/Stockholm", "America/New_York", "Africa/Casablanca", "Asia/Kathmandu"] {
        let every = schedule("*/15 * * * *", zone);
        let mut last = time("2026-01-01T00:00:00Z");
        while last < time("2027-01-01T00:00:00Z") {
            let next = every.next_after(last).unwrap();
            assert_eq!(next.duration_since(last), SignedDuration::from_mins(15), "{zone} {last}");
            last = next;
        }
    }
}

#[test]
fn a_daily_run_is_one_on_each_day() {
    for zone in ZONES {
        for cron in ["30 2 * * *", "0 2 * * *", "15 1 * * *", "0 0 * * *", "59 23 * * *"] {
            let (schedule, zone) = (schedule(cron, zone), TimeZone::get(zone).unwrap());
            let mut day = Date::constant(2020, 1, 1);
            let mut last =
                day.to_zoned(zone.clone()).unwrap().timestamp() - SignedDuration::from_nanos(1);
            while day.year() < 2036 {
                let run = schedule.next_after(last).unwrap();
                assert_eq!(run.to_zoned(zone.clone()).date(), day, "{cron} {zone:?}");
                (last, day) = (run, day.tomorrow().unwrap());
            }
        }
    }
}

#[test]
fn a_schedule_with_hours_has_as_many_runs_in_each_year() {
    for zone in ZONES {
        let schedule = schedule("0 */3 * * *", zone);
        let mut last = Date::constant(2020, 1, 1).at(0, 0, 0, 0);
        let zone = TimeZone::get(zone).unwrap();
        let mut count = 0;
        let mut at = last.to_zoned(zone.clone()).unwrap().timestamp();
        while last.year() < 2036 {
            at = schedule.next_after(at).unwrap();
            last = at.to_zoned(zone.clone()).datetime();
            count += 1;
        }
        assert_eq!(count, 8 * (16 * 365 + 4), "{zone:?}");
    }
}

#[test]
fn fields_mean_what_cron_says() {
    let year = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
    let check = |cron: &str, expected: &[&str]| {
        let days: Vec<String> =
            runs(cron, "UTC", year).iter().map(|run| run[..8].into()).collect();
        assert_eq!(days, expected, "{cron}");
    };
    check("0 7 1 * *", &["01 07:00"]);
    check("0 7 * JAN-MAR mon", &["05 07:00", "12 07:00", "19 07:00", "26 07:00"]);
    check("0 7 * 1 5#2", &["09 07:00"]);
    check("0 7 L * ?", &["31 07:00"]);
    check("0 7 * * FRIL", &["30 07:00"]);
    check("0 7 13 * fri#3", &["13 07:00", "16 07:00"]);
    check("0 7 * * 7", &["04 07:00", "11 07:00", "18 07:00", "25 07:00"]);
    check("  5  6\t3 1 * ".replace('\t', " ").as_str(), &["03 06:05"]);
    check("0 7 31W 1 *", &["30 07:00"]);
}

#[test]
fn a_leap_day_schedule_skips_2100() {
    let leap = schedule("0 0 29 2 *", "Europe/Stockholm");
    let last = time("2096-02-28T23:00:00Z");
    assert_eq!(leap.next_after(last), Some(time("2104-02-28T23:00:00Z")));
}

#[test]
fn a_skipped_calendar_day_runs_once() {
    // Samoa had no 30 December 2011.
    let walk = ("2011-12-29T00:00:00Z", "2011-12-31T00:00:00Z");
    assert_eq!(
        runs("0 8 * * *", "Pacific/Apia", walk),
        ["29 08:00-10:00", "31 00:00+14:00", "31 08:00+14:00"]
    );
}

#[test]
fn invalid_expressions_are_refused() {
    let long = format!("{} * * * *", "1,".repeat(50));
    let check = |cron: &str, expected: &str| {
        let refused = Schedule::parse(cron, "UTC").unwrap_err();
        assert_eq!(refused.to_string(), expected, "{cron:?}");
    };
    let fields = |found: usize| {
        format!(
            "the schedule has {found} fields, expected 5: minute, hour, day of month, month, day of \
             week"
        )
    };
    check("", &fields(0));
    check("0 7 * *", &fields(4));
    check("0 0 7 * * *", &fields(6));
    check("0 0 7 * * * 2026", &fields(7));
    let nicknames = "@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually";
    for text in ["@", "@reboot", "@daily@", "@daily 0"] {
        check(text, &format!("{text:?} is not a schedule; expected one of {nicknames}"));
    }
    let shown = format!("@{}", "x".repeat(19));
    check(
        &format!("@{}", "x".repeat(5000)),
        &format!("{shown:?} is not a schedule; expected one of {nicknames}"),
    );
    check("0 7 * * @daily", "'@' cannot be used in a schedule");
    check("0 7 * * *\n", "'\\n' cannot be used in a schedule");
    check("0\t7 * * *", "'\\t' cannot be used in a schedule");
    check("0 7 * * *\0", "'\\0' cannot be used in a schedule");
    check("0 7 * * +1", "'+' cannot be used in a schedule");
    check("0 7 * * ſun", "'ſ' cannot be used in a schedule");
    check(&long, "the schedule is longer than 100 characters");
    check("mon * * * *", "\"mon\" is not a minute (0-59)");
    check("0 7 * 1jan *", "\"1jan\" is not a month (1-12, JAN-DEC)");
    check("0 7 * january *", "\"january\" is not a month (1-12, JAN-DEC)");
    check("0 7 15Wx * *", "\"15Wx\" is not a day of month (1-31, L, W)");
    check("0 7,,8 * * *", "\"7,,8\" is not an hour (0-23)");
    check("0 7 * * L", "\"L\" is not a day of week (0-7, SUN-SAT, # and L after one)");
    check("60 * * * *", "\"60\" is not a minute (0-59)");
    check("0 24 * * *", "\"24\" is not an hour (0-23)");
    check("0 0 0 * *", "\"0\" is not a day of month (1-31, L, W)");
    check("0 0 * 13 *", "\"13\" is not a month (1-12, JAN-DEC)");
    check("0 0 * * 8", "\"8\" is not a day of week (0-7, SUN-SAT, # and L after one)");
    let refused = Schedule::parse("5-1 * * * *", "UTC").unwrap_err();
    assert!(refused.to_string().starts_with("the schedule is not valid: "), "{refused}");
    assert!(Schedule::parse("*/15 * * * *", "UTC").is_ok());
}

#[test]
fn impossible_dates_are_refused() {
    for cron in ["0 0 30 2 *", "0 0 31 2,4,6 *", "0 0 * 2 FRI#5"] {
        assert_eq!(Schedule::parse(cron, "UTC").unwrap_err(), ScheduleError::Never, "{cron}");
    }
}

#[test]
fn invalid_zone_names_are_refused() {
    let long = "a".repeat(10_000);
    for zone in [
        "",
        "/etc/passwd",
        "../../etc/passwd",
        "/usr/share/zoneinfo/Europe/Stockholm",
        "posixrules",
        "posix/Europe/Stockholm",
        "right/Europe/Stockholm",
        "localtime",
        "Factory",
        "+02:00",
        "UTC+2",
        "CET-1CEST",
        "Europe/Stockholm\n",
        "Europe/Stockholm\0",
        " Europe/Stockholm",
        "Europe",
        "Europe/Atlantis",
        &long,
    ] {
        let refused = Schedule::parse("0 7 * * *", zone).unwrap_err();
        assert!(matches!(&refused, ScheduleError::Zone(_)), "{zone:?}");
        assert!(refused.to_string().len() < 120, "{refused}");
    }
    for zone in ["europe/stockholm", "UTC", "Etc/GMT+5", "America/Argentina/ComodRivadavia"] {
        assert!(Schedule::parse("0 7 * * *", zone).is_ok(), "{zone}");
    }
}

#[test]
fn the_latest_timestamp_has_no_next_run() {
    let daily = schedule("0 7 * * *", "Europe/Stockholm");
    assert_eq!(daily.next_after(Timestamp::MAX), None);
    assert!(daily.next_after(Timestamp::MIN).is_some());
}

fn field(most: u32, names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let number = move || 1..=most;
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => number().prop_map(|n| n.to_string()),
        1 => (number(), number()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (number(), number()).prop_map(|(a, b)| format!("{a},{b}")),
        1 => number().prop_map(|n| format!("*/{n}")),
        1 => proptest::sample::select(names).prop_map(str::to_owned),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    let days = field(7, &["mon", "FRI#2", "sunL", "MON-FRI"]);
    let parts = (
        field(59, &["0", "*/15"]),
        field(23, &["0", "2", "0-23"]),
        field(28, &["L", "LW", "15W", "29"]),
        field(12, &["mar", "OCT", "jan-jun"]),
        days,
    );
    parts.prop_map(|(m, h, d, month, w)| format!("{m} {h} {d} {month} {w}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn runs_increase_and_do_not_depend_on_the_starting_point(
        cron in expression(),
        zone in proptest::sample::select(&ZONES[..]),
        second in 1_577_836_800_i64..2_082_758_400,
        // Near a change of the clock in Stockholm, New York or on Lord Howe, or anywhere.
        near in proptest::option::of(proptest::sample::select(&[
            "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-03-08T07:00:00Z",
            "2026-11-01T06:00:00Z", "2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z",
            "2026-02-15T02:00:00Z", "2026-03-22T02:00:00Z",
        ][..])),
        parts in proptest::collection::vec(0.0_f64..1.0, 12),
    ) {
        let Ok(schedule) = Schedule::parse(&cron, zone) else { return Ok(()) };
        let start = near.map_or_else(
            || Timestamp::from_second(second).unwrap(),
            |near| time(near) - SignedDuration::from_secs(second % 10_000),
        );
        let mut last = start;
        for (nth, part) in parts.into_iter().enumerate() {
            let run = schedule.next_after(last).unwrap();
            let apart = run.duration_since(last);
            prop_assert!(apart > SignedDuration::ZERO, "{cron} {zone} {last} {run}");
            prop_assert!(nth == 0 || apart.as_secs() >= 60, "{cron} {zone} {last} {run}");
            let between = last + apart.mul_f64(part);
            prop_assert_eq!(schedule.next_after(between), Some(run), "{} {} {}", cron, zone, between);
            let before = run - SignedDuration::from_nanos(1);
            prop_assert_eq!(schedule.next_after(before), Some(run), "{} {} {}", cron, zone, before);
            last = run;
        }
    }

    #[test]
    fn any_text_is_a_schedule_or_refused(
        text in "([0-9*,/?#LWlw \t-]|MON|jan|\\PC){0,40}",
        zone in "\\PC{0,40}|[A-Za-z/_+0-9-]{0,40}",
        second in -300_000_000_000_i64..250_000_000_000,
    ) {
        let from = Timestamp::from_second(second).unwrap();
        for zone in [&*zone, "Europe/Stockholm"] {
            if let Ok(schedule) = Schedule::parse(&text, zone) {
                prop_assert!(schedule.next_after(from).is_none_or(|run| run > from));
            }
        }
    }
}
