//! The OAuth2 endpoints conform to RFC 6749, 6750, 7009, 7636, 9207 and 9700
//! (`docs/contract/login.md`).

use reqwest::{
    blocking::Response,
    header::{COOKIE, LOCATION, SET_COOKIE},
};
use serde_json::{Value, json};

use crate::common::{DEMO_KEY, LARGE, Server, postgres};

const CLIENT: (&str, &str) = ("demo-client", "demo-client-secret");
const NAME: &str = "demo-editor";
const PASSWORD: &str = "demo-editor-password";
const REDIRECT: &str = "http://127.0.0.1:9000/cb";
/// A verifier and its challenge, from RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

pub type Fields<'a> = Vec<(&'a str, &'a str)>;

fn password_form<'a>(scope: &'a str) -> Fields<'a> {
    vec![
        ("grant_type", "password"),
        ("username", NAME),
        ("password", PASSWORD),
        ("scope", scope),
        ("client_id", CLIENT.0),
        ("client_secret", CLIENT.1),
    ]
}

/// The form with some fields replaced (or left out when the value is empty).
fn with<'a>(mut form: Fields<'a>, changes: &[(&'a str, &'a str)]) -> Fields<'a> {
    for (name, value) in changes {
        form.retain(|(known, _)| known != name);
        if !value.is_empty() {
            form.push((name, value));
        }
    }
    form
}

pub fn token(server: &Server, form: &[(&str, &str)]) -> Response {
    server.post_form("/o/oauth2/token", form)
}

fn tokens(server: &Server, scope: &str) -> Value {
    let response = token(server, &password_form(scope));
    assert_eq!(response.status(), 200);
    response.json().expect("JSON")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"))
}

fn refresh_form(token: &str) -> Fields<'_> {
    vec![
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("client_id", CLIENT.0),
        ("client_secret", CLIENT.1),
    ]
}

pub fn user_status(server: &Server, token: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    server.get_with("/o/v2/user", &[("authorization", &bearer)]).status().as_u16()
}

fn refused(response: Response, status: u16, error: &str) {
    assert_eq!(response.status(), status, "{error}");
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.headers()["content-type"], "application/json");
    let body: Value = response.json().expect("JSON");
    assert_eq!(body["error"], error, "{body}");
    let text = body["error_description"].as_str().unwrap_or_default();
    assert!(text.chars().all(|c| matches!(c, ' '..='~') && c != '"' && c != '\\'), "{text:?}");
}

#[test]
fn a_password_grant_gives_tokens_that_the_user_endpoint_and_the_hires_accept() {
    let server = Server::demo();
    let response = token(&server, &password_form("roles email user customer"));
    assert_eq!(response.headers()["cache-control"], "no-store");
    let set: Value = response.json().unwrap();
    assert_eq!(set["token_type"], "Bearer");
    assert_eq!(set["expires_in"], 604_800, "7 days");
    assert!(text(&set, "refresh_token").len() >= 43 && text(&set, "id_token").contains('.'));
    let bearer = format!("Bearer {}", text(&set, "access_token"));
    let response = server.get_with("/o/v2/user", &[("authorization", &bearer)]);
    let user: Value = response.json().unwrap();
    let expected = json!({
        "sub": "101",
        "scope": user["scope"],
        "email": "demo-editor@demo-desk.example",
        "roles": ["ROLE_OFP", "ROLE_MEDIEBANK"],
        "name": "Demo Editor",
        "given_name": "Demo",
        "family_name": "Editor",
        "user_id": 101,
        "customer_id": 1,
        "customer_name": "Demo desk",
        "department": "Demo picture desk",
    });
    assert_eq!(user, expected);
    let mut scopes: Vec<&str> = text(&user, "scope").split(' ').collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["customer", "email", "roles", "user"]);
    let hires = format!("/media/{LARGE}.jpg");
    assert_eq!(server.get_with(&hires, &[("authorization", &bearer)]).status(), 200);
    let little = tokens(&server, "roles");
    let bearer = format!("Bearer {}", text(&little, "access_token"));
    let user: Value = server.get_with("/o/v2/user", &[("authorization", &bearer)]).json().unwrap();
    assert_eq!(user, json!({ "sub": "101", "scope": "roles", "roles": user["roles"] }));
}

