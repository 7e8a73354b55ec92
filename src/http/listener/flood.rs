//! Frames of HTTP/2 that ask for nothing: pings, settings, priorities, windows, empty data.
//!
//! The protocol's library answers them one by one without keeping any, so they cost time and no
//! memory; it ends a connection itself for resets, errors and continuations without end. What is
//! left is counted here: bytes that came in besides requests and bodies.

use super::counters::ConnectionSample;

/// Beats over which they are counted.
const WINDOW_TICKS: u32 = 10;
/// Bytes that a client may send so in a window: all that it may send of bodies before somebody reads
/// them (4 MiB a connection), and about three thousand pings a beat.
const BYTES_MAX: u64 = 4 * 1024 * 1024 + 512 * 1024;
/// Bytes of a request's head that are no flood; most are below 1 kB, and repeated fields take a byte.
const HEAD_BYTES: u64 = 16 * 1024;
/// A client that takes a response opens windows: 26 bytes for a frame, and hardly for less than this
/// part of what it took.
const SHIPPED_DIVISOR: u64 = 32;

/// What one connection sent since its window began.
#[derive(Debug, Clone, Default)]
pub struct FloodDetector {
    ticks: u32,
    window_start: TrafficCounts,
}

/// Counters of a connection.
#[derive(Debug, Clone, Copy, Default)]
struct TrafficCounts {
    socket_bytes: u64,
    body_bytes: u64,
    shipped_bytes: u64,
    requests: u64,
}

impl FloodDetector {
    /// Whether more came in than what is seen explains. HTTP/1 has no frames.
    pub fn is_flooded(&mut self, seen: &ConnectionSample) -> bool {
        let now = TrafficCounts {
            socket_bytes: seen.socket_bytes,
            body_bytes: seen.body_bytes,
            shipped_bytes: seen.shipped_bytes,
            requests: seen.requests,
        };
        let begin = self.window_start;
        self.ticks += 1;
        if self.ticks >= WINDOW_TICKS {
            *self = Self { ticks: 0, window_start: now };
        }
        let came = now.socket_bytes.saturating_sub(begin.socket_bytes);
        // A body's frames are a little longer than what they hold.
        let bodies = now.body_bytes.saturating_sub(begin.body_bytes);
        let heads = now.requests.saturating_sub(begin.requests).saturating_mul(HEAD_BYTES);
        let taken = now.shipped_bytes.saturating_sub(begin.shipped_bytes) / SHIPPED_DIVISOR;
        let allowed = [bodies, bodies / 2, heads, taken].into_iter();
        seen.h2 && came > allowed.fold(BYTES_MAX, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beat at which a connection that looks like `seen(beat)` floods, of a hundred.
    fn check(seen: impl Fn(u64) -> ConnectionSample, expected: Option<u64>) {
        let mut flood = FloodDetector::default();
        let found = (1..100).find(|beat| flood.is_flooded(&seen(*beat)));
        assert_eq!(found, expected);
    }

    fn sample(socket_bytes: u64) -> ConnectionSample {
        ConnectionSample { h2: true, socket_bytes, ..ConnectionSample::default() }
    }

    #[test]
    fn frames_that_ask_for_nothing_are_a_flood_from_some_rate_on() {
        check(|beat| sample(beat * 10_000_000), Some(1));
        check(|beat| sample(beat * 1_000_000), Some(5));
        check(|beat| sample(beat * 400_000), None);
        check(|beat| ConnectionSample { h2: false, ..sample(beat * 10_000_000) }, None);
    }

    #[test]
    fn requests_bodies_and_windows_explain_what_comes_in() {
        check(
            |beat| ConnectionSample { requests: beat * 1000, ..sample(beat * 10_000_000) },
            None,
        );
        check(
            |beat| ConnectionSample {
                body_bytes: beat * 100_000_000,
                ..sample(beat * 110_000_000)
            },
            None,
        );
        let reader = |beat| ConnectionSample {
            shipped_bytes: beat * 1_000_000_000,
            ..sample(beat * 2_000_000)
        };
        check(reader, None);
    }
}
