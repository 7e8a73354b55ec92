//! Builds the template environment: functions and filters that translate texts and format times and numbers.

use std::{collections::HashMap, sync::Arc};

use jiff::{Timestamp, Zoned, civil::Date, tz::TimeZone};
use minijinja::value::{Rest, Serde, Value};
use minijinja::{Environment, UndefinedBehavior};

use crate::http::site::item_links::ItemLinks;
use crate::http::site::language::{PageLanguage, fill_placeholders};
use crate::http::site::picture_sources::picture_sources;
use crate::http::site::{assets, scheme};
use crate::runtime::limits::SELECTION_ITEMS_MAX;

const SWEDISH_MONTHS: [&str; 12] = [
    "jan.", "feb.", "mars", "apr.", "maj", "juni", "juli", "aug.", "sep.", "okt.", "nov.", "dec.",
];

/// Builds the template environment for pages in `language`:
///
/// - `_(text, …)`: the translated text, in which each `{}` is replaced by a value;
/// - `… | when`: a timestamp as date and time; `… | moment`: the same, but only the date if the time is midnight,
///   which is how documents write a date without a time; `… | day`: the date of a timestamp; `… | last_day`: the
///   same, but the previous date if the time is midnight; `zone`: the time zone of these filters; `… | date`: a
///   date without a time, such as `2026-11-30`;
/// - `… | number`: an integer with thousands separators; `… | percent(whole)`: a part in percent;
/// - `… | bytes`: the size of a file; `… | space`: the size of a disk or a cache;
/// - `… | sentence`: an API message as a sentence, translated if known; `… | phrase`: the same as a part of a
///   sentence;
/// - `asset(name)`: the URL of a style sheet, a script, a font or the icon;
/// - `item_links(uri)`: the page and the thumbnail of an item;
/// - `picture_sources(srcset)`: the formats of a picture besides JPEG: AVIF if `offers_avif`;
/// - `scheme()`: the colour scheme of the request: `system`, `light` or `dark`;
/// - `selection_max`: the maximum number of selected items.
///
/// A template that prints, iterates over or converts a property that its context lacks is an error. It may test one,
/// as in `{% if order.reported %}`: API objects leave out properties without a value, and templates look up words in
/// maps that need not have every key, as in `names[code] or code`. The stricter mode of the library forbids both.
pub(crate) fn environment(
    language: PageLanguage,
    texts: &Arc<HashMap<String, String>>,
    zone: &TimeZone,
    offers_avif: bool,
) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    let translations = Arc::clone(texts);
    environment.add_function("_", move |text: &str, values: Rest<Value>| {
        fill_placeholders(translations.get(text).map_or(text, String::as_str), &values)
    });
    let messages = Arc::clone(texts);
    environment
        .add_filter("sentence", move |text: &str| sentence(&messages, without_parameter(text)));
    let phrases = Arc::clone(texts);
    environment.add_filter("phrase", move |text: &str| translate_message(&phrases, text).text);
    let displays = [
        ("when", TimeDisplay::Time),
        ("moment", TimeDisplay::Moment),
        ("day", TimeDisplay::Day),
        ("last_day", TimeDisplay::LastDay),
    ];
    for (name, display) in displays {
        let zone = zone.clone();
        environment
            .add_filter(name, move |time: &str| format_time(language, &zone, time, display));
    }
    environment.add_filter("date", move |date: &str| format_date(language, date));
    environment.add_global("zone", zone.iana_name().unwrap_or("UTC"));
    environment.add_filter("number", move |number: i64| format_thousands(language, number));
    environment.add_filter("percent", percent);
    environment.add_filter("bytes", move |size: u64| size_text(language, size));
    environment.add_filter("space", move |size: u64| space_text(language, size));
    // The URL is safe, and escaping would turn its slashes into entities.
    environment.add_function("asset", |name: &str| Value::from_safe_string(assets::address(name)));
    environment.add_function("item_links", |uri: &str| Value::from(Serde(ItemLinks::new(uri))));
    environment.add_function("picture_sources", move |srcset: &str| {
        Value::from(Serde(picture_sources(srcset, offers_avif)))
    });
    environment.add_function("scheme", || scheme::current_scheme().as_str());
    environment.add_global("selection_max", SELECTION_ITEMS_MAX);
    environment.add_global("lang", language.tag());
    environment
}

