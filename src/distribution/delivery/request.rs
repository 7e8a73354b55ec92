//! Requests for deliveries: checks rights, records the purchase and queues the delivery.

use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use super::{Deliveries, formats};
use crate::access::auth::Principal;
use crate::access::orders::{Buyer, ItemFacts};
use crate::media::{CatalogEntry, FileSelection, MediaCaller};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::TRANSPORT_FILES_MAX;
use crate::storage::database::{EnqueueOutcome, NewDelivery};
use model::account::{Channel, ChannelId, ChannelMethod, Delivery, DeliveryState};
use model::media_url::MediaFormat;
use model::{ContentHash, CropSpec, ItemKey};

/// A request to send an item through a channel.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryRequest<'a> {
    /// The caller, with the agreement to pay with.
    pub caller: MediaCaller<'a>,
    pub item: &'a ItemKey,
    /// The editors' crop from the item's URI, in pixels of the Hires image.
    pub crop: Option<CropSpec>,
    pub channel: &'a ChannelId,
}

/// A request whose caller may see the item and owns the channel.
struct CheckedRequest<'a> {
    request: DeliveryRequest<'a>,
    buyer: Buyer<'a>,
    entry: Arc<CatalogEntry>,
    version: String,
    formats: Vec<MediaFormat>,
    /// The existing delivery of the same version.
    existing: Option<Delivery>,
}

impl CheckedRequest<'_> {
    fn item(&self) -> ItemFacts<'_> {
        ItemFacts { key: &self.entry.key, document: &self.entry.document }
    }

    /// Returns the existing delivery, unless it failed and may be requested again.
    fn in_flight(&self) -> Option<&Delivery> {
        self.existing.as_ref().filter(|existing| existing.state != DeliveryState::Failed)
    }
}

/// Returns the version key of a delivery. It changes with the item, the formats and the crop, so that each version
/// is a delivery of its own. It is known before anything is rendered.
fn version(entry: &CatalogEntry, channel: &Channel, crop: Option<CropSpec>) -> String {
    let stored = entry.stored.as_millisecond().to_string();
    let mut parts = vec![stored.as_str(), entry.document.text("version").unwrap_or_default()];
    parts.extend(channel.formats.iter().map(String::as_str));
    let crop = crop.map(|crop| crop.to_string());
    parts.extend(crop.as_deref());
    ContentHash::new(parts.join("\0").as_bytes()).short()
}

fn overloaded() -> Error {
    Error::overloaded("deliveries", "Too many deliveries of the organization are waiting")
}

impl Deliveries {
    /// Records the purchase for `request`, then queues its delivery. Returns the delivery and whether it was
    /// queued. Idempotent: an existing delivery is returned unchanged without a purchase, although the agreements
    /// must still allow it. A failed delivery is queued again.
    ///
    /// Fails
    /// - with [`ErrorKind::Unauthenticated`];
    /// - with [`ErrorKind::NotFound`] for an item that the caller may not see or that has none of the channel's
    ///   formats, and for a channel that the caller does not own;
    /// - with [`ErrorKind::InvalidArgument`] for a channel of the method `download`, and for more files than one
    ///   delivery may have;
    /// - like a purchase;
    /// - with [`ErrorKind::Overloaded`], before anything is purchased, if too many deliveries of the organization
    ///   are queued.
    pub async fn trigger(&self, request: DeliveryRequest<'_>) -> Result<(Delivery, bool)> {
        let checked = self.check(request).await?;
        // A repeated request is idempotent, but the agreements may have ended since the first request.
        if let Some(existing) = checked.in_flight() {
            self.check_agreements(&checked).await?;
            return Ok((existing.clone(), false));
        }
        let Buyer { principal, agr, now } = checked.buyer;
        principal.require_write()?;
        self.check_queue(principal).await?;
        // Comes before the purchase, so that an item without any of the formats costs nothing (contract
        // deliveries-6).
        self.check_files(&checked).await?;
        // Comes before queueing: if queueing fails, the purchase still covers the repeated request.
        self.inner.services.orders.purchase(checked.buyer, checked.item()).await?;
        let new = NewDelivery {
            id: Uuid::now_v7(),
            user: principal.user().id,
            organization: principal.organization()?,
            channel: request.channel.clone(),
            item: request.item.clone(),
            crop: request.crop,
            version: checked.version,
            agreement: agr,
        };
        let max = self.settings().queue_max;
        match self.db().write(move |tx| tx.queue_delivery(&new, max, now)).await? {
            EnqueueOutcome::Queued(delivery) => {
                self.inner.wake.notify_one();
                Ok((delivery, true))
            }
            // Concurrent requests queued this version, or filled the queue, after the checks above.
            EnqueueOutcome::Known(delivery) => Ok((delivery, false)),
            EnqueueOutcome::Full => Err(overloaded()),
        }
    }

