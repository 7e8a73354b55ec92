//! Secrets from a setting or from a file that a setting names.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum bytes of a secret in a file; a cloud's session token has a few thousand.
const BYTES_MAX: u64 = 64 * 1024;

/// The source of a secret: the text itself, or a file that holds it.
///
/// A file is read each time that the secret is used, so a rotated secret takes effect without a restart.
#[derive(Clone)]
pub struct SecretSource {
    setting: &'static str,
    location: SecretLocation,
}

#[derive(Clone)]
enum SecretLocation {
    Text(String),
    File(PathBuf),
}

impl SecretSource {
    /// Creates the source from `text`, or from `file` if the setting `setting` names one.
    pub fn new(text: &str, setting: &'static str, file: &Path) -> Self {
        let location = if file.as_os_str().is_empty() {
            SecretLocation::Text(text.to_owned())
        } else {
            SecretLocation::File(file.to_owned())
        };
        Self { setting, location }
    }

    /// Creates a source from a text in the settings.
    pub fn text(text: &str) -> Self {
        Self { setting: "", location: SecretLocation::Text(text.to_owned()) }
    }

    /// Returns the current secret without a line break at its end.
    ///
    /// Fails if the file cannot be read, is too long or not UTF-8; the error names setting and file.
    pub fn read(&self) -> io::Result<String> {
        let file = match &self.location {
            SecretLocation::Text(text) => return Ok(text.clone()),
            SecretLocation::File(file) => file,
        };
        let mut text = String::new();
        // One byte beyond the limit shows that the file is too long.
        let opened = File::open(file).map_err(|cause| self.file_error(file, &cause))?;
        let read = opened.take(BYTES_MAX + 1).read_to_string(&mut text);
        read.map_err(|cause| self.file_error(file, &cause))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(self.file_error(file, &format!("it has more than {BYTES_MAX} bytes")));
        }
        // Editors add the line break; other white space at the end may belong to the secret.
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    }

    fn file_error(&self, file: &Path, cause: &dyn fmt::Display) -> io::Error {
        io::Error::other(format!("{} {}: {cause}", self.setting, file.display()))
    }

    /// Returns whether no secret is set. A file counts as set even if it cannot be read.
    pub fn is_empty(&self) -> bool {
        match &self.location {
            SecretLocation::Text(text) => text.is_empty(),
            SecretLocation::File(_) => false,
        }
    }

    /// Returns the name of the setting in use: `name`, or the setting with the path of the file.
    pub fn setting(&self, name: &'static str) -> &'static str {
        match &self.location {
            SecretLocation::Text(_) => name,
            SecretLocation::File(_) => self.setting,
        }
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            SecretLocation::Text(text) if text.is_empty() => f.write_str("none"),
            SecretLocation::Text(_) => f.write_str("***"),
            SecretLocation::File(file) => write!(f, "{}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_each_time_and_named_where_it_cannot_be() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("password");
        let secret = SecretSource::new("ignored", "database.password_file", &file);
        let message = secret.read().unwrap_err().to_string();
        assert!(
            message.starts_with("database.password_file ") && message.contains("No such file"),
            "{message}"
        );
        for password in ["first", "second one "] {
            std::fs::write(&file, format!("{password}\n")).unwrap();
            assert_eq!(secret.read().unwrap(), password);
        }
        assert!(!format!("{secret:?}").contains("second"));
        std::fs::write(&file, vec![b'x'; 70_000]).unwrap();
        assert!(secret.read().unwrap_err().to_string().contains("65536 bytes"));
        assert_eq!(SecretSource::new("text", "x", &PathBuf::new()).read().unwrap(), "text");
    }
}
