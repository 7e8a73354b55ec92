//! The user API (`docs/contract/users.md`) through the server.

use std::fs;

use api::orders::{ListOrders, LoadOrder};
use api::organization::{
    ListOrganizationUsers, LoadOrganization, LoadOrganizationUser, UpdateOrganizationUser,
    UserRightsUpdate, UserUpdate,
};
use api::user::{
    ListAgreements, ListDevices, LoadCaller, LoadProfile, LoadProfileProperties, Profile,
    RegisterDevice, RemoveDevice, ReplaceProfile, UpdateProfileProperties,
};
use model::account::DeviceKind;
use reqwest::{
    Method,
    header::{
        ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ALLOW, AUTHORIZATION, CACHE_CONTROL,
        CONTENT_TYPE, WWW_AUTHENTICATE,
    },
};
use serde_json::{Value, json};

use crate::common::api::{ApiCaller, Refusal, UNAUTHORIZED};
use crate::common::{DEMO_KEY, Server, tokens};

/// The path of the users of the caller's organization.
const USERS: &str = "/user/v1/organization/user";

/// The summary of the refusal of a request. A failed validation has the message that the contract fixes.
fn refused(caller: &ApiCaller<'_>, method: Method, path: &str, body: Option<&Value>) -> String {
    summary(&caller.refused(method, path, body))
}

fn summary(refusal: &Refusal) -> String {
    if refusal.status == 400 {
        assert_eq!(refusal.message, "Request validation failed");
    }
    refusal.summary()
}

/// Makes a call that must answer with a plain string.
fn done(caller: &ApiCaller<'_>, method: Method, path: &str) {
    let response = caller.request(method, path, None);
    assert_eq!(response.status(), 200, "{path}");
    assert_eq!(response.headers()[CACHE_CONTROL], "no-store", "{path}");
    let text = response.text().expect("text");
    let read_as = serde_json::from_str::<Value>(&text).ok();
    assert!(read_as.is_none_or(|value| value.is_string()), "{text} is no plain string");
}

/// Every path of the API with one of its methods.
const ADDRESSES: [(&str, &str); 16] = [
    ("GET", "/user/v1/agreement"),
    ("GET", "/user/v1/user"),
    ("GET", "/user/v1/order"),
    ("GET", "/user/v1/order/1"),
    ("PUT", "/user/v1/order/1"),
    ("GET", "/user/v1/profile"),
    ("PUT", "/user/v1/profile"),
    ("GET", "/user/v1/profile/a"),
    ("PUT", "/user/v1/profile/a"),
    ("PUT", "/user/v1/device/t"),
    ("DELETE", "/user/v1/device/t"),
    ("GET", "/user/v1/organization"),
    ("GET", "/user/v1/organization/user"),
    ("POST", "/user/v1/organization/user"),
    ("GET", "/user/v1/organization/user/102"),
    ("PUT", "/user/v1/organization/user/102"),
];

fn method(name: &str) -> Method {
    name.parse().expect("method")
}

#[test]
fn every_address_of_the_user_api_needs_a_caller() {
    let server = Server::demo();
    for (name, path) in ADDRESSES {
        for (authorization, error) in
            [("", false), ("ApiKey wrong", false), ("Bearer wrong", true), ("Basic eDp5", false)]
        {
            let request = server.client.request(method(name), format!("{}{path}", server.url));
            let request = match authorization {
                "" => request,
                text => request.header(AUTHORIZATION, text),
            };
            let response = request.send().unwrap();
            assert_eq!(response.status(), 401, "{name} {path} {authorization}");
            let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
            let challenges: Vec<_> = challenges.map(|line| line.to_str().unwrap()).collect();
            assert!(challenges.iter().any(|line| line.starts_with("Bearer realm=")));
            assert!(challenges.concat().contains("ApiKey realm="));
            assert_eq!(challenges.concat().contains("invalid_token"), error, "{authorization}");
            assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
            assert_eq!(response.text().unwrap(), UNAUTHORIZED);
        }
    }
}

