//! What hits are counted by (Spec §4 Shared parameters, `facets`).

/// A property whose values are counted over all hits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Facet {
    /// `subject.code`.
    SubjectCode,
    /// `product.code`.
    ProductCode,
    /// `place.name`.
    PlaceName,
    /// `person.name`.
    PersonName,
    /// `copyrightholder`.
    CopyrightHolder,
}

impl Facet {
    /// Every facet, in the order of the answer.
    pub const ALL: [Self; 5] = [
        Self::SubjectCode,
        Self::ProductCode,
        Self::PlaceName,
        Self::PersonName,
        Self::CopyrightHolder,
    ];

    /// The property's name in parameters and answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SubjectCode => "subject.code",
            Self::ProductCode => "product.code",
            Self::PlaceName => "place.name",
            Self::PersonName => "person.name",
            Self::CopyrightHolder => "copyrightholder",
        }
    }

    /// Its place in [`Facet::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::SubjectCode => 0,
            Self::ProductCode => 1,
            Self::PlaceName => 2,
            Self::PersonName => 3,
            Self::CopyrightHolder => 4,
        }
    }
}
