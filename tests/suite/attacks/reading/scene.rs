//! An archive with items of every media type, and callers with different rights to them.

use std::{fs, path::Path};

use reqwest::blocking::Response;
use serde_json::{Value, json};

use crate::common::{Server, checkout, news, pictures::Picture, tokens};

/// The product that the buyers' agreements cover.
pub const COVERED: &str = "FOTO";
/// A product that few agreements cover.
pub const SECRET: &str = "SECRET";

/// The publication state of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A usable or replaced item.
    Shown,
    /// An item that is commissioned.
    Commissioned,
    /// An item that is under embargo.
    Embargoed,
    /// An item that is withheld.
    Withheld,
}

pub const MEDIA_TYPES: [&str; 9] =
    ["image", "stockfoto", "video", "graphic", "text", "feature", "page", "planning", "calendar"];

/// Every item with its state: per media type one that is covered (`c`) and one that is not (`s`), and images and
/// texts in every other state.
pub fn items() -> Vec<(String, State)> {
    let mut items = Vec::new();
    for media_type in MEDIA_TYPES {
        items.extend(["c", "s"].map(|id| (format!("{media_type}/{id}"), State::Shown)));
    }
    for media_type in ["image", "text"] {
        for (id, state) in [
            ("replaced", State::Shown),
            ("commissioned", State::Commissioned),
            ("embargoed", State::Embargoed),
            ("withheld", State::Withheld),
        ] {
            items.push((format!("{media_type}/{id}"), state));
        }
    }
    items
}

fn document(key: &str) -> Value {
    let id = key.rsplit('/').next().unwrap();
    let code = if id == "s" { SECRET } else { COVERED };
    let mut document =
        news::document(&format!("Headline of {key}"), &[code], "2026-01-05T10:00:00Z");
    match id {
        "replaced" | "commissioned" | "withheld" => document["pubstatus"] = json!(id),
        "embargoed" => document["embargoed"] = json!("2099-01-01T00:00:00Z"),
        _ => {}
    }
    if key.starts_with("text/") || key.starts_with("feature/") {
        document["body_text"] = json!(format!("The body of {key}"));
    }
    if key == "text/c" {
        let link = |key: &str| json!({ "uri": format!("http://a.example/media/{key}") });
        document["associations"] = json!({
            "a000": link("image/c"),
            "a001": link("image/s"),
            "a002": link("graphic/s"),
            "a003": link("image/commissioned"),
            "a004": { "uri": "http://a.example/files/4", "headline": "came with the text" },
        });
    }
    document
}

/// Writes the files of an item next to its document.
fn write_files(folder: &Path, key: &str) {
    let picture = || Picture::waves(64, 48).jpeg();
    let demo = |path: &str| fs::read(checkout("media-store/demo").join(path)).unwrap();
    let files: Vec<(&str, Vec<u8>)> = match key.split('/').next().unwrap() {
        "image" | "stockfoto" => vec![("NormalHires.jpg", picture())],
        "video" => vec![
            ("NormalPreview.mp4", demo("video/demo-hubble-pan/NormalPreview.mp4")),
            ("NormalThumbnail.jpg", picture()),
        ],
        "graphic" => vec![
            ("NormalHires.pdf", demo("graphic/demo-sweden-map/NormalHires.pdf")),
            ("BlackAndWhiteHires.pdf", demo("graphic/demo-sweden-map/NormalHires.pdf")),
            ("NormalPreview.jpg", picture()),
        ],
        "text" if key == "text/c" => vec![("a004_NormalPreview.jpg", picture())],
        _ => Vec::new(),
    };
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
    }
}

/// A user of the accounts file with these agreements; its password is `<name>-password`, its key is
/// [`key_of`], and it has a channel `desk`.
fn user(id: i64, name: &str, agreements: &[i64], facts: &Value) -> Value {
    let mut user = json!({
        "id": id, "organization": 70, "userName": name, "password": format!("{name}-password"),
        "firstName": "F", "lastName": "L", "emailAddress": format!("{name}@buyers.example"),
        "roles": ["ROLE_OFP"], "agreements": agreements,
    });
    for (name, value) in facts.as_object().unwrap() {
        user[name] = value.clone();
    }
    user
}

pub fn key_of(name: &str) -> String {
    format!("key-of-{name}-0000-0000-0000")
}

const NAMES: [&str; 10] = [
    "none", "buyer", "prepaid", "direct", "chief", "provider", "service", "former", "hopeful",
    "switched",
];