#[test]
fn the_token_endpoint_returns_the_errors_of_rfc_6749() {
    let server = Server::demo();
    let roles = || password_form("roles");
    let check = |changes: &[(&'static str, &'static str)], status: u16, error: &str| {
        refused(token(&server, &with(roles(), changes)), status, error);
    };
    check(&[("grant_type", "")], 400, "invalid_request");
    check(&[("grant_type", "client_credentials")], 400, "unsupported_grant_type");
    check(&[("username", "")], 400, "invalid_request");
    check(&[("password", "")], 400, "invalid_request");
    check(&[("password", "wrong")], 400, "invalid_grant");
    check(&[("username", "nobody")], 400, "invalid_grant");
    check(&[("client_secret", "wrong")], 401, "invalid_client");
    check(&[("client_secret", "")], 401, "invalid_client");
    check(&[("client_id", "nobody")], 401, "invalid_client");
    check(&[("client_id", ""), ("client_secret", "")], 401, "invalid_client");
    check(&[("client_id", "demo-app")], 401, "invalid_client");
    check(&[("client_id", "demo-app"), ("client_secret", "")], 400, "unauthorized_client");
    check(&[("scope", "")], 400, "invalid_scope");
    check(&[("scope", "email")], 400, "invalid_scope");
    check(&[("scope", "roles root")], 400, "invalid_scope");
    check(&[("scope", "roles  email")], 400, "invalid_scope");
    check(&[("scope", "roles\temail")], 400, "invalid_scope");
    refused(token(&server, &refresh_form("nonsense")), 400, "invalid_grant");
    let mut twice = roles();
    twice.push(("scope", "roles"));
    refused(token(&server, &twice), 400, "invalid_request");
    // Two methods of client authentication in one request.
    let url = format!("{}/o/oauth2/token", server.url);
    let post = || server.client.post(&url);
    let both = post().basic_auth(CLIENT.0, Some(CLIENT.1)).form(&roles()).send().unwrap();
    refused(both, 400, "invalid_request");
    let without = with(roles(), &[("client_id", ""), ("client_secret", "")]);
    let good = post().basic_auth(CLIENT.0, Some(CLIENT.1)).form(&without).send().unwrap();
    assert_eq!(good.status(), 200);
    let bad = post().basic_auth(CLIENT.0, Some("wrong")).form(&without).send().unwrap();
    assert!(bad.headers()["www-authenticate"].to_str().unwrap().starts_with("Basic"));
    refused(bad, 401, "invalid_client");
    for header in ["Basic", "Basic ", "Basic !!!", "Basic Og==", "Bearer x"] {
        let bad = post().header("authorization", header).form(&without).send().unwrap();
        refused(bad, 401, "invalid_client");
    }
    let json = json!({ "grant_type": "password", "username": NAME, "password": PASSWORD });
    refused(post().json(&json).send().unwrap(), 400, "invalid_request");
    let large = "x".repeat(100_000);
    refused(token(&server, &with(roles(), &[("username", &large)])), 400, "invalid_request");
    let status = server.client.get(&url).query(&roles()).send().unwrap().status();
    assert_eq!(status, 405, "secrets never go into an address");
    let log = server.log();
    assert!(!log.contains(PASSWORD) && !log.contains(CLIENT.1), "{log}");
}

