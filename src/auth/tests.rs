//! Tests of callers over a real database.

use std::time::Duration;

use jiff::Timestamp;

use super::{Auth, Credentials, HashLimits, Method};
use crate::account::{Access, Phone, Scope, User, UserId};
use crate::db::{Db, NewUser};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn editor(password: Option<String>, active: bool) -> NewUser {
    NewUser {
        id: Some(UserId(7)),
        organization: None,
        user_name: "editor".to_owned(),
        password,
        first_name: None,
        last_name: None,
        email_address: None,
        department: None,
        phone: Phone::default(),
        roles: Vec::new(),
        access: Access { admin: true, mediebank: false },
        agreements: Vec::new(),
        active: Some(active),
        service_account: false,
    }
}

/// Callers over a new database with the user `editor`, whose password is `secret`.
fn started() -> (Auth, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let limits = HashLimits {
        memory_kib: 8,
        iterations: 1,
        workers: 1,
        queue: 8,
        queue_per_address: 8,
        failures_per_user: 3,
        failures_per_address: 100,
        window: Duration::from_secs(60),
    };
    let auth = Auth::start(Db::scratch(dir.path()).unwrap(), limits).unwrap();
    let hash = auth.hasher().hash("secret").unwrap();
    auth.db().write_blocking(move |tx| tx.put_user(&editor(Some(hash), true), at(0))).unwrap();
    (auth, dir)
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

async fn basic(auth: &Auth, password: &str, second: i64) -> Option<User> {
    let found = auth.find_basic(("editor", password), [192, 0, 2, 1].into(), at(second)).await;
    let principal = found.unwrap()?;
    assert_eq!(principal.method(), Method::Basic);
    assert!(principal.scopes().has(Scope::Roles) && !principal.scopes().has(Scope::Admin));
    Some(principal.user().clone())
}

#[test]
fn basic_is_the_user_without_administration_as_long_as_the_password_is_right() {
    run(async {
        let (auth, _dir) = started();
        assert_eq!(basic(&auth, "wrong", 0).await, None);
        for second in 0..20 {
            // Repeated requests are remembered; none of them counts as a failure.
            assert_eq!(basic(&auth, "secret", second).await.unwrap().id, UserId(7));
        }
        let hash = auth.hasher().hash("another").unwrap();
        auth.write(move |tx| tx.put_user(&editor(Some(hash), true), at(30))).await.unwrap();
        assert_eq!(basic(&auth, "secret", 31).await, None, "the old password");
        assert!(basic(&auth, "another", 32).await.is_some());
        auth.write(|tx| tx.put_user(&editor(None, false), at(33))).await.unwrap();
        assert_eq!(basic(&auth, "another", 34).await, None, "the user is not active");
    });
}

#[test]
fn basic_is_throttled_like_every_login() {
    run(async {
        let (auth, _dir) = started();
        for second in 0..3 {
            assert_eq!(basic(&auth, "wrong", second).await, None);
        }
        let address = [192, 0, 2, 2].into();
        let found = auth.find_basic(("editor", "secret"), address, at(4)).await;
        assert!(found.is_err(), "the right password has to wait, too");
        assert!(auth.find_basic(("editor", "secret"), address, at(60)).await.unwrap().is_some());
    });
}

#[test]
fn nothing_and_nonsense_are_nobody() {
    run(async {
        let (auth, _dir) = started();
        let long = "x".repeat(10_000);
        for credentials in [
            Credentials::Absent,
            Credentials::Unknown,
            Credentials::Bearer(""),
            Credentials::Bearer(&long),
            Credentials::ApiKey(""),
            Credentials::ApiKey(&long),
            Credentials::Session(""),
            Credentials::Session(&long),
        ] {
            assert_eq!(auth.find(credentials, at(0)).await.unwrap(), None);
        }
        let name = "x".repeat(10_000);
        assert!(
            auth.find_basic((&name, "x"), [192, 0, 2, 1].into(), at(0)).await.unwrap().is_none()
        );
    });
}
