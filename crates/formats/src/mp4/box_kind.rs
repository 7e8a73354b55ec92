//! Defines the four-character codes of boxes and codecs, and prints them in errors.

use std::fmt;

/// The four-character code of a box, or of the codec of a sample entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxKind(pub [u8; 4]);

impl BoxKind {
    pub(super) const MOOF: Self = Self(*b"moof");
    pub(super) const MOOV: Self = Self(*b"moov");
}

/// Prints the four characters, or their bytes in hexadecimal if one of them is not printable ASCII.
impl fmt::Display for BoxKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A code of only spaces would print as nothing.
        match std::str::from_utf8(&self.0).map(|text| text.trim_end_matches(' ')) {
            Ok(text)
                if !text.is_empty() && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) =>
            {
                f.write_str(text)
            }
            Ok(_) | Err(_) => write!(f, "0x{:08x}", u32::from_be_bytes(self.0)),
        }
    }
}
