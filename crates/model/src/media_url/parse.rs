//! Parses a media path from the right.

use crate::media_url::error::{PathError, part};
use crate::media_url::extension::FileExtension;
use crate::media_url::operation::PictureOperation;
use crate::media_url::path::{MediaPath, MediaTarget, PRICELIST};
use crate::{
    AssociationKey, CropSpec, ItemId, ItemIdError, ItemKey, MediaType, RenditionExtension,
    RenditionName, RenditionUsage, RenditionVariant, ResizeSpec, token,
};

/// The names of the parts of a path, in order.
const PARTS: [&str; 3] = [part::MEDIA_TYPE, part::ID, part::ASSOCIATION];

impl MediaPath {
    /// Parses the raw path below `/media/`, without its query; nothing is percent-decoded.
    ///
    /// Fails with [`PathError`], which has the part at fault.
    pub fn parse(path: &str) -> Result<Self, PathError> {
        // Checked first, so that everything below works on a short text.
        if path.len() > MediaPath::BYTES_MAX {
            return Err(PathError::TooLong { bytes: path.len(), max: MediaPath::BYTES_MAX });
        }
        let parts: Vec<&str> = path.split('/').collect();
        for (index, text) in parts.iter().enumerate() {
            // All parts are checked before any is parsed, so no encoded slash reaches the grammar.
            check_part(PARTS.get(index).copied().unwrap_or(part::PATH), text)?;
        }
        match parts[..] {
            [media_type, name] => parse_file(media_type.parse()?, name),
            [media_type, name, PRICELIST] => {
                // A stored `uri` may end in a crop, but the price list is of the whole item (contract items-12).
                let item = parse_item(media_type.parse()?, name)?;
                Ok(MediaPath { target: MediaTarget::Pricelist, ..item })
            }
            [media_type, id, name] => parse_association(parse_key(media_type, id)?, name),
            // Reports the first mistake from the left.
            [media_type] => Err(match media_type.parse::<MediaType>() {
                Ok(_) => PathError::MissingId,
                Err(error) => error.into(),
            }),
            [..] => Err(PathError::TooManyParts { count: parts.len() }),
        }
    }
}

/// Returns `true` for a character that proxies and file systems interpret in different ways.
fn is_ambiguous(c: char) -> bool {
    // The grammar needs none of these.
    !c.is_ascii_graphic() || matches!(c, '%' | '\\' | ';' | '?' | '#')
}

/// Refuses percent-encoding, separators of other systems, and parts that name a directory.
fn check_part(part: &'static str, text: &str) -> Result<(), PathError> {
    match text.chars().find(|&c| is_ambiguous(c)) {
        Some(found) => Err(PathError::BadCharacter { part, found }),
        None if text.is_empty() => Err(PathError::EmptyPart { part }),
        None if text == "." || text == ".." => {
            Err(PathError::DotPart { part, found: text.to_owned() })
        }
        None => Ok(()),
    }
}

fn parse_key(media_type: &str, id: &str) -> Result<ItemKey, PathError> {
    Ok(ItemKey::new(media_type.parse()?, parse_id_of_item(id)?))
}

/// Parses the item itself, with the crop that a stored URI may have.
fn parse_item(media_type: MediaType, name: &str) -> Result<MediaPath, PathError> {
    let (id, crop) = match token::split_crop(name) {
        Some((id, parameters)) => (id, Some(CropSpec::parse(parameters)?)),
        None => (name, None),
    };
    let key = ItemKey::new(media_type, parse_id_of_item(id)?);
    Ok(MediaPath { key, target: MediaTarget::Item(crop) })
}

/// Parses an id without an extension. Operations and suffixes are errors here, because they need an extension.
fn parse_id_of_item(text: &str) -> Result<ItemId, PathError> {
    ItemId::parse(text).map_err(|error| match error {
        ItemIdError::HasOperation { operation } => {
            PathError::MissingExtension { found: operation.to_owned() }
        }
        ItemIdError::EndsInSuffix { suffix } => {
            PathError::MissingExtension { found: format!("_{suffix}") }
        }
        ItemIdError::Empty | ItemIdError::TooLong { .. } | ItemIdError::BadCharacter { .. } => {
            PathError::Id(error)
        }
    })
}

/// Parses the second of two parts: the item itself or one of its files.
fn parse_file(media_type: MediaType, name: &str) -> Result<MediaPath, PathError> {
    // Ids contain no dots, so a name without one has no extension.
    if !name.contains('.') {
        return parse_item(media_type, name);
    }
    let (stem, extension) = split_extension(name)?;
    let name = split_name(stem, extension)?;
    let key = ItemKey::new(media_type, ItemId::parse(name.subject)?);
    let path = match extension {
        FileExtension::Document(extension) => MediaPath::document(key, extension),
        FileExtension::Rendition(extension) => {
            // A missing suffix means the Normal Hires of any extension (contract media-3).
            let rendition = name.suffix.unwrap_or(RenditionName::NORMAL_HIRES);
            MediaPath::rendition(key, rendition, extension)
        }
    };
    name.operations.into_iter().try_fold(path, MediaPath::with_operation)
}

