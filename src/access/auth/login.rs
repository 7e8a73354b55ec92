//! Verifies passwords of users and secrets of programs, for attempts that the throttle admits.
//!
//! The order is the same for pages, HTTP Basic, the token endpoint and client secrets. The transaction that
//! looks up the account loads earlier failures, then the throttle decides, and only an admitted attempt is
//! compared with anything, including the cache of verified secrets. If that cache knows the right secret, a
//! wrong secret is counted under the same lock under which the right secret is accepted, before anything is
//! awaited. Otherwise a guess that is never hashed, because too many attempts wait or its client disconnects,
//! could be distinguished from the right secret by the response and would cost nothing.

use std::{net::IpAddr, sync::Arc};

use jiff::Timestamp;

use super::attempt::{AttemptOutcome, CachedVerdict, VerificationAttempt};
use super::device::{DeviceCookie, DeviceKey, DeviceOwner};
use super::throttle::{ThrottleDecision, ThrottleSubject, device_key};
use super::{Auth, AuthMethod, Principal};
use crate::runtime::error::{Error, Result};
use crate::runtime::telemetry;
use crate::storage::audit::{self, AuditAction};
use crate::storage::database::{DbError, ReadTx};
use model::ContentHash;
use model::account::{Account, User};
use model::limits::{PASSWORD_BYTES_MAX, USER_NAME_BYTES_MAX};

/// The user name and password of a login, with their origin.
#[derive(Clone, Copy)]
pub struct LoginRequest<'a> {
    pub user_name: &'a str,
    pub password: &'a str,
    pub address: IpAddr,
    /// The device cookie of the browser, if it has one ([`Auth::issue_device_cookie`]).
    pub device_cookie: Option<&'a str>,
    pub now: Timestamp,
}

/// A successful login. The password may change while its hash is computed, so a transaction that opens a
/// session or issues tokens for the login must check [`AuthenticatedLogin::is_still_valid`].
#[derive(Clone, PartialEq, Eq)]
pub struct AuthenticatedLogin {
    /// The account that logged in.
    pub account: Arc<Account>,
    password: Arc<str>,
}

impl AuthenticatedLogin {
    /// Returns whether the user is still active and still has the password of this login.
    pub fn is_still_valid(&self, tx: &ReadTx<'_>) -> Result<bool, DbError> {
        let found = tx.find_user_by_name(&self.account.user.user_name)?;
        Ok(found.is_some_and(|(user, hash)| {
            user.id == self.account.user.id
                && user.active
                && hash.is_some_and(|hash| *hash == *self.password)
        }))
    }
}

impl std::fmt::Debug for AuthenticatedLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AuthenticatedLogin({})", self.account.user.id)
    }
}

/// The outcome of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginOutcome {
    /// The password is right and the user is active.
    Ok(AuthenticatedLogin),
    /// User name or password is wrong, or the user is not active: the response does not say which.
    Refused,
    /// Too many attempts failed. Holds the number of seconds until the next attempt is allowed.
    Throttled(u64),
}

/// The user that a login names, and the counters of its attempts.
struct LoginCandidate {
    /// The user, if it exists and is active.
    user: Option<User>,
    password_hash: Option<String>,
    subject: ThrottleSubject,
}

impl Auth {
    /// Authenticates a caller by HTTP Basic; only the search accepts it (contract access-6).
    ///
    /// A password that was verified recently from the same network, and has not changed since, needs no slow
    /// hash.
    pub async fn find_basic(
        &self,
        user_name: &str,
        password: &str,
        address: IpAddr,
        now: Timestamp,
    ) -> Result<Option<Arc<Principal>>> {
        let request = LoginRequest { user_name, password, address, device_cookie: None, now };
        // No stored name or password is that long, so hashing it would only cost time.
        if is_too_long(&request) {
            return Ok(None);
        }
        let candidate = self.find_candidate(&request).await?;
        let verdict = self.count_cached_login(&request, &candidate);
        // Programs send Basic with each request: only evaluated logins are counted and audited.
        if let (CachedVerdict::Right, Some(user)) = (&verdict, &candidate.user) {
            return Ok(self.account(user.id).await?.map(basic_principal));
        }
        let counted = verdict.counted_decision();
        let outcome = record_metric(self.evaluate_login(&request, candidate, counted).await);
        self.record_login(&outcome, &request).await;
        match outcome? {
            LoginOutcome::Ok(authenticated) => Ok(Some(basic_principal(authenticated.account))),
            LoginOutcome::Refused => Ok(None),
            LoginOutcome::Throttled(wait_s) => Err(throttled(wait_s)),
        }
    }

