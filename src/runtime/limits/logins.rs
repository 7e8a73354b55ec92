//! Caps of failed logins: how many are counted, and how attempts are paced.

use std::time::Duration;

/// Counters of failed logins that a process keeps in memory; one takes about 60 bytes.
pub const THROTTLE_KEYS_MAX: usize = 100_000;
/// Counters of failed logins in the database; one takes about 200 bytes there.
pub const FAILED_LOGINS_MAX: usize = 100_000;
/// Failures that a process writes between two looks at how many counters there are: so many times
/// three may be there beyond [`FAILED_LOGINS_MAX`].
pub const FAILED_LOGINS_BOUND_EVERY: u32 = 1000;
/// Time between two evaluated attempts for a user name that failed too often from everywhere.
pub const PACE_FIRST: Duration = Duration::from_secs(1);
/// Further failures after which that time doubles.
pub const PACE_STEP: u32 = 10;
/// The longest time between two of them: 225 guesses an hour from however many networks that failed
/// before, and at most as many from others.
pub const PACE_MAX: Duration = Duration::from_secs(16);
/// The longest time for which such an attempt waits for its turn; browsers and programs give up
/// after 30 s and more.
pub const PACE_WAIT_MAX: Duration = Duration::from_secs(20);
/// Attempts that wait for their turn, for one user name: of networks that failed with it, and of
/// others.
pub const PACED_WAITING_MAX: usize = 8;
/// User names with attempts that wait for their turn, counted as those are.
pub const PACED_NAMES_MAX: usize = 1000;
/// Time for which a browser that a user logged in with is told apart from others.
pub const DEVICE_COOKIE_FOR: Duration = Duration::from_secs(365 * 86_400);