/// Escapes a text for HTML that no template writes.
pub(super) fn escaped(text: &str) -> String {
    // The ampersand is escaped first, because otherwise the other escapes would be escaped again.
    let escaped = text.replace('&', "&amp;").replace('"', "&quot;");
    escaped.replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the percentage of `part` in `whole`, rounded down, from 0 to 100.
// A network file system without a limit may report more bytes than 63 bits hold.
fn percent(part: i128, whole: i128) -> i64 {
    let share = part.saturating_mul(100) / whole.max(1);
    i64::try_from(share.clamp(0, 100)).unwrap_or(100)
}

/// API parameters whose names begin an error message. A page shows the message beside the field, so it removes the
/// name.
const PARAMETERS: [&str; 7] = ["q", "p", "agr", "tr", "email", "schedule", "timezone"];

/// Removes the parameter name at the beginning of a message.
fn without_parameter(text: &str) -> &str {
    match text.split_once(": ") {
        Some((name, message)) if PARAMETERS.contains(&name) => message,
        Some(_) | None => text,
    }
}

/// A message in the language of the page.
struct Translated {
    text: String,
    /// True if the text begins with a value, such as a host name, whose case must not change.
    starts_with_value: bool,
}

impl Translated {
    fn words(text: &str) -> Self {
        Self { text: text.to_owned(), starts_with_value: false }
    }
}

/// Formats a message as a sentence: translated, capitalized and with a full stop.
fn sentence(texts: &HashMap<String, String>, message: &str) -> String {
    let Translated { text, starts_with_value } = translate_message(texts, message);
    let text = text.trim();
    let mut letters = text.chars();
    let mut sentence = match letters.next() {
        // A host name or a code at the beginning keeps its case.
        Some(first) if !starts_with_value => first.to_uppercase().chain(letters).collect(),
        Some(_) | None => text.to_owned(),
    };
    // Messages of the API have no full stop. Other texts keep their own punctuation.
    if !sentence.ends_with(['.', '!', '?', '…', ':']) && !sentence.is_empty() {
        sentence.push('.');
    }
    sentence
}

/// Translates a message, either exactly or by a pattern with placeholders: `{} at character {}`.
fn translate_message(texts: &HashMap<String, String>, text: &str) -> Translated {
    if let Some(translation) = texts.get(text) {
        return Translated::words(translation);
    }
    // The most specific pattern wins: the one with the most letters.
    let patterns = texts.iter().filter(|(pattern, _)| pattern.contains("{}"));
    let fitting = patterns.filter_map(|(pattern, translation)| {
        let letters = pattern.chars().filter(|c| c.is_alphabetic()).count();
        // A pattern with hardly any words, such as `{}: {}`, would match almost any message.
        (letters > 7).then_some((letters, pattern, captures(pattern, text)?, translation))
    });
    // The text of the pattern breaks ties, because the order of a hash map varies from run to run.
    let best = fitting.max_by_key(|(letters, pattern, ..)| (*letters, *pattern));
    let Some((_, _, values, translation)) = best else { return Translated::words(text) };
    let is_translated = values.first().is_some_and(|first| texts.contains_key(*first));
    // A value may itself be a text with a translation, such as `an integer`.
    let values = values.into_iter().map(|value| match texts.get(value) {
        Some(value) => Value::from(value.clone()),
        None => Value::from(value),
    });
    Translated {
        text: fill_placeholders(translation, &Rest(values.collect())),
        starts_with_value: translation.starts_with("{}") && !is_translated,
    }
}

/// Returns the text that each `{}` of `pattern` matches in `text`; `None` if the pattern does not match.
fn captures<'a>(pattern: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = pattern.split("{}");
    let mut rest = text.strip_prefix(parts.next()?)?;
    let mut values = Vec::new();
    let parts: Vec<&str> = parts.collect();
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        let end = if !is_last {
            rest.find(part)?
        } else if part.is_empty() {
            rest.len()
        } else {
            // Matched from the end, so that the last value may contain the text that follows it.
            rest.strip_suffix(part)?.len()
        };
        values.push(&rest[..end]);
        rest = &rest[end + part.len()..];
    }
    Some(values)
}

