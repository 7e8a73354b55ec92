//! The columns of a statistic: the same names and values as JSON and as CSV.

use serde_json::{Map, Value, json};

use super::{DownloadGrouping, DownloadRow, DownloadStatistics, csv};
use crate::storage::database::DownloadCounts;
use model::ItemKey;

impl DownloadGrouping {
    /// Returns the names of the columns that identify a row.
    fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Organization => &["organization", "organizationName"],
            Self::Agreement => &[
                "agreement",
                "agreementName",
                "agreementType",
                "organization",
                "organizationName",
            ],
            Self::Item => &["item", "headline", "byline"],
            Self::Day => &["day"],
            Self::Credential => &["credential"],
        }
    }
}

/// Writes the URL of an item.
type ItemUrl<'a> = &'a dyn Fn(&ItemKey) -> String;

/// The names of the columns with numbers of orders.
const COUNTS: [&str; 4] = ["downloads", "used", "awaiting", "rejected"];

fn counts(counts: DownloadCounts) -> [Value; 4] {
    let DownloadCounts { downloads, used, awaiting, rejected } = counts;
    [json!(downloads), json!(used), json!(awaiting), json!(rejected)]
}

/// Returns the values that identify a row, in the order of the columns.
fn identity(row: &DownloadRow, item_url: ItemUrl<'_>) -> Vec<Value> {
    match row {
        DownloadRow::Organization(row) => vec![json!(row.organization), json!(row.name)],
        DownloadRow::Agreement(row) => vec![
            json!(row.agreement),
            json!(row.name),
            json!(row.kind),
            json!(row.organization),
            json!(row.organization_name),
        ],
        DownloadRow::Item(row) => {
            vec![json!(item_url(&row.item)), json!(row.headline), json!(row.byline)]
        }
        DownloadRow::Day(day, _) => vec![json!(day.to_string())],
        DownloadRow::Credential(word, _) => vec![json!(word)],
    }
}

fn values(row: &DownloadRow, item_url: ItemUrl<'_>) -> Vec<Value> {
    let mut values = identity(row, item_url);
    values.extend(counts(row.counts()));
    values
}

impl DownloadStatistics {
    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.grouping.columns().iter().copied().chain(COUNTS)
    }

    /// Renders the statistic as JSON: the total, and an object for each row. Properties without a value are
    /// left out; `item_url` writes the URL of an item.
    #[must_use]
    pub fn json(&self, item_url: &dyn Fn(&ItemKey) -> String) -> Map<String, Value> {
        let names = COUNTS.into_iter().map(str::to_owned);
        let total: Map<String, Value> = names.zip(counts(self.total)).collect();
        let rows: Vec<Value> =
            self.rows.iter().map(|row| Value::Object(self.row_json(row, item_url))).collect();
        Map::from_iter([
            ("by".to_owned(), json!(self.grouping.as_str())),
            ("total".to_owned(), Value::Object(total)),
            ("rows".to_owned(), Value::Array(rows)),
        ])
    }

    /// Renders a row as JSON, without properties that have no value.
    fn row_json(&self, row: &DownloadRow, item_url: ItemUrl<'_>) -> Map<String, Value> {
        let mut object = Map::new();
        for (name, value) in self.names().zip(values(row, item_url)) {
            if !value.is_null() {
                object.insert(name.to_owned(), value);
            }
        }
        object
    }

    /// Renders the statistic as CSV (RFC 4180), with the names of the columns as its first line; `item_url`
    /// writes the URL of an item.
    #[must_use]
    pub fn csv(&self, item_url: &dyn Fn(&ItemKey) -> String) -> String {
        let mut text = String::new();
        csv::write_line(&mut text, self.names().map(Value::from));
        for row in &self.rows {
            csv::write_line(&mut text, values(row, item_url));
        }
        text
    }
}

#[cfg(test)]
mod tests {
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
        });
        assert_eq!(Value::Object(found.json(&url)), expected);
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
