//! The `settings` object of a channel, read key by key.
//!
//! What is read is also noted down for lists, secrets as `***`. A key that nobody asked for is an
//! error.

use std::fmt;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::runtime::limits;

/// What stands for a secret in a list.
pub(super) const HIDDEN: &str = "***";

/// A setting of a channel that cannot be used; its text names the setting, never a value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// `settings` is something else.
    #[error("settings is not an object")]
    NotAnObject,
    /// A setting that the method needs.
    #[error("settings.{0} is missing")]
    Missing(&'static str),
    /// A setting that the method does not know.
    #[error("settings.{0} is unknown")]
    Unknown(String),
    /// A setting with a value that cannot be used.
    #[error("settings.{name} is not {expected}")]
    Invalid {
        /// The setting.
        name: &'static str,
        /// What would do.
        expected: String,
    },
}

impl SettingsError {
    pub(super) fn invalid(name: &'static str, expected: impl Into<String>) -> Self {
        Self::Invalid { name, expected: expected.into() }
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the text in.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the other side only.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// The settings that are not read yet, and what may be listed of the others.
pub(super) struct Fields {
    left: Map<String, Value>,
    listed: Map<String, Value>,
}

impl Fields {
    pub(super) fn new(settings: &Value) -> Result<Self, SettingsError> {
        match settings {
            Value::Object(fields) => Ok(Self { left: fields.clone(), listed: Map::new() }),
            Value::Null => Ok(Self { left: Map::new(), listed: Map::new() }),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(SettingsError::NotAnObject)
            }
        }
    }

    /// An absent setting and `null` are the same.
    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// Shows `value` in lists as the setting `name`.
    pub(super) fn list(&mut self, name: &'static str, value: impl Into<Value>) {
        self.listed.insert(name.to_owned(), value.into());
    }

    fn read_text(&mut self, name: &'static str) -> Result<Option<String>, SettingsError> {
        let expected = || SettingsError::invalid(name, "a text of at least one character");
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Err(expected()),
            Some(Value::String(text)) if text.len() <= limits::OUTBOUND_SETTING_CHARS_MAX => {
                Ok(Some(text))
            }
            Some(_) => Err(expected()),
        }
    }

    /// A text that may be listed, without control characters.
    pub(super) fn find_text(
        &mut self,
        name: &'static str,
    ) -> Result<Option<String>, SettingsError> {
        let text = self.read_text(name)?;
        if let Some(text) = &text {
            if text.chars().any(char::is_control) {
                return Err(SettingsError::invalid(name, "one line of text"));
            }
            self.list(name, text.as_str());
        }
        Ok(text)
    }

    /// The same, required.
    pub(super) fn text(&mut self, name: &'static str) -> Result<String, SettingsError> {
        self.find_text(name)?.ok_or(SettingsError::Missing(name))
    }

    /// A text that is never listed.
    pub(super) fn find_secret(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Secret>, SettingsError> {
        let text = self.read_text(name)?;
        if text.is_some() {
            self.list(name, HIDDEN);
        }
        Ok(text.map(Secret))
    }

    /// The same, required.
    pub(super) fn secret(&mut self, name: &'static str) -> Result<Secret, SettingsError> {
        self.find_secret(name)?.ok_or(SettingsError::Missing(name))
    }

    /// A secret that is sent within one line of a protocol.
    pub(super) fn find_line(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Secret>, SettingsError> {
        let secret = self.find_secret(name)?;
        match &secret {
            Some(secret) if secret.0.chars().any(char::is_control) => {
                Err(SettingsError::invalid(name, "one line of text"))
            }
            Some(_) | None => Ok(secret),
        }
    }

    /// A switch; it is off unless it says otherwise.
    pub(super) fn switch(&mut self, name: &'static str) -> Result<bool, SettingsError> {
        Ok(self.find_switch(name)?.unwrap_or(false))
    }

    /// A switch that may be absent.
    pub(super) fn find_switch(
        &mut self,
        name: &'static str,
    ) -> Result<Option<bool>, SettingsError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(on)) => {
                self.list(name, on);
                Ok(Some(on))
            }
            Some(_) => Err(SettingsError::invalid(name, "true or false")),
        }
    }

    /// A port, `default` unless it says otherwise.
    pub(super) fn port(&mut self, name: &'static str, default: u16) -> Result<u16, SettingsError> {
        let port = match self.take(name) {
            None => default,
            Some(value) => value
                .as_u64()
                .and_then(|port| u16::try_from(port).ok())
                .filter(|port| *port > 0)
                .ok_or_else(|| SettingsError::invalid(name, "a number from 1 to 65535"))?,
        };
        self.list(name, port);
        Ok(port)
    }

    /// A host's name or address.
    pub(super) fn host(&mut self, name: &'static str) -> Result<String, SettingsError> {
        let host = self.text(name)?;
        let name_like = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let fits = host.len() <= 253 && host.bytes().all(name_like);
        if fits || host.parse::<std::net::IpAddr>().is_ok() {
            Ok(host)
        } else {
            Err(SettingsError::invalid(name, "a host name or an address, without a port"))
        }
    }

    /// One text or a list of texts.
    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, SettingsError> {
        let expected = || SettingsError::invalid(name, "a text or a list of texts");
        let value = self.take(name).ok_or(SettingsError::Missing(name))?;
        let texts = match &value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(values) => {
                values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        };
        self.list(name, value);
        texts.filter(|texts: &Vec<String>| !texts.is_empty()).ok_or_else(expected)
    }

    /// Ends the reading: what may be listed.
    ///
    /// Fails when a setting is left that nobody asked for.
    pub(super) fn finish(self) -> Result<Value, SettingsError> {
        match self.left.into_iter().find(|(_, value)| !value.is_null()) {
            Some((name, _)) => Err(SettingsError::Unknown(name.chars().take(64).collect())),
            None => Ok(Value::Object(self.listed)),
        }
    }
}

