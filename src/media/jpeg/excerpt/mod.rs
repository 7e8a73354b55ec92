//! The part of a JPEG that holds a region, as a small JPEG with the same coefficients.
//!
//! A baseline scan is walked by its Huffman codes alone, down to the last row of the region; the
//! MCUs around the region are written again, with other codes and the same coefficients. Decoding
//! the result gives, inside the region, exactly the pixels of a full decode: a margin of one MCU
//! keeps the smooth upsampling of colour from seeing the cut. Nothing is held but the result.
//!
//! Progressive and multi-scan files go through libjpeg-turbo's lossless crop, which holds all
//! coefficients for a moment; what neither can take is decoded whole by the caller.

use crate::media::jpeg::codec;
use crate::media::jpeg::huffman::{Bits, Codes, END, Table, Writer};
use crate::media::jpeg::segments::{
    APP0, APP14, Component, DHT, DQT, DRI, EOI, Frame, SOI, SOS, count_scans, push_segment,
    segments, starts_frame,
};
use crate::types::{Rect, Size};
use thiserror::Error;

/// Scans that a file may have to be cut by coefficients; more go to the decoder, which refuses.
const SCANS_MAX: usize = 128;

/// Blocks of one MCU that the standard allows.
const MCU_BLOCKS_MAX: usize = 10;

/// Sizes of DC differences that 8-bit files have.
const DC_SIZE_MAX: u8 = 11;

/// Codes per length of the DC table that excerpts use: every size has one.
const DC_COUNTS: [u8; 16] = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];

/// Codes per length of the AC table that excerpts use: 162 codes of 7 and 8 bits.
const AC_COUNTS: [u8; 16] = [0, 0, 0, 0, 0, 0, 93, 69, 0, 0, 0, 0, 0, 0, 0, 0];

/// Why a region cannot be taken out of a stream by its codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    /// Not a single interleaved baseline scan of 8 bits.
    #[error("not a single baseline scan")]
    Kind,
    /// The stream breaks a rule that an undamaged one keeps.
    #[error("damaged scan")]
    Damaged,
    /// The region is empty or leaves the picture.
    #[error("region outside the picture")]
    Outside,
}

/// A small JPEG and its place in the one that it was cut from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The stream: tables, frame, one scan; no metadata.
    pub jpeg: Vec<u8>,
    /// What it shows of the stored picture: `region`, a margin, and what completes MCUs.
    pub shows: Rect,
}

/// Cuts out what is needed to decode `region`, in pixels of the stored picture.
///
/// Cost: the Huffman codes above the region's last row (24 MP: 40–60 ms) for baseline files, the
/// coefficients of the whole file for others. `None` if the stream must be decoded whole.
#[must_use]
pub fn excerpt(jpeg: &[u8], region: Rect) -> Option<Excerpt> {
    match baseline(jpeg, region) {
        Ok(excerpt) => Some(excerpt),
        Err(Unfit::Kind) => coefficients(jpeg, region),
        // The decoder knows better what to do with damage, and says so.
        Err(Unfit::Damaged | Unfit::Outside) => None,
    }
}

fn coefficients(jpeg: &[u8], region: Rect) -> Option<Excerpt> {
    let frame = Frame::find(jpeg)?;
    let shows = surroundings(&frame, region).ok()?;
    if count_scans(jpeg, SCANS_MAX + 1) > SCANS_MAX {
        return None;
    }
    let jpeg = codec::cut(jpeg, shows).ok()?;
    Some(Excerpt { jpeg, shows })
}

/// `region` with a margin, on whole MCUs where the picture has them.
fn surroundings(frame: &Frame, region: Rect) -> Result<Rect, Unfit> {
    let mcu = frame.mcu();
    let span = |start: u32, length: u32, step: u32, edge: u32| {
        let end = start.checked_add(length).filter(|end| length > 0 && *end <= edge);
        let end = end.ok_or(Unfit::Outside)?;
        let first = (start / step).saturating_sub(1) * step;
        let last = edge.min((end.div_ceil(step) + 1) * step);
        Ok((first, last - first))
    };
    let (x, width) = span(region.x, region.width, mcu.width, frame.size.width)?;
    let (y, height) = span(region.y, region.height, mcu.height, frame.size.height)?;
    Ok(Rect { x, y, width, height })
}

