//! A client of Firebase Cloud Messaging, HTTP v1.
//!
//! Google, "Using OAuth 2.0 for server to server applications" (the assertion, RFC 7523), "Method:
//! projects.messages.send" and "`ErrorCode`" of the reference of FCM HTTP v1, "About FCM messages"
//! (4096 bytes, reserved names) and "Scale your FCM usage" (`Retry-After`).

use std::sync::Arc;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::{Client, Url};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::PushMessage;
use super::apns::secret;
use super::client::{self, PushReply};
use super::error::PushError;
use super::payload::{FittedTexts, data, fit_payload};
use crate::runtime::limits;
use crate::transport::client::host_and_port_of;

/// Validity of our assertion for an access token: Google accepts an hour at most.
const FCM_ASSERTION: std::time::Duration = std::time::Duration::from_secs(3600);
/// Margin before expiry in which an access token is no longer used, if its lifetime is more than twice
/// that.
const FCM_ACCESS_MARGIN: std::time::Duration = std::time::Duration::from_secs(300);
/// The OAuth scope of the access token.
const SCOPE: &str = "https://www.googleapis.com/auth/firebase.messaging";
/// The form body before the assertion, which needs no encoding.
const FORM: &str = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";

/// Google's message for a token that it never issued.
const NO_TOKEN: &str = "registration token is not a valid FCM registration token";

/// A Google service account with its key.
pub(super) struct ServiceAccount {
    pub(super) email: String,
    pub(super) key: EncodingKey,
    /// The id of the key, if the file contains it.
    pub(super) key_id: Option<String>,
    pub(super) token_url: Url,
    /// The token URL exactly as in the file, because `aud` is compared as text.
    pub(super) audience: String,
    pub(super) project: String,
}

impl ServiceAccount {
    /// Signs an assertion (RFC 7523) for the scope, valid for an hour.
    pub(super) fn sign(&self, now: Timestamp) -> Result<String, jsonwebtoken::errors::Error> {
        let mut header = Header::new(Algorithm::RS256);
        header.kid.clone_from(&self.key_id);
        let issued = now.as_second();
        let claims = json!({
            "iss": self.email,
            "scope": SCOPE,
            "aud": self.audience,
            "iat": issued,
            "exp": issued.saturating_add_unsigned(FCM_ASSERTION.as_secs()),
        });
        jsonwebtoken::encode(&header, &claims, &self.key)
    }
}

/// An access token with the time at which it is replaced.
struct FcmAccessToken {
    text: Arc<str>,
    until: Timestamp,
}

/// The client with its cached access token.
pub(super) struct FcmClient {
    client: Client,
    account: ServiceAccount,
    /// The URL to which messages are posted.
    url: Url,
    access: Mutex<Option<FcmAccessToken>>,
}

impl FcmClient {
    /// Creates a client that posts messages to `url`.
    pub(super) fn new(client: Client, account: ServiceAccount, url: Url) -> Self {
        Self { client, account, url, access: Mutex::new(None) }
    }

    pub(super) async fn send(
        &self,
        message: &PushMessage,
        now: fn() -> Timestamp,
    ) -> Result<(), PushError> {
        check(&message.token)?;
        let mut body = fit_payload(message, |texts| payload(message, texts))?;
        body["token"] = message.token.as_str().into();
        let body = json!({ "message": body });
        let access = self.access_token(now).await?;
        let request = self
            .client
            .post(self.url.clone())
            .header("authorization", secret(&format!("Bearer {access}"))?)
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = client::send_request(request, &host_and_port_of(&self.url), now).await?;
        // The retry fetches a new token (contract notifications-24).
        if answer.status == 401 {
            self.drop_token(&access).await;
        }
        result_of_answer(&answer, &[&message.token, &access])
    }

    /// Returns a valid access token, from the cache if possible.
    async fn access_token(&self, now: fn() -> Timestamp) -> Result<Arc<str>, PushError> {
        // Held while a token is fetched, so that the messages that wait for it share one request.
        let mut access = self.access.lock().await;
        if let Some(valid) = access.as_ref().filter(|access| now() < access.until) {
            return Ok(valid.text.clone());
        }
        let fetched = self.request_token(now).await?;
        Ok(access.insert(fetched).text.clone())
    }

    /// Drops the token `text`, unless it was already replaced.
    async fn drop_token(&self, text: &str) {
        let mut access = self.access.lock().await;
        access.take_if(|access| *access.text == *text);
    }

