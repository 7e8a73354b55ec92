//! The form of a delivery channel: the fields that each method needs, from an API's settings and
//! back.

use serde_json::{Map, Value, json};

use super::Form;

/// How a setting is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One line.
    Text,
    /// A port.
    Number,
    /// On or off.
    Tick,
    /// One line that is never shown again.
    Secret,
    /// Several lines that are never shown again.
    LongSecret,
    /// One line, shown again as far as its host: what follows often is a secret.
    Address,
    /// Several lines.
    Long,
    /// A list, an element a line.
    List,
    /// One of these; nothing is the first.
    Choice(&'static [&'static str]),
    /// On, off, or not said.
    Maybe,
}

/// A setting of a method. Texts are English, as templates say them.
#[derive(Clone, Copy, Debug)]
struct Setting {
    name: &'static str,
    label: &'static str,
    kind: Kind,
    is_needed: bool,
    hint: &'static str,
}

impl Setting {
    const fn needed(name: &'static str, label: &'static str, kind: Kind) -> Self {
        Self { name, label, kind, is_needed: true, hint: "" }
    }

    const fn optional(name: &'static str, label: &'static str, kind: Kind) -> Self {
        Self { name, label, kind, is_needed: false, hint: "" }
    }

    const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::LongSecret)
    }

    /// The name of its field. What begins with `secret.` is not shown where a form is kept.
    fn field(&self) -> String {
        let is_hidden = self.is_secret() || self.kind == Kind::Address;
        let group = if is_hidden { "secret" } else { "setting" };
        format!("{group}.{}", self.name)
    }
}

const HOST: Setting = Setting::needed("host", "Host", Kind::Text);
const USER: Setting = Setting::needed("username", "User name", Kind::Text);
const PASSWORD: Setting = Setting::needed("password", "Password", Kind::Secret);
const FOLDER: Setting = Setting::optional("path", "Folder", Kind::Text);
const PLAIN: Setting = Setting::optional("allowHttp", "Allow http without encryption", Kind::Tick);
const AUTHORITY: Setting = Setting::optional("ca", "CA certificates (PEM)", Kind::Long)
    .hint("Only for servers without a publicly trusted certificate.");

const FTP: [Setting; 5] =
    [HOST, Setting::optional("port", "Port", Kind::Number), USER, PASSWORD, FOLDER];
const FTPS: [Setting; 7] = [
    HOST,
    Setting::optional("port", "Port", Kind::Number),
    Setting::optional("implicit", "Implicit TLS (port 990)", Kind::Tick),
    USER,
    PASSWORD,
    FOLDER,
    AUTHORITY,
];
const SFTP: [Setting; 8] = [
    HOST,
    Setting::optional("port", "Port", Kind::Number),
    Setting::needed("hostKey", "Host key", Kind::Text)
        .hint("Fingerprint (SHA256:…) or a line such as ssh-ed25519 AAAA…"),
    USER,
    Setting::optional("password", "Password", Kind::Secret).hint("Or use a private key below."),
    Setting::optional("privateKey", "Private key (OpenSSH)", Kind::LongSecret),
    Setting::optional("passphrase", "Private key passphrase", Kind::Secret),
    FOLDER,
];
const S3: [Setting; 9] = [
    Setting::needed("bucket", "Bucket", Kind::Text),
    Setting::optional("region", "Region", Kind::Text).hint("For example eu-north-1."),
    Setting::optional("prefix", "Folder", Kind::Text),
    Setting::needed("accessKeyId", "Access key ID", Kind::Text),
    Setting::needed("secretAccessKey", "Secret access key", Kind::Secret),
    Setting::optional("endpoint", "Endpoint", Kind::Text)
        .hint("Only for storage other than Amazon S3: https://…"),
    Setting::optional("pathStyle", "Path-style addressing", Kind::Maybe),
    PLAIN,
    AUTHORITY,
];
const WEBHOOK: [Setting; 5] = [
    Setting::needed("url", "Address", Kind::Address).hint("https://… The part after the host is not shown again. An address that ends in /*** is kept as it is."),
    Setting::needed("secret", "Signing secret", Kind::Secret)
        .hint("whsec_ followed by base64, or at least 24 characters."),
    Setting::optional("mode", "Content", Kind::Choice(&["notify", "files"])),
    PLAIN,
    AUTHORITY,
];
const EMAIL: [Setting; 1] =
    [Setting::needed("to", "E-mail addresses", Kind::List).hint("One address per line.")];
