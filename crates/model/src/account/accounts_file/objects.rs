//! Readers for parts of an accounts file for which the derived code would be too lenient or would print secrets in
//! errors.

use std::{collections::HashSet, fmt, hash::Hash, marker::PhantomData};

use jiff::Timestamp;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::ContentHash;
use crate::account::{ChannelSettings, ProductId};

/// A JSON object. The derived code for a struct would also accept an array of the values in field order.
pub(super) struct JsonObject<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = JsonObject<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<JsonObject<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(JsonObject)
    }
}

/// Reads an optional value; `null` gives the default.
pub(in crate::account) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads an optional object.
pub(in crate::account) fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let object = Option::<JsonObject<T>>::deserialize(deserializer)?;
    Ok(object.map(|JsonObject(object)| object))
}

/// Reads an optional object; `null` gives the default.
pub(super) fn object_or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(object(deserializer)?.unwrap_or_default())
}

/// Reads an optional list of objects.
pub(super) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let objects: Vec<JsonObject<T>> = or_default(deserializer)?;
    Ok(objects.into_iter().map(|JsonObject(object)| object).collect())
}

/// Reads the optional id of a product. The id 0 is refused, because only orders use it.
pub(super) fn product_id<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ProductId>, D::Error> {
    let id = Option::deserialize(deserializer)?;
    if id == Some(ProductId(0)) {
        return Err(Error::custom("expected a whole number above 0"));
    }
    Ok(id)
}

/// Reads an optional list and removes repeated values.
pub(super) fn distinct<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Clone + Eq + Hash,
{
    let mut values: Vec<T> = or_default(deserializer)?;
    let mut seen = HashSet::new();
    values.retain(|value| seen.insert(value.clone()));
    Ok(values)
}

/// Reads an optional RFC 3339 time. jiff alone would also accept a time without seconds or with the name of a time
/// zone.
pub(super) fn read_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let bytes = text.as_bytes();
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let has_marks = marks.iter().all(|(at, mark)| bytes.get(*at) == Some(mark));
    let has_only_digits_and_marks =
        text.chars().all(|c| c.is_ascii_digit() || "-T:.Z+".contains(c));
    let time =
        if has_marks && has_only_digits_and_marks { text.parse::<Timestamp>().ok() } else { None };
    let time = time.ok_or_else(|| Error::custom("expected a time such as 2030-01-01T00:00:00Z"));
    time.map(Some)
}

/// Reads a UUID. The error of the `uuid` crate would repeat characters of the text.
pub(super) fn read_uuid<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| Error::custom("expected a UUID"))
}

/// Reads an optional SHA-256 hash. The error of [`ContentHash`] would repeat the text, which may be a key.
pub(super) fn read_hash<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ContentHash>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let hash = text.parse::<ContentHash>();
    hash.map(Some).map_err(|_| Error::custom("expected a SHA-256 hash of 64 hex digits"))
}

/// Reads the settings of a channel, which may be missing.
pub(super) fn read_settings<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ChannelSettings, D::Error> {
    let members: Option<UniqueMembers> = Option::deserialize(deserializer)?;
    Ok(members.map(|UniqueMembers(members)| ChannelSettings::new(members)).unwrap_or_default())
}

/// A JSON object without repeated names. `serde_json` alone would accept a repeated name, which is a mistake, and
/// use its last value.
struct UniqueMembers(Map<String, Value>);

impl<'de> Deserialize<'de> for UniqueMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueMembersVisitor)
    }
}

struct UniqueMembersVisitor;

impl<'de> Visitor<'de> for UniqueMembersVisitor {
    type Value = UniqueMembers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<UniqueMembers, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = entries.next_entry::<String, Value>()? {
            if members.insert(name, value).is_some() {
                return Err(Error::custom("a property occurs twice"));
            }
        }
        Ok(UniqueMembers(members))
    }
}
