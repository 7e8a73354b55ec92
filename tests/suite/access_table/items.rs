//! The addresses of items, each for every caller in every state of the item.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use model::media_url::DocumentExtension;
use model::{MediaType, RenditionExtension, RenditionUsage, RenditionVariant};
use reqwest::{
    Method,
    blocking::{RequestBuilder, Response},
    header::{AUTHORIZATION, COOKIE, ETAG, IF_NONE_MATCH},
};
use strum::IntoEnumIterator;

use super::CLIENTS;
use super::scene::{self, Account, Credentials, Customer, STATES, key_of};
use super::table::{self, Block, OrderRow, expand, policy_of, print_answer};
use crate::common::Server;

/// Addresses of a block that each caller asks for in each state.
const ASKED_IN_FULL: usize = 3;

/// A table with the addresses of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableName {
    Media,
    ItemPages,
}

impl TableName {
    fn file(self) -> &'static str {
        match self {
            Self::Media => "media.txt",
            Self::ItemPages => "item_pages.txt",
        }
    }

    /// The account behind a column of the table; `None` for anonymous callers.
    fn customer(self, caller: &str) -> Option<Customer> {
        match caller {
            "anon" => None,
            "uncov" => Some(Customer::Uncovered),
            "sub" | "cookie" | "key" => Some(Customer::Subscriber),
            "prep" => Some(Customer::Prepaid),
            "used" => Some(Customer::UsedUp),
            "direct" => Some(Customer::Direct),
            "bought" => Some(Customer::Bought),
            "prov" | "staff" => Some(Customer::Provider),
            "admin" => Some(Customer::Administrator),
            "serv" => Some(Customer::Service),
            other => panic!("{}: no caller {other}", self.file()),
        }
    }

    /// Returns whether the caller of a column places orders, so that each address needs an account that has bought
    /// nothing.
    fn places_orders(self, caller: &str) -> bool {
        // These buy nothing, and their user is that of another column.
        let is_other = ["cookie", "staff", "key"].contains(&caller);
        !is_other && self.customer(caller).is_some_and(Customer::places_orders)
    }

    /// Authenticates the caller of a column for the address with this number.
    fn caller(self, server: &Server, name: &str, number: usize) -> Caller {
        let account = self.customer(name).map(|customer| Account::of(customer, number));
        let credentials = match (self, name, account) {
            (_, _, None) => Credentials::None,
            (Self::Media, "admin", Some(account)) => Credentials::token(server, account),
            (Self::Media, "cookie" | "staff", Some(account)) => {
                Credentials::session(server, account)
            }
            (Self::Media, _, Some(account)) | (Self::ItemPages, "key", Some(account)) => {
                Credentials::key(account)
            }
            (Self::ItemPages, _, Some(account)) => Credentials::session(server, account),
        };
        Caller { account, credentials }
    }
}

/// An authenticated caller.
struct Caller {
    account: Option<Account>,
    credentials: Credentials,
}

impl Caller {
    /// The name of a channel of the caller, in the parameter `channel`.
    fn channel(&self) -> String {
        let name = self.account.map_or_else(|| "anonymous".to_owned(), Account::name);
        format!("user:{name}:desk")
    }

    /// The account, if it has bought nothing but at the address that is checked.
    fn buyer(&self) -> Option<Account> {
        self.account.filter(|account| account.number > 0)
    }
}

/// An address of an item.
struct ItemAddress {
    /// The place of its block in the table.
    block: usize,
    /// Its place among the addresses of the block.
    place: usize,
    method: Method,
    base: String,
    media_type: String,
    suffix: String,
    /// The number of its accounts; 0 if no caller places an order there.
    number: usize,
}

/// A table of addresses of items.
pub struct ItemTable {
    name: TableName,
    blocks: Vec<Block>,
    addresses: Vec<ItemAddress>,
}

impl ItemTable {
    pub fn read(name: TableName) -> Self {
        let blocks = table::read(name.file());
        let mut addresses = Vec::new();
        let mut numbers = 0;
        for (index, block) in blocks.iter().enumerate() {
            let start = addresses.len();
            let mut answers = block.lines.iter().flat_map(|line| &line.answers);
            let is_bought = answers.any(|answer| answer.contains(['$', '!']));
            for line in &block.addresses {
                for (base, media_type, suffix) in parse_line(line) {
                    numbers += usize::from(is_bought);
                    let form = suffix.strip_prefix("POST:");
                    addresses.push(ItemAddress {
                        block: index,
                        place: addresses.len() - start,
                        method: if form.is_some() { Method::POST } else { Method::GET },
                        base,
                        media_type,
                        number: if is_bought { numbers } else { 0 },
                        suffix: form.unwrap_or(&suffix).to_owned(),
                    });
                }
            }
        }
        Self { name, blocks, addresses }
    }

