//! Account access: invitations, forgotten and changed passwords, a user's active logins and their end; with real
//! mails, a real browser and a client without scripts.

use std::{collections::HashSet, fs, path::Path, thread, time::Instant};

use api::organization::{
    CreateOrganizationUser, ListOrganizationUsers, SendPasswordLink, UpdateOrganizationUser,
    UpdateUserAccess, UserAccessUpdate, UserUpdate,
};
use api::user::{ListKeys, ListSessions, LoadCaller};
use reqwest::{
    Method,
    blocking::Response,
    header::{COOKIE, LOCATION, SET_COOKIE, USER_AGENT},
};
use serde_json::{Value, json};

use crate::common::api::{ApiCaller, new_user};
use crate::common::browser::{Browser, DESKTOP, PHONE};
use crate::common::server::output;
use crate::common::{Server, tokens};
use crate::keys_and_channels::make_key;
use crate::receivers::{PASSWORD, Receiver, python};
use crate::site_account::Person;

const GOOD: &str = "tulips under the bridge";
const BETTER: &str = "a heron on the pier 7";

/// A demo service that sends mails to a mail server.
struct Mailing {
    server: Server,
    receiver: Receiver,
}

impl Mailing {
    fn start() -> Self {
        let receiver = Receiver::start("smtp_server.py", "plain");
        let settings = [
            "mail.host=127.0.0.1".to_owned(),
            format!("mail.port={}", receiver.ready["port"]),
            "mail.tls=none".to_owned(),
            "mail.username=desk".to_owned(),
            format!("mail.password={PASSWORD}"),
            "mail.from=Wire <wire@desk.example>".to_owned(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        Self { server: Server::demo_with(&settings), receiver }
    }

    /// The mail of that number, once it has arrived, with its recipients.
    fn mail(&self, number: usize) -> Value {
        let kept = self.receiver.files().join(format!("{number}.json"));
        let envelope =
            self.server.until("the mail", || fs::read(&kept).ok().filter(|b| !b.is_empty()));
        let mut mail = read(&kept.with_extension("eml"));
        let envelope: Value = serde_json::from_slice(&envelope).unwrap();
        mail["recipients"] = envelope["to"].clone();
        mail
    }

    fn count(&self) -> usize {
        let files = fs::read_dir(self.receiver.files()).unwrap().flatten();
        files.filter(|file| file.path().extension().is_some_and(|end| end == "eml")).count()
    }
}

/// A mail as a reader sees it.
fn read(path: &Path) -> Value {
    serde_json::from_slice(&output(python("read_mail.py").arg(path)).stdout).unwrap()
}

/// The password links in a mail, without duplicates.
fn links(mail: &Value) -> Vec<String> {
    let text = mail["text"].as_str().unwrap();
    let words = text.split_whitespace().filter(|word| word.contains("/o/password/"));
    let mut seen = HashSet::new();
    words.filter(|word| seen.insert(word.to_owned())).map(str::to_owned).collect()
}

/// The visible text of a page.
fn visible_text(browser: &Browser) -> String {
    browser.text("document.body.innerText")
}

/// An unauthenticated visitor who submits a form of `path`.
struct Visitor<'a> {
    server: &'a Server,
    path: String,
    cookie: String,
    csrf: String,
}

impl<'a> Visitor<'a> {
    fn open(server: &'a Server, path: &str) -> Self {
        let response = server.get(path);
        assert_eq!(response.status(), 200, "{path}");
        let lines = response.headers().get_all(SET_COOKIE).iter();
        let mut lines = lines.map(|line| line.to_str().unwrap().to_owned());
        let line = lines.find(|line| line.starts_with("wirephoto_form=")).expect("a form cookie");
        let cookie = line.split(';').next().unwrap().to_owned();
        let page = response.text().unwrap();
        let csrf = page.split("name=\"csrf\" value=\"").nth(1).expect("a form");
        let csrf = csrf.split('"').next().unwrap().to_owned();
        Self { server, path: path.to_owned(), cookie, csrf }
    }

