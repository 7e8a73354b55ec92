//! Users, profiles, devices and the organization over HTTP (`docs/contract/users.md`).

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    http::Uri,
    response::{IntoResponse, Response},
    routing::{get, put},
};
use serde_json::{Map, Value};

use crate::access::users::{CheckedMember, UserChange, Users, is_phone_number, json};
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiError;
use crate::http::api::ApiResult;
use crate::http::protocol::deprecation;
use crate::http::protocol::request;
use crate::http::protocol::request::Presence;
use crate::http::protocol::request::PropertyReader;
use crate::http::protocol::request::PropertyValue;
use crate::http::protocol::request::QueryParameters;
use crate::http::protocol::request::TextRule;
use crate::http::protocol::request::ValidationErrors;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{
    DEVICE_TOKEN_BYTES_MAX, JSON_BODY_BYTES_MAX, PROFILE_BYTES_MAX, SHORT_TEXT_CHARS_MAX,
};
use model::account::{AccessLevels, Device, DeviceKind, PhoneNumbers, UserId};

/// The rule for names, departments and device models.
const SHORT: TextRule = TextRule::line(SHORT_TEXT_CHARS_MAX);

/// A decoded path segment, or the reason why it is missing.
type Segment = Result<Path<String>, PathRejection>;

/// The routes of users, profiles, devices and the organization.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/user/v1/agreement", get(agreements))
        .route("/user/v1/user", get(user))
        .route("/user/v1/profile", get(profile).put(replace_profile))
        .route("/user/v1/profile/{property}", get(load_profile_properties).put(patch_profile))
        .route("/user/v1/device", get(devices))
        .route("/user/v1/device/{token}", put(register_device).delete(unregister_device))
        .route("/user/v1/organization", get(organization))
        .route("/user/v1/organization/user", get(list_users).post(create_user))
        .route("/user/v1/organization/user/{id}", get(load_user).put(update_user))
}

async fn agreements(caller: Result<ApiCaller, ApiError>) -> Response {
    // The caller is a result, because errors announce the deprecation, too (contract api-20).
    let response = caller.and_then(|caller| list_agreements(&caller)).into_response();
    deprecation::mark_deprecated(response, "/user/v1/user")
}

fn list_agreements(caller: &ApiCaller) -> ApiResult {
    let agreements = Users::agreements(&caller.0, clock::now());
    api::json(&agreements.map(json::OldAgreement::from).collect::<Vec<_>>())
}

async fn user(ApiCaller(caller): ApiCaller) -> ApiResult {
    // Service accounts have no user document.
    caller.require_person()?;
    api::json(&json::FullUser::seen_by(caller.account(), &caller))
}

async fn organization(ApiCaller(caller): ApiCaller) -> ApiResult {
    api::json(&json::FullOrganization::from(Users::organization(&caller)?))
}

async fn profile(State(app): State<AppState>, ApiCaller(caller): ApiCaller) -> ApiResult {
    api::json(&app.shared.access.users.profile(&caller).await?)
}

async fn replace_profile(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    request: Request,
) -> ApiResult {
    let profile = read_profile(request).await?;
    app.shared.access.users.replace_profile(&caller, profile).await?;
    api::text("OK")
}

async fn load_profile_properties(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    property: Segment,
) -> ApiResult {
    let property = request::path_segment("property", property)?;
    let names = property_names(&property)?;
    let mut profile = app.shared.access.users.profile(&caller).await?;
    profile.retain(|name, _| names.contains(&name.as_str()));
    api::json(&profile)
}

async fn patch_profile(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    property: Segment,
    request: Request,
) -> ApiResult {
    let property = request::path_segment("property", property)?;
    let names = property_names(&property)?;
    let profile = read_profile(request).await?;
    app.shared.access.users.patch_profile(&caller, &names, profile).await?;
    api::text("OK")
}

/// Splits the list of property names in the path.
///
/// Fails when it is empty.
fn property_names(property: &str) -> Result<Vec<&str>> {
    let names: Vec<&str> = request::elements(property).collect();
    if names.is_empty() {
        let message = "property has no names, expected names separated by commas";
        return Err(Error::invalid("path", "property", "pattern", message));
    }
    Ok(names)
}

async fn read_profile(request: Request) -> Result<Map<String, Value>> {
    match request::json(request, PROFILE_BYTES_MAX).await? {
        Value::Object(profile) => Ok(profile),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Error::invalid("body", "", "type", "a profile must be an object"))
        }
    }
}

async fn devices(State(app): State<AppState>, ApiCaller(caller): ApiCaller) -> ApiResult {
    let devices = app.shared.access.users.devices(&caller).await?;
    api::json(&devices.iter().map(json::OwnDevice::from).collect::<Vec<_>>())
}

