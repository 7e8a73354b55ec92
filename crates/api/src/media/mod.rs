//! Media by address: the description of the addresses, and the JSON documents among them that we define.
//!
//! Media addresses have a grammar of their own, which the server parses itself, so they are a table and not endpoints.

mod addresses;

use std::collections::BTreeMap;

use model::{MediaType, RenditionName};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strum::VariantNames;

use crate::access::Access;
use crate::answer::{describe_json, refuse, refuse_callers};
use crate::endpoint::Section;
use crate::orders::License;
use addresses::ADDRESSES;

/// The section of the addresses.
pub const SECTION: Section = Section {
    name: "Media",
    description: "Items and their renditions by URL. Metadata, Previews and Thumbnails of photos are public; those of \
                  other items are for callers whose search finds the item. Downloading a Hires (the original) is a purchase. \
                  Scripts of any origin may read public media, and every response to a request with `Authorization` or `ak` \
                  (CORS). Where the settings say so, responses state the conditions for crawlers in `Content-Usage`, \
                  `tdm-reservation` and `tdm-policy`.",
};

/// An address below `/media/{mediaType}/{id}`.
#[derive(Clone, Copy, Debug)]
struct MediaAddress {
    /// The name of the operation for generated clients.
    id: &'static str,
    /// The end of the path, after the id.
    path: &'static str,
    summary: &'static str,
    description: &'static str,
    /// The media types that have it; all if empty.
    media_types: &'static [MediaType],
    /// The names of the query parameters in [`query_parameter`].
    query: &'static [&'static str],
    access: Access,
    answer: MediaAnswer,
}

/// The access to media that need credentials.
const KNOWN: Access = Access { ak: true, ..Access::ROLES };
/// The access to media that callers without credentials may see too.
const OPEN: Access = Access { anonymous: true, ..KNOWN };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MediaAnswer {
    /// The page of the item, or a delivery.
    Page,
    /// A JSON document whose schema the server provides under this name.
    Json(&'static str),
    Renditions,
    PhotoMetadata,
    Ninjs,
    Licenses,
    /// A text of this media type.
    Text(&'static str),
    /// A JPEG.
    Picture,
    /// A picture in any format.
    Format,
    /// A picture in any format, which states its size.
    Sized,
    /// A file of this media type.
    File(&'static str),
}

impl MediaAnswer {
    /// Returns whether a client can ask for ranges of the answer.
    fn has_ranges(self) -> bool {
        !files(self).is_empty()
    }

    fn is_cacheable(self) -> bool {
        !matches!(self, Self::Page | Self::Licenses)
    }
}

/// The sizes and formats in which the picture of an item is available.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Renditions {
    /// The item's `uri`.
    pub uri: String,
    /// The extensions of pictures.
    pub formats: Vec<String>,
    /// The widths of open pictures with a size, or `any`.
    pub widths: PictureWidths,
    pub renditions: Vec<AvailableRendition>,
    /// The presets by name, as open renditions.
    pub presets: BTreeMap<String, AvailablePreset>,
    /// The candidates of an `<img srcset>`, as JPEG and as AVIF.
    pub srcset: Candidates,
}

/// The widths of open pictures with a size.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PictureWidths {
    /// Widths in pixels; others become the next larger one.
    Ladder(Vec<u32>),
    /// The word `any`.
    Any(String),
}

/// A rendition that the item has.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AvailableRendition {
    pub variant: String,
    pub usage: String,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    pub access: PictureAccess,
    pub hrefs: PictureLinks,
}

/// A preset that can be applied to the item's picture.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AvailablePreset {
    /// The size, such as `fill_w640_h360`.
    pub size: String,
    /// In pixels, as it is served: nothing is enlarged.
    pub width: u32,
    /// In pixels, as it is served.
    pub height: u32,
    pub access: PictureAccess,
    pub hrefs: PictureLinks,
}

/// The callers who get the picture: all, only callers whose agreements let them read the item, or only buyers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PictureAccess {
    Open,
    Agreement,
    Purchase,
}

