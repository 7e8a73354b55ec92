//! Decides at each tick, from counters alone, whether a connection violates a limit.

use strum::IntoStaticStr;

use crate::http::listener::{
    counters::ConnectionSample, flood::FloodDetector, limits::ListenerLimits,
};
use std::time::Duration;

/// Ticks in which a connection must close after it was asked to.
const CLOSING_TICKS: u32 = 4;

/// The reason why a connection is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ConnectionFault {
    /// No request arrived within the idle timeout.
    Idle,
    /// A request head took longer than the header timeout.
    SlowHead,
    /// A request body arrived slower than the read rate.
    SlowBody,
    /// A response was received slower than the write rate.
    SlowReader,
    /// A TLS handshake took longer than the header timeout.
    SlowHandshake,
    /// Half of all connections were in a TLS handshake.
    Handshakes,
    /// Too many frames arrived that belong to no request.
    Flood,
}

impl ConnectionFault {
    /// Returns the value of the label `reason` in metrics and logs.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The action for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionVerdict {
    /// Keep the connection open.
    Continue,
    /// Close it gracefully, as its protocol provides.
    Close(ConnectionFault),
    /// Drop it at once.
    Abort(ConnectionFault),
}

/// Minimum rate of one direction while the other side waits.
#[derive(Debug, Clone)]
struct RateMonitor {
    bytes_per_s: u64,
    tick: Duration,
    /// Ticks before the rate is measured.
    grace_ticks: u32,
    waited_ticks: u32,
    bytes_before: u64,
}

impl RateMonitor {
    fn new(bytes_per_s: u64, grace: Duration, limits: &ListenerLimits) -> Self {
        let grace_ticks = limits.ticks(grace);
        Self {
            bytes_per_s,
            tick: limits.tick_interval(),
            grace_ticks,
            waited_ticks: 0,
            bytes_before: 0,
        }
    }

    /// Returns the fewest bytes that must be transferred within `ticks`.
    fn bytes_min(&self, ticks: u32) -> u128 {
        u128::from(self.bytes_per_s) * u128::from(ticks) * self.tick.as_millis() / 1000
    }

    /// Returns whether a whole window of waiting has passed with too few bytes.
    fn is_too_slow(&mut self, waiting: bool, bytes: u64) -> bool {
        // Only time in which the other side waits counts: a slow handler is not the client's fault.
        // A rate of 0 turns the limit off.
        if !waiting || self.bytes_per_s == 0 {
            self.waited_ticks = 0;
            return false;
        }
        self.waited_ticks = self.waited_ticks.saturating_add(1);
        if self.waited_ticks == 1 {
            // The first tick may come just after the wait began, so the window begins here.
            self.bytes_before = bytes;
            return false;
        }
        let ticks = self.waited_ticks - 1;
        if ticks < self.grace_ticks {
            return false;
        }
        let transferred = bytes.saturating_sub(self.bytes_before);
        // The tick that ends a window begins the next one.
        self.waited_ticks = 1;
        self.bytes_before = bytes;
        u128::from(transferred) < self.bytes_min(ticks)
    }
}

/// Checks one connection, tick by tick.
#[derive(Debug, Clone)]
pub struct ConnectionMonitor {
    header_ticks_max: u32,
    idle_ticks_max: u32,
    head_ticks: u32,
    idle_ticks: u32,
    closing_ticks: u32,
    requests: u64,
    is_closing: bool,
    read_rate: RateMonitor,
    write_rate: RateMonitor,
    flood: FloodDetector,
}

impl ConnectionMonitor {
    /// Creates the monitor of a connection that was just accepted.
    pub fn new(limits: &ListenerLimits) -> Self {
        Self {
            header_ticks_max: limits.ticks(limits.header_timeout),
            idle_ticks_max: limits.ticks(limits.idle_timeout),
            head_ticks: 0,
            idle_ticks: 0,
            closing_ticks: 0,
            requests: 0,
            is_closing: false,
            read_rate: RateMonitor::new(limits.read_rate_min_bytes_s, limits.read_grace, limits),
            write_rate: RateMonitor::new(
                limits.write_rate_min_bytes_s,
                limits.write_grace,
                limits,
            ),
            flood: FloodDetector::default(),
        }
    }

