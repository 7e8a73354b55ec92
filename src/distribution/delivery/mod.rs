//! Deliveries: sends items to the destinations of channels (contract deliveries-1).
//!
//! [`Deliveries::trigger`] records the purchase and queues the delivery in the database. [`Deliveries::run`]
//! sends deliveries that are due, retries temporary failures with exponential backoff, and gives up permanent
//! ones. A trigger is idempotent: one version of an item is sent through a channel once, and a repeated
//! request returns the existing delivery. A delivery that was in flight when the process was killed is sent
//! again.
//!
//! Channel, item and rights are read at the time of sending, and the user must still be active then (contract
//! deliveries-8).

mod backoff;
mod channels;
mod collect;
mod for_operators;
pub mod json;
mod key_opening;
mod mails;
mod merge;
mod probe;
mod request;
mod send;
mod worker;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

pub use channels::{ChannelDraft, ChannelView};
pub use for_operators::ListedDelivery;
pub use probe::ProbeResult;
pub use request::DeliveryRequest;
pub use send::ChannelSender;

use crate::access::auth::{Auth, Principal};
use crate::access::orders::Orders;
use crate::cluster::guard::ClusterGuard;
use crate::distribution::recipients::Recipients;
use crate::media::Media;
use crate::media::MediaCaller;
use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::limits::{DELIVERIES_LISTED_MAX, DELIVERIES_RETENTION, SWEEP_ROWS};
use crate::storage::database::{Db, DeliveriesOf, ReadTx};
use key_opening::KeyOpenings;
use model::RetryPolicy;
use model::account::{
    Channel, ChannelId, Delivery, DeliveryState, OrganizationId, Permission, UserId,
};
use model::limits::DELIVERY_WAIT_MAX;
use model::media_url::MediaFormat;
use probe::ChannelProbes;

/// Limits and timings of the delivery queue.
#[derive(Clone, Copy, Debug)]
pub struct DeliverySettings {
    /// Deliveries sent at a time: at most one per channel, and with several workers, one is always left for
    /// other organizations.
    pub workers: usize,
    /// Maximum number of queued deliveries per organization.
    pub queue_max: usize,
    /// Timeout of one attempt, to which the transfer time of its bytes at the slowest accepted rate is added.
    pub timeout: Duration,
    /// Time after which a claim expires unless it is renewed.
    pub lease: Duration,
    /// Backoff and deadline for retries of failed deliveries.
    pub retry: RetryPolicy,
}

impl DeliverySettings {
    /// Reads the settings of the section `delivery`.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        let delivery = &config.delivery;
        Self {
            workers: delivery.workers,
            queue_max: delivery.queue_max,
            timeout: seconds(delivery.timeout_s),
            lease: seconds(delivery.lease_s),
            retry: RetryPolicy {
                first: Duration::from_millis(u64::from(delivery.retry_first_ms)),
                longest: DELIVERY_WAIT_MAX,
                deadline: seconds(delivery.retry_hours) * 3600,
            },
        }
    }
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(u64::from(count))
}

/// The components that the delivery queue depends on.
pub struct DeliveryServices {
    /// Renders and reads the files.
    pub media: Media,
    /// Checks agreements and records purchases.
    pub orders: Orders,
    /// Looks up the user of a delivery.
    pub auth: Auth,
    /// Sends files through channels.
    pub sender: ChannelSender,
    /// Decides whether a mail may be sent.
    pub recipients: Recipients,
    /// The node that claims deliveries, and the clock guard that decides whether a retry deadline counts.
    pub guard: ClusterGuard,
}

/// The delivery queue; cheap to clone.
#[derive(Clone)]
pub struct Deliveries {
    inner: Arc<DeliveriesInner>,
}

struct DeliveriesInner {
    media: Media,
    orders: Orders,
    auth: Auth,
    sender: ChannelSender,
    recipients: Recipients,
    guard: ClusterGuard,
    settings: HotSwap<DeliverySettings>,
    /// Channel tests in progress.
    probes: ChannelProbes,
    /// Private keys that are being unlocked.
    openings: KeyOpenings,
    /// Wakes the worker when a delivery is queued.
    wake: Notify,
    /// Set at shutdown, when deliveries in flight are released.
    abandon: watch::Sender<bool>,
}

/// Why an attempt to send failed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AttemptFailure {
    /// A sentence for the owner of the channel and the operator, without secrets.
    text: String,
    /// Whether a retry may succeed.
    temporary: bool,
}

impl AttemptFailure {
    fn permanent(text: impl Into<String>) -> Self {
        Self { text: text.into(), temporary: false }
    }

    fn temporary(text: impl Into<String>) -> Self {
        Self { text: text.into(), temporary: true }
    }
}

impl From<Error> for AttemptFailure {
    fn from(error: Error) -> Self {
        let text = error.message();
        match error.kind() {
            ErrorKind::InvalidArgument
            | ErrorKind::Unauthenticated
            | ErrorKind::Forbidden
            | ErrorKind::NotFound
            | ErrorKind::Unsupported
            | ErrorKind::TooLarge => Self::permanent(text),
            ErrorKind::Conflict
            | ErrorKind::Stale
            | ErrorKind::Overloaded
            | ErrorKind::Timeout
            | ErrorKind::Unavailable
            | ErrorKind::Internal => {
                // The owner sees only the text; the cause is for the operator.
                if let Some(cause) = error.cause() {
                    tracing::warn!("delivery attempt failed, will retry: {text}: {cause}");
                }
                Self::temporary(text)
            }
        }
    }
}

