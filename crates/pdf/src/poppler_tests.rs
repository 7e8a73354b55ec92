//! `grey` checked with other programs: poppler renders both versions and extracts their text, qpdf checks the
//! structure.
//!
//! The page of the original, rendered in colour and then converted to grey, must look like the page from `grey`.
//! Contract files-7.

use std::path::Path;
use std::process::Command;

use lopdf::{Dictionary, Object, dictionary};

use crate::grey;
use crate::test_documents::{LIMITS, TestDocument, image, list, name, rainbow, ramp, space};

/// The output of a program that must succeed.
fn run(program: &str, arguments: &[&str], file: &Path) -> Vec<u8> {
    let mut command = Command::new(program);
    let output = command.args(arguments).arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout[..output.stdout.len().min(500)]);
    assert!(output.status.success(), "{program}: {text}");
    output.stdout
}

/// Page 1 at 72 pixels per inch, RGB, rendered by poppler.
fn drawn(file: &Path) -> Vec<u8> {
    let picture = run("pdftoppm", &["-r", "72", "-f", "1", "-l", "1"], file);
    let lines = picture.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let (end, _) = lines.take(3).last().unwrap();
    assert_eq!(&picture[..2], b"P6");
    picture[end + 1..].to_vec()
}

fn luma(pixel: &[u8]) -> f64 {
    0.299 * f64::from(pixel[0]) + 0.587 * f64::from(pixel[1]) + 0.114 * f64::from(pixel[2])
}

/// The difference between the two versions, in levels of 255: the mean and the 99th percentile.
fn difference(sheet: TestDocument) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (folder.path().join("before.pdf"), folder.path().join("after.pdf"));
    let original = sheet.bytes();
    std::fs::write(&before, &original).unwrap();
    std::fs::write(&after, grey(&original, &LIMITS).unwrap()).unwrap();
    run("qpdf", &["--check"], &after);
    assert_eq!(text(&before), text(&after));
    let (colour, result) = (drawn(&before), drawn(&after));
    assert_eq!(colour.len(), result.len());
    assert!(result.chunks_exact(3).all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2]));
    assert!(colour.iter().any(|sample| *sample < 250), "the original is empty");
    let pairs = colour.chunks_exact(3).zip(result.chunks_exact(3));
    let mut differences: Vec<f64> =
        pairs.map(|(colour, grey)| (luma(colour) - f64::from(grey[0])).abs()).collect();
    differences.sort_by(f64::total_cmp);
    let count = differences.len();
    let mean = differences.iter().sum::<f64>() / f64::from(u32::try_from(count).unwrap());
    (mean, differences[count * 99 / 100])
}

fn text(file: &Path) -> Vec<u8> {
    let output = Command::new("pdftotext").arg(file).arg("-").output().unwrap();
    assert!(output.status.success());
    output.stdout
}

fn check(sheet: TestDocument) {
    check_within(sheet, 1.5, 4.0);
}

fn check_within(sheet: TestDocument, mean_max: f64, high_max: f64) {
    let (mean, high) = difference(sheet);
    println!("mean {mean:.3}, 99th percentile {high:.2}");
    assert!(mean < mean_max && high < high_max, "mean {mean}, 99th percentile {high}");
}

/// Sixteen squares, each in the colour that an operator with these operands sets.
fn squares(operator: &str, colours: &[&str]) -> String {
    let square = |(at, colour): (usize, &&str)| {
        let (x, y) = (at % 4 * 25, at / 4 * 25);
        format!("{colour} {operator} {x} {y} 25 25 re f ")
    };
    colours.iter().enumerate().map(square).collect()
}

const THREE: [&str; 9] =
    ["1 0 0", "0 1 0", "0 0 1", "1 1 0", "0 1 1", "1 0 1", ".2 .4 .6", ".9 .5 .1", ".5 .5 .5"];
const FOUR: [&str; 12] = [
    "1 0 0 0",
    "0 1 0 0",
    "0 0 1 0",
    "1 1 0 0",
    "0 1 1 0",
    "1 0 1 0",
    "1 1 1 0",
    ".2 .4 .6 .1",
    ".9 .5 .1 .3",
    ".5 .5 .5 .5",
    "0 0 0 .5",
    ".1 .1 .1 1",
];

#[test]
fn device_colours_look_the_same() {
    check(TestDocument::new(&squares("rg", &THREE)));
    check(TestDocument::new(&squares("k", &FOUR)));
}

