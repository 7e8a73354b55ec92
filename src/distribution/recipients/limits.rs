//! Limits and retention of data about mail recipients.

use std::time::Duration;

/// Maximum number of stored recipients per user; the least recently mailed recipient is evicted first.
pub const RECIPIENTS_PER_USER_MAX: usize = 10_000;
/// Time within which a recipient can agree to mails.
pub const CONFIRM_TIME: Duration = Duration::from_secs(7 * 86_400);
/// Time after which a recipient who did not agree is asked again.
pub const CONFIRM_RETRY_INTERVAL: Duration = Duration::from_secs(30 * 86_400);
/// Interval at which a waiting mail re-checks whether its recipient agreed.
pub const CONFIRM_POLL_INTERVAL: Duration = Duration::from_secs(3600);
/// Time after the last mail after which a recipient is removed.
pub const RECIPIENT_RETENTION: Duration = Duration::from_secs(400 * 86_400);
/// Number of hours for which mail counts are stored, including the current hour.
pub const HOURS_COUNTED: i64 = 2;
/// Maximum length of a name in texts for recipients, in characters.
pub const NAME_CHARS_MAX: usize = 80;
/// Interval between sweeps of old counts and recipients.
pub const RECIPIENT_SWEEP_INTERVAL: Duration = Duration::from_secs(3600);
