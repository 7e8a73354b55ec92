//! The rate limit of renders: a token bucket of megapixels for each client.
//!
//! The number of crop URLs is unlimited, so a single client could occupy all workers forever. Each client has a
//! bucket of pixels that refills over time. A render that is started for a client uses up the pixels that it will
//! decode, and is refused at once if the bucket does not hold enough. Cache hits and renders in flight for a
//! different client are free. So is the server's own work: pre-rendering, deliveries, pictures in mails. An
//! archive that was started is always finished; the excess is a debt of the client's bucket.

use std::{collections::HashMap, net::IpAddr};

use parking_lot::Mutex;

use crate::access::auth::Principal;
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::{Error, Result};
use crate::runtime::fair_queue::RequestClient;
use model::network;

/// Clients whose token buckets of megapixels are kept; full buckets are dropped first.
const BUDGET_CLIENTS_MAX: usize = 100_000;
/// Longest `Retry-After` of a client over its rate limit, and the most that it can owe, in seconds.
const BUDGET_WAIT_S_MAX: u32 = 600;

const MILLION: i64 = 1_000_000;

impl RequestClient {
    /// Identifies the client of a request; `None` if neither user nor address is known.
    pub fn for_request(principal: Option<&Principal>, address: Option<IpAddr>) -> Option<Self> {
        match principal {
            // All addresses and keys of a user share one bucket.
            Some(principal) => Some(Self::User(principal.user().id)),
            // One household or office owns a /64, so a single IPv6 address does not identify a client.
            None => address.map(|address| Self::Network(network(address))),
        }
    }
}

/// The payer of a render that has to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderPayer {
    /// The server itself, for its own work; not limited.
    Server,
    /// A client, limited to the content of its bucket.
    Client(RequestClient),
    /// A client whose archive is being packed; its bucket may be overdrawn.
    ClientOnCredit(RequestClient),
}

impl RenderPayer {
    /// Returns the client in whose share of the queues the render counts; `None` for the server.
    pub(super) fn client(self) -> Option<RequestClient> {
        match self {
            Self::Server => None,
            Self::Client(client) | Self::ClientOnCredit(client) => Some(client),
        }
    }

    /// Returns the payer of a request for one rendition.
    pub fn for_client(client: Option<RequestClient>) -> Self {
        client.map_or(Self::Server, Self::Client)
    }
}

/// The content of a client's bucket at one moment.
#[derive(Clone, Copy, Debug)]
struct PixelBucket {
    /// Pixels left; negative for a debt.
    pixels: i64,
    /// Microseconds since the start of the limiter.
    at_us: i64,
}

/// The buckets of all clients that rendered recently.
#[derive(Debug)]
pub(super) struct RenderRateLimiter {
    /// Megapixels per second, which equals pixels per microsecond; 0 disables the limit.
    rate: i64,
    burst: i64,
    stopwatch: Stopwatch,
    buckets: Mutex<HashMap<RequestClient, PixelBucket>>,
}

impl RenderRateLimiter {
    /// Creates the limiter. A client may render `megapixels_s` megapixels per second, and `burst` megapixels at
    /// once. A rate of 0 disables the limit.
    pub(super) fn new(megapixels_s: u32, burst: u32) -> Self {
        Self {
            rate: i64::from(megapixels_s),
            burst: i64::from(burst).saturating_mul(MILLION),
            stopwatch: Stopwatch::start(),
            buckets: Mutex::default(),
        }
    }

    /// Takes `pixels` from the bucket for a render that is about to start.
    ///
    /// A render larger than the whole bucket needs a full bucket and leaves a debt. Fails with
    /// [`crate::runtime::error::ErrorKind::Overloaded`] and the time until the bucket holds enough.
    pub(super) fn acquire(&self, payer: RenderPayer, pixels: u64) -> Result<()> {
        let (client, may_owe) = match payer {
            RenderPayer::Server => return Ok(()),
            RenderPayer::Client(client) => (client, false),
            RenderPayer::ClientOnCredit(client) => (client, true),
        };
        if self.rate == 0 || pixels == 0 {
            return Ok(());
        }
        let pixels = i64::try_from(pixels).unwrap_or(i64::MAX);
        self.acquire_at(client, pixels, may_owe, self.now_us()).map_err(overloaded_error)
    }