/// Parses the third of three parts: a rendition of an associated object.
fn parse_association(key: ItemKey, name: &str) -> Result<MediaPath, PathError> {
    if !name.contains('.') {
        return Err(PathError::UnknownPart { found: name.to_owned() });
    }
    let (stem, extension) = split_extension(name)?;
    let rendition_extension = match extension {
        FileExtension::Rendition(extension) => extension,
        FileExtension::Document(_) => return Err(PathError::NoDocument { extension }),
    };
    let name = split_name(stem, extension)?;
    // Unlike an item, an associated object does not have a default suffix (contract media-6).
    let Some(rendition) = name.suffix else {
        return Err(PathError::MissingSuffix { found: name.subject.to_owned() });
    };
    let association = AssociationKey::parse(name.subject)?;
    let path = MediaPath::association(key, association, rendition, rendition_extension);
    name.operations.into_iter().try_fold(path, MediaPath::with_operation)
}

fn split_extension(name: &str) -> Result<(&str, FileExtension), PathError> {
    if let Some(found) = FileExtension::split(name) {
        return Ok(found);
    }
    let found = name.rsplit('.').next().unwrap_or_default();
    // `.txt` alone is not an extension, so the message names the two extensions that end in it.
    if found.eq_ignore_ascii_case("txt") {
        return Err(PathError::UnknownText);
    }
    Err(PathError::UnknownExtension { found: found.to_owned() })
}

/// The parts of a file name without its extension.
struct FileNameParts<'a> {
    /// The rest of the name: the id or the association, not yet validated.
    subject: &'a str,
    /// The operations in the order of the URL.
    operations: Vec<PictureOperation>,
    suffix: Option<RenditionName>,
}

fn split_name(stem: &str, extension: FileExtension) -> Result<FileNameParts<'_>, PathError> {
    let (stem, suffix) = split_suffix(stem, extension)?;
    let (subject, operations) = split_operations(stem)?;
    // `ItemId::parse` would refuse this as well, but with a message about the id.
    if let Some((_, found)) = token::split_suffix(subject) {
        let found = found.to_owned();
        return Err(if operations.is_empty() {
            PathError::RepeatedSuffix { suffix: found }
        } else {
            PathError::SuffixBeforeOperation { suffix: found }
        });
    }
    Ok(FileNameParts { subject, operations, suffix })
}

fn split_suffix(
    stem: &str,
    extension: FileExtension,
) -> Result<(&str, Option<RenditionName>), PathError> {
    let Some((before, suffix)) = token::split_suffix(stem) else {
        return Ok((stem, None));
    };
    let extension = match extension {
        FileExtension::Rendition(extension) => extension,
        FileExtension::Document(_) => {
            return Err(PathError::SuffixNotAllowed { suffix: suffix.to_owned(), extension });
        }
    };
    let name = RenditionName::find(suffix).or_else(|| lone_variant(suffix, extension));
    let name = name.ok_or_else(|| PathError::LoneVariant { suffix: suffix.to_owned() })?;
    Ok((before, Some(name)))
}

/// Returns the Hires for a variant without a usage, if the extension allows that.
fn lone_variant(suffix: &str, extension: RenditionExtension) -> Option<RenditionName> {
    let allowed = token::is_lone_variant(suffix) && extension.accepts_lone_variant();
    allowed.then_some(RenditionName::new(RenditionVariant::BlackAndWhite, RenditionUsage::Hires))
}

/// Strips operations from the right end until none is left.
///
/// Stops at the first repeated operation, so each operation is parsed at most once.
fn split_operations(mut stem: &str) -> Result<(&str, Vec<PictureOperation>), PathError> {
    let mut reversed: Vec<PictureOperation> = Vec::new();
    while let Some(operator) = token::split_operation(stem) {
        if reversed.iter().any(|existing| existing.name() == operator.name) {
            return Err(PathError::RepeatedOperation { operation: operator.name });
        }
        reversed.push(match operator.name {
            token::WATERMARK => PictureOperation::Watermark,
            token::CROP => PictureOperation::Crop(CropSpec::parse(operator.parameters)?),
            name => PictureOperation::Resize(ResizeSpec::parse(name, operator.parameters)?),
        });
        stem = operator.before;
    }
    // Stripped from the right, but applied in the order of the URL (contract media-18).
    reversed.reverse();
    Ok((stem, reversed))
}
