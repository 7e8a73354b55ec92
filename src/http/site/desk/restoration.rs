//! Restores a withdrawn item: when it is published again, it gets the status that it had before its withdrawal.

use api::ingest::ItemEdit;
use jiff::Timestamp;
use serde::Serialize;

use super::fields::is_embargoed;
use super::loaded_item::LoadedItem;
use model::item::PubStatus;

/// The expected result of publishing a withdrawn item again, which its page shows beforehand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Restoration {
    /// The name of the status that the item gets.
    pub(super) status: &'static str,
    /// True if the history of the item contains its previous status.
    is_recorded: bool,
    /// True if a different item had replaced it. Publishing sets the status `replaced` again while that item is
    /// served.
    was_replaced: bool,
    /// The end of an embargo that holds.
    embargo: Option<String>,
}

impl Restoration {
    /// Returns the result of publishing `item` again at `now`; `None` if the item is not withdrawn. `changes`
    /// lists its history, the newest change first.
    pub(super) fn for_item(
        item: &LoadedItem,
        changes: &[ItemEdit],
        now: Timestamp,
    ) -> Option<Self> {
        if item.status() != PubStatus::Canceled.as_str() {
            return None;
        }
        let before = status_before(changes);
        let status = match before {
            Some(held @ (PubStatus::Commissioned | PubStatus::Withheld)) => held,
            Some(PubStatus::Usable | PubStatus::Replaced | PubStatus::Canceled) | None => {
                PubStatus::Usable
            }
        };
        let embargo = Some(item.text("embargoed")).filter(|end| is_embargoed(end, now));
        Some(Self {
            status: status.as_str(),
            is_recorded: before.is_some(),
            was_replaced: before == Some(PubStatus::Replaced),
            embargo: embargo.map(str::to_owned),
        })
    }

    /// Returns whether customers see the item as soon as it is published again.
    pub(super) fn is_public(&self) -> bool {
        self.status == PubStatus::Usable.as_str() && self.embargo.is_none()
    }
}

/// Returns the status before the latest withdrawal in `changes`.
fn status_before(changes: &[ItemEdit]) -> Option<PubStatus> {
    let canceled = Some(PubStatus::Canceled.as_str());
    let mut changes = changes.iter().flat_map(|edit| &edit.changes);
    let withdrawal = changes
        .find(|change| change.property == "pubstatus" && change.new.as_deref() == canceled)?;
    withdrawal.old.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use api::ingest::ItemPropertyEdit;
    use serde_json::{Value, json};

    use super::*;

    fn change(property: &str, old: &str, new: &str) -> ItemEdit {
        let change = ItemPropertyEdit {
            property: property.to_owned(),
            old: Some(old.to_owned()),
            new: Some(new.to_owned()),
        };
        let changed = Timestamp::UNIX_EPOCH;
        ItemEdit { changed, version: "1".to_owned(), changes: vec![change], user: None }
    }

    fn item(document: Value) -> LoadedItem {
        let Value::Object(document) = document else { panic!("an object") };
        LoadedItem { key: "image/a".parse().unwrap(), document, tag: "\"1\"".to_owned() }
    }

    #[test]
    fn the_latest_withdrawal_says_which_status_comes_back() {
        let check = |changes: &[ItemEdit], status: &str, is_recorded: bool| {
            let item = item(json!({ "pubstatus": "canceled" }));
            let found = Restoration::for_item(&item, changes, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!((found.status, found.is_recorded), (status, is_recorded), "{changes:?}");
        };
        let withdrawn = |from: &str| change("pubstatus", from, "canceled");
        let usable = change("pubstatus", "canceled", "usable");
        let headline = change("headline", "withheld", "canceled");
        check(&[], "usable", false);
        check(&[headline.clone(), usable.clone()], "usable", false);
        check(&[headline, withdrawn("commissioned"), usable], "commissioned", true);
        check(&[withdrawn("withheld"), withdrawn("usable")], "withheld", true);
        check(&[withdrawn("usable"), withdrawn("withheld")], "usable", true);
        check(&[withdrawn("replaced")], "usable", true);
    }

    #[test]
    fn an_embargo_that_holds_keeps_the_item_from_customers() {
        let now: Timestamp = "2026-03-02T08:00:00Z".parse().unwrap();
        let check = |document: Value, expected: Option<bool>| {
            let changes = [change("pubstatus", "usable", "canceled")];
            let found = Restoration::for_item(&item(document.clone()), &changes, now);
            assert_eq!(found.as_ref().map(Restoration::is_public), expected, "{document}");
        };
        check(json!({ "pubstatus": "canceled" }), Some(true));
        let embargoed = |end: &str| json!({ "pubstatus": "canceled", "embargoed": end });
        check(embargoed("2026-03-02T08:00:00Z"), Some(true));
        check(embargoed("2026-03-02T08:00:01Z"), Some(false));
        check(embargoed("9999-12-31T23:59:59Z"), Some(false));
        check(json!({ "pubstatus": "withheld" }), None);
    }
}
