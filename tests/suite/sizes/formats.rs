//! WebP and AVIF as other programs decode them (Pillow with libwebp and LittleCMS, libavif, exiftool): size, colour,
//! orientation, profile and caption.

use std::fs;

use serde_json::Value;

use super::{header, with_key};
use crate::common::{
    DEMO_KEY, Server, oracle,
    pictures::{Picture, with_orientation},
};
use crate::pixels::{CAPTION, captioned, colour_spaces, has_group};

const FORMATS: [(&str, &str); 3] =
    [("jpg", "image/jpeg"), ("webp", "image/webp"), ("avif", "image/avif")];

/// A rendition as the demo editor gets it; its media type is that of its extension.
#[track_caller]
fn fetch(server: &Server, file: &str) -> Vec<u8> {
    let response = with_key(server, file, DEMO_KEY);
    assert_eq!(response.status(), 200, "{file}");
    let kind = header(&response, "content-type");
    let expected = FORMATS.iter().find(|(extension, _)| file.ends_with(extension));
    assert_eq!(Some(kind.as_str()), expected.map(|(_, kind)| *kind), "{file}");
    response.bytes().expect("body").to_vec()
}

/// The picture in sRGB, decoded by other programs.
fn decoded(file: &[u8]) -> Picture {
    oracle::srgb(&oracle::readable(file), 0)
}

/// Compares a decoded picture with a reference: size, means and differences in levels.
#[track_caller]
fn is_alike(what: &str, found: &Picture, expected: &Picture) {
    assert_eq!(found.size(), expected.size(), "{what}");
    let distance = found.distance(expected);
    assert!(distance <= 5.0, "{what}: mean difference {distance:.2}");
    let (width, height) = found.size();
    let means = found.mean(0, 0, width, height).into_iter();
    for (mean, reference) in means.zip(expected.mean(0, 0, width, height)) {
        let difference = (mean - reference).abs();
        assert!(difference <= 4.0, "{what}: a channel's mean is {mean:.1}, not {reference:.1}");
    }
}

#[test]
fn previews_of_every_colour_space_are_alike_in_every_format() {
    let spaces = colour_spaces();
    let pictures: Vec<_> = spaces.iter().map(|(id, _, jpeg)| (*id, jpeg.clone())).collect();
    let server = Server::with_pictures(&["media.widths=any", "media.warm=false"], &pictures);
    for (id, _, original) in &spaces {
        let reference = oracle::srgb(original, 0);
        for (extension, _) in FORMATS {
            let file = format!("{id}_NormalPreview.{extension}");
            let preview = fetch(&server, &file);
            is_alike(&file, &decoded(&preview), &reference);
            assert!(oracle::profile(&oracle::readable(&preview)).is_empty(), "{file} is in sRGB");
            let half = format!("{id}-fit_w120_NormalPreview.{extension}");
            is_alike(&half, &decoded(&fetch(&server, &half)), &reference.reduced(2));
        }
    }
}

#[test]
fn crops_and_sizes_of_the_hires_keep_the_profile_where_the_format_has_the_colour_space() {
    let spaces = colour_spaces();
    let pictures: Vec<_> = spaces.iter().map(|(id, _, jpeg)| (*id, jpeg.clone())).collect();
    let server = Server::with_pictures(&["media.warm=false"], &pictures);
    for (id, mode, original) in &spaces {
        let whole = oracle::srgb(original, 0);
        let profile = oracle::profile(original);
        for (extension, _) in FORMATS {
            // WebP has no grey and neither format has inks: those are converted to sRGB.
            let holds = match *mode {
                "RGB" => true,
                "L" => extension != "webp",
                _ => extension == "jpg",
            };
            let expected = if holds { profile.clone() } else { Vec::new() };
            for (operations, part) in [
                ("-crop_w150_h78_x30_y12", whole.crop(30, 12, 150, 78)),
                ("-fit_w120", whole.reduced(2)),
            ] {
                let file = format!("{id}{operations}.{extension}");
                let hires = fetch(&server, &file);
                is_alike(&file, &decoded(&hires), &part);
                let found = oracle::profile(&oracle::readable(&hires));
                assert!(found == expected, "{file}: a profile of {} bytes", found.len());
            }
        }
    }
}

