//! Numeric ids of accounts, with one type each so that they cannot be confused.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[doc = $doc:literal])* $Name:ident;)*) => {$(
        $(#[doc = $doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $Name(pub i64);

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// The id of a user.
    UserId;
    /// The id of an organization, the customer that users belong to.
    OrganizationId;
    /// The id of an agreement of an organization.
    AgreementId;
    /// The id of a product that agreements cover.
    ProductId;
    /// The id of an order row.
    OrderId;
    /// The id of one authorization of a client by a user: its code, its tokens and the tokens refreshed from
    /// them.
    FamilyId;
}
