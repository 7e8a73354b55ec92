//! Error messages on Swedish pages are in Swedish, for every form and query that can be invalid.

use crate::common::{LARGE, Server};
use crate::site::Session;

/// Words of our messages that occur only in English.
const ENGLISH: [&str; 12] = [
    " is ",
    " the ",
    "expected",
    " must ",
    " has ",
    " not ",
    "missing",
    "character ",
    "There ",
    " of ",
    "cannot",
    "needs",
];

/// Searches with an error.
const SEARCHES: &str = "q=%22berg q=berg) q=(berg q=berg%20AND q=%20OR%20berg q=nofield:x q=headline: \
    q=a*b q=a* q=urgency:[1 q=date:[x%20TO%20y] q=date:[2026-01-01%20y] q=urgency:>a q=urgency:> \
    q=headline:[a%20TO%20b] q=%22a*%22 q=urgency>3 q=! q=a?b q=headline:-b q=... tr=x trs=soon \
    tre=1/2 sort=foo type=nonsense agr=x p=- page=0 page=999999 page=x q=a&q=b agr=999999";

/// Crops that are invalid.
const CROPS: &str = "x=-5 x=abc width=0 width=99999 width=4294967296 x=99999&width=1 aspect=custom \
    aspect=x x=1&x=2";

/// Addresses that do not exist.
const ADDRESSES: &str = "/nope /item/image/nope /collections/nope /notifications/nope \
    /account/orders/1 /docs/try/nope /account/orders?start=x /account/deliveries?state=x \
    /o/unsubscribe?token=x /o/oauth2/auth?client_id=none /desk/edit?item=image/nope \
    /desk/templates/99";

/// A valid notification; each entry of [`NOTIFICATIONS`] makes it invalid.
const NOTIFICATION: &str = "step=save&type=scheduled-email&mediaType=image&title=t&\
    email=a%40b.example&when=own&cron=0+7+*+*+*&timezone=Europe/Stockholm";
const NOTIFICATIONS: [&str; 19] = [
    "title=",
    "email=nobody",
    "email=",
    "cron=",
    "cron=61+*+*+*+*",
    "cron=*+*",
    "cron=0+7+*+*+@daily",
    "cron=@never",
    "cron=0+0+30+2+*",
    "cron=5-1+*+*+*+*",
    "timezone=Mars",
    "q=(a",
    "q=%22a",
    "p=-",
    "agr=x",
    "tr=x",
    "type=x",
    "mediaType=x",
    "mediaType=",
];

/// Forms with an error: their target and their fields. `LONG` stands for a text that is too long.
const FORMS: [(&str, &str); 28] = [
    ("/collections", "name="),
    ("/collections", "name=LONG"),
    ("/collections/add", "name=a"),
    ("/collections/add", "name=a&uri=x"),
    ("/selection", "agr=x&uri=http://a/media/image/demo-urtavla"),
    ("/selection/zip", "uri=http://a/media/image/demo-urtavla"),
    ("/selection/deliver", "listed=1"),
    ("/selection/captions.txt", "listed=1"),
    ("/account/profile", "profile={"),
    ("/account/profile", "profile=[]"),
    ("/account/keys", "name="),
    ("/account/keys", "name=LONG"),
    ("/account/channels/edit", "method=ftp&name="),
    ("/account/channels/edit", "method=nonsense&name=a"),
    ("/account/channels/edit", "method=ftp&name=a:b&setting.host=x+y"),
    (
        "/account/channels/edit",
        "method=sftp&name=a&setting.host=example.org&setting.port=0&setting.hostKey=x",
    ),
    ("/account/channels/edit", "method=email&name=a&setting.to=nobody"),
    ("/account/channels/edit", "method=download&name=a&formats=_NormalPreview.auto"),
    ("/account/channels/edit", "method=download&name=a&formats=.webp"),
    ("/account/channels/edit", "method=download&name=a&formats=.renditions.json"),
    ("/account/channels/edit", "method=webhook&name=a&setting.url=ftp://x&secret.secret=x"),
    ("/account/channels/edit", "method=s3&name=a&setting.bucket=x+y&setting.region=!"),
    ("/account/users/new", "emailAddress="),
    ("/account/users/new", "emailAddress=nobody&firstName=a&lastName=b"),
    ("/account/users/new", "emailAddress=a%40b.example&firstName=LONG&lastName=b&direct=x"),
    ("/desk/templates", "shared=on&name="),
    ("/desk/templates", "shared=on&name=LONG"),
    ("/desk/templates", "shared=on&name=a&mode.city=replace&city="),
];

