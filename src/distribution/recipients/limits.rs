//! Caps of what is known of recipients of mails.

use std::time::Duration;

/// Recipients of one user that are remembered; the one that was mailed least lately goes first.
pub const RECIPIENTS_PER_USER_MAX: usize = 10_000;
/// Time that a recipient has to agree to mails.
pub const CONFIRM_TIME: Duration = Duration::from_secs(7 * 86_400);
/// Time after which a recipient that did not agree is asked once more.
pub const CONFIRM_RETRY_INTERVAL: Duration = Duration::from_secs(30 * 86_400);
/// Time between two looks at whether a recipient agreed.
pub const CONFIRM_POLL_INTERVAL: Duration = Duration::from_secs(3600);
/// Time after which a recipient that nobody mails any more is forgotten.
pub const RECIPIENT_RETENTION: Duration = Duration::from_secs(400 * 86_400);
/// Hours of which mails are counted, the current one too.
pub const HOURS_COUNTED: i64 = 2;
/// Characters of a name in what recipients read.
pub const NAME_CHARS_MAX: usize = 80;
/// Time between two removals of old counts and recipients.
pub const RECIPIENT_SWEEP_INTERVAL: Duration = Duration::from_secs(3600);
