//! Defines the random-access index: entry points at which a scan can be read from the middle.

use std::ops::Range;

use crate::codec::ColourSpace;
use crate::scan::bits::UnstuffedData;
pub use crate::scan::cursor::IndexEntry;
use crate::scan::cursor::ScanCursor;
use crate::scan::{ByteRanges, COMPONENTS_MAX, Scan, ScanComponent, ScanError};

/// Code of the end-of-image marker.
const EOI: u8 = 0xD9;

/// Minimum number of MCUs between two entries.
const SPACING_MIN: u32 = 16;
/// Maximum number of MCUs between two entries.
const SPACING_MAX: u32 = 1 << 16;

/// Typical number of bytes of a packed entry.
const ENTRY_BYTES: u64 = 7;
/// The divisor for the target size of the packed index, a share of the scan's bytes.
const SHARE: u64 = 480;

/// Maximum mean chroma of a grey block, in levels of 255. Rounding and scanners leave some chroma.
const GREY_CHROMA_MAX: i32 = 3;
/// Minimum number of blocks for which a picture can be called grey.
const GREY_BLOCKS_MIN: usize = 8;
/// The divisor for the share of blocks with colours that a grey picture may have, such as a stamp.
const GREY_BLOCKS_PER_COLOURED: usize = 100;

/// The random-access index of a scan.
///
/// An index is valid only for one file; check a loaded index with [`ScanIndex::matches_scan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanIndex {
    /// Number of MCUs from one entry to the next.
    pub spacing: u32,
    /// The entries for MCU 0, `spacing`, 2 × `spacing` and so on.
    pub entries: Vec<IndexEntry>,
    /// The position after the last MCU, counted as in [`IndexEntry::bit_position`].
    pub end: u64,
    /// Offset in the file of the marker that ends the scan's data.
    pub marker: u64,
}

impl ScanIndex {
    /// Builds the index in one pass over the scan of `file`.
    ///
    /// Costs about 35 ms for 24 megapixels, and temporarily as much additional memory as the size of the scan.
    /// Bytes between the last MCU and the next marker are skipped, as in every decoder.
    ///
    /// # Errors
    ///
    /// [`ScanError`] if the data is damaged, so that libjpeg-turbo would have to guess.
    pub fn build(scan: &Scan, file: &[u8]) -> Result<Self, ScanError> {
        let start = usize::try_from(scan.start).map_err(|_| ScanError::Bytes)?;
        let stuffed = file.get(start..).ok_or(ScanError::Bytes)?;
        let mut data = UnstuffedData::default();
        data.fill(stuffed, scan.start)?;
        // Segments after the scan, such as tables, can make libjpeg-turbo refuse the file.
        let after_marker =
            usize::try_from(data.end_offset()).ok().and_then(|at| file.get(at + 1..));
        let next = after_marker.unwrap_or_default().iter().find(|byte| **byte != 0xFF);
        if next != Some(&EOI) {
            return Err(ScanError::Scans);
        }
        // The cursor cannot detect a restart marker before the first MCU.
        if data.restart(0).is_some_and(|(start, _)| start == 0) {
            return Err(ScanError::Damaged { mcu: 0 });
        }
        let spacing = spacing(scan.mcus(), data.end_offset() - scan.start);
        let mut cursor = ScanCursor::at(scan, &data, &first(scan), 0)?;
        let mut entries = Vec::new();
        let mut until_entry = 0;
        for _ in 0..scan.mcus() {
            cursor.begin()?;
            if until_entry == 0 {
                cursor.check()?;
                let bit_position = data.to_file_position(cursor.position());
                entries.push(IndexEntry { bit_position, dc: cursor.predictors()? });
                until_entry = spacing;
            }
            until_entry -= 1;
            cursor.skip_mcu()?;
        }
        cursor.check()?;
        let end = data.to_file_position(cursor.position());
        Ok(Self { spacing, entries, end, marker: data.end_offset() })
    }

    /// Finds the last entry at or before `mcu`, and returns it with its MCU.
    pub(super) fn entry(&self, mcu: u32) -> Result<(&IndexEntry, u32), ScanError> {
        let number = mcu / self.spacing;
        let entry = usize::try_from(number).ok().and_then(|number| self.entries.get(number));
        entry.map(|entry| (entry, number * self.spacing)).ok_or(ScanError::Bytes)
    }

