//! Caps of answers that are compressed.

/// Bytes of an answer from which on it is compressed. A shorter one travels in one packet either way.
pub const COMPRESSED_BYTES_MIN: u64 = 1000;
/// Bytes of an answer up to which it is compressed where it is made: that takes 0.2 ms, less than
/// handing it to another thread and back may take on a busy machine.
pub const COMPRESSED_AT_ONCE_BYTES_MAX: usize = 16 * 1024;