async fn register_device(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    token: Segment,
    uri: Uri,
) -> ApiResult {
    let device = device(token, &QueryParameters::from_uri(&uri)?)?;
    app.shared.access.users.register(&caller, device, clock::now()).await?;
    api::text("OK")
}

async fn unregister_device(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    token: Segment,
) -> ApiResult {
    app.shared.access.users.unregister(&caller, device_token(token)?).await?;
    api::text("OK")
}

fn device(token: Segment, query: &QueryParameters) -> Result<Device> {
    let mut problems = ValidationErrors::new();
    let device = read_device(token, query, &mut problems);
    problems.finish(device)
}

/// Reads the path and the parameters of a device; `None` if a part is invalid.
fn read_device(
    token: Segment,
    query: &QueryParameters,
    problems: &mut ValidationErrors,
) -> Option<Device> {
    let token = problems.check(device_token(token));
    let kind = problems.check(device_kind(query));
    let name = problems.check(short_text(query, "name"));
    let model = problems.check(query.required("model").and_then(|_| short_text(query, "model")));
    // Every part is read before the first `?`, so that all problems are reported together.
    let name = name?.filter(|name| !name.is_empty());
    Some(Device { token: token?, kind: kind?, name, model: model?? })
}

fn device_token(token: Segment) -> Result<String> {
    let token = request::path_segment("token", token)?;
    if token.len() > DEVICE_TOKEN_BYTES_MAX {
        let message = format!("token has more than {DEVICE_TOKEN_BYTES_MAX} bytes");
        return Err(Error::invalid("path", "token", "maximum", message));
    }
    if token.is_empty() || token.contains(char::is_control) {
        let message = "token is empty or has control characters";
        return Err(Error::invalid("path", "token", "pattern", message));
    }
    Ok(token)
}

fn device_kind(query: &QueryParameters) -> Result<DeviceKind> {
    query.required("type")?;
    let found = query.variant("type")?;
    found.ok_or_else(|| Error::internal("a parameter that is present was not found"))
}

fn short_text(query: &QueryParameters, name: &str) -> Result<Option<String>> {
    let expected = format!("{SHORT_TEXT_CHARS_MAX} characters at most, no control characters");
    query.parsed(name, "pattern", &expected, |text| {
        SHORT.check(text).is_none().then(|| text.to_owned())
    })
}

async fn list_users(State(app): State<AppState>, ApiCaller(caller): ApiCaller) -> ApiResult {
    let users = app.shared.access.users.administration(&caller)?.list().await?;
    api::json(&users.iter().map(|user| json::UserBase::seen_by(user, &caller)).collect::<Vec<_>>())
}

async fn create_user(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    request: Request,
) -> ApiResult {
    // Checked before the body is read: a caller without the right gets a 403 for every body.
    let administration = app.shared.access.users.administration(&caller)?;
    let body = request::json(request, JSON_BODY_BYTES_MAX).await?;
    let account = administration.create(new_user(&body)?, clock::now()).await?;
    api::json(&json::FullUser::seen_by(&account, &caller))
}

async fn load_user(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
) -> ApiResult {
    let administration = app.shared.access.users.administration(&caller)?;
    let account = administration.load(UserId(request::path_integer("id", id)?)).await?;
    api::json(&json::FullUser::seen_by(&account, &caller))
}

async fn update_user(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
    request: Request,
) -> ApiResult {
    let administration = app.shared.access.users.administration(&caller)?;
    let id = UserId(request::path_integer("id", id)?);
    let body = request::json(request, JSON_BODY_BYTES_MAX).await?;
    let account = administration.update(id, user_change(&body)?, clock::now()).await?;
    api::json(&json::FullUser::seen_by(&account, &caller))
}

/// Parses the body that creates a user.
fn new_user(body: &Value) -> Result<CheckedMember> {
    request::read_object(body, |user| CheckedMember {
        email_address: user.required("emailAddress", TextRule::EMAIL),
        first_name: user.required("firstName", SHORT),
        last_name: user.required("lastName", SHORT),
        department: user.text("department", Presence::Optional, SHORT).value(),
        phone: phone(user).value().map_or_else(PhoneNumbers::default, |(direct, mobile)| {
            PhoneNumbers { direct: direct.value(), mobile: mobile.value() }
        }),
        access: access(user).value().map_or_else(AccessLevels::default, |(admin, mediebank)| {
            AccessLevels {
                admin: admin.value().unwrap_or_default(),
                mediebank: mediebank.value().unwrap_or_default(),
            }
        }),
    })
}

