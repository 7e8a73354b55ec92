//! Limits for compressed responses.

/// Minimum bytes of a response that is compressed. A shorter one fits into one packet either way.
pub const COMPRESSED_BYTES_MIN: u64 = 1000;
/// Maximum bytes of a response that is compressed on the thread that built it: that takes 0.2 ms, less than
/// a round trip to another thread may take on a busy machine.
pub const COMPRESSED_AT_ONCE_BYTES_MAX: usize = 16 * 1024;
