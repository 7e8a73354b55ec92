//! Defines the facets: properties whose values are counted over the hits of a search.

/// A property whose values are counted over all hits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Facet {
    SubjectCode,
    ProductCode,
    PlaceName,
    PersonName,
    CopyrightHolder,
    /// How a picture was made, by the code of the IPTC's vocabulary.
    DigitalSourceType,
}

impl Facet {
    /// Every facet, in a fixed order.
    pub const ALL: [Self; 6] = [
        Self::SubjectCode,
        Self::ProductCode,
        Self::PlaceName,
        Self::PersonName,
        Self::CopyrightHolder,
        Self::DigitalSourceType,
    ];

    /// The name of the property, such as `person.name`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SubjectCode => "subject.code",
            Self::ProductCode => "product.code",
            Self::PlaceName => "place.name",
            Self::PersonName => "person.name",
            Self::CopyrightHolder => "copyrightholder",
            Self::DigitalSourceType => "digitalsourcetype",
        }
    }

    /// The index of this facet in [`Facet::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::SubjectCode => 0,
            Self::ProductCode => 1,
            Self::PlaceName => 2,
            Self::PersonName => 3,
            Self::CopyrightHolder => 4,
            Self::DigitalSourceType => 5,
        }
    }
}