/// Parses the body that updates a user.
///
/// `null` clears optional properties, including `phoneNumber` as a whole, and is an error elsewhere (contract
/// users-12).
fn user_change(body: &Value) -> Result<UserChange> {
    request::read_object(body, |user| {
        let email_address = user.text("emailAddress", Presence::NotNull, TextRule::EMAIL).value();
        let first_name = user.text("firstName", Presence::NotNull, SHORT).value();
        let last_name = user.text("lastName", Presence::NotNull, SHORT).value();
        let department = nullable_change(user.text("department", Presence::Optional, SHORT));
        let (phone_direct, phone_mobile) = match phone(user) {
            PropertyValue::Absent => (None, None),
            // Clearing the object clears both numbers (contract users-12).
            PropertyValue::Null => (Some(None), Some(None)),
            PropertyValue::Present((direct, mobile)) => {
                (nullable_change(direct), nullable_change(mobile))
            }
        };
        let (admin, mediebank) =
            access(user).value().unwrap_or((PropertyValue::Absent, PropertyValue::Absent));
        UserChange {
            email_address,
            first_name,
            last_name,
            department,
            phone_direct,
            phone_mobile,
            admin: admin.value(),
            mediebank: mediebank.value(),
        }
    })
}

fn nullable_change<T>(field: PropertyValue<T>) -> Option<Option<T>> {
    match field {
        PropertyValue::Absent => None,
        PropertyValue::Null => Some(None),
        PropertyValue::Present(value) => Some(Some(value)),
    }
}

/// Reads `direct` and `mobile` of the property `phoneNumber`.
fn phone(
    user: &mut PropertyReader<'_>,
) -> PropertyValue<(PropertyValue<String>, PropertyValue<String>)> {
    user.object("phoneNumber", Presence::Optional, |phone| {
        let direct = phone.text("direct", Presence::Optional, SHORT);
        if matches!(&direct, PropertyValue::Present(text) if !is_phone_number(text)) {
            // The only rule here with its own `errorCode` (contract users-11).
            phone.report("direct", "phoneNumber_direct_invalid", "is not a telephone number");
        }
        let mobile = phone.text("mobile", Presence::Optional, SHORT);
        if matches!(&mobile, PropertyValue::Present(text) if !is_phone_number(text)) {
            phone.report_rule("mobile", "format", "is not a telephone number");
        }
        (direct, mobile)
    })
}

