//! Defines the facets: properties whose values are counted over the hits of a search.

use strum::{EnumCount, EnumIter, EnumString, IntoStaticStr, VariantNames};

/// A property whose values are counted over all hits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[derive(EnumCount, EnumIter, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Facet {
    #[strum(serialize = "subject.code")]
    SubjectCode,
    #[strum(serialize = "product.code")]
    ProductCode,
    #[strum(serialize = "place.name")]
    PlaceName,
    #[strum(serialize = "person.name")]
    PersonName,
    CopyrightHolder,
    /// How a picture was made, by the code of the IPTC's vocabulary.
    DigitalSourceType,
    #[strum(serialize = "subject.name")]
    SubjectName,
    Byline,
    /// The shape of a picture, see [`ORIENTATIONS`](crate::ORIENTATIONS).
    Orientation,
    /// Whether a picture has colours, see [`COLOURS`](crate::COLOURS).
    Colour,
    MediaType,
}

impl Facet {
    /// The name of the property, such as `person.name`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The position of the facet among all of them, by which arrays are indexed.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}
