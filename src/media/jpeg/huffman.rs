//! Reading and writing the bits of a baseline scan.

use crate::media::jpeg::excerpt::Unfit;

/// Bits that one look into [`Table`] covers; longer codes are rare and walk their lengths.
const LOOK: u32 = 10;

/// [`Step::advance`] of the code that ends a block: beyond any position.
pub(crate) const END: u8 = 128;

/// What the first bits of the buffer mean.
#[derive(Clone, Copy, Default)]
pub(crate) struct Step {
    /// Bits of the code, 0 if it is longer than the look or does not exist.
    pub(crate) code: u8,
    /// Bits of the code and of the value behind it.
    pub(crate) total: u8,
    /// The symbol.
    pub(crate) symbol: u8,
    /// Coefficients that an AC symbol moves on by, [`END`] for the end of the block.
    pub(crate) advance: u8,
}

/// A Huffman table, ready to decode.
pub(crate) struct Table {
    look: Vec<Step>,
    /// Per length 1 to 16: the first code, the number of codes, the index of its first symbol.
    lengths: [(u32, u32, usize); 17],
    symbols: Vec<u8>,
}

/// Bits of the code of `length`, of the value behind `symbol`, and the move that it means.
fn step(length: u8, symbol: u8) -> Step {
    let (run, size) = (symbol >> 4, symbol & 15);
    let advance = if size == 0 && run != 15 { END } else { run + 1 };
    Step { code: length, total: length + size, symbol, advance }
}

impl Table {
    /// Builds the table from the counts per length and the symbols in order of their codes.
    ///
    /// Fails on counts that make no prefix code.
    pub(crate) fn new(counts: &[u8; 16], symbols: &[u8]) -> Result<Table, Unfit> {
        let mut table = Table {
            look: vec![Step::default(); 1 << LOOK],
            lengths: [(0, 0, 0); 17],
            symbols: symbols.to_vec(),
        };
        let (mut code, mut index) = (0u32, 0usize);
        for (length, count) in (1u8..).zip(counts) {
            table.lengths[usize::from(length)] = (code, u32::from(*count), index);
            for _ in 0..*count {
                let symbol = *symbols.get(index).ok_or(Unfit::Damaged)?;
                if code >= 1 << length {
                    return Err(Unfit::Damaged);
                }
                if u32::from(length) <= LOOK {
                    let shift = LOOK - u32::from(length);
                    let first = usize::try_from(code << shift).map_err(|_| Unfit::Damaged)?;
                    table.look[first..first + (1 << shift)].fill(step(length, symbol));
                }
                (code, index) = (code + 1, index + 1);
            }
            code <<= 1;
        }
        Ok(table)
    }

    /// Finds a code longer than the look in the next 16 bits.
    #[cold]
    fn long(&self, bits: u32) -> Result<Step, Unfit> {
        for length in LOOK + 1..=16 {
            let (first, count, index) = self.lengths[usize::try_from(length).unwrap_or(0)];
            let code = bits >> (16 - length);
            if code >= first && code - first < count {
                let offset = usize::try_from(code - first).map_err(|_| Unfit::Damaged)?;
                let symbol = *self.symbols.get(index + offset).ok_or(Unfit::Damaged)?;
                return Ok(step(u8::try_from(length).map_err(|_| Unfit::Damaged)?, symbol));
            }
        }
        Err(Unfit::Damaged)
    }
}

