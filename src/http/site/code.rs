//! `/code`: a visitor's recent activity on the site, as calls that a program could make.

use axum::{Router, routing::get};
use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;

use super::{
    AppState, MemberRequest, PageResult,
    activity::RecordedCall,
    docs,
    snippets::{CodeSnippets, SnippetCall},
    studio,
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
    /// The markup of the crop, if the call names one.
    html: Option<String>,
}

async fn show(member: MemberRequest) -> PageResult {
    let shared = &member.app.shared;
    let calls = shared.site.activity.list(&member.visitor, clock::now()).await?;
    let mut shown = Vec::with_capacity(calls.len());
    for recorded in &calls {
        let view = call_view(&shared.description, &shared.site.url, recorded);
        let html = studio::markup_of_target(&member, &recorded.call.target).await;
        shown.push(CallView { html, ..view });
    }
    member.page(
        "code.html",
        context! {
            calls => PageValue::from(Serde(shown)),
            most => ACTIVITY_CALLS_MAX,
            hours => ACTIVITY_KEPT_S / 3600,
        },
    )
}

fn call_view(description: &ApiDescription, site_url: &str, recorded: &RecordedCall) -> CallView {
    let (method, target) = (recorded.call.method.as_str(), recorded.call.target.as_str());
    let body = recorded.call.body.as_ref().map(ToString::to_string);
    // A described operation knows the base address and authorization of its calls.
    let operation = description.find_operation(method, target);
    let snippet = match operation {
        Some(described) => docs::sketch(described, target, body),
        None => SnippetCall {
            method: method.to_owned(),
            url: format!("{site_url}{target}"),
            // Pages send no bodies but JSON.
            kind: body.as_ref().map(|_| "application/json".to_owned()),
            body,
            ..SnippetCall::default()
        },
    };
    CallView {
        operation: operation.map(|described| (described.id.clone(), described.summary.clone())),
        method: method.to_owned(),
        target: target.to_owned(),
        at: recorded.at.to_string(),
        code: CodeSnippets::from(&snippet),
        html: None,
    }
}
