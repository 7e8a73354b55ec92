//! The customer web site: search, items, crop studio, collections, notifications and account.
//!
//! Pages call the APIs in the same process (`api_client`), so a program can do everything that a page does. Pages
//! work without scripts; `assets/js` makes some of them quicker to use. Every form carries the CSRF token of the
//! visitor's session. If the session expires, the input of the form is preserved (`deferred_form`).

mod account;
mod api_client;
pub(super) mod api_docs;
pub(crate) mod assets;
pub(crate) mod authorization;
mod back_link;
mod collection_items;
mod collections;
pub(super) mod concept_names;
mod concepts;
mod credit;
mod csv;
mod deferred_form;
mod density;
mod desk;
mod docs;
mod download_panel;
mod facets;
mod files;
mod guide;
mod highlight;
mod item;
mod item_from_path;
mod item_links;
mod item_rights;
mod item_summary;
mod kept_labels;
pub(super) mod language;
pub(crate) mod login;
pub(crate) mod login_url;
pub(crate) mod mail_consent;
mod notification_form;
mod notifications;
mod operator;
mod originals;
pub(crate) mod page_renderer;
pub(crate) mod pages;
pub(crate) mod passwords;
mod picture_sources;
mod query_reading;
mod scheme;
mod search;
mod search_form;
mod selection;
mod similar_items;
mod snippets;
mod source_types;
mod studio;
pub(crate) mod template_environment;
mod times;
pub(crate) mod unsubscribe;

use std::{marker::PhantomData, ops::Deref, str::FromStr, sync::Arc};

use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use minijinja::{Value as PageValue, context, value::merge_maps};

pub use account::ChannelForm;
pub(super) use api_client::ApiRouter;
use api_client::{ApiCall, ApiRefusal};
pub(super) use deferred_form::DeferredForm;
pub use deferred_form::without_secrets;

use crate::access::auth::Principal;
use crate::http::AppState;
use crate::http::cache_policy::CachePolicy;
use crate::http::form::{FormFields, form_body, form_body_within, see_other};
use crate::http::protocol::request::QueryParameters;
use crate::http::session::SiteVisitor;
use crate::http::site::pages::error_page;
use crate::http::site::scheme::ColourScheme;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{FORM_BYTES_MAX, PAGES_MAX};
use density::WallDensity;
use language::PageLanguage;

/// The time for which an error page waits for the name of the logged-in user.
const ERROR_PAGE_VISITOR: std::time::Duration = std::time::Duration::from_secs(1);
/// Age of a login in seconds from which pages that create keys, users or channels ask for the password
/// again.
const FRESH_LOGIN_S: i64 = 3600;

/// The result of a page handler.
type PageResult = Result<Response, PageError>;

/// The reason why a handler does not render its page.
enum PageError {
    /// An error, which is shown on the error page.
    Error(Error),
    /// A different response: a redirect, or the form with its mistakes.
    Response(Box<Response>),
}

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<ApiRefusal> for PageError {
    fn from(refusal: ApiRefusal) -> Self {
        Self::Error(refusal.into())
    }
}

impl From<Response> for PageError {
    fn from(response: Response) -> Self {
        Self::Response(Box::new(response))
    }
}

/// Returns the error of a page whose subject does not exist.
fn not_found(message: &str) -> PageError {
    Error::new(ErrorKind::NotFound, message).into()
}

/// Parses an id in an address or a form.
fn parse_id(id: &str) -> Result<i64, ApiRefusal> {
    id.parse().map_err(|_| ApiRefusal::invalid("type", "id", "is not an integer"))
}

/// Returns the status of a page: the refusal's if its form was refused, else 200.
fn status_of(refusal: Option<&ApiRefusal>) -> StatusCode {
    refusal.map_or(StatusCode::OK, |refusal| refusal.status)
}

/// Returns the refusal if it is a mistake in the form, which is shown again. Any other refusal becomes the error
/// of the page.
fn form_refusal(refusal: ApiRefusal) -> Result<ApiRefusal, PageError> {
    // Showing the form again would not help against an expired session or an overload.
    if refusal.is_mistake() { Ok(refusal) } else { Err(refusal.into()) }
}

/// Returns the URLs of the pages before and after page `page` of the list at `path`, for its template.
fn numbered_pager(path: &str, page: usize, has_more: bool) -> PageValue {
    context! {
        newer_url => (page > 1).then(|| format!("{path}?page={}", page - 1)),
        older_url => has_more.then(|| format!("{path}?page={}", page + 1)),
    }
}

