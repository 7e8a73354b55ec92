//! Imports a checked file: hashes its secrets, then writes it in one transaction.

use std::{sync::Arc, thread};

use jiff::Timestamp;
use serde::Serialize;

use super::{Accounts, AccountsError, check::check, file::ValidAccounts, roles};
use crate::runtime::limits::IMPORT_TRIES;
use crate::storage::audit::{self, AuditAction, AuditEvent};
use crate::storage::database::{DbError, PutOutcome, ReadTx, WriteTx};
use model::ContentHash;
use model::account::accounts_file::{PlaintextSecret, SecretHash};

/// Numbers of imported entries of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EntryCounts {
    /// Entries that did not exist before.
    pub created: usize,
    /// Entries that existed and were changed.
    pub updated: usize,
    /// Entries that existed and already had the stated values.
    pub unchanged: usize,
}

impl EntryCounts {
    /// Returns the number of all entries of the list.
    pub fn total(self) -> usize {
        self.created + self.updated + self.unchanged
    }

    fn count(&mut self, outcome: PutOutcome) {
        match outcome {
            PutOutcome::Created => self.created += 1,
            PutOutcome::Updated => self.updated += 1,
            PutOutcome::Unchanged => self.unchanged += 1,
        }
    }
}

/// The numbers of imported entries, by list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    pub organizations: EntryCounts,
    pub products: EntryCounts,
    pub agreements: EntryCounts,
    pub licenses: EntryCounts,
    pub users: EntryCounts,
    /// Entries of OAuth2 clients.
    pub clients: EntryCounts,
    pub api_keys: EntryCounts,
    pub channels: EntryCounts,
}

