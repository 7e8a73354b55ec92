//! The handle of the database: opens it with the engine that holds it, and has its threads run transactions.

use std::{path::Path, sync::Arc, time::Duration};

use tokio::sync::oneshot;

use super::engine::WriteMode;
use super::error::DbError;
use super::lock::DirectoryLock;
use super::log_follower::{CommitWatcher, LogFollower, SnapshotReader};
use super::migrations::{self, LATEST, SchemaStatus};
use super::postgres;
use super::sqlite::{self, DatabaseFile};
use super::statements::secrets::SealedCount;
use super::threads::DatabaseThreads;
use super::transactions::{ClaimTx, ReadTx, WriteTx};
use super::written_items::WrittenItems;
use crate::runtime::config::SecretSource;
use crate::storage::audit::{self, AuditAction};
use crate::storage::secrets::{KeyId, KeySource, Keyring, SecretKey};

/// Tries to make a database that others may be making, and the time between two.
const CREATE_ATTEMPTS_MAX: u32 = 20;
const CREATE_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The name of the database in a data directory.
pub const DATABASE_FILE_NAME: &str = "wirephoto.db";

/// Makes a database. Of several processes that find none and begin at once one is the first, and the others
/// find it half made or made.
fn create(path: &Path) -> Result<sqlite::FileConnection, DbError> {
    for _ in 1..CREATE_ATTEMPTS_MAX {
        match sqlite::migrate(path) {
            Ok(made) => return Ok(made),
            Err(cause) => tracing::debug!("the database is not made yet: {cause}"),
        }
        std::thread::park_timeout(CREATE_RETRY_DELAY);
    }
    sqlite::migrate(path)
}

/// The database: that of a data directory, or one of a PostgreSQL server.
#[derive(Clone)]
pub struct Db {
    pub(super) threads: DatabaseThreads,
    /// Whether every write is refused.
    only_reads: bool,
    /// The keys of what is stored encrypted.
    keys: Keyring,
    /// The schema that the database had and the one that it has since, where this handle brought it up to date.
    upgraded: Option<(i64, i64)>,
    written: Arc<WrittenItems>,
}

impl Db {
    /// Opens `wirephoto.db` in `dir`, makes it when missing and brings its schema up to date.
    ///
    /// An older schema is brought up to date by whoever is alone with the directory: what runs
    /// there was made for the older one. Fails with [`DbError::Schema`] when a later version of the
    /// product made the schema, and leaves the database as it is; with [`DbError::InUse`] when
    /// somebody else works on the directory who must be alone, or must not be there.
    pub fn open(dir: &Path) -> Result<Self, DbError> {
        let path = dir.join(DATABASE_FILE_NAME);
        let mut lock = DirectoryLock::shared(dir)?;
        // What is open stays open until the threads' connections are: whoever closes the last one removes
        // the log, and a full disk has no room for a new one.
        let (standing, looked) = sqlite::inspect_schema(&path)?;
        let mut upgraded = None;
        let first = match standing {
            SchemaStatus::New => create(&path)?,
            SchemaStatus::Current => sqlite::migrate(&path)?,
            SchemaStatus::Older(found) => {
                drop(lock);
                let alone = DirectoryLock::exclusive(dir)?;
                upgraded = Some((found, LATEST));
                migrations::log_upgrade(found, LATEST, "backup");
                let first = sqlite::migrate(&path)?;
                drop(alone);
                lock = DirectoryLock::shared(dir)?;
                first
            }
        };
        let threads = DatabaseThreads::start(
            Arc::new(DatabaseFile { path, only_reads: false }),
            Some(lock),
        )?;
        drop((looked, first));
        Ok(Self::from_threads(threads, false, upgraded))
    }