#[test]
fn a_refresh_rotates_tokens_and_reuse_of_an_old_one_revokes_the_family() {
    let server = Server::demo();
    let first = tokens(&server, "roles email");
    let (access, refresh) = (text(&first, "access_token"), text(&first, "refresh_token"));
    assert_eq!(user_status(&server, access), 200);
    let second: Value = token(&server, &refresh_form(refresh)).json().unwrap();
    assert_eq!(user_status(&server, access), 401, "the old access token ends with the refresh");
    assert_eq!(user_status(&server, text(&second, "access_token")), 200);
    assert_ne!(text(&second, "refresh_token"), refresh);
    let narrow = with(refresh_form(text(&second, "refresh_token")), &[("scope", "roles admin")]);
    refused(token(&server, &narrow), 400, "invalid_scope");
    let narrow = with(refresh_form(text(&second, "refresh_token")), &[("scope", "roles")]);
    let third: Value = token(&server, &narrow).json().unwrap();
    assert_eq!(user_status(&server, text(&third, "access_token")), 200);
    // A reused refresh token means that a copy of it has leaked.
    refused(token(&server, &refresh_form(refresh)), 400, "invalid_grant");
    assert_eq!(user_status(&server, text(&third, "access_token")), 401);
    refused(token(&server, &refresh_form(text(&third, "refresh_token"))), 400, "invalid_grant");
}

#[test]
fn fifty_concurrent_refreshes_issue_one_token_set() {
    let server = Server::demo();
    let set = tokens(&server, "roles");
    let refresh = text(&set, "refresh_token");
    let count = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..50)
            .map(|_| scope.spawn(|| token(&server, &refresh_form(refresh)).status().as_u16()))
            .collect();
        let answers: Vec<u16> = tries.into_iter().map(|one| one.join().unwrap()).collect();
        assert!(answers.iter().all(|status| [200, 400].contains(status)), "{answers:?}");
        answers.iter().filter(|status| **status == 200).count()
    });
    assert_eq!(count, 1);
}

#[test]
fn truncated_foreign_and_revoked_tokens_are_refused_immediately_everywhere() {
    let server = Server::demo();
    let set = tokens(&server, "roles");
    let access = text(&set, "access_token");
    let hires = format!("/media/{LARGE}.jpg");
    let get = |header: &str| {
        let response = server.get_with(&hires, &[("authorization", header)]);
        (
            response.status().as_u16(),
            response
                .headers()
                .get_all("www-authenticate")
                .iter()
                .map(|value| value.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
                .join(", "),
        )
    };
    assert_eq!(get(&format!("Bearer {access}")).0, 200);
    assert_eq!(get(&format!("bearer {access}")).0, 200);
    for bad in [
        format!("Bearer {}", &access[..access.len() - 1]),
        format!("Bearer {}", &access[1..]),
        format!("Bearer {access}x"),
        format!("Bearer {access},{access}"),
        format!("Bearer {}", access.to_ascii_uppercase()),
        format!("Bearer {}", text(&set, "refresh_token")),
        format!("Bearer {}", text(&set, "id_token")),
        format!("Bearer {DEMO_KEY}"),
        "Bearer ".to_owned(),
        "Bearer".to_owned(),
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMDEifQ.".to_owned(),
    ] {
        let (status, challenge) = get(&bad);
        assert_eq!(status, 401, "{bad}");
        assert!(challenge.contains("Bearer") && challenge.contains("ApiKey"), "{challenge}");
        let token = bad.strip_prefix("Bearer ").unwrap_or_default();
        assert_eq!(user_status(&server, token), 401, "{bad}");
    }
    let (_, challenge) = get("Bearer wrong");
    assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    assert!(!server.get(&hires).headers()["www-authenticate"].to_str().unwrap().contains("error"));
    assert_eq!(server.get(&format!("{hires}?access_token={access}")).status(), 401);
    let revoke = |token: &str, secret: &str| {
        let form = [("token", token), ("client_id", CLIENT.0), ("client_secret", secret)];
        server.post_form("/o/oauth2/revoke", &form)
    };
    refused(revoke(access, "wrong"), 401, "invalid_client");
    refused(revoke("", CLIENT.1), 400, "invalid_request");
    assert_eq!(revoke("unknown", CLIENT.1).status(), 200);
    assert_eq!(get(&format!("Bearer {access}")).0, 200);
    assert_eq!(revoke(access, CLIENT.1).status(), 200);
    assert_eq!(get(&format!("Bearer {access}")).0, 401, "at once");
    let next: Value = token(&server, &refresh_form(text(&set, "refresh_token"))).json().unwrap();
    assert_eq!(revoke(text(&next, "refresh_token"), CLIENT.1).status(), 200);
    assert_eq!(user_status(&server, text(&next, "access_token")), 401);
    let log = server.log();
    assert!(!log.contains(access) && !log.contains(text(&next, "access_token")), "{log}");
    let bytes = postgres::stored(&server.data());
    for secret in [access, text(&set, "refresh_token"), PASSWORD, CLIENT.1] {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()));
    }
}

