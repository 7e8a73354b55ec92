//! The archive and the callers of the tables: an item of each media type in each state, and customers under every
//! kind of agreement.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};
use strum::{Display, EnumIter, IntoEnumIterator};

use super::table::OrderRow;
use crate::common::{
    Server, checkout, news,
    pictures::Picture,
    server::{output, wirephoto},
    tokens,
};
use crate::site::Session;

/// The states of an item, as the tables name them.
pub const STATES: [&str; 7] =
    ["usable", "replaced", "expired", "commissioned", "embargoed", "withheld", "canceled"];
/// The media types of an item.
const MEDIA_TYPES: [&str; 9] =
    ["image", "stockfoto", "video", "graphic", "text", "feature", "page", "planning", "calendar"];
/// The product of the items.
const COVERED: &str = "FOTO";
/// The product of an agreement that covers none of the items.
const OTHER: &str = "OTHER";
/// Settings of every process. Hashing of passwords costs next to nothing, since it is not under test.
const SETTINGS: [&str; 4] = [
    "auth.hash_memory_kib=64",
    "auth.hash_iterations=1",
    "media.warm=false",
    r#"media.presets={"card":{"fill":[16,9]}}"#,
];

/// The kinds of callers that have an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Display, EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Customer {
    Uncovered,
    Subscriber,
    Prepaid,
    UsedUp,
    Direct,
    Bought,
    Provider,
    Administrator,
    Service,
    Operator,
    /// A colleague of the service account, who sees the orders of the organization.
    Clerk,
}

impl Customer {
    /// Returns whether the customer places orders, so that each address needs an organization that has bought
    /// nothing.
    pub fn places_orders(self) -> bool {
        match self {
            Self::Subscriber
            | Self::Prepaid
            | Self::Direct
            | Self::Administrator
            | Self::Service
            | Self::Clerk => true,
            Self::Uncovered | Self::UsedUp | Self::Bought | Self::Provider | Self::Operator => {
                false
            }
        }
    }

    /// Type of the agreement, the product that it covers, and the downloads of a Prepaid one.
    fn agreement(self, is_lapsed: bool) -> Option<(&'static str, &'static str, u32)> {
        match self {
            Self::Uncovered => Some(("Subscription", OTHER, 0)),
            Self::Subscriber | Self::Administrator | Self::Service => {
                Some(("Subscription", COVERED, 0))
            }
            Self::Bought => (!is_lapsed).then_some(("Subscription", COVERED, 0)),
            Self::Prepaid => Some(("Prepaid", COVERED, 1000)),
            Self::UsedUp => Some(("Prepaid", COVERED, 0)),
            Self::Direct => Some(("Direct", COVERED, 0)),
            Self::Provider | Self::Operator | Self::Clerk => None,
        }
    }
}

/// A customer with an organization of its own; the clerk belongs to that of the service account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account {
    pub customer: Customer,
    /// The number of the address for which it buys; 0 buys nothing.
    pub number: usize,
}

impl Account {
    /// The account of `customer` that buys at the address `number`.
    pub fn of(customer: Customer, number: usize) -> Self {
        Self { customer, number: if customer.places_orders() { number } else { 0 } }
    }

    pub fn name(self) -> String {
        format!("{}-{}", self.customer, self.number)
    }

    pub fn key(self) -> String {
        format!("key-of-{}-0000-0000-0000", self.name())
    }

    fn id(self, customer: Customer) -> usize {
        1000 + self.number * 100 + customer as usize
    }

    fn organization(self) -> usize {
        let is_clerk = self.customer == Customer::Clerk;
        self.id(if is_clerk { Customer::Service } else { self.customer })
    }

    fn user(self, agreements: &[usize]) -> Value {
        let (name, id) = (self.name(), self.id(self.customer));
        let role = match self.customer {
            Customer::Provider => "ROLE_PROVIDER",
            Customer::Operator => "ROLE_OPERATOR",
            Customer::Uncovered
            | Customer::Subscriber
            | Customer::Prepaid
            | Customer::UsedUp
            | Customer::Direct
            | Customer::Bought
            | Customer::Administrator
            | Customer::Service
            | Customer::Clerk => "ROLE_OFP",
        };
        let is_admin = matches!(self.customer, Customer::Administrator | Customer::Clerk);
        json!({
            "id": id, "organization": self.organization(), "userName": name,
            "password": format!("{name}-password"), "firstName": "F", "lastName": "L",
            "emailAddress": format!("{name}@buyers.example"), "roles": [role],
            "access": { "admin": is_admin }, "serviceAccount": self.customer == Customer::Service,
            "agreements": agreements,
        })
    }
}

