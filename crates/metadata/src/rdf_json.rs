//! Converts RDF values to JSON values of the types in the table.

use serde_json::{Map, Value};

use crate::rdf_read::RdfValue;
use crate::rights::member::ValueKind::*;
use crate::rights::member::{Member, Structure, ValueKind};
use crate::rights::values::{self, X_DEFAULT};

/// Converts the value of a property or member; `None` if it has no value of its type.
///
/// Entries of a list and members of a structure that do not fit their type are dropped.
pub(super) fn value(member: &Member, rdf: &RdfValue) -> Option<Value> {
    if member.many.is_none() {
        return single(member.kind, rdf);
    }
    // A single value may stand without a list around it.
    let entries = if rdf.entries.is_empty() { std::slice::from_ref(rdf) } else { &rdf.entries };
    let entries: Vec<Value> =
        entries.iter().filter_map(|entry| single(member.kind, entry)).collect();
    (!entries.is_empty()).then_some(Value::Array(entries))
}

fn single(kind: ValueKind, rdf: &RdfValue) -> Option<Value> {
    match kind {
        AltLang => alternative(rdf),
        Structure(members) => structure(members, rdf),
        Text | Uri | Url | DateTime | Vocabulary(_) | Number(_) => {
            values::parse_xmp(kind, text(rdf))
        }
    }
}

/// Returns the text of a value in the default language, or else the first text.
fn text(rdf: &RdfValue) -> &str {
    let default = rdf.entries.iter().find(|entry| is_default(entry));
    match default.or(rdf.entries.first()) {
        // The recursion is as deep as elements nest, which the reader limits.
        Some(entry) => text(entry),
        None => &rdf.text,
    }
}

fn is_default(entry: &RdfValue) -> bool {
    entry.language.as_deref().is_some_and(values::is_x_default)
}

fn alternative(rdf: &RdfValue) -> Option<Value> {
    let entries = if rdf.entries.is_empty() { std::slice::from_ref(rdf) } else { &rdf.entries };
    let texts =
        entries.iter().map(|entry| (entry.language.as_deref().unwrap_or(X_DEFAULT), text(entry)));
    values::language_alternative(texts)
}

fn structure(structure: &Structure, rdf: &RdfValue) -> Option<Value> {
    // A single structure may stand in a list, or its members in a nested description.
    let rdf = if rdf.members.is_empty() { rdf.entries.first()? } else { rdf };
    let members: Map<String, Value> = structure
        .members()
        .filter_map(|member| {
            let found = rdf.members.iter().find(|found| found.member.name == member.name)?;
            Some((member.name.to_owned(), value(member, &found.value)?))
        })
        .collect();
    (!members.is_empty()).then_some(Value::Object(members))
}
