//! What visitors did on the site lately, as calls of the APIs: the page `/code` shows it as code.
//!
//! Calls are in the database, so that every node shows what another one made, and go with their session. A
//! page does not wait for that: they are written together, now and then.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::http::Method;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::api::Call;
use crate::db::{Db, WriteTx};
use crate::error::Result;
use crate::limits::{
    ACTIVITY_CALL_BYTES_MAX, ACTIVITY_CALLS_MAX, ACTIVITY_KEPT_S, ACTIVITY_SESSIONS_MAX,
};
use crate::nodes::limits::CALLS_NOTED;
use crate::types::Hash;
use crate::web::session::Visitor;

/// A call that a page made for a visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Done {
    /// The call.
    pub(super) call: Call,
    /// When it was made.
    pub(super) at: Timestamp,
}

/// A call as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    method: String,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
    at: Timestamp,
}

/// The latest calls of each session; cheap to clone.
#[derive(Clone)]
pub struct Activity {
    db: Db,
    /// What was not written yet.
    fresh: Arc<Mutex<HashMap<Hash, Calls>>>,
}

/// Calls of a session, the latest last.
type Calls = VecDeque<Done>;

impl Activity {
    /// What is noted in `db`.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self { db, fresh: Arc::default() }
    }

    fn fresh(&self) -> MutexGuard<'_, HashMap<Hash, Calls>> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call. One that came just before is not noted again, nor one that is very long.
    pub(super) fn note(&self, visitor: &Visitor, call: Call, at: Timestamp) {
        if call.bytes() > ACTIVITY_CALL_BYTES_MAX {
            return;
        }
        let mut fresh = self.fresh();
        let sessions_max = usize::try_from(ACTIVITY_SESSIONS_MAX).unwrap_or(usize::MAX);
        let key = key(visitor);
        if fresh.len() >= sessions_max && !fresh.contains_key(&key) {
            // The database does not take them, and a page works without.
            return;
        }
        add(fresh.entry(key).or_default(), Done { call, at });
    }

    /// The calls of a visitor, the latest first.
    pub(super) async fn list(&self, visitor: &Visitor, now: Timestamp) -> Result<Vec<Done>> {
        let key = key(visitor);
        let stored = self.db.read(move |tx| tx.find_calls(&key)).await?;
        let mut calls = parse(stored.as_deref());
        // Behind the read: what was written since is seen twice at most, which adds nothing.
        for done in self.fresh().get(&key).into_iter().flatten() {
            add(&mut calls, done.clone());
        }
        let is_kept =
            |done: &Done| now.duration_since(done.at).as_secs() < i64::from(ACTIVITY_KEPT_S);
        Ok(calls.into_iter().rev().filter(is_kept).collect())
    }

    /// Writes what was noted, for as long as the service runs.
    pub async fn keep(self) {
        let mut beat = tokio::time::interval(CALLS_NOTED);
        loop {
            beat.tick().await;
            let fresh = std::mem::take(&mut *self.fresh());
            if fresh.is_empty() {
                continue;
            }
            let fresh = Arc::new(fresh);
            let ours = Arc::clone(&fresh);
            if let Err(cause) = self.db.write(move |tx| write(tx, &ours)).await {
                tracing::warn!("what visitors did is not noted yet: {cause}");
                let mut since = self.fresh();
                for (key, mut calls) in Arc::into_inner(fresh).unwrap_or_default() {
                    for done in since.remove(&key).unwrap_or_default() {
                        add(&mut calls, done);
                    }
                    since.insert(key, calls);
                }
            }
        }
    }
}

fn write(tx: &WriteTx<'_>, fresh: &HashMap<Hash, Calls>) -> Result<(), crate::db::DbError> {
    for (key, more) in fresh {
        let mut calls = parse(tx.as_read().find_calls(key)?.as_deref());
        for done in more {
            add(&mut calls, done.clone());
        }
        tx.write_calls(key, &print(&calls))?;
    }
    Ok(())
}

fn add(calls: &mut Calls, done: Done) {
    if calls.back().is_some_and(|last| last.call == done.call) || calls.contains(&done) {
        return;
    }
    if calls.len() == ACTIVITY_CALLS_MAX {
        calls.pop_front();
    }
    calls.push_back(done);
}

/// What is stored; nothing of what a later version wrote otherwise.
fn parse(text: Option<&str>) -> Calls {
    let stored: Vec<Stored> =
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let done = |stored: Stored| {
        let method = stored.method.parse::<Method>().ok()?;
        let call = Call { method, target: stored.target, body: stored.body };
        Some(Done { call, at: stored.at })
    };
    stored.into_iter().filter_map(done).collect()
}

fn print(calls: &Calls) -> String {
    let stored = |done: &Done| Stored {
        method: done.call.method.to_string(),
        target: done.call.target.clone(),
        body: done.call.body.clone(),
        at: done.at,
    };
    serde_json::json!(calls.iter().map(stored).collect::<Vec<_>>()).to_string()
}

fn key(visitor: &Visitor) -> Hash {
    Hash::of(visitor.cookie().as_bytes())
}

impl Call {
    fn bytes(&self) -> usize {
        let body = self.body.as_ref().map_or(0, |body| body.to_string().len());
        self.target.len() + body
    }
}
