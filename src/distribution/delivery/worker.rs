//! The delivery worker: claims due deliveries, sends them and records their outcome.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use jiff::Timestamp;
use strum::VariantNames;
use tokio::{sync::watch, time::Instant};
use uuid::Uuid;

use super::backoff::outcome_after;
use super::collect::CollectedFiles;
use super::{AttemptFailure, Deliveries, DeliverySettings, collect, formats};
use crate::access::auth::Principal;
use crate::cluster::jobs::{self, BackgroundJob, JobSpec, RunOutcome};
use crate::cluster::membership::{InFlightTasks, limits::OUTCOME_RETRY_INTERVAL};
use crate::media::MediaCaller;
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::TRANSPORT_BYTES_S_MIN;
use crate::runtime::telemetry;
use crate::storage::database::{ClaimTerms, DbResult, DeliveryOutcome, ReadTx};
use model::AttemptEnd;
use model::account::{Channel, ChannelMethod, Delivery};

/// Poll interval of the queue when nothing is due, since another process may have added a delivery.
const DELIVERY_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The metric label for a channel whose method could not be read.
const UNKNOWN: &str = "unknown";

/// A claim id with the id of its delivery, and the time since the claim.
struct HeldClaim {
    claim: (Uuid, Uuid),
    since: Stopwatch,
}

/// The background job that runs the queue and its deliveries in flight.
struct DeliveryQueue {
    deliveries: Deliveries,
    sending: InFlightTasks<HeldClaim>,
}

impl BackgroundJob for DeliveryQueue {
    type Error = Error;

    fn spec(&self) -> JobSpec {
        JobSpec::every("delivery", DELIVERY_POLL_INTERVAL)
    }

    async fn run(&mut self) -> Result<RunOutcome> {
        self.deliveries.start_due(&mut self.sending).await.map(RunOutcome::DueAfter)
    }

    async fn wait_for_work(&mut self) {
        tokio::select! {
            () = self.deliveries.inner.wake.notified() => {}
            Some(()) = self.sending.next_ended() => {}
        }
    }
}

impl Deliveries {
    /// Sends due deliveries, several at a time, until `stop` turns true. Deliveries in flight then have the time
    /// `drain` to finish; the others are released to the queue.
    pub async fn run(self, stop: watch::Receiver<bool>, drain: Duration) {
        // Initialize the series at zero, so that an alert sees the first failure as an increase.
        for method in ChannelMethod::VARIANTS.iter().copied().chain([UNKNOWN]) {
            metrics::counter!(telemetry::DELIVERIES, "method" => method, "outcome" => "failed")
                .increment(0);
        }
        let inner = Arc::clone(&self.inner);
        let mut queue = DeliveryQueue { deliveries: self, sending: InFlightTasks::default() };
        jobs::run(&mut queue, &inner.services.guard, jobs::stopped(stop)).await;
        queue.sending.drain(drain, &inner.abandon).await;
    }

