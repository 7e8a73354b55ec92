//! Writes the file of a quantised picture (T.81, annex B).

use geometry::Size;

use super::effort::EncodeEffort;
use super::progressive;
use crate::coefficient_grid::CoefficientGrid;
use crate::rewrite::segment;

/// The largest step of a quantisation table in a baseline file (T.81, B.2.4.1).
const BASELINE_STEP_MAX: u16 = 255;

/// Writes a file of `size` pixels.
///
/// `colour` has the complete segments that define the colours of the components. Each side of `size` has 1 to 65,535
/// pixels, and there are 1 to 4 grids, of which an MCU has at most 10 blocks.
pub(crate) fn write(
    size: Size,
    colour: &[u8],
    grids: &[CoefficientGrid],
    effort: EncodeEffort,
) -> Vec<u8> {
    let script = match effort {
        EncodeEffort::Small => progressive::choose(grids),
        EncodeEffort::Fast => progressive::baseline(grids),
    };
    let is_long = grids.iter().flat_map(|grid| grid.quant).any(|step| step > BASELINE_STEP_MAX);
    let frame_marker = match (script.progressive, is_long) {
        (true, _) => 0xC2,
        // Extended: the same scans, with long tables.
        (false, true) => 0xC1,
        (false, false) => 0xC0,
    };
    let mut out = vec![0xFF, 0xD8];
    out.extend_from_slice(colour);
    out.extend(segment(0xDB, &[&quantisation_tables(grids)]));
    out.extend(segment(frame_marker, &[&frame(size, grids)]));
    for group in &script.groups {
        group.write(grids, &mut out);
    }
    out.extend([0xFF, 0xD9]);
    out
}

/// Returns the payload of the quantisation tables, each of them once (T.81, B.2.4.1).
fn quantisation_tables(grids: &[CoefficientGrid]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (index, grid) in grids.iter().enumerate() {
        if grids[..index].iter().any(|other| other.quant_number == grid.quant_number) {
            continue;
        }
        let bytes: Result<Vec<u8>, _> =
            grid.quant.iter().map(|&step| u8::try_from(step)).collect();
        match bytes {
            Ok(bytes) => {
                payload.push(grid.quant_number);
                payload.extend(bytes);
            }
            Err(_) => {
                payload.push(0x10 | grid.quant_number);
                payload.extend(grid.quant.iter().flat_map(|step| step.to_be_bytes()));
            }
        }
    }
    payload
}

/// Returns the payload of the frame header (T.81, B.2.2).
fn frame(size: Size, grids: &[CoefficientGrid]) -> Vec<u8> {
    let height = u16::try_from(size.height).expect("the size was checked");
    let width = u16::try_from(size.width).expect("the size was checked");
    let mut frame = vec![8];
    frame.extend(height.to_be_bytes());
    frame.extend(width.to_be_bytes());
    frame.push(progressive::byte(grids.len()));
    for grid in grids {
        frame.extend([grid.id, grid.across << 4 | grid.down, grid.quant_number]);
    }
    frame
}
