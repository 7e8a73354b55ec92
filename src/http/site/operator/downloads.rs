//! `/operator/downloads`: download statistics as a chart, as tables, and as a CSV file.

use std::{collections::BTreeMap, str::FromStr};

use api::operation::{
    DownloadGrouping, DownloadQuery, DownloadRow, DownloadStatistics, ExportDownloads, ListRange,
    LoadDownloads,
};
use axum::body::{Body, to_bytes};
use axum::http::{StatusCode, header};
use axum::response::Response;
use jiff::{ToSpan, civil::Date};
use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;
use strum::VariantNames;

use super::OperatorRequest;
use super::chart::{DayChart, share};
use crate::http::site::account::ListPage;
use crate::http::site::csv::{separator, spreadsheet_text};
use crate::http::site::{ApiCall, ApiRefusal, PageResult, SiteRequest, form_refusal, language};
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::STATISTICS_DAYS_MAX;

/// Rows that a page of statistics shows; the CSV has all.
const STATISTICS_SHOWN: usize = 50;

const PAGE: &str = "/operator/downloads";
const PAGE_FILE: &str = "/operator/downloads.csv";

/// The groupings whose values are also filters of downloads.
const FILTERS: [DownloadGrouping; 3] =
    [DownloadGrouping::Organization, DownloadGrouping::Agreement, DownloadGrouping::Item];
/// The parameters that select the statistic, both of the page and of the API.
const PARAMETERS: [&str; 6] = ["agreement", "by", "from", "item", "organization", "to"];
/// The lengths, in days, of the periods that the page offers.
const PERIODS: [i32; 3] = [7, 30, 365];
/// The length of the longest bar, in units of its SVG.
const BAR_UNITS: u64 = 100;

/// The selected statistic: the values of [`PARAMETERS`] in the page's URL.
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

    /// Returns the parameters of the API. Fails like the API if one of them cannot be parsed.
    fn query(&self) -> Result<DownloadQuery, ApiRefusal> {
        let words = format!("one of {}", DownloadGrouping::VARIANTS.join(", "));
        let day = "a day such as 2026-11-30";
        Ok(DownloadQuery {
            by: self.parsed("by", "enum", &words)?.unwrap_or_default(),
            from: self.parsed("from", "format", day)?,
            to: self.parsed("to", "format", day)?,
            organization: self.parsed("organization", "type", "an integer")?,
            agreement: self.parsed("agreement", "type", "an integer")?,
            item: self.get("item").map(str::to_owned),
        })
    }

    fn parsed<T: FromStr>(
        &self,
        name: &str,
        rule: &'static str,
        expected: &str,
    ) -> Result<Option<T>, ApiRefusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse::<T>().map(Some).map_err(|_| {
            ApiRefusal::invalid(rule, name, &format!("is `{text}`, expected {expected}"))
        })
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.insert(name, value.into());
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// Returns the URL of the page, or of its file, with these parameters.
    fn at(&self, path: &str) -> ApiCall {
        ApiCall::get(path).query(self.0.iter().map(|(name, value)| (*name, Some(value.as_str()))))
    }

    /// Returns the URL of the page with these parameters.
    fn page(&self) -> String {
        self.at(PAGE).target
    }
}

/// A row of the table.
#[derive(Serialize)]
struct ShownRow {
    #[serde(flatten)]
    row: DownloadRow,
    /// The length of its bar.
    bar: u64,
    /// The URL of the statistic that breaks it down.
    more: Option<String>,
}

impl ShownRow {
    /// Completes a row; the longest bar is that of a row with `most` downloads.
    fn new(row: DownloadRow, choice: &Choice, most: u64) -> Self {
        Self {
            bar: share(row.counts.downloads, most, BAR_UNITS),
            more: breakdown(&row, choice),
            row,
        }
    }
}

pub(super) async fn show(member: OperatorRequest) -> PageResult {
    let choice = Choice::from_query(&member)?;
    let list_page = ListPage::from_query(&member, &PARAMETERS, STATISTICS_SHOWN)?;
    let (status, found) = match load(&member, &choice, &list_page).await {
        Ok(found) => (StatusCode::OK, found),
        Err(refusal) => {
            let refusal = form_refusal(refusal)?;
            let [from, to] = ["from", "to"].map(|name| choice.get(name).unwrap_or_default());
            let chosen = chosen(&member, &choice, from, to);
            (refusal.status, context! { alert => refusal.sentences(), chosen })
        }
    };
    let current = choice.get("by").unwrap_or(DownloadGrouping::default().as_str());
    let groupings = DownloadGrouping::VARIANTS.iter().map(|by| {
        let target = choice.clone().with("by", *by).page();
        context! { by => *by, target, current => *by == current }
    });
    let groupings: PageValue = groupings.collect();
    let context = context! { by => current, groupings, start => list_page.start, ..found };
    member.page_with(status, "operator/downloads.html", context)
}

