//! Stores the queue of deliveries: waiting, claimed and finished ones.
//!
//! A worker that sends a delivery holds a claim on it that ends at `next_ms` unless it is renewed, so that
//! the delivery is claimed again if the process is killed. Each claim has an id: a worker that lost its claim
//! can no longer record an outcome.
//!
//! Clocks of several machines may differ. Deliveries that a running node is sending stay with that node and
//! count as in flight, even if their claims seem to have ended. The clock decides only if the incarnation has
//! ended, and for the requesting incarnation itself, which may hold a claim without knowing it if an answer
//! of the database was lost. Before it claims more, it renews the claims of deliveries that it is sending or
//! whose outcome it has yet to record.
//!
//! A claim is an ordinary write, also on engines that claim messages concurrently: the number in flight per
//! channel and per organization is counted over all rows, and no other claim may run in the meantime.

use jiff::Timestamp;
use uuid::Uuid;

use super::{ReadTx, WriteTx, damaged, key_text, optional_time, parse, time};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::{DbError, DbResult};
use model::account::{AgreementId, ChannelId, Delivery, DeliveryState, OrganizationId, UserId};
use model::{CropSpec, ItemKey, ParameterError, token};

/// A delivery that a user requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// Its id if it is new. Ids sort by time.
    pub id: Uuid,
    pub user: UserId,
    /// The organization for which the user acts.
    pub organization: OrganizationId,
    /// A channel of the user.
    pub channel: ChannelId,
    pub item: ItemKey,
    /// The crop that the item's uri contained.
    pub crop: Option<CropSpec>,
    /// The version of the item's media to send.
    pub version: String,
    /// The agreement that the request names.
    pub agreement: Option<AgreementId>,
}

/// The outcome of a request for a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnqueueOutcome {
    /// It waits: it is new, or had failed and is queued again.
    Queued(Delivery),
    /// It already existed and is unchanged.
    Known(Delivery),
    /// The organization has too many waiting deliveries.
    Full,
}

/// The deliveries to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveriesOf {
    /// The deliveries of a user.
    User(UserId),
    /// The deliveries of all users of an organization.
    Organization(OrganizationId),
    /// All deliveries, for the operator.
    Everybody,
}

/// The outcome of an attempt to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The receiver has the item.
    Delivered,
    /// The attempt failed and is retried.
    Retry {
        /// Time of the next attempt.
        at: Timestamp,
        /// The reason that this attempt failed.
        error: String,
    },
    /// The delivery has failed for good.
    Failed {
        /// The reason that the last attempt failed.
        error: String,
    },
    /// The attempt was aborted because the service stops, and does not count.
    Released,
}

/// The state of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryBacklog {
    /// Due time of the first delivery that is not blocked by a different one.
    pub next: Option<Timestamp>,
    /// Number of waiting and in-flight deliveries.
    pub waiting: u32,
}

/// The terms of a claim: its time, its limit per organization and its incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimTerms {
    pub now: Timestamp,
    /// Maximum deliveries in flight per organization; at least 1.
    pub organization_max: usize,
    pub incarnation: Uuid,
}

/// Selects the deliveries in flight: claims that have not ended, and ended ones of other running
/// incarnations. `?1` is the time and `?3` the requesting incarnation. It is evaluated once and returns few
/// rows. The second part is only evaluated if such an incarnation exists.
const IN_FLIGHT: &str = "in_flight AS (
     SELECT user_id, channel, organization_id FROM deliveries
         WHERE next_ms > ?1 AND state = 'sending'
     UNION ALL SELECT user_id, channel, organization_id FROM deliveries
         WHERE EXISTS (SELECT 1 FROM nodes WHERE incarnation <> ?3)
             AND next_ms <= ?1 AND state = 'sending'
             AND incarnation IN (SELECT incarnation FROM nodes WHERE incarnation <> ?3))";
/// The condition for sending a delivery, besides being due. `?2` is the maximum in flight per organization. A
/// channel has one in flight at a time, so that a receiver that hangs blocks no other channel.
const NOT_BLOCKED: &str = "(user_id, channel) NOT IN (SELECT user_id, channel FROM in_flight)
     AND organization_id NOT IN (SELECT organization_id FROM in_flight
         GROUP BY organization_id HAVING count(*) >= ?2)";

/// The columns that [`read_delivery`] reads.
const COLUMNS: &str = "delivery_id, deliveries.user_id, deliveries.organization_id, user_name, \
     channel, media_type, item_id, version, agreement_id, state, attempts, next_ms, error, \
     deliveries.created_ms, queued_ms, updated_ms, delivered_ms, crop";
const FROM: &str = "deliveries JOIN users USING (user_id)";