#[test]
fn other_methods_of_the_user_api_are_refused_with_those_that_work() {
    let server = Server::demo();
    let key = ApiCaller::key(&server, DEMO_KEY);
    let check = |name: &str, path: &str, allowed: &[&str]| {
        let response = key.request(method(name), path, None);
        assert_eq!(response.status(), 405, "{name} {path}");
        let found = response.headers()[ALLOW].to_str().unwrap().to_owned();
        let mut found: Vec<&str> = found.split(',').map(str::trim).collect();
        found.sort_unstable();
        assert_eq!(found, allowed, "{path}");
    };
    check("POST", "/user/v1/user", &["GET", "HEAD"]);
    check("DELETE", "/user/v1/profile", &["GET", "HEAD", "PUT"]);
    check("PATCH", "/user/v1/profile/a", &["GET", "HEAD", "PUT"]);
    check("GET", "/user/v1/device/t", &["DELETE", "PUT"]);
    check("PUT", "/user/v1/organization/user", &["GET", "HEAD", "POST"]);
    check("DELETE", "/user/v1/order/1", &["GET", "HEAD", "PUT"]);
    for path in ["/user/v1", "/user/v1/", "/user/v1/user//", "/user/v2/user"] {
        assert_eq!(key.request(Method::GET, path, None).status(), 404, "{path}");
    }
    let head = key.request(Method::HEAD, "/user/v1/user", None);
    assert_eq!((head.status().as_u16(), head.bytes().unwrap().len()), (200, 0));
}

#[test]
fn a_user_sees_itself_with_its_agreements_and_its_organization() {
    let server = Server::demo();
    let key = ApiCaller::key(&server, DEMO_KEY);
    let description = "Demo agreement: every item of the archive, without a limit, so that your \
                       own pictures can be tried too";
    let product = "Demo product: the photographs of the demo archive";
    let user = json!({
        "id": 101, "customerId": 1, "userName": "demo-editor", "firstName": "Demo",
        "lastName": "Editor", "emailAddress": "demo-editor@demo-desk.example",
        "department": "Demo picture desk", "active": true,
        "phoneNumber": { "direct": "+46 8 465 004 01" },
        "agreements": [{
            "id": 1001, "type": "Subscription", "superAgreement": true,
            "products": [
                { "id": 10, "code": "FOTO", "name": "Photo", "description": product }
            ],
            "name": "Demo subscription", "description": description,
            "expires": "2035-12-31T23:00:00Z",
        }],
        "access": { "admin": false, "mediebank": true },
    });
    assert_eq!(key.json("/user/v1/user"), user);
    let agreements = json!([{
        "id": 1001, "description": description, "type": "Subscription",
        "isSuperAgreement": true,
        "products": [{ "name": "Photo", "description": product, "code": "FOTO" }],
    }]);
    assert_eq!(key.json("/user/v1/agreement"), agreements);
    let organization = json!({
        "id": 1, "name": "Demo desk", "currency": "SEK", "country": "SE",
        "address": {
            "visit": { "street": "Demo street 1", "zipCode": "000 00", "city": "Demo" }
        },
        "phoneNumber": { "direct": "+46 8 465 004 00" },
    });
    assert_eq!(key.json("/user/v1/organization"), organization);
}

/// A profile of these properties.
fn profile(properties: Value) -> Profile {
    serde_json::from_value(properties).unwrap()
}

#[test]
fn a_profile_is_stored_replaced_and_patched() {
    let server = Server::demo();
    let key = ApiCaller::key(&server, DEMO_KEY);
    let load = |property: &str| {
        key.ask(&LoadProfileProperties { property: property.to_owned() }).unwrap()
    };
    assert_eq!(key.ask(&LoadProfile {}), Ok(profile(json!({}))));
    let whole = profile(json!({ "a": { "b": [1, null, "å"] }, "__proto__": 1, "x y/z": true }));
    key.send(&ReplaceProfile {}, &whole).unwrap();
    assert_eq!(key.ask(&LoadProfile {}), Ok(whole));
    assert_eq!(load("__proto__,none"), profile(json!({ "__proto__": 1 })));
    let part = profile(json!({ "a": { "b": [1, null, "å"] }, "x y/z": true }));
    assert_eq!(load("x y/z, a"), part);
    assert_eq!(load("toString,constructor"), profile(json!({})));
    let given = profile(json!({ "a": 2, "unlisted": 3 }));
    let change = UpdateProfileProperties { property: "a,__proto__,new".to_owned() };
    key.send(&change, &given).unwrap();
    let patched = profile(json!({ "a": 2, "__proto__": 1, "x y/z": true }));
    assert_eq!(key.ask(&LoadProfile {}), Ok(patched.clone()));
    let server = server.restart(&[]);
    let key = ApiCaller::key(&server, DEMO_KEY);
    assert_eq!(key.ask(&LoadProfile {}), Ok(patched));
    key.send(&ReplaceProfile {}, &profile(json!({}))).unwrap();
    assert_eq!(key.ask(&LoadProfile {}), Ok(profile(json!({}))));
}

