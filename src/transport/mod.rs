//! Sends files to other systems: folders, mail, FTP, SFTP, S3 and webhooks.
//!
//! The transports are stateless and have no database access: the caller opens the files, retries failures and
//! records outcomes. Every wait has a timeout, every response a size limit, and files are streamed. Sending is
//! idempotent: a retry replaces the files of earlier attempts.
//!
//! Contract deliveries-14, deliveries-15.

mod client;
mod conversation;
mod destination;
mod directory;
mod email;
mod error;
mod file;
mod ftp;
mod line;
mod mail;
pub mod mail_templates;
mod mailer;
mod network_policy;
mod purge;
pub mod push;
mod s3;
mod settings;
mod sftp;
mod sftp_folder;
mod tls;
mod webhook;

use std::path::PathBuf;

use self::destination::MethodSettings;
pub use self::{
    conversation::TransportTimeouts,
    destination::Destination,
    error::{SendError, SendFault, SendRefusal, SendStep},
    file::{Content, NameError, OutgoingFile},
    mail::{Attachment, InlineImage, Introduction, Mail, MailAddress, SentMark},
    mailer::{MailSettings, MailTransport, Mailer, SmtpServer},
    purge::{CachePurger, PurgeError, PurgeResult},
    settings::TransportSecret,
    tls::CustomAuthority,
};
use crate::runtime::limits;

/// The item and the identity of a delivery, for transports that describe them to the receiver.
#[derive(Clone, Debug)]
pub struct DeliveryParcel {
    /// The id of the delivery, the same in every attempt: 1 to 128 of `A-Z a-z 0-9 _ . -`, first a letter or a
    /// digit. Receivers recognize retries by it.
    pub id: String,
    pub item_uri: String,
    /// Unrestricted text; transports escape it.
    pub headline: String,
    pub version: String,
    /// The recipients of a mail to whom the sender must be introduced. Each of them gets a separate mail.
    pub introductions: Vec<Introduction>,
    /// The clock for signatures and dates. It is read when a request is sent, because an attempt may last hours.
    pub clock: fn() -> jiff::Timestamp,
}

/// Sends files through the transports of channels.
#[derive(Clone, Debug)]
pub struct ChannelTransports {
    /// The folder below which channels of the method `directory` write.
    pub directory_root: PathBuf,
    pub timeouts: TransportTimeouts,
    /// The mailer, which is also used for other mails.
    pub mailer: Mailer,
}

impl ChannelTransports {
    /// Sends `files` one after the other.
    ///
    /// After a failure some of the files may have arrived; a retry replaces them. [`SendError::is_temporary`]
    /// returns whether a retry may succeed.
    pub async fn send(
        &self,
        destination: &Destination,
        parcel: &DeliveryParcel,
        files: &[OutgoingFile],
    ) -> Result<(), SendError> {
        check(parcel, files).map_err(|refusal| {
            SendError::new(destination.method.as_str(), SendStep::Prepare, refusal.into(), &[])
        })?;
        let timeouts = self.timeouts;
        let policy = destination.policy;
        let id = parcel.id.as_str();
        match &destination.target {
            MethodSettings::Directory(directory) => {
                directory.send(&self.directory_root, timeouts, id, files).await
            }
            MethodSettings::Email(email) => {
                email.send(&self.mailer, timeouts, parcel, files).await
            }
            MethodSettings::Ftp(ftp) => ftp.send(timeouts, policy, id, files).await,
            MethodSettings::Sftp(sftp) => sftp.send(timeouts, policy, id, files).await,
            MethodSettings::S3(s3) => s3.send(timeouts, policy, files).await,
            MethodSettings::Webhook(webhook) => {
                webhook.send(timeouts, policy, parcel, files).await
            }
        }
    }
}

/// Checks a delivery before anything is sent, because its id becomes part of names on other systems.
fn check(parcel: &DeliveryParcel, files: &[OutgoingFile]) -> Result<(), SendRefusal> {
    file::check_id(&parcel.id)?;
    if files.len() > limits::TRANSPORT_FILES_MAX {
        return Err(SendRefusal::Files(files.len()));
    }
    Ok(())
}
