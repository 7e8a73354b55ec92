//! Statistics of downloads for operators: by organization, agreement, item, day, and kind of credentials.
//!
//! The statistics count orders. The kind of credentials comes from the audit event of each order. Days begin
//! at midnight in the time zone of the site.

mod csv;
mod view;

use std::collections::BTreeMap;

use api::operation::{DownloadGrouping, DownloadRow, DownloadStatistics};
use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};

pub use view::downloads_as_csv;

use super::Orders;
use crate::runtime::error::Result;
use crate::storage::database::{DbError, DownloadCounts, DownloadFilter, QUARTER_MS, ReadTx};
use model::ItemKey;
use model::account::{AgreementId, OrganizationId};

/// The word for the kind of credentials of orders whose audit event was removed or never stored.
const UNKNOWN_CREDENTIAL: &str = "unknown";

/// The days of a statistic, both inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayRange {
    pub first: Date,
    /// Not before the first day.
    pub last: Date,
    /// The zone in which days begin at midnight.
    pub zone: TimeZone,
}

impl DayRange {
    /// Returns the number of days; 0 or less if the last day is before the first day.
    pub fn count(&self) -> i32 {
        let span = self.first.until(self.last);
        span.map_or(0, |span| span.get_days()).saturating_add(1)
    }

    /// Returns the start of the first day and the end of the last day.
    fn bounds(&self) -> (Timestamp, Timestamp) {
        // The last day of the calendar has no end that a timestamp could hold.
        let end = self.last.checked_add(1.day()).map_or(Timestamp::MAX, |day| self.midnight(day));
        (self.midnight(self.first), end)
    }

    /// Returns the start of `day`, or the latest timestamp if no timestamp could hold it.
    fn midnight(&self, day: Date) -> Timestamp {
        day.to_zoned(self.zone.clone()).map_or(Timestamp::MAX, |start| start.timestamp())
    }

    /// Iterates over the days in their order.
    fn days(&self) -> impl Iterator<Item = Date> + use<> {
        let last = self.last;
        std::iter::successors(Some(self.first), |day| day.checked_add(1.day()).ok())
            .take_while(move |day| *day <= last)
    }
}

/// A request for a statistic of downloads.
#[derive(Clone, Debug)]
pub struct StatisticsRequest {
    pub grouping: DownloadGrouping,
    pub days: DayRange,
    /// Only downloads of this organization.
    pub organization: Option<OrganizationId>,
    /// Only downloads under this agreement.
    pub agreement: Option<AgreementId>,
    /// Only downloads of this item.
    pub item: Option<ItemKey>,
    /// Number of rows to skip.
    pub start: usize,
    /// Maximum number of rows.
    pub size: usize,
}

impl Orders {
    /// Counts downloads; `item_url` writes the URL of an item. Runs on a search thread, because it may read many
    /// orders.
    pub async fn download_statistics(
        &self,
        request: StatisticsRequest,
        item_url: impl Fn(&ItemKey) -> String + Send + 'static,
    ) -> Result<DownloadStatistics> {
        let (from, until) = request.days.bounds();
        let filter = DownloadFilter {
            from,
            until,
            organization: request.organization,
            agreement: request.agreement,
            item: request.item.clone(),
        };
        let statistics = self.db().search(move |tx| {
            // Includes the downloads in rows that are skipped.
            let total = tx.count_downloads(&filter)?;
            let DayRange { first, last, zone } = &request.days;
            Ok(DownloadStatistics {
                by: request.grouping,
                total: view::counts(total),
                rows: rows(&request, &filter, total, &item_url, tx)?,
                from: *first,
                to: *last,
                timezone: zone.iana_name().unwrap_or("UTC").to_owned(),
            })
        });
        Ok(statistics.await?)
    }
}

fn rows(
    request: &StatisticsRequest,
    filter: &DownloadFilter,
    total: DownloadCounts,
    item_url: &dyn Fn(&ItemKey) -> String,
    tx: &ReadTx<'_>,
) -> Result<Vec<DownloadRow>, DbError> {
    let StatisticsRequest { start, size, .. } = *request;
    Ok(match request.grouping {
        DownloadGrouping::Organization => {
            let found = tx.downloads_by_organization(filter, start, size)?;
            found.into_iter().map(view::organization_row).collect()
        }
        DownloadGrouping::Agreement => {
            let found = tx.downloads_by_agreement(filter, start, size)?;
            found.into_iter().map(view::agreement_row).collect()
        }
        DownloadGrouping::Item => {
            let found = tx.downloads_by_item(filter, start, size)?;
            found.into_iter().map(|row| view::item_row(row, item_url)).collect()
        }
        DownloadGrouping::Day => {
            let days = by_day(&request.days, &tx.downloads_by_quarter(filter)?);
            days.into_iter().skip(start).take(size).collect()
        }
        DownloadGrouping::Credential => {
            let rows = with_unknown(tx.downloads_by_credential(filter)?, total);
            rows.into_iter().skip(start).take(size).collect()
        }
    })
}

