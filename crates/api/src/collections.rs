//! Collections: named, ordered lists of items.

use http::HeaderMap;
use jiff::Timestamp;
use model::item::DocumentLayout;
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::access::KnownCaller;
use crate::answer::{Answer, Done, Json, response_header};
use crate::body::{JsonBody, NoBody};
use crate::endpoint::{RequestHeader, Section};
use crate::limits::COLLECTION_ELEMENTS_MAX;
use crate::{endpoint, property};

/// Longest body of a call with items, in bytes: [`COLLECTION_ELEMENTS_MAX`] URIs of 500 bytes each.
pub const COLLECTION_BODY_BYTES_MAX: usize = 512 * 1024;
/// Longest name of a collection, in characters.
pub const COLLECTION_NAME_CHARS_MAX: usize = 200;
/// Longest URI of an item, in characters.
const URI_CHARS_MAX: usize = 2048;

const SECTION: Section = Section {
    name: "Collections",
    description: "Named, ordered lists of items that users can share and download.",
};

endpoint! {
    /// The caller's collections.
    ///
    /// Oldest first.
    #[derive(Default)]
    #[serde(default)]
    ListCollections: GET "/collection/v1/collection", "getCollections", KnownCaller, NoBody => Json<Vec<ListedCollection>> {
        /// `bare` leaves out `content` and `removedContent`.
        #[serde(with = "property::Word")]
        #[schemars(schema_with = "property::words::<DocumentLayout>")]
        pub layout: DocumentLayout,
    }

    /// Create a collection.
    ///
    /// A new collection is empty.
    CreateCollection: POST "/collection/v1/collection", "addCollection", KnownCaller, JsonBody<CollectionBody, COLLECTION_BODY_BYTES_MAX> => Json<Collection>, Conflict {}

    /// A collection with its items.
    ///
    /// A public collection can be read by every caller who knows its id. `items` holds the documents of `content` that the
    /// caller may see.
    LoadCollection: GET "/collection/v1/collection/{id}", "getCollection", KnownCaller, NoBody => Json<CollectionWithItems>, NoCollection {
        /// The collection's id.
        pub id: String,
    }

    /// Rename, share or reorder a collection.
    ///
    /// Omitted properties keep their value; `name` may be omitted if `content` is given. `content` sets the order of the
    /// items: listed items come first, the others follow in their previous order. It never adds or removes items.
    UpdateCollection: PUT "/collection/v1/collection/{id}", "updateCollection", KnownCaller, JsonBody<CollectionChange, COLLECTION_BODY_BYTES_MAX> => Json<Collection>, NoCollection {
        /// The collection's id.
        pub id: String,
    }

    /// Delete a collection.
    ///
    /// The items stay in the archive.
    DeleteCollection: DELETE "/collection/v1/collection/{id}", "removeCollection", KnownCaller, NoBody => Done, NoCollection {
        /// The collection's id.
        pub id: String,
    }

    /// Add items.
    ///
    /// Items are appended in the order of the body; an item already in the collection keeps its position. Items that do not
    /// exist or that the caller may not see are skipped.
    AddCollectionItems: POST "/collection/v1/collection/{id}/items", "addCollectionItems", KnownCaller, JsonBody<CollectionItems, COLLECTION_BODY_BYTES_MAX> => Done, NoCollection, Conflict {
        /// The collection's id.
        pub id: String,
    }

    /// Remove items.
    ///
    /// Items that are not in the collection are ignored.
    RemoveCollectionItems: DELETE "/collection/v1/collection/{id}/items", "removeCollectionItems", KnownCaller, JsonBody<CollectionItems, COLLECTION_BODY_BYTES_MAX> => Done, NoCollection {
        /// The collection's id.
        pub id: String,
    }

    /// Download a collection as a zip.
    ///
    /// A zip with the files of every item that an agreement of the caller covers. Each item counts as a purchase, as when
    /// its own zip is downloaded. Items that cannot be delivered are left out and no order is placed for them;
    /// `left-out.txt` lists them with the reason.
    LoadCollectionZip: GET "/collection/v1/collection/{id}/zip", "getCollectionZip", KnownCaller, NoBody => CollectionZip, [RequestHeader::IF_NONE_MATCH, RequestHeader::IF_MATCH_ANY, RequestHeader::RANGE], NoCollection {
        /// The collection's id.
        pub id: String,
        /// The id of the agreement to buy under.
        pub agr: Option<i64>,
        /// Prefix file names with the item's position in the collection, such as `01_`.
        #[serde(default)]
        pub numbered: bool,
    }
}

/// A collection in the list of the caller's collections.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ListedCollection {
    Full(Collection),
    Bare(CollectionWithoutContent),
}

impl ListedCollection {
    /// Returns the properties besides the items.
    pub fn head(&self) -> &CollectionWithoutContent {
        match self {
            Self::Full(collection) => &collection.head,
            Self::Bare(head) => head,
        }
    }

    /// Returns the URIs of the items; `None` if the list leaves them out.
    pub fn content(&self) -> Option<&[String]> {
        match self {
            Self::Full(collection) => Some(&collection.content),
            Self::Bare(_) => None,
        }
    }
}