/// A browser session of the demo editor, who has consented to every scope.
pub struct Editor<'a> {
    server: &'a Server,
    pub cookie: String,
}

impl<'a> Editor<'a> {
    pub fn log_in(server: &'a Server) -> Self {
        let page = server.get("/o/login");
        let cookie = cookie(&page, "wirephoto_form");
        let csrf = hidden(&page.text().unwrap(), "csrf");
        let form = [("username", NAME), ("password", PASSWORD), ("csrf", &csrf)];
        let post = server.client.post(format!("{}/o/login", server.url));
        let response = post.header(COOKIE, cookie).form(&form).send().unwrap();
        assert_eq!(response.status(), 303);
        Self { server, cookie: cookie_of(&response, "wirephoto_session") }
    }

    fn open(&self, query: &str) -> Response {
        self.server.get_with(&format!("/o/oauth2/auth?{query}"), &[("cookie", &self.cookie)])
    }

    /// Opens the authorization endpoint, grants consent when asked, and returns the address that the browser is
    /// redirected to.
    pub fn authorize(&self, query: &str) -> String {
        let response = self.open(query);
        if response.status() == 303 {
            return response.headers()[LOCATION].to_str().unwrap().to_owned();
        }
        assert_eq!(response.status(), 200, "{query}");
        let page = response.text().unwrap();
        let form = [
            ("csrf", hidden(&page, "csrf")),
            ("request", hidden(&page, "request")),
            ("decision", "allow".to_owned()),
        ];
        let post = self.server.client.post(format!("{}/o/consent", self.server.url));
        let response = post.header(COOKIE, &self.cookie).form(&form).send().unwrap();
        assert_eq!(response.status(), 303, "{query}");
        response.headers()[LOCATION].to_str().unwrap().to_owned()
    }
}

fn cookie(response: &Response, name: &str) -> String {
    cookie_of(response, name)
}

fn cookie_of(response: &Response, name: &str) -> String {
    let lines = response.headers().get_all(SET_COOKIE).iter();
    let lines = lines.map(|line| line.to_str().unwrap());
    let line = lines.into_iter().find(|line| line.starts_with(name)).expect("a cookie");
    line.split(';').next().unwrap().to_owned()
}

/// The value of a hidden field.
fn hidden(page: &str, name: &str) -> String {
    let mark = format!("name=\"{name}\" value=\"");
    let rest = page.rsplit_once(&mark).unwrap_or_else(|| panic!("{name} in {page}")).1;
    let value = rest.split('"').next().unwrap();
    value.replace("&amp;", "&").replace("&#x2f;", "/").replace("&#x3d;", "=")
}