    /// Returns the byte range of the file that holds `mcus`, starting at the last entry at or before them.
    pub(super) fn byte_range(&self, mcus: Range<u32>) -> Result<Range<u64>, ScanError> {
        let (entry, _) = self.entry(mcus.start)?;
        let next_entry =
            usize::try_from(mcus.end.div_ceil(self.spacing)).map_err(|_| ScanError::Bytes)?;
        let end = self.entries.get(next_entry).map_or(self.marker, |next| {
            // Includes the byte to which the next entry points, and a stuffed byte after it.
            (next.bit_position / 8 + 2).min(self.marker)
        });
        let start = entry.bit_position / 8;
        if start <= end { Ok(start..end) } else { Err(ScanError::Bytes) }
    }

    /// Creates a cursor at `mcu`; `data` must hold the bytes from the last entry at or before `mcu`.
    pub(super) fn seek<'a>(
        &self,
        scan: &'a Scan,
        data: &'a UnstuffedData,
        mcu: u32,
    ) -> Result<ScanCursor<'a>, ScanError> {
        let (entry, at) = self.entry(mcu)?;
        let mut cursor = ScanCursor::at(scan, data, entry, at)?;
        cursor.skip_to(mcu)?;
        Ok(cursor)
    }

    /// Unstuffs the bytes of `mcus` into `data`.
    pub(super) fn fill(
        &self,
        data: &mut UnstuffedData,
        bytes: &ByteRanges<'_>,
        mcus: Range<u32>,
    ) -> Result<(), ScanError> {
        let range = self.byte_range(mcus)?;
        data.fill(bytes.find(range.clone())?, range.start)
    }

    /// Returns whether the picture has no colours, judging by the chroma of the blocks before the entries. Nothing
    /// is decoded, because the entries are a sample of the whole picture.
    ///
    /// Returns `None` if the picture has too few entries, or components other than luma and chroma.
    pub fn is_grey(&self, scan: &Scan) -> Option<bool> {
        match scan.planes? {
            (ColourSpace::Grey, _) => return Some(true),
            (ColourSpace::YCbCr, _) => {}
            (ColourSpace::Rgb | ColourSpace::Cmyk | ColourSpace::Ycck, _) => return None,
        }
        let [_, blue, red] = scan.components.as_slice() else { return None };
        let mut blocks = 0_usize;
        let mut coloured = 0_usize;
        for (number, entry) in (0..).zip(&self.entries) {
            let mcu = self.spacing.saturating_mul(number);
            // At the start and after a restart, the predictors are 0 regardless of the picture.
            let is_restarted = match scan.interval {
                0 => mcu == 0,
                interval => mcu.is_multiple_of(interval),
            };
            if is_restarted {
                continue;
            }
            blocks += 1;
            let [_, of_blue, of_red, _] = entry.dc;
            coloured += usize::from(is_coloured(blue, of_blue) || is_coloured(red, of_red));
        }
        (blocks >= GREY_BLOCKS_MIN).then_some(coloured * GREY_BLOCKS_PER_COLOURED <= blocks)
    }

    /// Returns whether the index is plausible for `scan` in a file of `length` bytes.
    ///
    /// Checks that the number of entries fits the scan, and that positions are ascending and inside it.
    pub fn matches_scan(&self, scan: &Scan, length: u64) -> bool {
        let count = scan
            .mcus()
            // Refuses a spacing of 0, which occurs only in damaged data.
            .checked_div(self.spacing)
            .and_then(|_| usize::try_from(scan.mcus().div_ceil(self.spacing)).ok());
        let positions = self.entries.iter().map(|entry| entry.bit_position).chain([self.end]);
        let mut pairs = positions.clone().zip(positions.skip(1));
        count == Some(self.entries.len())
            && self.entries.first() == Some(&first(scan))
            && pairs.all(|(position, next)| position < next)
            && self.end <= self.marker.saturating_mul(8)
            && self.marker < length
    }
}

fn is_coloured(component: &ScanComponent, dc: i16) -> bool {
    // A DC is eight times the mean of its block, before quantisation.
    i32::from(dc).abs() * i32::from(component.quant[0]) > 8 * GREY_CHROMA_MAX
}

/// Returns the entry of the first MCU.
fn first(scan: &Scan) -> IndexEntry {
    IndexEntry { bit_position: scan.start * 8, dc: [0; COMPONENTS_MAX] }
}

/// Chooses the spacing of entries so that the index stays small compared with a scan of `bytes` bytes.
fn spacing(mcus: u32, bytes: u64) -> u32 {
    let wanted = u64::from(mcus) * ENTRY_BYTES * SHARE / bytes.max(1);
    u32::try_from(wanted)
        .unwrap_or(SPACING_MAX)
        .clamp(SPACING_MIN, SPACING_MAX)
        .next_power_of_two()
}
