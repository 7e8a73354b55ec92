//! The events of the audit log: who did what to which object, and with which outcome.
//!
//! The words of the enums are stable: the table, log lines and filters use them, and a page of the
//! documentation lists them. A new kind of event is one line in [`AuditAction`].

use std::{fmt::Display, net::IpAddr};

use jiff::Timestamp;
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::runtime::clock;
use model::account::{User, UserId};

/// Characters of the detail of an event.
const AUDIT_DETAIL_CHARS_MAX: usize = 300;
/// Characters of an id or a user name in an event; those of items and channels are shorter.
const AUDIT_ID_CHARS_MAX: usize = 250;

/// The action that was performed or attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum AuditAction {
    /// A user name and password were checked.
    Login,
    /// A login was refused without a password check, after too many failures.
    LoginThrottled,
    /// A browser session was ended by logging out.
    Logout,
    /// A client requested tokens.
    TokenIssued,
    /// A code or refresh token was reused, which revokes the tokens issued for it.
    TokenReused,
    /// A client revoked a token.
    TokenRevoked,
    /// A client presented its secret and was refused.
    ClientRefused,
    /// An API key was created.
    KeyCreated,
    /// An API key was revoked.
    KeyRevoked,
    /// A delivery channel was created.
    ChannelCreated,
    /// A delivery channel was changed.
    ChannelChanged,
    /// A delivery channel was removed.
    ChannelRemoved,
    /// A user was created.
    UserCreated,
    /// A user was changed, disabled or enabled.
    UserChanged,
    /// A command or an import granted roles to a user or revoked them.
    RolesChanged,
    /// The password of a user was changed.
    PasswordChanged,
    /// An administrator created a link by which a user sets a password.
    PasswordLinkSent,
    /// An administrator withdrew such a link.
    PasswordLinkWithdrawn,
    /// A password reset mail was requested from the login page.
    PasswordForgotten,
    /// A user or an administrator ended a session.
    SessionEnded,
    /// An OAuth2 client was created.
    ClientCreated,
    /// An OAuth2 client was changed, disabled or enabled.
    ClientChanged,
    /// A device moved from one user to another.
    DeviceMoved,
    /// A user consented to a client acting on their behalf.
    ConsentGiven,
    /// A user withdrew the consent given to a client.
    ConsentWithdrawn,
    /// A purchase was recorded, or an order that awaits approval.
    OrderCreated,
    /// An order was reported as used.
    OrderReported,
    /// An order was reported as not used.
    OrderRefused,
    /// An item was stored.
    ItemStored,
    /// The document of an item was changed by an editor.
    ItemChanged,
    /// An item was withdrawn.
    ItemWithdrawn,
    /// A property of the rights override of an item was changed.
    ItemRightsChanged,
    /// A metadata template was created.
    TemplateCreated,
    /// A metadata template was changed.
    TemplateChanged,
    /// A metadata template was removed.
    TemplateRemoved,
    /// A recipient of mails accepted or stopped them.
    MailAnswered,
    /// An operator queued failed deliveries again.
    DeliveryRetried,
    /// An operator queued parked messages again.
    MessageRetried,
    /// An operator removed a message from the outbox.
    MessageRemoved,
    /// The secrets of an archive were encrypted for the first time.
    SecretsEncrypted,
    /// A command was run that changes data or makes a copy and has no action of its own.
    Command,
}

model::impl_as_str!(AuditAction);

/// The outcome of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum AuditOutcome {
    /// The action was carried out.
    Done,
    /// The action was not allowed, or the credentials were wrong.
    Refused,
    /// The action was attempted and failed.
    Failed,
}

model::impl_as_str!(AuditOutcome);

/// The kind of credentials that the actor presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum CredentialKind {
    /// A user name and a password, in a form or at the token endpoint.
    Password,
    /// The session of a browser, by its cookie.
    Session,
    /// An access token; the id is the number of its token family.
    AccessToken,
    /// An API key; the id is the number of the key.
    ApiKey,
    /// HTTP Basic authentication with a user name and password.
    Basic,
    /// The secret of an OAuth2 client; the id is the client's id.
    ClientSecret,
    /// The command line; the user name and the id are the operator's in the operating system.
    CommandLine,
    /// No credentials, or work of the service itself.
    None,
}

model::impl_as_str!(CredentialKind);

/// The kind of an event's object. Its word precedes the id: `key/7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(strum::Display, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum ObjectKind {
    /// A user, by number.
    User,
    /// An API key, by number.
    Key,
    /// A delivery channel, by its name in requests.
    Channel,
    /// An OAuth2 client, by id.
    Client,
    /// An order, by number.
    Order,
    /// An item, by media type and id.
    Item,
    /// A metadata template, by number.
    Template,
    /// The consent of a user, by client.
    Consent,
    /// A delivery, by id.
    Delivery,
    /// A message in the outbox, by id.
    Message,
    /// A backup, a file or any other path of the operator.
    Path,
}