fn read_delivery(row: &dyn ResultRow) -> DbResult<Delivery> {
    let id: String = row.get("delivery_id")?;
    let what = format!("delivery {id}");
    let channel = ChannelId::new(row.text("user_name")?, row.text("channel")?);
    let attempts: i64 = row.get("attempts")?;
    let crop: Option<String> = row.get("crop")?;
    Ok(Delivery {
        id: parse(&what, &id)?,
        user: row.get("user_id")?,
        organization: row.get("organization_id")?,
        channel: channel.map_err(|why| damaged(&what, &why))?,
        item: parse(&what, &key_text(row, "item_id")?)?,
        version: row.get("version")?,
        agreement: row.get("agreement_id")?,
        state: parse(&what, row.text("state")?)?,
        attempts: u32::try_from(attempts).map_err(|why| damaged(&what, &why))?,
        next_attempt: optional_time(&what, row.get("next_ms")?)?,
        error: row.get("error")?,
        created: time(&what, row.get("created_ms")?)?,
        queued: time(&what, row.get("queued_ms")?)?,
        updated: time(&what, row.get("updated_ms")?)?,
        delivered: optional_time(&what, row.get("delivered_ms")?)?,
        crop: crop.map(|text| read_crop(&text).map_err(|why| damaged(&what, &why))).transpose()?,
    })
}

fn read_crop(text: &str) -> Result<CropSpec, ParameterError> {
    // Stored as in a URI: `-crop_w…_h…_x…_y…`.
    let (_, parameters) = token::split_crop(text).unwrap_or_default();
    CropSpec::parse(parameters)
}

impl ReadTx<'_> {
    /// Finds the delivery with this id.
    pub fn find_delivery(&self, id: Uuid) -> DbResult<Option<Delivery>> {
        let sql = format!("SELECT {COLUMNS} FROM {FROM} WHERE delivery_id = ?1");
        self.tx.find(&sql, params![id], read_delivery)
    }

    /// Finds the delivery of the version `version` of `item` through `channel`.
    pub fn find_delivery_of(
        &self,
        channel: &ChannelId,
        item: &ItemKey,
        version: &str,
    ) -> DbResult<Option<Delivery>> {
        let ItemKey { media_type, id } = item;
        let values = params![channel.owner(), channel.name(), media_type, id, version];
        let sql = format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE user_name = ?1 AND channel = ?2
                 AND media_type = ?3 AND item_id = ?4 AND version = ?5"
        );
        self.tx.find(&sql, values, read_delivery)
    }

    /// Lists `size` deliveries after the `start` newest ones, newest first.
    pub fn list_deliveries(
        &self,
        of: DeliveriesOf,
        state: Option<DeliveryState>,
        start: usize,
        size: usize,
    ) -> DbResult<Vec<Delivery>> {
        // An owner has an index of its own and few deliveries, which are filtered by state. All deliveries
        // have an index by state.
        let any_or_same = "state = coalesce(?1, state)";
        let (owner, id, in_state) = match (of, state) {
            (DeliveriesOf::User(id), _) => ("deliveries.user_id = ?4", id.0, any_or_same),
            (DeliveriesOf::Organization(id), _) => {
                ("deliveries.organization_id = ?4", id.0, any_or_same)
            }
            (DeliveriesOf::Everybody, Some(_)) => ("?4 = 0", 0, "state = ?1"),
            (DeliveriesOf::Everybody, None) => ("?4 = 0", 0, any_or_same),
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE {owner} AND {in_state}
                 ORDER BY delivery_id DESC LIMIT ?2 OFFSET ?3"
        );
        self.tx.list(&sql, params![state, size, start, id], read_delivery)
    }

    /// Counts the deliveries of all users in a state, up to `max`.
    pub fn count_deliveries(&self, state: DeliveryState, max: usize) -> DbResult<usize> {
        let sql = "SELECT count(*) FROM
             (SELECT 1 FROM deliveries WHERE state = ?1 LIMIT ?2) AS counted";
        self.tx.count(sql, params![state, max])
    }

    /// Returns whether the organization has at least `max` deliveries waiting or in flight.
    pub fn is_queue_full(&self, organization: OrganizationId, max: usize) -> DbResult<bool> {
        // Counts no further than the limit, because a long queue must not slow down every trigger.
        let sql = "SELECT count(*) FROM (SELECT 1 FROM deliveries
             WHERE organization_id = ?1 AND next_ms IS NOT NULL LIMIT ?2) AS waiting";
        Ok(self.tx.count(sql, params![organization, max])? >= max)
    }

    /// Returns the state of the queue of all organizations, including deliveries in flight. `next` is the
    /// time at which [`WriteTx::claim_delivery`] would next find a delivery, so that blocked deliveries cause
    /// no polls.
    pub fn delivery_queue(&self, terms: ClaimTerms) -> DbResult<DeliveryBacklog> {
        let waiting = "SELECT count(*) FROM deliveries WHERE next_ms IS NOT NULL";
        let waiting = self.tx.load_value(waiting, params![])?;
        let sql = format!(
            "WITH {IN_FLIGHT} SELECT next_ms FROM deliveries
             WHERE next_ms IS NOT NULL AND {NOT_BLOCKED} ORDER BY next_ms LIMIT 1"
        );
        let values = params![terms.now, terms.organization_max, terms.incarnation];
        let next: Option<i64> = self.tx.find_value(&sql, values)?;
        // A damaged time must not stop the queue: a time that is too early counts as now, one that is too
        // late as never.
        let next = next.map(|ms| {
            let clamped = if ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
            time("the queue", ms).unwrap_or(clamped)
        });
        Ok(DeliveryBacklog { next, waiting })
    }
}