/// The address of each format. A Hires has only `jpg`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PictureLinks {
    pub jpg: Option<String>,
    pub webp: Option<String>,
    pub avif: Option<String>,
    pub auto: Option<String>,
}

impl PictureLinks {
    /// Sets the address of the format with this extension, without its dot.
    pub fn insert(&mut self, extension: &str, url: String) {
        match extension {
            "jpg" => self.jpg = Some(url),
            "webp" => self.webp = Some(url),
            "avif" => self.avif = Some(url),
            "auto" => self.auto = Some(url),
            other => unreachable!("no picture has the extension {other}"),
        }
    }
}

/// The candidates of an `<img srcset>` by format, without WebP, which needs more bytes than JPEG at equal quality.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Candidates {
    pub jpg: String,
    pub avif: String,
}

/// Adds the media addresses to `paths`.
pub(crate) fn describe(generator: &mut SchemaGenerator, paths: &mut Map<String, Value>) {
    for address in ADDRESSES {
        let path = format!("/media/{{mediaType}}/{{id}}{}", address.path);
        paths.insert(path, json!({ "get": operation(&address, generator) }));
    }
}

fn operation(address: &MediaAddress, generator: &mut SchemaGenerator) -> Value {
    json!({
        "tags": [SECTION.name],
        "summary": address.summary,
        "description": address.description,
        "operationId": address.id,
        "security": address.access.to_security(),
        "parameters": parameters(address),
        "responses": responses(address.answer, generator),
    })
}

fn parameters(address: &MediaAddress) -> Vec<Value> {
    let mut found = vec![
        parameter("mediaType", "path", "The item's media type.", media_types(address.media_types)),
        parameter(
            "id",
            "path",
            "The item's id within its media type.",
            json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$", "maxLength": model::ItemId::CHARS_MAX }),
        ),
    ];
    let names = address.path.split('{').skip(1).filter_map(|part| part.split('}').next());
    found.extend(names.map(path_parameter));
    found.extend(address.query.iter().map(|name| query_parameter(name)));
    if address.answer.is_cacheable() {
        found.push(header_parameter("If-None-Match", "Entity tags of cached versions."));
        found.push(header_parameter("If-Match", "Entity tags that must match."));
    }
    if address.answer.has_ranges() {
        found.push(header_parameter("Range", "The requested ranges (RFC 9110 §14)."));
    }
    found
}

fn media_types(listed: &[MediaType]) -> Value {
    if listed.is_empty() {
        return json!({ "type": "string", "enum": MediaType::VARIANTS });
    }
    let words: Vec<&str> = listed.iter().map(|media_type| media_type.as_str()).collect();
    json!({ "type": "string", "enum": words })
}

fn parameter(name: &str, place: &str, description: &str, schema: Value) -> Value {
    let mut parameter = json!({ "name": name, "in": place });
    match place {
        "path" => parameter["required"] = true.into(),
        "query" => parameter["allowEmptyValue"] = true.into(),
        _ => {}
    }
    parameter["description"] = description.into();
    parameter["schema"] = schema;
    parameter
}

fn header_parameter(name: &str, description: &str) -> Value {
    parameter(name, "header", description, json!({ "type": "string" }))
}

