//! The form of a delivery channel. It has fields for each method and converts them from and to the API's settings.

use serde_json::{Map, Value, json};

use super::FormFields;
use crate::http::site::api_client::text;

/// The input type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SettingKind {
    Text,
    Number,
    Checkbox,
    /// One line that is never shown again.
    Secret,
    /// Several lines that are never shown again.
    SecretLines,
    /// A URL. Only the part up to its host is shown again, because the rest often contains a secret.
    Address,
    Lines,
    /// A list with one element per line.
    List,
    /// One of these values. An empty field means the first.
    Choice(&'static [&'static str]),
    /// On, off or unset.
    OptionalFlag,
}

/// A setting of a method. Its texts are in English and serve as keys of the translations.
#[derive(Clone, Copy, Debug)]
struct ChannelSetting {
    name: &'static str,
    label: &'static str,
    kind: SettingKind,
    is_needed: bool,
    hint: &'static str,
}

impl ChannelSetting {
    const fn needed(name: &'static str, label: &'static str, kind: SettingKind) -> Self {
        Self { name, label, kind, is_needed: true, hint: "" }
    }

    const fn optional(name: &'static str, label: &'static str, kind: SettingKind) -> Self {
        Self { name, label, kind, is_needed: false, hint: "" }
    }

    const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    fn is_secret(&self) -> bool {
        matches!(self.kind, SettingKind::Secret | SettingKind::SecretLines)
    }

    /// Returns the name of the form's field. A deferred form leaves out fields with the prefix `secret.`.
    fn field(&self) -> String {
        // The path of a URL may contain a token, so a URL is left out of a deferred form as well.
        let is_hidden = self.is_secret() || self.kind == SettingKind::Address;
        let group = if is_hidden { "secret" } else { "setting" };
        format!("{group}.{}", self.name)
    }
}

const HOST: ChannelSetting = ChannelSetting::needed("host", "Host", SettingKind::Text);
const USER: ChannelSetting = ChannelSetting::needed("username", "User name", SettingKind::Text);
const PASSWORD: ChannelSetting =
    ChannelSetting::needed("password", "Password", SettingKind::Secret);
const FOLDER: ChannelSetting = ChannelSetting::optional("path", "Folder", SettingKind::Text);
const PLAIN: ChannelSetting =
    ChannelSetting::optional("allowHttp", "Allow http without encryption", SettingKind::Checkbox);
const AUTHORITY: ChannelSetting =
    ChannelSetting::optional("ca", "CA certificates (PEM)", SettingKind::Lines)
        .hint("Only for servers without a publicly trusted certificate.");

// The order of each array is the order of the fields on the page.
const FTP: [ChannelSetting; 5] =
    [HOST, ChannelSetting::optional("port", "Port", SettingKind::Number), USER, PASSWORD, FOLDER];
