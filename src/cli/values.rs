//! Parses the values of arguments.

use std::str::FromStr;

use strum::VariantNames;

/// Parses the word of a variant of `T`.
pub(super) fn word<T: FromStr + VariantNames>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected one of {}", T::VARIANTS.join(", ")))
}

/// Parses the name and the value of a setting, `NAME=VALUE`.
pub(super) fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}
