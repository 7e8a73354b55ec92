//! The types of settings, with their parsing and printing.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use strum::{EnumString, IntoStaticStr, VariantNames};

use super::{AddressStyle, BucketCredentials, LinkUrl, NodeRole};
use crate::runtime::telemetry::LogFormat;
use formats::NewsmlVersion;

/// A type that a setting can have.
pub trait SettingValue: Sized {
    /// Parses the text from the file, the environment or a flag.
    fn parse(text: &str) -> Result<Self, String>;
    /// Prints the value in the form that [`SettingValue::parse`] reads.
    fn print(&self) -> String;
    /// Returns the quotation of a bad value for an error message.
    fn quote(text: &str) -> String {
        format!("{text:?}")
    }
}

/// The range of values that a setting allows.
pub trait SettingBounds<T> {
    /// Fails with a description of the expected values if `value` is outside.
    fn check(&self, value: &T) -> Result<(), String>;
}

/// The bounds of a setting that allows any value of its type.
pub struct AnyValue;

impl<T> SettingBounds<T> for AnyValue {
    fn check(&self, _: &T) -> Result<(), String> {
        Ok(())
    }
}

impl<T: PartialOrd + fmt::Display> SettingBounds<T> for RangeInclusive<T> {
    fn check(&self, value: &T) -> Result<(), String> {
        if self.contains(value) {
            return Ok(());
        }
        Err(format!("expected {} to {}", self.start(), self.end()))
    }
}

macro_rules! value_from_str {
    ($($kind:ty: $expected:literal),* $(,)?) => {$(
        impl SettingValue for $kind {
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

macro_rules! value_from_words {
    ($($kind:ty),* $(,)?) => {$(
        impl SettingValue for $kind {
            fn parse(text: &str) -> Result<Self, String> {
                let words = <$kind>::VARIANTS;
                text.trim().parse().map_err(|_| format!("expected one of {}", words.join(", ")))
            }
            fn print(&self) -> String {
                <&str>::from(self).to_owned()
            }
        }
    )*};
}

value_from_words! {
    AddressStyle,
    AvifRendering,
    BucketCredentials,
    LogFormat,
    MailTls,
    NewsmlVersion,
    NodeRole,
    PdfActiveContent,
}

/// Implements settings that are texts, empty or accepted by a predicate.
macro_rules! value_from_text {
    ($($kind:ty: $is_valid:expr, $expected:expr);* $(;)?) => {$(
        impl SettingValue for $kind {
            fn parse(text: &str) -> Result<Self, String> {
                let text = text.trim();
                if text.is_empty() || $is_valid(text) {
                    return Ok(Self(text.to_owned()));
                }
                Err(format!("expected {}", $expected))
            }
            fn print(&self) -> String {
                self.0.clone()
            }
        }
    )*};
}
pub(super) use value_from_text;

value_from_text! {
    FieldName: FieldName::is_token, "letters, digits and - as in a header's name";
}

/// The address of an optional listener; empty means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdminAddress(pub Option<SocketAddr>);

impl SettingValue for AdminAddress {
    fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Ok(Self(None)),
            text => SocketAddr::parse(text).map(|address| Self(Some(address))),
        }
    }
    fn print(&self) -> String {
        self.0.map(|address| address.to_string()).unwrap_or_default()
    }
}

impl SettingValue for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
    fn print(&self) -> String {
        self.clone()
    }
}

impl SettingValue for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self::from(text))
    }
    fn print(&self) -> String {
        self.display().to_string()
    }
}

/// A base URL without a trailing slash. The setting's text explains the meaning of an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseUrl(pub String);

impl SettingValue for BaseUrl {
    fn parse(text: &str) -> Result<Self, String> {
        // Links are built by appending a path, which begins with the slash.
        let text = text.trim().trim_end_matches('/');
        if text.is_empty() || (LinkUrl::is_link(text) && !text.contains(['?', '#'])) {
            return Ok(Self(text.to_owned()));
        }
        Err("expected an http:// or https:// address without a query".to_owned())
    }
    fn print(&self) -> String {
        self.0.clone()
    }
}

/// A range of addresses with a common prefix of bits; a single address is a range with all bits fixed.
///
/// IPv4-mapped IPv6 addresses (`::ffff:192.0.2.1`) count as IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u32,
}

