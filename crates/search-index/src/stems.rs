//! Stems words, so that a search for `hund` also finds `hundar`.
//!
//! A document is stemmed in its language. The language of a query is unknown, so its word is
//! stemmed in every language, and each stem is looked up among the documents of that language.
//!
//! Stemming needs the accents, since `å` and `a` in an ending differ: `område` and `omrade` have different stems.
//! So a word is stemmed as spelled, and the accents are removed from the stem afterwards. The spelling of a [`Word`]
//! is `exact`, in lower case with accents, or `folded` if it has no accents and `exact` is `None`.
//!
//! Each word is indexed under its folded stem, without accents, and under its accented stem if the stem has accents:
//! `möten` under `mot` and `möt`. A query looks up one of them, the accented stem if there is one. So, as with whole
//! words, an accent in a query is significant. A query without accents finds every spelling, unless its stem differs
//! from the folded stem of the accented spelling:
//!
//! - Swedish `möte` looks up `möt` and finds `möten`. `mote` looks up `mot` and finds `möten` and `moten`.
//! - Swedish `områden` has the stems `omrad` and `områd`, but `omrade` looks up `omr` and does not find `områden`. It
//!   still finds `område`, since a word is also found as written, whatever its stem.
//! - Finnish `veneessä` has an accent in its ending only. It looks up `vene` and finds `vene` and `veneet`.
//! - The German algorithm stems `haus` and `häuser` to `haus`; for `häuser`, [`restore_accents`] adds `häus`. So
//!   `häuser` looks up `häus` and finds `häusern` but not `haus`. `haus` looks up `haus` and finds all three words.

use std::collections::HashMap;

use frostem::{Algorithm, Stemmer};
use query::{IndexedDocument, TextField, Word, WordPattern, words};
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};

/// Returns whether a search for inflected forms of `searched` finds the word `found` of a text in the language of
/// `tag`: their stems are equal without accents and, if the stem of `searched` has accents, also with them.
///
/// Highlights words of a hit, without the index. So it may accept a word whose stem the index left out.
pub fn is_form_of(found: &Word, searched: &Word, tag: &str) -> bool {
    // Forms differ only in their endings, and the first letter rules out most words of a text.
    found.folded.chars().next() == searched.folded.chars().next()
        // Documents have no stems of words with digits. Only `found` needs the check: a `searched` with a digit cannot
        // equal a stem without one.
        && !found.folded.contains(char::is_numeric)
        && StemLanguage::for_tag(tag).iter().any(|language| {
            let found = language.stem(found);
            let searched = language.stem(searched);
            found.folded == searched.folded
                && (searched.accented.is_none() || found.accented == searched.accented)
        })
}

/// The text fields with stems, each with its letter in the index.
const STEM_FIELDS: [(&str, TextField); 3] =
    [("h", TextField::Headline), ("d", TextField::Description), ("b", TextField::Body)];

/// A language with a stemming algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumIter, IntoStaticStr)]
pub(crate) enum StemLanguage {
    #[strum(serialize = "sv")]
    Swedish,
    #[strum(serialize = "en")]
    English,
    #[strum(serialize = "no")]
    Norwegian,
    #[strum(serialize = "da")]
    Danish,
    #[strum(serialize = "fi")]
    Finnish,
    #[strum(serialize = "de")]
    German,
}

