//! Sends files by mail: as attachments if they fit into a mail, otherwise as links.

use crate::runtime::limits;
use crate::transport::conversation::{RemoteConversation, TransportTimeouts};
use crate::transport::error::{SendError, SendFault, SendStep};
use crate::transport::file::{OutgoingFile, OutgoingReader};
use crate::transport::line::one_line;
use crate::transport::mail::{Attachment, Mail, MailAddress};
use crate::transport::mailer::Mailer;
use crate::transport::settings::{FieldProblem, SettingsReader, invalid_setting};
use crate::transport::{DeliveryParcel, Introduction};

/// The recipients of a channel that sends mails.
#[derive(Debug)]
pub(super) struct EmailTarget {
    /// In the order of the settings.
    pub(super) to: Vec<MailAddress>,
}

impl EmailTarget {
    pub(super) fn read(fields: &mut SettingsReader<'_>) -> Result<Self, FieldProblem> {
        let texts = fields.texts("to")?;
        if texts.len() > limits::MAIL_RECIPIENTS_MAX {
            return Err(invalid_recipients());
        }
        let read =
            texts.iter().map(|text| MailAddress::parse(text).ok_or_else(invalid_recipients));
        Ok(Self { to: read.collect::<Result<_, _>>()? })
    }

    pub(super) async fn send(
        &self,
        mailer: &Mailer,
        timeouts: TransportTimeouts,
        parcel: &DeliveryParcel,
        files: &[OutgoingFile],
    ) -> Result<(), SendError> {
        let conversation =
            RemoteConversation { endpoint: "e-mail".to_owned(), timeouts, secrets: Vec::new() };
        let sizes = files.iter().map(|file| file.size_bytes);
        let total = sizes.fold(0_u64, u64::saturating_add);
        let mut attachments = Vec::new();
        if total <= mailer.settings().attachments_bytes_max {
            for file in files {
                let limit = timeouts.transfer(file.size_bytes);
                let read = conversation
                    .run_within(limit, SendStep::Prepare, read(file, timeouts))
                    .await?;
                attachments.push(read);
            }
        }
        let headline = one_line(&parcel.headline, limits::MAIL_SUBJECT_CHARS_MAX);
        let subject = if headline.is_empty() { parcel.item_uri.clone() } else { headline };
        let others = self.to.iter().filter(|to| introduction_for(to, parcel).is_none());
        let mail = Mail {
            id: parcel.id.clone(),
            at: (parcel.clock)(),
            to: others.cloned().collect(),
            subject: one_line(&subject, limits::MAIL_SUBJECT_CHARS_MAX),
            text: text(parcel, files, attachments.is_empty()),
            html: None,
            inline: Vec::new(),
            attachments,
            // Keeps vacation responders from answering (RFC 3834 §5).
            headers: vec![("Auto-Submitted".into(), "auto-generated".into())],
        };
        // Numbered by the recipient's position in the channel, so that the id is the same in every attempt.
        for (number, to) in self.to.iter().enumerate() {
            let Some(introduction) = introduction_for(to, parcel) else { continue };
            let id = format!("{}.{number}", parcel.id);
            let mut introduced = Mail { id, to: vec![to.clone()], ..mail.clone() };
            introduced.introduce(introduction);
            mailer.send(&introduced).await?;
            // Set immediately: a later mail may fail, and the retry must not introduce the sender again.
            introduction.sent.set();
        }
        // Every recipient may have received a separate mail above.
        if mail.to.is_empty() {
            return Ok(());
        }
        mailer.send(&mail).await
    }
}

fn invalid_recipients() -> FieldProblem {
    let most = limits::MAIL_RECIPIENTS_MAX;
    invalid_setting("to", format!("a mail address or a list of up to {most}"))
}

/// Finds the sender's introduction to a recipient of the parcel.
fn introduction_for<'a>(to: &MailAddress, parcel: &'a DeliveryParcel) -> Option<&'a Introduction> {
    parcel.introductions.iter().find(|introduction| introduction.to == *to)
}

async fn read(file: &OutgoingFile, timeouts: TransportTimeouts) -> Result<Attachment, SendFault> {
    let mut reader = OutgoingReader::open(file, timeouts.answer).await?;
    let mut bytes = Vec::new();
    while let Some(chunk) = reader.next().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(Attachment { name: file.name.clone(), mime: file.mime.clone(), bytes })
}

/// Builds the text of the mail: the item, and each file with its URL unless it is attached.
fn text(parcel: &DeliveryParcel, files: &[OutgoingFile], linked: bool) -> String {
    let mut text = format!("{}\n\n", one_line(&parcel.headline, usize::MAX));
    for file in files {
        text.push_str(&format!("{} ({} bytes)\n", file.name, file.size_bytes));
        if linked && let Some(url) = &file.url {
            text.push_str(&format!("{url}\n"));
        }
    }
    if linked && !files.is_empty() {
        text.push_str("\nThe files are too large for a mail.\n");
    }
    text.push_str(&format!("\n{}\n", parcel.item_uri));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{Introduction, MailSettings, MailTransport, SentMark};

    fn address(text: &str) -> MailAddress {
        MailAddress::parse(text).unwrap()
    }

    fn introduction(to: &str) -> Introduction {
        let text = "Eva has mails sent to you".to_owned();
        Introduction { to: address(to), html: String::new(), text, sent: SentMark::default() }
    }

    #[tokio::test]
    async fn who_was_introduced_is_known_where_a_later_mail_fails() {
        let dir = tempfile::tempdir().unwrap();
        // The second mail cannot be written: a folder has the name of its file.
        std::fs::create_dir(dir.path().join("d-1.2.eml")).unwrap();
        let settings = MailSettings {
            transport: MailTransport::Outbox { folder: dir.path().to_owned(), is_shared: false },
            from: address("a@b.example"),
            domain: "b.example".to_owned(),
            attachments_bytes_max: 0,
        };
        let mailer = Mailer::new(settings, TransportTimeouts::default());
        let parcel = DeliveryParcel {
            id: "d-1".to_owned(),
            item_uri: "http://w.example/image/a".to_owned(),
            headline: "Isbrytare".to_owned(),
            version: "1".to_owned(),
            introductions: vec![introduction("v1@x.example"), introduction("v2@x.example")],
            clock: || jiff::Timestamp::UNIX_EPOCH,
        };
        let to = ["v1@x.example", "known@x.example", "v2@x.example"].map(address).to_vec();
        let sent =
            EmailTarget { to }.send(&mailer, TransportTimeouts::default(), &parcel, &[]).await;
        assert!(sent.is_err_and(|error| error.is_temporary()));
        let notified = parcel.introductions.iter().map(|introduction| introduction.sent.is_set());
        assert_eq!(notified.collect::<Vec<_>>(), [true, false]);
        let first = std::fs::read_to_string(dir.path().join("d-1.0.eml")).unwrap();
        assert!(first.contains("Eva has mails sent to you"), "{first}");
    }
}
