//! Form, references and repeated imports of accounts files, each test with its own database.

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    Accounts, AccountsError, ChannelRequest, EntryCounts, ImportReport, UserRequest,
    file::ValidAccounts,
};
use crate::access::auth::Argon2Hasher;
use crate::storage::database::{Db, PasswordLink};
use model::account::{AgreementType, PasswordLinkKind, PrepaidDownloads, UserId};

const SECRETS: [&str; 3] = ["hunter2-of-editor", "secret-of-desk", "443bfbb6-cbc7-482c-b143-6dee"];

fn now() -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_800_000_000).unwrap()
}

fn open() -> (Accounts, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::scratch(dir.path()).unwrap();
    (Accounts::new(db, Argon2Hasher::new(8, 1).unwrap(), 2), dir)
}

fn import(accounts: &Accounts, file: &Value) -> Result<ImportReport, AccountsError> {
    accounts.import(&file.to_string(), now())
}

/// Returns a file with an entry in every list.
fn whole() -> Value {
    json!({
        "organizations": [
            { "id": 1, "name": "Desk", "currency": "SEK", "country": "SE",
              "address": { "visit": { "street": "a 1", "zipCode": "1", "city": "b" } },
              "phoneNumber": { "direct": "+46 8 1" } },
            { "id": 2 },
        ],
        "products": [{ "id": 10, "code": "FOTO", "name": "Photo" }, { "code": "TEXT" }],
        "agreements": [
            { "id": 1, "organization": 1, "type": "Subscription", "superAgreement": true,
              "expires": "2030-01-01T00:00:00Z" },
            { "id": 2, "organization": 1, "type": "Prepaid", "products": ["FOTO", "TEXT"],
              "prepaids": { "total": 10, "remaining": 4 } },
            { "id": 3, "organization": 2, "type": "Direct", "products": ["FOTO"] },
        ],
        "licenses": [{ "uuid": "2c916e2d-b755-446d-9e18-d636a1447141", "product": "FOTO",
            "period": "Year", "price": "1200.00" }],
        "users": [
            { "id": 7, "organization": 1, "userName": "editor", "password": SECRETS[0],
              "emailAddress": "e@desk.example", "phoneNumber": { "mobile": "1" },
              "roles": ["ROLE_OFP"], "access": { "admin": true }, "agreements": [1, 2] },
            { "userName": "staff", "serviceAccount": true },
        ],
        "clients": [
            { "client_id": "desk", "client_secret": SECRETS[1], "name": "Desk",
              "redirect_uris": ["http://127.0.0.1:9000/cb"], "grants": ["password"] },
            { "client_id": "app", "public": true, "grants": ["authorization_code"] },
        ],
        "apiKeys": [{ "user": "editor", "key": SECRETS[2], "name": "k" }],
        "channels": [{ "owner": "editor", "name": "desk", "method": "download",
            "formats": [".JPG", ".json", "_NormalHires.jpg"], "settings": { "any": 1 } }],
    })
}

fn counts(created: usize, updated: usize, unchanged: usize) -> EntryCounts {
    EntryCounts { created, updated, unchanged }
}

