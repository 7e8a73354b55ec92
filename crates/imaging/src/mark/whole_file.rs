//! Adds a watermark to a small JPEG file without decoding the rest of it.

use super::Watermark;
use crate::{EncodeEffort, Orientation, RenderStage};
use jpeg::coefficients::{CoefficientError, CoefficientLimits, Coefficients};
use jpeg::dct::Dct;

/// Adds the watermark to an upright JPEG file, sequential or progressive, in grey or YCbCr.
///
/// Only the blocks under the mark are transformed, and quantised with the tables of the file. All other coefficients
/// are those of `file`. The result is baseline, with Huffman tables of its own and without metadata: a progressive file
/// would be 5 to 11 % smaller and take four times as long. All coefficients are in memory, so this is for small
/// pictures; a [`DirectPlan`](crate::DirectPlan) marks large ones.
///
/// `stage` is called when a stage begins. Once it returns `false`, the work ends with [`CoefficientError::Stopped`].
///
/// # Errors
///
/// [`CoefficientError`] with the reason if the coefficients of `file` cannot be read, exceed `limits`, or are of other
/// colours or an unusual sampling. The picture can then be decoded and marked with [`render()`](crate::render()).
pub fn mark_file(
    file: &[u8],
    marker: &Watermark,
    limits: &CoefficientLimits<'_>,
    stage: &dyn Fn(RenderStage) -> bool,
) -> Result<Vec<u8>, CoefficientError> {
    begin(RenderStage::Decode, stage)?;
    let mut coefficients = Coefficients::read(file, limits)?;
    let chroma = coefficients.chroma().ok_or(CoefficientError::Sampling)?;
    begin(RenderStage::Blend, stage)?;
    let mark = marker.prepare_grids(coefficients.size(), Orientation::Upright, chroma);
    coefficients
        .repaint(mark.rect(), Dct::detect(), limits, &mut |samples| mark.paint(samples))?;
    begin(RenderStage::Encode, stage)?;
    Ok(coefficients.write(EncodeEffort::Fast))
}

/// Reports that a stage begins; fails if the work was cancelled.
fn begin(now: RenderStage, stage: &dyn Fn(RenderStage) -> bool) -> Result<(), CoefficientError> {
    if stage(now) { Ok(()) } else { Err(CoefficientError::Stopped) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::tests::text;
    use crate::{
        ImageFormat, OutputColour, OutputOptions, OutputSampling, RenderJob, RenderSource,
        RenderStep, render,
    };
    use geometry::Size;
    use jpeg::codec::{self, ChromaSubsampling, DecodeScale, Pixels};
    use jpeg::encoder;
    use jpeg::samples::{LIMITS, pictures};

    fn limits() -> CoefficientLimits<'static> {
        CoefficientLimits { header: LIMITS, pixels_max: 1 << 24, should_continue: &|| true }
    }

    fn decoded(file: &[u8]) -> Pixels {
        codec::decode(file, DecodeScale::FULL).expect("a valid file").value
    }

    fn text_mark() -> Watermark {
        Watermark::new(text(0.3, 0.02)).expect("a text and a font")
    }

    /// A progressive file of a picture with gradients and edges, and with one channel or three.
    fn small_file(channels: usize) -> Vec<u8> {
        let pixels = pictures::pixels(Size::new(400, 300), channels, 4);
        let sampling = ChromaSubsampling::Quarter;
        let effort = EncodeEffort::Small;
        let options = encoder::EncodeOptions { quality: 98, sampling, effort };
        encoder::encode(&pixels, &options).expect("pixels of a picture")
    }

    /// The file with the mark blended into its decoded pixels, which are not compressed again.
    fn blended(file: &[u8], marker: &Watermark) -> Pixels {
        let size = codec::read_header(file).expect("a valid file").size;
        let source = RenderSource {
            format: ImageFormat::Jpeg,
            file,
            orientation: Orientation::Upright,
            icc: None,
            adobe: false,
            stored: size,
            shows: size,
            bands: None,
        };
        let output = OutputOptions {
            format: ImageFormat::Jpeg,
            quality: 100,
            sampling: OutputSampling::Keep,
            colour: OutputColour::Srgb,
            effort: EncodeEffort::Fast,
            bytes_max: None,
        };
        let steps = [RenderStep::Watermark];
        let job = RenderJob { source, steps: &steps, output, pixels_max: 1 << 24 };
        decoded(&render(&job, marker, &|_| true).expect("a valid picture").file)
    }

    #[test]
    fn the_mark_looks_as_if_blended_into_the_pixels() {
        let marker = text_mark();
        for channels in [1, 3] {
            let file = small_file(channels);
            let marked =
                decoded(&mark_file(&file, &marker, &limits(), &|_| true).expect("marked"));
            let expected = blended(&file, &marker);
            let rect = marker.placement(marked.size);
            let mut sum = 0;
            let mut count = 0;
            for y in rect.y..rect.y + rect.height {
                let start = crate::index(y * marked.size.width + rect.x) * channels;
                let end = start + crate::index(rect.width) * channels;
                let pairs = marked.data[start..end].iter().zip(&expected.data[start..end]);
                sum += pairs.map(|(a, b)| u32::from(a.abs_diff(*b))).sum::<u32>();
                count += rect.width * u32::try_from(channels).expect("few");
            }
            // The blocks under the mark are quantised once more, with fine steps.
            assert!(sum < 2 * count, "{channels}: {sum} in {count} samples");
        }
    }

    #[test]
    fn only_blocks_under_the_mark_change() {
        let marker = text_mark();
        for channels in [1, 3] {
            let file = small_file(channels);
            let marked = mark_file(&file, &marker, &limits(), &|_| true).expect("marked");
            let before = Coefficients::read(&file, &limits()).expect("a valid file");
            let after = Coefficients::read(&marked, &limits()).expect("a valid file");
            let rect = marker.placement(before.size());
            for (number, (before, after)) in before.grids().iter().zip(after.grids()).enumerate() {
                assert_eq!(before.quant(), after.quant());
                let side = if channels == 3 && number > 0 { 16 } else { 8 };
                let blocks = before.blocks().iter().zip(after.blocks()).enumerate();
                let changed: Vec<usize> =
                    blocks.filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect();
                for at in &changed {
                    let x = u32::try_from(at % before.cols()).expect("small") * side;
                    let y = u32::try_from(at / before.cols()).expect("small") * side;
                    let is_under = x < rect.x + rect.width
                        && x + side > rect.x
                        && y < rect.y + rect.height
                        && y + side > rect.y;
                    assert!(is_under, "block {x},{y} of {number}, mark {rect:?}");
                }
                assert!(number > 0 || !changed.is_empty());
            }
        }
    }

    #[test]
    fn other_colours_and_damaged_files_are_refused() {
        let marker = text_mark();
        let inks = pictures::jpeg(
            Size::new(80, 60),
            codec::ColourSpace::Cmyk,
            ChromaSubsampling::Full,
            1,
        );
        let refused = mark_file(&inks, &marker, &limits(), &|_| true);
        assert_eq!(refused, Err(CoefficientError::Sampling));
        assert!(mark_file(&[0xFF, 0xD8], &marker, &limits(), &|_| true).is_err());
        let stopped = mark_file(&small_file(3), &marker, &limits(), &|_| false);
        assert_eq!(stopped, Err(CoefficientError::Stopped));
    }
}
