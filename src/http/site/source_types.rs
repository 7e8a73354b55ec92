//! Digital source types: codes of the IPTC vocabulary for the origin of a picture.

use serde::Serialize;
use serde_json::Value;

use metadata::rights::DIGITAL_SOURCE_TYPES;

/// The codes for which schema.org has a term: the code with a capital first letter, followed by `DigitalSource`.
/// [`schema_org`] handles the only exception.
const IN_SCHEMA_ORG: [&str; 16] = [
    "algorithmicMedia",
    "algorithmicallyEnhanced",
    "composite",
    "compositeCapture",
    "compositeSynthetic",
    "compositeWithTrainedAlgorithmicMedia",
    "dataDrivenMedia",
    "digitalArt",
    "digitalCapture",
    "minorHumanEdits",
    "negativeFilm",
    "positiveFilm",
    "print",
    "screenCapture",
    "trainedAlgorithmicMedia",
    "virtualRecording",
];

/// The use of generative AI in a picture, which pages show as a badge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AiUse {
    /// A model created the picture.
    Created,
    /// Parts of the picture come from a model.
    Edited,
}

impl AiUse {
    /// Returns the use of generative AI in pictures with this source type; `None` if the type does not indicate
    /// any.
    pub(super) fn from_code(code: &str) -> Option<Self> {
        match code {
            "trainedAlgorithmicMedia" => Some(Self::Created),
            // Since 2024 the vocabulary defines `compositeSynthetic` as a composite with elements of generative
            // AI.
            "compositeWithTrainedAlgorithmicMedia" | "compositeSynthetic" => Some(Self::Edited),
            _ => None,
        }
    }
}

/// Returns the code of the digital source type in a served document. Lists and pages both use it, so that they
/// agree.
pub(super) fn stated_in(document: &Value) -> Option<&str> {
    let vocabulary = DIGITAL_SOURCE_TYPES.base.trim_end_matches('/');
    let mut indicators = document["trustindicator"].as_array()?.iter();
    let indicator = indicators.find(|indicator| {
        // Documents have the scheme with or without the slash at the end.
        let scheme = indicator["scheme"].as_str().map(|scheme| scheme.trim_end_matches('/'));
        scheme == Some(vocabulary)
    })?;
    indicator["code"].as_str()
}

/// Returns the URL of the schema.org term for the source type `uri`; `uri` itself if schema.org has no such term.
pub(super) fn schema_org(uri: &str) -> String {
    let term = match DIGITAL_SOURCE_TYPES.code(uri) {
        Some("computationalCapture") => Some("MultiFrameComputationalCapture".to_owned()),
        Some(code) if IN_SCHEMA_ORG.contains(&code) => {
            Some(format!("{}{}", code[..1].to_ascii_uppercase(), &code[1..]))
        }
        Some(_) | None => None,
    };
    match term {
        Some(term) => format!("https://schema.org/{term}DigitalSource"),
        None => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use metadata::rights::DATA_MINING;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_term_is_that_of_schema_org_where_it_has_one() {
        let check = |code: &str, expected: &str| {
            assert_eq!(schema_org(&format!("{}{code}", DIGITAL_SOURCE_TYPES.base)), expected);
        };
        let ai = "https://schema.org/TrainedAlgorithmicMediaDigitalSource";
        check("trainedAlgorithmicMedia", ai);
        check("minorHumanEdits", "https://schema.org/MinorHumanEditsDigitalSource");
        let frames = "https://schema.org/MultiFrameComputationalCaptureDigitalSource";
        check("computationalCapture", frames);
        check("humanEdits", "http://cv.iptc.org/newscodes/digitalsourcetype/humanEdits");
        assert_eq!(schema_org("https://a.example/x"), "https://a.example/x");
    }

    #[test]
    fn every_term_of_a_vocabulary_has_words_on_pages() {
        let page = include_str!("../../../assets/pages/rights.html");
        for code in DIGITAL_SOURCE_TYPES.codes.iter().chain(DATA_MINING.codes) {
            assert!(page.contains(&format!("\"{code}\": _(")), "{code}");
        }
        for code in IN_SCHEMA_ORG {
            assert!(DIGITAL_SOURCE_TYPES.codes.contains(&code), "{code}");
        }
    }

    #[test]
    fn composites_with_parts_of_a_model_count_as_edited() {
        let by_model: Vec<_> =
            DIGITAL_SOURCE_TYPES.codes.iter().filter_map(|code| AiUse::from_code(code)).collect();
        assert_eq!(by_model, [AiUse::Created, AiUse::Edited, AiUse::Edited]);
        assert_eq!(AiUse::from_code("compositeSynthetic"), Some(AiUse::Edited));
        assert_eq!(AiUse::from_code("composite"), None);
    }

    #[test]
    fn a_document_states_its_source_type_by_the_vocabulary() {
        let base = DIGITAL_SOURCE_TYPES.base;
        for scheme in [base, base.trim_end_matches('/')] {
            let own = json!({ "scheme": scheme, "code": "print" });
            let other = json!({ "scheme": "https://a.example/", "code": "x" });
            let document = json!({ "trustindicator": [{ "title": "Checked" }, other, own] });
            assert_eq!(stated_in(&document), Some("print"), "{scheme}");
        }
        assert_eq!(stated_in(&json!({})), None);
    }
}
