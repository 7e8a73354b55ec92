//! The bodies of requests.

use std::marker::PhantomData;

use jsonschema::Validator;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::fault::{Fault, Location};
use crate::limits::COLLECTION_ELEMENTS_MAX;
use crate::schema;

/// A kind of body that operations accept.
pub trait RequestBody {
    /// The longest body, in bytes.
    const BYTES_MAX: usize;

    /// The body after it was read.
    type Content: Send;
    /// Prepared once for all requests of an operation.
    type Reader: Default + Send + Sync;

    /// Reads `body`.
    ///
    /// Fails with everything that is wrong with it.
    fn read(reader: &Self::Reader, body: &[u8]) -> Result<Self::Content, Vec<Fault>>;

    /// Describes the body for OpenAPI; `None` if the operation has none.
    fn describe(generator: &mut SchemaGenerator) -> Option<Value>;
}

/// No body. What a client sends is ignored.
#[derive(Clone, Copy, Debug)]
pub struct NoBody;

impl RequestBody for NoBody {
    const BYTES_MAX: usize = 0;

    type Content = ();
    type Reader = ();

    fn read((): &(), _: &[u8]) -> Result<(), Vec<Fault>> {
        Ok(())
    }

    fn describe(_: &mut SchemaGenerator) -> Option<Value> {
        None
    }
}

/// A body of the kind `K`, which the handler reads itself.
#[derive(Clone, Copy, Debug)]
pub struct RawBody<K>(PhantomData<K>);

/// The kind of a [`RawBody`].
pub trait RawBodyKind {
    /// Describes the body for OpenAPI.
    fn describe(generator: &mut SchemaGenerator) -> Value;
}

impl<K: RawBodyKind> RequestBody for RawBody<K> {
    const BYTES_MAX: usize = 0;

    type Content = ();
    type Reader = ();

    fn read((): &(), _: &[u8]) -> Result<(), Vec<Fault>> {
        Ok(())
    }

    fn describe(generator: &mut SchemaGenerator) -> Option<Value> {
        Some(K::describe(generator))
    }
}

/// Longest JSON body of most operations, in bytes.
pub const JSON_BODY_BYTES_MAX: usize = 1 << 16;

/// A `T` as JSON, whatever the `Content-Type` of the request.
#[derive(Clone, Copy, Debug)]
pub struct JsonBody<T, const BYTES_MAX: usize = JSON_BODY_BYTES_MAX>(PhantomData<T>);

impl<T, const BYTES_MAX: usize> RequestBody for JsonBody<T, BYTES_MAX>
where
    T: Serialize + DeserializeOwned + JsonSchema + Send + 'static,
{
    const BYTES_MAX: usize = BYTES_MAX;

    type Content = T;
    type Reader = JsonReader<T>;

    fn read(reader: &JsonReader<T>, body: &[u8]) -> Result<T, Vec<Fault>> {
        reader.read(parse_json(body)?, Vec::new())
    }

    fn describe(generator: &mut SchemaGenerator) -> Option<Value> {
        let schema = generator.subschema_for::<T>();
        Some(json!({
            "required": true,
            "description": schema::first_paragraph(&schema::description::<T>()),
            "content": { "application/json": { "schema": schema } },
        }))
    }
}

/// Parses a body, whose type may be declared in any way.
pub(crate) fn parse_json(body: &[u8]) -> Result<Value, Vec<Fault>> {
    if body.iter().all(u8::is_ascii_whitespace) {
        let message = "the body is empty, expected JSON";
        return Err(vec![Fault::new("required", Location::Body, "", message)]);
    }
    serde_json::from_slice(body).map_err(|cause| {
        let message = format!("the body is not JSON: {cause}");
        vec![Fault::new("format", Location::Body, "", message)]
    })
}

/// Elements of a list that are checked for faults: one more than the longest list that a schema allows.
const CHECKED_ELEMENTS_MAX: usize = COLLECTION_ELEMENTS_MAX + 1;

/// Removes the elements of each list beyond [`CHECKED_ELEMENTS_MAX`]. The list is still too long for its schema.
fn shorten_lists(value: &mut Value) {
    match value {
        Value::Array(elements) => {
            elements.truncate(CHECKED_ELEMENTS_MAX);
            elements.iter_mut().for_each(shorten_lists);
        }
        Value::Object(members) => members.values_mut().for_each(shorten_lists),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reads and checks the JSON bodies of one operation.
#[derive(Debug)]
pub struct JsonReader<T> {
    validator: Validator,
    content: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> JsonReader<T> {
    /// Converts `body`, of which `further` faults are known that its schema cannot express.
    ///
    /// Fails with everything that is wrong with it.
    pub(crate) fn read(&self, mut body: Value, mut further: Vec<Fault>) -> Result<T, Vec<Fault>> {
        if !further.is_empty() || !self.validator.is_valid(&body) {
            // The validator collects the faults of all elements before the first is reported.
            shorten_lists(&mut body);
            let mut faults = Fault::collect(&self.validator, &body, |_| Location::Body);
            // A property that breaks its schema too is reported once.
            further.retain(|fault| faults.iter().all(|known| known.path != fault.path));
            faults.append(&mut further);
            return Err(faults);
        }
        // The schema is derived from the type, so a value that it allows fails only where a type is narrower than its schema.
        serde_json::from_value(body)
            .map_err(|cause| vec![Fault::new("format", Location::Body, "", cause.to_string())])
    }
}

impl<T: JsonSchema> Default for JsonReader<T> {
    fn default() -> Self {
        let schema: Schema = schema::for_requests().into_root_schema_for::<T>();
        Self { validator: schema::compile(schema.as_value()), content: PhantomData }
    }
}
