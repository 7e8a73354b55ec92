//! Delivery channels: a user's destinations with their formats and transfer methods (contract deliveries-17).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::limits::{CHANNEL_NAME_CHARS_MAX, USER_NAME_BYTES_MAX};

/// The method by which a channel transfers files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum ChannelMethod {
    /// Sends nothing: selects the contents of an item's `.zip`, which the customer downloads. A request for a delivery
    /// through such a channel is refused.
    Download,
    /// Writes into a directory on the server.
    Directory,
    Email,
    /// Uploads to an FTP server, unencrypted.
    Ftp,
    /// Uploads to an FTP server over TLS.
    Ftps,
    /// Uploads to an SSH server.
    Sftp,
    /// Uploads to a bucket of S3 or an S3-compatible store.
    S3,
    /// Sends a signed `POST` to a URL.
    Webhook,
}

crate::impl_as_str!(ChannelMethod);

/// The settings of a delivery method: addresses, directories, passwords.
///
/// Passwords are in plain text rather than hashed, because the receiving system asks for them. `Debug` prints the names
/// of settings, never their values; there is no `Display` and no `Serialize`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ChannelSettings(Map<String, Value>);

impl ChannelSettings {
    /// Wraps the settings of a JSON object.
    pub fn new(settings: Map<String, Value>) -> Self {
        Self(settings)
    }

    /// Iterates over the names of the settings, in the order in which they were written. A `Map` has this order
    /// because of the feature `preserve_order` of `serde_json`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the settings with every secret, for code that sends or stores them.
    pub fn reveal(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl fmt::Debug for ChannelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// A delivery channel of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The user name of the owner.
    pub owner: String,
    /// The channel's name, unique among the channels of its owner.
    pub name: String,
    pub method: ChannelMethod,
    /// The formats in which each item is sent, in the canonical spelling of
    /// [`MediaFormat`](crate::media_url::MediaFormat). Text, because they are stored, listed and compared as text; a
    /// delivery parses them.
    pub formats: Vec<String>,
    pub settings: ChannelSettings,
    /// True if the channel may be used. Its owner and the operator can disable it; a delivery that is due while it is
    /// disabled fails and is not retried.
    pub active: bool,
    /// True if the owner wrote the settings, rather than the operator. Such a channel may connect only to public
    /// addresses.
    pub by_user: bool,
}

impl Channel {
    /// Returns the channel's identifier. Not checked again: [`ChannelId::new`] checked `owner` and `name` when the
    /// owner or the operator created the channel.
    pub fn id(&self) -> ChannelId {
        ChannelId { owner: self.owner.clone(), name: self.name.clone() }
    }
}

/// The identifier of a channel in requests: `user:<username>:<channel name>`.
///
/// User names may contain colons and channel names may not, so the last colon separates them (contract
/// deliveries-17).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChannelId {
    /// The user name of the owner.
    owner: String,
    /// The channel's name without its owner.
    name: String,
}

/// The error for a text that is not a channel identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelIdError {
    /// The text does not begin with `user:` or has no second colon.
    #[error("a channel is named user:<username>:<channel name>")]
    Form,
    /// The user name is empty, too long or contains control characters.
    #[error("a user name has 1 to {USER_NAME_BYTES_MAX} bytes and no control characters")]
    Owner,
    /// The channel's name is malformed.
    #[error(
        "a channel's name has 1 to {CHANNEL_NAME_CHARS_MAX} characters, no colon, no control \
         characters, and no space around it"
    )]
    Name,
}

impl ChannelId {
    /// Builds the identifier of the channel `name` of the user `owner`, which need not exist. Fails if one of the
    /// names is malformed.
    pub fn new(owner: &str, name: &str) -> Result<Self, ChannelIdError> {
        let is_valid_owner =
            (1..=USER_NAME_BYTES_MAX).contains(&owner.len()) && !owner.contains(char::is_control);
        if !is_valid_owner {
            return Err(ChannelIdError::Owner);
        }
        // The last colon of an id separates owner and name (contract deliveries-17).
        let is_valid_name = (1..=CHANNEL_NAME_CHARS_MAX).contains(&name.chars().count())
            && name.chars().all(|c| !c.is_control() && c != ':')
            && name.trim() == name;
        if !is_valid_name {
            return Err(ChannelIdError::Name);
        }
        Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
    }

    /// Returns the user name of the channel's owner.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the channel's name without its owner.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for ChannelId {
    type Err = ChannelIdError;

    fn from_str(text: &str) -> Result<Self, ChannelIdError> {
        let parts = text.strip_prefix("user:").and_then(|rest| rest.rsplit_once(':'));
        let (owner, name) = parts.ok_or(ChannelIdError::Form)?;
        Self::new(owner, name)
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user:{}:{}", self.owner, self.name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: Result<(&str, &str), ChannelIdError>) {
        let found = text.parse::<ChannelId>();
        let parts = found.as_ref().map(|id| (id.owner(), id.name())).map_err(|error| *error);
        assert_eq!(parts, expected, "{text:?}");
    }

    #[test]
    fn ok_a_channel_is_named_by_its_owner_and_its_name() {
        check("user:editor:desk", Ok(("editor", "desk")));
        check("user:a@b.example:Långa namnet 2", Ok(("a@b.example", "Långa namnet 2")));
        check("user:with:colon:desk", Ok(("with:colon", "desk")));
        check("user:user:x", Ok(("user", "x")));
        check("user:: :x", Ok((": ", "x")));
    }

    #[test]
    fn err_an_invalid_channel_id_names_the_wrong_part() {
        for text in ["", "desk", "user:", "user:editor", "USER:a:b", "organization:a:b"] {
            check(text, Err(ChannelIdError::Form));
        }
        check("user::desk", Err(ChannelIdError::Owner));
        check("user:a\n:desk", Err(ChannelIdError::Owner));
        check(&format!("user:{}:x", "a".repeat(255)), Err(ChannelIdError::Owner));
        for name in ["", " x", "x ", "a\tb", "\u{7f}", &"å".repeat(65)] {
            check(&format!("user:a:{name}"), Err(ChannelIdError::Name));
        }
        check(&format!("user:a:{}", "å".repeat(64)), Ok(("a", &"å".repeat(64))));
    }

    #[test]
    fn settings_show_their_names_and_never_a_value() {
        let Value::Object(map) = json!({ "host": "secret-host", "password": "secret" }) else {
            unreachable!("an object")
        };
        let shown = format!("{:?}", ChannelSettings::new(map));
        assert_eq!(shown, r#"{"host", "password"}"#);
    }

    proptest! {
        #[test]
        fn an_id_parses_as_it_prints(owner in "\\PC{0,12}", name in "\\PC{0,12}") {
            if let Ok(id) = ChannelId::new(&owner, &name) {
                prop_assert_eq!(id.to_string().parse(), Ok(id));
            }
        }

        #[test]
        fn any_text_is_a_channel_or_refused(text in "(user:)?[a:é\\n ]{0,12}") {
            if let Ok(id) = text.parse::<ChannelId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
