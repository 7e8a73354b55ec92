//! Tests of what a rendition shows: image regions under all orientations and crops, and privacy.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{RightsMetadata, RightsView};
use geometry::{Rect, Size};

const SIZE: Size = Size::new(1_000, 500);
const WHOLE: RightsView = RightsView {
    orientation: 1,
    upright: SIZE,
    region: Rect::new(0, 0, SIZE),
    hires: SIZE,
    gps: true,
    person_details: true,
};

fn rights(value: &Value) -> RightsMetadata {
    RightsMetadata::from_json(value).expect("valid rights")
}

/// The boundary that a view shows of a region with this one.
fn shown(boundary: &Value, view: &RightsView) -> Option<Value> {
    let rights = rights(&json!({ "imageRegion": [{ "regionBoundary": boundary }] })).shown(view);
    let region = rights.get("imageRegion")?.get(0)?;
    Some(region["regionBoundary"].clone())
}

fn rectangle(x: f64, y: f64, w: f64, h: f64) -> Value {
    json!({ "rbShape": "rectangle", "rbUnit": "relative", "rbX": x, "rbY": y, "rbW": w, "rbH": h })
}

fn circle(x: f64, y: f64, radius: f64) -> Value {
    json!({ "rbShape": "circle", "rbUnit": "relative", "rbX": x, "rbY": y, "rbRx": radius })
}

fn polygon(points: &[(f64, f64)]) -> Value {
    let vertices: Vec<Value> = points.iter().map(|(x, y)| json!({ "rbX": x, "rbY": y })).collect();
    json!({ "rbShape": "polygon", "rbUnit": "relative", "rbVertices": vertices })
}

/// A view of the rectangle of a picture of 1,000 by 500 pixels.
fn crop(width: u32, height: u32, x: u32, y: u32) -> RightsView {
    RightsView { region: Rect { x, y, width, height }, ..WHOLE }
}

#[test]
fn the_whole_picture_shows_regions_as_they_are() {
    for boundary in [
        rectangle(0.31, 0.18, 0.127, 0.385),
        circle(0.59, 0.426, 0.068),
        polygon(&[(0.05, 0.713), (0.148, 0.041), (0.375, 0.863)]),
        polygon(&[(0.5, 0.25)]),
        polygon(&[(0.5, 0.0), (0.5, 1.0)]),
    ] {
        assert_eq!(shown(&boundary, &WHOLE), Some(boundary));
    }
}

#[test]
fn pixels_become_relative() {
    let boundary = json!({
        "rbShape": "Rectangle", "rbUnit": "pixel", "rbX": 100, "rbY": 100, "rbW": 500, "rbH": 200,
    });
    assert_eq!(shown(&boundary, &WHOLE), Some(rectangle(0.1, 0.2, 0.5, 0.4)));
    let boundary =
        json!({ "rbShape": "circle", "rbUnit": "pixel", "rbX": 500, "rbY": 250, "rbRx": 100 });
    assert_eq!(shown(&boundary, &crop(500, 250, 250, 125)), Some(circle(0.5, 0.5, 0.2)));
}

#[test]
fn a_crop_cuts_regions() {
    let right_half = crop(500, 500, 500, 0);
    assert_eq!(
        shown(&rectangle(0.25, 0.0, 0.5, 1.0), &right_half),
        Some(rectangle(0.0, 0.0, 0.5, 1.0))
    );
    assert_eq!(shown(&rectangle(0.25, 0.0, 0.25, 1.0), &right_half), None);
    assert_eq!(shown(&circle(0.75, 0.5, 0.1), &right_half), Some(circle(0.5, 0.5, 0.2)));
    // What remains of a circle is a rectangle.
    assert_eq!(shown(&circle(0.5, 0.5, 0.1), &right_half), Some(rectangle(0.0, 0.3, 0.2, 0.4)));
    assert_eq!(shown(&circle(0.25, 0.5, 0.1), &right_half), None);
    // The rectangle around the circle reaches into the corner, but the circle does not.
    assert_eq!(shown(&circle(0.45, 0.4, 0.1), &crop(460, 120, 540, 0)), None);
    assert_eq!(
        shown(&polygon(&[(0.25, 0.0), (0.75, 0.0), (0.75, 1.0), (0.25, 1.0)]), &right_half),
        Some(polygon(&[(0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0)]))
    );
    assert_eq!(shown(&polygon(&[(0.0, 0.0), (0.4, 0.0), (0.4, 1.0)]), &right_half), None);
    assert_eq!(
        shown(&polygon(&[(0.0, 0.5), (1.0, 0.5)]), &right_half),
        Some(polygon(&[(0.0, 0.5), (1.0, 0.5)]))
    );
    assert_eq!(shown(&polygon(&[(0.4, 0.5)]), &right_half), None);
    assert_eq!(shown(&polygon(&[(0.75, 0.5)]), &right_half), Some(polygon(&[(0.5, 0.5)])));
    assert_eq!(shown(&rectangle(0.0, 0.0, 1.0, 1.0), &crop(0, 0, 0, 0)), None);
}

