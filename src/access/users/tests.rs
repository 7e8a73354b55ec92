//! The users module over a real database: rights, changes and their effects.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::access::auth::{HashLimits, PresentedCredentials};
use api::organization::{PhoneNumberUpdate, UserRightsUpdate};
use model::ContentHash;
use model::account::{AccessLevels, DeviceKind};

/// Organization 1 has an administrator, an editor, an inactive user and a service account; 2 has one user;
/// user 30 has no organization. Every user has a token with every scope, named after its number.
const SEED: &str = r#"
INSERT INTO organizations VALUES
    (1, 'Desk', 'SEK', 'SE', '{"visit":{"street":"S 1","zipCode":"0"}}', '+46 8 1', NULL),
    (2, NULL, NULL, NULL, '{}', NULL, NULL);
INSERT INTO products VALUES (10, 'FOTO', 'Photo', NULL), (11, 'TEXT', NULL, 'Words');
INSERT INTO agreements VALUES
    (100, 1, 'Subscription', TRUE, 'All', 'Every item', 4102444800000, NULL, NULL, NULL),
    (101, 1, 'Prepaid', FALSE, NULL, NULL, NULL, 10, 3, NULL),
    (102, 1, 'Direct', FALSE, NULL, NULL, 1000, NULL, NULL, NULL),
    (200, 2, 'Normal', FALSE, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO agreement_products VALUES (100, 10), (101, 10), (101, 11);
INSERT INTO users VALUES
    (1, 1, 'admin', NULL, 'Ad', 'Min', 'admin@desk.example', NULL, NULL, NULL,
     '["ROLE_OFP"]', TRUE, FALSE, TRUE, FALSE, 0),
    (2, 1, 'Editor@Desk.example', NULL, 'Ed', NULL, NULL, 'Pictures', '+46 8 2', NULL,
     '["ROLE_OFP","ROLE_MEDIEBANK"]', FALSE, TRUE, TRUE, FALSE, 0),
    (3, 1, 'gone', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', FALSE, FALSE, FALSE, FALSE, 0),
    (4, 1, 'robot', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', FALSE, FALSE, TRUE, TRUE, 0),
    (20, 2, 'stranger', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', TRUE, FALSE, TRUE, FALSE, 0),
    (30, NULL, 'alone', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', TRUE, FALSE, TRUE, FALSE, 0);
INSERT INTO user_agreements VALUES (1, 100), (1, 101), (1, 102), (2, 101), (20, 200);
INSERT INTO clients VALUES ('c', 'c', NULL, '[]', '[]', TRUE, 0, FALSE, NULL, FALSE);
INSERT INTO families SELECT user_id, user_id, 'c', 'roles admin', 0, 0, 4102444800000, NULL FROM users;
"#;

struct Fixture {
    users: Users,
    auth: Auth,
    _dir: TempDir,
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::scratch(dir.path()).unwrap();
    db.write_blocking(|tx| {
        tx.run_sql(SEED)?;
        [1, 2, 3, 4, 20, 30].into_iter().try_for_each(|id| {
            let hash = ContentHash::new(id.to_string().as_bytes());
            tx.run_sql(&format!(
                "INSERT INTO access_tokens VALUES ('{hash}', {id}, 'roles admin', 4102444800000)"
            ))
        })
    })
    .unwrap();
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
    let auth = Auth::start(db, limits).unwrap();
    let signer = IdSigner::open(auth.db(), PASSWORD_LINK_KEY).unwrap();
    let settings = UsersSettings { site_url: "https://site.test".to_owned(), sends_mails: true };
    Fixture { users: Users::new(auth.clone(), signer, settings), auth, _dir: dir }
}

impl Fixture {
    async fn caller(&self, id: i64) -> Arc<Principal> {
        let found =
            self.auth.find(PresentedCredentials::Bearer(&id.to_string()), now()).await.unwrap();
        found.expect("the user has a token")
    }

    async fn devices(&self, id: i64) -> Vec<String> {
        let read = move |tx: &crate::storage::database::ReadTx<'_>| tx.list_devices(UserId(id));
        let devices = self.auth.db().read(read).await.unwrap();
        devices.into_iter().map(|device| device.token).collect()
    }
}

fn code(error: &Error) -> (ErrorKind, &str) {
    (error.kind(), error.details().first().map_or("", |detail| &detail.error_code))
}

fn someone() -> UserCreate {
    UserCreate {
        email_address: "New.User@Desk.example".to_owned(),
        first_name: "New".to_owned(),
        last_name: "User".to_owned(),
        phone_number: None,
        department: None,
        access: Some(UserRightsUpdate { admin: None, mediebank: Some(true) }),
    }
}

fn rights(admin: Option<bool>, mediebank: Option<bool>) -> UserUpdate {
    let access = Some(UserRightsUpdate { admin, mediebank });
    UserUpdate { access, ..UserUpdate::default() }
}

fn json_of(account: &Account) -> Value {
    serde_json::to_value(view::user(account, &Principal::operator())).unwrap()
}

#[tokio::test]
async fn a_user_is_shown_with_organization_agreements_and_access() {
    let fixture = fixture();
    let editor = fixture.caller(2).await;
    let expected = json!({
        "id": 2, "customerId": 1, "userName": "Editor@Desk.example", "firstName": "Ed",
        "department": "Pictures", "active": true, "phoneNumber": { "direct": "+46 8 2" },
        "agreements": [{
            "id": 101, "type": "Prepaid", "superAgreement": false,
            "products": [
                { "id": 10, "code": "FOTO", "name": "Photo" },
                { "id": 11, "code": "TEXT", "description": "Words" },
            ],
            "prepaids": { "total": 10, "remaining": 3 },
        }],
        "access": { "admin": false, "mediebank": true },
    });
    assert_eq!(json_of(editor.account()), expected);
    let alone = fixture.caller(30).await;
    let expected = json!({
        "id": 30, "userName": "alone", "active": true, "phoneNumber": {}, "agreements": [],
        "access": { "admin": true, "mediebank": false },
    });
    assert_eq!(json_of(alone.account()), expected);
}

#[tokio::test]
async fn the_old_agreements_are_those_in_force_and_prepaid_has_no_type() {
    let fixture = fixture();
    let admin = fixture.caller(1).await;
    let found: Vec<_> =
        Users::agreements(&admin, now()).map(caller_view::deprecated_agreement).collect();
    let product = json!({ "name": "Photo", "description": null, "code": "FOTO" });
    let expected = json!([
        { "id": 100, "description": "Every item", "type": "Subscription",
          "isSuperAgreement": true, "products": [product] },
        { "id": 101, "description": null, "isSuperAgreement": false,
          "products": [product, { "description": "Words", "code": "TEXT" }] },
    ]);
    assert_eq!(serde_json::to_value(found).unwrap(), expected);
}

#[tokio::test]
async fn an_organization_is_shown_with_what_is_known_of_it() {
    let fixture = fixture();
    let check = |caller: Arc<Principal>, expected: Value| {
        let found = organization_view::organization(Users::organization(&caller).unwrap());
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
    };
    let whole = json!({
        "id": 1, "name": "Desk", "currency": "SEK", "country": "SE",
        "address": { "visit": { "street": "S 1", "zipCode": "0" } },
        "phoneNumber": { "direct": "+46 8 1" },
    });
    check(fixture.caller(2).await, whole);
    check(fixture.caller(20).await, json!({ "id": 2, "address": {}, "phoneNumber": {} }));
    let alone = fixture.caller(30).await;
    assert_eq!(Users::organization(&alone).unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn administration_needs_the_access_level_and_an_organization() {
    let fixture = fixture();
    let refused = |caller: &Principal| match fixture.users.administration(caller) {
        Ok(_) => panic!("not refused"),
        Err(error) => (error.kind(), error.details()[0].error_code.clone()),
    };
    let admin_required = (ErrorKind::Forbidden, "admin_required".to_owned());
    assert_eq!(refused(&*fixture.caller(2).await), admin_required);
    let organization_required = (ErrorKind::Forbidden, "organization_required".to_owned());
    assert_eq!(refused(&*fixture.caller(30).await), organization_required);
}

#[tokio::test]
async fn an_administrator_sees_the_users_of_its_organization_alone() {
    let fixture = fixture();
    let admin = fixture.caller(1).await;
    let administration = fixture.users.administration(&admin).unwrap();
    let users = administration.list().await.unwrap();
    let operator = Principal::operator();
    let bases: Vec<_> = users.iter().map(|user| view::user_base(user, &operator)).collect();
    let bases = serde_json::to_value(bases).unwrap();
    assert_eq!(users.iter().map(|user| user.id.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let gone = json!({ "id": 3, "customerId": 1, "userName": "gone", "active": false });
    assert_eq!(bases[2], gone);
    assert_eq!(administration.load(UserId(3)).await.unwrap().user.user_name, "gone");
    for id in [20, 30, 99, 0, -1, i64::MAX] {
        let error = administration.load(UserId(id)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{id}");
        let change = rights(Some(true), None);
        let error = administration.update(UserId(id), change, now()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{id}");
    }
}

#[tokio::test]
async fn a_new_user_is_active_and_has_the_agreements_of_its_organization() {
    let fixture = fixture();
    let admin = fixture.caller(1).await;
    let administration = fixture.users.administration(&admin).unwrap();
    let account = administration.create(someone(), now()).await.unwrap();
    let user = &account.user;
    assert_eq!(user.user_name, "new.user@desk.example");
    assert_eq!(user.email_address.as_deref(), Some("New.User@Desk.example"));
    assert_eq!(user.roles, ["ROLE_OFP", "ROLE_MEDIEBANK"]);
    assert!(user.active && !user.service_account && !user.access.admin);
    let agreements: Vec<i64> = account.agreements.iter().map(|one| one.id.0).collect();
    assert_eq!(agreements, [100, 101, 102]);
    assert_eq!(administration.load(user.id).await.unwrap(), account);
    let name = user.user_name.clone();
    let read = move |tx: &crate::storage::database::ReadTx<'_>| tx.find_user_by_name(&name);
    let (_, password) = fixture.auth.db().read(read).await.unwrap().unwrap();
    assert_eq!(password, None);
}

#[tokio::test]
async fn a_user_name_is_given_once_in_whatever_case() {
    let fixture = fixture();
    let admin = fixture.caller(1).await;
    let administration = fixture.users.administration(&admin).unwrap();
    administration.create(someone(), now()).await.unwrap();
    for email in ["new.user@desk.example", "NEW.USER@DESK.EXAMPLE", "editor@desk.example"] {
        let again = UserCreate { email_address: email.to_owned(), ..someone() };
        let error = administration.create(again, now()).await.unwrap_err();
        assert_eq!(code(&error), (ErrorKind::InvalidArgument, "userName_in_use"), "{email}");
        let detail = &error.details()[0];
        assert_eq!((detail.location, detail.path.as_str()), ("body", "emailAddress"));
    }
    assert_eq!(administration.list().await.unwrap().len(), 5);
}

#[tokio::test]
async fn a_change_touches_what_it_names_and_counts_at_once() {
    let fixture = fixture();
    let (admin, editor) = (fixture.caller(1).await, fixture.caller(2).await);
    let administration = fixture.users.administration(&admin).unwrap();
    let phone = PhoneNumberUpdate { direct: None, mobile: Some(Some("070 1".to_owned())) };
    let change = UserUpdate {
        email_address: Some("ed@desk.example".to_owned()),
        department: Some(None),
        phone_number: Some(Some(phone)),
        ..rights(Some(true), Some(false))
    };
    let account = administration.update(UserId(2), change, now()).await.unwrap();
    let mut expected = editor.user().clone();
    expected.email_address = Some("ed@desk.example".to_owned());
    expected.department = None;
    expected.phone.mobile = Some("070 1".to_owned());
    expected.access = AccessLevels { admin: true, mediebank: false };
    expected.roles = vec!["ROLE_OFP".to_owned()];
    assert_eq!(account.user, expected);
    assert_eq!(account.agreements, editor.agreements());
    assert_eq!(*fixture.caller(2).await.account().as_ref(), account);
    let nothing = administration.update(UserId(2), UserUpdate::default(), now()).await.unwrap();
    assert_eq!(nothing, account);
    let own = rights(Some(false), None);
    administration.update(UserId(1), own, now()).await.unwrap();
    let former = fixture.caller(1).await;
    assert!(fixture.users.administration(&former).is_err());
}

#[tokio::test]
async fn two_administrators_who_take_the_rights_of_each_other_leave_one() {
    let fixture = fixture();
    let admin = fixture.caller(1).await;
    let administration = fixture.users.administration(&admin).unwrap();
    administration.update(UserId(2), rights(Some(true), None), now()).await.unwrap();
    let editor = fixture.caller(2).await;
    // Both requests are authorized before either of them changes anything.
    let other = fixture.users.administration(&editor).unwrap();
    administration.set_active(UserId(2), false, now()).await.unwrap();
    let last = (ErrorKind::Conflict, "last_administrator");
    let refused = other.set_active(UserId(1), false, now()).await.unwrap_err();
    assert_eq!(code(&refused), last);
    let refused = other.update(UserId(1), rights(Some(false), None), now()).await.unwrap_err();
    assert_eq!(code(&refused), last);
    // An inactive user does not count, so the level can be taken from it.
    administration.update(UserId(2), rights(Some(false), None), now()).await.unwrap();
}

#[tokio::test]
async fn null_clears_both_telephone_numbers() {
    let fixture = fixture();
    let admin = fixture.caller(1).await;
    let administration = fixture.users.administration(&admin).unwrap();
    let cleared = UserUpdate { phone_number: Some(None), ..UserUpdate::default() };
    let account = administration.update(UserId(2), cleared, now()).await.unwrap();
    assert_eq!((account.user.phone.direct, account.user.phone.mobile), (None, None));
}

#[tokio::test]
async fn an_administrator_cannot_get_in_as_an_operator_of_its_organization() {
    let fixture = fixture();
    let sql = r#"UPDATE users SET roles = '["ROLE_OPERATOR"]' WHERE user_id = 2"#;
    fixture.auth.db().write_blocking(move |tx| tx.run_sql(sql)).unwrap();
    let (admin, own) = (fixture.caller(1).await, fixture.caller(2).await);
    let administration = fixture.users.administration(&admin).unwrap();
    let protected = (ErrorKind::Forbidden, "operator_required");
    let address = |address: &str| UserUpdate {
        email_address: Some(address.to_owned()),
        ..UserUpdate::default()
    };
    let moved = administration.update(UserId(2), address("x@desk.example"), now()).await;
    assert_eq!(code(&moved.unwrap_err()), protected);
    let link = administration.send_password_link(UserId(2), now()).await;
    assert_eq!(code(&link.unwrap_err()), protected);
    let renamed = UserUpdate { first_name: Some("Edda".to_owned()), ..UserUpdate::default() };
    administration.update(UserId(2), renamed, now()).await.unwrap();
    let admin = rights(Some(true), None);
    administration.update(UserId(2), admin, now()).await.unwrap();
    let itself = fixture.caller(2).await;
    assert_eq!(itself.user().email_address, own.user().email_address);
    let itself = fixture.users.administration(&itself).unwrap();
    itself.update(UserId(2), address("x@desk.example"), now()).await.unwrap();
    itself.send_password_link(UserId(2), now()).await.unwrap();
}

#[tokio::test]
async fn only_a_provider_administers_the_address_and_password_of_a_provider() {
    let address = || UserUpdate {
        email_address: Some("x@desk.example".to_owned()),
        ..UserUpdate::default()
    };
    for is_provider in [false, true] {
        let fixture = fixture();
        let ids = if is_provider { "1, 2" } else { "2" };
        let sql = format!(
            r#"UPDATE users SET roles = '["ROLE_OFP","ROLE_PROVIDER"]' WHERE user_id IN ({ids})"#
        );
        fixture.auth.db().write_blocking(move |tx| tx.run_sql(&sql)).unwrap();
        let admin = fixture.caller(1).await;
        let administration = fixture.users.administration(&admin).unwrap();
        let link = administration.send_password_link(UserId(2), now()).await.map(drop);
        let moved = administration.update(UserId(2), address(), now()).await.map(drop);
        for outcome in [link, moved] {
            let refusal = outcome.as_ref().err().map(code);
            let expected = (ErrorKind::Forbidden, "provider_required");
            assert_eq!(refusal, (!is_provider).then_some(expected));
        }
        administration.send_password_link(UserId(1), now()).await.unwrap();
    }
}

#[tokio::test]
async fn an_administrator_of_a_customer_does_not_stop_operators_and_providers() {
    for (role, code_of_role) in
        [("ROLE_OPERATOR", "operator_required"), ("ROLE_PROVIDER", "provider_required")]
    {
        for has_role_too in [false, true] {
            let fixture = fixture();
            let ids = if has_role_too { "1, 2" } else { "2" };
            let sql = format!(r#"UPDATE users SET roles = '["{role}"]' WHERE user_id IN ({ids})"#);
            fixture.auth.db().write_blocking(move |tx| tx.run_sql(&sql)).unwrap();
            let admin = fixture.caller(1).await;
            let administration = fixture.users.administration(&admin).unwrap();
            let outcomes = [
                administration.revoke_keys(UserId(2), now()).await,
                administration.end_logins(UserId(2), now()).await,
                administration.set_active(UserId(2), false, now()).await,
            ];
            for outcome in outcomes {
                let refusal = outcome.as_ref().err().map(code);
                let expected = (ErrorKind::Forbidden, code_of_role);
                assert_eq!(refusal, (!has_role_too).then_some(expected), "{role}");
            }
            administration.end_logins(UserId(4), now()).await.unwrap();
            administration.revoke_keys(UserId(1), now()).await.unwrap();
        }
    }
}

fn profile(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn a_profile_is_replaced_as_a_whole_or_patched_by_name() {
    let fixture = fixture();
    let (editor, other) = (fixture.caller(2).await, fixture.caller(4).await);
    let users = &fixture.users;
    assert_eq!(users.profile(&editor).await.unwrap(), Map::new());
    let first = profile(json!({ "b": [1, { "x": null }], "a": "å", "__proto__": { "p": 1 } }));
    users.replace_profile(&editor, first.clone()).await.unwrap();
    assert_eq!(users.profile(&editor).await.unwrap(), first);
    let given = profile(json!({ "a": null, "c": 2, "constructor": 3, "b": 4 }));
    users.patch_profile(&editor, &["a", "c", "constructor", "missing"], given).await.unwrap();
    let expected = json!({
        "b": [1, { "x": null }], "a": null, "__proto__": { "p": 1 }, "c": 2, "constructor": 3,
    });
    assert_eq!(users.profile(&editor).await.unwrap(), profile(expected));
    users.replace_profile(&editor, Map::new()).await.unwrap();
    assert_eq!(users.profile(&editor).await.unwrap(), Map::new());
    assert_eq!(users.profile(&other).await.unwrap(), Map::new());
}

#[tokio::test]
async fn a_profile_beyond_its_size_is_refused_and_leaves_the_old_one() {
    let fixture = fixture();
    let editor = fixture.caller(2).await;
    let users = &fixture.users;
    let room = PROFILE_BYTES_MAX - r#"{"a":""}"#.len();
    let largest = profile(json!({ "a": "x".repeat(room) }));
    users.replace_profile(&editor, largest.clone()).await.unwrap();
    let larger = profile(json!({ "a": "x".repeat(room + 1) }));
    let error = users.replace_profile(&editor, larger).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let error = users.patch_profile(&editor, &["b"], profile(json!({ "b": 1 }))).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(users.profile(&editor).await.unwrap(), largest);
}

#[tokio::test]
async fn patches_at_once_all_take_effect() {
    let fixture = fixture();
    let editor = fixture.caller(2).await;
    let patches = (0..20).map(|index| {
        let (users, editor) = (fixture.users.clone(), Arc::clone(&editor));
        async move {
            let name = format!("p{index}");
            let given = Map::from_iter([(name.clone(), Value::from(index))]);
            users.patch_profile(&editor, &[&name], given).await
        }
    });
    let handles: Vec<_> = patches.map(tokio::spawn).collect();
    for handle in handles {
        handle.await.unwrap().unwrap();
    }
    assert_eq!(fixture.users.profile(&editor).await.unwrap().len(), 20);
}

fn device(token: &str) -> Device {
    let (name, model) = (None, "Phone 1".to_owned());
    Device { token: token.to_owned(), kind: DeviceKind::Android, name, model }
}

#[tokio::test]
async fn a_device_belongs_to_who_registered_it_last() {
    let fixture = fixture();
    let (editor, robot) = (fixture.caller(2).await, fixture.caller(4).await);
    let users = &fixture.users;
    users.register(&editor, device("t"), now()).await.unwrap();
    users.register(&editor, device("t"), now()).await.unwrap();
    assert_eq!(fixture.devices(2).await, ["t"]);
    users.unregister(&robot, "t".to_owned()).await.unwrap();
    assert_eq!(fixture.devices(2).await, ["t"], "nobody removes another user's device");
    users.register(&robot, device("t"), now()).await.unwrap();
    assert_eq!((fixture.devices(2).await.len(), fixture.devices(4).await.len()), (0, 1));
    for _ in 0..2 {
        users.unregister(&robot, "t".to_owned()).await.unwrap();
    }
    assert!(fixture.devices(4).await.is_empty());
}

#[tokio::test]
async fn the_devices_registered_longest_ago_make_room() {
    let fixture = fixture();
    let editor = fixture.caller(2).await;
    for index in 0..=i64::from(DEVICES_PER_USER_MAX) + 1 {
        let at = Timestamp::from_second(1_800_000_000 + index).unwrap();
        fixture.users.register(&editor, device(&format!("t{index}")), at).await.unwrap();
    }
    // A clock that was set back must not evict the newest device.
    fixture.users.register(&editor, device("last"), Timestamp::UNIX_EPOCH).await.unwrap();
    let devices = fixture.devices(2).await;
    assert_eq!(u32::try_from(devices.len()), Ok(DEVICES_PER_USER_MAX));
    assert!(devices.contains(&"last".to_owned()));
    assert!(!devices.contains(&"t2".to_owned()) && devices.contains(&"t3".to_owned()));
}
