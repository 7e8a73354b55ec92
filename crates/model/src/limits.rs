//! The limits of the model, with their units and reasons.

/// Days ahead within which a schedule must have a run: eight years, since 2100 has no 29 February.
pub const SCHEDULE_DAYS_MAX: i64 = 8 * 366;
/// Characters of a cron expression; real ones have fewer than 40.
pub const SCHEDULE_CHARS_MAX: usize = 100;
/// Characters of the name of a time zone; the longest is `America/Argentina/ComodRivadavia`.
pub const TIME_ZONE_CHARS_MAX: usize = 40;
/// Entries of an item's history; beyond that the oldest are dropped. Real histories have fewer than 20.
pub const REVISIONS_MAX: usize = 200;
/// Items that one document may replace; each is written in the document's transaction.
pub const REPLACING_MAX: usize = 100;
/// Depth of nested associations whose URLs are rewritten; real documents have two levels.
pub const ASSOCIATION_DEPTH_MAX: usize = 8;
/// Associations of one document that are looked up; real documents have fewer than 100.
pub const ASSOCIATIONS_LOOKED_UP_MAX: usize = 1000;
/// Items that a scheduled e-mail lists; the rest are only counted.
pub const DIGEST_ITEMS_MAX: usize = 100;
/// Characters of a channel's name.
pub const CHANNEL_NAME_CHARS_MAX: usize = 64;
/// Bytes of a user name.
pub const USER_NAME_BYTES_MAX: usize = 254;
/// Bytes of a password or a client secret; longer ones only cost hashing time.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Stored characters of the reason why a delivery failed.
pub const DELIVERY_ERROR_CHARS_MAX: usize = 500;
/// Maximum time between two attempts of a delivery, before jitter, which spreads retries of deliveries that
/// failed together.
pub const DELIVERY_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(48 * 60);
/// Characters of one field in a template or in a change of several items. The longest captions have 5,000.
pub const FIELD_CHARS_MAX: usize = 20_000;
