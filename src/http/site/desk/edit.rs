//! The form that edits one item. A change is made on the version that the editor saw: what others changed in
//! other fields meanwhile is kept, and what they changed in the same fields is shown beside the editor's values.

use axum::http::StatusCode;
use minijinja::{Value as PageValue, context};
use serde::Serialize;
use serde_json::{Map, Value};

use super::conflict::{self, FieldConflict};
use super::fields::{FieldRules, FieldView, attach_errors, fields_of, typed};
use super::restoration::Restoration;
use super::selection::return_page;
use super::templates;
use super::{EditorForm, PageError, PageResult, SiteRequest, properties, tagged, template_value};
use crate::http::form::{FormFields, see_other};
use crate::http::site::api_client::{ApiCall, ApiRefusal};
use crate::http::site::item_summary::ItemSummary;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::limits::SITE_EDIT_TRIES_MAX;
use model::ItemKey;
use model::item::{MetadataField, patch_between};

/// Changes of an item in its history.
const HISTORY_SHOWN: usize = 20;

/// An item with its stored document.
pub(super) struct LoadedItem {
    pub(super) key: ItemKey,
    pub(super) document: Map<String, Value>,
    /// The entity tag of the document, quotes included.
    pub(super) tag: String,
}

impl LoadedItem {
    /// A property of the document that is a text; empty if there is none.
    pub(super) fn text(&self, name: &str) -> &str {
        self.document.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The version of the document, for people.
    pub(super) fn version(&self) -> &str {
        self.text("version")
    }

    /// The word of the item's publication status.
    pub(super) fn status(&self) -> &str {
        self.text("pubstatus")
    }

    /// What pages show about the item.
    pub(super) fn head(&self) -> ItemHead {
        ItemHead {
            key: self.key.to_string(),
            media_type: self.key.media_type.as_str(),
            headline: self.text("headline").to_owned(),
            status: self.status().to_owned(),
            version: self.version().to_owned(),
            stored: self.text("versionstored").to_owned(),
            language: self.text("language").to_owned(),
        }
    }
}

/// What pages show about an item that is edited.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ItemHead {
    key: String,
    media_type: &'static str,
    headline: String,
    status: String,
    version: String,
    stored: String,
    language: String,
}

