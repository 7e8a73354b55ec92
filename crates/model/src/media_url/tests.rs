//! Tests of the whole grammar: tables of accepted and refused paths.

use crate::media_url::{
    DocumentExtension, FileExtension, MediaPath, MediaTarget, PathError, PictureOperation,
    RenditionExtension,
};
use crate::{
    CropSpec, ItemId, ItemKey, MediaType, RenditionName, RenditionUsage, RenditionVariant,
};

/// `expected` is the canonical spelling, or the wrong part and the start of the message.
fn check(path: &str, expected: Result<&str, (&str, &str)>) {
    match (MediaPath::parse(path), expected) {
        (Ok(found), Ok(canonical)) => {
            assert_eq!(found.print(), canonical, "{path}");
            assert_eq!(MediaPath::parse(canonical), Ok(found), "{path}");
        }
        (Err(error), Err((part, message))) => {
            assert_eq!(error.part(), part, "{path}: {error}");
            assert!(error.to_string().starts_with(message), "{path}: {error}");
        }
        (found, _) => panic!("{path}: {found:?}, expected {expected:?}"),
    }
}

/// Checks a path that is canonical already.
fn check_same(path: &str) {
    check(path, Ok(path));
}

fn target(path: &str) -> MediaTarget {
    MediaPath::parse(path).unwrap().target().clone()
}

fn key(media_type: MediaType, id: &str) -> ItemKey {
    ItemKey::new(media_type, ItemId::parse(id).unwrap())
}

fn crop(parameters: &str) -> PictureOperation {
    PictureOperation::Crop(CropSpec::parse(parameters).unwrap())
}

#[test]
fn ok_items_and_their_licences() {
    check_same("image/sdltd8f4d87");
    check_same("image/sdlv_113kUboR0");
    check_same("text/250924-konjunkturlaget6uv-ae8053fa");
    check_same("calendar/a");
    check_same("image/sdlv_113kUboR0/pricelist");
    assert_eq!(target("image/x"), MediaTarget::Item(None));
    assert_eq!(target("image/x/pricelist"), MediaTarget::Pricelist);
    // A stored uri may carry a crop.
    check_same("image/x-crop_w10_h20_x0_y0");
    check("image/x-CROP_h20_w010", Ok("image/x-crop_w10_h20_x0_y0"));
    check("image/x-crop_w10/pricelist", Ok("image/x/pricelist"));
}

#[test]
fn ok_every_file_that_the_contract_lists() {
    check_same("text/x.json");
    check_same("text/x.xml");
    check_same("text/x.metadata.json");
    check("image/x.NINJS.Json", Ok("image/x.ninjs.json"));
    check_same("text/x.zip");
    check_same("text/x-cutpaste.txt");
    check_same("text/x-indesign.txt");
    check_same("text/x/a000_NormalPreview.jpg");
    check_same("text/x/a000_NormalThumbnail.jpg");
    check_same("text/x/a000_CroppedThumbnail.jpg");
    check("image/x.jpg", Ok("image/x_NormalHires.jpg"));
    check_same("image/x_NormalHires.jpg");
    check_same("image/x_NormalPreview.jpg");
    check_same("image/x_NormalThumbnail.jpg");
    check_same("graphic/x.pdf");
    check_same("graphic/x_BlackAndWhiteHires.pdf");
    check_same("graphic/x.eps");
    check("graphic/gf177556_BlackAndWhite.eps", Ok("graphic/gf177556_BlackAndWhiteHires.eps"));
    check_same("graphic/x_NormalPreview.jpg");
    check_same("graphic/250924-konjunkturlaget6uv-ae8053fa_CroppedThumbnail.jpg");
    check_same("video/x_NormalThumbnail.jpg");
    check_same("video/x_NormalPreview.mp4");
}

