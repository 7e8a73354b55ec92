//! Posts deliveries to a URL, signed according to Standard Webhooks.
//!
//! The default mode, `notify`, posts one JSON object per delivery:
//!
//! ```json
//! {"id": "…", "uri": "…", "headline": "…", "version": "…",
//!  "files": [{"name": "….jpg", "mime": "image/jpeg", "size": 123, "url": "https://…"}]}
//! ```
//!
//! The mode `files` posts each file as a separate request: the body is the file, `content-type` is its media type,
//! and the header `wirephoto-file` has one line of JSON in ASCII:
//!
//! ```json
//! {"delivery": "…", "uri": "…", "version": "…", "name": "….jpg", "mime": "image/jpeg",
//!  "size": 123, "sha256": "<64 hex digits>", "index": 1, "count": 2}
//! ```
//!
//! Every request has the headers
//! - `webhook-id`: the delivery's id; in the mode `files` followed by `:` and the file's index. A retry has the
//!   same id, so that receivers can discard duplicates.
//! - `webhook-timestamp`: the time of sending in seconds since 1970. Receivers refuse old requests.
//! - `webhook-signature`: `v1,` and the base64 of HMAC-SHA256 over `<webhook-id>.<webhook-timestamp>.<content>`.
//!   In the mode `notify`, the content is the body. In the mode `files`, it is the value of the header
//!   `wirephoto-file`, whose `sha256` authenticates the body; a receiver can thus verify the sender before it
//!   reads a hundred megabytes.
//!
//! The key is the setting `secret`: the part after `whsec_`, decoded from base64, or the text itself without that
//! prefix. A library for Standard Webhooks verifies both modes. In the mode `files`, its payload is the value of
//! the header `wirephoto-file`, and the receiver compares the body with `sha256`.
//!
//! A 2xx response accepts the delivery. Redirects are not followed.

use aws_lc_rs::{digest, hmac};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::stream;
use reqwest::{Body, Client, RequestBuilder, Url};
use serde_json::{Value, json};

use crate::runtime::tls_client::read_body;
use crate::transport::{
    DeliveryParcel,
    client::{self, TRANSPORT_ANSWER_BYTES_MAX, address, host_and_port_of},
    conversation::{RemoteConversation, TransportTimeouts},
    error::{SendError, SendFault, SendRefusal, SendStep},
    file::{OutgoingFile, OutgoingReader},
    network_policy::NetworkPolicy,
    settings::{FieldProblem, HIDDEN, SettingsReader, TransportSecret, invalid_setting},
    tls::{CustomAuthority, read_authority},
};

/// Minimum bytes of a webhook's secret (Standard Webhooks asks for 24 to 64).
const WEBHOOK_SECRET_BYTES_MIN: usize = 24;

/// The content of webhook requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WebhookMode {
    /// One request per delivery, which lists the files with their URLs.
    Notify,
    /// One request per file, which contains the file.
    Files,
}

/// A webhook URL with its shared secret.
pub(super) struct WebhookTarget {
    url: Url,
    key: hmac::Key,
    secret: TransportSecret,
    mode: WebhookMode,
    authority: CustomAuthority,
}

impl std::fmt::Debug for WebhookTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Webhook {} {:?}", host_and_port_of(&self.url), self.mode)
    }
}

impl WebhookTarget {
    pub(super) fn read(fields: &mut SettingsReader<'_>) -> Result<Self, FieldProblem> {
        let allow_http = fields.switch("allowHttp")?;
        let url = address("url", &fields.text("url")?, allow_http)?;
        // Path and query of a webhook URL are often its only secret.
        fields.record_listed(
            "url",
            format!("{}://{}/{HIDDEN}", url.scheme(), host_and_port_of(&url)),
        );
        let secret = fields.secret("secret")?;
        let bytes = match secret.reveal().strip_prefix("whsec_") {
            Some(text) => STANDARD.decode(text).map_err(|_| invalid_secret())?,
            None => secret.reveal().as_bytes().to_vec(),
        };
        if bytes.len() < WEBHOOK_SECRET_BYTES_MIN {
            return Err(invalid_secret());
        }
        let mode = match fields.find_text("mode")?.as_deref() {
            None | Some("notify") => WebhookMode::Notify,
            Some("files") => WebhookMode::Files,
            Some(_) => return Err(invalid_setting("mode", "`notify` or `files`")),
        };
        let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
        Ok(Self { url, key, secret, mode, authority: read_authority(fields)? })
    }

