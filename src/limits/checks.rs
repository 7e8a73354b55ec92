//! Caps of checking originals, by command and in the background.

/// Time between two notes of how far a check came; what was read since the last one is read again after an
/// interruption.
pub const CHECK_NOTED: std::time::Duration = std::time::Duration::from_secs(5);