const FTPS: [ChannelSetting; 7] = [
    HOST,
    ChannelSetting::optional("port", "Port", SettingKind::Number),
    ChannelSetting::optional("implicit", "Implicit TLS (port 990)", SettingKind::Checkbox),
    USER,
    PASSWORD,
    FOLDER,
    AUTHORITY,
];
const SFTP: [ChannelSetting; 8] = [
    HOST,
    ChannelSetting::optional("port", "Port", SettingKind::Number),
    ChannelSetting::needed("hostKey", "Host key", SettingKind::Text)
        .hint("Fingerprint (SHA256:…) or a line such as ssh-ed25519 AAAA…"),
    USER,
    ChannelSetting::optional("password", "Password", SettingKind::Secret)
        .hint("Or use a private key below."),
    ChannelSetting::optional("privateKey", "Private key (OpenSSH)", SettingKind::SecretLines),
    ChannelSetting::optional("passphrase", "Private key passphrase", SettingKind::Secret),
    FOLDER,
];
const S3: [ChannelSetting; 9] = [
    ChannelSetting::needed("bucket", "Bucket", SettingKind::Text),
    ChannelSetting::optional("region", "Region", SettingKind::Text)
        .hint("For example eu-north-1."),
    ChannelSetting::optional("prefix", "Folder", SettingKind::Text),
    ChannelSetting::needed("accessKeyId", "Access key ID", SettingKind::Text),
    ChannelSetting::needed("secretAccessKey", "Secret access key", SettingKind::Secret),
    ChannelSetting::optional("endpoint", "Endpoint", SettingKind::Text)
        .hint("Only for storage other than Amazon S3: https://…"),
    ChannelSetting::optional("pathStyle", "Path-style addressing", SettingKind::OptionalFlag),
    PLAIN,
    AUTHORITY,
];
const WEBHOOK: [ChannelSetting; 5] = [
    ChannelSetting::needed("url", "Address", SettingKind::Address).hint("https://… The part after the host is not shown again. An address that ends in /*** is kept as it is."),
    ChannelSetting::needed("secret", "Signing secret", SettingKind::Secret)
        .hint("whsec_ followed by base64, or at least 24 characters."),
    ChannelSetting::optional("mode", "Content", SettingKind::Choice(&["notify", "files"])),
    PLAIN,
    AUTHORITY,
];
const EMAIL: [ChannelSetting; 1] =
    [ChannelSetting::needed("to", "E-mail addresses", SettingKind::List)
        .hint("One address per line.")];
// The operator creates these channels. Users see the form and can change only `active`.
const DIRECTORY: [ChannelSetting; 1] =
    [ChannelSetting::needed("path", "Folder", SettingKind::Text)];

/// The methods of channels that users can create.
const OFFERED_METHODS: [&str; 7] = ["email", "ftps", "sftp", "s3", "webhook", "ftp", "download"];

/// Formats with a check box. Other formats are entered as text.
const FORMATS: [(&str, &str); 12] = [
    ("_NormalHires.jpg", "Original (JPEG)"),
    ("_NormalPreview.jpg", "Preview (JPEG)"),
    ("_NormalPreview.webp", "Preview (WebP)"),
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

/// Lists the methods that users can choose.
pub(super) fn offered_methods() -> Vec<&'static str> {
    OFFERED_METHODS.to_vec()
}

/// Returns the settings of a method; `None` if there is no form for it.
fn settings_of(method: &str) -> Option<&'static [ChannelSetting]> {
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

/// Returns the label of the field `name` in the form of a method.
pub(in crate::http::site) fn setting_label(method: &str, name: &str) -> Option<&'static str> {
    let mut settings = settings_of(method)?.iter();
    settings.find(|setting| setting.field() == name).map(|setting| setting.label)
}

/// Returns whether there is a form for the method.
pub(super) fn is_known(method: &str) -> bool {
    settings_of(method).is_some()
}

/// The contents of a channel's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelForm {
    pub(super) name: String,
    pub(super) method: String,
    pub(super) is_active: bool,
    /// True if the form changes an existing channel.
    pub(super) replaces_existing: bool,
    formats: Vec<String>,
    /// Field names with the entered values.
    entered: Vec<(String, String)>,
}

impl ChannelForm {
    /// Creates the form of a new channel.
    pub(super) fn empty(method: &str) -> Self {
        // Preselected, because the API refuses a channel without formats.
        let formats = ["_NormalHires.jpg", ".json"].map(str::to_owned).to_vec();
        Self {
            name: String::new(),
            method: method.to_owned(),
            is_active: true,
            replaces_existing: false,
            formats,
            entered: Vec::new(),
        }
    }