impl Network {
    /// Parses `10.0.0.0/8`, `fd00::/8` or a single address.
    fn parse(text: &str) -> Result<Self, String> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address.trim(), Some(bits.trim())),
            None => (text, None),
        };
        let parsed: IpAddr = address.parse().map_err(|_| no_network(text))?;
        let first = parsed.to_canonical();
        let bits_max = if parsed.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            // The number parser would accept `+8`.
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                let bits = bits.parse::<u32>().ok().filter(|bits| *bits <= bits_max);
                bits.ok_or_else(|| no_network(text))?
            }
            Some(_) => return Err(no_network(text)),
            None => bits_max,
        };
        // The prefix of a mapped address counts the 96 bits of `::ffff:0:0/96` too.
        let is_mapped = parsed.is_ipv6() && first.is_ipv4();
        let bits =
            if is_mapped { bits.checked_sub(96).ok_or_else(|| no_network(text))? } else { bits };
        let network = Self { first, bits };
        // Probably a typing error, and a trusted network must not be wider than intended.
        if network.masked(first) != number(first) {
            return Err(format!("{text} is not a network: bits after the first {bits} are set"));
        }
        Ok(network)
    }

    /// Returns `address` with all bits after the prefix set to 0.
    fn masked(self, address: IpAddr) -> u128 {
        let width = if self.first.is_ipv4() { 32 } else { 128 };
        let host_bits = width - self.bits;
        // A shift by all 128 bits overflows: the network `::/0` has no prefix.
        let prefix = number(address).checked_shr(host_bits);
        prefix.and_then(|prefix| prefix.checked_shl(host_bits)).unwrap_or(0)
    }

    /// Returns whether the network contains `address`.
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        // As numbers, addresses of both families are alike: `0.0.0.1` and `::1`.
        address.is_ipv4() == self.first.is_ipv4() && self.masked(address) == number(self.first)
    }
}

/// Builds the error for `text`, which does not parse as a network.
fn no_network(text: &str) -> String {
    format!("{text} is neither an IP address nor a network such as 10.0.0.0/8")
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = if self.first.is_ipv4() { 32 } else { 128 };
        if self.bits == width {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}/{}", self.first, self.bits)
        }
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

/// A list of addresses and networks, separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkList(pub Vec<Network>);

impl NetworkList {
    /// Returns whether any network of the list contains `address`.
    pub fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

impl std::str::FromStr for NetworkList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(Network::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl SettingValue for NetworkList {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
    }
    fn print(&self) -> String {
        self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

/// The name of an HTTP header, or a method; empty means none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldName(pub String);

impl FieldName {
    /// Returns whether `text` is a token of RFC 9110 §5.6.2.
    pub fn is_token(text: &str) -> bool {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    }
}

/// A secret text, shown as `***` everywhere, including lists of settings.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HiddenText(pub String);

impl fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print())
    }
}

impl SettingValue for HiddenText {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }
    /// Masks the text, so that it cannot be parsed again: anyone may read a list of settings.
    fn print(&self) -> String {
        if self.0.is_empty() { String::new() } else { "***".to_owned() }
    }
    fn quote(_: &str) -> String {
        "\"***\"".to_owned()
    }
}

/// The URL of a database; empty means none. Its password is shown as `***`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DatabaseUrl(pub String);

impl DatabaseUrl {
    /// Masks any password in the URL, in the user part or in the query.
    fn redact(text: &str) -> String {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // An @ in the password that is not percent-encoded belongs to the password.
        let mut shown = match rest.rsplit_once('@') {
            Some((credentials, host)) => match credentials.split_once(':') {
                Some((user, _)) => format!("{user}:***@{host}"),
                None => rest.to_owned(),
            },
            None => rest.to_owned(),
        };
        if !scheme.is_empty() {
            shown = format!("{scheme}://{shown}");
        }
        for (index, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
            shown.push(if index == 0 { '?' } else { '&' });
            // Also `sslpassword` and the like: masking too much does no harm.
            shown.push_str(if pair.contains("pass") { "password=***" } else { pair });
        }
        shown
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print())
    }
}

impl SettingValue for DatabaseUrl {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let schemes = ["postgres://", "postgresql://"];
        if text.is_empty() || schemes.iter().any(|scheme| text.starts_with(scheme)) {
            return Ok(Self(text.to_owned()));
        }
        Err("expected postgres://USER@HOST:PORT/DATABASE".to_owned())
    }
    fn print(&self) -> String {
        Self::redact(&self.0)
    }
    fn quote(text: &str) -> String {
        format!("{:?}", Self::redact(text))
    }
}