impl StemLanguage {
    /// Returns the languages in which a document with this language tag is stemmed.
    ///
    /// The first part of the tag determines the language, case-insensitively: `en-GB` is English. An unknown or
    /// unsupported language counts as Swedish and English, since photographs often have no language tag.
    pub(crate) fn for_tag(tag: &str) -> &'static [Self] {
        let primary = tag.split(['-', '_']).next().unwrap_or_default();
        match primary.trim().to_ascii_lowercase().as_str() {
            "sv" => &[Self::Swedish],
            "en" => &[Self::English],
            // One algorithm serves both written forms of Norwegian.
            "no" | "nb" | "nn" => &[Self::Norwegian],
            "da" => &[Self::Danish],
            "fi" => &[Self::Finnish],
            "de" => &[Self::German],
            _ => &[Self::Swedish, Self::English],
        }
    }

    /// Returns the code of the language in the index.
    fn code(self) -> &'static str {
        self.into()
    }

    /// Returns the stem of a word.
    pub(crate) fn stem(self, word: &Word) -> Stem {
        let spelled = word.exact.as_deref().unwrap_or(&word.folded);
        let stem = Stemmer::new(self.algorithm()).stem(spelled);
        let folded = fold(&stem);
        let accented = word.exact.as_deref().and_then(|exact| restore_accents(exact, &folded));
        Stem { folded, accented }
    }

    fn algorithm(self) -> Algorithm {
        match self {
            Self::Swedish => Algorithm::Swedish,
            Self::English => Algorithm::English,
            Self::Norwegian => Algorithm::Norwegian,
            Self::Danish => Algorithm::Danish,
            Self::Finnish => Algorithm::Finnish,
            Self::German => Algorithm::German,
        }
    }
}

/// The common part of a word's forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stem {
    /// The stem without accents.
    pub(crate) folded: String,
    /// The stem with the accents of the word; `None` if it has no accents.
    pub(crate) accented: Option<String>,
}

/// Removes the accents from a word.
fn fold(word: &str) -> String {
    if word.is_ascii() {
        return word.to_owned();
    }
    words(word).map(|word| word.folded).collect()
}

/// Returns the stem `folded` with the accents of the word `exact` restored; `None` if the stem has no accents.
///
/// For `straßen` with the stem `strass`, `ß` stands for the `ss` of the stem, and the result is `straß`.
fn restore_accents(exact: &str, folded: &str) -> Option<String> {
    let mut restored = String::with_capacity(exact.len());
    let mut rest = folded;
    let mut buffer = [0; 4];
    for c in exact.chars() {
        // Ends at the first character that does not continue the stem: usually because `rest` is used up, or because
        // the algorithm has changed the ending. Of `naiveti`, the stem of `naïvety`, the rest `i` is appended below. A
        // combining mark that does not compose with its letter folds to an empty text, so it is kept.
        let Some(remaining) = rest.strip_prefix(fold(c.encode_utf8(&mut buffer)).as_str()) else {
            break;
        };
        restored.push(c);
        rest = remaining;
    }
    restored.push_str(rest);
    (restored != folded).then_some(restored)
}

/// The maximum number of words whose stems are cached, about 150 bytes each.
const STEMS_CACHED_MAX: usize = 100_000;

/// Computes the stem terms of documents with a cache: few distinct words make up most texts, and stemming is ten
/// times as slow as a cache hit.
#[derive(Default)]
pub(crate) struct DocumentStemmer {
    /// Stems by language code followed by the word as spelled. All codes have two letters, so that no separator is
    /// needed.
    cache: HashMap<String, CachedStem>,
    /// A reusable buffer for the cache key.
    key: String,
    /// The number of the current text from 1, which identifies it in [`CachedStem`]. It serves all languages of the
    /// text, since the cache key contains the language.
    text_number: u64,
}

/// The cached stem of a word.
struct CachedStem {
    /// `None` for a token that is not stemmed, such as a number.
    stem: Option<Stem>,
    /// The number of the last text in which the word occurred; 0 before the first one.
    text_number: u64,
}

