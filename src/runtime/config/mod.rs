//! Defines all settings in one table: name, type, default, bounds, unit and explanation.
//!
//! Sources of a value in ascending precedence: the default, the TOML file, the environment
//! (`WIREPHOTO_<SECTION>__<KEY>`), a command-line flag. An unknown name or a bad value stops the start with
//! an error that gives name and origin. `wirephoto config` and the settings reference print [`Config::rows`].

mod house_rules;
mod load;
mod originals_location;
mod reload;
mod rights;
mod role;
mod secret;
mod sizes;
mod value;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use strum::IntoStaticStr;

pub use house_rules::RequiredFields;
pub use load::{RawSettings, SettingSources, find_program, load};
pub use originals_location::{
    AddressStyle, BucketCredentials, OriginalsLocation, ScrubPeriod, ServiceEndpoints,
};
pub use reload::SettingChanges;
pub use rights::{ContentUsage, DataMiningTerm, LinkUrl};
pub use role::NodeRole;
pub use secret::SecretSource;
pub use sizes::{RenditionPreset, RenditionPresets, RenditionWidths};
pub use value::{
    AdminAddress, AvifRendering, BaseUrl, DatabaseUrl, FieldName, HiddenText, MailTls, Network,
    NetworkList, PdfActiveContent, SettingValue, TimeZoneName,
};
use value::{AnyValue, SettingBounds};

use crate::runtime::telemetry::LogFormat;
use crate::runtime::{limits, modes};
use formats::NewsmlVersion;

/// The source of a setting's value, in ascending precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[derive(IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SettingOrigin {
    Default,
    File,
    Environment,
    Flag,
}

impl SettingOrigin {
    /// Returns the name of the origin as `wirephoto config` prints it.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }
}

/// One setting as `wirephoto config` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct SettingRow {
    /// The name of the setting, `section.key`.
    pub name: &'static str,
    /// The effective value; secrets are masked as `***`.
    pub value: String,
    pub default: &'static str,
    #[serde(rename = "source")]
    pub origin: SettingOrigin,
    /// Unit of a number, or kind of text.
    pub unit: &'static str,
    #[serde(rename = "meaning")]
    pub doc: &'static str,
    /// True if a reload (SIGHUP) applies a new value.
    pub reloads: bool,
    /// True if the value should be equal on all nodes of an archive.
    #[serde(skip)]
    pub is_alike: bool,
    /// True if hardly any installation needs a value other than the default.
    #[serde(rename = "expert")]
    pub is_expert: bool,
}

/// A mark of a setting in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SettingMark {
    /// A reload (SIGHUP) applies a new value: `app` passes it to the component that uses it. Other settings
    /// need a restart.
    Reload,
    /// The value should be equal on all nodes of an archive, since it affects links, captions, renditions,
    /// accepted files, or the times and days of items.
    Alike,
    /// Hardly any installation needs a value other than the default, so the setting is printed apart.
    Expert,
}

fn has_mark(marks: &[SettingMark], mark: SettingMark) -> bool {
    marks.contains(&mark)
}

/// An unknown setting or a bad value; the text names the setting and its origin.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

