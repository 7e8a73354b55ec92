//! Device cookies, which keep a user's own browser working while someone else guesses the user's password.
//!
//! Failed logins lock a user name out for the network that they come from ([`super::throttle`]), and slow it down
//! for all networks ([`super::pacing`]). Without an exception, an attacker could use that to keep the owner of the
//! name out. So every login in a browser leaves a cookie there (OWASP, "Slow down online guessing attacks with device
//! cookies"). Later attempts with that cookie are counted by the cookie alone, and failures of other clients do not
//! affect them.
//!
//! A cookie grants no access: its owner still needs the password. A stolen cookie allows no more guesses than a
//! missing cookie, because its own attempts are limited like those of a network. It is valid for one user, for
//! [`DEVICE_COOKIE_FOR`], and until the user's password changes.
//!
//! The value of a cookie is the base64url of 56 bytes:
//!
//! | Bytes | Content |
//! | --- | --- |
//! | 16 | random id of the device |
//! | 8 | time of the login in seconds since 1970, big-endian |
//! | 32 | HMAC-SHA-256 of both, the number of the user and the hash of the user's password |

use std::{fmt, time::Duration};

use aws_lc_rs::{hmac, rand};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;

use super::RandomSecret;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::DEVICE_COOKIE_FOR;
use crate::storage::database::Db;
use model::account::UserId;

/// Name of the stored secret with which cookies are signed. All nodes share it, and a migration copies it.
const KEY: &str = "device-cookie-key";

/// Signs and verifies device cookies.
pub(super) struct DeviceKey(hmac::Key);

/// The user for whom a cookie is valid, with the current hash of the user's password.
#[derive(Clone, Copy)]
pub(super) struct DeviceOwner<'a> {
    pub(super) user: UserId,
    pub(super) password_hash: &'a str,
}

impl DeviceKey {
    /// Loads the key from the database, or generates it if the database has no key.
    pub(super) async fn load(db: &Db) -> Result<Self> {
        let text = match db.read(|tx| tx.find_secret_state(KEY)).await? {
            Some(stored) => stored,
            None => {
                let generated = RandomSecret::new()?;
                db.write(move |tx| generated.store_once(tx, KEY)).await?
            }
        };
        let key = URL_SAFE_NO_PAD.decode(text).map_err(Error::internal)?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Returns the value of a new cookie for a browser in which `owner` logged in at `now`.
    pub(super) fn issue(&self, owner: DeviceOwner<'_>, now: Timestamp) -> Result<String> {
        let mut device = DeviceId([0; 16]);
        rand::fill(&mut device.0).map_err(|_| Error::internal("no random bits"))?;
        let issued_s = now.as_second();
        let signature = hmac::sign(&self.0, &signed_message(device, issued_s, owner));
        let bytes = [device.0.as_slice(), &issued_s.to_be_bytes(), signature.as_ref()].concat();
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Returns whether `cookie` was issued to `owner`, with the user's current password, and has not expired.
    pub(super) fn verify(
        &self,
        cookie: &DeviceCookie,
        owner: DeviceOwner<'_>,
        now: Timestamp,
    ) -> bool {
        // A cookie from the future has a negative age and is refused.
        let age_s = now.as_second().checked_sub(cookie.issued_s);
        let age = age_s.and_then(|age_s| u64::try_from(age_s).ok()).map(Duration::from_secs);
        let message = signed_message(cookie.device, cookie.issued_s, owner);
        age.is_some_and(|age| age < DEVICE_COOKIE_FOR)
            // `verify` compares in constant time.
            && hmac::verify(&self.0, &message, &cookie.signature).is_ok()
    }
}

/// Returns the message that the signature of a cookie covers. It includes facts that are not in the cookie, so a
/// cookie of a different user, or from before a change of the password, is invalid (contract login-23).
fn signed_message(device: DeviceId, issued_s: i64, owner: DeviceOwner<'_>) -> Vec<u8> {
    // Only the last part varies in length, so no two inputs have the same message.
    [
        b"wirephoto device\0".as_slice(),
        &device.0,
        &issued_s.to_be_bytes(),
        &owner.user.0.to_be_bytes(),
        owner.password_hash.as_bytes(),
    ]
    .concat()
}

/// The device cookie of a request. Its content is unverified until [`DeviceKey::verify`] accepts it.
#[derive(Clone, Copy)]
pub(super) struct DeviceCookie {
    pub(super) device: DeviceId,
    issued_s: i64,
    signature: [u8; 32],
}

impl DeviceCookie {
    /// Parses the value of a cookie; `None` if it is malformed.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(value).ok()?;
        let (device, rest) = bytes.split_first_chunk()?;
        let (issued_s, signature) = rest.split_first_chunk()?;
        Some(Self {
            device: DeviceId(*device),
            issued_s: i64::from_be_bytes(*issued_s),
            signature: signature.try_into().ok()?,
        })
    }
}

/// The random identifier of a device, generated at each login. It names the counter of the device's failed attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceId(pub(super) [u8; 16]);

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: DeviceOwner<'_> = DeviceOwner { user: UserId(7), password_hash: "$argon2id$1" };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn key(secret: &[u8]) -> DeviceKey {
        DeviceKey(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    #[test]
    fn a_cookie_is_good_for_its_owner_its_password_and_a_year() {
        let (ours, value) = (key(b"ours"), key(b"ours").issue(ADA, at(0)).unwrap());
        let cookie = DeviceCookie::parse(&value).unwrap();
        assert!(ours.verify(&cookie, ADA, at(1)));
        assert!(!ours.verify(&cookie, DeviceOwner { user: UserId(8), ..ADA }, at(1)));
        assert!(!ours.verify(&cookie, DeviceOwner { password_hash: "$argon2id$2", ..ADA }, at(1)));
        assert!(!key(b"theirs").verify(&cookie, ADA, at(1)));
        let last = i64::try_from(DEVICE_COOKIE_FOR.as_secs()).unwrap();
        assert!(ours.verify(&cookie, ADA, at(last - 1)) && !ours.verify(&cookie, ADA, at(last)));
        assert!(!ours.verify(&cookie, ADA, at(-1)), "it comes from the future");
    }

    #[test]
    fn each_login_has_another_device_and_a_changed_one_is_none() {
        let ours = key(b"ours");
        let [one, other] = [1, 2].map(|second| ours.issue(ADA, at(second)).unwrap());
        let [one, other] = [one, other].map(|value| DeviceCookie::parse(&value).unwrap());
        assert_ne!(one.device, other.device);
        let forged = DeviceCookie { signature: other.signature, ..one };
        assert!(!ours.verify(&forged, ADA, at(3)));
    }

    #[test]
    fn what_is_no_cookie_is_not_parsed() {
        let value = key(b"ours").issue(ADA, at(0)).unwrap();
        for bad in ["", "x", "å", &value[1..], &format!("{value}AA"), &value[..32]] {
            assert!(DeviceCookie::parse(bad).is_none(), "{bad}");
        }
    }
}