/// A request for a page of the site.
struct SiteRequest {
    app: AppState,
    apis: ApiRouter,
    visitor: Option<SiteVisitor>,
    /// Path and query of the request.
    path_and_query: String,
    /// Path and query to return to after a login or a change of language. For a form, this is the page that
    /// contained it.
    reopen_at: String,
    query: QueryParameters,
    /// The visitor's choice of the size of pictures on the wall.
    density: WallDensity,
}

/// Returns the page that contained a submitted form, from the `Referer` header; the start page if the header is
/// absent or names a path outside the site.
fn referring_page(headers: &HeaderMap) -> String {
    let address = headers.get(header::REFERER).and_then(|address| address.to_str().ok());
    let rest = address.and_then(|address| address.split_once("://")).map(|(_, rest)| rest);
    let path = rest.and_then(|rest| rest.find('/').map(|at| &rest[at..]));
    // Only the path is used, so a forged header cannot lead to a different site.
    path.filter(|path| login::is_local_page(path)).unwrap_or("/").to_owned()
}

impl FromRequestParts<AppState> for SiteRequest {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, PageError> {
        let apis = Extension::<ApiRouter>::from_request_parts(parts, app).await;
        let Extension(apis) = apis.map_err(Error::internal)?;
        let here = parts.uri.path_and_query().map_or("/", |here| here.as_str()).to_owned();
        let is_form = parts.method == Method::POST;
        let reopen_at = if is_form { referring_page(&parts.headers) } else { here.clone() };
        Ok(Self {
            reopen_at,
            visitor: SiteVisitor::find(app, &parts.headers).await?,
            app: app.clone(),
            apis,
            path_and_query: here,
            query: QueryParameters::from_uri(&parts.uri)?,
            density: WallDensity::from_headers(&parts.headers),
        })
    }
}

impl SiteRequest {
    /// Renders a template as a page, with the message that the query names (`?done=`).
    fn page(&self, template: &str, context: PageValue) -> PageResult {
        self.page_with(StatusCode::OK, template, context)
    }

    /// Renders a template as a page with a status. The query names the collection to which items were added
    /// (`?in=`); the template finds its title in `collections`.
    fn page_with(&self, status: StatusCode, template: &str, context: PageValue) -> PageResult {
        let done = self.query.text("done")?;
        let added_to = self.query.text("in")?;
        let head = pages::head(&self.app, self.visitor.as_ref(), &self.reopen_at);
        let own = context! { done, added_to, path => self.path() };
        let context = merge_maps([context, head, own]);
        let mut response = pages::page_for(&self.app, self.visitor.as_ref(), template, context)?;
        // Rendering returns status 200, but a form with mistakes has the status of its refusal.
        *response.status_mut() = status;
        Ok(response)
    }

    /// Returns the path of the request, without the query.
    fn path(&self) -> &str {
        self.path_and_query.split('?').next().unwrap_or_default()
    }

    /// Returns the query parameter `name`, trimmed; `None` if it is empty.
    fn parameter(&self, name: &str) -> Result<Option<&str>> {
        Ok(self.query.text(name)?.map(str::trim).filter(|text| !text.is_empty()))
    }

    /// Returns the number of the page of a list, from 1.
    fn page_number(&self) -> Result<usize> {
        let page = self.query.integer("page", 1..=i64::try_from(PAGES_MAX).unwrap_or(i64::MAX))?;
        Ok(page.and_then(|page| usize::try_from(page).ok()).unwrap_or(1))
    }

    /// Returns the query parameter `name`, a number of elements; 0 if it is missing.
    fn count_parameter(&self, name: &str) -> Result<usize> {
        let count = self.query.integer(name, 0..=i64::from(u32::MAX))?;
        // The range was checked above, so the conversion cannot fail on targets of at least 32 bits.
        Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
    }

    /// Returns the visitor with their rights; `None` if they are anonymous or were deactivated.
    async fn principal(&self) -> Result<Option<Arc<Principal>>> {
        match &self.visitor {
            Some(visitor) => visitor.principal(&self.app).await,
            None => Ok(None),
        }
    }

    /// Returns the query parameter `name`, trimmed; empty if it is missing.
    fn text_parameter(&self, name: &str) -> Result<&str> {
        Ok(self.parameter(name)?.unwrap_or_default())
    }
}

/// A condition that a visitor must meet before a page or a form is handled.
trait VisitorCheck {
    /// The maximum length of a form in bytes.
    const BYTES_MAX: usize = FORM_BYTES_MAX;

    /// Fails with the response to a visitor who does not meet the condition. `headers` and `form` belong to the
    /// request, for a login that continues it.
    fn check(
        site: &SiteRequest,
        visitor: &SiteVisitor,
        headers: &HeaderMap,
        form: Option<&DeferredForm>,
    ) -> Result<(), PageError>;
}

