//! A request for a delivery: rights, purchase, place in the queue.

use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use super::{Deliveries, formats};
use crate::account::{Channel, ChannelId, ChannelMethod, Delivery, DeliveryState};
use crate::auth::Principal;
use crate::db::{Enqueued, NewDelivery, ReadTx};
use crate::error::{Error, Kind, Result};
use crate::limits::OUTBOUND_FILES_MAX;
use crate::media::Caller;
use crate::media::Entry;
use crate::media::Wanted;
use crate::media::path::Format;
use crate::orders::ItemFacts;
use crate::types::{Hash, ItemKey};

/// Who wants what sent through which channel.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Who asks, with the agreement that is to pay.
    pub caller: Caller<'a>,
    /// The item.
    pub item: &'a ItemKey,
    /// The channel.
    pub channel: &'a ChannelId,
}

/// A request whose caller sees the item and has the channel.
struct Checked<'a> {
    principal: &'a Principal,
    entry: Arc<Entry>,
    version: String,
    /// What the channel sends of items.
    formats: Vec<Format>,
    /// The delivery that is there already.
    known: Option<Delivery>,
}

impl Checked<'_> {
    fn item(&self) -> ItemFacts<'_> {
        ItemFacts { key: &self.entry.key, document: &self.entry.document }
    }

    /// The delivery that is there, unless it failed and so may be asked for again.
    fn under_way(&self) -> Option<&Delivery> {
        self.known.as_ref().filter(|known| known.state != DeliveryState::Failed)
    }
}

/// What is sent: another version of the item, or other formats, are another delivery. It is known
/// before anything is rendered.
fn version(entry: &Entry, channel: &Channel) -> String {
    let stored = entry.stored.as_millisecond().to_string();
    let mut parts = vec![stored.as_str(), entry.document.text("version").unwrap_or_default()];
    parts.extend(channel.formats.iter().map(String::as_str));
    Hash::of(parts.join("\0").as_bytes()).short()
}

fn overloaded() -> Error {
    Error::overloaded("deliveries", "Too many deliveries of the organization wait")
}

impl Deliveries {
    /// Queues the delivery that `request` asks for, and records its purchase first. One that is
    /// there already is left as it is, and nothing is bought; one that failed is queued again.
    ///
    /// Fails with [`Kind::Unauthenticated`]; with [`Kind::NotFound`] for an item that the caller
    /// does not see or that has none of the channel's formats, and for a channel that it does not
    /// have; with [`Kind::InvalidArgument`] for one of the method `download` and for more files
    /// than one delivery takes; as a purchase does; and with [`Kind::Overloaded`], before
    /// anything is bought, when too many deliveries of the organization wait.
    pub async fn trigger(&self, request: Request<'_>, now: Timestamp) -> Result<Delivery> {
        let checked = self.check(request, now).await?;
        if let Some(known) = checked.under_way() {
            return Ok(known.clone());
        }
        let Request { caller: Caller { agr, .. }, item, channel } = request;
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
            version: checked.version,
            agreement: agr,
        };
        match self.db().write(move |tx| tx.queue_delivery(&new, max, now)).await? {
            Enqueued::Queued(delivery) => {
                self.inner.wake.notify_one();
                Ok(delivery)
            }
            Enqueued::Known(delivery) => Ok(delivery),
            Enqueued::Full => Err(overloaded()),
        }
    }

    /// Decides what [`Deliveries::trigger`] would answer and writes nothing: the delivery, if it
    /// is there already.
    pub async fn look(&self, request: Request<'_>, now: Timestamp) -> Result<Option<Delivery>> {
        let checked = self.check(request, now).await?;
        if checked.under_way().is_none() {
            self.check_files(request, &checked, now).await?;
            let (item, agr) = (checked.item(), request.caller.agr);
            self.inner.orders.check(checked.principal, item, agr, now).await?.granted()?;
        }
        Ok(checked.known)
    }

    /// Looks whether there is something to send, before it is paid for.
    async fn check_files(
        &self,
        Request { caller, item, channel }: Request<'_>,
        checked: &Checked<'_>,
        now: Timestamp,
    ) -> Result<()> {
        let wanted = Wanted::Formats(&checked.formats);
        let none = || format!("{item} has none of the channel's formats");
        match self.inner.media.count_wanted(item, wanted, caller, now).await {
            Ok(1..=OUTBOUND_FILES_MAX) => Ok(()),
            Ok(0) => Err(Error::new(Kind::NotFound, none())),
            Ok(count) => {
                let message = format!(
                    "{channel} would send {count} files of {item}, at most {OUTBOUND_FILES_MAX}"
                );
                Err(Error::invalid("query", "channel", "maxItems", message))
            }
            Err(error) if error.kind() == Kind::NotFound => {
                Err(Error::new(Kind::NotFound, none()))
            }
            Err(other) => Err(other),
        }
    }

    async fn check<'a>(&self, request: Request<'a>, now: Timestamp) -> Result<Checked<'a>> {
        let Request { caller, item, channel: id } = request;
        let principal = caller.known()?;
        let channel = self.channel(principal, id).await?;
        if channel.method == ChannelMethod::Download {
            let message = format!(
                "{id} is of the method download, which selects the contents of the item's .zip"
            );
            return Err(Error::invalid("query", "channel", "enum", message));
        }
        let entry = self.inner.media.item(item, Some(principal), now).await?;
        let version = version(&entry, &channel);
        let (wanted, key, own) = (id.clone(), item.clone(), version.clone());
        let find = move |tx: &ReadTx<'_>| tx.find_delivery_of(&wanted, &key, &own);
        let known = self.db().read(find).await?;
        let formats = formats(&channel)?;
        Ok(Checked { principal, entry, version, formats, known })
    }
}
