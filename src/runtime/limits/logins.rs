//! Limits for failed logins: how many are counted, and how attempts are delayed.

use std::time::Duration;

/// Counters of failed logins that a process keeps in memory; one takes about 60 bytes.
pub const THROTTLE_KEYS_MAX: usize = 100_000;
/// Counters of failed logins in the database; one takes about 200 bytes there.
pub const FAILED_LOGINS_MAX: usize = 100_000;
/// Failures that a process writes between two checks of the number of counters; up to three times as many
/// counters may exceed [`FAILED_LOGINS_MAX`].
pub const FAILED_LOGINS_BOUND_EVERY: u32 = 1000;
/// Initial delay between two attempts for a user name with too many failures from all addresses.
pub const PACE_FIRST: Duration = Duration::from_secs(1);
/// Further failures after which the delay doubles.
pub const PACE_STEP: u32 = 10;
/// Maximum delay: 225 guesses an hour from any number of networks that failed before, and at most as many
/// from others.
pub const PACE_MAX: Duration = Duration::from_secs(16);
/// Maximum time that a delayed attempt waits; browsers and programs time out after 30 s or
/// more.
pub const PACE_WAIT_MAX: Duration = Duration::from_secs(20);
/// Delayed attempts that may wait for one user name: of networks that failed with it, and separately of
/// others.
pub const PACED_WAITING_MAX: usize = 8;
/// User names with waiting attempts, counted separately in the same way.
pub const PACED_NAMES_MAX: usize = 1000;
/// Lifetime of the cookie that identifies a browser in which a user logged in before.
pub const DEVICE_COOKIE_FOR: Duration = Duration::from_secs(365 * 86_400);
