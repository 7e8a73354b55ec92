//! Regions of pictures: turned, cut and scaled with the picture. The regions are painted, so that the pixels of a
//! rendition say where they are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::exiftool::Tags;
use super::fixtures::{self, alternative, bag, entry};
use super::{PLAIN, Renditions, exiftool, fetch};
use crate::common::{
    Server, oracle,
    pictures::{Picture, with_orientation},
};

const WIDTH: usize = 320;
const HEIGHT: usize = 192;
/// The distance that an edge in the metadata may have from the edge in the pixels: chroma is blurred.
const TOLERANCE_PX: f64 = 3.0;
const TAG: &str = "XMP-iptcExt:ImageRegion";

/// The painted regions: their names and colours.
const COLOURS: [(&str, [u8; 3]); 4] = [
    ("region-red", [230, 20, 20]),
    ("region-green", [20, 200, 20]),
    ("region-blue", [20, 20, 230]),
    ("region-yellow", [230, 230, 20]),
];

/// Left, top, right and bottom edge, pixels.
type Edges = [f64; 4];

/// A grey picture with a red rectangle, a green circle, a blue trapezium and a yellow rectangle.
fn painted() -> Picture {
    Picture::new(WIDTH, HEIGHT, |x, y| {
        let [red, green, blue, yellow] = COLOURS.map(|(_, colour)| colour);
        let squares = x.abs_diff(224).pow(2) + y.abs_diff(56).pow(2);
        match (x, y) {
            (32..96, 16..64) => red,
            _ if squares < 32 * 32 => green,
            // Left of the edge from (88, 120) to (120, 176).
            (40..120, 120..176) if x < 88 || (x - 88) * 56 < (y - 120) * 32 => blue,
            (200..280, 120..168) => yellow,
            _ => [128, 128, 128],
        }
    })
}

/// Members of a region boundary.
fn boundary(shape: &str, unit: &str, numbers: &[(&str, f64)]) -> String {
    let numbers = numbers.iter().map(|(name, number)| member(name, &number.to_string()));
    member("rbShape", shape) + &member("rbUnit", unit) + &numbers.collect::<String>()
}

fn member(name: &str, text: &str) -> String {
    format!("<Iptc4xmpExt:{name}>{text}</Iptc4xmpExt:{name}>")
}

/// The regions of [`painted`] in XMP: relative ones, and the yellow one in pixels.
fn regions() -> String {
    let (w, h) = (320.0, 192.0);
    let vertex = |x: f64, y: f64| {
        entry(&(member("rbX", &(x / w).to_string()) + &member("rbY", &(y / h).to_string())))
    };
    let corners = [(40.0, 120.0), (88.0, 120.0), (120.0, 176.0), (40.0, 176.0)];
    let corners = corners.map(|(x, y)| vertex(x, y)).concat();
    let rectangle = |unit, [x, y, width, height]: Edges| {
        let numbers = [("rbX", x), ("rbY", y), ("rbW", width), ("rbH", height)];
        boundary("rectangle", unit, &numbers)
    };
    let boundaries = [
        rectangle("relative", [32.0 / w, 16.0 / h, 64.0 / w, 48.0 / h]),
        boundary(
            "circle",
            "relative",
            &[("rbX", 224.0 / w), ("rbY", 56.0 / h), ("rbRx", 32.0 / w)],
        ),
        boundary("polygon", "relative", &[])
            + &format!(
                "<Iptc4xmpExt:rbVertices><rdf:Seq>{corners}</rdf:Seq></Iptc4xmpExt:rbVertices>"
            ),
        rectangle("pixel", [200.0, 120.0, 80.0, 48.0]),
    ];
    let region = |((name, _), boundary): (&(&str, [u8; 3]), &String)| {
        let boundary = format!(
            "<Iptc4xmpExt:RegionBoundary rdf:parseType='Resource'>{boundary}</Iptc4xmpExt:RegionBoundary>"
        );
        let kind = entry(&alternative("Iptc4xmpExt:Name", &format!("kind of {name}")));
        entry(&(boundary + &member("rId", name) + &bag("Iptc4xmpExt:rCtype", &kind)))
    };
    bag(
        "Iptc4xmpExt:ImageRegion",
        &COLOURS.iter().zip(&boundaries).map(region).collect::<String>(),
    )
}

