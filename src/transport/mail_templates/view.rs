//! The template context of a mail, in which every text is one truncated line and every URL is checked.

use minijinja::{Value, context};

use super::{MailEntry, MailOccasion, MailThumbnail, NotificationMail, line};
use crate::runtime::error::{Error, Result};
use crate::runtime::limits;
use crate::transport::mail::is_content_id;

/// Characters of a headline in a mail.
const MAIL_HEADLINE_CHARS_MAX: usize = 200;
/// Characters of the description in the mail of one item: enough for a long caption.
const MAIL_DESCRIPTION_CHARS_MAX: usize = 2000;
/// Characters of a description in a digest, about three lines.
const MAIL_DIGEST_DESCRIPTION_CHARS_MAX: usize = 220;
/// Bytes of a URL in a mail.
const MAIL_URL_BYTES_MAX: usize = 2048;
/// The side length in pixels of the square for a thumbnail beside text.
const SMALL_PX: u32 = 120;

/// Creates the context of `mail`. Fails for a URL that is not `http` or `https` and for an invalid content id.
pub(super) fn notification_context(mail: &NotificationMail) -> Result<Value> {
    let (shown, description) = match mail.occasion {
        MailOccasion::Item => (1, MAIL_DESCRIPTION_CHARS_MAX),
        MailOccasion::Digest => (limits::MAIL_DIGEST_ITEMS_MAX, MAIL_DIGEST_DESCRIPTION_CHARS_MAX),
    };
    // All items, including items that are not among the entries.
    let count = mail.entries.len().saturating_add(mail.more);
    let entries = mail.entries.iter().take(shown).map(|entry| card(entry, description));
    let entries = entries.collect::<Result<Vec<_>>>()?;
    Ok(context! {
        site_name => line(&mail.site_name, limits::MAIL_NAME_CHARS_MAX),
        title => line(&mail.title, limits::MAIL_NAME_CHARS_MAX),
        // Entries beyond the limit of the mail are counted, not shown.
        more => count - entries.len(),
        entries,
        count,
        unsubscribe_url => address(&mail.unsubscribe_url)?,
        site_url => address(&mail.site_url)?,
    })
}

fn card(entry: &MailEntry, description_chars_max: usize) -> Result<Value> {
    let media_type = media_type_name(&entry.media_type);
    let facts = [entry.byline.as_str(), &entry.source, media_type, &entry.time]
        .map(|fact| line(fact, limits::MAIL_NAME_CHARS_MAX));
    let headline = line(&entry.headline, MAIL_HEADLINE_CHARS_MAX);
    let description = line(&entry.description, description_chars_max);
    // Not every item has a headline, and a link needs text.
    let (headline, description) = if !headline.is_empty() {
        (headline, description)
    } else if description.is_empty() {
        ("Without a headline".to_owned(), description)
    } else {
        let words = line(&entry.description, limits::MAIL_NAME_CHARS_MAX);
        let rest = if words == description { String::new() } else { description };
        (words, rest)
    };
    Ok(context! {
        headline,
        description,
        facts => facts.into_iter().filter(|fact| !fact.is_empty()).collect::<Vec<_>>(),
        url => address(&entry.url)?,
        thumbnail => entry.thumbnail.as_ref().map(picture).transpose()?,
    })
}

fn picture(thumb: &MailThumbnail) -> Result<Value> {
    if !is_content_id(&thumb.cid) {
        return Err(Error::internal("the id of a picture in a mail has other characters"));
    }
    // At least one pixel, because the longer side is a divisor below.
    let width = thumb.width.max(1);
    let height = thumb.height.max(1);
    let long = width.max(height);
    Ok(context! {
        cid => thumb.cid.clone(),
        width,
        height,
        small_width => small_side(width, long),
        small_height => small_side(height, long),
    })
}

/// Scales a side of a picture so that the longer side fits into the square beside text.
fn small_side(side: u32, long: u32) -> u32 {
    // A picture smaller than the square is not enlarged.
    let scaled = u64::from(side) * u64::from(SMALL_PX.min(long)) / u64::from(long);
    u32::try_from(scaled).unwrap_or(SMALL_PX).max(1)
}

/// Checks a URL for use in a link.
pub(super) fn address(url: &str) -> Result<String> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    // Other characters could end the attribute in HTML, or the link in plain text.
    let is_plain = url.chars().all(|c| c.is_ascii_graphic() && !['<', '>', '"', '`'].contains(&c));
    if is_web && is_plain && url.len() <= MAIL_URL_BYTES_MAX {
        return Ok(url.to_owned());
    }
    Err(Error::internal("an address in a mail is not a web address"))
}

/// Returns sample mails of every kind for the validation of templates.
pub(super) fn samples() -> Vec<NotificationMail> {
    let full = MailEntry {
        headline: "Headline".into(),
        description: "Description".into(),
        byline: "Byline".into(),
        source: "Source".into(),
        media_type: "image".into(),
        time: "1 Jan 2026 00:00".into(),
        url: "https://example.org/item/image/1".into(),
        thumbnail: Some(MailThumbnail { cid: "1".into(), width: 256, height: 170 }),
    };
    let bare = MailEntry { url: full.url.clone(), ..MailEntry::default() };
    let complete = NotificationMail {
        site_name: "Wirephoto".into(),
        title: "Title".into(),
        occasion: MailOccasion::Item,
        entries: vec![full, bare.clone()],
        more: 3,
        unsubscribe_url: "https://example.org/unsubscribe/1".into(),
        site_url: "https://example.org/".into(),
    };
    let one_bare = NotificationMail {
        title: String::new(),
        entries: vec![bare],
        more: 0,
        ..complete.clone()
    };
    let empty = NotificationMail { entries: Vec::new(), more: 0, ..complete.clone() };
    let samples = [complete, one_bare, empty];
    let digests =
        samples.clone().map(|mail| NotificationMail { occasion: MailOccasion::Digest, ..mail });
    samples.into_iter().chain(digests).collect()
}

/// Returns the display name of a media type.
fn media_type_name(media_type: &str) -> &str {
    match media_type {
        "image" => "Photo",
        "stockfoto" => "Stock photo",
        "graphic" => "Graphic",
        "video" => "Video",
        "text" => "Text",
        "feature" => "Feature",
        "page" => "Page",
        "planning" => "Planning",
        "calendar" => "Event",
        other => other,
    }
}
