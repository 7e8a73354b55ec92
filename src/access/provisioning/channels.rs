//! Channels of users: their entries in an accounts file, and the commands for single channels.
//!
//! Settings contain passwords of other systems. They can be written but never read: lists show only their
//! names.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Accounts, AccountsError, require_known};
use crate::runtime::json_object::{FieldFault, FieldProblem};
use crate::runtime::limits::{
    CHANNEL_FORMATS_MAX, CHANNEL_SETTINGS_BYTES_MAX, DELIVERIES_LISTED_MAX,
};
use crate::storage::database::{DeliveriesOf, NewChannel};
use crate::transport::Destination;
use model::account::accounts_file::ChannelEntry;
use model::account::{
    Channel, ChannelId, ChannelMethod, ChannelSettings, Delivery, DeliveryState,
};
use model::media_url::{FormatError, MediaFormat};

/// A channel that the operator adds, as an entry of an accounts file.
#[derive(Serialize)]
pub struct ChannelRequest {
    /// The name of the user who owns the channel.
    pub owner: String,
    /// The name of the channel.
    pub name: String,
    /// The name of the delivery method.
    pub method: String,
    /// The formats in which items are delivered.
    pub formats: Vec<String>,
    /// Settings of the method, such as host and credentials.
    pub settings: Map<String, Value>,
}

/// Checks an entry of an accounts file.
pub(super) fn row(entry: ChannelEntry) -> Result<NewChannel, String> {
    let ChannelEntry { owner, name, method, formats, settings, active, by_user } = entry;
    let id = ChannelId::new(&owner, &name).map_err(|error| format!("name: {error}"))?;
    let formats = channel_formats(&formats).map_err(|problem| problem.to_string())?;
    let settings = channel_settings(method, settings.reveal().clone());
    let settings = settings.map_err(|problem| problem.to_string())?;
    Ok(NewChannel { id, method, formats, settings, active, by_user })
}

/// The reason why a new channel is refused. The text never repeats the value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelProblem {
    /// The channel has no formats, or too many.
    #[error("formats: a channel has 1 to {CHANNEL_FORMATS_MAX} formats")]
    Formats,
    /// A format is invalid.
    #[error("formats[{index}]: {error}")]
    Format {
        /// Position of the format in the list.
        index: usize,
        /// The reason why the format is invalid.
        error: FormatError,
    },
    /// The settings are too long.
    #[error("settings: have more than {CHANNEL_SETTINGS_BYTES_MAX} bytes")]
    Long,
    /// The method cannot use the settings.
    #[error(transparent)]
    Settings(#[from] FieldProblem),
}

/// Parses the formats of a channel; returns them in their canonical form, without duplicates.
pub fn channel_formats(listed: &[String]) -> Result<Vec<String>, ChannelProblem> {
    if !(1..=CHANNEL_FORMATS_MAX).contains(&listed.len()) {
        return Err(ChannelProblem::Formats);
    }
    let mut formats = Vec::with_capacity(listed.len());
    for (index, text) in listed.iter().enumerate() {
        let format = MediaFormat::parse(text)
            .map_err(|error| ChannelProblem::Format { index, error })?
            .to_string();
        // Compared in canonical form, because a format can be written in several ways.
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    Ok(formats)
}

/// Validates the settings of a channel for its method.
///
/// Costs as much as [`Destination::parse`].
pub fn channel_settings(
    method: ChannelMethod,
    settings: Map<String, Value>,
) -> Result<ChannelSettings, ChannelProblem> {
    if Value::from(settings.clone()).to_string().len() > CHANNEL_SETTINGS_BYTES_MAX {
        return Err(ChannelProblem::Long);
    }
    let settings = ChannelSettings::new(settings);
    Destination::parse(method, settings.reveal())?;
    Ok(settings)
}

/// Converts settings that were given as text into the booleans and numbers that the method expects.
///
/// `texts` names the settings that may be converted. A text stays unchanged if the method expects a text, so
/// a password of digits does not become a number. A text that is neither a boolean nor a number stays
/// unchanged, too, and [`channel_settings`] refuses it. Each conversion costs as much as
/// [`Destination::parse`].
pub fn typed_settings(
    method: ChannelMethod,
    mut settings: Map<String, Value>,
    texts: &[String],
) -> Map<String, Value> {
    // Each pass converts one text, so the loop ends.
    loop {
        let parsed = Destination::parse(method, &settings);
        let Err(FieldProblem { name, fault: FieldFault::Mismatch(_), .. }) = parsed else {
            return settings;
        };
        let text = settings.get(&name).and_then(Value::as_str);
        let text = text.filter(|_| texts.contains(&name));
        match text.and_then(|text| serde_json::from_str(text).ok()) {
            Some(typed @ (Value::Bool(_) | Value::Number(_))) => {
                settings.insert(name, typed);
            }
            Some(Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_)) | None => {
                return settings;
            }
        }
    }
}

