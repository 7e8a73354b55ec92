//! Metadata templates over HTTP: named changes of fields for items and uploads.

use api::uploads::{
    CreateTemplate, ListTemplates, LoadTemplate, MetadataFields, MetadataTemplate, RemoveTemplate,
    UpdateTemplate,
};
use api::{Json, Tagged};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::ingest::require_provider;
use super::item_edits::{expected_version, version_conflict, with_tag};
use crate::access::auth::Principal;
use crate::archive::ingest::{OwnerChange, TemplateChange, TemplateOutcome, template_tag};
use crate::http::api::binding::{ApiRequest, BoundEndpoints, ReadRequest};
use crate::http::api::response::{json, plain_text};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::database::{self, NewTemplate};
use model::account::OrganizationId;
use model::item::MetadataEdits;

/// The endpoints of metadata templates.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<ListTemplates, _, _>(list)
        .bind_response::<CreateTemplate, _, _>(create)
        .bind::<LoadTemplate, _, _>(load)
        .bind::<UpdateTemplate, _, _>(update)
        .bind_response::<RemoveTemplate, _, _>(remove)
}

async fn list(request: ApiRequest<ListTemplates>) -> Result<Json<Vec<MetadataTemplate>>> {
    require_provider(&request.caller)?;
    let organization = request.caller.user().organization;
    let found = request.app.shared.archive.uploads.templates(organization).await?;
    Ok(Json(found.into_iter().map(view).collect()))
}

async fn create(request: ApiRequest<CreateTemplate>) -> Result<Response> {
    require_provider(&request.caller)?;
    let ReadRequest { app, caller, body: sent, .. } = request.read().await?;
    let new = NewTemplate {
        organization: owner(&caller, sent.shared.unwrap_or(false))?,
        name: sent.name.trim().to_owned(),
        fields: parse_fields(&sent.fields)?,
    };
    let uploads = &app.shared.archive.uploads;
    let organization = caller.user().organization;
    let created = uploads.create_template(organization, new, clock::now()).await?;
    let tag = template_tag(&created);
    let address = format!("/ingest/v1/templates/{}", created.id);
    let mut response = json(StatusCode::CREATED, &view(created))?;
    if let Ok(address) = HeaderValue::from_str(&address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    Ok(with_tag(response, &tag))
}

async fn load(request: ApiRequest<LoadTemplate>) -> Result<Tagged<MetadataTemplate>> {
    require_provider(&request.caller)?;
    let id = request.parameters()?.id;
    let organization = request.caller.user().organization;
    let found = request.app.shared.archive.uploads.template(organization, id).await?;
    Ok(tagged(found.ok_or_else(|| no_template(id))?))
}

async fn update(request: ApiRequest<UpdateTemplate>) -> Result<Tagged<MetadataTemplate>> {
    require_provider(&request.caller)?;
    let expected = expected_version(&request.parts.headers);
    let ReadRequest { app, caller, parameters, body: sent } = request.read().await?;
    let id = parameters.id;
    let owner = match sent.shared {
        Some(is_shared) => OwnerChange::To(owner(&caller, is_shared)?),
        None => OwnerChange::Keep,
    };
    let fields = parse_fields(&sent.fields)?;
    let change = TemplateChange { expected, owner, name: sent.name.trim().to_owned(), fields };
    let uploads = &app.shared.archive.uploads;
    let organization = caller.user().organization;
    let outcome = uploads.update_template(organization, id, change, clock::now()).await?;
    Ok(tagged(done(outcome, id)?))
}

async fn remove(request: ApiRequest<RemoveTemplate>) -> Result<Response> {
    require_provider(&request.caller)?;
    let id = request.parameters()?.id;
    let expected = expected_version(&request.parts.headers);
    let uploads = &request.app.shared.archive.uploads;
    let organization = request.caller.user().organization;
    done(uploads.remove_template(organization, id, expected).await?, id)?;
    Ok(plain_text("removed"))
}

fn done(outcome: TemplateOutcome, id: i64) -> Result<database::MetadataTemplate> {
    match outcome {
        TemplateOutcome::Missing => Err(no_template(id)),
        TemplateOutcome::Foreign => {
            let message = "The template is shared by another organization, which alone changes it";
            Err(Error::forbidden("template_owner_required", message))
        }
        TemplateOutcome::Stale => Err(version_conflict("template")),
        TemplateOutcome::Done(template) => Ok(template),
    }
}

fn no_template(id: i64) -> Error {
    Error::new(ErrorKind::NotFound, format!("no template {id}"))
}

/// Returns the owner of a template that the caller sends; `None` if all providers share it.
fn owner(caller: &Principal, is_shared: bool) -> Result<Option<OrganizationId>> {
    // Only a template of all providers needs no organization.
    if is_shared { Ok(None) } else { caller.organization().map(Some) }
}

/// Returns the changes of a body, which were checked when it was read.
fn parse_fields(fields: &MetadataFields) -> Result<MetadataEdits> {
    MetadataEdits::parse(&fields.0).map_err(Error::internal)
}

fn view(template: database::MetadataTemplate) -> MetadataTemplate {
    MetadataTemplate {
        id: template.id,
        name: template.name,
        shared: template.organization.is_none(),
        fields: MetadataFields(template.fields.to_json()),
        changed: template.changed,
        user: template.user_name,
    }
}

fn tagged(template: database::MetadataTemplate) -> Tagged<MetadataTemplate> {
    let tag = format!("\"{}\"", template_tag(&template));
    Tagged { value: view(template), tag }
}
