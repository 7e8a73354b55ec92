//! What becomes of a code or a refresh token that a client presents. Each function is one
//! transaction, so that of many requests with the same code or token one alone succeeds.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};

use crate::access::auth::AuthenticatedLogin;
use crate::storage::database::{AuthorizationCode, DbError, NewFamily, TokenFamily, WriteTx};
use model::ContentHash;
use model::account::{Account, FamilyId, OAuthClient, ScopeSet, UserId};

/// Lengths that a code verifier may have (RFC 7636 §4.1).
const VERIFIER_BYTES: std::ops::RangeInclusive<usize> = 43..=128;

/// The hashes of tokens that are about to be given out.
#[derive(Clone, Copy)]
pub(super) struct NewTokens {
    pub(super) access: ContentHash,
    pub(super) access_expires: Timestamp,
    /// With its end; `None` for a client that may not refresh.
    pub(super) refresh: Option<(ContentHash, Timestamp)>,
    /// How long a grant can be refreshed at all.
    pub(super) grant_lifetime: SignedDuration,
    pub(super) now: Timestamp,
}

impl NewTokens {
    /// When refreshing of the family ends for good.
    fn absolute_end(&self, tx: &WriteTx<'_>, family: FamilyId) -> Result<Timestamp, DbError> {
        let began = tx.family_lifetime_from(family, self.now)?;
        Ok(began.checked_add(self.grant_lifetime).unwrap_or(Timestamp::MAX))
    }

    fn write(
        &self,
        tx: &WriteTx<'_>,
        family: &TokenFamily,
        scopes: ScopeSet,
    ) -> Result<(), DbError> {
        tx.write_access_token(&self.access, family.id, scopes, self.access_expires)?;
        let Some((refresh, expires)) = self.refresh else { return Ok(()) };
        let expires = expires.min(self.absolute_end(tx, family.id)?);
        tx.write_refresh_token(&refresh, family.id, expires)
    }
}

/// What was granted.
pub(super) struct GrantedAccess {
    pub(super) account: Account,
    pub(super) scopes: ScopeSet,
    pub(super) auth_time: Timestamp,
    pub(super) nonce: Option<String>,
}

