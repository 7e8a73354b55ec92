//! A decoder of baseline scans to coefficients, bit by bit as T.81 describes it (F.2.2).
//!
//! It is slow, uses no lookup tables and shares no code with the engine.

use jpeg::header::JpegHeader;

/// A component's coefficients.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// Blocks across and down in an MCU.
    pub across: usize,
    /// See `across`.
    pub down: usize,
    /// Its quantisation table, row by row.
    pub quant: [u16; 64],
    /// Blocks in a row.
    pub columns: usize,
    /// All blocks, row by row: quantised coefficients, row by row.
    pub blocks: Vec<[i32; 64]>,
}

/// A scan.
#[derive(Debug)]
pub struct Plain {
    /// The components.
    pub parts: Vec<Part>,
    /// For each MCU: the position of its first bit, and its DC predictors.
    pub starts: Vec<(u64, [i32; 4])>,
    /// The position after the last MCU.
    pub end: u64,
    /// Whole bytes between the last MCU and the marker that ends the scan.
    pub extra: usize,
    /// Whether restart markers follow the last MCU.
    pub late_restarts: bool,
    /// The Huffman tables: classes DC and AC, numbers 0 to 3.
    pub tables: [[Option<Codes>; 4]; 2],
    /// Numbers of the components' DC and AC tables.
    pub numbers: Vec<(usize, usize)>,
}

/// A Huffman table.
#[derive(Clone, Debug)]
pub struct Codes {
    /// Codes of each length from 1 bit.
    pub counts: [u32; 16],
    /// The symbols in the order of their codes.
    pub symbols: Vec<u8>,
}

/// Bits of entropy-coded data; they end at a marker.
struct Bits<'a> {
    jpeg: &'a [u8],
    at: usize,
    bit: u32,
}

impl Bits<'_> {
    /// The next bit.
    fn take(&mut self) -> Option<u32> {
        let byte = *self.jpeg.get(self.at)?;
        if byte == 0xFF && *self.jpeg.get(self.at + 1)? != 0 {
            return None;
        }
        let value = u32::from(byte) >> (7 - self.bit) & 1;
        self.bit += 1;
        if self.bit == 8 {
            self.bit = 0;
            self.at += if byte == 0xFF { 2 } else { 1 };
        }
        Some(value)
    }

    fn number(&mut self, count: u8) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            value = value << 1 | self.take()?;
        }
        Some(value)
    }

    /// A value of `size` bits with its sign (F.2.2.1).
    fn value(&mut self, size: u8) -> Option<i32> {
        let raw = i32::try_from(self.number(size)?).ok()?;
        Some(if size > 0 && raw < 1 << (size - 1) { raw - (1 << size) + 1 } else { raw })
    }

    fn symbol(&mut self, codes: &Codes) -> Option<u8> {
        let (mut code, mut first, mut index) = (0u32, 0u32, 0u32);
        for count in codes.counts {
            code = code << 1 | self.take()?;
            first <<= 1;
            if code >= first && code - first < count {
                return codes.symbols.get(usize::try_from(index + code - first).ok()?).copied();
            }
            first += count;
            index += count;
        }
        None
    }

    /// Skips the rest of a partially read byte.
    fn align(&mut self) {
        if self.bit > 0 {
            self.bit = 0;
            self.at += if self.jpeg[self.at] == 0xFF { 2 } else { 1 };
        }
    }

    fn place(&self) -> u64 {
        u64::try_from(self.at).expect("64 bits") * 8 + u64::from(self.bit)
    }
}

/// The row-major index of each zigzag position, computed along the diagonals.
pub fn natural_order() -> [usize; 64] {
    let mut order = [0; 64];
    let (mut x, mut y) = (0usize, 0usize);
    for place in &mut order {
        *place = y * 8 + x;
        if (x + y) % 2 == 0 {
            match (x, y) {
                (7, _) => y += 1,
                (_, 0) => x += 1,
                _ => (x, y) = (x + 1, y - 1),
            }
        } else {
            match (x, y) {
                (_, 7) => x += 1,
                (0, _) => y += 1,
                _ => (x, y) = (x - 1, y + 1),
            }
        }
    }
    order
}

fn tables(header: &JpegHeader, jpeg: &[u8], plain: &mut Plain) -> Option<[Option<[u16; 64]>; 16]> {
    let order = natural_order();
    let mut quants = [None; 16];
    for segment in &header.segments {
        let mut payload = &jpeg[segment.payload.clone()];
        while let (0xC4, [head, rest @ ..]) = (segment.marker, payload) {
            let (counts, rest) = rest.split_first_chunk::<16>()?;
            let counts = counts.map(u32::from);
            let total = usize::try_from(counts.iter().sum::<u32>()).ok()?;
            let (symbols, rest) = rest.split_at_checked(total)?;
            let codes = Codes { counts, symbols: symbols.to_vec() };
            *plain.tables.get_mut(usize::from(head >> 4))?.get_mut(usize::from(head & 15))? =
                Some(codes);
            payload = rest;
        }
        while let (0xDB, [head, rest @ ..]) = (segment.marker, payload) {
            let wide = head >> 4 != 0;
            let (values, rest) = rest.split_at_checked(if wide { 128 } else { 64 })?;
            let mut table = [0; 64];
            for (index, place) in order.iter().enumerate() {
                table[*place] = if wide {
                    u16::from_be_bytes([values[2 * index], values[2 * index + 1]])
                } else {
                    u16::from(values[index])
                };
            }
            quants[usize::from(head & 15)] = Some(table);
            payload = rest;
        }
    }
    Some(quants)
}

