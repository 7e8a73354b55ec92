//! Calls the APIs from pages, in the same process and through the same router as external requests, so that every
//! function of a page is available to programs.

use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower::ServiceExt;

use super::SiteRequest;
use crate::http::session::SiteVisitor;
use crate::http::{AppState, credentials};
use crate::runtime::error::{Error, ErrorKind, Result};
use api::{Answer, Endpoint, NoBody, RequestBody, target};

/// Bytes of an API response that a page is built from. A collection with all its documents is the
/// largest.
const SITE_ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The router of the APIs, without the pages.
#[derive(Clone)]
pub(in crate::http) struct ApiRouter(pub(in crate::http) Router);

/// The status of a response that is too long for a page.
// No API sends this status, so it cannot be confused with a refusal.
const TOO_LONG: StatusCode = StatusCode::INSUFFICIENT_STORAGE;

/// A call of an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::http) struct ApiCall {
    /// The method of the request.
    pub(super) method: Method,
    /// Path and query of the call.
    pub(super) target: String,
    pub(super) body: Option<Value>,
    /// The value of the header `If-Match`.
    if_match: Option<String>,
}

impl ApiCall {
    fn new(method: Method, target: impl Into<String>) -> Self {
        Self { method, target: target.into(), body: None, if_match: None }
    }

    pub(super) fn get(target: impl Into<String>) -> Self {
        Self::new(Method::GET, target)
    }

    /// Adds query parameters. Parameters without a value are left out.
    pub(super) fn query<'a>(
        mut self,
        pairs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    ) -> Self {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in pairs {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                query.append_pair(name, value);
            }
        }
        let query = query.finish();
        if !query.is_empty() {
            // Some targets have a fixed query already, such as `layout=bare`.
            self.target.push(if self.target.contains('?') { '&' } else { '?' });
            self.target.push_str(&query);
        }
        self
    }

    pub(super) fn json(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Names the version of the object that the call is based on; `None` for any version.
    pub(super) fn if_match(mut self, tag: Option<&str>) -> Self {
        self.if_match = tag.map(str::to_owned);
        self
    }
}

/// Percent-encodes a path segment.
pub(super) fn encode_segment(text: &str) -> String {
    // Dot segments are encoded too, because they would change the path.
    let is_dots = text == "." || text == "..";
    model::percent_encode(text, |byte| {
        !is_dots && (byte.is_ascii_alphanumeric() || b"-_.~:@".contains(&byte))
    })
}

/// Returns the text of the property `name` of a JSON object; empty if the property is missing or not a string.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// An API's error response to a call.
#[derive(Clone, Debug)]
pub(in crate::http) struct ApiRefusal {
    pub(super) status: StatusCode,
    /// The message of the error document.
    pub(super) message: String,
    /// The entries of the error document, one for each wrong parameter or property.
    pub(super) errors: Vec<FieldError>,
}

/// An entry of an error document.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FieldError {
    pub(super) error_code: String,
    pub(super) path: String,
    pub(super) message: String,
}

impl ApiRefusal {
    /// Creates a refusal with one message for the whole call.
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), errors: Vec::new() }
    }

    /// Creates a refusal because of the field at `path` of a form, in the format of the API's refusals, so that a page
    /// shows both in the same way.
    pub(super) fn of_field(
        status: StatusCode,
        error_code: impl Into<String>,
        path: &str,
        message: &str,
    ) -> Self {
        let error = FieldError {
            error_code: error_code.into(),
            path: path.to_owned(),
            message: message.to_owned(),
        };
        Self { errors: vec![error], ..Self::new(status, message) }
    }

    /// A form whose field for the property `path` breaks `rule` of the contract, in the form of the API's refusal.
    pub(super) fn invalid(rule: &str, path: &str, message: &str) -> Self {
        let error_code = format!("{rule}.openapi.requestValidation");
        let message = format!("{path} {message}");
        Self::of_field(StatusCode::BAD_REQUEST, error_code, path, &message)
    }

    /// Returns the messages to show on a page: the messages of the entries, or the document's message if it has no
    /// entries.
    pub(super) fn sentences(&self) -> Vec<String> {
        match self.errors.as_slice() {
            [] => vec![self.message.clone()],
            errors => errors.iter().map(|wrong| wrong.message.clone()).collect(),
        }
    }

    /// Returns whether the API succeeded but its response is too long for a page.
    pub(super) fn is_too_long(&self) -> bool {
        self.status == TOO_LONG
    }

    /// Returns whether the call was invalid, so that the visitor can correct the form.
    pub(super) fn is_mistake(&self) -> bool {
        // A 401 means that the session has ended: the visitor must log in before they can correct anything.
        self.status.is_client_error() && self.status != StatusCode::UNAUTHORIZED
    }
}

