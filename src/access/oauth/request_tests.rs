//! Which authorization requests are accepted, and the addresses of their responses.

use proptest::prelude::*;

use super::{
    AuthorizationError, AuthorizationRequest, OAuthParameters,
    parameters::encode,
    request::{self, Prompt},
    test_fixture::{CHALLENGE, ISSUER, client, find_parameter},
};
use crate::runtime::limits::ECHO_BYTES_MAX;
use model::account::{GrantType, OAuthClient};

const SPA: &str = "redirect_uri=https://spa.test/cb&code_challenge_method=S256&state=s%26&\
    code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

fn confidential(name: &str) -> OAuthClient {
    OAuthClient { secret: Some("hash".to_owned()), ..client(name) }
}

fn parse(client: &OAuthClient, query: &str) -> Result<AuthorizationRequest, AuthorizationError> {
    request::parse(&OAuthParameters::parse(query).unwrap(), client, ISSUER)
}

/// Returns the error for the client, with the character before the parameters.
fn refusal(client: &OAuthClient, query: &str) -> (char, String) {
    let Err(AuthorizationError::Redirect(target)) = parse(client, query) else {
        panic!("{query} is not answered by redirect")
    };
    assert_eq!(find_parameter(&target, "iss").as_deref(), Some(ISSUER), "{target}");
    let rest = target.strip_prefix(&client.redirect_uris[0]).unwrap();
    (rest.chars().next().unwrap(), find_parameter(&target, "error").unwrap())
}

#[test]
fn ok_requests() {
    let check = |client: &OAuthClient, query: &str, scopes: &str| {
        let request = parse(client, query).unwrap();
        assert_eq!(request.scopes.to_string(), scopes, "{query}");
        assert_eq!(request.client_name, client.name);
        request
    };
    let (spa, web) = (client("spa"), confidential("web"));
    let request = check(&spa, &format!("response_type=code&{SPA}"), "roles");
    assert_eq!(request.challenge.as_deref(), Some(CHALLENGE));
    assert!(request.named_redirect_uri && request.nonce.is_none());
    assert_eq!(
        request.address(ISSUER, vec![("code", "c")]),
        "https://spa.test/cb?code=c&state=s%26&iss=https%3A%2F%2Fauth.test"
    );
    let request = check(&web, "response_type=code&scope=openid+email", "openid email");
    assert!(!request.named_redirect_uri && request.challenge.is_none());
    assert_eq!(request.redirect_uri, "https://web.test/cb");
    let query = "response_type=code&response_mode=fragment&prompt=login+consent&max_age=60";
    let request = check(&web, query, "roles");
    assert_eq!(request.address(ISSUER, vec![]), "https://web.test/cb#iss=https%3A%2F%2Fauth.test");
    assert!(request.prompt.contains(&Prompt::Login) && request.prompt.contains(&Prompt::Consent));
    assert!(
        !request.prompt.contains(&Prompt::None)
            && !request.prompt.contains(&Prompt::SelectAccount)
    );
    assert_eq!(request.max_age_s, Some(60));
    for query in [
        "response_type=token&scope=roles&code_challenge=x",
        "response_type=id_token&scope=roles&nonce=n",
        "response_type=id_token+token&scope=roles&nonce=n&response_mode=fragment",
        "response_type=token+id_token&scope=roles&nonce=n&unknown=1&unknown=2&display=page",
    ] {
        let request = check(&web, query, "roles");
        assert!(request.address(ISSUER, vec![]).starts_with("https://web.test/cb#iss="));
    }
    let query = "redirect_uri=https://spa.test/cb?tenant%3Da%2520b&response_type=code&";
    let request =
        check(&spa, &SPA.replacen("redirect_uri=https://spa.test/cb&", query, 1), "roles");
    let answer = request.address(ISSUER, vec![("code", "c")]);
    assert!(answer.starts_with("https://spa.test/cb?tenant=a%20b&code=c&"), "{answer}");
}

