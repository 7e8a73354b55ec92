//! Splits text into words and folds their spelling.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::limits::WORD_CHARS_MAX;

/// A word of a document or a query.
///
/// `a` in a query finds `å` in a document, but `å` does not find `a`: an accent in a query is significant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// Lower case without accents: at most [`WORD_CHARS_MAX`] letters and digits.
    pub folded: String,
    /// Lower case with accents; `None` if the word has no accents.
    pub exact: Option<String>,
}

/// Iterates over the words of a text in order.
///
/// A word is a maximal run of letters and digits of any script with their combining marks. A compatibility form of
/// a letter, such as `ﬁ`, does not count as accented. Folding is idempotent: a folded or exact form folds to
/// itself.
///
/// A word without accents in a query finds every spelling; a word with accents finds only its own spelling.
/// Letters that are not accented but typed as plain letters count as accented too: `o` finds `ø`, `ss` finds `ß`,
/// `ae` finds `æ`.
pub fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    let mut fold = FoldBuffer::default();
    runs(text).filter_map(move |run| fold.word(run))
}

/// Iterates over the words of a text in order, each with its byte range in the text.
pub fn word_spans(text: &str) -> impl Iterator<Item = (Range<usize>, Word)> + '_ {
    let mut fold = FoldBuffer::default();
    let base = text.as_ptr().addr();
    runs(text).filter_map(move |run| {
        // A run is a slice of the text, so its address gives its start.
        let start = run.as_ptr().addr() - base;
        Some((start..start + run.len(), fold.word(run)?))
    })
}

/// Iterates over the runs of characters that form words, unchanged.
pub(super) fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let run = &rest[boundary(rest, true)?..];
        let (run, remainder) = run.split_at(boundary(run, false).unwrap_or(run.len()));
        rest = remainder;
        Some(run)
    })
}

/// Returns the start of the first word in a text if `begins`, else the end of the word at the start of the text.
fn boundary(text: &str, begins: bool) -> Option<usize> {
    let mut position = 0;
    loop {
        let byte = *text.as_bytes().get(position)?;
        // Most text is ASCII, where a byte is a character.
        if byte.is_ascii() {
            if byte.is_ascii_alphanumeric() == begins {
                return Some(position);
            }
            position += 1;
            continue;
        }
        let c = text[position..].chars().next()?;
        if if begins { c.is_alphanumeric() } else { !is_word_character(c) } {
            return Some(position);
        }
        position += c.len_utf8();
    }
}

/// Returns whether a character after a letter or digit belongs to the same word.
pub(super) fn is_word_character(c: char) -> bool {
    c.is_alphanumeric() || (!c.is_ascii() && (is_combining_mark(c) || is_invisible(c)))
}

/// Returns whether `c` is a soft hyphen or joiner, which occurs within words but is not part of the spelling.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}')
}

/// A reusable buffer with the forms of one word.
#[derive(Default)]
pub(super) struct FoldBuffer {
    pub(super) folded: String,
    /// Lower case with accents.
    exact: String,
    /// True if `folded` and `exact` differ.
    accented: bool,
}

impl FoldBuffer {
    /// Folds a run; `false` if it has no letter or digit.
    pub(super) fn read(&mut self, run: &str) -> bool {
        self.folded.clear();
        self.exact.clear();
        self.accented = false;
        // Without accents both forms are the same, and bytes are characters.
        if run.is_ascii() {
            self.folded.push_str(&run[..run.len().min(WORD_CHARS_MAX)]);
            self.folded.make_ascii_lowercase();
            return true;
        }
        if !self.read_latin(run) {
            self.folded.clear();
            self.exact.clear();
            self.read_any(run);
        }
        self.accented = self.folded != self.exact;
        // Letters such as `ß` fold to two letters, so the folded form can exceed the length limit of the exact
        // form.
        if let Some((end, _)) = self.folded.char_indices().nth(WORD_CHARS_MAX) {
            self.folded.truncate(end);
        }
        !self.folded.is_empty()
    }

    /// Returns the accented form, if the word has an accent.
    pub(super) fn exact(&self) -> Option<&str> {
        self.accented.then_some(self.exact.as_str())
    }

    fn word(&mut self, run: &str) -> Option<Word> {
        if !self.read(run) {
            return None;
        }
        Some(Word { folded: self.folded.clone(), exact: self.exact().map(str::to_owned) })
    }

    /// Folds a run that has only Latin-1 letters and digits, the usual case. Returns `false` for any other run.
    fn read_latin(&mut self, run: &str) -> bool {
        for c in run.chars().take(WORD_CHARS_MAX) {
            let Some((exact, folded)) = latin(c) else { return false };
            self.exact.push(exact);
            match folded {
                "" => self.folded.push(exact),
                folded => self.folded.push_str(folded),
            }
        }
        // A combining mark after the cut could belong to the last letter, so the rest is checked too.
        run.chars().skip(WORD_CHARS_MAX).all(|c| latin(c).is_some())
    }

    /// Folds a run of any characters.
    ///
    /// Compatibility forms are decomposed first, because some contain capitals or no letters at all. The word is
    /// cut before accents are removed, so that the exact form folds to the folded form.
    fn read_any(&mut self, run: &str) {
        let letters = run.nfkd().flat_map(char::to_lowercase).map(without_final_form);
        let letters = letters.filter(|&c| c.is_alphanumeric() || is_combining_mark(c));
        // Some compatibility forms decompose to a space and a mark, which would leave the mark at the start.
        let composed = letters.nfkc().skip_while(|c| !c.is_alphanumeric());
        self.exact.extend(composed.take(WORD_CHARS_MAX));
        let unaccented = self.exact.nfkd().filter(|&c| !is_combining_mark(c));
        // Composed again, since the decomposition also splits Hangul syllables.
        for c in unaccented.nfc() {
            match unstroked(c) {
                "" => self.folded.push(c),
                letters => self.folded.push_str(letters),
            }
        }
    }
}

