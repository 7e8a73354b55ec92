//! Tests that repeated imports are idempotent, and which changes are logged for caches.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    WriteTx,
    import::{NewApiKey, PutOutcome},
};
use crate::storage::database::account_change::AccountChange;
use crate::storage::database::engine::params;
use crate::storage::database::{Db, DbError};
use model::ContentHash;
use model::account::UserId;
use model::account::accounts_file::{AgreementEntry, ClientEntry, ProductEntry, UserEntry};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Creates a database with an organization, a prepaid agreement, a user that has it, and a client.
fn prepared() -> (Db, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::scratch(dir.path()).unwrap();
    db.write_blocking(|tx| {
        tx.tx.execute(
            "INSERT INTO organizations (organization_id, address) VALUES (1, '{}')",
            params![],
        )?;
        tx.put_agreement(&prepaid(10, 10), at(1))?;
        tx.put_user(&user(), None, at(1))?;
        tx.put_client(&client(), Some("hash"), at(1))
    })
    .unwrap();
    (db, dir)
}

/// Reads an entry of an accounts file.
fn entry<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn prepaid(total: u32, remaining: u32) -> AgreementEntry {
    let prepaids = json!({ "total": total, "remaining": remaining });
    entry(json!({ "id": 1, "organization": 1, "type": "Prepaid", "prepaids": prepaids }))
}

fn user() -> UserEntry {
    entry(json!({ "organization": 1, "userName": "editor", "agreements": [1] }))
}

fn other_user() -> UserEntry {
    entry(json!({ "organization": 1, "userName": "other", "agreements": [1] }))
}

fn client() -> ClientEntry {
    entry(json!({ "client_id": "desk", "name": "Desk", "grants": ["password"] }))
}

/// Gives the user a session and a token, and returns how many it has after `change`.
fn logins_after(
    change: impl FnOnce(&WriteTx<'_>) -> Result<PutOutcome, DbError> + Send + 'static,
) -> (i64, Vec<AccountChange>) {
    let (db, _dir) = prepared();
    db.write_blocking(move |tx| {
        let (session, token) =
            (ContentHash::new(b"s").to_string(), ContentHash::new(b"t").to_string());
        tx.tx.execute(
            "INSERT INTO sessions VALUES (?1, 1, 0, 0, NULL, NULL, NULL)",
            params![session],
        )?;
        tx.tx
            .execute("INSERT INTO families VALUES (1, 1, 'desk', '', 0, 0, 0, NULL)", params![])?;
        tx.tx.execute("INSERT INTO access_tokens VALUES (?1, 1, '', 0)", params![token])?;
        let logged = tx.account_changes().len();
        change(tx)?;
        let sql = "SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM access_tokens)";
        let count = tx.tx.find_value(sql, params![])?;
        Ok((count.unwrap_or_default(), tx.account_changes().split_off(logged)))
    })
    .unwrap()
}

#[test]
fn what_is_left_of_prepaid_downloads_stays_until_another_number_was_bought() {
    let (db, _dir) = prepared();
    let left = db
        .write_blocking(|tx| {
            tx.tx.execute("UPDATE agreements SET prepaid_remaining = 3", params![])?;
            let mut left = Vec::new();
            for (total, remaining) in [(10, 10), (10, 8), (20, 15)] {
                let put = tx.put_agreement(&prepaid(total, remaining), at(2))?;
                let sql = "SELECT prepaid_remaining FROM agreements";
                left.push((put, tx.tx.find_value::<u32>(sql, params![])?));
            }
            Ok(left)
        })
        .unwrap();
    let expected = [
        (PutOutcome::Unchanged, Some(3)),
        (PutOutcome::Unchanged, Some(3)),
        (PutOutcome::Updated, Some(15)),
    ];
    assert_eq!(left, expected);
}

#[test]
fn a_new_password_and_the_end_of_being_active_end_sessions_and_tokens() {
    let (session, token) = (ContentHash::new(b"s"), ContentHash::new(b"t"));
    let ended = vec![
        AccountChange::Session(session),
        AccountChange::Token(token),
        AccountChange::User(UserId(1)),
    ];
    let password = logins_after(|tx| tx.put_user(&user(), Some("hash"), at(2)));
    assert_eq!(password, (0, ended.clone()));
    let inactive = UserEntry { active: Some(false), ..user() };
    assert_eq!(logins_after(move |tx| tx.put_user(&inactive, None, at(2))), (0, ended));
    let renamed = UserEntry { first_name: Some(entry(json!("E"))), ..user() };
    let changed = vec![AccountChange::User(UserId(1))];
    assert_eq!(logins_after(move |tx| tx.put_user(&renamed, None, at(2))), (2, changed.clone()));
    let fewer = UserEntry { agreements: Vec::new(), ..user() };
    assert_eq!(logins_after(move |tx| tx.put_user(&fewer, None, at(2))), (2, changed));
    assert_eq!(logins_after(|tx| tx.put_user(&user(), None, at(2))), (2, Vec::new()));
}

#[test]
fn a_client_that_is_disabled_takes_its_tokens_with_it() {
    let disable = |tx: &WriteTx<'_>| {
        assert!(tx.set_client_active("desk", false, at(2))?);
        assert_eq!(tx.find_access_token(&ContentHash::new(b"t"))?, None);
        Ok(PutOutcome::Updated)
    };
    assert_eq!(logins_after(disable), (2, vec![AccountChange::Token(ContentHash::new(b"t"))]));
}

