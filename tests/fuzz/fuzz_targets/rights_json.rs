//! Feeds arbitrary JSON to the parser of rights, and shows what is valid in arbitrary renditions.
//!
//! Nothing may panic. Valid rights are unchanged by JSON, by a packet, and by being shown twice in a picture
//! as a whole; a region lies in the picture.

#![no_main]

// The target uses the round trip of rights alone.
#[expect(dead_code, reason = "shared with the targets for captions")]
mod caption;

use geometry::{Rect, Size};
use libfuzzer_sys::fuzz_target;
use metadata::RightsMetadata;
use metadata::RightsView;

fuzz_target!(|bytes: &[u8]| {
    let [orientation, x, y, width, height, json @ ..] = bytes else { return };
    let Ok(json) = serde_json::from_slice(json) else { return };
    let Ok(rights) = RightsMetadata::from_json(&json) else { return };
    caption::rights_there_and_back(&rights);
    assert_eq!(rights.overlaid(&rights), rights);
    assert_eq!(rights.short().short(), rights.short());
    let upright = Size::new(256, 256);
    let [x, y, width, height] = [x, y, width, height].map(|byte| u32::from(*byte));
    let region = Rect { x, y, width: width.min(256 - x), height: height.min(256 - y) };
    let orientation = 1 + orientation % 8;
    let (gps, person_details) = (x % 2 == 0, y % 2 == 0);
    let view = RightsView { orientation, upright, region, hires: upright, gps, person_details };
    let shown = rights.shown(&view);
    caption::rights_there_and_back(&shown);
    let size = region.size();
    let whole =
        RightsView { orientation: 1, upright: size, region: Rect::new(0, 0, size), ..view };
    // Once cut, a region is not cut again, except for what rounding moves over the edge.
    let regions = |rights: &RightsMetadata| {
        rights.get("imageRegion").and_then(|regions| regions.as_array()).map_or(0, Vec::len)
    };
    assert!(regions(&shown.shown(&whole)) <= regions(&shown));
});
