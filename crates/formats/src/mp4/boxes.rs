//! Parses boxes and their fields, without trusting any length.

use crate::mp4::box_kind::BoxKind;
use crate::mp4::error::VideoError;

/// The header of a box, not yet validated against the parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoxHeader {
    pub(super) kind: BoxKind,
    /// Bytes before the contents: 8, or 16 with a 64-bit size.
    pub(super) header_bytes: u64,
    /// Bytes of the whole box; may be invalid.
    pub(super) size_bytes: u64,
}

impl BoxHeader {
    /// The maximum length of a header in bytes.
    pub(super) const BYTES_MAX: u64 = 16;
    /// The minimum length of a header in bytes.
    pub(super) const BYTES_MIN: u64 = 8;

    /// Parses a header from the start of `bytes`. `available` is the number of bytes left in the parent, which is
    /// the size of a box with size 0.
    ///
    /// ISO/IEC 14496-12 §4.2.
    pub(super) fn parse(bytes: &[u8], available: u64) -> Option<Self> {
        let (size, rest) = bytes.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first_chunk::<4>()?;
        // Size 0 reaches to the end of the parent; size 1 announces 64 bits after the kind.
        let (header_bytes, size_bytes) = match u32::from_be_bytes(*size) {
            0 => (8, available),
            1 => (16, u64::from_be_bytes(*rest.first_chunk::<8>()?)),
            size => (8, u64::from(size)),
        };
        Some(Self { kind: BoxKind(*kind), header_bytes, size_bytes })
    }
}

/// Iterates over the child boxes in the contents of a box: kind and contents. Fewer than eight trailing bytes are
/// ignored, since QuickTime terminates some lists with four zeros. Ends after the first error.
pub(super) struct BoxIterator<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for BoxIterator<'a> {
    type Item = Result<(BoxKind, &'a [u8]), VideoError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Left empty on an error, which ends the iteration.
        let bytes = std::mem::take(&mut self.0);
        let available = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if available < BoxHeader::BYTES_MIN {
            return None;
        }
        let Some(header) = BoxHeader::parse(bytes, available) else {
            // Only a 64-bit size can be cut off here, so the kind is present.
            let kind = bytes.get(4..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
            return Some(Err(VideoError::Damaged { kind: BoxKind(kind) }));
        };
        let end = usize::try_from(header.size_bytes).ok();
        let start = usize::try_from(header.header_bytes).ok();
        let found = end.and_then(|end| bytes.split_at_checked(end));
        // A size below the size of the header is an error too, or the iteration would never advance.
        let Some((contents, rest)) = found.and_then(|(current, rest)| {
            start.and_then(|start| Some((current.get(start..)?, rest)))
        }) else {
            return Some(Err(VideoError::Damaged { kind: header.kind }));
        };
        self.0 = rest;
        Some(Ok((header.kind, contents)))
    }
}

/// Finds the first box of `kind` in the contents of a box.
pub(super) fn find<'a>(
    contents: &'a [u8],
    kind: &[u8; 4],
) -> Result<Option<&'a [u8]>, VideoError> {
    for found in BoxIterator(contents) {
        let (found, contents) = found?;
        if found.0 == *kind {
            return Ok(Some(contents));
        }
    }
    Ok(None)
}

/// Like [`find`], but fails if the box is missing. `parent` is the kind of the enclosing box.
pub(super) fn load<'a>(
    contents: &'a [u8],
    kind: &[u8; 4],
    parent: &[u8; 4],
) -> Result<&'a [u8], VideoError> {
    let missing = VideoError::Missing { kind: BoxKind(*kind), parent: BoxKind(*parent) };
    find(contents, kind)?.ok_or(missing)
}

/// Reads the fields of one box in order. Each read fails with [`VideoError::Damaged`] at the end of the box.
pub(super) struct BoxFields<'a> {
    bytes: &'a [u8],
    kind: BoxKind,
}

impl<'a> BoxFields<'a> {
    pub(super) fn new(kind: &[u8; 4], bytes: &'a [u8]) -> Self {
        Self { bytes, kind: BoxKind(*kind) }
    }

    /// Reads the version and the flags of a full box.
    pub(super) fn version_and_flags(&mut self) -> Result<(u8, u32), VideoError> {
        let word = self.u32()?;
        Ok((word.to_be_bytes()[0], word & 0x00ff_ffff))
    }

    pub(super) fn u16(&mut self) -> Result<u16, VideoError> {
        self.chunk().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, VideoError> {
        self.chunk().map(u32::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, VideoError> {
        self.chunk().map(i32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, VideoError> {
        self.chunk().map(u64::from_be_bytes)
    }

    /// Reads a time or duration: 64 bits from version 1 on, else 32.
    pub(super) fn u32_or_u64(&mut self, version: u8) -> Result<u64, VideoError> {
        if version == 0 { self.u32().map(u64::from) } else { self.u64() }
    }

    /// Like [`u32_or_u64`](Self::u32_or_u64), where 0 and all bits set mean "unknown".
    pub(super) fn duration(&mut self, version: u8) -> Result<Option<u64>, VideoError> {
        let found = self.u32_or_u64(version)?;
        let unknown = if version == 0 { u64::from(u32::MAX) } else { u64::MAX };
        // Writers of fragmented files leave 0, since the duration is not known at the start.
        Ok((found != 0 && found != unknown).then_some(found))
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<(), VideoError> {
        self.bytes = self.bytes.get(count..).ok_or(VideoError::Damaged { kind: self.kind })?;
        Ok(())
    }

    /// Reads the next `count` entries of `entry_bytes` each, which must not be 0. Fails before any allocation if
    /// the box does not contain that many.
    pub(super) fn entries(
        &mut self,
        count: u32,
        entry_bytes: usize,
    ) -> Result<impl Iterator<Item = BoxFields<'a>> + use<'a>, VideoError> {
        let kind = self.kind;
        let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(entry_bytes));
        let found = length.and_then(|length| self.bytes.split_at_checked(length));
        let (entries, rest) = found.ok_or(VideoError::Damaged { kind })?;
        self.bytes = rest;
        Ok(entries.chunks_exact(entry_bytes).map(move |bytes| BoxFields { bytes, kind }))
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], VideoError> {
        let found = self.bytes.split_first_chunk::<N>();
        let (chunk, rest) = found.ok_or(VideoError::Damaged { kind: self.kind })?;
        self.bytes = rest;
        Ok(*chunk)
    }
}
