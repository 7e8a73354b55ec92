//! Reads and writes the date and time of a photograph in the notations of the three standards.
//!
//! XMP has ISO 8601 (`2017-02-11T10:15:00+01:00`), IIM a date `20170211` and a time `101500+0100`, EXIF a local
//! time `2017:02:11 10:15:00` and, since 2016, a separate offset. The time or the offset may be missing in each of
//! them. The date must be complete and valid; a year alone is not accepted.

use std::fmt;

/// Maximum number of digits of a fractional second that are kept.
const FRACTION_DIGITS_MAX: usize = 9;

/// A date with an optional time and an optional UTC offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartialDateTime {
    year: u16,
    month: u8,
    day: u8,
    time: Option<TimeOfDay>,
    offset: Option<UtcOffset>,
}

/// A time of day; `fraction` holds the digits after the decimal point of the second.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TimeOfDay {
    hour: u8,
    minute: u8,
    second: u8,
    fraction: String,
}

/// The offset of local time from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UtcOffset {
    /// UTC, written as `Z`.
    Utc,
    /// Minutes ahead of UTC, negative to the west.
    Minutes(i16),
}

impl PartialDateTime {
    /// Parses ISO 8601 and the notation of EXIF: `-` or `:` in the date, `T` or a space before the time, optional
    /// seconds and offset.
    pub(super) fn parse(text: &str) -> Option<PartialDateTime> {
        let mut input = DateInput(text.trim());
        let year = input.number(4)?;
        input.one_of("-:")?;
        let month = input.two_digits()?;
        input.one_of("-:")?;
        let day = input.two_digits()?;
        let mut stamp = PartialDateTime::date(year, month, day)?;
        if input.one_of("Tt ").is_some() {
            let hour = input.two_digits()?;
            input.one_of(":")?;
            let minute = input.two_digits()?;
            let second = if input.one_of(":").is_some() { input.two_digits()? } else { 0 };
            let fraction = if input.one_of(".,").is_some() { input.digits() } else { "" };
            stamp.time = Some(TimeOfDay::new(hour, minute, second, fraction)?);
            stamp.offset = input.offset();
        }
        // Text after the time, such as a remark, means that the text is not a date.
        input.0.is_empty().then_some(stamp)
    }

    /// Parses an IIM date `CCYYMMDD` and time `HHMMSS±HHMM`; ignores an invalid time.
    pub(super) fn parse_iim(date: &str, time: &str) -> Option<PartialDateTime> {
        let mut input = DateInput(date.trim());
        let year = input.number(4)?;
        let month = input.two_digits()?;
        let day = input.two_digits()?;
        let mut stamp = PartialDateTime::date(year, month, day)?;
        let mut input = DateInput(time.trim());
        if let Some(time) = input.iim_time() {
            stamp.time = Some(time);
            stamp.offset = input.offset();
        }
        Some(stamp)
    }

    fn date(year: u16, month: u8, day: u8) -> Option<PartialDateTime> {
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 => 28 + u8::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        // Zeros denote an unknown date.
        let valid = year > 0 && (1..=days).contains(&day);
        valid.then_some(PartialDateTime { year, month, day, time: None, offset: None })
    }

    /// Adds an offset `±HH:MM` or `Z` if there is a time without an offset.
    pub(super) fn with_offset(mut self, offset: &str) -> PartialDateTime {
        if self.time.is_some() && self.offset.is_none() {
            self.offset = DateInput(offset.trim()).offset();
        }
        self
    }

    /// Completes the value from `other` if both agree and `other` is more precise.
    ///
    /// A date is completed with a time on the same date, and a local time with the offset of the same time.
    pub(super) fn refined_by(self, other: &PartialDateTime) -> PartialDateTime {
        let same_date = (self.year, self.month, self.day) == (other.year, other.month, other.day);
        match (&self.time, &other.time) {
            (None, Some(_)) if same_date => other.clone(),
            (Some(a), Some(b)) if same_date && self.offset.is_none() && a.is_same_second(b) => {
                PartialDateTime { offset: other.offset, ..self }
            }
            _ => self,
        }
    }

