//! Assembly: opens the resources that commands share, and runs the server.

mod assembly;
mod audit_log;
pub mod backup;
pub mod bench;
pub mod check;
mod demo;
pub mod doctor;
mod jobs;
pub mod migrate;
pub mod ownership;
mod parallel;
mod problem;
mod progress;
mod purging;
mod quick_check;
mod reload;
mod scrub;
pub mod secrets;
mod server;
mod server_storage;
mod services;
mod settings_check;
mod standard_progress;
mod systemd;
pub mod verify;

use std::{fs, path::Path, sync::Arc, time::Duration};

pub use demo::{
    demo_warning, find_demo, ingest_demo, refuse_public_demo, refuse_published_logins,
    remove_demo_accounts,
};
pub use reload::{ServerLaunch, allow_connections};
pub use server::ServerProcess;
pub use settings_check::{unusable_files, unusable_values};
pub use standard_progress::forget_standard_progress;

use ownership::{OwnershipCheck, OwnershipUse, StoreOwnership};
use secrets::{MissingKey, unlock};

use crate::access::auth::Argon2Hasher;
use crate::access::provisioning::{Accounts, ImportReport};
use crate::archive::ingest::{Ingest, IngestLimits};
use crate::cluster::membership::{ClusterNode, MembershipKeeper, NodeDescription};
use crate::cluster::readiness::write_probe;
use crate::media::original::OriginalStore;
use crate::media::{DecodeLimits, MediaSettings};
use crate::runtime::clock;
use crate::runtime::config::{
    BucketCredentials, Config, OriginalsLocation, PdfActiveContent, SecretSource, find_program,
    host_name,
};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::memory_budget::MemoryBudget;
use crate::runtime::modes;
use crate::runtime::programs::{ProgramLimits, ProgramRunner};
use crate::storage::audit;
use crate::storage::blobs::{
    BlobStore, BucketSettings, CredentialSource, StartPolicy, StoreError,
};
use crate::storage::database::{Db, DbError};
use crate::storage::diagnostics::DiagnosticLog;

/// Bytes of an accounts file. Ten thousand users take about 5 MB.
const ACCOUNTS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Long side in pixels of the page image that a graphic's renditions are scaled from.
const PAGE_PX_MAX: u32 = 4096;

/// The open archive that every command works on: the database and the store of a data directory.
pub struct OpenArchive {
    pub db: Db,
    /// The originals with their derived files.
    pub originals: OriginalStore,
    /// The memory budget of files that are being ingested, shared by all sources.
    pub memory: Arc<MemoryBudget>,
    /// Ingest errors and slow searches that wait to be written to the database, for operators.
    pub diagnostics: DiagnosticLog,
    /// The check that determines the owner of the store later, if the store did not answer.
    undetermined_store: Option<OwnershipCheck>,
}

/// Options for opening an archive.
#[derive(Clone, Copy)]
struct ArchiveOptions {
    /// The handling of a bucket that does not answer.
    start_policy: StartPolicy,
    /// The handling of secrets whose key is missing.
    missing_key: MissingKey,
    /// True to open the archive read-only.
    only_reads: bool,
    /// The records of the store's ownership that are written; `None` skips the check that the store belongs
    /// to the archive.
    ownership: Option<OwnershipUse>,
}

impl ArchiveOptions {
    const COMMAND: Self = Self {
        start_policy: StartPolicy::Fail,
        missing_key: MissingKey::OpenWithout,
        only_reads: false,
        ownership: Some(OwnershipUse::Examine),
    };
}

impl OpenArchive {
    /// Opens the data directory for a command that stores no originals; creates it if it is missing. The
    /// store may be a copy that replaces the archive's store later; its mark is not changed.
    ///
    /// Fails with [`ErrorKind::Conflict`] if the store of originals belongs to a different archive.
    pub fn open(config: &Config) -> Result<Self> {
        Self::open_with(config, ArchiveOptions::COMMAND)
    }

    /// Opens the archive read-only for inspection, which needs no write permissions.
    fn open_to_examine(config: &Config) -> Result<Self> {
        let options =
            ArchiveOptions { only_reads: true, ownership: None, ..ArchiveOptions::COMMAND };
        Self::open_with(config, options)
    }

    /// Opens the archive for a command that neither reads nor writes originals, regardless of the archive
    /// that the store belongs to.
    pub fn open_without_ownership(config: &Config) -> Result<Self> {
        Self::open_with(config, ArchiveOptions { ownership: None, ..ArchiveOptions::COMMAND })
    }

