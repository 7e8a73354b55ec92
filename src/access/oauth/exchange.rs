//! Exchanges the code or refresh token that a client presents. Each function is one transaction, so that only
//! one of many requests with the same code or token succeeds.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};

use super::parameters::is_unreserved;
use crate::access::auth::AuthenticatedLogin;
use crate::storage::database::{AuthorizationCode, DbError, NewFamily, TokenFamily, WriteTx};
use model::ContentHash;
use model::account::{Account, FamilyId, OAuthClient, ScopeSet, UserId};

/// Lengths of a code verifier, in bytes (RFC 7636 §4.1).
const VERIFIER_BYTES: std::ops::RangeInclusive<usize> = 43..=128;

/// The hashes of tokens that are about to be issued.
#[derive(Clone, Copy)]
pub(super) struct NewTokens {
    pub(super) access: ContentHash,
    pub(super) access_expires: Timestamp,
    /// The hash and the expiry of the refresh token; `None` for a client that may not refresh.
    pub(super) refresh: Option<(ContentHash, Timestamp)>,
    /// Time after the authorization until which a grant can be refreshed.
    pub(super) grant_lifetime: SignedDuration,
    /// The time of the request.
    pub(super) now: Timestamp,
}

impl NewTokens {
    /// Returns the time after which the family can no longer be refreshed.
    fn absolute_end(&self, tx: &WriteTx<'_>, family: FamilyId) -> Result<Timestamp, DbError> {
        let began = tx.family_created(family)?;
        Ok(began.checked_add(self.grant_lifetime).unwrap_or(Timestamp::MAX))
    }

    /// Writes the tokens, which grant `scopes` to the family's user `account`.
    fn grant(
        &self,
        tx: &WriteTx<'_>,
        family: &TokenFamily,
        account: Account,
        scopes: ScopeSet,
        nonce: Option<String>,
    ) -> Result<ExchangeOutcome, DbError> {
        tx.write_access_token(&self.access, family.id, scopes, self.access_expires)?;
        if let Some((refresh, expires)) = self.refresh {
            // No refresh token outlives the grant (contract login-9).
            let expires = expires.min(self.absolute_end(tx, family.id)?);
            tx.write_refresh_token(&refresh, family.id, expires)?;
        }
        let auth_time = family.auth_time;
        Ok(ExchangeOutcome::Granted(Box::new(GrantedAccess { account, scopes, auth_time, nonce })))
    }
}

/// The user and the rights that an exchange granted.
pub(super) struct GrantedAccess {
    pub(super) account: Account,
    pub(super) scopes: ScopeSet,
    pub(super) auth_time: Timestamp,
    pub(super) nonce: Option<String>,
}

