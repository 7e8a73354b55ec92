//! A bounded queue that shares its places fairly among clients.
//!
//! One client has at most a share of the places, so that it cannot crowd out the others. Items of the server
//! itself, and of callers with credentials, leave the queue before items of anonymous callers.
//!
//! [`FairQueue`] holds the items; [`FairSemaphore`] is a semaphore whose waiters queue in it.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use model::account::UserId;
use model::network;

/// The client of a request, as limits count clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestClient {
    /// A user, from any address and with any credentials.
    User(UserId),
    /// An anonymous client: its IP address, or the /64 of an IPv6 address.
    Network(IpAddr),
}

impl RequestClient {
    /// Identifies the client of a request: the user if known, otherwise the network of the address.
    ///
    /// Returns `None` for a request without a connection, which counts only towards the limit of all clients.
    pub fn new(user: Option<UserId>, address: Option<IpAddr>) -> Option<Self> {
        let known_user = user.map(Self::User);
        known_user.or_else(|| address.map(|address| Self::Network(network(address))))
    }

    /// Returns whether the client has credentials.
    pub fn is_known(self) -> bool {
        matches!(self, Self::User(_))
    }
}

/// The error of a queue that has no place for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueFull {
    /// All places are in use.
    #[error("the render queue is full")]
    AllPlaces,
    /// The client already has the maximum number of places of one client.
    #[error("the client has its share of the render queue")]
    ClientShare,
}

/// The number of places of a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueuePlaces {
    /// The number of places for all clients together.
    pub all: usize,
    client: usize,
}

impl QueuePlaces {
    /// Creates the numbers for `all` places. One client may have the share `client_share` of them, 0 to 1,
    /// and at least one place.
    pub fn new(all: usize, client_share: f32) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a queue needs no exact number, and the cast saturates"
        )]
        let client = (all as f32 * client_share).floor() as usize;
        Self { all, client: client.clamp(1, all.max(1)) }
    }
}

/// A queue in which each item has the place of a client, or of the server itself (`None`).
///
/// Places are reserved first and filled later, so that a request can hold its place while it prepares its
/// work.
#[derive(Debug)]
pub struct FairQueue<T> {
    places: QueuePlaces,
    /// Places that are reserved or filled.
    taken: usize,
    taken_by_client: HashMap<RequestClient, usize>,
    /// Items of the server and of callers with credentials, which leave first.
    known: VecDeque<QueuedItem<T>>,
    anonymous: VecDeque<QueuedItem<T>>,
}

#[derive(Debug)]
struct QueuedItem<T> {
    client: Option<RequestClient>,
    item: T,
}

impl<T> FairQueue<T> {
    /// Creates an empty queue.
    pub fn new(places: QueuePlaces) -> Self {
        Self {
            places,
            taken: 0,
            taken_by_client: HashMap::new(),
            known: VecDeque::new(),
            anonymous: VecDeque::new(),
        }
    }

    /// Reserves a place for an item of `client`.
    ///
    /// The place must be filled by [`FairQueue::push`] or released by [`FairQueue::release`].
    pub fn reserve(&mut self, client: Option<RequestClient>) -> Result<(), QueueFull> {
        if self.taken >= self.places.all {
            return Err(QueueFull::AllPlaces);
        }
        if let Some(client) = client {
            let taken = self.taken_by_client.entry(client).or_default();
            if *taken >= self.places.client {
                return Err(QueueFull::ClientShare);
            }
            *taken += 1;
        }
        self.taken += 1;
        Ok(())
    }

    /// Releases a reserved place that is not filled.
    pub fn release(&mut self, client: Option<RequestClient>) {
        self.taken = self.taken.saturating_sub(1);
        let Some(client) = client else { return };
        let Some(taken) = self.taken_by_client.get_mut(&client) else { return };
        *taken = taken.saturating_sub(1);
        // The number of clients is unbounded, so clients without a place are removed.
        if *taken == 0 {
            self.taken_by_client.remove(&client);
        }
    }

    /// Fills a place that was reserved for `client`.
    pub fn push(&mut self, client: Option<RequestClient>, item: T) {
        let is_known = client.is_none_or(RequestClient::is_known);
        let queue = if is_known { &mut self.known } else { &mut self.anonymous };
        queue.push_back(QueuedItem { client, item });
    }

