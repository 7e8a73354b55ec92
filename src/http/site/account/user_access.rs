//! Actions of administrators on a user's access: password links, deactivation, and the end of sessions and keys.

use axum::extract::Path;
use serde_json::json;

use super::{ApiCall, ApiRefusal, FreshMemberForm, PageResult, api_client, form_refusal, users};
use crate::http::form::see_other;
use crate::runtime::error::{Error, ErrorKind};

/// `POST /account/users/{id}/access`: performs the action of the button that was pressed.
pub(super) async fn change(Path(id): Path<String>, posted: FreshMemberForm) -> PageResult {
    let user = format!("{}/{}", users::USERS, api_client::encode_segment(&id));
    let action = posted.form.find("do").unwrap_or_default();
    let call = match action {
        "invite" => ApiCall::post(format!("{user}/password-link")),
        "withdraw" => ApiCall::delete(format!("{user}/password-link")),
        "deactivate" => set_active(&user, false),
        "reactivate" => set_active(&user, true),
        "end" => ApiCall::delete(format!("{user}/session")),
        "revoke" => ApiCall::delete(format!("{user}/key")),
        // The page's own buttons send only the values above.
        _ => return Err(Error::new(ErrorKind::InvalidArgument, "The form cannot be read").into()),
    };
    match posted.call(&call).await {
        // No other page shows a link that was not mailed.
        Ok(made) if made["url"].is_string() => users::link_page(&posted, &id, made).await,
        Ok(_) => Ok(see_other(&format!(
            "/account/users/{}?done={action}",
            api_client::encode_segment(&id)
        ))),
        Err(refusal) => {
            // For example, administrators cannot deactivate themselves (contract users-18).
            let refusal: ApiRefusal = form_refusal(refusal)?;
            users::show_with_refusal(&posted, &id, Some(&refusal)).await
        }
    }
}

/// Returns the call that deactivates or reactivates the user at the path `user`.
fn set_active(user: &str, active: bool) -> ApiCall {
    ApiCall::put(format!("{user}/access")).json(json!({ "active": active }))
}