    /// Computes the response of [`Deliveries::trigger`] without writing anything. Returns the delivery, if it
    /// exists, and whether a delivery would be queued. Fails like [`Deliveries::trigger`] (contract deliveries-3).
    pub async fn dry_run(&self, request: DeliveryRequest<'_>) -> Result<(Option<Delivery>, bool)> {
        let checked = self.check(request).await?;
        let is_new = checked.in_flight().is_none();
        // In the order of `trigger`, so that the first failure is the same.
        if is_new {
            checked.buyer.principal.require_write()?;
            self.check_queue(checked.buyer.principal).await?;
            self.check_files(&checked).await?;
        }
        self.check_agreements(&checked).await?;
        Ok((checked.existing, is_new))
    }

    /// Fails if too many deliveries of the organization are queued.
    async fn check_queue(&self, principal: &Principal) -> Result<()> {
        // A user without an organization has no agreement either, which the purchase reports.
        let Some(organization) = principal.user().organization else { return Ok(()) };
        let max = self.settings().queue_max;
        if self.db().read(move |tx| tx.is_queue_full(organization, max)).await? {
            return Err(overloaded());
        }
        Ok(())
    }

    /// Fails like the purchase for the delivery.
    async fn check_agreements(&self, checked: &CheckedRequest<'_>) -> Result<()> {
        let checking = self.inner.services.orders.check(checked.buyer, checked.item());
        checking.await?.require_delivery()
    }

    /// Queues the ended delivery `id` again, without a purchase. Returns the delivery and whether it was queued. A
    /// delivery that is queued or in flight stays unchanged.
    ///
    /// Fails with [`ErrorKind::NotFound`] if it does not exist or `principal` may not see it, and with
    /// [`ErrorKind::Overloaded`] if too many deliveries of the organization are queued.
    pub async fn repeat(
        &self,
        principal: &Principal,
        id: Uuid,
        now: Timestamp,
    ) -> Result<(Delivery, bool)> {
        let existing = self.find(principal, id).await?;
        let ended = match existing.state {
            DeliveryState::Queued | DeliveryState::Sending => return Ok((existing, false)),
            ended @ (DeliveryState::Delivered | DeliveryState::Failed) => ended,
        };
        let max = self.settings().queue_max;
        let organization = existing.organization;
        let queueing = self.db().write(move |tx| {
            // Checked in the transaction that queues, or concurrent requests could exceed the limit.
            if tx.is_queue_full(organization, max)? {
                return Ok(None);
            }
            tx.requeue_delivery(id, ended, now).map(Some)
        });
        let queued = queueing.await?.ok_or_else(overloaded)?;
        if queued {
            self.inner.wake.notify_one();
        }
        Ok((self.find(principal, id).await?, queued))
    }

    /// Checks before the purchase that the item has files to send.
    async fn check_files(&self, checked: &CheckedRequest<'_>) -> Result<()> {
        let DeliveryRequest { caller, item, crop, channel } = checked.request;
        let selection = FileSelection::Formats(&checked.formats, crop);
        match self.inner.services.media.count_files(item, selection, caller).await {
            Ok(1..=TRANSPORT_FILES_MAX) => Ok(()),
            Ok(0) => Err(no_files(item)),
            Ok(count) => {
                let message = format!(
                    "{channel} would send {count} files of {item}, at most {TRANSPORT_FILES_MAX}"
                );
                Err(Error::invalid("query", "channel", "maxItems", message))
            }
            // The caller may see the item, so this means that the item has none of the files.
            Err(error) if error.kind() == ErrorKind::NotFound => Err(no_files(item)),
            Err(other) => Err(other),
        }
    }

    async fn check<'a>(&self, request: DeliveryRequest<'a>) -> Result<CheckedRequest<'a>> {
        let DeliveryRequest { caller, item, crop, channel: id } = request;
        let buyer = caller.buyer()?;
        let channel = self.channel(buyer.principal, id).await?;
        if channel.method == ChannelMethod::Download {
            let message = format!(
                "{id} is of the method download, which selects the contents of the item's .zip"
            );
            return Err(Error::invalid("query", "channel", "enum", message));
        }
        let entry = self.inner.services.media.item(item, Some(buyer.principal), buyer.now).await?;
        let version = version(&entry, &channel, crop);
        let channel_id = id.clone();
        let key = item.clone();
        let own_version = version.clone();
        let existing =
            self.db().read(move |tx| tx.find_delivery_of(&channel_id, &key, &own_version)).await?;
        let formats = formats(&channel)?;
        Ok(CheckedRequest { request, buyer, entry, version, formats, existing })
    }
}

fn no_files(item: &ItemKey) -> Error {
    Error::new(ErrorKind::NotFound, format!("{item} has none of the channel's formats"))
}