    /// The number of addresses that need accounts of their own.
    pub fn numbers(&self) -> usize {
        self.addresses.iter().map(|address| address.number).max().unwrap_or_default()
    }

    /// Lists the answers that are not those of the table. The accounts of its addresses begin after `first`.
    pub fn differences(&self, server: &Server, first: usize) -> Vec<String> {
        let names: BTreeSet<&String> =
            self.blocks.iter().flat_map(|block| &block.callers).collect();
        let shared: BTreeMap<&str, Caller> =
            names.iter().map(|name| (name.as_str(), self.name.caller(server, name, 0))).collect();
        let orders_of = |caller: &Caller| {
            caller.account.map(|account| scene::orders(server, account)).unwrap_or_default()
        };
        let before: Vec<_> = shared.values().map(orders_of).collect();
        let next = AtomicUsize::new(0);
        let wrong = Mutex::new(Vec::new());
        let work = || {
            while let Some(address) = self.addresses.get(next.fetch_add(1, Ordering::Relaxed)) {
                let wrong = &wrong;
                AddressCheck { table: self, server, shared: &shared, first, address, wrong }.run();
            }
        };
        thread::scope(|scope| (0..CLIENTS).for_each(|_| drop(scope.spawn(work))));
        let mut wrong = wrong.into_inner().unwrap();
        // The requests of these callers write no order.
        for ((name, caller), before) in shared.iter().zip(before) {
            let after = orders_of(caller);
            if after.len() != before.len() {
                let file = self.name.file();
                wrong.push(format!("{file}: {name} has orders that no row allows: {after:?}"));
            }
        }
        wrong
    }
}

/// Reads a line of addresses: the base, the media type and what follows the id of each.
fn parse_line(line: &str) -> Vec<(String, String, String)> {
    let (subjects, suffixes) = line.split_once(": ").unwrap_or_else(|| panic!("no colon: {line}"));
    let mut subjects = subjects.split_whitespace();
    let base = subjects.next().expect("a base").to_owned();
    let suffixes: Vec<String> = suffixes.split_whitespace().flat_map(expand).collect();
    let mut found = Vec::new();
    for media_type in subjects {
        for suffix in &suffixes {
            // A lone dash is the item itself.
            let suffix = if suffix == "-" { "" } else { suffix };
            found.push((base.clone(), media_type.to_owned(), suffix.to_owned()));
        }
    }
    found
}

/// The check of one address.
struct AddressCheck<'a> {
    table: &'a ItemTable,
    server: &'a Server,
    /// The callers who place no orders at the address.
    shared: &'a BTreeMap<&'a str, Caller>,
    first: usize,
    address: &'a ItemAddress,
    /// Differences from the table.
    wrong: &'a Mutex<Vec<String>>,
}

