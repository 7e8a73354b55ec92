//! Management of channels by their owners (contract deliveries-19).
//!
//! A user lists, writes and removes its own channels, and sends a test file through them. Input is validated like
//! the accounts file, with additional rules. The method `directory` writes to the service's machine, so only the
//! operator creates such channels. Channels that users create reach only public addresses, unless
//! `delivery.private_addresses` permits private ones (`transport`). Stored secrets are never returned. A token
//! writes and removes channels only with the scope `profile`, which covers changes to the user's own data.

use jiff::Timestamp;
use serde_json::Map;
use tokio::task::spawn_blocking;

use super::merge::{KnownSettings, merge, refuse_masks};
use super::{Deliveries, view};
use crate::access::auth::Principal;
use crate::access::provisioning::{
    ChannelProblem, channel_formats, channel_settings, shown_settings,
};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::json_object::{FieldFault, FieldProblem};
use crate::storage::audit::{self, AuditAction, ObjectKind};
use crate::storage::database::{NewChannel, PutOutcome};
use api::deliveries::ChannelUpdate;
use model::account::{Channel, ChannelId, ChannelMethod, Permission};

/// Channels that one user can create; the operator can add more.
const CHANNELS_PER_USER_MAX: usize = 50;

impl Deliveries {
    /// Lists the channels of `caller`, active or not, by name.
    pub async fn list_channels(
        &self,
        caller: &Principal,
    ) -> Result<Vec<api::deliveries::Channel>> {
        caller.require(Permission::ReadChannels)?;
        let owner = caller.user().user_name.clone();
        let found = self.db().read(move |tx| tx.list_channels(Some(&owner))).await?;
        run_blocking(move || Ok(found.into_iter().map(view::channel).collect())).await
    }

    /// Creates the channel `name` of `caller`, or replaces it with `draft`.
    ///
    /// Fails
    /// - with [`ErrorKind::InvalidArgument`] for an invalid draft;
    /// - with [`ErrorKind::Forbidden`] for the method `directory`, of which only `active` can be changed, and for
    ///   a token without the scope `profile`;
    /// - with [`ErrorKind::Conflict`] if the caller has created [`CHANNELS_PER_USER_MAX`] channels, the channel
    ///   changed concurrently, or a different key of the caller is being checked;
    /// - with [`ErrorKind::Overloaded`] if too many private keys are being checked.
    pub async fn put_channel(
        &self,
        caller: &Principal,
        name: &str,
        draft: ChannelUpdate,
        now: Timestamp,
    ) -> Result<api::deliveries::Channel> {
        caller.require(Permission::WriteChannels)?;
        let id = own_id(caller, name)?;
        let user = caller.user().id;
        let channel_id = id.clone();
        let before = self.db().read(move |tx| tx.find_channel(&channel_id)).await?;
        let previous = before.clone();
        let new_id = id.clone();
        // Only SFTP settings contain a private key, and unlocking it costs CPU time.
        let has_key = draft.method == ChannelMethod::Sftp;
        let opening = has_key.then(|| self.inner.openings.acquire(user)).transpose()?;
        let decided = run_blocking(move || {
            // The blocking work continues if the request is cancelled, so it holds the slot itself.
            let _opening = opening;
            decide(new_id, previous.as_ref(), draft)
        });
        let new = decided.await?;
        let event = audit::event(match before {
            None => AuditAction::ChannelCreated,
            Some(_) => AuditAction::ChannelChanged,
        });
        let writing = self.db().write(move |tx| {
            // The draft was merged with `before`, so it would overwrite a concurrent change.
            if tx.find_channel(&id)? != before {
                return Ok(Err("The channel was changed meanwhile".to_owned()));
            }
            // Counted in the transaction that inserts, or concurrent requests could exceed the limit.
            if before.is_none() && tx.count_own_channels(user)? >= CHANNELS_PER_USER_MAX {
                return Ok(Err(format!("The user has {CHANNELS_PER_USER_MAX} channels")));
            }
            // An idempotent repetition writes no event, so that it does not push older events out of the table.
            if tx.put_channel(&new, now)? != PutOutcome::Unchanged {
                let event = event.with_object(ObjectKind::Channel, &id);
                tx.write_audit(&event.with_detail(new.method.as_str()))?;
            }
            Ok(Ok(tx.find_channel(&id)?))
        });
        let written =
            writing.await?.map_err(|refusal| Error::new(ErrorKind::Conflict, refusal))?;
        let channel = written
            .ok_or_else(|| Error::internal("a channel that was just written cannot be found"))?;
        run_blocking(move || Ok(view::channel(channel))).await
    }