    /// Returns the user name for a `name` typed into a form: trimmed, and in lower case if only the
    /// lower-case form is a user's name. Programs send exact names.
    pub async fn canonical_user_name(&self, name: &str) -> Result<String> {
        let typed = name.trim().to_owned();
        let lower = typed.to_lowercase();
        if typed == lower || typed.len() > USER_NAME_BYTES_MAX {
            return Ok(typed);
        }
        let canonical = self
            .db()
            .read(move |tx| {
                // An exact name wins: names that differ only in case may both exist.
                let is_exact = tx.find_user_by_name(&typed)?.is_some();
                let is_lower = !is_exact && tx.find_user_by_name(&lower)?.is_some();
                Ok(if is_lower { lower } else { typed })
            })
            .await?;
        Ok(canonical)
    }

    /// Logs a user in by password like [`Auth::log_in`], for a client that has no device cookie.
    pub async fn login(
        &self,
        user_name: &str,
        password: &str,
        address: IpAddr,
        now: Timestamp,
    ) -> Result<LoginOutcome> {
        self.log_in(&LoginRequest { user_name, password, address, device_cookie: None, now }).await
    }

    /// Logs a user in by password.
    ///
    /// The response for an unknown user name is not faster. Waits up to
    /// [`crate::runtime::limits::PACE_WAIT_MAX`] for a slot if the name failed too often from all networks.
    /// Fails with [`crate::runtime::error::ErrorKind::Overloaded`] if too many logins wait.
    pub async fn log_in(&self, request: &LoginRequest<'_>) -> Result<LoginOutcome> {
        let outcome = record_metric(self.check(request).await);
        self.record_login(&outcome, request).await;
        outcome
    }

    /// Records the outcome of a login in the audit log. Of many throttled logins, only the first in a while
    /// reads the database and is recorded. An oversized name or password is refused unchecked and is not a
    /// guess.
    async fn record_login(&self, outcome: &Result<LoginOutcome>, request: &LoginRequest<'_>) {
        let Ok(login) = outcome else { return };
        if is_too_long(request) {
            return;
        }
        let action = match login {
            LoginOutcome::Ok(authenticated) => {
                let user = &authenticated.account.user;
                audit::record(audit::login_event(AuditAction::Login, Some(user)));
                return;
            }
            LoginOutcome::Refused => AuditAction::Login,
            LoginOutcome::Throttled(_) if audit::count_throttled(request.now) => {
                AuditAction::LoginThrottled
            }
            LoginOutcome::Throttled(_) => return,
        };
        let name = request.user_name.to_owned();
        let found = self.inner.db.read(move |tx| tx.find_user_by_name(&name)).await;
        // A failure of the database must not hide the attempt.
        let user = found.ok().flatten().map(|(user, _)| user);
        let event = audit::login_event(action, user.as_ref());
        audit::record(event.with_outcome(audit::AuditOutcome::Refused));
    }

    async fn check(&self, request: &LoginRequest<'_>) -> Result<LoginOutcome> {
        if is_too_long(request) {
            return Ok(LoginOutcome::Refused);
        }
        let candidate = self.find_candidate(request).await?;
        self.evaluate_login(request, candidate, None).await
    }