    /// Requests a new access token.
    ///
    /// Every failure is a [`PushError::Retry`], because the message is not at fault and an operator can restore
    /// the account's rights.
    async fn request_token(&self, now: fn() -> Timestamp) -> Result<FcmAccessToken, PushError> {
        let issued = now();
        let assertion = self.account.sign(issued);
        let assertion =
            assertion.map_err(|_| PushError::later("the assertion cannot be signed"))?;
        let request = self
            .client
            .post(self.account.token_url.clone())
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("{FORM}{assertion}"));
        let answer =
            client::send_request(request, &host_and_port_of(&self.account.token_url), now).await?;
        if answer.status != 200 {
            let error = answer.body["error"].as_str().unwrap_or_default();
            // RFC 6749 §5.2. The description helps the operator who set up the account.
            let description = answer.body["error_description"].as_str().unwrap_or_default();
            return Err(no_access(&answer, &format!("{error} {description}"), &assertion));
        }
        read_access(&answer.body, issued)
            .ok_or_else(|| no_access(&answer, "no access token in it", &assertion))
    }
}

/// Creates the error for a response without an access token. The assertion of the request is removed from it.
fn no_access(answer: &PushReply, reason: &str, assertion: &str) -> PushError {
    let reason = answer.describe(reason, &[assertion]);
    PushError::Retry { reason: format!("access token: {reason}"), after: answer.after }
}

/// Reads the access token from a response (RFC 6749 §5.1) to a request made at `issued`.
fn read_access(body: &Value, issued: Timestamp) -> Option<FcmAccessToken> {
    let text = body["access_token"].as_str()?;
    let valid = body["expires_in"].as_u64()?;
    // A token with a short lifetime is used for half of that time; a full margin would make it unusable.
    let margin = FCM_ACCESS_MARGIN.as_secs().min(valid / 2);
    let used = i64::try_from(valid - margin).ok()?;
    let until = issued.checked_add(jiff::SignedDuration::from_secs(used)).ok()?;
    let graphic = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    graphic.then(|| FcmAccessToken { text: text.into(), until })
}

/// Checks a device token. Firebase does not document the format of its tokens; known tokens consist of letters,
/// digits, `:`, `-` and `_`.
fn check(token: &str) -> Result<(), PushError> {
    let graphic = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !graphic || token.len() > limits::DEVICE_TOKEN_BYTES_MAX {
        let reason = format!("a token of {} bytes is not graphic ASCII", token.len());
        return Err(PushError::InvalidToken { reason });
    }
    Ok(())
}

/// Builds the message without the token, which does not count towards the size limit.
pub(super) fn payload(message: &PushMessage, texts: FittedTexts<'_>) -> Value {
    let FittedTexts { title, body, image } = texts;
    let mut notification = json!({ "title": title, "body": body });
    if let Some(image) = image {
        notification["image"] = image.into();
    }
    let ttl = format!("{}s", limits::PUSH_RETENTION.as_secs());
    // With normal priority, the message would wait until a sleeping device wakes up.
    let mut android = json!({ "priority": "high", "ttl": ttl });
    if !message.collapse.is_empty() {
        android["collapse_key"] = message.collapse.as_str().into();
    }
    json!({ "notification": notification, "data": data(message, image), "android": android })
}

/// Returns the FCM error code of a response, such as `UNREGISTERED`; empty if there is no code.
fn code(error: &Value) -> &str {
    let details = error["details"].as_array().map(Vec::as_slice).unwrap_or_default();
    let codes = details.iter().filter_map(|detail| detail["errorCode"].as_str());
    codes.into_iter().next().unwrap_or_default()
}

/// Returns whether a response reports the token as invalid: by the name of the field or, in Google's present
/// responses, only in the message (firebase/firebase-admin-java issue 1064).
fn blames_token(error: &Value) -> bool {
    let details = error["details"].as_array().map(Vec::as_slice).unwrap_or_default();
    let violations = details.iter().filter_map(|detail| detail["fieldViolations"].as_array());
    let named = violations.flatten().any(|violation| violation["field"] == "message.token");
    named || error["message"].as_str().is_some_and(|text| text.contains(NO_TOKEN))
}

/// Interprets the response to a message. `secrets` are removed from the error.
pub(super) fn result_of_answer(answer: &PushReply, secrets: &[&str]) -> Result<(), PushError> {
    if answer.status == 200 {
        return Ok(());
    }
    let error = &answer.body["error"];
    let code = code(error);
    let status = error["status"].as_str().unwrap_or_default();
    let message = error["message"].as_str().unwrap_or_default();
    let name = if code.is_empty() { status } else { code };
    let reason = answer.describe(&format!("{name} {message}"), secrets);
    match (answer.status, code) {
        // Only `UNREGISTERED` removes a device, because a wrong key file of ours may also cause a sender mismatch.
        (404, "UNREGISTERED") => Err(PushError::InvalidToken { reason }),
        (400, _) if blames_token(error) => Err(PushError::InvalidToken { reason }),
        (401, _) => Err(PushError::Retry { reason, after: answer.after }),
        _ if answer.is_temporary() => Err(PushError::Retry { reason, after: answer.after }),
        _ => Err(PushError::Permanent { reason }),
    }
}