/// The accounts; with `lapsed`, three users have lost an agreement with [`SECRET`], of whom `switched` has another
/// one.
fn accounts(lapsed: bool) -> Value {
    let agreement = |id: i64, kind: &str, code: i64| {
        let code = if code == 10 { COVERED } else { SECRET };
        json!({
            "id": id, "organization": 70, "type": kind, "superAgreement": false, "products": [code],
        })
    };
    let mut prepaid = agreement(702, "Prepaid", 10);
    prepaid["prepaids"] = json!({ "total": 500, "remaining": 500 });
    let lost = |id: i64| if lapsed { vec![] } else { vec![id] };
    let none = json!({});
    let users = json!([
        user(801, "none", &[], &none),
        user(802, "buyer", &[701], &none),
        user(803, "prepaid", &[702], &none),
        user(804, "direct", &[703], &none),
        user(805, "chief", &[711], &json!({ "access": { "admin": true }, "organization": 71 })),
        user(806, "provider", &[], &json!({ "roles": ["ROLE_PROVIDER"] })),
        user(807, "service", &[701], &json!({ "serviceAccount": true })),
        user(808, "former", &lost(704), &none),
        user(809, "hopeful", &lost(705), &none),
        user(810, "switched", &[lost(707), vec![706]].concat(), &none),
    ]);
    let mut of_chief = agreement(711, "Subscription", 10);
    of_chief["organization"] = json!(71);
    let channel = |name: &&str| {
        json!({
            "owner": name, "name": "desk", "method": "directory", "formats": [".json"],
            "settings": { "path": name },
        })
    };
    json!({
        "organizations": [
            { "id": 70, "name": "Buyers", "address": {}, "phoneNumber": {} },
            { "id": 71, "name": "Chiefs", "address": {}, "phoneNumber": {} },
        ],
        "products": [
            { "id": 10, "code": COVERED, "name": "Photo" },
            { "id": 71, "code": SECRET, "name": "Secret" },
        ],
        "agreements": [
            agreement(701, "Subscription", 10), prepaid, agreement(703, "Direct", 10),
            agreement(704, "Subscription", 71), agreement(705, "Direct", 71),
            agreement(706, "Direct", 71), agreement(707, "Subscription", 71), of_chief,
        ],
        "users": users,
        "apiKeys": NAMES.map(|name| json!({ "user": name, "key": key_of(name), "name": "test" })),
        "channels": NAMES.iter().map(channel).collect::<Vec<_>>(),
    })
}

fn import(server: &Server, accounts: &Value) {
    let file = server.dir.path().join("accounts.json");
    fs::write(&file, accounts.to_string()).unwrap();
    let output = server.command(&["import", &file.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A server over [`items`] and the callers.
pub fn server(settings: &[&str]) -> Server {
    let server = Server::with_pictures::<&str>(settings, &[]);
    let incoming = server.dir.path().join("items");
    for (key, _) in items() {
        let folder = incoming.join(&key);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("item.json"), document(&key).to_string()).unwrap();
        write_files(&folder, &key);
    }
    let output = server.command(&["ingest", &incoming.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    import(&server, &accounts(false));
    server.until("the callers", || {
        let status = Caller::key("hopeful").get(&server, "/user/v1/profile").status();
        (status == 200).then_some(())
    });
    server
}

/// Removes the agreements with [`SECRET`] from the users who lose them.
pub fn lapse(server: &Server) {
    import(server, &accounts(true));
    for name in ["former", "hopeful"] {
        server.until("the agreement to lapse", || {
            let found = Caller::key(name).get(server, "/content/v1/text/search");
            (found.json::<Value>().unwrap()["total"] == 0).then_some(())
        });
    }
}

/// The sender of a request.
pub struct Caller {
    pub name: &'static str,
    /// The header `Authorization`, if one is sent.
    pub authorization: Option<String>,
    /// True if the credentials are valid.
    pub is_known: bool,
}

impl Caller {
    pub fn anonymous() -> Self {
        Self { name: "anonymous", authorization: None, is_known: false }
    }

    pub fn with_bad_key() -> Self {
        Self { name: "bad key", authorization: Some("ApiKey wrong".to_owned()), is_known: false }
    }

    pub fn key(name: &'static str) -> Self {
        let authorization = Some(format!("ApiKey {}", key_of(name)));
        Self { name, authorization, is_known: true }
    }

    /// A caller with an access token that carries the scope `admin`.
    pub fn admin(server: &Server, name: &'static str) -> Self {
        let token = tokens::password(server, name, &format!("{name}-password"), "roles admin");
        Self { name, authorization: Some(format!("Bearer {token}")), is_known: true }
    }

    pub fn get(&self, server: &Server, path: &str) -> Response {
        match &self.authorization {
            Some(line) => server.get_with(path, &[("authorization", line.as_str())]),
            None => server.get(path),
        }
    }

    /// Returns whether the caller's user belongs to the provider.
    pub fn is_provider(&self) -> bool {
        self.name == "provider"
    }

    /// Returns whether an item of that state is visible to it, by embargo and status (contract items-19, items-20,
    /// items-21).
    pub fn sees(&self, state: State) -> bool {
        let has_admin =
            self.authorization.as_deref().is_some_and(|line| line.starts_with("Bearer"));
        match state {
            State::Shown => true,
            State::Commissioned => self.is_provider() || has_admin,
            State::Embargoed => self.is_provider(),
            State::Withheld => false,
        }
    }
}
