//! `/docs`: the documentation of the APIs, and forms in which visitors try an operation.
//!
//! The documentation is one page, which is rendered at start. The form of an operation is a separate page that a
//! script embeds in the documentation on demand, because all forms together would make that page half as long
//! again. Without scripts, a form shows the code of the call and links to open resources. With scripts, it sends
//! the call as the visitor.
//!
//! The documentation is in English. The navigation around it is in the visitor's language.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, Method};
use axum::routing::get;
use minijinja::{Value as PageValue, context, value::Serde};

use super::scheme::{self, ColourScheme};
use super::snippets::{CodeSnippets, SnippetCall, file_name, target};
use super::{AppState, PageResult, SiteRequest, language, not_found};
use crate::http::cache_policy;
use crate::http::openapi::{SampleBody, TrialOperation};
use crate::http::site::pages;
use crate::runtime::error::Result;

/// Placeholder for an application key in code samples.
const KEY: &str = "YOUR_KEY";

/// The routes of the documentation.
pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/docs", get(docs)).route("/docs/try/{id}", get(try_out))
}

/// `GET /docs`: shows the documentation of the APIs.
async fn docs(site: SiteRequest, method: Method, headers: HeaderMap) -> PageResult {
    let api_docs = &site.app.shared.site.api_docs;
    // The page that was rendered at start is for anonymous visitors and the colour scheme of the system. The page
    // of a logged-in user must never be cached (contract api-21).
    if site.visitor.is_some() || scheme::current_scheme() != ColourScheme::System {
        return site.page("docs.html", context! { body => api_docs.body() });
    }
    let mut response = api_docs.page(language::current_language(), &method, &headers);
    pages::set_public_headers(&site.app, response.headers_mut());
    cache_policy::vary_by_visitor(response.headers_mut());
    Ok(response)
}

/// `GET /docs/try/{id}`: shows the form of an operation, and the code of the call that was entered.
async fn try_out(Path(id): Path<String>, site: SiteRequest) -> PageResult {
    let description = &site.app.shared.description;
    let Some(trial) = description.operation(&id) else {
        return Err(not_found("This operation does not exist."));
    };
    let input = TryOutInput::from_query(trial, &site)?;
    let address = target(&trial.path, &input.path, &input.query);
    // A path with an empty segment addresses a different resource, so the page offers no link.
    let is_whole = input.path.iter().all(|(_, value)| !value.is_empty());
    let code = CodeSnippets::from(&sketch(trial, &address, input.body.clone()));
    site.page(
        "try.html",
        context! {
            is_whole,
            // A link can only send a `GET` without credentials.
            open_url => (trial.is_open && trial.method == "GET")
                .then(|| format!("{}{address}", trial.base)),
            trial => Serde(trial),
            values => input.values(),
            body => input.body,
            code => Serde(code),
        },
    )
}

/// The values of a form's fields.
struct TryOutInput {
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    body: Option<String>,
}

impl TryOutInput {
    /// Reads the values from the page's query. A field that the query does not have gets its initial value.
    fn from_query(trial: &TrialOperation, site: &SiteRequest) -> Result<Self> {
        let mut input = Self { path: Vec::new(), query: Vec::new(), body: None };
        for field in &trial.fields {
            // A path parameter and a query parameter may share a name, so the names of the fields begin with their
            // location.
            let given = site.query.field(&format!("{}.{}", field.place, field.name))?;
            let pair = (field.name.clone(), given.unwrap_or(&field.value).to_owned());
            let pairs = if field.place == "path" { &mut input.path } else { &mut input.query };
            pairs.push(pair);
        }
        if trial.takes_ak {
            // Samples are copied and shared, so they contain a placeholder instead of a real key.
            input.query.push(("ak".to_owned(), KEY.to_owned()));
        }
        if let Some(SampleBody { text, .. }) = &trial.body {
            // Browsers send line breaks as CRLF.
            let given = site.query.field("body")?.map(|text| text.replace("\r\n", "\n"));
            input.body = Some(given.unwrap_or_else(|| text.clone()));
        }
        Ok(input)
    }

    /// Returns the value of each field by its name in the form, such as `query.q`.
    fn values(&self) -> PageValue {
        let path = self.path.iter().map(|(name, value)| (format!("path.{name}"), value));
        let query = self.query.iter().map(|(name, value)| (format!("query.{name}"), value));
        PageValue::from_pairs(path.chain(query))
    }
}

/// Describes a call of the operation `trial` at `address`, for code samples.
fn sketch(trial: &TrialOperation, address: &str, body: Option<String>) -> SnippetCall {
    let body = body.filter(|body| !body.is_empty());
    let kind = trial.body.as_ref().map(|sample| sample.kind.clone());
    SnippetCall {
        method: trial.method.clone(),
        url: format!("{}{address}", trial.base),
        authorization: trial.authorization.map(str::to_owned),
        // A content type without a body would describe nothing.
        kind: body.as_ref().and(kind),
        body,
        file: trial.gives_bytes.then(|| file_name(address)),
    }
}
