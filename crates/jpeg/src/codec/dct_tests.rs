//! The transforms against libjpeg-turbo: the inverse against its decoder, the forward transform
//! against its encoder. Grey baseline files, written and read here, carry the coefficients.
//!
//! Both sides use the slow integer transform, the default of TurboJPEG; the fast one gives different samples, so these
//! tests would detect it.

use crate::dct::{Dct, Divisors};
use turbojpeg::{Compressor, Decompressor, Image, PixelFormat, Subsamp};

type Block = [i16; 64];

/// The row-major index of each coefficient in file order. T.81 figure A.6.
fn zigzag() -> [usize; 64] {
    let mut order: Vec<usize> = (0..64).collect();
    order.sort_by_key(|index| {
        let (row, column) = (index / 8, index % 8);
        (row + column, if (row + column) % 2 == 0 { column } else { row })
    });
    order.try_into().unwrap()
}

/// A deterministic pseudo-random generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 16) % bound
    }

    /// Any of `-limit..=limit`.
    fn around_zero(&mut self, limit: i16) -> i16 {
        let limit = i64::from(limit);
        let value = self.below(u64::try_from(2 * limit + 1).unwrap());
        i16::try_from(i64::try_from(value).unwrap() - limit).unwrap()
    }
}

// ---- A writer of grey baseline files

#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    buffer: u8,
    filled: u32,
}

impl BitWriter {
    fn put(&mut self, value: u16, bits: u32) {
        for bit in (0..bits).rev() {
            self.buffer = self.buffer << 1 | u8::from(value >> bit & 1 == 1);
            self.filled += 1;
            if self.filled == 8 {
                self.bytes.push(self.buffer);
                if self.buffer == 0xFF {
                    self.bytes.push(0);
                }
                self.filled = 0;
            }
        }
    }

    /// T.81 F.1.2: `size` bits of a value, negative ones minus 1.
    fn put_value(&mut self, value: i16) {
        let bits = size(value);
        let value = if value < 0 { value.wrapping_sub(1) } else { value };
        self.put(value.cast_unsigned(), bits);
    }

    /// Fills the last byte with ones.
    fn align(&mut self) {
        while self.filled != 0 {
            self.put(1, 1);
        }
    }
}

fn size(value: i16) -> u32 {
    u16::BITS - value.unsigned_abs().leading_zeros()
}

/// Marker, length, class and number of a Huffman table whose codes all have `bits` bits.
fn huffman_segment(class: u8, bits: usize, symbols: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(19 + symbols.len()).unwrap().to_be_bytes();
    let mut counts = [0; 16];
    counts[bits - 1] = u8::try_from(symbols.len()).unwrap();
    [&[0xFF, 0xC4, high, low, class << 4], &counts[..], symbols].concat()
}

