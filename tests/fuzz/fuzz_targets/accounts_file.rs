//! Any text is imported as an accounts file or refused as a whole. A second import of the same file changes nothing,
//! and no error repeats a password, a secret or a key.
#![no_main]

use std::cell::RefCell;
use std::path::PathBuf;

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use wirephoto::access::auth::Argon2Hasher;
use wirephoto::access::provisioning::Accounts;
use wirephoto::storage::database::Db;

/// The minimum length of a secret that does not occur in an error by chance.
const SECRET_BYTES_MIN: usize = 10;

thread_local! {
    /// Empty accounts.
    static EMPTY: RefCell<Option<Accounts>> = const { RefCell::new(None) };
}

fuzz_target!(|text: &str| {
    let now = Timestamp::from_second(1_800_000_000).expect("within the calendar");
    let accounts = EMPTY.take().unwrap_or_else(open);
    match accounts.import(text, now) {
        Ok(taken) => {
            let again = accounts.import(text, now).expect("it was taken before");
            for ((name, first), (_, second)) in taken.lists().iter().zip(again.lists()) {
                assert_eq!(second.unchanged, first.total(), "{name}: {second:?} after {first:?}");
                assert_eq!(second.total(), first.total(), "{name}");
            }
            if taken.lists().iter().all(|(_, counts)| counts.total() == 0) {
                EMPTY.set(Some(accounts));
            }
        }
        // A refused file leaves nothing behind, so the accounts are reused.
        Err(error) => {
            let error = error.to_string();
            for secret in secrets(text).iter().filter(|secret| error.contains(*secret)) {
                // The fuzzer learns the words of errors, which do not depend on the secret.
                let other = turned(secret);
                let Err(error) = accounts.import(&text.replace(secret, &other), now) else {
                    return;
                };
                assert!(other == *secret || !error.to_string().contains(&other), "{error}");
            }
            EMPTY.set(Some(accounts));
        }
    }
});

/// Accounts in a new database.
fn open() -> Accounts {
    let dir = folder();
    match std::fs::remove_dir_all(&dir) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => panic!("{cause}"),
        _ => std::fs::create_dir_all(&dir).expect("a folder"),
    }
    let hasher = Argon2Hasher::new(8, 1).expect("parameters");
    Accounts::new(Db::open(&dir).expect("a database"), hasher, 1)
}

fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("wirephoto-fuzz-accounts-{}", std::process::id()))
}

/// The long secrets that occur once in the text, which no error may repeat.
fn secrets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(file) = serde_json::from_str::<Value>(text) else { return found };
    let places = [("users", "password"), ("clients", "client_secret"), ("apiKeys", "key")];
    for (list, name) in places {
        for entry in file[list].as_array().into_iter().flatten() {
            let secret = entry[name].as_str().filter(|secret| secret.len() >= SECRET_BYTES_MIN);
            found.extend(secret.filter(|one| text.matches(*one).count() == 1).map(str::to_owned));
        }
    }
    found
}

/// The same length with different letters.
fn turned(secret: &str) -> String {
    let turn = |letter: char| match letter {
        'a'..='m' | 'A'..='M' => char::from_u32(u32::from(letter) + 13).expect("a letter"),
        'n'..='z' | 'N'..='Z' => char::from_u32(u32::from(letter) - 13).expect("a letter"),
        other => other,
    };
    secret.chars().map(turn).collect()
}
