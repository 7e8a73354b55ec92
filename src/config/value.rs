//! The types a setting can have: how each is read from text and printed again.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
};

use crate::telemetry::LogFormat;

/// A setting's type.
pub trait Value: Sized {
    /// Reads the value as it stands in the file, the environment or a flag.
    fn parse(text: &str) -> Result<Self, String>;
    /// Prints the value in the form that [`Value::parse`] reads.
    fn print(&self) -> String;
}

/// The values that a setting allows.
pub trait Bounds<T> {
    /// Says what is expected when `value` is outside.
    fn check(&self, value: &T) -> Result<(), String>;
}

/// No bounds.
pub struct Any;

impl<T> Bounds<T> for Any {
    fn check(&self, _: &T) -> Result<(), String> {
        Ok(())
    }
}

impl<T: PartialOrd + fmt::Display> Bounds<T> for RangeInclusive<T> {
    fn check(&self, value: &T) -> Result<(), String> {
        if self.contains(value) {
            return Ok(());
        }
        Err(format!("expected {} to {}", self.start(), self.end()))
    }
}

macro_rules! value_from_str {
    ($($kind:ty: $expected:literal),* $(,)?) => {$(
        impl Value for $kind {
            fn parse(text: &str) -> Result<Self, String> {
                text.trim().parse().map_err(|_| format!("expected {}", $expected))
            }
            fn print(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

value_from_str! {
    u8: "a whole number",
    u16: "a whole number",
    u32: "a whole number",
    u64: "a whole number",
    usize: "a whole number",
    f32: "a number",
    bool: "true or false",
    SocketAddr: "an address and port such as 127.0.0.1:8080",
}

impl Value for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
    fn print(&self) -> String {
        self.clone()
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self::from(text))
    }
    fn print(&self) -> String {
        self.display().to_string()
    }
}

/// A base URL without a slash at its end; empty means "as the setting's text says".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseUrl(pub String);

impl Value for BaseUrl {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim().trim_end_matches('/');
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let host_ok = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
        let clean = text.chars().all(|c| c.is_ascii_graphic() && !"?#\"<>\\`".contains(c));
        if text.is_empty() || (host_ok && clean) {
            return Ok(Self(text.to_owned()));
        }
        Err("expected an http:// or https:// address without a query".to_owned())
    }
    fn print(&self) -> String {
        self.0.clone()
    }
}

/// Addresses separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses(pub Vec<IpAddr>);

impl Value for Addresses {
    fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let parse = |part: &str| part.parse().map_err(|_| format!("{part} is not an IP address"));
        parts.map(parse).collect::<Result<_, _>>().map(Self)
    }
    fn print(&self) -> String {
        self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

impl Value for LogFormat {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("expected auto, text or json".to_owned()),
        }
    }
    fn print(&self) -> String {
        match self {
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Json => "json",
        }
        .to_owned()
    }
}

/// A text that others must not see. It is shown as `***`, in lists of settings too.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Hidden(pub String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print())
    }
}

impl Value for Hidden {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }
    /// Not what [`Value::parse`] reads: a list of settings is for everybody's eyes.
    fn print(&self) -> String {
        if self.0.is_empty() { String::new() } else { "***".to_owned() }
    }
}

/// How a connection to a mail server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailTls {
    /// Not at all.
    None,
    /// From the command STARTTLS on.
    StartTls,
    /// From the start.
    Tls,
}

impl Value for MailTls {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "starttls" => Ok(Self::StartTls),
            "tls" => Ok(Self::Tls),
            _ => Err("expected none, starttls or tls".to_owned()),
        }
    }
    fn print(&self) -> String {
        match self {
            Self::None => "none",
            Self::StartTls => "starttls",
            Self::Tls => "tls",
        }
        .to_owned()
    }
}

/// A time zone name of the IANA database.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(pub jiff::tz::TimeZone);

impl Value for Zone {
    fn parse(text: &str) -> Result<Self, String> {
        jiff::tz::TimeZone::get(text)
            .map(Self)
            .map_err(|_| "expected a time zone name such as Europe/Stockholm".to_owned())
    }
    fn print(&self) -> String {
        self.0.iana_name().unwrap_or("UTC").to_owned()
    }
}
