//! Metadata fields in forms: reads them from documents and from submitted forms.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde::Serialize;
use serde_json::{Map, Value};
use strum::IntoEnumIterator;

use super::SiteRequest;
use crate::http::form::FormFields;
use crate::http::site::api_client::{ApiRefusal, FieldError};
use model::MediaType;
use model::item::{FieldForm, MetadataField};

/// The format of the HTML input `datetime-local`; the time is in the site's time zone.
const LOCAL_TIME: &str = "%Y-%m-%dT%H:%M";

/// A field as a template shows it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FieldView {
    pub(super) name: &'static str,
    /// `line`, `text`, `list`, `number` or `time`.
    kind: &'static str,
    pub(super) value: String,
    /// The value from which the editor started.
    pub(super) base: String,
    required: bool,
    /// True if the field is shown even while the rarely used fields are folded.
    is_common: bool,
    /// The names of the rules that the value breaks.
    pub(super) wrong: Vec<String>,
}

/// The fields that a picture editor fills in for nearly every item.
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

/// Settings that the fields of a form depend on.
pub(super) struct FieldRules {
    required: Vec<MetadataField>,
    zone: TimeZone,
}

impl FieldRules {
    pub(super) fn new(site: &SiteRequest) -> Self {
        let required = site.app.shared.archive.uploads.required_fields().to_vec();
        Self { required, zone: site.app.shared.site.zone.clone() }
    }

    /// Returns the text of a field as a form shows it: the document's text, with times in the site's zone.
    pub(super) fn text(&self, field: MetadataField, document: &Map<String, Value>) -> String {
        let text = field.text(document);
        if field != MetadataField::Embargo {
            return text;
        }
        let time = text.parse::<Timestamp>().map(|time| time.to_zoned(self.zone.clone()));
        time.map_or(text, |time| time.strftime(LOCAL_TIME).to_string())
    }

    /// Writes the text of a form to a document. An unchanged text is not written: a form shows times in minutes,
    /// and the seconds would be lost.
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

    /// Converts the text of a form to the format of documents.
    pub(super) fn stored_text(&self, field: MetadataField, text: &str) -> String {
        let text = field.normalize(text);
        if field != MetadataField::Embargo {
            return text;
        }
        // A text that is not a time is sent unchanged, so that the API reports the error.
        let local = text.replace(' ', "T").parse::<DateTime>();
        let zoned = local.ok().and_then(|local| local.to_zoned(self.zone.clone()).ok());
        match (zoned, text.parse::<Timestamp>()) {
            (Some(zoned), Err(_)) => zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            (Some(_) | None, _) => text,
        }
    }

    /// Returns the view of a field with the value `value`.
    pub(super) fn view(&self, field: MetadataField, value: String, base: String) -> FieldView {
        let required = self.required.contains(&field);
        // An embargo must not be hidden among the folded fields.
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

    /// Returns the views of the fields of a document of `media_type`.
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

/// Lists the fields of items of `media_type`, in the order in which forms show them.
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

/// Returns whether an embargo until `end` holds at `now`. An embargo whose end is out of range, such as the end of
/// the year 9999, never ends; ingest does the same.
pub(super) fn is_embargoed(end: &str, now: Timestamp) -> bool {
    !end.is_empty() && end.parse::<Timestamp>().ok().is_none_or(|end| end > now)
}

/// Returns the untrimmed value of a form's field; `None` if the form does not have the field.
pub(super) fn find_typed<'a>(form: &'a FormFields, name: &str) -> Option<&'a str> {
    form.find_untrimmed(name)
}

/// Returns the untrimmed value of a form's field; empty if the form does not have the field.
pub(super) fn typed<'a>(form: &'a FormFields, name: &str) -> &'a str {
    find_typed(form, name).unwrap_or_default()
}

/// Attaches each error of an API to its field; returns the messages of errors that belong to no field.
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

/// Returns the rule that was broken: the first part of the error's code.
fn rule_of(error: &FieldError) -> &str {
    error.error_code.split('.').next().unwrap_or_default()
}

/// Returns the name of the field that an error is about. The API reports properties of the document, and some
/// properties hold several fields.
fn field_of_error(error: &FieldError) -> Option<&'static str> {
    let property = error.path.split('.').next().unwrap_or_default();
    property.parse().ok().map(MetadataField::as_str)
}

/// The edit of one field in a form that applies the same edits to several items.
pub(super) struct ModeField {
    pub(super) field: MetadataField,
    /// The word of a [`model::item::FieldEdit`]; empty to leave the field unchanged.
    pub(super) mode: String,
    pub(super) text: String,
}

/// Reads the edits of all fields from a form.
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
