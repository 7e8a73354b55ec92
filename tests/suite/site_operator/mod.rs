//! The pages and the API of operators: who gets them, what they show, what operators do there.

mod failed_work;
mod records;
mod statistics;

use api::organization::{SendPasswordLink, UpdateOrganizationUser, UserUpdate};
use reqwest::{Method, StatusCode, header::LOCATION};
use serde_json::{Value, json};

use crate::common::{DEMO_KEY, Server, api::ApiCaller, browser::Browser, tokens};
use crate::deliveries::run;
use crate::site_account::Person;

/// The user with the role of operators in the demo accounts.
const OPERATOR: &str = "demo-operator";

const PAGES: [&str; 7] = [
    "/operator",
    "/operator/deliveries",
    "/operator/messages",
    "/operator/ingest",
    "/operator/searches",
    "/operator/downloads",
    "/operator/downloads.csv",
];

const CALLS: [&str; 7] = [
    "/operator/v1/status",
    "/operator/v1/delivery",
    "/operator/v1/message",
    "/operator/v1/ingest-error",
    "/operator/v1/slow-search",
    "/operator/v1/download",
    "/operator/v1/download.csv",
];

/// The main part of the page that a browser shows.
fn shown(browser: &Browser) -> String {
    browser.text("document.querySelector('main').innerText")
}

/// Checks the page in both languages, at every width and in both colour schemes; returns to English.
fn check_in_both_languages(browser: &Browser, name: &str) {
    browser.check_appearance(name);
    browser.follow("form.language button");
    assert_eq!(browser.text("document.documentElement.lang"), "sv", "{name}");
    browser.check_appearance(&format!("{name}-sv"));
    browser.follow("form.language button");
    assert_eq!(browser.text("document.documentElement.lang"), "en", "{name}");
}

