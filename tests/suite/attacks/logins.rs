//! Password and secret guessing, and locking legitimate users out.

use std::{sync::mpsc, thread};

use reqwest::blocking::Response;
use reqwest::header::{COOKIE, SET_COOKIE};

use crate::common::{DEMO_KEY, Server};
use crate::nodes::{QUICK, start_node_beside};

const NAME: &str = "demo-editor";
const PASSWORD: &str = "demo-editor-password";
const CLIENT: (&str, &str) = ("demo-client", "demo-client-secret");
const SEARCH: &str = "/content/v1/image/search?s=0";
/// Lets a test choose the client address of its requests.
const PROXY: &str = "server.trusted_proxies=127.0.0.1";
const HOME: &str = "192.0.2.1";
const OFFICE: &str = "192.0.2.2";

/// A search with HTTP Basic authentication from that address.
fn basic(server: &Server, name: &str, password: &str, from: &str) -> Response {
    let request = server.client.get(format!("{}{SEARCH}", server.url));
    let request = request.header("x-forwarded-for", from).basic_auth(name, Some(password));
    request.send().expect("answer")
}

/// A response as the client sees it, without the fields that vary with time and request id.
fn summary_of(response: Response) -> (u16, Vec<String>, String) {
    let status = response.status().as_u16();
    let names = response.headers().keys().map(ToString::to_string).collect();
    (status, names, response.text().expect("text"))
}

fn hash_count(server: &Server) -> f64 {
    server.metric("wirephoto_password_hashes_total", "")
}

/// A login page opened from that address: its cookie and its token.
struct LoginForm<'a> {
    server: &'a Server,
    from: &'static str,
    cookie: String,
    csrf: String,
}

impl<'a> LoginForm<'a> {
    fn open(server: &'a Server, from: &'static str) -> Self {
        let page = server.get("/o/login");
        let cookie = cookie(&page, "wirephoto_form").expect("a form cookie");
        let text = page.text().expect("text");
        let csrf = text.split_once("name=\"csrf\" value=\"").expect("a token").1;
        let csrf = csrf.split('"').next().expect("a token").to_owned();
        Self { server, from, cookie, csrf }
    }

    fn send(&self, name: &str, password: &str, device: Option<&str>) -> Response {
        let cookies = [Some(self.cookie.as_str()), device];
        let cookies = cookies.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let request = self.server.client.post(format!("{}/o/login", self.server.url));
        let request = request.header("x-forwarded-for", self.from).header(COOKIE, cookies);
        let fields = [("username", name), ("password", password), ("csrf", &self.csrf)];
        request.form(&fields).send().expect("answer")
    }

    fn status(&self, name: &str, password: &str, device: Option<&str>) -> u16 {
        self.send(name, password, device).status().as_u16()
    }
}

/// A cookie from a response, in the form in which a browser returns it.
fn cookie(response: &Response, name: &str) -> Option<String> {
    let lines = response.headers().get_all(SET_COOKIE).iter();
    let mut lines = lines.map(|line| line.to_str().expect("ASCII"));
    let line = lines.find(|line| line.starts_with(&format!("{name}=")))?;
    line.split(';').next().map(str::to_owned)
}

fn token(server: &Server, from: &str, fields: &[(&str, &str)]) -> Response {
    let request = server.client.post(format!("{}/o/oauth2/token", server.url));
    request.header("x-forwarded-for", from).form(fields).send().expect("answer")
}

/// A request whose response shows whether the client was authenticated.
fn with_secret(secret: &str) -> [(&str, &str); 4] {
    [
        ("grant_type", "refresh_token"),
        ("refresh_token", "unknown"),
        ("client_id", CLIENT.0),
        ("client_secret", secret),
    ]
}

#[test]
fn a_password_is_not_guessed_by_basic_after_a_login_of_its_owner() {
    let server = Server::demo_with(&[PROXY]);
    // The password is verified and cached, for the attacker's network as well.
    assert_eq!(basic(&server, NAME, PASSWORD, HOME).status(), 200);
    let before = hash_count(&server);
    for guess in 0..10 {
        assert_eq!(basic(&server, NAME, &format!("guess-{guess}"), HOME).status(), 401);
    }
    let refusal = basic(&server, NAME, "guess", HOME);
    let wait: u64 = refusal.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=901).contains(&wait), "{wait}");
    let (status, names, body) = summary_of(refusal);
    assert_eq!(status, 503);
    for guess in 0..3_990 {
        let password = if guess == 2_000 { PASSWORD.to_owned() } else { format!("more-{guess}") };
        let answer = summary_of(basic(&server, NAME, &password, HOME));
        assert_eq!(answer, (503, names.clone(), body.clone()), "guess {guess}: {password}");
    }
    assert!(
        hash_count(&server) - before <= 10.0,
        "{} guesses were evaluated",
        hash_count(&server) - before
    );
    // The owner's client on another network still works, and so do requests that need no password.
    assert_eq!(basic(&server, NAME, PASSWORD, OFFICE).status(), 200);
    let key = format!("ApiKey {DEMO_KEY}");
    let with_key = [("authorization", key.as_str()), ("x-forwarded-for", HOME)];
    assert_eq!(server.get_with(SEARCH, &with_key).status(), 200);
}

