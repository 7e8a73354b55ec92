//! Holds the rights in a document's picture and in its associated pictures, as the formats state them.

use std::collections::BTreeMap;

use metadata::RightsMetadata;
use metadata::rights::DIGITAL_SOURCE_TYPES;
use serde_json::{Map, Value};

/// The effective rights in the pictures of a document.
///
/// If the document has a property too, the document's value is written, because rights in the document have
/// precedence over rights in a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocumentRights {
    /// The rights of the document's own picture.
    pub own: RightsMetadata,
    /// The rights of associated objects, by their keys in `associations`.
    pub associations: BTreeMap<String, RightsMetadata>,
}

/// The digital source type among the trust indicators of a document.
pub(crate) struct SourceTypeIndicator<'a> {
    pub(crate) code: &'a str,
    /// The name of the term; empty if the document has no name.
    pub(crate) title: &'a str,
}

impl<'a> SourceTypeIndicator<'a> {
    /// Finds the first indicator of the vocabulary; documents write it with or without the slash at the end.
    pub(crate) fn find(document: &'a Map<String, Value>) -> Option<Self> {
        let scheme = DIGITAL_SOURCE_TYPES.base.trim_end_matches('/');
        for indicator in document.get("trustindicator")?.as_array()? {
            let code = text(indicator, "code");
            if text(indicator, "scheme").trim_end_matches('/') == scheme && !code.is_empty() {
                return Some(Self { code, title: text(indicator, "title") });
            }
        }
        None
    }

    /// Returns the URI of the term.
    pub(crate) fn uri(&self) -> String {
        format!("{}{}", DIGITAL_SOURCE_TYPES.base, self.code)
    }
}

/// Returns a text of an indicator; empty if the indicator does not have it.
fn text<'a>(indicator: &'a Value, name: &str) -> &'a str {
    indicator.get(name).and_then(Value::as_str).unwrap_or_default()
}
