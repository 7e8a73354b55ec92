//! The customer web site: search, items, crop studio, collections, notifications, account.
//!
//! Pages are clients of the APIs in the same process (`api`): what a page shows and does, a
//! program can. They work without scripts; `assets/js` makes some of them quicker to use. Every
//! form carries the token of the visitor's session; what was typed into a form whose session ended
//! is kept (`kept`).

mod account;
mod activity;
mod api;
pub(crate) mod assets;
mod back;
mod code;
mod collected;
mod collections;
mod concepts;
mod docs;
mod facets;
mod files;
pub mod form;
mod hit;
mod item;
mod kept;
mod kept_labels;
pub(super) mod language;
pub(crate) mod login;
pub(crate) mod mails;
mod notifications;
pub(crate) mod pages;
mod panel;
pub(crate) mod passwords;
mod query_reading;
mod question;
mod search;
pub(crate) mod session;
mod snippets;
mod studio;
mod times;
pub(crate) mod words;

use std::{ops::Deref, sync::Arc};

use axum::{
    Extension, Router,
    extract::{FromRequest, FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use minijinja::{Value as PageValue, context, value::merge_maps};
use serde_json::Value;

pub use account::Draft;
pub use activity::Activity;
pub(super) use api::Apis;
use api::{Call, Refusal};
pub use concepts::ConceptNames;
pub(super) use kept::Kept;
pub use kept::without_secrets;

use crate::http::App;
use crate::http::protocol::request::Query;
use crate::http::site::form::Form;
use crate::http::site::form::form_body;
use crate::http::site::form::see_other;
use crate::http::site::pages::error_page;
use crate::http::site::session::Visitor;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{ERROR_PAGE_VISITOR, FRESH_LOGIN_S};
use language::Language;

/// What a handler of a page gives.
type Page = Result<Response, Problem>;

/// Why there is no page.
enum Problem {
    /// What went wrong, for the error page.
    Error(Error),
    /// Another answer: a redirect, the form again.
    Answer(Box<Response>),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::Error(refusal.into())
    }
}

impl From<Response> for Problem {
    fn from(response: Response) -> Self {
        Self::Answer(Box::new(response))
    }
}

/// Somebody looks at a page of the site.
struct Site {
    app: App,
    apis: Apis,
    visitor: Option<Visitor>,
    /// Path and query of the page.
    here: String,
    /// Path and query of the page that can be opened again: of a form the one that it was sent from.
    shown_at: String,
    query: Query,
}

/// The page of ours that a form was sent from, as the browser tells it; the first page where it does not.
fn sent_from(headers: &HeaderMap) -> String {
    let address = headers.get(header::REFERER).and_then(|address| address.to_str().ok());
    let rest = address.and_then(|address| address.split_once("://")).map(|(_, rest)| rest);
    let path = rest.and_then(|rest| rest.find('/').map(|at| &rest[at..]));
    path.filter(|path| login::is_ours(path)).unwrap_or("/").to_owned()
}

impl FromRequestParts<App> for Site {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let apis = Extension::<Apis>::from_request_parts(parts, app).await;
        let Extension(apis) = apis.map_err(Error::internal)?;
        let here = parts.uri.path_and_query().map_or("/", |here| here.as_str()).to_owned();
        let is_form = parts.method == Method::POST;
        let shown_at = if is_form { sent_from(&parts.headers) } else { here.clone() };
        Ok(Self {
            shown_at,
            visitor: Visitor::find(app, &parts.headers).await?,
            app: app.clone(),
            apis,
            here,
            query: Query::of(&parts.uri)?,
        })
    }
}

impl Site {
    /// The page of a template. A message in the address (`?done=`) is shown on it.
    fn page(&self, template: &str, context: PageValue) -> Page {
        self.page_with(StatusCode::OK, template, context)
    }

    /// The page of a template with a status of its own. What something was added to (`?in=`) is called
    /// as the template's `collections` call it.
    fn page_with(&self, status: StatusCode, template: &str, context: PageValue) -> Page {
        let (done, added_to) = (self.query.text("done")?, self.query.text("in")?);
        let head = pages::head(&self.app, self.visitor.as_ref(), &self.shown_at);
        let context =
            merge_maps([context! { done, added_to, path => self.path() }, context, head]);
        let mut response = pages::page_for(&self.app, self.visitor.as_ref(), template, context)?;
        *response.status_mut() = status;
        Ok(response)
    }