/// `GET /operator/downloads.csv`: returns all rows of the table as CSV for spreadsheets in the language of the
/// page.
pub(super) async fn export(member: OperatorRequest) -> PageResult {
    let query = Choice::from_query(&member)?.query()?;
    let request = ExportDownloads { query, range: ListRange::default() };
    let file = member.load_file(&request).await?;
    let (mut parts, body) = file.into_parts();
    // No limit is needed: the API has already built the file in memory.
    let bytes = to_bytes(body, usize::MAX).await.map_err(Error::internal)?;
    let csv = String::from_utf8(bytes.into()).map_err(Error::internal)?;
    let text = spreadsheet_text(&csv, separator(language::current_language()));
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::from(text)))
}

async fn load(
    site: &SiteRequest,
    choice: &Choice,
    list_page: &ListPage,
) -> Result<PageValue, ApiRefusal> {
    let query = choice.query()?;
    let all_days = usize::try_from(STATISTICS_DAYS_MAX).unwrap_or(usize::MAX);
    let by_day = DownloadQuery { by: DownloadGrouping::Day, ..query.clone() };
    let by_day = ask(site, by_day, 0, all_days).await?;
    let chosen = chosen(site, choice, &by_day.from.to_string(), &by_day.to.to_string());
    let filters = filters(site, choice, &query).await?;
    let mut days = by_day.rows;
    let chart = DayChart::from_rows(&days);
    let (rows, pager) = if query.by == DownloadGrouping::Day {
        // The table shows the same days as the chart.
        (std::mem::take(&mut days), PageValue::from(()))
    } else {
        let size = list_page.size_with_next();
        let mut rows = ask(site, query.clone(), list_page.start, size).await?.rows;
        let pager = list_page.paginate(&mut rows);
        (rows, pager)
    };
    let most = most(site, &query, list_page.start, &rows).await?;
    let rows: Vec<ShownRow> =
        rows.into_iter().map(|row| ShownRow::new(row, choice, most)).collect();
    Ok(context! {
        total => Serde(by_day.total),
        rows => Serde(rows),
        days => Serde(days),
        chart => Serde(chart),
        bar_units => BAR_UNITS,
        filters,
        file => choice.at(PAGE_FILE).target,
        chosen,
        pager,
    })
}

/// Loads `size` rows of a statistic, beginning with `start`.
async fn ask(
    site: &SiteRequest,
    query: DownloadQuery,
    start: usize,
    size: usize,
) -> Result<DownloadStatistics, ApiRefusal> {
    site.ask(&LoadDownloads { query, range: ListRange { size, start } }).await
}

/// Returns the highest number of downloads of any row. The bars of all pages are scaled to it.
async fn most(
    site: &SiteRequest,
    query: &DownloadQuery,
    start: usize,
    rows: &[DownloadRow],
) -> Result<u64, ApiRefusal> {
    let shown = highest(rows);
    if start == 0 {
        return Ok(shown);
    }
    // Rows are sorted by downloads, so for later pages the first row of the table is loaded as well.
    let first = ask(site, query.clone(), 0, 1).await?.rows;
    Ok(shown.max(highest(&first)))
}

fn highest(rows: &[DownloadRow]) -> u64 {
    rows.iter().map(|row| row.counts.downloads).max().unwrap_or_default()
}

/// Returns the URL of the statistic that breaks a row down, if there is one.
fn breakdown(row: &DownloadRow, choice: &Choice) -> Option<String> {
    let items = choice.clone().with("by", DownloadGrouping::Item.as_str());
    // The row of an agreement also has its organization.
    let target = if let Some(agreement) = row.agreement {
        items.with("agreement", agreement.to_string())
    } else if let Some(organization) = row.organization {
        items.with("organization", organization.to_string())
    } else if let Some(uri) = &row.item {
        items.with("by", DownloadGrouping::Organization.as_str()).with("item", uri)
    } else {
        // A row grouped by authentication method cannot be broken down, because the method is not a filter.
        let day = row.day?.to_string();
        items.with("from", &day).with("to", day)
    };
    Some(target.page())
}