    /// Returns the number of items; reserved places do not count.
    pub fn len(&self) -> usize {
        self.known.len() + self.anonymous.len()
    }

    /// Returns whether the queue has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of items of callers with credentials and of the server, which leave first.
    pub fn known_len(&self) -> usize {
        self.known.len()
    }

    /// Iterates over the items in the order in which they leave.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.known.iter().chain(&self.anonymous).map(|queued| &queued.item)
    }

    /// Removes the item at `index` of [`FairQueue::iter`], and releases its place.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        let known = self.known.len();
        let queued = if index < known {
            self.known.remove(index)
        } else {
            self.anonymous.remove(index - known)
        };
        let QueuedItem { client, item } = queued?;
        self.release(client);
        Some(item)
    }

    /// Removes the first item, and releases its place.
    pub fn pop(&mut self) -> Option<T> {
        self.remove(0)
    }

    /// Removes the items for which `is_kept` returns false, and releases their places.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&T) -> bool) {
        let mut removed = Vec::new();
        for items in [&mut self.known, &mut self.anonymous] {
            items.retain(|queued| {
                let keep = is_kept(&queued.item);
                if !keep {
                    removed.push(queued.client);
                }
                keep
            });
        }
        for client in removed {
            self.release(client);
        }
    }
}

/// A semaphore whose waiters queue fairly; cheap to clone.
#[derive(Clone, Debug)]
pub struct FairSemaphore {
    state: Arc<Mutex<SemaphoreState>>,
}

#[derive(Debug)]
struct SemaphoreState {
    free: usize,
    waiting: FairQueue<WaitingRequest>,
    /// The number of the next waiter.
    next: u64,
}

#[derive(Debug)]
struct WaitingRequest {
    number: u64,
    permit: oneshot::Sender<FairPermit>,
}

/// A permit of a [`FairSemaphore`]. Dropping it passes it to the next waiter in the queue.
#[derive(Debug)]
pub struct FairPermit {
    semaphore: FairSemaphore,
}

/// A place in the queue of a [`FairSemaphore`], released when it is dropped.
#[derive(Debug)]
pub struct PermitWait {
    semaphore: FairSemaphore,
    number: u64,
    permit: oneshot::Receiver<FairPermit>,
}

/// The result of [`FairSemaphore::admit`].
#[derive(Debug)]
pub enum Admission {
    /// A permit, at once.
    Permit(FairPermit),
    /// A place in the queue.
    Queued(PermitWait),
}

