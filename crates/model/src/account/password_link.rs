//! What a link is for by which a user sets a password.

/// What a link is for by which a user sets a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordLinkKind {
    /// The user has no password yet and is invited to set the first one.
    Invitation,
    /// The user, or an administrator for it, asked for another password.
    Reset,
}

impl PasswordLinkKind {
    /// The word in the database and in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invitation => "invitation",
            Self::Reset => "reset",
        }
    }

    /// Finds the kind of a word.
    #[must_use]
    pub fn find(word: &str) -> Option<Self> {
        [Self::Invitation, Self::Reset].into_iter().find(|kind| kind.as_str() == word)
    }
}
