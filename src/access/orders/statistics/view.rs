//! Statistics of downloads for clients: as API objects, and as CSV with the same names and values.

use api::operation;
use api::operation::DownloadGrouping;
use serde_json::Value;

use super::{DayRange, DownloadRow, DownloadStatistics, csv};
use crate::storage::database::DownloadCounts;
use model::ItemKey;

/// Writes the URL of an item.
type ItemUrl<'a> = &'a dyn Fn(&ItemKey) -> String;

/// Returns the names of the columns of a table: the properties that identify a row, and the numbers of orders.
fn columns(grouping: DownloadGrouping) -> impl Iterator<Item = &'static str> {
    let identity: &[&str] = match grouping {
        DownloadGrouping::Organization => &["organization", "organizationName"],
        DownloadGrouping::Agreement => {
            &["agreement", "agreementName", "agreementType", "organization", "organizationName"]
        }
        DownloadGrouping::Item => &["item", "headline", "byline"],
        DownloadGrouping::Day => &["day"],
        DownloadGrouping::Credential => &["credential"],
    };
    identity.iter().copied().chain(["downloads", "used", "awaiting", "rejected"])
}

fn counts(counts: DownloadCounts) -> operation::DownloadCounts {
    let DownloadCounts { downloads, used, awaiting, rejected } = counts;
    operation::DownloadCounts { downloads, used, awaiting, rejected }
}

fn row_view(row: &DownloadRow, item_url: ItemUrl<'_>) -> operation::DownloadRow {
    let view = operation::DownloadRow {
        counts: counts(row.counts()),
        ..operation::DownloadRow::default()
    };
    match row {
        DownloadRow::Organization(row) => operation::DownloadRow {
            organization: Some(row.organization.0),
            organization_name: row.name.clone(),
            ..view
        },
        DownloadRow::Agreement(row) => operation::DownloadRow {
            agreement: Some(row.agreement.0),
            agreement_name: row.name.clone(),
            agreement_type: Some(row.kind.clone()),
            organization: Some(row.organization.0),
            organization_name: row.organization_name.clone(),
            ..view
        },
        DownloadRow::Item(row) => operation::DownloadRow {
            item: Some(item_url(&row.item)),
            headline: Some(row.headline.clone()),
            byline: Some(row.byline.clone()),
            ..view
        },
        DownloadRow::Day(day, _) => operation::DownloadRow { day: Some(*day), ..view },
        DownloadRow::Credential(word, _) => {
            operation::DownloadRow { credential: Some(word.clone()), ..view }
        }
    }
}

impl DownloadStatistics {
    /// Creates the view of the statistic of `days`; `item_url` writes the URL of an item.
    pub fn view(&self, days: &DayRange, item_url: ItemUrl<'_>) -> operation::DownloadStatistics {
        operation::DownloadStatistics {
            by: self.grouping,
            total: counts(self.total),
            rows: self.rows.iter().map(|row| row_view(row, item_url)).collect(),
            from: days.first,
            to: days.last,
            timezone: days.zone.iana_name().unwrap_or("UTC").to_owned(),
        }
    }

    /// Prints the rows as CSV (RFC 4180), with the names of the columns as its first line; `item_url` writes the
    /// URL of an item.
    pub fn csv(&self, item_url: ItemUrl<'_>) -> String {
        let mut text = String::new();
        csv::write_line(&mut text, columns(self.grouping).map(Value::from));
        for row in &self.rows {
            // The columns are the properties of the JSON, so the file cannot differ from it.
            let properties = serde_json::to_value(row_view(row, item_url)).unwrap_or_default();
            let values = columns(self.grouping).map(|name| properties[name].clone());
            csv::write_line(&mut text, values);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::*;
    use crate::storage::database::{ItemDownloads, OrganizationDownloads};
    use model::account::OrganizationId;

    fn url(key: &ItemKey) -> String {
        format!("https://a.example/media/{key}")
    }

    fn numbers(downloads: u64) -> DownloadCounts {
        DownloadCounts { downloads, used: 2, awaiting: 1, rejected: 0 }
    }

    #[test]
    fn json_and_csv_have_the_same_columns_and_values() {
        let row = |id, name: Option<&str>, downloads| {
            DownloadRow::Organization(OrganizationDownloads {
                organization: OrganizationId(id),
                name: name.map(str::to_owned),
                counts: numbers(downloads),
            })
        };
        let found = DownloadStatistics {
            grouping: DownloadGrouping::Organization,
            total: numbers(9),
            rows: vec![row(1, Some("A, \"B\" & C"), 5), row(2, None, 4)],
        };
        let expected = json!({
            "by": "organization",
            "total": { "downloads": 9, "used": 2, "awaiting": 1, "rejected": 0 },
            "rows": [
                { "organization": 1, "organizationName": "A, \"B\" & C",
                  "downloads": 5, "used": 2, "awaiting": 1, "rejected": 0 },
                { "organization": 2, "downloads": 4, "used": 2, "awaiting": 1, "rejected": 0 },
            ],
            "from": "2026-11-01", "to": "2026-11-30", "timezone": "UTC",
        });
        let [first, last] = ["2026-11-01", "2026-11-30"].map(|day| day.parse().unwrap());
        let days = DayRange { first, last, zone: TimeZone::UTC };
        assert_eq!(serde_json::to_value(found.view(&days, &url)).unwrap(), expected);
        let lines = "organization,organizationName,downloads,used,awaiting,rejected\r\n\
             1,\"A, \"\"B\"\" & C\",5,2,1,0\r\n2,,4,2,1,0\r\n";
        assert_eq!(found.csv(&url), lines);
    }

    #[test]
    fn an_item_is_named_by_its_url_and_a_table_without_rows_has_a_header() {
        let row = DownloadRow::Item(ItemDownloads {
            item: "image/a".parse().unwrap(),
            headline: "Hamn i Luleå".to_owned(),
            byline: String::new(),
            counts: numbers(3),
        });
        let mut found = DownloadStatistics {
            grouping: DownloadGrouping::Item,
            total: numbers(3),
            rows: vec![row],
        };
        let header = "item,headline,byline,downloads,used,awaiting,rejected\r\n";
        let line = "https://a.example/media/image/a,Hamn i Luleå,,3,2,1,0\r\n";
        assert_eq!(found.csv(&url), format!("{header}{line}"));
        found.rows.clear();
        assert_eq!(found.csv(&url), header);
    }
}
