//! Amounts of money with two decimals (contract purchases-11).

use std::{fmt, str::FromStr};

use serde_with::{DeserializeFromStr, SerializeDisplay};

/// An exact amount of money, positive, zero or negative, in the currency of the organization that orders.
///
/// Its text form has exactly two decimals, and a `-` if it is negative: `1200.00`, `-0.50`. JSON has the same text: most
/// clients read a JSON number as floating point, which is not exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[derive(DeserializeFromStr, SerializeDisplay)]
pub struct Money {
    /// The amount in hundredths of the currency unit: 120000 for `1200.00`.
    hundredths: i64,
}

/// The error for a text that is not an amount, or whose amount without its sign exceeds 92233720368547758.07
/// ([`i64::MAX`] hundredths).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an amount with two decimals, such as 1200.00, and at most 92233720368547758.07")]
pub struct MoneyError;

impl FromStr for Money {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, decimals) = unsigned.split_once('.').ok_or(MoneyError)?;
        // `i64::from_str` alone would accept a second sign.
        if whole.is_empty() || decimals.len() != 2 || !all_digits(whole) || !all_digits(decimals) {
            return Err(MoneyError);
        }
        // Digits alone fail to parse only if the amount is too large.
        let hundredths: i64 = format!("{whole}{decimals}").parse().map_err(|_| MoneyError)?;
        let is_negative = text.starts_with('-');
        Ok(Self { hundredths: if is_negative { -hundredths } else { hundredths } })
    }
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The sign is printed separately: for -0.50, the whole units are 0 and have no sign.
        let unsigned = self.hundredths.unsigned_abs();
        let sign = if self.hundredths < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:02}", unsigned / 100, unsigned % 100)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn err_amounts_without_two_decimals_or_too_large_are_refused() {
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
