//! Assembles the OpenAPI document: its head, security schemes and error responses from `assets/openapi`, its operations
//! from the declared endpoints, its schemas from all of them and the schema of news items.

use serde_json::{Map, Value, json};

use super::news_item;
use super::page::text;
use crate::http::declared_endpoints;

/// The document without operations. It has placeholders, such as `${public}`, for the base URLs.
const DOCUMENT: &str = include_str!("../../../assets/openapi/document.json");
/// The description of the whole API.
const DESCRIPTION: &str = include_str!("../../../assets/openapi/description.md");
/// The names of the sections of endpoints, in the order of the documentation page. Each is a tag of the document.
const SECTION_NAMES: [&str; 14] = [
    "Content",
    "Notifications",
    "Collections",
    "User",
    "Orders",
    "Deliveries",
    "Organization",
    "Media",
    "OAuth2",
    "Deprecated search interface",
    "Ingest",
    "Uploads",
    "Operation",
    "Operator",
];

/// Base URLs of the service.
#[derive(Clone, Copy, Debug)]
pub struct BaseUrls<'a> {
    /// Base URL of everything except media and OAuth2.
    pub public: &'a str,
    /// Base URL of media.
    pub media: &'a str,
    /// Base URL of the OAuth2 service.
    pub auth: &'a str,
}

impl BaseUrls<'_> {
    /// Replaces `${public}`, `${media}` and `${auth}` in `text` by the base URLs.
    fn fill(&self, text: &str) -> String {
        let names = [("${public}", self.public), ("${media}", self.media), ("${auth}", self.auth)];
        names.into_iter().fold(text.to_owned(), |text, (name, base)| text.replace(name, base))
    }
}

/// Assembles the document of the service at `bases`.
///
/// Panics if the compiled-in file is not JSON, which every test that starts a server would detect.
pub(super) fn assemble(bases: BaseUrls<'_>) -> Value {
    let mut document: Value =
        serde_json::from_str(&bases.fill(DOCUMENT)).expect("a test reads the file");
    let declared = declared_endpoints().document();
    let mut tags = declared.tags;
    tags.sort_by_key(|tag| SECTION_NAMES.iter().position(|name| tag["name"] == *name));
    let mut paths = declared.paths;
    set_servers(&mut paths, bases);
    let mut schemas = document["components"]["schemas"].take();
    let schemas = schemas.as_object_mut().map(std::mem::take).unwrap_or_default();
    let schemas = schemas.into_iter().chain(news_item::schemas()).chain(declared.schemas);
    document["components"]["schemas"] = schemas.collect();
    document["info"]["description"] = api::unwrapped(DESCRIPTION.trim()).into();
    document["tags"] = tags.into();
    document["paths"] = paths.into();
    document
}

/// Adds the base URL to the operations of media and OAuth2 if it differs from the public one.
fn set_servers(paths: &mut Map<String, Value>, bases: BaseUrls<'_>) {
    for item in paths.values_mut() {
        for operation in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
            // The only tag of an operation is its section.
            let base = match text(&operation["tags"][0]) {
                "Media" => bases.media,
                "OAuth2" => bases.auth,
                _ => bases.public,
            };
            if base != bases.public {
                operation["servers"] = json!([{ "url": base }]);
            }
        }
    }
}
