//! Builds baseline files from a few choices: any sampling, restarts, Huffman tables of any shape.
//!
//! The coefficients are written directly, without encoding pixels. So the files have features that no usual encoder
//! writes: long runs, long codes, tables without a spare code.

use super::choices::{Choices, Random};

/// Sampling factors of the components, across and down.
type Factors = &'static [(u8, u8)];

/// The segment that defines the meaning of the components.
#[derive(Clone, Copy)]
enum Marker {
    None,
    Jfif,
    Adobe(u8),
}

#[rustfmt::skip]
const KINDS: [(Factors, Marker); 32] = [
    (&[(1, 1)], Marker::Jfif),
    (&[(2, 2)], Marker::None),
    (&[(4, 1)], Marker::Jfif),
    (&[(1, 1), (1, 1), (1, 1)], Marker::Jfif),
    (&[(2, 1), (1, 1), (1, 1)], Marker::Jfif),
    (&[(2, 2), (1, 1), (1, 1)], Marker::Jfif),
    (&[(1, 2), (1, 1), (1, 1)], Marker::Jfif),
    (&[(4, 1), (1, 1), (1, 1)], Marker::Jfif),
    (&[(1, 4), (1, 1), (1, 1)], Marker::Jfif),
    (&[(2, 1), (2, 1), (2, 1)], Marker::Jfif),
    (&[(1, 2), (1, 2), (1, 2)], Marker::None),
    (&[(2, 2), (1, 2), (1, 2)], Marker::Jfif),
    (&[(2, 2), (2, 1), (2, 1)], Marker::Jfif),
    (&[(4, 2), (1, 1), (1, 1)], Marker::Jfif),
    (&[(2, 4), (1, 1), (1, 1)], Marker::Jfif),
    (&[(2, 2), (2, 1), (1, 1)], Marker::Jfif),
    (&[(1, 1), (2, 2), (1, 1)], Marker::Jfif),
    (&[(3, 1), (1, 1), (1, 1)], Marker::Jfif),
    (&[(3, 2), (1, 1), (1, 1)], Marker::Jfif),
    (&[(3, 1), (2, 1), (1, 1)], Marker::Jfif),
    (&[(4, 1), (2, 1), (2, 1)], Marker::Jfif),
    (&[(1, 1), (1, 1), (1, 1)], Marker::Adobe(0)),
    (&[(2, 2), (1, 1), (1, 1)], Marker::Adobe(0)),
    (&[(2, 2), (1, 1), (1, 1)], Marker::Adobe(1)),
    (&[(1, 1), (1, 1), (1, 1)], Marker::Adobe(2)),
    (&[(1, 1), (1, 1), (1, 1), (1, 1)], Marker::None),
    (&[(1, 1), (1, 1), (1, 1), (1, 1)], Marker::Adobe(0)),
    (&[(1, 1), (1, 1), (1, 1), (1, 1)], Marker::Adobe(2)),
    (&[(2, 2), (1, 1), (1, 1), (2, 2)], Marker::Adobe(2)),
    (&[(2, 1), (1, 1), (1, 1), (2, 1)], Marker::Adobe(0)),
    (&[(1, 1), (1, 1)], Marker::None),
    (&[(2, 2), (1, 1), (1, 1)], Marker::None),
];

/// A symbol of a table or a restart marker.
#[derive(Clone)]
enum Event {
    Code { class: usize, number: usize, symbol: u8, bits: u32, size: u8 },
    Restart(u8),
}

/// The choices that determine the coefficients.
struct Wildness {
    /// Steps of DC at most.
    dc: i32,
    /// DC at most.
    dc_most: i32,
    /// Bits of AC values at most.
    ac_size: u8,
    /// The typical number of non-zero coefficients among the 64 of a block.
    density: u32,
}

