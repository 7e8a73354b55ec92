//! Decodes a picture at a reduced size on several threads.

use std::sync::{Mutex, PoisonError};

use geometry::Size;
use jpeg::codec::{self, CodecError, DecodeOutput, DecodeScale, Pixels};
use jpeg::scan::index::ScanIndex;
use jpeg::scan::{ByteRanges, Scan, ScanError, bands};

/// Runs `work(0)`, `work(1)` … `work(count - 1)`, in any order and on any number of threads.
pub type ParallelMap<'a> = &'a (dyn Fn(usize, &(dyn Fn(usize) + Sync)) + Sync);

/// Why decoding in bands failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BandsError {
    /// Bands of this picture would not be exact, or it is damaged.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// libjpeg-turbo refused a band.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// The result of decoding one band.
type Outcome = Result<DecodeOutput<Pixels>, BandsError>;

/// Decodes the whole picture at a `scale` below the full size, in bands that run in parallel.
///
/// The pixels are identical to those of [`codec::decode`], regardless of the number of threads.
/// `parallel_map` runs the work; `bytes` holds the whole file, `colour` its complete JFIF and Adobe
/// segments.
///
/// # Errors
///
/// [`ScanError::Sampling`] at the full size, or when bands of this picture cannot be decoded
/// independently; [`ScanError::Stopped`] when the caller cancelled the work.
pub fn decode_bands(
    scan: &Scan,
    index: &ScanIndex,
    colour: &[u8],
    bytes: &ByteRanges<'_>,
    scale: DecodeScale,
    parallel_map: ParallelMap<'_>,
) -> Result<DecodeOutput<Pixels>, BandsError> {
    // At the full size libjpeg-turbo interpolates chroma between rows, also across the edges of
    // bands.
    if !bands::are_exact(scan) || scale == DecodeScale::FULL {
        return Err(ScanError::Sampling.into());
    }
    let rows = bands::split(scan);
    let slots: Vec<Mutex<Option<Outcome>>> = rows.iter().map(|_| Mutex::new(None)).collect();
    parallel_map(rows.len(), &|number| {
        let band = bands::band(scan, index, bytes, &rows[number], colour);
        let decoded =
            band.map_err(BandsError::from).and_then(|band| Ok(codec::decode(&band, scale)?));
        // A panic cannot leave the value of a slot half-written, so a poisoned lock is still sound.
        *slots[number].lock().unwrap_or_else(PoisonError::into_inner) = Some(decoded);
    });
    let size = scale.scaled_size(scan.size);
    let mut joined = Pixels { size, channels: 0, data: Vec::new() };
    let mut warning = None;
    for slot in slots {
        let band = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        // An empty slot is a band that the map did not run; a picture with a gap must not pass.
        let DecodeOutput { value, warning: band_warning } = band.ok_or(ScanError::Bytes)??;
        let Size { width, .. } = value.size;
        // Bands are joined row by row, so their widths must agree.
        if width != size.width {
            return Err(ScanError::Bytes.into());
        }
        joined.channels = value.channels;
        joined.data.extend_from_slice(&value.data);
        warning = warning.or(band_warning);
    }
    Ok(DecodeOutput { value: joined, warning })
}
