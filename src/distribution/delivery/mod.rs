//! Deliveries: items on their way to where a channel sends them (contract
//! deliveries-1).
//!
//! [`Deliveries::trigger`] records the purchase and puts the delivery into the queue, which is in
//! the database. [`Deliveries::run`] sends what is due, tries again what failed for now, and gives
//! up what fails for good. One version of an item goes through a channel once: asking again tells
//! of the delivery that is there. What a killed process was sending is sent again.
//!
//! What is sent is what channel and item are at that moment, and the user must still be active
//! then (contract deliveries-8).

mod backoff;
mod channels;
mod collect;
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

/// How the queue works.
#[derive(Clone, Copy, Debug)]
pub struct DeliverySettings {
    /// Deliveries sent at a time: one a channel, and where there are several, not all of one
    /// organization.
    pub workers: usize,
    /// Deliveries of one organization that may wait.
    pub queue_max: usize,
    /// Time that one try may take besides what its bytes take at the slowest rate.
    pub timeout: Duration,
    /// Time after which a claim counts for nothing unless it is renewed.
    pub lease: Duration,
    /// When a delivery that failed is tried again.
    pub retry: RetryPolicy,
}

impl DeliverySettings {
    /// The settings of the section `delivery`.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let seconds = |count: u32| Duration::from_secs(u64::from(count));
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

/// What the queue works with.
pub struct DeliveryServices {
    /// Where files come from.
    pub media: Media,
    /// Who may have them.
    pub orders: Orders,
    /// Whose delivery it is.
    pub auth: Auth,
    /// Where files go.
    pub sender: ChannelSender,
    /// Says whether a mail may be sent.
    pub recipients: Recipients,
    /// The node that claims deliveries, and the clock that may say that one was tried for long enough.
    pub guard: ClusterGuard,
}

/// Deliveries; cheap to clone.
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
    /// Tests of channels under way.
    probes: ChannelProbes,
    /// Private keys that are being checked.
    openings: KeyOpenings,
    /// Wakes the worker when something came in.
    wake: Notify,
    /// Set when what is being sent is to be left alone.
    abandon: watch::Sender<bool>,
}

/// Why a try to send failed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AttemptFailure {
    /// A sentence for the owner of the channel and the operator, without secrets.
    text: String,
    /// Whether a later try may help.
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
            | ErrorKind::Overloaded
            | ErrorKind::Timeout
            | ErrorKind::Unavailable
            | ErrorKind::Internal => {
                if let Some(cause) = error.cause() {
                    tracing::warn!("a delivery has to wait: {text}: {cause}");
                }
                Self::temporary(text)
            }
        }
    }
}

/// Whose deliveries a caller sees: its own, and with the access level `admin` those of the whole
/// organization, as with orders (contract deliveries-13).
struct DeliveryVisibility {
    user: UserId,
    organization: Option<OrganizationId>,
}

impl DeliveryVisibility {
    fn of(principal: &Principal) -> Self {
        let user = principal.user();
        let sees_all = user.access.admin && principal.allows(Permission::OrganizationOrders);
        Self { user: user.id, organization: user.organization.filter(|_| sees_all) }
    }

    fn is_visible(&self, delivery: &Delivery) -> bool {
        delivery.user == self.user || self.organization == Some(delivery.organization)
    }
}

impl Deliveries {
    /// The queue in the database of `services`; nothing is sent before [`Deliveries::run`].
    #[must_use]
    pub fn new(services: DeliveryServices, settings: DeliverySettings) -> Self {
        let DeliveryServices { media, orders, auth, sender, recipients, guard } = services;
        let (wake, abandon) = (Notify::new(), watch::Sender::new(false));
        let probes = ChannelProbes::new();
        let (openings, settings) = (KeyOpenings::default(), HotSwap::new(settings));
        Self {
            inner: Arc::new(DeliveriesInner {
                media,
                orders,
                auth,
                sender,
                recipients,
                guard,
                settings,
                probes,
                openings,
                wake,
                abandon,
            }),
        }
    }

    /// Works by other settings from now on; what is being sent goes on by those it began with.
    pub fn set_settings(&self, settings: DeliverySettings) {
        self.inner.settings.set(settings);
        self.inner.wake.notify_one();
    }

    fn settings(&self) -> DeliverySettings {
        *self.inner.settings.get()
    }

    fn db(&self) -> &Db {
        self.inner.orders.db()
    }

    /// What the channel `id` of `caller` selects of an item.
    ///
    /// Any channel of the caller that is active will do, whatever its method (contract
    /// deliveries-16). Fails with [`Kind::Unauthenticated`], and with
    /// [`Kind::NotFound`] for another's channel as for one that does not exist or is disabled.
    pub async fn formats_of_channel(
        &self,
        caller: MediaCaller<'_>,
        id: &ChannelId,
    ) -> Result<Vec<MediaFormat>> {
        let channel = self.channel(caller.require_principal()?, id).await?;
        formats(&channel)
    }

    /// The active channel `id` of `principal`. Others are not told of, administrators neither: what
    /// a channel sends, it sends in its owner's name.
    async fn channel(&self, principal: &Principal, id: &ChannelId) -> Result<Channel> {
        let is_own = principal.user().user_name == id.owner();
        let wanted = id.clone();
        let found = match is_own {
            true => self.db().read(move |tx| tx.find_channel(&wanted)).await?,
            false => None,
        };
        let none = || Error::new(ErrorKind::NotFound, format!("no channel {id}"));
        found.filter(|channel| channel.active).ok_or_else(none)
    }

    /// `size` of the deliveries that `principal` sees behind the `start` newest, the newest first;
    /// at most [`DELIVERIES_LISTED_MAX`].
    pub async fn list(
        &self,
        principal: &Principal,
        state: Option<DeliveryState>,
        start: usize,
        size: usize,
    ) -> Result<Vec<Delivery>> {
        let DeliveryVisibility { user: own, organization } = DeliveryVisibility::of(principal);
        let of = organization.map_or(DeliveriesOf::User(own), DeliveriesOf::Organization);
        let size = size.min(DELIVERIES_LISTED_MAX);
        Ok(self.db().read(move |tx| tx.list_deliveries(of, state, start, size)).await?)
    }

    /// The delivery `id`.
    ///
    /// Fails with [`ErrorKind::NotFound`] when `principal` sees no such delivery.
    pub async fn find(&self, principal: &Principal, id: Uuid) -> Result<Delivery> {
        let owner = DeliveryVisibility::of(principal);
        let found = self.db().read(move |tx: &ReadTx<'_>| tx.find_delivery(id)).await?;
        let none = || Error::new(ErrorKind::NotFound, format!("no delivery {id}"));
        found.filter(|delivery| owner.is_visible(delivery)).ok_or_else(none)
    }

    /// Removes some of the deliveries that came to an end long ago; how many.
    pub async fn sweep(&self, now: Timestamp) -> Result<usize> {
        let before = now - DELIVERIES_RETENTION;
        Ok(self.db().write(move |tx| tx.sweep_deliveries(before, SWEEP_ROWS)).await?)
    }
}

/// The formats of a channel, which were checked when it was written.
fn formats(channel: &Channel) -> Result<Vec<MediaFormat>> {
    let parse = |text: &String| MediaFormat::parse(text).map_err(Error::internal);
    channel.formats.iter().map(parse).collect()
}
