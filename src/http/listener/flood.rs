//! Detects floods of HTTP/2 frames without requests: pings, settings, priorities, window updates, empty data.
//!
//! The HTTP/2 library answers them one by one without storing any, so they cost time but no memory. It closes the
//! connection itself after excessive resets, errors and continuations. This module detects the other floods by the
//! bytes that arrive besides requests and bodies.

use super::counters::ConnectionSample;

/// Ticks in one measuring window.
const WINDOW_TICKS: u32 = 10;
/// Most unexplained bytes that a client may send in a window: the body bytes that it may send before a handler
/// reads them (4 MiB for a connection), and about three thousand pings per tick.
const BYTES_MAX: u64 = 4 * 1024 * 1024 + 512 * 1024;
/// Bytes allowed for the head of each request; most are below 1 kB, and repeated fields need a byte.
const HEAD_BYTES: u64 = 16 * 1024;
/// Divisor that estimates window updates: a client sends 26 bytes for each frame of a response, and hardly more
/// than this fraction of the bytes that it receives.
const SHIPPED_DIVISOR: u64 = 32;

/// The traffic of one connection since its window began.
#[derive(Debug, Clone, Default)]
pub struct FloodDetector {
    ticks: u32,
    window_start: TrafficCounts,
}

/// Counters of a connection at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct TrafficCounts {
    socket_bytes: u64,
    body_bytes: u64,
    shipped_bytes: u64,
    requests: u64,
}

impl FloodDetector {
    /// Counts a tick, and returns whether more bytes arrived than requests, bodies and window updates explain.
    /// HTTP/1 has no frames.
    pub fn is_flooded(&mut self, sample: &ConnectionSample) -> bool {
        let now = TrafficCounts {
            socket_bytes: sample.socket_bytes,
            body_bytes: sample.body_bytes,
            shipped_bytes: sample.shipped_bytes,
            requests: sample.requests,
        };
        let start = self.window_start;
        self.ticks += 1;
        // The tick that ends a window is still judged by the start of that window.
        if self.ticks >= WINDOW_TICKS {
            *self = Self { ticks: 0, window_start: now };
        }
        let received = now.socket_bytes.saturating_sub(start.socket_bytes);
        // The frames of a body are slightly longer than its data.
        let bodies = now.body_bytes.saturating_sub(start.body_bytes);
        let heads = now.requests.saturating_sub(start.requests).saturating_mul(HEAD_BYTES);
        let window_updates =
            now.shipped_bytes.saturating_sub(start.shipped_bytes) / SHIPPED_DIVISOR;
        let allowed = [bodies, bodies / 2, heads, window_updates].into_iter();
        sample.h2 && received > allowed.fold(BYTES_MAX, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the tick, of a hundred, at which a connection with the samples `sample_at(tick)`
    /// counts as flooding.
    fn check(sample_at: impl Fn(u64) -> ConnectionSample, expected: Option<u64>) {
        let mut flood = FloodDetector::default();
        let found = (1..100).find(|tick| flood.is_flooded(&sample_at(*tick)));
        assert_eq!(found, expected);
    }

    fn sample(socket_bytes: u64) -> ConnectionSample {
        ConnectionSample { h2: true, socket_bytes, ..ConnectionSample::default() }
    }

    #[test]
    fn frames_that_ask_for_nothing_are_a_flood_from_some_rate_on() {
        check(|tick| sample(tick * 10_000_000), Some(1));
        check(|tick| sample(tick * 1_000_000), Some(5));
        check(|tick| sample(tick * 400_000), None);
        check(|tick| ConnectionSample { h2: false, ..sample(tick * 10_000_000) }, None);
    }

    #[test]
    fn requests_bodies_and_windows_explain_what_comes_in() {
        check(
            |tick| ConnectionSample { requests: tick * 1000, ..sample(tick * 10_000_000) },
            None,
        );
        check(
            |tick| ConnectionSample {
                body_bytes: tick * 100_000_000,
                ..sample(tick * 110_000_000)
            },
            None,
        );
        let reader = |tick| ConnectionSample {
            shipped_bytes: tick * 1_000_000_000,
            ..sample(tick * 2_000_000)
        };
        check(reader, None);
    }
}
