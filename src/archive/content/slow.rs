//! Records slow searches, for operators.

use std::time::Duration;

use jiff::Timestamp;

use crate::runtime::clock::Stopwatch;
use crate::runtime::error::Result;
use crate::runtime::hot_swap::HotSwap;
use crate::storage::diagnostics::{DiagnosticLog, DiagnosticRecord};
use crate::storage::search::SearchCriteria;

/// Records searches that last at least a given time. Clones share that time.
#[derive(Clone, Default)]
pub(super) struct SlowSearches {
    log: DiagnosticLog,
    /// Duration from which a search is recorded; `None` if no search is recorded.
    threshold: HotSwap<Option<Duration>>,
}

/// A search that may turn out to be slow.
pub(super) struct TimedSearch {
    /// The query and the parameters; `None` if the search is not recorded.
    description: Option<(String, String)>,
    stopwatch: Stopwatch,
}

impl SlowSearches {
    /// Records searches of `slow_ms` milliseconds or longer in `log`. Records nothing if it is 0.
    pub(super) fn new(log: DiagnosticLog, slow_ms: u32) -> Self {
        Self { log, threshold: HotSwap::new(threshold(slow_ms)) }
    }

    /// Records searches of `slow_ms` milliseconds or longer from now on. Records nothing if it is 0.
    pub(super) fn set_threshold(&self, slow_ms: u32) {
        self.threshold.set(threshold(slow_ms));
    }

    /// Starts to measure a search.
    pub(super) fn start(&self, request: &SearchCriteria) -> TimedSearch {
        // Formatted now, because the search consumes its criteria.
        let is_recorded = self.threshold.get().is_some();
        let description = is_recorded.then(|| (request.query.to_string(), parameters(request)));
        TimedSearch { description, stopwatch: Stopwatch::start() }
    }

    /// Ends the measurement, and records the search if it was slow. Also records slow searches that failed, for
    /// instance because of their time limit.
    pub(super) fn end<T>(&self, search: TimedSearch, outcome: &Result<T>, now: Timestamp) {
        let Some(threshold) = *self.threshold.get() else { return };
        let Some((query, mut parameters)) = search.description else { return };
        let duration = search.stopwatch.elapsed();
        if duration < threshold {
            return;
        }
        if let Err(error) = outcome {
            parameters.push_str(&format!("; {}", error.message()));
        }
        self.log.record(DiagnosticRecord::slow_search(query, parameters, duration, now));
    }
}

/// Converts the setting, in which 0 stands for no recording.
fn threshold(slow_ms: u32) -> Option<Duration> {
    (slow_ms > 0).then(|| Duration::from_millis(u64::from(slow_ms)))
}

/// Returns the parameters of a search besides its query, under their names in the API: `s` for its size, `fr` for the
/// results that it skips, `p` for product codes. The criteria that hide items from the caller are left out.
fn parameters(request: &SearchCriteria) -> String {
    let media_type = request.media_type.map_or("_all", |media_type| media_type.as_str());
    let mut text = format!("{media_type} s={} fr={}", request.size, request.skip);
    if !request.products.is_empty() {
        text.push_str(&format!(" p={}", request.products.join(",")));
    }
    for condition in &request.facet_values {
        let sign = if condition.is_excluded { "-" } else { "" };
        for value in &condition.values {
            text.push_str(&format!(" {}={sign}{value}", condition.facet.as_str()));
        }
    }
    if request.near_picture.is_some() {
        // The criteria have the picture's hash only, so the item whose duplicates are searched is not named.
        text.push_str(" duplicates");
    }
    if let Some(from) = request.from {
        text.push_str(&format!(" from={from}"));
    }
    if let Some(until) = request.until {
        text.push_str(&format!(" until={until}"));
    }
    if !request.facets.is_empty() {
        let facets: Vec<_> = request.facets.iter().map(|facet| facet.as_str()).collect();
        text.push_str(&format!(" facets={}", facets.join(",")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::error::{Error, ErrorKind};

    fn ended(slow_ms: u32, outcome: &Result<()>) -> Vec<DiagnosticRecord> {
        let log = DiagnosticLog::default();
        let searches = SlowSearches::new(log.clone(), slow_ms);
        let search = TimedSearch {
            description: Some(("berg".to_owned(), "_all s=60 fr=0".to_owned())),
            stopwatch: Stopwatch::start(),
        };
        // Longer than the limit of a millisecond.
        while search.stopwatch.elapsed() < Duration::from_millis(2) {
            std::thread::yield_now();
        }
        searches.end(search, outcome, Timestamp::UNIX_EPOCH);
        log.take().records
    }

    #[test]
    fn a_search_is_recorded_if_it_takes_as_long_as_the_setting_says() {
        let records = ended(1, &Ok(()));
        assert_eq!((records.len(), records[0].subject.as_str()), (1, "berg"));
        assert!(records[0].duration_ms.is_some_and(|ms| ms >= 2));
        assert_eq!(ended(600_000, &Ok(())), []);
        assert_eq!(ended(0, &Ok(())), []);
    }

    #[test]
    fn a_slow_search_that_fails_says_why() {
        let outcome = Err(Error::new(ErrorKind::Timeout, "The search took too long"));
        let records = ended(1, &outcome);
        assert_eq!(records[0].detail, "_all s=60 fr=0; The search took too long");
    }
}
