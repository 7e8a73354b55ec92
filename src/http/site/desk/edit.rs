//! The form that edits one item. A change is based on the version that the editor saw. Changes that other editors
//! made meanwhile to different fields are kept. Changes to the same fields are conflicts, which the page shows
//! beside the editor's values.

use axum::http::StatusCode;
use minijinja::{context, value::Serde};
use serde_json::{Map, Value};

use super::conflict::{self, FieldConflict};
use super::fields::{FieldRules, FieldView, attach_errors, fields_of, typed};
use super::loaded_item::{
    LoadedItem, change, changes, edit_page, latest, load, return_page, summary,
};
use super::restoration::Restoration;
use super::{EditorForm, PageResult, SiteRequest, templates};
use crate::http::form::{FormFields, see_other};
use crate::http::site::api_client::ApiRefusal;
use crate::http::site::status_of;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind};
use model::ItemKey;
use model::item::{MetadataField, patch_between};

/// Times that the form of an item is applied to a newer version that others changed in other fields.
const SITE_EDIT_TRIES_MAX: usize = 3;

/// A field of the submitted form.
struct FieldDraft {
    field: MetadataField,
    /// The text from which the editor started.
    base: String,
    typed: String,
}

/// The submitted form of an item.
struct ItemDraft {
    /// The entity tag of the version on which the change is based.
    tag: String,
    /// The number of that version, for display.
    version: String,
    fields: Vec<FieldDraft>,
    /// Conflicts that the editor has not resolved.
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

    /// Bases the draft on the current version of the item. Fields that the editor did not change get the current
    /// value. Returns the fields that both the editor and others changed.
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

    /// Returns the merge patch that applies the editor's changes to the item.
    fn patch(&self, current: &LoadedItem, rules: &FieldRules) -> Map<String, Value> {
        let mut changed = current.document.clone();
        for FieldDraft { field, base, typed } in &self.fields {
            // A field that the form does not have is not changed.
            if field.normalize(typed) != field.normalize(base) {
                rules.write(*field, &mut changed, typed);
            }
        }
        patch_between(&current.document, &changed)
    }

    /// Returns the fields with the editor's values.
    fn views(&self, rules: &FieldRules) -> Vec<FieldView> {
        let mut views = Vec::new();
        for FieldDraft { field, base, typed } in &self.fields {
            views.push(rules.view(*field, typed.clone(), base.clone()));
        }
        views
    }

    /// Returns the content of the form besides its fields.
    fn state(&self) -> FormState<'_> {
        FormState { tag: &self.tag, version: &self.version, ..FormState::default() }
    }
}

/// Returns whether two texts stand for the same value of `field`.
fn is_same(field: MetadataField, text: &str, other: &str) -> bool {
    field.normalize(text) == field.normalize(other)
}

/// `GET /desk/edit?item=…`: shows the form of one item, with the refusal of a change that a different form made.
pub(super) async fn show(
    site: &SiteRequest,
    key: &ItemKey,
    refusal: Option<&ApiRefusal>,
) -> PageResult {
    let item = load(site, key).await?;
    let views = FieldRules::new(site).views(key.media_type, &item.document);
    let state =
        FormState { tag: &item.tag, version: item.version(), refusal, ..FormState::default() };
    form(site, &item, views, state).await
}

/// The content of a form besides its fields.
#[derive(Default)]
struct FormState<'a> {
    /// The entity tag of the version on which the change is based, and the version for display.
    tag: &'a str,
    version: &'a str,
    /// The refusal of the change.
    refusal: Option<&'a ApiRefusal>,
    /// The template that was applied to the fields.
    applied: Option<String>,
}

async fn form(
    site: &SiteRequest,
    item: &LoadedItem,
    mut views: Vec<FieldView>,
    state: FormState<'_>,
) -> PageResult {
    // Messages about mistakes that belong to no field.
    let mistakes = state.refusal.map(|refusal| attach_errors(&mut views, refusal));
    let has_wrong = views.iter().any(|view| !view.wrong.is_empty());
    let changes = changes(site, &item.key).await?;
    let restoration = Restoration::for_item(item, &changes, clock::now());
    let context = context! {
        item => item.head(),
        restoration => Serde(restoration),
        summary => Serde(summary(site, &item.key).await),
        fields => Serde(views),
        tag => state.tag,
        version => state.version,
        mistakes => mistakes.unwrap_or_default(),
        has_wrong => has_wrong,
        applied => state.applied,
        templates => templates::choices(site).await?,
        history => latest(&changes),
        return_to => return_page(site)?.map(str::to_owned),
    };
    site.page_with(status_of(state.refusal), "desk/edit.html", context)
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
            return conflict::show(
                posted,
                &current,
                draft.views(&rules),
                &draft.version,
                &conflicts,
            )
            .await;
        }
        let patch = draft.patch(&current, &rules);
        let saved = if patch.is_empty() {
            Ok(())
        } else {
            change(posted, key, &patch, &current.tag).await
        };
        match saved {
            Ok(()) => return Ok(see_other(&saved_page(posted, key))),
            // The item changed between the two calls. The next iteration compares the draft with the new version.
            Err(refusal) if refusal.status == StatusCode::PRECONDITION_FAILED => {}
            Err(refusal) if refusal.is_mistake() => {
                let state = FormState { refusal: Some(&refusal), ..draft.state() };
                return form(posted, &current, draft.views(&rules), state).await;
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

/// Shows the form with a template applied to the typed values. Saves nothing.
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
    let state = FormState { applied: template.map(|template| template.name), ..draft.state() };
    form(posted, &item, draft.views(rules), state).await
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
