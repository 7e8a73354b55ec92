//! Uploads: files that are sent in parts, described and published, and metadata templates.

use jiff::Timestamp;
use model::item::MetadataEdits;
use model::{ItemId, MediaType};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::access::{Access, KnownCaller, UnknownCaller};
use crate::answer::{
    Answer, File, FileKind, Json, NoContent, Removal, Tagged, describe_json, response_header,
};
use crate::body::{JsonBody, JsonReader, NoBody, RawBody, RawBodyKind, RequestBody, parse_json};
use crate::endpoint::{RequestHeader, Section};
use crate::fault::{Fault, Location};
use crate::ingest::{EDIT_BYTES_MAX, PublishedItem, sent_document};
use crate::{endpoint, property};

/// Characters of the name of a template.
pub const TEMPLATE_NAME_CHARS_MAX: usize = 100;

const SECTION: Section = Section {
    name: "Uploads",
    description: "Send files in parts, with the protocol tus 1.0.0 \
        (https://tus.io/protocols/resumable-upload) and its extensions creation, expiration, checksum and \
        termination; describe and publish what was sent; and keep metadata templates. For callers with the role \
        `ROLE_PROVIDER`.",
};

const UPLOAD_LENGTH: RequestHeader =
    RequestHeader::required("Upload-Length", "The length of the file in bytes.").integer(1);
const UPLOAD_METADATA: RequestHeader = RequestHeader::required(
    "Upload-Metadata",
    "`filename` and its value in base64, for example `filename aGFyYm91ci5qcGc=`, and optionally \
        `fingerprint` with a text by which the client recognizes its file again, separated by commas.",
);
const UPLOAD_OFFSET: RequestHeader =
    RequestHeader::required("Upload-Offset", "The number of bytes that were received before.")
        .integer(0);
const UPLOAD_CHECKSUM: RequestHeader = RequestHeader::optional(
    "Upload-Checksum",
    "`sha256` or `sha1`, a space, and the checksum of the body in base64.",
);
/// A change of a template need not name the version.
const TEMPLATE_VERSION: RequestHeader =
    RequestHeader { required: false, ..RequestHeader::IF_MATCH };

