//! The fields of an item that editors fill in, in forms, templates and house rules.
//!
//! A field is read and written as text, with one line for each entry of a list. Most fields are one property of
//! the document. City, country, credit line and keywords are entries of lists that also hold other data. Writing a
//! field keeps data that its text cannot express: codes, schemes and positions of entries whose name did not
//! change.

use serde_json::{Map, Value, json};
use strum::{EnumIter, EnumString, IntoStaticStr, VariantNames};

use super::SchemaViolation;
use crate::MediaType;

/// The scheme of keywords, which distinguishes them from other subjects.
pub const KEYWORD_SCHEME: &str = "http://tt.se/spec/keyword/1.0/";
/// The scheme of places.
pub const PLACE_SCHEME: &str = "http://tt.se/spec/place/1.0/";
/// The values of `rel` that mark a city. In this list and the lists below, the first value is the one that is
/// written.
pub const CITY_RELATIONS: [&str; 3] = ["ort", "city", "capital"];
/// The values of `rel` that mark a country.
pub const COUNTRY_RELATIONS: [&str; 2] = ["land", "country"];
/// The values of `rel` that mark a credit line.
pub const CREDIT_RELATIONS: [&str; 1] = ["credit"];

/// A field that editors fill in. The variants are in the order of forms. The name of a field is the name of its
/// property if it is a single property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(EnumIter, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum MetadataField {
    Headline,
    /// The caption of a picture.
    #[strum(serialize = "description_text")]
    Description,
    Byline,
    /// The credit line, an `infosource` with `rel` `credit`.
    Credit,
    Source,
    /// The short title of the story.
    Slugline,
    #[strum(serialize = "person")]
    Persons,
    #[strum(serialize = "organisation")]
    Organisations,
    City,
    Country,
    /// The subjects that are keywords.
    #[strum(serialize = "keyword")]
    Keywords,
    CopyrightHolder,
    CopyrightNotice,
    UsageTerms,
    /// The note to editors. Caption files call it special instructions.
    #[strum(serialize = "ednote")]
    EditorNote,
    Language,
    /// The urgency, 1 to 9.
    Urgency,
    /// The end of the embargo.
    #[strum(serialize = "embargoed")]
    Embargo,
    /// The codes of the products that the item belongs to.
    #[strum(serialize = "product")]
    Products,
}

/// The form of a field's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    /// One line without breaks.
    Line,
    /// Text of several lines.
    Text,
    /// A list with a line for each entry.
    List,
}

crate::impl_as_str!(MetadataField);

impl MetadataField {
    /// Returns the form of the field's text.
    pub fn form(self) -> FieldForm {
        if matches!(self.storage(), Storage::Entries { .. }) {
            FieldForm::List
        } else if matches!(self, Self::Description | Self::UsageTerms | Self::EditorNote) {
            FieldForm::Text
        } else {
            FieldForm::Line
        }
    }

    /// Returns whether items of `media_type` have the field. Planned events have neither a photographer nor a
    /// place where a picture was taken.
    pub fn applies_to(self, media_type: MediaType) -> bool {
        let is_of_picture =
            matches!(self, Self::Byline | Self::Credit | Self::City | Self::Country);
        !(media_type.is_planned() && is_of_picture)
    }

    /// Returns `text` in the form of the field: lines end with a line feed, a one-line field has no line breaks,
    /// and a list has neither blank nor repeated lines.
    pub fn normalize(self, text: &str) -> String {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        match self.form() {
            FieldForm::Line => {
                text.split('\n').map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
            }
            FieldForm::Text => text.trim().to_owned(),
            FieldForm::List => lines(&text).join("\n"),
        }
    }

