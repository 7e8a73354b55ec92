//! Writes bands: horizontal strips of the picture as separate files, which libjpeg-turbo decodes in parallel.
//!
//! A band consists of some rows of MCUs after headers with an adjusted height. libjpeg-turbo scales while it
//! decodes, but uses one thread; with bands, a picture is scaled down on all cores. Below the full size
//! libjpeg-turbo uses larger transforms for the chroma of 4:2:0 instead of interpolating between rows, so the
//! bands give exactly the rows of the whole picture.

use std::ops::Range;

use crate::scan::bits::UnstuffedData;
use crate::scan::crop::{ScanRecoder, headers};
use crate::scan::index::ScanIndex;
use crate::scan::{ByteRanges, Scan, ScanError};
use geometry::Size;

/// Minimum number of pixels in a band: for fewer pixels, creating a decoder costs more than decoding the band.
const BAND_PIXELS: u64 = 1 << 20;

/// Returns whether bands, decoded below the full size, give the same pixels as the whole picture.
///
/// The result is false if libjpeg-turbo interpolates chroma from the rows above and below even then.
pub fn are_exact(scan: &Scan) -> bool {
    // Below the full size, chroma with half the rows needs no vertical interpolation.
    scan.components
        .iter()
        .all(|component| component.cell.1 <= 2 && component.cell.0 >= component.cell.1)
        && scan.planes.is_some()
}

/// Splits the rows of MCUs into bands, independently of the number of threads.
///
/// If the scan has restart markers, each band starts at a restart marker. A single band means that parallel
/// decoding gains nothing.
pub fn split(scan: &Scan) -> Vec<Range<u32>> {
    let row_pixels = u64::from(scan.mcu.height) * u64::from(scan.size.width);
    let rows_per_band = u32::try_from(BAND_PIXELS.div_ceil(row_pixels.max(1))).unwrap_or(u32::MAX);
    let mut bands = Vec::new();
    let mut start = 0;
    while start < scan.down {
        let mut ends = start.saturating_add(rows_per_band)..scan.down;
        let end = ends.find(|row| scan.starts_with_restart(*row)).unwrap_or(scan.down);
        bands.push(start..end);
        start = end;
    }
    bands
}

/// Returns the byte range of the file that [`band`] reads for `rows`.
pub fn byte_range(
    scan: &Scan,
    index: &ScanIndex,
    rows: &Range<u32>,
) -> Result<Range<u64>, ScanError> {
    index.byte_range(rows.start * scan.across..rows.end * scan.across)
}

/// Writes the rows of MCUs `rows`, one of the ranges that [`split`] returns, as a separate file.
///
/// `colour` holds complete JFIF and Adobe segments, as for [`crop`](super::crop::crop).
pub fn band(
    scan: &Scan,
    index: &ScanIndex,
    bytes: &ByteRanges<'_>,
    rows: &Range<u32>,
    colour: &[u8],
) -> Result<Vec<u8>, ScanError> {
    let first = rows.start * scan.across;
    let end_mcu = rows.end * scan.across;
    let mut data = UnstuffedData::default();
    index.fill(&mut data, bytes, first..end_mcu)?;
    let mut cursor = index.seek(scan, &data, first)?;
    cursor.begin()?;
    let mut recoder = ScanRecoder::new(scan)?;
    let mut from = cursor.position();
    // The first DC differences refer to MCUs before the band. After a restart they refer to 0 and stay valid.
    if scan.interval == 0 {
        recoder.recode_mcu(&data, &mut cursor)?;
        from = cursor.position();
    }
    let end = if end_mcu >= scan.mcus() {
        data.from_file_position(index.end)?
    } else {
        // After the restart marker, if any; the loop below leaves that marker out.
        let mut end = index.seek(scan, &data, end_mcu - 1)?;
        end.begin()?;
        end.skip_mcu()?;
        end.check()?;
        end.position()
    };
    let mut writer = recoder.writer;
    let mut restart_number = 0;
    let mut next = data.first_restart_after(from);
    while let Some((start, _)) = data.restart(next).filter(|(start, _)| *start < end) {
        // Whole bytes, including the padding of the last byte. Restart numbers count from 0 in each file.
        writer.copy(&data, from, start);
        writer.restart(restart_number);
        restart_number = (restart_number + 1) & 7;
        from = start;
        next += 1;
    }
    writer.copy(&data, from, end);
    let top = rows.start * scan.mcu.height;
    // The last band ends with the picture, not with its last row of MCUs.
    let height = scan.size.height.min(rows.end * scan.mcu.height) - top;
    let interval = u16::try_from(scan.interval).map_err(|_| ScanError::Tables)?;
    let mut out = vec![0xFF, 0xD8];
    out.extend_from_slice(colour);
    out.extend(headers(scan, Size::new(scan.size.width, height), interval)?);
    writer.finish_into(&mut out);
    out.extend_from_slice(&[0xFF, 0xD9]);
    Ok(out)
}
