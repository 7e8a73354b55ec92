//! `/desk/templates`: pages that list and edit metadata templates. Other forms use this module to offer and apply
//! templates.

use api::Tagged;
use api::uploads::{
    CreateTemplate, ListTemplates, LoadTemplate, MetadataFields, MetadataTemplate,
    MetadataTemplateSent, RemoveTemplate, UpdateTemplate,
};
use axum::{extract::Path, http::StatusCode};
use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;
use strum::IntoEnumIterator;

use super::fields::{FieldRules, typed};
use super::{EditorForm, EditorRequest, PageError, PageResult, SiteRequest};
use crate::http::form::see_other;
use crate::http::site::api_client::ApiRefusal;
use crate::http::site::parse_id;
use model::item::{FieldEdit, FieldForm, MetadataEdits, MetadataField};

/// A template that the API returned.
#[derive(Clone, Debug)]
pub(super) struct FoundTemplate {
    pub(super) name: String,
    pub(super) fields: MetadataEdits,
}

/// Parses the fields of a template that the API returned, which has checked them.
fn parse_fields(fields: &MetadataFields) -> MetadataEdits {
    MetadataEdits::parse(&fields.0).unwrap_or_default()
}

/// Lists the templates that a form offers.
pub(super) async fn choices(site: &SiteRequest) -> Result<PageValue, ApiRefusal> {
    Ok(PageValue::from(Serde(site.ask(&ListTemplates {}).await?)))
}

/// Loads the template that a form names; `None` if it does not name one.
pub(super) async fn find_posted(posted: &EditorForm) -> Result<Option<FoundTemplate>, PageError> {
    let Some(id) = posted.form.find("template") else { return Ok(None) };
    let found = posted.ask(&LoadTemplate { id: parse_id(id)? }).await?.value;
    Ok(Some(FoundTemplate { fields: parse_fields(&found.fields), name: found.name }))
}

/// A field in the form of a template and in the form for several items.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ModeView {
    name: &'static str,
    is_list: bool,
    is_text: bool,
    /// The chosen kind of edit; empty to leave the field unchanged.
    mode: String,
    value: String,
    /// True if the chosen kind needs a value that is missing, or a value was entered without choosing a kind.
    pub(super) is_wrong: bool,
    /// The value of the field, if all items have the same value.
    pub(super) common: Option<String>,
    /// True if the items have different values.
    pub(super) is_mixed: bool,
}

impl ModeView {
    pub(super) fn new(field: MetadataField, mode: &str, value: &str) -> Self {
        Self {
            name: field.as_str(),
            is_list: field.form() == FieldForm::List,
            is_text: field.form() == FieldForm::Text,
            mode: mode.to_owned(),
            value: value.to_owned(),
            is_wrong: false,
            common: None,
            is_mixed: false,
        }
    }
}

/// The edits of a submitted form, and the fields to show it again.
pub(super) struct TypedEdits {
    pub(super) views: Vec<ModeView>,
    /// The valid edits; a field with a mistake has no edit.
    pub(super) edits: MetadataEdits,
    pub(super) is_valid: bool,
}

/// Reads the edits of a submitted form.
pub(super) fn read_edits(posted: &EditorForm, rules: &FieldRules) -> TypedEdits {
    let mut views = Vec::new();
    let mut edits = Vec::new();
    for field in MetadataField::iter() {
        // A word of `FieldEdit::KINDS`; empty to leave the field unchanged.
        let mode = typed(&posted.form, &format!("mode.{}", field.as_str()));
        let text = typed(&posted.form, field.as_str());
        let mut view = ModeView::new(field, mode, text);
        let edit = FieldEdit::from_kind(mode, rules.stored_text(field, text));
        view.is_wrong = match &edit {
            Some(FieldEdit::Clear) => false,
            // An empty value is more likely a mistake than intended, and the kind `Clear` exists for clearing.
            Some(edit) => edit.text().is_empty(),
            // Without scripts, it is easy to enter a value and forget to choose the kind of edit.
            None => !text.trim().is_empty(),
        };
        if let Some(edit) = edit
            && !view.is_wrong
        {
            edits.push((field, edit));
        }
        views.push(view);
    }
    let is_valid = views.iter().all(|view| !view.is_wrong);
    TypedEdits { views, edits: MetadataEdits::new(edits), is_valid }
}

