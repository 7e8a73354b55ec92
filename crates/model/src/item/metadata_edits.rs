//! Changes of several fields at once, for a selection of items or as a template.

use serde_json::{Map, Value, json};
use strum::{IntoStaticStr, VariantNames};

use super::{FieldForm, MetadataField};
use crate::limits::FIELD_CHARS_MAX;

/// A change of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[derive(IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum FieldEdit {
    /// Sets the field if it is empty.
    Fill(String),
    /// Sets the field and replaces any content.
    Replace(String),
    /// Adds entries to a list, or text to a text, unless the field ends with them.
    Append(String),
    /// Removes the field with all its entries.
    Clear,
}

impl FieldEdit {
    /// Builds the change of kind `kind`; `None` for an unknown word.
    pub fn from_kind(kind: &str, text: String) -> Option<Self> {
        match kind {
            "fill" => Some(Self::Fill(text)),
            "replace" => Some(Self::Replace(text)),
            "append" => Some(Self::Append(text)),
            "clear" => Some(Self::Clear),
            _ => None,
        }
    }

    /// Returns the word for the kind of the change.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// Returns the text to set or to add; empty if the field is removed.
    pub fn text(&self) -> &str {
        match self {
            Self::Fill(text) | Self::Replace(text) | Self::Append(text) => text,
            Self::Clear => "",
        }
    }

    /// Returns the content of the field `field` after the change.
    pub fn result(&self, field: MetadataField, current: &str) -> String {
        match self {
            Self::Fill(_) if !current.trim().is_empty() => current.to_owned(),
            Self::Fill(text) | Self::Replace(text) => text.clone(),
            Self::Append(text) => appended(field, current, text),
            Self::Clear => String::new(),
        }
    }
}

/// Adds `text` to the content of a field, unless the content ends with it. A template that is applied twice thus
/// adds its text once.
fn appended(field: MetadataField, current: &str, text: &str) -> String {
    let current = current.trim_end();
    let separator = match field.form() {
        FieldForm::Line => " ",
        FieldForm::Text | FieldForm::List => "\n",
    };
    if current.is_empty() {
        text.to_owned()
    } else if current.ends_with(text.trim()) {
        current.to_owned()
    } else {
        format!("{current}{separator}{text}")
    }
}

/// The error for a change of fields that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {message}")]
pub struct FieldEditError {
    /// The name of the field, as in the request.
    pub field: String,
    /// The broken rule: `additionalProperties`, `enum`, `maximum` or `type`.
    pub rule: &'static str,
    /// A description of the problem, which does not name the field.
    pub message: String,
}

impl FieldEditError {
    fn new(field: &str, rule: &'static str, message: impl Into<String>) -> Self {
        let field = field.chars().take(FIELD_NAME_CHARS).collect();
        Self { field, rule, message: message.into() }
    }
}

/// Changes of fields, each field at most once, in the order of forms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataEdits {
    edits: Vec<(MetadataField, FieldEdit)>,
}

impl MetadataEdits {
    /// Collects changes; of several changes of one field, the first counts.
    pub fn new(changes: impl IntoIterator<Item = (MetadataField, FieldEdit)>) -> Self {
        let mut edits: Vec<(MetadataField, FieldEdit)> = Vec::new();
        for (field, edit) in changes {
            if edits.iter().all(|(other, _)| *other != field) {
                edits.push((field, edit));
            }
        }
        edits.sort_by_key(|(field, _)| *field);
        Self { edits }
    }

    /// Parses an object of changes by field: `{"apply": "fill", "value": …}`. A value is a string, or a list of
    /// strings for a list field. A bare value replaces the content, and `null` clears the field.
    ///
    /// Fails with the first change that is not understood.
    pub fn parse(changes: &Map<String, Value>) -> Result<Self, FieldEditError> {
        let mut edits = Vec::with_capacity(changes.len());
        for (name, change) in changes {
            let Ok(field) = name.parse::<MetadataField>() else {
                return Err(FieldEditError::new(name, "additionalProperties", "is not a field"));
            };
            let edit = parse_edit(field, change)
                .map_err(|(rule, message)| FieldEditError::new(name, rule, message))?;
            edits.push((field, edit));
        }
        Ok(Self::new(edits))
    }

    /// Prints the changes in the form that [`MetadataEdits::parse`] reads.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut changes = Map::new();
        for (field, edit) in &self.edits {
            let change = match edit {
                FieldEdit::Clear => json!({ "apply": edit.kind() }),
                FieldEdit::Fill(text) | FieldEdit::Replace(text) | FieldEdit::Append(text) => {
                    json!({ "apply": edit.kind(), "value": print_value(*field, text) })
                }
            };
            changes.insert(field.as_str().to_owned(), change);
        }
        changes
    }

    /// Applies the changes to the properties of a document.
    pub fn apply(&self, document: &mut Map<String, Value>) {
        for (field, edit) in &self.edits {
            let text = edit.result(*field, &field.text(document));
            field.write(document, &text);
        }
    }

    /// Iterates over the changes, in the order of forms.
    pub fn iter(&self) -> impl Iterator<Item = (MetadataField, &FieldEdit)> {
        self.edits.iter().map(|(field, edit)| (*field, edit))
    }

    /// Returns the change of a field.
    pub fn find(&self, field: MetadataField) -> Option<&FieldEdit> {
        self.iter().find(|(own, _)| *own == field).map(|(_, edit)| edit)
    }

    /// Returns whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }
}

/// Maximum number of characters of an unknown field name that an error repeats.
const FIELD_NAME_CHARS: usize = 40;