/// A folder in another system, or below a root of ours: names without `.` and `..`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderPath {
    /// Whether it begins at the other system's root and not where a login leads.
    pub(super) absolute: bool,
    /// The folders on the way, outermost first.
    pub(super) parts: Vec<String>,
}

impl FolderPath {
    /// Reads the setting `name`; an absent one is the folder where we are.
    ///
    /// Fails on empty names, `.`, `..`, backslashes and control characters, and on an absolute
    /// path unless `absolute` allows it.
    pub(super) fn read(
        fields: &mut Fields,
        name: &'static str,
        absolute: bool,
    ) -> Result<Self, SettingsError> {
        let Some(text) = fields.find_text(name)? else { return Ok(Self::default()) };
        let path = Self::parse(&text).filter(|path| absolute || !path.absolute);
        let expected = match absolute {
            true => "a path without `.`, `..`, empty parts and backslashes",
            false => "a relative path without `.`, `..`, empty parts and backslashes",
        };
        path.ok_or_else(|| SettingsError::invalid(name, expected))
    }

    fn parse(text: &str) -> Option<Self> {
        let (absolute, rest) = match text.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let rest = rest.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(rest);
        let parts: Vec<String> = match rest {
            "" => Vec::new(),
            rest => rest.split('/').map(str::to_owned).collect(),
        };
        let safe = |part: &String| {
            !matches!(part.as_str(), "" | "." | "..") && part.len() <= 255 && !part.contains('\\')
        };
        let fits = parts.len() <= limits::OUTBOUND_FOLDERS_MAX && parts.iter().all(safe);
        fits.then_some(Self { absolute, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_steps_out_of_its_folder_is_refused() {
        for text in ["..", "a/../b", "a//b", "./a", "a\\b", "//", "a/b/.."] {
            assert_eq!(FolderPath::parse(text), None, "{text}");
        }
        assert_eq!(FolderPath::parse(&"a/".repeat(17)), None);
        let parts = |path: &str| FolderPath::parse(path).unwrap();
        assert_eq!(parts("a/b å/").parts, ["a", "b å"]);
        assert!(parts("/").absolute && parts("/").parts.is_empty());
        assert!(parts("/in").absolute && !parts("in").absolute);
    }

    #[test]
    fn secrets_are_neither_listed_nor_printed() {
        let settings = serde_json::json!({"user": "a", "password": "hunter2", "on": null});
        let mut fields = Fields::new(&settings).unwrap();
        let secret = fields.secret("password").unwrap();
        assert_eq!(format!("{secret:?}"), "***");
        fields.text("user").unwrap();
        let listed = fields.finish().unwrap();
        assert_eq!(listed, serde_json::json!({"user": "a", "password": "***"}));
    }

    #[test]
    fn errors_name_the_setting_and_no_value() {
        let fields = |json: &str| Fields::new(&serde_json::from_str(json).unwrap()).unwrap();
        let host = |json: &str| fields(json).host("host").map_err(|error| error.to_string());
        assert_eq!(host("{}"), Err("settings.host is missing".into()));
        let expected = "settings.host is not a host name or an address, without a port";
        for hostile in [r#""a b""#, r#""h:21""#, r#""u:p@h""#, r#""[::1]""#] {
            assert_eq!(host(&format!(r#"{{"host": {hostile}}}"#)), Err(expected.into()));
        }
        assert_eq!(host(r#"{"host": "::1"}"#), Ok("::1".into()));
        let error = fields(r#"{"hots": "x"}"#).finish().unwrap_err();
        assert_eq!(error.to_string(), "settings.hots is unknown");
        let port = |json| fields(json).port("port", 21).map_err(|error| error.to_string());
        assert_eq!(port("{}"), Ok(21));
        for hostile in [r#"{"port": 0}"#, r#"{"port": 65536}"#, r#"{"port": "21"}"#] {
            let expected = "settings.port is not a number from 1 to 65535";
            assert_eq!(port(hostile), Err(expected.into()), "{hostile}");
        }
    }
}