/// A collection without its items.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CollectionWithoutContent {
    pub id: Uuid,
    pub name: String,
    /// The owner's user name.
    pub owner: String,
    /// True if other users can read it.
    pub public: bool,
    pub created: Timestamp,
    /// The time of the last read, to the minute.
    pub accessed: Timestamp,
    /// The time of the last change.
    pub modified: Option<Timestamp>,
}

/// The collection.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Collection {
    #[serde(flatten)]
    pub head: CollectionWithoutContent,
    /// The `uri` of each item, in order.
    pub content: Vec<String>,
    /// The latest items that were withdrawn; only for the owner.
    pub removed_content: Option<Vec<RemovedCollectionItem>>,
}

/// An item that was removed from a collection because it was withdrawn.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RemovedCollectionItem {
    pub uri: String,
    /// The item's last headline.
    pub headline: Option<String>,
    pub description_text: Option<String>,
    /// The time of the removal.
    pub timestamp: Timestamp,
}

/// The collection with its items.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CollectionWithItems {
    #[serde(flatten)]
    pub collection: Collection,
    #[schemars(schema_with = "property::news_items")]
    pub items: Vec<Value>,
}

/// The collection's name. Other properties of a collection may be sent too, and are ignored.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CollectionBody {
    #[schemars(length(min = 1, max = COLLECTION_NAME_CHARS_MAX), regex(pattern = property::LINE))]
    pub name: String,
    /// True if other users can read it.
    #[serde(default)]
    pub public: bool,
}

/// The new values. Other properties of a collection may be sent too, and are ignored.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("anyOf" = [{ "required": ["name"] }, { "required": ["content"] }]))]
pub struct CollectionChange {
    #[schemars(with = "String")]
    #[schemars(length(min = 1, max = COLLECTION_NAME_CHARS_MAX), regex(pattern = property::LINE))]
    pub name: Option<String>,
    /// True if other users can read it.
    #[schemars(with = "bool")]
    pub public: Option<bool>,
    /// The order of the items.
    #[schemars(with = "Vec<String>", length(max = COLLECTION_ELEMENTS_MAX))]
    #[schemars(inner(url, length(max = URI_CHARS_MAX)))]
    pub content: Option<Vec<String>>,
}

/// The items.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CollectionItems(
    #[schemars(length(min = 1, max = COLLECTION_ELEMENTS_MAX))] pub Vec<CollectionItem>,
);

impl CollectionItems {
    /// Lists the items with these URIs.
    pub fn from_uris<'a>(uris: impl Iterator<Item = &'a str>) -> Self {
        Self(uris.map(|uri| CollectionItem { uri: uri.to_owned() }).collect())
    }
}

/// An item. Its other properties may be sent too, and are ignored.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CollectionItem {
    /// The item's `uri`, or the address of one of its renditions or of its page.
    #[schemars(url, length(max = URI_CHARS_MAX))]
    pub uri: String,
}

/// The zip file of a collection, or ranges of it. Its handler builds the response itself.
#[derive(Clone, Copy, Debug)]
pub struct CollectionZip;

impl Answer for CollectionZip {
    type Content = Vec<u8>;

    fn describe(_: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let whole = json!({
            "Accept-Ranges": response_header("`bytes`."),
            "Content-Disposition": response_header("A file name based on the collection's name."),
        });
        let range = optional_header("The returned range, if one was requested.");
        let size = response_header("The size of the zip file in bytes.");
        let zip = json!({ "schema": { "contentMediaType": "application/zip" } });
        let ranges = json!({ "schema": { "contentMediaType": "multipart/byteranges" } });
        let mut part = response("The requested ranges.", json!({ "Content-Range": range }));
        part["content"] = json!({ "application/zip": zip, "multipart/byteranges": ranges });
        let mut found = response("The zip file.", whole);
        found["content"] = json!({ "application/zip": zip });
        let text = "The requested range cannot be satisfied.";
        let mut no_part = response(text, json!({ "Content-Range": size }));
        no_part["content"] = json!({ "application/zip": zip });
        responses.insert("200".to_owned(), found);
        responses.insert("206".to_owned(), part);
        responses.insert("304".to_owned(), response("Not modified.", json!({})));
        responses.insert("412".to_owned(), response("The precondition failed.", json!({})));
        responses.insert("416".to_owned(), no_part);
    }

    fn parse(_: &HeaderMap, body: &[u8]) -> serde_json::Result<Vec<u8>> {
        Ok(body.to_vec())
    }
}

/// Describes a response with `headers` and the ones that all responses about the file have.
fn response(description: &str, mut headers: Value) -> Value {
    headers["ETag"] = response_header("A strong entity tag.");
    headers["Last-Modified"] = optional_header("When the item was stored.");
    headers["Cache-Control"] = response_header("Cache directives.");
    json!({ "description": description, "headers": headers })
}

fn optional_header(description: &str) -> Value {
    json!({ "description": description, "schema": { "type": "string" } })
}
