//! `grey` and `facts` on small documents, without other programs.

use lopdf::{Dictionary, Document, Object, dictionary};
use proptest::prelude::*;

use crate::test_documents::{
    LIMITS, TestDocument, content_of, first_page, image, list, name, rainbow, ramp, space,
    stream_with,
};
use crate::{PdfError, PdfLimits, facts, filter, grey};

/// The content of a page after `grey`.
fn check(sheet: TestDocument, expected: &str) {
    let result = grey(&sheet.bytes(), &LIMITS).unwrap();
    assert_eq!(content_of(&result), expected);
}

#[test]
fn device_operators_become_grey() {
    check(TestDocument::new("1 0 0 rg 0 1 0 RG 0 0 1 rg f"), "0.299 g 0.587 G 0.114 g f");
    check(TestDocument::new("0.25 g 0.5 G f"), "0.25 g 0.5 G f");
    check(TestDocument::new("0 0 0 0 k 1 1 1 1 K f"), "1 g 0 G f");
}

#[test]
fn solid_black_ink_stays_solid_and_tints_follow_the_press() {
    check(TestDocument::new("0 0 0 1 k 0 0 0 .5 K"), "0 g 0.5634 G");
}

#[test]
fn text_and_everything_else_stays_byte_for_byte() {
    let text = "BT /F1 12 Tf (a \\) 1 0 0 rg \\( b) Tj [(x) -20 <0102>] TJ ET % 1 0 0 rg\nq Q";
    check(TestDocument::new(text), text);
    let tagged = "/P <</MCID 0 /C [1 0 0]>> BDC 1 1 0 rg EMC";
    check(TestDocument::new(tagged), "/P <</MCID 0 /C [1 0 0]>> BDC 0.886 g EMC");
}

#[test]
fn device_spaces_chosen_by_name_become_grey() {
    check(TestDocument::new("/DeviceRGB cs 1 0 0 sc /DeviceCMYK CS f"), "0 g 0.299 g 0 G f");
    check(TestDocument::new("/DeviceGray cs 0.3 sc f"), "/DeviceGray cs 0.3 sc f");
}

#[test]
fn saved_colour_spaces_are_restored() {
    let content = "/DeviceRGB cs q /DeviceGray cs 0.5 sc Q 0 1 0 sc";
    check(TestDocument::new(content), "0 g q /DeviceGray cs 0.5 sc Q 0.587 g");
}

#[test]
fn indexed_colours_are_looked_up() {
    let table = Object::string_literal(vec![255, 0, 0, 0, 255, 0]);
    let indexed = space(vec![name("Indexed"), name("DeviceRGB"), 1.into(), table]);
    let sheet = TestDocument::new("/A cs 1 sc f").with("ColorSpace", "A", indexed);
    check(sheet, "0.299 g 0.587 g f");
}

#[test]
fn separations_go_through_their_tint_functions() {
    let tint = ramp(&[1.0, 1.0, 1.0], &[1.0, 0.0, 0.0]);
    let spot = space(vec![name("Separation"), name("Spot"), name("DeviceRGB"), tint]);
    let sheet = TestDocument::new("/A cs 0.5 scn f").with("ColorSpace", "A", spot);
    check(sheet, "0.299 g 0.6495 g f");
}

#[test]
fn device_n_goes_through_a_calculator() {
    let mut sheet = TestDocument::new("/A cs 1 0 scn 0 1 scn");
    let program = dictionary! {
        "FunctionType" => 4, "Domain" => list(&[0.0, 1.0, 0.0, 1.0]),
        "Range" => list(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]),
    };
    let program =
        sheet.stream(program, b"{ dup 0.5 gt { exch pop 0 exch 0 } { pop 0 0 } ifelse }");
    let names = space(vec![name("One"), name("Two")]);
    let colorants = space(vec![name("DeviceN"), names, name("DeviceRGB"), program]);
    check(sheet.with("ColorSpace", "A", colorants), "0.587 g 0.299 g 0.587 g");
}

