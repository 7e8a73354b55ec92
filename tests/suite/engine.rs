//! Render paths of crops, watermarks and previews, and the integrity of originals.

use std::fs;
use std::path::PathBuf;

use jpeg::coefficients::{CoefficientLimits, Coefficients};
use jpeg::header::HeaderLimits;
use turbojpeg::{Subsamp, Transform, TransformOp};

use super::common::{
    DEMO_KEY,
    oracle::{self, python},
    pictures::Picture,
    server::Server,
};

/// A server with one photograph, `image/one`, without cache warming.
fn server(jpeg: &[u8]) -> Server {
    Server::with_pictures(&["media.warm=false"], &[("one", jpeg.to_vec())])
}

fn hires(rest: &str) -> String {
    format!("/media/image/one{rest}.jpg?ak={DEMO_KEY}")
}

/// The render path of a rendition, and its bytes.
fn render(server: &Server, path: &str) -> (String, Vec<u8>) {
    let response = server.get(path);
    assert_eq!(response.status(), 200, "{path}: {}", server.log());
    let way =
        response.headers().get("wirephoto-path").expect("a way").to_str().unwrap().to_owned();
    (way, response.bytes().unwrap().to_vec())
}

fn progressive(jpeg: &[u8]) -> Vec<u8> {
    let mut transform = Transform::op(TransformOp::None);
    transform.progressive = true;
    turbojpeg::transform(&transform, jpeg).expect("a JPEG").to_vec()
}

/// The files below a folder of the data directory.
fn files(server: &Server, folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![server.data().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else if !entry.path().ends_with("archive-id") {
                found.push(entry.path());
            }
        }
    }
    found
}

fn only_file(server: &Server, folder: &str) -> PathBuf {
    let found = files(server, folder);
    assert_eq!(found.len(), 1, "{folder}: {found:?}");
    found[0].clone()
}

