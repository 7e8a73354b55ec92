//! The declaration of an operation.

use http::Method;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use crate::access::{Access, Caller};
use crate::answer::Answer;
use crate::body::RequestBody;

/// A group of operations in the OpenAPI document and on its page.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The heading, which is the tag of the operations.
    pub name: &'static str,
    /// One or two sentences.
    pub description: &'static str,
}

/// An error answer that an operation has beside the ones that follow from its access and body: the name of a response in
/// the components of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 404: the object does not exist, or the caller may not see it.
    NotFound,
    /// 404 with a plain text: the collection does not exist, or the caller may not see it.
    NoCollection,
    /// 409: the current state does not allow the operation.
    Conflict,
    /// 412: the object changed since the version that `If-Match` names.
    Stale,
    /// 413, of an operation without a body: what it reads or declares is too large.
    TooLarge,
}

/// A header of a request. The handler reads it itself.
#[derive(Clone, Copy, Debug)]
pub struct RequestHeader {
    /// The name, as documentation writes it: `If-Match`.
    pub name: &'static str,
    /// The meaning and form of the value.
    pub description: &'static str,
    /// True if the operation needs it.
    pub required: bool,
    /// The least value of an integer; `None` if the value is a text.
    pub integer_from: Option<u64>,
}

impl RequestHeader {
    /// The version of an object that a change is based on.
    pub const IF_MATCH: Self =
        Self::required("If-Match", "The `ETag` of the version that the change is based on.");
    /// The entity tags of a cached version.
    pub const IF_NONE_MATCH: Self =
        Self::optional("If-None-Match", "Entity tags of cached versions.");
    /// The entity tags of which an answer must have one.
    pub const IF_MATCH_ANY: Self = Self::optional("If-Match", "Entity tags that must match.");
    /// The ranges of a file.
    pub const RANGE: Self = Self::optional("Range", "The requested ranges (RFC 9110 §14).");

    /// The id of the request.
    pub const REQUEST_ID: Self = Self::optional(
        "X-Request-Id",
        "The id of the request in the answer and the log: up to 64 letters, digits, `-`, `_` and `.`.",
    );

    /// Declares a text that a request may have.
    pub(crate) const fn optional(name: &'static str, description: &'static str) -> Self {
        Self { name, description, required: false, integer_from: None }
    }

    /// Declares a text that a request must have.
    pub(crate) const fn required(name: &'static str, description: &'static str) -> Self {
        Self { required: true, ..Self::optional(name, description) }
    }

    /// Makes the value an integer of at least `minimum`.
    pub(crate) const fn integer(self, minimum: u64) -> Self {
        Self { integer_from: Some(minimum), ..self }
    }
}

/// An operation of an API. The implementing struct has its parameters: fields that [`PATH`](Endpoint::PATH) names are
/// segments of the path, all others are query parameters.
///
/// A field that may be absent is an `Option`, or has a default. A `Vec` is a list, written `p=a,b`, `p=a&p=b` or
/// `p[]=a&p[]=b`.
pub trait Endpoint: Serialize + DeserializeOwned + JsonSchema {
    /// The method of the request.
    const METHOD: Method;
    /// The path, with the names of parameters in braces: `/user/v1/order/{id}`.
    const PATH: &'static str;
    /// The name of the operation for generated clients. It never changes.
    const OPERATION_ID: &'static str;
    /// The section that describes the operation.
    const SECTION: Section;
    /// The error answers of this operation alone.
    const REFUSALS: &'static [Refusal];
    /// The headers of the request that the operation reads.
    const HEADERS: &'static [RequestHeader] = &[];
    /// The credentials that the operation accepts.
    const ACCESS: Access = <Self::Caller as Caller>::ACCESS;

    /// The caller that a handler of this operation gets.
    type Caller: Caller;
    /// The body of the request.
    type Body: RequestBody;
    /// The successful answer.
    type Answer: Answer;
}

/// Declares endpoints of the section `SECTION` in scope, each a struct of its parameters with its method, path, operation id,
/// caller, body, answer and refusals.
///
/// ```ignore
/// endpoint! {
///     /// Approve or reject an order.
///     UpdateOrder: PUT "/user/v1/order/{id}", "updateOrder", KnownCaller, JsonBody<OrderUpdate> => Json<Order>, NotFound {
///         /// The id of the order.
///         pub id: i64,
///     }
/// }
/// ```
///
/// `KnownCaller: ACCESS` restricts the access of the caller; `[RequestHeader::IF_MATCH]` after the answer names headers.
#[macro_export]
macro_rules! endpoint {
    ($(
        $(#[$meta:meta])*
        $endpoint:ident: $method:ident $path:literal, $id:literal,
        $caller:ident $(: $access:expr)?, $body:ty => $answer:ty $(, [$($header:expr),*])? $(, $refusal:ident)*
        { $($fields:tt)* }
    )*) => { $(
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        $(#[$meta])*
        pub struct $endpoint { $($fields)* }

        impl $crate::Endpoint for $endpoint {
            const METHOD: $crate::Method = $crate::Method::$method;
            const PATH: &'static str = $path;
            const OPERATION_ID: &'static str = $id;
            const SECTION: $crate::Section = SECTION;
            const REFUSALS: &'static [$crate::Refusal] = &[$($crate::Refusal::$refusal),*];
            $(const HEADERS: &'static [$crate::RequestHeader] = &[$($header),*];)?
            $(const ACCESS: $crate::Access = $access;)?

            type Caller = $caller;
            type Body = $body;
            type Answer = $answer;
        }
    )* };
}
