//! The OpenAPI document of the routes for programs, and the documentation page generated from it.
//!
//! The document is data: the files in `assets/openapi`, one for each section of the page. `document.rs`
//! assembles them once, at start.
//!
//! # How to describe a route
//!
//! 1. Add its path to `paths` in the file of its section, with `summary`, `description`, `operationId`,
//!    `parameters`, `requestBody` and `responses` in OpenAPI 3.1. The section's `security`, `responses` and
//!    `server` apply to all of its operations; an operation may override `security` and adds to the
//!    `responses`.
//! 2. Add the schemas of its bodies to `schemas` in the same file; a reference to one is
//!    `$ref: "#/components/schemas/Name"`. Parts that several operations use are in `shared.yaml`; a
//!    reference to one is replaced by its target.
//! 3. List a new section in `SECTIONS` in `document.rs`.
//! 4. Run `cargo test --lib openapi`. The tests read the routes in the sources and fail for a route without a
//!    description, and for a description without a route. They compare enumerations and bounds with the types
//!    and limits that the handlers use: a new one needs a row in `tests.rs`. A page for people is listed in
//!    `PAGES` there instead.
//!
//! Contract api-18, api-19.

mod document;
mod markdown;
mod news_item;
mod page;
mod trial;

#[cfg(test)]
pub(super) mod tests;

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
    routing::get,
};
use bytes::Bytes;
use minijinja::{Value as PageValue, context};

use crate::http::AppState;
use crate::http::protocol::compression::ImmutableResponse;
use crate::http::protocol::conditional::ETag;
use crate::http::protocol::conditional::PreconditionOutcome;
use crate::http::protocol::conditional::Validators;
use crate::http::protocol::conditional::evaluate;
use crate::http::protocol::respond;
use crate::http::site::language::PageLanguage;
use crate::http::site::pages;
use crate::http::site::pages::PageRenderer;
use crate::runtime::error::{Error, Result};
pub use markdown::reference;
use model::ContentHash;
pub(super) use trial::{SampleBody, TrialOperation};

/// Path of the documentation page.
const PAGE_PATH: &str = "/docs";

/// Base URLs of the service.
#[derive(Clone, Copy, Debug)]
pub struct BaseUrls<'a> {
    /// Base URL of everything except media and OAuth2.
    pub public: &'a str,
    /// Base URL of media.
    pub media: &'a str,
    /// Base URL of the OAuth2 service.
    pub auth: &'a str,
}

impl BaseUrls<'_> {
    /// Replaces `${public}`, `${media}` and `${auth}` in `text` by the base URLs.
    fn fill(&self, text: &str) -> String {
        let names = [("${public}", self.public), ("${media}", self.media), ("${auth}", self.auth)];
        names.into_iter().fold(text.to_owned(), |text, (name, base)| text.replace(name, base))
    }
}

/// The document and its page, rendered and ready to be served.
pub struct ApiDescription {
    document: TaggedText,
    /// The page for anonymous visitors, one per language.
    pages: [(PageLanguage, TaggedText); 2],
    /// HTML of the page below its head.
    body: String,
    trials: Vec<TrialOperation>,
}

/// A text with its entity tag.
struct TaggedText {
    text: Bytes,
    etag: ETag,
}

impl TaggedText {
    fn new(text: String) -> Result<Self> {
        let etag = ETag::new(ContentHash::of(text.as_bytes()).short());
        let etag = etag.ok_or_else(|| Error::internal("an entity tag is not ASCII"))?;
        Ok(Self { text: text.into(), etag })
    }
}

impl ApiDescription {
    /// Describes the service at `bases`, with `site_name` on its pages.
    ///
    /// Fails when the page's template cannot be rendered.
    pub fn new(bases: BaseUrls<'_>, pages: &PageRenderer, site_name: &str) -> Result<Self> {
        let document = document::assemble(bases);
        let body =
            pages.render_in(PageLanguage::English, "docs_body.html", page::context(&document))?;
        let frame = |language| {
            let context = context! {
                site_name => site_name,
                path => PAGE_PATH,
                here => PAGE_PATH,
                login_url => pages::login_url(PAGE_PATH),
                body => PageValue::from_safe_string(body.clone()),
            };
            Ok::<_, Error>((
                language,
                TaggedText::new(pages.render_in(language, "docs.html", context)?)?,
            ))
        };
        Ok(Self {
            pages: [frame(PageLanguage::English)?, frame(PageLanguage::Swedish)?],
            trials: trial::trial_operations(&document),
            document: TaggedText::new(document.to_string())?,
            body,
        })
    }

    /// Responds with the page for anonymous visitors in `language`.
    pub(super) fn page(
        &self,
        language: PageLanguage,
        method: &Method,
        headers: &HeaderMap,
    ) -> Response {
        let found = self.pages.iter().find(|(page_language, _)| *page_language == language);
        // Every language has a page, so the fallback is never used.
        let (_, stored) = found.unwrap_or(&self.pages[0]);
        conditional_response(stored, "text/html; charset=utf-8", method, headers)
    }

    /// HTML of the page below its head. The template has escaped everything in it.
    pub(super) fn body(&self) -> PageValue {
        PageValue::from_safe_string(self.body.clone())
    }

    /// Finds the operation with the id `id`.
    pub(super) fn operation(&self, id: &str) -> Option<&TrialOperation> {
        self.trials.iter().find(|trial| trial.id == id)
    }
}

/// The routes of the document.
pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/openapi.json", get(serve_document))
}

/// `GET /openapi.json`. Credentials have no effect here, so scripts of any site may read it.
async fn serve_document(
    State(app): State<AppState>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let stored = &app.shared.description.document;
    let mut response = conditional_response(stored, "application/json", &method, &headers);
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CACHE_CONTROL, "public, max-age=300");
    set(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    set(header::ACCESS_CONTROL_EXPOSE_HEADERS, "ETag, X-Request-Id");
    response
}

fn conditional_response(
    stored: &TaggedText,
    kind: &'static str,
    method: &Method,
    headers: &HeaderMap,
) -> Response {
    let validators = Validators { etag: stored.etag.clone(), last_modified: None };
    let mut response = match evaluate(method, headers, &validators) {
        PreconditionOutcome::Proceed => {
            let body = Body::from(stored.text.clone());
            respond::typed(StatusCode::OK, HeaderValue::from_static(kind), body)
        }
        PreconditionOutcome::NotModified => without_body(StatusCode::NOT_MODIFIED),
        PreconditionOutcome::Failed => without_body(StatusCode::PRECONDITION_FAILED),
    };
    // A 304 repeats the tag (RFC 9110 §15.4.5).
    response.headers_mut().insert(header::ETAG, stored.etag.print());
    // Constant while the process runs, so the compressor codes it once.
    response.extensions_mut().insert(ImmutableResponse);
    response
}

fn without_body(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