#[test]
fn regions_without_a_clear_boundary_are_dropped() {
    for boundary in [
        json!({ "rbShape": "star", "rbUnit": "relative", "rbX": 0, "rbY": 0 }),
        json!({ "rbShape": "circle", "rbUnit": "inch", "rbX": 0, "rbY": 0, "rbRx": 1 }),
        json!({ "rbShape": "circle", "rbUnit": "relative", "rbX": 0.5, "rbY": 0.5 }),
        rectangle(0.5, 0.5, -0.1, 0.1),
    ] {
        assert_eq!(shown(&boundary, &WHOLE), None, "{boundary}");
    }
    let unbounded = rights(&json!({ "imageRegion": [{ "rId": "1" }] }));
    assert!(unbounded.shown(&WHOLE).is_empty());
}

#[test]
fn every_orientation_turns_the_regions() {
    // A mark in the upper left corner of the stored picture, wider than high.
    let stored = rectangle(0.0, 0.0, 0.2, 0.1);
    let expected = [
        rectangle(0.0, 0.0, 0.2, 0.1),
        rectangle(0.8, 0.0, 0.2, 0.1),
        rectangle(0.8, 0.9, 0.2, 0.1),
        rectangle(0.0, 0.9, 0.2, 0.1),
        rectangle(0.0, 0.0, 0.1, 0.2),
        rectangle(0.9, 0.0, 0.1, 0.2),
        rectangle(0.9, 0.8, 0.1, 0.2),
        rectangle(0.0, 0.8, 0.1, 0.2),
    ];
    for (orientation, expected) in (1..=8).zip(expected) {
        let upright = if orientation >= 5 { SIZE.transposed() } else { SIZE };
        let region = Rect::new(0, 0, upright);
        let view = RightsView { orientation, upright, region, ..WHOLE };
        assert_eq!(shown(&stored, &view), Some(expected), "{orientation}");
    }
    // The radius is relative to the width, which becomes the height.
    let upright = SIZE.transposed();
    let view = RightsView { orientation: 6, upright, region: Rect::new(0, 0, upright), ..WHOLE };
    assert_eq!(shown(&circle(0.25, 0.5, 0.1), &view), Some(circle(0.5, 0.25, 0.2)));
}

#[test]
fn persons_and_coordinates_are_kept_on_request() {
    let all = rights(&json!({
        "additionalModelInfo": "SECRET",
        "modelAges": [17],
        "personsShown": [{ "name": "SECRET" }],
        "locationCreated": [{ "city": "Umeå", "gpsLatitude": 63.8 }, { "gpsLongitude": 20.3 }],
        "locationsShown": [{ "gpsLatitude": 63.8, "gpsAltitude": 10, "gpsAltitudeRef": 0 }],
        "imageRegion": [{
            "regionBoundary": rectangle(0.0, 0.0, 1.0, 1.0),
            "rId": "1",
            "name": "SECRET",
            "rCtype": [{ "name": "person" }],
            "personInImageNames": ["SECRET"],
            "personsShown": [{ "name": "SECRET" }],
            "locationsShown": [{ "gpsLatitude": 63.8 }],
            "organisationInImageNames": ["Ek AB"],
        }],
        "maxAvailWidth": 20,
    }));
    let hires = Size::new(6_000, 4_000);
    let kept = all.shown(&RightsView { hires, ..WHOLE });
    assert_eq!(kept.get("maxAvailWidth"), Some(&json!(6_000)));
    assert_eq!(kept.get("maxAvailHeight"), None);
    let without_sizes = |rights: &RightsMetadata| {
        let mut json = rights.to_json();
        json["maxAvailWidth"].take();
        json
    };
    assert_eq!(without_sizes(&kept), without_sizes(&all));
    let unknown = all.shown(&RightsView { hires, ..crop(0, 0, 0, 0) });
    let mut expected = kept.to_json();
    expected.as_object_mut().expect("an object").remove("imageRegion");
    assert_eq!(unknown, rights(&expected), "of an unknown part there are no regions");
    let plain = all.shown(&RightsView { gps: false, person_details: false, hires, ..WHOLE });
    let expected = rights(&json!({
        "locationCreated": [{ "city": "Umeå" }],
        "imageRegion": [{
            "regionBoundary": rectangle(0.0, 0.0, 1.0, 1.0),
            "rId": "1",
            "rCtype": [{ "name": "person" }],
            "organisationInImageNames": ["Ek AB"],
        }],
        "maxAvailWidth": 6_000,
    }));
    assert_eq!(plain, expected);
    assert!(!plain.to_json().to_string().contains("SECRET"));
}

