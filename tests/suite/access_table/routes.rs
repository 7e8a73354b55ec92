//! Routes that are not about an item, each for every caller.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use reqwest::{
    Method,
    blocking::RequestBuilder,
    header::{AUTHORIZATION, CONTENT_TYPE, COOKIE},
};

use super::CLIENTS;
use super::scene::{Account, Credentials, Customer};
use super::table::{self, Block, policy_of, print_answer};
use crate::common::{Server, tokens};

/// A body that no API accepts.
const BAD_BODY: &str = "\"none\"";
/// The place of the caller's API key in an address.
const KEY_PARAMETER: &str = "KEY";
/// The route that ends the sessions of the callers.
const LOGOUT: &str = "/o/logout";
/// Characters of an error in the report.
const ERROR_CHARS: usize = 100;

/// A table with routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableName {
    Apis,
    Pages,
}

impl TableName {
    fn file(self) -> &'static str {
        match self {
            Self::Apis => "apis.txt",
            Self::Pages => "pages.txt",
        }
    }

    /// Authenticates the callers of the table.
    fn callers(self, server: &Server) -> BTreeMap<&'static str, Credentials> {
        match self {
            Self::Apis => api_callers(server),
            Self::Pages => page_callers(server),
        }
    }

    /// The answers that are not those of the table.
    fn differences(self, server: &Server) -> Vec<String> {
        let blocks = table::read(self.file());
        let callers = self.callers(server);
        // A block without answers names the routes of other tables.
        let blocks = blocks.iter().filter(|block| !block.lines.is_empty());
        let routes = blocks.flat_map(|block| {
            block.addresses.iter().map(move |line| Route::parse(self, block, line))
        });
        // Sessions end after everything else was asked for.
        let (ends, routes): (Vec<_>, Vec<_>) = routes.partition(|route| route.path == LOGOUT);
        let next = AtomicUsize::new(0);
        let wrong = Mutex::new(Vec::new());
        let work = || {
            while let Some(route) = routes.get(next.fetch_add(1, Ordering::Relaxed)) {
                let found = route.differences(server, &callers);
                wrong.lock().unwrap().extend(found);
            }
        };
        thread::scope(|scope| (0..CLIENTS).for_each(|_| drop(scope.spawn(work))));
        let mut wrong = wrong.into_inner().unwrap();
        wrong.extend(ends.iter().flat_map(|route| route.differences(server, &callers)));
        wrong
    }
}

/// The API key of a caller, or a text that is none.
fn key_of(credentials: &Credentials) -> String {
    match credentials {
        Credentials::Authorization(line) => {
            line.strip_prefix("ApiKey ").unwrap_or("none").to_owned()
        }
        Credentials::None | Credentials::Session { .. } => "none".to_owned(),
    }
}

fn key(customer: Customer) -> Credentials {
    Credentials::key(Account::of(customer, 0))
}

fn api_callers(server: &Server) -> BTreeMap<&'static str, Credentials> {
    let customer = Account::of(Customer::Subscriber, 0);
    let password = format!("{}-password", customer.name());
    let full = tokens::password(server, &customer.name(), &password, tokens::API_KEY_SCOPES);
    let session = Credentials::session(server, customer);
    let administrator = Account::of(Customer::Administrator, 0);
    [
        ("anon", Credentials::None),
        ("bad", Credentials::Authorization("ApiKey none".to_owned())),
        ("cust", key(Customer::Subscriber)),
        ("serv", key(Customer::Service)),
        ("prov", key(Customer::Provider)),
        ("admin", Credentials::token(server, administrator)),
        ("oper", key(Customer::Operator)),
        ("full", Credentials::Authorization(format!("Bearer {full}"))),
        ("script", session.clone()),
        ("cookie", session),
    ]
    .into()
}