/// The display format of a timestamp.
#[derive(Clone, Copy)]
enum TimeDisplay {
    Time,
    /// Only the date if the time is midnight, else as [`Self::Time`].
    Moment,
    Day,
    /// The date; the previous date if the time is midnight.
    LastDay,
}

/// Formats a timestamp for display; returns the text unchanged if it is not a timestamp.
fn format_time(
    language: PageLanguage,
    zone: &TimeZone,
    text: &str,
    display: TimeDisplay,
) -> String {
    let Ok(time) = text.parse::<Timestamp>() else { return text.to_owned() };
    let time = time.to_zoned(zone.clone());
    match display {
        TimeDisplay::Day => day(language, time.date()),
        TimeDisplay::LastDay => day(language, instant_before(&time).date()),
        TimeDisplay::Moment if time.time() == jiff::civil::Time::midnight() => {
            day(language, time.date())
        }
        TimeDisplay::Time | TimeDisplay::Moment => {
            format!("{} {}", day(language, time.date()), time.strftime("%H:%M"))
        }
    }
}

/// Returns the last instant before `time`.
fn instant_before(time: &Zoned) -> Zoned {
    time.checked_sub(jiff::SignedDuration::from_nanos(1)).unwrap_or_else(|_| time.clone())
}

fn day(language: PageLanguage, date: Date) -> String {
    match language {
        PageLanguage::English => date.strftime("%-d %b %Y").to_string(),
        // `strftime` knows only the English names.
        PageLanguage::Swedish => {
            let month = usize::try_from(date.month()).unwrap_or(1);
            format!("{} {} {}", date.day(), SWEDISH_MONTHS[(month - 1) % 12], date.year())
        }
    }
}

/// Formats a date for display; returns the text unchanged if it is not a date.
fn format_date(language: PageLanguage, text: &str) -> String {
    text.parse::<Date>().map_or_else(|_| text.to_owned(), |date| day(language, date))
}

fn format_thousands(language: PageLanguage, number: i64) -> String {
    let separator = match language {
        PageLanguage::English => ',',
        // A no-break space: a number must not be split between two lines.
        PageLanguage::Swedish => '\u{a0}',
    };
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// Formats the size of a file in kB or MB, rounded up.
pub(super) fn size_text(language: PageLanguage, bytes: u64) -> String {
    if bytes < 100_000 {
        // In megabytes with one decimal, a size below 0.1 MB would be too coarse.
        return format!("{} kB", bytes.div_ceil(1000));
    }
    format!("{} MB", with_tenth(language, bytes.div_ceil(100_000)))
}

/// Formats the size of a disk or a cache in MB, GB or TB, rounded down, so that free space is never overstated.
fn space_text(language: PageLanguage, bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_000_000_000 => (1_000_000, "MB"),
        1_000_000_000..1_000_000_000_000 => (1_000_000_000, "GB"),
        _ => (1_000_000_000_000, "TB"),
    };
    format!("{} {name}", with_tenth(language, bytes / (unit / 10)))
}