/// A grey file, 8 rows high, of these quantised coefficients (row by row, not `i16::MIN`).
///
/// All Huffman codes of a class have the same length, 5 bits for DC and 8 for AC, with one for every size up to 15
/// bits: more than an encoder writes, so that the decoder's whole range is covered. A restart marker follows each
/// block, so DC values are never differences.
fn write_jpeg(blocks: &[Block], table: &[u16; 64]) -> Vec<u8> {
    let order = zigzag();
    let dc_symbols: Vec<u8> = (0..16).collect();
    let ac_symbols: Vec<u8> =
        (0..=255).filter(|symbol| symbol % 16 != 0 || [0x00, 0xF0].contains(symbol)).collect();
    let width = u16::try_from(8 * blocks.len()).unwrap().to_be_bytes();
    let mut file = vec![0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0];
    file.extend(order.map(|index| u8::try_from(table[index]).unwrap()));
    file.extend([0xFF, 0xC0, 0, 11, 8, 0, 8, width[0], width[1], 1, 1, 0x11, 0]);
    file.extend(huffman_segment(0, 5, &dc_symbols));
    file.extend(huffman_segment(1, 8, &ac_symbols));
    file.extend([0xFF, 0xDD, 0, 4, 0, 1, 0xFF, 0xDA, 0, 8, 1, 1, 0x00, 0, 63, 0]);

    let code = |symbol: u32| {
        let place = ac_symbols.iter().position(|&known| u32::from(known) == symbol);
        u16::try_from(place.unwrap()).unwrap()
    };
    let mut bits = BitWriter::default();
    for (number, block) in blocks.iter().enumerate() {
        if number > 0 {
            bits.align();
            bits.bytes.extend([0xFF, 0xD0 + u8::try_from((number - 1) % 8).unwrap()]);
        }
        bits.put(u16::try_from(size(block[0])).unwrap(), 5);
        bits.put_value(block[0]);
        let mut run = 0;
        for value in order[1..].iter().map(|&index| block[index]) {
            if value == 0 {
                run += 1;
                continue;
            }
            for _ in 0..run / 16 {
                bits.put(code(0xF0), 8);
            }
            bits.put(code(run % 16 * 16 + size(value)), 8);
            bits.put_value(value);
            run = 0;
        }
        if run > 0 {
            bits.put(code(0), 8);
        }
    }
    bits.align();
    file.extend(bits.bytes);
    file.extend([0xFF, 0xD9]);
    file
}

// ---- A reader of grey baseline files

/// The bits of one scan.
struct BitReader<'a> {
    bytes: &'a [u8],
    position: usize,
    buffer: u8,
    left: u32,
}

impl BitReader<'_> {
    fn bit(&mut self) -> u16 {
        if self.left == 0 {
            self.buffer = self.bytes[self.position];
            // Skips the stuffed zero, too.
            self.position += if self.buffer == 0xFF { 2 } else { 1 };
            self.left = 8;
        }
        self.left -= 1;
        u16::from(self.buffer >> self.left & 1)
    }

    /// The symbol of the next code; `codes` holds length, code and symbol.
    fn symbol(&mut self, codes: &[(u32, u16, u8)]) -> u8 {
        let mut code = 0;
        for length in 1..=16 {
            code = code << 1 | self.bit();
            let found = codes.iter().find(|entry| (entry.0, entry.1) == (length, code));
            if let Some(&(_, _, symbol)) = found {
                return symbol;
            }
        }
        panic!("no such code");
    }

    fn value(&mut self, size: u8) -> i16 {
        let mut value = 0i32;
        for _ in 0..size {
            value = value << 1 | i32::from(self.bit());
        }
        let negative = size > 0 && value < 1 << (size - 1);
        i16::try_from(if negative { value - (1 << size) + 1 } else { value }).unwrap()
    }
}

/// The table (row by row) and `count` blocks of a grey file without restart markers.
fn read_jpeg(file: &[u8], count: usize) -> ([u16; 64], Vec<Block>) {
    let order = zigzag();
    let (mut table, mut codes) = ([0; 64], [vec![], vec![]]);
    let mut at = 2;
    loop {
        let (marker, length) = (file[at + 1], u16::from_be_bytes([file[at + 2], file[at + 3]]));
        let payload = &file[at + 4..at + 2 + usize::from(length)];
        at += 2 + usize::from(length);
        match marker {
            0xDB => {
                assert_eq!((payload[0], payload.len()), (0, 65));
                for (&index, &step) in order.iter().zip(&payload[1..]) {
                    table[index] = u16::from(step);
                }
            }
            0xC4 => {
                let mut symbols = payload[17..].iter();
                let mut code = 0;
                for (length, &count) in (1..).zip(&payload[1..17]) {
                    for &symbol in symbols.by_ref().take(usize::from(count)) {
                        codes[usize::from(payload[0] >> 4)].push((length, code, symbol));
                        code += 1;
                    }
                    code <<= 1;
                }
                assert_eq!(symbols.next(), None);
            }
            0xDA => break,
            _ => {}
        }
    }
    let mut bits = BitReader { bytes: &file[at..], position: 0, buffer: 0, left: 0 };
    let mut dc = 0;
    let blocks = (0..count).map(|_| {
        let mut block = [0; 64];
        let size = bits.symbol(&codes[0]);
        dc += bits.value(size);
        block[0] = dc;
        let mut index = 1;
        while index < 64 {
            let symbol = bits.symbol(&codes[1]);
            match symbol {
                0x00 => break,
                0xF0 => index += 16,
                _ => {
                    index += usize::from(symbol >> 4);
                    block[order[index]] = bits.value(symbol & 15);
                    index += 1;
                }
            }
        }
        block
    });
    let blocks = blocks.collect();
    (table, blocks)
}