impl AddressCheck<'_> {
    fn run(&self) {
        let block = &self.table.blocks[self.address.block];
        for (column, name) in block.callers.iter().enumerate() {
            for (state, found) in self.answers(name, &self.states(column)) {
                let expected = block.answer(state, column);
                if found != expected {
                    self.report(name, state, &format!("{found}, expected {expected}"));
                }
            }
        }
    }

    /// The states in which the caller of a column asks for the address.
    ///
    /// The first addresses of a block are asked for by each caller in each state, the others by each caller in one
    /// state and by one caller in each state. Renditions that no item has are very many, so one caller asks for
    /// each in one state.
    fn states(&self, column: usize) -> Vec<&'static str> {
        let block = &self.table.blocks[self.address.block];
        let place = self.address.place;
        let (state, callers) = (place % STATES.len(), block.callers.len());
        if block.name.ends_with("missing") {
            let is_asked = place / STATES.len() % callers == column;
            return if is_asked { vec![STATES[state]] } else { Vec::new() };
        }
        if place < ASKED_IN_FULL || place % callers == column {
            return STATES.to_vec();
        }
        vec![STATES[state]]
    }

    fn report(&self, caller: &str, state: &str, difference: &str) {
        let ItemAddress { method, base, media_type, suffix, .. } = self.address;
        let block = &self.table.blocks[self.address.block].name;
        let text = format!(
            "[{block}] {caller}: {method} {base}{media_type}/<{state}>{suffix}: {difference}"
        );
        self.wrong.lock().unwrap().push(text);
    }

    /// The answers to a caller, by state.
    fn answers(&self, name: &str, states: &[&'static str]) -> Vec<(&'static str, String)> {
        let table = self.table.name;
        if self.address.number > 0 && table.places_orders(name) {
            let number = self.first + self.address.number;
            return self.answers_to(&table.caller(self.server, name, number), states);
        }
        self.answers_to(&self.shared[name], states)
    }

    fn answers_to(&self, caller: &Caller, states: &[&'static str]) -> Vec<(&'static str, String)> {
        self.ask_for_the_head(caller);
        let ask = |state: &'static str| {
            let answer = self.request(&self.address.method, state, caller).send().unwrap();
            if state == "usable" && caller.buyer().is_some() {
                self.ask_again(state, caller, &answer);
            }
            let (status, policy) = (answer.status().as_u16(), policy_of(&answer));
            // The connection is used again once the body is read.
            drop(answer.bytes().unwrap());
            (state, status, policy)
        };
        let answers: Vec<_> = states.iter().copied().map(ask).collect();
        let buyer = caller.buyer();
        let rows = buyer.map(|buyer| scene::orders(self.server, buyer)).unwrap_or_default();
        let print = |(state, status, policy): (&'static str, u16, Option<String>)| {
            let of_state =
                rows.iter().filter(|(key, _)| key.rsplit(['/', '-']).next() == Some(state));
            let rows: Vec<OrderRow> = of_state.map(|(_, row)| *row).collect();
            (state, print_answer(status, policy.as_deref(), &rows))
        };
        answers.into_iter().map(print).collect()
    }

    /// Asks for the head of what is bought, which writes no order.
    fn ask_for_the_head(&self, caller: &Caller) {
        let Some(buyer) = caller.buyer().filter(|_| self.address.method == Method::GET) else {
            return;
        };
        let head = self.request(&Method::HEAD, "usable", caller).send().unwrap();
        let rows = scene::orders(self.server, buyer);
        if !rows.is_empty() {
            let difference = format!("a HEAD is {} and writes {rows:?}", head.status());
            self.report(&buyer.name(), "usable", &difference);
        }
    }

    /// Asks again for what was just answered: a `304` and a repeated download write no order.
    fn ask_again(&self, state: &str, caller: &Caller, first: &Response) {
        let request = self.request(&self.address.method, state, caller);
        let Some(tag) = first.headers().get(ETAG).filter(|_| first.status() == 200) else {
            drop(request.send().unwrap().bytes().unwrap());
            return;
        };
        if self.address.method == Method::GET {
            let again = request.header(IF_NONE_MATCH, tag).send().unwrap();
            if again.status() != 304 {
                self.report("again", state, &format!("{}, expected 304", again.status()));
            }
        }
    }

    fn request(&self, method: &Method, state: &str, caller: &Caller) -> RequestBuilder {
        let ItemAddress { base, media_type, suffix, .. } = self.address;
        let suffix = suffix.replace("CHANNEL", &caller.channel());
        let url = format!("{}{base}{}{suffix}", self.server.url, key_of(media_type, state));
        let request = self.server.client.request(method.clone(), url);
        let (request, token) = match &caller.credentials {
            Credentials::None => (request, "none"),
            Credentials::Authorization(line) => (request.header(AUTHORIZATION, line), "none"),
            Credentials::Session { cookie, csrf } => {
                (request.header(COOKIE, cookie), csrf.as_str())
            }
        };
        if *method != Method::POST {
            return request;
        }
        let channel = caller.channel();
        let crop = [("x", "0"), ("y", "0"), ("width", "9"), ("height", "9")];
        request.form(&[&[("csrf", token), ("channel", &channel)], &crop[..]].concat())
    }
}

/// Every address that the grammar of media URLs has without operations: media type, and what follows the id.
fn grammar() -> BTreeSet<(String, String)> {
    let mut suffixes: BTreeSet<String> = ["", "/pricelist"].map(str::to_owned).into();
    suffixes.extend(DocumentExtension::iter().map(|extension| extension.as_str().to_owned()));
    for variant in RenditionVariant::iter() {
        for usage in RenditionUsage::iter() {
            let name = format!("_{}{}", variant.as_str(), usage.as_str());
            suffixes.extend(
                RenditionExtension::all().map(|extension| format!("{name}{}", extension.as_str())),
            );
        }
    }
    let mut found = BTreeSet::new();
    for media_type in MediaType::iter() {
        let of_type = |suffix: &String| (media_type.as_str().to_owned(), suffix.clone());
        found.extend(suffixes.iter().map(of_type));
    }
    found
}

#[test]
fn every_target_name_and_format_of_a_media_url_has_one_row() {
    let table = ItemTable::read(TableName::Media);
    let mut rows = BTreeSet::new();
    for ItemAddress { media_type, suffix, .. } in &table.addresses {
        let is_new = rows.insert((media_type.clone(), suffix.clone()));
        assert!(is_new, "{media_type}{suffix} has two rows");
    }
    let missing: Vec<_> = grammar().difference(&rows).cloned().collect();
    assert!(missing.is_empty(), "no row of media.txt has {missing:?}");
}
