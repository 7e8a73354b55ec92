//! What `http/media.rs` serves: items and their renditions by URL (Spec §4 Media interface).
//!
//! The grammar of these URLs has more forms than a document can list: names are taken off from
//! the right, and operations are chained in any order. The forms that are listed are those that
//! clients write; the description of the first rendition tells of the rest.

use serde_json::{Value, json};

use super::{
    ingest::item_path,
    operation::{Access, Answer, Base, Operation, Tag, get, header, path, query},
    schemas::{array, integer, one_of, reference, string},
};
use model::item::has_picture;
use model::{MediaType, RenditionName};

const JPEG: &str = "image/jpeg";

pub(super) fn operations() -> Vec<Operation> {
    let mut all = Vec::from(documents());
    all.extend(pictures());
    all.into_iter().map(|operation| operation.at(Base::Media)).collect()
}

fn documents() -> [Operation; 4] {
    let page = get("/media/{mediaType}/{id}", "getItem")
        .belongs(Tag::Media, Access::Media)
        .says(
            "An item, or its delivery",
            "Leads to its page on the customer web site. With `channel` it is sent through that \
             channel of the caller instead, which is a purchase as a download is. One version of an \
             item goes through a channel once: asking again tells of the delivery that is there, \
             and one that failed is tried again. `POST /user/v1/delivery/{id}` sends one once more. A uri \
             may carry the crop of an association, `-crop_w…_h…_x…_y…`: then the page shows it, and \
             pictures are sent within it. `HEAD` triggers nothing.",
        )
        .takes_all(item_path())
        .takes(query("channel", CHANNEL, channel()))
        .takes(query("agr", "The number of the agreement that is to pay a delivery.", integer()))
        .answers(
            202,
            Answer::json("The delivery is in the queue.", reference("Triggered"))
                .with("Location", "Where it can be looked at."),
        )
        .answers(
            200,
            Answer::json("The delivery was there before.", reference("Triggered"))
                .with("Location", "Where it can be looked at."),
        )
        .answers(302, Answer::empty("To the page.").with("Location", "Its address."))
        .refuses(&[400, 401, 403, 404, 503]);
    let document = get("/media/{mediaType}/{id}.json", "getItemDocument")
        .says("The news item document", "With links to the renditions.")
        .takes_all(item_path());
    let cropped = get(
        "/media/{mediaType}/{id}-crop_w{w}_h{h}_x{x}_y{y}.json",
        "getCroppedItemDocument",
    )
    .says(
        "The news item document with cropped renditions",
        "The rectangle is in pixels of the Hires; each link carries it in the pixels of its own \
         rendition.",
    )
    .takes_all(item_path())
    .takes_all(rectangle());
    let of_document = |operation: Operation| {
        operation
            .belongs(Tag::Media, Access::Media)
            .takes_all(preconditions())
            .answers(200, kept(Answer::json("The document.", reference("NewsItem"))))
            .answers(304, kept(Answer::empty("The client has it.")))
            .answers(412, kept(Answer::empty("It is not the one that the client insists on.")))
            .refuses(&[400, 401, 403, 404, 503])
    };
    let pricelist = get("/media/{mediaType}/{id}/pricelist", "getPricelist")
        .belongs(Tag::Media, Access::MediaCaller)
        .says("Licences for an item", "Those that the caller could report its use with.")
        .takes_all(item_path())
        .gives("The licences.", array(reference("License")))
        .refuses(&[400, 401, 403, 404, 503]);
    [page, of_document(document), of_document(cropped), pricelist]
}