fn path_parameter(name: &str) -> Value {
    let (description, schema) = match name {
        "w" => ("Width in pixels.", pixels(1)),
        "h" => ("Height in pixels.", pixels(1)),
        "x" => ("Pixels from the left edge.", pixels(0)),
        "y" => ("Pixels from the top edge.", pixels(0)),
        "rendition" => (
            "The variant and usage of the rendition. Previews and Thumbnails are public. By default the long side is at most \
             1024 pixels for a Preview, 512 for a WebPreview and 256 for a Thumbnail.",
            json!({ "type": "string", "enum": RenditionName::PICTURES.map(|name| name.to_string()) }),
        ),
        "extension" => (
            "The image format. `auto` is AVIF or JPEG, as the client prefers by the weights of its header `Accept`; AVIF if \
             they are equal. AVIF has to be named; `*/*` means JPEG. A client that names WebP and does not accept JPEG gets WebP \
             in its place. While an AVIF is not made yet, `auto` answers with the other format for ten seconds.",
            json!({ "type": "string", "enum": ["jpg", "webp", "avif", "auto"] }),
        ),
        "preset" => (
            "The name of a preset of the settings.",
            json!({ "type": "string", "pattern": "^[a-z][a-z0-9]*$", "maxLength": model::PresetName::CHARS_MAX }),
        ),
        "association" => {
            ("The key in the document's `associations`.", json!({ "type": "string" }))
        }
        other => unreachable!("no path parameter is called {other}"),
    };
    parameter(name, "path", description, schema)
}

fn pixels(minimum: u32) -> Value {
    json!({ "type": "integer", "minimum": minimum, "maximum": u32::MAX })
}

fn query_parameter(name: &str) -> Value {
    let (name, description, schema) = match name {
        "agr" => (
            "agr",
            "The id of the agreement to buy under.",
            json!({ "type": "integer", "format": "int64" }),
        ),
        "channel" => {
            ("channel", "A channel of the caller, of any method.", json!({ "type": "string" }))
        }
        "deliveryChannel" => (
            "channel",
            "A delivery channel: `user:<username>:<channel name>`.",
            json!({ "type": "string", "pattern": "^user:.+:[^:]+$" }),
        ),
        "version" => (
            "version",
            "The version of the standard; without it, that of the settings, which is 2.35 unless they say otherwise.",
            json!({ "type": "string", "enum": ["2.30", "2.35"] }),
        ),
        other => unreachable!("no query parameter is called {other}"),
    };
    parameter(name, "query", description, schema)
}

fn responses(answer: MediaAnswer, generator: &mut SchemaGenerator) -> Value {
    let mut found = Map::new();
    refuse_callers(&mut found);
    refuse(&mut found, "404", "NotFound");
    if answer.is_cacheable() {
        found.insert("304".to_owned(), response("Not modified.", &CACHEABLE, &[]));
        found.insert("412".to_owned(), response("The precondition failed.", &CACHEABLE, &[]));
    }
    if answer.has_ranges() {
        let mut parts = files(answer);
        parts.push("multipart/byteranges");
        let range = [&CACHEABLE[..], &["Content-Range"]].concat();
        found.insert("206".to_owned(), response("The requested ranges.", &range, &parts));
        let refused = "The requested range cannot be satisfied.";
        found.insert("416".to_owned(), response(refused, &range, &files(answer)));
    }
    for (status, response) in success(answer, generator) {
        found.insert(status.to_owned(), response);
    }
    found.sort_keys();
    Value::Object(found)
}

/// Describes a document with the schema `schema`.
fn document(schema: &Value) -> Value {
    let mut response = response("The document.", &CACHEABLE, &[]);
    response["content"] = json!({ "application/json": { "schema": schema } });
    response
}

/// Describes the answer to a request that delivers the item.
fn delivery(text: &str) -> Value {
    let mut response = response(text, &["Location"], &[]);
    let schema = json!({ "$ref": "#/components/schemas/Triggered" });
    response["content"] = json!({ "application/json": { "schema": schema } });
    response
}

