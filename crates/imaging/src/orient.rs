//! Turns stored pixels and planes upright by the eight EXIF orientations.

use crate::index;
use geometry::{Rect, Size};
use jpeg::codec::{Pixels, Planes};
use serde::Serialize;
use strum::{EnumIter, IntoEnumIterator};

/// Edge in pixels of the tiles in which pixels are moved; two tiles fit the processor's cache.
const TILE: usize = 32;

/// The EXIF orientation, 1 to 8: the transformation from the stored picture to the upright one. The variants are
/// in the order of the tag's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[derive(EnumIter)]
pub enum Orientation {
    /// 1: the stored picture is upright.
    #[default]
    Upright,
    /// 2: mirrored left to right.
    Mirrored,
    /// 3: turned by a half.
    Half,
    /// 4: mirrored top to bottom.
    Flipped,
    /// 5: mirrored along the diagonal from top left to bottom right.
    Transposed,
    /// 6: to be turned clockwise by a quarter.
    Quarter,
    /// 7: mirrored along the diagonal from top right to bottom left.
    Transverse,
    /// 8: to be turned anticlockwise by a quarter.
    ThreeQuarters,
}

/// The axes of a stored picture that are read backwards to show it upright.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReversedAxes {
    /// Columns are read from right to left.
    pub columns: bool,
    /// Rows are read from bottom to top.
    pub rows: bool,
}

impl Orientation {
    /// Returns the orientation for a value of the tag; upright for values other than 1 to 8.
    pub fn from_tag(value: u32) -> Orientation {
        let index = value.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| Orientation::iter().nth(index)).unwrap_or_default()
    }

    /// Returns whether rows of the upright picture are columns of the stored picture.
    pub fn swaps_axes(self) -> bool {
        matches!(
            self,
            Orientation::Transposed
                | Orientation::Quarter
                | Orientation::Transverse
                | Orientation::ThreeQuarters
        )
    }

    /// Returns the axes of the stored picture that are read backwards to show it upright.
    pub fn reversed_axes(self) -> ReversedAxes {
        let (columns, rows) = match self {
            Orientation::Upright | Orientation::Transposed => (false, false),
            Orientation::Mirrored | Orientation::ThreeQuarters => (true, false),
            Orientation::Half | Orientation::Transverse => (true, true),
            Orientation::Flipped | Orientation::Quarter => (false, true),
        };
        ReversedAxes { columns, rows }
    }

    /// Converts a stored size to the upright size, or an upright size to the stored size.
    pub fn oriented_size(self, stored: Size) -> Size {
        if self.swaps_axes() { stored.transposed() } else { stored }
    }

    /// Converts a rectangle of the upright picture to a rectangle of the stored picture.
    ///
    /// `stored` is the stored size; `upright` must be inside the upright picture.
    pub fn to_stored(self, upright: Rect, stored: Size) -> Rect {
        let Rect { x, y, width, height } = upright;
        // Axes first, because the mirrored edges are edges of the stored picture.
        let (x, width, y, height) =
            if self.swaps_axes() { (y, height, x, width) } else { (x, width, y, height) };
        let reversed = self.reversed_axes();
        Rect {
            x: if reversed.columns { mirrored(x, width, stored.width) } else { x },
            y: if reversed.rows { mirrored(y, height, stored.height) } else { y },
            width,
            height,
        }
    }

    /// Returns the inverse orientation.
    pub fn inverse(self) -> Orientation {
        // Mirrorings and the half turn undo themselves; quarter turns undo each other.
        if self == Orientation::Quarter {
            return Orientation::ThreeQuarters;
        }
        if self == Orientation::ThreeQuarters { Orientation::Quarter } else { self }
    }

    /// Converts a rectangle of the stored picture to a rectangle of the upright picture.
    ///
    /// `stored` is the stored size; `rect` must be inside the stored picture.
    pub fn to_upright(self, rect: Rect, stored: Size) -> Rect {
        self.inverse().to_stored(rect, self.oriented_size(stored))
    }

    /// Turns stored pixels upright; copies them unless the orientation is upright.
    pub fn orient(self, pixels: Pixels) -> Pixels {
        if self == Orientation::Upright {
            return pixels;
        }
        // One instance for each number of channels, so that the inner loop moves a pixel as one array.
        let data = match pixels.channels {
            1 => self.orient_samples(pixels.data.as_chunks::<1>().0, pixels.size),
            3 => self.orient_samples(pixels.data.as_chunks::<3>().0, pixels.size),
            _ => self.orient_samples(pixels.data.as_chunks::<4>().0, pixels.size),
        };
        Pixels { size: self.oriented_size(pixels.size), channels: pixels.channels, data }
    }

    fn orient_samples<const N: usize>(self, from: &[[u8; N]], stored: Size) -> Vec<u8> {
        let size = self.oriented_size(stored);
        let width = index(size.width);
        let height = index(size.height);
        let columns = index(stored.width);
        let rows = index(stored.height);
        let ReversedAxes { columns: backwards, rows: upwards } = self.reversed_axes();
        let mut data = vec![0; width * height * N];
        let to = data.as_chunks_mut::<N>().0;
        // In tiles, because a turned row is a column of the source and misses the cache at each pixel.
        for tile_y in (0..height).step_by(TILE) {
            for tile_x in (0..width).step_by(TILE) {
                for v in tile_y..height.min(tile_y + TILE) {
                    for u in tile_x..width.min(tile_x + TILE) {
                        let (a, b) = if self.swaps_axes() { (v, u) } else { (u, v) };
                        let x = if backwards { columns - 1 - a } else { a };
                        let y = if upwards { rows - 1 - b } else { b };
                        to[v * width + u] = from[y * columns + x];
                    }
                }
            }
        }
        data
    }
}