/// Reads the bits of entropy-coded data, taking stuffed bytes out.
pub(crate) struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    /// The next bits, highest first; below `held` bits there are zeros.
    buffer: u64,
    held: u32,
    /// Bits in the buffer that the data did not hold: zeros before a marker or the end.
    padded: u32,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(data: &'a [u8], at: usize) -> Bits<'a> {
        Bits { data, at, buffer: 0, held: 0, padded: 0 }
    }

    /// Makes sure that at least 48 bits are held.
    #[inline]
    pub(crate) fn refill(&mut self) {
        if self.held >= 48 {
            return;
        }
        if let Some(chunk) = self.data.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            let word = u64::from_be_bytes(*chunk);
            // A byte of FF is the only one whose complement is zero.
            let flipped = !word;
            let zero = flipped.wrapping_sub(0x0101_0101_0101_0101) & word & 0x8080_8080_8080_8080;
            if zero == 0 && self.padded == 0 {
                let bytes = (64 - self.held) / 8;
                let fresh = (word >> (64 - 8 * bytes)) << (64 - 8 * bytes);
                self.buffer |= fresh >> self.held;
                self.held += 8 * bytes;
                self.at += usize::try_from(bytes).unwrap_or(0);
                return;
            }
        }
        self.refill_slowly();
    }

    fn refill_slowly(&mut self) {
        while self.held <= 56 {
            let byte = match (self.data.get(self.at), self.data.get(self.at + 1)) {
                (Some(0xFF), Some(0)) => {
                    self.at += 2;
                    0xFF
                }
                (Some(0xFF), _) | (None, _) => {
                    self.padded += 8;
                    0
                }
                (Some(byte), _) => {
                    self.at += 1;
                    *byte
                }
            };
            self.buffer |= u64::from(byte) << (56 - self.held);
            self.held += 8;
        }
    }

    /// The meaning of the next code; at least 16 bits are held.
    #[inline]
    pub(crate) fn peek(&self, table: &Table) -> Result<Step, Unfit> {
        let index = usize::try_from(self.buffer >> (64 - LOOK)).unwrap_or(0);
        let step = table.look[index & ((1 << LOOK) - 1)];
        if step.code == 0 {
            return table.long(u32::try_from(self.buffer >> 48).unwrap_or(0));
        }
        Ok(step)
    }

    /// Drops `count` bits that are held, fewer than 64.
    #[inline]
    pub(crate) fn skip(&mut self, count: u32) {
        self.buffer <<= count;
        self.held = self.held.wrapping_sub(count);
    }

    /// Takes `count` bits that are held, at most 16.
    #[inline]
    pub(crate) fn take(&mut self, count: u32) -> u32 {
        if count == 0 {
            return 0;
        }
        let value = u32::try_from(self.buffer >> (64 - count)).unwrap_or(0);
        self.skip(count);
        value
    }

    /// Fails if more bits were taken than the data held before its marker or end.
    pub(crate) fn check(&self) -> Result<(), Unfit> {
        if self.held < self.padded { Err(Unfit::Damaged) } else { Ok(()) }
    }

    /// Steps over the restart marker `index` (0 to 7), which must come next.
    pub(crate) fn restart(&mut self, index: u8) -> Result<(), Unfit> {
        self.check()?;
        let left = self.held - self.padded;
        let marker = self.data.get(self.at..).and_then(<[u8]>::first_chunk::<2>);
        // The bits left are the filling of the last byte; whole bytes would be lost data.
        if left >= 8 || marker != Some(&[0xFF, 0xD0 + index]) {
            return Err(Unfit::Damaged);
        }
        *self = Bits::new(self.data, self.at + 2);
        Ok(())
    }
}

/// Codes per symbol: bits and their number, 0 for symbols without a code.
pub(crate) struct Codes(Vec<(u32, u32)>);

impl Codes {
    /// The codes of a table given as in [`Table::new`]; both come from this crate.
    pub(crate) fn new(counts: &[u8; 16], symbols: &[u8]) -> Codes {
        let mut codes = vec![(0, 0); 256];
        let (mut code, mut symbols) = (0, symbols.iter());
        for (length, count) in (1..).zip(counts) {
            for symbol in symbols.by_ref().take(usize::from(*count)) {
                codes[usize::from(*symbol)] = (code, length);
                code += 1;
            }
            code <<= 1;
        }
        Codes(codes)
    }
}

/// Writes the bits of entropy-coded data, stuffing a zero behind every byte of ones.
pub(crate) struct Writer {
    out: Vec<u8>,
    buffer: u64,
    held: u32,
}

impl Writer {
    /// Goes on behind the headers in `out`.
    pub(crate) fn new(out: Vec<u8>) -> Writer {
        Writer { out, buffer: 0, held: 0 }
    }

    /// Writes the lowest `count` bits of `bits`, at most 16, the others being zero.
    fn put(&mut self, bits: u32, count: u32) {
        self.buffer = (self.buffer << count) | u64::from(bits);
        self.held += count;
        while self.held >= 8 {
            self.held -= 8;
            let [.., byte] = (self.buffer >> self.held).to_be_bytes();
            self.out.push(byte);
            if byte == 0xFF {
                self.out.push(0);
            }
        }
    }

    /// Writes the code of `symbol` and the bits of the value behind it.
    pub(crate) fn symbol(&mut self, codes: &Codes, symbol: u8, value: u32) -> Result<(), Unfit> {
        let (code, length) = codes.0[usize::from(symbol)];
        if length == 0 {
            return Err(Unfit::Damaged);
        }
        self.put(code, length);
        self.put(value, u32::from(symbol & 15));
        Ok(())
    }

    /// Fills the last byte with ones and gives the bytes back.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let open = (8 - self.held % 8) % 8;
        self.put((1 << open) - 1, open);
        self.out
    }
}