#[test]
fn the_colorant_none_still_paints_nothing() {
    let tint = ramp(&[1.0, 1.0, 1.0], &[1.0, 0.0, 0.0]);
    let none = space(vec![name("Separation"), name("None"), name("DeviceRGB"), tint]);
    let sheet = TestDocument::new("/A cs 0.5 scn f").with("ColorSpace", "A", none);
    let result = grey(&sheet.bytes(), &LIMITS).unwrap();
    assert_eq!(content_of(&result), "/A cs 0.5 scn f");
    let kept = resources_of(&result);
    let kept = kept.get(b"ColorSpace").unwrap().as_dict().unwrap().get(b"A").unwrap();
    assert_eq!(kept.as_array().unwrap()[2], name("DeviceGray"));
}

#[test]
fn default_spaces_replace_device_spaces() {
    let lab = dictionary! { "WhitePoint" => list(&[0.95, 1.0, 1.09]) };
    let lab = space(vec![name("Lab"), lab.into()]);
    let sheet = TestDocument::new("100 0 0 rg").with("ColorSpace", "DefaultRGB", lab);
    check(sheet, "1 g");
}

#[test]
fn uncoloured_patterns_keep_their_name_and_get_grey() {
    let under = space(vec![name("Pattern"), name("DeviceRGB")]);
    let sheet = TestDocument::new("/A cs 1 0 0 /P scn f").with("ColorSpace", "A", under);
    let result = grey(&sheet.bytes(), &LIMITS).unwrap();
    assert_eq!(content_of(&result), "/A cs 0.299 /P scn f");
    let kept = resources_of(&result);
    let kept = kept.get(b"ColorSpace").unwrap().as_dict().unwrap().get(b"A").unwrap();
    assert_eq!(kept.as_array().unwrap()[1], name("DeviceGray"));
}

fn resources_of(bytes: &[u8]) -> Dictionary {
    let document = Document::load_mem(bytes).unwrap();
    let page = document.get_dictionary(first_page(&document)).unwrap().clone();
    page.get(b"Resources").unwrap().as_dict().unwrap().clone()
}

#[test]
fn forms_patterns_and_glyphs_become_grey() {
    for (category, kind, extra) in [("XObject", "Subtype", "Form"), ("Pattern", "Mark", "Tiling")]
    {
        let mut sheet = TestDocument::new("/A Do");
        let mut form = dictionary! { kind => extra, "BBox" => list(&[0.0, 0.0, 9.0, 9.0]) };
        form.set("PatternType", 1);
        let form = sheet.stream(form, b"1 0 0 rg f");
        let result = grey(&sheet.with(category, "A", form).bytes(), &LIMITS).unwrap();
        let form = stream_with(&result, kind, extra);
        assert_eq!(form.decompressed_content().unwrap(), b"0.299 g f");
    }
    let mut sheet = TestDocument::new("BT ET");
    let glyph = sheet.stream(dictionary! { "Mark" => "Glyph" }, b"9 0 d0 1 0 0 rg f");
    let font = dictionary! {
        "Type" => "Font", "Subtype" => "Type3", "CharProcs" => dictionary! { "a" => glyph },
    };
    let result = grey(&sheet.with("Font", "A", font).bytes(), &LIMITS).unwrap();
    let glyph = stream_with(&result, "Mark", "Glyph");
    assert_eq!(glyph.decompressed_content().unwrap(), b"9 0 d0 0.299 g f");
}

