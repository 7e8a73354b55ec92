//! What `http/api/collections.rs` serves (Spec §4 Collections).

use serde_json::{Value, json};

use super::{
    media::{kept, preconditions},
    operation::{Access, Answer, Operation, Tag, delete, get, header, path, post, put, query},
    schemas::{
        NO_CONTROLS, Part, array, boolean, described, integer, object, one_of, reference, string,
        time,
    },
};
use crate::runtime::limits::{COLLECTION_ELEMENTS_MAX, COLLECTION_NAME_CHARS_MAX, URI_CHARS_MAX};

const ZIP: &str = "application/zip";
/// Statuses of refusals that every operation of a caller has.
const REFUSED: [u16; 4] = [400, 401, 403, 503];

/// How much of each collection a list says.
fn layout() -> Value {
    let mut words = one_of(&["full", "bare"]);
    words["default"] = json!("full");
    query("layout", "`bare` leaves out `content` and `removedContent`.", words)
}

pub(super) fn operations() -> Vec<Operation> {
    let either =
        json!({ "anyOf": [reference("Collection"), reference("CollectionWithoutContent")] });
    let list = get("/collection/v1/collection", "getCollections")
        .says("The caller's collections", "The oldest first.")
        .takes(layout())
        .gives("The collections.", array(either));
    let create = post("/collection/v1/collection", "addCollection")
        .says("Make a collection", "It has no items at first.")
        .json_body("Its name.", reference("CollectionBody"))
        .gives("The collection.", reference("Collection"))
        .refuses(&[409, 413]);
    let load = of_one(get("/collection/v1/collection/{id}", "getCollection"))
        .says(
            "A collection with its items",
            "A public one is read by every caller who has its id. `items` are the documents of \
             `content` that the caller may see.",
        )
        .gives("The collection.", reference("CollectionWithItems"));
    let update = of_one(put("/collection/v1/collection/{id}", "updateCollection"))
        .says(
            "Rename a collection, share it, put its items in order",
            "What is left out stays as it is; `name` may be left out where `content` is given. \
             `content` is the order of its items: those that are named come first, the others \
             keep their order behind them. It never adds or removes one.",
        )
        .json_body("What it is to be.", reference("CollectionChange"))
        .gives("The collection.", reference("Collection"))
        .refuses(&[413]);
    let remove = of_one(delete("/collection/v1/collection/{id}", "removeCollection"))
        .says("Remove a collection", "Its items stay where they are.")
        .gives_text("It is gone.");
    let add = of_one(post("/collection/v1/collection/{id}/items", "addCollectionItems"))
        .says(
            "Add items",
            "They come to the end in the order of the body; one that is there stays where it is. \
             Items that are not there, or that the caller may not see, are left out.",
        )
        .json_body("The items.", reference("CollectionItems"))
        .gives_text("They are added.")
        .refuses(&[409, 413]);
    let take = of_one(delete("/collection/v1/collection/{id}/items", "removeCollectionItems"))
        .says("Remove items", "Items that are not in the collection are passed over.")
        .json_body("The items.", reference("CollectionItems"))
        .gives_text("They are not in the collection any more.")
        .refuses(&[413]);
    [list, create, load, update, remove, add, take, zip()]
        .map(|one| one.belongs(Tag::Collection, Access::Caller).refuses(&REFUSED))
        .into()
}

/// What concerns one collection, which may not be there.
fn of_one(operation: Operation) -> Operation {
    let missing = "There is no such collection, or not for this caller.";
    operation
        .takes(path("id", "The collection's id.", string()))
        .answers(404, Answer::of(missing, "text/plain", string()))
}

fn zip() -> Operation {
    let range = header("Range", "Parts of the bytes (RFC 9110 §14).", string());
    of_one(get("/collection/v1/collection/{id}/zip", "getCollectionZip"))
        .says(
            "Everything of a collection as one file",
            "What the archive of each item holds, of those that an agreement of the caller \
             covers. It is a purchase of each of them, as their own archives are. Items that \
             cannot be delivered are left out and no order is placed for them; `left-out.txt` \
             says which and why.",
        )
        .takes(query("agr", "The number of the agreement that is to pay.", integer()))
        .takes(query(
            "numbered",
            "Whether the names of files begin with the place of their item in the collection, `01_`.",
            boolean(),
        ))
        .takes_all(preconditions())
        .takes(range)
        .answers(
            200,
            kept(Answer::bytes("The archive.", ZIP))
                .with("Accept-Ranges", "`bytes`.")
                .with("Content-Disposition", "A file name made from that of the collection."),
        )
        .answers(
            206,
            kept(Answer::bytes("Parts of the archive.", ZIP).or_bytes("multipart/byteranges"))
                .perhaps_with("Content-Range", "Which part, where it is one."),
        )
        .answers(304, kept(Answer::empty("The client has it.")))
        .answers(412, kept(Answer::empty("It is not the one that the client insists on.")))
        .answers(
            416,
            kept(Answer::bytes("No part that is asked for is there.", ZIP))
                .with("Content-Range", "How long the archive is."),
        )
}

fn name() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": COLLECTION_NAME_CHARS_MAX,
        "pattern": NO_CONTROLS,
    })
}

fn uri() -> Value {
    json!({ "type": "string", "format": "uri", "maxLength": URI_CHARS_MAX })
}

pub(super) fn schemas() -> Part {
    let removed = object(
        &["uri", "timestamp"],
        &[
            ("uri", string()),
            ("headline", described(string(), "Its last headline.")),
            ("description_text", string()),
            ("timestamp", described(time(), "When it went.")),
        ],
    );
    let required = ["id", "name", "owner", "public", "created", "accessed", "content"];
    let fields = [
        ("id", json!({ "type": "string", "format": "uuid" })),
        ("name", string()),
        ("owner", described(string(), "The owner's user name.")),
        ("public", described(boolean(), "Whether others may read it.")),
        ("created", time()),
        ("accessed", described(time(), "When it was read last, to a minute.")),
        ("modified", described(time(), "When it was changed last.")),
        ("content", described(array(string()), "The items' `uri` in their order.")),
        (
            "removedContent",
            described(
                array(removed),
                "Items that were withdrawn or have expired, the last ones; for the owner alone.",
            ),
        ),
    ];
    let mut whole = Vec::from(fields.clone());
    whole.push(("items", array(reference("NewsItem"))));
    let mut whole_required = Vec::from(required);
    whole_required.push("items");
    let body = [("name", name()), ("public", boolean())];
    let mut change = Vec::from(body.clone());
    let mut order = array(uri());
    order["maxItems"] = json!(COLLECTION_ELEMENTS_MAX);
    change.push(("content", described(order, "The order of its items.")));
    let mut change = object(&[], &change);
    change["anyOf"] = json!([{ "required": ["name"] }, { "required": ["content"] }]);
    let mut items = array(object(&["uri"], &[("uri", described(uri(), "The item's `uri`."))]));
    items["minItems"] = json!(1);
    items["maxItems"] = json!(COLLECTION_ELEMENTS_MAX);
    vec![
        ("Collection", object(&required, &fields)),
        ("CollectionWithoutContent", object(&required[..6], &fields[..7])),
        ("CollectionWithItems", object(&whole_required, &whole)),
        ("CollectionBody", object(&["name"], &body)),
        ("CollectionChange", change),
        ("CollectionItems", items),
    ]
}