#[test]
fn cal_rgb_and_cal_grey_look_the_same() {
    let white = || list(&[0.9505, 1.0, 1.089]);
    let matrix = list(&[0.4124, 0.2126, 0.0193, 0.3576, 0.7152, 0.1192, 0.1805, 0.0722, 0.9505]);
    let rgb = dictionary! {
        "WhitePoint" => white(), "Gamma" => list(&[2.2, 2.2, 2.2]), "Matrix" => matrix,
    };
    let content = "/A cs ".to_owned() + &squares("sc", &THREE);
    let rgb = space(vec![name("CalRGB"), rgb.into()]);
    check_within(TestDocument::new(&content).with("ColorSpace", "A", rgb), 3.0, 8.0);
    let grey = dictionary! { "WhitePoint" => white(), "Gamma" => 2.2 };
    let grey = space(vec![name("CalGray"), grey.into()]);
    let content = "/A cs ".to_owned() + &squares("sc", &["0", ".2", ".5", ".8", "1"]);
    check_within(TestDocument::new(&content).with("ColorSpace", "A", grey), 3.0, 8.0);
}

#[test]
fn lab_looks_the_same() {
    let lab = dictionary! { "WhitePoint" => list(&[0.9642, 1.0, 0.8249]) };
    let lab = space(vec![name("Lab"), lab.into()]);
    let colours = ["50 0 0", "70 40 20", "30 -20 -40", "90 -10 60", "60 60 60", "20 10 -50"];
    let content = "/A cs ".to_owned() + &squares("sc", &colours);
    check_within(TestDocument::new(&content).with("ColorSpace", "A", lab), 3.0, 8.0);
}

#[test]
fn profiles_look_the_same() {
    for (components, profile, colours) in [
        (3, moxcms::ColorProfile::new_adobe_rgb(), &THREE[..]),
        (3, moxcms::ColorProfile::new_srgb(), &THREE[..]),
        (1, moxcms::ColorProfile::new_gray_with_gamma(1.8), &["0", ".2", ".5", ".8", "1"][..]),
    ] {
        let mut sheet = TestDocument::new(&("/A cs ".to_owned() + &squares("sc", colours)));
        let profile = profile.encode().unwrap();
        let profile = sheet.stream(dictionary! { "N" => components }, &profile);
        let based = space(vec![name("ICCBased"), profile]);
        check_within(sheet.with("ColorSpace", "A", based), 2.0, 6.0);
    }
}

#[test]
fn tints_look_the_same() {
    let tint = ramp(&[0.0, 0.0, 0.0, 0.0], &[0.1, 0.9, 0.7, 0.2]);
    let spot = space(vec![name("Separation"), name("Spot"), name("DeviceCMYK"), tint]);
    let content = "/A cs ".to_owned() + &squares("scn", &["0", ".2", ".5", ".8", "1"]);
    check(TestDocument::new(&content).with("ColorSpace", "A", spot));

    let mut sheet =
        TestDocument::new(&("/A cs ".to_owned() + &squares("scn", &["0 1", "1 0", ".5 .5"])));
    let table = dictionary! {
        "FunctionType" => 0, "Domain" => list(&[0.0, 1.0, 0.0, 1.0]), "BitsPerSample" => 8,
        "Range" => list(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]), "Size" => vec![2.into(), 2.into()],
    };
    let table = sheet.stream(table, &[255, 255, 255, 255, 0, 0, 0, 0, 255, 40, 10, 60]);
    let names = space(vec![name("One"), name("Two")]);
    let colorants = space(vec![name("DeviceN"), names, name("DeviceRGB"), table]);
    check(sheet.with("ColorSpace", "A", colorants));
}

/// A page filled by one image.
fn picture(entries: Dictionary, content: &[u8]) -> TestDocument {
    let mut sheet = TestDocument::new("0 1 1 rg 0 0 100 100 re f q 96 0 0 96 0 0 cm /I Do Q");
    let image = sheet.stream(entries, content);
    sheet.with("XObject", "I", image)
}

#[test]
fn packed_images_look_the_same() {
    check(picture(image(16, 16, 8, name("DeviceRGB")), &rainbow()));
    check(picture(image(8, 8, 16, name("DeviceRGB")), &rainbow()));
    check(picture(image(8, 8, 4, name("DeviceRGB")), &rainbow()));
    check(picture(image(16, 12, 8, name("DeviceCMYK")), &rainbow()));
    let mut inverted = image(16, 12, 8, name("DeviceCMYK"));
    inverted.set("Decode", list(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]));
    check(picture(inverted, &rainbow()));
    let mut keyed = image(16, 16, 8, name("DeviceRGB"));
    keyed.set("Mask", list(&[0.0, 100.0, 0.0, 100.0, 100.0, 255.0]));
    check(picture(keyed, &rainbow()));
    let lab = dictionary! { "WhitePoint" => list(&[0.9642, 1.0, 0.8249]) };
    let lab = space(vec![name("Lab"), lab.into()]);
    check_within(picture(image(16, 16, 8, lab), &rainbow()), 3.0, 12.0);
}

