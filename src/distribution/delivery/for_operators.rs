//! Lists the deliveries of all users for operators, and queues failed deliveries again.

use std::collections::{BTreeMap, btree_map::Entry};

use jiff::Timestamp;
use uuid::Uuid;

use super::{Deliveries, view};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::DELIVERIES_LISTED_MAX;
use crate::storage::audit::{self, AuditAction, ObjectKind};
use crate::storage::database::DeliveriesOf;
use api::operation::OperatorDelivery;
use model::account::{Delivery, DeliveryState, OrganizationId};

/// Failed deliveries that one request queues again, the newest ones.
const DELIVERIES_RETRIED_MAX: usize = 1000;

impl Deliveries {
    /// Lists one page of the deliveries of all users, newest first. Skips `start` deliveries and returns `size`,
    /// at most [`DELIVERIES_LISTED_MAX`].
    pub async fn list_all(
        &self,
        state: Option<DeliveryState>,
        start: usize,
        size: usize,
    ) -> Result<Vec<OperatorDelivery>> {
        let size = size.min(DELIVERIES_LISTED_MAX);
        let links = self.inner.services.media.links().clone();
        let listing = self.db().read(move |tx| {
            // A page refers to few organizations, most of them several times.
            let mut names: BTreeMap<OrganizationId, Option<String>> = BTreeMap::new();
            let mut listed = Vec::new();
            for delivery in tx.list_deliveries(DeliveriesOf::Everybody, state, start, size)? {
                let id = delivery.organization;
                let organization_name = match names.entry(id) {
                    Entry::Occupied(known) => known.get().clone(),
                    Entry::Vacant(new) => {
                        new.insert(tx.find_organization(id)?.and_then(|found| found.name)).clone()
                    }
                };
                let delivery = view::delivery(&delivery, &links);
                listed.push(OperatorDelivery { delivery, organization: id.0, organization_name });
            }
            Ok(listed)
        });
        Ok(listing.await?)
    }

    /// Queues the failed delivery `id` again, as if it were new, and records this in the audit log. Nothing is
    /// purchased.
    ///
    /// Fails with [`ErrorKind::NotFound`] if it does not exist, and with [`ErrorKind::Conflict`] if it has not
    /// failed.
    pub async fn retry_failed(&self, id: Uuid, now: Timestamp) -> Result<Delivery> {
        let event =
            audit::event(AuditAction::DeliveryRetried).with_object(ObjectKind::Delivery, id);
        let requeueing = self.db().write(move |tx| {
            let is_queued = tx.requeue_delivery(id, DeliveryState::Failed, now)?;
            if is_queued {
                tx.write_audit(&event)?;
            }
            Ok((is_queued, tx.find_delivery(id)?))
        });
        let (is_queued, found) = requeueing.await?;
        let Some(delivery) = found else {
            return Err(Error::new(ErrorKind::NotFound, format!("no delivery {id}")));
        };
        if !is_queued {
            let state = delivery.state.as_str();
            let message =
                format!("The delivery is {state}; only a failed delivery can be retried");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        self.inner.wake.notify_one();
        Ok(delivery)
    }

    /// Queues the newest failed deliveries of all users again, at most [`DELIVERIES_RETRIED_MAX`], and records
    /// their number in the audit log. Returns the number.
    pub async fn retry_all_failed(&self, now: Timestamp) -> Result<usize> {
        let event = audit::event(AuditAction::DeliveryRetried);
        let requeueing = self.db().write(move |tx| {
            let count = tx.requeue_failed_deliveries(DELIVERIES_RETRIED_MAX, now)?;
            if count > 0 {
                tx.write_audit(&event.with_detail(format!("{count} deliveries")))?;
            }
            Ok(count)
        });
        let count = requeueing.await?;
        self.inner.wake.notify_one();
        Ok(count)
    }
}