impl From<ApiRefusal> for Error {
    fn from(refusal: ApiRefusal) -> Self {
        let kind = match refusal.status {
            StatusCode::BAD_REQUEST => ErrorKind::InvalidArgument,
            StatusCode::UNAUTHORIZED => ErrorKind::Unauthenticated,
            StatusCode::FORBIDDEN => ErrorKind::Forbidden,
            StatusCode::NOT_FOUND => ErrorKind::NotFound,
            StatusCode::CONFLICT => ErrorKind::Conflict,
            StatusCode::PRECONDITION_FAILED => ErrorKind::Stale,
            StatusCode::METHOD_NOT_ALLOWED => ErrorKind::Unsupported,
            StatusCode::PAYLOAD_TOO_LARGE => ErrorKind::TooLarge,
            StatusCode::SERVICE_UNAVAILABLE => ErrorKind::Unavailable,
            // The APIs send no other error status. This arm also matches a response that is too long for a page.
            _ => ErrorKind::Internal,
        };
        let error = Self::new(kind, refusal.sentences().join("; "));
        // The API has already logged the cause or counted the refusal.
        if kind == ErrorKind::Unavailable { error.logged() } else { error }
    }
}

/// The answer of the endpoint `E`, or its refusal.
type EndpointResult<E> = Result<<<E as Endpoint>::Answer as Answer>::Content, ApiRefusal>;
/// The body of a request to the endpoint `E`.
type SentBody<E> = <<E as Endpoint>::Body as RequestBody>::Content;

/// Builds the call of the endpoint `endpoint`.
fn call_of<E: Endpoint>(endpoint: &E) -> ApiCall {
    ApiCall::new(E::METHOD, target(endpoint))
}

impl SiteRequest {
    /// Calls an endpoint without a body as the visitor.
    pub(super) async fn ask<E: Endpoint<Body = NoBody>>(&self, endpoint: &E) -> EndpointResult<E> {
        self.content::<E>(self.visitor.as_ref(), &call_of(endpoint)).await
    }

    /// Calls an endpoint without a body and without credentials.
    pub(super) async fn ask_anonymously<E: Endpoint<Body = NoBody>>(
        &self,
        endpoint: &E,
    ) -> EndpointResult<E> {
        self.content::<E>(None, &call_of(endpoint)).await
    }

    /// Calls an endpoint with a body as the visitor.
    pub(super) async fn send<E: Endpoint>(
        &self,
        endpoint: &E,
        body: &SentBody<E>,
    ) -> EndpointResult<E>
    where
        SentBody<E>: Serialize,
    {
        self.send_if_match(endpoint, body, None).await
    }

    /// Calls an endpoint with a body as the visitor, and with the version that the call is based on, if there is one.
    pub(super) async fn send_if_match<E: Endpoint>(
        &self,
        endpoint: &E,
        body: &SentBody<E>,
        tag: Option<&str>,
    ) -> EndpointResult<E>
    where
        SentBody<E>: Serialize,
    {
        let body = serde_json::to_value(body).map_err(Error::internal)?;
        let call = call_of(endpoint).json(body).if_match(tag);
        self.content::<E>(self.visitor.as_ref(), &call).await
    }

    /// Calls an endpoint as the visitor, and returns its response unread, to stream a file.
    pub(super) async fn load_file<E: Endpoint<Body = NoBody>>(
        &self,
        endpoint: &E,
    ) -> Result<Response, ApiRefusal> {
        self.respond(self.visitor.as_ref(), &call_of(endpoint)).await
    }

    /// Calls an API as the visitor and parses the response as JSON. A response of a different content type becomes a
    /// JSON string.
    pub(super) async fn call(&self, call: &ApiCall) -> Result<Value, ApiRefusal> {
        read(self.respond(self.visitor.as_ref(), call).await?).await
    }

    /// Calls `GET` on an API as the visitor.
    pub(super) async fn get(&self, target: impl Into<String>) -> Result<Value, ApiRefusal> {
        self.call(&ApiCall::get(target)).await
    }

    /// Calls an endpoint and reads its answer.
    async fn content<E: Endpoint>(
        &self,
        visitor: Option<&SiteVisitor>,
        call: &ApiCall,
    ) -> EndpointResult<E> {
        let response = self.respond(visitor, call).await?;
        let headers = response.headers().clone();
        let bytes = read_body(response).await?;
        Ok(E::Answer::parse(&headers, &bytes).map_err(Error::internal)?)
    }