#[test]
fn err_requests_whose_address_is_known_go_to_the_client() {
    let check = |client: &OAuthClient, query: &str, place, error: &str| {
        assert_eq!(refusal(client, query), (place, error.to_owned()), "{query}");
    };
    let (spa, web, server) = (client("spa"), confidential("web"), confidential("server"));
    let invalid = |query: &str| check(&web, query, '?', "invalid_request");
    invalid("scope=roles");
    invalid("response_type=");
    invalid("response_type=code&response_type=code");
    invalid("response_type=code&state=a&state=b");
    invalid("response_type=code&scope=roles&scope=roles");
    invalid("response_type=code&response_mode=form_post");
    invalid("response_type=code&prompt=none+login");
    invalid("response_type=code&prompt=create");
    invalid("response_type=code&max_age=-1");
    invalid("response_type=code&max_age=%2B1");
    invalid("response_type=code&max_age=99999999999999999999");
    invalid("response_type=code&code_challenge_method=S256");
    invalid(&format!("response_type=code&code_challenge={CHALLENGE}"));
    invalid(&format!("response_type=code&code_challenge={CHALLENGE}&code_challenge_method=plain"));
    invalid("response_type=code&code_challenge=short&code_challenge_method=S256");
    invalid(&format!(
        "response_type=code&code_challenge={CHALLENGE}%0a&code_challenge_method=S256"
    ));
    invalid(&format!("response_type=code&state={}", "x".repeat(ECHO_BYTES_MAX + 1)));
    invalid(&format!("response_type=code&nonce={}", "x".repeat(ECHO_BYTES_MAX + 1)));
    let redirect = "redirect_uri=https://spa.test/cb";
    check(&spa, &format!("response_type=code&{redirect}"), '?', "invalid_request");
    check(&web, "response_type=id_token", '#', "invalid_request");
    check(&web, "response_type=token&response_mode=query", '#', "invalid_request");
    check(&web, "response_type=token&response_mode=form_post", '#', "invalid_request");
    for query in ["none", "code+code", "CODE", "+code"] {
        let query = format!("response_type={query}");
        check(&web, &query, '?', "unsupported_response_type");
    }
    for query in ["code+token", "code+id_token", "token+token"] {
        let query = format!("response_type={query}&nonce=n");
        check(&web, &query, '#', "unsupported_response_type");
    }
    check(&server, "response_type=token", '#', "unauthorized_client");
    let implicit = OAuthClient { grants: vec![GrantType::Implicit], ..confidential("web") };
    check(&implicit, "response_type=code", '?', "unauthorized_client");
    check(&web, "response_type=code&scope=roles+x", '?', "invalid_scope");
    check(&web, "response_type=code&scope=roles++email", '?', "invalid_scope");
    check(&web, "response_type=token&scope=%22", '#', "invalid_scope");
    check(&web, "response_type=code&request=x", '?', "request_not_supported");
    check(&web, "response_type=code&request_uri=x", '?', "request_uri_not_supported");
    check(&web, "response_type=code&registration=x", '?', "registration_not_supported");
}

#[test]
fn err_requests_whose_address_is_not_known_go_nowhere() {
    let check = |client: &OAuthClient, query: &str| {
        let outcome = parse(client, &format!("response_type=code&{query}"));
        assert!(matches!(outcome, Err(AuthorizationError::Page(_))), "{query}");
    };
    let (spa, web) = (client("spa"), confidential("web"));
    check(&spa, "");
    for uri in [
        "https://web.test/cb/",
        "https://web.test/cb?",
        "https://web.test/cb?x=1",
        "https://web.test/CB",
        "https://web.test:443/cb",
        "https://WEB.test/cb",
        "https://web.test/cb%23",
        "https://web.test/cb%20",
        "https://web.test/cb%00",
        "https://web.test/c%2562",
        "https://evil.test/cb",
        "https://web.test@evil.test/cb",
        "//web.test/cb",
        "javascript:alert(1)",
    ] {
        check(&web, &format!("redirect_uri={uri}"));
    }
    let none = OAuthClient { redirect_uris: Vec::new(), ..client("web") };
    check(&none, "");
    let bad = "https://web.test/cb\r\nx: y".to_owned();
    let bad = OAuthClient { redirect_uris: vec![bad], ..client("web") };
    check(&bad, "");
    check(&bad, "redirect_uri=https://web.test/cb%0D%0Ax:%20y");
}

