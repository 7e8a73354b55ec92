//! The fields of items in forms: reads them from documents and from what was typed.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde::Serialize;
use serde_json::{Map, Value};
use strum::IntoEnumIterator;

use super::SiteRequest;
use crate::http::form::FormFields;
use crate::http::site::api_client::{ApiRefusal, FieldError};
use model::MediaType;
use model::item::{FieldForm, MetadataField};

/// The form of a time in the browser's own field for it, in the time zone of the site.
const LOCAL_TIME: &str = "%Y-%m-%dT%H:%M";

/// A field as a template shows it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FieldView {
    pub(super) name: &'static str,
    /// `line`, `text`, `list`, `number` or `time`.
    kind: &'static str,
    pub(super) value: String,
    /// The value on which the editor's change is based.
    pub(super) base: String,
    required: bool,
    /// Whether it belongs to the fields that are always shown.
    is_common: bool,
    /// The rules that the typed value breaks.
    pub(super) wrong: Vec<String>,
}

/// The fields that an editor of pictures fills in for nearly every item.
const COMMON: [MetadataField; 8] = [
    MetadataField::Headline,
    MetadataField::Description,
    MetadataField::Byline,
    MetadataField::Credit,
    MetadataField::Persons,
    MetadataField::City,
    MetadataField::Country,
    MetadataField::Keywords,
];

/// What the fields of a form depend on.
pub(super) struct FieldRules {
    required: Vec<MetadataField>,
    zone: TimeZone,
}

impl FieldRules {
    pub(super) fn new(site: &SiteRequest) -> Self {
        let required = site.app.shared.archive.uploads.required_fields().to_vec();
        Self { required, zone: site.app.shared.site.zone.clone() }
    }

    /// The text of a field in a form: that of the document, with times in the site's zone.
    pub(super) fn text(&self, field: MetadataField, document: &Map<String, Value>) -> String {
        let text = field.text(document);
        if field != MetadataField::Embargo {
            return text;
        }
        let time = text.parse::<Timestamp>().map(|time| time.to_zoned(self.zone.clone()));
        time.map_or(text, |time| time.strftime(LOCAL_TIME).to_string())
    }

    /// Writes the text of a form to a document. A text that stands for what the document has changes nothing, so
    /// that the seconds of a time stay.
    pub(super) fn write(
        &self,
        field: MetadataField,
        document: &mut Map<String, Value>,
        text: &str,
    ) {
        if field.normalize(text) == field.normalize(&self.text(field, document)) {
            return;
        }
        field.write(document, &self.stored_text(field, text));
    }

    /// The text of a form as documents have it.
    pub(super) fn stored_text(&self, field: MetadataField, text: &str) -> String {
        let text = field.normalize(text);
        if field != MetadataField::Embargo {
            return text;
        }
        // What is no time is sent as it is, so that the API says what is wrong with it.
        let local = text.replace(' ', "T").parse::<DateTime>();
        let zoned = local.ok().and_then(|local| local.to_zoned(self.zone.clone()).ok());
        match (zoned, text.parse::<Timestamp>()) {
            (Some(zoned), Err(_)) => zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            (Some(_) | None, _) => text,
        }
    }

    /// Shows a field with that value.
    pub(super) fn view(&self, field: MetadataField, value: String, base: String) -> FieldView {
        let required = self.required.contains(&field);
        // An embargo must not hide among the fields that are folded.
        let is_embargo = field == MetadataField::Embargo && !(value.is_empty() && base.is_empty());
        FieldView {
            name: field.as_str(),
            kind: kind(field),
            value,
            base,
            required,
            is_common: required || is_embargo || COMMON.contains(&field),
            wrong: Vec::new(),
        }
    }

    /// Shows the fields of a document of `media_type`.
    pub(super) fn views(
        &self,
        media_type: MediaType,
        document: &Map<String, Value>,
    ) -> Vec<FieldView> {
        let mut views = Vec::new();
        for field in fields_of(media_type) {
            let text = self.text(field, document);
            views.push(self.view(field, text.clone(), text));
        }
        views
    }
}

/// The fields of items of `media_type`, in the order of forms.
pub(super) fn fields_of(media_type: MediaType) -> impl Iterator<Item = MetadataField> {
    MetadataField::iter().filter(move |field| field.applies_to(media_type))
}

fn kind(field: MetadataField) -> &'static str {
    match (field, field.form()) {
        (MetadataField::Urgency, _) => "number",
        (MetadataField::Embargo, _) => "time",
        (_, FieldForm::Line) => "line",
        (_, FieldForm::Text) => "text",
        (_, FieldForm::List) => "list",
    }
}

/// Whether an embargo until `end` holds at `now`. Ingest never ends one whose time cannot be represented, such as
/// the end of the year 9999.
pub(super) fn is_embargoed(end: &str, now: Timestamp) -> bool {
    !end.is_empty() && end.parse::<Timestamp>().ok().is_none_or(|end| end > now)
}

/// The value of a form's field as it was typed, without trimming; `None` if the form does not have it.
pub(super) fn find_typed<'a>(form: &'a FormFields, name: &str) -> Option<&'a str> {
    form.find_untrimmed(name)
}

/// As [`find_typed`]; empty if the form does not have the field.
pub(super) fn typed<'a>(form: &'a FormFields, name: &str) -> &'a str {
    find_typed(form, name).unwrap_or_default()
}