    /// Starts due deliveries while workers are free. Returns the time until the next poll.
    async fn start_due(&self, sending: &mut InFlightTasks<HeldClaim>) -> Result<Duration> {
        let settings = self.settings();
        loop {
            let in_flight = sending.count();
            let now = clock::now();
            let claim = Uuid::now_v7();
            let terms = ClaimTerms {
                now,
                organization_max: organization_max(settings.workers),
                incarnation: self.inner.services.guard.node().incarnation(),
            };
            // Read even if all workers are busy, so that the gauge shows the backlog then too.
            let queue = self.db().read(move |tx: &ReadTx<'_>| tx.delivery_queue(terms)).await?;
            metrics::gauge!(telemetry::DELIVERIES_WAITING).set(queue.waiting);
            if in_flight >= settings.workers {
                // The end of a delivery wakes the job earlier.
                return Ok(DELIVERY_POLL_INTERVAL);
            }
            let Some(next) = queue.next else { return Ok(DELIVERY_POLL_INTERVAL) };
            if next > now {
                let wait = Duration::try_from(next.duration_since(now)).unwrap_or_default();
                return Ok(wait.min(DELIVERY_POLL_INTERVAL));
            }
            let until = now + settings.lease;
            // Younger claims cannot have expired yet.
            let held = sending.held().filter(|held| held.since.elapsed() >= settings.lease);
            let held: Vec<(Uuid, Uuid)> = held.map(|held| held.claim).collect();
            let claimed = self.db().write(move |tx| {
                // A delivery in flight here stays claimed by this node, even if its claim expired while the
                // database could not be written.
                tx.renew_ended_claims(&held, terms, until)?;
                tx.claim_delivery(claim, terms, until)
            });
            // A different process may have claimed it first.
            if let Some(delivery) = claimed.await? {
                let held = HeldClaim { claim: (claim, delivery.id), since: Stopwatch::start() };
                sending.start(held, self.clone().send(claim, delivery));
            }
        }
    }

    /// Attempts to send a claimed delivery and records the outcome.
    async fn send(self, claim: Uuid, delivery: Delivery) {
        let watch = Stopwatch::start();
        // Read once, because a delivery in flight keeps its settings.
        let policy = self.settings().retry;
        let mut method = None;
        let outcome = tokio::select! {
            result = self.attempt(&delivery, &mut method) => {
                let is_clock_trusted = self.inner.services.guard.trusts_clock();
                let end = AttemptEnd { at: clock::now(), is_clock_trusted };
                outcome_after(&delivery, result, policy, end)
            }
            () = self.renew_claim(claim, delivery.id) => {
                // The other node records the outcome; a report here would count the delivery twice.
                let id = delivery.id;
                tracing::warn!(delivery = %id, "delivery claim lost to another node");
                return;
            }
            () = self.abandoned() => DeliveryOutcome::Released,
        };
        let method = method.map_or(UNKNOWN, ChannelMethod::as_str);
        report(&delivery, method, &outcome, watch);
        self.write_end(claim, delivery.id, outcome).await;
    }

    /// Records the outcome of a claimed delivery, and retries until it is written. Until then, neither this
    /// process nor, during this node's incarnation, a different process claims it again, so that no delivery is
    /// sent twice.
    async fn write_end(&self, claim: Uuid, delivery: Uuid, outcome: DeliveryOutcome) {
        // The delivery ended now, even if the write succeeds later.
        let now = clock::now();
        let mut is_logged = false;
        while let Err(cause) = self.write_end_once(claim, delivery, &outcome, now).await {
            if cause.is_final() {
                tracing::error!(%delivery, "delivery outcome can no longer be written: {cause}");
                return;
            }
            if !is_logged {
                tracing::error!(%delivery, "delivery outcome not written, retrying: {cause}");
            }
            is_logged = true;
            tokio::select! {
                () = tokio::time::sleep(OUTCOME_RETRY_INTERVAL) => {}
                () = self.abandoned() => {
                    // The claim expires on its own.
                    tracing::error!(
                        %delivery,
                        "shutdown before the delivery outcome was written: it will be sent again"
                    );
                    return;
                }
            }
        }
    }

    async fn write_end_once(
        &self,
        claim: Uuid,
        delivery: Uuid,
        outcome: &DeliveryOutcome,
        now: Timestamp,
    ) -> DbResult<()> {
        let outcome = outcome.clone();
        if !self.db().write(move |tx| tx.end_claim(claim, delivery, &outcome, now)).await? {
            // An earlier write may have committed although its response was lost.
            tracing::warn!(%delivery, "delivery outcome already written, or claim lost");
        }
        Ok(())
    }

    /// Completes when deliveries in flight must be released.
    async fn abandoned(&self) {
        let mut abandon = self.inner.abandon.subscribe();
        // The sender is a field of `self`, so the channel cannot be closed.
        drop(abandon.wait_for(|abandon| *abandon).await);
    }

    /// Renews the claim every third of its lease. Returns when the claim is lost.
    async fn renew_claim(&self, claim: Uuid, id: Uuid) {
        let lease = self.settings().lease;
        let mut failing = false;
        loop {
            tokio::time::sleep(lease / 3).await;
            // A new incarnation of this node inherits the claims that the node still holds.
            let until = clock::now() + lease;
            let incarnation = self.inner.services.guard.node().incarnation();
            let renewed =
                self.db().write(move |tx| tx.renew_claim(claim, id, incarnation, until)).await;
            match &renewed {
                Ok(false) => return,
                // The attempt continues, because other nodes do not claim a delivery of a running incarnation,
                // even if its claim expired.
                Err(cause) if !failing => {
                    tracing::error!(delivery = %id, "delivery claim renewal failed: {cause}");
                }
                Ok(true) | Err(_) => {}
            }
            failing = renewed.is_err();
        }
    }

    /// Collects and sends the files within the timeout. A panic counts as a temporary failure; otherwise the
    /// delivery would be claimed again forever.
    async fn attempt(
        &self,
        delivery: &Delivery,
        method: &mut Option<ChannelMethod>,
    ) -> Result<(), AttemptFailure> {
        let DeliverySettings { timeout, retry, .. } = self.settings();
        // Attempts that never ended, for instance because they crashed the process, count too.
        if retry.is_exhausted(delivery.attempts) {
            // The claim has already counted this attempt.
            let tries = delivery.attempts - 1;
            let text = format!("given up after {tries} tries, the last of which did not finish");
            return Err(AttemptFailure::permanent(text));
        }
        let attempt = async {
            let end = tokio::time::sleep(timeout).deadline();
            let (channel, principal, collected) =
                before(end, self.collect(delivery, method)).await??;
            // Cleared after the files are collected, so that a delivery without files does not use up the user's
            // mail quota.
            let mail = before(end, self.clear_mail(&channel, &principal)).await??;
            let end = end + transfer_time(collected.files.iter().map(|file| file.body.len()));
            let media = &self.inner.services.media;
            // The futures of transports are large, so they are boxed.
            let sender = &self.inner.services.sender;
            let introductions = mail.introductions.clone();
            let sending = sender.send(&channel, delivery, media, collected, introductions);
            let sending = Box::pin(sending);
            let sent = before(end, sending).await;
            // Recorded even if a later mail failed: the next attempt must not invalidate the links in mails that
            // were sent.
            self.record_introductions(delivery.user, mail, matches!(sent, Ok(Err(_)))).await;
            sent?
        };
        let result = Box::pin(AssertUnwindSafe(attempt).catch_unwind()).await;
        result
            .unwrap_or_else(|_panic| Err(AttemptFailure::temporary("an internal error occurred")))
    }

    /// Loads user and channel, and collects the files with the user's present rights.
    async fn collect(
        &self,
        delivery: &Delivery,
        method: &mut Option<ChannelMethod>,
    ) -> Result<(Channel, Principal, CollectedFiles), AttemptFailure> {
        let principal = self.inner.services.auth.find_user(delivery.user).await?;
        let principal =
            principal.ok_or_else(|| AttemptFailure::permanent("the user is disabled"))?;
        let id = delivery.channel.clone();
        let channel = self.db().read(move |tx| tx.find_channel(&id)).await;
        let channel = channel.map_err(Error::from)?;
        let channel =
            channel.ok_or_else(|| AttemptFailure::permanent("the channel was removed"))?;
        // Set at once, so that the metric has the method even if the attempt fails below.
        *method = Some(channel.method);
        if !channel.active {
            return Err(AttemptFailure::permanent("the channel is disabled"));
        }
        let formats = formats(&channel)?;
        let agr = delivery.agreement;
        // Rights count at the time of sending (contract deliveries-8).
        let caller = MediaCaller { principal: Some(&principal), agr, now: clock::now() };
        let collected = collect::collect(&self.inner.services.media, delivery, &formats, caller);
        let collected = collected.await?;
        Ok((channel, principal, collected))
    }
}

/// Returns the maximum number of deliveries of one organization in flight. It leaves one worker for others.
fn organization_max(workers: usize) -> usize {
    workers.saturating_sub(1).max(1)
}

/// Returns the time needed to transfer files of these lengths in bytes at the slowest accepted rate.
fn transfer_time(lengths: impl Iterator<Item = u64>) -> Duration {
    Duration::from_secs(lengths.fold(0, u64::saturating_add) / TRANSPORT_BYTES_S_MIN)
}

async fn before<T>(end: Instant, work: impl Future<Output = T>) -> Result<T, AttemptFailure> {
    tokio::time::timeout_at(end, work)
        .await
        .map_err(|_| AttemptFailure::temporary("it exceeded its time limit"))
}

/// Records the metrics and the log line of an attempt. User names are not logged.
fn report(delivery: &Delivery, method: &'static str, outcome: &DeliveryOutcome, watch: Stopwatch) {
    let (label, error) = match outcome {
        DeliveryOutcome::Delivered => ("delivered", ""),
        DeliveryOutcome::Retry { error, .. } => ("retry", error.as_str()),
        DeliveryOutcome::Failed { error } => ("failed", error.as_str()),
        DeliveryOutcome::Released => ("released", ""),
    };
    metrics::counter!(telemetry::DELIVERIES, "method" => method, "outcome" => label).increment(1);
    let seconds = watch.elapsed().as_secs_f64();
    metrics::histogram!(telemetry::DELIVERY_SECONDS, "method" => method).record(seconds);
    let Delivery { id, user, item, attempts, .. } = delivery;
    let channel = delivery.channel.name();
    let ms = watch.elapsed().as_millis();
    tracing::info!(
        delivery = %id, %user, channel, %item, method, outcome = label, attempts, ms, error,
        "delivery"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_time_that_the_slowest_transfer_takes() {
        let mb = 1024 * 1024;
        assert_eq!(transfer_time([].into_iter()), Duration::ZERO);
        assert_eq!(transfer_time([60 * mb, 40 * mb].into_iter()), Duration::from_secs(6400));
        assert!(transfer_time([u64::MAX, 1].into_iter()) > Duration::from_secs(6400));
    }

    #[test]
    fn an_organization_leaves_a_worker_to_the_others_where_there_are_several() {
        assert_eq!([1, 2, 3, 64].map(organization_max), [1, 1, 2, 63]);
    }
}
