//! The operations of the JSON APIs, each declared once as a type.
//!
//! A type that implements [`Endpoint`] holds the parameters of one operation. [`endpoint!`] declares it with its method, path,
//! body, answer and refusals. From that declaration derive
//!
//! - the route of the server, and the validation of requests ([`RequestReader`]),
//! - the OpenAPI document ([`Document`]),
//! - the requests that clients of this process send ([`target`]).
//!
//! The first paragraph of the documentation of an endpoint is the summary of its operation, the rest is the description. The
//! documentation of a field describes the parameter or property.
//!
//! A property that is `None` is absent from JSON: `serde_with::skip_serializing_none` marks its type, before the derives, which
//! see the attributes that it adds.

mod access;
pub mod account;
mod answer;
mod body;
pub mod collections;
pub mod content;
pub mod deliveries;
mod document;
mod endpoint;
mod fault;
pub mod ingest;
pub mod limits;
pub mod media;
pub mod notifications;
pub mod oauth;
pub mod operation;
pub mod operator;
pub mod orders;
pub mod organization;
pub mod property;
mod reader;
mod request_target;
mod schema;
pub mod search;
#[cfg(test)]
mod tests;
pub mod uploads;
pub mod user;

pub use access::{Access, Caller, KnownCaller, UnknownCaller};
pub use answer::{
    Accepted, Answer, Deprecated, Done, File, FileKind, Json, NoContent, Tagged, describe_json,
};
pub use body::{
    JSON_BODY_BYTES_MAX, JsonBody, JsonReader, NoBody, RawBody, RawBodyKind, RequestBody,
};
pub use document::{Document, DocumentParts};
pub use endpoint::{Endpoint, Refusal, RequestHeader, Section};
pub use fault::{Fault, Location};
pub use http::Method;
pub use reader::{DecodedParameter, PartialRequest, RequestReader, parse_integer};
pub use request_target::target;
pub use schema::unwrapped;
