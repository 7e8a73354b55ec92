//! Files by mail: attached as far as a mail can carry them, else linked.

use crate::limits;
use crate::outbound::{
    Parcel,
    error::{Fault, SendError, Step},
    file::{File, Reader},
    mail::{Attachment, Mail, MailAddress, one_line},
    mailer::Mailer,
    settings::{Fields, SettingsError},
    stage::{Stage, Waits},
};

/// Who gets the files.
#[derive(Debug)]
pub(super) struct Email {
    to: Vec<MailAddress>,
}

impl Email {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, SettingsError> {
        let texts = fields.texts("to")?;
        let expected = || {
            let most = limits::MAIL_RECIPIENTS_MAX;
            SettingsError::invalid("to", format!("a mail address or a list of up to {most}"))
        };
        if texts.len() > limits::MAIL_RECIPIENTS_MAX {
            return Err(expected());
        }
        let read = texts.iter().map(|text| MailAddress::parse(text).ok_or_else(expected));
        Ok(Self { to: read.collect::<Result<_, _>>()? })
    }

    pub(super) async fn send(
        &self,
        mailer: &Mailer,
        waits: Waits,
        parcel: &Parcel,
        files: &[File],
    ) -> Result<(), SendError> {
        let stage = Stage { place: "e-mail".to_owned(), waits, secrets: Vec::new() };
        let sizes = files.iter().map(File::size_bytes);
        let total = sizes.fold(0_u64, u64::saturating_add);
        let mut attachments = Vec::new();
        if total <= mailer.settings().attachments_bytes_max {
            for file in files {
                let limit = waits.transfer(file.size_bytes());
                let read = stage.within(limit, Step::Prepare, read(file, waits)).await?;
                attachments.push(read);
            }
        }
        let headline = one_line(&parcel.headline, limits::MAIL_SUBJECT_CHARS_MAX);
        let subject = if headline.is_empty() { parcel.item_uri.clone() } else { headline };
        let mail = Mail {
            id: parcel.id.clone(),
            at: (parcel.clock)(),
            to: self.to.clone(),
            subject: one_line(&subject, limits::MAIL_SUBJECT_CHARS_MAX),
            text: text(parcel, files, attachments.is_empty()),
            html: None,
            inline: Vec::new(),
            attachments,
            headers: vec![("Auto-Submitted".into(), "auto-generated".into())],
        };
        mailer.send(&mail).await
    }
}

async fn read(file: &File, waits: Waits) -> Result<Attachment, Fault> {
    let mut reader = Reader::open(file, waits.answer).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = reader.next().await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(Attachment { name: file.name().to_owned(), mime: file.mime().to_owned(), bytes })
}

/// What the mail says: the item, and each file with its address where the mail does not carry it.
fn text(parcel: &Parcel, files: &[File], linked: bool) -> String {
    let mut text = format!("{}\n\n", one_line(&parcel.headline, usize::MAX));
    for file in files {
        text.push_str(&format!("{} ({} bytes)\n", file.name(), file.size_bytes()));
        if let (true, Some(url)) = (linked, file.url()) {
            text.push_str(&format!("{url}\n"));
        }
    }
    if linked && !files.is_empty() {
        text.push_str("\nThe files are too large for a mail.\n");
    }
    text.push_str(&format!("\n{}\n", parcel.item_uri));
    text
}