fn page_callers(server: &Server) -> BTreeMap<&'static str, Credentials> {
    let session = |customer| Credentials::session(server, Account::of(customer, 0));
    let customer = session(Customer::Subscriber);
    let forged = match &customer {
        Credentials::Session { cookie, .. } => {
            Credentials::Session { cookie: cookie.clone(), csrf: "none".to_owned() }
        }
        Credentials::None | Credentials::Authorization(_) => unreachable!("it is a session"),
    };
    [
        ("anon", Credentials::None),
        ("key", key(Customer::Subscriber)),
        ("forged", forged),
        ("cust", customer),
        ("serv", session(Customer::Service)),
        ("prov", session(Customer::Provider)),
        ("admin", session(Customer::Administrator)),
        ("oper", session(Customer::Operator)),
    ]
    .into()
}

/// A route of a table.
struct Route<'a> {
    table: TableName,
    block: &'a Block,
    method: Method,
    path: String,
    /// The answer to callers for whom the block has a dot.
    own: Option<&'a str>,
}

impl<'a> Route<'a> {
    fn parse(table: TableName, block: &'a Block, line: &'a str) -> Self {
        let mut words = line.split_whitespace();
        let method = words.next().expect("a method").parse().unwrap();
        let path = fill(words.next().unwrap_or_else(|| panic!("no path: {line}")));
        Self { table, block, method, path, own: words.next() }
    }

    fn expected(&self, column: usize) -> &str {
        match self.block.lines[0].answers[column].as_str() {
            "." => self.own.unwrap_or_else(|| panic!("no answer beside {}", self.path)),
            answer => answer,
        }
    }

    fn differences(
        &self,
        server: &Server,
        callers: &BTreeMap<&'static str, Credentials>,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        for (column, name) in self.block.callers.iter().enumerate() {
            let credentials = callers.get(name.as_str());
            let credentials = credentials.unwrap_or_else(|| panic!("no caller {name}"));
            let answer = self.request(server, name, credentials).send().unwrap();
            let (status, policy) = (answer.status().as_u16(), policy_of(&answer));
            let text = answer.text().unwrap();
            let found = print_answer(status, policy.as_deref(), &[]);
            let expected = self.expected(column);
            if found != expected {
                let error = if text.starts_with('{') { text.as_str() } else { "" };
                let error: String = error.chars().take(ERROR_CHARS).collect();
                let Self { block, method, path, .. } = self;
                wrong.push(format!(
                    "[{}] {name}: {method} {path}: {found}, expected {expected} {error}",
                    block.name
                ));
            }
        }
        wrong
    }

    fn request(&self, server: &Server, name: &str, credentials: &Credentials) -> RequestBuilder {
        let has_parameter = self.path.contains(KEY_PARAMETER);
        let path = self.path.replace(KEY_PARAMETER, &key_of(credentials));
        let request = server.client.request(self.method.clone(), format!("{}{path}", server.url));
        let (request, token) = match credentials {
            // The key is a parameter of the address.
            Credentials::Authorization(_) if has_parameter => (request, "none"),
            Credentials::None => (request, "none"),
            Credentials::Authorization(line) => (request.header(AUTHORIZATION, line), "none"),
            Credentials::Session { cookie, csrf } => {
                (request.header(COOKIE, cookie), csrf.as_str())
            }
        };
        let is_read = [Method::GET, Method::OPTIONS].contains(&self.method);
        match self.table {
            TableName::Pages if is_read => request,
            // One form asks which of several things to do.
            TableName::Pages => request.form(&[("csrf", token), ("do", "end")]),
            TableName::Apis => {
                let request = match name {
                    "script" => request.header(AUTHORIZATION, format!("Session {token}")),
                    _ => request,
                };
                if is_read {
                    return request;
                }
                request.header(CONTENT_TYPE, "application/json").body(BAD_BODY)
            }
        }
    }
}

/// Replaces `{name=value}` by the value.
fn fill(path: &str) -> String {
    let Some((before, rest)) = path.split_once('{') else { return path.to_owned() };
    let (part, after) = rest.split_once('}').expect("a closing brace");
    let value = part.split_once('=').unwrap_or_else(|| panic!("no value of {part} in {path}")).1;
    format!("{before}{value}{}", fill(after))
}

/// The answers that are not those of the tables.
pub fn differences(server: &Server) -> Vec<String> {
    let apis = TableName::Apis.differences(server);
    let pages = TableName::Pages.differences(server);
    [apis, pages].concat()
}
