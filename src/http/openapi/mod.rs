//! The OpenAPI document of everything that programs are served, and the page made from it.
//!
//! Each file describes what the file of the same name beside this folder serves; names, words and
//! bounds come from the types and limits that the handlers use. The document is made once, at
//! start. `tests.rs` reads the routes in the sources and fails for an address that is not
//! described, and for a description that nobody serves. Pages for people are not described.
//!
//! Spec §9 Versioning.

mod collections;
mod content;
mod formats;
mod ingest;
mod logins;
mod media;
mod news_item;
mod notifications;
mod oauth;
mod operation;
mod operator;
mod own;
mod page;
mod schemas;
mod trial;
mod user;

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
use serde_json::{Map, Value, json};

use crate::http::App;
use crate::http::protocol::compression::Unchanging;
use crate::http::protocol::conditional::ETag;
use crate::http::protocol::conditional::Precondition;
use crate::http::protocol::conditional::Validators;
use crate::http::protocol::conditional::evaluate;
use crate::http::protocol::respond;
use crate::http::site::language::Language;
use crate::http::site::pages;
use crate::http::site::pages::Pages;
use crate::runtime::error::{Error, Result};
use model::Hash;
use model::account::Scope;
use operation::{Base, Operation, Tag};
pub(super) use trial::{Sample, Trial};

/// The version of the interface (Spec §9).
const VERSION: &str = "0.57.1";
/// Where the page is.
const PAGE: &str = "/docs";

/// The bases of our addresses.
#[derive(Clone, Copy, Debug)]
pub struct Bases<'a> {
    /// Of everything that is nowhere else.
    pub public: &'a str,
    /// Of media.
    pub media: &'a str,
    /// Of the OAuth2 service.
    pub auth: &'a str,
}

impl Bases<'_> {
    fn of(&self, base: Base) -> &str {
        match base {
            Base::Public => self.public,
            Base::Media => self.media,
            Base::Auth => self.auth,
        }
    }
}

/// The document and its page, ready to be sent.
pub struct Description {
    document: Kept,
    /// The page as strangers see it: the same for all of them who read one language.
    pages: [(Language, Kept); 2],
    /// What the page says below its head.
    body: String,
    trials: Vec<Trial>,
}

/// A text with the tag that caches know it by.
struct Kept {
    text: Bytes,
    etag: ETag,
}

impl Kept {
    fn new(text: String) -> Result<Self> {
        let etag = ETag::new(Hash::of(text.as_bytes()).short());
        let etag = etag.ok_or_else(|| Error::internal("an entity tag is not ASCII"))?;
        Ok(Self { text: text.into(), etag })
    }
}

impl Description {
    /// Describes the service at `bases`, which calls itself `site_name` on its pages.
    ///
    /// Fails when the page's template does.
    pub fn new(bases: Bases<'_>, pages: &Pages, site_name: &str) -> Result<Self> {
        let document = document(bases, operations());
        let body =
            pages.render_in(Language::English, "docs_body.html", page::context(&document))?;
        let frame = |language| {
            let context = context! {
                site_name => site_name,
                path => PAGE,
                here => PAGE,
                login_url => pages::login_url(PAGE),
                body => PageValue::from_safe_string(body.clone()),
            };
            Ok::<_, Error>((
                language,
                Kept::new(pages.render_in(language, "docs.html", context)?)?,
            ))
        };
        let [one, other] = Language::ALL;
        Ok(Self {
            pages: [frame(one)?, frame(other)?],
            trials: trial::all(&document),
            document: Kept::new(document.to_string())?,
            body,
        })
    }

    /// The page as strangers see it in `language`.
    pub(super) fn page(
        &self,
        language: Language,
        method: &Method,
        headers: &HeaderMap,
    ) -> Response {
        let found = self.pages.iter().find(|(own, _)| *own == language);
        let (_, kept) = found.unwrap_or(&self.pages[0]);
        send(kept, "text/html; charset=utf-8", method, headers)
    }

    /// What the page says below its head; it is a template's, so everything in it is escaped.
    pub(super) fn body(&self) -> PageValue {
        PageValue::from_safe_string(self.body.clone())
    }

    /// The operation of that name.
    pub(super) fn operation(&self, id: &str) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.id == id)
    }

    /// The operation that a call of `target` with `method` is one of.
    pub(super) fn operation_of(&self, method: &str, target: &str) -> Option<&Trial> {
        let path = target.split('?').next().unwrap_or_default();
        let own = self.trials.iter().filter(|trial| trial.method == method);
        let fitting = own.filter_map(|trial| Some((trial.fits(path)?, trial)));
        fitting.max_by_key(|(letters, _)| *letters).map(|(_, trial)| trial)
    }
}

/// The addresses of this folder.
pub(super) fn routes() -> Router<App> {
    Router::new().route("/openapi.json", get(serve_document))
}

/// Every operation, in the order of the page.
fn operations() -> Vec<Operation> {
    let parts = [
        content::operations(),
        notifications::operations(),
        collections::operations(),
        user::operations(),
        logins::operations(),
        media::operations(),
        formats::operations(),
        oauth::operations(),
        ingest::operations(),
        operator::operations(),
    ];
    parts.into_iter().flatten().collect()
}

