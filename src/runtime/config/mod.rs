//! Settings: one table holds every name, type, default, bound, unit and explanation.
//!
//! A value comes from, lowest first: the default, the TOML file, the environment
//! (`WIREPHOTO_<SECTION>__<KEY>`), a flag. An unknown name or a bad value stops the start with its
//! name and origin. `wirephoto config` and the reference page of the settings print [`Config::rows`].

mod load;
mod originals_location;
mod reload;
mod role;
mod secret;
mod value;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

pub use load::{SettingSources, find_program, load};
pub use originals_location::{
    AddressStyle, BucketCredentials, OriginalsLocation, ScrubPeriod, ServiceEndpoints,
};
pub use reload::{RELOADABLE, SettingChanges};
pub use role::NodeRole;
pub use secret::SecretSource;
pub use value::{
    AdminAddress, BaseUrl, DatabaseUrl, FieldName, HiddenText, MailTls, Network, NetworkList,
    PdfActiveContent, SettingValue, TimeZoneName,
};
use value::{AnyValue, SettingBounds};

use crate::runtime::modes;
use crate::runtime::telemetry::LogFormat;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// The table's default.
    Default,
    /// The settings file.
    File,
    /// A variable of the environment.
    Environment,
    /// A flag of the command.
    Flag,
}

impl SettingOrigin {
    /// The word that `wirephoto config` shows.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
            Self::Flag => "flag",
        }
    }
}

/// One line of `wirephoto config`.
#[derive(Clone, Debug)]
pub struct SettingRow {
    /// `section.key`.
    pub name: &'static str,
    /// The value in force.
    pub value: String,
    /// The default.
    pub default: &'static str,
    /// Where the value came from.
    pub origin: SettingOrigin,
    /// Unit of a number, or the kind of text.
    pub unit: &'static str,
    /// One line of explanation.
    pub doc: &'static str,
    /// Whether it changes while the service runs, on SIGHUP.
    pub reloads: bool,
}

/// A setting that is unknown or has a bad value; the text names it and where it stands.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

