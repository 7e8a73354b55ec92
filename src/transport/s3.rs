//! Uploads files to a bucket of S3 or of a compatible service.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream::FuturesUnordered};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, MultipartUpload, ObjectStore, PutMultipartOptions, PutOptions,
    PutPayload, RetryConfig,
};
use parking_lot::Mutex;

use crate::runtime::limits;
use crate::runtime::tls_client::read_body;
use crate::transport::client::{self, TRANSPORT_ANSWER_BYTES_MAX, address, host_and_port_of};
use crate::transport::conversation::{RemoteConversation, TransportTimeouts};
use crate::transport::error::{SendError, SendFault, SendStep};
use crate::transport::file::{OutgoingFile, OutgoingReader};
use crate::transport::network_policy::NetworkPolicy;
use crate::transport::settings::{
    FieldProblem, FolderPath, SettingsReader, TransportSecret, invalid_setting, missing,
};
use crate::transport::tls::{CustomAuthority, read_authority};

/// Bytes of one part of a large upload to S3, and of the largest upload in one piece.
const S3_PART_BYTES: usize = 8 * 1024 * 1024;
/// Parts of one file in flight.
const S3_PARTS_MAX: usize = 2;

/// A bucket with its credentials.
#[derive(Debug)]
pub(super) struct S3Target {
    bucket: String,
    prefix: FolderPath,
    region: String,
    /// The URL of the service; `None` for Amazon S3.
    endpoint: Option<reqwest::Url>,
    key_id: String,
    key: TransportSecret,
    /// True if the bucket is the first part of the path instead of the host name.
    path_style: bool,
    authority: CustomAuthority,
}

impl S3Target {
    pub(super) fn read(fields: &mut SettingsReader<'_>) -> Result<Self, FieldProblem> {
        let allow_http = fields.switch("allowHttp")?;
        let endpoint = fields.find_text("endpoint")?;
        let endpoint = endpoint.map(|text| address("endpoint", &text, allow_http)).transpose()?;
        let bucket = fields.text("bucket")?;
        let is_allowed =
            bucket.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        if !(3..=63).contains(&bucket.len()) || !is_allowed {
            return Err(invalid_setting("bucket", "a bucket's name"));
        }
        let region = fields.find_text("region")?;
        if region.is_none() && endpoint.is_none() {
            return Err(missing("region"));
        }
        // Most compatible services ignore the region, but the signature must contain one.
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        if !region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(invalid_setting("region", "a region's name"));
        }
        let path_style = fields.find_switch("pathStyle")?;
        Ok(Self {
            bucket,
            prefix: FolderPath::read(fields, "prefix", false)?,
            region,
            // Compatible services seldom have a host name for each bucket.
            path_style: path_style.unwrap_or(endpoint.is_some()),
            endpoint,
            key_id: fields.text("accessKeyId")?,
            key: fields.secret("secretAccessKey")?,
            authority: read_authority(fields)?,
        })
    }

    pub(super) async fn send(
        &self,
        timeouts: TransportTimeouts,
        policy: NetworkPolicy,
        files: &[OutgoingFile],
    ) -> Result<(), SendError> {
        let host = match &self.endpoint {
            Some(endpoint) => host_and_port_of(endpoint),
            None => format!("s3.{}.amazonaws.com", self.region),
        };
        let endpoint = format!("{host} bucket {}", self.bucket);
        let conversation =
            RemoteConversation { endpoint, timeouts, secrets: vec![self.key.reveal()] };
        let last_refusal = LastRefusal::default();
        let store = self.open(timeouts, policy, &last_refusal);
        let store = conversation.check(SendStep::Prepare, store)?;
        for file in files {
            let mut parts = self.prefix.parts.clone();
            parts.push(file.name.clone());
            let key = Path::from_iter(parts);
            let limit = timeouts.transfer(file.size_bytes);
            let upload =
                BucketUpload { store: &store, key, file, last_refusal: &last_refusal, timeouts };
            conversation.run_within(limit, SendStep::Upload, upload.run()).await?;
        }
        Ok(())
    }

    fn open(
        &self,
        timeouts: TransportTimeouts,
        policy: NetworkPolicy,
        last_refusal: &LastRefusal,
    ) -> Result<AmazonS3, SendFault> {
        let client = client::client(&self.authority, timeouts, policy)?;
        let last_refusal = last_refusal.clone();
        let connector = PolicyConnector { client, policy, last_refusal, timeouts };
        // The delivery queue retries; retries here would only consume the time of the attempt.
        let no_retries = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::new()
            .with_http_connector(connector)
            // The endpoint was already checked for plain HTTP when it was parsed.
            .with_client_options(ClientOptions::new().with_allow_http(true))
            .with_retry(no_retries)
            .with_bucket_name(&self.bucket)
            .with_region(&self.region)
            .with_access_key_id(&self.key_id)
            .with_secret_access_key(self.key.reveal())
            .with_virtual_hosted_style_request(!self.path_style);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(self.endpoint_with_bucket(endpoint));
        }
        builder.build().map_err(|error| SendFault::Protocol(error.to_string()))
    }

    /// Returns the endpoint as the library expects it: with the bucket in the host name, unless path style is
    /// used.
    fn endpoint_with_bucket(&self, endpoint: &reqwest::Url) -> String {
        let mut endpoint = endpoint.clone();
        if !self.path_style
            && let Some(host) = endpoint.host_str().map(|host| format!("{}.{host}", self.bucket))
        {
            // An IP literal cannot have a prefix and stays unchanged.
            let _ignored = endpoint.set_host(Some(&host));
        }
        endpoint.as_str().trim_end_matches('/').to_owned()
    }
}

