//! What visitors did on the site lately, as calls of the APIs: the page `/code` shows it as code.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use moka::sync::Cache;

use super::api::Call;
use crate::limits::{
    ACTIVITY_CALL_BYTES_MAX, ACTIVITY_CALLS_MAX, ACTIVITY_KEPT_S, ACTIVITY_SESSIONS_MAX,
};
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

/// The latest calls of each session, in memory only; cheap to clone.
#[derive(Clone, Debug)]
pub struct Activity {
    sessions: Cache<Hash, Arc<Mutex<VecDeque<Done>>>>,
}

impl Default for Activity {
    fn default() -> Self {
        let sessions = Cache::builder().max_capacity(ACTIVITY_SESSIONS_MAX);
        let kept = Duration::from_secs(u64::from(ACTIVITY_KEPT_S));
        Self { sessions: sessions.time_to_idle(kept).build() }
    }
}

impl Activity {
    /// Notes a call. One that came just before is not noted again, nor one that is very long.
    pub(super) fn note(&self, visitor: &Visitor, call: Call, at: Timestamp) {
        if call.bytes() > ACTIVITY_CALL_BYTES_MAX {
            return;
        }
        let calls = self.sessions.get_with(key(visitor), Arc::default);
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.back().is_some_and(|last| last.call == call) {
            return;
        }
        if calls.len() == ACTIVITY_CALLS_MAX {
            calls.pop_front();
        }
        calls.push_back(Done { call, at });
    }

    /// The calls of a visitor, the latest first.
    pub(super) fn list(&self, visitor: &Visitor) -> Vec<Done> {
        let Some(calls) = self.sessions.get(&key(visitor)) else { return Vec::new() };
        let calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().rev().cloned().collect()
    }
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