#[test]
fn a_loopback_address_may_have_any_port_and_no_other_difference() {
    let accepts = |registered: &str, requested: &str| {
        let uris = vec![registered.to_owned()];
        let client = OAuthClient { redirect_uris: uris, ..confidential("web") };
        let query = format!("response_type=code&redirect_uri={requested}");
        parse(&client, &query).is_ok_and(|request| request.redirect_uri == requested)
    };
    for (registered, requested) in [
        ("http://127.0.0.1/cb", "http://127.0.0.1:53211/cb"),
        ("http://127.0.0.1:9000/cb", "http://127.0.0.1:53211/cb"),
        ("http://127.0.0.1:9000/cb", "http://127.0.0.1/cb"),
        ("http://[::1]/cb", "http://[::1]:1/cb"),
        ("http://127.0.0.1", "http://127.0.0.1:1"),
    ] {
        assert!(accepts(registered, requested), "{registered} {requested}");
    }
    for (registered, requested) in [
        ("http://127.0.0.1/cb", "http://127.0.0.1:1/other"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:1"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:1/cb?x=1"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:99999/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:%2B1/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1.evil.test/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:1@evil.test/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.2:1/cb"),
        ("http://127.0.0.1/cb", "https://127.0.0.1:1/cb"),
        ("http://127.0.0.1/cb", "http://[::1]:1/cb"),
        ("https://127.0.0.1/cb", "https://127.0.0.1:1/cb"),
        ("http://localhost/cb", "http://localhost:1/cb"),
        ("http://web.test/cb", "http://web.test:1/cb"),
    ] {
        assert!(!accepts(registered, requested), "{registered} {requested}");
    }
}

#[test]
fn err_requests_without_one_client_go_nowhere() {
    for query in
        ["", "client_id=", "client_id=a&client_id=a", "client_id=a&redirect_uri=b&redirect_uri=b"]
    {
        let parameters = OAuthParameters::parse(query).unwrap();
        let outcome = request::client_id(&parameters);
        assert!(matches!(outcome, Err(AuthorizationError::Page(_))), "{query}");
    }
}

#[test]
fn a_request_prints_no_secrets() {
    let request = parse(&client("spa"), &format!("response_type=code&nonce=dark&{SPA}")).unwrap();
    let text = format!("{request:?}");
    assert!(text.contains("https://spa.test/cb"), "{text}");
    assert!(!text.contains("dark") && !text.contains(CHALLENGE) && !text.contains("s&"), "{text}");
}

fn value() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "code",
        "token",
        "id_token",
        "id_token token",
        "query",
        "fragment",
        "https://spa.test/cb",
        "https://spa.test/cb?tenant=a%20b",
        "https://spa.test/cb#",
        "https://evil.test/",
        "roles",
        "roles email",
        "none",
        "S256",
        CHALLENGE,
        "0",
        "a\r\nLocation: https://evil.test/",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => any::<String>()]
}

fn name() -> impl Strategy<Value = String> {
    let names = [
        "client_id",
        "redirect_uri",
        "response_type",
        "response_mode",
        "scope",
        "state",
        "nonce",
        "prompt",
        "max_age",
        "code_challenge",
        "code_challenge_method",
        "request",
    ];
    prop::sample::select(names.to_vec()).prop_map(str::to_owned)
}

/// Asserts that the target starts with a registered address and contains only characters that a header may
/// have.
fn assert_sound(target: &str, client: &OAuthClient) -> Result<(), TestCaseError> {
    let sound = client.redirect_uris.iter().any(|uri| {
        let separator = if uri.contains('?') { '&' } else { '?' };
        let rest = target.strip_prefix(uri.as_str());
        rest.is_some_and(|rest| rest.starts_with([separator, '#']))
    });
    prop_assert!(sound, "{target:?}");
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte);
    prop_assert!(target.bytes().all(is_plain), "{target:?}");
    prop_assert!(target.matches('#').count() <= 1, "{target:?}");
    prop_assert!(reqwest::Url::parse(target).is_ok(), "{target:?}");
    prop_assert!(find_parameter(target, "iss").as_deref() == Some(ISSUER));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_parameters_lead_anywhere_but_to_a_registered_address(
        pairs in prop::collection::vec((name(), value()), 0..12),
        is_public in any::<bool>(),
    ) {
        let parts = pairs.iter().map(|(name, value)| format!("{name}={}", encode(value)));
        let query = parts.collect::<Vec<_>>().join("&");
        let mut client = if is_public { client("spa") } else { confidential("spa") };
        client.grants.push(GrantType::Implicit);
        match parse(&client, &query) {
            Err(AuthorizationError::Page(_)) => {}
            Err(AuthorizationError::Redirect(target)) => assert_sound(&target, &client)?,
            Err(AuthorizationError::Failed(error)) => prop_assert!(false, "{error}"),
            Ok(request) => {
                prop_assert!(client.redirect_uris.contains(&request.redirect_uri));
                assert_sound(&request.address(ISSUER, vec![("code", "a\n&b")]), &client)?;
                let code = super::OAuthErrorCode::AccessDenied;
                assert_sound(&request.refusal(ISSUER, code, "no\r\n\"x\""), &client)?;
            }
        }
    }
}
