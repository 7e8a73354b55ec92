//! The facets: properties whose values are counted over the hits of a search.

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
    /// The way in which a picture was created, as a code of the IPTC's vocabulary.
    DigitalSourceType,
    #[strum(serialize = "subject.name")]
    SubjectName,
    Byline,
    /// The shape of a picture; see [`ORIENTATIONS`](crate::ORIENTATIONS).
    Orientation,
    /// A colour or monochrome picture; see [`COLOURS`](crate::COLOURS).
    Colour,
    MediaType,
}

model::impl_as_str!(Facet);

impl Facet {
    /// Returns the index of the facet in arrays of all facets.
    pub fn index(self) -> usize {
        self as usize
    }
}