    /// Prints the date for IIM 2:55.
    pub(super) fn iim_date(&self) -> String {
        format!("{:04}{:02}{:02}", self.year, self.month, self.day)
    }

    /// Prints the time for IIM 2:60, which requires an offset; `None` without a time or an offset.
    pub(super) fn iim_time(&self) -> Option<String> {
        let time = self.time.as_ref()?;
        let offset = self.offset?.print().replace(':', "");
        Some(format!("{:02}{:02}{:02}{offset}", time.hour, time.minute, time.second))
    }

    /// Prints date and time for EXIF's DateTimeOriginal; `None` without a time.
    pub(super) fn exif_time(&self) -> Option<String> {
        let TimeOfDay { hour, minute, second, .. } = self.time.as_ref()?;
        let PartialDateTime { year, month, day, .. } = self;
        Some(format!("{year:04}:{month:02}:{day:02} {hour:02}:{minute:02}:{second:02}"))
    }

    /// Returns the digits of the fractional second for EXIF's SubSecTimeOriginal.
    pub(super) fn exif_fraction(&self) -> Option<&str> {
        let fraction = self.time.as_ref()?.fraction.as_str();
        (!fraction.is_empty()).then_some(fraction)
    }

    /// Prints the offset for EXIF's OffsetTimeOriginal.
    pub(super) fn exif_offset(&self) -> Option<String> {
        self.offset.map(UtcOffset::print)
    }
}

impl fmt::Display for PartialDateTime {
    /// Prints ISO 8601; a missing time is printed as midnight, a missing offset is omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}T", self.year, self.month, self.day)?;
        let midnight = TimeOfDay { hour: 0, minute: 0, second: 0, fraction: String::new() };
        let TimeOfDay { hour, minute, second, fraction } = self.time.as_ref().unwrap_or(&midnight);
        write!(f, "{hour:02}:{minute:02}:{second:02}")?;
        if !fraction.is_empty() {
            write!(f, ".{fraction}")?;
        }
        match self.offset {
            None => Ok(()),
            Some(UtcOffset::Utc) => f.write_str("Z"),
            Some(offset @ UtcOffset::Minutes(_)) => f.write_str(&offset.print()),
        }
    }
}

impl TimeOfDay {
    fn new(hour: u8, minute: u8, second: u8, fraction: &str) -> Option<TimeOfDay> {
        // All bytes are ASCII digits, so every index is a character boundary.
        let fraction = fraction.get(..FRACTION_DIGITS_MAX).unwrap_or(fraction).to_owned();
        let valid = hour < 24 && minute < 60 && second < 60;
        valid.then_some(TimeOfDay { hour, minute, second, fraction })
    }

    fn is_same_second(&self, other: &TimeOfDay) -> bool {
        // IIM has no fraction of a second, so it is not compared.
        (self.hour, self.minute, self.second) == (other.hour, other.minute, other.second)
    }
}

impl UtcOffset {
    /// Prints the offset as `±HH:MM`.
    fn print(self) -> String {
        let minutes = match self {
            UtcOffset::Utc => 0,
            UtcOffset::Minutes(minutes) => minutes,
        };
        let sign = if minutes < 0 { '-' } else { '+' };
        let ahead = minutes.unsigned_abs();
        format!("{sign}{:02}:{:02}", ahead / 60, ahead % 60)
    }
}

/// The unparsed rest of a date and time.
struct DateInput<'a>(&'a str);

impl<'a> DateInput<'a> {
    /// Consumes the next character if it is one of `characters`.
    fn one_of(&mut self, characters: &str) -> Option<char> {
        let next = self.0.chars().next().filter(|&c| characters.contains(c))?;
        self.0 = &self.0[next.len_utf8()..];
        Some(next)
    }

