//! The token and revocation endpoints: client authentication, grants and responses.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    OAuth, OAuthInner, after,
    claims::IdToken,
    client::{self, ClientForm},
    error::{OAuthErrorCode, TokenError},
    exchange::{self, CodeProof, ExchangeOutcome, GrantedAccess, NewTokens, RevocationOutcome},
    parameters::OAuthParameters,
};
use crate::access::auth::{AuthenticatedLogin, LoginOutcome, RandomSecret};
use crate::runtime::error::Result;
use crate::storage::audit::{self, AuditAction, AuditEvent, ObjectKind};
use crate::storage::database::{DbError, NewFamily, WriteTx};
use model::ContentHash;
use model::account::{GrantType, OAuthClient, Scope, ScopeSet};

/// The parameters that these endpoints know. A request that repeats one of them is refused.
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

/// The response of the token endpoint (RFC 6749 §5.1, contract login-2). Has no `Debug`, because all of it is
/// secret.
#[derive(Serialize)]
pub struct TokenSet {
    /// The access token, a random string.
    pub access_token: String,
    /// Always `Bearer`, the type of RFC 6750.
    pub token_type: &'static str,
    /// Lifetime of the access token, in seconds.
    pub expires_in: u32,
    /// The token for requesting a new set; `None` if the client may not refresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// The identity of the user as a signed JWT. Every token set has it, with or without `openid` (contract
    /// login-16).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_token: Option<String>,
    /// The scopes of the access token, separated by spaces.
    pub scope: String,
}

fn refuse<T>(code: OAuthErrorCode, text: &str) -> Result<T, TokenError> {
    Err(TokenError::new(code, text))
}

fn required<'a>(form: &'a OAuthParameters, name: &str) -> Result<&'a str, TokenError> {
    let code = OAuthErrorCode::InvalidRequest;
    form.find(name).ok_or_else(|| TokenError::new(code, &format!("{name} is missing")))
}

/// Parses the scopes of a form; `None` if the form has no scopes.
fn scopes(form: &OAuthParameters) -> Result<Option<ScopeSet>, TokenError> {
    let Some(text) = form.find("scope") else { return Ok(None) };
    match ScopeSet::parse(text) {
        Ok(scopes) => Ok(Some(scopes)),
        Err(cause) => refuse(OAuthErrorCode::InvalidScope, &cause.to_string()),
    }
}

impl OAuth {
    /// Handles a request to the token endpoint: authenticates the client, then performs its grant.
    pub async fn token(&self, request: ClientForm<'_>) -> Result<TokenSet, TokenError> {
        let client = self.authenticate(request).await?;
        let form = request.form;
        let name = required(form, "grant_type")?;
        let grants = [GrantType::AuthorizationCode, GrantType::Password, GrantType::RefreshToken];
        let Some(grant) = grants.into_iter().find(|grant| grant.as_str() == name) else {
            return refuse(OAuthErrorCode::UnsupportedGrantType, "the grant_type is unknown");
        };
        if !client.allows(grant) {
            let text = "the client may not use this grant_type";
            return refuse(OAuthErrorCode::UnauthorizedClient, text);
        }
        // Created before the transaction, which holds the cluster write lock.
        let issue = IssuedTokens::new(&self.inner, &client, request.now)?;
        let outcome = match grant {
            GrantType::AuthorizationCode => self.redeem(form, &client, &issue).await?,
            GrantType::RefreshToken => self.refresh(form, &client, &issue).await?,
            // `grants` does not contain the implicit grant.
            GrantType::Password | GrantType::Implicit => {
                let (login, scopes) = self.log_in(request).await?;
                self.open(login, scopes, &client, &issue).await?
            }
        };
        match outcome {
            // Signed after the transaction, which holds the write lock.
            ExchangeOutcome::Granted(granted) => {
                Ok(issue.token_set(&self.inner, &client, &granted).await?)
            }
            ExchangeOutcome::Refused(reason)
            | ExchangeOutcome::Unknown(reason)
            | ExchangeOutcome::Reused(_, reason) => refuse(OAuthErrorCode::InvalidGrant, reason),
            ExchangeOutcome::TooWide => {
                refuse(OAuthErrorCode::InvalidScope, "scope exceeds what was granted")
            }
        }
    }