impl Wildness {
    /// Limits coefficients so that their products with steps up to `most` fit in 16 bits.
    fn tame(&mut self, most: u32) {
        let most = 32_767 / i32::try_from(most).expect("16 bits");
        self.dc_most = self.dc_most.min(most);
        self.dc = self.dc.min(most);
        while self.ac_size > 1 && 1 << self.ac_size > most {
            self.ac_size -= 1;
        }
    }
}

/// The largest step of the quantisation tables.
fn steps(quant: u8) -> u32 {
    [1, 2, 8, 30, 99, 255, 1000, 65_535][usize::from(quant % 8)]
}

/// The headers of a file except its tables.
struct Frame {
    factors: Factors,
    width: u16,
    height: u16,
    interval: u16,
    /// Numbers of the DC and AC table of each component.
    numbers: Vec<(usize, usize)>,
    ids: &'static [u8],
    extended: bool,
}

impl Frame {
    fn choose(factors: Factors, choices: &mut Choices<'_>) -> Self {
        let shape = choices.byte();
        let (width, height) = match shape % 4 {
            0 => (1 + u16::from(choices.byte() % 40), 1 + u16::from(choices.byte() % 40)),
            1 => (1 + u16::from(choices.byte() % 128), 1 + u16::from(choices.byte() % 32)),
            2 => (1 + u16::from(choices.byte() % 32), 1 + u16::from(choices.byte() % 128)),
            _ => (1 + choices.word() % 200, 1 + u16::from(choices.byte() % 64)),
        };
        let interval = match shape >> 2 & 3 {
            0 | 1 => 0,
            2 => u16::from(choices.byte() % 12),
            _ => u16::from(choices.byte()),
        };
        let mixed = choices.byte();
        let numbers: Vec<(usize, usize)> = (0..factors.len())
            .map(|part| match mixed % 4 {
                0 => (usize::from(part > 0), usize::from(part > 0)),
                1 => (0, 0),
                2 => (part % 4, (part + 1) % 4),
                _ => (part % 2, 3),
            })
            .collect();
        let extended = mixed & 64 != 0 || numbers.iter().any(|(dc, ac)| dc.max(ac) > &1);
        let ids: &[u8] = if mixed & 128 == 0 { &[1, 2, 3, 4] } else { b"RGBK" };
        Self { factors, width, height, interval, numbers, ids, extended }
    }

    fn count(&self) -> u8 {
        u8::try_from(self.factors.len()).expect("at most four")
    }

    /// The frame's segment; `wide` for quantisation tables of 16 bits.
    fn write(&self, out: &mut Vec<u8>, wide: bool) {
        let mut frame = vec![8];
        frame.extend(self.height.to_be_bytes());
        frame.extend(self.width.to_be_bytes());
        frame.push(self.count());
        for ((h, v), id) in self.factors.iter().zip(self.ids) {
            frame.extend([*id, h << 4 | v, u8::from(*id != self.ids[0])]);
        }
        segment(out, 0xC0 | u8::from(self.extended || wide), &frame);
    }

    /// The restart interval's segment and the scan's.
    fn write_scan(&self, out: &mut Vec<u8>) {
        if self.interval > 0 {
            segment(out, 0xDD, &self.interval.to_be_bytes());
        }
        let mut selectors = vec![self.count()];
        for ((dc, ac), id) in self.numbers.iter().zip(self.ids) {
            selectors.extend([*id, u8::try_from(dc << 4 | ac).expect("below 4")]);
        }
        selectors.extend([0, 63, 0]);
        segment(out, 0xDA, &selectors);
    }
}

