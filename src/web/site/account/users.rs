//! `/account/users`: administrators look after the users of their organization.

use axum::{extract::Path, http::StatusCode};
use minijinja::{Value as PageValue, context};
use serde_json::{Map, Value, json};

use super::{
    Call, Form, FreshMember, FreshPosted, Member, Page, Problem, Refusal, Site, api, elements,
    mistakes, of_form, shown, status_of,
};
use crate::web::form::see_other;

const USERS: &str = "/user/v1/organization/user";

/// `GET /account/users`.
pub(super) async fn list(member: Member) -> Page {
    let users = allowed(&member, member.get(USERS).await)?;
    let context = context! { users => shown(Value::Array(elements(users, "users"))) };
    member.page("account/users.html", context)
}

/// `GET /account/users/new`.
pub(super) async fn start(member: FreshMember) -> Page {
    allowed(&member, member.get(USERS).await)?;
    page(&member, Fields { action: "/account/users/new", again: PageValue::from(()) }, None)
}

/// `POST /account/users/new`: makes a user.
pub(super) async fn create(posted: FreshPosted) -> Page {
    let call = Call::post(USERS).json(body(&posted.form, Empty::LeftOut));
    match posted.send(call).await {
        Ok(_) => Ok(see_other("/account/users?done=created")),
        Err(refusal) => {
            let refusal = mistake(&posted, refusal)?;
            let again = posted.form.again();
            page(&posted, Fields { action: "/account/users/new", again }, Some(&refusal))
        }
    }
}

/// `GET /account/users/{id}`.
pub(super) async fn show(Path(id): Path<String>, member: Member) -> Page {
    let target = format!("{USERS}/{}", api::segment(&id));
    let user = allowed(&member, member.get(target).await)?;
    page(&member, Fields { action: member.path(), again: fields(&user) }, None)
}

/// `POST /account/users/{id}`: changes a user.
pub(super) async fn update(Path(id): Path<String>, posted: FreshPosted) -> Page {
    let target = format!("{USERS}/{}", api::segment(&id));
    let call = Call::put(target).json(body(&posted.form, Empty::Emptied));
    match posted.send(call).await {
        Ok(_) => Ok(see_other("/account/users?done=saved")),
        Err(refusal) => {
            let refusal = mistake(&posted, refusal)?;
            let again = posted.form.again();
            page(&posted, Fields { action: posted.path(), again }, Some(&refusal))
        }
    }
}

/// Whoever may not do it gets a page that says who may.
fn allowed(site: &Site, outcome: Result<Value, Refusal>) -> Result<Value, Problem> {
    outcome.map_err(|refusal| match refusal.status {
        StatusCode::FORBIDDEN => forbidden(site),
        _ => refusal.into(),
    })
}

fn mistake(site: &Site, refusal: Refusal) -> Result<Refusal, Problem> {
    match refusal.status {
        StatusCode::FORBIDDEN => Err(forbidden(site)),
        _ => of_form(refusal),
    }
}

fn forbidden(site: &Site) -> Problem {
    let page = site.page_with(StatusCode::FORBIDDEN, "account/forbidden.html", context! {});
    page.map_or_else(|problem| problem, Problem::from)
}

/// The form of a user: where it goes, and what its fields hold.
struct Fields<'a> {
    action: &'a str,
    again: PageValue,
}

fn page(site: &Site, fields: Fields<'_>, refusal: Option<&Refusal>) -> Page {
    let context = context! {
        action => fields.action,
        is_new => fields.action.ends_with("/new"),
        again => fields.again,
        mistakes => mistakes(refusal),
    };
    site.page_with(status_of(refusal), "account/user.html", context)
}

/// What the fields hold of a user that is there.
fn fields(user: &Value) -> PageValue {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ticked = |value: &Value| if value == &Value::Bool(true) { "on" } else { "" };
    context! {
        userName => text(&user["userName"]),
        active => user["active"] == true,
        emailAddress => text(&user["emailAddress"]),
        firstName => text(&user["firstName"]),
        lastName => text(&user["lastName"]),
        department => text(&user["department"]),
        direct => text(&user["phoneNumber"]["direct"]),
        mobile => text(&user["phoneNumber"]["mobile"]),
        admin => ticked(&user["access"]["admin"]),
        mediebank => ticked(&user["access"]["mediebank"]),
    }
}

/// What a field that is empty means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    /// Nothing is said.
    LeftOut,
    /// What was there goes.
    Emptied,
}

/// The body that a form states. What may not be empty is refused then: of a new user it is missing,
/// of another one it is `null`.
fn body(form: &Form, empty: Empty) -> Value {
    let put = |body: &mut Map<String, Value>, name: &str| {
        let emptied = (empty == Empty::Emptied).then_some(Value::Null);
        if let Some(value) = form.find(name).map(Value::from).or(emptied) {
            body.insert(name.to_owned(), value);
        }
    };
    let (mut body, mut phone) = (Map::new(), Map::new());
    for name in ["emailAddress", "firstName", "lastName", "department"] {
        put(&mut body, name);
    }
    for name in ["direct", "mobile"] {
        put(&mut phone, name);
    }
    if !phone.is_empty() {
        body.insert("phoneNumber".to_owned(), Value::Object(phone));
    }
    let access = json!({
        "admin": form.is_ticked("admin"), "mediebank": form.is_ticked("mediebank"),
    });
    body.insert("access".to_owned(), access);
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_field_says_nothing_of_a_new_user_and_empties_one_that_is_there() {
        let form = "emailAddress=a%40b.example&firstName=&lastName=B&direct=1234&admin=on";
        let form = Form::parse(form).unwrap();
        let access = json!({ "admin": true, "mediebank": false });
        let expected = json!({
            "emailAddress": "a@b.example", "lastName": "B",
            "phoneNumber": { "direct": "1234" }, "access": access,
        });
        assert_eq!(body(&form, Empty::LeftOut), expected);
        let expected = json!({
            "emailAddress": "a@b.example", "firstName": null, "lastName": "B", "department": null,
            "phoneNumber": { "direct": "1234", "mobile": null }, "access": access,
        });
        assert_eq!(body(&form, Empty::Emptied), expected);
    }
}