#[test]
fn annotations_become_grey() {
    let mut sheet = TestDocument::new("q Q");
    let look = sheet.stream(dictionary! { "Mark" => "Look" }, b"1 0 0 rg f");
    let annotation = dictionary! {
        "Type" => "Annot", "Subtype" => "Square", "C" => list(&[0.0, 1.0, 0.0]),
        "MK" => dictionary! { "BG" => list(&[0.0, 0.0, 0.0, 1.0]) },
        "AP" => dictionary! { "N" => look }, "DA" => Object::string_literal("0 0 1 rg"),
    };
    let annotation = sheet.document.add_object(annotation);
    sheet.page.set("Annots", vec![annotation.into()]);
    let result = grey(&sheet.bytes(), &LIMITS).unwrap();
    let look = stream_with(&result, "Mark", "Look");
    assert_eq!(look.decompressed_content().unwrap(), b"0.299 g f");
    let document = Document::load_mem(&result).unwrap();
    let changed = document
        .objects
        .values()
        .find_map(|object| object.as_dict().ok().filter(|found| found.has(b"Subtype")).cloned());
    let changed = changed.unwrap();
    assert_eq!(changed.get(b"C").unwrap(), &list(&[0.587]));
    assert_eq!(changed.get(b"DA").unwrap().as_str().unwrap(), b"0.114 g");
    let button = changed.get(b"MK").unwrap().as_dict().unwrap();
    assert_eq!(button.get(b"BG").unwrap().as_array().unwrap()[0].as_float().unwrap(), 0.0);
}

/// The image of a page after `grey`.
fn grey_image(entries: Dictionary, content: &[u8]) -> lopdf::Stream {
    let mut sheet = TestDocument::new("/I Do");
    let image = sheet.stream(entries, content);
    let result = grey(&sheet.with("XObject", "I", image).bytes(), &LIMITS).unwrap();
    stream_with(&result, "Subtype", "Image")
}

#[test]
fn rgb_images_become_grey_samples() {
    let result = grey_image(image(16, 16, 8, name("DeviceRGB")), &rainbow());
    assert_eq!(result.dict.get(b"ColorSpace").unwrap(), &name("DeviceGray"));
    let greys = result.decompressed_content().unwrap();
    assert_eq!(greys.len(), 256);
    assert_eq!(greys[0], 29);
    assert_eq!(greys[15], 92);
}

#[test]
fn decode_arrays_are_applied() {
    let mut entries = image(1, 1, 8, name("DeviceRGB"));
    entries.set("Decode", list(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]));
    let result = grey_image(entries, &[0, 255, 255]);
    assert_eq!(result.decompressed_content().unwrap(), [76]);
    assert!(!result.dict.has(b"Decode"));
}

#[test]
fn indexed_images_keep_their_samples_and_get_a_grey_table() {
    let table = Object::string_literal(vec![255, 0, 0, 0, 255, 0]);
    let indexed = space(vec![name("Indexed"), name("DeviceRGB"), 1.into(), table]);
    let mut entries = image(8, 1, 1, indexed);
    entries.set("Mask", vec![0.into(), 0.into()]);
    let result = grey_image(entries, &[0b0101_0101]);
    assert_eq!(result.content, [0b0101_0101]);
    let space = result.dict.get(b"ColorSpace").unwrap().as_array().unwrap();
    assert_eq!(space[1], name("DeviceGray"));
    assert_eq!(space[3].as_str().unwrap(), [76, 150]);
    assert!(result.dict.get(b"Mask").unwrap().as_array().is_ok());
}

#[test]
fn a_colour_key_becomes_a_stencil() {
    let mut entries = image(2, 1, 8, name("DeviceRGB"));
    entries.set("Mask", list(&[250.0, 255.0, 0.0, 5.0, 0.0, 5.0]));
    let result = grey_image(entries, &[255, 0, 0, 0, 255, 0]);
    assert!(result.dict.get(b"Mask").unwrap().as_reference().is_ok());
    assert_eq!(result.decompressed_content().unwrap(), [76, 150]);
}

#[test]
fn images_of_few_bits_and_many_are_read() {
    for (bits, samples) in [
        (1, vec![0b1000_0000]),
        (2, vec![0b1100_0000]),
        (4, vec![0xf0, 0]),
        (16, vec![255, 255, 0, 0, 0, 0]),
    ] {
        let result = grey_image(image(1, 1, bits, name("DeviceRGB")), &samples);
        assert_eq!(result.decompressed_content().unwrap(), [76], "{bits} bits");
    }
}