/// Makes a file.
pub fn picture(choices: &mut Choices<'_>) -> Vec<u8> {
    let (factors, marker) = *choices.one_of(&KINDS);
    let frame = Frame::choose(factors, choices);
    let mut wildness = Wildness {
        dc: *choices.one_of(&[0, 1, 6, 40, 300, 2047]),
        dc_most: 32_000,
        ac_size: 1 + choices.byte() % 10,
        density: *choices.one_of(&[0, 1, 3, 8, 20, 64]),
    };
    let quant = choices.byte();
    if quant & 0x30 != 0 {
        wildness.tame(steps(quant));
    }
    let (tables, tail) = (choices.byte(), choices.byte());
    let mut random = choices.random();
    let mut events = events(&mut random, &frame, &wildness);
    let mut out = vec![0xFF, 0xD8];
    let colour: &[u8] = match marker {
        Marker::None => &[],
        Marker::Jfif => b"\xFF\xE0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0",
        Marker::Adobe(0) => b"\xFF\xEE\x00\x0EAdobe\0\x64\0\0\0\0\0",
        Marker::Adobe(1) => b"\xFF\xEE\x00\x0EAdobe\0\x64\0\0\0\0\x01",
        Marker::Adobe(_) => b"\xFF\xEE\x00\x0EAdobe\0\x64\0\0\0\0\x02",
    };
    out.extend_from_slice(colour);
    let wide = quant_segments(&mut out, &mut random, quant);
    frame.write(&mut out, wide);
    let codes = huffman_segments(&mut out, &mut random, &events, tables);
    frame.write_scan(&mut out);
    spoil(&mut events, tail >> 5, &mut random);
    write(&mut out, &events, &codes, tail & 1 == 0);
    finish(&mut out, tail);
    out
}

fn segment(out: &mut Vec<u8>, marker: u8, payload: &[u8]) {
    out.extend([0xFF, marker]);
    out.extend(u16::try_from(payload.len() + 2).expect("short").to_be_bytes());
    out.extend_from_slice(payload);
}

/// Wrong restart markers for some values of `kind`.
fn spoil(events: &mut Vec<Event>, kind: u8, random: &mut Random) {
    let is_restart = |event: &Event| matches!(event, Event::Restart(_));
    let places: Vec<usize> =
        events.iter().enumerate().filter(|(_, event)| is_restart(event)).map(|at| at.0).collect();
    if places.is_empty() {
        return;
    }
    let pick = random.below(u32::try_from(places.len()).expect("32 bits"));
    let place = places[usize::try_from(pick).expect("32 bits")];
    match kind {
        1 => events[place] = Event::Restart(u8::try_from(random.below(8)).expect("below 8")),
        2 => drop(events.remove(place)),
        3 => events.insert(place, Event::Restart(u8::try_from(random.below(8)).expect("below 8"))),
        4 => events.swap(place, place - 1),
        5 => events.insert(0, Event::Restart(u8::try_from(pick % 8).expect("below 8"))),
        6 => drop(events.splice(place..place, vec![events[place - 1].clone(); 3])),
        _ => {}
    }
}

/// The bytes that may follow the last MCU.
fn finish(out: &mut Vec<u8>, tail: u8) {
    match tail >> 1 & 15 {
        1 => out.extend([0x12, 0x34, 0x56]),
        2 => out.extend([0xFF, 0xD0]),
        3 => out.push(0xFF),
        4 => segment(out, 0xFE, b"late"),
        5 => out.push(0),
        6 => out.extend([0xFF, 0x00, 0xFF, 0x00]),
        7 => segment(out, 0xC4, &[0x99]),
        8 => segment(out, 0xDC, &[0, 9]),
        9 => out.extend([0xFF, 0x01]),
        10 => segment(out, 0xF0, b"late"),
        _ => {}
    }
    out.extend([0xFF, 0xD9]);
}

/// Two quantisation tables; whether one has 16 bits.
fn quant_segments(out: &mut Vec<u8>, random: &mut Random, quant: u8) -> bool {
    let most = steps(quant);
    let mut wide = false;
    for number in [0, 1] {
        let values: Vec<u32> = (0..64).map(|_| 1 + random.below(most)).collect();
        let bytes: Result<Vec<u8>, _> = values.iter().map(|value| u8::try_from(*value)).collect();
        let (head, bytes) = match bytes {
            Ok(bytes) if quant & 64 == 0 => (number, bytes),
            _ => {
                wide = true;
                let pair = |value: &u32| u16::try_from(*value).expect("16 bits").to_be_bytes();
                (0x10 | number, values.iter().flat_map(pair).collect())
            }
        };
        segment(out, 0xDB, &[&[head], bytes.as_slice()].concat());
    }
    wide
}