#[test]
fn images_with_tables_look_the_same() {
    for bits in [1i64, 2, 4, 8] {
        let last = (1 << bits) - 1;
        let table = Object::string_literal(rainbow()[..(3 * (1 << bits)).min(768)].to_vec());
        let indexed = space(vec![name("Indexed"), name("DeviceRGB"), last.into(), table]);
        check(picture(image(16, 16, bits, indexed), &rainbow()));
    }
    let tint = ramp(&[0.0, 0.0, 0.0, 0.0], &[0.1, 0.9, 0.7, 0.2]);
    let spot = space(vec![name("Separation"), name("Spot"), name("DeviceCMYK"), tint]);
    let mut entries = image(16, 16, 8, spot);
    entries.set("Decode", list(&[1.0, 0.0]));
    check(picture(entries, &rainbow()));
}

fn jpeg(samples: &[u8], format: turbojpeg::PixelFormat) -> Vec<u8> {
    let pitch = format.size() * 16;
    let picture = turbojpeg::Image { pixels: samples, width: 16, pitch, height: 16, format };
    let mut encoder = turbojpeg::Compressor::new().unwrap();
    encoder.set_quality(95).unwrap();
    if format == turbojpeg::PixelFormat::CMYK {
        encoder.set_colorspace(turbojpeg::Colorspace::YCCK).unwrap();
    }
    encoder.compress_to_vec(picture).unwrap()
}

#[test]
fn jpegs_look_the_same() {
    let rgb = jpeg(&rainbow(), turbojpeg::PixelFormat::RGB);
    let mut entries = image(16, 16, 8, name("DeviceRGB"));
    entries.set("Filter", "DCTDecode");
    check(picture(entries.clone(), &rgb));
    entries.set("Decode", list(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]));
    check(picture(entries, &rgb));
    let samples: Vec<u8> =
        rainbow().chunks_exact(3).flat_map(|rgb| [rgb[0], rgb[1], rgb[2], 230]).collect();
    let cmyk = jpeg(&samples, turbojpeg::PixelFormat::CMYK);
    let mut entries = image(16, 16, 8, name("DeviceCMYK"));
    entries.set("Filter", "DCTDecode");
    check_within(picture(entries.clone(), &cmyk), 2.0, 6.0);
    entries.set("Decode", list(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]));
    check_within(picture(entries, &cmyk), 2.0, 6.0);
}

#[test]
fn soft_masks_and_groups_look_the_same() {
    let mut sheet = TestDocument::new("/G gs 1 0 0 rg 0 0 100 100 re f");
    let group = dictionary! {
        "Subtype" => "Form", "BBox" => list(&[0.0, 0.0, 100.0, 100.0]),
        "Group" => dictionary! { "S" => "Transparency", "CS" => "DeviceRGB", "I" => true },
    };
    let form = sheet.stream(group, b"0 1 0 rg 20 20 60 60 re f 0 0 1 rg 40 40 20 20 re f");
    let state = dictionary! { "SMask" => dictionary! {
        "S" => "Luminosity", "G" => form, "BC" => list(&[1.0, 0.0, 0.0]),
    } };
    check(sheet.with("ExtGState", "G", state));

    let mut sheet = TestDocument::new("0 1 0 rg 0 0 100 100 re f 100 0 0 100 0 0 cm /I Do");
    let mask = sheet.stream(image(16, 16, 8, name("DeviceGray")), &rainbow());
    let mut entries = image(16, 16, 8, name("DeviceRGB"));
    entries.set("SMask", mask);
    let picture = sheet.stream(entries, &rainbow());
    check(sheet.with("XObject", "I", picture));
}

/// A page filled by a shading.
fn shaded(mut entries: Dictionary, data: Option<&[u8]>) -> TestDocument {
    let mut sheet = TestDocument::new("/S sh");
    if !entries.has(b"ColorSpace") {
        entries.set("ColorSpace", "DeviceRGB");
    }
    let shading = match data {
        Some(data) => sheet.stream(entries, data),
        None => Object::Dictionary(entries),
    };
    sheet.with("Shading", "S", shading)
}

