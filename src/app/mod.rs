//! Assembly: opens what the commands share, and runs the server.

pub mod backup;
pub mod check;
mod crowd;
pub mod migrate;
mod purging;
mod reload;
mod server;
mod services;
mod sweeps;
mod systemd;
mod threads;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

pub use server::{Launch, Server, allow_connections};

use crate::accounts::{Accounts, Imported};
use crate::auth::Hasher;
use crate::clock;
use crate::compute::Memory;
use crate::config::{AddressStyle, Config, Place, find_program};
use crate::db::{Db, DbError};
use crate::error::{Error, Kind, Result};
use crate::ingest::{self, Failure, Found, Ingest, IngestLimits, Taken};
use crate::limits::{ACCOUNTS_BYTES_MAX, PAGE_PX_MAX};
use crate::media::DecodeLimits;
use crate::media::Settings;
use crate::media::original::Originals;
use crate::nodes::{Keeper, Lease, Node};
use crate::programs::{ProgramLimits, Programs};
use crate::store::{BucketSettings, Patience, Store, StoreError};

/// Bytes that tell whether a folder has room; a database takes as much to be opened.
const PROBE_BYTES: usize = 64 * 1024;

/// What every command works on: the database and the store of a data directory.
pub struct Archive {
    /// The database.
    pub db: Db,
    /// The originals, with what is derived from them.
    pub originals: Originals,
    /// What files that come in hold while they are taken in, at all doors together.
    pub memory: Arc<Memory>,
}

impl Archive {
    /// Opens the data directory, which is made when it is missing.
    pub fn open(config: &Config) -> Result<Self> {
        Self::open_by(config, Patience::None, false)
    }

    /// The same for a command that writes originals: a bucket proves that it can be written.
    pub fn open_to_write(config: &Config) -> Result<Self> {
        let archive = Self::open(config)?;
        archive.originals.store().prove().map_err(unusable_originals)?;
        Ok(archive)
    }

    /// The same for the server that the settings describe, which may be one that only reads. It starts
    /// also over a bucket that does not answer in time, and serves what needs none; one that refuses
    /// is an error.
    pub fn open_to_serve(config: &Config) -> Result<Self> {
        let only_reads = config.server.role.only_reads();
        let archive = Self::open_by(config, Patience::Serve, only_reads)?;
        if let Some(home) = archive.db.moved_to()? {
            let message = format!(
                "this archive has moved to {home}; `wirephoto migrate --undo --to URL` takes that back"
            );
            return Err(Error::new(Kind::Conflict, message));
        }
        if only_reads {
            return Ok(archive);
        }
        match archive.originals.store().prove() {
            Ok(()) => Ok(archive),
            Err(away @ StoreError::Away { .. }) => {
                tracing::warn!("it is not known whether originals can be written: {away}");
                Ok(archive)
            }
            Err(refused) => Err(unusable_originals(refused)),
        }
    }

    fn open_by(config: &Config, patience: Patience, only_reads: bool) -> Result<Self> {
        let dir = &config.data.dir;
        let unusable = |cause: String| {
            let message = format!("data directory {} cannot be used", dir.display());
            Error::new(Kind::Unavailable, message).because(cause)
        };
        fs::create_dir_all(dir).map_err(|cause| unusable(cause.to_string()))?;
        let db = if config.database.url.0.is_empty() {
            let opened = if only_reads { Db::open_to_read(dir) } else { Db::open(dir) };
            opened.map_err(|cause| match probe(dir) {
                // The database says little of what the system said.
                Err(system) => unusable(format!("{cause}: {system}")),
                Ok(()) => unusable(cause.to_string()),
            })?
        } else {
            connect(config, only_reads)?
        };
        let store =
            open_store(config, patience).map_err(|cause| match &config.store.originals {
                Place::Data | Place::Folder(_) => unusable(cause.to_string()),
                Place::Bucket { .. } => unusable_originals(cause),
            })?;
        let derived = store
            .derived(&dir.join("derived"), config.store.side_files_bytes)
            .map_err(|cause| unusable(cause.to_string()))?;
        let DecodeLimits { header, .. } = DecodeLimits::of(config);
        let originals = Originals::new(store, derived, header, config.media.preview_px);
        let memory = Arc::new(Memory::new(config.ingest.memory_bytes));
        Ok(Self { db, originals, memory })
    }

