//! Any text is parsed or refused as a schedule; runs increase by at least a minute, and a query from between two runs
//! skips none.
#![no_main]

use jiff::{SignedDuration, Timestamp};
use libfuzzer_sys::fuzz_target;
use model::schedule::Schedule;

fuzz_target!(|input: (&str, &str, u32)| {
    let (cron, zone, second) = input;
    // From 1972 the clocks of all zones differ by whole minutes; until 2106.
    let from = Timestamp::new(i64::from(second.max(100_000_000)), 0).expect("within the calendar");
    for zone in [zone, "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia"] {
        let Ok(schedule) = Schedule::parse(cron, zone) else { continue };
        let mut last = from;
        for nth in 0..20 {
            let Some(run) = schedule.next_after(last) else { break };
            let apart = run.duration_since(last);
            assert!(nth == 0 || apart >= SignedDuration::from_mins(1), "{cron} {zone} {run}");
            assert!(apart > SignedDuration::ZERO, "{cron} {zone} {run}");
            let between = last + SignedDuration::from_nanos_i128(apart.as_nanos() / 2);
            assert_eq!(schedule.next_after(between), Some(run), "{cron} {zone} {between}");
            last = run;
        }
    }
});