#[test]
fn ok_names_match_without_regard_to_case_and_ids_with_it() {
    check("image/Ab_c_normalPREVIEW.JPG", Ok("image/Ab_c_NormalPreview.jpg"));
    check("image/x-WaterMark_hiRES.jpg", Ok("image/x-WaterMark_hiRES_NormalHires.jpg"));
    check("image/x-WaterMark.jpg", Ok("image/x-watermark_NormalHires.jpg"));
    check("image/x_WatermarkedPreview.jpg", Ok("image/x_WatermarkPreview.jpg"));
    check("text/x-CutPaste.TXT", Ok("text/x-cutpaste.txt"));
    check("text/x-INDESIGN.txt", Ok("text/x-indesign.txt"));
    check("graphic/x_blackandwhite.PDF", Ok("graphic/x_BlackAndWhiteHires.pdf"));
    assert_ne!(MediaPath::parse("image/X.jpg"), MediaPath::parse("image/x.jpg"));
}

#[test]
fn ok_a_missing_suffix_is_the_normal_hires() {
    for extension in ["jpg", "pdf", "eps", "mp4"] {
        let bare = MediaPath::parse(&format!("graphic/x.{extension}"));
        let written = MediaPath::parse(&format!("graphic/x_NormalHires.{extension}"));
        assert_eq!(bare, written);
        assert!(bare.is_ok());
    }
}

#[test]
fn ok_operations_of_real_clients() {
    check_same("image/sdltd8f4d87-crop_w800_h600_x10_y20_NormalPreview.jpg");
    check_same("image/x-watermark_NormalHires.jpg");
    check(
        "image/x-crop_w2264_h1273_x522_y789.jpg",
        Ok("image/x-crop_w2264_h1273_x522_y789_NormalHires.jpg"),
    );
    check_same("image/x-crop_w2264_h1273_x522_y789.json");
    check_same("text/x/a000-crop_w10_h10_x0_y0_NormalPreview.jpg");
    check_same("text/x/a000-watermark-crop_w10_x0_y0_NormalPreview.jpg");
}

#[test]
fn ok_operations_stay_in_the_order_written() {
    let operations = |path: &str| match target(path) {
        MediaTarget::Rendition(file) => file.operations().to_vec(),
        MediaTarget::Item(_) | MediaTarget::Pricelist | MediaTarget::Document(_) => Vec::new(),
    };
    let cut = crop("_w10_h10");
    let found = operations("image/x-crop_w10_h10-watermark_NormalPreview.jpg");
    assert_eq!(found, [cut.clone(), PictureOperation::Watermark]);
    let found = operations("image/x-watermark-crop_h10_w10_NormalPreview.jpg");
    assert_eq!(found, [PictureOperation::Watermark, cut]);
}

#[test]
fn ok_crop_parameters_have_one_canonical_spelling() {
    let canonical = "image/x-crop_w800_h600_x10_y0_NormalPreview.jpg";
    check("image/x-crop_x10_h600_w800_NormalPreview.jpg", Ok(canonical));
    check("image/x-CROP_W0800_H600_X0010_Y0_normalpreview.jpg", Ok(canonical));
    check("image/x-crop_x0.jpg", Ok("image/x-crop_x0_y0_NormalHires.jpg"));
    check(
        "image/x-crop_w4294967295_x4294967295.jpg",
        Ok("image/x-crop_w4294967295_x4294967295_y0_NormalHires.jpg"),
    );
}

#[test]
fn ok_an_unknown_suffix_or_operation_is_part_of_the_id() {
    check("image/a_b-c_d-e.jpg", Ok("image/a_b-c_d-e_NormalHires.jpg"));
    check("image/x_NormalHuge.jpg", Ok("image/x_NormalHuge_NormalHires.jpg"));
    check("image/map_web.pdf", Ok("image/map_web.pdf"));
    check("image/x-cropped.jpg", Ok("image/x-cropped_NormalHires.jpg"));
    check("image/x-crop-failure-crop_w1.json", Ok("image/x-crop-failure-crop_w1_x0_y0.json"));
    check("image/crop_w10.jpg", Ok("image/crop_w10_NormalHires.jpg"));
    check("image/x-watermark-b.jpg", Ok("image/x-watermark-b_NormalHires.jpg"));
    check("image/pricelist/pricelist", Ok("image/pricelist/pricelist"));
}