impl DocumentStemmer {
    /// Returns the stem terms of a document, such as `b=sv.hund`, separated by single spaces, possibly repeated.
    /// `accents` contains the tokens of [`IndexedDocument::tags`] for words with accents, such as `b==lågar` in the
    /// body and `==lågar` anywhere.
    ///
    /// Only words of texts have stems. Names of persons and places, bylines, codes and words with digits match
    /// only as written.
    ///
    /// If a text has a word with and without accents, the unaccented spelling gets no stem of its own, since the folded
    /// text does not show the spelling of each occurrence. This matters only if its stem differs from the folded stem
    /// of the accented spelling. For example, the Swedish text `område omrade` is indexed under `omrad` and `områd`,
    /// but not under `omr`, the stem of `omrade`. So a query for `omrades`, with the stem `omr`, does not find it.
    pub(crate) fn document_terms(&mut self, indexed: &IndexedDocument, accents: &str) -> String {
        // In the order of `STEM_FIELDS`.
        let texts = [&indexed.headline, &indexed.description, &indexed.body];
        let languages = StemLanguage::for_tag(&indexed.language);
        let mut terms = String::with_capacity(texts.iter().map(|text| text.len() * 2).sum());
        for ((letter, _), text) in STEM_FIELDS.iter().zip(texts) {
            self.text_number += 1;
            let accented = accented_words(letter, accents);
            for language in languages {
                for spelled in accented.iter().filter_map(|word| word.exact.as_deref()) {
                    if let Some(stem) = self.stem_once(*language, spelled) {
                        push_stem(&mut terms, letter, *language, stem);
                    }
                }
                // Folded words, as in every text of an `IndexedDocument`.
                for word in text.split(' ').filter(|word| !word.is_empty()) {
                    // `has_spelling` is checked after `stem_once`, which already drops repeated words, so the search
                    // runs once per distinct word.
                    let stem = self.stem_once(*language, word);
                    if let Some(stem) = stem.filter(|_| !has_spelling(&accented, word)) {
                        push_stem(&mut terms, letter, *language, stem);
                    }
                }
            }
        }
        terms
    }

    /// Returns the stem of a word as spelled, at its first occurrence in the current text; `None` for a later
    /// occurrence and for a word with a digit.
    fn stem_once(&mut self, language: StemLanguage, spelled: &str) -> Option<&Stem> {
        self.key.clear();
        self.key.push_str(language.code());
        self.key.push_str(spelled);
        if !self.cache.contains_key(&self.key) {
            if self.cache.len() >= STEMS_CACHED_MAX {
                // Clearing everything is rare and keeps the cache simple; frequent words are added again soon.
                self.cache.clear();
            }
            let word = words(spelled).next().filter(|_| !spelled.contains(char::is_numeric));
            let stem = word.map(|word| language.stem(&word));
            self.cache.insert(self.key.clone(), CachedStem { stem, text_number: 0 });
        }
        let cached = self.cache.get_mut(&self.key)?;
        // Only presence is indexed, so a repeated stem would cost space without effect.
        let is_first = cached.text_number != self.text_number;
        cached.text_number = self.text_number;
        cached.stem.as_ref().filter(|_| is_first)
    }
}

/// Returns the words with accents in the text field `letter`, sorted by their folded forms. `accents` is as in
/// [`DocumentStemmer::document_terms`].
fn accented_words(letter: &str, accents: &str) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    for token in accents.split(' ') {
        if let Some((field, word)) = token.split_once("==")
            && field == letter
        {
            found.extend(words(word));
        }
    }
    found.sort_unstable_by(|a, b| a.folded.cmp(&b.folded));
    found
}

/// Returns whether `folded` is the folded form of one of the `sorted` words.
fn has_spelling(sorted: &[Word], folded: &str) -> bool {
    sorted.binary_search_by(|word| word.folded.as_str().cmp(folded)).is_ok()
}

fn push_stem(terms: &mut String, letter: &str, language: StemLanguage, stem: &Stem) {
    for stem in std::iter::once(&stem.folded).chain(&stem.accented) {
        if !terms.is_empty() {
            terms.push(' ');
        }
        push_term(terms, letter, language, stem);
    }
}

/// Returns the search terms for `pattern`, which has one word like every pattern with [`WordPattern::forms`]. A
/// document with a form of the word has at least one of them.
pub(crate) fn query_terms(pattern: &WordPattern) -> Vec<String> {
    let mut terms = Vec::new();
    let [word] = pattern.words.as_slice() else { return terms };
    for language in StemLanguage::iter() {
        let Stem { folded, accented } = language.stem(word);
        // An accent in the query is significant (contract search-14); the index has both spellings of a stem.
        let stem = accented.unwrap_or(folded);
        for (letter, field) in STEM_FIELDS {
            if pattern.place != TextField::Anywhere && pattern.place != field {
                continue;
            }
            let mut term = String::new();
            push_term(&mut term, letter, language, &stem);
            terms.push(term);
        }
    }
    terms
}

