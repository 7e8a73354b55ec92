//! A request for a delivery: rights, purchase, place in the queue.

use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use super::{Deliveries, formats};
use crate::access::auth::Principal;
use crate::access::orders::ItemFacts;
use crate::media::CatalogEntry;
use crate::media::FileSelection;
use crate::media::MediaCaller;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::TRANSPORT_FILES_MAX;
use crate::storage::database::{EnqueueOutcome, NewDelivery, ReadTx, WriteTx};
use model::account::{Channel, ChannelId, ChannelMethod, Delivery, DeliveryState};
use model::media_url::MediaFormat;
use model::{ContentHash, CropSpec, ItemKey};

/// Who wants what sent through which channel.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryRequest<'a> {
    /// Who asks, with the agreement that is to pay.
    pub caller: MediaCaller<'a>,
    /// The item.
    pub item: &'a ItemKey,
    /// The editors' crop on its uri, in pixels of the hires image.
    pub crop: Option<CropSpec>,
    /// The channel.
    pub channel: &'a ChannelId,
}

/// A request whose caller sees the item and has the channel.
struct CheckedRequest<'a> {
    principal: &'a Principal,
    entry: Arc<CatalogEntry>,
    version: String,
    /// What the channel sends of items.
    formats: Vec<MediaFormat>,
    /// The delivery that is there already.
    known: Option<Delivery>,
}

impl CheckedRequest<'_> {
    fn item(&self) -> ItemFacts<'_> {
        ItemFacts { key: &self.entry.key, document: &self.entry.document }
    }

    /// The delivery that is there, unless it failed and so may be asked for again.
    fn in_flight(&self) -> Option<&Delivery> {
        self.known.as_ref().filter(|known| known.state != DeliveryState::Failed)
    }
}

/// What is sent: another version of the item, or other formats, are another delivery. It is known
/// before anything is rendered.
fn version(entry: &CatalogEntry, channel: &Channel, crop: Option<CropSpec>) -> String {
    let stored = entry.stored.as_millisecond().to_string();
    let mut parts = vec![stored.as_str(), entry.document.text("version").unwrap_or_default()];
    parts.extend(channel.formats.iter().map(String::as_str));
    let crop = crop.map(|crop| crop.to_string());
    parts.extend(crop.as_deref());
    ContentHash::of(parts.join("\0").as_bytes()).short()
}

fn overloaded() -> Error {
    Error::overloaded("deliveries", "Too many deliveries of the organization wait")
}

impl Deliveries {
    /// Queues the delivery that `request` asks for, and records its purchase first; with whether it was
    /// queued. One that is there already is left as it is, and nothing is bought, but the agreements must
    /// still allow it; one that failed is queued again.
    ///
    /// Fails with [`ErrorKind::Unauthenticated`]; with [`ErrorKind::NotFound`] for an item that the caller
    /// does not see or that has none of the channel's formats, and for a channel that it does not
    /// have; with [`ErrorKind::InvalidArgument`] for one of the method `download` and for more files
    /// than one delivery takes; as a purchase does; and with [`ErrorKind::Overloaded`], before
    /// anything is bought, when too many deliveries of the organization wait.
    pub async fn trigger(
        &self,
        request: DeliveryRequest<'_>,
        now: Timestamp,
    ) -> Result<(Delivery, bool)> {
        let checked = self.check(request, now).await?;
        if let Some(known) = checked.in_flight() {
            self.check_agreements(request, &checked, now).await?;
            return Ok((known.clone(), false));
        }
        let DeliveryRequest { caller: MediaCaller { agr, .. }, item, crop, channel } = request;
        let max = self.settings().queue_max;
        // Somebody without an organization has no agreement either, and is told so.
        if let Some(organization) = checked.principal.user().organization
            && self.db().read(move |tx| tx.is_queue_full(organization, max)).await?
        {
            return Err(overloaded());
        }
        self.check_files(request, &checked, now).await?;
        self.inner.orders.purchase(checked.principal, checked.item(), agr, now).await?;
        let organization = checked.principal.organization()?;
        let new = NewDelivery {
            id: Uuid::now_v7(),
            user: checked.principal.user().id,
            organization,
            channel: channel.clone(),
            item: item.clone(),
            crop,
            version: checked.version,
            agreement: agr,
        };
        match self.db().write(move |tx| tx.queue_delivery(&new, max, now)).await? {
            EnqueueOutcome::Queued(delivery) => {
                self.inner.wake.notify_one();
                Ok((delivery, true))
            }
            EnqueueOutcome::Known(delivery) => Ok((delivery, false)),
            EnqueueOutcome::Full => Err(overloaded()),
        }
    }

