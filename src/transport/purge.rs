//! Purges a CDN, or a cache of the operator, by cache keys.
//!
//! The operator sets the endpoint, so any address is allowed. Calls are idempotent.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};

use crate::runtime::config::{Cdn, FieldName};
use crate::runtime::error::{Error, ErrorKind, Result, chain};
use crate::runtime::tls_client::read_body;
use crate::transport::client::{self, TRANSPORT_ANSWER_BYTES_MAX, host_and_port_of};
use crate::transport::conversation::TransportTimeouts;
use crate::transport::network_policy::NetworkPolicy;
use crate::transport::tls::CustomAuthority;
use model::ContentHash;

/// Purge addresses, of CDNs or of our own caches.
const PURGE_URLS_MAX: usize = 16;
/// The placeholder for the key in a URL.
const KEY: &str = "{key}";

/// Purges a cache by calling one of the URLs of the setting `cdn.purge_url`.
#[derive(Clone)]
pub struct CachePurger {
    client: Client,
    /// The URL, which may contain the placeholder `{key}`.
    url: String,
    method: Method,
    header: Option<String>,
    body: String,
    authorization: Option<(String, String)>,
    timeout: Duration,
}

/// A failed purge, with host and port of the cache and with its response or the network error.
#[derive(Debug, thiserror::Error)]
#[error("{endpoint}: {reason}")]
pub struct PurgeError {
    endpoint: String,
    reason: String,
    /// True if a retry of the same call would fail again.
    is_permanent: bool,
}

/// The outcome of a purge per key.
#[derive(Debug, Default)]
pub struct PurgeResult {
    /// The keys that the cache accepted.
    pub purged: Vec<String>,
    /// The number of accepted keys that were not in the cache.
    pub absent: usize,
    /// The keys that the cache refused individually.
    pub refused: Vec<(String, PurgeError)>,
    /// The reason for which the remaining keys were not purged.
    pub failed: Option<PurgeError>,
}

impl CachePurger {
    /// Creates one purger for each URL of the settings, in their order.
    ///
    /// Reads the certificate file; blocks. Fails if a setting is invalid. The message names the setting and
    /// contains no secret.
    pub fn from_settings(cdn: &Cdn) -> Result<Vec<Self>> {
        let mut urls: Vec<String> = Vec::new();
        for url in cdn.purge_url.split_whitespace() {
            // A queue is named after its URL, so repeated URLs would share one queue.
            if !urls.iter().any(|known| known == url) {
                urls.push(url.to_owned());
            }
        }
        if urls.is_empty() {
            return Ok(Vec::new());
        }
        if urls.len() > PURGE_URLS_MAX {
            return Err(wrong("purge_url", &format!("has more than {PURGE_URLS_MAX} addresses")));
        }
        let by_key = urls.iter().filter(|url| url.contains(KEY)).count();
        for url in &urls {
            // Parsed with a key, because the placeholder itself need not be valid in a URL.
            let parsed = Url::parse(&url.replace(KEY, "k"));
            if !parsed.is_ok_and(|url| is_web(&url)) {
                return Err(wrong("purge_url", "is not an http:// or https:// address"));
            }
        }
        let FieldName(header) = cdn.purge_header.clone();
        let placeholders = ["{keys}", "{keys_comma}", "{keys_json}"];
        let in_body = placeholders.iter().any(|mark| cdn.purge_body.contains(mark));
        // A call without keys would succeed and purge nothing (contract caching-13).
        if by_key < urls.len() && header.is_empty() && !in_body {
            let problem = "has no {key}, and neither purge_header nor purge_body carries the keys";
            return Err(wrong("purge_url", problem));
        }
        let FieldName(method) = &cdn.purge_method;
        let method = Method::from_bytes(method.as_bytes());
        let method = method.map_err(|_| wrong("purge_method", "is not a method"))?;
        let timeout = Duration::from_secs(u64::from(cdn.purge_timeout_s));
        let timeouts = TransportTimeouts { connect: timeout, answer: timeout };
        let authority = CustomAuthority::read_file(&cdn.purge_ca);
        let authority = authority.map_err(|why| wrong("purge_ca", &why))?;
        let client = client::client(&authority, timeouts, NetworkPolicy::Anywhere);
        let client = client.map_err(|fault| wrong("purge_ca", &fault.to_string()))?;
        let header = Some(header).filter(|name| !name.is_empty());
        let authorization = authorization(&cdn.purge_authorization.0)?;
        let purgers = urls.into_iter().map(|url| Self {
            client: client.clone(),
            url,
            method: method.clone(),
            header: header.clone(),
            body: cdn.purge_body.clone(),
            authorization: authorization.clone(),
            timeout,
        });
        Ok(purgers.collect())
    }

    /// Returns a name for the URL, which is a hash because the URL may contain a token.
    pub fn name(&self) -> String {
        ContentHash::new(self.url.as_bytes()).short()
    }

