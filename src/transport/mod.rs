//! Hands files to other systems: a folder, a mail, FTP, SFTP, S3, a webhook.
//!
//! Knows no database and keeps nothing: the caller opens the files, repeats what failed for a
//! while and notes what happened. Every wait has a time-out, every answer a cap, and files pass
//! through in pieces. A repetition replaces what an earlier try left, so that sending twice is
//! sending once.
//!
//! Contract deliveries-14, deliveries-15.

mod client;
mod destination;
mod directory;
mod email;
mod error;
mod file;
mod ftp;
mod mail;
pub mod mail_templates;
mod mailer;
mod purge;
pub mod push;
mod reach;
mod s3;
mod settings;
mod sftp;
mod sftp_folder;
mod stage;
mod tls;
mod webhook;

use std::path::PathBuf;

pub use self::{
    destination::Destination,
    error::{Fault, Refusal, SendError, Step},
    file::{Content, File, NameError},
    mail::{Attachment, Inline, Introduction, Mail, MailAddress, SentMark},
    mailer::{MailSettings, MailTransport, Mailer, Smtp, SmtpSecurity},
    purge::{PurgeError, Purger, Told},
    settings::Secret,
    stage::Waits,
    tls::Authority,
};
use self::{destination::Target, stage::Stage};
use crate::runtime::limits;

/// What a delivery is about.
#[derive(Clone, Debug)]
pub struct Parcel {
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
pub struct Outbound {
    directory_root: Option<PathBuf>,
    waits: Waits,
    mailer: Mailer,
}

impl Outbound {
    /// `directory_root` is the folder that channels of the method `directory` write below; without
    /// it they fail.
    #[must_use]
    pub fn new(directory_root: Option<PathBuf>, waits: Waits, mailer: Mailer) -> Self {
        Self { directory_root, waits, mailer }
    }

    /// The way out for other mails.
    #[must_use]
    pub fn mailer(&self) -> &Mailer {
        &self.mailer
    }

    /// Hands `files` over, one after the other.
    ///
    /// When it fails, some of the files may have arrived; a repetition replaces them.
    /// [`SendError::temporary`] tells whether a repetition may help.
    pub async fn send(
        &self,
        destination: &Destination,
        parcel: &Parcel,
        files: &[File],
    ) -> Result<(), SendError> {
        self.check(destination, parcel, files)?;
        let (waits, reach, id) = (self.waits, destination.reach, parcel.id.as_str());
        match &destination.target {
            Target::Directory(directory) => {
                directory.send(self.directory_root.as_deref(), waits, id, files).await
            }
            Target::Email(email) => email.send(&self.mailer, waits, parcel, files).await,
            Target::Ftp(ftp) => ftp.send(waits, reach, id, files).await,
            Target::Sftp(sftp) => sftp.send(waits, reach, id, files).await,
            Target::S3(s3) => s3.send(waits, reach, files).await,
            Target::Webhook(webhook) => webhook.send(waits, reach, parcel, files).await,
        }
    }

    fn check(
        &self,
        destination: &Destination,
        parcel: &Parcel,
        files: &[File],
    ) -> Result<(), SendError> {
        let place = destination.method().as_str().to_owned();
        let stage = Stage { place, waits: self.waits, secrets: Vec::new() };
        file::check_id(&parcel.id).map_err(|refusal| stage.fail(Step::Prepare, refusal))?;
        if files.len() > limits::OUTBOUND_FILES_MAX {
            return Err(stage.fail(Step::Prepare, Refusal::Files(files.len())));
        }
        Ok(())
    }
}
