//! Caps of accounts and grants.

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
