//! Who calls. Credentials are resolved once a request into a [`Principal`]: the user with its
//! organization and agreements, and the scopes that the credentials carry (Spec §5).
//!
//! What was looked up stays in memory, so that a request whose caller is known touches no disk.
//! Whoever ends a token, a key, a session or changes a user writes that to the account log in the
//! same transaction; this process forgets it at once ([`Auth::write`]), other processes when they
//! follow the log.

mod password;
mod principal;
mod secret;
mod throttle;

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use moka::sync::Cache;

pub use password::Hasher;
pub use principal::{Method, Principal};
pub use secret::Secret;

use crate::account::{Account, Scopes, UserId};
use crate::db::{AccountChange, Db, DbError, ReadTx, Session, Token, WriteTx};
use crate::error::{Error, Result};
use crate::limits::{
    ACCOUNTS_CACHED_MAX, API_KEY_BYTES_MAX, PASSWORD_BYTES_MAX, TOKEN_BYTES_MAX,
    TOKENS_CACHED_MAX, USER_NAME_BYTES_MAX, VERIFIED_FOR, VERIFIED_MAX,
};
use crate::telemetry;
use crate::types::Hash;
use password::Passwords;
use throttle::Throttle;

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
    /// Failures of one user name in a window.
    pub failures_per_user: u32,
    /// Failures from one address in a window.
    pub failures_per_address: u32,
    /// The window.
    pub window: Duration,
}

/// A login that succeeded. A password may change while its hash is computed, so whoever opens a
/// session or gives out tokens for it looks again in the same transaction ([`Entered::is_good`]).
#[derive(Clone, PartialEq, Eq)]
pub struct Entered {
    /// Who logged in.
    pub account: Arc<Account>,
    password: Arc<str>,
}

impl Entered {
    /// Whether the user may still use the service and still has the password of this login.
    pub fn is_good(&self, tx: &ReadTx<'_>) -> Result<bool, DbError> {
        let found = tx.find_user_by_name(&self.account.user.user_name)?;
        Ok(found.is_some_and(|(user, hash)| {
            user.id == self.account.user.id
                && user.active
                && hash.is_some_and(|hash| *hash == *self.password)
        }))
    }
}

impl std::fmt::Debug for Entered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entered({})", self.account.user.id)
    }
}

/// How a login ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// The password is right and the user may use the service.
    Ok(Entered),
    /// User name or password are wrong, or the user is not active: nobody is told which.
    Refused,
    /// Too many failed; the next try is allowed in so many seconds.
    Throttled(u64),
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

/// A password that somebody typed, with what it is compared with.
struct Attempt {
    user_name: String,
    password: String,
    address: IpAddr,
    /// Whether the user may use the service at all.
    may_enter: bool,
    hash: Option<String>,
}

enum Attempted {
    Right,
    Wrong,
    Throttled(u64),
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
    tokens: Cache<Hash, Arc<Token>>,
    keys: Cache<Hash, UserId>,
    sessions: Cache<Hash, Arc<Session>>,
    accounts: Cache<UserId, Arc<Account>>,
    /// Callers as they were resolved last, with the count of changes then: while nothing changes,
    /// a known caller costs one look-up.
    callers: Cache<Presented, Arc<Resolved>>,
    /// Hashes of secrets that were verified a short while ago, with what they were verified
    /// against and a random number of this process.
    verified: Cache<Hash, ()>,
    pepper: String,
    /// Counts the changes that were seen; tells a reader that what it read may be old.
    changes: AtomicU64,
}

