//! The form that edits several items at once. Each field can be left unchanged, filled in where it is empty,
//! replaced, extended or cleared. Items that others changed meanwhile are not saved; the page shows their current
//! and their new values.

use axum::http::StatusCode;
use minijinja::{context, value::Serde};
use serde::Serialize;
use serde_json::{Map, Value};
use strum::IntoEnumIterator;

use super::fields::{FieldRules, FieldView, attach_errors, fields_of, typed};
use super::loaded_item::{LoadedItem, change, edit_page, find, return_page};
use super::templates::{self, ModeView, TypedEdits};
use super::{EditorForm, PageError, PageResult, SiteRequest};
use crate::http::form::see_other;
use crate::http::site::api_client::ApiRefusal;
use model::ItemKey;
use model::item::{MetadataEdits, MetadataField, has_picture, patch_between};

/// An item in the form.
#[derive(Clone, Debug, Serialize)]
struct ManyItem {
    key: String,
    headline: String,
    status: String,
    /// The entity tag of the version that the page shows.
    tag: String,
    thumbnail: Option<String>,
    /// Fields whose current value would be overwritten; empty unless the item changed meanwhile.
    conflicts: Vec<ManyConflict>,
    /// Fields that would be missing or invalid after the change.
    wrong: Vec<FieldView>,
    /// Other reasons why the item was not saved.
    errors: Vec<String>,
}

/// A field of an item that changed meanwhile.
#[derive(Clone, Debug, Serialize)]
struct ManyConflict {
    name: &'static str,
    current: String,
    new: String,
}

impl ManyItem {
    fn new(item: &LoadedItem) -> Self {
        let status = item.status();
        // A withdrawn item has no thumbnail any more, and only items with a picture always have one.
        let is_shown =
            has_picture(item.key.media_type) && !["canceled", "withheld"].contains(&status);
        Self {
            key: item.key.to_string(),
            headline: item.text("headline").to_owned(),
            tag: item.tag.clone(),
            thumbnail: is_shown.then(|| format!("/media/{}_NormalThumbnail.jpg", item.key)),
            status: status.to_owned(),
            conflicts: Vec::new(),
            wrong: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Adds the reasons why a change of the item is refused.
    fn refuse(&mut self, mut fields: Vec<FieldView>, refusal: &ApiRefusal) {
        self.errors = attach_errors(&mut fields, refusal);
        self.wrong = fields.into_iter().filter(|field| !field.wrong.is_empty()).collect();
    }
}

/// Shows the values of `field` in all items of a form in the form's field.
fn describe_values(
    view: &mut ModeView,
    field: MetadataField,
    items: &[LoadedItem],
    rules: &FieldRules,
) {
    let having = items.iter().filter(|item| field.applies_to(item.key.media_type));
    let texts: Vec<String> = having.map(|item| rules.text(field, &item.document)).collect();
    let first = texts.first();
    view.is_mixed = texts.iter().any(|text| Some(text) != first);
    view.common = first.filter(|text| !view.is_mixed && !text.is_empty()).cloned();
}

/// `GET /desk/edit?item=…&item=…`: shows the form for several items.
pub(super) async fn show(site: &SiteRequest, keys: &[ItemKey]) -> PageResult {
    let items = load_all(site, keys).await?;
    let views = MetadataField::iter().map(|field| ModeView::new(field, "", "")).collect();
    let shown = items.iter().map(ManyItem::new).collect();
    let form = ManyForm { items: shown, saved: 0, views, status: StatusCode::OK };
    page(site, form, &items).await
}

/// Loads the items of `keys` that exist.
async fn load_all(site: &SiteRequest, keys: &[ItemKey]) -> Result<Vec<LoadedItem>, PageError> {
    let mut items = Vec::new();
    for key in keys {
        items.extend(find(site, key).await?);
    }
    Ok(items)
}

/// The content of the page with the form.
struct ManyForm {
    items: Vec<ManyItem>,
    /// Number of items that have been saved and are no longer in the form.
    saved: usize,
    views: Vec<ModeView>,
    status: StatusCode,
}

async fn page(site: &SiteRequest, mut form: ManyForm, items: &[LoadedItem]) -> PageResult {
    let rules = FieldRules::new(site);
    for (view, field) in form.views.iter_mut().zip(MetadataField::iter()) {
        describe_values(view, field, items, &rules);
    }
    // A form that is shown for the first time has no mistakes.
    let is_refused = form.status != StatusCode::OK;
    let has_conflicts = form.items.iter().any(|item| !item.conflicts.is_empty());
    let context = context! {
        items => Serde(form.items),
        saved => form.saved,
        has_conflicts => has_conflicts,
        is_refused => is_refused,
        fields => Serde(form.views),
        templates => templates::choices(site).await?,
        return_to => return_page(site)?.map(str::to_owned),
    };
    site.page_with(form.status, "desk/edit_many.html", context)
}

/// `POST /desk/edit`: saves the form for several items, one by one.
pub(super) async fn save(posted: &EditorForm, keys: &[ItemKey]) -> PageResult {
    let rules = FieldRules::new(posted);
    let TypedEdits { views, edits, is_valid } = templates::read_edits(posted, &rules);
    let items = load_all(posted, keys).await?;
    if !is_valid {
        let shown = items.iter().map(ManyItem::new).collect();
        let form = ManyForm { items: shown, saved: 0, views, status: StatusCode::BAD_REQUEST };
        return page(posted, form, &items).await;
    }
    let template = templates::find_posted(posted).await?;
    let template = template.map(|template| template.fields).unwrap_or_default();
    let mut left = Vec::new();
    let mut unsaved = Vec::new();
    let mut saved = 0;
    for item in items {
        let change = ManyChange { template: &template, edits: &edits, rules: &rules };
        match change.save(posted, &item).await? {
            None => saved += 1,
            Some(shown) => {
                left.push(shown);
                unsaved.push(item);
            }
        }
    }
    if left.is_empty() {
        let back = posted.form.find("return_to");
        let more = [("done", Some("saved")), ("return_to", back)];
        return Ok(see_other(&edit_page(keys, &more)));
    }
    let form = ManyForm { items: left, saved, views, status: StatusCode::CONFLICT };
    page(posted, form, &unsaved).await
}

/// The change that a form applies to each item.
struct ManyChange<'a> {
    template: &'a MetadataEdits,
    edits: &'a MetadataEdits,
    rules: &'a FieldRules,
}

impl ManyChange<'_> {
    /// Saves the change of an item. If it is not saved, returns the item with the reasons; `None` if it is.
    async fn save(
        &self,
        posted: &EditorForm,
        item: &LoadedItem,
    ) -> Result<Option<ManyItem>, PageError> {
        let mut changed = item.document.clone();
        self.template.apply(&mut changed);
        self.edits.apply(&mut changed);
        let patch = patch_between(&item.document, &changed);
        if patch.is_empty() {
            return Ok(None);
        }
        let mut shown = ManyItem::new(item);
        let seen = typed(&posted.form, &format!("tag.{}", item.key));
        if seen != item.tag {
            shown.conflicts = self.differences(item, &changed);
            return Ok(Some(shown));
        }
        match change(posted, &item.key, &patch, &item.tag).await {
            Ok(()) => Ok(None),
            // The session has ended: the login preserves the whole form.
            Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => Err(refusal.into()),
            Err(refusal) => {
                let fields = self.rules.views(item.key.media_type, &changed);
                shown.refuse(fields, &refusal);
                Ok(Some(shown))
            }
        }
    }

