//! Records recent activity of visitors as API calls, which the page `/code` shows as code.
//!
//! Calls are stored in the database, so that every node shows those of the others, and are deleted with their
//! session. A page does not wait for the write: calls are written in batches.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use axum::http::Method;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::api_client::ApiCall;
use crate::cluster::jobs::{self, BackgroundJob, JobSpec, RunOutcome};
use crate::cluster::membership::limits::CALL_NOTES_INTERVAL;
use crate::http::site::session::SiteVisitor;
use crate::runtime::error::Result;
use crate::runtime::limits::{
    ACTIVITY_CALL_BYTES_MAX, ACTIVITY_CALLS_MAX, ACTIVITY_KEPT_S, ACTIVITY_SESSIONS_MAX,
};
use crate::storage::database::{Db, WriteTx};
use model::ContentHash;

/// An API call that a page made for a visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedCall {
    pub(super) call: ApiCall,
    /// Time of the call.
    pub(super) at: Timestamp,
}

/// The stored form of a call.
#[derive(Serialize, Deserialize)]
struct StoredCall {
    method: String,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
    at: Timestamp,
}

/// The latest calls of each session; cheap to clone.
#[derive(Clone)]
pub struct SessionActivity {
    db: Db,
    pending: Arc<Mutex<PendingCalls>>,
}

/// Calls that are not in the database yet.
#[derive(Default)]
struct PendingCalls {
    /// Calls recorded since the last write.
    unwritten: HashMap<ContentHash, CallHistory>,
    /// Calls that are being written.
    writing: Arc<HashMap<ContentHash, CallHistory>>,
}

/// The calls of a session, the latest last.
type CallHistory = VecDeque<RecordedCall>;

impl SessionActivity {
    /// Creates the record of the calls stored in `db`.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self { db, pending: Arc::default() }
    }

    /// Records a call, unless it repeats the previous one or is very long.
    pub(super) fn record(&self, visitor: &SiteVisitor, call: ApiCall, at: Timestamp) {
        if call.bytes() > ACTIVITY_CALL_BYTES_MAX {
            return;
        }
        let mut pending = self.pending.lock();
        let unwritten = &mut pending.unwritten;
        let sessions_max = usize::try_from(ACTIVITY_SESSIONS_MAX).unwrap_or(usize::MAX);
        let key = key(visitor);
        if unwritten.len() >= sessions_max && !unwritten.contains_key(&key) {
            // The database does not accept writes. Pages work without the record, so the call is dropped.
            return;
        }
        add(unwritten.entry(key).or_default(), RecordedCall { call, at });
    }

    /// Lists the calls of a visitor, the latest first.
    pub(super) async fn list(
        &self,
        visitor: &SiteVisitor,
        now: Timestamp,
    ) -> Result<Vec<RecordedCall>> {
        self.list_of(key(visitor), now).await
    }

    async fn list_of(&self, key: ContentHash, now: Timestamp) -> Result<Vec<RecordedCall>> {
        // Taken before the read: a call written in the meantime is seen twice at most, and `add` ignores
        // repetitions.
        let pending = self.pending_calls(&key);
        let stored = self.db.read(move |tx| tx.find_calls(&key)).await?;
        let mut calls = parse(stored.as_deref());
        for recorded in pending {
            add(&mut calls, recorded);
        }
        // Calls are shown for some hours only, while their row stays as long as the session.
        let is_recent = |recorded: &RecordedCall| {
            now.duration_since(recorded.at).as_secs() < i64::from(ACTIVITY_KEPT_S)
        };
        Ok(calls.into_iter().rev().filter(is_recent).collect())
    }

    /// Writes the calls that were recorded since the last write.
    async fn write_pending(&self) -> Result<RunOutcome> {
        // An idle site starts no transaction, which would need the cluster write lock.
        let Some(writing) = self.begin_writing() else { return Ok(RunOutcome::Idle) };
        let written = self.db.write(move |tx| write(tx, &writing)).await;
        // Also after a failure, so that the batch returns to the unwritten calls.
        self.end_writing(written.is_ok());
        Ok(written.map(|()| RunOutcome::Done)?)
    }

    /// The background job that writes recorded calls.
    #[must_use]
    pub fn job(&self) -> impl BackgroundJob + use<> {
        let spec = JobSpec::every("session-activity", CALL_NOTES_INTERVAL);
        jobs::periodic(spec, self, |activity| async move { activity.write_pending().await })
    }

    /// The calls that may not be in the database yet, in order.
    fn pending_calls(&self, key: &ContentHash) -> Vec<RecordedCall> {
        let pending = self.pending.lock();
        // The batch that is being written is older than the unwritten calls.
        let batches = [pending.writing.get(key), pending.unwritten.get(key)];
        batches.into_iter().flatten().flatten().cloned().collect()
    }

    /// Takes the batch of calls to write; a single job writes.
    fn begin_writing(&self) -> Option<Arc<HashMap<ContentHash, CallHistory>>> {
        let mut pending = self.pending.lock();
        if pending.unwritten.is_empty() {
            return None;
        }
        pending.writing = Arc::new(std::mem::take(&mut pending.unwritten));
        // Shared, because pages list the batch while the transaction writes it.
        Some(Arc::clone(&pending.writing))
    }

    /// Ends a write. A failed batch is merged into the next one.
    fn end_writing(&self, is_written: bool) {
        let mut pending = self.pending.lock();
        let writing = std::mem::take(&mut pending.writing);
        if is_written {
            return;
        }
        // The failed calls are older than those recorded in the meantime, so they come first.
        for (key, calls) in writing.iter() {
            let mut calls = calls.clone();
            for recorded in pending.unwritten.remove(key).unwrap_or_default() {
                add(&mut calls, recorded);
            }
            pending.unwritten.insert(*key, calls);
        }
    }
}

