//! The handle of the database: opens it with the right engine and runs transactions on its threads.

use std::{path::Path, sync::Arc, time::Duration};

use tokio::sync::oneshot;

use super::commit_watcher::CommitWatcher;
use super::engine::WriteMode;
use super::error::{DbError, DbResult};
use super::lock::DirectoryLock;
use super::log_follower::LogFollower;
use super::migrations::{self, LATEST, Migration, POSTGRES, SQLITE, SchemaStatus};
use super::postgres;
use super::sqlite::{self, DatabaseFile};
use super::statements::secrets::SealedCount;
use super::threads::DatabaseThreads;
use super::transactions::{ClaimTx, ReadTx, WriteTx};
use super::written_items::WrittenItems;
use crate::runtime::config::SecretSource;
use crate::storage::audit::{self, AuditAction};
use crate::storage::secrets::{KeyId, KeySource, Keyring, SecretKey};

/// Maximum attempts to create a database that other processes may be creating, and the delay between two.
const CREATE_ATTEMPTS_MAX: u32 = 20;
const CREATE_RETRY_DELAY: Duration = Duration::from_millis(50);
/// File name of the database in a data directory.
pub const DATABASE_FILE_NAME: &str = "wirephoto.db";

/// Creates a database. If several processes start at once without one, the first creates it. The others may
/// find it half created, and retry.
fn create(path: &Path, migrations: &[Migration]) -> DbResult<sqlite::FileConnection> {
    for _ in 1..CREATE_ATTEMPTS_MAX {
        match sqlite::migrate(path, migrations) {
            Ok(created) => return Ok(created),
            Err(cause) => tracing::debug!("database not created yet, retrying: {cause}"),
        }
        std::thread::park_timeout(CREATE_RETRY_DELAY);
    }
    // The last attempt, whose error the caller receives.
    sqlite::migrate(path, migrations)
}

/// The database: the file of a data directory, or a database of a PostgreSQL server. Cheap to clone.
#[derive(Clone)]
pub struct Db {
    pub(super) threads: DatabaseThreads,
    /// True if every write is refused.
    only_reads: bool,
    /// The keys of encrypted values.
    pub(super) keys: Keyring,
    /// The schema before and after, if this handle upgraded it.
    pub upgraded: Option<(i64, i64)>,
    written: Arc<WrittenItems>,
}

impl Db {
    /// Opens `wirephoto.db` in `dir`, creates it if it is missing, and upgrades its schema.
    ///
    /// An older schema is upgraded only under the exclusive lock of the directory, because running processes
    /// were built for the older schema.
    ///
    /// Fails with [`DbError::Schema`] if this version cannot use the schema, and leaves the database
    /// unchanged. Fails with [`DbError::InUse`] if a different process needs the directory exclusively, or
    /// uses it while this one needs it exclusively.
    pub fn open(dir: &Path) -> DbResult<Self> {
        Self::open_with(dir, &SQLITE)
    }

    /// Opens the database as [`Db::open`] does, with the schema that `migrations` lead to.
    pub(super) fn open_with(dir: &Path, migrations: &[Migration]) -> DbResult<Self> {
        let path = dir.join(DATABASE_FILE_NAME);
        let mut lock = DirectoryLock::shared(dir)?;
        // The first connections stay open until the threads have opened theirs: closing the last connection
        // removes the write-ahead log, and a full disk has no space for a new one.
        let (status, inspected) = sqlite::inspect_schema(&path, false, migrations)?;
        let mut upgraded = None;
        let first = match status {
            SchemaStatus::New => create(&path, migrations)?,
            SchemaStatus::Current => sqlite::migrate(&path, migrations)?,
            SchemaStatus::Older(found) => {
                // A shared lock cannot be upgraded, so it is released before the exclusive one is requested.
                drop(lock);
                let exclusive = DirectoryLock::exclusive(dir)?;
                let latest = migrations::latest(migrations);
                upgraded = Some((found, latest));
                migrations::log_upgrade(found, latest, "backup");
                let first = sqlite::migrate(&path, migrations)?;
                drop(exclusive);
                lock = DirectoryLock::shared(dir)?;
                first
            }
        };
        let file = Arc::new(DatabaseFile { path, only_reads: false });
        let threads = DatabaseThreads::start(file, Some(lock))?;
        drop((inspected, first));
        Ok(Self::from_threads(threads, false, upgraded))
    }

    /// Opens the database in `dir` for a read-only process: every write through this handle fails with
    /// [`DbError::ReadsOnly`] before it reaches the engine.
    ///
    /// Fails with [`DbError::Schema`] if the schema does not belong to this version of the product, because a
    /// read-only process does not upgrade it.
    pub fn open_to_read(dir: &Path) -> DbResult<Self> {
        let path = dir.join(DATABASE_FILE_NAME);
        let lock = DirectoryLock::shared(dir)?;
        let (status, inspected) = sqlite::inspect_schema(&path, true, &SQLITE)?;
        let problem = match status {
            SchemaStatus::Current => None,
            SchemaStatus::New => Some("there is no database".to_owned()),
            SchemaStatus::Older(found) => Some(format!("it has schema {found}, this is {LATEST}")),
        };
        if let Some(problem) = problem {
            return Err(DbError::Schema(format!(
                "{}: {problem}; start a node that writes first",
                path.display()
            )));
        }
        let file = Arc::new(DatabaseFile { path, only_reads: true });
        let threads = DatabaseThreads::start(file, Some(lock))?;
        drop(inspected);
        Ok(Self::from_threads(threads, true, None))
    }

