//! The queue of deliveries: what waits, who sends what, and what became of it.
//!
//! Whoever sends a delivery holds a claim on it that ends at `next_ms` unless it is renewed, so
//! that what a killed process was sending is taken up again. A claim has a name of its own: who
//! lost it can no longer say how the delivery ended. Clocks of several machines may differ: what a
//! node sends that lives is left to it, also when its claim seems to have ended, and counts as being
//! sent. The clock counts where the life is over, and for the life that asks itself: its claim may have been
//! made without its knowing, where an answer of the database was lost. What it does know that it sends, or whose
//! end it has still to write, it renews before it takes anything up.
//!
//! A claim is a write like another one, also where messages are taken up beside those: how many of a channel
//! and of an organization are being sent is counted over all rows, and nobody else may claim meanwhile.

use jiff::Timestamp;
use uuid::Uuid;

use super::{ReadTx, WriteTx, damaged, int, time};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbError;
use model::account::{AgreementId, ChannelId, Delivery, DeliveryState, OrganizationId, UserId};
use model::{CropSpec, CropSyntaxError, ItemKey, token};

/// A delivery that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// Its name, should it be new; names sort by time.
    pub id: Uuid,
    /// Whose request it is.
    pub user: UserId,
    /// The organization for which that user acts.
    pub organization: OrganizationId,
    /// The channel of that user.
    pub channel: ChannelId,
    /// The item.
    pub item: ItemKey,
    /// The crop that the item's uri carried.
    pub crop: Option<CropSpec>,
    /// What of the item.
    pub version: String,
    /// The agreement that the request names.
    pub agreement: Option<AgreementId>,
}

/// What became of a request for a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnqueueOutcome {
    /// It waits: it is new, or it had failed and is queued again.
    Queued(Delivery),
    /// It was there already and is as it was.
    Known(Delivery),
    /// Too many deliveries of the organization wait.
    Full,
}

/// Whose deliveries are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveriesOf {
    /// A user's.
    User(UserId),
    /// Those of everybody in the organization.
    Organization(OrganizationId),
    /// All, for the operator.
    Everybody,
}

/// How a try to send ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The other side has it.
    Delivered,
    /// It is tried again.
    Retry {
        /// When.
        at: Timestamp,
        /// Why it failed this time.
        error: String,
    },
    /// It is given up.
    Failed {
        /// Why.
        error: String,
    },
    /// It was not tried to its end, which counts for nothing: the service stops.
    Released,
}

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryBacklog {
    /// When the first of them is due that does not wait for another one.
    pub next: Option<Timestamp>,
    /// How many there are.
    pub waiting: u32,
}

/// When and how many deliveries are taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimTerms {
    /// The time.
    pub now: Timestamp,
    /// Deliveries of one organization that may be under way; at least 1.
    pub organization_max: usize,
    /// The life of the node that takes them up.
    pub incarnation: Uuid,
}

/// What is under way when `?1` is the time and `?3` the life that asks: claims that did not end, and those
/// that only seem so of other lives that last. It is found once, and it is little; the second part is
/// looked for where there is such a life.
const UNDER_WAY: &str = "under_way AS (
     SELECT user_id, channel, organization_id FROM deliveries
         WHERE next_ms > ?1 AND state = 'sending'
     UNION ALL SELECT user_id, channel, organization_id FROM deliveries
         WHERE EXISTS (SELECT 1 FROM nodes WHERE life <> ?3)
             AND next_ms <= ?1 AND state = 'sending'
             AND life IN (SELECT life FROM nodes WHERE life <> ?3))";
/// What holds of a delivery whose turn may come, besides that it is due: `?2` is how many deliveries of
/// an organization may be under way. A channel has one at a time, so that a receiver that hangs
/// holds nobody else up.
const FREE: &str = "(user_id, channel) NOT IN (SELECT user_id, channel FROM under_way)
     AND organization_id NOT IN (SELECT organization_id FROM under_way
         GROUP BY organization_id HAVING count(*) >= ?2)";

/// The columns that [`read_delivery`] reads.
const COLUMNS: &str = "delivery_id, deliveries.user_id, deliveries.organization_id, user_name, \
     channel, media_type, item_id, version, agreement_id, state, attempts, next_ms, error, \
     deliveries.created_ms, queued_ms, updated_ms, delivered_ms, crop";
const FROM: &str = "deliveries JOIN users USING (user_id)";

