//! Hands files to other systems: a folder, a mail, FTP, SFTP, S3, a webhook.
//!
//! Knows no database and keeps nothing: the caller opens the files, repeats what failed for a
//! while and notes what happened. Every wait has a time-out, every answer a cap, and files pass
//! through in pieces. A repetition replaces what an earlier try left, so that sending twice is
//! sending once.
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
mod mail;
pub mod mail_templates;
mod mailer;
mod network_reach;
mod purge;
pub mod push;
mod s3;
mod settings;
mod sftp;
mod sftp_folder;
mod tls;
mod webhook;

use std::path::PathBuf;

use self::{conversation::RemoteConversation, destination::MethodSettings};
pub use self::{
    conversation::TransportTimeouts,
    destination::Destination,
    error::{SendError, SendFault, SendRefusal, SendStep},
    file::{Content, NameError, OutgoingFile},
    mail::{Attachment, InlineImage, Introduction, Mail, MailAddress, SentMark},
    mailer::{MailSettings, MailTransport, Mailer, SmtpSecurity, SmtpServer},
    purge::{CachePurger, PurgeError, PurgeResult},
    settings::TransportSecret,
    tls::CustomAuthority,
};
use crate::runtime::limits;

/// What a delivery is about.
#[derive(Clone, Debug)]
pub struct DeliveryParcel {
    /// Id of the delivery, the same for every try: 1 to 128 of `A-Z a-z 0-9 _ . -`, first a letter
    /// or a digit. Receivers recognize a repetition by it.
    pub id: String,
    /// URI of the item.
    pub item_uri: String,
    /// The item's headline; any text.
    pub headline: String,
    /// The item's version.
    pub version: String,
    /// Recipients of a mail that are to learn first who has it sent: each gets a mail of its own.
    pub introductions: Vec<Introduction>,
    /// Tells the time, for what is signed or dated when it goes out: a try may take hours.
    pub clock: fn() -> jiff::Timestamp,
}

/// Hands files to other systems.
#[derive(Clone, Debug)]
pub struct ChannelTransports {
    directory_root: Option<PathBuf>,
    timeouts: TransportTimeouts,
    mailer: Mailer,
}

impl ChannelTransports {
    /// `directory_root` is the folder that channels of the method `directory` write below; without
    /// it they fail.
    #[must_use]
    pub fn new(directory_root: Option<PathBuf>, waits: TransportTimeouts, mailer: Mailer) -> Self {
        Self { directory_root, timeouts: waits, mailer }
    }

    /// The way out for other mails.
    #[must_use]
    pub fn mailer(&self) -> &Mailer {
        &self.mailer
    }

    /// Hands `files` over, one after the other.
    ///
    /// When it fails, some of the files may have arrived; a repetition replaces them.
    /// [`SendError::is_temporary`] tells whether a repetition may help.
    pub async fn send(
        &self,
        destination: &Destination,
        parcel: &DeliveryParcel,
        files: &[OutgoingFile],
    ) -> Result<(), SendError> {
        self.check(destination, parcel, files)?;
        let (waits, reach, id) = (self.timeouts, destination.reach, parcel.id.as_str());
        match &destination.target {
            MethodSettings::Directory(directory) => {
                directory.send(self.directory_root.as_deref(), waits, id, files).await
            }
            MethodSettings::Email(email) => email.send(&self.mailer, waits, parcel, files).await,
            MethodSettings::Ftp(ftp) => ftp.send(waits, reach, id, files).await,
            MethodSettings::Sftp(sftp) => sftp.send(waits, reach, id, files).await,
            MethodSettings::S3(s3) => s3.send(waits, reach, files).await,
            MethodSettings::Webhook(webhook) => webhook.send(waits, reach, parcel, files).await,
        }
    }

    fn check(
        &self,
        destination: &Destination,
        parcel: &DeliveryParcel,
        files: &[OutgoingFile],
    ) -> Result<(), SendError> {
        let place = destination.method().as_str().to_owned();
        let stage = RemoteConversation { place, timeouts: self.timeouts, secrets: Vec::new() };
        file::check_id(&parcel.id).map_err(|refusal| stage.fail(SendStep::Prepare, refusal))?;
        if files.len() > limits::TRANSPORT_FILES_MAX {
            return Err(stage.fail(SendStep::Prepare, SendRefusal::Files(files.len())));
        }
        Ok(())
    }
}