    /// Opens the PostgreSQL database at `url`, `postgres://USER@HOST:PORT/DATABASE`, creates its tables if
    /// they are missing, and upgrades its schema. A `password` that is not empty has precedence over the one
    /// in `url`.
    ///
    /// Fails with [`DbError::Address`] if `url` is invalid. Fails with [`DbError::Schema`] if this version
    /// cannot use the schema, or if the database is unsuitable. Fails with [`DbError::InUse`] if the schema
    /// is older and nodes are running on it. This check lasts seconds after nodes were killed.
    pub fn connect(url: &str, password: &SecretSource) -> DbResult<Self> {
        let server = Arc::new(postgres::PostgresServer::parse(url)?.with_password(password));
        let upgraded = postgres::migrate(&server, &POSTGRES)?;
        let threads = DatabaseThreads::start(server, None)?;
        Ok(Self::from_threads(threads, false, upgraded))
    }

    /// Checks the address of a PostgreSQL database, and reads the certificates that it names; an empty `url` is SQLite.
    /// Connects to nothing.
    ///
    /// Fails with [`DbError::Address`] if `url` is invalid.
    pub fn check_address(url: &str) -> DbResult<()> {
        if url.is_empty() { Ok(()) } else { postgres::PostgresServer::parse(url).map(drop) }
    }

    /// Opens a PostgreSQL database for a read-only process. It needs only the right to read, and works with a
    /// server that accepts no writes: every write through this handle fails with [`DbError::ReadsOnly`]
    /// before it reaches the engine.
    ///
    /// Fails with [`DbError::Schema`] if the schema does not belong to this version of the product.
    pub fn connect_to_read(url: &str, password: &SecretSource) -> DbResult<Self> {
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
        let keys = Keyring::default();
        Self { threads, only_reads, keys, upgraded, written: Arc::default() }
    }

    /// Copies the database in `dir`, of this schema or an earlier one, into a new file `to`, while others
    /// read and write it. Calls `report` with the number of copied pages and of all pages. Returns the number
    /// of the schema.
    pub fn copy(dir: &Path, to: &Path, report: &mut dyn FnMut(u64, u64)) -> DbResult<u32> {
        sqlite::copy(&dir.join(DATABASE_FILE_NAME), to, report)
    }