    /// Calls an API as `visitor`, or without credentials, and returns a successful response unread.
    async fn respond(
        &self,
        visitor: Option<&SiteVisitor>,
        call: &ApiCall,
    ) -> Result<Response, ApiRefusal> {
        let request = build_request(&self.app, visitor, call)?;
        let router = self.apis.0.clone();
        // The router's error type has no values, so this arm never runs.
        let response = router.oneshot(request).await.unwrap_or_else(|never| match never {});
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        Err(refusal(status, &read(response).await?))
    }
}

fn build_request(
    app: &AppState,
    visitor: Option<&SiteVisitor>,
    call: &ApiCall,
) -> Result<Request<Body>> {
    let body = call.body.as_ref().map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let mut request = Request::builder().method(call.method.clone()).uri(&call.target);
    // The header is sent without a body too, as the published client library does (contract api-6).
    request = request.header(header::CONTENT_TYPE, "application/json");
    if let Some(tag) = &call.if_match {
        // The tag comes from a form and may not be a valid header value.
        request =
            request.header(header::IF_MATCH, HeaderValue::from_str(tag).map_err(Error::internal)?);
    }
    if let Some(headers) = request.headers_mut()
        && let Some(visitor) = visitor
    {
        // The call is authenticated like an external request, form token included.
        for (name, value) in credentials::visitor_headers(app, visitor) {
            headers.insert(name, HeaderValue::from_str(&value).map_err(Error::internal)?);
        }
    }
    request.body(body).map_err(Error::internal)
}

impl From<Error> for ApiRefusal {
    /// Converts a failure of the call itself.
    fn from(error: Error) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.message())
    }
}

/// Reads the body of `response` as JSON, or as a text.
async fn read(response: Response) -> Result<Value, ApiRefusal> {
    // Not every response is JSON: some APIs answer with a plain string (contract api-10).
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let bytes = read_body(response).await?;
    if is_json {
        return Ok(serde_json::from_slice(&bytes).map_err(Error::internal)?);
    }
    Ok(Value::String(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Reads the body of `response`.
///
/// Fails with the status [`TOO_LONG`] if it is too long for a page.
async fn read_body(response: Response) -> Result<Bytes, ApiRefusal> {
    let beyond = u64::try_from(SITE_ANSWER_BYTES_MAX).unwrap_or(u64::MAX);
    // Checked before reading, so that a long list is not collected in memory only to be dropped.
    if response.body().size_hint().lower() > beyond {
        return Err(ApiRefusal::new(TOO_LONG, "There is too much to show on one page"));
    }
    let bytes = to_bytes(response.into_body(), SITE_ANSWER_BYTES_MAX).await;
    Ok(bytes.map_err(Error::internal)?)
}

fn refusal(status: StatusCode, value: &Value) -> ApiRefusal {
    // A missing collection is reported as a plain string (contract collections-8).
    let message = value["message"].as_str().or(value.as_str()).unwrap_or_default().to_owned();
    // A field of an entry may be missing (contract api-13). The document's message is shown in that case.
    let errors = serde_json::from_value(value["errors"].clone()).unwrap_or_default();
    ApiRefusal { status, message, errors }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_leaves_out_what_is_not_given() {
        let call = ApiCall::get("/a").query([("q", Some("å b")), ("p", None), ("tr", Some(""))]);
        assert_eq!(call.target, "/a?q=%C3%A5+b");
        assert_eq!(ApiCall::get("/a?x=1").query([("y", Some("2"))]).target, "/a?x=1&y=2");
        assert_eq!(ApiCall::get("/a").query([]).target, "/a");
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_for_a_page_says_so() {
        let answer = |length: usize| Response::new(Body::from(" ".repeat(length)));
        assert!(read(answer(SITE_ANSWER_BYTES_MAX)).await.is_ok());
        let refusal = read(answer(SITE_ANSWER_BYTES_MAX + 1)).await.unwrap_err();
        assert!(refusal.is_too_long() && !refusal.is_mistake(), "{refusal:?}");
        assert_eq!(refusal.sentences(), ["There is too much to show on one page"]);
    }

    #[test]
    fn a_segment_stays_one_segment() {
        let check = |text, expected: &str| assert_eq!(encode_segment(text), expected, "{text}");
        check("user:a:b", "user:a:b");
        check("a/b", "a%2Fb");
        check("..", "%2E%2E");
        check("ä?#%", "%C3%A4%3F%23%25");
    }
}
