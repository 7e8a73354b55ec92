//! Sends due messages of the outbox, with one job per transport: mail, APNs and FCM.
//!
//! A message that a node claims belongs to the node's incarnation. A failed claim may nevertheless have committed,
//! for example if the connection to the database broke before the response. Therefore, messages that this
//! incarnation holds but this process does not send are released before the next claim.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, TryFutureExt};
use tokio::sync::watch;
use uuid::Uuid;

use super::Notifications;
use super::mails::AddressedMessage;
use crate::cluster::jobs::{self, BackgroundJob, JobSpec, RunOutcome};
use crate::cluster::membership::{InFlightTasks, limits::OUTCOME_RETRY_INTERVAL};
use crate::distribution::recipients::MailClearance;
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::{clock, telemetry};
use crate::storage::database::{ClaimTx, ClaimedBy, DbResult, MessageOutcome, ReadTx};
use crate::transport::Mail;
use crate::transport::push::PushError;
use model::account::{
    DeviceKind, MessageContent, MessageTransport, OutboxMessage, UserId, shorten_reason,
};
use model::{AttemptEnd, RetryPolicy};

/// Poll interval of the outbox when nothing is due, since the operator may have queued a message.
const OUTBOX_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout for sending one message.
const MESSAGE_TIME: Duration = Duration::from_secs(180);

/// The outcome of an attempt to send.
enum SendOutcome {
    /// The provider or mail server accepted the message.
    Sent,
    /// The message is obsolete: the item, user or notification does not exist any more.
    Dropped,
    /// The recipient refuses mails of the user: the label in metrics, and a sentence.
    Unwanted(&'static str, String),
    /// A rate limit or a pending confirmation postpones the message: the time, and a sentence.
    Postponed(jiff::Timestamp, String),
    /// The provider reports the device's token as invalid.
    InvalidToken(String),
    /// A different node may have claimed the message.
    Uncertain,
    /// A temporary failure, with the provider's `Retry-After` if there is one.
    Retry(String, Option<Duration>),
    /// A permanent failure, with its reason.
    Failed(String),
}

impl From<Error> for SendOutcome {
    fn from(error: Error) -> Self {
        // The outbox shows only the message; the cause is for the operator's log.
        if let Some(cause) = error.cause() {
            tracing::warn!("message attempt failed: {}: {cause}", error.message());
        }
        let is_permanent = matches!(
            error.kind(),
            ErrorKind::InvalidArgument | ErrorKind::Unsupported | ErrorKind::TooLarge
        );
        let message = error.message().to_owned();
        if is_permanent { Self::Failed(message) } else { Self::Retry(message, None) }
    }
}

/// A message with its outcome, to be written to the database.
struct FinishedMessage {
    id: Uuid,
    user: UserId,
    outcome: MessageOutcome,
    /// The device token to remove.
    invalid_token: Option<String>,
    by: ClaimedBy,
}

/// The messages of a transport that are in flight.
#[derive(Default)]
pub(super) struct OutboxInFlight {
    pub(super) messages: InFlightTasks<Uuid>,
    /// True if a failed claim may have committed.
    is_doubtful: bool,
}

/// The background job that sends the messages of a transport.
struct OutboxJob {
    notifications: Notifications,
    transport: MessageTransport,
    sending: OutboxInFlight,
}

impl BackgroundJob for OutboxJob {
    type Error = Error;

    fn spec(&self) -> JobSpec {
        let name = match self.transport {
            MessageTransport::Mail => "mail-outbox",
            MessageTransport::Apple => "apple-push-outbox",
            MessageTransport::Google => "google-push-outbox",
        };
        JobSpec::every(name, OUTBOX_POLL_INTERVAL)
    }

    async fn run(&mut self) -> Result<RunOutcome> {
        let wait = self.notifications.start_due(self.transport, &mut self.sending).await?;
        Ok(RunOutcome::DueAfter(wait))
    }

    async fn wait_for_work(&mut self) {
        tokio::select! {
            () = self.notifications.inner.wakes[self.transport.index()].notified() => {}
            Some(()) = self.sending.messages.next_ended() => {}
        }
    }
}

impl Notifications {
    /// Sends due messages of a transport, several at a time, until `stop` turns true. Messages in flight then have
    /// the time `drain` to finish; the others are released.
    pub async fn send(
        self,
        transport: MessageTransport,
        stop: watch::Receiver<bool>,
        drain: Duration,
    ) {
        let inner = Arc::clone(&self.inner);
        let mut outbox =
            OutboxJob { notifications: self, transport, sending: OutboxInFlight::default() };
        jobs::run(&mut outbox, &inner.services.guard, jobs::stopped(stop)).await;
        outbox.sending.messages.drain(drain, &inner.abandon).await;
    }

