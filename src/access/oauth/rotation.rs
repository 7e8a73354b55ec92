//! Rotation of the signing keys by the operator.
//!
//! A rotation writes a new key, which signs from then on, and retires the others. Retired keys stay in the
//! key set until every token that they may have signed has expired; then the sweep of expired tokens removes
//! them.

use jiff::{SignedDuration, Timestamp};

use super::keys;
use crate::runtime::error::Result;
use crate::storage::database::{AccountChange, Db, ListedSigningKey};

/// Seconds that a retired signing key stays published after the expiry of the last token that it may have
/// signed: other nodes sign with it until they have followed the change.
const SIGNING_KEY_MARGIN_S: u32 = 3600;

/// Returns the time for which a retired key is published if access tokens last `access_token_s` seconds.
fn published_for(access_token_s: u32) -> SignedDuration {
    SignedDuration::from_secs(i64::from(access_token_s) + i64::from(SIGNING_KEY_MARGIN_S))
}

/// Returns the time before which a key must have been retired to be removed at `now`.
pub(super) fn published_since(now: Timestamp, access_token_s: u32) -> Timestamp {
    now.checked_sub(published_for(access_token_s)).unwrap_or(Timestamp::MIN)
}

/// Generates a new key, which signs from now on, and retires the others; returns its key id. Blocks.
///
/// Running nodes follow the change and sign with the new key within a second.
pub fn rotate_signing_keys(db: &Db, now: Timestamp) -> Result<String> {
    // Generated before the transaction, because generating lasts a tenth of a second.
    let generated = keys::make()?;
    let kid = generated.kid.clone();
    db.write_blocking(move |tx| {
        // Retired first, so that only the new key is left to sign.
        tx.retire_signing_keys(now)?;
        tx.write_signing_key(&generated, now)?;
        tx.log_account_change(AccountChange::SigningKeys, now)
    })?;
    Ok(kid)
}

/// Lists all keys of the key set, newest first. Blocks.
pub fn list_signing_keys(db: &Db) -> Result<Vec<ListedSigningKey>> {
    Ok(db.read_blocking(|tx| tx.list_signing_key_times())?)
}

/// Returns the time until which a retired signing key is published if access tokens last `access_token_s`
/// seconds.
pub fn published_until(retired: Timestamp, access_token_s: u32) -> Timestamp {
    retired.checked_add(published_for(access_token_s)).unwrap_or(Timestamp::MAX)
}