    pub(super) async fn send(
        &self,
        timeouts: TransportTimeouts,
        policy: NetworkPolicy,
        parcel: &DeliveryParcel,
        files: &[OutgoingFile],
    ) -> Result<(), SendError> {
        let mut secrets = vec![self.secret.reveal()];
        secrets.extend([self.url.path(), self.url.query().unwrap_or_default()]);
        // A path of `/` is not a secret, and masking it would garble every error.
        secrets.retain(|secret| secret.len() > 1);
        let conversation =
            RemoteConversation { endpoint: host_and_port_of(&self.url), timeouts, secrets };
        // The resolver checks only host names, so a URL with an IP address is checked here.
        conversation.check(SendStep::Connect, policy.check(&self.url))?;
        let client = client::client(&self.authority, timeouts, policy);
        let client = conversation.check(SendStep::Prepare, client)?;
        match self.mode {
            WebhookMode::Notify => {
                conversation
                    .await_answer(SendStep::Post, self.notify(&client, parcel, files))
                    .await
            }
            WebhookMode::Files => {
                for index in 0..files.len() {
                    // The file is read twice: for its checksum, and for sending.
                    let limit = timeouts.transfer(files[index].size_bytes.saturating_mul(2));
                    let posted = self.post_file(&client, timeouts, parcel, files, index);
                    conversation.run_within(limit, SendStep::Post, posted).await?;
                }
                Ok(())
            }
        }
    }

    async fn notify(
        &self,
        client: &Client,
        parcel: &DeliveryParcel,
        files: &[OutgoingFile],
    ) -> Result<(), SendFault> {
        let files: Vec<Value> = files.iter().map(file_json).collect();
        let DeliveryParcel { id, item_uri, headline, version, .. } = parcel;
        let body = json!({
            "id": id, "uri": item_uri, "headline": headline, "version": version, "files": files,
        });
        let body = body.to_string();
        let request = self.signed(client, id, parcel, &body);
        post(request.header("content-type", "application/json").body(body)).await
    }

    async fn post_file(
        &self,
        client: &Client,
        timeouts: TransportTimeouts,
        parcel: &DeliveryParcel,
        files: &[OutgoingFile],
        index: usize,
    ) -> Result<(), SendFault> {
        let file = &files[index];
        let checksum = sha256_hex(OutgoingReader::open(file, timeouts.answer).await?).await?;
        let facts = json!({
            "delivery": parcel.id, "uri": parcel.item_uri, "version": parcel.version,
            "name": file.name, "mime": file.mime, "size": file.size_bytes, "sha256": checksum,
            "index": index + 1, "count": files.len(),
        });
        let facts = ascii(&facts.to_string());
        if file.mime.chars().any(char::is_control) {
            return Err(SendRefusal::Control("media type".into()).into());
        }
        let id = format!("{}:{}", parcel.id, index + 1);
        let reader = OutgoingReader::open(file, timeouts.answer).await?;
        let chunks = stream::try_unfold(reader, |mut reader| async move {
            let chunk = reader.next().await.map_err(SourceFailure)?;
            Ok::<_, SourceFailure>(chunk.map(|chunk| (chunk, reader)))
        });
        let request = self
            .signed(client, &id, parcel, &facts)
            .header("wirephoto-file", facts)
            .header("content-type", &file.mime)
            // Without this header, the stream would be sent in chunks, without a length.
            .header("content-length", file.size_bytes)
            .body(Body::wrap_stream(chunks));
        post(request).await
    }

    fn signed(
        &self,
        client: &Client,
        id: &str,
        parcel: &DeliveryParcel,
        content: &str,
    ) -> RequestBuilder {
        let time_s = (parcel.clock)().as_second();
        let tag = hmac::sign(&self.key, format!("{id}.{time_s}.{content}").as_bytes());
        client
            .post(self.url.clone())
            .header("webhook-id", id)
            .header("webhook-timestamp", time_s)
            .header("webhook-signature", format!("v1,{}", STANDARD.encode(tag)))
    }
}

fn file_json(file: &OutgoingFile) -> Value {
    let mut object = json!({ "name": file.name, "mime": file.mime, "size": file.size_bytes });
    if let Some(url) = &file.url {
        object["url"] = url.as_str().into();
    }
    object
}