pub fn query_of(location: &str, name: &str) -> Option<String> {
    let url = reqwest::Url::parse(location).unwrap();
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn fragment_of(location: &str, name: &str) -> Option<String> {
    let (_, fragment) = location.split_once('#')?;
    query_of(&format!("http://x/?{fragment}"), name)
}

pub fn request(changes: &[(&str, &str)]) -> String {
    let standard = vec![
        ("response_type", "code"),
        ("client_id", CLIENT.0),
        ("redirect_uri", REDIRECT),
        ("scope", "openid roles"),
        ("state", "st"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ];
    let url = reqwest::Url::parse_with_params("http://x/", with(standard, changes)).unwrap();
    url.query().unwrap().to_owned()
}

pub fn code_form(code: &str) -> Fields<'_> {
    vec![
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
        ("client_id", CLIENT.0),
        ("client_secret", CLIENT.1),
    ]
}

#[test]
fn a_code_works_once_for_its_client_verifier_and_redirect_uri_and_a_replay_revokes_its_tokens() {
    let server = Server::demo();
    let editor = Editor::log_in(&server);
    let code = || query_of(&editor.authorize(&request(&[])), "code").unwrap();
    for change in [
        ("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXl"),
        ("code_verifier", ""),
        ("redirect_uri", "http://localhost:9000/cb"),
        ("redirect_uri", ""),
        ("code", "nonsense"),
    ] {
        let code = code();
        let response = token(&server, &with(code_form(&code), &[change]));
        let body: Value = response.json().unwrap();
        assert!(
            ["invalid_grant", "invalid_request"].contains(&text(&body, "error")),
            "{change:?}"
        );
    }
    let foreign = code();
    let form = with(code_form(&foreign), &[("client_id", "demo-app"), ("client_secret", "")]);
    refused(token(&server, &form), 400, "invalid_grant");
    let code = code();
    let set: Value = token(&server, &code_form(&code)).json().unwrap();
    assert_eq!(user_status(&server, text(&set, "access_token")), 200);
    refused(token(&server, &code_form(&code)), 400, "invalid_grant");
    assert_eq!(user_status(&server, text(&set, "access_token")), 401, "a replay revokes");
    refused(token(&server, &refresh_form(text(&set, "refresh_token"))), 400, "invalid_grant");
}

#[test]
fn a_program_receives_its_code_at_any_port_of_the_loopback_address() {
    let server = Server::demo();
    let editor = Editor::log_in(&server);
    let address = "http://127.0.0.1:53211/cb";
    let location = editor.authorize(&request(&[("redirect_uri", address)]));
    assert!(location.starts_with(&format!("{address}?")), "{location}");
    let code = query_of(&location, "code").unwrap();
    // The exchange names the same port again.
    refused(token(&server, &code_form(&code)), 400, "invalid_grant");
    let location = editor.authorize(&request(&[("redirect_uri", address)]));
    let code = query_of(&location, "code").unwrap();
    let form = with(code_form(&code), &[("redirect_uri", address)]);
    assert_eq!(token(&server, &form).status(), 200);
}

#[test]
fn redirects_go_only_to_exactly_registered_uris() {
    let server = Server::demo();
    let editor = Editor::log_in(&server);
    for address in [
        "http://127.0.0.1:9000/cb/",
        "http://127.0.0.1:9000/cb?x=1",
        "http://127.0.0.1:9000/CB",
        "http://127.0.0.1:9000/cb#x",
        "http://127.0.0.1:9000/./cb",
        "http://127.0.0.1:9000/x/../cb",
        "http://127.0.0.1:9000/cb%00",
        "http://127.0.0.2:9000/cb",
        "https://127.0.0.1:9000/cb",
        "http://127.0.0.1:9000@evil.example/cb",
        "http://evil.example/cb",
        "http://localhost/cb",
        "//127.0.0.1:9000/cb",
        "javascript:alert(1)",
        " http://127.0.0.1:9000/cb",
    ] {
        for broken in [("state", "st"), ("scope", "nonsense"), ("response_type", "nonsense")] {
            let response = editor.open(&request(&[("redirect_uri", address), broken]));
            assert_eq!(response.status(), 400, "{address}");
            assert!(response.headers().get(LOCATION).is_none(), "{address}");
            assert!(!response.text().unwrap().contains("href=\"http://evil"), "{address}");
        }
    }
    for broken in [("client_id", "nobody"), ("client_id", ""), ("redirect_uri", "")] {
        assert_eq!(editor.open(&request(&[broken])).status(), 400, "{broken:?}");
    }
    let twice = format!("{}&redirect_uri=http%3A%2F%2Fevil.example", request(&[]));
    assert_eq!(editor.open(&twice).status(), 400);
    let twice = format!("{}&client_id=demo-app", request(&[]));
    assert_eq!(editor.open(&twice).status(), 400);
}

#[test]
fn authorization_errors_reach_the_client_with_state_and_issuer() {
    let server = Server::demo();
    let editor = Editor::log_in(&server);
    let check = |changes: &[(&str, &str)], error: &str| {
        let response = editor.open(&request(changes));
        assert_eq!(response.status(), 303, "{error}");
        let location = response.headers()[LOCATION].to_str().unwrap().to_owned();
        assert!(location.starts_with(&format!("{REDIRECT}?")), "{location}");
        assert_eq!(query_of(&location, "error").as_deref(), Some(error), "{location}");
        assert_eq!(query_of(&location, "state").as_deref(), Some("st"));
        assert_eq!(query_of(&location, "iss").as_deref(), Some(server.url.as_str()));
        assert_eq!(query_of(&location, "code"), None);
    };
    check(&[("response_type", "")], "invalid_request");
    check(&[("response_type", "nonsense")], "unsupported_response_type");
    check(&[("scope", "roles root")], "invalid_scope");
    check(&[("code_challenge_method", "plain")], "invalid_request");
    check(&[("code_challenge", "short")], "invalid_request");
    check(&[("code_challenge", "")], "invalid_request");
    check(&[("request", "eyJhbGciOiJub25lIn0..")], "request_not_supported");
    check(&[("request_uri", "https://evil.example/")], "request_uri_not_supported");
    check(&[("prompt", "none login")], "invalid_request");
    check(&[("prompt", "none"), ("max_age", "-1")], "invalid_request");
    check(&[("prompt", "none")], "consent_required");
    let stranger = server.get(&format!("/o/oauth2/auth?{}", request(&[("prompt", "none")])));
    let location = stranger.headers()[LOCATION].to_str().unwrap();
    assert_eq!(query_of(location, "error").as_deref(), Some("login_required"));
    let public =
        [("client_id", "demo-app"), ("code_challenge", ""), ("code_challenge_method", "")];
    let registered = "http://127.0.0.1:9000/cb";
    let response =
        editor.open(&request(&[public[0], public[1], public[2], ("redirect_uri", registered)]));
    let location = response.headers()[LOCATION].to_str().unwrap().to_owned();
    assert_eq!(
        query_of(&location, "error").as_deref(),
        Some("invalid_request"),
        "PKCE: {location}"
    );
    // Any `state` is returned unchanged and cannot inject anything.
    let state = "a&error=x#b\u{e5}%0d%0aSet-Cookie: x=y";
    let response = editor.open(&request(&[("state", state), ("scope", "root")]));
    let location = response.headers()[LOCATION].to_str().unwrap().to_owned();
    assert_eq!(query_of(&location, "state").as_deref(), Some(state));
    assert!(response.headers().get(SET_COOKIE).is_none());
}

#[test]
fn implicit_tokens_are_in_the_fragment_for_clients_that_allow_it() {
    let server = Server::demo();
    let file = server.dir.path().join("client.json");
    let client = json!({
        "client_id": "page", "client_secret": "page-secret", "redirect_uris": [REDIRECT],
        "grants": ["implicit"],
    });
    std::fs::write(&file, json!({ "clients": [client] }).to_string()).unwrap();
    assert!(server.command(&["import", &file.to_string_lossy()]).status.success());
    let editor = Editor::log_in(&server);
    let page = [("client_id", "page"), ("code_challenge", ""), ("code_challenge_method", "")];
    let ask = |kind: &str, nonce: &str| {
        request(&[page[0], page[1], page[2], ("response_type", kind), ("nonce", nonce)])
    };
    let demo = request(&[page[1], page[2], ("response_type", "token")]);
    let refused = fragment_of(&editor.authorize(&demo), "error");
    assert_eq!(refused.as_deref(), Some("unauthorized_client"), "off unless it is allowed");
    let location = editor.authorize(&ask("token", ""));
    let access = fragment_of(&location, "access_token").expect("a token");
    assert_eq!(user_status(&server, &access), 200);
    assert_eq!(fragment_of(&location, "token_type").as_deref(), Some("Bearer"));
    assert_eq!(fragment_of(&location, "state").as_deref(), Some("st"));
    assert_eq!(fragment_of(&location, "iss").as_deref(), Some(server.url.as_str()));
    assert_eq!(fragment_of(&location, "refresh_token"), None);
    let location = editor.authorize(&ask("id_token token", "n"));
    assert!(fragment_of(&location, "id_token").is_some_and(|token| token.contains('.')));
    let location = editor.authorize(&ask("code token", ""));
    let error = fragment_of(&location, "error");
    assert_eq!(error.as_deref(), Some("unsupported_response_type"));
    let location = editor.authorize(&ask("id_token", ""));
    assert_eq!(fragment_of(&location, "error").as_deref(), Some("invalid_request"), "no nonce");
    let query = format!("{}&response_mode=query", ask("token", ""));
    let location = editor.authorize(&query);
    assert!(fragment_of(&location, "error").is_some() && !location.contains("access_token"));
}

#[test]
fn consent_needs_its_form_token_and_framing_is_denied() {
    let server = Server::demo();
    let editor = Editor::log_in(&server);
    let response = editor.open(&request(&[]));
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    // Browsers apply `form-action` to the redirects after a form too, including those of the client's own pages.
    assert!(!policy.contains("form-action"), "{policy}");
    let page = server.get("/o/login");
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("form-action 'self';"), "{policy}");
    assert_eq!(response.headers()["x-frame-options"], "DENY");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let page = response.text().unwrap();
    let send = |csrf: &str, cookie: &str| {
        let request = hidden(&page, "request");
        let form = [("csrf", csrf), ("request", &request), ("decision", "allow")];
        let post = server.client.post(format!("{}/o/consent", server.url));
        post.header(COOKIE, cookie).form(&form).send().unwrap()
    };
    let csrf = hidden(&page, "csrf");
    assert_eq!(send("", &editor.cookie).status(), 400);
    assert_eq!(send("wrong", &editor.cookie).status(), 400);
    let other = Editor::log_in(&server);
    assert_eq!(send(&csrf, &other.cookie).status(), 400, "another session's token");
    let stranger = send(&csrf, "a=b");
    assert!(stranger.headers()[LOCATION].to_str().unwrap().starts_with("/o/oauth2/auth?"));
    assert_eq!(send(&csrf, &editor.cookie).status(), 303);
    let head = server.client.head(format!("{}/o/oauth2/auth?{}", server.url, request(&[])));
    let head = head.header(COOKIE, &editor.cookie).send().unwrap();
    assert_eq!(head.status(), 405, "a HEAD would give out a code that nobody reads");
}