    /// Opens the database in `dir` for a process that only reads: every write through this handle fails
    /// with [`DbError::ReadsOnly`] before it reaches the engine.
    ///
    /// Fails with [`DbError::Schema`] when the schema is not of this version of the product: who only reads
    /// brings nothing up to date.
    pub fn open_to_read(dir: &Path) -> Result<Self, DbError> {
        let path = dir.join(DATABASE_FILE_NAME);
        let lock = DirectoryLock::shared(dir)?;
        let (standing, looked) = sqlite::inspect_schema_read_only(&path)?;
        let words = match standing {
            SchemaStatus::Current => None,
            SchemaStatus::New => Some("there is no database".to_owned()),
            SchemaStatus::Older(found) => Some(format!("it has schema {found}, this is {LATEST}")),
        };
        if let Some(words) = words {
            return Err(DbError::Schema(format!(
                "{}: {words}; start a node that writes first",
                path.display()
            )));
        }
        let threads =
            DatabaseThreads::start(Arc::new(DatabaseFile { path, only_reads: true }), Some(lock))?;
        drop(looked);
        Ok(Self::from_threads(threads, true, None))
    }

    /// Opens the PostgreSQL database at `url`, `postgres://USER@HOST:PORT/DATABASE_FILE_NAME`, makes its tables
    /// when they are missing and brings its schema up to date; `password` counts where it is not
    /// empty.
    ///
    /// Fails with [`DbError::Address`] when `url` is none; with [`DbError::Schema`] when a later
    /// version of the product made the schema, or when it is no database for this; with
    /// [`DbError::InUse`] when the schema is an older one and nodes live on it. To see that takes seconds
    /// where nodes were killed.
    pub fn connect(url: &str, password: &SecretSource) -> Result<Self, DbError> {
        let server = Arc::new(postgres::PostgresServer::parse(url)?.with_password(password));
        let upgraded = postgres::migrate(&server)?;
        let threads = DatabaseThreads::start(server, None)?;
        Ok(Self::from_threads(threads, false, upgraded))
    }

    /// The same for a process that only reads, with rights to no more than that, at a server that may take
    /// no writes: every write through this handle fails with [`DbError::ReadsOnly`] before it reaches the
    /// engine.
    ///
    /// Fails with [`DbError::Schema`] when the schema is not of this version of the product.
    pub fn connect_to_read(url: &str, password: &SecretSource) -> Result<Self, DbError> {
        let server = postgres::PostgresServer::parse(url)?.with_password(password);
        let server = Arc::new(server.for_reading());
        postgres::check_schema(&server)?;
        let threads = DatabaseThreads::start(server, None)?;
        Ok(Self::from_threads(threads, true, None))
    }

    pub(super) fn from_threads(
        threads: DatabaseThreads,
        only_reads: bool,
        upgraded: Option<(i64, i64)>,
    ) -> Self {
        let (keys, written) = (Keyring::default(), Arc::default());
        Self { threads, only_reads, keys, upgraded, written }
    }

    /// The schema that the database had and the one that it has since, where this handle brought it up to
    /// date.
    #[must_use]
    pub fn upgraded(&self) -> Option<(i64, i64)> {
        self.upgraded
    }

    /// Copies the database in `dir`, of this schema or an earlier one, into a new file `to`, while
    /// others read and write it; `report` hears how many of how many pages are done. Gives the
    /// number of the schema.
    pub fn copy(dir: &Path, to: &Path, report: &mut dyn FnMut(u64, u64)) -> Result<u32, DbError> {
        sqlite::copy(&dir.join(DATABASE_FILE_NAME), to, report)
    }

    /// Runs `read` on a reader thread against one consistent state.
    pub async fn read<T, F>(&self, read: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let ((sender, receiver), keys) = (oneshot::channel(), self.keys.clone());
        self.threads.submit_read(Box::new(move |outcome| {
            drop(sender.send(outcome.and_then(|tx| read(&ReadTx::new(tx).with_keys(&keys)))));
        }))?;
        receiver.await.map_err(|_| DbError::Closed)?
    }

    /// Runs `read` and blocks the calling thread; never called on an async thread.
    pub fn read_blocking<T, F>(&self, read: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let ((sender, receiver), keys) = (std::sync::mpsc::sync_channel(1), self.keys.clone());
        self.threads.submit_read(Box::new(move |outcome| {
            drop(sender.send(outcome.and_then(|tx| read(&ReadTx::new(tx).with_keys(&keys)))));
        }))?;
        receiver.recv().map_err(|_| DbError::Closed)?
    }