    /// Starts due messages while workers are free. Returns the time until the next poll.
    pub(super) async fn start_due(
        &self,
        transport: MessageTransport,
        sending: &mut OutboxInFlight,
    ) -> Result<Duration> {
        let settings = self.inner.settings.get();
        let workers = match transport {
            MessageTransport::Mail => settings.mail_workers,
            MessageTransport::Apple | MessageTransport::Google => settings.push_workers,
        };
        // A reload may have lowered the number of workers below the number of messages in flight.
        let free_workers = workers.saturating_sub(sending.messages.count());
        // Comes before the next claim, or messages of a lost response would stay claimed until this incarnation
        // ends.
        if sending.is_doubtful {
            self.release_lost(transport, sending).await?;
        }
        let next = self.db().read(move |tx: &ReadTx<'_>| tx.next_message(transport)).await?;
        let now = clock::now();
        let Some(next) = next.filter(|_| free_workers > 0) else {
            return Ok(OUTBOX_POLL_INTERVAL);
        };
        if next > now {
            let wait = Duration::try_from(next.duration_since(now)).unwrap_or_default();
            return Ok(wait.min(OUTBOX_POLL_INTERVAL));
        }
        let by = ClaimedBy { incarnation: self.inner.services.guard.node().incarnation(), now };
        let claimed = self
            .db()
            .claim(move |tx: &ClaimTx<'_>| tx.claim_messages(transport, free_workers, by))
            .await;
        // The claim may have committed although its response was lost.
        sending.is_doubtful = claimed.is_err();
        for message in claimed? {
            // The outcome of a message may have been written although the response was lost. The message is then
            // still being finished here, and the repeated write decides. A second concurrent attempt would send
            // the message twice.
            if !sending.messages.held().any(|id| *id == message.id) {
                sending
                    .messages
                    .start(message.id, self.clone().send_one(transport, message, by.incarnation));
            }
        }
        // The job is woken when an attempt ends or a message is queued.
        Ok(OUTBOX_POLL_INTERVAL)
    }

    /// Releases messages of a transport that this incarnation holds but this process does not send.
    async fn release_lost(
        &self,
        transport: MessageTransport,
        sending: &mut OutboxInFlight,
    ) -> Result<()> {
        let by = ClaimedBy {
            incarnation: self.inner.services.guard.node().incarnation(),
            now: clock::now(),
        };
        let messages: Vec<Uuid> = sending.messages.held().copied().collect();
        let released = self
            .db()
            .claim(move |tx: &ClaimTx<'_>| tx.release_lost_messages(transport, &messages, by))
            .await?;
        sending.is_doubtful = false;
        if released > 0 {
            tracing::warn!(
                messages = released,
                transport = transport.as_str(),
                "messages released after a claim without a response"
            );
        }
        Ok(())
    }

    /// Attempts to send a message and records the outcome.
    async fn send_one(
        self,
        transport: MessageTransport,
        message: OutboxMessage,
        incarnation: Uuid,
    ) {
        let watch = Stopwatch::start();
        let attempt = self.attempt(&message).unwrap_or_else(SendOutcome::from);
        let attempt = AssertUnwindSafe(attempt).catch_unwind();
        let attempt = tokio::time::timeout(MESSAGE_TIME, Box::pin(attempt));
        let mut abandon = self.inner.abandon.subscribe();
        let result = tokio::select! {
            result = attempt => Some(match result {
                Ok(Ok(result)) => result,
                Ok(Err(_panic)) => SendOutcome::Retry("an internal error occurred".to_owned(), None),
                Err(_) => SendOutcome::Retry("it exceeded its time limit".to_owned(), None),
            }),
            _ = abandon.wait_for(|abandon| *abandon) => None,
        };
        let now = clock::now();
        let is_clock_trusted = self.inner.services.guard.trusts_clock();
        let end = AttemptEnd { at: now, is_clock_trusted };
        let policy = self.inner.settings.get().retry;
        let (label, outcome) = outcome_of_attempt(&message, result.as_ref(), policy, end);
        let transport = transport.as_str();
        metrics::counter!(telemetry::MESSAGES, "transport" => transport, "outcome" => label)
            .increment(1);
        let seconds = watch.elapsed().as_secs_f64();
        metrics::histogram!(telemetry::MESSAGE_SECONDS, "transport" => transport).record(seconds);
        let error = match &result {
            Some(SendOutcome::InvalidToken(reason) | SendOutcome::Unwanted(_, reason)) => {
                reason.as_str()
            }
            _ => error_of(&outcome),
        };
        let OutboxMessage { id, number, attempts, .. } = message;
        let ms = watch.elapsed().as_millis();
        tracing::info!(
            message = %id, notification = number, transport, outcome = label, attempts, ms, error,
            "message"
        );
        let invalid_token = match (&result, &message.content) {
            (Some(SendOutcome::InvalidToken(_)), MessageContent::Push { token, .. }) => {
                Some(token.clone())
            }
            (Some(_) | None, _) => None,
        };
        // A different node may have the message. A short delay makes the same doubt less likely in the next
        // attempt.
        let delay = if matches!(result, Some(SendOutcome::Uncertain)) {
            OUTCOME_RETRY_INTERVAL
        } else {
            Duration::ZERO
        };
        let now = now.saturating_add(delay).unwrap_or(now);
        let finished = FinishedMessage {
            id,
            user: message.user,
            outcome,
            invalid_token,
            by: ClaimedBy { incarnation, now },
        };
        self.write_end(finished).await;
    }

    /// Records the outcome of a message, and retries until it is written. Until then the message belongs to this
    /// incarnation, so that it is not sent twice.
    async fn write_end(&self, finished: FinishedMessage) {
        let finished = Arc::new(finished);
        let mut abandon = self.inner.abandon.subscribe();
        let mut is_logged = false;
        while let Err(cause) = self.write_end_once(Arc::clone(&finished)).await {
            if !is_logged {
                tracing::error!(
                    message = %finished.id,
                    "message outcome not written, retrying: {cause}"
                );
            }
            is_logged = true;
            tokio::select! {
                () = tokio::time::sleep(OUTCOME_RETRY_INTERVAL) => {}
                // The next incarnation of this node sends the message again.
                _ = abandon.wait_for(|abandon| *abandon) => return,
            }
        }
    }

    async fn write_end_once(&self, finished: Arc<FinishedMessage>) -> DbResult<()> {
        let id = finished.id;
        let ending = self.db().write(move |tx| {
            let is_held = tx.end_message(finished.id, &finished.outcome, finished.by)?;
            // Removed only with the claim: a node that lost the claim must not remove a device that has since
            // registered again.
            if let Some(token) = finished.invalid_token.as_ref().filter(|_| is_held) {
                tx.delete_device(finished.user, token)?;
            }
            Ok(is_held)
        });
        if !ending.await? {
            tracing::warn!(message = %id, "message claim lost to another node");
        }
        Ok(())
    }

    /// Renders a message from the present state of its items, and sends it.
    async fn attempt(&self, message: &OutboxMessage) -> Result<SendOutcome> {
        // Attempts that never ended, for instance because they crashed the process, count too.
        if self.inner.settings.get().retry.is_exhausted(message.attempts) {
            // The claim has already counted this attempt.
            let tries = message.attempts - 1;
            let text = format!("given up after {tries} tries, the last of which did not finish");
            return Ok(SendOutcome::Failed(text));
        }
        if message.content.is_about_account() {
            return match self.account_mail(message).await? {
                Some(mail) => self.post_mail(&mail).await,
                None => Ok(SendOutcome::Dropped),
            };
        }
        let number = message.number;
        let found = self.db().read(move |tx| tx.notification_of_number(number)).await?;
        let user = self.inner.services.auth.find_user(message.user).await?;
        let Some((notification, user)) = found.zip(user) else { return Ok(SendOutcome::Dropped) };
        let now = clock::now();
        let addressed =
            AddressedMessage { message, notification: &notification, user: &user, now };
        let MessageContent::Push { item, token, device } = &message.content else {
            return self.post(&addressed).await;
        };
        let Ok(kind) = device.parse::<DeviceKind>() else { return Ok(SendOutcome::Dropped) };
        // A phone that changed hands or was signed out must not get messages of its former user.
        let owner = message.user;
        let devices = self.db().read(move |tx| tx.list_devices(owner)).await?;
        let is_registered =
            devices.iter().any(|registered| registered.token == *token && registered.kind == kind);
        if !is_registered {
            return Ok(SendOutcome::Dropped);
        }
        let rendered = self.push_message(&addressed, item, kind, token).await?;
        let Some(rendered) = rendered else { return Ok(SendOutcome::Dropped) };
        // As with mails, a different node may have claimed and sent the message while this node was suspended.
        if !self.inner.services.guard.node().is_confirmed() {
            return Ok(SendOutcome::Uncertain);
        }
        Ok(match self.inner.services.push.send(&rendered, clock::now).await {
            Ok(()) => SendOutcome::Sent,
            Err(PushError::InvalidToken { reason }) => SendOutcome::InvalidToken(reason),
            Err(PushError::Permanent { reason }) => SendOutcome::Failed(reason),
            Err(PushError::Retry { reason, after }) => SendOutcome::Retry(reason, after),
        })
    }

    async fn post(&self, addressed: &AddressedMessage<'_>) -> Result<SendOutcome> {
        let Some(mut mail) = self.mail(addressed).await? else {
            return Ok(SendOutcome::Dropped);
        };
        let recipients = &self.inner.services.recipients;
        let user = addressed.user;
        // Checked after rendering, so that a mail without items does not count against the limits.
        let cleared = Box::pin(recipients.clear(user, &mail.to, addressed.now)).await?;
        let introductions = match cleared {
            MailClearance::Granted(introductions) => introductions,
            MailClearance::Postponed { at, why } => return Ok(SendOutcome::Postponed(at, why)),
            MailClearance::Refused { reason, why } => {
                return Ok(SendOutcome::Unwanted(reason, why));
            }
        };
        introductions.iter().for_each(|introduction| mail.introduce(introduction));
        let outcome = self.post_mail(&mail).await?;
        let user = user.user().id;
        if matches!(outcome, SendOutcome::Sent) {
            recipients.record_introductions(user, &introductions, clock::now()).await;
        } else {
            recipients.refund(user, &mail.to, addressed.now).await;
        }
        Ok(outcome)
    }

    async fn post_mail(&self, mail: &Mail) -> Result<SendOutcome> {
        // A process that was suspended may have lost its claims, and other nodes may have sent the mail since.
        if !self.inner.services.guard.node().is_confirmed() {
            return Ok(SendOutcome::Uncertain);
        }
        Ok(match Box::pin(self.inner.services.mailer.send(mail)).await {
            Ok(()) => SendOutcome::Sent,
            Err(error) if error.is_temporary() => SendOutcome::Retry(error.to_string(), None),
            Err(error) => SendOutcome::Failed(error.to_string()),
        })
    }
}

/// Returns the metric label and the outcome of an attempt; `result` is `None` if a shutdown interrupted it.
fn outcome_of_attempt(
    message: &OutboxMessage,
    result: Option<&SendOutcome>,
    policy: RetryPolicy,
    end: AttemptEnd,
) -> (&'static str, MessageOutcome) {
    let (text, after) = match result {
        // Not a failure of the message, so the attempt does not count.
        None | Some(SendOutcome::Uncertain) => return ("released", MessageOutcome::Released),
        Some(SendOutcome::Sent) => return ("sent", MessageOutcome::Done),
        // An invalid token never becomes valid, and its device is removed.
        Some(SendOutcome::Dropped | SendOutcome::InvalidToken(_)) => {
            return ("dropped", MessageOutcome::Done);
        }
        Some(SendOutcome::Unwanted(reason, _)) => return (reason, MessageOutcome::Done),
        Some(SendOutcome::Postponed(at, why)) => {
            return (
                "postponed",
                MessageOutcome::Postponed { at: *at, error: shorten_reason(why) },
            );
        }
        Some(SendOutcome::Failed(text)) => {
            return ("parked", MessageOutcome::Parked { error: shorten_reason(text) });
        }
        Some(SendOutcome::Retry(text, after)) => (text, after),
    };
    let name = message.id.to_string();
    let next = policy.next_attempt(&name, message.attempts, message.queued, end);
    let Some(at) = next else {
        let error = format!("given up after {} tries: {text}", message.attempts);
        return ("parked", MessageOutcome::Parked { error: shorten_reason(&error) });
    };
    // Respects the provider's `Retry-After`, up to the deadline.
    let requested = after.map(|after| end.at.saturating_add(after.min(policy.deadline)));
    let requested = requested.and_then(|requested| requested.ok()).unwrap_or(end.at);
    ("retry", MessageOutcome::Retry { at: at.max(requested), error: shorten_reason(text) })
}

fn error_of(outcome: &MessageOutcome) -> &str {
    match outcome {
        MessageOutcome::Done | MessageOutcome::Released => "",
        MessageOutcome::Retry { error, .. }
        | MessageOutcome::Postponed { error, .. }
        | MessageOutcome::Parked { error } => error,
    }
}