    /// Opens the archive that a restore has just written, whose store belongs to it from now on.
    pub fn open_restored(config: &Config) -> Result<Self> {
        let ownership = Some(OwnershipUse::Serve);
        Self::open_with(config, ArchiveOptions { ownership, ..ArchiveOptions::COMMAND })
    }

    /// Opens the archive for a command that stores or removes originals; verifies that a bucket is writable.
    ///
    /// Fails with [`ErrorKind::Conflict`] also if the store is a copy that does not replace the archive's
    /// store yet.
    pub fn open_to_write(config: &Config) -> Result<Self> {
        let ownership = Some(OwnershipUse::Write);
        Self::open_with(config, ArchiveOptions { ownership, ..ArchiveOptions::COMMAND })?
            .writable()
    }

    /// Opens the archive for a command that writes derived files; verifies that a bucket is writable.
    pub fn open_to_derive(config: &Config) -> Result<Self> {
        Self::open(config)?.writable()
    }

    fn writable(self) -> Result<Self> {
        self.originals.store.check_writable().map_err(unusable_originals)?;
        Ok(self)
    }

    /// Opens the archive for the server that the settings describe, which may be read-only. The server starts
    /// even if a bucket does not answer in time, and serves requests that do not need it; a bucket that
    /// refuses access is an error.
    pub fn open_to_serve(config: &Config) -> Result<Self> {
        let only_reads = config.server.role.is_read_only();
        // A read-only node serves media, which needs no secrets.
        let missing_key = if only_reads { MissingKey::OpenWithout } else { MissingKey::Fail };
        let start_policy = StartPolicy::Serve;
        let ownership = Some(OwnershipUse::Serve);
        let options = ArchiveOptions { start_policy, missing_key, only_reads, ownership };
        let archive = Self::open_with(config, options)?;
        warnings(config, &archive.db).iter().for_each(|warning| tracing::warn!("{warning}"));
        if archive.db.secrets_key()?.is_none() {
            tracing::warn!(
                "passwords of channels and the signing key are stored in the database in plain text; \
                 secrets.key_file encrypts them"
            );
        }
        // The old database refuses writes, so a server on it would serve an archive that falls
        // behind.
        if let Some(home) = archive.db.moved_to()? {
            let message = format!(
                "this archive has moved to {home}; `wirephoto migrate --undo --to URL` undoes that"
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        // A read-only node may lack the right to write to the store on purpose.
        if only_reads {
            return Ok(archive);
        }
        match archive.originals.store.check_writable() {
            Ok(()) => Ok(archive),
            // An outage of the bucket passes without a restart; a refusal does not.
            Err(unavailable @ StoreError::Unavailable { .. }) => {
                tracing::warn!("it is not known whether originals can be written: {unavailable}");
                Ok(archive)
            }
            Err(refused) => Err(unusable_originals(refused)),
        }
    }

    fn open_with(config: &Config, options: ArchiveOptions) -> Result<Self> {
        let ArchiveOptions { start_policy, missing_key, only_reads, ownership } = options;
        // Set before the first write of the process, which may record an event.
        audit::store_rows(config.audit.retention_days > 0);
        let dir = &config.data.dir;
        modes::create_private_folder(dir)
            .map_err(|cause| unusable_folder(dir, cause.to_string()))?;
        let db = if config.database.url.0.is_empty() {
            let opened = if only_reads { Db::open_to_read(dir) } else { Db::open(dir) };
            opened.map_err(|cause| match write_probe(dir) {
                // The database's error lacks the cause that the operating system reports.
                Err(system) => unusable_folder(dir, format!("{cause}: {system}")),
                Ok(()) => unusable_folder(dir, cause.to_string()),
            })?
        } else {
            connect(config, only_reads)?
        };
        unlock(config, &db, missing_key)?;
        let store =
            open_store(config, start_policy).map_err(|cause| match &config.store.originals {
                OriginalsLocation::Data | OriginalsLocation::Folder(_) => {
                    unusable_folder(dir, cause.to_string())
                }
                OriginalsLocation::Bucket { .. } => unusable_originals(cause),
            })?;
        let check = OwnershipCheck::new(config, &db, &store);
        let ownership = ownership.map(|usage| check.determine(usage)).transpose()?;
        let is_determined = match ownership {
            Some(StoreOwnership::Ours) | None => true,
            Some(StoreOwnership::Unknown(why)) => {
                tracing::warn!("store ownership is unknown: {}: {why}", check.store_name());
                false
            }
        };
        let derived = store
            .derived(&config.derived_dir(), config.store.side_files_bytes)
            .map_err(|cause| unusable_folder(dir, cause.to_string()))?;
        let DecodeLimits { header, .. } = DecodeLimits::from_config(config);
        let originals = OriginalStore::new(store, derived, header);
        let memory = Arc::new(MemoryBudget::new(config.ingest.memory_bytes));
        Ok(Self {
            db,
            originals,
            memory,
            diagnostics: DiagnosticLog::default(),
            undetermined_store: (!is_determined).then_some(check),
        })
    }

    /// Starts an incarnation of this process in the cluster of the database; it ends when the returned keeper
    /// is dropped.
    pub fn join_cluster(&self, config: &Config) -> Result<(ClusterNode, MembershipKeeper)> {
        let listen = config.server.listen.to_string();
        let about = NodeDescription::new(config.alike()).at(host_name(), listen);
        let role = config.server.role;
        let node = ClusterNode::start(&self.db, &config.data.dir, role, about, clock::now())?;
        let keeper = node.start_heartbeat()?;
        if !config.database.url.0.is_empty() {
            // Undoing a migration looks for nodes and marks the database as incomplete in one
            // transaction. Registering first and checking the mark afterwards guarantees that one
            // of the two detects the other.
            self.db.is_migration_target().map_err(unusable_database).and_then(refuse_part)?;
        }
        Ok((node, keeper))
    }

    /// Requests that every process that serves searches builds a new index next to its current one. A process
    /// that starts later builds it at its start. Returns the number of items.
    pub fn request_reindex(&self) -> Result<u64> {
        let now = clock::now();
        Ok(self.db.write_blocking(move |tx| {
            tx.request_reindex(now)?;
            tx.count_items()
        })?)
    }

    /// Creates the ingest for one run into this archive.
    ///
    /// Fails if the watermark cannot be created from the settings.
    pub fn ingest(&self, config: &Config) -> Result<Ingest> {
        let DecodeLimits { pixels_max, file_bytes_max, header } =
            DecodeLimits::from_config(config);
        // The page is scaled down to a Preview later; twice that size preserves fine lines.
        let page_px = config.media.preview_px.saturating_mul(2).min(PAGE_PX_MAX);
        let video_px = config.media.video_px;
        let file_time = Duration::from_secs_f32(config.ingest.file_time_s);
        let limits = IngestLimits {
            pixels_max,
            file_bytes_max,
            header,
            file_time,
            memory_bytes: config.ingest.memory_bytes,
            page_px,
            video_px,
            refuses_active_pdf: config.media.pdf_active_content == PdfActiveContent::Refuse,
        };
        let zone = config.ingest.timezone.0.clone();
        let watermark = MediaSettings::from_config(config)?.watermark;
        let db = self.db.clone();
        let originals = self.originals.clone();
        let programs = programs(config)?;
        let memory = Arc::clone(&self.memory);
        let mut ingest = Ingest::new(db, originals, programs, limits, memory, zone, watermark);
        ingest.diagnostics = self.diagnostics.clone();
        Ok(ingest)
    }

    /// Returns the accounts of this archive, for the operator's commands.
    ///
    /// Fails if the settings are out of range for argon2.
    pub fn accounts(&self, config: &Config) -> Result<Accounts> {
        let hasher = Argon2Hasher::new(config.auth.hash_memory_kib, config.auth.hash_iterations)?;
        Ok(Accounts::new(self.db.clone(), hasher, config.hash_workers()))
    }

    /// Imports the accounts file at `path`.
    pub fn import(&self, config: &Config, path: &Path) -> Result<ImportReport> {
        let text = read_accounts(path)?;
        self.accounts(config)?
            .import(&text, clock::now())
            .map_err(|cause| file_error(path, &cause))
    }
}

/// Returns warnings about the security of this archive: other users' access to its files, and connections
/// without encryption.
pub fn warnings(config: &Config, db: &Db) -> Vec<String> {
    let mut found = Vec::new();
    let dir = &config.data.dir;
    if let Some(mode) = modes::find_open_mode(dir) {
        found.push(format!(
            "the data directory {dir} is open to other users of this machine (mode {mode:04o}); \
             `chmod go= {dir}` closes it",
            dir = dir.display()
        ));
    }
    let hosts = db.hosts_without_tls();
    if !hosts.is_empty() {
        found.push(format!(
            "database.url: the connection to {} is not encrypted, and anyone on the network path \
             can read the whole archive; sslmode=verify-full encrypts it",
            hosts.join(", ")
        ));
    }
    found
}

fn unusable_folder(dir: &Path, cause: String) -> Error {
    let message = format!("data directory {} cannot be used", dir.display());
    Error::new(ErrorKind::Unavailable, message).with_source(cause)
}

fn unusable_originals(cause: StoreError) -> Error {
    Error::new(ErrorKind::Unavailable, "the originals cannot be used").with_source(cause)
}

/// Connects to the PostgreSQL database of the settings.
fn connect(config: &Config, only_reads: bool) -> Result<Db> {
    let given = &config.database;
    let connect = if only_reads { Db::connect_to_read } else { Db::connect };
    let db = connect(&given.url.0, &config.database_password()).map_err(unusable_database)?;
    // A command on an incomplete archive would report the missing part as lost.
    db.is_migration_target().map_err(unusable_database).and_then(refuse_part)?;
    Ok(db)
}

fn unusable_database(cause: DbError) -> Error {
    let message = "the database of the setting database.url cannot be used";
    Error::new(ErrorKind::Unavailable, message).with_source(cause)
}

/// Fails if a migration into the database is incomplete.
fn refuse_part(is_migration_target: bool) -> Result<()> {
    if !is_migration_target {
        return Ok(());
    }
    let message = "database.url: an archive is being migrated to this database and is not \
                   complete; `wirephoto migrate` with --switch completes it";
    Err(Error::new(ErrorKind::Conflict, message))
}

/// Opens the store of originals at the location in the settings.
fn open_store(
    config: &Config,
    start_policy: StartPolicy,
) -> std::result::Result<BlobStore, StoreError> {
    let Some(settings) = bucket_settings(config) else {
        return BlobStore::open(&config.originals_dir());
    };
    BlobStore::in_bucket(&settings, &config.data.dir.join("scratch"), start_policy)
}

/// Returns the settings of the bucket with the originals; `None` if they are in a folder.
fn bucket_settings(config: &Config) -> Option<BucketSettings> {
    let given = &config.store;
    let OriginalsLocation::Bucket { bucket, prefix } = &given.originals else { return None };
    Some(BucketSettings {
        bucket: bucket.clone(),
        prefix: prefix.clone(),
        endpoints: given.endpoint.0.clone(),
        region: given.region.clone(),
        credentials: credentials(config),
        path_style: given.address_style.is_path(&given.endpoint),
        plain_http: given.plain_http,
        ca: given.ca.clone(),
        answer: seconds(given.answer_s),
        give_up: seconds(given.give_up_s),
        requests: given.requests,
    })
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(u64::from(count))
}

/// Returns the source of the credentials for the bucket.
fn credentials(config: &Config) -> CredentialSource {
    let given = &config.store;
    match given.credentials {
        BucketCredentials::Key => CredentialSource::Key {
            id: SecretSource::new(
                &given.access_key_id,
                "store.access_key_id_file",
                &given.access_key_id_file,
            ),
            secret: SecretSource::new(
                &given.secret_access_key.0,
                "store.secret_access_key_file",
                &given.secret_access_key_file,
            ),
            token: SecretSource::new(
                &given.session_token.0,
                "store.session_token_file",
                &given.session_token_file,
            ),
        },
        BucketCredentials::WebIdentity => CredentialSource::WebIdentity {
            role: given.role_arn.clone(),
            token_file: given.web_identity_token_file.clone(),
            service: given.credentials_url.0.clone(),
        },
        BucketCredentials::Instance => {
            CredentialSource::Instance { service: given.credentials_url.0.clone() }
        }
    }
}

/// Returns a runner for the external programs that read untrusted files.
fn programs(config: &Config) -> Result<ProgramRunner> {
    let own = std::env::current_exe().map_err(Error::internal)?;
    let limits = ProgramLimits {
        memory_bytes: config.media.program_memory_bytes,
        time: Duration::from_secs(u64::from(config.media.program_time_s)),
        pdf_processor: Duration::from_secs(u64::from(config.media.pdf_processor_s)),
    };
    Ok(ProgramRunner::new(own, find_program(&config.media.ffmpeg), limits))
}

/// Returns an error that names the file.
fn file_error(path: &Path, cause: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("{}: {cause}", path.display()))
}

/// Reads an accounts file; fails if the file is too large.
fn read_accounts(path: &Path) -> Result<String> {
    let metadata = fs::metadata(path).map_err(|cause| file_error(path, &cause))?;
    // The path is an argument of a command and may name any file.
    if metadata.len() > ACCOUNTS_BYTES_MAX {
        return Err(file_error(path, &format!("has more than {ACCOUNTS_BYTES_MAX} bytes")));
    }
    fs::read_to_string(path).map_err(|cause| file_error(path, &cause))
}