#[test]
fn a_profile_that_is_not_an_object_or_is_too_large_is_refused() {
    let server = Server::demo();
    let key = ApiCaller::key(&server, DEMO_KEY);
    let put = |path: &str, body: Option<&Value>| refused(&key, Method::PUT, path, body);
    for path in ["/user/v1/profile", "/user/v1/profile/a"] {
        for body in [json!([]), json!("x"), json!(null), json!(1)] {
            assert_eq!(put(path, Some(&body)), "400 type body");
        }
        assert_eq!(put(path, None), "400 required body");
        let large = json!({ "a": "x".repeat(64 * 1024) });
        assert_eq!(put(path, Some(&large)), "413");
    }
    let names = "400 pattern path property";
    assert_eq!(put("/user/v1/profile/,%20,", Some(&json!({}))), names);
    assert_eq!(refused(&key, Method::GET, "/user/v1/profile/%2C", None), names);
    let not_text = refused(&key, Method::GET, "/user/v1/profile/%FF", None);
    assert_eq!(not_text, "400 format path property");
    let url = format!("{}/user/v1/profile?ak={DEMO_KEY}", server.url);
    for kind in ["application/json", "text/plain", "application/x-www-form-urlencoded"] {
        let request = server.client.put(&url).header(CONTENT_TYPE, kind).body("{\"a\":");
        let response = request.send().unwrap();
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store", "{kind}");
        assert_eq!(summary(&Refusal::read(response)), "400 format body", "{kind}");
    }
    let plain = server.client.put(&url).body("{\"a\":1}").send().unwrap();
    assert_eq!(plain.status(), 200, "a body without a type is JSON");
    assert_eq!(key.ask(&LoadProfile {}), Ok(profile(json!({ "a": 1 }))));
}

#[test]
fn a_device_is_registered_and_unregistered() {
    let server = Server::demo();
    let key = ApiCaller::key(&server, DEMO_KEY);
    let path = "/user/v1/device/token:1_a-b";
    done(&key, Method::PUT, &format!("{path}?type=ios&model=Phone+1"));
    let token = "token:1_a-b".to_owned();
    let name = "Min telefon".to_owned();
    let again = RegisterDevice {
        token: token.clone(),
        kind: DeviceKind::IosSandbox,
        name: Some(name.clone()),
        model: "2".to_owned(),
    };
    key.ask(&again).unwrap();
    let listed = key.ask(&ListDevices {}).unwrap();
    assert_eq!((listed.len(), &listed[0].model, &listed[0].name), (1, &again.model, &Some(name)));
    for token in [token.clone(), token, "unknown".to_owned()] {
        key.ask(&RemoveDevice { token }).unwrap();
    }
    done(&key, Method::DELETE, path);
    let put = |path: &str| refused(&key, Method::PUT, path, None);
    assert_eq!(put(path), "400 required query type, required query model");
    assert_eq!(put(&format!("{path}?type=windows&model=1")), "400 enum query type");
    let long = format!("/user/v1/device/{}?type=ios&model=1", "t".repeat(4097));
    assert_eq!(put(&long), "400 maximum path token");
    assert_eq!(put("/user/v1/device/%00?type=ios&model=1"), "400 pattern path token");
}

#[test]
fn wrong_parameters_of_the_order_list_are_named() {
    let server = Server::demo();
    let key = ApiCaller::key(&server, DEMO_KEY);
    let path = "/user/v1/order?size=many&start=-1&status=open";
    let expected = "400 type query size, minimum query start, enum query status";
    assert_eq!(refused(&key, Method::GET, path, None), expected);
    let put = |path: &str, body: Value| refused(&key, Method::PUT, path, Some(&body));
    let expected = "400 required body license, additionalProperties body more";
    assert_eq!(put("/user/v1/order/1", json!({ "approve": true, "more": 1 })), expected);
    assert_eq!(put("/user/v1/order/x", json!({ "approve": false })), "400 type path id");
}

