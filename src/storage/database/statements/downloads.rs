//! Counts downloads for statistics: by organization, agreement, item, time, and kind of credentials.
//!
//! An order is a download. It is the first order of an item under an agreement; its repetitions within thirty
//! days are free and not recorded (contract purchases-4). An order that needs approval is a download once it
//! is approved. The kind of credentials is read from the audit event that was written with the order.

use jiff::Timestamp;

use super::{ReadTx, key_text, parse};
use crate::storage::database::engine::{ResultRow, ToParam};
use crate::storage::database::error::DbResult;
use model::ItemKey;
use model::account::{AgreementId, OrganizationId};

/// Milliseconds of a quarter of an hour. The days of every time zone begin at a multiple of it.
pub const QUARTER_MS: i64 = 900_000;
/// Maximum difference between the times of an audit event and its order, in milliseconds. The event's time is
/// read a moment earlier.
const EVENT_TOLERANCE_MS: i64 = 3_600_000;

/// The downloads to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadFilter {
    /// The earliest time, inclusive.
    pub from: Timestamp,
    /// The latest time, exclusive.
    pub until: Timestamp,
    pub organization: Option<OrganizationId>,
    pub agreement: Option<AgreementId>,
    pub item: Option<ItemKey>,
}

/// Numbers of orders by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DownloadCounts {
    /// Orders that deliver: bought, or approved.
    pub downloads: u64,
    /// Orders that were reported as used.
    pub used: u64,
    /// Orders that wait for approval.
    pub awaiting: u64,
    /// Orders whose approval was refused.
    pub rejected: u64,
}

impl DownloadCounts {
    /// Adds up both counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            downloads: self.downloads + other.downloads,
            used: self.used + other.used,
            awaiting: self.awaiting + other.awaiting,
            rejected: self.rejected + other.rejected,
        }
    }

    /// Subtracts `other`, which counts some of the same orders.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            downloads: self.downloads.saturating_sub(other.downloads),
            used: self.used.saturating_sub(other.used),
            awaiting: self.awaiting.saturating_sub(other.awaiting),
            rejected: self.rejected.saturating_sub(other.rejected),
        }
    }
}

/// The counts of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationDownloads {
    pub organization: OrganizationId,
    pub name: Option<String>,
    pub counts: DownloadCounts,
}

/// The counts of an agreement, with the organization that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgreementDownloads {
    pub agreement: AgreementId,
    pub name: Option<String>,
    /// The word for the way in which its downloads are paid.
    pub kind: String,
    pub organization: OrganizationId,
    pub organization_name: Option<String>,
    pub counts: DownloadCounts,
}

/// The counts of an item, with the texts that its orders have about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemDownloads {
    pub item: ItemKey,
    pub headline: String,
    pub byline: String,
    pub counts: DownloadCounts,
}

/// Four columns that [`read_counts`] reads. A missing approval is neither true nor false.
const COUNTS: &str =
    "count(CASE WHEN NOT orders.manual OR orders.approved THEN 1 END) AS downloads,
     count(CASE WHEN orders.reported_ms IS NOT NULL AND orders.approved THEN 1 END) AS used,
     count(CASE WHEN orders.manual AND orders.approved IS NULL THEN 1 END) AS awaiting,
     count(CASE WHEN orders.manual AND NOT orders.approved THEN 1 END) AS rejected";

/// Reads the columns [`COUNTS`].
fn read_counts(row: &dyn ResultRow) -> DbResult<DownloadCounts> {
    Ok(DownloadCounts {
        downloads: row.get("downloads")?,
        used: row.get("used")?,
        awaiting: row.get("awaiting")?,
        rejected: row.get("rejected")?,
    })
}

/// A condition on orders, with the values of its parameters.
struct Condition<'f> {
    sql: String,
    values: Vec<Box<dyn ToParam + 'f>>,
}

impl<'f> Condition<'f> {
    /// Adds a value. Returns its parameter.
    fn bind(&mut self, value: impl ToParam + 'f) -> String {
        self.values.push(Box::new(value));
        format!("?{}", self.values.len())
    }

    /// Requires that a column of the orders has this value.
    fn require(&mut self, column: &str, value: impl ToParam + 'f) {
        let parameter = self.bind(value);
        self.sql.push_str(&format!(" AND orders.{column} = {parameter}"));
    }

    /// Returns the end of a statement that lists `size` rows after the first `start`.
    fn page(&mut self, start: usize, size: usize) -> String {
        let size = self.bind(size);
        let start = self.bind(start);
        format!("LIMIT {size} OFFSET {start}")
    }

    fn params(&self) -> Vec<&dyn ToParam> {
        self.values.iter().map(|value| &**value).collect()
    }
}

