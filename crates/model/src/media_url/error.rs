//! The errors of the media path parser.

use thiserror::Error;

use crate::media_url::extension::FileExtension;
use crate::{AssociationKeyError, ItemIdError, ParameterError, ResizeError, UnknownMediaType};

/// The reason for refusing a media path, with the part at fault.
///
/// All are invalid arguments (contract media-8).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// The path is longer than [`MediaPath::BYTES_MAX`](crate::media_url::MediaPath::BYTES_MAX).
    #[error("the media path has {bytes} bytes, at most {max} are allowed")]
    TooLong {
        /// The length of the path in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        max: usize,
    },
    /// A character is not allowed in any media path. Nothing in the grammar needs percent-encoding.
    #[error("{part} has the character {found:?}")]
    BadCharacter { part: &'static str, found: char },
    /// A part is empty because of a superfluous slash.
    #[error("{part} is empty")]
    EmptyPart { part: &'static str },
    /// A part is `.` or `..`.
    #[error("{part} is {found:?}, which names no item")]
    DotPart { part: &'static str, found: String },
    /// The path has only one part.
    #[error("the media path ends after its media type, expected <mediaType>/<id>")]
    MissingId,
    /// The path has more than three parts.
    #[error("the media path has {count} parts, at most 3 are allowed")]
    TooManyParts { count: usize },
    /// The first part is not a media type.
    #[error(transparent)]
    MediaType(#[from] UnknownMediaType),
    /// The second part, without its tokens, is not an id.
    #[error(transparent)]
    Id(#[from] ItemIdError),
    /// The third part, without its tokens, is not an association key.
    #[error(transparent)]
    Association(#[from] AssociationKeyError),
    /// The third part has no extension and is not `pricelist`.
    #[error("the item has no {found:?}, expected \"pricelist\" or an associated object")]
    UnknownPart { found: String },
    /// An operation or suffix is on a name without an extension.
    #[error("{found:?} needs an extension such as .jpg")]
    MissingExtension { found: String },
    /// The extension is not part of the grammar.
    #[error("unknown extension {:?}", format!(".{}", .found))]
    UnknownExtension {
        /// The extension without its dot.
        found: String,
    },
    /// `.txt` without the kind of text before it.
    #[error("\".txt\" needs \"-cutpaste\" or \"-indesign\" before it")]
    UnknownText,
    /// An associated object has only renditions, no documents.
    #[error("an associated object has no \"{extension}\"")]
    NoDocument { extension: FileExtension },
    /// A crop operator is malformed.
    #[error(transparent)]
    Crop(#[from] ParameterError),
    /// A size is malformed.
    #[error(transparent)]
    Resize(#[from] ResizeError),
    /// Two operations determine the size.
    #[error("{second:?} is a second size beside {first:?}; a picture has one")]
    SecondSize { first: &'static str, second: &'static str },
    /// A crop follows a size.
    #[error("\"-crop\" must precede {size:?}: it is in pixels of the rendition that is named")]
    CropAfterSize { size: &'static str },
    /// An operation other than a crop is combined with a preset.
    #[error("a preset takes no {operation:?}; its definition decides")]
    BesidePreset { operation: &'static str },
    /// An operation occurs twice.
    #[error("the operation {operation:?} is given more than once")]
    RepeatedOperation { operation: &'static str },
    /// The extension does not accept the operation.
    #[error("\"{extension}\" does not take the operation {operation:?}")]
    OperationNotAllowed { operation: &'static str, extension: FileExtension },
    /// The extension does not accept a suffix.
    #[error("\"{extension}\" does not take a suffix, found {:?}", format!("_{}", .suffix))]
    SuffixNotAllowed {
        /// The suffix without its underscore.
        suffix: String,
        extension: FileExtension,
    },
    /// A suffix precedes an operation.
    #[error("the suffix {:?} precedes an operation, expected it after", format!("_{}", .suffix))]
    SuffixBeforeOperation {
        /// The suffix without its underscore.
        suffix: String,
    },
    /// A second suffix precedes the last one.
    #[error("there is a second suffix {:?}", format!("_{}", .suffix))]
    RepeatedSuffix {
        /// The suffix without its underscore.
        suffix: String,
    },
    /// A variant has no usage, but the extension requires one.
    #[error("the suffix {:?} needs a usage such as Preview", format!("_{}", .suffix))]
    LoneVariant {
        /// The suffix without its underscore.
        suffix: String,
    },
    /// The name of an associated object does not have a known suffix.
    #[error("an associated object needs a suffix such as \"_NormalPreview\", found {found:?}")]
    MissingSuffix {
        /// The name without its extension and operations.
        found: String,
    },
}

impl PathError {
    /// Returns the part of the path at fault, as `path` in an error body names it.
    ///
    /// One of `path`, `mediaType`, `id`, `association`, `operation`, `crop`, `fit`, `fill`, a parameter such as
    /// `crop.w`, `preset`, `suffix` and `extension`.
    pub fn part(&self) -> String {
        let part = match self {
            Self::TooLong { .. } | Self::TooManyParts { .. } => part::PATH,
            Self::BadCharacter { part, .. }
            | Self::EmptyPart { part }
            | Self::DotPart { part, .. } => *part,
            Self::MediaType(_) => part::MEDIA_TYPE,
            Self::MissingId | Self::Id(_) => part::ID,
            Self::Association(_) | Self::UnknownPart { .. } => part::ASSOCIATION,
            Self::Crop(error) => return error.part(),
            Self::Resize(error) => return error.part(),
            Self::RepeatedOperation { .. }
            | Self::OperationNotAllowed { .. }
            | Self::SecondSize { .. }
            | Self::CropAfterSize { .. }
            | Self::BesidePreset { .. } => part::OPERATION,
            Self::SuffixNotAllowed { .. }
            | Self::SuffixBeforeOperation { .. }
            | Self::RepeatedSuffix { .. }
            | Self::LoneVariant { .. }
            | Self::MissingSuffix { .. } => part::SUFFIX,
            Self::MissingExtension { .. }
            | Self::UnknownExtension { .. }
            | Self::UnknownText
            | Self::NoDocument { .. } => part::EXTENSION,
        };
        part.to_owned()
    }
}

/// The names of the parts of a media path in error bodies.
pub(crate) mod part {
    pub(crate) const PATH: &str = "path";
    pub(crate) const MEDIA_TYPE: &str = "mediaType";
    /// The second part of the path, or the id in it.
    pub(crate) const ID: &str = "id";
    /// The third part of the path, or the association key in it.
    pub(crate) const ASSOCIATION: &str = "association";
    /// An operation, except for the parameters of a crop.
    pub(crate) const OPERATION: &str = "operation";
    pub(crate) const SUFFIX: &str = "suffix";
    /// The text after the last dot.
    pub(crate) const EXTENSION: &str = "extension";
}