/// The pixel of the upright picture at which a pixel of the stored one is shown.
fn upright_pixel(orientation: u8, stored: Size, x: u32, y: u32) -> (u32, u32) {
    let (right, bottom) = (stored.width - 1 - x, stored.height - 1 - y);
    match orientation {
        1 => (x, y),
        2 => (right, y),
        3 => (right, bottom),
        4 => (x, bottom),
        5 => (y, x),
        6 => (bottom, x),
        7 => (bottom, right),
        _ => (y, right),
    }
}

/// The pixel at the center of a shown boundary of one pixel, in pixels of the region.
fn pixel_of(boundary: &Value, region: Rect) -> (f64, f64) {
    let number = |name: &str| boundary[name].as_f64().expect("a number");
    let x = (number("rbX") + number("rbW") / 2.0) * f64::from(region.width);
    let y = (number("rbY") + number("rbH") / 2.0) * f64::from(region.height);
    (x + f64::from(region.x) - 0.5, y + f64::from(region.y) - 0.5)
}

proptest! {
    #[test]
    fn a_region_turns_and_is_cut_with_its_pixel(
        orientation in 1..=8_u8,
        stored in (2..300_u32, 2..300_u32).prop_map(|(w, h)| Size::new(w, h)),
        at in (any::<u32>(), any::<u32>()),
        cut in (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>()),
    ) {
        let (x, y) = (at.0 % stored.width, at.1 % stored.height);
        let upright = if orientation >= 5 { stored.transposed() } else { stored };
        let (left, top) = (cut.0 % upright.width, cut.1 % upright.height);
        let region = Rect {
            x: left,
            y: top,
            width: 1 + cut.2 % (upright.width - left),
            height: 1 + cut.3 % (upright.height - top),
        };
        let boundary = json!({
            "rbShape": "rectangle", "rbUnit": "pixel", "rbX": x, "rbY": y, "rbW": 1, "rbH": 1,
        });
        let view = RightsView { orientation, upright, region, ..WHOLE };
        let found = shown(&boundary, &view);
        let (px, py) = upright_pixel(orientation, stored, x, y);
        let inside = (left..left + region.width).contains(&px)
            && (top..top + region.height).contains(&py);
        prop_assert_eq!(found.is_some(), inside);
        if let Some(found) = found {
            let (fx, fy) = pixel_of(&found, region);
            prop_assert!((fx - f64::from(px)).abs() < 0.01, "{} {}", fx, px);
            prop_assert!((fy - f64::from(py)).abs() < 0.01, "{} {}", fy, py);
        }
    }

    #[test]
    fn shown_boundaries_lie_in_the_rendition(
        orientation in 1..=8_u8,
        points in proptest::collection::vec((-0.5..1.5_f64, -0.5..1.5_f64), 1..12),
        region in (0..900_u32, 0..400_u32, 1..=100_u32, 1..=100_u32),
    ) {
        let upright = Size::new(1_000, 500);
        let region = Rect { x: region.0, y: region.1, width: region.2, height: region.3 };
        let view = RightsView { orientation, upright, region, ..WHOLE };
        if let Some(found) = shown(&polygon(&points), &view) {
            for vertex in found["rbVertices"].as_array().expect("vertices") {
                for name in ["rbX", "rbY"] {
                    let number = vertex[name].as_f64().expect("a number");
                    prop_assert!((0.0..=1.0).contains(&number), "{}", number);
                }
            }
        }
    }
}