#[test]
fn gradients_look_the_same() {
    let stitched = || {
        Object::Dictionary(dictionary! {
            "FunctionType" => 3, "Domain" => list(&[0.0, 1.0]), "Bounds" => list(&[0.4]),
            "Encode" => list(&[0.0, 1.0, 1.0, 0.0]),
            "Functions" => vec![
                ramp(&[1.0, 0.0, 0.0], &[0.0, 0.0, 1.0]), ramp(&[0.0, 1.0, 0.0], &[1.0, 1.0, 0.0]),
            ],
        })
    };
    check(shaded(
        dictionary! {
            "ShadingType" => 2, "Coords" => list(&[0.0, 0.0, 100.0, 50.0]), "Function" => stitched(),
        },
        None,
    ));
    check(shaded(
        dictionary! {
            "ShadingType" => 3, "Coords" => list(&[50.0, 50.0, 5.0, 50.0, 50.0, 50.0]),
            "Function" => stitched(), "Extend" => vec![true.into(), true.into()],
        },
        None,
    ));
    check(shaded(
        dictionary! {
            "ShadingType" => 2, "Coords" => list(&[0.0, 0.0, 100.0, 0.0]),
            "ColorSpace" => "DeviceCMYK",
            "Function" => ramp(&[1.0, 0.0, 0.0, 0.0], &[0.0, 1.0, 1.0, 0.5]),
        },
        None,
    ));
    let separate = vec![ramp(&[0.0], &[1.0]), ramp(&[1.0], &[0.0]), ramp(&[0.5], &[0.5])];
    check(shaded(
        dictionary! {
            "ShadingType" => 2, "Coords" => list(&[0.0, 0.0, 100.0, 0.0]), "Function" => separate,
        },
        None,
    ));
}

#[test]
fn function_shadings_look_the_same() {
    let mut sheet = TestDocument::new("100 0 0 100 0 0 cm /S sh");
    let program = dictionary! {
        "FunctionType" => 4, "Domain" => list(&[0.0, 1.0, 0.0, 1.0]),
        "Range" => list(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]),
    };
    let program = sheet.stream(program, b"{ 2 copy mul 360 mul sin abs }");
    let shading = dictionary! {
        "ShadingType" => 1, "ColorSpace" => "DeviceRGB", "Function" => program,
    };
    check(sheet.with("Shading", "S", shading));
}

/// Entries of a mesh whose coordinates are bytes from 0 to 100.
fn mesh(kind: i64) -> Dictionary {
    dictionary! {
        "ShadingType" => kind, "BitsPerCoordinate" => 8, "BitsPerComponent" => 8,
        "BitsPerFlag" => 8,
        "Decode" => list(&[0.0, 255.0, 0.0, 255.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]),
    }
}

#[test]
fn meshes_look_the_same() {
    let triangle = [0, 0, 0, 255, 0, 0, 0, 100, 0, 0, 255, 0, 0, 50, 100, 0, 0, 255];
    check(shaded(mesh(4), Some(&triangle)));
    let mut lattice = mesh(5);
    lattice.set("VerticesPerRow", 2);
    let corners = [0, 0, 255, 0, 0, 100, 0, 0, 255, 0, 0, 100, 0, 0, 255, 100, 100, 255, 255, 0];
    check(shaded(lattice, Some(&corners)));
    let colours = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 0];
    let outline = [
        0, 0, 0, 33, 0, 66, 0, 100, 33, 100, 66, 100, 100, 100, 100, 66, 100, 33, 100, 0, 66, 0,
        33, 0,
    ];
    let coons = [&[0][..], &outline, &colours].concat();
    check(shaded(mesh(6), Some(&coons)));
    let inside = [33, 33, 33, 66, 66, 66, 66, 33];
    let tensor = [&[0][..], &outline, &inside, &colours].concat();
    check(shaded(mesh(7), Some(&tensor)));
}

#[test]
fn patterns_and_text_look_the_same() {
    let mut sheet = TestDocument::new(
        "/Pattern cs /P scn 0 0 50 100 re f /U cs 1 0 0 /Q scn 50 0 50 100 re f \
         BT /F 20 Tf 0 0 1 rg 10 40 Td (Grafik) Tj ET",
    );
    let tile = |kind: i32| {
        dictionary! {
            "PatternType" => 1, "PaintType" => kind, "TilingType" => 1, "XStep" => 10, "YStep" => 10,
            "BBox" => list(&[0.0, 0.0, 10.0, 10.0]), "Resources" => Dictionary::new(),
        }
    };
    let coloured = sheet.stream(tile(1), b"0 1 0 rg 0 0 5 5 re f");
    let plain = sheet.stream(tile(2), b"0 0 5 5 re f");
    let under = space(vec![name("Pattern"), name("DeviceRGB")]);
    let font = dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica" };
    let sheet = sheet.with("Pattern", "P", coloured).with("Pattern", "Q", plain);
    check(sheet.with("ColorSpace", "U", under).with("Font", "F", font));
}

#[test]
fn inline_images_look_the_same() {
    let hex: String = rainbow().iter().map(|byte| format!("{byte:02x}")).collect();
    let content = format!(
        "q 100 0 0 100 0 0 cm BI /W 16 /H 16 /BPC 8 /CS /RGB /F /AHx ID {hex}> EI Q \
         q 20 0 0 20 0 0 cm BI /W 2 /H 1 /BPC 1 /CS [/I /RGB 1 <ff000000ff00>] ID @ EI Q"
    );
    check(TestDocument::new(&content));
}
