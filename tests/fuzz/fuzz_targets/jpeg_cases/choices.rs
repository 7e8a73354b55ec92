//! Choices from the fuzzer's bytes, and pseudo-random numbers seeded by them.

/// Bytes from the front; zeros when there are no more.
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Reads choices from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether all bytes are used.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// A number of 16 bits.
    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// One of a list that is not empty.
    pub fn one_of<'b, T>(&mut self, list: &'b [T]) -> &'b T {
        &list[usize::from(self.byte()) % list.len()]
    }

    /// A number generator seeded by two bytes.
    pub fn random(&mut self) -> Random {
        Random(u64::from(self.word()).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }
}

/// A pseudo-random generator (Marsaglia's xorshift).
pub struct Random(u64);

impl Random {
    /// The next number of 32 bits.
    pub fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let [.., a, b, c, d] = (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32).to_be_bytes();
        u32::from_be_bytes([a, b, c, d])
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }

    /// A number from `-limit` to `limit`.
    pub fn around(&mut self, limit: i32) -> i32 {
        let range = 2 * limit.unsigned_abs() + 1;
        i32::try_from(self.below(range)).expect("small limits") - limit
    }
}