impl Plain {
    /// Decodes the first scan of `jpeg`, which contains all components; `None` for damage.
    pub fn read(header: &JpegHeader, jpeg: &[u8]) -> Option<Self> {
        let mut plain = Self {
            parts: Vec::new(),
            starts: Vec::new(),
            end: 0,
            extra: 0,
            late_restarts: false,
            tables: Default::default(),
            numbers: Vec::new(),
        };
        let quants = tables(header, jpeg, &mut plain)?;
        let length = jpeg.get(header.first_scan + 2..)?.first_chunk::<2>()?;
        let start = header.first_scan + 2 + usize::from(u16::from_be_bytes(*length));
        let selectors = jpeg.get(header.first_scan + 5..start)?;
        let alone = header.components.len() == 1;
        let most = |factor: fn(&jpeg::header::FrameComponent) -> u8| {
            let most = header.components.iter().map(factor).max().unwrap_or(1);
            if alone { 1 } else { u32::from(most) }
        };
        let mcus_across = header.size.width.div_ceil(8 * most(|part| part.h));
        let mcus_down = header.size.height.div_ceil(8 * most(|part| part.v));
        let count = |value: u32| usize::try_from(value).expect("32 bits");
        for (component, selector) in header.components.iter().zip(selectors.chunks(2)) {
            let (h, v) = if alone { (1, 1) } else { (component.h, component.v) };
            let (across, down) = (usize::from(h), usize::from(v));
            let columns = across * count(mcus_across);
            plain.parts.push(Part {
                across,
                down,
                quant: quants[usize::from(component.tq)]?,
                columns,
                blocks: vec![[0; 64]; columns * down * count(mcus_down)],
            });
            plain.numbers.push((usize::from(selector[1] >> 4), usize::from(selector[1] & 15)));
        }
        plain.scan(header, (jpeg, start), (count(mcus_across), count(mcus_down)))?;
        Some(plain)
    }

    fn scan(
        &mut self,
        header: &JpegHeader,
        (jpeg, start): (&[u8], usize),
        (across, down): (usize, usize),
    ) -> Option<()> {
        let mut bits = Bits { jpeg, at: start, bit: 0 };
        let interval = usize::from(header.restart_interval);
        let order = natural_order();
        let mut dc = [0; 4];
        for mcu in 0..across * down {
            if interval > 0 && mcu > 0 && mcu % interval == 0 {
                bits.align();
                let number = u8::try_from((mcu / interval - 1) % 8).ok()?;
                if jpeg.get(bits.at..bits.at + 2)? != [0xFF, 0xD0 + number] {
                    return None;
                }
                bits.at += 2;
                dc = [0; 4];
            }
            self.starts.push((bits.place(), dc));
            let parts = self.parts.iter_mut().zip(&self.numbers).zip(&mut dc);
            for ((part, (dc_number, ac_number)), dc) in parts {
                let dc_codes = self.tables[0].get(*dc_number)?.as_ref()?;
                let ac_codes = self.tables[1].get(*ac_number)?.as_ref()?;
                for block in 0..part.across * part.down {
                    let x = mcu % across * part.across + block % part.across;
                    let y = mcu / across * part.down + block / part.across;
                    let block = &mut part.blocks[y * part.columns + x];
                    read_block(&mut bits, (dc_codes, ac_codes), (dc, &order), block)?;
                }
            }
        }
        self.end = bits.place();
        bits.align();
        let tail = &jpeg[bits.at..];
        let is_marker = |pair: &[u8]| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xD0..=0xD7);
        self.extra = tail.windows(2).position(is_marker)?;
        self.late_restarts = tail[..self.extra]
            .windows(2)
            .any(|pair| pair[0] == 0xFF && matches!(pair[1], 0xD0..=0xD7));
        Some(())
    }
}

fn read_block(
    bits: &mut Bits<'_>,
    (dc_codes, ac_codes): (&Codes, &Codes),
    (dc, order): (&mut i32, &[usize; 64]),
    block: &mut [i32; 64],
) -> Option<()> {
    let size = bits.symbol(dc_codes)?;
    *dc += bits.value(size)?;
    block[0] = *dc;
    let mut at = 1;
    while at < 64 {
        let symbol = bits.symbol(ac_codes)?;
        let (run, size) = (usize::from(symbol >> 4), symbol & 15);
        if size == 0 && run < 15 {
            break;
        }
        at += run;
        let value = bits.value(size)?;
        *block.get_mut(*order.get(at)?)? = value;
        at += 1;
    }
    Some(())
}
