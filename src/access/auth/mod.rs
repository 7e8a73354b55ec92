//! Who calls. Credentials are resolved once a request into a [`Principal`]: the user with its
//! organization and agreements, and the scopes that the credentials carry (contract access-1).
//!
//! What was looked up stays in memory, so that a request whose caller is known touches no disk.
//! Whoever ends a token, a key, a session or changes a user writes that to the account log in the
//! same transaction; this process forgets it at once ([`Auth::write`]), other processes when they
//! follow the log.

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
pub use login::{AuthenticatedLogin, LoginOutcome, LoginRequest};
pub use new_password::{PasswordFlaw, check_new_password};
pub use password::Argon2Hasher;
pub use principal::{AuthMethod, Principal};
pub use secret::RandomSecret;
pub use signer::IdSigner;

use crate::runtime::error::Result;
use crate::runtime::limits::{
    ACCOUNTS_CACHED_MAX, API_KEY_BYTES_MAX, SWEEP_ROWS, TOKEN_BYTES_MAX, TOKENS_CACHED_MAX,
};
use crate::storage::database::{
    AccessToken, AccountChange, BrowserSession, Db, DbError, ReadTx, UsedCredential, WindowStart,
    WriteTx,
};
use credential_uses::CredentialUses;
use device::DeviceKey;
use model::ContentHash;
use model::account::{Account, ScopeSet, UserId};
use pacing::LoginPacer;
use password::HashingThreads;
use throttle::LoginThrottle;
use verified_secrets::VerifiedSecrets;

/// What a request presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresentedCredentials<'a> {
    /// Nothing.
    Absent,
    /// An OAuth2 access token, from `Authorization: ProviderToken`.
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
enum CredentialHash {
    Bearer(ContentHash),
    ApiKey(ContentHash),
    Session(ContentHash),
}

/// A caller that was resolved.
struct ResolvedCaller {
    principal: Arc<Principal>,
    expires: Option<Timestamp>,
    /// The count of changes before it was resolved.
    changes: u64,
}

