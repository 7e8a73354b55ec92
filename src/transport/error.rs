//! Errors of transports: the failed step, its cause, and whether a retry may succeed.

use std::{error::Error as StdError, io, time::Duration};

use thiserror::Error;

use crate::runtime::limits;
use crate::transport::line::one_line;

/// The step of a send that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum SendStep {
    /// Checking the files and the settings.
    #[strum(to_string = "preparing")]
    Prepare,
    /// Resolving the host and opening a connection.
    #[strum(to_string = "connecting")]
    Connect,
    /// Negotiating TLS or SSH encryption.
    #[strum(to_string = "securing the connection")]
    Secure,
    /// Authenticating to the server.
    #[strum(to_string = "logging in")]
    LogIn,
    /// Opening or creating the folder.
    #[strum(to_string = "finding the folder")]
    Folder,
    /// Transferring the bytes of a file.
    #[strum(to_string = "uploading")]
    Upload,
    /// Renaming a finished file.
    #[strum(to_string = "renaming")]
    Rename,
    /// Posting a request or a mail.
    #[strum(to_string = "posting")]
    Post,
}

/// The reasons for which a delivery can never be sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendRefusal {
    /// The delivery's id is not a valid name. It becomes part of file names and of a mail's id.
    #[error("the delivery's id does not consist of 1 to 128 letters, digits, `_`, `-` and `.`")]
    Id,
    /// The delivery has more files than allowed.
    #[error("{0} files exceed the limit of a delivery")]
    Files(usize),
    /// A header value of a mail or a request contains a line break or a different control character.
    #[error("the {0} has a control character")]
    Control(String),
    /// A header value of a mail is too long, or a header name is invalid.
    #[error("the {0} is not a valid mail header")]
    Header(String),
    /// The mail has no recipients, or too many.
    #[error("{0} recipients, expected 1 to 50")]
    Recipients(usize),
    /// A part of the path is a symbolic link or a file.
    #[error("{0} is not a folder; links are not followed")]
    NoFolder(String),
    /// The settings require STARTTLS, but the mail server does not offer it.
    #[error("the server offers no STARTTLS")]
    NoStartTls,
    /// Client and server have no authentication method in common.
    #[error("the server offers no supported login method")]
    NoLogin,
    /// Client and server have no algorithm in common.
    #[error("no common algorithm: {0}")]
    NoAlgorithm(String),
    /// A user's channel points to an address of the service's machine or network.
    #[error("the address is in a private network, which only channels of the operator may use")]
    Private,
    /// The host of a user's channel has no public address. The error does not reveal whether the host has a
    /// private address, which would show the names in the service's network.
    #[error(
        "the host has no public address; only channels of the operator may use a private network"
    )]
    NotPublic,
    /// A certificate in the channel's settings cannot be used.
    #[error("the settings' certificate cannot be used: {0}")]
    Certificate(String),
}

/// The cause of a failed send.
#[derive(Debug, Error)]
pub enum SendFault {
    /// The network or the connection to the remote system failed.
    #[error("{0}")]
    Network(io::Error),
    /// No response arrived within the timeout.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The server's certificate is not trusted.
    #[error("the certificate is not trusted: {0}")]
    Certificate(String),
    /// The encrypted connection failed.
    #[error("TLS: {0}")]
    Tls(String),
    /// The SSH server presented a different key than the one in the settings.
    #[error("the host key is {presented}, expected {expected}")]
    HostKey {
        /// The fingerprint in the settings.
        expected: String,
        /// The fingerprint of the presented key.
        presented: String,
    },
    /// The server refused the user name, key or password.
    #[error("the credentials were refused{}", after_colon(.0))]
    Credentials(String),
    /// The server responded with an error.
    #[error("the answer was {code}{}", after_colon(.server_message))]
    Answer {
        /// The status code of FTP, SMTP, HTTP or SFTP.
        code: u32,
        /// The server's text, truncated; may be empty.
        server_message: String,
        /// True if the protocol defines the code as temporary.
        temporary: bool,
    },
    /// The server violated the protocol.
    #[error("unexpected answer: {0}")]
    Protocol(String),
    /// Our own file could not be read.
    #[error("{name} could not be read: {cause}")]
    Content { name: String, cause: io::Error },
    /// Our own file does not have the announced length.
    #[error("{name} has {found} bytes or more, expected {expected}")]
    Length {
        name: String,
        /// The announced length in bytes.
        expected: u64,
        /// The number of bytes read so far, which is a lower bound.
        found: u64,
    },
    /// A file operation on this machine failed.
    #[error("{0}")]
    Local(io::Error),
    /// The delivery can never be sent.
    #[error("{0}")]
    Refused(#[from] SendRefusal),
}

fn after_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

impl SendFault {
    /// Returns whether a retry may succeed.
    fn is_temporary(&self) -> bool {
        match self {
            Self::Network(_)
            | Self::TimedOut(_)
            | Self::Tls(_)
            | Self::Protocol(_)
            | Self::Content { .. }
            | Self::Length { .. }
            // Name resolution may have failed temporarily.
            | Self::Refused(SendRefusal::NotPublic) => true,
            Self::Certificate(_)
            | Self::HostKey { .. }
            | Self::Credentials(_)
            | Self::Refused(_) => false,
            Self::Answer { temporary, .. } => *temporary,
            // A full disk or a missing mount is repaired at some time; a missing permission is part of the setup.
            Self::Local(cause) => cause.kind() != io::ErrorKind::PermissionDenied,
        }
    }