    /// Records that the connection was asked to close. If it is idle, it has a few ticks left.
    pub fn start_closing(&mut self) {
        self.is_closing = true;
    }

    /// Decides the action for a sample of the counters. `is_nearly_full` means that few connections are free, so
    /// an idle connection is closed at its first full tick.
    pub fn check(&mut self, sample: &ConnectionSample, is_nearly_full: bool) -> ConnectionVerdict {
        // Before the check for `busy`, because these limits apply to requests in progress.
        if self.read_rate.is_too_slow(sample.body_awaited, sample.body_bytes) {
            return ConnectionVerdict::Abort(ConnectionFault::SlowBody);
        }
        if self.write_rate.is_too_slow(sample.has_unsent, sample.shipped_bytes) {
            return ConnectionVerdict::Abort(ConnectionFault::SlowReader);
        }
        if self.flood.is_flooded(sample) {
            return ConnectionVerdict::Abort(ConnectionFault::Flood);
        }
        // A handler has its own timeout, so a busy connection is never idle.
        if sample.busy {
            self.reset_timers();
            return ConnectionVerdict::Continue;
        }
        // A request began and ended between two ticks, so the connection was not idle.
        if sample.requests != self.requests {
            self.requests = sample.requests;
            self.reset_timers();
        }
        self.check_waiting(sample, is_nearly_full)
    }

    fn reset_timers(&mut self) {
        self.head_ticks = 0;
        self.idle_ticks = 0;
        self.closing_ticks = 0;
    }