/// Returns the file with the value at `pointer` replaced; an index after the end of a list appends an
/// element.
fn with(pointer: &str, value: Value) -> Value {
    let mut file = whole();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match file.pointer_mut(parent).unwrap() {
        Value::Object(map) => drop(map.insert(name.to_owned(), value)),
        Value::Array(list) => match name.parse::<usize>() {
            Ok(index) if index < list.len() => list[index] = value,
            _ => list.push(value),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => panic!("{pointer}"),
    }
    file
}

fn refused(accounts: &Accounts, file: &Value, part: &str) {
    let text = import(accounts, file).unwrap_err().to_string();
    assert!(text.contains(part), "{text:?} lacks {part:?}");
    for secret in SECRETS {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn a_file_is_imported_and_a_second_import_changes_nothing() {
    let (accounts, _dir) = open();
    let first = import(&accounts, &whole()).unwrap();
    let created = first.lists().map(|(_, counts)| counts.created);
    assert_eq!(created, [2, 2, 3, 1, 2, 2, 1, 1]);
    let users = accounts.list_users().unwrap();
    let second = import(&accounts, &whole()).unwrap();
    assert_eq!(second.lists().map(|(_, counts)| counts.unchanged), created);
    assert_eq!(second.lists().map(|(_, counts)| counts.created + counts.updated), [0; 8]);
    assert_eq!(accounts.list_users().unwrap(), users);
}

#[test]
fn what_was_stated_is_what_callers_get() {
    let (accounts, _dir) = open();
    import(&accounts, &whole()).unwrap();
    let find = |tx: &crate::storage::database::ReadTx<'_>| {
        let (user, hash) = tx.find_user_by_name("editor")?.unwrap();
        Ok((tx.find_account(user.id)?.unwrap(), hash.unwrap()))
    };
    let (account, hash) = accounts.db.read_blocking(find).unwrap();
    assert!(accounts.hasher.verify(SECRETS[0], &hash));
    assert_eq!((account.user.id.0, account.user.roles.clone()), (7, vec!["ROLE_OFP".to_owned()]));
    assert!(account.user.access.admin && account.user.active && !account.user.service_account);
    assert_eq!(account.user.phone.mobile.as_deref(), Some("1"));
    let organization = account.organization.unwrap();
    assert_eq!(organization.address.visit.as_ref().unwrap().zip_code.as_deref(), Some("1"));
    let [first, second] = account.agreements.as_slice() else { panic!("two agreements") };
    assert!(first.super_agreement && first.expires.is_some() && first.products.is_empty());
    assert_eq!(second.kind, AgreementType::Prepaid);
    assert_eq!(second.prepaids, Some(PrepaidDownloads { total: 10, remaining: 4 }));
    let codes: Vec<_> = second.products.iter().map(|product| product.code.as_str()).collect();
    assert_eq!(codes, ["FOTO", "TEXT"]);
}

#[test]
fn a_role_of_the_agency_ends_the_password_links_from_before() {
    let (accounts, _dir) = open();
    import(&accounts, &whole()).unwrap();
    let link = PasswordLink {
        id: uuid::Uuid::new_v4(),
        user: UserId(7),
        kind: PasswordLinkKind::Reset,
        created: now(),
        expires: jiff::Timestamp::from_second(1_800_003_600).unwrap(),
    };
    let id = link.id;
    let write = || {
        let link = link.clone();
        accounts.db.write_blocking(move |tx| tx.write_password_link(&link, 5)).unwrap();
    };
    let is_open = || {
        let found = accounts.db.read_blocking(move |tx| tx.find_password_link(id, now()));
        found.unwrap().is_some()
    };
    let add = |role: &str| {
        accounts.change_roles("editor", &[role.to_owned()], &[], now()).unwrap();
    };
    write();
    add("ROLE_MEDIEBANK");
    assert!(is_open());
    add("ROLE_PROVIDER");
    assert!(!is_open());
    write();
    add("ROLE_PROVIDER");
    assert!(is_open(), "the user had the role");
    let roles = json!(["ROLE_PROVIDER", "ROLE_OPERATOR"]);
    let file = json!({ "users": [{ "userName": "editor", "organization": 1, "roles": roles }] });
    import(&accounts, &file).unwrap();
    assert!(!is_open());
}

#[test]
fn an_entry_replaces_what_it_states_and_leaves_the_password_and_whether_one_is_active() {
    let (accounts, _dir) = open();
    import(&accounts, &whole()).unwrap();
    accounts.set_user_active("editor", false, now()).unwrap();
    accounts.set_client_active("desk", false, now()).unwrap();
    let file = json!({ "users": [{ "userName": "editor", "organization": 2, "agreements": [3] }],
        "clients": [{ "client_id": "desk", "grants": ["implicit"] }] });
    let imported = import(&accounts, &file).unwrap();
    assert_eq!((imported.users, imported.clients), (counts(0, 1, 0), counts(0, 1, 0)));
    let editor = accounts.list_users().unwrap().remove(0);
    assert!(!editor.user.active && editor.has_password && editor.user.email_address.is_none());
    assert_eq!((editor.user.id.0, editor.agreements.len()), (7, 1));
    let desk = accounts.list_clients().unwrap().remove(1);
    assert!(!desk.active && accounts.hasher.verify(SECRETS[1], desk.secret.as_ref().unwrap()));
    let file = json!({ "users": [{ "userName": "editor", "active": true }],
        "clients": [{ "client_id": "desk", "public": true }] });
    import(&accounts, &file).unwrap();
    assert!(accounts.list_users().unwrap()[0].user.active);
    assert!(accounts.list_clients().unwrap()[1].is_public());
    refused(&accounts, &json!({ "clients": [{ "client_id": "desk" }] }), "client_secret");
}

#[test]
fn a_key_that_was_revoked_stays_revoked() {
    let (accounts, _dir) = open();
    import(&accounts, &whole()).unwrap();
    let key = accounts.list_keys(None).unwrap().remove(0);
    accounts.revoke_key(key.id, now()).unwrap();
    import(&accounts, &whole()).unwrap();
    assert_eq!(accounts.list_keys(None).unwrap()[0].revoked, Some(now()));
}

#[test]
fn err_forms_of_users_are_refused_with_their_place() {
    let (accounts, _dir) = open();
    let check = |pointer: &str, value: Value, part: &str| {
        refused(&accounts, &with(pointer, value), part);
    };
    check("/userz", json!([]), "userz: is unknown, expected one of `organizations`");
    check("/users", json!({}), "users: expected a list");
    check("/users/0", json!(1), "users[0]: expected an object");
    check("/users/0/frist", json!(1), "users[0]: frist: is unknown, expected one of `id`");
    check(
        &format!("/apiKeys/0/{}", SECRETS[2]),
        json!(1),
        "apiKeys[0]: a property whose name is not a word: is unknown",
    );
    check("/users/1/access", json!({ "root": true }), "users[1]: access.root: is unknown");
    check("/users/0/access", json!({ "admin": 1 }), "access.admin: expected true or false");
    check("/users/0/access", json!([true, true]), "users[0]: access: expected an object");
    check("/users/0/password", json!([SECRETS[0]]), "password: expected a string");
    check("/users/0/password", json!(""), "password: has 1 to 1024 bytes");
    check("/users/0/password", json!("x".repeat(1025)), "password: has 1 to 1024 bytes");
    check("/users/0/userName", json!(""), "userName: a user name has 1 to 254 bytes");
    check("/users/0/userName", json!("x".repeat(255)), "userName: ");
    check("/users/0/userName", json!("a\u{85}b"), "userName: has control characters");
    check("/users/0/emailAddress", json!("desk.example"), "emailAddress: expected");
    check("/users/0/emailAddress", json!("a@b\r\nBcc: c@d"), "emailAddress: expected");
    check("/users/0/firstName", json!("a\u{0}"), "firstName: has control characters");
    check("/users/0/department", json!("x".repeat(4097)), "department: has more than 4096");
    check("/users/0/roles", json!(["ROLE_OFP", "a b"]), "roles[1]: expected a word");
    check("/users/0/roles", json!("ROLE_OFP"), "roles: expected a list");
    check("/users/0/id", json!(0), "id: expected a whole number");
    check("/users/0/id", json!(7.5), "id: expected a whole number");
    check("/users/0/id", json!(1u64 << 53), "id: expected a whole number");
    check("/users/0/agreements", json!(["1"]), "agreements[0]: expected a whole number");
    assert_eq!(accounts.list_users().unwrap(), [], "nothing of a refused file comes in");
}

#[test]
fn err_forms_of_what_users_have_are_refused_with_their_place() {
    let (accounts, _dir) = open();
    let check = |pointer: &str, value: Value, part: &str| {
        refused(&accounts, &with(pointer, value), part);
    };
    check("/organizations/0/id", Value::Null, "organizations[0]: id: expected a whole number");
    check("/organizations/0/address/visit/street", json!(1), "address.visit.street: expected");
    check("/organizations/0/address/visit/no", json!(1), "address.visit.no: is unknown");
    check("/products/0/id", json!(0), "products[0]: id: expected a whole number");
    check("/products/0/code", json!("F O"), "products[0]: code: expected a word");
    check("/agreements/0/type", json!("subscription"), "type: expected one of `Subscription`");
    check("/agreements/0/expires", json!("2030-01-01"), "expires: expected a time");
    check("/agreements/0/expires", json!("2030-01-01T00:00:00Z[UTC]"), "expires: expected");
    check("/agreements/0/prepaids", json!({ "total": 1 }), "prepaids: is only for");
    check("/agreements/1/prepaids", Value::Null, "agreements[1] 2: prepaids: is missing");
    check("/agreements/1/prepaids/remaining", json!(11), "prepaids.remaining: is above");
    check("/agreements/1/prepaids/total", json!(-1), "prepaids.total: expected");
    check("/licenses/0/uuid", json!("x"), "licenses[0]: uuid: expected a UUID");
    check(
        "/licenses/0/period",
        json!("Week"),
        "period: expected one of `Year`, `Month`, `Single`",
    );
    check("/licenses/0/price", json!("1200"), "price: expected an amount");
    check("/licenses/0/price", json!(1200.0), "price: expected a string");
    check("/clients/0/grants", json!(["client_credentials"]), "grants[0]: expected");
    check("/clients/0/redirect_uris", json!(["https://x/#y"]), "redirect_uris[0]: ");
    check("/clients/0/redirect_uris", json!(vec!["https://x"; 51]), "at most 50 redirect URIs");
    check("/clients/0/public", json!(true), "client_secret: a public client has none");
    check("/clients/0/client_secret", Value::Null, "client_secret: is missing");
    check("/apiKeys/0/key", json!("short"), "key: a key has 16 to 256 characters");
    check("/apiKeys/0/key", json!("a key with spaces in it"), "key: a key has printable");
    let channel = r#"channels[0] "user:editor:desk": "#;
    check(
        "/channels/0/method",
        json!("pigeon"),
        "channels[0]: method: expected one of `download`",
    );
    check("/channels/0/name", json!("a:b"), "name: a channel's name has");
    check("/channels/0/formats", json!([1]), "channels[0]: formats[0]: expected a string");
    check("/channels/0/formats", json!([]), &format!("{channel}formats: a channel has 1 to 32"));
    check("/channels/0/formats", json!([".json", ".zip"]), &format!("{channel}formats[1]: "));
    check("/channels/0/formats", json!(["-crop_w1.jpg"]), &format!("{channel}formats[0]: "));
    let large = json!({ "password": format!("{}{}", SECRETS[0], "x".repeat(16 * 1024)) });
    check("/channels/0/settings", large, &format!("{channel}settings: have more than 16384"));
    assert_eq!(accounts.list_users().unwrap(), [], "nothing of a refused file comes in");
}

#[test]
fn err_references_are_refused_with_what_they_name() {
    let (accounts, _dir) = open();
    let check = |pointer: &str, value: Value, part: &str| {
        refused(&accounts, &with(pointer, value), part);
    };
    check("/users/0/agreements", json!([4]), r#"users[0] "editor": agreement 4 does not exist"#);
    check("/users/0/agreements", json!([3]), "agreement 3 belongs to organization 2, not to 1");
    check("/users/1/agreements", json!([3]), "to organization 2, and the user to none");
    check("/users/0/organization", json!(9), "organization 9 does not exist");
    check("/agreements/0/organization", json!(9), "agreements[0] 1: organization 9 does not");
    check("/agreements/2/products", json!(["VIDEO"]), "product VIDEO does not exist");
    check("/licenses/0/product", json!("VIDEO"), "product VIDEO does not exist");
    check("/apiKeys/0/user", json!("nobody"), r#"apiKeys[0] of "nobody": user "nobody" does not"#);
    check("/users/1/id", json!(7), r#"users[1] "staff": id: is also that of users[0] "editor""#);
    check("/users/1/userName", json!("editor"), "userName: is also that of users[0]");
    check("/channels/0/owner", json!("nobody"), r#""user:nobody:desk": user "nobody" does not"#);
    check("/channels/1", whole()["channels"][0].clone(), "name: is also that of channels[0]");
    check("/apiKeys/2", whole()["apiKeys"][0].clone(), "key: is also that of apiKeys[0]");
    check("/organizations/1/id", json!(1), "organizations[1] 1: id: is also that of");
    check("/products/1/code", json!("FOTO"), "code: is also that of products[0]");
    assert_eq!(accounts.list_users().unwrap(), []);
}

#[test]
fn err_names_that_others_have_in_the_database_are_refused() {
    let (accounts, _dir) = open();
    import(&accounts, &whole()).unwrap();
    let check = |file: Value, part: &str| refused(&accounts, &file, part);
    let user = |id: i64, name: &str| json!({ "users": [{ "id": id, "userName": name }] });
    check(user(7, "other"), r#"users[0] "other": id: 7 belongs to user "editor""#);
    check(user(9, "editor"), r#"id: 9 is given, but user "editor" has 7"#);
    check(json!({ "products": [{ "id": 9, "code": "FOTO" }] }), "product 10 has the code");
    let agreement = json!({ "id": 1, "organization": 2, "type": "Subscription" });
    check(json!({ "agreements": [agreement] }), r#"user "editor" of another organization"#);
    let renamed = json!({ "products": [{ "id": 10, "code": "IMAGE" }],
        "agreements": [{ "id": 3, "organization": 2, "type": "Direct", "products": ["FOTO"] }] });
    check(renamed, "product FOTO does not exist");
}

#[test]
fn err_text_that_is_no_json_or_names_a_property_twice_is_refused() {
    let (accounts, _dir) = open();
    for text in ["", "[", "[]", "1", r#"{"users": []"#, "{} {}", r#"{"users":[],"users":[]}"#] {
        let refused = accounts.import(text, now()).unwrap_err();
        assert!(matches!(refused, AccountsError::Form(_)), "{text}: {refused}");
    }
    let twice = r#"{"users":[{"userName":"a","userName":"b"}]}"#;
    let refused = accounts.import(twice, now()).unwrap_err().to_string();
    assert!(refused.contains("users[0]: duplicate field `userName` at line 1"), "{refused}");
    let settings = r#"{ "to": "a@b", "to": "c@d" }"#;
    let channel = format!(r#"{{ "owner": "a", "name": "b", "settings": {settings} }}"#);
    let refused = accounts.import(&format!(r#"{{ "channels": [{channel}] }}"#), now());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.starts_with("channels[0]: settings: a property occurs twice"), "{refused}");
}

#[test]
fn err_what_cannot_be_read_is_named_with_its_line() {
    let (accounts, _dir) = open();
    let check = |entry: &str, expected: &str| {
        let text = format!("{{\n  \"users\": [{entry}]\n}}");
        let refused = accounts.import(&text, now()).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("{expected} at line 2 column ")), "{refused}");
    };
    check(r#"{ "userName": "a", "id": "1" }"#, "users[0]: id: expected a whole number");
    check(r#"{ "userName": "a" }, {}"#, "users[1]: missing field `userName`");
    check(r#"{ "userName": "a" "id": 1 }"#, "users[0]: expected `,` or `}`");
}

#[test]
fn err_no_value_is_repeated_wherever_it_is() {
    let (accounts, _dir) = open();
    let number = 98_415_926_535_897_932_i64;
    let secrets = [SECRETS[0].to_owned(), number.to_string()];
    for value in [json!(SECRETS[0]), json!(number), json!({ (SECRETS[0]): 1 }), json!([number])] {
        for path in ["/users", "/users/0", "/users/0/id", "/users/0/access", "/users/0/password"] {
            let Err(refused) = import(&accounts, &with(path, value.clone())) else { continue };
            let refused = refused.to_string();
            assert!(!secrets.iter().any(|secret| refused.contains(secret)), "{refused}");
        }
    }
    // The value looks like the end of serde's message.
    let value = json!(format!("{}, expected {}", SECRETS[0], SECRETS[0]));
    refused(&accounts, &with("/users/0/id", value), "users[0]: id: expected a whole number");
}

#[test]
fn ok_optional_properties_may_be_null() {
    let (accounts, _dir) = open();
    let mut file = whole();
    for list in file.as_object_mut().unwrap().values_mut() {
        for entry in list.as_array_mut().unwrap() {
            set_null(entry);
        }
    }
    // An optional property of other entries.
    file["channels"][0]["name"] = json!("desk");
    import(&accounts, &file).unwrap();
    for list in file.as_object_mut().unwrap().values_mut() {
        *list = Value::Null;
    }
    import(&accounts, &file).unwrap();
}

/// Replaces each property that is optional everywhere but in channels.
fn set_null(value: &mut Value) {
    let required = "id code organization type total uuid product userName client_id client_secret \
                    public user key owner method formats";
    for (name, value) in value.as_object_mut().into_iter().flatten() {
        if value.is_object() {
            set_null(value);
        } else if !required.split_whitespace().any(|required| required == name) {
            *value = Value::Null;
        }
    }
}

#[test]
fn a_file_is_taken_in_once_until_it_is_another_one() {
    let (accounts, _dir) = open();
    let import = |text: &str| accounts.import_once("demo", text, now()).unwrap().is_some();
    let (one, other) = (whole().to_string(), with("/users/0/firstName", json!("x")).to_string());
    assert_eq!([&one, &one, &other, &other].map(|text| import(text)), [true, false, true, false]);
}

#[test]
fn what_is_added_must_be_new_and_its_secret_is_made() {
    let (accounts, _dir) = open();
    let request = UserRequest { user_name: "editor".to_owned(), ..UserRequest::default() };
    let added = accounts.add_user(&request, now()).ok().unwrap();
    assert_eq!(added.secret.map(|secret| secret.len()), Some(43));
    let refused = accounts.add_user(&request, now()).err().unwrap().to_string();
    assert_eq!(refused, r#"user "editor": exists already"#);
    let given = accounts.set_password("editor", Some("x".to_owned()), now()).unwrap();
    assert_eq!(given, None);
    let refused = accounts.add_key("nobody", "", false, now()).err().unwrap().to_string();
    assert_eq!(refused, r#"API key of user "nobody": user "nobody" does not exist"#);
    for password in [String::new(), "x".repeat(1025)] {
        assert!(accounts.set_password("editor", Some(password), now()).is_err());
    }
}

#[test]
fn a_channel_is_added_once_shut_and_opened_and_keeps_its_formats_in_one_spelling() {
    let (accounts, _dir) = open();
    import(&accounts, &whole()).unwrap();
    let list = || accounts.list_channels(Some("editor".to_owned())).unwrap();
    assert_eq!(list()[0].formats, ["_NormalHires.jpg", ".json"]);
    let request = |name: &str| ChannelRequest {
        owner: "editor".to_owned(),
        name: name.to_owned(),
        method: "directory".to_owned(),
        formats: vec![".xml".to_owned()],
        settings: serde_json::Map::new(),
    };
    let refused = accounts.add_channel(&request("desk"), now()).unwrap_err().to_string();
    assert_eq!(refused, r#"channel "user:editor:desk": exists already"#);
    accounts.add_channel(&request("other"), now()).unwrap();
    accounts.set_channel_active("editor", "desk", false).unwrap();
    import(&accounts, &whole()).unwrap();
    assert_eq!(list().iter().map(|one| one.active).collect::<Vec<_>>(), [false, true]);
    accounts.remove_channel("editor", "other").unwrap();
    let unknown = r#"channel "user:editor:other" does not exist"#;
    assert_eq!(accounts.remove_channel("editor", "other").unwrap_err().to_string(), unknown);
    let again = accounts.set_channel_active("editor", "other", true).unwrap_err();
    assert_eq!(again.to_string(), unknown);
    assert!(accounts.list_channels(Some("nobody".to_owned())).is_err());
}

/// Generates JSON of the names and values that accounts files have, in any order.
fn any_json() -> impl Strategy<Value = Value> {
    let names = [
        "organizations",
        "products",
        "agreements",
        "licenses",
        "users",
        "clients",
        "apiKeys",
        "channels",
        "id",
        "userName",
        "client_id",
        "client_secret",
        "code",
        "uuid",
        "type",
        "organization",
        "prepaids",
        "total",
        "remaining",
        "redirect_uris",
        "grants",
        "user",
        "key",
        "roles",
        "access",
        "password",
        "expires",
        "price",
        "product",
        "public",
        "other",
    ];
    let words = ["Prepaid", "FOTO", "https://x/", "password", "2030-01-01T00:00:00Z", "1.00"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        let name = prop::sample::select(names.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..8)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_taken_or_refused(value in any_json()) {
        drop(ValidAccounts::parse(&value.to_string()));
    }

    #[test]
    fn any_text_is_taken_or_refused(text in ".{0,200}") {
        drop(ValidAccounts::parse(&text));
    }
}

proptest! {
    // Each case creates a database.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A whole file with one value replaced: most of them reach the database.
    #[test]
    fn any_file_is_imported_completely_or_not_at_all(
        at in 0usize..200,
        value in any_json(),
    ) {
        let mut file = whole();
        let mut places = Vec::new();
        list_places(&file, String::new(), &mut places);
        *file.pointer_mut(&places[at % places.len()]).unwrap() = value;
        let (accounts, _dir) = open();
        match import(&accounts, &file) {
            Ok(first) => {
                let again = import(&accounts, &file).unwrap();
                let all = first.lists().map(|(_, counts)| counts.total());
                prop_assert_eq!(again.lists().map(|(_, counts)| counts.unchanged), all);
            }
            Err(refused) => {
                let secret = SECRETS.iter().any(|secret| refused.to_string().contains(secret));
                prop_assert!(!secret, "{}", refused);
                prop_assert!(accounts.list_users().unwrap().is_empty());
            }
        }
    }
}

fn list_places(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                list_places(value, format!("{at}/{name}"), places);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                list_places(value, format!("{at}/{index}"), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    places.push(at);
}

#[test]
fn an_export_enables_no_disabled_client_and_lifts_no_limit_of_a_channel_a_key_or_a_client() {
    let (accounts, _dir) = open();
    let mut file = with("/channels/0/byUser", json!(true));
    file["apiKeys"][0]["readOnly"] = json!(true);
    file["clients"][1]["readOnly"] = json!(true);
    import(&accounts, &file).unwrap();
    accounts.set_client_active("desk", false, now()).unwrap();
    accounts.set_channel_active("editor", "desk", false).unwrap();
    let exported = accounts.export(true).unwrap();
    let (copy, _copy_dir) = open();
    import(&copy, &exported).unwrap();
    let clients = copy.list_clients().unwrap();
    let desk = clients.iter().find(|client| client.client_id == "desk").unwrap();
    assert!(!desk.active && desk.secret.is_some() && !desk.read_only);
    assert!(clients.iter().any(|client| client.client_id == "app" && client.read_only));
    let keys = copy.list_keys(None).unwrap();
    assert!(keys.len() == 1 && keys[0].read_only);
    let channels = copy.list_channels(None).unwrap();
    assert!(channels[0].by_user && !channels[0].active);
    assert_eq!(copy.export(true).unwrap(), exported);
}

#[test]
fn err_hashes_are_refused_without_repeating_them() {
    let (accounts, _dir) = open();
    let check = |pointer: &str, value: Value, part: &str| {
        refused(&accounts, &with(pointer, value), part);
    };
    let hash = json!("$argon2id$v=19$m=8,t=1,p=1$d2lyZXBob3RvLWRvY3MtMQ");
    check("/users/0/passwordHash", hash.clone(), "passwordHash: is only for entries without");
    check("/users/1/passwordHash", json!(SECRETS[0]), "passwordHash: expected an argon2id hash");
    check("/users/1/passwordHash", hash.clone(), "passwordHash: expected an argon2id hash");
    for costs in ["m=4194305,t=1,p=1", "m=8,t=1001,p=1"] {
        let end = "d2lyZXBob3RvLWRvY3MtMQ$ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs";
        let costly = json!(format!("$argon2id$v=19${costs}${end}"));
        check("/users/1/passwordHash", costly, "costs at most 4194304 KiB and 1000 passes");
    }
    check("/clients/0/client_secret_hash", hash.clone(), "client_secret_hash: is only for");
    check("/clients/1/client_secret_hash", hash, "client_secret_hash: a public client has no");
    check("/apiKeys/0/keyHash", json!(SECRETS[2]), "keyHash: expected a SHA-256 hash");
    check("/apiKeys/0/key", Value::Null, "key: is missing");
}
