//! What `http/media.rs` serves beside photographs: news markup, texts, graphics, videos, associated
//! objects and archives (Spec §4 Media interface, Extensions).

use serde_json::Value;

use super::{
    ingest::item_path,
    media::{kept, preconditions},
    operation::{Access, Answer, Base, Operation, Tag, get, header, path, query},
    schemas::{integer, one_of, string},
};
use model::{MediaType, RenditionName};

pub(super) fn operations() -> Vec<Operation> {
    let mut all = texts();
    all.extend(files());
    all.push(associated());
    all.into_iter().map(|operation| operation.at(Base::Media)).collect()
}

/// The path of an item of one of these media types.
fn path_of(types: &[MediaType]) -> [Value; 2] {
    let [mut media_type, id] = item_path();
    let names: Vec<&str> = types.iter().map(|one| one.as_str()).collect();
    media_type["schema"] = one_of(&names);
    [media_type, id]
}

const TEXTS: [MediaType; 2] = [MediaType::Text, MediaType::Feature];

fn texts() -> Vec<Operation> {
    let xml = get("/media/{mediaType}/{id}.xml", "getNewsMl")
        .says(
            "News markup",
            "NewsML-G2 2.30: the item with its associated objects. It says what the document says.",
        )
        .takes_all(item_path());
    let cutpaste = get("/media/{mediaType}/{id}-cutpaste.txt", "getCutAndPasteText")
        .says("Text to cut and paste", "UTF-8, a line a paragraph, without markup.")
        .takes_all(path_of(&TEXTS));
    let indesign = get("/media/{mediaType}/{id}-indesign.txt", "getLayoutText")
        .says("Text for a layout document", "Adobe InDesign Tagged Text in ASCII.")
        .takes_all(path_of(&TEXTS));
    let text = |operation: Operation, kind: &str| {
        operation
            .belongs(Tag::Media, Access::Media)
            .takes_all(preconditions())
            .answers(200, kept(Answer::of("The text.", kind, string())))
            .answers(304, kept(Answer::empty("The client has it.")))
            .answers(412, kept(Answer::empty("It is not the one that the client insists on.")))
            .refuses(&[400, 401, 403, 404, 503])
    };
    vec![text(xml, "text/xml"), text(cutpaste, "text/plain"), text(indesign, "text/plain")]
}

fn files() -> Vec<Operation> {
    let bought = "It is a purchase, as a Hires is.";
    let graphic = || path_of(&[MediaType::Graphic]);
    let agr = || query("agr", "The number of the agreement that is to pay.", integer());
    let pdf = get("/media/{mediaType}/{id}.pdf", "getPdf")
        .says("A graphic as PDF", &format!("As it came in. {bought}"))
        .takes_all(graphic())
        .takes(agr());
    let grey = get("/media/{mediaType}/{id}_BlackAndWhiteHires.pdf", "getGreyPdf")
        .says(
            "A graphic as PDF without colour",
            &format!("As it came in, else made of the colour PDF; text stays text. {bought}"),
        )
        .takes_all(graphic())
        .takes(agr());
    let eps = get("/media/{mediaType}/{id}.eps", "getEps")
        .says("A graphic as EPS", &format!("If one came in. {bought}"))
        .takes_all(graphic())
        .takes(agr());
    let grey_eps = get("/media/{mediaType}/{id}_BlackAndWhite.eps", "getGreyEps")
        .says("A graphic as EPS without colour", &format!("If one came in. {bought}"))
        .takes_all(graphic())
        .takes(agr());
    let video = get("/media/{mediaType}/{id}_NormalPreview.mp4", "getVideoPreview")
        .says("A video", "H.264 for the screen; players take it in ranges.")
        .takes_all(path_of(&[MediaType::Video]));
    let zip = get("/media/{mediaType}/{id}.zip", "getArchive")
        .says(
            "The files of an item",
            "Photographs: Hires, document, markup. Graphics: PDF, EPS, document, markup. Texts: \
             document, markup, both texts and the Hires (else the Preview) of each associated \
             picture. Videos: document, markup, Preview, Thumbnail. A channel of the caller \
             chooses other contents. The same request gives the same bytes. It is a purchase.",
        )
        .takes_all(item_path())
        .takes(agr())
        .takes(query("channel", "A channel of the caller, whatever its method.", string()));
    vec![
        file(pdf, "application/pdf"),
        file(grey, "application/pdf"),
        file(eps, "application/postscript"),
        file(grey_eps, "application/postscript"),
        file(video, "video/mp4"),
        file(zip, "application/zip"),
    ]
}

fn associated() -> Operation {
    let renditions = RenditionName::PICTURES.map(|name| name.to_string());
    let renditions: Vec<&str> = renditions.iter().map(String::as_str).collect();
    let operation =
        get("/media/{mediaType}/{id}/{association}_{rendition}.jpg", "getAssociatedRendition")
            .says(
                "A rendition of an associated object",
                "Where the object is an item of its own, that item is shown, and bought.",
            )
            .takes_all(item_path())
            .takes(path("association", "The key in the document's `associations`.", string()))
            .takes(path("rendition", "Which.", one_of(&renditions)));
    file(operation, "image/jpeg")
}

/// What every file takes and answers.
fn file(operation: Operation, kind: &str) -> Operation {
    operation
        .belongs(Tag::Media, Access::Media)
        .takes_all(preconditions())
        .takes(header("Range", "Parts of the bytes (RFC 9110 §14).", string()))
        .answers(
            200,
            kept(Answer::bytes("The file.", kind))
                .with("Accept-Ranges", "`bytes`.")
                .perhaps_with("Content-Disposition", "A file name.")
                .perhaps_with("Wirephoto-Path", "How a picture was made.")
                .perhaps_with("Server-Timing", "Milliseconds that it took."),
        )
        .answers(
            206,
            kept(Answer::bytes("Parts of the file.", kind).or_bytes("multipart/byteranges"))
                .perhaps_with("Content-Range", "Which part, where it is one."),
        )
        .answers(304, kept(Answer::empty("The client has it.")))
        .answers(412, kept(Answer::empty("It is not the one that the client insists on.")))
        .answers(
            416,
            kept(Answer::bytes("No part that is asked for is there.", kind))
                .with("Content-Range", "How long the file is."),
        )
        .refuses(&[400, 401, 403, 404, 503])
}