/// Parses the change of one field. Fails with the broken rule and a description.
fn parse_edit(field: MetadataField, change: &Value) -> Result<FieldEdit, (&'static str, String)> {
    let (kind, value) = match change {
        Value::Null => return Ok(FieldEdit::Clear),
        Value::Object(members) => {
            let mut names = members.keys();
            if let Some(other) = names.find(|name| !["apply", "value"].contains(&name.as_str())) {
                let other: String = other.chars().take(FIELD_NAME_CHARS).collect();
                let message = format!("has {other:?}, expected apply and value");
                return Err(("additionalProperties", message));
            }
            (members.get("apply").map_or(Some("replace"), Value::as_str), members.get("value"))
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            (Some("replace"), Some(change))
        }
    };
    let text = value.map_or(Ok(String::new()), |value| parse_value(field, value))?;
    let edit = kind.and_then(|kind| FieldEdit::from_kind(kind, text));
    let edit = edit.ok_or_else(|| {
        ("enum", format!("must be applied as one of {}", FieldEdit::VARIANTS.join(", ")))
    })?;
    // An empty value would be a second way to clear a field, and is more often a mistake.
    if edit != FieldEdit::Clear && edit.text().is_empty() {
        return Err(("required", "has no value".to_owned()));
    }
    Ok(edit)
}

fn parse_value(field: MetadataField, value: &Value) -> Result<String, (&'static str, String)> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if field == MetadataField::Urgency => number.to_string(),
        Value::Array(entries) if field.form() == FieldForm::List => {
            let entries: Option<Vec<&str>> = entries.iter().map(Value::as_str).collect();
            entries.ok_or_else(wrong_type)?.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            return Err(wrong_type());
        }
    };
    if text.chars().count() > FIELD_CHARS_MAX {
        return Err(("maximum", format!("has more than {FIELD_CHARS_MAX} characters")));
    }
    Ok(field.normalize(&text))
}

/// Returns the broken rule and a description for a value of a wrong type.
fn wrong_type() -> (&'static str, String) {
    ("type", "must be a string, or a list of strings for a list".to_owned())
}

fn print_value(field: MetadataField, text: &str) -> Value {
    match field.form() {
        FieldForm::Line | FieldForm::Text => Value::from(text),
        FieldForm::List => text.lines().map(Value::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(changes: Value) -> Result<MetadataEdits, FieldEditError> {
        let Value::Object(changes) = changes else { panic!("an object") };
        MetadataEdits::parse(&changes)
    }

    fn applied(changes: Value, document: Value) -> Value {
        let Value::Object(mut fields) = document else { panic!("an object") };
        parse(changes).expect("valid").apply(&mut fields);
        Value::Object(fields)
    }

    #[test]
    fn ok_changes_are_printed_as_they_are_read() {
        let changes = json!({
            "headline": { "apply": "fill", "value": "Ice" },
            "person": { "apply": "append", "value": ["Eva", "Ada"] },
            "keyword": { "apply": "clear" },
            "copyrightholder": { "apply": "replace", "value": "Agency" },
        });
        let edits = parse(changes.clone()).expect("valid");
        assert_eq!(Value::Object(edits.to_json()), changes);
        assert_eq!(MetadataEdits::parse(&edits.to_json()), Ok(edits));
        let short = json!({ "headline": "Ice", "source": null, "person": ["Eva"], "urgency": 4 });
        let edits = parse(short).expect("valid");
        assert_eq!(edits.find(MetadataField::Source), Some(&FieldEdit::Clear));
        let replaced = FieldEdit::Replace("4".to_owned());
        assert_eq!(edits.find(MetadataField::Urgency), Some(&replaced));
    }

    #[test]
    fn err_a_change_that_is_not_understood_names_its_field_and_rule() {
        let check = |changes: Value, field: &str, rule: &str| {
            let error = parse(changes.clone()).expect_err("refused");
            assert_eq!((error.field.as_str(), error.rule), (field, rule), "{changes}");
        };
        check(json!({ "uri": "x" }), "uri", "additionalProperties");
        check(json!({ "headline": { "apply": "guess", "value": "x" } }), "headline", "enum");
        check(json!({ "headline": { "text": "x" } }), "headline", "additionalProperties");
        check(json!({ "headline": ["x"] }), "headline", "type");
        check(json!({ "person": [7] }), "person", "type");
        check(json!({ "headline": " " }), "headline", "required");
        check(json!({ "headline": "x".repeat(FIELD_CHARS_MAX + 1) }), "headline", "maximum");
    }

    #[test]
    fn a_template_fills_replaces_adds_and_clears() {
        let changes = json!({
            "byline": { "apply": "fill", "value": "Staff" },
            "source": { "apply": "replace", "value": "Agency" },
            "description_text": { "apply": "append", "value": "Photo: Agency" },
            "person": { "apply": "append", "value": ["Eva", "Kim"] },
            "ednote": { "apply": "clear" },
        });
        let before = json!({ "byline": "Ada", "source": "Old", "description_text": "Ice.",
            "person": [{ "name": "Eva", "code": "7" }], "ednote": "Hold" });
        let after = json!({ "byline": "Ada", "source": "Agency",
            "description_text": "Ice.\nPhoto: Agency",
            "person": [{ "name": "Eva", "code": "7" }, { "name": "Kim" }] });
        assert_eq!(applied(changes.clone(), before), after);
        assert_eq!(applied(changes.clone(), after.clone()), after, "twice is once");
        let empty = applied(changes, json!({}));
        assert_eq!(
            (&empty["byline"], &empty["description_text"]),
            (&json!("Staff"), &json!("Photo: Agency"))
        );
    }
}
