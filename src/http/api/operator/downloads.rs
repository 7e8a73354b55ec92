//! Statistics of downloads, as JSON and as CSV.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};
use serde_json::{Value, json};

use super::{OperatorCall, PageOfList};
use crate::access::orders::{DayRange, DownloadGrouping, StatisticsRequest};
use crate::archive::content::parse_day;
use crate::http::api;
use crate::http::api::ApiResult;
use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::request::{QueryParameters, ValidationErrors};
use crate::http::protocol::respond;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{STATISTICS_DAYS_DEFAULT, STATISTICS_DAYS_MAX, STATISTICS_ROWS_MAX};
use model::ItemKey;
use model::account::{AgreementId, OrganizationId};
use model::item::MediaLinks;

/// `GET /operator/v1/download`: downloads counted by customer, agreement, item, day or credentials.
pub(super) async fn list(call: OperatorCall) -> ApiResult {
    let request = parse(&call.query()?, &call.app.shared.site.zone, clock::now())?;
    let days = request.days.clone();
    let links = call.app.shared.media.links();
    let found = call.app.shared.access.orders.download_statistics(request).await?;
    let mut view = found.json(&|key: &ItemKey| links.item(key));
    view.insert("from".to_owned(), json!(days.first.to_string()));
    view.insert("to".to_owned(), json!(days.last.to_string()));
    view.insert("timezone".to_owned(), json!(days.zone.iana_name().unwrap_or("UTC")));
    api::json(&Value::Object(view))
}

/// `GET /operator/v1/download.csv`: the same figures as a file, with all rows.
pub(super) async fn export(call: OperatorCall) -> ApiResult {
    let parsed = parse(&call.query()?, &call.app.shared.site.zone, clock::now())?;
    let request = StatisticsRequest { start: 0, size: STATISTICS_ROWS_MAX, ..parsed };
    let name = file_name(&request);
    let links = call.app.shared.media.links();
    let found = call.app.shared.access.orders.download_statistics(request).await?;
    let text = found.csv(&|key: &ItemKey| links.item(key));
    csv(&name, text)
}

/// Returns the name of the file: `downloads-by-item-2026-11-01-2026-11-30.csv`.
fn file_name(request: &StatisticsRequest) -> String {
    let DayRange { first, last, .. } = &request.days;
    format!("downloads-by-{}-{first}-{last}.csv", request.grouping.as_str())
}

fn csv(name: &str, text: String) -> ApiResult {
    // The header row is announced, so that programs need not guess (RFC 4180 §3).
    let kind = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    let mut response: Response = respond::typed(StatusCode::OK, kind, Body::from(text));
    let disposition = format!("attachment; filename=\"{name}\"");
    let disposition = HeaderValue::from_str(&disposition).map_err(Error::internal)?;
    response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    CachePolicy::NoStore.set(response.headers_mut());
    Ok(response)
}

/// Reads `by`, `from`, `to`, `organization`, `agreement`, `item`, `size` and `start`. The default period is the
/// last [`STATISTICS_DAYS_DEFAULT`] days, including today.
fn parse(query: &QueryParameters, zone: &TimeZone, now: Timestamp) -> Result<StatisticsRequest> {
    let mut problems = ValidationErrors::new();
    let request = read_request(query, zone, now, &mut problems);
    problems.finish(request)
}

/// Reads the parameters of a request; `None` if one is invalid.
fn read_request(
    query: &QueryParameters,
    zone: &TimeZone,
    now: Timestamp,
    problems: &mut ValidationErrors,
) -> Option<StatisticsRequest> {
    let grouping = problems.check(query.variant("by"));
    let page = PageOfList::read(query, problems);
    let from = problems.check(day(query, "from"));
    let to = problems.check(day(query, "to"));
    let organization = problems.check(query.integer("organization", 1..=i64::MAX));
    let agreement = problems.check(query.integer("agreement", 1..=i64::MAX));
    let item = problems.check(query.parsed("item", "format", "the uri of an item", item_of));
    let days = match (from, to) {
        (Some(from), Some(to)) => problems.check(day_range(from, to, zone, now)),
        // The problem of a day is recorded already.
        (None, _) | (_, None) => None,
    };
    // Every parameter is read before the first `?`, so that all problems are reported together.
    let PageOfList { start, size } = page?;
    Some(StatisticsRequest {
        grouping: grouping?.unwrap_or(DownloadGrouping::Organization),
        days: days?,
        organization: organization?.map(OrganizationId),
        agreement: agreement?.map(AgreementId),
        item: item?,
        start,
        size,
    })
}

/// Parses the parameter `name` as a day.
fn day(query: &QueryParameters, name: &str) -> Result<Option<Date>> {
    query.parsed(name, "format", "a day such as 2026-11-30", parse_day)
}

/// Parses the uri of an item, or `<mediaType>/<id>`.
fn item_of(text: &str) -> Option<ItemKey> {
    if text.contains("://") { ItemKey::from_uri(text).ok() } else { ItemKey::parse(text).ok() }
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
    use super::*;
    use crate::http::protocol::request;

    fn parsed(query: &str) -> Result<StatisticsRequest, Vec<(String, String)>> {
        let zone = TimeZone::get("Europe/Stockholm").unwrap();
        let now = "2026-11-29T23:30:00Z".parse().unwrap();
        let found = QueryParameters::parse(query).and_then(|query| parse(&query, &zone, now));
        found.map_err(|error| request::tests::problems(&error))
    }

    #[test]
    fn ok_without_days_it_is_the_last_thirty() {
        let found = parsed("").unwrap();
        let days = [found.days.first, found.days.last].map(|day| day.to_string());
        assert_eq!(days, ["2026-11-01", "2026-11-30"], "it is past midnight in the zone");
        assert_eq!(found.grouping, DownloadGrouping::Organization);
        assert_eq!((found.start, found.size, found.item), (0, 20, None));
        let found = parsed("to=2026-01-30&by=day&size=7").unwrap();
        assert_eq!(found.days.first.to_string(), "2026-01-01");
        assert_eq!((found.grouping, found.size), (DownloadGrouping::Day, 7));
        assert_eq!(file_name(&found), "downloads-by-day-2026-01-01-2026-01-30.csv");
    }

    #[test]
    fn ok_downloads_are_those_of_an_organization_an_agreement_and_an_item() {
        for item in ["image/a-b", "https://media.example/media/image/a-b"] {
            let found = parsed(&format!("organization=7&agreement=8&item={item}")).unwrap();
            assert_eq!(found.organization, Some(OrganizationId(7)));
            assert_eq!(found.agreement, Some(AgreementId(8)));
            assert_eq!(found.item.unwrap().to_string(), "image/a-b");
        }
    }

    #[test]
    fn err_everything_wrong_is_named() {
        let check = |query: &str, expected: &[(&str, &str)]| {
            let expected: Vec<(String, String)> = expected
                .iter()
                .map(|(rule, path)| ((*rule).to_owned(), (*path).to_owned()))
                .collect();
            assert_eq!(parsed(query).err(), Some(expected), "{query}");
        };
        check(
            "by=hour&from=soon&organization=x&item=nothing",
            &[("enum", "by"), ("format", "from"), ("type", "organization"), ("format", "item")],
        );
        check("from=2026-11-30&to=2026-11-29", &[("minimum", "to")]);
        check("from=2020-01-01&to=2026-11-29", &[("maximum", "to")]);
        check("agreement=0", &[("minimum", "agreement")]);
    }
}
