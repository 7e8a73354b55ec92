//! Binds handlers to the endpoints that `crates/api` declares: authenticates the caller, reads the request, and writes the
//! answer.

use std::sync::{Arc, LazyLock};

use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State, path::ErrorKind as PathErrorKind, rejection::PathRejection},
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::Response,
    routing::{MethodFilter, on},
};

use api::{Accepted, Answer, Document, Done, Endpoint, Fault, Json, KnownCaller};
use api::{
    DecodedParameter, NoContent, PartialRequest, RequestBody, RequestReader, Tagged, UnknownCaller,
};
use serde::Serialize;

use crate::access::auth::Principal;
use crate::http::api::response;
use crate::http::protocol::request::{self, QueryParameters, ValidationErrors};
use crate::http::{AppState, credentials};
use crate::runtime::error::{Error, ErrorDetail, Result};

/// The endpoints of the server with their handlers.
pub(crate) struct BoundEndpoints {
    router: Router<AppState>,
    describe: Vec<fn(&mut Document)>,
}

impl BoundEndpoints {
    /// Creates a set without endpoints.
    pub(crate) fn new() -> Self {
        Self { router: Router::new(), describe: Vec::new() }
    }

    /// Serves the endpoint `E` by `handler`.
    pub(crate) fn bind<E, H, F>(self, handler: H) -> Self
    where
        E: Endpoint + Send + 'static,
        E::Caller: Authenticate,
        E::Answer: IntoApiResponse + Send,
        H: Fn(ApiRequest<E>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<E::Answer>> + Send,
    {
        self.bind_response::<E, _, _>(move |request| {
            let answer = handler(request);
            async move { answer.await?.into_api_response() }
        })
    }

    /// Serves the endpoint `E` by `handler`, which builds the response itself: a file, or a status that depends on the outcome.
    pub(crate) fn bind_response<E, H, F>(mut self, handler: H) -> Self
    where
        E: Endpoint + Send + 'static,
        E::Caller: Authenticate,
        H: Fn(ApiRequest<E>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response>> + Send,
    {
        let reader = Arc::new(EndpointReader::<E>::new());
        let serve = move |State(app), path, request| {
            serve(app, path, request, reader.clone(), handler.clone())
        };
        let method = MethodFilter::try_from(E::METHOD).expect("axum routes all methods of HTTP");
        self.router = self.router.route(E::PATH, on(method, serve));
        self.describe.push(Document::describe::<E>);
        self
    }

    /// Describes the endpoint `E`, which has a route of its own elsewhere because its errors or its nodes differ.
    pub(crate) fn describe<E: Endpoint>(mut self) -> Self {
        self.describe.push(Document::describe::<E>);
        self
    }

    /// Adds the endpoints of `other`.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.describe.extend(other.describe);
        self
    }

    /// Returns the routes of the endpoints.
    pub(crate) fn into_router(self) -> Router<AppState> {
        self.router
    }

    /// Describes the endpoints for OpenAPI.
    pub(crate) fn document(&self) -> api::DocumentParts {
        let mut document = Document::default();
        self.describe.iter().for_each(|describe| describe(&mut document));
        document.describe_media();
        document.finish()
    }
}

async fn serve<E, H, F>(
    app: AppState,
    path: Result<Path<Vec<(String, String)>>, PathRejection>,
    request: Request,
    reader: Arc<EndpointReader<E>>,
    handler: H,
) -> Response
where
    E: Endpoint + 'static,
    E::Caller: Authenticate,
    H: Fn(ApiRequest<E>) -> F,
    F: Future<Output = Result<Response>>,
{
    let (parts, body) = request.into_parts();
    let has_bearer = credentials::has_bearer_token(&parts.headers);
    let only_json = response::accepts_only_json(&parts.headers);
    let path = segments(E::PATH, path);
    let outcome = match E::Caller::authenticate(&app, &parts).await {
        Ok(caller) => handler(ApiRequest { app, caller, parts, path, body, reader }).await,
        Err(refused) => Err(refused),
    };
    let answer = outcome.unwrap_or_else(|error| response::refuse(&error, has_bearer));
    if only_json { response::plain_text_as_json(answer) } else { answer }
}

/// Returns the decoded segments of a request's path by the names in `pattern`.
fn segments(
    pattern: &str,
    path: Result<Path<Vec<(String, String)>>, PathRejection>,
) -> Vec<DecodedParameter> {
    match path {
        Ok(Path(segments)) => {
            segments.into_iter().map(|(name, text)| (name, Some(text))).collect()
        }
        Err(rejection) => vec![(undecodable_segment(pattern, &rejection), None)],
    }
}

/// Returns the name of the segment that is not UTF-8.
fn undecodable_segment(pattern: &str, rejection: &PathRejection) -> String {
    if let PathRejection::FailedToDeserializePathParams(failed) = rejection
        && let PathErrorKind::InvalidUtf8InPathParam { key } = failed.kind()
    {
        return key.clone();
    }
    let first = pattern.split(['{', '}']).nth(1);
    first.unwrap_or_default().to_owned()
}

/// The readers of an endpoint, compiled at its first request: a process needs few of them soon after its start.
struct EndpointReader<E: Endpoint> {
    parameters: LazyLock<RequestReader<E>>,
    body: LazyLock<<E::Body as RequestBody>::Reader>,
}

impl<E: Endpoint> EndpointReader<E> {
    fn new() -> Self {
        Self {
            parameters: LazyLock::new(RequestReader::default),
            body: LazyLock::new(<E::Body as RequestBody>::Reader::default),
        }
    }
}

/// A request for the endpoint `E` by an authenticated caller, with the state of the server. Its parameters and body are not
/// read yet, so that a handler can refuse a caller without rights first.
pub(crate) struct ApiRequest<E: Endpoint>
where
    E::Caller: Authenticate,
{
    pub(crate) app: AppState,
    pub(crate) caller: <E::Caller as Authenticate>::Authenticated,
    /// Everything of the request but its body.
    pub(crate) parts: Parts,
    path: Vec<DecodedParameter>,
    pub(crate) body: Body,
    reader: Arc<EndpointReader<E>>,
}

/// A request whose parameters and body are read.
pub(crate) struct ReadRequest<E: Endpoint>
where
    E::Caller: Authenticate,
{
    pub(crate) app: AppState,
    pub(crate) caller: <E::Caller as Authenticate>::Authenticated,
    pub(crate) parameters: E,
    pub(crate) body: <E::Body as RequestBody>::Content,
}

impl<E: Endpoint> ApiRequest<E>
where
    E::Caller: Authenticate,
{
    /// Reads the parameters.
    ///
    /// Fails with everything that is wrong with them.
    pub(crate) fn parameters(&self) -> Result<E> {
        let query = QueryParameters::from_uri(&self.parts.uri)?;
        self.reader.parameters.read(&self.path, query.pairs()).map_err(|faults| invalid(&faults))
    }

    /// Returns the decoded segment `name` of the path; `None` if it is not UTF-8.
    pub(crate) fn segment(&self, name: &str) -> Option<&str> {
        let found = self.path.iter().find(|(own, _)| own == name);
        found.and_then(|(_, text)| text.as_deref())
    }

    /// Reads the parameters, and converts them by `check`, which collects what is wrong beyond their schema. A parameter that
    /// breaks the schema counts as absent there.
    ///
    /// Fails with everything that is wrong with them.
    pub(crate) fn checked_parameters<T>(
        &self,
        check: impl FnOnce(E, &mut ValidationErrors) -> Option<T>,
    ) -> Result<T> {
        let query = QueryParameters::from_uri(&self.parts.uri)?;
        check_parameters(&self.reader.parameters, &self.path, &query, check)
    }

    /// Reads the parameters and the body.
    ///
    /// Fails with everything that is wrong with them.
    pub(crate) async fn read(self) -> Result<ReadRequest<E>> {
        let query = QueryParameters::from_uri(&self.parts.uri)?;
        let parameters = self.reader.parameters.read(&self.path, query.pairs());
        let bytes = request::bytes(self.body, E::Body::BYTES_MAX).await?;
        let body = E::Body::read(&self.reader.body, &bytes);
        match (parameters, body) {
            (Ok(parameters), Ok(body)) => {
                Ok(ReadRequest { app: self.app, caller: self.caller, parameters, body })
            }
            (parameters, body) => {
                let faults = [parameters.err(), body.err()].into_iter().flatten().flatten();
                Err(invalid(&faults.collect::<Vec<_>>()))
            }
        }
    }
}

/// Reads the parameters with `reader`, and converts them by `check`. See [`ApiRequest::checked_parameters`].
pub(crate) fn check_parameters<E: Endpoint, T>(
    reader: &RequestReader<E>,
    path: &[DecodedParameter],
    query: &QueryParameters,
    check: impl FnOnce(E, &mut ValidationErrors) -> Option<T>,
) -> Result<T> {
    let PartialRequest { parameters, faults } = reader.read_valid(path, query.pairs());
    let mut problems = ValidationErrors::default();
    problems.add(&invalid(&faults));
    let checked = parameters.and_then(|parameters| check(parameters, &mut problems));
    problems.sort_by_key(|name| reader.position(name));
    problems.finish(checked)
}

/// Converts the faults of a request to its error.
fn invalid(faults: &[Fault]) -> Error {
    let details = faults.iter().map(|fault| {
        ErrorDetail::of_rule(fault.rule, fault.location.as_str(), &fault.path, &fault.message)
    });
    Error::invalid_parts(details.collect())
}

/// A kind of caller, with the way to authenticate it.
pub(crate) trait Authenticate {
    /// The caller that handlers get.
    type Authenticated: Send;

