//! The successful answers of operations, and the references to refusals.

use http::{HeaderMap, header};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::schema;

/// A kind of answer, which the server writes and a client of this process parses.
pub trait Answer {
    /// The answer as a client sees it.
    type Content: DeserializeOwned;

    /// Adds the answer to `responses`, the responses of an operation by status.
    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>);

    /// Parses a successful response, whose body is JSON unless an answer says otherwise. An empty body is `null`.
    fn parse(_: &HeaderMap, body: &[u8]) -> serde_json::Result<Self::Content> {
        serde_json::from_slice(if body.is_empty() { b"null".as_slice() } else { body })
    }
}

/// 200 with a `T` as JSON.
#[derive(Clone, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize + DeserializeOwned + JsonSchema> Answer for Json<T> {
    type Content = T;

    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        responses.insert("200".to_owned(), describe_json::<T>(generator));
    }
}

/// Describes a response with a `T` as JSON.
pub fn describe_json<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    let schema = generator.subschema_for::<T>();
    json!({
        "description": schema::first_paragraph(&schema::description::<T>()),
        "content": { "application/json": { "schema": schema } },
    })
}

/// Describes several responses with a `T` as JSON, by status and description.
pub(crate) fn describe_json_by_status<T: JsonSchema>(
    generator: &mut SchemaGenerator,
    responses: &mut Map<String, Value>,
    descriptions: &[(&str, &str)],
) {
    for (status, description) in descriptions {
        let mut response = describe_json::<T>(generator);
        response["description"] = (*description).into();
        responses.insert((*status).to_owned(), response);
    }
}

/// Adds the refusals of operations that accept credentials.
pub(crate) fn refuse_callers(responses: &mut Map<String, Value>) {
    refuse(responses, "400", "Invalid");
    refuse(responses, "401", "Unauthorized");
    refuse(responses, "403", "Forbidden");
    refuse(responses, "503", "Overloaded");
}

/// Adds the refusal with the response `name` of the components.
pub(crate) fn refuse(responses: &mut Map<String, Value>, status: &str, name: &str) {
    let reference = json!({ "$ref": format!("#/components/responses/{name}") });
    responses.insert(status.to_owned(), reference);
}

/// Describes a header that the response always has.
pub(crate) fn response_header(description: &str) -> Value {
    json!({ "description": description, "required": true, "schema": { "type": "string" } })
}

/// 200 with the plain text `OK`, or with the JSON string for a client that accepts JSON alone.
#[derive(Clone, Copy, Debug)]
pub struct Done;

impl Answer for Done {
    type Content = ();

    fn describe(_: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let response = json!({
            "description": "`OK`, as a JSON string with `Accept: application/json`.",
            "content": { "text/plain": { "schema": { "type": "string" } } },
        });
        responses.insert("200".to_owned(), response);
    }

    fn parse(_: &HeaderMap, _: &[u8]) -> serde_json::Result<()> {
        Ok(())
    }
}

/// 200 with a `T` as JSON and its entity tag in the header `ETag`.
#[derive(Clone, Debug, Deserialize)]
pub struct Tagged<T> {
    /// The object.
    pub value: T,
    /// The value of the header, with its quotes.
    pub tag: String,
}

impl<T: Serialize + DeserializeOwned + JsonSchema> Answer for Tagged<T> {
    type Content = Self;

    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let mut response = describe_json::<T>(generator);
        response["headers"] = json!({ "ETag": response_header("The version, for `If-Match`.") });
        responses.insert("200".to_owned(), response);
    }

    fn parse(headers: &HeaderMap, body: &[u8]) -> serde_json::Result<Self> {
        let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
        let tag = tag.unwrap_or_default().to_owned();
        Ok(Self { value: serde_json::from_slice(body)?, tag })
    }
}

/// 200 with a `T` as JSON from a deprecated operation: the headers name its replacement.
#[derive(Clone, Debug)]
pub struct Deprecated<T>(pub T);

impl<T: Serialize + DeserializeOwned + JsonSchema> Answer for Deprecated<T> {
    type Content = T;

    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let mut response = describe_json::<T>(generator);
        response["headers"] = json!({
            "Deprecation": response_header("Since when the address is deprecated (RFC 9745)."),
            "Link": response_header("The replacement, with the relation `successor-version`."),
        });
        responses.insert("200".to_owned(), response);
    }
}

/// 202 with a `T` as JSON: the work is recorded and done later.
#[derive(Clone, Debug)]
pub struct Accepted<T>(pub T);

impl<T: Serialize + DeserializeOwned + JsonSchema> Answer for Accepted<T> {
    type Content = T;

    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        responses.insert("202".to_owned(), describe_json::<T>(generator));
    }
}

/// 204 without a body.
#[derive(Clone, Copy, Debug)]
pub struct NoContent;

impl Answer for NoContent {
    type Content = ();

    fn describe(_: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        responses.insert("204".to_owned(), json!({ "description": "Done." }));
    }
}

/// A file of the media type that `K` names. Its handler builds the response itself.
#[derive(Clone, Copy, Debug)]
pub struct File<K>(std::marker::PhantomData<K>);

/// The kind of a [`File`].
pub trait FileKind {
    /// The media type: `text/csv`.
    const MEDIA_TYPE: &'static str;
    /// One sentence about the file.
    const DESCRIPTION: &'static str;
}

impl<K: FileKind> Answer for File<K> {
    type Content = Vec<u8>;

    fn describe(_: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let schema = if K::MEDIA_TYPE.starts_with("text/") {
            json!({ "type": "string" })
        } else {
            json!({ "contentMediaType": K::MEDIA_TYPE })
        };
        let response = json!({
            "description": K::DESCRIPTION,
            "content": { K::MEDIA_TYPE: { "schema": schema } },
        });
        responses.insert("200".to_owned(), response);
    }

    fn parse(_: &HeaderMap, body: &[u8]) -> serde_json::Result<Vec<u8>> {
        Ok(body.to_vec())
    }
}

/// The text that confirms a removal.
#[derive(Clone, Copy, Debug)]
pub struct Removal;

impl FileKind for Removal {
    const MEDIA_TYPE: &'static str = "text/plain";
    const DESCRIPTION: &'static str =
        "`removed`, as a JSON string with `Accept: application/json`.";
}
