//! Compares two versions of an object of properties, for the audit log and for editors.

use serde_json::{Map, Value};

use crate::storage::database::PropertyChange;
use model::shorten;

/// Characters of an old and of a new value in the detail of an event, which has room for both.
const AUDIT_VALUE_CHARS_MAX: usize = 120;

/// A property that differs. A value is `None` if the property is not set.
#[derive(Debug)]
pub(super) struct Difference<'a> {
    pub(super) name: &'a str,
    pub(super) old: Option<&'a Value>,
    pub(super) new: Option<&'a Value>,
}

impl Difference<'_> {
    /// Describes the difference: `dataMining: none -> http://…/DMI-PROHIBITED`. Long values are shortened.
    pub(super) fn describe(&self) -> String {
        describe(&self.shortened())
    }

    /// Returns the difference with its values as texts, long texts shortened.
    pub(super) fn shortened(&self) -> PropertyChange {
        PropertyChange {
            property: self.name.to_owned(),
            old: self.old.map(shortened_text),
            new: self.new.map(shortened_text),
        }
    }
}

/// Lists each property that differs.
pub(super) fn differences<'a>(
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
) -> Vec<Difference<'a>> {
    let added = new.keys().filter(|name| !old.contains_key(*name));
    let names = old.keys().chain(added);
    let compared = names.map(|name| Difference { name, old: old.get(name), new: new.get(name) });
    compared.filter(|property| property.old != property.new).collect()
}

/// Describes a change: `dataMining: none -> http://…/DMI-PROHIBITED`.
pub(super) fn describe(change: &PropertyChange) -> String {
    let old = change.old.as_deref().unwrap_or("none");
    let new = change.new.as_deref().unwrap_or("none");
    format!("{}: {old} -> {new}", change.property)
}

/// Prints a value as a text, shortened if it is long.
fn shortened_text(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    shorten(&text, AUDIT_VALUE_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(old: &Value, new: &Value) -> Vec<String> {
        let [old, new] = [old, new].map(|value| value.as_object().expect("an object"));
        differences(old, new).iter().map(Difference::describe).collect()
    }

    #[test]
    fn every_difference_has_its_old_and_its_new_value() {
        let old = json!({ "jobid": "7", "title": { "x-default": "Ice" }, "instructions": "none" });
        let new = json!({ "jobid": "8", "instructions": "none", "dataMining": "http://a/b" });
        let expected = [
            "jobid: 7 -> 8",
            r#"title: {"x-default":"Ice"} -> none"#,
            "dataMining: none -> http://a/b",
        ];
        assert_eq!(described(&old, &new), expected);
        assert!(described(&old, &old).is_empty());
    }

    #[test]
    fn a_long_value_leaves_room_for_the_other() {
        let long = shortened_text(&json!("å".repeat(500)));
        assert_eq!(long.chars().count(), AUDIT_VALUE_CHARS_MAX + 1);
        assert!(long.ends_with('…'));
    }
}