#[test]
fn err_a_number_of_a_crop_names_its_parameter() {
    let check = |parameters: &str, part: &str, message: &str| {
        for tail in [".jpg", "_NormalPreview.jpg", "-watermark_NormalPreview.jpg", ".json"] {
            check(&format!("image/x-crop{parameters}{tail}"), Err((part, message)));
        }
    };
    check("_w0", "crop.w", "crop parameter \"_w\" is zero");
    check("_w10_h00", "crop.h", "crop parameter \"_h\" is zero");
    check("_w4294967296", "crop.w", "crop parameter \"_w\" is too large: 4294967296, at most");
    check("_x9223372036854775808", "crop.x", "crop parameter \"_x\" is too large");
    check("_y18446744073709551616", "crop.y", "crop parameter \"_y\" is too large");
    check("_w000000000000000000001", "crop.w", "crop parameter \"_w\" is too large");
    check("_w-10_h10", "crop.w", "crop parameter \"_w\" needs a whole number of pixels");
    check("_w10_h+10", "crop.h", "crop parameter \"_h\" needs a whole number of pixels");
    check("_x1.5", "crop.x", "crop parameter \"_x\" needs a whole number of pixels");
    check("_w10_h", "crop.h", "crop parameter \"_h\" needs a whole number of pixels");
    check("_w10-foo", "crop.w", "crop parameter \"_w\" needs a whole number of pixels");
}

#[test]
fn err_a_parameter_of_a_crop_is_repeated_unknown_or_missing() {
    check("image/x-crop_w1_w1.jpg", Err(("crop.w", "crop parameter \"_w\" is given more")));
    check("image/x-crop_w1_W2.jpg", Err(("crop.w", "crop parameter \"_w\" is given more")));
    check("image/x-crop_w1_z5.jpg", Err(("crop", "unknown crop parameter \"_z5\"")));
    check("image/x-crop_w1_.jpg", Err(("crop", "unknown crop parameter \"_\"")));
    check("image/x-crop_.jpg", Err(("crop", "unknown crop parameter \"_\"")));
    check("image/x-crop_w1_NormalHuge.jpg", Err(("crop", "unknown crop parameter")));
    check("image/x-crop.jpg", Err(("crop", "\"-crop\" needs at least one of")));
    check("image/x-crop_NormalPreview.jpg", Err(("crop", "\"-crop\" needs at least one of")));
    check("image/x-crop-watermark.jpg", Err(("crop", "\"-crop\" needs at least one of")));
}

#[test]
fn err_an_operation_twice_or_where_it_does_not_belong() {
    let twice = "is given more than once";
    let message = |name: &str| format!("the operation \"{name}\" {twice}");
    check("image/x-watermark-watermark.jpg", Err(("operation", &message("-watermark"))));
    check("image/x-crop_w1-crop_w1.jpg", Err(("operation", &message("-crop"))));
    check("image/x-crop_w1-watermark-crop_h1.jpg", Err(("operation", &message("-crop"))));
    for extension in [".pdf", ".eps", ".mp4", ".xml", ".zip", "-cutpaste.txt", "-indesign.txt"] {
        for (operation, name) in [("-crop_w1", "-crop"), ("-watermark", "-watermark")] {
            let message = format!("\"{extension}\" does not take the operation \"{name}\"");
            check(&format!("graphic/x{operation}{extension}"), Err(("operation", &message)));
        }
    }
    let message = "\".json\" does not take the operation \"-watermark\"";
    check("image/x-watermark.json", Err(("operation", message)));
    check("image/x-crop_w1-watermark.json", Err(("operation", message)));
}