/// A read failure of our own file, as the source of a request's error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct SourceFailure(SendFault);

async fn post(request: RequestBuilder) -> Result<(), SendFault> {
    let mut response = match request.send().await {
        Ok(response) => response,
        // The cause may be our own file, and then the error must not blame the receiver.
        Err(error) => return Err(own_failure(&error).unwrap_or_else(|| error.into())),
    };
    let status = response.status().as_u16();
    if response.status().is_success() {
        // The body is discarded. It is read so that the receiver's response is not aborted.
        let _ignored = read_body(&mut response, TRANSPORT_ANSWER_BYTES_MAX).await;
        return Ok(());
    }
    let server_message = response.status().canonical_reason().unwrap_or_default().to_owned();
    let temporary = client::is_temporary(status);
    Err(match status {
        // Permanent: a retry with the same credentials cannot succeed (contract deliveries-23).
        401 | 407 => SendFault::Credentials(server_message),
        _ => SendFault::Answer { code: status.into(), server_message, temporary },
    })
}

fn invalid_secret() -> FieldProblem {
    let bytes = WEBHOOK_SECRET_BYTES_MIN;
    invalid_setting("secret", format!("`whsec_` and base64, or {bytes} bytes"))
}

/// Finds the read failure of our own file that aborted a request.
fn own_failure(error: &(dyn std::error::Error + 'static)) -> Option<SendFault> {
    let mut causes = std::iter::successors(Some(error), |&cause| cause.source());
    let SourceFailure(fault) = causes.find_map(|cause| cause.downcast_ref::<SourceFailure>())?;
    // Rebuilt, because an error cannot be moved or cloned out of the chain.
    if let SendFault::Length { name, expected, found } = fault {
        let name = name.clone();
        return Some(SendFault::Length { name, expected: *expected, found: *found });
    }
    let cause = std::io::Error::other(fault.to_string());
    Some(SendFault::Content { name: "the file".into(), cause })
}

async fn sha256_hex(mut reader: OutgoingReader) -> Result<String, SendFault> {
    let mut hasher = digest::Context::new(&digest::SHA256);
    while let Some(chunk) = reader.next().await? {
        hasher.update(&chunk);
    }
    Ok(hasher.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Escapes all characters beyond ASCII in JSON with `\u`, so that the text fits into a header.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        // DEL is ASCII, but not allowed in a header value (RFC 9110 §5.5).
        if character.is_ascii() && character != '\u{7f}' {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use jiff::Timestamp;

    use super::*;

    /// Each reading of this clock is ten minutes after the previous one.
    fn slow_clock() -> Timestamp {
        static READINGS: AtomicI64 = AtomicI64::new(0);
        Timestamp::from_second(600 * READINGS.fetch_add(1, Ordering::Relaxed)).unwrap()
    }

    #[test]
    fn every_request_is_signed_with_the_time_at_which_it_goes_out() {
        let settings = json!({ "url": "https://h.example/", "secret": "s".repeat(24) });
        let webhook =
            WebhookTarget::read(&mut SettingsReader::new(settings.as_object().unwrap())).unwrap();
        let text = |text: &str| text.to_owned();
        let parcel = DeliveryParcel {
            id: text("d"),
            item_uri: text("u"),
            headline: text("h"),
            version: text("v"),
            introductions: Vec::new(),
            clock: slow_clock,
        };
        let client = client::client(
            &CustomAuthority::default(),
            TransportTimeouts::default(),
            NetworkPolicy::Anywhere,
        )
        .unwrap();
        for time_s in ["0", "600", "1200"] {
            let request = webhook.signed(&client, "d:1", &parcel, "x").build().unwrap();
            assert_eq!(request.headers()["webhook-timestamp"], time_s);
            let tag = hmac::sign(&webhook.key, format!("d:1.{time_s}.x").as_bytes());
            let expected = format!("v1,{}", STANDARD.encode(tag));
            assert_eq!(request.headers()["webhook-signature"], expected.as_str());
        }
    }

    #[test]
    fn text_beyond_ascii_is_escaped_so_that_json_reads_the_same() {
        let value = json!({ "uri": "smörgås 📷 \u{7f} \n" });
        let line = ascii(&value.to_string());
        assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line}");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
    }
}