    /// Fails while the client has a debt. An archive is started only without one.
    pub(super) fn check_balance(&self, client: RequestClient) -> Result<()> {
        if self.rate == 0 {
            return Ok(());
        }
        self.acquire_at(client, 0, false, self.now_us()).map_err(overloaded_error)
    }

    /// Refunds the pixels of a render that was not queued.
    pub(super) fn refund(&self, payer: RenderPayer, pixels: u64) {
        let Some(client) = payer.client() else { return };
        if let Some(bucket) = self.buckets.lock().get_mut(&client) {
            let pixels = i64::try_from(pixels).unwrap_or(i64::MAX);
            // The bucket may have been refilled since, and never holds more than the burst.
            bucket.pixels = bucket.pixels.saturating_add(pixels).min(self.burst);
        }
    }

    fn now_us(&self) -> i64 {
        i64::try_from(self.stopwatch.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    /// Returns the pixels in a bucket at `now_us`.
    fn refilled(&self, bucket: PixelBucket, now_us: i64) -> i64 {
        let elapsed = now_us.saturating_sub(bucket.at_us).max(0);
        bucket.pixels.saturating_add(elapsed.saturating_mul(self.rate)).min(self.burst)
    }

    /// Takes `pixels` from the bucket; fails with the number of seconds until it holds enough.
    fn acquire_at(
        &self,
        client: RequestClient,
        pixels: i64,
        may_owe: bool,
        now_us: i64,
    ) -> Result<(), u32> {
        let mut buckets = self.buckets.lock();
        let left =
            buckets.get(&client).map_or(self.burst, |bucket| self.refilled(*bucket, now_us));
        // A picture larger than the bucket could otherwise never be rendered.
        let needed = pixels.min(self.burst);
        if left < needed && !may_owe {
            // Pixels divided by pixels per microsecond.
            let wait_s = ((needed - left) / self.rate / MILLION).saturating_add(1);
            return Err(u32::try_from(wait_s).unwrap_or(u32::MAX).min(BUDGET_WAIT_S_MAX));
        }
        // Clients are unlimited in number, so the map has to be bounded.
        if buckets.len() >= BUDGET_CLIENTS_MAX && !buckets.contains_key(&client) {
            self.evict(&mut buckets, now_us);
        }
        // A debt never exceeds the refill of the maximum wait.
        let owed_max = i64::from(BUDGET_WAIT_S_MAX) * MILLION * self.rate;
        let pixels = left.saturating_sub(pixels).max(-owed_max);
        buckets.insert(client, PixelBucket { pixels, at_us: now_us });
        Ok(())
    }

    /// Evicts buckets to make room: first the full buckets, which carry no information, then all without a debt,
    /// and finally all.
    fn evict(&self, buckets: &mut HashMap<RequestClient, PixelBucket>, now_us: i64) {
        buckets.retain(|_, bucket| self.refilled(*bucket, now_us) < self.burst);
        if buckets.len() >= BUDGET_CLIENTS_MAX {
            // Clients in debt stay longest, so that an attacker cannot get rid of a debt by evicting it.
            buckets.retain(|_, bucket| self.refilled(*bucket, now_us) <= 0);
        }
        if buckets.len() >= BUDGET_CLIENTS_MAX {
            // A flood of clients in debt: memory is bounded at the price of their debts.
            buckets.clear();
        }
    }
}

/// Returns the error for a client whose bucket does not hold enough.
fn overloaded_error(wait_s: u32) -> Error {
    let message = format!(
        "This client has reached its rate limit for rendered megapixels; try again in {wait_s} s"
    );
    Error::overloaded("client_megapixels", message).retry_after(wait_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::account::UserId;

    const A: RequestClient = RequestClient::User(UserId(1));
    const B: RequestClient = RequestClient::User(UserId(2));

    /// Ten megapixels per second, a burst of a hundred.
    fn budget() -> RenderRateLimiter {
        RenderRateLimiter::new(10, 100)
    }

    fn take(
        budget: &RenderRateLimiter,
        client: RequestClient,
        megapixels: i64,
        second: i64,
    ) -> Result<(), u32> {
        budget.acquire_at(client, megapixels * MILLION, false, second * MILLION)
    }

    #[test]
    fn a_reserve_empties_and_fills_at_its_rate() {
        let budget = budget();
        assert_eq!(take(&budget, A, 60, 0), Ok(()));
        assert_eq!(take(&budget, A, 60, 0), Err(3));
        assert_eq!(take(&budget, B, 60, 0), Ok(()), "another client has its own");
        assert_eq!(take(&budget, A, 60, 2), Ok(()));
        assert_eq!(take(&budget, A, 1, 2), Err(1));
        assert_eq!(take(&budget, A, 100, 1000), Ok(()), "it never holds more than the burst");
        assert_eq!(take(&budget, A, 1, 1000), Err(1));
    }

    #[test]
    fn a_render_above_the_capacity_needs_a_full_bucket_and_leaves_a_debt() {
        let budget = budget();
        assert_eq!(take(&budget, A, 1, 0), Ok(()));
        assert_eq!(take(&budget, A, 500, 0), Err(1));
        assert_eq!(take(&budget, A, 500, 1), Ok(()));
        assert_eq!(take(&budget, A, 1, 1), Err(41));
        assert_eq!(take(&budget, A, 1, 42), Ok(()));
    }

    #[test]
    fn an_archive_goes_into_debt_and_the_next_one_waits() {
        let budget = budget();
        assert!(budget.check_balance(A).is_ok());
        for _ in 0..5 {
            assert!(budget.acquire(RenderPayer::ClientOnCredit(A), 100_000_000).is_ok());
        }
        let refused = budget.check_balance(A).unwrap_err();
        let wait_s = refused.retry_after_s().unwrap();
        assert!((39..=41).contains(&wait_s), "{wait_s}");
        assert!(budget.acquire(RenderPayer::Client(B), 1).is_ok());
        // The wait is bounded, no matter how large the debt is.
        budget.acquire_at(A, i64::MAX, true, 0).unwrap();
        assert_eq!(budget.check_balance(A).unwrap_err().retry_after_s(), Some(BUDGET_WAIT_S_MAX));
    }

    #[test]
    fn what_no_queue_took_is_given_back() {
        let budget = budget();
        budget.acquire(RenderPayer::Client(A), 100_000_000).unwrap();
        assert!(budget.acquire(RenderPayer::Client(A), 100_000_000).is_err());
        budget.refund(RenderPayer::Client(A), 100_000_000);
        budget.acquire(RenderPayer::Client(A), 100_000_000).unwrap();
    }

    #[test]
    fn own_work_and_a_budget_of_zero_are_not_limited() {
        let none = RenderRateLimiter::new(0, 1);
        for budget in [&budget(), &none] {
            for _ in 0..3 {
                assert!(budget.acquire(RenderPayer::Server, u64::MAX).is_ok());
                assert!(none.acquire(RenderPayer::Client(A), u64::MAX).is_ok());
            }
        }
    }

    #[test]
    fn clients_that_are_kept_are_bounded_and_those_in_debt_stay_longest() {
        let budget = budget();
        take(&budget, A, 500, 0).unwrap();
        for user in 0..i64::try_from(BUDGET_CLIENTS_MAX).unwrap() + 10 {
            take(&budget, RequestClient::User(UserId(100 + user)), 1, 0).unwrap();
        }
        assert!(budget.buckets.lock().len() <= BUDGET_CLIENTS_MAX);
        assert!(take(&budget, A, 1, 1).is_err());
    }

    fn anonymous(address: &str) -> Option<RequestClient> {
        RequestClient::for_request(None, Some(address.parse().unwrap()))
    }

    #[test]
    fn a_user_is_one_client_wherever_and_a_stranger_is_a_network() {
        assert_eq!(anonymous("2001:db8::1"), anonymous("2001:db8::2"));
        assert_ne!(anonymous("192.0.2.1"), anonymous("192.0.2.2"));
        assert_eq!(RequestClient::for_request(None, None), None);
    }
}
