//! `/code`: a visitor's recent activity on the site, as calls that a program could make.

use axum::{Router, routing::get};
use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;

use super::{
    AppState, MemberRequest, PageResult,
    activity::RecordedCall,
    docs,
    snippets::{CodeSnippets, SnippetCall},
};
use crate::http::openapi::ApiDescription;
use crate::runtime::clock;
use crate::runtime::limits::{ACTIVITY_CALLS_MAX, ACTIVITY_KEPT_S};

/// The routes of the page.
pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/code", get(show))
}

/// A call as the page shows it.
#[derive(Serialize)]
struct CallView {
    /// Id and summary of the call's operation, if it is described.
    operation: Option<(String, String)>,
    method: String,
    target: String,
    at: String,
    code: CodeSnippets,
}

async fn show(member: MemberRequest) -> PageResult {
    let shared = &member.app.shared;
    let calls = shared.site.activity.list(&member.visitor, clock::now()).await?;
    let shown: Vec<CallView> =
        calls.iter().map(|done| call_view(&shared.description, &shared.site.url, done)).collect();
    member.page(
        "code.html",
        context! {
            calls => PageValue::from(Serde(shown)),
            most => ACTIVITY_CALLS_MAX,
            hours => ACTIVITY_KEPT_S / 3600,
        },
    )
}

fn call_view(description: &ApiDescription, site_url: &str, done: &RecordedCall) -> CallView {
    let (method, target) = (done.call.method.as_str(), done.call.target.as_str());
    let body = done.call.body.as_ref().map(ToString::to_string);
    let operation = description.find_operation(method, target);
    let sketch = match operation {
        Some(trial) => docs::sketch(trial, target, body),
        None => SnippetCall {
            method: method.to_owned(),
            url: format!("{site_url}{target}"),
            kind: body.as_ref().map(|_| "application/json".to_owned()),
            body,
            ..SnippetCall::default()
        },
    };
    CallView {
        operation: operation.map(|trial| (trial.id.clone(), trial.summary.clone())),
        method: method.to_owned(),
        target: target.to_owned(),
        at: done.at.to_string(),
        code: CodeSnippets::from(&sketch),
    }
}
