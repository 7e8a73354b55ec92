//! Actions of administrators on a user's access: password links, deactivation, and the end of sessions and keys.

use axum::extract::Path;

use super::{ApiRefusal, FreshMemberForm, PageResult, form_refusal, parse_id, users};
use crate::http::form::see_other;
use crate::runtime::error::{Error, ErrorKind};
use api::organization::{
    EndUserSessions, RevokePasswordLinks, RevokeUserKeys, SendPasswordLink, UpdateUserAccess,
    UserAccessUpdate,
};

/// `POST /account/users/{id}/access`: performs the action of the button that was pressed.
pub(super) async fn change(Path(id): Path<String>, posted: FreshMemberForm) -> PageResult {
    let id = parse_id(&id)?;
    let action = posted.form.find("do").unwrap_or_default();
    let outcome = match action {
        "invite" => posted.ask(&SendPasswordLink { id }).await.map(Some),
        "withdraw" => posted.ask(&RevokePasswordLinks { id }).await.map(|()| None),
        "deactivate" => set_active(&posted, id, false).await.map(|()| None),
        "reactivate" => set_active(&posted, id, true).await.map(|()| None),
        "end" => posted.ask(&EndUserSessions { id }).await.map(|()| None),
        "revoke" => posted.ask(&RevokeUserKeys { id }).await.map(|()| None),
        // The page's own buttons send only the values above.
        _ => return Err(Error::new(ErrorKind::InvalidArgument, "The form cannot be read").into()),
    };
    match outcome {
        // No other page shows a link that was not mailed.
        Ok(Some(link)) if link.url.is_some() => users::link_page(&posted, id, link).await,
        Ok(Some(_) | None) => Ok(see_other(&format!("/account/users/{id}?done={action}"))),
        Err(refusal) => {
            // For example, administrators cannot deactivate themselves (contract users-18).
            let refusal = form_refusal(refusal)?;
            users::show_with_refusal(&posted, id, Some(&refusal)).await
        }
    }
}

/// Deactivates or reactivates the user `id`.
async fn set_active(posted: &FreshMemberForm, id: i64, active: bool) -> Result<(), ApiRefusal> {
    posted.send(&UpdateUserAccess { id }, &UserAccessUpdate { active }).await
}