    /// Fills the form from a channel of the API.
    pub(super) fn from_channel(channel: &Value) -> Self {
        let method = text(channel, "method").to_owned();
        let settings = settings_of(&method).unwrap_or_default();
        // The API returns a mask in place of a secret. The mask must not be edited or sent back.
        let visible = settings.iter().filter(|setting| !setting.is_secret());
        let visible = visible.map(|setting| {
            let value = &channel["settings"][setting.name];
            (setting.field(), field_text(setting.kind, value))
        });
        let formats = channel["formats"].as_array().into_iter().flatten();
        Self {
            name: text(channel, "name").to_owned(),
            entered: visible.collect(),
            method,
            is_active: channel["active"] == true,
            replaces_existing: true,
            formats: formats.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    /// Reads a submitted form.
    #[must_use]
    pub fn from_form(form: &FormFields) -> Self {
        // The check boxes and the text field together list the formats.
        let mut formats: Vec<String> = form.all("format").map(str::to_owned).collect();
        formats.extend(
            form.find("formats").unwrap_or_default().split_whitespace().map(str::to_owned),
        );
        Self {
            name: form.text("name"),
            method: form.text("method"),
            is_active: form.is_ticked("active"),
            replaces_existing: form.is_ticked("there"),
            formats,
            entered: form.0.clone(),
        }
    }

    fn text(&self, field: &str) -> Option<&str> {
        let found = self.entered.iter().find(|(name, _)| name == field);
        // Pasted host names and keys often end in a space or line break.
        found.map(|(_, text)| text.trim()).filter(|text| !text.is_empty())
    }

    /// Returns the request body for the API.
    #[must_use]
    pub fn body(&self) -> Value {
        let settings = settings_of(&self.method).unwrap_or_default();
        // A deferred form may contain fields of a different method. The API refuses unknown settings, so they are
        // left out.
        let settings: Map<String, Value> =
            settings.iter().filter_map(|setting| self.given_value(setting)).collect();
        json!({
            "method": self.method, "formats": self.formats, "settings": settings,
            "active": self.is_active,
        })
    }

    /// Returns the property of a setting in the request body; `None` if it is left out.
    fn given_value(&self, setting: &ChannelSetting) -> Option<(String, Value)> {
        let value = match self.text(&setting.field()) {
            Some(text) => setting_value(setting.kind, text),
            // The API keeps settings that the body omits, so a field that was emptied is sent as null.
            None if self.replaces_existing && !setting.is_secret() => Value::Null,
            None => return None,
        };
        Some((setting.name.to_owned(), value))
    }

    /// Returns the settings as form fields. Secrets are never sent back to the browser and must be entered again.
    #[must_use]
    pub fn fields(&self) -> Value {
        let settings = settings_of(&self.method).unwrap_or_default();
        settings.iter().map(|setting| self.field_json(setting)).collect()
    }

    fn field_json(&self, setting: &ChannelSetting) -> Value {
        let field = setting.field();
        let (kind, choices) = template_kind(setting.kind);
        // A form that is shown again after an error must not carry the secret back in its HTML.
        let value = self.text(&field).filter(|_| !setting.is_secret());
        json!({
            "name": field, "path": format!("settings.{}", setting.name),
            "label": setting.label, "hint": setting.hint, "kind": kind, "choices": choices,
            "value": value, "needed": setting.is_needed,
            // The template explains that an empty field leaves the stored secret unchanged.
            "stays": setting.is_secret() && self.replaces_existing,
        })
    }

    /// Returns the formats with check boxes, each with its state.
    pub(super) fn format_choices(&self) -> Value {
        let choices = FORMATS.iter().map(|(format, label)| {
            let ticked = self.formats.iter().any(|own| own == format);
            json!({ "format": format, "label": label, "ticked": ticked })
        });
        choices.collect()
    }

    /// Returns the other formats, one per line.
    pub(super) fn other_formats(&self) -> String {
        let mut others: Vec<&str> = Vec::new();
        for own in &self.formats {
            if FORMATS.iter().all(|(format, _)| *format != own.as_str()) {
                others.push(own);
            }
        }
        others.join("\n")
    }
}

/// Returns the input type and the choices with which a template renders a field.
fn template_kind(kind: SettingKind) -> (&'static str, &'static [&'static str]) {
    match kind {
        SettingKind::Text | SettingKind::Address => ("text", &[]),
        SettingKind::Number => ("number", &[]),
        SettingKind::Checkbox => ("tick", &[]),
        SettingKind::Secret => ("secret", &[]),
        SettingKind::SecretLines => ("long-secret", &[]),
        SettingKind::Lines | SettingKind::List => ("long", &[]),
        SettingKind::Choice(choices) => ("choice", choices),
        SettingKind::OptionalFlag => ("choice", &["", "true", "false"]),
    }
}

/// Converts the text of a field to the setting's JSON. An invalid number stays a string, which the API refuses.
fn setting_value(kind: SettingKind, text: &str) -> Value {
    match kind {
        SettingKind::Text
        | SettingKind::Address
        | SettingKind::Secret
        | SettingKind::Choice(_) => json!(text),
        // Browsers send line breaks as CRLF.
        SettingKind::Lines => json!(text.replace("\r\n", "\n")),
        // Trimming removed the last line break, but an OpenSSH key file must end with one.
        SettingKind::SecretLines => json!(format!("{}\n", text.replace("\r\n", "\n"))),
        SettingKind::Number => {
            text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
        }
        // Browsers send a check box only when it is ticked.
        SettingKind::Checkbox => json!(true),
        SettingKind::OptionalFlag => json!(text == "true"),
        SettingKind::List => {
            // A pasted list of addresses may also be separated by commas or semicolons.
            let parts = text.split(['\n', ',', ';']).map(str::trim);
            parts.filter(|part| !part.is_empty()).collect()
        }
    }
}

/// Converts a setting's JSON to the text of a field.
fn field_text(kind: SettingKind, value: &Value) -> String {
    match value {
        // An empty field would mean unset, and the service would derive the flag from the other settings.
        Value::Bool(false) if kind == SettingKind::OptionalFlag => "false".to_owned(),
        // Any non-empty text ticks a check box, so `false` must be empty.
        Value::Null | Value::Bool(false) | Value::Object(_) => String::new(),
        Value::Bool(true) => "true".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().map(|part| field_text(kind, part)).collect::<Vec<_>>().join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafted(form: &str) -> ChannelForm {
        ChannelForm::from_form(&FormFields::parse(form).unwrap())
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
        assert_eq!(draft.other_formats(), ".eps");
        let ticks = draft.format_choices();
        let ticked = ticks.as_array().unwrap().iter().filter(|tick| tick["ticked"] == true);
        assert_eq!(ticked.count(), 3);
        let form =
            "format=_NormalPreview.webp&formats=-fit_w800_NormalPreview.avif+-preset_card.jpg";
        let expected = "-fit_w800_NormalPreview.avif\n-preset_card.jpg";
        assert_eq!(drafted(form).other_formats(), expected);
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
        let draft = ChannelForm::from_channel(&channel);
        let mut settings = channel["settings"].clone();
        settings.as_object_mut().unwrap().remove("secretAccessKey");
        let mut stated = draft.body()["settings"].clone();
        assert_eq!(stated["ca"], Value::Null, "an empty field removes what was there");
        stated.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        assert_eq!(stated, settings);
        assert_eq!(draft.fields()[4]["stays"], true);
    }

    #[test]
    fn a_setting_that_is_off_differs_from_one_that_is_unset() {
        let check = |settings: Value, path_style: Value, allow_http: Value| {
            let channel = json!({ "name": "desk", "method": "s3", "settings": settings });
            let stated = ChannelForm::from_channel(&channel).body()["settings"].clone();
            assert_eq!(stated["pathStyle"], path_style, "{settings}");
            assert_eq!(stated["allowHttp"], allow_http, "{settings}");
        };
        check(json!({ "pathStyle": false, "allowHttp": false }), json!(false), Value::Null);
        check(json!({ "pathStyle": true, "allowHttp": true }), json!(true), json!(true));
        check(json!({}), Value::Null, Value::Null);
    }

    #[test]
    fn a_secret_is_sent_and_never_told() {
        let draft = drafted("method=webhook&secret.secret=abc&secret.url=https://a:8/T0/B1?k=2");
        let sent = json!({ "url": "https://a:8/T0/B1?k=2", "secret": "abc" });
        assert_eq!(draft.body()["settings"], sent);
        let shown = draft.fields().to_string();
        assert!(!shown.contains("abc"), "{shown}");
    }
}
