#![doc = include_str!("../README.md")]

pub mod account;
mod association_key;
mod crop;
mod hash;
pub mod item;
mod item_id;
mod item_key;
pub mod limits;
mod macros;
mod media_type;
pub mod media_url;
mod network;
mod operation_parameters;
mod picture_hash;
mod rendition;
mod rendition_extension;
mod resize;
mod retry;
pub mod schedule;
#[cfg(test)]
mod stored_words_tests;
mod text;
pub mod token;

pub use association_key::{AssociationKey, AssociationKeyError};
pub use crop::CropSpec;
pub use geometry::{CropError, Rect, Size, scale_crop};
pub use hash::{ContentHash, ContentHasher, HashError};
pub use item_id::{ItemId, ItemIdError};
pub use item_key::{ItemKey, ItemKeyError, ItemUri, ItemUriError};
pub use media_type::{MediaType, UnknownMediaType};
pub use network::network;
pub use operation_parameters::{ParameterError, PixelOperation, PixelParameter};
pub use picture_hash::{PictureHash, PictureHashError};
pub use rendition::{RenditionName, RenditionUsage, RenditionVariant};
pub use rendition_extension::RenditionExtension;
pub use resize::{PresetName, ResizeError, ResizeSpec};
pub use retry::{AttemptEnd, Backoff, RetryPolicy};
pub use text::{percent_encode, shorten};
