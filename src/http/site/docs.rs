//! `/docs` and the forms that try an operation out.
//!
//! The documentation is one page, made at the start. The form of an operation is a page of its
//! own, which a script brings into the documentation when somebody opens it: all of them at once
//! would make that page half as long again. Without scripts a form shows the code of the call that
//! is typed into it, and leads to what is open; with them it sends the call in the visitor's name.
//!
//! The documentation is English, what stands around it speaks the visitor's language.

use std::collections::BTreeMap;

use axum::{
    Router,
    extract::Path,
    http::{HeaderMap, HeaderValue, Method, header},
    routing::get,
};
use minijinja::{Value as PageValue, context, value::Serde};

use super::{
    AppState, PageResult, SiteRequest, language,
    snippets::{CodeSnippets, SnippetCall, file_name, target},
};
use crate::http::openapi::{SampleBody, TrialOperation};
use crate::http::site::pages;
use crate::runtime::error::{Error, ErrorKind, Result};

/// What stands in code in the place of an application key.
const KEY: &str = "YOUR_KEY";

/// The addresses of this file.
pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/docs", get(docs)).route("/docs/try/{id}", get(try_out))
}

/// `GET /docs`: the description of the APIs for people.
async fn docs(site: SiteRequest, method: Method, headers: HeaderMap) -> PageResult {
    let description = &site.app.shared.description;
    if site.visitor.is_some() {
        return site.page("docs.html", context! { body => description.body() });
    }
    let mut response = description.page(language::current_language(), &method, &headers);
    pages::set_public_headers(&site.app, response.headers_mut());
    let vary = HeaderValue::from_static("Cookie, Accept-Language");
    response.headers_mut().insert(header::VARY, vary);
    Ok(response)
}

/// `GET /docs/try/{id}`: the form of an operation, and the code of the call that is typed into it.
async fn try_out(Path(id): Path<String>, site: SiteRequest) -> PageResult {
    let description = &site.app.shared.description;
    let missing = || Error::new(ErrorKind::NotFound, "This operation does not exist.");
    let trial = description.operation(&id).ok_or_else(missing)?;
    let typed = TryOutInput::of(trial, &site)?;
    let address = target(&trial.path, &typed.path, &typed.query);
    let is_whole = typed.path.iter().all(|(_, value)| !value.is_empty());
    let code = CodeSnippets::from(&sketch(trial, &address, typed.body.clone()));
    site.page(
        "try.html",
        context! {
            is_whole,
            open_url => (trial.is_open && trial.method == "GET")
                .then(|| format!("{}{address}", trial.base)),
            trial => PageValue::from(Serde(trial)),
            values => typed.values(),
            body => typed.body,
            code => PageValue::from(Serde(code)),
        },
    )
}

/// What stands in the fields of a form.
struct TryOutInput {
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    body: Option<String>,
}

impl TryOutInput {
    /// What the address of the page says, else what the fields hold at first.
    fn of(trial: &TrialOperation, site: &SiteRequest) -> Result<Self> {
        let mut typed = Self { path: Vec::new(), query: Vec::new(), body: None };
        for field in &trial.fields {
            let given = site.query.field(&format!("{}.{}", field.place, field.name))?;
            let pair = (field.name.clone(), given.unwrap_or(&field.value).to_owned());
            let pairs = if field.place == "path" { &mut typed.path } else { &mut typed.query };
            pairs.push(pair);
        }
        if trial.takes_ak {
            typed.query.push(("ak".to_owned(), KEY.to_owned()));
        }
        if let Some(SampleBody { text, .. }) = &trial.body {
            // Browsers send the ends of lines as two characters.
            let given = site.query.field("body")?.map(|text| text.replace("\r\n", "\n"));
            typed.body = Some(given.unwrap_or_else(|| text.clone()));
        }
        Ok(typed)
    }

    /// Place, dot, name of each field with its value.
    fn values(&self) -> PageValue {
        let of = |place: &'static str, pairs: &[(String, String)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| (format!("{place}.{name}"), value.clone())).collect()
        };
        let all = of("path", &self.path).into_iter().chain(of("query", &self.query));
        PageValue::from(all.collect::<BTreeMap<_, _>>())
    }
}

/// A call of `address` as the operation that it is one of is called.
pub(super) fn sketch(trial: &TrialOperation, address: &str, body: Option<String>) -> SnippetCall {
    let body = body.filter(|body| !body.is_empty());
    let kind = trial.body.as_ref().map(|sample| sample.kind.clone());
    SnippetCall {
        method: trial.method.clone(),
        url: format!("{}{address}", trial.base),
        authorization: trial.authorization.map(str::to_owned),
        kind: body.as_ref().and(kind),
        body,
        file: trial.gives_bytes.then(|| file_name(address)),
    }
}
