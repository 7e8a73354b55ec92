//! A client of the Apple Push Notification service.
//!
//! Apple, "Sending notification requests to APNs" (headers, HTTP/2), "Establishing a token-based
//! connection to APNs" (the JWT and its age), "Generating a remote notification" (the payload) and
//! "Handling notification responses from APNs" (the reasons).

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use parking_lot::Mutex;
use reqwest::{Client, Url, header::HeaderValue};
use serde_json::{Value, json};

use super::PushMessage;
use super::client::{self, PushReply};
use super::error::PushError;
use super::payload::{FittedTexts, data, fit_payload};
use crate::runtime::limits;
use crate::transport::client::host_and_port_of;
use model::ContentHash;
use model::account::DeviceKind;

/// Bytes of `apns-collapse-id`: Apple's limit.
const PUSH_COLLAPSE_BYTES_MAX: usize = 64;
/// Hex digits of an Apple device token; those in use have 64 or 160.
const APNS_TOKEN_CHARS_MAX: usize = 512;
/// Age at which our provider token for Apple is renewed; Apple requires 20 to 60 minutes.
const APNS_BEARER_AGE: std::time::Duration = std::time::Duration::from_secs(40 * 60);
/// Minimum age for a renewal: Apple rejects more frequent ones.
const APNS_BEARER_AGE_MIN: std::time::Duration = std::time::Duration::from_secs(20 * 60);

/// The signing key of provider tokens.
pub(super) struct ApnsSigner {
    pub(super) key: EncodingKey,
    pub(super) key_id: String,
    pub(super) team_id: String,
}

impl ApnsSigner {
    /// Signs a provider token: RFC 7519 with ES256, the team as `iss` and the key as `kid`.
    pub(super) fn sign(&self, now: Timestamp) -> Result<String, jsonwebtoken::errors::Error> {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(self.key_id.clone());
        let claims = json!({ "iss": self.team_id, "iat": now.as_second() });
        jsonwebtoken::encode(&header, &claims, &self.key)
    }
}

/// A provider token in use.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ProviderToken {
    text: String,
    issued: Timestamp,
    /// True if it replaced the previous token early because Apple refused that token.
    is_early: bool,
    /// True if the next message needs a new token.
    is_refused: bool,
}

/// Issues provider tokens, one at a time.
pub(super) struct ProviderTokens {
    signer: ApnsSigner,
    current: Mutex<Option<ProviderToken>>,
}

impl ProviderTokens {
    pub(super) fn new(signer: ApnsSigner) -> Self {
        Self { signer, current: Mutex::new(None) }
    }

    /// Returns the token to use at `now`. Signing a new token costs a tenth of a millisecond.
    pub(super) fn current_token(&self, now: Timestamp) -> Result<String, PushError> {
        // The lock is held while signing, so that concurrent messages share one token.
        let mut current = self.current.lock();
        if let Some(bearer) = current.as_ref().filter(|bearer| is_fresh(bearer, now)) {
            return Ok(bearer.text.clone());
        }
        let text = self.signer.sign(now);
        let text = text.map_err(|_| PushError::later("the provider token cannot be signed"))?;
        let is_early = current.as_ref().is_some_and(|before| is_young(before, now));
        let bearer =
            ProviderToken { text: text.clone(), issued: now, is_early, is_refused: false };
        *current = Some(bearer);
        Ok(text)
    }

    /// Records that Apple refused the token `text`.
    ///
    /// The next message gets a new token. The exception is a refused token that was itself an early replacement;
    /// it stays for 20 minutes. New signatures do not help if Apple does not know the key, and Apple rejects
    /// everything after renewals in quick succession (`TooManyProviderTokenUpdates`).
    pub(super) fn mark_refused(&self, text: &str, now: Timestamp) {
        let mut current = self.current.lock();
        if let Some(bearer) = current.as_mut().filter(|bearer| bearer.text == text) {
            bearer.is_refused = !(bearer.is_early && is_young(bearer, now));
        }
    }
}

fn is_fresh(bearer: &ProviderToken, now: Timestamp) -> bool {
    let age = now.duration_since(bearer.issued);
    // If the clock was set back, the token is from the future, and Apple refuses it.
    !bearer.is_refused && !age.is_negative() && age.unsigned_abs() < APNS_BEARER_AGE
}

/// Returns whether the token is too young for Apple to accept a new one.
fn is_young(bearer: &ProviderToken, now: Timestamp) -> bool {
    now.duration_since(bearer.issued).unsigned_abs() < APNS_BEARER_AGE_MIN
}

