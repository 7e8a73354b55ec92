//! Notifications: matches new items against users' saved queries and sends the matches by stream, mail and push
//! (contract notifications-5).
//!
//! [`Notifications::step`] reads the item log in order. One transaction fills the queues and the outbox from a
//! batch of rows and advances the position in the log, so that a crash neither loses nor duplicates anything.
//! [`Notifications::read_stream`] reads streams; [`Notifications::send`] sends the outbox.

mod account_mails;
mod digest;
#[cfg(test)]
mod digest_tests;
pub mod json;
mod mails;
mod match_batch;
mod matching;
mod notification_matcher;
mod outbox;
mod send;
#[cfg(test)]
mod send_tests;
mod stream_read;
#[cfg(test)]
mod stream_tests;
mod streams;
mod unsubscribe;
pub mod view;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;
use strum::EnumCount;
use tokio::sync::{Notify, Semaphore, watch};
use uuid::Uuid;

pub use outbox::MessageOutbox;
pub use stream_read::{StreamAcknowledgement, StreamResponse};
pub use streams::StreamCommands;
pub use unsubscribe::LinkedSubscription;

use crate::access::auth::{Auth, IdSigner, Principal};
use crate::access::users::Users;
use crate::archive::content::Content;
use crate::cluster::guard::ClusterGuard;
use crate::cluster::membership::limits::STREAM_WAKES_MAX;
use crate::distribution::recipients::Recipients;
use crate::media::Media;
use crate::runtime::clock::Stopwatch;
use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::limits::{NOTIFICATIONS_PER_USER_MAX, STREAM_EXPIRY};
use crate::runtime::slots::SlotLimits;
use crate::storage::database::{CommitWatcher, Db, NewNotification};
use crate::storage::search::DocumentAnalysis;
use crate::transport::Mailer;
use crate::transport::mail_templates::MailTemplates;
use crate::transport::push::Push;
use model::account::{
    MessageTransport, Notification, NotificationKind, NotificationMethod, Permission, SavedQuery,
};
use model::limits::DELIVERY_WAIT_MAX;
use model::schedule::Schedule;
use model::{MediaType, RetryPolicy};
use notification_matcher::NotificationMatcher;
use streams::StreamQueues;
use unsubscribe::UNSUBSCRIBE_KEY;

/// Stream responses built concurrently; each waits for a search thread.
const STREAM_ANSWERS_MAX: usize = 64;

/// Limits and timings of notifications.
#[derive(Clone, Debug)]
pub struct NotificationSettings {
    /// The limits on concurrent long polls of streams.
    pub polls: SlotLimits,
    /// The maximum number of mails in flight.
    pub mail_workers: usize,
    /// The maximum number of push messages in flight, for each of APNs and FCM.
    pub push_workers: usize,
    /// The backoff and the deadline for retries of failed messages.
    pub retry: RetryPolicy,
    /// The time zone of relative dates in queries and of times in mails.
    pub zone: TimeZone,
    /// The base URL of the links in mails.
    pub site_url: String,
    /// The name of the service in mails.
    pub site_name: String,
}

impl NotificationSettings {
    /// Reads the section `notifications` and the settings that mails show.
    pub fn from_config(config: &Config) -> Self {
        let section = &config.notifications;
        Self {
            // All readers of streams are authenticated, so no share is reserved for known users.
            polls: SlotLimits {
                all: section.polls,
                client: section.client_polls,
                known_share: 0.0,
            },
            mail_workers: section.mail_workers,
            push_workers: section.push_workers,
            retry: RetryPolicy {
                first: Duration::from_millis(u64::from(section.retry_first_ms)),
                longest: DELIVERY_WAIT_MAX,
                deadline: Duration::from_secs(u64::from(section.retry_hours) * 3600),
            },
            zone: config.ingest.timezone.0.clone(),
            site_url: config.site_url().to_owned(),
            site_name: config.server.site_name.clone(),
        }
    }
}

/// The components that notifications depend on.
pub struct NotificationServices {
    pub db: Db,
    /// Renders the responses of streams.
    pub content: Content,
    /// Renders the pictures in mails.
    pub media: Media,
    /// Looks up the users of notifications.
    pub auth: Auth,
    /// Creates links for setting a password.
    pub users: Users,
    pub mailer: Mailer,
    /// Renders the texts of mails.
    pub mail_templates: MailTemplates,
    /// Decides whether a mail may be sent.
    pub recipients: Recipients,
    pub push: Push,
    /// The node that sends, and the clock guard that decides whether a retry deadline counts.
    pub guard: ClusterGuard,
}

/// The notification service; cheap to clone.
#[derive(Clone)]
pub struct Notifications {
    inner: Arc<NotificationsInner>,
}

