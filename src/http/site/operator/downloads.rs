//! `/operator/downloads`: download statistics as a chart, as tables, and as a CSV file.

use std::collections::BTreeMap;

use axum::{
    body::{Body, to_bytes},
    http::{StatusCode, header},
    response::Response,
};
use jiff::{ToSpan, civil::Date};
use minijinja::{Value as PageValue, context, value::Serde};
use serde_json::{Value, json};
use strum::VariantNames;

use super::OperatorRequest;
use super::chart::{DayChart, share};
use crate::access::orders::DownloadGrouping;
use crate::http::site::account::{elements, item_links, template_value};
use crate::http::site::csv::{CsvDialect, spreadsheet_text};
use crate::http::site::{ApiCall, ApiRefusal, PageResult, SiteRequest, api_client, language};
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{STATISTICS_DAYS_MAX, STATISTICS_SHOWN};

const DOWNLOADS: &str = "/operator/v1/download";
const DOWNLOADS_FILE: &str = "/operator/v1/download.csv";
const PAGE: &str = "/operator/downloads";
const PAGE_FILE: &str = "/operator/downloads.csv";

/// The parameters that filter downloads, each with the property of a row that holds the name of its value.
const FILTERS: [(&str, &str); 3] =
    [("organization", "organizationName"), ("agreement", "agreementName"), ("item", "headline")];
/// The parameters that select the statistic, both of the page and of the API.
const PARAMETERS: [&str; 6] = ["by", "from", "to", "organization", "agreement", "item"];
/// The lengths, in days, of the periods that the page offers.
const PERIODS: [i32; 3] = [7, 30, 365];
/// The length of the longest bar, in units of its SVG.
const BAR_UNITS: u64 = 100;

/// The selected statistic: the values of [`PARAMETERS`] in the page's URL. The API validates them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Choice(BTreeMap<&'static str, String>);

