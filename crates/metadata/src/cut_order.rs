//! Defines the order in which properties are cut if they are too large together.
//!
//! Prompts are cut first, then descriptions, then details of the picture's content, then the caption, and rights
//! last. The same order selects the properties that a JPEG file has in extended XMP, which some programs do not
//! read.

use CutMethod::{Entries, Rest, Text, Whole};

/// The method by which a property is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutMethod {
    /// The property is dropped, because a part of a structure would have a different meaning.
    Whole,
    /// Entries are dropped from the end of the list.
    Entries,
    /// Only the text in the default language remains, cut to a number of bytes.
    Text,
    /// The text is cut to the remaining room.
    Rest,
}

/// All properties that can be cut, the most expendable first.
///
/// Other properties are never cut: the digital source type, the constraint on data mining, and dates and numbers,
/// which are short.
pub(crate) const CUT_ORDER: [(&str, CutMethod); 61] = [
    ("aIPromptInformation", Whole),
    ("aIPromptWriterNam", Whole),
    ("extDescrAccessibility", Whole),
    ("altTextAccessibility", Whole),
    ("imageRegion", Whole),
    ("artworkOrObjects", Whole),
    ("productsShown", Whole),
    ("personsShown", Whole),
    ("additionalModelInfo", Whole),
    ("modelAges", Whole),
    ("aboutCvTerms", Whole),
    ("genres", Whole),
    ("sceneCodes", Whole),
    ("intellectualGenre", Whole),
    ("organisationInImageCodes", Whole),
    ("organisationInImageNames", Whole),
    ("eventId", Whole),
    ("eventName", Whole),
    ("locationsShown", Whole),
    ("locationCreated", Whole),
    ("creatorContactInfo", Whole),
    ("contributors", Whole),
    ("captionWriter", Whole),
    ("registryEntries", Whole),
    ("imageSupplierImageId", Whole),
    ("suppliers", Whole),
    ("keywords", Entries),
    ("personInImageNames", Entries),
    ("subjectCodes", Entries),
    ("headline", Text),
    ("title", Text),
    ("sublocationName", Text),
    ("cityName", Text),
    ("provinceState", Text),
    ("countryName", Text),
    ("countryCode", Text),
    ("jobid", Text),
    ("instructions", Text),
    ("jobtitle", Text),
    ("source", Text),
    ("digitalImageGuid", Text),
    ("language", Text),
    ("creditLine", Text),
    ("creatorNames", Text),
    ("description", Rest),
    ("embdEncRightsExprs", Whole),
    ("linkedEncRightsExprs", Whole),
    ("propertyReleaseDocuments", Whole),
    ("modelReleaseDocuments", Whole),
    ("propertyReleaseStatus", Whole),
    ("modelReleaseStatus", Whole),
    ("minorModelAgeDisclosure", Whole),
    ("aISystemVersionUsed", Whole),
    ("aISystemUsed", Whole),
    ("imageCreators", Whole),
    ("licensors", Whole),
    ("webstatementRights", Whole),
    ("copyrightOwners", Whole),
    ("otherConstraints", Text),
    ("usageTerms", Text),
    ("copyrightNotice", Text),
];