struct NotificationsInner {
    services: NotificationServices,
    settings: HotSwap<NotificationSettings>,
    signer: IdSigner,
    streams: Arc<StreamQueues>,
    /// Limits the number of responses rendered at a time.
    answers: Semaphore,
    matcher: Arc<Mutex<NotificationMatcher>>,
    /// Wakes the senders, indexed by transport.
    wakes: [Notify; MessageTransport::COUNT],
    /// Set at shutdown to release messages in flight.
    abandon: watch::Sender<bool>,
    /// The positions in the notification log at recent sweeps.
    log_read: Mutex<LogRead>,
    /// Unreadable items that block matching.
    unreadable: Mutex<matching::UnreadableItems>,
    /// The stream sequence number up to which readers were woken.
    woken: Mutex<i64>,
}

/// The positions in the notification log at two points in time. Rows between them are retained for standby nodes,
/// which may not have read them yet.
#[derive(Default)]
struct LogRead {
    earlier: i64,
    later: (i64, Option<Stopwatch>),
}

/// The notification to write according to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationDraft {
    /// The media type in the URL of the request; `None` for `_all`.
    pub media_type: Option<MediaType>,
    pub title: String,
    /// The query that items have to match.
    pub question: SavedQuery,
    /// The method by which matches are sent to the user.
    pub method: NotificationMethod,
}

impl Notifications {
    /// Starts notifications over the database of `services`. Returns them with the commands of their streams,
    /// which [`Notifications::serve_streams`] executes.
    ///
    /// Records a heartbeat. If the disk is full, the heartbeat is recorded later, before streams are read. Fails
    /// if the database cannot be read.
    pub fn start(
        services: NotificationServices,
        settings: NotificationSettings,
        now: Timestamp,
    ) -> Result<(Self, StreamCommands)> {
        let (streams, commands) = StreamQueues::new(settings.polls, services.guard.node().clone());
        let db = services.db.clone();
        let signer = IdSigner::open(&db, UNSUBSCRIBE_KEY)?;
        if !services.guard.node().role().is_read_only() {
            match db
                .write_blocking(move |tx| notification_matcher::record_heartbeat(tx, now))
                .map_err(Error::from)
            {
                // A node with a full disk still serves requests that need no write, such as media.
                Err(cause) if cause.kind() == ErrorKind::Unavailable => {
                    tracing::error!(
                        "database write failed at startup, mails and streams wait: {cause}"
                    );
                }
                outcome => outcome?,
            }
        }
        let woken = Mutex::new(db.read_blocking(|tx| tx.stream_sequence())?);
        let rights = Arc::clone(&services.media.settings().rights);
        let analysis = DocumentAnalysis { zone: settings.zone.clone(), rights };
        let inner = NotificationsInner {
            matcher: Arc::new(Mutex::new(NotificationMatcher::new(analysis))),
            services,
            settings: HotSwap::new(settings),
            signer,
            streams,
            answers: Semaphore::new(STREAM_ANSWERS_MAX),
            wakes: Default::default(),
            abandon: watch::Sender::new(false),
            log_read: Mutex::default(),
            unreadable: Mutex::default(),
            woken,
        };
        Ok((Self { inner: Arc::new(inner) }, commands))
    }

    /// Replaces the settings, except for the limits on polls, which need a restart.
    pub fn set_settings(&self, settings: NotificationSettings) {
        self.inner.settings.set(settings);
        self.inner.wakes.iter().for_each(Notify::notify_one);
    }

    /// Executes the commands of stream readers until the future is dropped; `now` reads the clock.
    pub fn serve_streams(
        &self,
        commands: StreamCommands,
        now: fn() -> Timestamp,
    ) -> impl Future<Output = ()> + use<> {
        commands.run(self.db().clone(), Arc::downgrade(&self.inner.streams), now)
    }

    fn db(&self) -> &Db {
        &self.inner.services.db
    }

    /// Returns a watcher for commits of any process to the notifications' database.
    pub fn commit_watcher(&self) -> Result<CommitWatcher> {
        Ok(self.db().commit_watcher()?)
    }

    /// Wakes readers of streams whose queues received items since the last call, from any node. Costs one read
    /// regardless of the number of waiting readers. Blocks.
    pub fn wake_readers(&self) -> Result<()> {
        let streams = &self.inner.streams;
        let mut woken = self.inner.woken.lock();
        let after = *woken;
        // A reader that starts after this read sees the same items itself.
        let sequence = self.db().read_blocking(|tx| tx.stream_sequence())?;
        if sequence < after {
            // The sequence went backwards, so the database was restored from an older state.
            streams.wake_all();
        }
        // A reader that arrives later reads its queue itself, so the position can advance without readers.
        if sequence <= after || streams.is_idle() {
            *woken = sequence;
            return Ok(());
        }
        let (sequence, available) =
            self.db().read_blocking(move |tx| tx.available_streams(after, STREAM_WAKES_MAX))?;
        match available {
            Some(ids) => streams.wake(&ids),
            // More streams changed than the limit, so all readers check their streams.
            None => streams.wake_all(),
        }
        *woken = sequence.max(after);
        Ok(())
    }