/// The page with the form of a template.
struct TemplateForm {
    /// `None` for a new template.
    id: Option<i64>,
    name: String,
    is_shared: bool,
    tag: String,
    views: Vec<ModeView>,
    mistakes: Vec<String>,
    status: StatusCode,
}

impl TemplateForm {
    /// Creates the form of a new template.
    fn new() -> Self {
        Self {
            id: None,
            name: String::new(),
            is_shared: true,
            tag: String::new(),
            views: mode_views(&MetadataEdits::default()),
            mistakes: Vec::new(),
            status: StatusCode::OK,
        }
    }

    fn from_template(template: Tagged<MetadataTemplate>) -> Self {
        let Tagged { value: template, tag } = template;
        Self {
            id: Some(template.id),
            is_shared: template.shared,
            tag,
            views: mode_views(&parse_fields(&template.fields)),
            name: template.name,
            ..Self::new()
        }
    }

    fn page(self, site: &SiteRequest) -> PageResult {
        let has_organization =
            site.visitor.as_ref().is_some_and(|visitor| visitor.account.organization.is_some());
        let context = context! {
            id => self.id,
            name => self.name,
            is_shared => self.is_shared || !has_organization,
            has_organization => has_organization,
            tag => self.tag,
            fields => Serde(self.views),
            mistakes => self.mistakes,
        };
        site.page_with(self.status, "desk/template.html", context)
    }
}

fn mode_views(edits: &MetadataEdits) -> Vec<ModeView> {
    let views = MetadataField::iter().map(|field| match edits.find(field) {
        Some(edit) => ModeView::new(field, edit.kind(), edit.text()),
        None => ModeView::new(field, "", ""),
    });
    views.collect()
}

/// `GET /desk/templates`: lists the templates that the editor can use.
pub(super) async fn list(editor: EditorRequest) -> PageResult {
    let rows = choices(&editor).await?;
    editor.page("desk/templates.html", context! { rows })
}

/// `GET /desk/templates/new`: shows an empty form.
pub(super) async fn show_new(editor: EditorRequest) -> PageResult {
    TemplateForm::new().page(&editor)
}

/// `GET /desk/templates/{id}`: shows the form of a template.
pub(super) async fn show(Path(id): Path<String>, editor: EditorRequest) -> PageResult {
    let found = editor.ask(&LoadTemplate { id: parse_id(&id)? }).await?;
    TemplateForm::from_template(found).page(&editor)
}

/// `POST /desk/templates`: creates a template.
pub(super) async fn create(posted: EditorForm) -> PageResult {
    save(&posted, None).await
}

/// `POST /desk/templates/{id}`: changes a template.
pub(super) async fn update(Path(id): Path<String>, posted: EditorForm) -> PageResult {
    save(&posted, Some(parse_id(&id)?)).await
}

async fn save(posted: &EditorForm, id: Option<i64>) -> PageResult {
    let typed = read_edits(posted, &FieldRules::new(posted));
    let name = posted.form.find("name").unwrap_or_default();
    let is_shared = posted.form.is_ticked("shared");
    let sent = MetadataTemplateSent {
        name: name.to_owned(),
        shared: Some(is_shared),
        fields: MetadataFields(typed.edits.to_json()),
    };
    let tag = posted.form.find("tag");
    let refused = if !typed.is_valid {
        None
    } else if let Some(id) = id {
        posted.send_if_match(&UpdateTemplate { id }, &sent, tag).await.err()
    } else {
        posted.send(&CreateTemplate {}, &sent).await.err()
    };
    let (status, mistakes) = match &refused {
        None if typed.is_valid => {
            let done = if id.is_some() { "saved" } else { "created" };
            return Ok(see_other(&format!("/desk/templates?done={done}")));
        }
        None => (StatusCode::BAD_REQUEST, Vec::new()),
        Some(refusal) if refusal.is_mistake() => (refusal.status, refusal.sentences()),
        Some(refusal) => return Err(refusal.clone().into()),
    };
    let form = TemplateForm {
        id,
        name: sent.name,
        is_shared,
        tag: tag.unwrap_or_default().to_owned(),
        views: typed.views,
        mistakes,
        status,
    };
    form.page(posted)
}

/// `POST /desk/templates/{id}/remove`: removes a template.
pub(super) async fn remove(Path(id): Path<String>, posted: EditorForm) -> PageResult {
    posted.ask(&RemoveTemplate { id: parse_id(&id)? }).await?;
    Ok(see_other("/desk/templates?done=removed"))
}