impl FairSemaphore {
    /// Creates a semaphore with `permits`, at least one, and a queue for more requests.
    pub fn new(permits: usize, places: QueuePlaces) -> Self {
        let waiting = FairQueue::new(places);
        let state = SemaphoreState { free: permits.max(1), waiting, next: 0 };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Gives `client` a free permit or a place in the queue.
    pub fn admit(&self, client: Option<RequestClient>) -> Result<Admission, QueueFull> {
        let mut state = self.state.lock();
        // A permit is free only while the queue is empty.
        if state.free > 0 {
            state.free -= 1;
            return Ok(Admission::Permit(FairPermit { semaphore: self.clone() }));
        }
        state.waiting.reserve(client)?;
        let (sender, receiver) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        state.waiting.push(client, WaitingRequest { number, permit: sender });
        Ok(Admission::Queued(PermitWait { semaphore: self.clone(), number, permit: receiver }))
    }

    /// Waits for a permit of `client`.
    pub async fn acquire(&self, client: Option<RequestClient>) -> Result<FairPermit, QueueFull> {
        match self.admit(client)? {
            Admission::Permit(permit) => Ok(permit),
            Admission::Queued(wait) => Ok(wait.permit().await),
        }
    }
}

impl PermitWait {
    /// Waits for the permit.
    pub async fn permit(mut self) -> FairPermit {
        // A permit is sent before its sender is dropped.
        (&mut self.permit).await.expect("the semaphore outlives its queue")
    }
}

impl Drop for PermitWait {
    fn drop(&mut self) {
        let number = self.number;
        self.semaphore.state.lock().waiting.retain(|waiting| waiting.number != number);
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let mut state = self.semaphore.state.lock();
        let Some(next) = state.waiting.pop() else {
            state.free += 1;
            return;
        };
        drop(state);
        // A request that has just been abandoned drops the permit, which passes it to the next waiter.
        drop(next.permit.send(Self { semaphore: self.semaphore.clone() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: Option<RequestClient> = Some(RequestClient::User(UserId(1)));
    const BOB: Option<RequestClient> = Some(RequestClient::User(UserId(2)));

    fn network(last: u8) -> Option<RequestClient> {
        Some(RequestClient::Network(IpAddr::from([192, 0, 2, last])))
    }

    fn queued(admission: Result<Admission, QueueFull>) -> PermitWait {
        match admission.expect("there is a place") {
            Admission::Queued(wait) => wait,
            Admission::Permit(_) => panic!("no permit is free"),
        }
    }

    #[test]
    fn one_client_has_at_most_its_share_of_the_places() {
        let mut queue = FairQueue::<u32>::new(QueuePlaces::new(8, 0.25));
        for _ in 0..2 {
            queue.reserve(network(1)).unwrap();
        }
        assert_eq!(queue.reserve(network(1)), Err(QueueFull::ClientShare));
        // Other clients, and the server itself, have the rest.
        for client in [network(2), network(2), ALICE, BOB, None, None] {
            queue.reserve(client).unwrap();
        }
        assert_eq!(queue.reserve(None), Err(QueueFull::AllPlaces));
        queue.release(network(1));
        queue.reserve(network(1)).unwrap();
        queue.push(network(1), 7);
        assert_eq!(queue.pop(), Some(7));
        queue.reserve(network(1)).unwrap();
    }

    #[test]
    fn a_queue_of_one_place_is_not_shared() {
        let mut queue = FairQueue::<u32>::new(QueuePlaces::new(1, 0.0));
        queue.reserve(ALICE).unwrap();
        assert_eq!(queue.reserve(ALICE), Err(QueueFull::AllPlaces));
    }

    #[test]
    fn callers_with_credentials_leave_before_anonymous_ones() {
        let mut queue = FairQueue::new(QueuePlaces::new(8, 1.0));
        for (client, item) in [(network(1), 1), (ALICE, 2), (network(2), 3), (None, 4), (BOB, 5)] {
            queue.reserve(client).unwrap();
            queue.push(client, item);
        }
        assert_eq!(queue.iter().copied().collect::<Vec<_>>(), [2, 4, 5, 1, 3]);
        assert_eq!(queue.remove(4), Some(3));
        queue.retain(|item| *item != 4);
        assert_eq!((queue.known_len(), queue.len()), (2, 3));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [2, 5, 1]);
        // All places are free again.
        for _ in 0..8 {
            queue.reserve(ALICE).unwrap();
        }
    }

    #[tokio::test]
    async fn a_permit_goes_to_callers_with_credentials_first() {
        let semaphore = FairSemaphore::new(1, QueuePlaces::new(3, 1.0));
        let held = semaphore.acquire(network(1)).await.unwrap();
        let anonymous = queued(semaphore.admit(network(1)));
        let known = queued(semaphore.admit(ALICE));
        let gone = queued(semaphore.admit(BOB));
        assert!(matches!(semaphore.admit(ALICE), Err(QueueFull::AllPlaces)));
        // A request that gives up releases its place.
        drop(gone);
        drop(queued(semaphore.admit(ALICE)));
        drop(held);
        drop(known.permit().await);
        drop(anonymous.permit().await);
        drop(semaphore.acquire(None).await.unwrap());
    }

    #[tokio::test]
    async fn a_permit_that_was_sent_to_a_request_that_gave_up_is_not_lost() {
        let semaphore = FairSemaphore::new(1, QueuePlaces::new(4, 1.0));
        let held = semaphore.acquire(ALICE).await.unwrap();
        let wait = queued(semaphore.admit(ALICE));
        drop(held);
        // The permit is in its channel already.
        drop(wait);
        drop(semaphore.acquire(BOB).await.unwrap());
    }

    #[tokio::test]
    async fn a_semaphore_without_a_queue_still_has_its_permits() {
        let semaphore = FairSemaphore::new(0, QueuePlaces::new(0, 0.25));
        let only = semaphore.acquire(ALICE).await.unwrap();
        assert!(semaphore.admit(ALICE).is_err());
        drop(only);
        drop(semaphore.acquire(ALICE).await.unwrap());
    }
}