    fn send(&self, fields: &[(&str, &str)]) -> Response {
        let fields = [&[("csrf", self.csrf.as_str())], fields].concat();
        let request = self.server.client.post(format!("{}{}", self.server.url, self.path));
        request.header(COOKIE, &self.cookie).form(&fields).send().unwrap()
    }

    /// Submits a password twice; returns the redirect target, if there is one.
    fn set(&self, password: &str) -> Option<String> {
        let response = self.send(&[("password", password), ("repeated", password)]);
        let location = response.headers().get(LOCATION)?;
        Some(location.to_str().unwrap().to_owned())
    }
}

/// The path of a link.
fn path<'a>(server: &Server, link: &'a str) -> &'a str {
    link.strip_prefix(&server.url).unwrap_or_else(|| panic!("{link} is elsewhere"))
}

/// Returns whether a user can log in with that password.
fn can_log_in(server: &Server, user: &str, password: &str) -> bool {
    tokens::is_password(server, user, password)
}

/// The status of a call with a key.
fn status_of_key(server: &Server, key: &str) -> u16 {
    ApiCaller::key(server, key).ask(&LoadCaller {}).map_or_else(|refusal| refusal.status, |_| 200)
}

fn audit(server: &Server, action: &str) -> Vec<Value> {
    let said = server.command(&["audit", "list", "--action", action, "--json"]);
    let text = String::from_utf8(said.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Fails with the page's text unless the page shows `text`.
#[track_caller]
fn assert_shows(browser: &Browser, text: &str) {
    let shown = visible_text(browser);
    assert!(shown.contains(text), "{text}: {shown}");
}

#[test]
fn an_invited_user_chooses_a_password_from_a_mail_and_logs_in() {
    let mailing = Mailing::start();
    let server = &mailing.server;
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/account/users/new");
    browser.fill("#user-emailAddress", "Ada.Byron@demo-desk.example");
    browser.fill("#user-firstName", "Ada");
    browser.fill("#user-lastName", "Byron");
    assert_shows(&browser, "The user receives an e-mail with a link to choose a password.");
    browser.follow("main button[type=submit]");
    let text = visible_text(&browser);
    assert!(text.contains("An invitation has been sent by e-mail"), "{text}");
    assert!(text.contains("Invited"), "{text}");
    browser.check_appearance("account-users-invited");
    let mail = mailing.mail(0);
    assert_eq!(mail["recipients"], json!(["Ada.Byron@demo-desk.example"]));
    assert_eq!(mail["defects"], json!([]));
    let (text, html) = (mail["text"].as_str().unwrap(), mail["html"].as_str().unwrap());
    for part in ["ada.byron@demo-desk.example", "Choose a password", "Välj ett lösenord"] {
        assert!(text.contains(part) && html.contains(part), "{part}: {text}");
    }
    let [link] = links(&mail).try_into().expect("one link");
    assert!(html.contains(&link));
    // Link scanners of mail programs do not use the link up.
    for _ in 0..2 {
        assert_eq!(server.get(path(server, &link)).status(), 200);
    }
    let phone = Browser::open(PHONE);
    phone.visit(&link);
    assert_shows(&phone, "Welcome, Ada Byron");
    phone.check_appearance("password-invitation");
    phone.check_accessible("the page of an invitation");
    // The language switch stays on the same page.
    phone.follow("form.language button");
    assert_shows(&phone, "Välkommen, Ada Byron");
    phone.follow("form.language button");
    let choose = |password: &str, repeated: &str| {
        phone.fill("#password", password);
        phone.fill("#repeated", repeated);
        phone.follow("main button[type=submit]");
    };
    choose("PasswordPassword", "PasswordPassword");
    assert_shows(&phone, "on a list of leaked passwords");
    choose(GOOD, BETTER);
    assert_shows(&phone, "The passwords do not match.");
    drop(phone.console_messages());
    choose("ada.byron2026!", "ada.byron2026!");
    assert_shows(&phone, "too similar to your name");
    drop(phone.console_messages());
    choose(GOOD, GOOD);
    assert_shows(&phone, "Password saved. Log in with your new password.");
    phone.check_appearance("login-after-password");
    // With capitals and spaces, as people type an address.
    phone.fill("#username", " Ada.Byron@Demo-Desk.example ");
    phone.fill("#password", GOOD);
    phone.follow("main button[type=submit]");
    assert!(phone.address().ends_with('/'), "{}", phone.address());
    // The link works once.
    let used = server.get(path(server, &link));
    assert_eq!(used.status(), 404);
    assert!(used.text().unwrap().contains("This link no longer works"));
    browser.visit(&format!("{}/account/users", server.url));
    assert!(!visible_text(&browser).contains("Invited"), "{}", visible_text(&browser));
    // A user's first browser sends no notice, and neither does accepting an invitation.
    let link_sent = audit(server, "password_link_sent");
    assert_eq!(link_sent.len(), 1, "{link_sent:?}");
    assert_eq!(link_sent[0]["userName"], "demo-admin");
    assert_eq!(audit(server, "password_changed").len(), 1);
    assert_eq!(mailing.count(), 1);
}

#[test]
fn without_a_mail_server_an_administrator_passes_links_on_and_revokes_them() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/account/users/new");
    browser.fill("#user-emailAddress", "grace@demo-desk.example");
    browser.fill("#user-firstName", "Grace");
    browser.fill("#user-lastName", "Person");
    browser.follow("main button[type=submit]");
    let link = browser.text("document.querySelector('.once code').innerText");
    browser.check_appearance("account-user-link");
    browser.follow("main .act a");
    let text = visible_text(&browser);
    assert!(text.contains("Invited. The link is valid until") && !text.contains(&link), "{text}");
    browser.check_appearance("account-user-access");
    browser.check_accessible("the page of an invited user");
    // A new link invalidates the previous one.
    browser.follow("button[value=invite]");
    let second = browser.text("document.querySelector('.once code').innerText");
    assert_ne!(link, second);
    assert_eq!(server.get(path(&server, &link)).status(), 404);
    let invited = Visitor::open(&server, path(&server, &second));
    browser.follow("main .act a");
    browser.follow("button[value=withdraw]");
    assert_shows(&browser, "Link revoked.");
    browser.visit(&format!("{}/account/users", server.url));
    assert_shows(&browser, "No password");
    assert_eq!(invited.set(GOOD), None);
    assert!(!can_log_in(&server, "grace@demo-desk.example", GOOD));
    assert_eq!(audit(&server, "password_link_withdrawn").len(), 1);
    let forgotten = server.get("/o/password").text().unwrap();
    assert!(forgotten.contains("This service does not send e-mail."), "{forgotten}");
    // Users of another organization do not exist for this administrator.
    let admin = ApiCaller::login(&server, "demo-admin");
    let missing = admin.ask(&SendPasswordLink { id: 999_999 });
    assert_eq!(missing.unwrap_err().status, 404);
    let editor = ApiCaller::login(&server, "demo-editor");
    let id = editor.ask(&LoadCaller {}).unwrap().base.id;
    assert_eq!(editor.ask(&SendPasswordLink { id }).unwrap_err().status, 403);
}

#[test]
fn of_many_concurrent_uses_of_a_link_one_sets_the_password() {
    let server = Server::demo();
    let admin = ApiCaller::login(&server, "demo-admin");
    let editor = ApiCaller::login(&server, "demo-editor").ask(&LoadCaller {}).unwrap();
    let address = format!("/user/v1/organization/user/{}/password-link", editor.base.id);
    let sent: Value = admin.request(Method::POST, &address, None).json().unwrap();
    let link = sent["url"].as_str().unwrap().to_owned();
    let strangers: Vec<_> = (0..8).map(|_| Visitor::open(&server, path(&server, &link))).collect();
    let outcomes: Vec<Option<String>> = thread::scope(|scope| {
        let set = |at: usize| {
            let stranger = &strangers[at];
            move || stranger.set(&format!("{GOOD} {at}"))
        };
        let threads: Vec<_> = (0..8).map(|at| scope.spawn(set(at))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let done: Vec<usize> = (0..8).filter(|at| outcomes[*at].is_some()).collect();
    let [winner] = done.as_slice() else { panic!("{outcomes:?}") };
    assert!(can_log_in(&server, "demo-editor", &format!("{GOOD} {winner}")));
    assert!(!can_log_in(&server, "demo-editor", "demo-editor-password"));
}

/// Requests a link; returns the text of the page.
fn request_link(server: &Server, name: &str) -> String {
    let response = Visitor::open(server, "/o/password").send(&[("name", name)]);
    assert_eq!(response.status(), 200, "{name}");
    let page = response.text().unwrap();
    let (_, main) = page.split_once("<main").unwrap();
    main.to_owned()
}

#[test]
fn a_forgotten_password_is_reset_by_mail_without_revealing_accounts() {
    let mailing = Mailing::start();
    let server = &mailing.server;
    // A second user with the same address.
    let admin = ApiCaller::login(server, "demo-admin");
    let editor = ApiCaller::login(server, "demo-editor").ask(&LoadCaller {}).unwrap();
    let address = editor.base.email_address.unwrap();
    let twin = new_user("twin@demo-desk.example", "T", "W");
    let id = admin.send(&CreateOrganizationUser {}, &twin).unwrap().base.id;
    let change = UserUpdate { email_address: Some(address.clone()), ..UserUpdate::default() };
    admin.send(&UpdateOrganizationUser { id }, &change).unwrap();
    mailing.mail(0);
    let known = request_link(server, &address.to_uppercase());
    let unknown = request_link(server, "nobody.at.all@demo-desk.example");
    assert_eq!(known, unknown, "the page tells who is there");
    assert!(
        known.contains("If there is an account with this user name or e-mail address"),
        "{known}"
    );
    let mail = mailing.mail(1);
    assert_eq!(mail["recipients"], json!([address]));
    let text = mail["text"].as_str().unwrap();
    assert!(text.contains("demo-editor") && text.contains("twin@demo-desk.example"), "{text}");
    let both = links(&mail);
    assert_eq!(both.len(), 2, "{text}");
    // By the user name: the link of that user alone.
    request_link(server, "demo-editor");
    let mail = mailing.mail(2);
    let [link] = links(&mail).try_into().expect("one link");
    let token = tokens::password(server, "demo-editor", "demo-editor-password", "roles");
    let bearer = format!("Bearer {token}");
    let with_token = || server.get_with("/user/v1/user", &[("authorization", &bearer)]).status();
    assert_eq!(with_token(), 200);
    let person = Person::log_in(server, "demo-editor");
    assert_eq!(
        Visitor::open(server, path(server, &link)).set(GOOD).unwrap(),
        "/o/login?done=password"
    );
    assert!(can_log_in(server, "demo-editor", GOOD));
    assert!(!can_log_in(server, "demo-editor", "demo-editor-password"));
    assert_eq!(with_token(), 401);
    assert_eq!(person.get("/account").status(), 303, "the session goes on");
    // All links of the user are used up, those of other users are not.
    let used: Vec<u16> =
        both.iter().map(|link| server.get(path(server, link)).status().as_u16()).collect();
    assert!(used.contains(&404) && used.contains(&200), "{used:?}");
    let mail = mailing.mail(3);
    assert!(mail["subject"].as_str().unwrap().contains("has been changed"), "{mail}");
    // Of many requests for one name, only a few send mails.
    for _ in 0..5 {
        request_link(server, "demo-buyer");
    }
    assert_eq!(links(&mailing.mail(6)).len(), 1);
    request_link(server, "demo-admin");
    let mail = mailing.mail(7);
    assert!(mail["text"].as_str().unwrap().contains("demo-admin"), "the fourth one of demo-buyer");
    let asked = audit(server, "password_forgotten");
    assert!(asked.iter().all(|event| !event.to_string().contains("nobody.at.all")), "{asked:?}");
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/o/login", server.url));
    browser.follow("a[href='/o/password']");
    browser.check_appearance("password-forgotten");
    browser.check_accessible("the page of a forgotten password");
    browser.fill("#name", "demo-provider");
    browser.follow("main button[type=submit]");
    browser.check_appearance("password-forgotten-sent");
    assert_shows(&browser, "a link has been sent to it");
}

#[test]
fn a_request_for_a_known_name_takes_as_long_as_one_for_an_unknown_name() {
    let mailing = Mailing::start();
    let server = &mailing.server;
    let ask = |name: &str| {
        let stranger = Visitor::open(server, "/o/password");
        let begun = Instant::now();
        stranger.send(&[("name", name)]);
        begun.elapsed()
    };
    ask("warm-up");
    // Alternating, so that other load on the machine affects both alike.
    let known = ["demo-editor", "demo-buyer", "demo-admin", "demo-provider"];
    let (mut there, mut nowhere) = (Vec::new(), Vec::new());
    for round in 0..12 {
        there.push(ask(known[round % known.len()]));
        nowhere.push(ask(&format!("nobody-{}", round % known.len())));
    }
    there.sort();
    nowhere.sort();
    let (there, nowhere) = (there[6], nowhere[6]);
    assert!(there < nowhere * 5 && nowhere < there * 5, "{there:?} and {nowhere:?}");
}

#[test]
fn a_user_sees_and_ends_its_logins() {
    let mailing = Mailing::start();
    let server = &mailing.server;
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/account/security");
    let other = Person::log_in(server, "demo-editor");
    let mail = mailing.mail(0);
    let subject = mail["subject"].as_str().unwrap();
    assert!(subject.contains("New login"), "{subject}");
    assert!(mail["text"].as_str().unwrap().contains("127.0.0.1"), "{mail}");
    // The same browser sends no second notice.
    tokens::password(server, "demo-editor", "demo-editor-password", "roles");
    browser.visit(&format!("{}/account/security", server.url));
    browser.wait_until_loaded();
    let text = visible_text(&browser);
    for part in ["This browser", "Chrome, Linux", "from 127.0.0.1", "Demo", "API keys"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    browser.check_appearance("account-security");
    browser.check_accessible("the security page");
    let sessions = "document.querySelectorAll('form[action*=\"/sessions/\"]').length";
    assert_eq!(browser.eval(sessions), 2, "one to end, and all others");
    browser.follow("form[action*='/sessions/']:not([action*=others]) button");
    assert_shows(&browser, "Access ended.");
    assert_eq!(other.get("/account").status(), 303, "the ended session goes on");
    // An application that holds a token.
    let applications = "document.querySelectorAll('form[action*=\"/applications/\"]').length";
    assert_eq!(browser.eval(applications), 1);
    browser.follow("form[action$='/applications/end'] button");
    assert_eq!(browser.eval(applications), 0);
    assert_shows(&browser, "No applications have access to your account.");
    // A new key sends a mail; the list says whether it was used.
    let key = make_key(&ApiCaller::login(server, "demo-editor"), "Layout").key;
    let mail = mailing.mail(1);
    assert!(mail["text"].as_str().unwrap().contains("Layout"), "{mail}");
    let program = ApiCaller::key(server, &key);
    assert_eq!(program.ask(&LoadCaller {}).unwrap().base.user_name, "demo-editor");
    server.until("the use of the key to be written", || {
        let keys = program.ask(&ListKeys {}).unwrap();
        keys.into_iter().find(|key| key.name == "Layout").unwrap().used
    });
    // Changing the password again ends all logins; keys on request.
    browser.visit(&format!("{}/account/security", server.url));
    let change = |old: &str, new: &str| {
        browser.fill("#old", old);
        browser.fill("#password", new);
        browser.fill("#repeated", new);
        browser.click("#end-keys");
        browser.follow("form[action$='/security/password'] button");
    };
    change("wrong", GOOD);
    assert_shows(&browser, "The current password is wrong.");
    drop(browser.console_messages());
    // A page that answers a form is available in the other language, too.
    browser.follow("form.language button");
    assert_shows(&browser, "Aktiva inloggningar");
    browser.follow("form.language button");
    change("demo-editor-password", GOOD);
    assert_shows(&browser, "Password saved.");
    assert!(can_log_in(server, "demo-editor", GOOD));
    assert_eq!(status_of_key(server, &key), 401);
    let mail = mailing.mail(2);
    assert!(mail["subject"].as_str().unwrap().contains("has been changed"), "{mail}");
    // A request with a key does not reveal where its owner logs in.
    let buyer = ApiCaller::key(server, "demo-key-0000-0000-000000000003");
    assert_eq!(buyer.ask(&ListSessions {}).unwrap_err().status, 403);
    assert_eq!(audit(server, "consent_withdrawn").len(), 1);
}

#[test]
fn an_administrator_deactivates_users_and_ends_their_logins_and_keys() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/account/users");
    let admin = ApiCaller::login(&server, "demo-admin");
    let users = admin.ask(&ListOrganizationUsers {}).unwrap();
    let find = |name: &str| users.iter().find(|user| user.user_name == name).unwrap().id;
    let editor = find("demo-editor");
    let own = find("demo-admin");
    let person = Person::log_in(&server, "demo-editor");
    let key = make_key(&ApiCaller::login(&server, "demo-editor"), "Desk").key;
    let with_key = || status_of_key(&server, &key);
    browser.visit(&format!("{}/account/users/{editor}", server.url));
    browser.check_appearance("account-user-logins");
    browser.follow("button[value=end]");
    assert_shows(&browser, "logged out everywhere");
    assert_eq!(person.get("/account").status(), 303);
    assert_eq!(with_key(), 200, "a key is no login");
    let person = Person::log_in(&server, "demo-editor");
    browser.click("details:has(button[value=deactivate]) summary");
    browser.follow("button[value=deactivate]");
    assert_shows(&browser, "Deactivated");
    assert_eq!(person.get("/account").status(), 303);
    assert!(!can_log_in(&server, "demo-editor", "demo-editor-password"));
    assert_eq!(with_key(), 401);
    let refused = admin.ask(&SendPasswordLink { id: editor });
    assert_eq!(refused.unwrap_err().status, 409);
    browser.follow("button[value=reactivate]");
    assert!(can_log_in(&server, "demo-editor", "demo-editor-password"));
    assert_eq!(with_key(), 200);
    browser.click("details:has(button[value=revoke]) summary");
    browser.check_appearance("account-user-revoke");
    browser.follow("button[value=revoke]");
    assert_eq!(with_key(), 401);
    // Administrators cannot lock themselves out.
    let inactive = UserAccessUpdate { active: false };
    let refused = admin.send(&UpdateUserAccess { id: own }, &inactive);
    assert_eq!(refused.unwrap_err().status, 409);
    browser.visit(&format!("{}/account/users/{own}", server.url));
    assert_eq!(browser.eval("document.querySelectorAll('button[value=deactivate]').length"), 0);
    let changes = audit(&server, "user_changed");
    let details: Vec<&str> = changes.iter().filter_map(|event| event["detail"].as_str()).collect();
    assert!(details.contains(&"deactivated") && details.contains(&"reactivated"), "{details:?}");
    let invalid = json!({ "active": "no", "more": 1 });
    let path = format!("/user/v1/organization/user/{editor}/access");
    assert_eq!(admin.refused(Method::PUT, &path, Some(&invalid)).status, 400);
    assert_eq!(server.get_with("/o/login", &[(USER_AGENT.as_str(), "x")]).status(), 200);
}
