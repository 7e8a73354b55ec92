//! Adapts properties to the part of a picture that a rendition shows: image regions, locations, persons, sizes.

use serde_json::{Map, Value};

use super::RightsMetadata;
use super::boundary::Boundary;
use super::table::{Property, PropertyClass};
use geometry::{Rect, Size};

/// The members of a location that are coordinates on the globe.
const COORDINATES: [&str; 4] = ["gpsLatitude", "gpsLongitude", "gpsAltitude", "gpsAltitudeRef"];
/// The properties whose values are locations.
const LOCATIONS: [&str; 2] = ["locationCreated", "locationsShown"];

/// The part of a picture that a rendition shows, and the details that the rendition may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RightsView {
    /// The EXIF orientation, 1 to 8, by which the original's pixels are turned for the rendition. It is 1 for a
    /// file that keeps the original's pixels as stored.
    pub orientation: u8,
    /// The size of the original after the turn.
    pub upright: Size,
    /// The shown part, in pixels of `upright`.
    pub region: Rect,
    /// The size of the upright Hires, which is the largest available size.
    pub hires: Size,
    /// True if coordinates of locations are kept.
    pub gps: bool,
    /// True if details of persons are kept, and the names of regions, which are mostly names of persons.
    pub person_details: bool,
}

impl RightsMetadata {
    /// Returns the properties for a rendition that shows a part of the picture.
    ///
    /// - Image regions are turned with the picture, cut to the shown part and converted to relative units, which
    ///   fit any scale. A region outside the part is dropped, and so is a region without a boundary, which could
    ///   be anywhere. A circle that is cut becomes the rectangle around its remaining part.
    /// - Without [`RightsView::person_details`] there are no details of persons, and regions have neither their
    ///   own name nor names of persons.
    /// - Without [`RightsView::gps`] locations have no coordinates.
    /// - The maximum available width and height are the size of the Hires, if the original states them.
    pub fn shown(&self, view: &RightsView) -> RightsMetadata {
        let mut shown = self.clone();
        let properties = &mut shown.0;
        if !view.person_details {
            properties.retain(|name, _| !is_person_detail(name));
        }
        if !view.gps {
            drop_coordinates(properties);
        }
        edit_list(properties, "imageRegion", |region| show_region(region, view));
        let sizes = [("maxAvailWidth", view.hires.width), ("maxAvailHeight", view.hires.height)];
        for (name, px) in sizes {
            if let Some(value) = properties.get_mut(name) {
                *value = Value::from(px);
            }
        }
        shown
    }
}

fn is_person_detail(name: &str) -> bool {
    Property::named(name).is_some_and(|property| property.class == PropertyClass::PersonDetails)
}

/// Edits the structures of a list with `edit`. Drops the structures for which it returns false, and a list that
/// becomes empty.
fn edit_list(
    properties: &mut Map<String, Value>,
    name: &str,
    mut edit: impl FnMut(&mut Map<String, Value>) -> bool,
) {
    let Some(entries) = properties.get_mut(name).and_then(Value::as_array_mut) else {
        return;
    };
    entries.retain_mut(|entry| entry.as_object_mut().is_some_and(&mut edit));
    if entries.is_empty() {
        properties.shift_remove(name);
    }
}

fn drop_coordinates(properties: &mut Map<String, Value>) {
    for name in LOCATIONS {
        edit_list(properties, name, |location| {
            location.retain(|member, _| !COORDINATES.contains(&member.as_str()));
            !location.is_empty()
        });
    }
}

/// Adapts an image region to the shown part; returns false if the part shows nothing of it.
fn show_region(region: &mut Map<String, Value>, view: &RightsView) -> bool {
    let stored = if view.orientation >= 5 { view.upright.transposed() } else { view.upright };
    if view.region.is_empty() {
        return false;
    }
    let boundary = region
        .get("regionBoundary")
        .and_then(Value::as_object)
        .and_then(|boundary| Boundary::from_json(boundary, stored))
        .and_then(|boundary| boundary.turned(view.orientation, stored).cut(view.region));
    let Some(boundary) = boundary else {
        return false;
    };
    region.insert("regionBoundary".to_owned(), boundary.to_json(view.region.size()));
    if !view.person_details {
        region.retain(|name, _| {
            !(is_person_detail(name) || matches!(name.as_str(), "name" | "personInImageNames"))
        });
    }
    if !view.gps {
        drop_coordinates(region);
    }
    true
}
