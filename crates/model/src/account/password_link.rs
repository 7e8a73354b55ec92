//! The purpose of a link for setting a password.

use strum::{EnumString, IntoStaticStr, VariantNames};

/// The purpose of a link for setting a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum PasswordLinkKind {
    /// Invites a new user to set the first password.
    Invitation,
    /// Resets the password, at the request of the user or an administrator.
    Reset,
}

crate::impl_as_str!(PasswordLinkKind);
