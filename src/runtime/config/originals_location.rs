//! The settings for the location of originals and the access to a bucket.

use std::{path::PathBuf, time::Duration};

use strum::{EnumString, IntoStaticStr, VariantNames};

use super::value::{BaseUrl, SettingValue};

/// The storage location of originals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginalsLocation {
    /// The folder `originals/` in the data directory.
    Data,
    /// A folder with its own path.
    Folder(PathBuf),
    /// A bucket of S3 or a compatible service.
    Bucket {
        bucket: String,
        /// The common prefix of all keys, without a slash at either end; may be empty.
        prefix: String,
    },
}

const BUCKET: &str = "s3://";
const EXPECTED: &str =
    "expected a folder or s3://BUCKET/PREFIX, the prefix of letters, digits and -_.";
/// Maximum bytes of a prefix; S3 allows keys of 1024 bytes, and ours add up to 80.
const PREFIX_BYTES_MAX: usize = 512;

fn is_bucket(name: &str) -> bool {
    // Amazon's rules: 3 to 63 characters, without adjacent dots.
    (3..=63).contains(&name.len()) && name.bytes().all(is_legal) && !name.contains("..")
}

/// Returns whether names of buckets and segments of prefixes may contain `byte`.
fn is_legal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_".contains(&byte)
}

fn is_prefix(prefix: &str) -> bool {
    prefix.is_empty() || (prefix.len() <= PREFIX_BYTES_MAX && prefix.split('/').all(is_segment))
}

fn is_segment(segment: &str) -> bool {
    // HTTP clients and proxies remove dot segments (RFC 3986 §5.2.4), which would change the key.
    !matches!(segment, "" | "." | "..") && segment.bytes().all(is_legal)
}

impl SettingValue for OriginalsLocation {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::Data);
        }
        let Some(rest) = text.strip_prefix(BUCKET) else {
            // A different scheme is a mistake, and must not become a folder of that name.
            if text.contains("://") {
                return Err(EXPECTED.to_owned());
            }
            return Ok(Self::Folder(PathBuf::from(text)));
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        if !is_bucket(bucket) || !is_prefix(prefix) {
            return Err(EXPECTED.to_owned());
        }
        Ok(Self::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }

    fn print(&self) -> String {
        match self {
            Self::Data => String::new(),
            Self::Folder(folder) => folder.display().to_string(),
            Self::Bucket { bucket, prefix } if prefix.is_empty() => format!("{BUCKET}{bucket}"),
            Self::Bucket { bucket, prefix } => format!("{BUCKET}{bucket}/{prefix}"),
        }
    }
}

/// The part of a URL that names the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum AddressStyle {
    /// The path if an endpoint is set, otherwise the host name.
    Auto,
    Path,
    Host,
}

impl AddressStyle {
    /// Returns whether the bucket is the first path segment at these endpoints.
    pub fn is_path(self, endpoints: &ServiceEndpoints) -> bool {
        match self {
            // MinIO, Ceph and similar services expect the bucket in the path.
            Self::Auto => !endpoints.0.is_empty(),
            Self::Path => true,
            Self::Host => false,
        }
    }
}

/// Base URLs of one service, each without a trailing slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceEndpoints(pub Vec<String>);

/// Maximum number of base URLs of one service, equal to the limit on database hosts.
const ENDPOINTS_MAX: usize = 16;

impl SettingValue for ServiceEndpoints {
    fn parse(text: &str) -> Result<Self, String> {
        let mut bases = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            bases.push(BaseUrl::parse(part)?.0);
        }
        if bases.len() > ENDPOINTS_MAX {
            return Err(format!("expected {ENDPOINTS_MAX} addresses at most"));
        }
        Ok(Self(bases))
    }
    fn print(&self) -> String {
        self.0.join(",")
    }
}

/// The source of the credentials for a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum BucketCredentials {
    /// The settings, or files that they name.
    Key,
    /// Amazon's token service, in exchange for a token from a different issuer.
    WebIdentity,
    /// The metadata service of the machine.
    Instance,
}

