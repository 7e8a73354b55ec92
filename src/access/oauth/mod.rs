//! The OAuth2 and OpenID Connect provider: users log in here, and grant applications ("clients") access to their
//! data. The HTTP layer parses requests and shows pages; this module decides, and returns redirect addresses,
//! documents and errors.
//!
//! A client usually gets its tokens by the *authorization code flow*:
//!
//! 1. It sends the user's browser to the authorization endpoint. [`OAuth::request`] checks the parameters: the client
//!    is known, the redirect address is registered, the scopes exist.
//! 2. The user logs in, which opens a browser session ([`OAuth::open_session`]), and consents, unless
//!    [`OAuth::is_consented`] finds an earlier consent. [`OAuth::consent`] stores a new one.
//! 3. [`OAuth::authorize`] writes a code that is valid for a minute, and returns the redirect address that carries it
//!    to the client. [`OAuth::refuse`] returns the redirect address for a refusal.
//! 4. The client exchanges the code at the token endpoint ([`OAuth::token`]) for an access token, which its requests
//!    present, an id token, which tells it who the user is, and a refresh token, with which it gets new tokens later.
//!
//! Two more grants exist for integrations that need them, and the operator enables them per client (contract login-5).
//! With the *implicit grant*, step 3 puts tokens into the redirect address instead of a code. With the *password
//! grant*, the client sends the user's name and password to the token endpoint.
//!
//! Access tokens, refresh tokens and codes are random strings, of which the database holds only hashes. Id tokens are
//! signed JWTs; [`OAuth::key_set`] publishes the keys that verify them. All tokens that descend from one authorization
//! form a *family*. A code or refresh token is exchanged once: a second exchange shows that two parties have it, and
//! ends the family. The provider follows RFC 9700: PKCE, redirect addresses compared as text (but for the port of a
//! loopback address), `iss` in responses.
//!
//! | Module | Content |
//! | --- | --- |
//! | `parameters` | decodes form-urlencoded parameters |
//! | `request` | checks authorization requests |
//! | `redirect_response` | builds redirect addresses |
//! | `grant`, `client`, `exchange` | the token and revocation endpoints: requests, authentication of clients, transactions |
//! | `claims` | facts about the user in id tokens and at the user endpoint |
//! | `keys`, `rotation` | signing keys and their rotation |
//! | `discovery` | the metadata document |

mod claims;
mod client;
mod discovery;
mod error;
mod exchange;
mod grant;
mod keys;
mod parameters;
mod redirect_response;
#[cfg(test)]
mod refresh_tests;
mod request;
#[cfg(test)]
mod request_tests;
mod rotation;
#[cfg(test)]
mod test_fixture;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

pub use client::ClientForm;
pub use error::{AuthorizationError, OAuthErrorCode, TokenError};
pub use grant::TokenSet;
pub use parameters::{OAuthParameters, ParametersError};
pub use request::{AuthorizationRequest, Prompt, ResponseType, parse as parse_request};
pub use rotation::{list_signing_keys, published_until, rotate_signing_keys};

use crate::access::auth::{Auth, AuthenticatedLogin, RandomSecret};
use crate::runtime::error::{Error, Result};
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::limits::{OUTBOX_PER_USER_MAX, SWEEP_ROWS};
use crate::storage::audit::{self, AuditAction, CredentialKind, ObjectKind};
use crate::storage::database::{
    BrowserSession, DbError, LoginBrowser, LoginOrigin, NewCode, NewConsent, NewFamily,
    NewMessage, WriteTx,
};
use claims::IdToken;
use keys::SigningKeySet;
use model::ContentHash;
use model::account::{Account, MessageContent, UserId};
use rotation::published_since;

/// Seconds that an authorization code is valid.
const CODE_S: u32 = 60;
/// Seconds for which rows of the account log are kept; every process has read them by then.
const ACCOUNT_LOG_S: u32 = 3600;
/// Known browsers of one user.
const BROWSERS_MAX: usize = 50;

/// Lifetimes of tokens and sessions.
#[derive(Clone, Copy, Debug)]
pub struct TokenLifetimes {
    /// Lifetime of an access token and of the id token issued with it, in seconds.
    pub access_token_s: u32,
    /// Lifetime of a refresh token, in seconds; each refresh starts it again.
    pub refresh_token_s: u32,
    /// Days after the authorization until which its tokens can be refreshed.
    pub refresh_absolute_days: u32,
    /// Lifetime of a browser session, in seconds.
    pub session_s: u32,
}

/// The OAuth2 provider. Cheap to clone.
#[derive(Clone)]
pub struct OAuth {
    inner: Arc<OAuthInner>,
}

struct OAuthInner {
    auth: Auth,
    issuer: String,
    lifetimes: HotSwap<TokenLifetimes>,
    keys: HotSwap<CachedSigningKeys>,
}

