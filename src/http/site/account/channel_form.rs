//! The form of a delivery channel. It has fields for each method and converts them from and to the API's settings.

use serde::Serialize;
use serde_json::{Value, json};

use super::FormFields;
use api::deliveries::{Channel, ChannelUpdate};
use model::account::ChannelMethod;

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

/// A setting of a method.
#[derive(Clone, Copy, Debug)]
struct ChannelSetting {
    name: &'static str,
    kind: SettingKind,
    is_needed: bool,
}

impl ChannelSetting {
    const fn needed(name: &'static str, kind: SettingKind) -> Self {
        Self { name, kind, is_needed: true }
    }

    const fn optional(name: &'static str, kind: SettingKind) -> Self {
        Self { name, kind, is_needed: false }
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

const HOST: ChannelSetting = ChannelSetting::needed("host", SettingKind::Text);
const PORT: ChannelSetting = ChannelSetting::optional("port", SettingKind::Number);
const USER: ChannelSetting = ChannelSetting::needed("username", SettingKind::Text);
const PASSWORD: ChannelSetting = ChannelSetting::needed("password", SettingKind::Secret);
const FOLDER: ChannelSetting = ChannelSetting::optional("path", SettingKind::Text);
const PLAIN: ChannelSetting = ChannelSetting::optional("allowHttp", SettingKind::Checkbox);
const AUTHORITY: ChannelSetting = ChannelSetting::optional("ca", SettingKind::Lines);

// The order of each array is the order of the fields on the page, which names them (`channel_fields.html`).
const FTP: [ChannelSetting; 5] = [HOST, PORT, USER, PASSWORD, FOLDER];
const FTPS: [ChannelSetting; 7] = [
    HOST,
    PORT,
    ChannelSetting::optional("implicit", SettingKind::Checkbox),
    USER,
    PASSWORD,
    FOLDER,
    AUTHORITY,
];
const SFTP: [ChannelSetting; 8] = [
    HOST,
    PORT,
    ChannelSetting::needed("hostKey", SettingKind::Text),
    USER,
    ChannelSetting::optional("password", SettingKind::Secret),
    ChannelSetting::optional("privateKey", SettingKind::SecretLines),
    ChannelSetting::optional("passphrase", SettingKind::Secret),
    FOLDER,
];
const S3: [ChannelSetting; 9] = [
    ChannelSetting::needed("bucket", SettingKind::Text),
    ChannelSetting::optional("region", SettingKind::Text),
    ChannelSetting::optional("prefix", SettingKind::Text),
    ChannelSetting::needed("accessKeyId", SettingKind::Text),
    ChannelSetting::needed("secretAccessKey", SettingKind::Secret),
    ChannelSetting::optional("endpoint", SettingKind::Text),
    ChannelSetting::optional("pathStyle", SettingKind::OptionalFlag),
    PLAIN,
    AUTHORITY,
];
const WEBHOOK: [ChannelSetting; 5] = [
    ChannelSetting::needed("url", SettingKind::Address),
    ChannelSetting::needed("secret", SettingKind::Secret),
    ChannelSetting::optional("mode", SettingKind::Choice(&["notify", "files"])),
    PLAIN,
    AUTHORITY,
];
const EMAIL: [ChannelSetting; 1] = [ChannelSetting::needed("to", SettingKind::List)];
// The operator creates these channels. Users see the form and can change only `active`.
const DIRECTORY: [ChannelSetting; 1] = [ChannelSetting::needed("path", SettingKind::Text)];

/// The methods of channels that users can create.
pub(super) const OFFERED_METHODS: [ChannelMethod; 7] = [
    ChannelMethod::Email,
    ChannelMethod::Ftps,
    ChannelMethod::Sftp,
    ChannelMethod::S3,
    ChannelMethod::Webhook,
    ChannelMethod::Ftp,
    ChannelMethod::Download,
];

/// Formats with a check box. Other formats are entered as text.
const FORMATS: [&str; 12] = [
    "_NormalHires.jpg",
    "_NormalPreview.jpg",
    "_NormalPreview.webp",
    "_WatermarkPreview.jpg",
    "_WebPreview.jpg",
    "_NormalThumbnail.jpg",
    ".json",
    ".xml",
    "-cutpaste.txt",
    "-indesign.txt",
    ".pdf",
    "_NormalPreview.mp4",
];

/// Returns the settings of a method.
fn settings_of(method: ChannelMethod) -> &'static [ChannelSetting] {
    match method {
        ChannelMethod::Email => &EMAIL,
        ChannelMethod::Ftp => &FTP,
        ChannelMethod::Ftps => &FTPS,
        ChannelMethod::Sftp => &SFTP,
        ChannelMethod::S3 => &S3,
        ChannelMethod::Webhook => &WEBHOOK,
        ChannelMethod::Directory => &DIRECTORY,
        ChannelMethod::Download => &[],
    }
}

/// A setting as a field of the form.
#[derive(Debug, Serialize)]
pub struct ChannelField {
    /// The name of the input.
    name: String,
    /// The path of the property in the API's errors.
    pub path: String,
    /// The input type, in the template's words.
    pub kind: &'static str,
    choices: &'static [&'static str],
    /// The entered text; `None` for a secret.
    pub value: Option<String>,
    needed: bool,
    /// True if an empty field leaves the stored secret unchanged.
    stays: bool,
}

