//! Limits the long requests of one client, and of all clients together: polls, uploads of parts, archives that are
//! being packed.
//!
//! The total number is bounded. A client that reached the bound alone would lock out all others. Each client
//! therefore has a limit, and callers without credentials together cannot use the share that is reserved for
//! known users.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::runtime::error::{Error, Result};
use crate::runtime::fair_queue::RequestClient;

/// The numbers of slots for one kind of request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotLimits {
    /// Slots of all clients together.
    pub all: usize,
    /// Slots of one client.
    pub client: usize,
    /// Share of all slots that is reserved for known users, 0 to 1.
    pub known_share: f32,
}

/// The slots of one kind of request; cheap to clone.
#[derive(Clone, Debug)]
pub struct WaitingSlots {
    inner: Arc<SlotsInner>,
}

#[derive(Debug)]
struct SlotsInner {
    /// Label of refusals in the metric of shed requests.
    name: &'static str,
    /// Label of refusals because of the limit of one client.
    client_name: &'static str,
    all_max: usize,
    client_max: usize,
    unknown_max: usize,
    state: Mutex<SlotCounts>,
}

#[derive(Debug, Default)]
struct SlotCounts {
    all: usize,
    unknown: usize,
    /// The slots of each holder with at least one. There are never more entries than slots.
    holders: HashMap<RequestClient, usize>,
}

/// A slot in use, released when it is dropped.
#[derive(Debug)]
pub struct SlotGuard {
    inner: Arc<SlotsInner>,
    holder: Option<RequestClient>,
}

impl WaitingSlots {
    /// Creates slots with `limits`. Refusals are counted as `name`, or as `client_name` if they are because
    /// of the limit of one client.
    pub fn new(name: &'static str, client_name: &'static str, limits: SlotLimits) -> Self {
        let inner = SlotsInner {
            name,
            client_name,
            all_max: limits.all,
            client_max: limits.client,
            unknown_max: unknown_max(limits),
            state: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Acquires a slot for `holder`.
    ///
    /// Fails with [`crate::runtime::error::ErrorKind::Overloaded`] if the holder or all clients reached their
    /// limit, and for an unknown holder if only the reserved share is left.
    pub fn take(&self, holder: Option<RequestClient>) -> Result<SlotGuard> {
        let inner = &self.inner;
        let mut state = inner.state.lock();
        let held = holder.and_then(|holder| state.holders.get(&holder)).copied().unwrap_or(0);
        // The client's own limit is checked first, so that the error names the cause the client can fix.
        if held >= inner.client_max {
            let message = "Too many requests of this client are waiting for items";
            return Err(Error::overloaded(inner.client_name, message));
        }
        // A request without an address is as unknown as a request without credentials.
        let is_known = holder.is_some_and(RequestClient::is_known);
        if state.all >= inner.all_max || (!is_known && state.unknown >= inner.unknown_max) {
            return Err(Error::overloaded(inner.name, "Too many requests are waiting for items"));
        }
        state.all += 1;
        state.unknown += usize::from(!is_known);
        if let Some(holder) = holder {
            *state.holders.entry(holder).or_default() += 1;
        }
        Ok(SlotGuard { inner: Arc::clone(inner), holder })
    }
}

/// Returns the number of slots for all callers without credentials: at least one, so that a small total does
/// not close public content.
fn unknown_max(limits: SlotLimits) -> usize {
    let share = f64::from(limits.known_share.clamp(0.0, 1.0));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a count of slots, rounded up and bounded by it"
    )]
    let reserved = (limits.all as f64 * share).ceil() as usize;
    limits.all.saturating_sub(reserved).max(1)
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut state = self.inner.state.lock();
        state.all = state.all.saturating_sub(1);
        if !self.holder.is_some_and(RequestClient::is_known) {
            state.unknown = state.unknown.saturating_sub(1);
        }
        let Some(holder) = self.holder else { return };
        // Entries without slots are removed, or the map would grow with every address.
        match state.holders.get(&holder).copied().unwrap_or(0) {
            0 | 1 => drop(state.holders.remove(&holder)),
            more => drop(state.holders.insert(holder, more - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::account::UserId;

    use super::*;

    fn slots(all: usize, client: usize, known_share: f32) -> WaitingSlots {
        WaitingSlots::new("all", "client", SlotLimits { all, client, known_share })
    }

    fn take(slots: &WaitingSlots, holder: RequestClient) -> Result<SlotGuard, String> {
        slots.take(Some(holder)).map_err(|error| error.details()[0].error_code.clone())
    }

    fn network_of(text: &str) -> RequestClient {
        RequestClient::new(None, Some(text.parse().unwrap())).unwrap()
    }

    #[test]
    fn one_client_never_takes_the_slots_of_others() {
        let slots = slots(5, 2, 0.0);
        let user = |id| RequestClient::User(UserId(id));
        let first = take(&slots, user(1)).unwrap();
        let _second = take(&slots, user(1)).unwrap();
        assert_eq!(take(&slots, user(1)).unwrap_err(), "client");
        let _other = take(&slots, user(2)).unwrap();
        drop(first);
        let _again = take(&slots, user(1)).unwrap();
    }

    #[test]
    fn callers_without_credentials_leave_the_share_of_known_users() {
        let slots = slots(4, 4, 0.5);
        let _strangers: Vec<_> = (1..=2)
            .map(|last| take(&slots, network_of(&format!("192.0.2.{last}"))).unwrap())
            .collect();
        assert_eq!(take(&slots, network_of("192.0.2.9")).unwrap_err(), "all");
        assert!(slots.take(None).is_err(), "nor may what has no address");
        let users: Vec<_> =
            (1..=2).map(|id| take(&slots, RequestClient::User(UserId(id))).unwrap()).collect();
        assert_eq!(take(&slots, RequestClient::User(UserId(3))).unwrap_err(), "all");
        drop(users);
        assert_eq!(
            slots.inner.state.lock().holders.len(),
            2,
            "nobody is remembered without a slot"
        );
    }

    #[test]
    fn a_network_of_ipv6_is_one_client_and_known_users_are_not_their_address() {
        assert_eq!(network_of("2001:db8::1"), network_of("2001:db8::2"));
        assert_ne!(network_of("192.0.2.1"), network_of("192.0.2.2"));
        let known = RequestClient::new(Some(UserId(1)), Some("192.0.2.1".parse().unwrap()));
        assert_eq!(known, Some(RequestClient::User(UserId(1))));
        assert_eq!(RequestClient::new(None, None), None);
    }

    #[test]
    fn strangers_have_a_slot_however_few_there_are() {
        let slots = slots(1, 1, 0.5);
        let _only = take(&slots, network_of("192.0.2.1")).unwrap();
        assert_eq!(take(&slots, network_of("192.0.2.2")).unwrap_err(), "all");
    }
}
