//! Connects to a bucket.
//!
//! The library signs, makes requests and retries. The connections are ours: no redirects, no proxy, nothing
//! from the environment, a timeout for every wait. No body is longer than the requested range, so each is
//! read whole, and a body that breaks off is retried like a missing answer.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use std::{fmt, io};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use reqwest::{Client, Response, Url};

use super::circuit_breaker::{BucketFault, CircuitBreaker};
use super::credentials::CredentialSource;
use super::endpoints::FailoverStore;
use super::s3_answer::{NO_ANSWER, describe, failure_reason, likely_setting};
use super::{StoreError, StoreResult, bad};
use crate::runtime::error::chain;
use crate::runtime::tls_client::{CustomAuthority, http_client};
use crate::runtime::{limits, telemetry};

/// Bytes of a bucket's response. A page of a list, 1000 keys, is about 400 kB.
const BUCKET_ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Connect timeout for one of several addresses.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// A bucket and its connection: the settings `store.…` in the terms of this unit.
#[derive(Clone)]
pub struct BucketSettings {
    pub bucket: String,
    /// The prefix of all keys, without a slash at either end; may be empty.
    pub prefix: String,
    /// Equivalent base URLs of the service, without a slash at their ends. Empty: Amazon's in the region.
    pub endpoints: Vec<String>,
    pub region: String,
    pub credentials: CredentialSource,
    /// True if the bucket is the first part of the path rather than of the host name.
    pub path_style: bool,
    /// True if the endpoint may be `http://`.
    pub plain_http: bool,
    /// File of certificates (PEM) that are trusted besides the public authorities; empty: none.
    pub ca: PathBuf,
    /// Time limit for the beginning of an answer and for each piece of it.
    pub answer: Duration,
    /// Time limit for all attempts of a request, besides the time to transfer its bytes.
    pub give_up: Duration,
    /// Maximum number of concurrent requests.
    pub requests: usize,
}

impl fmt::Debug for BucketSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place())
    }
}

impl BucketSettings {
    /// Returns `s3://bucket/prefix`, as messages name it.
    pub(super) fn place(&self) -> String {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        format!("s3://{}{slash}{}", self.bucket, self.prefix)
    }

    /// Returns the host names of the service, as messages name them.
    fn host(&self) -> String {
        match self.endpoints.as_slice() {
            [] => format!("s3.{}.amazonaws.com", self.region),
            endpoints => endpoints.join(","),
        }
    }

    /// Checks what can be checked without a request, and reads the files of the credentials.
    ///
    /// Fails with the name of the invalid setting.
    pub fn check(&self) -> StoreResult<()> {
        let breaker = Arc::new(CircuitBreaker::new(self.place()));
        self.open(&breaker, &Arc::default(), 0, None).map(drop)
    }

    /// Creates the client of the bucket, which reports answers to `breaker` and retries a failed request up
    /// to `retries_max` times. Sends no request yet.
    ///
    /// Fails with the name of the invalid setting.
    pub(super) fn open(
        &self,
        breaker: &Arc<CircuitBreaker>,
        first: &Arc<AtomicUsize>,
        retries_max: usize,
        attempt_timeout: Option<Duration>,
    ) -> StoreResult<Arc<dyn ObjectStore>> {
        Ok(match self.endpoints.as_slice() {
            [] => Arc::new(self.open_at(None, breaker, retries_max)?),
            [endpoint] => Arc::new(self.open_at(Some(endpoint), breaker, retries_max)?),
            several => {
                // No retries at the same address: failover tries the next one.
                let clients = several
                    .iter()
                    .map(|endpoint| self.open_at(Some(endpoint), breaker, 0).map(Arc::new));
                Arc::new(FailoverStore {
                    clients: clients.collect::<Result<_, _>>()?,
                    first: Arc::clone(first),
                    rounds: retries_max,
                    attempt_timeout,
                    breaker: Arc::clone(breaker),
                })
            }
        })
    }