fn write(
    tx: &WriteTx<'_>,
    batch: &HashMap<ContentHash, CallHistory>,
) -> Result<(), crate::storage::database::DbError> {
    // Another node may have recorded calls of the same session, so the stored list is read again.
    for (key, recorded_calls) in batch {
        let mut calls = parse(tx.as_read().find_calls(key)?.as_deref());
        for recorded in recorded_calls {
            add(&mut calls, recorded.clone());
        }
        tx.write_calls(key, &print(&calls))?;
    }
    Ok(())
}

fn add(calls: &mut CallHistory, recorded: RecordedCall) {
    // A reload repeats the last call; a batch whose commit was not confirmed repeats calls in full.
    if calls.back().is_some_and(|last| last.call == recorded.call) || calls.contains(&recorded) {
        return;
    }
    if calls.len() == ACTIVITY_CALLS_MAX {
        calls.pop_front();
    }
    calls.push_back(recorded);
}

/// Parses the stored calls; an empty list for the format of a later version.
fn parse(text: Option<&str>) -> CallHistory {
    let stored: Vec<StoredCall> =
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let recorded = |stored: StoredCall| {
        // A call that this version cannot read is left out; the page shows the others.
        let method = stored.method.parse::<Method>().ok()?;
        let call = ApiCall { method, target: stored.target, body: stored.body };
        Some(RecordedCall { call, at: stored.at })
    };
    stored.into_iter().filter_map(recorded).collect()
}

fn print(calls: &CallHistory) -> String {
    let stored = |recorded: &RecordedCall| StoredCall {
        method: recorded.call.method.to_string(),
        target: recorded.call.target.clone(),
        body: recorded.call.body.clone(),
        at: recorded.at,
    };
    serde_json::json!(calls.iter().map(stored).collect::<Vec<_>>()).to_string()
}

fn key(visitor: &SiteVisitor) -> ContentHash {
    // The database holds only the hash: with the cookie its reader could act as the visitor.
    ContentHash::of(visitor.cookie().as_bytes())
}

impl ApiCall {
    fn bytes(&self) -> usize {
        let body = self.body.as_ref().map_or(0, |body| body.to_string().len());
        self.target.len() + body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::clock;

    #[tokio::test]
    async fn a_call_is_listed_while_it_is_being_written() {
        let dir = tempfile::tempdir().unwrap();
        let activity = SessionActivity::new(Db::scratch(dir.path()).unwrap());
        let (key, now) = (ContentHash::of(b"a session"), clock::now());
        let note = |target: &str| {
            let call = ApiCall { method: Method::GET, target: target.to_owned(), body: None };
            add(
                activity.pending.lock().unwritten.entry(key).or_default(),
                RecordedCall { call, at: now },
            );
        };
        let listed = || async {
            let listed = activity.list_of(key, now).await.unwrap();
            listed.into_iter().map(|done| done.call.target).collect::<Vec<_>>()
        };
        note("/one");
        assert!(activity.begin_writing().is_some());
        assert_eq!(listed().await, ["/one"]);
        note("/two");
        assert_eq!(listed().await, ["/two", "/one"]);
        // Calls that could not be written come before later ones.
        activity.end_writing(false);
        assert_eq!(listed().await, ["/two", "/one"]);
        assert_eq!(activity.begin_writing().map(|all| all[&key].len()), Some(2));
        activity.end_writing(true);
        assert!(listed().await.is_empty(), "it is in the database, whose session this is not");
    }
}