    /// Reads the field from the properties of a document; empty if the document does not have it.
    pub fn text(self, document: &Map<String, Value>) -> String {
        match self.storage() {
            Storage::Text => string(document.get(self.as_str())).to_owned(),
            Storage::Number => match document.get(self.as_str()) {
                Some(Value::Number(number)) => number.to_string(),
                other => string(other).to_owned(),
            },
            Storage::Entries { list, label } => {
                let entries = entries(document, list).filter(|entry| is_of_field(list, entry));
                let labels = entries.map(|entry| string(entry.get(label)));
                labels.filter(|label| !label.is_empty()).collect::<Vec<_>>().join("\n")
            }
            Storage::Related { list, relations, .. } => {
                let found = related(document, list, relations);
                let name = found.and_then(|at| entries(document, list).nth(at));
                string(name.and_then(|entry| entry.get("name"))).to_owned()
            }
        }
    }

    /// Writes the field to the properties of a document; an empty text removes it. A text that the schema does not
    /// allow is written unchanged, so that the validation of the document reports it.
    pub fn write(self, document: &mut Map<String, Value>, text: &str) {
        let text = self.normalize(text);
        if text == self.normalize(&self.text(document)) {
            return;
        }
        match self.storage() {
            Storage::Text => set(document, self.as_str(), Value::from(text.as_str())),
            Storage::Number => {
                let number = text.parse::<u64>().map(Value::from);
                set(document, self.as_str(), number.unwrap_or(Value::from(text.as_str())));
            }
            Storage::Entries { list, label } => write_entries(document, list, label, &text),
            Storage::Related { list, relations, scheme } => {
                write_related(document, list, relations, scheme, &text);
            }
        }
        if self == Self::Byline {
            follow_byline(document, &text);
        }
    }

    /// Returns the location of the field in a document.
    fn storage(self) -> Storage {
        match self {
            Self::Headline
            | Self::Description
            | Self::Byline
            | Self::Source
            | Self::Slugline
            | Self::CopyrightHolder
            | Self::CopyrightNotice
            | Self::UsageTerms
            | Self::EditorNote
            | Self::Language
            | Self::Embargo => Storage::Text,
            Self::Urgency => Storage::Number,
            Self::Persons | Self::Organisations => {
                Storage::Entries { list: self.as_str(), label: "name" }
            }
            Self::Keywords => Storage::Entries { list: SUBJECTS, label: "name" },
            Self::Products => Storage::Entries { list: self.as_str(), label: "code" },
            Self::Credit => {
                Storage::Related { list: "infosource", relations: &CREDIT_RELATIONS, scheme: None }
            }
            Self::City => Storage::Related {
                list: "place",
                relations: &CITY_RELATIONS,
                scheme: Some(PLACE_SCHEME),
            },
            Self::Country => Storage::Related {
                list: "place",
                relations: &COUNTRY_RELATIONS,
                scheme: Some(PLACE_SCHEME),
            },
        }
    }
}

/// Lists the required fields that are missing in a document of `media_type`, as schema violations.
pub fn missing_fields(
    required: &[MetadataField],
    media_type: MediaType,
    document: &Map<String, Value>,
) -> Vec<SchemaViolation> {
    let missing = required
        .iter()
        .filter(|field| field.applies_to(media_type) && field.text(document).trim().is_empty());
    let message = "is required by the house rules";
    missing
        .map(|field| SchemaViolation::new(&format!("/{}", field.as_str()), "required", message))
        .collect()
}

/// The list of subjects, of which only the keywords belong to a field.
const SUBJECTS: &str = "subject";

/// The location of a field in a document.
#[derive(Clone, Copy)]
enum Storage {
    /// A text property with the name of the field.
    Text,
    /// A number property with the name of the field.
    Number,
    /// The entries of a list, each shown by its property `label`.
    Entries { list: &'static str, label: &'static str },
    /// The name of the list entry that has one of these relations.
    Related {
        list: &'static str,
        relations: &'static [&'static str],
        /// The scheme of a new entry.
        scheme: Option<&'static str>,
    },
}

/// Returns whether an entry of `list` belongs to the field of this list. A subject is a keyword by its scheme, or
/// because it has no code.
fn is_of_field(list: &str, entry: &Value) -> bool {
    list != SUBJECTS
        || string(entry.get("scheme")).contains("/keyword/")
        || entry.get("code").is_none()
}

