//! Defines the vocabularies whose terms JSON may name by a short code: digital source types and data mining.

/// Maximum number of bytes of a term; the longest terms have about a hundred.
const TERM_BYTES_MAX: usize = 512;

/// A controlled vocabulary with short codes.
#[derive(Debug)]
pub struct Vocabulary {
    /// The URI of a term without its code, starting with `http://`.
    pub base: &'static str,
    /// The known codes, including retired ones, because archives contain them.
    pub codes: &'static [&'static str],
}

/// The origin of a picture, such as a camera or an AI system: a NewsCodes vocabulary of the IPTC.
pub static DIGITAL_SOURCE_TYPES: Vocabulary = Vocabulary {
    base: "http://cv.iptc.org/newscodes/digitalsourcetype/",
    codes: &[
        "digitalCapture",
        "computationalCapture",
        "negativeFilm",
        "positiveFilm",
        "print",
        "minorHumanEdits",
        "humanEdits",
        "compositeCapture",
        "algorithmicallyEnhanced",
        "softwareImage",
        "digitalArt",
        "digitalCreation",
        "dataDrivenMedia",
        "trainedAlgorithmicMedia",
        "algorithmicMedia",
        "screenCapture",
        "virtualRecording",
        "composite",
        "compositeSynthetic",
        "compositeWithTrainedAlgorithmicMedia",
    ],
};

/// The constraint on mining a picture for data: a vocabulary of PLUS LDF.
pub static DATA_MINING: Vocabulary = Vocabulary {
    base: "http://ns.useplus.org/ldf/vocab/",
    codes: &[
        "DMI-UNSPECIFIED",
        "DMI-ALLOWED",
        "DMI-PROHIBITED-AIMLTRAINING",
        "DMI-PROHIBITED-GENAIMLTRAINING",
        "DMI-PROHIBITED-EXCEPTSEARCHENGINEINDEXING",
        "DMI-PROHIBITED",
        "DMI-PROHIBITED-SEECONSTRAINT",
    ],
};

impl Vocabulary {
    /// Converts a code or URI of a term to the URI of the term; returns other text unchanged.
    ///
    /// Returns `None` if the text is too long for a term.
    pub(super) fn normalize(&self, text: &str) -> Option<String> {
        // Terms with `https` are the same terms, and clients compare URIs as texts.
        let authority = self.base.strip_prefix("http://").unwrap_or(self.base);
        let code = text.strip_prefix("https://").and_then(|rest| rest.strip_prefix(authority));
        let code = code.filter(|code| !code.is_empty());
        let term = match code.or(self.codes.contains(&text).then_some(text)) {
            Some(code) => format!("{}{code}", self.base),
            None => text.to_owned(),
        };
        (term.len() <= TERM_BYTES_MAX).then_some(term)
    }

    /// Returns whether a normalized term is a URI rather than an unknown code.
    pub(super) fn is_uri(term: &str) -> bool {
        let Some(rest) = term.strip_prefix("http://").or(term.strip_prefix("https://")) else {
            return false;
        };
        let has_name = rest.starts_with(|c: char| c.is_ascii_alphanumeric());
        has_name && !term.contains(|c: char| c.is_whitespace() || c.is_control())
    }

    /// Returns the code of a term's URI; `None` if the URI does not belong to the vocabulary.
    pub fn code<'a>(&self, uri: &'a str) -> Option<&'a str> {
        uri.strip_prefix(self.base).filter(|code| !code.is_empty())
    }
}