/// The painted picture with its regions, stored in an orientation.
fn photograph(orientation: u8) -> Vec<u8> {
    with_orientation(&fixtures::with_xmp(&painted().jpeg(), &regions()), orientation)
}

/// The edges of each painted region that the pixels show.
fn visible(picture: &Picture) -> BTreeMap<&'static str, Edges> {
    let mut found = BTreeMap::new();
    for (name, colour) in COLOURS {
        let is_it = |(x, y): &(usize, usize)| {
            picture.at(*x, *y).iter().zip(colour).all(|(a, b)| a.abs_diff(b) < 60)
        };
        let all = (0..picture.height).flat_map(|y| (0..picture.width).map(move |x| (x, y)));
        let points: Vec<(usize, usize)> = all.filter(is_it).collect();
        if points.is_empty() {
            continue;
        }
        let edge = |value: Option<usize>| value.expect("points") as f64;
        let (xs, ys) = (points.iter().map(|point| point.0), points.iter().map(|point| point.1));
        let edges = [
            edge(xs.clone().min()),
            edge(ys.clone().min()),
            edge(xs.max()) + 1.0,
            edge(ys.max()) + 1.0,
        ];
        found.insert(name, edges);
    }
    found
}

/// The edges of a region boundary in a picture of this size.
fn edges(boundary: &Value, picture: &Picture) -> Edges {
    let of = |value: &Value, name: &str| {
        value[name].as_f64().unwrap_or_else(|| panic!("{name} in {boundary}"))
    };
    let (width, height) = match boundary["RbUnit"].as_str() {
        Some("relative") => (picture.width as f64, picture.height as f64),
        Some("pixel") => (1.0, 1.0),
        other => panic!("unit {other:?}"),
    };
    let point = |value: &Value| (of(value, "RbX") * width, of(value, "RbY") * height);
    match boundary["RbShape"].as_str() {
        Some("rectangle") => {
            let (x, y) = point(boundary);
            [x, y, x + of(boundary, "RbW") * width, y + of(boundary, "RbH") * height]
        }
        Some("circle") => {
            let ((x, y), radius) = (point(boundary), of(boundary, "RbRx") * width);
            [x - radius, y - radius, x + radius, y + radius]
        }
        Some("polygon") => {
            let vertices = boundary["RbVertices"].as_array().expect("vertices").iter().map(point);
            vertices.fold([f64::MAX, f64::MAX, 0.0, 0.0], |[a, b, c, d], (x, y)| {
                [a.min(x), b.min(y), c.max(x), d.max(y)]
            })
        }
        other => panic!("shape {other:?}"),
    }
}

/// Returns whether enough of a region is visible to say so: what is narrower may be a blurred edge.
fn is_certain([left, top, right, bottom]: Edges) -> bool {
    right - left >= 4.0 && bottom - top >= 4.0
}

/// Checks that the regions in the metadata of a rendition are those that its pixels show, at their places; returns
/// their names.
#[track_caller]
fn agrees(name: &str, tags: &Tags, file: &[u8]) -> Vec<&'static str> {
    exiftool::is_sound(name, tags);
    let picture = oracle::srgb(&oracle::readable(file), 0);
    let visible = visible(&picture);
    let none = json!([]);
    let stated = tags.get(TAG).unwrap_or(&none).as_array().expect("a list");
    let named = |id: &str| stated.iter().find(|region| region["RId"] == id);
    assert!(stated.iter().all(|one| COLOURS.iter().any(|(id, _)| one["RId"] == *id)), "{name}");
    let mut found = Vec::new();
    for (id, _) in COLOURS {
        let has_bytes = file.windows(id.len()).any(|part| part == id.as_bytes());
        let Some(&expected) = visible.get(id) else {
            // What was cut off is nowhere in the file.
            assert!(!has_bytes, "{name}: {id} is not visible: {stated:#?}");
            continue;
        };
        if !is_certain(expected) {
            continue;
        }
        let region = named(id).unwrap_or_else(|| panic!("{name}: {id} is missing: {stated:#?}"));
        let edges = edges(&region["RegionBoundary"], &picture);
        let is_near = edges.iter().zip(expected).all(|(a, b)| (a - b).abs() <= TOLERANCE_PX);
        assert!(is_near, "{name}, {id}: {edges:?} and the pixels {expected:?}\n{region:#}");
        assert_eq!(region["RCtype"][0]["Name"], format!("kind of {id}"), "{name}");
        found.push(id);
    }
    found.sort_unstable();
    found
}