/// The document that says `operations`.
fn document(bases: Bases<'_>, operations: Vec<Operation>) -> Value {
    let mut paths = Map::new();
    for operation in operations {
        let (method, base) = (operation.method, bases.of(operation.base));
        let servers = (base != bases.public).then(|| json!([{ "url": base }]));
        let item = paths.entry(operation.path).or_insert_with(|| json!({}));
        item[method] = operation.print(servers);
    }
    let tags = Tag::ALL.map(|tag| json!({ "name": tag.name(), "description": tag.description() }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Wirephoto",
            "version": VERSION,
            "summary": "Rendition server and content API for news agencies and picture desks",
            "description": ABOUT,
        },
        "servers": [{ "url": bases.public }],
        "tags": used(&tags, &paths),
        "paths": paths,
        "components": {
            "securitySchemes": security_schemes(bases.auth),
            "responses": operation::refusals(),
            "schemas": schemas::all(),
        },
    })
}

/// What holds for every operation.
const ABOUT: &str = "\
Bodies are JSON in UTF-8 unless an operation says otherwise. Times are RFC 3339.

Callers are known by an access token (`Authorization: Bearer …`) or by an API key \
(`Authorization: ApiKey …`, for media also the query parameter `ak`). A token needs at least the \
scope `roles`.

A 400 names everything that is wrong with a request: `errors` has an entry for each part, with \
`errorCode`, `location`, `message` and `path`. Unknown query parameters are ignored, unknown \
properties of a body are not. Lists in a query are written `p=a,b`, `p=a&p=b` or `p[]=a&p[]=b`; \
a parameter without a value counts as absent, and an integer may be written `20.0`. A JSON body is \
read whatever its `Content-Type`.

Texts are compressed for clients that accept `br` or `gzip`. Every `GET` answers `HEAD` too. Another method on a known address is a 405. Every answer has an \
`X-Request-Id`, which the log knows; what a client sends there is taken over.";

/// The headings below which something stands.
fn used(tags: &[Value], paths: &Map<String, Value>) -> Vec<Value> {
    let operations = paths.values().filter_map(Value::as_object).flat_map(Map::values);
    let names: Vec<&Value> = operations.map(|operation| &operation["tags"][0]).collect();
    tags.iter().filter(|tag| names.contains(&&tag["name"])).cloned().collect()
}

fn security_schemes(auth_url: &str) -> Value {
    let url = |path: &str| format!("{auth_url}/o/oauth2/{path}");
    let scopes: Map<String, Value> = Scope::ALL
        .into_iter()
        .map(|scope| (scope.as_str().to_owned(), json!(scope_meaning(scope))))
        .collect();
    json!({
        "oauth2": {
            "type": "oauth2",
            "description": "Access tokens of the OAuth2 service.",
            "flows": {
                "authorizationCode": {
                    "authorizationUrl": url("auth"), "tokenUrl": url("token"),
                    "refreshUrl": url("token"), "scopes": scopes,
                },
                "implicit": { "authorizationUrl": url("auth"), "scopes": scopes },
                "password": {
                    "tokenUrl": url("token"), "refreshUrl": url("token"), "scopes": scopes,
                },
            },
        },
        "bearer": {
            "type": "http", "scheme": "bearer",
            "description": "An access token that the client has already.",
        },
        "apiKey": {
            "type": "apiKey", "in": "header", "name": "Authorization",
            "description": "`ApiKey`, a space and the key. It has every scope but `admin`.",
        },
        "ak": {
            "type": "apiKey", "in": "query", "name": "ak",
            "description": "The key in the query, for links to media.",
        },
        "basic": {
            "type": "http", "scheme": "basic",
            "description": "A user name with its password, for the search alone.",
        },
        "client": {
            "type": "http", "scheme": "basic",
            "description": "A client of the OAuth2 service with its secret; both may stand in \
                            the form instead.",
        },
    })
}

fn scope_meaning(scope: Scope) -> &'static str {
    match scope {
        Scope::OpenId => "OpenID Connect",
        Scope::Email => "Exposes `email`",
        Scope::Roles => "Exposes `roles`; every API needs it",
        Scope::User => "Exposes `name`, `family_name`, `given_name` and `user_id`",
        Scope::Customer => "Exposes `customer_id`, `customer_name` and `department`",
        Scope::Profile => "The profile; changes of channels and revoking API keys need it",
        Scope::Collection => "Collections",
        Scope::Admin => "Administers the users of the organization",
    }
}

/// `GET /openapi.json`. No credentials count here, so scripts of any site may read it.
async fn serve_document(State(app): State<App>, method: Method, headers: HeaderMap) -> Response {
    let kept = &app.shared.description.document;
    let mut response = send(kept, "application/json", &method, &headers);
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CACHE_CONTROL, "public, max-age=300");
    set(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    set(header::ACCESS_CONTROL_EXPOSE_HEADERS, "ETag, X-Request-Id");
    response
}

fn send(kept: &Kept, kind: &'static str, method: &Method, headers: &HeaderMap) -> Response {
    let validators = Validators { etag: kept.etag.clone(), last_modified: None };
    let mut response = match evaluate(method, headers, &validators) {
        Precondition::Proceed => {
            let body = Body::from(kept.text.clone());
            respond::typed(StatusCode::OK, HeaderValue::from_static(kind), body)
        }
        Precondition::NotModified => without_body(StatusCode::NOT_MODIFIED),
        Precondition::Failed => without_body(StatusCode::PRECONDITION_FAILED),
    };
    response.headers_mut().insert(header::ETAG, kept.etag.print());
    response.extensions_mut().insert(Unchanging);
    response
}

fn without_body(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
