//! Mails: validated parts, composed into a MIME message.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lettre::Message;
use lettre::address::Envelope;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment as Part, Mailbox, MultiPart, SinglePart};

use crate::runtime::limits;
use crate::transport::error::{SendFault, SendRefusal};
use crate::transport::file::{check_id, is_name};

/// Bytes of one header value of a mail.
const MAIL_HEADER_BYTES_MAX: usize = 8 * 1024;

/// A mail address, with or without a display name: `Picture desk <desk@example.org>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailAddress(Mailbox);

impl MailAddress {
    /// Parses a single mail address.
    ///
    /// Returns `None` for an invalid address, for several addresses, and for control characters.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() <= MAIL_HEADER_BYTES_MAX && !text.chars().any(char::is_control);
        let mailbox = fits.then(|| Mailbox::from_str(text.trim()).ok())??;
        // A server may support only ASCII addresses; international host names have an ASCII form.
        mailbox.email.to_string().is_ascii().then_some(Self(mailbox))
    }

    /// Returns the address without the display name, such as `desk@example.org`, in its original case.
    pub fn mailbox(&self) -> String {
        self.0.email.to_string()
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text before the first mail to a recipient. It names the sender and explains how to stop the mails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    pub to: MailAddress,
    pub text: String,
    /// The same content as an HTML paragraph.
    pub html: String,
    /// Set when a mail with the introduction was sent.
    pub sent: SentMark,
}

/// A shared flag which records that a mail was sent. Clones share it, so the caller can read it even if a later
/// mail fails or the attempt times out.
#[derive(Clone, Debug, Default)]
pub struct SentMark(Arc<AtomicBool>);

impl SentMark {
    /// Records that the mail was sent.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the mail was sent.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl PartialEq for SentMark {
    fn eq(&self, other: &Self) -> bool {
        self.is_set() == other.is_set()
    }
}

impl Eq for SentMark {}

/// A file attached to a mail.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The file name, under the rules of [`OutgoingFile::new`](crate::transport::OutgoingFile::new).
    pub name: String,
    pub mime: String,
    pub bytes: Vec<u8>,
}

/// A picture in the HTML of a mail.
#[derive(Clone, Debug)]
pub struct InlineImage {
    /// The content id for the HTML (`cid:ID`): 1 to 128 letters, digits, `.`, `_` and `-`, unique within a mail.
    pub cid: String,
    pub mime: String,
    pub bytes: Vec<u8>,
}

/// A mail to be sent.
///
/// Header values must not contain control characters, since a line break would allow header injection.
/// [`Mailer::send`](crate::transport::Mailer::send) refuses a mail that has them.
#[derive(Clone, Debug)]
pub struct Mail {
    /// The id of the mail, the same in every attempt: 1 to 128 of `A-Z a-z 0-9 _ . -`, first a letter or a digit.
    /// It becomes the `Message-ID`, by which receivers recognize duplicates.
    pub id: String,
    /// The value of the header `Date`.
    pub at: jiff::Timestamp,
    /// The recipients, 1 to 50, who see each other's addresses.
    pub to: Vec<MailAddress>,
    pub subject: String,
    pub text: String,
    /// The HTML body. Text from documents must already be escaped in it.
    pub html: Option<String>,
    /// The pictures in the HTML; ignored without HTML.
    pub inline: Vec<InlineImage>,
    pub attachments: Vec<Attachment>,
    /// Additional headers, such as `List-Unsubscribe`. Standard headers such as `From` are refused.
    pub headers: Vec<(String, String)>,
}

/// A composed mail with its SMTP envelope.
pub(super) struct ComposedMail {
    pub(super) envelope: Envelope,
    pub(super) bytes: Vec<u8>,
}

impl Mail {
    /// Inserts an introduction before the mail's text and HTML.
    pub fn introduce(&mut self, introduction: &Introduction) {
        self.text = format!("{}\n\n{}", introduction.text, self.text);
        if let Some(html) = &mut self.html {
            // Inserts it after the opening body tag, or at the start of a fragment without one.
            let body =
                html.find("<body").and_then(|from| Some(from + html[from..].find('>')? + 1));
            html.insert_str(body.unwrap_or(0), &introduction.html);
        }
    }

