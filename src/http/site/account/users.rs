//! `/account/users`: pages on which administrators manage the users of their organization.

use axum::{extract::Path, http::StatusCode};
use minijinja::{Value as PageValue, context};
use serde_json::{Map, Value, json};

use super::{
    ApiCall, ApiRefusal, FormFields, FreshMember, FreshMemberForm, MemberRequest, PageError,
    PageResult, SiteRequest, api_client, elements, form_errors, form_refusal, status_of,
    template_value,
};
use crate::http::form::see_other;
use crate::http::site::api_client::text;

/// The API path of the organization's users.
pub(super) const USERS: &str = "/user/v1/organization/user";
const PENDING: &str = "/user/v1/organization/pending-user";

pub(super) async fn list(member: MemberRequest) -> PageResult {
    let users = explain_forbidden(&member, member.get(USERS).await)?;
    // Users without a password cannot log in yet, so the list marks them.
    let pending = elements(member.get(PENDING).await?, "users");
    let mut users = elements(users, "users");
    for user in &mut users {
        let found = pending.iter().find(|other| other["id"] == user["id"]);
        user["pending"] = json!(found.is_some());
        user["invited"] = json!(found.is_some_and(|found| found["invited"] == true));
    }
    member.page("account/users.html", context! { users => template_value(Value::Array(users)) })
}

pub(super) async fn show_new(member: FreshMember) -> PageResult {
    // Called only for its 403: other visitors must not fill in a form that the API then refuses.
    explain_forbidden(&member, member.get(USERS).await)?;
    page(&member, UserForm::new_user(PageValue::from(())), None)
}

/// `POST /account/users/new`: creates a user.
pub(super) async fn create(posted: FreshMemberForm) -> PageResult {
    // A new user has no values to clear, so empty fields are omitted.
    let call = ApiCall::post(USERS).json(body(&posted.form, EmptyField::Omitted));
    match posted.call(&call).await {
        Ok(user) => after_creation(&posted, &user).await,
        Err(refusal) => {
            let refusal = check_form_refusal(&posted, refusal)?;
            page(&posted, UserForm::new_user(posted.form.template_value()), Some(&refusal))
        }
    }
}

/// Responds after a user was created: confirms that the invitation was mailed, or shows the link to pass on.
async fn after_creation(posted: &FreshMemberForm, user: &Value) -> PageResult {
    // Without a mail server the administrator must pass the link on, so the page shows it.
    if posted.app.shared.access.users.sends_mails() {
        return Ok(see_other("/account/users?done=invited"));
    }
    let id = user["id"].to_string();
    let link = posted.call(&ApiCall::post(format!("{USERS}/{id}/password-link"))).await?;
    link_page(posted, &id, link).await
}

/// Renders the page that shows a password link once.
pub(super) async fn link_page(site: &SiteRequest, id: &str, link: Value) -> PageResult {
    let user = site.get(format!("{USERS}/{}", api_client::encode_segment(id))).await?;
    let context = context! { link => template_value(link), of => template_value(user) };
    site.page("account/user_link.html", context)
}

pub(super) async fn show(Path(id): Path<String>, member: MemberRequest) -> PageResult {
    show_with_refusal(&member, &id, None).await
}

/// Renders the page of a stored user, with the error of an action.
pub(super) async fn show_with_refusal(
    site: &SiteRequest,
    id: &str,
    refusal: Option<&ApiRefusal>,
) -> PageResult {
    let id = api_client::encode_segment(id);
    let user = explain_forbidden(site, site.get(format!("{USERS}/{id}")).await)?;
    let fields = UserForm {
        action: &format!("/account/users/{id}"),
        values: fields(&user),
        access: access(site, &id).await?,
    };
    page(site, fields, refusal)
}

/// Loads the access of the user `id`.
async fn access(site: &SiteRequest, id: &str) -> Result<PageValue, PageError> {
    let access = site.get(format!("{USERS}/{id}/access")).await?;
    // Administrators cannot deactivate themselves (contract users-18), so the page must not offer it.
    let own = site.visitor.as_ref().map(|visitor| visitor.account.user.id.to_string());
    Ok(context! { is_own => own.as_deref() == Some(id), ..template_value(access) })
}

/// `POST /account/users/{id}`: changes a user.
pub(super) async fn update(Path(id): Path<String>, posted: FreshMemberForm) -> PageResult {
    let target = format!("{USERS}/{}", api_client::encode_segment(&id));
    let call = ApiCall::put(target).json(body(&posted.form, EmptyField::Null));
    match posted.call(&call).await {
        Ok(_) => Ok(see_other("/account/users?done=saved")),
        Err(refusal) => {
            let refusal = check_form_refusal(&posted, refusal)?;
            let access = access(&posted, &api_client::encode_segment(&id)).await?;
            // The fields show the typed values. The access is not part of the form, so it is loaded again.
            let fields =
                UserForm { action: posted.path(), values: posted.form.template_value(), access };
            page(&posted, fields, Some(&refusal))
        }
    }
}