/// The condition that every logged-in visitor meets.
struct AnyMember;

impl VisitorCheck for AnyMember {
    fn check(
        _: &SiteRequest,
        _: &SiteVisitor,
        _: &HeaderMap,
        _: Option<&DeferredForm>,
    ) -> Result<(), PageError> {
        Ok(())
    }
}

/// The condition that the visitor logged in recently, for pages that create keys, users or channels. Other visitors
/// must enter their password again first. A form is preserved, and shown again afterwards.
struct RecentLogin;

impl VisitorCheck for RecentLogin {
    fn check(
        site: &SiteRequest,
        visitor: &SiteVisitor,
        headers: &HeaderMap,
        form: Option<&DeferredForm>,
    ) -> Result<(), PageError> {
        // A stolen session must not suffice to create credentials that outlive it (contract login-19).
        let age_s = clock::now().duration_since(visitor.session.auth_time).as_secs();
        if age_s <= FRESH_LOGIN_S {
            return Ok(());
        }
        let path = &site.path_and_query;
        Err(login::reauthentication_page(&site.app, headers, visitor, path, form)?.into())
    }
}

/// A page request of a logged-in visitor who meets the condition `C`. Anonymous visitors are redirected to the login,
/// and back afterwards.
struct MemberRequest<C = AnyMember> {
    site: SiteRequest,
    visitor: SiteVisitor,
    condition: PhantomData<C>,
}

/// A page request of a visitor who logged in recently.
type FreshMember = MemberRequest<RecentLogin>;

impl<C> Deref for MemberRequest<C> {
    type Target = SiteRequest;

    fn deref(&self) -> &SiteRequest {
        &self.site
    }
}

impl<C: VisitorCheck> FromRequestParts<AppState> for MemberRequest<C> {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, PageError> {
        let site = SiteRequest::from_request_parts(parts, app).await?;
        let Some(visitor) = site.visitor.clone() else {
            return Err(see_other(&login_url::login_url(&site.path_and_query)).into());
        };
        C::check(&site, &visitor, &parts.headers, None)?;
        Ok(Self { site, visitor, condition: PhantomData })
    }
}

/// A form sent by a logged-in visitor who meets the condition `C`, with the CSRF token of the session.
struct MemberForm<C = AnyMember> {
    member: MemberRequest<C>,
    form: FormFields,
}

/// A form sent by a visitor who logged in recently.
type FreshMemberForm = MemberForm<RecentLogin>;

impl<C> Deref for MemberForm<C> {
    type Target = MemberRequest<C>;

    fn deref(&self) -> &MemberRequest<C> {
        &self.member
    }
}

impl<C: VisitorCheck> FromRequest<AppState> for MemberForm<C> {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        let site = SiteRequest::from_request_parts(&mut parts, app).await?;
        // HTTP/2 names the host in `:authority`, HTTP/1.1 in the `Host` header.
        let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = parts.uri.authority().map(|host| host.as_str()).or(named).map(str::to_owned);
        let (headers, text) =
            form_body_within(Request::from_parts(parts, body), C::BYTES_MAX).await?;
        let form = FormFields::parse(&text)?;
        // Behind a proxy the host may be an internal name, so the public URL is accepted as well.
        let own = [host.as_deref().unwrap_or_default(), &app.shared.site.url];
        let kept = DeferredForm::new(&headers, &own, site.path(), &text);
        // The session expired while the visitor filled in the form. The login page carries the input along.
        let Some(visitor) = site.visitor.clone() else {
            let kept = kept.as_ref().ok_or_else(login::expired_form)?;
            return Err(login::session_ended_page(app, &headers, kept)?.into());
        };
        // Either the form is older than the session, and is shown again; or a different site sent it, and it is
        // refused.
        if !visitor.owns_form_token(form.find("csrf")) {
            let kept = kept.as_ref().ok_or_else(login::expired_form)?;
            return Err(kept.page(app, &visitor)?.into());
        }
        C::check(&site, &visitor, &headers, kept.as_ref())?;
        Ok(Self { member: MemberRequest { site, visitor, condition: PhantomData }, form })
    }
}

impl FormFields {
    /// Returns the submitted fields, for the template that shows the form again.
    fn template_value(&self) -> PageValue {
        PageValue::from_pairs(self.fields())
    }
}