impl ImportReport {
    /// Returns the lists with their names in the file.
    pub fn lists(&self) -> [(&'static str, EntryCounts); 8] {
        [
            ("organizations", self.organizations),
            ("products", self.products),
            ("agreements", self.agreements),
            ("licenses", self.licenses),
            ("users", self.users),
            ("clients", self.clients),
            ("apiKeys", self.api_keys),
            ("channels", self.channels),
        ]
    }
}

/// The input of an import.
pub(super) struct AccountsImport {
    pub(super) file: ValidAccounts,
    /// True if the objects of the file must not exist yet.
    pub(super) only_new: bool,
    /// Name and value of a state to write in the same transaction.
    pub(super) note: Option<(String, String)>,
}

/// A password or a client's secret in a file: in plain text, or the hash that an export wrote.
#[derive(Clone, Copy)]
enum StatedSecret<'a> {
    Plaintext(&'a PlaintextSecret),
    Hash(&'a SecretHash),
}

impl<'a> StatedSecret<'a> {
    /// Returns the secret of an entry, which has at most one of the two; `None` if it has neither.
    fn new(plaintext: Option<&'a PlaintextSecret>, hash: Option<&'a SecretHash>) -> Option<Self> {
        plaintext.map(Self::Plaintext).or(hash.map(Self::Hash))
    }
}

/// Hashes of the users' passwords and then of the clients' secrets, in the order of the file.
type SecretHashes = Vec<Option<String>>;

impl Accounts {
    /// Imports the accounts file `text`, all of it or nothing. Idempotent.
    pub fn import(&self, text: &str, now: Timestamp) -> Result<ImportReport, AccountsError> {
        let import =
            AccountsImport { file: ValidAccounts::parse(text)?, only_new: false, note: None };
        self.apply_import(import, now)
    }

    /// Imports the file as [`Accounts::import`] does. Returns `None` without an import if the last file
    /// imported under `name` had the same text.
    pub fn import_once(
        &self,
        name: &str,
        text: &str,
        now: Timestamp,
    ) -> Result<Option<ImportReport>, AccountsError> {
        let name = name.to_owned();
        let hash = ContentHash::new(text.as_bytes()).to_string();
        let note = Some((name.clone(), hash.clone()));
        // Two processes may both continue from here, which is harmless: an import is idempotent.
        if self.db.read_blocking(move |tx| tx.find_state(&name))? == Some(hash) {
            return Ok(None);
        }
        let import = AccountsImport { file: ValidAccounts::parse(text)?, only_new: false, note };
        self.apply_import(import, now).map(Some)
    }

    /// Checks the file, hashes its secrets and writes it. Hashing is slow, so it happens before the
    /// transaction; if the stored hashes changed in the meantime, everything is repeated.
    pub(super) fn apply_import(
        &self,
        import: AccountsImport,
        now: Timestamp,
    ) -> Result<ImportReport, AccountsError> {
        let import = Arc::new(import);
        // Created here, because the thread of the database does not know who runs the command.
        let event = audit::event(AuditAction::RolesChanged);
        for _ in 0..IMPORT_TRIES {
            let reading = Arc::clone(&import);
            let before = self.db.read_blocking(move |tx| {
                let checked = check(&reading.file, tx, reading.only_new);
                let checked = checked.and_then(|()| Ok(stored_hashes(&reading.file, tx)?));
                separate_refusal(checked)
            })??;
            let hashes = self.hash(&import.file, &before)?;
            let writing = Arc::clone(&import);
            let event = event.clone();
            let imported = self.db.write_blocking(move |tx| {
                if stored_hashes(&writing.file, tx)? != before {
                    return Ok(Ok(None));
                }
                separate_refusal(write(&writing, &hashes, &event, tx, now).map(Some))
            })??;
            if let Some(imported) = imported {
                return Ok(imported);
            }
        }
        Err(AccountsError::Busy)
    }

    /// Computes new hashes of the passwords and secrets that do not match the stored hashes.
    fn hash(
        &self,
        file: &ValidAccounts,
        stored: &[Option<String>],
    ) -> Result<SecretHashes, AccountsError> {
        let users = file.users.iter().map(|entry| {
            let user = &entry.value;
            StatedSecret::new(user.password.as_ref(), user.password_hash.as_ref())
        });
        let clients = file.clients.iter().map(|entry| {
            let client = &entry.value;
            StatedSecret::new(client.client_secret.as_ref(), client.client_secret_hash.as_ref())
        });
        let stored_hashes = stored.iter().map(Option::as_deref);
        let work: Vec<_> = users.chain(clients).zip(stored_hashes).collect();
        let mut hashes = Vec::with_capacity(work.len());
        thread::scope(|scope| {
            // `chunks` panics for a size of 0.
            let chunk_size = work.len().div_ceil(self.workers).max(1);
            let threads: Vec<_> = work
                .chunks(chunk_size)
                .map(|part| {
                    scope.spawn(move || {
                        let hashes = part.iter().map(|(new, stored)| self.hash_one(*new, *stored));
                        hashes.collect::<Result<SecretHashes, _>>()
                    })
                })
                .collect();
            for thread in threads {
                let part = match thread.join() {
                    Ok(part) => part,
                    Err(panic) => std::panic::resume_unwind(panic),
                };
                hashes.extend(part?);
            }
            Ok::<_, AccountsError>(())
        })?;
        Ok(hashes)
    }

    /// Returns the new hash of `secret`; `None` if there is no secret or `stored` matches it.
    fn hash_one(
        &self,
        secret: Option<StatedSecret<'_>>,
        stored: Option<&str>,
    ) -> Result<Option<String>, AccountsError> {
        // A matching hash is not replaced, so that a repeated import changes nothing and ends no
        // sessions.
        let plaintext = match secret {
            None => return Ok(None),
            Some(StatedSecret::Hash(hash)) => {
                let hash = hash.reveal();
                return Ok((stored != Some(hash)).then(|| hash.to_owned()));
            }
            Some(StatedSecret::Plaintext(plaintext)) => plaintext.reveal(),
        };
        if stored.is_some_and(|stored| self.hasher.verify(plaintext, stored)) {
            return Ok(None);
        }
        self.hasher.hash(plaintext).map(Some).map_err(AccountsError::Hash)
    }
}

/// Separates failures of the database from refusals of the input.
fn separate_refusal<T>(
    result: Result<T, AccountsError>,
) -> Result<Result<T, AccountsError>, DbError> {
    match result {
        Err(AccountsError::Db(error)) => Err(error),
        other => Ok(other),
    }
}

/// Reads the stored hashes of the file's users and then of its clients.
fn stored_hashes(file: &ValidAccounts, tx: &ReadTx<'_>) -> Result<SecretHashes, DbError> {
    let mut hashes = Vec::with_capacity(file.users.len() + file.clients.len());
    for entry in &file.users {
        let found = tx.find_user_by_name(&entry.value.user_name)?;
        hashes.push(found.and_then(|(_, password)| password));
    }
    for entry in &file.clients {
        let found = tx.find_client(&entry.value.client_id)?;
        hashes.push(found.and_then(|client| client.secret));
    }
    Ok(hashes)
}

/// Writes the users of a file; `passwords` are the new hashes, in the order of the file.
fn write_users(
    file: &ValidAccounts,
    passwords: &[Option<String>],
    event: &AuditEvent,
    tx: &WriteTx<'_>,
    now: Timestamp,
) -> Result<EntryCounts, DbError> {
    let mut counts = EntryCounts::default();
    // As for products: stated numbers first.
    for stated in [true, false] {
        let hashed = file.users.iter().zip(passwords);
        for (entry, hash) in hashed.filter(|(entry, _)| entry.value.id.is_some() == stated) {
            let user = &entry.value;
            let before = roles::roles_of(tx, &user.user_name)?;
            counts.count(tx.put_user(user, hash.as_deref(), now)?);
            roles::record_import(tx, event, &user.user_name, &before)?;
        }
    }
    Ok(counts)
}

/// Performs the transaction. Checks again, because a different process may have written in the meantime.
fn write(
    import: &AccountsImport,
    hashes: &[Option<String>],
    event: &AuditEvent,
    tx: &WriteTx<'_>,
    now: Timestamp,
) -> Result<ImportReport, AccountsError> {
    let AccountsImport { file, only_new, note } = import;
    check(file, tx, *only_new)?;
    let mut report = ImportReport::default();
    // In the order of references: an entry may refer to entries of earlier lists.
    for entry in &file.organizations {
        report.organizations.count(tx.put_organization(&entry.value, now)?);
    }
    // Stated numbers first, so that a generated number does not collide with a stated number.
    for stated in [true, false] {
        for entry in file.products.iter().filter(|entry| entry.value.id.is_some() == stated) {
            report.products.count(tx.put_product(&entry.value, now)?);
        }
    }
    for entry in &file.agreements {
        report.agreements.count(tx.put_agreement(&entry.value, now)?);
    }
    for entry in &file.licenses {
        report.licenses.count(tx.put_license(&entry.value)?);
    }
    let (passwords, secrets) = hashes.split_at(file.users.len());
    report.users = write_users(file, passwords, event, tx, now)?;
    for (entry, hash) in file.clients.iter().zip(secrets) {
        report.clients.count(tx.put_client(&entry.value, hash.as_deref(), now)?);
    }
    for entry in &file.api_keys {
        report.api_keys.count(tx.put_key(&entry.value, now)?);
    }
    for entry in &file.channels {
        report.channels.count(tx.put_channel(&entry.value, now)?);
    }
    // In the same transaction: a file counts as imported only together with its entries.
    if let Some((name, value)) = note {
        tx.write_state(name, value)?;
    }
    Ok(report)
}