    /// The path of the page.
    fn path(&self) -> &str {
        self.here.split('?').next().unwrap_or_default()
    }

    /// What an API answers to the visitor.
    async fn ask(&self, call: &Call) -> Result<Value, Refusal> {
        api::ask(&self.app, &self.apis, self.visitor.as_ref(), call).await
    }

    /// What an API answers to somebody unknown.
    async fn ask_as_nobody(&self, call: &Call) -> Result<Value, Refusal> {
        api::ask(&self.app, &self.apis, None, call).await
    }

    /// What an API answers to the visitor, noted for the page `/code` when it succeeds.
    async fn send(&self, call: Call) -> Result<Value, Refusal> {
        let answer = self.ask(&call).await?;
        self.note(call);
        Ok(answer)
    }

    /// Notes what was just done for the page `/code`.
    fn note(&self, call: Call) {
        if let Some(visitor) = &self.visitor {
            self.app.shared.site.activity.note(visitor, call, clock::now());
        }
    }

    /// What an address of an API gives the visitor.
    async fn get(&self, target: impl Into<String>) -> Result<Value, Refusal> {
        self.ask(&Call::get(target)).await
    }

    /// The parameter of that name; nothing where it is empty.
    fn parameter(&self, name: &str) -> Result<Option<&str>> {
        Ok(self.query.text(name)?.map(str::trim).filter(|text| !text.is_empty()))
    }
}

/// Somebody who is logged in looks at a page; everybody else is led to the login and back.
struct Member {
    site: Site,
    visitor: Visitor,
}

impl Deref for Member {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

impl FromRequestParts<App> for Member {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let site = Site::from_request_parts(parts, app).await?;
        match site.visitor.clone() {
            Some(visitor) => Ok(Self { site, visitor }),
            None => Err(see_other(&pages::login_url(&site.here)).into()),
        }
    }
}

impl Member {
    /// Whether the login is too old to make keys, users or channels.
    fn is_stale(&self) -> bool {
        clock::now().duration_since(self.visitor.session.auth_time).as_secs() > FRESH_LOGIN_S
    }
}

/// A visitor who logged in a short while ago; everybody else is asked for the password first.
struct FreshMember(Member);

impl Deref for FreshMember {
    type Target = Member;

    fn deref(&self) -> &Member {
        &self.0
    }
}

impl FromRequestParts<App> for FreshMember {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let member = Member::from_request_parts(parts, app).await?;
        if !member.is_stale() {
            return Ok(Self(member));
        }
        Err(login::confirm(app, &parts.headers, &member.visitor, &member.here, None)?.into())
    }
}

/// A form that makes keys, users or channels, sent by a visitor who logged in a short while ago.
///
/// From anybody else the form is kept: it is shown again after the password was entered.
struct FreshPosted(Posted);

impl Deref for FreshPosted {
    type Target = Posted;

    fn deref(&self) -> &Posted {
        &self.0
    }
}

impl FromRequest<App> for FreshPosted {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (posted, Received { headers, kept }) = Posted::receive(request, app).await?;
        if !posted.is_stale() {
            return Ok(Self(posted));
        }
        let (path, kept) = (posted.path(), kept.as_ref());
        Err(login::confirm(app, &headers, &posted.visitor, path, kept)?.into())
    }
}

/// A form as it was received.
struct Received {
    headers: HeaderMap,
    /// What may be kept of it; nothing where another site sent it.
    kept: Option<Kept>,
}

/// A form that somebody sent who is logged in, with the token of his session.
struct Posted {
    member: Member,
    form: Form,
}

impl Deref for Posted {
    type Target = Member;

    fn deref(&self) -> &Member {
        &self.member
    }
}

impl FromRequest<App> for Posted {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        Self::receive(request, app).await.map(|(posted, _)| posted)
    }
}

