//! The words that every unit shares: media types, item identities, rendition names, geometry.
//!
//! Each type is parsed once, at the edge, and cannot be wrong afterwards. Nothing here looks
//! anything up; the URL grammar of the media interface is `media::path`'s.

mod crop;
mod geometry;
mod hash;
mod item_id;
mod item_key;
mod media_type;
mod rendition;
pub mod token;

pub use crop::{CropParameter, CropSpec, CropSyntaxError};
pub use geometry::{CropError, Rect, Size, scale_crop};
pub use hash::{Hash, HashError};
pub use item_id::{ItemId, ItemIdError};
pub use item_key::{ItemKey, ItemKeyError, ItemUri, ItemUriError};
pub use media_type::{MediaType, UnknownMediaType};
pub use rendition::{RenditionName, UnknownRendition, Usage, Variant};
