//! Sends what is due in the outbox, mails and push messages apart.
//!
//! What a node takes up is its own as long as its life lasts. Where a claim fails it may have been done all
//! the same, as when the connection to the database breaks under the answer: before the next one, messages that this
//! life holds and this process does not send wait again.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use uuid::Uuid;

use super::Notifications;
use super::mails::AddressedMessage;
use crate::cluster::jobs::{self, BackgroundJob, JobSpec, RunOutcome};
use crate::cluster::membership::{InFlightTasks, limits::OUTCOME_RETRY_INTERVAL};
use crate::distribution::recipients::MailClearance;
use crate::runtime::clock;
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{MESSAGE_TIME, OUTBOX_POLL_INTERVAL};
use crate::runtime::telemetry;
use crate::storage::database::{ClaimTx, ClaimedBy, DbError, MessageOutcome, ReadTx, WriteTx};
use crate::transport::Mail;
use crate::transport::mail_templates::MailOccasion;
use crate::transport::push::PushError;
use model::account::{
    DeviceKind, MessageContent, MessageTransport, OutboxMessage, UserId, shorten_reason,
};
use model::{AttemptEnd, RetryPolicy};

/// How a try ended.
enum SendOutcome {
    /// The other side has it.
    Sent,
    /// There is nothing to send any more.
    Dropped,
    /// The recipient takes no mails of the user: the word in metrics, and a sentence.
    Unwanted(&'static str, String),
    /// It may not be sent before a time.
    Postponed(jiff::Timestamp, String),
    /// The device's token is dead.
    InvalidToken(String),
    /// Another node may have taken it up.
    Uncertain,
    /// A later try may help.
    Retry(String, Option<Duration>),
    /// No try helps.
    Failed(String),
}

impl From<Error> for SendOutcome {
    fn from(error: Error) -> Self {
        if let Some(cause) = error.cause() {
            tracing::warn!("a message has to wait: {}: {cause}", error.message());
        }
        match error.kind() {
            ErrorKind::InvalidArgument | ErrorKind::Unsupported | ErrorKind::TooLarge => {
                Self::Failed(error.message().to_owned())
            }
            ErrorKind::Unauthenticated
            | ErrorKind::Forbidden
            | ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::Overloaded
            | ErrorKind::Timeout
            | ErrorKind::Unavailable
            | ErrorKind::Internal => Self::Retry(error.message().to_owned(), None),
        }
    }
}

/// What became of a message.
struct FinishedMessage {
    id: Uuid,
    user: UserId,
    sent: MessageOutcome,
    /// The token of a device that is no more.
    invalid_token: Option<String>,
    by: ClaimedBy,
}

/// What is being sent of a lane.
#[derive(Default)]
pub(super) struct OutboxInFlight {
    pub(super) messages: InFlightTasks<Uuid>,
    /// Whether a claim failed that may have been done.
    is_doubtful: bool,
}

/// The messages of a lane, as a job.
struct OutboxJob {
    notifications: Notifications,
    lane: MessageTransport,
    sending: OutboxInFlight,
}

impl BackgroundJob for OutboxJob {
    type Error = Error;

    fn spec(&self) -> JobSpec {
        let name = match self.lane {
            MessageTransport::Mail => "mail-outbox",
            MessageTransport::Apple => "apple-push-outbox",
            MessageTransport::Google => "google-push-outbox",
        };
        JobSpec::every(name, OUTBOX_POLL_INTERVAL)
    }

    async fn run(&mut self) -> Result<RunOutcome> {
        self.notifications.start_due(self.lane, &mut self.sending).await.map(RunOutcome::DueAfter)
    }

    async fn woken(&mut self) {
        tokio::select! {
            () = self.notifications.inner.wakes[self.lane.index()].notified() => {}
            Some(()) = self.sending.messages.next_ended() => {}
        }
    }
}

impl Notifications {
    /// Sends what is due in a lane, some at a time, until `stop` turns true. What is being sent then
    /// has `drain` to finish; what does not is queued again.
    pub async fn send(self, lane: MessageTransport, stop: watch::Receiver<bool>, drain: Duration) {
        let inner = Arc::clone(&self.inner);
        let mut outbox =
            OutboxJob { notifications: self, lane, sending: OutboxInFlight::default() };
        jobs::run(&mut outbox, &inner.services.guard, jobs::stopped(stop)).await;
        outbox.sending.messages.drain(drain, &inner.abandon).await;
    }