#[test]
fn ycbcr_jpegs_give_their_luminance_without_loss() {
    let picture = turbojpeg::Image {
        pixels: &rainbow()[..],
        width: 16,
        pitch: 48,
        height: 16,
        format: turbojpeg::PixelFormat::RGB,
    };
    let jpeg = turbojpeg::compress(picture, 90, turbojpeg::Subsamp::Sub2x2).unwrap();
    let mut entries = image(16, 16, 8, name("DeviceRGB"));
    entries.set("Filter", "DCTDecode");
    let result = grey_image(entries, &jpeg);
    let grey = turbojpeg::decompress(&result.content, turbojpeg::PixelFormat::GRAY).unwrap();
    let luma = turbojpeg::decompress(&jpeg, turbojpeg::PixelFormat::GRAY).unwrap();
    assert_eq!(grey.pixels, luma.pixels);
    assert_eq!(
        turbojpeg::read_header(&result.content).unwrap().colorspace,
        turbojpeg::Colorspace::Gray
    );
}

#[test]
fn inline_images_become_grey() {
    let content = "q BI /W 1 /H 1 /BPC 8 /CS /RGB /F /AHx ID ff0000> EI Q 1 0 0 rg";
    let result = grey(&TestDocument::new(content).bytes(), &LIMITS).unwrap();
    let document = Document::load_mem(&result).unwrap();
    let content = document.get_page_content(first_page(&document));
    assert!(content.starts_with(b"q BI /Width 1 /Height 1 "));
    assert!(content.trim_ascii_end().ends_with(b"\nEI Q 0.299 g"));
    let data = content.windows(3).position(|window| window == b"ID ").unwrap() + 3;
    let end = content.windows(3).rposition(|window| window == b"\nEI").unwrap();
    assert_eq!(filter_inflate(&content[data..end]), [76]);
}

fn filter_inflate(bytes: &[u8]) -> Vec<u8> {
    let mut result = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(bytes), &mut result).unwrap();
    result
}

#[test]
fn inline_masks_with_data_like_operators_stay() {
    let content = "BI /W 8 /H 6 /IM true ID EI EI EI 1 0 0 rg";
    check(TestDocument::new(content), "BI /W 8 /H 6 /IM true ID EI EI EI 0.299 g");
}

#[test]
fn inline_images_without_data_end_at_their_first_end() {
    check(TestDocument::new("BI /W 1 EI 1 0 0 rg"), "BI /W 1 EI 0.299 g");
    let content = "BI /W 1 EI 1 0 0 rg BI /W 8 /H 1 /IM true ID @ EI 0 1 0 rg";
    let expected = "BI /W 1 EI 0.299 g BI /W 8 /H 1 /IM true ID @ EI 0.587 g";
    check(TestDocument::new(content), expected);
}

#[test]
fn axial_shadings_keep_their_functions_exact() {
    let function = ramp(&[1.0, 0.0, 0.0], &[0.0, 1.0, 0.0]);
    let shading = dictionary! {
        "ShadingType" => 2, "ColorSpace" => "DeviceRGB", "Coords" => list(&[0.0, 0.0, 9.0, 0.0]),
        "Function" => function, "Background" => list(&[0.0, 0.0, 1.0]),
    };
    let sheet = TestDocument::new("/S sh").with("Shading", "S", shading);
    let resources = resources_of(&grey(&sheet.bytes(), &LIMITS).unwrap());
    let shading = resources.get(b"Shading").unwrap().as_dict().unwrap();
    let shading = shading.get(b"S").unwrap().as_dict().unwrap();
    assert_eq!(shading.get(b"ColorSpace").unwrap(), &name("DeviceGray"));
    assert_eq!(shading.get(b"Background").unwrap(), &list(&[0.114]));
    let function = shading.get(b"Function").unwrap().as_dict().unwrap();
    assert_eq!(function.get(b"C0").unwrap(), &list(&[0.299]));
    assert_eq!(function.get(b"C1").unwrap(), &list(&[0.587]));
}

#[test]
fn the_same_file_gives_the_same_bytes() {
    let mut sheet = TestDocument::new("1 0 0 rg /I Do");
    let picture = sheet.stream(image(16, 16, 8, name("DeviceRGB")), &rainbow());
    let bytes = sheet.with("XObject", "I", picture).bytes();
    assert_eq!(grey(&bytes, &LIMITS).unwrap(), grey(&bytes, &LIMITS).unwrap());
}