    /// Runs `read` on a reader thread against one consistent state.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadTx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        let (sender, receiver) = oneshot::channel();
        let keys = self.keys.clone();
        self.threads.submit_read(Box::new(move |outcome| {
            drop(sender.send(outcome.and_then(|tx| read(&ReadTx { tx, keys: Some(&keys) }))));
        }))?;
        receiver.await.map_err(|_| DbError::Closed)?
    }

    /// Runs `read` and blocks the calling thread. Never called on an async thread.
    pub fn read_blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadTx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let keys = self.keys.clone();
        self.threads.submit_read(Box::new(move |outcome| {
            drop(sender.send(outcome.and_then(|tx| read(&ReadTx { tx, keys: Some(&keys) }))));
        }))?;
        receiver.recv().map_err(|_| DbError::Closed)?
    }

    /// Runs `search` on a search thread against one consistent state. Searches may be slow, so they have
    /// their own threads and do not delay reads of single rows.
    pub async fn search<T: Send + 'static>(
        &self,
        search: impl FnOnce(&ReadTx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        let (sender, receiver) = oneshot::channel();
        self.threads.submit_search(Box::new(move |outcome| {
            if sender.is_closed() {
                // The caller no longer waits for the answer.
                return;
            }
            drop(sender.send(outcome.and_then(|tx| search(&ReadTx::new(tx)))));
        }))?;
        receiver.await.map_err(|_| DbError::Closed)?
    }

    fn require_writable(&self) -> DbResult<()> {
        if self.only_reads { Err(DbError::ReadsOnly) } else { Ok(()) }
    }

    /// Runs `write` as one transaction. Returns when it is on disk.
    pub async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&WriteTx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        self.require_writable()?;
        let (sender, receiver) = oneshot::channel();
        let written = Arc::clone(&self.written);
        let keys = self.keys.clone();
        self.threads.submit_write(Box::new(move |connection| {
            // Noted on this thread, so that searches wait for the row even if the caller was cancelled.
            let committed = connection.write(WriteMode::Normal, &keys, write);
            drop(sender.send(committed.map(|(outcome, row)| {
                written.note(row);
                outcome
            })));
        }))?;
        receiver.await.map_err(|_| DbError::Closed)?
    }

    /// Runs `write` as one transaction and blocks the calling thread until it is on disk. Never called on an
    /// async thread.
    pub fn write_blocking<T: Send + 'static>(
        &self,
        write: impl FnOnce(&WriteTx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        self.require_writable()?;
        let (outcome, row) = self.threads.write(WriteMode::Normal, self.keys.clone(), write)?;
        self.written.note(row);
        Ok(outcome)
    }

    /// Runs `write` as one transaction before all queued writes of this process, for the few writes that
    /// other work waits for. Blocks until it is on disk.
    pub fn write_urgent<T: Send + 'static>(
        &self,
        write: impl FnOnce(&WriteTx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        self.require_writable()?;
        let (outcome, row) = self.threads.write_urgent(self.keys.clone(), write)?;
        self.written.note(row);
        Ok(outcome)
    }

    /// Runs `claim`, which claims queue messages, as one transaction. In SQLite it is an ordinary write. In
    /// PostgreSQL it waits neither for writes nor for other claims, and followers of the log are not notified
    /// of it.
    ///
    /// After an error the outcome is unknown, as with a write.
    pub async fn claim<T: Send + 'static>(
        &self,
        claim: impl FnOnce(&ClaimTx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        self.require_writable()?;
        let (sender, receiver) = oneshot::channel();
        self.threads.submit_claim(Box::new(move |connection| {
            drop(sender.send(connection.claim(claim)));
        }))?;
        receiver.await.map_err(|_| DbError::Closed)?
    }

    /// Runs `claim` for a test and blocks the calling thread.
    #[cfg(test)]
    pub(crate) fn claim_blocking<T, F>(&self, claim: F) -> DbResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&ClaimTx<'_>) -> DbResult<T> + Send + 'static,
    {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.threads.submit_claim(Box::new(move |connection| {
            drop(sender.send(connection.claim(claim)));
        }))?;
        receiver.recv().map_err(|_| DbError::Closed)?
    }

    /// Checks that the search, write and claim connections reach the database, without acquiring the write
    /// lock. Each answer arrives when the work in progress on its connection is done.
    pub fn check_connections(&self) -> Vec<oneshot::Receiver<DbResult<()>>> {
        // A full queue drops the sender, which leaves the state unknown.
        let (sender, searches) = oneshot::channel();
        drop(self.threads.submit_search(Box::new(move |outcome| {
            drop(sender.send(outcome.map(drop)));
        })));
        // Writes are refused before they reach the other connections, so their state does not matter.
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

    /// Opens the read and search connections, which would otherwise be opened at their first use. Blocks for
    /// some seconds at most.
    pub fn open_connections(&self) {
        self.threads.open_readers();
    }

    /// Returns whether every write through this handle is refused.
    pub fn is_read_only(&self) -> bool {
        self.only_reads
    }

    /// Returns the id of the key with which secrets are encrypted; `None` while they are stored in plain
    /// text.
    pub fn secrets_key(&self) -> DbResult<Option<KeyId>> {
        self.read_blocking(|tx| tx.secrets_key())
    }

    /// Loads `keys`, which come from `source`, for encrypted values.
    pub fn load_keys(&self, source: KeySource, keys: Vec<SecretKey>) {
        self.keys.load(source, keys);
    }

    /// Refuses every value that needs a key, for the reason `why`, which continues a sentence.
    pub fn refuse_secrets(&self, why: String) {
        self.keys.refuse(why);
    }

    /// Encrypts every secret with the key `with`, in one transaction, and erases the former values from
    /// SQLite's files. The required keys must be loaded. Records an audit event if secrets were stored in
    /// plain text before.
    ///
    /// Fails with [`DbError::InUse`] if the current key is not `before`.
    pub fn encrypt_secrets(&self, before: Option<KeyId>, with: KeyId) -> DbResult<SealedCount> {
        self.require_writable()?;
        let keys = self.keys.clone();
        let event =
            audit::event(AuditAction::SecretsEncrypted).with_detail(format!("with key {with}"));
        let (sealed, _) = self.threads.write(WriteMode::Overwriting, keys, move |tx| {
            let count = tx.seal_all(before, with)?;
            // A key rotation is recorded by its command.
            if before.is_none() && count.total() > 0 {
                tx.write_audit(&event)?;
            }
            Ok(count)
        })?;
        // The write-ahead log still holds pages with the former values.
        self.threads.checkpoint();
        Ok(sealed)
    }

    /// Returns the hosts to which this database connects over a network without TLS.
    pub fn hosts_without_tls(&self) -> Vec<String> {
        self.threads.engine().hosts_without_tls()
    }

    /// Returns whether the database is a separate server, perhaps on a different machine.
    pub fn is_remote(&self) -> bool {
        self.threads.engine().is_remote()
    }

    /// Returns the rows of the item log that were written through this handle, for which searches wait.
    pub fn written_items(&self) -> &WrittenItems {
        &self.written
    }

    /// Opens a dedicated connection that detects commits, and for long reads.
    pub fn commit_watcher(&self) -> DbResult<CommitWatcher> {
        CommitWatcher::open(self.threads.engine())
    }

    /// Opens a dedicated connection that follows the changes of this and other processes.
    pub fn log_follower(&self) -> DbResult<LogFollower> {
        LogFollower::open(self.threads.engine())
    }
}
