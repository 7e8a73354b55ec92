//! Statistics of downloads for clients: as API objects, and as CSV with the same names and values.

use api::operation::{self, DownloadGrouping, DownloadRow, DownloadStatistics};
use serde_json::Value;

use super::csv;
use crate::storage::database::{
    AgreementDownloads, DownloadCounts, ItemDownloads, OrganizationDownloads,
};
use model::ItemKey;

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

pub(super) fn counts(counts: DownloadCounts) -> operation::DownloadCounts {
    let DownloadCounts { downloads, used, awaiting, rejected } = counts;
    operation::DownloadCounts { downloads, used, awaiting, rejected }
}

pub(super) fn organization_row(row: OrganizationDownloads) -> DownloadRow {
    DownloadRow {
        organization: Some(row.organization.0),
        organization_name: row.name,
        counts: counts(row.counts),
        ..DownloadRow::default()
    }
}

pub(super) fn agreement_row(row: AgreementDownloads) -> DownloadRow {
    DownloadRow {
        agreement: Some(row.agreement.0),
        agreement_name: row.name,
        agreement_type: Some(row.kind),
        organization: Some(row.organization.0),
        organization_name: row.organization_name,
        counts: counts(row.counts),
        ..DownloadRow::default()
    }
}

pub(super) fn item_row(row: ItemDownloads, item_url: &dyn Fn(&ItemKey) -> String) -> DownloadRow {
    DownloadRow {
        item: Some(item_url(&row.item)),
        headline: Some(row.headline),
        byline: Some(row.byline),
        counts: counts(row.counts),
        ..DownloadRow::default()
    }
}

/// Prints the rows of a statistic as CSV (RFC 4180), with the names of the columns as its first line.
pub fn downloads_as_csv(statistics: &DownloadStatistics) -> String {
    let mut text = String::new();
    csv::write_line(&mut text, columns(statistics.by).map(Value::from));
    for row in &statistics.rows {
        // The columns are the properties of the JSON, so the file cannot differ from it.
        let properties = serde_json::to_value(row).unwrap_or_default();
        let values = columns(statistics.by).map(|name| properties[name].clone());
        csv::write_line(&mut text, values);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use model::account::OrganizationId;

    fn url(key: &ItemKey) -> String {
        format!("https://a.example/media/{key}")
    }

    fn numbers(downloads: u64) -> DownloadCounts {
        DownloadCounts { downloads, used: 2, awaiting: 1, rejected: 0 }
    }

    fn statistics(by: DownloadGrouping, total: u64, rows: Vec<DownloadRow>) -> DownloadStatistics {
        let [from, to] = ["2026-11-01", "2026-11-30"].map(|day| day.parse().unwrap());
        let total = counts(numbers(total));
        DownloadStatistics { by, total, rows, from, to, timezone: "UTC".to_owned() }
    }

    #[test]
    fn json_and_csv_have_the_same_columns_and_values() {
        let row = |id, name: Option<&str>, downloads| {
            organization_row(OrganizationDownloads {
                organization: OrganizationId(id),
                name: name.map(str::to_owned),
                counts: numbers(downloads),
            })
        };
        let rows = vec![row(1, Some("A, \"B\" & C"), 5), row(2, None, 4)];
        let found = statistics(DownloadGrouping::Organization, 9, rows);
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
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
        let header = "\"organization\",\"organizationName\",\"downloads\",\"used\",\"awaiting\",\"rejected\"\r\n";
        let lines = "1,\"A, \"\"B\"\" & C\",5,2,1,0\r\n2,,4,2,1,0\r\n";
        assert_eq!(downloads_as_csv(&found), format!("{header}{lines}"));
    }

    #[test]
    fn an_item_is_named_by_its_url_and_a_table_without_rows_has_a_header() {
        let row = ItemDownloads {
            item: "image/a".parse().unwrap(),
            headline: "Hamn i Luleå".to_owned(),
            byline: String::new(),
            counts: numbers(3),
        };
        let mut found = statistics(DownloadGrouping::Item, 3, vec![item_row(row, &url)]);
        let names = ["item", "headline", "byline", "downloads", "used", "awaiting", "rejected"];
        let header = format!("\"{}\"\r\n", names.join("\",\""));
        let line = "\"https://a.example/media/image/a\",\"Hamn i Luleå\",\"\",3,2,1,0\r\n";
        assert_eq!(downloads_as_csv(&found), format!("{header}{line}"));
        found.rows.clear();
        assert_eq!(downloads_as_csv(&found), header);
    }
}
