//! Authentication: resolves the credentials of a request into a [`Principal`], which is the user with its
//! organization and agreements, and the scopes that the credentials carry (contract access-1).
//!
//! Resolved credentials are cached in memory, so that a request of a known caller touches no disk. A
//! transaction that revokes a token, key or session or that changes a user also writes to the account log.
//! This process invalidates its caches at once ([`Auth::write`]), other processes when they follow the log.

mod attempt;
mod browser;
mod credential_uses;
mod device;
mod login;
mod new_password;
mod pacing;
mod password;
mod principal;
mod secret;
mod signer;
mod throttle;
mod verified_secrets;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use moka::sync::Cache;
use tokio::sync::OnceCell;

pub use browser::browser_name;
pub use login::{AuthenticatedLogin, LoginOutcome, LoginRequest};
pub use new_password::{PasswordFlaw, check_new_password};
pub use password::Argon2Hasher;
pub use principal::{AuthMethod, Principal};
pub use secret::RandomSecret;
pub use signer::IdSigner;

use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{API_KEY_BYTES_MAX, SWEEP_ROWS, TOKEN_BYTES_MAX, TOKENS_CACHED_MAX};
use crate::storage::audit::AuditEvent;
use crate::storage::database::{
    AccessToken, AccountChange, BrowserSession, CallerKey, Db, DbError, ReadTx, UsedCredential,
    WindowStart, WriteTx,
};
use credential_uses::CredentialUses;
use device::DeviceKey;
use model::ContentHash;
use model::account::{Account, ScopeSet, UserId};
use pacing::LoginPacer;
use password::HashingThreads;
use throttle::LoginThrottle;
use verified_secrets::VerifiedSecrets;

/// Users cached in memory with their agreements; one takes a few kB.
const ACCOUNTS_CACHED_MAX: u64 = 20_000;

