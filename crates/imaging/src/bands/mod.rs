//! Decodes a picture in parts, on several threads: at a reduced size in bands, or at its full size in strips.

use std::ops::Range;

use crate::{BandDecoder, collect, index};
use geometry::{Rect, Size};
use jpeg::codec::{self, DecodeOutput, DecodeScale, Pixels, Planes};
use jpeg::scan::index::ScanIndex;
use jpeg::scan::{ByteRanges, Scan, ScanError, bands, crop};

/// A function that runs `work(0)`, `work(1)` … `work(count - 1)`, in any order and on any number of threads.
pub type ParallelMap<'a> = &'a (dyn Fn(usize, &(dyn Fn(usize) + Sync)) + Sync);

/// A [`ParallelMap`] that runs all work on the calling thread.
pub fn in_sequence(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).for_each(work);
}

/// Number of rows of pixels above and below a strip that interpolation of its chroma needs. One row of chroma
/// covers up to four rows of pixels.
const CONTEXT_ROWS: u32 = 4;

/// Maximum number of rows of MCUs that are decoded in vain because a strip can only begin at a restart.
const LEAD_ROWS_MAX: u32 = 8;

/// Decodes strips of rows at the full size.
pub(crate) struct StripDecoder<'a> {
    bands: &'a BandDecoder<'a>,
    bytes: ByteRanges<'a>,
    /// The columns to show; `None` for strips of the full width.
    cut: Option<Range<u32>>,
    columns: Range<u32>,
}

/// The pixels of a strip of rows.
pub(crate) struct DecodedStrip {
    pixels: Pixels,
    /// Indices of the samples of the requested rows.
    samples: Range<usize>,
    pub(crate) decoded_pixels: u64,
    pub(crate) warning: Option<String>,
}

impl DecodedStrip {
    /// Returns the samples of the requested rows.
    pub(crate) fn samples(&self) -> &[u8] {
        &self.pixels.data[self.samples.clone()]
    }
}

impl<'a> StripDecoder<'a> {
    /// Creates a decoder of strips that show at least the columns of `region`, in pixels as stored.
    pub(crate) fn new(bands: &'a BandDecoder<'a>, file: &'a [u8], region: Rect) -> Self {
        let bytes = ByteRanges::whole(file).with_cancellation(bands.should_continue);
        let width = bands.scan.size.width;
        // Narrow strips are cut out of the scan. That costs more for each MCU.
        let is_narrow = u64::from(region.width) * 4 < u64::from(width) * 3;
        let cut = is_narrow.then(|| region.x..region.x + region.width);
        let columns = match &cut {
            Some(_) => {
                let shown = crop::surrounding_rect(bands.scan, region);
                shown.x..shown.x + shown.width
            }
            None => 0..width,
        };
        Self { bands, bytes, cut, columns }
    }

    /// Returns the columns of the picture that every strip shows.
    pub(crate) fn columns(&self) -> Range<u32> {
        self.columns.clone()
    }

    /// Decodes `rows`, with the same pixels as a decode of the whole picture.
    ///
    /// Fails with [`ScanError::Sampling`] if restarts are too rare to decode strips separately, and with
    /// [`ScanError::Strip`] if libjpeg-turbo refuses the strip.
    pub(crate) fn decode(&self, rows: Range<usize>) -> Result<DecodedStrip, ScanError> {
        let (file, top) = self.file_of(&rows, CONTEXT_ROWS)?;
        let decoded = codec::decode(&file, DecodeScale::FULL).map_err(|_| ScanError::Strip)?;
        let DecodeOutput { value: pixels, warning } = decoded;
        let stride = index(pixels.size.width) * pixels.channels;
        let samples = (rows.start - top) * stride..(rows.end - top) * stride;
        // The caller relies on the width of the columns.
        let width = self.columns.end - self.columns.start;
        if pixels.size.width != width || pixels.data.len() < samples.end {
            return Err(ScanError::Strip);
        }
        Ok(DecodedStrip { decoded_pixels: pixels.size.pixels(), pixels, samples, warning })
    }

    /// Decodes `rows` to planes, with the same samples as a decode of the whole picture. Also returns the number of
    /// the first row of the planes, which is the first row of an MCU.
    ///
    /// Fails as [`StripDecoder::decode`] does, also for a picture that the library cannot decode to planes.
    pub(crate) fn decode_planes(
        &self,
        rows: Range<usize>,
    ) -> Result<(DecodeOutput<Planes>, usize), ScanError> {
        let end = rows.end;
        // Planes are not interpolated, so they need no other rows.
        let (file, top) = self.file_of(&rows, 0)?;
        let decoded = codec::decode_planes(&file).map_err(|_| ScanError::Strip)?;
        let Size { width, height } = decoded.value.size;
        let columns = self.columns.end - self.columns.start;
        if width != columns || top + index(height) < end {
            return Err(ScanError::Strip);
        }
        Ok((decoded, top))
    }