/// Returns the settings of a channel for a list, with `***` for every secret, and for every setting if this
/// version cannot read them. Private keys are not opened: every page of an item lists channels, and opening a
/// key is slow.
pub fn shown_settings(channel: &Channel) -> Value {
    match Destination::redact(channel.method, channel.settings.reveal()) {
        Ok(Some(shown)) => shown,
        Ok(None) | Err(_) => channel.settings.names().map(|name| (name, "***")).collect(),
    }
}

fn require_found(id: &ChannelId, found: bool) -> Result<(), AccountsError> {
    require_known(found, || format!("channel {:?}", id.to_string()))
}

/// Parses the id of the channel `name` of the user `owner`, as entered by the operator.
fn id(owner: &str, name: &str) -> Result<ChannelId, AccountsError> {
    ChannelId::new(owner, name).map_err(|error| AccountsError::Entry {
        entry: format!("channel {name:?} of user {owner:?}"),
        why: error.to_string(),
    })
}

impl Accounts {
    /// Adds a channel to a user.
    ///
    /// Fails if there is no such user, if it has a channel of that name, or if a property is invalid.
    pub fn add_channel(
        &self,
        request: &ChannelRequest,
        now: Timestamp,
    ) -> Result<ChannelId, AccountsError> {
        let id = id(&request.owner, &request.name)?;
        let what = format!("channel {:?}", id.to_string());
        self.add(&what, "channels", &json!(request), now)?;
        Ok(id)
    }

    /// Lists the channels of all users or of one user, by owner and name.
    pub fn list_channels(&self, owner: Option<String>) -> Result<Vec<Channel>, AccountsError> {
        self.list_of_user(owner, |tx, owner| tx.list_channels(owner))
    }

    /// Activates or deactivates a channel.
    pub fn set_channel_active(
        &self,
        owner: &str,
        name: &str,
        active: bool,
    ) -> Result<ChannelId, AccountsError> {
        let id = id(owner, name)?;
        let channel_id = id.clone();
        let is_known =
            self.db.write_blocking(move |tx| tx.set_channel_active(&channel_id, active))?;
        require_found(&id, is_known).map(|()| id)
    }

    /// Removes a channel with its settings; its waiting deliveries fail.
    pub fn remove_channel(&self, owner: &str, name: &str) -> Result<ChannelId, AccountsError> {
        let id = id(owner, name)?;
        let channel_id = id.clone();
        let is_known = self.db.write_blocking(move |tx| tx.remove_channel(&channel_id))?;
        require_found(&id, is_known).map(|()| id)
    }

    /// Lists the newest deliveries of all users, in one state or in all states.
    pub fn list_deliveries(
        &self,
        state: Option<DeliveryState>,
    ) -> Result<Vec<Delivery>, AccountsError> {
        let deliveries = self.db.read_blocking(move |tx| {
            tx.list_deliveries(DeliveriesOf::Everybody, state, 0, DELIVERIES_LISTED_MAX)
        })?;
        Ok(deliveries)
    }

    /// Queues a failed delivery again, as if it were new.
    pub fn retry_delivery(&self, id: uuid::Uuid, now: Timestamp) -> Result<(), AccountsError> {
        if self.db.write_blocking(move |tx| tx.requeue_delivery(id, DeliveryState::Failed, now))? {
            return Ok(());
        }
        // Only for the message: the delivery may have changed in between.
        match self.db.read_blocking(move |tx| tx.find_delivery(id))? {
            None => Err(AccountsError::Unknown(format!("delivery {id}"))),
            Some(delivery) => Err(AccountsError::Entry {
                entry: format!("delivery {id}"),
                why: format!(
                    "is {}; only a failed delivery can be retried",
                    delivery.state.as_str()
                ),
            }),
        }
    }
}
