//! Tests of rendered mails, with ordinary and hostile items.

use super::{MailEntry, MailOccasion, MailTemplates, MailTexts, MailThumbnail, NotificationMail};
use crate::runtime::limits;

fn entry(number: usize) -> MailEntry {
    MailEntry {
        headline: format!("Isbrytaren Ymer lämnar hamnen {number}"),
        description: "STOCKHOLM 20261122 Isbrytaren & bogserbåten.".into(),
        byline: "Åsa Öberg".into(),
        source: "TT".into(),
        media_type: "image".into(),
        time: "22 Nov 2026 08:00".into(),
        url: format!("https://wire.example.org/item/image/x-{number}?a=1&b=2"),
        thumbnail: Some(MailThumbnail { cid: format!("t{number}"), width: 256, height: 128 }),
    }
}

fn letter(occasion: MailOccasion, entries: Vec<MailEntry>) -> NotificationMail {
    NotificationMail {
        site_name: "Bildbyrån".into(),
        title: "Hamnen".into(),
        occasion,
        entries,
        more: 0,
        unsubscribe_url: "https://wire.example.org/unsubscribe/t0k-en_1".into(),
        site_url: "https://wire.example.org/".into(),
    }
}

fn write(letter: &NotificationMail) -> MailTexts {
    MailTemplates::compile(None).unwrap().render_notification(letter).unwrap()
}