/// Loads the stored document of an item; `None` if there is none.
pub(super) async fn find(
    site: &SiteRequest,
    key: &ItemKey,
) -> Result<Option<LoadedItem>, PageError> {
    match tagged(site, &ApiCall::get(format!("/ingest/v1/{key}")), None).await {
        Ok(answer) => {
            let document = properties(&answer.value);
            Ok(Some(LoadedItem { key: key.clone(), document, tag: answer.tag }))
        }
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => Ok(None),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Loads the stored document of an item. Fails with [`ErrorKind::NotFound`] if there is none.
pub(super) async fn load(site: &SiteRequest, key: &ItemKey) -> Result<LoadedItem, PageError> {
    let missing = "This item does not exist or is no longer available.";
    let found = find(site, key).await?;
    found.ok_or_else(|| Error::new(ErrorKind::NotFound, missing).into())
}

/// The address of the form for some items, with further parameters.
pub(super) fn edit_page(keys: &[ItemKey], more: &[(&str, Option<&str>)]) -> String {
    let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let items = names.iter().map(|name| ("item", Some(name.as_str())));
    ApiCall::get("/desk/edit").query(items.chain(more.iter().copied())).target
}

/// A field as the editor left it.
struct FieldDraft {
    field: MetadataField,
    /// The text on which the change is based.
    base: String,
    typed: String,
}

/// The form of an item as the editor left it.
pub(super) struct ItemDraft {
    /// The entity tag of the version on which the change is based.
    pub(super) tag: String,
    /// That version, for people.
    pub(super) version: String,
    fields: Vec<FieldDraft>,
    /// Conflicts that the editor has not decided.
    undecided: Vec<FieldConflict>,
}

impl ItemDraft {
    fn from_form(form: &FormFields, key: &ItemKey) -> Self {
        let mut fields = Vec::new();
        let mut undecided = Vec::new();
        for field in fields_of(key.media_type) {
            let name = field.as_str();
            let base = typed(form, &format!("base.{name}")).to_owned();
            let mut value = typed(form, name).to_owned();
            if form.all("conflict").any(|conflict| conflict == name) {
                match typed(form, &format!("pick.{name}")) {
                    "mine" => {}
                    "theirs" => value.clone_from(&base),
                    _ => undecided.push(FieldConflict {
                        field,
                        before: typed(form, &format!("before.{name}")).to_owned(),
                        mine: value.clone(),
                        theirs: base.clone(),
                    }),
                }
            }
            fields.push(FieldDraft { field, base, typed: value });
        }
        let tag = typed(form, "tag").to_owned();
        let version = typed(form, "version").to_owned();
        Self { tag, version, fields, undecided }
    }

    /// Bases the draft on the current version of the item. Fields that the editor left as they were follow it;
    /// returns those that both the editor and others changed.
    fn rebase(&mut self, current: &LoadedItem, rules: &FieldRules) -> Vec<FieldConflict> {
        if current.tag == self.tag {
            return std::mem::take(&mut self.undecided);
        }
        let mut conflicts = Vec::new();
        for draft in &mut self.fields {
            let field = draft.field;
            let theirs = rules.text(field, &current.document);
            if is_same(field, &draft.typed, &draft.base) {
                draft.typed.clone_from(&theirs);
            } else if !is_same(field, &theirs, &draft.base)
                && !is_same(field, &theirs, &draft.typed)
            {
                conflicts.push(FieldConflict {
                    field,
                    before: draft.base.clone(),
                    mine: draft.typed.clone(),
                    theirs: theirs.clone(),
                });
            }
            draft.base = theirs;
        }
        self.tag.clone_from(&current.tag);
        conflicts
    }

    /// The merge patch that makes the item as the editor wants it.
    fn patch(&self, current: &LoadedItem, rules: &FieldRules) -> Map<String, Value> {
        let mut changed = current.document.clone();
        for FieldDraft { field, base, typed } in &self.fields {
            // A field that the form does not have stays as it is.
            if field.normalize(typed) != field.normalize(base) {
                rules.write(*field, &mut changed, typed);
            }
        }
        patch_between(&current.document, &changed)
    }

    /// Shows the fields as the editor left them.
    pub(super) fn views(&self, rules: &FieldRules) -> Vec<FieldView> {
        let mut views = Vec::new();
        for FieldDraft { field, base, typed } in &self.fields {
            views.push(rules.view(*field, typed.clone(), base.clone()));
        }
        views
    }
}

/// Returns whether two texts mean the same as the value of `field`.
fn is_same(field: MetadataField, text: &str, other: &str) -> bool {
    field.normalize(text) == field.normalize(other)
}

/// `GET /desk/edit?item=…`: the form of one item.
pub(super) async fn show(site: &SiteRequest, key: &ItemKey) -> PageResult {
    let item = load(site, key).await?;
    let views = FieldRules::new(site).views(key.media_type, &item.document);
    form(site, &item, views, &FormState::of_item(&item)).await
}

/// Shows the form of an item with the refusal of a change that was not made in it.
pub(super) async fn show_refusal(
    site: &SiteRequest,
    key: &ItemKey,
    refusal: &ApiRefusal,
) -> PageResult {
    let item = load(site, key).await?;
    let mut views = FieldRules::new(site).views(key.media_type, &item.document);
    let mistakes = attach_errors(&mut views, refusal);
    let state = FormState { mistakes, status: refusal.status, ..FormState::of_item(&item) };
    form(site, &item, views, &state).await
}

/// What a form says besides its fields.
struct FormState {
    status: StatusCode,
    /// The version on which the change is based.
    tag: String,
    version: String,
    /// Mistakes that belong to no field.
    mistakes: Vec<String>,
    /// The template that was applied to the fields.
    applied: Option<String>,
}

impl FormState {
    fn of_item(item: &LoadedItem) -> Self {
        Self {
            status: StatusCode::OK,
            tag: item.tag.clone(),
            version: item.version().to_owned(),
            mistakes: Vec::new(),
            applied: None,
        }
    }
}

async fn form(
    site: &SiteRequest,
    item: &LoadedItem,
    views: Vec<FieldView>,
    state: &FormState,
) -> PageResult {
    let has_wrong = views.iter().any(|view| !view.wrong.is_empty());
    let changes = changes(site, &item.key).await?;
    let restoration = Restoration::for_item(item, &changes, clock::now());
    let context = context! {
        item => template_value(item.head()),
        restoration => template_value(restoration),
        summary => template_value(summary(site, &item.key).await),
        fields => template_value(views),
        tag => state.tag.clone(),
        version => state.version.clone(),
        mistakes => state.mistakes.clone(),
        has_wrong => has_wrong,
        applied => state.applied.clone(),
        templates => templates::choices(site).await?,
        history => latest(&changes),
        return_to => return_page(site)?.map(str::to_owned),
    };
    site.page_with(state.status, "desk/edit.html", context)
}

/// The summary of an item with its pictures; `None` if it is not served.
pub(super) async fn summary(site: &SiteRequest, key: &ItemKey) -> Option<ItemSummary> {
    let document = site.get(format!("/media/{key}.json")).await.ok()?;
    ItemSummary::from_document(&document)
}

/// The changes of an item by editors and its withdrawals, newest first.
pub(super) async fn changes(site: &SiteRequest, key: &ItemKey) -> Result<Vec<Value>, ApiRefusal> {
    let changes = site.get(format!("/ingest/v1/{key}/changes")).await?;
    Ok(changes.as_array().cloned().unwrap_or_default())
}

/// The latest of these changes, as a page lists them.
fn latest(changes: &[Value]) -> PageValue {
    template_value(changes.iter().take(HISTORY_SHOWN).collect::<Vec<_>>())
}

/// The latest changes of an item, as a page lists them.
pub(super) async fn history(site: &SiteRequest, key: &ItemKey) -> Result<PageValue, ApiRefusal> {
    Ok(latest(&changes(site, key).await?))
}

/// `POST /desk/edit`: saves the form of one item.
pub(super) async fn save(posted: &EditorForm, key: &ItemKey) -> PageResult {
    let rules = FieldRules::new(posted);
    let mut draft = ItemDraft::from_form(&posted.form, key);
    if posted.form.find("apply").is_some() {
        return apply_template(posted, key, draft, &rules).await;
    }
    for _ in 0..SITE_EDIT_TRIES_MAX {
        let current = load(posted, key).await?;
        let conflicts = draft.rebase(&current, &rules);
        if !conflicts.is_empty() {
            return conflict::show(posted, &current, &draft, &conflicts, &rules).await;
        }
        let patch = draft.patch(&current, &rules);
        let call = ApiCall::patch(format!("/ingest/v1/{key}")).json(Value::Object(patch.clone()));
        let saved = if patch.is_empty() {
            Ok(())
        } else {
            tagged(posted, &call, Some(&current.tag)).await.map(drop)
        };
        match saved {
            Ok(()) => return Ok(see_other(&saved_page(posted, key))),
            // Changed between the two calls: the draft is compared with what was saved.
            Err(refusal) if refusal.status == StatusCode::PRECONDITION_FAILED => {}
            Err(refusal) if refusal.is_mistake() => {
                let mut views = draft.views(&rules);
                let mistakes = attach_errors(&mut views, &refusal);
                let state = FormState {
                    status: refusal.status,
                    tag: draft.tag.clone(),
                    version: draft.version.clone(),
                    mistakes,
                    applied: None,
                };
                return form(posted, &current, views, &state).await;
            }
            Err(refusal) => return Err(refusal.into()),
        }
    }
    let message = "Others are changing this item at the same time. Try again.";
    Err(Error::new(ErrorKind::Stale, message).into())
}

fn saved_page(posted: &EditorForm, key: &ItemKey) -> String {
    let back = posted.form.find("return_to");
    edit_page(std::slice::from_ref(key), &[("done", Some("saved")), ("return_to", back)])
}

/// Shows the form with a template applied to what was typed; nothing is saved.
async fn apply_template(
    posted: &EditorForm,
    key: &ItemKey,
    mut draft: ItemDraft,
    rules: &FieldRules,
) -> PageResult {
    let item = load(posted, key).await?;
    let template = templates::find_posted(posted).await?;
    if let Some(template) = &template {
        for draft in &mut draft.fields {
            if let Some(edit) = template.fields.find(draft.field) {
                draft.typed = edit.result(draft.field, &draft.typed);
            }
        }
    }
    let state = FormState {
        status: StatusCode::OK,
        tag: draft.tag.clone(),
        version: draft.version.clone(),
        mistakes: Vec::new(),
        applied: template.map(|template| template.name),
    };
    form(posted, &item, draft.views(rules), &state).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(tag: &str, document: Value) -> LoadedItem {
        let Value::Object(document) = document else { panic!("an object") };
        LoadedItem { key: "image/a".parse().unwrap(), document, tag: tag.to_owned() }
    }

    fn draft(fields: &str) -> ItemDraft {
        let form = FormFields::parse(fields).unwrap();
        ItemDraft::from_form(&form, &"image/a".parse().unwrap())
    }

    fn rules() -> FieldRules {
        FieldRules::for_tests()
    }

    #[test]
    fn only_what_the_editor_changed_is_sent() {
        let current =
            item("\"1\"", json!({ "headline": "Ice", "source": "Agency", "version": "1" }));
        let mut draft = draft(
            "tag=%221%22&base.headline=Ice&headline=Snow&base.source=Agency&source=+Agency%0D%0A&byline=",
        );
        assert!(draft.rebase(&current, &rules()).is_empty());
        let patch = draft.patch(&current, &rules());
        assert_eq!(Value::Object(patch), json!({ "headline": "Snow" }));
    }

    #[test]
    fn changes_of_others_in_other_fields_are_kept() {
        let current = item("\"2\"", json!({ "headline": "Ice", "source": "Theirs" }));
        let mut draft =
            draft("tag=%221%22&base.headline=Ice&headline=Snow&base.source=A&source=A");
        assert!(draft.rebase(&current, &rules()).is_empty());
        assert_eq!(draft.tag, "\"2\"");
        let patch = draft.patch(&current, &rules());
        assert_eq!(Value::Object(patch), json!({ "headline": "Snow" }));
    }

    #[test]
    fn a_field_that_both_changed_is_a_conflict_until_the_editor_chooses() {
        let current = item("\"2\"", json!({ "headline": "Theirs", "source": "Same" }));
        let typed = "&base.headline=Ice&headline=Mine&base.source=A&source=Same";
        let mut first = draft(&format!("tag=%221%22{typed}"));
        let conflicts = first.rebase(&current, &rules());
        assert_eq!(conflicts.len(), 1, "the other field has the same value in both");
        let FieldConflict { field, before, mine, theirs } = &conflicts[0];
        let values = [before, mine, theirs].map(String::as_str);
        assert_eq!((*field, values), (MetadataField::Headline, ["Ice", "Mine", "Theirs"]));
        let second = "tag=%222%22&conflict=headline&before.headline=Ice&base.headline=Theirs&headline=Mine&base.source=Same&source=Same";
        let mut undecided = draft(second);
        assert_eq!(undecided.rebase(&current, &rules()), conflicts);
        let patch = |pick: &str| {
            let mut decided = draft(&format!("{second}&pick.headline={pick}"));
            assert!(decided.rebase(&current, &rules()).is_empty());
            Value::Object(decided.patch(&current, &rules()))
        };
        assert_eq!(patch("mine"), json!({ "headline": "Mine" }));
        assert_eq!(patch("theirs"), json!({}));
    }
}
