//! Defines the events of the audit log: who did what to which object, and with which outcome.
//!
//! The words of the enums are stable: the table, log lines and filters use them. A new kind of event is one
//! line in [`AuditAction`].

use std::{fmt::Display, net::IpAddr};

use jiff::Timestamp;

use crate::runtime::clock;
use crate::runtime::limits::{AUDIT_DETAIL_CHARS_MAX, AUDIT_ID_CHARS_MAX};
use model::account::{User, UserId};

macro_rules! words {
    (
        $(#[doc = $doc:literal])*
        $Name:ident { $(#[doc = $meaning:literal] $Variant:ident = $word:literal,)* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Name {
            $(#[doc = $meaning] $Variant,)*
        }

        impl $Name {
            /// Every value with its meaning, in the order of the documentation.
            pub const ALL: &[(Self, &str)] = &[$((Self::$Variant, $meaning),)*];

            /// Returns the stable word that the table, log lines and filters use.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word,)*
                }
            }

            /// Finds the value that a word names.
            #[must_use]
            pub fn find(word: &str) -> Option<Self> {
                Self::ALL.iter().map(|(value, _)| *value).find(|value| value.as_str() == word)
            }
        }
    };
}

words! {
    /// The action that was performed or attempted.
    AuditAction {
        /// A user name and password were checked.
        Login = "login",
        /// A login was refused without a password check, after too many failures.
        LoginThrottled = "login_throttled",
        /// A browser session was ended by logging out.
        Logout = "logout",
        /// A client requested tokens.
        TokenIssued = "token_issued",
        /// A code or refresh token was reused, which revokes the tokens issued for it.
        TokenReused = "token_reused",
        /// A client revoked a token.
        TokenRevoked = "token_revoked",
        /// A client presented its secret and was refused.
        ClientRefused = "client_refused",
        /// An API key was created.
        KeyCreated = "key_created",
        /// An API key was revoked.
        KeyRevoked = "key_revoked",
        /// A delivery channel was created.
        ChannelCreated = "channel_created",
        /// A delivery channel was changed.
        ChannelChanged = "channel_changed",
        /// A delivery channel was removed.
        ChannelRemoved = "channel_removed",
        /// A user was created.
        UserCreated = "user_created",
        /// A user was changed, disabled or enabled.
        UserChanged = "user_changed",
        /// A command or an import gave a user roles or took them away.
        RolesChanged = "roles_changed",
        /// The password of a user was changed.
        PasswordChanged = "password_changed",
        /// An administrator created a link by which a user sets a password.
        PasswordLinkSent = "password_link_sent",
        /// An administrator withdrew such a link.
        PasswordLinkWithdrawn = "password_link_withdrawn",
        /// A password reset mail was requested from the login page.
        PasswordForgotten = "password_forgotten",
        /// A user or an administrator ended a session.
        SessionEnded = "session_ended",
        /// An OAuth2 client was created.
        ClientCreated = "client_created",
        /// An OAuth2 client was changed, disabled or enabled.
        ClientChanged = "client_changed",
        /// A device moved from one user to another.
        DeviceMoved = "device_moved",
        /// A user consented to a client acting on their behalf.
        ConsentGiven = "consent_given",
        /// A user withdrew the consent given to a client.
        ConsentWithdrawn = "consent_withdrawn",
        /// A purchase was recorded, or an order that awaits approval.
        OrderCreated = "order_created",
        /// An order was reported as used.
        OrderReported = "order_reported",
        /// An order was reported as not used.
        OrderRefused = "order_refused",
        /// An item was stored.
        ItemStored = "item_stored",
        /// The document of an item was changed by an editor.
        ItemChanged = "item_changed",
        /// An item was withdrawn.
        ItemWithdrawn = "item_withdrawn",
        /// A property of the rights override of an item was changed.
        ItemRightsChanged = "item_rights_changed",
        /// A metadata template was created.
        TemplateCreated = "template_created",
        /// A metadata template was changed.
        TemplateChanged = "template_changed",
        /// A metadata template was removed.
        TemplateRemoved = "template_removed",
        /// A recipient of mails accepted or stopped them.
        MailAnswered = "mail_answered",
        /// An operator queued failed deliveries again.
        DeliveryRetried = "delivery_retried",
        /// An operator queued parked messages again.
        MessageRetried = "message_retried",
        /// An operator removed a message from the outbox.
        MessageRemoved = "message_removed",
        /// The secrets of an archive were encrypted for the first time.
        SecretsEncrypted = "secrets_encrypted",
        /// Another command that changes data or makes a copy was run.
        Command = "command",
    }
}

words! {
    /// The outcome of an action.
    AuditOutcome {
        /// The action was carried out.
        Done = "done",
        /// The action was not allowed, or the credentials were wrong.
        Refused = "refused",
        /// The action was attempted and failed.
        Failed = "failed",
    }
}

words! {
    /// The kind of credentials that the actor presented.
    CredentialKind {
        /// A user name and a password, in a form or at the token endpoint.
        Password = "password",
        /// The session of a browser, by its cookie.
        Session = "session",
        /// An access token; the id is that of its token family.
        AccessToken = "access_token",
        /// An API key; the id is the number of the key.
        ApiKey = "api_key",
        /// HTTP Basic authentication with a user name and password.
        Basic = "basic",
        /// The secret of an OAuth2 client; the id is that of the client.
        ClientSecret = "client_secret",
        /// The command line; the user name and the id are those of the operating system.
        CommandLine = "command_line",
        /// No credentials, or work of the service itself.
        None = "none",
    }
}

words! {
    /// The kind of object that an event is about; its word precedes the id: `key/7`.
    ObjectKind {
        /// A user, by number.
        User = "user",
        /// An API key, by number.
        Key = "key",
        /// A delivery channel, by its name in requests.
        Channel = "channel",
        /// An OAuth2 client, by id.
        Client = "client",
        /// An order, by number.
        Order = "order",
        /// An item, by media type and id.
        Item = "item",
        /// A metadata template, by number.
        Template = "template",
        /// The consent of a user, by client.
        Consent = "consent",
        /// A delivery, by id.
        Delivery = "delivery",
        /// A message in the outbox, by id.
        Message = "message",
        /// A backup, a file or another path of the operator.
        Path = "path",
    }
}

/// The user or client that acted, and the address of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The user; `None` where unknown.
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
    /// An actor about which nothing is known.
    pub const UNKNOWN: Self = Self {
        user: None,
        user_name: None,
        credential: CredentialKind::None,
        credential_id: None,
        address: None,
    };
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
    /// Number of occurrences; more than one where repeated attempts are recorded together.
    pub count: u32,
}

