//! The purpose of a link for setting a password.

/// The purpose of a link for setting a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordLinkKind {
    /// Invites a new user to set the first password.
    Invitation,
    /// Resets the password, at the request of the user or an administrator.
    Reset,
}

impl PasswordLinkKind {
    /// Returns the word used in the database and in responses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invitation => "invitation",
            Self::Reset => "reset",
        }
    }

    /// Finds the kind with that word.
    #[must_use]
    pub fn find(word: &str) -> Option<Self> {
        [Self::Invitation, Self::Reset].into_iter().find(|kind| kind.as_str() == word)
    }
}
