//! Converts the modification time of an archive's entries.

use jiff::civil::DateTime;

/// A date and time in the form of zip archives: no time zone, a resolution of two seconds, 1980 to 2107.
///
/// APPNOTE §4.4.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DosTime {
    /// Years since 1980, month, day.
    pub(super) date: u16,
    /// Hour, minute, seconds divided by two.
    pub(super) time: u16,
}

impl DosTime {
    /// The earliest time: midnight on 1 January 1980.
    pub const FIRST: Self = Self { date: 1 << 5 | 1, time: 0 };
    /// The latest time: 23:59:58 on 31 December 2107.
    pub const LAST: Self = Self { date: 127 << 9 | 12 << 5 | 31, time: 23 << 11 | 59 << 5 | 29 };

    /// Converts the wall-clock time `moment`, in the time zone that readers shall see. Seconds are rounded down to
    /// an even number. Times before [`FIRST`](Self::FIRST) or after [`LAST`](Self::LAST) are clamped.
    pub fn from_civil(moment: DateTime) -> Self {
        let years = i32::from(moment.year()) - 1980;
        if years < 0 {
            return Self::FIRST;
        }
        if years > 127 {
            return Self::LAST;
        }
        let month = i32::from(moment.month());
        let day = i32::from(moment.day());
        let hour = i32::from(moment.hour());
        let minute = i32::from(moment.minute());
        let pairs = i32::from(moment.second()) / 2;
        Self {
            date: bits(years, 9) | bits(month, 5) | bits(day, 0),
            time: bits(hour, 11) | bits(minute, 5) | bits(pairs, 0),
        }
    }
}

/// Returns a field at its place in the 16 bits.
fn bits(field: i32, shift: u32) -> u16 {
    // All fields of a civil time are positive and fit their bits; the years are checked first.
    u16::try_from(field << shift).unwrap_or(0)
}