/// The upload of one file to the bucket.
struct BucketUpload<'a> {
    store: &'a AmazonS3,
    key: Path,
    file: &'a OutgoingFile,
    last_refusal: &'a LastRefusal,
    timeouts: TransportTimeouts,
}

impl BucketUpload<'_> {
    /// Uploads the file. S3 shows an object only when it is complete, so a temporary name is not needed.
    async fn run(&self) -> Result<(), SendFault> {
        let mut reader = OutgoingReader::open(self.file, self.timeouts.answer).await?;
        let mime = self.file.mime.clone();
        let attributes = Attributes::from_iter([(Attribute::ContentType, mime)]);
        let part_bytes = u64::try_from(S3_PART_BYTES).unwrap_or(u64::MAX);
        if self.file.size_bytes <= part_bytes {
            let payload = next_part(&mut reader, &mut BytesMut::new()).await?;
            let options = PutOptions { attributes, ..PutOptions::default() };
            // An empty file has no part and is sent as an empty body.
            let put = self.store.put_opts(&self.key, payload.unwrap_or_default(), options).await;
            return put.map(drop).map_err(|error| self.last_refusal.fault(&error));
        }
        let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
        let begun = self.store.put_multipart_opts(&self.key, options).await;
        let mut parts = begun.map_err(|error| self.last_refusal.fault(&error))?;
        let sent = self.send_parts(&mut reader, &mut parts).await;
        if sent.is_err() {
            // Incomplete parts are billed to the bucket's owner.
            let aborted = tokio::time::timeout(limits::TRANSPORT_CLOSE_TIMEOUT, parts.abort());
            let _ignored = aborted.await;
        }
        sent
    }

    async fn send_parts(
        &self,
        reader: &mut OutgoingReader,
        parts: &mut Box<dyn MultipartUpload>,
    ) -> Result<(), SendFault> {
        let mut in_flight = FuturesUnordered::new();
        let mut buffer = BytesMut::new();
        while let Some(payload) = next_part(reader, &mut buffer).await? {
            // Bounds the memory, since each part is held until the bucket has received it.
            if in_flight.len() == S3_PARTS_MAX
                && let Some(sent) = in_flight.next().await
            {
                let sent: object_store::Result<()> = sent;
                sent.map_err(|error| self.last_refusal.fault(&error))?;
            }
            in_flight.push(parts.put_part(payload));
        }
        while let Some(sent) = in_flight.next().await {
            sent.map_err(|error| self.last_refusal.fault(&error))?;
        }
        drop(in_flight);
        parts.complete().await.map(drop).map_err(|error| self.last_refusal.fault(&error))
    }
}

