//! Amounts of money: exact, with two decimals (contract purchases-11).

use std::{fmt, str::FromStr};

use crate::macros::impl_serde_as_text;

/// An amount in hundredths of the organization's currency unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money {
    hundredths: i64,
}

/// The error for a text that is not an amount, or whose amount is too large.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an amount with two decimals, such as 1200.00")]
pub struct MoneyError;

impl FromStr for Money {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (units, cents) = digits.split_once('.').ok_or(MoneyError)?;
        // `i64::from_str` alone would accept a sign.
        if units.is_empty() || cents.len() != 2 || !all_digits(units) || !all_digits(cents) {
            return Err(MoneyError);
        }
        // An amount that is too large is refused.
        let amount: i64 = format!("{units}{cents}").parse().map_err(|_| MoneyError)?;
        let is_negative = digits.len() < text.len();
        Ok(Self { hundredths: if is_negative { -amount } else { amount } })
    }
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The sign is printed separately: for -0.50, the whole units are 0 and have no sign.
        let amount = self.hundredths.unsigned_abs();
        let sign = if self.hundredths < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:02}", amount / 100, amount % 100)
    }
}

// A JSON number would pass through floating point in most clients (contract purchases-11).
impl_serde_as_text!(Money);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn err_amounts_without_two_decimals_are_refused() {
        for text in
            ["", "1", "1.", "1.0", "1.000", ".00", "-.00", "+1.00", "1,00", "1e2.00", " 1.00"]
        {
            assert_eq!(text.parse::<Money>(), Err(MoneyError), "{text:?}");
        }
        assert_eq!("92233720368547758.08".parse::<Money>(), Err(MoneyError));
    }

    proptest! {
        #[test]
        fn an_amount_prints_as_it_parses(hundredths in -i64::MAX..=i64::MAX) {
            let money = Money { hundredths };
            prop_assert_eq!(money.to_string().parse::<Money>(), Ok(money));
        }
    }
}
