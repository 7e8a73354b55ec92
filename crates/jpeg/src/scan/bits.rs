//! Reads and writes the bits of entropy-coded data.
//!
//! Data is *unstuffed* first: the `00` after each `FF` and the restart markers are removed, and their positions
//! recorded. Then bits can be read 56 at a time without checking single bytes.

use crate::scan::ScanError;

/// Zero bytes appended to unstuffed data, so that reading the last bits needs no special case.
const PAD: usize = 8;

/// A run of bytes that are contiguous both in the file and in [`UnstuffedData`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByteRun {
    /// Offset of the first byte in the unstuffed data.
    data_offset: u32,
    /// Offset of the first byte in the file, counted from the start of the stuffed data.
    file_offset: u32,
}

/// Entropy-coded data without stuffed bytes and restart markers (T.81 F.1.2.3).
#[derive(Debug, Default)]
pub struct UnstuffedData {
    bytes: Vec<u8>,
    length: usize,
    runs: Vec<ByteRun>,
    /// Offset in `bytes` of the data after each restart marker, and the marker's number.
    restarts: Vec<(usize, u8)>,
    /// Offset in the file of the first byte.
    origin: u64,
    /// Offset in the file where the data ended: at a marker, or at the end of the given bytes.
    end_offset: u64,
}

impl UnstuffedData {
    /// Replaces the contents with the data of `stuffed`, up to the first marker that is not a restart.
    ///
    /// `origin` is the offset of `stuffed` in its file. The memory is reused.
    ///
    /// Fails with [`ScanError::Length`] for 4 GiB of data or more.
    pub fn fill(&mut self, stuffed: &[u8], origin: u64) -> Result<(), ScanError> {
        // `ByteRun` stores offsets in 32 bits.
        u32::try_from(stuffed.len()).map_err(|_| ScanError::Length)?;
        self.origin = origin;
        // This value remains if no marker follows.
        self.end_offset = origin + long(stuffed.len());
        self.bytes.clear();
        self.bytes.reserve(stuffed.len() + PAD);
        self.restarts.clear();
        self.runs.clear();
        self.runs.push(ByteRun { data_offset: 0, file_offset: 0 });
        let mut at = 0;
        for found in memchr::memchr_iter(0xFF, stuffed) {
            if found < at {
                continue;
            }
            match stuffed.get(found + 1) {
                Some(0) => self.bytes.extend_from_slice(&stuffed[at..=found]),
                // The padding before the marker stays in the data; the cursor checks its length.
                Some(number @ 0xD0..=0xD7) => {
                    self.bytes.extend_from_slice(&stuffed[at..found]);
                    self.restarts.push((self.bytes.len(), number - 0xD0));
                }
                // The range ends in the middle of a stuffed pair, and the caller does not need its rest.
                None => continue,
                Some(_) => {
                    self.bytes.extend_from_slice(&stuffed[at..found]);
                    self.end_offset = origin + long(found);
                    at = stuffed.len();
                    break;
                }
            }
            at = found + 2;
            self.runs
                .push(ByteRun { data_offset: short(self.bytes.len()), file_offset: short(at) });
        }
        self.bytes.extend_from_slice(stuffed.get(at..).unwrap_or_default());
        self.length = self.bytes.len();
        self.bytes.extend_from_slice(&[0; PAD]);
        Ok(())
    }

    /// Returns the number of bits, without stuffed bytes.
    pub fn bit_count(&self) -> u64 {
        long(self.length) * 8
    }

    /// Returns the offset in the file of the marker that ended the data, or of the data's end.
    pub fn end_offset(&self) -> u64 {
        self.end_offset
    }

    /// Converts the bit `position` to a position in the file: offset times eight, plus the bit.
    pub fn to_file_position(&self, position: u64) -> u64 {
        let byte = short(usize::try_from(position / 8).unwrap_or(usize::MAX));
        let run = self.runs.partition_point(|run| run.data_offset <= byte).saturating_sub(1);
        let ByteRun { data_offset: data_start, file_offset: file_start } = self.runs[run];
        (self.origin + u64::from(file_start) + u64::from(byte - data_start)) * 8 + position % 8
    }

    /// Converts a position in the file to a position in the data; the inverse of
    /// [`UnstuffedData::to_file_position`].
    ///
    /// Fails with [`ScanError::Bytes`] for a position outside the data.
    pub fn from_file_position(&self, file_position: u64) -> Result<u64, ScanError> {
        let file_offset = (file_position / 8).checked_sub(self.origin).ok_or(ScanError::Bytes)?;
        let file_offset = u32::try_from(file_offset).map_err(|_| ScanError::Bytes)?;
        let run =
            self.runs.partition_point(|run| run.file_offset <= file_offset).saturating_sub(1);
        let ByteRun { data_offset: data_start, file_offset: file_start } = self.runs[run];
        let position =
            (u64::from(data_start) + u64::from(file_offset - file_start)) * 8 + file_position % 8;
        if position <= self.bit_count() { Ok(position) } else { Err(ScanError::Bytes) }
    }