fn events(random: &mut Random, frame: &Frame, wildness: &Wildness) -> Vec<Event> {
    let Frame { factors, width, height, interval, numbers, .. } = frame;
    let interval = u32::from(*interval);
    let alone = factors.len() == 1;
    let most = |factor: fn(&(u8, u8)) -> u8| {
        let most = factors.iter().map(factor).max().unwrap_or(1);
        if alone { 1 } else { u32::from(most) }
    };
    let across = u32::from(*width).div_ceil(8 * most(|part| part.0));
    let down = u32::from(*height).div_ceil(8 * most(|part| part.1));
    let mut events = Vec::new();
    let (mut last, mut dc) = ([0; 4], [0; 4]);
    for mcu in 0..across * down {
        if interval > 0 && mcu > 0 && mcu.is_multiple_of(interval) {
            let number = (mcu / interval - 1) % 8;
            events.push(Event::Restart(u8::try_from(number).expect("below 8")));
            last = [0; 4];
            dc = dc.map(|dc: i32| dc.clamp(-2047, 2047));
        }
        for (part, ((h, v), numbers)) in factors.iter().zip(numbers).enumerate() {
            let blocks = if alone { 1 } else { h * v };
            for _ in 0..blocks {
                dc[part] = (dc[part] + random.around(wildness.dc))
                    .clamp(-wildness.dc_most, wildness.dc_most);
                dc[part] = dc[part].clamp(last[part] - 2047, last[part] + 2047);
                block(random, (dc[part] - last[part], *numbers), wildness, &mut events);
                last[part] = dc[part];
            }
        }
    }
    events
}

fn size_of(value: i32) -> u8 {
    u8::try_from(32 - value.unsigned_abs().leading_zeros()).expect("at most 32")
}

fn bits_of(value: i32, size: u8) -> u32 {
    let bits = if value < 0 { value - 1 } else { value };
    bits.cast_unsigned() & ((1 << size) - 1)
}

fn block(
    random: &mut Random,
    (difference, (dc, ac)): (i32, (usize, usize)),
    wildness: &Wildness,
    events: &mut Vec<Event>,
) {
    let size = size_of(difference);
    let bits = bits_of(difference, size);
    events.push(Event::Code { class: 0, number: dc, symbol: size, bits, size });
    let mut push = |symbol: u8, value: i32| {
        let size = symbol & 15;
        let bits = bits_of(value, size);
        events.push(Event::Code { class: 1, number: ac, symbol, bits, size });
    };
    let mut run = 0u8;
    for _ in 1..64 {
        if random.below(64) >= wildness.density {
            run += 1;
            continue;
        }
        while run > 15 {
            push(0xF0, 0);
            run -= 16;
        }
        let size = 1 + random.below(u32::from(wildness.ac_size));
        let least = 1i32 << (size - 1);
        let value = least + random.around(least).abs() % least;
        let value = if random.below(2) == 0 { value } else { -value };
        push(run << 4 | u8::try_from(size).expect("at most 10"), value);
        run = 0;
    }
    // Trailing zeros may be coded explicitly, though no encoder does it.
    if run >= 16 && random.below(16) == 0 {
        while run >= 16 {
            push(0xF0, 0);
            run -= 16;
        }
    }
    if run > 0 {
        push(0, 0);
    }
}

type Codes = [[[(u32, u32); 256]; 4]; 2];