fn success(answer: MediaAnswer, generator: &mut SchemaGenerator) -> Vec<(&'static str, Value)> {
    let found = match answer {
        MediaAnswer::Page => {
            return vec![
                ("200", delivery("The delivery already exists.")),
                ("202", delivery("The delivery has been queued.")),
                ("302", response("Redirect to the page.", &["Location"], &[])),
            ];
        }
        MediaAnswer::Licenses => describe_json::<Vec<License>>(generator),
        MediaAnswer::Json(name) => {
            document(&json!({ "$ref": format!("#/components/schemas/{name}") }))
        }
        MediaAnswer::Renditions => document(&generator.subschema_for::<Renditions>().to_value()),
        MediaAnswer::PhotoMetadata => document(&json!({
            "type": "object",
            "description": "Properties by the names of the TechReference. A text or a URI is a string, a text in several \
                            languages an object by language with `x-default`, and a property with several values a list.",
            "additionalProperties": true,
        })),
        MediaAnswer::Ninjs => document(&json!({
            "type": "object",
            "description": "An object of the schema ninjs 3.1, which the IPTC publishes.",
            "required": ["uri"],
            "properties": { "uri": { "type": "string", "description": "The item's `uri`." } },
            "additionalProperties": true,
        })),
        MediaAnswer::Text(kind) => {
            let mut response = response("The text.", &CACHEABLE, &[]);
            response["content"] = json!({ kind: { "schema": { "type": "string" } } });
            response
        }
        MediaAnswer::Picture | MediaAnswer::Format | MediaAnswer::Sized => {
            response("The picture.", &whole_headers(answer), &files(answer))
        }
        MediaAnswer::File(_) => response("The file.", &whole_headers(answer), &files(answer)),
    };
    vec![("200", found)]
}

/// The media types of an answer that is a file.
fn files(answer: MediaAnswer) -> Vec<&'static str> {
    match answer {
        MediaAnswer::Picture => vec!["image/jpeg"],
        MediaAnswer::Format | MediaAnswer::Sized => vec!["image/jpeg", "image/webp", "image/avif"],
        MediaAnswer::File(kind) => vec![kind],
        MediaAnswer::Page
        | MediaAnswer::Json(_)
        | MediaAnswer::Renditions
        | MediaAnswer::PhotoMetadata
        | MediaAnswer::Ninjs
        | MediaAnswer::Licenses
        | MediaAnswer::Text(_) => Vec::new(),
    }
}

const CACHEABLE: [&str; 3] = ["ETag", "Last-Modified", "Cache-Control"];

/// The headers of a whole file.
fn whole_headers(answer: MediaAnswer) -> Vec<&'static str> {
    let mut headers = CACHEABLE.to_vec();
    if matches!(answer, MediaAnswer::Format | MediaAnswer::Sized) {
        headers.push("Vary");
    }
    headers.extend(["Accept-Ranges", "Content-Disposition"]);
    if answer == MediaAnswer::Sized {
        headers.push("Wirephoto-Size");
    }
    headers.extend(["Wirephoto-Path", "Server-Timing"]);
    headers
}

fn response(description: &str, headers: &[&str], files: &[&str]) -> Value {
    let mut response = json!({ "description": description });
    let headers: Map<String, Value> =
        headers.iter().map(|name| ((*name).to_owned(), header(name))).collect();
    response["headers"] = headers.into();
    if !files.is_empty() {
        let content: Map<String, Value> = files
            .iter()
            .map(|kind| ((*kind).to_owned(), json!({ "schema": { "contentMediaType": kind } })))
            .collect();
        response["content"] = content.into();
    }
    response
}

fn header(name: &str) -> Value {
    let (description, required) = match name {
        "ETag" => ("A strong entity tag.", true),
        "Last-Modified" => ("When the item was stored.", false),
        "Cache-Control" => ("Cache directives.", true),
        "Vary" => ("`Accept`, for the extension `auto`.", false),
        "Accept-Ranges" => ("`bytes`.", true),
        "Content-Disposition" => ("The file name of what is bought.", false),
        "Content-Range" => ("The returned range, or the size in bytes.", false),
        "Location" => ("The address.", true),
        "Wirephoto-Size" => ("The size that is served, such as `640x427`.", true),
        "Wirephoto-Path" => ("The render path.", false),
        "Server-Timing" => ("Timing in milliseconds.", false),
        other => unreachable!("no header is called {other}"),
    };
    let mut header = json!({ "description": description });
    if required {
        header["required"] = true.into();
    }
    header["schema"] = json!({ "type": "string" });
    header
}
