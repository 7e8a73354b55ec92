//! Notifications to systemd, received by a socket that stands in for it.

use std::{os::unix::net::UnixDatagram, time::Duration};

use rusqlite::Connection;

use crate::common::{Server, WAIT_TIMEOUT};
use crate::faults::kit::Faults;

/// A socket that receives the notifications of a service.
struct Systemd {
    socket: UnixDatagram,
    dir: tempfile::TempDir,
}

impl Systemd {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(dir.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        Self { socket, dir }
    }

    /// The next message with the line `line`; skips watchdog messages and extensions of the start timeout.
    fn until(&self, line: &str) -> String {
        let mut message = [0; 4096];
        loop {
            let count =
                self.socket.recv(&mut message).unwrap_or_else(|cause| panic!("{line}: {cause}"));
            let text = String::from_utf8(message[..count].to_vec()).unwrap();
            if text.lines().any(|found| found == line) {
                return text;
            }
            let stays = ["WATCHDOG=1", "STATUS=making the search index"];
            assert!(stays.iter().any(|start| text.starts_with(start)), "before {line}: {text}");
        }
    }

    fn server(&self, variables: &[(&str, &str)]) -> Server {
        let path = self.dir.path().join("notify").display().to_string();
        let all: Vec<_> = [("NOTIFY_SOCKET", path.as_str())]
            .into_iter()
            .chain(variables.iter().copied())
            .collect();
        let dir = tempfile::tempdir().unwrap();
        Server::start_with(dir, &["server.unready_s=0"], &all)
    }
}

#[test]
fn systemd_is_notified_of_start_reload_and_stop() {
    let systemd = Systemd::new();
    let server = systemd.server(&[]);
    let ready = systemd.until("READY=1");
    assert!(ready.contains(&format!("STATUS=serving on {}\n", server.url)), "{ready}");
    assert_eq!(server.get("/health/ready").status(), 200);
    server.signal("HUP");
    let reloading = systemd.until("RELOADING=1");
    let since = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(since.is_some_and(|text| text.parse::<u64>().unwrap() > 0), "{reloading}");
    let again = systemd.until("READY=1");
    assert!(again.contains("settings reloaded"), "{again}");
    std::fs::write(server.dir.path().join("wirephoto.toml"), "[server").unwrap();
    server.signal("HUP");
    systemd.until("RELOADING=1");
    let again = systemd.until("READY=1");
    assert!(again.contains("the reload failed"), "{again}");
    server.signal("TERM");
    let stopping = systemd.until("STOPPING=1");
    // 30 s of drain and 15 s for the rest of the shutdown.
    assert!(stopping.contains("EXTEND_TIMEOUT_USEC=45000000\n"), "{stopping}");
    assert!(server.stop().0.success());
}

#[test]
fn watchdog_notifications_are_sent_while_systemd_asks_for_them() {
    let systemd = Systemd::new();
    let server = systemd.server(&[("WATCHDOG_USEC", "300000")]);
    systemd.until("READY=1");
    for _ in 0..3 {
        systemd.until("WATCHDOG=1");
    }
    // A stopped process sends none; earlier messages are drained first.
    server.signal("STOP");
    systemd.socket.set_nonblocking(true).unwrap();
    let mut message = [0; 4096];
    while systemd.socket.recv(&mut message).is_ok() {}
    systemd.socket.set_nonblocking(false).unwrap();
    systemd.socket.set_read_timeout(Some(Duration::from_millis(600))).unwrap();
    let last = systemd.socket.recv(&mut message);
    let silent = last.is_err() || systemd.socket.recv(&mut message).is_err();
    server.signal("CONT");
    assert!(silent);
    systemd.socket.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    systemd.until("WATCHDOG=1");
}

#[test]
fn a_transient_database_failure_does_not_trip_the_watchdog() {
    let (systemd, faults) = (Systemd::new(), Faults::new());
    let path = systemd.dir.path().join("notify");
    let mut variables: Vec<_> = faults.environment().into();
    variables.push(("NOTIFY_SOCKET", path.into()));
    variables.push(("WATCHDOG_USEC", "300000".into()));
    let server = Server::start_with(tempfile::tempdir().unwrap(), &[], &variables);
    systemd.until("READY=1");
    faults.set(&["eio-read /wirephoto.db"]);
    server.until("the database to fail", || {
        // A write makes the cached state stale.
        let database = Connection::open(server.data().join("wirephoto.db")).unwrap();
        database.execute("INSERT OR REPLACE INTO state VALUES ('test', '1')", []).unwrap();
        server.log().contains("job watchdog: failed, retrying").then_some(())
    });
    // Earlier messages are drained first.
    systemd.socket.set_nonblocking(true).unwrap();
    while systemd.socket.recv(&mut [0; 4096]).is_ok() {}
    systemd.socket.set_nonblocking(false).unwrap();
    systemd.until("WATCHDOG=1");
    systemd.until("WATCHDOG=1");
    assert!(!server.log().contains("job watchdog: works again"), "the fault lasts");
    faults.clear();
    server.until("the database to be read", || {
        server.log().contains("job watchdog: works again").then_some(())
    });
}
