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
    SubjectName,
    Byline,
    /// The shape of a picture, see [`ORIENTATIONS`](crate::ORIENTATIONS).
    Orientation,
    /// Whether a picture has colours, see [`COLOURS`](crate::COLOURS).
    Colour,
    MediaType,
}

impl Facet {
    /// Every facet, in a fixed order.
    pub const ALL: [Self; 11] = [
        Self::SubjectCode,
        Self::ProductCode,
        Self::PlaceName,
        Self::PersonName,
        Self::CopyrightHolder,
        Self::DigitalSourceType,
        Self::SubjectName,
        Self::Byline,
        Self::Orientation,
        Self::Colour,
        Self::MediaType,
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
            Self::SubjectName => "subject.name",
            Self::Byline => "byline",
            Self::Orientation => "orientation",
            Self::Colour => "colour",
            Self::MediaType => "mediatype",
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
            Self::SubjectName => 6,
            Self::Byline => 7,
            Self::Orientation => 8,
            Self::Colour => 9,
            Self::MediaType => 10,
        }
    }
}
