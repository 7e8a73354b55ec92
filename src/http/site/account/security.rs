//! `/account/security`: the visitor's password, sessions, API keys and the applications that may act for the visitor.

use axum::extract::{FromRequest, Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use minijinja::{context, value::Serde};

use super::{MemberForm, MemberRequest, PageResult, SiteRequest};
use crate::access::users::{NewPassword, PasswordOutcome};
use crate::http::form::see_other;
use crate::http::site::passwords::{LOGIN_AFTER, PASSWORDS_DIFFER};
use crate::http::{AppState, edge};
use crate::runtime::clock;
use crate::storage::database::session_name;
use api::user::{EndSession, ListApplications, ListKeys, ListSessions, RevokeApplication};
use model::ContentHash;

pub(super) async fn show(member: MemberRequest) -> PageResult {
    page(&member, StatusCode::OK, None).await
}

/// Renders the page, with the error of the password form if there is one.
async fn page(member: &MemberRequest, status: StatusCode, error: Option<&str>) -> PageResult {
    let site: &SiteRequest = member;
    // The API identifies sessions by a hash of the cookie, because the cookie itself would grant access.
    let current_session = session_name(&ContentHash::new(member.visitor.cookie().as_bytes()));
    let sessions = site.ask(&ListSessions {}).await?.into_iter();
    // The page does not offer to end the current session.
    let sessions = sessions
        .map(|session| context! { current => session.id == current_session, ..Serde(session) });
    let sessions: Vec<_> = sessions.collect();
    let applications = site.ask(&ListApplications {}).await?;
    let keys = site.ask(&ListKeys {}).await?;
    let context = context! {
        others => sessions.len() > 1,
        sessions,
        applications => Serde(applications),
        keys => Serde(keys),
        error,
    };
    site.page_with(status, "account/security.html", context)
}

/// `POST /account/security/password`: changes the password after verifying the current one. Success ends every
/// session, including this one.
pub(super) async fn change(State(app): State<AppState>, request: Request) -> PageResult {
    // Extracting the form below consumes the request.
    let address = edge::throttled_address(&app, &request);
    let posted = <MemberForm>::from_request(request, &app).await?;
    // Not trimmed: spaces around a password are part of it.
    let old = posted.form.find_untrimmed("old").unwrap_or_default();
    let password = posted.form.find_untrimmed("password").unwrap_or_default();
    let repeated = posted.form.find_untrimmed("repeated").unwrap_or_default();
    // Checked before the current password, so that a typing error does not count as a failed attempt.
    if password != repeated {
        return page(&posted, StatusCode::BAD_REQUEST, Some(PASSWORDS_DIFFER)).await;
    }
    let new = NewPassword { password, revokes_keys: posted.form.is_ticked("keys"), address };
    let users = &app.shared.access.users;
    let outcome = users.change_password(&posted.visitor.account, old, new, clock::now()).await?;
    match outcome {
        // All sessions have ended, including this one, so the next page must be the login.
        PasswordOutcome::Done => Ok(see_other(LOGIN_AFTER)),
        PasswordOutcome::Flawed(flaw) => {
            page(&posted, StatusCode::BAD_REQUEST, Some(flaw.text())).await
        }
        // `Gone` is the outcome of an invalid link for a new password, and does not occur here.
        PasswordOutcome::Wrong | PasswordOutcome::Gone => {
            page(&posted, StatusCode::FORBIDDEN, Some("The current password is wrong.")).await
        }
        PasswordOutcome::Throttled(wait_s) => {
            let text = "Too many failed attempts. Wait before you try again.";
            // 503 with `Retry-After`, as for every throttled login (contract login-21).
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let mut response = page(&posted, status, Some(text)).await?;
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait_s));
            Ok(response)
        }
    }
}

/// `POST /account/security/sessions/{id}/end`: ends a session. The id `others` ends all sessions except the
/// current one.
pub(super) async fn end_session(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let current_session = session_name(&ContentHash::new(posted.visitor.cookie().as_bytes()));
    let ended: Vec<String> = match id.as_str() {
        "others" => {
            let names = posted.ask(&ListSessions {}).await?.into_iter().map(|session| session.id);
            // The visitor stays logged in, so that the page can confirm the action.
            names.filter(|name| *name != current_session).collect()
        }
        _ => vec![id],
    };
    // The API ends one session at a time, so each appears in the audit log.
    for id in ended {
        posted.ask(&EndSession { id }).await?;
    }
    Ok(see_other("/account/security?done=ended"))
}

/// `POST /account/security/applications/end`: ends the access of an application.
pub(super) async fn revoke_application(posted: MemberForm) -> PageResult {
    posted.ask(&RevokeApplication { id: posted.form.text("application") }).await?;
    Ok(see_other("/account/security?done=ended"))
}
