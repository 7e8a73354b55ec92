//! Client authentication at the token and revocation endpoints (RFC 6749 §2.3).

use std::net::IpAddr;

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;

use super::error::{OAuthErrorCode, TokenError};
use super::parameters::{OAuthParameters, decode};
use crate::access::auth::Auth;
use crate::runtime::error::{Error, ErrorKind};
use crate::storage::audit::{self, AuditAction, AuditOutcome, ObjectKind};
use model::account::OAuthClient;

/// The unverified client id and secret of a request.
struct PresentedClient {
    client_id: String,
    secret: Option<String>,
}

/// A form that a client posts to the token or the revocation endpoint.
#[derive(Clone, Copy)]
pub struct ClientForm<'a> {
    pub form: &'a OAuthParameters,
    /// The credentials of HTTP Basic in base64. Without them, the client is public, or its secret is in the form.
    pub basic: Option<&'a str>,
    /// The address of the caller, for counting failed logins.
    pub address: IpAddr,
    pub now: Timestamp,
}

/// Authenticates the client that sent the form.
///
/// An unknown client, an inactive client and a wrong secret lead to the same response after the same time. A
/// confidential client needs its secret. A public client that sends a secret is refused, too: it is not the
/// program that it claims to be.
pub(super) async fn authenticate(
    auth: &Auth,
    ClientForm { form, basic, address, now }: ClientForm<'_>,
) -> Result<OAuthClient, TokenError> {
    let presented = match basic {
        None => from_form(form),
        Some(credentials) => from_header(credentials, form),
    };
    let outcome = match presented {
        Ok(presented) => verify(auth, presented, address, now).await,
        Err(error) => Err(error),
    };
    outcome.map_err(|error| {
        // A client that used `Authorization` gets 401 with the scheme that it used (RFC 6749 §5.2).
        let challenge = basic.is_some() && error.code == OAuthErrorCode::InvalidClient;
        TokenError { challenge, ..error }
    })
}

async fn verify(
    auth: &Auth,
    presented: PresentedClient,
    address: IpAddr,
    now: Timestamp,
) -> Result<OAuthClient, TokenError> {
    let PresentedClient { client_id, secret } = presented;
    // Only a secret can be guessed, so a public client is never locked out.
    let client = match secret {
        Some(_) => {
            auth.read_unless_locked(address, now, move |tx| tx.find_client(&client_id)).await?
        }
        None => auth.db().read(move |tx| tx.find_client(&client_id)).await?,
    };
    // An inactive client is verified like an unknown one, without a hash.
    let client = client.filter(|client| client.active);
    let hash = client.as_ref().and_then(|client| client.secret.as_deref());
    let is_authenticated = match (&secret, hash) {
        (Some(secret), hash) => {
            let verified = auth.verify_secret(secret, hash, address, now).await;
            record(client.as_ref(), verified.as_ref(), now);
            verified?
        }
        (None, hash) => hash.is_none(),
    };
    client.filter(|_| is_authenticated).ok_or_else(invalid_client)
}

/// Records a wrong secret, and the first of many attempts that were refused unchecked.
fn record(client: Option<&OAuthClient>, verified: Result<&bool, &Error>, now: Timestamp) {
    let action = match verified {
        Ok(false) => AuditAction::ClientRefused,
        Err(error) if error.kind() == ErrorKind::Overloaded && audit::count_throttled(now) => {
            AuditAction::LoginThrottled
        }
        Ok(true) | Err(_) => return,
    };
    let event = audit::event(action).with_outcome(AuditOutcome::Refused);
    audit::record(match client {
        Some(client) => event.with_object(ObjectKind::Client, &client.client_id),
        None => event.with_detail("no such client"),
    });
}

fn invalid_client() -> TokenError {
    TokenError::new(OAuthErrorCode::InvalidClient, "the client is unknown or its secret wrong")
}

fn invalid_request(text: &str) -> TokenError {
    TokenError::new(OAuthErrorCode::InvalidRequest, text)
}

fn from_form(form: &OAuthParameters) -> Result<PresentedClient, TokenError> {
    let Some(client_id) = form.find("client_id") else {
        return Err(TokenError::new(OAuthErrorCode::InvalidClient, "the request names no client"));
    };
    Ok(PresentedClient {
        client_id: client_id.to_owned(),
        secret: form.find("client_secret").map(str::to_owned),
    })
}

/// Parses HTTP Basic credentials; id and secret are form-urlencoded inside (RFC 6749 §2.3.1).
fn from_header(credentials: &str, form: &OAuthParameters) -> Result<PresentedClient, TokenError> {
    // A client must not use two methods in one request (RFC 6749 §2.3).
    if form.find("client_secret").is_some() {
        return Err(invalid_request("the request has two kinds of client credentials"));
    }
    let bytes = STANDARD.decode(credentials).map_err(|_| invalid_client())?;
    let text = String::from_utf8(bytes).map_err(|_| invalid_client())?;
    let (client_id, secret) = text.split_once(':').ok_or_else(invalid_client)?;
    let client_id = decode(client_id).map_err(|_| invalid_client())?;
    let secret = decode(secret).map_err(|_| invalid_client())?;
    if form.find("client_id").is_some_and(|other| other != client_id) {
        return Err(invalid_request("header and form name different clients"));
    }
    // An empty secret counts as no secret, as in a form (RFC 6749 §2.3.1).
    Ok(PresentedClient { client_id, secret: Some(secret).filter(|secret| !secret.is_empty()) })
}