#[test]
fn one_order_equals_its_entry_in_the_list() {
    let server = Server::demo();
    let key = ApiCaller::key(&server, DEMO_KEY);
    let headers = [("authorization", key.authorization.as_str())];
    assert_eq!(server.get_with("/media/image/demo-urtavla.jpg", &headers).status(), 200);
    let order = key.orders().remove(0);
    let found = key.ask(&LoadOrder { id: order.id }).unwrap();
    assert_eq!(json!(found), json!(order));
    // The demo buyer belongs to another organization, and order 999999 does not exist.
    let buyer = ApiCaller::key(&server, "demo-key-0000-0000-000000000003");
    for (caller, id) in [(&buyer, order.id), (&key, 999_999)] {
        assert_eq!(caller.ask(&LoadOrder { id }).unwrap_err().summary(), "404", "{id}");
    }
    assert_eq!(refused(&key, Method::GET, "/user/v1/order/x", None), "400 type path id");
}

#[test]
fn a_key_administers_no_users_and_the_missing_scope_is_reported_first() {
    let server = Server::demo();
    let key = ApiCaller::key(&server, DEMO_KEY);
    for (name, path) in ADDRESSES.into_iter().filter(|(_, path)| path.contains("tion/user")) {
        let found = refused(&key, method(name), path, None);
        assert_eq!(found, "403 insufficient_scope headers", "{name} {path}");
    }
}

#[test]
fn administration_needs_the_access_level_too() {
    let server = Server::demo();
    let editor = ApiCaller::with_scopes(&server, "demo-editor", "roles admin");
    for (name, path) in ADDRESSES.into_iter().filter(|(_, path)| path.contains("tion/user")) {
        let found = refused(&editor, method(name), path, None);
        assert_eq!(found, "403 admin_required headers", "{name} {path}");
    }
}

#[test]
fn an_administrator_lists_creates_and_changes_the_users_of_its_organization() {
    let server = Server::demo();
    let admin = ApiCaller::bearer(&server, &tokens::admin(&server));
    let editor = json!({
        "id": 101, "customerId": 1, "userName": "demo-editor", "firstName": "Demo",
        "lastName": "Editor", "emailAddress": "demo-editor@demo-desk.example",
        "department": "Demo picture desk", "active": true,
    });
    assert_eq!(admin.json(USERS)[0], editor);
    let users = admin.ask(&ListOrganizationUsers {}).unwrap();
    let ids: Vec<i64> = users.iter().map(|user| user.id).collect();
    assert_eq!(ids[..2], [101, 102]);
    assert!(!ids.contains(&103), "the user of another organization");
    let body = json!({
        "emailAddress": "New.User@demo-desk.example", "firstName": "New", "lastName": "User",
        "phoneNumber": { "direct": "08-465 004 03" }, "access": { "mediebank": true },
    });
    let made = admin.request(Method::POST, USERS, Some(&body));
    assert_eq!(made.status(), 200);
    assert_eq!(made.headers()[CACHE_CONTROL], "no-store");
    let made: Value = made.json().unwrap();
    let mut expected = json!({
        "id": made["id"], "customerId": 1, "userName": "new.user@demo-desk.example",
        "firstName": "New", "lastName": "User", "emailAddress": "New.User@demo-desk.example",
        "active": true, "phoneNumber": { "direct": "08-465 004 03" },
        "agreements": admin.json("/user/v1/user")["agreements"],
        "access": { "admin": false, "mediebank": true },
    });
    assert_eq!(made, expected);
    let path = format!("{USERS}/{}", made["id"]);
    assert_eq!(admin.json(&path), expected);
    let change = json!({
        "lastName": "Name", "phoneNumber": { "direct": null, "mobile": "070 1234" },
        "access": { "admin": true, "mediebank": false }, "department": "Sport",
    });
    let changed = admin.request(Method::PUT, &path, Some(&change));
    assert_eq!(changed.status(), 200);
    expected["lastName"] = json!("Name");
    expected["department"] = json!("Sport");
    expected["phoneNumber"] = json!({ "mobile": "070 1234" });
    expected["access"] = json!({ "admin": true, "mediebank": false });
    assert_eq!(changed.json::<Value>().unwrap(), expected);
    assert_eq!(admin.json(&path), expected);
}