    /// Loads the user of a login and its earlier failures, in one transaction.
    async fn find_candidate(&self, request: &LoginRequest<'_>) -> Result<LoginCandidate> {
        let now = request.now;
        let subject = ThrottleSubject::of_user(request.user_name, request.address);
        let cookie = request.device_cookie.and_then(DeviceCookie::parse);
        // A valid device cookie has its own counter, so an attempt with a cookie is decided later.
        if cookie.is_none() && self.refuse_locked(&subject, now).is_err() {
            // A locked-out attempt must not cost a database read.
            return Ok(LoginCandidate { user: None, password_hash: None, subject });
        }
        let mut keys = subject.keys();
        // One read loads the counters of both subjects: only the user shows whether the cookie is valid.
        keys.extend(cookie.map(|cookie| device_key(cookie.device)));
        let name = request.user_name.to_owned();
        let (found, failures) = self
            .db()
            .read(move |tx| Ok((tx.find_user_by_name(&name)?, tx.list_failed_logins(&keys)?)))
            .await?;
        self.inner.throttle.merge(&failures, now);
        // An unknown or inactive user is checked too, so that the response is as slow as for a wrong
        // password.
        let (user, password_hash) = found.unzip();
        let user = user.filter(|user| user.active);
        let password_hash = password_hash.flatten();
        let mut candidate = LoginCandidate { user, password_hash, subject };
        if let Some(cookie) = cookie
            && self.is_device_of(&cookie, &candidate, now).await?
        {
            candidate.subject = ThrottleSubject::of_device(cookie.device, request.address);
        }
        Ok(candidate)
    }

    async fn is_device_of(
        &self,
        cookie: &DeviceCookie,
        candidate: &LoginCandidate,
        now: Timestamp,
    ) -> Result<bool> {
        let key = self.device_key().await?;
        let (Some(user), Some(hash)) = (&candidate.user, &candidate.password_hash) else {
            return Ok(false);
        };
        Ok(key.verify(cookie, DeviceOwner { user: user.id, password_hash: hash }, now))
    }

    /// Compares a login with the cached secrets of its network; counts the login if it is wrong.
    fn count_cached_login(
        &self,
        request: &LoginRequest<'_>,
        candidate: &LoginCandidate,
    ) -> CachedVerdict {
        let LoginCandidate { user: Some(_), password_hash: Some(hash), subject } = candidate
        else {
            return CachedVerdict::Undecided;
        };
        let right = self.inner.verified.is_right(request.password, hash, request.address);
        self.count_cached(right, subject, request.now)
    }

    async fn evaluate_login(
        &self,
        request: &LoginRequest<'_>,
        candidate: LoginCandidate,
        counted: Option<ThrottleDecision>,
    ) -> Result<LoginOutcome> {
        let LoginCandidate { user, password_hash, subject } = candidate;
        let attempt = VerificationAttempt {
            secret: request.password.to_owned(),
            hash: password_hash.clone(),
            may_log_in: user.is_some(),
            address: request.address,
            subject,
            counted_decision: counted,
        };
        match self.attempt(attempt, request.now).await? {
            AttemptOutcome::Throttled { wait_s } => return Ok(LoginOutcome::Throttled(wait_s)),
            AttemptOutcome::Wrong => return Ok(LoginOutcome::Refused),
            AttemptOutcome::Right => {}
        }
        let Some((user, hash)) = user.zip(password_hash) else { return Ok(LoginOutcome::Refused) };
        self.inner.verified.remember(request.password, &hash, request.address);
        let Some(account) = self.account(user.id).await? else { return Ok(LoginOutcome::Refused) };
        Ok(LoginOutcome::Ok(AuthenticatedLogin { account, password: hash.into() }))
    }

    /// Runs `read` in a transaction that also loads the failures of the network of `address`, for an attempt
    /// with a program's secret.
    ///
    /// Fails with [`crate::runtime::error::ErrorKind::Overloaded`] while that network is locked out.
    pub async fn read_unless_locked<T: Send + 'static>(
        &self,
        address: IpAddr,
        now: Timestamp,
        read: impl FnOnce(&ReadTx<'_>) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T> {
        let subject = ThrottleSubject::of_program(address);
        // Checked twice: before the read to save the read, and after it with the failures of other processes.
        self.refuse_locked(&subject, now)?;
        let keys = subject.keys();
        let (found, failures) =
            self.inner.db.read(move |tx| Ok((read(tx)?, tx.list_failed_logins(&keys)?))).await?;
        self.inner.throttle.merge(&failures, now);
        self.refuse_locked(&subject, now)?;
        Ok(found)
    }

