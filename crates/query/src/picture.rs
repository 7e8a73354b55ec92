//! The facts about a picture that queries can name: its shape and its colours.

/// The shapes of pictures, the values of `orientation`. A panorama is a landscape too.
pub const ORIENTATIONS: [&str; 4] = ["landscape", "portrait", "square", "panorama"];
/// The values of `colour`.
pub const COLOURS: [&str; 2] = ["colour", "monochrome"];

/// The maximum difference between the sides of a square, in percent. Scans and crops are rarely exact.
const SQUARE_PERCENT: u64 = 5;
/// The minimum ratio of width to height of a panorama.
const PANORAMA_RATIO: u64 = 2;

/// The facts about an item's picture that are read from its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureFacts {
    /// The width of the upright picture in pixels.
    pub width: u32,
    /// The height of the upright picture in pixels.
    pub height: u32,
    /// True if the picture has only shades of one colour; `None` if that was not measured.
    pub is_monochrome: Option<bool>,
}

impl PictureFacts {
    /// Returns the shapes of the picture, from [`ORIENTATIONS`]; none for a picture without pixels.
    pub(super) fn orientations(self) -> impl Iterator<Item = &'static str> {
        let [width, height] = [self.width, self.height].map(u64::from);
        let [landscape, portrait, square, panorama] = ORIENTATIONS;
        let long = width.max(height);
        let short = width.min(height);
        let shape = if short == 0 {
            None
        } else if long * 100 <= short * (100 + SQUARE_PERCENT) {
            Some(square)
        } else {
            Some(if width > height { landscape } else { portrait })
        };
        let is_panorama = height > 0 && width >= height * PANORAMA_RATIO;
        shape.into_iter().chain(is_panorama.then_some(panorama))
    }

    /// Returns the colour of the picture, from [`COLOURS`]; `None` if that was not measured.
    pub(super) fn colour(self) -> Option<&'static str> {
        let [colour, monochrome] = COLOURS;
        self.is_monochrome.map(|is_monochrome| if is_monochrome { monochrome } else { colour })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_shape() {
        let check = |width: u32, height: u32, expected: &[&str]| {
            let facts = PictureFacts { width, height, is_monochrome: None };
            assert_eq!(facts.orientations().collect::<Vec<_>>(), expected, "{width} x {height}");
        };
        check(3000, 2000, &["landscape"]);
        check(2000, 3000, &["portrait"]);
        check(2000, 2000, &["square"]);
        check(2100, 2000, &["square"]);
        check(2000, 2101, &["portrait"]);
        check(4000, 2000, &["landscape", "panorama"]);
        check(2000, 4000, &["portrait"]);
        check(u32::MAX, 1, &["landscape", "panorama"]);
        check(0, 0, &[]);
    }

    #[test]
    fn the_colours_of_a_picture_may_be_unknown() {
        let of = |is_monochrome| PictureFacts { width: 3, height: 2, is_monochrome }.colour();
        assert_eq!(of(None), None);
        assert_eq!(of(Some(true)), Some("monochrome"));
        assert_eq!(of(Some(false)), Some("colour"));
    }
}