macro_rules! settings {
    ($(
        $(#[doc = $section_doc:literal])*
        $section:ident: $Section:ident {
            $($key:ident: $kind:ty = $default:literal, $bounds:expr, $unit:literal,
                $($mark:ident,)* $doc:literal;)*
        }
    )*) => {
        $(
            $(#[doc = $section_doc])*
            #[derive(Clone, Debug)]
            pub struct $Section {
                $(#[doc = $doc] pub $key: $kind,)*
            }
        )*

        /// The values of all settings, by section.
        #[derive(Clone, Debug)]
        pub struct Config {
            $($(#[doc = $section_doc])* pub $section: $Section,)*
        }

        /// The names of all settings, `section.key`, in the table's order.
        pub const NAMES: &[&str] = &[$($(concat!(stringify!($section), ".", stringify!($key)),)*)*];

        impl Config {
            /// Builds the settings from `values`; missing ones get their default.
            fn from_values(values: &load::RawSettings) -> Result<Self, ConfigError> {
                Ok(Self {
                    $($section: $Section {
                        $($key: {
                            let name = concat!(stringify!($section), ".", stringify!($key));
                            let (text, origin) = values.find(name, $default);
                            let parsed = <$kind as SettingValue>::parse(&text);
                            let checked = parsed.and_then(|value| {
                                SettingBounds::<$kind>::check(&$bounds, &value).map(|()| value)
                            });
                            checked.map_err(|expected| {
                                // Some values are secret, so their type decides how they are quoted.
                                let quoted = <$kind as SettingValue>::quote(&text);
                                load::bad_value(name, &quoted, &origin, &expected)
                            })?
                        },)*
                    },)*
                })
            }

            /// Lists all settings with their effective values and origins.
            pub fn rows(&self, values: &load::RawSettings) -> Vec<SettingRow> {
                vec![$($({
                    let name = concat!(stringify!($section), ".", stringify!($key));
                    SettingRow {
                        name,
                        value: SettingValue::print(&self.$section.$key),
                        default: $default,
                        origin: values.find(name, $default).1,
                        unit: $unit,
                        doc: $doc,
                        reloads: has_mark(&[$(SettingMark::$mark),*], SettingMark::Reload),
                        is_alike: has_mark(&[$(SettingMark::$mark),*], SettingMark::Alike),
                        is_expert: has_mark(&[$(SettingMark::$mark),*], SettingMark::Expert),
                    }
                },)*)*]
            }

            /// Copies the reloadable settings from `next`. The others keep their values.
            ///
            /// Reports the changed settings, and the settings that differ but need a restart.
            pub fn adopt(&mut self, next: &Self) -> SettingChanges {
                let mut changes = SettingChanges::default();
                $($(if self.$section.$key != next.$section.$key {
                    let name = concat!(stringify!($section), ".", stringify!($key));
                    if has_mark(&[$(SettingMark::$mark),*], SettingMark::Reload) {
                        self.$section.$key = next.$section.$key.clone();
                        changes.applied.push(name);
                    } else {
                        changes.waiting.push(name);
                    }
                })*)*
                changes
            }
        }
    };
}

settings! {
    /// The listener, public URLs and connection limits.
    server: Server {
        role: NodeRole = "all", AnyValue, "all, web, worker, edge", "Role of this process; all: everything; web: requests without background jobs; worker: background jobs alone; edge: media only, never writing to the database";
        listen: SocketAddr = "127.0.0.1:8080", AnyValue, "address", "Address and port to listen on";
        admin_listen: AdminAddress = "", AnyValue, "address", "Address and port of a second listener for /metrics and /health only, without TLS; /metrics then answers 404 on the first; empty: none";
        public_url: BaseUrl = "", AnyValue, "URL", Alike, "Base URL of generated links; empty: http:// (with TLS https://) and the listening address";
        media_url: BaseUrl = "", AnyValue, "URL", Alike, "Base URL of media links, such as a CDN's host name; empty: public_url";
        auth_url: BaseUrl = "", AnyValue, "URL", Expert, "Base URL of the OAuth2 endpoints and issuer of id tokens; empty: public_url";
        search_url: BaseUrl = "", AnyValue, "URL", Expert, "Base URL of the deprecated search interface; empty: public_url";
        site_url: BaseUrl = "", AnyValue, "URL", Expert, "Base URL of the web site that item URLs redirect to; empty: public_url";
        tls_certificate: PathBuf = "", AnyValue, "file", "TLS certificate chain (PEM), the server's own certificate first, then its issuers; empty: no TLS";
        tls_key: PathBuf = "", AnyValue, "file", "Private key (PEM) of the server's certificate";
        trusted_proxies: NetworkList = "", AnyValue, "IP list", Reload, "Proxies whose X-Forwarded-For is trusted: addresses and networks, such as ::1, 10.0.0.0/8";
        connections_max: u32 = "4096", 1..=1_000_000, "connections", Reload, "Maximum open connections";
        connections_per_address: u32 = "1024", 0..=1_000_000, "connections", Reload, "Maximum open connections from one address (IPv6: one /64 network), except trusted proxies; more are answered 503; 0: no limit";
        header_timeout_s: u32 = "10", 1..=600, "s", Reload, Expert, "Time limit for a client to send the request headers";
        idle_timeout_s: u32 = "75", 1..=3600, "s", Reload, Expert, "Time after which an idle connection is closed";
        write_rate_min_bytes_s: u32 = "4096", 0..=100_000_000, "bytes/s", Reload, Expert, "Minimum rate at which a client must read a response, or its connection is closed; 0: no minimum";
        read_rate_min_bytes_s: u32 = "512", 0..=100_000_000, "bytes/s", Reload, Expert, "Minimum rate at which a client must send a request body that the server is waiting for, or its connection is closed; 0: no minimum";
        rate_window_s: u32 = "30", 1..=600, "s", Reload, Expert, "Time over which the two minimum rates are measured";
        request_timeout_s: u32 = "60", 1..=600, "s", Reload, "Time after which a request that still waits for its rendition is answered 503";
        unready_s: u32 = "1", 0..=600, "s", Reload, "Time at shutdown between /health/ready turning 503 and the refusal of new connections";
        drain_s: u32 = "30", 0..=600, "s", "Time that requests in flight have to finish after a shutdown is requested";
        work_headers: bool = "true", AnyValue, "", Reload, "Whether responses with renditions carry Server-Timing and Wirephoto-Path, which say how the rendition was produced";
        compression: bool = "true", AnyValue, "", Reload, "Whether JSON, XML, HTML and other text responses are compressed for clients that accept gzip or brotli";
        site_name: String = "Wirephoto", AnyValue, "text", "Site name shown on the pages";
    }
    /// The data directory, for the database and derived files.
    data: Data {
        dir: PathBuf = "media-store", AnyValue, "folder", "Data directory: database, originals, derived files";
    }
    /// The database, if not SQLite in the data directory.
    database: Database {
        url: DatabaseUrl = "", AnyValue, "address", "PostgreSQL database, postgres://USER@HOST:PORT/DATABASE; a password in it is never shown; empty: SQLite in the data directory";
        password: HiddenText = "", AnyValue, "text", "Password of the database user, if not in the URL; never shown";
        password_file: PathBuf = "", AnyValue, "file", "File with the password of the database user, read for each connection, so a new password takes effect without a restart";
    }
    /// The key that encrypts secrets in the database: channel passwords, the signing key.
    secrets: Secrets {
        key_file: PathBuf = "", AnyValue, "file", "File with the key that encrypts secrets in the database; empty: secrets.key in the data directory, created on the first start with SQLite; every node of an archive needs the same key";
        key: HiddenText = "", AnyValue, "text", "The encryption key itself, 64 hex digits, instead of a file; for a rotation several keys separated by commas, the new one first; never shown";
    }
    /// Storage of originals, and access to their bucket.
    store: Store {
        originals: OriginalsLocation = "", AnyValue, "folder or bucket", Alike, "Where originals are stored: a folder, or s3://BUCKET/PREFIX, which then holds their derived files too; empty: originals/ in the data directory";
        endpoint: ServiceEndpoints = "", AnyValue, "URLs", "Base URL of the S3 service, or several of the same service separated by commas: if one does not answer, the next one is tried; empty: Amazon's in the region";
        region: String = "us-east-1", AnyValue, "name", "Region of the bucket; Garage requires its s3_region, most self-hosted services accept any";
        credentials: BucketCredentials = "key", AnyValue, "key, web-identity, instance", "Where the credentials of the bucket come from; key: these settings; web-identity: Amazon's token service, with role_arn and web_identity_token_file; instance: the metadata service of the machine, for its role";
        access_key_id: String = "", AnyValue, "text", "Access key id of the bucket";
        access_key_id_file: PathBuf = "", AnyValue, "file", "File with the access key id; this and the next two files are read again every second while the bucket is in use, so new credentials take effect without a restart";
        secret_access_key: HiddenText = "", AnyValue, "text", "Secret access key of the bucket; never shown";
        secret_access_key_file: PathBuf = "", AnyValue, "file", "File with the secret access key";
        session_token: HiddenText = "", AnyValue, "text", "Session token of temporary credentials; never shown; empty: the credentials are permanent";
        session_token_file: PathBuf = "", AnyValue, "file", "File with the session token";
        credentials_url: BaseUrl = "", AnyValue, "URL", "Base URL of the token or metadata service; empty: Amazon's";
        role_arn: String = "", AnyValue, "text", "Role to assume with a web identity, arn:aws:iam::…:role/…";
        web_identity_token_file: PathBuf = "", AnyValue, "file", "File with the web identity token, which its issuer renews";
        address_style: AddressStyle = "auto", AnyValue, "auto, path, host", "Where URLs name the bucket: in the path or in the host name; auto: in the path if an endpoint is set, otherwise in the host name";
        plain_http: bool = "false", AnyValue, "", "Whether the endpoint may be http://, which anyone on the network path can read";
        ca: PathBuf = "", AnyValue, "file", "CA certificates (PEM) trusted for the endpoint in addition to the public ones; empty: the public ones only";
        answer_s: u32 = "10", 1..=600, "s", Expert, "Attempt timeout: time for the bucket to start a response, and for each chunk of it; then the request is retried";
        give_up_s: u32 = "25", 1..=3600, "s", Expert, "Deadline for all attempts of a request, in addition to the time that its bytes take at 64 KiB/s; then the caller gets 503";
        requests: usize = "64", 1..=4096, "requests", "Maximum concurrent requests to the bucket";
        side_files_bytes: u64 = "1073741824", 0..=1_125_899_906_842_624, "bytes", "Disk space for cached copies of the bucket's side files, in derived/ of the data directory; 0: none";
        scrub_days: ScrubPeriod = "auto", AnyValue, "days", "Period in which one node reads every original once in the background and verifies its checksum; auto: 30 for a folder, 0 for a bucket, where reads cost money; 0: never";
    }
    /// Access to the bucket that `wirephoto backup --bucket` names, where it differs from `store`.
    backup: Backup {
        endpoint: ServiceEndpoints = "", AnyValue, "URLs", "Base URL of the S3 service of the backup bucket, or several of the same service separated by commas; empty: as in store, with its address_style, plain_http and ca";
        region: String = "", AnyValue, "name", "Region of the backup bucket; empty: as in store";
        access_key_id: String = "", AnyValue, "text", "Access key id of the backup bucket; if no key and no token is set here, the credentials of store count, at backup.endpoint too";
        access_key_id_file: PathBuf = "", AnyValue, "file", "File with the access key id";
        secret_access_key: HiddenText = "", AnyValue, "text", "Secret access key of the backup bucket; never shown";
        secret_access_key_file: PathBuf = "", AnyValue, "file", "File with the secret access key";
        session_token: HiddenText = "", AnyValue, "text", Expert, "Session token of temporary credentials; never shown; empty: the credentials are permanent";
        session_token_file: PathBuf = "", AnyValue, "file", Expert, "File with the session token";
        address_style: AddressStyle = "auto", AnyValue, "auto, path, host", Expert, "Where URLs name the backup bucket if backup.endpoint is set: in the path or in the host name; auto: in the path";
        plain_http: bool = "false", AnyValue, "", Expert, "Whether backup.endpoint may be http://, which anyone on the network path can read";
        ca: PathBuf = "", AnyValue, "file", Expert, "CA certificates (PEM) trusted for backup.endpoint in addition to the public ones; empty: the public ones only";
    }
    /// Renditions: sizes, quality, the watermark, limits and workers.
    media: Media {
        preview_px: u32 = "1024", 16..=8192, "px", Alike, "Long side of a Preview";
        thumbnail_px: u32 = "256", 16..=2048, "px", Alike, "Long side of a Thumbnail";
        cropped_thumbnail_px: u32 = "256", 16..=2048, "px", Alike, Expert, "Side of a CroppedThumbnail, which is square";
        web_preview_px: u32 = "512", 16..=8192, "px", Alike, Expert, "Long side of a WebPreview";
        open_px: u32 = "1024", 16..=16_384, "px", Alike, Expert, "Long side at which the whole picture is open: Preview and Thumbnail names with a size show no more detail, whatever part a crop shows";
        widths: RenditionWidths = "160, 240, 320, 480, 640, 800, 960, 1024, 1280, 1600, 2048", AnyValue, "px", Alike, "Widths in which Preview and Thumbnail names with a size are served: another one becomes the next larger, so that caches hold few sizes; any: exactly as asked for";
        presets: RenditionPresets = "", AnyValue, "tables", Alike, "Named sizes for -preset_NAME: a table [media.presets.NAME] with fit or fill = [width, height] and, where wanted, quality, mark and max_bytes; as JSON in the environment and in flags";
        hires_quality: u8 = "90", 1..=100, "", Alike, "JPEG quality of cropped, resized and watermarked Hires";
        preview_quality: u8 = "85", 1..=100, "", Alike, "JPEG quality of Previews";
        thumbnail_quality: u8 = "84", 1..=100, "", Alike, "JPEG quality of Thumbnails";
        web_preview_quality: u8 = "84", 1..=100, "", Alike, Expert, "JPEG quality of WebPreviews";
        watermark_text: String = "WIREPHOTO", AnyValue, "text", Alike, "Text of the watermark";
        watermark_png: PathBuf = "", AnyValue, "file", Alike, "PNG to use as watermark instead of the text";
        watermark_width: f32 = "0.25", 0.01..=1.0, "of width", Alike, "Width of the watermark";
        watermark_margin: f32 = "0.02", 0.0..=0.4, "of width", Alike, "Distance of the watermark from the left and bottom edges";
        watermark_opacity: f32 = "0.75", 0.0..=1.0, "", Alike, "Opacity of the watermark";
        keep_gps: bool = "false", AnyValue, "", Alike, "Whether renditions keep the GPS position of the original";
        keep_person_details: bool = "false", AnyValue, "", Alike, "Whether renditions carry details about the persons shown that originals have: names and descriptions beyond those of the caption, names in image regions, ages and model information";
        licensor: String = "", AnyValue, "text", Alike, "Name of the licensor in the metadata of all renditions, instead of the original's; empty: as in the original";
        licensor_url: LinkUrl = "", AnyValue, "URL", Alike, "Address at which a licence is obtained, in the metadata of all renditions; empty: as in the original";
        web_statement: LinkUrl = "", AnyValue, "URL", Alike, "Page that states the rights and the terms of use, in the metadata of all renditions; empty: as in the original";
        data_mining: DataMiningTerm = "", AnyValue, "code", Alike, "What the metadata of all renditions say about data mining, by a term of the PLUS vocabulary: DMI-ALLOWED, DMI-PROHIBITED-AIMLTRAINING, DMI-PROHIBITED-GENAIMLTRAINING, DMI-PROHIBITED-EXCEPTSEARCHENGINEINDEXING, DMI-PROHIBITED, DMI-PROHIBITED-SEECONSTRAINT or DMI-UNSPECIFIED; empty: as in the original";
        content_usage: ContentUsage = "", AnyValue, "header", Alike, "Value of the header Content-Usage of media responses, a draft of the IETF, such as train-ai=n; empty: none";
        tdm_reservation: bool = "false", AnyValue, "", Alike, "Whether media responses reserve the rights of text and data mining: tdm-reservation: 1 (TDMRep)";
        tdm_policy: LinkUrl = "", AnyValue, "URL", Alike, "Address of the policy on text and data mining in the header tdm-policy of media responses, which needs media.tdm_reservation; empty: none";
        newsml: NewsmlVersion = "2.35", AnyValue, "2.35, 2.30", Alike, "Version of NewsML-G2 documents; 2.30: for clients that compare the number of the version";
        megapixels_max: u32 = "500", 1..=4000, "megapixels", Alike, "Maximum size of a photograph; larger ones are refused";
        file_bytes_max: u64 = "536870912", 1024..=4_294_967_296, "bytes", Alike, "Maximum size of an original; larger ones are refused";
        scans_max: u32 = "100", 1..=1000, "scans", Alike, Expert, "Maximum scans of a progressive JPEG; photographs with more are refused";
        workers: usize = "0", 0..=256, "threads", "Concurrent renders; 0: one per core";
        warm: bool = "true", AnyValue, "", "Whether Preview, WebPreview and Thumbnail of new photographs are pre-rendered (cache warming), and the standard renditions of all pictures are made in the background";
        avif: AvifRendering = "on-request", AnyValue, "on-request, ahead", Alike, "When AVIF of Preview, WebPreview and Thumbnail is made; on-request: when a client first asks for it; ahead: with media.warm, which then takes several times as long, and the web site offers AVIF to browsers";
        queue: usize = "128", 1..=100_000, "renders", "Renders that may wait for a worker, and renders as AVIF that may wait for an encoder; more are answered 503";
        client_queue_share: f32 = "0.25", 0.0..=1.0, "", "Share of media.queue that the renders of one client may have, a user or an address without credentials; at least one render";
        client_megapixels_s: u32 = "50", 0..=1_000_000, "megapixels/s", "Rate limit of one client: megapixels rendered per second on average; more are answered 503; 0: no limit";
        client_megapixels_burst: u32 = "2000", 1..=1_000_000, "megapixels", "Burst of that rate limit: megapixels that one client may have rendered at once";
        archives: usize = "16", 1..=10_000, "archives", "Archives (zip) built at a time; more are answered 503";
        client_archives: usize = "4", 1..=10_000, "archives", "Archives (zip) built at a time for one client";
        memory_bytes: u64 = "1073741824", 16_777_216..=1_099_511_627_776, "bytes", "Memory for all renders in flight; a single render may exceed it";
        render_time_s: f32 = "30", 0.001..=3600.0, "s", Alike, "Time limit of one render, not counting its wait; then it is stopped and answered 503";
        program_memory_bytes: u64 = "1073741824", 67_108_864..=68_719_476_736, "bytes", "Memory limit of the external program that reads a PDF or a video";
        program_time_s: u32 = "60", 1..=3600, "s", "Time limit of the external program";
        pdf_processor_s: u32 = "10", 1..=3600, "s", Alike, "CPU time limit of the external program for a PDF in all: a fifth to read it, two fifths each for its grey version and its picture; shares are rounded up to whole seconds";
        ffmpeg: PathBuf = "ffmpeg", AnyValue, "program", "Program that makes previews and stills of videos that arrive without them; a path, or a name to look up; empty: none";
        video_px: u32 = "640", 64..=4096, "px", Alike, "Long side of a generated video Preview";
        sender: String = "Wirephoto", AnyValue, "text", Alike, "Sender in NewsML-G2 messages";
        max_age_s: u32 = "300", 0..=31_536_000, "s", Reload, "Cache-Control max-age of open renditions";
        stale_while_revalidate_s: u32 = "60", 0..=31_536_000, "s", Reload, "Cache-Control stale-while-revalidate of open renditions";
        uncovered_documents: bool = "false", AnyValue, "", Alike, "Whether documents, text formats and Previews of videos and graphics are open to every authenticated caller, even where no agreement covers the item";
        pdf_active_content: PdfActiveContent = "warn", AnyValue, "warn, refuse", Alike, "What happens to a PDF that runs scripts or starts programs: it is accepted with a warning, or refused";
    }
    /// The rendition cache, in memory and on disk.
    cache: Cache {
        memory_bytes: u64 = "134217728", 0..=1_099_511_627_776, "bytes", "Size of the memory tier of the rendition cache; 0: tier disabled";
        disk_bytes: u64 = "4294967296", 0..=1_125_899_906_842_624, "bytes", "Size of the disk tier of the rendition cache; 0: tier disabled";
        crops_share: f32 = "0.25", 0.0..=0.9, "", "Share of each tier that crops and other variants of a URL may use";
    }
    /// Search, and waiting for new items.
    search: Search {
        enabled: bool = "true", AnyValue, "", "Whether this node searches; a node that serves only media needs no index";
        open_images: bool = "true", AnyValue, "", Reload, "Whether photographs can be found without credentials";
        memory_bytes: u64 = "134217728", 0..=1_099_511_627_776, "bytes", "Memory for cached results of single words and filters, which later searches reuse";
        slow_ms: u32 = "1000", 0..=600_000, "ms", Reload, "Time from which a search is recorded as slow, with its query and without its user, for operators; 0: none is recorded";
        polls: usize = "1000", 1..=1_000_000, "polls", "Requests of the deprecated stream that may wait for items; more are answered 503";
        client_polls: usize = "100", 1..=1_000_000, "polls", "Requests of the deprecated stream that may wait for one user, or for one address without credentials";
        known_polls_share: f32 = "0.5", 0.0..=1.0, "", Expert, "Share of search.polls that is reserved for requests with credentials";
    }
    /// Logins, tokens and purchases.
    auth: Auth {
        access_token_s: u32 = "604800", 60..=31_536_000, "s", Reload, "Lifetime of an access token";
        refresh_token_s: u32 = "7776000", 60..=315_360_000, "s", Reload, "Lifetime of a refresh token; each refresh restarts it";
        refresh_absolute_days: u32 = "365", 1..=36_500, "days", Reload, "Time after an authorization at which its refresh tokens expire, however often they were refreshed";
        session_s: u32 = "43200", 60..=31_536_000, "s", Reload, "Lifetime of a login session in the browser";
        hash_memory_kib: u32 = "19456", 8..=limits::HASH_MEMORY_KIB_MAX, "KiB", "Memory for hashing one password (argon2id)";
        hash_iterations: u32 = "2", 1..=limits::HASH_ITERATIONS_MAX, "", "Passes over that memory for each hash (argon2id)";
        hash_workers: usize = "0", 0..=64, "threads", "Concurrent password hashes, at low priority; 0: half the cores";
        login_queue: usize = "256", 1..=100_000, "logins", "Logins that may wait for a password hash; more are answered 503";
        login_queue_per_address: usize = "128", 1..=100_000, "logins", "Logins from one address that may wait for a password hash";
        failures_per_user: u32 = "10", 1..=1_000_000, "logins", Reload, "Failed logins within the window for one user name from one address, or from one browser that logged in before; then 503";
        failures_per_user_total: u32 = "100", 1..=1_000_000, "logins", Reload, "Failed logins within the window for one user name from all addresses; then attempts for it are delayed";
        failures_per_address: u32 = "100", 1..=1_000_000, "logins", Reload, "Failed logins within the window from one address; then 503";
        failure_window_s: u32 = "900", 1..=86_400, "s", Reload, "Window over which failed logins are counted";
    }
    /// The audit log and its retention.
    audit: Audit {
        retention_days: u32 = "365", 0..=36_500, "days", "Time that events are kept in the audit log; 0: none are stored, they are only logged";
    }
    /// Mails that the service sends.
    mail: Mail {
        host: String = "", AnyValue, "name", "Mail server (SMTP); empty: mails are written to the outbox";
        port: u16 = "587", 1..=65_535, "port", "Port of the mail server";
        tls: MailTls = "starttls", AnyValue, "none, starttls, tls", "How the connection to the mail server is encrypted";
        username: String = "", AnyValue, "text", "User name at the mail server; empty: no authentication";
        password: HiddenText = "", AnyValue, "text", "Password at the mail server; never shown";
        password_file: PathBuf = "", AnyValue, "file", "File with the password at the mail server, read for each mail";
        ca: PathBuf = "", AnyValue, "file", "CA certificates (PEM) trusted for the mail server in addition to the public ones; empty: the public ones only";
        from: String = "Wirephoto <wirephoto@localhost>", AnyValue, "address", "Sender address of mails";
        outbox: PathBuf = "", AnyValue, "folder", "Folder that mails are written to if there is no mail server; empty: outbox/ in the data directory";
        user_per_hour: u32 = "1000", 0..=1_000_000, "mails", Reload, "Rate limit per hour for mails of one user's notifications and channels; more wait, and those of one notification are combined into one; 0: no limit";
        recipient_per_hour: u32 = "200", 0..=1_000_000, "mails", Reload, "Rate limit per hour for mails to one address, over all users; 0: no limit";
        confirm_foreign: bool = "false", AnyValue, "", Reload, "Whether mails to an address that is not the user's own require its owner's confirmation on a page";
        templates: PathBuf = "", AnyValue, "folder", "Folder with custom templates of notification mails, named like the built-in ones; empty: the built-in ones only";
    }
    /// Deliveries of items through channels.
    delivery: Delivery {
        directory_root: PathBuf = "", AnyValue, "folder", "Root folder for channels of the method directory; empty: deliveries/ in the data directory";
        private_addresses: bool = "false", AnyValue, "", "Whether channels that users create may connect to this machine and private networks; channels that the operator creates always may";
        workers: usize = "4", 1..=64, "deliveries", Reload, "Concurrent deliveries";
        queue_max: usize = "1000", 1..=1_000_000, "deliveries", Reload, "Deliveries that may wait for one organization; more are answered 503";
        timeout_s: u32 = "900", 1..=86_400, "s", Reload, "Time limit of one attempt, in addition to the time that its bytes take at 16 KiB/s";
        retry_first_ms: u32 = "60000", 1..=3_600_000, "ms", Reload, "Delay before the first retry; doubles with each retry, up to an hour";
        retry_hours: u32 = "24", 1..=720, "h", Reload, "Time after which a delivery that never succeeded is abandoned";
        lease_s: u32 = "30", 1..=3600, "s", Reload, Expert, "Time after which another process claims the deliveries of one that was killed";
    }
    /// Push messages to mobile devices.
    push: Push {
        fcm_url: BaseUrl = "https://fcm.googleapis.com", AnyValue, "URL", Expert, "Base URL of Firebase Cloud Messaging, HTTP v1";
        fcm_service_account: PathBuf = "", AnyValue, "file", "Key file (JSON) of the service account that sends to Android devices; empty: nothing is sent to Android devices";
        apns_url: BaseUrl = "https://api.push.apple.com", AnyValue, "URL", Expert, "Base URL of the Apple Push Notification service";
        apns_sandbox_url: BaseUrl = "https://api.sandbox.push.apple.com", AnyValue, "URL", Expert, "Base URL of the sandbox of the Apple Push Notification service, for devices of the type ios-sandbox";
        apns_key: PathBuf = "", AnyValue, "file", "Signing key (.p8) for the Apple Push Notification service; empty: nothing is sent to iOS devices";
        apns_key_id: String = "", AnyValue, "text", "Key id of the signing key, 10 characters";
        apns_team_id: String = "", AnyValue, "text", "Team id of the owner of the signing key";
        apns_topic: String = "", AnyValue, "text", "Bundle id of the app";
        ca: PathBuf = "", AnyValue, "file", "CA certificates (PEM) trusted in addition to the public ones, such as a proxy's";
    }
    /// Notifications: streams, mails, push messages.
    notifications: Notifications {
        polls: usize = "20000", 1..=1_000_000, "polls", Expert, "Stream requests that may wait for items; more are answered 503";
        client_polls: usize = "1000", 1..=1_000_000, "polls", Expert, "Stream requests of one user that may wait for items";
        mail_workers: usize = "4", 1..=64, "mails", Reload, "Notification mails sent at a time";
        push_workers: usize = "16", 1..=256, "messages", Reload, "Push messages sent at a time";
        retry_first_ms: u32 = "60000", 1..=3_600_000, "ms", Reload, "Delay before the first retry of a message; doubles with each retry, up to an hour";
        retry_hours: u32 = "24", 1..=720, "h", Reload, "Time after which a message that could not be sent is parked";
    }
    /// A CDN or a cache in front of the media.
    cdn: Cdn {
        surrogate_key_header: FieldName = "Surrogate-Key", AnyValue, "header", "Header of media responses with their cache keys for a CDN, separated by spaces; empty: none";
        cache_tag_header: FieldName = "Cache-Tag", AnyValue, "header", "Header of media responses with the same cache keys, separated by commas; empty: none";
        max_age_s: u32 = "0", 0..=31_536_000, "s", "Cache-Control s-maxage of open renditions, for shared caches only; 0: none, so media.max_age_s applies to them too";
        purge_url: String = "", AnyValue, "URLs", "URLs, separated by spaces, that are called to purge cache keys after a change; {key} stands for one key, with one call per key; empty: no purges";
        purge_method: FieldName = "POST", AnyValue, "method", "HTTP method of a purge call: POST, PURGE, BAN, DELETE";
        purge_header: FieldName = "", AnyValue, "header", "Header of a purge call that carries the keys, separated by spaces; empty: none";
        purge_body: String = "", AnyValue, "text", "Body of a purge call; {keys} stands for the keys separated by spaces, {keys_comma} by commas, {keys_json} for JSON strings";
        purge_authorization: HiddenText = "", AnyValue, "text", "Authorization header of a purge call, such as Bearer and a token, or NAME: VALUE for another header; never shown";
        purge_ca: PathBuf = "", AnyValue, "file", "CA certificates (PEM) trusted for the purge URLs in addition to the public ones; empty: the public ones only";
        purge_keys_max: usize = "30", 1..=1000, "keys", Expert, "Maximum keys in one purge call";
        purge_timeout_s: u32 = "10", 1..=60, "s", "Time limit of one purge call";
        purge_again_s: u32 = "5", 0..=600, "s", Expert, "Delay after a change before its keys are purged a second time, in case a cache was fetching the old version meanwhile; 0: no second purge";
    }
    /// Ingest of incoming files.
    ingest: Ingest {
        workers: usize = "0", 0..=256, "threads", "Files ingested at a time; 0: one per core";
        memory_bytes: u64 = "2147483648", 16_777_216..=1_099_511_627_776, "bytes", "Memory for all files being ingested; a photograph that alone would need more is refused";
        file_time_s: f32 = "120", 0.001..=3600.0, "s", "Time limit for reading one photograph, which is then refused";
        timezone: TimeZoneName = "Europe/Stockholm", AnyValue, "zone", Alike, "Time zone whose midnight separates today's photographs from older ones";
        watch: PathBuf = "", AnyValue, "folder", "Watched folder: complete files in it are ingested while the service runs, then moved to done/ or failed/ in it; empty: none";
        watch_interval_ms: u32 = "1000", 20..=3_600_000, "ms", Expert, "Poll interval of the watched folder; a file that is unchanged between two polls counts as complete";
        required_fields: RequiredFields = "", AnyValue, "names", Alike, "House rule: fields that an item needs before editors can save or publish it, separated by commas, such as headline, description_text, byline; empty: none";
        upload_user_bytes: u64 = "21474836480", 0..=1_125_899_906_842_624, "bytes", "Space for the unpublished uploads of one user, by their declared sizes; 0: no resumable uploads";
        upload_total_bytes: u64 = "107374182400", 0..=1_125_899_906_842_624, "bytes", "Space for the unpublished uploads of all users";
        upload_hours: u32 = "48", 1..=8760, "h", "Time after which an upload expires that received nothing";
    }
    /// Log lines, log files and traces.
    telemetry: Telemetry {
        log_format: LogFormat = "auto", AnyValue, "auto, text, json", "Format of log lines; auto: text on a terminal, JSON otherwise";
        log_level: String = "info", AnyValue, "filter", Reload, "Log level or filter, such as warn or info,wirephoto::media=debug";
        log_file: PathBuf = "", AnyValue, "file", "File that log lines are appended to, reopened on SIGHUP; empty: standard error";
        otlp_url: BaseUrl = "", AnyValue, "URL", "Base URL of a trace collector, OTLP over HTTP, such as http://localhost:4318; empty: no traces";
        otlp_headers: HiddenText = "", AnyValue, "text", "Headers for the trace collector, NAME=VALUE separated by commas; never shown";
        trace_ratio: f32 = "0.01", 0.0..=1.0, "", Reload, "Share of requests that are traced; for requests from a trusted proxy its traceparent header decides";
    }
}

/// Lists all settings with their defaults, regardless of file and environment.
pub fn default_rows() -> Vec<SettingRow> {
    let values = RawSettings::default();
    // A test checks every default, so this cannot fail in a release.
    let config = Config::from_values(&values).expect("the defaults are within their bounds");
    config.rows(&values)
}

impl Config {
    /// Returns the settings that should be equal on all nodes of an archive, with their values.
    ///
    /// None of them is secret, so nodes can publish them to each other.
    pub fn alike(&self) -> BTreeMap<String, String> {
        // The origins in the rows are wrong, but only their values are used.
        let rows = self.rows(&RawSettings::default()).into_iter();
        let alike = rows.filter(|row| row.is_alike);
        alike.map(|row| (row.name.to_owned(), row.value)).collect()
    }

    /// Returns the source of the database password.
    pub fn database_password(&self) -> SecretSource {
        let database = &self.database;
        SecretSource::new(&database.password.0, "database.password_file", &database.password_file)
    }

    /// Returns the source of the mail server password.
    pub fn mail_password(&self) -> SecretSource {
        let mail = &self.mail;
        SecretSource::new(&mail.password.0, "mail.password_file", &mail.password_file)
    }

    /// Base URL of media links, without a trailing slash.
    pub fn media_url(&self) -> &str {
        first_non_empty(&[&self.server.media_url, &self.server.public_url])
    }

    /// Base URL of the OAuth2 endpoints, which is the issuer of id tokens.
    pub fn auth_url(&self) -> &str {
        first_non_empty(&[&self.server.auth_url, &self.server.public_url])
    }

    /// Returns whether this process terminates TLS itself.
    pub fn serves_tls(&self) -> bool {
        !self.server.tls_certificate.as_os_str().is_empty()
    }

    /// Returns a warning if all clients appear to have the address of an untrusted proxy.
    ///
    /// The sign of it is an `https` public URL without TLS in this process and without trusted proxies.
    pub fn proxy_warning(&self) -> Option<&'static str> {
        let server = &self.server;
        let is_behind_proxy = server.public_url.0.starts_with("https:") && !self.serves_tls();
        (is_behind_proxy && server.trusted_proxies.0.is_empty()).then_some(
            "server.public_url is https and this process serves no TLS, so a proxy is in front of \
             it; server.trusted_proxies is empty, so all clients count as that proxy's address: \
             failed logins of one lock out all, and limits for each client apply to all of them \
             together; set server.trusted_proxies to the addresses of the proxy",
        )
    }

    /// Returns whether browsers use `https` to reach the service, through a proxy or directly.
    pub fn is_https(&self) -> bool {
        // Behind a proxy that terminates TLS, only the public URLs reveal it.
        let urls = [self.auth_url(), self.server.public_url.0.as_str()];
        self.serves_tls() || urls.iter().any(|url| url.starts_with("https:"))
    }

    /// Number of passwords hashed at a time.
    pub fn hash_workers(&self) -> usize {
        match self.auth.hash_workers {
            // The other half stays free for requests during a flood of logins.
            0 => (cores_or(0) / 2).max(1),
            count => count,
        }
    }

    /// Base URL of the deprecated search interface.
    pub fn search_url(&self) -> &str {
        first_non_empty(&[&self.server.search_url, &self.server.public_url])
    }

    /// Base URL of links to pages.
    pub fn site_url(&self) -> &str {
        first_non_empty(&[&self.server.site_url, &self.server.public_url])
    }

    /// Folder of the originals. If they are in a bucket, this is the default folder in the data directory.
    pub fn originals_dir(&self) -> PathBuf {
        let folder = match &self.store.originals {
            OriginalsLocation::Folder(folder) => folder.as_path(),
            OriginalsLocation::Data | OriginalsLocation::Bucket { .. } => Path::new(""),
        };
        self.in_data(folder, "originals")
    }

    /// Root folder for channels of the method directory.
    pub fn deliveries_dir(&self) -> PathBuf {
        self.in_data(&self.delivery.directory_root, "deliveries")
    }

    /// Folder that mails are written to if no mail server is set.
    pub fn outbox_dir(&self) -> PathBuf {
        self.in_data(&self.mail.outbox, "outbox")
    }

    /// Folder with the operator's templates of mails, if it is set.
    pub fn mail_templates_dir(&self) -> Option<&Path> {
        Some(self.mail.templates.as_path()).filter(|folder| !folder.as_os_str().is_empty())
    }

    /// Folder of the derived files of originals.
    pub fn derived_dir(&self) -> PathBuf {
        self.data.dir.join("derived")
    }

    /// Folder of the disk tier of the rendition cache.
    pub fn cache_dir(&self) -> PathBuf {
        self.derived_dir().join("cache")
    }

    /// Folder of the search indexes.
    pub fn search_dir(&self) -> PathBuf {
        self.data.dir.join("search")
    }

    /// Returns `folder`, or `name` in the data directory if the setting is empty.
    fn in_data(&self, folder: &Path, name: &str) -> PathBuf {
        if folder.as_os_str().is_empty() { self.data.dir.join(name) } else { folder.to_owned() }
    }

    /// Number of concurrent renders.
    pub fn render_workers(&self) -> usize {
        cores_or(self.media.workers)
    }

    /// Number of files ingested at a time.
    pub fn ingest_workers(&self) -> usize {
        cores_or(self.ingest.workers)
    }
}

/// Returns the system's folder for temporary files.
pub fn temporary_dir() -> PathBuf {
    std::env::temp_dir()
}

/// Returns the name of the operating-system user from the environment; under `sudo`, the user who called it.
///
/// Empty if the environment has no name. The caller can set these variables to any name, so records show it
/// together with the numeric user id. `SUDO_USER` is read for root only: setting a variable does not make a
/// user root.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
pub fn system_user() -> String {
    // Only root's `SUDO_USER` comes from `sudo`. Other users can set it to any name.
    let names = ["SUDO_USER", "LOGNAME", "USER"].into_iter();
    let user = names.skip(usize::from(modes::user_id() != 0)).find_map(|name| {
        let user = std::env::var_os(name)?.into_string().ok()?;
        Some(user).filter(|user| !user.is_empty())
    });
    user.unwrap_or_default()
}

/// Returns the name of this machine, or of the container; empty if the system does not tell it.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

fn first_non_empty<'a>(urls: &[&'a BaseUrl]) -> &'a str {
    urls.iter().map(|url| url.0.as_str()).find(|url| !url.is_empty()).unwrap_or_default()
}

fn cores_or(count: usize) -> usize {
    match count {
        // Respects the CPU quota of a container, unlike the number of the machine's cores.
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    }
}