    /// Authenticates the client that sent the form, which must not repeat a parameter (RFC 6749 §3.2).
    async fn authenticate(&self, request: ClientForm<'_>) -> Result<OAuthClient, TokenError> {
        if let Some(name) = request.form.find_repeated(&KNOWN) {
            let text = format!("{name} is given more than once");
            return refuse(OAuthErrorCode::InvalidRequest, &text);
        }
        let client = client::authenticate(&self.inner.auth, request).await?;
        // For the events of this request: the client acts, and not yet a user.
        audit::note_client(&client.client_id, client.secret.is_some());
        Ok(client)
    }

    async fn redeem(
        &self,
        form: &OAuthParameters,
        client: &OAuthClient,
        issue: &IssuedTokens,
    ) -> Result<ExchangeOutcome, TokenError> {
        let hash = ContentHash::new(required(form, "code")?.as_bytes());
        let proof = CodeProof {
            redirect_uri: form.find("redirect_uri").map(str::to_owned),
            verifier: form.find("code_verifier").map(str::to_owned),
        };
        let owner = client.clone();
        let tokens = issue.tokens;
        let redemption = self.exchange(client, GrantType::AuthorizationCode, move |tx| {
            exchange::redeem(tx, &hash, &proof, &owner, &tokens)
        });
        Ok(redemption.await?)
    }

    async fn refresh(
        &self,
        form: &OAuthParameters,
        client: &OAuthClient,
        issue: &IssuedTokens,
    ) -> Result<ExchangeOutcome, TokenError> {
        let hash = ContentHash::new(required(form, "refresh_token")?.as_bytes());
        // A request without scopes is for all granted scopes (RFC 6749 §6).
        let requested = scopes(form)?.filter(|requested| !requested.is_empty());
        let owner = client.clone();
        let tokens = issue.tokens;
        let refresh = self.exchange(client, GrantType::RefreshToken, move |tx| {
            exchange::refresh(tx, &hash, requested, &owner, &tokens)
        });
        Ok(refresh.await?)
    }

    /// Logs in the user whose name and password are in the form; also returns the requested scopes.
    async fn log_in(
        &self,
        ClientForm { form, address, now, .. }: ClientForm<'_>,
    ) -> Result<(AuthenticatedLogin, ScopeSet), TokenError> {
        let user_name = required(form, "username")?;
        let password = required(form, "password")?;
        let scopes = scopes(form)?.unwrap_or_default();
        // The contract requires `roles` for the password grant.
        if !scopes.contains(Scope::Roles) {
            return refuse(OAuthErrorCode::InvalidScope, "scope does not include roles");
        }
        match self.inner.auth.login(user_name, password, address, now).await? {
            LoginOutcome::Ok(login) => Ok((login, scopes)),
            LoginOutcome::Refused => {
                refuse(OAuthErrorCode::InvalidGrant, "user name or password is wrong")
            }
            LoginOutcome::Throttled(wait_s) => Err(TokenError::throttled(wait_s)),
        }
    }

    async fn open(
        &self,
        login: AuthenticatedLogin,
        scopes: ScopeSet,
        client: &OAuthClient,
        issue: &IssuedTokens,
    ) -> Result<ExchangeOutcome, DbError> {
        let tokens = issue.tokens;
        let family = NewFamily {
            user: login.account.user.id,
            client_id: client.client_id.clone(),
            scopes,
            auth_time: tokens.now,
        };
        let opening = self.exchange(client, GrantType::Password, move |tx| {
            exchange::open(tx, &login, &family, &tokens)
        });
        opening.await
    }

