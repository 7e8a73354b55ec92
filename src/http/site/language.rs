//! The languages of the pages: English, which is the language of the templates, and Swedish.

use std::{collections::HashMap, future::Future, str::FromStr};

use axum::http::{HeaderMap, header};
use minijinja::value::{Rest, Value};
use rust_embed::RustEmbed;
use strum::{EnumString, IntoStaticStr};

use crate::http::session::cookie_value;
use crate::runtime::error::{Error, Result};

/// Languages of an `Accept-Language` header that are considered.
const ACCEPT_LANGUAGES_MAX: usize = 16;

/// A language of the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[derive(EnumString, IntoStaticStr)]
pub(crate) enum PageLanguage {
    #[default]
    #[strum(serialize = "en")]
    English,
    #[strum(serialize = "sv")]
    Swedish,
}

/// The cookie that stores a visitor's choice.
const COOKIE: &str = "wirephoto_language";
/// Seconds for which a visitor's choice is stored: a year.
pub(super) const PREFERENCE_S: u32 = 31_536_000;

#[derive(RustEmbed)]
#[folder = "assets/text/sv/"]
struct SwedishTexts;

#[derive(RustEmbed)]
#[folder = "assets/text/en/"]
struct EnglishTexts;

/// Translations from all files of a language. The key is the English text of a template or an API message.
pub(in crate::http) type Translations = HashMap<String, String>;

/// Loads the translations of `language`. The translations to English only rephrase API messages, which are written
/// for programs.
///
/// Fails if a file is not an object of texts, or if two files translate the same text differently.
pub(in crate::http) fn translations(language: PageLanguage) -> Result<Translations> {
    match language {
        PageLanguage::English => read::<EnglishTexts>(),
        PageLanguage::Swedish => read::<SwedishTexts>(),
    }
}

fn read<Texts: RustEmbed>() -> Result<Translations> {
    let mut all = Translations::new();
    for name in Texts::iter() {
        let Some(file) = Texts::get(&name) else { continue };
        let texts: Translations = serde_json::from_slice(&file.data).map_err(Error::internal)?;
        for (text, translated) in texts {
            let previous = all.insert(text.clone(), translated.clone());
            // Files may share a text, but the order in which they are read must not determine its translation.
            if previous.is_some_and(|previous| previous != translated) {
                return Err(Error::internal(format!("two translations of `{text}`")));
            }
        }
    }
    Ok(all)
}

impl PageLanguage {
    /// Returns the language tag (RFC 5646).
    pub(in crate::http) fn tag(self) -> &'static str {
        self.into()
    }

    /// Returns the language of a request: the visitor's choice, else the browser's most preferred supported
    /// language, else English.
    pub(in crate::http) fn from_headers(headers: &HeaderMap) -> Self {
        chosen(headers, COOKIE).or_else(|| accepted_language(headers)).unwrap_or_default()
    }

    /// Returns the `Set-Cookie` value that stores the choice for a year.
    pub(crate) fn cookie(self) -> String {
        set_preference(COOKIE, self.tag(), PREFERENCE_S)
    }
}

tokio::task_local! {
    static CURRENT_LANGUAGE: PageLanguage;
}

/// Runs `future` with `language` as the language of its pages.
pub(crate) async fn with_language<T>(
    language: PageLanguage,
    future: impl Future<Output = T>,
) -> T {
    CURRENT_LANGUAGE.scope(language, future).await
}

/// Returns the language of the current request; English outside of a request.
pub(in crate::http) fn current_language() -> PageLanguage {
    CURRENT_LANGUAGE.try_with(|language| *language).unwrap_or_default()
}

/// Returns the `Set-Cookie` value that stores a choice of the visitor for `age_s` seconds.
pub(super) fn set_preference(name: &str, value: &str, age_s: u32) -> String {
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age_s}")
}

/// Returns the choice of the visitor that the cookie `name` stores.
pub(super) fn chosen<T: FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    cookie_value(headers, name)?.parse().ok()
}

