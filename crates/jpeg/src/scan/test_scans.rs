//! Helpers for tests that need scans.

use super::bits::UnstuffedData;
use super::crop::{ScanRecoder, headers};
use super::strip::{Block, CoefficientStrip};
use super::{COMPONENTS_MAX, to_usize};
use crate::IndexedJpeg;
use crate::codec::ColourSpace;
use crate::samples::LIMITS;

impl IndexedJpeg {
    /// Decodes all coefficients, dequantised: for each component, its blocks, MCU row by MCU row.
    pub(crate) fn coefficients(&self) -> Vec<Vec<Block>> {
        let (scan, index) = (&self.scan, &self.index);
        let mut out = vec![Vec::new(); scan.components.len()];
        let mut data = UnstuffedData::default();
        for row in 0..scan.down {
            let span = row * scan.across..(row + 1) * scan.across;
            index.fill(&mut data, &self.bytes(), span.clone()).unwrap();
            let mut cursor = index.seek(scan, &data, span.start).unwrap();
            let mut strip = CoefficientStrip::new(scan, to_usize(scan.across));
            for column in 0..to_usize(scan.across) {
                cursor.begin().unwrap();
                cursor.decode_mcu(&mut strip, column).unwrap();
            }
            for (out, blocks) in out.iter_mut().zip(strip.all()) {
                out.extend_from_slice(blocks);
            }
        }
        out
    }

    /// Returns a file with the same coefficients and a restart every `interval` MCUs.
    pub(crate) fn with_restarts(&self, interval: u16) -> Self {
        let scan = &self.scan;
        let mut data = UnstuffedData::default();
        self.index.fill(&mut data, &self.bytes(), 0..scan.mcus()).unwrap();
        let mut cursor = self.index.seek(scan, &data, 0).unwrap();
        let mut recoder = ScanRecoder::new(scan).unwrap();
        for mcu in 0..scan.mcus() {
            cursor.begin().unwrap();
            if mcu > 0 && mcu.is_multiple_of(u32::from(interval)) {
                let [number, ..] = (mcu / u32::from(interval) - 1).to_le_bytes();
                recoder.writer.restart(number & 7);
                recoder.last_dc = [0; COMPONENTS_MAX];
            }
            recoder.recode_mcu(&data, &mut cursor).unwrap();
        }
        let mut jpeg = vec![0xFF, 0xD8];
        jpeg.extend_from_slice(&self.colour);
        jpeg.extend(headers(scan, scan.size, interval).unwrap());
        recoder.writer.finish_into(&mut jpeg);
        jpeg.extend_from_slice(&[0xFF, 0xD9]);
        Self::open(jpeg, &LIMITS).unwrap()
    }

    /// Whether the picture is grey or YCbCr.
    pub(crate) fn has_planes(&self) -> bool {
        matches!(self.scan.planes, Some((ColourSpace::Grey | ColourSpace::YCbCr, _)))
    }
}
