//! `/account/users`: pages on which administrators manage the users of their organization. Forms that change users
//! require a recent login ([`FreshMember`]).

use axum::{extract::Path, http::StatusCode};
use minijinja::{Value as PageValue, context, value::Serde};

use super::{
    ApiRefusal, FormFields, FreshMember, FreshMemberForm, MemberRequest, PageError, PageResult,
    SiteRequest, form_errors, form_refusal, parse_id, status_of,
};
use crate::http::form::see_other;
use api::account::{User, UserBase};
use api::organization::{
    CreateOrganizationUser, ListOrganizationUsers, ListPendingUsers, LoadOrganizationUser,
    LoadUserAccess, PasswordLink, PhoneNumberUpdate, SendPasswordLink, UpdateOrganizationUser,
    UserCreate, UserRightsUpdate, UserUpdate,
};

pub(super) async fn list(member: MemberRequest) -> PageResult {
    let users = list_users(&member).await?;
    let pending = member.ask(&ListPendingUsers {}).await?;
    // Users without a password cannot log in yet, so the list marks them.
    let users = users.into_iter().map(|user| {
        let found = pending.iter().find(|other| other.id == user.id);
        let invited = found.is_some_and(|found| found.invited);
        context! { pending => found.is_some(), invited, ..Serde(user) }
    });
    let users: PageValue = users.collect();
    member.page("account/users.html", context! { users })
}

async fn list_users(site: &SiteRequest) -> Result<Vec<UserBase>, PageError> {
    explain_forbidden(site, site.ask(&ListOrganizationUsers {}).await)
}

pub(super) async fn show_new(member: FreshMember) -> PageResult {
    // Called only for its 403: other visitors must not fill in a form that the API then refuses.
    list_users(&member).await?;
    page(&member, UserForm::new_user(PageValue::from(())), None)
}

/// `POST /account/users/new`: creates a user.
pub(super) async fn create(posted: FreshMemberForm) -> PageResult {
    let outcome = match parse_new_user(&posted.form) {
        Ok(user) => posted.send(&CreateOrganizationUser {}, &user).await,
        Err(refusal) => {
            // A visitor without the right gets a 403, rather than the faults of the form.
            list_users(&posted).await?;
            Err(refusal)
        }
    };
    match outcome {
        Ok(user) => after_creation(&posted, &user).await,
        Err(refusal) => {
            let refusal = check_form_refusal(&posted, refusal)?;
            page(&posted, UserForm::new_user(posted.form.template_value()), Some(&refusal))
        }
    }
}

/// Responds after a user was created: confirms that the invitation was mailed, or shows its link.
async fn after_creation(posted: &FreshMemberForm, user: &User) -> PageResult {
    if posted.app.shared.access.users.sends_mails() {
        return Ok(see_other("/account/users?done=invited"));
    }
    // Without a mail server, the administrator must pass the link on.
    let id = user.base.id;
    let link = posted.ask(&SendPasswordLink { id }).await?;
    link_page(posted, id, link).await
}

/// Renders the page with a link for choosing a password. No other page shows it.
pub(super) async fn link_page(site: &SiteRequest, id: i64, link: PasswordLink) -> PageResult {
    let user = site.ask(&LoadOrganizationUser { id }).await?;
    let context = context! { link => Serde(link), of => Serde(user) };
    site.page("account/user_link.html", context)
}

pub(super) async fn show(Path(id): Path<String>, member: MemberRequest) -> PageResult {
    show_with_refusal(&member, parse_id(&id)?, None).await
}

/// Renders the page of a stored user, with the error of an action if there is one.
pub(super) async fn show_with_refusal(
    site: &SiteRequest,
    id: i64,
    refusal: Option<&ApiRefusal>,
) -> PageResult {
    let user = explain_forbidden(site, site.ask(&LoadOrganizationUser { id }).await)?;
    let fields = UserForm {
        action: &format!("/account/users/{id}"),
        // The form's fields have the names of the API's properties.
        values: context! { ..Serde(user.base), ..Serde(user.phone_number), ..Serde(user.access) },
        access: access(site, id).await?,
    };
    page(site, fields, refusal)
}

/// Loads the state of the access of the user `id`, such as sessions and keys, for the page.
async fn access(site: &SiteRequest, id: i64) -> Result<PageValue, PageError> {
    let access = explain_forbidden(site, site.ask(&LoadUserAccess { id }).await)?;
    // Administrators cannot deactivate themselves (contract users-18), so the page must not offer it.
    let own = site.visitor.as_ref().map(|visitor| visitor.account.user.id.0);
    Ok(context! { is_own => own == Some(id), ..Serde(access) })
}

/// `POST /account/users/{id}`: changes a user.
pub(super) async fn update(Path(id): Path<String>, posted: FreshMemberForm) -> PageResult {
    let id = parse_id(&id)?;
    let outcome = match parse_update(&posted.form) {
        Ok(update) => posted.send(&UpdateOrganizationUser { id }, &update).await,
        Err(refusal) => Err(refusal),
    };
    match outcome {
        Ok(_) => Ok(see_other("/account/users?done=saved")),
        Err(refusal) => {
            let refusal = check_form_refusal(&posted, refusal)?;
            let access = access(&posted, id).await?;
            // The fields show the typed values. The access is not part of the form, so it is loaded again.
            let fields =
                UserForm { action: posted.path(), values: posted.form.template_value(), access };
            page(&posted, fields, Some(&refusal))
        }
    }
}

