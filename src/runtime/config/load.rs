//! Reads the settings from file, environment and flags into one map of texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf, absolute};
use std::{env, fmt, fs};

use super::{Config, ConfigError, NAMES, SettingOrigin};

const PREFIX: &str = "WIREPHOTO_";
const DEFAULT_FILE: &str = "wirephoto.toml";
/// The setting with the key that encrypts secrets in the database.
const KEY: &str = "secrets.key";

/// The sources of settings that a command was called with.
#[derive(Clone, Debug, Default)]
pub struct SettingSources {
    /// `--config FILE`; `None`: `wirephoto.toml` is read if it exists.
    pub file: Option<PathBuf>,
    /// Names (`section.key`) and values from flags; the last one wins.
    pub flags: Vec<(String, String)>,
}

/// The values that were set, with their origins.
#[derive(Clone, Debug, Default)]
pub struct RawSettings {
    /// The settings file that was read, as an absolute path.
    file: Option<PathBuf>,
    /// Values and origins, by name.
    values: BTreeMap<String, (String, SettingOrigin)>,
}

impl RawSettings {
    /// Returns the value of `name` and its origin.
    pub(super) fn find(&self, name: &str, default: &str) -> (String, SettingOrigin) {
        self.values
            .get(name)
            .cloned()
            .unwrap_or_else(|| (default.to_owned(), SettingOrigin::Default))
    }

    /// Returns the absolute path of the settings file; `None` if no file was read.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns a warning for each secret that has no effect, although its source has a higher precedence than the
    /// source that names the file of the secret: the file counts wherever it is set.
    pub fn warnings(&self) -> Vec<String> {
        NAMES.iter().filter_map(|name| self.warning(name)).collect()
    }

    /// Returns the warning for the secret in the file that the setting `file` names, if there is one.
    fn warning(&self, file: &str) -> Option<String> {
        let secret = file.strip_suffix("_file")?;
        // The encryption key itself counts before its file; every other file counts before the secret itself.
        let counts = if secret == KEY { secret } else { file };
        let ignored = if secret == KEY { file } else { secret };
        let (counting_value, counting_origin) = self.values.get(counts)?;
        let (ignored_value, ignored_origin) = self.values.get(ignored)?;
        if counting_value.is_empty()
            || ignored_value.is_empty()
            || ignored_origin <= counting_origin
        {
            return None;
        }
        Some(format!(
            "{ignored} ({}) has no effect: {counts} ({}) counts; to use the other one, empty it with --set {counts}=",
            source(ignored, ignored_origin),
            source(counts, counting_origin),
        ))
    }

    fn set(
        &mut self,
        name: String,
        value: String,
        origin: SettingOrigin,
    ) -> Result<(), ConfigError> {
        // If it were ignored, a misspelled setting would silently keep its default.
        if !NAMES.contains(&name.as_str()) {
            let source = origin.as_str();
            return Err(ConfigError(format!(
                "unknown setting {name} ({source}){}",
                suggestion(&name)
            )));
        }
        self.values.insert(name, (value, origin));
        Ok(())
    }
}

/// Reads all settings from file, environment and flags.
///
/// Fails if the file cannot be read or is not TOML, and on an unknown name or a bad value, with the name of
/// the setting in the message.
pub fn load(sources: &SettingSources) -> Result<(Config, RawSettings), ConfigError> {
    let mut values = RawSettings::default();
    // In ascending precedence: each source replaces the values of the sources before it.
    match &sources.file {
        Some(file) => read_file(file, &mut values)?,
        // Optional, because every setting has a default. A file named by the operator must exist.
        None if Path::new(DEFAULT_FILE).exists() => {
            read_file(Path::new(DEFAULT_FILE), &mut values)?;
        }
        None => {}
    }
    read_environment(&mut values)?;
    for (name, value) in &sources.flags {
        values.set(name.clone(), value.clone(), SettingOrigin::Flag)?;
    }
    let config = Config::from_values(&values)?;
    Ok((config, values))
}