fn accepted_language(headers: &HeaderMap) -> Option<PageLanguage> {
    let line = headers.get(header::ACCEPT_LANGUAGE)?.to_str().ok()?;
    let mut best: Option<(f32, PageLanguage)> = None;
    for range in line.split(',').take(ACCEPT_LANGUAGES_MAX) {
        let (tag, weight) = range.split_once(';').unwrap_or((range, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Some(1.0), |q| q.parse().ok());
        // `sv-FI` requests Swedish too, because the pages have no regional variants.
        let primary = tag.trim().split('-').next().unwrap_or_default().to_ascii_lowercase();
        if let (Ok(language), Some(weight)) = (primary.parse::<PageLanguage>(), weight)
            // A weight of 0 means that the language is not acceptable (RFC 9110 §12.4.2).
            && weight > 0.0
            // Of equal weights the first in the header wins.
            && best.is_none_or(|(found, _)| weight > found)
        {
            best = Some((weight, language));
        }
    }
    best.map(|(_, language)| language)
}

/// Replaces each `{}` in `text` with the next of `values`.
pub(in crate::http) fn fill_placeholders(text: &str, values: &Rest<Value>) -> String {
    let mut parts = text.split("{}");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    let mut values = values.iter();
    for part in parts {
        // A translation with too many placeholders must not break the page.
        if let Some(value) = values.next() {
            filled.push_str(&value.to_string());
        }
        filled.push_str(part);
    }
    filled
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn of(cookie: &'static str, accept: &'static str) -> PageLanguage {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_static(cookie));
        headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(accept));
        PageLanguage::from_headers(&headers)
    }

    #[test]
    fn a_choice_wins_over_the_browser_and_the_browser_over_english() {
        assert_eq!(of("", ""), PageLanguage::English);
        assert_eq!(of("", "sv-SE,sv;q=0.9,en;q=0.8"), PageLanguage::Swedish);
        assert_eq!(of("", "de, en;q=0.5, sv;q=0.7"), PageLanguage::Swedish);
        assert_eq!(of("", "sv;q=0, en;q=0.1"), PageLanguage::English);
        assert_eq!(of("", "sv;q=x"), PageLanguage::English);
        assert_eq!(of("x=1; wirephoto_language=sv", "en"), PageLanguage::Swedish);
        assert_eq!(of("wirephoto_language=klingon", "sv"), PageLanguage::Swedish);
    }

    /// Extracts the texts of a template: the arguments of `_("…")`.
    fn texts(template: &str) -> Vec<String> {
        let starts = template.match_indices("_(\"");
        let text = |at: usize| {
            let rest = &template[at + 3..];
            rest.split_once('"').map(|(text, _)| text.to_owned())
        };
        starts.filter_map(|(at, _)| text(at)).collect()
    }

    #[test]
    fn every_text_of_a_page_has_its_swedish_with_as_many_places() {
        let swedish = translations(PageLanguage::Swedish).unwrap();
        let pages =
            ["assets/pages", "assets/pages/account", "assets/pages/desk", "assets/pages/operator"];
        let pages = pages.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let (mut missing, mut count) = (Vec::new(), 0);
        for path in pages.map(|page| page.unwrap().path()).filter(|path| path.is_file()) {
            for text in texts(&std::fs::read_to_string(&path).unwrap()) {
                count += 1;
                let places = |text: &str| text.matches("{}").count();
                let found = swedish.get(&text);
                if found.is_none_or(|found| places(found) != places(&text)) {
                    missing.push(format!("{}: {text}", path.display()));
                }
            }
        }
        assert!(count > 500, "{count}");
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn places_are_filled_in_order() {
        let values = |list: &[i64]| Rest(list.iter().map(|one| Value::from(*one)).collect());
        assert_eq!(fill_placeholders("{} of {}", &values(&[1, 2])), "1 of 2");
        assert_eq!(fill_placeholders("{} of {}", &values(&[1])), "1 of ");
        assert_eq!(fill_placeholders("none", &values(&[1])), "none");
    }
}