fn read_delivery(row: &dyn ResultRow) -> Result<Delivery, DbError> {
    let id: String = row.get(0)?;
    let what = format!("delivery {id}");
    let (owner, channel): (String, String) = (row.get(3)?, row.get(4)?);
    let channel = ChannelId::new(&owner, &channel).map_err(|why| damaged(&what, &why))?;
    let (media_type, item): (String, String) = (row.get(5)?, row.get(6)?);
    let item = format!("{media_type}/{item}").parse().map_err(|why| damaged(&what, &why))?;
    let crop: Option<String> = row.get(17)?;
    let state: String = row.get(9)?;
    let state = DeliveryState::find(&state).ok_or_else(|| damaged(&what, &"its state"))?;
    let optional = |column| {
        let ms: Option<i64> = row.get(column)?;
        ms.map(|ms| time(&what, ms)).transpose()
    };
    Ok(Delivery {
        id: id.parse().map_err(|why| damaged(&what, &why))?,
        user: UserId(row.get(1)?),
        organization: OrganizationId(row.get(2)?),
        channel,
        item,
        version: row.get(7)?,
        agreement: row.get::<Option<i64>>(8)?.map(AgreementId),
        state,
        attempts: u32::try_from(row.get::<i64>(10)?).map_err(|why| damaged(&what, &why))?,
        next: optional(11)?,
        error: row.get(12)?,
        created: time(&what, row.get(13)?)?,
        queued: time(&what, row.get(14)?)?,
        updated: time(&what, row.get(15)?)?,
        delivered: optional(16)?,
        crop: crop.map(|text| read_crop(&text).map_err(|why| damaged(&what, &why))).transpose()?,
    })
}

fn read_crop(text: &str) -> Result<CropSpec, CropSyntaxError> {
    let (_, parameters) = token::split_crop(text).unwrap_or_default();
    CropSpec::parse(parameters)
}

impl ReadTx<'_> {
    /// The delivery.
    pub fn find_delivery(&self, id: Uuid) -> Result<Option<Delivery>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM {FROM} WHERE delivery_id = ?1");
        self.tx.find(&sql, params![id.to_string()], read_delivery)
    }

    /// The delivery of that version of `item` through `channel`.
    pub fn find_delivery_of(
        &self,
        channel: &ChannelId,
        item: &ItemKey,
        version: &str,
    ) -> Result<Option<Delivery>, DbError> {
        let (media_type, id) = (item.media_type.as_str(), item.id.as_str());
        let wanted = params![channel.owner(), channel.name(), media_type, id, version];
        self.tx.find(
            &format!(
                "SELECT {COLUMNS} FROM {FROM} WHERE user_name = ?1 AND channel = ?2
                 AND media_type = ?3 AND item_id = ?4 AND version = ?5"
            ),
            wanted,
            read_delivery,
        )
    }

    /// `size` deliveries behind the `start` newest, the newest first.
    pub fn list_deliveries(
        &self,
        of: DeliveriesOf,
        state: Option<DeliveryState>,
        start: usize,
        size: usize,
    ) -> Result<Vec<Delivery>, DbError> {
        let (owner, id) = match of {
            DeliveriesOf::User(id) => ("deliveries.user_id = ?4", id.0),
            DeliveriesOf::Organization(id) => ("deliveries.organization_id = ?4", id.0),
            DeliveriesOf::Everybody => ("?4 = 0", 0),
        };
        let state = state.map(DeliveryState::as_str);
        self.tx.list(
            &format!(
                "SELECT {COLUMNS} FROM {FROM} WHERE {owner} AND state = coalesce(?1, state)
                 ORDER BY delivery_id DESC LIMIT ?2 OFFSET ?3"
            ),
            params![state, int(size), int(start), id],
            read_delivery,
        )
    }

    /// Whether `max` deliveries of the organization wait or are being sent.
    pub fn is_queue_full(
        &self,
        organization: OrganizationId,
        max: usize,
    ) -> Result<bool, DbError> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM deliveries
             WHERE organization_id = ?1 AND next_ms IS NOT NULL LIMIT ?2) AS waiting";
        Ok(self.tx.count(sql, params![organization.0, int(max)])? >= max)
    }

    /// What waits of all organizations, with what is being sent. `next` is what
    /// [`WriteTx::claim_delivery`] would take when that time has come, so that nobody looks again
    /// and again for what has to wait.
    pub fn delivery_queue(&self, turn: ClaimTerms) -> Result<DeliveryBacklog, DbError> {
        let waiting = "SELECT count(*) FROM deliveries WHERE next_ms IS NOT NULL";
        let waiting = self.tx.load_value(waiting, params![])?;
        let sql = format!(
            "WITH {UNDER_WAY} SELECT next_ms FROM deliveries WHERE next_ms IS NOT NULL AND {FREE}
             ORDER BY next_ms LIMIT 1"
        );
        let life = turn.incarnation.to_string();
        let times = params![turn.now.as_millisecond(), int(turn.organization_max), life];
        let next: Option<i64> = self.tx.find_value(&sql, times)?;
        // A damaged time must not stop the queue: too early is now, too late is never.
        let never = |ms: i64| if ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let next = next.map(|ms| time("the queue", ms).unwrap_or_else(|_| never(ms)));
        Ok(DeliveryBacklog { next, waiting })
    }
}

