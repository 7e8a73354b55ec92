//! The provider over a real database: codes, passwords, clients, id tokens, revocation, sessions.

use base64::{
    Engine, engine::general_purpose::STANDARD, engine::general_purpose::URL_SAFE_NO_PAD,
};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Value, json};

use super::{
    AuthorizationError, ClientForm, OAuthErrorCode, OAuthParameters, TokenError, TokenSet,
    test_fixture::{
        ADDRESS, CHALLENGE, ISSUER, OAuthFixture, VERIFIER, at, find_parameter, parameter,
    },
};
use crate::runtime::limits::{FAMILIES_MAX, SESSIONS_MAX};
use model::ContentHash;

const WEB: &str = "client_id=web&client_secret=web%20secret%2B1";

fn code_of<T>(outcome: Result<T, TokenError>) -> OAuthErrorCode {
    let error = outcome.err().expect("an error");
    let allowed = |c: char| matches!(c, ' ' | '!' | '#'..='[' | ']'..='~');
    assert!(error.description.chars().all(allowed), "{}", error.description);
    error.code
}

/// Returns the claims of an id token, verified with the published key that it names.
fn verify(service: &OAuthFixture, id_token: &str, client_id: &str) -> Value {
    let header = jsonwebtoken::decode_header(id_token).unwrap();
    let keys = service.run(service.oauth.key_set());
    let key = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["kid"] == *header.kid.as_ref().unwrap());
    let part = |name: &str| key.unwrap()[name].as_str().unwrap().to_owned();
    let key = DecodingKey::from_rsa_components(&part("n"), &part("e")).unwrap();
    let mut validation = Validation::new(Algorithm::RS256);
    validation.set_audience(&[client_id]);
    validation.set_issuer(&[ISSUER]);
    // The tests do not use the time of the machine.
    validation.validate_exp = false;
    jsonwebtoken::decode(id_token, &key, &validation).unwrap().claims
}

fn at_hash(access_token: &str) -> String {
    URL_SAFE_NO_PAD.encode(&ContentHash::new(access_token.as_bytes()).0[..16])
}

fn exchange(
    service: &OAuthFixture,
    code: &str,
    rest: &str,
    second: i64,
) -> Result<TokenSet, TokenError> {
    let form = format!("client_id=spa&grant_type=authorization_code&code={code}&{rest}");
    service.token(&form, second)
}

fn proof() -> String {
    format!("code_verifier={VERIFIER}&redirect_uri=https://spa.test/cb")
}

#[test]
fn a_code_brings_a_token_set_once_and_a_replay_ends_it() {
    let service = OAuthFixture::new();
    let code = service.code();
    let set = exchange(&service, &code, &proof(), 59).unwrap();
    assert_eq!((set.token_type, set.expires_in), ("Bearer", 1000));
    assert_eq!(set.scope, "openid roles user");
    let claims = verify(&service, set.id_token.as_ref().unwrap(), "spa");
    let second = |second| at(second).as_second();
    let expected = json!({
        "iss": ISSUER, "sub": service.user.to_string(), "aud": "spa", "exp": second(1059),
        "iat": second(59), "auth_time": second(0), "nonce": "n",
        "at_hash": at_hash(&set.access_token), "roles": ["ROLE_OFP"], "name": "Ada Byron",
        "family_name": "Byron", "given_name": "Ada", "user_id": service.user.0,
    });
    assert_eq!(claims, expected);
    assert!(service.is_live(&set.access_token, 60));
    // Long after its expiry, a used code is still known.
    assert_eq!(code_of(exchange(&service, &code, &proof(), 500)), OAuthErrorCode::InvalidGrant);
    assert!(!service.is_live(&set.access_token, 500));
    let form = format!(
        "client_id=spa&grant_type=refresh_token&refresh_token={}",
        set.refresh_token.unwrap()
    );
    assert_eq!(code_of(service.token(&form, 500)), OAuthErrorCode::InvalidGrant);
    assert_eq!(service.count("families"), 0);
}