/// Writes tables for the events and returns their codes.
fn huffman_segments(
    out: &mut Vec<u8>,
    random: &mut Random,
    events: &[Event],
    tables: u8,
) -> Box<Codes> {
    let mut used = [[[false; 256]; 4]; 2];
    for event in events {
        if let Event::Code { class, number, symbol, .. } = event {
            used[*class][*number][usize::from(*symbol)] = true;
        }
    }
    let mut codes: Box<Codes> = Box::new([[[(0, 0); 256]; 4]; 2]);
    for (class, used) in used.iter().enumerate() {
        for (number, used) in used.iter().enumerate() {
            if !used.contains(&true) {
                continue;
            }
            let complete = tables & 1 == 0;
            let mut symbols: Vec<u8> = (0..=255u8)
                .filter(|symbol| {
                    used[usize::from(*symbol)] || complete && is_usual(class, *symbol)
                })
                .collect();
            for index in (1..symbols.len()).rev() {
                let other = random.below(u32::try_from(index + 1).expect("few"));
                symbols.swap(index, usize::try_from(other).expect("few"));
            }
            let counts = counts(random, symbols.len(), u32::from(tables >> 1 & 7));
            let head = u8::try_from(class << 4 | number).expect("small");
            segment(out, 0xC4, &[&[head], counts.as_slice(), &symbols].concat());
            let (mut code, mut next) = (0, symbols.iter());
            for (length, count) in (1..).zip(counts) {
                for symbol in next.by_ref().take(usize::from(count)) {
                    codes[class][number][usize::from(*symbol)] = (code, length);
                    code += 1;
                }
                code <<= 1;
            }
        }
    }
    codes
}

/// Whether an 8-bit picture can need the symbol.
fn is_usual(class: usize, symbol: u8) -> bool {
    match (class, symbol & 15) {
        (0, _) => symbol <= 11,
        (_, 0) => symbol == 0 || symbol == 0xF0,
        (_, size) => size <= 10,
    }
}

/// The number of codes of each length, for a prefix code that leaves the code of all ones unused.
///
/// The higher `slope`, the more short codes there are, and the more long ones.
fn counts(random: &mut Random, symbols: usize, slope: u32) -> [u8; 16] {
    let mut counts = [0; 16];
    let mut left = u32::try_from(symbols).expect("at most 256");
    let mut open = 1u32;
    for (length, count) in (1u32..).zip(&mut counts) {
        open *= 2;
        // The remaining symbols and the code of all ones must fit after the codes of this length.
        let deeper = 1u32 << (16 - length);
        let most = (0..=left.min(open)).rev().find(|taken| (open - taken) * deeper > left - taken);
        let most = most.expect("there was room for all on the level above");
        let taken = match slope {
            _ if length == 16 => left,
            0 => {
                if open > left {
                    left
                } else {
                    0
                }
            }
            7 => most.min(1),
            _ => random.below(most + 1).min(open * slope / 8),
        };
        let taken = taken.min(most);
        *count = u8::try_from(taken).expect("at most 256 symbols on 16 levels");
        (left, open) = (left - taken, open - taken);
    }
    counts
}

/// Writes the bits, stuffed; open bytes are completed with ones or zeros.
fn write(out: &mut Vec<u8>, events: &[Event], codes: &Codes, ones: bool) {
    let (mut buffer, mut held) = (0u64, 0u32);
    let mut put = |out: &mut Vec<u8>, bits: u32, count: u32| {
        buffer = buffer << count | u64::from(bits);
        held += count;
        while held >= 8 {
            held -= 8;
            let [.., byte] = (buffer >> held).to_be_bytes();
            out.push(byte);
            if byte == 0xFF {
                out.push(0);
            }
        }
        held
    };
    let mut held = 0;
    let fill = |count: u32| if ones { (1 << count) - 1 } else { 0 };
    for event in events {
        match event {
            Event::Code { class, number, symbol, bits, size } => {
                let (code, length) = codes[*class][*number][usize::from(*symbol)];
                put(out, code, length);
                held = put(out, *bits, u32::from(*size));
            }
            Event::Restart(number) => {
                let open = (8 - held) % 8;
                held = put(out, fill(open), open);
                out.extend([0xFF, 0xD0 + number]);
            }
        }
    }
    let open = (8 - held) % 8;
    put(out, fill(open), open);
}