    /// Removes secrets from texts that a remote system sent.
    fn redacted(mut self, secrets: &[&str]) -> Self {
        if let Self::Certificate(text)
        | Self::Tls(text)
        | Self::Credentials(text)
        | Self::Protocol(text)
        | Self::Answer { server_message: text, .. } = &mut self
        {
            *text = clean(text, secrets);
        }
        self
    }

    /// Converts a permanent error of a login step to refused credentials.
    pub(super) fn of_login(self) -> Self {
        if let Self::Answer { server_message, temporary: false, .. } = self {
            return Self::Credentials(server_message);
        }
        self
    }

    /// Classifies a TLS error text: untrusted certificates are permanent, other errors temporary.
    pub(super) fn of_tls(text: &str) -> Self {
        // The libraries for FTP and SMTP pass on only the text of a TLS error.
        let certificate = text.contains("certificate");
        if certificate { Self::Certificate(text.into()) } else { Self::Tls(text.into()) }
    }

    /// Finds an error of the operating system, of TLS or our own among the causes of a library's error.
    pub(super) fn of_chain(error: &(dyn StdError + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(cause) = next {
            if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                let text = tls.to_string();
                let is_certificate = matches!(tls, rustls::Error::InvalidCertificate(_));
                return Some(if is_certificate {
                    Self::Certificate(text)
                } else {
                    Self::Tls(text)
                });
            }
            // Our own resolver refuses addresses from inside the HTTP client.
            if let Some(refusal) = cause.downcast_ref::<SendRefusal>() {
                return Some(refusal.clone().into());
            }
            if let Some(io) = cause.downcast_ref::<io::Error>() {
                // `io::Error::source` skips the error that it wraps, so `get_ref` reads that error.
                let found = match io.get_ref() {
                    Some(inner) => Self::of_chain(inner),
                    // Rebuilt, because an error cannot be moved or cloned out of the chain.
                    None => Some(Self::Network(io::Error::new(io.kind(), io.to_string()))),
                };
                if found.is_some() {
                    return found;
                }
            }
            next = cause.source();
        }
        None
    }
}

impl From<io::Error> for SendFault {
    fn from(error: io::Error) -> Self {
        Self::of_chain(&error).unwrap_or(Self::Network(error))
    }
}

/// Reduces a text to one printable line without `secrets`, truncated.
pub(super) fn clean(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    // Replaced before the text is truncated, which could leave a part of a secret.
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        text = text.replace(secret, "***");
    }
    one_line(&text, limits::TRANSPORT_ERROR_CHARS_MAX)
}

/// A failed attempt to send.
///
/// The text has the destination (host and port, or folder), the step and the cause, never a secret: the channel's
/// secrets are removed from messages of remote systems.
#[derive(Debug, Error)]
#[error("{endpoint}, {step}: {fault}")]
pub struct SendError {
    endpoint: String,
    step: SendStep,
    pub(super) fault: Box<SendFault>,
}

impl SendError {
    pub(super) fn new(endpoint: &str, step: SendStep, fault: SendFault, secrets: &[&str]) -> Self {
        Self { endpoint: endpoint.to_owned(), step, fault: Box::new(fault.redacted(secrets)) }
    }

    /// Returns whether a retry may succeed, for example after the server was down, slow or busy. Refused
    /// credentials, an unknown key, a missing permission and a [`SendRefusal`] are permanent.
    pub fn is_temporary(&self) -> bool {
        self.fault.is_temporary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_messages_become_one_short_line_without_secrets() {
        let server_message = "530 no\r\nhunter2-hunter2 is\0wrong ".to_owned() + &"x".repeat(500);
        let fault = SendFault::Answer { code: 530, server_message, temporary: false };
        let text =
            SendError::new("h:21", SendStep::LogIn, fault, &["hunter2-hunter2", ""]).to_string();
        assert!(text.starts_with("h:21, logging in: the answer was 530: 530 no *** is wrong xxx"));
        assert!(text.ends_with("x…"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn an_error_of_tls_inside_one_of_the_system_is_found() {
        let inner = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let fault = SendFault::from(io::Error::new(io::ErrorKind::InvalidData, inner));
        assert!(matches!(fault, SendFault::Certificate(_)), "{fault:?}");
        let fault = SendFault::from(io::Error::from(io::ErrorKind::ConnectionRefused));
        assert!(matches!(fault, SendFault::Network(_)) && fault.is_temporary());
    }

    #[test]
    fn only_a_final_no_to_a_login_refuses_the_credentials() {
        let answer =
            |temporary| SendFault::Answer { code: 1, server_message: String::new(), temporary };
        assert!(matches!(answer(false).of_login(), SendFault::Credentials(_)));
        assert!(matches!(answer(true).of_login(), SendFault::Answer { .. }));
    }
}
