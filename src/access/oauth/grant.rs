//! The token and the revocation endpoint: who asks, what for, what comes back.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    Inner, after,
    claims::IdToken,
    client::{self, ClientAuthentication},
    error::{OAuthErrorCode, TokenError},
    exchange::{self, Granted, NewTokens, Outcome, Proof, Revoked},
    parameters::Parameters,
};
use crate::access::auth::{Entered, Login, Secret};
use crate::runtime::error::Result;
use crate::storage::audit::{self, Action, Event, ObjectKind};
use crate::storage::database::{DbError, NewFamily, WriteTx};
use model::Hash;
use model::account::{Client, Grant, Scope, Scopes};

/// The parameters that mean something here. One that comes twice ends the request.
const KNOWN: [&str; 12] = [
    "grant_type",
    "client_id",
    "client_secret",
    "code",
    "redirect_uri",
    "code_verifier",
    "username",
    "password",
    "refresh_token",
    "scope",
    "token",
    "token_type_hint",
];

/// What the token endpoint gives (RFC 6749 §5.1, contract login-2). It has no `Debug`: all of it
/// is secret.
#[derive(Serialize)]
pub struct TokenSet {
    /// The access token.
    pub access_token: String,
    /// Always `Bearer`.
    pub token_type: &'static str,
    /// Seconds for which the access token is valid.
    pub expires_in: u32,
    /// What a new set is asked for with, if the client may do that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// Who the user is, as a signed JWT. It is in every token set, with and without `openid`
    /// (contract login-16).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_token: Option<String>,
    /// What the access token may be used for.
    pub scope: String,
}

fn refuse<T>(code: OAuthErrorCode, text: &str) -> Result<T, TokenError> {
    Err(TokenError::new(code, text))
}

fn required<'a>(form: &'a Parameters, name: &str) -> Result<&'a str, TokenError> {
    let code = OAuthErrorCode::InvalidRequest;
    form.find(name).ok_or_else(|| TokenError::new(code, &format!("{name} is missing")))
}

fn reject_repeated(form: &Parameters) -> Result<(), TokenError> {
    match form.find_repeated(&KNOWN) {
        None => Ok(()),
        Some(name) => {
            refuse(OAuthErrorCode::InvalidRequest, &format!("{name} came more than once"))
        }
    }
}

/// The scopes that a form asks for, if it does.
fn scopes(form: &Parameters) -> Result<Option<Scopes>, TokenError> {
    let invalid = |why: model::account::ScopeError| {
        TokenError::new(OAuthErrorCode::InvalidScope, &why.to_string())
    };
    form.find("scope").map(Scopes::parse).transpose().map_err(invalid)
}

/// The token endpoint: authentication of the client first, then its grant.
pub(super) async fn token(
    inner: &Inner,
    form: &Parameters,
    authentication: ClientAuthentication<'_>,
    address: IpAddr,
    now: Timestamp,
) -> Result<TokenSet, TokenError> {
    reject_repeated(form)?;
    let client = client::authenticate(&inner.auth, form, authentication, address, now).await?;
    audit::note_client(&client.client_id, client.secret.is_some());
    let name = required(form, "grant_type")?;
    let grants = [Grant::AuthorizationCode, Grant::Password, Grant::RefreshToken];
    let Some(grant) = grants.into_iter().find(|grant| grant.as_str() == name) else {
        return refuse(OAuthErrorCode::UnsupportedGrantType, "there is no such grant_type");
    };
    if !client.allows(grant) {
        let text = "the client may not use this grant_type";
        return refuse(OAuthErrorCode::UnauthorizedClient, text);
    }
    let issue = Issue::new(inner, &client, now)?;
    let outcome = match grant {
        Grant::AuthorizationCode => redeem(inner, form, &client, &issue).await?,
        Grant::RefreshToken => refresh(inner, form, &client, &issue).await?,
        // Nothing of `grants` is implicit.
        Grant::Password | Grant::Implicit => {
            let (entered, scopes) = log_in(inner, form, address, now).await?;
            open(inner, entered, scopes, &client, &issue).await?
        }
    };
    match outcome {
        Outcome::Granted(granted) => Ok(issue.token_set(inner, &client, &granted).await?),
        Outcome::Refused(reason) | Outcome::Unknown(reason) | Outcome::Reused(_, reason) => {
            refuse(OAuthErrorCode::InvalidGrant, reason)
        }
        Outcome::TooWide => {
            refuse(OAuthErrorCode::InvalidScope, "scope is more than was granted before")
        }
    }
}