    /// Removes the channel `name` of `caller` with its settings. Deliveries queued for it fail.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no such channel, and with [`ErrorKind::Forbidden`] for a
    /// token without the scope `profile`.
    pub async fn remove_channel(&self, caller: &Principal, name: &str) -> Result<()> {
        caller.require(Permission::WriteChannels)?;
        let id = own_id(caller, name)?;
        let event =
            audit::event(AuditAction::ChannelRemoved).with_object(ObjectKind::Channel, &id);
        let not_found = format!("no channel {id}");
        let auth = &self.inner.services.auth;
        auth.end_and_record(event, not_found, move |tx| tx.remove_channel(&id)).await
    }

    /// Loads the channel `name` of `caller`, active or not.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no such channel.
    pub(super) async fn own_channel(&self, caller: &Principal, name: &str) -> Result<Channel> {
        let id = own_id(caller, name)?;
        let channel_id = id.clone();
        let found = self.db().read(move |tx| tx.find_channel(&channel_id)).await?;
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no channel {id}")))
    }
}

/// Runs `work` on a blocking thread, because reading certificates and unlocking a private key are slow.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    spawn_blocking(work).await.map_err(Error::internal)?
}

fn own_id(caller: &Principal, name: &str) -> Result<ChannelId> {
    // The owner is the caller and never part of the request, so a request cannot name a different user's channel.
    let id = ChannelId::new(&caller.user().user_name, name);
    id.map_err(|error| Error::invalid("path", "name", "pattern", error.to_string()))
}

/// Validates a draft and returns the channel to write.
fn decide(id: ChannelId, before: Option<&Channel>, draft: ChannelUpdate) -> Result<NewChannel> {
    let ChannelUpdate { method, formats, settings, active } = draft;
    // Settings of a different method are meaningless for this one, so a new method starts without settings.
    let before = before.filter(|before| before.method == method);
    // A directory is on the service's machine, so only the operator creates such a channel (contract
    // deliveries-19).
    if method == ChannelMethod::Directory && before.is_none() {
        return Err(operator_only());
    }
    let settings = match before {
        Some(before) => {
            let shown = shown_settings(before);
            let nothing = Map::new();
            let shown = shown.as_object().unwrap_or(&nothing);
            merge(KnownSettings { stored: before.settings.reveal(), shown }, settings)?
        }
        None => {
            // A new channel has no stored secret, so a mask in it is an error.
            refuse_masks(&settings)?;
            settings.into_iter().filter(|(_, value)| !value.is_null()).collect()
        }
    };
    let settings = channel_settings(method, settings).map_err(invalid)?;
    // No transport reads the settings of a download, so unknown ones are refused here. This applies only to a new
    // channel: the operator's channel may have some, and its owner must be able to send them back.
    if method == ChannelMethod::Download
        && let Some(name) = settings.names().next().filter(|_| before.is_none())
    {
        let unknown = FieldProblem {
            prefix: "settings.".to_owned(),
            // The client chose the name, so the error repeats only its beginning.
            name: name.chars().take(40).collect(),
            fault: FieldFault::Unknown,
        };
        return Err(invalid(ChannelProblem::Settings(unknown)));
    }
    let formats = channel_formats(&formats).map_err(invalid)?;
    let is_same =
        before.is_some_and(|before| before.settings == settings && before.formats == formats);
    // The owner may still activate and deactivate a directory channel, which changes neither settings nor formats.
    if method == ChannelMethod::Directory && !is_same {
        return Err(operator_only());
    }
    // The operator's channel may reach private networks. It remains the operator's channel only while its user
    // changes neither its destination nor its formats.
    let by_user = !is_same || before.is_some_and(|before| before.by_user);
    Ok(NewChannel { id, method, formats, settings, active, by_user })
}

fn operator_only() -> Error {
    let message = "Channels of the method directory are created and changed by the operator; \
                   their owner may set active and remove them";
    Error::forbidden("operator_channel", message)
}

