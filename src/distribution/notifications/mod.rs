//! Notifications: items that match what users asked for, on their way to those users (contract
//! notifications-5).
//!
//! [`Notifications::step`] reads the item log in order. In one transaction a batch of it fills the
//! queues and the outbox and moves on, so that a crash loses and doubles nothing. Streams are read
//! with [`Notifications::read_stream`]; the outbox is sent by [`Notifications::send`].

mod account_mails;
mod digest;
#[cfg(test)]
mod digest_tests;
pub mod json;
mod mails;
mod matching;
mod notification_matcher;
mod outbox;
mod send;
#[cfg(test)]
mod send_tests;
mod stream_read;
mod streams;
mod unsubscribe;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};
use tokio::sync::{Notify, Semaphore, watch};
use uuid::Uuid;

pub use outbox::{MessageChoice, MessageOutbox};
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
use crate::runtime::limits::{NOTIFICATIONS_PER_USER_MAX, STREAM_ANSWERS_MAX, STREAM_EXPIRY};
use crate::runtime::slots::SlotLimits;
use crate::storage::database::{CommitWatcher, Db, NewNotification, WriteTx};
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

/// How notifications work.
#[derive(Clone, Debug)]
pub struct NotificationSettings {
    /// Polls of streams that may wait at a time.
    pub polls: SlotLimits,
    /// Mails sent at a time.
    pub mail_workers: usize,
    /// Push messages sent at a time, to Apple's devices and to others each.
    pub push_workers: usize,
    /// When a message that failed is tried again.
    pub retry: RetryPolicy,
    /// Whose midnights words of dates mean.
    pub zone: TimeZone,
    /// Base of the addresses in mails.
    pub site_url: String,
    /// Name of the service in mails.
    pub site_name: String,
}

impl NotificationSettings {
    /// The settings of the section `notifications` and what mails show.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let section = &config.notifications;
        Self {
            // All readers of streams are known users, so nothing is reserved for them.
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

/// What notifications work with.
pub struct NotificationServices {
    /// The database.
    pub db: Db,
    /// Writes the answers of streams.
    pub content: Content,
    /// Makes the pictures in mails.
    pub media: Media,
    /// Whose notifications they are.
    pub auth: Auth,
    /// Writes links by which users set a password.
    pub users: Users,
    /// Sends mails.
    pub mailer: Mailer,
    /// Writes their texts.
    pub mail_templates: MailTemplates,
    /// Says whether a mail may be sent.
    pub recipients: Recipients,
    /// Sends push messages.
    pub push: Push,
    /// The node that sends, and the clock that may say that something was tried for long enough.
    pub guard: ClusterGuard,
}

/// Notifications; cheap to clone.
#[derive(Clone)]
pub struct Notifications {
    inner: Arc<NotificationsInner>,
}

struct NotificationsInner {
    services: NotificationServices,
    settings: HotSwap<NotificationSettings>,
    signer: IdSigner,
    streams: Arc<StreamQueues>,
    /// Answers that are written at a time.
    answers: Semaphore,
    matcher: Arc<Mutex<NotificationMatcher>>,
    /// Wakes those who send, in the order of the lanes.
    wakes: [Notify; MessageTransport::ALL.len()],
    /// Set when what is being sent is to be left alone.
    abandon: watch::Sender<bool>,
    /// Rows of the notifications' log that the last sweeps had read, and when.
    log_read: Mutex<LogRead>,
    /// Items at which matching stands.
    unreadable: Mutex<matching::UnreadableItems>,
    /// The last turn of streams that readers were woken for.
    woken: Mutex<i64>,
}

/// How far the notifications' log was read by some time, and by an earlier one: rows are kept for others
/// for as long as lies between.
#[derive(Default)]
struct LogRead {
    earlier: i64,
    later: (i64, Option<Stopwatch>),
}

/// What a user writes about a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationDraft {
    /// The media type of the address it is made at; `None`: `_all`.
    pub media_type: Option<MediaType>,
    /// Its title.
    pub title: String,
    /// Which items.
    pub question: SavedQuery,
    /// How the user learns of them.
    pub way: NotificationMethod,
}

impl Notifications {
    /// Notifications in the database of `services`, and the work of its streams, which
    /// [`Notifications::serve_streams`] does.
    ///
    /// Notes that the service lives; where the disk is full that comes before streams are read. Fails when
    /// the database cannot be read.
    pub fn start(
        services: NotificationServices,
        settings: NotificationSettings,
        now: Timestamp,
    ) -> Result<(Self, StreamCommands)> {
        let (streams, asks) = StreamQueues::new(settings.polls, services.guard.node().clone());
        let db = services.db.clone();
        let signer = IdSigner::open(&db, UNSUBSCRIBE_KEY)?;
        if !services.guard.node().role().is_read_only() {
            match db
                .write_blocking(move |tx| notification_matcher::record_heartbeat(tx, now))
                .map_err(Error::from)
            {
                Err(cause) if cause.kind() == ErrorKind::Unavailable => {
                    tracing::error!(
                        "the database cannot be written, mails and streams wait: {cause}"
                    );
                }
                outcome => outcome?,
            }
        }
        let woken = Mutex::new(db.read_blocking(|tx| tx.stream_sequence())?);
        let inner = NotificationsInner {
            matcher: Arc::new(Mutex::new(NotificationMatcher::new(settings.zone.clone()))),
            services,
            settings: HotSwap::new(settings),
            signer,
            streams,
            answers: Semaphore::new(STREAM_ANSWERS_MAX),
            wakes: MessageTransport::ALL.map(|_| Notify::new()),
            abandon: watch::Sender::new(false),
            log_read: Mutex::default(),
            unreadable: Mutex::default(),
            woken,
        };
        Ok((Self { inner: Arc::new(inner) }, asks))
    }

