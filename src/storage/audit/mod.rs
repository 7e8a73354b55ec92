//! Records the audit log: who did what, with which credentials, from which address.
//!
//! The HTTP layer wraps each request in [`scope`]. Code that runs in the request's task calls [`event`],
//! which knows the caller, so functions do not pass the caller on. A change writes its event in its own
//! transaction (`WriteTx::write_audit`), so that neither exists without the other. Events that change
//! nothing, such as a failed login, use [`record`]: a bounded queue, which `app` drains into the table in
//! batches. Every event is also a log line.
//!
//! The caller is task-local. Work that moves to a different thread carries its event along, or the whole
//! context ([`capture_context`]).

mod event;
mod throttled;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::mpsc;

pub use event::{Actor, AuditAction, AuditEvent, AuditOutcome, CredentialKind, ObjectKind};

use crate::runtime::telemetry;
use model::account::{Account, UserId};
use throttled::ThrottledLogins;

/// Events that wait to be written to the table, a few hundred bytes each. Events that do not fit are counted
/// and remain log lines only.
const AUDIT_QUEUE_MAX: usize = 4096;
/// Events written in one transaction.
const AUDIT_BATCH_EVENTS: usize = 256;
/// True if events are stored in the table, according to the setting `audit.retention_days`.
static STORES_ROWS: AtomicBool = AtomicBool::new(true);

/// Sets whether events are stored in the table or only written as log lines.
pub fn store_rows(is_enabled: bool) {
    STORES_ROWS.store(is_enabled, Ordering::Relaxed);
}

/// Returns whether events are stored in the table.
pub fn stores_rows() -> bool {
    STORES_ROWS.load(Ordering::Relaxed)
}

/// The context of the request that a task works for.
#[derive(Clone)]
struct AuditContext {
    audit: AuditLog,
    /// The caller of the request, or the operator who runs a command.
    actor: RefCell<Actor>,
    /// True if the password of this request was sent by HTTP Basic.
    is_basic: Cell<bool>,
}

tokio::task_local! {
    static CONTEXT: AuditContext;
}

/// Queues events for the table; cheap to clone.
#[derive(Clone)]
pub struct AuditLog {
    inner: Arc<AuditInner>,
}

struct AuditInner {
    /// `None` in a process that never writes to the database.
    queue: Option<mpsc::Sender<AuditEvent>>,
    /// The receiving end of the queue, until [`AuditLog::pending`] removes it.
    pending: Mutex<Option<mpsc::Receiver<AuditEvent>>>,
    throttled: Mutex<ThrottledLogins>,
    /// Events that the full queue dropped since the last call of [`PendingEvents::lost`].
    lost: AtomicU64,
}

/// The events that wait to be written, for the single task that writes them.
pub struct PendingEvents {
    audit: AuditLog,
    queue: mpsc::Receiver<AuditEvent>,
}

impl AuditLog {
    /// Creates a queue of at most [`AUDIT_QUEUE_MAX`] events.
    pub fn start() -> Self {
        let (sender, queue) = mpsc::channel(AUDIT_QUEUE_MAX);
        Self::over(Some(sender), Some(queue))
    }

    /// Creates a log that only writes log lines, for a process that never writes to the database.
    pub fn lines_only() -> Self {
        Self::over(None, None)
    }

