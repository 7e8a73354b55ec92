//! Reduces the components of a YCbCr picture, each on its own grid of samples.
//!
//! Luma is reduced in linear light. Chroma carries little of the light and is reduced as it is stored. So nothing is
//! interpolated or converted at the size of the original, and 4:2:0 has half of the samples that RGB has. Against a
//! reduction of RGB in linear light, and at equal bytes, seven photographs of 12 to 24 megapixels gain 0.1 points of
//! SSIMULACRA2 at 1600 pixels, and 0.3 at 640 and 800 pixels, to which a copy of 1280 pixels is reduced; none loses more
//! than 0.2 ([`has_abrupt_colours`] excludes one).

use std::ops::Range;

use crate::colour::SrgbConversion;
use crate::linear::{
    Downscale, LightPixels, PixelRegion, ResultGrid, STRIP_PIXELS, SampleLight, Span,
};
use crate::orient::ReversedAxes;
use crate::{ParallelMap, collect, index};
use geometry::Size;
use jpeg::codec::{ChromaSubsampling, ColourSpace, PictureHeader, PlaneLayout, Planes};

/// The difference of neighbouring chroma samples above which a change of colour is abrupt.
const ABRUPT_LEVELS: u8 = 48;
/// A picture has abrupt colours if more than one of this many pixels has.
const ABRUPT_SHARE: usize = 20_000;
/// The maximum number of samples, of 4 bytes each, in memory between the filters of the two axes.
const BOX_SAMPLES_MAX: usize = 20 << 20;

/// Returns whether a picture can be reduced as planes: it is stored in them, and its colours stay as they are.
pub(crate) fn is_planar(header: &PictureHeader, conversion: &SrgbConversion) -> bool {
    header.space == ColourSpace::YCbCr
        && header.chroma != ChromaSubsampling::Other
        && conversion.is_none()
}

/// Returns whether colours change so abruptly in so many places, as in red letters on white, that luma misjudges the
/// light of pixels between them.
///
/// In copies of 1280 pixels, about 1 of 100,000 samples of photographs differ so much from their neighbour. In the
/// photograph that loses 1.8 points of SSIMULACRA2 when its planes are reduced, it is 1 of 4000.
pub(crate) fn has_abrupt_colours(planes: &Planes) -> bool {
    let layout = Planes::layout(planes.size, planes.space, planes.chroma);
    let samples = &planes.data[layout[0].width * layout[0].height..];
    // The few pairs across the edges of rows do not matter.
    let neighbours = samples.iter().zip(samples.iter().skip(1));
    let abrupt = neighbours.filter(|(a, b)| a.abs_diff(**b) > ABRUPT_LEVELS).count();
    abrupt * ABRUPT_SHARE > samples.len() / 2
}

/// A part of a stored picture and the form of its result.
#[derive(Clone, Copy)]
pub(crate) struct PlanarTarget {
    /// The part, in pixels of the source.
    pub(crate) region: PixelRegion,
    /// The size of the result in pixels, as stored.
    pub(crate) size: Size,
    /// Chroma subsampling of the result, as stored.
    pub(crate) chroma: ChromaSubsampling,
    /// The axes that are reversed when the result is turned upright. Cells of chroma are counted from the edge that
    /// becomes the first.
    pub(crate) reversed: ReversedAxes,
}

/// The number of pixels per sample of a plane, across and down.
type Cell = (u32, u32);

impl PlanarTarget {
    /// Plans the reduction of a plane. `plane` is the size of its source in samples; `from` and `to` are the cells of
    /// the source and of the result.
    fn downscale(&self, plane: Size, from: Cell, to: Cell) -> Downscale {
        let [columns, rows] = self.region.spans();
        let (cell_width, cell_height) = self.chroma.cell();
        let reversed = self.reversed;
        let grid = [
            result_grid(columns, self.size.width, cell_width, reversed.columns, from.0, to.0),
            result_grid(rows, self.size.height, cell_height, reversed.rows, from.1, to.1),
        ];
        let region = self.region.scaled_by(1.0 / f64::from(from.0), 1.0 / f64::from(from.1));
        Downscale::on_grid(plane, 1, region, grid)
    }
}

