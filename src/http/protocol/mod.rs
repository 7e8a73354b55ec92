//! HTTP as every route needs it: requests checked, conditional requests and ranges, content coding, CORS, errors as
//! answers, security headers. Knows no resource.

pub(crate) mod compression;
pub mod conditional;
pub(crate) mod cors;
pub(crate) mod deprecation;
pub(crate) mod disposition;
pub(crate) mod edge;
pub mod error_reference;
pub(crate) mod host;
pub(crate) mod media_body;
pub mod range;
pub mod request;
pub(crate) mod respond;
pub(crate) mod security;
pub(crate) mod surrogate;
pub(crate) mod timing;
pub(crate) mod trailing_slash;