fn push_term(terms: &mut String, letter: &str, language: StemLanguage, stem: &str) {
    for part in [letter, "=", language.code(), ".", stem] {
        terms.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: StemLanguage, word: &str, folded: &str, accented: Option<&str>) {
        let word = words(word).next().unwrap();
        let expected = Stem { folded: folded.to_owned(), accented: accented.map(str::to_owned) };
        let advice = "if stems change, raise `ANALYSIS` in crates/search-index/src/lib.rs, which rebuilds the index";
        assert_eq!(language.stem(&word), expected, "{advice}");
    }

    #[test]
    fn stems_match_those_of_existing_indexes() {
        check(StemLanguage::Swedish, "hundarna", "hund", None);
        check(StemLanguage::Swedish, "områden", "omrad", Some("områd"));
        check(StemLanguage::English, "bridges", "bridg", None);
        check(StemLanguage::English, "cafés", "cafe", Some("café"));
        check(StemLanguage::Norwegian, "fjellene", "fjell", None);
        check(StemLanguage::Norwegian, "båtens", "bat", Some("båt"));
        check(StemLanguage::Danish, "gæsterne", "gaest", Some("gæst"));
        check(StemLanguage::Finnish, "kylässä", "kyla", Some("kylä"));
        check(StemLanguage::Finnish, "veneessä", "vene", None);
        check(StemLanguage::German, "Häusern", "haus", Some("häus"));
        check(StemLanguage::German, "Straßen", "strass", Some("straß"));
    }

    #[test]
    fn a_word_of_a_text_is_a_form_of_what_is_searched_for() {
        let check = |found: &str, searched: &str, tag: &str, expected: bool| {
            let [one, other] = [found, searched].map(|text| words(text).next().unwrap());
            assert_eq!(is_form_of(&one, &other, tag), expected, "{found} {searched}");
        };
        check("Hundarna", "hund", "sv", true);
        check("bridges", "bridge", "en-GB", true);
        check("möten", "mote", "sv", true);
        check("moten", "möte", "sv", false);
        check("hundarna", "hund", "fi", false);
        check("hundar", "katt", "", false);
    }

    #[test]
    fn a_tag_says_its_language_in_its_first_part() {
        assert_eq!(StemLanguage::for_tag("nb-NO"), [StemLanguage::Norwegian]);
        assert_eq!(StemLanguage::for_tag("DE"), [StemLanguage::German]);
        assert_eq!(StemLanguage::for_tag("en_GB"), [StemLanguage::English]);
        for other in ["", "fr", "swe", "svenska"] {
            assert_eq!(
                StemLanguage::for_tag(other),
                [StemLanguage::Swedish, StemLanguage::English],
                "{other}"
            );
        }
    }

    #[test]
    fn terms_have_their_place_and_the_spelling_with_an_accent_counts() {
        let indexed = IndexedDocument {
            headline: "hundar moten".to_owned(),
            body: "moten lagar 2026 hund hund".to_owned(),
            language: "sv".to_owned(),
            ..IndexedDocument::default()
        };
        let accents = "==möten ==lågar b==lågar h==möten";
        let mut stemmer = DocumentStemmer::default();
        let terms = stemmer.document_terms(&indexed, accents);
        assert_eq!(stemmer.document_terms(&indexed, accents), terms);
        let mut terms: Vec<&str> = terms.split(' ').collect();
        terms.sort_unstable();
        let expected =
            ["b=sv.hund", "b=sv.lag", "b=sv.låg", "b=sv.mot", "h=sv.hund", "h=sv.mot", "h=sv.möt"];
        assert_eq!(terms, expected);
    }
}