/// Returns the positions of a plane's samples on one axis: `edge` pixels show `span`, and are filled up to whole cells
/// of `cell` pixels. `from` and `to` are the numbers of pixels per sample in the source and in the result.
fn result_grid(
    span: Span,
    edge: u32,
    cell: u32,
    is_reversed: bool,
    from: u32,
    to: u32,
) -> ResultGrid {
    let filled = edge.div_ceil(cell) * cell;
    let ratio = span.length / f64::from(edge.max(1));
    let before = if is_reversed { f64::from(filled - edge) * ratio } else { 0.0 };
    let count = filled / to;
    let from = f64::from(from);
    let to = f64::from(to);
    ResultGrid { start: (span.start - before) / from, ratio: ratio * to / from, count }
}

/// The reduction of one plane, or of two equal ones.
struct PlanePlan {
    downscale: Downscale,
    light: SampleLight,
    /// The number of rows of the picture per row of the plane.
    cell_height: usize,
}

impl PlanePlan {
    /// Returns the rows of the picture that boxes of the plane need.
    fn picture_rows(&self, boxes: &Range<usize>) -> Range<usize> {
        let rows = self.downscale.source_rows(boxes);
        rows.start * self.cell_height..rows.end * self.cell_height
    }

    /// Reduces boxes of the plane to the width of the result. `samples` is the plane from row `top` of the picture,
    /// with `width` samples in a row.
    fn reduce(&self, boxes: &Range<usize>, samples: &[u8], width: usize, top: usize) -> Vec<f32> {
        let rows = self.downscale.source_rows(boxes);
        let first = top / self.cell_height;
        let samples = &samples[(rows.start - first) * width..(rows.end - first) * width];
        self.downscale.reduce_strip(boxes, samples, self.light.light_of())
    }
}

/// The boxes of each plane that are reduced together.
pub(crate) struct PlanarStrip {
    luma: Range<usize>,
    chroma: Range<usize>,
}

/// The rows of a strip at the width of the result: luma, then both chroma components.
pub(crate) type ReducedRows = [Vec<f32>; 3];

/// The plan of a reduction of a picture's planes.
pub(crate) struct PlanarReduction {
    size: Size,
    chroma_of_result: ChromaSubsampling,
    luma: PlanePlan,
    chroma: PlanePlan,
}

impl PlanarReduction {
    /// Plans the reduction of a picture of `source` pixels with the components of `header`; `None` if the result is so
    /// large that it would take too much memory.
    pub(crate) fn new(source: Size, header: &PictureHeader, target: PlanarTarget) -> Option<Self> {
        let cell = header.chroma.cell();
        let layout = Planes::layout(source, header.space, header.chroma);
        let luma = PlanePlan {
            downscale: target.downscale(layout[0].size(), (1, 1), (1, 1)),
            light: SampleLight::Srgb,
            cell_height: 1,
        };
        let chroma = PlanePlan {
            downscale: target.downscale(layout[1].size(), cell, target.chroma.cell()),
            light: SampleLight::Proportional,
            cell_height: index(cell.1),
        };
        let samples = luma.downscale.box_samples() + 2 * chroma.downscale.box_samples();
        let fits = samples <= BOX_SAMPLES_MAX;
        fits.then_some(Self { size: target.size, chroma_of_result: target.chroma, luma, chroma })
    }

    /// Reduces whole planes in strips, in parallel.
    pub(crate) fn reduce_whole(
        &self,
        planes: &Planes,
        parallel_map: ParallelMap<'_>,
    ) -> LightPlanes {
        let strips = self.strips(STRIP_PIXELS);
        let rows =
            collect(parallel_map, strips.len(), |at| self.reduce_strip(&strips[at], planes, 0));
        // A strip that the map left out is reduced here, so that no picture has a gap.
        let rows = rows.into_iter().zip(&strips);
        let rows =
            rows.map(|(rows, strip)| rows.unwrap_or_else(|| self.reduce_strip(strip, planes, 0)));
        self.join(rows.collect())
    }