    /// Runs `search` on a thread for searches against one consistent state: searches may take
    /// long, and readers of single rows do not wait for them.
    pub async fn search<T, F>(&self, search: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        self.threads.submit_search(Box::new(move |outcome| {
            if sender.is_closed() {
                // Nobody waits for it any more.
                return;
            }
            drop(sender.send(outcome.and_then(|tx| search(&ReadTx::new(tx)))));
        }))?;
        receiver.await.map_err(|_| DbError::Closed)?
    }

    /// Runs `write` as one transaction; its outcome comes when it is on disk.
    pub async fn write<T, F>(&self, write: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        if self.only_reads {
            return Err(DbError::ReadsOnly);
        }
        let (sender, receiver) = oneshot::channel();
        let (written, write) =
            (Arc::clone(&self.written), with_item_row(self.keys.clone(), write));
        self.threads.submit_write(Box::new(move |connection| {
            let committed = connection.write(WriteMode::Normal, write);
            drop(sender.send(committed.map(|(outcome, row)| {
                written.note(row);
                outcome
            })));
        }))?;
        receiver.await.map_err(|_| DbError::Closed)?
    }

    /// Runs `write` as one transaction and blocks the calling thread until it is on disk; never
    /// called on an async thread.
    pub fn write_blocking<T, F>(&self, write: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        if self.only_reads {
            return Err(DbError::ReadsOnly);
        }
        let write = with_item_row(self.keys.clone(), write);
        let (outcome, row) = self.threads.write(WriteMode::Normal, write)?;
        self.written.note(row);
        Ok(outcome)
    }

    /// The same before all other writes of this process that wait: for the few that others wait for.
    pub fn write_urgent<T, F>(&self, write: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        if self.only_reads {
            return Err(DbError::ReadsOnly);
        }
        let write = with_item_row(self.keys.clone(), write);
        let (outcome, row) = self.threads.write_urgent(write)?;
        self.written.note(row);
        Ok(outcome)
    }

    /// Runs `claim`, which takes up what waits in a queue, as one transaction. In SQLite it is a write like
    /// another one; in PostgreSQL it waits neither for one that writes nor for claims of others, and who
    /// follows what is written does not hear of it.
    ///
    /// After an error it is open whether it was done, as with a write.
    pub async fn claim<T, F>(&self, claim: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&ClaimTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        if self.only_reads {
            return Err(DbError::ReadsOnly);
        }
        let (sender, receiver) = oneshot::channel();
        self.threads.submit_claim(Box::new(move |connection| {
            drop(sender.send(connection.claim(claim)));
        }))?;
        receiver.await.map_err(|_| DbError::Closed)?
    }

    /// The same for a test that blocks.
    #[cfg(test)]
    pub(crate) fn claim_blocking<T, F>(&self, claim: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&ClaimTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.threads.submit_claim(Box::new(move |connection| {
            drop(sender.send(connection.claim(claim)));
        }))?;
        receiver.recv().map_err(|_| DbError::Closed)?
    }

    /// Asks a connection of each kind that is not for single reads whether it reaches the database: one that
    /// searches, and those that write, without their turn to write. The answers come when what each does
    /// now is done.
    #[must_use]
    pub fn check_connections(&self) -> Vec<oneshot::Receiver<Result<(), DbError>>> {
        // Where a queue is full the sender is dropped, and nothing is known.
        let (sender, searches) = oneshot::channel();
        drop(self.threads.submit_search(Box::new(move |outcome| {
            drop(sender.send(outcome.map(drop)));
        })));
        if self.only_reads {
            return vec![searches];
        }
        let (sender, writes) = oneshot::channel();
        drop(self.threads.submit_write(Box::new(move |connection| {
            drop(sender.send(connection.query(|_| Ok(()))));
        })));
        let (sender, claims) = oneshot::channel();
        drop(self.threads.submit_claim(Box::new(move |connection| {
            drop(sender.send(connection.query(|_| Ok(()))));
        })));
        vec![searches, writes, claims]
    }

