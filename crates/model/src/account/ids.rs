//! Numeric ids of accounts. Each has a type of its own, so that they cannot be confused.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest number that every JSON reader represents exactly (RFC 8259 §6).
const ID_MAX: i64 = (1 << 53) - 1;

macro_rules! ids {
    ($($(#[doc = $doc:literal])* $Name:ident >= $min:literal;)*) => {$(
        $(#[doc = $doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(try_from = "i64")]
        pub struct $Name(pub i64);

        impl TryFrom<i64> for $Name {
            type Error = &'static str;

            fn try_from(id: i64) -> Result<Self, &'static str> {
                if ($min..=ID_MAX).contains(&id) {
                    Ok(Self(id))
                } else {
                    Err("expected a whole number above 0")
                }
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// The id of a user.
    UserId >= 1;
    /// The id of an organization, the customer that users belong to.
    OrganizationId >= 1;
    /// The id of an agreement of an organization.
    AgreementId >= 1;
    /// The id of a product. Orders under an agreement that covers everything and has no product have the id 0.
    ProductId >= 0;
    /// The id of an order row.
    OrderId >= 1;
    /// The id of one authorization of a client by a user: the code, its tokens and the tokens refreshed from them.
    FamilyId >= 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_whole_numbers_that_every_json_reader_represents_exactly() {
        let parse = |text: &str| serde_json::from_str::<UserId>(text).ok();
        assert_eq!(parse("1"), Some(UserId(1)));
        assert_eq!(parse("9007199254740991"), Some(UserId(ID_MAX)));
        for text in ["0", "-1", "9007199254740992", "1.0", "\"1\"", "null"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(serde_json::from_str::<ProductId>("0").ok(), Some(ProductId(0)));
        assert_eq!(serde_json::to_string(&UserId(7)).ok().as_deref(), Some("7"));
    }
}