    /// Begins a life of this process among the nodes of the database, as long as what is given lasts.
    pub fn live(&self, config: &Config) -> Result<(Node, Keeper)> {
        let node = Node::start(&self.db, &config.data.dir, config.server.role, clock::now())?;
        let keeper = node.keep()?;
        if !config.database.url.0.is_empty() {
            // Whoever takes a move back looks for nodes and says in the same transaction that the database is
            // not whole: one of the two finds the other.
            self.db.is_being_filled().map_err(unusable_database).and_then(refuse_part)?;
        }
        Ok((node, keeper))
    }

    /// Makes the search index anew if it is of another version or was not made to its end. Of several nodes
    /// that start one does it and the others wait. A node that only reads does not search.
    pub fn bring_index_up_to_date(&self, config: &Config, node: &Node) -> Result<()> {
        if node.role().only_reads() || self.db.index_is_current()? {
            return Ok(());
        }
        node.alone(Lease::Starting, || {
            if self.db.index_is_current()? {
                return Ok(());
            }
            tracing::info!("the search index is of another version and is made anew");
            let mut start = systemd::Start::new();
            self.reindex(config, &mut |done, count| {
                start.goes_on(&format!("making the search index anew: {done} of {count} items"));
            })
        })
    }

    /// Makes the search index anew from the stored documents; `report` hears how many of how many
    /// items are done.
    pub fn reindex(&self, config: &Config, report: &mut dyn FnMut(u64, u64)) -> Result<()> {
        Ok(self.db.reindex(&config.ingest.timezone.0, clock::now(), report)?)
    }

    /// A run of ingest into this archive.
    ///
    /// Fails when the watermark cannot be made from the settings.
    pub fn ingest(&self, config: &Config) -> Result<Ingest> {
        let DecodeLimits { pixels_max, file_bytes_max, header } = DecodeLimits::of(config);
        // A page is scaled down to a Preview; twice its size keeps fine lines.
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
        };
        let zone = config.ingest.timezone.0.clone();
        let marker = Settings::of(config)?.marker;
        let parts = (self.db.clone(), self.originals.clone(), programs(config)?);
        Ok(Ingest::new(parts, (limits, Arc::clone(&self.memory)), zone, marker))
    }

    /// The accounts of this archive, for the operator's commands.
    ///
    /// Fails when argon2 does not allow the settings.
    pub fn accounts(&self, config: &Config) -> Result<Accounts> {
        let hasher = Hasher::new(config.auth.hash_memory_kib, config.auth.hash_iterations)?;
        Ok(Accounts::new(self.db.clone(), hasher, config.hash_workers()))
    }

    /// Takes the accounts file at `path` in.
    pub fn import(&self, config: &Config, path: &Path) -> Result<Imported> {
        let text = read_accounts(path)?;
        self.accounts(config)?
            .import(&text, clock::now())
            .map_err(|cause| file_error(path, &cause))
    }
}

fn unusable_originals(cause: StoreError) -> Error {
    Error::new(Kind::Unavailable, "the originals cannot be used").because(cause)
}

/// The PostgreSQL database of the settings.
fn connect(config: &Config, only_reads: bool) -> Result<Db> {
    let given = &config.database;
    let connect = if only_reads { Db::connect_to_read } else { Db::connect };
    let db = connect(&given.url.0, &given.password.0).map_err(unusable_database)?;
    db.is_being_filled().map_err(unusable_database).and_then(refuse_part)?;
    Ok(db)
}

fn unusable_database(cause: DbError) -> Error {
    let message = "the database of the setting database.url cannot be used";
    Error::new(Kind::Unavailable, message).because(cause)
}

/// Fails where a database is being filled from another one.
fn refuse_part(is_being_filled: bool) -> Result<()> {
    if !is_being_filled {
        return Ok(());
    }
    let message = "database.url: an archive is on its way into this database and not all of it is \
                   there; `wirephoto migrate` with --switch brings the rest";
    Err(Error::new(Kind::Conflict, message))
}