#[test]
fn an_invalid_user_is_refused_with_every_reason() {
    let server = Server::demo();
    let admin = ApiCaller::bearer(&server, &tokens::admin(&server));
    let check = |body: Value, expected: &str| {
        assert_eq!(refused(&admin, Method::POST, USERS, Some(&body)), expected, "{body}");
    };
    let missing =
        "400 required body emailAddress, required body firstName, required body lastName";
    check(json!({}), missing);
    let whole = json!({ "emailAddress": "a@b.example", "firstName": "A", "lastName": "B" });
    let with = |name: &str, value: Value| {
        let mut body = whole.clone();
        body[name] = value;
        body
    };
    check(with("emailAddress", json!("nobody")), "400 format body emailAddress");
    for blank in ["", "  "] {
        check(with("firstName", json!(blank)), "400 pattern body firstName");
        check(with("lastName", json!(blank)), "400 pattern body lastName");
    }
    check(with("userName", json!("x")), "400 additionalProperties body userName");
    check(with("access", json!({ "root": true })), "400 additionalProperties body access.root");
    check(
        with("phoneNumber", json!({ "direct": "none" })),
        "400 phoneNumber_direct_invalid body phoneNumber.direct",
    );
    check(with("phoneNumber", json!({ "direct": 8 })), "400 type body phoneNumber.direct");
    assert_eq!(admin.request(Method::POST, USERS, Some(&whole)).status(), 200);
    let in_use = "400 userName_in_use body emailAddress";
    check(whole.clone(), in_use);
    check(with("emailAddress", json!("A@B.example")), in_use);
    let change = |id: &str, body: Value| {
        refused(&admin, Method::PUT, &format!("{USERS}/{id}"), Some(&body))
    };
    assert_eq!(change("101", json!({ "firstName": null })), "400 type body firstName");
    assert_eq!(change("101", json!({ "lastName": " " })), "400 pattern body lastName");
    assert_eq!(change("x", json!({})), "400 type path id");
    let named = UserUpdate { first_name: Some("X".to_owned()), ..UserUpdate::default() };
    for id in [1, 0, -5, i64::MAX] {
        let changed = admin.send(&UpdateOrganizationUser { id }, &named);
        assert_eq!(changed.unwrap_err().status, 404, "{id}");
        let found = admin.ask(&LoadOrganizationUser { id });
        assert_eq!(found.unwrap_err().status, 404, "{id}");
    }
}

#[test]
fn a_revoked_access_level_is_gone_with_the_next_call() {
    let server = Server::demo();
    let admin = ApiCaller::bearer(&server, &tokens::admin(&server));
    admin.send(&UpdateOrganizationUser { id: 101 }, &administration(true)).unwrap();
    admin.send(&UpdateOrganizationUser { id: 102 }, &administration(false)).unwrap();
    let refused = admin.ask(&ListOrganizationUsers {}).unwrap_err();
    assert_eq!(refused.summary(), "403 admin_required headers");
}

/// The change that gives or takes the access level `admin`.
fn administration(admin: bool) -> UserUpdate {
    let access = Some(UserRightsUpdate { admin: Some(admin), mediebank: None });
    UserUpdate { access, ..UserUpdate::default() }
}

#[test]
fn the_last_administrator_of_an_organization_stays_one() {
    let server = Server::demo();
    let admin = ApiCaller::bearer(&server, &tokens::admin(&server));
    let own = UpdateOrganizationUser { id: 102 };
    let refused = admin.send(&own, &administration(false)).unwrap_err();
    assert_eq!(refused.summary(), "409 last_administrator headers");
    // Other changes of the last administrator are allowed, and so is one that keeps the level.
    admin.send(&own, &administration(true)).unwrap();
    let renamed = UserUpdate { first_name: Some("X".to_owned()), ..UserUpdate::default() };
    admin.send(&own, &renamed).unwrap();
    assert_eq!(admin.ask(&ListOrganizationUsers {}).unwrap().len(), 3);
}