/// Adds up quarters of an hour by day. Days without downloads are rows, too: a chart must not leave them out.
fn by_day(range: &DayRange, quarters: &[(i64, DownloadCounts)]) -> Vec<DownloadRow> {
    let mut days: BTreeMap<Date, DownloadCounts> =
        range.days().map(|day| (day, DownloadCounts::default())).collect();
    for (quarter, counts) in quarters {
        let start = Timestamp::from_millisecond(quarter.saturating_mul(QUARTER_MS));
        let Ok(start) = start else { continue };
        let day = start.to_zoned(range.zone.clone()).date();
        let sum = days.entry(day).or_default();
        *sum = sum.plus(*counts);
    }
    let rows = days.into_iter().map(|(day, counts)| DownloadRow {
        day: Some(day),
        counts: view::counts(counts),
        ..DownloadRow::default()
    });
    rows.collect()
}

/// Adds a row for the orders of `total` that have no audit event.
fn with_unknown(known: Vec<(String, DownloadCounts)>, total: DownloadCounts) -> Vec<DownloadRow> {
    let sum = known.iter().fold(DownloadCounts::default(), |sum, (_, counts)| sum.plus(*counts));
    let unknown = total.minus(sum);
    let unknown =
        (unknown != DownloadCounts::default()).then(|| (UNKNOWN_CREDENTIAL.to_owned(), unknown));
    let rows = known.into_iter().chain(unknown).map(|(word, counts)| DownloadRow {
        credential: Some(word),
        counts: view::counts(counts),
        ..DownloadRow::default()
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: &str, last: &str) -> DayRange {
        DayRange {
            first: first.parse().unwrap(),
            last: last.parse().unwrap(),
            zone: TimeZone::get("Europe/Stockholm").unwrap(),
        }
    }

    fn counts(downloads: u64) -> DownloadCounts {
        DownloadCounts { downloads, ..DownloadCounts::default() }
    }

    #[test]
    fn days_begin_at_midnight_in_the_zone() {
        let bounds = range("2026-03-28", "2026-03-29").bounds();
        let [from, until] = ["2026-03-27T23:00:00Z", "2026-03-29T22:00:00Z"]
            .map(|text| text.parse::<Timestamp>().unwrap());
        assert_eq!(bounds, (from, until), "the second day has 23 hours");
        assert_eq!(range("2026-03-28", "2026-03-29").count(), 2);
        assert_eq!(range("2026-02-01", "2026-03-31").count(), 59);
        assert_eq!(range("2026-03-29", "2026-03-28").count(), 0);
    }

    #[test]
    fn quarters_are_added_up_by_local_day_and_empty_days_are_rows() {
        let range = range("2026-03-28", "2026-03-30");
        let quarter = |text: &str| {
            text.parse::<Timestamp>().unwrap().as_millisecond().div_euclid(QUARTER_MS)
        };
        let quarters = [
            (quarter("2026-03-27T23:00:00Z"), counts(1)),
            (quarter("2026-03-28T22:45:00Z"), counts(2)),
            (quarter("2026-03-29T22:00:00Z"), counts(4)),
        ];
        let day = |text: &str, downloads| DownloadRow {
            day: text.parse().ok(),
            counts: view::counts(counts(downloads)),
            ..DownloadRow::default()
        };
        let expected = [day("2026-03-28", 3), day("2026-03-29", 0), day("2026-03-30", 4)];
        assert_eq!(by_day(&range, &quarters), expected);
    }

    #[test]
    fn orders_without_an_audit_event_are_of_unknown_credentials() {
        let row = |word: &str, downloads| DownloadRow {
            credential: Some(word.to_owned()),
            counts: view::counts(counts(downloads)),
            ..DownloadRow::default()
        };
        let known = || vec![("session".to_owned(), counts(3))];
        assert_eq!(with_unknown(known(), counts(3)), [row("session", 3)]);
        let expected = [row("session", 3), row("unknown", 2)];
        assert_eq!(with_unknown(known(), counts(5)), expected);
    }
}