fn string(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn entries<'a>(
    document: &'a Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    document.get(list).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the lines of a list, trimmed, without blank and repeated lines.
fn lines(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

/// Sets a property, or removes it if the value is null or an empty text or list.
fn set(document: &mut Map<String, Value>, name: &str, value: Value) {
    let is_empty_text = value.as_str().is_some_and(str::is_empty);
    if value.is_null() || is_empty_text || value.as_array().is_some_and(Vec::is_empty) {
        // Keeps the order of the other properties.
        document.shift_remove(name);
    } else {
        document.insert(name.to_owned(), value);
    }
}

/// Returns the index of the entry with the first of `relations` that any entry has.
fn related(document: &Map<String, Value>, list: &str, relations: &[&str]) -> Option<usize> {
    relations.iter().find_map(|relation| {
        entries(document, list).position(|entry| string(entry.get("rel")) == *relation)
    })
}

/// Replaces the entries of a list that belong to a field. An entry whose label is in `text` keeps its other
/// properties. Entries of other fields and entries without a label stay.
fn write_entries(document: &mut Map<String, Value>, list: &str, label: &str, text: &str) {
    let mut old: Vec<Value> = entries(document, list).cloned().collect();
    let scheme = if list == SUBJECTS {
        Some(Value::from(KEYWORD_SCHEME))
    } else {
        // Such a list has one scheme, which the agency chose.
        old.iter().find_map(|entry| entry.get("scheme").cloned())
    };
    let mut new: Vec<Value> = Vec::new();
    for line in lines(text) {
        let same = old
            .iter()
            .position(|entry| is_of_field(list, entry) && string(entry.get(label)) == line);
        match same {
            Some(at) => new.push(old.remove(at)),
            None => {
                let mut entry = json!({ label: line });
                if let Some(scheme) = &scheme {
                    entry["scheme"] = scheme.clone();
                }
                new.push(entry);
            }
        }
    }
    old.retain(|entry| !is_of_field(list, entry) || string(entry.get(label)).is_empty());
    old.append(&mut new);
    set(document, list, Value::Array(old));
}

/// Sets the name of the entry with one of these relations. The entry's code belongs to the former name and is
/// removed; the position of a picture stays.
fn write_related(
    document: &mut Map<String, Value>,
    list: &'static str,
    relations: &'static [&'static str],
    scheme: Option<&'static str>,
    text: &str,
) {
    let at = related(document, list, relations);
    let mut all: Vec<Value> = entries(document, list).cloned().collect();
    match at {
        Some(at) if text.is_empty() => match all[at].get("geometry_geojson").cloned() {
            Some(geometry) => all[at] = json!({ "geometry_geojson": geometry }),
            None => drop(all.remove(at)),
        },
        Some(at) => {
            if let Some(entry) = all[at].as_object_mut() {
                entry.insert("name".to_owned(), Value::from(text));
                entry.shift_remove("code");
            }
        }
        None if text.is_empty() => {}
        None => {
            let mut entry = json!({ "name": text, "rel": relations[0] });
            if let Some(scheme) = scheme {
                entry["scheme"] = Value::from(scheme);
            }
            all.push(entry);
        }
    }
    set(document, list, Value::Array(all));
}

/// Makes the list of creators agree with a new byline: removes the names of former creators and keeps a role.
fn follow_byline(document: &mut Map<String, Value>, byline: &str) {
    let role = entries(document, "bylines").find_map(|entry| entry.get("role").cloned());
    let bylines = match role {
        Some(role) if !byline.is_empty() => json!([{ "byline": byline, "role": role }]),
        _ => Value::Null,
    };
    set(document, "bylines", bylines);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(value: Value) -> Map<String, Value> {
        let Value::Object(fields) = value else { panic!("an object") };
        fields
    }

    /// Writes `text`, and compares the field and the document.
    fn check(field: MetadataField, before: Value, text: &str, after: Value) {
        let mut found = document(before);
        field.write(&mut found, text);
        assert_eq!(field.text(&found), field.normalize(text), "{field:?}");
        assert_eq!(found, document(after), "{field:?} {text:?}");
    }

    #[test]
    fn a_text_is_set_and_an_empty_one_removes_it() {
        let headline = MetadataField::Headline;
        check(
            headline,
            json!({}),
            " Ice\r\nin the strait ",
            json!({ "headline": "Ice in the strait" }),
        );
        check(headline, json!({ "headline": "Ice", "source": "x" }), "", json!({ "source": "x" }));
        let description = MetadataField::Description;
        check(description, json!({}), "One\r\ntwo\n", json!({ "description_text": "One\ntwo" }));
        check(MetadataField::Urgency, json!({}), "4", json!({ "urgency": 4 }));
        check(
            MetadataField::Urgency,
            json!({ "urgency": 4 }),
            "high",
            json!({ "urgency": "high" }),
        );
    }

    #[test]
    fn entries_of_a_list_keep_what_a_text_cannot_say() {
        let before = json!({ "person": [{ "name": "Eva", "code": "7" }, { "name": "Ada" }, { "rel": "x" }] });
        let after = json!({ "person": [{ "rel": "x" }, { "name": "Kim" }, { "name": "Eva", "code": "7" }] });
        check(MetadataField::Persons, before, "Kim\n\nEva\nKim", after);
        let before =
            json!({ "subject": [{ "code": "01000000", "name": "Arts" }, { "name": "ice" }] });
        let ice = json!({ "name": "snow", "scheme": KEYWORD_SCHEME });
        let after = json!({ "subject": [{ "code": "01000000", "name": "Arts" }, ice] });
        check(MetadataField::Keywords, before, "snow", after);
        let before = json!({ "product": [{ "code": "FOTO", "name": "Photo", "scheme": "s" }] });
        let after = json!({ "product": [{ "code": "FOTO", "name": "Photo", "scheme": "s" },
            { "code": "SPORT", "scheme": "s" }] });
        check(MetadataField::Products, before, "FOTO\nSPORT", after);
    }

    #[test]
    fn a_city_a_country_and_a_credit_are_entries_of_lists() {
        let point = json!({ "type": "Point", "coordinates": [18.0, 59.0] });
        let city =
            json!({ "name": "Lulea", "rel": "city", "code": "l", "geometry_geojson": point });
        let land = json!({ "name": "Sverige", "rel": "land" });
        let before = json!({ "place": [land, city] });
        let city = json!({ "name": "Luleå", "rel": "city", "geometry_geojson": point });
        check(MetadataField::City, before.clone(), "Luleå", json!({ "place": [land, city] }));
        let kept = json!({ "geometry_geojson": point });
        check(MetadataField::City, before, "", json!({ "place": [land, kept] }));
        let country = json!({ "name": "Norge", "rel": "land", "scheme": PLACE_SCHEME });
        check(MetadataField::Country, json!({}), "Norge", json!({ "place": [country] }));
        let credit = json!({ "infosource": [{ "name": "Agency", "rel": "credit" }] });
        check(MetadataField::Credit, json!({}), "Agency", credit.clone());
        check(MetadataField::Credit, credit, "", json!({}));
    }

    #[test]
    fn creators_follow_the_byline() {
        let before = json!({ "byline": "A", "bylines": [{ "byline": "A", "firstname": "A", "role": "Staff" }] });
        let after = json!({ "byline": "B", "bylines": [{ "byline": "B", "role": "Staff" }] });
        check(MetadataField::Byline, before, "B", after);
        let before = json!({ "byline": "A", "bylines": [{ "byline": "A" }] });
        check(MetadataField::Byline, before, "B", json!({ "byline": "B" }));
    }

    #[test]
    fn a_required_field_that_is_missing_is_named() {
        let required = [MetadataField::Headline, MetadataField::Byline, MetadataField::City];
        let check = |media_type, fields: Value, expected: &[&str]| {
            let found = missing_fields(&required, media_type, &document(fields));
            let paths: Vec<_> = found.iter().map(|one| one.path.as_str()).collect();
            assert_eq!(paths, expected);
        };
        check(MediaType::Image, json!({ "headline": "x", "byline": " " }), &["/byline", "/city"]);
        check(MediaType::Calendar, json!({}), &["/headline"]);
    }
}
