//! Calls of the JSON APIs by the declarations of `crates/api`: what tests of behaviour send and read has its type.

use api::collections::{AddCollectionItems, CollectionBody, CollectionItems, CreateCollection};
use api::orders::{ChosenLicense, ListOrders, Order, OrderUpdate, UpdateOrder};
use api::organization::UserCreate;
use api::{Answer, Endpoint, NoBody, RequestBody, target};
use reqwest::{
    Method,
    blocking::Response,
    header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE},
};
use serde::Serialize;
use serde_json::Value;

use super::{Server, tokens};

/// The successful answer of an endpoint as a client sees it.
type Content<E> = <<E as Endpoint>::Answer as Answer>::Content;
/// The body of an endpoint as a client sends it.
type Sent<E> = <<E as Endpoint>::Body as RequestBody>::Content;

/// The body of a 401.
pub const UNAUTHORIZED: &str = concat!(
    r#"{"message":"Unauthorized","errors":[{"errorCode":"credentials_required","#,
    r#""location":"headers","message":"Unauthorized","path":""}]}"#
);

/// A caller of the JSON APIs.
pub struct ApiCaller<'a> {
    pub server: &'a Server,
    /// The value of the header `Authorization`.
    pub authorization: String,
}

/// A refused call.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub message: String,
    /// True if the body is an error in JSON, false if it is the message alone.
    pub is_json: bool,
    /// The rule or code of each entry, its part of the request and its path: `type query size`.
    pub faults: Vec<String>,
}

impl<'a> ApiCaller<'a> {
    /// A caller with an API key.
    pub fn key(server: &'a Server, key: &str) -> Self {
        Self { server, authorization: format!("ApiKey {key}") }
    }

    /// A caller with an access token.
    pub fn bearer(server: &'a Server, token: &str) -> Self {
        Self { server, authorization: format!("Bearer {token}") }
    }

    /// A demo user who has logged in, with a token of every scope.
    pub fn login(server: &'a Server, user: &str) -> Self {
        Self::with_scopes(server, user, &format!("{} admin", tokens::API_KEY_SCOPES))
    }

    /// An application with a demo user's token of these scopes.
    pub fn with_scopes(server: &'a Server, user: &str, scope: &str) -> Self {
        let token = tokens::password(server, user, &format!("{user}-password"), scope);
        Self::bearer(server, &token)
    }

    /// Calls an endpoint without a body.
    pub fn ask<E: Endpoint<Body = NoBody>>(&self, endpoint: &E) -> Result<Content<E>, Refusal> {
        self.call(endpoint, None)
    }

    /// Calls an endpoint with a body.
    pub fn send<E: Endpoint>(&self, endpoint: &E, body: &Sent<E>) -> Result<Content<E>, Refusal>
    where
        Sent<E>: Serialize,
    {
        self.call(endpoint, Some(&serde_json::to_value(body).expect("JSON")))
    }

    /// Creates a collection of the items with these keys; returns its id.
    pub fn collect(&self, name: &str, public: bool, keys: &[&str]) -> String {
        let body = CollectionBody { name: name.to_owned(), public };
        let id = self.send(&CreateCollection {}, &body).unwrap().head.id.to_string();
        if !keys.is_empty() {
            let uris = keys.iter().map(|key| format!("{}/media/{key}", self.server.url));
            let uris: Vec<String> = uris.collect();
            let items = CollectionItems::from_uris(uris.iter().map(String::as_str));
            self.send(&AddCollectionItems { id: id.clone() }, &items).unwrap();
        }
        id
    }

    /// The latest orders that the caller can list.
    pub fn orders(&self) -> Vec<Order> {
        self.ask(&ListOrders::default()).unwrap().orders
    }

    /// Approves an order or reports its use under a licence; without one, rejects it or reports it as not used.
    pub fn report(&self, id: i64, license: Option<&str>) -> Result<Order, Refusal> {
        let license = license.map(|uuid| ChosenLicense { uuid: uuid.parse().expect("a UUID") });
        let report = OrderUpdate { approve: license.is_some(), license, invoice_text: None };
        self.send(&UpdateOrder { id }, &report)
    }

    /// Sends a request that no declaration describes. It has the type of JSON even without a body, as requests of the
    /// public client library have.
    pub fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Response {
        let request = self.server.client.request(method, format!("{}{path}", self.server.url));
        let request = request.header(CONTENT_TYPE, "application/json");
        let mut request = request.header(AUTHORIZATION, &self.authorization);
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        request.send().expect("answer")
    }

    /// The JSON of a GET that must be 200.
    pub fn json(&self, path: &str) -> Value {
        let response = self.request(Method::GET, path, None);
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json", "{path}");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store", "{path}");
        response.json().expect("JSON")
    }

    /// The refusal of a request that no declaration describes.
    pub fn refused(&self, method: Method, path: &str, body: Option<&Value>) -> Refusal {
        let response = self.request(method, path, body);
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store", "{path}");
        Refusal::read(response)
    }

    fn call<E: Endpoint>(
        &self,
        endpoint: &E,
        body: Option<&Value>,
    ) -> Result<Content<E>, Refusal> {
        let path = target(endpoint);
        let response = self.request(E::METHOD, &path, body);
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store", "{path}");
        let status = response.status();
        if !status.is_success() {
            return Err(Refusal::read(response));
        }
        let headers = response.headers().clone();
        let body = response.bytes().expect("body");
        // Answers without an object say this, which no client takes for JSON.
        if headers[CONTENT_TYPE].as_bytes().starts_with(b"text/plain") {
            assert_eq!((status.as_u16(), &body[..]), (200, &b"OK"[..]), "{path}");
        }
        let content = E::Answer::parse(&headers, &body);
        Ok(content.unwrap_or_else(|cause| panic!("{path}: {cause}")))
    }
}

impl Refusal {
    /// Reads the answer to a call that must be refused.
    pub fn read(response: Response) -> Self {
        let status = response.status();
        assert!(!status.is_success(), "{}: {status}", response.url());
        Self::parse(status.as_u16(), &response.bytes().expect("body"))
    }

    /// The status with all faults: `400 type query size, minimum query start`.
    pub fn summary(&self) -> String {
        let faults: Vec<&str> = self.faults.iter().map(|fault| fault.trim_end()).collect();
        format!("{} {}", self.status, faults.join(", ")).trim_end().to_owned()
    }

    fn parse(status: u16, body: &[u8]) -> Self {
        let Ok(error) = serde_json::from_slice::<Value>(body) else {
            let message = String::from_utf8_lossy(body).into_owned();
            return Self { status, message, is_json: false, faults: Vec::new() };
        };
        let message = error["message"].as_str().expect("a message").to_owned();
        let entries = error["errors"].as_array().expect("a list").iter();
        Self { status, message, is_json: true, faults: entries.map(fault).collect() }
    }
}

fn fault(entry: &Value) -> String {
    let [code, location, path, message] = ["errorCode", "location", "path", "message"]
        .map(|name| entry[name].as_str().expect("a text"));
    assert!(!message.is_empty(), "{entry}");
    let rule = code.trim_end_matches(".openapi.requestValidation");
    format!("{rule} {location} {path}")
}

/// A new user of an organization with the required properties alone.
pub fn new_user(email_address: &str, first_name: &str, last_name: &str) -> UserCreate {
    UserCreate {
        email_address: email_address.to_owned(),
        first_name: first_name.to_owned(),
        last_name: last_name.to_owned(),
        phone_number: None,
        department: None,
        access: None,
    }
}
