//! Every cap of the model, with its unit and reason.

/// Days ahead in which a schedule must have a run: eight years, since 2100 has no 29 February.
pub const SCHEDULE_DAYS_MAX: i64 = 8 * 366;
/// Characters of a cron expression; real ones have below 40.
pub const SCHEDULE_CHARS_MAX: usize = 100;
/// Characters of the name of a time zone; the longest is `America/Argentina/ComodRivadavia`.
pub const TIME_ZONE_CHARS_MAX: usize = 40;
/// Entries of an item's history; the oldest give way. Real ones have below 20.
pub const REVISIONS_MAX: usize = 200;
/// Items that one document replaces; each is written in its transaction.
pub const REPLACING_MAX: usize = 100;
/// Associations within associations whose addresses are looked at; real documents have two.
pub const ASSOCIATION_DEPTH_MAX: usize = 8;
/// Associations of one document that are looked up; real ones have below 100.
pub const ASSOCIATIONS_LOOKED_UP_MAX: usize = 1000;
/// Items that a scheduled mail tells of; it counts the others.
pub const DIGEST_ITEMS_MAX: usize = 100;
/// Characters of a channel's name.
pub const CHANNEL_NAME_CHARS_MAX: usize = 64;
/// Bytes of a user name.
pub const USER_NAME_BYTES_MAX: usize = 254;
/// Characters of why a delivery failed that are kept.
pub const DELIVERY_ERROR_CHARS_MAX: usize = 500;
/// Longest time between two tries of a delivery, before some is added so that those that failed
/// together do not come back together.
pub const DELIVERY_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(48 * 60);
