//! Ingest: items that providers publish, change and withdraw, and their rights.

use http::HeaderMap;
use jiff::Timestamp;
use model::{ItemKey, MediaType};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::access::{Access, KnownCaller, UnknownCaller};
use crate::answer::{Answer, File, FileKind, Json, Tagged, response_header};
use crate::body::{JsonBody, JsonReader, NoBody, RawBody, RawBodyKind, RequestBody};
use crate::endpoint::{RequestHeader, Section};
use crate::fault::Fault;
use crate::{endpoint, property};

/// Bytes of a change of an item, of a template, and of the request that publishes an upload. A document with a
/// long text is below 200 kB.
pub const EDIT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of the source rights in a request or in the file of a source, and of the whole override of an item; as
/// JSON. Terms of use and prompts are the longest texts.
pub const RIGHTS_STATEMENT_BYTES_MAX: usize = 64 * 1024;

const SECTION: Section = Section {
    name: "Ingest",
    description: "Publish, change and withdraw items. For callers with the role `ROLE_PROVIDER`.",
};

/// The address of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemPath {
    /// The media type of the item.
    #[schemars(schema_with = "property::words::<MediaType>")]
    pub media_type: MediaType,
    /// The id of the item within its media type.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"))]
    #[schemars(extend("format" = "item-id"))]
    pub id: String,
}

impl ItemPath {
    /// Returns the address of the item `key`.
    pub fn new(key: &ItemKey) -> Self {
        Self { media_type: key.media_type, id: key.id.to_string() }
    }
}

endpoint! {
    /// Publish an item.
    ///
    /// The document, with its files as further parts, each named by its rendition, for example `NormalHires.jpg` or
    /// `a000_NormalHires.jpg`. `uri` and `renditions` may be omitted. The item is published completely or not at all.
    /// `rights` are the source rights of the files; of each property they take precedence over the files, the document
    /// and the settings.
    // The caller of `PutItem` is authenticated by its handler, which reads the body of a refused request.
    PutItem: PUT "/ingest/v1/{mediaType}/{id}", "putItem", UnknownCaller: Access::ROLES, RawBody<ItemFiles> => SentItem, [RequestHeader::REQUEST_ID], NotFound {
        #[serde(flatten)]
        pub item: ItemPath,
    }

    /// The stored document of an item.
    ///
    /// The document as it is stored, whatever its status, without what depends on the host: addresses and renditions.
    /// `ETag` identifies the version for a change.
    LoadStoredItem: GET "/ingest/v1/{mediaType}/{id}", "getStoredItem", KnownCaller, NoBody => StoredItem, NotFound {
        #[serde(flatten)]
        pub item: ItemPath,
    }

    /// Change an item.
    ///
    /// Changes the document by a merge patch (RFC 7396) on the version that `If-Match` names; `*` stands for any. The
    /// changed document is checked by the schema and by the house rules, gets the next `version`, and the change is
    /// recorded with user, time, old and new values. `null` removes a property: `embargoed` with `null` ends the embargo
    /// at once. `uri`, `type`, `version` and other properties that the service sets cannot be changed.
    /// `version_conflict` means that the item changed meanwhile.
    ChangeItem: PATCH "/ingest/v1/{mediaType}/{id}", "changeItem", KnownCaller, MergePatch => StoredItem, [RequestHeader::IF_MATCH], NotFound, Stale {
        #[serde(flatten)]
        pub item: ItemPath,
        /// The id of a metadata template, whose changes are made first.
        #[schemars(range(min = 1))]
        pub template: Option<i64>,
    }

    /// Withdraw an item.
    ///
    /// The item is removed from search and media.
    WithdrawItem: DELETE "/ingest/v1/{mediaType}/{id}", "withdrawItem", KnownCaller, NoBody => File<Withdrawal>, NotFound {
        #[serde(flatten)]
        pub item: ItemPath,
    }

    /// Changes of an item by editors.
    ///
    /// The latest 100 changes, newest first, including withdrawals by a feed. Long values are shortened.
    ListItemChanges: GET "/ingest/v1/{mediaType}/{id}/changes", "getItemChanges", KnownCaller, NoBody => Json<Vec<ItemEdit>>, NotFound {
        #[serde(flatten)]
        pub item: ItemPath,
    }

    /// Rights override of an item.
    ///
    /// The properties that were set for the item, without those of its files, its source and the settings; an empty
    /// object if there are none.
    LoadItemRights: GET "/ingest/v1/{mediaType}/{id}/rights", "getItemRights", KnownCaller, NoBody => Json<ItemRights>, NotFound {
        #[serde(flatten)]
        pub item: ItemPath,
    }

    /// Change the rights override of an item.
    ///
    /// Changes the properties that are set for the item. They take precedence over the source of the files, the
    /// settings, the document and the files, in all renditions, documents and pages, and stay when a new version of the
    /// item arrives. Documents state the digital source type, the web statement, usage terms, copyright owners and
    /// instructions in place of the values that were sent; their other properties stay. `null` removes a property that
    /// was set; properties that are not named stay, and an empty value is refused. The override of an item has at most
    /// 65536 bytes in all. Caches, CDNs and search follow as after a new version of the item; streams and notifications
    /// do not report the item again. The change is recorded with user, time, old and new value.
    SetItemRights: PUT "/ingest/v1/{mediaType}/{id}/rights", "setItemRights", KnownCaller, JsonBody<ItemRights, RIGHTS_STATEMENT_BYTES_MAX> => Json<ItemRights>, NotFound {
        #[serde(flatten)]
        pub item: ItemPath,
    }

    /// Changes of the rights override of an item.
    ///
    /// The latest 100 changes, newest first, each with what it changed.
    ListItemRightsChanges: GET "/ingest/v1/{mediaType}/{id}/rights/changes", "getItemRightsChanges", KnownCaller, NoBody => Json<Vec<ItemRightsChange>>, NotFound {
        #[serde(flatten)]
        pub item: ItemPath,
    }
}