/// The credentials that a request presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresentedCredentials<'a> {
    /// The request presents no credentials.
    Absent,
    /// An OAuth2 access token, from `Authorization: Bearer`.
    Bearer(&'a str),
    /// An API key, from `Authorization: ApiKey` or the query parameter `ak`.
    ApiKey(&'a str),
    /// A browser session, from the session cookie.
    Session(&'a str),
    /// Credentials of a kind that this service does not accept.
    Unknown,
}

/// Limits of password hashing and of failed logins.
#[derive(Clone, Copy, Debug)]
pub struct HashLimits {
    /// Memory of one hash, in KiB.
    pub memory_kib: u32,
    /// Passes of argon2 over that memory.
    pub iterations: u32,
    /// Number of hashing threads.
    pub workers: usize,
    /// Logins that may wait for a hashing thread, in all.
    pub queue: usize,
    /// Logins that may wait from one address; IPv6 addresses count by their /64.
    pub queue_per_address: usize,
    /// Failures of one user name from one address in a window, after which the name is locked out for that
    /// address.
    pub failures_per_user: u32,
    /// Failures of one user name from all addresses, after which its attempts are delayed.
    pub failures_per_user_total: u32,
    /// Failures from one address in a window, after which the address is locked out.
    pub failures_per_address: u32,
    /// Length of the window in which failures are counted.
    pub window: Duration,
}

/// The hash of the credentials that a request presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CredentialHash {
    Bearer(ContentHash),
    ApiKey(ContentHash),
    Session(ContentHash),
}

/// A caller whose credentials have been resolved.
struct ResolvedCaller {
    principal: Arc<Principal>,
    expires: Option<Timestamp>,
    /// The value of [`AuthInner::changes`] before the caller was resolved.
    changes: u64,
}

/// Resolves credentials and verifies logins. Cheap to clone.
#[derive(Clone)]
pub struct Auth {
    inner: Arc<AuthInner>,
}

struct AuthInner {
    db: Db,
    hasher: Argon2Hasher,
    passwords: HashingThreads,
    throttle: LoginThrottle,
    pacer: LoginPacer,
    device_key: OnceCell<DeviceKey>,
    tokens: Cache<ContentHash, Arc<AccessToken>>,
    keys: Cache<ContentHash, Arc<CallerKey>>,
    sessions: Cache<ContentHash, Arc<BrowserSession>>,
    accounts: Cache<UserId, Arc<Account>>,
    /// Resolved callers, each with the change counter of that time: while nothing changes, a known caller
    /// costs one cache lookup.
    callers: Cache<CredentialHash, Arc<ResolvedCaller>>,
    verified: VerifiedSecrets,
    /// Uses of credentials that wait to be written.
    uses: CredentialUses,
    /// Counts account changes. A reader compares it before and after a read to detect a stale result.
    changes: AtomicU64,
    /// Counts changes that may affect signing keys.
    signing_keys: AtomicU64,
}

impl Auth {
    /// Starts the hashing threads; reads nothing from the database yet.
    ///
    /// Fails if argon2 does not accept the limits.
    pub fn start(db: Db, limits: HashLimits) -> Result<Self> {
        let hasher = Argon2Hasher::new(limits.memory_kib, limits.iterations)?;
        let HashLimits { workers, queue, queue_per_address, .. } = limits;
        let passwords = HashingThreads::start(hasher.clone(), workers, queue, queue_per_address)?;
        let inner = AuthInner {
            db,
            hasher,
            passwords,
            throttle: LoginThrottle::new(limits),
            pacer: LoginPacer::default(),
            device_key: OnceCell::new(),
            tokens: Cache::new(TOKENS_CACHED_MAX),
            keys: Cache::new(TOKENS_CACHED_MAX),
            sessions: Cache::new(TOKENS_CACHED_MAX),
            accounts: Cache::new(ACCOUNTS_CACHED_MAX),
            callers: Cache::new(TOKENS_CACHED_MAX),
            verified: VerifiedSecrets::new()?,
            uses: CredentialUses::new(),
            changes: AtomicU64::new(0),
            signing_keys: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Applies new limits for failed logins; the parameters of password hashing stay unchanged.
    pub fn set_throttle_limits(&self, limits: HashLimits) {
        self.inner.throttle.set_limits(limits);
    }

    /// Returns the window in which counters of failed logins are in force at `now`.
    pub fn failure_window(&self, now: Timestamp) -> WindowStart {
        self.inner.throttle.window_start(now)
    }

    /// Returns the hasher for passwords.
    pub fn hasher(&self) -> &Argon2Hasher {
        &self.inner.hasher
    }

    /// Returns the database that holds the accounts.
    pub fn db(&self) -> &Db {
        &self.inner.db
    }

    /// Finds the caller to whom `credentials` belong at `now`. Returns `None` for absent, unknown, expired
    /// and revoked credentials, and for users that are not active.
    pub async fn find(
        &self,
        credentials: PresentedCredentials<'_>,
        now: Timestamp,
    ) -> Result<Option<Arc<Principal>>> {
        let hash = |text: &str| ContentHash::new(text.as_bytes());
        let hash = match credentials {
            PresentedCredentials::Absent | PresentedCredentials::Unknown => return Ok(None),
            PresentedCredentials::Bearer(text) => CredentialHash::Bearer(hash(text)),
            PresentedCredentials::ApiKey(text) => CredentialHash::ApiKey(hash(text)),
            PresentedCredentials::Session(text) => CredentialHash::Session(hash(text)),
        };
        let changes = self.inner.changes.load(Ordering::SeqCst);
        if let Some(cached) = self.inner.callers.get(&hash)
            && cached.changes == changes
            // The account log does not announce that a token expires, so every use compares the
            // time.
            && cached.expires.is_none_or(|expires| expires > now)
        {
            self.record_use(&cached.principal, now);
            return Ok(Some(Arc::clone(&cached.principal)));
        }
        let Some((principal, expires)) = self.resolve(credentials, now).await? else {
            return Ok(None);
        };
        let principal = Arc::new(principal);
        self.record_use(&principal, now);
        let resolved = ResolvedCaller { principal: Arc::clone(&principal), expires, changes };
        // A change during the read makes this entry stale, and its counter shows that on first use.
        self.inner.callers.insert(hash, Arc::new(resolved));
        Ok(Some(principal))
    }

    /// Records the use of a token or API key.
    fn record_use(&self, principal: &Principal, now: Timestamp) {
        let credential = match principal.method() {
            AuthMethod::Bearer { family } => UsedCredential::Family(family),
            AuthMethod::ApiKey { key } => UsedCredential::Key(key),
            // Uses of sessions are recorded where sessions are looked up.
            AuthMethod::Session | AuthMethod::Basic | AuthMethod::Queue | AuthMethod::Operator => {
                return;
            }
        };
        self.inner.uses.record(credential, now);
    }

    /// Writes the uses of credentials since the last call. If the write fails, they are lost: they only
    /// inform users who review their logins, and the next use is recorded again.
    pub async fn write_last_used(&self) -> Result<()> {
        let uses = self.inner.uses.drain();
        // Each transaction holds the cluster write lock, so a long list is written in portions.
        for part in uses.chunks(SWEEP_ROWS) {
            let part = part.to_vec();
            self.inner.db.write(move |tx| tx.record_uses(&part)).await?;
        }
        Ok(())
    }

    async fn resolve(
        &self,
        credentials: PresentedCredentials<'_>,
        now: Timestamp,
    ) -> Result<Option<(Principal, Option<Timestamp>)>> {
        let mut scopes_enforced = false;
        let mut is_read_only = false;
        let (user, scopes, method, expires) = match credentials {
            PresentedCredentials::Absent | PresentedCredentials::Unknown => return Ok(None),
            PresentedCredentials::Bearer(text) => {
                let Some(token) = self.token(text, now).await? else { return Ok(None) };
                let method = AuthMethod::Bearer { family: token.family };
                scopes_enforced = token.scopes_enforced;
                is_read_only = token.read_only;
                (token.user, token.scopes, method, Some(token.expires))
            }
            PresentedCredentials::ApiKey(text) => {
                let Some(found) = self.key(text).await? else { return Ok(None) };
                let CallerKey { user, id, read_only } = *found;
                is_read_only = read_only;
                (user, ScopeSet::for_api_key(), AuthMethod::ApiKey { key: id }, None)
            }
            PresentedCredentials::Session(text) => {
                let Some(session) = self.session(text, now).await? else { return Ok(None) };
                (session.user, ScopeSet::for_session(), AuthMethod::Session, Some(session.expires))
            }
        };
        let Some(account) = self.account(user).await? else { return Ok(None) };
        let principal = Principal { account, scopes, scopes_enforced, is_read_only, method };
        Ok(Some((principal, expires)))
    }

    /// Finds the access token with this text, if it has not expired.
    pub async fn token(&self, text: &str, now: Timestamp) -> Result<Option<Arc<AccessToken>>> {
        let Some(hash) = hash_of(text, TOKEN_BYTES_MAX) else { return Ok(None) };
        let token =
            self.cached(&self.inner.tokens, hash, move |tx| tx.find_access_token(&hash)).await?;
        Ok(token.filter(|token| token.expires > now))
    }

    /// Finds the session with this text, if it has not expired.
    pub async fn session(
        &self,
        text: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<BrowserSession>>> {
        let Some(hash) = hash_of(text, TOKEN_BYTES_MAX) else { return Ok(None) };
        let session =
            self.cached(&self.inner.sessions, hash, move |tx| tx.find_session(&hash)).await?;
        let session = session.filter(|session| session.expires > now);
        if session.is_some() {
            self.inner.uses.record(UsedCredential::Session(hash), now);
        }
        Ok(session)
    }

    async fn key(&self, text: &str) -> Result<Option<Arc<CallerKey>>> {
        let Some(hash) = hash_of(text, API_KEY_BYTES_MAX) else { return Ok(None) };
        self.cached(&self.inner.keys, hash, move |tx| tx.find_key(&hash)).await
    }

    /// Returns the user `id` with its rights, if it is active.
    pub async fn account(&self, id: UserId) -> Result<Option<Arc<Account>>> {
        let account = self.cached(&self.inner.accounts, id, move |tx| tx.find_account(id)).await?;
        Ok(account.filter(|account| account.user.active))
    }

    /// Returns the entry of `cache` for `key`, or else reads and caches it.
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
        // A missing row is not cached, because the account log does not announce new rows.
        let Some(found) = self.inner.db.read(read).await? else { return Ok(None) };
        let found = Arc::new(found);
        cache.insert(key, Arc::clone(&found));
        // A change that was seen during the read may have been invalidated before the insert.
        if self.inner.changes.load(Ordering::SeqCst) != before {
            cache.invalidate(&key);
        }
        Ok(Some(found))
    }

    /// Finds the user `id`, if it is active, for work that the user requested earlier. The result has the
    /// rights that the user's API keys have at this moment.
    pub async fn find_user(&self, id: UserId) -> Result<Option<Principal>> {
        let Some(account) = self.account(id).await? else { return Ok(None) };
        Ok(Some(Principal::new(account, AuthMethod::Queue)))
    }

    /// Returns the number of possible changes of signing keys; a reader with an older number reads the keys
    /// again.
    pub fn signing_key_changes(&self) -> u64 {
        self.inner.signing_keys.load(Ordering::SeqCst)
    }

    /// Runs `write` as one transaction and invalidates the changed cache entries before it returns, so that a
    /// revocation has immediate effect in this process.
    pub async fn write<T, F>(&self, write: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let (outcome, changes) =
            self.db().write(|tx| write(tx).map(|outcome| (outcome, tx.account_changes()))).await?;
        self.invalidate(&changes);
        Ok(outcome)
    }

    /// Runs `end` in a transaction that records `event` if something ended. Otherwise fails with
    /// [`ErrorKind::NotFound`] and records nothing: what belongs to a different user is not found.
    pub async fn end_and_record(
        &self,
        event: AuditEvent,
        not_found: String,
        end: impl FnOnce(&WriteTx<'_>) -> Result<bool, DbError> + Send + 'static,
    ) -> Result<()> {
        let ending = self.write(move |tx| {
            let is_ended = end(tx)?;
            if is_ended {
                tx.write_audit(&event)?;
            }
            Ok(is_ended)
        });
        if ending.await? { Ok(()) } else { Err(Error::new(ErrorKind::NotFound, not_found)) }
    }

    /// Removes changed entries from the caches.
    pub fn invalidate(&self, changes: &[AccountChange]) {
        // Most writes change no account, and raising the counter makes every cached caller stale.
        if changes.is_empty() {
            return;
        }
        let inner = &self.inner;
        // Raised before the removals: a reader that caches an old row in between sees the change
        // and drops it. The callers need no removal, because their entries carry the counter.
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

/// Returns the hash of a presented secret; `None` for a text that no issued secret can have, which bounds the length
/// of the text that is hashed. Look-ups compare hashes, so their timing leaks nothing about secrets.
fn hash_of(text: &str, bytes_max: usize) -> Option<ContentHash> {
    (1..=bytes_max).contains(&text.len()).then(|| ContentHash::new(text.as_bytes()))
}

#[cfg(test)]
mod tests;