/// Tokens that are about to be given out: the secrets for the client, the hashes for the database.
struct Issue {
    access: Secret,
    refresh: Option<Secret>,
    tokens: NewTokens,
    now: Timestamp,
    /// Seconds of the access token.
    expires_in: u32,
}

impl Issue {
    fn new(inner: &Inner, client: &Client, now: Timestamp) -> Result<Self> {
        let lifetimes = inner.lifetimes.get();
        let access = Secret::new()?;
        let refresh = client.allows(Grant::RefreshToken).then(Secret::new).transpose()?;
        let refresh_expires = after(now, lifetimes.refresh_token_s);
        let expires_in = client.access_token_s(lifetimes.access_token_s);
        let days = i64::from(lifetimes.refresh_absolute_days);
        let tokens = NewTokens {
            access: access.hash(),
            access_expires: after(now, expires_in),
            refresh: refresh.as_ref().map(|refresh| (refresh.hash(), refresh_expires)),
            grant_lifetime: SignedDuration::from_hours(24 * days),
            now,
        };
        Ok(Self { access, refresh, tokens, now, expires_in })
    }

    async fn token_set(
        self,
        inner: &Inner,
        client: &Client,
        granted: &Granted,
    ) -> Result<TokenSet> {
        let access_token = self.access.reveal().to_owned();
        let id_token = IdToken {
            issuer: &inner.issuer,
            client_id: &client.client_id,
            scopes: granted.scopes,
            auth_time: granted.auth_time,
            nonce: granted.nonce.as_deref(),
            access_token: Some(&access_token),
            issued: self.now,
            expires: self.tokens.access_expires,
        };
        let id_token = inner.keys().await.sign(&id_token.claims(&granted.account))?;
        Ok(TokenSet {
            access_token,
            token_type: "Bearer",
            expires_in: self.expires_in,
            refresh_token: self.refresh.map(|refresh| refresh.reveal().to_owned()),
            id_token: Some(id_token),
            scope: granted.scopes.to_string(),
        })
    }
}

async fn redeem(
    inner: &Inner,
    form: &Parameters,
    client: &Client,
    issue: &Issue,
) -> Result<Outcome, TokenError> {
    let hash = Hash::of(required(form, "code")?.as_bytes());
    let proof = Proof {
        redirect_uri: form.find("redirect_uri").map(str::to_owned),
        verifier: form.find("code_verifier").map(str::to_owned),
    };
    let (client, tokens, now) = (client.clone(), issue.tokens, issue.now);
    let event = issued(&client, Grant::AuthorizationCode);
    let work = move |tx: &WriteTx<'_>| {
        let outcome = exchange::redeem(tx, &hash, &proof, &client, &tokens, now)?;
        record(tx, event, &outcome)?;
        Ok(outcome)
    };
    Ok(inner.auth.write(work).await?)
}

async fn refresh(
    inner: &Inner,
    form: &Parameters,
    client: &Client,
    issue: &Issue,
) -> Result<Outcome, TokenError> {
    let hash = Hash::of(required(form, "refresh_token")?.as_bytes());
    let asked = scopes(form)?.filter(|asked| !asked.is_empty());
    let (client, tokens, now) = (client.clone(), issue.tokens, issue.now);
    let event = issued(&client, Grant::RefreshToken);
    let work = move |tx: &WriteTx<'_>| {
        let outcome = exchange::refresh(tx, &hash, asked, &client, &tokens, now)?;
        record(tx, event, &outcome)?;
        Ok(outcome)
    };
    Ok(inner.auth.write(work).await?)
}