/// The document of an item, with or without its files. Its handler reads the body itself.
#[derive(Clone, Copy, Debug)]
pub struct ItemFiles;

impl RawBodyKind for ItemFiles {
    fn describe(generator: &mut SchemaGenerator) -> Value {
        json!({
            "required": true,
            "description": "The document, with or without its files.",
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["item"],
                        "properties": {
                            "item": sent_document(),
                            "rights": generator.subschema_for::<ItemRights>(),
                        },
                        "additionalProperties": {
                            "type": "string",
                            "contentMediaType": "application/octet-stream",
                        },
                    },
                    "encoding": {
                        "item": { "contentType": "application/json" },
                        "rights": { "contentType": "application/json" },
                    },
                },
                "application/json": {
                    "schema": sent_document(),
                    "example": {
                        "headline": "A headline",
                        "byline": "Name/Agency",
                        "pubstatus": "usable",
                        "versioncreated": "2026-01-31T12:00:00Z",
                        "description_text": "What it shows.",
                    },
                },
            },
        })
    }
}

/// A merge patch (RFC 7396) of the document of an item.
#[derive(Clone, Copy, Debug)]
pub struct MergePatch;

/// A merge patch as a body whose type may be declared in any way.
type PatchBody = JsonBody<Map<String, Value>, EDIT_BYTES_MAX>;

impl RequestBody for MergePatch {
    const BYTES_MAX: usize = EDIT_BYTES_MAX;

    type Content = Map<String, Value>;
    type Reader = JsonReader<Map<String, Value>>;

    fn read(reader: &Self::Reader, body: &[u8]) -> Result<Self::Content, Vec<Fault>> {
        PatchBody::read(reader, body)
    }

    fn describe(generator: &mut SchemaGenerator) -> Option<Value> {
        let schema = generator.subschema_for::<Map<String, Value>>();
        let mut patch = schema.clone();
        // Generated clients name a class after each of the bodies, and choose the media type by the class.
        patch.insert("title".to_owned(), "MergePatch".into());
        Some(json!({
            "required": true,
            "description": "The merge patch.",
            "content": {
                "application/merge-patch+json": { "schema": patch },
                "application/json": {
                    "schema": schema,
                    "example": { "headline": "A better headline" },
                },
            },
        }))
    }
}