impl WriteTx<'_> {
    /// Queues a delivery unless it exists. A failed one is queued again. An organization may have at most
    /// `max` waiting deliveries.
    pub fn queue_delivery(
        &self,
        new: &NewDelivery,
        max: usize,
        now: Timestamp,
    ) -> DbResult<EnqueueOutcome> {
        let existing = self.find_delivery_of(&new.channel, &new.item, &new.version)?;
        match existing {
            // A repeated request is idempotent unless the delivery failed.
            Some(existing) if existing.state != DeliveryState::Failed => {
                Ok(EnqueueOutcome::Known(existing))
            }
            // The limit applies only to new entries: a full queue still returns a known delivery.
            _ if self.is_queue_full(new.organization, max)? => Ok(EnqueueOutcome::Full),
            Some(existing) => {
                // This trigger was checked under its own agreement, which replaces the first one
                // (contract deliveries-5).
                let sql = "UPDATE deliveries SET organization_id = ?2, agreement_id = ?3
                     WHERE delivery_id = ?1";
                self.tx.run(sql, params![existing.id, new.organization, new.agreement])?;
                self.requeue_delivery(existing.id, DeliveryState::Failed, now)?;
                self.queued(existing.id)
            }
            None => {
                let sql = "INSERT INTO deliveries (delivery_id, user_id, organization_id, channel,
                         media_type, item_id, version, agreement_id, state, attempts, next_ms,
                         created_ms, queued_ms, updated_ms, crop)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'queued', 0, ?9, ?9, ?9, ?9, ?10)";
                let values = params![
                    new.id,
                    new.user,
                    new.organization,
                    new.channel.name(),
                    new.item.media_type,
                    new.item.id,
                    new.version,
                    new.agreement,
                    now,
                    new.crop,
                ];
                self.tx.run(sql, values)?;
                self.queued(new.id)
            }
        }
    }

    fn queued(&self, id: Uuid) -> DbResult<EnqueueOutcome> {
        let found = self.find_delivery(id)?;
        found
            .map(EnqueueOutcome::Queued)
            .ok_or_else(|| damaged(format!("delivery {id}"), &"is gone"))
    }

    /// Queues a delivery that ended in the state `ended` like a new one. Returns `false` if it is not in that
    /// state. The time of its first successful delivery is preserved.
    pub fn requeue_delivery(
        &self,
        id: Uuid,
        ended: DeliveryState,
        now: Timestamp,
    ) -> DbResult<bool> {
        // `queued_ms` restarts the period in which the delivery is retried.
        let sql = "UPDATE deliveries SET state = 'queued', attempts = 0, claim = NULL,
                 next_ms = ?2, queued_ms = ?2, updated_ms = ?2, error = NULL
             WHERE delivery_id = ?1 AND state = ?3 AND next_ms IS NULL";
        self.tx.changes(sql, params![id, now, ended])
    }

    /// Queues the newest failed deliveries of all users again, at most `limit`. Returns their number.
    pub fn requeue_failed_deliveries(&self, limit: usize, now: Timestamp) -> DbResult<usize> {
        let sql = "UPDATE deliveries SET state = 'queued', attempts = 0, claim = NULL,
                 next_ms = ?1, queued_ms = ?1, updated_ms = ?1, error = NULL
             WHERE next_ms IS NULL AND delivery_id IN
                 (SELECT delivery_id FROM deliveries WHERE state = 'failed'
                  ORDER BY delivery_id DESC LIMIT ?2)";
        self.tx.execute(sql, params![now, limit])
    }

    /// Claims the delivery that has been due for the longest time under the id `claim`, until `until` unless
    /// the claim is renewed. An ended claim of a different worker is ignored.
    ///
    /// Skips channels that are sending and organizations that have reached their maximum in flight. Marks an
    /// unreadable row as failed, so that it does not block later ones.
    pub fn claim_delivery(
        &self,
        claim: Uuid,
        terms: ClaimTerms,
        until: Timestamp,
    ) -> DbResult<Option<Delivery>> {
        // The attempt counts from its claim on, so that a delivery that kills its sender fails eventually
        // (contract reliability-21).
        let sql = format!(
            "WITH {IN_FLIGHT}
             UPDATE deliveries SET state = 'sending', attempts = attempts + 1, incarnation = ?3,
                 claim = ?4, next_ms = ?5, updated_ms = ?1
             WHERE next_ms <= ?1 AND delivery_id = (SELECT delivery_id FROM deliveries
                 WHERE next_ms <= ?1 AND {NOT_BLOCKED} ORDER BY next_ms, delivery_id LIMIT 1)
             RETURNING delivery_id"
        );
        let ClaimTerms { now, organization_max, incarnation } = terms;
        loop {
            let values = params![now, organization_max, incarnation, claim, until];
            let claimed: Option<String> = self.tx.find_value(&sql, values)?;
            let Some(id) = claimed else { return Ok(None) };
            match self.read_claimed(&id) {
                Err(DbError::Damaged { what, why }) => {
                    // The id is used as it is stored below, because it may be the part that cannot be parsed.
                    tracing::error!("{what} marked as failed, its row is damaged: {why}");
                    let sql =
                        "UPDATE deliveries SET state = 'failed', claim = NULL, next_ms = NULL,
                             error = 'its row in the database is damaged' WHERE delivery_id = ?1";
                    self.tx.run(sql, params![id])?;
                }
                read => return read.map(Some),
            }
        }
    }

    fn read_claimed(&self, id: &str) -> DbResult<Delivery> {
        let what = format!("delivery {id}");
        let found = self.find_delivery(parse(&what, id)?)?;
        found.ok_or_else(|| damaged(&what, &"its user is gone, or its id is spelt differently"))
    }

    /// Renews a claim until `until` for the sender's current incarnation. Returns `false` if the claim was
    /// lost.
    pub fn renew_claim(
        &self,
        claim: Uuid,
        id: Uuid,
        incarnation: Uuid,
        until: Timestamp,
    ) -> DbResult<bool> {
        let sql = "UPDATE deliveries SET next_ms = ?3, incarnation = ?4
             WHERE delivery_id = ?1 AND claim = ?2";
        self.tx.changes(sql, params![id, claim, until, incarnation])
    }

    /// Renews the claims in `held` that seem to have ended, each with its delivery, until `until` for the
    /// requesting incarnation. Their workers are still sending, however long the renewal could not be
    /// written.
    pub fn renew_ended_claims(
        &self,
        held: &[(Uuid, Uuid)],
        terms: ClaimTerms,
        until: Timestamp,
    ) -> DbResult<()> {
        // A claim that a different worker has acquired has a different id and stays with that worker.
        let sql = "UPDATE deliveries SET next_ms = ?3, incarnation = ?4
             WHERE delivery_id = ?1 AND claim = ?2 AND next_ms <= ?5";
        held.iter().try_for_each(|(claim, id)| {
            self.tx.run(sql, params![id, claim, until, terms.incarnation, terms.now])
        })
    }

    /// Records the outcome of a claimed delivery and releases the claim. Returns `false` if the claim was
    /// lost.
    pub fn end_claim(
        &self,
        claim: Uuid,
        id: Uuid,
        outcome: &DeliveryOutcome,
        now: Timestamp,
    ) -> DbResult<bool> {
        let (assignments, next, error) = match outcome {
            DeliveryOutcome::Delivered => {
                ("state = 'delivered', delivered_ms = ?3, error = ?5", None, None)
            }
            DeliveryOutcome::Retry { at, error } => {
                ("state = 'queued', error = ?5", Some(*at), Some(error))
            }
            DeliveryOutcome::Failed { error } => {
                ("state = 'failed', error = ?5", None, Some(error))
            }
            // The receiver did not fail if this service stops, so the attempt does not count.
            DeliveryOutcome::Released => (
                "state = 'queued', attempts = attempts - 1, error = coalesce(?5, error)",
                Some(now),
                None,
            ),
        };
        // Requires the claim, so that a worker with a lost claim overwrites no newer attempt.
        let sql = format!(
            "UPDATE deliveries SET {assignments}, claim = NULL, next_ms = ?4, updated_ms = ?3
             WHERE delivery_id = ?1 AND claim = ?2"
        );
        self.tx.changes(&sql, params![id, claim, now, next, error])
    }

    /// Removes deliveries that ended before `before`, at most `limit`. Returns their number.
    pub fn sweep_deliveries(&self, before: Timestamp, limit: usize) -> DbResult<usize> {
        // `next_ms IS NULL` is the condition of the partial index on ended deliveries.
        let sql = "DELETE FROM deliveries WHERE delivery_id IN
                 (SELECT delivery_id FROM deliveries WHERE next_ms IS NULL AND updated_ms < ?1
                  ORDER BY updated_ms LIMIT ?2)";
        self.tx.execute(sql, params![before, limit])
    }
}
