//! Stores everything but media in a database: one handle, transactions as closures, no SQL outside this
//! module.
//!
//! `engine` defines the traits of a database engine, which `sqlite` and `postgres` implement. `statements`
//! contains all reads and writes, in SQL for both engines, as methods of the `transactions`. `migrations` is
//! the schema of both engines. `handle` opens the engine that the settings name and runs transactions on
//! `threads`. Imports have one direction: engines and statements name neither each other nor anything above
//! them.
//!
//! One thread owns the write connection and runs one closure as one transaction: it commits on `Ok` and rolls
//! back on `Err`. If the engine supports claims that run concurrently with a write, a second thread claims
//! queue messages ([`Db::claim`]). A few threads own a read connection each. Callers wait on channels, so no
//! async thread ever blocks. Other processes may write to the same database; the [`LogFollower`] detects
//! their changes.

mod account_change;
mod archive_migration;
#[cfg(test)]
mod archive_migration_tests;
#[cfg(test)]
mod claim_tests;
mod commit_watcher;
mod connection;
mod engine;
mod error;
mod facts;
mod handle;
mod lock;
mod log_follower;
#[cfg(test)]
mod migration_tests;
mod migrations;
pub mod outage;
mod postgres;
#[cfg(test)]
mod scratch;
mod sqlite;
mod statements;
mod threads;
mod transactions;
mod written_items;

pub use account_change::AccountChange;
pub use archive_migration::{ArchiveMigration, CopyOriginals, MigratedRows, ReportRows};
pub use commit_watcher::CommitWatcher;
pub use error::{DbError, DbResult, EngineError};
pub use facts::{DatabaseFacts, DatabaseFlaw};
pub use handle::{DATABASE_FILE_NAME, Db};
pub use lock::DirectoryLock;
pub use log_follower::{FollowedChanges, LogFollower};
pub use migrations::LATEST as SCHEMA_NUMBER;
pub use sqlite::DatabaseSnapshot;
pub use statements::accounts::{CallerKey, ListedAgreement};
pub use statements::audit::{AuditFilter, ListedEvent};
pub use statements::channels::NewChannel;
pub use statements::check::{DatabaseInspection, NamedOriginal};
pub use statements::collections::{Collection, CollectionHead, LostItem, NewCollection};
pub use statements::deliveries::{
    ClaimTerms, DeliveriesOf, DeliveryBacklog, DeliveryOutcome, EnqueueOutcome, NewDelivery,
};
pub use statements::diagnostics::StoredDiagnostic;
pub use statements::downloads::{
    AgreementDownloads, DownloadCounts, DownloadFilter, ItemDownloads, OrganizationDownloads,
    QUARTER_MS,
};
pub use statements::failed_logins::{FailedLogins, WindowStart};
pub use statements::grants::{
    AuthorizationCode, NewCode, NewConsent, NewFamily, RefreshToken, TokenFamily,
};
pub use statements::import::{NewApiKey, PutOutcome};
pub use statements::item_edits::{ItemEdit, PropertyChange};
pub use statements::item_rights::RightsChange;
pub use statements::items::{ItemWriteOutcome, NewItem, StoredItem};
pub use statements::logins::{
    ListedApplication, ListedSession, LoginBrowser, LoginCount, UsedCredential, session_name,
};
pub use statements::nodes::{IncarnationStart, NewNode, NodeRow};
pub use statements::notifications::{NewNotification, NotificationWatcher, WatchersOf};
pub use statements::operator::{ListedKey, ListedUser};
pub use statements::orders::{LiveOrder, OrdersOf, UsageReport};
pub use statements::original_removals::OriginalRemovals;
pub use statements::outbox::{ClaimedBy, ListedMessage, MessageOutcome, NewMessage, OutboxCount};
pub use statements::password_links::{PasswordLink, PendingUser};
pub use statements::purges::{PendingPurge, PurgeBacklog};
pub use statements::queues::{LogRow, QueuedItem, StreamRow};
pub use statements::recipients::MailRecipient;
pub use statements::removal::RemovedUser;
pub use statements::search::{IndexChange, IndexedVersion, LogPosition, VersionPage};
pub use statements::secrets::SealedCount;
pub use statements::sessions::{BrowserSession, ListedSigningKey, LoginOrigin, SigningKey};
pub use statements::store_claims::StoreClaim;
pub use statements::templates::{MetadataTemplate, NewTemplate};
pub use statements::tokens::AccessToken;
pub use statements::uploads::{PendingUpload, UploadPart, UploadUsage};
pub use statements::users::{NewMember, UserRequestLimits};
pub use transactions::{ClaimTx, ReadTx, WriteTx};