    /// Lists the caller's notifications of `media_type`, or of all media types if it is `None`.
    ///
    /// A notification that was created at `_all` is listed only at `_all` (contract notifications-3).
    pub async fn list(
        &self,
        caller: &Principal,
        media_type: Option<MediaType>,
        now: Timestamp,
    ) -> Result<Vec<Notification>> {
        caller.require(Permission::ReadNotifications)?;
        let user = caller.user().id;
        let expired = now - STREAM_EXPIRY;
        let media_type = media_type.map(MediaType::as_str);
        Ok(self.db().read(move |tx| tx.list_notifications(user, media_type, expired)).await?)
    }

    /// Creates a notification for the caller.
    ///
    /// Fails with [`ErrorKind::Overloaded`] if the user already has [`NOTIFICATIONS_PER_USER_MAX`] notifications.
    pub async fn create(
        &self,
        caller: &Principal,
        draft: NotificationDraft,
        now: Timestamp,
    ) -> Result<Notification> {
        caller.require(Permission::WriteNotifications)?;
        let new = validate(caller, Uuid::new_v4(), draft, now)?;
        let creation = self.db().write(move |tx| {
            // Counted in the transaction that inserts, or concurrent requests could exceed the limit.
            if tx.count_notifications(new.user)? >= NOTIFICATIONS_PER_USER_MAX {
                return Ok(None);
            }
            tx.insert_notification(&new, now)?;
            tx.find_notification(new.id)
        });
        creation.await?.ok_or_else(|| {
            let message = format!("The user has {NOTIFICATIONS_PER_USER_MAX} notifications");
            Error::overloaded("notifications", message)
        })
    }

    /// Replaces the caller's notification `id`.
    ///
    /// Preserves its type, its media type and the items in its queue (contract notifications-4). Fails with
    /// [`ErrorKind::NotFound`] for a notification of a different user or type, and for an expired stream.
    pub async fn replace(
        &self,
        caller: &Principal,
        id: Uuid,
        draft: NotificationDraft,
        now: Timestamp,
    ) -> Result<Notification> {
        caller.require(Permission::WriteNotifications)?;
        let new = validate(caller, id, draft, now)?;
        let replacement = self.db().write(move |tx| {
            let is_stream = new.method.kind() == NotificationKind::Stream;
            let expired = now - STREAM_EXPIRY;
            // An expired stream that was not swept yet counts as missing.
            if is_stream && tx.find_stream(id, new.user, expired)?.is_none() {
                return Ok(None);
            }
            // Changes no row if the notification has a different owner or type.
            if !tx.replace_notification(&new, now)? {
                return Ok(None);
            }
            tx.find_notification(id)
        });
        replacement.await?.ok_or_else(|| not_found(id))
    }

    /// Removes the caller's notification `id` with its queued items and messages.
    ///
    /// Fails with [`ErrorKind::NotFound`] if it does not exist, like `PUT` (contract notifications-3).
    pub async fn delete(&self, caller: &Principal, id: Uuid) -> Result<()> {
        caller.require(Permission::WriteNotifications)?;
        let user = caller.user().id;
        let is_deleted = self.db().write(move |tx| tx.delete_notification(id, Some(user))).await?;
        if is_deleted {
            // Notifies waiting readers at once that the stream was removed.
            self.inner.streams.wake(&[id]);
            return Ok(());
        }
        Err(not_found(id))
    }
}

fn not_found(id: Uuid) -> Error {
    Error::new(ErrorKind::NotFound, format!("no notification {id}"))
}

/// Validates a draft and converts it to a database row.
fn validate(
    caller: &Principal,
    id: Uuid,
    draft: NotificationDraft,
    now: Timestamp,
) -> Result<NewNotification> {
    let NotificationDraft { media_type, title, question, method } = draft;
    let mut next = None;
    if let NotificationMethod::ScheduledEmail { schedule, timezone, .. } = &method {
        let schedule = Schedule::parse(schedule, timezone)
            .map_err(|cause| Error::invalid("query", "schedule", "format", cause.to_string()))?;
        next = schedule.next_after(now);
    }
    let user = caller.user().id;
    Ok(NewNotification { id, user, media_type, title, question, method, next })
}