/// Attaches the errors of an API to the fields that they are about; returns the other ones.
pub(super) fn attach_errors(fields: &mut [FieldView], refusal: &ApiRefusal) -> Vec<String> {
    let mut others = Vec::new();
    for error in &refusal.errors {
        let field = field_of_error(error);
        match fields.iter_mut().find(|view| Some(view.name) == field) {
            Some(view) => view.wrong.push(rule_of(error).to_owned()),
            None => others.push(error.message.clone()),
        }
    }
    if refusal.errors.is_empty() {
        others.push(refusal.message.clone());
    }
    others
}

/// The first part of an error's code: the broken rule.
fn rule_of(error: &FieldError) -> &str {
    error.error_code.split('.').next().unwrap_or_default()
}

/// The name of the field that an error is about. The API names properties of the document, some of which hold
/// several fields.
fn field_of_error(error: &FieldError) -> Option<&'static str> {
    let property = error.path.split('.').next().unwrap_or_default();
    property.parse().ok().map(MetadataField::as_str)
}

/// The edits of a form that changes several fields in the same way: kinds and texts by field.
pub(super) struct ModeField {
    pub(super) field: MetadataField,
    /// A word of [`model::item::FieldEdit::KINDS`], or empty to leave the field as it is.
    pub(super) mode: String,
    pub(super) text: String,
}

/// Reads the modes of all fields from a form.
pub(super) fn mode_fields(form: &FormFields) -> Vec<ModeField> {
    let fields = MetadataField::iter().map(|field| ModeField {
        field,
        mode: typed(form, &format!("mode.{}", field.as_str())).to_owned(),
        text: typed(form, field.as_str()).to_owned(),
    });
    fields.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    impl FieldRules {
        /// The rules of an archive in Stockholm that requires a source.
        pub(in crate::http::site::desk) fn for_tests() -> Self {
            let zone = TimeZone::get("Europe/Stockholm").unwrap();
            Self { required: vec![MetadataField::Source], zone }
        }
    }

    fn rules() -> FieldRules {
        FieldRules::for_tests()
    }

    fn document(value: Value) -> Map<String, Value> {
        let Value::Object(fields) = value else { panic!("an object") };
        fields
    }

    #[test]
    fn a_time_is_shown_and_entered_in_the_zone_of_the_site() {
        let (rules, embargo) = (rules(), MetadataField::Embargo);
        let mut stored = document(json!({ "embargoed": "2026-01-31T11:00:30Z" }));
        let shown = rules.text(embargo, &stored);
        assert_eq!(shown, "2026-01-31T12:00");
        rules.write(embargo, &mut stored, &shown);
        assert_eq!(stored["embargoed"], "2026-01-31T11:00:30Z", "it was not touched");
        rules.write(embargo, &mut stored, "2026-07-01 08:30");
        assert_eq!(stored["embargoed"], "2026-07-01T08:30:00+02:00");
        rules.write(embargo, &mut stored, "soon");
        assert_eq!(stored["embargoed"], "soon", "the API says what is wrong");
        rules.write(embargo, &mut stored, "");
        assert!(stored.is_empty());
        let text = "2026-07-01T08:30:00Z";
        assert_eq!(rules.stored_text(embargo, text), text, "a time with its offset stays");
    }

    #[test]
    fn required_fields_are_among_those_that_are_always_shown() {
        let views = rules().views(MediaType::Image, &document(json!({ "source": "Agency" })));
        let source = views.iter().find(|view| view.name == "source").unwrap();
        assert!(source.required && source.is_common);
        assert_eq!((source.value.as_str(), source.base.as_str()), ("Agency", "Agency"));
        let usage = views.iter().find(|view| view.name == "usageterms").unwrap();
        assert!(!usage.required && !usage.is_common);
    }

    #[test]
    fn an_embargo_is_among_the_fields_that_are_always_shown() {
        let check = |value: &str, base: &str, expected: bool| {
            let view = rules().view(MetadataField::Embargo, value.to_owned(), base.to_owned());
            assert_eq!(view.is_common, expected, "{value} {base}");
        };
        check("2035-01-31T12:00", "2035-01-31T12:00", true);
        check("", "2035-01-31T12:00", true);
        check("", "", false);
    }

    #[test]
    fn an_error_is_shown_at_its_field() {
        let error = |code: &str, path: &str| FieldError {
            error_code: format!("{code}.openapi.requestValidation"),
            path: path.to_owned(),
            message: format!("{path} {code}"),
        };
        let refusal = ApiRefusal {
            status: axum::http::StatusCode::BAD_REQUEST,
            message: "Request validation failed".to_owned(),
            errors: vec![
                error("required", "byline"),
                error("type", "person.0.name"),
                error("enum", "sector"),
            ],
        };
        let mut views = rules().views(MediaType::Image, &Map::new());
        assert_eq!(attach_errors(&mut views, &refusal), ["sector enum"]);
        let wrong: Vec<_> =
            views.iter().filter(|view| !view.wrong.is_empty()).map(|view| view.name).collect();
        assert_eq!(wrong, ["byline", "person"]);
        let refusal = ApiRefusal { errors: Vec::new(), ..refusal };
        assert_eq!(attach_errors(&mut views, &refusal), ["Request validation failed"]);
    }
}
