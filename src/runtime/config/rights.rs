//! The types of settings about rights in pictures, and about the use of pictures by crawlers.

use super::SettingValue;
use super::value::value_from_text;
use metadata::rights::DATA_MINING;

/// A URL that is published unchanged. Empty means none.
///
/// Unlike a [`BaseUrl`](super::BaseUrl) it may have a query, and a slash at its end stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkUrl(pub String);

impl LinkUrl {
    /// Returns whether `text` is an `http` URL with a host.
    pub(super) fn is_link(text: &str) -> bool {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#']))
            && text.chars().all(|c| c.is_ascii_graphic() && !"\"<>\\`".contains(c))
    }
}

/// A term of the PLUS vocabulary for data mining, without its address; empty means none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataMiningTerm(pub String);

/// The value of the header `Content-Usage` (draft-ietf-aipref-attach), such as `train-ai=n`; empty means none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentUsage(pub String);

impl ContentUsage {
    /// Returns whether `text` is a list of preferences, separated by commas.
    fn are_preferences(text: &str) -> bool {
        text.split(',').all(Self::is_preference)
    }

    /// Returns whether `text` is a preference: a key of a dictionary (RFC 9651 §3.2) that is `y` or `n`.
    fn is_preference(text: &str) -> bool {
        let Some((key, value)) = text.trim().split_once('=') else { return false };
        is_dictionary_key(key) && matches!(value, "y" | "n")
    }
}

fn is_dictionary_key(text: &str) -> bool {
    let starts_well = text.starts_with(|first: char| first.is_ascii_lowercase() || first == '*');
    starts_well
        && text.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        })
}

fn is_term(text: &str) -> bool {
    DATA_MINING.codes.contains(&text)
}

fn term_list() -> String {
    format!("one of {}", DATA_MINING.codes.join(", "))
}

value_from_text! {
    LinkUrl: LinkUrl::is_link, "an http:// or https:// address";
    DataMiningTerm: is_term, term_list();
    ContentUsage: ContentUsage::are_preferences,
        "preferences such as train-ai=n or train-ai=n, search=y";
}

#[cfg(test)]
mod tests {
    use formats::NewsmlVersion;

    use super::*;

    fn check<T: SettingValue>(text: &str, is_valid: bool) {
        match T::parse(text) {
            Ok(value) => assert_eq!((value.print().as_str(), is_valid), (text, true)),
            Err(expected) => assert!(!is_valid, "{text}: {expected}"),
        }
    }

    #[test]
    fn a_link_is_published_as_it_is_written() {
        for text in ["", "https://agency.example/rights/", "http://agency.example/?id=1&a=b#c"] {
            check::<LinkUrl>(text, true);
        }
        for text in
            ["agency.example", "ftp://agency.example", "https://", "https:///x", "http://a b"]
        {
            check::<LinkUrl>(text, false);
        }
    }

    #[test]
    fn only_terms_of_the_vocabulary_are_accepted() {
        DATA_MINING.codes.iter().for_each(|term| check::<DataMiningTerm>(term, true));
        check::<DataMiningTerm>("", true);
        check::<DataMiningTerm>("DMI-MAYBE", false);
        check::<NewsmlVersion>("2.30", true);
        check::<NewsmlVersion>("2.35", true);
        check::<NewsmlVersion>("2.3", false);
    }

    #[test]
    fn a_preference_is_yes_or_no() {
        for text in ["", "train-ai=n", "train-ai=n, search=y"] {
            check::<ContentUsage>(text, true);
        }
        for text in ["train-ai", "train-ai=maybe", "Train=n", "train-ai=n,", "a=n\nb: c"] {
            check::<ContentUsage>(text, false);
        }
    }
}