/// Replaces a 403 by a page that explains who has access.
fn explain_forbidden(
    site: &SiteRequest,
    outcome: Result<Value, ApiRefusal>,
) -> Result<Value, PageError> {
    outcome.map_err(|refusal| match refusal.status {
        // A user who followed a colleague's link needs to know whom to ask. The API's message does not help them.
        StatusCode::FORBIDDEN => forbidden(site),
        _ => refusal.into(),
    })
}

fn check_form_refusal(site: &SiteRequest, refusal: ApiRefusal) -> Result<ApiRefusal, PageError> {
    match refusal.status {
        StatusCode::FORBIDDEN => Err(forbidden(site)),
        _ => form_refusal(refusal),
    }
}

fn forbidden(site: &SiteRequest) -> PageError {
    let page = site.page_with(StatusCode::FORBIDDEN, "account/forbidden.html", context! {});
    // `PageError` can carry a complete page, so the handler returns this one.
    page.map_or_else(|problem| problem, PageError::from)
}

/// The form of a user, with its target and the values of its fields.
struct UserForm<'a> {
    action: &'a str,
    values: PageValue,
    /// The user's access; empty for a new user.
    access: PageValue,
}

impl UserForm<'_> {
    fn new_user(again: PageValue) -> Self {
        Self { action: "/account/users/new", values: again, access: PageValue::from(()) }
    }
}

fn page(site: &SiteRequest, fields: UserForm<'_>, refusal: Option<&ApiRefusal>) -> PageResult {
    let context = context! {
        action => fields.action,
        is_new => fields.action.ends_with("/new"),
        again => fields.values,
        access => fields.access,
        sends_mails => site.app.shared.access.users.sends_mails(),
        mistakes => form_errors(refusal),
    };
    site.page_with(status_of(refusal), "account/user.html", context)
}

/// Returns the field values of an existing user.
fn fields(user: &Value) -> PageValue {
    context! {
        userName => text(user, "userName"),
        active => user["active"] == true,
        emailAddress => text(user, "emailAddress"),
        firstName => text(user, "firstName"),
        lastName => text(user, "lastName"),
        department => text(user, "department"),
        direct => text(&user["phoneNumber"], "direct"),
        mobile => text(&user["phoneNumber"], "mobile"),
        admin => ticked(&user["access"]["admin"]),
        mediebank => ticked(&user["access"]["mediebank"]),
    }
}

/// Returns the value of a check box that is ticked if `value` is true.
fn ticked(value: &Value) -> &'static str {
    if value == &Value::Bool(true) { "on" } else { "" }
}

/// The meaning of an empty field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EmptyField {
    /// The property is left out.
    Omitted,
    /// The property is cleared.
    Null,
}

/// Builds the request body from a form. The API refuses a required field that is missing for a new user, or `null`
/// for an existing one.
fn body(form: &FormFields, empty: EmptyField) -> Value {
    let mut body = Map::new();
    for name in ["emailAddress", "firstName", "lastName", "department"] {
        put(&mut body, form, name, empty);
    }
    let mut phone = Map::new();
    for name in ["direct", "mobile"] {
        put(&mut phone, form, name, empty);
    }
    if !phone.is_empty() {
        body.insert("phoneNumber".to_owned(), Value::Object(phone));
    }
    // Always sent, because a form does not contain an unticked check box, and omitting the property would keep the
    // right.
    let access = json!({
        "admin": form.is_ticked("admin"), "mediebank": form.is_ticked("mediebank"),
    });
    body.insert("access".to_owned(), access);
    Value::Object(body)
}

/// Adds the field `name` of a form to a request body.
fn put(body: &mut Map<String, Value>, form: &FormFields, name: &str, empty: EmptyField) {
    // The API changes only properties in the body, so a field that was emptied is sent as `null` (contract
    // users-12).
    let emptied = (empty == EmptyField::Null).then_some(Value::Null);
    if let Some(value) = form.find(name).map(Value::from).or(emptied) {
        body.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_field_is_omitted_for_a_new_user_and_clears_that_of_an_existing_one() {
        let form = "emailAddress=a%40b.example&firstName=&lastName=B&direct=1234&admin=on";
        let form = FormFields::parse(form).unwrap();
        let access = json!({ "admin": true, "mediebank": false });
        let expected = json!({
            "emailAddress": "a@b.example", "lastName": "B",
            "phoneNumber": { "direct": "1234" }, "access": access,
        });
        assert_eq!(body(&form, EmptyField::Omitted), expected);
        let expected = json!({
            "emailAddress": "a@b.example", "firstName": null, "lastName": "B", "department": null,
            "phoneNumber": { "direct": "1234", "mobile": null }, "access": access,
        });
        assert_eq!(body(&form, EmptyField::Null), expected);
    }
}
