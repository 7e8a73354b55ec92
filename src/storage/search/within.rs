//! Evaluates many queries within the matches of one search, and reads the first hits of each in one
//! transaction.

use std::sync::Arc;

use jiff::Timestamp;

use super::shared::{SearchShared, log_position, require_replaced};
use super::{Freshness, SearchCriteria, SearchEngine, SearchHit};
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::Result;
use crate::runtime::limits::SEARCH_TIME_MAX;
use crate::storage::database::ReadTx;
use query::Query;
use search_index::{IndexError, MatchedDocuments, ResultPage};

/// The matches of a search, in the transaction that reads their hits.
pub struct SearchMatches<'a> {
    shared: &'a SearchShared,
    tx: &'a ReadTx<'a>,
    found: MatchedDocuments<'a>,
    page: ResultPage,
    is_expired: &'a dyn Fn() -> bool,
}

impl SearchEngine {
    /// Searches, and returns the value that `make` builds from the matches. The order of `request` and its
    /// number of hits apply to each query of `make`.
    ///
    /// `make` runs on a thread of the database, which evaluates the queries too, so they see the same index
    /// and the same items. Fails as [`SearchEngine::search`] does.
    pub async fn search_within<T, F>(
        &self,
        request: SearchCriteria,
        now: Timestamp,
        make: F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&SearchMatches<'_>) -> Result<T> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        shared.wait_until_fresh(Freshness::Preferred).await?;
        let snapshot = shared.index()?.snapshot();
        let request = shared.prepare(request, now).await?;
        let found = self.read(move |tx| {
            let replaced = tx.replaced_since(&log_position(snapshot.position()))?;
            let replaced = require_replaced(replaced)?;
            let watch = Stopwatch::start();
            let is_expired = || watch.elapsed() > SEARCH_TIME_MAX;
            let found = snapshot.find(&request.filter, &replaced, &is_expired);
            let found = found.map_err(|cause| shared.service_error(cause))?;
            make(&SearchMatches {
                shared: &shared,
                tx,
                found,
                page: request.page,
                is_expired: &is_expired,
            })
        });
        found.await
    }
}

impl SearchMatches<'_> {
    /// Returns the first value that `find` returns for a hit of `query`. Later hits are not read.
    pub fn find_first<T>(
        &self,
        query: &Query,
        find: impl Fn(&SearchHit) -> Option<T>,
    ) -> Result<Option<T>> {
        let numbers = self.evaluate(query).map_err(|cause| self.shared.service_error(cause))?;
        for number in numbers {
            let Some((key, item)) = self.tx.find_numbered(number)? else { continue };
            if let Some(value) = find(&SearchHit { key, item }) {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Returns the version numbers of the first hits of `query`.
    fn evaluate(&self, query: &Query) -> search_index::Result<Vec<u32>> {
        // Checked here, because queries whose sets are cached do not check the time.
        if (self.is_expired)() {
            return Err(IndexError::TimedOut);
        }
        let found = self.found.narrow(query, self.is_expired)?;
        found.page(self.page, query, self.is_expired)
    }
}