    /// Composes the MIME message from the address `from`, with a `Message-ID` of `domain`.
    pub(super) fn compose(
        &self,
        from: &MailAddress,
        domain: &str,
    ) -> Result<ComposedMail, SendFault> {
        check_id(&self.id)?;
        if self.to.is_empty() || self.to.len() > limits::MAIL_RECIPIENTS_MAX {
            return Err(SendRefusal::Recipients(self.to.len()).into());
        }
        check_value("subject", &self.subject)?;
        let mut builder = Message::builder()
            .from(from.0.clone())
            .date(self.at.into())
            .message_id(Some(format!("<{}@{domain}>", self.id)))
            .subject(self.subject.as_str());
        for address in &self.to {
            builder = builder.to(address.0.clone());
        }
        for (name, value) in &self.headers {
            builder = builder.raw_header(header(name, value)?);
        }
        let message = match (&self.html, self.attachments.as_slice()) {
            (None, []) => builder.singlepart(SinglePart::plain(self.text.clone())),
            (Some(html), []) => builder.multipart(self.alternatives(html)?),
            (html, attachments) => {
                // Attachments are independent of the text (RFC 2046 §5.1.3).
                let mixed = MultiPart::mixed();
                let mut parts = match html {
                    Some(html) => mixed.multipart(self.alternatives(html)?),
                    None => mixed.singlepart(SinglePart::plain(self.text.clone())),
                };
                for attachment in attachments {
                    parts = parts.singlepart(part(attachment)?);
                }
                builder.multipart(parts)
            }
        };
        let message = message.map_err(|error| SendFault::Protocol(error.to_string()))?;
        Ok(ComposedMail { envelope: message.envelope().clone(), bytes: message.formatted() })
    }

    fn alternatives(&self, html: &str) -> Result<MultiPart, SendFault> {
        if self.inline.is_empty() {
            return Ok(MultiPart::alternative_plain_html(self.text.clone(), html.to_owned()));
        }
        // The pictures belong only to the HTML (RFC 2387).
        let mut related = MultiPart::related().singlepart(SinglePart::html(html.to_owned()));
        for (index, picture) in self.inline.iter().enumerate() {
            // Two pictures with one id would be ambiguous in the HTML.
            if self.inline[..index].iter().any(|other| other.cid == picture.cid) {
                return Err(SendRefusal::Header("second picture of one id".into()).into());
            }
            related = related.singlepart(inline(picture)?);
        }
        // The preferred alternative comes last (RFC 2046 §5.1.4).
        let plain = MultiPart::alternative().singlepart(SinglePart::plain(self.text.clone()));
        Ok(plain.multipart(related))
    }
}

fn inline(picture: &InlineImage) -> Result<SinglePart, SendFault> {
    if !is_content_id(&picture.cid) {
        return Err(SendRefusal::Header("picture's id".into()).into());
    }
    let mime = content_type("picture's media type", &picture.mime)?;
    Ok(Part::new_inline(picture.cid.clone()).body(picture.bytes.clone(), mime))
}

fn part(attachment: &Attachment) -> Result<SinglePart, SendFault> {
    if !is_name(&attachment.name, limits::TRANSPORT_NAME_CHARS_MAX) {
        return Err(SendRefusal::Header("attachment's name".into()).into());
    }
    let mime = content_type("attachment's media type", &attachment.mime)?;
    Ok(Part::new(attachment.name.clone()).body(attachment.bytes.clone(), mime))
}

