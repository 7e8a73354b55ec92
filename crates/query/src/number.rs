//! The numeric fields of items, and ranges of numbers.

use std::fmt::{self, Display, Formatter};

use strum::{EnumIter, EnumString, IntoStaticStr};

/// A numeric property of documents, or a side of the picture. Values are compared as numbers, not as words. Search
/// indexes have a column for each variant, in this order, so after a change `ANALYSIS` in the library `search-index`
/// has to be raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[derive(EnumIter, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum NumberField {
    Urgency,
    Week,
    WebPrio,
    NewsValue,
    CharCount,
    WordCount,
    /// A document can have several values.
    #[strum(serialize = "subject.relevance")]
    SubjectRelevance,
    /// A document can have several values.
    #[strum(serialize = "subject.confidence")]
    SubjectConfidence,
    #[strum(serialize = "signals.multipagecount")]
    MultiPageCount,
    /// The width in pixels after the EXIF orientation is applied, read from the picture's file.
    Width,
    /// The height in pixels after the EXIF orientation is applied, read from the picture's file.
    Height,
}

model::impl_as_str!(NumberField);

/// A finite number, stored as an integer that sorts like it: the bits of an IEEE 754 double, with all bits but the
/// sign flipped for negative numbers. Neighbouring doubles have neighbouring integers, except just below zero: the
/// negative double nearest zero has the integer -2, and zero has 0. The integer -1 would be negative zero, which
/// [`FiniteNumber::new`] converts to zero. So [`FiniteNumber::above`] and [`FiniteNumber::below`] go to the neighbour
/// of the double, not of the integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FiniteNumber(i64);

impl FiniteNumber {
    /// Converts `value`; `None` if it is not finite. Both zeros convert to the same number.
    pub fn new(value: f64) -> Option<Self> {
        // Adding zero turns -0 into 0.
        let bits = (value + 0.0).to_bits().cast_signed();
        value.is_finite().then_some(Self(flip_if_negative(bits)))
    }

    /// Parses digits with an optional leading `-` and an optional fraction; a decimal point has digits on both sides.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (integer, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        // `f64::from_str` would also accept exponents, `inf` and `NaN`.
        let is_decimal = is_digits(integer) && is_digits(fraction);
        is_decimal.then(|| text.parse().ok()).flatten().and_then(Self::new)
    }

    /// Returns the integer with the same order as the numbers.
    pub fn key(self) -> i64 {
        self.0
    }

    /// Returns the next larger number, to make an exclusive bound inclusive; `None` above the largest.
    pub(super) fn above(self) -> Option<Self> {
        Self::new(self.value().next_up())
    }

    /// Returns the next smaller number, to make an exclusive bound inclusive; `None` below the smallest.
    pub(super) fn below(self) -> Option<Self> {
        Self::new(self.value().next_down())
    }

    fn value(self) -> f64 {
        f64::from_bits(flip_if_negative(self.0).cast_unsigned())
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Converts the bits of a double to an integer that sorts like the double, and back.
fn flip_if_negative(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// Prints the shortest text that parses back to exactly the same number.
impl Display for FiniteNumber {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// A range of numbers in one number field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumericRange {
    /// The number field to compare.
    pub field: NumberField,
    /// The smallest number, inclusive; `None` for an open start.
    pub from: Option<FiniteNumber>,
    /// The largest number, inclusive; `None` for an open end.
    pub until: Option<FiniteNumber>,
}

impl NumericRange {
    /// Returns whether a number is in the range.
    pub fn contains(&self, number: FiniteNumber) -> bool {
        self.from.is_none_or(|from| from <= number)
            && self.until.is_none_or(|until| number <= until)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ok_numbers_print_to_what_parses_the_same() {
        for text in ["0", "4", "-1", "0.5", "-2.25", "120000", "3.0000000000000004"] {
            assert_eq!(FiniteNumber::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(FiniteNumber::parse("4.0"), FiniteNumber::parse("4"));
        assert_eq!(FiniteNumber::parse("-0"), FiniteNumber::parse("0"));
        assert_eq!(FiniteNumber::parse("007"), FiniteNumber::parse("7"));
    }

    #[test]
    fn err_other_texts_are_no_numbers() {
        let huge = "9".repeat(400);
        for text in
            ["", "-", ".", "1.", ".5", "+1", "1e3", "1,5", "inf", "NaN", "--1", "1-", &huge]
        {
            assert_eq!(FiniteNumber::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn numbers_order_as_doubles_do(one in any::<f64>(), other in any::<f64>()) {
            let (Some(a), Some(b)) = (FiniteNumber::new(one), FiniteNumber::new(other)) else { return Ok(()) };
            prop_assert_eq!(a.cmp(&b), one.partial_cmp(&other).unwrap());
            prop_assert!(a.below().is_none_or(|below| below < a));
            prop_assert!(a.above().is_none_or(|above| a < above));
            prop_assert_eq!(FiniteNumber::parse(&a.to_string()), Some(a));
        }
    }
}