// ---- The inverse

/// Decodes the coefficients with libjpeg-turbo and with both of our paths, which must agree bit for bit.
fn check_inverse(quantised: &[Block], table: &[u16; 64]) {
    let width = 8 * quantised.len();
    let file = write_jpeg(quantised, table);
    let mut pixels = vec![0; width * 8];
    let image = Image {
        pixels: &mut pixels[..],
        width,
        pitch: width,
        height: 8,
        format: PixelFormat::GRAY,
    };
    Decompressor::new().unwrap().decompress(&file, image).unwrap();

    let dequantised: Vec<Block> = quantised
        .iter()
        .map(|block| {
            std::array::from_fn(|index| {
                i16::try_from(i32::from(block[index]) * i32::from(table[index])).unwrap()
            })
        })
        .collect();
    for dct in [Dct::scalar(), Dct::detect()] {
        let mut found = vec![0; width * 8];
        dct.inverse(&dequantised, &mut found, width);
        if let Some(place) = (0..pixels.len()).find(|&place| found[place] != pixels[place]) {
            let block = place % width / 8;
            panic!(
                "{dct:?}, row {}, column {}: {} and not {}; coefficients {:?}",
                place / width,
                place % 8,
                found[place],
                pixels[place],
                dequantised[block]
            );
        }
    }
}

/// Runs [`check_inverse`] on blocks from `value`, which returns a coefficient within the limit in its third argument,
/// so that the dequantised one fits in 16 bits.
fn check_inverse_of(seed: u64, value: impl Fn(&mut Random, usize, i16) -> i16) {
    let mut random = Random(seed);
    for round in 0..24 {
        let mut table = [1; 64];
        if round % 4 != 0 {
            let top = [255, 40, 4][round % 4 - 1];
            table = table.map(|step: u16| step + u16::try_from(random.below(top)).unwrap());
        }
        let blocks: Vec<Block> = (0..501)
            .map(|_| {
                std::array::from_fn(|index| {
                    let limit = i16::MAX / table[index].cast_signed();
                    value(&mut random, index, limit).clamp(-limit, limit)
                })
            })
            .collect();
        check_inverse(&blocks, &table);
    }
}

#[test]
fn inverse_equals_libjpeg_turbo_on_coefficients_that_decay_as_in_photographs() {
    check_inverse_of(1, |random, index, _| {
        let distance = i16::try_from(index / 8 + index % 8).unwrap();
        random.around_zero(1 + 1000 / (1 + distance * distance))
    });
}

#[test]
fn inverse_equals_libjpeg_turbo_on_sparse_blocks() {
    check_inverse_of(2, |random, _, limit| {
        let value = random.around_zero(limit.min(200));
        if random.below(12) == 0 { value } else { 0 }
    });
}

#[test]
fn inverse_equals_libjpeg_turbo_on_dc_alone_of_any_size() {
    check_inverse_of(
        3,
        |random, index, limit| {
            if index == 0 { random.around_zero(limit) } else { 0 }
        },
    );
}

#[test]
fn inverse_equals_libjpeg_turbo_on_the_first_row_alone_of_any_size() {
    check_inverse_of(
        4,
        |random, index, limit| {
            if index < 8 { random.around_zero(limit) } else { 0 }
        },
    );
}

#[test]
fn inverse_equals_libjpeg_turbo_on_any_coefficients() {
    check_inverse_of(5, |random, _, limit| random.around_zero(limit));
}