    /// Consumes all digits at the start.
    fn digits(&mut self) -> &'a str {
        let end = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        digits
    }

    /// Consumes a number with exactly `digits` digits.
    fn number(&mut self, digits: usize) -> Option<u16> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.0 = rest;
        number.parse().ok()
    }

    fn two_digits(&mut self) -> Option<u8> {
        u8::try_from(self.number(2)?).ok()
    }

    fn iim_time(&mut self) -> Option<TimeOfDay> {
        let hour = self.two_digits()?;
        let minute = self.two_digits()?;
        let second = self.two_digits()?;
        TimeOfDay::new(hour, minute, second, "")
    }

    /// Consumes `Z`, `±HH`, `±HHMM` or `±HH:MM`; consumes nothing if the input has a different form.
    fn offset(&mut self) -> Option<UtcOffset> {
        let before = self.0;
        if self.one_of("Zz").is_some() {
            return Some(UtcOffset::Utc);
        }
        let offset = self.signed_offset();
        if offset.is_none() {
            // The caller rejects or ignores the unconsumed text.
            self.0 = before;
        }
        offset
    }

    fn signed_offset(&mut self) -> Option<UtcOffset> {
        let sign = if self.one_of("+-")? == '-' { -1 } else { 1 };
        let hours = self.two_digits()?;
        self.one_of(":");
        let minutes = if self.0.is_empty() { 0 } else { self.two_digits()? };
        let valid = hours < 24 && minutes < 60;
        valid.then(|| UtcOffset::Minutes(sign * (i16::from(hours) * 60 + i16::from(minutes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(
            PartialDateTime::parse(text).map(|stamp| stamp.to_string()).as_deref(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn ok_spellings_of_iso_and_exif() {
        check("2017-02-11T10:15:00+01:00", Some("2017-02-11T10:15:00+01:00"));
        check("2017-02-11T10:15:00.250Z", Some("2017-02-11T10:15:00.250Z"));
        check("2017-02-11T10:15-0330", Some("2017-02-11T10:15:00-03:30"));
        check("2017:02:11 10:15:59", Some("2017-02-11T10:15:59"));
        check(" 2020-02-29 ", Some("2020-02-29T00:00:00"));
        check("2017-02-11T10:15:00+01", Some("2017-02-11T10:15:00+01:00"));
    }

    #[test]
    fn err_texts_that_are_not_dates() {
        for text in ["", "2017", "2017-02", "0000:00:00 00:00:00", "2017-02-29", "2017-13-01"] {
            check(text, None);
        }
        for text in
            ["2017-02-11T25:00", "2017-02-11T10", "2017-02-11T10:15:00+24:00", "2017-02-1ö"]
        {
            check(text, None);
        }
        check("2017-02-11T10:15:00 om morgonen", None);
    }

    #[test]
    fn iim_reads_what_it_prints() {
        let stamp = PartialDateTime::parse_iim("20170211", "101500-0330").expect("a stamp");
        assert_eq!(stamp.to_string(), "2017-02-11T10:15:00-03:30");
        assert_eq!(stamp.iim_date(), "20170211");
        assert_eq!(stamp.iim_time().as_deref(), Some("101500-0330"));
        let date = PartialDateTime::parse_iim("20170211", "").expect("a date");
        assert_eq!((date.to_string().as_str(), date.iim_time()), ("2017-02-11T00:00:00", None));
        assert_eq!(PartialDateTime::parse_iim("00000000", "000000+0000"), None);
    }

    #[test]
    fn exif_prints_time_and_offset_apart() {
        let stamp = PartialDateTime::parse("2017-02-11T10:15:00Z").expect("a stamp");
        assert_eq!(stamp.exif_time().as_deref(), Some("2017:02:11 10:15:00"));
        assert_eq!(stamp.exif_offset().as_deref(), Some("+00:00"));
    }

    #[test]
    fn a_time_is_completed_only_by_one_that_agrees() {
        let parse = |text| PartialDateTime::parse(text).expect("a stamp");
        let refined = |a, b| parse(a).refined_by(&parse(b)).to_string();
        let full = "2017-02-11T10:15:00+01:00";
        assert_eq!(refined("2017-02-11", full), full);
        assert_eq!(refined("2017-02-11T10:15:00", full), full);
        assert_eq!(refined("2017-02-12", full), "2017-02-12T00:00:00");
        assert_eq!(refined("2017-02-11T09:15:00Z", full), "2017-02-11T09:15:00Z");
    }
}