endpoint! {
    /// The caller's uploads.
    ///
    /// Uploads that are not published yet and have not expired, oldest first.
    ListUploads: GET "/ingest/v1/uploads", "getUploads", KnownCaller, NoBody => Json<Vec<Upload>> {}

    /// Declare an upload.
    ///
    /// Declares the length and the name of a file: a photograph (`.jpg`, `.jpeg`), a graphic (`.pdf`, `.eps`) or a video
    /// (`.mp4`). An upload that receives nothing expires. `upload_quota` means that the caller has too many unpublished
    /// uploads, or that they take too much space.
    // The handlers of the protocol authenticate callers themselves: every answer has its version, refusals too.
    CreateUpload: POST "/ingest/v1/uploads", "createUpload", UnknownCaller: Access::ROLES, NoBody => UploadCreated, [UPLOAD_LENGTH, UPLOAD_METADATA], Stale, TooLarge {}

    /// Progress of an upload.
    ///
    /// The number of bytes received. `HEAD` gives the headers alone, as the protocol asks for it.
    LoadUpload: GET "/ingest/v1/uploads/{id}", "getUpload", UnknownCaller: Access::ROLES, NoBody => UploadProgress, NotFound, Stale {
        /// The id of the upload.
        #[schemars(with = "Uuid")]
        pub id: String,
    }

    /// Send bytes of an upload.
    ///
    /// Appends bytes at the offset that was reached. What arrives before a connection breaks off is stored, unless
    /// `Upload-Checksum` covers the body. `upload_offset` means that the offset is another one.
    AppendToUpload: PATCH "/ingest/v1/uploads/{id}", "appendToUpload", UnknownCaller: Access::ROLES, RawBody<UploadBytes> => BytesStored, [UPLOAD_OFFSET, UPLOAD_CHECKSUM], NotFound, Conflict, Stale {
        /// The id of the upload.
        #[schemars(with = "Uuid")]
        pub id: String,
    }

    /// Discard an upload.
    ///
    /// Removes the upload with its bytes.
    DiscardUpload: DELETE "/ingest/v1/uploads/{id}", "discardUpload", UnknownCaller: Access::ROLES, NoBody => NoContent, NotFound, Stale {
        /// The id of the upload.
        #[schemars(with = "Uuid")]
        pub id: String,
    }

    /// Document of an upload.
    ///
    /// The document that the file describes by its embedded metadata, and the item that it would become.
    /// `upload_incomplete` means that bytes are missing.
    DescribeUpload: GET "/ingest/v1/uploads/{id}/document", "getUploadDocument", KnownCaller, NoBody => Json<UploadDescription>, NotFound, Conflict, TooLarge {
        /// The id of the upload.
        #[schemars(with = "Uuid")]
        pub id: String,
    }

    /// Picture of an upload.
    ///
    /// A small JPEG of an uploaded photograph, upright and in sRGB.
    PreviewUpload: GET "/ingest/v1/uploads/{id}/preview", "getUploadPreview", KnownCaller, NoBody => File<UploadPreview>, NotFound, Conflict, TooLarge {
        /// The id of the upload.
        #[schemars(with = "Uuid")]
        pub id: String,
    }

    /// Publish an upload.
    ///
    /// Makes the upload an item and removes it. The document is what the file describes, changed by the template and then
    /// by `document`; it is checked by the schema and by the house rules. A replaced item keeps its embargo and its
    /// status unless they say others; `embargoed` with `null` ends the embargo. `item_exists` means that the upload would
    /// replace an item, `version_conflict` that the item changed while the upload was read.
    PublishUpload: POST "/ingest/v1/uploads/{id}/publish", "publishUpload", KnownCaller, JsonBody<UploadPublish, EDIT_BYTES_MAX> => PublishedItem, NotFound, Conflict, Stale {
        /// The id of the upload.
        #[schemars(with = "Uuid")]
        pub id: String,
        /// The id of a metadata template, whose changes are made first.
        #[schemars(range(min = 1))]
        pub template: Option<i64>,
    }

    /// Metadata templates.
    ///
    /// The templates of the caller's organization and those that all providers share, by name.
    ListTemplates: GET "/ingest/v1/templates", "getTemplates", KnownCaller, NoBody => Json<Vec<MetadataTemplate>> {}

    /// Create a metadata template.
    ///
    /// A template changes fields of items and uploads. It belongs to the caller's organization, or all providers share
    /// it.
    CreateTemplate: POST "/ingest/v1/templates", "createTemplate", KnownCaller, TemplateBody => TemplateCreated, Conflict {}

    /// A metadata template.
    ///
    /// The template with its entity tag.
    LoadTemplate: GET "/ingest/v1/templates/{id}", "getTemplate", KnownCaller, NoBody => Tagged<MetadataTemplate>, NotFound {
        /// The id of the template.
        pub id: i64,
    }

    /// Replace a metadata template.
    ///
    /// `version_conflict` means that it changed since the version that `If-Match` names. A template that another
    /// organization shares is not changed.
    UpdateTemplate: PUT "/ingest/v1/templates/{id}", "updateTemplate", KnownCaller, TemplateBody => Tagged<MetadataTemplate>, [TEMPLATE_VERSION], NotFound, Conflict, Stale {
        /// The id of the template.
        pub id: i64,
    }

    /// Remove a metadata template.
    ///
    /// Items to which it was applied stay as they are. A template that another organization shares is not removed.
    RemoveTemplate: DELETE "/ingest/v1/templates/{id}", "removeTemplate", KnownCaller, NoBody => File<Removal>, [TEMPLATE_VERSION], NotFound, Stale {
        /// The id of the template.
        pub id: i64,
    }
}