/// The user whose name and password are in `form`, and what the client asks for.
async fn log_in(
    inner: &Inner,
    form: &Parameters,
    address: IpAddr,
    now: Timestamp,
) -> Result<(Entered, Scopes), TokenError> {
    let (user_name, password) = (required(form, "username")?, required(form, "password")?);
    let scopes = scopes(form)?.unwrap_or_default();
    if !scopes.has(Scope::Roles) {
        return refuse(OAuthErrorCode::InvalidScope, "scope does not include roles");
    }
    match inner.auth.login(user_name, password, address, now).await? {
        Login::Ok(entered) => Ok((entered, scopes)),
        Login::Refused => refuse(OAuthErrorCode::InvalidGrant, "user name or password are wrong"),
        Login::Throttled(wait_s) => Err(TokenError::throttled(wait_s)),
    }
}

async fn open(
    inner: &Inner,
    entered: Entered,
    scopes: Scopes,
    client: &Client,
    issue: &Issue,
) -> Result<Outcome, DbError> {
    let (tokens, now) = (issue.tokens, issue.now);
    let (user, client_id) = (entered.account.user.id, client.client_id.clone());
    let family = NewFamily { user, client_id, scopes, auth_time: now };
    let event = issued(client, Grant::Password);
    let work = move |tx: &WriteTx<'_>| {
        let outcome = exchange::open(tx, &entered, &family, &tokens, now)?;
        record(tx, event, &outcome)?;
        Ok(outcome)
    };
    inner.auth.write(work).await
}

/// The event of tokens that `client` asks for.
fn issued(client: &Client, grant: Grant) -> Event {
    let event = audit::event(Action::TokenIssued);
    event.about(ObjectKind::Client, &client.client_id).with(grant.as_str())
}

/// Records how an exchange ended. What anybody can make up leaves no row: it would let a flood of
/// nonsense push events out of the log.
fn record(tx: &WriteTx<'_>, event: Event, outcome: &Outcome) -> Result<(), DbError> {
    let event = match outcome {
        Outcome::Unknown(_) => return Ok(()),
        Outcome::Granted(granted) => event.by_user(&granted.account.user),
        Outcome::Refused(reason) => event.ended(audit::Outcome::Refused).with(reason),
        Outcome::TooWide => {
            event.ended(audit::Outcome::Refused).with("scope is more than was granted before")
        }
        Outcome::Reused(user, reason) => {
            let user = tx.as_read().find_user(*user)?;
            let event = Event { action: Action::TokenReused, ..event };
            let event = user.iter().fold(event, |event, user| event.by_user(user));
            event.ended(audit::Outcome::Refused).with(reason)
        }
    };
    tx.write_audit(&event)
}

/// The revocation endpoint. `token_type_hint` only says where to look first; both places are one
/// look-up away.
pub(super) async fn revoke(
    inner: &Inner,
    form: &Parameters,
    authentication: ClientAuthentication<'_>,
    address: IpAddr,
    now: Timestamp,
) -> Result<(), TokenError> {
    reject_repeated(form)?;
    let client = client::authenticate(&inner.auth, form, authentication, address, now).await?;
    audit::note_client(&client.client_id, client.secret.is_some());
    let hash = Hash::of(required(form, "token")?.as_bytes());
    let event = audit::event(Action::TokenRevoked).about(ObjectKind::Client, &client.client_id);
    let work = move |tx: &WriteTx<'_>| {
        let revoked = exchange::revoke(tx, &hash, &client, now)?;
        if let Revoked::Ended(user) = &revoked {
            let user = tx.as_read().find_user(*user)?;
            tx.write_audit(&user.iter().fold(event, |event, user| event.by_user(user)))?;
        }
        Ok(revoked)
    };
    match inner.auth.write(work).await? {
        Revoked::Ended(_) | Revoked::Unknown => Ok(()),
        Revoked::OfAnother => {
            refuse(OAuthErrorCode::InvalidGrant, "the token was issued to another client")
        }
    }
}
