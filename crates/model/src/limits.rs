//! The limits of the model, with their units and reasons.

/// Number of days within which a schedule must have a run: eight years, since 2100 has no 29 February.
pub const SCHEDULE_DAYS_MAX: i64 = 8 * 366;
/// Maximum length of a cron expression in characters; real ones have fewer than 40.
pub const SCHEDULE_CHARS_MAX: usize = 100;
/// Maximum length of a time zone name in characters; the longest is `America/Argentina/ComodRivadavia`.
pub const TIME_ZONE_CHARS_MAX: usize = 40;
/// Maximum number of entries in an item's history; the oldest are dropped. Real histories have fewer than 20.
pub const REVISIONS_MAX: usize = 200;
/// Maximum number of items that one document may replace; each is written in the document's transaction.
pub const REPLACING_MAX: usize = 100;
/// Maximum depth of nested associations whose URLs are rewritten; real documents have two levels.
pub const ASSOCIATION_DEPTH_MAX: usize = 8;
/// Maximum number of associations of one document that are looked up; real documents have fewer than 100.
pub const ASSOCIATIONS_LOOKED_UP_MAX: usize = 1000;
/// Maximum number of items that a scheduled e-mail lists; the rest are only counted.
pub const DIGEST_ITEMS_MAX: usize = 100;
/// Maximum length of a channel name in characters.
pub const CHANNEL_NAME_CHARS_MAX: usize = 64;
/// Maximum length of a user name in bytes.
pub const USER_NAME_BYTES_MAX: usize = 254;
/// Maximum length of a password or client secret in bytes; longer ones only cost hashing time.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Maximum stored length of the reason of a failed delivery, in characters.
pub const DELIVERY_ERROR_CHARS_MAX: usize = 500;
/// Maximum time between two attempts of a delivery, before jitter. The jitter spreads retries of deliveries that
/// failed together.
pub const DELIVERY_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(48 * 60);
/// Maximum length of one field in a template or in a change of several items, in characters. The longest captions
/// have 5,000.
pub const FIELD_CHARS_MAX: usize = 20_000;