#[test]
fn a_code_without_its_proof_brings_nothing_and_stays() {
    let service = OAuthFixture::new();
    let code = service.code();
    let other = "x".repeat(43);
    for rest in [
        "redirect_uri=https://spa.test/cb".to_owned(),
        format!("code_verifier={VERIFIER}"),
        format!("code_verifier={VERIFIER}&redirect_uri=https://spa.test/cb%3Ftenant=a%2520b"),
        format!("code_verifier={other}&redirect_uri=https://spa.test/cb"),
        format!("code_verifier={CHALLENGE}&redirect_uri=https://spa.test/cb"),
        "code_verifier=short&redirect_uri=https://spa.test/cb".to_owned(),
    ] {
        assert_eq!(
            code_of(exchange(&service, &code, &rest, 1)),
            OAuthErrorCode::InvalidGrant,
            "{rest}"
        );
    }
    let form = format!("{WEB}&grant_type=authorization_code&code={code}&{}", proof());
    assert_eq!(code_of(service.token(&form, 1)), OAuthErrorCode::InvalidGrant);
    assert_eq!(code_of(exchange(&service, &code, &proof(), 60)), OAuthErrorCode::InvalidGrant);
    let cut = &code[..42];
    assert_eq!(code_of(exchange(&service, cut, &proof(), 1)), OAuthErrorCode::InvalidGrant);
    assert!(exchange(&service, &code, &proof(), 59).is_ok());
}

#[test]
fn a_verifier_without_a_challenge_before_is_refused() {
    let service = OAuthFixture::new();
    let code = parameter(&service.authorize("client_id=web&response_type=code", 0), "code");
    let form = format!("{WEB}&grant_type=authorization_code&code={code}");
    let with_verifier = format!("{form}&code_verifier={VERIFIER}");
    assert_eq!(code_of(service.token(&with_verifier, 1)), OAuthErrorCode::InvalidGrant);
    let elsewhere = format!("{form}&redirect_uri=https://evil.test/");
    assert_eq!(code_of(service.token(&elsewhere, 1)), OAuthErrorCode::InvalidGrant);
    assert!(service.token(&format!("{form}&redirect_uri=https://web.test/cb"), 1).is_ok());
}

#[test]
fn implicit_answers_bring_tokens_in_the_fragment_and_no_refresh_token() {
    let service = OAuthFixture::new();
    let query =
        "client_id=web&response_type=id_token+token&nonce=n%22&state=s&scope=roles+customer+email";
    let target = service.authorize(query, 10);
    assert!(target.starts_with("https://web.test/cb#access_token="), "{target}");
    assert_eq!(find_parameter(&target, "refresh_token"), None);
    let expected = [
        ("token_type", "Bearer"),
        ("expires_in", "1000"),
        ("scope", "roles email customer"),
        ("state", "s"),
        ("iss", ISSUER),
    ];
    for (name, value) in expected {
        assert_eq!(parameter(&target, name), value);
    }
    let access_token = parameter(&target, "access_token");
    let claims = verify(&service, &parameter(&target, "id_token"), "web");
    assert_eq!(claims["at_hash"], at_hash(&access_token));
    assert_eq!(claims["nonce"], "n\"");
    assert_eq!(claims["customer_id"], 7);
    assert_eq!(claims["customer_name"], "Gazette");
    assert_eq!(claims["department"], "Foto");
    assert_eq!(claims["email"], "ada@example.com");
    assert_eq!(claims.get("name"), None);
    let info = service.run(service.oauth.user_info(&access_token, at(11))).unwrap().unwrap();
    let expected = json!({
        "sub": service.user.to_string(), "scope": "roles email customer",
        "email": "ada@example.com", "roles": ["ROLE_OFP"], "customer_id": 7,
        "customer_name": "Gazette", "department": "Foto",
    });
    assert_eq!(info, expected);

    let target = service.authorize("client_id=web&response_type=id_token&nonce=n", 10);
    assert_eq!(find_parameter(&target, "access_token"), None);
    let claims = verify(&service, &parameter(&target, "id_token"), "web");
    assert_eq!(claims.get("at_hash"), None);
    assert_eq!(service.count("families"), 1);
}

