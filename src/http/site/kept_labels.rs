//! The fields of a deferred form, as its page shows them. The template labels most fields as the form itself does, and
//! shows words of the site in place of values.

use serde::Serialize;

use super::{FormFields, item_summary::key_of};

/// A field of the form.
#[derive(Debug, Serialize)]
pub(super) struct KeptField<'a> {
    name: &'a str,
    value: String,
}

/// Lists the fields of `form` in order.
pub(super) fn shown(form: &FormFields) -> Vec<KeptField<'_>> {
    let fields = form.fields();
    fields
        .map(|(name, value)| KeptField { name, value: display_value(name, value.trim()) })
        .collect()
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
    use jiff::tz::TimeZone;
    use minijinja::{context, value::Serde};

    use super::*;
    use crate::http::site::language::PageLanguage;
    use crate::http::site::page_renderer::PageRenderer;

    #[test]
    fn fields_are_shown_with_their_labels_and_words() {
        let pages = PageRenderer::compile(&TimeZone::UTC, false).unwrap();
        let check = |form: &str, expected: &[(&str, &str)]| {
            let fields = FormFields::parse(form).unwrap();
            let context = context! {
                action => "/", csrf => "token", path => "/", shown => Serde(shown(&fields)),
                fields => Serde(&fields.0),
            };
            let page = pages.render_in(PageLanguage::English, "kept.html", context).unwrap();
            let rows = page.split("<dt>").skip(1).map(|row| {
                let (label, rest) = row.split_once("</dt><dd dir=\"auto\">").unwrap();
                (label, rest.split_once("</dd>").unwrap().0)
            });
            assert_eq!(rows.collect::<Vec<_>>(), expected, "{form}");
        };
        let notification = "step=save&title=Fire&type=scheduled-email&when=0+7+*+*+*&cron=&p=";
        let schedule = ("Schedule", "Every day at 7:00");
        check(
            notification,
            &[("Title", "Fire"), ("Notify me by", "E-mail on a schedule"), schedule],
        );
        // The form sends the settings of every way to be notified.
        let settings = "email=a%40b.example&when=own&cron=5+4+*+*+*&timezone=UTC&tr=d";
        let title = ("Title", "Fire");
        let address = ("E-mail address", "a@b.example");
        check(
            &format!("title=Fire&type=mobile&{settings}"),
            &[title, ("Notify me by", "Push message")],
        );
        check(
            &format!("title=Fire&type=email&{settings}"),
            &[title, ("Notify me by", "E-mail"), address],
        );
        let uri = "return_to=%2F&uri=http%3A%2F%2Fa%2Fmedia%2Fimage%2Fb&file=image%2Fb.jpg";
        check(uri, &[("Item", "image&#x2f;b")]);
        let channel = "method=sftp&setting.host=desk.example&active=on&setting.other=x";
        check(channel, &[("Method", "SFTP"), ("Host", "desk.example"), ("Active", "Yes")]);
        let item = "item=image%2Fb&tag=%221%22&base.headline=Ice&headline=Snow";
        check(item, &[("Item", "image&#x2f;b"), ("Headline", "Snow")]);
        check("name=%3Cb%3E&token=secret", &[("Name", "&lt;b&gt;")]);
        check("name=Wall&readOnly=on", &[("Name", "Wall"), ("Read only", "Yes")]);
    }
}