    fn open_at(
        &self,
        endpoint: Option<&str>,
        breaker: &Arc<CircuitBreaker>,
        retries_max: usize,
    ) -> StoreResult<AmazonS3> {
        // The region is part of Amazon's host names, so it must be a valid label of a host name.
        let is_label =
            self.region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if self.region.is_empty() || !is_label {
            return Err(bad("store.region", "expected a region's name such as eu-north-1"));
        }
        // A request is signed either way, but pictures would cross the network in the clear.
        if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) && !self.plain_http {
            let why = "expected https://; store.plain_http permits http://";
            return Err(bad("store.endpoint", why));
        }
        let breaker = Arc::clone(breaker);
        let is_one_of_many = self.endpoints.len() > 1;
        let connector = BucketConnector {
            client: self.client()?,
            answer: self.answer,
            breaker,
            is_one_of_many,
        };
        let mut builder = AmazonS3Builder::new()
            .with_http_connector(connector)
            .with_client_options(ClientOptions::new().with_allow_http(self.plain_http))
            .with_retry(self.retry(retries_max))
            .with_bucket_name(&self.bucket)
            .with_region(&self.region)
            // Some services lack the request that deletes several objects.
            .with_disable_bulk_delete(true)
            .with_virtual_hosted_style_request(!self.path_style);
        builder = self.credentials.apply(builder)?;
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(self.endpoint_with_bucket(endpoint)?);
        }
        builder.build().map_err(|error| bad("store.endpoint", describe(&error)))
    }

    fn retry(&self, max_retries: usize) -> RetryConfig {
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(3),
            base: 2.0,
        };
        RetryConfig { backoff, max_retries, retry_timeout: self.give_up }
    }

    /// Returns the endpoint in the library's format: with the bucket in the host name, unless path style is
    /// used.
    fn endpoint_with_bucket(&self, endpoint: &str) -> StoreResult<String> {
        let mut endpoint =
            Url::parse(endpoint).map_err(|error| bad("store.endpoint", error.to_string()))?;
        if !self.path_style {
            let host = endpoint.host_str().map(|host| format!("{}.{host}", self.bucket));
            // An IP address cannot have a bucket name in front.
            if endpoint.set_host(host.as_deref()).is_err() || endpoint.domain().is_none() {
                let why = "host needs an endpoint with a name, and this one is an address";
                return Err(bad("store.address_style", why));
            }
        }
        Ok(endpoint.as_str().trim_end_matches('/').to_owned())
    }

    fn client(&self) -> StoreResult<Client> {
        let authority =
            CustomAuthority::read_file(&self.ca).map_err(|why| bad("store.ca", why))?;
        let tls = authority.client_config().map_err(|error| bad("store.ca", error.to_string()))?;
        let built = http_client(tls)
            .http1_only()
            .connect_timeout(self.connecting())
            .pool_max_idle_per_host(self.requests)
            .build();
        built.map_err(|error| bad("store.ca", error.without_url().to_string()))
    }

    /// Returns the connect timeout, which is short if there is a second address to try.
    fn connecting(&self) -> Duration {
        match self.endpoints.len() {
            0 | 1 => self.answer,
            _ => self.answer.min(CONNECT_MAX),
        }
    }

    /// Names the setting that is likely to be wrong after the first request of a kind failed. `what` is the
    /// attempted operation, empty for a plain check.
    pub(super) fn setting_error(&self, what: &str, error: &object_store::Error) -> StoreError {
        let setting = likely_setting(&chain(error));
        bad(setting, format!("{} at {}: {what}{}", self.place(), self.host(), describe(error)))
    }
}

/// Makes the library use our connections.
#[derive(Clone, Debug)]
struct BucketConnector {
    client: Client,
    answer: Duration,
    breaker: Arc<CircuitBreaker>,
    /// True if other addresses may still answer. [`FailoverStore`] then reports to the breaker if no address
    /// does.
    is_one_of_many: bool,
}

impl HttpConnector for BucketConnector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

fn failed(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else {
        // A broken connection: every request is idempotent and can be sent again.
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error.without_url())
}

impl BucketConnector {
    /// Waits for `work`, at most for `limit`.
    async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, HttpError> {
        match tokio::time::timeout(limit, work).await {
            Ok(outcome) => outcome.map_err(failed),
            Err(_) => {
                let message = format!("{NO_ANSWER} {limit:?}");
                let cause = io::Error::new(io::ErrorKind::TimedOut, message);
                Err(HttpError::new(HttpErrorKind::Timeout, cause))
            }
        }
    }

    async fn body(&self, response: &mut Response) -> Result<Bytes, HttpError> {
        let mut body = Vec::new();
        // The time limit applies to each chunk, so that a slow transfer that makes progress is not cut off.
        while let Some(chunk) = self.within(self.answer, response.chunk()).await? {
            if body.len() + chunk.len() > BUCKET_ANSWER_BYTES_MAX {
                let cause = io::Error::other("the answer is too long");
                return Err(HttpError::new(HttpErrorKind::Decode, cause));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.into())
    }

    /// Sends a request. Returns the response, and a copy of its body.
    async fn send(&self, request: HttpRequest) -> Result<(HttpResponse, Bytes), HttpError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string());
        let url = url.map_err(|error| HttpError::new(HttpErrorKind::Decode, error))?;
        let bytes = u64::try_from(body.content_length()).unwrap_or(u64::MAX);
        let sending = Duration::from_secs(bytes / limits::BUCKET_BYTES_S_MIN);
        metrics::counter!(telemetry::BUCKET_BYTES, "direction" => "out").increment(bytes);
        let request = self.client.request(parts.method, url).headers(parts.headers);
        let request = request.body(reqwest::Body::wrap(body));
        // An answer can begin only after the body has arrived.
        let limit = self.answer.saturating_add(sending);
        let mut response = self.within(limit, request.send()).await?;
        let body = self.body(&mut response).await?;
        let bytes = u64::try_from(body.len()).unwrap_or(u64::MAX);
        metrics::counter!(telemetry::BUCKET_BYTES, "direction" => "in").increment(bytes);
        let mut answer = HttpResponse::new(HttpResponseBody::from(body.clone()));
        *answer.status_mut() = response.status();
        *answer.headers_mut() = std::mem::take(response.headers_mut());
        Ok((answer, body))
    }
}