/// The events of that action in the audit log, newest first.
fn audited(server: &Server, action: &str) -> Vec<Value> {
    let (listed, _) = run(server, &["audit", "list", "--json", "--action", action], 0);
    listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A call that changes something.
struct Change {
    method: Method,
    path: &'static str,
}

/// Every call of the API that changes something; the ids do not exist.
fn changes() -> [Change; 5] {
    const DELIVERY: &str = "/operator/v1/delivery/0198c5e2-0000-7000-8000-000000000001";
    const MESSAGE: &str = "/operator/v1/message/0198c5e2-0000-7000-8000-000000000001";
    [
        Change { method: Method::POST, path: "/operator/v1/delivery" },
        Change { method: Method::POST, path: DELIVERY },
        Change { method: Method::POST, path: "/operator/v1/message" },
        Change { method: Method::POST, path: MESSAGE },
        Change { method: Method::DELETE, path: MESSAGE },
    ]
}

#[test]
fn only_operators_get_the_pages() {
    let server = Server::demo();
    for path in PAGES {
        let response = server.get(path);
        assert_eq!(response.status(), 303, "{path}");
        let location = response.headers()[LOCATION].to_str().unwrap().to_owned();
        assert!(location.starts_with("/o/login?"), "{path}: {location}");
    }
    for user in ["demo-editor", "demo-admin", "demo-buyer"] {
        let person = Person::log_in(&server, user);
        for path in PAGES {
            let response = person.get(path);
            assert_eq!(response.status(), 403, "{user} {path}");
            let page = response.text().unwrap();
            assert!(page.contains("For operators only"), "{user} {path}: {page}");
        }
        for path in ["/operator/deliveries", "/operator/messages"] {
            let response = person.post(path, &[("do", "retry")]);
            assert_eq!(response.status(), 403, "{user} {path}");
        }
        assert!(!person.page("/account").contains("href=\"/operator\""), "{user}");
    }
    let operator = Person::log_in(&server, OPERATOR);
    for path in PAGES {
        assert_eq!(operator.get(path).status(), 200, "{path}");
    }
    assert!(operator.page("/account").contains("href=\"/operator\""));
    assert_eq!(operator.post("/operator/messages", &[("do", "sing")]).status(), 400);
}

#[test]
fn only_operators_get_the_api() {
    let server = Server::demo();
    let editor_key = ApiCaller::key(&server, DEMO_KEY);
    let admin = ApiCaller::login(&server, "demo-admin");
    for path in CALLS {
        assert_eq!(server.get(path).status(), 401, "{path}");
    }
    let again = json!({ "again": true });
    for caller in [&editor_key, &admin] {
        let gets = CALLS.map(|path| Change { method: Method::GET, path });
        for Change { method, path } in gets.into_iter().chain(changes()) {
            let refusal = caller.refused(method, path, Some(&again));
            assert_eq!(refusal.summary(), "403 operator_required headers", "{path}");
        }
    }
    let operator = ApiCaller::login(&server, OPERATOR);
    for path in CALLS {
        assert_eq!(operator.request(Method::GET, path, None).status(), 200, "{path}");
    }
    let answers = [(202, Some(0)), (404, None), (202, Some(0)), (404, None), (404, None)];
    for (Change { method, path }, (status, queued)) in changes().into_iter().zip(answers) {
        let response = operator.request(method, path, Some(&again));
        assert_eq!(response.status(), status, "{path}");
        let body: Value = response.json().unwrap();
        assert_eq!(body["queued"].as_u64(), queued, "{path}: {body}");
    }
    for body in [json!({}), json!({ "again": false }), json!({ "again": true, "all": true })] {
        let response = operator.request(Method::POST, "/operator/v1/delivery", Some(&body));
        assert_eq!(response.status(), 400, "{body}");
    }
    for query in ["by=hour", "from=soon", "to=2020-01-01&from=2020-01-02", "item=x", "size=-1"] {
        let path = format!("/operator/v1/download?{query}");
        assert_eq!(operator.request(Method::GET, &path, None).status(), 400, "{query}");
    }
}

#[test]
fn the_role_is_given_and_taken_away_by_a_command_and_recorded() {
    let server = Server::demo();
    let buyer = Person::log_in(&server, "demo-buyer");
    let own = || ApiCaller::login(&server, "demo-buyer").json("/user/v1/user");
    let before = own();
    let (_, said) = run(&server, &["user", "role", "demo-buyer", "--add", "ROLE_OPERATOR"], 0);
    assert!(said.contains("ROLE_OPERATOR"), "{said}");
    let opens = |status: u16| {
        server.until("the role to count", || {
            (buyer.get("/operator").status() == StatusCode::from_u16(status).unwrap())
                .then_some(())
        });
    };
    opens(200);
    assert_eq!(own(), before, "the User object has no property about it");
    run(&server, &["user", "role", "demo-buyer", "--remove", "ROLE_OPERATOR"], 0);
    opens(403);
    run(&server, &["user", "role", "no-such-user", "--add", "ROLE_OPERATOR"], 1);
    run(&server, &["user", "role", "demo-buyer"], 2);
    let file = server.dir.path().join("more.json");
    let user = json!({ "userName": "demo-buyer", "organization": 2, "roles": ["ROLE_OPERATOR"] });
    std::fs::write(&file, json!({ "users": [user] }).to_string()).unwrap();
    run(&server, &["import", &file.to_string_lossy()], 0);
    opens(200);
    let events = audited(&server, "roles_changed");
    let of_buyer = events.iter().filter(|event| event["object"] == "user/103");
    let done = of_buyer.filter(|event| event["outcome"] == "done");
    let signs: Vec<bool> =
        done.map(|event| event["detail"].as_str().unwrap().contains("+ROLE_OPERATOR")).collect();
    assert_eq!(signs, [true, false, true], "{events:?}");
    assert!(events.iter().all(|event| event["credential"] == "command_line"), "{events:?}");
}

/// A change of a user's e-mail address.
fn address_change(address: &str) -> UserUpdate {
    UserUpdate { email_address: Some(address.to_owned()), ..UserUpdate::default() }
}

#[test]
fn giving_a_role_of_the_agency_names_the_address_of_password_links() {
    let server = Server::demo();
    let admin = ApiCaller::login(&server, "demo-admin");
    let address = "mine@demo-desk.example";
    admin.send(&UpdateOrganizationUser { id: 101 }, &address_change(address)).unwrap();
    let command = ["user", "role", "demo-editor"];
    let change = |more: &[&str]| run(&server, &[&command[..], more].concat(), 0);
    for role in ["ROLE_OPERATOR", "ROLE_PROVIDER"] {
        let (_, said) = change(&["--add", role]);
        assert!(said.contains(&format!("new password go to {address}")), "{role}: {said}");
        // The user has it already, or gets one that opens nothing.
        for other in [role, "ROLE_GUEST"] {
            let (_, said) = change(&["--add", other]);
            assert!(!said.contains(address), "{other}: {said}");
        }
        let (said, _) = change(&["--remove", role, "--json"]);
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["emailAddress"], address);
    }
}

#[test]
fn an_administrator_cannot_get_in_as_an_operator() {
    let server = Server::demo();
    run(&server, &["user", "role", "demo-editor", "--add", "ROLE_OPERATOR"], 0);
    let editor = Person::log_in(&server, "demo-editor");
    server.until("the role", || (editor.get("/operator").status() == 200).then_some(()));
    let admin = ApiCaller::login(&server, "demo-admin");
    let update = UpdateOrganizationUser { id: 101 };
    let changed = admin.send(&update, &address_change("mine@demo-desk.example"));
    assert_eq!(changed.unwrap_err().summary(), "403 operator_required headers");
    let sent = admin.ask(&SendPasswordLink { id: 101 });
    assert_eq!(sent.unwrap_err().summary(), "403 operator_required headers");
    let department = Some(Some("Night desk".to_owned()));
    admin.send(&update, &UserUpdate { department, ..UserUpdate::default() }).unwrap();
    assert!(tokens::is_password(&server, "demo-editor", "demo-editor-password"));
}