impl AuditEvent {
    /// Creates an event of this moment with the outcome [`AuditOutcome::Done`].
    #[must_use]
    pub fn new(action: AuditAction, actor: Actor) -> Self {
        let (outcome, count) = (AuditOutcome::Done, 1);
        Self { at: clock::now(), action, outcome, actor, object: None, detail: None, count }
    }

    /// Sets the object that the event is about.
    #[must_use]
    pub fn with_object(self, kind: ObjectKind, id: impl Display) -> Self {
        // Callers choose the names of channels and items.
        let id = shorten(&id.to_string(), AUDIT_ID_CHARS_MAX);
        Self { object: Some(format!("{}/{id}", kind.as_str())), ..self }
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

    /// Sets the acting user where the request itself does not identify one.
    #[must_use]
    pub fn by_user(mut self, user: &User) -> Self {
        self.actor.user = Some(user.id);
        self.actor.user_name = Some(shorten(&user.user_name, AUDIT_ID_CHARS_MAX));
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
/// break a log line. Unlike [`model::shorten`] it adds no ellipsis, because `chars_max` bounds what is stored.
fn shorten(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_finds_its_value_and_no_two_are_alike() {
        for (action, _) in AuditAction::ALL {
            assert_eq!(AuditAction::find(action.as_str()), Some(*action));
        }
        for (outcome, _) in AuditOutcome::ALL {
            assert_eq!(AuditOutcome::find(outcome.as_str()), Some(*outcome));
        }
        for (kind, _) in CredentialKind::ALL {
            assert_eq!(CredentialKind::find(kind.as_str()), Some(*kind));
        }
        assert_eq!(AuditAction::find("Login"), None);
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