impl Auth {
    /// Starts the hashing threads; nothing is read yet.
    ///
    /// Fails when argon2 does not allow the limits.
    pub fn start(db: Db, limits: HashLimits) -> Result<Self> {
        let hasher = Hasher::new(limits.memory_kib, limits.iterations)?;
        let passwords = {
            let places = (limits.queue, limits.queue_per_address);
            Passwords::start(hasher.clone(), limits.workers, places)?
        };
        let (per_user, per_address) = (limits.failures_per_user, limits.failures_per_address);
        let inner = Inner {
            db,
            hasher,
            passwords,
            throttle: Throttle::new(per_user, per_address, limits.window),
            tokens: Cache::new(TOKENS_CACHED_MAX),
            keys: Cache::new(TOKENS_CACHED_MAX),
            sessions: Cache::new(TOKENS_CACHED_MAX),
            accounts: Cache::new(ACCOUNTS_CACHED_MAX),
            callers: Cache::new(TOKENS_CACHED_MAX),
            verified: Cache::builder()
                .max_capacity(VERIFIED_MAX)
                .time_to_live(VERIFIED_FOR)
                .build(),
            pepper: Secret::new()?.reveal().to_owned(),
            changes: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Throttles by the failures that `limits` allow from now on; how passwords are hashed stays.
    pub fn set_throttle(&self, limits: HashLimits) {
        let (per_user, per_address) = (limits.failures_per_user, limits.failures_per_address);
        self.inner.throttle.set(per_user, per_address, limits.window);
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
            return Ok(Some(Arc::clone(&known.principal)));
        }
        let Some((principal, expires)) = self.resolve(credentials, now).await? else {
            return Ok(None);
        };
        let principal = Arc::new(principal);
        let resolved = Resolved { principal: Arc::clone(&principal), expires, changes };
        // A change that came meanwhile makes the entry old before it is used.
        self.inner.callers.insert(presented, Arc::new(resolved));
        Ok(Some(principal))
    }

    async fn resolve(
        &self,
        credentials: Credentials<'_>,
        now: Timestamp,
    ) -> Result<Option<(Principal, Option<Timestamp>)>> {
        let (user, scopes, method, expires) = match credentials {
            Credentials::Absent | Credentials::Unknown => return Ok(None),
            Credentials::Bearer(text) => {
                let Some(token) = self.token(text, now).await? else { return Ok(None) };
                let method = Method::Bearer { family: token.family };
                (token.user, token.scopes, method, Some(token.expires))
            }
            Credentials::ApiKey(text) => {
                let Some(user) = self.key(text).await? else { return Ok(None) };
                (user, Scopes::of_key(), Method::ApiKey, None)
            }
            Credentials::Session(text) => {
                let Some(session) = self.session(text, now).await? else { return Ok(None) };
                (session.user, Scopes::of_session(), Method::Session, Some(session.expires))
            }
        };
        let Some(account) = self.account(user).await? else { return Ok(None) };
        Ok(Some((Principal::new(account, scopes, method), expires)))
    }

    /// The caller that HTTP Basic names; the search alone accepts it (Spec §5).
    pub async fn find_basic(
        &self,
        (user_name, password): (&str, &str),
        address: IpAddr,
        now: Timestamp,
    ) -> Result<Option<Arc<Principal>>> {
        let account = match self.remembered(user_name, password).await? {
            Some(account) => account,
            None => match self.login(user_name, password, address, now).await? {
                Login::Ok(entered) => entered.account,
                Login::Refused => return Ok(None),
                Login::Throttled(wait_s) => {
                    let refused = Error::overloaded("failed_logins", "Too many failed logins");
                    return Err(refused.retry_after(u32::try_from(wait_s).unwrap_or(u32::MAX)));
                }
            },
        };
        Ok(Some(Arc::new(Principal::new(account, Scopes::of_key(), Method::Basic))))
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
        Ok(session.filter(|session| session.expires > now))
    }

    async fn key(&self, text: &str) -> Result<Option<UserId>> {
        if text.is_empty() || text.len() > API_KEY_BYTES_MAX {
            return Ok(None);
        }
        // Comparing hashes tells nothing about the key that timing could leak.
        let hash = Hash::of(text.as_bytes());
        if let Some(user) = self.inner.keys.get(&hash) {
            return Ok(Some(user));
        }
        let before = self.inner.changes.load(Ordering::SeqCst);
        let Some(user) = self.inner.db.read(move |tx| tx.find_key(&hash)).await? else {
            return Ok(None);
        };
        self.inner.keys.insert(hash, user);
        if self.inner.changes.load(Ordering::SeqCst) != before {
            self.inner.keys.invalidate(&hash);
        }
        Ok(Some(user))
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
                AccountChange::Everything => {
                    inner.tokens.invalidate_all();
                    inner.keys.invalidate_all();
                    inner.sessions.invalidate_all();
                    inner.accounts.invalidate_all();
                }
            }
        }
    }

    /// Logs a user in by password.
    ///
    /// It takes as long for a name that nobody has. Fails with [`crate::error::Kind::Overloaded`] when too many
    /// logins wait.
    pub async fn login(
        &self,
        user_name: &str,
        password: &str,
        address: IpAddr,
        now: Timestamp,
    ) -> Result<Login> {
        let outcome = self.check(user_name, password, address, now).await;
        let word = match &outcome {
            Ok(Login::Ok(_)) => "done",
            Ok(Login::Refused) => "refused",
            Ok(Login::Throttled(_)) => "throttled",
            Err(_) => "failed",
        };
        metrics::counter!(telemetry::LOGINS, "outcome" => word).increment(1);
        outcome
    }

    async fn check(
        &self,
        user_name: &str,
        password: &str,
        address: IpAddr,
        now: Timestamp,
    ) -> Result<Login> {
        if user_name.len() > USER_NAME_BYTES_MAX || password.len() > PASSWORD_BYTES_MAX {
            return Ok(Login::Refused);
        }
        let name = user_name.to_owned();
        let found = self.inner.db.read(move |tx| tx.find_user_by_name(&name)).await?;
        let (user, hash) = found.unzip();
        let (user, hash) = (user.filter(|user| user.active), hash.flatten());
        let attempt = Attempt {
            user_name: user_name.to_owned(),
            password: password.to_owned(),
            address,
            may_enter: user.is_some(),
            hash: hash.clone(),
        };
        match self.attempt(attempt, now).await? {
            Attempted::Throttled(wait_s) => return Ok(Login::Throttled(wait_s)),
            Attempted::Wrong => return Ok(Login::Refused),
            Attempted::Right => {}
        }
        let Some((user, hash)) = user.zip(hash) else { return Ok(Login::Refused) };
        self.inner.verified.insert(self.memo(password, &hash), ());
        let password = hash.into();
        let enter = |account| Login::Ok(Entered { account, password });
        Ok(self.account(user.id).await?.map_or(Login::Refused, enter))
    }

    /// Makes one attempt on a hashing thread. Failures are looked at and counted there, one after
    /// the other: a thousand guesses at once get no further than ten.
    async fn attempt(&self, attempt: Attempt, now: Timestamp) -> Result<Attempted> {
        let Attempt { user_name, password, address, may_enter, hash } = attempt;
        let inner = Arc::clone(&self.inner);
        let name = user_name.clone();
        let throttled =
            move || inner.throttle.wait_s(&name, address, now).map(Attempted::Throttled);
        if let Some(throttled) = throttled() {
            return Ok(throttled);
        }
        let (fits, inner) = (self.inner.passwords.fits(), Arc::clone(&self.inner));
        let fits = move || fits(&password, hash.as_deref()) && may_enter;
        let settle = move |fits: bool| {
            if fits {
                return Attempted::Right;
            }
            inner.throttle.fail(&user_name, address, now);
            Attempted::Wrong
        };
        self.inner.passwords.run(address, throttled, fits, settle).await
    }

    /// The user, if this very password was verified a short while ago and nothing changed since.
    async fn remembered(&self, user_name: &str, password: &str) -> Result<Option<Arc<Account>>> {
        if user_name.len() > USER_NAME_BYTES_MAX || password.len() > PASSWORD_BYTES_MAX {
            return Ok(None);
        }
        let name = user_name.to_owned();
        let found = self.inner.db.read(move |tx| tx.find_user_by_name(&name)).await?;
        let Some((user, Some(hash))) = found else { return Ok(None) };
        if self.inner.verified.get(&self.memo(password, &hash)).is_none() {
            return Ok(None);
        }
        self.account(user.id).await
    }

    /// Whether `secret` is the one that `hash` was made from, for secrets of programs, which come
    /// again and again: the slow hash is made once in a while.
    ///
    /// Without a hash it never is, after the same time. Failures are counted per address (RFC 6749
    /// §2.3.1), never per client: anybody could lock a client out. Fails with
    /// [`crate::error::Kind::Overloaded`] when too many of an address failed or too many wait.
    pub async fn verify_secret(
        &self,
        secret: &str,
        hash: Option<&str>,
        (address, now): (IpAddr, Timestamp),
    ) -> Result<bool> {
        if secret.len() > PASSWORD_BYTES_MAX {
            return Ok(false);
        }
        let memo = hash.map(|hash| self.memo(secret, hash));
        if memo.is_some_and(|memo| self.inner.verified.get(&memo).is_some()) {
            return Ok(true);
        }
        let throttled = || Error::overloaded("failed_logins", "Too many failed attempts");
        if self.inner.throttle.is_blocked(address, now) {
            return Err(throttled());
        }
        let (fits, inner) = (self.inner.passwords.fits(), Arc::clone(&self.inner));
        let (secret, hash) = (secret.to_owned(), hash.map(str::to_owned));
        let watching = Arc::clone(&self.inner);
        let blocked = move || watching.throttle.is_blocked(address, now).then_some(None);
        let fits = move || fits(&secret, hash.as_deref());
        let settle = move |good: bool| {
            if !good {
                inner.throttle.fail_address(address, now);
            }
            Some(good)
        };
        let good = self.inner.passwords.run(address, blocked, fits, settle).await?;
        let good = good.ok_or_else(throttled)?;
        if let Some(memo) = memo.filter(|_| good) {
            self.inner.verified.insert(memo, ());
        }
        Ok(good)
    }

    /// What is remembered of a verified secret. It holds the slow hash, so it means nothing any
    /// more once that changed.
    fn memo(&self, secret: &str, hash: &str) -> Hash {
        let parts = [self.inner.pepper.as_str(), hash, secret];
        Hash::of(parts.join("\0").as_bytes())
    }
}

#[cfg(test)]
mod tests;