    /// Returns a file that shows the rows, with `context` rows above and below, and the number of its first row.
    fn file_of(&self, rows: &Range<usize>, context: u32) -> Result<(Vec<u8>, usize), ScanError> {
        let start = u32::try_from(rows.start).map_err(|_| ScanError::Outside)?;
        let end = u32::try_from(rows.end).map_err(|_| ScanError::Outside)?;
        let (file, top) = match &self.cut {
            Some(columns) => self.cut_out(columns, &(start..end))?,
            None => self.band(&(start..end), context)?,
        };
        Ok((file, index(top)))
    }

    /// Returns a file of the rows in full width, with `context` rows above and below, and the number of its first
    /// row.
    fn band(&self, rows: &Range<u32>, context: u32) -> Result<(Vec<u8>, u32), ScanError> {
        let BandDecoder { scan, index, colour, .. } = *self.bands;
        let first = rows.start.saturating_sub(context) / scan.mcu.height;
        let end = (rows.end + context).div_ceil(scan.mcu.height).min(scan.down);
        let mut lead = (first.saturating_sub(LEAD_ROWS_MAX)..=first).rev();
        let first = lead.find(|row| scan.starts_with_restart(*row)).ok_or(ScanError::Sampling)?;
        let file = bands::band(scan, index, &self.bytes, &(first..end), colour)?;
        Ok((file, first * scan.mcu.height))
    }

    /// Returns a file of the rows in some columns, and the number of its first row.
    fn cut_out(
        &self,
        columns: &Range<u32>,
        rows: &Range<u32>,
    ) -> Result<(Vec<u8>, u32), ScanError> {
        let BandDecoder { scan, index, colour, .. } = *self.bands;
        let rect = Rect {
            x: columns.start,
            y: rows.start,
            width: columns.end - columns.start,
            height: rows.end - rows.start,
        };
        let shown = crop::surrounding_rect(scan, rect);
        Ok((crop::crop(scan, index, &self.bytes, shown, colour)?, shown.y))
    }
}

/// Decodes the whole picture at a `scale` below the full size, in bands that run in parallel.
///
/// The pixels are identical to the result of [`codec::decode`], regardless of the number of threads.
/// `parallel_map` runs the work; `bytes` holds the whole file, `colour` its complete JFIF and Adobe segments.
///
/// # Errors
///
/// [`ScanError::Sampling`] at the full size, or if bands of this picture cannot be decoded independently;
/// [`ScanError::Stopped`] if the caller cancelled the work; [`ScanError::Strip`] if libjpeg-turbo refuses a band.
pub fn decode_bands(
    scan: &Scan,
    index: &ScanIndex,
    colour: &[u8],
    bytes: &ByteRanges<'_>,
    scale: DecodeScale,
    parallel_map: ParallelMap<'_>,
) -> Result<DecodeOutput<Pixels>, ScanError> {
    // At the full size libjpeg-turbo interpolates chroma between rows, also across the edges of bands.
    if !bands::are_exact(scan) || scale == DecodeScale::FULL {
        return Err(ScanError::Sampling);
    }
    let rows = bands::split(scan);
    let decoded = collect(parallel_map, rows.len(), |number| {
        let band = bands::band(scan, index, bytes, &rows[number], colour)?;
        codec::decode(&band, scale).map_err(|_| ScanError::Strip)
    });
    let size = scale.scaled_size(scan.size);
    let mut joined = Pixels { size, channels: 0, data: Vec::new() };
    let mut warning = None;
    for band in decoded {
        // A picture with a gap, a band that `parallel_map` did not run, must not pass.
        let DecodeOutput { value, warning: band_warning } = band.ok_or(ScanError::Strip)??;
        let Size { width, .. } = value.size;
        // Bands are joined row by row, so their widths must agree.
        if width != size.width {
            return Err(ScanError::Strip);
        }
        joined.channels = value.channels;
        joined.data.extend_from_slice(&value.data);
        warning = warning.or(band_warning);
    }
    Ok(DecodeOutput { value: joined, warning })
}

#[cfg(test)]
mod tests;