/// What the headers say, as far as walking the scan needs it.
struct Scan<'a> {
    frame: Frame,
    /// The headers that go over to the excerpt as they are.
    kept: Vec<(u8, &'a [u8])>,
    /// Of each block of an MCU: the index of its component.
    blocks: Vec<usize>,
    /// Per component: its DC and AC table.
    tables: Vec<(&'a Table, &'a Table)>,
    /// MCUs between restarts, 0 for none.
    interval: u32,
    /// Where the entropy-coded data starts.
    start: usize,
}

/// The Huffman tables of a file by class and number.
type Tables = [[Option<Table>; 4]; 2];

fn read_tables(jpeg: &[u8]) -> Result<Tables, Unfit> {
    let mut tables: Tables = Default::default();
    for segment in segments(jpeg).filter(|segment| segment.marker == DHT) {
        let mut rest = segment.payload;
        while let Some((head, tail)) = rest.split_first() {
            let (counts, tail) = tail.split_first_chunk::<16>().ok_or(Unfit::Damaged)?;
            let total = counts.iter().map(|count| usize::from(*count)).sum();
            let (symbols, tail) = tail.split_at_checked(total).ok_or(Unfit::Damaged)?;
            let class = tables.get_mut(usize::from(head >> 4)).ok_or(Unfit::Damaged)?;
            let place = class.get_mut(usize::from(head & 15)).ok_or(Unfit::Damaged)?;
            *place = Some(Table::new(counts, symbols)?);
            rest = tail;
        }
    }
    Ok(tables)
}

impl<'a> Scan<'a> {
    fn read(jpeg: &'a [u8], tables: &'a Tables) -> Result<Scan<'a>, Unfit> {
        let (mut frame, mut kept, mut interval) = (None, Vec::new(), 0);
        for segment in segments(jpeg) {
            match segment.marker {
                SOS => {
                    let frame: Frame = frame.ok_or(Unfit::Damaged)?;
                    let tables = Scan::tables(&frame, segment.payload, tables)?;
                    let blocks = Scan::blocks(&frame);
                    if blocks.len() > MCU_BLOCKS_MAX {
                        return Err(Unfit::Kind);
                    }
                    return Ok(Scan { frame, kept, blocks, tables, interval, start: segment.end });
                }
                DQT | APP0 | APP14 => kept.push((segment.marker, segment.payload)),
                DRI => {
                    let payload = segment.payload.first_chunk::<2>().ok_or(Unfit::Damaged)?;
                    interval = u32::from(u16::from_be_bytes(*payload));
                }
                marker if starts_frame(marker) => {
                    let found = Frame::parse(&segment).ok_or(Unfit::Kind)?;
                    if frame.is_some() || !matches!(marker, 0xC0 | 0xC1) || found.precision != 8 {
                        return Err(Unfit::Kind);
                    }
                    frame = Some(found);
                }
                _ => {}
            }
        }
        Err(Unfit::Damaged)
    }

    /// The tables that a scan header assigns; it must name all components in their order.
    fn tables(
        frame: &Frame,
        payload: &[u8],
        tables: &'a Tables,
    ) -> Result<Vec<(&'a Table, &'a Table)>, Unfit> {
        let (count, rest) = payload.split_first().ok_or(Unfit::Damaged)?;
        let (parts, end) = rest.split_at_checked(2 * usize::from(*count)).ok_or(Unfit::Damaged)?;
        if parts.len() != 2 * frame.components.len() || end != [0, 63, 0] {
            return Err(Unfit::Kind);
        }
        let assigned = parts.chunks_exact(2).zip(&frame.components).map(|(part, component)| {
            if part[0] != component.id {
                return Err(Unfit::Kind);
            }
            let find = |class: usize, number: u8| tables[class].get(usize::from(number))?.as_ref();
            find(0, part[1] >> 4).zip(find(1, part[1] & 15)).ok_or(Unfit::Damaged)
        });
        assigned.collect()
    }

    fn blocks(frame: &Frame) -> Vec<usize> {
        if frame.components.len() == 1 {
            return vec![0];
        }
        let of = |(index, part): (usize, &Component)| {
            std::iter::repeat_n(index, usize::from(part.across) * usize::from(part.down))
        };
        frame.components.iter().enumerate().flat_map(of).collect()
    }

    /// The headers of an excerpt of `size`, up to its entropy-coded data.
    fn headers(&self, size: Size) -> Result<Vec<u8>, Unfit> {
        let mut out = vec![0xFF, SOI];
        for (marker, payload) in &self.kept {
            push_segment(&mut out, *marker, payload);
        }
        let components = &self.frame.components;
        let (Ok(height), Ok(width), Ok(count)) = (
            u16::try_from(size.height),
            u16::try_from(size.width),
            u8::try_from(components.len()),
        ) else {
            return Err(Unfit::Damaged);
        };
        let mut frame = vec![8];
        frame.extend_from_slice(&height.to_be_bytes());
        frame.extend_from_slice(&width.to_be_bytes());
        frame.push(count);
        let mut scan = vec![count];
        for part in components {
            let factors = if components.len() == 1 { 0x11 } else { part.across << 4 | part.down };
            frame.extend_from_slice(&[part.id, factors, part.table]);
            scan.extend_from_slice(&[part.id, 0]);
        }
        scan.extend_from_slice(&[0, 63, 0]);
        push_segment(&mut out, self.frame.marker, &frame);
        for (class, counts, symbols) in
            [(0x00, DC_COUNTS, dc_symbols()), (0x10, AC_COUNTS, ac_symbols())]
        {
            let mut payload = vec![class];
            payload.extend_from_slice(&counts);
            payload.extend_from_slice(&symbols);
            push_segment(&mut out, DHT, &payload);
        }
        push_segment(&mut out, SOS, &scan);
        Ok(out)
    }
}

