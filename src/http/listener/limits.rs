//! Limits that one listener sets for clients: counts, sizes, timeouts and rates.
//!
//! Timeouts are enforced by a tick per connection, not by a timer per request, so a limit is enforced between its
//! value and two ticks later; a tick lasts at most a second.

use crate::runtime::config::NetworkList;
use std::time::Duration;

/// Longest tick: no limit is exceeded by more than two ticks.
const TICK_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// Shortest tick: bounds the work of a connection with tiny limits.
const TICK_INTERVAL_MIN: Duration = Duration::from_millis(5);
/// Ticks within the shortest limit.
const TICKS_PER_LIMIT: u32 = 4;

/// Limits of one listener and of each of its connections.
///
/// A duration of zero means "at the next tick", not "never".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Connections served at once. The next connection gets a 503 and is closed.
    pub connections_max: usize,
    /// Most connections from one address: an IPv4 address, or the /64 network of an IPv6 address. The next
    /// connection gets a 503 and is closed; 0 turns the limit off.
    pub connections_per_address: usize,
    /// Proxies, whose connections carry the requests of many clients and are exempt from the limit per
    /// address.
    pub trusted_proxies: NetworkList,
    /// Time from accept, or from the first byte of a later HTTP/1 head, to a complete request head. Includes
    /// the detection of HTTP/1 or HTTP/2.
    pub header_timeout: Duration,
    /// Time that a connection may stay open without a request in progress.
    pub idle_timeout: Duration,
    /// Bytes per second that a client must receive while a response waits for it; 0 turns it off.
    pub write_rate_min_bytes_s: u64,
    /// Time over which the write rate is measured, and the shortest time before a slow reader is dropped.
    pub write_grace: Duration,
    /// Bytes per second that a client must send while a handler waits for its body; 0 turns it off.
    pub read_rate_min_bytes_s: u64,
    /// Time over which the read rate is measured.
    pub read_grace: Duration,
    /// Largest request head in bytes: HTTP/1 as sent, HTTP/2 as RFC 9113 §6.5.2 counts.
    pub header_bytes_max: u32,
    /// Most header fields of an HTTP/1 request. HTTP/2 is bounded by `header_bytes_max`.
    pub headers_max: usize,
    /// Most requests in flight on one HTTP/2 connection.
    pub h2_streams_max: u32,
    /// Time that requests in flight have to finish after the listener stops.
    pub drain: Duration,
}

impl Default for ListenerLimits {
    /// Limits for a public server without a proxy: generous to a phone, short for an attacker.
    fn default() -> Self {
        Self {
            connections_max: 4096,
            connections_per_address: 1024,
            trusted_proxies: NetworkList::default(),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            write_rate_min_bytes_s: 1024,
            write_grace: Duration::from_secs(30),
            read_rate_min_bytes_s: 512,
            read_grace: Duration::from_secs(30),
            // The longest URI that the HTTP library accepts (64 KiB), so that a longer one gets a response
            // with a reason, plus room for the fields.
            header_bytes_max: 80 * 1024,
            headers_max: 100,
            h2_streams_max: 100,
            drain: Duration::from_secs(30),
        }
    }
}

impl ListenerLimits {
    /// Returns the interval between two checks of a connection: a quarter of the shortest limit, from 5 ms to one
    /// second.
    pub(crate) fn tick_interval(&self) -> Duration {
        let shortest =
            self.header_timeout.min(self.idle_timeout).min(self.write_grace).min(self.read_grace);
        (shortest / TICKS_PER_LIMIT).clamp(TICK_INTERVAL_MIN, TICK_INTERVAL_MAX)
    }

    /// Returns the number of whole ticks that cover `time`, at least one.
    pub(crate) fn ticks(&self, time: Duration) -> u32 {
        let count = time.as_nanos().div_ceil(self.tick_interval().as_nanos());
        u32::try_from(count).unwrap_or(u32::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beat_is_a_quarter_of_the_shortest_limit_within_bounds() {
        let check = |header_ms: u64, expected_ms: u64| {
            let limits = ListenerLimits {
                header_timeout: Duration::from_millis(header_ms),
                ..ListenerLimits::default()
            };
            assert_eq!(
                limits.tick_interval(),
                Duration::from_millis(expected_ms),
                "{header_ms} ms"
            );
        };
        check(400, 100);
        check(0, 5);
        check(60_000, 1000);
    }

    #[test]
    fn beats_cover_the_time() {
        let limits = ListenerLimits::default();
        assert_eq!(limits.tick_interval(), Duration::from_secs(1));
        assert_eq!(limits.ticks(Duration::from_millis(2500)), 3);
        assert_eq!(limits.ticks(Duration::ZERO), 1);
        assert_eq!(limits.ticks(Duration::MAX), u32::MAX);
    }
}