impl Posted {
    /// Reads a form and what may be kept of it.
    async fn receive(request: Request, app: &App) -> Result<(Self, Received), Problem> {
        let (mut parts, body) = request.into_parts();
        let site = Site::from_request_parts(&mut parts, app).await?;
        // HTTP/2 names the host in the address, HTTP/1.1 in a header.
        let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = parts.uri.authority().map(|host| host.as_str()).or(named).map(str::to_owned);
        let (headers, text) = form_body(Request::from_parts(parts, body)).await?;
        let form = Form::parse(&text)?;
        let own = [host.as_deref().unwrap_or_default(), &app.shared.site.url];
        let kept = Kept::of(&headers, &own, site.path(), &text);
        let known = || kept.as_ref().ok_or_else(login::expired);
        let Some(visitor) = site.visitor.clone() else {
            return Err(login::again(app, &headers, known()?)?.into());
        };
        if !visitor.sent(form.find("csrf")) {
            return Err(known()?.page(app, &visitor)?.into());
        }
        let posted = Self { member: Member { site, visitor }, form };
        Ok((posted, Received { headers, kept }))
    }
}

impl Form {
    /// What a template shows in the form again.
    fn again(&self) -> PageValue {
        PageValue::from_pairs(self.fields())
    }
}

/// Language of the request, and its error page where there is one.
pub(super) async fn dress(State(app): State<App>, request: Request, next: Next) -> Response {
    let asked = Asked::of(&request);
    language::speak(asked.language(), async {
        let mut response = next.run(request).await;
        match response.extensions_mut().remove::<Unsaid>() {
            Some(Unsaid(error)) => asked.error_page(&app, &error).await,
            None => response,
        }
    })
    .await
}

/// What of a request its error page needs.
pub(super) struct Asked {
    headers: HeaderMap,
    /// Path and query of the page; the first page where a form was sent.
    here: String,
}

impl Asked {
    pub(super) fn of(request: &Request) -> Self {
        let is_page = *request.method() == Method::GET;
        let here = request.uri().path_and_query().filter(|_| is_page);
        let here = here.map_or("/", |here| here.as_str()).to_owned();
        Self { headers: request.headers().clone(), here }
    }

    /// The error page of an address that no page has.
    pub(super) async fn stray(self, app: App, error: Error) -> Response {
        language::speak(self.language(), self.error_page(&app, &error)).await
    }

    fn language(&self) -> Language {
        Language::of(&self.headers)
    }

    async fn error_page(&self, app: &App, error: &Error) -> Response {
        // What is wrong may be that nobody can say who this is: the page does not wait for it.
        let found = tokio::time::timeout(ERROR_PAGE_VISITOR, Visitor::find(app, &self.headers));
        let visitor = found.await.ok().and_then(Result::ok).flatten();
        let head = pages::head(app, visitor.as_ref(), &self.here);
        let mut response = error_page(app, error, head);
        // What one visitor does not find may be there for another, and soon for this one.
        let no_store = HeaderValue::from_static("no-store");
        response.headers_mut().insert(header::CACHE_CONTROL, no_store);
        response
    }
}

/// An error whose page is still to be made.
#[derive(Clone)]
struct Unsaid(Arc<Error>);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        match self {
            Self::Answer(response) => *response,
            Self::Error(error) => {
                let mut response = Response::default();
                response.extensions_mut().insert(Unsaid(Arc::new(error)));
                response
            }
        }
    }
}

/// The addresses of the site.
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(search::page))
        .route("/item/{media_type}/{id}", get(item::page))
        .route("/item/{media_type}/{id}/download", post(item::download))
        .route("/item/{media_type}/{id}/deliver", post(item::deliver))
        .route("/language", post(choose_language))
        .merge(account::routes())
        .merge(code::routes())
        .merge(collected::routes())
        .merge(collections::routes())
        .merge(docs::routes())
        .merge(notifications::routes())
        .merge(studio::routes())
}

/// `POST /language`: keeps the language that somebody chose, and leads back.
async fn choose_language(request: Request) -> Page {
    let (_, text) = form_body(request).await?;
    let form = Form::parse(&text)?;
    let back = form.find("return_to");
    let back = back.filter(|path| login::is_ours(path) || login::is_gate(path));
    let mut response = see_other(back.unwrap_or("/"));
    if let Some(language) = form.find("language").and_then(Language::find) {
        let cookie = HeaderValue::from_str(&language.cookie()).map_err(Error::internal)?;
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