#[test]
fn a_grey_version_of_a_grey_version_has_the_same_content() {
    let once = grey(&TestDocument::new("1 0 0 rg /DeviceCMYK cs f").bytes(), &LIMITS).unwrap();
    let twice = grey(&once, &LIMITS).unwrap();
    assert_eq!(content_of(&once), content_of(&twice));
}

#[test]
fn facts_are_those_of_the_box_that_is_shown() {
    let mut sheet = TestDocument::new("");
    sheet.page.set("CropBox", list(&[10.0, 10.0, 60.0, 300.0]));
    sheet.page.set("Rotate", 90);
    sheet.page.set("UserUnit", 2);
    let found = facts(&sheet.bytes(), &LIMITS).unwrap();
    assert_eq!((found.pages, found.width_pt, found.height_pt), (1, 180.0, 100.0));
}

#[test]
fn files_that_are_not_pdfs_are_refused() {
    assert_eq!(facts(b"GIF89a", &LIMITS), Err(PdfError::NotPdf { found: 6 }));
    assert!(matches!(facts(b"%PDF-1.4 ", &LIMITS), Err(PdfError::Malformed { .. })));
}

#[test]
fn encrypted_files_are_refused() {
    let mut document = Document::load_mem(&TestDocument::new("f").bytes()).unwrap();
    let id = Object::string_literal(vec![7; 16]);
    document.trailer.set("ID", vec![id.clone(), id]);
    let version = lopdf::EncryptionVersion::V2 {
        document: &document,
        owner_password: "owner",
        user_password: "",
        key_length: 128,
        permissions: lopdf::Permissions::all(),
    };
    let state = lopdf::EncryptionState::try_from(version).unwrap();
    document.encrypt(&state).unwrap();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    assert_eq!(facts(&bytes, &LIMITS), Err(PdfError::Encrypted));
    assert_eq!(grey(&bytes, &LIMITS), Err(PdfError::Encrypted));
}

/// The error of `grey` when one limit is changed.
fn refused(sheet: TestDocument, change: impl Fn(&mut PdfLimits)) -> PdfError {
    let mut limits = LIMITS;
    change(&mut limits);
    grey(&sheet.bytes(), &limits).unwrap_err()
}

#[test]
fn limits_are_named_when_they_are_reached() {
    let error = refused(TestDocument::new("f"), |limits| limits.bytes = 10);
    assert!(matches!(error, PdfError::TooMany { what: "bytes", max: 10, .. }));
    let error = refused(TestDocument::new("f"), |limits| limits.objects = 2);
    assert_eq!(error, PdfError::TooMany { what: "objects", found: 5, max: 2 });
    let error = refused(TestDocument::new("f f f f f"), |limits| limits.operators = 3);
    assert_eq!(error, PdfError::TooManyOperators { max: 3 });
    let bomb = || {
        let mut sheet = TestDocument::new("/I Do");
        let mut entries = image(4000, 4000, 8, name("DeviceRGB"));
        entries.set("Filter", "FlateDecode");
        let bomb = sheet.stream(entries, &filter::deflate(&vec![0; 1 << 20]));
        sheet.with("XObject", "I", bomb)
    };
    let error = refused(bomb(), |limits| limits.decoded_bytes = 1 << 18);
    assert_eq!(error, PdfError::TooMuchData { max: 1 << 18 });
    let error = refused(bomb(), |limits| limits.image_pixels = 1000);
    assert_eq!(error, PdfError::ImageTooLarge { width: 4000, height: 4000, max: 1000 });
}