/// The signing keys as of their last read.
struct CachedSigningKeys {
    keys: Arc<SigningKeySet>,
    /// The change counter of signing keys before they were read.
    changes: u64,
}

impl OAuth {
    /// Loads the signing key, or generates it if the database has none. Blocks.
    ///
    /// `issuer` is the base of the service's URLs; trailing slashes are removed.
    pub fn start(
        auth: Auth,
        mut issuer: String,
        lifetimes: TokenLifetimes,
        now: Timestamp,
    ) -> Result<Self> {
        let changes = auth.signing_key_changes();
        let keys = Arc::new(SigningKeySet::load(auth.db(), now)?);
        let keys = HotSwap::new(CachedSigningKeys { keys, changes });
        // Clients compare `iss` as text, so a slash would make it a different issuer.
        issuer.truncate(issuer.trim_end_matches('/').len());
        let lifetimes = HotSwap::new(lifetimes);
        Ok(Self { inner: Arc::new(OAuthInner { auth, issuer, lifetimes, keys }) })
    }

    /// Sets the lifetimes of tokens and sessions that are issued from now on.
    pub fn set_lifetimes(&self, lifetimes: TokenLifetimes) {
        self.inner.lifetimes.set(lifetimes);
    }

    /// Parses and checks an authorization request.
    ///
    /// Only a redirect address that the client has registered ever becomes part of a response.
    pub async fn request(
        &self,
        parameters: &OAuthParameters,
    ) -> Result<AuthorizationRequest, AuthorizationError> {
        let client_id = request::client_id(parameters)?;
        let name = client_id.to_owned();
        let client = self.inner.auth.db().read(move |tx| tx.find_client(&name)).await;
        let client = client.map_err(Error::from)?;
        match client.filter(|client| client.active) {
            Some(client) => request::parse(parameters, &client, &self.inner.issuer),
            None => request::unknown_client(client_id),
        }
    }

    /// Returns whether the user has consented to all scopes of the request, for the same response type.
    ///
    /// A public client without an https redirect needs consent each time, because a different program may
    /// receive its response.
    pub async fn is_consented(
        &self,
        request: &AuthorizationRequest,
        user: UserId,
    ) -> Result<bool> {
        if request.asks_each_time {
            return Ok(false);
        }
        let client_id = request.client_id.clone();
        let kind = request.response_type.as_str();
        let consented =
            self.inner.auth.db().read(move |tx| tx.find_consent(user, &client_id, kind)).await?;
        Ok(request.scopes.is_subset(consented))
    }

    /// Stores the user's consent to the scopes of the request.
    pub async fn consent(
        &self,
        request: &AuthorizationRequest,
        user: UserId,
        now: Timestamp,
    ) -> Result<()> {
        let event = audit::event(AuditAction::ConsentGiven)
            .with_object(ObjectKind::Consent, &request.client_id);
        let new = NewConsent {
            user,
            client_id: request.client_id.clone(),
            response_type: request.response_type.as_str(),
            scopes: request.scopes,
        };
        let writing = self.inner.auth.write(move |tx| {
            tx.write_consent(&new, now)?;
            tx.write_audit(&event.with_detail(new.scopes))
        });
        Ok(writing.await?)
    }

    /// Grants `request` to `user`, who is logged in by `session` (the value of the cookie) and has consented.
    /// Returns the address to which the browser is redirected.
    ///
    /// The session is checked in the transaction that writes the grant: a session that ended a moment ago, by
    /// logout or because its user was deactivated, grants nothing.
    pub async fn authorize(
        &self,
        request: &AuthorizationRequest,
        user: &Account,
        session: &str,
        now: Timestamp,
    ) -> Result<String> {
        let session = ContentHash::new(session.as_bytes());
        let family = NewFamily {
            user: user.user.id,
            client_id: request.client_id.clone(),
            scopes: request.scopes,
            // Replaced by the time of the login, which the transaction reads from the session.
            auth_time: now,
        };
        let granted = match request.response_type {
            ResponseType::Code => self.authorize_code(request, session, family, now).await?,
            ResponseType::Token | ResponseType::IdToken | ResponseType::IdTokenAndToken => {
                self.authorize_tokens(request, user, session, family, now).await?
            }
        };
        Ok(granted.unwrap_or_else(|| {
            self.refuse(request, OAuthErrorCode::LoginRequired, "the login has ended")
        }))
    }