#[test]
fn inverse_equals_libjpeg_turbo_on_the_largest_coefficients() {
    check_inverse_of(6, |random, _, limit| if random.below(2) == 0 { limit } else { -limit });
}

#[test]
fn inverse_equals_libjpeg_turbo_on_the_largest_coefficients_with_gaps() {
    check_inverse_of(7, |random, _, limit| match random.below(4) {
        0 => limit,
        1 => -limit,
        _ => 0,
    });
}

#[test]
fn inverse_equals_libjpeg_turbo_on_each_coefficient_alone() {
    for value in [1, -1, 7, 100, -100, 1023, -1024, 8191, 8192, -8193, i16::MAX, -i16::MAX] {
        let alone = |index| {
            let mut block = [0; 64];
            block[index] = value;
            block
        };
        let blocks: Vec<Block> = (0..64).map(alone).collect();
        check_inverse(&blocks, &[1; 64]);
    }
}

// ---- The forward transform

/// Encodes with libjpeg-turbo and with both of our paths, which must give the same coefficients.
fn check_forward(samples: &[u8], width: usize) {
    for quality in [1, 10, 35, 50, 75, 85, 92, 97, 99, 100] {
        let height = samples.len() / width;
        let image =
            Image { pixels: samples, width, pitch: width, height, format: PixelFormat::GRAY };
        let mut compressor = Compressor::new().unwrap();
        compressor.set_quality(quality).unwrap();
        compressor.set_subsamp(Subsamp::Gray).unwrap();
        let file = compressor.compress_to_vec(image).unwrap();
        let (table, expected) = read_jpeg(&file, width / 8 * height / 8);
        let divisors = Divisors::new(&table);
        for dct in [Dct::scalar(), Dct::detect()] {
            let rows = samples.chunks_exact(8 * width).zip(expected.chunks_exact(width / 8));
            for (samples, expected) in rows {
                let mut found = vec![[0; 64]; expected.len()];
                dct.forward(samples, width, &divisors, &mut found);
                assert!(found == expected, "{dct:?}, quality {quality}: {found:?} {expected:?}");
            }
        }
    }
}

#[test]
fn forward_equals_libjpeg_turbo_on_noise() {
    let mut random = Random(8);
    let samples: Vec<u8> = (0..200 * 64).map(|_| random.next().to_be_bytes()[0]).collect();
    check_forward(&samples, 200);
}

#[test]
fn forward_equals_libjpeg_turbo_on_noise_of_black_and_white() {
    let mut random = Random(9);
    let samples: Vec<u8> =
        (0..200 * 64).map(|_| if random.below(2) == 0 { 0 } else { 255 }).collect();
    check_forward(&samples, 200);
}

#[test]
fn forward_equals_libjpeg_turbo_on_slopes_with_grain() {
    let mut random = Random(10);
    let samples: Vec<u8> = (0..240 * 128)
        .map(|place: usize| {
            let slope = place % 240 * 2 / 3 + place / 240 / 2;
            u8::try_from(slope).unwrap() + u8::try_from(random.below(8)).unwrap()
        })
        .collect();
    check_forward(&samples, 240);
}

#[test]
fn forward_equals_libjpeg_turbo_on_the_signs_of_each_pattern() {
    // Black where a pattern is negative and white elsewhere gives its largest possible coefficient.
    let sign = |frequency: usize, place: usize| {
        let angle = f64::from(u32::try_from((2 * place + 1) * frequency).unwrap());
        (angle * std::f64::consts::PI / 16.0).cos() < 0.0
    };
    for inverted in [false, true] {
        let samples: Vec<u8> = (0..64 * 64)
            .map(|place| {
                let (row, column) = (place / 64, place % 64);
                let negative = sign(row / 8, row % 8) != sign(column / 8, column % 8);
                if negative == inverted { 255 } else { 0 }
            })
            .collect();
        check_forward(&samples, 64);
    }
}