    fn refuse_locked(&self, subject: &ThrottleSubject, now: Timestamp) -> Result<()> {
        match self.inner.throttle.decide(subject, now) {
            ThrottleDecision::Locked { wait_s } => Err(throttled(wait_s)),
            ThrottleDecision::Pace(_) | ThrottleDecision::Evaluate => Ok(()),
        }
    }

    /// Returns whether `hash` was computed from `secret`, for secrets of programs, which are sent often: the
    /// slow hash is computed only now and then for each network.
    ///
    /// Returns false after the same time if there is no hash. The hash is read with
    /// [`Auth::read_unless_locked`]. Fails with [`crate::runtime::error::ErrorKind::Overloaded`] if too many
    /// attempts of the network failed or too many wait.
    pub async fn verify_secret(
        &self,
        secret: &str,
        hash: Option<&str>,
        address: IpAddr,
        now: Timestamp,
    ) -> Result<bool> {
        if secret.len() > PASSWORD_BYTES_MAX {
            return Ok(false);
        }
        let subject = ThrottleSubject::of_program(address);
        self.refuse_locked(&subject, now)?;
        let right = hash.and_then(|hash| self.inner.verified.is_right(secret, hash, address));
        let verdict = self.count_cached(right, &subject, now);
        if matches!(verdict, CachedVerdict::Right) {
            return Ok(true);
        }
        let attempt = VerificationAttempt {
            secret: secret.to_owned(),
            hash: hash.map(str::to_owned),
            // An inactive client is excluded by the caller, which then passes no hash.
            may_log_in: true,
            address,
            subject,
            counted_decision: verdict.counted_decision(),
        };
        match self.attempt(attempt, now).await? {
            AttemptOutcome::Throttled { wait_s } => Err(throttled(wait_s)),
            AttemptOutcome::Wrong => Ok(false),
            AttemptOutcome::Right => {
                if let Some(hash) = hash {
                    self.inner.verified.remember(secret, hash, address);
                }
                Ok(true)
            }
        }
    }

    /// Issues the value of a device cookie, which distinguishes this browser from browsers that guess
    /// passwords, for [`crate::runtime::limits::DEVICE_COOKIE_FOR`] or until the password changes.
    pub async fn issue_device_cookie(
        &self,
        login: &AuthenticatedLogin,
        now: Timestamp,
    ) -> Result<String> {
        let owner = DeviceOwner { user: login.account.user.id, password_hash: &login.password };
        self.device_key().await?.issue(owner, now)
    }

    /// Returns a hash of the device that a device cookie names; `None` if the cookie is malformed. The cookie
    /// is not verified: only the browser knows it.
    pub fn device_hash(cookie: &str) -> Option<ContentHash> {
        let cookie = DeviceCookie::parse(cookie)?;
        Some(ContentHash::new(&cookie.device.0))
    }

    async fn device_key(&self) -> Result<&DeviceKey> {
        self.inner.device_key.get_or_try_init(|| DeviceKey::load(&self.inner.db)).await
    }
}

/// Returns the caller of `account`, authenticated by HTTP Basic.
fn basic_principal(account: Arc<Account>) -> Arc<Principal> {
    Arc::new(Principal::new(account, AuthMethod::Basic))
}

/// Counts the outcome of a login in the metrics.
fn record_metric(outcome: Result<LoginOutcome>) -> Result<LoginOutcome> {
    let label = match &outcome {
        Ok(LoginOutcome::Ok(_)) => "done",
        Ok(LoginOutcome::Refused) => "refused",
        Ok(LoginOutcome::Throttled(_)) => "throttled",
        Err(_) => "failed",
    };
    metrics::counter!(telemetry::LOGINS, "outcome" => label).increment(1);
    outcome
}

fn is_too_long(request: &LoginRequest<'_>) -> bool {
    request.user_name.len() > USER_NAME_BYTES_MAX || request.password.len() > PASSWORD_BYTES_MAX
}

fn throttled(wait_s: u64) -> Error {
    // `Overloaded` becomes 503 with `Retry-After` (contract login-21).
    let refused = Error::overloaded("failed_logins", "Too many failed logins");
    refused.retry_after(u32::try_from(wait_s).unwrap_or(u32::MAX))
}