fn dc_symbols() -> Vec<u8> {
    (0..=DC_SIZE_MAX).collect()
}

/// All symbols that a baseline block can hold, in any order: every run with every size, the end
/// of a block, and a run of sixteen zeros.
fn ac_symbols() -> Vec<u8> {
    let runs = (0u8..16).flat_map(|run| (1u8..=10).map(move |size| run << 4 | size));
    [0x00, 0xF0].into_iter().chain(runs).collect()
}

/// Passes one block; gives the difference of its DC from the one before.
#[inline]
fn pass_block(bits: &mut Bits<'_>, tables: (&Table, &Table)) -> Result<i32, Unfit> {
    let difference = read_difference(bits, tables.0)?;
    let mut at = 1u8;
    while at < 64 {
        bits.refill();
        let step = bits.peek(tables.1)?;
        bits.skip(u32::from(step.total));
        at += step.advance;
    }
    if (65..END).contains(&at) { Err(Unfit::Damaged) } else { Ok(difference) }
}

#[inline]
fn read_difference(bits: &mut Bits<'_>, table: &Table) -> Result<i32, Unfit> {
    bits.refill();
    let step = bits.peek(table)?;
    bits.skip(u32::from(step.code));
    if step.symbol > DC_SIZE_MAX {
        return Err(Unfit::Damaged);
    }
    let size = u32::from(step.symbol);
    let value = i32::try_from(bits.take(size)).map_err(|_| Unfit::Damaged)?;
    let negative = size > 0 && value < 1 << (size - 1);
    Ok(if negative { value - (1 << size) + 1 } else { value })
}

/// The codes of excerpts.
struct Coder {
    writer: Writer,
    dc: Codes,
    ac: Codes,
    /// Per component: the DC written last.
    last: [i32; 4],
}

