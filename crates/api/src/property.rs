//! Rules of properties that are more than their Rust type.
//!
//! The patterns are for `#[schemars(regex(pattern = …))]`, the schemas for `#[schemars(schema_with = "…")]`. An optional property
//! with `schema_with` also needs `#[serde(default)]`, because the derive no longer sees its type.

use std::str::FromStr;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serializer};
use serde_with::{As, DeserializeAs, SerializeAs};
use strum::VariantNames;

use crate::limits::EMAIL_CHARS_MAX;

/// Minimum number of digits of a telephone number; internal numbers of a switchboard have three.
const PHONE_DIGITS_MIN: usize = 3;
/// Maximum number of digits: 15 with the country code (E.164 §6.2.1) and an extension.
const PHONE_DIGITS_MAX: usize = 20;
/// Maximum number of characters, including punctuation and spaces.
const PHONE_CHARS_MAX: usize = 40;

/// The pattern of one line: no control characters.
pub const LINE: &str = r"^[^\x00-\x1f\x7f-\x9f]*$";
/// The pattern of several lines: no control characters but tab, line feed and carriage return.
pub const LINES: &str = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$";
/// The pattern of one line that a person sees: no control characters, and not only spaces.
pub const VISIBLE_LINE: &str =
    r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";
/// The pattern of a list in one text, separated by commas: at least one element.
pub const ELEMENTS: &str = r"[^,\s]";
/// The pattern of a product code: not a `-` alone.
pub(crate) const CODE: &str = r"^(-[^,]*[^,\s]|[^-,\s])[^,]*$";

/// The keyword of a list whose elements are parameters of their own, `p=a&p=b`, because they may contain commas. Its value is
/// the schema of an element that the document shows; the reader accepts every text.
pub(crate) const REPEATED: &str = "x-repeated";

/// One of the words of `T`.
pub fn words<T: VariantNames>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": T::VARIANTS })
}

/// One of the words of `T`, or `null`.
pub fn optional_words<T: VariantNames>(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<_> = T::VARIANTS.iter().map(|word| Some(*word)).chain([None]).collect();
    json_schema!({ "type": ["string", "null"], "enum": words })
}

/// A list of words of `T`.
pub fn lists_of_words<T: VariantNames>(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": words::<T>(generator) })
}

/// A list of news items, whose schema is the document's own.
pub(crate) fn news_items(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "$ref": "#/components/schemas/NewsItem" } })
}

/// An amount of money with two decimals, `1200.00`.
pub fn amount(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^-?\d+\.\d\d$",
        "description": "An amount of money with two decimals.",
        "examples": ["1200.00"],
    })
}

/// Reads a property that a change may clear, for `#[serde(default, deserialize_with = "property::present")]`: `Some(None)` is
/// `null`, and `None` an absent property.
pub fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// A value of the model as its word, for `#[serde(with = "property::Word")]`.
pub type Word = As<EnumWord>;
/// A value that may be absent as its word or `null`.
pub type OptionalWord = As<Option<EnumWord>>;

/// Writes the word of a value, and reads a value from its word.
#[derive(Clone, Copy, Debug)]
pub struct EnumWord;

impl<T: Copy + Into<&'static str>> SerializeAs<T> for EnumWord {
    fn serialize_as<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str((*value).into())
    }
}

impl<'de, T: FromStr> DeserializeAs<'de, T> for EnumWord {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let word = String::deserialize(deserializer)?;
        word.parse().map_err(|_| serde::de::Error::custom("unknown word"))
    }
}

// `serde_with` converts lists too, but only with its feature `alloc`, for which Cargo.lock would name crates that nothing
// uses, a second version of jiff among them.
/// Reads and writes a list of values as their words, for `#[serde(with = "property::word_list")]`.
pub mod word_list {
    use std::str::FromStr;

    use super::{Deserialize, Deserializer, Serializer};

    /// Writes the words of `values`.
    pub fn serialize<T, S>(values: &[T], serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Copy + Into<&'static str>,
        S: Serializer,
    {
        serializer.collect_seq(values.iter().map(|value| Into::<&'static str>::into(*value)))
    }

    /// Reads values from their words.
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
    where
        T: FromStr,
        D: Deserializer<'de>,
    {
        let words = Vec::<String>::deserialize(deserializer)?;
        let values = words.iter().map(|word| word.parse()).collect::<Result<_, _>>();
        values.map_err(|_| serde::de::Error::custom("unknown word"))
    }
}

/// Returns whether `text` is a URI: a scheme, followed only by characters that URIs may contain (RFC 3986).
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let has_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let mut escapes = rest.split('%');
    has_scheme
        && !rest.is_empty()
        && escapes.next().is_some_and(is_plain)
        && escapes.all(begins_with_escape)
}

/// Returns whether URIs may contain all characters of `part` without an escape.
fn is_plain(part: &str) -> bool {
    part.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=".contains(c))
}

/// Returns whether the text after a `%` begins with two hex digits, followed only by plain characters.
fn begins_with_escape(part: &str) -> bool {
    let Some((digits, rest)) = part.split_at_checked(2) else { return false };
    digits.chars().all(|c| c.is_ascii_hexdigit()) && is_plain(rest)
}

/// Returns whether `text` is an e-mail address: a dot-atom, `@` and a domain with a dot (RFC 5321).
///
/// Quoted local parts, address literals and non-ASCII characters are refused: such mail is not delivered
/// everywhere, and most of these addresses are mistakes.
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    // The limits of RFC 5321 §4.5.3.1: 64 octets before the `@`, 254 in all.
    let is_short = text.len() <= EMAIL_CHARS_MAX && local.len() <= 64;
    is_short
        && local.split('.').all(is_atom)
        && domain.contains('.')
        && domain.split('.').all(is_label)
}

/// Returns whether `part` is an atom of the text before the `@`.
fn is_atom(part: &str) -> bool {
    let allowed = "!#$%&'*+/=?^_`{|}~-";
    !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || allowed.contains(c))
}

/// Returns whether `part` is a label of a domain.
fn is_label(part: &str) -> bool {
    let has_outer_hyphen = part.starts_with('-') || part.ends_with('-');
    (1..=63).contains(&part.len())
        && !has_outer_hyphen
        && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Returns whether `text` is a telephone number: 3 to 20 digits, optionally with a leading `+`, and with
/// spaces or any of `-().` and `/` between them.
pub fn is_phone_number(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let rest = text.strip_prefix('+').unwrap_or(text);
    text.chars().count() <= PHONE_CHARS_MAX
        && (PHONE_DIGITS_MIN..=PHONE_DIGITS_MAX).contains(&digits)
        && rest.chars().all(|c| c.is_ascii_digit() || " -()./".contains(c))
}
