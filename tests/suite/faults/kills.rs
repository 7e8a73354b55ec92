//! A server that is killed at random moments while many clients work: everything acknowledged is there, exactly
//! once ([`super::ledger`] keeps the records).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::kit::{document, scene};
use super::ledger::{Items, Ledger};
use crate::common::{Server, is_before_release};

const SETTINGS: [&str; 4] = [
    "server.unready_s=0",
    "media.warm=false",
    "auth.hash_memory_kib=64",
    "auth.hash_iterations=1",
];
/// The longest time before a server is killed, microseconds.
const UPTIME_US_MAX: u64 = 250_000;

/// Runs clients against the server until it is killed.
fn work(ledger: &mut Ledger, server: &Server) {
    let after = Duration::from_micros(ledger.random.next(UPTIME_US_MAX));
    let Ledger { items, purchases, tokens, collected, profile, seen, stream, random } = ledger;
    let (items, stream): (&Items, &str) = (items, stream);
    let process = server.child.id().to_string();
    // A client with nothing to do makes no call that could fail.
    let alive = &AtomicBool::new(true);
    let works = || alive.load(Ordering::Relaxed);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| while works() && items.send(server).is_ok() {});
        }
        scope.spawn(|| while works() && purchases.step(server, items).is_ok() {});
        scope.spawn(|| while works() && tokens.step(server).is_ok() {});
        scope.spawn(|| while works() && collected.step(server, items, random).is_ok() {});
        scope.spawn(|| while works() && profile.step(server).is_ok() {});
        let killer = scope.spawn(move || {
            thread::sleep(after);
            let mut kill = std::process::Command::new("kill");
            let killed = kill.args(["-s", "KILL", &process]).status();
            alive.store(false, Ordering::Relaxed);
            assert!(killed.unwrap().success());
        });
        while !killer.is_finished() {
            seen.poll(server, stream);
        }
    });
}

/// Prints the progress of a long run.
#[expect(clippy::print_stdout, reason = "only when a long run was asked for")]
fn print_progress(text: &str) {
    if std::env::var_os("FAULT_KILLS").is_some() {
        println!("{text}");
    }
}

/// `FAULT_KILLS` sets the number of kills, `FAULT_SEED` their times.
#[test]
fn killed_at_random_points_of_mixed_load_nothing_acknowledged_is_lost_or_duplicated() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let kills = number("FAULT_KILLS", if is_before_release() { 25 } else { 8 });
    let seed = number("FAULT_SEED", 0x2545_F491_4F6C_DD1D);
    print_progress(&format!("{kills} kills, FAULT_SEED={seed}"));
    let dir = scene(&[("image/old", document("Gammal"))]);
    let mut server = Server::start(dir, &SETTINGS);
    let mut ledger = Ledger::begin(&server, seed);
    // On a slow machine little is done before each kill, so it takes more of them.
    for kill in 1..=20 * kills {
        if kill > kills && ledger.is_load() {
            break;
        }
        // Under load, hashing a password takes longer than the server runs.
        assert!(ledger.tokens.log_in(&server).is_ok());
        work(&mut ledger, &server);
        server = server.restart_killed(&SETTINGS);
        ledger.check(&server);
        if kill % 50 == 0 {
            print_progress(&format!("{kill} kills"));
        }
    }
    ledger.audit(&server, BTreeMap::new);
    print_progress(&format!("{:?}", ledger.kinds()));
    // The search index was reopened after each kill; `check` compares it with the database.
    assert!(server.metric("wirephoto_search_index_repairs_total", "") < 0.5, "{}", server.log());
    // An interrupted upload may have left its original; once sent again, an item refers to it.
    ledger.items.send_again(&server);
    let said = server.command(&["check"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    let (status, log) = server.stop();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}
