//! Who calls. Credentials are resolved once a request into a [`Principal`]: the user with its
//! organization and agreements, and the scopes that the credentials carry (contract access-1).
//!
//! What was looked up stays in memory, so that a request whose caller is known touches no disk.
//! Whoever ends a token, a key, a session or changes a user writes that to the account log in the
//! same transaction; this process forgets it at once ([`Auth::write`]), other processes when they
//! follow the log.

mod attempt;
mod browser;
mod device;
mod login;
mod new_password;
mod pace;
mod password;
mod principal;
mod secret;
mod signer;
mod throttle;
mod uses;
mod verified;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use moka::sync::Cache;
use tokio::sync::OnceCell;

pub use browser::browser_name;
pub use login::{Entered, Login, LoginRequest};
pub use new_password::{PasswordFlaw, check_new_password};
pub use password::Hasher;
pub use principal::{Method, Principal};
pub use secret::Secret;
pub use signer::IdSigner;

use crate::runtime::error::Result;
use crate::runtime::limits::{
    ACCOUNTS_CACHED_MAX, API_KEY_BYTES_MAX, SWEEP_ROWS, TOKEN_BYTES_MAX, TOKENS_CACHED_MAX,
};
use crate::storage::database::{
    AccountChange, Db, DbError, ReadTx, Session, Token, UsedCredential, WindowStart, WriteTx,
};
use device::DeviceKey;
use model::Hash;
use model::account::{Account, Scopes, UserId};
use pace::Pacer;
use password::Passwords;
use throttle::Throttle;
use uses::Uses;
use verified::VerifiedSecrets;

