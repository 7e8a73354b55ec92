//! Stores delivery channels. Their settings contain secrets and are encrypted.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{ReadTx, WriteTx, damaged, import::PutOutcome, parse, parse_json};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use model::account::{Channel, ChannelId, ChannelMethod, ChannelSettings, UserId};

/// A channel to be stored.
#[derive(Clone, Debug)]
pub struct NewChannel {
    /// The owner, who must exist, and the name of the channel.
    pub id: ChannelId,
    pub method: ChannelMethod,
    /// The formats to send of an item.
    pub formats: Vec<String>,
    /// Settings of the transfer method.
    pub settings: ChannelSettings,
    /// True if it may be used; `None` keeps the state of an existing channel, and activates a new one.
    pub active: Option<bool>,
    /// True if its owner, rather than the operator, defined the settings.
    pub by_user: bool,
}

impl NewChannel {
    fn changes_nothing(&self, existing: &Channel) -> bool {
        existing.method == self.method
            && existing.formats == self.formats
            && existing.settings == self.settings
            && existing.by_user == self.by_user
            && self.active.is_none_or(|active| active == existing.active)
    }
}

/// The columns that [`read_channel`] reads.
const CHANNEL_COLUMNS: &str = "user_name, name, method, formats, settings, channels.active, \
     made_by_user, channel_id";

/// Returns the place for which the settings of a channel are encrypted. The number remains if the owner is
/// renamed.
pub(super) fn settings_place(channel_id: i64) -> String {
    format!("channels/{channel_id}/settings")
}

fn read_channel(tx: &ReadTx<'_>, row: &dyn ResultRow) -> DbResult<Channel> {
    let owner: String = row.get("user_name")?;
    let name: String = row.get("name")?;
    let what = format!("channel {name:?} of user {owner:?}");
    let settings = tx.open_text(&settings_place(row.get("channel_id")?), row.get("settings")?)?;
    // A JSON parser's error may repeat part of the text, which contains secrets.
    let settings: Map<String, Value> =
        serde_json::from_str(&settings).map_err(|_| damaged(&what, &"its settings"))?;
    Ok(Channel {
        owner,
        name,
        method: parse(&what, row.text("method")?)?,
        formats: parse_json(&what, row.text("formats")?)?,
        settings: ChannelSettings::new(settings),
        active: row.get("active")?,
        by_user: row.get("made_by_user")?,
    })
}

impl ReadTx<'_> {
    /// Finds the channel, active or not.
    pub fn find_channel(&self, id: &ChannelId) -> DbResult<Option<Channel>> {
        let sql = format!(
            "SELECT {CHANNEL_COLUMNS} FROM channels JOIN users USING (user_id)
                 WHERE user_name = ?1 AND name = ?2"
        );
        self.tx.find(&sql, params![id.owner(), id.name()], |row| read_channel(self, row))
    }

    /// Lists all channels, or the channels of one user, in the order of owners and names.
    pub fn list_channels(&self, owner: Option<&str>) -> DbResult<Vec<Channel>> {
        let sql = format!(
            "SELECT {CHANNEL_COLUMNS} FROM channels JOIN users USING (user_id)
                 WHERE user_name = coalesce(?1, user_name) ORDER BY user_name, name"
        );
        self.tx.list(&sql, params![owner], |row| read_channel(self, row))
    }

    /// Counts the channels that a user has created.
    pub fn count_own_channels(&self, id: UserId) -> DbResult<usize> {
        let sql = "SELECT count(*) FROM channels WHERE user_id = ?1 AND made_by_user";
        self.tx.count(sql, params![id])
    }
}

impl WriteTx<'_> {
    /// Stores a channel of an existing user.
    pub fn put_channel(&self, new: &NewChannel, now: Timestamp) -> DbResult<PutOutcome> {
        let existing = self.find_channel(&new.id)?;
        // Imports are repeated (contract operation-15), so an unchanged row is not sealed again with a new
        // nonce.
        if existing.as_ref().is_some_and(|existing| new.changes_nothing(existing)) {
            return Ok(PutOutcome::Unchanged);
        }
        // The settings are encrypted for the row's number, so they are written after the row.
        // A channel that was disabled by hand stays disabled (contract operation-15).
        let sql = "INSERT INTO channels AS old (user_id, name, method, formats, settings, active,
                 created_ms, made_by_user)
             SELECT user_id, ?2, ?3, ?4, ?5, coalesce(?7, TRUE), ?6, ?8 FROM users
             WHERE user_name = ?1
             ON CONFLICT (user_id, name) DO UPDATE SET method = excluded.method,
                 formats = excluded.formats, settings = excluded.settings,
                 active = coalesce(?7, old.active), made_by_user = excluded.made_by_user
             RETURNING channel_id";
        let formats = Value::from(new.formats.clone()).to_string();
        let NewChannel { id, method, active, by_user, .. } = new;
        let values = params![id.owner(), id.name(), method, formats, "{}", now, active, by_user];
        let id: Option<i64> = self.tx.find_value(sql, values)?;
        // The `SELECT` finds no owner if a concurrent command has removed the user.
        let Some(id) = id else {
            return Err(damaged(format!("channel {}", new.id), &"its owner is gone"));
        };
        let settings = Value::from(new.settings.reveal().clone()).to_string();
        let settings = self.seal_text(&settings_place(id), settings)?;
        let sql = "UPDATE channels SET settings = ?2 WHERE channel_id = ?1";
        self.tx.run(sql, params![id, settings])?;
        Ok(if existing.is_some() { PutOutcome::Updated } else { PutOutcome::Created })
    }

    /// Sets whether a channel may be used. Returns `false` if it does not exist.
    pub fn set_channel_active(&self, id: &ChannelId, active: bool) -> DbResult<bool> {
        let sql = "UPDATE channels SET active = ?3 WHERE name = ?2
             AND user_id = (SELECT user_id FROM users WHERE user_name = ?1)";
        self.tx.changes(sql, params![id.owner(), id.name(), active])
    }

    /// Removes a channel with its settings. Returns `false` if it does not exist. Deliveries waiting for it
    /// fail.
    pub fn remove_channel(&self, id: &ChannelId) -> DbResult<bool> {
        let sql = "DELETE FROM channels WHERE name = ?2
             AND user_id = (SELECT user_id FROM users WHERE user_name = ?1)";
        self.tx.changes(sql, params![id.owner(), id.name()])
    }
}
