//! Secrets that stand in the settings or in a file of their own.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Bytes of a secret in a file; a session token of a cloud has some thousands.
const BYTES_MAX: u64 = 64 * 1024;

/// A secret as the settings give it: the text itself, or a file that holds it, which is read again each
/// time that the secret is used. So one that is rotated counts without a restart.
#[derive(Clone)]
pub struct SecretSource {
    setting: &'static str,
    given: SecretLocation,
}

#[derive(Clone)]
enum SecretLocation {
    Text(String),
    File(PathBuf),
}

impl SecretSource {
    /// The secret `text`, or what is in `file` where the setting `setting` names one.
    #[must_use]
    pub fn new(text: &str, setting: &'static str, file: &Path) -> Self {
        let given = match file.as_os_str().is_empty() {
            true => SecretLocation::Text(text.to_owned()),
            false => SecretLocation::File(file.to_owned()),
        };
        Self { setting, given }
    }

    /// A secret that stands in the settings.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { setting: "", given: SecretLocation::Text(text.to_owned()) }
    }

    /// The secret as it is now, without the end of its line.
    ///
    /// Fails with the names of setting and file where the file cannot be read, is too long or no UTF-8.
    pub fn read(&self) -> io::Result<String> {
        let file = match &self.given {
            SecretLocation::Text(text) => return Ok(text.clone()),
            SecretLocation::File(file) => file,
        };
        let named = |cause: &dyn fmt::Display| {
            io::Error::other(format!("{} {}: {cause}", self.setting, file.display()))
        };
        let mut text = String::new();
        let opened = File::open(file).map_err(|cause| named(&cause))?;
        let read = opened.take(BYTES_MAX + 1).read_to_string(&mut text);
        read.map_err(|cause| named(&cause))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(named(&format!("it has more than {BYTES_MAX} bytes")));
        }
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Whether there is none; a file that cannot be read holds one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.given {
            SecretLocation::Text(text) => text.is_empty(),
            SecretLocation::File(_) => false,
        }
    }

    /// The name of the setting with its file; `name` where it stands in the settings.
    #[must_use]
    pub fn setting(&self, name: &'static str) -> &'static str {
        match &self.given {
            SecretLocation::Text(_) => name,
            SecretLocation::File(_) => self.setting,
        }
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.given {
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
        let told = secret.read().unwrap_err().to_string();
        assert!(
            told.starts_with("database.password_file ") && told.contains("No such file"),
            "{told}"
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
