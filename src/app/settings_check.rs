//! Opens the files that settings name, and tries the values that only a start reads, for `wirephoto config check`.

use std::fs::{self, File};
use std::path::Path;

use super::secrets::check_keys;
use super::services::start_traces;
use super::{bucket_settings, reload};
use crate::distribution::delivery::mail_settings;
use crate::http::SurrogateHeaders;
use crate::media::MediaSettings;
use crate::runtime::config::{Config, SettingRow};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::telemetry::LogFilter;
use crate::runtime::tls_client::CustomAuthority;
use crate::storage::database::Db;
use crate::transport::CachePurger;
use crate::transport::mail_templates::MailTemplates;
use crate::transport::push::Push;

/// The settings of the certificate and its key, which are read together.
const TLS: [&str; 2] = ["server.tls_certificate", "server.tls_key"];
/// Settings whose file the service creates.
const CREATED: [&str; 2] = ["secrets.key_file", "telemetry.log_file"];

/// Opens every file that `rows`, the settings of `config`, name, and reads certificates, their key and mail
/// templates as the service does. Creates nothing and connects to nothing.
///
/// Returns a line for each file that cannot be used, with the name of its setting.
pub fn unusable_files(config: &Config, rows: &[SettingRow]) -> Vec<String> {
    let named = rows.iter().filter(|row| row.unit == "file" && !row.value.is_empty());
    let named = named.filter(|row| !TLS.contains(&row.name));
    let mut problems: Vec<String> = named
        .filter_map(|row| {
            let problem = open(row.name, Path::new(&row.value)).err()?;
            Some(format!("{}: {problem}", row.name))
        })
        .collect();
    problems.extend(reload::certificate(config).err().map(|cause| cause.to_string()));
    let templates = MailTemplates::compile(config.mail_templates_dir());
    problems.extend(templates.err().map(|cause| cause.to_string()));
    problems
}

/// Reads the values of `config` that a setting accepts as text and a start or a reload parses, with the content of the
/// files that they name. Creates nothing and connects to nothing.
///
/// Returns a line for each value that cannot be used, with the name of its setting.
pub fn unusable_values(config: &Config) -> Vec<String> {
    let read = [
        LogFilter::parse(&config.telemetry.log_level).map(drop),
        MediaSettings::from_config(config).map(drop),
        mail_settings(config).map(drop),
        Push::from_config(config).map(drop),
        SurrogateHeaders::from_config(config).map(drop),
        CachePurger::from_settings(&config.cdn).map(drop),
        start_traces(config).map(drop),
        check_keys(config),
        Db::check_address(&config.database.url.0).map_err(Error::from),
        check_bucket(config),
    ];
    read.into_iter().filter_map(Result::err).map(|cause| cause.to_string()).collect()
}

fn check_bucket(config: &Config) -> Result<()> {
    let Some(settings) = bucket_settings(config) else { return Ok(()) };
    let checked = settings.check();
    checked.map_err(|cause| Error::new(ErrorKind::InvalidArgument, cause.to_string()))
}

/// Opens the file `path` of the setting `name`; the error begins with the path.
fn open(name: &str, path: &Path) -> Result<(), String> {
    if name.ends_with("ca") {
        return CustomAuthority::read_file(path).map(drop);
    }
    let shown = path.display();
    if CREATED.contains(&name) && !path.exists() {
        // The parent of a bare name is empty, and the working directory exists.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_none_or(Path::is_dir) {
            return Ok(());
        }
        return Err(format!("{shown} cannot be created: its folder does not exist"));
    }
    let metadata = fs::metadata(path);
    let metadata = metadata.map_err(|cause| format!("{shown} cannot be read: {cause}"))?;
    if metadata.is_dir() {
        return Err(format!("{shown} is a folder"));
    }
    // Opening a pipe would wait for its other end.
    if metadata.is_file() && name != "telemetry.log_file" {
        File::open(path).map_err(|cause| format!("{shown} cannot be read: {cause}"))?;
    }
    Ok(())
}