/// The accounts for `count` addresses. With `is_lapsed`, those who have bought everything have no agreement any more.
fn accounts(count: usize, is_lapsed: bool) -> Value {
    let mut lists: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut push = |list, value| lists.entry(list).or_default().push(value);
    push("products", json!({ "id": 10, "code": COVERED, "name": "Photo" }));
    push("products", json!({ "id": 11, "code": OTHER, "name": "Another" }));
    for number in 0..count {
        for customer in Customer::iter().filter(|one| number == 0 || one.places_orders()) {
            let account = Account { customer, number };
            let (id, name) = (account.organization(), account.name());
            if customer != Customer::Clerk {
                let organization =
                    json!({ "id": id, "name": name, "address": {}, "phoneNumber": {} });
                push("organizations", organization);
            }
            let agreement = customer.agreement(is_lapsed);
            if let Some((kind, product, downloads)) = agreement {
                let mut agreement = json!({
                    "id": id, "organization": id, "type": kind, "superAgreement": false,
                    "products": [product],
                });
                if kind == "Prepaid" {
                    agreement["prepaids"] = json!({ "total": 1000, "remaining": downloads });
                }
                push("agreements", agreement);
            }
            let agreements: Vec<usize> = agreement.iter().map(|_| id).collect();
            push("users", account.user(&agreements));
            push("apiKeys", json!({ "user": name, "key": account.key(), "name": "test" }));
            let channel = json!({
                "owner": name, "name": "desk", "method": "directory", "formats": [".json"],
                "settings": { "path": name },
            });
            push("channels", channel);
        }
    }
    // The client of `tokens::password`.
    let demo = fs::read(checkout("media-store/accounts.json")).unwrap();
    let demo: Value = serde_json::from_slice(&demo).unwrap();
    lists.insert("clients", demo["clients"].as_array().unwrap().clone());
    json!(lists)
}

/// The document of `key` in `state`.
fn document(key: &str, state: &str) -> Value {
    let mut document =
        news::document(&format!("Headline of {key}"), &[COVERED], "2026-01-05T10:00:00Z");
    match state {
        "replaced" | "commissioned" | "withheld" | "canceled" => {
            document["pubstatus"] = json!(state);
        }
        "embargoed" => document["embargoed"] = json!("2099-01-01T00:00:00Z"),
        "expired" => document["expires"] = json!("2026-02-01T00:00:00Z"),
        _ => {}
    }
    if key.starts_with("text/") {
        document["associations"] = json!({
            "own": { "uri": "http://a.example/files/4", "headline": "came with the text" },
        });
    }
    document
}

/// A usable text whose associated objects are in `state`.
fn story(state: &str) -> Value {
    let link = |media_type: &str| json!({ "uri": format!("http://a.example/media/{media_type}/{state}") });
    let mut story = news::document("Headline of a story", &[COVERED], "2026-01-05T10:00:00Z");
    story["associations"] = json!({ "pic": link("image"), "chart": link("graphic") });
    story
}

/// The files of an item of `media_type`.
fn files(media_type: &str) -> Vec<(&'static str, Vec<u8>)> {
    let picture = || Picture::waves(60, 40).jpeg();
    let demo = |path: &str| fs::read(checkout("media-store/demo").join(path)).unwrap();
    let (pdf, eps) =
        ("graphic/demo-sweden-map/NormalHires.pdf", "graphic/demo-sweden-map/NormalHires.eps");
    match media_type {
        "image" | "stockfoto" => vec![("NormalHires.jpg", picture())],
        "video" => vec![
            ("NormalPreview.mp4", demo("video/demo-hubble-pan/NormalPreview.mp4")),
            ("NormalThumbnail.jpg", picture()),
        ],
        "graphic" => vec![
            ("NormalHires.pdf", demo(pdf)),
            ("BlackAndWhiteHires.pdf", demo(pdf)),
            ("NormalHires.eps", demo(eps)),
            ("BlackAndWhiteHires.eps", demo(eps)),
            ("NormalPreview.jpg", picture()),
        ],
        "text" => vec![("own_NormalHires.jpg", picture())],
        _ => Vec::new(),
    }
}

fn write_item(folder: &Path, key: &str, document: &Value) {
    let folder = folder.join(key);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("item.json"), document.to_string()).unwrap();
    let media_type = key.split('/').next().unwrap();
    let is_story = key.starts_with("text/story-");
    for (name, bytes) in files(media_type).into_iter().filter(|_| !is_story) {
        fs::write(folder.join(name), bytes).unwrap();
    }
}

