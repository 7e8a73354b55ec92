//! The destination of a channel: its method and settings, parsed and checked once.

use std::fmt;

use serde_json::{Map, Value};

use crate::transport::directory::DirectoryTarget;
use crate::transport::email::EmailTarget;
use crate::transport::ftp::FtpTarget;
use crate::transport::mail::MailAddress;
use crate::transport::network_policy::NetworkPolicy;
use crate::transport::s3::S3Target;
use crate::transport::settings::{FieldProblem, SettingsReader};
use crate::transport::sftp::SftpTarget;
use crate::transport::webhook::WebhookTarget;
use model::account::ChannelMethod;

/// The validated settings of a channel's method.
#[derive(Debug)]
pub(super) enum MethodSettings {
    Directory(DirectoryTarget),
    Email(EmailTarget),
    Ftp(Box<FtpTarget>),
    Sftp(Box<SftpTarget>),
    S3(Box<S3Target>),
    Webhook(Box<WebhookTarget>),
}

/// A parsed channel destination, with its settings redacted for listings.
pub struct Destination {
    pub(super) target: MethodSettings,
    pub(super) policy: NetworkPolicy,
    pub(super) method: ChannelMethod,
    listed: Value,
}

impl Destination {
    /// Parses the `settings` of a channel. Returns `None` for the method `download`, which sends nothing.
    ///
    /// Fails if a setting is missing, unknown or unusable. Unlocking a private key with a passphrase costs about a
    /// tenth of a second, by design.
    ///
    /// Contract deliveries-18.
    pub fn parse(
        method: ChannelMethod,
        settings: &Map<String, Value>,
    ) -> Result<Option<Self>, FieldProblem> {
        let mut fields = SettingsReader::new(settings);
        let target = match method {
            // The settings of downloads are validated elsewhere.
            ChannelMethod::Download => return Ok(None),
            ChannelMethod::Directory => {
                MethodSettings::Directory(DirectoryTarget::read(&mut fields)?)
            }
            ChannelMethod::Email => MethodSettings::Email(EmailTarget::read(&mut fields)?),
            ChannelMethod::Ftp | ChannelMethod::Ftps => {
                let is_encrypted = method == ChannelMethod::Ftps;
                MethodSettings::Ftp(Box::new(FtpTarget::read(&mut fields, is_encrypted)?))
            }
            // Unlocked here, because a channel whose key cannot be unlocked must not be stored.
            ChannelMethod::Sftp => {
                MethodSettings::Sftp(Box::new(SftpTarget::read(&mut fields)?.open()?))
            }
            ChannelMethod::S3 => MethodSettings::S3(Box::new(S3Target::read(&mut fields)?)),
            ChannelMethod::Webhook => {
                MethodSettings::Webhook(Box::new(WebhookTarget::read(&mut fields)?))
            }
        };
        Ok(Some(Self {
            target,
            // Channels of users are restricted with `only_public` (contract deliveries-21).
            policy: NetworkPolicy::Anywhere,
            method,
            listed: fields.finish()?,
        }))
    }

    /// Restricts the destination of a user's channel to public addresses: not this machine, its network or a
    /// cloud's metadata service. Mails are still sent through the operator's mail server.
    #[must_use]
    pub fn only_public(self) -> Self {
        Self { policy: NetworkPolicy::Public, ..self }
    }

    /// Returns the recipients of the channel's mails; empty for other methods.
    pub fn recipients(&self) -> &[MailAddress] {
        let MethodSettings::Email(email) = &self.target else { return &[] };
        &email.to
    }

