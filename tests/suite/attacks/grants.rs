//! OAuth2 grants, scopes, consent and the approval of orders.

use api::collections::LoadCollection;
use api::deliveries::ListChannels;
use api::orders::{LoadOrder, OrderApprover};
use api::organization::{
    CreateOrganizationUser, ListOrganizationUsers, UpdateOrganizationUser, UserUpdate,
};
use api::user::{CreateKey, KeyCreate, ListDevices, ListKeys, RegisterDevice};
use model::MediaType;
use model::account::DeviceKind;
use reqwest::{Method, StatusCode, header::LOCATION};
use serde_json::{Value, json};

use crate::common::api::{ApiCaller, Refusal, new_user};
use crate::common::{DEMO_KEY, Server, postgres, tokens};
use crate::notifications::{make, stream};
use crate::oauth::{Editor, query_of, request, token};
use crate::site_account::Person;

const LICENCE: &str = "2c916e2d-b755-446d-9e18-d636a1447141";
const ITEM: &str = "/media/image/demo-trollslanda";
const BUYER_KEY: &str = "demo-key-0000-0000-000000000003";

/// Imports accounts into a running server.
fn import(server: &Server, accounts: &Value) {
    let file = server.dir.path().join("attack.json");
    std::fs::write(&file, accounts.to_string()).expect("written");
    let output = server.command(&["import", &file.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Calls an API with a token.
fn call(
    server: &Server,
    bearer: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> (u16, Value) {
    let method: Method = method.parse().expect("a method");
    let mut request = server.client.request(method, format!("{}{path}", server.url));
    request = request.header("authorization", format!("Bearer {bearer}"));
    request = request.header("content-type", "application/json");
    if let Some(body) = body {
        request = request.body(body.to_string());
    }
    let response = request.send().expect("answer");
    let status = response.status().as_u16();
    (status, response.json().unwrap_or_default())
}

fn code_of(body: &Value) -> &str {
    body["errors"][0]["errorCode"].as_str().unwrap_or_default()
}

/// A token set by password grant for a client of that name, whose secret is `<name>-secret`.
fn token_set(server: &Server, client: &str, user: &str, scope: &str) -> Value {
    let (secret, password) = (format!("{client}-secret"), format!("{user}-password"));
    let form = [
        ("grant_type", "password"),
        ("client_id", client),
        ("client_secret", &secret),
        ("username", user),
        ("password", &password),
        ("scope", scope),
    ];
    let response = token(server, &form);
    let status = response.status();
    let set: Value = response.json().expect("JSON");
    assert_eq!(status, 200, "{set}");
    set
}

fn access(set: &Value) -> String {
    set["access_token"].as_str().expect("a token").to_owned()
}

/// One client with the contract's default behaviour, and one whose scopes are enforced.
fn clients() -> Value {
    let client = |id: &str, scopes: &str| {
        json!({
            "client_id": id, "client_secret": format!("{id}-secret"), "name": format!("The {id}"),
            "redirect_uris": ["http://127.0.0.1:9000/cb"], "scopes": scopes,
            "grants": ["password", "authorization_code", "refresh_token", "implicit"],
        })
    };
    let mut enforced = client("enforced", "enforced");
    enforced["accessTokenSeconds"] = json!(600);
    json!({ "clients": [client("wide", "contract"), enforced] })
}

#[test]
fn a_service_account_approves_no_order_that_it_may_not_read() {
    let server = Server::demo();
    let service = ApiCaller::with_scopes(&server, "demo-service", "roles");
    let hires = service.request(Method::GET, &format!("{ITEM}.jpg"), None);
    assert_eq!(hires.status(), 200);
    let admin = ApiCaller::bearer(&server, &tokens::admin(&server));
    let id = admin.orders()[0].id;
    let refused = service.report(id, Some(LICENCE)).unwrap_err();
    assert_eq!(refused.summary(), "403 service_account_unsupported headers");
    let order = admin.ask(&LoadOrder { id }).unwrap();
    assert!(order.reported.is_none() && order.approved.is_none(), "{order:?}");
}

#[test]
fn an_order_that_administrators_approve_is_not_approved_by_its_buyer() {
    let server = Server::demo();
    import(
        &server,
        &json!({
            "agreements": [{
                "id": 1003, "organization": 2, "type": "Direct", "products": ["FOTO"],
                "name": "Demo direct", "approver": "admin",
            }],
            "users": [{
                "userName": "chief", "password": "chief-password", "organization": 2,
                "access": { "admin": true }, "agreements": [1003],
            }],
        }),
    );
    let buyer = ApiCaller::key(&server, BUYER_KEY);
    let status = || buyer.request(Method::GET, &format!("{ITEM}.jpg?agr=1003"), None).status();
    assert_eq!(status(), 403);
    let order = buyer.orders().remove(0);
    assert_eq!(order.price.agreement.approver, Some(OrderApprover::Admin));
    let refused = buyer.report(order.id, Some(LICENCE)).unwrap_err();
    assert_eq!(refused.summary(), "403 admin_required headers");
    assert_eq!(status(), 403, "nothing is delivered");
    let list = ["audit", "list", "--json", "--action", "order_reported", "--outcome", "refused"];
    let recorded = String::from_utf8(server.command(&list).stdout).unwrap();
    assert!(recorded.contains("\"detail\":\"admin_required\""), "{recorded}");
    let page =
        Person::log_in(&server, "demo-buyer").page(&format!("/account/orders/{}", order.id));
    assert!(page.contains("Only administrators of your organization can approve"), "{page}");
    // The page offers an approval only to users who may give it.
    let approval = "id=\"approve-yes\"";
    assert!(!page.contains(approval) && page.contains(">Reject<"), "{page}");
    let chief = Person::log_in(&server, "chief");
    let page = chief.page(&format!("/account/orders/{}", order.id));
    assert!(page.contains(approval), "{page}");
    ApiCaller::login(&server, "chief").report(order.id, Some(LICENCE)).unwrap();
    assert_eq!(status(), 200);
    // Administrators neither approve their own orders nor approve without the scope.
    let chief = ApiCaller::login(&server, "chief");
    let path = "/media/image/demo-bridge-cables.jpg?agr=1003";
    assert_eq!(chief.request(Method::GET, path, None).status(), 403);
    let own = chief.orders().remove(0).id;
    let refused = chief.report(own, Some(LICENCE)).unwrap_err();
    assert_eq!(refused.summary(), "403 second_person_required headers");
    let page = Person::log_in(&server, "chief").page(&format!("/account/orders/{own}"));
    assert!(!page.contains(approval) && page.contains("and not their own"), "{page}");
    let without_scope = ApiCaller::with_scopes(&server, "chief", "roles");
    let refused = without_scope.report(own, Some(LICENCE)).unwrap_err();
    assert_eq!(refused.summary(), "403 insufficient_scope headers");
    // The user who ordered can still report the item as unused.
    let other = "/media/image/demo-urtavla.jpg?agr=1003";
    assert_eq!(buyer.request(Method::GET, other, None).status(), 403);
    let place = Person::log_in(&server, "demo-buyer")
        .done(&format!("/account/orders/{}", buyer.orders()[0].id), &[("approve", "no")]);
    assert_eq!(place, "/account/orders?done=rejected");
}

#[test]
fn read_only_credentials_change_order_deliver_and_take_nothing() {
    let server = Server::demo();
    let added = server.command(&["key", "add", "demo-editor", "--name", "wall", "--read-only"]);
    let key = String::from_utf8(added.stdout).unwrap().trim().to_owned();
    let add = ["client", "add", "wall", "--read-only", "--grant", "password"];
    let secret = String::from_utf8(server.command(&add).stdout).unwrap().trim().to_owned();
    let form = [
        ("grant_type", "password"),
        ("client_id", "wall"),
        ("client_secret", secret.as_str()),
        ("username", "demo-editor"),
        ("password", "demo-editor-password"),
        ("scope", "roles profile"),
    ];
    let set: Value = server.post_form("/o/oauth2/token", &form).json().unwrap();
    let new = KeyCreate { name: "own wall".to_owned(), read_only: true };
    let own = ApiCaller::login(&server, "demo-editor").send(&CreateKey {}, &new).unwrap();
    assert!(own.read_only);
    let owner = ApiCaller::key(&server, DEMO_KEY);
    let stream = make(&server, &stream(None, "isbrytare"));
    let stream = format!("/content/v1/_all/notification/{stream}/stream?wait=1");
    let delivery = format!("{ITEM}?channel=user:demo-editor:demo-folder");
    let hires = format!("{ITEM}.jpg");
    let token = set["access_token"].as_str().unwrap();
    let keys = [&key, &own.key].map(|key| ApiCaller::key(&server, key));
    for reader in keys.into_iter().chain([ApiCaller::bearer(&server, token)]) {
        let status = |method: Method, path: &str| reader.request(method, path, None).status();
        for path in ["/content/v1/image/search?s=0", "/user/v1/order", &format!("{ITEM}.json")] {
            assert_eq!(status(Method::GET, path), 200, "{path}");
        }
        for path in [&hires, &delivery, &stream] {
            let refused = reader.request(Method::GET, path, None);
            assert_eq!(refused.status(), 403, "{path}");
            assert_eq!(code_of(&refused.json().unwrap()), "read_only", "{path}");
        }
        assert_eq!(status(Method::HEAD, &hires), 403);
        for (method, path) in [(Method::PUT, "/user/v1/profile"), (Method::POST, "/user/v1/key")] {
            assert_eq!(status(method, path), 403, "{path}");
        }
    }
    assert!(owner.orders().is_empty(), "nothing was ordered");
    // What is bought already costs nothing.
    assert_eq!(owner.request(Method::GET, &hires, None).status(), 200);
    let reader = ApiCaller::key(&server, &key);
    assert_eq!(reader.request(Method::GET, &hires, None).status(), 200);
    let listed =
        String::from_utf8(server.command(&["key", "list", "demo-editor"]).stdout).unwrap();
    assert!(listed.contains("enabled, read-only"), "{listed}");
}

/// The scope that a call needs besides `roles`.
#[derive(Clone, Copy, Debug)]
enum Needed {
    Nothing,
    /// This scope, for clients with enforced scopes.
    Enforced(&'static str),
    /// This scope, for every client.
    Always(&'static str),
    /// More than one scope.
    Several,
}

use Needed::{Always, Enforced, Nothing, Several};

const CHANNEL: &str = r#"{"method":"download","formats":[".json"]}"#;
const NAMED: &str = r#"{"name":"x"}"#;
const ITEMS: &str = r#"[{"uri":"http://a.example/media/image/demo-trollslanda"}]"#;

/// Calls of the APIs: their bodies, the scope that each needs, and the status when it is allowed.
const CALLS: [(&str, &str, &str, Needed, u16); 32] = [
    ("GET", "/content/v1/image/search?s=0", "", Nothing, 200),
    ("GET", "/user/v1/user", "", Nothing, 200),
    ("GET", "/user/v1/agreement", "", Nothing, 200),
    ("GET", "/user/v1/order", "", Nothing, 200),
    ("GET", "/user/v1/delivery", "", Nothing, 200),
    ("GET", "/content/v1/image/notification", "", Nothing, 200),
    ("GET", "/user/v1/profile", "", Enforced("profile"), 200),
    ("PUT", "/user/v1/profile", "{}", Enforced("profile"), 200),
    ("GET", "/user/v1/device", "", Enforced("profile"), 200),
    ("PUT", "/user/v1/device/token-1?type=ios&model=x", "", Enforced("profile"), 200),
    ("DELETE", "/user/v1/device/token-1", "", Enforced("profile"), 200),
    ("GET", "/user/v1/channel", "", Enforced("profile"), 200),
    ("PUT", "/user/v1/channel/mine", CHANNEL, Always("profile"), 200),
    ("DELETE", "/user/v1/channel/mine", "", Always("profile"), 200),
    ("POST", "/user/v1/channel/none/test", "", Enforced("profile"), 404),
    ("GET", "/user/v1/key", "", Enforced("profile"), 200),
    ("DELETE", "/user/v1/key/999999", "", Always("profile"), 404),
    ("POST", "/user/v1/key", NAMED, Several, 200),
    ("POST", "/content/v1/image/notification/stream?q=nothing", "", Enforced("profile"), 200),
    ("PUT", NOTIFICATION_STREAM, "", Enforced("profile"), 404),
    ("PUT", NOTIFICATION_EMAIL, "", Enforced("profile"), 404),
    ("DELETE", NOTIFICATION, "", Enforced("profile"), 404),
    ("GET", "/collection/v1/collection", "", Enforced("collection"), 200),
    ("POST", "/collection/v1/collection", NAMED, Enforced("collection"), 200),
    ("GET", COLLECTION, "", Enforced("collection"), 404),
    ("PUT", COLLECTION, NAMED, Enforced("collection"), 404),
    ("DELETE", COLLECTION, "", Enforced("collection"), 404),
    ("POST", COLLECTION_ITEMS, ITEMS, Enforced("collection"), 404),
    ("DELETE", COLLECTION_ITEMS, ITEMS, Enforced("collection"), 404),
    ("GET", COLLECTION_ZIP, "", Enforced("collection"), 404),
    ("GET", "/user/v1/organization", "", Enforced("customer"), 200),
    ("GET", "/user/v1/organization/user", "", Always("admin"), 200),
];

/// Objects that do not exist: a missing scope is reported before the object is looked up.
const NOTIFICATION: &str = "/content/v1/image/notification/00000000-0000-4000-8000-000000000000";
const NOTIFICATION_STREAM: &str =
    "/content/v1/image/notification/00000000-0000-4000-8000-000000000000/stream?q=nothing&title=x";
const NOTIFICATION_EMAIL: &str = "/content/v1/image/notification/\
    00000000-0000-4000-8000-000000000000/email?q=nothing&title=x&email=demo-admin@demo-desk.example";
const COLLECTION: &str = "/collection/v1/collection/00000000-0000-4000-8000-000000000000";
const COLLECTION_ITEMS: &str =
    "/collection/v1/collection/00000000-0000-4000-8000-000000000000/items";
const COLLECTION_ZIP: &str = "/collection/v1/collection/00000000-0000-4000-8000-000000000000/zip";

#[test]
fn a_token_is_limited_to_the_scopes_of_its_kind_of_client() {
    let server = Server::demo();
    import(&server, &clients());
    for client in ["wide", "enforced"] {
        for more in ["", "profile", "collection", "customer", "admin"] {
            let scope = format!("roles {more}");
            let bearer = access(&token_set(&server, client, "demo-admin", scope.trim()));
            for (method, path, body, needed, allowed) in CALLS {
                let body = (!body.is_empty()).then(|| serde_json::from_str(body).unwrap());
                let (status, answer) = call(&server, &bearer, method, path, body.as_ref());
                let what = format!("{client} with `{scope}`: {method} {path}");
                let lacking = match needed {
                    Enforced(needed) if needed != more && client == "enforced" => needed,
                    Always(needed) if needed != more => needed,
                    Several => "",
                    Nothing | Enforced(_) | Always(_) => {
                        assert_eq!(status, allowed, "{what}: {answer}");
                        continue;
                    }
                };
                assert_eq!((status, code_of(&answer)), (403, "insufficient_scope"), "{what}");
                let message = answer["message"].as_str().unwrap_or_default();
                assert!(message.ends_with(lacking), "{what}: {message}");
            }
        }
    }
}

#[test]
fn a_token_without_the_scopes_reveals_no_names_addresses_or_orders_of_others() {
    let server = Server::demo();
    import(&server, &clients());
    let editor = tokens::password(&server, "demo-editor", "demo-editor-password", "roles");
    let bearer = format!("Bearer {editor}");
    let hires = server.get_with(&format!("{ITEM}.jpg"), &[("authorization", &bearer)]);
    assert_eq!(hires.status(), 200);
    let look = |client: &str, scope: &str| {
        let bearer = access(&token_set(&server, client, "demo-admin", scope));
        let get = |path: &str| call(&server, &bearer, "GET", path, None).1;
        (get("/user/v1/user"), get("/user/v1/order"))
    };
    let optional = ["emailAddress", "firstName", "lastName", "department", "customerId"];
    let names = |user: &Value| -> Vec<&str> {
        optional.into_iter().filter(|name| user.get(name).is_some()).collect()
    };
    let (user, orders) = look("wide", "roles");
    assert_eq!(names(&user), optional);
    assert_eq!(orders["orders"].as_array().unwrap().len(), 1);
    let (user, orders) = look("enforced", "roles");
    assert_eq!(names(&user), [] as [&str; 0]);
    for name in ["id", "userName", "phoneNumber", "agreements", "access", "active"] {
        assert!(user.get(name).is_some(), "{name} is required");
    }
    assert_eq!(user["phoneNumber"], json!({}));
    assert_eq!(orders["orders"], json!([]));
    // Nor by its number, which can be guessed.
    let (_, orders) = look("wide", "roles");
    let id = orders["orders"][0]["id"].as_i64().unwrap();
    let roles = |client: &str| {
        let token = access(&token_set(&server, client, "demo-admin", "roles"));
        ApiCaller::bearer(&server, &token)
    };
    let enforced = roles("enforced");
    assert_eq!(enforced.ask(&LoadOrder { id }).unwrap_err().status, 404);
    assert_eq!(enforced.report(id, None).unwrap_err().status, 404);
    let wide = roles("wide");
    wide.ask(&LoadOrder { id }).unwrap();
    wide.report(id, None).unwrap();
    let (user, _) = look("enforced", "roles email");
    assert_eq!(names(&user), ["emailAddress"]);
    let (user, _) = look("enforced", "roles user customer");
    assert_eq!(names(&user), ["firstName", "lastName", "department", "customerId"]);
    let (_, orders) = look("enforced", "roles admin");
    assert_eq!(orders["orders"].as_array().unwrap().len(), 1);
    let set = token_set(&server, "enforced", "demo-admin", "roles");
    assert_eq!(set["expires_in"], 600);
    assert_eq!(token_set(&server, "wide", "demo-admin", "roles")["expires_in"], 604_800);
}

/// The authorization endpoint's response to a browser with that cookie.
fn authorization(server: &Server, editor: &Editor<'_>, changes: &[(&str, &str)]) -> (u16, String) {
    let path = format!("/o/oauth2/auth?{}", request(changes));
    let response = server.get_with(&path, &[("cookie", &editor.cookie)]);
    let status = response.status().as_u16();
    let location = response.headers().get(LOCATION).map(|to| to.to_str().unwrap().to_owned());
    (status, location.unwrap_or_else(|| response.text().unwrap()))
}

#[test]
fn consent_shows_everything_that_the_scopes_allow() {
    let server = Server::demo();
    import(&server, &clients());
    let editor = Editor::log_in(&server);
    let page = |client: &str, scope: &str| {
        let (status, page) =
            authorization(&server, &editor, &[("client_id", client), ("scope", scope)]);
        assert_eq!(status, 200, "{page}");
        page
    };
    let money = "approve them under a licence, which can cost money";
    let wide = page("wide", "roles");
    for text in [money, "your collections", "your profile", "e-mail and push messages", "e-mail"] {
        assert!(wide.contains(text), "{text} is not in {wide}");
    }
    assert!(!wide.contains("users of your organization"), "the editor is no administrator");
    let narrow = page("enforced", "roles");
    assert!(narrow.contains(money));
    for text in ["your collections", "your profile", "e-mail and push messages"] {
        assert!(!narrow.contains(text), "{text} is in {narrow}");
    }
    assert!(page("enforced", "roles collection").contains("your collections"));
}

#[test]
fn a_public_client_without_https_gets_no_code_without_a_click() {
    let server = Server::demo();
    let editor = Editor::log_in(&server);
    let silent = [("client_id", "demo-app"), ("prompt", "none")];
    let location = editor.authorize(&request(&[("client_id", "demo-app")]));
    assert!(query_of(&location, "code").is_some(), "{location}");
    let (status, location) = authorization(&server, &editor, &silent);
    assert_eq!(status, 303);
    assert_eq!(query_of(&location, "error").as_deref(), Some("consent_required"));
    // A confidential client gets one without.
    editor.authorize(&request(&[]));
    let (_, location) = authorization(&server, &editor, &[("prompt", "none")]);
    assert!(query_of(&location, "code").is_some(), "{location}");
}

#[test]
fn consent_to_a_code_puts_no_token_in_a_url() {
    let server = Server::demo();
    import(&server, &clients());
    let editor = Editor::log_in(&server);
    let code = [("client_id", "wide"), ("scope", "roles")];
    assert!(query_of(&editor.authorize(&request(&code)), "code").is_some());
    let token = [
        code[0],
        code[1],
        ("response_type", "token"),
        ("prompt", "none"),
        ("code_challenge", ""),
        ("code_challenge_method", ""),
    ];
    let (status, location) = authorization(&server, &editor, &token);
    assert_eq!(status, 303);
    assert!(location.contains("error=consent_required"), "{location}");
    assert!(!location.contains("access_token"));
}

#[test]
fn an_old_login_cannot_create_keys_users_or_channels() {
    let server = Server::demo();
    let admin = Person::log_in(&server, "demo-admin");
    let key = [("name", "fresh")];
    assert_eq!(admin.post("/account/keys", &key).status(), StatusCode::OK);
    let age = "UPDATE sessions SET auth_ms = auth_ms - 3601000;
        INSERT INTO account_log (kind, id, at_ms) VALUES ('everything', '', 0)";
    match postgres::url_of(server.dir.path()) {
        Some(url) => drop(postgres::run(&url, age)),
        None => {
            let database = rusqlite::Connection::open(server.data().join("wirephoto.db")).unwrap();
            database.execute_batch(age).unwrap();
        }
    }
    let asked = |page: &str| page.contains("Enter your password again");
    server.until("the login to be old", || asked(&admin.page("/account/users/new")).then_some(()));
    let user = [("emailAddress", "a@demo-desk.example"), ("firstName", "A"), ("lastName", "B")];
    let channel = [("name", "x"), ("method", "download"), ("format", ".json"), ("active", "on")];
    let changed = [("emailAddress", "b@demo-desk.example"), ("firstName", "A"), ("lastName", "B")];
    for (path, fields) in [
        ("/account/keys", key.as_slice()),
        ("/account/users/new", &user),
        ("/account/users/101", &changed),
        ("/account/channels/edit", &channel),
    ] {
        let page = admin.post(path, fields).text().unwrap();
        assert!(asked(&page) && page.contains("kept_fields"), "{path}: {page}");
    }
    let api = ApiCaller::login(&server, "demo-admin");
    assert_eq!(api.ask(&ListKeys {}).unwrap().len(), 1);
    assert!(api.ask(&ListChannels {}).unwrap().is_empty());
    assert_eq!(api.ask(&ListOrganizationUsers {}).unwrap().len(), 3);
    // Other pages and the APIs do not ask for a new login.
    assert!(!asked(&admin.page("/account/orders")));
}

#[test]
fn a_user_whose_device_is_registered_by_another_gets_a_mail() {
    let server = Server::demo();
    let buyer = ApiCaller::key(&server, BUYER_KEY);
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let device = RegisterDevice {
        token: "phone-1".to_owned(),
        kind: DeviceKind::Android,
        name: Some("Work".to_owned()),
        model: "Phone".to_owned(),
    };
    for owner in [&buyer, &editor, &editor] {
        owner.ask(&device).unwrap();
    }
    assert!(buyer.ask(&ListDevices {}).unwrap().is_empty(), "it moved");
    let outbox = server.data().join("outbox");
    let mails = || {
        let entries = std::fs::read_dir(&outbox).ok()?.flatten();
        let read = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path()).ok();
        let entries = entries.filter(|one| one.path().extension().is_some_and(|end| end == "eml"));
        let found: Vec<String> = entries.filter_map(read).collect();
        (!found.is_empty()).then_some(found)
    };
    let found = server.until("the mail", mails);
    assert_eq!(found.len(), 1, "registering again moves nothing");
    assert!(found[0].contains("demo-buyer@demo-agency.example"), "{}", found[0]);
    assert!(!found[0].contains("phone-1") && !found[0].contains("demo-editor"), "{}", found[0]);
}

#[test]
fn an_administrator_claims_no_user_names_outside_the_domains_of_the_organization() {
    let server = Server::demo();
    let organization =
        json!({ "id": 1, "name": "Demo desk", "mailDomains": ["demo-desk.example"] });
    import(&server, &json!({ "organizations": [organization] }));
    let admin = ApiCaller::bearer(&server, &tokens::admin(&server));
    let create =
        |address: &str| admin.send(&CreateOrganizationUser {}, &new_user(address, "A", "B"));
    let change = |id: i64, address: &str| {
        let email_address = Some(address.to_owned());
        let update = UserUpdate { email_address, ..UserUpdate::default() };
        admin.send(&UpdateOrganizationUser { id }, &update)
    };
    let foreign = |refusal: Refusal| {
        assert_eq!(refusal.summary(), "400 mailDomain_not_allowed body emailAddress");
    };
    for address in [
        "new@demo-agency.example",
        "demo-buyer@demo-agency.example",
        "x@sub.demo-desk.example",
        "x@demo-desk.example.net",
    ] {
        foreign(create(address).unwrap_err());
    }
    let id = create("New@Demo-Desk.example").unwrap().base.id;
    foreign(change(id, "new@demo-agency.example").unwrap_err());
    change(id, "other@demo-desk.example").unwrap();
}

#[test]
fn user_name_probing_by_an_administrator_is_rate_limited() {
    let server = Server::demo();
    let admin = tokens::admin(&server);
    let body =
        json!({ "emailAddress": "taken@demo-desk.example", "firstName": "A", "lastName": "B" });
    let probe = || {
        let request = server.client.post(format!("{}/user/v1/organization/user", server.url));
        let request = request.header("authorization", format!("Bearer {admin}"));
        request.header("content-type", "application/json").body(body.to_string()).send().unwrap()
    };
    assert_eq!(probe().status(), 200);
    for attempt in 2..=100 {
        assert_eq!(probe().status(), 400, "{attempt}");
    }
    let limited = probe();
    assert_eq!(limited.status(), 503);
    let wait: u32 = limited.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=3601).contains(&wait), "{wait}");
}

#[test]
fn a_stolen_signing_key_is_replaced_without_a_restart_and_without_ending_tokens() {
    let server = Server::demo();
    import(&server, &clients());
    let kid = || {
        let set = token_set(&server, "wide", "demo-editor", "openid roles");
        let head = set["id_token"].as_str().unwrap().split('.').next().unwrap().to_owned();
        let bytes =
            base64::Engine::decode(&base64::prelude::BASE64_URL_SAFE_NO_PAD, head).unwrap();
        let head: Value = serde_json::from_slice(&bytes).unwrap();
        head["kid"].as_str().unwrap().to_owned()
    };
    let published = || -> Vec<String> {
        let set: Value = server.get("/o/oauth2/keys").json().unwrap();
        let keys = set["keys"].as_array().unwrap();
        keys.iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
    };
    let old = kid();
    assert_eq!(published(), [old.as_str()]);
    let output = server.command(&["signing-key", "rotate", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let new = said["kid"].as_str().unwrap().to_owned();
    server.until("the new key to be published", || (published().len() == 2).then_some(()));
    assert_eq!(kid(), new);
    assert_eq!(published(), [new.as_str(), old.as_str()], "the old one verifies its tokens");
    let listed = server.command(&["signing-key", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&listed[0]["kid"], &listed[0]["retired"]), (&json!(new), &Value::Null));
    assert!(listed[1]["publishedUntil"].is_string(), "{listed}");
}

#[test]
fn a_user_reaches_nothing_of_another_organization() {
    let server = Server::demo();
    let editor = ApiCaller::login(&server, "demo-editor");
    let id = editor.collect("x", false, &[]);
    let stream = make(&server, &stream(Some(MediaType::Image), "x"));
    let key = editor.ask(&ListKeys {}).unwrap()[0].id;
    assert_eq!(editor.request(Method::GET, &format!("{ITEM}.jpg"), None).status(), 200);
    let order = editor.orders()[0].id;
    let buyer = ApiCaller::login(&server, "demo-buyer");
    let items = json!([{ "uri": format!("{}{ITEM}", server.url) }]);
    let report = json!({ "approve": false });
    let named = json!({ "name": "y" });
    let collection = format!("/collection/v1/collection/{id}");
    let stream = format!("/content/v1/image/notification/{stream}");
    for (method, path, body) in [
        (Method::GET, collection.clone(), None),
        (Method::PUT, collection.clone(), Some(&named)),
        (Method::DELETE, collection.clone(), None),
        (Method::POST, format!("{collection}/items"), Some(&items)),
        (Method::DELETE, format!("{collection}/items"), Some(&items)),
        (Method::GET, format!("{collection}/zip"), None),
        (Method::GET, format!("{stream}/stream?wait=1"), None),
        (Method::PUT, format!("{stream}/stream?title=t"), None),
        (Method::DELETE, stream.clone(), None),
        (Method::GET, format!("/user/v1/order/{order}"), None),
        (Method::PUT, format!("/user/v1/order/{order}"), Some(&report)),
        (Method::DELETE, format!("/user/v1/key/{key}"), None),
        (Method::PUT, "/user/v1/organization/user/101".to_owned(), Some(&named)),
        (Method::GET, "/user/v1/organization/user/101".to_owned(), None),
        (Method::GET, format!("{ITEM}.zip?channel=user:demo-editor:demo-download"), None),
        (Method::GET, format!("{ITEM}?channel=user:demo-editor:demo-download&agr=1002"), None),
    ] {
        let status = buyer.request(method.clone(), &path, body).status().as_u16();
        assert!([403, 404].contains(&status), "{method} {path}: {status}");
    }
    assert_eq!(editor.ask(&LoadCollection { id }).unwrap().collection.head.name, "x");
    assert_eq!(editor.ask(&ListKeys {}).unwrap()[0].id, key);
    assert_eq!(editor.ask(&LoadOrder { id: order }).unwrap().reported, None);
}

#[test]
fn an_administrator_sets_no_properties_beyond_those_of_the_contract() {
    let server = Server::demo();
    let admin = tokens::admin(&server);
    for (name, value) in [
        ("roles", json!(["ROLE_PROVIDER"])),
        ("organization", json!(2)),
        ("customerId", json!(2)),
        ("agreements", json!([1002])),
        ("password", json!("secret-password")),
        ("active", json!(true)),
        ("userName", json!("root")),
        ("serviceAccount", json!(true)),
        ("id", json!(1)),
        ("access", json!({ "provider": true })),
    ] {
        let mut body =
            json!({ "emailAddress": "m@demo-desk.example", "firstName": "A", "lastName": "B" });
        body[name] = value.clone();
        let users = "/user/v1/organization/user";
        assert_eq!(call(&server, &admin, "POST", users, Some(&body)).0, 400, "{name}");
        let change = json!({ name: value });
        let path = format!("{users}/101");
        assert_eq!(call(&server, &admin, "PUT", &path, Some(&change)).0, 400, "{name}");
    }
}

#[test]
fn a_code_exchanged_twenty_times_concurrently_gives_one_token_set_that_is_revoked() {
    let server = Server::demo();
    let editor = Editor::log_in(&server);
    let code = query_of(&editor.authorize(&request(&[])), "code").expect("a code");
    let form = crate::oauth::code_form(&code);
    let sets: Vec<Value> = std::thread::scope(|scope| {
        let exchange = || {
            let response = token(&server, &form);
            (response.status() == 200).then(|| response.json::<Value>().unwrap())
        };
        let tries: Vec<_> = (0..20).map(|_| scope.spawn(exchange)).collect();
        tries.into_iter().filter_map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(sets.len(), 1);
    let bearer = format!("Bearer {}", access(&sets[0]));
    let user = server.get_with("/o/v2/user", &[("authorization", &bearer)]);
    assert_eq!(user.status(), 401, "a code that was used again ends what it gave");
}
