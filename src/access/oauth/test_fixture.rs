//! A provider over a database in a temporary folder, for the tests of this module.

use std::{net::IpAddr, time::Duration};

use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{
    AuthorizationRequest, ClientForm, OAuth, OAuthParameters, TokenError, TokenLifetimes,
    TokenSet, parameters::decode,
};
use crate::access::auth::{Auth, HashLimits, LoginOutcome, RandomSecret};
use crate::storage::database::{AccountChange, Db, LoginBrowser, LoginOrigin};
use model::ContentHash;
use model::account::accounts_file::UserEntry;
use model::account::{GrantType, OAuthClient, UserId};

pub(super) const ISSUER: &str = "https://auth.test";
pub(super) const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
pub(super) const LIFETIMES: TokenLifetimes = TokenLifetimes {
    access_token_s: 1000,
    refresh_token_s: 5000,
    refresh_absolute_days: 1,
    session_s: 500,
};
/// A code verifier and its S256 challenge, from RFC 7636 appendix B.
pub(super) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(super) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// Returns a client: `web` is confidential and may do everything, `spa` is public, `server` is confidential
/// and may not refresh, `off` is not active. Secrets are `<name> secret+1`.
pub(super) fn client(name: &str) -> OAuthClient {
    let grants = match name {
        "spa" => vec![GrantType::AuthorizationCode, GrantType::RefreshToken],
        "server" => vec![GrantType::AuthorizationCode, GrantType::Password],
        _ => vec![
            GrantType::AuthorizationCode,
            GrantType::Implicit,
            GrantType::Password,
            GrantType::RefreshToken,
        ],
    };
    let mut redirect_uris = vec![format!("https://{name}.test/cb")];
    if name == "spa" {
        redirect_uris.push("https://spa.test/cb?tenant=a%20b".to_owned());
    }
    OAuthClient {
        client_id: name.to_owned(),
        name: format!("The {name}"),
        secret: None,
        redirect_uris,
        grants,
        active: name != "off",
        scopes_enforced: false,
        access_token_s: None,
        read_only: false,
    }
}

pub(super) struct OAuthFixture {
    pub(super) oauth: OAuth,
    pub(super) auth: Auth,
    pub(super) user: UserId,
    runtime: Runtime,
    dir: TempDir,
}

fn ada(active: bool) -> UserEntry {
    let entry = json!({ "userName": "ada", "roles": ["ROLE_OFP"], "active": active });
    serde_json::from_value(entry).unwrap()
}

