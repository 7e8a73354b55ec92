//! JSON merge patches (RFC 7396).

use serde_json::{Map, Value};

/// Applies `patch` to `target`: `null` removes a property, objects are merged, and any other value replaces the
/// old one.
///
/// RFC 7396 §2.
pub fn merge_patch(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, change) in patch {
        match change {
            Value::Null => drop(target.shift_remove(name)),
            // The JSON parser limits the nesting depth, and therefore this recursion.
            Value::Object(change) => match target.get_mut(name) {
                Some(Value::Object(inner)) => merge_patch(inner, change),
                _ => {
                    let mut inner = Map::new();
                    merge_patch(&mut inner, change);
                    target.insert(name.clone(), Value::Object(inner));
                }
            },
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                target.insert(name.clone(), change.clone());
            }
        }
    }
}

/// Returns the patch that turns `old` into `new`; empty if they are equal.
///
/// A `null` in `new` cannot be expressed and counts as absent.
pub fn patch_between(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let removed = old.keys().filter(|name| !new.contains_key(*name));
    let mut patch: Map<String, Value> = removed.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in new {
        let change = match (old.get(name), value) {
            (Some(before), after) if before == after => continue,
            (Some(Value::Object(before)), Value::Object(after)) => {
                Value::Object(patch_between(before, after))
            }
            _ => value.clone(),
        };
        patch.insert(name.clone(), change);
    }
    patch
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(fields) = value else { panic!("an object") };
        fields
    }

    #[test]
    fn patches_of_the_standard_are_applied() {
        let check = |target: Value, patch: Value, expected: Value| {
            let mut found = object(target);
            merge_patch(&mut found, &object(patch.clone()));
            assert_eq!(Value::Object(found), expected, "{patch}");
        };
        // The examples of RFC 7396, appendix A, whose targets and patches are objects.
        check(json!({ "a": "b" }), json!({ "a": "c" }), json!({ "a": "c" }));
        check(json!({ "a": "b" }), json!({ "b": "c" }), json!({ "a": "b", "b": "c" }));
        check(json!({ "a": "b" }), json!({ "a": null }), json!({}));
        check(json!({ "a": "b", "b": "c" }), json!({ "a": null }), json!({ "b": "c" }));
        check(json!({ "a": ["b"] }), json!({ "a": "c" }), json!({ "a": "c" }));
        check(json!({ "a": "c" }), json!({ "a": ["b"] }), json!({ "a": ["b"] }));
        let patch = json!({ "a": { "b": "d", "c": null } });
        check(json!({ "a": { "b": "c" } }), patch, json!({ "a": { "b": "d" } }));
        check(json!({ "a": [{ "b": "c" }] }), json!({ "a": [1] }), json!({ "a": [1] }));
        check(json!({ "e": null }), json!({ "a": 1 }), json!({ "e": null, "a": 1 }));
        let nested = json!({ "a": { "bb": { "ccc": null } } });
        check(json!({}), nested, json!({ "a": { "bb": {} } }));
    }

    #[test]
    fn a_patch_turns_one_document_into_the_other() {
        let check = |old: Value, new: Value, expected: Value| {
            let patch = patch_between(&object(old.clone()), &object(new.clone()));
            assert_eq!(Value::Object(patch.clone()), expected);
            let mut found = object(old);
            merge_patch(&mut found, &patch);
            assert_eq!(Value::Object(found), new);
        };
        check(json!({ "a": 1, "b": 2 }), json!({ "a": 1, "b": 2 }), json!({}));
        check(json!({ "a": 1, "b": 2 }), json!({ "b": 3 }), json!({ "a": null, "b": 3 }));
        let (old, new) =
            (json!({ "o": { "x": 1, "y": 2 } }), json!({ "o": { "y": 2, "z": [3] } }));
        check(old, new, json!({ "o": { "x": null, "z": [3] } }));
        check(json!({ "l": [1] }), json!({ "l": [1, 2] }), json!({ "l": [1, 2] }));
    }
}
