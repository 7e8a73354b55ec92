//! Why a media path is refused.

use thiserror::Error;

use crate::AssociationKeyError;
use crate::media_url::extension::FileExtension;
use crate::{CropSyntaxError, ItemIdError, UnknownMediaType};

/// A media path that the grammar does not have, and the part of it that is wrong.
///
/// Each of them is an invalid argument (contract media-8).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// The path is longer than [`MediaPath::BYTES_MAX`](crate::media_url::MediaPath::BYTES_MAX).
    #[error("the media path has {bytes} bytes, at most {max} are allowed")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The most bytes that are allowed.
        max: usize,
    },
    /// A character that no media path holds: nothing in the grammar needs an escape.
    #[error("{part} has the character {found:?}")]
    BadCharacter {
        /// The part that holds it.
        part: &'static str,
        /// The character.
        found: char,
    },
    /// A part is empty: a slash too many.
    #[error("{part} is empty")]
    EmptyPart {
        /// The part.
        part: &'static str,
    },
    /// A part is `.` or `..`.
    #[error("{part} is {found:?}, which names no item")]
    DotPart {
        /// The part.
        part: &'static str,
        /// The part's text.
        found: String,
    },
    /// There is only one part.
    #[error("the media path ends after its media type, expected <mediaType>/<id>")]
    MissingId,
    /// There are more than three parts.
    #[error("the media path has {count} parts, at most 3 are allowed")]
    TooManyParts {
        /// How many there are.
        count: usize,
    },
    /// The first part is no media type.
    #[error(transparent)]
    MediaType(#[from] UnknownMediaType),
    /// What is left of the second part is no id.
    #[error(transparent)]
    Id(#[from] ItemIdError),
    /// What is left of the third part is no association key.
    #[error(transparent)]
    Association(#[from] AssociationKeyError),
    /// The third part has no extension and is not `pricelist`.
    #[error("the item has no {found:?}, expected \"pricelist\" or an associated object")]
    UnknownPart {
        /// The third part.
        found: String,
    },
    /// An operation or suffix stands on a name without an extension.
    #[error("{found:?} needs an extension such as .jpg")]
    MissingExtension {
        /// The operation or suffix.
        found: String,
    },
    /// The extension is none of the grammar's.
    #[error("unknown extension {:?}", format!(".{}", .found))]
    UnknownExtension {
        /// The extension without its dot.
        found: String,
    },
    /// `.txt` without saying which text.
    #[error("\".txt\" needs \"-cutpaste\" or \"-indesign\" before it")]
    UnknownText,
    /// An associated object has renditions only.
    #[error("an associated object has no \"{extension}\"")]
    NoDocument {
        /// The extension that was asked for.
        extension: FileExtension,
    },
    /// A crop operator is malformed.
    #[error(transparent)]
    Crop(#[from] CropSyntaxError),
    /// An operation stands twice.
    #[error("the operation {operation:?} is given more than once")]
    RepeatedOperation {
        /// The operation.
        operation: &'static str,
    },
    /// The extension does not take the operation.
    #[error("\"{extension}\" does not take the operation {operation:?}")]
    OperationNotAllowed {
        /// The operation.
        operation: &'static str,
        /// The extension.
        extension: FileExtension,
    },
    /// The extension does not take a suffix.
    #[error("\"{extension}\" does not take a suffix, found {:?}", format!("_{}", .suffix))]
    SuffixNotAllowed {
        /// The suffix without its underscore.
        suffix: String,
        /// The extension.
        extension: FileExtension,
    },
    /// A suffix stands before an operation.
    #[error("the suffix {:?} stands before an operation, expected it behind", format!("_{}", .suffix))]
    SuffixBeforeOperation {
        /// The suffix without its underscore.
        suffix: String,
    },
    /// A second suffix stands before the last one.
    #[error("there is a second suffix {:?}", format!("_{}", .suffix))]
    RepeatedSuffix {
        /// The suffix without its underscore.
        suffix: String,
    },
    /// A variant stands without a usage where the extension does not allow it.
    #[error("the suffix {:?} needs a usage such as Preview", format!("_{}", .suffix))]
    LoneVariant {
        /// The suffix without its underscore.
        suffix: String,
    },
    /// An associated object is named without a known suffix.
    #[error("an associated object needs a suffix such as \"_NormalPreview\", found {found:?}")]
    MissingSuffix {
        /// The name without its extension and operations.
        found: String,
    },
}

impl PathError {
    /// The part of the path that is wrong, as the `path` of an error body names it.
    ///
    /// One of `path`, `mediaType`, `id`, `association`, `operation`, `crop`, `crop.w`, `crop.h`,
    /// `crop.x`, `crop.y`, `suffix` and `extension`.
    pub fn part(&self) -> &'static str {
        match self {
            Self::TooLong { .. } | Self::TooManyParts { .. } => part::PATH,
            Self::BadCharacter { part, .. }
            | Self::EmptyPart { part }
            | Self::DotPart { part, .. } => part,
            Self::MediaType(_) => part::MEDIA_TYPE,
            Self::MissingId | Self::Id(_) => part::ID,
            Self::Association(_) | Self::UnknownPart { .. } => part::ASSOCIATION,
            Self::Crop(error) => error.part(),
            Self::RepeatedOperation { .. } | Self::OperationNotAllowed { .. } => part::OPERATION,
            Self::SuffixNotAllowed { .. }
            | Self::SuffixBeforeOperation { .. }
            | Self::RepeatedSuffix { .. }
            | Self::LoneVariant { .. }
            | Self::MissingSuffix { .. } => part::SUFFIX,
            Self::MissingExtension { .. }
            | Self::UnknownExtension { .. }
            | Self::UnknownText
            | Self::NoDocument { .. } => part::EXTENSION,
        }
    }
}

/// The names of the parts of a media path.
pub(crate) mod part {
    /// The path as a whole.
    pub(crate) const PATH: &str = "path";
    /// The first part.
    pub(crate) const MEDIA_TYPE: &str = "mediaType";
    /// The second part, and the id in it.
    pub(crate) const ID: &str = "id";
    /// The third part, and the association key in it.
    pub(crate) const ASSOCIATION: &str = "association";
    /// An operation other than the parameters of a crop.
    pub(crate) const OPERATION: &str = "operation";
    /// The variant and usage.
    pub(crate) const SUFFIX: &str = "suffix";
    /// What follows the last dot.
    pub(crate) const EXTENSION: &str = "extension";
}