#[test]
fn regions_turn_with_pictures_of_all_eight_orientations() {
    let pictures: Vec<_> = (1..=8).map(|tag| (format!("turned{tag}"), photograph(tag))).collect();
    let settings = [&PLAIN[..], &["media.preview_px=240"]].concat();
    let server = Server::with_pictures(&settings, &pictures);
    let renditions = Renditions::new();
    for (tag, (id, _)) in (1_u8..).zip(&pictures) {
        let (w, h) = if tag >= 5 { (HEIGHT, WIDTH) } else { (WIDTH, HEIGHT) };
        let inner = format!("-crop_w{}_h{}_x8_y8.jpg", w - 16, h - 16);
        let rests = [".jpg", "_NormalPreview.jpg", "_NormalPreview.webp", &inner];
        renditions.fetch(&server, id, &rests);
    }
    renditions.fetch(&server, "turned6", &["-fit_w150.avif"]);
    let files: BTreeMap<_, _> = renditions.bytes().into_iter().collect();
    assert_eq!(files.len(), 8 * 4 + 1);
    for (name, tags) in renditions.tags() {
        assert_eq!(agrees(&name, &tags, &files[&name]).len(), COLOURS.len(), "{name}");
    }
}

#[test]
fn regions_are_cut_with_the_picture_and_dropped_where_nothing_of_them_is_left() {
    let pictures = [("flat".to_owned(), photograph(1)), ("turned".to_owned(), photograph(6))];
    let server = Server::with_pictures(&PLAIN, &pictures);
    let renditions = Renditions::new();
    renditions.fetch(
        &server,
        "flat",
        &[
            "-crop_w160_h192.jpg",
            "-crop_w256_h152_x64_y40.jpg",
            "-crop_w256_h152_x64_y40.webp",
            "-crop_w256_h152_x64_y40-fit_w128.avif",
            // The edge of the red rectangle is the edge of the crop.
            "-crop_w200_h192_x96.jpg",
            "-crop_w24_h24.jpg",
            "-fill_w150_h150.jpg",
            "-fill_w80_h180.webp",
            "-crop_w200_h100_x20_y20-fill_w60_h60.jpg",
        ],
    );
    renditions.fetch(
        &server,
        "turned",
        &[
            "-crop_w192_h160.jpg",
            "-crop_w100_h300_x60_y10.jpg",
            "-crop_w192_h200_x0_y110_NormalPreview.webp",
            "-fill_w100_h100.jpg",
        ],
    );
    let files: BTreeMap<_, _> = renditions.bytes().into_iter().collect();
    let mut left = BTreeMap::new();
    for (name, tags) in renditions.tags() {
        left.insert(name.clone(), agrees(&name, &tags, &files[&name]));
    }
    assert_eq!(left["flat-crop_w160_h192.jpg"], ["region-blue", "region-red"]);
    assert_eq!(left["flat-crop_w24_h24.jpg"], [""; 0]);
    let without_red = ["region-blue", "region-green", "region-yellow"];
    assert_eq!(left["flat-crop_w200_h192_x96.jpg"], without_red);
    assert_eq!(left["flat-crop_w256_h152_x64_y40.jpg"].len(), 4);
}

#[test]
fn the_editors_crop_of_an_associated_picture_cuts_its_regions() {
    let server = Server::with_pictures(&PLAIN, &[("flat", photograph(1))]);
    let uri = "http://elsewhere.example/media/image/flat-crop_w160_h192_x0_y0";
    let story = json!({ "headline": "Regions", "associations": {
        "a000": { "uri": uri, "type": "picture" },
    }});
    let folder = server.dir.path().join("text/story");
    std::fs::create_dir_all(&folder).expect("folder");
    std::fs::write(folder.join("item.json"), story.to_string()).expect("written");
    fixtures::ingest(&server, &folder);
    let renditions = Renditions::new();
    let file = fetch(&server, "/media/text/story/a000_NormalPreview.jpg");
    renditions.add("a000.jpg", &file);
    let (name, tags) = renditions.tags().remove(0);
    assert_eq!(agrees(&name, &tags, &file), ["region-blue", "region-red"]);
}