/// Formats a number of tenths with one decimal.
fn with_tenth(language: PageLanguage, tenths: u64) -> String {
    let point = match language {
        PageLanguage::English => '.',
        PageLanguage::Swedish => ',',
    };
    format!("{}{point}{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::*;

    #[test]
    fn percentages_are_whole_and_at_most_a_hundred() {
        let check = |part, whole, expected| assert_eq!(percent(part, whole), expected);
        check(2, 3, 66);
        check(5, 0, 100);
        check(-1, 3, 0);
        check(u64::MAX.into(), u64::MAX.into(), 100);
    }

    fn check(language: PageLanguage, template: &str, expected: &str) {
        let texts = match language {
            PageLanguage::English => HashMap::new(),
            PageLanguage::Swedish => {
                HashMap::from([("{} of {}".to_owned(), "{} av {}".to_owned())])
            }
        };
        let zone = TimeZone::get("Europe/Stockholm").unwrap();
        let mut environment = environment(language, &Arc::new(texts), &zone, false);
        environment.add_template("page.html", template).unwrap();
        let page = environment.get_template("page.html").unwrap();
        assert_eq!(page.render(context! { hostile => "<b>" }).unwrap(), expected, "{template}");
    }

    #[test]
    fn a_message_is_translated_with_its_values() {
        let pairs = [
            ("expected a closing quote at character {}", "citattecken saknas vid tecken {}"),
            ("{} is {}, expected at least {}", "{} är {}, minst {} krävs"),
            ("{} is `{}`, expected {}", "{} är `{}`, {} krävs"),
            ("an integer", "ett heltal"),
        ];
        let swedish: HashMap<String, String> =
            pairs.iter().map(|(en, sv)| ((*en).to_owned(), (*sv).to_owned())).collect();
        let check = |text: &str, expected: &str| {
            assert_eq!(translate_message(&swedish, text).text, expected, "{text}");
        };
        check("expected a closing quote at character 5", "citattecken saknas vid tecken 5");
        check("page is 0, expected at least 1", "page är 0, minst 1 krävs");
        check("s is `x`, expected an integer", "s är `x`, ett heltal krävs");
        check("something else", "something else");
        assert_eq!(without_parameter("q: expected a word"), "expected a word");
        assert_eq!(without_parameter("crop: expected a word"), "crop: expected a word");
        check("å is `é`, expected ö", "å är `é`, ö krävs");
    }

    #[test]
    fn a_message_is_shown_as_a_sentence() {
        let texts = [
            ("no channel {}", "kanalen finns inte"),
            ("{}: no answer within {}", "{}: inget svar inom {}"),
            ("{} is missing altogether", "{} saknas"),
            ("name", "namnet"),
        ];
        let texts: HashMap<String, String> =
            texts.map(|(en, sv)| (en.to_owned(), sv.to_owned())).into();
        let check = |message: &str, expected: &str| {
            assert_eq!(sentence(&texts, message), expected, "{message}");
        };
        check("no channel a", "Kanalen finns inte.");
        check("name is missing altogether", "Namnet saknas.");
        check("desk.example: no answer within 5s", "desk.example: inget svar inom 5s.");
        check("something else", "Something else.");
        check("Stop!", "Stop!");
        check("", "");
    }

    #[test]
    fn pages_speak_their_language() {
        check(PageLanguage::English, r#"{{ _("{} of {}", 1, 2) }}"#, "1 of 2");
        check(PageLanguage::Swedish, r#"{{ _("{} of {}", 1, 2) }}"#, "1 av 2");
        check(PageLanguage::Swedish, r#"{{ _("unknown {}", hostile) }}"#, "unknown &lt;b&gt;");
        let time = r#"{{ "2026-05-03T22:30:00Z" | when }}|{{ "2026-05-03T22:30:00Z" | day }}"#;
        check(PageLanguage::English, time, "4 May 2026 00:30|4 May 2026");
        check(PageLanguage::Swedish, time, "4 maj 2026 00:30|4 maj 2026");
        check(PageLanguage::English, r#"{{ "soon" | when }}"#, "soon");
        let event =
            r#"{{ "2026-05-03T22:00:00Z" | moment }}|{{ "2026-05-03T22:30:00Z" | moment }}"#;
        check(PageLanguage::English, event, "4 May 2026|4 May 2026 00:30");
        let end =
            r#"{{ "2035-12-31T23:00:00Z" | last_day }}|{{ "2036-01-01T11:00:00Z" | last_day }}"#;
        check(PageLanguage::English, end, "31 Dec 2035|1 Jan 2036");
        let dates = r#"{{ "2026-03-05" | date }} {{ "x" | date }}"#;
        check(PageLanguage::English, dates, "5 Mar 2026 x");
        check(PageLanguage::Swedish, dates, "5 mars 2026 x");
        check(PageLanguage::English, "{{ zone }}", "Europe&#x2f;Stockholm");
        check(PageLanguage::English, "{{ 1234567 | number }} {{ -12 | number }}", "1,234,567 -12");
        check(PageLanguage::Swedish, "{{ 1000 | number }}", "1\u{a0}000");
        check(PageLanguage::Swedish, "{{ 1250000 | bytes }} {{ 10 | bytes }}", "1,3 MB 1 kB");
        let sizes = "{{ 0 | space }} {{ 1999999999 | space }} {{ 2500000000000 | space }}";
        check(PageLanguage::English, sizes, "0.0 MB 1.9 GB 2.5 TB");
        check(PageLanguage::Swedish, "{{ 999999999 | space }}", "999,9 MB");
        check(PageLanguage::English, "{{ lang }}", "en");
    }
}
