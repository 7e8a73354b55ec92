//! The addresses below `/media`.

use model::MediaType;

use super::{KNOWN, MediaAddress, MediaAnswer, OPEN};

const PICTURES: &[MediaType] = &[MediaType::Image, MediaType::Stockfoto];
const TEXTS: &[MediaType] = &[MediaType::Text, MediaType::Feature];
const GRAPHICS: &[MediaType] = &[MediaType::Graphic];
const VIDEOS: &[MediaType] = &[MediaType::Video];

/// An address of any media type, without parameters in its query.
const ANY: MediaAddress = MediaAddress {
    id: "",
    path: "",
    summary: "",
    description: "",
    media_types: &[],
    query: &[],
    access: OPEN,
    answer: MediaAnswer::Page,
};
/// A rendition of a photograph.
const PICTURE: MediaAddress =
    MediaAddress { media_types: PICTURES, answer: MediaAnswer::Picture, ..ANY };
/// A rendition of a photograph in the format that its extension names.
const FORMAT: MediaAddress = MediaAddress { answer: MediaAnswer::Format, ..PICTURE };
/// A rendition of a photograph in a size of its own.
const SIZED: MediaAddress = MediaAddress { answer: MediaAnswer::Sized, ..PICTURE };
/// A text of an item.
const TEXT: MediaAddress =
    MediaAddress { media_types: TEXTS, answer: MediaAnswer::Text("text/plain"), ..ANY };
/// The file of a graphic, which is bought.
const GRAPHIC: MediaAddress = MediaAddress { media_types: GRAPHICS, query: &["agr"], ..ANY };

