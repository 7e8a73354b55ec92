//! The target of a request that calls an endpoint.

use std::fmt::Write;

use serde_json::Value;

use crate::endpoint::Endpoint;

/// Prints the path and query of a request with the parameters `endpoint`.
pub fn target<E: Endpoint>(endpoint: &E) -> String {
    // The parameters are texts, numbers, booleans and lists of them, which JSON can hold.
    let values = serde_json::to_value(endpoint).expect("parameters are JSON");
    let mut path = E::PATH.to_owned();
    let mut query = String::new();
    for (name, value) in values.as_object().into_iter().flatten() {
        let segment = format!("{{{name}}}");
        if path.contains(&segment) {
            path = path.replace(&segment, &encode(&printed(value)));
            continue;
        }
        if let Value::Array(elements) = value {
            elements.iter().for_each(|element| push(&mut query, name, &printed(element)));
        } else if !value.is_null() {
            push(&mut query, name, &printed(value));
        }
    }
    path + &query
}

fn printed(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn push(query: &mut String, name: &str, value: &str) {
    let mark = if query.is_empty() { '?' } else { '&' };
    write!(query, "{mark}{}={}", encode(name), encode(value)).expect("a text grows");
}

/// Escapes everything but unreserved characters and the colon (RFC 3986), so that a value is one segment and never `..`.
fn encode(text: &str) -> String {
    let is_dots = text == "." || text == "..";
    model::percent_encode(text, |byte| {
        byte.is_ascii_alphanumeric() || b"-_~:".contains(&byte) || (byte == b'.' && !is_dots)
    })
}
