//! The measured operations, as media URLs.

use strum::{EnumIter, IntoStaticStr};

use crate::runtime::config::Config;
use model::{ItemKey, Rect, Size};

/// The size of the crops in pixels, if the picture is large enough.
const CROP: Size = Size { width: 800, height: 600 };
/// A multiple of the MCU size of every usual chroma subsampling except 4:1:1, in pixels.
const GRID_PX: u32 = 16;

/// A measured operation. The report lists the operations in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumIter, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum BenchOperation {
    /// A crop of the Hires at an arbitrary position.
    Crop,
    /// A lossless crop of the Hires, on the MCU grid.
    CropOnGrid,
    /// A crop at an arbitrary position with the watermark.
    CropWatermark,
    /// The Hires with the watermark.
    Watermark,
    Preview,
    /// The Preview with the watermark.
    PreviewWatermark,
    Thumbnail,
}

model::impl_as_str!(BenchOperation);

impl BenchOperation {
    /// The name in the table.
    pub(super) fn title(self, config: &Config) -> String {
        match self {
            Self::Crop => format!("crop {}x{}", CROP.width, CROP.height),
            Self::CropOnGrid => "crop on the grid".to_owned(),
            Self::CropWatermark => "crop + watermark".to_owned(),
            Self::Watermark => "Hires watermark".to_owned(),
            Self::Preview => format!("Preview {}", config.media.preview_px),
            Self::PreviewWatermark => "Preview watermark".to_owned(),
            Self::Thumbnail => format!("Thumbnail {}", config.media.thumbnail_px),
        }
    }

    /// Returns the media path of the `index`th rendition of a picture whose upright size is `size`.
    /// Deterministic: the same index always yields the same path.
    pub(super) fn path(self, key: &ItemKey, size: Size, index: u64) -> String {
        let mut path = key.to_string();
        if let Some(Rect { x, y, width, height }) = self.crop(size, index) {
            path.push_str(&format!("-crop_w{width}_h{height}_x{x}_y{y}"));
        }
        path.push_str(match self {
            Self::Crop | Self::CropOnGrid => ".jpg",
            Self::CropWatermark | Self::Watermark => "-watermark.jpg",
            Self::Preview => "_NormalPreview.jpg",
            Self::PreviewWatermark => "_WatermarkPreview.jpg",
            Self::Thumbnail => "_NormalThumbnail.jpg",
        });
        path
    }

    /// Returns the position of the `index`th crop, inside `size`; `None` for an operation without a crop.
    fn crop(self, size: Size, index: u64) -> Option<Rect> {
        let grid = match self {
            Self::Crop | Self::CropWatermark => 1,
            Self::CropOnGrid => GRID_PX,
            Self::Watermark | Self::Preview | Self::PreviewWatermark | Self::Thumbnail => {
                return None;
            }
        };
        // A crop must lie inside the picture, so a smaller picture is cropped to its own size.
        let width = CROP.width.min(size.width);
        let height = CROP.height.min(size.height);
        // The halves of one number serve as x and y: SplitMix64 mixes all 64 bits.
        let number = scatter(index);
        let x = offset(size.width - width, number >> 32, grid);
        let y = offset(size.height - height, number & 0xFFFF_FFFF, grid);
        Some(Rect { x, y, width, height })
    }
}

/// Returns the multiple of `grid`, at most `room`, that `number` selects.
fn offset(room: u32, number: u64, grid: u32) -> u32 {
    let offset = number % (u64::from(room) + 1);
    // Rounding down keeps the crop inside the picture.
    u32::try_from(offset).unwrap_or(room) / grid * grid
}

/// Returns a pseudo-random number that depends only on `index`: SplitMix64 (Steele, Lea and Flood, 2014) with
/// a fixed seed.
fn scatter(index: u64) -> u64 {
    // SplitMix64 adds its increment before it mixes; without that, index 0 would yield 0.
    let mut number = index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use strum::IntoEnumIterator;

    use super::*;
    use model::media_url::MediaPath;

    #[test]
    fn crops_lie_inside_the_picture_spread_out_and_on_the_grid_where_they_should() {
        let size = Size::new(4271, 2847);
        for (operation, grid) in [
            (BenchOperation::Crop, 1),
            (BenchOperation::CropOnGrid, 16),
            (BenchOperation::CropWatermark, 1),
        ] {
            let crops: Vec<_> =
                (0..1000).map(|index| operation.crop(size, index).unwrap()).collect();
            for crop in &crops {
                assert!(crop.is_inside(size) && crop.size() == CROP, "{crop}");
                assert!(crop.x.is_multiple_of(grid) && crop.y.is_multiple_of(grid), "{crop}");
            }
            let quarters: BTreeSet<_> =
                crops.iter().map(|crop| (crop.x > 1735, crop.y > 1123)).collect();
            assert_eq!(quarters.len(), 4);
            let aligned = crops.iter().filter(|crop| crop.x % 16 == 0 && crop.y % 16 == 0).count();
            assert_eq!(aligned > 100, grid == 16, "{aligned}");
        }
    }

    #[test]
    fn a_small_picture_is_taken_whole() {
        let size = Size::new(640, 900);
        let crop = BenchOperation::CropOnGrid.crop(size, 7).unwrap();
        assert_eq!((crop.x, crop.width, crop.height), (0, 640, 600));
        let size = Size::new(640, 427);
        assert_eq!(BenchOperation::Crop.crop(size, 7), Some(Rect::new(0, 0, size)));
    }

    #[test]
    fn every_path_is_one_of_the_grammar_and_the_same_each_time() {
        let key: ItemKey = "image/a".parse().unwrap();
        for operation in BenchOperation::iter() {
            let path = operation.path(&key, Size::new(6000, 4000), 3);
            assert_eq!(MediaPath::parse(&path).unwrap().key(), &key, "{path}");
            assert_eq!(path, operation.path(&key, Size::new(6000, 4000), 3));
        }
    }
}