    /// Authenticates the caller of a request.
    fn authenticate(
        app: &AppState,
        parts: &Parts,
    ) -> impl Future<Output = Result<Self::Authenticated>> + Send;
}

impl Authenticate for KnownCaller {
    type Authenticated = Arc<Principal>;

    async fn authenticate(app: &AppState, parts: &Parts) -> Result<Self::Authenticated> {
        credentials::require_principal(app, parts).await
    }
}

impl Authenticate for UnknownCaller {
    type Authenticated = ();

    async fn authenticate(_: &AppState, _: &Parts) -> Result<()> {
        Ok(())
    }
}

/// An answer that can be sent.
pub(crate) trait IntoApiResponse: Answer {
    /// Builds the response that carries this answer.
    fn into_api_response(self) -> Result<Response>;
}

impl<T: Serialize> IntoApiResponse for Json<T>
where
    Self: Answer,
{
    fn into_api_response(self) -> Result<Response> {
        response::json(StatusCode::OK, &self.0)
    }
}

impl<T: Serialize> IntoApiResponse for Accepted<T>
where
    Self: Answer,
{
    fn into_api_response(self) -> Result<Response> {
        response::json(StatusCode::ACCEPTED, &self.0)
    }
}

impl<T: Serialize> IntoApiResponse for Tagged<T>
where
    Self: Answer,
{
    fn into_api_response(self) -> Result<Response> {
        let mut response = response::json(StatusCode::OK, &self.value)?;
        let tag = HeaderValue::from_str(&self.tag).map_err(Error::internal)?;
        response.headers_mut().insert(header::ETAG, tag);
        Ok(response)
    }
}

impl IntoApiResponse for Done {
    fn into_api_response(self) -> Result<Response> {
        Ok(response::plain_text("OK"))
    }
}

impl IntoApiResponse for NoContent {
    fn into_api_response(self) -> Result<Response> {
        Ok(response::empty(StatusCode::NO_CONTENT))
    }
}