/// Returns whether a content id consists of 1 to 128 letters, digits, `.`, `_` and `-`. Other characters could end
/// the header `Content-ID`.
pub(super) fn is_content_id(cid: &str) -> bool {
    (1..=limits::MAIL_CID_CHARS_MAX).contains(&cid.len())
        && cid.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Parses a media type, which `name` describes in errors.
fn content_type(name: &str, mime: &str) -> Result<ContentType, SendRefusal> {
    check_value(name, mime)?;
    ContentType::parse(mime).map_err(|_| SendRefusal::Header(name.to_owned()))
}

fn check_value(name: &str, value: &str) -> Result<(), SendRefusal> {
    if value.chars().any(char::is_control) {
        return Err(SendRefusal::Control(name.to_owned()));
    }
    if value.len() > MAIL_HEADER_BYTES_MAX {
        return Err(SendRefusal::Header(name.to_owned()));
    }
    Ok(())
}

/// Headers that every mail has. If a mail had two of one kind, readers and servers could interpret it differently.
const RESERVED: [&str; 9] =
    ["from", "sender", "to", "cc", "bcc", "subject", "date", "message-id", "mime-version"];

fn header(name: &str, value: &str) -> Result<HeaderValue, SendRefusal> {
    let is_token = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let lower = name.to_ascii_lowercase();
    // `Content-…` describes the encoding of the body, which this module composes.
    let is_free = !RESERVED.contains(&lower.as_str()) && !lower.starts_with("content-");
    if !is_token || !is_free {
        return Err(refused_header(name));
    }
    let parsed = HeaderName::new_from_ascii(name.to_owned()).map_err(|_| refused_header(name))?;
    check_value(name, value)?;
    Ok(HeaderValue::new(parsed, value.to_owned()))
}

fn refused_header(name: &str) -> SendRefusal {
    // The name may be hostile, and the error is logged.
    let shown = name.chars().filter(|c| c.is_ascii_graphic()).take(76).collect();
    SendRefusal::Header(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compose(mail: &Mail) -> Result<ComposedMail, SendFault> {
        let from = MailAddress::parse("Bildbyrån <bild@example.org>").unwrap();
        mail.compose(&from, "wirephoto.example.org")
    }

    fn mail() -> Mail {
        Mail {
            id: "d-1".into(),
            at: "2026-11-22T12:00:00Z".parse().unwrap(),
            to: vec![MailAddress::parse("desk@example.com").unwrap()],
            subject: "Hej".into(),
            text: "Text".into(),
            html: None,
            inline: Vec::new(),
            attachments: Vec::new(),
            headers: Vec::new(),
        }
    }

    fn check(mail: &Mail, expected: &str) {
        let refused = compose(mail).map(|composed| composed.bytes);
        assert_eq!(refused.unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_control_character_in_the_head_is_refused() {
        for bad in ["a\r\nBcc: x@y.z", "a\nb", "a\rb", "a\0b", "a\u{7f}b", "a\u{85}b"] {
            check(&Mail { subject: bad.into(), ..mail() }, "the subject has a control character");
            let headers = vec![("X-Note".into(), bad.into())];
            check(&Mail { headers, ..mail() }, "the X-Note has a control character");
            let attachment = Attachment { name: "a".into(), mime: bad.into(), bytes: Vec::new() };
            let bad_type = "the attachment's media type has a control character";
            check(&Mail { attachments: vec![attachment], ..mail() }, bad_type);
            assert_eq!(MailAddress::parse(&format!("{bad} <a@b.c>")), None);
            check(
                &Mail { id: bad.into(), ..mail() },
                "the delivery's id does not consist of 1 to 128 letters, digits, `_`, `-` and `.`",
            );
        }
    }

    #[test]
    fn a_header_that_a_mail_has_anyhow_is_refused() {
        for name in ["Bcc", "to", "Content-Type", "X Note", "X:Y", "", "X\r\nBcc"] {
            let headers = vec![(name.to_owned(), "x".into())];
            let refused = compose(&mail_with(headers)).map(|composed| composed.bytes);
            assert!(
                matches!(refused, Err(SendFault::Refused(SendRefusal::Header(_)))),
                "{name:?}"
            );
        }
        fn mail_with(headers: Vec<(String, String)>) -> Mail {
            Mail { headers, ..mail() }
        }
    }

    #[test]
    fn a_mail_has_receivers_but_not_too_many() {
        check(&Mail { to: Vec::new(), ..mail() }, "0 recipients, expected 1 to 50");
        let to = vec![MailAddress::parse("a@b.c").unwrap(); 51];
        check(&Mail { to, ..mail() }, "51 recipients, expected 1 to 50");
    }

    #[test]
    fn addresses_are_read() {
        for text in ["a@b.c", "A B <a@b.c>", "\"B, A\" <a@b.c>", "Åsa <a@b.c>"] {
            let address = MailAddress::parse(text).unwrap();
            assert_eq!(MailAddress::parse(&address.to_string()), Some(address), "{text}");
        }
        for text in ["", "a", "a@", "a@b.c, d@e.f", "<a@b.c", "å@b.c", "a@b.c\n"] {
            assert_eq!(MailAddress::parse(text), None, "{text:?}");
        }
    }

    /// Splits a part of a composed mail into its header, with folded lines joined, and its body.
    fn split(part: &str) -> (String, &str) {
        let (head, body) = part.split_once("\r\n\r\n").expect("head and body");
        (head.replace("\r\n ", " "), body)
    }

    /// Returns the parts of a multipart body, split at the boundary in its header.
    fn parts<'a>(head: &str, body: &'a str) -> Vec<&'a str> {
        let after = head.split_once("boundary=\"").expect("a boundary").1;
        let boundary = format!("--{}", after.split_once('"').expect("its end").0);
        let mut parts: Vec<&str> = body.split(&boundary).collect();
        assert_eq!(parts.pop().map(str::trim_end), Some("--"));
        parts.into_iter().skip(1).map(str::trim_start).collect()
    }

    fn picture(cid: &str) -> InlineImage {
        InlineImage { cid: cid.into(), mime: "image/jpeg".into(), bytes: b"\xff\xd8jpeg".to_vec() }
    }

    #[test]
    fn pictures_travel_beside_the_html_that_shows_them() {
        let html = "<p>Text</p><img src=\"cid:a.1\"><img src=\"cid:b_2\">".to_owned();
        let attachment =
            Attachment { name: "a.txt".into(), mime: "text/plain".into(), bytes: b"x".to_vec() };
        let inline = vec![picture("a.1"), picture("b_2")];
        let mail =
            Mail { html: Some(html.clone()), inline, attachments: vec![attachment], ..mail() };
        let composed = compose(&mail).unwrap_or_else(|_| panic!("composed"));
        let text = String::from_utf8(composed.bytes).unwrap();
        let (head, body) = split(&text);
        assert!(head.contains("Content-Type: multipart/mixed"), "{head}");
        let mixed = parts(&head, body);
        let (head, body) = split(mixed[0]);
        assert!(head.contains("multipart/alternative") && mixed[1].contains("a.txt"), "{head}");
        let both = parts(&head, body);
        assert!(both[0].contains("text/plain") && both.len() == 2);
        let (head, body) = split(both[1]);
        assert!(head.contains("multipart/related"), "{head}");
        let related = parts(&head, body);
        assert!(related[0].contains("text/html") && related[0].contains(&html), "{}", related[0]);
        for (part, cid) in related[1..].iter().zip(["a.1", "b_2"]) {
            let (head, body) = split(part);
            assert!(head.contains(&format!("Content-ID: <{cid}>")), "{head}");
            assert!(head.contains("Content-Type: image/jpeg"), "{head}");
            assert!(head.contains("Content-Disposition: inline"), "{head}");
            assert_eq!(body.trim(), "/9hqcGVn");
        }
        assert_eq!(related.len(), 3);
    }

    #[test]
    fn a_picture_with_a_bad_id_or_type_is_refused() {
        let with = |inline: Vec<InlineImage>| Mail { html: Some("x".into()), inline, ..mail() };
        for bad in ["", "a b", "a>\r\nBcc: x@y.z", "a\0", "å", "<a>", "a@b", &"x".repeat(129)] {
            check(&with(vec![picture(bad)]), "the picture's id is not a valid mail header");
        }
        check(
            &with(vec![picture("a"), picture("a")]),
            "the second picture of one id is not a valid mail header",
        );
        let odd = InlineImage { mime: "image/jpeg\r\nBcc: x@y.z".into(), ..picture("a") };
        check(&with(vec![odd]), "the picture's media type has a control character");
        let odd = InlineImage { mime: "jpeg".into(), ..picture("a") };
        check(&with(vec![odd]), "the picture's media type is not a valid mail header");
    }
}
