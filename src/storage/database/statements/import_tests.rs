//! Tests that repeated imports are idempotent, and which changes are logged for caches.

use jiff::Timestamp;

use super::{
    WriteTx,
    import::{NewAgreement, NewApiKey, NewClient, NewProduct, NewUserRow, PutOutcome},
};
use crate::storage::database::account_change::AccountChange;
use crate::storage::database::engine::params;
use crate::storage::database::{Db, DbError};
use model::ContentHash;
use model::account::{
    AccessLevels, AgreementId, AgreementType, Approver, GrantType, OrganizationId, PhoneNumbers,
    PrepaidDownloads, ProductId, UserId,
};

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
        tx.put_user(&user(), at(1))?;
        tx.put_client(&client(), at(1))
    })
    .unwrap();
    (db, dir)
}

fn prepaid(total: u32, remaining: u32) -> NewAgreement {
    NewAgreement {
        id: AgreementId(1),
        organization: OrganizationId(1),
        kind: AgreementType::Prepaid,
        super_agreement: false,
        products: Vec::new(),
        name: None,
        description: None,
        expires: None,
        prepaids: Some(PrepaidDownloads { total, remaining }),
        approver: Approver::default(),
    }
}

fn user() -> NewUserRow {
    NewUserRow {
        id: None,
        organization: Some(OrganizationId(1)),
        user_name: "editor".to_owned(),
        password: None,
        first_name: None,
        last_name: None,
        email_address: None,
        department: None,
        phone: PhoneNumbers::default(),
        roles: Vec::new(),
        access: AccessLevels::default(),
        agreements: vec![AgreementId(1)],
        active: None,
        service_account: false,
    }
}

fn client() -> NewClient {
    NewClient {
        client_id: "desk".to_owned(),
        name: "Desk".to_owned(),
        public: false,
        secret: Some("hash".to_owned()),
        redirect_uris: Vec::new(),
        grants: vec![GrantType::Password],
        scopes_enforced: false,
        access_token_s: None,
    }
}

/// Gives the user a session and a token, and returns how many it has after `change`.
fn logins_after(
    change: impl FnOnce(&WriteTx<'_>) -> Result<PutOutcome, DbError> + Send + 'static,
) -> (i64, Vec<AccountChange>) {
    let (db, _dir) = prepared();
    db.write_blocking(move |tx| {
        let (session, token) =
            (ContentHash::of(b"s").to_string(), ContentHash::of(b"t").to_string());
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
    let (session, token) = (ContentHash::of(b"s"), ContentHash::of(b"t"));
    let ended = vec![
        AccountChange::Session(session),
        AccountChange::Token(token),
        AccountChange::User(UserId(1)),
    ];
    let password = NewUserRow { password: Some("hash".to_owned()), ..user() };
    assert_eq!(logins_after(move |tx| tx.put_user(&password, at(2))), (0, ended.clone()));
    let inactive = NewUserRow { active: Some(false), ..user() };
    assert_eq!(logins_after(move |tx| tx.put_user(&inactive, at(2))), (0, ended));
    let renamed = NewUserRow { first_name: Some("E".to_owned()), ..user() };
    let changed = vec![AccountChange::User(UserId(1))];
    assert_eq!(logins_after(move |tx| tx.put_user(&renamed, at(2))), (2, changed.clone()));
    let fewer = NewUserRow { agreements: Vec::new(), ..user() };
    assert_eq!(logins_after(move |tx| tx.put_user(&fewer, at(2))), (2, changed));
    assert_eq!(logins_after(|tx| tx.put_user(&user(), at(2))), (2, Vec::new()));
}

#[test]
fn a_client_that_is_disabled_takes_its_tokens_with_it() {
    let disable = |tx: &WriteTx<'_>| {
        assert!(tx.set_client_active("desk", false, at(2))?);
        assert_eq!(tx.as_read().find_access_token(&ContentHash::of(b"t"))?, None);
        Ok(PutOutcome::Updated)
    };
    assert_eq!(logins_after(disable), (2, vec![AccountChange::Token(ContentHash::of(b"t"))]));
}

#[test]
fn what_agreements_depend_on_is_logged_when_it_changed_and_only_then() {
    let (db, _dir) = prepared();
    let logged = db
        .write_blocking(|tx| {
            let mut logged = Vec::new();
            let foto = NewProduct {
                id: Some(ProductId(10)),
                code: "FOTO".to_owned(),
                name: None,
                description: None,
            };
            let image = NewProduct { code: "IMAGE".to_owned(), ..foto.clone() };
            for product in [&foto, &foto, &image] {
                let put = tx.put_product(product, at(2))?;
                logged.push((put, tx.account_changes().len()));
            }
            let covers = NewAgreement { products: vec!["IMAGE".to_owned()], ..prepaid(10, 10) };
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
                key_hash: ContentHash::of(b"1"),
                user_name: "editor".to_owned(),
                name: String::new(),
            };
            for _ in 0..3 {
                tx.put_user(&user(), at(2))?;
                tx.put_key(&key, at(2))?;
            }
            tx.put_user(&NewUserRow { user_name: "other".to_owned(), ..user() }, at(2))?;
            tx.put_key(&NewApiKey { key_hash: ContentHash::of(b"2"), ..key }, at(2))?;
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
        key_hash: ContentHash::of(b"key"),
        user_name: user.to_owned(),
        name: String::new(),
    };
    let (first, second) = (key("editor"), key("other"));
    let logged = db
        .write_blocking(move |tx| {
            tx.put_user(&NewUserRow { user_name: "other".to_owned(), ..user() }, at(2))?;
            let puts = [&first, &first, &second].map(|key| tx.put_key(key, at(2)).ok());
            Ok((puts, tx.account_changes()))
        })
        .unwrap();
    let puts = [Some(PutOutcome::Created), Some(PutOutcome::Unchanged), Some(PutOutcome::Updated)];
    assert_eq!(logged, (puts, vec![AccountChange::Key(ContentHash::of(b"key"))]));
}
