//! Metadata templates over HTTP: named changes of fields for items and uploads.

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderValue, StatusCode, header},
    response::Response,
    routing::get,
};
use serde_json::{Value, json};

use super::ingest::require_provider;
use super::item_edits::{expected_version, version_conflict, with_tag};
use crate::archive::ingest::{
    OwnerChange, TemplateChange, TemplateDraft, TemplateOutcome, template_tag,
};
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiResult;
use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::request;
use crate::http::protocol::request::{Presence, TextRule};
use crate::http::protocol::respond;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{EDIT_BYTES_MAX, TEMPLATE_NAME_CHARS_MAX};
use crate::storage::database::MetadataTemplate;
use model::account::OrganizationId;
use model::item::MetadataEdits;

/// The rule for the name of a template.
const NAME: TextRule = TextRule::line(TEMPLATE_NAME_CHARS_MAX);

/// A decoded path segment, or the reason why it is missing.
type Segment = Result<Path<String>, PathRejection>;

/// The routes of metadata templates.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/ingest/v1/templates", get(list).post(create))
        .route("/ingest/v1/templates/{id}", get(load).put(update).delete(remove))
}

async fn list(State(app): State<AppState>, caller: ApiCaller) -> ApiResult {
    require_provider(&caller)?;
    let organization = caller.0.user().organization;
    let found = app.shared.archive.uploads.templates(organization).await?;
    api::json(&found.iter().map(template_json).collect::<Vec<_>>())
}

