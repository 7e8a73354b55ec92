//! HTTP mechanisms that every route shares: request validation, conditional requests, ranges, content coding, CORS
//! and responses. Independent of any resource: the caller passes everything that depends on a route, a visitor or
//! a setting.

pub(crate) mod compression;
pub mod conditional;
pub(crate) mod cors;
pub(crate) mod deprecation;
pub(crate) mod disposition;
pub(crate) mod host;
pub mod range;
pub mod request;
pub(crate) mod respond;
pub(crate) mod tagged_text;
