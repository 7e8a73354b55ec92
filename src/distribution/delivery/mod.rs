//! Deliveries: sends items to the destinations of channels (contract deliveries-1).
//!
//! [`Deliveries::trigger`] records the purchase and queues the delivery in the database. [`Deliveries::run`] sends
//! due deliveries, retries temporary failures with exponential backoff, and gives up after permanent ones. A
//! trigger is idempotent: one version of an item is sent through a channel once, and a repeated request returns
//! the existing delivery. A delivery that was in flight when the process was killed is sent again.
//!
//! Channel, item and rights are read at the time of sending, and the user must still be active then (contract
//! deliveries-8).

mod backoff;
mod channels;
mod collect;
mod for_operators;
mod key_opening;
mod mails;
mod merge;
mod probe;
mod request;
mod send;
pub mod view;
mod worker;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

pub use request::DeliveryRequest;
pub use send::{ChannelSender, mail_settings};

use crate::access::auth::{Auth, Principal};
use crate::access::orders::Orders;
use crate::cluster::guard::ClusterGuard;
use crate::distribution::recipients::Recipients;
use crate::media::{Media, MediaCaller};
use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::limits::{DELIVERIES_LISTED_MAX, SWEEP_ROWS};
use crate::storage::database::{Db, DeliveriesOf, ReadTx};
use crate::transport::SendError;
use key_opening::KeyOpenings;
use model::RetryPolicy;
use model::account::{
    Channel, ChannelId, Delivery, DeliveryState, OrganizationId, Permission, UserId,
};
use model::limits::DELIVERY_WAIT_MAX;
use model::media_url::MediaFormat;
use probe::ChannelProbes;

/// Retention of completed deliveries.
const DELIVERIES_RETENTION: Duration = Duration::from_secs(90 * 86_400);

/// Limits and timings of the delivery queue.
#[derive(Clone, Copy, Debug)]
pub struct DeliverySettings {
    /// The number of deliveries sent at a time: at most one per channel. With several workers, one is always
    /// reserved for other organizations.
    pub workers: usize,
    /// The maximum number of queued deliveries per organization.
    pub queue_max: usize,
    /// The timeout of one attempt, without the transfer time of its bytes at the slowest accepted rate, which is
    /// added.
    pub timeout: Duration,
    /// The time after which a claim expires unless it is renewed.
    pub lease: Duration,
    /// The backoff and the deadline for retries of failed deliveries.
    pub retry: RetryPolicy,
}

impl DeliverySettings {
    /// Reads the settings of the section `delivery`.
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
    services: DeliveryServices,
    settings: HotSwap<DeliverySettings>,
    /// The channel tests in progress.
    probes: ChannelProbes,
    /// The private keys that are being unlocked.
    openings: KeyOpenings,
    /// Wakes the worker when a delivery is queued.
    wake: Notify,
    /// Set at shutdown to release deliveries in flight.
    abandon: watch::Sender<bool>,
}

/// The failure of an attempt to send.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AttemptFailure {
    /// A sentence for the owner of the channel and the operator, without secrets.
    text: String,
    /// True if a retry may succeed.
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
        if matches!(
            error.kind(),
            ErrorKind::InvalidArgument
                | ErrorKind::Unauthenticated
                | ErrorKind::Forbidden
                | ErrorKind::NotFound
                | ErrorKind::Unsupported
                | ErrorKind::TooLarge
        ) {
            return Self::permanent(text);
        }
        // The owner sees only the text; the cause is for the operator.
        if let Some(cause) = error.cause() {
            tracing::warn!("delivery attempt failed, will retry: {text}: {cause}");
        }
        Self::temporary(text)
    }
}

impl From<SendError> for AttemptFailure {
    fn from(error: SendError) -> Self {
        Self { text: error.to_string(), temporary: error.is_temporary() }
    }
}

/// The deliveries that a caller may see: its own, and with the access level `admin` all of the organization, as
/// with orders (contract deliveries-13).
struct DeliveryVisibility {
    user: UserId,
    organization: Option<OrganizationId>,
}

impl DeliveryVisibility {
    fn new(principal: &Principal) -> Self {
        let user = principal.user();
        // Both are needed: the access level belongs to the user, the permission to the credentials in use.
        let sees_all = user.access.admin && principal.allows(Permission::OrganizationOrders);
        Self { user: user.id, organization: user.organization.filter(|_| sees_all) }
    }

    fn is_visible(&self, delivery: &Delivery) -> bool {
        delivery.user == self.user || self.organization == Some(delivery.organization)
    }
}

impl Deliveries {
    /// Creates the queue over the database of `services`. Nothing is sent before [`Deliveries::run`].
    pub fn new(services: DeliveryServices, settings: DeliverySettings) -> Self {
        Self {
            inner: Arc::new(DeliveriesInner {
                services,
                settings: HotSwap::new(settings),
                probes: ChannelProbes::new(),
                openings: KeyOpenings::default(),
                wake: Notify::new(),
                abandon: watch::Sender::new(false),
            }),
        }
    }

    /// Replaces the settings. Deliveries in flight keep their settings.
    pub fn set_settings(&self, settings: DeliverySettings) {
        self.inner.settings.set(settings);
        // If there are more workers, waiting deliveries start now instead of at the next poll.
        self.inner.wake.notify_one();
    }

    fn settings(&self) -> DeliverySettings {
        *self.inner.settings.get()
    }

    fn db(&self) -> &Db {
        self.inner.services.orders.db()
    }

    /// Returns the formats that the channel `id` of `caller` selects of an item.
    ///
    /// Accepts any active channel of the caller, of any method (contract deliveries-16). Fails with
    /// [`ErrorKind::Unauthenticated`], and with [`ErrorKind::NotFound`] for a channel that does not exist, is
    /// disabled or belongs to a different user.
    pub async fn formats_of_channel(
        &self,
        caller: MediaCaller<'_>,
        id: &ChannelId,
    ) -> Result<Vec<MediaFormat>> {
        let channel = self.channel(caller.require_principal()?, id).await?;
        formats(&channel)
    }

    /// Loads the active channel `id` of `principal`. Other users' channels are not found, not even by
    /// administrators, because a channel sends in its owner's name.
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

    /// Lists one page of the deliveries that `principal` may see, newest first. Skips `start` deliveries and
    /// returns `size`, at most [`DELIVERIES_LISTED_MAX`].
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
    /// Fails with [`ErrorKind::NotFound`] if it does not exist or `principal` may not see it.
    pub async fn find(&self, principal: &Principal, id: Uuid) -> Result<Delivery> {
        let owner = DeliveryVisibility::new(principal);
        let found = self.db().read(move |tx: &ReadTx<'_>| tx.find_delivery(id)).await?;
        // The response for a different user's delivery is the same as for a missing one, so that ids cannot be
        // probed.
        found
            .filter(|delivery| owner.is_visible(delivery))
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no delivery {id}")))
    }

    /// Removes a batch of deliveries that ended before the retention period. Returns the number of removed
    /// deliveries.
    pub async fn sweep(&self, now: Timestamp) -> Result<usize> {
        let before = now - DELIVERIES_RETENTION;
        Ok(self.db().write(move |tx| tx.sweep_deliveries(before, SWEEP_ROWS)).await?)
    }
}

/// Parses the formats of a channel. They were validated when the channel was written.
fn formats(channel: &Channel) -> Result<Vec<MediaFormat>> {
    channel.formats.iter().map(|text| MediaFormat::parse(text).map_err(Error::internal)).collect()
}