/// The service's production and sandbox endpoints.
pub(super) struct ApnsClient {
    pub(super) client: Client,
    /// The base URL, which ends in `/3/device`.
    pub(super) production: Url,
    /// The base URL in the sandbox.
    pub(super) sandbox: Url,
    pub(super) topic: HeaderValue,
    pub(super) bearers: ProviderTokens,
}

impl ApnsClient {
    pub(super) async fn send(
        &self,
        message: &PushMessage,
        now: fn() -> Timestamp,
    ) -> Result<(), PushError> {
        let base = match message.device {
            // `Push` sends messages to Android devices to Firebase, so none get here.
            DeviceKind::Ios | DeviceKind::Android => &self.production,
            DeviceKind::IosSandbox => &self.sandbox,
        };
        let url = address(base, &message.token)?;
        let payload = fit_payload(message, |texts| payload(message, texts))?;
        let time = now();
        let bearer = self.bearers.current_token(time)?;
        let authorization = secret(&format!("bearer {bearer}"))?;
        let expiration =
            time.as_second().saturating_add_unsigned(limits::PUSH_RETENTION.as_secs());
        let mut request = self
            .client
            .post(url)
            .header("authorization", authorization)
            .header("content-type", "application/json")
            .header("apns-topic", self.topic.clone())
            .header("apns-push-type", "alert")
            // 10 means immediately; with 5 the device may wait to save power.
            .header("apns-priority", "10")
            .header("apns-expiration", expiration)
            .header("apns-id", message.id.to_string());
        if !message.collapse.is_empty() {
            request = request.header("apns-collapse-id", collapse_id(&message.collapse));
        }
        let request = request.body(payload.to_string());
        let answer = client::send_request(request, &host_and_port_of(base), now).await?;
        let outcome = result_of_answer(&answer, &message.token);
        if matches!(reason(&answer), "ExpiredProviderToken" | "InvalidProviderToken") {
            self.bearers.mark_refused(&bearer, now());
        }
        outcome
    }
}

/// Builds the URL of a device.
///
/// A token is hexadecimal. Other characters could change the path, or Apple would refuse the token.
fn address(base: &Url, token: &str) -> Result<Url, PushError> {
    let is_hex = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex || token.len() > APNS_TOKEN_CHARS_MAX {
        let reason = format!("a token of {} bytes is not hexadecimal", token.len());
        return Err(PushError::InvalidToken { reason });
    }
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push(token);
    }
    Ok(url)
}

/// Builds a header value that is never logged.
pub(super) fn secret(text: &str) -> Result<HeaderValue, PushError> {
    let value = HeaderValue::from_str(text);
    let mut value =
        value.map_err(|_| PushError::later("the access token is not a valid header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns `text` if Apple accepts it, otherwise its hash, which is still equal for messages with the same text.
pub(super) fn collapse_id(text: &str) -> String {
    let fits = text.len() <= PUSH_COLLAPSE_BYTES_MAX;
    if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return text.to_owned();
    }
    ContentHash::new(text.as_bytes()).to_string()
}

/// Builds the payload: `aps` and the data fields beside it.
pub(super) fn payload(message: &PushMessage, texts: FittedTexts<'_>) -> Value {
    let FittedTexts { title, body, image } = texts;
    let mut aps = json!({
        "alert": { "title": title, "body": body },
        "sound": "default",
        "thread-id": message.notification.to_string(),
    });
    if image.is_some() {
        // The app's extension fetches the picture before the message is displayed.
        aps["mutable-content"] = 1.into();
    }
    let mut payload = json!({ "aps": aps });
    for (name, value) in data(message, image) {
        payload[name] = value;
    }
    payload
}

fn reason(answer: &PushReply) -> &str {
    answer.body["reason"].as_str().unwrap_or_default()
}

/// Interprets the response to the message for `token`.
pub(super) fn result_of_answer(answer: &PushReply, token: &str) -> Result<(), PushError> {
    if answer.status == 200 {
        return Ok(());
    }
    let word = reason(answer);
    let reason = answer.describe(word, &[token]);
    match (answer.status, word) {
        // Removes the device (contract notifications-26).
        (410, _) | (400, "BadDeviceToken") => Err(PushError::InvalidToken { reason }),
        // `IdleTimeout` has the status of a bad request, but the connection caused it.
        (403, "ExpiredProviderToken" | "InvalidProviderToken") | (400, "IdleTimeout") => {
            Err(PushError::Retry { reason, after: answer.after })
        }
        _ if answer.is_temporary() => Err(PushError::Retry { reason, after: answer.after }),
        _ => Err(PushError::Permanent { reason }),
    }
}
