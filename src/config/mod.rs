//! Settings: one table holds every name, type, default, bound, unit and explanation.
//!
//! A value comes from, lowest first: the default, the TOML file, the environment
//! (`WIREPHOTO_<SECTION>__<KEY>`), a flag. An unknown name or a bad value stops the start with its
//! name and origin. `wirephoto config` and the table in the README print [`Config::rows`].

mod load;
mod value;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

pub use load::{Sources, find_program, load};
pub use value::{Addresses, BaseUrl, Hidden, MailTls, Zone};
use value::{Any, Bounds, Value};

use crate::telemetry::LogFormat;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The table's default.
    Default,
    /// The settings file.
    File,
    /// A variable of the environment.
    Environment,
    /// A flag of the command.
    Flag,
}

impl Origin {
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
pub struct Row {
    /// `section.key`.
    pub name: &'static str,
    /// The value in force.
    pub value: String,
    /// The default.
    pub default: &'static str,
    /// Where the value came from.
    pub origin: Origin,
    /// Unit of a number, or the kind of text.
    pub unit: &'static str,
    /// One line of explanation.
    pub doc: &'static str,
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
            fn from_values(values: &load::Values) -> Result<Self, ConfigError> {
                Ok(Self {
                    $($section: $Section {
                        $($key: {
                            let name = concat!(stringify!($section), ".", stringify!($key));
                            let (text, origin) = values.find(name, $default);
                            let parsed = <$kind as Value>::parse(&text);
                            let checked = parsed.and_then(|value| {
                                Bounds::<$kind>::check(&$bounds, &value).map(|()| value)
                            });
                            checked.map_err(|expected| load::bad_value(name, &text, &origin, &expected))?
                        },)*
                    },)*
                })
            }

            /// The table with the values in force and their origins.
            #[must_use]
            pub fn rows(&self, values: &load::Values) -> Vec<Row> {
                vec![$($({
                    let name = concat!(stringify!($section), ".", stringify!($key));
                    Row {
                        name,
                        value: Value::print(&self.$section.$key),
                        default: $default,
                        origin: values.find(name, $default).1,
                        unit: $unit,
                        doc: $doc,
                    }
                },)*)*]
            }
        }
    };
}