/// Forms of a photograph with an error: the end of the target, and the fields.
const PHOTOGRAPH: [(&str, &str); 6] = [
    ("download", "agr=x"),
    ("download", "agr=999999"),
    ("download", "file=nonsense"),
    ("deliver", "channel=user:demo-admin:none"),
    ("deliver", ""),
    ("crop/download", "width=0"),
];

/// The error messages of a page, without markup.
fn complaints(page: &str) -> String {
    let classes = ["alert", "field-wrong", "notice-line", "notice error", "gate wide"];
    let starts = classes.map(|class| format!("class=\"{class}\""));
    let parts = starts.iter().flat_map(|start| page.split(start.as_str()).skip(1));
    let parts = parts.map(|part| {
        let end = part.find("</div>").or_else(|| part.find("</form>")).unwrap_or(part.len());
        let texts = part[..end].split('<').filter_map(|piece| piece.split_once('>'));
        texts.map(|(_, text)| text).collect::<Vec<_>>().join(" ")
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// A visitor whose browser prefers Swedish.
struct Swede<'a> {
    server: &'a Server,
    session: Session,
}

impl Swede<'_> {
    fn get(&self, path: &str) -> String {
        let headers = [
            ("cookie", self.session.cookie.as_str()),
            ("accept-language", "sv"),
            ("accept", "text/html"),
        ];
        self.server.get_with(path, &headers).text().expect("text")
    }

    /// Submits the encoded fields, with those of `changed` replacing others of the same name.
    fn post(&self, path: &str, fields: &str, changed: &str) -> String {
        let pairs = |text: &str| -> Vec<(String, String)> {
            form_urlencoded::parse(text.as_bytes()).into_owned().collect()
        };
        let changed = pairs(changed);
        let mut form = pairs(fields);
        form.retain(|(name, _)| changed.iter().all(|(other, _)| other != name));
        form.extend(changed);
        form.push(("csrf".to_owned(), self.session.csrf.clone()));
        let request = self.server.client.post(format!("{}{path}", self.server.url)).form(&form);
        let request = request.header("cookie", &self.session.cookie);
        request.header("accept-language", "sv").send().expect("answer").text().expect("text")
    }
}

/// Checks the error messages of a page; returns them if they are missing or not Swedish.
fn mistake(what: &str, page: &str) -> Option<String> {
    let said = complaints(page);
    let said = format!(" {} ", said.split_whitespace().collect::<Vec<_>>().join(" "));
    let is_english = ENGLISH.iter().any(|word| said.contains(word));
    (said.split_whitespace().count() < 2 || is_english).then(|| format!("{what}: {said}"))
}

#[test]
fn error_messages_are_in_swedish() {
    let server = Server::demo();
    let swede = Swede { server: &server, session: Session::open(&server, "demo-admin") };
    let mut mistakes = Vec::new();
    let searches = SEARCHES.split_whitespace().map(|query| format!("/?{query}"));
    let crops = CROPS.split_whitespace().map(|query| format!("/item/{LARGE}/crop?{query}"));
    let addresses = ADDRESSES.split_whitespace().map(str::to_owned);
    for path in searches.chain(crops).chain(addresses) {
        mistakes.extend(mistake(&path, &swede.get(&path)));
    }
    for changed in NOTIFICATIONS {
        mistakes.extend(mistake(changed, &swede.post("/notifications", NOTIFICATION, changed)));
    }
    let long = "x".repeat(3000);
    for (path, fields) in FORMS {
        let page = swede.post(path, &fields.replace("LONG", &long), "");
        mistakes.extend(mistake(&format!("{path} {fields}"), &page));
    }
    for (end, fields) in PHOTOGRAPH {
        let page = swede.post(&format!("/item/{LARGE}/{end}"), fields, "");
        mistakes.extend(mistake(&format!("{end} {fields}"), &page));
    }
    assert_eq!(mistakes, Vec::<String>::new());
    assert!(swede.get("/docs").contains("API-dokumentationen är på engelska."));
}