/// The deliveries that a caller sees: its own, and with the access level `admin` those of the whole
/// organization, as with orders (contract deliveries-13).
struct DeliveryVisibility {
    user: UserId,
    organization: Option<OrganizationId>,
}

impl DeliveryVisibility {
    fn new(principal: &Principal) -> Self {
        let user = principal.user();
        // Both are needed: the access level is the user's, the permission that of the credentials
        // in use.
        let sees_all = user.access.admin && principal.allows(Permission::OrganizationOrders);
        Self { user: user.id, organization: user.organization.filter(|_| sees_all) }
    }

    fn is_visible(&self, delivery: &Delivery) -> bool {
        delivery.user == self.user || self.organization == Some(delivery.organization)
    }
}

impl Deliveries {
    /// Creates the queue over the database of `services`; nothing is sent before [`Deliveries::run`].
    #[must_use]
    pub fn new(services: DeliveryServices, settings: DeliverySettings) -> Self {
        let DeliveryServices { media, orders, auth, sender, recipients, guard } = services;
        Self {
            inner: Arc::new(DeliveriesInner {
                media,
                orders,
                auth,
                sender,
                recipients,
                guard,
                settings: HotSwap::new(settings),
                probes: ChannelProbes::new(),
                openings: KeyOpenings::default(),
                wake: Notify::new(),
                abandon: watch::Sender::new(false),
            }),
        }
    }

    /// Replaces the settings; deliveries in flight keep the settings that they started with.
    pub fn set_settings(&self, settings: DeliverySettings) {
        self.inner.settings.set(settings);
        // With more workers, waiting deliveries start now and not at the next poll.
        self.inner.wake.notify_one();
    }

    fn settings(&self) -> DeliverySettings {
        *self.inner.settings.get()
    }

    fn db(&self) -> &Db {
        self.inner.orders.db()
    }

    /// Returns the formats that the channel `id` of `caller` selects from an item.
    ///
    /// Accepts any active channel of the caller, of any method (contract deliveries-16). Fails with
    /// [`ErrorKind::Unauthenticated`], and with [`ErrorKind::NotFound`] for another user's channel as for one
    /// that does not exist or is disabled.
    pub async fn formats_of_channel(
        &self,
        caller: MediaCaller<'_>,
        id: &ChannelId,
    ) -> Result<Vec<MediaFormat>> {
        let channel = self.channel(caller.require_principal()?, id).await?;
        formats(&channel)
    }

    /// Loads the active channel `id` of `principal`. Other users' channels are not found, not even by
    /// administrators: a channel sends in its owner's name.
    async fn channel(&self, principal: &Principal, id: &ChannelId) -> Result<Channel> {
        let is_own = principal.user().user_name == id.owner();
        let channel_id = id.clone();
        let found = if is_own {
            self.db().read(move |tx| tx.find_channel(&channel_id)).await?
        } else {
            None
        };
        found
            .filter(|channel| channel.active)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no channel {id}")))
    }

    /// Lists one page of the deliveries that `principal` sees, newest first: skips `start` and returns
    /// `size`, at most [`DELIVERIES_LISTED_MAX`].
    pub async fn list(
        &self,
        principal: &Principal,
        state: Option<DeliveryState>,
        start: usize,
        size: usize,
    ) -> Result<Vec<Delivery>> {
        let DeliveryVisibility { user: own, organization } = DeliveryVisibility::new(principal);
        let of = organization.map_or(DeliveriesOf::User(own), DeliveriesOf::Organization);
        let size = size.min(DELIVERIES_LISTED_MAX);
        Ok(self.db().read(move |tx| tx.list_deliveries(of, state, start, size)).await?)
    }

    /// Loads the delivery `id`.
    ///
    /// Fails with [`ErrorKind::NotFound`] when it does not exist or `principal` may not see it.
    pub async fn find(&self, principal: &Principal, id: Uuid) -> Result<Delivery> {
        let owner = DeliveryVisibility::new(principal);
        let found = self.db().read(move |tx: &ReadTx<'_>| tx.find_delivery(id)).await?;
        // A delivery of another user answers like a missing one, so that ids cannot be probed.
        found
            .filter(|delivery| owner.is_visible(delivery))
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no delivery {id}")))
    }

    /// Removes a batch of deliveries that ended before the retention period; returns how many.
    pub async fn sweep(&self, now: Timestamp) -> Result<usize> {
        let before = now - DELIVERIES_RETENTION;
        Ok(self.db().write(move |tx| tx.sweep_deliveries(before, SWEEP_ROWS)).await?)
    }
}

/// Parses the formats of a channel, which were validated when it was written.
fn formats(channel: &Channel) -> Result<Vec<MediaFormat>> {
    channel.formats.iter().map(|text| MediaFormat::parse(text).map_err(Error::internal)).collect()
}