impl Coder {
    /// Writes one block with the AC symbols that come next in `bits`; `dc` is its whole DC.
    fn copy_block(
        &mut self,
        bits: &mut Bits<'_>,
        table: &Table,
        component: usize,
        dc: i32,
    ) -> Result<(), Unfit> {
        let difference = dc - self.last[component];
        self.last[component] = dc;
        let size = 32 - difference.unsigned_abs().leading_zeros();
        let symbol = u8::try_from(size).map_err(|_| Unfit::Damaged)?;
        if symbol > DC_SIZE_MAX {
            return Err(Unfit::Damaged);
        }
        let value = if difference < 0 { difference - 1 + (1 << size) } else { difference };
        self.writer.symbol(&self.dc, symbol, u32::try_from(value).map_err(|_| Unfit::Damaged)?)?;
        let mut at = 1u8;
        while at < 64 {
            bits.refill();
            let step = bits.peek(table)?;
            bits.skip(u32::from(step.code));
            let value = bits.take(u32::from(step.total - step.code));
            let symbol = if step.advance == END { 0 } else { step.symbol };
            self.writer.symbol(&self.ac, symbol, value)?;
            at += step.advance;
        }
        if (65..END).contains(&at) { Err(Unfit::Damaged) } else { Ok(()) }
    }
}

/// The region in MCUs: half-open spans across and down.
struct Grid {
    across: u32,
    left: u32,
    right: u32,
    top: u32,
    bottom: u32,
}

fn baseline(jpeg: &[u8], region: Rect) -> Result<Excerpt, Unfit> {
    let tables = read_tables(jpeg)?;
    let scan = Scan::read(jpeg, &tables)?;
    let shows = surroundings(&scan.frame, region)?;
    let mcu = scan.frame.mcu();
    let grid = Grid {
        across: scan.frame.size.width.div_ceil(mcu.width),
        left: shows.x / mcu.width,
        right: (shows.x + shows.width).div_ceil(mcu.width),
        top: shows.y / mcu.height,
        bottom: (shows.y + shows.height).div_ceil(mcu.height),
    };
    let headers = scan.headers(Size { width: shows.width, height: shows.height })?;
    let mut jpeg = walk(jpeg, &scan, &grid, headers)?;
    jpeg.extend_from_slice(&[0xFF, EOI]);
    Ok(Excerpt { jpeg, shows })
}

/// Walks the scan down to the last row of `grid` and writes its MCUs behind `headers`.
fn walk(jpeg: &[u8], scan: &Scan<'_>, grid: &Grid, headers: Vec<u8>) -> Result<Vec<u8>, Unfit> {
    let mut bits = Bits::new(jpeg, scan.start);
    let mut coder = Coder {
        writer: Writer::new(headers),
        dc: Codes::new(&DC_COUNTS, &dc_symbols()),
        ac: Codes::new(&AC_COUNTS, &ac_symbols()),
        last: [0; 4],
    };
    let (mut dc, mut until_restart, mut restarts) = ([0i32; 4], scan.interval, 0u8);
    for row in 0..grid.bottom {
        for column in 0..grid.across {
            if scan.interval > 0 {
                if until_restart == 0 {
                    bits.restart(restarts)?;
                    (dc, until_restart, restarts) = ([0; 4], scan.interval, (restarts + 1) & 7);
                }
                until_restart -= 1;
            }
            let wanted = row >= grid.top && (grid.left..grid.right).contains(&column);
            for &component in &scan.blocks {
                let tables = scan.tables[component];
                if wanted {
                    dc[component] += read_difference(&mut bits, tables.0)?;
                    coder.copy_block(&mut bits, tables.1, component, dc[component])?;
                } else {
                    dc[component] += pass_block(&mut bits, tables)?;
                }
            }
        }
        bits.check()?;
        // Undamaged coefficients have 16 bits at most; beyond that decoders disagree.
        if dc.iter().any(|value| i16::try_from(*value).is_err()) {
            return Err(Unfit::Damaged);
        }
    }
    Ok(coder.writer.finish())
}

#[cfg(test)]
mod tests;
