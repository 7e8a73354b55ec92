//! Parses query parameters (contract api-7, api-8, api-9).
//!
//! Queries are form-encoded: `+` is a space. A list is written `p=a,b`, `p=a&p=b` or `p[]=a&p[]=b`, in any
//! combination; the public client library sends the last form.
//!
//! A parameter without a value, as forms send it (`trs=`), counts as absent.

use std::{ops::RangeInclusive, str::FromStr};

use axum::http::Uri;
use strum::VariantNames;

use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{QUERY_BYTES_MAX, QUERY_VALUES_MAX};
use model::shorten;

/// Longest part of a caller's value that a message repeats, in characters.
const ECHO_CHARS_MAX: usize = 40;

/// The decoded query parameters of a request, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryParameters {
    pairs: Vec<(String, DecodedValue)>,
}

/// A decoded value; `None` when it is not UTF-8.
type DecodedValue = Option<String>;

impl QueryParameters {
    /// Parses the query of `uri`.
    ///
    /// Fails when there are more parameters than the limit.
    pub fn from_uri(uri: &Uri) -> Result<Self> {
        Self::parse(uri.query().unwrap_or_default())
    }

    /// Parses a query string without its question mark.
    ///
    /// A value that is not UTF-8 after decoding is an error only when it is read; a name that is not UTF-8 is
    /// ignored. Fails when the text has more bytes or more parameters than the limits.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > QUERY_BYTES_MAX {
            let message = format!("the query is longer than {QUERY_BYTES_MAX} bytes");
            return Err(Error::invalid("query", "", "maximum", message));
        }
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        // One more than allowed shows that there are too many, without reading the rest.
        let pairs: Vec<_> = pairs.take(QUERY_VALUES_MAX + 1).collect();
        if pairs.len() > QUERY_VALUES_MAX {
            let message = format!("there are more than {QUERY_VALUES_MAX} parameters");
            return Err(Error::invalid("query", "", "maximum", message));
        }
        Ok(Self { pairs: pairs.into_iter().filter_map(decode_pair).collect() })
    }

    /// Returns the decoded parameters, in order.
    pub fn pairs(&self) -> &[(String, Option<String>)] {
        &self.pairs
    }

    /// Returns the parameter `name`; a parameter without a value counts as absent.
    ///
    /// Fails when it occurs more than once, because it is then ambiguous, and when it is not UTF-8.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        self.single(name, |value| value.as_deref() != Some(""))
    }

    /// Returns the field `name` of a form that was sent as the query; empty when the user cleared it.
    ///
    /// Fails as [`QueryParameters::text`] does.
    pub fn field(&self, name: &str) -> Result<Option<&str>> {
        self.single(name, |_| true)
    }

    fn single(&self, name: &str, counts: impl Fn(&DecodedValue) -> bool) -> Result<Option<&str>> {
        let mut found = self.pairs.iter().filter(|(key, value)| key == name && counts(value));
        let first = found.next();
        if found.next().is_some() {
            let message = format!("{name} is given more than once");
            return Err(Error::invalid("query", name, "type", message));
        }
        first.map(|(_, value)| decoded_text(name, value)).transpose()
    }

    /// Reads the parameter `name` as the word of a variant of `T`.
    pub fn variant<T: FromStr + VariantNames>(&self, name: &str) -> Result<Option<T>> {
        self.text(name)?.map(|text| parse_variant(name, text)).transpose()
    }

    /// Reads the parameter `name` as an integer in `range`.
    pub fn integer(&self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let value = parse_integer(name, text)?;
        let (rule, bound) = match value {
            low if low < *range.start() => ("minimum", format!("at least {}", range.start())),
            high if high > *range.end() => ("maximum", format!("at most {}", range.end())),
            _ => return Ok(Some(value)),
        };
        let message = format!("{name} is {}, expected {bound}", shorten(text, ECHO_CHARS_MAX));
        Err(Error::invalid("query", name, rule, message))
    }

    /// Reads the list `name`: its elements in order, trimmed, without empty ones.
    ///
    /// Fails when there are more elements than the limit, and when one is not UTF-8.
    pub fn list(&self, name: &str) -> Result<Vec<&str>> {
        let mut values = Vec::new();
        for (key, value) in &self.pairs {
            // Brackets mark a list in the client library that integrations use (contract api-6).
            if key == name || key.strip_suffix("[]") == Some(name) {
                values.push(decoded_text(name, value)?);
            }
        }
        let elements = values.into_iter().flat_map(elements);
        let elements: Vec<&str> = elements.take(QUERY_VALUES_MAX + 1).collect();
        if elements.len() > QUERY_VALUES_MAX {
            let message = format!("{name} has more than {QUERY_VALUES_MAX} elements");
            return Err(Error::invalid("query", name, "maximum", message));
        }
        Ok(elements)
    }

    /// Reads all values of the repeated parameter `name` unchanged, without empty ones.
    ///
    /// Fails when one is not UTF-8.
    pub fn all(&self, name: &str) -> Result<Vec<&str>> {
        let values =
            self.pairs.iter().filter(|(key, value)| key == name && value.as_deref() != Some(""));
        values.map(|(_, value)| decoded_text(name, value)).collect()
    }

    /// Reads the list `name` of integers.
    pub fn integers(&self, name: &str) -> Result<Vec<i64>> {
        self.list(name)?.into_iter().map(|text| parse_integer(name, text)).collect()
    }
}

/// Splits a comma-separated list into trimmed elements, without empty ones.
pub(in crate::http) fn elements(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|element| !element.is_empty())
}

/// Decodes `name=value`; `None` when the name is not UTF-8.
fn decode_pair(pair: &str) -> Option<(String, DecodedValue)> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    Some((decode(name)?, decode(value)))
}

/// Decodes form encoding: `+` and `%20` are spaces. `None` when the bytes are not UTF-8.
fn decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(text.len());
    let mut position = 0;
    while let Some(byte) = bytes.get(position) {
        let pair = hex_digit(bytes, position + 1).zip(hex_digit(bytes, position + 2));
        let (byte, length) = match (byte, pair) {
            // A `%` without two hex digits is literal, as in browsers.
            (b'%', Some((high, low))) => (u8::try_from(high * 16 + low).ok()?, 3),
            (b'+', _) => (b' ', 1),
            (other, _) => (*other, 1),
        };
        decoded.push(byte);
        position += length;
    }
    String::from_utf8(decoded).ok()
}

fn hex_digit(bytes: &[u8], position: usize) -> Option<u32> {
    char::from(*bytes.get(position)?).to_digit(16)
}

fn decoded_text<'a>(name: &str, value: &'a DecodedValue) -> Result<&'a str> {
    match value.as_deref() {
        Some(text) => Ok(text),
        None => Err(Error::invalid("query", name, "format", format!("{name} is not UTF-8"))),
    }
}

fn parse_variant<T: FromStr + VariantNames>(name: &str, text: &str) -> Result<T> {
    text.parse().map_err(|_| {
        let found = shorten(text, ECHO_CHARS_MAX);
        let words = T::VARIANTS.join(", ");
        let message = format!("{name} is `{found}`, expected one of {words}");
        Error::invalid("query", name, "enum", message)
    })
}

fn parse_integer(name: &str, text: &str) -> Result<i64> {
    api::parse_integer(text).ok_or_else(|| {
        let found = shorten(text, ECHO_CHARS_MAX);
        Error::invalid("query", name, "type", format!("{name} is `{found}`, expected an integer"))
    })
}
