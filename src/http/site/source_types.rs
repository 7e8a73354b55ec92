//! Digital source types: how a picture was made, by the code of the IPTC's vocabulary.

use serde::Serialize;

/// The vocabulary, without a slash at its end.
const VOCABULARY: &str = "http://cv.iptc.org/newscodes/digitalsourcetype";

/// The codes that schema.org has a term for. The term is the code with a capital and `DigitalSource` behind it,
/// except for one.
const IN_SCHEMA_ORG: [&str; 15] = [
    "algorithmicMedia",
    "algorithmicallyEnhanced",
    "composite",
    "compositeCapture",
    "compositeSynthetic",
    "compositeWithTrainedAlgorithmicMedia",
    "dataDrivenMedia",
    "digitalArt",
    "digitalCapture",
    "negativeFilm",
    "positiveFilm",
    "print",
    "screenCapture",
    "trainedAlgorithmicMedia",
    "virtualRecording",
];

/// The part that a trained model had in a picture, which pages show as a badge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AiUse {
    /// A model created the picture.
    Created,
    /// Parts of the picture come from a model.
    Edited,
}

impl AiUse {
    /// Returns the part of a model in pictures with this source type.
    pub(super) fn of(code: &str) -> Option<Self> {
        match code {
            "trainedAlgorithmicMedia" => Some(Self::Created),
            "compositeWithTrainedAlgorithmicMedia" | "compositeSynthetic" => Some(Self::Edited),
            _ => None,
        }
    }
}

/// Returns the code of a term's URI; `None` if the term is of another vocabulary.
pub(super) fn code_of(uri: &str) -> Option<&str> {
    let code = uri.strip_prefix(VOCABULARY)?.strip_prefix('/')?;
    (!code.is_empty()).then_some(code)
}

/// Whether `scheme` is the vocabulary; documents write it with or without the slash at the end.
pub(super) fn is_vocabulary(scheme: &str) -> bool {
    scheme.strip_suffix('/').unwrap_or(scheme) == VOCABULARY
}

/// Returns the term of schema.org for the term with this URI, or the URI where schema.org has none.
pub(super) fn schema_org(uri: &str) -> String {
    let term = match code_of(uri) {
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
    use super::*;

    #[test]
    fn a_term_is_that_of_schema_org_where_it_has_one() {
        let check = |code: &str, expected: &str| {
            assert_eq!(schema_org(&format!("{VOCABULARY}/{code}")), expected);
        };
        let ai = "https://schema.org/TrainedAlgorithmicMediaDigitalSource";
        check("trainedAlgorithmicMedia", ai);
        let frames = "https://schema.org/MultiFrameComputationalCaptureDigitalSource";
        check("computationalCapture", frames);
        check("humanEdits", "http://cv.iptc.org/newscodes/digitalsourcetype/humanEdits");
        assert_eq!(schema_org("https://a.example/x"), "https://a.example/x");
        assert!(is_vocabulary(VOCABULARY) && is_vocabulary(&format!("{VOCABULARY}/")));
    }
}