#[test]
fn err_a_suffix_twice_or_where_it_does_not_belong() {
    check(
        "image/x_NormalPreview-crop_w10_h10.jpg",
        Err(("suffix", "the suffix \"_NormalPreview\" precedes an operation")),
    );
    check(
        "text/x/a000_NormalPreview-watermark.jpg",
        Err(("suffix", "the suffix \"_NormalPreview\" precedes an operation")),
    );
    check(
        "image/x_NormalPreview_NormalHires.jpg",
        Err(("suffix", "there is a second suffix \"_NormalPreview\"")),
    );
    for extension in [".json", ".xml", ".zip", "-cutpaste.txt", "-indesign.txt"] {
        let message = format!("\"{extension}\" does not take a suffix, found \"_NormalPreview\"");
        check(&format!("image/x_NormalPreview{extension}"), Err(("suffix", &message)));
    }
    let message = "the suffix \"_BlackAndWhite\" needs a usage";
    check("graphic/x_BlackAndWhite.jpg", Err(("suffix", message)));
    check("graphic/x_BlackAndWhite.mp4", Err(("suffix", message)));
}

#[test]
fn err_a_name_without_its_extension() {
    let message = "needs an extension such as .jpg";
    check("image/x_NormalPreview", Err(("extension", &format!("\"_NormalPreview\" {message}"))));
    check("image/x-watermark", Err(("extension", &format!("\"-watermark\" {message}"))));
    check("image/x-indesign", Err(("extension", &format!("\"-indesign\" {message}"))));
}

#[test]
fn err_an_unknown_extension() {
    check("image/x.jpeg", Err(("extension", "unknown extension \".jpeg\"")));
    check("image/x.png", Err(("extension", "unknown extension \".png\"")));
    check("image/x.", Err(("extension", "unknown extension \".\"")));
    check("text/x.txt", Err(("extension", "\".txt\" needs \"-cutpaste\" or \"-indesign\"")));
    check("text/x/a000_NormalPreview.gif", Err(("extension", "unknown extension \".gif\"")));
}

#[test]
fn err_the_media_type() {
    check("images/x", Err(("mediaType", "unknown media type \"images\"")));
    check("Image/x.jpg", Err(("mediaType", "unknown media type \"Image\"")));
    check("_all/x", Err(("mediaType", "unknown media type \"_all\"")));
    check("images", Err(("mediaType", "unknown media type \"images\"")));
    check("image", Err(("id", "the media path ends after its media type")));
}

#[test]
fn err_the_id() {
    check("image/.jpg", Err(("id", "the id is empty")));
    check("image/_NormalPreview.jpg", Err(("id", "the id is empty")));
    check("image/-crop_w1.jpg", Err(("id", "the id is empty")));
    check("image/-cutpaste.txt", Err(("id", "the id is empty")));
    check("image/x.y.jpg", Err(("id", "the id has '.' at character 2")));
    check("image/x~1.jpg", Err(("id", "the id has '~' at character 2")));
    check("image/-x", Err(("id", "the id has '-' at character 1")));
    check("image/x-cutpaste.jpg", Err(("id", "the id has the operation \"-cutpaste\"")));
    check("image/x.jpg/pricelist", Err(("id", "the id has '.' at character 2")));
    let long = format!("image/{}.jpg", "x".repeat(129));
    check(&long, Err(("id", "the id has 129 characters, at most 128")));
}

#[test]
fn err_the_associated_object() {
    let unknown = |name: &str| format!("the item has no \"{name}\", expected");
    check("image/x/a000", Err(("association", &unknown("a000"))));
    check("image/x/Pricelist", Err(("association", &unknown("Pricelist"))));
    check("text/x/a000.jpg", Err(("suffix", "an associated object needs a suffix")));
    check("text/x/a000_NormalHuge.jpg", Err(("suffix", "an associated object needs a suffix")));
    check("text/x/a000-crop_w1_h1.jpg", Err(("suffix", "an associated object needs a suffix")));
    check("text/x/a000.json", Err(("extension", "an associated object has no \".json\"")));
    check("text/x/_NormalPreview.jpg", Err(("association", "the association key is empty")));
    check("text/x/a_0_NormalPreview.jpg", Err(("association", "the association key has '_'")));
    check("text/x/a.b_NormalPreview.jpg", Err(("association", "the association key has '.'")));
}

