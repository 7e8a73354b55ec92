//! Any parameters are an authorization request or an error, and every redirect goes to an exactly registered URI,
//! without control characters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::account::{GrantType, OAuthClient, ScopeSet};
use wirephoto::access::oauth::{AuthorizationError, OAuthParameters, parse_request};

const ISSUER: &str = "https://issuer.test";
const ADDRESSES: [&str; 2] = ["https://client.test/cb?a=1", "test.client:/cb"];

// The first byte selects the client; the rest is the query.
fuzz_target!(|data: &[u8]| {
    let Some((kind, query)) = data.split_first() else { return };
    let Ok(query) = std::str::from_utf8(query) else { return };
    if let Ok(scopes) = ScopeSet::parse(query) {
        assert_eq!(ScopeSet::parse(&scopes.to_string()), Ok(scopes));
    }
    let Ok(parameters) = OAuthParameters::parse(query) else { return };
    let addresses = ADDRESSES[..usize::from(kind & 1) + 1].iter();
    let client = OAuthClient {
        client_id: "c".to_owned(),
        name: "Client".to_owned(),
        secret: (kind & 2 == 0).then(|| "hash".to_owned()),
        redirect_uris: addresses.map(|address| (*address).to_owned()).collect(),
        grants: vec![GrantType::AuthorizationCode, GrantType::Implicit],
        active: true,
        scopes_enforced: false,
        access_token_s: None,
        read_only: false,
    };
    let target = match parse_request(&parameters, &client, ISSUER) {
        Ok(request) => request.redirect_uri,
        Err(AuthorizationError::Redirect(target)) => {
            assert!(target.bytes().all(|byte| byte.is_ascii_graphic()), "{target:?}");
            target
        }
        Err(AuthorizationError::Page(_)) => return,
        Err(AuthorizationError::Failed(error)) => panic!("{error}"),
    };
    let registered = |address: &String| {
        target
            .strip_prefix(address.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['?', '&', '#']))
    };
    assert!(client.redirect_uris.iter().any(registered), "{target:?}");
});