#[test]
fn what_agreements_depend_on_is_logged_when_it_changed_and_only_then() {
    let (db, _dir) = prepared();
    let logged = db
        .write_blocking(|tx| {
            let mut logged = Vec::new();
            let foto: ProductEntry = entry(json!({ "id": 10, "code": "FOTO" }));
            let image: ProductEntry = entry(json!({ "id": 10, "code": "IMAGE" }));
            for product in [&foto, &foto, &image] {
                let put = tx.put_product(product, at(2))?;
                logged.push((put, tx.account_changes().len()));
            }
            let products = vec![entry(json!("IMAGE"))];
            let covers = AgreementEntry { products, ..prepaid(10, 10) };
            for agreement in [&covers, &covers, &prepaid(10, 10)] {
                let put = tx.put_agreement(agreement, at(2))?;
                logged.push((put, tx.account_changes().len()));
            }
            Ok(logged)
        })
        .unwrap();
    let (created, updated, same) =
        (PutOutcome::Created, PutOutcome::Updated, PutOutcome::Unchanged);
    let expected = [(created, 0), (same, 0), (updated, 1), (updated, 2), (same, 2), (updated, 3)];
    assert_eq!(logged, expected);
}

#[test]
fn what_is_stated_again_uses_up_no_numbers() {
    let (db, _dir) = prepared();
    let numbers = db
        .write_blocking(|tx| {
            let key = NewApiKey {
                key_hash: ContentHash::new(b"1"),
                user_name: "editor".to_owned(),
                name: String::new(),
                read_only: false,
            };
            for _ in 0..3 {
                tx.put_user(&user(), None, at(2))?;
                tx.put_key(&key, at(2))?;
            }
            tx.put_user(&other_user(), None, at(2))?;
            tx.put_key(&NewApiKey { key_hash: ContentHash::new(b"2"), ..key }, at(2))?;
            let sql =
                "SELECT (SELECT max(user_id) FROM users) + (SELECT max(key_id) FROM api_keys)";
            tx.tx.find_value::<i64>(sql, params![])
        })
        .unwrap();
    assert_eq!(numbers, Some(4));
}

#[test]
fn a_key_that_goes_to_another_user_is_forgotten() {
    let (db, _dir) = prepared();
    let key = |user: &str| NewApiKey {
        key_hash: ContentHash::new(b"key"),
        user_name: user.to_owned(),
        name: String::new(),
        read_only: false,
    };
    let (first, second) = (key("editor"), key("other"));
    let logged = db
        .write_blocking(move |tx| {
            tx.put_user(&other_user(), None, at(2))?;
            let puts = [&first, &first, &second].map(|key| tx.put_key(key, at(2)).ok());
            Ok((puts, tx.account_changes()))
        })
        .unwrap();
    let puts = [Some(PutOutcome::Created), Some(PutOutcome::Unchanged), Some(PutOutcome::Updated)];
    assert_eq!(logged, (puts, vec![AccountChange::Key(ContentHash::new(b"key"))]));
}