fn pictures() -> [Operation; 4] {
    let hires = get("/media/{mediaType}/{id}.jpg", "getHires")
        .says(
            "The Hires of a photograph",
            "The original with the caption of today. It is a purchase: an agreement must cover \
             the item, and for 30 days the same organization downloads it again for free.",
        )
        .takes_all(picture_path())
        .takes(query("agr", "The number of the agreement that is to pay.", integer()));
    let rendition = get("/media/{mediaType}/{id}_{rendition}.jpg", "getRendition")
        .says(
            "A rendition of a photograph",
            "Names may be written in either case, ids may not. Operations (`-crop…`, \
             `-watermark`) stand between the id and the name and are carried out in the order in \
             which they are written, at most one of each: \
             `-crop_w800_h600_x0_y0-watermark_NormalPreview.jpg` marks the cut. Without a name \
             they are those of the Hires. Whatever is of a Hires takes `agr` and is bought as it is.",
        )
        .takes_all(picture_path())
        .takes(rendition_name());
    let crop = get(
        "/media/{mediaType}/{id}-crop_w{w}_h{h}_x{x}_y{y}_{rendition}.jpg",
        "getCrop",
    )
    .says(
        "A part of a rendition",
        "In pixels of that rendition, upright. A missing `x` or `y` is 0, a missing `w` or `h` \
         runs to the edge. A rectangle that leaves the picture is a 400 with the picture's size.",
    )
    .takes_all(picture_path())
    .takes(rendition_name())
    .takes_all(rectangle());
    let marked = get("/media/{mediaType}/{id}-watermark_{rendition}.jpg", "getWatermarked")
        .says("A rendition with the watermark", "In its lower left corner.")
        .takes_all(picture_path())
        .takes(rendition_name());
    [hires, rendition, crop, marked].map(picture)
}

/// What every picture takes and answers.
fn picture(operation: Operation) -> Operation {
    let range = header("Range", "Parts of the bytes (RFC 9110 §14).", string());
    operation
        .belongs(Tag::Media, Access::Media)
        .takes_all(preconditions())
        .takes(range)
        .answers(
            200,
            kept(Answer::bytes("The picture.", JPEG))
                .with("Accept-Ranges", "`bytes`.")
                .perhaps_with("Content-Disposition", "A file name for a Hires.")
                .perhaps_with("Wirephoto-Path", "How the picture was made.")
                .perhaps_with("Server-Timing", "Milliseconds that it took."),
        )
        .answers(
            206,
            kept(Answer::bytes("Parts of the picture.", JPEG).or_bytes("multipart/byteranges"))
                .perhaps_with("Content-Range", "Which part, where it is one."),
        )
        .answers(304, kept(Answer::empty("The client has it.")))
        .answers(412, kept(Answer::empty("It is not the one that the client insists on.")))
        .answers(
            416,
            kept(Answer::bytes("No part that is asked for is there.", JPEG))
                .with("Content-Range", "How long the picture is."),
        )
        .refuses(&[400, 401, 403, 404, 503])
}

const CHANNEL: &str = "A delivery channel: `user:<username>:<channel name>`.";

fn channel() -> Value {
    json!({ "type": "string", "pattern": "^user:.+:[^:]+$" })
}

/// What whoever keeps the answer needs to know.
pub(super) fn kept(answer: Answer) -> Answer {
    answer
        .with("ETag", "A strong entity tag.")
        .perhaps_with("Last-Modified", "When the item was stored.")
        .with("Cache-Control", "By whom it may be kept, and how long.")
}

pub(super) fn preconditions() -> [Value; 2] {
    [
        header("If-None-Match", "Entity tags that the client has.", string()),
        header("If-Match", "Entity tags that the client insists on.", string()),
    ]
}

/// The path of an item with a picture.
fn picture_path() -> [Value; 2] {
    let [mut media_type, id] = item_path();
    let types: Vec<&str> = MediaType::ALL
        .into_iter()
        .filter(|media_type| has_picture(*media_type))
        .map(MediaType::as_str)
        .collect();
    media_type["schema"] = one_of(&types);
    [media_type, id]
}

fn rendition_name() -> Value {
    let names = RenditionName::PICTURES.map(|name| name.to_string());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    path(
        "rendition",
        "What was done to the picture, and what it is for. Previews and Thumbnails are open. The \
         long side is at most 1024 pixels of a Preview, 512 of a WebPreview and 256 of a \
         Thumbnail, unless the operator chose others.",
        one_of(&names),
    )
}

fn rectangle() -> [Value; 4] {
    let pixels = |least: u32| json!({ "type": "integer", "minimum": least, "maximum": u32::MAX });
    [
        path("w", "Width in pixels.", pixels(1)),
        path("h", "Height in pixels.", pixels(1)),
        path("x", "Pixels from the left edge.", pixels(0)),
        path("y", "Pixels from the upper edge.", pixels(0)),
    ]
}