    /// Purges `keys`, which contain only letters, digits, `-`, `_` and `.`.
    ///
    /// A 2xx response is a success. If the URL contains the key, a 404 or 410 is a success too: nothing is cached
    /// under the key. Permanently refused keys are purged one by one, so that a key that a cache cannot accept
    /// does not block the others. Any other failure ends the call.
    pub async fn purge(&self, keys: &[String]) -> PurgeResult {
        let by_key = self.url.contains(KEY);
        let mut result = PurgeResult::default();
        // One call for all keys. Only after a permanent refusal is each key sent separately below.
        if !by_key && keys.len() > 1 {
            match self.call(&self.url, keys).await {
                Ok(_) => return PurgeResult { purged: keys.to_vec(), ..result },
                Err(refusal) if refusal.is_permanent => {}
                Err(failure) => return PurgeResult { failed: Some(failure), ..result },
            }
        }
        for key in keys {
            let url = self.url.replace(KEY, key);
            match self.call(&url, std::slice::from_ref(key)).await {
                Ok(is_absent) => {
                    result.purged.push(key.clone());
                    result.absent += usize::from(is_absent);
                }
                Err(refusal) if refusal.is_permanent => {
                    result.refused.push((key.clone(), refusal));
                }
                Err(failure) => return PurgeResult { failed: Some(failure), ..result },
            }
        }
        result
    }

    /// Makes one call. Returns whether the cache had nothing under the key.
    async fn call(&self, url: &str, keys: &[String]) -> std::result::Result<bool, PurgeError> {
        let url =
            Url::parse(url).map_err(|error| temporary_error("purge_url", error.to_string()))?;
        let endpoint = host_and_port_of(&url);
        let request = self.request(self.client.request(self.method.clone(), url), keys);
        let mut response = request.send().await.map_err(|error| {
            // The URL may contain a token.
            temporary_error(&endpoint, chain(&error.without_url()))
        })?;
        let status = response.status();
        // The body is read only so that the connection can be reused.
        let _ignored = read_body(&mut response, TRANSPORT_ANSWER_BYTES_MAX).await;
        let is_absent = self.url.contains(KEY) && matches!(status.as_u16(), 404 | 410);
        if status.is_success() || is_absent {
            return Ok(is_absent);
        }
        let refusal = temporary_error(&endpoint, format!("answered {status}"));
        Err(PurgeError { is_permanent: is_for_good(status), ..refusal })
    }

    fn request(&self, request: RequestBuilder, keys: &[String]) -> RequestBuilder {
        let mut request = request.timeout(self.timeout);
        if let Some(name) = &self.header {
            request = request.header(name, keys.join(" "));
        }
        if let Some((name, value)) = &self.authorization {
            request = request.header(name, value);
        }
        if self.body.is_empty() {
            return request;
        }
        // The body is free text, so its type is derived from its first character.
        let is_json = self.body.trim_start().starts_with(['{', '[']);
        let content_type = if is_json { "application/json" } else { "text/plain" };
        let quoted: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
        let body = self
            .body
            .replace("{keys_json}", &quoted.join(","))
            .replace("{keys_comma}", &keys.join(","))
            .replace("{keys}", &keys.join(" "));
        request.header("content-type", content_type).body(body)
    }
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

fn temporary_error(endpoint: &str, reason: String) -> PurgeError {
    PurgeError { endpoint: endpoint.to_owned(), reason, is_permanent: false }
}

/// Returns whether the call itself is wrong. Permissions and rate limits may change at any time, so their statuses
/// are temporary.
fn is_for_good(status: StatusCode) -> bool {
    let may_change = [401, 403, 407, 408, 409, 421, 425, 429];
    status.is_client_error() && !may_change.contains(&status.as_u16())
}

fn wrong(setting: &str, problem: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("cdn.{setting} {problem}"))
}

/// Parses the setting `cdn.purge_authorization`: `NAME: VALUE`, or a value of `Authorization`, in which a space
/// follows the scheme and not a colon.
fn authorization(text: &str) -> Result<Option<(String, String)>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err(wrong("purge_authorization", "has characters that a header cannot have"));
    }
    Ok(Some(match text.split_once(':') {
        Some((name, value)) if FieldName::is_token(name) => (name.into(), value.trim().into()),
        Some(_) | None => ("authorization".into(), text.into()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authorization_is_a_header_of_its_own_or_a_value() {
        let check = |text: &str, name: &str, value: &str| {
            let expected = Some((name.to_owned(), value.to_owned()));
            assert_eq!(authorization(text).unwrap(), expected, "{text}");
        };
        check("Bearer a:b", "authorization", "Bearer a:b");
        check("Fastly-Key: k:1", "Fastly-Key", "k:1");
        check("Basic dTpw", "authorization", "Basic dTpw");
        assert_eq!(authorization("  ").unwrap(), None);
        let refused = authorization("Bearer geheim\u{e4}").unwrap_err().to_string();
        assert!(refused.contains("cdn.purge_authorization") && !refused.contains("geheim"));
    }
}