    /// Writes a code, and returns the redirect address with it; `None` if the session has ended.
    async fn authorize_code(
        &self,
        request: &AuthorizationRequest,
        session: ContentHash,
        family: NewFamily,
        now: Timestamp,
    ) -> Result<Option<String>> {
        let code = RandomSecret::new()?;
        let hash = code.hash();
        let new = NewCode {
            // Only an address that the request named must be repeated with the code (RFC 6749 §4.1.3).
            redirect_uri: request.named_redirect_uri.then(|| request.redirect_uri.clone()),
            challenge: request.challenge.clone(),
            nonce: request.nonce.clone(),
            expires: after(now, CODE_S),
        };
        let writing = self.inner.auth.write(move |tx| {
            let Some(auth_time) = login_time(tx, &session, family.user, now)? else {
                return Ok(false);
            };
            let family = tx.open_family(&NewFamily { auth_time, ..family }, now)?;
            tx.write_code(&hash, family, &new)?;
            Ok(true)
        });
        let is_written = writing.await?;
        let pairs = vec![("code", code.reveal())];
        Ok(is_written.then(|| request.address(&self.inner.issuer, pairs)))
    }

    /// Performs the implicit grant: issues the tokens of the response type, never a refresh token, and returns the
    /// redirect address with them. Returns `None` if the session has ended.
    async fn authorize_tokens(
        &self,
        request: &AuthorizationRequest,
        user: &Account,
        session: ContentHash,
        family: NewFamily,
        now: Timestamp,
    ) -> Result<Option<String>> {
        let OAuthInner { auth, issuer, lifetimes, .. } = &*self.inner;
        // A client's own lifetime may only shorten the general one.
        let general_s = lifetimes.get().access_token_s;
        let access_token_s = request.access_token_s.map_or(general_s, |own| own.min(general_s));
        let expires = after(now, access_token_s);
        let access = RandomSecret::new()?;
        let hash = access.hash();
        let has_token = request.response_type.has_token();
        let event = audit::event(AuditAction::TokenIssued)
            .with_object(ObjectKind::Client, &request.client_id)
            .with_detail("implicit");
        let writing = auth.write(move |tx| {
            let auth_time = login_time(tx, &session, family.user, now)?;
            // An id token alone cannot be revoked or refreshed, so it needs no family.
            if let Some(auth_time) = auth_time.filter(|_| has_token) {
                let scopes = family.scopes;
                let id = tx.open_family(&NewFamily { auth_time, ..family }, now)?;
                tx.write_access_token(&hash, id, scopes, expires)?;
                tx.write_audit(&event)?;
            }
            Ok(auth_time)
        });
        let Some(auth_time) = writing.await? else { return Ok(None) };
        let access_token = has_token.then(|| access.reveal());
        let id_token = IdToken {
            issuer,
            client_id: &request.client_id,
            scopes: request.scopes,
            auth_time,
            nonce: request.nonce.as_deref(),
            access_token,
            issued: now,
            expires,
        };
        // Signing costs a millisecond, during which the write lock need not be held.
        let id_token = if request.response_type.has_id_token() {
            Some(self.inner.keys().await.sign(&id_token.claims(user))?)
        } else {
            None
        };
        let seconds = access_token_s.to_string();
        let scope = request.scopes.to_string();
        let mut pairs = Vec::new();
        if let Some(access_token) = access_token {
            pairs.extend([("access_token", access_token), ("token_type", "Bearer")]);
            pairs.extend([("expires_in", seconds.as_str()), ("scope", scope.as_str())]);
        }
        pairs.extend(id_token.as_deref().map(|id_token| ("id_token", id_token)));
        Ok(Some(request.address(issuer, pairs)))
    }

    /// Returns the address to which the browser is redirected when `request` is refused.
    pub fn refuse(
        &self,
        request: &AuthorizationRequest,
        error: OAuthErrorCode,
        description: &str,
    ) -> String {
        request.refusal(&self.inner.issuer, error, description)
    }

    /// Returns the claims that the user endpoint shows to the bearer of an access token; `None` if the token
    /// is unknown, expired or revoked.
    pub async fn user_info(&self, access_token: &str, now: Timestamp) -> Result<Option<Value>> {
        let auth = &self.inner.auth;
        let Some(token) = auth.token(access_token, now).await? else { return Ok(None) };
        let account = auth.account(token.user).await?;
        if let Some(account) = &account {
            // This endpoint authenticates by itself, and its log line names the user like others
            // (contract security-13).
            audit::note_caller(account, CredentialKind::AccessToken, Some(token.family.0));
        }
        Ok(account.map(|account| claims::user_info(&account, token.scopes)))
    }

    /// Returns the document at `/.well-known/openid-configuration`.
    pub fn discovery(&self) -> Value {
        discovery::document(&self.inner.issuer)
    }

    /// Returns the public keys for the verification of id tokens (RFC 7517).
    pub async fn key_set(&self) -> Value {
        self.inner.keys().await.key_set()
    }