    /// Checks a connection without a request. The first tick of a state may be short, so a limit is exceeded
    /// after one more tick.
    fn check_waiting(
        &mut self,
        sample: &ConnectionSample,
        is_nearly_full: bool,
    ) -> ConnectionVerdict {
        self.idle_ticks = self.idle_ticks.saturating_add(1);
        // HTTP/2 sends pings and window updates between requests, so only the idle timeout bounds a
        // head that never ends.
        let head_awaited = sample.requests == 0 || (sample.head_begun && !sample.h2);
        self.head_ticks = if head_awaited { self.head_ticks.saturating_add(1) } else { 0 };
        if self.head_ticks > self.header_ticks_max {
            return ConnectionVerdict::Abort(ConnectionFault::SlowHead);
        }
        if self.is_closing {
            self.closing_ticks += 1;
            // A request whose head has begun may still be completed, within the header timeout.
            let is_overdue = self.closing_ticks > CLOSING_TICKS && !head_awaited;
            return if is_overdue {
                ConnectionVerdict::Abort(ConnectionFault::Idle)
            } else {
                ConnectionVerdict::Continue
            };
        }
        let idle_ticks_max = if is_nearly_full { 1 } else { self.idle_ticks_max };
        if self.idle_ticks > idle_ticks_max && !head_awaited {
            return ConnectionVerdict::Close(ConnectionFault::Idle);
        }
        ConnectionVerdict::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of 1 s; header 4 ticks, idle 6, rates over 4 ticks of 100 bytes.
    fn monitor() -> ConnectionMonitor {
        ConnectionMonitor::new(&ListenerLimits {
            header_timeout: Duration::from_secs(4),
            idle_timeout: Duration::from_secs(6),
            write_rate_min_bytes_s: 100,
            write_grace: Duration::from_secs(4),
            read_rate_min_bytes_s: 100,
            read_grace: Duration::from_secs(4),
            ..ListenerLimits::default()
        })
    }

    /// Checks after how many ticks a connection with the samples `sample(tick)` is ended, and how.
    fn check(
        sample: impl Fn(u32) -> ConnectionSample,
        expected: Option<(u32, ConnectionVerdict)>,
    ) {
        let mut monitor = monitor();
        let ended = (1..100).find_map(|tick| match monitor.check(&sample(tick), false) {
            ConnectionVerdict::Continue => None,
            other @ (ConnectionVerdict::Close(_) | ConnectionVerdict::Abort(_)) => {
                Some((tick, other))
            }
        });
        assert_eq!(ended, expected);
    }

    #[test]
    fn a_client_that_sends_no_request_has_the_header_time() {
        check(
            |_| ConnectionSample::default(),
            Some((5, ConnectionVerdict::Abort(ConnectionFault::SlowHead))),
        );
    }

    #[test]
    fn an_idle_client_has_the_idle_time() {
        let idle = ConnectionSample { requests: 1, ..ConnectionSample::default() };
        check(|_| idle, Some((7, ConnectionVerdict::Close(ConnectionFault::Idle))));
    }

    #[test]
    fn a_later_slow_head_has_the_header_time() {
        let head =
            ConnectionSample { requests: 1, head_begun: true, ..ConnectionSample::default() };
        check(|_| head, Some((5, ConnectionVerdict::Abort(ConnectionFault::SlowHead))));
        let pings = ConnectionSample { h2: true, ..head };
        check(|_| pings, Some((7, ConnectionVerdict::Close(ConnectionFault::Idle))));
    }

    #[test]
    fn a_request_in_progress_has_all_the_time() {
        let busy = ConnectionSample { requests: 1, busy: true, ..ConnectionSample::default() };
        check(|_| busy, None);
    }

    #[test]
    fn a_client_that_takes_the_rate_stays_and_a_slower_one_goes() {
        let unsent = |tick: u32, rate: u64| ConnectionSample {
            requests: 1,
            busy: true,
            has_unsent: true,
            shipped_bytes: u64::from(tick) * rate,
            ..ConnectionSample::default()
        };
        check(|tick| unsent(tick, 100), None);
        check(
            |tick| unsent(tick, 99),
            Some((5, ConnectionVerdict::Abort(ConnectionFault::SlowReader))),
        );
    }

    #[test]
    fn a_body_that_trickles_in_ends_the_connection() {
        let awaited = |tick: u32, rate: u64| ConnectionSample {
            requests: 1,
            busy: true,
            body_awaited: true,
            body_bytes: u64::from(tick) * rate,
            ..ConnectionSample::default()
        };
        check(|tick| awaited(tick, 100), None);
        check(
            |tick| awaited(tick, 10),
            Some((5, ConnectionVerdict::Abort(ConnectionFault::SlowBody))),
        );
    }

    #[test]
    fn a_wait_that_ends_begins_a_new_window() {
        let sample = |tick: u32| ConnectionSample {
            requests: 1,
            busy: true,
            has_unsent: !tick.is_multiple_of(4),
            ..ConnectionSample::default()
        };
        check(sample, None);
    }

    #[test]
    fn an_idle_client_goes_early_when_connections_run_out() {
        let mut monitor = monitor();
        let idle = ConnectionSample { requests: 1, ..ConnectionSample::default() };
        assert_eq!(monitor.check(&idle, true), ConnectionVerdict::Continue);
        assert_eq!(monitor.check(&idle, true), ConnectionVerdict::Close(ConnectionFault::Idle));
    }

    #[test]
    fn a_client_that_ignores_the_close_is_cut() {
        let mut monitor = monitor();
        monitor.start_closing();
        let idle = ConnectionSample { requests: 1, ..ConnectionSample::default() };
        for _ in 0..CLOSING_TICKS {
            assert_eq!(monitor.check(&idle, false), ConnectionVerdict::Continue);
        }
        assert_eq!(monitor.check(&idle, false), ConnectionVerdict::Abort(ConnectionFault::Idle));
    }
}