/// Changes a byte at a relative position of a file; its length and name are unchanged.
fn damage(path: &std::path::Path, part: f64) {
    let mut bytes = fs::read(path).unwrap();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in it")]
    let at = (bytes.len() as f64 * part) as usize;
    // Neither FF nor 00, before or after: markers are unaffected.
    let at = (at..).find(|at| (2..250).contains(&bytes[*at]) && bytes[at + 1] != 0).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_crop_decodes_its_region_and_a_crop_on_the_grid_keeps_its_coefficients() {
    for subsampling in [Subsamp::Sub2x2, Subsamp::Sub2x1, Subsamp::None, Subsamp::Gray] {
        let jpeg = Picture::waves(900, 700).jpeg_with(subsampling, 93);
        for original in [progressive(&jpeg), jpeg] {
            let server = server(&original);
            let whole = Picture::decode(&original);
            let (way, crop) = render(&server, &hires("-crop_w301_h203_x101_y77"));
            assert_eq!(way, "region", "{subsampling:?}");
            let found = Picture::decode(&crop).psnr(&whole.crop(101, 77, 301, 203));
            assert!(found > 30.0, "{subsampling:?}: {found:.1} dB");
            let (way, crop) = render(&server, &hires("-crop_w300_h200_x160_y320"));
            assert_eq!(way, "lossless-crop", "{subsampling:?}");
            // A pixel at the edges may take another neighbour's chroma.
            let inner = Picture::decode(&crop).crop(2, 2, 296, 196);
            assert!(inner.distance(&whole.crop(162, 322, 296, 196)) == 0.0, "{subsampling:?}");
        }
    }
}

#[test]
fn a_watermark_on_the_hires_leaves_the_rest_of_the_picture_unchanged() {
    for original in [
        Picture::grain(900, 700).jpeg_with(Subsamp::Sub2x2, 93),
        Picture::grain(900, 700).jpeg_with(Subsamp::None, 93),
        progressive(&Picture::grain(900, 700).jpeg_with(Subsamp::Sub2x2, 93)),
    ] {
        let server = server(&original);
        let (way, marked) = render(&server, &hires("_WatermarkHires"));
        assert_eq!(way, "local-mark");
        let (before, after) = (Picture::decode(&original), Picture::decode(&marked));
        assert_eq!(before.size(), after.size());
        let (width, height) = before.size();
        let upper = |picture: &Picture| picture.crop(0, 0, width, height / 2);
        let right = |picture: &Picture| picture.crop(width * 3 / 4, 0, width / 4, height);
        assert!(upper(&before).distance(&upper(&after)) == 0.0, "the upper half is untouched");
        assert!(right(&before).distance(&right(&after)) == 0.0, "the right side is untouched");
        assert!(before.distance(&after) > 0.05, "there is a mark");
        // Any warning of the decoder fails here.
        python(
            "import sys,io,warnings\nfrom PIL import Image\nwarnings.simplefilter('error')\nImage.open(io.BytesIO(sys.stdin.buffer.read())).load()",
            &[],
            &marked,
        );
        let plain = server.bytes(&hires("")).len();
        // A working copy has other Huffman codes than a progressive original.
        assert!(marked.len().abs_diff(plain) < plain / 3, "about as long");
    }
}

/// The coefficients of a rendition.
fn coefficients(jpeg: &[u8]) -> Coefficients {
    let header = HeaderLimits { scans_max: 64, segments_max: 100, metadata_bytes_max: 1 << 20 };
    let limits = CoefficientLimits { header, pixels_max: 1 << 20, should_continue: &|| true };
    Coefficients::read(jpeg, &limits).expect("a JPEG")
}

#[test]
fn a_watermark_on_a_standard_rendition_leaves_the_rest_of_it_unchanged() {
    // With and without a larger copy in the standard set.
    for (width, height) in [(3000, 2000), (1500, 1000)] {
        let jpeg = Picture::waves(width, height).jpeg_with(Subsamp::Sub2x2, 90);
        let server = server(&jpeg);
        for (plain, marked) in [
            ("_NormalPreview", "_WatermarkPreview"),
            ("_NormalThumbnail", "_WatermarkThumbnail"),
            ("_WebPreview", "-watermark_WebPreview"),
            ("_CroppedThumbnail", "-watermark_CroppedThumbnail"),
        ] {
            let (_, plain) = render(&server, &format!("/media/image/one{plain}.jpg"));
            let (way, file) = render(&server, &format!("/media/image/one{marked}.jpg"));
            assert_eq!(way, "local-mark", "{marked} of {width}");
            assert!(file.len() < plain.len() * 3 / 2, "{} bytes, {}", file.len(), plain.len());
            let before = coefficients(&plain);
            let after = coefficients(&file);
            assert_eq!(before.size(), after.size());
            let mut changed = 0;
            for (before, after) in before.grids().iter().zip(after.grids()) {
                assert_eq!(before.quant(), after.quant());
                let blocks = before.blocks().iter().zip(after.blocks()).enumerate();
                for (at, _) in blocks.filter(|(_, (before, after))| before != after) {
                    let is_lower = at / before.cols() >= before.rows() / 2;
                    let is_left = at % before.cols() < before.cols() * 3 / 4;
                    assert!(is_lower && is_left, "block {at} of {marked}");
                    changed += 1;
                }
            }
            assert!(changed > 0, "there is a mark on {marked}");
        }
    }
}

#[test]
fn a_preview_comes_from_the_standard_set_that_the_first_request_makes() {
    let jpeg = Picture::waves(3000, 2000).jpeg_with(Subsamp::Sub2x2, 90);
    let large = server(&jpeg);
    let (way, preview) = render(&large, "/media/image/one_NormalPreview.jpg");
    assert_eq!(way, "stored");
    assert_eq!(files(&large, "derived/standard").len(), 1);
    // Other small renditions come from its larger copy.
    let (way, marked) = render(&large, "/media/image/one_WatermarkPreview.webp");
    assert_eq!(way, "level");
    assert!(marked.starts_with(b"RIFF"));
    assert_eq!(files(&large, "derived/standard").len(), 1);
    let expected = oracle::srgb(&jpeg, 1024);
    let found = Picture::decode(&preview);
    assert_eq!(found.size(), (1024, 683));
    let found = found.psnr(&expected);
    assert!(found > 36.0, "{found:.1} dB");
}

#[test]
fn cmyk_pictures_are_cropped_by_their_region_too() {
    let inks = oracle::cmyk(&Picture::waves(600, 400).jpeg(), "profile");
    let server = server(&inks);
    let (way, crop) = render(&server, &hires("-crop_w101_h83_x205_y99"));
    assert_eq!(way, "region");
    let whole = server.bytes(&hires("-crop_w599_h399_x1_y1"));
    let whole = oracle::srgb(&whole, 600).crop(204, 98, 101, 83);
    let found = oracle::srgb(&crop, 101).psnr(&whole);
    assert!(found > 25.0, "{found:.1} dB");
}

#[test]
fn a_missing_or_damaged_index_is_rebuilt() {
    let mut server = server(&Picture::grain(1300, 900).jpeg());
    assert_eq!(render(&server, &hires("-crop_w200_h150_x11_y501")).0, "region");
    for change in ["remove", "cut", "flip", "other"] {
        // A new process has nothing in memory.
        let index = only_file(&server, "derived/index");
        match change {
            "remove" => fs::remove_file(&index).unwrap(),
            "cut" => fs::write(&index, &fs::read(&index).unwrap()[..40]).unwrap(),
            "flip" => damage(&index, 0.5),
            _ => fs::write(&index, b"WPix").unwrap(),
        }
        server =
            server.restart(&["media.warm=false", "cache.memory_bytes=0", "cache.disk_bytes=0"]);
        let (way, bytes) = render(&server, &hires("-crop_w200_h150_x13_y501"));
        assert_eq!(way, "region", "{change}");
        assert_eq!(Picture::decode(&bytes).size(), (200, 150));
        assert!(fs::read(only_file(&server, "derived/index")).unwrap().len() > 60, "{change}");
    }
}

#[test]
fn a_crop_reads_only_what_it_needs_and_a_changed_original_is_an_error_that_names_it() {
    let server = server(&Picture::grain(2400, 1800).jpeg_with(Subsamp::Sub2x2, 93));
    let original = only_file(&server, "originals");
    let hash: String = original
        .components()
        .rev()
        .take(2)
        .collect::<Vec<_>>()
        .iter()
        .rev()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    damage(&original, 0.9);
    // A crop far above the changed byte never reads it.
    assert_eq!(render(&server, &hires("-crop_w300_h200_x501_y101")).0, "region");
    for path in [hires("-crop_w2300_h200_x50_y1590"), hires(""), hires("_WatermarkHires")] {
        let response = server.get(&path);
        assert_eq!(response.status(), 500, "{path}");
        assert!(
            !response.text().unwrap().contains(&hash),
            "the client learns nothing of the store"
        );
    }
    let named = || {
        server
            .log()
            .lines()
            .any(|line| line.contains(&hash) && line.contains("changed"))
            .then_some(())
    };
    server.until("a log line that names the original", named);
    assert!(original.is_file(), "nothing was removed");
}

#[test]
fn a_check_finds_damage_and_repairs_derived_files() {
    let server = Server::with_pictures(
        &["media.warm=false"],
        &[("one", Picture::grain(700, 500).jpeg()), ("two", Picture::waves(640, 480).jpeg())],
    );
    let check = |arguments: &[&str]| {
        let output = server.command(&[&["check"], arguments].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout) + &text(&output.stderr), output.status.code().unwrap())
    };
    let (said, status) = check(&[]);
    // The line after it says that the archive has the demo accounts.
    assert_eq!((said.lines().next(), status), (Some("2 originals checked, 0 problems"), 0));
    let index = files(&server, "derived/index").remove(0);
    damage(&index, 0.7);
    let (said, status) = check(&[]);
    assert!(said.contains("the index file of original") && said.contains("image/"), "{said}");
    assert_eq!(status, 1);
    let (said, status) = check(&["--repair"]);
    assert!(said.contains("rebuilt"), "{said}");
    assert_eq!(status, 0);
    assert_eq!(check(&[]).1, 0);
    // An original cannot be regenerated.
    let originals = files(&server, "originals");
    damage(&originals[0], 0.8);
    let (said, status) = check(&["--repair", "--json"]);
    assert!(said.contains(r#""problem":"damaged""#), "{said}");
    assert_eq!(status, 1);
    fs::remove_file(&originals[0]).unwrap();
    let stray = server.data().join("originals/ab");
    fs::create_dir_all(&stray).unwrap();
    fs::write(stray.join("0".repeat(62)), b"nobody's").unwrap();
    let (said, status) = check(&[]);
    assert!(said.contains("is missing") && said.contains("no item refers to"), "{said}");
    assert_eq!(status, 1);
    assert!(stray.join("0".repeat(62)).is_file(), "an orphan is told, not removed");
}

#[test]
fn standard_renditions_of_a_new_photograph_are_pre_rendered() {
    let server = Server::empty();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("new-one.jpg");
    fs::write(&file, Picture::grain(1500, 1000).jpeg()).unwrap();
    let output = server.command(&["ingest", file.to_str().unwrap()]);
    assert!(output.status.success());
    // Asks the cache after the standard set has been kept and read.
    let read = || server.metric("wirephoto_render_paths_total", "stored") >= 3.0;
    server.until("three renditions", || read().then_some(()));
    for name in ["NormalPreview", "NormalThumbnail", "WebPreview"] {
        let path = format!("/media/image/new-one_{name}.jpg");
        // A rendition is counted a moment before it is cached.
        server.until(name, || (render(&server, &path).0 == "cache").then_some(()));
    }
    assert_eq!(server.metric("wirephoto_render_paths_total", ""), 3.0);
}