/// Reads the next part. All parts but the last have the full size; `buffer` carries the remaining bytes to the
/// next call.
async fn next_part(
    reader: &mut OutgoingReader,
    buffer: &mut BytesMut,
) -> Result<Option<PutPayload>, SendFault> {
    while buffer.len() < S3_PART_BYTES {
        match reader.next().await? {
            Some(chunk) => buffer.extend_from_slice(&chunk),
            None => break,
        }
    }
    let part = buffer.split_to(buffer.len().min(S3_PART_BYTES)).freeze();
    Ok((!part.is_empty()).then(|| PutPayload::from_bytes(part)))
}

/// The last error response. It is recorded here because the library's errors do not include its status.
#[derive(Clone, Debug, Default)]
struct LastRefusal(Arc<Mutex<Option<(u16, Bytes)>>>);

impl LastRefusal {
    fn note(&self, status: u16, body: &Bytes) {
        let mut last = self.0.lock();
        *last = Some((status, body.clone()));
    }

    fn fault(&self, error: &object_store::Error) -> SendFault {
        if let Some(fault) = SendFault::of_chain(error) {
            return fault;
        }
        // Taken, so that a later error without a response does not report it again.
        let last = self.0.lock().take();
        match last {
            Some((status, body)) => answer(status, &body),
            None => SendFault::Protocol(error.to_string()),
        }
    }
}

fn answer(status: u16, body: &[u8]) -> SendFault {
    let body = String::from_utf8_lossy(body);
    let code = error_code(&body).unwrap_or_default().to_owned();
    if matches!(code.as_str(), "InvalidAccessKeyId" | "SignatureDoesNotMatch") {
        return SendFault::Credentials(code);
    }
    // Some errors have the status 200, because the server had already begun its response.
    let busy = matches!(code.as_str(), "RequestTimeout" | "SlowDown" | "InternalError");
    let temporary = busy || client::is_temporary(status);
    SendFault::Answer { code: status.into(), server_message: code, temporary }
}

/// Returns the content of the element `Code` of an error response.
fn error_code(body: &str) -> Option<&str> {
    let (_, rest) = body.split_once("<Code>")?;
    let (code, _) = rest.split_once("</")?;
    Some(code)
}

/// Makes the library use our HTTP client.
#[derive(Clone, Debug)]
struct PolicyConnector {
    client: reqwest::Client,
    policy: NetworkPolicy,
    last_refusal: LastRefusal,
    timeouts: TransportTimeouts,
}

impl HttpConnector for PolicyConnector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

fn network_error(error: reqwest::Error) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, error.without_url())
}

#[async_trait]
impl HttpService for PolicyConnector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let bytes = u64::try_from(body.content_length()).unwrap_or(u64::MAX);
        let limit = self.timeouts.transfer(bytes);
        let url = reqwest::Url::parse(&parts.uri.to_string());
        let url = url.map_err(|error| HttpError::new(HttpErrorKind::Request, error))?;
        // The resolver checks only host names, so a URL with an IP address is checked here.
        self.policy
            .check(&url)
            .map_err(|refusal| HttpError::new(HttpErrorKind::Connect, refusal))?;
        let request = self.client.request(parts.method, url).headers(parts.headers);
        let request = request.timeout(limit).body(reqwest::Body::wrap(body));
        let mut response = request.send().await.map_err(network_error)?;
        let body = read_body(&mut response, TRANSPORT_ANSWER_BYTES_MAX).await;
        let body = body.map_err(network_error)?;
        if !response.status().is_success() || body.starts_with(b"<Error") {
            self.last_refusal.note(response.status().as_u16(), &body);
        }
        let mut answer = HttpResponse::new(HttpResponseBody::from(body));
        *answer.status_mut() = response.status();
        *answer.headers_mut() = std::mem::take(response.headers_mut());
        Ok(answer)
    }
}
