//! Handles requests for one or several items, which a URL names or an editor ticked in a list: opens and saves
//! their form, withdraws them and restores them.

use api::ingest::{ItemPath, WithdrawItem};
use minijinja::context;
use serde_json::{Map, Value};

use super::loaded_item::{self, edit_page};
use super::restoration::Restoration;
use super::{EditorForm, EditorRequest, PageResult, edit, edit_many};
use crate::http::form::see_other;
use crate::http::site::item_summary::key_of;
use crate::http::site::login;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use model::ItemKey;

/// Items that one form of the site edits together.
const SITE_EDIT_ITEMS_MAX: usize = 100;

/// Parses the keys of items, given as `<mediaType>/<id>` or as URI. Returns each item once and skips other texts.
/// Fails if there are more than [`SITE_EDIT_ITEMS_MAX`].
fn parse_keys<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<ItemKey>> {
    let mut keys: Vec<ItemKey> = Vec::new();
    for text in texts {
        let key = ItemKey::parse(text).ok().or_else(|| key_of(text));
        let Some(key) = key else { continue };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.len() > SITE_EDIT_ITEMS_MAX {
        let message = format!("At most {SITE_EDIT_ITEMS_MAX} items can be edited together");
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    Ok(keys)
}

/// Returns the items of a form.
pub(super) fn posted_keys(posted: &EditorForm) -> Result<Vec<ItemKey>> {
    parse_keys(posted.form.all("item").chain(posted.form.all("uri")))
}

/// `POST /desk/select`: redirects to the form for the items that are ticked in a list.
pub(super) async fn select(posted: EditorForm) -> PageResult {
    let back = posted.form.find("return_to").filter(|path| login::is_local_page(path));
    Ok(see_other(&edit_page(&posted_keys(&posted)?, &[("return_to", back)])))
}

/// `GET /desk/edit?item=…`: shows the form for one item or for several.
pub(super) async fn show(editor: EditorRequest) -> PageResult {
    let named = [editor.query.all("item")?, editor.query.all("uri")?].concat();
    match parse_keys(named)?.as_slice() {
        [] => editor.page("desk/edit_none.html", context! {}),
        [key] => edit::show(&editor, key, None).await,
        keys => edit_many::show(&editor, keys).await,
    }
}

/// `POST /desk/edit`: saves the form.
pub(super) async fn save(posted: EditorForm) -> PageResult {
    let keys = posted_keys(&posted)?;
    // The form for several items may have only one item left to save, and is still handled as such.
    let is_for_many = posted.form.find("many").is_some();
    match keys.as_slice() {
        [key] if !is_for_many => edit::save(&posted, key).await,
        [] => Ok(see_other("/desk/edit")),
        keys => edit_many::save(&posted, keys).await,
    }
}

/// `POST /desk/withdraw`: withdraws the items of a form.
pub(super) async fn withdraw(posted: EditorForm) -> PageResult {
    let keys = posted_keys(&posted)?;
    for key in &keys {
        posted.ask(&WithdrawItem { item: ItemPath::new(key) }).await?;
    }
    Ok(see_other(&edit_page(&keys, &[("done", Some("withdrawn"))])))
}

/// `POST /desk/restore`: publishes withdrawn items of a form again, with their previous status.
pub(super) async fn restore(posted: EditorForm) -> PageResult {
    let keys = posted_keys(&posted)?;
    let mut restored = Vec::new();
    for key in &keys {
        let item = loaded_item::load(&posted, key).await?;
        let changes = loaded_item::changes(&posted, key).await?;
        // An item that is not withdrawn, such as a commissioned one, must not become public.
        let Some(restoration) = Restoration::for_item(&item, &changes, clock::now()) else {
            continue;
        };
        let status = Map::from_iter([("pubstatus".to_owned(), Value::from(restoration.status))]);
        // Only the status is changed, so concurrent changes of other properties do not matter.
        match loaded_item::change(&posted, key, &status, "*").await {
            Ok(()) => restored.push(restoration),
            Err(refusal) if refusal.is_mistake() => {
                return edit::show(&posted, key, Some(&refusal)).await;
            }
            Err(refusal) => return Err(refusal.into()),
        }
    }
    let done = match restored.as_slice() {
        [] => None,
        all if all.iter().all(Restoration::is_public) => Some("restored"),
        _ => Some("reinstated"),
    };
    Ok(see_other(&edit_page(&keys, &[("done", done)])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_named_by_key_or_uri_and_counted_once() {
        let texts = ["image/a", "http://x/media/image/a", "https://y/media/text/b", "nothing", ""];
        let keys = parse_keys(texts).unwrap();
        let names: Vec<_> = keys.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["image/a", "text/b"]);
        let many: Vec<String> =
            (0..=SITE_EDIT_ITEMS_MAX).map(|number| format!("image/a{number}")).collect();
        assert!(parse_keys(many.iter().map(String::as_str)).is_err());
        assert_eq!(
            edit_page(&keys, &[("done", Some("saved")), ("return_to", None)]),
            "/desk/edit?item=image%2Fa&item=text%2Fb&done=saved"
        );
    }
}
