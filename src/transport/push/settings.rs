//! Builds push services from the settings: reads key files and certificates, and tests each key once.

use std::{fs, path::Path};

use jiff::Timestamp;
use jsonwebtoken::EncodingKey;
use reqwest::{Url, header::HeaderValue};
use serde_json::Value;

use super::PushServices;
use super::apns::{ApnsClient, ApnsSigner, ProviderTokens};
use super::client::{self, HttpVersions};
use super::fcm::{FcmClient, ServiceAccount};
use crate::runtime::config::{self, BaseUrl};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::tls_client::CustomAuthority;

/// Bytes of a key file or a certificate file for push services.
const PUSH_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Creates the services that the settings describe.
///
/// Fails with a message that names the setting.
pub(super) fn read(settings: &config::Push) -> Result<PushServices> {
    let authority = CustomAuthority::read_file(&settings.ca).map_err(|why| wrong("ca", why))?;
    Ok(PushServices { fcm: fcm(settings, &authority)?, apns: apns(settings, &authority)? })
}

/// Builds an error about the setting `push.{name}`.
fn wrong(name: &str, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("push.{name}: {what}"))
}

/// Reads the file named by the setting `push.{name}`.
fn read_file(name: &str, path: &Path) -> Result<Vec<u8>> {
    let metadata = fs::metadata(path).map_err(|cause| unreadable(name, path, &cause))?;
    // A wrong path must neither block, like a pipe, nor fill the memory.
    if !metadata.is_file() || metadata.len() > PUSH_FILE_BYTES_MAX {
        let shown = path.display();
        let most = PUSH_FILE_BYTES_MAX;
        return Err(wrong(name, format!("{shown} is not a file of at most {most} bytes")));
    }
    fs::read(path).map_err(|cause| unreadable(name, path, &cause))
}

fn unreadable(name: &str, path: &Path, cause: &std::io::Error) -> Error {
    wrong(name, format!("{} cannot be read: {cause}", path.display()))
}

/// Builds the URL `{base}{path}` from the setting `push.{name}`.
fn address(name: &str, base: &BaseUrl, path: &str) -> Result<Url> {
    match Url::parse(&format!("{}{path}", base.0)) {
        Ok(url) if url.host_str().is_some() => Ok(url),
        Ok(_) | Err(_) => Err(wrong(name, "expected an address such as https://push.example.org")),
    }
}

fn fcm(settings: &config::Push, authority: &CustomAuthority) -> Result<Option<FcmClient>> {
    const NAME: &str = "fcm_service_account";
    let path = &settings.fcm_service_account;
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let account = service_account(&read_file(NAME, path)?)
        .map_err(|what| wrong(NAME, format!("{}: {what}", path.display())))?;
    let send = format!("/v1/projects/{}/messages:send", account.project);
    let url = address("fcm_url", &settings.fcm_url, &send)?;
    let client = client::client(authority, HttpVersions::Any)?;
    Ok(Some(FcmClient::new(client, account, url)))
}

/// Parses the key file of a service account. Errors do not quote its content.
fn service_account(json: &[u8]) -> Result<ServiceAccount, String> {
    const UNUSABLE_KEY: &str = "has a private_key that is not an RSA key in PEM (PKCS #8)";
    let file: Value = serde_json::from_slice(json).map_err(|_| "is not JSON".to_owned())?;
    let audience = text(&file, "token_uri")?.to_owned();
    let token_url = Url::parse(&audience).ok().filter(|url| url.host_str().is_some());
    let project = text(&file, "project_id")?.to_owned();
    // An id may begin with a domain: `example.org:name`.
    if !project.chars().all(|c| c.is_ascii_alphanumeric() || "-._:".contains(c)) {
        return Err("has an invalid project_id".to_owned());
    }
    let email = text(&file, "client_email")?.to_owned();
    let key = EncodingKey::from_rsa_pem(text(&file, "private_key")?.as_bytes());
    let account = ServiceAccount {
        email,
        key: key.map_err(|_| UNUSABLE_KEY)?,
        key_id: find_text(&file, "private_key_id").map(str::to_owned),
        token_url: token_url.ok_or("has a token_uri that is not an address")?,
        audience,
        project,
    };
    // Only signing proves that the key is usable.
    account.sign(Timestamp::UNIX_EPOCH).map_err(|_| UNUSABLE_KEY)?;
    Ok(account)
}

/// Finds a text in a key file; an empty text counts as missing.
fn find_text<'a>(file: &'a Value, name: &str) -> Option<&'a str> {
    file[name].as_str().filter(|text| !text.is_empty())
}

fn text<'a>(file: &'a Value, name: &str) -> Result<&'a str, String> {
    find_text(file, name).ok_or_else(|| format!("has no {name}"))
}

fn apns(settings: &config::Push, authority: &CustomAuthority) -> Result<Option<ApnsClient>> {
    let others = [
        ("apns_key_id", &settings.apns_key_id),
        ("apns_team_id", &settings.apns_team_id),
        ("apns_topic", &settings.apns_topic),
    ];
    let path = &settings.apns_key;
    if path.as_os_str().is_empty() {
        // If only some of the settings are set, that is a mistake; the service is off only if none are set.
        return match others.into_iter().find(|(_, value)| !value.is_empty()) {
            Some((name, _)) => Err(wrong("apns_key", format!("is empty, but push.{name} is set"))),
            None => Ok(None),
        };
    }
    for (name, value) in others {
        if value.is_empty() {
            return Err(wrong(name, "is empty, but push.apns_key is set"));
        }
        if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong(name, "expected letters, digits and signs without spaces"));
        }
    }
    let pem = read_file("apns_key", path)?;
    let signer = ApnsSigner {
        key: EncodingKey::from_ec_pem(&pem).map_err(|_| unusable_apns_key(path))?,
        key_id: settings.apns_key_id.clone(),
        team_id: settings.apns_team_id.clone(),
    };
    signer.sign(Timestamp::UNIX_EPOCH).map_err(|_| unusable_apns_key(path))?;
    Ok(Some(ApnsClient {
        client: client::client(authority, HttpVersions::Http2)?,
        production: address("apns_url", &settings.apns_url, "/3/device")?,
        sandbox: address("apns_sandbox_url", &settings.apns_sandbox_url, "/3/device")?,
        topic: HeaderValue::from_str(&settings.apns_topic).map_err(Error::internal)?,
        bearers: ProviderTokens::new(signer),
    }))
}

fn unusable_apns_key(path: &Path) -> Error {
    let what = format!("{} is not a P-256 key in PEM (PKCS #8)", path.display());
    wrong("apns_key", what)
}
