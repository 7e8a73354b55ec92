//! Caps of accounts and grants.

use std::time::Duration;

/// Seconds that a retired signing key is published beyond the last token that it may have signed:
/// other nodes sign with it until they have followed the change.
pub const SIGNING_KEY_MARGIN_S: u32 = 3600;
/// Age in seconds of a login from which on pages that make keys, users or channels ask for the
/// password again.
pub const FRESH_LOGIN_S: i64 = 3600;
/// Users that one administrator may ask to make within [`USER_REQUESTS_WINDOW_S`]; requests that are
/// refused because the user name is taken count, so that names cannot be probed.
pub const USER_REQUESTS_MAX: u32 = 100;
/// Those of all administrators of one organization together.
pub const ORGANIZATION_USER_REQUESTS_MAX: u32 = 200;
/// The window in seconds in which they are counted.
pub const USER_REQUESTS_WINDOW_S: u32 = 3600;
/// Mail domains of one organization.
pub const MAIL_DOMAINS_MAX: usize = 100;
/// Seconds that the access tokens of a client last at least: below that a client does nothing but
/// refresh.
pub const CLIENT_ACCESS_TOKEN_S_MIN: u32 = 60;
/// Characters that a password that a user sets has at least (OWASP ASVS 5, 6.2.1 asks for 8 and
/// recommends 15).
pub const PASSWORD_CHARS_MIN: usize = 12;
/// Seconds for which an invitation is valid.
pub const INVITATION_S: u32 = 7 * 86_400;
/// Seconds for which a link is valid that an administrator made for a user with a password.
pub const ADMIN_RESET_S: u32 = 86_400;
/// Seconds for which a link is valid that somebody asked for who forgot a password.
pub const RESET_S: u32 = 3600;
/// Links of one user that are valid at a time: somebody else's requests end none that was asked for just
/// before.
pub const PASSWORD_LINKS_MAX: usize = 5;
/// Users that one mail about a forgotten password names.
pub const RESET_USERS_MAX: usize = 20;
/// Mails about a forgotten password that one user name or address is good for in an hour.
pub const RESETS_PER_NAME_MAX: usize = 3;
/// Requests for them from one network in an hour.
pub const RESETS_PER_NETWORK_MAX: usize = 30;
/// Requests for them that are worked on at a time.
pub const RESETS_IN_FLIGHT_MAX: usize = 16;
/// Browsers of one user that are known.
pub const BROWSERS_MAX: usize = 50;
/// Characters of what a browser says it is that are kept.
pub const BROWSER_CHARS_MAX: usize = 200;
/// Time within which uses of the same credentials are noted once.
pub const USE_RECORD_INTERVAL: Duration = Duration::from_secs(300);
/// Time between two writes of last uses.
pub const USES_WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// Credentials whose last use waits to be written.
pub const USES_WAITING_MAX: usize = 10_000;