/// What a request presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials<'a> {
    /// Nothing.
    Absent,
    /// An OAuth2 access token, from `Authorization: Bearer`.
    Bearer(&'a str),
    /// An API key, from `Authorization: ApiKey` or the query parameter `ak`.
    ApiKey(&'a str),
    /// A login in the browser, from the session cookie.
    Session(&'a str),
    /// Something that this service does not accept.
    Unknown,
}

/// How passwords are hashed and failed logins are throttled.
#[derive(Clone, Copy, Debug)]
pub struct HashLimits {
    /// Memory of one hash, KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub iterations: u32,
    /// Threads that hash.
    pub workers: usize,
    /// Logins that may wait for them.
    pub queue: usize,
    /// Those from one address, IPv6 by its /64.
    pub queue_per_address: usize,
    /// Failures of one user name from one address in a window.
    pub failures_per_user: u32,
    /// Failures of one user name from all addresses, after which its attempts are delayed.
    pub failures_per_user_total: u32,
    /// Failures from one address in a window.
    pub failures_per_address: u32,
    /// The window.
    pub window: Duration,
}

/// What a caller presents, hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Presented {
    Bearer(Hash),
    ApiKey(Hash),
    Session(Hash),
}

/// A caller that was resolved.
struct Resolved {
    principal: Arc<Principal>,
    expires: Option<Timestamp>,
    /// The count of changes before it was resolved.
    changes: u64,
}

/// Resolves credentials; cheap to clone.
#[derive(Clone)]
pub struct Auth {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    hasher: Hasher,
    passwords: Passwords,
    throttle: Throttle,
    pacer: Pacer,
    device_key: OnceCell<DeviceKey>,
    tokens: Cache<Hash, Arc<Token>>,
    /// Whose key it is, and its number.
    keys: Cache<Hash, (UserId, i64)>,
    sessions: Cache<Hash, Arc<Session>>,
    accounts: Cache<UserId, Arc<Account>>,
    /// Callers as they were resolved last, with the count of changes then: while nothing changes,
    /// a known caller costs one look-up.
    callers: Cache<Presented, Arc<Resolved>>,
    verified: VerifiedSecrets,
    /// When credentials were used, to be written.
    uses: Uses,
    /// Counts the changes that were seen; tells a reader that what it read may be old.
    changes: AtomicU64,
    /// Counts those that may be about signing keys.
    signing_keys: AtomicU64,
}

impl Auth {
    /// Starts the hashing threads; nothing is read yet.
    ///
    /// Fails when argon2 does not allow the limits.
    pub fn start(db: Db, limits: HashLimits) -> Result<Self> {
        let hasher = Hasher::new(limits.memory_kib, limits.iterations)?;
        let HashLimits { workers, queue, queue_per_address, .. } = limits;
        let passwords = Passwords::start(hasher.clone(), workers, queue, queue_per_address)?;
        let inner = Inner {
            db,
            hasher,
            passwords,
            throttle: Throttle::new(limits.into()),
            pacer: Pacer::default(),
            device_key: OnceCell::new(),
            tokens: Cache::new(TOKENS_CACHED_MAX),
            keys: Cache::new(TOKENS_CACHED_MAX),
            sessions: Cache::new(TOKENS_CACHED_MAX),
            accounts: Cache::new(ACCOUNTS_CACHED_MAX),
            callers: Cache::new(TOKENS_CACHED_MAX),
            verified: VerifiedSecrets::new()?,
            uses: Uses::new(),
            changes: AtomicU64::new(0),
            signing_keys: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Throttles by the failures that `limits` allow from now on; how passwords are hashed stays.
    pub fn set_throttle(&self, limits: HashLimits) {
        self.inner.throttle.set(limits.into());
    }

    /// The window by which counters of failed logins are in force at `now`.
    #[must_use]
    pub fn failure_window(&self, now: Timestamp) -> WindowStart {
        self.inner.throttle.window_start(now)
    }

    /// How passwords are hashed.
    #[must_use]
    pub fn hasher(&self) -> &Hasher {
        &self.inner.hasher
    }

    /// The database that accounts lie in.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.inner.db
    }

    /// The caller that `credentials` belong to at `now`; `None` for absent, unknown, expired and
    /// revoked ones, and for users that are not active.
    pub async fn find(
        &self,
        credentials: Credentials<'_>,
        now: Timestamp,
    ) -> Result<Option<Arc<Principal>>> {
        let presented = match credentials {
            Credentials::Absent | Credentials::Unknown => return Ok(None),
            Credentials::Bearer(text) => Presented::Bearer(Hash::of(text.as_bytes())),
            Credentials::ApiKey(text) => Presented::ApiKey(Hash::of(text.as_bytes())),
            Credentials::Session(text) => Presented::Session(Hash::of(text.as_bytes())),
        };
        let changes = self.inner.changes.load(Ordering::SeqCst);
        if let Some(known) = self.inner.callers.get(&presented)
            && known.changes == changes
            && known.expires.is_none_or(|expires| expires > now)
        {
            self.note_use(&known.principal, now);
            return Ok(Some(Arc::clone(&known.principal)));
        }
        let Some((principal, expires)) = self.resolve(credentials, now).await? else {
            return Ok(None);
        };
        let principal = Arc::new(principal);
        self.note_use(&principal, now);
        let resolved = Resolved { principal: Arc::clone(&principal), expires, changes };
        // A change that came meanwhile makes the entry old before it is used.
        self.inner.callers.insert(presented, Arc::new(resolved));
        Ok(Some(principal))
    }

    /// Notes the use of a token or key.
    fn note_use(&self, principal: &Principal, now: Timestamp) {
        let credential = match principal.method() {
            Method::Bearer { family } => UsedCredential::Family(family),
            Method::ApiKey { key } => UsedCredential::Key(key),
            // Sessions are noted where they are looked up.
            Method::Session | Method::Basic | Method::Queue | Method::Operator => return,
        };
        self.inner.uses.note(credential, now);
    }

    /// Writes when credentials were used since the last call. What cannot be written is lost: it is for
    /// people who look through their logins, and the next use is noted again.
    pub async fn write_uses(&self) -> Result<()> {
        let uses = self.inner.uses.take();
        for part in uses.chunks(SWEEP_ROWS) {
            let part = part.to_vec();
            self.inner.db.write(move |tx| tx.note_uses(&part)).await?;
        }
        Ok(())
    }

    async fn resolve(
        &self,
        credentials: Credentials<'_>,
        now: Timestamp,
    ) -> Result<Option<(Principal, Option<Timestamp>)>> {
        let mut enforced = false;
        let (user, scopes, method, expires) = match credentials {
            Credentials::Absent | Credentials::Unknown => return Ok(None),
            Credentials::Bearer(text) => {
                let Some(token) = self.token(text, now).await? else { return Ok(None) };
                let method = Method::Bearer { family: token.family };
                enforced = token.scopes_enforced;
                (token.user, token.scopes, method, Some(token.expires))
            }
            Credentials::ApiKey(text) => {
                let Some((user, key)) = self.key(text).await? else { return Ok(None) };
                (user, Scopes::of_key(), Method::ApiKey { key }, None)
            }
            Credentials::Session(text) => {
                let Some(session) = self.session(text, now).await? else { return Ok(None) };
                (session.user, Scopes::of_session(), Method::Session, Some(session.expires))
            }
        };
        let Some(account) = self.account(user).await? else { return Ok(None) };
        let principal = Principal::new(account, scopes, method).with_scopes_enforced(enforced);
        Ok(Some((principal, expires)))
    }

    /// The live access token of that text.
    pub async fn token(&self, text: &str, now: Timestamp) -> Result<Option<Arc<Token>>> {
        if text.is_empty() || text.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let hash = Hash::of(text.as_bytes());
        let read = move |tx: &ReadTx<'_>| tx.find_access_token(&hash);
        let token = self.cached(&self.inner.tokens, hash, read).await?;
        Ok(token.filter(|token| token.expires > now))
    }

    /// The live session of that text.
    pub async fn session(&self, text: &str, now: Timestamp) -> Result<Option<Arc<Session>>> {
        if text.is_empty() || text.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let hash = Hash::of(text.as_bytes());
        let read = move |tx: &ReadTx<'_>| tx.find_session(&hash);
        let session = self.cached(&self.inner.sessions, hash, read).await?;
        let session = session.filter(|session| session.expires > now);
        if session.is_some() {
            self.inner.uses.note(UsedCredential::Session(hash), now);
        }
        Ok(session)
    }

    async fn key(&self, text: &str) -> Result<Option<(UserId, i64)>> {
        if text.is_empty() || text.len() > API_KEY_BYTES_MAX {
            return Ok(None);
        }
        // Comparing hashes tells nothing about the key that timing could leak.
        let hash = Hash::of(text.as_bytes());
        if let Some(found) = self.inner.keys.get(&hash) {
            return Ok(Some(found));
        }
        let before = self.inner.changes.load(Ordering::SeqCst);
        let Some(found) = self.inner.db.read(move |tx| tx.find_key(&hash)).await? else {
            return Ok(None);
        };
        self.inner.keys.insert(hash, found);
        if self.inner.changes.load(Ordering::SeqCst) != before {
            self.inner.keys.invalidate(&hash);
        }
        Ok(Some(found))
    }

    /// The user `id` with its rights, if it is active.
    pub async fn account(&self, id: UserId) -> Result<Option<Arc<Account>>> {
        let read = move |tx: &ReadTx<'_>| tx.find_account(id);
        let account = self.cached(&self.inner.accounts, id, read).await?;
        Ok(account.filter(|account| account.user.active))
    }

    /// What `cache` holds under `key`, else what `read` finds in the database.
    async fn cached<K, V>(
        &self,
        cache: &Cache<K, Arc<V>>,
        key: K,
        read: impl FnOnce(&ReadTx<'_>) -> Result<Option<V>, DbError> + Send + 'static,
    ) -> Result<Option<Arc<V>>>
    where
        K: std::hash::Hash + Eq + Copy + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        if let Some(found) = cache.get(&key) {
            return Ok(Some(found));
        }
        let before = self.inner.changes.load(Ordering::SeqCst);
        let Some(found) = self.inner.db.read(read).await? else { return Ok(None) };
        let found = Arc::new(found);
        cache.insert(key, Arc::clone(&found));
        // A change that was seen while we read may have come before our insert.
        if self.inner.changes.load(Ordering::SeqCst) != before {
            cache.invalidate(&key);
        }
        Ok(Some(found))
    }

    /// The user `id`, if it is active, for work that it asked for and that is done later: with the
    /// rights that its keys have at that moment.
    pub async fn find_user(&self, id: UserId) -> Result<Option<Principal>> {
        let principal = |account| Principal::new(account, Scopes::of_key(), Method::Queue);
        Ok(self.account(id).await?.map(principal))
    }

    /// How often signing keys may have changed: who read them at another count reads them again.
    #[must_use]
    pub fn signing_key_changes(&self) -> u64 {
        self.inner.signing_keys.load(Ordering::SeqCst)
    }

    /// Runs `write` as one transaction and forgets what it logged as changed before it returns, so
    /// that a revocation counts at once in this process.
    pub async fn write<T, F>(&self, write: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let work = |tx: &WriteTx<'_>| write(tx).map(|outcome| (outcome, tx.account_changes()));
        let (outcome, changes) = self.inner.db.write(work).await?;
        self.forget(&changes);
        Ok(outcome)
    }

    /// Forgets what changed.
    pub fn forget(&self, changes: &[AccountChange]) {
        if changes.is_empty() {
            return;
        }
        let inner = &self.inner;
        inner.changes.fetch_add(1, Ordering::SeqCst);
        for change in changes {
            match change {
                AccountChange::Token(hash) => inner.tokens.invalidate(hash),
                AccountChange::Key(hash) => inner.keys.invalidate(hash),
                AccountChange::Session(hash) => inner.sessions.invalidate(hash),
                AccountChange::User(id) => inner.accounts.invalidate(id),
                AccountChange::SigningKeys => {
                    inner.signing_keys.fetch_add(1, Ordering::SeqCst);
                }
                AccountChange::Everything => {
                    inner.signing_keys.fetch_add(1, Ordering::SeqCst);
                    inner.tokens.invalidate_all();
                    inner.keys.invalidate_all();
                    inner.sessions.invalidate_all();
                    inner.accounts.invalidate_all();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
