//! `/docs` and the forms that try an operation.
//!
//! The documentation is one page, rendered at start. The form of an operation is a separate page, which a
//! script embeds in the documentation on demand: all forms together would make that page half as long again.
//! Without scripts a form shows the code of the call and links to open resources; with scripts it sends the
//! call as the visitor.
//!
//! The documentation is in English, the navigation around it in the visitor's language.

use std::collections::BTreeMap;

use axum::{
    Router,
    extract::Path,
    http::{HeaderMap, Method},
    routing::get,
};
use minijinja::{Value as PageValue, context, value::Serde};

use super::{
    AppState, PageResult, SiteRequest, language,
    scheme::{self, ColourScheme},
    snippets::{CodeSnippets, SnippetCall, file_name, target},
};
use crate::http::cache_policy;
use crate::http::openapi::{SampleBody, TrialOperation};
use crate::http::site::pages;
use crate::runtime::error::{Error, ErrorKind, Result};

/// Placeholder for an application key in code samples.
const KEY: &str = "YOUR_KEY";

/// The routes of the documentation.
pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/docs", get(docs)).route("/docs/try/{id}", get(try_out))
}

/// `GET /docs`: the human-readable documentation of the APIs.
async fn docs(site: SiteRequest, method: Method, headers: HeaderMap) -> PageResult {
    let api_docs = &site.app.shared.site.api_docs;
    // The page of a logged-in user is never cached (contract api-21), and the page that was rendered at start
    // has the colour scheme of the visitor's system.
    if site.visitor.is_some() || scheme::current_scheme() != ColourScheme::System {
        return site.page("docs.html", context! { body => api_docs.body() });
    }
    let mut response = api_docs.page(language::current_language(), &method, &headers);
    pages::set_public_headers(&site.app, response.headers_mut());
    cache_policy::vary_by_visitor(response.headers_mut());
    Ok(response)
}

/// `GET /docs/try/{id}`: the form of an operation, and the code of the call entered in it.
async fn try_out(Path(id): Path<String>, site: SiteRequest) -> PageResult {
    let description = &site.app.shared.description;
    let Some(trial) = description.operation(&id) else {
        return Err(Error::new(ErrorKind::NotFound, "This operation does not exist.").into());
    };
    let input = TryOutInput::from_query(trial, &site)?;
    let address = target(&trial.path, &input.path, &input.query);
    // A path with an empty segment addresses another resource, so no link is offered.
    let is_whole = input.path.iter().all(|(_, value)| !value.is_empty());
    let code = CodeSnippets::from(&sketch(trial, &address, input.body.clone()));
    site.page(
        "try.html",
        context! {
            is_whole,
            // A link can only send a `GET` without credentials.
            open_url => (trial.is_open && trial.method == "GET")
                .then(|| format!("{}{address}", trial.base)),
            trial => PageValue::from(Serde(trial)),
            values => input.values(),
            body => input.body,
            code => PageValue::from(Serde(code)),
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
    /// Reads the values from the page's query, or the initial values of the fields.
    fn from_query(trial: &TrialOperation, site: &SiteRequest) -> Result<Self> {
        let mut input = Self { path: Vec::new(), query: Vec::new(), body: None };
        for field in &trial.fields {
            // Path and query parameters may share a name, so the fields carry their location.
            let given = site.query.field(&format!("{}.{}", field.place, field.name))?;
            let pair = (field.name.clone(), given.unwrap_or(&field.value).to_owned());
            let pairs = if field.place == "path" { &mut input.path } else { &mut input.query };
            pairs.push(pair);
        }
        if trial.takes_ak {
            // A placeholder: samples are copied and shared, so they must not contain a real key.
            input.query.push(("ak".to_owned(), KEY.to_owned()));
        }
        if let Some(SampleBody { text, .. }) = &trial.body {
            // Browsers send line breaks as CRLF.
            let given = site.query.field("body")?.map(|text| text.replace("\r\n", "\n"));
            input.body = Some(given.unwrap_or_else(|| text.clone()));
        }
        Ok(input)
    }

    /// The value of each field by `place.name`.
    fn values(&self) -> PageValue {
        let mut values: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &self.path {
            values.insert(format!("path.{name}"), value.clone());
        }
        for (name, value) in &self.query {
            values.insert(format!("query.{name}"), value.clone());
        }
        PageValue::from(values)
    }
}

/// Describes a call of `address` as the given operation, for code samples.
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