    /// Opens the connections that read and search, which would else be opened with their first use. Blocks, for
    /// some seconds at most.
    pub fn open_connections(&self) {
        self.threads.open_readers();
    }

    /// Whether every write through this handle is refused.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.only_reads
    }

    /// The key that secrets are encrypted with; `None` while they are stored as they are.
    pub fn secrets_key(&self) -> Result<Option<KeyId>, DbError> {
        self.read_blocking(|tx| tx.secrets_key())
    }

    /// Takes `keys`, which come from `source`, into use for what is stored encrypted.
    pub fn load_keys(&self, source: KeySource, keys: Vec<SecretKey>) {
        self.keys.load(source, keys);
    }

    /// Refuses what needs a key, for the reason `why`, which continues a sentence.
    pub fn refuse_secrets(&self, why: String) {
        self.keys.refuse(why);
    }

    /// Encrypts every secret with the key of that id, in one transaction, and leaves nothing of what
    /// was there before in SQLite's files. Keys that are needed for that are loaded. The audit log has
    /// an event where secrets of before encryption were among them.
    ///
    /// Fails with [`DbError::InUse`] when the key in force is not `before`.
    pub fn encrypt_secrets(
        &self,
        before: Option<KeyId>,
        with: KeyId,
    ) -> Result<SealedCount, DbError> {
        if self.only_reads {
            return Err(DbError::ReadsOnly);
        }
        let keys = self.keys.clone();
        let event =
            audit::event(AuditAction::SecretsEncrypted).with_detail(format!("with key {with}"));
        let sealed = self.threads.write(WriteMode::Overwriting, move |tx| {
            let count = tx.with_keys(&keys).seal_all(before, with)?;
            // A rotation is an event of its command.
            if before.is_none() && count.total() > 0 {
                tx.write_audit(&event)?;
            }
            Ok(count)
        })?;
        self.threads.checkpoint();
        Ok(sealed)
    }

    /// The hosts to which this database is reached over a network without TLS.
    #[must_use]
    pub fn hosts_without_tls(&self) -> Vec<String> {
        self.threads.engine().hosts_without_tls()
    }

    /// Whether the database is another program's, perhaps on another machine.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.threads.engine().is_remote()
    }

    /// The newest row of the item log that was written through this handle; 0 while there is none.
    #[must_use]
    pub fn written_row(&self) -> i64 {
        self.written.row()
    }

    /// Says that rows of the item log up to `row` count as written through this handle: searches wait for
    /// the index to hold them.
    pub fn note_written(&self, row: i64) {
        self.written.note(row);
    }

    /// The same, where the item log lost rows behind `row` that were written before.
    pub fn restart_written(&self, row: i64) {
        self.written.restart(row);
    }

    /// Blocks the calling thread until a row of the item log behind `row` was written through this handle,
    /// for `time` at most.
    pub fn wait_for_items(&self, row: i64, time: Duration) {
        self.written.wait_beyond(row, time);
    }

    /// A connection of its own that tells whether something was written.
    pub fn commit_watcher(&self) -> Result<CommitWatcher, DbError> {
        CommitWatcher::open(self.threads.engine())
    }

    /// A connection of its own that reads for as long as it takes.
    pub fn snapshot_reader(&self) -> Result<SnapshotReader, DbError> {
        SnapshotReader::open(self.threads.engine())
    }

    /// A connection of its own that tells what other processes and this one changed.
    pub fn log_follower(&self) -> Result<LogFollower, DbError> {
        LogFollower::open(self.threads.engine())
    }
}

/// The transaction `write`, which also gives the row of the item log that it wrote last.
fn with_item_row<T>(
    keys: Keyring,
    write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
) -> impl FnOnce(&WriteTx<'_>) -> Result<(T, i64), DbError> {
    move |tx| {
        let tx = tx.with_keys(&keys);
        let outcome = write(&tx)?;
        Ok((outcome, tx.item_row()))
    }
}