#[async_trait]
impl HttpService for BucketConnector {
    /// Sends a request, and reports its outcome to the circuit breaker and the metrics.
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let method = match request.method().as_str() {
            "GET" => "get",
            "HEAD" => "head",
            "PUT" => "put",
            "POST" => "post",
            _ => "delete",
        };
        let began = self.breaker.now();
        let answer = self.send(request).await;
        match &answer {
            Ok((answer, body)) if is_failure(method, answer.status().as_u16()) => {
                let status = answer.status().as_u16();
                let refused = matches!(status, 401 | 403);
                let fault = if refused { BucketFault::Refused } else { BucketFault::NoAnswer };
                // With several addresses, only a refusal counts here, because it is the same at every
                // address.
                if refused || !self.is_one_of_many {
                    self.breaker.record_failure(began, fault, &failure_reason(status, body));
                }
            }
            Ok(_) => self.breaker.record_success(),
            // `FailoverStore` reports the failure if no other address answers.
            Err(_) if self.is_one_of_many => {}
            Err(error) => {
                self.breaker.record_failure(began, BucketFault::NoAnswer, &describe(error));
            }
        }
        let outcome =
            answer.as_ref().map_or("failed", |(answer, _)| outcome(answer.status().as_u16()));
        metrics::counter!(telemetry::BUCKET_REQUESTS, "method" => method, "outcome" => outcome)
            .increment(1);
        answer.map(|(answer, _)| answer)
    }
}

/// Returns the metrics label for an answer with this status. An object that is missing, unchanged, replaced
/// or shorter than the requested range counts as a successful answer.
fn outcome(status: u16) -> &'static str {
    match status {
        200..300 | 304 | 404 | 412 | 416 => "done",
        429 | 500.. => "failed",
        _ => "refused",
    }
}

/// Returns whether the answer shows an unhealthy bucket. A bucket that can be read and not written is healthy
/// for all readers.
fn is_failure(method: &str, status: u16) -> bool {
    let reads = matches!(method, "get" | "head");
    matches!(status, 429 | 500..) || (reads && matches!(status, 401 | 403))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which setting is blamed when a service answers this status with this code and message.
    fn check((status, code, message): (u16, &str, &str), expected: &'static str) {
        let settings = BucketSettings {
            bucket: "pictures".to_owned(),
            prefix: String::new(),
            endpoints: vec!["https://s3.example".to_owned()],
            region: "eu-north-1".to_owned(),
            credentials: CredentialSource::key("id", "key"),
            path_style: true,
            plain_http: false,
            ca: PathBuf::new(),
            answer: Duration::from_secs(1),
            give_up: Duration::from_secs(1),
            requests: 1,
        };
        let answer = format!(
            "Server returned non-2xx status code: {status} : <Error><Code>{code}</Code>\
             <Message>{message}</Message></Error>"
        );
        let error = object_store::Error::Generic { store: "S3", source: answer.into() };
        let found = settings.setting_error("", &error);
        let StoreError::Setting { setting, why } = &found else { panic!("{found:?}") };
        assert_eq!(*setting, expected, "{why}");
        assert!(why.contains(&format!("{code}: {message}")), "{why}");
    }

    #[test]
    fn an_error_of_the_service_names_the_setting_that_is_probably_wrong() {
        check((404, "NoSuchBucket", "no such bucket"), "store.originals");
        check((403, "InvalidAccessKeyId", "who is that"), "store.access_key_id");
        check((403, "SignatureDoesNotMatch", "check your key"), "store.secret_access_key");
        check((403, "AccessDenied", "Access Denied."), "store.access_key_id");
        check((400, "AuthorizationHeaderMalformed", "the region is wrong"), "store.region");
        // Garage's message for a wrong secret.
        check((403, "AccessDenied", "Forbidden: No such key: GK1"), "store.access_key_id");
        check((403, "AccessDenied", "Forbidden: Invalid signature"), "store.secret_access_key");
    }

    #[test]
    fn statuses_are_classified_as_done_refused_or_failed() {
        for (statuses, expected) in [
            (&[200, 204, 206, 304, 404, 412, 416][..], "done"),
            (&[301, 400, 401, 403], "refused"),
            (&[429, 500, 502, 503, 504], "failed"),
        ] {
            for status in statuses {
                assert_eq!(outcome(*status), expected, "{status}");
            }
        }
    }
}