/// Checks that elements are properly nested and returns the text between them.
fn visible(html: &str) -> String {
    let (mut open, mut text, mut rest) = (Vec::new(), String::new(), html);
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        rest = &rest[start..];
        if rest.starts_with("<!--") {
            rest = &rest[rest.find("-->").expect("the comment ends") + 3..];
            continue;
        }
        let mut quoted = false;
        let end = rest.char_indices().find(|&(_, c)| {
            quoted ^= c == '"';
            c == '>' && !quoted
        });
        let tag = &rest[1..end.expect("the tag ends").0];
        rest = &rest[tag.len() + 2..];
        let name = tag.split([' ', '\n']).next().unwrap();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "in {html}");
        } else if !["!doctype", "meta", "img"].contains(&name) {
            open.push(name);
        }
        assert!(!["script", "iframe", "link", "object"].contains(&name), "{tag}");
        if name == "style" {
            rest = &rest[rest.find("</style>").expect("the sheet ends")..];
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    text.push_str(rest);
    assert!(!text.contains('"') && !text.contains('\''), "unescaped quote in {text}");
    text.replace("&nbsp;", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_mail_of_one_item_says_all_of_it_in_both_parts() {
    let written = write(&letter(MailOccasion::Item, vec![entry(1)]));
    assert_eq!(written.subject, "Isbrytaren Ymer lämnar hamnen 1 (Hamnen)");
    let shown = visible(&written.html);
    for text in [
        "Isbrytaren Ymer lämnar hamnen 1",
        "STOCKHOLM 20261122 Isbrytaren &amp; bogserbåten.",
        "Åsa Öberg · TT · Photo · 22 Nov 2026 08:00",
        "because the notification Hamnen at Bildbyrån",
        "Unsubscribe",
    ] {
        assert!(shown.contains(text), "{text} in {shown}");
    }
    assert_eq!(
        written.text,
        "Hamnen\n\nIsbrytaren Ymer lämnar hamnen 1\n\nSTOCKHOLM 20261122 Isbrytaren & \
         bogserbåten.\n\nÅsa Öberg · TT · Photo · 22 Nov 2026 08:00\n\n\
         https://wire.example.org/item/image/x-1?a=1&b=2\n\n-- \nYou receive this e-mail because \
         the notification \"Hamnen\" at Bildbyrån sends it to this address.\n\
         Unsubscribe:\nhttps://wire.example.org/unsubscribe/t0k-en_1"
    );
}

#[test]
fn headline_and_picture_lead_to_the_item() {
    for occasion in [MailOccasion::Item, MailOccasion::Digest] {
        let html = write(&letter(occasion, vec![entry(1)])).html;
        let link = "href=\"https://wire.example.org/item/image/x-1?a=1&amp;b=2\"";
        assert!(html.matches(link).count() >= 2, "{html}");
        assert!(html.contains("src=\"cid:t1\""), "{html}");
        assert!(html.contains("alt=\"Picture: Isbrytaren Ymer lämnar hamnen 1\""), "{html}");
        assert_eq!(html.matches("src=").count(), 1, "nothing is fetched");
        assert!(html.contains("<html lang=\"en\">") && html.contains("color-scheme"));
    }
}

#[test]
fn a_digest_counts_what_it_shows_and_what_it_does_not() {
    let entries: Vec<MailEntry> = (1..=12).map(entry).collect();
    let mut digest = letter(MailOccasion::Digest, entries);
    let written = write(&digest);
    assert_eq!(written.subject, "Hamnen: 12 new items");
    assert!(written.text.contains("\n12. Isbrytaren Ymer lämnar hamnen 12\n   STOCKHOLM"));
    assert!(!written.text.contains("more item"));
    digest.more = 30;
    let written = write(&digest);
    assert_eq!(written.subject, "Hamnen: 42 new items");
    for part in [&written.text, &visible(&written.html)] {
        assert!(part.contains("30 more items. See them at Bildbyrån"), "{part}");
    }
    digest.entries.truncate(1);
    digest.more = 0;
    assert_eq!(write(&digest).subject, "Hamnen: 1 new item");
}

#[test]
fn what_a_mail_has_no_room_for_is_counted() {
    let entries: Vec<MailEntry> = (1..=40).map(entry).collect();
    let written = write(&letter(MailOccasion::Digest, entries.clone()));
    assert_eq!(written.subject, "Hamnen: 40 new items");
    assert_eq!(written.html.matches("<img").count(), limits::MAIL_DIGEST_ITEMS_MAX);
    assert!(written.text.contains("10 more items."), "{}", written.text);
    let long = "å".repeat(100_000);
    let entries = entries.into_iter().map(|entry| MailEntry {
        headline: long.clone(),
        description: long.clone(),
        byline: long.clone(),
        source: long.clone(),
        ..entry
    });
    let written = write(&letter(MailOccasion::Digest, entries.collect()));
    // Mail programs truncate longer HTML.
    assert!(written.html.len() < 102_000, "{}", written.html.len());
}

#[test]
fn a_hostile_item_breaks_nothing() {
    let long = "x".repeat(10_000);
    for bad in [
        "<script>alert(1)</script>",
        "</title></style></table><img src=https://evil.example/x onerror=alert(1)>",
        "\" onmouseover=\"alert(1)' x='",
        "a\r\nBcc: victim@example.com\r\n\r\nbody",
        "a\n.\nb\u{2028}c\u{85}d",
        "\u{202E}gnp.exe\u{2066}",
        "{{ 7 * 7 }}{% raw %}",
        "<!-- --> ]]> &amp; &#x3c;",
        "NUL \0 and \u{1b}[31m",
        "שלום 👩‍🚒 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        long.as_str(),
    ] {
        let bad_entry = MailEntry {
            headline: bad.into(),
            description: bad.into(),
            byline: bad.into(),
            source: bad.into(),
            media_type: bad.into(),
            time: bad.into(),
            ..entry(1)
        };
        for occasion in [MailOccasion::Item, MailOccasion::Digest] {
            let mut letter = letter(occasion, vec![bad_entry.clone(), bad_entry.clone()]);
            (letter.title, letter.site_name) = (bad.into(), bad.into());
            let written = write(&letter);
            assert!(!written.subject.chars().any(char::is_control), "{:?}", written.subject);
            assert!(written.subject.chars().count() <= limits::MAIL_SUBJECT_CHARS_MAX + 1);
            let shown = visible(&written.html);
            assert!(!shown.contains("49") && !written.html.contains("<img src=https"), "{shown}");
            for part in [&written.text, &written.html] {
                let odd = |c: char| c.is_control() && c != '\n' || c == '\u{202E}';
                assert!(!part.chars().any(odd), "{part:?}");
                assert!(!part.contains("\nBcc:"), "{part}");
            }
            assert!(written.text.contains("unsubscribe/t0k-en_1"));
        }
    }
}

#[test]
fn an_item_without_a_headline_is_called_by_its_description() {
    let mut bare = entry(1);
    bare.headline = "\r\n".into();
    let written = write(&letter(MailOccasion::Item, vec![bare.clone()]));
    assert_eq!(written.subject, "STOCKHOLM 20261122 Isbrytaren & bogserbåten. (Hamnen)");
    assert_eq!(written.text.matches("STOCKHOLM").count(), 1);
    bare.description = String::new();
    let written = write(&letter(MailOccasion::Item, vec![bare]));
    assert_eq!(written.subject, "Without a headline (Hamnen)");
}

#[test]
fn a_link_that_is_none_is_refused() {
    let letters = MailTemplates::compile(None).unwrap();
    for bad in ["javascript:alert(1)", "", "https://a b", "http://a\r\nX: y", "https://a/\"x"] {
        let mut one = letter(MailOccasion::Item, vec![entry(1)]);
        one.entries[0].url = bad.into();
        assert!(letters.render_notification(&one).is_err(), "{bad:?}");
        let mut two = letter(MailOccasion::Item, vec![entry(1)]);
        two.unsubscribe_url = bad.into();
        assert!(letters.render_notification(&two).is_err(), "{bad:?}");
    }
    for bad in ["", "a b", "a>\r\nX: y", "å", &"x".repeat(129)] {
        let mut one = letter(MailOccasion::Item, vec![entry(1)]);
        one.entries[0].thumbnail = Some(MailThumbnail { cid: bad.into(), width: 1, height: 1 });
        assert!(letters.render_notification(&one).is_err(), "{bad:?}");
    }
}

fn refused(name: &str, text: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    let error = MailTemplates::compile(Some(folder.path())).map(|_| ()).unwrap_err();
    error.message().replace(&folder.path().display().to_string(), "DIR")
}

#[test]
fn an_operators_template_takes_the_place_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("item.subject.txt"), "Ny bild:\n{{ entries | length }}")
        .unwrap();
    std::fs::write(folder.path().join("README"), "ours").unwrap();
    let letters = MailTemplates::compile(Some(folder.path())).unwrap();
    let written =
        letters.render_notification(&letter(MailOccasion::Item, vec![entry(1)])).unwrap();
    assert_eq!(written.subject, "Ny bild: 1");
    assert!(written.html.contains("<title>Ny bild: 1</title>"));
}

#[test]
fn err_a_bad_template_is_named_with_its_reason() {
    let syntax = refused("item.html", b"{% if %}");
    assert!(syntax.starts_with("mail template: syntax error") && syntax.contains("item.html:1"));
    let unknown = refused("digest.txt", b"a\n{{ heading }}");
    assert!(unknown.contains("undefined") && unknown.contains("digest.txt:2"), "{unknown}");
    // Rendered only when there are more items than fit.
    let rare = refused("digest.html", b"{% if more %}{{ rest }}{% endif %}");
    assert!(rare.contains("digest.html:1"), "{rare}");
    let latin = refused("footer.txt", b"\xe5");
    assert_eq!(latin, "mail template DIR/footer.txt: not UTF-8");
    let misspelt = refused("items.html", b"");
    assert!(misspelt.starts_with("mail template DIR/items.html: no such template; there are"));
    let gone = MailTemplates::compile(Some(std::path::Path::new("/nowhere/mails"))).map(|_| ());
    assert!(gone.unwrap_err().message().contains("/nowhere/mails"));
}
