//! Ranges of dates and numbers in the text of a query: parses `[a TO b]` and `{a TO b}`, and builds the query of any
//! range.
//!
//! `[` and `]` include the bound beside them, `{` and `}` exclude it, and a query may mix them. `*` is an open bound.
//! The parser in `parse.rs` also describes comparisons such as `>=4`, and single values, as ranges.

use jiff::tz::TimeZone;

use super::error::{QueryError, excerpt};
use super::field::{DateField, OrderedField};
use super::number::{FiniteNumber, NumberField, NumericRange};
use super::scan::QueryScanner;
use super::time_interval::TimeInterval;
use super::tree::{DateRange, Query};

/// One bound of a range in the text of a query.
#[derive(Clone, Debug)]
pub(super) struct RangeBound {
    /// The bound as typed, such as `2026-03` or `4`.
    pub(super) text: String,
    /// The position of its first character in the query, from 1.
    pub(super) position: usize,
    /// True if the range includes the bound itself.
    pub(super) inclusive: bool,
}

impl RangeBound {
    /// Parses the bound as a date or time. Dates, and times without an offset, are in `zone`.
    fn interval(&self, zone: &TimeZone) -> Result<TimeInterval, QueryError> {
        let interval = TimeInterval::parse(&self.text, zone);
        interval.ok_or_else(|| not_a_date(&self.text, self.position))
    }

    /// Parses the bound as a number.
    fn number(&self) -> Result<FiniteNumber, QueryError> {
        let number = FiniteNumber::parse(&self.text);
        number.ok_or_else(|| not_a_number(&self.text, self.position))
    }
}

/// A range in the text of a query, whose bounds are not checked yet; a missing bound is open.
#[derive(Clone, Debug)]
pub(super) struct RangeLiteral {
    pub(super) from: Option<RangeBound>,
    pub(super) until: Option<RangeBound>,
    /// The position of its first character in the query, from 1.
    pub(super) start: usize,
}

impl RangeLiteral {
    /// Parses a range in brackets. The next character is `[` or `{`; `kind` names the values in error messages.
    pub(super) fn parse_bracketed(
        scanner: &mut QueryScanner,
        kind: &str,
    ) -> Result<Self, QueryError> {
        let start = scanner.position();
        let from_inclusive = scanner.next() == Some('[');
        let from = parse_bound(scanner, kind, from_inclusive)?;
        scanner.skip_space();
        let position = scanner.position();
        // `scanner.bound()` consumes the text even if it is not `TO`, so its position is taken before.
        if scanner.bound() != "TO" {
            return Err(QueryError { what: "expected TO".to_owned(), position });
        }
        // Provisionally inclusive: the bracket after the bound decides, and is parsed below.
        let until = parse_bound(scanner, kind, true)?;
        scanner.skip_space();
        let inclusive = match scanner.peek() {
            Some(']') => true,
            Some('}') => false,
            _ => return Err(scanner.error("expected ] or }")),
        };
        scanner.next();
        let until = until.map(|bound| RangeBound { inclusive, ..bound });
        Ok(Self { from, until, start })
    }

    /// Creates the range of a single value: one number, or all of a year, month, day, second or millisecond.
    pub(super) fn from_value(text: &str, position: usize) -> Self {
        let bound = Some(RangeBound { text: text.to_owned(), position, inclusive: true });
        Self { from: bound.clone(), until: bound, start: position }
    }

    /// Builds the query for values of `field` in the range. Dates, and times without an offset, are in `zone`.
    ///
    /// Fails if a bound is not a value of the field, or if the range contains nothing.
    pub(super) fn query(&self, field: OrderedField, zone: &TimeZone) -> Result<Query, QueryError> {
        let (query, is_empty) = match field {
            OrderedField::Date(field) => {
                let dates = self.dates(field, zone)?;
                let bounds = dates.from.zip(dates.until);
                // `DateRange::until` is exclusive, so equal bounds are an empty range.
                (Query::Dates(dates), bounds.is_some_and(|(from, until)| until <= from))
            }
            OrderedField::Number(field) => {
                let numbers = self.numbers(field)?;
                let bounds = numbers.from.zip(numbers.until);
                // Both bounds of `NumericRange` are inclusive, so equal bounds contain one value.
                (Query::Numbers(numbers), bounds.is_some_and(|(from, until)| until < from))
            }
        };
        if is_empty { Err(self.empty()) } else { Ok(query) }
    }

    /// Returns the error for a range that contains nothing, such as `[5 TO 4]` or `[4 TO 4}`: a mistake, which a search
    /// without hits would hide.
    fn empty(&self) -> QueryError {
        QueryError::new("the range is empty", self.start)
    }

    /// Parses the bounds as dates. A bound is the interval of a year, month, day, second or millisecond: an inclusive
    /// bound includes all of it, an exclusive bound skips all of it.
    fn dates(&self, field: DateField, zone: &TimeZone) -> Result<DateRange, QueryError> {
        let from = match &self.from {
            Some(bound) if bound.inclusive => Some(bound.interval(zone)?.start),
            Some(bound) => Some(bound.interval(zone)?.end),
            None => None,
        };
        let until = match &self.until {
            Some(bound) if bound.inclusive => Some(bound.interval(zone)?.end),
            Some(bound) => Some(bound.interval(zone)?.start),
            None => None,
        };
        Ok(DateRange { field, from, until })
    }

    /// Parses the bounds as numbers. An exclusive bound becomes the next representable number, which is included. No
    /// number is above the largest or below the lowest.
    fn numbers(&self, field: NumberField) -> Result<NumericRange, QueryError> {
        let from = match &self.from {
            Some(bound) if bound.inclusive => Some(bound.number()?),
            Some(bound) => Some(bound.number()?.above().ok_or_else(|| self.empty())?),
            None => None,
        };
        let until = match &self.until {
            Some(bound) if bound.inclusive => Some(bound.number()?),
            Some(bound) => Some(bound.number()?.below().ok_or_else(|| self.empty())?),
            None => None,
        };
        Ok(NumericRange { field, from, until })
    }
}

/// Parses a bound in brackets, with the space before it; `None` if it is open.
fn parse_bound(
    scanner: &mut QueryScanner,
    kind: &str,
    inclusive: bool,
) -> Result<Option<RangeBound>, QueryError> {
    scanner.skip_space();
    let position = scanner.position();
    match scanner.bound() {
        text if text == "*" => Ok(None),
        // In `[TO 4]` the first bound is missing, and the text in its place is `TO`.
        text if text.is_empty() || text == "TO" => {
            let what = format!("expected a {kind} or *");
            Err(QueryError { what, position })
        }
        text => Ok(Some(RangeBound { text, position, inclusive })),
    }
}

fn not_a_date(text: &str, position: usize) -> QueryError {
    let text = excerpt(text);
    let forms = "expected YYYY, YYYY-MM, YYYY-MM-DD or a time such as 2026-03-02T09:15:00+01:00";
    QueryError { what: format!("{text} is not a date, {forms}"), position }
}

fn not_a_number(text: &str, position: usize) -> QueryError {
    let what = format!("{} is not a number, expected digits such as 4, -1 or 0.5", excerpt(text));
    QueryError { what, position }
}
