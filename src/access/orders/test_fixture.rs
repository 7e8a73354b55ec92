//! A database with two organizations, and callers from them.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tempfile::TempDir;

use super::{ItemFacts, Orders};
use crate::access::auth::{Auth, HashLimits, PresentedCredentials, Principal};
use crate::storage::database::{Db, NewItem, OrdersOf};
use model::account::{Order, OrderStatus, OrganizationId};
use model::item::{Document, PubStatus};
use model::{ContentHash, ItemKey};

/// Days after which agreement 6 has expired.
pub(super) const SIX_ENDS_AFTER_DAYS: i64 = 40;

/// Prepaid agreements with the number of downloads that were bought.
pub(super) const PREPAID: [(i64, u32); 3] = [(1, 3), (2, 2), (7, 1)];

/// Product codes of the items `i0`, `i1`, ….
pub(super) const ITEMS: [&[&str]; 5] = [&["A"], &["B"], &["C"], &[], &["B", "A"]];

/// Agreements of each user, whose numbers are 1, 2, ….
pub(super) const USERS: [&[i64]; 5] = [&[1, 2], &[1, 2, 3, 6], &[4], &[7], &[]];

const SCENE: &str = r#"
INSERT INTO organizations (organization_id, address) VALUES (1, '{}'), (2, '{}');
INSERT INTO products VALUES (10, 'A', 'Name of A', 'About A'), (11, 'B', NULL, NULL), (12, 'C', NULL, NULL);
INSERT INTO agreements (agreement_id, organization_id, type, super, name, description,
    expires_ms, prepaid_total, prepaid_remaining) VALUES
    (1, 1, 'Prepaid', FALSE, 'one', NULL, NULL, 3, 3),
    (2, 1, 'Prepaid', FALSE, NULL, NULL, NULL, 2, 2),
    (3, 1, 'Direct', FALSE, NULL, NULL, NULL, NULL, NULL),
    (4, 1, 'Normal', TRUE, NULL, NULL, NULL, NULL, NULL),
    (6, 1, 'Subscription', FALSE, NULL, NULL, 0, NULL, NULL),
    (7, 2, 'Prepaid', TRUE, NULL, NULL, NULL, 1, 1);
INSERT INTO agreement_products VALUES (1, 10), (2, 10), (2, 11), (3, 10), (3, 11), (6, 12);
INSERT INTO licenses VALUES
    ('00000000-0000-0000-0000-00000000000a', 10, 'Single', '1', '250.00', 'one use'),
    ('00000000-0000-0000-0000-00000000000b', 11, 'Year', NULL, NULL, NULL),
    ('00000000-0000-0000-0000-00000000000c', 12, NULL, NULL, NULL, NULL);
"#;

pub(super) struct OrdersFixture {
    pub(super) db: Db,
    pub(super) auth: Auth,
    pub(super) dir: TempDir,
}

pub(super) fn start() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

pub(super) fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn auth(db: Db) -> Auth {
    let limits = HashLimits {
        memory_kib: 8,
        iterations: 1,
        workers: 1,
        queue: 1,
        queue_per_address: 1,
        failures_per_user: 1,
        failures_per_user_total: 100,
        failures_per_address: 1,
        window: Duration::from_secs(1),
    };
    Auth::start(db, limits).unwrap()
}

pub(super) fn key(index: usize) -> ItemKey {
    format!("image/i{index}").parse().unwrap()
}

pub(super) fn document(index: usize) -> Document {
    let codes = ITEMS[index].iter().map(|code| format!(r#"{{"code":"{code}"}}"#));
    let codes = codes.collect::<Vec<_>>().join(",");
    let text = format!(r#"{{"headline":"Headline {index}","byline":"By","product":[{codes}]}}"#);
    Document::from_stored(&text).unwrap()
}

impl OrdersFixture {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        db.write_blocking(|tx| {
            tx.run_sql(SCENE)?;
            // A constant in the scene cannot refer to the start of the tests.
            let end = start().as_millisecond() + SIX_ENDS_AFTER_DAYS * 86_400_000;
            tx.run_sql(&format!(
                "UPDATE agreements SET expires_ms = {end} WHERE agreement_id = 6"
            ))?;
            for (user, agreements) in (1..).zip(USERS) {
                let (organization, admin) = (if user == 4 { 2 } else { 1 }, user == 3);
                let hash = ContentHash::new(api_key(user).as_bytes());
                tx.run_sql(&format!(
                    "INSERT INTO users (user_id, organization_id, user_name, roles, admin,
                         mediebank, active, service_account, created_ms)
                     VALUES ({user}, {organization}, 'user{user}', '[]', {admin}, FALSE, TRUE, FALSE, 0);
                     INSERT INTO api_keys (key_hash, user_id, name, created_ms)
                     VALUES ('{hash}', {user}, '', 0);"
                ))?;
                for agreement in agreements {
                    tx.run_sql(&format!(
                        "INSERT INTO user_agreements VALUES ({user}, {agreement})"
                    ))?;
                }
            }
            for index in 0..ITEMS.len() {
                tx.write_item(&NewItem {
                    key: key(index),
                    document: document(index).to_stored(),
                    assets: None,
                    pub_status: PubStatus::Usable,
                    order_time: start(),
                    embargoed: None,
                    stored: start(),
                    is_newly_indexed: true,
                })?;
            }
            Ok(())
        })
        .unwrap();
        Self { auth: auth(db.clone()), db, dir }
    }

    /// Creates the orders of another process on the same database.
    pub(super) fn elsewhere(&self) -> Orders {
        Orders::new(Db::scratch(self.dir.path()).unwrap(), None)
    }

    pub(super) fn orders(&self) -> Orders {
        Orders::new(self.db.clone(), Some(self.auth.clone()))
    }

    pub(super) async fn user(&self, user: i64) -> Arc<Principal> {
        let (key, now) = (api_key(user), start());
        self.auth.find(PresentedCredentials::ApiKey(&key), now).await.unwrap().unwrap()
    }

    /// Lists the orders of both organizations, newest first.
    pub(super) async fn rows(&self) -> Vec<Order> {
        let list = |id| {
            let owner = OrdersOf::Organization(OrganizationId(id));
            self.db.read(move |tx| tx.list_orders(owner, OrderStatus::All, 0, 1000))
        };
        let mut rows = list(1).await.unwrap();
        rows.extend(list(2).await.unwrap());
        rows
    }

    pub(super) async fn remaining(&self, agreement: i64) -> u32 {
        let id = model::account::AgreementId(agreement);
        self.db.read(move |tx| tx.prepaid_remaining(id)).await.unwrap()
    }
}

fn api_key(user: i64) -> String {
    format!("the-key-of-user-{user}")
}

/// Calls a closure with the facts of the item `i<index>`.
pub(super) async fn with_item<T>(index: usize, work: impl AsyncFnOnce(ItemFacts<'_>) -> T) -> T {
    let (key, document) = (key(index), document(index));
    work(ItemFacts { key: &key, document: &document }).await
}