/// The user or client that acted, and the address of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The user; `None` if unknown.
    pub user: Option<UserId>,
    /// The user's name at the time of the event.
    pub user_name: Option<String>,
    pub credential: CredentialKind,
    /// The public id of the credentials, never a secret.
    pub credential_id: Option<String>,
    /// The client address of the request.
    pub address: Option<IpAddr>,
}

impl Actor {
    /// An actor without known properties.
    pub const UNKNOWN: Self = Self {
        user: None,
        user_name: None,
        credential: CredentialKind::None,
        credential_id: None,
        address: None,
    };

    /// Sets the user and its name.
    pub(super) fn set_user(&mut self, user: &User) {
        self.user = Some(user.id);
        self.user_name = Some(shorten(&user.user_name, AUDIT_ID_CHARS_MAX));
    }
}

/// One event of the audit log. It never contains passwords, keys or tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    pub at: Timestamp,
    pub action: AuditAction,
    pub outcome: AuditOutcome,
    pub actor: Actor,
    pub object: Option<String>,
    /// Further details in a few words.
    pub detail: Option<String>,
    /// Number of occurrences; more than one if repeated attempts are recorded together.
    pub count: u32,
}

impl AuditEvent {
    /// Creates an event of this moment with the outcome [`AuditOutcome::Done`].
    pub fn new(action: AuditAction, actor: Actor) -> Self {
        Self {
            at: clock::now(),
            action,
            outcome: AuditOutcome::Done,
            actor,
            object: None,
            detail: None,
            count: 1,
        }
    }

    /// Sets the object of the event.
    #[must_use]
    pub fn with_object(self, kind: ObjectKind, id: impl Display) -> Self {
        // Callers choose the names of channels and items.
        let id = shorten(&id.to_string(), AUDIT_ID_CHARS_MAX);
        Self { object: Some(format!("{kind}/{id}")), ..self }
    }

    /// Adds details in a few words.
    #[must_use]
    pub fn with_detail(self, detail: impl Display) -> Self {
        Self { detail: Some(shorten(&detail.to_string(), AUDIT_DETAIL_CHARS_MAX)), ..self }
    }

    /// Sets the outcome of the event.
    #[must_use]
    pub fn with_outcome(self, outcome: AuditOutcome) -> Self {
        Self { outcome, ..self }
    }

    /// Sets the acting user if the request itself does not identify one.
    #[must_use]
    pub fn by_user(mut self, user: &User) -> Self {
        self.actor.set_user(user);
        self
    }

    /// Writes the event as a log line.
    pub fn log(&self) {
        tracing::info!(
            target: "audit",
            action = self.action.as_str(),
            outcome = self.outcome.as_str(),
            user = self.actor.user.map(|user| user.0),
            user_name = self.actor.user_name.as_deref(),
            credential = self.actor.credential.as_str(),
            credential_id = self.actor.credential_id.as_deref(),
            client = self.actor.address.map(tracing::field::display),
            object = self.object.as_deref(),
            detail = self.detail.as_deref(),
            count = self.count,
            "audit"
        );
    }
}

/// Truncates a text and replaces control characters: text chosen by a client must neither fill the table nor
/// break a log line. Unlike [`model::shorten`] it adds no ellipsis, because `chars_max` bounds the stored
/// text.
fn shorten(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_every_word() {
        let page = include_str!("../../../docs/operations/audit-log.md");
        let words = [AuditAction::VARIANTS, AuditOutcome::VARIANTS, CredentialKind::VARIANTS];
        for word in words.concat() {
            assert!(page.contains(&format!("`{word}`")), "{word}");
        }
        for word in ObjectKind::VARIANTS {
            assert!(page.contains(&format!("`{word}/")), "{word}");
        }
    }

    #[test]
    fn what_a_caller_chose_is_cut_and_cannot_break_a_line() {
        let long = "x".repeat(AUDIT_ID_CHARS_MAX + 50);
        let event = AuditEvent::new(AuditAction::ChannelCreated, Actor::UNKNOWN)
            .with_object(ObjectKind::Channel, &long)
            .with_detail("a\nb\u{1b}[2J");
        let object = event.object.unwrap();
        assert_eq!(object.len(), "channel/".len() + AUDIT_ID_CHARS_MAX);
        assert_eq!(event.detail.as_deref(), Some("a?b?[2J"));
    }
}
