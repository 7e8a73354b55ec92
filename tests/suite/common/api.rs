//! Calls of the JSON APIs by the declarations of `crates/api`: what tests of behaviour send and read has its type.

use api::{Answer, Endpoint, NoBody, RequestBody, target};
use reqwest::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use serde::Serialize;
use serde_json::Value;

use super::Server;

/// The successful answer of an endpoint as a client sees it.
type Content<E> = <<E as Endpoint>::Answer as Answer>::Content;
/// The body of an endpoint as a client sends it.
type Sent<E> = <<E as Endpoint>::Body as RequestBody>::Content;

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

    /// Calls an endpoint without a body.
    pub fn ask<E: Endpoint<Body = NoBody>>(&self, endpoint: &E) -> Result<Content<E>, Refusal> {
        self.call(endpoint, None)
    }

    /// Calls an endpoint with a body.
    pub fn send<E: Endpoint>(&self, endpoint: &E, body: &Sent<E>) -> Result<Content<E>, Refusal>
    where
        Sent<E>: Serialize,
    {
        self.call(endpoint, Some(serde_json::to_vec(body).expect("JSON")))
    }

    fn call<E: Endpoint>(
        &self,
        endpoint: &E,
        body: Option<Vec<u8>>,
    ) -> Result<Content<E>, Refusal> {
        let url = format!("{}{}", self.server.url, target(endpoint));
        // The public client library sends the type without a body too.
        let mut request = self.server.client.request(E::METHOD, &url);
        request = request.header(CONTENT_TYPE, "application/json");
        request = request.header(AUTHORIZATION, &self.authorization);
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().expect("answer");
        let status = response.status();
        let headers = response.headers().clone();
        let body = response.bytes().expect("body");
        assert_eq!(headers[CACHE_CONTROL], "no-store", "{url}");
        if !status.is_success() {
            return Err(Refusal::parse(status.as_u16(), &body));
        }
        // Answers without an object say this, which no client takes for JSON.
        if headers[CONTENT_TYPE].as_bytes().starts_with(b"text/plain") {
            assert_eq!((status.as_u16(), &body[..]), (200, &b"OK"[..]), "{url}");
        }
        let content = E::Answer::parse(&headers, &body);
        Ok(content.unwrap_or_else(|cause| panic!("{url}: {cause}")))
    }
}

impl Refusal {
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
    let [code, location, path] =
        ["errorCode", "location", "path"].map(|name| entry[name].as_str().unwrap_or_default());
    let rule = code.trim_end_matches(".openapi.requestValidation");
    format!("{rule} {location} {path}")
}