/// The encryption of a connection to a mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum MailTls {
    /// The connection is not encrypted.
    None,
    /// Plain connection, encrypted by the command STARTTLS.
    StartTls,
    /// Encrypted from the first byte.
    Tls,
}

/// The policy for a PDF with active content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum PdfActiveContent {
    /// Accept it with a warning.
    Warn,
    /// Refuse it as an error.
    Refuse,
}

/// The time at which the AVIF of the standard renditions is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum AvifRendering {
    /// At the first request.
    OnRequest,
    /// As part of cache warming, after a photograph was ingested.
    Ahead,
}

/// A time zone name of the IANA database.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeZoneName(pub jiff::tz::TimeZone);

impl SettingValue for TimeZoneName {
    fn parse(text: &str) -> Result<Self, String> {
        jiff::tz::TimeZone::get(text)
            .map(Self)
            .map_err(|_| "expected a time zone name such as Europe/Stockholm".to_owned())
    }
    fn print(&self) -> String {
        self.0.iana_name().unwrap_or("UTC").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_a_network_holds_the_addresses_that_begin_like_it() {
        let check = |list: &str, inside: &[&str], outside: &[&str]| {
            let list: NetworkList = list.parse().unwrap();
            let found = |text: &&str| list.contain(text.parse().unwrap());
            assert!(inside.iter().all(found), "{list:?}");
            assert!(!outside.iter().any(found), "{list:?}");
        };
        check("10.0.0.0/8", &["10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3"], &["11.0.0.0"]);
        check("192.0.2.7, ::1", &["192.0.2.7", "::1"], &["192.0.2.6", "::2", "0.0.0.1"]);
        check("fd00::/8", &["fd12::1"], &["fe80::1", "253.0.0.1"]);
        check("2001:db8:0:1::/64", &["2001:db8:0:1::9"], &["2001:db8:0:2::9"]);
        check("::ffff:10.0.0.0/104", &["10.9.9.9"], &["11.0.0.1", "::1"]);
        check("0.0.0.0/0", &["192.0.2.1"], &["::1"]);
        check("::/0", &["::1"], &["192.0.2.1"]);
        check("", &[], &["127.0.0.1"]);
    }

    #[test]
    fn ok_networks_print_as_they_are_read() {
        let text = "10.0.0.0/8,192.0.2.7,::1,fd00::/8,0.0.0.0/0";
        assert_eq!(NetworkList::parse(text).unwrap().print(), text);
        assert_eq!(NetworkList::parse(" ::ffff:192.0.2.7 ,").unwrap().print(), "192.0.2.7");
    }

    #[test]
    fn ok_the_address_of_a_database_is_shown_without_its_password() {
        let check = |text: &str, shown: &str| {
            let url = DatabaseUrl::parse(text).unwrap();
            assert_eq!((url.0.as_str(), url.print().as_str()), (text, shown));
        };
        check("", "");
        check("postgres://db/wp", "postgres://db/wp");
        check("postgres://wp@db:5432/wp", "postgres://wp@db:5432/wp");
        check("postgres://wp:s3c:r@t@db/wp?a=b", "postgres://wp:***@db/wp?a=b");
        check("postgresql:///wp?host=/run&password=x", "postgresql:///wp?host=/run&password=***");
        assert!(DatabaseUrl::parse("mysql://wp:secret@db/wp").is_err());
        assert_eq!(DatabaseUrl::quote("mysql://wp:secret@db/wp"), "\"mysql://wp:***@db/wp\"");
    }

    #[test]
    fn err_text_that_is_not_a_network_is_named() {
        for (text, part) in [
            ("10.0.0.0/33", "10.0.0.0/33 is neither an IP address nor a network"),
            ("10.0.0.1/8", "bits after the first 8 are set"),
            ("::1/129", "is neither an IP address"),
            ("::ffff:10.0.0.0/8", "is neither an IP address"),
            ("10.0.0.0/", "is neither an IP address"),
            ("10.0.0.0/+8", "is neither an IP address"),
            ("10.0.0.0/8/8", "is neither an IP address"),
            ("localhost", "localhost is neither an IP address"),
        ] {
            let message = NetworkList::parse(text).unwrap_err();
            assert!(message.contains(part), "{text} gives {message}");
        }
    }
}
