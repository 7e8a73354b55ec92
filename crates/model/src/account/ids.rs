//! Numbers that name accounts. Each has a type of its own, so that one is never taken for another.

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

impl UserId {
    /// Whether the number was given by a change of the schema, for want of one that somebody
    /// stated.
    #[must_use]
    pub fn is_provisional(self) -> bool {
        self.0 < 0
    }
}

ids! {
    /// A user.
    UserId;
    /// An organization, the customer that users belong to.
    OrganizationId;
    /// An agreement of an organization.
    AgreementId;
    /// A product that agreements cover.
    ProductId;
    /// An order row.
    OrderId;
    /// What one authorization of a client by a user gave: a code, tokens, their successors.
    FamilyId;
}