/// Builds the error for a value that does not parse or is out of bounds. `quoted` is the value as shown.
pub(super) fn bad_value(
    name: &str,
    quoted: &str,
    origin: &SettingOrigin,
    expected: &str,
) -> ConfigError {
    let source = source(name, origin);
    ConfigError(format!("bad value {quoted} for {name} ({source}): {expected}"))
}

/// Returns the source of a value of `name` as messages name it.
fn source(name: &str, origin: &SettingOrigin) -> String {
    match origin {
        // Operators search for the name of the variable.
        SettingOrigin::Environment => variable(name),
        SettingOrigin::Default | SettingOrigin::File | SettingOrigin::Flag => {
            origin.as_str().to_owned()
        }
    }
}

/// Returns the environment variable that sets `name`.
fn variable(name: &str) -> String {
    // Two underscores separate section and key, because keys contain single ones.
    format!("{PREFIX}{}", name.replacen('.', "__", 1).to_ascii_uppercase())
}

fn read_file(path: &Path, values: &mut RawSettings) -> Result<(), ConfigError> {
    let text = fs::read_to_string(path).map_err(|cause| file_error(path, &cause))?;
    let table = text.parse::<toml::Table>().map_err(|cause| file_error(path, &cause))?;
    // A reader of the log does not know the working directory.
    values.file = Some(absolute(path).unwrap_or_else(|_| path.to_owned()));
    for (section, entry) in table {
        let toml::Value::Table(entries) = entry else {
            return Err(file_error(path, &format!("{section} is not in a section")));
        };
        for (key, value) in entries {
            let name = format!("{section}.{key}");
            let text = scalar(&name, &value).map_err(|error| file_error(path, &error.0))?;
            values
                .set(name, text, SettingOrigin::File)
                .map_err(|error| file_error(path, &error.0))?;
        }
    }
    Ok(())
}

fn file_error(path: &Path, cause: &dyn fmt::Display) -> ConfigError {
    ConfigError(format!("{}: {cause}", path.display()))
}

fn scalar(name: &str, value: &toml::Value) -> Result<String, ConfigError> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(truth) => Ok(truth.to_string()),
        // The same notation as in the environment and in flags, so that one parser reads all.
        toml::Value::Array(entries) => {
            let texts: Result<Vec<_>, _> =
                entries.iter().map(|entry| scalar(name, entry)).collect();
            Ok(texts?.join(","))
        }
        // Presets are tables; like the environment and flags, their parser reads JSON.
        toml::Value::Table(tables) if name == "media.presets" => {
            serde_json::to_string(tables).map_err(|error| ConfigError(format!("{name}: {error}")))
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => {
            Err(ConfigError(format!("{name} is a {}, expected a plain value", value.type_str())))
        }
    }
}

