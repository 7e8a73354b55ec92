//! Merges new settings of a channel, a user's destination for items, into the stored ones, and preserves secrets that
//! its owner cannot read.

use serde_json::{Map, Value};

use crate::runtime::error::{Error, Result};

/// The mask that replaces a secret when settings are shown.
const HIDDEN: &str = "***";

/// Settings that determine the server to which a channel sends, and how that server proves its identity.
const DESTINATION_SETTINGS: [&str; 11] = [
    "host",
    "port",
    "hostKey",
    "url",
    "endpoint",
    "region",
    "bucket",
    "pathStyle",
    "allowHttp",
    "implicit",
    "ca",
];

/// Hidden settings that may be retained while the destination changes: certificates are public, and a URL is only sent
/// to its own server.
const HARMLESS: [&str; 2] = ["ca", "url"];

/// The settings of a channel as stored, and as shown without secrets.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownSettings<'a> {
    pub(super) stored: &'a Map<String, Value>,
    pub(super) shown: &'a Map<String, Value>,
}

impl KnownSettings<'_> {
    /// Returns whether the stored value of a setting is masked or shortened when it is shown.
    fn is_hidden(&self, name: &str) -> bool {
        self.stored.contains_key(name) && self.shown.get(name) != self.stored.get(name)
    }

    /// Returns whether `given` has a value for a setting that differs from the shown value.
    fn is_new(&self, given: &Map<String, Value>, name: &str) -> bool {
        given
            .get(name)
            .is_some_and(|value| !value.is_null() && self.shown.get(name) != Some(value))
    }

    /// Returns whether a secret in `given` replaces the secret `name`.
    fn is_replaced(&self, given: &Map<String, Value>, name: &str) -> bool {
        match name {
            "password" => self.is_new(given, "privateKey"),
            "privateKey" => self.is_new(given, "password"),
            // A passphrase belongs to the private key and is removed with it.
            "passphrase" => self.is_new(given, "password") || self.is_new(given, "privateKey"),
            _ => false,
        }
    }
}

/// Merges `given` into `known`, the present settings of the same method.
///
/// A setting that equals its shown value keeps its stored value, and so does a hidden setting that is missing in
/// `given`. A shown setting is removed if it is missing, and any setting by `null`. For SFTP, a new password
/// replaces the private key, and a new private key replaces the password.
///
/// Fails if a secret would be kept while the destination changes: an attacker with a stolen login must not be able
/// to have stored passwords sent to a different server.
pub(super) fn merge(
    known: KnownSettings<'_>,
    given: Map<String, Value>,
) -> Result<Map<String, Value>> {
    let mut preserved: Vec<(String, Value)> = Vec::new();
    for (name, value) in known.stored {
        let as_shown = given.get(name).is_some_and(|given| known.shown.get(name) == Some(given));
        let left_out = !given.contains_key(name) && !known.is_replaced(&given, name);
        // A client cannot send back a secret that it never saw, so a missing secret is preserved.
        if as_shown || (left_out && known.is_hidden(name)) {
            preserved.push((name.clone(), value.clone()));
        }
    }
    let secrets = preserved.iter().map(|(name, _)| name.as_str());
    let mut secrets = secrets.filter(|name| known.is_hidden(name) && !HARMLESS.contains(name));
    let retained_secret = secrets.next().map(str::to_owned);
    let mut merged = given;
    // A value that is given as shown is preserved if it is stored. Some are not: a missing port is shown as 21.
    merged.retain(|name, value| !value.is_null() && known.shown.get(name) != Some(value));
    merged.extend(preserved);
    // A remaining mask matches no stored secret and would be sent to the receiver as a password.
    refuse_masks(&merged)?;
    let is_moved =
        DESTINATION_SETTINGS.iter().any(|name| merged.get(*name) != known.stored.get(*name));
    match retained_secret {
        Some(name) if is_moved => {
            let message = format!(
                "settings.{name} is missing: it is retained only while the channel has the same \
                 destination"
            );
            Err(Error::invalid("body", format!("settings.{name}"), "required", message))
        }
        Some(_) | None => Ok(merged),
    }
}