/// What a transaction decided. Refusals commit, too: some of them end a family.
pub(super) enum ExchangeOutcome {
    Granted(Box<GrantedAccess>),
    /// `invalid_grant`, with the reason.
    Refused(&'static str),
    /// The same for a code or token that there is not, which anybody can make up.
    Unknown(&'static str),
    /// The same for one of this user that was used before, which ended its family.
    Reused(UserId, &'static str),
    /// `invalid_scope`: more is asked for than was granted.
    TooWide,
}

/// What became of a token that a client revokes.
pub(super) enum RevocationOutcome {
    /// It was this user's and counts for nothing any more.
    Ended(UserId),
    /// There is none.
    Unknown,
    /// It was issued to another client.
    ForeignClient,
}

/// What has to come with a code.
pub(super) struct CodeProof {
    pub(super) redirect_uri: Option<String>,
    pub(super) verifier: Option<String>,
}

impl CodeProof {
    /// Why this does not go with `code`, which `client` may use.
    fn refusal(&self, code: &AuthorizationCode, client: &OAuthClient) -> Option<&'static str> {
        let same_uri = match (&code.redirect_uri, &self.redirect_uri) {
            (Some(before), Some(now)) => before == now,
            (Some(_), None) => false,
            // The request relied on the only address there is; it may be named now.
            (None, now) => now.as_ref().is_none_or(|now| client.redirect_uris.contains(now)),
        };
        if !same_uri {
            return Some("redirect_uri is not that of the authorization request");
        }
        match (&code.challenge, &self.verifier) {
            (None, None) => None,
            (Some(challenge), Some(verifier)) if fits(verifier, challenge) => None,
            (Some(_), _) => Some("code_verifier does not fit the code_challenge"),
            // Somebody may have cut the challenge out of the request (RFC 9700 §4.8.2).
            (None, Some(_)) => Some("code_verifier came without a code_challenge before"),
        }
    }
}

/// Whether `challenge` is the S256 one of `verifier`, which has the grammar of RFC 7636 §4.1.
fn fits(verifier: &str, challenge: &str) -> bool {
    let is_letter =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    VERIFIER_BYTES.contains(&verifier.len())
        && verifier.bytes().all(is_letter)
        && URL_SAFE_NO_PAD.encode(ContentHash::of(verifier.as_bytes()).0) == challenge
}

/// Exchanges a code. A second exchange ends all that the first one brought (RFC 6749 §4.1.2).
pub(super) fn redeem(
    tx: &WriteTx<'_>,
    hash: &ContentHash,
    proof: &CodeProof,
    client: &OAuthClient,
    tokens: &NewTokens,
    now: Timestamp,
) -> Result<ExchangeOutcome, DbError> {
    let unknown = ExchangeOutcome::Unknown("there is no such code");
    let Some(code) = tx.as_read().find_code(hash)? else { return Ok(unknown) };
    if code.family.client_id != client.client_id {
        return Ok(unknown);
    }
    if code.is_used {
        tx.end_family(code.family.id, now)?;
        return Ok(ExchangeOutcome::Reused(code.family.user, "the code was used before"));
    }
    if code.expires <= now {
        return Ok(ExchangeOutcome::Refused("the code has expired"));
    }
    if let Some(reason) = proof.refusal(&code, client) {
        return Ok(ExchangeOutcome::Refused(reason));
    }
    let Some(account) = active(tx, &code.family)? else {
        return Ok(ExchangeOutcome::Refused("the user may not use the service"));
    };
    tx.mark_code_used(hash, now)?;
    let scopes = code.family.scopes;
    tokens.write(tx, &code.family, scopes)?;
    let (auth_time, nonce) = (code.family.auth_time, code.nonce);
    Ok(ExchangeOutcome::Granted(Box::new(GrantedAccess { account, scopes, auth_time, nonce })))
}

/// Exchanges a refresh token for a new one and ends the access token that came with it.
///
/// One that was used before is in two hands, and nobody knows which are the right ones: all that
/// came from it ends (RFC 9700 §4.14.2). `asked` may be less than what was granted; the new
/// refresh token still stands for all of it (RFC 6749 §6).
pub(super) fn refresh(
    tx: &WriteTx<'_>,
    hash: &ContentHash,
    asked: Option<ScopeSet>,
    client: &OAuthClient,
    tokens: &NewTokens,
    now: Timestamp,
) -> Result<ExchangeOutcome, DbError> {
    let unknown = ExchangeOutcome::Unknown("there is no such refresh token");
    let Some(token) = tx.as_read().find_refresh_token(hash)? else { return Ok(unknown) };
    let family = token.family;
    if family.client_id != client.client_id {
        return Ok(unknown);
    }
    if token.is_used {
        tx.end_family(family.id, now)?;
        return Ok(ExchangeOutcome::Reused(family.user, "the refresh token was used before"));
    }
    if token.expires <= now {
        return Ok(ExchangeOutcome::Refused("the refresh token has expired"));
    }
    if tokens.absolute_end(tx, family.id)? <= now {
        tx.end_family(family.id, now)?;
        return Ok(ExchangeOutcome::Refused("the grant has ended, the user has to log in again"));
    }
    let scopes = asked.unwrap_or(family.scopes);
    if !scopes.is_subset(family.scopes) {
        return Ok(ExchangeOutcome::TooWide);
    }
    let Some(account) = active(tx, &family)? else {
        return Ok(ExchangeOutcome::Refused("the user may not use the service"));
    };
    tx.mark_refresh_token_used(hash, now)?;
    tx.end_access_tokens(family.id, now)?;
    tokens.write(tx, &family, scopes)?;
    let auth_time = family.auth_time;
    Ok(ExchangeOutcome::Granted(Box::new(GrantedAccess {
        account,
        scopes,
        auth_time,
        nonce: None,
    })))
}

/// Gives out tokens for a login by password that still holds.
pub(super) fn open(
    tx: &WriteTx<'_>,
    entered: &AuthenticatedLogin,
    new: &NewFamily,
    tokens: &NewTokens,
    now: Timestamp,
) -> Result<ExchangeOutcome, DbError> {
    if !entered.is_still_valid(&tx.as_read())? {
        return Ok(ExchangeOutcome::Refused("user name or password are wrong"));
    }
    let id = tx.open_family(new, now)?;
    let NewFamily { user, client_id, scopes, auth_time } = new.clone();
    let family = TokenFamily { id, user, client_id, scopes, auth_time };
    let Some(account) = active(tx, &family)? else {
        tx.end_family(id, now)?;
        return Ok(ExchangeOutcome::Refused("the user may not use the service"));
    };
    tokens.write(tx, &family, scopes)?;
    Ok(ExchangeOutcome::Granted(Box::new(GrantedAccess {
        account,
        scopes,
        auth_time,
        nonce: None,
    })))
}

/// The family's user, if it may still use the service.
fn active(tx: &WriteTx<'_>, family: &TokenFamily) -> Result<Option<Account>, DbError> {
    let account = tx.as_read().find_account(family.user)?;
    Ok(account.filter(|account| account.user.active))
}

/// Ends what `hash` stands for: a refresh token its family, an access token itself (RFC 7009
/// §2.1). What is unknown is ended already.
///
/// A token of another client stays.
pub(super) fn revoke(
    tx: &WriteTx<'_>,
    hash: &ContentHash,
    client: &OAuthClient,
    now: Timestamp,
) -> Result<RevocationOutcome, DbError> {
    if let Some(token) = tx.as_read().find_refresh_token(hash)? {
        if token.family.client_id != client.client_id {
            return Ok(RevocationOutcome::ForeignClient);
        }
        tx.end_family(token.family.id, now)?;
        return Ok(RevocationOutcome::Ended(token.family.user));
    }
    if let Some(token) = tx.as_read().find_access_token(hash)? {
        if token.client_id != client.client_id {
            return Ok(RevocationOutcome::ForeignClient);
        }
        tx.end_access_token(hash, now)?;
        return Ok(RevocationOutcome::Ended(token.user));
    }
    Ok(RevocationOutcome::Unknown)
}
