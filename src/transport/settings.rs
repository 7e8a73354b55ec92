//! Reads the `settings` object of a channel key by key.
//!
//! The values that were read are collected for listings, with `***` in place of secrets. A key that was not read
//! is an error.

use std::fmt;

use serde_json::{Map, Value};

pub(super) use crate::runtime::json_object::FieldProblem;
use crate::runtime::json_object::{FieldFault, FieldValue, ObjectReader};

/// Nesting depth of folders in a channel's path.
const TRANSPORT_FOLDERS_MAX: usize = 16;
/// Characters of one text in a channel's settings. A certificate chain is the longest.
const TRANSPORT_SETTING_CHARS_MAX: usize = 64 * 1024;

/// The mask that replaces a secret in listings.
pub(super) const HIDDEN: &str = "***";
/// The prefix of setting names in messages.
const PREFIX: &str = "settings.";
/// Maximum number of characters of an unknown setting's name in a message.
const ECHO_CHARS_MAX: usize = 64;

/// Builds the error for a setting `name` that does not match the description `expected`.
pub(super) fn invalid_setting(name: &str, expected: impl Into<String>) -> FieldProblem {
    problem(name, FieldFault::Mismatch(expected.into()))
}

/// Builds the error for a required setting `name` that is missing.
pub(super) fn missing(name: &str) -> FieldProblem {
    problem(name, FieldFault::Missing)
}

fn problem(name: &str, fault: FieldFault) -> FieldProblem {
    FieldProblem { prefix: PREFIX.to_owned(), name: name.to_owned(), fault }
}

/// A secret setting, masked in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct TransportSecret(String);

impl TransportSecret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the secret, which may be sent only to the remote system.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TransportSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// Reads the settings of a channel and collects the settings that may be listed.
pub(super) struct SettingsReader<'a> {
    settings: ObjectReader<'a>,
    listed: Map<String, Value>,
}

impl<'a> SettingsReader<'a> {
    pub(super) fn new(settings: &'a Map<String, Value>) -> Self {
        Self { settings: ObjectReader::new(PREFIX, settings), listed: Map::new() }
    }

    /// Adds `value` to the listing as the setting `name`.
    pub(super) fn record_listed(&mut self, name: &'static str, value: impl Into<Value>) {
        self.listed.insert(name.to_owned(), value.into());
    }

    fn read_text(&mut self, name: &'static str) -> FieldValue<&'a str> {
        self.settings.read(name, "a text of at least one character", |value| {
            let text = value.as_str()?;
            (1..=TRANSPORT_SETTING_CHARS_MAX).contains(&text.len()).then_some(text)
        })
    }

    /// Reads an optional text without control characters, which is listed.
    pub(super) fn find_text(&mut self, name: &'static str) -> FieldValue<String> {
        let Some(text) = self.read_text(name)? else { return Ok(None) };
        let text = one_line(name, text)?;
        self.record_listed(name, text);
        Ok(Some(text.to_owned()))
    }

    /// Reads a required text, which is listed.
    pub(super) fn text(&mut self, name: &'static str) -> Result<String, FieldProblem> {
        self.find_text(name)?.ok_or_else(|| missing(name))
    }

    /// Reads an optional secret, which is listed as `***`.
    pub(super) fn find_secret(&mut self, name: &'static str) -> FieldValue<TransportSecret> {
        let text = self.read_text(name)?;
        if text.is_some() {
            self.record_listed(name, HIDDEN);
        }
        Ok(text.map(TransportSecret::new))
    }

    /// Reads a required secret, which is listed as `***`.
    pub(super) fn secret(&mut self, name: &'static str) -> Result<TransportSecret, FieldProblem> {
        self.find_secret(name)?.ok_or_else(|| missing(name))
    }

    /// Reads an optional secret that must fit into one line of a protocol.
    pub(super) fn find_line(&mut self, name: &'static str) -> FieldValue<TransportSecret> {
        let secret = self.find_secret(name)?;
        if let Some(secret) = &secret {
            one_line(name, secret.reveal())?;
        }
        Ok(secret)
    }

    /// Reads a switch, which is off by default.
    pub(super) fn switch(&mut self, name: &'static str) -> Result<bool, FieldProblem> {
        Ok(self.find_switch(name)?.unwrap_or(false))
    }

    /// Reads an optional switch.
    pub(super) fn find_switch(&mut self, name: &'static str) -> FieldValue<bool> {
        let on = self.settings.flag(name)?;
        if let Some(on) = on {
            self.record_listed(name, on);
        }
        Ok(on)
    }

    /// Reads a port; `default` if it is missing.
    pub(super) fn port(&mut self, name: &'static str, default: u16) -> Result<u16, FieldProblem> {
        let port = self.settings.read(name, "a number from 1 to 65535", |value| {
            u16::try_from(value.as_u64()?).ok().filter(|port| *port > 0)
        })?;
        let port = port.unwrap_or(default);
        self.record_listed(name, port);
        Ok(port)
    }

    /// Reads a required host name or IP address.
    pub(super) fn host(&mut self, name: &'static str) -> Result<String, FieldProblem> {
        let host = self.text(name)?;
        let is_allowed =
            host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        // The 255 octets of a name (RFC 1035 §2.3.4) are 253 characters as text.
        let is_name = is_allowed && host.len() <= 253;
        if is_name || host.parse::<std::net::IpAddr>().is_ok() {
            Ok(host)
        } else {
            Err(invalid_setting(name, "a host name or an address, without a port"))
        }
    }

    /// Reads a required text or list of texts.
    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, FieldProblem> {
        let found = self.settings.read(name, "a text or a list of texts", |value| {
            Some((read_texts(value)?, value.clone()))
        })?;
        let (texts, value) = found.ok_or_else(|| missing(name))?;
        self.record_listed(name, value);
        Ok(texts)
    }

    /// Finishes and returns the settings that may be listed.
    ///
    /// Fails if an unknown setting remains.
    pub(super) fn finish(self) -> Result<Value, FieldProblem> {
        // A key with null counts as missing.
        match self.settings.unknown().find(|(_, value)| !value.is_null()) {
            Some((name, _)) => {
                let name: String = name.chars().take(ECHO_CHARS_MAX).collect();
                Err(problem(&name, FieldFault::Unknown))
            }
            None => Ok(Value::Object(self.listed)),
        }
    }
}

/// Reads a text or a list of at least one text; `None` for any other value.
fn read_texts(value: &Value) -> Option<Vec<String>> {
    let Some(values) = value.as_array() else { return Some(vec![value.as_str()?.to_owned()]) };
    let texts: Vec<String> =
        values.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    (!texts.is_empty()).then_some(texts)
}

fn one_line<'a>(name: &str, text: &'a str) -> Result<&'a str, FieldProblem> {
    if text.chars().any(char::is_control) {
        Err(invalid_setting(name, "one line of text"))
    } else {
        Ok(text)
    }
}