#[test]
fn a_password_is_not_guessed_by_form_or_password_grant_after_a_login_of_its_owner() {
    let server = Server::demo_with(&[PROXY]);
    let grant = |password: &str| {
        let fields = [
            ("grant_type", "password"),
            ("scope", "roles"),
            ("username", NAME),
            ("password", password),
            ("client_id", CLIENT.0),
            ("client_secret", CLIENT.1),
        ];
        token(&server, HOME, &fields).status().as_u16()
    };
    let form = LoginForm::open(&server, HOME);
    assert_eq!((grant(PASSWORD), form.status(NAME, PASSWORD, None)), (200, 303));
    // All login methods share the counter.
    for guess in 0..5 {
        assert_eq!(grant(&format!("guess-{guess}")), 400);
        assert_eq!(form.status(NAME, &format!("guess-{guess}"), None), 403);
    }
    for password in ["guess", PASSWORD] {
        assert_eq!(grant(password), 503, "{password}");
        assert_eq!(form.status(NAME, password, None), 503, "{password}");
        assert_eq!(basic(&server, NAME, password, HOME).status(), 503, "{password}");
    }
}

#[test]
fn parallel_guesses_get_no_further_than_sequential_ones() {
    let server = Server::demo_with(&[PROXY]);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let guess = |number: u32| {
            let server = &server;
            scope.spawn(move || basic(server, NAME, &format!("guess-{number}"), HOME).status())
        };
        let guesses: Vec<_> = (0..60).map(guess).collect();
        guesses.into_iter().map(|one| one.join().unwrap().as_u16()).collect()
    });
    let count = |status| statuses.iter().filter(|one| **one == status).count();
    assert_eq!((count(401), count(503)), (10, 50), "{statuses:?}");
}

#[test]
fn a_cached_password_is_not_guessed_in_parallel() {
    let server = Server::demo_with(&[PROXY, "auth.login_queue_per_address=1"]);
    assert_eq!(basic(&server, NAME, PASSWORD, HOME).status(), 200, "remembered from here on");
    let answers: Vec<String> = thread::scope(|scope| {
        let guess = |number: u32| {
            let server = &server;
            scope.spawn(move || basic(server, NAME, &format!("guess-{number}"), HOME).text())
        };
        let guesses: Vec<_> = (0..100).map(guess).collect();
        guesses.into_iter().map(|one| one.join().unwrap().unwrap()).collect()
    });
    // Ten are counted, including those that find no slot to be hashed.
    let locked = answers.iter().filter(|one| one.contains("failed_logins")).count();
    assert_eq!(locked, 90, "{answers:?}");
    assert_eq!(basic(&server, NAME, PASSWORD, HOME).status(), 503);
    assert_eq!(basic(&server, NAME, PASSWORD, OFFICE).status(), 200);
}

#[test]
fn a_client_secret_is_not_guessed_after_a_login_of_the_client() {
    let server = Server::demo_with(&[PROXY, "auth.failures_per_address=20"]);
    let refresh = |secret: &str, from| summary_of(token(&server, from, &with_secret(secret)));
    assert_eq!(refresh(CLIENT.1, HOME).0, 400, "authenticated, and remembered from here on");
    let before = hash_count(&server);
    for guess in 0..20 {
        assert_eq!(refresh(&format!("guess-{guess}"), HOME).0, 401);
    }
    let refusal = refresh("guess", HOME);
    assert_eq!(refusal.0, 503);
    for guess in 0..500 {
        let secret = if guess == 250 { CLIENT.1.to_owned() } else { format!("more-{guess}") };
        assert_eq!(refresh(&secret, HOME), refusal, "guess {guess}: {secret}");
    }
    let revocation = server.client.post(format!("{}/o/oauth2/revoke", server.url));
    let fields = [("token", "x"), ("client_id", CLIENT.0), ("client_secret", CLIENT.1)];
    let revocation = revocation.header("x-forwarded-for", HOME).form(&fields).send().unwrap();
    assert_eq!(revocation.status(), 503, "the other endpoint of clients");
    assert!(hash_count(&server) - before <= 20.0);
    // The client itself still works from another network.
    let known = refresh(CLIENT.1, OFFICE);
    assert_eq!(known.0, 400, "{}", known.2);
    assert!(known.2.contains("invalid_grant"), "{}", known.2);
}