/// Fails if the value of a setting is the mask, or a URL with the mask as its path.
pub(super) fn refuse_masks(settings: &Map<String, Value>) -> Result<()> {
    for (name, value) in settings {
        let text = value.as_str().unwrap_or_default();
        // The URL of a webhook is shown with the mask as its path, which many services use as a credential.
        let is_mask = text == HIDDEN || (name == "url" && text.ends_with("/***"));
        if is_mask {
            // The client chose the name, so the error repeats only its beginning.
            let name: String = name.chars().take(40).collect();
            let message = format!("settings.{name} refers to a secret that does not exist");
            return Err(Error::invalid("body", format!("settings.{name}"), "pattern", message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn ftp() -> (Value, Value) {
        let stored = json!({ "host": "h", "username": "u", "password": "p", "path": "/in" });
        let shown =
            json!({ "host": "h", "port": 21, "username": "u", "password": "***", "path": "/in" });
        (stored, shown)
    }

    fn check((stored, shown): (Value, Value), given: &Value, expected: Result<Value, &str>) {
        let (stored, shown) = (map(&stored), map(&shown));
        let merged = merge(KnownSettings { stored: &stored, shown: &shown }, map(given));
        let merged = merged.map(Value::from).map_err(|error| error.details()[0].path.clone());
        assert_eq!(merged, expected.map_err(str::to_owned), "{given}");
    }

    #[test]
    fn what_is_left_out_or_given_as_shown_stays() {
        let (stored, shown) = ftp();
        check(ftp(), &shown, Ok(stored.clone()));
        let given = json!({ "host": "h", "username": "u", "path": "/in" });
        check(ftp(), &given, Ok(stored));
        let given = json!({ "host": "h", "username": "v", "path": null });
        check(ftp(), &given, Ok(json!({ "host": "h", "username": "v", "password": "p" })));
        let given = json!({ "host": "h", "username": "u", "password": "new" });
        check(ftp(), &given, Ok(given.clone()));
        let given = json!({ "host": "h", "username": "u", "password": null });
        check(ftp(), &given, Ok(json!({ "host": "h", "username": "u" })));
    }

    #[test]
    fn a_secret_does_not_move_to_another_place() {
        for moved in [
            json!({ "host": "evil.example", "username": "u" }),
            json!({ "host": "evil.example", "username": "u", "password": "***" }),
            json!({ "host": "h", "port": 2121, "username": "u" }),
            json!({ "username": "u" }),
        ] {
            check(ftp(), &moved, Err("settings.password"));
        }
        let given = json!({ "host": "other", "username": "u", "password": "p2" });
        check(ftp(), &given, Ok(given.clone()));
        let given = json!({ "host": "other", "username": "u", "password": null });
        check(ftp(), &given, Ok(json!({ "host": "other", "username": "u" })));
    }

    #[test]
    fn an_address_with_a_secret_path_stays_as_it_is_shown() {
        let stored = json!({ "url": "https://h/T0/B1", "secret": "s", "mode": "files" });
        let shown = json!({ "url": "https://h:443/***", "secret": "***", "mode": "files" });
        let hook = || (stored.clone(), shown.clone());
        let stays = json!({ "url": "https://h/T0/B1", "secret": "s" });
        check(hook(), &json!({ "url": "https://h:443/***", "mode": null }), Ok(stays.clone()));
        check(hook(), &json!({}), Ok(stays));
        check(hook(), &json!({ "url": "https://e/" }), Err("settings.secret"));
        check(hook(), &json!({ "url": "https://e:443/***", "secret": "t" }), Err("settings.url"));
    }

    #[test]
    fn a_new_key_takes_the_place_of_the_password() {
        let settings = |secret: &str, value: &str| json!({ "host": "h", secret: value });
        let known = || (settings("password", "p"), settings("password", "***"));
        let given = settings("privateKey", "k");
        check(known(), &given, Ok(given.clone()));
        let mut known = (settings("privateKey", "k"), settings("privateKey", "***"));
        known.0["passphrase"] = json!("pp");
        known.1["passphrase"] = json!("***");
        let given = settings("password", "p");
        check(known, &given, Ok(given.clone()));
    }

    #[test]
    fn err_a_mark_where_there_is_no_secret() {
        let (stored, shown) = (json!({ "host": "h" }), json!({ "host": "h" }));
        check(
            (stored, shown),
            &json!({ "host": "h", "password": "***" }),
            Err("settings.password"),
        );
        assert!(refuse_masks(&map(&json!({ "secret": "***" }))).is_err());
        assert!(refuse_masks(&map(&json!({ "host": "***.example" }))).is_ok());
    }

    proptest! {
        #[test]
        fn a_stored_secret_never_goes_to_a_new_host(
            host in "[a-c]", user in "[a-b]", password in prop::option::of("[*a-b]{1,3}"),
        ) {
            let (stored, shown) = ftp();
            let mut given = json!({ "host": host, "username": user });
            if let Some(password) = password {
                given["password"] = json!(password);
            }
            let (stored, shown) = (map(&stored), map(&shown));
            let merged = merge(KnownSettings { stored: &stored, shown: &shown }, map(&given));
            if let Ok(merged) = merged {
                prop_assert!(merged.get("password") != Some(&json!("p")));
            }
        }
    }
}