    fn over(
        queue: Option<mpsc::Sender<AuditEvent>>,
        pending: Option<mpsc::Receiver<AuditEvent>>,
    ) -> Self {
        let inner = AuditInner {
            queue,
            pending: Mutex::new(pending),
            throttled: Mutex::default(),
            lost: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Removes and returns the receiving end of the queue. Returns `None` if there is no queue, and at every
    /// further call.
    pub fn pending(&self) -> Option<PendingEvents> {
        let mut pending = self.inner.pending.lock();
        pending.take().map(|queue| PendingEvents { audit: self.clone(), queue })
    }

    /// Records an event: at once as a log line, and soon in the table. Never waits: if the queue is full, the
    /// event is counted as lost and exists as a log line only.
    pub fn record(&self, event: AuditEvent) {
        event.log();
        let Some(queue) = &self.inner.queue else { return };
        // No request waits for the audit log. If the queue is full, the log line must suffice.
        if stores_rows() && queue.try_send(event).is_err() {
            self.count_lost(1);
        }
    }

    fn count_lost(&self, events: u64) {
        metrics::counter!(telemetry::AUDIT_EVENTS_LOST).increment(events);
        self.inner.lost.fetch_add(events, Ordering::Relaxed);
    }
}

impl PendingEvents {
    /// Waits for events and returns a batch of them; an empty batch means that the queue is closed.
    pub async fn next(&mut self) -> Vec<AuditEvent> {
        let mut batch = Vec::new();
        self.queue.recv_many(&mut batch, AUDIT_BATCH_EVENTS).await;
        batch
    }

    /// Returns a batch of the events that are already queued, without waiting.
    pub fn take(&mut self) -> Vec<AuditEvent> {
        std::iter::from_fn(|| self.queue.try_recv().ok()).take(AUDIT_BATCH_EVENTS).collect()
    }

    /// Records the throttled logins of windows that have ended at `now`. If `is_last`, the process ends and
    /// the windows end with it.
    pub fn end_windows(&self, now: Timestamp, is_last: bool) {
        // The lock is released before the events are logged.
        let ended = self.audit.inner.throttled.lock().end(now, is_last);
        ended.into_iter().for_each(|event| self.audit.record(event));
    }

    /// Counts events that could not be written.
    pub fn count_lost(&self, events: usize) {
        self.audit.count_lost(u64::try_from(events).unwrap_or(u64::MAX));
    }

    /// Returns the number of events that were lost since the last call.
    pub fn lost(&self) -> u64 {
        self.audit.inner.lost.swap(0, Ordering::Relaxed)
    }
}

/// Runs the work of a request from `address`. Returns its output and the user that was identified as the
/// caller.
pub async fn scope<T>(
    audit: AuditLog,
    address: Option<IpAddr>,
    work: impl Future<Output = T>,
) -> (T, Option<UserId>) {
    let actor = RefCell::new(Actor { address, ..Actor::UNKNOWN });
    let context = AuditContext { audit, actor, is_basic: Cell::new(false) };
    let work = async {
        let output = work.await;
        // Read here, because the context ends with the scope.
        (output, CONTEXT.with(|context| context.actor.borrow().user))
    };
    CONTEXT.scope(context, work).await
}

/// Runs a command of the operator. `system_user` is the operator's user name in the operating system (empty
/// if unknown), and `user_id` the user id.
pub fn run_as_operator<T>(system_user: &str, user_id: u32, work: impl FnOnce() -> T) -> T {
    let actor = RefCell::new(Actor {
        user_name: Some(system_user.to_owned()).filter(|name| !name.is_empty()),
        credential: CredentialKind::CommandLine,
        credential_id: Some(user_id.to_string()),
        ..Actor::UNKNOWN
    });
    // A command has no task that drains a queue. Its changes write their events themselves.
    let audit = AuditLog::lines_only();
    let context = AuditContext { audit, actor, is_basic: Cell::new(false) };
    CONTEXT.sync_scope(context, work)
}

/// The context of a request that moves to a different thread.
pub struct CapturedContext(Option<AuditContext>);

/// Captures the context of the request that this task works for.
pub fn capture_context() -> CapturedContext {
    // A copy: the request's task does not see a caller that is noted on the other thread.
    CapturedContext(CONTEXT.try_with(AuditContext::clone).ok())
}

impl CapturedContext {
    /// Runs part of the request's work on this thread, in the captured context.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        match self.0 {
            Some(context) => CONTEXT.sync_scope(context, work),
            None => work(),
        }
    }
}

/// Changes the context of the request. Does nothing outside a request, where the context is not read.
fn change(change: impl FnOnce(&AuditContext)) {
    CONTEXT.try_with(change).unwrap_or_default();
}

/// Sets the caller for the events of this request and its log line. `id` is the public number of the
/// credentials, such as the number of a key.
pub fn note_caller(account: &Account, credential: CredentialKind, id: Option<i64>) {
    change(|context| {
        let mut actor = context.actor.borrow_mut();
        actor.set_user(&account.user);
        actor.credential = credential;
        actor.credential_id = id.map(|id| id.to_string());
    });
}

/// Sets the calling OAuth2 client for the events of this request.
pub fn note_client(client_id: &str, has_secret: bool) {
    let credential = if has_secret { CredentialKind::ClientSecret } else { CredentialKind::None };
    let credential_id = Some(client_id.to_owned());
    change(|context| {
        let mut actor = context.actor.borrow_mut();
        let address = actor.address;
        *actor = Actor { credential, credential_id, address, ..Actor::UNKNOWN };
    });
}