    /// Lists the fields that would change, each with its current and its new value.
    fn differences(&self, item: &LoadedItem, changed: &Map<String, Value>) -> Vec<ManyConflict> {
        let mut differences = Vec::new();
        for field in fields_of(item.key.media_type) {
            let current = self.rules.text(field, &item.document);
            let new = self.rules.text(field, changed);
            if current != new {
                differences.push(ManyConflict { name: field.as_str(), current, new });
            }
        }
        differences
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(key: &str, document: Value) -> LoadedItem {
        let Value::Object(document) = document else { panic!("an object") };
        LoadedItem { key: key.parse().unwrap(), document, tag: "\"1\"".to_owned() }
    }

    #[test]
    fn the_form_says_what_the_items_have_in_common() {
        let items = [
            item("image/a", json!({ "headline": "Ice", "source": "Agency", "city": "x" })),
            item("image/b", json!({ "headline": "Snow", "source": "Agency" })),
            item("calendar/c", json!({ "headline": "Thaw", "source": "Agency", "byline": "x" })),
        ];
        let check = |field, common: Option<&str>, is_mixed| {
            let mut view = ModeView::new(field, "", "");
            describe_values(&mut view, field, &items, &FieldRules::for_tests());
            assert_eq!((view.common.as_deref(), view.is_mixed), (common, is_mixed), "{field:?}");
        };
        check(MetadataField::Headline, None, true);
        check(MetadataField::Source, Some("Agency"), false);
        check(MetadataField::Byline, None, false);
        check(MetadataField::Language, None, false);
    }

    #[test]
    fn what_would_replace_the_changes_of_others_is_listed() {
        let item = item("image/a", json!({ "headline": "Theirs", "source": "Agency" }));
        let edits = json!({ "headline": "Mine", "source": { "apply": "fill", "value": "x" } });
        let edits = MetadataEdits::parse(edits.as_object().unwrap()).unwrap();
        let template = MetadataEdits::default();
        let rules = FieldRules::for_tests();
        let change = ManyChange { template: &template, edits: &edits, rules: &rules };
        let mut changed = item.document.clone();
        edits.apply(&mut changed);
        let found = change.differences(&item, &changed);
        assert_eq!(found.len(), 1);
        let values = (found[0].name, found[0].current.as_str(), found[0].new.as_str());
        assert_eq!(values, ("headline", "Theirs", "Mine"));
    }
}
