//! Limits for accounts and grants.

use std::time::Duration;

/// Seconds that a retired signing key stays published after the expiry of the last token that it may have
/// signed: other nodes sign with it until they have followed the change.
pub const SIGNING_KEY_MARGIN_S: u32 = 3600;
/// Age of a login in seconds from which pages that create keys, users or channels ask for the password
/// again.
pub const FRESH_LOGIN_S: i64 = 3600;
/// User creations that one administrator may request within [`USER_REQUESTS_WINDOW_S`]. Requests refused
/// because the user name exists count too, so that names cannot be probed.
pub const USER_REQUESTS_MAX: u32 = 100;
/// The same limit for all administrators of one organization together.
pub const ORGANIZATION_USER_REQUESTS_MAX: u32 = 200;
/// Window in seconds for these two limits.
pub const USER_REQUESTS_WINDOW_S: u32 = 3600;
/// Mail domains that one organization can have.
pub const MAIL_DOMAINS_MAX: usize = 100;
/// Minimum lifetime in seconds of a client's access tokens: with less, a client does nothing but
/// refresh.
pub const CLIENT_ACCESS_TOKEN_S_MIN: u32 = 60;
/// Minimum characters of a password that a user sets (OWASP ASVS 5, 6.2.1 requires 8 and
/// recommends 15).
pub const PASSWORD_CHARS_MIN: usize = 12;
/// Lifetime of an invitation, in seconds.
pub const INVITATION_S: u32 = 7 * 86_400;
/// Lifetime in seconds of a reset link that an administrator created for a user with a password.
pub const ADMIN_RESET_S: u32 = 86_400;
/// Lifetime in seconds of a link that was requested for a forgotten password.
pub const RESET_S: u32 = 3600;
/// Valid links of one user at a time: a request by another person does not invalidate the link that the user
/// just requested.
pub const PASSWORD_LINKS_MAX: usize = 5;
/// Users that one mail about a forgotten password names.
pub const RESET_USERS_MAX: usize = 20;
/// Mails about a forgotten password per user name or address and hour.
pub const RESETS_PER_NAME_MAX: usize = 3;
/// Requests for such mails per network and hour.
pub const RESETS_PER_NETWORK_MAX: usize = 30;
/// Requests for such mails that are processed concurrently.
pub const RESETS_IN_FLIGHT_MAX: usize = 16;
/// Known browsers of one user.
pub const BROWSERS_MAX: usize = 50;
/// Characters of a `User-Agent` that are kept.
pub const BROWSER_CHARS_MAX: usize = 200;
/// Interval within which repeated uses of the same credentials are recorded once.
pub const USE_RECORD_INTERVAL: Duration = Duration::from_secs(300);
/// Interval between two writes of last uses.
pub const USES_WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// Credentials whose last use waits to be written to the database.
pub const USES_WAITING_MAX: usize = 10_000;