/// Runs a handler with the language and colour scheme of the request, and renders the error page if it fails.
pub(super) async fn localize(
    State(app): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let page_request = ErrorPageRequest::new(&request);
    let answer = async {
        let mut response = next.run(request).await;
        match response.extensions_mut().remove::<UnrenderedError>() {
            Some(UnrenderedError(error)) => page_request.error_page(&app, &error).await,
            None => response,
        }
    };
    page_request.with_preferences(answer).await
}

/// The parts of a request that its error page needs.
pub(super) struct ErrorPageRequest {
    headers: HeaderMap,
    /// Path and query of the page; the start page if the request submitted a form.
    path_and_query: String,
}

impl ErrorPageRequest {
    pub(super) fn new(request: &Request) -> Self {
        // The URL to which a form was sent cannot be opened after a login.
        let is_page = *request.method() == Method::GET;
        let here = request.uri().path_and_query().filter(|_| is_page);
        let here = here.map_or("/", |here| here.as_str()).to_owned();
        Self { headers: request.headers().clone(), path_and_query: here }
    }

    /// Renders the error page of a URL that no route matches.
    pub(super) async fn into_error_page(self, app: AppState, error: Error) -> Response {
        self.with_preferences(self.error_page(&app, &error)).await
    }

    /// Runs `future` with the language and colour scheme of the request.
    async fn with_preferences<T>(&self, future: impl Future<Output = T>) -> T {
        let future = scheme::with_scheme(ColourScheme::from_headers(&self.headers), future);
        language::with_language(PageLanguage::from_headers(&self.headers), future).await
    }

    async fn error_page(&self, app: &AppState, error: &Error) -> Response {
        // The error may be an outage of the database, so the look-up of the visitor has a timeout.
        let found =
            tokio::time::timeout(ERROR_PAGE_VISITOR, SiteVisitor::find(app, &self.headers));
        let visitor = found.await.ok().and_then(Result::ok).flatten();
        let head = pages::head(app, visitor.as_ref(), &self.path_and_query);
        let mut response = error_page(app, error, head);
        // A page that is missing for one visitor may exist for others, or soon for the same visitor.
        CachePolicy::NoStore.set(response.headers_mut());
        response
    }
}

/// An error whose page has not been rendered yet.
#[derive(Clone)]
struct UnrenderedError(Arc<Error>);

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        match self {
            Self::Response(response) => *response,
            Self::Error(error) => {
                // Only `localize` knows the language and the visitor that the error page needs.
                let mut response = Response::default();
                response.extensions_mut().insert(UnrenderedError(Arc::new(error)));
                response
            }
        }
    }
}

/// The routes of the site.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/", get(search::page))
        .route("/item/{media_type}/{id}", get(item::page))
        .route("/item/{media_type}/{id}/download", post(item::download))
        .route("/item/{media_type}/{id}/deliver", post(item::deliver))
        .route("/item/{media_type}/{id}/original", get(originals::show))
        .route("/language", post(choose_language))
        .route("/scheme", post(choose_scheme))
        .route("/density", post(choose_density))
        .merge(account::routes())
        .merge(collection_items::routes())
        .merge(collections::routes())
        .merge(desk::routes())
        .merge(docs::routes())
        .merge(guide::routes())
        .merge(notifications::routes())
        .merge(operator::routes())
        .merge(selection::routes())
        .merge(studio::routes())
}

/// `POST /language`: stores the chosen language.
async fn choose_language(request: Request) -> PageResult {
    store_choice(request, "language", PageLanguage::cookie).await
}

/// `POST /scheme`: stores the chosen colour scheme.
async fn choose_scheme(request: Request) -> PageResult {
    store_choice(request, "scheme", ColourScheme::cookie).await
}

/// `POST /density`: stores the chosen density of the wall.
async fn choose_density(request: Request) -> PageResult {
    store_choice(request, "density", WallDensity::cookie).await
}

/// Stores the choice in the field `name` of a form in its cookie, and redirects to the page that contained the form.
async fn store_choice<T: FromStr>(
    request: Request,
    name: &str,
    cookie: fn(T) -> String,
) -> PageResult {
    let (_, text) = form_body(request).await?;
    let form = FormFields::parse(&text)?;
    let back = form.find("return_to");
    // The footer is also on the login page, which `is_local_page` excludes because a login must not redirect to
    // itself.
    let back = back.filter(|path| login::is_local_page(path) || login::is_login_page(path));
    let mut response = see_other(back.unwrap_or("/"));
    // No CSRF token is required: a forged request could change only the look and the language of the pages.
    if let Some(choice) = form.find(name).and_then(|word| word.parse().ok()) {
        let cookie = HeaderValue::from_str(&cookie(choice)).map_err(Error::internal)?;
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