settings! {
    /// The listener, public addresses and limits of connections.
    server: Server {
        listen: SocketAddr = "127.0.0.1:8080", Any, "address", "Address and port to listen on";
        public_url: BaseUrl = "", Any, "URL", "Base of the links we write; empty: http:// and the address listened on";
        media_url: BaseUrl = "", Any, "URL", "Base of media links, a CDN's name for instance; empty: public_url";
        auth_url: BaseUrl = "", Any, "URL", "Base of the OAuth2 addresses and the issuer of id tokens; empty: public_url";
        search_url: BaseUrl = "", Any, "URL", "Base of the deprecated search interface; empty: public_url";
        site_url: BaseUrl = "", Any, "URL", "Base of the web site that item URLs redirect to; empty: public_url";
        trusted_proxies: Addresses = "", Any, "IP list", "Proxies whose X-Forwarded-For is believed";
        connections_max: u32 = "4096", 1..=1_000_000, "connections", "Connections open at a time";
        header_timeout_s: u32 = "10", 1..=600, "s", "Time a client has to send a request's header";
        idle_timeout_s: u32 = "75", 1..=3600, "s", "Time a connection without a request stays open";
        write_rate_min_bytes_s: u32 = "4096", 0..=100_000_000, "bytes/s", "A client that reads more slowly than this is cut off; 0 turns it off";
        request_timeout_s: u32 = "60", 1..=600, "s", "Time until a request that still waits for its rendition is answered 503";
        unready_s: u32 = "1", 0..=600, "s", "Time between /health/ready turning 503 at a stop and the end of new connections";
        drain_s: u32 = "30", 0..=600, "s", "Time that requests under way have to finish after a stop was asked for";
        work_headers: bool = "true", Any, "", "Whether renditions say how they were made: Server-Timing and Wirephoto-Path";
        site_name: String = "Wirephoto", Any, "text", "Name on the pages";
    }
    /// Where the database and everything derived lie.
    data: Data {
        dir: PathBuf = "media-store", Any, "folder", "Data directory: database, originals, derived files";
    }
    /// Where originals lie.
    store: Store {
        originals: PathBuf = "", Any, "folder", "Folder of the originals; empty: originals/ in the data directory";
    }
    /// Renditions: sizes, quality, the watermark, limits and workers.
    media: Media {
        preview_px: u32 = "1024", 16..=8192, "px", "Long side of a Preview";
        thumbnail_px: u32 = "256", 16..=2048, "px", "Long side of a Thumbnail";
        cropped_thumbnail_px: u32 = "256", 16..=2048, "px", "Sides of a CroppedThumbnail";
        hires_quality: u8 = "90", 1..=100, "", "JPEG quality of crops and watermarks of the Hires";
        preview_quality: u8 = "82", 1..=100, "", "JPEG quality of Previews";
        thumbnail_quality: u8 = "80", 1..=100, "", "JPEG quality of Thumbnails";
        watermark_text: String = "WIREPHOTO", Any, "text", "The line of text that is the watermark";
        watermark_png: PathBuf = "", Any, "file", "A PNG that is the watermark in place of the text";
        watermark_width: f32 = "0.25", 0.01..=1.0, "of width", "Width of the watermark";
        watermark_margin: f32 = "0.02", 0.0..=0.4, "of width", "Distance of the watermark from the left and lower edge";
        watermark_opacity: f32 = "0.75", 0.0..=1.0, "", "Opacity of the watermark";
        keep_gps: bool = "false", Any, "", "Whether renditions keep the position of the original";
        megapixels_max: u32 = "500", 1..=4000, "megapixels", "Photographs with more are refused";
        file_bytes_max: u64 = "536870912", 1024..=4_294_967_296, "bytes", "Larger originals are refused";
        scans_max: u32 = "100", 1..=1000, "scans", "Progressive photographs with more scans are refused";
        workers: usize = "0", 0..=256, "threads", "Renders at a time; 0: one a core";
        warm: bool = "true", Any, "", "Whether Preview and Thumbnail of new photographs are made before somebody asks for them";
        queue: usize = "128", 1..=100_000, "renders", "Renders that may wait; more are answered 503";
        memory_bytes: u64 = "1073741824", 16_777_216..=1_099_511_627_776, "bytes", "Memory that renders under way may take together; one alone may exceed it";
        program_memory_bytes: u64 = "1073741824", 67_108_864..=68_719_476_736, "bytes", "Memory of a program that reads a PDF or a video";
        program_time_s: u32 = "60", 1..=3600, "s", "Time that it may take";
        ffmpeg: PathBuf = "ffmpeg", Any, "program", "Makes previews and stills of videos that come without; a path, or a name to look up; empty: none";
        video_px: u32 = "640", 64..=4096, "px", "Long side of a video Preview that is made";
        sender: String = "Wirephoto", Any, "text", "Who sends, in NewsML-G2 messages";
        max_age_s: u32 = "300", 0..=31_536_000, "s", "Cache-Control max-age of open renditions";
        stale_while_revalidate_s: u32 = "60", 0..=31_536_000, "s", "Cache-Control stale-while-revalidate of open renditions";
    }
    /// The rendition cache.
    cache: Cache {
        memory_bytes: u64 = "134217728", 0..=1_099_511_627_776, "bytes", "Renditions kept in memory; 0 turns this tier off";
        disk_bytes: u64 = "4294967296", 0..=1_125_899_906_842_624, "bytes", "Renditions kept on disk; 0 turns this tier off";
        crops_share: f32 = "0.25", 0.0..=0.9, "", "Part of each tier that crops and other variants of a URL may take";
    }
    /// Search, and waiting for new items.
    search: Search {
        open_images: bool = "true", Any, "", "Whether photographs are found without credentials";
        memory_bytes: u64 = "134217728", 0..=1_099_511_627_776, "bytes", "Memory for what was found of single words, which later searches use again";
        polls: usize = "1000", 1..=1_000_000, "polls", "Requests of the deprecated stream that may wait for items; more are answered 503";
    }
    /// Logins, tokens and purchases.
    auth: Auth {
        access_token_s: u32 = "604800", 60..=31_536_000, "s", "Time that an access token is valid";
        refresh_token_s: u32 = "7776000", 60..=315_360_000, "s", "Time that a refresh token is valid; each refresh begins it anew";
        session_s: u32 = "43200", 60..=31_536_000, "s", "Time that a login in the browser lasts";
        hash_memory_kib: u32 = "19456", 8..=4_194_304, "KiB", "Memory that hashing one password takes (argon2id)";
        hash_iterations: u32 = "2", 1..=1000, "", "Passes over that memory";
        hash_workers: usize = "0", 0..=64, "threads", "Passwords hashed at a time, at low priority; 0: half the cores";
        login_queue: usize = "256", 1..=100_000, "logins", "Logins that may wait for a hash; more are answered 503";
        failures_per_user: u32 = "10", 1..=1_000_000, "logins", "Failed logins of one user name within the window, then 503";
        failures_per_address: u32 = "100", 1..=1_000_000, "logins", "Failed logins from one address within the window, then 503";
        failure_window_s: u32 = "900", 1..=86_400, "s", "The window in which failed logins are counted";
    }
    /// Mails that the service sends.
    mail: Mail {
        host: String = "", Any, "name", "Mail server; empty: mails are written to the outbox";
        port: u16 = "587", 1..=65_535, "port", "Port of the mail server";
        tls: MailTls = "starttls", Any, "none, starttls, tls", "How the connection to it is encrypted";
        username: String = "", Any, "text", "User name at the mail server; empty: no login";
        password: Hidden = "", Any, "text", "Password there; never shown";
        ca: PathBuf = "", Any, "file", "Certificates in PEM that the mail server is believed by, besides the public ones; empty: these only";
        from: String = "Wirephoto <wirephoto@localhost>", Any, "address", "Sender of mails";
        outbox: PathBuf = "", Any, "folder", "Folder that mails are written to without a mail server; empty: outbox/ in the data directory";
        templates: PathBuf = "", Any, "folder", "Templates of notification mails, by the names of those built in; empty: these only";
    }
    /// Deliveries through channels.
    delivery: Delivery {
        directory_root: PathBuf = "", Any, "folder", "Folder below which channels of the method directory write; empty: deliveries/ in the data directory";
        private_addresses: bool = "false", Any, "", "Whether channels that users make may lead to this machine and private networks; those that the operator makes always may";
        workers: usize = "4", 1..=64, "deliveries", "Deliveries sent at a time";
        queue_max: usize = "1000", 1..=1_000_000, "deliveries", "Deliveries of one organization that may wait; more are answered 503";
        timeout_s: u32 = "900", 1..=86_400, "s", "Time that one try may take besides what its bytes take at 16 KiB/s";
        retry_first_ms: u32 = "60000", 1..=3_600_000, "ms", "Time until the second try; it doubles with each, up to an hour";
        retry_hours: u32 = "24", 1..=720, "h", "Time after which a delivery that never succeeded is given up";
        lease_s: u32 = "30", 1..=3600, "s", "Time after which another process takes up what a killed one was sending";
    }
    /// Push messages to mobile devices.
    push: Push {
        fcm_url: BaseUrl = "https://fcm.googleapis.com", Any, "URL", "Base of Firebase Cloud Messaging, HTTP v1";
        fcm_service_account: PathBuf = "", Any, "file", "Key file (JSON) of the service account that sends to Android devices; empty: none are sent";
        apns_url: BaseUrl = "https://api.push.apple.com", Any, "URL", "Base of the Apple Push Notification service";
        apns_sandbox_url: BaseUrl = "https://api.sandbox.push.apple.com", Any, "URL", "Base of its sandbox, for devices of the type ios-sandbox";
        apns_key: PathBuf = "", Any, "file", "Signing key (.p8) for it; empty: nothing is sent to iOS devices";
        apns_key_id: String = "", Any, "text", "Id of that key, 10 characters";
        apns_team_id: String = "", Any, "text", "Id of the team that the key belongs to";
        apns_topic: String = "", Any, "text", "Bundle id of the app";
        ca: PathBuf = "", Any, "file", "Certificates (PEM) that are believed besides the public authorities, of a proxy for instance";
    }
    /// Notifications: streams, mails, push messages.
    notifications: Notifications {
        polls: usize = "20000", 1..=1_000_000, "polls", "Requests of streams that may wait for items; more are answered 503";
        mail_workers: usize = "4", 1..=64, "mails", "Mails of notifications sent at a time";
        push_workers: usize = "16", 1..=256, "messages", "Push messages sent at a time";
        retry_first_ms: u32 = "60000", 1..=3_600_000, "ms", "Time until the second try of a message; it doubles with each, up to an hour";
        retry_hours: u32 = "24", 1..=720, "h", "Time after which a message that was never taken is parked";
    }
    /// What becomes of files that come in.
    ingest: Ingest {
        workers: usize = "0", 0..=256, "threads", "Files taken in at a time; 0: one a core";
        timezone: Zone = "Europe/Stockholm", Any, "zone", "Whose midnight separates today's photographs from older ones";
        watch: PathBuf = "", Any, "folder", "Folder whose finished files are taken in while the service runs, then moved to done/ or failed/ in it; empty: none";
        watch_interval_ms: u32 = "1000", 20..=3_600_000, "ms", "Time between two looks at that folder; what did not change between two looks is finished";
    }
    /// Logs.
    telemetry: Telemetry {
        log_format: LogFormat = "auto", Any, "auto, text, json", "Form of log lines; auto: text on a terminal, JSON otherwise";
        log_level: String = "info", Any, "filter", "Level or filter of log lines, such as warn or info,wirephoto::media=debug";
    }
}

impl Config {
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

    /// Folder of the originals.
    #[must_use]
    pub fn originals_dir(&self) -> PathBuf {
        self.in_data(&self.store.originals, "originals")
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

fn first<'a>(urls: &[&'a BaseUrl]) -> &'a str {
    urls.iter().map(|url| url.0.as_str()).find(|url| !url.is_empty()).unwrap_or_default()
}

fn cores_or(count: usize) -> usize {
    match count {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    }
}