/// The decision of a transaction. Refusals commit too, because some of them end a family.
pub(super) enum ExchangeOutcome {
    Granted(Box<GrantedAccess>),
    /// `invalid_grant`, with the reason.
    Refused(&'static str),
    /// `invalid_grant` for a code or token that does not exist, which anyone can invent.
    Unknown(&'static str),
    /// `invalid_grant` for a code or token of this user that was used before; its family has ended.
    Reused(UserId, &'static str),
    /// `invalid_scope`: the request exceeds what was granted.
    TooWide,
}

/// The outcome of a revocation.
pub(super) enum RevocationOutcome {
    /// The token belonged to this user and is no longer valid.
    Ended(UserId),
    /// There is no such token.
    Unknown,
    /// The token was issued to a different client.
    ForeignClient,
}

/// The parameters that a client must present with a code.
pub(super) struct CodeProof {
    pub(super) redirect_uri: Option<String>,
    pub(super) verifier: Option<String>,
}

impl CodeProof {
    /// Returns the reason why the parameters do not match `code`, which `client` may use, or `None` if they
    /// match.
    fn refusal(&self, code: &AuthorizationCode, client: &OAuthClient) -> Option<&'static str> {
        let same_uri = match (&code.redirect_uri, &self.redirect_uri) {
            (Some(before), Some(now)) => before == now,
            (Some(_), None) => false,
            // The authorization request relied on the only registered address; now it may be named.
            (None, now) => now.as_ref().is_none_or(|now| client.redirect_uris.contains(now)),
        };
        if !same_uri {
            return Some("redirect_uri differs from that of the authorization request");
        }
        match (&code.challenge, &self.verifier) {
            (None, None) => None,
            (Some(challenge), Some(verifier)) if matches_challenge(verifier, challenge) => None,
            (Some(_), _) => Some("code_verifier does not match the code_challenge"),
            // An attacker may have removed the challenge from the request (RFC 9700 §4.8.2).
            (None, Some(_)) => {
                Some("code_verifier is given, but the authorization request had no code_challenge")
            }
        }
    }
}

/// Returns whether `challenge` is the S256 challenge of `verifier`, which must have the grammar of RFC 7636
/// §4.1.
fn matches_challenge(verifier: &str, challenge: &str) -> bool {
    VERIFIER_BYTES.contains(&verifier.len())
        && verifier.bytes().all(is_unreserved)
        && URL_SAFE_NO_PAD.encode(ContentHash::new(verifier.as_bytes()).0) == challenge
}

/// Exchanges a code. A second exchange ends all tokens that the first one issued (RFC 6749 §4.1.2).
pub(super) fn redeem(
    tx: &WriteTx<'_>,
    hash: &ContentHash,
    proof: &CodeProof,
    client: &OAuthClient,
    tokens: &NewTokens,
) -> Result<ExchangeOutcome, DbError> {
    let unknown = ExchangeOutcome::Unknown("the code is unknown");
    let Some(code) = tx.find_code(hash)? else { return Ok(unknown) };
    // A code of a different client must look like an unknown code.
    if code.family.client_id != client.client_id {
        return Ok(unknown);
    }
    // Checked before the expiry: a used code in a second hand was stolen, however old it is.
    if code.is_used {
        tx.end_family(code.family.id, tokens.now)?;
        return Ok(ExchangeOutcome::Reused(code.family.user, "the code was used before"));
    }
    if code.expires <= tokens.now {
        return Ok(ExchangeOutcome::Refused("the code has expired"));
    }
    // The code stays valid: a different party that saw it must not be able to use it up.
    if let Some(reason) = proof.refusal(&code, client) {
        return Ok(ExchangeOutcome::Refused(reason));
    }
    let Some(account) = active(tx, &code.family)? else {
        return Ok(ExchangeOutcome::Refused("the user may not use the service"));
    };
    tx.mark_code_used(hash, tokens.now)?;
    tokens.grant(tx, &code.family, account, code.family.scopes, code.nonce)
}

/// Exchanges a refresh token for a new one and ends the access token issued with it.
///
/// A token that was used before is known to two parties, and the rightful one is unknown, so all tokens of
/// its family end (RFC 9700 §4.14.2). `requested` may be a subset of the granted scopes; the new refresh
/// token still covers all of them (RFC 6749 §6).
pub(super) fn refresh(
    tx: &WriteTx<'_>,
    hash: &ContentHash,
    requested: Option<ScopeSet>,
    client: &OAuthClient,
    tokens: &NewTokens,
) -> Result<ExchangeOutcome, DbError> {
    let unknown = ExchangeOutcome::Unknown("the refresh token is unknown");
    let Some(token) = tx.find_refresh_token(hash)? else { return Ok(unknown) };
    let family = token.family;
    if family.client_id != client.client_id {
        return Ok(unknown);
    }
    if token.is_used {
        tx.end_family(family.id, tokens.now)?;
        return Ok(ExchangeOutcome::Reused(family.user, "the refresh token was used before"));
    }
    if token.expires <= tokens.now {
        return Ok(ExchangeOutcome::Refused("the refresh token has expired"));
    }
    // The access token may still be valid, and ends with the grant.
    if tokens.absolute_end(tx, family.id)? <= tokens.now {
        tx.end_family(family.id, tokens.now)?;
        return Ok(ExchangeOutcome::Refused("the grant has ended, the user has to log in again"));
    }
    let scopes = requested.unwrap_or(family.scopes);
    if !scopes.is_subset(family.scopes) {
        // The refresh token is not used up, so the client can request fewer scopes.
        return Ok(ExchangeOutcome::TooWide);
    }
    let Some(account) = active(tx, &family)? else {
        return Ok(ExchangeOutcome::Refused("the user may not use the service"));
    };
    tx.mark_refresh_token_used(hash, tokens.now)?;
    tx.end_access_tokens(family.id, tokens.now)?;
    tokens.grant(tx, &family, account, scopes, None)
}

/// Issues tokens for a login by password that is still valid.
pub(super) fn open(
    tx: &WriteTx<'_>,
    login: &AuthenticatedLogin,
    new: &NewFamily,
    tokens: &NewTokens,
) -> Result<ExchangeOutcome, DbError> {
    // The password may have changed while its hash was compared.
    if !login.is_still_valid(tx)? {
        return Ok(ExchangeOutcome::Refused("user name or password is wrong"));
    }
    let id = tx.open_family(new, tokens.now)?;
    let NewFamily { user, client_id, scopes, auth_time } = new.clone();
    let family = TokenFamily { id, user, client_id, scopes, auth_time };
    let Some(account) = active(tx, &family)? else {
        tx.end_family(id, tokens.now)?;
        return Ok(ExchangeOutcome::Refused("the user may not use the service"));
    };
    tokens.grant(tx, &family, account, scopes, None)
}

/// Returns the family's user, if it is still active.
fn active(tx: &WriteTx<'_>, family: &TokenFamily) -> Result<Option<Account>, DbError> {
    let account = tx.find_account(family.user)?;
    Ok(account.filter(|account| account.user.active))
}

/// Revokes the token with the hash `hash`: a refresh token with its family, an access token alone (RFC 7009
/// §2.1). An unknown token counts as revoked already.
///
/// A token of a different client stays valid.
pub(super) fn revoke(
    tx: &WriteTx<'_>,
    hash: &ContentHash,
    client: &OAuthClient,
    now: Timestamp,
) -> Result<RevocationOutcome, DbError> {
    if let Some(token) = tx.find_refresh_token(hash)? {
        if token.family.client_id != client.client_id {
            return Ok(RevocationOutcome::ForeignClient);
        }
        tx.end_family(token.family.id, now)?;
        return Ok(RevocationOutcome::Ended(token.family.user));
    }
    if let Some(token) = tx.find_access_token(hash)? {
        if token.client_id != client.client_id {
            return Ok(RevocationOutcome::ForeignClient);
        }
        tx.end_access_token(hash, now)?;
        return Ok(RevocationOutcome::Ended(token.user));
    }
    Ok(RevocationOutcome::Unknown)
}