#[test]
fn a_stranger_locks_the_owner_of_a_name_out_of_one_network_at_most() {
    let server = Server::demo_with(&[PROXY, "auth.failures_per_user=3"]);
    let (home, office) = (LoginForm::open(&server, HOME), LoginForm::open(&server, OFFICE));
    let first = home.send(NAME, PASSWORD, None);
    assert_eq!(first.status(), 303);
    let device = cookie(&first, "wirephoto_device").expect("a device cookie");
    for _ in 0..3 {
        assert_eq!(home.status(NAME, "wrong", None), 403);
    }
    assert_eq!(home.status(NAME, PASSWORD, None), 503, "an unknown device in that network");
    assert_eq!(office.status(NAME, PASSWORD, None), 303, "another network");
    assert_eq!(home.status(NAME, PASSWORD, Some(&device)), 303, "a device of the owner");
    assert_eq!(home.status("demo-admin", "demo-admin-password", None), 303, "another user");
}

#[test]
fn a_device_cookie_grants_no_access_and_no_more_guesses() {
    let server = Server::demo_with(&[PROXY, "auth.failures_per_user=3"]);
    let home = LoginForm::open(&server, HOME);
    let first = home.send(NAME, PASSWORD, None);
    let line = first.headers().get_all(SET_COOKIE).iter().map(|line| line.to_str().unwrap());
    let line = line.into_iter().find(|line| line.starts_with("wirephoto_device=")).unwrap();
    for part in ["; Path=/o/login;", "; HttpOnly;", "; SameSite=Lax;", "; Max-Age=31536000"] {
        assert!(line.contains(part), "{part} in {line}");
    }
    let device = cookie(&first, "wirephoto_device").unwrap();
    let page = server.get_with("/account", &[("cookie", &device)]);
    assert_eq!(page.status(), 303, "a login is asked for");
    // The cookie belongs to the editor: with another name it has no effect.
    for _ in 0..3 {
        assert_eq!(home.status("demo-admin", "wrong", Some(&device)), 403);
    }
    assert_eq!(home.status("demo-admin", "demo-admin-password", Some(&device)), 503);
    for _ in 0..3 {
        assert_eq!(home.status(NAME, "wrong", Some(&device)), 403);
    }
    assert_eq!(home.status(NAME, PASSWORD, Some(&device)), 503, "it is used up");
    assert_eq!(home.status(NAME, PASSWORD, None), 303, "others are not");
}