async fn create(State(app): State<AppState>, caller: ApiCaller, request: Request) -> ApiResult {
    require_provider(&caller)?;
    let ParsedTemplate { name, shared, fields } = read_template(request).await?;
    let organization = owner(&caller, shared.unwrap_or(false))?;
    let draft = TemplateDraft { organization, name, fields };
    let created = app.shared.archive.uploads.create_template(draft, clock::now()).await?;
    let text = serde_json::to_vec(&template_json(&created)).map_err(Error::internal)?;
    let mut response = respond::json_text(StatusCode::CREATED, text.into());
    CachePolicy::NoStore.set(response.headers_mut());
    let address = format!("/ingest/v1/templates/{}", created.id);
    if let Ok(address) = HeaderValue::from_str(&address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    Ok(with_tag(response, &template_tag(&created)))
}

async fn load(State(app): State<AppState>, caller: ApiCaller, id: Segment) -> ApiResult {
    require_provider(&caller)?;
    let id = request::path_integer("id", id)?;
    let found = app.shared.archive.uploads.template(caller.0.user().organization, id).await?;
    template_response(&found.ok_or_else(|| no_template(id))?)
}

async fn update(
    State(app): State<AppState>,
    caller: ApiCaller,
    id: Segment,
    request: Request,
) -> ApiResult {
    require_provider(&caller)?;
    let id = request::path_integer("id", id)?;
    let expected = expected_version(request.headers());
    let ParsedTemplate { name, shared, fields } = read_template(request).await?;
    let owner = match shared {
        Some(is_shared) => OwnerChange::To(owner(&caller, is_shared)?),
        None => OwnerChange::Keep,
    };
    let change = TemplateChange { expected, owner, name, fields };
    let uploads = &app.shared.archive.uploads;
    let organization = caller.0.user().organization;
    let outcome = uploads.update_template(organization, id, change, clock::now()).await?;
    template_response(&done(outcome, id)?)
}

async fn remove(
    State(app): State<AppState>,
    caller: ApiCaller,
    id: Segment,
    request: Request,
) -> ApiResult {
    require_provider(&caller)?;
    let id = request::path_integer("id", id)?;
    let expected = expected_version(request.headers());
    let uploads = &app.shared.archive.uploads;
    let organization = caller.0.user().organization;
    done(uploads.remove_template(organization, id, expected).await?, id)?;
    api::text("removed")
}

fn done(outcome: TemplateOutcome, id: i64) -> Result<MetadataTemplate> {
    match outcome {
        TemplateOutcome::Missing => Err(no_template(id)),
        TemplateOutcome::Stale => Err(version_conflict("template")),
        TemplateOutcome::Done(template) => Ok(template),
    }
}

fn no_template(id: i64) -> Error {
    Error::new(ErrorKind::NotFound, format!("no template {id}"))
}

/// A template that was parsed from a body.
#[derive(Debug)]
struct ParsedTemplate {
    name: String,
    /// True if all providers share the template; `None` if the body does not say.
    shared: Option<bool>,
    fields: MetadataEdits,
}

async fn read_template(request: Request) -> Result<ParsedTemplate> {
    parse_template(&request::json(request, EDIT_BYTES_MAX).await?)
}

/// Returns the owner of a template that the caller sends; `None` if all providers share it.
fn owner(caller: &ApiCaller, is_shared: bool) -> Result<Option<OrganizationId>> {
    // Only a template of all providers needs no organization.
    if is_shared { Ok(None) } else { caller.0.organization().map(Some) }
}

/// Parses name, scope and fields of a template. Other properties are ignored, so that a client may send back what
/// it received.
fn parse_template(body: &Value) -> Result<ParsedTemplate> {
    request::read_object(body, |template| {
        template.allow_unknown();
        let name = template.text("name", Presence::Required, NAME).value();
        let name = name.map(|name| name.trim().to_owned());
        if name.as_ref().is_some_and(String::is_empty) {
            template.report_rule("name", "minimum", "is empty");
        }
        let shared = template.flag("shared", Presence::NotNull).value();
        let members = template.members("fields", Presence::Required).value().unwrap_or_default();
        let fields = MetadataEdits::parse(&members).unwrap_or_else(|error| {
            let path = format!("fields.{}", error.field);
            template.report_rule(&path, error.rule, &error.message);
            MetadataEdits::default()
        });
        ParsedTemplate { name: name.unwrap_or_default(), shared, fields }
    })
}

fn template_json(template: &MetadataTemplate) -> Value {
    let mut listed = json!({
        "id": template.id,
        "name": template.name,
        "shared": template.organization.is_none(),
        "fields": template.fields.to_json(),
        "changed": template.changed.to_string(),
    });
    if let Some(user) = &template.user_name {
        listed["user"] = json!(user);
    }
    listed
}

fn template_response(template: &MetadataTemplate) -> Result<Response, api::ApiError> {
    Ok(with_tag(api::json(&template_json(template))?, &template_tag(template)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_says_who_uses_it_or_leaves_it_open() {
        for (shared, expected) in [(json!(true), Some(true)), (json!(false), Some(false))] {
            let body = json!({ "name": "a", "shared": shared, "fields": {} });
            assert_eq!(parse_template(&body).expect("valid").shared, expected);
        }
        let body = json!({ "name": "a", "fields": {} });
        assert_eq!(parse_template(&body).expect("valid").shared, None);
    }

    #[test]
    fn err_a_template_names_each_problem_with_its_rule() {
        let check = |body: Value, expected: &[(&str, &str)]| {
            let error = parse_template(&body).expect_err("refused");
            let found = error.details().iter().map(|detail| {
                let rule = detail.error_code.split('.').next().expect("a rule");
                (detail.path.as_str(), rule)
            });
            assert_eq!(found.collect::<Vec<_>>(), expected, "{body}");
        };
        check(json!([]), &[("", "type")]);
        check(json!({}), &[("name", "required"), ("fields", "required")]);
        let body = json!({ "name": " ", "fields": { "mood": "calm" }, "shared": 1 });
        let expected =
            [("name", "minimum"), ("shared", "type"), ("fields.mood", "additionalProperties")];
        check(body, &expected);
        let fields = json!({ "headline": { "apply": "guess", "value": "x" } });
        check(json!({ "name": "a", "fields": fields }), &[("fields.headline", "enum")]);
    }
}