    /// Works by other settings from now on, but for the polls that may wait.
    pub fn set_settings(&self, settings: NotificationSettings) {
        self.inner.settings.set(settings);
        self.inner.wakes.iter().for_each(Notify::notify_one);
    }

    /// Does the work of streams for as long as this is there; `now` tells the time.
    pub fn serve_streams(
        &self,
        asks: StreamCommands,
        now: fn() -> Timestamp,
    ) -> impl Future<Output = ()> + use<> {
        asks.run(self.db().clone(), Arc::downgrade(&self.inner.streams), now)
    }

    fn db(&self) -> &Db {
        &self.inner.services.db
    }

    /// Notices what any process writes to the database of notifications.
    pub fn pulse(&self) -> Result<CommitWatcher> {
        Ok(self.db().commit_watcher()?)
    }

    /// Wakes readers of streams in whose queues something is that was not there at the last call,
    /// whichever node put it there. One read, however many wait. Blocks.
    pub fn wake_readers(&self) -> Result<()> {
        let streams = &self.inner.streams;
        let mut woken = self.inner.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let after = *woken;
        // Who comes behind this look sees what it saw.
        let turn = self.db().read_blocking(|tx| tx.stream_sequence())?;
        if turn < after {
            // The database lost what was read.
            streams.wake_all();
        }
        if turn <= after || streams.is_idle() {
            *woken = turn;
            return Ok(());
        }
        let (turn, freed) =
            self.db().read_blocking(move |tx| tx.freed_streams(after, STREAM_WAKES_MAX))?;
        match freed {
            Some(ids) => streams.wake(&ids),
            None => streams.wake_all(),
        }
        *woken = turn.max(after);
        Ok(())
    }

    /// The caller's notifications of `media_type`; of every one where it is `None`.
    ///
    /// One that was made at `_all` is listed at `_all` alone (contract notifications-3).
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

    /// Makes a notification of the caller.
    ///
    /// Fails with [`ErrorKind::Overloaded`] when the user has [`NOTIFICATIONS_PER_USER_MAX`].
    pub async fn create(
        &self,
        caller: &Principal,
        draft: NotificationDraft,
        now: Timestamp,
    ) -> Result<Notification> {
        caller.require(Permission::WriteNotifications)?;
        let new = written(caller, Uuid::new_v4(), draft, now)?;
        let write = move |tx: &WriteTx<'_>| {
            let read = tx.as_read();
            if read.count_notifications(new.user)? >= NOTIFICATIONS_PER_USER_MAX {
                return Ok(None);
            }
            tx.insert_notification(&new, now)?;
            read.find_notification(new.id)
        };
        let full = || {
            let message = format!("The user has {NOTIFICATIONS_PER_USER_MAX} notifications");
            Error::overloaded("notifications", message)
        };
        self.db().write(write).await?.ok_or_else(full)
    }

    /// Replaces what the caller's notification `id` says.
    ///
    /// Its type and its media type stay, and so does what waits in its queue (contract
    /// notifications-4). Fails with [`Kind::NotFound`] for another's, another type's
    /// and an expired one.
    pub async fn replace(
        &self,
        caller: &Principal,
        id: Uuid,
        draft: NotificationDraft,
        now: Timestamp,
    ) -> Result<Notification> {
        caller.require(Permission::WriteNotifications)?;
        let new = written(caller, id, draft, now)?;
        let write = move |tx: &WriteTx<'_>| {
            let is_stream = new.way.kind() == NotificationKind::Stream;
            let expired = now - STREAM_EXPIRY;
            if is_stream && tx.as_read().find_stream(id, new.user, expired)?.is_none() {
                return Ok(None);
            }
            match tx.replace_notification(&new, now)? {
                true => tx.as_read().find_notification(id),
                false => Ok(None),
            }
        };
        self.db().write(write).await?.ok_or_else(|| none(id))
    }

    /// Removes the caller's notification `id` with what waits for it.
    ///
    /// One that is not there is [`Kind::NotFound`], as with `PUT` (contract notifications-3).
    pub async fn delete(&self, caller: &Principal, id: Uuid) -> Result<()> {
        caller.require(Permission::WriteNotifications)?;
        let user = caller.user().id;
        let gone = self.db().write(move |tx| tx.delete_notification(id, Some(user))).await?;
        if gone {
            // Who waits for it is told at once.
            self.inner.streams.wake(&[id]);
            return Ok(());
        }
        Err(none(id))
    }
}

fn none(id: Uuid) -> Error {
    Error::new(ErrorKind::NotFound, format!("no notification {id}"))
}

/// The row of a draft.
fn written(
    caller: &Principal,
    id: Uuid,
    draft: NotificationDraft,
    now: Timestamp,
) -> Result<NewNotification> {
    let next = match &draft.way {
        NotificationMethod::Mobile
        | NotificationMethod::Email { .. }
        | NotificationMethod::Stream => None,
        NotificationMethod::ScheduledEmail { schedule, timezone, .. } => {
            let wrong = |cause: model::schedule::ScheduleError| {
                Error::invalid("query", "schedule", "format", cause.to_string())
            };
            Schedule::parse(schedule, timezone).map_err(wrong)?.next_after(now)
        }
    };
    let NotificationDraft { media_type, title, question, way } = draft;
    let user = caller.user().id;
    Ok(NewNotification { id, user, media_type, title, question, way, next })
}