/// The schema of a document without what the service sets.
pub(crate) fn sent_document() -> Value {
    json!({ "$ref": "#/components/schemas/NewsItemSent" })
}

/// 200 or 201 with the document of a published item as it is served, and its address.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedItem {
    /// The address of the item.
    pub uri: String,
}

impl Answer for PublishedItem {
    type Content = Self;

    fn describe(_: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let outcomes =
            [("200", "The item replaced an earlier version."), ("201", "The item is new.")];
        for (status, outcome) in outcomes {
            let response = json!({
                "description": format!("{outcome} The document as it is served."),
                "headers": { "Location": response_header("The item's media URL.") },
                "content": {
                    "application/json": { "schema": { "$ref": "#/components/schemas/NewsItem" } },
                },
            });
            responses.insert(status.to_owned(), response);
        }
    }
}

/// [`PublishedItem`] in answer to a body that may be a file without a document, which is 415.
#[derive(Clone, Copy, Debug)]
pub struct SentItem;

impl Answer for SentItem {
    type Content = PublishedItem;

    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        PublishedItem::describe(generator, responses);
        let schema = json!({ "$ref": "#/components/schemas/Errors" });
        let refusal = json!({
            "description": "The body is a file without a document.",
            "content": { "application/json": { "schema": schema } },
        });
        responses.insert("415".to_owned(), refusal);
    }
}

/// 200 with the document of an item as it is stored, and its entity tag.
#[derive(Clone, Copy, Debug)]
pub struct StoredItem;

impl Answer for StoredItem {
    type Content = Tagged<Map<String, Value>>;

    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        Self::Content::describe(generator, responses);
        let response = &mut responses["200"];
        response["description"] = "The document as it is stored.".into();
        response["content"]["application/json"]["schema"] = sent_document();
    }

    fn parse(headers: &HeaderMap, body: &[u8]) -> serde_json::Result<Self::Content> {
        Self::Content::parse(headers, body)
    }
}

/// The text that confirms a withdrawal.
#[derive(Clone, Copy, Debug)]
pub struct Withdrawal;

impl FileKind for Withdrawal {
    const MEDIA_TYPE: &'static str = "text/plain";
    const DESCRIPTION: &'static str =
        "`withdrawn`, as a JSON string with `Accept: application/json`.";
}

/// A change of an item by an editor.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ItemEdit {
    /// The time of the change.
    pub changed: Timestamp,
    /// The version after the change.
    pub version: String,
    /// The properties that changed; `file` stands for the file of an upload.
    pub changes: Vec<ItemPropertyEdit>,
    /// The name of the user at that time.
    pub user: Option<String>,
}

/// The change of a property.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ItemPropertyEdit {
    pub property: String,
    /// The value before; absent if there was none.
    pub old: Option<String>,
    /// The value after; absent if it was removed.
    pub new: Option<String>,
}

/// Properties of the IPTC Photo Metadata Standard 2025.1 about rights and provenance, by the names of its
/// TechReference.
///
/// A text or a URI is a string, a text in several languages an object by language with `x-default`.
/// `digitalSourceType` and `dataMining` accept a term without its address too. `imageRegion` is not accepted:
/// regions belong to the pixels of a file, so only the file itself states them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(example = json!({
    "digitalSourceType": "trainedAlgorithmicMedia",
    "dataMining": "DMI-PROHIBITED-AIMLTRAINING",
    "webstatementRights": "https://agency.example/rights",
}))]
pub struct ItemRights(pub Map<String, Value>);

/// A change of the rights override of an item.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemRightsChange {
    /// The time of the change.
    pub changed: Timestamp,
    /// The properties that changed, with their new values; `null` for one that was removed.
    pub rights: Map<String, Value>,
    /// The name of the user at that time.
    pub user: Option<String>,
}