#[test]
fn a_password_brings_a_token_set_when_the_scope_includes_roles() {
    let service = OAuthFixture::new();
    let form = |rest: &str| format!("{WEB}&grant_type=password&username=ada&{rest}");
    let set = service.log_in(5);
    let text = serde_json::to_value(&set).unwrap();
    let names: Vec<_> = text.as_object().unwrap().keys().map(String::as_str).collect();
    let expected =
        ["access_token", "token_type", "expires_in", "refresh_token", "id_token", "scope"];
    assert_eq!(names, expected);
    let claims = verify(&service, set.id_token.as_ref().unwrap(), "web");
    assert_eq!((&claims["auth_time"], claims.get("nonce")), (&json!(at(5).as_second()), None));
    let second = service.refresh(&set.refresh_token.unwrap(), 9).unwrap();
    let claims = verify(&service, second.id_token.as_ref().unwrap(), "web");
    assert_eq!((&claims["auth_time"], claims.get("nonce")), (&json!(at(5).as_second()), None));

    for rest in ["password=pass+word", "password=pass+word&scope=email", "password=x&scope=x"] {
        assert_eq!(code_of(service.token(&form(rest), 5)), OAuthErrorCode::InvalidScope, "{rest}");
    }
    let missing = service.token(&form("password=&scope=roles"), 5);
    assert_eq!(code_of(missing), OAuthErrorCode::InvalidRequest);
    for _ in 0..3 {
        let wrong = service.token(&form("password=wrong&scope=roles"), 5);
        assert_eq!(code_of(wrong), OAuthErrorCode::InvalidGrant);
    }
    let throttled = service.token(&form("password=pass+word&scope=roles"), 6).err().unwrap();
    assert_eq!(throttled.code, OAuthErrorCode::TemporarilyUnavailable);
    assert!(throttled.retry_after_s.is_some_and(|wait_s| (1..=60).contains(&wait_s)));
}

#[test]
fn a_client_that_may_not_refresh_gets_no_refresh_token() {
    let service = OAuthFixture::new();
    let form = "client_id=server&client_secret=server%20secret%2B1&grant_type=password\
                &username=ada&password=pass+word&scope=roles";
    assert_eq!(service.token(form, 0).unwrap().refresh_token, None);
    let form = "client_id=server&client_secret=server%20secret%2B1&grant_type=refresh_token\
                &refresh_token=x";
    assert_eq!(code_of(service.token(form, 0)), OAuthErrorCode::UnauthorizedClient);
}

#[test]
fn clients_authenticate_in_one_way_before_anything_else_is_looked_at() {
    let service = OAuthFixture::new();
    let check = |header: Option<&str>, form: &str, code, challenge| {
        let encoded = header.map(|header| STANDARD.encode(header));
        let form = OAuthParameters::parse(form).unwrap();
        let basic = encoded.as_deref();
        let request = ClientForm { form: &form, basic, address: ADDRESS, now: at(0) };
        let outcome = service.run(service.oauth.token(request));
        let error = outcome.err().unwrap();
        assert_eq!((error.code, error.challenge), (code, challenge), "{header:?} {form:?}");
    };
    use OAuthErrorCode::{InvalidClient, InvalidGrant, InvalidRequest, UnsupportedGrantType};
    // The client is authenticated, since the error is about the next parameter.
    check(Some("web:web+secret%2B1"), "", InvalidRequest, false);
    check(Some("web:web%20secret%2b1"), "client_id=web&grant_type=x", UnsupportedGrantType, false);
    check(Some("spa:"), "grant_type=implicit", UnsupportedGrantType, false);
    check(None, WEB, InvalidRequest, false);
    check(None, "client_id=spa&grant_type=refresh_token&refresh_token=x", InvalidGrant, false);
    // The client authenticates in two ways, or repeats one.
    check(Some("web:web+secret%2B1"), "client_secret=web", InvalidRequest, false);
    check(Some("web:web+secret%2B1"), "client_id=spa", InvalidRequest, false);
    check(None, "client_id=web&client_id=web", InvalidRequest, false);
    // Failed authentication is reported before any other error.
    for header in [
        "web:wrong",
        "web:web secret+1",
        "web:",
        "web",
        "nobody:x",
        "spa:x",
        "off:off+secret%2B1",
        "%:x",
        "",
    ] {
        check(Some(header), "grant_type=x", InvalidClient, true);
    }
    for form in [
        "",
        "client_id=web",
        "client_id=nobody",
        "client_id=nobody&client_secret=x",
        "client_id=spa&client_secret=x",
        "client_id=web&client_secret=",
        "client_id=off&client_secret=off%20secret%2B1",
    ] {
        check(None, form, InvalidClient, false);
    }
    let form = OAuthParameters::parse("").unwrap();
    let request = ClientForm { form: &form, basic: Some("%%%"), address: ADDRESS, now: at(0) };
    let outcome = service.run(service.oauth.token(request));
    assert_eq!(code_of(outcome), InvalidClient);
}

