//! The index: the bit positions at which MCUs begin.

use std::ops::Range;

use crate::scan::bits::UnstuffedData;
use crate::scan::cursor::ScanCursor;
use crate::scan::{ByteRanges, COMPONENTS_MAX, Scan, ScanError};

/// End of image.
const EOI: u8 = 0xD9;

/// MCUs between two entries at least and at most.
const SPACING_MIN: u32 = 16;
const SPACING_MAX: u32 = 1 << 16;

/// Bytes of a packed entry as a rule, and the share of the file, as one over this number, that all
/// entries together may take.
const ENTRY_BYTES: u64 = 7;
const SHARE: u64 = 480;

/// A position from which the scan can be read: the start of an MCU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexEntry {
    /// Offset in the file times eight plus the bit at which the first code of the MCU starts.
    /// Inside a stuffed pair it counts from the `FF`. Behind a restart marker, if one comes first.
    pub bit_position: u64,
    /// The DC predictor of each component.
    pub dc: [i16; COMPONENTS_MAX],
}

/// The random-access index of a scan.
///
/// It belongs to one file: check a loaded one with [`ScanIndex::matches_scan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanIndex {
    /// Number of MCUs from one entry to the next.
    pub spacing: u32,
    /// The entries: of MCU 0, `every`, twice `every` …
    pub entries: Vec<IndexEntry>,
    /// The place behind the last MCU, as in [`IndexEntry::bit_position`].
    pub end: u64,
    /// Offset of the marker that ends the scan's data.
    pub marker: u64,
}

impl ScanIndex {
    /// Builds the index in one pass over the scan of `file`.
    ///
    /// Costs about 35 ms for 24 megapixels, and as much memory again as the scan takes. Bytes
    /// between the last MCU and the next marker are skipped, as every decoder does.
    ///
    /// # Errors
    ///
    /// [`ScanError`] on anything that libjpeg-turbo would have to guess about.
    pub fn build(scan: &Scan, file: &[u8]) -> Result<Self, ScanError> {
        let start = usize::try_from(scan.start).map_err(|_| ScanError::Bytes)?;
        let stuffed = file.get(start..).ok_or(ScanError::Bytes)?;
        let mut data = UnstuffedData::default();
        data.fill(stuffed, scan.start)?;
        // Whatever else may come, such as tables, can make libjpeg-turbo refuse the file.
        let behind = usize::try_from(data.end_offset()).ok().and_then(|at| file.get(at + 1..));
        let next = behind.unwrap_or_default().iter().find(|byte| **byte != 0xFF);
        if next != Some(&EOI) {
            return Err(ScanError::Scans);
        }
        // No walk sees a restart marker that stands before everything.
        if data.restart(0).is_some_and(|(start, _)| start == 0) {
            return Err(ScanError::Damaged { mcu: 0 });
        }
        let every = spacing(scan.mcus(), data.end_offset() - scan.start);
        let mut walk = ScanCursor::at(scan, &data, &first(scan), 0)?;
        let mut entries = Vec::new();
        let mut until = 0;
        for _ in 0..scan.mcus() {
            walk.begin()?;
            if until == 0 {
                walk.check()?;
                let place = data.to_file_position(walk.position());
                entries.push(IndexEntry { bit_position: place, dc: walk.predictors()? });
                until = every;
            }
            until -= 1;
            walk.skip_mcu()?;
        }
        walk.check()?;
        let (end, marker) = (data.to_file_position(walk.position()), data.end_offset());
        Ok(Self { spacing: every, entries, end, marker })
    }

    /// The last entry at or before `mcu`, and its MCU.
    pub(super) fn entry(&self, mcu: u32) -> Result<(&IndexEntry, u32), ScanError> {
        let number = mcu / self.spacing;
        let entry = usize::try_from(number).ok().and_then(|number| self.entries.get(number));
        entry.map(|entry| (entry, number * self.spacing)).ok_or(ScanError::Bytes)
    }

    /// The bytes of the file that hold MCUs `mcus`, from the entry before them.
    pub(super) fn byte_range(&self, mcus: Range<u32>) -> Result<Range<u64>, ScanError> {
        let (entry, _) = self.entry(mcus.start)?;
        let behind =
            usize::try_from(mcus.end.div_ceil(self.spacing)).map_err(|_| ScanError::Bytes)?;
        let end = self.entries.get(behind).map_or(self.marker, |next| {
            // The byte that the next entry points into, and the stuffing behind it.
            (next.bit_position / 8 + 2).min(self.marker)
        });
        let start = entry.bit_position / 8;
        if start <= end { Ok(start..end) } else { Err(ScanError::Bytes) }
    }

    /// Starts reading at `mcu`; `data` holds the bytes from the entry before it.
    pub(super) fn seek<'a>(
        &self,
        scan: &'a Scan,
        data: &'a UnstuffedData,
        mcu: u32,
    ) -> Result<ScanCursor<'a>, ScanError> {
        let (entry, at) = self.entry(mcu)?;
        let mut walk = ScanCursor::at(scan, data, entry, at)?;
        walk.skip_to(mcu)?;
        Ok(walk)
    }

    /// Unstuffs the bytes of MCUs `mcus` into `data`.
    pub(super) fn fill(
        &self,
        data: &mut UnstuffedData,
        bytes: &ByteRanges<'_>,
        mcus: Range<u32>,
    ) -> Result<(), ScanError> {
        let range = self.byte_range(mcus)?;
        data.fill(bytes.find(range.clone())?, range.start)
    }

    /// Whether the index can belong to `scan` in a file of `length` bytes: as many entries as it
    /// has, places that rise and lie in the scan.
    #[must_use]
    pub fn matches_scan(&self, scan: &Scan, length: u64) -> bool {
        let count = scan
            .mcus()
            .checked_div(self.spacing)
            .and_then(|_| usize::try_from(scan.mcus().div_ceil(self.spacing)).ok());
        let places = || self.entries.iter().map(|entry| entry.bit_position).chain([self.end]);
        count == Some(self.entries.len())
            && self.entries.first() == Some(&first(scan))
            && places().zip(places().skip(1)).all(|(a, b)| a < b)
            && self.end <= self.marker.saturating_mul(8)
            && self.marker < length
    }
}

/// The place of the first MCU.
fn first(scan: &Scan) -> IndexEntry {
    IndexEntry { bit_position: scan.start * 8, dc: [0; COMPONENTS_MAX] }
}

/// MCUs between entries, so that all of them stay a small part of a scan of `bytes` bytes.
fn spacing(mcus: u32, bytes: u64) -> u32 {
    let wanted = u64::from(mcus) * ENTRY_BYTES * SHARE / bytes.max(1);
    u32::try_from(wanted)
        .unwrap_or(SPACING_MAX)
        .clamp(SPACING_MIN, SPACING_MAX)
        .next_power_of_two()
}