    /// Splits the plan into strips, from the top down, for sources of about `pixels` pixels each.
    pub(crate) fn strips(&self, pixels: usize) -> Vec<PlanarStrip> {
        let luma = self.luma.downscale.strips(pixels);
        let boxes = self.chroma.downscale.box_rows();
        let mut start = 0;
        let strips = luma.iter().enumerate().map(|(number, strip)| {
            let bottom = self.luma.picture_rows(strip).end;
            let mut end = start;
            // A box of chroma belongs to the strip in which it starts; the last strip has the rest.
            while end < boxes
                && (number + 1 == luma.len()
                    || self.chroma.picture_rows(&(end..end + 1)).start < bottom)
            {
                end += 1;
            }
            let chroma = start..end;
            start = end;
            PlanarStrip { luma: strip.clone(), chroma }
        });
        strips.collect()
    }

    /// Returns the rows of the picture that a strip needs, at most `height`.
    pub(crate) fn picture_rows(&self, strip: &PlanarStrip, height: usize) -> Range<usize> {
        let mut rows = self.luma.picture_rows(&strip.luma);
        if !strip.chroma.is_empty() {
            let chroma = self.chroma.picture_rows(&strip.chroma);
            rows = rows.start.min(chroma.start)..rows.end.max(chroma.end);
        }
        // The last row of chroma can cover rows below the picture.
        rows.start..rows.end.min(height)
    }

    /// Reduces a strip of `planes`, which start at row `top` of the picture, the first of a row of chroma.
    pub(crate) fn reduce_strip(
        &self,
        strip: &PlanarStrip,
        planes: &Planes,
        top: usize,
    ) -> ReducedRows {
        let layout = Planes::layout(planes.size, planes.space, planes.chroma);
        std::array::from_fn(|number| {
            let PlaneLayout { start, width, .. } = layout[number];
            let samples = &planes.data[start..];
            match number {
                0 => self.luma.reduce(&strip.luma, samples, width, top),
                _ if strip.chroma.is_empty() => Vec::new(),
                _ => self.chroma.reduce(&strip.chroma, samples, width, top),
            }
        })
    }

    /// Joins all strips, in order.
    pub(crate) fn join(&self, strips: Vec<ReducedRows>) -> LightPlanes {
        let mut rows: [Vec<Vec<f32>>; 3] = Default::default();
        for strip in strips {
            for (rows, strip) in rows.iter_mut().zip(strip) {
                rows.push(strip);
            }
        }
        let [luma, cb, cr] = &rows;
        let chroma = &self.chroma.downscale;
        let planes = [self.luma.downscale.join(luma), chroma.join(cb), chroma.join(cr)];
        LightPlanes { size: self.size, chroma: self.chroma_of_result, planes }
    }
}

/// A reduced picture: luma in linear light, and chroma as a share of its range.
pub(crate) struct LightPlanes {
    size: Size,
    chroma: ChromaSubsampling,
    planes: [LightPixels; 3],
}

impl LightPlanes {
    /// Rounds all planes to levels.
    pub(crate) fn planes(&self) -> Planes {
        let [luma, cb, cr] = &self.planes;
        let mut data = luma.encode(SampleLight::Srgb);
        data.extend(cb.encode(SampleLight::Proportional));
        data.extend(cr.encode(SampleLight::Proportional));
        Planes { size: self.size, space: ColourSpace::YCbCr, chroma: self.chroma, data }
    }