/// The store of the originals, where the settings say.
fn open_store(config: &Config, patience: Patience) -> std::result::Result<Store, StoreError> {
    let given = &config.store;
    let Place::Bucket { bucket, prefix } = &given.originals else {
        return Store::open(&config.originals_dir());
    };
    let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
    let settings = BucketSettings {
        bucket: bucket.clone(),
        prefix: prefix.clone(),
        endpoint: given.endpoint.0.clone(),
        region: given.region.clone(),
        access_key_id: given.access_key_id.clone(),
        secret_access_key: given.secret_access_key.0.clone(),
        session_token: given.session_token.0.clone(),
        path_style: match given.address_style {
            AddressStyle::Auto => !given.endpoint.0.is_empty(),
            AddressStyle::Path => true,
            AddressStyle::Host => false,
        },
        plain_http: given.plain_http,
        ca: given.ca.clone(),
        answer: seconds(given.answer_s),
        give_up: seconds(given.give_up_s),
        requests: given.requests,
    };
    Store::in_bucket(&settings, &config.data.dir.join("scratch"), patience)
}

/// Writes a file into `dir` as a database needs one, and removes it.
fn probe(dir: &Path) -> std::io::Result<()> {
    let path = dir.join(format!(".probe-{}", std::process::id()));
    let written = fs::write(&path, [0; PROBE_BYTES]);
    drop(fs::remove_file(&path));
    written
}

/// The programs that read what our own code should not.
fn programs(config: &Config) -> Result<Programs> {
    let own = std::env::current_exe().map_err(Error::internal)?;
    let limits = ProgramLimits {
        memory_bytes: config.media.program_memory_bytes,
        time: Duration::from_secs(u64::from(config.media.program_time_s)),
    };
    Ok(Programs::new(own, find_program(&config.media.ffmpeg), limits))
}

/// An error that names its file.
fn file_error(path: &Path, cause: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::InvalidArgument, format!("{}: {cause}", path.display()))
}

/// Reads an accounts file under its limit.
fn read_accounts(path: &Path) -> Result<String> {
    let facts = fs::metadata(path).map_err(|cause| file_error(path, &cause))?;
    if facts.len() > ACCOUNTS_BYTES_MAX {
        return Err(file_error(path, &format!("has more than {ACCOUNTS_BYTES_MAX} bytes")));
    }
    fs::read_to_string(path).map_err(|cause| file_error(path, &cause))
}

/// The demo archive beside the data directory or the working directory.
///
/// Fails when there is none; the message names the places that were looked at.
pub fn find_demo(config: &Config) -> Result<PathBuf> {
    let places = [config.data.dir.clone(), PathBuf::from("media-store")];
    let found = places.iter().find(|place| place.join("demo").is_dir());
    found.cloned().ok_or_else(|| {
        let looked = places.each_ref().map(|place| place.join("demo").display().to_string());
        let message = format!("no demo archive in {}", looked.join(" or "));
        Error::new(Kind::NotFound, message)
    })
}

/// Name of the note that tells which demo accounts were taken in.
const DEMO_ACCOUNTS: &str = "demo-accounts";

/// Takes in what of the demo archive in `place` the data directory does not have yet.
///
/// The accounts are taken in when their file is new to the data directory: what was changed in them
/// since stays.
pub fn take_in_demo(archive: &Archive, config: &Config, place: &Path) -> Result<usize> {
    let Found { incoming, failures, .. } = ingest::find(&[place.join("demo")]);
    let failed = |failure: &Failure| Error::new(Kind::InvalidArgument, failure.to_string());
    if let Some(failure) = failures.first() {
        return Err(failed(failure));
    }
    let missing = incoming.into_iter().filter(|one| !is_known(archive, one)).collect::<Vec<_>>();
    let count = missing.len();
    let problem = std::sync::Mutex::new(None);
    let report = |_: &ingest::Incoming, outcome: &Result<Taken, Failure>| {
        if let Err(failure) = outcome
            && let Ok(mut problem) = problem.lock()
        {
            problem.get_or_insert(failed(failure));
        }
    };
    let ingest = archive.ingest(config)?;
    ingest::take_in_all(&ingest, missing, config.ingest_workers(), &clock::now, &report);
    if let Some(error) = problem.into_inner().ok().flatten() {
        return Err(error);
    }
    let accounts = place.join("accounts.json");
    if accounts.is_file() {
        let text = read_accounts(&accounts)?;
        let imported = archive.accounts(config)?.import_once(DEMO_ACCOUNTS, &text, clock::now());
        imported.map_err(|cause| file_error(&accounts, &cause))?;
    }
    Ok(count)
}

/// Whether an item of the demo archive is there already, by the name of its file or folder.
fn is_known(archive: &Archive, incoming: &ingest::Incoming) -> bool {
    let Some(key) = incoming.named_key() else { return false };
    let found = archive.db.read_blocking(move |tx| tx.find_item(&key));
    found.is_ok_and(|item| item.is_some())
}