/// Maps the final sigma to the same letter within a word.
fn without_final_form(c: char) -> char {
    if c == 'ς' { 'σ' } else { c }
}

/// Returns the plain letters that people type for `c`, such as `o` for `ø`; empty if there are none in the table.
fn unstroked(c: char) -> &'static str {
    match c {
        'ø' => "o",
        'æ' => "ae",
        'œ' => "oe",
        'ß' => "ss",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ŧ' => "t",
        'ı' => "i",
        'ĸ' => "k",
        'ŋ' => "n",
        _ => "",
    }
}

/// Returns the lower case and the folded form of a Latin-1 letter or digit. The folded form is empty if the letter
/// has no accent.
fn latin(c: char) -> Option<(char, &'static str)> {
    let lower = match c {
        '0'..='9' | 'a'..='z' => return Some((c, "")),
        'A'..='Z' => return Some((c.to_ascii_lowercase(), "")),
        // `×` lies between the two ranges.
        'À'..='Ö' | 'Ø'..='Þ' => c.to_lowercase().next()?,
        _ => c,
    };
    let folded = match lower {
        'à'..='å' => "a",
        'ç' => "c",
        'è'..='ë' => "e",
        'ì'..='ï' => "i",
        'ñ' => "n",
        'ò'..='ö' => "o",
        'ù'..='ü' => "u",
        'ý' | 'ÿ' => "y",
        'ß' | 'æ' | 'ð' | 'ø' | 'þ' => unstroked(lower),
        _ => return None,
    };
    Some((lower, folded))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &[(&str, Option<&str>)]) {
        let found: Vec<_> = words(text).collect();
        let found: Vec<_> =
            found.iter().map(|word| (word.folded.as_str(), word.exact.as_deref())).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        check(
            "STOCKHOLM 20260302\nIsbrytare",
            &[("stockholm", None), ("20260302", None), ("isbrytare", None)],
        );
        check("e-post, A/B", &[("e", None), ("post", None), ("a", None), ("b", None)]);
        check("it's", &[("it", None), ("s", None)]);
        check(" … !!! ", &[]);
    }

    #[test]
    fn accents_are_folded_and_kept() {
        check("Strömmen", &[("strommen", Some("strömmen"))]);
        check("Stro\u{308}mmen", &[("strommen", Some("strömmen"))]);
        check("ÅÄÖ éÉ", &[("aao", Some("åäö")), ("ee", Some("éé"))]);
        check(
            "Łódź Øre Þór",
            &[("lodz", Some("łódź")), ("ore", Some("øre")), ("thor", Some("þór"))],
        );
        check("Straße STRAẞE", &[("strasse", Some("straße")), ("strasse", Some("straße"))]);
        check("Ångström", &[("angstrom", Some("ångström"))]);
    }

    #[test]
    fn words_know_their_place() {
        let text = "– Ö-vik, ﬁn …";
        let found: Vec<_> =
            word_spans(text).map(|(span, word)| (&text[span], word.folded)).collect();
        let expected = [("Ö", "o"), ("vik", "vik"), ("ﬁn", "fin")];
        assert_eq!(found, expected.map(|(written, folded)| (written, folded.to_owned())));
    }

    #[test]
    fn other_forms_of_a_letter_are_no_accents() {
        check("ﬁnal Ｗｉｄｅ", &[("final", None), ("wide", None)]);
        check("ΘΕΟΣ θεος", &[("θεοσ", None), ("θεοσ", None)]);
        check("is\u{ad}brytare", &[("isbrytare", None)]);
        check("한국", &[("한국", None)]);
    }

    #[test]
    fn long_words_are_cut() {
        let long = "ä".repeat(200);
        let (folded, exact) = ("a".repeat(WORD_CHARS_MAX), "ä".repeat(WORD_CHARS_MAX));
        check(&long, &[(&folded, Some(&exact))]);
        check(&"A".repeat(200), &[(&folded, None)]);
    }

    #[test]
    fn the_fast_path_folds_like_the_general_one() {
        for c in ('\u{0}'..='\u{ff}').filter(|c| latin(*c).is_some()) {
            let (mut fast, mut general) = (FoldBuffer::default(), FoldBuffer::default());
            assert!(fast.read_latin(&c.to_string()));
            general.read_any(&c.to_string());
            assert_eq!((fast.folded, fast.exact), (general.folded, general.exact), "{c:?}");
        }
    }

    #[test]
    fn every_letter_folds_to_a_word_that_folds_to_itself() {
        for c in ('\u{80}'..=char::MAX).filter(|c| is_word_character(*c)) {
            let text = format!("a{c}b{c}");
            for word in words(&text) {
                check_stable(&word);
            }
        }
    }

    fn check_stable(word: &Word) {
        let again = |text: &str| words(text).collect::<Vec<_>>();
        let plain = Word { folded: word.folded.clone(), exact: None };
        assert_eq!(again(&word.folded), [plain], "{word:?}");
        let spelling = word.exact.as_ref().unwrap_or(&word.folded);
        assert_eq!(again(spelling), std::slice::from_ref(word));
        assert!(word.folded.chars().all(char::is_alphanumeric), "{word:?}");
    }

    proptest! {
        #[test]
        fn any_word_folds_to_itself(text in any::<String>()) {
            for word in words(&text) {
                check_stable(&word);
            }
        }
    }
}
