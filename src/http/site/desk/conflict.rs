//! The page that shows conflicting changes of the same fields, and lets the editor who saves last choose.

use axum::http::StatusCode;
use minijinja::{Value as PageValue, context, value::Serde};

use super::fields::FieldView;
use super::loaded_item::{self, LoadedItem};
use super::{EditorForm, PageResult};
use model::item::MetadataField;

/// A field that both the editor and others changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldConflict {
    pub(super) field: MetadataField,
    /// The text from which both started.
    pub(super) before: String,
    /// The text of the editor who is saving.
    pub(super) mine: String,
    /// The text that others saved.
    pub(super) theirs: String,
}

/// Shows conflicts with the values of both sides. The form also carries the rest of the draft along: its `views`,
/// and the version that the editor saw.
pub(super) async fn show(
    posted: &EditorForm,
    current: &LoadedItem,
    views: Vec<FieldView>,
    seen_version: &str,
    conflicts: &[FieldConflict],
) -> PageResult {
    let mut others = Vec::new();
    // Changes of the editor that do not conflict.
    let mut kept = Vec::new();
    for view in views {
        if conflicts.iter().any(|conflict| conflict.field.as_str() == view.name) {
            continue;
        }
        if view.value != view.base {
            kept.push(view.clone());
        }
        others.push(view);
    }
    let shown = conflicts.iter().map(|conflict| {
        let FieldConflict { field, before, mine, theirs } = conflict;
        context! { name => field.as_str(), before, mine, theirs }
    });
    let context = context! {
        item => current.head(),
        summary => Serde(loaded_item::summary(posted, &current.key).await),
        conflicts => shown.collect::<PageValue>(),
        kept => Serde(kept),
        others => Serde(others),
        tag => current.tag.clone(),
        version => current.version(),
        seen_version,
        history => loaded_item::history(posted, &current.key).await?,
        return_to => posted.form.find("return_to").map(str::to_owned),
    };
    posted.page_with(StatusCode::CONFLICT, "desk/conflict.html", context)
}