impl WriteTx<'_> {
    /// Queues a delivery unless it is there; one that failed is queued again. `max` deliveries of
    /// an organization may wait.
    pub fn queue_delivery(
        &self,
        new: &NewDelivery,
        max: usize,
        now: Timestamp,
    ) -> Result<EnqueueOutcome, DbError> {
        let known = self.as_read().find_delivery_of(&new.channel, &new.item, &new.version)?;
        match known {
            Some(known) if known.state != DeliveryState::Failed => {
                Ok(EnqueueOutcome::Known(known))
            }
            _ if self.as_read().is_queue_full(new.organization, max)? => Ok(EnqueueOutcome::Full),
            Some(known) => {
                let (organization, agreement) = (new.organization.0, new.agreement.map(|id| id.0));
                self.tx.execute(
                    "UPDATE deliveries SET organization_id = ?2, agreement_id = ?3
                     WHERE delivery_id = ?1",
                    params![known.id.to_string(), organization, agreement],
                )?;
                self.requeue_delivery(known.id, DeliveryState::Failed, now)?;
                self.queued(known.id)
            }
            None => {
                self.tx.execute(
                    "INSERT INTO deliveries (delivery_id, user_id, organization_id, channel,
                         media_type, item_id, version, agreement_id, state, attempts, next_ms,
                         created_ms, queued_ms, updated_ms, crop)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'queued', 0, ?9, ?9, ?9, ?9, ?10)",
                    params![
                        new.id.to_string(),
                        new.user.0,
                        new.organization.0,
                        new.channel.name(),
                        new.item.media_type.as_str(),
                        new.item.id.as_str(),
                        new.version,
                        new.agreement.map(|id| id.0),
                        now.as_millisecond(),
                        new.crop.map(|crop| crop.to_string()),
                    ],
                )?;
                self.queued(new.id)
            }
        }
    }

    fn queued(&self, id: Uuid) -> Result<EnqueueOutcome, DbError> {
        let found = self.as_read().find_delivery(id)?;
        found
            .map(EnqueueOutcome::Queued)
            .ok_or_else(|| damaged(format!("delivery {id}"), &"is gone"))
    }

    /// Queues a delivery that ended as `ended` says as if it were new; `false` when there is none that did.
    /// When it was delivered first stays known.
    pub fn requeue_delivery(
        &self,
        id: Uuid,
        ended: DeliveryState,
        now: Timestamp,
    ) -> Result<bool, DbError> {
        let sql = "UPDATE deliveries SET state = 'queued', attempts = 0, claim = NULL,
                 next_ms = ?2, queued_ms = ?2, updated_ms = ?2, error = NULL
             WHERE delivery_id = ?1 AND state = ?3 AND next_ms IS NULL";
        let values = params![id.to_string(), now.as_millisecond(), ended.as_str()];
        Ok(self.tx.execute(sql, values)? > 0)
    }

    /// Claims the delivery that is due for the longest time under the name `claim`, until `until`
    /// unless the claim is renewed. A claim of somebody else that ended counts for nothing.
    ///
    /// A channel that sends and an organization that sends as much as it may are passed over. A
    /// row that cannot be read is given up, so that those behind it get their turn.
    pub fn claim_delivery(
        &self,
        claim: Uuid,
        turn: ClaimTerms,
        until: Timestamp,
    ) -> Result<Option<Delivery>, DbError> {
        let sql = format!(
            "WITH {UNDER_WAY}
             UPDATE deliveries SET state = 'sending', attempts = attempts + 1, life = ?3,
                 claim = ?4, next_ms = ?5, updated_ms = ?1
             WHERE next_ms <= ?1 AND delivery_id = (SELECT delivery_id FROM deliveries
                 WHERE next_ms <= ?1 AND {FREE} ORDER BY next_ms, delivery_id LIMIT 1)
             RETURNING delivery_id"
        );
        let (now_ms, max) = (turn.now.as_millisecond(), int(turn.organization_max));
        loop {
            let (life, claim) = (turn.incarnation.to_string(), claim.to_string());
            let values = params![now_ms, max, life, claim, until.as_millisecond()];
            let claimed: Option<String> = self.tx.find_value(&sql, values)?;
            let Some(id) = claimed else { return Ok(None) };
            match self.read_claimed(&id) {
                Err(DbError::Damaged { what, why }) => {
                    tracing::error!("{what} is given up, its row is damaged: {why}");
                    self.tx.execute(
                        "UPDATE deliveries SET state = 'failed', claim = NULL, next_ms = NULL,
                             error = 'its row in the database is damaged' WHERE delivery_id = ?1",
                        params![id],
                    )?;
                }
                read => return read.map(Some),
            }
        }
    }

    fn read_claimed(&self, id: &str) -> Result<Delivery, DbError> {
        let what = || format!("delivery {id}");
        let parsed = id.parse().map_err(|why| damaged(what(), &why))?;
        let found = self.as_read().find_delivery(parsed)?;
        found.ok_or_else(|| damaged(what(), &"its user is gone, or its id is spelt otherwise"))
    }

    /// Renews a claim until `until` for the life that its sender has now; `false` when it was lost.
    pub fn renew_claim(
        &self,
        claim: Uuid,
        id: Uuid,
        life: Uuid,
        until: Timestamp,
    ) -> Result<bool, DbError> {
        let sql = "UPDATE deliveries SET next_ms = ?3, life = ?4
             WHERE delivery_id = ?1 AND claim = ?2";
        let (claim, id, life) = (claim.to_string(), id.to_string(), life.to_string());
        Ok(self.tx.execute(sql, params![id, claim, until.as_millisecond(), life])? > 0)
    }

    /// Renews those of the claims `held`, each with its delivery, that seem to have ended, until `until` for the
    /// life that asks: whoever sends them still does, however long it could not be written that they are renewed.
    pub fn renew_ended_claims(
        &self,
        held: &[(Uuid, Uuid)],
        turn: ClaimTerms,
        until: Timestamp,
    ) -> Result<(), DbError> {
        let sql = "UPDATE deliveries SET next_ms = ?3, life = ?4
             WHERE delivery_id = ?1 AND claim = ?2 AND next_ms <= ?5";
        let (until_ms, now_ms) = (until.as_millisecond(), turn.now.as_millisecond());
        for (claim, id) in held {
            let (claim, id, life) =
                (claim.to_string(), id.to_string(), turn.incarnation.to_string());
            self.tx.execute(sql, params![id, claim, until_ms, life, now_ms])?;
        }
        Ok(())
    }

    /// Writes how a claimed delivery ended and gives the claim back; `false` when it was lost.
    pub fn end_claim(
        &self,
        claim: Uuid,
        id: Uuid,
        outcome: &DeliveryOutcome,
        now: Timestamp,
    ) -> Result<bool, DbError> {
        let (id, claim, now_ms) = (id.to_string(), claim.to_string(), now.as_millisecond());
        let changed = match outcome {
            DeliveryOutcome::Delivered => self.tx.execute(
                "UPDATE deliveries SET state = 'delivered', claim = NULL, next_ms = NULL,
                     error = NULL, updated_ms = ?3, delivered_ms = ?3
                 WHERE delivery_id = ?1 AND claim = ?2",
                params![id, claim, now_ms],
            )?,
            DeliveryOutcome::Retry { at, error } => self.tx.execute(
                "UPDATE deliveries SET state = 'queued', claim = NULL, next_ms = ?4, error = ?5,
                     updated_ms = ?3
                 WHERE delivery_id = ?1 AND claim = ?2",
                params![id, claim, now_ms, at.as_millisecond(), error],
            )?,
            DeliveryOutcome::Failed { error } => self.tx.execute(
                "UPDATE deliveries SET state = 'failed', claim = NULL, next_ms = NULL,
                     error = ?4, updated_ms = ?3
                 WHERE delivery_id = ?1 AND claim = ?2",
                params![id, claim, now_ms, error],
            )?,
            DeliveryOutcome::Released => self.tx.execute(
                "UPDATE deliveries SET state = 'queued', claim = NULL, next_ms = ?3,
                     attempts = attempts - 1, updated_ms = ?3
                 WHERE delivery_id = ?1 AND claim = ?2",
                params![id, claim, now_ms],
            )?,
        };
        Ok(changed > 0)
    }

    /// Removes deliveries that came to an end before `before`, `limit` at most; how many.
    pub fn sweep_deliveries(&self, before: Timestamp, limit: usize) -> Result<usize, DbError> {
        let sql = "DELETE FROM deliveries WHERE delivery_id IN
                 (SELECT delivery_id FROM deliveries WHERE next_ms IS NULL AND updated_ms < ?1
                  ORDER BY updated_ms LIMIT ?2)";
        self.tx.execute(sql, params![before.as_millisecond(), int(limit)])
    }
}