#[test]
fn client_secret_guesses_are_limited_by_address_and_lock_no_client_out() {
    let proxy = "server.trusted_proxies=127.0.0.1";
    let server = Server::demo_with(&["auth.failures_per_address=3", proxy]);
    assert_eq!(token(&server, &password_form("roles")).status(), 200);
    let guess = with(password_form("roles"), &[("client_secret", "guess")]);
    for _ in 0..3 {
        refused(token(&server, &guess), 401, "invalid_client");
    }
    let response = token(&server, &guess);
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    // The right secret is refused from that address too, although it was verified before.
    refused(token(&server, &refresh_form("unknown")), 503, "temporarily_unavailable");
    let elsewhere = server.client.post(format!("{}/o/oauth2/token", server.url));
    let elsewhere = elsewhere.header("x-forwarded-for", "192.0.2.7");
    let set = elsewhere.form(&refresh_form("unknown")).send().unwrap();
    refused(set, 400, "invalid_grant");
}

#[test]
fn a_password_change_ends_sessions_and_tokens_including_those_in_flight() {
    let server = Server::demo();
    let editor = Editor::log_in(&server);
    let set = tokens(&server, "roles");
    let output = server.command(&["user", "password", NAME]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // This process may still cache the session for a moment; the cookie grants nothing any more.
    let response = editor.open(&request(&[("prompt", "none")]));
    let location = response.headers()[LOCATION].to_str().unwrap().to_owned();
    assert_eq!(query_of(&location, "code"), None, "{location}");
    server.until("the token to end", || {
        (user_status(&server, text(&set, "access_token")) == 401).then_some(())
    });
    refused(token(&server, &refresh_form(text(&set, "refresh_token"))), 400, "invalid_grant");
}

#[test]
fn an_authorization_request_by_post_equals_one_by_get() {
    let server = Server::demo();
    let form: Fields<'_> = vec![("client_id", CLIENT.0), ("state", "a b")];
    let response = server.post_form("/o/oauth2/auth", &form);
    assert_eq!(response.status(), 303);
    assert_eq!(response.headers()[LOCATION], "/o/oauth2/auth?client_id=demo-client&state=a+b");
}

#[test]
fn discovery_and_keys_match_the_service_and_reveal_no_secret() {
    let server = Server::demo();
    let well_known = "/.well-known/openid-configuration";
    let facts: Value = server.get(well_known).json().unwrap();
    for path in [&format!("/o{well_known}"), "/.well-known/oauth-authorization-server"] {
        assert_eq!(server.get(path).json::<Value>().unwrap(), facts, "{path}");
    }
    assert_eq!(facts["issuer"], server.url);
    for (name, path) in [
        ("authorization_endpoint", "/o/oauth2/auth"),
        ("token_endpoint", "/o/oauth2/token"),
        ("userinfo_endpoint", "/o/v2/user"),
        ("jwks_uri", "/o/oauth2/keys"),
        ("revocation_endpoint", "/o/oauth2/revoke"),
    ] {
        assert_eq!(facts[name], format!("{}{path}", server.url), "{name}");
    }
    assert_eq!(facts["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(facts["authorization_response_iss_parameter_supported"], true);
    let keys: Value = server.get("/o/oauth2/keys").json().unwrap();
    for key in keys["keys"].as_array().unwrap() {
        let mut names: Vec<&str> = key.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["alg", "e", "kid", "kty", "n", "use"]);
        assert_eq!((&key["kty"], &key["alg"]), (&json!("RSA"), &json!("RS256")));
    }
    let id_token = tokens(&server, "roles")["id_token"].as_str().unwrap().to_owned();
    let restarted = server.restart(&[]);
    let after: Value = restarted.get("/o/oauth2/keys").json().unwrap();
    assert_eq!(after, keys, "keys outlive a restart: {id_token}");
}

#[test]
fn a_disabled_client_is_refused_by_both_processes_within_a_second() {
    let server = Server::demo();
    let set = tokens(&server, "roles");
    let access = text(&set, "access_token");
    assert_eq!(user_status(&server, access), 200);
    let output = server.command(&["client", "disable", CLIENT.0]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.until("the token to end", || (user_status(&server, access) == 401).then_some(()));
    refused(token(&server, &password_form("roles")), 401, "invalid_client");
}