#[test]
fn revocation_ends_a_token_of_the_client_and_none_of_another() {
    let service = OAuthFixture::new();
    let first = service.log_in(0);
    let other = |token: &str| service.revoke(&format!("client_id=spa&token={token}"), 0);
    assert_eq!(code_of(other(&first.access_token)), OAuthErrorCode::InvalidGrant);
    let refresh_token = first.refresh_token.unwrap();
    assert_eq!(code_of(other(&refresh_token)), OAuthErrorCode::InvalidGrant);
    assert!(service.is_live(&first.access_token, 0));

    let own = |token: &str| service.revoke(&format!("{WEB}&token={token}&token_type_hint=x"), 0);
    own(&first.access_token).unwrap();
    assert!(!service.is_live(&first.access_token, 0));
    let second = service.refresh(&refresh_token, 0).unwrap();
    own(&second.refresh_token.unwrap()).unwrap();
    assert!(!service.is_live(&second.access_token, 0));
    own("unknown").unwrap();
    assert_eq!(code_of(service.revoke(WEB, 0)), OAuthErrorCode::InvalidRequest);
    assert_eq!(code_of(service.revoke("client_id=web&token=x", 0)), OAuthErrorCode::InvalidClient);
}

#[test]
fn a_failing_database_fails_the_revocation_loudly() {
    let service = OAuthFixture::new();
    let set = service.log_in(0);
    let hide = service.auth.db().write_blocking(|tx| tx.hide_table("refresh_tokens"));
    hide.unwrap();
    let error = service.revoke(&format!("{WEB}&token={}", set.access_token), 0).err().unwrap();
    assert_eq!(error.code, OAuthErrorCode::ServerError);
    assert!(error.source.is_some());
    assert!(service.is_live(&set.access_token, 0));
}

#[test]
fn what_ended_is_logged_for_other_processes() {
    let service = OAuthFixture::new();
    let mut follower = service.auth.db().log_follower().unwrap();
    let set = service.log_in(0);
    let hash = ContentHash::new(set.access_token.as_bytes());
    let code = service.code();
    let from_code = exchange(&service, &code, &proof(), 1).unwrap();
    let hash_of_code = ContentHash::new(from_code.access_token.as_bytes());
    assert_eq!(follower.changes().unwrap().accounts, []);
    service.refresh(&set.refresh_token.unwrap(), 1).unwrap();
    assert!(exchange(&service, &code, &proof(), 1).is_err());
    use crate::storage::database::AccountChange::Token;
    assert_eq!(follower.changes().unwrap().accounts, [Token(hash), Token(hash_of_code)]);
}

#[test]
fn two_processes_use_one_key() {
    let service = OAuthFixture::new();
    let other = service.another();
    assert_eq!(service.run(service.oauth.key_set()), service.run(other.key_set()));
    let keys = service.run(service.oauth.key_set());
    let [key] = keys["keys"].as_array().unwrap().as_slice() else { panic!("{keys}") };
    let names: Vec<_> = key.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["kty", "use", "alg", "kid", "n", "e"]);
    assert_eq!(
        (&key["kty"], &key["alg"], &key["e"]),
        (&json!("RSA"), &json!("RS256"), &json!("AQAB"))
    );
    assert_eq!(URL_SAFE_NO_PAD.decode(key["n"].as_str().unwrap()).unwrap().len(), 256);
}

#[test]
fn a_consent_covers_what_was_given_before() {
    let service = OAuthFixture::new();
    let request =
        |scope: &str| service.request(&format!("client_id=web&response_type=code&scope={scope}"));
    let is_consented =
        |scope: &str| service.run(service.oauth.is_consented(&request(scope), service.user));
    assert!(!is_consented("roles").unwrap());
    service.run(service.oauth.consent(&request("roles"), service.user, at(0))).unwrap();
    assert!(is_consented("roles").unwrap() && !is_consented("roles+email").unwrap());
    service.run(service.oauth.consent(&request("email"), service.user, at(0))).unwrap();
    assert!(is_consented("roles+email").unwrap() && !is_consented("admin").unwrap());
}

#[test]
fn unknown_and_inactive_clients_are_shown_a_page() {
    let service = OAuthFixture::new();
    for name in ["nobody", "off"] {
        let query =
            format!("client_id={name}&response_type=code&redirect_uri=https://{name}.test/cb");
        let parameters = OAuthParameters::parse(&query).unwrap();
        let outcome = service.run(service.oauth.request(&parameters));
        assert!(matches!(outcome, Err(AuthorizationError::Page(_))), "{name}");
    }
}