#[test]
fn a_service_account_has_no_user_and_no_orders() {
    let server = Server::demo();
    let key = "service-account-key-0001";
    let file = server.dir.path().join("accounts.json");
    let accounts = json!({
        "users": [{ "id": 900, "userName": "program", "serviceAccount": true, "active": true }],
        "apiKeys": [{ "user": "program", "key": key, "name": "program" }],
    });
    fs::write(&file, accounts.to_string()).unwrap();
    let output = server.command(&["import", &file.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let program = ApiCaller::key(&server, key);
    let unsupported = "403 service_account_unsupported headers";
    for refused in [
        program.ask(&LoadCaller {}).unwrap_err(),
        program.ask(&ListOrders::default()).unwrap_err(),
        program.ask(&LoadOrder { id: 1 }).unwrap_err(),
    ] {
        assert_eq!(refused.summary(), unsupported);
    }
    assert!(program.ask(&ListAgreements {}).unwrap().is_empty());
    assert_eq!(program.ask(&LoadOrganization {}).unwrap_err().status, 404);
}

#[test]
fn plain_strings_are_json_for_a_client_that_accepts_nothing_else() {
    let server = Server::demo();
    let ask = |name: &str, path: &str, accept: &str| {
        let request = server.client.request(method(name), format!("{}{path}", server.url));
        let request = request.header(AUTHORIZATION, format!("ApiKey {DEMO_KEY}"));
        let response = request.header(ACCEPT, accept).body("{}").send().unwrap();
        let kind = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        format!("{} {kind} {}", response.status().as_u16(), response.text().unwrap())
    };
    let missing = "/collection/v1/collection/00000000-0000-4000-8000-000000000000";
    for accept in ["application/json", "Application/JSON;q=0.9, application/problem+json"] {
        let saved = ask("PUT", "/user/v1/profile", accept);
        assert_eq!(saved, "200 application/json \"OK\"", "{accept}");
        let gone = ask("DELETE", missing, accept);
        assert_eq!(gone, "404 application/json \"No such collection\"", "{accept}");
    }
    for accept in ["*/*", "text/html", "application/json,text/plain", "application/json,text/*"] {
        let saved = ask("PUT", "/user/v1/profile", accept);
        assert_eq!(saved, "200 text/plain; charset=utf-8 OK", "{accept}");
        let gone = ask("DELETE", missing, accept);
        assert_eq!(gone, "404 text/plain; charset=utf-8 No such collection", "{accept}");
    }
}

#[test]
fn scripts_of_any_site_may_call_the_apis_and_read_every_response() {
    let server = Server::demo();
    let send = |name: &str, path: &str| {
        let request = server.client.request(method(name), format!("{}{path}", server.url));
        request.header("origin", "https://desk.example").send().unwrap()
    };
    for path in [
        "/user/v1/profile",
        "/user/v1/none",
        "/content/v1/image/search",
        "/collection/v1/collection",
        "/api/search",
        "/o/oauth2/token",
        "/o/oauth2/revoke",
        "/o/oauth2/keys",
        "/o/v2/user",
        "/.well-known/openid-configuration",
        "/o/.well-known/openid-configuration",
    ] {
        let response = send("OPTIONS", path);
        assert_eq!(response.status(), 204, "{path}");
        let headers = response.headers();
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_METHODS], "GET, POST, PUT, DELETE");
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_HEADERS], "Authorization, Content-Type");
        assert!(headers.contains_key(ACCESS_CONTROL_MAX_AGE));
    }
    let large = server.client.put(format!("{}/user/v1/profile?ak={DEMO_KEY}", server.url));
    let large = large.body("x".repeat(65 * 1024)).send().unwrap();
    for (response, status) in [
        (send("GET", "/user/v1/profile"), 401),
        (send("GET", &format!("/user/v1/profile?ak={DEMO_KEY}")), 200),
        (send("GET", "/user/v1/none"), 404),
        (send("DELETE", "/user/v1/user"), 405),
        (large, 413),
    ] {
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "*", "{status}");
    }
    for path in ["/", "/o/oauth2/auth", "/o/login", "/item/image/x"] {
        for name in ["OPTIONS", "GET"] {
            let response = send(name, path);
            assert!(!response.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN), "{path}");
        }
    }
}