/// Returns the start of a part of an edge, counted from the other end.
fn mirrored(start: u32, length: u32, edge: u32) -> u32 {
    edge.saturating_sub(start.saturating_add(length))
}

/// Cuts `region`, which must be on the chroma grid, out of the planes and turns each plane upright.
pub(crate) fn orient_planes(planes: Planes, region: Rect, orientation: Orientation) -> Planes {
    let upright = orientation == Orientation::Upright;
    let Planes { size, space, chroma, data } = planes;
    if upright && size == region.size() {
        return Planes { size, space, chroma, data };
    }
    let layout = Planes::layout(size, space, chroma);
    let target = Planes::layout(region.size(), space, chroma);
    let (across, down) = chroma.cell();
    let mut out = Vec::with_capacity(Planes::sample_count(&target));
    for (number, (from, to)) in layout.iter().zip(&target).enumerate() {
        let (x, y) =
            if number == 0 { (region.x, region.y) } else { (region.x / across, region.y / down) };
        let mut part = Vec::with_capacity(to.width * to.height);
        for row in 0..to.height {
            let start = from.start + (index(y) + row) * from.width + index(x);
            part.extend_from_slice(&data[start..start + to.width]);
        }
        out.extend(orientation.orient(Pixels { size: to.size(), channels: 1, data: part }).data);
    }
    let chroma = if orientation.swaps_axes() { chroma.transposed() } else { chroma };
    Planes { size: orientation.oriented_size(region.size()), space, chroma, data: out }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 3x2 picture whose pixels are numbered row by row.
    fn numbered() -> Pixels {
        Pixels { size: Size { width: 3, height: 2 }, channels: 1, data: vec![1, 2, 3, 4, 5, 6] }
    }

    #[test]
    fn each_tag_turns_as_exif_says() {
        let expected: [(&[u8], u32); 8] = [
            (&[1, 2, 3, 4, 5, 6], 3),
            (&[3, 2, 1, 6, 5, 4], 3),
            (&[6, 5, 4, 3, 2, 1], 3),
            (&[4, 5, 6, 1, 2, 3], 3),
            (&[1, 4, 2, 5, 3, 6], 2),
            (&[4, 1, 5, 2, 6, 3], 2),
            (&[6, 3, 5, 2, 4, 1], 2),
            (&[3, 6, 2, 5, 1, 4], 2),
        ];
        for (tag, (data, width)) in (1..).zip(expected) {
            let turned = Orientation::from_tag(tag).orient(numbered());
            assert_eq!((turned.data.as_slice(), turned.size.width), (data, width), "tag {tag}");
        }
    }

    #[test]
    fn tags_outside_the_range_are_upright() {
        for tag in [0, 9, u32::MAX] {
            assert_eq!(Orientation::from_tag(tag), Orientation::Upright);
        }
    }

    #[test]
    fn an_upright_rectangle_is_found_in_the_stored_picture() {
        let stored = Size { width: 7, height: 5 };
        let data: Vec<u8> = (0..35).collect();
        for orientation in Orientation::iter() {
            let whole = Pixels { size: stored, channels: 1, data: data.clone() };
            let upright = orientation.orient(whole);
            let rect = Rect { x: 1, y: 2, width: 3, height: 2 };
            let stored_rect = orientation.to_stored(rect, stored);
            let mut cut = Vec::new();
            for y in stored_rect.y..stored_rect.y + stored_rect.height {
                for x in stored_rect.x..stored_rect.x + stored_rect.width {
                    cut.push(data[usize::try_from(y * 7 + x).unwrap()]);
                }
            }
            let size = Size { width: stored_rect.width, height: stored_rect.height };
            let cut = orientation.orient(Pixels { size, channels: 1, data: cut });
            for y in 0..2 {
                for x in 0..3 {
                    let here = usize::try_from((y + 2) * upright.size.width + x + 1).unwrap();
                    let found = cut.data[usize::try_from(y * 3 + x).unwrap()];
                    assert_eq!(upright.data[here], found, "{orientation:?}");
                }
            }
        }
    }

    #[test]
    fn large_pictures_turn_beyond_one_tile() {
        let size = Size { width: 70, height: 45 };
        let data: Vec<u8> = (0..70 * 45 * 3).map(|i: u32| i.to_le_bytes()[0]).collect();
        let pixels = Pixels { size, channels: 3, data };
        let quarter = Orientation::Quarter.orient(pixels.clone());
        assert_eq!(Orientation::ThreeQuarters.orient(quarter), pixels);
    }
}