    /// Decides what [`Deliveries::trigger`] would answer and writes nothing: the delivery, if it
    /// is there already, with whether it would be queued.
    pub async fn dry_run(
        &self,
        request: DeliveryRequest<'_>,
        now: Timestamp,
    ) -> Result<(Option<Delivery>, bool)> {
        let checked = self.check(request, now).await?;
        let is_new = checked.in_flight().is_none();
        if is_new {
            self.check_files(request, &checked, now).await?;
        }
        self.check_agreements(request, &checked, now).await?;
        Ok((checked.known, is_new))
    }

    /// Fails as the purchase of what is delivered would.
    async fn check_agreements(
        &self,
        DeliveryRequest { caller, .. }: DeliveryRequest<'_>,
        checked: &CheckedRequest<'_>,
        now: Timestamp,
    ) -> Result<()> {
        let checking = self.inner.orders.check(checked.principal, checked.item(), caller.agr, now);
        checking.await?.require_delivery()?;
        Ok(())
    }

    /// Sends the delivery `id`, which has come to an end, once more; nothing is bought. Gives the delivery
    /// with whether it was queued: one that is under way goes on.
    ///
    /// Fails with [`ErrorKind::NotFound`] when `principal` sees no such delivery, and with
    /// [`ErrorKind::Overloaded`] when too many deliveries of the organization wait.
    pub async fn repeat(
        &self,
        principal: &Principal,
        id: Uuid,
        now: Timestamp,
    ) -> Result<(Delivery, bool)> {
        let known = self.find(principal, id).await?;
        let ended = match known.state {
            DeliveryState::Queued | DeliveryState::Sending => return Ok((known, false)),
            ended @ (DeliveryState::Delivered | DeliveryState::Failed) => ended,
        };
        let (max, organization) = (self.settings().queue_max, known.organization);
        let queued = move |tx: &WriteTx<'_>| match tx.as_read().is_queue_full(organization, max)? {
            true => Ok(None),
            false => tx.requeue_delivery(id, ended, now).map(Some),
        };
        let queued = self.db().write(queued).await?.ok_or_else(overloaded)?;
        if queued {
            self.inner.wake.notify_one();
        }
        Ok((self.find(principal, id).await?, queued))
    }

    /// Looks whether there is something to send, before it is paid for.
    async fn check_files(
        &self,
        DeliveryRequest { caller, item, crop, channel }: DeliveryRequest<'_>,
        checked: &CheckedRequest<'_>,
        now: Timestamp,
    ) -> Result<()> {
        let wanted = FileSelection::Formats(&checked.formats, crop);
        let none = || format!("{item} has none of the channel's formats");
        match self.inner.media.count_files(item, wanted, caller, now).await {
            Ok(1..=TRANSPORT_FILES_MAX) => Ok(()),
            Ok(0) => Err(Error::new(ErrorKind::NotFound, none())),
            Ok(count) => {
                let message = format!(
                    "{channel} would send {count} files of {item}, at most {TRANSPORT_FILES_MAX}"
                );
                Err(Error::invalid("query", "channel", "maxItems", message))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(Error::new(ErrorKind::NotFound, none()))
            }
            Err(other) => Err(other),
        }
    }

    async fn check<'a>(
        &self,
        request: DeliveryRequest<'a>,
        now: Timestamp,
    ) -> Result<CheckedRequest<'a>> {
        let DeliveryRequest { caller, item, crop, channel: id } = request;
        let principal = caller.require_principal()?;
        let channel = self.channel(principal, id).await?;
        if channel.method == ChannelMethod::Download {
            let message = format!(
                "{id} is of the method download, which selects the contents of the item's .zip"
            );
            return Err(Error::invalid("query", "channel", "enum", message));
        }
        let entry = self.inner.media.item(item, Some(principal), now).await?;
        let version = version(&entry, &channel, crop);
        let (wanted, key, own) = (id.clone(), item.clone(), version.clone());
        let find = move |tx: &ReadTx<'_>| tx.find_delivery_of(&wanted, &key, &own);
        let known = self.db().read(find).await?;
        let formats = formats(&channel)?;
        Ok(CheckedRequest { principal, entry, version, formats, known })
    }
}