const DIRECTORY: [Setting; 1] = [Setting::needed("path", "Folder", Kind::Text)];

/// The methods that users make channels of.
const OFFERED: [&str; 7] = ["email", "ftps", "sftp", "s3", "webhook", "ftp", "download"];

/// Formats that are ticked; others are written.
const FORMATS: [(&str, &str); 11] = [
    ("_NormalHires.jpg", "Original (JPEG)"),
    ("_NormalPreview.jpg", "Preview (JPEG)"),
    ("_WatermarkPreview.jpg", "Preview with watermark (JPEG)"),
    ("_WebPreview.jpg", "Web preview (JPEG)"),
    ("_NormalThumbnail.jpg", "Thumbnail (JPEG)"),
    (".json", "Metadata (JSON)"),
    (".xml", "Metadata (XML)"),
    ("-cutpaste.txt", "Plain text"),
    ("-indesign.txt", "InDesign text"),
    (".pdf", "Graphic (PDF)"),
    ("_NormalPreview.mp4", "Video preview (MP4)"),
];

/// The methods that are offered.
pub(super) fn offered() -> Vec<&'static str> {
    OFFERED.to_vec()
}

/// The settings of a method; nothing for one that no form knows.
fn settings_of(method: &str) -> Option<&'static [Setting]> {
    match method {
        "email" => Some(&EMAIL),
        "ftp" => Some(&FTP),
        "ftps" => Some(&FTPS),
        "sftp" => Some(&SFTP),
        "s3" => Some(&S3),
        "webhook" => Some(&WEBHOOK),
        "directory" => Some(&DIRECTORY),
        "download" => Some(&[]),
        _ => None,
    }
}

/// The label of the field `name` in the form of a method.
pub(in crate::http::site) fn setting_label(method: &str, name: &str) -> Option<&'static str> {
    let mut settings = settings_of(method)?.iter();
    settings.find(|setting| setting.field() == name).map(|setting| setting.label)
}

/// Whether there is a form for the method.
pub(super) fn is_known(method: &str) -> bool {
    settings_of(method).is_some()
}

/// What a channel's form shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub(super) name: String,
    pub(super) method: String,
    pub(super) is_active: bool,
    /// Whether it takes the place of a channel.
    pub(super) is_there: bool,
    formats: Vec<String>,
    /// Field names and what is typed into them.
    typed: Vec<(String, String)>,
}

impl Draft {
    /// A channel that nobody wrote anything into.
    pub(super) fn empty(method: &str) -> Self {
        let formats = ["_NormalHires.jpg", ".json"].map(str::to_owned).to_vec();
        let (name, method) = (String::new(), method.to_owned());
        Self { name, method, is_active: true, is_there: false, formats, typed: Vec::new() }
    }

