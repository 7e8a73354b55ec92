//! What `http/api/ingest.rs` serves: items come in and go out.

use serde_json::{Value, json};

use super::{
    operation::{Access, Answer, Operation, Tag, delete, path, put},
    schemas::{one_of, reference, string},
};
use model::{ItemId, MediaType};

pub(super) fn operations() -> Vec<Operation> {
    let refused = [400, 401, 403, 413, 503];
    let item = json!({
        "type": "object",
        "required": ["item"],
        "properties": { "item": reference("NewsItemSent") },
        "additionalProperties": { "type": "string", "contentMediaType": "application/octet-stream" },
    });
    let example = json!({
        "headline": "A headline", "byline": "Name/Agency", "pubstatus": "usable",
        "versioncreated": "2026-01-31T12:00:00Z", "description_text": "What it shows.",
    });
    let served = |description: &str| {
        Answer::json(description, reference("NewsItem")).with("Location", "The item's media URL.")
    };
    let take = put("/ingest/v1/{mediaType}/{id}", "putItem")
        .says(
            "Take an item in",
            "The document, with the files that belong to it as further parts: each is named by \
             what it is, `NormalHires.jpg` or `a000_NormalHires.jpg` for instance. `uri` and \
             `renditions` may be left out. All of it is taken in, or nothing.",
        )
        .body(
            "The document alone, or with its files.",
            json!({
                "multipart/form-data": {
                    "schema": item, "encoding": { "item": { "contentType": "application/json" } },
                },
                "application/json": { "schema": reference("NewsItemSent"), "example": example },
            }),
        )
        .answers(200, served("It took the place of an earlier one. The document as it is served."))
        .answers(201, served("It is new. The document as it is served."))
        .refuses(&refused);
    let withdraw = delete("/ingest/v1/{mediaType}/{id}", "withdrawItem")
        .says("Withdraw an item", "It is gone from search and media.")
        .answers(200, Answer::of("It is withdrawn.", "text/plain", string()))
        .refuses(&[400, 401, 403, 404, 503]);
    let of_item = |operation: Operation| {
        operation.belongs(Tag::Ingest, Access::Caller).takes_all(item_path())
    };
    vec![of_item(take), of_item(withdraw)]
}

/// `mediaType` and `id`.
pub(super) fn item_path() -> [Value; 2] {
    let id = json!({
        "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$", "maxLength": ItemId::CHARS_MAX,
    });
    [
        path("mediaType", "The kind of the item.", one_of(&MediaType::ALL.map(MediaType::as_str))),
        path("id", "The item's id within its kind.", id),
    ]
}