/// The addresses, in the order of the documentation.
pub(super) const ADDRESSES: [MediaAddress; 25] = [
    MediaAddress {
        id: "getItem",
        path: "",
        summary: "Open or deliver an item",
        description: "Redirects to the item's page on the web site. With `channel` the item is delivered through that \
                      channel of the caller instead, which is a purchase like a download. One version of an item is \
                      delivered through a channel once: repeating the request returns the existing delivery, and a failed \
                      delivery is retried. `POST /user/v1/delivery/{id}` resends a delivery. The uri may carry the crop of \
                      an association, `-crop_w…_h…_x…_y…`: the page shows the crop, and photos are delivered cropped. \
                      `HEAD` triggers nothing.",
        query: &["deliveryChannel", "agr"],
        ..ANY
    },
    MediaAddress {
        id: "getItemDocument",
        path: ".json",
        summary: "The news item document",
        description: "With links to the renditions.",
        answer: MediaAnswer::Json("NewsItem"),
        ..ANY
    },
    MediaAddress {
        id: "getCroppedItemDocument",
        path: "-crop_w{w}_h{h}_x{x}_y{y}.json",
        summary: "The news item document with cropped renditions",
        description: "The crop is given in pixels of the Hires; each link has the crop in pixels of its own rendition.",
        answer: MediaAnswer::Json("NewsItem"),
        ..ANY
    },
    MediaAddress {
        id: "getPricelist",
        path: "/pricelist",
        summary: "Licences for an item",
        description: "The licences that the caller can approve or report an order with.",
        access: KNOWN,
        answer: MediaAnswer::Licenses,
        ..ANY
    },
    MediaAddress {
        id: "getHires",
        path: ".jpg",
        summary: "The original of a photo (Hires)",
        description: "The original with the current caption. Downloading it is a purchase: an agreement must cover the item. \
                      The organization can download it again free of charge for 30 days.",
        query: &["agr"],
        ..PICTURE
    },
    MediaAddress {
        id: "getRendition",
        path: "_{rendition}.jpg",
        summary: "A rendition of a photo",
        description: "Rendition names are case-insensitive, ids are not. Operations (`-crop…`, `-fit…`, `-fill…`, `-preset…`, \
                      `-watermark`) are placed between the id and the name and applied in the order given, each at most \
                      once: `-crop_w800_h600_x0_y0-watermark_NormalPreview.jpg` puts the watermark on the crop. There is at \
                      most one size, after a crop. Without a name they apply to the Hires. Everything made from a Hires \
                      takes `agr` and is a purchase like the Hires itself.",
        ..PICTURE
    },
    MediaAddress {
        id: "getCrop",
        path: "-crop_w{w}_h{h}_x{x}_y{y}_{rendition}.jpg",
        summary: "A crop of a rendition",
        description: "In pixels of that rendition, after rotation to upright. A missing `x` or `y` is 0; a missing `w` or \
                      `h` extends to the edge. A crop outside the image is answered 400 with the image's size.",
        ..PICTURE
    },
    MediaAddress {
        id: "getWatermarked",
        path: "-watermark_{rendition}.jpg",
        summary: "A rendition with the watermark",
        description: "The watermark is in the lower left corner.",
        ..PICTURE
    },
    MediaAddress {
        id: "getFormat",
        path: "_{rendition}.{extension}",
        summary: "A rendition of a photo in another image format",
        description: "The same picture as `.jpg`, with the same operations, as WebP or AVIF. A Hires needs an operation for \
                      that: without one it exists as `.jpg` only. Every response for `auto`, errors included, has `Vary: \
                      Accept`.",
        ..FORMAT
    },
    MediaAddress {
        id: "getFitted",
        path: "-fit_w{w}_h{h}_{rendition}.{extension}",
        summary: "A rendition that fits into a size",
        description: "Scaled down in its own ratio; one of `w` and `h` may be missing. A crop stands before the size and a \
                      watermark before or after it. The rendition decides the right: names of Previews and Thumbnails are \
                      open and show at most the detail of the open picture, in the widths of the service, of which another \
                      width becomes the next larger one; a Hires is bought at any size. Nothing is enlarged. A malformed \
                      size is a 400 whose `path` is `fit`, `fit.w` or `fit.h`, or `operation` where operations do not go \
                      together.",
        ..SIZED
    },
    MediaAddress {
        id: "getFilled",
        path: "-fill_w{w}_h{h}_{rendition}.{extension}",
        summary: "A rendition that fills a size",
        description: "Scaled down until it covers the size, and cut around the centre of interest. Otherwise as for `-fit`. \
                      A malformed size is a 400 whose `path` is `fill`, `fill.w` or `fill.h`.",
        ..SIZED
    },
    MediaAddress {
        id: "getPreset",
        path: "-preset_{preset}_{rendition}.{extension}",
        summary: "A rendition as the service's settings define it",
        description: "The preset decides size, quality, watermark and the most bytes; only a crop may stand beside it. \
                      `.renditions.json` lists the presets. An unknown one is a 400 whose `path` is `preset`.",
        ..SIZED
    },
    MediaAddress {
        id: "getRenditions",
        path: ".renditions.json",
        summary: "The sizes and formats of an item",
        description: "What can be had of the item's picture: renditions, presets, widths and formats with their addresses, \
                      and the text of an `<img srcset>` as JPEG and as AVIF.",
        answer: MediaAnswer::Renditions,
        ..ANY
    },
    MediaAddress {
        id: "getPhotoMetadata",
        path: ".metadata.json",
        summary: "The photo metadata of an item",
        description: "The properties of the IPTC Photo Metadata Standard 2025.1 that the item has, by the names of its \
                      TechReference: those of the document, and the rights and provenance that count for its picture. Below \
                      `associations` are those of the pictures that came with the item, by their keys in the document.",
        answer: MediaAnswer::PhotoMetadata,
        ..ANY
    },
    MediaAddress {
        id: "getNinjs",
        path: ".ninjs.json",
        summary: "ninjs document",
        description: "ninjs 3.1, the JSON format of the IPTC: the item with its associated objects, renditions and rights, \
                      which are those of the JSON document. What the standard has no place for is left out.",
        answer: MediaAnswer::Ninjs,
        ..ANY
    },
    MediaAddress {
        id: "getNewsMl",
        path: ".xml",
        summary: "NewsML-G2 document",
        description: "The item with its associated objects, with the same content as the JSON document. Rights and \
                      provenance that only the original states, or that the JSON document has no place for, are in \
                      NewsML-G2 2.35 alone. 2.30 is for clients that compare the version.",
        query: &["version"],
        answer: MediaAnswer::Text("text/xml"),
        ..ANY
    },
    MediaAddress {
        id: "getCutAndPasteText",
        path: "-cutpaste.txt",
        summary: "Plain text",
        description: "UTF-8, one paragraph per line, without markup.",
        ..TEXT
    },
    MediaAddress {
        id: "getLayoutText",
        path: "-indesign.txt",
        summary: "InDesign text",
        description: "Adobe InDesign Tagged Text in ASCII.",
        ..TEXT
    },
    MediaAddress {
        id: "getPdf",
        path: ".pdf",
        summary: "A graphic as PDF",
        description: "The file as it was ingested. Downloading it is a purchase, as for a Hires.",
        answer: MediaAnswer::File("application/pdf"),
        ..GRAPHIC
    },
    MediaAddress {
        id: "getGreyPdf",
        path: "_BlackAndWhiteHires.pdf",
        summary: "A graphic as PDF in black and white",
        description: "The file as it was ingested, otherwise converted from the colour PDF; text stays text. Downloading it \
                      is a purchase, as for a Hires.",
        answer: MediaAnswer::File("application/pdf"),
        ..GRAPHIC
    },
    MediaAddress {
        id: "getEps",
        path: ".eps",
        summary: "A graphic as EPS",
        description: "Only if one was ingested. Downloading it is a purchase, as for a Hires.",
        answer: MediaAnswer::File("application/postscript"),
        ..GRAPHIC
    },
    MediaAddress {
        id: "getGreyEps",
        path: "_BlackAndWhite.eps",
        summary: "A graphic as EPS in black and white",
        description: "Only if one was ingested. Downloading it is a purchase, as for a Hires.",
        answer: MediaAnswer::File("application/postscript"),
        ..GRAPHIC
    },
    MediaAddress {
        id: "getVideoPreview",
        path: "_NormalPreview.mp4",
        summary: "A video",
        description: "H.264 for playback; ranges are supported.",
        media_types: VIDEOS,
        answer: MediaAnswer::File("video/mp4"),
        ..ANY
    },
    MediaAddress {
        id: "getArchive",
        path: ".zip",
        summary: "The files of an item as a zip",
        description: "Photos: Hires, JSON document, NewsML-G2. Graphics: PDF, EPS, JSON document, NewsML-G2. Texts: JSON \
                      document, NewsML-G2, both text formats and the Hires (otherwise the Preview) of each associated photo. \
                      Videos: JSON document, NewsML-G2, Preview, Thumbnail. A channel of the caller selects other files. The \
                      same request returns the same bytes. Downloading it is a purchase.",
        query: &["agr", "channel"],
        answer: MediaAnswer::File("application/zip"),
        ..ANY
    },
    MediaAddress {
        id: "getAssociatedRendition",
        path: "/{association}_{rendition}.jpg",
        summary: "A rendition of an associated object",
        description: "If the object is an item in the archive, that item is shown and bought.",
        answer: MediaAnswer::File("image/jpeg"),
        ..ANY
    },
];