    /// Runs `exchange` in a transaction that also records its outcome, so no token is issued without a record.
    async fn exchange<F>(
        &self,
        client: &OAuthClient,
        grant: GrantType,
        exchange: F,
    ) -> Result<ExchangeOutcome, DbError>
    where
        F: FnOnce(&WriteTx<'_>) -> Result<ExchangeOutcome, DbError> + Send + 'static,
    {
        let event = audit::event(AuditAction::TokenIssued)
            .with_object(ObjectKind::Client, &client.client_id)
            .with_detail(grant.as_str());
        let exchanging = self.inner.auth.write(move |tx| {
            let outcome = exchange(tx)?;
            record(tx, event, &outcome)?;
            Ok(outcome)
        });
        exchanging.await
    }

    /// Handles a request to the revocation endpoint (RFC 7009). An unknown token counts as revoked already. A
    /// token of a different client is refused with `invalid_grant`, which RFC 6749 §5.2 defines for a token
    /// that "was issued to another client". Ignores `token_type_hint`, because looking up each kind of token is cheap.
    pub async fn revoke(&self, request: ClientForm<'_>) -> Result<(), TokenError> {
        let ClientForm { form, now, .. } = request;
        let client = self.authenticate(request).await?;
        let hash = ContentHash::new(required(form, "token")?.as_bytes());
        let event = audit::event(AuditAction::TokenRevoked)
            .with_object(ObjectKind::Client, &client.client_id);
        let revocation = self.inner.auth.write(move |tx| {
            let revoked = exchange::revoke(tx, &hash, &client, now)?;
            if let RevocationOutcome::Ended(user) = &revoked {
                let user = tx.find_user(*user)?;
                tx.write_audit(&user.iter().fold(event, |event, user| event.by_user(user)))?;
            }
            Ok(revoked)
        });
        match revocation.await? {
            RevocationOutcome::Ended(_) | RevocationOutcome::Unknown => Ok(()),
            RevocationOutcome::ForeignClient => {
                refuse(OAuthErrorCode::InvalidGrant, "the token was issued to another client")
            }
        }
    }
}

/// Tokens that are about to be issued: the secrets for the client, the hashes for the database.
struct IssuedTokens {
    access: RandomSecret,
    refresh: Option<RandomSecret>,
    tokens: NewTokens,
    /// Lifetime of the access token, in seconds.
    expires_in: u32,
}

impl IssuedTokens {
    fn new(inner: &OAuthInner, client: &OAuthClient, now: Timestamp) -> Result<Self> {
        let lifetimes = inner.lifetimes.get();
        let access = RandomSecret::new()?;
        let refresh =
            client.allows(GrantType::RefreshToken).then(RandomSecret::new).transpose()?;
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
        Ok(Self { access, refresh, tokens, expires_in })
    }

    async fn token_set(
        self,
        inner: &OAuthInner,
        client: &OAuthClient,
        granted: &GrantedAccess,
    ) -> Result<TokenSet> {
        let access_token = self.access.reveal().to_owned();
        let id_token = IdToken {
            issuer: &inner.issuer,
            client_id: &client.client_id,
            scopes: granted.scopes,
            auth_time: granted.auth_time,
            nonce: granted.nonce.as_deref(),
            access_token: Some(&access_token),
            issued: self.tokens.now,
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

/// Records the outcome of an exchange. An unknown code or token leaves no row, because anyone can invent it:
/// a flood of such rows would push real events out of the log.
fn record(tx: &WriteTx<'_>, event: AuditEvent, outcome: &ExchangeOutcome) -> Result<(), DbError> {
    use audit::AuditOutcome::Refused;
    let event = match outcome {
        ExchangeOutcome::Unknown(_) => return Ok(()),
        ExchangeOutcome::Granted(granted) => event.by_user(&granted.account.user),
        ExchangeOutcome::Refused(reason) => event.with_outcome(Refused).with_detail(reason),
        ExchangeOutcome::TooWide => {
            event.with_outcome(Refused).with_detail("scope exceeds what was granted")
        }
        ExchangeOutcome::Reused(user, reason) => {
            let user = tx.find_user(*user)?;
            let event = AuditEvent { action: AuditAction::TokenReused, ..event };
            let event = user.iter().fold(event, |event, user| event.by_user(user));
            event.with_outcome(Refused).with_detail(reason)
        }
    };
    tx.write_audit(&event)
}