/// Marks the password of this request as sent by HTTP Basic.
pub fn note_basic() {
    change(|context| context.is_basic.set(true));
}

/// Creates an event of this moment by the caller of the request that this task works for. The actor is
/// unknown outside a request.
pub fn event(action: AuditAction) -> AuditEvent {
    let actor = CONTEXT.try_with(|context| context.actor.borrow().clone());
    AuditEvent::new(action, actor.unwrap_or(Actor::UNKNOWN))
}

/// Creates an event about a user name and password of this request. `user` is the user with that name, if one
/// exists.
///
/// A typed name without such a user is not recorded: it may be a password.
pub fn login_event(action: AuditAction, user: Option<&model::account::User>) -> AuditEvent {
    let is_basic = CONTEXT.try_with(|context| context.is_basic.get()).unwrap_or(false);
    let credential = if is_basic { CredentialKind::Basic } else { CredentialKind::Password };
    // Only the address: a client that is the caller so far is not the user who logs in.
    let address = event(action).actor.address;
    let event = AuditEvent::new(action, Actor { credential, address, ..Actor::UNKNOWN });
    match user {
        Some(user) => event.by_user(user).with_object(ObjectKind::User, user.id),
        None => event.with_detail("no such user"),
    }
}

/// Records an event that belongs to no transaction.
pub fn record(event: AuditEvent) {
    let audit = CONTEXT.try_with(|context| context.audit.clone());
    match audit {
        Ok(audit) => audit.record(event),
        // Outside a request there is no queue.
        Err(_) => event.log(),
    }
}

/// Counts a login that was refused at `now` without a password check. Returns whether it is the first of its
/// network in the window, for which the caller records an event. The other logins of the window are recorded
/// as one event with their number when the window ends.
pub fn count_throttled(now: Timestamp) -> bool {
    let is_first = CONTEXT.try_with(|context| {
        let address = context.actor.borrow().address;
        context.audit.inner.throttled.lock().count(address, now)
    });
    // Without a request there are no windows, so each login is an event of its own.
    is_first.unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> Option<IpAddr> {
        "192.0.2.7".parse().ok()
    }

    #[tokio::test]
    async fn an_event_has_the_address_and_the_caller_of_its_request() {
        let audit = AuditLog::start();
        let mut pending = audit.pending().unwrap();
        let work = async {
            record(event(AuditAction::Logout));
            note_client("app", true);
            record(event(AuditAction::TokenRevoked));
        };
        let ((), user) = scope(audit, address(), work).await;
        let batch = pending.next().await;
        assert_eq!((user, batch.len()), (None, 2));
        assert_eq!(batch[0].actor, Actor { address: address(), ..Actor::UNKNOWN });
        assert_eq!(batch[1].actor.credential, CredentialKind::ClientSecret);
        assert_eq!(batch[1].actor.credential_id.as_deref(), Some("app"));
        assert_eq!(event(AuditAction::Logout).actor, Actor::UNKNOWN);
    }

    #[tokio::test]
    async fn what_is_known_of_a_request_goes_to_another_thread() {
        let work = async {
            let captured = capture_context();
            let thread =
                std::thread::spawn(|| captured.run(|| event(AuditAction::ItemStored).actor));
            thread.join().unwrap()
        };
        let (actor, _) = scope(AuditLog::lines_only(), address(), work).await;
        assert_eq!(actor.address, address());
        let actor = run_as_operator("anna", 1000, || event(AuditAction::Command).actor);
        assert_eq!(actor.user_name.as_deref(), Some("anna"));
        assert_eq!(actor.credential, CredentialKind::CommandLine);
        assert_eq!(actor.credential_id.as_deref(), Some("1000"));
    }

    #[test]
    fn a_full_queue_counts_what_it_does_not_take() {
        let audit = AuditLog::start();
        let mut pending = audit.pending().unwrap();
        for _ in 0..AUDIT_QUEUE_MAX + 3 {
            audit.record(AuditEvent::new(AuditAction::Login, Actor::UNKNOWN));
        }
        assert_eq!((pending.lost(), pending.lost()), (3, 0));
        assert_eq!(pending.take().len(), AUDIT_BATCH_EVENTS);
    }

    #[test]
    fn a_process_that_never_writes_queues_nothing() {
        let audit = AuditLog::lines_only();
        audit.record(AuditEvent::new(AuditAction::Login, Actor::UNKNOWN));
        assert_eq!(audit.inner.lost.load(Ordering::Relaxed), 0);
    }
}