#[test]
fn a_new_password_invalidates_device_cookies() {
    let server = Server::demo_with(&[PROXY, "auth.failures_per_user=3"]);
    let home = LoginForm::open(&server, HOME);
    let device = cookie(&home.send(NAME, PASSWORD, None), "wirephoto_device").unwrap();
    let output = server.command(&["user", "password", NAME]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for _ in 0..3 {
        assert_eq!(home.status(NAME, "wrong", Some(&device)), 403);
    }
    // They were counted as attempts from an unknown device.
    assert_eq!(home.status(NAME, PASSWORD, None), 503);
}

#[test]
fn guessing_from_many_networks_delays_the_owner_without_a_lockout() {
    let server = Server::demo_with(&[PROXY, "auth.failures_per_user_total=3"]);
    for host in 1..=3 {
        let from = format!("198.51.100.{host}");
        assert_eq!(basic(&server, NAME, "guess", &from).status(), 401);
    }
    // One more guess waits its turn like the owner.
    assert_eq!(basic(&server, NAME, "guess", "198.51.100.9").status(), 401);
    assert_eq!(LoginForm::open(&server, OFFICE).status(NAME, PASSWORD, None), 303);
}

#[test]
fn guessing_networks_leave_slots_to_the_owner() {
    let server = Server::demo_with(&[PROXY, "auth.failures_per_user_total=10"]);
    let hosts = 1..=10;
    for host in hosts.clone() {
        let from = format!("198.51.100.{host}");
        assert_eq!(basic(&server, NAME, "guess", &from).status(), 401);
    }
    // They all retry at once, and the first one that finds no slot gets a 503.
    thread::scope(|scope| {
        let (sender, statuses) = mpsc::channel();
        for host in hosts {
            let (server, sender, from) = (&server, sender.clone(), format!("198.51.100.{host}"));
            scope.spawn(move || sender.send(basic(server, NAME, "guess", &from).status()));
        }
        drop(sender);
        assert!(statuses.iter().any(|status| status == 503), "all of them had their turn");
        assert_eq!(LoginForm::open(&server, OFFICE).status(NAME, PASSWORD, None), 303);
    });
}

#[test]
fn a_restart_does_not_forget_failed_logins() {
    let settings = [PROXY, "auth.failures_per_user=3"];
    let server = Server::demo_with(&settings);
    for _ in 0..3 {
        assert_eq!(basic(&server, NAME, "guess", HOME).status(), 401);
    }
    let server = server.restart(&settings);
    assert_eq!(basic(&server, NAME, PASSWORD, HOME).status(), 503);
    assert_eq!(basic(&server, NAME, PASSWORD, OFFICE).status(), 200);
}

#[test]
fn more_nodes_give_no_more_guesses() {
    let settings = [&QUICK[..], &[PROXY, "auth.failures_per_address=4"]].concat();
    let first = Server::demo_with(&settings);
    let second = start_node_beside(&first, &settings[QUICK.len()..]);
    let nodes = [&first, &second];
    for (guess, node) in [&first, &second, &first, &second].into_iter().enumerate() {
        assert_eq!(basic(node, &format!("name-{guess}"), "guess", HOME).status(), 401);
    }
    for node in nodes {
        assert_eq!(basic(node, NAME, PASSWORD, HOME).status(), 503);
        let secret = token(node, HOME, &with_secret(CLIENT.1));
        assert_eq!(secret.status(), 503, "programs of that network, too");
        assert_eq!(basic(node, NAME, PASSWORD, OFFICE).status(), 200);
    }
}

#[test]
fn a_device_cookie_of_one_node_is_valid_at_the_other() {
    let settings = [&QUICK[..], &[PROXY, "auth.failures_per_user=2"]].concat();
    let first = Server::demo_with(&settings);
    let second = start_node_beside(&first, &settings[QUICK.len()..]);
    let (one, other) = (LoginForm::open(&first, HOME), LoginForm::open(&second, HOME));
    let device = cookie(&one.send(NAME, PASSWORD, None), "wirephoto_device").unwrap();
    assert_eq!((one.status(NAME, "a", None), other.status(NAME, "b", None)), (403, 403));
    assert_eq!(other.status(NAME, PASSWORD, None), 503);
    assert_eq!(other.status(NAME, PASSWORD, Some(&device)), 303);
}

#[test]
fn a_spoofed_client_address_gives_no_more_guesses() {
    let server = Server::demo_with(&["auth.failures_per_user=3"]);
    for host in 1..=3 {
        let from = format!("198.51.100.{host}");
        assert_eq!(basic(&server, NAME, "guess", &from).status(), 401);
    }
    assert_eq!(basic(&server, NAME, PASSWORD, HOME).status(), 503);
}

#[test]
fn a_locked_name_does_not_reveal_whether_it_exists() {
    let server = Server::demo_with(&[PROXY, "auth.failures_per_user=3"]);
    let form = LoginForm::open(&server, HOME);
    let answers = [NAME, "demo-nobody"].map(|name| {
        let mut answers: Vec<_> =
            (0..4).map(|_| summary_of(form.send(name, "wrong", None))).collect();
        answers.push(summary_of(form.send(name, PASSWORD, None)));
        // The page repeats the name.
        for (_, _, body) in &mut answers {
            *body = body.replace(name, "NAME");
        }
        answers
    });
    assert_eq!(answers[0], answers[1]);
    let statuses: Vec<u16> = answers[0].iter().map(|(status, ..)| *status).collect();
    assert_eq!(statuses, [403, 403, 403, 503, 503]);
}

#[test]
fn other_spellings_of_a_name_do_not_log_in() {
    let server = Server::demo_with(&[PROXY]);
    for name in ["Demo-Editor", "DEMO-EDITOR", " demo-editor", "demo-editor ", "demo-editor\u{0}"]
    {
        assert_eq!(basic(&server, name, PASSWORD, HOME).status(), 401, "{name:?}");
    }
}

#[test]
fn an_untrusted_proxy_is_a_warning() {
    const WARNING: &str = "server.trusted_proxies is empty";
    let url = "server.public_url=https://pictures.example";
    let server = Server::demo_with(&[url]);
    assert!(server.log().contains(WARNING), "{}", server.log());
    let said = |settings: &[&str]| {
        let arguments: Vec<&str> =
            settings.iter().flat_map(|setting| ["--set", *setting]).collect();
        let output = server.command(&[&["check"], arguments.as_slice()].concat());
        String::from_utf8_lossy(&output.stderr).contains(WARNING)
    };
    assert!(said(&[url]));
    assert!(!said(&[url, PROXY]) && !said(&[]));
    assert!(!Server::demo_with(&[url, PROXY]).log().contains(WARNING));
}
