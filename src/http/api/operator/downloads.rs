//! Statistics of downloads, as JSON and as CSV.

use api::Json;
use api::operation::{
    DownloadQuery, DownloadStatistics, ExportDownloads, ListRange, LoadDownloads,
};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};

use crate::access::orders::{DayRange, StatisticsRequest, downloads_as_csv};
use crate::http::AppState;
use crate::http::api::binding::ApiRequest;
use crate::http::api::response::no_store;
use crate::http::protocol::request::ValidationErrors;
use crate::http::protocol::respond;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::STATISTICS_DAYS_MAX;
use model::ItemKey;
use model::account::{AgreementId, OrganizationId};

/// Days that a statistic covers if no day is given.
const STATISTICS_DAYS_DEFAULT: i32 = 30;
/// Rows of a statistic as CSV, which is built in memory.
const STATISTICS_ROWS_MAX: usize = 100_000;

pub(super) async fn load(request: ApiRequest<LoadDownloads>) -> Result<Json<DownloadStatistics>> {
    let app = &request.app;
    let zone = &app.shared.site.zone;
    let wanted = request.checked_parameters(|LoadDownloads { query, range }, problems| {
        statistics_request(&query, range, zone, clock::now(), problems)
    })?;
    Ok(Json(count(app, wanted).await?))
}

/// Responds with the same figures as a file, with all rows.
pub(super) async fn export(request: ApiRequest<ExportDownloads>) -> Result<Response> {
    let all = ListRange { start: 0, size: STATISTICS_ROWS_MAX };
    let app = &request.app;
    let zone = &app.shared.site.zone;
    let wanted = request.checked_parameters(|ExportDownloads { query, .. }, problems| {
        statistics_request(&query, all, zone, clock::now(), problems)
    })?;
    let name = file_name(&wanted);
    csv(&name, downloads_as_csv(&count(app, wanted).await?))
}

async fn count(app: &AppState, request: StatisticsRequest) -> Result<DownloadStatistics> {
    let links = app.shared.media.links().clone();
    let orders = &app.shared.access.orders;
    orders.download_statistics(request, move |key| links.item(key)).await
}

/// Returns the name of the file: `downloads-by-item-2026-11-01-2026-11-30.csv`.
fn file_name(request: &StatisticsRequest) -> String {
    let DayRange { first, last, .. } = &request.days;
    format!("downloads-by-{}-{first}-{last}.csv", request.grouping.as_str())
}

fn csv(name: &str, text: String) -> Result<Response> {
    // The header row is announced, so that programs need not guess (RFC 4180 §3).
    let kind = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    let mut response = no_store(respond::typed(StatusCode::OK, kind, Body::from(text)));
    let disposition = format!("attachment; filename=\"{name}\"");
    let disposition = HeaderValue::from_str(&disposition).map_err(Error::internal)?;
    response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    Ok(response)
}

/// Completes the request for a statistic. The default period is the last [`STATISTICS_DAYS_DEFAULT`] days, including
/// today. `None` if a parameter is invalid.
fn statistics_request(
    query: &DownloadQuery,
    range: ListRange,
    zone: &TimeZone,
    now: Timestamp,
    problems: &mut ValidationErrors,
) -> Option<StatisticsRequest> {
    let days = problems.check(day_range(query.from, query.to, zone, now));
    let item = problems.check(query.item.as_deref().map(item_of).transpose());
    // Both are checked before the first `?`, so that all problems are reported together.
    Some(StatisticsRequest {
        grouping: query.by,
        days: days?,
        organization: query.organization.map(OrganizationId),
        agreement: query.agreement.map(AgreementId),
        item: item?,
        start: range.start,
        size: range.size,
    })
}

/// Parses the uri of an item, or `<mediaType>/<id>`.
fn item_of(text: &str) -> Result<ItemKey> {
    let is_uri = text.contains("://");
    let found = if is_uri { ItemKey::from_uri(text).ok() } else { ItemKey::parse(text).ok() };
    found.ok_or_else(|| {
        let item = respond::shorten_input(text);
        let message = format!("item is `{item}`, expected the uri of an item");
        Error::invalid("query", "item", "format", message)
    })
}

/// Completes the days of a request, and checks that they are 1 to [`STATISTICS_DAYS_MAX`] days.
fn day_range(
    from: Option<Date>,
    to: Option<Date>,
    zone: &TimeZone,
    now: Timestamp,
) -> Result<DayRange> {
    let last = to.unwrap_or_else(|| now.to_zoned(zone.clone()).date());
    let first_default = last.checked_sub((STATISTICS_DAYS_DEFAULT - 1).days()).unwrap_or(last);
    let days = DayRange { first: from.unwrap_or(first_default), last, zone: zone.clone() };
    match days.count() {
        ..=0 => {
            let message = format!("to is {last}, expected {} or later", days.first);
            Err(Error::invalid("query", "to", "minimum", message))
        }
        1..=STATISTICS_DAYS_MAX => Ok(days),
        count => {
            let message = format!("to ends {count} days, expected at most {STATISTICS_DAYS_MAX}");
            Err(Error::invalid("query", "to", "maximum", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use api::operation::DownloadGrouping;

    use super::*;
    use crate::http::protocol::request;

    fn request(query: &DownloadQuery) -> Result<StatisticsRequest, Vec<(String, String)>> {
        let zone = TimeZone::get("Europe/Stockholm").unwrap();
        let now = "2026-11-29T23:30:00Z".parse().unwrap();
        let mut problems = ValidationErrors::default();
        let found = statistics_request(query, ListRange::default(), &zone, now, &mut problems);
        problems.finish(found).map_err(|error| request::tests::problems(&error))
    }

    fn days(from: &str, to: &str) -> DownloadQuery {
        let [from, to] = [from, to].map(|day| day.parse().ok());
        DownloadQuery { from, to, ..DownloadQuery::default() }
    }

    #[test]
    fn ok_without_days_it_is_the_last_thirty() {
        let found = request(&DownloadQuery::default()).unwrap();
        let shown = [found.days.first, found.days.last].map(|day| day.to_string());
        assert_eq!(shown, ["2026-11-01", "2026-11-30"], "it is past midnight in the zone");
        let query = DownloadQuery { by: DownloadGrouping::Day, ..days("", "2026-01-30") };
        let found = request(&query).unwrap();
        assert_eq!(found.days.first.to_string(), "2026-01-01");
        assert_eq!(file_name(&found), "downloads-by-day-2026-01-01-2026-01-30.csv");
    }

    #[test]
    fn ok_an_item_is_named_by_its_uri_or_its_key() {
        for item in ["image/a-b", "https://media.example/media/image/a-b"] {
            let query = DownloadQuery { item: Some(item.to_owned()), ..DownloadQuery::default() };
            assert_eq!(request(&query).unwrap().item.unwrap().to_string(), "image/a-b");
        }
    }

    #[test]
    fn err_what_no_schema_says_is_named() {
        let check = |query: &DownloadQuery, expected: &[(&str, &str)]| {
            let expected: Vec<(String, String)> = expected
                .iter()
                .map(|(rule, path)| ((*rule).to_owned(), (*path).to_owned()))
                .collect();
            assert_eq!(request(query).err(), Some(expected));
        };
        check(&days("2026-11-30", "2026-11-29"), &[("minimum", "to")]);
        check(&days("2020-01-01", "2026-11-29"), &[("maximum", "to")]);
        let item = Some("nothing".to_owned());
        let query = DownloadQuery { item, ..days("2026-11-30", "2026-11-29") };
        check(&query, &[("minimum", "to"), ("format", "item")]);
    }
}