/// Replaces a 403 by a page that explains who has access.
fn explain_forbidden<T>(
    site: &SiteRequest,
    outcome: Result<T, ApiRefusal>,
) -> Result<T, PageError> {
    outcome.map_err(|refusal| match refusal.status {
        // A user who followed a colleague's link needs to know whom to ask. The API's message does not help them.
        StatusCode::FORBIDDEN => forbidden(site),
        _ => refusal.into(),
    })
}

/// Returns the refusal of a form that is shown again with it. Any other refusal becomes the error of the page.
fn check_form_refusal(site: &SiteRequest, refusal: ApiRefusal) -> Result<ApiRefusal, PageError> {
    match refusal.status {
        StatusCode::FORBIDDEN => Err(forbidden(site)),
        _ => form_refusal(refusal),
    }
}

/// Returns the page that explains who has access, as an error.
fn forbidden(site: &SiteRequest) -> PageError {
    let page = site.page_with(StatusCode::FORBIDDEN, "account/forbidden.html", context! {});
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
    fn new_user(values: PageValue) -> Self {
        Self { action: "/account/users/new", values, access: PageValue::from(()) }
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

/// Builds a new user from a form.
fn parse_new_user(form: &FormFields) -> Result<UserCreate, ApiRefusal> {
    let [email_address, first_name, last_name] = required_fields(form)?;
    Ok(UserCreate {
        email_address,
        first_name,
        last_name,
        phone_number: Some(phone(form)),
        department: optional(form, "department"),
        access: Some(access_levels(form)),
    })
}

/// Builds the change of a user from a form. An emptied field clears its property (contract users-12).
fn parse_update(form: &FormFields) -> Result<UserUpdate, ApiRefusal> {
    let [email_address, first_name, last_name] = required_fields(form)?;
    Ok(UserUpdate {
        email_address: Some(email_address),
        first_name: Some(first_name),
        last_name: Some(last_name),
        phone_number: Some(Some(phone(form))),
        department: Some(optional(form, "department")),
        access: Some(access_levels(form)),
    })
}

/// Returns the fields that must be filled in: e-mail address, first name and last name.
///
/// Fails with all that are missing.
fn required_fields(form: &FormFields) -> Result<[String; 3], ApiRefusal> {
    let names = ["emailAddress", "firstName", "lastName"];
    let missing = names.into_iter().filter(|name| form.find(name).is_none());
    let mut refusals = missing.map(|name| ApiRefusal::invalid("required", name, "is missing"));
    let Some(mut refusal) = refusals.next() else {
        return Ok(names.map(|name| form.text(name)));
    };
    refusal.errors.extend(refusals.flat_map(|other| other.errors));
    Err(refusal)
}

fn optional(form: &FormFields, name: &str) -> Option<String> {
    form.find(name).map(str::to_owned)
}

fn phone(form: &FormFields) -> PhoneNumberUpdate {
    let direct = Some(optional(form, "direct"));
    PhoneNumberUpdate { direct, mobile: Some(optional(form, "mobile")) }
}

fn access_levels(form: &FormFields) -> UserRightsUpdate {
    // Both are always sent. A form does not contain an unticked check box, and an omitted property would keep the
    // right.
    let admin = Some(form.is_ticked("admin"));
    UserRightsUpdate { admin, mediebank: Some(form.is_ticked("mediebank")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emptied_field_clears_its_property_unless_it_must_be_there() {
        let form = |text: &str| FormFields::parse(text).unwrap();
        let whole = form("emailAddress=a%40b.example&firstName=A&lastName=B&direct=1234&admin=on");
        let phone =
            PhoneNumberUpdate { direct: Some(Some("1234".to_owned())), mobile: Some(None) };
        let new = parse_new_user(&whole).unwrap();
        assert_eq!((new.phone_number, new.department), (Some(phone.clone()), None));
        let update = parse_update(&whole).unwrap();
        assert_eq!((update.phone_number, update.department), (Some(Some(phone)), Some(None)));
        assert_eq!(update.first_name.as_deref(), Some("A"));
        let rights = UserRightsUpdate { admin: Some(true), mediebank: Some(false) };
        assert_eq!((new.access, update.access), (Some(rights), Some(rights)));
        let emptied = form("emailAddress=a%40b.example&firstName=+&lastName=B");
        assert_eq!(parse_new_user(&emptied).unwrap_err().errors[0].path, "firstName");
        assert_eq!(parse_update(&emptied).unwrap_err().errors[0].path, "firstName");
        let paths = |refusal: ApiRefusal| -> Vec<String> {
            refusal.errors.into_iter().map(|error| error.path).collect()
        };
        let missing = parse_new_user(&form("direct=1234")).map_err(paths).unwrap_err();
        assert_eq!(missing, ["emailAddress", "firstName", "lastName"]);
    }
}