    /// Converts planes of full size to RGB in linear light.
    pub(crate) fn to_rgb(&self) -> LightPixels {
        let [luma, cb, cr] = &self.planes;
        LightPixels::from_ycbcr(luma, cb, cr)
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::*;
    use crate::render::tests::{job, marker, pixels, psnr};
    use crate::{EncodeEffort, Orientation, OutputSampling, RenderPath, RenderSource, RenderStep};
    use crate::{in_sequence, render, scale_region};
    use jpeg::codec::{EncodeOptions, Pixels, decode_planes, encode};
    use jpeg::samples::pictures;

    /// A white picture; `colour` are stripes of two pixels on its lower half.
    fn striped(size: Size, colour: [u8; 3]) -> Pixels {
        let rows = (0..size.height).flat_map(|y| {
            (0..size.width).flat_map(move |x| {
                if y > size.height / 2 && x % 4 < 2 { colour } else { [255; 3] }
            })
        });
        Pixels { size, channels: 3, data: rows.collect() }
    }

    fn full_chroma(pixels: &Pixels) -> Vec<u8> {
        let chroma = ChromaSubsampling::Full;
        encode(pixels, EncodeOptions { quality: 95, space: ColourSpace::YCbCr, chroma }).unwrap()
    }

    #[test]
    fn only_abrupt_colours_are_abrupt() {
        let size = Size::new(300, 200);
        for (jpeg, expected) in [
            (full_chroma(&striped(size, [200, 20, 20])), true),
            (full_chroma(&striped(size, [0; 3])), false),
            (pictures::photograph(size, ChromaSubsampling::Quarter), false),
        ] {
            assert_eq!(has_abrupt_colours(&decode_planes(&jpeg).unwrap().value), expected);
        }
    }

    #[test]
    fn a_copy_with_abrupt_colours_keeps_its_light() {
        let copy = striped(Size::new(400, 300), [200, 20, 20]);
        let jpeg = full_chroma(&copy);
        let steps = [RenderStep::Fit { long_px: 200 }];
        let mut job = job(&jpeg, &steps);
        job.source = RenderSource { stored: Size::new(1600, 1200), ..job.source };
        job.pixels_max = 2_000_000;
        let found = render(&job, &marker(), &|_| true).unwrap();
        assert_eq!(found.render_path, RenderPath::Level);
        let whole = PixelRegion { x: 0.0, y: 0.0, width: 400.0, height: 300.0 };
        let expected = scale_region(&copy, whole, found.size, SampleLight::Srgb, &in_sequence);
        let close = psnr(&pixels(&found.file), &expected);
        assert!(close > 35.0, "{close:.1} dB");
    }

    #[test]
    fn colours_stay_in_their_places_at_odd_sizes_in_every_orientation() {
        // Soft stripes, which a shift by a sample of chroma would change.
        let size = Size::new(602, 402);
        let rows = (0..size.height).flat_map(|y| {
            (0..size.width).flat_map(move |x| {
                let level = |at: u32| 40 + u8::try_from((at % 60).abs_diff(30) * 5).unwrap();
                [level(x), level(y + 20), level(x + y)]
            })
        });
        let original = Pixels { size, channels: 3, data: rows.collect() };
        let jpeg = full_chroma(&original);
        let region = PixelRegion { x: 0.0, y: 0.0, width: 602.0, height: 402.0 };
        let expected =
            scale_region(&original, region, Size::new(201, 134), SampleLight::Srgb, &in_sequence);
        let steps = [RenderStep::Fit { long_px: 201 }];
        for sampling in [OutputSampling::S420, OutputSampling::Keep] {
            for orientation in Orientation::iter() {
                let mut job = job(&jpeg, &steps);
                job.source.orientation = orientation;
                job.output.sampling = sampling;
                job.output.effort = EncodeEffort::Fast;
                let found = pixels(&render(&job, &marker(), &|_| true).unwrap().file);
                let close = psnr(&found, &orientation.orient(expected.clone()));
                assert!(close > 36.0, "{sampling:?} {orientation:?}: {close:.1} dB");
            }
        }
    }
}
