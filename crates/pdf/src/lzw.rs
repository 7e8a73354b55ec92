//! Decodes the LZW filter of PDF: codes of 9 to 12 bits, most significant bit first (ISO 32000-1 §7.4.4).
//!
//! A code below 256 is a byte. Decoding a code adds an entry to a table: the bytes of the code before it, followed by
//! its own first byte. Later codes refer to these entries.

/// The code that empties the table.
const CLEAR: usize = 256;
/// The code at the end of the data.
const END: usize = 257;
/// The code of the table's first entry.
const FIRST_ENTRY: usize = 258;
/// The number of codes of 12 bits, which bounds the table.
const CODES: usize = 4096;

/// Decodes LZW to at most `max` bytes. Damaged data gives the bytes before the damage.
///
/// `early_change` is the parameter `EarlyChange` of the filter: if true, codes get longer one code before they have to.
pub(super) fn decode(input: &[u8], early_change: bool, max: usize) -> Vec<u8> {
    let early = usize::from(early_change);
    let mut bytes: Vec<u8> = Vec::new();
    // The bytes of each entry are a range of the output: start and length.
    let mut entries: Vec<(usize, usize)> = Vec::with_capacity(CODES);
    let mut previous: Option<(usize, usize)> = None;
    let mut reader = LzwCodes { input, position: 0 };
    while bytes.len() < max {
        let bits = width(FIRST_ENTRY + entries.len() + early);
        let Some(code) = reader.next(bits) else { break };
        if code == END {
            break;
        }
        if code == CLEAR {
            entries.clear();
            previous = None;
            continue;
        }
        let start = bytes.len();
        // Added before the code is looked up, because the code may be this new entry. The bytes of the code follow the
        // previous ones in the output, so the range only grows by the first of them.
        if let Some((from, length)) = previous
            // A full table does not change until the encoder clears it.
            && entries.len() < CODES - FIRST_ENTRY
        {
            entries.push((from, length + 1));
        }
        if code < CLEAR {
            bytes.extend(u8::try_from(code));
        } else {
            // A code without an entry means damage; the data before it is kept.
            let Some(&(from, length)) = entries.get(code - FIRST_ENTRY) else { break };
            // Byte by byte, because the newest entry may end with a byte that this loop writes.
            for at in from..from + length {
                let Some(&byte) = bytes.get(at) else { return bytes };
                bytes.push(byte);
            }
        }
        previous = Some((start, bytes.len() - start));
    }
    bytes.truncate(max);
    bytes
}

/// Returns the number of bits of a code if the table's next entry gets the code `next_entry`.
fn width(next_entry: usize) -> usize {
    match next_entry {
        0..=511 => 9,
        512..=1023 => 10,
        1024..=2047 => 11,
        _ => 12,
    }
}

/// Reads codes from compressed data.
struct LzwCodes<'a> {
    input: &'a [u8],
    /// The position in bits.
    position: usize,
}

impl LzwCodes<'_> {
    fn next(&mut self, bits: usize) -> Option<usize> {
        let mut code = 0;
        for bit in self.position..self.position + bits {
            let byte = *self.input.get(bit / 8)?;
            code = code << 1 | usize::from(byte >> (7 - bit % 8) & 1);
        }
        self.position += bits;
        Some(code)
    }
}