/// Finds the program `name`: a path, or a name to look up in the folders of `PATH`.
///
/// Returns `None` if it does not exist or `name` is empty.
#[expect(clippy::disallowed_methods, reason = "the other place that reads the environment")]
pub fn find_program(name: &Path) -> Option<PathBuf> {
    if name.as_os_str().is_empty() {
        return None;
    }
    // As in a shell, a name with a slash is a path and is not looked up.
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn read_environment(values: &mut RawSettings) -> Result<(), ConfigError> {
    let mut variables: Vec<_> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect();
    // Sorted, so that the first error is the same on each start.
    variables.sort();
    for (variable, value) in variables {
        let rest = variable[PREFIX.len()..].to_ascii_lowercase();
        let name = rest.replacen("__", ".", 1);
        let value = value
            .into_string()
            .map_err(|_| ConfigError(format!("{variable} is not valid UTF-8")))?;
        values
            .set(name, value, SettingOrigin::Environment)
            .map_err(|error| ConfigError(format!("{variable}: {}", error.0)))?;
    }
    Ok(())
}

/// Suggests a name with the same key or the same section, in case of a typing error.
fn suggestion(name: &str) -> String {
    let key = name.rsplit('.').next().unwrap_or(name);
    let same_key = NAMES.iter().find(|setting| setting.rsplit('.').next() == Some(key));
    let section = name.split('.').next().unwrap_or(name);
    match same_key {
        Some(setting) => format!("; did you mean {setting}?"),
        None => {
            let keys: Vec<_> = NAMES
                .iter()
                .filter_map(|setting| setting.strip_prefix(section)?.strip_prefix('.'))
                .collect();
            if keys.is_empty() {
                let mut sections: Vec<_> =
                    NAMES.iter().filter_map(|setting| setting.split('.').next()).collect();
                // The table is grouped by section, so equal names are adjacent.
                sections.dedup();
                return format!("; sections are {}", sections.join(", "));
            }
            format!("; [{section}] has {}", keys.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(toml: &str, flags: &[(&str, &str)]) -> Result<(Config, RawSettings), String> {
        let mut file = tempfile::NamedTempFile::new().expect("temporary file");
        file.write_all(toml.as_bytes()).expect("written");
        let flags = flags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let sources = SettingSources { file: Some(file.path().to_owned()), flags };
        load(&sources).map_err(|error| error.0)
    }

    fn check(toml: &str, flags: &[(&str, &str)]) -> Result<Config, String> {
        read(toml, flags).map(|(config, _)| config)
    }

    #[test]
    fn defaults_are_within_their_bounds_and_print_as_they_stand() {
        let config = check("", &[]).expect("defaults");
        for row in config.rows(&RawSettings::default()) {
            assert_eq!(row.value, row.default, "{}", row.name);
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let config = check("[mail]\npassword = \"hunter2\"", &[]).expect("valid");
        assert_eq!(config.mail.password.0, "hunter2");
        let rows = config.rows(&RawSettings::default());
        let row = rows.iter().find(|row| row.name == "mail.password").expect("row");
        assert_eq!(row.value, "***");
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn a_flag_beats_the_file() {
        let config = check("[media]\npreview_px = 800", &[("media.preview_px", "900")]);
        assert_eq!(config.expect("valid").media.preview_px, 900);
    }

    #[test]
    fn a_flag_does_not_lose_to_the_file_of_a_secret_in_silence() {
        let warnings =
            |toml: &str, flags: &[(&str, &str)]| read(toml, flags).expect("valid").1.warnings();
        let toml = "[database]\npassword_file = \"/run/password\"";
        assert_eq!(
            warnings(toml, &[("database.password", "hunter2")]),
            [
                "database.password (flag) has no effect: database.password_file (file) counts; to use the other one, \
              empty it with --set database.password_file="
            ]
        );
        let emptied = [("database.password", "hunter2"), ("database.password_file", "")];
        assert!(warnings(toml, &emptied).is_empty());
        assert!(warnings(toml, &[]).is_empty());
        // A key counts before its file.
        let key = "[secrets]\nkey = \"00\"";
        let shown = warnings(key, &[("secrets.key_file", "/run/key")]);
        assert!(shown.concat().starts_with("secrets.key_file (flag) has no effect"), "{shown:?}");
    }

    #[test]
    fn the_file_beats_the_default() {
        let config =
            check("[media]\npreview_px = 800\n[server]\ntrusted_proxies = [\"::1\"]", &[]);
        let config = config.expect("valid");
        assert_eq!(config.media.preview_px, 800);
        assert_eq!(config.server.trusted_proxies.0.len(), 1);
    }

    #[test]
    fn err_unknown_or_bad_settings_are_named() {
        for (toml, part) in [
            ("[media]\npreview = 1", "unknown setting media.preview"),
            ("[medja]\npreview_px = 1", "did you mean media.preview_px?"),
            ("[zzz]\nqqq = 1", "sections are server"),
            ("[media]\npreview_px = 1", "expected 16 to 8192"),
            ("[media]\npreview_px = \"x\"", "expected a whole number"),
            ("preview_px = 1", "is not in a section"),
            ("[server]\nlisten = \"nowhere\"", "expected an address and port"),
            ("[server]\npublic_url = \"ftp://x\"", "expected an http://"),
            ("[ingest]\ntimezone = \"Mars/Base\"", "time zone name"),
            ("[server]\nlisten = {a = 1}", "is a table"),
            ("[server", "TOML parse error"),
        ] {
            let message = check(toml, &[]).err().unwrap_or_default();
            assert!(message.contains(part), "{toml:?} gives {message:?}, expected {part:?}");
        }
    }
}