    /// A channel that an API lists.
    pub(super) fn of(channel: &Value) -> Self {
        let text = |name: &str| channel[name].as_str().unwrap_or_default().to_owned();
        let method = text("method");
        let settings = settings_of(&method).unwrap_or_default();
        let typed = settings.iter().filter(|setting| !setting.is_secret());
        let typed =
            typed.map(|setting| (setting.field(), typed_text(&channel["settings"][setting.name])));
        let formats = channel["formats"].as_array().into_iter().flatten();
        Self {
            name: text("name"),
            typed: typed.collect(),
            method,
            is_active: channel["active"] == true,
            is_there: true,
            formats: formats.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    /// What somebody typed.
    #[must_use]
    pub fn typed(form: &Form) -> Self {
        let text = |name| form.find(name).unwrap_or_default().to_owned();
        let mut formats: Vec<String> = form.all("format").map(str::to_owned).collect();
        formats.extend(
            form.find("formats").unwrap_or_default().split_whitespace().map(str::to_owned),
        );
        Self {
            name: text("name"),
            method: text("method"),
            is_active: form.is_ticked("active"),
            is_there: form.is_ticked("there"),
            formats,
            typed: form.0.clone(),
        }
    }

    fn text(&self, field: &str) -> Option<&str> {
        let found = self.typed.iter().find(|(name, _)| name == field);
        found.map(|(_, text)| text.trim()).filter(|text| !text.is_empty())
    }

    /// The body that states it.
    #[must_use]
    pub fn body(&self) -> Value {
        let settings = settings_of(&self.method).unwrap_or_default();
        let given = |setting: &Setting| {
            let value = match self.text(&setting.field()) {
                Some(text) => setting_value(setting.kind, text),
                // What was there and is not shown whole would stay if nothing were said of it.
                None if self.is_there && !setting.is_secret() => Value::Null,
                None => return None,
            };
            Some((setting.name.to_owned(), value))
        };
        let settings: Map<String, Value> = settings.iter().filter_map(given).collect();
        json!({
            "method": self.method, "formats": self.formats, "settings": settings,
            "active": self.is_active,
        })
    }

    /// The same without secrets, for whoever wants to see it as code.
    #[must_use]
    pub fn told(&self) -> Value {
        let mut body = self.body();
        for setting in settings_of(&self.method).unwrap_or_default() {
            let value = body["settings"].get_mut(setting.name);
            let Some(value) = value.filter(|value| !value.is_null()) else { continue };
            if setting.is_secret() {
                *value = json!("***");
            } else if setting.kind == Kind::Address {
                *value = json!(place_of(value.as_str().unwrap_or_default()));
            }
        }
        body
    }

    /// Its settings as fields. A secret that came back is typed again: no page shows it.
    #[must_use]
    pub fn fields(&self) -> Value {
        let settings = settings_of(&self.method).unwrap_or_default();
        let field = |setting: &Setting| {
            let field = setting.field();
            let (kind, choices) = shown_kind(setting.kind);
            let value = self.text(&field).filter(|_| !setting.is_secret());
            json!({
                "name": field, "path": format!("settings.{}", setting.name),
                "label": setting.label, "hint": setting.hint, "kind": kind, "choices": choices,
                "value": value, "needed": setting.is_needed,
                "stays": setting.is_secret() && self.is_there,
            })
        };
        settings.iter().map(field).collect()
    }

    /// The formats to be ticked, and whether they are.
    pub(super) fn ticks(&self) -> Value {
        let tick = |(format, label): &(&str, &str)| {
            let ticked = self.formats.iter().any(|own| own == format);
            json!({ "format": format, "label": label, "ticked": ticked })
        };
        FORMATS.iter().map(tick).collect()
    }

    /// The formats that are written.
    pub(super) fn others(&self) -> String {
        let is_other = |own: &&str| FORMATS.iter().all(|(format, _)| format != own);
        self.formats.iter().map(String::as_str).filter(is_other).collect::<Vec<_>>().join("\n")
    }
}

/// The word and the choices by which a template draws a field.
fn shown_kind(kind: Kind) -> (&'static str, &'static [&'static str]) {
    match kind {
        Kind::Text | Kind::Address => ("text", &[]),
        Kind::Number => ("number", &[]),
        Kind::Tick => ("tick", &[]),
        Kind::Secret => ("secret", &[]),
        Kind::LongSecret => ("long-secret", &[]),
        Kind::Long | Kind::List => ("long", &[]),
        Kind::Choice(choices) => ("choice", choices),
        Kind::Maybe => ("choice", &["", "true", "false"]),
    }
}

/// What a field says, as the setting's JSON. What is no number stays a text, and is refused.
fn setting_value(kind: Kind, text: &str) -> Value {
    match kind {
        Kind::Text | Kind::Address | Kind::Secret | Kind::Choice(_) => json!(text),
        // Forms end lines as mails do.
        Kind::Long => json!(text.replace("\r\n", "\n")),
        Kind::LongSecret => json!(format!("{}\n", text.replace("\r\n", "\n"))),
        Kind::Number => text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number)),
        Kind::Tick => json!(true),
        Kind::Maybe => json!(text == "true"),
        Kind::List => {
            let parts = text.split(['\n', ',', ';']).map(str::trim);
            parts.filter(|part| !part.is_empty()).collect()
        }
    }
}

/// Where an address leads, without what follows the host.
fn place_of(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return "***".to_owned() };
    let host = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}/***")
}

/// A setting's JSON as a field shows it.
fn typed_text(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(false) | Value::Object(_) => String::new(),
        Value::Bool(true) => "true".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(typed_text).collect::<Vec<_>>().join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafted(form: &str) -> Draft {
        Draft::typed(&Form::parse(form).unwrap())
    }

    #[test]
    fn a_form_states_what_its_method_needs_and_nothing_else() {
        let check = |form: &str, settings: Value| {
            assert_eq!(drafted(form).body()["settings"], settings, "{form}");
        };
        let account = "setting.host=h&setting.port=21&setting.username=u&secret.password=p";
        let expected = json!({ "host": "h", "port": 21, "username": "u", "password": "p" });
        check(&format!("method=ftp&{account}&setting.implicit=on&setting.url=x"), expected);
        check("method=ftp&setting.port=many&secret.password=+", json!({ "port": "many" }));
        check("method=ftps&setting.implicit=on", json!({ "implicit": true }));
        let several = json!({ "to": ["a@b.example", "c@d.example"] });
        check("method=email&setting.to=a%40b.example%0D%0A%0D%0A+c%40d.example", several);
        check("method=s3&setting.pathStyle=false", json!({ "pathStyle": false }));
        check("method=s3&setting.pathStyle=", json!({}));
        check("method=sftp&secret.privateKey=a%0D%0Ab", json!({ "privateKey": "a\nb\n" }));
        check("method=unknown&setting.host=h", json!({}));
    }

    #[test]
    fn formats_are_ticked_or_written() {
        let form = "format=.json&format=.xml&formats=_NormalPreview.mp4%0D%0A+.eps";
        let draft = drafted(form);
        let expected = json!([".json", ".xml", "_NormalPreview.mp4", ".eps"]);
        assert_eq!(draft.body()["formats"], expected);
        assert_eq!(draft.others(), ".eps");
        let ticks = draft.ticks();
        let ticked = ticks.as_array().unwrap().iter().filter(|tick| tick["ticked"] == true);
        assert_eq!(ticked.count(), 3);
    }

    #[test]
    fn a_channel_comes_back_from_its_form_as_it_was_shown() {
        let channel = json!({
            "name": "desk", "method": "s3", "active": true, "formats": [".json"],
            "settings": {
                "bucket": "b", "region": "r", "accessKeyId": "i", "secretAccessKey": "***",
                "pathStyle": true, "allowHttp": true,
            },
        });
        let draft = Draft::of(&channel);
        let mut settings = channel["settings"].clone();
        settings.as_object_mut().unwrap().remove("secretAccessKey");
        let mut stated = draft.body()["settings"].clone();
        assert_eq!(stated["ca"], Value::Null, "an empty field removes what was there");
        stated.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        assert_eq!(stated, settings);
        assert_eq!(draft.fields()[4]["stays"], true);
    }

    #[test]
    fn a_secret_is_sent_and_never_told() {
        let draft = drafted("method=webhook&secret.secret=abc&secret.url=https://a:8/T0/B1?k=2");
        let sent = json!({ "url": "https://a:8/T0/B1?k=2", "secret": "abc" });
        assert_eq!(draft.body()["settings"], sent);
        let told = json!({ "url": "https://a:8/***", "secret": "***" });
        assert_eq!(draft.told()["settings"], told);
        let shown = draft.fields().to_string();
        assert!(!shown.contains("abc"), "{shown}");
        for (address, place) in [
            ("http://u:p@h.example\\x", "http://h.example/***"),
            ("https://h?k=1", "https://h/***"),
            ("https://h/***", "https://h/***"),
            ("https:h/x", "***"),
        ] {
            assert_eq!(place_of(address), place);
        }
    }
}