    /// Opens a session for a user who has just logged in. Returns the value of the session cookie, or `None`
    /// if the login is no longer valid. A user who has used other browsers before, but never this one, gets a
    /// mail.
    pub async fn open_session(
        &self,
        login: &AuthenticatedLogin,
        from: LoginOrigin,
        browser: LoginBrowser,
        now: Timestamp,
    ) -> Result<Option<RandomSecret>> {
        let secret = RandomSecret::new()?;
        let hash = secret.hash();
        let expires = after(now, self.inner.lifetimes.get().session_s);
        let user = login.account.user.id;
        let session = BrowserSession { user, auth_time: now, expires, from };
        audit::note_caller(&login.account, CredentialKind::Password, None);
        let login = login.clone();
        let opening = self.inner.auth.write(move |tx| {
            // The password may have changed while its hash was compared.
            if !login.is_still_valid(tx)? {
                return Ok(false);
            }
            tx.write_session(&hash, &session)?;
            // A login with a new browser is mailed to its user (contract users-17).
            if tx.record_browser(user, &browser, BROWSERS_MAX, now)? {
                let LoginOrigin { browser, address } = session.from;
                let content = MessageContent::NewBrowser { browser, address };
                let message = NewMessage::about_account(user, content);
                tx.insert_message(&message, OUTBOX_PER_USER_MAX, now)?;
            }
            Ok(true)
        });
        Ok(opening.await?.then_some(secret))
    }

    /// Ends the session with the cookie value `session`, if it exists.
    pub async fn close_session(&self, session: &str, now: Timestamp) -> Result<()> {
        let hash = ContentHash::new(session.as_bytes());
        let event = audit::event(AuditAction::Logout);
        let closing = self.inner.auth.write(move |tx| {
            tx.end_session(&hash, now)?;
            tx.write_audit(&event)
        });
        Ok(closing.await?)
    }

    /// Removes expired rows, including counters of failed logins, and old entries of the account log; at most
    /// [`SWEEP_ROWS`] rows of a kind. Returns the number of removed rows; zero means that nothing is left to
    /// remove.
    pub async fn sweep(&self, now: Timestamp) -> Result<usize> {
        let OAuthInner { auth, lifetimes, .. } = &*self.inner;
        let log_span = SignedDuration::from_secs(i64::from(ACCOUNT_LOG_S));
        let log_end = now.checked_sub(log_span).unwrap_or(Timestamp::MIN);
        let failure_window = auth.failure_window(now);
        let retired_until = published_since(now, lifetimes.get().access_token_s);
        // Not by `Auth::write`: caches compare the time of tokens and sessions themselves.
        let sweeping = auth.db().write(move |tx| {
            let mut removed = tx.sweep_tokens(now, SWEEP_ROWS)?;
            removed += tx.sweep_families(now, SWEEP_ROWS)?;
            removed += tx.sweep_sessions(now, SWEEP_ROWS)?;
            removed += tx.sweep_password_links(now, SWEEP_ROWS)?;
            removed += tx.sweep_failed_logins(failure_window, SWEEP_ROWS)?;
            removed += tx.sweep_signing_keys(retired_until, now)?;
            removed += tx.sweep_account_log(log_end, SWEEP_ROWS)?;
            Ok(removed)
        });
        Ok(sweeping.await?)
    }
}

impl OAuthInner {
    /// Returns the signing keys, and reads them again if they may have changed.
    ///
    /// If the read fails, the known keys continue to sign.
    async fn keys(&self) -> Arc<SigningKeySet> {
        let cached = self.keys.get();
        // Read before the keys, so that a change during the read is noticed at the next use.
        let changes = self.auth.signing_key_changes();
        if cached.changes == changes {
            return Arc::clone(&cached.keys);
        }
        let read = self.auth.db().read(|tx| tx.list_signing_keys()).await;
        match read.map_err(Error::from).and_then(|keys| SigningKeySet::from_rows(&keys)) {
            Ok(keys) => {
                let keys = Arc::new(keys);
                self.keys.set(CachedSigningKeys { keys: Arc::clone(&keys), changes });
                keys
            }
            Err(cause) => {
                tracing::warn!("oauth: signing keys cannot be read, using cached ones: {cause}");
                Arc::clone(&cached.keys)
            }
        }
    }
}

/// Returns the time of the login with which `user` opened the session; `None` if the session has ended or the user
/// is not active.
fn login_time(
    tx: &WriteTx<'_>,
    session: &ContentHash,
    user: UserId,
    now: Timestamp,
) -> Result<Option<Timestamp>, DbError> {
    let Some(session) = tx.find_session(session)? else { return Ok(None) };
    let is_active = tx.find_user(user)?.is_some_and(|user| user.active);
    let is_current = session.user == user && session.expires > now;
    Ok((is_active && is_current).then_some(session.auth_time))
}

/// Returns the time `seconds` after `now`.
fn after(now: Timestamp, seconds: u32) -> Timestamp {
    let span = SignedDuration::from_secs(i64::from(seconds));
    now.checked_add(span).unwrap_or(Timestamp::MAX)
}