/// A folder on a remote system or below a local root. Its names are never `.` or `..`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderPath {
    /// True if the path begins at the remote root instead of the login directory.
    pub(super) absolute: bool,
    /// The folder names, outermost first.
    pub(super) parts: Vec<String>,
}

impl FolderPath {
    /// Reads the setting `name`; a missing setting means the starting folder.
    ///
    /// Fails on empty names, `.`, `..`, backslashes and control characters, and on an absolute path unless
    /// `absolute` allows it.
    pub(super) fn read(
        fields: &mut SettingsReader<'_>,
        name: &'static str,
        absolute: bool,
    ) -> Result<Self, FieldProblem> {
        let Some(text) = fields.find_text(name)? else { return Ok(Self::default()) };
        let path = Self::parse(&text).filter(|path| absolute || !path.absolute);
        let expected = if absolute {
            "a path without `.`, `..`, empty parts and backslashes"
        } else {
            "a relative path without `.`, `..`, empty parts and backslashes"
        };
        path.ok_or_else(|| invalid_setting(name, expected))
    }

    fn parse(text: &str) -> Option<Self> {
        let absolute = text.starts_with('/');
        let rest = text.strip_prefix('/').unwrap_or(text);
        // A trailing slash is a habit and does not name a further folder.
        let rest = rest.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(rest);
        let parts: Vec<String> = match rest {
            "" => Vec::new(),
            rest => rest.split('/').map(str::to_owned).collect(),
        };
        let is_safe = parts.iter().all(|part| is_safe_name(part));
        let fits = parts.len() <= TRANSPORT_FOLDERS_MAX && is_safe;
        fits.then_some(Self { absolute, parts })
    }
}

fn is_safe_name(name: &str) -> bool {
    // Common file systems allow 255 bytes, and Windows reads a backslash as a separator.
    !matches!(name, "" | "." | "..") && name.len() <= 255 && !name.contains('\\')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    fn reader(settings: &Value) -> SettingsReader<'_> {
        SettingsReader::new(settings.as_object().unwrap())
    }

    #[test]
    fn secrets_are_neither_listed_nor_printed() {
        let settings = json!({"user": "a", "password": "hunter2", "on": null});
        let mut fields = reader(&settings);
        let secret = fields.secret("password").unwrap();
        assert_eq!(format!("{secret:?}"), "***");
        fields.text("user").unwrap();
        let listed = fields.finish().unwrap();
        assert_eq!(listed, json!({"user": "a", "password": "***"}));
    }

    #[test]
    fn errors_name_the_setting_and_no_value() {
        let host = |host: Value| {
            let settings = json!({ "host": host });
            reader(&settings).host("host").map_err(|error| error.to_string())
        };
        assert_eq!(host(Value::Null), Err("settings.host is missing".into()));
        let expected = "settings.host is not a host name or an address, without a port";
        for hostile in ["a b", "h:21", "u:p@h", "[::1]"] {
            assert_eq!(host(hostile.into()), Err(expected.into()));
        }
        assert_eq!(host("::1".into()), Ok("::1".into()));
        let error = reader(&json!({"hots": "x"})).finish().unwrap_err();
        assert_eq!(error.to_string(), "settings.hots is unknown");
        let port = |port: Value| {
            let settings = json!({ "port": port });
            reader(&settings).port("port", 21).map_err(|error| error.to_string())
        };
        assert_eq!(port(Value::Null), Ok(21));
        for hostile in [json!(0), json!(65536), json!("21")] {
            let expected = "settings.port is not a number from 1 to 65535";
            assert_eq!(port(hostile), Err(expected.into()));
        }
    }
}