/// Converts a problem to a validation error. Its text never repeats a setting's value.
fn invalid(problem: ChannelProblem) -> Error {
    let message = problem.to_string();
    let (path, rule) = match problem {
        ChannelProblem::Formats => ("formats".to_owned(), "maximum"),
        ChannelProblem::Format { index, .. } => (format!("formats.{index}"), "pattern"),
        ChannelProblem::Long => ("settings".to_owned(), "maximum"),
        ChannelProblem::Settings(problem) => {
            let rule = match problem.fault {
                FieldFault::Missing => "required",
                FieldFault::Unknown => "additionalProperties",
                FieldFault::Mismatch(_) => "pattern",
            };
            (problem.path(), rule)
        }
    };
    Error::invalid("body", path, rule, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use model::account::ChannelSettings;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn channel(method: ChannelMethod, settings: &Value) -> Channel {
        Channel {
            owner: "u".to_owned(),
            name: "desk".to_owned(),
            method,
            formats: vec![".json".to_owned()],
            settings: ChannelSettings::new(map(settings)),
            active: true,
            by_user: false,
        }
    }

    fn draft(method: ChannelMethod, formats: &[&str], settings: &Value) -> ChannelUpdate {
        let formats = formats.iter().map(|format| (*format).to_owned()).collect();
        ChannelUpdate { method, formats, settings: map(settings), active: Some(false) }
    }

    fn decided(before: Option<&Channel>, draft: ChannelUpdate) -> Result<NewChannel, String> {
        let id = ChannelId::new("u", "desk").unwrap();
        decide(id, before, draft).map_err(|error| {
            let detail = &error.details()[0];
            format!("{} {}", detail.error_code.split('.').next().unwrap(), detail.path)
        })
    }

    #[test]
    fn a_folder_of_the_machine_is_the_operators() {
        let method = ChannelMethod::Directory;
        let refused = Err("operator_channel ".to_owned());
        let known = channel(method, &json!({ "path": "a" }));
        let cases = [
            (None, draft(method, &[".json"], &json!({ "path": "a" }))),
            (Some(&known), draft(method, &[".json"], &json!({ "path": "b" }))),
            (Some(&known), draft(method, &[".json"], &json!({}))),
            (Some(&known), draft(method, &[".xml"], &json!({ "path": "a" }))),
        ];
        for (before, draft) in cases {
            assert_eq!(decided(before, draft).map(drop), refused);
        }
        let email = channel(ChannelMethod::Email, &json!({ "to": "a@b.example" }));
        let folder = draft(method, &[".json"], &json!({ "path": "a" }));
        assert_eq!(decided(Some(&email), folder).map(drop), refused);
        let same = decided(Some(&known), draft(method, &[".json"], &json!({ "path": "a" })));
        let same = same.unwrap();
        assert_eq!((same.active, same.by_user), (Some(false), false));
    }

    #[test]
    fn a_channel_is_its_users_once_the_user_says_where_it_leads_or_what_it_sends() {
        let method = ChannelMethod::Ftp;
        let settings = json!({ "host": "h", "username": "u", "password": "p" });
        let known = channel(method, &settings);
        let shown = shown_settings(&known);
        let by_user = |before: Option<&Channel>, formats: &[&str], settings: &Value| {
            decided(before, draft(method, formats, settings)).unwrap().by_user
        };
        assert!(by_user(None, &[".json"], &settings));
        assert!(!by_user(Some(&known), &[".json"], &shown));
        assert!(by_user(Some(&known), &[".xml", ".json"], &shown));
        assert!(by_user(Some(&known), &[".json"], &json!({ "host": "h", "username": "v" })));
        let own = Channel { by_user: true, ..known };
        assert!(by_user(Some(&own), &[".json"], &shown));
    }

    #[test]
    fn err_what_is_wrong_is_named_by_its_path() {
        let good = json!({ "host": "h", "username": "u", "password": "p" });
        let with = |name: &str, value: Value| {
            let mut settings = good.clone();
            settings[name] = value;
            settings
        };
        let cases = [
            (&[][..], good.clone(), "maximum formats"),
            (&[".json", "x"][..], good.clone(), "pattern formats.1"),
            (
                &[".json"][..],
                json!({ "host": "h", "username": "u" }),
                "required settings.password",
            ),
            (&[".json"][..], with("password", json!("***")), "pattern settings.password"),
            (&[".json"][..], with("hots", json!(1)), "additionalProperties settings.hots"),
            (&[".json"][..], with("host", json!("a b")), "pattern settings.host"),
            (&[".json"][..], with("path", json!("x".repeat(20_000))), "maximum settings"),
        ];
        for (formats, settings, expected) in cases {
            let found = decided(None, draft(ChannelMethod::Ftp, formats, &settings));
            assert_eq!(found.map(drop), Err(expected.to_owned()));
        }
    }
}
