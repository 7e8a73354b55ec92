//! Device cookies distinguish a browser in which a user has logged in from browsers that guess passwords
//! (OWASP, "Slow down online guessing attacks with device cookies").
//!
//! A cookie proves an earlier login of one user with the user's current password; it grants no access. Its
//! attempts are counted by the cookie alone, so failures of other clients do not lock its owner out, and a
//! stolen cookie allows no more guesses than a missing cookie.

use std::{fmt, time::Duration};

use aws_lc_rs::hmac;
use aws_lc_rs::rand;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;

use super::RandomSecret;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::DEVICE_COOKIE_FOR;
use crate::storage::database::{Db, DbError, WriteTx};
use model::account::UserId;

/// Name of the stored secret that holds the key. All nodes share it, and a migration copies it.
const KEY: &str = "device-cookie-key";
/// Signed bytes of a cookie, in front of its signature: the device id, and the time of the login.
const SIGNED_BYTES: usize = 16 + 8;
/// Bytes of the HMAC-SHA-256 signature.
const SIGNATURE_BYTES: usize = 32;

/// The random identifier of a device, generated at each login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceId(pub(super) [u8; 16]);

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

/// The unverified device cookie of a request.
#[derive(Clone, Copy)]
pub(super) struct DeviceCookie {
    signed: [u8; SIGNED_BYTES],
    signature: [u8; SIGNATURE_BYTES],
}

/// The user for whom a cookie is valid, with the current hash of the user's password.
#[derive(Clone, Copy)]
pub(super) struct DeviceOwner<'a> {
    pub(super) user: UserId,
    pub(super) password_hash: &'a str,
}

impl DeviceCookie {
    /// Parses the value of a cookie; `None` if it is malformed.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(value).ok()?;
        let (signed, signature) = bytes.split_first_chunk()?;
        Some(Self { signed: *signed, signature: signature.try_into().ok()? })
    }

    /// Returns the device that the cookie names.
    pub(super) fn device(&self) -> DeviceId {
        let mut device = [0; 16];
        device.copy_from_slice(&self.signed[..16]);
        DeviceId(device)
    }

    fn issued_s(&self) -> i64 {
        let mut seconds = [0; 8];
        seconds.copy_from_slice(&self.signed[16..]);
        i64::from_be_bytes(seconds)
    }
}

/// Signs and verifies device cookies.
pub(super) struct DeviceKey(hmac::Key);

impl DeviceKey {
    /// Loads the key from the database, or generates it if the database has no key.
    pub(super) async fn load(db: &Db) -> Result<Self> {
        let text = match db.read(|tx| tx.find_secret_state(KEY)).await? {
            Some(stored) => stored,
            None => {
                let generated = RandomSecret::new()?.reveal().to_owned();
                db.write(move |tx| create_unless_stored(generated, tx)).await?
            }
        };
        let key = URL_SAFE_NO_PAD.decode(text).map_err(Error::internal)?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Returns the value of a new cookie for a browser in which `owner` logged in.
    pub(super) fn issue(&self, owner: DeviceOwner<'_>, now: Timestamp) -> Result<String> {
        let mut signed = [0; SIGNED_BYTES];
        rand::fill(&mut signed[..16]).map_err(|_| Error::internal("no random bits"))?;
        signed[16..].copy_from_slice(&now.as_second().to_be_bytes());
        let signature = hmac::sign(&self.0, &message(&signed, owner));
        let mut bytes = signed.to_vec();
        bytes.extend_from_slice(signature.as_ref());
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
        let age_s = now.as_second().checked_sub(cookie.issued_s());
        let age = age_s.and_then(|age_s| u64::try_from(age_s).ok()).map(Duration::from_secs);
        let message = message(&cookie.signed, owner);
        age.is_some_and(|age| age < DEVICE_COOKIE_FOR)
            // `verify` compares in constant time.
            && hmac::verify(&self.0, &message, &cookie.signature).is_ok()
    }
}

/// Stores a new key, and returns it. If a different node was faster, returns the key of that node.
fn create_unless_stored(generated: String, tx: &WriteTx<'_>) -> Result<String, DbError> {
    if let Some(stored) = tx.as_read().find_secret_state(KEY)? {
        return Ok(stored);
    }
    tx.write_secret_state(KEY, &generated)?;
    Ok(generated)
}

fn message(signed: &[u8; SIGNED_BYTES], owner: DeviceOwner<'_>) -> Vec<u8> {
    // Only the last part varies in length, so no two inputs have the same message.
    let mut message = b"wirephoto device\0".to_vec();
    message.extend_from_slice(signed);
    message.extend_from_slice(&owner.user.0.to_be_bytes());
    // A new password has a different hash, which invalidates the cookie (contract login-23).
    message.extend_from_slice(owner.password_hash.as_bytes());
    message
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
        assert_ne!(one.device(), other.device());
        let forged = DeviceCookie { signed: one.signed, signature: other.signature };
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