/// Lists the active filters, each with a display name and the URL that removes it.
async fn filters(
    site: &SiteRequest,
    choice: &Choice,
    query: &DownloadQuery,
) -> Result<PageValue, ApiRefusal> {
    let mut filters = Vec::new();
    for by in FILTERS {
        let kind = by.as_str();
        let Some(value) = choice.get(kind) else { continue };
        let found = ask(site, DownloadQuery { by, ..query.clone() }, 0, 1).await?;
        let name = found.rows.into_iter().next().and_then(|row| filter_name(by, row));
        // Without downloads no row has the name, so the value is shown.
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| value.to_owned());
        let without = choice.clone().without(kind).page();
        filters.push(context! { kind, value, name, without });
    }
    Ok(filters.into_iter().collect())
}

/// Returns the name of what a row counts downloads of.
fn filter_name(by: DownloadGrouping, row: DownloadRow) -> Option<String> {
    match by {
        DownloadGrouping::Organization => row.organization_name,
        DownloadGrouping::Agreement => row.agreement_name,
        DownloadGrouping::Item => row.headline,
        DownloadGrouping::Day | DownloadGrouping::Credential => None,
    }
}

/// Returns the context of the page's form: the first and last day, the hidden filters, and the offered periods.
fn chosen(site: &SiteRequest, choice: &Choice, from: &str, to: &str) -> PageValue {
    let today = clock::now().to_zoned(site.app.shared.site.zone.clone()).date();
    let periods = PERIODS.into_iter().map(|days| {
        let (first, last) = period(today, days);
        let current = first == from && last == to;
        let target = choice.clone().with("from", first).with("to", last).page();
        context! { days, target, current }
    });
    let periods: PageValue = periods.collect();
    let filters = FILTERS.into_iter().map(DownloadGrouping::as_str);
    let hidden: PageValue =
        filters.filter_map(|name| Some(context! { name, value => choice.get(name)? })).collect();
    context! { from, to, periods, hidden }
}

/// Returns the first and the last of `days` days that end with `today`.
fn period(today: Date, days: i32) -> (String, String) {
    let first = today.checked_sub((days - 1).days()).unwrap_or(today);
    (first.to_string(), today.to_string())
}

#[cfg(test)]
mod tests {
    use api::operation::DownloadCounts;

    use super::*;

    fn choice(pairs: &[(&'static str, &str)]) -> Choice {
        Choice(pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect())
    }

    #[test]
    fn a_row_leads_to_what_explains_it_within_the_same_choice() {
        let days = choice(&[("from", "2026-11-01"), ("by", "agreement")]);
        let check = |row: DownloadRow, expected: Option<&str>| {
            let target = expected.map(|query| format!("/operator/downloads?{query}"));
            assert_eq!(breakdown(&row, &days), target);
        };
        let empty = DownloadRow::default();
        let row = DownloadRow { organization: Some(1), ..empty.clone() };
        check(row.clone(), Some("by=item&from=2026-11-01&organization=1"));
        let row = DownloadRow { agreement: Some(7), ..row };
        check(row, Some("agreement=7&by=item&from=2026-11-01"));
        let item = Some("https://a.example/media/image/b".to_owned());
        let expected = "by=organization&from=2026-11-01&\
            item=https%3A%2F%2Fa.example%2Fmedia%2Fimage%2Fb";
        check(DownloadRow { item, ..empty.clone() }, Some(expected));
        let row = DownloadRow { day: "2026-11-05".parse().ok(), ..empty.clone() };
        check(row, Some("by=item&from=2026-11-05&to=2026-11-05"));
        check(DownloadRow { credential: Some("session".to_owned()), ..empty }, None);
    }

    #[test]
    fn a_bar_is_drawn_to_the_row_with_most_downloads() {
        let counts = DownloadCounts { downloads: 5, ..DownloadCounts::default() };
        let row = DownloadRow { counts, ..DownloadRow::default() };
        assert_eq!(ShownRow::new(row, &Choice::default(), 20).bar, 25);
    }

    #[test]
    fn a_choice_is_the_query_of_the_api() {
        let found = choice(&[("by", "day"), ("to", "2026-11-05"), ("agreement", "7")]).query();
        let to = "2026-11-05".parse().ok();
        let expected = DownloadQuery {
            by: DownloadGrouping::Day,
            to,
            agreement: Some(7),
            ..DownloadQuery::default()
        };
        assert_eq!(found.unwrap(), expected);
        let refusal = choice(&[("from", "soon")]).query().unwrap_err();
        let message = "from is `soon`, expected a day such as 2026-11-30";
        assert_eq!(refusal.sentences(), [message]);
    }

    #[test]
    fn a_period_includes_today() {
        let today = "2026-03-01".parse().unwrap();
        assert_eq!(period(today, 1), ("2026-03-01".to_owned(), "2026-03-01".to_owned()));
        assert_eq!(period(today, 30), ("2026-01-31".to_owned(), "2026-03-01".to_owned()));
    }
}