    /// Starts what is due as far as there is room; the time until the next look.
    pub(super) async fn start_due(
        &self,
        lane: MessageTransport,
        sending: &mut OutboxInFlight,
    ) -> Result<Duration> {
        let settings = self.inner.settings.get();
        let workers = match lane {
            MessageTransport::Mail => settings.mail_workers,
            MessageTransport::Apple | MessageTransport::Google => settings.push_workers,
        };
        let room = workers.saturating_sub(sending.messages.count());
        if sending.is_doubtful {
            self.release_lost(lane, sending).await?;
        }
        let next = self.db().read(move |tx: &ReadTx<'_>| tx.next_message(lane)).await?;
        let now = clock::now();
        let Some(next) = next.filter(|_| room > 0) else { return Ok(OUTBOX_POLL_INTERVAL) };
        if next > now {
            let wait = Duration::try_from(next.duration_since(now)).unwrap_or_default();
            return Ok(wait.min(OUTBOX_POLL_INTERVAL));
        }
        let by = ClaimedBy { incarnation: self.inner.services.guard.node().incarnation(), now };
        let claim = move |tx: &ClaimTx<'_>| tx.claim_messages(lane, room, by);
        let claimed = self.db().claim(claim).await;
        sending.is_doubtful = claimed.is_err();
        for message in claimed? {
            // One whose end was written without an answer that came is still being ended here: that end
            // is written again, and says what becomes of it. Two tries at once would be two messages.
            if !sending.messages.held().any(|one| *one == message.id) {
                sending
                    .messages
                    .start(message.id, self.clone().send_one(lane, message, by.incarnation));
            }
        }
        // The next look comes with the first that ends, or when more is due.
        Ok(OUTBOX_POLL_INTERVAL)
    }

    /// Frees what this life holds in a lane and nobody sends.
    async fn release_lost(
        &self,
        lane: MessageTransport,
        sending: &mut OutboxInFlight,
    ) -> Result<()> {
        let by = ClaimedBy {
            incarnation: self.inner.services.guard.node().incarnation(),
            now: clock::now(),
        };
        let messages: Vec<Uuid> = sending.messages.held().copied().collect();
        let free = move |tx: &ClaimTx<'_>| tx.release_lost_messages(lane, &messages, by);
        let freed = self.db().claim(free).await?;
        sending.is_doubtful = false;
        if freed > 0 {
            tracing::warn!(
                messages = freed,
                lane = lane.as_str(),
                "messages were taken up without an answer, they wait again"
            );
        }
        Ok(())
    }

    /// Tries to send a message and writes how that ended.
    async fn send_one(self, lane: MessageTransport, message: OutboxMessage, life: Uuid) {
        let watch = Stopwatch::start();
        let attempt = AssertUnwindSafe(self.attempt(&message)).catch_unwind();
        let attempt = tokio::time::timeout(MESSAGE_TIME, Box::pin(attempt));
        let mut abandon = self.inner.abandon.subscribe();
        let tried = tokio::select! {
            tried = attempt => Some(match tried {
                Ok(Ok(tried)) => tried,
                Ok(Err(_panic)) => SendOutcome::Retry("it failed inside the service".to_owned(), None),
                Err(_) => SendOutcome::Retry("not done within the time that it may take".to_owned(), None),
            }),
            _ = abandon.wait_for(|abandon| *abandon) => None,
        };
        let now = clock::now();
        let is_clock_trusted = self.inner.services.guard.trusts_clock();
        let end = AttemptEnd { at: now, is_clock_trusted };
        let policy = self.inner.settings.get().retry;
        let (word, sent) = outcome_of_attempt(&message, tried.as_ref(), policy, end);
        let lane = lane.as_str();
        metrics::counter!(telemetry::MESSAGES, "lane" => lane, "outcome" => word).increment(1);
        let seconds = watch.elapsed().as_secs_f64();
        metrics::histogram!(telemetry::MESSAGE_SECONDS, "lane" => lane).record(seconds);
        let error = match &tried {
            Some(SendOutcome::InvalidToken(said) | SendOutcome::Unwanted(_, said)) => {
                said.as_str()
            }
            _ => error_of(&sent),
        };
        let OutboxMessage { id, number, attempts, .. } = message;
        let ms = watch.elapsed().as_millis();
        tracing::info!(
            message = %id, notification = number, lane, outcome = word, attempts, ms, error,
            "message"
        );
        let dead = match (&tried, &message.content) {
            (Some(SendOutcome::InvalidToken(_)), MessageContent::Push { token, .. }) => {
                Some(token.clone())
            }
            (Some(_) | None, _) => None,
        };
        // What another node may have is due a little later: who looks at once doubts again.
        let rest = if matches!(tried, Some(SendOutcome::Uncertain)) {
            OUTCOME_RETRY_INTERVAL
        } else {
            Duration::ZERO
        };
        let now = now.saturating_add(rest).unwrap_or(now);
        let end = FinishedMessage {
            id,
            user: message.user,
            sent,
            invalid_token: dead,
            by: ClaimedBy { incarnation: life, now },
        };
        self.write_end(end).await;
    }

    /// Writes how a message ended, as often as it takes: it is this life's until then, so that what was
    /// sent is not sent again.
    async fn write_end(&self, end: FinishedMessage) {
        let end = Arc::new(end);
        let mut abandon = self.inner.abandon.subscribe();
        let mut is_told = false;
        while let Err(cause) = self.write_end_once(Arc::clone(&end)).await {
            if !is_told {
                tracing::error!(message = %end.id, "how a message ended cannot be written: {cause}");
            }
            is_told = true;
            tokio::select! {
                () = tokio::time::sleep(OUTCOME_RETRY_INTERVAL) => {}
                // The next life of this node sends it again.
                _ = abandon.wait_for(|abandon| *abandon) => return,
            }
        }
    }

    async fn write_end_once(&self, end: Arc<FinishedMessage>) -> Result<(), DbError> {
        let id = end.id;
        let write = move |tx: &WriteTx<'_>| {
            let held = tx.end_message(end.id, &end.sent, end.by)?;
            if let Some(token) = end.invalid_token.as_ref().filter(|_| held) {
                tx.delete_device(end.user, token)?;
            }
            Ok(held)
        };
        if !self.db().write(write).await? {
            tracing::warn!(message = %id, "another node took a message up meanwhile");
        }
        Ok(())
    }