#[test]
fn err_a_path_that_names_something_else() {
    let bad = |part: &str, found: char| format!("{part} has the character {found:?}");
    let id = |found: char| bad("id", found);
    check("image/%2e%2e", Err(("id", &id('%'))));
    check("image/%2e%2e/x_NormalPreview.jpg", Err(("id", &id('%'))));
    check("image/x%5c..%5cy.jpg", Err(("id", &id('%'))));
    check("image/x%00.jpg", Err(("id", &id('%'))));
    check("image/x%c0%ae.jpg", Err(("id", &id('%'))));
    check("image/x\\y.jpg", Err(("id", &id('\\'))));
    check("image/x;v=1.jpg", Err(("id", &id(';'))));
    check("image/x\0.jpg", Err(("id", &id('\0'))));
    check("image/x\n.jpg", Err(("id", &id('\n'))));
    check("image/x .jpg", Err(("id", &id(' '))));
    check("image/bild-å.jpg", Err(("id", &id('å'))));
    check("image/x-crop_w١.jpg", Err(("id", &id('١'))));
    check("image/x.jpg?ak=1", Err(("id", &id('?'))));
    check("im%61ge/x", Err(("mediaType", &bad("mediaType", '%'))));
    check("text/x/a000;_NormalPreview.jpg", Err(("association", &bad("association", ';'))));
    check("image/..", Err(("id", "id is \"..\", which names no item")));
    check("image/.", Err(("id", "id is \".\", which names no item")));
    check("../image/x", Err(("mediaType", "mediaType is \"..\", which names no item")));
    check("image/x/..", Err(("association", "association is \"..\", which names no item")));
}

#[test]
fn err_empty_parts_and_too_many() {
    check("", Err(("mediaType", "mediaType is empty")));
    check("/image/x", Err(("mediaType", "mediaType is empty")));
    check("image/", Err(("id", "id is empty")));
    check("image//x", Err(("id", "id is empty")));
    check("image/x/", Err(("association", "association is empty")));
    check("image/x/pricelist/y", Err(("path", "the media path has 4 parts, at most 3")));
    check("image/x/a/../y", Err(("path", "path is \"..\"")));
    let long = format!("image/{}", "x".repeat(1024));
    check(&long, Err(("path", "the media path has 1030 bytes, at most 1024")));
}

#[test]
fn constructors_make_the_paths_of_links() {
    let name = RenditionName::new(RenditionVariant::Normal, RenditionUsage::Preview);
    let picture =
        || MediaPath::rendition(key(MediaType::Image, "x"), name, RenditionExtension::JPEG);
    assert_eq!(picture().print(), "image/x_NormalPreview.jpg");
    let cropped = picture().with_operation(crop("_w5")).unwrap();
    assert_eq!(cropped.print(), "image/x-crop_w5_x0_y0_NormalPreview.jpg");
    let repeated = PathError::RepeatedOperation { operation: "-crop" };
    assert_eq!(cropped.with_operation(crop("_h5")), Err(repeated));
    let item = MediaPath { key: key(MediaType::Text, "x"), target: MediaTarget::Item(None) };
    let missing = PathError::MissingExtension { found: "-watermark".to_owned() };
    assert_eq!(item.with_operation(PictureOperation::Watermark), Err(missing));
    let document = MediaPath::document(key(MediaType::Text, "x"), DocumentExtension::Json);
    let extension = FileExtension::Document(DocumentExtension::Json);
    let not_taken = PathError::OperationNotAllowed { operation: "-watermark", extension };
    assert_eq!(document.with_operation(PictureOperation::Watermark), Err(not_taken));
}
