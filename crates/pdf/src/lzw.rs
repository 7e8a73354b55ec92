//! Decodes the LZW filter of PDF: codes of 9 to 12 bits, most significant bit first (ISO 32000-1 §7.4.4).

const CLEAR: usize = 256;
const END: usize = 257;
const CODES: usize = 4096;

/// Decodes LZW to at most `max` bytes. With `early_change`, the default, the code width grows one code early.
pub(super) fn decode(input: &[u8], early_change: bool, max: usize) -> Vec<u8> {
    let early = usize::from(early_change);
    let mut bytes: Vec<u8> = Vec::new();
    // The text of each code is a range of the output: start and length.
    let mut entries: Vec<(usize, usize)> = Vec::with_capacity(CODES);
    let mut previous: Option<(usize, usize)> = None;
    let mut reader = LzwCodes { input, position: 0 };
    while bytes.len() < max {
        let Some(code) = reader.next(width(258 + entries.len() + early)) else { break };
        match code {
            CLEAR => {
                entries.clear();
                previous = None;
                continue;
            }
            END => break,
            _ => {}
        }
        let start = bytes.len();
        // Added before the code is looked up, because the code may be this new entry. The last byte of the entry
        // is the first byte of the next text, so the range grows by one.
        if let Some((from, length)) = previous
            // A full table does not change until the encoder clears it.
            && entries.len() < CODES - 258
        {
            entries.push((from, length + 1));
        }
        if code < CLEAR {
            bytes.extend(u8::try_from(code));
        } else {
            // A code without an entry means damage; the data before it is kept.
            let Some(&(from, length)) = entries.get(code - 258) else { break };
            // The newest text may overlap the byte that is being written.
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

/// Returns the number of bits of a code if `next` is the next free code.
fn width(next: usize) -> usize {
    match next {
        0..=511 => 9,
        512..=1023 => 10,
        1024..=2047 => 11,
        _ => 12,
    }
}

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