    async fn attempt(&self, message: &OutboxMessage) -> SendOutcome {
        match self.attempt_once(message).await {
            Ok(tried) => tried,
            Err(error) => error.into(),
        }
    }

    /// Writes a message with what its items are now, and sends it.
    async fn attempt_once(&self, message: &OutboxMessage) -> Result<SendOutcome> {
        if self.inner.settings.get().retry.is_exhausted(message.attempts) {
            let tries = message.attempts - 1;
            let text = format!("given up after {tries} tries, the last of which did not end");
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
        let (Some(notification), Some(user)) = (found, user) else {
            return Ok(SendOutcome::Dropped);
        };
        let now = clock::now();
        let addressed =
            AddressedMessage { id: message.id, notification: &notification, user: &user, now };
        match &message.content {
            MessageContent::Item { .. } => {
                self.post(&addressed, message.content.items(), MailOccasion::Item, 0).await
            }
            MessageContent::Digest { items, more } => {
                self.post(&addressed, items, MailOccasion::Digest, *more).await
            }
            // Sent above: they belong to no notification.
            MessageContent::DeviceMoved { .. }
            | MessageContent::SetPassword { .. }
            | MessageContent::PasswordChanged
            | MessageContent::KeyMade { .. }
            | MessageContent::NewBrowser { .. } => Ok(SendOutcome::Dropped),
            MessageContent::Push { item, token, device } => {
                let Some(kind) = DeviceKind::find(device) else { return Ok(SendOutcome::Dropped) };
                // A phone that changed hands or was signed out gets nothing of its former user.
                let owner = message.user;
                let devices = self.db().read(move |tx| tx.list_devices(owner)).await?;
                if !devices.iter().any(|one| one.token == *token && one.kind == kind) {
                    return Ok(SendOutcome::Dropped);
                }
                let written = self.push_message(&addressed, item, kind, token).await?;
                let Some(written) = written else { return Ok(SendOutcome::Dropped) };
                if !self.inner.services.guard.node().is_confirmed() {
                    return Ok(SendOutcome::Uncertain);
                }
                Ok(match self.inner.services.push.send(&written, clock::now).await {
                    Ok(()) => SendOutcome::Sent,
                    Err(PushError::InvalidToken { said }) => SendOutcome::InvalidToken(said),
                    Err(PushError::Permanent { said }) => SendOutcome::Failed(said),
                    Err(PushError::Retry { said, after }) => SendOutcome::Retry(said, after),
                })
            }
        }
    }

    async fn post(
        &self,
        addressed: &AddressedMessage<'_>,
        items: &[String],
        occasion: MailOccasion,
        more: usize,
    ) -> Result<SendOutcome> {
        let Some(mut mail) = self.mail(addressed, items, occasion, more).await? else {
            return Ok(SendOutcome::Dropped);
        };
        let recipients = &self.inner.services.recipients;
        let user = addressed.user;
        let cleared = Box::pin(recipients.clear(user, &mail.to, addressed.now)).await?;
        let introductions = match cleared {
            MailClearance::Granted(introductions) => introductions,
            MailClearance::Postponed { at, why } => return Ok(SendOutcome::Postponed(at, why)),
            MailClearance::Refused { reason, why } => {
                return Ok(SendOutcome::Unwanted(reason, why));
            }
        };
        introductions.iter().for_each(|introduction| mail.introduce(introduction));
        let tried = self.post_mail(&mail).await?;
        let user = user.user().id;
        if matches!(tried, SendOutcome::Sent) {
            let told = recipients.record_introductions(user, &introductions, clock::now());
            if let Err(cause) = told.await {
                // The next mail says once more who has it sent.
                tracing::warn!("that a recipient was introduced cannot be written: {cause}");
            }
        } else if let Err(cause) = recipients.refund(user, &mail.to, addressed.now).await {
            tracing::warn!("a mail that was not sent stays counted: {cause}");
        }
        Ok(tried)
    }

    async fn post_mail(&self, mail: &Mail) -> Result<SendOutcome> {
        // A process that was held up for long must not send what others may have sent since.
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

/// What becomes of a message after an attempt; the stop of the service leaves one without an end.
fn outcome_of_attempt(
    message: &OutboxMessage,
    tried: Option<&SendOutcome>,
    policy: RetryPolicy,
    end: AttemptEnd,
) -> (&'static str, MessageOutcome) {
    let (text, after) = match tried {
        None | Some(SendOutcome::Uncertain) => return ("released", MessageOutcome::Released),
        Some(SendOutcome::Sent) => return ("sent", MessageOutcome::Done),
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
    let again = policy.next_attempt(&name, message.attempts, message.queued, end);
    let Some(at) = again else {
        let error = format!("given up after {} tries: {text}", message.attempts);
        return ("parked", MessageOutcome::Parked { error: shorten_reason(&error) });
    };
    // A provider that says when to come back is believed, within the time that there is.
    let asked = after.map(|after| end.at.saturating_add(after.min(policy.deadline)));
    let asked = asked.and_then(|asked| asked.ok()).unwrap_or(end.at);
    ("retry", MessageOutcome::Retry { at: at.max(asked), error: shorten_reason(text) })
}

fn error_of(sent: &MessageOutcome) -> &str {
    match sent {
        MessageOutcome::Done | MessageOutcome::Released => "",
        MessageOutcome::Retry { error, .. }
        | MessageOutcome::Postponed { error, .. }
        | MessageOutcome::Parked { error } => error,
    }
}