/// The period in which all originals are read once in the background.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScrubPeriod {
    /// 30 days for originals in a folder, never for a bucket: reading it costs money at many services, and
    /// the service verifies checksums itself.
    Auto,
    /// This many days; 0 means never.
    Days(f32),
}

impl ScrubPeriod {
    /// Default period in days for originals in a folder.
    const FOLDER_DAYS: f32 = 30.0;
    const DAYS_MAX: f32 = 3650.0;

    /// Returns the period for originals at `location`; `None` if they are never read.
    pub fn for_location(self, location: &OriginalsLocation) -> Option<Duration> {
        let days = match (self, location) {
            (Self::Days(days), _) => days,
            (Self::Auto, OriginalsLocation::Data | OriginalsLocation::Folder(_)) => {
                Self::FOLDER_DAYS
            }
            (Self::Auto, OriginalsLocation::Bucket { .. }) => 0.0,
        };
        (days > 0.0).then(|| Duration::from_secs_f32(days * 86_400.0))
    }
}

impl SettingValue for ScrubPeriod {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "auto" {
            return Ok(Self::Auto);
        }
        match text.parse() {
            // No range contains NaN, which parses as a number.
            Ok(days) if (0.0..=Self::DAYS_MAX).contains(&days) => Ok(Self::Days(days)),
            Ok(_) | Err(_) => Err(format!("expected auto, or 0 to {}", Self::DAYS_MAX)),
        }
    }
    fn print(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Days(days) => days.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_places_print_as_they_are_read() {
        for text in ["", "/srv/originals", "originals", "s3://pictures", "s3://pictures/a/b-c_1.x"]
        {
            assert_eq!(OriginalsLocation::parse(text).unwrap().print(), text);
        }
        assert_eq!(
            OriginalsLocation::parse("s3://pictures/a/").unwrap().print(),
            "s3://pictures/a"
        );
        let bucket =
            OriginalsLocation::Bucket { bucket: "pictures".to_owned(), prefix: "a".to_owned() };
        assert_eq!(OriginalsLocation::parse("s3://pictures/a"), Ok(bucket));
    }

    #[test]
    fn several_endpoints_are_read_in_their_order() {
        let read = |text: &str| ServiceEndpoints::parse(text).map(|read| read.print());
        assert_eq!(read("").unwrap(), "");
        assert_eq!(read("https://a:1/, http://b").unwrap(), "https://a:1,http://b");
        assert!(read("https://a,b").is_err());
        assert!(read(&["http://a"; 17].join(",")).is_err());
    }

    #[test]
    fn err_what_is_no_place_is_refused() {
        for text in [
            "s3://",
            "s3://ab",
            "s3:///x",
            "s3://pic tures",
            "s3://pictures//x",
            "s3://pictures/../x",
            "s3://pictures/ä",
            "s3://pictures/a?b",
            "gs://pictures",
            "https://pictures",
        ] {
            assert!(OriginalsLocation::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn originals_in_a_folder_are_read_once_a_month_and_those_in_a_bucket_where_it_is_set() {
        let bucket = OriginalsLocation::parse("s3://pictures").unwrap();
        let days = |text: &str, location: &OriginalsLocation| {
            let period = ScrubPeriod::parse(text).unwrap();
            assert_eq!(period.print(), text);
            period.for_location(location).map(|time| time.as_secs_f32() / 86_400.0)
        };
        assert_eq!(days("auto", &OriginalsLocation::Data), Some(30.0));
        assert_eq!(days("auto", &bucket), None);
        assert_eq!(days("0.5", &bucket), Some(0.5));
        assert_eq!(days("0", &OriginalsLocation::Data), None);
        for text in ["", "-1", "4000", "NaN", "monthly"] {
            assert!(ScrubPeriod::parse(text).is_err(), "{text}");
        }
    }
}