/// Bytes of a file. The handler reads the body itself.
#[derive(Clone, Copy, Debug)]
pub struct UploadBytes;

impl RawBodyKind for UploadBytes {
    fn describe(_: &mut SchemaGenerator) -> Value {
        json!({
            "required": true,
            "description": "The bytes.",
            "content": { "application/offset+octet-stream": {
                "schema": { "contentMediaType": "application/octet-stream" },
            } },
        })
    }
}

/// 201 with the address of a declared upload.
#[derive(Clone, Copy, Debug)]
pub struct UploadCreated;

impl Answer for UploadCreated {
    type Content = ();

    fn describe(_: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let mut headers = json!({ "Location": response_header("The address of the upload.") });
        add_progress(&mut headers);
        let response = json!({ "description": "The upload is declared.", "headers": headers });
        responses.insert("201".to_owned(), response);
    }
}

/// 200 with an upload, whose progress is in the headers too.
#[derive(Clone, Copy, Debug)]
pub struct UploadProgress;

impl Answer for UploadProgress {
    type Content = Upload;

    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let mut response = describe_json::<Upload>(generator);
        add_progress(&mut response["headers"]);
        responses.insert("200".to_owned(), response);
    }
}

/// 204 with the progress of an upload in the headers.
#[derive(Clone, Copy, Debug)]
pub struct BytesStored;

impl Answer for BytesStored {
    type Content = ();

    fn describe(_: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let mut stored = json!({ "description": "The bytes are stored." });
        add_progress(&mut stored["headers"]);
        responses.insert("204".to_owned(), stored);
        let refusals = [
            ("415", "The body is not declared as `application/offset+octet-stream`."),
            ("460", "The bytes do not have the checksum; none is stored."),
        ];
        for (status, description) in refusals {
            let schema = json!({ "$ref": "#/components/schemas/Errors" });
            let content = json!({ "application/json": { "schema": schema } });
            let refusal = json!({ "description": description, "content": content });
            responses.insert(status.to_owned(), refusal);
        }
    }
}

/// Adds the headers of the upload protocol to `headers`.
fn add_progress(headers: &mut Value) {
    headers["Tus-Resumable"] = response_header("The version of the protocol.");
    headers["Upload-Offset"] = response_header("The number of bytes received.");
    headers["Upload-Length"] = response_header("The length of the file in bytes.");
    headers["Upload-Expires"] = response_header("When the upload expires.");
}

/// The picture of an uploaded photograph.
#[derive(Clone, Copy, Debug)]
pub struct UploadPreview;

impl FileKind for UploadPreview {
    const MEDIA_TYPE: &'static str = "image/jpeg";
    const DESCRIPTION: &'static str = "The picture.";
}

/// 201 with a template, its entity tag and its address.
#[derive(Clone, Copy, Debug)]
pub struct TemplateCreated;

impl Answer for TemplateCreated {
    type Content = MetadataTemplate;

    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let mut response = describe_json::<MetadataTemplate>(generator);
        response["headers"] = json!({
            "ETag": response_header("The version, for `If-Match`."),
            "Location": response_header("The address of the template."),
        });
        responses.insert("201".to_owned(), response);
    }
}

/// The upload.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upload {
    pub id: Uuid,
    /// The name of the file without a path.
    pub file_name: String,
    /// The length of the file in bytes.
    pub length: u64,
    /// The number of bytes received.
    pub received: u64,
    pub created: Timestamp,
    /// The time at which the upload expires unless bytes arrive.
    pub expires: Timestamp,
    /// The text by which the client recognizes its file.
    pub fingerprint: Option<String>,
}

/// The item that an upload would become, with its document.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadDescription {
    /// The media type of the item.
    #[schemars(schema_with = "property::words::<MediaType>")]
    pub media_type: MediaType,
    /// True if that item exists.
    pub exists: bool,
    #[schemars(schema_with = "document")]
    pub document: Map<String, Value>,
    /// Problems of the file and its metadata.
    pub warnings: Vec<String>,
    /// The id that the item would get; absent if its content decides.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub id: Option<ItemId>,
    /// The width of a photograph in pixels.
    pub width: Option<u32>,
    /// The height of a photograph in pixels.
    pub height: Option<u32>,
}