/// A format with a check box.
#[derive(Debug, Serialize)]
pub(super) struct FormatChoice {
    format: &'static str,
    ticked: bool,
}

/// The contents of a channel's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelForm {
    pub(super) name: String,
    pub(super) method: ChannelMethod,
    pub(super) is_active: bool,
    /// True if the form changes an existing channel.
    pub(super) replaces_existing: bool,
    formats: Vec<String>,
    /// Field names with the entered values.
    entered: Vec<(String, String)>,
}

impl ChannelForm {
    /// Creates the form of a new channel.
    pub(super) fn empty(method: ChannelMethod) -> Self {
        // Preselected, because the API refuses a channel without formats.
        let formats = ["_NormalHires.jpg", ".json"].map(str::to_owned).to_vec();
        Self {
            name: String::new(),
            method,
            is_active: true,
            replaces_existing: false,
            formats,
            entered: Vec::new(),
        }
    }

    /// Fills the form from a channel of the API.
    pub(super) fn from_channel(channel: Channel) -> Self {
        let settings = settings_of(channel.method).iter();
        // The API returns a mask in place of a secret. The mask must not be edited or sent back.
        let visible = settings.filter(|setting| !setting.is_secret());
        let visible = visible.map(|setting| {
            let value = channel.settings.get(setting.name).unwrap_or(&Value::Null);
            (setting.field(), field_text(setting.kind, value))
        });
        Self {
            entered: visible.collect(),
            name: channel.name,
            method: channel.method,
            is_active: channel.active,
            replaces_existing: true,
            formats: channel.formats,
        }
    }

    /// Reads a submitted form; `None` if it names no method.
    pub fn from_form(form: &FormFields) -> Option<Self> {
        let method = form.text("method").parse().ok()?;
        // The check boxes and the text field together list the formats.
        let others = form.find("formats").unwrap_or_default().split_whitespace();
        let formats = form.all("format").chain(others).map(str::to_owned).collect();
        Some(Self {
            name: form.text("name"),
            method,
            is_active: form.is_ticked("active"),
            replaces_existing: form.is_ticked("there"),
            formats,
            entered: form.0.clone(),
        })
    }

    fn text(&self, field: &str) -> Option<&str> {
        let found = self.entered.iter().find(|(name, _)| name == field);
        // Pasted host names and keys often end in a space or line break.
        found.map(|(_, text)| text.trim()).filter(|text| !text.is_empty())
    }