#[test]
fn all_eight_orientations_are_upright_in_every_format() {
    let stored = Picture::corners(160, 96).jpeg();
    let pictures: Vec<_> =
        (1..=8).map(|tag| (format!("turned{tag}"), with_orientation(&stored, tag))).collect();
    let settings = ["media.preview_px=80", "media.widths=any", "media.warm=false"];
    let server = Server::with_pictures(&settings, &pictures);
    let delivered = tempfile::tempdir().expect("folder");
    for (id, original) in &pictures {
        let upright = oracle::upright(original);
        let quarter = upright.reduced(4);
        let fit = format!("-fit_w{}_NormalPreview", quarter.width);
        let renditions = [
            ("_NormalPreview", upright.reduced(2)),
            (fit.as_str(), quarter),
            ("-crop_w71_h51_x13_y9", upright.crop(13, 9, 71, 51)),
        ];
        for (extension, _) in FORMATS {
            for (rest, expected) in &renditions {
                let file = format!("{id}{rest}.{extension}");
                let body = fetch(&server, &file);
                let found = decoded(&body);
                assert_eq!(found.size(), expected.size(), "{file}");
                let distance = found.distance(expected);
                assert!(distance < 12.0, "{file} differs by {distance}");
                fs::write(delivered.path().join(file), body).expect("written");
            }
        }
    }
    let reported = oracle::exiftool_folder(delivered.path());
    assert_eq!(reported.len(), 8 * 3 * 3);
    for (file, tags) in reported {
        let tag = tags.get("IFD0:Orientation").and_then(Value::as_u64).unwrap_or(1);
        assert_eq!(tag, 1, "{file}");
        // AVIF could turn pictures by properties of its own.
        let turns =
            tags.keys().any(|key| key.ends_with(":Rotation") || key.ends_with(":Mirroring"));
        assert!(!turns, "{file}: {tags:#?}");
    }
}

#[test]
fn captions_are_in_every_format_and_a_position_is_in_none() {
    let server = Server::with_pictures(&["media.warm=false"], &[("moose", captioned())]);
    for (extension, _) in FORMATS {
        for rest in ["_NormalPreview", "-fit_w480_WatermarkPreview", "-fit_w500", "-crop_w99_h88"]
        {
            let file = format!("moose{rest}.{extension}");
            let tags = oracle::exiftool(&fetch(&server, &file));
            for (iim, xmp, text) in CAPTION {
                assert_eq!(tags.get(xmp), Some(&Value::from(text)), "{file} {xmp} {tags:#?}");
                // IIM is a matter of JPEG.
                let expected = (extension == "jpg").then(|| Value::from(text));
                assert_eq!(tags.get(iim), expected.as_ref(), "{file} {iim}");
            }
            assert_eq!(tags["XMP-dc:Subject"], serde_json::json!(["älg", "vilt"]), "{file}");
            assert!(!has_group(&tags, "GPS:") && !has_group(&tags, "IFD1:"), "{file} {tags:#?}");
        }
        let file = format!("moose-fit_w160_NormalThumbnail.{extension}");
        let tags = oracle::exiftool(&fetch(&server, &file));
        for group in ["IPTC:", "XMP-", "IFD0:", "GPS:"] {
            assert!(!has_group(&tags, group), "{file} {group} {tags:#?}");
        }
    }
}

#[test]
fn every_format_has_the_same_bytes_each_time_on_any_number_of_threads() {
    let pictures = [("one", Picture::waves(640, 427).jpeg())];
    // The address is part of the caption.
    let settings = |workers| {
        let caches = ["cache.memory_bytes=0", "cache.disk_bytes=0", "media.warm=false"];
        [&caches[..], &["server.public_url=https://pictures.example", workers]].concat()
    };
    let all = |server: &Server| {
        let mut bodies = Vec::new();
        for (extension, _) in FORMATS {
            for rest in ["_NormalPreview", "-fit_w320_NormalPreview", "-fill_w300_h300-watermark"]
            {
                let file = format!("one{rest}.{extension}");
                let (first, second) = (fetch(server, &file), fetch(server, &file));
                assert!(first == second, "{file}");
                bodies.push((file, first));
            }
        }
        bodies
    };
    let server = Server::with_pictures(&settings("media.workers=1"), &pictures);
    let one = all(&server);
    // Nothing that the one thread made is left.
    fs::remove_dir_all(server.data().join("derived")).expect("removed");
    let two = all(&server.restart(&settings("media.workers=2")));
    for ((file, one), (_, two)) in one.iter().zip(&two) {
        assert!(one == two, "{file}");
    }
}