fn document(_: &mut SchemaGenerator) -> schemars::Schema {
    sent_document().try_into().expect("a reference is a schema")
}

/// The options of the publication.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({ "document": { "headline": "A headline", "byline": "Name/Agency" } }))]
pub struct UploadPublish {
    /// The item's id; by default from the name or the content of the file.
    #[schemars(length(max = ItemId::CHARS_MAX), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"))]
    pub id: Option<String>,
    /// The outcome if the item exists: the upload is refused, replaces the item, or becomes an item with an id from its
    /// content.
    #[serde(default)]
    pub existing: ExistingPolicy,
    /// A merge patch (RFC 7396) of the document that the file describes.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub document: Map<String, Value>,
}

/// The policy if the item of an upload exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ExistingPolicy {
    /// The upload is refused.
    #[default]
    Refuse,
    /// The upload is the next version of the item.
    Replace,
    /// The upload becomes a separate item, whose id comes from its content.
    New,
}

/// The template to store.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(example = json!({
    "name": "Football",
    "fields": {
        "byline": { "apply": "fill", "value": "Staff" },
        "keyword": { "apply": "append", "value": ["football"] },
    },
}))]
pub struct MetadataTemplateSent {
    /// The name of the template.
    #[schemars(length(max = TEMPLATE_NAME_CHARS_MAX), regex(pattern = property::LINE))]
    pub name: String,
    /// True if all providers use it. Without it a new template belongs to the organization, and a stored one keeps its
    /// owner.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub shared: Option<bool>,
    pub fields: MetadataFields,
}

/// A metadata template, whose name and fields have rules beyond their schema.
#[derive(Clone, Copy, Debug)]
pub struct TemplateBody;

impl RequestBody for TemplateBody {
    const BYTES_MAX: usize = EDIT_BYTES_MAX;

    type Content = MetadataTemplateSent;
    type Reader = JsonReader<MetadataTemplateSent>;

    fn read(reader: &Self::Reader, body: &[u8]) -> Result<Self::Content, Vec<Fault>> {
        let body = parse_json(body)?;
        let further = template_faults(&body);
        reader.read(body, further)
    }

    fn describe(generator: &mut SchemaGenerator) -> Option<Value> {
        JsonBody::<MetadataTemplateSent>::describe(generator)
    }
}

/// Finds a name of spaces, and the first change of a field that is not understood.
fn template_faults(body: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    if body["name"].as_str().is_some_and(|name| name.trim().is_empty()) {
        faults.push(Fault::new("minimum", Location::Body, "name", "name is empty"));
    }
    if let Some(fields) = body["fields"].as_object()
        && let Err(error) = MetadataEdits::parse(fields)
    {
        let path = format!("fields.{}", error.field);
        let message = format!("{path} {}", error.message);
        faults.push(Fault::new(error.rule, Location::Body, path, message));
    }
    faults
}

/// The template.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetadataTemplate {
    pub id: i64,
    pub name: String,
    /// True if all providers use it.
    pub shared: bool,
    pub fields: MetadataFields,
    pub changed: Timestamp,
    /// The name of the user who changed it last.
    pub user: Option<String>,
}

/// Changes by field: `headline`, `description_text`, `byline`, `credit`, `source`, `slugline`, `person`,
/// `organisation`, `city`, `country`, `keyword`, `copyrightholder`, `copyrightnotice`, `usageterms`, `ednote`,
/// `language`, `urgency`, `embargoed`, `product`. Each is an object with `apply` (`fill` an empty field, `replace`,
/// `append`, `clear`) and `value`: a string, or a list of strings for a list. A value alone replaces, and `null`
/// clears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetadataFields(pub Map<String, Value>);
