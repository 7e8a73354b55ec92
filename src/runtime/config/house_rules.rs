//! The types of settings for the rules of an editorial desk.

use strum::VariantNames;

use super::SettingValue;
use model::item::MetadataField;

/// The fields that an item needs before editors can save or publish it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredFields(pub Vec<MetadataField>);

impl SettingValue for RequiredFields {
    fn parse(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let fields = names.map(str::parse::<MetadataField>).collect::<Result<Vec<_>, _>>();
        let fields = fields.map_err(|_| {
            let known = MetadataField::VARIANTS.join(", ");
            format!("expected names separated by commas, of {known}")
        })?;
        Ok(Self(fields))
    }
    fn print(&self) -> String {
        self.0.iter().map(|field| field.as_str()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_fields_are_named_by_their_properties() {
        let check = |text: &str, expected: Option<&str>| {
            let parsed = RequiredFields::parse(text).ok().map(|fields| fields.print());
            assert_eq!(parsed.as_deref(), expected, "{text}");
        };
        check("", Some(""));
        check("headline,description_text , byline,", Some("headline, description_text, byline"));
        check("headline, caption", None);
    }
}