impl Choice {
    fn from_query(site: &SiteRequest) -> Result<Self> {
        let mut choice = Self::default();
        for name in PARAMETERS {
            if let Some(value) = site.parameter(name)? {
                choice.0.insert(name, value.to_owned());
            }
        }
        Ok(choice)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn grouping(&self) -> &str {
        self.get("by").unwrap_or(DownloadGrouping::Organization.as_str())
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.insert(name, value.into());
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// Returns a call of `path` with these parameters. If `path` is a page, the target of the call is the page's
    /// URL.
    fn at(&self, path: &str) -> ApiCall {
        ApiCall::get(path).query(self.0.iter().map(|(name, value)| (*name, Some(value.as_str()))))
    }

    /// Returns the URL of the page with these parameters.
    fn page(&self) -> String {
        self.at(PAGE).target
    }

    /// Returns the URL of the page whose table begins with the row `start`.
    fn page_at(&self, start: usize) -> String {
        // The URL of the first page has no `start`, so that the page has a single URL.
        let start = (start > 0).then(|| start.to_string());
        self.at(PAGE).query([("start", start.as_deref())]).target
    }

    /// Returns the call for `size` rows of the table, beginning with `start`.
    fn rows(&self, start: usize, size: usize) -> ApiCall {
        let start = start.to_string();
        let size = size.to_string();
        self.at(DOWNLOADS).query([("start", Some(start.as_str())), ("size", Some(size.as_str()))])
    }
}

pub(super) async fn show(member: OperatorRequest) -> PageResult {
    let choice = Choice::from_query(&member)?;
    let start = member.query.integer("start", 0..=i64::from(u32::MAX))?;
    let start = start.and_then(|start| usize::try_from(start).ok()).unwrap_or(0);
    let (status, found) = match load(&member, &choice, start).await {
        Ok(found) => (StatusCode::OK, found),
        Err(refusal) if refusal.is_mistake() => {
            let chosen = chosen(&member, &choice, &Value::Null);
            (refusal.status, context! { alert => refusal.sentences(), chosen })
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let mut groupings = Vec::new();
    for by in DownloadGrouping::VARIANTS {
        let target = choice.clone().with("by", *by).page();
        groupings.push(json!({ "by": by, "target": target, "current": *by == choice.grouping() }));
    }
    let context = context! {
        by => choice.grouping(),
        groupings => template_value(json!(groupings)),
        start,
        ..found
    };
    member.page_with(status, "operator/downloads.html", context)
}

/// `GET /operator/downloads.csv`: returns all rows of the table as CSV for spreadsheets in the language of the
/// page.
pub(super) async fn export(member: OperatorRequest) -> PageResult {
    let call = Choice::from_query(&member)?.at(DOWNLOADS_FILE);
    let visitor = Some(&member.visitor);
    let file = api_client::call_file(&member.app, &member.apis, visitor, &call).await?;
    let (mut parts, body) = file.into_parts();
    // No limit is needed: the API has already built the file in memory.
    let bytes = to_bytes(body, usize::MAX).await.map_err(Error::internal)?;
    let csv = String::from_utf8(bytes.into()).map_err(Error::internal)?;
    let text = spreadsheet_text(&csv, CsvDialect::for_language(language::current_language()));
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::from(text)))
}

async fn load(site: &SiteRequest, choice: &Choice, start: usize) -> Result<PageValue, ApiRefusal> {
    let by_day = choice.clone().with("by", DownloadGrouping::Day.as_str());
    let all_days = usize::try_from(STATISTICS_DAYS_MAX).unwrap_or(usize::MAX);
    let mut by_day = site.call(&by_day.rows(0, all_days)).await?;
    let total = by_day["total"].take();
    let chosen = chosen(site, choice, &by_day);
    let filters = filters(site, choice).await?;
    let mut days = elements(by_day, "rows");
    let chart = DayChart::from_rows(&days);
    let is_by_day = choice.grouping() == DownloadGrouping::Day.as_str();
    let (mut rows, pager) = if is_by_day {
        // The table shows the same days as the chart.
        (std::mem::take(&mut days), PageValue::from(()))
    } else {
        rows_of_page(site, choice, start).await?
    };
    let most = most(site, choice, start, &rows).await?;
    for row in &mut rows {
        complete_row(row, choice, most);
    }
    Ok(context! {
        total => template_value(total),
        rows => template_value(Value::Array(rows)),
        days => template_value(Value::Array(days)),
        chart => PageValue::from(Serde(chart)),
        bar_units => BAR_UNITS,
        filters => template_value(Value::Array(filters)),
        file => choice.at(PAGE_FILE).target,
        chosen,
        pager,
    })
}

/// Loads one page of the table, with the URLs of the previous and the next page.
async fn rows_of_page(
    site: &SiteRequest,
    choice: &Choice,
    start: usize,
) -> Result<(Vec<Value>, PageValue), ApiRefusal> {
    // One extra row shows whether more rows follow.
    let answer = site.call(&choice.rows(start, STATISTICS_SHOWN + 1)).await?;
    let mut rows = elements(answer, "rows");
    let has_more = rows.len() > STATISTICS_SHOWN;
    rows.truncate(STATISTICS_SHOWN);
    let previous = (start > 0).then(|| choice.page_at(start.saturating_sub(STATISTICS_SHOWN)));
    let next = has_more.then(|| choice.page_at(start.saturating_add(STATISTICS_SHOWN)));
    Ok((rows, context! { previous, next }))
}

/// Returns the highest number of downloads of any row. The bars of all pages are scaled to it.
async fn most(
    site: &SiteRequest,
    choice: &Choice,
    start: usize,
    rows: &[Value],
) -> Result<u64, ApiRefusal> {
    let shown = highest(rows);
    if start == 0 {
        return Ok(shown);
    }
    // Rows are sorted by downloads, so for later pages the first row of the table is loaded as well.
    let first = elements(site.call(&choice.rows(0, 1)).await?, "rows");
    Ok(shown.max(highest(&first)))
}

fn highest(rows: &[Value]) -> u64 {
    rows.iter().map(downloads).max().unwrap_or_default()
}

fn downloads(row: &Value) -> u64 {
    row["downloads"].as_u64().unwrap_or_default()
}

/// Adds the length of a row's bar, and the URL of the statistic that breaks the row down.
fn complete_row(row: &mut Value, choice: &Choice, most: u64) {
    row["bar"] = json!(share(downloads(row), most, BAR_UNITS));
    let uri = row["item"].as_str().map(str::to_owned);
    if let Some(uri) = &uri {
        row["places"] = item_links(uri);
    }
    let [organization, agreement] =
        ["organization", "agreement"].map(|name| row[name].as_i64().map(|id| id.to_string()));
    let day = row["day"].as_str().map(str::to_owned);
    let choice = choice.clone();
    let items = DownloadGrouping::Item.as_str();
    let target = match (agreement, organization, uri, day) {
        // The row of an agreement also has its organization.
        (Some(agreement), ..) => choice.with("by", items).with("agreement", agreement),
        (None, Some(organization), ..) => {
            choice.with("by", items).with("organization", organization)
        }
        (None, None, Some(uri), _) => {
            choice.with("by", DownloadGrouping::Organization.as_str()).with("item", uri)
        }
        (None, None, None, Some(day)) => {
            choice.with("by", items).with("from", day.clone()).with("to", day)
        }
        // A row grouped by authentication method cannot be broken down, because the method is not a filter.
        (None, None, None, None) => return,
    };
    row["more"] = json!(target.page());
}

/// Lists the active filters, each with a display name and the URL that removes it.
async fn filters(site: &SiteRequest, choice: &Choice) -> Result<Vec<Value>, ApiRefusal> {
    let mut filters = Vec::new();
    for (kind, property) in FILTERS {
        let Some(value) = choice.get(kind) else { continue };
        let row = site.call(&choice.clone().with("by", kind).rows(0, 1)).await?;
        // Without downloads no row has the name, so the value is shown.
        let name = row["rows"][0][property].as_str().filter(|name| !name.is_empty());
        filters.push(json!({
            "kind": kind,
            "value": value,
            "name": name.unwrap_or(value),
            "without": choice.clone().without(kind).page(),
        }));
    }
    Ok(filters)
}

/// Returns the context of the page's form: the first and last day, the hidden filters, and the offered periods.
/// The API's `answer` supplies the days if the choice has none.
fn chosen(site: &SiteRequest, choice: &Choice, answer: &Value) -> PageValue {
    let from = answer["from"].as_str().or_else(|| choice.get("from")).unwrap_or_default();
    let to = answer["to"].as_str().or_else(|| choice.get("to")).unwrap_or_default();
    let today = clock::now().to_zoned(site.app.shared.site.zone.clone()).date();
    let periods = PERIODS.map(|days| {
        let (first, last) = period(today, days);
        let is_current = first == from && last == to;
        let target = choice.clone().with("from", first).with("to", last).page();
        json!({ "days": days, "target": target, "current": is_current })
    });
    let hidden: Vec<Value> = FILTERS
        .into_iter()
        .filter_map(|(kind, _)| Some(json!({ "name": kind, "value": choice.get(kind)? })))
        .collect();
    template_value(json!({ "from": from, "to": to, "periods": periods, "hidden": hidden }))
}

/// Returns the first and the last of `days` days that end with `today`.
fn period(today: Date, days: i32) -> (String, String) {
    let first = today.checked_sub((days - 1).days()).unwrap_or(today);
    (first.to_string(), today.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(pairs: &[(&'static str, &str)]) -> Choice {
        Choice(pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect())
    }

    fn more(row: Value, choice: &Choice) -> Value {
        let mut row = row;
        complete_row(&mut row, choice, 10);
        row["more"].take()
    }

    #[test]
    fn a_row_leads_to_what_explains_it_within_the_same_choice() {
        let days = choice(&[("from", "2026-11-01"), ("by", "agreement")]);
        let row = json!({ "agreement": 7, "organization": 1, "downloads": 5 });
        let expected = "/operator/downloads?agreement=7&by=item&from=2026-11-01";
        assert_eq!(more(row, &days), expected);
        let row = json!({ "organization": 1, "downloads": 5 });
        let expected = "/operator/downloads?by=item&from=2026-11-01&organization=1";
        assert_eq!(more(row, &days), expected);
        let row = json!({ "item": "https://a.example/media/image/b", "downloads": 5 });
        let expected = "/operator/downloads?by=organization&from=2026-11-01&\
            item=https%3A%2F%2Fa.example%2Fmedia%2Fimage%2Fb";
        assert_eq!(more(row, &days), expected);
        let row = json!({ "day": "2026-11-05", "downloads": 5 });
        let expected = "/operator/downloads?by=item&from=2026-11-05&to=2026-11-05";
        assert_eq!(more(row, &days), expected);
        let row = json!({ "credential": "session", "downloads": 5 });
        assert_eq!(more(row, &days), Value::Null);
    }

    #[test]
    fn a_bar_is_drawn_to_the_row_with_most_downloads() {
        let mut row = json!({ "item": "https://a.example/media/image/b", "downloads": 5 });
        complete_row(&mut row, &Choice::default(), 20);
        assert_eq!(row["bar"], 25);
        assert_eq!(row["places"]["page"], "/item/image/b");
    }

    #[test]
    fn the_table_has_addresses_without_a_needless_start() {
        let choice = choice(&[("by", "item"), ("item", "image/a")]);
        assert_eq!(choice.page_at(0), "/operator/downloads?by=item&item=image%2Fa");
        assert_eq!(choice.page_at(50), "/operator/downloads?by=item&item=image%2Fa&start=50");
        let call = choice.without("item").rows(0, 51).target;
        assert_eq!(call, "/operator/v1/download?by=item&start=0&size=51");
    }

    #[test]
    fn a_period_includes_today() {
        let today = "2026-03-01".parse().unwrap();
        assert_eq!(period(today, 1), ("2026-03-01".to_owned(), "2026-03-01".to_owned()));
        assert_eq!(period(today, 30), ("2026-01-31".to_owned(), "2026-03-01".to_owned()));
    }
}