impl OAuthFixture {
    pub(super) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (auth, oauth) = open(dir.path());
        let password = auth.hasher().hash("pass word").unwrap();
        let secrets = ["web", "server", "off"].map(|name| {
            let secret = auth.hasher().hash(&format!("{name} secret+1")).unwrap();
            OAuthClient { secret: Some(secret), ..client(name) }
        });
        let user = auth.db().write_blocking(move |tx| {
            tx.put_user(&ada(true), None, at(0))?;
            tx.plant_user("ada", &password)?;
            for client in secrets.iter().chain([&client("spa")]) {
                tx.plant_client(client)?;
            }
            Ok(tx.find_user_by_name("ada")?.unwrap().0.id)
        });
        Self { oauth, auth, user: user.unwrap(), runtime, dir }
    }

    /// Creates the provider of another process over the same database.
    pub(super) fn another(&self) -> OAuth {
        open(self.dir.path()).1
    }

    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(super) fn request(&self, query: &str) -> AuthorizationRequest {
        let parameters = OAuthParameters::parse(query).unwrap();
        self.run(self.oauth.request(&parameters)).unwrap()
    }

    /// Returns the parameters of the address to which `ada`, who logged in at `at(0)`, is redirected.
    pub(super) fn authorize(&self, query: &str, second: i64) -> String {
        let request = self.request(query);
        let account = self.run(self.auth.account(self.user)).unwrap().unwrap();
        let session = self.open_session(0);
        let work = self.oauth.authorize(&request, &account, session.reveal(), at(second));
        self.run(work).unwrap()
    }

    /// Opens a session of `ada`, who logs in by password at `at(second)`.
    pub(super) fn open_session(&self, second: i64) -> RandomSecret {
        let attempt = self.auth.login("ada", "pass word", [192, 0, 2, 1].into(), at(second));
        let LoginOutcome::Ok(login) = self.run(attempt).unwrap() else { panic!("ada logs in") };
        let browser = LoginBrowser { now: ContentHash::new(b"browser"), before: None };
        let opened = self.oauth.open_session(&login, LoginOrigin::default(), browser, at(second));
        self.run(opened).unwrap().unwrap()
    }

    /// Returns a code of `spa` from `at(0)`, with the challenge of [`VERIFIER`].
    pub(super) fn code(&self) -> String {
        let query = format!(
            "client_id=spa&redirect_uri=https://spa.test/cb&response_type=code&nonce=n\
             &scope=openid+roles+user&code_challenge={CHALLENGE}&code_challenge_method=S256"
        );
        parameter(&self.authorize(&query, 0), "code")
    }

    pub(super) fn token(&self, form: &str, second: i64) -> Result<TokenSet, TokenError> {
        let form = OAuthParameters::parse(form).unwrap();
        let request = ClientForm { form: &form, basic: None, address: ADDRESS, now: at(second) };
        self.run(self.oauth.token(request))
    }

    pub(super) fn log_in(&self, second: i64) -> TokenSet {
        let form = "client_id=web&client_secret=web%20secret%2B1&grant_type=password\
                    &username=ada&password=pass+word&scope=roles+email";
        self.token(form, second).unwrap()
    }

    pub(super) fn refresh(&self, token: &str, second: i64) -> Result<TokenSet, TokenError> {
        self.token(
            &format!(
                "client_id=web&client_secret=web%20secret%2B1&grant_type=refresh_token\
                 &refresh_token={token}"
            ),
            second,
        )
    }

    pub(super) fn revoke(&self, form: &str, second: i64) -> Result<(), TokenError> {
        let form = OAuthParameters::parse(form).unwrap();
        let address = [192, 0, 2, 1].into();
        let request = ClientForm { form: &form, basic: None, address, now: at(second) };
        self.run(self.oauth.revoke(request))
    }

    /// Returns whether the user endpoint accepts the access token.
    pub(super) fn is_live(&self, access_token: &str, second: i64) -> bool {
        self.run(self.oauth.user_info(access_token, at(second))).unwrap().is_some()
    }

    pub(super) fn count(&self, table: &'static str) -> usize {
        self.auth.db().write_blocking(move |tx| tx.count(table)).unwrap()
    }

    pub(super) fn disable_user(&self) {
        let write = self.auth.write(move |tx| tx.put_user(&ada(false), None, at(0)));
        self.run(write).unwrap();
    }

    pub(super) fn change_client(&self, client: OAuthClient) {
        let write = self.auth.write(move |tx| {
            tx.plant_client(&client)?;
            tx.log_account_change(AccountChange::Everything, at(0))
        });
        self.run(write).unwrap();
    }
}

fn open(dir: &std::path::Path) -> (Auth, OAuth) {
    let limits = HashLimits {
        // The cheapest hash that argon2 accepts, because the tests log in often.
        memory_kib: 8,
        iterations: 1,
        workers: 2,
        queue: 100,
        queue_per_address: 100,
        failures_per_user: 3,
        failures_per_user_total: 100,
        failures_per_address: 100,
        window: Duration::from_secs(60),
    };
    let auth = Auth::start(Db::scratch(dir).unwrap(), limits).unwrap();
    let oauth = OAuth::start(auth.clone(), format!("{ISSUER}/"), LIFETIMES, at(0)).unwrap();
    (auth, oauth)
}

/// Returns a parameter of a redirect address, decoded.
pub(super) fn parameter(address: &str, name: &str) -> String {
    find_parameter(address, name).unwrap()
}

pub(super) fn find_parameter(address: &str, name: &str) -> Option<String> {
    let pairs = address.split(['?', '#', '&']).filter_map(|part| part.split_once('='));
    let mut values = pairs.filter(|(own, _)| *own == name).map(|(_, value)| value);
    let value = values.next();
    assert!(values.next().is_none(), "{name} comes twice in {address}");
    value.map(|value| decode(value).unwrap())
}