    /// Returns the index of the first restart whose data starts after `position`.
    pub(super) fn first_restart_after(&self, position: u64) -> usize {
        self.restarts.partition_point(|(start, _)| long(*start) * 8 <= position)
    }

    /// Returns the position in bits of the data after restart `index`, and the marker's number.
    pub(crate) fn restart(&self, index: usize) -> Option<(u64, u8)> {
        self.restarts.get(index).map(|(start, number)| (long(*start) * 8, *number))
    }

    /// Returns the 64 bits from `position`; bits beyond the end are zero.
    fn word(&self, position: u64) -> u64 {
        let at = usize::try_from(position / 8).unwrap_or(usize::MAX);
        let bytes = self.bytes.get(at..).unwrap_or_default();
        let first = bytes.first_chunk::<8>().map_or(0, |chunk| u64::from_be_bytes(*chunk));
        // A position within a byte needs bits of a ninth byte.
        let next = bytes.get(8).copied().map_or(0, u64::from);
        let shift = position % 8;
        first << shift | next << shift >> 8
    }
}

fn short(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn long(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Reads bits from the front; bits beyond the end are zero.
#[derive(Clone, Debug)]
pub(crate) struct EntropyReader<'a> {
    bytes: &'a [u8],
    /// Offset of the next byte to load.
    at: usize,
    /// The next bits, the first one in the highest bit.
    pub(crate) buffer: u64,
    /// Number of valid bits in the buffer; more may be present.
    held: u32,
}

impl<'a> EntropyReader<'a> {
    /// Creates a reader at the bit `position`.
    pub(crate) fn new(data: &'a UnstuffedData, position: u64) -> Self {
        let at = usize::try_from(position / 8).unwrap_or(usize::MAX);
        let mut reader = Self { bytes: &data.bytes, at, buffer: 0, held: 0 };
        reader.refill();
        reader.skip(u32::try_from(position % 8).unwrap_or(0));
        reader
    }

    /// Loads bytes until at least 56 bits are held.
    #[inline(always)]
    pub(crate) fn refill(&mut self) {
        // The next refill loads the bits beyond `held` again; OR with the same bits is idempotent.
        if let Some(chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            self.buffer |= u64::from_be_bytes(*chunk) >> self.held;
        }
        self.at += usize::try_from((63 - self.held) >> 3).unwrap_or(0);
        self.held |= 56;
    }

    /// Drops `count` bits that are held.
    #[inline(always)]
    pub(crate) fn skip(&mut self, count: u32) {
        self.buffer <<= count;
        self.held = self.held.wrapping_sub(count);
    }

    /// Returns the position of the next bit, counted from the start of the data.
    pub(crate) fn position(&self) -> u64 {
        (long(self.at) * 8).saturating_sub(u64::from(self.held))
    }
}

/// Minimum number of bytes by which a writer's buffer grows.
const GROWTH: usize = 4096;

/// Writes bits; [`EntropyWriter::finish_into`] adds restart markers and stuffing.
#[derive(Debug, Default)]
pub(crate) struct EntropyWriter {
    /// Complete bytes up to `at`, and spare room after them.
    bytes: Vec<u8>,
    at: usize,
    /// The bits of the incomplete last byte, in the lowest bits.
    buffer: u64,
    /// Number of bits in `buffer`, 0 to 7.
    held: u32,
    /// Offsets in `bytes` at which restart markers are inserted, and their numbers.
    restarts: Vec<(usize, u8)>,
}

impl EntropyWriter {
    /// Writes the lowest `count` bits of `bits`, 1 to 56; the other bits must be zero.
    ///
    /// Always stores eight bytes. The next call overwrites the incomplete ones: that costs less than a branch on
    /// their number.
    #[inline(always)]
    pub(crate) fn put(&mut self, bits: u64, count: u32) {
        self.buffer = self.buffer << count | bits;
        self.held += count;
        let word = (self.buffer << (64 - self.held)).to_be_bytes();
        if let Some(room) = self.bytes.get_mut(self.at..).and_then(<[u8]>::first_chunk_mut::<8>) {
            *room = word;
        } else {
            self.grow(word);
        }
        self.at += usize::try_from(self.held >> 3).unwrap_or(0);
        self.held &= 7;
    }

    #[cold]
    fn grow(&mut self, word: [u8; 8]) {
        self.bytes.truncate(self.at);
        self.bytes.extend_from_slice(&word);
        // Grows in proportion, so that the total cost of copying is linear.
        self.bytes.resize(self.at + self.at / 2 + GROWTH, 0);
    }

    /// Copies the bits `start..end` of `data`.
    pub(super) fn copy(&mut self, data: &UnstuffedData, start: u64, end: u64) {
        let mut at = start;
        // `put` accepts at most 56 bits at a time.
        while at + 56 <= end {
            self.put(data.word(at) >> 8, 56);
            at += 56;
        }
        let rest = u32::try_from(end.saturating_sub(at)).unwrap_or(0);
        if rest > 0 {
            self.put(data.word(at) >> (64 - rest), rest);
        }
    }

    /// Pads the last byte with ones, as T.81 F.1.2.3 requires.
    pub(super) fn align(&mut self) {
        let open = (8 - self.held) % 8;
        if open > 0 {
            self.put((1 << open) - 1, open);
        }
    }

    /// Pads the last byte and writes the restart marker `number`, 0 to 7.
    pub(super) fn restart(&mut self, number: u8) {
        self.align();
        self.restarts.push((self.at, number));
    }

    /// Pads the last byte and appends everything to `out`, with stuffing and restart markers.
    pub(crate) fn finish_into(mut self, out: &mut Vec<u8>) {
        self.align();
        self.bytes.truncate(self.at);
        out.reserve(self.at + self.at / 64 + 2 * self.restarts.len());
        let mut from = 0;
        for (at, number) in &self.restarts {
            stuff(&self.bytes[from..*at], out);
            out.extend_from_slice(&[0xFF, 0xD0 + number]);
            from = *at;
        }
        stuff(&self.bytes[from..], out);
    }
}

fn stuff(bytes: &[u8], out: &mut Vec<u8>) {
    let mut from = 0;
    for at in memchr::memchr_iter(0xFF, bytes) {
        out.extend_from_slice(&bytes[from..=at]);
        out.push(0);
        from = at + 1;
    }
    out.extend_from_slice(&bytes[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The highest `count` bits of `word`, 1 to 64.
    fn high(word: u64, count: u32) -> u64 {
        word >> (64 - count)
    }

    fn unstuffed(data: &[u8]) -> UnstuffedData {
        let mut unstuffed = UnstuffedData::default();
        unstuffed.fill(data, 100).expect("short");
        unstuffed
    }

    #[test]
    fn markers_and_stuffing_are_removed() {
        let data = unstuffed(&[1, 0xFF, 0, 2, 0xFF, 0xD3, 3, 0xFF, 0xD9, 9]);
        assert_eq!(data.bytes[..data.length], [1, 0xFF, 2, 3]);
        assert_eq!(data.restarts, [(3, 3)]);
        // A position inside a stuffed pair points at its FF.
        let places = [0u64, 8, 12, 16, 24].map(|position| data.to_file_position(position));
        assert_eq!(places, [800, 808, 812, 824, 848]);
        for position in 0..32 {
            assert_eq!(data.from_file_position(data.to_file_position(position)), Ok(position));
        }
    }

    proptest! {
        #[test]
        fn written_bits_are_read_back(
            words in prop::collection::vec((any::<u32>(), 1u32..=32), 0..200), restart in 0usize..200,
        ) {
            let mut writer = EntropyWriter::default();
            for (index, (bits, count)) in words.iter().enumerate() {
                if index == restart {
                    writer.restart(5);
                }
                writer.put(high(u64::from(*bits) << 32, *count), *count);
            }
            let mut out = Vec::new();
            writer.finish_into(&mut out);
            let data = unstuffed(&out);
            let mut reader = EntropyReader::new(&data, 0);
            for (index, (bits, count)) in words.iter().enumerate() {
                if index == restart {
                    let (start, number) = data.restart(0).expect("one restart");
                    prop_assert_eq!(number, 5);
                    prop_assert!(start >= reader.position() && start - reader.position() < 8);
                    reader = EntropyReader::new(&data, start);
                }
                reader.refill();
                prop_assert_eq!(high(reader.buffer, *count), high(u64::from(*bits) << 32, *count));
                reader.skip(*count);
            }
            prop_assert!(reader.position() <= data.bit_count());
        }

        #[test]
        fn any_stretch_of_bits_is_copied(
            bytes in prop::collection::vec(any::<u8>(), 1..60), a in any::<prop::sample::Index>(),
            b in any::<prop::sample::Index>(), lead in 0u32..32,
        ) {
            let mut stuffed = Vec::new();
            stuff(&bytes, &mut stuffed);
            let data = unstuffed(&stuffed);
            let (a, b) = (a.index(bytes.len() * 8 + 1), b.index(bytes.len() * 8 + 1));
            let (start, end) = (long(a.min(b)), long(a.max(b)));
            let mut writer = EntropyWriter::default();
            if lead > 0 {
                writer.put(0, lead);
            }
            writer.copy(&data, start, end);
            let mut out = Vec::new();
            writer.finish_into(&mut out);
            let copied = unstuffed(&out);
            for offset in 0..end - start {
                let bit = |data: &UnstuffedData, at: u64| data.word(at) >> 63;
                prop_assert_eq!(bit(&copied, u64::from(lead) + offset), bit(&data, start + offset));
            }
        }
    }
}