macro_rules! settings {
    ($(
        $(#[doc = $section_doc:literal])*
        $section:ident: $Section:ident {
            $($key:ident: $kind:ty = $default:literal, $bounds:expr, $unit:literal, $doc:literal;)*
        }
    )*) => {
        $(
            $(#[doc = $section_doc])*
            #[derive(Clone, Debug)]
            pub struct $Section {
                $(#[doc = $doc] pub $key: $kind,)*
            }
        )*

        /// Every setting.
        #[derive(Clone, Debug)]
        pub struct Config {
            $($(#[doc = $section_doc])* pub $section: $Section,)*
        }

        /// The names of all settings, `section.key`, in the table's order.
        pub const NAMES: &[&str] = &[$($(concat!(stringify!($section), ".", stringify!($key)),)*)*];

        impl Config {
            /// Builds the settings from `values`; what is missing takes its default.
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
                                let quoted = <$kind as SettingValue>::quote(&text);
                                load::bad_value(name, &quoted, &origin, &expected)
                            })?
                        },)*
                    },)*
                })
            }

            /// The table with the values in force and their origins.
            #[must_use]
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
                        reloads: RELOADABLE.contains(&name),
                    }
                },)*)*]
            }

            /// Takes over what of `next` can change while the service runs; the rest stays.
            ///
            /// Names what was taken over and what differs but has to wait for a restart.
            pub fn adopt(&mut self, next: &Self) -> SettingChanges {
                let mut changes = SettingChanges::default();
                $($(if self.$section.$key != next.$section.$key {
                    let name = concat!(stringify!($section), ".", stringify!($key));
                    if RELOADABLE.contains(&name) {
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
    /// The listener, public addresses and limits of connections.
    server: Server {
        role: NodeRole = "all", AnyValue, "all, web, worker, edge", "What this process does: everything, requests without the work beside them, that work alone, or media only without ever writing to the database";
        listen: SocketAddr = "127.0.0.1:8080", AnyValue, "address", "Address and port to listen on";
        admin_listen: AdminAddress = "", AnyValue, "address", "Address and port of a second listener, for /metrics and /health alone, without TLS; /metrics is then 404 on the first; empty: none";
        public_url: BaseUrl = "", AnyValue, "URL", "Base of the links we write; empty: http:// (with TLS https://) and the address listened on";
        media_url: BaseUrl = "", AnyValue, "URL", "Base of media links, a CDN's name for instance; empty: public_url";
        auth_url: BaseUrl = "", AnyValue, "URL", "Base of the OAuth2 addresses and the issuer of id tokens; empty: public_url";
        search_url: BaseUrl = "", AnyValue, "URL", "Base of the deprecated search interface; empty: public_url";
        site_url: BaseUrl = "", AnyValue, "URL", "Base of the web site that item URLs redirect to; empty: public_url";
        tls_certificate: PathBuf = "", AnyValue, "file", "Certificates in PEM to serve TLS with, the service's own first, then its issuers; empty: no TLS";
        tls_key: PathBuf = "", AnyValue, "file", "Private key in PEM of the first of them";
        trusted_proxies: NetworkList = "", AnyValue, "IP list", "Proxies whose X-Forwarded-For is believed: addresses and networks, such as ::1, 10.0.0.0/8";
        connections_max: u32 = "4096", 1..=1_000_000, "connections", "Connections open at a time";
        connections_per_address: u32 = "1024", 0..=1_000_000, "connections", "Connections open at a time from one address (IPv6: one /64 network), trusted proxies excepted; more are answered 503; 0: no limit";
        header_timeout_s: u32 = "10", 1..=600, "s", "Time a client has to send a request's header";
        idle_timeout_s: u32 = "75", 1..=3600, "s", "Time a connection without a request stays open";
        write_rate_min_bytes_s: u32 = "4096", 0..=100_000_000, "bytes/s", "A client that reads more slowly than this is cut off; 0 turns it off";
        read_rate_min_bytes_s: u32 = "512", 0..=100_000_000, "bytes/s", "A client that sends a body that is waited for more slowly than this is cut off; 0 turns it off";
        rate_window_s: u32 = "30", 1..=600, "s", "Time over which these two rates are measured";
        request_timeout_s: u32 = "60", 1..=600, "s", "Time until a request that still waits for its rendition is answered 503";
        unready_s: u32 = "1", 0..=600, "s", "Time between /health/ready turning 503 at a stop and the end of new connections";
        drain_s: u32 = "30", 0..=600, "s", "Time that requests under way have to finish after a stop was asked for";
        work_headers: bool = "true", AnyValue, "", "Whether renditions say how they were made: Server-Timing and Wirephoto-Path";
        compression: bool = "true", AnyValue, "", "Whether JSON, XML, HTML and other texts are compressed for clients that accept gzip or brotli";
        site_name: String = "Wirephoto", AnyValue, "text", "Name on the pages";
    }
    /// Where the database and everything derived lie.
    data: Data {
        dir: PathBuf = "media-store", AnyValue, "folder", "Data directory: database, originals, derived files";
    }
    /// Where the database is, if not in the data directory.
    database: Database {
        url: DatabaseUrl = "", AnyValue, "address", "PostgreSQL database, postgres://USER@HOST:PORT/DATABASE; a password in it is not shown; empty: SQLite in the data directory";
        password: HiddenText = "", AnyValue, "text", "Password for it, if not in the address; never shown";
        password_file: PathBuf = "", AnyValue, "file", "File that holds that password in its place, read for each connection: a new one counts without a restart";
    }
    /// The key that secrets in the database are encrypted with: passwords of channels, the signing key.
    secrets: Secrets {
        key_file: PathBuf = "", AnyValue, "file", "Key that secrets in the database are encrypted with; empty: secrets.key in the data directory, made on the first start beside SQLite; every node of an archive needs the same";
        key: HiddenText = "", AnyValue, "text", "The key itself, 64 hex digits, in place of a file; several are separated by commas, the first one for a rotation; never shown";
    }
    /// Where originals lie, and how a bucket is reached.
    store: Store {
        originals: OriginalsLocation = "", AnyValue, "folder or bucket", "Where originals lie: a folder, or s3://BUCKET/PREFIX, which then has what is derived from them too; empty: originals/ in the data directory";
        endpoint: ServiceEndpoints = "", AnyValue, "URLs", "Base of the service that has the bucket, or several of one service separated by commas: where one does not answer, the next one is asked; empty: Amazon's in the region";
        region: String = "us-east-1", AnyValue, "name", "Region of the bucket; Garage wants its s3_region, most services of one place take any";
        credentials: BucketCredentials = "key", AnyValue, "key, web-identity, instance", "Where the key to the bucket comes from: these settings; Amazon's token service, for the role of role_arn and the token of web_identity_token_file; or the metadata service of the machine, for its role";
        access_key_id: String = "", AnyValue, "text", "Id of the key to the bucket";
        access_key_id_file: PathBuf = "", AnyValue, "file", "File that holds it in its place, read again each second while it is used: a new key counts without a restart; so are the next two";
        secret_access_key: HiddenText = "", AnyValue, "text", "The key itself; never shown";
        secret_access_key_file: PathBuf = "", AnyValue, "file", "File that holds it in its place";
        session_token: HiddenText = "", AnyValue, "text", "What goes with a key that is valid for a while only; never shown; empty: the key is a lasting one";
        session_token_file: PathBuf = "", AnyValue, "file", "File that holds it in its place";
        credentials_url: BaseUrl = "", AnyValue, "URL", "Base of that token or metadata service; empty: Amazon's";
        role_arn: String = "", AnyValue, "text", "Role that is taken with a web identity, arn:aws:iam::…:role/…";
        web_identity_token_file: PathBuf = "", AnyValue, "file", "File that holds the token of a web identity, which its issuer renews";
        address_style: AddressStyle = "auto", AnyValue, "auto, path, host", "Where addresses name the bucket; auto: in the path where an endpoint is set, else in the host's name";
        plain_http: bool = "false", AnyValue, "", "Whether the endpoint may be http://, over which everybody on the way can read";
        ca: PathBuf = "", AnyValue, "file", "Certificates (PEM) that the endpoint is believed by, besides the public ones; empty: these only";
        answer_s: u32 = "10", 1..=600, "s", "Time that the bucket has to begin an answer, and for each piece of it; then the request is sent again";
        give_up_s: u32 = "25", 1..=3600, "s", "Time for all tries of a request, besides what its bytes take at 64 KiB/s; then what needs it is answered 503";
        requests: usize = "64", 1..=4096, "requests", "Requests to the bucket at a time";
        side_files_bytes: u64 = "1073741824", 0..=1_125_899_906_842_624, "bytes", "Disk for copies of the bucket's side files, in derived/ of the data directory; 0: none";
        scrub_days: ScrubPeriod = "auto", AnyValue, "days", "Time in which one node reads every original once in the background and compares it with its checksum; auto: 30 for a folder, 0 for a bucket, where reads cost money; 0: never";
    }
    /// How the bucket of a backup is reached, which `wirephoto backup --bucket` names.
    backup: Backup {
        endpoint: ServiceEndpoints = "", AnyValue, "URLs", "Base of the service that has the bucket of a backup, or several of one service separated by commas; empty: Amazon's in the region";
        region: String = "us-east-1", AnyValue, "name", "Region of that bucket";
        access_key_id: String = "", AnyValue, "text", "Id of the key to that bucket";
        access_key_id_file: PathBuf = "", AnyValue, "file", "File that holds it in its place";
        secret_access_key: HiddenText = "", AnyValue, "text", "The key itself; never shown";
        secret_access_key_file: PathBuf = "", AnyValue, "file", "File that holds it in its place";
        session_token: HiddenText = "", AnyValue, "text", "What goes with a key that is valid for a while only; never shown; empty: the key is a lasting one";
        session_token_file: PathBuf = "", AnyValue, "file", "File that holds it in its place";
        address_style: AddressStyle = "auto", AnyValue, "auto, path, host", "Where addresses name that bucket; auto: in the path where an endpoint is set, else in the host's name";
        plain_http: bool = "false", AnyValue, "", "Whether that endpoint may be http://, over which everybody on the way can read";
        ca: PathBuf = "", AnyValue, "file", "Certificates (PEM) that the endpoint is believed by, besides the public ones; empty: these only";
    }
    /// Renditions: sizes, quality, the watermark, limits and workers.
    media: Media {
        preview_px: u32 = "1024", 16..=8192, "px", "Long side of a Preview";
        thumbnail_px: u32 = "256", 16..=2048, "px", "Long side of a Thumbnail";
        cropped_thumbnail_px: u32 = "256", 16..=2048, "px", "Sides of a CroppedThumbnail";
        web_preview_px: u32 = "512", 16..=8192, "px", "Long side of a WebPreview";
        hires_quality: u8 = "90", 1..=100, "", "JPEG quality of crops and watermarks of the Hires";
        preview_quality: u8 = "82", 1..=100, "", "JPEG quality of Previews";
        thumbnail_quality: u8 = "80", 1..=100, "", "JPEG quality of Thumbnails";
        web_preview_quality: u8 = "80", 1..=100, "", "JPEG quality of WebPreviews";
        watermark_text: String = "WIREPHOTO", AnyValue, "text", "The line of text that is the watermark";
        watermark_png: PathBuf = "", AnyValue, "file", "A PNG that is the watermark in place of the text";
        watermark_width: f32 = "0.25", 0.01..=1.0, "of width", "Width of the watermark";
        watermark_margin: f32 = "0.02", 0.0..=0.4, "of width", "Distance of the watermark from the left and lower edge";
        watermark_opacity: f32 = "0.75", 0.0..=1.0, "", "Opacity of the watermark";
        keep_gps: bool = "false", AnyValue, "", "Whether renditions keep the position of the original";
        megapixels_max: u32 = "500", 1..=4000, "megapixels", "Photographs with more are refused";
        file_bytes_max: u64 = "536870912", 1024..=4_294_967_296, "bytes", "Larger originals are refused";
        scans_max: u32 = "100", 1..=1000, "scans", "Progressive photographs with more scans are refused";
        workers: usize = "0", 0..=256, "threads", "Renders at a time; 0: one a core";
        warm: bool = "true", AnyValue, "", "Whether Preview, WebPreview and Thumbnail of new photographs are made before somebody asks for them";
        queue: usize = "128", 1..=100_000, "renders", "Renders that may wait; more are answered 503";
        client_megapixels_s: u32 = "50", 0..=1_000_000, "megapixels/s", "Megapixels that one client may have rendered, on average; more are answered 503; 0 bounds nobody";
        client_megapixels_burst: u32 = "2000", 1..=1_000_000, "megapixels", "Megapixels that one client may have rendered at once";
        archives: usize = "16", 1..=10_000, "archives", "Archives (zip) put together at a time; more are answered 503";
        client_archives: usize = "4", 1..=10_000, "archives", "Those of one client";
        memory_bytes: u64 = "1073741824", 16_777_216..=1_099_511_627_776, "bytes", "Memory that renders under way may take together; one alone may exceed it";
        render_time_s: f32 = "30", 0.001..=3600.0, "s", "Work that one render may take; then it is stopped and answered 503";
        program_memory_bytes: u64 = "1073741824", 67_108_864..=68_719_476_736, "bytes", "Memory of a program that reads a PDF or a video";
        program_time_s: u32 = "60", 1..=3600, "s", "Time that it may take";
        pdf_processor_s: u32 = "10", 1..=3600, "s", "Processor time that it may take for a PDF";
        ffmpeg: PathBuf = "ffmpeg", AnyValue, "program", "Makes previews and stills of videos that come without; a path, or a name to look up; empty: none";
        video_px: u32 = "640", 64..=4096, "px", "Long side of a video Preview that is made";
        sender: String = "Wirephoto", AnyValue, "text", "Who sends, in NewsML-G2 messages";
        max_age_s: u32 = "300", 0..=31_536_000, "s", "Cache-Control max-age of open renditions";
        stale_while_revalidate_s: u32 = "60", 0..=31_536_000, "s", "Cache-Control stale-while-revalidate of open renditions";
        uncovered_documents: bool = "false", AnyValue, "", "Whether documents, text formats and Previews of videos and graphics are open to every known caller, also where no agreement covers the item";
        pdf_active_content: PdfActiveContent = "warn", AnyValue, "warn, refuse", "What becomes of a PDF that runs scripts or starts programs: it is taken in with a warning, or refused";
    }
    /// The rendition cache.
    cache: Cache {
        memory_bytes: u64 = "134217728", 0..=1_099_511_627_776, "bytes", "Renditions kept in memory; 0 turns this tier off";
        disk_bytes: u64 = "4294967296", 0..=1_125_899_906_842_624, "bytes", "Renditions kept on disk; 0 turns this tier off";
        crops_share: f32 = "0.25", 0.0..=0.9, "", "Part of each tier that crops and other variants of a URL may take";
    }
    /// Search, and waiting for new items.
    search: Search {
        enabled: bool = "true", AnyValue, "", "Whether this node searches; one that serves only pictures needs no index";
        open_images: bool = "true", AnyValue, "", "Whether photographs are found without credentials";
        memory_bytes: u64 = "134217728", 0..=1_099_511_627_776, "bytes", "Memory for what was found of single words and filters, which later searches use again";
        polls: usize = "1000", 1..=1_000_000, "polls", "Requests of the deprecated stream that may wait for items; more are answered 503";
        client_polls: usize = "100", 1..=1_000_000, "polls", "Those of one user, or of one address without credentials";
        known_polls_share: f32 = "0.5", 0.0..=1.0, "", "Part of search.polls that only requests with credentials take";
    }
    /// Logins, tokens and purchases.
    auth: Auth {
        access_token_s: u32 = "604800", 60..=31_536_000, "s", "Time that an access token is valid";
        refresh_token_s: u32 = "7776000", 60..=315_360_000, "s", "Time that a refresh token is valid; each refresh begins it anew";
        refresh_absolute_days: u32 = "365", 1..=36_500, "days", "Time after an authorization for which its refresh tokens work at all";
        session_s: u32 = "43200", 60..=31_536_000, "s", "Time that a login in the browser lasts";
        hash_memory_kib: u32 = "19456", 8..=4_194_304, "KiB", "Memory that hashing one password takes (argon2id)";
        hash_iterations: u32 = "2", 1..=1000, "", "Passes over that memory";
        hash_workers: usize = "0", 0..=64, "threads", "Passwords hashed at a time, at low priority; 0: half the cores";
        login_queue: usize = "256", 1..=100_000, "logins", "Logins that may wait for a hash; more are answered 503";
        login_queue_per_address: usize = "128", 1..=100_000, "logins", "Those from one address";
        failures_per_user: u32 = "10", 1..=1_000_000, "logins", "Failed logins of one user name from one address within the window, or of one browser that logged in before; then 503";
        failures_per_user_total: u32 = "100", 1..=1_000_000, "logins", "Failed logins of one user name from all addresses within the window; then attempts for it are delayed";
        failures_per_address: u32 = "100", 1..=1_000_000, "logins", "Failed logins from one address within the window, then 503";
        failure_window_s: u32 = "900", 1..=86_400, "s", "The window in which failed logins are counted";
    }
    /// The audit log.
    audit: Audit {
        retention_days: u32 = "365", 0..=36_500, "days", "Time that events stay in the audit log; 0: none are stored, they are log lines only";
    }
    /// Mails that the service sends.
    mail: Mail {
        host: String = "", AnyValue, "name", "Mail server; empty: mails are written to the outbox";
        port: u16 = "587", 1..=65_535, "port", "Port of the mail server";
        tls: MailTls = "starttls", AnyValue, "none, starttls, tls", "How the connection to it is encrypted";
        username: String = "", AnyValue, "text", "User name at the mail server; empty: no login";
        password: HiddenText = "", AnyValue, "text", "Password there; never shown";
        password_file: PathBuf = "", AnyValue, "file", "File that holds it in its place, read for each mail";
        ca: PathBuf = "", AnyValue, "file", "Certificates in PEM that the mail server is believed by, besides the public ones; empty: these only";
        from: String = "Wirephoto <wirephoto@localhost>", AnyValue, "address", "Sender of mails";
        outbox: PathBuf = "", AnyValue, "folder", "Folder that mails are written to without a mail server; empty: outbox/ in the data directory";
        user_per_hour: u32 = "1000", 0..=1_000_000, "mails", "Mails that notifications and channels of one user send in an hour; more wait and those of a notification become one; 0: no limit";
        recipient_per_hour: u32 = "200", 0..=1_000_000, "mails", "The same to one address, for all users together; 0: no limit";
        confirm_foreign: bool = "false", AnyValue, "", "Whether an address that is not the user's own is mailed only after its owner agreed on a page";
        templates: PathBuf = "", AnyValue, "folder", "Templates of notification mails, by the names of those built in; empty: these only";
    }
    /// Deliveries through channels.
    delivery: Delivery {
        directory_root: PathBuf = "", AnyValue, "folder", "Folder below which channels of the method directory write; empty: deliveries/ in the data directory";
        private_addresses: bool = "false", AnyValue, "", "Whether channels that users make may lead to this machine and private networks; those that the operator makes always may";
        workers: usize = "4", 1..=64, "deliveries", "Deliveries sent at a time";
        queue_max: usize = "1000", 1..=1_000_000, "deliveries", "Deliveries of one organization that may wait; more are answered 503";
        timeout_s: u32 = "900", 1..=86_400, "s", "Time that one try may take besides what its bytes take at 16 KiB/s";
        retry_first_ms: u32 = "60000", 1..=3_600_000, "ms", "Time until the second try; it doubles with each, up to an hour";
        retry_hours: u32 = "24", 1..=720, "h", "Time after which a delivery that never succeeded is given up";
        lease_s: u32 = "30", 1..=3600, "s", "Time after which another process takes up what a killed one was sending";
    }
    /// Push messages to mobile devices.
    push: Push {
        fcm_url: BaseUrl = "https://fcm.googleapis.com", AnyValue, "URL", "Base of Firebase Cloud Messaging, HTTP v1";
        fcm_service_account: PathBuf = "", AnyValue, "file", "Key file (JSON) of the service account that sends to Android devices; empty: none are sent";
        apns_url: BaseUrl = "https://api.push.apple.com", AnyValue, "URL", "Base of the Apple Push Notification service";
        apns_sandbox_url: BaseUrl = "https://api.sandbox.push.apple.com", AnyValue, "URL", "Base of its sandbox, for devices of the type ios-sandbox";
        apns_key: PathBuf = "", AnyValue, "file", "Signing key (.p8) for it; empty: nothing is sent to iOS devices";
        apns_key_id: String = "", AnyValue, "text", "Id of that key, 10 characters";
        apns_team_id: String = "", AnyValue, "text", "Id of the team that the key belongs to";
        apns_topic: String = "", AnyValue, "text", "Bundle id of the app";
        ca: PathBuf = "", AnyValue, "file", "Certificates (PEM) that are believed besides the public authorities, of a proxy for instance";
    }
    /// Notifications: streams, mails, push messages.
    notifications: Notifications {
        polls: usize = "20000", 1..=1_000_000, "polls", "Requests of streams that may wait for items; more are answered 503";
        client_polls: usize = "1000", 1..=1_000_000, "polls", "Those of one user";
        mail_workers: usize = "4", 1..=64, "mails", "Mails of notifications sent at a time";
        push_workers: usize = "16", 1..=256, "messages", "Push messages sent at a time";
        retry_first_ms: u32 = "60000", 1..=3_600_000, "ms", "Time until the second try of a message; it doubles with each, up to an hour";
        retry_hours: u32 = "24", 1..=720, "h", "Time after which a message that was never taken is parked";
    }
    /// A CDN or a cache in front of the media.
    cdn: Cdn {
        surrogate_key_header: FieldName = "Surrogate-Key", AnyValue, "header", "Header of media that names to a CDN what they show, separated by spaces; empty: none";
        cache_tag_header: FieldName = "Cache-Tag", AnyValue, "header", "The same separated by commas; empty: none";
        max_age_s: u32 = "0", 0..=31_536_000, "s", "Cache-Control s-maxage of open renditions, for shared caches alone; 0: none, media.max_age_s holds for them too";
        purge_url: String = "", AnyValue, "URLs", "Addresses, separated by spaces, that are called when what media show has changed; {key} stands for a key, with a call for each; empty: none";
        purge_method: FieldName = "POST", AnyValue, "method", "Method of the call: POST, PURGE, BAN, DELETE";
        purge_header: FieldName = "", AnyValue, "header", "Header of the call that carries the keys, separated by spaces; empty: none";
        purge_body: String = "", AnyValue, "text", "Body of the call; {keys} stands for the keys separated by spaces, {keys_comma} by commas, {keys_json} for JSON strings";
        purge_authorization: HiddenText = "", AnyValue, "text", "Authorization of the call, such as Bearer and a token, or NAME: VALUE for another header; never shown";
        purge_ca: PathBuf = "", AnyValue, "file", "Certificates (PEM) that the called addresses are believed by, besides the public ones; empty: these only";
        purge_keys_max: usize = "30", 1..=1000, "keys", "Keys in one call at most";
        purge_timeout_s: u32 = "10", 1..=60, "s", "Time that one call may take";
        purge_again_s: u32 = "5", 0..=600, "s", "Time after a change at which its keys are sent once more, for what a cache was fetching meanwhile; 0: not";
    }
    /// What becomes of files that come in.
    ingest: Ingest {
        workers: usize = "0", 0..=256, "threads", "Files taken in at a time; 0: one a core";
        memory_bytes: u64 = "2147483648", 16_777_216..=1_099_511_627_776, "bytes", "Memory that files being taken in may take together; a photograph that would need more alone is refused";
        file_time_s: f32 = "120", 0.001..=3600.0, "s", "Work on one photograph after which it is refused";
        timezone: TimeZoneName = "Europe/Stockholm", AnyValue, "zone", "Whose midnight separates today's photographs from older ones";
        watch: PathBuf = "", AnyValue, "folder", "Folder whose finished files are taken in while the service runs, then moved to done/ or failed/ in it; empty: none";
        watch_interval_ms: u32 = "1000", 20..=3_600_000, "ms", "Time between two looks at that folder; what did not change between two looks is finished";
    }
    /// Logs and traces.
    telemetry: Telemetry {
        log_format: LogFormat = "auto", AnyValue, "auto, text, json", "Form of log lines; auto: text on a terminal, JSON otherwise";
        log_level: String = "info", AnyValue, "filter", "Level or filter of log lines, such as warn or info,wirephoto::media=debug";
        log_file: PathBuf = "", AnyValue, "file", "File that log lines are appended to, opened anew on SIGHUP; empty: standard error";
        otlp_url: BaseUrl = "", AnyValue, "URL", "Base of a collector of traces, OTLP over HTTP, such as http://localhost:4318; empty: no traces";
        otlp_headers: HiddenText = "", AnyValue, "text", "Headers for it, NAME=VALUE separated by commas; never shown";
        trace_ratio: f32 = "0.01", 0.0..=1.0, "", "Part of the requests that are traced; a trusted proxy's traceparent decides for its own";
    }
}

/// The table with nothing but the defaults, whatever file and environment say.
#[must_use]
pub fn default_rows() -> Vec<SettingRow> {
    let values = load::RawSettings::default();
    let config = Config::from_values(&values).expect("the defaults are within their bounds");
    config.rows(&values)
}

/// The settings that all nodes of an archive should have alike: links, captions and renditions come from them,
/// and what is taken in.
const ALIKE: [&str; 26] = [
    "server.public_url",
    "server.media_url",
    "store.originals",
    "media.preview_px",
    "media.thumbnail_px",
    "media.cropped_thumbnail_px",
    "media.web_preview_px",
    "media.video_px",
    "media.hires_quality",
    "media.preview_quality",
    "media.thumbnail_quality",
    "media.web_preview_quality",
    "media.watermark_text",
    "media.watermark_png",
    "media.watermark_width",
    "media.watermark_margin",
    "media.watermark_opacity",
    "media.keep_gps",
    "media.sender",
    "media.megapixels_max",
    "media.file_bytes_max",
    "media.scans_max",
    "media.uncovered_documents",
    "media.pdf_active_content",
    "media.pdf_processor_s",
    "media.render_time_s",
];

impl Config {
    /// The settings that all nodes of an archive should have alike, with their values; none of them is
    /// secret.
    #[must_use]
    pub fn alike(&self) -> BTreeMap<String, String> {
        let rows = self.rows(&load::RawSettings::default()).into_iter();
        let alike = rows.filter(|row| ALIKE.contains(&row.name));
        alike.map(|row| (row.name.to_owned(), row.value)).collect()
    }

    /// The password for the database.
    #[must_use]
    pub fn database_password(&self) -> SecretSource {
        let given = &self.database;
        SecretSource::new(&given.password.0, "database.password_file", &given.password_file)
    }

    /// The password for the mail server.
    #[must_use]
    pub fn mail_password(&self) -> SecretSource {
        let given = &self.mail;
        SecretSource::new(&given.password.0, "mail.password_file", &given.password_file)
    }

    /// Base of links to media, `http://…` without a slash at the end.
    #[must_use]
    pub fn media_url(&self) -> &str {
        first(&[&self.server.media_url, &self.server.public_url])
    }

    /// Base of the OAuth2 addresses, the issuer.
    #[must_use]
    pub fn auth_url(&self) -> &str {
        first(&[&self.server.auth_url, &self.server.public_url])
    }

    /// Whether the service speaks TLS itself.
    #[must_use]
    pub fn serves_tls(&self) -> bool {
        !self.server.tls_certificate.as_os_str().is_empty()
    }

    /// What is wrong with the addresses of clients, if they all look like one: behind a proxy that
    /// no setting trusts.
    #[must_use]
    pub fn hidden_clients(&self) -> Option<&'static str> {
        let server = &self.server;
        let is_behind_proxy = server.public_url.0.starts_with("https:") && !self.serves_tls();
        (is_behind_proxy && server.trusted_proxies.0.is_empty()).then_some(
            "server.public_url is https and this process serves no TLS, so a proxy stands in front; \
             server.trusted_proxies is empty, so all clients count as that proxy's address: failed \
             logins of one lock out all, and limits for each client hold for all together; set \
             server.trusted_proxies to the addresses of the proxy",
        )
    }

    /// Whether browsers reach the service by `https`: through a proxy or by its own TLS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        let urls = [self.auth_url(), self.server.public_url.0.as_str()];
        self.serves_tls() || urls.iter().any(|url| url.starts_with("https:"))
    }

    /// Passwords hashed at a time.
    #[must_use]
    pub fn hash_workers(&self) -> usize {
        match self.auth.hash_workers {
            0 => (cores_or(0) / 2).max(1),
            count => count,
        }
    }

    /// Base of the deprecated search interface.
    #[must_use]
    pub fn search_url(&self) -> &str {
        first(&[&self.server.search_url, &self.server.public_url])
    }

    /// Base of links to pages.
    #[must_use]
    pub fn site_url(&self) -> &str {
        first(&[&self.server.site_url, &self.server.public_url])
    }

    /// Folder of the originals; that of the data directory where they lie in a bucket.
    #[must_use]
    pub fn originals_dir(&self) -> PathBuf {
        let folder = match &self.store.originals {
            OriginalsLocation::Folder(folder) => folder.as_path(),
            OriginalsLocation::Data | OriginalsLocation::Bucket { .. } => Path::new(""),
        };
        self.in_data(folder, "originals")
    }

    /// Folder below which channels write.
    #[must_use]
    pub fn deliveries_dir(&self) -> PathBuf {
        self.in_data(&self.delivery.directory_root, "deliveries")
    }

    /// Folder that mails are written to without a mail server.
    #[must_use]
    pub fn outbox_dir(&self) -> PathBuf {
        self.in_data(&self.mail.outbox, "outbox")
    }

    /// The folder of a setting, or `name` in the data directory where it is empty.
    fn in_data(&self, folder: &Path, name: &str) -> PathBuf {
        if folder.as_os_str().is_empty() { self.data.dir.join(name) } else { folder.to_owned() }
    }

    /// Renders at a time.
    #[must_use]
    pub fn render_workers(&self) -> usize {
        cores_or(self.media.workers)
    }

    /// Files taken in at a time.
    #[must_use]
    pub fn ingest_workers(&self) -> usize {
        cores_or(self.ingest.workers)
    }
}

/// The system's folder for temporary files.
#[must_use]
pub fn temporary_dir() -> PathBuf {
    std::env::temp_dir()
}

/// The name of the operating system's user that runs the process, as the environment says: behind
/// `sudo` the one who called it. Empty where it says nothing.
///
/// Whoever sets the environment chooses the name, so it stands beside the number of the user. The name of
/// `sudo` counts for root alone, which nobody becomes by a variable.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
#[must_use]
pub fn system_user() -> String {
    let names = ["SUDO_USER", "LOGNAME", "USER"].into_iter();
    let named = names.skip(usize::from(modes::user_id() != 0)).find_map(|name| {
        let user = std::env::var_os(name)?.into_string().ok()?;
        Some(user).filter(|user| !user.is_empty())
    });
    named.unwrap_or_default()
}

fn first<'a>(urls: &[&'a BaseUrl]) -> &'a str {
    urls.iter().map(|url| url.0.as_str()).find(|url| !url.is_empty()).unwrap_or_default()
}

fn cores_or(count: usize) -> usize {
    match count {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    }
}