    /// Returns the request body for the API.
    pub fn body(&self) -> ChannelUpdate {
        // A deferred form may contain fields of a different method. The API refuses unknown settings, so they are
        // left out.
        let settings = settings_of(self.method).iter();
        let settings = settings.filter_map(|setting| self.given_value(setting)).collect();
        ChannelUpdate {
            method: self.method,
            formats: self.formats.clone(),
            settings,
            active: Some(self.is_active),
        }
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
    pub fn fields(&self) -> Vec<ChannelField> {
        settings_of(self.method).iter().map(|setting| self.field(setting)).collect()
    }

    fn field(&self, setting: &ChannelSetting) -> ChannelField {
        let name = setting.field();
        let (kind, choices) = template_kind(setting.kind);
        // A form that is shown again after an error must not carry the secret back in its HTML.
        let value = self.text(&name).filter(|_| !setting.is_secret()).map(str::to_owned);
        ChannelField {
            name,
            path: format!("settings.{}", setting.name),
            kind,
            choices,
            value,
            needed: setting.is_needed,
            stays: setting.is_secret() && self.replaces_existing,
        }
    }

    /// Returns the formats with check boxes, each with its state.
    pub(super) fn format_choices(&self) -> Vec<FormatChoice> {
        let choices = FORMATS.into_iter().map(|format| {
            let ticked = self.formats.iter().any(|own| own == format);
            FormatChoice { format, ticked }
        });
        choices.collect()
    }

    /// Returns the other formats, one per line.
    pub(super) fn other_formats(&self) -> String {
        let others = self.formats.iter().map(String::as_str);
        let others = others.filter(|own| !FORMATS.contains(own));
        others.collect::<Vec<_>>().join("\n")
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
        ChannelForm::from_form(&FormFields::parse(form).unwrap()).unwrap()
    }

    fn channel(settings: &Value) -> Channel {
        let channel = json!({
            "id": "user:a:desk", "name": "desk", "method": "s3", "active": true, "formats": [".json"],
            "madeBy": "user", "settings": settings,
        });
        serde_json::from_value(channel).unwrap()
    }

    #[test]
    fn a_form_states_what_its_method_needs_and_nothing_else() {
        let check = |form: &str, settings: Value| {
            assert_eq!(Value::from(drafted(form).body().settings), settings, "{form}");
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
        let unknown = FormFields::parse("method=unknown&setting.host=h").unwrap();
        assert_eq!(ChannelForm::from_form(&unknown), None);
    }

    #[test]
    fn formats_are_ticked_or_written() {
        let form = "method=ftp&format=.json&format=.xml&formats=_NormalPreview.mp4%0D%0A+.eps";
        let draft = drafted(form);
        let expected = [".json", ".xml", "_NormalPreview.mp4", ".eps"];
        assert_eq!(draft.body().formats, expected);
        assert_eq!(draft.other_formats(), ".eps");
        assert_eq!(draft.format_choices().iter().filter(|choice| choice.ticked).count(), 3);
        let form = "method=ftp&format=_NormalPreview.webp\
                    &formats=-fit_w800_NormalPreview.avif+-preset_card.jpg";
        let expected = "-fit_w800_NormalPreview.avif\n-preset_card.jpg";
        assert_eq!(drafted(form).other_formats(), expected);
    }

    #[test]
    fn a_channel_comes_back_from_its_form_as_it_was_shown() {
        let channel = channel(&json!({
            "bucket": "b", "region": "r", "accessKeyId": "i", "secretAccessKey": "***",
            "pathStyle": true, "allowHttp": true,
        }));
        let mut settings = channel.settings.clone();
        settings.remove("secretAccessKey");
        let draft = ChannelForm::from_channel(channel);
        let mut stated = draft.body().settings;
        assert_eq!(stated["ca"], Value::Null, "an empty field removes what was there");
        stated.retain(|_, value| !value.is_null());
        assert_eq!(stated, settings);
        assert!(draft.fields()[4].stays);
    }

    #[test]
    fn a_setting_that_is_off_differs_from_one_that_is_unset() {
        let check = |settings: Value, path_style: Value, allow_http: Value| {
            let stated = ChannelForm::from_channel(channel(&settings)).body().settings;
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
        assert_eq!(Value::from(draft.body().settings), sent);
        let shown = format!("{:?}", draft.fields());
        assert!(!shown.contains("abc"), "{shown}");
    }
}