#[test]
fn a_session_ends_with_its_time_or_when_it_is_closed() {
    let service = OAuthFixture::new();
    let is_open = |secret: &crate::access::auth::RandomSecret, second| {
        service.run(service.auth.session(secret.reveal(), at(second))).unwrap().is_some()
    };
    let first = service.open_session(0);
    assert!(is_open(&first, 499) && !is_open(&first, 500));
    service.run(service.oauth.close_session(first.reveal(), at(1))).unwrap();
    assert!(!is_open(&first, 1));
    service.run(service.oauth.close_session("unknown", at(1))).unwrap();

    let open = |second| service.open_session(second);
    let oldest = open(2);
    assert!(is_open(&oldest, 2));
    for second in 0..SESSIONS_MAX {
        open(3 + i64::try_from(second).unwrap());
    }
    assert!(!is_open(&oldest, 3));
    assert_eq!(service.count("sessions"), SESSIONS_MAX);
}

#[test]
fn a_user_has_so_many_authorizations_of_a_client_and_the_oldest_gives_way() {
    let service = OAuthFixture::new();
    let oldest = service.log_in(0);
    assert!(service.is_live(&oldest.access_token, 0));
    let user = service.user;
    let write = service.auth.write(move |tx| {
        for _ in 0..FAMILIES_MAX {
            let scopes = model::account::ScopeSet::NONE;
            let client_id = "web".to_owned();
            let new =
                crate::storage::database::NewFamily { user, client_id, scopes, auth_time: at(0) };
            tx.open_family(&new, at(0))?;
        }
        Ok(())
    });
    service.run(write).unwrap();
    assert_eq!(service.count("families"), FAMILIES_MAX);
    assert!(!service.is_live(&oldest.access_token, 0));
}

#[test]
fn a_sweep_removes_what_expired_and_nothing_else() {
    let service = OAuthFixture::new();
    let tables = || {
        ["families", "codes", "access_tokens", "refresh_tokens", "sessions"]
            .map(|table| service.count(table))
    };
    let set = service.log_in(0);
    service.refresh(&set.refresh_token.unwrap(), 10).unwrap();
    // The client logs in with a browser.
    service.code();
    let sweep = |second| {
        let mut rounds = 0;
        while service.run(service.oauth.sweep(at(second))).unwrap() > 0 {
            rounds += 1;
            assert!(rounds < 10);
        }
        tables()
    };
    assert_eq!(sweep(59), [2, 1, 1, 2, 1]);
    assert_eq!(sweep(61), [1, 0, 1, 2, 1]);
    assert_eq!(sweep(501), [1, 0, 1, 2, 0]);
    assert_eq!(sweep(1011), [1, 0, 0, 2, 0]);
    assert_eq!(sweep(5001), [1, 0, 0, 1, 0]);
    assert_eq!(service.count("account_log"), 1, "the last row stays");
    assert_eq!(sweep(5011), [0, 0, 0, 0, 0]);
}

#[test]
fn the_discovery_document_describes_the_service() {
    let service = OAuthFixture::new();
    let document = service.oauth.discovery();
    for (name, value) in [
        ("issuer", json!(ISSUER)),
        ("authorization_endpoint", json!("https://auth.test/o/oauth2/auth")),
        ("token_endpoint", json!("https://auth.test/o/oauth2/token")),
        ("revocation_endpoint", json!("https://auth.test/o/oauth2/revoke")),
        ("jwks_uri", json!("https://auth.test/o/oauth2/keys")),
        ("userinfo_endpoint", json!("https://auth.test/o/v2/user")),
        ("response_types_supported", json!(["code", "token", "id_token", "id_token token"])),
        ("response_modes_supported", json!(["query", "fragment"])),
        ("code_challenge_methods_supported", json!(["S256"])),
        ("prompt_values_supported", json!(["none", "login", "consent", "select_account"])),
        ("authorization_response_iss_parameter_supported", json!(true)),
        ("request_uri_parameter_supported", json!(false)),
    ] {
        assert_eq!(document[name], value, "{name}");
    }
    let scopes = document["scopes_supported"].as_array().unwrap();
    assert!(scopes.contains(&json!("roles")) && scopes.len() == 8, "{scopes:?}");
}
