//! Labels for the fields of a deferred form, as in the form itself. Labels are in English and serve as keys of the
//! translations.

use serde::Serialize;

use super::{
    FormFields, account, item_summary::key_of, notification_form::SCHEDULES,
    notifications::MEDIA_TYPES,
};

/// A field with its label.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Labelled {
    label: &'static str,
    value: String,
    /// True if the value is a text of the site, which has a translation.
    is_text: bool,
}

/// Labels by field name. Fields without a label, such as tokens, ids and return paths, are not shown.
const LABELS: [(&str, &str); 55] = [
    ("active", "Active"),
    ("admin", "Organization administrator"),
    ("approve", "Approve"),
    ("byline", "Byline"),
    ("channel", "Channel"),
    ("city", "City"),
    ("copyrightholder", "Copyright holder"),
    ("copyrightnotice", "Copyright notice"),
    ("country", "Country"),
    ("credit", "Credit line"),
    ("cron", "Cron expression"),
    ("department", "Department"),
    ("description_text", "Caption"),
    ("direct", "Phone"),
    ("ednote", "Note to editors"),
    ("email", "E-mail address"),
    ("emailAddress", "E-mail"),
    ("embargoed", "Embargo until"),
    ("firstName", "First name"),
    ("format", "Files to send"),
    ("formats", "Other formats"),
    ("headline", "Headline"),
    ("height", "Height"),
    ("invoiceText", "Invoice text"),
    ("item", "Item"),
    ("keys", "Revoke all API keys"),
    ("keyword", "Keywords"),
    ("lastName", "Last name"),
    ("mediaType", "Media type"),
    ("mediebank", "Media bank access"),
    ("method", "Method"),
    ("mobile", "Mobile"),
    ("name", "Name"),
    ("organisation", "Organizations"),
    ("p", "Product codes"),
    ("person", "People"),
    ("product", "Product codes"),
    ("profile", "Profile"),
    ("public", "Public"),
    ("q", "Search terms"),
    ("ratio", "Width:height"),
    ("slugline", "Short title"),
    ("source", "Source"),
    ("timezone", "Time zone"),
    ("title", "Title"),
    ("tr", "Time"),
    ("type", "Notify me by"),
    ("urgency", "Urgency"),
    ("uri", "Item"),
    ("usageterms", "Usage terms"),
    ("watermark", "Watermark"),
    ("when", "Schedule"),
    ("width", "Width"),
    ("x", "From left"),
    ("y", "From top"),
];

/// Values that a form shows as words: field, value, text.
const VALUES: [(&str, &str, &str); 19] = [
    ("approve", "no", "No"),
    ("approve", "yes", "Yes"),
    ("method", "download", "Zip download"),
    ("method", "email", "E-mail"),
    ("method", "ftp", "FTP, unencrypted"),
    ("method", "ftps", "FTP over TLS"),
    ("method", "s3", "S3 storage"),
    ("method", "sftp", "SFTP"),
    ("method", "webhook", "Webhook"),
    ("tr", "d", "Past day"),
    ("tr", "h", "Past hour"),
    ("tr", "m", "Past month"),
    ("tr", "w", "Past week"),
    ("tr", "y", "Past year"),
    ("type", "email", "E-mail"),
    ("type", "mobile", "Push message"),
    ("type", "scheduled-email", "E-mail on a schedule"),
    ("type", "stream", "Stream"),
    ("when", "own", "Custom schedule:"),
];

/// Names of check boxes.
const TICKS: [&str; 6] = ["active", "admin", "keys", "mediebank", "public", "watermark"];

/// Lists the fields of `form` that have a label and a value, in order.
pub(super) fn shown(form: &FormFields) -> Vec<Labelled> {
    let method = form.find("method").unwrap_or_default();
    let mut shown = Vec::new();
    for (name, value) in form.fields() {
        let Some(label) = label(method, name) else { continue };
        let value = value.trim();
        let text = display_text(name, value);
        let value = text.map_or_else(|| display_value(name, value), str::to_owned);
        if !value.is_empty() {
            shown.push(Labelled { label, value, is_text: text.is_some() });
        }
    }
    shown
}

fn label(method: &str, name: &str) -> Option<&'static str> {
    let own = LABELS.iter().find(|(own, _)| *own == name).map(|(_, label)| *label);
    // The fields of a channel depend on its method.
    own.or_else(|| account::setting_label(method, name))
}

/// Returns the text that the form shows for a value.
fn display_text(name: &str, value: &str) -> Option<&'static str> {
    // Browsers send `on` for a ticked box, which means nothing to visitors.
    if TICKS.contains(&name) {
        return Some("Yes");
    }
    let listed = VALUES.iter().find(|(field, own, _)| *field == name && *own == value);
    listed.map(|(_, _, words)| *words).or_else(|| match name {
        "mediaType" => chosen(&MEDIA_TYPES, value),
        "when" => chosen(&SCHEDULES, value),
        _ => None,
    })
}

fn chosen(choices: &[(&'static str, &'static str)], value: &str) -> Option<&'static str> {
    choices.iter().find(|(own, _)| *own == value).map(|(_, words)| *words)
}

/// Formats a value for display: an item by its key, a channel by its name.
fn display_value(name: &str, value: &str) -> String {
    match name {
        // The fields are untrusted, so a text that is not an item's URI is not shown.
        "uri" => key_of(value).map_or_else(String::new, |key| key.to_string()),
        // The id of a channel begins with the user's name.
        "channel" => value.rsplit(':').next().unwrap_or_default().to_owned(),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_shown_with_their_labels_and_words() {
        let check = |form: &str, expected: &[(&str, &str)]| {
            let found = shown(&FormFields::parse(form).unwrap());
            let found: Vec<_> =
                found.iter().map(|field| (field.label, field.value.as_str())).collect();
            assert_eq!(found, expected, "{form}");
        };
        let notification = "step=save&title=Fire&type=scheduled-email&when=0+7+*+*+*&cron=&p=";
        let schedule = ("Schedule", "Every day at 7:00");
        check(
            notification,
            &[("Title", "Fire"), ("Notify me by", "E-mail on a schedule"), schedule],
        );
        check("return_to=%2F&uri=http%3A%2F%2Fa%2Fmedia%2Fimage%2Fb", &[("Item", "image/b")]);
        let channel = "method=sftp&setting.host=desk.example&active=on&setting.bucket=x";
        check(channel, &[("Method", "SFTP"), ("Host", "desk.example"), ("Active", "Yes")]);
        let item = "item=image%2Fb&tag=%221%22&base.headline=Ice&headline=Snow";
        check(item, &[("Item", "image/b"), ("Headline", "Snow")]);
        check("name=%3Cb%3E&token=secret", &[("Name", "<b>")]);
    }
}