/// The key of the item in `state` that the tables call `media_type`.
pub fn key_of(media_type: &str, state: &str) -> String {
    match media_type {
        "story" => format!("text/story-{state}"),
        media_type => format!("{media_type}/{state}"),
    }
}

/// Every item with its state.
fn items() -> Vec<(String, &'static str)> {
    let types = || MEDIA_TYPES.into_iter();
    types().flat_map(|one| STATES.map(|state| (key_of(one, state), state))).collect()
}

/// Runs a command on the data directory in `dir` until it ends.
fn run(dir: &Path, arguments: &[&str]) {
    let mut command = wirephoto(dir);
    command.args(arguments).arg("--data").arg(dir.join("data"));
    command.args(SETTINGS.iter().flat_map(|setting| ["--set", *setting]));
    let said = output(&mut command);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

fn import(dir: &Path, accounts: &Value) {
    let file = dir.join("accounts.json");
    fs::write(&file, accounts.to_string()).unwrap();
    run(dir, &["import", &file.to_string_lossy()]);
}

/// A server over an item of each media type in each state, with accounts for `count` addresses.
///
/// All items are usable first, so that they can be bought, and get their state then.
pub fn server(count: usize) -> Server {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    for (key, state) in items() {
        write_item(&first, &key, &document(&key, "usable"));
        if state != "usable" {
            write_item(&second, &key, &document(&key, state));
        }
    }
    for state in STATES {
        write_item(&first, &key_of("story", state), &story(state));
    }
    run(dir.path(), &["ingest", &first.to_string_lossy()]);
    import(dir.path(), &accounts(count, false));
    let server = Server::start(dir, &SETTINGS);
    buy_everything(&server);
    run(server.dir.path(), &["ingest", &second.to_string_lossy()]);
    import(server.dir.path(), &accounts(1, true));
    // A new process has read everything that was written.
    server.restart(&SETTINGS)
}

/// Has [`Customer::Bought`] buy every item.
fn buy_everything(server: &Server) {
    let buyer = Account::of(Customer::Bought, 0);
    let key = format!("ApiKey {}", buyer.key());
    let stories = STATES.map(|state| key_of("story", state));
    for key_of_item in items().into_iter().map(|(key, _)| key).chain(stories) {
        // A channel selects the contents of an archive, which not every media type has.
        let path = format!("/media/{key_of_item}.zip?channel=user:{}:desk", buyer.name());
        let answer = server.get_with(&path, &[("authorization", &key)]);
        assert_eq!(answer.status(), 200, "{path}");
    }
}

/// The authentication of a caller's requests.
#[derive(Clone, Debug)]
pub enum Credentials {
    None,
    /// The header `Authorization`.
    Authorization(String),
    /// The session of a browser: its cookie, and the token of its forms.
    Session {
        cookie: String,
        csrf: String,
    },
}

impl Credentials {
    pub fn key(account: Account) -> Self {
        Self::Authorization(format!("ApiKey {}", account.key()))
    }

    /// An access token with the scopes of an administrator.
    pub fn token(server: &Server, account: Account) -> Self {
        let name = account.name();
        let token = tokens::password(server, &name, &format!("{name}-password"), "roles admin");
        Self::Authorization(format!("Bearer {token}"))
    }

    pub fn session(server: &Server, account: Account) -> Self {
        let Session { cookie, csrf } = Session::open(server, &account.name());
        Self::Session { cookie, csrf }
    }
}

/// The rows of the organization's orders: the key of the item, and whether it delivers.
pub fn orders(server: &Server, account: Account) -> Vec<(String, OrderRow)> {
    // Service accounts do not list orders.
    let is_service = account.customer == Customer::Service;
    let customer = if is_service { Customer::Clerk } else { account.customer };
    let reader = Account { customer, ..account };
    let key = format!("ApiKey {}", reader.key());
    let answer = server.get_with("/user/v1/order?size=1000", &[("authorization", &key)]);
    let answer: Value = answer.json().unwrap();
    answer["orders"].as_array().unwrap().iter().map(order_row).collect()
}

fn order_row(order: &Value) -> (String, OrderRow) {
    let uri = order["item"]["uri"].as_str().unwrap();
    let is_waiting = order["manual"] == true && order["approved"] != true;
    let row = if is_waiting { OrderRow::Waits } else { OrderRow::Delivers };
    (uri.split_once("/media/").expect("an item").1.to_owned(), row)
}
