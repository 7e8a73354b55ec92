//! Authentication and login over a real database.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::throttle::{ThrottleDecision, ThrottleSubject};
use super::{Auth, AuthMethod, HashLimits, LoginOutcome, LoginRequest, PresentedCredentials};
use crate::runtime::error::Error;
use crate::storage::database::Db;
use model::account::accounts_file::UserEntry;
use model::account::{Scope, User, UserId};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn editor(active: bool) -> UserEntry {
    let access = json!({ "admin": true });
    let entry = json!({ "id": 7, "userName": "editor", "access": access, "active": active });
    serde_json::from_value(entry).unwrap()
}

const HOME: [u8; 4] = [192, 0, 2, 1];

const LIMITS: HashLimits = HashLimits {
    memory_kib: 8,
    iterations: 1,
    workers: 1,
    queue: 8,
    queue_per_address: 8,
    failures_per_user: 3,
    failures_per_user_total: 100,
    failures_per_address: 100,
    window: Duration::from_secs(60),
};

/// Starts [`Auth`] over a new database with the user `editor`, whose password is `secret`.
fn started() -> (Auth, tempfile::TempDir) {
    started_with(LIMITS)
}

fn started_with(limits: HashLimits) -> (Auth, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let auth = Auth::start(Db::scratch(dir.path()).unwrap(), limits).unwrap();
    let hash = auth.hasher().hash("secret").unwrap();
    auth.db().write_blocking(move |tx| tx.put_user(&editor(true), Some(&hash), at(0))).unwrap();
    (auth, dir)
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

async fn basic(auth: &Auth, password: &str, second: i64) -> Option<User> {
    let found = auth.find_basic("editor", password, [192, 0, 2, 1].into(), at(second)).await;
    let principal = found.unwrap()?;
    assert_eq!(principal.method(), AuthMethod::Basic);
    assert!(
        principal.scopes().contains(Scope::Roles) && !principal.scopes().contains(Scope::Admin)
    );
    Some(principal.user().clone())
}

#[test]
fn basic_is_the_user_without_administration_as_long_as_the_password_is_right() {
    run(async {
        let (auth, _dir) = started();
        assert_eq!(basic(&auth, "wrong", 0).await, None);
        for second in 0..20 {
            // Repeated requests hit the cache; none of them counts as a failure.
            assert_eq!(basic(&auth, "secret", second).await.unwrap().id, UserId(7));
        }
        let hash = auth.hasher().hash("another").unwrap();
        auth.write(move |tx| tx.put_user(&editor(true), Some(&hash), at(30))).await.unwrap();
        assert_eq!(basic(&auth, "secret", 31).await, None, "the old password");
        assert!(basic(&auth, "another", 32).await.is_some());
        auth.write(|tx| tx.put_user(&editor(false), None, at(33))).await.unwrap();
        assert_eq!(basic(&auth, "another", 34).await, None, "the user is not active");
    });
}

#[test]
fn basic_is_throttled_like_every_login() {
    run(async {
        let (auth, _dir) = started();
        assert!(basic(&auth, "secret", 0).await.is_some(), "it is remembered from here on");
        for second in 0..3 {
            assert_eq!(basic(&auth, "wrong", second).await, None);
        }
        let found = auth.find_basic("editor", "secret", HOME.into(), at(4)).await;
        assert!(found.is_err(), "the right password has to wait, too");
        let elsewhere = [192, 0, 2, 2].into();
        assert!(auth.find_basic("editor", "secret", elsewhere, at(4)).await.unwrap().is_some());
        assert!(basic(&auth, "secret", 60).await.is_some());
    });
}

/// Logs `editor` in from [`HOME`].
async fn log_in(auth: &Auth, password: &str, cookie: Option<&str>, second: i64) -> LoginOutcome {
    let request = LoginRequest {
        user_name: "editor",
        password,
        address: HOME.into(),
        device_cookie: cookie,
        now: at(second),
    };
    auth.log_in(&request).await.unwrap()
}

fn is_ok(login: &LoginOutcome) -> bool {
    matches!(login, LoginOutcome::Ok(_))
}

fn is_throttled(login: &LoginOutcome) -> bool {
    matches!(login, LoginOutcome::Throttled(_))
}

#[test]
fn processes_over_one_database_count_failures_together() {
    run(async {
        let (first, _dir) = started();
        let second = Auth::start(first.db().clone(), LIMITS).unwrap();
        assert_eq!(log_in(&first, "wrong", None, 0).await, LoginOutcome::Refused);
        assert_eq!(log_in(&second, "wrong", None, 1).await, LoginOutcome::Refused);
        assert_eq!(log_in(&first, "wrong", None, 2).await, LoginOutcome::Refused);
        assert_eq!(log_in(&second, "secret", None, 3).await, LoginOutcome::Throttled(58));
        let restarted = Auth::start(first.db().clone(), LIMITS).unwrap();
        assert_eq!(log_in(&restarted, "secret", None, 4).await, LoginOutcome::Throttled(57));
        assert!(is_ok(&log_in(&restarted, "secret", None, 60).await));
    });
}

#[test]
fn a_device_cookie_opens_a_locked_name_until_the_password_changes() {
    run(async {
        let (auth, _dir) = started();
        let LoginOutcome::Ok(entered) = log_in(&auth, "secret", None, 0).await else {
            panic!("the password is right")
        };
        let cookie = auth.issue_device_cookie(&entered, at(0)).await.unwrap();
        for second in 0..3 {
            assert_eq!(log_in(&auth, "wrong", None, second).await, LoginOutcome::Refused);
        }
        assert!(is_throttled(&log_in(&auth, "secret", None, 3).await));
        assert!(is_throttled(&log_in(&auth, "secret", Some("nonsense"), 3).await));
        assert!(is_ok(&log_in(&auth, "secret", Some(&cookie), 3).await));
        // A thief of the cookie has as many guesses as without it.
        for second in 4..7 {
            assert_eq!(log_in(&auth, "wrong", Some(&cookie), second).await, LoginOutcome::Refused);
        }
        assert!(is_throttled(&log_in(&auth, "secret", Some(&cookie), 7).await));
        let hash = auth.hasher().hash("another").unwrap();
        auth.write(move |tx| tx.put_user(&editor(true), Some(&hash), at(8))).await.unwrap();
        assert!(is_throttled(&log_in(&auth, "another", Some(&cookie), 8).await));
        assert!(is_ok(&log_in(&auth, "another", None, 70).await));
    });
}

#[test]
fn a_name_that_fails_from_everywhere_is_slow_and_not_locked() {
    run(async {
        let (auth, _dir) = started();
        auth.set_throttle_limits(HashLimits { failures_per_user_total: 2, ..LIMITS });
        for host in 2..4 {
            let address = [192, 0, 2, host].into();
            let refused = auth.login("editor", "wrong", address, at(0)).await.unwrap();
            assert_eq!(refused, LoginOutcome::Refused);
        }
        // Of two concurrent attempts from one network, one is refused at once and the other gets a slot.
        let (one, other) =
            tokio::join!(log_in(&auth, "secret", None, 1), log_in(&auth, "secret", None, 1));
        let logins = [one, other];
        let count =
            |is: fn(&LoginOutcome) -> bool| logins.iter().filter(|login| is(login)).count();
        assert_eq!((count(is_ok), count(is_throttled)), (1, 1), "{logins:?}");
    });
}

/// Caches the password of `editor` as presented by [`HOME`]. Returns its hash.
async fn remember(auth: &Auth) -> String {
    let found = auth.db().read(|tx| tx.find_user_by_name("editor")).await.unwrap();
    let hash = found.unwrap().1.unwrap();
    auth.inner.verified.remember("secret", &hash, HOME.into());
    hash
}

/// Tries HTTP Basic from [`HOME`]; returns whether the password is right, or the code of the refusal.
async fn guess(auth: &Auth, password: &str, second: i64) -> Result<bool, String> {
    let found = auth.find_basic("editor", password, HOME.into(), at(second)).await;
    let code = |refused: Error| refused.details()[0].error_code.to_string();
    found.map(|principal| principal.is_some()).map_err(code)
}

#[test]
fn guesses_that_find_no_room_count_where_the_right_secret_is_remembered() {
    run(async {
        let limits = HashLimits { queue: 0, failures_per_address: 5, ..LIMITS };
        let (auth, _dir) = started_with(limits);
        let hash = remember(&auth).await;
        assert_eq!(guess(&auth, "secret", 0).await, Ok(true));
        for second in 0..3 {
            assert_eq!(guess(&auth, "wrong", second).await, Err("logins".to_owned()));
        }
        assert_eq!(guess(&auth, "secret", 3).await, Err("failed_logins".to_owned()));
        // The same for the secret of a program, which is counted by its network alone.
        let verify = |secret| auth.verify_secret(secret, Some(&hash), HOME.into(), at(4));
        assert!(verify("secret").await.unwrap());
        for _ in 0..2 {
            assert!(verify("wrong").await.is_err());
        }
        assert!(verify("secret").await.is_err());
    });
}

#[test]
fn guesses_of_clients_that_hang_up_count_where_the_right_secret_is_remembered() {
    run(async {
        // Nothing is hashed, so a guess waits until its client gives up.
        let (auth, _dir) = started_with(HashLimits { workers: 0, failures_per_user: 1, ..LIMITS });
        remember(&auth).await;
        let subject = ThrottleSubject::of_user("editor", HOME.into());
        let counted = async {
            while auth.inner.throttle.decide(&subject, at(0)) == ThrottleDecision::Evaluate {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            answer = guess(&auth, "wrong", 0) => panic!("it was answered: {answer:?}"),
            () = counted => {}
        }
        assert_eq!(guess(&auth, "secret", 1).await, Err("failed_logins".to_owned()));
    });
}

#[test]
fn a_failure_is_stored_though_its_client_hung_up() {
    run(async {
        let limits = HashLimits { failures_per_user: 1, ..LIMITS };
        let (auth, _dir) = started_with(limits);
        let subject = ThrottleSubject::of_user("editor", HOME.into());
        let hung_up = async {
            while auth.inner.throttle.decide(&subject, at(0)) == ThrottleDecision::Evaluate {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = hung_up => {}
            login = log_in(&auth, "wrong", None, 0) => assert_eq!(login, LoginOutcome::Refused),
        }
        let stored = async {
            loop {
                let keys = subject.keys();
                let failures = auth.db().read(move |tx| tx.list_failed_logins(&keys)).await;
                if !failures.unwrap().is_empty() {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), stored).await.expect("a failure is stored");
    });
}

#[test]
fn guesses_for_a_paced_name_count_where_the_right_secret_is_remembered() {
    run(async {
        let (auth, _dir) = started();
        auth.set_throttle_limits(HashLimits { failures_per_user_total: 1, ..LIMITS });
        let elsewhere = [192, 0, 2, 2].into();
        let refused = auth.login("editor", "wrong", elsewhere, at(0)).await.unwrap();
        assert_eq!(refused, LoginOutcome::Refused);
        remember(&auth).await;
        assert_eq!(guess(&auth, "secret", 1).await, Ok(true), "a program waits for no turn");
        // One of them gets a slot, the others are refused at once.
        let guesses = tokio::join!(
            guess(&auth, "wrong", 1),
            guess(&auth, "wrong", 1),
            guess(&auth, "wrong", 1),
        );
        let guesses = [guesses.0, guesses.1, guesses.2];
        assert!(guesses.contains(&Ok(false)) && !guesses.contains(&Ok(true)), "{guesses:?}");
        assert_eq!(guess(&auth, "secret", 2).await, Err("failed_logins".to_owned()));
    });
}

#[test]
fn a_turn_is_taken_and_counted_though_its_client_hung_up() {
    run(async {
        let (auth, _dir) = started();
        auth.set_throttle_limits(HashLimits { failures_per_user_total: 1, ..LIMITS });
        let elsewhere = [192, 0, 2, 2].into();
        let refused = auth.login("editor", "wrong", elsewhere, at(0)).await.unwrap();
        assert_eq!(refused, LoginOutcome::Refused);
        let subject = ThrottleSubject::of_user("editor", HOME.into());
        let decide = || auth.inner.throttle.decide(&subject, at(1));
        let failed = |decision| match decision {
            ThrottleDecision::Pace(name) => name.has_failed,
            ThrottleDecision::Locked { .. } | ThrottleDecision::Evaluate => {
                panic!("it is paced: {decision:?}")
            }
        };
        assert!(!failed(decide()));
        // The attempt waits for a second, and its client for less.
        let hung_up =
            tokio::time::timeout(Duration::from_millis(500), log_in(&auth, "wrong", None, 1));
        assert!(hung_up.await.is_err());
        let counted = async {
            while !failed(decide()) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), counted).await.expect("it is counted");
    });
}

#[test]
fn missing_and_invalid_credentials_identify_no_user() {
    run(async {
        let (auth, _dir) = started();
        let long = "x".repeat(10_000);
        for credentials in [
            PresentedCredentials::Absent,
            PresentedCredentials::Unknown,
            PresentedCredentials::Bearer(""),
            PresentedCredentials::Bearer(&long),
            PresentedCredentials::ApiKey(""),
            PresentedCredentials::ApiKey(&long),
            PresentedCredentials::Session(""),
            PresentedCredentials::Session(&long),
        ] {
            assert_eq!(auth.find(credentials, at(0)).await.unwrap(), None);
        }
        let name = "x".repeat(10_000);
        assert!(
            auth.find_basic(&name, "x", [192, 0, 2, 1].into(), at(0)).await.unwrap().is_none()
        );
    });
}