/// Reads `admin` and `mediebank` of the property `access`.
fn access(
    user: &mut PropertyReader<'_>,
) -> PropertyValue<(PropertyValue<bool>, PropertyValue<bool>)> {
    // Access levels are on or off, so `null` has no meaning here (contract users-12).
    user.object("access", Presence::NotNull, |access| {
        let admin = access.flag("admin", Presence::NotNull);
        (admin, access.flag("mediebank", Presence::NotNull))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use request::tests::problems;

    fn listed(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(rule, path)| ((*rule).to_owned(), (*path).to_owned())).collect()
    }

    fn check_refused<T: std::fmt::Debug>(outcome: Result<T>, expected: &[(&str, &str)]) {
        assert_eq!(problems(&outcome.unwrap_err()), listed(expected));
    }

    fn minimal() -> Value {
        json!({ "emailAddress": "A@b.example", "firstName": "A", "lastName": "B" })
    }

    #[test]
    fn ok_a_user_to_be_made_has_what_the_body_says() {
        let new = new_user(&minimal()).unwrap();
        assert_eq!(new.email_address, "A@b.example");
        assert_eq!((new.phone, new.access), (PhoneNumbers::default(), AccessLevels::default()));
        let mut body = minimal();
        body["phoneNumber"] = json!({ "direct": "+46 8 1", "mobile": null });
        body["access"] = json!({ "admin": true });
        body["department"] = Value::Null;
        let new = new_user(&body).unwrap();
        assert_eq!(new.phone.direct.as_deref(), Some("+46 8 1"));
        assert_eq!((new.phone.mobile, new.department), (None, None));
        assert_eq!(new.access, AccessLevels { admin: true, mediebank: false });
    }

    #[test]
    fn err_everything_wrong_with_a_user_to_be_made_is_named() {
        let required =
            [("required", "emailAddress"), ("required", "firstName"), ("required", "lastName")];
        check_refused(new_user(&json!({})), &required);
        check_refused(new_user(&json!([])), &[("type", "")]);
        let body = json!({
            "emailAddress": "nobody", "firstName": null, "lastName": 1, "department": [],
            "phoneNumber": { "direct": "none", "mobile": "none", "fax": "1" },
            "access": { "admin": "yes", "mediebank": null, "root": true },
            "userName": "x", "active": false,
        });
        let expected = [
            ("format", "emailAddress"),
            ("type", "firstName"),
            ("type", "lastName"),
            ("type", "department"),
            ("phoneNumber_direct_invalid", "phoneNumber.direct"),
            ("format", "phoneNumber.mobile"),
            ("additionalProperties", "phoneNumber.fax"),
            ("type", "access.admin"),
            ("type", "access.mediebank"),
            ("additionalProperties", "access.root"),
            ("additionalProperties", "userName"),
            ("additionalProperties", "active"),
        ];
        check_refused(new_user(&body), &expected);
    }

    #[test]
    fn ok_a_change_retains_removes_and_sets_properties() {
        assert_eq!(user_change(&json!({})).unwrap(), UserChange::default());
        let body = json!({
            "firstName": "A", "department": null, "phoneNumber": { "mobile": null },
            "access": { "mediebank": false },
        });
        let expected = UserChange {
            first_name: Some("A".to_owned()),
            department: Some(None),
            phone_mobile: Some(None),
            mediebank: Some(false),
            ..UserChange::default()
        };
        assert_eq!(user_change(&body).unwrap(), expected);
        let none = user_change(&json!({ "phoneNumber": null })).unwrap();
        assert_eq!((none.phone_direct, none.phone_mobile), (Some(None), Some(None)));
    }

    #[test]
    fn err_a_change_empties_nothing_that_must_be_there() {
        let body = json!({
            "emailAddress": null, "firstName": null, "lastName": null, "access": null, "id": 1,
        });
        let expected = [
            ("type", "emailAddress"),
            ("type", "firstName"),
            ("type", "lastName"),
            ("type", "access"),
            ("additionalProperties", "id"),
        ];
        check_refused(user_change(&body), &expected);
        let direct = json!({ "phoneNumber": { "direct": "" } });
        check_refused(
            user_change(&direct),
            &[("phoneNumber_direct_invalid", "phoneNumber.direct")],
        );
    }

    fn parse_device(token: &str, query: &str) -> Result<Device> {
        device(Ok(Path(token.to_owned())), &QueryParameters::parse(query).unwrap())
    }

    #[test]
    fn ok_a_device_has_a_type_a_model_and_perhaps_a_name() {
        let found = parse_device("a:b/c", "type=ios-sandbox&model=Phone+1&name=").unwrap();
        let token = "a:b/c".to_owned();
        let (kind, model) = (DeviceKind::IosSandbox, "Phone 1".to_owned());
        assert_eq!(found, Device { token, kind, name: None, model });
        let found = parse_device("t", "type=android&model=m&name=Min%20telefon").unwrap();
        assert_eq!(found.name.as_deref(), Some("Min telefon"));
        assert!(parse_device(&"t".repeat(DEVICE_TOKEN_BYTES_MAX), "type=ios&model=m").is_ok());
    }

    #[test]
    fn err_everything_wrong_with_a_device_is_named() {
        check_refused(parse_device("t", ""), &[("required", "type"), ("required", "model")]);
        let long = "x".repeat(SHORT_TEXT_CHARS_MAX + 1);
        check_refused(
            parse_device("t\n", &format!("type=IOS&model={long}&name=%00")),
            &[("pattern", "token"), ("enum", "type"), ("pattern", "name"), ("pattern", "model")],
        );
        let token = "t".repeat(DEVICE_TOKEN_BYTES_MAX + 1);
        check_refused(parse_device(&token, "type=ios&model=m"), &[("maximum", "token")]);
    }

    #[test]
    fn a_list_of_properties_has_names() {
        assert_eq!(property_names("a, b,,__proto__").unwrap(), ["a", "b", "__proto__"]);
        for text in ["", ",", " , "] {
            check_refused(property_names(text), &[("pattern", "property")]);
        }
    }

    proptest! {
        #[test]
        fn any_device_is_read_or_refused(token in "\\PC{0,20}", query in "[a-z=&%0-9+,-]{0,60}") {
            if let Ok(device) = parse_device(&token, &query) {
                prop_assert_eq!(device.token, token);
                prop_assert!(!device.model.is_empty());
            }
        }

        #[test]
        fn any_text_in_any_property_is_taken_or_refused_by_its_path(
            text in "\\PC{0,30}",
            at in 0_usize..6,
        ) {
            let names = ["emailAddress", "firstName", "lastName", "department"];
            let mut body = minimal();
            let path = match at {
                4 => { body["phoneNumber"] = json!({ "direct": text }); "phoneNumber.direct" }
                5 => { body["phoneNumber"] = json!({ "mobile": text }); "phoneNumber.mobile" }
                at => { body[names[at]] = Value::from(text); names[at] }
            };
            if let Err(error) = new_user(&body) {
                let paths: Vec<_> = problems(&error).into_iter().map(|(_, path)| path).collect();
                prop_assert_eq!(paths, [path]);
            }
        }
    }
}