impl DownloadFilter {
    /// Returns the condition of the filter. The parameters `?1` and `?2` are its times.
    ///
    /// It contains only fields that are set: engines use no index for a condition that may hold for every
    /// value, and refuse parameters that a statement does not have.
    fn condition(&self) -> Condition<'_> {
        let sql = "orders.created_ms >= ?1 AND orders.created_ms < ?2".to_owned();
        let mut condition = Condition { sql, values: Vec::new() };
        condition.bind(self.from);
        condition.bind(self.until);
        if let Some(organization) = self.organization {
            condition.require("organization_id", organization);
        }
        if let Some(agreement) = self.agreement {
            condition.require("agreement_id", agreement);
        }
        if let Some(item) = &self.item {
            condition.require("media_type", item.media_type);
            condition.require("item_id", &item.id);
        }
        condition
    }
}

impl ReadTx<'_> {
    /// Counts all orders of the filter.
    pub fn count_downloads(&self, filter: &DownloadFilter) -> DbResult<DownloadCounts> {
        let condition = filter.condition();
        let sql = format!("SELECT {COUNTS} FROM orders WHERE {}", condition.sql);
        self.tx.load(&sql, &condition.params(), read_counts)
    }

    /// Lists `size` organizations with downloads after the first `start`, most downloads first.
    pub fn downloads_by_organization(
        &self,
        filter: &DownloadFilter,
        start: usize,
        size: usize,
    ) -> DbResult<Vec<OrganizationDownloads>> {
        let mut condition = filter.condition();
        let page = condition.page(start, size);
        let sql = format!(
            "SELECT orders.organization_id, organizations.name, {COUNTS}
             FROM orders JOIN organizations
                 ON organizations.organization_id = orders.organization_id
             WHERE {condition} GROUP BY orders.organization_id, organizations.name
             ORDER BY downloads DESC, awaiting DESC, orders.organization_id {page}",
            condition = condition.sql,
        );
        self.tx.list(&sql, &condition.params(), |row| {
            Ok(OrganizationDownloads {
                organization: row.get("organization_id")?,
                name: row.get("name")?,
                counts: read_counts(row)?,
            })
        })
    }

    /// Lists `size` agreements with downloads after the first `start`, most downloads first.
    pub fn downloads_by_agreement(
        &self,
        filter: &DownloadFilter,
        start: usize,
        size: usize,
    ) -> DbResult<Vec<AgreementDownloads>> {
        let mut condition = filter.condition();
        let page = condition.page(start, size);
        let sql = format!(
            "SELECT orders.agreement_id, agreements.name, agreements.type, orders.organization_id,
                 organizations.name AS organization_name, {COUNTS}
             FROM orders JOIN agreements ON agreements.agreement_id = orders.agreement_id
             JOIN organizations ON organizations.organization_id = orders.organization_id
             WHERE {condition}
             GROUP BY orders.agreement_id, agreements.name, agreements.type,
                 orders.organization_id, organizations.name
             ORDER BY downloads DESC, awaiting DESC, orders.agreement_id {page}",
            condition = condition.sql,
        );
        self.tx.list(&sql, &condition.params(), |row| {
            Ok(AgreementDownloads {
                agreement: row.get("agreement_id")?,
                name: row.get("name")?,
                kind: row.get("type")?,
                organization: row.get("organization_id")?,
                organization_name: row.get("organization_name")?,
                counts: read_counts(row)?,
            })
        })
    }

    /// Lists `size` items with downloads after the first `start`, most downloads first.
    pub fn downloads_by_item(
        &self,
        filter: &DownloadFilter,
        start: usize,
        size: usize,
    ) -> DbResult<Vec<ItemDownloads>> {
        let mut condition = filter.condition();
        let page = condition.page(start, size);
        let sql = format!(
            "SELECT orders.media_type, orders.item_id, max(orders.headline) AS headline,
                 max(orders.byline) AS byline, {COUNTS}
             FROM orders WHERE {condition} GROUP BY orders.media_type, orders.item_id
             ORDER BY downloads DESC, awaiting DESC, orders.media_type, orders.item_id {page}",
            condition = condition.sql,
        );
        self.tx.list(&sql, &condition.params(), |row| {
            let key = key_text(row, "item_id")?;
            Ok(ItemDownloads {
                item: parse(&format!("order of {key}"), &key)?,
                headline: row.get("headline")?,
                byline: row.get("byline")?,
                counts: read_counts(row)?,
            })
        })
    }

    /// Lists the quarters of an hour with downloads, in chronological order. Each is its number of
    /// [`QUARTER_MS`] since 1970.
    pub fn downloads_by_quarter(
        &self,
        filter: &DownloadFilter,
    ) -> DbResult<Vec<(i64, DownloadCounts)>> {
        let condition = filter.condition();
        let sql = format!(
            "SELECT orders.created_ms / {QUARTER_MS} AS quarter, {COUNTS}
             FROM orders WHERE {condition}
             GROUP BY orders.created_ms / {QUARTER_MS} ORDER BY quarter",
            condition = condition.sql,
        );
        self.tx.list(&sql, &condition.params(), |row| Ok((row.get("quarter")?, read_counts(row)?)))
    }

    /// Lists the kinds of credentials with which orders were placed, most downloads first. Orders without an
    /// audit event are missing.
    pub fn downloads_by_credential(
        &self,
        filter: &DownloadFilter,
    ) -> DbResult<Vec<(String, DownloadCounts)>> {
        let condition = filter.condition();
        let sql = format!(
            "SELECT audit_log.credential, {COUNTS} FROM orders JOIN audit_log
                 ON orders.order_id = CASE WHEN audit_log.object LIKE 'order/%'
                     THEN CAST(substr(audit_log.object, 7) AS BIGINT) END
             WHERE {condition} AND audit_log.action = 'order_created'
                 AND audit_log.at_ms >= ?1 - {EVENT_TOLERANCE_MS}
                 AND audit_log.at_ms < ?2 + {EVENT_TOLERANCE_MS}
             GROUP BY audit_log.credential ORDER BY downloads DESC, audit_log.credential",
            condition = condition.sql,
        );
        self.tx
            .list(&sql, &condition.params(), |row| Ok((row.get("credential")?, read_counts(row)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::audit::{Actor, AuditAction, AuditEvent, CredentialKind, ObjectKind};
    use crate::storage::database::Db;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    const ACCOUNTS: &str = "
        INSERT INTO organizations (organization_id, name, address) VALUES (1, 'One', '{}'), (2, NULL, '{}');
        INSERT INTO agreements (agreement_id, organization_id, type, super, name)
            VALUES (10, 1, 'Subscription', TRUE, 'All'), (11, 1, 'Normal', TRUE, NULL),
                (20, 2, 'Prepaid', TRUE, 'Ten');
        INSERT INTO users (user_id, user_name, roles, admin, mediebank, active, service_account, created_ms)
            VALUES (7, 'editor', '[]', FALSE, FALSE, TRUE, FALSE, 0);";

    /// An order: agreement, item, time, and whether it is manual, approved and reported.
    fn order(agreement: i64, item: &str, ms: i64, state: &str) -> String {
        let (approved, manual, reported) = match state {
            "bought" => ("NULL", "FALSE", "NULL"),
            "used" => ("TRUE", "FALSE", "1"),
            "unused" => ("FALSE", "FALSE", "1"),
            "awaiting" => ("NULL", "TRUE", "NULL"),
            "approved" => ("TRUE", "TRUE", "1"),
            _ => ("FALSE", "TRUE", "1"),
        };
        format!(
            "INSERT INTO orders (organization_id, user_id, agreement_id, media_type, item_id,
                 headline, byline, source, agreement, product, created_ms,
                 downloadable_until_ms, reported_ms, approved, manual)
             VALUES ({organization}, 7, {agreement}, 'image', '{item}', 'About {item}', 'A', '',
                 '{{}}', '{{}}', {ms}, {ms}, {reported}, {approved}, {manual});",
            organization = agreement / 10,
        )
    }

    fn scene(db: &Db) {
        let orders = [
            order(10, "a", 0, "bought"),
            order(10, "b", 899_999, "used"),
            order(10, "a", 900_000, "unused"),
            order(11, "a", 1_800_000, "awaiting"),
            order(11, "b", 1_800_001, "approved"),
            order(11, "c", 1_800_002, "rejected"),
            order(20, "b", 9_000_000, "bought"),
        ];
        db.write_blocking(move |tx| {
            tx.run_sql(ACCOUNTS)?;
            tx.run_sql(&orders.concat())?;
            for (number, credential) in [
                (1, CredentialKind::Session),
                (2, CredentialKind::ApiKey),
                (7, CredentialKind::Session),
            ] {
                let actor = Actor { credential, ..Actor::UNKNOWN };
                let event = AuditEvent::new(AuditAction::OrderCreated, actor);
                let event = event.with_object(ObjectKind::Order, number);
                tx.insert_audit(&AuditEvent { at: at(number * 1000), ..event })?;
            }
            // An event of another kind about the same order does not count.
            let reported = AuditEvent::new(AuditAction::OrderReported, Actor::UNKNOWN);
            tx.insert_audit(&AuditEvent {
                at: at(0),
                ..reported.with_object(ObjectKind::Order, 1)
            })
        })
        .unwrap();
    }

    fn all() -> DownloadFilter {
        DownloadFilter {
            from: at(0),
            until: at(i64::from(u32::MAX)),
            organization: None,
            agreement: None,
            item: None,
        }
    }

    fn read<T: Send + 'static>(
        db: &Db,
        filter: DownloadFilter,
        read: impl FnOnce(&ReadTx<'_>, &DownloadFilter) -> DbResult<T> + Send + 'static,
    ) -> T {
        db.read_blocking(move |tx| read(tx, &filter)).unwrap()
    }

    fn counts(downloads: u64, used: u64, awaiting: u64, rejected: u64) -> DownloadCounts {
        DownloadCounts { downloads, used, awaiting, rejected }
    }

    #[test]
    fn orders_count_as_downloads_once_they_deliver() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        scene(&db);
        let count = |filter| read(&db, filter, |tx, filter| tx.count_downloads(filter));
        assert_eq!(count(all()), counts(5, 2, 1, 1));
        assert_eq!(count(DownloadFilter { until: at(900_000), ..all() }), counts(2, 1, 0, 0));
        assert_eq!(count(DownloadFilter { from: at(900_000), ..all() }), counts(3, 1, 1, 1));
        let of = |id| DownloadFilter { organization: Some(OrganizationId(id)), ..all() };
        assert_eq!((count(of(1)), count(of(2))), (counts(4, 2, 1, 1), counts(1, 0, 0, 0)));
        let agreement = Some(AgreementId(11));
        assert_eq!(count(DownloadFilter { agreement, ..of(1) }), counts(1, 1, 1, 1));
        let item = "image/a".parse().ok();
        assert_eq!(count(DownloadFilter { item, ..of(1) }), counts(2, 0, 1, 0));
    }

    #[test]
    fn groups_are_listed_with_the_most_downloads_first_and_in_pages() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        scene(&db);
        let found = read(&db, all(), |tx, filter| tx.downloads_by_organization(filter, 0, 9));
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.organization.0, one.name.as_deref(), one.counts.downloads))
            .collect();
        assert_eq!(found, [(1, Some("One"), 4), (2, None, 1)]);
        let found = read(&db, all(), |tx, filter| tx.downloads_by_agreement(filter, 1, 2));
        let found: Vec<_> = found.iter().map(|one| (one.agreement.0, one.kind.as_str())).collect();
        // The one with an order that waits comes before the other with as many downloads.
        assert_eq!(found, [(11, "Normal"), (20, "Prepaid")]);
        let found = read(&db, all(), |tx, filter| tx.downloads_by_item(filter, 0, 2));
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.item.to_string(), one.headline.as_str(), one.counts.downloads))
            .collect();
        let row = |item: &str, count| (format!("image/{item}"), count);
        let expected = [row("b", 3), row("a", 2)];
        let shown: Vec<_> = found.iter().map(|(item, _, count)| (item.clone(), *count)).collect();
        assert_eq!(shown, expected);
        assert_eq!(found[0].1, "About b");
        // The page is that of what a filter leaves.
        let organization = Some(OrganizationId(1));
        let of = |item: &str| DownloadFilter { item: item.parse().ok(), organization, ..all() };
        let found = read(&db, of("image/b"), |tx, filter| tx.downloads_by_agreement(filter, 1, 9));
        let found: Vec<_> =
            found.iter().map(|one| (one.agreement.0, one.counts.downloads)).collect();
        assert_eq!(found, [(11, 1)]);
    }

    #[test]
    fn times_and_credentials_add_up_to_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        scene(&db);
        let quarters = read(&db, all(), |tx, filter| tx.downloads_by_quarter(filter));
        let downloads: Vec<_> = quarters.iter().map(|(at, one)| (*at, one.downloads)).collect();
        assert_eq!(downloads, [(0, 2), (1, 1), (2, 1), (10, 1)]);
        let sum = |sum: DownloadCounts, one: &(i64, DownloadCounts)| sum.plus(one.1);
        assert_eq!(quarters.iter().fold(DownloadCounts::default(), sum), counts(5, 2, 1, 1));
        let found = read(&db, all(), |tx, filter| tx.downloads_by_credential(filter));
        let expected = [
            ("session".to_owned(), counts(2, 0, 0, 0)),
            ("api_key".to_owned(), counts(1, 1, 0, 0)),
        ];
        assert_eq!(found, expected);
        assert_eq!(counts(5, 2, 1, 1).minus(counts(3, 1, 0, 0)), counts(2, 1, 1, 1));
    }
}