    /// Returns settings for listings, with `***` in place of every secret. Does not unlock, and therefore not
    /// verify, a private key.
    pub fn redact(
        method: ChannelMethod,
        settings: &Map<String, Value>,
    ) -> Result<Option<Value>, FieldProblem> {
        // Listing channels must not unlock keys, which is slow by design (contract deliveries-24).
        if method == ChannelMethod::Sftp {
            let mut fields = SettingsReader::new(settings);
            SftpTarget::read(&mut fields)?;
            return fields.finish().map(Some);
        }
        Ok(Self::parse(method, settings)?.map(|found| found.listed))
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.as_str(), self.listed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use model::account::ChannelMethod as Method;

    fn map(settings: &Value) -> &Map<String, Value> {
        settings.as_object().unwrap()
    }

    fn check(method: Method, settings: &Value, expected: Result<Value, &str>) {
        let parsed = Destination::parse(method, map(settings));
        let listed = parsed.map(|found| found.expect("hands over").listed);
        let listed = listed.map_err(|error| error.to_string());
        assert_eq!(listed, expected.map_err(str::to_owned), "{settings}");
    }

    #[test]
    fn a_download_hands_nothing_over() {
        assert!(Destination::parse(Method::Download, &Map::new()).unwrap().is_none());
    }

    #[test]
    fn settings_are_listed_without_their_secrets() {
        let ftp = json!({"host": "h", "username": "u", "password": "geheim", "path": "/in"});
        let listed =
            json!({"password": "***", "host": "h", "port": 21, "username": "u", "path": "/in"});
        check(Method::Ftp, &ftp, Ok(listed));
        let hook = json!({"url": "https://h.example/T0/B1?k=2", "secret": "x".repeat(24)});
        let listed = json!({"url": "https://h.example:443/***", "secret": "***"});
        check(Method::Webhook, &hook, Ok(listed));
        let hook = Destination::parse(Method::Webhook, map(&hook)).unwrap().unwrap();
        assert!(!format!("{hook:?} {:?}", hook.target).contains("T0"));
    }

    #[test]
    fn a_list_opens_no_private_key() {
        let settings = json!({
            "host": "h", "username": "u", "hostKey": format!("SHA256:{}", "A".repeat(43)),
            "privateKey": "not a key that anything opens", "passphrase": "geheim",
        });
        let mut listed = settings.clone();
        listed["port"] = json!(22);
        for secret in ["privateKey", "passphrase"] {
            listed[secret] = json!("***");
        }
        assert_eq!(Destination::redact(Method::Sftp, map(&settings)), Ok(Some(listed)));
        let error = Destination::parse(Method::Sftp, map(&settings)).unwrap_err();
        let expected = "settings.privateKey is not an OpenSSH key that the passphrase opens";
        assert_eq!(error.to_string(), expected);
        let ftp = json!({"host": "h", "username": "u", "password": "p"});
        let parsed = Destination::parse(Method::Ftp, map(&ftp)).unwrap().unwrap();
        let listed = Destination::redact(Method::Ftp, map(&ftp));
        assert_eq!(listed, Ok(Some(parsed.listed)));
        assert_eq!(Destination::redact(Method::Download, &Map::new()), Ok(None));
    }

    #[test]
    fn what_is_missing_unknown_or_unusable_is_named() {
        let account = json!({"host": "h", "username": "u", "password": "geheim"});
        let with = |name: &str, value: Value| {
            let mut settings = account.clone();
            settings[name] = value;
            settings
        };
        let cases = [
            (Method::Ftp, json!({"username": "u", "password": "p"}), "settings.host is missing"),
            (Method::Ftp, json!({"host": "h", "username": "u"}), "settings.password is missing"),
            (Method::Ftp, with("ca", json!("x")), "settings.ca is unknown"),
            (Method::Ftp, with("implicit", json!(true)), "settings.implicit is unknown"),
            (Method::Ftps, with("implicit", json!(1)), "settings.implicit is not true or false"),
            (
                Method::Ftps,
                with("ca", json!("x")),
                "settings.ca is not one or more certificates in PEM",
            ),
            (
                Method::Ftp,
                with("username", json!("u\r\nDELE x")),
                "settings.username is not one line of text",
            ),
            (
                Method::Ftp,
                with("password", json!("p\nQUIT")),
                "settings.password is not one line of text",
            ),
            (
                Method::Ftp,
                with("path", json!("a/../b")),
                "settings.path is not a path without `.`, `..`, empty parts and backslashes",
            ),
            (
                Method::Directory,
                json!({"path": "/etc"}),
                "settings.path is not a relative path without `.`, `..`, empty parts and backslashes",
            ),
            (Method::Sftp, account.clone(), "settings.hostKey is missing"),
            (
                Method::Sftp,
                with("hostKey", json!("MD5:00:11")),
                "settings.hostKey is not `SHA256:…` or a line such as `ssh-ed25519 AAAA…`",
            ),
            (
                Method::Email,
                json!({"to": "a@b\r\nBcc: c@d"}),
                "settings.to is not a mail address or a list of up to 50",
            ),
            (Method::Email, json!({"to": []}), "settings.to is not a text or a list of texts"),
            (
                Method::Webhook,
                json!({"url": "http://h/", "secret": "x".repeat(24)}),
                "settings.url is not https; settings.allowHttp permits http",
            ),
            (
                Method::Webhook,
                json!({"url": "https://h/", "secret": "short"}),
                "settings.secret is not `whsec_` and base64, or 24 bytes",
            ),
            (Method::S3, json!({"bucket": "b/c"}), "settings.bucket is not a bucket's name"),
            (Method::S3, json!({"bucket": "bilder"}), "settings.region is missing"),
        ];
        for (method, settings, expected) in cases {
            check(method, &settings, Err(expected));
        }
    }
}