/// Resolves credentials; cheap to clone.
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
    /// Whose key it is, and its number.
    keys: Cache<ContentHash, (UserId, i64)>,
    sessions: Cache<ContentHash, Arc<BrowserSession>>,
    accounts: Cache<UserId, Arc<Account>>,
    /// Callers as they were resolved last, with the count of changes then: while nothing changes,
    /// a known caller costs one look-up.
    callers: Cache<CredentialHash, Arc<ResolvedCaller>>,
    verified: VerifiedSecrets,
    /// When credentials were used, to be written.
    uses: CredentialUses,
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
        let hasher = Argon2Hasher::new(limits.memory_kib, limits.iterations)?;
        let HashLimits { workers, queue, queue_per_address, .. } = limits;
        let passwords = HashingThreads::start(hasher.clone(), workers, queue, queue_per_address)?;
        let inner = AuthInner {
            db,
            hasher,
            passwords,
            throttle: LoginThrottle::new(limits.into()),
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

    /// Throttles by the failures that `limits` allow from now on; how passwords are hashed stays.
    pub fn set_throttle_limits(&self, limits: HashLimits) {
        self.inner.throttle.set_limits(limits.into());
    }

    /// The window by which counters of failed logins are in force at `now`.
    #[must_use]
    pub fn failure_window(&self, now: Timestamp) -> WindowStart {
        self.inner.throttle.window_start(now)
    }

    /// How passwords are hashed.
    #[must_use]
    pub fn hasher(&self) -> &Argon2Hasher {
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
        credentials: PresentedCredentials<'_>,
        now: Timestamp,
    ) -> Result<Option<Arc<Principal>>> {
        let presented = match credentials {
            PresentedCredentials::Absent | PresentedCredentials::Unknown => return Ok(None),
            PresentedCredentials::Bearer(text) => {
                CredentialHash::Bearer(ContentHash::of(text.as_bytes()))
            }
            PresentedCredentials::ApiKey(text) => {
                CredentialHash::ApiKey(ContentHash::of(text.as_bytes()))
            }
            PresentedCredentials::Session(text) => {
                CredentialHash::Session(ContentHash::of(text.as_bytes()))
            }
        };
        let changes = self.inner.changes.load(Ordering::SeqCst);
        if let Some(known) = self.inner.callers.get(&presented)
            && known.changes == changes
            && known.expires.is_none_or(|expires| expires > now)
        {
            self.record_use(&known.principal, now);
            return Ok(Some(Arc::clone(&known.principal)));
        }
        let Some((principal, expires)) = self.resolve(credentials, now).await? else {
            return Ok(None);
        };
        let principal = Arc::new(principal);
        self.record_use(&principal, now);
        let resolved = ResolvedCaller { principal: Arc::clone(&principal), expires, changes };
        // A change that came meanwhile makes the entry old before it is used.
        self.inner.callers.insert(presented, Arc::new(resolved));
        Ok(Some(principal))
    }

    /// Notes the use of a token or key.
    fn record_use(&self, principal: &Principal, now: Timestamp) {
        let credential = match principal.method() {
            AuthMethod::Bearer { family } => UsedCredential::Family(family),
            AuthMethod::ApiKey { key } => UsedCredential::Key(key),
            // Sessions are noted where they are looked up.
            AuthMethod::Session | AuthMethod::Basic | AuthMethod::Queue | AuthMethod::Operator => {
                return;
            }
        };
        self.inner.uses.record(credential, now);
    }

    /// Writes when credentials were used since the last call. What cannot be written is lost: it is for
    /// people who look through their logins, and the next use is noted again.
    pub async fn write_uses(&self) -> Result<()> {
        let uses = self.inner.uses.drain();
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
        let mut enforced = false;
        let (user, scopes, method, expires) = match credentials {
            PresentedCredentials::Absent | PresentedCredentials::Unknown => return Ok(None),
            PresentedCredentials::Bearer(text) => {
                let Some(token) = self.token(text, now).await? else { return Ok(None) };
                let method = AuthMethod::Bearer { family: token.family };
                enforced = token.scopes_enforced;
                (token.user, token.scopes, method, Some(token.expires))
            }
            PresentedCredentials::ApiKey(text) => {
                let Some((user, key)) = self.key(text).await? else { return Ok(None) };
                (user, ScopeSet::for_api_key(), AuthMethod::ApiKey { key }, None)
            }
            PresentedCredentials::Session(text) => {
                let Some(session) = self.session(text, now).await? else { return Ok(None) };
                (session.user, ScopeSet::for_session(), AuthMethod::Session, Some(session.expires))
            }
        };
        let Some(account) = self.account(user).await? else { return Ok(None) };
        let principal = Principal::new(account, scopes, method).with_scopes_enforced(enforced);
        Ok(Some((principal, expires)))
    }

    /// The live access token of that text.
    pub async fn token(&self, text: &str, now: Timestamp) -> Result<Option<Arc<AccessToken>>> {
        if text.is_empty() || text.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let hash = ContentHash::of(text.as_bytes());
        let read = move |tx: &ReadTx<'_>| tx.find_access_token(&hash);
        let token = self.cached(&self.inner.tokens, hash, read).await?;
        Ok(token.filter(|token| token.expires > now))
    }

    /// The live session of that text.
    pub async fn session(
        &self,
        text: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<BrowserSession>>> {
        if text.is_empty() || text.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let hash = ContentHash::of(text.as_bytes());
        let read = move |tx: &ReadTx<'_>| tx.find_session(&hash);
        let session = self.cached(&self.inner.sessions, hash, read).await?;
        let session = session.filter(|session| session.expires > now);
        if session.is_some() {
            self.inner.uses.record(UsedCredential::Session(hash), now);
        }
        Ok(session)
    }

    async fn key(&self, text: &str) -> Result<Option<(UserId, i64)>> {
        if text.is_empty() || text.len() > API_KEY_BYTES_MAX {
            return Ok(None);
        }
        // Comparing hashes tells nothing about the key that timing could leak.
        let hash = ContentHash::of(text.as_bytes());
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
        let principal =
            |account| Principal::new(account, ScopeSet::for_api_key(), AuthMethod::Queue);
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
        self.invalidate(&changes);
        Ok(outcome)
    }

    /// Forgets what changed.
    pub fn invalidate(&self, changes: &[AccountChange]) {
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