#[test]
fn cyclic_references_terminate() {
    let mut sheet = TestDocument::new("/A Do 0 0 0 rg");
    let id = sheet.document.new_object_id();
    let list = dictionary! { "A" => id };
    let form =
        dictionary! { "Subtype" => "Form", "Resources" => dictionary! { "XObject" => list } };
    sheet.document.objects.insert(id, lopdf::Stream::new(form, b"/A Do 1 0 0 rg".to_vec()).into());
    assert!(grey(&sheet.with("XObject", "A", id).bytes(), &LIMITS).is_ok());

    let mut sheet = TestDocument::new("/A cs");
    let id = sheet.document.new_object_id();
    let cycle = space(vec![name("Pattern"), id.into()]);
    sheet.document.objects.insert(id, cycle);
    let result = grey(&sheet.with("ColorSpace", "A", id).bytes(), &LIMITS);
    assert_eq!(result, Err(PdfError::TooDeep { what: "colour spaces", max: 16 }));

    let mut sheet = TestDocument::new("/A cs");
    let id = sheet.document.new_object_id();
    let function = dictionary! {
        "FunctionType" => 3, "Domain" => list_of_two(), "Bounds" => Object::Array(vec![0.5.into()]),
        "Encode" => Object::Array(vec![0.into(), 1.into(), 0.into(), 1.into()]),
        "Functions" => vec![id.into(), id.into()],
    };
    sheet.document.objects.insert(id, function.into());
    let tint = space(vec![name("Separation"), name("S"), name("DeviceRGB"), id.into()]);
    let result = grey(&sheet.with("ColorSpace", "A", tint).bytes(), &LIMITS);
    assert_eq!(result, Err(PdfError::TooDeep { what: "functions", max: 16 }));
}

fn list_of_two() -> Object {
    list(&[0.0, 1.0])
}

#[test]
fn deep_nesting_of_brackets_is_survived() {
    let mut bytes = b"%PDF-1.4\n1 0 obj\n".to_vec();
    bytes.extend(vec![b'['; 200_000]);
    bytes.extend(b"\nendobj\ntrailer <</Root 1 0 R /Size 2>>\nstartxref\n9\n%%EOF");
    assert!(grey(&bytes, &LIMITS).is_err());
    let content = "[".repeat(100_000) + &"<<".repeat(100_000) + &"(".repeat(100_000);
    assert!(grey(&TestDocument::new(&content).bytes(), &LIMITS).is_ok());
}

proptest! {
    #[test]
    fn any_content_is_survived(content in "[ -~\n]{0,200}") {
        let _ = grey(&TestDocument::new(&content).bytes(), &LIMITS);
    }

    #[test]
    fn any_words_of_content_are_survived(words in prop::collection::vec(
        prop::sample::select(vec![
            "q", "Q", "1", "0.5", "-3", "/A", "/DeviceRGB", "/Pattern", "cs", "CS", "scn", "SC",
            "rg", "k", "BI", "ID", "EI", "/W 2", "/H 2", "/CS /RGB", "(", ")", "<<", ">>", "[",
            "]", "/F /Fl", "/BPC 8", "%", "\n",
        ]), 0..60)) {
        let _ = grey(&TestDocument::new(&words.join(" ")).bytes(), &LIMITS);
    }

    #[test]
    fn damaged_files_are_survived(edits in prop::collection::vec((any::<u16>(), any::<u8>()), 1..20)) {
        let mut sheet = TestDocument::new("1 0 0 rg /I Do /A cs 0.5 scn");
        let picture = sheet.stream(image(16, 16, 8, name("DeviceRGB")), &rainbow());
        let tint = ramp(&[1.0, 1.0, 1.0], &[1.0, 0.0, 0.0]);
        let spot = space(vec![name("Separation"), name("S"), name("DeviceRGB"), tint]);
        let mut bytes = sheet.with("XObject", "I", picture).with("ColorSpace", "A", spot).bytes();
        let length = bytes.len();
        for (at, byte) in edits {
            bytes[usize::from(at) % length] = byte;
        }
        let _ = facts(&bytes, &LIMITS);
        let _ = grey(&bytes, &LIMITS);
    }

    #[test]
    fn filters_survive_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), early: bool) {
        prop_assert!(crate::lzw::decode(&bytes, early, 1000).len() <= 1000);
        let _ = crate::calculator::Calculator::parse(&bytes);
    }
}
